/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay.c - the supervisors of a step's nodes talk to each other, by way of srun
 *
 * (1) A frame is taken once: only the number after the last is. srun hears how far we are after every
 *     RELAY_ACK_BYTES and sends no more than a few of these ahead, so the channel never overflows.
 * (2) A message that is longer than LIMIT_RELAY_BYTES ends the step: nothing is dropped silently.
 */
#include "spurstepd/relay.h"

#include <stdlib.h>

#include "base/limits.h"
#include "base/str.h"
#include "spurstepd/step_plugins.h"
#include "spurstepd/tasks_priv.h"

enum { FRAME_COST_BYTES = 512 };

bool relay_wanted(const StepTask *task)
{
    return !str_is_empty(task->tasks->mpi);
}

int relay_begin(struct tasks *tasks, struct err *err)
{
    const StepTasks *what = tasks->task->tasks;
    const ProtobufCBinaryData *packed = what->has_whole ? &what->whole : &what->layout;
    struct relay *relay = tasks->relay = NEW(struct relay);

    relay->layout = step_layout__unpack(NULL, packed->len, packed->data);
    if (!relay->layout)
        return err_set(err, ERR_BAD_MESSAGE, "layout");
    relay->here = what->has_whole ? what->whole_node : 0; /* a node may be there twice */
    while (relay->here < relay->layout->n_nodes &&
           !str_eq(relay->layout->nodes[relay->here]->name, tasks->task->node))
        relay->here++;
    if (relay->here >= relay->layout->n_nodes)
        return err_set(err, ERR_INVALID, "the step has no tasks on node %s", tasks->task->node);
    relay->parts = NEW_ARRAY(struct str, relay->layout->n_nodes);
    return 0;
}

void relay_end(struct tasks *tasks)
{
    struct relay *relay = TAKE(tasks->relay);

    if (!relay)
        return;
    for (size_t i = 0; relay->parts && i < relay->layout->n_nodes; i++)
        str_done(&relay->parts[i]);
    free(relay->parts);
    if (relay->layout)
        step_layout__free_unpacked(relay->layout, NULL);
    free(relay);
}

void relay_send(struct tasks *tasks, int64_t to, const void *bytes, size_t len)
{
    size_t at = 0;

    if (len > LIMIT_RELAY_BYTES) { /* (2) */
        tasks_abort(tasks, tasks->list[0].number, 1, "a message to other nodes is too long");
        return;
    }
    if (tasks->relay->layout->n_nodes == 1)
        return;
    do {
        RunStepOut out = RUN_STEP_OUT__INIT;
        StepRelay words = STEP_RELAY__INIT;
        size_t part = MIN(len - at, (size_t)RELAY_FRAME_BYTES);
        words.has_to = to != RELAY_ALL;
        words.to = to != RELAY_ALL ? (uint32_t)to : 0;
        words.has_data = true;
        words.data = (ProtobufCBinaryData){ .data = (uint8_t *)bytes + at, .len = part };
        at += part;
        words.has_more = words.more = at < len;
        out.what_case = RUN_STEP_OUT__WHAT_RELAY;
        out.relay = &words;
        tasks_send_srun(tasks, &out);
    } while (at < len);
}

static void acknowledge(struct tasks *tasks)
{
    RunStepOut out = RUN_STEP_OUT__INIT;

    tasks->relay->unacked_bytes = 0;
    out.what_case = RUN_STEP_OUT__WHAT_RELAYED;
    out.relayed = tasks->relay->taken;
    tasks_send_srun(tasks, &out);
}

void relay_take(struct tasks *tasks, const StepRelay *frame)
{
    struct relay *relay = tasks->relay;

    if (!relay || frame->number != relay->taken + 1) /* (1) */
        return;
    relay->taken++;
    relay->unacked_bytes += frame->data.len + FRAME_COST_BYTES;
    if (frame->from < relay->layout->n_nodes) {
        struct str *part = &relay->parts[frame->from];
        if (part->len + frame->data.len > LIMIT_RELAY_BYTES) { /* (2) */
            tasks_abort(tasks, tasks->list[0].number, 1, "a message of another node is too long");
            return;
        }
        str_add_len(part, frame->data.data, frame->data.len);
        if (!frame->more) {
            step_plugins_relay(tasks, frame->from, (const uint8_t *)str_text(part), part->len);
            str_done(part);
        }
    }
    if (relay->unacked_bytes >= RELAY_ACK_BYTES)
        acknowledge(tasks);
}

uint64_t relay_taken(const struct tasks *tasks)
{
    return tasks->relay ? tasks->relay->taken : 0;
}
