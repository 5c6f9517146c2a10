/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preempt_hold.c - room that is kept for a job until those that must go for it have gone
 *
 * (1) A hold is a block on each host, so that nothing else takes the room; what the job will need of
 *     licences and limits is kept too. When the last victim is gone the job is tried before all others,
 *     where it finds room, else on its seats, and the hold is given up whatever comes of it. If it does
 *     not start then, nobody is preempted for it for a while (PREEMPT_RETRY_US): were that a mistake of ours, it
 *     would be made again and again.
 * (2) Very many victims are told some at a time, so that no command takes long. The first command names
 *     all of them, so that core refuses all or none; the next follows when that was carried out.
 * (3) A new leader knows nothing of holds. Who was told to go for a job counts as going for it (preempt_trial.c),
 *     so nobody else has to.
 */
#include <stdlib.h>

#include "sched/preempt/preempt_trial.h"

enum { TOLD_AT_ONCE = 256, TOLD_PER_COST = 4 };

static struct preempt_hold *hold_at(const struct sched *sched, uint32_t job_id)
{
    vec_each (struct preempt_hold, hold, &sched->preempt->holds) {
        if (hold->job_id == job_id)
            return hold;
    }
    return NULL;
}

const struct preempt_hold *preempt_hold_of(const struct sched *sched, uint32_t job_id)
{
    return hold_at(sched, job_id);
}

bool preempt_hold_waits_for(const struct sched *sched, uint32_t victim)
{
    return map_len(&sched->preempt->held_victims) &&
           map_get_num(&sched->preempt->held_victims, victim);
}

static void count_victims(struct sched *sched, const struct preempt_hold *hold, int by)
{
    for (size_t i = 0; i < hold->count; i++) {
        uint32_t id = hold->victims[i].id;
        uintptr_t count = (uintptr_t)map_get_num(&sched->preempt->held_victims, id) + (uintptr_t)by;
        if (count)
            map_put_num(&sched->preempt->held_victims, id, (void *)count);
        else
            map_del_num(&sched->preempt->held_victims, id);
    }
}

static void hold_free(struct preempt_hold *hold)
{
    free(hold->victims);
    free(hold->partition_queues);
    free(hold->order);
    free(hold->seats);
    free(hold->held);
    free(hold->of);
}

/* Others may have what was kept for it. */
static void let_go(struct sched *sched, struct preempt_hold *hold)
{
    for (uint32_t i = 0; i < hold->components; i++) {
        limits_unplan(sched, hold->held[i], false);
        licences_give(sched, hold->of[i].licences);
        hold->held[i] = NULL;
        hold->of[i].licences = NULL;
    }
}

void preempt_hold_drop(struct sched *sched, uint32_t job_id)
{
    struct preempt_hold *at = sched->preempt->holds.len ? hold_at(sched, job_id) : NULL;

    if (!at)
        return;
    struct preempt_hold hold = *at;
    vec_remove(&sched->preempt->holds, (size_t)(at - sched->preempt->holds.items));
    count_victims(sched, &hold, -1);
    for (size_t i = 0; i < hold.seat_count; i++) {
        if (i == 0 || hold.seats[i].host != hold.seats[i - 1].host)
            host_block_del(sched, hold.seats[i].host, hold.job_id);
    }
    let_go(sched, &hold);
    hold_free(&hold);
    const struct pending *pending = pending_find(sched, job_id);
    if (pending) /* it is booked again, if it did not start */
        family_needs_booking(sched, class_of(sched, pending)->family,
                             (struct order){ pending->rank, job_id });
    sched->queue->preempt_changed = true;
}

int64_t preempt_hold_start_us(const struct sched *sched, const struct preempt_hold *hold)
{
    int64_t last = sched->now_us;

    for (size_t i = hold->gone; i < hold->count; i++) {
        const struct job *job = state_job(sched->state, hold->victims[i].id);
        if (job && job->attempt == hold->victims[i].attempt && job->more)
            last = MAX(last, job->more->preempt_end_us);
    }
    return last;
}

void preempt_hold_names(const struct sched *sched, const struct preempt_hold *hold,
                        uint32_t component, struct str *out)
{
    struct parts parts = { 0 };

    for (size_t i = 0; i < hold->seat_count; i++) {
        if (hold->seats[i].component == component)
            vec_push(&parts.list, ((struct chosen){ hold->seats[i].host, hold->seats[i].take }));
    }
    parts_names(sched, &parts, out);
    vec_done(&parts.list);
}

void preempt_holds_done(struct sched *sched)
{
    vec_each (struct preempt_hold, hold, &sched->preempt->holds) {
        for (uint32_t i = 0; i < hold->components; i++) {
            free(hold->held[i]);
            for (struct licence_use *use = hold->of[i].licences, *next; use; use = next) {
                next = use->next; /* the pools have gone */
                free(use);
            }
        }
        hold_free(hold);
    }
    vec_done(&sched->preempt->holds);
    map_done(&sched->preempt->held_victims);
}

/* ---- a new one ---- */

static void put_victims(struct preempt_trial *trial, struct preempt_hold *hold)
{
    const struct preempt_search *search = trial->search;

    hold->victims = NEW_ARRAY(struct victim_id, search->list.len + 1);
    for (int turn = 0; turn < 3; turn++) { /* the last of the named must be one that has to go */
        for (size_t i = 0; i < search->list.len; i++) {
            const struct victim *victim = &search->list.items[i];
            int its = victim->going ? 2 : victim->lent ? 0 : 1;
            if (!victim->stays && its == turn)
                hold->victims[hold->count++] = (struct victim_id){ victim->id, victim->attempt };
        }
        hold->named = turn < 2 ? hold->count : hold->named;
    }
}

static void put_blocks(struct preempt_trial *trial, const struct preempt_hold *hold)
{
    struct sched *sched = trial->sched;

    for (size_t i = 0; i < hold->seat_count; i++) {
        const struct seat *seat = &hold->seats[i];
        const struct preemptor *preemptor = &trial->preemptors[seat->component];
        struct block block = { .start_us = sched->now_us, .job_id = hold->job_id };
        if (preemptor->of.parts.resv)
            block.resv = resv_hash(preemptor->of.parts.resv->spec->name);
        block.end_us = job_ends_us(preemptor->job, sched->now_us);
        block.amount = amount_take(sched, &seat->take, preemptor->need->whole_nodes);
        host_block_add(sched, seat->host, block);
    }
}

void preempt_hold_put(struct preempt_trial *trial)
{
    struct sched *sched = trial->sched;
    const struct preempt_search *search = trial->search;
    struct preempt_hold hold = { .job_id = trial->job->id, .components = trial->count };

    book_drop(sched, hold.job_id);
    put_victims(trial, &hold);
    hold.partition_queues = NEW_ARRAY(uint32_t, hold.components);
    hold.order = NEW_ARRAY(uint32_t, hold.components);
    hold.held = NEW_ARRAY(struct held *, hold.components);
    hold.of = NEW_ARRAY(struct booked, hold.components);
    for (uint32_t i = 0; i < hold.components; i++) {
        const struct preemptor *preemptor = &trial->preemptors[i];
        hold.partition_queues[i] = preemptor->need->partition->number;
        hold.order[i] = search->order.items[i];
        hold.held[i] = limits_plan(sched, preemptor->job, &preemptor->of.parts);
        hold.of[i].licences = licences_book(
            sched, (struct order){ 0, hold.job_id }, preemptor->job->shape, &preemptor->of.parts,
            sched->now_us, job_ends_us(preemptor->job, sched->now_us));
    }
    hold.seat_count = search->seats.len;
    hold.seats = NEW_ARRAY(struct seat, hold.seat_count + 1);
    for (size_t i = 0; i < hold.seat_count; i++)
        hold.seats[i] = search->seats.items[i];
    put_blocks(trial, &hold);
    count_victims(sched, &hold, 1);
    vec_push(&sched->preempt->holds, hold);
}

/* What it keeps of limits is not in its own way. */
void preempt_hold_lift(struct sched *sched, const struct job *job, int by)
{
    const struct preempt_hold *hold =
        sched->preempt->holds.len ? hold_at(sched, het_first(sched, job)->id) : NULL;

    for (uint32_t i = 0; hold && i < hold->components; i++)
        limits_lift(sched, hold->held[i], by);
}

void preempt_hold_returns(struct sched *sched, const struct job *job)
{
    for (size_t i = 0; i < state_suspended_for_count(sched->state, job->id); i++)
        inflight_return(sched, state_suspended_for(sched->state, job->id, i), job->id);
}

/* ---- (2) ---- */

bool preempt_victim_is_gone(const struct sched *sched, const struct victim_id *victim)
{
    const struct job *job = state_job(sched->state, victim->id);

    return !job || job->attempt != victim->attempt || !job_holds(job) || job->run->lent;
}

static bool was_told(const struct sched *sched, const struct preempt_hold *hold,
                     const struct victim_id *victim)
{
    const struct job *job = state_job(sched->state, victim->id);

    if (preempt_victim_is_gone(sched, victim))
        return true;
    enum job_phase phase = job_phase(job);
    return phase == PHASE_COMPLETING || phase == PHASE_REQUEUING ||
           (job->more && job->more->preempted_by == hold->job_id && job->more->preempt_us);
}

/* Of those that a command named; the last of them is enough. */
static bool is_carried_out(const struct sched *sched, const struct preempt_hold *hold)
{
    return !hold->told || was_told(sched, hold, &hold->victims[hold->told - 1]);
}

static void put_ids(struct arena *arena, const struct victim_id *victims, size_t count,
                    uint32_t **ids, uint32_t **attempts)
{
    *ids = ARENA_ARRAY(arena, uint32_t, count + 1);
    *attempts = ARENA_ARRAY(arena, uint32_t, count + 1);
    for (size_t i = 0; i < count; i++) {
        (*ids)[i] = victims[i].id;
        (*attempts)[i] = victims[i].attempt;
    }
}

static char *partition_queue_name(const struct sched *sched, uint32_t number)
{
    const struct partition *partition = state_partition_at(sched->state, number);

    return partition ? partition->spec->name : NULL;
}

static void tell_some(struct sched *sched, struct preempt_hold *hold)
{
    struct arena *arena = &sched->plan_arena;
    CmdPreempt *command = ARENA_NEW(arena, CmdPreempt);
    const struct victim_id *from = &hold->victims[hold->told];
    size_t count = MIN(hold->named - hold->told, (size_t)TOLD_AT_ONCE);
    size_t later = hold->told ? 0 : hold->named - count;

    cmd_preempt__init(command);
    command->has_job_id = true;
    command->job_id = hold->job_id;
    command->partition = partition_queue_name(sched, hold->partition_queues[0]);
    command->n_victims = command->n_attempts = count;
    put_ids(arena, from, count, &command->victims, &command->attempts);
    command->n_later = command->n_later_attempts = later;
    put_ids(arena, from + count, later, &command->later, &command->later_attempts);
    command->also = ARENA_ARRAY(arena, PreemptFor *, hold->components);
    for (uint32_t i = 1; i < hold->components; i++) {
        PreemptFor *also = ARENA_NEW(arena, PreemptFor);
        preempt_for__init(also);
        also->has_job_id = true;
        also->job_id = hold->job_id + i;
        also->partition = partition_queue_name(sched, hold->partition_queues[i]);
        command->also[command->n_also++] = also;
    }
    hold->told += count;
    vec_push(&sched->preempt->commands, command);
}

void preempt_holds_tell(struct sched *sched, unsigned *budget)
{
    vec_each (struct preempt_hold, hold, &sched->preempt->holds) {
        if (hold->told == hold->named || !is_carried_out(sched, hold))
            continue;
        tell_some(sched, hold);
        budget_take(budget, TOLD_AT_ONCE / TOLD_PER_COST);
    }
}

void preempt_refused(struct sched *sched, uint32_t job_id)
{
    const struct preempt_hold *hold =
        sched->preempt->holds.len ? preempt_hold_of(sched, job_id) : NULL;

    if (!hold || is_carried_out(sched, hold))
        return; /* another command about it was refused */
    preempt_hold_drop(sched, job_id);
    sched->queue->preempt_changed = false;
    sched->queue->preempt_wake_us = sched->now_us + US_PER_S;
}

/* ---- (1) ---- */

/* On the very seats, where no more than room there decides. */
static bool sit_down(struct preempt_trial *trial, const struct preempt_hold *hold)
{
    struct sched *sched = trial->sched;

    for (size_t from = 0, to; from < hold->seat_count; from = to) {
        for (to = from + 1;
             to < hold->seat_count && hold->seats[to].host == hold->seats[from].host;)
            to++;
        if (!preempt_trial_seats_fit(trial, &hold->seats[from], to - from))
            return false;
    }
    for (uint32_t i = 0; i < trial->count; i++) {
        const struct preemptor *preemptor = &trial->preemptors[i];
        struct parts *parts = &trial->preemptors[i].of.parts;
        if (preemptor->family->by_socket || preemptor->need->bound ||
            preemptor->family->shape->reservation ||
            (preemptor->family->shape->licence_count &&
             !licences_fit(sched, preemptor->family, &preemptor->view, &parts->licence)))
            return false;
        parts->need = preemptor->need;
        parts->resv = NULL;
        vec_clear(&parts->list);
        for (size_t s = 0; s < hold->seat_count; s++) {
            if (hold->seats[s].component == i)
                vec_push(&parts->list,
                         ((struct chosen){ hold->seats[s].host, hold->seats[s].take }));
        }
    }
    return true;
}

struct booked *preempt_hold_parts_now(struct sched *sched, const struct preempt_hold *hold,
                                      struct order over)
{
    const struct job *job = state_job(sched->state, hold->job_id);
    uint32_t *hosts = NEW_ARRAY(uint32_t, hold->seat_count + 1);
    struct booked *of = NULL;
    struct preempt_trial trial;
    size_t count = 0;

    bool good =
        het_count(job) == hold->components &&
        preempt_trial_open(&trial, sched, job, hold->partition_queues[0], hold->partition_queues);
    trial.search = NULL;
    for (uint32_t i = 0; i < trial.count && good; i++) {
        struct preemptor *preemptor = &trial.preemptors[i];
        preemptor->hosts = &hosts[count];
        for (size_t s = 0; s < hold->seat_count; s++) {
            if (hold->seats[s].component == i)
                hosts[count++] = hold->seats[s].host;
        }
        preemptor->host_count = (size_t)(&hosts[count] - preemptor->hosts);
        preemptor->view.start_us = preemptor->view.now_us;
        preemptor->view.without = false;
        preemptor->view.order = over;
        trial.turns.order[i] = hold->order[i];
    }
    /* With what was promised to others they may have to be dealt in another way, and beside each other only so. */
    if (good && (preempt_trial_fits(&trial) || sit_down(&trial, hold))) {
        of = NEW_ARRAY(struct booked, trial.count);
        for (uint32_t i = 0; i < trial.count; i++) {
            of[i] = trial.preemptors[i].of;
            trial.preemptors[i].of = (struct booked){ 0 };
        }
    }
    preempt_trial_close(&trial);
    free(hosts);
    return of;
}
