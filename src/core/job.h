/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.h - a job as the cluster keeps it
 *
 * Others read these structs and never write them; only core_apply() changes them. A `struct job *`
 * is valid until the job is forgotten (EVENT_JOB_FORGOTTEN). The spec stays packed bytes; here is
 * only what the planner, filters and default columns read. Nothing here is serialised: a snapshot
 * holds SnapshotJob, from which a restore makes these again.
 *
 * (1) An array is one record (job_is_meta) that stands for all its tasks that have none of their
 *     own. A task gets a record when it starts or when something is said about it alone; the last
 *     one takes the array's record and id.
 * (2) run is NULL before the first start and after a requeue. A part with `node` set still holds
 *     its resources; it is NULL once that node has said released.
 * (3) A part that has left was given up or lost while the job went on. It keeps its place, so that
 *     numbers of parts stay what they are for the whole attempt, but is shown to nobody.
 * (4) The name of a part is its node's word while it has one, and then a word of its own.
 */
#ifndef CORE_JOB_H
#define CORE_JOB_H

#include "base/bitset.h"
#include "base/err.h"
#include "base/slots.h"
#include "base/str.h"
#include "base/util.h"
#include "proto/job.pb-c.h"

struct node;
struct shape;
struct billing_group;

/* Who a job belongs to; shared by all jobs with the same answer. */
struct owner {
    uint32_t uid, gid;
    const char *user, *group; /* never NULL */
    const uint32_t *gids;
    size_t gid_count;
};

/* How far a job is. It follows from state and flags. */
enum job_phase {
    PHASE_PENDING,
    PHASE_CONFIGURING, /* started, nodes are being prepared */
    PHASE_RUNNING,
    PHASE_SUSPENDED,
    PHASE_COMPLETING, /* has its end state; some node has not said released */
    PHASE_REQUEUING,  /* becomes pending again when all nodes have said released */
    PHASE_ENDED,
};

struct part_gres {
    const char *name, *type; /* type may be NULL */
    uint64_t count;
    struct bitset index; /* which devices; no words when the resource has none */
};

/* What a job holds on one node. */
struct job_part {
    const char *name;  /* of the node; (4) */
    struct node *node; /* (2) */
    bool left;         /* (3) */
    bool spare;        /* held in reserve; spare_nodes.c */
    uint32_t cpus, tasks;
    uint64_t mem_mb;
    struct bitset cpu_ids;
    struct part_gres *gres;
    size_t gres_count;
};

/* Of a program of the site that the leader runs for an attempt; site_hooks.c. */
enum run_site { SITE_NONE, SITE_DUE, SITE_DONE };

struct job_run {
    int64_t start_us;
    int64_t suspend_us;         /* when it was suspended last; 0 never */
    int64_t suspended_total_us; /* of finished suspensions */
    int64_t skipped_us;         /* with the state's: not counted by the controller's own limit */
    const char *partition;
    const char *reservation; /* that it runs in, or NULL */
    uint32_t exit_status;
    bool has_exit;                /* the script's end was reported */
    bool has_billing;             /* its partition had weights: */
    uint64_t billing;             /* what it is billed, as of its start; as in Slurm */
    bool whole_nodes;             /* nobody else may use its nodes */
    bool lent;                    /* another has its CPUs while it is suspended; or it has none */
    bool looked_at;               /* while lent: it may run again; suspended_for.c */
    bool gang;                    /* suspended until its turn on CPUs that it shares; gang.c */
    bool shared;                  /* its CPUs may be shared with jobs like it */
    enum run_site prolog, epilog; /* the controller's own */
    enum run_site boot;           /* its nodes are started anew; reboot.c */
    uint32_t licence;             /* where one of several was asked for: which it has */
    unsigned count, held;         /* parts; parts with a node */
    uint64_t parts_hash;          /* of a wide one: the sum over its parts; digest.c (1) */
    struct arena *pool;           /* of a wide one, or NULL: what its parts point to */
    struct job_part parts[];
};

/* Tasks that have no record of their own are WAITING; (1). */
enum task_bits { TASK_WAITING, TASK_ACTIVE, TASK_OK, TASK_FAILED };

struct task_run {
    uint32_t first, step, count; /* task ids first, first + step, … */
    uint32_t base;               /* number of the first one in the array */
};

struct array {
    uint32_t id;
    uint32_t count;                       /* of tasks */
    uint32_t max_running;                 /* 0: as many as fit */
    uint32_t waiting, active, ok, failed; /* of count, by task_bits */
    uint32_t running;                     /* task records with an allocation that has not ended */
    uint32_t unstarted;                   /* active tasks that have not started */
    uint32_t records;                     /* task records besides the one with the array's id */
    uint32_t first_waiting;               /* no task number below this waits */
    int64_t last_start_us;                /* of any of its tasks */
    struct slots record_ids;              /* their ids, by task */
    size_t run_count;
    uint64_t bits_hash; /* sum over the tasks, for the digest */
    uint8_t *bits;      /* two a task */
    struct task_run runs[];
};

struct deps;

/* Script and environment are in the payload store; the state counts who refers to them. */
enum { PAYLOAD_DIGEST_BYTES = 32 };
struct payload {
    uint32_t refs, hash;
    uint8_t digest[PAYLOAD_DIGEST_BYTES];
};

/* A packed message, shared by an array and its tasks. */
struct packed {
    uint32_t refs, len;
    uint8_t data[];
};

/* What few jobs have. */
struct job_more {
    char *reason_text, *admin_comment, *system_comment, *failed_node, *planned_nodes;
    int64_t deadline_us;
    int64_t preempt_us;
    int64_t preempt_end_us; /* was told to go and has until then; 0 was not */
    bool preempt_requeue;   /* and what happens then */
    uint32_t preempted_by;  /* for which job */
    uint32_t het_job_id, het_offset, het_count;
    uint32_t time_min_s;
    int32_t site_factor;      /* that an administrator added to its priority */
    char *avoid_nodes;        /* that failed it; backoff.c */
    int64_t avoid_us;         /* until then */
    int64_t backoff_us;       /* it may not start before */
    uint16_t node_fails;      /* in a row */
    bool avoids;              /* its shape is without these nodes */
    uint32_t unbound_attempt; /* became requeueable while it ran: its nodes do not know */
    uint16_t mail_times; /* MailType: the parts of its time limit that somebody wants to hear of */
    uint16_t mail_sent;  /* of those, told in this attempt */
    uint32_t due_at;     /* as of the job; of what else is due while it runs */
};

enum { MAIL_TIMES = MAIL_TIME50 | MAIL_TIME80 | MAIL_TIME90 | MAIL_TIME100 };

enum { JOB_ASKED_NOT, JOB_ASKED_NO, JOB_ASKED_YES };

struct job {
    uint32_t id;
    uint32_t flags;  /* JobFlag */
    uint8_t state;   /* JobState */
    uint8_t hold;    /* 0 none, 1 by its user, 2 by an administrator */
    uint16_t reason; /* why it ended or was held; core_job_reason() says why it waits */
    uint16_t restarts;
    bool is_task : 1; /* array_task_id is its own; (1) */
    bool batch : 1, no_kill : 1;
    bool beside : 1;                              /* holds nothing of its nodes; no_allocate.c */
    bool direct_priority : 1;                     /* set by hand: does not age */
    bool touched : 1;                             /* its record hash is to be brought up to date */
    uint8_t requeue : 2, kill_on_invalid_dep : 2; /* as asked: JOB_ASKED_* */
    uint8_t timer_kind : 2;                       /* which heap due_at is of; timers.c */
    uint32_t attempt;  /* of the current or last start; 0 before the first */
    uint64_t changed;  /* index of the last command that changed it; not kept over a restart */
    uint32_t priority; /* what the order goes by; core shows 0 while held */
    int32_t nice;
    uint32_t array_task_id;
    uint32_t name_next,
        name_prev;        /* chain of the unended jobs with its (uid, name) hash; job_names.c */
    uint32_t due_at;      /* place in a heap of due times + 1; 0: nothing is due */
    int64_t time_limit_s; /* -1 unlimited; what holds now, with the partition's default filled in */
    int64_t submit_us, begin_us, planned_start_us;
    int64_t eligible_us; /* since when only resources and policy keep it waiting; 0: others do */
    int64_t accrue_us;   /* since when its age counts; 0: not yet */
    int64_t end_us;      /* 0 while it has not ended */
    const struct owner *owner;
    struct shape *shape;
    const char *account, *qos; /* NULL when there is none */
    const struct billing_group
        *billing_group;            /* association and QOS, as of all that bind like it */
    struct packed *spec;           /* JobSpec */
    const struct payload *payload; /* NULL when the job has none */
    struct job_run *run;
    struct array *array; /* of the array it belongs to, or NULL */
    struct deps *deps;   /* what it still waits for, or NULL */
    struct job_more *more;
    uint64_t hash; /* what the digest holds for it */
};

enum job_phase job_phase(const struct job *job);
bool job_is_meta(const struct job *job);         /* (1) */
bool job_has_ended(const struct job *job);       /* has its end state, released or not */
bool job_holds(const struct job *job);           /* some node has not said released */
unsigned run_nodes(const struct job_run *run);   /* parts that have not left */
unsigned run_manager(const struct job_run *run); /* the part whose node manages the steps */
/* Pending, and nothing but resources and policy keep it from starting. */
static inline bool job_is_eligible(const struct job *job)
{
    return job->state == JOB_PENDING && !(job->flags & JOB_FLAG_COMPLETING) && job->eligible_us;
}

/* The job's name, inside the packed spec: valid until the job changes. */
struct span job_name(const struct job *job);
/* A text or bytes field of the packed spec by its number; false when absent. */
bool job_spec_field(const struct job *job, unsigned field, struct span *out);
/* The whole spec; free with job_spec__free_unpacked(spec, NULL). */
JobSpec *job_spec_unpack(const struct job *job);

/* It may not start before: as it was asked for, or because nodes failed it; backoff.c. */
int64_t job_begin_us(const struct job *job);

/* When it ends at the latest if it started at `start_us`; INT64_MAX without a limit. */
int64_t job_end_by(const struct job *job, int64_t start_us);

/* 12, 12_7, or 12_[3-99%5] for an array's record, as squeue shows it. */
void job_format_id(const struct job *job, struct str *out);

/* The tasks of an array. */
uint32_t array_task_id(const struct array *array, uint32_t number);
bool array_find(const struct array *array, uint32_t task_id, uint32_t *number);
enum task_bits array_task(const struct array *array, uint32_t number);
/* The first waiting task at or after `number`; count when there is none. */
uint32_t array_next_waiting(const struct array *array, uint32_t number);
/* How many more may run now. */
uint32_t array_room(const struct array *array);
/* "3-99%5" of the tasks that wait (without the % when max_running is 0). */
void array_format(const struct array *array, struct str *out);
/* "1-5,9" within the array's tasks, by number; tasks that it does not have are an error. */
int array_select(const struct array *array, const char *text, size_t len, struct bitset *set,
                 struct err *err);
/* As array_select() reads it. */
void array_format_set(const struct array *array, const struct bitset *set, struct str *out);

#endif
