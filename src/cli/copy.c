// SPDX-License-Identifier: Apache-2.0
/*
 * copy.c - asks a job's managing node for a plan, and sends a file by it
 *
 * The file goes to the first node of the plan, which passes it on: what is read here is bounded by a
 * block and what the connection holds, whatever the size of the file and the number of nodes.
 */
#include "cli/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/lz.h"
#include "cli/steps.h"
#include "client/client.h"
#include "sys/clock.h"
#include "sys/files.h"

enum { GRACE_S = 5, USUAL_TIMEOUT_S = 100, SECOND_NS = 1000000000, POLL_MS = 200 };

int copy_read_compress(const char *text, bool *out, struct err *err)
{
    *out = text && strcmp(text, "none") != 0;
    if (text && *text && strcmp(text, "lz4") != 0 && *out)
        return err_set(err, ERR_INVALID, "Invalid compression type '%s': lz4 or none", text);
    return 0;
}

int copy_read_yes(const char *text, bool *out, struct err *err)
{
    *out = text && !str_ieq(text, "no");
    if (text && *text && !str_ieq(text, "yes") && *out)
        return err_set(err, ERR_INVALID, "Invalid --send-libs '%s': yes or no", text);
    return 0;
}

int copy_find(struct copy_job *copy, struct err *err)
{
    JobAccessRequest request = JOB_ACCESS_REQUEST__INIT;
    JobAccessReply *reply;

    copy->address = steps_own_socket(copy->job);
    copy->token = "";
    if (copy->address)
        return 0;
    request.id = arena_printf(&copy->cli->arena, "%u", copy->job);
    if (cli_call(copy->cli, "JobAccess", &request.base, &job_access_reply__descriptor,
                 (ProtobufCMessage **)&reply, err) < 0)
        return -1;
    if (str_is_empty(reply->address))
        return err_code(err, ERR_ALREADY_DONE);
    copy->address = reply->address;
    copy->token = reply->token;
    return 0;
}

int copy_plan(struct copy_job *copy, const CopyOrder *order, CopyPlanReply **plan, struct err *err)
{
    CopyPlanRequest request = COPY_PLAN_REQUEST__INIT;
    struct client *node = client_new(&(struct client_options){ .addresses = copy->address,
                                                               .token = copy->token,
                                                               .default_port = 6818 },
                                     err);

    if (!node)
        return -1;
    request.has_job_id = true;
    request.job_id = copy->job;
    request.nodes = (char *)copy->nodes;
    request.order = (CopyOrder *)order;
    int ret =
        client_call(node, "/spur.NodeAccess/CopyPlan", &request.base, &copy_plan_reply__descriptor,
                    &copy->cli->arena, (ProtobufCMessage **)plan, err);
    client_free(node);
    if (ret == 0 && (*plan)->n_hops == 0)
        return err_code(err, ERR_BAD_MESSAGE);
    return ret;
}

/* ---- a file under way ---- */

struct sender {
    struct copy_job *copy;
    struct client *client;
    struct client_stream *stream;
    const char *path;
    int fd;
    char *bytes;
    struct str packed;
    uint64_t total;
    uint32_t nodes; /* that have it */
    int64_t moved_us;
    bool sent;
};

static int send_block(struct sender *sender, struct err *err)
{
    struct copy_job *copy = sender->copy;
    CopyIn in = COPY_IN__INIT;
    CopyBlock block = COPY_BLOCK__INIT;
    CopyEnd end = COPY_END__INIT;
    ssize_t len;

    do
        len = read(sender->fd, sender->bytes, copy->block);
    while (len < 0 && errno == EINTR);
    if (len < 0)
        return err_errno(err, errno, "%s", sender->path);
    if (len == 0) {
        in.what_case = COPY_IN__WHAT_END;
        in.end = &end;
        end.has_bytes = true;
        end.bytes = sender->total;
        client_stream_send(sender->stream, &in.base);
        client_stream_finish(sender->stream);
        sender->sent = true;
        return 0;
    }
    sender->total += (uint64_t)len;
    block.has_data = true;
    block.data = (ProtobufCBinaryData){ .data = (uint8_t *)sender->bytes, .len = (size_t)len };
    str_clear(&sender->packed);
    if (copy->compress && lz_compress(sender->bytes, (size_t)len, &sender->packed)) {
        block.has_raw_bytes = true;
        block.raw_bytes = (uint32_t)len;
        block.data = (ProtobufCBinaryData){ .data = (uint8_t *)sender->packed.data,
                                            .len = sender->packed.len };
    }
    in.what_case = COPY_IN__WHAT_BLOCK;
    in.block = &block;
    client_stream_send(sender->stream, &in.base);
    return 0;
}

/* 1: over; 0: it goes on. */
static int take_answers(struct sender *sender, struct err *err)
{
    struct arena arena;
    ProtobufCMessage *message;
    int next;

    arena_init(&arena);
    while ((next = client_stream_try(sender->stream, &arena, &message, err)) == CLIENT_MESSAGE)
        sender->nodes = ((const CopyDone *)(const void *)message)->nodes;
    arena_done(&arena);
    if (next == CLIENT_ENDED && (!sender->sent || !sender->nodes))
        return err_code(err, ERR_CONNECTION_LOST);
    return next == CLIENT_ENDED ? 1 : next;
}

static int send_all(struct sender *sender, struct err *err)
{
    uint32_t timeout_s = sender->copy->timeout_s ? sender->copy->timeout_s : USUAL_TIMEOUT_S;
    int over = 0;

    sender->moved_us = clock_boot_us();
    while (over == 0) {
        if (sender->copy->stop && *sender->copy->stop)
            return err_code(err, ERR_CANCELLED);
        if (!sender->sent && client_stream_writable(sender->stream)) {
            if (send_block(sender, err) < 0)
                return -1;
            sender->moved_us = clock_boot_us();
        }
        struct err lost = { 0 };
        client_pump(sender->client, &lost); /* the stream says so too */
        over = take_answers(sender, err);
        if (over != 0 || (!sender->sent && client_stream_writable(sender->stream)))
            continue;
        /* The nodes find out first which of them is late. */
        if (clock_boot_us() - sender->moved_us > (int64_t)(timeout_s + GRACE_S) * 1000000)
            return err_code(err, ERR_DEADLINE);
        struct pollfd fd = { .fd = client_fd(sender->client),
                             .events = client_events(sender->client) };
        poll(&fd, 1, POLL_MS);
    }
    return over < 0 ? over : 0;
}

static int send_plan(struct copy_job *copy, const char *path, int fd, CopyPlanReply *plan,
                     struct err *err)
{
    struct sender sender = { .copy = copy, .path = path, .fd = fd };
    CopyBegin begin = COPY_BEGIN__INIT;
    CopyIn in = COPY_IN__INIT;
    int ret = -1;

    begin.has_order = true;
    begin.order = plan->order;
    begin.hops = plan->hops;
    begin.n_hops = plan->n_hops;
    in.what_case = COPY_IN__WHAT_BEGIN;
    in.begin = &begin;
    bool manager = str_starts(copy->address, "unix:") && !copy->nodes; /* no way round */
    sender.client = client_new(
        &(struct client_options){ .addresses = manager ? copy->address : plan->hops[0]->address,
                                  .token = "",
                                  .default_port = 6818 },
        err);
    if (sender.client)
        sender.stream = client_stream_open(sender.client,
                                           &(struct client_stream_options){
                                               .path = "/spur.NodeAccess/CopyWrite",
                                               .message = &in.base,
                                               .reply_type = &copy_done__descriptor,
                                               .open = true,
                                           },
                                           err);
    if (sender.stream) {
        sender.bytes = mem_new(copy->block);
        ret = send_all(&sender, err);
        free(sender.bytes);
        str_done(&sender.packed);
    }
    client_stream_free(sender.stream);
    client_free(sender.client);
    return ret;
}

static int64_t in_ns(struct timespec when)
{
    return (int64_t)when.tv_sec * SECOND_NS + when.tv_nsec;
}

int copy_send(struct copy_job *copy, const struct copy_send *what, struct err *err)
{
    CLEANUP(file_close) int fd = open(what->from, O_RDONLY | O_NOCTTY | O_CLOEXEC);
    CopyOrder order = COPY_ORDER__INIT;
    CopyPlanReply *plan;
    struct stat info;

    if (fd < 0 || fstat(fd, &info) < 0)
        return err_errno(err, errno, "Can't open `%s`", what->from);
    if (!S_ISREG(info.st_mode))
        return err_set(err, ERR_INVALID, "Can't broadcast `%s`: it is not a regular file",
                       what->from);
    order.has_kind = order.has_force = order.has_mode = order.has_make_dir = true;
    order.kind = COPY_WRITE;
    order.path = (char *)what->to;
    order.force = what->force;
    order.make_dir = what->make_dir;
    order.mode = info.st_mode & 07777;
    order.has_atime_ns = order.has_mtime_ns = what->preserve;
    order.atime_ns = in_ns(info.st_atim);
    order.mtime_ns = in_ns(info.st_mtim);
    order.has_timeout_s = copy->timeout_s != 0;
    order.timeout_s = copy->timeout_s;
    order.has_fanout = copy->fanout != 0;
    order.fanout = copy->fanout;
    if (copy_plan(copy, &order, &plan, err) < 0)
        return -1;
    return send_plan(copy, what->from, fd, plan, err);
}
