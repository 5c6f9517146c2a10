/* SPDX-License-Identifier: Apache-2.0 */
/*
 * holds.c - room that is kept for a job until those that must go for it have gone
 *
 * (1) A hold is a block on each host, so that nothing else takes the room; what the job will need of
 *     licences and limits is kept too. When the last victim is gone the job is tried before all others,
 *     where it finds room, else on its seats, and the hold is given up whatever comes of it. If it does
 *     not start then, nobody is preempted for it for a while (VAIN_US): were that a mistake of ours, it
 *     would be made again and again.
 * (2) Very many victims are told some at a time, so that no command takes long. The first command names
 *     all of them, so that core refuses all or none; the next follows when that was carried out.
 * (3) A new leader knows nothing of holds. Who was told to go for a job counts as going for it (hunt.c),
 *     so nobody else has to.
 */
#include <stdlib.h>

#include "sched/hunt_priv.h"

#define VAIN_US (60 * US_PER_S)
enum { TOLD_AT_ONCE = 256, TOLD_PER_COST = 4 };

static struct hold *hold_at(const struct sched *sched, uint32_t job_id)
{
    vec_each (struct hold, hold, &sched->holds) {
        if (hold->job_id == job_id)
            return hold;
    }
    return NULL;
}

const struct hold *hold_of(const struct sched *sched, uint32_t job_id)
{
    return hold_at(sched, job_id);
}

bool hold_waits_for(const struct sched *sched, uint32_t victim)
{
    return map_len(&sched->held_victims) && map_get_num(&sched->held_victims, victim);
}

static void count_victims(struct sched *sched, const struct hold *hold, int by)
{
    for (size_t i = 0; i < hold->count; i++) {
        uint32_t id = hold->victims[i].id;
        uintptr_t count = (uintptr_t)map_get_num(&sched->held_victims, id) + (uintptr_t)by;
        if (count)
            map_put_num(&sched->held_victims, id, (void *)count);
        else
            map_del_num(&sched->held_victims, id);
    }
}

static void hold_free(struct hold *hold)
{
    free(hold->victims);
    free(hold->lanes);
    free(hold->order);
    free(hold->seats);
    free(hold->held);
    free(hold->of);
}

/* Others may have what was kept for it. */
static void let_go(struct sched *sched, struct hold *hold)
{
    for (uint32_t i = 0; i < hold->components; i++) {
        limits_unplan(sched, hold->held[i], false);
        licences_give(sched, hold->of[i].licences);
        hold->held[i] = NULL;
        hold->of[i].licences = NULL;
    }
}

void hold_drop(struct sched *sched, uint32_t job_id)
{
    struct hold *at = sched->holds.len ? hold_at(sched, job_id) : NULL;

    if (!at)
        return;
    struct hold hold = *at;
    vec_remove(&sched->holds, (size_t)(at - sched->holds.items));
    count_victims(sched, &hold, -1);
    for (size_t i = 0; i < hold.seat_count; i++) {
        if (i == 0 || hold.seats[i].host != hold.seats[i - 1].host)
            host_block_del(sched, hold.seats[i].host, hold.job_id);
    }
    let_go(sched, &hold);
    hold_free(&hold);
    const struct pend *pend = pend_find(sched, job_id);
    if (pend) /* it is booked again, if it did not start */
        family_doubt(sched, class_of(sched, pend)->family, (struct order){ pend->rank, job_id });
    sched->preempt_news = true;
}

int64_t hold_start_us(const struct sched *sched, const struct hold *hold)
{
    int64_t last = sched->now_us;

    for (size_t i = hold->gone; i < hold->count; i++) {
        const struct job *job = state_job(sched->state, hold->victims[i].id);
        if (job && job->attempt == hold->victims[i].attempt && job->more)
            last = MAX(last, job->more->preempt_end_us);
    }
    return last;
}

void hold_names(const struct sched *sched, const struct hold *hold, uint32_t component,
                struct str *out)
{
    struct parts parts = { 0 };

    for (size_t i = 0; i < hold->seat_count; i++) {
        if (hold->seats[i].component == component)
            vec_push(&parts.list, ((struct chosen){ hold->seats[i].host, hold->seats[i].take }));
    }
    parts_names(sched, &parts, out);
    vec_done(&parts.list);
}

void holds_done(struct sched *sched)
{
    vec_each (struct hold, hold, &sched->holds) {
        for (uint32_t i = 0; i < hold->components; i++) {
            free(hold->held[i]);
            for (struct licence_use *use = hold->of[i].licences, *next; use; use = next) {
                next = use->next; /* the pools have gone */
                free(use);
            }
        }
        hold_free(hold);
    }
    vec_done(&sched->holds);
    map_done(&sched->held_victims);
}

/* ---- a new one ---- */

static void put_victims(struct hunt *hunt, struct hold *hold)
{
    const struct chase *chase = hunt->chase;

    hold->victims = NEW_ARRAY(struct victim, chase->list.len + 1);
    for (int turn = 0; turn < 3; turn++) { /* the last of the named must be one that has to go */
        for (size_t i = 0; i < chase->list.len; i++) {
            const struct quarry *quarry = &chase->list.items[i];
            int its = quarry->going ? 2 : quarry->lent ? 0 : 1;
            if (!quarry->stays && its == turn)
                hold->victims[hold->count++] = (struct victim){ quarry->id, quarry->attempt };
        }
        hold->named = turn < 2 ? hold->count : hold->named;
    }
}

static void put_blocks(struct hunt *hunt, const struct hold *hold)
{
    struct sched *sched = hunt->sched;

    for (size_t i = 0; i < hold->seat_count; i++) {
        const struct seat *seat = &hold->seats[i];
        const struct hunter *hunter = &hunt->hunters[seat->component];
        struct block block = { .start_us = sched->now_us, .job_id = hold->job_id };
        if (hunter->of.parts.resv)
            block.resv = resv_hash(hunter->of.parts.resv->spec->name);
        block.end_us = job_ends_us(hunter->job, sched->now_us);
        block.amount = amount_take(sched, &seat->take, hunter->need->whole_nodes);
        host_block_add(sched, seat->host, block);
    }
}

void hold_put(struct hunt *hunt)
{
    struct sched *sched = hunt->sched;
    const struct chase *chase = hunt->chase;
    struct hold hold = { .job_id = hunt->job->id, .components = hunt->count };

    book_drop(sched, hold.job_id);
    put_victims(hunt, &hold);
    hold.lanes = NEW_ARRAY(uint32_t, hold.components);
    hold.order = NEW_ARRAY(uint32_t, hold.components);
    hold.held = NEW_ARRAY(struct held *, hold.components);
    hold.of = NEW_ARRAY(struct booked, hold.components);
    for (uint32_t i = 0; i < hold.components; i++) {
        const struct hunter *hunter = &hunt->hunters[i];
        hold.lanes[i] = hunter->need->partition->number;
        hold.order[i] = chase->order.items[i];
        hold.held[i] = limits_plan(sched, hunter->job, &hunter->of.parts);
        hold.of[i].licences = licences_book(sched, (struct order){ 0, hold.job_id },
                                            hunter->job->shape, &hunter->of.parts, sched->now_us,
                                            job_ends_us(hunter->job, sched->now_us));
    }
    hold.seat_count = chase->seats.len;
    hold.seats = NEW_ARRAY(struct seat, hold.seat_count + 1);
    for (size_t i = 0; i < hold.seat_count; i++)
        hold.seats[i] = chase->seats.items[i];
    put_blocks(hunt, &hold);
    count_victims(sched, &hold, 1);
    vec_push(&sched->holds, hold);
}

/* What it keeps of limits is not in its own way. */
void hold_lift(struct sched *sched, const struct job *job, int by)
{
    const struct hold *hold = sched->holds.len ? hold_at(sched, het_first(sched, job)->id) : NULL;

    for (uint32_t i = 0; hold && i < hold->components; i++)
        limits_lift(sched, hold->held[i], by);
}

void hold_returns(struct sched *sched, const struct job *job)
{
    for (size_t i = 0; i < state_lent_for_count(sched->state, job->id); i++)
        flight_return(sched, state_lent_for(sched->state, job->id, i), job->id);
}

/* ---- (2) ---- */

static bool is_gone(const struct sched *sched, const struct victim *victim)
{
    const struct job *job = state_job(sched->state, victim->id);

    return !job || job->attempt != victim->attempt || !job_holds(job) || job->run->lent;
}

static bool was_told(const struct sched *sched, const struct hold *hold,
                     const struct victim *victim)
{
    const struct job *job = state_job(sched->state, victim->id);

    if (is_gone(sched, victim))
        return true;
    enum job_phase phase = job_phase(job);
    return phase == PHASE_COMPLETING || phase == PHASE_REQUEUING ||
           (job->more && job->more->preempted_by == hold->job_id && job->more->preempt_us);
}

/* Of those that a command named; the last of them is enough. */
static bool is_carried_out(const struct sched *sched, const struct hold *hold)
{
    return !hold->told || was_told(sched, hold, &hold->victims[hold->told - 1]);
}

static void put_ids(struct arena *arena, const struct victim *victims, size_t count, uint32_t **ids,
                    uint32_t **attempts)
{
    *ids = ARENA_ARRAY(arena, uint32_t, count + 1);
    *attempts = ARENA_ARRAY(arena, uint32_t, count + 1);
    for (size_t i = 0; i < count; i++) {
        (*ids)[i] = victims[i].id;
        (*attempts)[i] = victims[i].attempt;
    }
}

static char *lane_name(const struct sched *sched, uint32_t number)
{
    const struct partition *partition = state_partition_at(sched->state, number);

    return partition ? partition->spec->name : NULL;
}

static void tell_some(struct sched *sched, struct hold *hold)
{
    struct arena *arena = &sched->plan_arena;
    CmdPreempt *command = ARENA_NEW(arena, CmdPreempt);
    const struct victim *from = &hold->victims[hold->told];
    size_t count = MIN(hold->named - hold->told, (size_t)TOLD_AT_ONCE);
    size_t later = hold->told ? 0 : hold->named - count;

    cmd_preempt__init(command);
    command->has_job_id = true;
    command->job_id = hold->job_id;
    command->partition = lane_name(sched, hold->lanes[0]);
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
        also->partition = lane_name(sched, hold->lanes[i]);
        command->also[command->n_also++] = also;
    }
    hold->told += count;
    vec_push(&sched->preempts, command);
}

void holds_tell(struct sched *sched, unsigned *budget)
{
    vec_each (struct hold, hold, &sched->holds) {
        if (hold->told == hold->named || !is_carried_out(sched, hold))
            continue;
        tell_some(sched, hold);
        budget_take(budget, TOLD_AT_ONCE / TOLD_PER_COST);
    }
}

void preempt_refused(struct sched *sched, uint32_t job_id)
{
    const struct hold *hold = sched->holds.len ? hold_of(sched, job_id) : NULL;

    if (!hold || is_carried_out(sched, hold))
        return; /* another command about it was refused */
    hold_drop(sched, job_id);
    sched->preempt_news = false;
    sched->preempt_wake_us = sched->now_us + US_PER_S;
}

/* ---- (1) ---- */

/* On the very seats, where no more than room there decides. */
static bool sit_down(struct hunt *hunt, const struct hold *hold)
{
    struct sched *sched = hunt->sched;

    for (size_t from = 0, to; from < hold->seat_count; from = to) {
        for (to = from + 1;
             to < hold->seat_count && hold->seats[to].host == hold->seats[from].host;)
            to++;
        if (!hunt_seats_fit(hunt, &hold->seats[from], to - from))
            return false;
    }
    for (uint32_t i = 0; i < hunt->count; i++) {
        const struct hunter *hunter = &hunt->hunters[i];
        struct parts *parts = &hunt->hunters[i].of.parts;
        if (hunter->family->by_socket || hunter->need->bound ||
            hunter->family->shape->reservation ||
            (hunter->family->shape->licence_count &&
             !licences_fit(sched, hunter->family, &hunter->view, &parts->licence)))
            return false;
        parts->need = hunter->need;
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

struct booked *hold_parts_now(struct sched *sched, const struct hold *hold, struct order over)
{
    const struct job *job = state_job(sched->state, hold->job_id);
    uint32_t *hosts = NEW_ARRAY(uint32_t, hold->seat_count + 1);
    struct booked *of = NULL;
    struct hunt hunt;
    size_t count = 0;

    bool good = het_count(job) == hold->components &&
                hunt_open(&hunt, sched, job, hold->lanes[0], hold->lanes);
    hunt.chase = NULL;
    for (uint32_t i = 0; i < hunt.count && good; i++) {
        struct hunter *hunter = &hunt.hunters[i];
        hunter->hosts = &hosts[count];
        for (size_t s = 0; s < hold->seat_count; s++) {
            if (hold->seats[s].component == i)
                hosts[count++] = hold->seats[s].host;
        }
        hunter->host_count = (size_t)(&hosts[count] - hunter->hosts);
        hunter->view.start_us = hunter->view.now_us;
        hunter->view.without = false;
        hunter->view.order = over;
        hunt.turns.order[i] = hold->order[i];
    }
    /* With what was promised to others they may have to be dealt in another way, and beside each other only so. */
    if (good && (hunt_fits(&hunt) || sit_down(&hunt, hold))) {
        of = NEW_ARRAY(struct booked, hunt.count);
        for (uint32_t i = 0; i < hunt.count; i++) {
            of[i] = hunt.hunters[i].of;
            hunt.hunters[i].of = (struct booked){ 0 };
        }
    }
    hunt_close(&hunt);
    free(hosts);
    return of;
}

static bool start_on_seats(struct sched *sched, const struct hold *hold, struct family *family,
                           const struct job *job, struct order over)
{
    struct booked *of = hold_parts_now(sched, hold, over);
    bool good = of && plan_job_at(sched, family, job, over, of);

    booked_free(sched, of, hold->components);
    return good;
}

/* All that it waited for has happened. */
static void start_now(struct sched *sched, struct hold *hold, const struct pend *pend,
                      const struct job *job)
{
    struct family *family = class_of(sched, pend)->family;
    struct order order = { pend->rank, job->id };
    uint32_t short_of;

    for (uint32_t i = 0; i < hold->components; i++) {
        limits_unplan(sched, hold->held[i], true); /* its own start counts instead */
        hold->held[i] = NULL;
    }
    bool good = plan_job(sched, family, job, order, &short_of) ||
                start_on_seats(sched, hold, family, job, order);
    /*
     * It is later than when the hold was made, and it ends so much later: what was promised to jobs before it
     * for just after that makes way, and is promised anew. Nobody goes in vain.
     */
    good = good || start_on_seats(sched, hold, family, job, (struct order){ 0, job->id });
    if (!good)
        vec_push(&sched->in_vain, (struct in_vain){ hold->job_id, sched->now_us + VAIN_US });
}

void preempt_ripen(struct sched *sched)
{
    for (size_t i = 0; i < sched->holds.len;) {
        struct hold *hold = &sched->holds.items[i];
        const struct job *job = state_job(sched->state, hold->job_id);
        const struct pend *pend = job ? pend_find(sched, job->id) : NULL;
        uint32_t id = hold->job_id;
        bool waits = job && job_is_eligible(job) && pend;
        while (hold->gone < hold->count && is_gone(sched, &hold->victims[hold->gone]))
            hold->gone++;
        if (waits && (hold->gone < hold->count || hold->told < hold->named)) {
            i++;
            continue;
        }
        if (waits && pend->place == PEND_QUEUED)
            start_now(sched, hold, pend, job);
        hold_drop(sched, id);
    }
}
