/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tasks_priv.h - the state of a supervisor of tasks
 */
#ifndef SPURSTEPD_TASKS_PRIV_H
#define SPURSTEPD_TASKS_PRIV_H

#include <sys/types.h>

#include "base/err.h"
#include "base/vec.h"
#include "spurstepd/chan.h"
#include "spurstepd/containment.h"
#include "spurstepd/prolog.h"
#include "spurstepd/tasks.h"

enum {
    TASKS_INPUT_BYTES = 64 * 1024,   /* what srun may send before we say that it was taken */
    TASKS_WATCH_BYTES = 64 * 1024,   /* the same for all who watch */
    TASKS_READ_BYTES = 48 * 1024,    /* of a task at a time */
    TASKS_WINDOW_BYTES = 512 * 1024, /* of frames that srun has not acknowledged */
    TASKS_SECOND_US = 1000000,
};

enum tasks_phase {
    TASKS_RUNNING,
    TASKS_ENDING, /* all tasks ended; leftovers go */
    TASKS_ENDED,  /* nothing is left; what they wrote is on its way */
    TASKS_DONE,   /* spurd has the report, srun the output */
};

struct task_one {
    uint32_t number;
    pid_t pid; /* 0: not running */
    int in, out, err;
    int go_fd; /* its process waits for a byte from here; -1: it does not wait */
    int status;
    bool exited;
    bool exit_due;    /* to be said when its output is out */
    uint64_t in_done; /* bytes of standard input written to it */
    Usage ended;      /* of its process, once it is gone */
    struct epilog epilog;
};

/* A packed StepNews on its way. */
struct frame {
    uint8_t *bytes;
    size_t len;
    uint64_t seq; /* 0: for spurd alone, not kept */
};

/* Whose bytes are in the buffer of standard input. */
struct input_part {
    uint32_t from; /* 0: srun */
    bool has_only;
    uint32_t only; /* for this task alone */
    size_t len;
};

struct tasks;

/* A descriptor that a plug wants to hear of. */
struct tasks_watch {
    int fd;
    short events;
    void *data;
    void (*ready)(struct tasks *tasks, void *data, short events);
};

struct tasks {
    StepTask *task;
    int dir_fd, signal_fd, timer_fd;
    struct chan chan;
    struct containment hold;
    enum tasks_phase phase;
    struct task_one *list;
    size_t count;

    VEC(struct frame) frames; /* what is not sent yet, or not acknowledged */
    size_t sent;              /* how many of them the channel has taken */
    size_t kept_bytes;
    uint64_t last_seq;
    bool deaf; /* srun will not come back: what the tasks write is dropped */

    uint8_t *input;
    size_t input_len;     /* bytes held */
    uint64_t input_first; /* stream offset of the first of them */
    uint64_t input_taken; /* bytes that came from srun */
    bool input_eof;
    uint64_t credit_due;
    VEC(struct input_part) input_parts;

    VEC(struct tasks_watch) watches;
    struct relay *relay;
    struct pmi *pmi;
    struct pmix *pmix;

    Usage usage;
    StepEnded ended;
    char text[ERR_TEXT_BYTES];        /* for srun too */
    char report_text[ERR_TEXT_BYTES]; /* for the report alone */
    bool launch_failed, over_said, report_written;
    int64_t leave_at_us; /* boot time: all has ended and no spurd came; -1: one is there */
    bool left_alone;     /* and that is why we go */

    int64_t started_us; /* wall time */
};

/* tasks.c: `ready` is called when something can be read, or its other end is closed. */
void tasks_watch(struct tasks *tasks, int fd, void *data,
                 void (*ready)(struct tasks *tasks, void *data, short events));
void tasks_watch_for(struct tasks *tasks, int fd, short events);
void tasks_unwatch(struct tasks *tasks, int fd);

/* tasks_end.c: notes who has ended. False: nobody is left. */
bool tasks_reap(struct tasks *tasks, int64_t now_us);
/* Is everything that the tasks wrote on its way to srun? */
bool tasks_all_read(const struct tasks *tasks);
/* Nothing of the step is left, or we gave up on what is. */
void tasks_ended(struct tasks *tasks);
/* Processes are left that SIGKILL does not end: the step ends without them. */
void tasks_give_up(struct tasks *tasks);
/* The last frame; `news` may say more to spurd. */
void tasks_say_over(struct tasks *tasks, StepNews *news);
/* While spurd is away, the report is in the step's directory too. */
void tasks_write_report(struct tasks *tasks);
/* Goes when no spurd has come for long; the directory, with the report, stays for one that may. */
void tasks_leave(struct tasks *tasks, int64_t now_us);

/* tasks_start.c: every task, or none and `err`. */
int tasks_start(struct tasks *tasks, struct err *err);

/* tasks_io.c: to srun and spurd */
void tasks_send(struct tasks *tasks, const StepNews *news); /* to spurd alone */
void tasks_send_srun(struct tasks *tasks, RunStepOut *out); /* numbered, kept */
void tasks_send_both(struct tasks *tasks, StepNews *news, RunStepOut *out);
void tasks_flush(struct tasks *tasks);
/* May more be read from tasks? */
bool tasks_has_room(const struct tasks *tasks);
void tasks_acked(struct tasks *tasks, uint64_t seq);
/* Somebody else reads now, and has everything up to `seen`. */
void tasks_attached(struct tasks *tasks, uint64_t seen);
/* Another spurd is connected: it hears nothing twice that was only for the one before. */
void tasks_reconnected(struct tasks *tasks);
void tasks_go_deaf(struct tasks *tasks);
/* A task's stream can be read. */
void tasks_read(struct tasks *tasks, struct task_one *one, bool error);
/* Says that tasks ended, once their output is out. */
void tasks_say_exits(struct tasks *tasks);

/* tasks_in.c: from srun */
void tasks_input(struct tasks *tasks, const StepData *data, uint32_t from);
void tasks_write_input(struct tasks *tasks);
void tasks_close_one(struct task_one *one);

/* tasks_act.c: a task asked for the end of the whole step, with this exit code. */
void tasks_abort(struct tasks *tasks, uint32_t number, uint32_t code, const char *text);

/* tasks_act.c: what can happen to running tasks */
void tasks_hold(struct tasks *tasks);
/* A line for srun's standard error with --slurmd-debug=verbose and more. */
void tasks_debug(struct tasks *tasks, const char *fmt, ...) PRINTF(2, 3); /* before anything else */
void tasks_obey(struct tasks *tasks, const StepOrder *order, int64_t now_us);
/* See containment_end(). */
void tasks_end(struct tasks *tasks, unsigned wait_s, JobState why, bool quiet, int64_t now_us);
unsigned tasks_kill_wait_s(const struct tasks *tasks);
int64_t tasks_limit_s(const struct tasks *tasks, int64_t job_s);
void tasks_check_lease(struct tasks *tasks, int64_t now_us);
/* Looks at what the tasks use now; `say` tells spurd. */
void tasks_sample(struct tasks *tasks, bool say, int64_t now_us);
/* What was seen of each task goes into the usage. */
void tasks_track_end(struct tasks *tasks);
void tasks_check_limit(struct tasks *tasks, int64_t now_us);

#endif
