/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.h - the commands of the log: each apply function does one
 *
 * An apply function returns the code of the answer, and sets err where the answer has a text. A command that cannot be
 * done changes nothing.
 */
#ifndef CORE_COMMAND_COMMAND_H
#define CORE_COMMAND_COMMAND_H

#include "core/job/jobs.h"

/*
 * What is done with each job that a command names. An array's id means all its tasks, the first id of a
 * heterogeneous job all its components. A job that `each` refuses gives an EVENT_REJECTED; the command is refused only
 * when nothing was done.
 */
typedef enum err_code job_each_fn(struct state *state, struct job *job, const void *arg,
                                  struct err *err, struct events *out);
/* The same with some of the waiting tasks of an array. NULL: each of them gets a record, then `each`. */
typedef enum err_code job_tasks_fn(struct state *state, struct job *meta,
                                   const struct bitset *tasks, const void *arg, struct err *err,
                                   struct events *out);

struct job_select_act {
    job_each_fn *each;
    job_tasks_fn *tasks;
    const void *arg;
};

/* ---- submit.c ---- */

uint32_t job_first_priority(const JobSpec *spec, uint32_t id);
/* Sets *job_id. */
enum err_code apply_submit(struct state *state, const CmdSubmit *cmd, uint32_t *job_id,
                           struct err *err, struct events *out);

/* ---- apply_time.c ---- */

/* That much time did not pass for jobs and requests: no leader, or its clock was set. */
void time_skipped(struct state *state, int64_t us, bool new_leader);
enum err_code apply_time(struct state *state, const CmdTime *cmd, struct events *out);

/* ---- crontabs.c ---- */

struct crontab;
void crontab_free(struct crontab *crontab);
uint64_t crontab_hash(const struct crontab *crontab);
uint64_t crontab_kept_hash(const struct crontab *crontab); /* what the digest has of it */
void crontab_put(struct state *state, const Crontab *msg); /* instead of what the user has */
enum err_code apply_crontab(struct state *state, const CmdCrontab *cmd, struct err *err,
                            struct events *out);

/* ---- triggers.c ---- */

struct trigger *trigger_new(const TriggerSpec *spec);
void trigger_free(struct trigger *trigger);
void trigger_settle(struct state *state, struct trigger *trigger); /* after a change */
/* Nodes are in the condition that the last command left them in; for the first trigger and a restore. */
void triggers_watch_nodes(struct state *state);
void triggers_next(struct state *state);                     /* when one is due next */
void triggers_happened(struct state *state, unsigned types); /* enum trigger_type */
void triggers_lead(struct state *state, const char *before); /* there is a new leader */
/* What the command did pulls triggers; the one before it was of before_us. */
void triggers_see(struct state *state, const Command *cmd, int64_t before_us, struct events *out);
enum err_code apply_trigger(struct state *state, const CmdTrigger *cmd, struct err *err,
                            struct events *out);

/* ---- start.c ---- */

/* The job has everything that it needs to begin. */
void job_begin(struct state *state, struct job *job, struct events *out);
enum err_code apply_start(struct state *state, const CmdStart *cmd, struct err *err,
                          struct events *out);
enum err_code apply_ready(struct state *state, const CmdReady *cmd, struct events *out);
enum err_code apply_finish(struct state *state, const CmdFinish *cmd, struct events *out);
enum err_code apply_release(struct state *state, const CmdRelease *cmd, struct events *out);

/* ---- no_allocate.c ---- */

int no_allocate_admit(const struct state *state, const JobSpec *spec, struct err *err);
void no_allocate_start(struct state *state, struct job *job, const JobSpec *spec,
                       struct events *out);

/* ---- admit.c ---- */

/* May a job of this owner with this spec be queued? `self`: the job that changes; NULL: a new one. */
int admit(const struct state *state, const JobOwner *owner, const JobSpec *spec,
          const struct job *self, int64_t now_us, struct admitted *out, struct err *err);

/* ---- admit_shape.c ---- */

int admit_check_shape(const struct state *state, struct shape *shape, const JobOwner *owner,
                      const JobSpec *spec, struct err *err);

/* ---- config.c ---- */

/* Reads licences from the configuration; for a restore. */
void config_licences(struct state *state);
enum err_code apply_config(struct state *state, const CmdConfig *cmd, struct err *err,
                           struct events *out);
enum err_code apply_config_change(struct state *state, const CmdConfigChange *cmd, struct err *err,
                                  struct events *out);

/* ---- config_nodes.c ---- */

void config_mark_removed(struct state *state);

/* ---- resv_due.c ---- */

void reservations_due(struct state *state, struct events *out);
/* Nodes changed: reservations with REPLACE may get other nodes. */
void reservations_replace(struct state *state, struct events *out);
/* Partitions changed: so do reservations of their nodes. */
void reservations_follow(struct state *state, struct events *out);
/* Removes and frees it. Jobs that asked for it alone are held, or go on without it. */
void resv_remove(struct state *state, struct reservation *resv, bool hold, struct events *out);

/* ---- job_control.c ---- */

enum err_code apply_cancel(struct state *state, const CmdCancel *cmd, struct err *err,
                           struct events *out);
enum err_code apply_requeue(struct state *state, const CmdRequeue *cmd, struct err *err,
                            struct events *out);
enum err_code apply_suspend(struct state *state, const CmdSuspend *cmd, struct err *err,
                            struct events *out);

/* ---- update.c ---- */

enum err_code apply_update_job(struct state *state, const CmdUpdateJob *cmd, struct err *err,
                               struct events *out);

/* ---- apply_node.c ---- */

enum err_code apply_node_up(struct state *state, const CmdNodeUp *cmd, struct err *err,
                            struct events *out);
enum err_code apply_node_down(struct state *state, const CmdNodeDown *cmd, struct events *out);
enum err_code apply_update_node(struct state *state, const CmdUpdateNode *cmd, struct err *err,
                                struct events *out);
enum err_code apply_node_key(struct state *state, const CmdNodeKey *cmd);

/* ---- apply_partition.c ---- */

enum err_code apply_partition(struct state *state, const CmdPartition *cmd, struct err *err,
                              struct events *out);

/* ---- apply_resv.c ---- */

enum err_code apply_reservation(struct state *state, const CmdReservation *cmd, struct err *err,
                                struct events *out);

/* ---- job_select.c ---- */

/* Does `act` with every job that the command names. */
enum err_code job_select_each(struct state *state, const JobSelect *jobs,
                              const struct job_select_act *act, struct err *err,
                              struct events *out);

/* ---- limits_admit.c ---- */

/* Fills in the account and QOS of a job that names none; refuses those that it may not use. */
int admit_account(const struct state *state, const JobOwner *owner, JobSpec *spec, struct err *err);
/* Checks the limits that apply at submission, for `count` tasks. */
int admit_limits(const struct state *state, const JobOwner *owner, const JobSpec *spec,
                 struct shape *shape, int64_t *time_limit_s, uint64_t count, const struct job *self,
                 struct err *err);

#endif
