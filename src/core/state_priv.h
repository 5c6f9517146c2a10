/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state_priv.h - how core keeps the cluster
 *
 * (1) Every change of a record goes with a touch (job_touch, node_touch, …). At the end of the
 *     command settle() brings the record's hash and the digest up to date.
 * (2) Indexes, heaps and chains hold nothing that cannot be rebuilt from the records.
 * (3) What follows from an end (dependencies, arrays) is queued and worked off by deps_settle(),
 *     so that a chain of any length needs no stack, and any number of jobs no long command.
 */
#ifndef CORE_STATE_PRIV_H
#define CORE_STATE_PRIV_H

#include "base/arena.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/paged.h"
#include "base/slots.h"
#include "base/vec.h"
#include "core/accounts_priv.h"
#include "core/core.h"
#include "core/intern.h"
#include "core/sections.h"
#include "core/shape.h"
#include "schema/reasons.h"

#define US_PER_S INT64_C(1000000)
#define NEVER    INT64_MAX

enum { JOBS_PER_PAGE = 512 };

struct job_page {
    struct job *jobs[JOBS_PER_PAGE];
    uint32_t used;
};

struct job_index {
    struct job_page **pages; /* of ids first * JOBS_PER_PAGE and up; some are NULL */
    size_t first, count, cap;
};

/*
 * When something is due: each heap has times that no configuration changes, and what it has to add
 * to them is looked up when somebody asks. A job is in one of the first and perhaps in the last.
 */
enum timer_kind {
    TIMER_FIXED,     /* nothing is added */
    TIMER_LIMIT,     /* the end of a time limit */
    TIMER_LIMIT_OWN, /* the same with the OverTimeLimit of its partition */
    TIMER_FORGET,    /* the end of a job */
    TIMER_BESIDES,   /* of a running job: what is due besides its limit; nothing is added */
    TIMER_HEAPS,
};
struct timer {
    int64_t us;
    struct job *job;
};
struct timer_heap {
    PAGED(struct timer);
};

struct request {
    int64_t time_us;
    uint32_t uid, job_id, code;
    uint8_t id[16];
    bool more; /* not all of its commands have come: it has got to job_id */
};

/* Jobs that were forgotten lately, for lists of what changed. Not kept over a restart. */
enum { CHANGES_GONE = 16384 };
struct changes {
    uint64_t since; /* all that were forgotten after this index are here */
    size_t first, count;
    struct forgotten {
        uint64_t index;
        uint32_t id;
    } * gone; /* a ring of CHANGES_GONE, made when first needed */
};

struct requests {
    struct request **pages; /* a ring, oldest first; NULL where there is none */
    size_t head, count;
    struct slots slots;          /* by (uid, id): place in the ring + 1 */
    size_t shift_from, shift_to; /* of these, counted from the oldest, the time is to be moved, */
    int64_t shift_us;            /* by so much */
};

/* Ids in order; see dep_waiters.c. */
struct wait_list {
    uint32_t *items; /* from `from` on */
    size_t from, len, cap;
    uint64_t sum; /* of their hashes */
};

/* Jobs that wait for something. */
struct dep_waiters {
    uint64_t key;
    uint32_t number; /* in its map */
    struct wait_list ids;
    struct dep_notice *notice, *last; /* that others have not been told yet who waited before */
    struct wait_list runs;            /* of a singleton; see job_names.c */
    uint32_t covers;
};

/* By key; grows a little at a time, as slots do. */
struct wait_map {
    struct slots slots;               /* hash of the key → number */
    PAGED(struct dep_waiters *) made; /* by number - 1; a free one has that of the next free one */
    uint32_t free;
};

struct owner_record {
    struct interned head;
    struct owner owner;
    struct span key; /* packed JobOwner */
};

struct node_key {
    ProtobufCBinaryData key;
    uint64_t hash;
};

/* Nodes of one section of the configuration; config_nodes.c. */
struct node_section {
    uint64_t hash;
    uint32_t first, count;
};

struct state {
    uint64_t index, epoch, journal_acked, config_hash;
    struct changes changes;
    int64_t time_us;
    uint32_t next_job_id;
    uint32_t level, level_pin; /* 0: as before there were any; level.h */
    bool has_cluster_id;
    uint8_t cluster_id[16];
    char *leader, *leader_address;
    Config *config;
    struct section_hashes section_hashes; /* of the configuration */
    CmdControllers *controllers;          /* NULL: one alone */

    struct job_index jobs;
    size_t records;
    size_t by_phase[PHASE_ENDED + 1]; /* tasks, each waiting one counted */
    struct slots names;               /* the first of each chain of name_next */
    size_t name_count;
    uint64_t name_changes; /* of any chain */
    struct name_passed {
        uint64_t hash, changes;
        uint32_t array_id, upto;
    } passed; /* jobs of that chain below `upto` are of that array; see job_names.c */
    struct timer_heap timers[TIMER_HEAPS];

    VEC(struct node *) nodes;
    struct map node_names;
    VEC(struct node_section) sections; /* of the configuration; none: they are not known */
    uint64_t sections_common;          /* of what they have in common */
    VEC(struct partition *) partitions;
    VEC(struct reservation *) reservations;
    VEC(struct licence) licences;
    struct map keys; /* node name → struct node_key */
    struct intern owners, shapes, words, payloads, billing_group_keys;
    VEC(struct billing_group_record *) billing_groups; /* in no order that means anything */
    struct map user_billing_groups;                    /* user → the first of his */
    VEC(struct shape *) old_shapes; /* of jobs that changed; who reads the events may know them */
    struct requests requests;

    struct wait_map dep_waiters; /* dep_waiters_key() of a job or array → struct dep_waiters */
    struct wait_map singletons;  /* (uid, name) hash → struct dep_waiters */
    struct map resv_jobs;        /* ids of pending jobs that ask for a reservation */
    VEC(uint32_t) dep_changed;   /* jobs that started or ended and may be waited for; (3) */
    struct {
        struct dep_notice *first, *last;
        size_t count;
    } dep_pending; /* notice that not all have been told; see dep_notify.c */
    unsigned
        notify_most; /* for tests: one command tells no more than these; 0: as dep_notify.c says */
    uint64_t generation;                   /* of nodes and partitions, for needs */
    struct topology_reach *topology_reach; /* which nodes are below one switch; topology_reach.c */
    struct accounts *accounts;
    struct {
        uint32_t job_id;
        unsigned part;
    } released;          /* the last node that a job gave back: where to look for the next */
    int64_t skipped_us;  /* of all time so far: what did not pass for running jobs; timers.c (4) */
    int64_t priority_us; /* when usage decayed and shares were worked out last */
    uint64_t priority_turn; /* grows with it */
    bool restoring;         /* counting jobs does not touch usage: it is in the snapshot */
    int64_t next_reservation_us;
    int64_t next_reboot_us;          /* when a node should be back; see reboot.c */
    VEC(struct job *) suspended_for; /* suspended for others, by id; see suspended_for.c */
    struct map
        suspended_for_jobs; /* job id → struct suspended_for_list: those that are suspended for it */
    VEC(uint32_t) suspended_for_changed; /* of them, those that may run again */
    size_t site_due;                     /* programs that the leader has to run; see site_hooks.c */
    VEC(struct job *) gang; /* suspended until their turn, who waited longest first; see gang.c */

    /* For tests: jobs that hold nodes, nodes and jobs that were looked at because they are there. */
    uint64_t looked, looked_nodes, walked;
    uint64_t digest;
    VEC(struct job *) touched; /* (1) */
    VEC(struct node *) touched_nodes;
    struct arena scratch; /* of one command */
};

/* state.c */
struct job *job_at(const struct state *state, uint32_t id);
struct node *node_at(const struct state *state, const char *name);
struct partition *partition_at(const struct state *state, const char *name);
void job_touch(struct state *state, struct job *job);
void node_touch(struct state *state, struct node *node);
void settle(struct state *state); /* (1) */
void index_put(struct job_index *index, struct job *job);
void index_del(struct job_index *index, uint32_t id);

/* job_names.c */
void job_name_link(struct state *state, struct job *job);
void job_name_unlink(struct state *state, struct job *job);
/* It has got its nodes, or is about to lose them. */
void job_name_runs(struct state *state, const struct job *job, bool runs);
uint64_t job_name_hash(uint32_t uid, struct span name);
/* The next of the unended jobs that may have this owner and name (compare!), by id; begin with NULL. */
struct job *job_name_next(const struct state *state, uint64_t hash, const struct job *after);
bool job_name_check(const struct state *state, const struct job *job);

/* records.c: the life of records, not of jobs */
const struct owner *owner_take(struct state *state, const JobOwner *msg);
const struct owner *owner_share(const struct owner *owner);
void owner_drop(struct state *state, const struct owner *owner);
const struct payload *payload_take(struct state *state, const uint8_t *digest);
struct packed *packed_new(const void *bytes, size_t len);
void packed_drop(struct packed *packed);
struct job_more *job_more(struct job *job);
void job_more_free(struct job_more *more);
struct job_more *job_more_copy(const struct job_more *more);
/* One reference less; the last one emits that the payload is not needed any more. */
void payload_drop(struct state *state, const struct payload *payload, struct events *out);
/* The reason in other words than those of its number; NULL: in those. */
void job_say_why(struct job *job, const char *text);
void job_set_text(char **text, const char *to);
/* Everything a record must be found by: call when all of it is set. */
void job_link(struct state *state, struct job *job);
void job_forget(struct state *state, struct job *job, struct events *out);
void job_free(struct state *state, struct job *job, struct events *out);
void run_free(struct state *state, struct job_run *run);
/* Fields that follow from the spec. */
void job_take_spec(struct state *state, struct job *job, const JobSpec *spec,
                   struct packed *packed);
/* Adds to or takes from by_phase what the record stands for; around every change of it. */
void job_count(struct state *state, const struct job *job, int sign);
uint32_t job_first_priority(const JobSpec *spec, uint32_t id);
static inline bool ids_left(const struct state *state)
{
    return state->next_job_id <= LIMIT_JOB_ID;
}
/* Of its own, or as a component of a heterogeneous job whose first one has it. */
bool job_has_script(const struct state *state, const struct job *job);
bool job_may_requeue(const struct state *state, const struct job *job);
/* Its present attempt may be requeued from now on. Its nodes were told otherwise. */
void job_unbind(struct state *state, struct job *job);

/* events */
struct event *emit(struct events *out, enum event_kind kind);
struct event *emit_job(struct events *out, enum event_kind kind, const struct job *job);
void emit_node(struct events *out, enum event_kind kind, const struct node *node);
struct event *reject(struct events *out, uint32_t job_id, uint32_t task, enum err_code code);

/* job_states.c: the only place that changes a job's phase */
enum job_cause {
    JOB_ON_START,      /* needs nothing more: runs */
    JOB_ON_START_SLOW, /* nodes must be prepared first */
    JOB_ON_READY,
    JOB_ON_EXIT, /* ended by itself or by cancel, limit, failure */
    JOB_ON_REQUEUE,
    JOB_ON_RELEASED, /* the last node said so */
    JOB_ON_SUSPEND,
    JOB_ON_RESUME,
};
/* May the cause happen now? */
bool job_can(const struct job *job, enum job_cause cause);
/* Moves the job; for JOB_ON_EXIT end_state is what it ends as. False when the table has no edge. */
bool job_move(struct state *state, struct job *job, enum job_cause cause, JobState end_state);

/* job_life.c */
void job_refresh(struct state *state, struct job *job, struct events *out); /* eligible or not */
/* Of several components only this one; false when it cannot end. */
bool job_end_alone(struct state *state, struct job *job, JobState end_state, unsigned reason,
                   int64_t end_us, const Usage *usage, struct events *out);
void job_end(struct state *state, struct job *job, JobState end_state, unsigned reason,
             int64_t end_us, const Usage *usage, struct events *out);
/* Back into the queue; `kill`: what runs is to be ended. */
void job_requeue(struct state *state, struct job *job, JobState ended_as, unsigned hold,
                 uint32_t flags, unsigned reason, int64_t end_us, struct events *out);
/* This node has nothing of the job any more. */
void job_release(struct state *state, struct job *job, struct job_part *part, struct events *out);
void job_settle_release(struct state *state, struct job *job, struct events *out);
/* What a job that lost a node does: it goes on without it, is requeued, or ends. */
enum job_lost {
    JOB_RUNS_NOT,  /* nothing of it is alive there, or it stands still for good */
    JOB_NEVER_RAN, /* and nothing of it ever was */
    JOB_MAY_RUN,   /* it may be alive: it must not run elsewhere */
};
void job_lost_node(struct state *state, struct job *job, struct job_part *part, enum job_lost how,
                   struct events *out);

/* preempt.c */
void preempt_out(struct state *state, struct job *victim, bool requeue, int64_t end_us,
                 struct events *out);
/* A job that lends its CPUs runs again; false when they are in use. */
bool preempt_resume(struct state *state, struct job *job, struct events *out);
bool preempt_could_resume(const struct state *state, const struct job *job);
/* The job that it was suspended for is to start still. */
bool preempt_is_waited_for(const struct state *state, const struct job *victim);

/* suspended_for.c */
void suspended_for_add(struct state *state, struct job *job);
void suspended_for_drop(struct state *state, const struct job *job); /* if it is there */
/* Another job is the one that it was preempted for; 0: none. */
void suspended_for_await(struct state *state, struct job *job, uint32_t by_id);
/* What was touched may let some run again. */
void suspended_for_note(struct state *state);
/* They do, if they can; `all` are looked at, or only those. */
void suspended_for_settle(struct state *state, bool all, struct events *out);
/* It need not be looked at. For core_check(). */
bool suspended_for_is_right(const struct state *state, const struct job *job);
void suspended_for_done(struct state *state);

/* resize.c */
/* The part is not the job's any more; its node is to be told, or is lost. */
void job_leave(struct state *state, struct job *job, struct job_part *part);
/* Can the job go on without it? */
bool job_can_spare(const struct job *job, const struct job_part *part);
/* It was asked to, or has a spare. */
bool job_goes_on_without(const struct job *job, const struct job_part *part);
/* Is this update of a running job about its nodes? */
bool job_resize_asked(const struct job *job, const JobSpec *change);
enum err_code job_resize(struct state *state, struct job *job, const JobSpec *change, bool try,
                         struct err *err);

/* timers.c */
/* After this long past its limit the controller ends a job that its node did not. */
enum { LIMIT_GRACE_S = 60 };
/* The first of all timers, and when it is due; NULL when nothing ever is. */
const struct timer *timers_first(const struct state *state, int64_t *us);
/* When the job's deadline, the next mail about its time limit, or its preemption is due; NEVER: not. */
int64_t timers_deadline(const struct job *job, bool pending);
int64_t timers_mail_due(const struct job *job);
int64_t timers_preempt(const struct job *job);
/* Emits the mail that is due. */
void timers_mail(struct state *state, struct job *job, struct events *out);
/* How long a node may be silent before it is given up with its jobs. */
int64_t timers_silence_s(const struct state *state);
void timers_update(struct state *state, struct job *job);
void timers_remove(struct state *state, struct job *job);
void timers_restored(struct state *state); /* all records are there */
/* What partitions say of it, as one number; and when it has become another. */
uint64_t timers_partitions(const struct state *state);
void timers_follow(struct state *state, uint64_t before);
int timers_check(const struct state *state, struct err *err);
size_t timers_count(const struct state *state);
void time_skipped(struct state *state, int64_t us, bool new_leader);

/* node_jobs.c */
typedef void node_jobs_fn(struct state *state, struct job *job, void *ctx);
/* Each job that holds nodes, once; `each` changes none of that. */
void node_jobs_each(struct state *state, node_jobs_fn *each, void *ctx);

/* array.c */
struct array *array_parse(const char *text, uint32_t max_size, uint32_t max_tasks, struct err *err);
struct array *array_copy(const struct array *array);
void array_free(struct array *array);
void array_set(struct array *array, uint32_t number, enum task_bits bits);
/* Gives a waiting task its own record (or the array's, for the last one). */
struct job *array_split(struct state *state, struct job *meta, uint32_t number, struct events *out);
/* Records of single tasks, besides the one with the array's id. */
void array_index_put(struct array *array, const struct job *job);
void array_index_del(struct array *array, const struct job *job);
struct job *array_record(const struct state *state, const struct array *array, uint32_t task_id);

/* deps.c, dep_waiters.c, dep_notify.c */
int deps_parse(const struct state *state, const struct job *self, const char *text,
               struct deps **out, struct err *err);
struct deps *deps_copy(const struct deps *deps);
void deps_free(struct deps *deps);
void deps_register(struct state *state, struct job *job);
void deps_unregister(struct state *state, struct job *job);
/* Something happened to the job that others may wait for. */
void deps_notify(struct state *state, const struct job *job);
/* Looks at the job's own dependencies again. */
void deps_review(struct state *state, struct job *job, struct events *out);
/* The job is new, or its dependencies are: tasks whose twins have ended go on by themselves. */
void deps_ask_twins(struct state *state, const struct job *job);
/* Something is about to be done with the job: it is told what it has not been told yet. */
void deps_catch_up(struct state *state, struct job *job, struct events *out);
/* A task has got its record: it has been told what the array's record has been told. */
void deps_follow(struct state *state, struct job *task, const struct job *meta);
/* Others have not been told yet what has become of the job. */
bool deps_notify_pending(const struct state *state, const struct job *job);
/* Tells what is new, some of it: core_next_due() asks for a CmdTime at once when more is left. */
void deps_settle(struct state *state, bool time, struct events *out);
void deps_done(struct state *state);
int deps_check(const struct state *state, uint64_t *digest, struct err *err);
/* It is to have another name, or runs no more: who waits to be alone with its name may be so. */
void deps_notify_name(struct state *state, const struct job *job);
/* Its own singletons, before and after that. */
void deps_rename(struct state *state, struct job *job, bool before);
bool deps_never(const struct deps *deps);
int64_t deps_due(const struct state *state, const struct job *job);
void deps_format(const struct deps *deps, struct str *out);
uint64_t deps_hash(const struct deps *deps);

/* alloc.c, alloc_check.c: what jobs hold on nodes. */
struct alloc_parts { /* that a start names; as long as the command */
    struct alloc_part {
        const NodeAlloc *alloc;
        struct node *node; /* NULL: there is none of that name */
    } * of;
    size_t count;
};
int alloc_check(struct state *state, const struct job *job, const JobStart *start,
                struct alloc_parts *parts, struct err *err);
void alloc_undo(struct state *state, struct job *job);
void alloc_take(struct state *state, struct job *job, const JobStart *start,
                const struct alloc_parts *parts);
/* start.c: it has what it needs. */
void job_begin(struct state *state, struct job *job, struct events *out);
/* no_allocate.c */
int no_allocate_admit(const struct state *state, const JobSpec *spec, struct err *err);
void no_allocate_start(struct state *state, struct job *job, const JobSpec *spec,
                       struct events *out);
void alloc_give(struct state *state, struct job *job, struct job_part *part);
void alloc_hold(struct state *state, struct job *job, struct job_part *part);
/* The CPUs of a suspended job may be used by others; and no more, if all are free. */
void alloc_lend(struct state *state, struct job *job);
bool alloc_recall(struct state *state, struct job *job);
bool alloc_could_recall(const struct state *state, const struct job *job);
/* spare_nodes.c */
int shape_read_spare_nodes(struct shape *shape, const JobSpec *spec, struct err *err);
void spare_nodes_mark(struct job *job); /* it starts */
/* Would the job have as many nodes as before without that part? */
bool spare_nodes_has(const struct job *job, const struct job_part *lost);
void spare_nodes_take(struct state *state, struct job *job, struct job_part *lost);

/* site_hooks.c */
void site_hooks_begin(struct state *state, struct job *job);    /* before its nodes hear of it */
bool site_hooks_prepared(struct state *state, struct job *job); /* false: that was not awaited */
void site_hooks_end(struct state *state, struct job *job);
bool site_hooks_cleaned(struct state *state, struct job *job);
void site_hooks_restored(struct state *state, const struct job *job);

/* reboot.c */
/* False: nothing to do, or it is under way. */
bool reboot_ask(struct state *state, struct node *node, bool asap, unsigned next);
void reboot_idle(struct state *state, struct node *node, struct events *out); /* perhaps it is */
void reboot_forget(struct state *state, struct node *node, struct events *out);
void reboot_back(struct state *state, struct node *node,
                 struct events *out); /* from another boot */
bool reboot_was_late(const struct node *node);
void reboot_begins(struct state *state, struct job *job, struct events *out);
void reboot_ends(struct job *job);
bool reboot_is_awaited(const struct job *job);
void reboots_next(struct state *state);
void reboots_due(struct state *state, struct events *out);
void reboots_skipped(struct state *state, int64_t us);

/* gang.c */
void gang_add(struct state *state, struct job *job);
void gang_drop(struct state *state, const struct job *job);
void gang_runs(struct state *state, const struct job *job, struct events *out); /* from now on */
/* Whose turn it is, after a command; `freed`: it may have ended jobs. */
void gang_settle(struct state *state, int64_t before_us, bool freed, struct events *out);
int64_t gang_next_us(const struct state *state);

/* Adds what one part of a job uses; its cores; its shares of devices. */
void node_use_add(struct node *node, const struct job_run *run, const struct job_part *part);
void node_use_cores(struct node *node, const struct job_run *run, const struct job_part *part);
void node_use_shares(struct node *node, struct node_gres *gres, const struct part_gres *part,
                     bool more);
void node_use_recount(struct node *node); /* after its totals were set anew */
void licences_count(struct state *state, const struct job *job, int sign);
/* licences.c: which of "a|b" a job gets: the one that is named, or the first that is free */
bool licences_choose(const struct state *state, const struct shape *shape,
                     const Allocation *allocation, uint32_t *choice);

/* admit.c */
struct admitted {
    struct shape *known; /* the one in the table, or */
    struct shape *shape; /* a new one */
    struct array *array; /* NULL when not an array */
    struct deps *deps;   /* NULL when there are none */
    int64_t time_limit_s;
    const char *account, *qos; /* those that hold by default too; NULL: none */
};
int admit(const struct state *state, const JobOwner *owner, const JobSpec *spec,
          const struct job *self, int64_t now_us, struct admitted *out, struct err *err);
/* records.c */
void admitted_done(struct admitted *admitted);
/* admit_shape.c: what it asks for, of whom it is. */
int features_known(const struct state *state, const struct features *features, struct err *err);
int admit_check_shape(const struct state *state, struct shape *shape, const JobOwner *owner,
                      const JobSpec *spec, struct err *err);

/* backoff.c: a node failed the job, which is requeued, and does without it for a while */
void job_requeue_without(struct state *state, struct job *job, const char *node,
                         struct events *out);
/* The same without the requeue; true: too many have failed it. */
bool backoff_count(struct state *state, struct job *job, const char *node);
void backoff_share(const struct job *job, struct job *other); /* another component */
/* It is pending again, or it is due that it may use them again. */
void backoff_pending(struct state *state, struct job *job);
void backoff_forget(struct job *job, bool nodes_too);
int64_t backoff_due(const struct job *job);
/* What its shape excludes besides. */
void backoff_exclude(const struct job_more *more, JobSpec *spec, struct arena *arena);

/* shape.c */
struct shape *shape_find(const struct state *state, const JobSpec *spec, struct arena *arena);
/*
 * topology_reach.c: are as many of the need's nodes, and all that are named, below one switch or in blocks? `amounts` are
 * what each of them has room for: of units, then of shape->also.
 */
enum { NEED_AMOUNT = INT32_MAX }; /* the bits of an amount that say how much */
bool topology_reach_has(const struct state *state, const struct shape *shape,
                        const struct need *need, const struct bitset *named,
                        uint32_t *const *amounts);
struct topology_reach *topology_reach_new(void);
void topology_reach_free(struct topology_reach *reach);
/* One more reference to the shape of an admitted job, putting it into the table if it is new. */
struct shape *shape_take(struct state *state, struct admitted *admitted);
void shape_drop(struct state *state, struct shape *shape);
/* The same at the next command: until then the planner may still look at it. */
void shape_retire(struct state *state, struct shape *shape);
void shapes_settle(struct state *state);
void needs_free(struct shape *shape);
/*
 * Works out the needs of a shape that is `from` with more nodes excluded, if that takes no look at all
 * nodes; else nothing is done.
 */
void shape_needs_without(const struct state *state, struct shape *shape, const struct shape *from);

/* shape_tres.c: into a shape whose arena is there; licences after the number of tasks */
/* fit.c: it has the sockets, cores, threads and temporary disk */
bool fit_structure(const struct shape *shape, const struct node *node);
/* gres_per_socket.c: of a node that nobody is on */
bool fit_sockets_empty(const struct shape *shape, const struct node *node);

/* shape_gpus.c */
int shape_settle_gpus(struct shape *shape, const JobSpec *spec, uint64_t *tasks, struct err *err);
int shape_settle_units(struct shape *shape, struct err *err);
void shape_set_nodes(struct shape *shape, uint32_t nodes);

int shape_read_gres(struct shape *shape, const JobSpec *spec, struct err *err);
int shape_read_licences(struct shape *shape, const JobSpec *spec, struct err *err);

/* requests.c */
bool changes_reach(const struct state *state, uint64_t since);
void changes_forgot(struct changes *changes, uint32_t id, uint64_t index);
struct request *request_at(const struct requests *requests, size_t number); /* oldest first */
struct request *request_find(const struct state *state, uint32_t uid, const uint8_t *id);
void request_put(struct state *state, const struct request *request);
void request_advance(struct state *state, struct request *request, uint32_t job_id, uint32_t code,
                     bool more);
void requests_expire(struct state *state);
void requests_shift(struct state *state, int64_t us);
void requests_settle(struct state *state); /* what is left of that is done */
void requests_done(struct requests *requests);

/* restore_job.c */
int restore_job(struct state *state, const SnapshotJob *msg, struct err *err);

/* digest.c */
uint64_t job_hash(const struct job *job);
enum { WIDE_PARTS = 64, DIGEST_LEVEL = 1 };
void part_changes(struct job_run *run, const struct job_part *part); /* digest.c (1) */
void part_changed(struct job_run *run, const struct job_part *part);
uint64_t run_hash_parts(const struct job_run *run); /* 0 when it is not wide */
/* As builds wrote it that knew this level; 0: each node of a wide job after the other. */
uint64_t core_digest_level(const struct state *state, uint32_t level);
uint64_t node_hash(const struct node *node);
uint64_t partition_hash(const struct partition *partition);
uint64_t reservation_hash(const struct reservation *reservation);
uint64_t request_hash(const struct request *request);
uint64_t key_hash(const char *node, const struct node_key *key);
uint64_t message_hash(const ProtobufCMessage *message, uint64_t seed);

/* msg_node.c: what a snapshot holds of a node's status */
void node_fact_msg(const struct node *node, NodeStatus *out);

/* gres_locality.c: where devices are, once a node has its amounts */
void node_read_gres_locality(struct node *node);
void gres_locality_free(struct node_gres *gres);
uint64_t gres_hash(const struct node_gres *gres, uint64_t seed);

/* nodes.c */
struct node *node_new(const NodeSpec *spec);
void node_free(struct state *state, struct node *node);
const char *node_word(struct state *state, struct node *node); /* the node keeps it: (4) of job.h */
void node_set_spec(struct node *node, const NodeSpec *spec);
void node_set_found(struct node *node, const NodeInventory *found);
/* Totals from spec and inventory; use is counted again. True when something changed. */
bool node_amounts(struct node *node);
void node_see_shrunk(struct node *node); /* after what jobs hold was counted by itself */
void node_set_reason(struct state *state, struct node *node, const char *reason, const char *user,
                     uint32_t uid);
void node_set_key(struct state *state, const char *name, const ProtobufCBinaryData *key);
/* What runs there is gone: its jobs end or go elsewhere. apply_node.c */
void node_resume(struct state *state, struct node *node, struct events *out);
void node_lose_jobs(struct state *state, struct node *node, struct events *out);
/* The same, as a CmdNodeDown says (NULL: all); `back`: the node came back from another boot. */
void node_lose_jobs_of(struct state *state, struct node *node, const CmdNodeDown *cmd, bool back,
                       struct events *out);
struct job_part *node_part_of(const struct job *job, const struct node *node);
/* The state that a configuration gives a node that is new. */
void node_first_state(struct state *state, struct node *node);

/* partitions.c */
struct partition *partition_new(const PartitionSpec *spec);
void partition_free(struct partition *partition);
int partition_resolve(const struct state *state, struct partition *partition, struct err *err);
void partition_count(const struct state *state, struct partition *partition);
void partition_settle(struct state *state, struct partition *partition); /* its hash */

/* config.c, for a restore */
void config_licences(struct state *state);
void config_mark_removed(struct state *state);

/* resv.c */
struct reservation *reservation_at(const struct state *state, const char *name);
void reservation_free(struct reservation *reservation);
/* Frees what it has, not itself. */
void reservation_clear(struct reservation *reservation);
void reservation_settle(struct state *state, struct reservation *reservation);
void reservations_due(struct state *state, struct events *out);
void reservations_renumber(struct state *state);   /* nodes have new numbers */
void resv_derive(struct reservation *reservation); /* what follows from its spec */
/* A job that runs in one holds nodes (by 1) or none any more (by -1). */
void resv_job(struct state *state, const struct job *job, int by);
/* Nodes changed: those with REPLACE may get others. */
void reservations_replace(struct state *state, struct events *out);
void reservations_follow(struct state *state, struct events *out); /* partitions have other nodes */
void reservations_next(struct state *state); /* when the next one begins or ends */

/* the commands: each returns the code of the answer, and may set *job_id */
enum err_code apply_submit(struct state *state, const CmdSubmit *cmd, uint32_t *job_id,
                           struct err *err, struct events *out);
enum err_code apply_start(struct state *state, const CmdStart *cmd, struct err *err,
                          struct events *out);
enum err_code apply_ready(struct state *state, const CmdReady *cmd, struct events *out);
enum err_code apply_finish(struct state *state, const CmdFinish *cmd, struct events *out);
enum err_code apply_release(struct state *state, const CmdRelease *cmd, struct events *out);
enum err_code apply_cancel(struct state *state, const CmdCancel *cmd, struct err *err,
                           struct events *out);
enum err_code apply_update_job(struct state *state, const CmdUpdateJob *cmd, struct err *err,
                               struct events *out);
enum err_code apply_requeue(struct state *state, const CmdRequeue *cmd, struct err *err,
                            struct events *out);
enum err_code apply_suspend(struct state *state, const CmdSuspend *cmd, struct err *err,
                            struct events *out);
enum err_code apply_node_up(struct state *state, const CmdNodeUp *cmd, struct err *err,
                            struct events *out);
enum err_code apply_node_down(struct state *state, const CmdNodeDown *cmd, struct events *out);
enum err_code apply_update_node(struct state *state, const CmdUpdateNode *cmd, struct err *err,
                                struct events *out);
enum err_code apply_node_key(struct state *state, const CmdNodeKey *cmd);
enum err_code apply_config(struct state *state, const CmdConfig *cmd, struct err *err,
                           struct events *out);
enum err_code apply_config_change(struct state *state, const CmdConfigChange *cmd, struct err *err,
                                  struct events *out);
enum err_code apply_partition(struct state *state, const CmdPartition *cmd, struct err *err,
                              struct events *out);
enum err_code apply_reservation(struct state *state, const CmdReservation *cmd, struct err *err,
                                struct events *out);
enum err_code apply_preempt(struct state *state, const CmdPreempt *cmd, struct events *out);
enum err_code apply_time(struct state *state, const CmdTime *cmd, struct events *out);

/*
 * job_select.c: the jobs that a command names. An array's id means all its tasks, the first id of a
 * heterogeneous job all its components. Each job that `each` refuses gives an EVENT_REJECTED; the
 * whole is refused only when nothing was done.
 */
typedef enum err_code job_each_fn(struct state *state, struct job *job, const void *arg,
                                  struct err *err, struct events *out);
/* These waiting tasks (not all there are) of an array. NULL: they get records, then `each`. */
typedef enum err_code job_tasks_fn(struct state *state, struct job *meta,
                                   const struct bitset *tasks, const void *arg, struct err *err,
                                   struct events *out);
struct job_select_act {
    job_each_fn *each;
    job_tasks_fn *tasks;
    const void *arg;
};
enum err_code job_select_each(struct state *state, const JobSelect *jobs,
                              const struct job_select_act *act, struct err *err,
                              struct events *out);

#endif
