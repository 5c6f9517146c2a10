/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_priv.h - the supervisor's own state
 */
#ifndef SPURSTEPD_STEP_PRIV_H
#define SPURSTEPD_STEP_PRIV_H

#include <sys/types.h>

#include "base/err.h"
#include "spurstepd/chan.h"
#include "spurstepd/containment.h"
#include "spurstepd/prolog.h"
#include "spurstepd/step.h"

enum step_phase {
    STEP_RUNNING, /* the script is alive */
    STEP_ENDING,  /* it is not; what it left behind is being ended */
    STEP_ENDED,   /* nothing is left; nobody was there to hear the report */
    STEP_DONE,
};

struct step {
    StepTask *task;
    int dir_fd, signal_fd, timer_fd;
    struct chan chan;
    struct containment hold;
    enum step_phase phase;

    pid_t script;
    struct epilog epilog;
    int status; /* of the script, as wait gives it */
    Usage usage;
    StepStarted started;
    StepEnded ended;
    char text[ERR_TEXT_BYTES]; /* of the report */
    bool unkillable;
    bool start_said;

    /* Boot times of what is due; -1: nothing. */
    int64_t sync_at_us; /* nobody heard the report so far */
    int64_t say_at_us;  /* that it has started, unless it ends before */
    int64_t timer_us;   /* what the timer is set to */
};

/* step.c */
void step_end(struct step *step, int64_t now_us);

/* step_act.c: what can happen to a running step */
void step_hold(struct step *step); /* before anything else */
void step_obey(struct step *step, const StepOrder *order, int64_t now_us);
void step_kill(struct step *step, unsigned wait_s, JobState why, int64_t now_us);
void step_check_lease(struct step *step, int64_t now_us);
/* Looks at what it uses now; `say` tells spurd. */
void step_sample(struct step *step, bool say, int64_t now_us);
void step_check_limit(struct step *step, int64_t now_us);

#endif
