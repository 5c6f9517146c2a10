/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.c - which hosts a job gets
 *
 * One host that has room for all of it, where that is allowed; else as many as asked, each with its
 * share; else those with most room first until it is enough. Kinds in their order, and of a kind
 * the host that has least left, so that what is free stays in one piece.
 *
 * (1) A host is taken only after fit_units() said yes to its exact room: grids only order and skip.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "core/resv.h"
#include "sched/place/chooser.h"

static unsigned run_out(const struct host *host, uint32_t job_id)
{
    for (size_t i = 0; i < host->running.len; i++) {
        if (host->running.items[i].job_id == job_id)
            return host->running.items[i].out;
    }
    return HOST_JOB_STAYS;
}

/* It is no company then; one that lends its CPUs is none either. */
bool run_is_out(const struct host *host, uint32_t job_id)
{
    unsigned out = run_out(host, job_id);

    return out == HOST_JOB_GONE || out == HOST_JOB_LENDS;
}

/* Somebody there minds the company of others, or the job does, and they are not alike. */
static bool company_suits(const struct chooser *c, const struct host *host)
{
    unsigned mind = c->family->exclusive;
    bool later = c->view.start_us > c->view.now_us;

    if (!mind && !host->exclusive)
        return true;
    for (const struct claim *claim = host->claims; claim; claim = claim->next) {
        if (later && claim->end_us <= c->view.start_us)
            continue;
        if (((mind | claim->exclusive) & EXCLUDES_USER && claim->uid != c->job->owner->uid) ||
            ((mind | claim->exclusive) & EXCLUDES_MCS &&
             claim->mcs != mcs_hash(c->shape->mcs_label)))
            return false;
    }
    for (size_t i = 0; i < host->node->jobs.len; i++) {
        const struct job *other = host->node->jobs.items[i];
        if (other->run->lent || (c->view.without && run_is_out(host, other->id)) ||
            (later && job_runs_until(other) <= c->view.start_us))
            continue;
        unsigned both = mind | job_exclusive_kind(c->sched, other);
        if ((both & EXCLUDES_USER && other->owner->uid != c->job->owner->uid) ||
            (both & EXCLUDES_MCS && !str_eq(other->shape->mcs_label, c->shape->mcs_label)))
            return false;
    }
    return true;
}

/* What the partition's jobs may have more there at the start of the view. */
static uint32_t partition_room(const struct chooser *c, const struct host *host)
{
    const struct node *node = host->node;
    uint32_t most = need_cpus(c->need, node);
    uint64_t used = 0;

    for (size_t i = 0; i < node->jobs.len; i++) {
        const struct job *job = node->jobs.items[i];
        bool ends = c->view.without ? run_is_out(host, job->id)
                                    : c->view.start_us > c->view.now_us &&
                                          job_runs_until(job) <= c->view.start_us;
        if (ends || !str_eq(job->run->partition, c->need->partition->spec->name))
            continue;
        for (unsigned k = 0; k < job->run->count; k++)
            used += job->run->parts[k].node == node ? job->run->parts[k].cpus : 0;
    }
    for (const struct claim *claim = host->claims; claim; claim = claim->next)
        used += claim->partition == c->need->partition->number ? claim->amount->cpus : 0;
    for (size_t i = 0; c->view.forecast && i < host->forecasts.len; i++) {
        const struct block *tried = &host->forecasts.items[i];
        used += tried->partition == c->need->partition->number + 1 ? tried->amount->cpus : 0;
    }
    return used < most ? most - (uint32_t)used : 0;
}

/* Does it matter who is on its leaf switch? For the others only now: who minds them later is not looked at. */
static bool exclusive_leaf(const struct chooser *c)
{
    return c->shape->exclusive_topo ||
           (c->sched->hosts->topo_exclusive && c->view.start_us <= c->view.now_us);
}

/* What is known of the host in a search; NULL: nothing is kept, or other hosts matter too. */
static struct seen_room *seen_of(const struct chooser *c, uint32_t number)
{
    struct search *search = c->view.search;
    bool kept =
        search && search->keeps && c->view.start_us == search->seen_us && !exclusive_leaf(c);

    return kept ? &search->seen.items[number] : NULL;
}

void place_room(const struct chooser *c, uint32_t number, struct room_at *at)
{
    const struct host *host = &c->sched->hosts->list.items[number];
    const struct seen_room *seen = seen_of(c, number);
    struct view view = c->view;

    if (seen && seen->turn == view.search->seen_turn && seen->units) {
        *at = seen->room;
        return;
    }

    view.share = c->need->share;
    if (host->bound || view.start_us > view.now_us || view.share > 1 ||
        (view.forecast && host->forecasts.len))
        host_room(c->sched, host, &view, at);
    else
        *at = host->free;
    if (c->need->max_cpus_per_node || c->need->max_cpus_per_socket)
        at->cpus = MIN(at->cpus, partition_room(c, host));
}

/* Of so many tasks, those that sockets have room for now. */
static uint32_t on_sockets(const struct chooser *c, const struct host *host, uint32_t tasks)
{
    bool now = c->view.start_us <= c->view.now_us && !c->view.without;

    return now ? pick_socket_tasks(host, c->shape, c->need, tasks) : tasks;
}

/* (1) */
static uint32_t ask_units(struct chooser *c, uint32_t number, struct room_at *at)
{
    const struct host *host = &c->sched->hosts->list.items[number];
    const struct view *view = &c->view;

    c->looked++;
    if (!host->usable)
        return 0;
    if (view->start_us <= view->now_us && host->whole)
        return 0;
    if (!company_suits(c, host))
        return 0;
    if (exclusive_leaf(c) && !leaf_suits(c, number))
        return 0;
    place_room(c, number, at);
    struct room room = { at->cpus, at->mem_mb, at->gres, at->empty };
    uint32_t units = fit_units(c->shape, c->need, host->node, &room);
    if (units && c->need->lone && view->start_us <= view->now_us)
        units = lone_tasks(c, host, units);
    if (units && c->family->by_socket && !sockets_suit(c, host, NULL))
        return 0;
    if (units && !c->shape->dealt)
        units = on_sockets(c, host, units);
    return units && c->need->bound ? bound_units(c, host, &room, units) : units;
}

uint32_t units_at(struct chooser *c, uint32_t number, struct room_at *at)
{
    struct seen_room *seen = seen_of(c, number);

    if (seen && seen->turn == c->view.search->seen_turn) {
        *at = seen->room;
        return seen->units;
    }
    if (!exclusive_leaf(c) &&
        !search_may(c->view.search, host_effort(&c->sched->hosts->list.items[number])))
        return 0;
    uint32_t units = ask_units(c, number, at);
    if (seen) {
        seen->units = units;
        if (units)
            seen->room = *at;
        seen->turn = c->view.search->seen_turn;
    }
    return units;
}

void candidates_clear(struct chooser *c)
{
    vec_clear(&c->sched->place->candidates);
    sums_init(&c->sums, c->shape);
}

/* How much it has room for of what the job wants besides. */
static void also_at(const struct chooser *c, uint32_t number, struct take *out)
{
    const struct host *host = &c->sched->hosts->list.items[number];
    uint32_t also[TAKE_GRES];
    struct room_at at;

    place_room(c, number, &at);
    struct room room = { at.cpus, at.mem_mb, at.gres, at.empty };
    fit_also(c->shape, c->need, host->node, &room, also);
    for (size_t i = 0; i < c->shape->also_count; i++) {
        bool tasks = c->shape->also[i].gres == TAKE_GRES;
        out->gres[i] = tasks ? on_sockets(c, host, also[i]) : also[i];
    }
}

void candidate(struct chooser *c, uint32_t number, uint32_t units)
{
    struct chosen one = { .host = number, .take = { .tasks = units } };

    if (c->shape->also_count)
        also_at(c, number, &one.take);
    vec_push(&c->sched->place->candidates, one);
    sums_add(&c->sums, c->shape, &one);
}

int chosen_by_units(const void *a, const void *b)
{
    const struct chosen *x = a, *y = b;

    if (x->take.tasks != y->take.tasks)
        return x->take.tasks > y->take.tasks ? -1 : 1;
    return x->host < y->host ? -1 : x->host > y->host;
}

bool enough(struct chooser *c, size_t must)
{
    const struct shape *shape = c->shape;
    size_t used = 0, most = MIN(c->sched->place->candidates.len, (size_t)shape->max_nodes);
    struct sums sums;

    sums_init(&sums, shape);
    while (used < most && (used < MAX(must, (size_t)shape->wish_nodes) || !sums_do(&sums, shape)))
        sums_add(&sums, shape, &c->sched->place->candidates.items[used++]);
    if (used < MAX(must, (size_t)shape->min_nodes) || !sums_do(&sums, shape))
        return false;
    c->sched->place->candidates.len = used;
    return true;
}

/* What must be freed at least before it can fit. */
static uint32_t missing(const struct chooser *c, struct family *family)
{
    const struct shape *shape = c->shape;
    size_t hosts = c->sched->place->candidates.len;

    family->by_tasks = hosts >= shape->min_nodes;
    if (shape->min_nodes <= 1 && (shape->max_nodes <= 1 || shape->units <= 1))
        return 1;
    if (!family->by_tasks)
        return (uint32_t)(shape->min_nodes - hosts);
    return c->sums.units < shape->units ? (uint32_t)(shape->units - c->sums.units) : 1;
}

/*
 * A job that asks for a reservation is ended with it, whatever its limit; one that is only drawn into
 * it must fit.
 */
static void use_reservation(struct chooser *c, const struct reservation *resv, int64_t end_us)
{
    int64_t over_us = resv ? resv_over_run_us(c->sched->state, resv) : INT64_MAX;

    c->resv = resv;
    c->view.resv = resv_hash(resv ? resv->spec->name : NULL);
    c->view.warn_s = c->shape->resv_warn_s;
    c->view.end_us = end_us;
    if (c->shape->reservation && over_us != INT64_MAX)
        c->view.end_us = MIN(end_us, resv->spec->end_us + over_us);
}

static void chooser_init(struct chooser *c, struct sched *sched, struct family *family,
                         size_t partition, const struct job *job, const struct view *view)
{
    *c = (struct chooser){ .sched = sched, .family = family, .shape = family->shape, .job = job };
    c->need = &shape_needs(sched->state, family->shape)[partition];
    c->asks = &family_asks(sched, family)[partition * family->kinds];
    c->view = *view;
    size_t at = 0;
    /* the first there is; place() tries the others */
    use_reservation(c, family->shape->reservation ? resv_next_for(sched->state, job, &at) : NULL,
                    view->end_us);
    /* Spare hosts are all that a long job can use, unless it comes for what was kept for it. */
    c->bound = view->mine || view->order.id || view->end_us <= sched->hosts->last_block_us;
    c->down = sched->place->least_loaded || (c->need->partition && c->need->partition->spec->lln);
}

uint32_t place_tasks_at(struct sched *sched, struct family *family, size_t partition,
                        const struct job *job, const struct view *view, uint32_t host)
{
    struct chooser c;
    struct room_at at;

    chooser_init(&c, sched, family, partition, job, view);
    return units_at(&c, host, &at);
}

static bool place_one(struct chooser *c)
{
    /* The grids know what is free now. */
    if (!c->family->particular && !c->resv && c->need->share <= 1 &&
        c->view.start_us <= c->view.now_us)
        return place_by_grid(c);
    return place_by_scan(c);
}

static bool place_in(struct chooser *c)
{
    return place_sized(c, place_one);
}

/* For jobs of this partition? */
static bool resv_is_open(const struct chooser *c)
{
    return c->job->owner->uid == 0 ||
           resv_admits_partition(c->resv, c->need->partition->spec->name);
}

static bool has_licences(struct chooser *c, struct parts *parts)
{
    c->no_licence =
        c->shape->licence_count && !licences_fit(c->sched, c->family, &c->view, &parts->licence);
    return !c->no_licence;
}

/* In one of the reservations it may use, in order; at last in none, if it asked for none. */
static bool place_with(struct chooser *c, int64_t end_us, struct parts *parts)
{
    const struct reservation *resv;
    size_t at = 0;

    while ((resv = resv_next_for(c->sched->state, c->job, &at))) {
        use_reservation(c, resv, end_us);
        c->bound = true;
        if (!resv->over && resv_is_open(c) && has_licences(c, parts) && place_in(c) &&
            place_distribute(c, parts))
            return true;
    }
    if (c->shape->reservation)
        return false;
    use_reservation(c, NULL, end_us);
    c->bound = c->view.mine || c->view.order.id || c->view.end_us <= c->sched->hosts->last_block_us;
    return has_licences(c, parts) && place_in(c) && place_distribute(c, parts);
}

bool family_may_use(struct sched *sched, const struct family *family, size_t partition)
{
    const struct need *need = &shape_needs(sched->state, family->shape)[partition];

    return mask_has(&family->mask, partition) && need->partition && need->fits;
}

bool place(struct sched *sched, struct family *family, const struct job *job,
           const struct view *view, struct parts *parts, uint32_t *short_of)
{
    struct chooser c;

    *short_of = UINT32_MAX;
    family_asks(sched, family);
    for (size_t i = 0; i < family->shape->partition_count; i++) {
        size_t p = family->turns[i];
        if (!family_may_use(sched, family, p))
            continue;
        chooser_init(&c, sched, family, p, job, view);
        bool good = place_with(&c, view->end_us, parts);
        sched->looked += c.looked;
        if (good)
            return true;
        *short_of = MIN(*short_of, c.no_licence ? 1 : missing(&c, family));
    }
    return false;
}

/* Of many hosts that takes as long as looking at them: in a search it may have a slice of its own. */
static bool distribute_in_time(struct chooser *c, struct parts *parts)
{
    return search_may(c->view.search, c->sched->place->candidates.len) &&
           place_distribute(c, parts);
}

/* GPUs are to be of few nodes: the roomiest of these. */
static bool few_among(struct chooser *c, const uint32_t *hosts, size_t count)
{
    struct room_at at;

    for (size_t i = 0; i < count && !search_paused(c->view.search); i++) {
        uint32_t able = units_at(c, hosts[i], &at);
        if (able)
            candidate(c, hosts[i], able);
    }
    c->sched->looked += c->looked;
    if (search_paused(c->view.search) || !sums_do(&c->sums, c->shape))
        return false;
    qsort(c->sched->place->candidates.items, c->sched->place->candidates.len, sizeof(struct chosen),
          chosen_by_units);
    return enough(c, 0);
}

bool place_among(struct sched *sched, struct family *family, size_t partition,
                 const struct job *job, const struct view *view, const uint32_t *hosts,
                 size_t count, struct parts *parts)
{
    const struct shape *shape = family->shape;
    struct chooser c;
    struct room_at at;

    chooser_init(&c, sched, family, partition, job, view);
    if (family->particular)
        return place_in(&c) && place_distribute(&c, parts);
    candidates_clear(&c);
    if (shape->dealt && shape->max_nodes > 1)
        return few_among(&c, hosts, count) && distribute_in_time(&c, parts);
    /* First one host for all of it, if that is allowed. */
    for (size_t i = 0; shape->min_nodes == 1 && !sched->place->candidates.len && i < count &&
                       !search_paused(view->search);
         i++) {
        if (units_at(&c, hosts[i], &at) >= shape->units)
            candidate(&c, hosts[i], shape->units);
        if (sched->place->candidates.len && !sums_do(&c.sums, shape))
            candidates_clear(&c);
    }
    for (size_t i = 0; !sums_do(&c.sums, shape) || sched->place->candidates.len < shape->min_nodes;
         i++) {
        if (i == count || sched->place->candidates.len == shape->max_nodes ||
            search_paused(view->search))
            return false;
        uint32_t able = units_at(&c, hosts[i], &at);
        if (able)
            candidate(&c, hosts[i], able);
    }
    sched->looked += c.looked;
    return distribute_in_time(&c, parts);
}

void parts_names(const struct sched *sched, const struct parts *parts, struct str *out)
{
    CLEANUP(hostlist_done) struct hostlist list = { 0 };

    for (size_t i = 0; i < parts->list.len; i++)
        hostlist_push(&list, sched->hosts->list.items[parts->list.items[i].host].node->spec->name,
                      NULL);
    hostlist_format(&list, out);
}
