/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tasks_start.c - the tasks of a step become processes, each with its streams
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "spurstepd/start.h"
#include "spurstepd/step_plugins.h"
#include "spurstepd/step_spank.h"
#include "spurstepd/tasks_priv.h"
#include "sys/files.h"

enum { PIPE_BYTES = 256 * 1024 };

/* Both ends of one stream; ours does not block. */
struct stream {
    int theirs, ours;
};

static int open_null(struct stream *stream, struct err *err)
{
    stream->ours = -1;
    stream->theirs = open("/dev/null", O_RDWR | O_CLOEXEC);
    return stream->theirs < 0 ? err_errno(err, errno, "/dev/null") : 0;
}

static int open_pipe(struct stream *stream, bool input, struct err *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(err, errno, "pipe");
    stream->theirs = ends[input ? 0 : 1];
    stream->ours = ends[input ? 1 : 0];
    if (!input)
        fcntl(stream->ours, F_SETPIPE_SZ, PIPE_BYTES); /* as much as the user's share allows */
    fcntl(stream->ours, F_SETFL, O_NONBLOCK);
    return 0;
}

static bool gets_input(const StepTasks *tasks, uint32_t number)
{
    return !tasks->no_input && (!tasks->has_input_task || tasks->input_task == number);
}

static int open_streams(struct tasks *tasks, struct task_one *one, struct stream streams[3],
                        struct err *err)
{
    const StepTasks *asked = tasks->task->tasks;
    bool gone = asked->pty && one->number != 0; /* only the first task has the terminal */
    int ret = gets_input(asked, one->number) && !gone ? open_pipe(&streams[0], true, err)
                                                      : open_null(&streams[0], err);

    if (ret == 0)
        ret = asked->no_output || gone ? open_null(&streams[1], err)
                                       : open_pipe(&streams[1], false, err);
    if (ret == 0)
        ret = asked->no_error || gone ? open_null(&streams[2], err)
                                      : open_pipe(&streams[2], false, err);
    return ret;
}

/* One terminal for all three streams; our end is both `in` and `out`. */
static int open_terminal(struct tasks *tasks, struct stream streams[3], struct err *err)
{
    const StepTasks *asked = tasks->task->tasks;
    const StepTask *task = tasks->task;
    struct winsize size = { .ws_row = (unsigned short)asked->rows,
                            .ws_col = (unsigned short)asked->cols };
    char name[64];
    int ours = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);

    if (ours < 0 || grantpt(ours) < 0 || unlockpt(ours) < 0 ||
        ptsname_r(ours, name, sizeof(name)) != 0) {
        err_errno(err, errno, "terminal");
        file_close(&ours);
        return -(int)ERR_IO;
    }
    if (asked->rows)
        ioctl(ours, TIOCSWINSZ, &size);
    if (task->change_user && chown(name, task->owner->uid, (gid_t)-1) < 0) {
        err_errno(err, errno, "terminal");
        close(ours);
        return -(int)ERR_IO;
    }
    for (int i = 0; i < 3; i++) {
        streams[i].theirs = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
        streams[i].ours = -1;
    }
    streams[0].ours = fcntl(ours, F_DUPFD_CLOEXEC, 3);
    streams[1].ours = ours;
    return streams[2].theirs < 0 ? err_errno(err, errno, "terminal") : 0;
}

static int start_one(struct tasks *tasks, size_t index, struct err *err)
{
    StepTaskOne *asked = tasks->task->tasks->list[index];
    struct task_one *one = &tasks->list[index];
    bool terminal = tasks->task->tasks->pty && asked->number == 0;
    struct stream streams[3] = { { -1, -1 }, { -1, -1 }, { -1, -1 } };
    struct step_plugin_task plugged = { .index = index, .number = asked->number };
    struct started started = { 0 };
    struct start_task what = { .terminal = terminal, .one = asked, .index = index };
    struct arena arena;

    arena_init(&arena);
    one->number = asked->number;
    int ret = step_plugins_task(tasks, &plugged, &arena, err);
    vec_push(&plugged.env, NULL);
    what.env = plugged.env.items;
    what.keep = plugged.keep.items;
    what.keep_count = plugged.keep.len;
    if (ret == 0)
        ret =
            terminal ? open_terminal(tasks, streams, err) : open_streams(tasks, one, streams, err);
    if (ret == 0) {
        char **argv = NEW_ARRAY(char *, asked->n_args + 1);
        memcpy(argv, asked->args, asked->n_args * sizeof(*argv));
        for (int i = 0; i < 3; i++)
            what.fds[i] = streams[i].theirs;
        what.argv = argv;
        ret = start_task(tasks->task, &tasks->hold.contain, &what, &started, err);
        free(argv);
    }
    for (int i = 0; i < 3; i++)
        file_close(&streams[i].theirs);
    one->in = streams[0].ours;
    one->out = streams[1].ours;
    one->err = streams[2].ours;
    one->pid = ret == 0 ? started.pid : 0;
    one->go_fd = ret == 0 ? started.go_fd : -1;
    for (size_t i = 0; i < plugged.keep.len; i++)
        close(plugged.keep.items[i]);
    vec_done(&plugged.env);
    vec_done(&plugged.keep);
    arena_done(&arena);
    return ret;
}

/* Processes that wait end when nobody tells them to go on. */
static void stop_waiting(struct tasks *tasks)
{
    for (size_t i = 0; i < tasks->count; i++)
        file_close(&tasks->list[i].go_fd);
}

/* Every task has its process: plugins hear of them, then their programs start. */
static int start_forked(struct tasks *tasks, struct err *err)
{
    for (size_t i = 0; i < tasks->count; i++) {
        if (step_spank->post_fork(i, tasks->list[i].pid, err) < 0) {
            stop_waiting(tasks);
            return -(int)err->code;
        }
    }
    for (size_t i = 0; i < tasks->count; i++)
        start_go(&tasks->list[i].go_fd);
    return 0;
}

int tasks_start(struct tasks *tasks, struct err *err)
{
    for (size_t i = 0; i < tasks->count; i++)
        tasks->list[i].in = tasks->list[i].out = tasks->list[i].err = tasks->list[i].go_fd = -1;
    for (size_t i = 0; i < tasks->count; i++) {
        int ret = start_one(tasks, i, err);
        if (ret < 0) {
            stop_waiting(tasks);
            return ret;
        }
    }
    return step_spank ? start_forked(tasks, err) : 0;
}
