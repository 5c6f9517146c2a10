/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables.c - the tables of the state: finding records by id, name or number, and noting that they changed
 */
#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "base/hostlist.h"
#include "base/must.h"
#include "core/record/record.h"
#include "wire/pb.h"

/* Jobs by id. */

static struct job **slot_of(const struct job_index *index, uint32_t id)
{
    size_t page = id / JOBS_PER_PAGE;

    if (page < index->first || page - index->first >= index->count)
        return NULL;
    struct job_page *at = index->pages[page - index->first];
    return at ? &at->jobs[id % JOBS_PER_PAGE] : NULL;
}

struct job *job_at(const struct state *state, uint32_t id)
{
    struct job **slot = slot_of(&state->jobs, id);

    return slot ? *slot : NULL;
}

const struct job *state_job(const struct state *state, uint32_t id)
{
    return job_at(state, id);
}

void state_fetch_job(const struct state *state, uint32_t id)
{
    enum { LINE_BYTES = 64 };
    const char *job = (const char *)job_at(state, id);

    for (size_t at = 0; job && at < sizeof(struct job); at += LINE_BYTES)
        __builtin_prefetch(job + at);
}

const struct job *state_job_from(const struct state *state, uint64_t from)
{
    const struct job_index *index = &state->jobs;
    uint64_t id = MAX(from, (uint64_t)index->first * JOBS_PER_PAGE);

    ((struct state *)(uintptr_t)state)->walked++;
    for (size_t page = (size_t)(id / JOBS_PER_PAGE) - index->first; page < index->count; page++) {
        const struct job_page *at = index->pages[page];
        size_t begin = page + index->first == id / JOBS_PER_PAGE ? id % JOBS_PER_PAGE : 0;
        for (size_t i = begin; at && i < JOBS_PER_PAGE; i++) {
            if (at->jobs[i])
                return at->jobs[i];
        }
    }
    return NULL;
}

static void index_reach(struct job_index *index, size_t page)
{
    if (index->count == 0)
        index->first = page;
    if (page < index->first) { /* only a restore of a damaged order could do this */
        size_t more = index->first - page;
        index->pages = mem_resize(index->pages, (index->count + more) * sizeof(*index->pages));
        memmove(index->pages + more, index->pages, index->count * sizeof(*index->pages));
        memset(index->pages, 0, more * sizeof(*index->pages));
        index->first = page;
        index->count += more;
        index->cap = index->count;
    }
    size_t want = page - index->first + 1;
    if (want > index->cap) {
        index->cap = MAX(want, index->cap * 2);
        index->pages = mem_resize(index->pages, index->cap * sizeof(*index->pages));
    }
    for (; index->count < want; index->count++)
        index->pages[index->count] = NULL;
}

void index_put(struct job_index *index, struct job *job)
{
    size_t page = job->id / JOBS_PER_PAGE;

    index_reach(index, page);
    struct job_page **at = &index->pages[page - index->first];
    if (!*at)
        *at = NEW(struct job_page);
    MUST(!(*at)->jobs[job->id % JOBS_PER_PAGE]);
    (*at)->jobs[job->id % JOBS_PER_PAGE] = job;
    (*at)->used++;
}

void index_del(struct job_index *index, uint32_t id)
{
    size_t page = id / JOBS_PER_PAGE - index->first;
    struct job_page *at = index->pages[page];

    MUST(at && at->jobs[id % JOBS_PER_PAGE] && at->jobs[id % JOBS_PER_PAGE]->id == id);
    at->jobs[id % JOBS_PER_PAGE] = NULL;
    if (--at->used > 0)
        return;
    free(at);
    index->pages[page] = NULL;
    size_t gone = 0;
    while (gone < index->count && !index->pages[gone])
        gone++;
    /* Old ids go first: give their pages back once there are many. */
    if (gone == index->count) {
        index->count = 0;
    } else if (gone > 64 && gone > index->count / 2) {
        memmove(index->pages, index->pages + gone, (index->count - gone) * sizeof(*index->pages));
        index->first += gone;
        index->count -= gone;
    }
}

const struct job *state_task(const struct state *state, uint32_t array_id, uint32_t task_id)
{
    const struct job *first = job_at(state, array_id);
    uint32_t number;

    if (!first || !first->array || !array_find(first->array, task_id, &number))
        return NULL;
    if (array_task(first->array, number) == TASK_WAITING)
        return first;
    if (first->is_task && first->array_task_id == task_id)
        return first;
    return array_record(state, first->array, task_id);
}

/* Nodes, partitions, reservations. */

struct node *node_at(const struct state *state, const char *name)
{
    return map_get(&state->node_names, name);
}

const struct node *state_node(const struct state *state, const char *name)
{
    return node_at(state, name);
}

const struct node *state_node_at(const struct state *state, size_t number)
{
    return number < state->nodes.len ? state->nodes.items[number] : NULL;
}

size_t state_node_count(const struct state *state)
{
    return state->nodes.len;
}

struct partition *partition_at(const struct state *state, const char *name)
{
    vec_each (struct partition *, partition, &state->partitions) {
        if (str_eq((*partition)->spec->name, name))
            return *partition;
    }
    return NULL;
}

const struct partition *state_partition(const struct state *state, const char *name)
{
    return partition_at(state, name);
}

const struct partition *state_partition_at(const struct state *state, size_t number)
{
    return number < state->partitions.len ? state->partitions.items[number] : NULL;
}

size_t state_partition_count(const struct state *state)
{
    return state->partitions.len;
}

const struct partition *state_default_partition(const struct state *state)
{
    vec_each (struct partition *, partition, &state->partitions) {
        if ((*partition)->spec->is_default)
            return *partition;
    }
    return NULL;
}

struct reservation *reservation_at(const struct state *state, const char *name)
{
    vec_each (struct reservation *, reservation, &state->reservations) {
        if (str_eq((*reservation)->spec->name, name))
            return *reservation;
    }
    return NULL;
}

const struct reservation *state_reservation(const struct state *state, const char *name)
{
    return reservation_at(state, name);
}

const struct reservation *state_reservation_at(const struct state *state, size_t number)
{
    return number < state->reservations.len ? state->reservations.items[number] : NULL;
}

size_t state_reservation_count(const struct state *state)
{
    return state->reservations.len;
}

const Config *state_config(const struct state *state)
{
    return state->config;
}

const ProtobufCBinaryData *state_node_key(const struct state *state, const char *node)
{
    const struct node_key *key = map_get(&state->keys, node);

    return key ? &key->key : NULL;
}

bool state_node_is_forgotten(const struct state *state, const char *node)
{
    const struct node_key *key = map_get(&state->keys, node);

    return key && key->forgotten;
}

void revoke_tokens(struct state *state, uint32_t uid, int64_t issued_s)
{
    struct revoked *revoked = map_get_num(&state->revoked, uid);

    if (revoked) {
        state->digest -= revoked->hash;
    } else {
        revoked = NEW(struct revoked);
        map_put_num(&state->revoked, uid, revoked);
    }
    revoked->uid = uid;
    revoked->issued_s = MAX(revoked->issued_s, issued_s);
    revoked->hash = revoked_hash(revoked);
    state->digest += revoked->hash;
}

int64_t state_revoked_s(const struct state *state, uint32_t uid)
{
    const struct revoked *revoked = map_get_num(&state->revoked, uid);

    return revoked ? revoked->issued_s : 0;
}

size_t state_revoked_count(const struct state *state)
{
    return map_len(&state->revoked);
}

void state_each_revoked(const struct state *state,
                        void (*each)(void *ctx, uint32_t uid, int64_t issued_s), void *ctx)
{
    map_each (entry, &state->revoked) {
        const struct revoked *revoked = entry->value;
        each(ctx, revoked->uid, revoked->issued_s);
    }
}

const CmdControllers *state_controllers(const struct state *state)
{
    return state->controllers;
}

bool state_has_payload(const struct state *state, const uint8_t *digest)
{
    return intern_find(&state->payloads, digest, PAYLOAD_DIGEST_BYTES) != NULL;
}

struct state_head state_head(const struct state *state)
{
    return (struct state_head){
        .index = state->index,
        .epoch = state->epoch,
        .journal_acked = state->journal_acked,
        .accounts = state->accounts_number,
        .time_us = state->time_us,
        .next_job_id = state->next_job_id,
        .leader = state->leader,
        .leader_address = state->leader_address,
        .cluster_id = state->has_cluster_id ? state->cluster_id : NULL,
    };
}

struct state_counts state_counts(const struct state *state)
{
    const size_t *phase = state->by_phase;
    struct state_counts counts = {
        .records = state->records,
        .pending = phase[PHASE_PENDING] + phase[PHASE_REQUEUING],
        .running = phase[PHASE_CONFIGURING] + phase[PHASE_RUNNING] + phase[PHASE_SUSPENDED],
        .payloads = state->payloads.count,
        .requests = state->requests.count,
    };

    for (size_t i = 0; i <= PHASE_ENDED; i++)
        counts.jobs += phase[i];
    return counts;
}

int state_node_set(const struct state *state, const char *text, struct bitset *set, struct err *err)
{
    CLEANUP(hostlist_done) struct hostlist list = { 0 };

    if (hostlist_parse(&list, text, err) < 0)
        return err_wrap(err, "node list '%.100s'", text);
    if (hostlist_count(&list) > LIMIT_HOSTLIST_HOSTS)
        return err_set(err, ERR_TOO_MANY, "node list '%.100s' names too many nodes", text);
    struct bitset found;
    bitset_init(&found, state->nodes.len);
    hostlist_each (host, &list) {
        const struct node *node = map_get_len(&state->node_names, host.name, host.len);
        if (!node) {
            bitset_done(&found);
            return err_set(err, ERR_INVALID_NODE_NAME, "Invalid node name specified: %s",
                           host.name);
        }
        bitset_add(&found, node->number);
    }
    *set = found;
    return 0;
}

/* The digest follows the records. */

void job_touch(struct state *state, struct job *job)
{
    job->changed = state->index;
    if (!job->touched) {
        job->touched = true;
        vec_push(&state->touched, job);
    }
}

void node_touch(struct state *state, struct node *node)
{
    if (!node->touched) {
        node->touched = true;
        vec_push(&state->touched_nodes, node);
    }
}
