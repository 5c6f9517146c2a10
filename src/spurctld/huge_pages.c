/* SPDX-License-Identifier: Apache-2.0 */
/*
 * huge_pages.c - workers that keep the heap in huge pages and ahead of its use (sys/heap.h)
 */
#include <stdlib.h>

#include "spurctld/serve.h"
#include "sys/clock.h"
#include "sys/heap.h"

#define FORK_WAIT_US  INT64_C(1000000) /* workers may wait behind others that hang elsewhere */
#define FORK_UNTIL_US 1500

struct heap_job {
    uv_work_t work;
    struct server *server;
    struct heap_range range; /* fill that; NULL: mend all */
};

static void run(uv_work_t *work)
{
    struct heap_job *job = work->data;

    if (job->range.from)
        heap_fill(job->range, &job->server->heap_stop);
    else
        heap_mend(&job->server->heap_yield);
}

static void ran(uv_work_t *work, int status)
{
    struct heap_job *job = work->data;

    (void)status;
    job->server->heap_jobs--;
    if (!job->range.from)
        job->server->heap_mending = false;
    free(job);
}

static void start(struct server *server, struct heap_range range)
{
    struct heap_job *job = NEW(struct heap_job);

    job->server = server;
    job->range = range;
    job->work.data = job;
    server->heap_jobs++;
    uv_queue_work(server->uv, &job->work, run, ran);
}

/* Here, on this thread: what is read at a start is in huge pages before anybody waits for an answer. */
void server_huge_pages_grown(void *ctx)
{
    struct heap_range range;

    (void)ctx;
    if (heap_ahead(&range))
        heap_fill(range, NULL);
}

void server_huge_pages_ready(struct server *server)
{
    server_huge_pages_grown(server);
    if (!heap_mend(NULL))
        server_huge_pages_mend(server);
}

void server_huge_pages_turn(struct server *server)
{
    struct heap_range range;

    if (!server->heap_stop && heap_ahead(&range))
        start(server, range);
}

void server_huge_pages_mend(struct server *server)
{
    if (server->heap_stop || server->heap_mending)
        return;
    server->heap_mending = true;
    server->heap_yield = false;
    start(server, (struct heap_range){ 0 });
}

bool server_may_fork(struct server *server)
{
    int64_t now = clock_mono_us();
    bool busy = rpc_loop_busy_us(server->rpc_loop) > FORK_UNTIL_US;

    __atomic_store_n(&server->heap_yield, true, __ATOMIC_RELAXED);
    if (!server->fork_asked_us)
        server->fork_asked_us = now;
    if ((server->heap_jobs || busy) && now - server->fork_asked_us < FORK_WAIT_US) {
        if (!server->heap_jobs)
            wake_send(&server->wake); /* there is a next turn */
        return false;
    }
    server->fork_asked_us = 0;
    return true;
}

void server_huge_pages_end(struct server *server)
{
    __atomic_store_n(&server->heap_yield, true, __ATOMIC_RELAXED);
    __atomic_store_n(&server->heap_stop, true, __ATOMIC_RELAXED);
}
