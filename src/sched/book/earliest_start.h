/* SPDX-License-Identifier: Apache-2.0 */
/*
 * earliest_start.h - what earliest_start.c and host_earliest.c share
 */
#ifndef SCHED_BOOK_EARLIEST_START_H
#define SCHED_BOOK_EARLIEST_START_H

#include "sched/book/book.h"

struct question {
    int64_t from_us; /* not before this: its reservation begins then */
    struct sched *sched;
    struct family *family;
    const struct job *job;
    struct view view;
    size_t partition;
    int64_t length_us;
    struct earliest_start_at *at;
};

/* Gathers the hosts that have room for that many tasks, each with its first moment. `few`: only as many as are
 * needed. */
void host_earliest_gather(const struct question *q, uint32_t tasks, bool few);
int host_earliest_by_time(const void *a, const void *b);
/* Puts the nth smallest time in its place, with all earlier ones before it. */
void host_earliest_select_nth(struct host_earliest *list, size_t len, size_t nth);
/* Puts the hosts that have room by then to the front, in order. */
void host_earliest_sort_by(struct host_earliest *list, size_t len, int64_t start_us);

#endif
