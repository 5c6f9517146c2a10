/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resvs.c - reservations as the planner sees them: blocks on hosts, and parts of hosts
 *
 * A block of all of a host is no hindrance to the reservation's own jobs and the end of it for all
 * others. A block of a part keeps for its jobs what they do not have yet, and bounds them.
 */
#include "base/hash.h"
#include "core/resv.h"
#include "sched/hosts/hosts.h"

/* Times of a reservation that repeats which are looked at ahead. */
enum { TIMES_AHEAD = 8 };

static void block_part(struct sched *sched, const struct reservation *resv, uint32_t number,
                       struct block block)
{
    const struct resv_part *part = resv_part_of(resv, number);

    if (part) {
        struct take take = { .cpus = part->cpus };
        for (size_t i = 0; i < TAKE_GRES; i++)
            take.gres[i] = part->gres[i];
        block.amount = amount_take(sched, &take, false);
    }
    host_block_put(sched, number, block);
}

static size_t block_times(struct sched *sched, const struct reservation *resv, uint32_t number)
{
    struct block block = { .start_us = resv->spec->start_us,
                           .end_us = resv->spec->end_us,
                           .flex = resv->flags & RESV_FLEX,
                           .delay_s = resv->spec->max_start_delay_s,
                           .resv = resv_hash(resv->spec->name) };

    for (size_t i = 0; i < TIMES_AHEAD; i++) {
        block_part(sched, resv, number, block);
        if (!resv_next_time(resv->flags, &block.start_us, &block.end_us))
            return i + 1;
    }
    return TIMES_AHEAD;
}

void resvs_begin(struct sched *sched)
{
    for (size_t i = 0; i < state_reservation_count(sched->state); i++) {
        if (state_reservation_at(sched->state, i)->flags & RESV_MAGNETIC)
            sched->hosts->exclusive = true; /* whose job it is decides where it may run */
    }
}

size_t host_read_reservations(struct sched *sched, uint32_t number)
{
    size_t had = host_block_take(sched, number, 0), has = 0;

    for (size_t i = 0; i < state_reservation_count(sched->state); i++) {
        const struct reservation *resv = state_reservation_at(sched->state, i);
        if (bitset_has(&resv->nodes, number))
            has += block_times(sched, resv, number);
    }
    if (had)
        host_unblocked(sched, number);
    else if (has)
        host_refresh(sched, number);
    return had + has;
}

/* ---- parts ---- */

static void add_use(const struct amount *amount, struct room_at *use)
{
    use->cpus += amount->cpus;
    for (size_t i = 0; i < TAKE_GRES; i++)
        use->gres[i] += amount->gres[i];
}

/* What jobs of the reservation have of the host at that moment, running, planned or booked. */
static void used_at(const struct host *host, const struct view *view, uint64_t resv,
                    int64_t when_us, struct room_at *use)
{
    bool later = when_us > view->now_us;

    *use = (struct room_at){ 0 };
    for (size_t i = 0; i < host->running.len; i++) {
        const struct host_job *run = &host->running.items[i];
        if (run->resv == resv && !(later && run->end_us <= when_us) &&
            !(view->without && run->out != HOST_JOB_STAYS))
            add_use(run->amount, use);
    }
    for (const struct claim *claim = host->claims; claim; claim = claim->next) {
        if (claim->resv == resv && !(later && claim->end_us <= when_us))
            add_use(claim->amount, use);
    }
    for (size_t i = 0; i < host->blocks.len; i++) {
        const struct block *block = &host->blocks.items[i];
        if (block->job_id && block->job_id != view->mine && block->resv == resv && block->amount &&
            block->start_us <= when_us && block->end_us > when_us)
            add_use(block->amount, use);
    }
}

static uint64_t less(uint64_t total, uint64_t used)
{
    return total > used ? total - used : 0;
}

void room_keep(const struct host *host, const struct view *view, const struct block *block,
               int64_t when_us, struct room_at *room)
{
    bool own = block->resv == view->resv;
    const struct amount *part = block->amount;
    struct room_at use;

    if (own && block->flex)
        return;
    used_at(host, view, block->resv, when_us, &use);
    uint64_t rest = less(part->cpus, use.cpus);
    if (own && part->cpus)
        room->cpus = (uint32_t)MIN(room->cpus, rest);
    else if (!own)
        room->cpus = (uint32_t)less(room->cpus, rest);
    for (size_t i = 0; i < TAKE_GRES; i++) {
        rest = less(part->gres[i], use.gres[i]);
        if (own && part->gres[i])
            room->gres[i] = MIN(room->gres[i], rest);
        else if (!own)
            room->gres[i] = less(room->gres[i], rest);
    }
    room->empty = false; /* nobody has all of such a host */
}

uint64_t resv_hash(const char *name)
{
    return name ? hash_bytes(name, strlen(name), 1) | 1 : 0;
}
