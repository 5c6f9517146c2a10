/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_journal.c - what accounting will read: what each entry of the log meant for jobs and steps
 *
 * (1) A record follows from the command and the state after it, so every controller writes the same.
 * (2) Nothing here depends on who leads, and it also runs while the log is applied again at a start.
 * (3) The spec of a job stays packed on its way.
 */
#include "core/job.h"
#include "core/level.h"
#include "core/msg.h"
#include "proto/journal.pb-c.h"
#include "spurctld/ctl/ctl_priv.h"
#include "wire/pb.h"
#include "wire/pb_add.h"

enum { FIELD_ENTRY_RECORDS = 3, FIELD_RECORD_JOB = 4 };

static const struct journal_row {
    enum event_kind on;
    JournalKind kind;
    bool whole; /* with the job as it is now */
} rows[] = {
    { EVENT_JOB_SUBMITTED, JOURNAL_SUBMITTED, true },
    { EVENT_TASK_SPLIT, JOURNAL_SPLIT, true },
    { EVENT_JOB_STARTED, JOURNAL_STARTED, true },
    { EVENT_JOB_CHANGED, JOURNAL_CHANGED, true },
    { EVENT_JOB_SUSPENDED, JOURNAL_SUSPENDED, false },
    { EVENT_JOB_RESUMED, JOURNAL_RESUMED, false },
    { EVENT_JOB_ENDED, JOURNAL_ENDED, true },
    { EVENT_JOB_REQUEUED, JOURNAL_REQUEUED, true },
    { EVENT_TASKS_CANCELLED, JOURNAL_TASKS_CANCELLED, false },
};

static const struct journal_row *row_of(enum event_kind kind)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].on == kind)
            return &rows[i];
    }
    return NULL;
}

static void add_packed(struct str *out, const ProtobufCMessage *message)
{
    size_t len = protobuf_c_message_get_packed_size(message);

    str_reserve(out, len + 1);
    protobuf_c_message_pack(message, (uint8_t *)out->data + out->len);
    out->len += len;
    out->data[out->len] = '\0';
}

static void add_record(struct ctl *ctl, const JournalRecord *record, const struct job *job)
{
    struct str *packed = &ctl->journal_record, *whole = &ctl->journal_job;

    str_clear(packed);
    str_clear(whole);
    add_packed(packed, &record->base);
    if (job) { /* (3) */
        job_pack(ctl->state, job, JOB_PACK_FULL, NULL, whole);
        pb_add_bytes(packed, FIELD_RECORD_JOB, whole->data, whole->len);
    }
    pb_add_bytes(&ctl->journal, FIELD_ENTRY_RECORDS, packed->data, packed->len);
}

void ctl_journal_record(struct ctl *ctl, const JournalRecord *record)
{
    add_record(ctl, record, NULL);
}

static void add_job(struct ctl *ctl, const struct event *event, const struct journal_row *row,
                    const Command *command)
{
    JournalRecord record = JOURNAL_RECORD__INIT;
    const CmdCancel *cancel = command->what_case == COMMAND__WHAT_CANCEL ? command->cancel : NULL;
    bool over = event->kind == EVENT_JOB_ENDED || event->kind == EVENT_JOB_REQUEUED;

    record.has_kind = record.has_job_id = true;
    record.kind = row->kind;
    record.job_id = event->job ? event->job->id : event->job_id;
    record.attempt = event->attempt ? event->attempt : event->job ? event->job->attempt : 0;
    record.has_attempt = record.attempt != 0;
    record.text = (char *)(uintptr_t)event->text;
    if (over) {
        record.has_end_state = true;
        record.end_state = event->end_state;
        record.has_start_us = event->start_us != 0;
        record.start_us = event->start_us;
        record.has_end_us = event->end_us != 0;
        record.end_us = event->end_us;
        record.usage = (Usage *)(uintptr_t)event->usage;
    }
    if (event->kind == EVENT_JOB_ENDED && event->end_state == JOB_CANCELLED && cancel) {
        record.has_by_uid = cancel->has_by_uid;
        record.by_uid = cancel->by_uid;
    }
    add_record(ctl, &record, row->whole ? event->job : NULL);
}

static bool stores(const struct ctl *ctl, const char *word)
{
    const char *cursor = state_config(ctl->state)->accounting_store;
    struct span at;

    while (cursor && str_next(&cursor, ", ", &at)) {
        if (span_ieq(at, word))
            return true;
    }
    return false;
}

/* Script and environment, when they are to be kept. Where the log has given them up already there is no record. */
static void add_payload(struct ctl *ctl, const struct job *job)
{
    bool script = stores(ctl, "job_script"), env = stores(ctl, "job_env");
    JournalRecord record = JOURNAL_RECORD__INIT;
    JobPayload part = JOB_PAYLOAD__INIT;
    CLEANUP(str_done) struct str bytes = { 0 };

    if (!job || !job->payload || (!script && !env) || state_level(ctl->state) < LEVEL_JOURNAL ||
        log_payload_get(ctl->log, job->payload->digest, &bytes, NULL) < 0)
        return;
    JobPayload *payload = job_payload__unpack(NULL, bytes.len, (const uint8_t *)bytes.data);
    if (!payload)
        return;
    part.has_script = script && payload->has_script;
    part.script = payload->script;
    part.n_args = script ? payload->n_args : 0;
    part.args = payload->args;
    part.n_env = env ? payload->n_env : 0;
    part.env = payload->env;
    record.has_kind = record.has_job_id = true;
    record.kind = JOURNAL_PAYLOAD;
    record.job_id = job->id;
    record.payload = &part;
    add_record(ctl, &record, NULL);
    job_payload__free_unpacked(payload, NULL);
}

static void add_parts(struct ctl *ctl, StepPart *const *parts, size_t count, JournalKind kind)
{
    for (size_t i = 0; i < count; i++) {
        JournalRecord record = JOURNAL_RECORD__INIT;
        StepPart *part = parts[i];
        if (!part->id)
            continue;
        record.has_kind = record.has_job_id = record.has_attempt = true;
        record.kind = kind;
        record.job_id = part->id->job_id;
        record.attempt = part->id->attempt;
        record.step = part;
        add_record(ctl, &record, NULL);
    }
}

void ctl_journal(struct ctl *ctl, uint64_t index, const Command *command)
{
    JournalEntry head = JOURNAL_ENTRY__INIT;
    bool meant = false;

    if (!ctl->io.journal || index <= ctl->journaled)
        return;
    str_clear(&ctl->journal);
    head.has_index = head.has_time_us = true;
    head.index = index;
    head.time_us = command->time_us;
    add_packed(&ctl->journal, &head.base);
    events_each(event, &ctl->applying.events)
    {
        const struct journal_row *row = row_of(event->kind);
        if (row)
            add_job(ctl, event, row, command);
        if (event->kind == EVENT_JOB_SUBMITTED)
            add_payload(ctl, event->job);
        if (event->kind == EVENT_STEPS && event->steps) {
            add_parts(ctl, event->steps->started, event->steps->n_started, JOURNAL_STEP_STARTED);
            add_parts(ctl, event->steps->parts, event->steps->n_parts, JOURNAL_STEP);
        }
        meant = meant || row || event->kind == EVENT_STEPS;
    }
    meant = ctl_journal_cluster(ctl, command) || meant;
    struct span bytes = { ctl->journal.data, meant ? ctl->journal.len : 0 };
    ctl->io.journal(ctl->io.ctx, index, command->time_us, bytes);
}

void ctl_journal_stored(struct ctl *ctl, uint64_t index)
{
    CmdJournalAck ack = CMD_JOURNAL_ACK__INIT;
    Command command = CTL_COMMAND(JOURNAL_ACK, .journal_ack = &ack);

    ack.has_index = true;
    ack.index = MIN(index, state_head(ctl->state).index);
    ctl_propose(ctl, &command, NULL, NULL);
}

void ctl_ack_journal(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    const AckJournalRequest *request = (const void *)message;
    CmdJournalAck ack = CMD_JOURNAL_ACK__INIT;
    Command command = CTL_COMMAND(JOURNAL_ACK, .journal_ack = &ack);
    uint64_t index = state_head(ctl->state).index;
    struct err err = { 0 };

    if (!request->has_index || request->index > index) {
        err_set(&err, ERR_INVALID, "the log ends at %llu", (unsigned long long)index);
        ask->ops->fail(ask, &err);
        return;
    }
    ack.has_index = true;
    ack.index = request->index;
    ctl_propose_ask(ctl, ask, &command, ctl_done_reply, ask);
}
