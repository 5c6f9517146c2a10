/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pends.c - what is known of each waiting job and array, by id
 */
#include <stdlib.h>

#include "sched/sched_priv.h"

struct pend *pend_new(struct sched *sched, uint32_t job_id)
{
    struct pend_page *page = page_find(sched, job_id);

    if (!page) {
        page = NEW(struct pend_page);
        page->number = job_id / PENDS_PER_PAGE;
        map_put_num(&sched->pages, page->number, page);
    }
    sched->last_page = page;
    page->used++;
    return &page->pends[job_id % PENDS_PER_PAGE];
}

void pend_free(struct sched *sched, uint32_t job_id)
{
    struct pend_page *page = page_find(sched, job_id);

    page->pends[job_id % PENDS_PER_PAGE] = (struct pend){ 0 };
    if (--page->used == 0) {
        map_del_num(&sched->pages, page->number);
        if (sched->last_page == page)
            sched->last_page = NULL;
        free(page);
    }
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
    for (; *budget; budget_take(budget, 1)) {
        struct map_entry *entry =
            map_live_from(&sched->pages, sched->pages.entries + sched->reading.room_host);
        if (!entry)
            return true;
        sched->reading.room_host = (uint32_t)(entry - sched->pages.entries) + 1;
        free(entry->value);
        entry->value = NULL;
    }
    return false;
}

void pends_done(struct sched *sched)
{
    map_each (entry, &sched->pages)
        free(entry->value);
    map_done(&sched->pages);
    sched->last_page = NULL;
    map_each (entry, &sched->arrays) {
        line_done(&((struct throttle *)entry->value)->parked);
        free(entry->value);
    }
    map_done(&sched->arrays);
}
