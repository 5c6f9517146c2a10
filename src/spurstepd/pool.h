/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.h - supervisors whose step is over, ready for another one
 *
 * A fork costs little; what it makes the child copy page by page and the kernel tear down again is most
 * of what a short step costs. A supervisor of which nothing is left (step.h) therefore offers itself to
 * the zygote instead of ending, and waits for the next step.
 *
 * (1) The zygote still makes the directory of an attempt, exclusively, before anybody hears of the step:
 *     the open, locked directory travels with the request. Who dies with it unread leaves a directory
 *     without a lock, as one that dies after a fork does.
 * (2) Only the zygote ends who waits, by closing its end: nobody ends with a request on the way to it.
 * (3) The zygote keeps nothing of who works: an end is offered anew each time.
 */
#ifndef SPURSTEPD_POOL_H
#define SPURSTEPD_POOL_H

#include <sys/types.h>

#include "base/util.h"

enum {
    POOL_MAX = 64,       /* who wait; the next to offer itself is told to end */
    POOL_IDLE_MS = 5000, /* when nothing was asked for so long, all who wait are told to end */
    POOL_FDS = 2,        /* that travel with a request: its channel, its directory */
};

struct pool {
    int offers_fd; /* where the zygote hears of offers */
    int offer_fd;  /* the other end, inherited by supervisors; -1: nobody can offer itself */
    int fds[POOL_MAX];
    unsigned count;
};

void pool_open(struct pool *pool); /* when it cannot, every step has a supervisor of its own */
void pool_close(struct pool *pool);

/* offers_fd is readable. */
void pool_hear(struct pool *pool);
/* Gives the request to who offered itself last; false: nobody took it. The descriptors stay ours. */
bool pool_give(struct pool *pool, const void *bytes, size_t len, const int fds[POOL_FDS]);
void pool_end_all(struct pool *pool);

/* In a new supervisor: what is the zygote's is closed. */
void pool_leave(struct pool *pool);

/*
 * In a supervisor: closes all descriptors but 0, 1, 2 and ours, offers itself, waits. The length of the
 * request, which is at most `size`; 0: it is to end.
 */
size_t pool_wait(const struct pool *pool, void *bytes, size_t size, int fds[POOL_FDS]);

#endif
