/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobs.h - what happens to jobs: phases, dependencies, allocations, timers, preemption
 */
#ifndef CORE_JOB_JOBS_H
#define CORE_JOB_JOBS_H

#include "core/resv/resvs.h"

/* The only place that changes a job's phase */
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

/* What a job that lost a node does: it goes on without it, is requeued, or ends. */
enum job_lost {
    JOB_RUNS_NOT,  /* nothing of it is alive there, or it stands still for good */
    JOB_NEVER_RAN, /* and nothing of it ever was */
    JOB_MAY_RUN,   /* it may be alive: it must not run elsewhere */
};

/* After this long past its limit the controller ends a job that its node did not. */
enum { LIMIT_GRACE_S = 60 };

/* ---- job_names.c ---- */

void job_name_link(struct state *state, struct job *job);
void job_name_unlink(struct state *state, struct job *job);
/* It has got its nodes, or is about to lose them. */
void job_name_runs(struct state *state, const struct job *job, bool runs);
uint64_t job_name_hash(uint32_t uid, struct span name);
/* The next of the unended jobs that may have this owner and name (compare!), by id; begin with NULL. */
struct job *job_name_next(const struct state *state, uint64_t hash, const struct job *after);
bool job_name_check(const struct state *state, const struct job *job);
enum dep_verdict deps_singleton(struct state *state, const struct job *self);
/* It waits to be alone with its name. */
void job_name_waits(struct state *state, const struct job *job);

/* ---- records.c ---- */

/* Everything a record must be found by: call when all of it is set. */
void job_link(struct state *state, struct job *job);
void job_forget(struct state *state, struct job *job, struct events *out);
void job_free(struct state *state, struct job *job, struct events *out);
/* Fields that follow from the spec. */
void job_take_spec(struct state *state, struct job *job, const JobSpec *spec,
                   struct packed *packed);
/* Adds to or takes from by_phase what the record stands for; around every change of it. */
void job_count(struct state *state, const struct job *job, int sign);
/* Gives a waiting task its own record (or the array's, for the last one). */
struct job *array_split(struct state *state, struct job *meta, uint32_t number, struct events *out);
void admitted_done(struct admitted *admitted);

/* ---- job_states.c ---- */

/* May the cause happen now? */
bool job_can(const struct job *job, enum job_cause cause);
/* Moves the job; for JOB_ON_EXIT end_state is what it ends as. False when the table has no edge. */
bool job_move(struct state *state, struct job *job, enum job_cause cause, JobState end_state);

/* ---- job_life.c ---- */

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
void job_lost_node(struct state *state, struct job *job, struct job_part *part, enum job_lost how,
                   struct events *out);

/* ---- preempt.c ---- */

void preempt_out(struct state *state, struct job *victim, bool requeue, int64_t end_us,
                 struct events *out);
/* A job that lends its CPUs runs again; false when they are in use. */
bool preempt_resume(struct state *state, struct job *job, struct events *out);
bool preempt_could_resume(const struct state *state, const struct job *job);
/* The job that it was suspended for is to start still. */
bool preempt_is_waited_for(const struct state *state, const struct job *victim);
enum err_code apply_preempt(struct state *state, const CmdPreempt *cmd, struct events *out);

/* ---- suspended_for.c ---- */

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

/* ---- resize.c ---- */

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

/* ---- timers.c ---- */

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

/* ---- deps.c ---- */

int deps_parse(const struct state *state, const struct job *self, const char *text,
               struct deps **out, struct err *err);
/* Looks at the job's own dependencies again. */
void deps_review(struct state *state, struct job *job, struct events *out);
bool deps_never(const struct deps *deps);
int64_t deps_due(const struct state *state, const struct job *job);
struct fate deps_fate(const struct state *state, uint32_t job_id, uint32_t task);
enum dep_verdict deps_judge(const struct dep *dep, const struct fate *fate, int64_t now_us);
/* Each task of that array waits for its twin. */
bool deps_of_twins(const struct job *job, const struct dep *dep);
/* Something about its items has changed. NULL items: nothing is left to wait for. */
void deps_changed(struct state *state, struct job *job, bool was_never, struct events *out);

/* ---- dep_waiters.c ---- */

void deps_register(struct state *state, struct job *job);
void deps_unregister(struct state *state, struct job *job);
/* A task has got its record: it has been told what the array's record has been told. */
void deps_follow(struct state *state, struct job *task, const struct job *meta);
void deps_done(struct state *state);
int deps_check(const struct state *state, uint64_t *digest, struct err *err);
/* Its own singletons, before and after that. */
void deps_rename(struct state *state, struct job *job, bool before);
bool wait_list_add(struct wait_list *list, uint32_t id); /* false: it is there */
bool wait_list_del(struct wait_list *list, uint32_t id);
bool wait_list_has(const struct wait_list *list, uint32_t id);
void wait_list_done(struct wait_list *list);
static inline uint32_t wait_list_at(const struct wait_list *list, size_t i)
{
    return list->items[list->from + i];
}
/* What items of this kind are registered by: who waits for a start hears of no end, and so on. */
static inline uint64_t dep_waiters_key(uint32_t job_id, bool start)
{
    return (uint64_t)job_id << 1 | start;
}
static inline uint64_t dep_key(const struct dep *dep)
{
    return dep_waiters_key(dep->job_id, dep->type == DEP_AFTER);
}
struct dep_waiters *dep_waiters_at(const struct wait_map *map, uint64_t key); /* NULL: nobody */
static inline size_t dep_waiters_len(const struct wait_map *map)
{
    return map->slots.count;
}
struct dep_waiters *dep_waiters_make(struct wait_map *map, uint64_t key);
/* It may have become empty. */
void dep_waiters_settle(struct wait_map *map, struct dep_waiters *waiters);
/* News that the job has not been told about this item; NULL when there is none. */
struct dep_notice *deps_pending_notice(const struct state *state, const struct job *job,
                                       const struct dep *dep);
/* Out of the lists of those who wait now; not of those who wait to be told. */
void deps_withdraw(struct state *state, struct job *job);

/* ---- dep_notify.c ---- */

/* Something happened to the job that others may wait for. */
void deps_notify(struct state *state, const struct job *job);
/* The job is new, or its dependencies are: tasks whose twins have ended go on by themselves. */
void deps_ask_twins(struct state *state, const struct job *job);
/* Something is about to be done with the job: it is told what it has not been told yet. */
void deps_catch_up(struct state *state, struct job *job, struct events *out);
/* Others have not been told yet what has become of the job. */
bool deps_notify_pending(const struct state *state, const struct job *job);
/* Tells what is new, some of it: core_next_due() asks for a CmdTime at once when more is left. */
void deps_settle(struct state *state, bool time, struct events *out);
/* It is to have another name, or runs no more: who waits to be alone with its name may be so. */
void deps_notify_name(struct state *state, const struct job *job);
void dep_notify_changed(struct state *state,
                        struct dep_notice *notice); /* after any change of it */
void dep_notify_append(struct state *state, struct dep_notice *notice);
uint64_t dep_notify_hash(const struct dep_notice *notice);

/* ---- alloc_check.c ---- */

int alloc_check(struct state *state, const struct job *job, const JobStart *start,
                struct alloc_parts *parts, struct err *err);

/* ---- alloc.c ---- */

void alloc_undo(struct state *state, struct job *job);
void alloc_take(struct state *state, struct job *job, const JobStart *start,
                const struct alloc_parts *parts);
void alloc_give(struct state *state, struct job *job, struct job_part *part);
void alloc_hold(struct state *state, struct job *job, struct job_part *part);
/* The CPUs of a suspended job may be used by others; and no more, if all are free. */
void alloc_lend(struct state *state, struct job *job);
bool alloc_recall(struct state *state, struct job *job);
bool alloc_could_recall(const struct state *state, const struct job *job);

/* ---- spare_nodes.c ---- */

void spare_nodes_mark(struct job *job); /* it starts */
/* Would the job have as many nodes as before without that part? */
bool spare_nodes_has(const struct job *job, const struct job_part *lost);
void spare_nodes_take(struct state *state, struct job *job, struct job_part *lost);

/* ---- site_hooks.c ---- */

void site_hooks_begin(struct state *state, struct job *job);    /* before its nodes hear of it */
bool site_hooks_prepared(struct state *state, struct job *job); /* false: that was not awaited */
void site_hooks_end(struct state *state, struct job *job);
bool site_hooks_cleaned(struct state *state, struct job *job);
void site_hooks_restored(struct state *state, const struct job *job);

/* ---- reboot.c ---- */

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

/* ---- gang.c ---- */

void gang_add(struct state *state, struct job *job);
void gang_drop(struct state *state, const struct job *job);
void gang_runs(struct state *state, const struct job *job, struct events *out); /* from now on */
/* Whose turn it is, after a command; `freed`: it may have ended jobs. */
void gang_settle(struct state *state, int64_t before_us, bool freed, struct events *out);
int64_t gang_next_us(const struct state *state);

/* ---- backoff.c ---- */

/* A node failed the job, which is requeued, and does without it for a while */
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

/* ---- node_loss.c ---- */

/* What runs there is gone: its jobs end or go elsewhere. apply_node.c */
void node_resume(struct state *state, struct node *node, struct events *out);
void node_lose_jobs(struct state *state, struct node *node, struct events *out);
/* The same, as a CmdNodeDown says (NULL: all); `back`: the node came back from another boot. */
void node_lose_jobs_of(struct state *state, struct node *node, const CmdNodeDown *cmd, bool back,
                       struct events *out);
struct job_part *node_part_of(const struct job *job, const struct node *node);

/* ---- accrue_turn.c ---- */

/* Lets jobs age that now may, in the order in which they became eligible. accrue_turn.c */
void accrue_turn(struct state *state, struct events *out);

#endif
