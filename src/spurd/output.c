/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output.c - NodeAccess.ReadOutput: a job's output for its owner, without a shared file system
 *
 * The caller shows a token that the controller signed; its uid must be the job's. A worker thread
 * opens and reads the file with the identity of the job's user, so nothing is read that the user
 * could not read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc/jwt.h"
#include "spurd/access/access.h"
#include "spurd/access/as_user.h"
#include "spurd/access/copy.h"
#include "spurd/access/private.h"
#include "spurd/access/vouch.h"
#include "spurd/access/x11.h"
#include "spurd/agent_priv.h"
#include "spurd/step/step.h"
#include "sys/files.h"
#include "sys/identity.h"
#include "sys/log.h"

enum {
    CHUNK_BYTES = 64 * 1024,
    TAIL_BYTES = 16 * 1024 * 1024, /* looked through for the last lines, at most */
    FOLLOW_MS = 100,
    READERS_MAX = 256,
};

struct reader {
    struct agent *agent;
    struct rpc_call *call;
    uv_work_t work;
    uv_timer_t timer;
    uint32_t job;
    char *path, *place; /* as it is called, and where it is for us */
    int root_fd;
    struct as_user user;
    bool follow, gone, last; /* last: the job had ended before this read */
    uint64_t tail_lines;

    int fd;
    uint64_t offset;
    char *bytes;
    ssize_t got;
    struct err err;
};

static unsigned readers;

/* ---- in a worker ---- */

/* Where the last lines begin. */
static void seek_tail(struct reader *reader, uint64_t size)
{
    uint64_t at = size, floor = size > TAIL_BYTES ? size - TAIL_BYTES : 0, lines = 0;

    while (at > floor) {
        size_t part = (size_t)MIN(at - floor, (uint64_t)CHUNK_BYTES);
        if (pread(reader->fd, reader->bytes, part, (off_t)(at - part)) != (ssize_t)part)
            break;
        for (size_t i = part; i-- > 0;) {
            uint64_t here = at - part + i;
            if (reader->bytes[i] == '\n' && here + 1 < size && ++lines >= reader->tail_lines) {
                reader->offset = here + 1;
                return;
            }
        }
        at -= part;
    }
    reader->offset = at;
}

static void open_file(struct reader *reader)
{
    struct stat info;

    reader->fd = identity_open(reader->root_fd, reader->place,
                               O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
    if (reader->fd < 0) {
        err_errno(&reader->err, errno, "%s", reader->path);
        return;
    }
    if (fstat(reader->fd, &info) < 0 || !S_ISREG(info.st_mode)) {
        err_set(&reader->err, ERR_INVALID, "%s is not a regular file", reader->path);
        file_close(&reader->fd);
        return;
    }
    if (reader->tail_lines && info.st_size > 0)
        seek_tail(reader, (uint64_t)info.st_size);
}

static void read_as_user(struct reader *reader)
{
    if (reader->fd < 0)
        open_file(reader);
    if (reader->fd < 0)
        return;
    reader->got = pread(reader->fd, reader->bytes, CHUNK_BYTES, (off_t)reader->offset);
    if (reader->got < 0)
        err_errno(&reader->err, errno, "%s", reader->path);
}

/* Reading is done as the user too: files of /proc look at who reads, not only at who opened. */
static void read_part(uv_work_t *work)
{
    struct reader *reader = work->data;

    reader->got = 0;
    err_clear(&reader->err);
    if (as_user_begin(&reader->user, &reader->err) < 0)
        return;
    read_as_user(reader);
    as_user_end();
}

/* ---- on the loop ---- */

static void reader_closed(uv_handle_t *handle)
{
    struct reader *reader = handle->data;

    file_close(&reader->fd);
    file_close(&reader->root_fd);
    free(reader->place);
    free(reader->path);
    as_user_done(&reader->user);
    free(reader->bytes);
    free(reader);
    readers--;
}

static void finish(struct reader *reader, const struct err *err)
{
    if (err)
        rpc_fail(reader->call, err);
    else
        rpc_end(reader->call);
    uv_timer_stop(&reader->timer);
    uv_close((uv_handle_t *)&reader->timer, reader_closed);
}

static bool job_is_over(const struct agent *agent, uint32_t job)
{
    const struct attempt *held = attempt_other(&agent->table, job, 0);

    return !held || held->ended;
}

static void part_read(uv_work_t *work, int status);

static void read_more(struct reader *reader)
{
    if (reader->gone || reader->agent->stopping) {
        finish(reader, NULL);
        return;
    }
    /* Asked before reading: what the job wrote last is then in what is read. */
    reader->last = !reader->follow || job_is_over(reader->agent, reader->job);
    uv_queue_work(reader->agent->uv, &reader->work, read_part, part_read);
}

static void on_timer(uv_timer_t *timer)
{
    read_more(timer->data);
}

static void send_part(struct reader *reader, bool ended)
{
    OutputChunk chunk = OUTPUT_CHUNK__INIT;

    chunk.has_data = chunk.has_offset = true;
    chunk.data = (ProtobufCBinaryData){ .data = (uint8_t *)reader->bytes,
                                        .len = (size_t)MAX(reader->got, 0) };
    chunk.offset = reader->offset;
    chunk.has_ended = chunk.ended = ended;
    if (!rpc_send(reader->call, &chunk.base))
        reader->gone = true;
    reader->offset += chunk.data.len;
}

static void part_read(uv_work_t *work, int status)
{
    struct reader *reader = work->data;
    bool not_yet = reader->err.code == ERR_NOT_FOUND && !reader->last;

    (void)status;
    if (reader->gone || reader->agent->stopping) {
        finish(reader, NULL);
    } else if (reader->err.code && !not_yet) {
        finish(reader, &reader->err);
    } else if (reader->got > 0) {
        send_part(reader, false);
        if (rpc_writable(reader->call))
            read_more(reader);
    } else if (reader->last && !not_yet) {
        reader->got = 0;
        send_part(reader, true);
        finish(reader, NULL);
    } else {
        uv_timer_start(&reader->timer, on_timer, FOLLOW_MS, 0);
    }
}

static void on_writable(struct rpc_call *call)
{
    struct reader *reader = rpc_call_data(call);

    if (reader && !uv_is_active((uv_handle_t *)&reader->timer))
        uv_timer_start(&reader->timer, on_timer, 0, 0);
}

/* A read that is under way, or the timer, ends it. */
static void on_cancel(struct rpc_call *call)
{
    struct reader *reader = rpc_call_data(call);

    if (reader)
        reader->gone = true;
}

static const struct rpc_watch watch = { .on_writable = on_writable, .on_cancel = on_cancel };

/* Whose job it is and where its output went; false when this node knows nothing of it. */
static bool find_job(const struct agent *agent, uint32_t job, bool error, const JobOwner **owner,
                     const char **path)
{
    const struct attempt *held = attempt_other(&agent->table, job, 0);
    const struct tomb *tomb = attempt_tomb(&agent->table, job);

    *owner = NULL;
    if (held && held->grant && held->std_out) {
        *owner = held->grant->owner;
        *path = error && held->std_err ? held->std_err : held->std_out;
    } else if (tomb && tomb->owner && tomb->std_out) {
        *owner = tomb->owner;
        *path = error && tomb->std_err ? tomb->std_err : tomb->std_out;
    }
    return *owner != NULL;
}

static int check(const struct agent *agent, const struct rpc_identity *who,
                 const ReadOutputRequest *request, const JobOwner **owner, const char **path,
                 struct err *err)
{
    if (!find_job(agent, request->job_id, request->error, owner, path))
        return err_set(err, ERR_INVALID_JOB_ID, "no job %u on this node", request->job_id);
    if (who->job && who->job != request->job_id)
        return err_set(err, ERR_PERMISSION, "this token is for job %u, not for job %u", who->job,
                       request->job_id);
    if (!who->has_uid || (who->uid != (*owner)->uid && who->uid != 0))
        return err_code(err, ERR_PERMISSION);
    if (readers >= READERS_MAX)
        return err_set(err, ERR_TOO_MANY, "readers on this node");
    return 0;
}

static void on_read_output(struct rpc_call *call, const ProtobufCMessage *message)
{
    const ReadOutputRequest *request = (const ReadOutputRequest *)(const void *)message;
    struct agent *agent = rpc_call_ctx(call);
    const JobOwner *owner = NULL;
    const char *path = NULL;
    struct err err = { 0 };

    if (check(agent, rpc_call_identity(call), request, &owner, &path, &err) < 0) {
        step_refused(call, "output", request->job_id, &err);
        rpc_fail(call, &err);
        return;
    }
    struct reader *reader = NEW(struct reader);
    readers++;
    reader->agent = agent;
    reader->call = call;
    reader->work.data = reader;
    reader->job = request->job_id;
    reader->path = mem_strdup(path);
    reader->place = private_path(agent, attempt_other(&agent->table, request->job_id, 0), path,
                                 &reader->root_fd);
    as_user_init(&reader->user, owner);
    reader->follow = request->follow;
    reader->offset = request->offset;
    reader->tail_lines = request->has_offset ? 0 : request->tail_lines;
    reader->fd = -1;
    reader->bytes = mem_new(CHUNK_BYTES);
    uv_timer_init(agent->uv, &reader->timer);
    reader->timer.data = reader;
    rpc_call_set_data(call, reader);
    rpc_watch(call, &watch);
    read_more(reader);
}

static const struct rpc_method methods[] = {
    { "/spur.NodeAccess/ReadOutput", RPC_USER, false, RPC_SERVER_STREAM,
      &read_output_request__descriptor, &output_chunk__descriptor, on_read_output, 4096 },
};

/*
 * Whoever is known is a user here; what they may read, the job's owner decides. A token for one job
 * is good on the node that it names.
 */
static unsigned roles(void *ctx, const struct rpc_identity *identity, struct rpc_auth *auth)
{
    const struct agent *agent = ctx;
    struct err err = { 0 };

    if (identity->how == RPC_HOW_JWT && !identity->job) {
        err_set(&err, ERR_UNAUTHENTICATED,
                "a node takes tokens for one job alone; the controllers give them");
        rpc_auth_refuse(auth, &err);
        log_warn("access.refused", "what=token uid=%u why=\"%s\"", identity->uid, err.text);
        return 0;
    }
    if (identity->job && strcmp(identity->job_node, agent->name) != 0) {
        log_warn("access.refused", "what=token job=%u uid=%u why=\"it is for node %s\"",
                 identity->job, identity->uid, identity->job_node);
        return 0;
    }
    return identity->has_uid ? RPC_USER : 0;
}

int output_listen(struct agent *agent, const char *address, struct err *err)
{
    agent->job_keys = jwt_keys_new("");
    const struct rpc_server_options options = {
        .ctx = agent,
        .roles = roles,
        .jwt = agent->job_keys,
        .tls = agent->tls_server,
        .allow_plaintext = agent->allow_plaintext,
    };
    agent->server = rpc_server_new(agent->rpc, &options, err);
    if (!agent->server || rpc_server_add(agent->server, methods, ARRAY_LEN(methods), err) < 0 ||
        rpc_server_add(agent->server, step_methods, step_method_count, err) < 0 ||
        rpc_server_add(agent->server, copy_methods, copy_method_count, err) < 0 ||
        rpc_server_add(agent->server, vouch_methods, vouch_method_count, err) < 0 ||
        rpc_server_add(agent->server, x11_methods, x11_method_count, err) < 0 ||
        rpc_server_listen(agent->server, address, err) < 0)
        return -(int)err->code;
    agent->port = rpc_server_port(agent->server, 0);
    agent->socket = mem_printf("unix:%s/spurd.sock", agent->run_dir);
    if (rpc_server_listen(agent->server, agent->socket, err) < 0)
        return -(int)err->code;
    return 0;
}
