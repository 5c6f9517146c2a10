/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chan.h - the supervisor's end of its talk with spurd
 *
 * It begins with the socket that came with the task. When that breaks, spurd was killed or is being
 * upgraded: the supervisor then listens on DIR/NAME.sock, where the next spurd finds it.
 */
#ifndef SPURSTEPD_CHAN_H
#define SPURSTEPD_CHAN_H

#include "base/util.h"
#include "proto/step.pb-c.h"

enum { CHAN_PACKET_BYTES = 32 * 1024 };

struct chan {
    int fd;        /* -1: nobody is there */
    int listen_fd; /* -1: not needed so far */
    int dir_fd;
    const char *name;
};

void chan_open(struct chan *chan, int fd, int dir_fd, const char *name);
void chan_close(struct chan *chan);

/* The connection is of no use any more. */
void chan_lost(struct chan *chan);

/* A packet that cannot be sent breaks the connection; spurd asks again. False: it was not. */
bool chan_send(struct chan *chan, const StepNews *news);

/* The next order, freed with step_order__free_unpacked(); NULL when there is none (any more). */
StepOrder *chan_receive(struct chan *chan);

/* Somebody waits on the listening socket. True when it was spurd, which is now connected. */
bool chan_accept(struct chan *chan);

#endif
