/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dial.c - the loop client's connection: made, kept, made again
 *
 * (1) A client has at most one dial, one lookup or one retry timer: what it waits for. A dial that
 *     failed, was lost or was told GOAWAY is let go: it lives until its handle is closed, or its last
 *     stream ended, but no longer belongs to the client.
 * (2) A round tries everything that every address stands for, at once; when all have failed the client
 *     waits, longer each time. The back-off starts again when a server really answered.
 */
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/client_priv.h"

struct lookup {
    uv_getaddrinfo_t req;
    struct rpc_client *client; /* NULL when it was let go meanwhile */
};

static void try_candidate(struct rpc_client *client);

static void set_state(struct rpc_client *client, enum rpc_state state, const struct err *why)
{
    if (client->state == state && state != RPC_WAITING)
        return;
    client->state = state;
    if (client->options.state)
        client->options.state(client->options.ctx, state, why);
}

static unsigned jittered(struct rpc_client *client, unsigned ms)
{
    client->jitter = client->jitter * 6364136223846793005u + 1442695040888963407u;
    return ms - ms / 5 + (unsigned)((client->jitter >> 33) % (ms * 2 / 5 + 1));
}

static void on_retry(struct timer *timer)
{
    dial_round(CONTAINER_OF(timer, struct rpc_client, retry));
}

/* Everything was tried in vain; (2) */
static void wait_for_next_round(struct rpc_client *client)
{
    unsigned wait_ms = jittered(client, client->backoff_ms);
    struct err why = client->last;

    client->backoff_ms = MIN(client->backoff_ms * 2, client->options.backoff_max_ms);
    client->retry.fire = on_retry;
    loop_timer_set(client->loop, &client->retry, loop_now_ms(client->loop) + wait_ms);
    requests_fail_waiting(client, &why, false);
    set_state(client, RPC_WAITING, &why);
}

void dial_let_go(struct dial *dial, const struct err *why)
{
    if (dial->client)
        dial->client->dial = NULL;
    dial->client = NULL;
    loop_timer_clear(dial->link.loop, &dial->timer);
    if (why || !dial->link.h2 || h2_streams(dial->link.h2) == 0)
        link_close(&dial->link, why);
}

/* The attempt, or the connection, came to nothing. */
static void lost(struct dial *dial, const struct err *why)
{
    struct rpc_client *client = dial->client;
    bool was_up = dial->link.h2 != NULL;

    dial_let_go(dial, why);
    if (!client)
        return;
    client->last = *why;
    if (was_up) {
        client->tried = 0;
        client->candidate_at = client->candidate_count = 0;
        wait_for_next_round(client);
    } else {
        try_candidate(client);
    }
}

static void next_address(struct rpc_client *client)
{
    if (client->addresses.len > 1)
        client->address_at = (client->address_at + 1) % client->addresses.len;
}

void dial_replace(struct dial *dial)
{
    struct rpc_client *client = dial->client;

    if (!client)
        return;
    dial_let_go(dial, NULL);
    next_address(client);
    err_set(&client->last, ERR_SHUTTING_DOWN, "the server is shutting down");
    wait_for_next_round(client);
}

static void keep_alive(struct dial *dial)
{
    const struct rpc_client_options *o = &dial->client->options;
    int64_t now_ms = loop_now_ms(dial->link.loop);
    struct err err;

    if (dial->ping_ms && dial->link.read_at_ms < dial->ping_ms) {
        err_set(&err, ERR_CONNECTION_LOST, "%s did not answer a PING within %u ms",
                dial->client->peer, o->keepalive_wait_ms);
        next_address(dial->client); /* its kernel would take us again */
        lost(dial, &err);
        return;
    }
    dial->ping_ms = 0;
    int64_t due_ms = dial->link.read_at_ms + o->keepalive_ms;
    if (due_ms <= now_ms) {
        dial->ping_ms = now_ms;
        h2_ping(dial->link.h2);
        link_dirty(&dial->link);
        due_ms = now_ms + o->keepalive_wait_ms;
    }
    loop_timer_set(dial->link.loop, &dial->timer, due_ms);
}

static void attempt_failed(struct dial *dial, const char *why)
{
    char text[ADDRESS_TEXT_BYTES];
    struct err err;

    address_text(&dial->address, text);
    err_set(&err, ERR_UNREACHABLE, "cannot connect to %s: %s", text, why);
    lost(dial, &err);
}

static void on_timer(struct timer *timer)
{
    struct dial *dial = CONTAINER_OF(timer, struct dial, timer);

    if (dial->link.h2) {
        keep_alive(dial);
        return;
    }
    if (dial->client)
        dial->client->refused = false;
    attempt_failed(dial, "timed out");
}

static void on_ready(struct link *link)
{
    struct dial *dial = CONTAINER_OF(link, struct dial, link);
    struct rpc_client *client = dial->client;

    if (!client)
        return;
    address_text(&dial->address, client->peer);
    loop_timer_set(link->loop, &dial->timer,
                   loop_now_ms(link->loop) + client->options.keepalive_ms);
    requests_ready(client);
    set_state(client, RPC_READY, NULL);
}

static void on_flushed(struct link *link)
{
    struct dial *dial = CONTAINER_OF(link, struct dial, link);

    if (!dial->client && h2_streams(link->h2) == 0)
        link_close(link, NULL);
}

static void on_closed(struct link *link, const struct err *why)
{
    struct dial *dial = CONTAINER_OF(link, struct dial, link);
    struct rpc_client *client = dial->client;
    struct err err;

    if (!why) {
        err_set(&err, ERR_CONNECTION_LOST, "the server closed the connection");
        why = &err;
    }
    if (client) { /* not let go: it was up, and the server or the network ended it */
        client->dial = NULL;
        client->last = *why;
        loop_timer_clear(link->loop, &dial->timer);
        if (link->opened)
            wait_for_next_round(client);
        else
            try_candidate(client);
    }
    free(dial);
}

static const struct link_events link_events = { on_ready, on_flushed, on_closed };

static void on_connected(uv_connect_t *req, int status)
{
    struct dial *dial = req->data;

    if (dial->link.closing || !dial->client)
        return;
    dial->client->refused = status == UV_ECONNREFUSED;
    if (status < 0) {
        attempt_failed(dial, uv_strerror(status));
        return;
    }
    if (!dial->address.path[0])
        uv_tcp_nodelay(&dial->link.uv.tcp, 1);
    link_start(&dial->link);
}

static struct dial *dial_new(struct rpc_client *client)
{
    struct dial *dial = NEW(struct dial);

    dial->client = client;
    client->dial = dial;
    dial->address = client->addresses.items[client->address_at];
    dial->timer.fire = on_timer;
    dial->connect.data = dial;
    link_init(&dial->link, client->loop, &link_events);
    dial->link.h2_options = (struct h2_options){
        .max_message = client->options.max_message,
        .events = &client_events,
        .ctx = dial,
    };
    if (dial->address.path[0])
        uv_pipe_init(client->loop->uv, &dial->link.uv.pipe, 0);
    else
        uv_tcp_init(client->loop->uv, &dial->link.uv.tcp);
    dial->link.uv.handle.data = &dial->link;
    loop_timer_set(client->loop, &dial->timer,
                   loop_now_ms(client->loop) + client->options.connect_ms);
    return dial;
}

static void dial_tcp(struct dial *dial, const struct sockaddr *addr)
{
    const struct rpc_client_options *o = &dial->client->options;
    bool far = !address_sockaddr_is_loopback(addr);

    if (dial->address.tls == ADDRESS_TLS_ALWAYS || (far && o->tls)) {
        dial->link.mode = LINK_TLS;
        dial->link.tls_ctx = o->tls;
        dial->link.tls_peer = o->peer ? o->peer : dial->address.host;
    }
    if (dial->link.mode == LINK_TLS ? !o->tls : far && !o->allow_plaintext) {
        attempt_failed(dial, "TLS is needed, but no certificate authority is known");
        return;
    }
    int rc = uv_tcp_connect(&dial->connect, &dial->link.uv.tcp, addr, on_connected);
    if (rc < 0)
        on_connected(&dial->connect, rc);
}

static void on_resolved(uv_getaddrinfo_t *req, int status, struct addrinfo *found)
{
    struct lookup *lookup = req->data;
    struct rpc_client *client = lookup->client;

    if (client) {
        client->lookup = NULL;
        if (status < 0)
            err_set(&client->last, ERR_UNREACHABLE, "cannot find the address of '%s': %s",
                    client->addresses.items[client->address_at].host, uv_strerror(status));
        size_t max = ARRAY_LEN(client->candidates);
        for (struct addrinfo *a = found; a && client->candidate_count < max; a = a->ai_next)
            memcpy(&client->candidates[client->candidate_count++], a->ai_addr, a->ai_addrlen);
        try_candidate(client);
    }
    uv_freeaddrinfo(found);
    free(lookup);
}

static void look_up(struct rpc_client *client, const struct address *address)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct lookup *lookup = NEW(struct lookup);
    char port[8];

    snprintf(port, sizeof(port), "%u", address->port);
    lookup->client = client;
    lookup->req.data = lookup;
    client->lookup = lookup;
    int rc =
        uv_getaddrinfo(client->loop->uv, &lookup->req, on_resolved, address->host, port, &hints);
    if (rc < 0)
        on_resolved(&lookup->req, rc, NULL);
}

/* What the next address stands for; then tries it. */
static void try_address(struct rpc_client *client)
{
    if (client->tried == client->addresses.len) {
        wait_for_next_round(client);
        return;
    }
    if (client->tried)
        client->address_at = (client->address_at + 1) % client->addresses.len;
    client->tried++;
    const struct address *address = &client->addresses.items[client->address_at];
    if (address->path[0]) {
        struct dial *dial = dial_new(client);
        uv_pipe_connect(&dial->connect, &dial->link.uv.pipe, address->path, on_connected);
        return;
    }
    client->candidate_at = 0;
    client->candidate_count = address_numeric(address, client->candidates);
    if (client->candidate_count)
        try_candidate(client);
    else
        look_up(client, address);
}

static void try_candidate(struct rpc_client *client)
{
    if (client->candidate_at == client->candidate_count) {
        client->candidate_at = client->candidate_count = 0;
        try_address(client);
        return;
    }
    const void *addr = &client->candidates[client->candidate_at++];
    dial_tcp(dial_new(client), addr);
}

void dial_round(struct rpc_client *client)
{
    client->tried = 0;
    client->candidate_at = client->candidate_count = 0;
    loop_timer_clear(client->loop, &client->retry);
    set_state(client, RPC_CONNECTING, NULL);
    try_address(client);
}

void dial_forget(struct rpc_client *client)
{
    struct err err;

    err_set(&err, ERR_CANCELLED, "the connection was given up");
    loop_timer_clear(client->loop, &client->retry);
    if (client->dial)
        dial_let_go(client->dial, &err);
    if (client->lookup) {
        client->lookup->client = NULL;
        uv_cancel((uv_req_t *)&client->lookup->req);
        client->lookup = NULL;
    }
}
