/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resv_parts.c - what reservations keep of nodes and licences, and starts held against that
 *
 * A part of a node is a number of CPUs and of devices, not which: jobs outside leave so many that
 * those inside can have them.
 *
 * (1) What a part has none of is not bounded by it: its jobs take it from what is free for all.
 */
#include <stdlib.h>
#include <string.h>

#include "core/resv/resvs.h"
#include "core/shape.h"

_Static_assert((int)RESV_GRES == (int)TAKE_GRES, "parts are indexed as what jobs take");

size_t resv_gres_at(const struct node *node, const char *name, const char *type)
{
    for (size_t i = 0; i < node->gres_count && i < RESV_GRES; i++) {
        if (str_eq(node->gres[i].name, name) &&
            (str_is_empty(type) || str_eq(node->gres[i].type, type)))
            return i;
    }
    return RESV_GRES;
}

/* ---- what it has ---- */

void resv_parts_derive(const struct state *state, struct reservation *resv)
{
    const ReservationSpec *spec = resv->spec;

    vec_clear(&resv->parts);
    for (size_t i = 0; i < spec->n_parts; i++) {
        const ReservationPart *from = spec->parts[i];
        const struct node *node = node_at(state, from->node);
        if (!node)
            continue;
        struct resv_part part = { .node = node->number, .cpus = from->cpus };
        for (size_t k = 0; k < from->n_gres; k++) {
            size_t at = resv_gres_at(node, from->gres[k]->name, from->gres[k]->type);
            if (at < RESV_GRES)
                part.gres[at] += from->gres[k]->count;
        }
        size_t at = resv->parts.len;
        vec_push(&resv->parts, part);
        for (; at > 0 && resv->parts.items[at - 1].node > part.node; at--)
            resv->parts.items[at] = resv->parts.items[at - 1];
        resv->parts.items[at] = part;
    }
}

const struct resv_part *resv_part_of(const struct reservation *resv, uint32_t number)
{
    size_t low = 0, high = resv->parts.len;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (resv->parts.items[middle].node < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < resv->parts.len && resv->parts.items[low].node == number ? &resv->parts.items[low]
                                                                          : NULL;
}

void resv_add_use(const struct job *job, const struct node *node, struct resv_part *use)
{
    for (unsigned i = 0; i < job->run->count; i++) {
        const struct job_part *part = &job->run->parts[i];
        if (part->node != node)
            continue;
        use->cpus += job->run->lent ? 0 : part->cpus;
        for (size_t k = 0; k < part->gres_count; k++) {
            size_t at = resv_gres_at(node, part->gres[k].name, part->gres[k].type);
            if (at < RESV_GRES)
                use->gres[at] += part->gres[k].count;
        }
    }
}

/* What jobs of the reservation have there. */
static struct resv_part used_by(const struct reservation *resv, const struct node *node)
{
    struct resv_part use = { .node = node->number };

    for (size_t i = 0; i < node->jobs.len; i++) {
        const struct job *job = node->jobs.items[i];
        if (str_eq(job->run->reservation, resv->spec->name))
            resv_add_use(job, node, &use);
    }
    return use;
}

/* ---- licences ---- */

void resv_licences_derive(struct reservation *resv)
{
    const char *cursor = resv->spec->licenses;
    struct span word;

    vec_each (struct resv_licence, at, &resv->licences)
        free(at->name);
    vec_clear(&resv->licences);
    while (cursor && str_next(&cursor, ",;", &word)) {
        size_t len = 0;
        uint64_t count = 1;
        while (len < word.len && word.ptr[len] != ':' && word.ptr[len] != '=')
            len++;
        if (len + 1 < word.len) {
            char *text = mem_strndup(word.ptr + len + 1, word.len - len - 1);
            if (!str_to_u64(text, UINT32_MAX, &count))
                count = 0;
            free(text);
        }
        vec_push(&resv->licences, (struct resv_licence){ .name = mem_strndup(word.ptr, len),
                                                         .count = (uint32_t)count });
    }
}

static struct resv_licence *licence_at(const struct reservation *resv, const char *name)
{
    vec_each (struct resv_licence, at, &resv->licences) {
        if (str_eq(at->name, name))
            return at;
    }
    return NULL;
}

uint32_t resv_licences(const struct reservation *resv, const char *name)
{
    const struct resv_licence *licence = licence_at(resv, name);

    return licence ? licence->count : 0;
}

void resv_licences_count(struct reservation *resv, const struct job *job, int by)
{
    const struct shape *shape = job->shape;

    for (size_t i = 0; resv->licences.len && i < shape->licence_count; i++) {
        struct resv_licence *licence = licence_at(resv, shape->licences[i].name);
        uint32_t count = shape->licences[i].count;
        if (!licence || (shape->licence_any && i != job->run->licence))
            continue;
        licence->used = by > 0 ? licence->used + count : licence->used - MIN(licence->used, count);
    }
}

static void count_licences(struct state *state, struct job *job, void *ctx)
{
    struct reservation *resv = ctx;

    (void)state;
    if (str_eq(job->run->reservation, resv->spec->name))
        resv_licences_count(resv, job, 1);
}

void resv_licences_recount(struct state *state, struct reservation *resv)
{
    if (resv->licences.len)
        node_jobs_each(state, count_licences, resv);
}

static bool holds_now(const struct state *state, const struct reservation *resv)
{
    return resv->active && !resv->over && resv->spec->end_us > state->time_us;
}

uint32_t resv_licences_kept(const struct state *state, const char *own, const char *name)
{
    uint64_t kept = 0;

    vec_each (struct reservation *, at, &state->reservations) {
        const struct resv_licence *licence = licence_at(*at, name);
        if (licence && holds_now(state, *at) && !str_eq((*at)->spec->name, own))
            kept += licence->count - MIN(licence->used, licence->count);
    }
    return (uint32_t)MIN(kept, UINT32_MAX);
}

/* ---- what holds now ---- */

static int refuse(struct err *err, const char *node, const struct reservation *resv)
{
    return err_set(err, ERR_NODES_BUSY, "node %s belongs to reservation %s", node,
                   resv->spec->name);
}

/* CPUs of it that nobody has yet. */
static uint32_t fresh_cpus(const struct node *node, const NodeAlloc *alloc)
{
    struct bitset cpus;
    uint32_t fresh = alloc->cpus;

    if (str_is_empty(alloc->cpu_ids))
        return fresh;
    bitset_init(&cpus, node->cpu_span);
    if (bitset_parse(&cpus, alloc->cpu_ids)) {
        bitset_minus(&cpus, &node->cpu_ids);
        fresh = (uint32_t)bitset_count(&cpus);
    }
    bitset_done(&cpus);
    return fresh;
}

static uint64_t alloc_gres(const struct node *node, const NodeAlloc *alloc, size_t gres)
{
    uint64_t count = 0;

    for (size_t i = 0; i < alloc->n_gres; i++)
        count += resv_gres_at(node, alloc->gres[i]->name, alloc->gres[i]->type) == gres
                     ? alloc->gres[i]->count
                     : 0;
    return count;
}

/* (1) */
static bool fits_part(const struct reservation *own, const struct resv_part *part,
                      const struct node *node, const NodeAlloc *alloc)
{
    struct resv_part use = used_by(own, node);

    if (part->cpus && use.cpus + alloc->cpus > part->cpus)
        return false;
    for (size_t i = 0; i < node->gres_count && i < RESV_GRES; i++) {
        if (part->gres[i] && use.gres[i] + alloc_gres(node, alloc, i) > part->gres[i])
            return false;
    }
    return true;
}

/* Is so much left that others have what is theirs? */
static bool leaves(const struct node *node, const NodeAlloc *alloc, const struct reservation *other,
                   const struct resv_part *part)
{
    struct resv_part use = used_by(other, node);
    uint64_t rest = part->cpus - MIN(use.cpus, part->cpus);

    if (rest && node->cpus_used + fresh_cpus(node, alloc) + rest > node->cpus)
        return false;
    for (size_t i = 0; i < node->gres_count && i < RESV_GRES; i++) {
        uint64_t takes = alloc_gres(node, alloc, i);
        rest = part->gres[i] - MIN(use.gres[i], part->gres[i]);
        if (takes && rest && node->gres[i].used + takes + rest > node->gres[i].total)
            return false;
    }
    return true;
}

bool resv_lends(const struct reservation *resv, const struct shape *shape)
{
    return shape->resv_warn_s && shape->resv_warn_s <= resv->spec->max_start_delay_s;
}

static int check_node(const struct state *state, const struct job *job,
                      const struct reservation *own, const struct node *node,
                      const NodeAlloc *alloc, struct err *err)
{
    const struct resv_part *part = own ? resv_part_of(own, node->number) : NULL;

    if (own && !(own->flags & (RESV_FLEX | RESV_ANY_NODES))) {
        if (!bitset_has(&own->nodes, node->number) || (part && !fits_part(own, part, node, alloc)))
            return refuse(err, node->spec->name, own);
    }
    vec_each (struct reservation *, at, &state->reservations) {
        if (*at == own || !holds_now(state, *at) || !bitset_has(&(*at)->nodes, node->number) ||
            resv_lends(*at, job->shape))
            continue;
        part = resv_part_of(*at, node->number);
        if (!part || !leaves(node, alloc, *at, part))
            return refuse(err, node->spec->name, *at);
    }
    return 0;
}

static int own_of(const struct state *state, const struct job *job, const Allocation *allocation,
                  const struct reservation **out, struct err *err)
{
    *out = NULL;
    if (str_is_empty(allocation->reservation))
        return job->shape->reservation ? err_code(err, ERR_RESERVATION_INVALID) : 0;
    const struct reservation *own = reservation_at(state, allocation->reservation);
    if (!own || own->over || (!own->active && !(own->flags & RESV_FLEX)))
        return err_code(err, ERR_RESERVATION_NOT_USABLE);
    if (!resv_admits_job(own, job) ||
        (job->owner->uid && !resv_admits_partition(own, allocation->partition)))
        return err_code(err, ERR_RESERVATION_ACCESS);
    *out = own;
    return 0;
}

int resv_check_start(const struct state *state, const struct job *job, const Allocation *allocation,
                     const struct alloc_parts *parts, struct err *err)
{
    const struct reservation *own;
    int code = own_of(state, job, allocation, &own, err);

    for (size_t i = 0; code == 0 && i < parts->count && state->reservations.len; i++) {
        if (parts->of[i].node) /* said elsewhere */
            code = check_node(state, job, own, parts->of[i].node, parts->of[i].alloc, err);
    }
    return code;
}

static bool is_free(const struct state *state, const struct shape_licence *want, const char *resv)
{
    const struct licence *licence = state_licence(state, want->name);
    uint64_t gone =
        licence ? (uint64_t)licence->used + resv_licences_kept(state, resv, want->name) : 0;

    return licence && want->count + gone <= licence->total;
}

bool licences_choose(const struct state *state, const struct shape *shape,
                     const Allocation *allocation, uint32_t *choice)
{
    const char *named = allocation->licenses;

    *choice = 0;
    for (size_t i = 0; i < shape->licence_count; i++) {
        bool good = is_free(state, &shape->licences[i], allocation->reservation);
        if (!shape->licence_any && !good)
            return false;
        if (shape->licence_any && good &&
            (str_is_empty(named) || str_eq(named, shape->licences[i].name))) {
            *choice = (uint32_t)i;
            return true;
        }
    }
    return !shape->licence_any;
}
