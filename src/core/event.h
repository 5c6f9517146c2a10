/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event.h - what core_apply() says has happened
 *
 * Facts for the planner, for effects on nodes, for watchers and for the journal, in the order they
 * happened. Everything borrowed here is valid until the next core_apply() or events_clear(). Events
 * describe the state after the whole command; what the job was before is in the event itself.
 *
 * Each command ends with exactly one EVENT_ANSWER: the request's result. A command of several jobs
 * gives an EVENT_REJECTED for each that it did not change.
 */
#ifndef CORE_EVENT_H
#define CORE_EVENT_H

#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"
#include "proto/command.pb-c.h"
#include "proto/job.pb-c.h"

struct job;
struct node;

#define NO_TASK UINT32_MAX

enum event_kind {
    EVENT_ANSWER,   /* code; job_id of a submission; text */
    EVENT_REJECTED, /* code, job_id, task: this one was not changed, or its start was refused */

    EVENT_JOB_SUBMITTED, /* job is new (state PENDING) */
    EVENT_JOB_ELIGIBLE,  /* job may be planned from now on */
    EVENT_JOB_WAITING, /* job may not be planned any more: held, begin time or dependency changed */
    EVENT_JOB_STARTED, /* job->run is set; array_id and task name the array it was planned from */
    EVENT_JOB_PREPARED, /* the controller's own prolog is done: its nodes may hear of it */
    EVENT_JOB_READY,    /* all nodes are prepared: CONFIGURING ends */
    EVENT_JOB_SIGNAL,   /* signal, batch_only, full: to be passed on to its nodes */
    EVENT_JOB_ENDING,   /* parts with a node are to be revoked (cancel, time out, requeue, …) */
    EVENT_JOB_ENDED,    /* has its end state, with start_us, end_us, usage; comes once an attempt */
    EVENT_JOB_RELEASED, /* node: this node of the job is free again */
    EVENT_JOB_CLEAN,    /* the last node was released: the job is over on all nodes */
    EVENT_JOB_REQUEUED, /* pending again; end_state, start_us, end_us of the attempt that ended */
    EVENT_JOB_CHANGED,  /* updated; `shape_changed` when the planner must look at it anew */
    EVENT_JOB_SUSPENDED,
    EVENT_JOB_RESUMED,
    EVENT_JOB_PREEMPTED,   /* makes room for another; what becomes of it follows */
    EVENT_JOB_TIME,        /* mail: so much of its time limit is over, as its MailType names it */
    EVENT_TASKS_CANCELLED, /* tasks (text) of the array job were cancelled without a record */
    EVENT_TASK_SPLIT,      /* job is a task that got its own record; array_id, task */
    EVENT_JOB_FORGOTTEN,   /* job_id only */
    EVENT_PAYLOAD_DROPPED, /* digest: no job refers to it any more */

    EVENT_NODE_UP,      /* node can be used, or said hello again */
    EVENT_NODE_DOWN,    /* node cannot be used: down, drained, failed */
    EVENT_NODE_REBOOT,  /* node is to be told to start anew */
    EVENT_NODE_CHANGED, /* amounts, features, weight, reason */
    EVENT_PARTITION,    /* partitions changed; node sets too: changed */
    EVENT_RESERVATION,  /* reservations changed, began or ended */
    EVENT_RESV_CHANGED, /* text: this reservation is new, or another; for the journal */
    EVENT_RESV_GONE,    /* text: this reservation is no more; for the journal */
    EVENT_CONFIG,       /* there is a new configuration: changed */
    EVENT_PRIORITY,     /* usage decayed: orders and limits may be others */
    EVENT_LEADER,       /* epoch and leader are new */
    EVENT_CONTROLLERS,  /* the list of controllers is new */
    EVENT_TRIGGER,      /* job_id: this trigger is due (trigger.h) */
    EVENT_TRIGGER_RUN, /* job_id, text: who proposed it runs the program of this trigger with that argument */
    EVENT_STEPS,    /* steps: parts of steps ended; for the journal */
    EVENT_DIVERGED, /* CmdCheck named another digest */
};

/*
 * PARTITION, CONFIG: what is not as it was. What is not named here is, with all its numbers. NODE_UP, NODE_DOWN,
 * NODE_CHANGED: CHANGED_NODES when the node may have other amounts than before.
 */
enum changed {
    CHANGED_ACCOUNTS = 1,   /* limits, shares, QOS; who counts which job */
    CHANGED_PARTITIONS = 2, /* what some of them say, or which nodes they have */
    CHANGED_NODES = 4,      /* what some of them have */
    CHANGED_ALL = 8,        /* numbers of partitions, TRES, or how jobs are placed */
    CHANGED_NUMBERS = 16,   /* those of nodes: some came or went, or stand elsewhere */
};

struct event {
    enum event_kind kind;
    enum err_code code;
    uint32_t job_id, attempt;
    uint32_t array_id, task; /* 0 and NO_TASK when it is about no task */
    const struct job *job;
    const struct node *node;
    uint32_t signal;
    uint32_t mail; /* TIME */
    bool batch_only, full, shape_changed;
    bool dep_invalid; /* CHANGED: what it waits for can never be, since now */
    bool array_first; /* STARTED: no task of its array did before */
    bool array_last;  /* CLEAN: nothing of its array is left that could run */
    JobState end_state;
    int64_t start_us, end_us;
    unsigned changed;   /* enum changed */
    const Usage *usage; /* of the command, or NULL */
    const char *text;   /* may be NULL */
    const uint8_t *digest;
    const CmdSteps *steps; /* of the command, or NULL */
};

struct events {
    VEC(struct event) list;
    struct arena arena;
};

void events_init(struct events *events);
void events_done(struct events *events);
void events_clear(struct events *events);

#define events_each(event, events) vec_each (const struct event, event, &(events)->list)

/* "job.started": the stable name that logs and the journal use. */
const char *event_name(enum event_kind kind);

#endif
