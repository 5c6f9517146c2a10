/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.c - who may copy files to and from a job's nodes
 *
 * (1) A plan is made by the managing node for the job's owner or root, and only for nodes of the job.
 * (2) A node does what comes with a proof of the manager by this node's key, as long as it holds
 *     the grant; it does it as the job's user, whoever asked.
 * (3) What is proved begins with a word of its own: a proof of a layout is none of an order.
 */
#include <string.h>

#include "base/hostlist.h"
#include "base/limits.h"
#include "spurd/access/access.h"
#include "spurd/access/copy.h"
#include "spurd/access/private.h"
#include "sys/rng.h"
#include "wire/pb_unpack.h"

static const char word[] = "spur copy\n"; /* (3) */

static ProtobufCBinaryData with_word(const ProtobufCBinaryData *order, struct arena *arena)
{
    uint8_t *bytes = ARENA_ARRAY(arena, uint8_t, sizeof(word) + order->len);

    memcpy(bytes, word, sizeof(word));
    if (order->len)
        memcpy(bytes + sizeof(word), order->data, order->len);
    return (ProtobufCBinaryData){ .len = sizeof(word) + order->len, .data = bytes };
}

void copy_file_find(struct agent *agent, const struct attempt *held, struct copy_file *file)
{
    int fd;
    char *path = private_path(agent, held, file->shown, &fd);

    copy_file_place(file, path, fd);
}

void copy_blame(struct err *err, const char *node)
{
    struct err was = *err;

    if (str_starts(was.text, "REQUEST_FILE_BCAST("))
        return;
    err_set(err, was.code, "REQUEST_FILE_BCAST(%s): %s", node, was.text);
}

static bool is_sound(const CopyOrder *order)
{
    return order && order->id && order->path && order->path[0] == '/' &&
           strlen(order->path) < LIMIT_PATH_BYTES && !str_ends(order->path, "/") &&
           !str_ends(order->path, "/..") && !str_ends(order->path, "/.") &&
           order->timeout_s <= COPY_TIMEOUT_MAX_S && order->fanout <= COPY_FANOUT_MAX;
}

/* (2) */
CopyOrder *copy_check(struct agent *agent, const ProtobufCBinaryData *bytes,
                      const ProtobufCBinaryData *proof, struct attempt **held, struct err *err)
{
    CopyOrder *order = copy_order__unpack(NULL, bytes->len, bytes->data);
    struct arena arena;

    arena_init(&arena);
    const ProtobufCBinaryData proved = with_word(bytes, &arena);
    *held = NULL;
    if (!is_sound(order))
        err_code(err, ERR_BAD_MESSAGE);
    else
        *held = attempt_find(&agent->table, order->id->job_id, order->id->attempt);
    if (!err->code && (!*held || !(*held)->grant || !(*held)->grant->owner || (*held)->revoked ||
                       !(*held)->ready))
        err_code(err, ERR_CREDENTIAL_REVOKED);
    else if (!err->code && !step_is_proved((*held)->grant, &proved, proof))
        err_code(err, ERR_CREDENTIAL);
    arena_done(&arena);
    if (!err->code)
        return order;
    if (order)
        copy_order__free_unpacked(order, NULL);
    return NULL;
}

/* ---- the plan ---- */

static int check_plan(struct agent *agent, struct rpc_call *call, const CopyPlanRequest *request,
                      struct attempt **held, struct hostlist *wanted, struct err *err)
{
    *held = attempt_other(&agent->table, request->job_id, 0);
    const Grant *grant = *held ? (*held)->grant : NULL;

    if (!grant || !grant->owner || !grant->allocation)
        return err_code(err, ERR_INVALID_JOB_ID);
    if (step_check_owner(call, *held, err) < 0) /* (1) */
        return -(int)err->code;
    if ((*held)->revoked || !(*held)->ready || ((*held)->ended && (*held)->launched))
        return err_code(err, ERR_ALREADY_DONE);
    if (!str_eq(grant->manager, agent->name))
        return err_set(err, ERR_INVALID, "node %s does not manage job %u, %s does", agent->name,
                       request->job_id, grant->manager);
    if (!request->order)
        return err_code(err, ERR_BAD_MESSAGE);
    return request->nodes ? hostlist_parse(wanted, request->nodes, err) : 0;
}

static ProtobufCBinaryData pack_order(const CopyOrder *asked, const struct attempt *held,
                                      struct arena *arena, struct err *err)
{
    CopyOrder order = *asked;
    StepId id = STEP_ID__INIT;

    id.has_job_id = id.has_attempt = true;
    id.job_id = held->job;
    id.attempt = held->attempt;
    order.id = &id;
    order.has_nonce = true;
    order.nonce = rng_u64();
    if (!is_sound(&order)) {
        err_set(err, ERR_INVALID, "'%s' cannot be the name of a file",
                order.path ? order.path : "");
        return (ProtobufCBinaryData){ 0 };
    }
    size_t len = copy_order__get_packed_size(&order);
    uint8_t *bytes = ARENA_ARRAY(arena, uint8_t, len + 1);
    copy_order__pack(&order, bytes);
    return (ProtobufCBinaryData){ .len = len, .data = bytes };
}

static int add_hops(const Grant *grant, const struct hostlist *wanted, struct arena *arena,
                    CopyPlanReply *reply, struct err *err)
{
    const Allocation *nodes = grant->allocation;
    const ProtobufCBinaryData proved = with_word(&reply->order, arena);

    reply->hops = ARENA_ARRAY(arena, CopyHop *, nodes->n_nodes + 1);
    for (size_t i = 0; i < nodes->n_nodes; i++) {
        if (hostlist_count(wanted) && hostlist_find(wanted, nodes->nodes[i]->node) < 0)
            continue;
        if (i >= grant->n_step_keys || i >= grant->n_addresses)
            return err_set(err, ERR_CREDENTIAL, "no key for node %s", nodes->nodes[i]->node);
        CopyHop *hop = ARENA_NEW(arena, CopyHop);
        copy_hop__init(hop);
        hop->node = nodes->nodes[i]->node;
        hop->address = grant->addresses[i];
        hop->has_proof = true;
        hop->proof.len = STEP_PROOF_BYTES;
        hop->proof.data = ARENA_ARRAY(arena, uint8_t, STEP_PROOF_BYTES);
        step_prove(&grant->step_keys[i], proved.data, proved.len, hop->proof.data);
        reply->hops[reply->n_hops++] = hop;
    }
    if (reply->n_hops < hostlist_count(wanted) || !reply->n_hops)
        return err_set(err, ERR_INVALID_NODE_NAME, "not all of these nodes belong to the job");
    return 0;
}

static void on_plan(struct rpc_call *call, const ProtobufCMessage *message)
{
    const CopyPlanRequest *request = (const void *)message;
    struct agent *agent = rpc_call_ctx(call);
    CLEANUP(hostlist_done) struct hostlist wanted = { 0 };
    CopyPlanReply reply = COPY_PLAN_REPLY__INIT;
    struct attempt *held = NULL;
    struct err err = { 0 };
    struct arena arena;

    arena_init(&arena);
    if (check_plan(agent, call, request, &held, &wanted, &err) == 0) {
        reply.has_order = true;
        reply.order = pack_order(request->order, held, &arena, &err);
        if (!err.code)
            add_hops(held->grant, &wanted, &arena, &reply, &err);
    }
    if (err.code) {
        step_refused(call, "copy", request->job_id, &err);
        rpc_fail(call, &err);
    } else {
        rpc_reply(call, &reply.base);
    }
    arena_done(&arena);
}

enum { PLAN_BYTES = 1024 * 1024 };

const struct rpc_method copy_methods[] = {
    { "/spur.NodeAccess/CopyPlan", RPC_USER, false, RPC_UNARY, &copy_plan_request__descriptor,
      &copy_plan_reply__descriptor, on_plan, PLAN_BYTES },
    { "/spur.NodeAccess/CopyWrite", RPC_ANON | RPC_USER, false, RPC_BIDI, &copy_in__descriptor,
      &copy_done__descriptor, copy_on_write, 0 },
    { "/spur.NodeAccess/CopyRead", RPC_ANON | RPC_USER, false, RPC_SERVER_STREAM,
      &copy_read_request__descriptor, &copy_part__descriptor, copy_on_read, 16384 },
};
const size_t copy_method_count = ARRAY_LEN(copy_methods);
