/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl.h - a fake controller that drives a real spurd
 *
 * The test process serves Agents on a loop of its own; waiting runs the loop. Messages of the node
 * are kept in order until a test takes them. spurd is a child process with directories of its own.
 */
#ifndef SPURD_TEST_CTL_H
#define SPURD_TEST_CTL_H

#include <sys/types.h>
#include <uv.h>

#include "base/vec.h"
#include "proto/agent.pb-c.h"
#include "rpc/rpc.h"

enum { CTL_WAIT_MS = 15000, CTL_BATCH = 0xfffffffb };

struct ctl {
    uv_loop_t uv;
    struct rpc_loop *rpc;
    struct rpc_server *server;
    struct rpc_call *stream; /* of the node; NULL: not connected */
    uint16_t port;
    char dir[64];
    pid_t spurd;
    uint64_t epoch;

    /* The next welcome. */
    NodeConfig config;
    Config common;
    NodeSpec spec;
    bool silent;    /* no welcome by itself */
    bool keep_none; /* the welcome keeps nothing; else everything that the hello names */
    uint32_t lease_ms;
    bool answer_beats;
    uint8_t verify_key[32];
    bool has_verify_key;

    VEC(NodeMessage *) inbox;
    NodeHello *hello; /* the last one */
    unsigned hellos;
    const char *sysroot; /* of spurd, or NULL */
    const char *spool;   /* instead of DIR/spool */
    const char *token;   /* join token file, or NULL */
    char joined_with[64];
    struct key *key; /* signs the tokens of nodes that join */
    struct jwt_keys *tokens;
    char shown_node[64]; /* which node the last session proved to be */
    uid_t as_uid;        /* run spurd as; 0: as we are */
    bool no_cgroups;
    int patience; /* how many times CTL_WAIT_MS; 1 */
};

void ctl_open(struct ctl *ctl);
void ctl_close(struct ctl *ctl);

void ctl_start_spurd(struct ctl *ctl);
void ctl_kill_spurd(struct ctl *ctl, int sig); /* and waits for its end */
void ctl_run(struct ctl *ctl, int ms);         /* lets time pass */
/* Until `hellos` is at least this many. */
void ctl_wait_hello(struct ctl *ctl, unsigned hellos);
void ctl_drop_stream(struct ctl *ctl);

/* The first message of this kind (NODE_MESSAGE__WHAT_*), taken out, the caller's; NULL in time. */
NodeMessage *ctl_take(struct ctl *ctl, int what, int wait_ms);
/* The same, about this job; fails the test when there is none. */
NodeMessage *ctl_expect(struct ctl *ctl, int what, uint32_t job);
void ctl_expect_none(struct ctl *ctl, int what, int wait_ms);
void ctl_free(NodeMessage *message);
void ctl_discard(struct ctl *ctl, int what); /* those that have come */

void ctl_send(struct ctl *ctl, CtlMessage *message);
/* One-node batch job with output in DIR/JOB.out, launched with the grant when script is given. */
struct ctl_job {
    uint32_t job, attempt;
    const char *script;
    uid_t uid;
    int64_t limit_s; /* 0: none */
    bool get_user_env;
    const char *const *nodes; /* several nodes; NULL: alone */
    size_t node_count;
    bool no_requeue;
    const struct key *sign_with;
    bool expired;
};
void ctl_grant(struct ctl *ctl, const struct ctl_job *job);
void ctl_launch(struct ctl *ctl, const struct ctl_job *job);
void ctl_revoke(struct ctl *ctl, uint32_t job, uint32_t attempt, unsigned kill_wait_s);
void ctl_ack(struct ctl *ctl, uint32_t job, uint32_t attempt);
/* Takes the end report of a job, acknowledges it, and gives its exit status. */
uint32_t ctl_finish(struct ctl *ctl, uint32_t job, uint32_t attempt);

/* DIR/name as text, freed by the caller; "" when absent. */
char *ctl_file(struct ctl *ctl, const char *name);
void ctl_put(struct ctl *ctl, const char *name, const char *text, mode_t mode);
/* Waits until it is there. */
void ctl_wait_file(struct ctl *ctl, const char *name);

#endif
