/* SPDX-License-Identifier: Apache-2.0 */
/*
 * methods.c - who may call what
 *
 * One row per method: the roles that may call it, and who answers. A call without a row is refused
 * by rpc/. Where the object matters (whose job?), the handler looks at the owner; the last column
 * says so, and t/t50-auth walks the whole table.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/conf_file.h"
#include "proto/acct.pb-c.h"
#include "proto/dbd.pb-c.h"
#include "proto/peer.pb-c.h"
#include "proto/usage.pb-c.h"
#include "spurctld/feed.h"
#include "spurctld/serve.h"
#include "sys/clock.h"

/* READERS: people, and root of a node as that node (vouch.c). */
enum {
    ANY = RPC_ANON,
    PEOPLE = RPC_USER,
    READERS = RPC_USER | RPC_NODE,
    STAFF = RPC_OPERATOR | RPC_ADMIN
};

/* Who answers: any controller; the leader; the leader once it is sure that it still leads (ctl_read.c). */
enum where {
    ANYWHERE,
    LEADS,
    READS,
    READS_STALE /* anybody, if the request says that stale will do */
};

typedef void serve_handler(struct rpc_call *call, const ProtobufCMessage *request);
static serve_handler on_get_config, on_shutdown;

static const struct row {
    const char *path;
    unsigned roles;
    enum where where;
    enum rpc_kind kind;
    const ProtobufCMessageDescriptor *request, *reply;
    ctl_handler *ask;      /* either the logic answers … */
    serve_handler *handle; /* … or the process does */
    const char *object;    /* what the handler checks beyond the role; NULL: nothing */
} rows[] = {
#define C "/spur.Controller/"
    { C "SubmitJob", PEOPLE, LEADS, RPC_UNARY, &submit_job_packed__descriptor,
      &submit_job_reply__descriptor, ctl_submit, NULL, "the job is the asker's" },
    { C "ListJobs", READERS, READS_STALE, RPC_SERVER_STREAM, &list_jobs_request__descriptor,
      &list_jobs_reply__descriptor, ctl_list_jobs, NULL, NULL },
    { C "GetJob", READERS, READS, RPC_UNARY, &get_job_request__descriptor,
      &get_job_reply__descriptor, ctl_get_job, NULL,
      "script and environment: owner or administrator" },
    { C "CancelJobs", PEOPLE, LEADS, RPC_UNARY, &cancel_jobs_request__descriptor,
      &jobs_reply__descriptor, ctl_cancel, NULL, "owner, operator or administrator" },
    { C "UpdateJob", PEOPLE, LEADS, RPC_UNARY, &update_job_request__descriptor,
      &jobs_reply__descriptor, ctl_update_job, NULL, "owner, operator or administrator" },
    { C "Requeue", PEOPLE, LEADS, RPC_UNARY, &requeue_request__descriptor, &jobs_reply__descriptor,
      ctl_requeue, NULL, "owner, operator or administrator" },
    { C "Suspend", STAFF, LEADS, RPC_UNARY, &suspend_request__descriptor, &jobs_reply__descriptor,
      ctl_suspend, NULL, NULL },
    { C "WatchJob", PEOPLE, READS, RPC_SERVER_STREAM, &watch_job_request__descriptor,
      &job__descriptor, ctl_watch_job, NULL, NULL },
    { C "FinishJob", PEOPLE, LEADS, RPC_UNARY, &finish_job_request__descriptor,
      &done_reply__descriptor, ctl_finish_job, NULL, "owner or administrator" },
    { C "Explain", READERS, READS, RPC_UNARY, &explain_request__descriptor,
      &explain_reply__descriptor, ctl_explain, NULL, NULL },
    { C "JobAccess", PEOPLE, LEADS, RPC_UNARY, &job_access_request__descriptor,
      &job_access_reply__descriptor, NULL, server_on_job_access, "owner or administrator" },
    { C "ListSteps", READERS, READS, RPC_UNARY, &list_steps_request__descriptor,
      &list_steps_reply__descriptor, ctl_list_steps, NULL, NULL },
    { C "SignalStep", PEOPLE, LEADS, RPC_UNARY, &signal_step_request__descriptor,
      &done_reply__descriptor, ctl_signal_step, NULL, "owner, operator or administrator" },
    { C "ListNodes", READERS, READS_STALE, RPC_UNARY, &list_nodes_request__descriptor,
      &list_nodes_reply__descriptor, ctl_list_nodes, NULL, NULL },
    { C "ListPartitions", READERS, READS_STALE, RPC_UNARY, &list_partitions_request__descriptor,
      &list_partitions_reply__descriptor, ctl_list_partitions, NULL, NULL },
    { C "ListReservations", READERS, READS, RPC_UNARY, &list_reservations_request__descriptor,
      &list_reservations_reply__descriptor, ctl_list_reservations, NULL, NULL },
    { C "ListLicenses", READERS, READS, RPC_UNARY, &list_licenses_request__descriptor,
      &list_licenses_reply__descriptor, ctl_list_licenses, NULL, NULL },
    { C "UpdateNode", STAFF | RPC_NODE, LEADS, RPC_UNARY, &update_node_request__descriptor,
      &done_reply__descriptor, ctl_update_node, NULL, "a node: itself, to drain it" },
    { C "UpdatePartition", RPC_ADMIN, LEADS, RPC_UNARY, &update_partition_request__descriptor,
      &done_reply__descriptor, ctl_update_partition, NULL, NULL },
    { C "UpdateReservation", PEOPLE, LEADS, RPC_UNARY, &update_reservation_request__descriptor,
      &done_reply__descriptor, ctl_update_reservation, NULL,
      "staff; or who may use it, to delete one with USER_DELETE" },
    { C "GetConfig", READERS, ANYWHERE, RPC_UNARY, &get_config_request__descriptor,
      &get_config_reply__descriptor, NULL, on_get_config, NULL },
    { C "Reconfigure", RPC_ADMIN, LEADS, RPC_UNARY, &empty__descriptor, &done_reply__descriptor,
      NULL, server_on_reconfigure, NULL },
    { C "Shutdown", RPC_ADMIN, ANYWHERE, RPC_UNARY, &shutdown_request__descriptor,
      &done_reply__descriptor, NULL, on_shutdown, NULL },
    { C "Ping", ANY, ANYWHERE, RPC_UNARY, &empty__descriptor, &ping_reply__descriptor, ctl_ping,
      NULL, NULL },
    { C "Token", PEOPLE, ANYWHERE, RPC_UNARY, &token_request__descriptor, &token_reply__descriptor,
      NULL, server_on_token, "for another user: administrator" },
    { C "RestToken", RPC_REST, LEADS, RPC_UNARY, &rest_token_request__descriptor,
      &vouch_reply__descriptor, NULL, server_on_rest_token, "never with the roles of staff" },
    { C "WhoAmI", PEOPLE, ANYWHERE, RPC_UNARY, &empty__descriptor, &identity_reply__descriptor,
      ctl_who_am_i, NULL, NULL },
    { C "WatchChanges", RPC_REST, LEADS, RPC_SERVER_STREAM, &empty__descriptor,
      &watch_changes_reply__descriptor, ctl_watch_changes, NULL,
      "the reader hides what is private" },
    { C "JoinToken", RPC_ADMIN, LEADS, RPC_UNARY, &join_token_request__descriptor,
      &token_reply__descriptor, NULL, server_on_join_token, NULL },
    { C "Diag", READERS | RPC_REST, READS, RPC_UNARY, &diag_request__descriptor,
      &diag_reply__descriptor, ctl_diag, NULL, "with reset: staff" },
    { C "ForgetNode", RPC_ADMIN, LEADS, RPC_UNARY, &forget_node_request__descriptor,
      &done_reply__descriptor, ctl_forget_node, NULL, NULL },
    { C "RevokeTokens", PEOPLE, LEADS, RPC_UNARY, &revoke_tokens_request__descriptor,
      &done_reply__descriptor, ctl_revoke_tokens, NULL, "of another user: administrator" },
    { C "SetLevel", RPC_ADMIN, LEADS, RPC_UNARY, &set_level_request__descriptor,
      &done_reply__descriptor, ctl_set_level, NULL, NULL },
    { C "AddController", RPC_ADMIN, LEADS, RPC_UNARY, &change_controller_request__descriptor,
      &change_controller_reply__descriptor, NULL, server_on_add_controller, NULL },
    { C "RemoveController", RPC_ADMIN, LEADS, RPC_UNARY, &change_controller_request__descriptor,
      &change_controller_reply__descriptor, NULL, server_on_remove_controller, NULL },
    { C "TransferLeader", RPC_ADMIN, LEADS, RPC_UNARY, &change_controller_request__descriptor,
      &change_controller_reply__descriptor, NULL, server_on_transfer_leader, NULL },
    { C "TrustController", RPC_ADMIN, ANYWHERE, RPC_UNARY, &change_controller_request__descriptor,
      &done_reply__descriptor, NULL, server_on_trust_controller, NULL },
    { C "GetCrontab", PEOPLE, READS, RPC_UNARY, &get_crontab_request__descriptor,
      &get_crontab_reply__descriptor, ctl_get_crontab, NULL, "of another user: administrator" },
    { C "SetCrontab", PEOPLE, LEADS, RPC_UNARY, &set_crontab_request__descriptor,
      &jobs_reply__descriptor, ctl_set_crontab, NULL, "the asker's own" },
    { C "SetTrigger", PEOPLE, LEADS, RPC_UNARY, &set_trigger_request__descriptor,
      &done_reply__descriptor, ctl_set_trigger, NULL,
      "administrators, as the user that the controller can run programs as" },
    { C "ClearTriggers", PEOPLE, LEADS, RPC_UNARY, &clear_triggers_request__descriptor,
      &done_reply__descriptor, ctl_clear_triggers, NULL, "one's own; administrators: all" },
    { C "ListTriggers", PEOPLE, READS, RPC_UNARY, &empty__descriptor,
      &list_triggers_reply__descriptor, ctl_list_triggers, NULL, NULL },
    { C "ReadJournal", RPC_ADMIN, READS_STALE, RPC_SERVER_STREAM, &read_journal_request__descriptor,
      &read_journal_reply__descriptor, server_read_journal, NULL, NULL },
    { C "AckJournal", RPC_ADMIN, LEADS, RPC_UNARY, &ack_journal_request__descriptor,
      &done_reply__descriptor, server_ack_journal, NULL, "not while a spurdbd acknowledges" },
#undef C
    { "/spur.Shares/List", PEOPLE, READS, RPC_UNARY, &list_shares_request__descriptor,
      &list_shares_reply__descriptor, ctl_list_shares, NULL,
      "usage of others: as private_data says" },
    { "/spur.Accounting/ListHistory", PEOPLE, LEADS, RPC_SERVER_STREAM,
      &list_history_request__descriptor, &list_history_reply__descriptor, NULL, server_relay,
      "what spurdbd shows the asker as a user" },
    { "/spur.Accounting/ListRecords", PEOPLE, LEADS, RPC_UNARY, &list_records_request__descriptor,
      &list_records_reply__descriptor, NULL, server_relay,
      "what spurdbd shows the asker as a user" },
    { "/spur.Accounting/FixRunaway", PEOPLE, LEADS, RPC_UNARY, &fix_runaway_request__descriptor,
      &fix_runaway_reply__descriptor, NULL, server_relay, "spurdbd: operators" },
    { "/spur.Accounting/Repair", PEOPLE, LEADS, RPC_UNARY, &repair_request__descriptor,
      &repair_reply__descriptor, NULL, server_relay, "spurdbd: administrators" },
    { "/spur.Accounts/Adopt", PEOPLE, LEADS, RPC_UNARY, &adopt_request__descriptor,
      &adopt_reply__descriptor, NULL, server_relay, "spurdbd: administrators" },
    { "/spur.Accounts/List", PEOPLE, LEADS, RPC_UNARY, &list_tables_request__descriptor,
      &list_tables_reply__descriptor, NULL, server_relay,
      "what spurdbd shows the asker as a user" },
    { "/spur.Reports/Sum", PEOPLE, LEADS, RPC_UNARY, &usage_request__descriptor,
      &usage_reply__descriptor, NULL, server_relay, "what spurdbd shows the asker as a user" },
    { "/spur.Reports/Sizes", PEOPLE, LEADS, RPC_UNARY, &sizes_request__descriptor,
      &sizes_reply__descriptor, NULL, server_relay, "what spurdbd shows the asker as a user" },
    { "/spur.Accounts/Change", PEOPLE, LEADS, RPC_UNARY, &change_tables_request__descriptor,
      &change_tables_reply__descriptor, NULL, server_relay,
      "spurdbd: each edit, by the level of the asker; coordinators" },
    { "/spur.Accounting/Status", PEOPLE, LEADS, RPC_UNARY, &acct_status_request__descriptor,
      &acct_status_reply__descriptor, NULL, server_relay, NULL },
    { "/spur.Reports/Reservations", PEOPLE, LEADS, RPC_UNARY, &reservations_request__descriptor,
      &reservations_reply__descriptor, NULL, server_relay,
      "what spurdbd shows the asker as a user" },
    { "/spur.Agents/Join", ANY, LEADS, RPC_UNARY, &join_request__descriptor,
      &join_reply__descriptor, NULL, server_on_join, "a join token, or the key that the node has" },
    { "/spur.Agents/Vouch", RPC_NODE, LEADS, RPC_UNARY, &vouch_request__descriptor,
      &vouch_reply__descriptor, NULL, server_on_vouch,
      "login nodes: every user; others: users with a job there, no staff" },
    { "/spur.NodeAccess/Vouch", PEOPLE, ANYWHERE, RPC_UNARY, &vouch_request__descriptor,
      &vouch_reply__descriptor, NULL, server_on_vouch_here, "who comes by our socket" },
    { "/spur.Agents/Session", RPC_NODE, LEADS, RPC_BIDI, &node_message__descriptor,
      &ctl_message__descriptor, NULL, server_on_session, "the node that its token names" },
    { "/spur.Links/Ping", RPC_CONTROLLER, ANYWHERE, RPC_UNARY, &peer_ping_request__descriptor,
      &peer_ping_reply__descriptor, NULL, server_on_peer_ping, NULL },
#define P "/spur.Peers/"
    { P "Snapshot", RPC_CONTROLLER, ANYWHERE, RPC_SERVER_STREAM, &peer_snapshot_request__descriptor,
      &peer_snapshot_chunk__descriptor, NULL, server_on_peer_snapshot, "one of the list" },
    { P "Payloads", RPC_CONTROLLER, ANYWHERE, RPC_SERVER_STREAM, &peer_payloads_request__descriptor,
      &peer_payload_chunk__descriptor, NULL, server_on_peer_payloads, "one of the list" },
    { P "Journal", RPC_CONTROLLER, ANYWHERE, RPC_SERVER_STREAM, &peer_journal_request__descriptor,
      &peer_journal_chunk__descriptor, NULL, server_on_peer_journal, "one of the list" },
    { P "HoldBack", RPC_CONTROLLER, ANYWHERE, RPC_UNARY, &peer_hold_request__descriptor,
      &peer_hold_request__descriptor, NULL, server_on_peer_hold, "one of the list" },
    { P "Enter", ANY, ANYWHERE, RPC_UNARY, &enter_request__descriptor, &enter_reply__descriptor,
      NULL, server_on_controller_join, "the invitation" },
#undef P
};

/* ---- from a call to an ask and back ---- */

static void ask_reply(struct ctl_ask *ask, const ProtobufCMessage *reply)
{
    rpc_reply(ask->ctx, reply);
}

static void ask_reply_packed(struct ctl_ask *ask, struct str *packed)
{
    rpc_reply_packed(ask->ctx, packed);
}

static void ask_fail(struct ctl_ask *ask, const struct err *err)
{
    rpc_fail(ask->ctx, err);
}

static bool ask_send(struct ctl_ask *ask, struct str *packed)
{
    return rpc_send_packed(ask->ctx, packed);
}

static bool ask_writable(struct ctl_ask *ask)
{
    return rpc_writable(ask->ctx);
}

static void ask_end(struct ctl_ask *ask)
{
    rpc_end(ask->ctx);
}

static const struct ctl_ask_ops ask_ops = { ask_reply, ask_reply_packed, ask_fail,
                                            ask_send,  ask_writable,     ask_end };

static void on_writable(struct rpc_call *call)
{
    struct server *server = rpc_call_ctx(call);

    ctl_ask_writable(server->ctl, rpc_call_data(call));
}

static void on_cancel(struct rpc_call *call)
{
    struct server *server = rpc_call_ctx(call);

    ctl_ask_gone(server->ctl, rpc_call_data(call));
}

static const struct rpc_watch stream_watch = { .on_writable = on_writable, .on_cancel = on_cancel };

static bool stale_will_do(const ProtobufCMessage *request)
{
    if (request->descriptor == &list_jobs_request__descriptor)
        return ((const ListJobsRequest *)request)->stale;
    if (request->descriptor == &list_nodes_request__descriptor)
        return ((const ListNodesRequest *)request)->stale;
    if (request->descriptor == &list_partitions_request__descriptor)
        return ((const ListPartitionsRequest *)request)->stale;
    return request->descriptor == &read_journal_request__descriptor &&
           ((const ReadJournalRequest *)request)->stale;
}

/* Changes that people make to what is not theirs: by staff alone, or of another's job. */
static void audit(struct server *server, struct rpc_call *call, const struct row *row,
                  const ProtobufCMessage *request)
{
    const ProtobufCMessageDescriptor *type = row->request;
    bool jobs = type == &cancel_jobs_request__descriptor ||
                type == &update_job_request__descriptor || type == &requeue_request__descriptor ||
                type == &signal_step_request__descriptor || type == &finish_job_request__descriptor;
    bool reads = row->where == READS || row->where == READS_STALE;
    bool staff = (row->roles & STAFF) && !(row->roles & RPC_USER) && !reads;
    bool others = type == &update_reservation_request__descriptor ||
                  (type == &token_request__descriptor &&
                   !str_is_empty(((const TokenRequest *)request)->user));

    if (jobs || staff || others)
        server_audit(server, call, request, jobs);
}

static void on_call(struct rpc_call *call, const ProtobufCMessage *request)
{
    struct server *server = rpc_call_ctx(call);
    const struct row *row = &rows[rpc_call_method(call) - server->methods];
    struct ctl_ask *ask = ARENA_NEW(rpc_call_arena(call), struct ctl_ask);

    ask->who = server_identity(server, call);
    ask->arena = rpc_call_arena(call);
    ask->ops = &ask_ops;
    ask->ctx = call;
    if (!ask->who && row->roles != ANY) {
        struct err err = { 0 };
        err_code(&err, ERR_UNAUTHENTICATED);
        rpc_fail(call, &err);
        return;
    }
    if (row->kind == RPC_SERVER_STREAM) {
        rpc_call_set_data(call, ask);
        rpc_watch(call, &stream_watch);
    }
    if (row->where == READS || row->where == READS_STALE)
        ctl_read(server->ctl, ask, row->ask, request,
                 row->where == READS_STALE && stale_will_do(request));
    else
        row->ask(server->ctl, ask, request);
}

/* Every call comes through here: it enters the logic, and is counted. */
static void on_any(struct rpc_call *call, const ProtobufCMessage *request)
{
    struct server *server = rpc_call_ctx(call);
    size_t number = (size_t)(rpc_call_method(call) - server->methods);
    bool has_uid = rpc_call_identity(call)->has_uid;
    uint32_t uid = rpc_call_identity(call)->uid; /* the call may be gone when it was answered */
    int64_t begin_us = clock_mono_us();

    ctl_enter(server->ctl);
    audit(server, call, &rows[number], request);
    if (rows[number].ask)
        on_call(call, request);
    else
        rows[number].handle(call, request);
    call_stats_add(&server->calls, number, has_uid, uid, clock_mono_us() - begin_us);
}

static const char *method_name(void *ctx, size_t number)
{
    (void)ctx;
    return strrchr(rows[number].path, '/') + 1;
}

static void add_user_names(struct server *server, DiagReply *reply, struct arena *arena)
{
    for (size_t i = 0; i < reply->n_calls_by_user; i++) {
        const char *name = server_user_name(server, reply->calls_by_user[i]->id);
        if (name)
            reply->calls_by_user[i]->name = arena_strdup(arena, name);
    }
}

void server_diag(void *ctx, DiagReply *reply, bool reset, struct arena *arena)
{
    struct server *server = ctx;

    call_stats_report(&server->calls, method_name, NULL, reply, arena);
    add_user_names(server, reply, arena);
    if (reset)
        call_stats_reset(&server->calls);
}

int server_methods(struct server *server, struct err *err)
{
    call_stats_init(&server->calls, ARRAY_LEN(rows));
    server->methods = NEW_ARRAY(struct rpc_method, ARRAY_LEN(rows));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        server->methods[i] = (struct rpc_method){
            .path = rows[i].path,
            .roles = rows[i].roles,
            .leader_only = rows[i].where == LEADS || rows[i].where == READS,
            .kind = rows[i].kind,
            .request = rows[i].request,
            .reply = rows[i].reply,
            .handle = on_any,
        };
    }
    return rpc_server_add(server->rpc, server->methods, ARRAY_LEN(rows), err);
}

/* ---- the process itself ---- */

static void on_get_config(struct rpc_call *call, const ProtobufCMessage *request)
{
    struct server *server = rpc_call_ctx(call);
    GetConfigReply reply = GET_CONFIG_REPLY__INIT;
    ConfLocal local = *conf_local(server->conf);

    (void)request;
    local.accounting_url = NULL; /* may hold a password */
    local.accounting_addr = (char *)(uintptr_t)server_accounting_address(server);
    local.state_dir = server->state_dir;
    local.socket = server->socket;
    if (server->options->listen) {
        local.listen_addr = (char **)server->options->listen;
        for (local.n_listen_addr = 0; local.listen_addr[local.n_listen_addr];)
            local.n_listen_addr++;
    }
    if (server->membership.list.len) {
        local.n_hosts = 0;
        local.hosts = ARENA_ARRAY(rpc_call_arena(call), char *, server->membership.list.len);
        vec_each (struct controller, at, &server->membership.list)
            local.hosts[local.n_hosts++] =
                arena_printf(rpc_call_arena(call), "%s(%s:%u)", at->name, at->host, at->port);
    }
    if (!local.n_hosts && server->options->name) {
        local.hosts = ARENA_ARRAY(rpc_call_arena(call), char *, 1);
        local.hosts[local.n_hosts++] = (char *)server->options->name;
    }
    reply.config = (Config *)state_config(ctl_state(server->ctl));
    reply.local = &local;
    reply.has_boot_us = reply.has_next_job_id = true;
    reply.boot_us = server->start_us;
    reply.version = (char *)SPUR_VERSION;
    reply.conf_path = (char *)conf_file_path(server->options->conf_path);
    reply.has_uid = true;
    reply.uid = geteuid();
    reply.next_job_id = state_head(ctl_state(server->ctl)).next_job_id;
    rpc_reply(call, &reply.base);
}

static void on_shutdown(struct rpc_call *call, const ProtobufCMessage *request)
{
    DoneReply reply = DONE_REPLY__INIT;

    const ShutdownRequest *asked = (const void *)request;
    struct server *server = rpc_call_ctx(call);
    if (asked->nodes_too)
        ctl_stop_agents(server->ctl, "the cluster is shut down");
    rpc_reply(call, &reply.base);
    server_stop(server, "asked by an administrator");
}
