/* SPDX-License-Identifier: Apache-2.0 */
/*
 * who.c - identities to people and controllers
 *
 * (1) A controller shows its certificate; on this host it is known by the user that it runs as. spurdbd itself
 *     is not an administrator of any cluster.
 * (2) Administrators of the database are root and the user that spurdbd runs as. Those of a cluster are told
 *     by its leader and count for that cluster's history only (history.c).
 * (3) The name service may be slow, so a worker asks it; answers are kept for a while.
 * (4) Tokens that a cluster's controllers revoked are refused here too: its leader tells which.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spurdbd/serve.h"
#include "sys/clock.h"
#include "sys/users.h"

struct known_user {
    char *name; /* NULL: no account */
    int64_t until_us;
};

struct lookup {
    uv_work_t work;
    struct dbd *dbd;
    struct rpc_auth *auth;
    struct rpc_identity identity;
    struct known_user *found;
    bool bad_name;
};

static void known_free(struct known_user *known)
{
    if (known) {
        free(known->name);
        free(known);
    }
}

void dbd_users_free(struct dbd *dbd)
{
    map_each (entry, &dbd->users)
        known_free(entry->value);
    map_done(&dbd->users);
    map_each (entry, &dbd->revoked)
        free(entry->value);
    map_done(&dbd->revoked);
}

/* (4) */
static bool is_revoked(void *ctx, const struct rpc_identity *identity)
{
    struct dbd *dbd = ctx;
    const int64_t *revoked_s = identity->how == RPC_HOW_JWT && identity->has_uid
                                   ? map_get_num(&dbd->revoked, identity->uid)
                                   : NULL;

    return revoked_s && identity->issued_s <= *revoked_s;
}

void dbd_revoke(struct dbd *dbd, const FeedHello *hello)
{
    for (size_t i = 0; i < hello->n_revoked; i++) {
        int64_t *issued_s = map_get_num(&dbd->revoked, hello->revoked[i]->uid);
        if (!issued_s) {
            issued_s = NEW(int64_t);
            map_put_num(&dbd->revoked, hello->revoked[i]->uid, issued_s);
        }
        *issued_s = MAX(*issued_s, hello->revoked[i]->issued_s);
    }
    if (hello->n_revoked)
        rpc_server_drop_tokens(dbd->rpc, is_revoked);
}

static unsigned person_roles(struct dbd *dbd, const struct rpc_identity *identity,
                             struct rpc_auth *auth)
{
    struct err err = { 0 };

    if (is_revoked(dbd, identity)) {
        err_set(&err, ERR_UNAUTHENTICATED,
                "the tokens of this user that were made before were revoked; ask for a new one");
        rpc_auth_refuse(auth, &err);
        return 0;
    }
    bool own = identity->uid == 0 || identity->uid == geteuid();
    bool local = identity->how == RPC_HOW_UNIX;

    if (identity->no_staff)
        return RPC_USER;
    return RPC_USER | (own ? RPC_ADMIN | RPC_OPERATOR : 0) |
           (local && (own || identity->uid == dbd->controller_uid) ? RPC_CONTROLLER : 0); /* (1) */
}

/* In a worker thread. */
static void look_up(uv_work_t *work)
{
    struct lookup *lookup = work->data;
    struct known_user *known = NEW(struct known_user);
    struct user *user = NULL;
    struct err err = { 0 };

    if (lookup->identity.has_uid)
        users_by_uid(lookup->identity.uid, &user, &err);
    else if (users_by_name(lookup->identity.user, &user, &err) < 0)
        lookup->bad_name = true;
    if (user && !lookup->identity.has_uid) {
        lookup->identity.has_uid = true;
        lookup->identity.uid = user->uid;
        lookup->identity.gid = user->gid;
    }
    known->name = user ? mem_strdup(user->name) : NULL;
    known->until_us = clock_mono_us() + (int64_t)USERS_KEEP_S * 1000000;
    user_free(user);
    lookup->found = known;
}

static void looked_up(uv_work_t *work, int status)
{
    struct lookup *lookup = work->data;
    unsigned roles = 0;

    (void)status;
    if (lookup->bad_name) {
        known_free(lookup->found);
    } else {
        known_free(map_put_num(&lookup->dbd->users, lookup->identity.uid, lookup->found));
        roles = person_roles(lookup->dbd, &lookup->identity, lookup->auth);
    }
    rpc_auth_done(lookup->auth, &lookup->identity, roles);
    free(lookup);
}

unsigned dbd_roles(void *ctx, const struct rpc_identity *identity, struct rpc_auth *auth)
{
    struct dbd *dbd = ctx;

    if (identity->how == RPC_HOW_NONE || identity->job || identity->node[0])
        return 0;
    if (identity->controller[0])
        return RPC_CONTROLLER; /* (1) */
    if (!identity->has_uid && !identity->user[0])
        return 0;
    struct known_user *known = identity->has_uid ? map_get_num(&dbd->users, identity->uid) : NULL;
    if (known && known->until_us > clock_mono_us())
        return person_roles(dbd, identity, auth);
    struct lookup *lookup = NEW(struct lookup); /* (3) */
    lookup->work.data = lookup;
    lookup->dbd = dbd;
    lookup->auth = auth;
    lookup->identity = *identity;
    uv_queue_work(dbd->uv, &lookup->work, look_up, looked_up);
    return RPC_ROLES_LATER;
}

void dbd_viewer(struct dbd *dbd, struct rpc_call *call, struct history_viewer *out)
{
    const struct rpc_identity *identity = rpc_call_identity(call);
    const struct known_user *known = map_get_num(&dbd->users, identity->uid);

    *out = (struct history_viewer){
        .uid = identity->has_uid ? identity->uid : UINT32_MAX,
        .name = known && known->name ? arena_strdup(rpc_call_arena(call), known->name) : NULL,
        .admin = (rpc_call_roles(call) & RPC_ADMIN) != 0,
        .plain = identity->no_staff,
    };
}
