/* SPDX-License-Identifier: Apache-2.0 */
/*
 * str.h - a growing string, and the small questions asked of text
 *
 * struct str always ends in NUL when it has data; zero-initialised is empty and valid and
 * str_text() of it is "". Bytes may contain NUL; len counts them. str_take() gives the memory away.
 */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdarg.h>

#include "base/util.h"

struct str {
    char *data;
    size_t len, cap;
};

void str_done(struct str *str);
void str_clear(struct str *str); /* keeps the memory */
void str_reserve(struct str *str, size_t more);
void str_add(struct str *str, const char *text);
void str_add_len(struct str *str, const void *bytes, size_t len);
void str_add_char(struct str *str, char c);
void str_add_fill(struct str *str, char c, size_t count);
void str_addf(struct str *str, const char *fmt, ...) PRINTF(2, 3);
void str_vaddf(struct str *str, const char *fmt, va_list args);
void str_add_i64(struct str *str, int64_t value);
void str_add_u64(struct str *str, uint64_t value);
void str_truncate(struct str *str, size_t len);
char *str_take(struct str *str); /* never NULL; the caller frees it */

static inline const char *str_text(const struct str *str)
{
    return str->data ? str->data : "";
}

bool str_eq(const char *a, const char *b);  /* two NULLs are equal */
bool str_ieq(const char *a, const char *b); /* ASCII case ignored, in any locale */
bool str_starts(const char *text, const char *prefix);
bool str_istarts(const char *text, const char *prefix);
bool str_ends(const char *text, const char *suffix);
char *str_trim(char *text); /* in place; returns the first character that is not blank */

/*
 * The words of a list ("a,b,,c" has three): each call gives the next one and moves *cursor on.
 *
 *     const char *cursor = text; struct span word;
 *     while (str_next(&cursor, ",", &word)) use(word.ptr, word.len);
 */
struct span {
    const char *ptr;
    size_t len;
};
bool str_next(const char **cursor, const char *separators, struct span *word);
bool span_eq(struct span span, const char *text);
bool span_ieq(struct span span, const char *text);

/* The whole text is one decimal number within [min, max]; no sign except '-', no blanks. */
bool str_to_i64(const char *text, int64_t min, int64_t max, int64_t *out);
bool str_to_u64(const char *text, uint64_t max, uint64_t *out);

/* How many single-character edits lead from a to b; what "did you mean" sorts by. */
unsigned str_distance(const char *a, const char *b);

/* The length of the UTF-8 character at `text`, or 0: overlong forms and surrogates are none. */
size_t str_utf8_len(const char *text, size_t left);
bool str_is_utf8(const char *text);

/* Adds text so that a terminal shows it and nothing happens: control bytes become \n, \t, \x1b. */
void str_add_visible(struct str *str, const char *text, size_t len);

#endif
