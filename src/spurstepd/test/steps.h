/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps.h - a zygote and tasks for tests, without spurd
 *
 * SPURSTEPD in the environment names the program; everything lives in a directory of its own.
 */
#ifndef SPURSTEPD_TEST_STEPS_H
#define SPURSTEPD_TEST_STEPS_H

#include <sys/types.h>

#include "base/str.h"
#include "proto/step.pb-c.h"

struct steps {
    char dir[64];
    char cgroup[128]; /* empty: not to be had */
    int zygote_fd;
    pid_t zygote;
    uint32_t next_job;
};

void steps_open(struct steps *steps);
void steps_close(struct steps *steps);
void steps_connect(struct steps *steps);

/* A task that runs `script` as ourselves with output in DIR/JOB.out; change it, then launch. */
StepTask *steps_task(struct steps *steps, const char *script);
void steps_task_free(StepTask *task);
void steps_set(char **field, const char *text);

/* Returns our end of the step's channel. */
int steps_launch(struct steps *steps, const StepTask *task);
void steps_order(int chan, const StepOrder *order);
/* The next news, at most `wait_ms`; NULL: none, or the connection ended. */
StepNews *steps_news(int chan, int wait_ms);
/* Goes on to the end report, which is the caller's; NULL when there is none in time. */
StepNews *steps_wait_end(int chan, int wait_ms);

/* Launches and waits until the supervisor has gone. Returns the report. */
StepNews *steps_finish(struct steps *steps, const StepTask *task, int wait_ms);

/* The file's text, freed by the caller; "" when it is absent. */
char *steps_read(const char *path);
char *steps_output(struct steps *steps, const StepTask *task);

#endif
