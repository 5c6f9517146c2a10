/* SPDX-License-Identifier: Apache-2.0 */
/*
 * caller.c - who asks
 *
 * (1) A token that came with the request is passed on as it is, and the controller checks it with every call. One that is
 *     new to us is shown to the controller before anything of the request is read (WhoAmI), so that a wrong one is refused
 *     whatever it asks for. One that is not good never falls back to anything else.
 * (2) X-SLURM-USER-NAME with another name than the token's: the controller is asked, with that token, for a token
 *     of the other user. It gives one to administrators only. Both names are logged.
 * (3) Without a token, a unix socket or a TCP connection from this host says who asks. For that user the
 *     controller is asked for a token of 60 s, which never has the roles of staff. TCP counts only while nobody
 *     from another host can reach us, and only when nothing says that a browser was led here by a foreign page or
 *     that a proxy stands between: then the socket's owner is not the one who asks.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/agent.pb-c.h"
#include "proto/controller.pb-c.h"
#include "rpc/coding.h"
#include "rpc/link.h"
#include "spurrestd/answer.h"
#include "spurrestd/ask.h"
#include "spurrestd/owner.h"
#include "spurrestd/rest.h"
#include "sys/clock.h"
#include "sys/log.h"

enum { KEEP_MS = 45 * 1000, KEEP_MOST = 10000 };

struct kept {
    char *authorization;
    int64_t until_ms;
};

struct waiting {
    void (*known)(struct exchange *x);
    char *key;
    RestTokenRequest rest;
    TokenRequest token;
    Empty empty;
};

static void kept_free(struct kept *kept)
{
    if (kept) {
        free(kept->authorization);
        free(kept);
    }
}

void caller_forget_all(struct rest *rest)
{
    map_each (entry, &rest->tokens)
        kept_free(entry->value);
    map_clear(&rest->tokens);
}

static const char *find(struct rest *rest, const char *key)
{
    const struct kept *kept = map_get(&rest->tokens, key);

    return kept && kept->until_ms > loop_now_ms(rest->loop) ? kept->authorization : NULL;
}

/* Until it is too old, or ends (0: not before that). */
static void keep(struct rest *rest, const char *key, const char *token, int64_t ends_s)
{
    int64_t left_ms = ends_s ? (ends_s - clock_wall_s()) * 1000 : KEEP_MS;
    struct kept *kept = NEW(struct kept);

    if (map_len(&rest->tokens) >= KEEP_MOST)
        caller_forget_all(rest);
    kept->authorization = mem_printf("Bearer %s", token);
    kept->until_ms = loop_now_ms(rest->loop) + MIN(left_ms, KEEP_MS);
    kept_free(map_put(&rest->tokens, key, kept));
}

static void on_named(struct exchange *x, const ProtobufCMessage *reply, const struct err *err)
{
    struct waiting *waiting = x->data;
    const char *token = NULL;

    if (!err)
        token = reply->descriptor == &token_reply__descriptor
                    ? ((const TokenReply *)(const void *)reply)->token
                    : ((const VouchReply *)(const void *)reply)->token;
    if (str_is_empty(token)) {
        answer_unauthenticated(x, err);
        return;
    }
    keep(x->rest, waiting->key, token, 0);
    x->authorization = arena_printf(&x->arena, "Bearer %s", token);
    x->data = NULL;
    waiting->known(x);
}

static struct waiting *wait_for(struct exchange *x, const char *key,
                                void (*known)(struct exchange *x))
{
    struct waiting *waiting = ARENA_NEW(&x->arena, struct waiting);

    waiting->known = known;
    waiting->key = arena_strdup(&x->arena, key);
    x->data = waiting;
    return waiting;
}

/* ---- (3) ---- */

static bool is_loopback_name(const char *host)
{
    static const char *const names[] = { "localhost", "127.0.0.1", "[::1]" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        size_t len = strlen(names[i]);
        if (str_istarts(host, names[i]) && (host[len] == '\0' || host[len] == ':'))
            return true;
    }
    return false;
}

/* Why the owner of the socket is perhaps not the one who asks; NULL: nothing speaks against it. */
static const char *doubt(struct exchange *x)
{
    static const char *const proxies[] = { "Forwarded",        "X-Forwarded-For",
                                           "X-Forwarded-Host", "X-Forwarded-Proto",
                                           "X-Real-IP",        "Via" };
    const char *host = exchange_field(x, "Host");
    const char *origin = exchange_field(x, "Origin");
    const char *site = exchange_field(x, "Sec-Fetch-Site");

    for (size_t i = 0; i < ARRAY_LEN(proxies); i++) {
        if (exchange_has_field(x, proxies[i]))
            return "it came through a proxy";
    }
    if (host && !is_loopback_name(host))
        return "its Host is another one than localhost";
    if (origin && (!host || !str_starts(origin, "http") || !strstr(origin, "://") ||
                   strcmp(strstr(origin, "://") + 3, host) != 0))
        return "its Origin is another one than its Host";
    if (site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0)
        return "a page of another site asks";
    return NULL;
}

static void by_socket(struct exchange *x, void (*known)(struct exchange *x))
{
    char key[32];

    snprintf(key, sizeof(key), "uid %u %d", x->peer->uid, (int)x->peer->gid);
    x->authorization = find(x->rest, key);
    if (x->authorization) {
        x->authorization = arena_strdup(&x->arena, x->authorization);
        known(x);
        return;
    }
    struct waiting *waiting = wait_for(x, key, known);
    rest_token_request__init(&waiting->rest);
    waiting->rest.has_uid = true;
    waiting->rest.uid = x->peer->uid;
    waiting->rest.has_gid = x->peer->is_unix;
    waiting->rest.gid = x->peer->gid;
    const struct ask_call call = { .method = "RestToken",
                                   .message = &waiting->rest.base,
                                   .reply = &vouch_reply__descriptor,
                                   .ours = true,
                                   .done = on_named };
    ask_start(x, &call);
}

void caller_as_user(struct exchange *x, const char *user, void (*known)(struct exchange *x))
{
    char *key = arena_printf(&x->arena, "user %s", user);
    const char *found = find(x->rest, key);

    x->user = arena_strdup(&x->arena, user);
    if (found) {
        x->authorization = arena_strdup(&x->arena, found);
        known(x);
        return;
    }
    struct waiting *waiting = wait_for(x, key, known);
    rest_token_request__init(&waiting->rest);
    waiting->rest.user = arena_strdup(&x->arena, user);
    const struct ask_call call = { .method = "RestToken",
                                   .message = &waiting->rest.base,
                                   .reply = &vouch_reply__descriptor,
                                   .ours = true,
                                   .done = on_named };
    ask_start(x, &call);
}

/* Asks the kernel once per connection. */
static bool has_owner(struct exchange *x)
{
    struct peer *peer = x->peer;
    struct err err = { 0 };

    if (!peer->asked_owner && peer->is_loopback && x->rest->loopback_only) {
        peer->asked_owner = true;
        peer->gid = (uint32_t)-1;
        peer->has_uid = owner_of_peer(peer->fd, &peer->uid, &err) == 0;
        if (!peer->has_uid)
            log_verbose("http.owner", "peer=%s unknown: %s", peer->text, err.text);
    }
    return peer->has_uid;
}

/* ---- (1) and (2) ---- */

/* What the token says of itself; whether it is true is for the controller to say. */
static void read_claims(struct exchange *x, const char *token)
{
    const char *dot = strchr(token, '.');
    const char *end = dot ? strchr(dot + 1, '.') : NULL;
    struct str text = { 0 };
    json_t *claims = NULL;

    if (end && base64url_decode(&text, dot + 1, (size_t)(end - dot - 1)))
        claims = json_loadb(text.data, text.len, 0, NULL);
    const char *user = json_string_value(json_object_get(claims, "sun"));
    x->user = user ? arena_strdup(&x->arena, user) : NULL;
    x->expires_s = (int64_t)json_number_value(json_object_get(claims, "exp"));
    json_decref(claims);
    str_done(&text);
}

static void by_other_name(struct exchange *x, const char *name, void (*known)(struct exchange *x))
{
    char *key = arena_printf(&x->arena, "as %s %s", name, x->authorization);
    const char *found = find(x->rest, key);

    if (found) {
        x->authorization = arena_strdup(&x->arena, found);
        known(x);
        return;
    }
    log_info("http.as_user", "user=%s asked_by=%s peer=%s", name, x->user ? x->user : "",
             x->peer->text);
    struct waiting *waiting = wait_for(x, key, known);
    token_request__init(&waiting->token);
    waiting->token.user = arena_strdup(&x->arena, name);
    waiting->token.has_lifespan_s = true;
    waiting->token.lifespan_s = 60;
    const struct ask_call call = { .method = "Token",
                                   .message = &waiting->token.base,
                                   .reply = &token_reply__descriptor,
                                   .done = on_named };
    ask_start(x, &call);
}

/* The token that came with the request; NULL: none. Two that differ are none that is good. */
static const char *given_token(struct exchange *x, bool *bad)
{
    const char *token = exchange_field(x, "X-SLURM-USER-TOKEN");
    const char *header = exchange_field(x, "Authorization");

    if (header && !str_istarts(header, "Bearer "))
        *bad = true;
    else if (header && token && strcmp(header + strlen("Bearer "), token) != 0)
        *bad = true;
    return *bad ? NULL : header ? header + strlen("Bearer ") : token;
}

static void on_checked(struct exchange *x, const ProtobufCMessage *reply, const struct err *err)
{
    struct waiting *waiting = x->data;

    (void)reply;
    if (err) {
        answer_unauthenticated(x, err);
        return;
    }
    keep(x->rest, waiting->key, "", x->expires_s);
    x->data = NULL;
    waiting->known(x);
}

static void by_token(struct exchange *x, const char *token, void (*known)(struct exchange *x))
{
    const char *name = exchange_field(x, "X-SLURM-USER-NAME");
    char *key = arena_printf(&x->arena, "token %s", token);

    read_claims(x, token);
    x->authorization = arena_printf(&x->arena, "Bearer %s", token);
    if (!str_is_empty(name) && (!x->user || strcmp(name, x->user) != 0)) {
        by_other_name(x, name, known);
        return;
    }
    if (find(x->rest, key)) {
        known(x);
        return;
    }
    struct waiting *waiting = wait_for(x, key, known);
    empty__init(&waiting->empty);
    const struct ask_call call = { .method = "WhoAmI",
                                   .message = &waiting->empty.base,
                                   .reply = &identity_reply__descriptor,
                                   .done = on_checked };
    ask_start(x, &call);
}

void caller_identify(struct exchange *x, bool needed, void (*known)(struct exchange *x))
{
    bool bad = false;
    const char *token = given_token(x, &bad);
    struct err err = { 0 };

    if (bad) {
        err_set(&err, ERR_UNAUTHENTICATED,
                "Authorization is not 'Bearer TOKEN', or not the token of "
                "X-SLURM-USER-TOKEN");
        answer_unauthenticated(x, &err);
    } else if (token) {
        by_token(x, token, known);
    } else if (!needed) {
        known(x);
    } else if (!has_owner(x)) {
        answer_unauthenticated(x, NULL);
    } else if (!x->peer->is_unix && doubt(x)) {
        err_set(&err, ERR_PERMISSION,
                "a request without a token is not taken from the owner of its socket, because %s",
                doubt(x));
        answer_forbidden(x, &err);
    } else if (!x->rest->joined) {
        err_set(&err, ERR_UNAUTHENTICATED,
                "this spurrestd has not joined the cluster, so it cannot say who you are; show a "
                "token (spur token)");
        answer_unauthenticated(x, &err);
    } else {
        by_socket(x, known);
    }
}
