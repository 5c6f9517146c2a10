/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tasks_io.c - the streams of tasks, to and from srun
 *
 * (1) Nothing is read from a task while something waits in the queue, so a reader that is slow holds
 *     the task back, and memory stays bounded by one packet and one word per task.
 * (2) srun sends no more standard input than was granted: TASKS_INPUT_BYTES, and again whatever the
 *     slowest task has taken. So orders never wait behind input.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "spurstepd/tasks_priv.h"
#include "sys/files.h"

/* ---- to srun ---- */

void tasks_flush(struct tasks *tasks)
{
    size_t sent = 0;

    while (!tasks->lost && sent < tasks->queue.len) {
        struct packet *packet = &tasks->queue.items[sent];
        if (send(tasks->chan_fd, packet->bytes, packet->len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
            if (errno == EINTR)
                continue;
            if (errno != EAGAIN && errno != ENOBUFS)
                tasks->lost = true;
            break;
        }
        free(packet->bytes);
        sent++;
    }
    if (tasks->lost) {
        for (; sent < tasks->queue.len; sent++)
            free(tasks->queue.items[sent].bytes);
    }
    memmove(tasks->queue.items, tasks->queue.items + sent,
            (tasks->queue.len - sent) * sizeof(struct packet));
    tasks->queue.len -= sent;
}

void tasks_send(struct tasks *tasks, const StepNews *news)
{
    size_t len = step_news__get_packed_size(news);

    if (tasks->lost)
        return;
    uint8_t *bytes = mem_new(len + 1);
    step_news__pack(news, bytes);
    vec_push(&tasks->queue, (struct packet){ bytes, len });
    if (tasks->queue.len == 1)
        tasks_flush(tasks);
}

void tasks_send_srun(struct tasks *tasks, RunStepOut *out)
{
    StepNews news = STEP_NEWS__INIT;

    news.srun = out;
    tasks_send(tasks, &news);
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

    while (*fd >= 0 && (tasks->queue.len == 0 || tasks->lost)) { /* (1) */
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
        if (tasks->queue.len && !tasks->lost)
            return;
        say_exit(tasks, one);
    }
}

/* ---- from srun ---- */

bool tasks_input(struct tasks *tasks, const StepData *data)
{
    if (data->data.len > TASKS_INPUT_BYTES - tasks->input_len || tasks->input_eof)
        return tasks->input_eof;
    if (!tasks->input)
        tasks->input = mem_new(TASKS_INPUT_BYTES);
    memcpy(tasks->input + tasks->input_len, data->data.data, data->data.len);
    tasks->input_len += data->data.len;
    tasks->input_eof = data->eof;
    tasks_write_input(tasks);
    return true;
}

/* How far the task is; it has all when it does not read. */
static uint64_t write_one(struct tasks *tasks, struct task_one *one)
{
    uint64_t end = tasks->input_first + tasks->input_len;

    while (one->in >= 0 && one->in_done < end) {
        ssize_t len = write(one->in, tasks->input + (one->in_done - tasks->input_first),
                            (size_t)(end - one->in_done));
        if (len < 0 && errno == EINTR)
            continue;
        if (len < 0 && errno == EAGAIN)
            return one->in_done;
        if (len < 0)
            file_close(&one->in);
        else
            one->in_done += (uint64_t)len;
    }
    if (tasks->input_eof && one->in >= 0 && !tasks->task->tasks->pty)
        file_close(&one->in);
    return end;
}

void tasks_write_input(struct tasks *tasks)
{
    uint64_t least = tasks->input_first + tasks->input_len;

    for (size_t i = 0; i < tasks->count; i++) {
        uint64_t done = write_one(tasks, &tasks->list[i]);
        least = MIN(least, done);
    }
    size_t gone = (size_t)(least - tasks->input_first);
    if (gone == 0)
        return;
    memmove(tasks->input, tasks->input + gone, tasks->input_len - gone);
    tasks->input_len -= gone;
    tasks->input_first = least;
    tasks->credit_due += gone;
    if (tasks->credit_due >= TASKS_INPUT_BYTES / 2 || tasks->input_len == 0) { /* (2) */
        RunStepOut out = RUN_STEP_OUT__INIT;
        out.what_case = RUN_STEP_OUT__WHAT_CREDIT;
        out.credit = tasks->credit_due;
        tasks->credit_due = 0;
        tasks_send_srun(tasks, &out);
    }
}

void tasks_close_one(struct task_one *one)
{
    file_close(&one->in);
    file_close(&one->out);
    file_close(&one->err);
}
