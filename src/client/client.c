/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.c - connecting, unary calls, and what is done again
 *
 * (1) Every unary call has a request id that stays the same over all its repetitions. The server keeps
 *     what it answered, so repeating a call that did arrive does nothing twice.
 * (2) What is repeated: no connection, a connection lost before the answer, a server that does not lead
 *     or is shutting down. What the server decided is final.
 */
#include "client/client.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "client/client_priv.h"
#include "rpc/coding.h"
#include "sys/slurm_conf.h"
#include "sys/slurm_daemon.h"

enum { TIMEOUT_MS = 60 * 1000, RETRY_MS = 3000, PAUSE_MIN_MS = 20, PAUSE_MAX_MS = 500, HOPS = 8 };

enum { CONNECT_MS = 1000 }; /* when there are others to try */

/* A socket of the host where the job was submitted says nothing on another one. */
static bool is_elsewhere(const char *addresses)
{
    return str_starts(addresses, "unix:") && !strchr(addresses, ',') &&
           access(addresses + 5, F_OK) < 0;
}

static void use_ca(struct client *client)
{
    if (client->options.ca || !str_is_empty(getenv("SPUR_CA")) || !client->vouch.ca_file)
        return;
    snprintf(client->ca_file, sizeof(client->ca_file), "%s", client->vouch.ca_file);
    client->options.ca = client->ca_file;
}

/* A controller of this host listens where commands look first. */
static bool is_near(void)
{
    struct address local;

    return address_local_socket(ADDRESS_PORT_CONTROLLER, &local) && access(local.path, F_OK) == 0;
}

/* Nobody says where the controllers are: the agent of this host may know. */
static bool ask_where(struct client *client, bool from_env, const char *addresses)
{
    struct err ignored = { 0 };

    if (client->options.addresses || (from_env && !is_elsewhere(addresses)) ||
        !vouch_available(client->near))
        return false;
    if (!from_env && is_near())
        return false;
    if (vouch_ask(client->near, true, &client->vouch, &ignored) < 0)
        return false;
    use_ca(client);
    return !str_is_empty(client->vouch.controllers);
}

struct client *client_new(const struct client_options *options, struct err *err)
{
    struct client *client = NEW(struct client);
    const char *addresses = options->addresses;

    client->options = *options;
    client->wire.fd = -1;
    if (!client->options.default_port)
        client->options.default_port = ADDRESS_PORT_CONTROLLER;
    if (!client->options.timeout_ms)
        client->options.timeout_ms = TIMEOUT_MS;
    if (!client->options.retry_ms)
        client->options.retry_ms = RETRY_MS;
    bool from_env = !addresses && !str_is_empty(getenv("SPUR_CONTROLLER_ADDR"));
    CLEANUP(str_done) struct str named = { 0 };
    if (from_env)
        addresses = getenv("SPUR_CONTROLLER_ADDR");
    if (!addresses && !str_is_empty(getenv("SLURM_CONF")) &&
        slurm_conf_controllers(slurm_conf_path(), &named, err) < 0) {
        err_wrap(err, "SLURM_CONF");
        free(client);
        return NULL;
    }
    if (!named.len && ask_where(client, from_env, addresses))
        addresses = client->vouch.controllers;
    else if (!addresses && !named.len && !is_near())
        slurm_conf_controllers(slurm_conf_path(), &named, NULL);
    if (!addresses)
        addresses = named.len ? str_text(&named) : "http://localhost";
    if (address_list_parse(addresses, client->options.default_port, &client->addresses, err) < 0) {
        if (from_env)
            err_wrap(err, "SPUR_CONTROLLER_ADDR");
        vouch_done(&client->vouch);
        free(client);
        return NULL;
    }
    address_text(&client->addresses.items[0], client->peer);
    return client;
}

void client_free(struct client *client)
{
    if (!client)
        return;
    while (client->streams)
        client_stream_free(client->streams);
    wire_close(&client->wire);
    str_done(&client->authorization);
    vouch_done(&client->vouch);
    free(client);
}

void client_addresses(const struct client *client, struct str *out)
{
    for (size_t i = 0; i < client->addresses.len; i++) {
        char text[ADDRESS_TEXT_BYTES];
        address_text(&client->addresses.items[i], text);
        str_addf(out, "%s%s", i ? "," : "", text);
    }
}

const char *client_peer(const struct client *client)
{
    return client->peer;
}

void client_drop(struct client *client)
{
    wire_close(&client->wire);
}

void client_lost(struct client *client)
{
    if (client->wire.silent) {
        client->silent_ms += now_ms() - client->wire.read_ms;
        client->address_at = (client->address_at + 1) % client->addresses.len;
    }
    client_drop(client);
}

/* Asked anew for each connection: the token is short-lived. A host without an agent asks nobody. */
static int vouch_first(struct client *client, const struct address *address, struct err *err)
{
    if (address->path[0] || !credentials_absent(&client->options) || !vouch_available(client->near))
        return 0;
    vouch_done(&client->vouch);
    if (vouch_ask(client->near, false, &client->vouch, err) < 0)
        return -(int)err->code;
    use_ca(client);
    return str_is_empty(client->vouch.refused)
               ? 0
               : err_set(err, ERR_PERMISSION, "%s", client->vouch.refused);
}

static int connect_one(struct client *client, const struct address *address, int64_t deadline_ms,
                       struct err *err)
{
    if (vouch_first(client, address, err) < 0)
        return -(int)err->code;
    address_text(address, client->peer);
    int rc = wire_connect(&client->wire, address, &client->options, &stream_events, client,
                          deadline_ms, err);
    if (rc < 0)
        return rc;
    client->wire.watch = client->addresses.len > 1;
    str_clear(&client->authorization);
    rc = credentials_find(&client->options, client->wire.is_unix, &client->authorization, err);
    if (rc == 0 && !client->authorization.len && !str_is_empty(client->vouch.token))
        str_addf(&client->authorization, "Bearer %s", client->vouch.token);
    if (rc < 0)
        wire_close(&client->wire);
    return rc;
}

/* The socket beside the port says who we are, and is quicker. */
static int connect_near(struct client *client, const struct address *address, int64_t deadline_ms,
                        struct err *err)
{
    struct address local;

    if (!address->path[0] && address_is_local(address) && address->tls != ADDRESS_TLS_ALWAYS &&
        address_local_socket(address->port, &local) && access(local.path, R_OK | W_OK) == 0 &&
        connect_one(client, &local, deadline_ms, err) == 0)
        return 0;
    return connect_one(client, address, deadline_ms, err);
}

/* Tries each address once. */
static int connect_any(struct client *client, int64_t deadline_ms, struct err *err)
{
    int rc = 0;

    for (size_t i = 0; i < client->addresses.len; i++) {
        int64_t until_ms =
            client->addresses.len > 1 ? MIN(deadline_ms, now_ms() + CONNECT_MS) : deadline_ms;
        rc = connect_near(client, &client->addresses.items[client->address_at], until_ms, err);
        if (rc == 0)
            return 0;
        client->address_at = (client->address_at + 1) % client->addresses.len;
    }
    return rc;
}

static void pause_ms(unsigned ms)
{
    struct timespec ts = { ms / 1000, (long)(ms % 1000) * 1000000 };

    nanosleep(&ts, NULL);
}

static bool may_repeat(int rc)
{
    return rc == -ERR_UNREACHABLE || rc == -ERR_CONNECTION_LOST || rc == -ERR_NOT_LEADER ||
           rc == -ERR_SHUTTING_DOWN; /* (2) */
}

int client_connect(struct client *client, int64_t deadline_ms, struct err *err)
{
    int64_t until_ms = MIN(deadline_ms, now_ms() + client->options.retry_ms);
    unsigned wait_ms = PAUSE_MIN_MS;

    for (;;) {
        if (client->wire.fd >= 0 && !client->wire.broken && h2_accepts_requests(client->wire.h2))
            return 0;
        client_drop(client);
        int rc = connect_any(client, until_ms, err);
        if (rc == 0 || !may_repeat(rc) || now_ms() + wait_ms >= until_ms)
            return rc;
        pause_ms(wait_ms);
        wait_ms = MIN(wait_ms * 2, PAUSE_MAX_MS);
    }
}

/* The leader's address becomes the first to be tried. */
static void follow(struct client *client, const char *leader)
{
    struct address address;

    if (client->wire.is_unix && str_starts(client->peer, "unix:"))
        snprintf(client->near, sizeof(client->near), "%s", client->peer + 5);
    client_drop(client);
    if (address_parse(leader, client->options.default_port, &address, NULL) < 0) {
        client->address_at = (client->address_at + 1) % client->addresses.len;
        return;
    }
    struct address_list *list = &client->addresses;
    for (size_t i = 0; i < list->len; i++) {
        if (address_eq(&list->items[i], &address)) {
            client->address_at = i;
            return;
        }
    }
    if (list->len < ADDRESS_LIST_MAX)
        list->len++;
    client->address_at = list->len - 1;
    list->items[client->address_at] = address;
}

void again_init(struct again *again, const struct client *client, int64_t deadline_ms)
{
    *again = (struct again){ .wait_ms = PAUSE_MIN_MS,
                             .until_ms = MIN(deadline_ms, now_ms() + client->options.retry_ms) };
}

bool client_again(struct client *client, struct again *again, int rc, const char *leader)
{
    again->until_ms += client->silent_ms; /* the deadline of the call stays */
    client->silent_ms = 0;
    if (!may_repeat(rc))
        return false;
    if (rc == -ERR_NOT_LEADER) {
        follow(client, leader);
        if (leader[0] && again->hops++ < HOPS)
            return true;
    }
    if (now_ms() + again->wait_ms >= again->until_ms)
        return false;
    pause_ms(again->wait_ms);
    again->wait_ms = MIN(again->wait_ms * 2, PAUSE_MAX_MS);
    return true;
}

struct attempt {
    const char *path;
    const ProtobufCMessage *request;
    const ProtobufCMessageDescriptor *reply_type;
    struct arena *arena;
    const char *request_id;
    int64_t deadline_ms;
    char leader[STATUS_LEADER_BYTES];
    ProtobufCMessage *reply;
};

static int wait_for_answer(struct client_stream *stream, struct err *err)
{
    struct client *client = stream->client;

    while (!stream->closed) {
        if (now_ms() >= stream->deadline_ms)
            return err_set(err, ERR_DEADLINE, "no answer from %s in time", client->peer);
        if (wire_wait(&client->wire, stream->deadline_ms, err) < 0)
            client_lost(client); /* closes the stream */
    }
    return stream_result(stream, err);
}

static int attempt_once(struct client *client, struct attempt *attempt, struct err *err)
{
    struct client_stream stream = { .client = client,
                                    .unary = true,
                                    .arena = attempt->arena,
                                    .reply_type = attempt->reply_type,
                                    .deadline_ms = attempt->deadline_ms };

    int rc = client_connect(client, attempt->deadline_ms, err);
    if (rc < 0)
        return rc;
    rc = stream_begin(&stream, attempt->path, attempt->request, attempt->request_id, false, err);
    if (rc == 0)
        rc = wait_for_answer(&stream, err);
    if (rc == 0 && !stream.reply)
        rc = err_set(err, ERR_BAD_MESSAGE, "%s succeeded without an answer", attempt->path);
    attempt->reply = stream.reply;
    memcpy(attempt->leader, stream.status.leader, sizeof(attempt->leader));
    stream_done(&stream);
    return rc;
}

static void new_request_id(struct str *out)
{
    uint8_t bytes[REQUEST_ID_BYTES];

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        abort(); /* cannot happen for 16 bytes on a kernel that has started */
    base64_add(out, bytes, sizeof(bytes));
}

int client_call(struct client *client, const char *path, const ProtobufCMessage *request,
                const ProtobufCMessageDescriptor *reply_type, struct arena *arena,
                ProtobufCMessage **reply, struct err *err)
{
    CLEANUP(str_done) struct str id = { 0 };
    struct err local;
    struct again again;

    if (!err)
        err = &local;
    new_request_id(&id); /* (1) */
    struct attempt attempt = { .path = path,
                               .request = request,
                               .reply_type = reply_type,
                               .arena = arena,
                               .request_id = id.data,
                               .deadline_ms = now_ms() + client->options.timeout_ms };
    again_init(&again, client, attempt.deadline_ms);
    for (;;) {
        int rc = attempt_once(client, &attempt, err);
        if (rc == 0)
            *reply = attempt.reply;
        if (rc == 0 || !client_again(client, &again, rc, attempt.leader))
            return rc;
    }
}

int client_fd(const struct client *client)
{
    return client->wire.fd;
}

short client_events(const struct client *client)
{
    return client->wire.fd >= 0 ? wire_events(&client->wire) : 0;
}

int client_wait_ms(const struct client *client)
{
    int64_t first = INT64_MAX;

    for (const struct client_stream *stream = client->streams; stream; stream = stream->next)
        first = MIN(first, stream->closed ? INT64_MAX : stream->deadline_ms);
    if (first == INT64_MAX)
        return -1;
    return (int)MIN(MAX(first - now_ms(), (int64_t)0), (int64_t)3600 * 1000);
}

int client_pump(struct client *client, struct err *err)
{
    if (client->wire.fd < 0)
        return err_set(err, ERR_CONNECTION_LOST, "not connected");
    int rc = wire_pump(&client->wire, err);
    if (rc < 0)
        client_drop(client);
    return rc;
}
