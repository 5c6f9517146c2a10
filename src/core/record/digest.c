/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digest.c - what two replicas compare
 *
 * The hash of a record covers everything a snapshot holds of it and nothing that follows from
 * something else. The digest is the sum of the hashes, so it can follow single changes.
 *
 * (1) So is what the nodes of a wide job add to its hash: with thousands of them each that is given
 *     back would cost a walk over all. The run keeps the sum; who changes a part calls part_changes() before
 *     and part_changed() after it.
 */
#include "core/record/record.h"

#include <string.h>

#include "base/hash.h"
#include "wire/pb.h"

enum {
    SEED_JOB = 1,
    SEED_NODE,
    SEED_PARTITION,
    SEED_RESERVATION,
    SEED_REQUEST,
    SEED_KEY,
    SEED_HEAD,
    SEED_REVOKED,
    SEED_TRIGGER,
};

static uint64_t fold(uint64_t hash, uint64_t value)
{
    return hash_mix(hash ^ value) + UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t fold_text(uint64_t hash, const char *text)
{
    return text ? hash_bytes(text, strlen(text), hash) : fold(hash, 0);
}

static uint64_t fold_set(uint64_t hash, const struct bitset *set)
{
    bitset_each (bit, set)
        hash = fold(hash, bit + 1);
    return hash;
}

/* As it was for all jobs, and is for those of a few nodes. */
static uint64_t fold_part(uint64_t hash, const struct job_part *part)
{
    hash = fold_text(hash, part->name);
    hash = fold(hash, (uint64_t)part->cpus << 32 | part->tasks);
    hash = fold(hash, part->mem_mb << 1 | (part->node != NULL));
    hash = fold_set(hash, &part->cpu_ids);
    for (size_t i = 0; i < part->gres_count; i++) {
        hash = fold_text(hash, part->gres[i].name);
        hash = fold_text(hash, part->gres[i].type);
        hash = fold(hash, part->gres[i].count);
        hash = fold_set(hash, &part->gres[i].index);
    }
    if (part->left)
        hash = fold(hash, 1);
    if (part->spare)
        hash = fold(hash, 2);
    return hash;
}

/* (1) */

static bool is_wide(const struct job_run *run)
{
    return run->count > WIDE_PARTS;
}

/* Words without any are left out: a set that was read again may have less room. */
static uint64_t fold_words(uint64_t hash, const struct bitset *set)
{
    for (size_t i = 0; i < (set->bits + 63) / 64; i++) {
        if (set->words[i])
            hash = fold(hash ^ i, set->words[i]);
    }
    return hash;
}

static uint64_t part_hash(const struct job_run *run, const struct job_part *part)
{
    uint32_t name = part->node ? part->node->word_hash : words_hash(part->name);
    uint64_t hash = fold((uint64_t)(part - run->parts) + 1, name);

    hash = fold(hash, (uint64_t)part->cpus << 32 | part->tasks);
    hash =
        fold(hash, part->mem_mb << 3 | part->spare << 2 | part->left << 1 | (part->node != NULL));
    hash = fold_words(hash, &part->cpu_ids);
    for (size_t i = 0; i < part->gres_count; i++) {
        hash = fold(hash, words_hash(part->gres[i].name));
        hash = fold(hash, words_hash(part->gres[i].type));
        hash = fold(hash, part->gres[i].count);
        hash = fold_words(hash, &part->gres[i].index);
    }
    return hash;
}

void part_changes(struct job_run *run, const struct job_part *part)
{
    if (is_wide(run))
        run->parts_hash -= part_hash(run, part);
}

void part_changed(struct job_run *run, const struct job_part *part)
{
    if (is_wide(run))
        run->parts_hash += part_hash(run, part);
}

uint64_t run_hash_parts(const struct job_run *run)
{
    uint64_t sum = 0;

    for (unsigned i = 0; is_wide(run) && i < run->count; i++)
        sum += part_hash(run, &run->parts[i]);
    return sum;
}

static uint64_t fold_run(uint64_t hash, const struct job_run *run, bool summed)
{
    hash = fold(hash, (uint64_t)run->start_us);
    hash = fold(hash, (uint64_t)run->suspend_us);
    hash = fold(hash, (uint64_t)run->suspended_total_us);
    hash = fold(hash, (uint64_t)run->skipped_us);
    hash = fold(hash, (uint64_t)run->exit_status << 3 | run->has_exit | run->whole_nodes << 1 |
                          run->shared << 2);
    hash = fold_text(hash, run->partition);
    if (run->licence)
        hash = fold(hash, run->licence);
    if (run->reservation)
        hash = fold_text(hash, run->reservation);
    if (run->lent)
        hash = fold(hash, 1);
    if (run->gang)
        hash = fold(hash, 2);
    if (run->prolog || run->epilog)
        hash = fold(hash, 16 + 4 * run->prolog + run->epilog);
    if (run->has_billing)
        hash = fold(hash, hash_mix(run->billing));
    if (run->boot)
        hash = fold(hash, 32 + run->boot);
    if (summed && is_wide(run))
        return fold(hash, run->parts_hash);
    for (unsigned i = 0; i < run->count; i++)
        hash = fold_part(hash, &run->parts[i]);
    return hash;
}

static uint64_t fold_more(uint64_t hash, const struct job_more *more)
{
    hash = fold_text(hash, more->reason_text);
    hash = fold_text(hash, more->admin_comment);
    hash = fold_text(hash, more->system_comment);
    hash = fold_text(hash, more->failed_node);
    hash = fold_text(hash, more->planned_nodes);
    hash = fold(hash, (uint64_t)more->preempt_us);
    if (more->avoid_nodes || more->node_fails || more->backoff_us) {
        hash = fold_text(hash, more->avoid_nodes);
        hash = fold(hash, (uint64_t)more->avoid_us);
        hash = fold(hash, (uint64_t)more->backoff_us);
        hash = fold(hash, (uint64_t)more->node_fails << 1 | more->avoids);
    }
    if (more->preempt_end_us || more->preempted_by) {
        hash = fold(hash, (uint64_t)more->preempt_end_us << 1 | more->preempt_requeue);
        hash = fold(hash, more->preempted_by);
    }
    if (more->site_factor)
        hash = fold(hash, (uint32_t)more->site_factor | UINT64_C(1) << 32);
    if (more->unbound_attempt)
        hash = fold(hash, more->unbound_attempt);
    if (more->mail_sent)
        hash = fold(hash, more->mail_sent | UINT64_C(1) << 33);
    hash = fold(hash, (uint64_t)more->het_job_id << 32 | more->het_offset);
    return fold(hash, more->het_count);
}

static uint64_t hash_job(const struct job *job, bool summed)
{
    static const struct job_more nothing;
    uint64_t hash = fold(SEED_JOB, (uint64_t)job->id << 32 | job->flags);

    hash = fold(hash, (uint64_t)job->state | (uint64_t)job->hold << 8 |
                          (uint64_t)job->reason << 16 | (uint64_t)job->restarts << 32);
    hash = fold(hash, (uint64_t)job->attempt << 32 | job->priority);
    hash = fold(hash, job->array ? (uint64_t)job->array->id << 32 |
                                       (job->is_task ? job->array_task_id : NO_TASK)
                                 : 0);
    hash = fold(hash, (uint64_t)job->time_limit_s);
    hash = fold(hash, (uint64_t)job->submit_us);
    hash = fold(hash, (uint64_t)job->eligible_us);
    if (job->accrue_us != job->eligible_us) /* a limit kept it from ageing at once */
        hash = fold(hash, (uint64_t)job->accrue_us);
    hash = fold(hash, (uint64_t)job->planned_start_us);
    hash = fold(hash, (uint64_t)job->end_us);
    hash = fold_text(hash, job->owner->user);
    hash = fold_text(hash, job->owner->group);
    hash = fold(hash, (uint64_t)job->owner->uid << 32 | job->owner->gid);
    hash = hash_bytes(job->owner->gids, job->owner->gid_count * sizeof(uint32_t), hash);
    hash = hash_bytes(job->spec->data, job->spec->len, hash);
    if (job->payload)
        hash = hash_bytes(job->payload->digest, PAYLOAD_DIGEST_BYTES, hash);
    if (job->run)
        hash = fold_run(hash, job->run, summed);
    if (job->deps)
        hash = fold(hash, deps_hash(job->deps));
    if (job->array && job->array->id == job->id) {
        hash = fold(hash, job->array->bits_hash);
        hash = fold(hash, job->array->max_running);
        hash = fold(hash, (uint64_t)job->array->last_start_us);
    }
    return fold_more(hash, job->more ? job->more : &nothing);
}

uint64_t job_hash(const struct job *job)
{
    return hash_job(job, true);
}

/* Use follows from the jobs' records. */
uint64_t node_hash(const struct node *node)
{
    uint64_t hash = fold(SEED_NODE, (uint64_t)node->state << 32 | node->flags);

    hash = fold(hash, node->spec_hash);
    hash = fold(hash, node->found_hash);
    hash = fold_text(hash, node->reason);
    hash = fold_text(hash, node->reason_user);
    hash = fold(hash, node->reason_uid);
    hash = fold(hash, (uint64_t)node->reason_us);
    if (node->reboot.next || node->reboot.drained || node->reboot.issued_us) {
        hash = fold(hash, node->reboot.next << 1 | node->reboot.drained);
        hash = fold(hash, (uint64_t)node->reboot.issued_us);
    }
    if (node->resume_us)
        hash = fold(hash, (uint64_t)node->resume_us);
    return fold(hash, (uint64_t)node->last_busy_us);
}

uint64_t partition_hash(const struct partition *partition)
{
    return message_hash(&partition->spec->base, SEED_PARTITION);
}

uint64_t reservation_hash(const struct reservation *reservation)
{
    uint64_t hash = message_hash(&reservation->spec->base, SEED_RESERVATION);

    hash = fold(hash, (uint64_t)reservation->active | (uint64_t)reservation->over << 1);
    return fold(hash, (uint64_t)reservation->idle_us);
}

uint64_t trigger_hash(const struct trigger *trigger)
{
    uint64_t hash = message_hash(&trigger->spec->base, SEED_TRIGGER);

    hash = fold(hash, (uint64_t)trigger->pulled_us);
    hash = fold(hash, (uint64_t)trigger->idle_seen_us);
    hash = fold_text(hash, trigger->pulled_for);
    vec_each (char *, name, &trigger->nodes)
        hash = fold_text(hash, *name);
    return hash;
}

uint64_t request_hash(const struct request *request)
{
    uint64_t hash = fold(SEED_REQUEST, (uint64_t)request->uid << 32 | request->job_id);

    hash = fold(hash, (uint64_t)request->more << 32 | request->code);
    hash = fold(hash, (uint64_t)request->time_us);
    return hash_bytes(request->id, sizeof(request->id), hash);
}

uint64_t key_hash(const char *node, const struct node_key *key)
{
    uint64_t hash = hash_bytes(key->key.data, key->key.len, fold_text(SEED_KEY, node));

    return key->forgotten ? fold(hash, 1) : hash;
}

uint64_t revoked_hash(const struct revoked *revoked)
{
    return fold(fold(SEED_REVOKED, revoked->uid), (uint64_t)revoked->issued_s);
}

uint64_t core_digest(const struct state *state)
{
    uint64_t hash = fold(SEED_HEAD, state->index);

    requests_settle(
        (struct state *)(uintptr_t)state); /* to what they are already: requests.c (3) */
    hash = fold(hash, state->epoch);
    hash = fold(hash, state->journal_acked);
    hash = fold(hash, (uint64_t)state->time_us);
    hash = fold(hash, state->next_job_id);
    hash = fold(hash, (uint64_t)state->priority_us);
    hash = fold(hash, state->config_hash);
    hash = hash_bytes(state->cluster_id, sizeof(state->cluster_id), hash);
    hash = fold_text(hash, state->leader);
    hash = fold_text(hash, state->leader_address);
    if (state->skipped_us)
        hash = fold(hash, (uint64_t)state->skipped_us);
    if (state->accounts_number)
        hash = fold(hash, state->accounts_number);
    if (state->last_trigger_id)
        hash = fold(hash, state->last_trigger_id);
    if (state->controllers)
        hash = fold(hash, message_hash(&state->controllers->base, 0));
    if (state->level || state->level_pin)
        hash = fold(hash, (uint64_t)state->level << 32 | state->level_pin);
    return state->digest + hash;
}

uint64_t core_digest_level(const struct state *state, uint32_t level)
{
    uint64_t digest = core_digest(state);

    for (const struct job *job = level < DIGEST_LEVEL ? state_job_from(state, 0) : NULL; job;
         job = state_job_from(state, (uint64_t)job->id + 1)) {
        if (job->run && is_wide(job->run))
            digest += hash_job(job, false) - job->hash;
    }
    return digest;
}
