/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join_tokens.c - what a machine shows to become a node or a controller
 *
 * The cluster's one join token is a secret. What is for some nodes or for a time is signed with the
 * cluster's key instead, so every controller can check it and nobody needs to remember it.
 */
#include <stdio.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/limits.h"
#include "spurctld/keys/secrets.h"
#include "sys/clock.h"

enum { INVITATION_S = 3600, NODES_BYTES = 1024 };

static bool read_hex(const char *text, uint8_t *out, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned byte;
        if (!text[2 * i] || sscanf(text + 2 * i, "%2x", &byte) != 1)
            return false;
        out[i] = (uint8_t)byte;
    }
    return text[2 * len] == '\0';
}

static void add_signature(const struct secrets *secrets, const struct str *bytes, struct str *out)
{
    uint8_t signature[KEY_SIGNATURE_BYTES];

    key_sign(secrets->sign, bytes->data, bytes->len, signature);
    for (size_t i = 0; i < sizeof(signature); i++)
        str_addf(out, "%02x", signature[i]);
}

/* ---- join tokens of nodes ---- */

static const char REST_NAME[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
static const char PASS[] = "join/"; /* begins a signed one; no secret has a '/' */

static void pass_bytes(const struct secrets *secrets, const char *nodes, const char *expires,
                       struct str *out)
{
    str_addf(out, "node join\n%s\n%s\n%s\n", secrets->cluster, nodes, expires);
}

int secrets_join_pass(const struct secrets *secrets, const char *nodes, int64_t lifespan_s,
                      struct str *out, struct err *err)
{
    CLEANUP(hostlist_done) struct hostlist list = { 0 };
    CLEANUP(str_done) struct str bytes = { 0 };
    char hash[KEY_HASH_TEXT], expires[32];

    if (!nodes)
        nodes = "*";
    else if (strlen(nodes) >= NODES_BYTES || strpbrk(nodes, "/ \t\r\n"))
        return err_set(err, ERR_INVALID_NODE_NAME, "'%.64s' names no nodes", nodes);
    else if (str_starts(nodes, "rest:") &&
             (!nodes[5] || strspn(nodes + 5, REST_NAME) != strlen(nodes + 5)))
        return err_set(err, ERR_INVALID_NODE_NAME,
                       "'%.64s' is not rest: and a name of letters, digits, '.', '_' and '-'",
                       nodes);
    else if (!str_starts(nodes, "rest:") && hostlist_parse(&list, nodes, err) < 0)
        return -(int)err->code;
    if (lifespan_s < 1)
        return err_set(err, ERR_INVALID, "a join token is good for a second at least");
    if (secrets_ca_hash(secrets, hash, err) < 0)
        return -(int)err->code;
    snprintf(expires, sizeof(expires), "%lld", (long long)(clock_wall_s() + lifespan_s));
    pass_bytes(secrets, nodes, expires, &bytes);
    str_addf(out, "%s%s/%s/", PASS, nodes, expires);
    add_signature(secrets, &bytes, out);
    str_addf(out, " %s", hash);
    return 0;
}

static bool is_for(const char *nodes, const char *node)
{
    CLEANUP(hostlist_done) struct hostlist list = { 0 };

    if (str_starts(node, "rest:")) /* never by a list that it happens to be in */
        return strcmp(nodes, node) == 0;
    if (strcmp(nodes, "*") == 0)
        return true;
    return hostlist_parse(&list, nodes, NULL) == 0 && hostlist_find(&list, node) >= 0;
}

static int check_pass(const struct secrets *secrets, const char *pass, const char *node,
                      struct err *err)
{
    char nodes[NODES_BYTES], expires[32], hex[2 * KEY_SIGNATURE_BYTES + 1];
    uint8_t signature[KEY_SIGNATURE_BYTES];
    CLEANUP(str_done) struct str bytes = { 0 };
    uint64_t until;

    if (sscanf(pass, "%1023[^/]/%31[^/]/%128s", nodes, expires, hex) != 3 ||
        !read_hex(hex, signature, sizeof(signature)))
        return err_set(err, ERR_UNAUTHENTICATED, "the join token is not whole");
    pass_bytes(secrets, nodes, expires, &bytes);
    if (!key_verify(secrets->public_key, bytes.data, bytes.len, signature, sizeof(signature)))
        return err_set(err, ERR_UNAUTHENTICATED, "the join token is not this cluster's");
    if (!is_for(nodes, node))
        return err_set(err, ERR_UNAUTHENTICATED, "the join token is for node '%s', not for '%s'",
                       nodes, node);
    if (!str_to_u64(expires, INT64_MAX, &until) || (int64_t)until < clock_wall_s())
        return err_set(err, ERR_UNAUTHENTICATED,
                       "the join token has expired; spur token --join gives a new one");
    return 0;
}

static bool is_secret(const struct secrets *secrets, const char *token)
{
    size_t len = strlen(secrets->join_token);
    unsigned char different = 0;

    if (strlen(token) != len)
        return false;
    for (size_t i = 0; i < len; i++)
        different |= (unsigned char)(token[i] ^ secrets->join_token[i]);
    return different == 0;
}

int secrets_join_check(const struct secrets *secrets, const char *line, const char *node,
                       struct err *err)
{
    struct span word;

    if (!line || !str_next(&line, " \t\r\n", &word))
        return err_set(err, ERR_UNAUTHENTICATED, "there is no join token");
    CLEANUP(freep) char *token = mem_strndup(word.ptr, word.len);
    if (str_starts(token, PASS))
        return check_pass(secrets, token + strlen(PASS), node, err);
    if (str_starts(node, "rest:"))
        return err_set(err, ERR_UNAUTHENTICATED,
                       "'%s' needs a join token of its own: spur token --join --node %s", node,
                       node);
    if (!is_secret(secrets, token))
        return err_set(err, ERR_UNAUTHENTICATED, "the join token is not this cluster's");
    return 0;
}

bool secrets_join_is_secret(const char *line)
{
    return line && !str_starts(line, PASS);
}

bool secrets_join_is_for(const char *line, const char *node)
{
    char nodes[NODES_BYTES];

    return line && str_starts(line, PASS) && sscanf(line + strlen(PASS), "%1023[^/]", nodes) == 1 &&
           strcmp(nodes, node) == 0;
}

/* ---- invitations of controllers ---- */

static void invitation_bytes(const struct secrets *secrets, const char *name, const char *address,
                             const char *expires, struct str *out)
{
    str_addf(out, "controller invitation\n%s\n%s\n%s\n%s\n", secrets->cluster, name, address,
             expires);
}

int secrets_invitation(const struct secrets *secrets, const char *name, const char *host,
                       unsigned port, struct str *out, struct err *err)
{
    CLEANUP(freep) char *address = mem_printf("%s:%u", host, port);
    CLEANUP(freep)
    char *expires = mem_printf("%lld", (long long)(clock_wall_s() + INVITATION_S));
    CLEANUP(str_done) struct str bytes = { 0 };
    char hash[KEY_HASH_TEXT];

    if (secrets_ca_hash(secrets, hash, err) < 0)
        return -(int)err->code;
    invitation_bytes(secrets, name, address, expires, &bytes);
    str_addf(out, "%s %s %s ", name, address, expires);
    add_signature(secrets, &bytes, out);
    str_addf(out, " %s", hash);
    return 0;
}

int secrets_invited(const struct secrets *secrets, const char *line, struct invitation *out,
                    struct err *err)
{
    char name[256], address[300], expires[32], hex[2 * KEY_SIGNATURE_BYTES + 1];
    uint8_t signature[KEY_SIGNATURE_BYTES];
    CLEANUP(str_done) struct str bytes = { 0 };
    uint64_t until;

    if (!line || sscanf(line, "%255s %299s %31s %128s", name, address, expires, hex) != 4 ||
        !read_hex(hex, signature, sizeof(signature)))
        return err_set(err, ERR_UNAUTHENTICATED, "that is no invitation");
    invitation_bytes(secrets, name, address, expires, &bytes);
    if (!key_verify(secrets->public_key, bytes.data, bytes.len, signature, sizeof(signature)))
        return err_set(err, ERR_UNAUTHENTICATED, "the invitation is not this cluster's");
    if (!str_to_u64(expires, INT64_MAX, &until) || (int64_t)until < clock_wall_s())
        return err_set(err, ERR_UNAUTHENTICATED,
                       "the invitation is too old; spur controller add gives a new one");
    snprintf(out->name, sizeof(out->name), "%s", name);
    snprintf(out->address, sizeof(out->address), "%s", address);
    return 0;
}
