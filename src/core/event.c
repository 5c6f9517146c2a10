/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event.c - what core_apply() says has happened
 */
#include "core/event.h"

static const char *const names[] = {
    [EVENT_ANSWER] = "answer",
    [EVENT_REJECTED] = "rejected",
    [EVENT_JOB_SUBMITTED] = "job.submitted",
    [EVENT_JOB_ELIGIBLE] = "job.eligible",
    [EVENT_JOB_WAITING] = "job.waiting",
    [EVENT_JOB_STARTED] = "job.started",
    [EVENT_JOB_READY] = "job.ready",
    [EVENT_JOB_SIGNAL] = "job.signal",
    [EVENT_JOB_ENDING] = "job.ending",
    [EVENT_JOB_ENDED] = "job.ended",
    [EVENT_JOB_RELEASED] = "job.released",
    [EVENT_JOB_CLEAN] = "job.clean",
    [EVENT_JOB_REQUEUED] = "job.requeued",
    [EVENT_JOB_CHANGED] = "job.changed",
    [EVENT_JOB_SUSPENDED] = "job.suspended",
    [EVENT_JOB_RESUMED] = "job.resumed",
    [EVENT_TASKS_CANCELLED] = "job.tasks_cancelled",
    [EVENT_TASK_SPLIT] = "job.task",
    [EVENT_JOB_FORGOTTEN] = "job.forgotten",
    [EVENT_PAYLOAD_DROPPED] = "payload.dropped",
    [EVENT_NODE_UP] = "node.up",
    [EVENT_NODE_DOWN] = "node.down",
    [EVENT_NODE_CHANGED] = "node.changed",
    [EVENT_PARTITION] = "partition.changed",
    [EVENT_RESERVATION] = "reservation.changed",
    [EVENT_CONFIG] = "config.changed",
    [EVENT_LEADER] = "leader.changed",
    [EVENT_DIVERGED] = "state.diverged",
};

void events_init(struct events *events)
{
    *events = (struct events){ 0 };
    arena_init(&events->arena);
}

void events_done(struct events *events)
{
    vec_done(&events->list);
    arena_done(&events->arena);
}

void events_clear(struct events *events)
{
    vec_clear(&events->list);
    arena_reset(&events->arena);
}

const char *event_name(enum event_kind kind)
{
    return (unsigned)kind < ARRAY_LEN(names) ? names[kind] : "unknown";
}
