/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ping.c - whether the controllers answer
 */
#include <stdio.h>
#include <string.h>

#include "proto/controller.pb-c.h"
#include "spurrestd/answer.h"
#include "spurrestd/ask.h"
#include "spurrestd/rest.h"
#include "spurrestd/routes.h"
#include "sys/clock.h"

struct pinging {
    Empty request;
    int64_t began_us;
};

static void add_ping(struct jsonw *json, const char *host, bool up, bool leads, int64_t latency_us)
{
    jsonw_object(json, NULL);
    jsonw_text(json, "hostname", host);
    jsonw_text(json, "pinged", up ? "UP" : "DOWN");
    jsonw_bool(json, "responding", up);
    jsonw_number(json, "latency", latency_us);
    jsonw_text(json, "mode", leads ? "primary" : "backup");
    jsonw_bool(json, "primary", leads);
    jsonw_object_end(json);
}

static void on_pong(struct exchange *x, const ProtobufCMessage *message, const struct err *err)
{
    const PingReply *reply = (const void *)message;
    const struct pinging *pinging = x->data;

    if (err && !x->version) {
        answer_error(x, err, NULL);
        return;
    }
    struct answer *answer = answer_new(x);
    struct jsonw *json = &answer->json;
    int64_t latency_us = clock_mono_us() - pinging->began_us;
    if (reply && reply->cluster_name)
        snprintf(x->rest->cluster, sizeof(x->rest->cluster), "%s", reply->cluster_name);
    jsonw_list(json, "pings");
    if (reply)
        add_ping(json, reply->name, true,
                 reply->leader || !reply->leader_name || str_eq(reply->name, reply->leader_name),
                 latency_us);
    else
        add_ping(json, x->rest->options->controllers, false, true, latency_us);
    for (size_t i = 0; reply && i < reply->n_controllers; i++) {
        const char *name = reply->controllers[i]->name;
        if (!str_eq(name, reply->name))
            add_ping(json, name,
                     upstream_answers(x->rest->upstream, reply->controllers[i]->address),
                     str_eq(name, reply->leader_name), 0);
    }
    jsonw_list_end(json);
    if (!x->version) {
        jsonw_text(json, "cluster", reply->cluster_name);
        jsonw_text(json, "leader", reply->leader_name ? reply->leader_name : reply->name);
        jsonw_text(json, "version", reply->version);
        jsonw_number(json, "index", (int64_t)reply->index);
    }
    answer_send(answer);
}

void get_ping(struct exchange *x)
{
    struct pinging *pinging = ARENA_NEW(&x->arena, struct pinging);

    empty__init(&pinging->request);
    pinging->began_us = clock_mono_us();
    x->data = pinging;
    const struct ask_call call = { .method = "Ping",
                                   .message = &pinging->request.base,
                                   .reply = &ping_reply__descriptor,
                                   .ours = true,
                                   .done = on_pong };
    ask_start(x, &call);
}
