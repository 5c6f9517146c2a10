/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - spurstepd-pmix: serves the tasks of a step on one node that was asked for with srun --mpi=pmix
 *
 * Started by the step's supervisor, as the step's user and among its processes; the descriptor
 * that leads to the supervisor is the argument. When that closes, or the supervisor ends the step's processes, we are gone: nothing is kept
 * that somebody would have to clean up but the directory we were given, and the supervisor removes it.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/limits.h"
#include "pmix/server.h"
#include "sys/clock.h"
#include "sys/files.h"

enum { READ_BYTES = 64 * 1024, TASKS_MAX = 512 * 1024 };

/* ---- out ---- */

void server_say(struct server *server, PmixOut *out)
{
    CLEANUP(str_done) struct str bytes = { 0 };
    struct err err = { 0 };

    pmix_out__pack(out, framed_add(&bytes, pmix_out__get_packed_size(out)));
    if (file_write_all(server->fd, str_text(&bytes), bytes.len, &err) < 0)
        _exit(1); /* nobody is there */
}

static void send_talk(struct server *server, bool all, uint32_t to, PmixTalk *talk)
{
    CLEANUP(str_done) struct str bytes = { 0 };
    PmixOut out = PMIX_OUT__INIT;
    PmixSend words = PMIX_SEND__INIT;
    size_t len = pmix_talk__get_packed_size(talk);

    str_add_fill(&bytes, 0, len);
    pmix_talk__pack(talk, (uint8_t *)bytes.data);
    words.has_to = !all;
    words.to = to;
    words.has_data = true;
    words.data = (ProtobufCBinaryData){ .data = (uint8_t *)bytes.data, .len = len };
    out.what_case = PMIX_OUT__WHAT_SEND;
    out.send = &words;
    server_say(server, &out);
}

void server_talk_all(struct server *server, PmixTalk *talk)
{
    if (server->layout->n_nodes > 1)
        send_talk(server, true, 0, talk);
}

static void take_talk(struct server *server, uint32_t from, const void *bytes, size_t len)
{
    PmixTalk *talk = pmix_talk__unpack(NULL, len, bytes);

    if (!talk)
        return;
    act_talk(server, from, talk);
    pmix_talk__free_unpacked(talk, NULL);
}

void server_talk(struct server *server, uint32_t to, PmixTalk *talk)
{
    CLEANUP(str_done) struct str bytes = { 0 };

    if (to != server->here) {
        send_talk(server, false, to, talk);
        return;
    }
    str_add_fill(&bytes, 0, pmix_talk__get_packed_size(talk));
    pmix_talk__pack(talk, (uint8_t *)bytes.data);
    take_talk(server, to, str_text(&bytes), bytes.len);
}

/* ---- in ---- */

static bool layout_fits(const struct server *server)
{
    const StepLayout *layout = server->layout;

    if (!layout || !layout->id || server->here >= layout->n_nodes || layout->ntasks == 0 ||
        layout->ntasks > TASKS_MAX)
        return false;
    for (size_t i = 0; i < layout->n_nodes; i++) {
        const StepNode *node = layout->nodes[i];
        for (size_t k = 0; k < node->n_tasks; k++) {
            if (node->tasks[k] >= layout->ntasks)
                return false;
        }
    }
    return layout->nodes[server->here]->n_tasks > 0;
}

static int take_setup(struct server *server, PmixSetup *setup, struct err *err)
{
    server->setup = setup;
    server->here = setup->here;
    server->layout = step_layout__unpack(NULL, setup->layout.len, setup->layout.data);
    if (!layout_fits(server) || str_is_empty(setup->dir))
        return err_set(err, ERR_BAD_MESSAGE, "the step is not whole");
    server->node_of = NEW_ARRAY(uint32_t, server->layout->ntasks);
    for (uint32_t i = 0; i < server->layout->n_nodes; i++) {
        for (size_t k = 0; k < server->layout->nodes[i]->n_tasks; k++)
            server->node_of[server->layout->nodes[i]->tasks[k]] = i;
    }
    snprintf(server->nspace, sizeof(server->nspace), "slurm.pmix.%u.%u", server->layout->id->job_id,
             server->layout->id->step);
    if (pipe(server->pipe) < 0)
        return err_errno(err, errno, "pipe");
    act_begin(server);
    calls_use(server);
    return nspace_begin(server, err);
}

static int say_ready(struct server *server, struct err *err)
{
    const StepNode *here = server->layout->nodes[server->here];
    PmixOut out = PMIX_OUT__INIT;
    PmixReady ready = PMIX_READY__INIT;
    PmixTaskEnv *list = NEW_ARRAY(PmixTaskEnv, here->n_tasks);

    ready.tasks = NEW_ARRAY(PmixTaskEnv *, here->n_tasks);
    for (size_t i = 0; i < here->n_tasks; i++) {
        PmixTaskEnv *one = ready.tasks[ready.n_tasks++] = &list[i];
        pmix_task_env__init(one);
        one->has_task = true;
        one->task = here->tasks[i];
        if (nspace_env(server, one->task, &one->env, err) < 0)
            return -(int)err->code;
        while (one->env && one->env[one->n_env])
            one->n_env++;
    }
    out.what_case = PMIX_OUT__WHAT_READY;
    out.ready = &ready;
    server_say(server, &out);
    for (size_t i = 0; i < here->n_tasks; i++) {
        for (size_t k = 0; k < list[i].n_env; k++)
            free(list[i].env[k]);
        free(list[i].env);
    }
    free(ready.tasks);
    free(list);
    return 0;
}

static void begin(struct server *server, PmixSetup *setup)
{
    struct err err = { 0 };

    if (take_setup(server, setup, &err) == 0 && say_ready(server, &err) == 0)
        return;
    PmixOut out = PMIX_OUT__INIT;
    out.what_case = PMIX_OUT__WHAT_FAILED;
    out.failed = err.text;
    server_say(server, &out);
    _exit(1);
}

static void obey(struct server *server, PmixIn *in)
{
    if (in->what_case == PMIX_IN__WHAT_SETUP && !server->setup) {
        in->what_case = PMIX_IN__WHAT__NOT_SET;
        begin(server, TAKE(in->setup));
    } else if (in->what_case == PMIX_IN__WHAT_RELAYED && server->setup) {
        take_talk(server, in->relayed->from, in->relayed->data.data, in->relayed->data.len);
    }
}

/* False: the supervisor has gone. */
static bool receive(struct server *server)
{
    struct span message;

    str_reserve(&server->in, READ_BYTES);
    ssize_t len = recv(server->fd, server->in.data + server->in.len, READ_BYTES, 0);
    if (len <= 0)
        return len < 0 && errno == EINTR;
    server->in.len += (size_t)len;
    while (framed_next(&server->in, LIMIT_PMIX_BYTES, &message) > 0) {
        PmixIn *in = pmix_in__unpack(NULL, message.len, (const uint8_t *)message.ptr);
        framed_drop(&server->in);
        if (!in)
            return false;
        obey(server, in);
        pmix_in__free_unpacked(in, NULL);
    }
    return true;
}

static void take_calls(struct server *server)
{
    struct call *call;

    if (read(server->pipe[0], &call, sizeof(call)) == (ssize_t)sizeof(call))
        call->run(server, call);
}

static int wait_ms(const struct server *server)
{
    int64_t next = server->setup ? names_next_us(&server->names) : -1;

    return next < 0 ? -1 : (int)MAX((next - clock_mono_us()) / 1000 + 1, 0);
}

static void serve(struct server *server)
{
    for (;;) {
        struct pollfd ready[] = { { .fd = server->fd, .events = POLLIN },
                                  { .fd = server->setup ? server->pipe[0] : -1,
                                    .events = POLLIN } };
        if (poll(ready, ARRAY_LEN(ready), wait_ms(server)) < 0 && errno != EINTR)
            return;
        if (ready[1].revents)
            take_calls(server);
        if (ready[0].revents && !receive(server))
            return;
        if (server->setup)
            names_due(&server->names, clock_mono_us());
    }
}

static int usage(void)
{
    fputs("usage: spurstepd-pmix --version\n"
          "Serves steps that were started with srun --mpi=pmix; spurstepd starts it.\n",
          stderr);
    return 2;
}

int main(int argc, char **argv)
{
    struct server server = { .fd = -1 };
    int64_t fd;
    sigset_t all;

    if (argc == 2 && (str_eq(argv[1], "--version") || str_eq(argv[1], "-V")))
        return printf("spur %s, PMIx %ld.%ld.%ld\n", SPUR_VERSION, PMIX_VERSION_MAJOR,
                      PMIX_VERSION_MINOR, PMIX_VERSION_RELEASE) < 0;
    if (argc != 3 || !str_eq(argv[1], "--fd") || !str_to_i64(argv[2], 3, INT32_MAX, &fd))
        return usage();
    server.fd = (int)fd;
    sigfillset(&all); /* what the tasks are sent is not for us; libpmix's threads inherit this */
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    serve(&server);
    _exit(0);
}
