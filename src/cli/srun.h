/* SPDX-License-Identifier: Apache-2.0 */
/*
 * srun.h - the parts of srun
 *
 * srun.c       options, allocation, exit code
 * srun_prog.c  which program each task runs (pure but for reading files)
 * srun_step.c  asks the managing node for a step and launches it on every node
 * srun_loop.c  until all tasks have ended: streams, signals, timers
 * srun_out.c   what tasks write: labels, lines, files
 */
#ifndef CLI_SRUN_H
#define CLI_SRUN_H

#include <termios.h>

#include "cli/alloc.h"
#include "proto/agent.pb-c.h"
#include "proto/run.pb-c.h"

enum { SRUN_CREDIT = 64 * 1024, SRUN_INPUT_BYTES = 16 * 1024, SRUN_PARTIAL_BYTES = 4096 };

struct srun_node {
    struct client *client;
    struct client_stream *stream;
    const StepNode *node; /* NULL: the manager, which has no tasks */
    size_t credit;
    bool manager, launched, running, over;
};

struct srun_task {
    uint32_t node; /* index */
    bool started, exited;
    int status;
    struct str partial[2]; /* of standard output and error: the beginning of a line */
    int files[2];          /* of its own; -1: none */
};

/* Where one of the two streams goes. */
struct srun_sink {
    int fd;              /* one for all tasks; -1: none */
    const char *pattern; /* one file for each task; NULL: not */
    bool none;
    bool has_only;
    uint32_t only; /* this task's alone */
};

struct srun {
    struct cli cli;
    struct job_request request;
    struct alloc alloc;
    bool waited; /* for other steps */
    bool own;    /* the allocation is ours and ends with us */
    char **argv;
    int argc;
    uint32_t job_id;
    JobPayload env; /* environment and limits of the tasks */
    char *name;

    StepCreated *created;
    StepLayout *layout;
    struct srun_node *nodes; /* the manager first, when it has no tasks */
    size_t node_count;
    struct srun_task *tasks;
    StepProgram **programs;
    size_t program_count;

    struct srun_sink sinks[2];
    int label_width;
    int input_fd; /* -1: no more */
    bool has_input_task;
    uint32_t input_task;
    bool raw; /* the terminal was changed */
    struct termios before;

    uint32_t exited;
    int highest, highest_status;
    bool killing, aborted, killed_by_9, failed;
    int64_t last_interrupt_us, last_sent_us, first_exit_us, give_up_us;
};

/* srun_prog.c */
char *srun_find_program(const char *name, const char *work_dir, struct arena *arena);
/* The programs of `ntasks` tasks from a --multi-prog file. */
int srun_read_programs(const char *path, const char *work_dir, uint32_t ntasks, char **args,
                       size_t arg_count, struct arena *arena, StepProgram ***out, size_t *count,
                       struct err *err);

/* srun_step.c */
int srun_create(struct srun *srun); /* 0, or the exit code after a complaint */
int srun_launch(struct srun *srun);
void srun_close(struct srun *srun);
void srun_catch_signals(void);
extern volatile int srun_interrupted; /* while waiting for an allocation or a step */

/* srun_loop.c */
int srun_loop(struct srun *srun); /* the exit code of the step */

/* srun_out.c */
int srun_open_sinks(struct srun *srun); /* 0, or the exit code after a complaint */
void srun_output(struct srun *srun, const StepData *data);
void srun_flush_task(struct srun *srun, uint32_t task);
void srun_close_sinks(struct srun *srun);

#endif
