/* SPDX-License-Identifier: Apache-2.0 */
/*
 * families.c - classes that fit on the same hosts, and which of them are worth a try
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "sched/queue/queue.h"
#include "schema/reasons.h"

/* ---- classes of a family: a treap by limit, with the first job of each subtree ---- */

static void pull(struct class *class)
{
    class->best = class->head;
    if (class->left && order_before(class->left->best, class->best))
        class->best = class->left->best;
    if (class->right && order_before(class->right->best, class->best))
        class->best = class->right->best;
}

static bool is_same(struct order a, struct order b)
{
    return a.id == b.id && a.rank == b.rank;
}

/* In the class, or in a tree below it, `was` became `is`: mostly that is soon of no account. */
static void climb(struct class *class, struct order was, struct order is)
{
    while (class && !is_same(was, is)) {
        struct order old = class->best;
        if (order_before(is, old))
            class->best = is;
        else if (is_same(old, was))
            pull(class);
        else
            return;
        was = old;
        is = class->best;
        class = class->parent;
    }
}

void class_pull_up(struct class *class, struct order was)
{
    climb(class, was, class->head);
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

void class_link(struct family *family, struct class *class)
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

void class_unlink(struct family *family, struct class *class)
{
    while (class->left || class->right) {
        bool left = !class->right || (class->left && class->left->luck > class->right->luck);
        rotate(family, left ? class->left : class->right);
    }
    replace(family, class->parent, class, NULL);
    climb(class->parent, class->best, ORDER_LAST);
}

struct order family_first(const struct family *family, int64_t limit_us, struct class **out)
{
    struct order best = ORDER_LAST;
    struct class *from = NULL, *class = family->root;
    bool subtree = false;

    if (limit_us == INT64_MAX && !out)
        return class ? class->best : ORDER_LAST;

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

/* ---- families ---- */

int64_t job_length_us(const struct job *job)
{
    return job_end_by(job, 0);
}

/* False when there is none. */
bool job_mask(const struct sched *sched, const struct job *job, struct mask *mask)
{
    const struct need *needs = shape_needs(sched->state, job->shape);
    bool any = false;

    *mask = (struct mask){ 0 };
    for (size_t i = 0; i < job->shape->partition_count; i++) {
        unsigned reason = core_partition_reason(job, &needs[i]);
        /* Whether its nodes suffice may change with the nodes: it is looked at when placing. */
        if (needs[i].partition &&
            (reason == REASON_NONE || reason == REASON_FAIL_BAD_CONSTRAINTS)) {
            mask->bits[i / 64] |= UINT64_C(1) << (i % 64);
            any = true;
        }
    }
    return any;
}

static uint8_t exclusive_kind_of(const struct sched *sched, const struct job *job,
                                 const struct mask *mask)
{
    const struct need *needs = shape_needs(sched->state, job->shape);
    bool user = job->shape->exclusive_user;

    for (size_t i = 0; i < job->shape->partition_count; i++)
        user = user || (mask_has(mask, i) && needs[i].partition->spec->exclusive_user);
    return (uint8_t)((user ? EXCLUDES_USER : 0) | (job->shape->exclusive_mcs ? EXCLUDES_MCS : 0));
}

/* Shares of each task of a device of its own. */
static bool has_lone_shares(const struct sched *sched, const struct shape *shape)
{
    const struct need *needs = shape_needs(sched->state, (struct shape *)(uintptr_t)shape);
    bool per_task = false;

    for (size_t i = 0; i < shape->gres_count; i++)
        per_task = per_task || shape->gres[i].scope == GRES_PER_TASK;
    return per_task && needs[0].lone;
}

/* What the grid knows nothing of. */
static bool is_particular(const struct sched *sched, const struct shape *shape)
{
    return shape->oversubscribe || shape_by_socket(shape) || shape->nodelist || shape->contiguous ||
           shape->reservation || shape->prefer.plain || has_lone_shares(sched, shape) ||
           shape->resv_warn_s || shape->prefer.group_count || shape->features.group_count ||
           (sched->hosts->topo.leaves && (shape->min_nodes > 1 || shape->wish_nodes > 1 ||
                                          (shape->max_nodes > 1 && shape->units > 1)));
}

/*
 * The first component of a heterogeneous job: whether it starts depends on the others too. What it learns is
 * of no use to jobs that are like it, and hosts that it has no use for may be what it waits for.
 */
static uint32_t het_of(const struct job *job)
{
    return job->more && job->more->het_count && job->more->het_offset == 0 ? job->id : 0;
}

/* What its other components are: other ones make it another family. */
static uint64_t het_hash(const struct sched *sched, const struct job *job)
{
    uint64_t hash = 0;

    for (uint32_t i = 1; i < job->more->het_count; i++) {
        const struct job *part = state_job(sched->state, job->id + i);
        hash = hash_mix(hash + (part ? part->shape->head.hash : 0) + i);
    }
    return hash;
}

static bool is_in_partition_queue(const struct family *family, uint32_t number)
{
    for (uint32_t i = 0; i < family->partition_queue_count; i++) {
        if (family->partition_queues[i] == number)
            return true;
    }
    return false;
}

/* It waits in the partitions of all components, and is booked when it is among the first of one. */
static void add_partition_queues(struct sched *sched, struct family *family, const struct job *job)
{
    for (uint32_t k = 1; k < job->more->het_count; k++) {
        const struct job *part = state_job(sched->state, job->id + k);
        struct mask mask;
        if (!part || !job_mask(sched, part, &mask))
            continue;
        const struct need *needs = shape_needs(sched->state, part->shape);
        for (size_t p = 0; p < part->shape->partition_count; p++) {
            if (!mask_has(&mask, p) || is_in_partition_queue(family, needs[p].partition->number))
                continue;
            uint32_t at = family->partition_queue_count++;
            family->partition_queues = mem_resize(family->partition_queues,
                                                  family->partition_queue_count * sizeof(uint32_t));
            family->partition_queue_at = mem_resize(
                family->partition_queue_at, family->partition_queue_count * sizeof(uint32_t));
            family->partition_queues[at] = needs[p].partition->number;
            family->partition_queue_at[at] = 0;
        }
    }
}

/* Is it not placed by the grid alone? */
static bool is_bound(const struct sched *sched, const struct job *job)
{
    const struct need *needs = shape_needs(sched->state, job->shape);
    bool bound = is_particular(sched, job->shape);

    for (size_t i = 0; i < job->shape->partition_count; i++)
        bound = bound || shape_sizes_limited(job->shape, &needs[i]);
    return bound;
}

/* What partitions and nodes say of it may be another since it was made. */
static bool is_as_made(const struct sched *sched, struct family *family, const struct job *job)
{
    if (family->made == state_generation(sched->state))
        return true;
    if (family->exclusive != exclusive_kind_of(sched, job, &family->mask) ||
        family->particular != is_bound(sched, job))
        return false;
    family->made = state_generation(sched->state);
    return true;
}

static struct family *family_new(struct sched *sched, const struct job *job,
                                 const struct mask *mask)
{
    struct family *family = NEW(struct family);
    const struct shape *shape = job->shape;
    const struct need *needs = shape_needs(sched->state, job->shape);

    family->made = state_generation(sched->state);
    family->shape = job->shape;
    family->shape_hash = shape->head.hash;
    family->mask = *mask;
    family->exclusive = exclusive_kind_of(sched, job, mask);
    family->uid = sched->hosts->exclusive || family->exclusive ? job->owner->uid : UINT32_MAX;
    family->by_socket = shape_by_socket(shape);
    family->particular = is_bound(sched, job);
    family->single = !family->particular && shape->min_nodes <= 1 &&
                     (shape->max_nodes <= 1 || shape->units <= 1);
    family->end_by_us = INT64_MAX;
    family->partition_queue_count = (uint32_t)shape->partition_count;
    family->partition_queue_at = NEW_ARRAY(uint32_t, family->partition_queue_count);
    family->partition_queues = NEW_ARRAY(uint32_t, family->partition_queue_count);
    for (uint32_t i = 0; i < family->partition_queue_count; i++)
        family->partition_queues[i] = mask_has(mask, i) ? needs[i].partition->number : UINT32_MAX;
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
    vec_done(&family->outs);
    vec_done(&family->opens[0].items);
    vec_done(&family->opens[1].items);
    free(family->charge);
    free(family->asks);
    free(family->turns);
    free(family->partition_queue_at);
    free(family->partition_queues);
    free(family->missing);
    free(family);
}

/* Does one of its other components mind who shares its hosts? */
static bool parts_are_exclusive(const struct sched *sched, const struct job *job)
{
    for (uint32_t i = 1; het_of(job) && i < job->more->het_count; i++) {
        const struct job *part = state_job(sched->state, job->id + i);
        if (part && (part->shape->exclusive_user || part->shape->exclusive_mcs))
            return true;
    }
    return false;
}

struct family *family_get(struct sched *sched, const struct job *job, const struct mask *mask)
{
    if (!sched->hosts->exclusive &&
        (exclusive_kind_of(sched, job, mask) || parts_are_exclusive(sched, job)))
        sched->hosts->exclusive = sched->queue->reclass = true;
    uint32_t uid = sched->hosts->exclusive ? job->owner->uid : UINT32_MAX;
    uint32_t het = het_of(job);
    uint64_t key = hash_bytes(mask, sizeof(*mask), job->shape->head.hash | (uint64_t)uid << 32) ^
                   (het ? hash_mix(het + het_hash(sched, job)) : 0);
    struct family *chain = map_get_num(&sched->queue->families, key);

    for (struct family *family = chain; family; family = family->same) {
        if (family->shape == job->shape && family->shape_hash == job->shape->head.hash &&
            memcmp(&family->mask, mask, sizeof(*mask)) == 0 && family->uid == uid &&
            family->het == het && family->key == key && is_as_made(sched, family, job))
            return family;
    }
    struct family *family = family_new(sched, job, mask);
    family->key = key;
    family->het = het;
    if (het) {
        add_partition_queues(sched, family, job);
        vec_push(&sched->queue->hets, family);
    }
    family->same = chain;
    map_put_num(&sched->queue->families, key, family);
    sched->queue->family_count++;
    return family;
}

void family_drop(struct sched *sched, struct family *family)
{
    struct family *chain = map_get_num(&sched->queue->families, family->key);

    for (size_t i = family->het ? sched->queue->hets.len : 0; i-- > 0;) {
        if (sched->queue->hets.items[i] == family)
            vec_remove(&sched->queue->hets, i);
    }
    heap_del(&sched->queue->ready, &family->ready_at);
    for (uint32_t i = 0; i < family->partition_queue_count; i++) {
        if (family->partition_queues[i] < sched->queue->partition_queues.len)
            heap_del(&sched->queue->partition_queues.items[family->partition_queues[i]].heap,
                     &family->partition_queue_at[i]);
    }
    wants_del(sched, family);
    for (size_t i = 0; i < sched->queue->woken.len && family->waking; i++) {
        if (sched->queue->woken.items[i] == family) {
            vec_remove(&sched->queue->woken, i);
            break;
        }
    }
    if (chain == family && family->same) {
        map_put_num(&sched->queue->families, family->key, family->same);
    } else if (chain == family) {
        map_del_num(&sched->queue->families, family->key);
    } else {
        while (chain->same != family)
            chain = chain->same;
        chain->same = family->same;
    }
    sched->queue->family_count--;
    family_free(family);
}

/* By its very first job: whether that one is short enough is looked at when its turn comes. */
static void set_ready(struct sched *sched, struct family *family)
{
    if (family->end_by_us == INT64_MIN || !family->root)
        heap_del(&sched->queue->ready, &family->ready_at);
    else
        heap_set(&sched->queue->ready, &family->ready_at, family, family->root->best);
    if (family_is_open(family) && !family->ready_at && family->end_by_us != INT64_MIN)
        family_wake(sched, family);
}

/* The first job of some class changed, `order` came or went. */
void family_rekey(struct sched *sched, struct family *family, struct order order)
{
    struct order first = family->root ? family->root->best : ORDER_LAST;

    for (uint32_t i = 0; i < family->partition_queue_count; i++) {
        if (family->partition_queues[i] >= sched->queue->partition_queues.len)
            continue;
        struct partition_queue *partition_queue =
            &sched->queue->partition_queues.items[family->partition_queues[i]];
        heap_set(&partition_queue->heap, &family->partition_queue_at[i], family, first);
        const struct heap_item *top =
            sched->queue->in_order ? heap_top(&partition_queue->heap) : NULL;
        if (top && top->family != family) /* it may be its turn now */
            set_ready(sched, top->family);
    }
    set_ready(sched, family);
}

void family_mark_ready(struct sched *sched, struct family *family, int64_t end_by_us)
{
    if (family->end_by_us >= end_by_us)
        return;
    family->end_by_us = end_by_us;
    set_ready(sched, family);
}

bool family_will_try(const struct sched *sched, const struct family *family, int64_t limit_us)
{
    return family->ready_at && !sched->queue->in_order &&
           (family->end_by_us == INT64_MAX || limit_us <= family->end_by_us - sched->now_us);
}

bool family_is_ready(const struct sched *sched, const struct family *family, int64_t limit_us)
{
    return !sched->queue->in_order &&
           (family->end_by_us == INT64_MAX ||
            (family->end_by_us != INT64_MIN && limit_us <= family->end_by_us - sched->now_us));
}

bool family_would_try(struct sched *sched, struct family *family, int64_t limit_us)
{
    return family_is_ready(sched, family, limit_us) ||
           (!sched->queue->in_order && wants_may_offer(sched, family));
}

void family_joined(struct sched *sched, const struct family *family, struct order order)
{
    for (uint32_t i = 0; i < family->partition_queue_count; i++) {
        partition_queue_joined(sched, family->partition_queues[i], order);
        partition_queue_needs_booking_at(sched, family->partition_queues[i], order);
    }
}

void family_needs_booking(struct sched *sched, const struct family *family, struct order order)
{
    for (uint32_t i = 0; i < family->partition_queue_count; i++)
        partition_queue_needs_booking_at(sched, family->partition_queues[i], order);
}

void family_mark_blocked(struct sched *sched, struct family *family, int64_t end_by_us,
                         uint32_t lacking, struct order tried)
{
    family->end_by_us = end_by_us;
    family->lacking = lacking;
    if (family->het)
        family->end_by_us = INT64_MIN; /* until families_mark_het_ready() */
    else
        wants_add(sched, family);
    family_needs_booking(sched, family, tried);
    set_ready(sched, family);
}

void families_mark_het_ready(struct sched *sched)
{
    if (sched->queue->het_seen == sched->queue->het_news)
        return;
    sched->queue->het_seen = sched->queue->het_news;
    vec_each (struct family *, family, &sched->queue->hets)
        family_mark_ready(sched, *family, INT64_MAX);
}

void families_mark_ready(struct sched *sched)
{
    map_each (entry, &sched->queue->families) {
        for (struct family *family = entry->value; family; family = family->same) {
            family->end_by_us = INT64_MIN; /* so that it is keyed anew */
            family_mark_ready(sched, family, INT64_MAX);
        }
    }
}

bool shape_sizes_limited(const struct shape *shape, const struct need *need)
{
    const PartitionSpec *part = need->partition ? need->partition->spec : NULL;
    bool wide = shape->units > 1 || shape->wish_nodes > 1;

    return shape->size_count || (part && part->min_nodes > shape->min_nodes) ||
           (part && part->has_max_nodes && wide && part->max_nodes < shape->max_nodes &&
            part->max_nodes < need->node_count);
}

/* All of them are to be looked at: those that were go back to the others. */
void family_open_again(struct family *family)
{
    if (family_passed(family)->items.len > family_open(family)->items.len)
        family->open_side = !family->open_side;
    struct heap *passed = family_passed(family);
    while (passed->items.len) {
        struct heap_item item = passed->items.items[passed->items.len - 1];
        heap_del(passed, item.at);
        CONTAINER_OF(item.at, struct bin, open_at)->side = family->open_side;
        heap_set(family_open(family), item.at, family, item.key);
    }
}

void family_wake(struct sched *sched, struct family *family)
{
    if (!family->waking)
        vec_push(&sched->queue->woken, family);
    family->waking = true;
    family_open_again(family);
}
