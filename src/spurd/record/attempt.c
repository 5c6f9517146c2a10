/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attempt.c - what this node holds: grants, and what is known to be over
 */
#include "spurd/record/attempt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "wire/pb_unpack.h"

enum { TOMBS_AT_ONCE = 1000 };

void attempt_table_init(struct attempt_table *table)
{
    *table = (struct attempt_table){ 0 };
    map_init(&table->held);
    map_init(&table->tombs);
}

static void *copy_message(const ProtobufCMessage *message)
{
    size_t len = protobuf_c_message_get_packed_size(message);
    CLEANUP(freep) uint8_t *bytes = mem_new(len + 1);

    protobuf_c_message_pack(message, bytes);
    return protobuf_c_message_unpack(message->descriptor, NULL, len, bytes);
}

static void attempt_free(struct attempt *held)
{
    arena_done(&held->arena);
    if (held->report)
        step_ended__free_unpacked(held->report, NULL);
    free(held->load.data);
    free(held->std_out);
    free(held->std_err);
    free(held->boot_id);
    free(held);
}

static void tomb_free(struct tomb *tomb)
{
    if (!tomb)
        return;
    if (tomb->owner)
        job_owner__free_unpacked(tomb->owner, NULL);
    free(tomb->std_out);
    free(tomb->std_err);
    free(tomb);
}

void attempt_table_done(struct attempt_table *table)
{
    map_each (entry, &table->held)
        attempt_free(entry->value);
    map_each (entry, &table->tombs)
        tomb_free(entry->value);
    map_done(&table->held);
    map_done(&table->tombs);
}

struct attempt *attempt_find(const struct attempt_table *table, uint32_t job, uint32_t attempt)
{
    return map_get_num(&table->held, attempt_key(job, attempt));
}

struct attempt *attempt_other(const struct attempt_table *table, uint32_t job, uint32_t attempt)
{
    map_each (entry, &table->held) {
        struct attempt *held = entry->value;
        if (held->job == job && held->attempt != attempt)
            return held;
    }
    return NULL;
}

struct attempt *attempt_add(struct attempt_table *table, uint32_t job, uint32_t attempt)
{
    struct attempt *held = NEW(struct attempt);

    arena_init(&held->arena);
    held->job = job;
    held->attempt = attempt;
    held->boot_id = mem_strdup(table->boot_id);
    map_put_num(&table->held, attempt_key(job, attempt), held);
    return held;
}

void attempt_drop(struct attempt_table *table, struct attempt *held)
{
    map_del_num(&table->held, attempt_key(held->job, held->attempt));
    attempt_free(held);
}

static void take_load(struct attempt *held, const Launch *launch)
{
    if (held->has_load || !launch->has_payload)
        return;
    held->load.len = launch->payload.len;
    held->load.data = mem_new(launch->payload.len + 1);
    memcpy(held->load.data, launch->payload.data, launch->payload.len);
    held->has_load = true;
}

void attempt_set_grant(struct attempt *held, const Grant *grant)
{
    Grant plain = *grant;
    Launch launch;
    struct arena arena;
    ProtobufCMessage *copy;

    if (grant->launch) {
        take_load(held, grant->launch);
        launch = *grant->launch;
        launch.has_payload = false;
        launch.payload = (ProtobufCBinaryData){ 0 };
        plain.launch = &launch;
    }
    size_t len = grant__get_packed_size(&plain);
    CLEANUP(freep) uint8_t *bytes = mem_new(len + 1);
    grant__pack(&plain, bytes);
    arena_init(&arena);
    if (pb_unpack(&grant__descriptor, &arena, bytes, len, &copy, NULL) < 0) {
        arena_done(&arena);
        return;
    }
    arena_done(&held->arena); /* `grant` may have lived in it: not before the copy */
    held->arena = arena;
    held->grant = (Grant *)(void *)copy;
}

void attempt_set_report(struct attempt *held, const StepEnded *report)
{
    if (held->report)
        step_ended__free_unpacked(held->report, NULL);
    held->report = copy_message(&report->base);
    held->ended = held->report != NULL;
}

bool attempt_is_buried(const struct attempt_table *table, uint32_t job, uint32_t attempt)
{
    const struct tomb *tomb = map_get_num(&table->tombs, job);

    return tomb && attempt <= tomb->attempt;
}

const struct tomb *attempt_tomb(const struct attempt_table *table, uint32_t job)
{
    return map_get_num(&table->tombs, job);
}

/* Many at once, because each walk begins at the front, where the holes are. */
static void drop_oldest(struct attempt_table *table)
{
    size_t left = TOMBS_AT_ONCE;

    map_each (entry, &table->tombs) {
        if (left-- == 0)
            break;
        struct tomb *tomb = entry->value;
        map_del_num(&table->tombs, tomb->job);
        tomb_free(tomb);
    }
}

void attempt_bury(struct attempt_table *table, const SpoolGone *gone)
{
    struct tomb *old = map_get_num(&table->tombs, gone->job_id);

    if (old && old->attempt > gone->attempt)
        return;
    struct tomb *tomb = NEW(struct tomb);
    tomb->job = gone->job_id;
    tomb->attempt = gone->attempt;
    tomb->time_us = gone->time_us;
    tomb->owner = gone->owner ? copy_message(&gone->owner->base) : NULL;
    tomb->std_out = mem_strdup(gone->std_out);
    tomb->std_err = mem_strdup(gone->std_err);
    /* Taken out and put in again: the map's order is then by time. */
    tomb_free(map_del_num(&table->tombs, gone->job_id));
    map_put_num(&table->tombs, gone->job_id, tomb);
    if (map_len(&table->tombs) > HELD_TOMBS_MAX + TOMBS_AT_ONCE)
        drop_oldest(table);
}

bool attempt_is_alone(const struct attempt *held)
{
    return held->grant && (!held->grant->allocation || held->grant->allocation->n_nodes <= 1);
}

const NodeAlloc *attempt_alloc(const struct attempt *held)
{
    return held->grant ? held->grant->alloc : NULL;
}

/* ---- the journal ---- */

static void replay_gone(struct attempt_table *table, const SpoolGone *gone)
{
    struct attempt *held = attempt_find(table, gone->job_id, gone->attempt);

    if (held)
        attempt_drop(table, held);
    attempt_bury(table, gone);
}

static void replay_launched(struct attempt_table *table, const SpoolLaunched *launched)
{
    struct attempt *held = attempt_find(table, launched->job_id, launched->attempt);

    if (!held)
        return;
    held->ready = held->launched = held->given = true;
    free(held->std_out);
    free(held->std_err);
    held->std_out = mem_strdup(launched->std_out);
    held->std_err = mem_strdup(launched->std_err);
}

static void replay_revoke(struct attempt_table *table, const Revoke *revoke)
{
    struct attempt *held = attempt_find(table, revoke->job_id, revoke->attempt);

    if (!held)
        return;
    held->revoked = true;
    held->revoke_kill = revoke->kill;
    held->kill_wait_s = revoke->kill_wait_s;
    held->revoke_state = revoke->state;
}

static void replay_epoch(struct attempt_table *table, const SpoolEpoch *epoch)
{
    table->epoch = MAX(table->epoch, epoch->epoch);
    if (epoch->has_cluster_id && epoch->cluster_id.len <= sizeof(table->cluster_id)) {
        memcpy(table->cluster_id, epoch->cluster_id.data, epoch->cluster_id.len);
        table->cluster_id_len = epoch->cluster_id.len;
    }
}

void attempt_replay(void *ctx, const SpoolRecord *record)
{
    struct attempt_table *table = ctx;
    struct attempt *held;

    switch (record->what_case) {
    case SPOOL_RECORD__WHAT_START:
        snprintf(table->boot_id, sizeof(table->boot_id), "%s",
                 record->start->boot_id ? record->start->boot_id : "");
        snprintf(table->last_node, sizeof(table->last_node), "%s",
                 record->start->node ? record->start->node : "");
        break;
    case SPOOL_RECORD__WHAT_EPOCH:
        replay_epoch(table, record->epoch);
        break;
    case SPOOL_RECORD__WHAT_GRANT:
        held = attempt_find(table, record->grant->job_id, record->grant->attempt);
        if (!held)
            held = attempt_add(table, record->grant->job_id, record->grant->attempt);
        attempt_set_grant(held, record->grant);
        held->written = true;
        break;
    case SPOOL_RECORD__WHAT_READY:
        held = attempt_find(table, record->ready->job_id, record->ready->attempt);
        if (held)
            held->ready = true;
        break;
    case SPOOL_RECORD__WHAT_LAUNCHED:
        replay_launched(table, record->launched);
        break;
    case SPOOL_RECORD__WHAT_REVOKE:
        replay_revoke(table, record->revoke);
        break;
    case SPOOL_RECORD__WHAT_GONE:
        replay_gone(table, record->gone);
        break;
    default:
        break;
    }
}

static void write_held(const struct attempt *held, struct journal_builder *builder)
{
    SpoolRecord record = SPOOL_RECORD__INIT;
    SpoolReady ready = SPOOL_READY__INIT;
    SpoolLaunched launched = SPOOL_LAUNCHED__INIT;
    Revoke revoke = REVOKE__INIT;

    record.what_case = SPOOL_RECORD__WHAT_GRANT;
    record.grant = held->grant;
    journal_build(builder, &record);
    if (held->ready) {
        ready.has_job_id = ready.has_attempt = true;
        ready.job_id = held->job;
        ready.attempt = held->attempt;
        record.what_case = SPOOL_RECORD__WHAT_READY;
        record.ready = &ready;
        journal_build(builder, &record);
    }
    if (held->launched) {
        launched.has_job_id = launched.has_attempt = true;
        launched.job_id = held->job;
        launched.attempt = held->attempt;
        launched.std_out = held->std_out;
        launched.std_err = held->std_err;
        record.what_case = SPOOL_RECORD__WHAT_LAUNCHED;
        record.launched = &launched;
        journal_build(builder, &record);
    }
    if (held->revoked) {
        revoke.has_job_id = revoke.has_attempt = revoke.has_kill = true;
        revoke.has_kill_wait_s = revoke.has_state = true;
        revoke.job_id = held->job;
        revoke.attempt = held->attempt;
        revoke.kill = held->revoke_kill;
        revoke.kill_wait_s = held->kill_wait_s;
        revoke.state = held->revoke_state;
        record.what_case = SPOOL_RECORD__WHAT_REVOKE;
        record.revoke = &revoke;
        journal_build(builder, &record);
    }
}

static void write_tomb(const struct tomb *tomb, struct journal_builder *builder)
{
    SpoolRecord record = SPOOL_RECORD__INIT;
    SpoolGone gone = SPOOL_GONE__INIT;

    gone.has_job_id = gone.has_attempt = gone.has_time_us = true;
    gone.job_id = tomb->job;
    gone.attempt = tomb->attempt;
    gone.time_us = tomb->time_us;
    gone.owner = tomb->owner;
    gone.std_out = tomb->std_out;
    gone.std_err = tomb->std_err;
    record.what_case = SPOOL_RECORD__WHAT_GONE;
    record.gone = &gone;
    journal_build(builder, &record);
}

void attempt_write(void *ctx, struct journal_builder *builder)
{
    struct attempt_table *table = ctx;
    SpoolRecord record = SPOOL_RECORD__INIT;
    SpoolEpoch epoch = SPOOL_EPOCH__INIT;
    SpoolStart start = SPOOL_START__INIT;

    epoch.has_epoch = true;
    epoch.epoch = table->epoch;
    epoch.has_cluster_id = table->cluster_id_len > 0;
    epoch.cluster_id =
        (ProtobufCBinaryData){ .data = (uint8_t *)table->cluster_id, .len = table->cluster_id_len };
    record.what_case = SPOOL_RECORD__WHAT_EPOCH;
    record.epoch = &epoch;
    journal_build(builder, &record);
    map_each (entry, &table->tombs)
        write_tomb(entry->value, builder);

    start.node = table->last_node;
    start.boot_id = table->boot_id;
    record.what_case = SPOOL_RECORD__WHAT_START;
    record.start = &start;
    journal_build(builder, &record);
    map_each (entry, &table->held) {
        const struct attempt *held = entry->value;
        if (held->grant)
            write_held(held, builder);
    }
}
