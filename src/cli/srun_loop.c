// SPDX-License-Identifier: Apache-2.0
/*
 * srun_loop.c - until all tasks have ended
 *
 * One poll() over the connections to the nodes, standard input, and a pipe that the signal handlers
 * write to. Output is written when it comes, and waits for whoever reads it: that holds the node back.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/srun.h"
#include "cli/terminal.h"
#include "client/client.h"
#include "sys/clock.h"

const char *srun_step_name(const struct srun *srun)
{
    static char text[48];

    if (srun->layout->id->step == SRUN_STEP_INTERACTIVE)
        snprintf(text, sizeof(text), "StepId=%u.interactive", srun->job_id);
    else
        snprintf(text, sizeof(text), "StepId=%u.%u", srun->job_id, srun->layout->id->step);
    return text;
}

void srun_add_ranges(struct str *out, const uint32_t *tasks, size_t count)
{
    for (size_t i = 0; i < count;) {
        size_t run = 1;
        while (i + run < count && tasks[i + run] == tasks[i] + run)
            run++;
        str_addf(out, "%s%u", out->len ? "," : "", tasks[i]);
        if (run > 1)
            str_addf(out, "-%u", tasks[i + run - 1]);
        i += run;
    }
}

static bool all_over(const struct srun *srun)
{
    for (size_t i = 0; i < srun->node_count; i++) {
        if (srun->nodes[i].launched && !srun->nodes[i].over)
            return false;
    }
    return true;
}

/* --wait, and nodes that do not end what they were told to end. */
static int64_t do_due(struct srun *srun)
{
    int64_t now = clock_boot_us(), next = 0, at;

    if (srun->request.wait_s && srun->first_exit_us && !srun->killing) {
        at = srun->first_exit_us + srun->request.wait_s * (int64_t)SRUN_SECOND_US;
        if (now >= at) {
            cli_say(&srun->cli, "First task exited %us ago", srun->request.wait_s);
            srun_show_tasks(srun);
            cli_say(&srun->cli, "Terminating %s", srun_step_name(srun));
            srun->aborted = true;
            srun_end_step(srun, JOB_CANCELLED, 0);
        } else {
            next = at;
        }
    }
    if (srun->give_up_us && (!next || srun->give_up_us < next))
        next = srun->give_up_us;
    at = srun_say_exits(srun, false);
    next = at && (!next || at < next) ? at : next;
    at = srun_reconnect(srun);
    return at && (!next || at < next) ? at : next;
}

static void serve(struct srun *srun, struct pollfd *fds, size_t count)
{
    if (fds[0].revents)
        srun_serve_signals(srun);
    if (fds[1].revents && srun->input_fd >= 0)
        srun_read_input(srun);
    if (fds[2].revents && srun->own)
        alloc_check(&srun->alloc);
    for (size_t i = 0; i < count; i++)
        srun_serve_node(srun, &srun->nodes[i]);
}

static void loop(struct srun *srun)
{
    struct pollfd *fds = NEW_ARRAY(struct pollfd, srun->node_count + 3);

    while (!all_over(srun)) {
        int64_t due = do_due(srun), now = clock_boot_us();
        int wait_ms = due ? (int)MAX((due - now) / 1000 + 1, 0) : -1;

        if (srun->give_up_us && now >= srun->give_up_us) {
            cli_error(&srun->cli, "Timed out waiting for job step to complete");
            srun->failed = true;
            break;
        }
        bool may_read = srun->input_fd >= 0 && srun_input_room(srun) > 0;
        fds[0] = (struct pollfd){ .fd = srun_signal_pipe[0], .events = POLLIN };
        fds[1] = (struct pollfd){ .fd = may_read ? srun->input_fd : -1, .events = POLLIN };
        fds[2] = (struct pollfd){ .fd = srun->own ? alloc_fd(&srun->alloc) : -1, .events = POLLIN };
        for (size_t i = 0; i < srun->node_count; i++) {
            struct srun_node *node = &srun->nodes[i];
            fds[3 + i] = (struct pollfd){ .fd = node->stream ? client_fd(node->client) : -1,
                                          .events = POLLIN };
            if (node->stream)
                fds[3 + i].events = client_events(node->client);
        }
        if (poll(fds, srun->node_count + 3, wait_ms) < 0 && errno != EINTR)
            break;
        serve(srun, fds, srun->node_count);
    }
    srun_say_exits(srun, true);
    free(fds);
}

/* The manager takes the step's share back before we say that it is over. */
void srun_leave(struct srun *srun)
{
    for (size_t i = 0; i < srun->node_count; i++) {
        struct srun_node *node = &srun->nodes[i];
        struct err err = { 0 };
        if (!node->manager || !node->stream)
            continue;
        client_stream_finish(node->stream);
        for (int tries = 0; tries < 20 && node->stream; tries++) {
            client_pump(node->client, &err);
            ProtobufCMessage *message;
            if (client_stream_try(node->stream, &srun->cli.arena, &message, &err) != CLIENT_AGAIN)
                break;
            struct pollfd fd = { .fd = client_fd(node->client),
                                 .events = client_events(node->client) };
            poll(&fd, 1, 50);
        }
    }
}

int srun_loop(struct srun *srun)
{
    if (srun->request.pty)
        terminal_raw();
    loop(srun);
    terminal_restore();
    if (srun->killed_by_9 || (srun->killing && srun->highest > 128))
        cli_say(&srun->cli, "Force Terminated %s", srun_step_name(srun));
    srun_leave(srun);
    /* Tasks that ran before another could not be started were killed for it: that is not their result. */
    if (srun->failed && (srun->highest == 0 || (srun->launch_failed && srun->killed_by_9))) {
        srun->highest = 1;
        srun->highest_status = 1 << 8;
    }
    if (srun->mpi_aborted) {
        srun->highest = (int)srun->mpi_code;
        srun->highest_status = (int)srun->mpi_code << 8;
    }
    return srun->highest;
}
