/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tasks_io.c - what goes to srun, by way of spurd
 *
 * (1) A frame for srun has a number and is kept until srun says that it took it. Whatever breaks on the
 *     way, srun attaches again and gets what it lacks: no byte is lost, none comes twice.
 * (2) Nothing is read from a task while frames wait to be sent, or more than TASKS_WINDOW_BYTES wait to
 *     be acknowledged. So a reader that is slow or away holds the task back, and memory stays bounded.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "spurstepd/tasks_priv.h"
#include "sys/files.h"

enum { FRAME_COST_BYTES = 128 }; /* of a frame beside its bytes */

static size_t cost(const struct frame *frame)
{
    return frame->seq ? frame->len + FRAME_COST_BYTES : 0;
}

static void drop_frame(struct tasks *tasks, size_t at)
{
    tasks->kept_bytes -= cost(&tasks->frames.items[at]);
    free(tasks->frames.items[at].bytes);
    vec_remove(&tasks->frames, at);
    tasks->sent -= at < tasks->sent;
}

void tasks_flush(struct tasks *tasks)
{
    while (tasks->chan.fd >= 0 && tasks->sent < tasks->frames.len) {
        struct frame *frame = &tasks->frames.items[tasks->sent];
        if (send(tasks->chan.fd, frame->bytes, frame->len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
            if (errno == EINTR)
                continue;
            if (errno != EAGAIN && errno != ENOBUFS)
                chan_lost(&tasks->chan);
            break;
        }
        tasks->sent++;
        if (frame->seq == 0)
            drop_frame(tasks, tasks->sent - 1);
    }
}

static void push(struct tasks *tasks, const StepNews *news, uint64_t seq)
{
    struct frame frame = { .len = step_news__get_packed_size(news), .seq = seq };

    frame.bytes = mem_new(frame.len + 1);
    step_news__pack(news, frame.bytes);
    vec_push(&tasks->frames, frame);
    tasks->kept_bytes += cost(&frame);
    if (tasks->sent + 1 == tasks->frames.len)
        tasks_flush(tasks);
}

void tasks_send(struct tasks *tasks, const StepNews *news)
{
    if (tasks->chan.fd >= 0)
        push(tasks, news, 0);
}

void tasks_send_both(struct tasks *tasks, StepNews *news, RunStepOut *out)
{
    news->srun = out;
    if (out->has_to) { /* to one who watches: nothing that must be kept */
        tasks_send(tasks, news);
    } else if (tasks->deaf) {
        news->srun = NULL;
        if (news->ended || news->started)
            tasks_send(tasks, news);
    } else {
        out->has_seq = true;
        out->seq = ++tasks->last_seq;
        push(tasks, news, out->seq);
    }
}

void tasks_send_srun(struct tasks *tasks, RunStepOut *out)
{
    StepNews news = STEP_NEWS__INIT;

    tasks_send_both(tasks, &news, out);
}

bool tasks_has_room(const struct tasks *tasks) /* (2) */
{
    return tasks->deaf || (tasks->kept_bytes < TASKS_WINDOW_BYTES &&
                           (tasks->sent == tasks->frames.len || tasks->chan.fd < 0));
}

static void drop_where(struct tasks *tasks, bool control, uint64_t up_to)
{
    size_t kept = 0, sent = tasks->sent;

    for (size_t i = 0; i < tasks->frames.len; i++) {
        struct frame *frame = &tasks->frames.items[i];
        if (frame->seq ? frame->seq > up_to : !control) {
            tasks->frames.items[kept++] = *frame;
            continue;
        }
        tasks->kept_bytes -= cost(frame);
        free(frame->bytes);
        sent -= i < tasks->sent;
    }
    tasks->frames.len = kept;
    tasks->sent = sent;
}

void tasks_acked(struct tasks *tasks, uint64_t seq)
{
    drop_where(tasks, false, MIN(seq, tasks->last_seq));
}

void tasks_attached(struct tasks *tasks, uint64_t seen)
{
    tasks_acked(tasks, seen);
    tasks->sent = 0; /* (1) */
    tasks_flush(tasks);
}

void tasks_reconnected(struct tasks *tasks)
{
    drop_where(tasks, true, 0);
    tasks->sent = tasks->frames.len; /* until srun attaches */
}

void tasks_go_deaf(struct tasks *tasks)
{
    if (tasks->deaf)
        return;
    tasks->deaf = true;
    drop_where(tasks, false, tasks->last_seq);
}

static void send_data(struct tasks *tasks, const struct task_one *one, bool error, uint8_t *bytes,
                      size_t len)
{
    RunStepOut out = RUN_STEP_OUT__INIT;
    StepData data = STEP_DATA__INIT;

    data.has_task = data.has_stream = true;
    data.task = one->number;
    data.stream = error ? STEP_STREAM_ERR : STEP_STREAM_OUT;
    data.has_data = len > 0;
    data.data = (ProtobufCBinaryData){ .data = bytes, .len = len };
    data.has_eof = data.eof = len == 0;
    out.what_case = RUN_STEP_OUT__WHAT_DATA;
    out.data = &data;
    tasks_send_srun(tasks, &out);
}

void tasks_read(struct tasks *tasks, struct task_one *one, bool error)
{
    static uint8_t bytes[TASKS_READ_BYTES];
    int *fd = error ? &one->err : &one->out;

    while (*fd >= 0 && tasks_has_room(tasks)) { /* (2) */
        ssize_t len = read(*fd, bytes, sizeof(bytes));
        if (len < 0 && errno == EINTR)
            continue;
        if (len < 0 && errno == EAGAIN)
            return;
        if (len <= 0) { /* a terminal without a process gives EIO */
            file_close(fd);
            len = 0;
        }
        send_data(tasks, one, error, bytes, (size_t)len);
    }
}

static void say_exit(struct tasks *tasks, struct task_one *one)
{
    RunStepOut out = RUN_STEP_OUT__INIT;
    StepExit over = STEP_EXIT__INIT;

    one->exit_due = false;
    over.n_tasks = 1;
    over.tasks = &one->number;
    over.has_status = true;
    over.status = (uint32_t)one->status;
    out.what_case = RUN_STEP_OUT__WHAT_EXIT;
    out.exit = &over;
    tasks_send_srun(tasks, &out);
}

/* What a dead task wrote is in its pipes; when those are empty, or held open by others, it is out. */
void tasks_say_exits(struct tasks *tasks)
{
    for (size_t i = 0; i < tasks->count; i++) {
        struct task_one *one = &tasks->list[i];
        if (!one->exit_due)
            continue;
        tasks_read(tasks, one, false);
        tasks_read(tasks, one, true);
        if (!tasks_has_room(tasks))
            return;
        say_exit(tasks, one);
    }
}
