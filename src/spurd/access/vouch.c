/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vouch.c - commands of users on this host, inside jobs or on a login node, without any set-up
 *
 * The kernel says who is at the other end of our socket; we ask the leader for a token for that user
 * and pass it on, with where the controllers are. The leader decides for whom we may speak.
 *
 * (1) Only the socket counts: whoever shows us a token has one already.
 * (2) A token is passed on again while it is good for KEEP_S more; a refusal is not kept.
 * (3) Root of a compute node gets a token of the node itself: it reads, and drains the node.
 * (4) Where the controllers are and whom to trust is said to everybody. Who gets no token is told why, and
 *     where to go.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spurd/access/vouch.h"
#include "spurd/link/join.h"
#include "spurd/link/session.h"
#include "spurd/root.h"
#include "sys/clock.h"
#include "sys/files.h"
#include "sys/log.h"

enum { KEEP_S = 30, ASK_TIMEOUT_MS = 5000, TRIES = 5, VOUCHED_MAX = 10000 };

struct vouched {
    char *token;
    int64_t until_us; /* monotonic */
};

/* One question, until it is answered. */
struct asking {
    struct agent *agent;
    struct rpc_call *call; /* NULL: the asker has gone */
    uint32_t uid, gid;
    unsigned tries;
    uv_timer_t timer;
};

static void ask(struct asking *asking);

static void vouched_free(struct vouched *vouched)
{
    if (vouched) {
        free(vouched->token);
        free(vouched);
    }
}

void vouch_done(struct agent *agent)
{
    map_each (entry, &agent->vouched)
        vouched_free(entry->value);
    map_done(&agent->vouched);
}

static bool has_job(const struct agent *agent, uint32_t uid)
{
    map_each (entry, &agent->table.held) {
        const struct attempt *held = entry->value;
        if (held->grant && held->grant->owner && held->grant->owner->uid == uid)
            return true;
    }
    return false;
}

/* Either of them, or with where_only none. */
static void reply(struct agent *agent, struct rpc_call *call, const char *token,
                  const char *refused)
{
    VouchReply out = VOUCH_REPLY__INIT;
    CLEANUP(freep) char *ca = mem_printf("%s/ca.crt", agent->run_dir);

    out.token = (char *)token;
    out.refused = (char *)refused;
    out.has_lifespan_s = token != NULL;
    out.lifespan_s = KEEP_S;
    out.controllers =
        agent->session ? (char *)(uintptr_t)session_addresses(agent->session) : agent->controllers;
    if (access(ca, R_OK) == 0)
        out.ca_file = ca;
    rpc_reply(call, &out.base);
}

static void asking_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void answer(struct asking *asking, const char *token, const struct err *err)
{
    if (asking->call) {
        if (token)
            reply(asking->agent, asking->call, token, NULL);
        else if (err->code == ERR_PERMISSION)
            reply(asking->agent, asking->call, NULL, err->text); /* (4) */
        else
            rpc_fail(asking->call, err);
    }
    uv_close((uv_handle_t *)&asking->timer, asking_closed);
}

static void remember(struct agent *agent, uint32_t uid, const VouchReply *from)
{
    struct vouched *vouched = NEW(struct vouched);

    if (map_len(&agent->vouched) >= VOUCHED_MAX) {
        vouch_done(agent);
        map_init(&agent->vouched);
    }
    vouched->token = mem_strdup(from->token);
    vouched->until_us = clock_mono_us() + ((int64_t)from->lifespan_s - KEEP_S) * 1000000;
    vouched_free(map_put_num(&agent->vouched, uid, vouched));
}

/* A login host has no stream on which it would hear of new ones. */
static void learn_controllers(struct agent *agent, const char *list)
{
    struct span word;

    while (agent->session && agent->login && list && str_next(&list, ",", &word)) {
        CLEANUP(freep) char *address = mem_strndup(word.ptr, word.len);
        session_set_controllers(agent->session, &address, 1);
    }
}

static void ask_again(uv_timer_t *timer)
{
    ask(timer->data);
}

static void on_done(struct rpc_request *request, const ProtobufCMessage *message,
                    const struct err *err)
{
    struct asking *asking = rpc_request_data(request);
    const VouchReply *from = (const void *)message;
    struct agent *agent = asking->agent;
    struct err own = { 0 };

    if (!err && str_is_empty(from->token)) {
        err_set(&own, ERR_BAD_MESSAGE, "the controller gave no token");
        err = &own;
    }
    if (!err) {
        learn_controllers(agent, from->controllers);
        remember(agent, asking->uid, from);
        answer(asking, from->token, NULL);
        return;
    }
    bool moved = err->code == ERR_NOT_LEADER || err->code == ERR_CONNECTION_LOST;
    if (!moved || ++asking->tries >= TRIES || agent->stopping) {
        answer(asking, NULL, err);
        return;
    }
    if (err->code == ERR_NOT_LEADER && agent->session)
        session_follow(agent->session, rpc_request_leader(request));
    uv_timer_start(&asking->timer, ask_again, 100, 0);
}

static void ask(struct asking *asking)
{
    struct rpc_client *client =
        asking->agent->session ? session_client(asking->agent->session) : NULL;
    VouchRequest request = VOUCH_REQUEST__INIT;
    struct err err = { 0 };

    if (!client) {
        if (++asking->tries < TRIES && !asking->agent->stopping) {
            uv_timer_start(&asking->timer, ask_again, 200, 0);
            return;
        }
        err_set(&err, ERR_CONNECTION_LOST, "this node has no connection to a controller");
        answer(asking, NULL, &err);
        return;
    }
    request.has_uid = request.has_gid = true;
    request.uid = asking->uid;
    request.gid = asking->gid;
    const struct rpc_request_options options = {
        .path = "/spur.Agents/Vouch",
        .message = &request.base,
        .reply = &vouch_reply__descriptor,
        .timeout_ms = ASK_TIMEOUT_MS,
        .data = asking,
        .on_done = on_done,
    };
    rpc_request_start(client, &options);
}

static void on_gone(struct rpc_call *call)
{
    struct asking *asking = rpc_call_data(call);

    if (asking)
        asking->call = NULL;
    rpc_end(call);
}

static const struct rpc_watch watch = { .on_cancel = on_gone };

static void on_vouch(struct rpc_call *call, const ProtobufCMessage *message)
{
    struct agent *agent = rpc_call_ctx(call);
    const struct rpc_identity *who = rpc_call_identity(call);
    const struct vouched *known = map_get_num(&agent->vouched, who->uid);
    const VouchRequest *request = (const void *)message;
    struct err err = { 0 };

    if (who->how != RPC_HOW_UNIX) { /* (1) */
        err_set(&err, ERR_PERMISSION, "a node vouches for who comes by its socket only");
        rpc_fail(call, &err);
    } else if (request->where_only) {
        reply(agent, call, NULL, NULL);
    } else if (!agent->login && who->uid != 0 && !has_job(agent, who->uid)) { /* (3), (4) */
        err_set(
            &err, ERR_PERMISSION,
            "uid %u has no job on node '%s', which does not vouch for it: use a login host or a "
            "controller's host, or a token that 'scontrol token' gave you there",
            who->uid, agent->name);
        reply(agent, call, NULL, err.text);
    } else if (known && known->until_us > clock_mono_us()) { /* (2) */
        reply(agent, call, known->token, NULL);
    } else {
        struct asking *asking = NEW(struct asking);
        *asking = (struct asking){ .agent = agent, .call = call, .uid = who->uid, .gid = who->gid };
        uv_timer_init(agent->uv, &asking->timer);
        asking->timer.data = asking;
        rpc_call_set_data(call, asking);
        rpc_watch(call, &watch);
        ask(asking);
    }
}

const struct rpc_method vouch_methods[] = {
    { "/spur.NodeAccess/Vouch", RPC_USER, false, RPC_UNARY, &vouch_request__descriptor,
      &vouch_reply__descriptor, on_vouch, 64 },
};
const size_t vouch_method_count = ARRAY_LEN(vouch_methods);

/* ---- spurd --login ---- */

static unsigned roles(void *ctx, const struct rpc_identity *identity, struct rpc_auth *auth)
{
    (void)ctx, (void)auth;
    return identity->has_uid && identity->how == RPC_HOW_UNIX ? RPC_USER : 0;
}

/* The directory of the socket that everybody on this host knows; the authority is shown in it too. */
static int make_dir(struct agent *agent, const char *socket, struct err *err)
{
    agent->shown_dir = mem_strndup(socket, (size_t)(strrchr(socket, '/') - socket));
    return file_make_dirs(agent->shown_dir, 0755, err);
}

int vouch_listen(struct agent *agent, const char *socket, struct err *err)
{
    const struct rpc_server_options options = { .ctx = agent, .roles = roles };

    agent->socket = mem_printf("unix:%s", socket);
    agent->server = rpc_server_new(agent->rpc, &options, err);
    if (make_dir(agent, socket, err) < 0 || !agent->server ||
        rpc_server_add(agent->server, vouch_methods, vouch_method_count, err) < 0 ||
        rpc_server_listen(agent->server, agent->socket, err) < 0)
        return -(int)err->code;
    return 0;
}

/* ---- a node ---- */

/* Jobs have a socket of their own, so a node works without this one. */
void vouch_listen_too(struct agent *agent, const char *socket)
{
    CLEANUP(freep) char *address = mem_printf("unix:%s", socket);
    struct err err = { 0 };

    if (make_dir(agent, socket, &err) < 0 || rpc_server_listen(agent->server, address, &err) < 0)
        log_warn("agent.socket", "path=%s commands of this host cannot ask us: %s", socket,
                 err.text);
    else
        join_show_ca(agent);
}
