/* SPDX-License-Identifier: Apache-2.0 */
/*
 * root.h - the agent's state, by which its groups know each other
 *
 * What a group does is in its own header:
 *
 *     top (agent.c, agent_ctl.c, ...) --> attempt --> step --> access --> link --> task --> record, node
 *
 * Calls go down. Where a lower group has something to tell, it does so through functions that the group above
 * gave it: struct session_ops (link/session.h), struct steps_ops (step/step.h).
 */
#ifndef SPURD_ROOT_H
#define SPURD_ROOT_H

#include "proto/agent.pb-c.h"
#include "rpc/rpc.h"
#include "spurd/agent.h"
#include "spurd/node/inventory.h"
#include "spurd/record/attempt.h"
#include "spurd/record/journal.h"

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
struct stepd;
struct hook;
struct output_server;
struct steps;
struct x11_displays;
struct task_spank;

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
    char *container;                   /* the program spur-container; NULL: not installed */
    char *pmix;                        /* the program spurstepd-pmix; NULL: not installed */
    struct task_spank *spank;          /* plugins of this node: task/spank.h */
    struct spank_helper *spank_helper; /* attempt/agent_spank.c; NULL: it does not run */
    struct steps *steps;               /* of srun: step.h */
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

/* The configuration that all nodes share; NULL: none yet. */
static inline const Config *agent_common(const struct agent *agent)
{
    return agent->config ? agent->config->common : NULL;
}

#endif
