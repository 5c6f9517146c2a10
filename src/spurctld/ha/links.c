/* SPDX-License-Identifier: Apache-2.0 */
/*
 * links.c - connections between controllers: who is heard, and deposing a leader that is not
 *
 * (1) A connection that its kernel refuses says more than silence: no process is there. It is tried
 *     again at once when it breaks, so a killed leader is known within milliseconds.
 * (2) Whoever leads pings nobody; it has nobody to suspect.
 */
#include "spurctld/ha/links.h"

#include <stdlib.h>
#include <string.h>

#include "core/level.h"
#include "schema/trigger.h"
#include "spurctld/ctl/agree.h"
#include "spurctld/ctl/suspect.h"
#include "sys/build.h"
#include "sys/clock.h"
#include "sys/log.h"
#include "sys/rng.h"

enum {
    PING_MS = 300,
    RETRY_MIN_MS = 10,
    RETRY_MAX_MS = 250,
    LEVEL_FRESH_MS = 5000,
    COMPARE_MS = 300
};

struct peer_link {
    struct links *links;
    size_t number;
    char *name;
    struct rpc_client *client; /* NULL: ourselves */
    struct rpc_request *ping, *ask, *compare;
    int64_t ping_ms, ask_term;
    int64_t said_ms; /* when it last said what follows; 0: never */
    unsigned level;  /* the newest that its build knows */
    char *build;     /* NULL: it has not said */
    bool away;       /* it answered once, and does not any more */
};

struct links {
    struct server *server;
    uv_timer_t *timer;
    struct suspect suspect;
    uint64_t instance; /* of this process */
    struct peer_link peers[SUSPECT_PEERS];
    size_t count;
};

static int64_t now_ms(void)
{
    return clock_mono_us() / 1000;
}

static size_t find(const struct links *links, const char *name)
{
    for (size_t i = 0; i < links->count; i++) {
        if (strcmp(links->peers[i].name, name) == 0)
            return i;
    }
    return SIZE_MAX;
}

/* ---- what builds know ---- */

static void note_level(struct peer_link *peer, bool has, uint32_t level, const char *build)
{
    if (!str_eq(peer->build, build)) {
        log_info("links.build", "peer=%s build=%s level=%u", peer->name, build ? build : "",
                 has ? level : (unsigned)LEVEL_FIRST);
        free(peer->build);
        peer->build = build ? mem_strdup(build) : NULL;
    }
    peer->level = has ? level : (unsigned)LEVEL_FIRST;
    peer->said_ms = now_ms();
    if (peer->away && peer->links->server->ctl)
        ctl_happened(peer->links->server->ctl,
                     peer->number ? TRIGGER_BACKUP_OPERATES : TRIGGER_PRIMARY_OPERATES);
    peer->away = false;
    if (peer->links->server->ctl)
        ctl_look_at_level(peer->links->server->ctl);
}

unsigned links_level(const struct links *links)
{
    unsigned level = UINT32_MAX;

    for (size_t i = 0; i < links->count; i++) {
        const struct peer_link *peer = &links->peers[i];
        if (!peer->client)
            continue;
        bool fresh = peer->said_ms && now_ms() - peer->said_ms < LEVEL_FRESH_MS;
        level = MIN(level, fresh ? peer->level : (unsigned)LEVEL_FIRST);
    }
    return level;
}

/* ---- what states are ---- */

/* A message with what this controller says of its state; `said` has the marks. */
struct marks_message {
    struct agree_said said;
    Mark marks[AGREE_SAID], *list[AGREE_SAID];
    PeerMarks message;
};

static PeerMarks *marks_message(const struct server *server, struct marks_message *out)
{
    if (!server->ctl)
        return NULL;
    ctl_marks_say(server->ctl, &out->said);
    peer_marks__init(&out->message);
    for (size_t i = 0; i < out->said.count; i++) {
        mark__init(&out->marks[i]);
        out->marks[i].has_index = out->marks[i].has_digest = true;
        out->marks[i].index = out->said.marks[i].index;
        out->marks[i].digest = out->said.marks[i].digest;
        out->list[i] = &out->marks[i];
    }
    out->message.n_marks = out->said.count;
    out->message.marks = out->list;
    out->message.has_wrong = out->message.wrong = out->said.wrong;
    out->message.has_trusted = out->message.trusted = out->said.trusted;
    return &out->message;
}

static void note_marks(struct peer_link *peer, const PeerMarks *marks)
{
    struct ctl *ctl = peer->links->server->ctl;
    struct agree_said said = { .speaks = marks != NULL };

    for (size_t i = 0; marks && i < marks->n_marks && said.count < AGREE_SAID; i++)
        said.marks[said.count++] =
            (struct state_mark){ marks->marks[i]->index, marks->marks[i]->digest };
    said.wrong = marks && marks->wrong;
    said.trusted = marks && marks->trusted;
    if (ctl)
        ctl_marks_heard(ctl, peer->name, &said);
}

static PeerPingRequest ping_message(const struct server *server, struct marks_message *marks)
{
    PeerPingRequest request = PEER_PING_REQUEST__INIT;

    request.marks = marks_message(server, marks);
    request.has_level = true;
    request.level = LEVEL_NEWEST;
    request.build = (char *)(uintptr_t)build_name();
    return request;
}

/* A controller that is not heard for a while has failed, for those who wait for that. */
static void look_for_silent(struct links *links)
{
    for (size_t i = 0; i < links->count; i++) {
        struct peer_link *peer = &links->peers[i];
        if (!peer->said_ms || peer->away || now_ms() - peer->said_ms < LEVEL_FRESH_MS)
            continue;
        peer->away = true;
        if (links->server->ctl &&
            peer->number) /* of the primary the change of the leader says it */
            ctl_happened(links->server->ctl, TRIGGER_BACKUP_FAIL);
    }
}

/* ---- asking ---- */

static void look(struct links *links);

static struct rpc_request *call(struct peer_link *peer, const PeerPingRequest *request,
                                unsigned timeout_ms,
                                void (*done)(struct rpc_request *request,
                                             const ProtobufCMessage *reply, const struct err *err))
{
    struct rpc_request_options options = {
        .path = "/spur.Links/Ping",
        .message = &request->base,
        .reply = &peer_ping_reply__descriptor,
        .timeout_ms = timeout_ms,
        .data = peer,
        .on_done = done,
    };

    return rpc_request_start(peer->client, &options);
}

static void heard(struct peer_link *peer, const ProtobufCMessage *message)
{
    const PeerPingReply *reply = (const void *)message;

    suspect_heard(&peer->links->suspect, peer->number, reply->instance, now_ms());
    /* We may have been away while it rose, and etcd's others may no longer accept us. */
    server_ha_level(peer->links->server, reply->in_force);
    note_level(peer, reply->has_level, reply->level, reply->build);
    note_marks(peer, reply->marks);
}

static void on_pinged(struct rpc_request *request, const ProtobufCMessage *reply,
                      const struct err *err)
{
    struct peer_link *peer = rpc_request_data(request);

    peer->ping = NULL;
    if (!err)
        heard(peer, reply);
    else
        log_verbose("links.ping", "peer=%s error=%s", peer->name, err->text);
}

static void on_asked(struct rpc_request *request, const ProtobufCMessage *reply,
                     const struct err *err)
{
    struct peer_link *peer = rpc_request_data(request);

    peer->ask = NULL;
    if (err)
        return;
    heard(peer, reply);
    suspect_answer(&peer->links->suspect, peer->number, peer->ask_term,
                   ((const PeerPingReply *)reply)->hears);
    look(peer->links);
}

static void ask_all(struct links *links, const char *leader, int64_t term)
{
    struct marks_message marks;
    PeerPingRequest request = ping_message(links->server, &marks);

    request.about = (char *)leader;
    for (size_t i = 0; i < links->count; i++) {
        struct peer_link *peer = &links->peers[i];
        if (!links->suspect.peers[i].asked || peer->ask)
            continue;
        peer->ask_term = term;
        peer->ask = call(peer, &request, SUSPECT_SILENT_MS, on_asked);
    }
}

static void ping_all(struct links *links)
{
    struct marks_message marks;
    PeerPingRequest request = ping_message(links->server, &marks);
    int64_t now = now_ms();

    for (size_t i = 0; i < links->count; i++) {
        struct peer_link *peer = &links->peers[i];
        if (!peer->client || peer->ping || now < peer->ping_ms + PING_MS ||
            rpc_client_state(peer->client) != RPC_READY)
            continue;
        peer->ping_ms = now;
        peer->ping = call(peer, &request, SUSPECT_SILENT_MS, on_pinged);
    }
}

/* ---- before we lead ---- */

static bool compares(const struct links *links)
{
    for (size_t i = 0; i < links->count; i++) {
        if (links->peers[i].compare)
            return true;
    }
    return false;
}

static void on_compared(struct rpc_request *request, const ProtobufCMessage *reply,
                        const struct err *err)
{
    struct peer_link *peer = rpc_request_data(request);
    struct links *links = peer->links;

    peer->compare = NULL;
    if (!err)
        heard(peer, reply);
    if (links->server->ctl && !compares(links))
        ctl_marks_asked(links->server->ctl);
}

/* Who is silent is not reached: nobody waits for it. */
void links_ask_marks(struct links *links)
{
    struct marks_message marks;
    PeerPingRequest request = ping_message(links->server, &marks);

    for (size_t i = 0; i < links->count; i++) {
        struct peer_link *peer = &links->peers[i];
        if (peer->client && !peer->compare && rpc_client_state(peer->client) == RPC_READY &&
            suspect_hears(&links->suspect, i, now_ms()))
            peer->compare = call(peer, &request, COMPARE_MS, on_compared);
    }
    if (!compares(links))
        ctl_marks_asked(links->server->ctl);
}

/* ---- deciding ---- */

static void look(struct links *links)
{
    struct log *log = ctl_log(links->server->ctl);
    struct log_leader leader = log_leader(log);
    size_t number = leader.self ? SIZE_MAX : find(links, leader.name);

    switch (suspect_look(&links->suspect, number, leader.term, now_ms())) {
    case SUSPECT_NOTHING:
        break;
    case SUSPECT_ASK:
        ask_all(links, leader.name, leader.term);
        break;
    case SUSPECT_DEPOSE:
        log_depose(log, leader.term);
        break;
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct links *links = timer->data;

    if (!links->server->ctl || links->server->stopping)
        return;
    if (!log_leader(ctl_log(links->server->ctl)).self) /* (2) */
        ping_all(links);
    look_for_silent(links);
    look(links);
}

/* (1) */
static void on_state(void *ctx, enum rpc_state state, const struct err *why)
{
    struct peer_link *peer = ctx;
    struct links *links = peer->links;

    (void)why;
    if (state == RPC_READY)
        peer->ping_ms = 0;
    if (state != RPC_WAITING || !peer->client || !rpc_client_refused(peer->client) ||
        !links->server->ctl || links->server->stopping)
        return;
    suspect_gone(&links->suspect, peer->number, now_ms());
    look(links);
}

/* ---- answering ---- */

void server_on_peer_ping(struct rpc_call *call, const ProtobufCMessage *message)
{
    const PeerPingRequest *request = (const void *)message;
    struct server *server = rpc_call_ctx(call);
    struct links *links = server->links;
    PeerPingReply reply = PEER_PING_REPLY__INIT;
    struct marks_message marks;

    size_t from = links ? find(links, rpc_call_identity(call)->controller) : SIZE_MAX;
    if (from != SIZE_MAX) /* who leads hears from the others by their pings: (2) */
        note_level(&links->peers[from], request->has_level, request->level, request->build);
    if (from != SIZE_MAX)
        note_marks(&links->peers[from], request->marks);
    reply.marks = marks_message(server, &marks);
    reply.has_level = true;
    reply.level = LEVEL_NEWEST;
    reply.build = (char *)(uintptr_t)build_name();
    reply.has_in_force = server->ctl != NULL;
    reply.in_force = server->ctl ? state_level(ctl_state(server->ctl)) : 0;
    reply.has_instance = links != NULL;
    reply.instance = links ? links->instance : 0;
    if (links && request->about) {
        size_t about = find(links, request->about);
        reply.has_hears = true;
        reply.hears = about < links->count && suspect_hears(&links->suspect, about, now_ms());
    }
    rpc_reply(call, &reply.base);
}

/* ---- life ---- */

static int add_peer(struct links *links, struct tls_ctx *tls, const struct links_host *host,
                    struct err *err)
{
    struct peer_link *peer = &links->peers[links->count];
    struct rpc_client_options options = {
        .addresses = host->address,
        .ctx = peer,
        .tls = tls,
        .state = on_state,
        .connect_ms = SUSPECT_SILENT_MS,
        .backoff_min_ms = RETRY_MIN_MS,
        .backoff_max_ms = RETRY_MAX_MS,
    };

    *peer = (struct peer_link){ .links = links, .number = links->count };
    peer->name = mem_strdup(host->name);
    links->count++;
    if (strcmp(host->name, links->server->options->name) == 0)
        return 0;
    peer->client = rpc_client_new(links->server->rpc_loop, &options, err);
    return peer->client ? 0 : -(int)err->code;
}

struct links *links_new(struct server *server, struct tls_ctx *tls, const struct links_host *hosts,
                        size_t count, struct err *err)
{
    struct links *links = NEW(struct links);
    size_t self = SIZE_MAX;
    int code = 0;

    links->server = server;
    do {
        rng_bytes(&links->instance, sizeof(links->instance));
    } while (links->instance == 0);
    for (size_t i = 0; code == 0 && i < count; i++) {
        if (strcmp(hosts[i].name, server->options->name) == 0)
            self = i;
        code = add_peer(links, tls, &hosts[i], err);
    }
    suspect_init(&links->suspect, count, self, now_ms());
    if (code < 0) {
        links_free(links);
        return NULL;
    }
    links->timer = NEW(uv_timer_t);
    uv_timer_init(server->uv, links->timer);
    links->timer->data = links;
    uv_timer_start(links->timer, on_timer, SUSPECT_LOOK_MS, SUSPECT_LOOK_MS);
    return links;
}

static void free_timer(uv_handle_t *handle)
{
    free(handle);
}

void links_free(struct links *links)
{
    if (!links)
        return;
    if (links->timer)
        uv_close((uv_handle_t *)links->timer, free_timer);
    for (size_t i = 0; i < links->count; i++) {
        struct peer_link *peer = &links->peers[i];
        if (peer->ping)
            rpc_request_cancel(peer->ping);
        if (peer->ask)
            rpc_request_cancel(peer->ask);
        if (peer->compare)
            rpc_request_cancel(peer->compare);
        if (peer->client)
            rpc_client_free(peer->client);
        free(peer->name);
        free(peer->build);
    }
    free(links);
}
