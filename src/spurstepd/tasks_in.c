/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tasks_in.c - standard input of tasks, from srun and from those who attached
 *
 * (1) srun sends no more than was granted: TASKS_INPUT_BYTES, and again whatever the slowest task has
 *     taken. So orders never wait behind input.
 * (2) srun says where in its stream a piece begins; after a broken connection it goes on where we are.
 * (3) The parts are what the buffer holds, in its order. A task steps over those for another one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spurstepd/tasks_priv.h"
#include "sys/files.h"

static size_t held_by(const struct tasks *tasks, bool srun)
{
    size_t sum = 0;

    vec_each (const struct input_part, part, &tasks->input_parts)
        sum += (part->from == 0) == srun ? part->len : 0;
    return sum;
}

static void add_part(struct tasks *tasks, struct input_part part, const uint8_t *bytes)
{
    size_t count = tasks->input_parts.len;
    struct input_part *last = count ? &tasks->input_parts.items[count - 1] : NULL;

    if (part.len == 0) /* the end of input alone */
        return;
    if (!tasks->input)
        tasks->input = mem_new(TASKS_INPUT_BYTES + TASKS_WATCH_BYTES);
    memcpy(tasks->input + tasks->input_len, bytes, part.len);
    tasks->input_len += part.len;
    if (last && last->from == part.from && last->has_only == part.has_only &&
        last->only == part.only)
        last->len += part.len;
    else
        vec_push(&tasks->input_parts, part);
}

/* A piece that is not the next one, or more than was granted, is not taken. */
void tasks_input(struct tasks *tasks, const StepData *data, uint32_t from)
{
    const uint8_t *bytes = data->data.data;
    size_t len = data->data.len;

    if (tasks->input_eof)
        return;
    if (from == 0) {
        if (data->has_offset && data->offset > tasks->input_taken)
            return;
        size_t old = data->has_offset ? (size_t)(tasks->input_taken - data->offset) : 0; /* (2) */
        if (old > len || len - old > TASKS_INPUT_BYTES - held_by(tasks, true))
            return;
        add_part(tasks, (struct input_part){ .len = len - old }, bytes + old);
        tasks->input_taken += len - old;
        tasks->input_eof = data->eof;
    } else if (len <= TASKS_WATCH_BYTES - held_by(tasks, false)) {
        add_part(tasks,
                 (struct input_part){
                     .from = from, .has_only = data->has_task, .only = data->task, .len = len },
                 bytes);
    }
    tasks_write_input(tasks);
}

/* How many bytes from `at` on belong together; `mine`: to this task (3). */
static size_t piece_at(const struct tasks *tasks, uint32_t number, uint64_t at, bool *mine)
{
    uint64_t end = tasks->input_first;

    vec_each (const struct input_part, part, &tasks->input_parts) {
        end += part->len;
        *mine = !part->has_only || part->only == number;
        if (at < end)
            return (size_t)(end - at);
    }
    return 0;
}

/* How far the task is; it has all when it does not read. */
static uint64_t write_one(struct tasks *tasks, struct task_one *one)
{
    uint64_t end = tasks->input_first + tasks->input_len;

    while (one->in >= 0 && one->in_done < end) {
        bool mine = false;
        size_t piece = piece_at(tasks, one->number, one->in_done, &mine);
        if (!mine) {
            one->in_done += piece;
            continue;
        }
        ssize_t len = write(one->in, tasks->input + (one->in_done - tasks->input_first), piece);
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

static void send_credit(struct tasks *tasks, uint32_t to, uint64_t bytes)
{
    RunStepOut out = RUN_STEP_OUT__INIT;

    out.what_case = RUN_STEP_OUT__WHAT_CREDIT;
    out.credit = bytes;
    out.has_to = to != 0;
    out.to = to;
    tasks_send_srun(tasks, &out);
}

/* The oldest bytes are with every task: whoever sent them may send as many more. */
static void credit_parts(struct tasks *tasks, size_t gone)
{
    while (gone && tasks->input_parts.len) {
        struct input_part *part = &tasks->input_parts.items[0];
        size_t len = MIN(gone, part->len);
        if (part->from == 0)
            tasks->credit_due += len;
        else
            send_credit(tasks, part->from, len);
        gone -= len;
        part->len -= len;
        if (part->len == 0)
            vec_remove(&tasks->input_parts, 0);
    }
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
    credit_parts(tasks, gone);
    if (tasks->credit_due >= TASKS_INPUT_BYTES / 2 ||
        (tasks->credit_due && tasks->input_len == 0)) { /* (1) */
        send_credit(tasks, 0, tasks->credit_due);
        tasks->credit_due = 0;
    }
}

void tasks_close_one(struct task_one *one)
{
    file_close(&one->in);
    file_close(&one->out);
    file_close(&one->err);
}
