/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.c - the indexes of the cluster
 *
 * Jobs are found by id in pages, so that they are walked in order of id without sorting. Unended
 * jobs are also chained by a hash of owner and name, for singleton dependencies.
 */
#include "core/apply.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/hostlist.h"
#include "wire/pb.h"

static struct span owner_key(const struct interned *value)
{
    return ((const struct owner_record *)value)->key;
}

static struct span payload_key(const struct interned *value)
{
    const struct payload *payload = (const struct payload *)value;

    return (struct span){ (const char *)payload->digest, sizeof(payload->digest) };
}

static struct span shape_key(const struct interned *value)
{
    return ((const struct shape *)value)->key;
}

struct state *state_new(void)
{
    struct state *state = NEW(struct state);
    const Config empty = CONFIG__INIT;

    state->next_job_id = 1;
    state->config = pb_copy(&empty);
    state->config_hash = config_hash(state->config, &state->section_hashes);
    state->accounts = accounts_new(state->config);
    accounts_see_partitions(state);
    accounts_hash_all(state);
    state->leader = mem_strdup("");
    state->leader_address = mem_strdup("");
    state->generation = 1;
    state->topology_reach = topology_reach_new();
    state->next_reservation_us = NEVER;
    state->next_reboot_us = NEVER;
    state->next_trigger_us = NEVER;
    map_init(&state->node_names);
    map_init(&state->user_billing_groups);
    map_init(&state->suspended_for_jobs);
    map_init(&state->keys);
    map_init(&state->revoked);
    map_init(&state->resv_jobs);
    intern_init(&state->owners, owner_key);
    intern_init(&state->payloads, payload_key);
    intern_init(&state->shapes, shape_key);
    intern_init(&state->billing_group_keys, billing_group_key);
    words_init(&state->words);
    arena_init(&state->scratch);
    return state;
}

static void free_keys(struct map *keys)
{
    map_each (entry, keys) {
        struct node_key *key = entry->value;
        free(key->key.data);
        free(key);
    }
    map_done(keys);
}

void state_free(struct state *state)
{
    if (!state)
        return;
    free(state->changes.gone);
    state->changes = (struct changes){ 0 };
    shapes_settle(state);
    vec_done(&state->old_shapes);
    /* Highest ids first: an array's record owns what its tasks refer to. */
    for (size_t page = state->jobs.count; page-- > 0;) {
        for (size_t i = JOBS_PER_PAGE; state->jobs.pages[page] && i-- > 0;) {
            if (state->jobs.pages[page]->jobs[i])
                job_free(state, state->jobs.pages[page]->jobs[i], NULL);
        }
    }
    for (size_t i = 0; i < state->jobs.count; i++)
        free(state->jobs.pages[i]);
    free(state->jobs.pages);
    vec_each (struct node *, node, &state->nodes)
        node_free(state, *node);
    vec_each (struct partition *, partition, &state->partitions)
        partition_free(*partition);
    vec_each (struct reservation *, reservation, &state->reservations)
        reservation_free(*reservation);
    vec_each (struct licence, licence, &state->licences)
        words_drop(&state->words, licence->name);
    vec_each (struct crontab *, crontab, &state->crontabs)
        crontab_free(*crontab);
    vec_done(&state->crontabs);
    vec_each (struct trigger *, trigger, &state->triggers)
        trigger_free(*trigger);
    vec_done(&state->triggers);
    accrue_clear(state->accounts);
    accounts_free(state->accounts);
    vec_done(&state->nodes);
    vec_done(&state->sections);
    vec_done(&state->partitions);
    vec_done(&state->reservations);
    vec_done(&state->licences);
    for (size_t i = 0; i < TIMER_HEAPS; i++)
        paged_done(&state->timers[i]);
    suspended_for_done(state);
    vec_done(&state->gang);
    vec_done(&state->touched);
    vec_done(&state->touched_nodes);
    map_done(&state->node_names);
    free_keys(&state->keys);
    map_each (entry, &state->revoked)
        free(entry->value);
    map_done(&state->revoked);
    deps_done(state);
    map_done(&state->resv_jobs);
    requests_done(&state->requests);
    intern_done(&state->billing_group_keys);
    vec_done(&state->billing_groups);
    map_done(&state->user_billing_groups);
    intern_done(&state->owners);
    intern_done(&state->payloads);
    intern_done(&state->shapes);
    intern_done(&state->words);
    arena_done(&state->scratch);
    topology_reach_free(state->topology_reach);
    pb_free(state->config);
    section_hashes_done(&state->section_hashes);
    pb_free(state->controllers);
    slots_done(&state->names);
    free(state->leader);
    free(state->leader_address);
    free(state);
}

void settle(struct state *state)
{
    suspended_for_note(state);
    vec_each (struct job *, at, &state->touched) {
        struct job *job = *at;
        state->digest -= job->hash;
        job->hash = job_hash(job);
        state->digest += job->hash;
        job->touched = false;
    }
    vec_clear(&state->touched);
    vec_each (struct node *, at, &state->touched_nodes) {
        struct node *node = *at;
        state->digest -= node->hash;
        node->hash = node_hash(node);
        state->digest += node->hash;
        node->touched = false;
    }
    vec_clear(&state->touched_nodes);
}
