/* SPDX-License-Identifier: Apache-2.0 */
/*
 * member.h - the etcd member that a controller runs
 *
 * The member is a process of its own and outlives the controller: a controller that starts finds it
 * by its process id and start time and takes it over. When it dies it is started again, with a
 * pause that grows.
 *
 * In `dir`: data/ (etcd's), etcd.pid, etcd.log.
 */
#ifndef LOG_MEMBER_H
#define LOG_MEMBER_H

#include <uv.h>

#include "base/err.h"
#include "base/str.h"
#include "sys/spawn.h"

enum member_state { MEMBER_STARTED, MEMBER_ADOPTED, MEMBER_ENDED };

struct member_options {
    uv_loop_t *uv;
    const char *binary;     /* NULL: /usr/bin/etcd */
    const char *dir;        /* made when it is not there */
    const char *name;       /* of the controller */
    const char *client_url; /* "https://c1:6821", told to others */
    const char *peer_url;   /* "https://c1:6822" */
    /* What it listens on: etcd wants addresses here, not names. NULL: the same. */
    const char *listen_client_url, *listen_peer_url;
    const char *cluster; /* "c1=https://c1:6822,c2=…", ourselves too */
    const char *token;   /* of the cluster; members of another are refused */
    bool existing;       /* joins a cluster that runs, instead of making one */
    /* TLS for both URLs when they say https; all three or none. */
    const char *cert_path, *key_path, *ca_path;
    int cgroup_fd;                      /* 0: ours */
    const struct spawn_user *user;      /* NULL: ours */
    unsigned heartbeat_ms, election_ms; /* 0: 50 and 300 */
    void (*state)(void *ctx, enum member_state state, const char *why);
    void *ctx;
};

struct member;

/* Takes the running one over, or starts it. */
int member_start(const struct member_options *options, struct member **out, struct err *err);
pid_t member_pid(const struct member *member); /* 0 while it is down */
/* The last thing that etcd wrote to its log, for ours; empty when there is nothing. */
void member_last_line(const struct member *member, struct str *out);
/* Lets go of it; it runs on. */
void member_release(struct member *member);
/* Ends it (TERM, then KILL after 5 s) and lets go. Blocks; for a controller that leaves the cluster. */
void member_end(struct member *member);
/* The same at once, when nobody needs what it holds any more. */
void member_kill(struct member *member);

#endif
