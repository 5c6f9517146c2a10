/* SPDX-License-Identifier: Apache-2.0 */
/*
 * charge.c - what a job takes, in TRES; and who counts it
 */
#include "core/policy/policy.h"

#include <stdlib.h>
#include <string.h>

/* A job without a limit is taken to run so long. */
#define UNLIMITED_S (INT64_C(365) * 86400)

int64_t limits_seconds(const struct job *job)
{
    return job->time_limit_s < 0 ? UNLIMITED_S : job->time_limit_s;
}

/* ---- charges ---- */

static void add_one(struct charge *charge, size_t index, uint64_t count)
{
    charge->tres[index] += count;
    charge->node[index] = MAX(charge->node[index], count);
}

bool tres_is_gres(const struct tres *tres, const char *name, const char *type)
{
    return tres->kind == TRES_IS_GRES && str_eq(tres->what, name) &&
           (!tres->type || str_eq(tres->type, type));
}

bool tres_is_licence(const struct tres *tres, const char *name)
{
    return tres->kind == TRES_IS_LICENSE && str_eq(tres->what, name);
}

void charge_add(const struct state *state, struct charge *charge, const char *gres,
                const char *type, uint64_t count)
{
    const struct accounts *accounts = state->accounts;

    for (size_t i = TRES_FIXED; i < accounts->tres_count; i++) {
        if (tres_is_gres(&accounts->tres[i], gres, type))
            add_one(charge, i, count);
    }
}

void charge_add_node(const struct state *state, struct charge *charge, uint32_t cpus,
                     uint64_t mem_mb)
{
    (void)state;
    add_one(charge, TRES_CPU, cpus);
    add_one(charge, TRES_MEM, mem_mb);
    add_one(charge, TRES_NODE, 1);
}

/* `choice`: of "a or b", which; LICENCE_OPEN: neither yet. */
static void add_licences(const struct state *state, struct charge *charge,
                         const struct shape *shape, uint32_t choice)
{
    const struct accounts *accounts = state->accounts;

    for (size_t l = 0; l < shape->licence_count; l++) {
        if (shape->licence_any && l != choice)
            continue;
        for (size_t i = TRES_FIXED; i < accounts->tres_count; i++) {
            if (tres_is_licence(&accounts->tres[i], shape->licences[l].name))
                charge->tres[i] += shape->licences[l].count;
        }
    }
}

void charge_close(const struct state *state, struct charge *charge, const struct shape *shape,
                  uint32_t licence, const struct partition *partition)
{
    add_licences(state, charge, shape, licence);
    charge->tres[TRES_BILLING] = billing_of(state, partition, charge->tres);
}

void charge_asked(const struct state *state, const struct job *job, size_t partition,
                  struct charge *out)
{
    charge_asked_with(state, job, partition, LICENCE_OPEN, out);
}

void charge_asked_with(const struct state *state, const struct job *job, size_t partition,
                       uint32_t licence, struct charge *out)
{
    const struct shape *shape = job->shape;
    const struct need *need = &shape_needs(state, job->shape)[partition];
    uint64_t nodes = MAX(shape->min_nodes, 1);

    memset(out, 0, sizeof(*out));
    out->tres[TRES_CPU] = shape_cpus(shape);
    out->tres[TRES_NODE] = nodes;
    out->tres[TRES_MEM] =
        need->mem_per_node_mb * nodes + need->mem_per_cpu_mb * out->tres[TRES_CPU] +
        need->mem_per_gpu_mb * shape_gpus(shape) + shape->mem_per_task_mb * shape->tasks;
    for (size_t i = 0; i < shape->gres_count; i++) {
        const struct shape_gres *gres = &shape->gres[i];
        charge_add(state, out, gres->name, gres->type,
                   shape_gres_all(shape, gres, nodes, shape->tasks));
    }
    for (size_t i = 0; i < state->accounts->tres_count; i++)
        out->node[i] = (out->tres[i] + nodes - 1) / nodes;
    charge_close(state, out, shape, licence, need->partition);
}

void charge_given(const struct state *state, const struct job *job, struct charge *out)
{
    const struct job_run *run = job->run;

    memset(out, 0, sizeof(*out));
    if (job->beside)
        return;
    for (unsigned i = 0; i < run->count; i++) {
        const struct job_part *part = &run->parts[i];
        if (part->left)
            continue;
        charge_add_node(state, out, part->cpus, part->mem_mb);
        for (size_t g = 0; g < part->gres_count; g++)
            charge_add(state, out, part->gres[g].name, part->gres[g].type, part->gres[g].count);
    }
    add_licences(state, out, job->shape, run->licence);
    out->tres[TRES_BILLING] = run->has_billing ? run->billing : out->tres[TRES_CPU];
}

void charge_bill(const struct state *state, const struct job *job)
{
    const struct partition *partition = partition_at(state, job->run->partition);
    struct job_run *run = job->run;
    struct charge charge;

    run->has_billing = partition && !str_is_empty(partition->spec->tres_billing_weights) &&
                       partition_has_weights(state, partition);
    if (!run->has_billing) {
        run->billing = 0;
        return;
    }
    charge_given(state, job, &charge);
    charge.tres[TRES_BILLING] = 0;
    run->billing = billing_of(state, partition, charge.tres);
}

/* ---- holders ---- */

/* Whom holders know. */
struct who {
    const struct billing_group *billing_group;
    uint32_t uid;
    const char *account;
};

static struct who who_of(const struct job *job)
{
    static const struct billing_group none;

    return (struct who){ job->billing_group ? job->billing_group : &none, job->owner->uid,
                         job->account };
}

struct holder *job_qos_user(const struct state *state, const struct job *job, const struct qos *qos)
{
    return job->billing_group && job->billing_group->qos == qos && job->billing_group->qos_user
               ? job->billing_group->qos_user
               : qos_user(state->accounts, qos, job->owner->uid, false);
}

struct holder *job_qos_account(const struct state *state, const struct job *job,
                               const struct qos *qos)
{
    return job->billing_group && job->billing_group->qos == qos && job->billing_group->qos_account
               ? job->billing_group->qos_account
               : qos_account(state->accounts, qos, job->account, false);
}

static size_t add_qos_holders(struct accounts *accounts, const struct qos *qos,
                              const struct who *who, bool make, struct holder **out, size_t count)
{
    struct billing_group *group = who->billing_group->qos == qos
                                      ? (struct billing_group *)(uintptr_t)who->billing_group
                                      : NULL;
    struct holder *user = group ? group->qos_user : NULL,
                  *account = group ? group->qos_account : NULL;

    if (!user)
        user = qos_user(accounts, qos, who->uid, make);
    if (!account)
        account = qos_account(accounts, qos, who->account, make);
    if (group) {
        group->qos_user = user;
        group->qos_account = account;
    }
    out[count++] = (struct holder *)(uintptr_t)&qos->holder;
    if (user)
        out[count++] = user;
    if (account)
        out[count++] = account;
    return count;
}

static size_t some_holders(const struct state *state, const struct who *who, const char *partition,
                           unsigned holds, bool make, struct holder **out)
{
    const struct map *part_qos = &state->accounts->part_qos;
    const struct qos *own = who->billing_group->qos, *other = NULL;
    size_t count = 0;

    if (holds & HOLDS_PART && map_len(part_qos))
        other = map_get(part_qos, partition);
    for (const struct assoc *at = who->billing_group->assoc; at && holds & HOLDS_ASSOC;
         at = at->parent)
        out[count++] = (struct holder *)(uintptr_t)&at->holder;
    if (own && holds & HOLDS_QOS)
        count = add_qos_holders(state->accounts, own, who, make, out, count);
    if (other && other != own)
        count = add_qos_holders(state->accounts, other, who, make, out, count);
    return count;
}

static size_t holders_of(const struct state *state, const struct who *who, const char *partition,
                         bool make, struct holder **out)
{
    return some_holders(state, who, partition, HOLDS_ALL, make, out);
}

size_t limits_holders(const struct state *state, const struct job *job,
                      const struct partition *partition, const struct holder *out[HOLDERS_MOST])
{
    struct holder *mine[HOLDERS_MOST];
    struct who who = who_of(job);
    size_t count = holders_of(state, &who, partition ? partition->spec->name : "", false, mine);

    for (size_t i = 0; i < count; i++)
        out[i] = mine[i];
    return count;
}

/* ---- what is planned ---- */

void tallies_add(const struct state *state, struct tallies *tallies,
                 const struct holder *const *holders, size_t count, const struct charge *charge,
                 int64_t seconds, int sign)
{
    uint64_t by = sign < 0 ? UINT64_MAX : 1;

    if (count && tallies->count < state->accounts->holders) {
        size_t more = state->accounts->holders * 2 + 16;
        tallies->items = mem_resize(tallies->items, more * sizeof(*tallies->items));
        memset(tallies->items + tallies->count, 0,
               (more - tallies->count) * sizeof(*tallies->items));
        tallies->count = more;
    }
    for (size_t i = 0; i < count; i++) {
        struct planned *tally = &tallies->items[holders[i]->number];
        tally->jobs += (uint32_t)by;
        for (size_t k = 0; k < state->accounts->tres_count; k++) {
            tally->tres[k] += charge->tres[k] * by;
            tally->secs[k] += charge->tres[k] * by * (uint64_t)seconds;
        }
    }
}

void tallies_done(struct tallies *tallies)
{
    free(tallies->items);
    *tallies = (struct tallies){ 0 };
}

/* ---- counting ---- */

static void count_run(struct state *state, const struct job *job, struct holder *holder,
                      const struct charge *charge, uint64_t by)
{
    uint64_t end_s = (uint64_t)(job->run->start_us / US_PER_S + limits_seconds(job));
    uint64_t factor = job_qos(job) ? job_qos(job)->usage_factor : 1000;

    holder->jobs += (uint32_t)by;
    for (size_t k = 0; k < state->accounts->tres_count; k++) {
        holder->used[k] += charge->tres[k] * by;
        holder->run_end[k] += charge->tres[k] * by * end_s; /* wraps around and back */
    }
    if (!holder->keeps || job->state == JOB_SUSPENDED)
        return;
    if (!state->restoring)
        usage_settle(state, holder);
    for (size_t k = 0; k < state->accounts->tres_count; k++)
        holder->rate[k] += charge->tres[k] * by * factor;
    holder->wall_rate += by * factor;
}

bool job_is_counted_running(const struct job *job)
{
    enum job_phase phase = job_phase(job);

    return phase == PHASE_CONFIGURING || phase == PHASE_RUNNING || phase == PHASE_SUSPENDED;
}

void limits_count(struct state *state, const struct job *job, int sign, uint64_t weight)
{
    enum job_phase phase = job_phase(job);
    struct billing_group_record *group = billing_group_record(job->billing_group);
    struct holder *holders[HOLDERS_MOST];
    struct who who = who_of(job);
    uint64_t by = sign < 0 ? UINT64_MAX : 1;

    if (phase == PHASE_ENDED)
        return;
    group->open += (uint32_t)(by * weight);
    if (phase == PHASE_COMPLETING)
        return;
    size_t count = holders_of(state, &who, billing_group_partition(group), true, holders);
    group->submitted += (uint32_t)(by * weight);
    for (size_t i = 0; i < count; i++)
        holders[i]->submitted += (uint32_t)(by * weight);
    if (phase == PHASE_PENDING && job->accrue_us) {
        group->accruing += (uint32_t)(by * weight);
        for (size_t i = 0; i < count; i++)
            holders[i]->accruing += (uint32_t)(by * weight);
    }
    if (!job_is_counted_running(job))
        return;
    billing_group_run_add(state, job, by);
    count = holders_of(state, &who, job->run->partition, true, holders);
    if (!count)
        return;
    struct charge charge;
    charge_given(state, job, &charge);
    for (size_t i = 0; i < count; i++)
        count_run(state, job, holders[i], &charge, by);
}

static void count_runs(struct state *state, struct holder *holder,
                       const struct billing_group_run *run, const struct billing_group_sum *sums,
                       uint64_t by, uint64_t factor)
{
    holder->jobs += (uint32_t)(run->jobs * by);
    for (size_t k = 0; k < state->accounts->tres_count; k++) {
        holder->used[k] += sums[k].used * by;
        holder->run_end[k] += sums[k].run_end * by;
    }
    if (!holder->keeps)
        return;
    usage_settle(state, holder);
    for (size_t k = 0; k < state->accounts->tres_count; k++)
        holder->rate[k] += sums[k].rate * by * factor;
    holder->wall_rate += run->going * by * factor;
}

void limits_count_group(struct state *state, const struct billing_group_record *group,
                        unsigned holds, uint64_t by)
{
    struct holder *holders[HOLDERS_MOST];
    struct who who = { &group->billing_group, group->owner->uid, group->account };
    uint64_t factor = group->billing_group.qos ? group->billing_group.qos->usage_factor : 1000;
    size_t count =
        some_holders(state, &who, billing_group_partition(group), holds, group->submitted, holders);

    for (size_t i = 0; i < count; i++) {
        holders[i]->submitted += (uint32_t)(group->submitted * by);
        holders[i]->accruing += (uint32_t)(group->accruing * by);
    }
    vec_each (struct billing_group_run, run, &group->runs) {
        if (!run->jobs)
            continue;
        count = some_holders(state, &who, run->partition, holds, true, holders);
        if (!count)
            continue;
        struct billing_group_sum sums[TRES_MOST];
        billing_group_run_sums(state->accounts, run, sums);
        for (size_t i = 0; i < count; i++)
            count_runs(state, holders[i], run, sums, by, factor);
    }
}

void limits_count_tres(struct state *state, const struct billing_group_record *group,
                       unsigned holds, uint32_t tres)
{
    struct holder *holders[HOLDERS_MOST];
    struct who who = { &group->billing_group, group->owner->uid, group->account };
    uint64_t factor = group->billing_group.qos ? group->billing_group.qos->usage_factor : 1000;

    vec_each (struct billing_group_run, run, &group->runs) {
        if (!run->jobs || !billing_group_run_has(state->accounts, run, tres))
            continue;
        struct billing_group_sum sums[TRES_MOST];
        billing_group_run_sums(state->accounts, run, sums);
        size_t count = some_holders(state, &who, run->partition, holds, true, holders);
        for (size_t i = 0; i < count; i++) {
            usage_settle(state, holders[i]);
            for (size_t k = TRES_FIXED; k < state->accounts->tres_count; k++) {
                if (!(tres >> k & 1))
                    continue;
                holders[i]->used[k] += sums[k].used;
                holders[i]->run_end[k] += sums[k].run_end;
                holders[i]->rate[k] += holders[i]->keeps ? sums[k].rate * factor : 0;
            }
        }
    }
}

void limits_refund(struct state *state, const struct job *job, int64_t us)
{
    struct holder *holders[HOLDERS_MOST];
    struct charge charge;
    uint64_t factor = job_qos(job) ? job_qos(job)->usage_factor : 1000;
    struct who who = who_of(job);
    size_t count = us <= 0 ? 0 : holders_of(state, &who, job->run->partition, true, holders);

    if (count)
        charge_given(state, job, &charge);
    for (size_t i = 0; i < count; i++) {
        struct holder *holder = holders[i];
        if (!holder->keeps)
            continue;
        for (size_t k = 0; k < state->accounts->tres_count; k++) {
            uint64_t much = usage_over(charge.tres[k] * factor, us);
            holder->usage[k] -= MIN(much, holder->usage[k]);
        }
        uint64_t much = usage_over(factor, us);
        holder->wall -= MIN(much, holder->wall);
        holder_rehash(state, holder);
    }
}

uint64_t holder_run_secs(const struct state *state, const struct holder *holder, size_t tres)
{
    uint64_t now_s = (uint64_t)(state->time_us / US_PER_S);
    int64_t left = (int64_t)(holder->run_end[tres] - holder->used[tres] * now_s);

    return left < 0 ? 0 : (uint64_t)left;
}
