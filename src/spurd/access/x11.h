/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x11.h - X11 from jobs on this node to where they were asked for: NodeAccess.ForwardX11
 *
 * x11.c       displays: who may have one, where it listens, how long it lives
 * x11_conn.c  the connections of a display and what goes through them
 * x11_file.c  the file with its cookie
 *
 * (1) Only 127.0.0.1 is listened on, and only who shows the display's cookie gets through: it is in a file
 *     that the job's user alone can read. What the user's own X server wants to see never comes here.
 * (2) A display of a step lives as long as its stream; that of a batch script as long as the job is here,
 *     and its connections wait a while for the command that forwards them.
 * (3) Each connection has a window each way (LIMIT_X11_WINDOW): one that nobody reads holds up no other.
 */
#ifndef SPURD_X11_H
#define SPURD_X11_H

#include "base/limits.h"
#include "base/vec.h"
#include "base/x11.h"
#include "proto/x11.pb-c.h"
#include "spurd/access/as_user.h"
#include "spurd/root.h"
#include "spurd/task/task.h"

struct x11_conn;

struct x11 {
    struct agent *agent;
    struct rpc_call *call; /* NULL: nobody forwards (yet) */
    uint32_t job, attempt;
    bool batch;   /* the script's */
    bool closing; /* no new connections, no frames */
    unsigned refs;
    uint32_t display;
    uint8_t cookie[X11_COOKIE_BYTES];
    char *path;      /* of the file with the cookie */
    char *home_file; /* or the user's own, as that user */
    struct as_user user;

    uv_tcp_t listener;
    uv_timer_t timer; /* until connections that wait are given up */
    VEC(struct x11_conn *) conns;
    uint32_t last; /* number of a connection */
    uint8_t buffer[LIMIT_X11_FRAME];
};

struct x11_displays {
    VEC(struct x11 *) list;
};

/* ---- for the agent ---- */

extern const struct rpc_method x11_methods[];
extern const size_t x11_method_count;

int x11_open(struct agent *agent, struct err *err);
void x11_close(struct agent *agent);
/* A display for the script, when its environment asks for one; what it says goes to `node`. */
void x11_batch(struct agent *agent, const struct attempt *held, const JobPayload *payload,
               struct arena *arena, struct task_node *node);
/* The attempt has gone. */
void x11_forget(struct agent *agent, uint32_t job, uint32_t attempt);

/* ---- x11.c ---- */

void x11_ref(struct x11 *x11);
void x11_unref(struct x11 *x11); /* frees it with the last */

/* ---- x11_conn.c ---- */

void x11_on_connection(uv_stream_t *listener, int status);
void x11_on_data(struct x11 *x11, const X11Data *data);
/* Somebody forwards now: those that waited go on. */
void x11_resume(struct x11 *x11);
void x11_close_all(struct x11 *x11);

/* ---- x11_file.c ---- */

int x11_write_file(struct x11 *x11, const JobOwner *owner, struct err *err);
/* In the user's own file, in a worker; `done` is called with the display, whatever happened. */
void x11_write_home(struct x11 *x11, const char *home,
                    void (*done)(struct x11 *x11, const struct err *err));
void x11_remove_file(struct x11 *x11);

#endif
