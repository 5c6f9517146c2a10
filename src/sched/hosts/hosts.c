/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hosts.c - what each node has free now
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/must.h"
#include "sched/hosts/hosts.h"

static uint64_t less(uint64_t total, uint64_t used)
{
    return total > used ? total - used : 0;
}

/* ---- what is free ---- */

uint64_t mcs_hash(const char *label)
{
    return label ? hash_bytes(label, strlen(label), 1) | 1 : 0;
}

unsigned job_exclusive_kind(const struct sched *sched, const struct job *job)
{
    const struct partition *partition = state_partition(sched->state, job->run->partition);
    bool user = job->shape->exclusive_user || (partition && partition->spec->exclusive_user);

    return (user ? EXCLUDES_USER : 0) | (job->shape->exclusive_mcs ? EXCLUDES_MCS : 0);
}

static bool is_exclusive(const struct sched *sched, const struct host *host)
{
    if (!sched->hosts->exclusive)
        return false;
    for (const struct claim *claim = host->claims; claim; claim = claim->next) {
        if (claim->exclusive)
            return true;
    }
    for (size_t i = 0; i < host->node->jobs.len; i++) {
        if (job_exclusive_kind(sched, host->node->jobs.items[i]))
            return true;
    }
    return false;
}

/* priv (1) */
static void read_free(const struct sched *sched, struct host *host)
{
    const struct node *node = host->node;
    struct room_at *room = &host->free;
    uint64_t cpus = node->cpus_used, mem = node->mem_used_mb, gres[TAKE_GRES];
    size_t kinds = MIN(node->gres_count, (size_t)TAKE_GRES);

    host->jobs = node->jobs_active;
    host->whole = node->jobs_whole;
    for (size_t i = 0; i < kinds; i++)
        gres[i] = node->gres[i].used;
    for (const struct claim *claim = host->claims; claim; claim = claim->next) {
        cpus += claim->fresh_cpus;
        mem += claim->amount->mem_mb;
        host->whole = host->whole || claim->amount->whole;
        host->jobs++;
        for (size_t i = 0; i < kinds; i++)
            gres[i] += claim->amount->gres[i];
    }
    host->exclusive = is_exclusive(sched, host);
    room->cpus = host->whole ? 0 : (uint32_t)less(node->cpus, cpus);
    room->cpus -= room->cpus % node->threads;
    room->mem_mb = less(node->mem_mb, mem);
    for (size_t i = 0; i < kinds; i++)
        room->gres[i] = less(node->gres[i].total, gres[i]);
    for (size_t i = 0; i < kinds; i++) {
        if (node->gres[i].base_at)
            gres_shares_room(host, i, room->gres);
    }
    room->empty = host->jobs == 0;
}

static bool is_roomier(const struct host *host, const struct room_at *is, const struct room_at *was)
{
    if (is->cpus > was->cpus || is->mem_mb > was->mem_mb || (is->empty && !was->empty))
        return true;
    for (size_t i = 0; i < host->node->gres_count && i < TAKE_GRES; i++) {
        if (is->gres[i] > was->gres[i])
            return true;
    }
    return false;
}

static void regrid(struct host *host, uint32_t number)
{
    struct kind *kind = host->kind;

    grid_move(&kind->spare, number, &host->spare_cell,
              host->usable ? kind_cell(kind, &host->spare) : NO_CELL);
    grid_move(&kind->bound, number, &host->bound_cell,
              host->usable && host->bound ? kind_cell(kind, &host->free) : NO_CELL);
}

void host_summarise(struct sched *sched, uint32_t number)
{
    const struct host *host = &sched->hosts->list.items[number];
    struct host_summary *host_summary = &sched->hosts->summaries.items[number];

    host_summary->first_end_us = host->claims        ? INT64_MIN
                                 : host->running.len ? host->running.items[0].end_us
                                                     : INT64_MAX;
    host_summary->last_end_us = host->claims ? INT64_MIN : host_last_end(host);
    host_summary->cpus = host->free.cpus;
    host_summary->mem_mb = host->free.mem_mb;
    host_summary->devices = (uint32_t)MIN(kind_devices(host->kind, host->free.gres), UINT32_MAX);
    host_summary->kind = host->usable ? host->kind->number : UINT32_MAX;
    sched->hosts->summary_blocks.items[number / SUMMARY_BLOCK].stale = true;
    sched->hooks->host_touched(sched, number);
}

const struct host_summary *hosts_summary_block(struct sched *sched, size_t first)
{
    struct summary_block *summary_block =
        &sched->hosts->summary_blocks.items[first / SUMMARY_BLOCK];
    struct host_summary best = { .first_end_us = INT64_MAX, .last_end_us = INT64_MAX };

    if (!summary_block->stale)
        return &summary_block->best;
    for (size_t n = first; n < MIN(first + SUMMARY_BLOCK, sched->hosts->summaries.len); n++) {
        const struct host_summary *host_summary = &sched->hosts->summaries.items[n];
        if (host_summary->kind == UINT32_MAX)
            continue;
        best.first_end_us = MIN(best.first_end_us, host_summary->first_end_us);
        best.last_end_us = MIN(best.last_end_us, host_summary->last_end_us);
        best.mem_mb = MAX(best.mem_mb, host_summary->mem_mb);
        best.cpus = MAX(best.cpus, host_summary->cpus);
        best.devices = MAX(best.devices, host_summary->devices);
    }
    *summary_block = (struct summary_block){ .best = best };
    return &summary_block->best;
}

void hosts_summarise(struct sched *sched)
{
    if (sched->hosts->summarised == sched->hosts->kinds_version)
        return;
    sched->hosts->summarised = sched->hosts->kinds_version;
    for (uint32_t n = 0; n < sched->hosts->list.len; n++)
        host_summarise(sched, n);
}

static void host_freed(struct sched *sched, uint32_t number)
{
    struct host *host = &sched->hosts->list.items[number];

    if (!host->usable || host->freed)
        return;
    host->freed = true;
    vec_push(&sched->hosts->freed, number);
}

static void read_spare(struct sched *sched, struct host *host)
{
    host->bound = host->blocks.len > 0;
    host->spare = host->free;
    if (!host->bound)
        return;
    struct view view = { .now_us = sched->now_us, .start_us = sched->now_us, .end_us = INT64_MAX };
    host_room(sched, host, &view, &host->spare);
}

void host_blocked(struct sched *sched, uint32_t number)
{
    struct host *host = &sched->hosts->list.items[number];

    if (rebuild_is_due(sched, number))
        return;
    read_spare(sched, host);
    regrid(host, number);
    sched->hooks->host_touched(sched, number);
}

void host_unblocked(struct sched *sched, uint32_t number)
{
    const struct host *host = &sched->hosts->list.items[number];
    struct room_at was = host->spare;

    if (rebuild_is_due(sched, number))
        return;
    host_blocked(sched, number);
    if (is_roomier(host, &host->spare, &was) || is_roomier(host, &host->free, &host->spare))
        host_freed(sched, number);
}

void host_refresh(struct sched *sched, uint32_t number)
{
    struct host *host = &sched->hosts->list.items[number];
    struct room_at free_was = host->free, spare_was = host->spare;
    bool was_usable = host->usable, was_exclusive = host->exclusive;

    MUST(number < sched->hosts->list.len);
    if (rebuild_is_due(sched, number))
        return;
    host->usable = node_is_usable(host->node);
    read_free(sched, host);
    host_summarise(sched, number);
    read_spare(sched, host);
    regrid(host, number);
    bool roomier = !was_usable || (was_exclusive && !host->exclusive) ||
                   is_roomier(host, &host->free, &free_was) ||
                   is_roomier(host, &host->spare, &spare_was);
    sched->hosts->usable_again = sched->hosts->usable_again || (!was_usable && host->usable);
    if (roomier)
        host_freed(sched, number);
}

/* ---- all of it ---- */

void host_take_new(struct sched *sched, const struct node *node)
{
    struct host host = { .spare_cell = NO_CELL, .bound_cell = NO_CELL, .node = node };

    host.kind = kind_of(sched, node);
    host.kind->hosts++;
    host.kind->most_mem_mb = MAX(host.kind->most_mem_mb, node->mem_mb);
    vec_push(&sched->hosts->list, host);
    vec_push(&sched->hosts->summaries, (struct host_summary){ .kind = UINT32_MAX });
    if (sched->hosts->summaries.len > sched->hosts->summary_blocks.len * SUMMARY_BLOCK)
        vec_push(&sched->hosts->summary_blocks, (struct summary_block){ 0 });
    sched->hosts->summary_blocks.items[sched->hosts->summary_blocks.len - 1].stale = true;
}

void host_changed(struct sched *sched, const struct node *node)
{
    struct host *host = &sched->hosts->list.items[node->number];
    struct kind *was = host->kind, *is = kind_of(sched, node);

    if (was != is) {
        grid_move(&was->spare, node->number, &host->spare_cell, NO_CELL);
        grid_move(&was->bound, node->number, &host->bound_cell, NO_CELL);
        host->usable = false; /* looks freed to those that wait */
        kind_leave(sched, was, node);
        is->hosts++;
        host->kind = is;
    }
    is->most_mem_mb = MAX(is->most_mem_mb, node->mem_mb);
    host_refresh(sched, node->number);
}

void host_free(struct sched *sched, struct host *host)
{
    for (size_t i = 0; i < host->running.len; i++)
        amount_drop(sched, host->running.items[i].amount);
    for (size_t i = 0; i < host->blocks.len; i++)
        amount_drop(sched, host->blocks.items[i].amount);
    vec_done(&host->running);
    vec_done(&host->forecasts);
    vec_done(&host->blocks);
}

bool hosts_done_some(struct sched *sched, unsigned *budget)
{
    for (; sched->hosts->list.len && *budget; budget_take(budget, 1))
        host_free(sched, &sched->hosts->list.items[--sched->hosts->list.len]);
    return !sched->hosts->list.len;
}

void hosts_done(struct sched *sched)
{
    vec_each (struct host, host, &sched->hosts->list)
        host_free(sched, host);
    vec_done(&sched->hosts->list);
    vec_done(&sched->hosts->summaries);
    vec_done(&sched->hosts->summary_blocks);
    vec_clear(&sched->hosts->freed);
    kinds_done(sched);
}
