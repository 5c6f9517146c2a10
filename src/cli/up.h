/* SPDX-License-Identifier: Apache-2.0 */
/*
 * up.h - a private cluster on this machine: `spur up` and `spur down`
 *
 * Everything of one cluster is under one directory, so that several run side by side and nothing is
 * left behind:
 *
 *     D/spur.conf (or slurm.conf)  the configuration         D/run/NAME.pid   who runs
 *     D/env         what a shell sources                     D/run/ctl1.sock  the controller's socket
 *     D/log/NAME.log                                         D/state/ctlN/    the controllers' state
 *     D/spool/NODE/ the agents' spool                        D/run/ports      first port, controllers
 *
 * `spur up` on a directory that holds a cluster starts what does not run of it: after a reboot or a
 * crash, with the same state and ports.
 */
#ifndef CLI_UP_H
#define CLI_UP_H

#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"

struct up_options {
    const char *dir;
    const char *conf;   /* a configuration to start from; NULL: made from the numbers below */
    unsigned nodes;     /* agents, when conf names no nodes */
    unsigned cpus;      /* per node; 0: those of this machine */
    uint64_t memory_mb; /* per node; 0: that of this machine */
    const char *gpus;   /* "mi300x:8", NULL: none */
    unsigned controllers;
    unsigned base_port; /* 0: a free range is looked for */
    unsigned wait_s;    /* how long the nodes may take to be idle */
    unsigned rest_port; /* of spurrestd; 0: 6820 when it is free */
    bool no_rest;       /* no spurrestd */
    bool quiet;
    bool sized; /* something was said about how the cluster is made */
};

typedef VEC(char *) up_names;

/* Ports: controllers from the first on, ten apart; nodes from UP_NODE_PORTS above it. */
enum { UP_PORT_SPAN = 2000, UP_REST_PORT = 90, UP_NODE_PORTS = 100, UP_MOST_NODES = 1024 };
enum { UP_DBD_PORT = 99 };
#define UP_DBD "spurdbd" /* the name of the accounting daemon under D/run, D/log and D/state */

/* Returns -1 to go on, else the exit code. */
int up_read_options(int argc, char **argv, struct up_options *options);

int up_choose_ports(struct up_options *options, size_t nodes, struct err *err);
int up_read_ports(struct up_options *options, struct err *err);
int up_write_ports(const struct up_options *options, struct err *err);

/* The path of the configuration that an earlier `spur up` wrote, or NULL; the caller frees it. */
char *up_conf_found(const char *dir);
/* The names of its nodes. */
int up_conf_nodes(const char *path, up_names *nodes, struct err *err);
/* Whether it leaves accounting on. */
bool up_conf_accounts(const char *path);
/* Writes the configuration; gives its path and the names of its nodes (the caller frees both). */
int up_conf_write(const struct up_options *options, char **path, up_names *nodes, struct err *err);

/* With an invitation (a file) it is a new one; NULL: one that was there before. */
int up_start_controller(const struct up_options *options, const char *conf, unsigned i,
                        const char *invitation, struct err *err);
bool up_is_removed(const struct up_options *options, unsigned i);
char *up_socket_list(const struct up_options *options); /* the caller frees it */
/* Adds or removes controllers of the running cluster until there are `wanted`. */
int up_change(struct up_options *options, const char *conf, unsigned wanted, struct err *err);

/* Several controllers: names them and their addresses in the configuration. */
int up_conf_add_hosts(const char *path, const struct up_options *options, struct err *err);
/* The port of a controller; its etcd member has the fourth and fifth above it. */
static inline unsigned up_port(const struct up_options *options, unsigned controller)
{
    return options->base_port + 10 * controller;
}

/*
 * Starts spurrestd, as a user who is not the controllers' where that is possible, and waits until it serves. An
 * error is no reason to end the cluster.
 */
int up_start_rest(struct up_options *options, struct err *err);
/* Whether a port of this host's loopback is free. */
bool up_port_is_free(unsigned port);

/*
 * Starts `program` (spurctld, spurd) with argv in the background; its output goes to
 * D/log/NAME.log, its process id to D/run/NAME.pid.
 */
int up_start(const char *dir, const char *name, const char *program, char *const *argv,
             struct err *err);
/* The same as another user (NULL: ourselves), with `dir_fd` (if not negative) as descriptor 8. */
struct spawn_user;
int up_start_as(const char *dir, const char *name, const char *program, char *const *argv,
                const struct spawn_user *user, int dir_fd, struct err *err);

/* True when the process that D/run/NAME.pid names is ours and alive; *pid is set then. */
bool up_alive(const char *dir, const char *name, int *pid);

/* Ends every process of the cluster under `dir`; *count says how many were running. */
int up_stop_all(const char *dir, unsigned *count, struct err *err);

#endif
