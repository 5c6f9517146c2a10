/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hosts.c - what each node has free now, and what becomes free when
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "sched/sched_priv.h"

static uint64_t less(uint64_t total, uint64_t used)
{
    return total > used ? total - used : 0;
}

/* ---- what is free ---- */

uint64_t mcs_hash(const char *label)
{
    return label ? hash_bytes(label, strlen(label), 1) | 1 : 0;
}

unsigned job_minds(const struct sched *sched, const struct job *job)
{
    const struct partition *partition = state_partition(sched->state, job->run->partition);
    bool user = job->shape->exclusive_user || (partition && partition->spec->exclusive_user);

    return (user ? MINDS_USER : 0) | (job->shape->exclusive_mcs ? MINDS_MCS : 0);
}

static bool is_minded(const struct sched *sched, const struct host *host)
{
    if (!sched->minds)
        return false;
    for (const struct claim *claim = host->claims; claim; claim = claim->next) {
        if (claim->minds)
            return true;
    }
    for (size_t i = 0; i < host->node->jobs.len; i++) {
        if (job_minds(sched, host->node->jobs.items[i]))
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

    host->jobs = (uint32_t)node->jobs.len;
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
    host->minded = is_minded(sched, host);
    room->cpus = host->whole ? 0 : (uint32_t)less(node->cpus, cpus);
    room->cpus -= room->cpus % node->threads;
    room->mem_mb = less(node->mem_mb, mem);
    for (size_t i = 0; i < kinds; i++)
        room->gres[i] = less(node->gres[i].total, gres[i]);
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

void host_refresh(struct sched *sched, uint32_t number)
{
    struct host *host = &sched->hosts.items[number];
    struct room_at free_was = host->free, spare_was = host->spare;
    bool was_usable = host->usable, was_minded = host->minded;

    host->usable = node_is_usable(host->node);
    read_free(sched, host);
    host->bound = host->blocks.len > 0;
    host->spare = host->free;
    if (host->bound) {
        struct view view = { .now_us = sched->now_us,
                             .start_us = sched->now_us,
                             .end_us = INT64_MAX };
        host_room(sched, host, &view, &host->spare);
    }
    regrid(host, number);
    bool roomier = !was_usable || (was_minded && !host->minded) ||
                   is_roomier(host, &host->free, &free_was) ||
                   is_roomier(host, &host->spare, &spare_was);
    if (host->usable && roomier && !host->freed) {
        host->freed = true;
        vec_push(&sched->freed, number);
    }
}

/* ---- what becomes free ---- */

static void add_amount(const struct host *host, struct room_at *room, const struct amount *amount)
{
    const struct node *node = host->node;

    room->cpus = MIN(room->cpus + amount->cpus, node->cpus);
    room->mem_mb = MIN(room->mem_mb + amount->mem_mb, node->mem_mb);
    for (size_t i = 0; i < node->gres_count && i < TAKE_GRES; i++)
        room->gres[i] = MIN(room->gres[i] + amount->gres[i], node->gres[i].total);
}

static void sub_amount(struct room_at *room, const struct amount *amount)
{
    if (!amount || amount->whole) {
        *room = (struct room_at){ 0 };
        return;
    }
    room->cpus = (uint32_t)less(room->cpus, amount->cpus);
    room->mem_mb = less(room->mem_mb, amount->mem_mb);
    for (size_t i = 0; i < TAKE_GRES; i++)
        room->gres[i] = less(room->gres[i], amount->gres[i]);
    room->empty = false;
}

static void least(struct room_at *room, const struct room_at *other)
{
    room->cpus = MIN(room->cpus, other->cpus);
    room->mem_mb = MIN(room->mem_mb, other->mem_mb);
    for (size_t i = 0; i < TAKE_GRES; i++)
        room->gres[i] = MIN(room->gres[i], other->gres[i]);
    room->empty = room->empty && other->empty;
}

/* What will have ended by `when` is free then; what is overdue counts as ended just after now. */
static void room_of_runs(const struct host *host, int64_t now_us, int64_t when_us,
                         struct room_at *room)
{
    uint32_t left = host->jobs;

    *room = host->free;
    if (when_us <= now_us)
        return;
    if (host->whole) /* what it does not use is nobody's until it ends */
        room->cpus = 0;
    for (size_t i = 0; i < host->runs.len && host->runs.items[i].end_us <= when_us; i++) {
        add_amount(host, room, host->runs.items[i].amount);
        left -= left > 0;
    }
    for (const struct claim *claim = host->claims; claim; claim = claim->next) {
        if (claim->end_us <= when_us) {
            add_amount(host, room, claim->amount);
            left -= left > 0;
        }
    }
    room->empty = left == 0;
}

static bool is_hindrance(const struct block *block, const struct view *view)
{
    if (block->job_id)
        return block->job_id != view->mine;
    return block->resv != view->resv;
}

static bool overlaps(const struct block *block, const struct view *view)
{
    return block->start_us < view->end_us && block->end_us > view->start_us;
}

/* What is left at one moment. */
static void room_at(const struct host *host, const struct view *view, int64_t when_us,
                    struct room_at *room)
{
    room_of_runs(host, view->now_us, when_us, room);
    for (size_t i = 0; i < host->blocks.len; i++) {
        const struct block *block = &host->blocks.items[i];
        if (block->start_us <= when_us && block->end_us > when_us && is_hindrance(block, view))
            sub_amount(room, block->amount);
    }
}

/* CPUs that up to `share` jobs may use together. */
static uint32_t shared_cpus(const struct host *host, unsigned share)
{
    const struct node *node = host->node;
    uint32_t count = 0;

    for (uint32_t cpu = 0; cpu < node->cpus; cpu++)
        count += host_cpu_is_free(host, cpu, share);
    return count;
}

void host_room(const struct sched *sched, const struct host *host, const struct view *view,
               struct room_at *out)
{
    (void)sched;
    if (view->start_us <= view->now_us)
        *out = host->free;
    else
        room_of_runs(host, view->now_us, view->start_us, out);
    if (view->share > 1 && !host->whole)
        out->cpus = shared_cpus(host, view->share);
    /* Room only grows except where a block begins, so these moments decide. */
    for (size_t i = 0; i < host->blocks.len; i++) {
        const struct block *block = &host->blocks.items[i];
        if (!overlaps(block, view) || !is_hindrance(block, view))
            continue;
        struct room_at then;
        room_at(host, view, MAX(block->start_us, view->start_us), &then);
        least(out, &then);
    }
}

static bool room_has(const struct host *host, const struct room_at *room,
                     const struct amount *amount)
{
    if (amount->whole && !room->empty)
        return false;
    if (amount->cpus > room->cpus || amount->mem_mb > room->mem_mb)
        return false;
    for (size_t i = 0; i < host->node->gres_count && i < TAKE_GRES; i++) {
        if (amount->gres[i] > room->gres[i])
            return false;
    }
    return true;
}

static bool fits_from(const struct sched *sched, const struct host *host,
                      const struct amount *amount, const struct view *view, int64_t start_us,
                      int64_t length_us)
{
    struct view then = *view;
    struct room_at room;

    then.start_us = start_us;
    then.end_us = length_us == INT64_MAX ? INT64_MAX : start_us + length_us;
    host_room(sched, host, &then, &room);
    return room_has(host, &room, amount);
}

/* Without blocks the room only grows: one walk over what ends. */
static int64_t earliest_growing(const struct host *host, const struct amount *amount,
                                int64_t now_us, int64_t before_us)
{
    struct room_at room = host->free;
    uint32_t left = host->jobs;

    for (size_t i = 0; i < host->runs.len; i++) {
        int64_t end = MAX(host->runs.items[i].end_us, now_us + US_PER_S);
        if (end >= before_us)
            return INT64_MAX;
        add_amount(host, &room, host->runs.items[i].amount);
        left -= left > 0;
        room.empty = left == 0;
        if (room_has(host, &room, amount))
            return end;
    }
    return INT64_MAX;
}

int64_t host_earliest(const struct sched *sched, const struct host *host,
                      const struct amount *amount, const struct view *view, int64_t length_us,
                      int64_t before_us)
{
    int64_t soon = view->now_us + US_PER_S, best = before_us;

    if (!host->blocks.len && !host->claims) {
        if (!host->whole && room_has(host, &host->free, amount))
            return view->now_us;
        return earliest_growing(host, amount, view->now_us, before_us);
    }
    if (fits_from(sched, host, amount, view, view->now_us, length_us))
        return view->now_us;
    /* The moments at which there may be more than before: ends, in order. */
    for (size_t i = 0; i < host->runs.len; i++) {
        int64_t end = MAX(host->runs.items[i].end_us, soon);
        if (end >= best)
            break;
        if (i + 1 < host->runs.len && MAX(host->runs.items[i + 1].end_us, soon) == end)
            continue;
        if (fits_from(sched, host, amount, view, end, length_us))
            best = end;
    }
    for (const struct claim *claim = host->claims; claim; claim = claim->next) {
        if (claim->end_us < best && claim->end_us > view->now_us &&
            fits_from(sched, host, amount, view, claim->end_us, length_us))
            best = claim->end_us;
    }
    for (size_t i = 0; i < host->blocks.len; i++) {
        int64_t end = host->blocks.items[i].end_us;
        if (end < best && end > view->now_us &&
            fits_from(sched, host, amount, view, end, length_us))
            best = end;
    }
    return best < before_us ? best : INT64_MAX;
}

/* ---- running jobs ---- */

int64_t job_runs_until(const struct job *job)
{
    int64_t start = job->run->start_us + job->run->suspended_total_us;
    int64_t end = job_end_by(job, start);

    if (job_has_ended(job) || job->flags & JOB_FLAG_COMPLETING)
        return job->end_us ? job->end_us : start;
    return end == INT64_MAX ? start + UNLIMITED_US : end;
}

static void run_insert(struct host *host, struct run run)
{
    size_t at = host->runs.len;

    vec_push(&host->runs, run);
    for (; at > 0 && host->runs.items[at - 1].end_us > run.end_us; at--)
        host->runs.items[at] = host->runs.items[at - 1];
    host->runs.items[at] = run;
}

static size_t run_find(const struct host *host, uint32_t job_id)
{
    size_t at = 0;

    while (at < host->runs.len && host->runs.items[at].job_id != job_id)
        at++;
    return at;
}

static void part_take(const struct job_part *part, struct take *out)
{
    const struct node *node = part->node;

    *out = (struct take){ .cpus = part->cpus, .mem_mb = part->mem_mb };
    for (size_t i = 0; i < part->gres_count; i++) {
        for (size_t k = 0; k < node->gres_count && k < TAKE_GRES; k++) {
            if (str_eq(part->gres[i].name, node->gres[k].name) &&
                str_eq(part->gres[i].type, node->gres[k].type))
                out->gres[k] += part->gres[i].count;
        }
    }
}

void host_run_add(struct sched *sched, const struct job *job)
{
    int64_t end = job_runs_until(job);

    for (unsigned i = 0; i < job->run->count; i++) {
        const struct job_part *part = &job->run->parts[i];
        struct take take;
        if (!part->node)
            continue;
        struct host *host = &sched->hosts.items[part->node->number];
        part_take(part, &take);
        run_insert(host,
                   (struct run){ .end_us = end,
                                 .job_id = job->id,
                                 .amount = amount_take(sched, &take, job->run->whole_nodes) });
        host_refresh(sched, part->node->number);
    }
}

void host_run_end(struct sched *sched, const struct job *job)
{
    int64_t end = job->run ? job_runs_until(job) : 0;

    for (unsigned i = 0; job->run && i < job->run->count; i++) {
        const struct job_part *part = &job->run->parts[i];
        if (!part->node)
            continue;
        struct host *host = &sched->hosts.items[part->node->number];
        size_t at = run_find(host, job->id);
        if (at == host->runs.len || host->runs.items[at].end_us == end)
            continue;
        struct run run = host->runs.items[at];
        vec_remove(&host->runs, at);
        run.end_us = end;
        run_insert(host, run);
        if (host->bound)
            host_refresh(sched, part->node->number);
    }
}

void host_run_del(struct sched *sched, uint32_t job_id, uint32_t number)
{
    struct host *host = &sched->hosts.items[number];
    size_t at = run_find(host, job_id);

    if (at < host->runs.len) {
        amount_drop(sched, host->runs.items[at].amount);
        vec_remove(&host->runs, at);
    }
    host_refresh(sched, number);
}

/* ---- blocks ---- */

void host_block_add(struct sched *sched, uint32_t number, struct block block)
{
    struct host *host = &sched->hosts.items[number];
    size_t at = host->blocks.len;

    vec_push(&host->blocks, block);
    for (; at > 0 && host->blocks.items[at - 1].start_us > block.start_us; at--)
        host->blocks.items[at] = host->blocks.items[at - 1];
    host->blocks.items[at] = block;
    host_refresh(sched, number);
}

void host_block_del(struct sched *sched, uint32_t number, uint32_t job_id)
{
    struct host *host = &sched->hosts.items[number];

    for (size_t i = host->blocks.len; i-- > 0;) {
        if (host->blocks.items[i].job_id == job_id) {
            amount_drop(sched, host->blocks.items[i].amount);
            vec_remove(&host->blocks, i);
        }
    }
    host_refresh(sched, number);
}

void hosts_read_reservations(struct sched *sched)
{
    for (uint32_t n = 0; n < sched->hosts.len; n++) {
        bool had = false;
        for (size_t i = 0; i < sched->hosts.items[n].blocks.len; i++)
            had = had || !sched->hosts.items[n].blocks.items[i].job_id;
        if (had)
            host_block_del(sched, n, 0);
    }
    for (size_t i = 0; i < state_reservation_count(sched->state); i++) {
        const struct reservation *resv = state_reservation_at(sched->state, i);
        bitset_each (n, &resv->nodes) {
            if (n < sched->hosts.len)
                host_block_add(sched, (uint32_t)n,
                               (struct block){ .start_us = resv->spec->start_us,
                                               .end_us = resv->spec->end_us,
                                               .resv = resv_hash(resv->spec->name) });
        }
    }
}

/* ---- all of it ---- */

static void host_take(struct sched *sched, struct host *host, const struct node *node)
{
    host->node = node;
    host->kind = kind_of(sched, node);
    host->kind->hosts++;
    host->kind->most_mem_mb = MAX(host->kind->most_mem_mb, node->mem_mb);
}

void hosts_read(struct sched *sched)
{
    hosts_done(sched);
    for (size_t n = 0; n < state_node_count(sched->state); n++) {
        struct host host = { .spare_cell = NO_CELL, .bound_cell = NO_CELL };
        host_take(sched, &host, state_node_at(sched->state, n));
        vec_push(&sched->hosts, host);
    }
    for (const struct job *job = state_job_from(sched->state, 1); job;
         job = state_job_from(sched->state, (uint64_t)job->id + 1)) {
        if (!job_holds(job))
            continue;
        sched->minds = sched->minds || job->shape->exclusive_user || job->shape->exclusive_mcs;
        host_run_add(sched, job);
        licences_run(sched, job);
    }
    for (uint32_t n = 0; n < sched->hosts.len; n++)
        host_refresh(sched, n);
    hosts_read_reservations(sched);
}

void host_changed(struct sched *sched, const struct node *node)
{
    struct host *host = &sched->hosts.items[node->number];
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

void hosts_done(struct sched *sched)
{
    vec_each (struct host, host, &sched->hosts) {
        for (size_t i = 0; i < host->runs.len; i++)
            amount_drop(sched, host->runs.items[i].amount);
        for (size_t i = 0; i < host->blocks.len; i++)
            amount_drop(sched, host->blocks.items[i].amount);
        vec_done(&host->runs);
        vec_done(&host->blocks);
    }
    vec_done(&sched->hosts);
    vec_clear(&sched->freed);
    kinds_done(sched);
}
