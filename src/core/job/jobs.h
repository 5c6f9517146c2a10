/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobs.h - what happens to jobs: phases, dependencies, allocations, timers, preemption
 */
#ifndef CORE_JOB_JOBS_H
#define CORE_JOB_JOBS_H

#include "core/resv/resvs.h"

/* What moves a job from one phase to another; job_move() is the only function that does. */
enum job_cause {
    JOB_ON_START,      /* it needs nothing more, and runs */
    JOB_ON_START_SLOW, /* nodes must be prepared first */
    JOB_ON_READY,
    JOB_ON_EXIT, /* it ended by itself, or by a cancel, a limit or a failure */
    JOB_ON_REQUEUE,
    JOB_ON_RELEASED, /* its last node reported that nothing of it is left */
    JOB_ON_SUSPEND,
    JOB_ON_RESUME,
};

/* What is known of a job on a node that was lost. The job goes on without the node, is requeued, or ends. */
enum job_lost {
    JOB_RUNS_NOT,  /* nothing of it is alive there, or it is frozen for good */
    JOB_NEVER_RAN, /* nothing of it ever ran there */
    JOB_MAY_RUN,   /* it may be alive: it must not run elsewhere */
};

/* After this long past its limit the controller ends a job that its node did not. */
enum { LIMIT_GRACE_S = 60 };

/* ---- job_names.c ---- */

void job_name_link(struct state *state, struct job *job);
void job_name_unlink(struct state *state, struct job *job);
/* The job has got its nodes, or is about to lose them. */
void job_name_runs(struct state *state, const struct job *job, bool runs);
uint64_t job_name_hash(uint32_t uid, struct span name);
/*
 * Walks the jobs that have not ended and may have this owner and name, by id; begin with NULL. Different names may
 * share a hash: compare.
 */
struct job *job_name_next(const struct state *state, uint64_t hash, const struct job *after);
bool job_name_check(const struct state *state, const struct job *job);
/* Is the job alone with its owner and name? */
enum dep_verdict deps_singleton(struct state *state, const struct job *self);
/* The job waits to be alone with its name. */
void job_name_waits(struct state *state, const struct job *job);

/* ---- records.c ---- */

/* Puts a record into every index. Call it when all fields are set. */
void job_link(struct state *state, struct job *job);
/* Removes a job that has ended from the state; frees a record. */
void job_forget(struct state *state, struct job *job, struct events *out);
void job_free(struct state *state, struct job *job, struct events *out);
/* Sets the fields that follow from the spec. */
void job_take_spec(struct state *state, struct job *job, const JobSpec *spec,
                   struct packed *packed);
/* Adds the record to the counts by phase (1), or takes it out (-1). Call it around every change of its phase. */
void job_count(struct state *state, const struct job *job, int sign);
/* Gives a waiting task a record of its own; the last one gets the array's. */
struct job *array_split(struct state *state, struct job *meta, uint32_t number, struct events *out);
void admitted_done(struct admitted *admitted);

/* ---- job_states.c ---- */

/* Does the table have an edge for this cause from the job's phase? */
bool job_can(const struct job *job, enum job_cause cause);
/* Moves the job along that edge; false when there is none. With JOB_ON_EXIT it ends as end_state. */
bool job_move(struct state *state, struct job *job, enum job_cause cause, JobState end_state);

/* ---- job_life.c ---- */

/* Works out whether a pending job is eligible. */
void job_refresh(struct state *state, struct job *job, struct events *out);
/* Ends only this one of several components; false when it cannot end. */
bool job_end_alone(struct state *state, struct job *job, JobState end_state, unsigned reason,
                   int64_t end_us, const Usage *usage, struct events *out);
/* Ends the job with all its components. */
void job_end(struct state *state, struct job *job, JobState end_state, unsigned reason,
             int64_t end_us, const Usage *usage, struct events *out);
/* Puts the job back into the queue and ends what runs of it. */
void job_requeue(struct state *state, struct job *job, JobState ended_as, unsigned hold,
                 uint32_t flags, unsigned reason, int64_t end_us, struct events *out);
/* The node of that part has nothing of the job any more. */
void job_release(struct state *state, struct job *job, struct job_part *part, struct events *out);
void job_settle_release(struct state *state, struct job *job, struct events *out);
void job_lost_node(struct state *state, struct job *job, struct job_part *part, enum job_lost how,
                   struct events *out);

/* ---- preempt.c ---- */

/* Preempts the job: it is requeued or cancelled. */
void preempt_out(struct state *state, struct job *victim, bool requeue, int64_t end_us,
                 struct events *out);
/* Resumes a job that lends its CPUs; false when these are in use. */
bool preempt_resume(struct state *state, struct job *job, struct events *out);
bool preempt_could_resume(const struct state *state, const struct job *job);
/* Has the job that it was suspended for not started yet? */
bool preempt_is_waited_for(const struct state *state, const struct job *victim);
enum err_code apply_preempt(struct state *state, const CmdPreempt *cmd, struct events *out);

/* ---- suspended_for.c ---- */

void suspended_for_add(struct state *state, struct job *job);
void suspended_for_drop(struct state *state, const struct job *job); /* it need not be there */
/* Sets the job that it was preempted for; 0: none. */
void suspended_for_await(struct state *state, struct job *job, uint32_t by_id);
/* Notes suspended jobs that may run again because of what this command touched. */
void suspended_for_note(struct state *state);
/*
 * Resumes suspended jobs whose CPUs are free again. Checks every one if `all`, otherwise only those noted since the
 * last call.
 */
void suspended_for_settle(struct state *state, bool all, struct events *out);
/* Is it right that the job was not noted? For core_check(). */
bool suspended_for_is_right(const struct state *state, const struct job *job);
void suspended_for_done(struct state *state);

/* ---- resize.c ---- */

/* Takes the part from the job; its node must be told, unless it is lost. */
void job_leave(struct state *state, struct job *job, struct job_part *part);
/* Can the job go on without the part? */
bool job_can_spare(const struct job *job, const struct job_part *part);
/* Does it, because the user asked for that or because it has a spare node? */
bool job_goes_on_without(const struct job *job, const struct job_part *part);
/* Is this update of a running job about its nodes? */
bool job_resize_asked(const struct job *job, const JobSpec *change);
/* Gives up nodes as the change asks. `try`: only checks. */
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
/* The job changed: works out its timers again. */
void timers_update(struct state *state, struct job *job);
void timers_remove(struct state *state, struct job *job);
void timers_restored(struct state *state); /* a snapshot was restored: all records are there */
/* What partitions say about timers, as one number; and what to do when it differs from `before`. */
uint64_t timers_partitions(const struct state *state);
void timers_follow(struct state *state, uint64_t before);
int timers_check(const struct state *state, struct err *err);
size_t timers_count(const struct state *state);

/* ---- deps.c ---- */

int deps_parse(const struct state *state, const struct job *self, const char *text,
               struct deps **out, struct err *err);
/* Works out the job's own dependencies again. */
void deps_review(struct state *state, struct job *job, struct events *out);
/* Can they never be fulfilled? */
bool deps_never(const struct deps *deps);
/* When a dependency with a delay is fulfilled; NEVER: none. */
int64_t deps_due(const struct state *state, const struct job *job);
/* What became of the job, or of one of its tasks; and what that means for an item. */
struct fate deps_fate(const struct state *state, uint32_t job_id, uint32_t task);
enum dep_verdict deps_judge(const struct dep *dep, const struct fate *fate, int64_t now_us);
/* Does each task of the job's array wait for the task with the same number (aftercorr)? */
bool deps_of_twins(const struct job *job, const struct dep *dep);
/* The items of the job changed. NULL items: nothing is left to wait for. */
void deps_changed(struct state *state, struct job *job, bool was_never, struct events *out);

/* ---- dep_waiters.c ---- */

/* Puts the job into the lists of what it waits for; and takes it out. */
void deps_register(struct state *state, struct job *job);
void deps_unregister(struct state *state, struct job *job);
/* A task has got its record: it has received the notices that the array's record has received. */
void deps_follow(struct state *state, struct job *task, const struct job *meta);
void deps_done(struct state *state);
int deps_check(const struct state *state, uint64_t *digest, struct err *err);
/* Follows a change of the job's name: call it before and after. */
void deps_rename(struct state *state, struct job *job, bool before);
bool wait_list_add(struct wait_list *list, uint32_t id); /* false: it was there */
bool wait_list_del(struct wait_list *list, uint32_t id);
bool wait_list_has(const struct wait_list *list, uint32_t id);
void wait_list_done(struct wait_list *list);
static inline uint32_t wait_list_at(const struct wait_list *list, size_t i)
{
    return list->items[list->from + i];
}
/* The key of a list: jobs that wait for a start and jobs that wait for an end are in different lists. */
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
/* Frees the list if it has become empty. */
void dep_waiters_settle(struct wait_map *map, struct dep_waiters *waiters);
/* A notice about this item that the job has not received yet; NULL when there is none. */
struct dep_notice *deps_pending_notice(const struct state *state, const struct job *job,
                                       const struct dep *dep);
/* Takes the job out of the lists of what it waits for, not out of notices that it has yet to receive. */
void deps_withdraw(struct state *state, struct job *job);

/* ---- dep_notify.c ---- */

/* Notes that something happened to the job that others may wait for. */
void deps_notify(struct state *state, const struct job *job);
/* The job or its dependencies are new: asks for notices about tasks of the other array that have ended. */
void deps_ask_twins(struct state *state, const struct job *job);
/* Gives the job the notices that it has not received yet; call it before a command changes the job. */
void deps_catch_up(struct state *state, struct job *job, struct events *out);
/* Are there jobs that have not received a notice about this one? */
bool deps_notify_pending(const struct state *state, const struct job *job);
/* Delivers notices, some in each command. When more are left, core_next_due() asks for a CmdTime at once. */
void deps_settle(struct state *state, bool time, struct events *out);
/* The job gets another name, or does not run any more: a singleton with its name may start. */
void deps_notify_name(struct state *state, const struct job *job);
void dep_notify_changed(struct state *state,
                        struct dep_notice *notice); /* after any change of it */
void dep_notify_append(struct state *state, struct dep_notice *notice);
uint64_t dep_notify_hash(const struct dep_notice *notice);

/* ---- alloc_check.c ---- */

/* Are the resources that the start names free? Fills in `parts`. */
int alloc_check(struct state *state, const struct job *job, const JobStart *start,
                struct alloc_parts *parts, struct err *err);

/* ---- alloc.c ---- */

/* Takes back, or takes, what the start names. */
void alloc_undo(struct state *state, struct job *job);
void alloc_take(struct state *state, struct job *job, const JobStart *start,
                const struct alloc_parts *parts);
/* Gives back, or holds, what the part has of its node. */
void alloc_give(struct state *state, struct job *job, struct job_part *part);
void alloc_hold(struct state *state, struct job *job, struct job_part *part);
/* A suspended job lends its CPUs to others; and takes them back, if all are free. */
void alloc_lend(struct state *state, struct job *job);
bool alloc_recall(struct state *state, struct job *job);
bool alloc_could_recall(const struct state *state, const struct job *job);

/* ---- spare_nodes.c ---- */

void spare_nodes_mark(struct job *job); /* the job starts: its last parts are the spares */
/* Would the job have as many nodes as before without that part? */
bool spare_nodes_has(const struct job *job, const struct job_part *lost);
/* A spare takes the place of the lost part. */
void spare_nodes_take(struct state *state, struct job *job, struct job_part *lost);

/* ---- site_hooks.c ---- */

/* A prolog of the site must run before the job's nodes hear of it; it has run (false: none was awaited). */
void site_hooks_begin(struct state *state, struct job *job);
bool site_hooks_prepared(struct state *state, struct job *job);
/* The same for the epilog. */
void site_hooks_end(struct state *state, struct job *job);
bool site_hooks_cleaned(struct state *state, struct job *job);
void site_hooks_restored(struct state *state, const struct job *job);

/* ---- reboot.c ---- */

/* Asks for a reboot. False: there is nothing to do, or it is under way. */
bool reboot_ask(struct state *state, struct node *node, bool asap, unsigned next);
/* The node may be idle: reboots it if that was asked for. */
void reboot_idle(struct state *state, struct node *node, struct events *out);
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
void gang_runs(struct state *state, const struct job *job, struct events *out); /* it runs now */
/* Gives the next jobs their turn, after a command; `freed`: the command may have ended jobs. */
void gang_settle(struct state *state, int64_t before_us, bool freed, struct events *out);
int64_t gang_next_us(const struct state *state);

/* ---- backoff.c ---- */

/* Requeues the job, which a node failed; it does without that node for a while. */
void job_requeue_without(struct state *state, struct job *job, const char *node,
                         struct events *out);
/* Counts the failure without the requeue; true: too many nodes have failed the job. */
bool backoff_count(struct state *state, struct job *job, const char *node);
void backoff_share(const struct job *job, struct job *other); /* with another component */
/* The job is pending again, or may use the nodes again. */
void backoff_pending(struct state *state, struct job *job);
void backoff_forget(struct job *job, bool nodes_too);
int64_t backoff_due(const struct job *job);
/* Adds the nodes that the job does without to those that the spec excludes. */
void backoff_exclude(const struct job_more *more, JobSpec *spec, struct arena *arena);

/* ---- node_loss.c ---- */

/* Puts a node that was down, drained or failing back into use. */
void node_resume(struct state *state, struct node *node, struct events *out);
/* What runs on the node is gone: its jobs end, go on without it, or are requeued. */
void node_lose_jobs(struct state *state, struct node *node, struct events *out);
/* The same, as a CmdNodeDown says (NULL: all); `back`: the node came back from another boot. */
void node_lose_jobs_of(struct state *state, struct node *node, const CmdNodeDown *cmd, bool back,
                       struct events *out);
/* The part of the job on that node. */
struct job_part *node_part_of(const struct job *job, const struct node *node);

/* ---- accrue_turn.c ---- */

/* Lets jobs age that now may, in the order in which they became eligible. */
void accrue_turn(struct state *state, struct events *out);

#endif
