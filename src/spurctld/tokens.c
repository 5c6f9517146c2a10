/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokens.c - tokens that people ask for: for themselves, for a new machine, for a job's output
 *
 * (1) Who is known by the kernel, MUNGE, a certificate, or because a login host or a controller vouches, gets a
 *     token for up to access.token_lifespan_max.
 * (2) Who shows another token, or one that a compute node vouched for, gets none that lasts longer than that one:
 *     otherwise a stolen minute would become a year.
 */
#include <stdlib.h>
#include <string.h>

#include "core/msg.h"
#include "core/query.h"
#include "spurctld/serve.h"
#include "sys/clock.h"
#include "sys/users.h"

enum { TOKEN_DEFAULT_S = 1800, TOKEN_MOST_S = 366 * 86400, DAY_S = 86400, ACCESS_S = 300 };

static void fail(struct rpc_call *call, enum err_code code, const char *text)
{
    struct err err = { 0 };

    err_set(&err, code, "%s", text ? text : err_text(code));
    rpc_fail(call, &err);
}

static void reply_token(struct rpc_call *call, char *token, const struct err *err)
{
    TokenReply reply = TOKEN_REPLY__INIT;

    if (!token) {
        rpc_fail(call, err);
        return;
    }
    reply.token = token;
    rpc_reply(call, &reply.base);
    free(token);
}

/* ---- for people ---- */

static bool is_first_hand(const struct rpc_identity *identity)
{
    return identity->how != RPC_HOW_JWT || str_starts(identity->by, "login:") ||
           str_eq(identity->by, "controller");
}

static int user_lifespan(const struct server *server, const struct rpc_identity *identity,
                         const TokenRequest *request, int64_t *out, struct err *err)
{
    const ConfLocal *local = conf_local(server->conf);
    int64_t most = local->has_token_lifespan_max_s ? local->token_lifespan_max_s : DAY_S;

    if (request->has_lifespan_s && request->lifespan_s > most)
        return err_set(err, ERR_INVALID,
                       "a token is good for at most %lld seconds (access.token_lifespan_max), "
                       "not for %u",
                       (long long)most, request->lifespan_s);
    if (!is_first_hand(identity)) /* (2) */
        most = MIN(most, MAX(identity->expires_s - clock_wall_s(), 1));
    *out = MIN(request->has_lifespan_s ? (int64_t)request->lifespan_s : TOKEN_DEFAULT_S, most);
    return 0;
}

/* The name of another user is looked up by a worker. */
struct token_lookup {
    uv_work_t work;
    struct rpc_call *call;
    struct server *server;
    char *name;
    const char *by;
    int64_t lifespan_s;
    struct user *user;
    struct err err;
};

static void look_up(uv_work_t *work)
{
    struct token_lookup *lookup = work->data;

    users_parse(lookup->name, &lookup->user, &lookup->err);
}

static void looked_up(uv_work_t *work, int status)
{
    struct token_lookup *lookup = work->data;
    char *token = NULL;

    (void)status;
    if (lookup->user)
        token =
            secrets_user_token(&lookup->server->secrets, lookup->user->uid, lookup->user->gid,
                               lookup->user->name, lookup->by, lookup->lifespan_s, &lookup->err);
    reply_token(lookup->call, token, &lookup->err);
    user_free(lookup->user);
    free(lookup->name);
    free(lookup);
}

void server_on_token(struct rpc_call *call, const ProtobufCMessage *message)
{
    struct server *server = rpc_call_ctx(call);
    const TokenRequest *request = (const void *)message;
    struct ctl_who *who = server_identity(server, call);
    const char *by = rpc_how_name(rpc_call_identity(call)->how);
    int64_t seconds = 0;
    struct err err = { 0 };

    if (who && rpc_call_identity(call)->no_staff) {
        fail(
            call, ERR_PERMISSION,
            "this token was made for spurrestd and is not exchanged for another; use 'spur token'");
        return;
    }
    if (user_lifespan(server, rpc_call_identity(call), request, &seconds, &err) < 0) {
        rpc_fail(call, &err);
        return;
    }
    if (!who) {
        fail(call, ERR_UNAUTHENTICATED, NULL);
        return;
    }
    if (str_is_empty(request->user) || strcmp(request->user, who->user) == 0) {
        reply_token(
            call,
            secrets_user_token(&server->secrets, who->uid, who->gid, who->user, by, seconds, &err),
            &err);
        return;
    }
    if (!who->is_admin) {
        fail(call, ERR_PERMISSION, "only administrators get tokens for other users");
        return;
    }
    struct token_lookup *lookup = NEW(struct token_lookup);
    lookup->work.data = lookup;
    lookup->call = call;
    lookup->server = server;
    lookup->name = mem_strdup(request->user);
    lookup->by = by;
    lookup->lifespan_s = seconds;
    uv_queue_work(server->uv, &lookup->work, look_up, looked_up);
}

/* ---- for a new machine ---- */

void server_on_join_token(struct rpc_call *call, const ProtobufCMessage *message)
{
    struct server *server = rpc_call_ctx(call);
    const JoinTokenRequest *request = (const void *)message;
    struct str line = { 0 };
    struct err err = { 0 };

    int64_t lifespan_s =
        request->has_lifespan_s ? MIN((int64_t)request->lifespan_s, TOKEN_MOST_S) : DAY_S;
    int code = secrets_join_pass(&server->secrets, request->node, lifespan_s, &line, &err);
    if (code < 0)
        rpc_fail(call, &err);
    else
        reply_token(call, str_take(&line), &err);
    str_done(&line);
}

/* ---- for a job's output ---- */

static const struct job *find(struct server *server, const char *id)
{
    const struct state *state = ctl_state(server->ctl);
    struct job_ref ref;
    struct err err;

    if (!id || job_ref_parse(id, &ref, &err) < 0)
        return NULL;
    if (ref.has_tasks) {
        CLEANUP(freep) char *text = mem_strndup(ref.tasks, ref.tasks_len);
        uint64_t task;
        return str_to_u64(text, UINT32_MAX, &task) ? state_task(state, ref.id, (uint32_t)task)
                                                   : NULL;
    }
    return state_job(state, ref.has_offset ? ref.id + ref.offset : ref.id);
}

/*
 * The node that has the job's output and takes its steps, and a token for that job there: good for
 * opening a stream within minutes, and nowhere else.
 */
void server_on_job_access(struct rpc_call *call, const ProtobufCMessage *message)
{
    struct server *server = rpc_call_ctx(call);
    const JobAccessRequest *request = (const void *)message;
    struct ctl_who *who = server_identity(server, call);
    const struct job *job = find(server, request->id);
    JobAccessReply reply = JOB_ACCESS_REPLY__INIT;
    struct err err = { 0 };

    if (!who || !job) {
        fail(call, who ? ERR_INVALID_JOB_ID : ERR_UNAUTHENTICATED, NULL);
        return;
    }
    if (job->owner->uid != who->uid && !who->is_admin) {
        fail(call, ERR_PERMISSION, NULL);
        return;
    }
    reply.job = job_msg(ctl_state(server->ctl), job, rpc_call_arena(call));
    if (!job->run || !job->run->count) { /* it has not run: there is nobody to ask */
        rpc_reply(call, &reply.base);
        return;
    }
    const char *name = job->run->parts[ctl_manager(job)].name;
    const struct node *node = state_node(ctl_state(server->ctl), name);
    const NodeInventory *found = node ? node->found : NULL;
    JobOwner owner = JOB_OWNER__INIT;
    reply.node = (char *)name;
    if (found && found->addr)
        reply.address = arena_printf(rpc_call_arena(call), "http://%s:%u", found->addr,
                                     found->has_port ? found->port : 6818);
    job_owner_msg(job->owner, &owner);
    char *token = secrets_job_token(&server->secrets, &owner, job->id, reply.node, ACCESS_S, &err);
    if (!token) {
        rpc_fail(call, &err);
        return;
    }
    reply.token = token;
    rpc_reply(call, &reply.base);
    free(token);
}
