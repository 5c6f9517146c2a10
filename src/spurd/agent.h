/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent.h - spurd without its main(): what a node does for its controllers
 *
 * Everything runs on one libuv loop. Read attempt/agent_job.c for what becomes of a grant.
 */
#ifndef SPURD_AGENT_H
#define SPURD_AGENT_H

#include <uv.h>

#include "base/err.h"

struct agent;

struct agent_options {
    const char *name;        /* of the node */
    const char *controllers; /* comma list of addresses, tried in turn */
    const char *listen;      /* "host:port" for NodeAccess; NULL: do not listen */
    const char *addr;        /* where others reach us; NULL: the host's name */
    const char *spool_dir;
    const char *run_dir; /* NULL: chosen, in memory if there is some */
    const char *program; /* spurstepd */
    const char *conf;    /* the configuration file, beside which plugstack.conf is looked for */
    const char *plugstack, *plugin_dir; /* what it says of SPANK plugins; NULL: nothing */
    const char *sysroot;                /* NULL: this machine */
    const char *cgroup_root;            /* NULL: found; "none": do without */
    const char *token_file;             /* join token; NULL: none */
    const char *tls_ca, *tls_cert, *tls_key;
    bool allow_plaintext;
    unsigned verbose;         /* more detail in the log than the configuration says */
    const char *host_socket;  /* a node: where commands of this host find us; NULL: nowhere */
    const char *login_socket; /* not NULL: no node; vouches for the users of this host there */
};

/* Reads the spool, finds the steps that live, and begins to look for the leader. */
struct agent *agent_new(uv_loop_t *uv, const struct agent_options *options, struct err *err);

/* Lets go of everything; steps go on. `stopped` comes when the loop has nothing of ours left. */
void agent_stop(struct agent *agent);
/* The same, but first every job and every process of this node is ended. */
void agent_end_all(struct agent *agent);
void agent_free(struct agent *agent); /* after the loop has ended */

void agent_child_ended(struct agent *agent);    /* SIGCHLD */
uint16_t agent_port(const struct agent *agent); /* where it listens; 0: it does not */

#endif
