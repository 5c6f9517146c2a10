/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_changes.c - one stream of what changes, for spurrestd: jobs by number, owner and state, nodes by name and state
 *
 * (1) What a command changed goes out as one message, with the index of the log. Scripts, environments and command lines
 *     are never in it; who may see which job is settled by the reader, with schema/private_data.h.
 * (2) A reader that does not read is left behind: nothing is kept for it, and when it reads again it is told that
 *     something is missing (`reset`), so it asks for lists.
 */
#include <string.h>

#include "core/msg.h"
#include "core/node.h"
#include "schema/job_view.h"
#include "spurctld/ctl/ctl_priv.h"

static void send(struct change_reader *reader, WatchChangesReply *reply)
{
    struct str packed = { 0 };
    size_t len;

    reply->has_reset = reply->reset = reader->behind;
    len = watch_changes_reply__get_packed_size(reply);
    str_reserve(&packed, len);
    watch_changes_reply__pack(reply, (uint8_t *)packed.data);
    packed.len = len;
    reader->behind = false;
    reader->gone = !reader->ask->ops->send(reader->ask, &packed);
    str_done(&packed);
}

static void fill_head(const struct ctl *ctl, WatchChangesReply *reply)
{
    watch_changes_reply__init(reply);
    reply->has_index = true;
    reply->index = state_head(ctl->state).index;
    reply->private_data = state_config(ctl->state)->private_data;
}

/* The first message says where the stream begins: what was before is in lists. */
void ctl_watch_changes(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    struct change_reader reader = { .ask = ask, .behind = true };
    WatchChangesReply reply;

    (void)message;
    fill_head(ctl, &reply);
    send(&reader, &reply);
    if (reader.gone)
        ask->ops->end(ask);
    else
        vec_push(&ctl->asks.change_readers, reader);
}

static void add_job(const struct ctl *ctl, const struct event *event, WatchChangesReply *reply,
                    struct arena *arena)
{
    JobChange *change = ARENA_NEW(arena, JobChange);

    job_change__init(change);
    change->has_job_id = true;
    if (event->kind == EVENT_JOB_FORGOTTEN) {
        change->job_id = event->job_id;
        change->has_gone = change->gone = true;
    } else {
        const Job *job = job_msg(ctl->state, event->job, arena);
        const JobStatus *status = job_status(job);
        change->job_id = job->id;
        change->has_uid = change->has_state = change->has_flags = true;
        change->uid = job_owner(job)->uid;
        change->user = job_owner(job)->user;
        change->state = status->state;
        change->flags = status->flags;
        change->account = status->account;
        change->partition = status->partition ? status->partition : job_spec(job)->partition;
        change->name = job_spec(job)->name;
        change->has_array_job_id = status->has_array_job_id;
        change->array_job_id = status->array_job_id;
    }
    reply->jobs[reply->n_jobs++] = change;
}

static void add_node(const struct event *event, WatchChangesReply *reply, struct arena *arena)
{
    NodeChange *change = ARENA_NEW(arena, NodeChange);

    node_change__init(change);
    change->name = event->node->spec->name;
    reply->nodes[reply->n_nodes++] = change;
}

/* The state is the same after all events of a command: each job and node is in it once. */
static void fill(const struct ctl *ctl, WatchChangesReply *reply, struct arena *arena)
{
    const struct job *last_job = NULL;
    const struct node *last_node = NULL;
    size_t count = 0;

    events_each(event, &ctl->applying.events) count++;
    reply->jobs = ARENA_ARRAY(arena, JobChange *, count);
    reply->nodes = ARENA_ARRAY(arena, NodeChange *, count);
    events_each(event, &ctl->applying.events)
    {
        bool node_event = event->kind == EVENT_NODE_UP || event->kind == EVENT_NODE_DOWN ||
                          event->kind == EVENT_NODE_CHANGED;
        if (event->kind == EVENT_JOB_FORGOTTEN || (event->job && event->job != last_job))
            add_job(ctl, event, reply, arena);
        if (node_event && event->node && event->node != last_node)
            add_node(event, reply, arena);
        last_job = event->job ? event->job : last_job;
        last_node = event->node ? event->node : last_node;
        if (event->kind == EVENT_PARTITION || event->kind == EVENT_CONFIG)
            reply->has_partitions = reply->partitions = true;
        if (event->kind == EVENT_RESERVATION)
            reply->has_reservations = reply->reservations = true;
    }
}

void ctl_changes_notify(struct ctl *ctl)
{
    WatchChangesReply reply;
    struct arena arena;

    if (!ctl->asks.change_readers.len)
        return;
    arena_init(&arena);
    fill_head(ctl, &reply);
    fill(ctl, &reply, &arena);
    bool any = reply.n_jobs || reply.n_nodes || reply.partitions || reply.reservations;
    for (size_t i = ctl->asks.change_readers.len; any && i-- > 0;) {
        struct change_reader *reader = &ctl->asks.change_readers.items[i];
        if (!reader->ask->ops->writable(reader->ask)) {
            reader->behind = true; /* (2) */
            continue;
        }
        send(reader, &reply);
        if (reader->gone) {
            struct ctl_ask *ask = reader->ask;
            vec_remove(&ctl->asks.change_readers, i);
            ask->ops->end(ask);
        }
    }
    arena_done(&arena);
}

void ctl_changes_gone(struct ctl *ctl, const struct ctl_ask *ask)
{
    for (size_t i = ctl->asks.change_readers.len; i-- > 0;) {
        if (ctl->asks.change_readers.items[i].ask == ask)
            vec_remove(&ctl->asks.change_readers, i);
    }
}
