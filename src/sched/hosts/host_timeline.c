/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_timeline.c - what becomes free on a host, and when
 */
#include <stddef.h>
#include <string.h>

#include "sched/hosts/hosts.h"

static uint64_t less(uint64_t total, uint64_t used)
{
    return total > used ? total - used : 0;
}

static void add_amount(const struct host *host, struct room_at *room, const struct amount *amount)
{
    const struct node *node = host->node;

    room->cpus = MIN(room->cpus + amount->cpus, node->cpus);
    room->mem_mb = MIN(room->mem_mb + amount->mem_mb, node->mem_mb);
    for (size_t i = 0; i < node->gres_count && i < TAKE_GRES; i++) {
        const struct node_gres *gres = &node->gres[i];
        uint64_t *base = gres->base_at ? &room->gres[gres->base_at - 1] : NULL;
        room->gres[i] = MIN(room->gres[i] + amount->gres[i], base ? gres->per : gres->total);
        if (!base)
            continue;
        /* A device may be whole again; one that is given back may be had in shares. */
        if (amount->gres[i])
            *base = MIN(*base + 1, node->gres[gres->base_at - 1].total);
        if (amount->gres[gres->base_at - 1])
            room->gres[i] = gres->per;
    }
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
static void add_run(const struct host *host, const struct host_job *run, struct room_at *room,
                    uint32_t *left)
{
    const struct amount *amount = run->amount;
    struct amount cpus = { .cpus = amount->cpus };

    add_amount(host, room, run->out == HOST_JOB_LENDS ? &cpus : amount);
    *left -= *left > 0 && amount->cpus > 0; /* one that lends its CPUs is not counted there */
}

/* Parts of devices do not add up. */
static bool has_shares(const struct node *node)
{
    for (size_t i = 0; i < node->gres_count && i < TAKE_GRES; i++) {
        if (node->gres[i].base_at)
            return true;
    }
    return false;
}

/* add_run() for all that end by then, where there are no shares: sums, and no more than there is at last. */
static void add_runs(const struct host *host, int64_t when_us, struct room_at *room, uint32_t *left)
{
    const struct node *node = host->node;
    size_t kinds = MIN(node->gres_count, (size_t)TAKE_GRES), i = 0;
    uint64_t cpus = room->cpus;

    for (; i < host->running.len && host->running.items[i].end_us <= when_us; i++) {
        const struct amount *amount = host->running.items[i].amount;
        cpus += amount->cpus;
        *left -= *left > 0 && amount->cpus > 0;
        if (host->running.items[i].out == HOST_JOB_LENDS)
            continue;
        room->mem_mb += amount->mem_mb;
        for (size_t k = 0; k < kinds; k++)
            room->gres[k] += amount->gres[k];
    }
    if (i == 0)
        return;
    room->cpus = (uint32_t)MIN(cpus, node->cpus);
    room->mem_mb = MIN(room->mem_mb, node->mem_mb);
    for (size_t k = 0; k < kinds; k++)
        room->gres[k] = MIN(room->gres[k], node->gres[k].total);
}

/* The same as if jobs that are marked had gone; what is overdue has not ended just after now. */
static void room_without(const struct host *host, const struct view *view, int64_t when_us,
                         struct room_at *room)
{
    int64_t now_us = view->now_us;
    uint32_t left = host->jobs;
    uint64_t returns = 0;

    *room = host->free;
    if (host->whole)
        room->cpus = 0;
    for (size_t i = 0; i < host->running.len; i++) {
        const struct host_job *run = &host->running.items[i];
        if (run->out == HOST_JOB_RETURNS)
            returns += run->lent_cpus;
        else if (run->out != HOST_JOB_STAYS || (when_us > now_us + 1 && run->end_us <= when_us))
            add_run(host, run, room, &left);
    }
    room->cpus = (uint32_t)less(room->cpus, returns);
    if (host->node->cpu_shares && !host->whole)
        room->cpus = host_cpus_without(host, view, when_us);
    gres_shares_room_without(host, now_us, when_us, room->gres); /* nobody is to go in in vain */
    room->empty = left == 0 && !returns;
}

static void room_of_runs(const struct host *host, int64_t now_us, int64_t when_us,
                         struct room_at *room)
{
    uint32_t left = host->jobs;

    *room = host->free;
    if (when_us <= now_us)
        return;
    if (host->whole) /* what it does not use is nobody's until it ends */
        room->cpus = 0;
    if (!has_shares(host->node))
        add_runs(host, when_us, room, &left);
    else
        for (size_t i = 0; i < host->running.len && host->running.items[i].end_us <= when_us; i++)
            add_run(host, &host->running.items[i], room, &left);
    for (const struct claim *claim = host->claims; claim; claim = claim->next) {
        if (claim->end_us <= when_us) {
            add_amount(host, room, claim->amount);
            left -= left > 0;
        }
    }
    room->empty = left == 0;
}

/* Of bookings and reservations; with forecasts when they are asked for. */
static size_t block_count(const struct host *host, const struct view *view)
{
    return host->blocks.len + (view->forecast ? host->forecasts.len : 0);
}

static const struct block *block_at(const struct host *host, size_t i)
{
    return i < host->blocks.len ? &host->blocks.items[i]
                                : &host->forecasts.items[i - host->blocks.len];
}

bool block_hinders(const struct block *block, const struct view *view)
{
    if (block->job_id)
        return block->job_id != view->mine &&
               ((!view->order.id && !view->without) || order_before(block->order, view->order));
    if (view->warn_s && view->warn_s <= block->delay_s && block->resv != view->resv)
        return false;
    return block->resv != view->resv || block->amount;
}

static bool overlaps(const struct block *block, const struct view *view)
{
    return block->start_us < view->end_us && block->end_us > view->start_us;
}

/* What is left at one moment. */
static void room_at(const struct sched *sched, const struct host *host, const struct view *view,
                    int64_t when_us, struct room_at *room)
{
    if (view->without)
        room_without(host, view, when_us, room);
    else
        room_of_runs(host, view->now_us, when_us, room);
    const struct block *own = NULL;
    for (size_t i = 0; i < block_count(host, view); i++) {
        const struct block *block = block_at(host, i);
        if (block->start_us > when_us || block->end_us <= when_us || !block_hinders(block, view))
            continue;
        if (block->job_id || !block->amount)
            sub_amount(room, block->amount);
        else if (block->resv == view->resv)
            own = block;
        else
            room_keep(host, view, block, when_us, room);
    }
    if (own) /* a bound on what is left by all others */
        room_keep(host, view, own, when_us, room);
}

/* CPUs that up to `share` jobs may use together. */
static uint32_t shared_cpus(const struct host *host, unsigned share)
{
    const struct node *node = host->node;
    uint32_t count = 0;

    for (uint32_t cpu = 0; cpu < node->cpu_span; cpu++)
        count += host_cpu_is_free(host, cpu, share);
    return count;
}

void host_room(const struct sched *sched, const struct host *host, const struct view *view,
               struct room_at *out)
{
    if (view->without)
        room_without(host, view, view->start_us, out);
    else if (view->start_us <= view->now_us)
        *out = host->free;
    else
        room_of_runs(host, view->now_us, view->start_us, out);
    if (view->start_us > view->now_us && (view->share > 1 || host->node->cpu_shares) &&
        !host->whole && !view->without)
        out->cpus = host_cpus_without(host, view, view->start_us);
    else if (view->share > 1 && !host->whole && !view->without)
        out->cpus = shared_cpus(host, view->share);
    /* Room only grows except where a block begins, so these moments decide. */
    for (size_t i = 0; i < block_count(host, view); i++) {
        const struct block *block = block_at(host, i);
        if (!overlaps(block, view) || !block_hinders(block, view))
            continue;
        struct room_at then;
        room_at(sched, host, view, MAX(block->start_us, view->start_us), &then);
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

bool host_has_room(const struct sched *sched, const struct host *host, const struct amount *amount,
                   const struct view *view)
{
    struct room_at room;

    host_room(sched, host, view, &room);
    return room_has(host, &room, amount);
}

static bool fits_from(const struct sched *sched, const struct host *host,
                      const struct amount *amount, const struct view *view, int64_t start_us,
                      int64_t length_us)
{
    struct view then = *view;

    then.start_us = start_us;
    then.end_us = length_us == INT64_MAX ? INT64_MAX : start_us + length_us;
    return host_has_room(sched, host, amount, &then);
}

/* CPUs and memory alone, nothing that is counted otherwise. */
static bool is_plain(const struct host *host, const struct amount *amount)
{
    if (amount->whole || amount->mem_mb > host->node->mem_mb || amount->cpus > host->node->cpus)
        return false;
    for (size_t i = 0; i < host->node->gres_count && i < TAKE_GRES; i++) {
        if (amount->gres[i])
            return false;
    }
    return true;
}

/* The same for what is plain: two sums. */
static int64_t earliest_plain(const struct host *host, const struct amount *amount, int64_t now_us,
                              int64_t before_us)
{
    uint64_t cpus = host->free.cpus, mem_mb = host->free.mem_mb;

    for (size_t i = 0; i < host->running.len; i++) {
        const struct host_job *run = &host->running.items[i];
        int64_t end = MAX(run->end_us, now_us + US_PER_S);
        if (end >= before_us)
            return INT64_MAX;
        cpus += run->amount->cpus;
        mem_mb += run->out == HOST_JOB_LENDS ? 0 : run->amount->mem_mb;
        if (cpus >= amount->cpus && mem_mb >= amount->mem_mb)
            return end;
    }
    return INT64_MAX;
}

int64_t host_last_end(const struct host *host)
{
    for (size_t i = host->running.len; i-- > 0;) {
        if (host->running.items[i].amount->cpus)
            return host->running.items[i].end_us;
    }
    return INT64_MIN;
}

/* Without blocks the room only grows: one walk over what ends. */
static int64_t earliest_growing(const struct host *host, const struct amount *amount,
                                int64_t now_us, int64_t before_us)
{
    if (is_plain(host, amount))
        return earliest_plain(host, amount, now_us, before_us);
    struct room_at room = host->free;
    uint32_t left = host->jobs;
    int64_t last = amount->whole ? host_last_end(host) : INT64_MIN;

    if (last != INT64_MIN) {
        int64_t empty = MAX(last, now_us + US_PER_S);
        if (empty >= before_us)
            return INT64_MAX;
        if (!has_shares(host->node)) {
            add_runs(host, last, &room, &left);
            room.empty = left == 0;
            if (room_has(host, &room, amount))
                return empty;
            room = host->free;
            left = host->jobs;
        }
    }
    for (size_t i = 0; i < host->running.len; i++) {
        int64_t end = MAX(host->running.items[i].end_us, now_us + US_PER_S);
        if (end >= before_us)
            return INT64_MAX;
        add_run(host, &host->running.items[i], &room, &left);
        room.empty = left == 0;
        if (room_has(host, &room, amount))
            return end;
    }
    return INT64_MAX;
}

int64_t host_earliest_slow(const struct sched *sched, const struct host *host,
                           const struct amount *amount, const struct view *view, int64_t length_us,
                           int64_t before_us)
{
    int64_t from = MAX(view->start_us, view->now_us), best = before_us;
    int64_t soon = MAX(view->now_us + US_PER_S, from);

    if (fits_from(sched, host, amount, view, from, length_us))
        return from;
    /* The moments at which there may be more than before: ends, in order. */
    for (size_t i = 0; i < host->running.len; i++) {
        int64_t end = MAX(host->running.items[i].end_us, soon);
        if (end >= best)
            break;
        if (i + 1 < host->running.len && MAX(host->running.items[i + 1].end_us, soon) == end)
            continue;
        if (fits_from(sched, host, amount, view, end, length_us))
            best = end;
    }
    for (const struct claim *claim = host->claims; claim; claim = claim->next) {
        if (claim->end_us < best && claim->end_us > from &&
            fits_from(sched, host, amount, view, claim->end_us, length_us))
            best = claim->end_us;
    }
    for (size_t i = 0; i < block_count(host, view); i++) {
        int64_t end = block_at(host, i)->end_us;
        if (end < best && end > from && fits_from(sched, host, amount, view, end, length_us))
            best = end;
    }
    return best < before_us ? best : INT64_MAX;
}

/* ---- one walk over all that ends and begins on a host ---- */

enum { SWEEP_MOST = 32 }; /* blocks */

struct sweep {
    const struct host *host;
    const struct amount *amount;
    size_t gres[TAKE_GRES], kinds;         /* those that are asked for */
    uint64_t cpus, mem_mb, has[TAKE_GRES]; /* but for blocks */
    uint64_t cpus_kept, mem_kept, kept[TAKE_GRES];
    uint32_t left;        /* jobs */
    size_t blocked, full; /* blocks; those that keep all of the host */
    size_t count;
    const struct block *starts[SWEEP_MOST], *ends[SWEEP_MOST]; /* `count` of them; at last */
};

static void sweep_run(struct sweep *sweep, const struct host_job *run)
{
    sweep->cpus += run->amount->cpus;
    sweep->left -= sweep->left > 0 && run->amount->cpus > 0;
    if (run->out == HOST_JOB_LENDS)
        return;
    sweep->mem_mb += run->amount->mem_mb;
    for (size_t i = 0; i < sweep->kinds; i++)
        sweep->has[i] += run->amount->gres[sweep->gres[i]];
}

static void sweep_block(struct sweep *sweep, const struct block *block, bool begins)
{
    uint64_t by = begins ? 1 : UINT64_MAX; /* or less */

    sweep->blocked += by;
    if (!block->amount || block->amount->whole) {
        sweep->full += by;
        return;
    }
    sweep->cpus_kept += by * block->amount->cpus;
    sweep->mem_kept += by * block->amount->mem_mb;
    for (size_t i = 0; i < sweep->kinds; i++)
        sweep->kept[i] += by * block->amount->gres[sweep->gres[i]];
}

static bool sweep_fits(const struct sweep *sweep)
{
    const struct amount *amount = sweep->amount;
    const struct node *node = sweep->host->node;

    if (amount->whole && (sweep->left || sweep->blocked))
        return false;
    if (sweep->full)
        return !amount->cpus && !amount->mem_mb && !sweep->kinds;
    if (amount->cpus > less(MIN(sweep->cpus, node->cpus), sweep->cpus_kept) ||
        amount->mem_mb > less(MIN(sweep->mem_mb, node->mem_mb), sweep->mem_kept))
        return false;
    for (size_t i = 0; i < sweep->kinds; i++) {
        uint64_t total = node->gres[sweep->gres[i]].total;
        if (amount->gres[sweep->gres[i]] > less(MIN(sweep->has[i], total), sweep->kept[i]))
            return false;
    }
    return true;
}

/* Those that are in the way, by their ends too; false: too many, or other ones than of bookings. */
static bool sweep_begin(struct sweep *sweep, const struct view *view)
{
    const struct host *host = sweep->host;

    if (host->claims || view->without || has_shares(host->node))
        return false;
    for (size_t i = 0; i < block_count(host, view); i++) {
        const struct block *block = block_at(host, i);
        if (!block_hinders(block, view))
            continue;
        if (!block->job_id || sweep->count == SWEEP_MOST)
            return false;
        size_t at = sweep->count++, first = at;
        for (; first > 0 && sweep->starts[first - 1]->start_us > block->start_us; first--)
            sweep->starts[first] = sweep->starts[first - 1];
        sweep->starts[first] = block;
        for (; at > 0 && sweep->ends[at - 1]->end_us > block->end_us; at--)
            sweep->ends[at] = sweep->ends[at - 1];
        sweep->ends[at] = block;
    }
    sweep->cpus = host->free.cpus;
    sweep->mem_mb = host->free.mem_mb;
    sweep->left = host->jobs;
    for (size_t i = 0; i < host->node->gres_count && i < TAKE_GRES; i++) {
        if (!sweep->amount->gres[i])
            continue;
        sweep->has[sweep->kinds] = host->free.gres[i];
        sweep->gres[sweep->kinds++] = i;
    }
    return true;
}

/* When it has the amount, as host_earliest(). */
static int64_t sweep_on(struct sweep *sweep, const struct view *view, int64_t length_us,
                        int64_t before_us)
{
    const struct host *host = sweep->host;
    int64_t from = MAX(view->start_us, view->now_us), when = from, good = INT64_MAX;
    int64_t soon = MAX(view->now_us + US_PER_S, from);
    size_t run = 0, start = 0, end = 0;
    bool unblocked = true; /* a block ended, or it is the first moment */

    for (;;) {
        /* What is overdue has ended just after now. */
        while (run < host->running.len && when > view->now_us &&
               host->running.items[run].end_us <= when)
            sweep_run(sweep, &host->running.items[run++]);
        while (start < sweep->count && sweep->starts[start]->start_us <= when) {
            if (sweep->starts[start]->end_us > from)
                sweep_block(sweep, sweep->starts[start], true);
            start++;
        }
        while (end < sweep->count && sweep->ends[end]->end_us <= when) {
            if (sweep->ends[end]->end_us > from)
                sweep_block(sweep, sweep->ends[end], false);
            end++;
        }
        if (!sweep_fits(sweep))
            good = INT64_MAX;
        else if (good == INT64_MAX)
            good = unblocked ? when : MAX(when, soon);
        if (good == INT64_MAX ? when >= before_us : good >= before_us)
            return INT64_MAX;
        int64_t ends = run < host->running.len
                           ? MAX(host->running.items[run].end_us, view->now_us + 1)
                           : INT64_MAX;
        int64_t starts = start < sweep->count ? sweep->starts[start]->start_us : INT64_MAX;
        int64_t next = end < sweep->count ? sweep->ends[end]->end_us : INT64_MAX;
        unblocked = next <= ends && next <= starts;
        next = MIN(next, MIN(ends, starts));
        if (good != INT64_MAX && length_us != INT64_MAX && next >= good + length_us)
            return good;
        if (next == INT64_MAX)
            return good;
        when = next;
    }
}

int64_t host_earliest(const struct sched *sched, const struct host *host,
                      const struct amount *amount, const struct view *view, int64_t length_us,
                      int64_t before_us)
{
    int64_t from = MAX(view->start_us, view->now_us);

    if (!block_count(host, view) && !host->claims) {
        if (!host->whole && room_has(host, &host->free, amount))
            return from;
        return MAX(earliest_growing(host, amount, view->now_us, before_us), from);
    }
    struct sweep sweep;
    memset(&sweep, 0, offsetof(struct sweep, starts));
    sweep.host = host;
    sweep.amount = amount;
    if (sweep_begin(&sweep, view))
        return sweep_on(&sweep, view, length_us, before_us);
    return host_earliest_slow(sched, host, amount, view, length_us, before_us);
}

bool host_cpu_is_free(const struct host *host, size_t cpu, unsigned share)
{
    const struct node *node = host->node;
    unsigned shares = node->cpu_shares ? node->cpu_shares[cpu] : 0;

    if (bitset_has(&node->cpu_ids, cpu) && (share <= 1 || shares == 0))
        return false;
    for (const struct claim *claim = host->claims; claim; claim = claim->next) {
        bool has = bitset_has(&claim->cpus, cpu);
        if (has && !claim->shared)
            return false;
        shares += has;
    }
    return shares < MAX(share, 1);
}

static const struct host_job *run_of(const struct host *host, uint32_t job_id)
{
    for (size_t i = 0; i < host->running.len; i++) {
        if (host->running.items[i].job_id == job_id)
            return &host->running.items[i];
    }
    return NULL;
}

/* Jobs that have each CPU then; UINT8_MAX: one that does not share it. */
static void count_users(const struct host *host, const struct bitset *cpus, bool shared,
                        uint8_t *users)
{
    bitset_each (cpu, cpus) {
        if (cpu >= host->node->cpu_span)
            break;
        users[cpu] = shared && users[cpu] < UINT8_MAX - 1 ? users[cpu] + 1 : UINT8_MAX;
    }
}

uint32_t host_cpus_without(const struct host *host, const struct view *view, int64_t when_us)
{
    const struct node *node = host->node;
    uint8_t *users = NEW_ARRAY(uint8_t, node->cpu_span);
    uint32_t count = 0;

    for (size_t i = 0; i < node->jobs.len; i++) {
        const struct job_run *of = node->jobs.items[i]->run;
        const struct host_job *run = run_of(host, node->jobs.items[i]->id);
        bool marked = view->without && run && run->out != HOST_JOB_STAYS;
        bool returns = marked && run->out == HOST_JOB_RETURNS;
        bool ends = run && when_us > view->now_us + 1 && run->end_us <= when_us;
        if (!returns && (of->lent || ends || marked))
            continue;
        for (unsigned k = 0; k < of->count; k++) {
            if (of->parts[k].node == node)
                count_users(host, &of->parts[k].cpu_ids, of->shared && !returns, users);
        }
    }
    for (const struct claim *claim = host->claims; claim; claim = claim->next) {
        if (when_us <= view->now_us + 1 || claim->end_us > when_us)
            count_users(host, &claim->cpus, claim->shared, users);
    }
    for (uint32_t cpu = 0; cpu < node->cpu_span; cpu++)
        count += !node_keeps(node, cpu) && users[cpu] < MAX(view->share, 1);
    free(users);
    return count;
}
