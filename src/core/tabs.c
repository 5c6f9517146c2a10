/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tabs.c - jobs that are bound and counted alike, kept together
 *
 * There are a million jobs and a few thousand tabs. What holders count (accounts.h) is the sum over
 * tabs, so a new configuration, or another QOS of a partition, adds up tabs and looks at no job.
 *
 * (1) A tab lives as long as a job refers to it. Its sums follow from the records of its jobs.
 * (2) What runs is summed only for a tab that some holder may count (tab_is_kept): a cluster without
 *     accounts does not pay for it. Where that changes, what runs is added up again.
 */
#include <stdlib.h>
#include <string.h>

#include "core/state_priv.h"

/* The key: three pointers to what is kept once, then the partitions, each with its NUL. */
enum { KEY_HEAD = 3 * sizeof(void *) };

struct span tab_key(const struct interned *value)
{
    const struct tab_record *tab = (const struct tab_record *)value;

    return (struct span){ tab->key, tab->key_len };
}

struct tab_record *tab_record(const struct tab *tab)
{
    return CONTAINER_OF((struct tab *)(uintptr_t)tab, struct tab_record, tab);
}

const char *tab_partition(const struct tab_record *tab)
{
    return tab->key + KEY_HEAD;
}

static void bind(const struct state *state, struct tab_record *tab)
{
    const char *user = *tab->owner->user ? tab->owner->user : NULL;

    tab->tab.assoc =
        tab->account && user ? state_assoc(state, tab->account, user, tab_partition(tab)) : NULL;
    tab->tab.qos = state_qos(state, tab->qos);
}

/* (2) */
bool tab_is_kept(const struct state *state, const struct tab_record *tab)
{
    return tab->tab.assoc || tab->tab.qos || state->accounts->part_qos;
}

static struct tab_record *tab_new(struct state *state, const struct job *job, struct span key)
{
    struct tab_record *tab = mem_new(sizeof(*tab) + key.len);

    memcpy(tab->key, key.ptr, key.len);
    tab->key_len = (uint32_t)key.len;
    tab->owner = owner_share(job->owner);
    tab->account = words_take(&state->words, job->account);
    tab->qos = words_take(&state->words, job->qos);
    intern_put(&state->tab_keys, &tab->head);
    tab->at = (uint32_t)state->tabs.len;
    vec_push(&state->tabs, tab);
    bind(state, tab);
    tab->kept = tab_is_kept(state, tab);
    return tab;
}

static void tab_free(struct state *state, struct tab_record *tab)
{
    struct tab_record *last = state->tabs.items[--state->tabs.len];

    state->tabs.items[tab->at] = last;
    last->at = tab->at;
    accrue_leave(tab);
    vec_done(&tab->ageless);
    vec_each (struct tab_run, run, &tab->runs)
        words_drop(&state->words, run->partition);
    vec_done(&tab->runs);
    owner_drop(state, tab->owner);
    words_drop(&state->words, tab->account);
    words_drop(&state->words, tab->qos);
    free(tab);
}

void tab_drop(struct state *state, const struct tab *tab)
{
    if (tab && intern_drop(&state->tab_keys, &tab_record(tab)->head))
        tab_free(state, tab_record(tab));
}

void job_bind(struct state *state, struct job *job)
{
    const void *head[3] = { job->owner, job->account, job->qos };
    const struct shape *shape = job->shape;
    const struct tab *old = job->tab;
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
    struct tab_record *tab = (struct tab_record *)intern_find(&state->tab_keys, key, len);
    if (tab)
        tab->head.refs++;
    else
        tab = tab_new(state, job, (struct span){ key, len });
    job->tab = &tab->tab;
    tab_drop(state, old);
}

/* ---- what runs ---- */

struct tab_run *tab_run(struct state *state, struct tab_record *tab, const char *partition)
{
    vec_each (struct tab_run, run, &tab->runs) {
        if (run->partition == partition)
            return run;
    }
    vec_push(&tab->runs, (struct tab_run){ .partition = words_take(&state->words, partition) });
    return &tab->runs.items[tab->runs.len - 1];
}

void tab_run_add(const struct state *state, struct tab_run *run, const struct job *job,
                 const struct charge *charge, uint64_t by)
{
    uint64_t end_s = (uint64_t)(job->run->start_us / US_PER_S + limits_seconds(job));
    uint64_t goes = job->state == JOB_SUSPENDED ? 0 : by;

    run->jobs += (uint32_t)by;
    run->going += (uint32_t)goes;
    for (size_t k = 0; k < state->accounts->tres_count; k++) {
        run->used[k] += charge->tres[k] * by;
        run->run_end[k] += charge->tres[k] * by * end_s; /* wraps around and back */
        run->rate[k] += charge->tres[k] * goes;
    }
}

static void add_run(struct state *state, struct job *job, void *ctx)
{
    struct tab_record *tab = tab_record(job->tab);
    struct charge charge;

    (void)ctx;
    if (!tab->kept || !job_is_counted_running(job))
        return;
    charge_given(state, job, &charge);
    tab_run_add(state, tab_run(state, tab, job->run->partition), job, &charge, 1);
}

static void recount_runs(struct state *state)
{
    vec_each (struct tab_record *, at, &state->tabs) {
        vec_each (struct tab_run, run, &(*at)->runs)
            *run = (struct tab_run){ .partition = run->partition };
        (*at)->kept = tab_is_kept(state, *at);
    }
    holding_each(state, add_run, NULL);
}

/* ---- all of them ---- */

void tabs_recount(struct state *state, bool rebind, bool charges_changed)
{
    vec_each (struct tab_record *, at, &state->tabs) {
        if (rebind)
            bind(state, *at);
        charges_changed = charges_changed || tab_is_kept(state, *at) != (*at)->kept;
    }
    if (charges_changed)
        recount_runs(state);
    vec_each (struct tab_record *, at, &state->tabs)
        limits_count_tab(state, *at);
    accrue_regroup(state);
}

bool tabs_use(const struct state *state, const char *partition)
{
    vec_each (struct tab_record *, at, &state->tabs) {
        const char *end = (*at)->key + (*at)->key_len;
        for (const char *name = tab_partition(*at); name < end; name += strlen(name) + 1) {
            if ((*at)->open && str_eq(name, partition))
                return true;
        }
    }
    return false;
}
