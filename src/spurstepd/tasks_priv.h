/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tasks_priv.h - the state of a supervisor of tasks
 */
#ifndef SPURSTEPD_TASKS_PRIV_H
#define SPURSTEPD_TASKS_PRIV_H

#include <sys/types.h>

#include "base/err.h"
#include "base/vec.h"
#include "spurstepd/contain.h"
#include "spurstepd/limit.h"
#include "spurstepd/tasks.h"

enum {
    TASKS_INPUT_BYTES = 64 * 1024, /* what srun may send before we say that it was taken */
    TASKS_READ_BYTES = 48 * 1024,  /* of a task at a time */
    TASKS_PACKET_BYTES = 60 * 1024,
};

enum tasks_phase { TASKS_RUNNING, TASKS_ENDING /* all tasks ended; leftovers go */, TASKS_DONE };

struct task_one {
    uint32_t number;
    pid_t pid; /* 0: not running */
    int in, out, err;
    int status;
    bool exited;
    bool exit_due;    /* to be said when its output is out */
    uint64_t in_done; /* bytes of standard input written to it */
};

struct packet {
    uint8_t *bytes;
    size_t len;
};

struct tasks {
    StepTask *task;
    int dir_fd, chan_fd, signal_fd, timer_fd;
    struct contain contain;
    struct limit limit;
    enum tasks_phase phase;
    struct task_one *list;
    size_t count;

    VEC(struct packet) queue; /* what the channel did not take yet */
    bool lost;                /* spurd, and with it srun, is gone */

    uint8_t *input;
    size_t input_len;     /* bytes held */
    uint64_t input_first; /* stream offset of the first of them */
    bool input_eof;
    uint64_t credit_due;

    bool ended_by_us;
    JobState why;
    Usage usage;
    char text[ERR_TEXT_BYTES];
    bool launch_failed;

    int64_t kill_at_us, give_up_at_us; /* boot time; -1: not due */
    int64_t started_us;                /* wall time */
};

/* tasks_start.c: every task, or none and `err`. */
int tasks_start(struct tasks *tasks, struct err *err);

/* tasks_io.c */
void tasks_send(struct tasks *tasks, const StepNews *news); /* waits in the queue if need be */
void tasks_send_srun(struct tasks *tasks, RunStepOut *out);
void tasks_flush(struct tasks *tasks);
/* A task's stream can be read. */
void tasks_read(struct tasks *tasks, struct task_one *one, bool error);
/* Bytes from srun; false: more than was granted. */
bool tasks_input(struct tasks *tasks, const StepData *data);
void tasks_write_input(struct tasks *tasks);
void tasks_close_one(struct task_one *one);
/* Says that tasks ended, once their output is out. */
void tasks_say_exits(struct tasks *tasks);

#endif
