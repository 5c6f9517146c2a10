/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pmix.c - srun --mpi=pmix: the talk with spurstepd-pmix
 *
 * (1) A task that PMIx knows and that ends without taking leave ends the step: others may wait for it. Its
 *     leave is in our socket before the task hears that it was taken, so we read before we judge.
 * (2) Other nodes hear that ours is done, so that nobody waits for an answer from here.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/framed.h"
#include "base/limits.h"
#include "spurstepd/pmix_priv.h"
#include "spurstepd/relay.h"
#include "sys/files.h"

enum { READ_BYTES = 16 * 1024, RECEIVE_BYTES = 1024 * 1024, SAY_LINES_MAX = 50 };

bool pmix_wanted(const StepTask *task)
{
    return str_eq(task->tasks->mpi, "pmix");
}

/* ---- to it ---- */

static void lose(struct pmix *pmix)
{
    if (pmix->fd < 0)
        return;
    tasks_unwatch(pmix->tasks, pmix->fd);
    file_close(&pmix->fd);
    if (pmix->tasks->phase == TASKS_RUNNING && pmix->began)
        tasks_abort(pmix->tasks, pmix->tasks->list[0].number, 1, "spurstepd-pmix has ended");
}

static void flush(struct pmix *pmix)
{
    while (pmix->fd >= 0 && pmix->out.len > 0) {
        ssize_t len = send(pmix->fd, pmix->out.data, pmix->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (len < 0 && errno == EAGAIN)
            break;
        if (len < 0) {
            lose(pmix);
            return;
        }
        memmove(pmix->out.data, pmix->out.data + len, pmix->out.len - (size_t)len);
        str_truncate(&pmix->out, pmix->out.len - (size_t)len);
    }
    if (pmix->out.len == 0)
        str_done(&pmix->out); /* it may have been long */
    tasks_watch_for(pmix->tasks, pmix->fd, (short)(POLLIN | (pmix->out.len ? POLLOUT : 0)));
}

void pmix_tell(struct pmix *pmix, const PmixIn *in)
{
    if (pmix->fd < 0)
        return;
    pmix_in__pack(in, framed_add(&pmix->out, pmix_in__get_packed_size(in)));
    if (pmix->out.len > LIMIT_PMI_KVS_BYTES) /* it does not read */
        lose(pmix);
    else
        flush(pmix);
}

/* ---- from it ---- */

/* As if the first task that can still say something had. */
static void say(struct pmix *pmix, const char *text)
{
    CLEANUP(freep) char *line = mem_printf("slurmstepd: error: pmix: %s\n", text);
    RunStepOut out = RUN_STEP_OUT__INIT;
    StepData data = STEP_DATA__INIT;
    size_t i = 0;

    while (i < pmix->tasks->count && pmix->tasks->list[i].err < 0)
        i++;
    if (i == pmix->tasks->count)
        return;
    data.has_task = data.has_stream = data.has_data = true;
    data.task = pmix->tasks->list[i].number;
    data.stream = STEP_STREAM_ERR;
    data.data = (ProtobufCBinaryData){ .data = (uint8_t *)line, .len = strlen(line) };
    out.what_case = RUN_STEP_OUT__WHAT_DATA;
    out.data = &data;
    tasks_send_srun(pmix->tasks, &out);
}

static void take_client(struct pmix *pmix, const PmixClient *client)
{
    const StepTasks *asked = pmix->tasks->task->tasks;

    for (size_t i = 0; i < asked->n_list; i++) {
        if (asked->list[i]->number == client->task)
            pmix->here[i] = client->here;
    }
}

static void obey(struct pmix *pmix, PmixOut *out)
{
    switch (out->what_case) {
    case PMIX_OUT__WHAT_FAILED:
        free(pmix->failed);
        pmix->failed = mem_strdup(out->failed);
        break;
    case PMIX_OUT__WHAT_SEND:
        if (!out->send->has_to || out->send->to < pmix->tasks->relay->layout->n_nodes)
            relay_send(pmix->tasks, out->send->has_to ? (int64_t)out->send->to : RELAY_ALL,
                       out->send->data.data, out->send->data.len);
        break;
    case PMIX_OUT__WHAT_ABORT:
        tasks_abort(pmix->tasks, out->abort->task, out->abort->code & 0xff, out->abort->text);
        break;
    case PMIX_OUT__WHAT_CLIENT:
        take_client(pmix, out->client);
        break;
    case PMIX_OUT__WHAT_SAY:
        say(pmix, out->say);
        break;
    default:
        break;
    }
}

static bool take_messages(struct pmix *pmix)
{
    struct span message;
    int more;

    while ((more = framed_next(&pmix->in, LIMIT_PMIX_BYTES, &message)) > 0) {
        PmixOut *out = pmix_out__unpack(NULL, message.len, (const uint8_t *)message.ptr);
        framed_drop(&pmix->in);
        if (!out)
            return false;
        if (out->what_case == PMIX_OUT__WHAT_READY && !pmix->ready) {
            pmix->ready = out;
            continue;
        }
        obey(pmix, out);
        pmix_out__free_unpacked(out, NULL);
    }
    if (pmix->in.len == 0)
        str_done(&pmix->in);
    if (more < 0)
        tasks_abort(pmix->tasks, pmix->tasks->list[0].number, 1,
                    "the tasks have too much to say to each other at once for PMIx");
    return more == 0;
}

/* Everything it has said so far: no socket holds more than RECEIVE_BYTES. */
static void receive(struct pmix *pmix)
{
    char bytes[READ_BYTES];

    for (size_t done = 0; pmix->fd >= 0 && done < RECEIVE_BYTES; done += sizeof(bytes)) {
        ssize_t len = recv(pmix->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (len < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (len > 0)
            str_add_len(&pmix->in, bytes, (size_t)len);
        if (len <= 0 || !take_messages(pmix))
            lose(pmix);
    }
}

void pmix_on_program(struct tasks *tasks, void *data, short events)
{
    struct pmix *pmix = data;

    if (events & POLLOUT)
        flush(pmix);
    if (events & ~POLLOUT)
        receive(pmix);
}

/* What libpmix complains of is for the user. */
void pmix_on_words(struct tasks *tasks, void *data, short events)
{
    struct pmix *pmix = data;
    char bytes[1024], *line, *end;
    ssize_t len = read(pmix->err_fd, bytes, sizeof(bytes));

    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    str_add_len(&pmix->words, bytes, len > 0 ? (size_t)len : 0);
    for (line = pmix->words.data; line && (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        if (*line && pmix->said++ < SAY_LINES_MAX)
            say(pmix, line);
    }
    CLEANUP(freep) char *rest = mem_strdup(line);
    str_done(&pmix->words);
    if (rest)
        str_add(&pmix->words, rest);
    if (len > 0 && pmix->words.len <= sizeof(bytes) && pmix->said <= SAY_LINES_MAX)
        return;
    tasks_unwatch(tasks, pmix->err_fd);
    file_close(&pmix->err_fd);
}

/* ---- while it runs ---- */

void pmix_relay(struct tasks *tasks, uint32_t from, const uint8_t *bytes, size_t len)
{
    PmixIn in = PMIX_IN__INIT;
    PmixRelayed relayed = PMIX_RELAYED__INIT;

    relayed.has_from = relayed.has_data = true;
    relayed.from = from;
    relayed.data = (ProtobufCBinaryData){ .data = (uint8_t *)bytes, .len = len };
    in.what_case = PMIX_IN__WHAT_RELAYED;
    in.relayed = &relayed;
    if (tasks->pmix)
        pmix_tell(tasks->pmix, &in);
}

/* (1) */
void pmix_exited(struct tasks *tasks, size_t index)
{
    struct pmix *pmix = tasks->pmix;
    int status = tasks->list[index].status;
    char text[96];

    if (!pmix)
        return;
    receive(pmix);
    if (!pmix->here[index])
        return;
    uint32_t code =
        WIFSIGNALED(status) ? 128 + (uint32_t)WTERMSIG(status) : (uint32_t)WEXITSTATUS(status);
    snprintf(text, sizeof(text),
             "ended without PMIx_Finalize (MPI_Finalize), and so does the step");
    tasks_abort(tasks, tasks->list[index].number, code ? code : 1, text);
}

/* (2) */
void pmix_stop(struct tasks *tasks)
{
    PmixTalk talk = PMIX_TALK__INIT;
    uint8_t bytes[16];

    if (!tasks->pmix || tasks->launch_failed)
        return;
    receive(tasks->pmix);
    talk.what_case = PMIX_TALK__WHAT_GONE;
    talk.gone = true;
    if (pmix_talk__get_packed_size(&talk) <= sizeof(bytes))
        relay_send(tasks, RELAY_ALL, bytes, pmix_talk__pack(&talk, bytes));
}
