/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pends.c - what is known of each waiting job and array, by id
 */
#include <stdlib.h>
#include <string.h>

#include "sched/sched_priv.h"

static struct pend_page **page_slot(struct pend_index *index, size_t page)
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

struct pend *pend_new(struct sched *sched, uint32_t job_id)
{
    struct pend_page **page = page_slot(&sched->pends, job_id / PENDS_PER_PAGE);
    uint32_t at = job_id % PENDS_PER_PAGE;

    if (!*page)
        *page = NEW(struct pend_page);
    (*page)->used++;
    (*page)->there[at / 64] |= UINT64_C(1) << (at % 64);
    return &(*page)->pends[at];
}

/* Old ids go first: the places of their pages are given up once there are many. */
static void pages_forget(struct pend_index *index)
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

void pend_free(struct sched *sched, uint32_t job_id)
{
    struct pend_page *page = page_find(sched, job_id);
    uint32_t at = job_id % PENDS_PER_PAGE;

    page->pends[at] = (struct pend){ 0 };
    page->there[at / 64] &= ~(UINT64_C(1) << (at % 64));
    if (--page->used > 0)
        return;
    sched->pends.pages[job_id / PENDS_PER_PAGE - sched->pends.first] = NULL;
    free(page);
    pages_forget(&sched->pends);
}

void pend_fetch(const struct sched *sched, uint32_t job_id)
{
    const struct pend_page *page = page_find(sched, job_id);

    if (page)
        __builtin_prefetch(&page->pends[job_id % PENDS_PER_PAGE]);
    state_fetch_job(sched->state, job_id);
}

void pend_fetch_line(const struct sched *sched, uint32_t job_id, unsigned time)
{
    const struct pend *pend = pend_find(sched, job_id);

    if (pend)
        line_fetch(&class_of(sched, pend)->queue, time);
}

/* ---- arrays that run only so many tasks at once ---- */

struct throttle *throttle_of(struct sched *sched, uint32_t array_id)
{
    struct throttle *throttle = map_get_num(&sched->arrays, array_id);

    if (!throttle) {
        throttle = NEW(struct throttle);
        map_put_num(&sched->arrays, array_id, throttle);
    }
    return throttle;
}

void throttle_tidy(struct sched *sched, uint32_t array_id)
{
    struct throttle *throttle = map_get_num(&sched->arrays, array_id);

    if (throttle && !throttle->planned && !throttle->parked.count) {
        map_del_num(&sched->arrays, array_id);
        line_done(&throttle->parked);
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
    const struct throttle *throttle = map_get_num(&sched->arrays, array->id);
    uint32_t room = array_room(array), planned = throttle ? throttle->planned : 0;

    return room > planned ? room - planned : 0;
}

bool pends_done_some(struct sched *sched, unsigned *budget)
{
    struct pend_index *index = &sched->pends;

    for (; index->count && *budget; budget_take(budget, 1))
        free(index->pages[--index->count]);
    for (; !index->count && *budget; budget_take(budget, 1)) {
        struct map_entry *first = sched->echoes.entries;
        struct map_entry *entry =
            first ? map_live_from(&sched->echoes, first + sched->reading.room_host) : NULL;
        if (!entry)
            return true;
        sched->reading.room_host = (uint32_t)(entry - first) + 1;
        free(entry->value);
        entry->value = NULL;
    }
    return false;
}

void pends_done(struct sched *sched)
{
    for (size_t i = 0; i < sched->pends.count; i++)
        free(sched->pends.pages[i]);
    free(sched->pends.pages);
    sched->pends = (struct pend_index){ 0 };
    map_each (entry, &sched->arrays) {
        line_done(&((struct throttle *)entry->value)->parked);
        free(entry->value);
    }
    map_done(&sched->arrays);
    echoes_done(sched);
}
