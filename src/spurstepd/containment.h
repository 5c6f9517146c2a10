/* SPDX-License-Identifier: Apache-2.0 */
/*
 * containment.h - what holds running processes of a step: their containment, freezing, lease, limits, their end
 *
 * The same for a batch script (step.h) and for tasks of srun (tasks.h), who say how words reach spurd and
 * the user. Only the last two may be called when the processes have ended.
 */
#ifndef SPURSTEPD_CONTAINMENT_H
#define SPURSTEPD_CONTAINMENT_H

#include "base/util.h"
#include "proto/step.pb-c.h"
#include "spurstepd/contain.h"
#include "spurstepd/limit.h"
#include "spurstepd/track.h"

enum { HOLD_SECOND_US = 1000000 };

struct containment {
    const StepTask *task;
    struct contain contain;
    struct limit limit;
    struct track track; /* task is NULL before something runs */
    unsigned frozen;    /* FreezeCause bits */
    bool ended_by_us;   /* before it ended; `why` says what for */
    JobState why;

    /* Boot times of what is due; -1: nothing. */
    int64_t kill_at_us;    /* SIGKILL to all, and again */
    int64_t give_up_at_us; /* processes that do not die */
    int64_t lease_at_us;

    bool is_job; /* what it is called when it is cancelled; else a step */
    void *owner;
    void (*tell)(void *owner, const StepNews *news); /* spurd */
    void (*say)(void *owner, const char *text);      /* the user; one line without its end */
    void (*note)(void *owner, const char *text);     /* the same while it goes on; NULL: say */
};

void containment_set_frozen(struct containment *hold, unsigned frozen, int64_t now_us);

/* Freezes when the lease is over, or notes when that will be. */
void containment_check_lease(struct containment *hold, int64_t now_us);
void containment_obey_freeze(struct containment *hold, const StepFreeze *order, int64_t now_us);

/*
 * TERM and CONT, and KILL after a while; asking again may only bring the end nearer. `quiet`: the user is not
 * told. One that froze because its lease ended may have a successor on another node: it runs no further
 * instruction, not even to handle a SIGTERM.
 */
void containment_end(struct containment *hold, unsigned wait_s, JobState why, bool quiet,
                     int64_t now_us);

/* It uses more memory than it may where the kernel does not see to that. */
void containment_over_memory(struct containment *hold, bool quiet, int64_t now_us);

/* Kills what is due, and again after a moment; the first time says from when on that is given up. */
void containment_check_kill(struct containment *hold, int64_t now_us);

/* Processes that are left after unkillable_timeout from the first call on are left alone. */
void containment_give_up_later(struct containment *hold, int64_t now_us);

/* The earliest of what is due here while processes run (`running`) and after; -1: nothing. */
int64_t containment_next_us(const struct containment *hold, bool running, int64_t now_us);

/* scontrol notify: the text is written where the job writes its errors. */
void containment_notify(struct containment *hold, const char *text);

#endif
