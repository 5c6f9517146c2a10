/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.c - when a job that must wait can start
 *
 * Each host is asked from when on it has what the job wants of it, for as long as the job may run.
 * The job starts when enough hosts have it. Of the hosts that do by then, those are taken that have
 * it last: what is free earlier is left to others.
 */
#include <stdlib.h>
#include <string.h>

#include "core/resv.h"
#include "sched/sched_priv.h"

/* Starts that are tried after the first moment at which enough hosts have something. */
enum { TRIES = 32 };

/* From such a part of all hosts on it pays to ask first which may be empty in time; how often. */
enum { SOONEST_PART = 16, SOONEST_TRIES = 3 };

struct offer {
    int64_t from_us;
    uint32_t host;
};

typedef VEC(struct offer) offer_list;

static int by_time(const void *a, const void *b)
{
    const struct offer *x = a, *y = b;

    if (x->from_us != y->from_us)
        return x->from_us < y->from_us ? -1 : 1;
    return x->host < y->host ? -1 : x->host > y->host;
}

/* What `tasks` tasks take of an empty host of the kind. */
static bool amount_for(const struct family *family, const struct need *need,
                       const struct kind *kind, const struct ask *ask, uint32_t tasks,
                       struct amount *out)
{
    const struct node *node = kind->sample;
    uint64_t gres[TAKE_GRES] = { 0 };
    struct take take;

    *out = (struct amount){ 0 };
    if (!ask->able || ask->most < tasks)
        return false;
    for (size_t i = 0; i < node->gres_count && i < TAKE_GRES; i++)
        gres[i] = gres_most(&node->gres[i]);
    struct room room = { node->cpus, kind->most_mem_mb, gres, true };
    fit_part(family->shape, need, node, &room, 0, tasks, &take);
    out->whole = need->whole_nodes || need->mem_all;
    out->cpus = need->share > 1 ? 1 : take.cpus;
    out->mem_mb = out->whole && need->mem_all ? 0 : take.mem_mb;
    memcpy(out->gres, take.gres, sizeof(out->gres));
    return true;
}

/* The hosts that have it by `start`, the latest first. */
static size_t hosts_by(const offer_list *offers, int64_t start_us, uint32_t *hosts)
{
    size_t count = 0;

    for (size_t i = offers->len; i-- > 0;) {
        if (offers->items[i].from_us <= start_us)
            hosts[count++] = offers->items[i].host;
    }
    return count;
}

/* The count-th smallest time comes to its place, all that are earlier before it. */
static void select_nth(struct offer *list, size_t len, size_t nth)
{
    size_t low = 0, high = len;

    while (high - low > 16) {
        struct offer pivot = list[low + (high - low) / 2];
        size_t i = low, k = high - 1;
        while (i <= k) {
            while (by_time(&list[i], &pivot) < 0)
                i++;
            while (by_time(&pivot, &list[k]) < 0)
                k--;
            if (i <= k) {
                struct offer swap = list[i];
                list[i++] = list[k];
                list[k] = swap;
                if (k-- == 0)
                    break;
            }
        }
        if (k != SIZE_MAX && nth <= k)
            high = k + 1;
        else if (nth >= i)
            low = i;
        else
            return;
    }
    qsort(list + low, high - low, sizeof(*list), by_time);
}

/* Those that have it by then to the front, in order. */
static size_t sort_by(struct offer *list, size_t len, int64_t start_us)
{
    size_t count = 0;

    for (size_t i = 0; i < len; i++) {
        if (list[i].from_us <= start_us) {
            struct offer swap = list[count];
            list[count++] = list[i];
            list[i] = swap;
        }
    }
    qsort(list, count, sizeof(*list), by_time);
    return count;
}

struct question {
    int64_t from_us; /* not before: its reservation begins then */
    struct sched *sched;
    struct family *family;
    const struct job *job;
    struct view view;
    size_t partition;
    int64_t length_us;
};

/* The latest of the offers comes first: a heap, while no more than so many are kept. */
static void offer_sift(offer_list *list, size_t at)
{
    struct offer item = list->items[at];

    for (;;) {
        size_t child = at * 2 + 1;
        if (child + 1 < list->len && list->items[child + 1].from_us > list->items[child].from_us)
            child++;
        if (child >= list->len || list->items[child].from_us <= item.from_us)
            break;
        list->items[at] = list->items[child];
        at = child;
    }
    list->items[at] = item;
}

/* Keeps the `most` earliest; what comes at or after the result is of no use. */
static int64_t offer_keep(offer_list *list, struct offer offer, size_t most)
{
    if (list->len < most) {
        vec_push(list, offer);
        for (size_t i = list->len == most ? most / 2 : 0; i-- > 0;)
            offer_sift(list, i);
    } else {
        list->items[0] = offer;
        offer_sift(list, 0);
    }
    return list->len == most ? list->items[0].from_us : INT64_MAX;
}

/* What is asked of each kind of host, worked out once for all of them. */
struct wish {
    struct amount amount;
    uint64_t devices;
    bool able;
};

/*
 * Nothing of it now, and nothing that ends there in time. Every host is asked this and most are
 * passed over, so there is nothing in it to be guessed wrong: no branches.
 */
static bool pass_over(const struct glance *glance, const struct wish *wish, int64_t soon_us,
                      int64_t before_us)
{
    unsigned now = (unsigned)(wish->amount.cpus <= glance->cpus) &
                   (unsigned)(wish->amount.mem_mb <= glance->mem_mb) &
                   (unsigned)(wish->devices <= glance->devices);
    unsigned later = (unsigned)(glance->first_end_us < before_us) & (unsigned)(soon_us < before_us);
    unsigned taken = (unsigned)wish->amount.whole & (unsigned)(glance->last_end_us >= before_us);

    return (!(now | later)) | taken;
}

/* Fills the offers of hosts: the `most` that have it first, before that time. */
static void gather(const struct question *q, uint32_t tasks, size_t most, int64_t before,
                   offer_list *out)
{
    struct sched *sched = q->sched;
    const struct need *need = &shape_needs(sched->state, q->family->shape)[q->partition];
    const struct ask *asks = &q->family->asks[q->partition * q->family->kinds];
    struct wish *wishes = NEW_ARRAY(struct wish, sched->kinds.len + 1);
    int64_t soon = q->view.now_us + US_PER_S;

    hosts_glance(sched);
    for (size_t k = 0; k < sched->kinds.len; k++) {
        const struct kind *kind = sched->kinds.items[k];
        wishes[k].able = amount_for(q->family, need, kind, &asks[k], tasks, &wishes[k].amount);
        wishes[k].devices = kind_devices(kind, wishes[k].amount.gres);
    }
    for (size_t word = 0; word * 64 < need->nodes.bits; word++) {
        for (uint64_t bits = need->nodes.words[word]; bits; bits &= bits - 1) {
            uint32_t number = (uint32_t)(word * 64) + (uint32_t)__builtin_ctzll(bits);
            const struct glance *glance = &sched->glances.items[number];
            if (glance->kind == UINT32_MAX || !wishes[glance->kind].able ||
                pass_over(glance, &wishes[glance->kind], soon, before))
                continue;
            struct offer offer = { .host = number };
            sched->looked++;
            offer.from_us =
                host_earliest(sched, &sched->hosts.items[number], &wishes[glance->kind].amount,
                              &q->view, q->length_us, before);
            if (offer.from_us >= before)
                continue;
            int64_t last = offer_keep(out, offer, most);
            before = MIN(before, last);
        }
    }
    sched->looked += need->node_count / 4;
    free(wishes);
}

/* When each of the hosts is empty at the earliest. */
static void gather_ends(const struct question *q, uint32_t tasks, offer_list *out)
{
    struct sched *sched = q->sched;
    const struct need *need = &shape_needs(sched->state, q->family->shape)[q->partition];
    const struct ask *asks = &q->family->asks[q->partition * q->family->kinds];
    int64_t from = MAX(q->view.start_us, q->view.now_us);

    hosts_glance(sched);
    for (size_t word = 0; word * 64 < need->nodes.bits; word++) {
        for (uint64_t bits = need->nodes.words[word]; bits; bits &= bits - 1) {
            uint32_t number = (uint32_t)(word * 64) + (uint32_t)__builtin_ctzll(bits);
            const struct glance *glance = &sched->glances.items[number];
            if (glance->kind == UINT32_MAX || !asks[glance->kind].able ||
                asks[glance->kind].most < tasks)
                continue;
            vec_push(out, ((struct offer){ MAX(glance->last_end_us, from), number }));
        }
    }
    sched->looked += need->node_count / 4;
}

static size_t count_by(const offer_list *list, int64_t start_us)
{
    size_t count = 0;

    for (size_t i = 0; i < list->len; i++)
        count += list->items[i].from_us <= start_us;
    return count;
}

/* Leaves those that have it by then. */
static void keep_by(offer_list *list, int64_t start_us)
{
    size_t count = 0;

    for (size_t i = 0; i < list->len; i++) {
        if (list->items[i].from_us <= start_us)
            list->items[count++] = list->items[i];
    }
    list->len = count;
}

/*
 * Many whole hosts: only those are asked that may be empty early enough. Fills the offers of all that have
 * it when enough do, and by then; false: that is not known.
 */
static bool gather_soonest(const struct question *q, uint32_t tasks, offer_list *out)
{
    size_t wanted = q->family->shape->min_nodes, look = wanted;
    offer_list ends = { 0 };
    bool enough = false;

    gather_ends(q, tasks, &ends);
    for (unsigned tries = 0; !enough && tries < SOONEST_TRIES && look <= ends.len; tries++) {
        select_nth(ends.items, ends.len, look - 1);
        int64_t by = ends.items[look - 1].from_us;
        if (by == INT64_MAX)
            break;
        vec_clear(out);
        gather(q, tasks, SIZE_MAX, by + 1, out);
        enough = out->len >= wanted;
        if (!enough) /* some are booked: as many more, and some */
            look = count_by(&ends, by) + (wanted - out->len) * 5 / 4 + 16;
    }
    vec_done(&ends);
    if (enough) {
        select_nth(out->items, out->len, wanted - 1);
        keep_by(out, out->items[wanted - 1].from_us);
    }
    return enough;
}

static bool starts_at(const struct question *q, const offer_list *offers, int64_t start_us,
                      uint32_t *hosts, struct parts *parts)
{
    struct view then = q->view;

    then.start_us = start_us;
    then.end_us = q->length_us == INT64_MAX ? INT64_MAX : start_us + q->length_us;
    if (q->family->shape->licence_count &&
        !licences_fit(q->sched, q->family, &then, &parts->licence))
        return false;
    size_t count = hosts_by(offers, start_us, hosts);
    return place_among(q->sched, q->family, q->partition, q->job, &then, hosts, count, parts);
}

/* The first moment from then on at which the licences are there too. */
static int64_t with_licences(const struct question *q, int64_t start_us)
{
    struct view then = q->view;

    then.start_us = MAX(start_us, q->from_us);
    return licences_from(q->sched, q->family, &then, q->length_us);
}

/* When there is more than before, behind `after`; the offers are sorted. */
static int64_t next_offer(const offer_list *offers, int64_t after_us)
{
    size_t low = 0, high = offers->len;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (offers->items[middle].from_us <= after_us)
            low = middle + 1;
        else
            high = middle;
    }
    return low < offers->len ? offers->items[low].from_us : INT64_MAX;
}

static int64_t start_with(const struct question *q, offer_list *offers, struct parts *parts)
{
    size_t wanted = q->family->shape->min_nodes;
    bool sorted = false;

    if (offers->len < wanted)
        return INT64_MAX;
    uint32_t *hosts = NEW_ARRAY(uint32_t, offers->len + 1);
    select_nth(offers->items, offers->len, wanted - 1);
    int64_t first = offers->items[wanted - 1].from_us, then = with_licences(q, first);
    sort_by(offers->items, offers->len, first);
    for (unsigned tries = 0; then != INT64_MAX; tries++) {
        if (!sorted && then != first) {
            qsort(offers->items, offers->len, sizeof(*offers->items), by_time);
            sorted = true;
        }
        if (starts_at(q, offers, then, hosts, parts))
            break;
        if (!sorted)
            qsort(offers->items, offers->len, sizeof(*offers->items), by_time);
        sorted = true;
        int64_t next = tries < TRIES ? next_offer(offers, then) : INT64_MAX;
        then = next == INT64_MAX ? INT64_MAX : with_licences(q, next);
    }
    free(hosts);
    return then;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

typedef VEC(int64_t) moment_list;

static void moment_add(moment_list *list, int64_t when_us, int64_t after_us)
{
    if (when_us > after_us)
        vec_push(list, when_us);
}

/* Every moment at which one of the offered hosts has more than before. */
static void gather_moments(const struct question *q, const offer_list *offers, moment_list *out)
{
    int64_t from = MAX(q->view.start_us, q->view.now_us);

    vec_push(out, from);
    for (size_t i = 0; i < offers->len; i++) {
        const struct host *host = &q->sched->hosts.items[offers->items[i].host];
        moment_add(out, offers->items[i].from_us, from);
        for (size_t k = 0; k < host->runs.len; k++)
            moment_add(out, host->runs.items[k].end_us, from);
        for (size_t k = 0; k < host->blocks.len; k++) {
            if (block_hinders(&host->blocks.items[k], &q->view))
                moment_add(out, host->blocks.items[k].end_us, from);
        }
        for (size_t k = 0; q->view.forecast && k < host->forecasts.len; k++)
            moment_add(out, host->forecasts.items[k].end_us, from);
        for (const struct claim *claim = host->claims; claim; claim = claim->next)
            moment_add(out, claim->end_us, from);
    }
    qsort(out->items, out->len, sizeof(int64_t), by_value);
    q->sched->looked += out->len / 4;
}

/*
 * The hosts have something earlier, and enough of it later: the first moment at which they do, as if what
 * they have only grew.
 */
static int64_t start_unevenly(const struct question *q, const offer_list *offers,
                              struct parts *parts)
{
    uint32_t *hosts = NEW_ARRAY(uint32_t, offers->len + 1);
    moment_list moments = { 0 };
    int64_t start = INT64_MAX;

    gather_moments(q, offers, &moments);
    size_t low = 0, high = moments.len;
    while (low < high) {
        /* The last one first: then it has all that it will ever have. */
        size_t middle = high == moments.len ? high - 1 : low + (high - low) / 2;
        int64_t then = with_licences(q, moments.items[middle]);
        bool good = then != INT64_MAX && starts_at(q, offers, then, hosts, parts);
        if (good)
            start = then;
        if (!good && high == moments.len)
            break;
        if (good)
            high = middle;
        else
            low = middle + 1;
    }
    if (start != INT64_MAX) /* the parts are those of the last try */
        starts_at(q, offers, start, hosts, parts);
    vec_done(&moments);
    free(hosts);
    return start;
}

static int64_t start_in(const struct question *q, struct parts *parts)
{
    const struct shape *shape = q->family->shape;
    const struct need *need = &shape_needs(q->sched->state, q->family->shape)[q->partition];
    uint32_t share = (shape->tasks + shape->min_nodes - 1) / shape->min_nodes;
    offer_list offers = { 0 };

    bool few = !q->family->particular && shape->min_nodes < need->node_count;
    bool soonest = few && shape->min_nodes > 1 &&
                   shape->min_nodes >= need->node_count / SOONEST_PART && need->whole_nodes &&
                   gather_soonest(q, share, &offers);
    if (!soonest) {
        vec_clear(&offers);
        gather(q, share, few ? shape->min_nodes : SIZE_MAX, INT64_MAX, &offers);
    }
    if (!soonest && few && shape->min_nodes > 1 && offers.len == shape->min_nodes) {
        /* When enough have it is known; now all that do by then, for a choice. */
        int64_t then = offers.items[0].from_us;
        vec_clear(&offers);
        gather(q, share, SIZE_MAX, then + 1, &offers);
    }
    int64_t start = start_with(q, &offers, parts);
    if (start == INT64_MAX && few &&
        (shape->min_nodes > 1 || shape->licence_count)) { /* the first ones alone would not do */
        vec_clear(&offers);
        gather(q, share, SIZE_MAX, INT64_MAX, &offers);
        start = start_with(q, &offers, parts);
    }
    /* Not in equal shares, not on one host, or not when each of the hosts has it first. */
    bool uneven = shape->max_nodes > 1 && (share > 1 || shape->min_nodes > 1);
    /* What is free first may be in the wrong places. */
    if (start == INT64_MAX && (uneven || q->family->by_socket || need->bound)) {
        vec_clear(&offers);
        gather(q, 1, SIZE_MAX, INT64_MAX, &offers);
        start = start_unevenly(q, &offers, parts);
    }
    vec_done(&offers);
    return start;
}

int64_t profile_start_from(struct sched *sched, struct family *family, const struct job *job,
                           const struct view *from, struct parts *parts)
{
    int64_t now_us = from->now_us, begin_us = MAX(from->start_us, now_us);
    struct question q = { .sched = sched, .family = family, .job = job };
    struct parts other = { 0 };
    int64_t best = INT64_MAX;

    family_asks(sched, family);
    q.view = *from;
    size_t at = 0;
    const struct reservation *resv =
        family->shape->reservation ? resv_next_for(sched->state, job, &at) : NULL;
    q.view.resv = resv_hash(resv ? resv->spec->name : NULL);
    q.view.warn_s = family->shape->resv_warn_s;
    q.from_us = resv && !(resv->flags & RESV_FLEX) ? MAX(resv->spec->start_us, begin_us) : begin_us;
    q.length_us = job_length_us(job);
    int64_t over_us = resv ? resv_over_run_us(sched->state, resv) : INT64_MAX;
    if (over_us != INT64_MAX) /* it is ended with its reservation */
        q.length_us = MIN(q.length_us, MAX(resv->spec->end_us + over_us - q.from_us, 1));
    for (size_t p = 0; p < family->shape->partition_count; p++) {
        if (!family_may_use(sched, family, p))
            continue;
        q.partition = p;
        int64_t start = start_in(&q, &other);
        if (start < best) {
            struct parts was = *parts;
            best = start;
            *parts = other;
            other = was;
        }
    }
    vec_done(&other.list);
    return best;
}
