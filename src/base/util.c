/* SPDX-License-Identifier: Apache-2.0 */
/*
 * util.c - memory that does not fail, and the cleanup helper for it
 */
#include "base/util.h"

#include <stdarg.h>
#include <stdio.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdlib.h>
#include <string.h>

enum { SETTLE_BYTES = 60 * 1024 }; /* larger than what has lists of its own size */
static const uintptr_t FAR_BYTES = UINT64_C(1) << 36;

void freep(void *ptr_to_ptr)
{
    void **ptr = ptr_to_ptr;

    free(*ptr);
    *ptr = NULL;
}

static char *high; /* of all threads; large things have mappings of their own, far from the heap */

char *mem_high(void)
{
    return __atomic_load_n(&high, __ATOMIC_RELAXED);
}

static void (*escape_to)(void);

void mem_on_failure(void (*escape)(void))
{
    __atomic_store_n(&escape_to, escape, __ATOMIC_RELAXED);
}

void mem_failed(void)
{
    static const char text[] = "fatal: out of memory\n";
    void (*escape)(void) = __atomic_load_n(&escape_to, __ATOMIC_RELAXED);

    if (escape)
        escape();
    fwrite(text, 1, sizeof(text) - 1, stderr);
    abort();
}

static void *checked(void *memory)
{
    if (!memory)
        mem_failed();
    if ((uintptr_t)memory - (uintptr_t)mem_high() - 1 < FAR_BYTES || !mem_high())
        __atomic_store_n(&high, memory, __ATOMIC_RELAXED);
    return memory;
}

void mem_steady(void)
{
#ifdef __GLIBC__
    mallopt(M_MXFAST, 0);
#endif
}

void mem_settle(void)
{
    void *volatile memory = malloc(SETTLE_BYTES); /* volatile: or there would be no call */

    free(memory);
}

void *mem_new(size_t size)
{
    return checked(calloc(1, size ? size : 1));
}

void *mem_resize(void *old, size_t size)
{
    return checked(realloc(old, size ? size : 1));
}

char *mem_strdup(const char *text)
{
    return text ? checked(strdup(text)) : NULL;
}

char *mem_strndup(const char *text, size_t len)
{
    return text ? checked(strndup(text, len)) : NULL;
}

char *mem_printf(const char *fmt, ...)
{
    char *text = NULL;
    va_list args;

    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) < 0)
        text = NULL;
    va_end(args);
    return checked(text);
}

void *mem_try(size_t size)
{
    return calloc(1, size ? size : 1);
}
