/* SPDX-License-Identifier: Apache-2.0 */
/*
 * paged.h - a growing array of any type that never moves what is in it
 *
 *     PAGED(int) numbers = { 0 };
 *     paged_push(&numbers, 7);
 *     total += *paged_at(&numbers, 0);
 *     paged_pop(&numbers);
 *     paged_done(&numbers);
 *
 * As vec.h, for what may be millions: a push takes a page of memory at most and copies nothing. Pages
 * that are not needed any more are given back, all but one.
 */
#ifndef BASE_PAGED_H
#define BASE_PAGED_H

#include "base/vec.h"

enum { PAGED_ITEMS = 1024 };

#define PAGED(type)        \
    struct {               \
        VEC(type *) pages; \
        size_t len;        \
    }

#define paged_at(paged, i) (&(paged)->pages.items[(i) / PAGED_ITEMS][(i) % PAGED_ITEMS])

#define paged_push(paged, ...)                                                        \
    do {                                                                              \
        if ((paged)->len == (paged)->pages.len * PAGED_ITEMS)                         \
            vec_push(&(paged)->pages,                                                 \
                     mem_resize(NULL, PAGED_ITEMS * sizeof(**(paged)->pages.items))); \
        (paged)->len++;                                                               \
        *paged_at(paged, (paged)->len - 1) = (__VA_ARGS__);                           \
    } while (0)

/* There must be one. */
#define paged_pop(paged)                                                        \
    do {                                                                        \
        (paged)->len--;                                                         \
        if ((paged)->len + 2 * PAGED_ITEMS == (paged)->pages.len * PAGED_ITEMS) \
            free((paged)->pages.items[--(paged)->pages.len]);                   \
    } while (0)

#define paged_done(paged)                                     \
    do {                                                      \
        while ((paged)->pages.len)                            \
            free((paged)->pages.items[--(paged)->pages.len]); \
        vec_done(&(paged)->pages);                            \
        (paged)->len = 0;                                     \
    } while (0)

#endif
