/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat.h - what the files of libspur_compat share; read first
 *
 * Each API number compiles these files against its own generated headers. What differs between the numbers is
 * hidden here: how a job is named, and what lists and hostlists are called.
 *
 * (1) A function that asks the controller is a call of compat_run(): it gives the thread's own connection, and
 *     turns a `struct err` into errno and SLURM_ERROR.
 * (2) Nothing here ends or interrupts the client's process. A failed allocation inside the library jumps to the
 *     innermost guard, which returns ENOMEM.
 * (3) What the client frees comes from slurm_xcalloc(). Index lists end in -1 and are never NULL.
 */
#ifndef COMPAT_COMPAT_H
#define COMPAT_COMPAT_H

#include <setjmp.h>

#include <protobuf-c/protobuf-c.h>

/* Names that proto/ has too, for the same numbers; states of partitions have others there. */
#define JOB_BOOT_FAIL SLURM_JOB_BOOT_FAIL
#define JOB_CANCELLED SLURM_JOB_CANCELLED
#define JOB_DEADLINE  SLURM_JOB_DEADLINE
#define JOB_FAILED    SLURM_JOB_FAILED
#define JOB_NODE_FAIL SLURM_JOB_NODE_FAIL
#define JOB_PENDING   SLURM_JOB_PENDING
#define JOB_PREEMPTED SLURM_JOB_PREEMPTED
#define JOB_RUNNING   SLURM_JOB_RUNNING
#define JOB_SUSPENDED SLURM_JOB_SUSPENDED
#define JOB_TIMEOUT   SLURM_JOB_TIMEOUT
#include <slurm/slurm.h>
#include <slurm/slurmdb.h>
#include <slurm/spank.h>
enum slurm_partition_state {
    SLURM_PARTITION_UP = PARTITION_UP,
    SLURM_PARTITION_DOWN = PARTITION_DOWN,
    SLURM_PARTITION_DRAIN = PARTITION_DRAIN,
    SLURM_PARTITION_INACTIVE = PARTITION_INACTIVE
};
#undef JOB_BOOT_FAIL
#undef JOB_CANCELLED
#undef JOB_DEADLINE
#undef JOB_FAILED
#undef JOB_NODE_FAIL
#undef JOB_PENDING
#undef JOB_PREEMPTED
#undef JOB_RUNNING
#undef JOB_SUSPENDED
#undef JOB_TIMEOUT
#undef MAIL_ARRAY_TASKS
#undef MAIL_INVALID_DEPEND
#undef PARTITION_DOWN
#undef PARTITION_DRAIN
#undef PARTITION_INACTIVE
#undef PARTITION_UP

typedef int log_level_t; /* of private log functions */

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "members.h"
#include "proto/controller.pb-c.h"

#if COMPAT_API == 38
typedef List compat_list;
typedef ListIterator compat_iterator;
typedef hostlist_t compat_hostlist;
#else
typedef list_t *compat_list;
typedef list_itr_t *compat_iterator;
typedef hostlist_t *compat_hostlist;
#endif

/* The parameter that names a job, and its number. */
#if COMPAT_API < 45
#define JOB_PARAM       uint32_t job_id_
#define JOB_POINTER     uint32_t *job_id_
#define JOB_ID          job_id_
#define JOB_ID_AT       *job_id_
#define ANSWER_ID(resp) (resp)->job_id
#else
#define JOB_PARAM       slurm_step_id_t step_id_
#define JOB_POINTER     slurm_step_id_t *step_id_
#define JOB_ID          step_id_.job_id
#define JOB_ID_AT       step_id_->job_id
#define ANSWER_ID(resp) (resp)->step_id.job_id
#endif

/* Keeps its arguments when the struct of this API has the member. */
#define KEEP_1(...) __VA_ARGS__
#define KEEP_0(...)
#define KEEP_(has, ...)   KEEP_##has(__VA_ARGS__)
#define KEEP(has, ...)    KEEP_(has, __VA_ARGS__)
#define IF_MEMBER(m, ...) KEEP(HAS_##m, __VA_ARGS__)

#include "protos.h"

/* ---- guards ---- */

struct compat_guard {
    jmp_buf at;
    struct compat_guard *outer;
};
void compat_guard_enter(struct compat_guard *guard);
void compat_guard_leave(struct compat_guard *guard);

/* At the beginning of a function: a failed allocation returns `value...` with ENOMEM. */
#define GUARD(...)                                                              \
    CLEANUP(compat_guard_leave) struct compat_guard guard_ = { .outer = NULL }; \
    compat_guard_enter(&guard_);                                                \
    if (setjmp(guard_.at)) {                                                    \
        errno = ENOMEM;                                                         \
        return __VA_ARGS__;                                                     \
    }

/* ---- calls ---- */

/* A thread's connection, and the memory of the call in hand. */
struct session {
    struct client *client;
    struct arena arena;
};

/* What a call does; 0, or a negative code with `err`. */
typedef int compat_work(struct session *session, void *args, struct err *err);

/* Runs it with this thread's session: SLURM_SUCCESS, or SLURM_ERROR and errno. */
int compat_run(compat_work *work, void *args);
/* One call of the controller. The reply lives until compat_run() returns. */
int compat_call(struct session *session, const char *method, const ProtobufCMessage *request,
                const ProtobufCMessageDescriptor *reply_type, ProtobufCMessage **reply,
                struct err *err);
/* An error of ours as a number of Slurm's. */
int compat_errno(const struct err *err);
/* At the beginning of a function: without this argument there is nothing to do. */
#define NEED(pointer, ...)      \
    do {                        \
        if (!(pointer)) {       \
            errno = EINVAL;     \
            return __VA_ARGS__; \
        }                       \
    } while (0)
int compat_not_supported(void); /* sets ESLURM_NOT_SUPPORTED; SLURM_ERROR */
/* How long an unreachable controller is tried, for calls that should not hang: slurm_init(). */
void compat_brief(struct session *session);
void compat_forget_session(void);

/* ---- memory ---- */

void *compat_alloc(size_t size);          /* zeroed; jumps to the guard when there is none */
char *compat_text(const char *text);      /* a copy; NULL for NULL and "" */
char *compat_text_kept(const char *text); /* a copy; NULL only for NULL */
char *compat_take(struct str *text); /* a copy of its text, NULL when empty; the str is freed */
char *compat_join(char *const *list, size_t count); /* "a,b"; NULL for none */
void compat_free_strings(char ***list, uint32_t count);
void compat_free_rows(uint32_t ***rows, uint32_t count);
#if HAS_dynamic_plugin_data_t
void compat_free_plugin_data(dynamic_plugin_data_t **data);
#endif
void compat_free_resources(job_resources_t **resources);

/* ---- shared pieces ---- */

time_t compat_seconds(int64_t us);        /* 0 stays 0 */
uint32_t compat_minutes(int64_t seconds); /* of a limit: -1 INFINITE, -2 NO_VAL */
int32_t *compat_no_index(void);           /* { -1 } */

/* Where names stand in the list of nodes: pairs of first and last, ended by -1. */
int compat_know_nodes(struct session *session,
                      struct err *err); /* before the next: asks if need be */
int compat_list_nodes(struct session *session, ListNodesReply **reply, struct err *err); /* asks */
int32_t *compat_index(const char *hosts);

/* The job's own record, fully. */
int compat_get_job(struct session *session, uint32_t job_id, GetJobReply **reply, struct err *err);

/* A job as job_desc_msg_t describes it. `clear` collects what an update empties; NULL: a new job. */
struct compat_clear {
    const char *names[64];
    size_t count;
};
int compat_spec(struct session *session, const job_desc_msg_t *desc, JobSpec *spec,
                struct compat_clear *clear, struct err *err);
int compat_submit(struct session *session, job_desc_msg_t *const *descs, size_t count, bool batch,
                  bool test_only, SubmitJobReply **reply, struct err *err);

/* Answers about several jobs: as a message, or the first that failed as the call's error. */
job_array_resp_msg_t *compat_results(const JobsReply *reply);
int compat_first_error(const JobsReply *reply, struct err *err);

/* The configuration under Slurm's keys, sorted: "MaxJobCount", "10000". */
struct compat_setting {
    char *key, *value;
};
int compat_settings(struct session *session, struct compat_setting **out, size_t *count,
                    GetConfigReply **reply, struct err *err);

#endif
