/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event.c - what core_apply() says has happened
 */
#include "core/event.h"

#include "core/record/record.h"

static const char *const names[] = {
    [EVENT_ANSWER] = "answer",
    [EVENT_REJECTED] = "rejected",
    [EVENT_JOB_SUBMITTED] = "job.submitted",
    [EVENT_JOB_ELIGIBLE] = "job.eligible",
    [EVENT_JOB_WAITING] = "job.waiting",
    [EVENT_JOB_STARTED] = "job.started",
    [EVENT_JOB_PREPARED] = "job.prepared",
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
    [EVENT_JOB_PREEMPTED] = "job.preempted",
    [EVENT_JOB_TIME] = "job.time",
    [EVENT_TASKS_CANCELLED] = "job.tasks_cancelled",
    [EVENT_TASK_SPLIT] = "job.task",
    [EVENT_JOB_FORGOTTEN] = "job.forgotten",
    [EVENT_PAYLOAD_DROPPED] = "payload.dropped",
    [EVENT_NODE_UP] = "node.up",
    [EVENT_NODE_DOWN] = "node.down",
    [EVENT_NODE_REBOOT] = "node.reboot",
    [EVENT_NODE_CHANGED] = "node.changed",
    [EVENT_PARTITION] = "partition.changed",
    [EVENT_RESERVATION] = "reservation.changed",
    [EVENT_RESV_CHANGED] = "reservation.put",
    [EVENT_RESV_GONE] = "reservation.gone",
    [EVENT_CONFIG] = "config.changed",
    [EVENT_PRIORITY] = "priority.turn",
    [EVENT_LEADER] = "leader.changed",
    [EVENT_CONTROLLERS] = "controllers.changed",
    [EVENT_TRIGGER] = "trigger.due",
    [EVENT_TRIGGER_RUN] = "trigger.run",
    [EVENT_STEPS] = "steps.ended",
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

struct event *emit(struct events *out, enum event_kind kind)
{
    vec_push(&out->list, (struct event){ .kind = kind, .task = NO_TASK });
    return &out->list.items[out->list.len - 1];
}

struct event *emit_job(struct events *out, enum event_kind kind, const struct job *job)
{
    struct event *event = emit(out, kind);

    event->job = job;
    event->job_id = job->id;
    event->attempt = job->attempt;
    if (job->array) {
        event->array_id = job->array->id;
        if (job->is_task)
            event->task = job->array_task_id;
    }
    return event;
}

void emit_node(struct events *out, enum event_kind kind, const struct node *node)
{
    emit(out, kind)->node = node;
}

void emit_named(struct events *out, enum event_kind kind, const char *name)
{
    emit(out, kind)->text = arena_strdup(&out->arena, name);
}

struct event *reject(struct events *out, uint32_t job_id, uint32_t task, enum err_code code)
{
    struct event *event = emit(out, EVENT_REJECTED);

    event->job_id = job_id;
    event->task = task;
    event->code = code;
    return event;
}
