/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rehash.c - are the records still what they were when they were last changed?
 *
 * The digest follows changes; a record that nobody changes is never hashed again, and what became of its
 * memory meanwhile is in no digest. This pass goes over all of them, some at a time.
 *
 * (1) A row handles one kind of record: how many there are, and whether number `n` is as its hash says. The
 *     number of a job is its id. Records that come and go between two calls shift the others of
 *     their kind: those are looked at twice, or in the next pass.
 */
#include <string.h>

#include "core/apply.h"
#include "schema/sections.h"
#include "wire/pb.h"

static int wrong(struct err *err, const char *what, const char *name)
{
    return err_set(err, ERR_CORRUPT, "the record of %s%s%s is damaged", what, *name ? " " : "",
                   name);
}

/* ---- jobs ---- */

static int see_job(const struct job *job, struct err *err)
{
    const struct array *array = job->array && job->array->id == job->id ? job->array : NULL;
    bool same = job->hash == job_hash(job) &&
                (!job->run || job->run->parts_hash == run_hash_parts(job->run)) &&
                (!array || array->bits_hash == array_hash_bits(array));

    return same ? 0 : err_set(err, ERR_CORRUPT, "the record of job %u is damaged", job->id);
}

static size_t see_jobs(const struct state *state, struct rehash *at, size_t most, struct err *err)
{
    size_t done = 0;

    for (; done < most && err->code == ERR_OK; done++) {
        const struct job *job = state_job_from(state, at->next);
        if (!job) {
            at->next = 0;
            at->kind++;
            break;
        }
        at->sum += job->hash;
        at->next = (uint64_t)job->id + 1;
        see_job(job, err);
    }
    return done;
}

/* ---- (1) ---- */

static size_t nodes_count(const struct state *state)
{
    return state->nodes.len;
}

static uint64_t see_node(const struct state *state, size_t n, struct err *err)
{
    const struct node *node = state->nodes.items[n];

    if (node->hash != node_hash(node) || node->spec_hash != message_hash(&node->spec->base, 0) ||
        (node->found && node->found_hash != message_hash(&node->found->base, 0)))
        wrong(err, "node", node->spec->name);
    return node->hash;
}

static size_t partitions_count(const struct state *state)
{
    return state->partitions.len;
}

static uint64_t see_partition(const struct state *state, size_t n, struct err *err)
{
    const struct partition *partition = state->partitions.items[n];

    if (partition->hash != partition_hash(partition))
        wrong(err, "partition", partition->spec->name);
    return partition->hash;
}

static size_t reservations_count(const struct state *state)
{
    return state->reservations.len;
}

static uint64_t see_reservation(const struct state *state, size_t n, struct err *err)
{
    const struct reservation *reservation = state->reservations.items[n];

    if (reservation->hash != reservation_hash(reservation))
        wrong(err, "reservation", reservation->spec->name);
    return reservation->hash;
}

static size_t crontabs_count(const struct state *state)
{
    return state->crontabs.len;
}

static uint64_t see_crontab(const struct state *state, size_t n, struct err *err)
{
    const struct crontab *crontab = state->crontabs.items[n];

    if (crontab_kept_hash(crontab) != crontab_hash(crontab))
        wrong(err, "a crontab", "");
    return crontab_kept_hash(crontab);
}

static size_t triggers_count(const struct state *state)
{
    return state->triggers.len;
}

static uint64_t see_trigger(const struct state *state, size_t n, struct err *err)
{
    const struct trigger *trigger = state->triggers.items[n];

    if (trigger->hash != trigger_hash(trigger))
        wrong(err, "a trigger", "");
    return trigger->hash;
}

static size_t assocs_count(const struct state *state)
{
    return state->accounts->assocs.len;
}

static uint64_t see_holder(const struct holder *holder, const char *what, const char *name,
                           struct err *err)
{
    if (holder->hash != holder_hash(holder))
        wrong(err, what, name);
    return holder->hash;
}

static uint64_t see_assoc(const struct state *state, size_t n, struct err *err)
{
    const struct assoc *assoc = state->accounts->assocs.items[n];

    return see_holder(&assoc->holder, "account", assoc->account, err);
}

static size_t qos_count(const struct state *state)
{
    return state->accounts->qos.len;
}

static uint64_t see_qos(const struct state *state, size_t n, struct err *err)
{
    const struct qos *qos = state->accounts->qos.items[n];

    return see_holder(&qos->holder, "QOS", qos->name, err);
}

/* Few, or one by one in any order: all at once. */
static size_t one(const struct state *state)
{
    (void)state;
    return 1;
}

static uint64_t see_keys(const struct state *state, size_t n, struct err *err)
{
    uint64_t sum = 0;

    (void)n;
    map_each (entry, &state->keys) {
        const struct node_key *key = entry->value;
        if (key->hash != key_hash(entry->key, key))
            wrong(err, "the key of node", entry->key);
        sum += key->hash;
    }
    return sum;
}

static uint64_t see_revoked(const struct state *state, size_t n, struct err *err)
{
    uint64_t sum = 0;

    (void)n;
    map_each (entry, &state->revoked) {
        const struct revoked *revoked = entry->value;
        if (revoked->hash != revoked_hash(revoked))
            wrong(err, "a user's revoked tokens", "");
        sum += revoked->hash;
    }
    return sum;
}

static uint64_t see_notices(const struct state *state, size_t n, struct err *err)
{
    uint64_t sum = 0;

    (void)n;
    for (const struct dep_notice *notice = state->dep_pending.first; notice;
         notice = notice->next) {
        if (notice->hash != dep_notify_hash(notice))
            wrong(err, "a dependency's notice", "");
        sum += notice->hash;
    }
    return sum;
}

/* The configuration: its hash is in the head, and adds nothing to the sum. */
static size_t sections_count(const struct state *state)
{
    size_t all = 1, count;

    for (enum section kind = 0; kind < SECTIONS; kind++) {
        sections_list(state->config, kind, &count);
        all += count;
    }
    return all;
}

static uint64_t see_section(const struct state *state, size_t n, struct err *err)
{
    struct section_hashes rest = { 0 };
    size_t count;

    for (enum section kind = 0; kind < SECTIONS; kind++) {
        ProtobufCMessage **list = sections_list(state->config, kind, &count);
        if (n < count) {
            if (message_hash(list[n], 0) != state->section_hashes.of[kind][n])
                wrong(err, "a section of the configuration", "");
            return 0;
        }
        n -= count;
    }
    config_rest_hash(state->config, &rest);
    if (rest.rest != state->section_hashes.rest || rest.text != state->section_hashes.text)
        wrong(err, "the configuration", "");
    return 0;
}

static const struct row {
    size_t (*count)(const struct state *state);
    uint64_t (*see)(const struct state *state, size_t n, struct err *err); /* its hash */
} rows[] = {
    { nodes_count, see_node },
    { partitions_count, see_partition },
    { assocs_count, see_assoc },
    { reservations_count, see_reservation },
    { qos_count, see_qos },
    { one, see_keys },
    { sections_count, see_section },
    { one, see_notices },
    { one, see_revoked },
    { crontabs_count, see_crontab },
    { triggers_count, see_trigger },
};

static size_t see_row(const struct state *state, struct rehash *at, size_t most, struct err *err)
{
    const struct row *row = &rows[at->kind - 1];
    size_t count = row->count(state), done = 0;

    for (; done < most && at->next < count && err->code == ERR_OK; done++)
        at->sum += row->see(state, (size_t)at->next++, err);
    if (at->next >= count) {
        at->next = 0;
        at->kind++;
    }
    return done;
}

/* Until `most` are seen or the pass is complete. */
static void go_on(const struct state *state, struct rehash *at, size_t most, struct err *err)
{
    while (most && err->code == ERR_OK && at->kind <= ARRAY_LEN(rows))
        most -= at->kind == 0 ? see_jobs(state, at, most, err) : see_row(state, at, most, err);
}

int core_rehash(const struct state *state, struct rehash *at, size_t most, struct err *err)
{
    struct err found = { 0 };

    go_on(state, at, most, &found);
    if (at->kind > ARRAY_LEN(rows))
        *at = (struct rehash){ .passes = at->passes + 1 };
    if (found.code == ERR_OK)
        return 0;
    if (err)
        *err = found;
    return -(int)found.code;
}

int core_verify(const struct state *state, struct err *err)
{
    struct rehash at = { 0 };
    struct err found = { 0 };

    go_on(state, &at, SIZE_MAX, &found);
    for (size_t i = 0; i < state->requests.count; i++)
        at.sum += request_hash(request_at(&state->requests, i));
    if (found.code == ERR_OK && at.sum != state->digest)
        err_set(&found, ERR_CORRUPT, "the digest is not that of the records");
    if (found.code == ERR_OK)
        return 0;
    if (err)
        *err = found;
    return -(int)found.code;
}

size_t core_rehash_records(const struct state *state)
{
    size_t all = state->records;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        all += rows[i].count(state);
    return all;
}
