/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x11.h - `--x11`: windows of a job's programs appear where the command was called
 *
 * x11.c         what is asked for; the process that forwards
 * x11_tunnel.c  that process: nodes on one side, the X server on the other
 *
 * The forwarding is done by a child of the command, which ends with it; that of sbatch stays until the job
 * has ended. The cookie of the X server is known to that process alone: nodes have one of their own.
 */
#ifndef CLI_X11_H
#define CLI_X11_H

#include <sys/socket.h>
#include <sys/types.h>

#include "base/x11.h"
#include "cli/cli.h"
#include "proto/run.pb-c.h"

/* In a job that was submitted with --x11: srun forwards without being told. */
#define X11_VARIABLE "SPUR_X11"

struct x11_server {
    struct x11_display display;
    struct x11_auth auth;
    struct sockaddr_storage address;
    socklen_t address_len;
};

/* A node to forward from. */
struct x11_node {
    const char *name, *address, *token;
    ProtobufCBinaryData layout, proof; /* of a step; without: the job's */
    uint32_t job_id;
    bool batch; /* the script's display */

    /* what it said; number and cookie are asked for again when a stream breaks */
    bool ready;
    uint32_t number;
    uint8_t cookie[X11_COOKIE_BYTES];
    char display[32];
    char *xauthority; /* NULL: the user's own file */
};

/* Where the X server is and what it wants to see. 0, or the exit code after a complaint. */
int x11_find_server(const struct cli *cli, struct x11_server *out);

struct x11_forward {
    pid_t pid;
    int life; /* the child ends when this is closed */
};

/* Starts the child and waits for what each node says; false: `err`, and nothing is left. */
bool x11_start(const struct x11_server *server, struct x11_node *nodes, size_t count,
               struct x11_forward *out, struct err *err);
void x11_stop(struct x11_forward *forward);

/* For a batch job: a process that stays until the job has ended. */
void x11_stay(struct cli *cli, const struct x11_server *server, uint32_t job_id);

/* ---- x11_tunnel.c ---- */

/* What a node said, on its way from the child. */
struct x11_said {
    uint32_t node;
    bool failed;
    uint32_t display;
    char text[512]; /* why, or the file with the cookie */
};

/* Forwards until `life` is closed, or (`life` -1) the nodes have ended it. Says on `say` how it went. */
void x11_tunnel(const struct x11_server *server, struct x11_node *nodes, size_t count, int life,
                int say);

#endif
