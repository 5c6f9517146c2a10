/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.c - the stream to the leader: found, kept, found again
 *
 * The rpc client connects to one of the addresses and reconnects with back-off. On a connection we
 * open the stream with a hello; a controller that does not lead says who does, or we try the next
 * address. A leader that does not welcome us in time is left.
 */
#include <stdlib.h>
#include <string.h>

#include "spurd/link/join.h"
#include "spurd/link/send.h"
#include "spurd/link/session.h"
#include "spurd/root.h"
#include "sys/clock.h"
#include "sys/log.h"
#include "sys/rng.h"

/* Where there is another controller to go to, one that is stopped or cut off is left soon. */
enum { KEEPALIVE_MS = 2000, KEEPALIVE_WAIT_MS = 1500 };

enum { SAY_AGAIN_US = 60 * 1000000 };

enum { BACKOFF_MIN_MS = 50, BACKOFF_MAX_MS = 5000, WELCOME_WAIT_MS = 10000, LEAVE_MS = 50 };

struct session {
    struct agent *agent;
    const struct session_ops *ops;
    struct rpc_client *client;
    struct rpc_request *stream; /* NULL: none */
    uv_timer_t timer;           /* the next try, or the end of patience */
    unsigned backoff_ms;
    struct str addresses; /* in the order to be tried */
    struct str first;     /* the address to go to next; empty: whichever follows */
    bool move;            /* to another controller, at the next try */
    bool leaving;         /* the stream ends as soon as what was said is sent */
    bool joining;
    bool anew;              /* with the certificate that we have got: a new connection */
    bool ready;             /* the client has a connection */
    int64_t unreachable_us; /* when we last said so; 0: it is not */
};

static void open_stream(struct session *session);

static void move_on(struct session *session);

static void retry(struct session *session);

static int connect_client(struct session *session, struct err *err);

static void on_timer(uv_timer_t *timer)
{
    struct session *session = timer->data;

    if (session->stream && session->leaving) {
        rpc_request_cancel(TAKE(session->stream));
        session->leaving = false;
        retry(session);
        return;
    }
    if (session->stream && !session->agent->welcomed) {
        session_reconnect(session, "no welcome");
        return;
    }
    if (session->anew) {
        struct err err = { 0 };
        session->anew = session->ready = false;
        rpc_client_free(TAKE(session->client));
        if (connect_client(session, &err) < 0)
            log_error("session.client", "text=%s", err.text);
        return;
    }
    if (session->move)
        move_on(session);
    open_stream(session);
}

static void retry(struct session *session)
{
    uint64_t wait = session->backoff_ms / 2 + rng_below(session->backoff_ms / 2 + 1);

    session->backoff_ms = MIN(session->backoff_ms * 2, BACKOFF_MAX_MS);
    uv_timer_start(&session->timer, on_timer, wait, 0);
}

static void add_address(struct str *list, struct span word)
{
    str_addf(list, "%s%.*s", list->len ? "," : "", (int)word.len, word.ptr);
}

/*
 * Goes to session->first, or to the address after the present one. The client stays where it is as
 * long as that is in its list, so it gets the new one alone before it gets them all.
 */
static void move_on(struct session *session)
{
    struct str list = { 0 };
    const char *cursor = str_text(&session->addresses);
    struct span word, last = { 0 };

    session->move = false;
    if (session->first.len)
        str_add(&list, str_text(&session->first));
    while (str_next(&cursor, ",", &word)) {
        if (!session->first.len && !last.ptr)
            last = word;
        else if (!span_eq(word, str_text(&session->first)))
            add_address(&list, word);
    }
    if (last.ptr)
        add_address(&list, last);
    str_clear(&session->first);
    str_done(&session->addresses);
    session->addresses = list;
    CLEANUP(freep) char *head = mem_strndup(list.data, strcspn(list.data, ","));
    if (rpc_client_set_addresses(session->client, head, NULL) == 0)
        rpc_client_set_addresses(session->client, str_text(&list), NULL);
    session->ready = rpc_client_state(session->client) == RPC_READY;
}

static void on_done(struct rpc_request *request, const ProtobufCMessage *reply,
                    const struct err *err)
{
    struct session *session = rpc_request_data(request);

    (void)reply;
    session->stream = NULL;
    session->leaving = false;
    session->ops->disconnected(session->agent);
    log_verbose("session.ended", "peer=%s why=%s", rpc_client_peer(session->client),
                err ? err->text : "ended");
    if (err && err->code == ERR_NOT_LEADER) {
        session->move = true;
        str_clear(&session->first);
        str_add(&session->first, rpc_request_leader(request));
    } else if (err && (err->code == ERR_UNAUTHENTICATED || err->code == ERR_PERMISSION)) {
        log_error("session.refused", "peer=%s why=%s", rpc_client_peer(session->client), err->text);
    }
    retry(session);
}

static void on_message(struct rpc_request *request, const ProtobufCMessage *message)
{
    struct session *session = rpc_request_data(request);

    if (session->leaving)
        return;
    session->ops->message(session->agent, (const CtlMessage *)(const void *)message);
    if (session->agent->welcomed && session->stream && !session->leaving) {
        session->backoff_ms = BACKOFF_MIN_MS;
        uv_timer_stop(&session->timer);
    }
}

static void joined(void *ctx, const struct err *err)
{
    struct session *session = ctx;

    session->joining = false;
    if (err && err->code == ERR_NOT_LEADER) { /* the leader records our key: another one is it */
        session->move = true;
        retry(session);
        return;
    }
    if (err) {
        log_error("join.failed", "why=%s", err->text);
        retry(session);
        return;
    }
    session->anew = session->agent->tls_client != NULL;
    uv_timer_start(&session->timer, on_timer, 0, 0); /* not from inside the client */
}

static void open_stream(struct session *session)
{
    struct arena arena;

    if (session->stream || session->joining || !session->ready)
        return;
    if (join_is_due(session->agent)) {
        session->joining = true;
        join_start(session->agent, session->client, joined, session);
        return;
    }
    if (session->agent->login)
        return; /* it has nothing to say until somebody asks */
    arena_init(&arena);
    NodeMessage *hello = agent_hello(session->agent, &arena);
    const struct rpc_request_options options = {
        .path = "/spur.Agents/Session",
        .message = &hello->base,
        .reply = &ctl_message__descriptor,
        .open = true,
        .data = session,
        .on_message = on_message,
        .on_done = on_done,
    };
    session->stream = rpc_request_start(session->client, &options);
    arena_done(&arena);
    uv_timer_start(&session->timer, on_timer, WELCOME_WAIT_MS, 0);
}

/* Once when it begins, and every so often while it lasts. */
static void say_unreachable(struct session *session, const struct err *why)
{
    int64_t now_us = clock_mono_us();

    if (session->unreachable_us && now_us - session->unreachable_us < SAY_AGAIN_US)
        return;
    session->unreachable_us = now_us;
    log_warn("session.unreachable", "peer=%s why=%s", rpc_client_peer(session->client), why->text);
}

static void on_state(void *ctx, enum rpc_state state, const struct err *why)
{
    struct session *session = ctx;

    session->ready = state == RPC_READY;
    if (state == RPC_READY && !session->stream) {
        uv_timer_stop(&session->timer);
        open_stream(session);
    } else if (state == RPC_WAITING && why) {
        say_unreachable(session, why);
    }
    if (state == RPC_READY && session->unreachable_us) {
        log_info("session.reached", "peer=%s", rpc_client_peer(session->client));
        session->unreachable_us = 0;
    }
}

static void credentials(void *ctx, struct str *out)
{
    struct session *session = ctx;

    join_credentials(session->agent, out);
}

static int connect_client(struct session *session, struct err *err)
{
    struct agent *agent = session->agent;
    bool several = strchr(str_text(&session->addresses), ',') != NULL;
    const struct rpc_client_options options = {
        .addresses = str_text(&session->addresses),
        .ctx = session,
        .tls = agent->tls_client,
        .allow_plaintext = agent->allow_plaintext,
        .credentials = credentials,
        .state = on_state,
        .connect_ms = 3000,
        .backoff_min_ms = BACKOFF_MIN_MS,
        .backoff_max_ms = BACKOFF_MAX_MS,
        .keepalive_ms = several ? KEEPALIVE_MS : 0,
        .keepalive_wait_ms = several ? KEEPALIVE_WAIT_MS : 0,
    };

    session->client = rpc_client_new(agent->rpc, &options, err);
    return session->client ? 0 : -(int)err->code;
}

struct session *session_new(struct agent *agent, const struct session_ops *ops, struct err *err)
{
    struct session *session = NEW(struct session);

    session->agent = agent;
    session->ops = ops;
    session->backoff_ms = BACKOFF_MIN_MS;
    str_add(&session->addresses, agent->controllers);
    uv_timer_init(agent->uv, &session->timer);
    session->timer.data = session;
    if (connect_client(session, err) < 0) {
        session_free(session);
        return NULL;
    }
    return session;
}

static void session_closed(uv_handle_t *handle)
{
    struct session *session = handle->data;

    str_done(&session->addresses);
    str_done(&session->first);
    free(session);
}

void session_free(struct session *session)
{
    if (!session)
        return;
    uv_timer_stop(&session->timer);
    if (session->stream)
        rpc_request_cancel(TAKE(session->stream));
    if (session->client)
        rpc_client_free(TAKE(session->client));
    uv_close((uv_handle_t *)&session->timer, session_closed);
}

struct rpc_client *session_client(struct session *session)
{
    return session->ready && !session->joining ? session->client : NULL;
}

const char *session_addresses(const struct session *session)
{
    return str_text(&session->addresses);
}

void session_follow(struct session *session, const char *leader)
{
    if (session->stream)
        return; /* the stream's own end says so too */
    str_clear(&session->first);
    str_add(&session->first, leader);
    move_on(session);
}

bool session_send(struct session *session, const NodeMessage *message)
{
    return session->stream && rpc_request_send(session->stream, &message->base);
}

void session_reconnect(struct session *session, const char *why)
{
    if (session->leaving)
        return;
    log_info("session.left", "peer=%s why=%s", rpc_client_peer(session->client), why);
    session->ops->disconnected(session->agent);
    session->move = true;
    str_clear(&session->first);
    if (session->stream) {
        session->leaving = true;
        rpc_request_finish(session->stream);
        uv_timer_start(&session->timer, on_timer, LEAVE_MS, 0);
    } else {
        retry(session);
    }
}

/* What the leader knows of the controllers, added to what we were told. */
void session_set_controllers(struct session *session, char *const *addresses, size_t count)
{
    bool added = false;

    for (size_t i = 0; i < count; i++) {
        const char *cursor = str_text(&session->addresses);
        struct span word;
        bool known = false;
        while (str_next(&cursor, ",", &word))
            known = known || span_eq(word, addresses[i]);
        if (known || strchr(addresses[i], ','))
            continue;
        str_addf(&session->addresses, ",%s", addresses[i]);
        added = true;
    }
    if (added)
        rpc_client_set_addresses(session->client, str_text(&session->addresses), NULL);
}
