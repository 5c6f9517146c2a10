/* SPDX-License-Identifier: Apache-2.0 */
/*
 * echo_service.c - the service that tests and benches call: one method of every kind
 */
#include "echo_service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct later {
    uv_timer_t timer;
    struct rpc_call *call;
    struct rpc_auth *auth;
    unsigned roles;
    EchoMessage reply;
};

static void on_later_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void on_later(uv_timer_t *timer)
{
    struct later *later = timer->data;

    if (later->auth)
        rpc_auth_done(later->auth, NULL, later->roles);
    else
        rpc_reply(later->call, &later->reply.base);
    uv_close((uv_handle_t *)timer, on_later_closed);
}

static struct later *later_new(struct rpc_call *call, struct rpc_auth *auth, uv_loop_t *uv,
                               unsigned ms)
{
    struct later *later = NEW(struct later);

    later->call = call;
    later->auth = auth;
    uv_timer_init(uv, &later->timer);
    later->timer.data = later;
    uv_timer_start(&later->timer, on_later, ms, 0);
    return later;
}

/* `number` is how many milliseconds the answer takes; none answers at once. */
static void say(struct rpc_call *call, const ProtobufCMessage *message)
{
    const EchoMessage *request = (const void *)message;
    struct echo *echo = rpc_call_ctx(call);

    if (!request->number) {
        rpc_reply(call, message);
        return;
    }
    struct later *later = later_new(call, NULL, uv_default_loop(), request->number);
    echo_message__init(&later->reply);
    later->reply.text = request->text; /* in the call's arena */
    echo->held++;
}

struct count {
    uint32_t left;
    EchoMessage reply;
};

static void count_more(struct rpc_call *call)
{
    struct count *count = rpc_call_data(call);

    while (count->left && rpc_writable(call)) {
        count->reply.number = --count->left;
        if (!rpc_send(call, &count->reply.base))
            break;
    }
    if (!count->left || rpc_call_cancelled(call))
        rpc_end(call);
}

static void count_cancelled(struct rpc_call *call)
{
    ((struct echo *)rpc_call_ctx(call))->cancelled++;
    rpc_end(call);
}

static const struct rpc_watch count_watch = { .on_writable = count_more,
                                              .on_cancel = count_cancelled };

/* Sends `number` messages with the same data, as fast as the caller reads. */
static void count(struct rpc_call *call, const ProtobufCMessage *message)
{
    const EchoMessage *request = (const void *)message;
    struct count *count = ARENA_NEW(rpc_call_arena(call), struct count);

    echo_message__init(&count->reply);
    count->left = request->number;
    count->reply.has_number = true;
    count->reply.has_data = request->has_data;
    count->reply.data = request->data;
    rpc_call_set_data(call, count);
    rpc_watch(call, &count_watch);
    count_more(call);
}

static void chat_message(struct rpc_call *call, const ProtobufCMessage *message)
{
    struct echo *echo = rpc_call_ctx(call);

    echo->messages++;
    if (echo->stuck_chat && !echo->stuck) {
        echo->stuck = call;
        rpc_pause(call);
    }
    rpc_send(call, message);
}

static void chat_half_closed(struct rpc_call *call)
{
    ((struct echo *)rpc_call_ctx(call))->half_closed++;
    rpc_end(call);
}

static void chat_cancelled(struct rpc_call *call)
{
    struct echo *echo = rpc_call_ctx(call);

    echo->cancelled++;
    if (echo->stuck == call)
        echo->stuck = NULL;
    rpc_end(call);
}

static const struct rpc_watch chat_watch = { .on_message = chat_message,
                                             .on_half_close = chat_half_closed,
                                             .on_cancel = chat_cancelled };

static void chat(struct rpc_call *call, const ProtobufCMessage *message)
{
    (void)message;
    rpc_watch(call, &chat_watch);
}

void echo_unstick(struct echo *echo)
{
    echo->stuck_chat = false;
    if (echo->stuck)
        rpc_resume(TAKE(echo->stuck));
}

static void who(struct rpc_call *call, const ProtobufCMessage *message)
{
    const struct rpc_identity *id = rpc_call_identity(call);
    EchoWho reply = ECHO_WHO__INIT;

    (void)message;
    reply.how = (char *)(uintptr_t)rpc_how_name(id->how);
    reply.has_uid = id->has_uid;
    reply.uid = id->uid;
    reply.user = (char *)(uintptr_t)id->user;
    reply.node = (char *)(uintptr_t)id->node;
    reply.has_roles = true;
    reply.roles = rpc_call_roles(call);
    rpc_reply(call, &reply.base);
}

/* Fails with the code whose name is in `text`, or ERR_INVALID_JOB_ID. */
static void fail(struct rpc_call *call, const ProtobufCMessage *message)
{
    const EchoMessage *request = (const void *)message;
    struct err err;

    err_set(&err, ERR_INVALID_JOB_ID, "no job %u: 100%% sure, \xc3\xa9t\xc3\xa9", request->number);
    for (int code = 1; request->text && code < ERR_COUNT; code++) {
        if (strcmp(err_name((enum err_code)code), request->text) == 0)
            err_code(&err, (enum err_code)code);
    }
    err_option(&err, "job");
    rpc_fail(call, &err);
}

/* The request as it came, the reply spliced from packed parts. */
static void raw(struct rpc_call *call, const ProtobufCMessage *message)
{
    struct str out = { 0 };
    size_t len;
    const void *bytes = rpc_call_packed(call, &len);

    (void)message;
    str_add_len(&out, bytes, len);
    rpc_reply_packed(call, &out);
}

/* Says what came beside the message. */
static void meta(struct rpc_call *call, const ProtobufCMessage *message)
{
    EchoMessage reply = ECHO_MESSAGE__INIT;
    const char *value = rpc_call_metadata(call, "x-test");
    int64_t left_ms = rpc_call_left_ms(call);

    (void)message;
    reply.text = arena_strdup(rpc_call_arena(call), value ? value : "none");
    reply.has_number = true;
    reply.number = left_ms == INT64_MAX ? 0 : (uint32_t)left_ms;
    rpc_reply(call, &reply.base);
}

/* Says which request id the call has, or dies of it: the client's next try must have the same. */
static void id(struct rpc_call *call, const ProtobufCMessage *message)
{
    const uint8_t *bytes = rpc_call_request_id(call);
    const struct echo *echo = rpc_call_ctx(call);
    char text[2 * RPC_REQUEST_ID_BYTES + 1] = "";
    EchoMessage reply = ECHO_MESSAGE__INIT;

    (void)message;
    for (size_t i = 0; bytes && i < RPC_REQUEST_ID_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    if (echo->die_with_id) {
        FILE *file = fopen(echo->die_with_id, "w");
        fputs(text, file);
        fclose(file);
        _exit(0);
    }
    reply.text = text;
    rpc_reply(call, &reply.base);
}

#define MESSAGE &echo_message__descriptor
#define KNOWN   (RPC_USER | RPC_ADMIN | RPC_NODE)

const struct rpc_method echo_methods[] = {
    { "/echo.Echo/Say", RPC_ANON, false, RPC_UNARY, MESSAGE, MESSAGE, say, 0 },
    { "/echo.Echo/Raw", RPC_ANON, false, RPC_UNARY, NULL, MESSAGE, raw, 0 },
    { "/echo.Echo/Small", RPC_ANON, false, RPC_UNARY, MESSAGE, MESSAGE, say, 1000 },
    { "/echo.Echo/Count", RPC_ANON, false, RPC_SERVER_STREAM, MESSAGE, MESSAGE, count, 0 },
    { "/echo.Echo/Chat", RPC_ANON, false, RPC_BIDI, MESSAGE, MESSAGE, chat, 0 },
    { "/echo.Echo/Who", RPC_ANON, false, RPC_UNARY, MESSAGE, &echo_who__descriptor, who, 0 },
    { "/echo.Echo/Known", KNOWN, false, RPC_UNARY, MESSAGE, &echo_who__descriptor, who, 0 },
    { "/echo.Echo/Admin", RPC_ADMIN, false, RPC_UNARY, MESSAGE, &echo_who__descriptor, who, 0 },
    { "/echo.Echo/Lead", RPC_ANON, true, RPC_UNARY, MESSAGE, MESSAGE, say, 0 },
    { "/echo.Echo/Meta", RPC_ANON, false, RPC_UNARY, MESSAGE, MESSAGE, meta, 0 },
    { "/echo.Echo/Id", RPC_ANON, false, RPC_UNARY, MESSAGE, MESSAGE, id, 0 },
    { "/echo.Echo/LeadCount", RPC_ANON, true, RPC_SERVER_STREAM, MESSAGE, MESSAGE, count, 0 },
    { "/echo.Echo/Fail", RPC_ANON, false, RPC_UNARY, MESSAGE, MESSAGE, fail, 0 },
};
const size_t echo_method_count = ARRAY_LEN(echo_methods);

unsigned echo_roles(void *ctx, const struct rpc_identity *identity, struct rpc_auth *auth)
{
    struct echo *echo = ctx;
    unsigned roles = RPC_ANON;

    if (identity->how == RPC_HOW_CERT && identity->node[0])
        roles |= RPC_NODE;
    if (identity->has_uid)
        roles |= RPC_USER;
    if (identity->has_uid && (identity->uid == 0 || identity->uid == getuid()))
        roles |= RPC_ADMIN;
    echo->roles_asked++;
    if (echo->no_roles)
        return 0;
    if (!echo->later_roles_ms)
        return roles;
    later_new(NULL, auth, uv_default_loop(), echo->later_roles_ms)->roles = roles;
    return RPC_ROLES_LATER;
}

void echo_start(struct echo *echo, uv_loop_t *uv, const struct rpc_server_options *options)
{
    struct rpc_server_options o = { 0 };
    struct err err;

    if (options)
        o = *options;
    o.ctx = echo;
    o.roles = echo_roles;
    echo->loop = rpc_loop_new(uv);
    echo->server = rpc_server_new(echo->loop, &o, &err);
    if (!echo->server || rpc_server_add(echo->server, echo_methods, echo_method_count, &err) < 0) {
        fprintf(stderr, "echo: %s\n", err.text);
        abort();
    }
}
