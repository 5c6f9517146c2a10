/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - the state as core keeps it: its tables, records and their parts
 *
 * (1) Every change of a record goes with a touch (job_touch, node_touch, …). At the end of the command,
 *     settle() brings the record's hash and the digest up to date.
 * (2) Indexes, heaps and chains hold nothing that cannot be rebuilt from the records.
 * (3) What follows from an end (dependencies, arrays) is queued and done by deps_settle(), so that a
 *     chain of any length needs no stack, and any number of jobs no long command.
 */
#ifndef CORE_RECORD_RECORD_H
#define CORE_RECORD_RECORD_H

#include "base/arena.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/paged.h"
#include "base/slots.h"
#include "base/units.h"
#include "base/vec.h"
#include "core/core.h"
#include "core/intern.h"
#include "core/shape.h"
#include "core/trigger.h"
#include "schema/reasons.h"
#include "schema/sections.h"

#define NEVER INT64_MAX

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
 * Timers of jobs. Each heap has times that no configuration changes; what must be added to them is looked up when they
 * are read. A job is in one of the first four heaps, and perhaps in the last.
 */
enum timer_kind {
    TIMER_FIXED,     /* nothing is added */
    TIMER_LIMIT,     /* the end of a time limit */
    TIMER_LIMIT_OWN, /* the same with the OverTimeLimit of its partition */
    TIMER_FORGET,    /* the end of a job */
    TIMER_BESIDES,   /* what is due for a running job besides its limit; nothing is added */
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
    bool more; /* more commands of it are to come; those so far got to job_id */
};

/* Jobs that were forgotten recently, for lists of what changed. A restart empties it. */
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
    struct slots slots; /* by (uid, id): place in the ring + 1 */
    size_t shift_from,
        shift_to;     /* the times of these, counted from the oldest, have still to be moved */
    int64_t shift_us; /* by this much */
};

/* Ids in order; see dep_waiters.c. */
struct wait_list {
    uint32_t *items; /* from `from` on */
    size_t from, len, cap;
    uint64_t sum; /* of their hashes */
};

/* Jobs that wait for one thing. */
struct dep_waiters {
    uint64_t key;
    uint32_t number; /* in its map */
    struct wait_list ids;
    struct dep_notice *notice, *last; /* that jobs which waited before have not received yet */
    struct wait_list runs;            /* of a singleton; see job_names.c */
    uint32_t covers;
};

/* Waiters by key; grows a little at a time, as slots do. */
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

/* Tokens of a user that are refused. */
struct revoked {
    uint32_t uid;
    int64_t issued_s; /* up to this time */
    uint64_t hash;
};

struct node_key {
    ProtobufCBinaryData key;
    bool forgotten; /* it is refused; the node joins with another one */
    uint64_t hash;
};

/* The nodes of one section of the configuration; config_nodes.c. */
struct node_section {
    uint64_t hash;
    uint32_t first, count;
};

struct state {
    uint64_t index, epoch, journal_acked, config_hash;
    uint64_t accounts_number; /* see struct state_head */
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
    size_t by_phase[PHASE_ENDED + 1]; /* tasks, with each waiting task of an array */
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
    VEC(struct crontab *) crontabs; /* in the order in which they came */
    VEC(struct trigger *) triggers; /* by id */
    uint32_t last_trigger_id;
    int64_t next_trigger_us; /* see triggers.c (1) */
    struct map keys;         /* node name → struct node_key */
    struct map revoked;      /* uid → struct revoked */
    struct intern owners, shapes, words, payloads, billing_group_keys;
    VEC(struct billing_group_record *) billing_groups; /* in no particular order */
    struct map user_billing_groups;                    /* user → the first of the user's */
    VEC(struct shape *)
    old_shapes; /* of jobs that changed; readers of the events may still use them */
    struct requests requests;

    struct wait_map dep_waiters; /* dep_waiters_key() of a job or array → struct dep_waiters */
    struct wait_map singletons;  /* (uid, name) hash → struct dep_waiters */
    struct map resv_jobs;        /* ids of pending jobs that ask for a reservation */
    VEC(uint32_t) dep_changed;   /* jobs that started or ended and may be waited for; (3) */
    struct {
        struct dep_notice *first, *last;
        size_t count;
    } dep_pending; /* notices that not all waiters have received; dep_notify.c */
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
    struct {
        struct state_mark kept[MARKS_KEPT]; /* a ring; the newest at (taken - 1) % MARKS_KEPT */
        size_t taken;
    } marks;                   /* marks.c */
    VEC(struct job *) touched; /* (1) */
    VEC(struct node *) touched_nodes;
    struct arena scratch; /* of one command */
};

static inline bool ids_left(const struct state *state)
{
    return state->next_job_id <= LIMIT_JOB_ID;
}
typedef void node_jobs_fn(struct state *state, struct job *job, void *ctx);

enum { WIDE_PARTS = 64, DIGEST_LEVEL = 1 };

enum dep_type {
    DEP_AFTER,
    DEP_AFTER_ANY,
    DEP_AFTER_BURST_BUFFER,
    DEP_AFTER_CORR,
    DEP_AFTER_NOT_OK,
    DEP_AFTER_OK,
    DEP_SINGLETON,
};

struct dep {
    uint8_t type;
    bool failed;
    bool array;      /* all tasks of one; written "12_*" */
    uint32_t job_id; /* 0 for singleton */
    uint32_t task;   /* NO_TASK: the whole job */
    uint32_t minutes;
};

struct deps {
    bool any; /* '?' */
    size_t count;
    struct dep items[];
};

/* What became of the job that an item names. */
struct fate {
    bool started; /* all of it started, or will not any more */
    bool ended;   /* all of it */
    bool ok;      /* ended, and all of it with COMPLETED */
    int64_t start_us;
};

enum dep_verdict { WAIT, DONE, NEVER_DONE };

/*
 * What became of a job, for the jobs that waited for it at that time. It is written here so that the job may be
 * requeued or forgotten before the last of them has received the notice.
 */
struct dep_notice {
    struct dep_notice *next;      /* of all notices, in order */
    struct dep_notice *next_same; /* of the same key */
    uint64_t number;              /* grows */
    uint64_t key;                 /* dep_waiters_key(); of a singleton its name's hash */
    bool singleton;
    bool array;           /* the key is of a whole array */
    uint32_t task;        /* the notice is about this task only, or NO_TASK */
    struct fate all, one; /* of the whole, of the task */
    int64_t time_us;
    struct wait_list ids;   /* jobs that have not received it; of a singleton they are in the map */
    uint32_t twin, twin_of; /* tasks of the array twin_of, from this one on, have not received it */
    uint64_t hash;          /* its part of the digest */
};

/* The nodes that a start names; lives as long as the command. */
struct alloc_parts {
    struct alloc_part {
        const NodeAlloc *alloc;
        struct node *node; /* NULL: there is none of that name */
    } * of;
    size_t count;
};

/* ---- tables.c ---- */

/* NULL when there is none. */
struct job *job_at(const struct state *state, uint32_t id);
struct node *node_at(const struct state *state, const char *name);
struct partition *partition_at(const struct state *state, const char *name);
/* The record changed; (1). */
void job_touch(struct state *state, struct job *job);
void node_touch(struct state *state, struct node *node);
void index_put(struct job_index *index, struct job *job);
void index_del(struct job_index *index, uint32_t id);
struct reservation *reservation_at(const struct state *state, const char *name);

/* ---- job_record.c ---- */

/* Owners, payloads and packed specs are shared: `take` and `share` add a reference, `drop` gives one back. */
const struct owner *owner_take(struct state *state, const JobOwner *msg);
const struct owner *owner_share(const struct owner *owner);
void owner_drop(struct state *state, const struct owner *owner);
const struct payload *payload_take(struct state *state, const uint8_t *digest);
struct packed *packed_new(const void *bytes, size_t len);
void packed_drop(struct packed *packed);
/* The rarely used fields of a job; made if there are none. */
struct job_more *job_more(struct job *job);
void job_more_free(struct job_more *more);
struct job_more *job_more_copy(const struct job_more *more);
/* One reference less; the last one emits that the payload is not needed any more. */
void payload_drop(struct state *state, const struct payload *payload, struct events *out);
/* Sets a text for why the job waits, instead of the text of its reason; NULL: none. */
void job_say_why(struct job *job, const char *text);
void job_set_text(char **text, const char *to);
void run_free(struct state *state, struct job_run *run);
/* Has it a script of its own, or the first component of its heterogeneous job? */
bool job_has_script(const struct state *state, const struct job *job);
bool job_may_requeue(const struct state *state, const struct job *job);
/* The present attempt may be requeued from now on, although its nodes were told otherwise. */
void job_unbind(struct state *state, struct job *job);

/* ---- event.c ---- */

struct event *emit(struct events *out, enum event_kind kind);
struct event *emit_job(struct events *out, enum event_kind kind, const struct job *job);
void emit_node(struct events *out, enum event_kind kind, const struct node *node);
/* `name` is copied. */
void emit_named(struct events *out, enum event_kind kind, const char *name);
struct event *reject(struct events *out, uint32_t job_id, uint32_t task, enum err_code code);

/* ---- node_jobs.c ---- */

/* Calls `each` for every job that holds nodes, once. `each` must not change what they hold. */
void node_jobs_each(struct state *state, node_jobs_fn *each, void *ctx);

/* ---- array.c ---- */

struct array *array_parse(const char *text, uint32_t max_size, uint32_t max_tasks, struct err *err);
void array_free(struct array *array);
void array_set(struct array *array, uint32_t number, enum task_bits bits);
uint64_t array_hash_bits(const struct array *array); /* what bits_hash is to be */
/* The records of single tasks, besides the one with the array's id. */
void array_index_put(struct array *array, const struct job *job);
void array_index_del(struct array *array, const struct job *job);
struct job *array_record(const struct state *state, const struct array *array, uint32_t task_id);

/* ---- deps_text.c ---- */

struct deps *deps_copy(const struct deps *deps);
void deps_free(struct deps *deps);
void deps_format(const struct deps *deps, struct str *out);
uint64_t deps_hash(const struct deps *deps);
/* Reads what a user wrote, or what deps_format() wrote; NULL when it is not a dependency. */
struct deps *deps_read(const char *text);

/* ---- changes.c ---- */

bool changes_reach(const struct state *state, uint64_t since);
void changes_forgot(struct changes *changes, uint32_t id, uint64_t index);

/* ---- requests.c ---- */

struct request *request_at(const struct requests *requests, size_t number); /* oldest first */
struct request *request_find(const struct state *state, uint32_t uid, const uint8_t *id);
void request_put(struct state *state, const struct request *request);
void request_advance(struct state *state, struct request *request, uint32_t job_id, uint32_t code,
                     bool more);
void requests_expire(struct state *state);
void requests_shift(struct state *state, int64_t us);
void requests_settle(struct state *state); /* does what is left of that */
bool requests_are_settled(const struct state *state);
void requests_done(struct requests *requests);

/* ---- marks.c ---- */

void mark_put(struct state *state, struct state_mark mark);
void marks_applied(struct state *state); /* at the end of every command */

/* ---- digest.c ---- */

uint64_t job_hash(const struct job *job);
uint64_t trigger_hash(const struct trigger *trigger);
void part_changes(struct job_run *run, const struct job_part *part); /* digest.c (1) */
void part_changed(struct job_run *run, const struct job_part *part);
uint64_t run_hash_parts(const struct job_run *run); /* 0 when it is not wide */
/* The digest as builds of that level compute it; 0: each node of a wide job one after the other. */
uint64_t core_digest_level(const struct state *state, uint32_t level);
uint64_t node_hash(const struct node *node);
uint64_t partition_hash(const struct partition *partition);
uint64_t reservation_hash(const struct reservation *reservation);
uint64_t request_hash(const struct request *request);
uint64_t key_hash(const char *node, const struct node_key *key);
uint64_t revoked_hash(const struct revoked *revoked);
/* Of two times for one user the later one holds. */
void revoke_tokens(struct state *state, uint32_t uid, int64_t issued_s);

#endif
