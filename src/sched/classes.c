/* SPDX-License-Identifier: Apache-2.0 */
/*
 * classes.c - pending jobs by class and family
 *
 * (1) A job that is eligible has a class. It is in the class's queue unless all of it is planned
 *     already, or its array runs as many tasks as it may (throttle).
 * (2) A family lives as long as it has a class, a class as long as it has a member.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "sched/sched_priv.h"
#include "schema/reasons.h"

enum { EXACT_LIMITS = 2048 };

/* A family with very many different limits gets coarser classes: rounded up by less than 1 %. */
static int64_t class_limit(const struct family *family, int64_t limit_us)
{
    if (limit_us == INT64_MAX || family->class_count < EXACT_LIMITS || limit_us < 128)
        return limit_us;
    int shift = 63 - __builtin_clzll((uint64_t)limit_us) - 7;
    int64_t unit = INT64_C(1) << shift;
    return (limit_us + unit - 1) / unit * unit;
}

static uint64_t class_key(const struct family *family, int64_t limit_us)
{
    return hash_mix((uint64_t)limit_us) ^ family->key;
}

static struct class *class_find(const struct sched *sched, const struct family *family,
                                int64_t limit_us)
{
    struct class *class = map_get_num(&sched->class_keys, class_key(family, limit_us));

    while (class && (class->family != family || class->limit_us != limit_us))
        class = class->same;
    return class;
}

/* The memory that goes with a number, whether a class is there or not. */
static struct class *class_memory(const struct sched *sched, uint32_t number)
{
    uintptr_t slab = (uintptr_t)sched->class_slabs.items[number / CLASSES_PER_SLAB];
    uintptr_t first = (slab + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;

    return (struct class *)first + number % CLASSES_PER_SLAB;
}

/* They lie close together: all of them are looked at again and again. */
static struct class *class_new(struct sched *sched)
{
    uint32_t number = (uint32_t)sched->classes.len;

    if (sched->free_classes.len) {
        number = sched->free_classes.items[--sched->free_classes.len];
    } else {
        if (number % CLASSES_PER_SLAB == 0)
            vec_push(&sched->class_slabs,
                     mem_new(sizeof(struct class) * CLASSES_PER_SLAB + CACHE_LINE));
        vec_push(&sched->classes, NULL);
    }
    struct class *class = class_memory(sched, number);
    *class = (struct class){ .number = number };
    sched->classes.items[number] = class;
    return class;
}

static struct class *class_get(struct sched *sched, const struct job *job, const struct mask *mask)
{
    struct family *family = family_get(sched, job, mask);
    int64_t limit = class_limit(family, job_length_us(job));
    struct class *class = class_find(sched, family, limit);

    if (class)
        return class;
    class = class_new(sched);
    class->family = family;
    class->limit_us = limit;
    class->best = class->head = ORDER_LAST;
    class->key = class_key(family, limit);
    class->luck = (uint32_t) class->key;
    class->same = map_put_num(&sched->class_keys, class->key, class);
    class_link(family, class);
    family->class_count++;
    return class;
}

static void class_drop(struct sched *sched, struct class *class)
{
    struct family *family = class->family;
    struct class *chain = map_get_num(&sched->class_keys, class->key);

    if (chain == class && class->same) {
        map_put_num(&sched->class_keys, class->key, class->same);
    } else if (chain == class) {
        map_del_num(&sched->class_keys, class->key);
    } else {
        while (chain->same != class)
            chain = chain->same;
        chain->same = class->same;
    }
    class_unlink(family, class);
    sched->classes.items[class->number] = NULL;
    vec_push(&sched->free_classes, class->number);
    line_done(&class->queue);
    if (--family->class_count == 0) /* (2) */
        family_drop(sched, family);
}

/* Is it in the line of its owner? */
static bool is_in_line(const struct pend *pend)
{
    return pend->place == PEND_LIMITED && pend->line;
}

/* Its place in the queue, or in the line of its owner: waits.c (1). */
static bool job_rank(const struct sched *sched, const struct job *job, bool own, uint64_t *rank)
{
    struct place_in_line places[PLACES_MOST];
    bool any = echo_places(sched, job, own, places) > 0;

    if (any)
        *rank = places[0].rank;
    return any;
}

/* Components of a heterogeneous job behind the first are placed with it. */
static bool follows_another(const struct job *job)
{
    return job->more && job->more->het_job_id && job->more->het_offset > 0;
}

enum pend_place class_place(const struct sched *sched, const struct job *job)
{
    const struct flights *flights = flights_of(sched, job->id);
    uint32_t planned = flights ? flights->count : 0;

    if (planned >= (job_is_meta(job) ? job->array->waiting : 1))
        return PEND_IDLE;
    return job->array && !array_left(sched, job->array) ? PEND_PARKED : PEND_QUEUED;
}

/* Into the queue of the class, or out of it. */
static void queue_move(struct sched *sched, struct class *class, struct order order, bool in)
{
    struct order was = class->head;

    if (in) {
        line_put(&class->queue, order);
        class->head = order_before(order, was) ? order : was;
    } else {
        line_del(&class->queue, order);
        class->head = line_head(&class->queue);
    }
    if (class->head.id != was.id || class->head.rank != was.rank) {
        if (class->family->het && in)
            family_heat(sched, class->family, INT64_MAX);
        class_pull_up(class, was);
        family_rekey(sched, class->family, order);
        /* Freed hosts that are being offered may have passed it already. */
        if (in && wants_may_offer(sched, class->family))
            family_heat(sched, class->family, INT64_MAX);
    }
    if (in)
        family_joined(sched, class->family, order);
}

static void set_place(struct sched *sched, struct pend *pend, uint32_t job_id,
                      enum pend_place place)
{
    struct class *class = class_of(sched, pend);
    struct order order = { pend->rank, job_id };
    enum pend_place from = pend->place;

    if (from == place)
        return;
    pend->place = (uint8_t)place;
    if (from == PEND_PARKED) {
        line_del(&throttle_of(sched, pend->array_id)->parked, order);
        throttle_tidy(sched, pend->array_id);
    } else if (place == PEND_PARKED) {
        line_put(&throttle_of(sched, pend->array_id)->parked, order);
    }
    if (from == PEND_QUEUED && pend->out) {
        bool tried = pend->out == OUT_TO_BE_TRIED;
        pend->out = OUT_NOT;
        if (tried)
            waits_out(sched, pend->line, -1);
        else
            waits_review(sched, pend->line, false);
    }
    sched->stop_news = sched->stop_news || from == PEND_LIMITED;
    if (from == PEND_LIMITED)
        waits_del(sched, pend->line, class, order);
    if (place == PEND_LIMITED)
        waits_put(sched, pend->line, class, order);
    if (from != PEND_QUEUED && place != PEND_QUEUED)
        return;
    const struct echo *echo;
    queue_move(sched, class, order, place == PEND_QUEUED);
    for (unsigned i = 0; (echo = echo_at(sched, pend, job_id, i)); i++)
        queue_move(sched, sched->classes.items[echo->class - 1],
                   (struct order){ echo->rank, job_id }, place == PEND_QUEUED);
    if (place != PEND_QUEUED && pend->booked)
        book_drop(sched, job_id);
    else if (place != PEND_QUEUED)
        search_forget(sched, job_id);
}

/* To where it belongs; out of the line of a holder it has another rank. */
static void settle(struct sched *sched, struct pend *pend, const struct job *job)
{
    if (pend->place == PEND_LIMITED) {
        set_place(sched, pend, job->id, PEND_IDLE);
        pend->over = false;
        job_rank(sched, job, false, &pend->rank);
        echoes_rank(sched, pend, job);
    }
    set_place(sched, pend, job->id, class_place(sched, job));
}

void class_limit_job(struct sched *sched, const struct job *job, const struct limit_hit *hit,
                     bool over)
{
    struct pend *pend = pend_find(sched, job->id);

    if (!pend)
        return;
    if (pend->booked)
        book_drop(sched, job->id);
    set_place(sched, pend, job->id, PEND_IDLE);
    pend->over = over;
    pend->line = hit->holder ? waits_line(sched, job) : 0;
    job_rank(sched, job, pend->line != 0, &pend->rank);
    set_place(sched, pend, job->id, PEND_LIMITED);
    if (pend->line)
        waits_hit(sched, pend->line, class_of(sched, pend), hit, over);
}

bool class_let_out(struct sched *sched, const struct job *job, bool out)
{
    struct pend *pend = pend_find(sched, job->id);

    settle(sched, pend, job);
    const struct class *class = class_of(sched, pend);
    if (pend->place != PEND_QUEUED)
        return false;
    if (!out || !family_will_try(sched, class->family, class->limit_us)) {
        pend->out = OUT_SHOWN;
        return false;
    }
    pend->out = OUT_TO_BE_TRIED;
    waits_out(sched, pend->line, 1);
    vec_push(&class->family->outs, job->id);
    return true;
}

bool class_would_try(struct sched *sched, const struct pend *pend, uint32_t job_id)
{
    const struct class *class = class_of(sched, pend);

    const struct family *family = class->family;
    if (pend->echoes || family_is_hot(sched, family, class->limit_us))
        return true; /* one of its other places may be tried */
    /* A freed host goes to the first job of the family. */
    return family_would_try(sched, class->family, class->limit_us) &&
           order_before(class_order(sched, state_job(sched->state, job_id)), family->root->best);
}

/* Where it is now, or would be if no limit were in its way. */
struct order class_order(const struct sched *sched, const struct job *job)
{
    const struct pend *pend = pend_find(sched, job->id);
    uint64_t rank = pend ? pend->rank : 0;

    if (pend && pend->place == PEND_LIMITED)
        job_rank(sched, job, false, &rank);
    return (struct order){ rank, job->id };
}

static bool echoes_are_right(const struct sched *sched, const struct pend *pend,
                             const struct job *job, const struct place_in_line *places,
                             unsigned count)
{
    const struct echo *echo;

    if (count != pend->echoes + 1U)
        return false;
    for (unsigned i = 0; (echo = echo_at(sched, pend, job->id, i)); i++) {
        const struct family *family = sched->classes.items[echo->class - 1]->family;
        if (echo->rank != places[i + 1].rank ||
            memcmp(&family->mask, &places[i + 1].mask, sizeof(struct mask)) != 0)
            return false;
    }
    return true;
}

bool class_rank_is_old(struct sched *sched, const struct job *job)
{
    const struct pend *pend = pend_find(sched, job->id);
    struct place_in_line places[PLACES_MOST];
    unsigned count = pend ? echo_places(sched, job, is_in_line(pend), places) : 0;

    return count && (places[0].rank != pend->rank ||
                     (!is_in_line(pend) && !echoes_are_right(sched, pend, job, places, count)));
}

void throttle_release(struct sched *sched, uint32_t array_id)
{
    struct throttle *throttle = map_get_num(&sched->arrays, array_id);
    const struct job *first = state_job(sched->state, array_id);

    if (!throttle || !first || !first->array)
        return;
    for (uint32_t room = array_left(sched, first->array); room && throttle; room--) {
        uint32_t id = line_head(&throttle->parked).id;
        const struct job *job = state_job(sched->state, id);
        if (!job)
            break;
        class_settle(sched, job);
        throttle = map_get_num(&sched->arrays, array_id);
    }
}

static void leave(struct sched *sched, struct class *class)
{
    if (--class->members == 0)
        class_drop(sched, class);
}

void class_remove(struct sched *sched, uint32_t job_id)
{
    struct pend *pend = pend_find(sched, job_id);

    if (!pend)
        return;
    if (pend->booked)
        book_drop(sched, job_id);
    set_place(sched, pend, job_id, PEND_IDLE);
    struct class *class = class_of(sched, pend);
    const struct echo *echo;
    for (unsigned i = 0; (echo = echo_at(sched, pend, job_id, i)); i++)
        leave(sched, sched->classes.items[echo->class - 1]);
    echoes_del(sched, pend, job_id);
    pend_free(sched, job_id);
    leave(sched, class);
}

void class_settle(struct sched *sched, const struct job *job)
{
    struct pend *pend = pend_find(sched, job->id);

    if (pend)
        settle(sched, pend, job);
}

/* One of its other components is not what it was. */
static void refresh_first(struct sched *sched, const struct job *job)
{
    const struct job *first = het_first(sched, job);

    if (first == job || !pend_find(sched, first->id))
        return;
    book_drop(sched, first->id);
    class_refresh(sched, first);
}

bool class_is_right(struct sched *sched, const struct job *job)
{
    const struct pend *pend = pend_find(sched, job->id);
    struct place_in_line places[PLACES_MOST];

    bool goes = job_is_eligible(job) && !follows_another(job);
    unsigned count = goes ? echo_places(sched, job, false, places) : 0;
    if (!pend || !count)
        return !pend && !count;
    return class_get(sched, job, &places[0].mask) == class_of(sched, pend) &&
           echoes_are_right(sched, pend, job, places, count) &&
           (pend->place != PEND_LIMITED || (pend->line && waits_is_of(sched, pend->line, job)));
}

/* In the classes of its other places too. */
static void add_echoes(struct sched *sched, struct pend *pend, const struct job *job,
                       const struct place_in_line *places, unsigned count)
{
    struct echo list[PLACES_MOST];

    for (unsigned i = 1; i < count; i++) {
        struct class *class = class_get(sched, job, &places[i].mask);
        class->members++;
        list[i - 1] = (struct echo){ .rank = places[i].rank, .class = class->number + 1 };
    }
    if (count > 1)
        echoes_put(sched, pend, job->id, list, count - 1);
}

void class_refresh(struct sched *sched, const struct job *job)
{
    struct pend *pend = pend_find(sched, job->id);
    struct place_in_line places[PLACES_MOST];
    unsigned count;

    if (follows_another(job))
        refresh_first(sched, job);
    if (!job_is_eligible(job) || follows_another(job) ||
        !(count = echo_places(sched, job, false, places))) {
        class_remove(sched, job->id);
        return;
    }
    uint64_t rank = places[0].rank;
    if (pend && is_in_line(pend))
        job_rank(sched, job, true, &rank);
    struct class *class = class_get(sched, job, &places[0].mask);
    if (pend && (class_of(sched, pend) != class || pend->rank != rank ||
                 (!is_in_line(pend) && !echoes_are_right(sched, pend, job, places, count)))) {
        class->members++; /* it may be its last one */
        class_remove(sched, job->id);
        class->members--;
        pend = NULL;
    }
    if (!pend) {
        pend = pend_new(sched, job->id);
        pend->rank = places[0].rank;
        pend->class = class->number + 1;
        pend->array_id = job->array ? job->array->id : 0;
        class->members++;
        add_echoes(sched, pend, job, places, count);
    }
    if (class_place(sched, job) != PEND_QUEUED || !limits_in_way(sched, job))
        settle(sched, pend, job);
}

static void class_free(struct class *class)
{
    if (class)
        line_done(&class->queue);
}

static void slabs_done(struct sched *sched)
{
    vec_each (void *, slab, &sched->class_slabs)
        free(*slab);
    vec_done(&sched->class_slabs);
}

bool classes_done_some(struct sched *sched, unsigned *budget)
{
    for (; sched->classes.len && *budget; budget_take(budget, 1))
        class_free(sched->classes.items[--sched->classes.len]);
    for (; sched->classes.len == 0 && sched->families.entries && *budget; budget_take(budget, 1)) {
        struct map_entry *entry =
            map_live_from(&sched->families, sched->families.entries + sched->reading.host);
        if (!entry)
            break;
        sched->reading.host = (uint32_t)(entry - sched->families.entries) + 1;
        for (struct family *family = entry->value, *next; family; family = next) {
            next = family->same;
            family_free(family);
        }
        entry->value = NULL;
    }
    return *budget > 0;
}

void classes_done(struct sched *sched)
{
    vec_each (struct class *, at, &sched->classes)
        class_free(*at);
    map_each (entry, &sched->families) {
        for (struct family *family = entry->value, *next; family; family = next) {
            next = family->same;
            family_free(family);
        }
    }
    pends_done(sched);
    vec_done(&sched->classes);
    slabs_done(sched);
    map_done(&sched->class_keys);
    vec_done(&sched->free_classes);
    map_done(&sched->families);
    vec_done(&sched->hot.items);
    vec_done(&sched->offers.items);
    for (size_t i = 0; i < sched->lanes.len; i++)
        vec_done(&sched->lanes.items[i].heap.items);
    vec_done(&sched->lanes);
    vec_done(&sched->unsure);
    vec_done(&sched->hets);
    sched->family_count = 0;
}
