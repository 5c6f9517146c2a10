/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x11.c - displays of jobs on this node: who may have one, where it listens, how long it lives
 */
#include "spurd/access/x11.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/limits.h"
#include "rpc/rpc.h"
#include "spurd/access/access.h"
#include "spurd/task/task.h"
#include "sys/files.h"
#include "sys/log.h"
#include "sys/rng.h"

enum { FIRST_DISPLAY = 10, BACKLOG = 16 };

#define ASKED "SPUR_X11="

void x11_ref(struct x11 *x11)
{
    x11->refs++;
}

void x11_unref(struct x11 *x11)
{
    if (--x11->refs > 0)
        return;
    as_user_done(&x11->user);
    vec_done(&x11->conns);
    free(x11->home_file);
    free(x11->path);
    free(x11);
}

static void on_closed(uv_handle_t *handle)
{
    x11_unref(handle->data);
}

static void x11_free(struct x11 *x11)
{
    struct x11_displays *all = x11->agent->x11;

    if (x11->closing)
        return;
    x11->closing = true;
    for (size_t i = all->list.len; i-- > 0;) {
        if (all->list.items[i] == x11)
            vec_remove(&all->list, i);
    }
    x11_close_all(x11);
    x11_remove_file(x11);
    log_verbose("x11.closed", "job=%u display=%u", x11->job, x11->display);
    x11_ref(x11);
    uv_timer_stop(&x11->timer);
    uv_close((uv_handle_t *)&x11->listener, on_closed);
    uv_close((uv_handle_t *)&x11->timer, on_closed);
}

/* A socket that listens on the display's port; -1: somebody else does. */
static int listen_on(uint32_t display)
{
    struct sockaddr_in addr = { .sin_family = AF_INET,
                                .sin_port = htons((uint16_t)(X11_PORT + display)),
                                .sin_addr = { htonl(INADDR_LOOPBACK) } };
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(fd, BACKLOG) < 0)
        file_close(&fd);
    return fd;
}

/* `display` 0: any that is free. */
static struct x11 *x11_new(struct agent *agent, const struct attempt *held, uint32_t display,
                           const ProtobufCBinaryData *cookie, struct err *err)
{
    uint32_t first = display ? display : FIRST_DISPLAY;
    uint32_t last = display ? display : FIRST_DISPLAY + LIMIT_X11_DISPLAYS - 1;
    int fd = -1;

    for (uint32_t at = first; at <= last && fd < 0; at++) {
        fd = listen_on(at);
        display = at;
    }
    if (fd < 0) {
        err_set(err, ERR_TOO_MANY, "no display is free on node %s", agent->name);
        return NULL;
    }
    struct x11 *x11 = NEW(struct x11);
    x11->agent = agent;
    x11->refs = 1;
    x11->job = held->job;
    x11->attempt = held->attempt;
    x11->display = display;
    as_user_init(&x11->user, held->grant->owner);
    if (cookie && cookie->len == sizeof(x11->cookie))
        memcpy(x11->cookie, cookie->data, sizeof(x11->cookie));
    else
        rng_bytes(x11->cookie, sizeof(x11->cookie));
    uv_tcp_init(agent->uv, &x11->listener);
    uv_timer_init(agent->uv, &x11->timer);
    x11->listener.data = x11->timer.data = x11;
    vec_push(&agent->x11->list, x11);
    if (uv_tcp_open(&x11->listener, fd) < 0 ||
        uv_listen((uv_stream_t *)&x11->listener, BACKLOG, x11_on_connection) < 0) {
        err_set(err, ERR_IO, "listening for display %u", display);
        x11_free(x11);
        return NULL;
    }
    log_verbose("x11.open", "job=%u display=%u", x11->job, display);
    return x11;
}

/* ---- streams ---- */

static void send_ready(struct x11 *x11)
{
    X11Out out = X11_OUT__INIT;
    X11Ready ready = X11_READY__INIT;

    ready.has_display = ready.has_cookie = true;
    ready.display = x11->display;
    ready.cookie = (ProtobufCBinaryData){ .data = x11->cookie, .len = sizeof(x11->cookie) };
    ready.xauthority = x11->path;
    out.what_case = X11_OUT__WHAT_READY;
    out.ready = &ready;
    rpc_send(x11->call, &out.base);
    x11_resume(x11);
}

/* The stream ends: with it the display of a step, but not that of a script (2). */
static void detach(struct x11 *x11, const struct err *err)
{
    struct rpc_call *call = TAKE(x11->call);

    if (call) {
        rpc_call_set_data(call, NULL);
        if (err)
            rpc_fail(call, err);
        else
            rpc_end(call);
    }
    if (x11->batch)
        x11_close_all(x11);
    else
        x11_free(x11);
}

static void home_done(struct x11 *x11, const struct err *err)
{
    if (!x11->call || x11->closing)
        return;
    if (err)
        detach(x11, err);
    else
        send_ready(x11);
}

/* Whose job it is, or a proof of its manager; as for steps. */
static struct attempt *check(struct agent *agent, struct rpc_call *call, const X11Open *open,
                             struct err *err)
{
    StepLayout *layout =
        open->has_layout ? step_layout__unpack(NULL, open->layout.len, open->layout.data) : NULL;
    struct attempt *held = NULL;

    if (layout && layout->id)
        held = attempt_find(&agent->table, layout->id->job_id, layout->id->attempt);
    else if (!open->has_layout)
        held = attempt_other(&agent->table, open->job_id, 0);
    if (layout)
        step_layout__free_unpacked(layout, NULL);
    if (!held || !held->grant || !held->grant->owner)
        err_code(err, ERR_INVALID_JOB_ID);
    else if (open->has_layout && !step_is_proved(held->grant, &open->layout, &open->proof))
        err_code(err, ERR_CREDENTIAL);
    else if (!open->has_layout && step_check_owner(call, held, err) < 0)
        ;
    else if (held->revoked || !held->ready || (held->ended && held->launched))
        err_code(err, ERR_ALREADY_DONE);
    if (!err->code)
        return held;
    step_refused(call, "x11", open->job_id, err);
    return NULL;
}

static bool wants_home(const struct agent *agent)
{
    const Config *config = agent_common(agent);

    return config && !str_is_empty(config->x11_parameters) &&
           strstr(config->x11_parameters, "home_xauthority");
}

static struct x11 *find_batch(const struct agent *agent, const struct attempt *held)
{
    for (size_t i = 0; i < agent->x11->list.len; i++) {
        struct x11 *x11 = agent->x11->list.items[i];
        if (x11->batch && x11->job == held->job && x11->attempt == held->attempt)
            return x11;
    }
    return NULL;
}

/* After a restart of ours the script still has the display that it had. */
static struct x11 *open_batch(struct agent *agent, const struct attempt *held, const X11Open *open,
                              struct err *err)
{
    struct x11 *x11 = find_batch(agent, held);

    if (!x11 && open->display && open->has_cookie) {
        x11 = x11_new(agent, held, open->display, &open->cookie, err);
        if (x11)
            x11->batch = true;
        if (x11 && x11_write_file(x11, held->grant->owner, err) < 0) {
            x11_free(x11);
            return NULL;
        }
    }
    if (!x11 && !err->code)
        err_set(err, ERR_NOT_FOUND, "job %u has no display here", held->job);
    if (x11 && x11->call) { /* a stream that has not noticed that it is broken */
        struct err gone = { 0 };
        err_set(&gone, ERR_CONNECTION_LOST, "another command forwards now");
        detach(x11, &gone);
    }
    return x11;
}

static void on_open(struct rpc_call *call, const X11Open *open)
{
    struct agent *agent = rpc_call_ctx(call);
    struct err err = { 0 };
    struct attempt *held = check(agent, call, open, &err);
    struct x11 *x11 = NULL;

    if (agent->stopping)
        held = NULL, err_code(&err, ERR_SHUTTING_DOWN);
    else if (held &&
             (open->display > UINT16_MAX - X11_PORT || agent->x11->list.len >= LIMIT_X11_DISPLAYS))
        err_set(&err, ERR_TOO_MANY, "displays on this node");
    else if (held && open->batch)
        x11 = open_batch(agent, held, open, &err);
    else if (held)
        x11 = x11_new(agent, held, open->display, &open->cookie, &err);
    bool home = x11 && !x11->batch && wants_home(agent) && !str_is_empty(open->home) &&
                open->home[0] == '/' && strlen(open->home) < LIMIT_PATH_BYTES;
    if (x11 && !x11->batch && !home && x11_write_file(x11, held->grant->owner, &err) < 0) {
        x11_free(x11);
        x11 = NULL;
    }
    if (!x11) {
        rpc_fail(call, &err);
        return;
    }
    x11->call = call;
    rpc_call_set_data(call, x11);
    if (home)
        x11_write_home(x11, open->home, home_done);
    else
        send_ready(x11);
}

static void on_message(struct rpc_call *call, const ProtobufCMessage *message)
{
    const X11In *in = (const void *)message;
    struct x11 *x11 = rpc_call_data(call);
    struct err err = { 0 };

    if (in->what_case == X11_IN__WHAT_OPEN && !x11) {
        on_open(call, in->open);
    } else if (in->what_case == X11_IN__WHAT_DATA && x11) {
        x11_on_data(x11, in->data);
    } else if (x11) {
        err_code(&err, ERR_BAD_MESSAGE);
        detach(x11, &err);
    }
}

static void on_end(struct rpc_call *call)
{
    struct x11 *x11 = rpc_call_data(call);

    if (x11)
        detach(x11, NULL);
    else
        rpc_end(call);
}

static const struct rpc_watch watch = { .on_message = on_message,
                                        .on_half_close = on_end,
                                        .on_cancel = on_end };

static void on_forward(struct rpc_call *call, const ProtobufCMessage *message)
{
    (void)message;
    rpc_watch(call, &watch);
}

const struct rpc_method x11_methods[] = {
    { "/spur.NodeAccess/ForwardX11", RPC_ANON | RPC_USER, false, RPC_BIDI, &x11_in__descriptor,
      &x11_out__descriptor, on_forward, 0 },
};
const size_t x11_method_count = ARRAY_LEN(x11_methods);

/* ---- for the agent ---- */

int x11_open(struct agent *agent, struct err *err)
{
    CLEANUP(freep) char *dir = mem_printf("%s/x11", agent->run_dir);

    agent->x11 = NEW(struct x11_displays);
    file_remove_tree(dir, NULL); /* displays end with their agent; scripts get theirs again */
    return file_make_dirs(dir, 0711, err);
}

void x11_close(struct agent *agent)
{
    struct err err = { 0 };

    err_code(&err, ERR_SHUTTING_DOWN); /* not an end: the next one goes on */
    while (agent->x11 && agent->x11->list.len) {
        struct x11 *x11 = agent->x11->list.items[0];
        x11->batch = false;
        detach(x11, &err);
    }
    if (agent->x11)
        vec_done(&agent->x11->list);
    free(TAKE(agent->x11));
}

void x11_forget(struct agent *agent, uint32_t job, uint32_t attempt)
{
    for (size_t i = agent->x11 ? agent->x11->list.len : 0; i-- > 0;) {
        struct x11 *x11 = agent->x11->list.items[i];
        if (x11->job != job || x11->attempt != attempt)
            continue;
        x11->batch = false;
        detach(x11, NULL);
    }
}

void x11_batch(struct agent *agent, const struct attempt *held, const JobPayload *payload,
               struct arena *arena, struct task_node *node)
{
    bool asked = false;
    struct err err = { 0 };

    for (size_t i = 0; i < payload->n_env && !asked; i++)
        asked = payload->env[i].len > strlen(ASKED) &&
                memcmp(payload->env[i].data, ASKED, strlen(ASKED)) == 0;
    if (!asked)
        return;
    struct x11 *x11 = find_batch(agent, held); /* a zygote that died is asked again */
    if (!x11) {
        x11 = x11_new(agent, held, 0, NULL, &err);
        if (x11)
            x11->batch = true;
        if (x11 && x11_write_file(x11, held->grant->owner, &err) < 0) {
            x11_free(x11);
            x11 = NULL;
        }
    }
    if (!x11) {
        log_warn("x11.batch", "job=%u error=%s", held->job, err.text);
        return;
    }
    node->display = arena_printf(arena, "localhost:%u.0", x11->display);
    node->xauthority = arena_strdup(arena, x11->path);
}
