/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accrue.c - which waiting jobs age: limits say how many at most
 *
 * A job ages from when it becomes eligible, unless GrpJobsAccrue, MaxJobsAccrue or their like are
 * reached: then it stands in a line with all that the same holders count, and ages from the turn of
 * the priorities at which there is room for it.
 *
 * (1) Who stands in line follows from the records: pending, eligible, no accrue_us. Each billing group has a
 *     heap by (eligible_us, id) that may hold what is true no more; that is dropped when met, and
 *     a job may be in one twice. So a restored state has other heaps and gives the same answers.
 *     A line is the billing groups that the same holders count.
 * (2) Of an array whose tasks are more than there is room for, some become records and age.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/policy/policy.h"
#include "policy/limits_why.h"

struct accrue_line {
    VEC(struct billing_group_record *) billing_groups;
    char key[160];
};

/* ---- how many more ---- */

struct age_room {
    uint64_t jobs;
    struct limit_hit *hit; /* the limit that leaves no room; may be NULL */
    bool done[BOUNDS];
};

static void look_at(struct age_room *room, const struct tres_limits *tres_limits, enum bound bound,
                    const struct holder *holder, const struct qos *qos, const struct assoc *assoc)
{
    uint64_t most = tres_limits->count[bound], used = holder ? holder->accruing : 0;

    if (most == NO_LIMIT || room->done[bound])
        return;
    if (room->hit && used >= most && room->jobs)
        *room->hit = (struct limit_hit){ .qos = qos,
                                         .assoc = assoc,
                                         .part = "",
                                         .limit = why_bound_name(qos, bound),
                                         .most = most,
                                         .used = used,
                                         .asks = 1,
                                         .holder = holder };
    room->jobs = MIN(room->jobs, most - MIN(most, used));
}

uint64_t accrue_room(const struct state *state, const struct job *job, struct limit_hit *hit)
{
    struct age_room room = { .jobs = UINT64_MAX, .hit = hit };
    const struct qos *qos[2];

    if (!state->accounts->accrue_limited)
        return room.jobs;
    limits_qos_order(state, job, partition_at(state, job->shape->partitions[0]), qos);
    for (size_t i = 0; i < 2; i++) {
        if (!qos[i])
            continue;
        const struct tres_limits *tres_limits = &qos[i]->tres_limits;
        look_at(&room, tres_limits, GRP_ACCRUE, &qos[i]->holder, qos[i], NULL);
        look_at(&room, tres_limits, MAX_ACCRUE_ACCT, job_qos_account(state, job, qos[i]), qos[i],
                NULL);
        look_at(&room, tres_limits, MAX_ACCRUE, job_qos_user(state, job, qos[i]), qos[i], NULL);
        for (size_t k = 0; k < BOUNDS; k++)
            room.done[k] = room.done[k] || tres_limits->count[k] != NO_LIMIT;
    }
    for (const struct assoc *at = job_assoc(job); at; at = at->parent) {
        look_at(&room, &at->tres_limits, GRP_ACCRUE, &at->holder, NULL, at);
        if (at == job_assoc(job) && !room.done[MAX_ACCRUE_ACCT])
            look_at(&room, &at->tres_limits, MAX_ACCRUE, &at->holder, NULL, at);
    }
    return room.jobs;
}

/* ---- lines ---- */

static bool is_waiting(const struct job *job)
{
    return job_phase(job) == PHASE_PENDING && job->eligible_us && !job->accrue_us;
}

/* Tabs with the same key are counted by the same holders. */
static struct accrue_line *line_make(struct state *state, const struct billing_group_record *group)
{
    const struct assoc *assoc = group->billing_group.assoc;
    const struct qos *own = group->billing_group.qos;
    const struct qos *other = map_get(&state->accounts->part_qos, billing_group_partition(group));
    char key[sizeof(((struct accrue_line *)NULL)->key)];

    snprintf(key, sizeof(key), "%llu %u %u %u %s",
             (unsigned long long)(assoc ? assoc->holder.number + UINT64_C(1) : 0),
             group->owner->uid, own ? own->index + 1 : 0, other ? other->index + 1 : 0,
             assoc || !group->account ? "" : group->account);
    struct accrue_line *line = map_get(&state->accounts->accrue_lines, key);
    if (!line) {
        line = NEW(struct accrue_line);
        memcpy(line->key, key, sizeof(key));
        map_put(&state->accounts->accrue_lines, key, line);
    }
    return line;
}

static void join(struct state *state, struct billing_group_record *group)
{
    group->line = line_make(state, group);
    vec_push(&group->line->billing_groups, group);
}

void accrue_leave(struct accounts *accounts, struct billing_group_record *group)
{
    struct accrue_line *line = group->line;

    for (size_t i = 0; line && i < line->billing_groups.len; i++) {
        if (line->billing_groups.items[i] == group) {
            vec_remove(&line->billing_groups, i);
            break;
        }
    }
    if (line && !line->billing_groups.len) {
        map_del(&accounts->accrue_lines, line->key);
        vec_done(&line->billing_groups);
        free(line);
    }
    group->line = NULL;
}

static bool before(const struct ageless *a, const struct ageless *b)
{
    return a->eligible_us != b->eligible_us ? a->eligible_us < b->eligible_us : a->id < b->id;
}

void ageless_push(struct ageless_heap *to, struct ageless one)
{
    vec_push(to, one);
    struct ageless *items = to->items;
    size_t at = to->len - 1;
    for (; at && before(&one, &items[(at - 1) / 2]); at = (at - 1) / 2)
        items[at] = items[(at - 1) / 2];
    items[at] = one;
}

void ageless_pop(struct ageless_heap *from)
{
    struct ageless *items = from->items;
    size_t len = --from->len, at = 0;
    struct ageless last = items[len];

    for (size_t child = 1; child < len; child = at * 2 + 1) {
        child += child + 1 < len && before(&items[child + 1], &items[child]);
        if (!before(&items[child], &last))
            break;
        items[at] = items[child];
        at = child;
    }
    if (len)
        items[at] = last;
}

/* The first of a billing group that still waits there; NULL when nobody does. (1) */
static const struct ageless *first_of(const struct state *state, struct billing_group_record *group)
{
    while (group->ageless.len) {
        const struct ageless *first = &group->ageless.items[0];
        const struct job *job = job_at(state, first->id);
        if (job && is_waiting(job) && job->eligible_us == first->eligible_us &&
            job->billing_group == &group->billing_group)
            return first;
        ageless_pop(&group->ageless);
    }
    return NULL;
}

/* The first of a line. */
const struct ageless *accrue_head(const struct state *state, const struct accrue_line *line)
{
    const struct ageless *best = NULL;

    for (size_t i = 0; line && i < line->billing_groups.len; i++) {
        const struct ageless *first = first_of(state, line->billing_groups.items[i]);
        if (first && (!best || before(first, best)))
            best = first;
    }
    return best;
}

void accrue_clear(struct accounts *accounts)
{
    map_each (entry, &accounts->accrue_lines) {
        struct accrue_line *line = entry->value;
        vec_done(&line->billing_groups);
        free(line);
    }
    map_clear(&accounts->accrue_lines);
}

void accrue_join(struct state *state, struct billing_group_record *group)
{
    if (group->ageless.len)
        join(state, group);
}

void accrue_wait(struct state *state, const struct job *job)
{
    struct billing_group_record *group = billing_group_record(job->billing_group);

    if (!is_waiting(job))
        return;
    if (!group->line)
        join(state, group);
    ageless_push(&group->ageless, (struct ageless){ job->eligible_us, job->id });
}

/* ---- ageing ---- */

const struct accrue_line *accrue_line_of(const struct job *job)
{
    return billing_group_record(job->billing_group)->line;
}

void accrue_set(struct state *state, struct job *job, int64_t us)
{
    size_t weight = job_is_meta(job) ? job->array->waiting : 1;

    if (job_phase(job) == PHASE_PENDING)
        limits_count(state, job, -1, weight);
    job->accrue_us = us;
    if (job_phase(job) == PHASE_PENDING)
        limits_count(state, job, 1, weight);
}

void accrue_begin(struct state *state, struct job *job)
{
    size_t weight = job_is_meta(job) ? job->array->waiting : 1;
    bool limited = state->accounts->accrue_limited;

    if (job->accrue_us)
        return;
    if (!limited ||
        (!accrue_head(state, accrue_line_of(job)) && accrue_room(state, job, NULL) >= weight))
        accrue_set(state, job, state->time_us);
    else
        accrue_wait(state, job);
}

void accrue_stop(struct state *state, struct job *job)
{
    if (job->accrue_us)
        accrue_set(state, job, 0);
}

bool state_accrue_limit(const struct state *state, const struct job *job, struct limit_hit *hit)
{
    return job_is_eligible(job) && !job->accrue_us && state->accounts->accrue_limited &&
           accrue_room(state, job, hit) == 0;
}
