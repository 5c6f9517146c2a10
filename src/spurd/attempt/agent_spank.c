/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_spank.c - SPANK plugins in the context of the node: slurm_spank_init and slurm_spank_slurmd_exit
 *
 * They run in a process of their own for as long as we do. It is told to end by the end of its standard input, so it also
 * goes when we crash. A required plugin that fails drains the node.
 */
#include <stdlib.h>

#include "spurd/attempt/life.h"
#include "spurd/link/send.h"
#include "spurd/root.h"
#include "spurd/task/env.h"
#include "spurd/task/task.h"
#include "sys/log.h"

struct spank_helper {
    struct agent *agent; /* NULL: it was told to end */
    uv_process_t process;
    uv_pipe_t in;
    unsigned open;
};

static void on_close(uv_handle_t *handle)
{
    struct spank_helper *helper = handle->data;

    if (--helper->open == 0)
        free(helper);
}

static void close_input(struct spank_helper *helper)
{
    if (!uv_is_closing((uv_handle_t *)&helper->in))
        uv_close((uv_handle_t *)&helper->in, on_close);
}

static void on_gone(uv_process_t *process, int64_t status, int signal)
{
    struct spank_helper *helper = process->data;

    if (helper->agent) {
        log_error("spank.slurmd", "ended status=%d signal=%d", (int)status, signal);
        agent_ask_drain(helper->agent, "SPANK plugin failed");
        helper->agent->spank_helper = NULL;
    }
    close_input(helper);
    uv_close((uv_handle_t *)process, on_close);
}

void agent_spank_start(struct agent *agent)
{
    if (agent->login || !task_spank_used(agent->spank))
        return;
    struct spank_helper *helper = NEW(struct spank_helper);
    char **words = task_spank_words(agent->spank, "--slurmd");
    uv_stdio_container_t stdio[] = {
        { .flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = (uv_stream_t *)&helper->in },
        { .flags = UV_IGNORE },
        { .flags = UV_INHERIT_FD, .data.fd = 2 },
    };
    uv_process_options_t options = { .file = words[0],
                                     .args = words,
                                     .stdio = stdio,
                                     .stdio_count = 3,
                                     .flags = UV_PROCESS_DETACHED,
                                     .exit_cb = on_gone };
    helper->open = 2;
    uv_pipe_init(agent->uv, &helper->in, 0);
    helper->in.data = helper->process.data = helper;
    int code = uv_spawn(agent->uv, &helper->process, &options);
    env_list_free(words);
    if (code < 0) {
        log_error("spank.slurmd", "%s: %s",
                  agent->spank->program ? agent->spank->program : "spurstepd-spank",
                  uv_strerror(code));
        agent_ask_drain(agent, "SPANK plugins cannot be run");
        close_input(helper);
        uv_close((uv_handle_t *)&helper->process, on_close);
        return;
    }
    uv_unref((uv_handle_t *)&helper->process); /* a plugin that hangs does not keep us */
    helper->agent = agent;
    agent->spank_helper = helper;
    log_info("spank.slurmd", "started pid=%d", helper->process.pid);
}

void agent_spank_stop(struct agent *agent)
{
    struct spank_helper *helper = TAKE(agent->spank_helper);

    if (!helper)
        return;
    helper->agent = NULL;
    close_input(helper);
}
