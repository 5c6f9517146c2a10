/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.c - what all engines share: the owner's callbacks and the answers after a failure
 */
#include "log/log.h"

#include <stdlib.h>

#include "log/log_priv.h"

enum { SNAPSHOT_BYTES = 256 * 1024 * 1024, SNAPSHOT_COMMANDS = 1000000 };

void log_init(struct log *log, const struct log_ops *ops, const struct log_config *config)
{
    *log = (struct log){
        .ops = ops,
        .owner = config->owner,
        .ctx = config->owner_ctx,
        .dir = mem_strdup(config->dir),
        .name = mem_strdup(config->name),
        .accept_loss = config->accept_loss,
        .snapshot_bytes = config->snapshot_bytes ? config->snapshot_bytes : SNAPSHOT_BYTES,
    };
}

void log_done(struct log *log)
{
    free(log->dir);
    free(log->name);
}

int log_deliver_some(struct log *log, const struct log_batch *batch, struct err *err)
{
    int rc = log->owner->apply(log->ctx, batch, err);

    log->between = rc == LOG_APPLY_MORE;
    if (rc != 0)
        return rc;
    log->point = (struct log_point){ batch->first + batch->count - 1, batch->crc };
    log->bytes_since += batch->bytes.len;
    log->commits++;
    log->commands += batch->count;
    return 0;
}

int log_deliver(struct log *log, const struct log_batch *batch, struct err *err)
{
    int rc;

    do
        rc = log_deliver_some(log, batch, err);
    while (rc == LOG_APPLY_MORE);
    return rc;
}

void log_refuse(struct log *log, uint32_t count, const struct err *why)
{
    if (count)
        log->owner->refused(log->ctx, count, why);
}

void log_fail(struct log *log, const struct err *why)
{
    if (log->failed)
        return;
    log->failed = true;
    log->why = *why;
    log->owner->failed(log->ctx, why);
}

void log_set_role(struct log *log, enum log_role role, const char *leader)
{
    log->role = role;
    log->owner->role(log->ctx, role, leader);
}

int log_start(struct log *log, struct err *err)
{
    int rc = log->ops->start(log, err);

    log->started = rc == 0;
    return rc;
}

void log_stop(struct log *log)
{
    if (log->started && !log->stopped)
        log->ops->stop(log);
    log->stopped = true;
}

void log_free(struct log *log)
{
    if (!log)
        return;
    log_stop(log);
    log->ops->free(log);
}

int log_append(struct log *log, struct span command, const struct log_payload *payloads,
               uint32_t payload_count, struct err *err)
{
    if (log->failed)
        return err_set(err, log->why.code, "%s", log->why.text);
    if (!log->started || log->stopped)
        return err_code(err, ERR_SHUTTING_DOWN);
    if (log->role != LOG_LEADS)
        return err_code(err, ERR_NOT_LEADER);
    return log->ops->append(log, command, payloads, payload_count, err);
}

void log_flush(struct log *log)
{
    if (log->started && !log->stopped && !log->failed)
        log->ops->flush(log);
}

void log_poll(struct log *log)
{
    if (log->started && !log->stopped)
        log->ops->poll(log);
}

void log_set_epoch(struct log *log, uint64_t epoch)
{
    log->epoch = epoch;
}

void log_confirm(struct log *log, log_confirm_fn fn, void *arg)
{
    if (log->failed || log->stopped || log->role != LOG_LEADS)
        fn(arg, -(int)ERR_NOT_LEADER);
    else
        log->ops->confirm(log, fn, arg);
}

void log_resign(struct log *log)
{
    if (log->started && !log->stopped && !log->failed && log->role == LOG_LEADS)
        log->ops->resign(log);
}

struct log_leader log_leader(const struct log *log)
{
    if (log->ops->leader)
        return log->ops->leader(log);
    bool self = log->role == LOG_LEADS;
    return (struct log_leader){ .name = self ? log->name : "", .term = self, .self = self };
}

void log_depose(struct log *log, int64_t term)
{
    if (log->ops->depose && log->started && !log->stopped && !log->failed)
        log->ops->depose(log, term);
}

void log_hold_back(struct log *log, bool hold)
{
    if (log->ops->hold_back)
        log->ops->hold_back(log, hold);
}

void log_doubt(struct log *log, bool doubt)
{
    if (log->ops->doubt)
        log->ops->doubt(log, doubt);
}

void log_confirmed(struct log *log, uint64_t index)
{
    if (log->ops->confirmed)
        log->ops->confirmed(log, index);
}

void log_require_seals(struct log *log)
{
    if (log->ops->require_seals)
        log->ops->require_seals(log);
}

int log_snapshot_fetched(struct log *log, uint64_t index, struct err *err)
{
    if (!log->ops->snapshot_fetched)
        return err_set(err, ERR_UNSUPPORTED, "a lone controller has no peers");
    return log->ops->snapshot_fetched(log, index, err);
}

int log_payload_put(struct log *log, const uint8_t digest[LOG_DIGEST_BYTES], struct span bytes,
                    struct err *err)
{
    if (!log->ops->payload_put)
        return err_set(err, ERR_UNSUPPORTED, "a lone controller has no peers");
    return log->ops->payload_put(log, digest, bytes, err);
}

struct log_point log_point(const struct log *log)
{
    return log->point;
}

bool log_wants_snapshot(const struct log *log)
{
    return !log->failed && !log->between && log->point.index > log->snapshot.index &&
           (log->bytes_since >= log->snapshot_bytes ||
            log->point.index - log->snapshot.index >= SNAPSHOT_COMMANDS);
}

int log_snapshot_taken(struct log *log, struct log_point point, struct err *err)
{
    return log->ops->snapshot_taken(log, point, err);
}

bool log_is_kept(const struct log *log)
{
    return log->started && log->stopped && !log->failed && !log->between && !log->unkept;
}

const char *log_dir(const struct log *log)
{
    return log->dir;
}

int log_payload_get(struct log *log, const uint8_t digest[LOG_DIGEST_BYTES], struct str *out,
                    struct err *err)
{
    return log->ops->payload_get(log, digest, out, err);
}

bool log_payload_has(struct log *log, const uint8_t digest[LOG_DIGEST_BYTES])
{
    return log->ops->payload_has(log, digest);
}

void log_payload_drop(struct log *log, const uint8_t digest[LOG_DIGEST_BYTES])
{
    log->ops->payload_drop(log, digest);
}

void log_status(struct log *log, struct log_status *out)
{
    *out = (struct log_status){
        .engine = log->ops->name,
        .role = log->role,
        .last = log->point.index,
        .snapshot = log->snapshot.index,
        .bytes_since = log->bytes_since,
        .commits = log->commits,
        .commands = log->commands,
        .lost = log->lost,
    };
    log->ops->status(log, out);
}
