/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stepd_priv.h - the zygote's client and the channels
 */
#ifndef SPURD_STEPD_PRIV_H
#define SPURD_STEPD_PRIV_H

#include "base/vec.h"
#include "spurd/task/stepd.h"

struct step_chan {
    struct stepd *stepd;
    int fd;
    uv_poll_t poll;
    void *owner;
    const struct step_chan_ops *ops; /* NULL: those of the options */
    bool closed, paused;
};

/* A launch on its way. */
struct launch {
    uint8_t *bytes;
    size_t len;
    int chan_fd, file_fd; /* theirs; file_fd -1 when the task is in bytes */
};

struct stepd {
    uv_loop_t *uv;
    struct stepd_options options;
    char *program, *run_dir, *socket_path;
    int fd;    /* to the zygote; -1: none */
    pid_t pid; /* of the zygote when it is our child; 0: not */
    uv_poll_t *poll;
    uv_timer_t timer; /* the next try */
    bool ready;       /* it said hello */
    bool spawned;     /* we started one and wait for its socket */
    bool stopping;
    unsigned tries;
    VEC(struct launch) queue;
};

/* stepd_chan.c */
struct step_chan *stepd_chan_new(struct stepd *stepd, int fd, void *owner);

#endif
