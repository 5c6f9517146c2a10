/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy_in.c - NodeAccess.CopyWrite: a file for this node and those behind it
 *
 * A block is written by a worker and sent on to at most `fanout` nodes, each with its part of the
 * plan. The next one is taken when it is on disk here and no node behind us has much to be sent:
 * so a slow node holds back the sender, and nobody holds more than a block or two.
 *
 * (1) We answer when every node behind us has the file, and then give ours its name.
 * (2) One failure ends all of it: the sender hears who failed, everybody drops what is half written.
 * (3) Whatever happens, it is the worker that ends last; memory goes after it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/lz.h"
#include "spurd/access/copy.h"
#include "sys/log.h"
#include "wire/pb_unpack.h"

struct copy;

/* A node that we pass it on to. */
struct child {
    struct copy *copy;
    char *node;
    struct rpc_client *client;
    struct rpc_request *request; /* NULL: none, or it is done */
    uint32_t nodes;              /* that have the file, it says */
    bool done;
};

enum act { ACT_NONE, ACT_CREATE, ACT_WRITE, ACT_COMMIT, ACT_DROP };

struct copy {
    struct agent *agent;
    struct rpc_call *call; /* NULL: answered */
    struct copy_file file;
    CopyOrder *order;
    struct child *children;
    size_t child_count;

    uv_work_t work;
    enum act act; /* that a worker does */
    struct str block;
    size_t raw_bytes; /* of the block when it is compressed, else 0 */
    uint64_t written, total;
    bool ended;     /* the sender has said all */
    bool committed; /* our own file is there */
    bool failed;
    struct err err; /* of the worker */
    uv_timer_t *timer;
    unsigned timeout_ms;
    struct copy *next;
};

static struct copy *copies;
static unsigned copy_count;

/* ---- in a worker ---- */

static int write_block(struct copy *copy)
{
    struct str raw = { 0 };
    int ret;

    if (copy->raw_bytes) {
        if (!lz_expand(copy->block.data, copy->block.len, copy->raw_bytes, &raw)) {
            str_done(&raw);
            return err_set(&copy->err, ERR_BAD_MESSAGE, "a block cannot be expanded");
        }
        ret = copy_file_write(&copy->file, raw.data, raw.len, &copy->err);
        copy->written += raw.len;
        str_done(&raw);
        return ret;
    }
    ret = copy_file_write(&copy->file, copy->block.data, copy->block.len, &copy->err);
    copy->written += copy->block.len;
    return ret;
}

static void do_work(uv_work_t *work)
{
    struct copy *copy = work->data;

    err_clear(&copy->err);
    switch (copy->act) {
    case ACT_CREATE:
        copy_file_create(&copy->file, &copy->err);
        break;
    case ACT_WRITE:
        write_block(copy);
        break;
    case ACT_COMMIT:
        if (copy->written != copy->total)
            err_set(&copy->err, ERR_BAD_MESSAGE, "%llu bytes came instead of %llu",
                    (unsigned long long)copy->written, (unsigned long long)copy->total);
        else
            copy_file_commit(&copy->file, &copy->err);
        break;
    case ACT_DROP:
        copy_file_drop(&copy->file);
        break;
    case ACT_NONE:
        break;
    }
}

/* ---- on the loop ---- */

static void settle(struct copy *copy);
static void work_done(uv_work_t *work, int status);

static void start(struct copy *copy, enum act act)
{
    copy->act = act;
    uv_queue_work(copy->agent->uv, &copy->work, do_work, work_done);
}

static void free_handle(uv_handle_t *handle)
{
    free(handle);
}

static void drop_children(struct copy *copy)
{
    for (size_t i = 0; i < copy->child_count; i++) {
        struct rpc_client *client = TAKE(copy->children[i].client);
        copy->children[i].request = NULL;
        if (client)
            rpc_client_free(client);
    }
}

/* (3) Never inside a callback of a child's client. */
static void copy_free(struct copy *copy)
{
    struct copy **at = &copies;

    while (*at != copy)
        at = &(*at)->next;
    *at = copy->next;
    copy_count--;
    drop_children(copy);
    for (size_t i = 0; i < copy->child_count; i++)
        free(copy->children[i].node);
    free(copy->children);
    copy_file_done(&copy->file);
    str_done(&copy->block);
    if (copy->order)
        copy_order__free_unpacked(copy->order, NULL);
    uv_timer_stop(copy->timer);
    uv_close((uv_handle_t *)copy->timer, free_handle);
    free(copy);
}

/* (2) */
static void fail(struct copy *copy, const struct err *err)
{
    struct rpc_call *call = TAKE(copy->call);
    struct err said = *err;

    copy->failed = true;
    if (call) {
        log_info("copy.failed", "node=%s path=%s: %s", copy->agent->name,
                 copy->file.path ? copy->file.path : "", said.text);
        copy_blame(&said, copy->agent->name);
        rpc_call_set_data(call, NULL);
        rpc_fail(call, &said);
    }
    if (copy->act == ACT_NONE)
        start(copy, ACT_DROP);
}

static void progress(struct copy *copy)
{
    uv_timer_again(copy->timer);
}

static void on_late(uv_timer_t *timer)
{
    struct copy *copy = timer->data;
    struct err err = { 0 };

    for (size_t i = 0; i < copy->child_count && !err.code; i++) {
        struct child *child = &copy->children[i];
        if (!child->done && (copy->ended || !rpc_request_writable(child->request))) {
            err_code(&err, ERR_DEADLINE);
            copy_blame(&err, child->node);
        }
    }
    if (!err.code)
        err_code(&err, ERR_DEADLINE);
    uv_timer_stop(timer);
    fail(copy, &err);
}

static bool children_ready(const struct copy *copy)
{
    for (size_t i = 0; i < copy->child_count; i++) {
        const struct child *child = &copy->children[i];
        if (!child->done && (!child->request || !rpc_request_writable(child->request)))
            return false;
    }
    return true;
}

static bool children_done(const struct copy *copy)
{
    for (size_t i = 0; i < copy->child_count; i++) {
        if (!copy->children[i].done)
            return false;
    }
    return true;
}

static void succeed(struct copy *copy)
{
    struct rpc_call *call = TAKE(copy->call);
    CopyDone done = COPY_DONE__INIT;

    done.has_nodes = true;
    done.nodes = 1;
    for (size_t i = 0; i < copy->child_count; i++)
        done.nodes += copy->children[i].nodes;
    rpc_call_set_data(call, NULL);
    rpc_send(call, &done.base);
    rpc_end(call);
    start(copy, ACT_DROP); /* nothing is left to drop; (3) */
}

/* Goes on when nothing is under way. */
static void settle(struct copy *copy)
{
    if (copy->act != ACT_NONE || copy->failed || !copy->call)
        return;
    if (copy->committed)
        succeed(copy);
    else if (copy->ended && children_done(copy)) /* (1) */
        start(copy, ACT_COMMIT);
    else if (!copy->ended && children_ready(copy))
        rpc_resume(copy->call);
}

static void work_done(uv_work_t *work, int status)
{
    struct copy *copy = work->data;
    enum act act = copy->act;

    (void)status;
    copy->act = ACT_NONE;
    progress(copy);
    if (act == ACT_DROP)
        copy_free(copy);
    else if (copy->failed)
        start(copy, ACT_DROP);
    else if (copy->err.code)
        fail(copy, &copy->err);
    else {
        copy->committed = act == ACT_COMMIT;
        settle(copy);
    }
}

/* ---- the nodes behind us ---- */

static void child_message(struct rpc_request *request, const ProtobufCMessage *message)
{
    struct child *child = rpc_request_data(request);

    child->nodes = ((const CopyDone *)(const void *)message)->nodes;
}

static void child_writable(struct rpc_request *request)
{
    struct child *child = rpc_request_data(request);

    progress(child->copy);
    settle(child->copy);
}

static void child_done(struct rpc_request *request, const ProtobufCMessage *reply,
                       const struct err *err)
{
    struct child *child = rpc_request_data(request);
    struct copy *copy = child->copy;
    struct err said = { 0 };

    (void)reply;
    if (!child->client) /* we end it ourselves */
        return;
    child->request = NULL;
    child->done = true;
    progress(copy);
    if (!err && (!copy->ended || !child->nodes))
        err_code(&said, ERR_BAD_MESSAGE);
    else if (err)
        said = *err;
    if (said.code) {
        copy_blame(&said, child->node);
        if (!copy->failed)
            fail(copy, &said);
    } else {
        settle(copy);
    }
}

/* No connection is said at once, not after the timeout. */
static void child_state(void *ctx, enum rpc_state state, const struct err *why)
{
    struct child *child = ctx;
    struct err err = { 0 };

    if (state == RPC_READY && !child->copy->failed)
        settle(child->copy); /* what came first can go on now */
    if (state != RPC_WAITING || child->done || !child->client || child->copy->failed)
        return;
    if (why)
        err = *why;
    if (!err.code)
        err_code(&err, ERR_UNREACHABLE);
    copy_blame(&err, child->node);
    fail(child->copy, &err);
}

static int pass_on(struct child *child, const CopyBegin *whole, size_t first, size_t count,
                   struct err *err)
{
    struct agent *agent = child->copy->agent;
    const CopyHop *hop = whole->hops[first];
    CLEANUP(freep) char *peer = mem_printf("node:%s", hop->node ? hop->node : "");
    CopyBegin begin = COPY_BEGIN__INIT;
    CopyIn in = COPY_IN__INIT;

    child->node = mem_strdup(hop->node ? hop->node : "");
    begin.has_order = true;
    begin.order = whole->order;
    begin.hops = whole->hops + first;
    begin.n_hops = count;
    in.what_case = COPY_IN__WHAT_BEGIN;
    in.begin = &begin;
    const struct rpc_client_options options = {
        .addresses = hop->address ? hop->address : "",
        .default_port = 6818,
        .ctx = child,
        .tls = agent->tls_client,
        .peer = agent->tls_client ? peer : NULL,
        .allow_plaintext = agent->allow_plaintext,
        .state = child_state,
    };
    child->client = rpc_client_new(agent->rpc, &options, err);
    if (!child->client)
        return -1;
    child->request = rpc_request_start(
        child->client, &(struct rpc_request_options){ .path = "/spur.NodeAccess/CopyWrite",
                                                      .message = &in.base,
                                                      .reply = &copy_done__descriptor,
                                                      .open = true,
                                                      .wait_ready = true,
                                                      .data = child,
                                                      .on_message = child_message,
                                                      .on_writable = child_writable,
                                                      .on_done = child_done });
    return 0;
}

static int start_children(struct copy *copy, const CopyBegin *begin, struct err *err)
{
    size_t rest = begin->n_hops - 1, first = 1;
    size_t fanout = copy->order->fanout ? copy->order->fanout : COPY_FANOUT;

    copy->child_count = MIN(rest, fanout);
    copy->children = NEW_ARRAY(struct child, copy->child_count + 1);
    for (size_t i = 0; i < copy->child_count; i++) {
        size_t count = rest / copy->child_count + (i < rest % copy->child_count);
        copy->children[i].copy = copy;
        if (pass_on(&copy->children[i], begin, first, count, err) < 0) {
            copy_blame(err, copy->children[i].node);
            copy->child_count = i + 1;
            return -1;
        }
        first += count;
    }
    return 0;
}

/* ---- what comes ---- */

static void on_begin(struct copy *copy, const CopyBegin *begin)
{
    struct attempt *held = NULL;
    struct err err = { 0 };

    if (copy->order || !begin->n_hops || begin->n_hops > LIMIT_NODES || !begin->hops[0]->node ||
        !str_eq(begin->hops[0]->node, copy->agent->name))
        err_code(&err, ERR_BAD_MESSAGE);
    else
        copy->order = copy_check(copy->agent, &begin->order, &begin->hops[0]->proof, &held, &err);
    if (!err.code && copy->order->kind != COPY_WRITE)
        err_code(&err, ERR_BAD_MESSAGE);
    if (err.code) {
        fail(copy, &err);
        return;
    }
    copy_file_init(&copy->file, copy->order, held->grant->owner, copy->agent->name);
    copy_file_find(copy->agent, held, &copy->file);
    if (copy->order->timeout_s)
        copy->timeout_ms = copy->order->timeout_s * 1000;
    uv_timer_start(copy->timer, on_late, copy->timeout_ms, copy->timeout_ms);
    rpc_pause(copy->call);
    if (start_children(copy, begin, &err) < 0)
        fail(copy, &err);
    else
        start(copy, ACT_CREATE);
}

static void to_children(struct copy *copy, const CopyIn *in)
{
    for (size_t i = 0; i < copy->child_count; i++) {
        struct child *child = &copy->children[i];
        if (!child->request)
            continue;
        rpc_request_send(child->request, &in->base);
        if (in->what_case == COPY_IN__WHAT_END)
            rpc_request_finish(child->request);
    }
}

static void on_message(struct rpc_call *call, const ProtobufCMessage *message)
{
    const CopyIn *in = (const void *)message;
    struct copy *copy = rpc_call_data(call);
    struct err err = { 0 };

    if (!copy)
        return;
    progress(copy);
    if (in->what_case == COPY_IN__WHAT_BEGIN) {
        on_begin(copy, in->begin);
        return;
    }
    if (!copy->order || copy->ended || copy->act != ACT_NONE ||
        (in->what_case == COPY_IN__WHAT_BLOCK &&
         (in->block->data.len > LIMIT_COPY_BLOCK || in->block->raw_bytes > LIMIT_COPY_BLOCK)))
        err_code(&err, ERR_BAD_MESSAGE);
    if (err.code) {
        fail(copy, &err);
        return;
    }
    to_children(copy, in);
    if (in->what_case == COPY_IN__WHAT_BLOCK) {
        rpc_pause(call);
        str_clear(&copy->block);
        str_add_len(&copy->block, in->block->data.data, in->block->data.len);
        copy->raw_bytes = in->block->raw_bytes;
        start(copy, ACT_WRITE);
    } else if (in->what_case == COPY_IN__WHAT_END) {
        copy->ended = true;
        copy->total = in->end->bytes;
        settle(copy);
    }
}

static void on_half_close(struct rpc_call *call)
{
    struct copy *copy = rpc_call_data(call);
    struct err err = { 0 };

    if (!copy || copy->ended)
        return;
    err_set(&err, ERR_CANCELLED, "the file ends too early");
    fail(copy, &err);
}

static void on_cancel(struct rpc_call *call)
{
    struct copy *copy = rpc_call_data(call);
    struct err err = { 0 };

    err_code(&err, ERR_CANCELLED);
    if (copy)
        fail(copy, &err);
    else
        rpc_fail(call, &err);
}

static const struct rpc_watch watch = { .on_message = on_message,
                                        .on_half_close = on_half_close,
                                        .on_cancel = on_cancel };

void copy_on_write(struct rpc_call *call, const ProtobufCMessage *message)
{
    struct agent *agent = rpc_call_ctx(call);
    struct err err = { 0 };

    (void)message;
    if (agent->stopping || copy_count >= COPY_MAX) {
        err_set(&err, agent->stopping ? ERR_SHUTTING_DOWN : ERR_TOO_MANY, "copies on this node");
        rpc_fail(call, &err);
        return;
    }
    struct copy *copy = NEW(struct copy);
    copy->agent = agent;
    copy->call = call;
    copy->work.data = copy;
    copy->file.dir_fd = copy->file.fd = -1;
    copy->timeout_ms = COPY_TIMEOUT_S * 1000;
    copy->timer = NEW(uv_timer_t);
    uv_timer_init(agent->uv, copy->timer);
    copy->timer->data = copy;
    uv_timer_start(copy->timer, on_late, copy->timeout_ms, copy->timeout_ms);
    copy->next = copies;
    copies = copy;
    copy_count++;
    rpc_call_set_data(call, copy);
    rpc_watch(call, &watch);
}

void copies_close(struct agent *agent)
{
    struct err err = { 0 };

    err_code(&err, ERR_SHUTTING_DOWN);
    for (struct copy *copy = copies; copy; copy = copy->next) {
        if (copy->agent != agent)
            continue;
        drop_children(copy);
        if (!copy->failed && copy->call)
            fail(copy, &err);
    }
}
