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

enum { PENDS_PER_PAGE = 1024, EXACT_LIMITS = 2048 };

/* ---- what is known of a job, by id ---- */

struct pend_page {
    uint64_t number;
    uint32_t used; /* of pends that have a class */
    struct pend pends[PENDS_PER_PAGE];
};

static struct pend_page *page_find(const struct sched *sched, uint32_t job_id)
{
    uint64_t number = job_id / PENDS_PER_PAGE;

    if (sched->last_page && sched->last_page->number == number)
        return sched->last_page;
    return map_get_num(&sched->pages, number);
}

struct pend *pend_find(const struct sched *sched, uint32_t job_id)
{
    struct pend_page *page = page_find(sched, job_id);

    return page && page->pends[job_id % PENDS_PER_PAGE].class ? &page->pends[job_id %
                                                                             PENDS_PER_PAGE]
                                                              : NULL;
}

static struct pend *pend_new(struct sched *sched, uint32_t job_id)
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

static void pend_free(struct sched *sched, uint32_t job_id)
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

/* ---- classes of a family: a treap by limit, with the first job of each subtree ---- */

static void pull(struct class *class)
{
    class->best = class->head;
    if (class->left && order_before(class->left->best, class->best))
        class->best = class->left->best;
    if (class->right && order_before(class->right->best, class->best))
        class->best = class->right->best;
}

static void pull_up(struct class *class)
{
    for (; class; class = class->parent) {
        struct order was = class->best;
        pull(class);
        if (was.id == class->best.id && was.rank == class->best.rank)
            return;
    }
}

static void replace(struct family *family, struct class *parent, struct class *old,
                    struct class *with)
{
    if (!parent)
        family->root = with;
    else if (parent->left == old)
        parent->left = with;
    else
        parent->right = with;
    if (with)
        with->parent = parent;
}

/* Lifts a class above its parent. */
static void rotate(struct family *family, struct class *class)
{
    struct class *parent = class->parent, *moved;

    replace(family, parent->parent, parent, class);
    if (parent->left == class) {
        moved = parent->left = class->right;
        class->right = parent;
    } else {
        moved = parent->right = class->left;
        class->left = parent;
    }
    if (moved)
        moved->parent = parent;
    parent->parent = class;
    pull(parent);
    pull(class);
}

static void class_link(struct family *family, struct class *class)
{
    struct class **at = &family->root;

    while (*at) {
        class->parent = *at;
        at = class->limit_us < (*at)->limit_us ? &(*at)->left : &(*at)->right;
    }
    *at = class;
    while (class->parent && class->luck > class->parent->luck)
        rotate(family, class);
}

static void class_unlink(struct family *family, struct class *class)
{
    while (class->left || class->right) {
        bool left = !class->right || (class->left && class->left->luck > class->right->luck);
        rotate(family, left ? class->left : class->right);
    }
    replace(family, class->parent, class, NULL);
    pull_up(class->parent);
}

struct order family_first(const struct family *family, int64_t limit_us, struct class **out)
{
    struct order best = ORDER_LAST;
    struct class *from = NULL, *class = family->root;
    bool subtree = false;

    /* Of each class on the way that is short enough, all that are shorter count too. */
    while (class) {
        if (class->limit_us > limit_us) {
            class = class->left;
            continue;
        }
        if (order_before(class->head, best)) {
            best = class->head;
            from = class;
            subtree = false;
        }
        if (class->left && order_before(class->left->best, best)) {
            best = class->left->best;
            from = class->left;
            subtree = true;
        }
        class = class->right;
    }
    while (subtree && from) {
        if (from->head.id == best.id && from->head.rank == best.rank)
            break;
        from = from->left && from->left->best.id == best.id && from->left->best.rank == best.rank
                   ? from->left
                   : from->right;
    }
    if (out)
        *out = from;
    return best;
}

struct class *class_of(const struct sched *sched, const struct pend *pend)
{
    return sched->classes.items[pend->class - 1];
}

/* ---- families ---- */

int64_t job_length_us(const struct job *job)
{
    return job_end_by(job, 0);
}

uint64_t resv_hash(const char *name)
{
    return name ? hash_bytes(name, strlen(name), 1) | 1 : 0;
}

/* False when there is none. */
static bool job_mask(const struct sched *sched, const struct job *job, struct mask *mask)
{
    const struct need *needs = shape_needs(sched->state, job->shape);
    bool any = false;

    *mask = (struct mask){ 0 };
    for (size_t i = 0; i < job->shape->partition_count; i++) {
        unsigned reason = core_partition_reason(job, &needs[i]);
        /* Whether its nodes suffice may change with the nodes: it is looked at when placing. */
        if (needs[i].partition && (reason == REASON_NONE || reason == REASON_PART_CONFIG)) {
            mask->bits[i / 64] |= UINT64_C(1) << (i % 64);
            any = true;
        }
    }
    return any;
}

static uint8_t minds_of(const struct sched *sched, const struct job *job, const struct mask *mask)
{
    const struct need *needs = shape_needs(sched->state, job->shape);
    bool user = job->shape->exclusive_user;

    for (size_t i = 0; i < job->shape->partition_count; i++)
        user = user || (mask_has(mask, i) && needs[i].partition->spec->exclusive_user);
    return (uint8_t)((user ? MINDS_USER : 0) | (job->shape->exclusive_mcs ? MINDS_MCS : 0));
}

/* What the grid knows nothing of. */
static bool is_particular(const struct sched *sched, const struct shape *shape)
{
    return shape->oversubscribe || shape->nodelist || shape->contiguous || shape->reservation ||
           shape->prefer.plain || shape->prefer.group_count || shape->features.group_count ||
           (sched->topo.leaves && (shape->min_nodes > 1 || shape->wish_nodes > 1 ||
                                   (shape->max_nodes > 1 && shape->tasks > 1)));
}

static struct family *family_new(struct sched *sched, const struct job *job,
                                 const struct mask *mask)
{
    struct family *family = NEW(struct family);
    const struct shape *shape = job->shape;
    const struct need *needs = shape_needs(sched->state, job->shape);

    family->shape = job->shape;
    family->shape_hash = shape->head.hash;
    family->mask = *mask;
    family->minds = minds_of(sched, job, mask);
    family->uid = sched->minds || family->minds ? job->owner->uid : UINT32_MAX;
    family->particular = is_particular(sched, shape);
    family->single = !family->particular && shape->min_nodes <= 1 &&
                     (shape->max_nodes <= 1 || shape->tasks <= 1);
    family->end_by_us = INT64_MAX;
    family->lane_count = (uint32_t)shape->partition_count;
    family->lane_at = NEW_ARRAY(uint32_t, family->lane_count);
    family->lanes = NEW_ARRAY(uint32_t, family->lane_count);
    for (uint32_t i = 0; i < family->lane_count; i++)
        family->lanes[i] = mask_has(mask, i) ? needs[i].partition->number : UINT32_MAX;
    return family;
}

struct family *family_for(struct sched *sched, const struct job *job)
{
    struct mask mask;

    job_mask(sched, job, &mask);
    return family_new(sched, job, &mask);
}

void family_free(struct family *family)
{
    free(family->asks);
    free(family->lane_at);
    free(family->lanes);
    free(family);
}

static struct family *family_get(struct sched *sched, const struct job *job,
                                 const struct mask *mask)
{
    if (minds_of(sched, job, mask) && !sched->minds)
        sched->minds = sched->reclass = true;
    uint32_t uid = sched->minds ? job->owner->uid : UINT32_MAX;
    uint64_t key = hash_bytes(mask, sizeof(*mask), job->shape->head.hash | (uint64_t)uid << 32);
    struct family *chain = map_get_num(&sched->families, key);

    for (struct family *family = chain; family; family = family->same) {
        if (family->shape == job->shape && family->shape_hash == job->shape->head.hash &&
            memcmp(&family->mask, mask, sizeof(*mask)) == 0 && family->uid == uid)
            return family;
    }
    struct family *family = family_new(sched, job, mask);
    family->key = key;
    family->same = chain;
    map_put_num(&sched->families, key, family);
    sched->family_count++;
    return family;
}

static void family_drop(struct sched *sched, struct family *family)
{
    struct family *chain = map_get_num(&sched->families, family->key);

    heap_del(&sched->hot, &family->hot_at);
    for (uint32_t i = 0; i < family->lane_count; i++) {
        if (family->lanes[i] < sched->lanes.len)
            heap_del(&sched->lanes.items[family->lanes[i]].heap, &family->lane_at[i]);
    }
    wants_del(sched, family);
    if (chain == family && family->same) {
        map_put_num(&sched->families, family->key, family->same);
    } else if (chain == family) {
        map_del_num(&sched->families, family->key);
    } else {
        while (chain->same != family)
            chain = chain->same;
        chain->same = family->same;
    }
    sched->family_count--;
    family_free(family);
}

/* By its very first job: whether that one is short enough is looked at when its turn comes. */
static void set_hot(struct sched *sched, struct family *family)
{
    if (family->end_by_us == INT64_MIN || !family->root)
        heap_del(&sched->hot, &family->hot_at);
    else
        heap_set(&sched->hot, &family->hot_at, family, family->root->best);
}

/* The first job of some class changed, `order` came or went. */
static void family_rekey(struct sched *sched, struct family *family, struct order order)
{
    struct order first = family->root ? family->root->best : ORDER_LAST;

    for (uint32_t i = 0; i < family->lane_count; i++) {
        if (family->lanes[i] >= sched->lanes.len)
            continue;
        struct lane *lane = &sched->lanes.items[family->lanes[i]];
        heap_set(&lane->heap, &family->lane_at[i], family, first);
        lane_doubt_at(sched, family->lanes[i], order);
        const struct heap_item *top = sched->in_order ? heap_top(&lane->heap) : NULL;
        if (top && top->family != family) /* it may be its turn now */
            set_hot(sched, top->family);
    }
    set_hot(sched, family);
}

void family_heat(struct sched *sched, struct family *family, int64_t end_by_us)
{
    if (family->end_by_us >= end_by_us)
        return;
    family->end_by_us = end_by_us;
    set_hot(sched, family);
}

void family_cool(struct sched *sched, struct family *family, int64_t end_by_us, uint32_t lacking,
                 struct order tried)
{
    family->end_by_us = end_by_us;
    family->lacking = lacking;
    wants_add(sched, family);
    for (uint32_t i = 0; i < family->lane_count; i++)
        lane_doubt_at(sched, family->lanes[i], tried);
    set_hot(sched, family);
}

void families_heat_all(struct sched *sched)
{
    map_each (entry, &sched->families) {
        for (struct family *family = entry->value; family; family = family->same) {
            family->end_by_us = INT64_MIN; /* so that it is keyed anew */
            family_heat(sched, family, INT64_MAX);
        }
    }
}

/* ---- members ---- */

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

static struct class *class_get(struct sched *sched, const struct job *job, const struct mask *mask)
{
    struct family *family = family_get(sched, job, mask);
    int64_t limit = class_limit(family, job_length_us(job));
    struct class *class = class_find(sched, family, limit);

    if (class)
        return class;
    class = NEW(struct class);
    class->family = family;
    class->limit_us = limit;
    class->best = class->head = ORDER_LAST;
    class->key = class_key(family, limit);
    class->luck = (uint32_t) class->key;
    class->same = map_put_num(&sched->class_keys, class->key, class);
    if (sched->free_classes.len) {
        class->number = sched->free_classes.items[--sched->free_classes.len];
        sched->classes.items[class->number] = class;
    } else {
        class->number = (uint32_t)sched->classes.len;
        vec_push(&sched->classes, class);
    }
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
    free(class);
    if (--family->class_count == 0) /* (2) */
        family_drop(sched, family);
}

static uint64_t job_rank(struct sched *sched, const struct job *job, const struct mask *mask)
{
    const struct need *needs = shape_needs(sched->state, job->shape);
    uint32_t tier = 0;

    for (size_t i = 0; i < job->shape->partition_count; i++) {
        if (mask_has(mask, i))
            tier = MAX(tier, partition_tier(needs[i].partition));
    }
    return (uint64_t)(UINT16_MAX - MIN(tier, UINT16_MAX)) << 48 | predict_place(sched, job);
}

/* Components of a heterogeneous job behind the first are placed with it. */
static bool follows_another(const struct job *job)
{
    return job->more && job->more->het_job_id && job->more->het_offset > 0;
}

/* ---- arrays that run only so many tasks at once ---- */

static struct throttle *throttle_of(struct sched *sched, uint32_t array_id)
{
    struct throttle *throttle = map_get_num(&sched->arrays, array_id);

    if (!throttle) {
        throttle = NEW(struct throttle);
        map_put_num(&sched->arrays, array_id, throttle);
    }
    return throttle;
}

static void throttle_tidy(struct sched *sched, uint32_t array_id)
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

static uint32_t array_left(const struct sched *sched, const struct array *array)
{
    const struct throttle *throttle = map_get_num(&sched->arrays, array->id);
    uint32_t room = array_room(array), planned = throttle ? throttle->planned : 0;

    return room > planned ? room - planned : 0;
}

enum pend_place class_place(const struct sched *sched, const struct job *job)
{
    const struct flights *flights = map_get_num(&sched->flights, job->id);
    uint32_t planned = flights ? flights->count : 0;

    if (planned >= (job_is_meta(job) ? job->array->waiting : 1))
        return PEND_IDLE;
    return job->array && !array_left(sched, job->array) ? PEND_PARKED : PEND_QUEUED;
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
    if (from == PEND_LIMITED)
        limited_del(sched, pend->holder, order);
    if (place == PEND_LIMITED)
        limited_put(sched, pend->holder, order);
    if (from != PEND_QUEUED && place != PEND_QUEUED)
        return;
    struct order was = class->head;
    if (place == PEND_QUEUED)
        line_put(&class->queue, order);
    else
        line_del(&class->queue, order);
    class->head = line_head(&class->queue);
    if (class->head.id != was.id || class->head.rank != was.rank) {
        pull_up(class);
        family_rekey(sched, class->family, order);
        /* Freed hosts that are being offered may have passed it already. */
        if (place == PEND_QUEUED && sched->offers.items.len)
            family_heat(sched, class->family, INT64_MAX);
    }
}

void class_limit_job(struct sched *sched, const struct job *job, const struct limit_hit *hit)
{
    struct pend *pend = pend_find(sched, job->id);

    if (!pend)
        return;
    if (pend->booked)
        book_drop(sched, job->id);
    set_place(sched, pend, job->id, PEND_IDLE);
    pend->holder = hit->holder ? hit->holder->number : NO_HOLDER;
    set_place(sched, pend, job->id, PEND_LIMITED);
}

bool class_rank_is_old(struct sched *sched, const struct job *job)
{
    const struct pend *pend = pend_find(sched, job->id);
    struct mask mask;

    return pend && job_mask(sched, job, &mask) && job_rank(sched, job, &mask) != pend->rank;
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

void class_remove(struct sched *sched, uint32_t job_id)
{
    struct pend *pend = pend_find(sched, job_id);

    if (!pend)
        return;
    if (pend->booked)
        book_drop(sched, job_id);
    set_place(sched, pend, job_id, PEND_IDLE);
    struct class *class = class_of(sched, pend);
    pend_free(sched, job_id);
    if (--class->members == 0)
        class_drop(sched, class);
}

void class_settle(struct sched *sched, const struct job *job)
{
    struct pend *pend = pend_find(sched, job->id);

    if (pend)
        set_place(sched, pend, job->id, class_place(sched, job));
}

void class_refresh(struct sched *sched, const struct job *job)
{
    struct pend *pend = pend_find(sched, job->id);
    struct mask mask;

    if (!job_is_eligible(job) || follows_another(job) || !job_mask(sched, job, &mask)) {
        class_remove(sched, job->id);
        return;
    }
    uint64_t rank = job_rank(sched, job, &mask);
    struct class *class = class_get(sched, job, &mask);
    if (pend && (class_of(sched, pend) != class || pend->rank != rank)) {
        class->members++; /* it may be its last one */
        class_remove(sched, job->id);
        class->members--;
        pend = NULL;
    }
    if (!pend) {
        pend = pend_new(sched, job->id);
        pend->rank = rank;
        pend->class = class->number + 1;
        pend->array_id = job->array ? job->array->id : 0;
        class->members++;
    }
    set_place(sched, pend, job->id, class_place(sched, job));
}

void classes_done(struct sched *sched)
{
    vec_each (struct class *, at, &sched->classes) {
        if (!*at)
            continue;
        line_done(&(*at)->queue);
        free(*at);
    }
    map_each (entry, &sched->families) {
        for (struct family *family = entry->value, *next; family; family = next) {
            next = family->same;
            family_free(family);
        }
    }
    map_each (entry, &sched->pages)
        free(entry->value);
    map_each (entry, &sched->arrays) {
        line_done(&((struct throttle *)entry->value)->parked);
        free(entry->value);
    }
    map_done(&sched->arrays);
    vec_done(&sched->classes);
    map_done(&sched->class_keys);
    vec_done(&sched->free_classes);
    map_done(&sched->families);
    map_done(&sched->pages);
    sched->last_page = NULL;
    vec_done(&sched->hot.items);
    vec_done(&sched->offers.items);
    for (size_t i = 0; i < sched->lanes.len; i++)
        vec_done(&sched->lanes.items[i].heap.items);
    vec_done(&sched->lanes);
    vec_done(&sched->unsure);
    sched->family_count = 0;
}
