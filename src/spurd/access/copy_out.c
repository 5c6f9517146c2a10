/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy_out.c - NodeAccess.CopyRead: a file of this node for the job's owner, or its removal
 *
 * A worker reads, and compresses when asked to; the next part is read when most of the last has
 * been sent.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/lz.h"
#include "spurd/access/copy.h"
#include "wire/pb_unpack.h"

enum { PART_BYTES = 256 * 1024, SECOND_NS = 1000000000 };

struct fetch {
    struct agent *agent;
    struct rpc_call *call;
    struct copy_file file;
    struct copy_tree tree;
    bool is_tree;
    struct copy_entry entry;
    CopyOrder *order;
    uv_work_t work;
    bool working, gone, opened;
    bool told; /* mode and times */
    struct stat info;
    uint8_t *bytes;
    ssize_t got;
    struct str packed; /* when it is smaller */
    struct err err;
};

static unsigned fetch_count;

static void pack(struct fetch *fetch)
{
    str_clear(&fetch->packed);
    if (fetch->got > 0 && fetch->order->compress)
        lz_compress(fetch->bytes, (size_t)fetch->got, &fetch->packed);
}

static void read_tree(struct fetch *fetch)
{
    if (as_user_begin(&fetch->file.user, &fetch->err) < 0)
        return;
    copy_tree_next(&fetch->tree, fetch->bytes, PART_BYTES, &fetch->entry, &fetch->err);
    as_user_end();
    if (fetch->err.code)
        err_wrap(&fetch->err, "%s", fetch->file.shown);
    fetch->got = fetch->entry.got;
    fetch->info = fetch->entry.info;
    fetch->told = !fetch->entry.begins;
    pack(fetch);
}

static void do_work(uv_work_t *work)
{
    struct fetch *fetch = work->data;

    if (fetch->order->kind == COPY_REMOVE) {
        copy_file_remove(&fetch->file, &fetch->err);
        return;
    }
    if (!fetch->opened) {
        int dir = copy_file_open_dir(&fetch->file, &fetch->err);
        if (fetch->err.code)
            return;
        fetch->is_tree = fetch->opened = dir >= 0;
        if (fetch->is_tree && copy_tree_open(&fetch->tree, dir, &fetch->err) < 0)
            return;
    }
    if (fetch->is_tree) {
        read_tree(fetch);
        return;
    }
    if (!fetch->opened) {
        if (copy_file_open(&fetch->file, &fetch->err) < 0)
            return;
        fetch->opened = true;
        if (fstat(fetch->file.fd, &fetch->info) < 0) {
            err_errno(&fetch->err, errno, "%s", fetch->file.path);
            return;
        }
    }
    fetch->got = copy_file_read(&fetch->file, fetch->bytes, PART_BYTES, &fetch->err);
    pack(fetch);
}

static void fetch_free(struct fetch *fetch)
{
    copy_file_done(&fetch->file);
    copy_tree_done(&fetch->tree);
    copy_order__free_unpacked(fetch->order, NULL);
    str_done(&fetch->packed);
    free(fetch->bytes);
    free(fetch);
    fetch_count--;
}

static void finish(struct fetch *fetch, struct err *err)
{
    struct rpc_call *call = fetch->call;

    rpc_call_set_data(call, NULL);
    if (err) {
        copy_blame(err, fetch->agent->name);
        rpc_fail(call, err);
    } else {
        rpc_end(call);
    }
    fetch_free(fetch);
}

static int64_t in_ns(struct timespec when)
{
    return (int64_t)when.tv_sec * SECOND_NS + when.tv_nsec;
}

static void send_part(struct fetch *fetch, bool ended)
{
    CopyPart part = COPY_PART__INIT;

    part.has_data = true;
    part.data = (ProtobufCBinaryData){ .data = fetch->bytes, .len = (size_t)fetch->got };
    if (fetch->packed.len) {
        part.data = (ProtobufCBinaryData){ .data = (uint8_t *)fetch->packed.data,
                                           .len = fetch->packed.len };
        part.has_raw_bytes = true;
        part.raw_bytes = (uint32_t)fetch->got;
    }
    part.has_ended = part.ended = ended;
    if (!fetch->told) {
        part.has_mode = part.has_atime_ns = part.has_mtime_ns = true;
        part.mode = fetch->info.st_mode & 07777;
        part.atime_ns = in_ns(fetch->info.st_atim);
        part.mtime_ns = in_ns(fetch->info.st_mtim);
        fetch->told = true;
    }
    if (fetch->is_tree && fetch->entry.begins) {
        part.name = (char *)fetch->entry.name;
        part.has_entry = true;
        part.entry = fetch->entry.entry;
    }
    if (!rpc_send(fetch->call, &part.base))
        fetch->gone = true;
}

static void work_done(uv_work_t *work, int status);

static bool is_over(const struct fetch *fetch)
{
    return fetch->is_tree ? fetch->entry.ended : fetch->got == 0;
}

static void go_on(struct fetch *fetch)
{
    fetch->working = true;
    uv_queue_work(fetch->agent->uv, &fetch->work, do_work, work_done);
}

static void work_done(uv_work_t *work, int status)
{
    struct fetch *fetch = work->data;
    bool reads = fetch->order->kind == COPY_READ;

    (void)status;
    fetch->working = false;
    if (!fetch->err.code && !fetch->gone && !fetch->agent->stopping && reads)
        send_part(fetch, is_over(fetch));
    if (fetch->agent->stopping && !fetch->err.code)
        err_code(&fetch->err, ERR_SHUTTING_DOWN);
    if (fetch->err.code)
        finish(fetch, &fetch->err);
    else if (fetch->gone || !reads || is_over(fetch))
        finish(fetch, NULL);
    else if (rpc_writable(fetch->call))
        go_on(fetch);
}

static void on_writable(struct rpc_call *call)
{
    struct fetch *fetch = rpc_call_data(call);

    if (fetch && !fetch->working)
        go_on(fetch);
}

static void on_cancel(struct rpc_call *call)
{
    struct fetch *fetch = rpc_call_data(call);

    if (!fetch)
        return;
    fetch->gone = true;
    if (!fetch->working)
        finish(fetch, NULL);
}

static const struct rpc_watch watch = { .on_writable = on_writable, .on_cancel = on_cancel };

void copy_on_read(struct rpc_call *call, const ProtobufCMessage *message)
{
    const CopyReadRequest *request = (const void *)message;
    struct agent *agent = rpc_call_ctx(call);
    struct attempt *held = NULL;
    struct err err = { 0 };
    CopyOrder *order = NULL;

    if (agent->stopping || fetch_count >= COPY_MAX)
        err_set(&err, agent->stopping ? ERR_SHUTTING_DOWN : ERR_TOO_MANY, "copies on this node");
    else
        order = copy_check(agent, &request->order, &request->proof, &held, &err);
    if (!err.code && order->kind != COPY_READ && order->kind != COPY_REMOVE)
        err_code(&err, ERR_BAD_MESSAGE);
    if (err.code) {
        if (order)
            copy_order__free_unpacked(order, NULL);
        copy_blame(&err, agent->name);
        rpc_fail(call, &err);
        return;
    }
    struct fetch *fetch = NEW(struct fetch);
    fetch->agent = agent;
    fetch->call = call;
    fetch->order = order;
    fetch->work.data = fetch;
    fetch->bytes = mem_new(PART_BYTES);
    fetch->tree.fd = -1;
    copy_file_init(&fetch->file, order, held->grant->owner, agent->name);
    copy_file_find(agent, held, &fetch->file);
    fetch_count++;
    rpc_call_set_data(call, fetch);
    rpc_watch(call, &watch);
    go_on(fetch);
}
