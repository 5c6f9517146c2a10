/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_watch.c - spurd-nvml runs while a job here has GPUs of NVIDIA, for their supervisors to read
 *
 * It is told to end by the end of its standard input, so it also goes when we do.
 */
#include <stdlib.h>
#include <string.h>

#include "spurd/attempt/life.h"
#include "spurd/root.h"
#include "spurd/task/task.h"
#include "sys/files.h"
#include "sys/log.h"

enum { EVERY_MS = 2000 };

struct gpu_watch {
    struct agent *agent; /* NULL: it has gone */
    uv_process_t process;
    uv_pipe_t in;
    unsigned open;
};

static void on_close(uv_handle_t *handle)
{
    struct gpu_watch *watch = handle->data;

    if (--watch->open == 0)
        free(watch);
}

static void stop(struct gpu_watch *watch)
{
    if (!uv_is_closing((uv_handle_t *)&watch->in))
        uv_close((uv_handle_t *)&watch->in, on_close);
}

static void on_gone(uv_process_t *process, int64_t status, int signal)
{
    struct gpu_watch *watch = process->data;

    if (watch->agent && watch->agent->gpu_watch == watch) {
        log_warn("gpu.watch", "ended status=%d signal=%d, GPU use is not known until the next job",
                 (int)status, signal);
        watch->agent->gpu_watch = NULL;
    }
    stop(watch);
    uv_close((uv_handle_t *)process, on_close);
}

static void start(struct agent *agent, const char *library)
{
    struct gpu_watch *watch = NEW(struct gpu_watch);
    CLEANUP(freep) char *dir = mem_printf("%s/gpus", agent->run_dir);
    CLEANUP(freep) char *every = mem_printf("%d", EVERY_MS);
    char *args[] = { agent->nvml, (char *)(uintptr_t)library, dir, every, NULL };
    struct err err = { 0 };
    uv_stdio_container_t stdio[] = {
        { .flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = (uv_stream_t *)&watch->in },
        { .flags = UV_IGNORE },
        { .flags = UV_INHERIT_FD, .data.fd = 2 },
    };
    uv_process_options_t options = { .file = agent->nvml,
                                     .args = args,
                                     .stdio = stdio,
                                     .stdio_count = 3,
                                     .flags = UV_PROCESS_DETACHED,
                                     .exit_cb = on_gone };

    file_make_dirs(dir, 0755, &err);
    watch->agent = agent;
    watch->open = 2;
    uv_pipe_init(agent->uv, &watch->in, 0);
    watch->in.data = watch->process.data = watch;
    int code = uv_spawn(agent->uv, &watch->process, &options);
    if (code < 0) {
        log_warn("gpu.watch", "%s: %s", agent->nvml, uv_strerror(code));
        stop(watch);
        uv_close((uv_handle_t *)&watch->process, on_close);
        return;
    }
    uv_unref((uv_handle_t *)&watch->process); /* a driver that hangs does not keep us */
    agent->gpu_watch = watch;
    log_verbose("gpu.watch", "started pid=%d", watch->process.pid);
}

static bool is_wanted(struct agent *agent)
{
    struct task_node node;

    agent_task_node(agent, &node);
    map_each (entry, &agent->table.held) {
        const struct attempt *held = entry->value;
        if (held->grant && (held->launched || held->steps) && !held->ended &&
            task_has_nvidia(&node, held->grant))
            return true;
    }
    return false;
}

void agent_gpu_watch(struct agent *agent)
{
    const char *library = getenv("SPUR_NVML");

    if (!agent->nvml || !task_node_has_nvidia(&agent->inventory.node))
        return;
    if (str_is_empty(library))
        library = str_is_empty(agent->sysroot) ? "libnvidia-ml.so.1" : NULL;
    bool wanted = library && !agent->stopping && is_wanted(agent);
    if (wanted && !agent->gpu_watch)
        start(agent, library);
    else if (!wanted)
        agent_gpu_watch_stop(agent);
}

void agent_gpu_watch_stop(struct agent *agent)
{
    if (!agent->gpu_watch)
        return;
    agent->gpu_watch->agent = NULL;
    stop(agent->gpu_watch);
    agent->gpu_watch = NULL;
}
