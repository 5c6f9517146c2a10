/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stepd.h - spurd's end of its talk with the zygote and with the supervisors of steps
 *
 * A launch is a packet to the zygote with one end of a socket pair; the supervisor speaks on that.
 * A zygote that dies or is of another version is replaced; launches that it did not take wait for
 * the next. Whether a launch that broke off had begun, the attempt's directory tells.
 */
#ifndef SPURD_STEPD_H
#define SPURD_STEPD_H

#include <uv.h>

#include "base/err.h"
#include "proto/step.pb-c.h"

struct stepd;
struct step_chan;

struct stepd_options {
    const char *program; /* path of spurstepd */
    const char *run_dir; /* the zygote's socket and the attempts' directories are here */
    void *ctx;
    void (*news)(void *ctx, void *owner, const StepNews *news);
    /* The channel is closed and gone. */
    void (*lost)(void *ctx, void *owner);
    void (*ready)(
        void *ctx); /* a zygote said hello: earlier launches are forked or never will be */
};

struct stepd *stepd_new(uv_loop_t *uv, const struct stepd_options *options, struct err *err);
/* Channels are closed without a word; supervisors go on. The loop must run a little longer. */
void stepd_free(struct stepd *stepd);
bool stepd_is_ready(const struct stepd *stepd);
/* A child of ours ended: was it the zygote? */
void stepd_reap(struct stepd *stepd);

/* `owner` comes back with everything about this step. */
struct step_chan *stepd_launch(struct stepd *stepd, const StepTask *task, void *owner,
                               struct err *err);

/* The same for somebody else than stepd_options: a step of srun. `ops` must outlive the channel. */
struct step_chan_ops {
    void (*news)(void *ctx, void *owner, const StepNews *news);
    void (*lost)(void *ctx, void *owner);
};
struct step_chan *stepd_launch_as(struct stepd *stepd, const StepTask *task,
                                  const struct step_chan_ops *ops, void *owner, struct err *err);
/* Stops and restarts what it says; the supervisor is held back. */
void stepd_pause(struct step_chan *chan, bool on);

enum stepd_found { STEPD_ABSENT, STEPD_ALIVE, STEPD_DEAD };
/* What the directory of an attempt says: never begun, supervised, or abandoned. */
enum stepd_found stepd_look(const char *dir);
/* Connects to a supervisor that an earlier spurd left behind; ERR_NOT_FOUND: not listening (yet). */
struct step_chan *stepd_connect(struct stepd *stepd, const char *dir, const char *name, void *owner,
                                struct err *err);
struct step_chan *stepd_connect_as(struct stepd *stepd, const char *dir, const char *name,
                                   const struct step_chan_ops *ops, void *owner, struct err *err);

/* False: the supervisor is gone, which `lost` says or has said. */
bool stepd_order(struct step_chan *chan, const StepOrder *order);
/* No more of it; `lost` is not called. */
void stepd_close(struct step_chan *chan);

/* The end report in an attempt's directory or in `keep_file`; NULL: there is none. */
StepEnded *stepd_read_report(const char *dir, const char *name, const char *keep_file);

#endif
