/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tabs.c - jobs that are bound and counted alike, kept together
 *
 * There are a million jobs and a few thousand tabs. What holders count (accounts.h) is the sum over
 * tabs, so a new configuration, or another QOS of a partition, adds up tabs and looks at no job.
 *
 * (1) A tab lives as long as a job refers to it. Its sums follow from the records of its jobs.
 * (2) What runs is summed by what it is, whether it is counted as a TRES now or not: so a TRES that is
 *     new is counted by a look at the tabs.
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

void tab_bind(const struct state *state, struct tab_record *tab, unsigned holds)
{
    const char *user = *tab->owner->user ? tab->owner->user : NULL;

    if (holds & HOLDS_ASSOC)
        tab->tab.assoc = tab->account && user
                             ? state_assoc(state, tab->account, user, tab_partition(tab))
                             : NULL;
    if (holds & HOLDS_QOS) {
        tab->tab.qos = state_qos(state, tab->qos);
        tab->tab.qos_user = tab->tab.qos_account = NULL;
    }
}

static void user_join(struct state *state, struct tab_record *tab)
{
    struct tab_record *first = map_get(&state->user_tabs, tab->owner->user);

    tab->next_of_user = first;
    if (first)
        first->prev_of_user = tab;
    map_put(&state->user_tabs, tab->owner->user, tab);
}

static void user_leave(struct state *state, struct tab_record *tab)
{
    if (tab->next_of_user)
        tab->next_of_user->prev_of_user = tab->prev_of_user;
    if (tab->prev_of_user)
        tab->prev_of_user->next_of_user = tab->next_of_user;
    else if (tab->next_of_user)
        map_put(&state->user_tabs, tab->owner->user, tab->next_of_user);
    else
        map_del(&state->user_tabs, tab->owner->user);
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
    user_join(state, tab);
    tab_bind(state, tab, HOLDS_ALL);
    return tab;
}

static void run_done(struct state *state, struct tab_run *run)
{
    vec_each (struct tab_thing, thing, &run->things) {
        words_drop(&state->words, thing->name);
        words_drop(&state->words, thing->type);
    }
    vec_done(&run->things);
    words_drop(&state->words, run->partition);
}

static void tab_free(struct state *state, struct tab_record *tab)
{
    struct tab_record *last = state->tabs.items[--state->tabs.len];

    state->tabs.items[tab->at] = last;
    last->at = tab->at;
    user_leave(state, tab);
    accrue_leave(state->accounts, tab);
    vec_done(&tab->ageless);
    vec_each (struct tab_run, run, &tab->runs)
        run_done(state, run);
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

static struct tab_run *run_in(struct state *state, struct tab_record *tab, const char *partition)
{
    vec_each (struct tab_run, run, &tab->runs) {
        if (run->partition == partition)
            return run;
    }
    vec_push(&tab->runs, (struct tab_run){ .partition = words_take(&state->words, partition) });
    return &tab->runs.items[tab->runs.len - 1];
}

static struct tab_sum *sum_of(struct state *state, struct tab_run *run, const char *name,
                              const char *type, bool is_licence)
{
    vec_each (struct tab_thing, thing, &run->things) {
        if (thing->is_licence == is_licence && str_eq(thing->name, name) &&
            str_eq(thing->type, type))
            return &thing->sum;
    }
    vec_push(&run->things, (struct tab_thing){ .name = words_take(&state->words, name),
                                               .type = words_take(&state->words, type),
                                               .is_licence = is_licence });
    return &run->things.items[run->things.len - 1].sum;
}

/* How many jobs more, until when, and of those that go. */
struct adding {
    uint64_t by, end_s, goes;
};

static void sum_add(struct tab_sum *sum, uint64_t count, const struct adding *adding)
{
    sum->used += count * adding->by;
    sum->run_end += count * adding->by * adding->end_s; /* wraps around and back */
    sum->rate += count * adding->goes;
}

static void add_things(struct state *state, struct tab_run *run, const struct job *job,
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

void tab_run_add(struct state *state, const struct job *job, uint64_t by)
{
    struct tab_run *run = run_in(state, tab_record(job->tab), job->run->partition);
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

static bool is_tres(const struct tab_thing *thing, const struct tres *tres)
{
    return thing->is_licence ? tres_is_licence(tres, thing->name)
                             : tres_is_gres(tres, thing->name, thing->type);
}

bool tab_run_has(const struct accounts *accounts, const struct tab_run *run, uint32_t tres)
{
    bool has = false;

    for (size_t k = TRES_FIXED; k < accounts->tres_count; k++) {
        for (size_t i = 0; tres >> k & 1 && i < run->things.len; i++)
            has = has || is_tres(&run->things.items[i], &accounts->tres[k]);
    }
    return has;
}

/* (2) */
void tab_run_sums(const struct accounts *accounts, const struct tab_run *run,
                  struct tab_sum out[TRES_MOST])
{
    memset(out, 0, TRES_MOST * sizeof(*out));
    memcpy(out, run->fixed, sizeof(run->fixed));
    vec_each (struct tab_thing, thing, &run->things) {
        for (size_t k = TRES_FIXED; k < accounts->tres_count; k++) {
            if (!is_tres(thing, &accounts->tres[k]))
                continue;
            out[k].used += thing->sum.used;
            out[k].run_end += thing->sum.run_end;
            out[k].rate += thing->sum.rate;
        }
    }
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
