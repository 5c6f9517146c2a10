/* SPDX-License-Identifier: Apache-2.0 */
/*
 * restore.c - the state from a stream of records
 *
 * Whatever the bytes say, nothing is read or written out of bounds; the digest at the end decides
 * whether the result is the state that was written.
 */
#include <stdlib.h>
#include <string.h>

#include "core/level.h"
#include "core/view/view.h"
#include "wire/pb.h"

struct restore {
    struct state *state;
    struct str pending; /* bytes of an incomplete record */
    uint64_t records, digest, seen;
    uint32_t level; /* of the digest */
    bool has_head, has_partitions;
    int code;
    struct err err;
};

struct restore *core_restore_begin(void)
{
    struct restore *restore = NEW(struct restore);

    restore->state = state_new();
    return restore;
}

static int damaged(struct err *err, const char *what)
{
    return err_set(err, ERR_CORRUPT, "snapshot: %s", what);
}

static int newer(struct err *err, const char *what)
{
    return err_set(err, ERR_NEWER_BUILD,
                   "the snapshot was written by a newer build: it has %s. Start the newer build "
                   "here; the snapshot is whole",
                   what);
}

static int take_head(struct restore *restore, const SnapshotHead *head, struct err *err)
{
    struct state *state = restore->state;

    if (restore->has_head || !head->config)
        return damaged(err, "a head is missing or there twice");
    if (head->level > LEVEL_NEWEST || head->feature_level > DIGEST_LEVEL)
        return newer(err, "a feature level that this build does not know");
    restore->has_head = true;
    state->level = head->level;
    state->level_pin = head->level_pin;
    restore->records = head->records;
    restore->digest = head->digest;
    restore->level = head->feature_level;
    state->index = state->changes.since = head->index;
    state->epoch = head->epoch;
    state->time_us = head->time_us;
    state->next_job_id = head->next_job_id;
    state->journal_acked = head->journal_acked;
    state->accounts_number = head->accounts;
    state->last_trigger_id = head->last_trigger_id;
    job_set_text(&state->leader, head->leader ? head->leader : "");
    job_set_text(&state->leader_address, head->leader_address ? head->leader_address : "");
    if (head->has_cluster_id && head->cluster_id.len == sizeof(state->cluster_id)) {
        memcpy(state->cluster_id, head->cluster_id.data, sizeof(state->cluster_id));
        state->has_cluster_id = true;
    }
    state->controllers = head->controllers ? pb_copy(head->controllers) : NULL;
    pb_free(state->config);
    state->config = pb_copy(head->config);
    state->config_hash = config_hash(state->config, &state->section_hashes);
    config_licences(state);
    accounts_replace(state);
    state->priority_us = head->priority_us;
    state->skipped_us = head->skipped_us;
    for (size_t i = 0; i < head->n_marks; i++)
        mark_put(state, (struct state_mark){ head->marks[i]->index, head->marks[i]->digest });
    state->restoring = true;
    state->priority_turn++;
    return 0;
}

static int take_node(struct restore *restore, const Node *msg, struct err *err)
{
    struct state *state = restore->state;

    if (!msg->spec || str_is_empty(msg->spec->name) || !msg->status ||
        node_at(state, msg->spec->name) || state->nodes.len >= LIMIT_NODES * 2)
        return damaged(err, "a node is not right");
    struct node *node = node_new(msg->spec);
    const NodeStatus *status = msg->status;
    node->number = (uint32_t)state->nodes.len;
    vec_push(&state->nodes, node);
    map_put(&state->node_names, node->spec->name, node);
    node->state = (uint8_t)status->state;
    node->flags = status->flags;
    job_set_text(&node->reason, status->reason);
    job_set_text(&node->reason_user, status->reason_user);
    node->reason_uid = status->reason_uid;
    node->reason_us = status->reason_us;
    node->last_busy_us = status->last_busy_us;
    node->reboot.next = (unsigned)status->next_state;
    node->resume_us = status->resume_after_us;
    node->reboot.drained = status->reboot_drained;
    node->reboot.issued_us = status->reboot_issued_us;
    if (status->found) {
        node_set_found(node, status->found);
        node_amounts(node);
    }
    node_touch(state, node);
    return 0;
}

/* After the last node, before the first of anything that refers to nodes. */
static void nodes_are_complete(struct restore *restore)
{
    if (restore->has_partitions)
        return;
    restore->has_partitions = true;
    config_mark_removed(restore->state);
}

static int take_partition(struct restore *restore, const PartitionSpec *spec, struct err *err)
{
    struct state *state = restore->state;

    if (str_is_empty(spec->name) || partition_at(state, spec->name))
        return damaged(err, "a partition is not right");
    struct partition *partition = partition_new(spec);
    partition->number = (unsigned)state->partitions.len;
    vec_push(&state->partitions, partition);
    partition_resolve(state, partition, NULL);
    partition_settle(state, partition);
    accounts_see_partitions(state);
    return 0;
}

static int take_reservation(struct restore *restore, const SnapshotReservation *msg,
                            struct err *err)
{
    struct state *state = restore->state;

    if (!msg->spec || str_is_empty(msg->spec->name))
        return damaged(err, "a reservation is not right");
    struct reservation *reservation = NEW(struct reservation);
    reservation->spec = pb_copy(msg->spec);
    reservation->active = msg->active;
    reservation->over = msg->over;
    reservation->idle_us = msg->idle_us;
    resv_derive(reservation);
    vec_push(&state->reservations, reservation);
    reservation_settle(state, reservation);
    return 0;
}

static int take_trigger(struct restore *restore, const SnapshotTrigger *msg, struct err *err)
{
    struct state *state = restore->state;

    if (!msg->spec || !msg->spec->id || msg->spec->id > state->last_trigger_id)
        return damaged(err, "a trigger is not right");
    struct trigger *trigger = trigger_new(msg->spec);
    trigger->pulled_us = msg->pulled_us;
    trigger->idle_seen_us = msg->idle_seen_us;
    job_set_text(&trigger->pulled_for, msg->pulled_for);
    for (size_t i = 0; i < msg->n_pulled_nodes; i++)
        vec_push(&trigger->nodes, mem_strdup(msg->pulled_nodes[i]));
    vec_push(&state->triggers, trigger);
    trigger_settle(state, trigger);
    return 0;
}

static int take_usage(struct restore *restore, const SnapshotUsage *msg, struct err *err)
{
    struct state *state = restore->state;
    struct assoc *assoc = NULL;
    struct holder *holder =
        accounts_holder(state, msg->account, msg->user, msg->partition, msg->qos, &assoc);

    if (!holder)
        return damaged(err, "usage is not right");
    for (size_t i = 0; i < msg->n_usage; i++) {
        const char *name = msg->usage[i]->tres ? msg->usage[i]->tres : "";
        size_t index = tres_find(state->accounts, name, strlen(name));
        if (index == TRES_MOST)
            return damaged(err, "usage is not right");
        holder->usage[index] = msg->usage[i]->amount;
    }
    holder->wall = msg->wall;
    holder->usage_us = msg->usage_us;
    if (assoc)
        assoc->factor = msg->factor;
    holder_rehash(state, holder);
    return 0;
}

static struct fate take_fate(const SnapshotFate *msg)
{
    return msg ? (struct fate){ msg->started, msg->ended, msg->ok, msg->start_us }
               : (struct fate){ 0 };
}

/* All jobs are there, and wait now; some wait to be told instead. */
static int take_notice(struct restore *restore, const SnapshotNews *msg, struct err *err)
{
    struct state *state = restore->state;
    const struct dep_notice *last = state->dep_pending.last;
    struct wait_map *map = msg->singleton ? &state->singletons : &state->dep_waiters;

    if (msg->number <= (last ? last->number : 0) || (msg->singleton && msg->n_job_ids))
        return damaged(err, "news are not right");
    struct dep_notice *notice = NEW(struct dep_notice);
    struct dep_waiters *waiters = dep_waiters_make(map, msg->key);
    *notice = (struct dep_notice){ .number = msg->number,
                                   .key = msg->key,
                                   .singleton = msg->singleton,
                                   .array = msg->array,
                                   .task = msg->task,
                                   .all = take_fate(msg->all),
                                   .one = take_fate(msg->one),
                                   .time_us = msg->time_us,
                                   .twin = msg->twin,
                                   .twin_of = msg->twin_of };
    bool right = !waiters->notice || !msg->singleton;
    for (size_t i = 0; i < msg->n_job_ids; i++)
        right &= wait_list_del(&waiters->ids, msg->job_ids[i]) &&
                 wait_list_add(&notice->ids, msg->job_ids[i]);
    dep_notify_append(state, notice);
    return right ? 0 : damaged(err, "news are not right");
}

static int take_request(struct restore *restore, const SnapshotRequest *msg, struct err *err)
{
    struct request request = { .time_us = msg->time_us,
                               .uid = msg->uid,
                               .job_id = msg->job_id,
                               .code = msg->code,
                               .more = msg->more };

    if (msg->request_id.len != sizeof(request.id))
        return damaged(err, "a request is not right");
    memcpy(request.id, msg->request_id.data, sizeof(request.id));
    if (request_find(restore->state, request.uid, request.id))
        return damaged(err, "a request is there twice");
    request_put(restore->state, &request);
    return 0;
}

static int take_record(struct restore *restore, const SnapshotRecord *record, struct err *err)
{
    if (!restore->has_head && record->what_case != SNAPSHOT_RECORD__WHAT_HEAD)
        return damaged(err, "it does not begin with its head");
    bool strict =
        restore->state->level >= LEVEL_LEVELS ||
        (record->what_case == SNAPSHOT_RECORD__WHAT_HEAD && record->head->level >= LEVEL_LEVELS);
    if (strict && pb_has_unknown(record))
        return newer(err, "a field that this build does not know");
    if (record->what_case != SNAPSHOT_RECORD__WHAT_HEAD) {
        restore->seen++;
        if (record->what_case != SNAPSHOT_RECORD__WHAT_NODE)
            nodes_are_complete(restore);
    }
    switch (record->what_case) {
    case SNAPSHOT_RECORD__WHAT_HEAD:
        return take_head(restore, record->head, err);
    case SNAPSHOT_RECORD__WHAT_NODE:
        return take_node(restore, record->node, err);
    case SNAPSHOT_RECORD__WHAT_PARTITION:
        return take_partition(restore, record->partition, err);
    case SNAPSHOT_RECORD__WHAT_RESV:
        return take_reservation(restore, record->resv, err);
    case SNAPSHOT_RECORD__WHAT_CRONTAB:
        crontab_put(restore->state, record->crontab);
        return 0;
    case SNAPSHOT_RECORD__WHAT_TRIGGER:
        return take_trigger(restore, record->trigger, err);
    case SNAPSHOT_RECORD__WHAT_NODE_KEY:
        if (str_is_empty(record->node_key->node))
            return damaged(err, "a key is not right");
        node_set_key(restore->state, record->node_key->node, &record->node_key->key,
                     record->node_key->forgotten);
        return 0;
    case SNAPSHOT_RECORD__WHAT_REVOKE:
        revoke_tokens(restore->state, record->revoke->uid, record->revoke->issued_s);
        return 0;
    case SNAPSHOT_RECORD__WHAT_USAGE:
        return take_usage(restore, record->usage, err);
    case SNAPSHOT_RECORD__WHAT_JOB:
        return restore_job(restore->state, record->job, err);
    case SNAPSHOT_RECORD__WHAT_NEWS:
        return take_notice(restore, record->news, err);
    case SNAPSHOT_RECORD__WHAT_REQUEST:
        return take_request(restore, record->request, err);
    default:
        return newer(err, "a record that this build does not know");
    }
}

/* One whole record at the beginning of the bytes; 0 when it is not all there yet. */
static size_t next_record(struct restore *restore, const uint8_t *bytes, size_t len)
{
    if (len < 4)
        return 0;
    size_t size =
        (size_t)bytes[0] | (size_t)bytes[1] << 8 | (size_t)bytes[2] << 16 | (size_t)bytes[3] << 24;
    if (size > LIMIT_SNAPSHOT_RECORD) {
        restore->code = damaged(&restore->err, "a record is too long");
        return 0;
    }
    if (len - 4 < size)
        return 0;
    ProtobufCAllocator allocator = pb_arena(&restore->state->scratch);
    SnapshotRecord *record = snapshot_record__unpack(&allocator, size, bytes + 4);
    restore->code = record ? take_record(restore, record, &restore->err)
                           : damaged(&restore->err, "a record cannot be read");
    arena_reset(&restore->state->scratch);
    return size + 4;
}

int core_restore_feed(struct restore *restore, const void *bytes, size_t len, struct err *err)
{
    const uint8_t *at = bytes;
    size_t left = len, done;

    if (restore->pending.len) {
        str_add_len(&restore->pending, bytes, len);
        at = (const uint8_t *)str_text(&restore->pending);
        left = restore->pending.len;
    }
    while (restore->code == 0 && (done = next_record(restore, at, left)) > 0) {
        at += done;
        left -= done;
    }
    if (restore->code < 0) {
        if (err)
            *err = restore->err;
        return restore->code;
    }
    struct str rest = { 0 };
    str_add_len(&rest, at, left);
    str_done(&restore->pending);
    restore->pending = rest;
    return 0;
}

static int verdict(struct restore *restore, struct err *err)
{
    if (restore->code < 0) {
        if (err)
            *err = restore->err;
        return restore->code;
    }
    if (!restore->has_head || restore->pending.len || restore->seen != restore->records)
        return damaged(err, "it is not complete");
    nodes_are_complete(restore);
    vec_each (struct partition *, at, &restore->state->partitions)
        partition_resolve(restore->state, *at, NULL);
    vec_each (struct node *, at, &restore->state->nodes)
        node_see_shrunk(*at);
    reservations_renumber(restore->state);
    reservations_next(restore->state);
    reboots_next(restore->state);
    timers_restored(restore->state);
    triggers_watch_nodes(restore->state);
    triggers_next(restore->state);
    restore->state->generation++;
    restore->state->restoring = false;
    settle(restore->state);
    if (core_digest_level(restore->state, restore->level) != restore->digest)
        return damaged(err, "its digest differs");
    return 0;
}

struct state *core_restore_end(struct restore *restore, struct err *err)
{
    struct state *state = verdict(restore, err) == 0 ? TAKE(restore->state) : NULL;

    state_free(restore->state);
    str_done(&restore->pending);
    free(restore);
    return state;
}
