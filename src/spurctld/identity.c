/* SPDX-License-Identifier: Apache-2.0 */
/*
 * identity.c - identities to people
 *
 * rpc/ proves a uid, a user name or a node name. Here it becomes a person with name and groups, and
 * a set of roles. The name service may be slow, so it is asked by a worker; answers are kept.
 *
 * (1) A uid without an account is a person too: its number is its name.
 * (2) Administrators are root, the user the controller runs as, and those the configuration names.
 * (3) Groups may be stale by up to USERS_KEEP_S; a job keeps those it was submitted with.
 * (4) A token for one job's streams is for its node: here it is nobody's.
 * (5) Who asks acts with the group that his process has (newgrp, sg), when he is a member of it; root with
 *     any. A group that a program got by its setgid bit is not taken.
 * (6) A node that asks (root there, vouch.c) is nobody's uid, and no staff.
 * (7) A token that spurrestd was given for a user (vouch.c) never has the roles of staff.
 * (8) Tokens that their user or an administrator revoked are refused; one that does not say when it was issued
 *     is as old as can be. Connections that showed one end a moment later, after the answer to who revoked it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spurctld/serve.h"
#include "sys/clock.h"
#include "sys/log.h"
#include "sys/users.h"

enum { NODE_UID = -2, REVOKE_MS = 500, NODE_PASS_S = 120 };

struct known_user {
    struct user *user; /* NULL: no account */
    char *group;
    uint32_t other;    /* (5) a group of his that is not his first; (uint32_t)-1: none */
    char *other_group; /* its name */
    int64_t until_us;
};

struct lookup {
    uv_work_t work;
    struct server *server;
    struct rpc_auth *auth;
    struct rpc_identity identity;
    struct known_user *found;
    bool bad_name;
};

static void known_free(struct known_user *known)
{
    if (known) {
        user_free(known->user);
        free(known->group);
        free(known->other_group);
        free(known);
    }
}

void server_users_free(struct server *server)
{
    map_each (entry, &server->users)
        known_free(entry->value);
    map_done(&server->users);
}

static bool in_list(char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0)
            return true;
    }
    return false;
}

/* (2) */
unsigned server_person_roles(struct server *server, uint32_t uid, const char *name)
{
    const Config *config = state_config(ctl_state(server->ctl));
    bool admin = uid == 0 || uid == geteuid() ||
                 (name && (in_list(config->admins, config->n_admins, name) ||
                           in_list(config->db_admins, config->n_db_admins, name)));
    bool operates =
        admin || (name && (in_list(config->operators, config->n_operators, name) ||
                           in_list(config->db_operators, config->n_db_operators, name)));

    return RPC_USER | (admin ? RPC_ADMIN : 0) | (operates ? RPC_OPERATOR : 0);
}

/* (8) */
static bool is_revoked(void *ctx, const struct rpc_identity *identity)
{
    struct server *server = ctx;
    int64_t revoked_s = identity->how == RPC_HOW_JWT && identity->has_uid
                            ? state_revoked_s(ctl_state(server->ctl), identity->uid)
                            : 0;

    return revoked_s && identity->issued_s <= revoked_s;
}

static void drop_revoked(uv_timer_t *timer)
{
    struct server *server = timer->data;

    rpc_server_drop_tokens(server->rpc, is_revoked);
}

void server_revoked(void *ctx, int64_t issued_s)
{
    struct server *server = ctx;

    server->secrets.revoked_s = MAX(server->secrets.revoked_s, issued_s);
    if (server->rpc) /* nobody is connected while the log is read at the start */
        uv_timer_start(&server->revoke, drop_revoked, REVOKE_MS, 0);
}

static unsigned roles_of(struct server *server, const struct rpc_identity *identity,
                         const struct known_user *known, struct rpc_auth *auth)
{
    struct err err = { 0 };

    if (is_revoked(server, identity)) {
        err_set(&err, ERR_UNAUTHENTICATED,
                "the tokens of this user that were made before were revoked; ask for a new one");
        rpc_auth_refuse(auth, &err);
        return 0;
    }
    unsigned roles =
        server_person_roles(server, identity->uid, known->user ? known->user->name : NULL);

    return identity->no_staff ? roles & RPC_USER : roles; /* (7) */
}

/* (5) */
static bool may_be_in(const struct known_user *known, const struct rpc_identity *identity)
{
    bool root = identity->how == RPC_HOW_UNIX && identity->uid == 0;

    if (!known->user || identity->gid == (uint32_t)-1 || identity->gid == known->user->gid)
        return false;
    for (size_t i = 0; i < known->user->group_count && !root; i++)
        root = known->user->groups[i] == identity->gid;
    return root;
}

/* "users", or its number. */
static char *group_name(gid_t gid)
{
    struct str name = { 0 };
    struct err err = { 0 };

    if (users_group_by_gid(gid, &name, &err) < 0)
        str_addf(&name, "%u", (unsigned)gid);
    return str_take(&name);
}

/* In a worker thread. */
static void look_up(uv_work_t *work)
{
    struct lookup *lookup = work->data;
    struct known_user *known = NEW(struct known_user);
    struct err err = { 0 };

    if (lookup->identity.has_uid)
        users_by_uid(lookup->identity.uid, &known->user, &err);
    else if (users_by_name(lookup->identity.user, &known->user, &err) < 0)
        lookup->bad_name = true;
    known->group = group_name(known->user ? known->user->gid : lookup->identity.gid);
    known->other = (uint32_t)-1;
    if (lookup->identity.has_uid && may_be_in(known, &lookup->identity)) {
        known->other = lookup->identity.gid;
        known->other_group = group_name(known->other);
    }
    known->until_us = clock_mono_us() + (int64_t)USERS_KEEP_S * 1000000;
    lookup->found = known;
}

static void looked_up(uv_work_t *work, int status)
{
    struct lookup *lookup = work->data;
    struct server *server = lookup->server;
    struct known_user *known = lookup->found;
    unsigned roles = 0;

    (void)status;
    if (known && !lookup->bad_name) {
        uint32_t uid = lookup->identity.has_uid ? lookup->identity.uid : known->user->uid;
        if (!lookup->identity.has_uid) {
            lookup->identity.has_uid = true;
            lookup->identity.uid = uid;
            lookup->identity.gid = known->user->gid;
        }
        known_free(map_put_num(&server->users, uid, known));
        roles = roles_of(server, &lookup->identity, known, lookup->auth);
    } else {
        known_free(known);
    }
    rpc_auth_done(lookup->auth, &lookup->identity, roles);
    free(lookup);
}

unsigned server_roles(void *ctx, const struct rpc_identity *identity, struct rpc_auth *auth)
{
    struct server *server = ctx;

    if (identity->how == RPC_HOW_NONE || identity->job) /* (4) */
        return 0;
    if (identity->node[0])
        return RPC_NODE;
    if (identity->controller[0])
        return RPC_CONTROLLER;
    if (identity->rest[0])
        return RPC_REST;
    if (!identity->has_uid && !identity->user[0])
        return 0;
    struct known_user *known =
        identity->has_uid ? map_get_num(&server->users, identity->uid) : NULL;
    if (known && known->until_us > clock_mono_us() &&
        (!may_be_in(known, identity) || known->other == identity->gid))
        return roles_of(server, identity, known, auth);
    struct lookup *lookup = NEW(struct lookup);
    lookup->work.data = lookup;
    lookup->server = server;
    lookup->auth = auth;
    lookup->identity = *identity;
    uv_queue_work(server->uv, &lookup->work, look_up, looked_up);
    return RPC_ROLES_LATER;
}

const char *server_user_name(const struct server *server, uint32_t uid)
{
    const struct known_user *known = map_get_num(&server->users, uid);

    return known && known->user ? known->user->name : NULL;
}

/*
 * (9) The token that a node got when it joined lasts for years, so it is worth no more than the node's key: it comes with
 * its certificate. A pass that a node was given for a minute (vouch.c) comes alone.
 */
static bool is_node_still(struct server *server, struct rpc_call *call)
{
    const struct rpc_identity *identity = rpc_call_identity(call);
    bool is_pass = identity->how == RPC_HOW_JWT && identity->issued_s &&
                   identity->expires_s - identity->issued_s <= NODE_PASS_S;
    struct err err = { 0 };

    if (is_pass)
        return !state_node_is_forgotten(ctl_state(server->ctl), identity->node);
    if (server_check_node(server, call, &err) == 0)
        return true;
    log_warn("node.call", "node=%s refused text=%s", identity->node, err.text);
    return false;
}

struct ctl_who *server_identity(struct server *server, struct rpc_call *call)
{
    const struct rpc_identity *identity = rpc_call_identity(call);
    struct known_user *known =
        identity->has_uid ? map_get_num(&server->users, identity->uid) : NULL;
    struct arena *arena = rpc_call_arena(call);
    unsigned roles = rpc_call_roles(call);

    struct ctl_who *who = ARENA_NEW(arena, struct ctl_who);
    const uint8_t *id = rpc_call_request_id(call);
    who->request_id = id ? arena_copy(arena, id, RPC_REQUEST_ID_BYTES) : NULL;
    if (identity->node[0] && !is_node_still(server, call))
        return NULL;
    if (identity->node[0]) { /* (6) */
        who->uid = who->gid = (uint32_t)NODE_UID;
        who->node = who->user = who->group = arena_strdup(arena, identity->node);
        return who;
    }
    if (identity->rest[0]) { /* (7) it is nobody's uid, either */
        who->uid = who->gid = (uint32_t)NODE_UID;
        who->user = who->group = arena_printf(arena, "rest:%s", identity->rest);
        return who;
    }
    if (!known)
        return NULL;
    who->uid = identity->uid;
    who->gid = known->user ? known->user->gid : identity->gid;
    who->user = known->user ? arena_strdup(arena, known->user->name)
                            : arena_printf(arena, "%u", identity->uid); /* (1) */
    who->group = arena_strdup(arena, known->group);
    if (may_be_in(known, identity) && known->other == identity->gid) {
        who->gid = identity->gid;
        who->group = arena_strdup(arena, known->other_group);
    }
    if (known->user) {
        who->gid_count = known->user->group_count;
        who->gids = arena_copy(arena, known->user->groups, who->gid_count * sizeof(uint32_t));
    }
    who->is_admin = (roles & RPC_ADMIN) != 0;
    who->is_operator = (roles & RPC_OPERATOR) != 0;
    return who;
}
