/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot.c - the state as a stream of records
 *
 * Head first, then nodes, partitions, reservations, keys, usage of accounts and QOS, jobs by id (an array before its tasks),
 * notice that jobs have not been told in their order, request ids oldest first. Everything else is made again from these.
 */
#include <stdlib.h>
#include <string.h>

#include "core/crontab.h"
#include "core/level.h"
#include "core/msg.h"
#include "core/view/view.h"

struct writer {
    core_write_fn *write;
    void *to;
    uint8_t *buffer;
    size_t cap;
    int code;
};

static void put(struct writer *writer, const SnapshotRecord *record)
{
    size_t len = snapshot_record__get_packed_size(record);

    if (writer->code < 0)
        return;
    if (len + 4 > writer->cap) {
        writer->cap = MAX(len + 4, writer->cap * 2);
        writer->buffer = mem_resize(writer->buffer, writer->cap);
    }
    for (unsigned i = 0; i < 4; i++)
        writer->buffer[i] = (uint8_t)(len >> 8 * i);
    snapshot_record__pack(record, writer->buffer + 4);
    int code = writer->write(writer->to, writer->buffer, len + 4);
    writer->code = code < 0 ? code : 0;
}

/* Oldest first, from LEVEL_LEVELS on. */
static void add_marks(const struct state *state, Mark marks[MARKS_KEPT], Mark *list[MARKS_KEPT],
                      SnapshotHead *head)
{
    size_t count = state_level(state) >= LEVEL_LEVELS ? core_marks(state) : 0;

    for (size_t i = 0; i < count; i++) {
        struct state_mark mark = core_mark(state, count - 1 - i);
        mark__init(&marks[i]);
        marks[i].has_index = marks[i].has_digest = true;
        marks[i].index = mark.index;
        marks[i].digest = mark.digest;
        list[i] = &marks[i];
    }
    head->n_marks = count;
    head->marks = list;
}

static void put_head(struct writer *writer, const struct state *state)
{
    Mark marks[MARKS_KEPT], *list[MARKS_KEPT];
    SnapshotRecord record = SNAPSHOT_RECORD__INIT;
    SnapshotHead head = SNAPSHOT_HEAD__INIT;

    head.has_index = head.has_epoch = head.has_time_us = head.has_next_job_id = true;
    head.has_digest = head.has_journal_acked = head.has_records = true;
    head.index = state->index;
    head.epoch = state->epoch;
    head.time_us = state->time_us;
    head.next_job_id = state->next_job_id;
    head.digest = core_digest(state);
    head.has_feature_level = true;
    head.feature_level = DIGEST_LEVEL;
    head.has_level = state->level != 0;
    head.level = state->level;
    head.has_level_pin = state->level_pin != 0;
    head.level_pin = state->level_pin;
    head.journal_acked = state->journal_acked;
    head.has_accounts = state->accounts_number != 0;
    head.accounts = state->accounts_number;
    head.has_last_trigger_id = state->last_trigger_id != 0;
    head.last_trigger_id = state->last_trigger_id;
    head.leader = state->leader;
    head.leader_address = state->leader_address;
    head.config = state->config;
    head.controllers = state->controllers;
    head.records = state->nodes.len + state->partitions.len + state->reservations.len +
                   state->triggers.len + state->crontabs.len + map_len(&state->keys) +
                   map_len(&state->revoked) + state->records + state->requests.count +
                   state->accounts->assocs.len + state->accounts->qos.len +
                   state->dep_pending.count;
    head.has_priority_us = true;
    head.priority_us = state->priority_us;
    head.has_skipped_us = state->skipped_us != 0;
    head.skipped_us = state->skipped_us;
    head.has_cluster_id = state->has_cluster_id;
    head.cluster_id =
        (ProtobufCBinaryData){ sizeof(state->cluster_id), (uint8_t *)(uintptr_t)state->cluster_id };
    add_marks(state, marks, list, &head);
    record.what_case = SNAPSHOT_RECORD__WHAT_HEAD;
    record.head = &head;
    put(writer, &record);
}

static void put_nodes(struct writer *writer, const struct state *state)
{
    vec_each (struct node *, at, &state->nodes) {
        SnapshotRecord record = SNAPSHOT_RECORD__INIT;
        Node node = NODE__INIT;
        NodeStatus status;
        node_fact_msg(*at, &status);
        node.spec = (*at)->spec;
        node.status = &status;
        record.what_case = SNAPSHOT_RECORD__WHAT_NODE;
        record.node = &node;
        put(writer, &record);
    }
}

static void put_tables(struct writer *writer, const struct state *state)
{
    SnapshotRecord record = SNAPSHOT_RECORD__INIT;

    vec_each (struct partition *, at, &state->partitions) {
        record.what_case = SNAPSHOT_RECORD__WHAT_PARTITION;
        record.partition = (*at)->spec;
        put(writer, &record);
    }
    vec_each (struct reservation *, at, &state->reservations) {
        SnapshotReservation resv = SNAPSHOT_RESERVATION__INIT;
        resv.spec = (*at)->spec;
        resv.has_active = true;
        resv.active = (*at)->active;
        resv.has_over = resv.over = (*at)->over;
        resv.has_idle_us = (*at)->idle_us != 0;
        resv.idle_us = (*at)->idle_us;
        record.what_case = SNAPSHOT_RECORD__WHAT_RESV;
        record.resv = &resv;
        put(writer, &record);
    }
    for (size_t i = 0; i < state_crontab_count(state); i++) {
        record.what_case = SNAPSHOT_RECORD__WHAT_CRONTAB;
        record.crontab = (Crontab *)(uintptr_t)state_crontab_at(state, i);
        put(writer, &record);
    }
    vec_each (struct trigger *, at, &state->triggers) {
        SnapshotTrigger trigger = SNAPSHOT_TRIGGER__INIT;
        trigger.spec = (*at)->spec;
        trigger.has_pulled_us = (*at)->pulled_us != 0;
        trigger.pulled_us = (*at)->pulled_us;
        trigger.n_pulled_nodes = (*at)->nodes.len;
        trigger.pulled_nodes = (*at)->nodes.items;
        trigger.pulled_for = (*at)->pulled_for;
        trigger.has_idle_seen_us = (*at)->idle_seen_us != 0;
        trigger.idle_seen_us = (*at)->idle_seen_us;
        record.what_case = SNAPSHOT_RECORD__WHAT_TRIGGER;
        record.trigger = &trigger;
        put(writer, &record);
    }
    map_each (entry, &state->keys) {
        const struct node_key *key = entry->value;
        CmdNodeKey msg = CMD_NODE_KEY__INIT;
        msg.node = entry->key;
        msg.has_key = true;
        msg.key = key->key;
        msg.has_forgotten = msg.forgotten = key->forgotten;
        record.what_case = SNAPSHOT_RECORD__WHAT_NODE_KEY;
        record.node_key = &msg;
        put(writer, &record);
    }
    map_each (entry, &state->revoked) {
        const struct revoked *revoked = entry->value;
        CmdRevoke msg = CMD_REVOKE__INIT;
        msg.has_uid = msg.has_issued_s = true;
        msg.uid = revoked->uid;
        msg.issued_s = revoked->issued_s;
        record.what_case = SNAPSHOT_RECORD__WHAT_REVOKE;
        record.revoke = &msg;
        put(writer, &record);
    }
}

static void put_usage(struct writer *writer, const struct accounts *accounts,
                      const struct holder *holder, SnapshotUsage *msg)
{
    SnapshotRecord record = SNAPSHOT_RECORD__INIT;
    TresUsage usage[TRES_MOST], *list[TRES_MOST];

    msg->usage = list;
    for (size_t k = 0; k < accounts->tres_count; k++) {
        TresUsage *one = &usage[msg->n_usage];
        if (!holder->usage[k])
            continue;
        tres_usage__init(one);
        one->tres = (char *)(uintptr_t)accounts->tres[k].name;
        one->has_amount = true;
        one->amount = holder->usage[k];
        list[msg->n_usage++] = one;
    }
    msg->has_wall = msg->has_usage_us = true;
    msg->wall = holder->wall;
    msg->usage_us = holder->usage_us;
    record.what_case = SNAPSHOT_RECORD__WHAT_USAGE;
    record.usage = msg;
    put(writer, &record);
}

static void put_accounts(struct writer *writer, const struct accounts *accounts)
{
    vec_each (struct assoc *, at, &accounts->assocs) {
        SnapshotUsage msg = SNAPSHOT_USAGE__INIT;
        msg.account = (char *)(uintptr_t)(*at)->account;
        msg.user = (char *)(uintptr_t)(*at)->user;
        msg.partition = (char *)(uintptr_t)(*at)->partition;
        msg.has_factor = true;
        msg.factor = (*at)->factor;
        put_usage(writer, accounts, &(*at)->holder, &msg);
    }
    vec_each (struct qos *, at, &accounts->qos) {
        SnapshotUsage msg = SNAPSHOT_USAGE__INIT;
        msg.qos = (char *)(uintptr_t)(*at)->name;
        put_usage(writer, accounts, &(*at)->holder, &msg);
    }
}

static void releasing(const struct job *job, struct arena *arena, SnapshotJob *out)
{
    out->releasing = ARENA_ARRAY(arena, char *, job->run->held);
    for (unsigned i = 0; i < job->run->count; i++) {
        if (job->run->parts[i].node)
            out->releasing[out->n_releasing++] = (char *)(uintptr_t)job->run->parts[i].name;
    }
    out->has_whole_nodes = out->has_shared = out->has_skipped_us = true;
    out->skipped_us = job->run->skipped_us;
    out->whole_nodes = job->run->whole_nodes;
    out->shared = job->run->shared;
    out->has_billing = job->run->has_billing;
    out->billing = job->run->billing;
    out->has_lent = out->lent = job->run->lent;
    out->has_gang = out->gang = job->run->gang;
    out->has_site_prolog = job->run->prolog != SITE_NONE;
    out->site_prolog = job->run->prolog;
    out->has_site_epilog = job->run->epilog != SITE_NONE;
    out->site_epilog = job->run->epilog;
    out->has_site_boot = job->run->boot != SITE_NONE;
    out->site_boot = job->run->boot;
}

static void put_job(struct writer *writer, const struct state *state, const struct job *job,
                    struct arena *arena)
{
    SnapshotRecord record = SNAPSHOT_RECORD__INIT;
    SnapshotJob msg = SNAPSHOT_JOB__INIT;
    JobStatus status;
    JobOwner owner;

    job_status_msg(state, job, arena, &status);
    /* Other fields say these already. */
    status.array_tasks = status.partition = status.account = status.qos = NULL;
    job_owner_msg(job->owner, &owner);
    msg.has_id = msg.has_spec = true;
    msg.id = job->id;
    msg.owner = &owner;
    msg.status = &status;
    msg.spec = (ProtobufCBinaryData){ job->spec->len, job->spec->data };
    if (job->payload) {
        msg.has_payload_digest = true;
        msg.payload_digest = (ProtobufCBinaryData){ PAYLOAD_DIGEST_BYTES,
                                                    (uint8_t *)(uintptr_t)job->payload->digest };
    }
    if (job->run) {
        status.allocation = ARENA_NEW(arena, Allocation);
        alloc_all_msg(job, arena, status.allocation);
        releasing(job, arena, &msg);
    }
    if (job->array && job->array->id == job->id) {
        msg.has_array_bits = msg.has_array_last_start_us = true;
        msg.array_bits =
            (ProtobufCBinaryData){ ((size_t)job->array->count + 3) / 4, job->array->bits };
        msg.array_last_start_us = job->array->last_start_us;
    }
    if (job->more) {
        msg.has_het_count = job->more->het_count > 0;
        msg.het_count = job->more->het_count;
        msg.has_preempt_end_us = job->more->preempt_end_us != 0;
        msg.preempt_end_us = job->more->preempt_end_us;
        msg.has_preempt_requeue = msg.preempt_requeue = job->more->preempt_requeue;
        msg.has_preempted_by = job->more->preempted_by != 0;
        msg.preempted_by = job->more->preempted_by;
        msg.has_unbound_attempt = job->more->unbound_attempt != 0;
        msg.unbound_attempt = job->more->unbound_attempt;
        msg.has_mail_sent = job->more->mail_sent != 0;
        msg.mail_sent = job->more->mail_sent;
    }
    record.what_case = SNAPSHOT_RECORD__WHAT_JOB;
    record.job = &msg;
    put(writer, &record);
}

static void put_jobs(struct writer *writer, const struct state *state)
{
    struct arena arena;

    arena_init(&arena);
    for (const struct job *job = state_job_from(state, 0); job && writer->code == 0;
         job = state_job_from(state, (uint64_t)job->id + 1)) {
        put_job(writer, state, job, &arena);
        arena_reset(&arena);
    }
    arena_done(&arena);
}

static void fate_msg(const struct fate *fate, SnapshotFate *out)
{
    snapshot_fate__init(out);
    out->has_started = out->started = fate->started;
    out->has_ended = out->ended = fate->ended;
    out->has_ok = out->ok = fate->ok;
    out->has_start_us = fate->start_us != 0;
    out->start_us = fate->start_us;
}

static void put_notice(struct writer *writer, const struct state *state)
{
    for (const struct dep_notice *notice = state->dep_pending.first; notice;
         notice = notice->next) {
        SnapshotRecord record = SNAPSHOT_RECORD__INIT;
        SnapshotNews msg = SNAPSHOT_NEWS__INIT;
        SnapshotFate all, one;
        fate_msg(&notice->all, &all);
        fate_msg(&notice->one, &one);
        msg.has_number = msg.has_key = msg.has_task = msg.has_time_us = true;
        msg.number = notice->number;
        msg.key = notice->key;
        msg.has_singleton = msg.singleton = notice->singleton;
        msg.has_array = msg.array = notice->array;
        msg.task = notice->task;
        msg.all = &all;
        msg.one = &one;
        msg.time_us = notice->time_us;
        msg.n_job_ids = notice->ids.len;
        msg.job_ids = notice->ids.items + notice->ids.from;
        msg.has_twin = msg.has_twin_of = notice->twin_of != 0;
        msg.twin = notice->twin;
        msg.twin_of = notice->twin_of;
        record.what_case = SNAPSHOT_RECORD__WHAT_NEWS;
        record.news = &msg;
        put(writer, &record);
    }
}

static void put_requests(struct writer *writer, const struct state *state)
{
    const struct requests *requests = &state->requests;

    for (size_t i = 0; i < requests->count; i++) {
        const struct request *request = request_at(requests, i);
        SnapshotRecord record = SNAPSHOT_RECORD__INIT;
        SnapshotRequest msg = SNAPSHOT_REQUEST__INIT;
        msg.has_uid = msg.has_request_id = msg.has_time_us = msg.has_job_id = msg.has_code = true;
        msg.uid = request->uid;
        msg.request_id =
            (ProtobufCBinaryData){ sizeof(request->id), (uint8_t *)(uintptr_t)request->id };
        msg.time_us = request->time_us;
        msg.job_id = request->job_id;
        msg.code = request->code;
        msg.has_more = msg.more = request->more;
        record.what_case = SNAPSHOT_RECORD__WHAT_REQUEST;
        record.request = &msg;
        put(writer, &record);
    }
}

int core_snapshot_write(const struct state *state, core_write_fn *write, void *to)
{
    struct writer writer = { .write = write, .to = to };

    put_head(&writer, state);
    put_nodes(&writer, state);
    put_tables(&writer, state);
    put_accounts(&writer, state->accounts);
    put_jobs(&writer, state);
    put_notice(&writer, state);
    put_requests(&writer, state);
    free(writer.buffer);
    return writer.code;
}
