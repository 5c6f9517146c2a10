/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vec.h - a growing array of any type
 *
 *     VEC(int) numbers = { 0 };
 *     vec_push(&numbers, 7);
 *     vec_each(int, n, &numbers) total += *n;
 *     vec_done(&numbers);
 *
 * Zero-initialised is empty and valid. Pointers into items are valid until the next push.
 */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define VEC(type)        \
    struct {             \
        type *items;     \
        size_t len, cap; \
    }

#define vec_reserve(vec, want)                                                     \
    do {                                                                           \
        size_t want_ = (want);                                                     \
        if (want_ > (vec)->cap) {                                                  \
            size_t cap_ = (vec)->cap ? (vec)->cap * 2 : 8;                         \
            if (cap_ < want_)                                                      \
                cap_ = want_;                                                      \
            (vec)->items = mem_resize((vec)->items, cap_ * sizeof(*(vec)->items)); \
            (vec)->cap = cap_;                                                     \
        }                                                                          \
    } while (0)

#define vec_push(vec, ...)                          \
    do {                                            \
        vec_reserve((vec), (vec)->len + 1);         \
        (vec)->items[(vec)->len++] = (__VA_ARGS__); \
    } while (0)

/* Removes item i and keeps the order of the others. */
#define vec_remove(vec, i)                                       \
    do {                                                         \
        size_t at_ = (i);                                        \
        memmove(&(vec)->items[at_], &(vec)->items[at_ + 1],      \
                ((vec)->len - at_ - 1) * sizeof(*(vec)->items)); \
        (vec)->len--;                                            \
    } while (0)

#define vec_each(type, item, vec) \
    for (type *item = (vec)->items; item && item < (vec)->items + (vec)->len; item++)

#define vec_clear(vec) ((void)((vec)->len = 0))

#define vec_done(vec)                \
    do {                             \
        free((vec)->items);          \
        (vec)->items = NULL;         \
        (vec)->len = (vec)->cap = 0; \
    } while (0)

#endif
