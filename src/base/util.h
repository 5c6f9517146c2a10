/* SPDX-License-Identifier: Apache-2.0 */
/*
 * util.h - the few macros that every file may use
 *
 * CLEANUP(fn) frees a local when it goes out of scope, TAKE(ptr) gives its value away and leaves
 * NULL behind, so that "return TAKE(thing)" is the one place where ownership leaves a function.
 */
#ifndef BASE_UTIL_H
#define BASE_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#undef MIN /* <sys/param.h>, which <uv.h> brings, has its own */
#undef MAX
#define CLEANUP(fn)        __attribute__((cleanup(fn)))
#define PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define NODISCARD          __attribute__((warn_unused_result))
#define ARRAY_LEN(array)   (sizeof(array) / sizeof((array)[0]))
/* <sys/param.h> has its own, which some system headers include. */
#undef MIN
#undef MAX
#define MIN(a, b)                       ((a) < (b) ? (a) : (b))
#define MAX(a, b)                       ((a) > (b) ? (a) : (b))
#define CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#define TAKE(ptr)                       \
    ({                                  \
        __typeof__(ptr) taken_ = (ptr); \
        (ptr) = NULL;                   \
        taken_;                         \
    })

/* For CLEANUP on plain malloc'ed memory: CLEANUP(freep) char *text = NULL; */
void freep(void *ptr_to_ptr);

/*
 * Memory for small things that we size ourselves. These do not return NULL: a process that cannot
 * get a few hundred bytes stops and is restarted from its durable state. Whatever an outsider can
 * size (a message, a file, a script) is taken with mem_try(), and its failure is that request's error.
 */
void *mem_new(size_t size); /* zeroed */
void *mem_resize(void *old, size_t size);
char *mem_strdup(const char *text); /* NULL gives NULL */
char *mem_strndup(const char *text, size_t len);
char *mem_printf(const char *fmt, ...) PRINTF(1, 2);
void *mem_try(size_t size); /* zeroed, or NULL */
/*
 * For a library inside somebody else's process, which must not stop it: what to do instead. The function does not
 * return (it jumps to where the library was entered), or the process stops after all.
 */
void mem_on_failure(void (*escape)(void));
void mem_failed(void); /* there is no memory: escapes or stops */
/*
 * For a process that must not stop for long: what was freed is put together as it comes, not a million
 * pieces at once when somebody next asks for something large. Call it first in main().
 */
void mem_steady(void);
/*
 * For such a process, now and then: what was freed since is sorted into the lists of the allocator. It would do
 * ten thousand pieces in one later call otherwise, which takes milliseconds.
 */
void mem_settle(void);
char *mem_high(void); /* the highest address in the heap that any of these gave */

#define NEW(type)          ((type *)mem_new(sizeof(type)))
#define NEW_ARRAY(type, n) ((type *)mem_new(sizeof(type) * (size_t)(n)))

static inline bool str_is_empty(const char *text)
{
    return !text || !*text;
}

#endif
