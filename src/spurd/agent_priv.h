/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_priv.h - the agent's state, shared by agent_*.c
 */
#ifndef SPURD_AGENT_PRIV_H
#define SPURD_AGENT_PRIV_H

#include "proto/agent.pb-c.h"
#include "rpc/rpc.h"
#include "spurd/agent.h"
#include "spurd/node/inventory.h"
#include "spurd/record/attempt.h"
#include "spurd/record/journal.h"
#include "spurd/task/stepd.h"
#include "spurd/task/task.h"

enum {
    AGENT_HEARTBEAT_MS = 5000,
    AGENT_RESEND_MS = 5000, /* a report that is not acknowledged */
    AGENT_BEATS = 16,
    AGENT_KEEP_MS = 1000,               /* the same: it goes to disk */
    AGENT_SYNC_MS = 100,                /* a launch: the journal is synced, before any report is */
    AGENT_FREE_BYTES = 8 * 1024 * 1024, /* the spool is full below this */
    AGENT_SUPERVISOR_LATE_S = 60,       /* beyond kill_wait: we end its processes ourselves */
};

struct session;
struct hook;
struct output_server;
struct steps;
struct x11_displays;

struct agent {
    uv_loop_t *uv;
    struct rpc_loop *rpc;
    char *name, *controllers, *addr, *spool_dir, *run_dir, *sysroot, *cgroup_root, *token_file;
    char *lease_file;
    int lock_fd;
    bool stopping;

    struct inventory inventory;
    NodeConfig *config;   /* NULL: never heard from a controller */
    char *cgroup;         /* directory of this node's jobs; NULL: none */
    bool has_controllers; /* the kernel limits what is in there */
    bool has_memory;      /* also how much memory it takes */
    char cgroup_words[256];
    char boot_id[64];
    int64_t started_us;
    uint16_t port;

    struct journal journal;
    struct attempt_table table;
    struct stepd *stepd;
    char *container;     /* the program spur-container; NULL: not installed */
    char *pmix;          /* the program spurstepd-pmix; NULL: not installed */
    struct steps *steps; /* of srun: step.h */
    struct x11_displays *x11;
    char *socket;       /* where srun of jobs on this node finds us */
    unsigned verbose;   /* agent_options */
    char *shown_dir;    /* of the socket for commands of this host; NULL: there is none */
    bool login;         /* spurd --login: no node, it only vouches */
    struct map vouched; /* uid to struct vouched: vouch.c */
    struct session *session;
    struct rpc_server *server;
    struct tls_ctx *tls_client, *tls_server;
    struct tls_ctx *tls_joining; /* of the session, when we joined by it */
    int64_t renew_after_us;      /* not before: the certificate was asked for a while ago */
    struct jwt_keys *job_keys;   /* whose tokens readers show; NULL: none yet */
    uint8_t verify_key[32];
    bool has_verify_key;

    bool welcomed; /* the leader knows us on this connection */
    uint64_t beat_seq;
    int64_t beat_sent_us[AGENT_BEATS]; /* boot time of the last ones, by seq */
    int64_t hello_sent_us;
    uint32_t heartbeat_ms, lease_ms;
    int64_t heard_us, lease_written_us; /* boot time */
    uv_timer_t beat_timer, resend_timer, lease_timer, keep_timer, sync_timer, health_timer;
    struct hook *health; /* that runs now */
    struct hook *unkillable;
    char *nvml; /* program; NULL: it is not there */
    struct gpu_watch *gpu_watch;
    bool health_failed; /* and we asked to be drained for it */
    bool rebooting;     /* its program was started */
    bool new_boot;      /* the machine was started since the last agent */
    bool allow_plaintext;
    bool private_tried, can_private; /* private.c */
};

/* ---- agent.c ---- */
const Config *agent_common(const struct agent *agent); /* NULL: none yet */
void agent_task_node(const struct agent *agent, struct task_node *out);
void agent_set_config(struct agent *agent, const NodeConfig *config);
void agent_fill_found(struct agent *agent);

/* ---- agent_dirs.c ---- */
int agent_open_dirs(struct agent *agent, const struct agent_options *options, struct err *err);

/* ---- agent_timers.c ---- */
void agent_start_timers(struct agent *agent);
void agent_set_heartbeat(struct agent *agent, uint32_t ms);

/* ---- agent_send.c: what we say to the leader; nothing happens while nobody listens ---- */
void agent_send_grant_ack(struct agent *agent, uint32_t job, uint32_t attempt,
                          const struct err *refused, bool drain);
void agent_send_started(struct agent *agent, const struct attempt *held);
void agent_send_ended(struct agent *agent, struct attempt *held);
void agent_send_released(struct agent *agent, uint32_t job, uint32_t attempt,
                         const struct err *epilog);
void agent_send_found(struct agent *agent);
void agent_send_heartbeat(struct agent *agent);
void agent_ask_drain(struct agent *agent, const char *reason);
/* The hello, in the arena. */
NodeMessage *agent_hello(struct agent *agent, struct arena *arena);

/* ---- agent_ctl.c: what the leader says ---- */
void agent_on_message(struct agent *agent, const CtlMessage *message);
void agent_on_disconnect(struct agent *agent);

/* ---- agent_job.c: what becomes of a grant ---- */
/* Does whatever is due for it; may drop it. Safe to call at any time. */
void agent_advance(struct agent *agent, struct attempt *held);
void agent_step_news(void *agent, void *held, const StepNews *news);
void agent_step_lost(void *agent, void *held);
bool agent_write_record(struct agent *agent, const SpoolRecord *record, struct err *err);
/* What a late answer is for: the attempt is found by number, it may have gone meanwhile. */
struct agent_ref {
    struct agent *agent;
    uint32_t job, attempt;
};
struct agent_ref *agent_ref_new(struct agent *agent, const struct attempt *held);

/* ---- agent_hook.c ---- */
/* Private directories of its own, if it gets some; false: it was refused and is gone. */
bool agent_prepare(struct agent *agent, struct attempt *held);
void agent_start_prolog(struct agent *agent, struct attempt *held);
void agent_start_epilog(struct agent *agent, struct attempt *held);
/* One program at a time is wanted and another runs: agent_advance() comes when it is done. */
bool agent_hook_waits(struct agent *agent, struct attempt *held);
/* Processes of it outlive SIGKILL: has the node drained and the site's program run. */
void agent_unkillable(struct agent *agent, struct attempt *held, uint32_t step);
void agent_unkillable_stop(struct agent *agent);

/* agent_extern.c: a cgroup of the job for what is none of its steps. */
bool agent_prolog_flag(const struct agent *agent, const char *flag);
void agent_extern_open(struct agent *agent, struct attempt *held);
void agent_extern_kill(struct agent *agent, struct attempt *held);
void agent_extern_close(struct agent *agent, struct attempt *held);
void agent_extern_run(struct agent *agent, struct attempt *held, struct hook *hook);

/* gpu_watch.c: starts or stops what looks at GPUs of NVIDIA, when that is due. */
void agent_gpu_watch(struct agent *agent);
void agent_gpu_watch_stop(struct agent *agent);

/* ---- agent_launch.c ---- */
/* Nothing ran, or the supervisor died: a report of our own. */
void agent_fail_step(struct agent *agent, struct attempt *held, bool launch_failed,
                     const char *text);
/* The grant, unless it is there, and the launch, unless NULL. */
bool agent_write_grant(struct agent *agent, struct attempt *held, const SpoolLaunched *launched,
                       struct err *err);
/* The next thing on the way to the zygote, when there is a script. */
void agent_launch(struct agent *agent, struct attempt *held);

/* ---- agent_end.c ---- */
void agent_kill(struct agent *agent, struct attempt *held);
/* Holds back or lets go on; said again to a supervisor that is reached only later. */
void agent_freeze(struct agent *agent, struct attempt *held, FreezeCause cause, bool thaw);
/* agent_gang.c: stops or goes on; later, when who has its CPUs has stopped. */
void agent_gang_turn(struct agent *agent, struct attempt *held, bool go);
bool agent_launch_waits(struct agent *agent, struct attempt *held);
void agent_gang_turns(struct agent *agent); /* somebody stopped or ended */
void agent_freeze_again(struct attempt *held);
/* Others may have waited for it. */
void agent_forget(struct agent *agent, struct attempt *held);
/* A report came: synced to disk in a while, unless it is acknowledged before. */
void agent_keep_later(struct agent *agent, struct attempt *held);

/* ---- agent_find.c: after a restart, and when a channel breaks ---- */
/* Finds out what became of a launched step and makes `held` say so. */
void agent_find_step(struct agent *agent, struct attempt *held);
void agent_keep_ends(struct agent *agent);
void agent_recover(struct agent *agent);

/* ---- agent_health.c ---- */
void agent_health_init(struct agent *agent);
void agent_health_config(struct agent *agent); /* there is a configuration, or another one */
void agent_health_stop(struct agent *agent);

/* ---- agent_lease.c ---- */
/* A controller has answered what we sent then. */
void agent_heard(struct agent *agent, int64_t sent_us);
void agent_heard_beat(struct agent *agent, uint64_t seq);
/* Frozen for a lease that has begun anew: asks what is current. */
void agent_lease_again(struct agent *agent);
void agent_set_lease(struct agent *agent, uint32_t lease_ms);
void agent_lease_init(struct agent *agent);

/* ---- session.c ---- */
struct session *session_new(struct agent *agent, struct err *err);
void session_free(struct session *session);
bool session_send(struct session *session, const NodeMessage *message);
void session_reconnect(struct session *session, const char *why);
void session_set_controllers(struct session *session, char *const *addresses, size_t count);

/* ---- cgroups.c ---- */
char *cgroups_open(const char *root, const char *cluster, const char *node, char *words,
                   size_t words_bytes);
/* Does the kernel offer the controller to jobs in `dir`? NULL: any. */
bool cgroups_have(const char *dir, const char *controller);
/* Ends what is in the cgroup of an attempt and removes it; blocks a little. False: something lives. */
bool cgroups_end(const char *step_dir);
void cgroups_kill(const char *dir);                             /* what is in it; does not wait */
void cgroups_end_node(const char *cgroup, const char *run_dir); /* everything; for SIGQUIT */
/*
 * The same by marks in the environment of processes, where there are no cgroups. The socket is the
 * agent's: another cluster on this machine may have a node and a job of the same names.
 */
void cgroups_end_marked(uint32_t job, uint32_t attempt, const char *socket);

/* The connection to the leader, for other calls; NULL: none. */
struct rpc_client *session_client(struct session *session);
/* The controllers, the one that we go to first; borrowed, for now. */
const char *session_addresses(const struct session *session);
/* The controller we are connected to does not lead; `leader` may be "". */
void session_follow(struct session *session, const char *leader);

/* ---- vouch.c ---- */
extern const struct rpc_method vouch_methods[];
extern const size_t vouch_method_count;
int vouch_listen(struct agent *agent, const char *socket, struct err *err); /* spurd --login */
void vouch_listen_too(struct agent *agent, const char *socket);             /* a node */
void vouch_done(struct agent *agent);

/* ---- output.c ---- */
int output_listen(struct agent *agent, const char *address, struct err *err);

/* ---- join.c ---- */
/* The token that names this node, from the spool; "" when it has not joined. */
void join_credentials(void *agent, struct str *out);
bool join_is_due(const struct agent *agent);
bool join_renews(const struct agent *agent); /* its certificate ends soon */
int join_tls(struct agent *agent, const struct agent_options *options, struct err *err);
void join_show_ca(const struct agent *agent);
void join_start(struct agent *agent, struct rpc_client *client,
                void (*done)(void *ctx, const struct err *err), void *ctx);

#endif
