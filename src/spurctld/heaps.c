/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heaps.c - workers that keep the heap in huge pages and ahead of its use (sys/heap.h)
 */
#include <stdlib.h>

#include "spurctld/serve.h"
#include "sys/heap.h"

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
        heap_mend(&job->server->heap_stop);
}

static void ran(uv_work_t *work, int status)
{
    struct heap_job *job = work->data;

    (void)status;
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
    uv_queue_work(server->uv, &job->work, run, ran);
}

void server_heap_turn(struct server *server)
{
    struct heap_range range;

    if (!server->heap_stop && heap_ahead(&range))
        start(server, range);
}

void server_heap_mend(struct server *server)
{
    if (server->heap_stop || server->heap_mending)
        return;
    server->heap_mending = true;
    start(server, (struct heap_range){ 0 });
}

void server_heap_end(struct server *server)
{
    __atomic_store_n(&server->heap_stop, true, __ATOMIC_RELAXED);
}
