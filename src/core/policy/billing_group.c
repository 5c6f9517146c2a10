/* SPDX-License-Identifier: Apache-2.0 */
/*
 * billing_group.c - jobs that are bound and counted alike, kept together
 *
 * There are a million jobs and a few thousand billing groups. What holders count (accounts.h) is the sum over
 * billing groups, so a new configuration, or another QOS of a partition, adds up billing groups and looks at no job.
 *
 * (1) A billing group lives as long as a job refers to it. Its sums follow from the records of its jobs.
 * (2) What runs is summed by what it is, whether it is counted as a TRES now or not: so a TRES that is
 *     new is counted by a look at the billing groups.
 */
#include <stdlib.h>
#include <string.h>

#include "core/policy/policy.h"

/* The key: three pointers to what is kept once, then the partitions, each with its NUL. */
enum { KEY_HEAD = 3 * sizeof(void *) };

struct span billing_group_key(const struct interned *value)
{
    const struct billing_group_record *group = (const struct billing_group_record *)value;

    return (struct span){ group->key, group->key_len };
}

struct billing_group_record *billing_group_record(const struct billing_group *group)
{
    return CONTAINER_OF((struct billing_group *)(uintptr_t)group, struct billing_group_record,
                        billing_group);
}

const char *billing_group_partition(const struct billing_group_record *group)
{
    return group->key + KEY_HEAD;
}

void billing_group_bind(const struct state *state, struct billing_group_record *group,
                        unsigned holds)
{
    const char *user = *group->owner->user ? group->owner->user : NULL;

    if (holds & HOLDS_ASSOC)
        group->billing_group.assoc =
            group->account && user
                ? state_assoc(state, group->account, user, billing_group_partition(group))
                : NULL;
    if (holds & HOLDS_QOS) {
        group->billing_group.qos = state_qos(state, group->qos);
        group->billing_group.qos_user = group->billing_group.qos_account = NULL;
    }
}

static void user_join(struct state *state, struct billing_group_record *group)
{
    struct billing_group_record *first = map_get(&state->user_billing_groups, group->owner->user);

    group->next_of_user = first;
    if (first)
        first->prev_of_user = group;
    map_put(&state->user_billing_groups, group->owner->user, group);
}

static void user_leave(struct state *state, struct billing_group_record *group)
{
    if (group->next_of_user)
        group->next_of_user->prev_of_user = group->prev_of_user;
    if (group->prev_of_user)
        group->prev_of_user->next_of_user = group->next_of_user;
    else if (group->next_of_user)
        map_put(&state->user_billing_groups, group->owner->user, group->next_of_user);
    else
        map_del(&state->user_billing_groups, group->owner->user);
}

static struct billing_group_record *billing_group_new(struct state *state, const struct job *job,
                                                      struct span key)
{
    struct billing_group_record *group = mem_new(sizeof(*group) + key.len);

    memcpy(group->key, key.ptr, key.len);
    group->key_len = (uint32_t)key.len;
    group->owner = owner_share(job->owner);
    group->account = words_take(&state->words, job->account);
    group->qos = words_take(&state->words, job->qos);
    intern_put(&state->billing_group_keys, &group->head);
    group->at = (uint32_t)state->billing_groups.len;
    vec_push(&state->billing_groups, group);
    user_join(state, group);
    billing_group_bind(state, group, HOLDS_ALL);
    return group;
}

static void run_done(struct state *state, struct billing_group_run *run)
{
    vec_each (struct billing_group_thing, thing, &run->things) {
        words_drop(&state->words, thing->name);
        words_drop(&state->words, thing->type);
    }
    vec_done(&run->things);
    words_drop(&state->words, run->partition);
}

static void billing_group_free(struct state *state, struct billing_group_record *group)
{
    struct billing_group_record *last = state->billing_groups.items[--state->billing_groups.len];

    state->billing_groups.items[group->at] = last;
    last->at = group->at;
    user_leave(state, group);
    accrue_leave(state->accounts, group);
    vec_done(&group->ageless);
    vec_each (struct billing_group_run, run, &group->runs)
        run_done(state, run);
    vec_done(&group->runs);
    owner_drop(state, group->owner);
    words_drop(&state->words, group->account);
    words_drop(&state->words, group->qos);
    free(group);
}

void billing_group_drop(struct state *state, const struct billing_group *group)
{
    if (group && intern_drop(&state->billing_group_keys, &billing_group_record(group)->head))
        billing_group_free(state, billing_group_record(group));
}

void job_bind(struct state *state, struct job *job)
{
    const void *head[3] = { job->owner, job->account, job->qos };
    const struct shape *shape = job->shape;
    const struct billing_group *old = job->billing_group;
    char small[256];
    size_t len = KEY_HEAD;

    for (size_t i = 0; i < shape->partition_count; i++)
        len += strlen(shape->partitions[i]) + 1;
    char *key = len <= sizeof(small) ? small : arena_alloc(&state->scratch, len);
    char *to = key + KEY_HEAD;
    memcpy(key, head, sizeof(head));
    for (size_t i = 0; i < shape->partition_count; i++) {
        size_t one = strlen(shape->partitions[i]) + 1;
        memcpy(to, shape->partitions[i], one);
        to += one;
    }
    struct billing_group_record *group =
        (struct billing_group_record *)intern_find(&state->billing_group_keys, key, len);
    if (group)
        group->head.refs++;
    else
        group = billing_group_new(state, job, (struct span){ key, len });
    job->billing_group = &group->billing_group;
    billing_group_drop(state, old);
}

/* ---- what runs ---- */

static struct billing_group_run *run_in(struct state *state, struct billing_group_record *group,
                                        const char *partition)
{
    vec_each (struct billing_group_run, run, &group->runs) {
        if (run->partition == partition)
            return run;
    }
    vec_push(&group->runs,
             (struct billing_group_run){ .partition = words_take(&state->words, partition) });
    return &group->runs.items[group->runs.len - 1];
}

static struct billing_group_sum *sum_of(struct state *state, struct billing_group_run *run,
                                        const char *name, const char *type, bool is_licence)
{
    vec_each (struct billing_group_thing, thing, &run->things) {
        if (thing->is_licence == is_licence && str_eq(thing->name, name) &&
            str_eq(thing->type, type))
            return &thing->sum;
    }
    vec_push(&run->things, (struct billing_group_thing){ .name = words_take(&state->words, name),
                                                         .type = words_take(&state->words, type),
                                                         .is_licence = is_licence });
    return &run->things.items[run->things.len - 1].sum;
}

/* How many jobs more, until when, and of those that go. */
struct adding {
    uint64_t by, end_s, goes;
};

static void sum_add(struct billing_group_sum *sum, uint64_t count, const struct adding *adding)
{
    sum->used += count * adding->by;
    sum->run_end += count * adding->by * adding->end_s; /* wraps around and back */
    sum->rate += count * adding->goes;
}

static void add_things(struct state *state, struct billing_group_run *run, const struct job *job,
                       const struct adding *adding)
{
    const struct shape *shape = job->shape;

    for (unsigned i = 0; i < job->run->count; i++) {
        const struct job_part *part = &job->run->parts[i];
        for (size_t g = 0; g < part->gres_count && !part->left; g++)
            sum_add(sum_of(state, run, part->gres[g].name, part->gres[g].type, false),
                    part->gres[g].count, adding);
    }
    for (size_t l = 0; l < shape->licence_count; l++) {
        if (!shape->licence_any || l == job->run->licence)
            sum_add(sum_of(state, run, shape->licences[l].name, NULL, true),
                    shape->licences[l].count, adding);
    }
}

void billing_group_run_add(struct state *state, const struct job *job, uint64_t by)
{
    struct billing_group_run *run =
        run_in(state, billing_group_record(job->billing_group), job->run->partition);
    struct adding adding = { .by = by,
                             .end_s =
                                 (uint64_t)(job->run->start_us / US_PER_S + limits_seconds(job)),
                             .goes = job->state == JOB_SUSPENDED ? 0 : by };
    uint64_t fixed[TRES_FIXED] = { 0 };

    run->jobs += (uint32_t)by;
    run->going += (uint32_t)adding.goes;
    if (job->beside)
        return;
    for (unsigned i = 0; i < job->run->count; i++) {
        const struct job_part *part = &job->run->parts[i];
        if (part->left)
            continue;
        fixed[TRES_CPU] += part->cpus;
        fixed[TRES_MEM] += part->mem_mb;
        fixed[TRES_NODE]++;
    }
    fixed[TRES_BILLING] = job->run->has_billing ? job->run->billing : fixed[TRES_CPU];
    for (size_t k = 0; k < TRES_FIXED; k++)
        sum_add(&run->fixed[k], fixed[k], &adding);
    add_things(state, run, job, &adding);
}

static bool is_tres(const struct billing_group_thing *thing, const struct tres *tres)
{
    return thing->is_licence ? tres_is_licence(tres, thing->name)
                             : tres_is_gres(tres, thing->name, thing->type);
}

bool billing_group_run_has(const struct accounts *accounts, const struct billing_group_run *run,
                           uint32_t tres)
{
    bool has = false;

    for (size_t k = TRES_FIXED; k < accounts->tres_count; k++) {
        for (size_t i = 0; tres >> k & 1 && i < run->things.len; i++)
            has = has || is_tres(&run->things.items[i], &accounts->tres[k]);
    }
    return has;
}

/* (2) */
void billing_group_run_sums(const struct accounts *accounts, const struct billing_group_run *run,
                            struct billing_group_sum out[TRES_MOST])
{
    memset(out, 0, TRES_MOST * sizeof(*out));
    memcpy(out, run->fixed, sizeof(run->fixed));
    vec_each (struct billing_group_thing, thing, &run->things) {
        for (size_t k = TRES_FIXED; k < accounts->tres_count; k++) {
            if (!is_tres(thing, &accounts->tres[k]))
                continue;
            out[k].used += thing->sum.used;
            out[k].run_end += thing->sum.run_end;
            out[k].rate += thing->sum.rate;
        }
    }
}

bool billing_groups_use(const struct state *state, const char *partition)
{
    vec_each (struct billing_group_record *, at, &state->billing_groups) {
        const char *end = (*at)->key + (*at)->key_len;
        for (const char *name = billing_group_partition(*at); name < end;
             name += strlen(name) + 1) {
            if ((*at)->open && str_eq(name, partition))
                return true;
        }
    }
    return false;
}
