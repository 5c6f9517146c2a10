/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pending.c - what is known of each waiting job and array, by id
 */
#include <stdlib.h>
#include <string.h>

#include "sched/queue/queue.h"

static struct pending_page **page_slot(struct pending_index *index, size_t page)
{
    if (index->count == 0)
        index->first = page;
    size_t more = page < index->first ? index->first - page : 0;
    size_t want = more ? index->count + more : page - index->first + 1;
    if (want > index->cap) {
        index->cap = MAX(want, index->cap * 2);
        index->pages = mem_resize(index->pages, index->cap * sizeof(*index->pages));
    }
    if (more) { /* a job that was put back is older than all others */
        memmove(index->pages + more, index->pages, index->count * sizeof(*index->pages));
        memset(index->pages, 0, more * sizeof(*index->pages));
        index->first = page;
        index->count = want;
    }
    for (; index->count < want; index->count++)
        index->pages[index->count] = NULL;
    return &index->pages[page - index->first];
}

struct pending *pending_new(struct sched *sched, uint32_t job_id)
{
    struct pending_page **page = page_slot(&sched->queue->pendings, job_id / PENDING_PER_PAGE);
    uint32_t at = job_id % PENDING_PER_PAGE;

    if (!*page)
        *page = NEW(struct pending_page);
    (*page)->used++;
    (*page)->there[at / 64] |= UINT64_C(1) << (at % 64);
    return &(*page)->pendings[at];
}

/* Old ids go first: the places of their pages are given up once there are many. */
static void pages_forget(struct pending_index *index)
{
    enum { MANY = 64 };
    size_t gone = 0;

    while (gone < index->count && !index->pages[gone])
        gone++;
    if (gone < index->count && (gone < MANY || gone < index->count / 2))
        return;
    index->first += gone;
    index->count -= gone;
    memmove(index->pages, index->pages + gone, index->count * sizeof(*index->pages));
}

void pending_free(struct sched *sched, uint32_t job_id)
{
    struct pending_page *page = page_find(sched, job_id);
    uint32_t at = job_id % PENDING_PER_PAGE;

    page->pendings[at] = (struct pending){ 0 };
    page->there[at / 64] &= ~(UINT64_C(1) << (at % 64));
    if (--page->used > 0)
        return;
    sched->queue->pendings.pages[job_id / PENDING_PER_PAGE - sched->queue->pendings.first] = NULL;
    free(page);
    pages_forget(&sched->queue->pendings);
}

void pending_prefetch(const struct sched *sched, uint32_t job_id)
{
    const struct pending_page *page = page_find(sched, job_id);

    if (page)
        __builtin_prefetch(&page->pendings[job_id % PENDING_PER_PAGE]);
    state_fetch_job(sched->state, job_id);
}

void pending_prefetch_list(const struct sched *sched, uint32_t job_id, unsigned time)
{
    const struct pending *pending = pending_find(sched, job_id);

    if (pending)
        job_list_prefetch(&class_of(sched, pending)->queue, time);
}

/* ---- arrays that run only so many tasks at once ---- */

struct throttle *throttle_of(struct sched *sched, uint32_t array_id)
{
    struct throttle *throttle = map_get_num(&sched->queue->arrays, array_id);

    if (!throttle) {
        throttle = NEW(struct throttle);
        map_put_num(&sched->queue->arrays, array_id, throttle);
    }
    return throttle;
}

void throttle_tidy(struct sched *sched, uint32_t array_id)
{
    struct throttle *throttle = map_get_num(&sched->queue->arrays, array_id);

    if (throttle && !throttle->planned && !throttle->parked.count) {
        map_del_num(&sched->queue->arrays, array_id);
        job_list_done(&throttle->parked);
        free(throttle);
    }
}

void throttle_plan(struct sched *sched, uint32_t array_id, int by)
{
    throttle_of(sched, array_id)->planned += (uint32_t)by;
    throttle_tidy(sched, array_id);
}

uint32_t array_left(const struct sched *sched, const struct array *array)
{
    const struct throttle *throttle = map_get_num(&sched->queue->arrays, array->id);
    uint32_t room = array_room(array), planned = throttle ? throttle->planned : 0;

    return room > planned ? room - planned : 0;
}

bool pendings_done_some(struct sched *sched, unsigned *budget)
{
    struct pending_index *index = &sched->queue->pendings;

    for (; index->count && *budget; budget_take(budget, 1))
        free(index->pages[--index->count]);
    for (; !index->count && *budget; budget_take(budget, 1)) {
        struct map_entry *first = sched->queue->positions.entries;
        struct map_entry *entry =
            first ? map_live_from(&sched->queue->positions, first + sched->rebuild.room_host)
                  : NULL;
        if (!entry)
            return true;
        sched->rebuild.room_host = (uint32_t)(entry - first) + 1;
        free(entry->value);
        entry->value = NULL;
    }
    return false;
}

void pendings_done(struct sched *sched)
{
    for (size_t i = 0; i < sched->queue->pendings.count; i++)
        free(sched->queue->pendings.pages[i]);
    free(sched->queue->pendings.pages);
    sched->queue->pendings = (struct pending_index){ 0 };
    map_each (entry, &sched->queue->arrays) {
        job_list_done(&((struct throttle *)entry->value)->parked);
        free(entry->value);
    }
    map_done(&sched->queue->arrays);
    positions_done(sched);
}

const struct job *het_first(const struct sched *sched, const struct job *job)
{
    const struct job *first =
        job->more && job->more->het_count ? state_job(sched->state, job->more->het_job_id) : NULL;

    return first ? first : job;
}

uint32_t het_count(const struct job *job)
{
    return job->more && job->more->het_count ? job->more->het_count : 1;
}
