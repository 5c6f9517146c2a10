/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain_nodes.c - which nodes could run a job, and why the others could not
 */
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/timefmt.h"
#include "core/resv.h"
#include "sched/explain/explain.h"

enum { NAMES_SHOWN = 160, KEPT_SHOWN = 4 };

/* Why a node of the job's partitions does not serve it now, the gravest first. */
enum bar {
    BAR_DOWN,
    BAR_DRAIN,
    BAR_AWAY,
    BAR_MAINT,
    BAR_RESERVED,
    BAR_EXCLUDED,
    BAR_NOT_LISTED,
    BAR_FEATURES,
    BAR_SMALL,
    BAR_PARTLY,
    BAR_BUSY,
    BAR_SOON,
    BAR_KEPT,
    BAR_NONE,
};

static const char *const bar_words[] = {
    [BAR_DOWN] = "down",
    [BAR_DRAIN] = "drained",
    [BAR_AWAY] = "not ready",
    [BAR_MAINT] = "reserved for maintenance",
    [BAR_RESERVED] = "reserved for others",
    [BAR_EXCLUDED] = "excluded by the job",
    [BAR_NOT_LISTED] = "not among those the job names",
    [BAR_FEATURES] = "without the features it asks for",
    [BAR_SMALL] = "too small",
    [BAR_PARTLY] = "partly reserved for others",
    [BAR_BUSY] = "busy",
    [BAR_SOON] = "reserved for others before it would end",
    [BAR_KEPT] = "kept for jobs before it",
    [BAR_NONE] = "free",
};

static bool is_maint(const struct reservation *resv)
{
    for (size_t i = 0; i < resv->spec->n_flags; i++) {
        if (str_ieq(resv->spec->flags[i], "MAINT"))
            return true;
    }
    return false;
}

/* Nodes that wholly belong to somebody else now. */
static void reserved_nodes(const struct sched *sched, const struct shape *shape,
                           struct bitset *others, struct bitset *maint)
{
    bitset_init(others, sched->hosts->list.len);
    bitset_init(maint, sched->hosts->list.len);
    for (size_t i = 0; i < state_reservation_count(sched->state); i++) {
        const struct reservation *resv = state_reservation_at(sched->state, i);
        if (!resv->active || resv->nodes.bits != others->bits || resv_lends(resv, shape) ||
            (shape->reservation && str_eq(shape->reservation, resv->spec->name)))
            continue;
        bitset_each (n, &resv->nodes) {
            if (!resv_part_of(resv, (uint32_t)n))
                bitset_add(is_maint(resv) ? maint : others, n);
        }
    }
}

/* The nodes that the job names with -w; no words when it names none. */
static void named_nodes(const struct sched *sched, const struct shape *shape, struct bitset *out)
{
    *out = (struct bitset){ 0 };
    if (shape->nodelist && state_node_set(sched->state, shape->nodelist, out, NULL) < 0)
        *out = (struct bitset){ 0 };
}

void explain_hosts(const struct sched *sched, const struct family *family, struct bitset *out)
{
    const struct need *needs = shape_needs(sched->state, family->shape);
    uint32_t least = family->shape->min_nodes;
    struct bitset named;

    bitset_init(out, sched->hosts->list.len);
    for (size_t i = 0; i < family->shape->partition_count; i++) {
        if (needs[i].partition && needs[i].nodes.bits == out->bits)
            bitset_or(out, &needs[i].nodes);
        least = MAX(least, needs[i].least_nodes);
    }
    named_nodes(sched, family->shape, &named);
    if (named.words && bitset_count(&named) >= least)
        bitset_and(out, &named); /* these are enough: it takes no others */
    bitset_done(&named);
}

static void add_names(const struct sched *sched, const struct bitset *nodes, struct str *out)
{
    CLEANUP(hostlist_done) struct hostlist list = { 0 };
    struct str names = { 0 };

    bitset_each (n, nodes)
        hostlist_push(&list, sched->hosts->list.items[n].node->spec->name, NULL);
    hostlist_format(&list, &names);
    if (names.len > NAMES_SHOWN)
        str_addf(out, "%.*s...", NAMES_SHOWN, str_text(&names));
    else
        str_add(out, str_text(&names));
    str_done(&names);
}

/* As Slurm says it: the nodes that are away, or that others may have reserved them. */
static char *missing_text(const struct sched *sched, const struct bitset *away, bool maint)
{
    struct str text = { 0 };

    if (!bitset_is_empty(away)) {
        str_add(&text, "ReqNodeNotAvail, UnavailableNodes:");
        add_names(sched, away, &text);
    } else {
        str_add(&text, maint ? "ReqNodeNotAvail, Reserved for maintenance"
                             : "ReqNodeNotAvail, May be reserved for other job");
    }
    return str_take(&text);
}

void explain_count(const struct sched *sched, struct family *family)
{
    struct bitset could, away, others, maint, named;

    if (family->counted == sched->epoch + 1)
        return;
    family->counted = sched->epoch + 1;
    explain_hosts(sched, family, &could);
    reserved_nodes(sched, family->shape, &others, &maint);
    named_nodes(sched, family->shape, &named);
    bitset_init(&away, sched->hosts->list.len);
    family->could = (uint32_t)bitset_count(&could);
    bool must = false; /* a node it cannot do without is missing */
    bool for_maint = bitset_meets(&could, &maint);
    bitset_each (n, &could) {
        if (!sched->hosts->list.items[n].usable)
            bitset_add(&away, n);
        else if (!bitset_has(&others, n) && !bitset_has(&maint, n))
            continue;
        must = must || (named.words && bitset_has(&named, n));
    }
    bitset_or(&others, &maint);
    bitset_or(&others, &away);
    family->usable = family->could - (uint32_t)bitset_count_both(&could, &others);
    free(family->missing);
    family->missing = must || family->usable < MAX(family->shape->min_nodes, 1)
                          ? missing_text(sched, &away, for_maint)
                          : NULL;
    bitset_done(&could);
    bitset_done(&away);
    bitset_done(&others);
    bitset_done(&maint);
    bitset_done(&named);
}

void explain_room(const struct sched *sched, const struct shape *shape, const struct host *host,
                  struct room_at *out)
{
    const struct view view = { .now_us = sched->now_us,
                               .start_us = sched->now_us,
                               .resv = resv_hash(shape->reservation) };

    *out = host->free;
    for (size_t i = 0; i < host->blocks.len; i++) {
        const struct block *block = &host->blocks.items[i];
        if (!block->job_id && block->amount && block->start_us <= sched->now_us &&
            block->end_us > sched->now_us)
            room_keep(host, &view, block, sched->now_us, out);
    }
}

/* Has a host with so much free room for a part of the job? */
static bool has_room(const struct sched *sched, const struct family *family,
                     const struct need *needs, uint32_t n, const struct room_at *at)
{
    const struct host *host = &sched->hosts->list.items[n];
    struct room room = { .mem_mb = at->mem_mb,
                         .gres = at->gres,
                         .empty = host->node->jobs.len == 0 };
    const struct shape *shape = family->shape;
    /* So many of its tasks one of its nodes has at least. */
    uint32_t least = shape->max_nodes == UINT32_MAX || !shape->max_nodes
                         ? 1
                         : MAX((shape->units + shape->max_nodes - 1) / shape->max_nodes, 1);

    for (size_t p = 0; p < family->shape->partition_count; p++) {
        const struct need *need = &needs[p];
        if (!need->partition || !bitset_has(&need->nodes, n) ||
            (need->whole_nodes && !room.empty) || host->node->jobs_whole)
            continue;
        room.cpus = at->cpus / need_unit(need, host->node) * need_unit(need, host->node);
        if (fit_units(family->shape, need, host->node, &room) >= least)
            return true;
    }
    return false;
}

struct judge {
    const struct family *family;
    struct view view; /* its run, if it started now */
    const struct need *needs;
    struct bitset could, others, maint, excluded, named;
};

/* The first job that the host is kept for while this one would run; 0: none. */
static uint32_t keeper_of(const struct host *host, const struct view *view)
{
    const struct block *first = NULL;

    for (size_t i = 0; i < host->blocks.len; i++) {
        const struct block *block = &host->blocks.items[i];
        if (block->job_id && block->start_us < view->end_us && block_hinders(block, view) &&
            (!first || block->start_us < first->start_us))
            first = block;
    }
    return first ? first->job_id : 0;
}

static enum bar bar_of(const struct sched *sched, const struct judge *judge, uint32_t n)
{
    const struct shape *shape = judge->family->shape;
    const struct node *node = sched->hosts->list.items[n].node;

    if (judge->excluded.words && bitset_has(&judge->excluded, n))
        return BAR_EXCLUDED;
    if (judge->named.words && !bitset_has(&judge->named, n) && !bitset_has(&judge->could, n))
        return BAR_NOT_LISTED;
    if (!bitset_has(&judge->could, n))
        return features_could(&shape->features, shape->min_nodes, node) ? BAR_SMALL : BAR_FEATURES;
    if (!sched->hosts->list.items[n].usable)
        return node->state == NODE_DOWN || node->state == NODE_UNKNOWN ? BAR_DOWN
               : node->flags & (NODE_FLAG_DRAIN | NODE_FLAG_FAIL)      ? BAR_DRAIN
                                                                       : BAR_AWAY;
    if (bitset_has(&judge->maint, n))
        return BAR_MAINT;
    if (bitset_has(&judge->others, n))
        return BAR_RESERVED;
    struct room_at room;
    explain_room(sched, shape, &sched->hosts->list.items[n], &room);
    if (has_room(sched, judge->family, judge->needs, n, &room)) {
        host_room(sched, &sched->hosts->list.items[n], &judge->view, &room);
        if (has_room(sched, judge->family, judge->needs, n, &room))
            return BAR_NONE;
        return keeper_of(&sched->hosts->list.items[n], &judge->view) ? BAR_KEPT : BAR_SOON;
    }
    bool but_for =
        has_room(sched, judge->family, judge->needs, n, &sched->hosts->list.items[n].free);
    return but_for ? BAR_PARTLY : BAR_BUSY;
}

/* The reason that an administrator gave, when it is the same for all of them. */
static const char *common_reason(const struct sched *sched, const struct bitset *nodes)
{
    const char *reason = NULL;

    bitset_each (n, nodes) {
        const char *own = sched->hosts->list.items[n].node->reason;
        if (!own || (reason && !str_eq(own, reason)))
            return NULL;
        reason = own;
    }
    return reason;
}

static const char *common_reservation(const struct sched *sched, const struct bitset *nodes)
{
    const char *name = NULL;

    bitset_each (n, nodes) {
        const char *own = resv_node_name(sched->state, sched->hosts->list.items[n].node);
        if (!own || (name && !str_eq(own, name)))
            return NULL;
        name = own;
    }
    return name;
}

static void add_keeper(const struct sched *sched, const struct judge *judge,
                       const struct bitset *nodes, struct str *out)
{
    uint32_t keeper = 0;

    bitset_each (n, nodes) {
        uint32_t own = keeper_of(&sched->hosts->list.items[n], &judge->view);
        if (keeper && own != keeper)
            return;
        keeper = own;
    }
    str_addf(out, ": job %u", keeper);
}

static void add_kept(const struct node *node, const struct resv_part *part, struct str *out)
{
    const char *comma = " ";

    if (part->cpus)
        str_addf(out, "%s%u CPU%s", comma, part->cpus, part->cpus == 1 ? "" : "s");
    comma = part->cpus ? ", " : " ";
    for (size_t i = 0; i < node->gres_count && i < RESV_GRES; i++) {
        if (!part->gres[i])
            continue;
        str_addf(out, "%s%llu %s", comma, (unsigned long long)part->gres[i], node->gres[i].name);
        comma = ", ";
    }
}

void explain_kept(const struct sched *sched, const struct family *family, int64_t now_us,
                  struct str *out)
{
    struct bitset could;
    unsigned said = 0;

    explain_hosts(sched, family, &could);
    for (size_t i = 0; i < state_reservation_count(sched->state) && said < KEPT_SHOWN; i++) {
        const struct reservation *resv = state_reservation_at(sched->state, i);
        if (!resv->active || resv->nodes.bits != could.bits ||
            str_eq(resv->spec->name, family->shape->reservation))
            continue;
        bitset_each (n, &resv->nodes) {
            const struct resv_part *part = resv_part_of(resv, (uint32_t)n);
            if (!part || !bitset_has(&could, n) || said == KEPT_SHOWN)
                continue;
            str_addf(out, "%sreservation %s keeps", said++ ? "; " : "", resv->spec->name);
            add_kept(sched->hosts->list.items[n].node, part, out);
            str_addf(out, " of %s for ", sched->hosts->list.items[n].node->spec->name);
            timefmt_write_duration(out, MAX(resv->spec->end_us - now_us, 0) / 1000000,
                                   TIMEFMT_SHORT);
        }
    }
    bitset_done(&could);
}

static void add_bars(const struct sched *sched, const struct judge *judge,
                     const struct bitset *by_bar, struct str *out)
{
    const char *comma = " ";

    for (enum bar bar = BAR_DOWN; bar <= BAR_NONE; bar++) {
        size_t count = bitset_count(&by_bar[bar]);
        if (!count)
            continue;
        str_addf(out, "%s%zu %s (", comma, count, bar_words[bar]);
        add_names(sched, &by_bar[bar], out);
        const char *reason = bar <= BAR_AWAY ? common_reason(sched, &by_bar[bar]) : NULL;
        if (bar == BAR_MAINT || bar == BAR_RESERVED || bar == BAR_PARTLY)
            reason = common_reservation(sched, &by_bar[bar]);
        if (reason)
            str_addf(out, ": %.80s", reason);
        if (bar == BAR_KEPT)
            add_keeper(sched, judge, &by_bar[bar], out);
        str_add_char(out, ')');
        comma = ", ";
    }
}

void explain_nodes(const struct sched *sched, struct family *family, const struct job *job,
                   struct str *out)
{
    struct judge judge = { .family = family, .needs = shape_needs(sched->state, family->shape) };
    struct bitset by_bar[BAR_NONE + 1], all;
    const char *comma = "nodes of ";

    judge.view = (struct view){ .now_us = sched->now_us,
                                .start_us = sched->now_us,
                                .end_us = job_end_by(job, sched->now_us),
                                .mine = job->id,
                                .resv = resv_hash(family->shape->reservation) };
    bitset_init(&all, sched->hosts->list.len);
    for (enum bar bar = BAR_DOWN; bar <= BAR_NONE; bar++)
        bitset_init(&by_bar[bar], sched->hosts->list.len);
    explain_hosts(sched, family, &judge.could);
    reserved_nodes(sched, family->shape, &judge.others, &judge.maint);
    named_nodes(sched, family->shape, &judge.named);
    if (family->shape->exclude)
        state_node_set(sched->state, family->shape->exclude, &judge.excluded, NULL);
    for (size_t p = 0; p < family->shape->partition_count; p++) {
        const struct partition *partition = judge.needs[p].partition;
        if (!partition || partition->nodes.bits != all.bits)
            continue;
        bitset_or(&all, &partition->nodes);
        str_addf(out, "%s%s", comma, partition->spec->name);
        comma = ", ";
    }
    bitset_each (n, &all)
        bitset_add(&by_bar[bar_of(sched, &judge, (uint32_t)n)], n);
    str_add(out, bitset_is_empty(&all) ? "none" : ":");
    add_bars(sched, &judge, by_bar, out);
    for (enum bar bar = BAR_DOWN; bar <= BAR_NONE; bar++)
        bitset_done(&by_bar[bar]);
    bitset_done(&all);
    bitset_done(&judge.could);
    bitset_done(&judge.others);
    bitset_done(&judge.maint);
    bitset_done(&judge.excluded);
    bitset_done(&judge.named);
}
