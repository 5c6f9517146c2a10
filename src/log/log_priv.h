/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_priv.h - what an engine provides, and what all engines share
 *
 * An engine's object begins with struct log. It calls log_deliver() for each committed batch in
 * order, and log_fail() when it can go on no longer; after that every call is answered here.
 */
#ifndef LOG_LOG_PRIV_H
#define LOG_LOG_PRIV_H

#include "log/log.h"

struct log_ops {
    const char *name;
    int (*start)(struct log *log, struct err *err);
    void (*stop)(struct log *log);
    void (*free)(struct log *log);
    int (*append)(struct log *log, struct span command, const struct log_payload *payloads,
                  uint32_t payload_count, struct err *err);
    void (*flush)(struct log *log);
    void (*poll)(struct log *log);
    void (*confirm)(struct log *log, log_confirm_fn fn, void *arg);
    void (*resign)(struct log *log);
    int (*snapshot_taken)(struct log *log, struct log_point point, struct err *err);
    int (*payload_get)(struct log *log, const uint8_t *digest, struct str *out, struct err *err);
    bool (*payload_has)(struct log *log, const uint8_t *digest);
    void (*payload_drop)(struct log *log, const uint8_t *digest);
    void (*status)(struct log *log, struct log_status *out); /* fills what is not shared */

    /* engines of several controllers; NULL otherwise */
    struct log_leader (*leader)(const struct log *log);
    void (*depose)(struct log *log, int64_t term);
    void (*hold_back)(struct log *log, bool hold);
    void (*doubt)(struct log *log, bool doubt);
    void (*confirmed)(struct log *log, uint64_t index);
    void (*require_seals)(struct log *log);
    int (*snapshot_fetched)(struct log *log, uint64_t index, struct err *err);
    int (*payload_put)(struct log *log, const uint8_t *digest, struct span bytes, struct err *err);
};

struct log {
    const struct log_ops *ops;
    const struct log_owner *owner;
    void *ctx;
    char *dir, *name;
    uint64_t accept_loss, snapshot_bytes;

    struct log_point point;    /* after the last batch delivered */
    struct log_point snapshot; /* newest that is known to be whole */
    uint64_t bytes_since, epoch, commits, commands, lost;
    enum log_role role;
    bool started, stopped, failed;
    bool unkept;    /* stopped before all payloads were on this disk */
    bool between;   /* apply() has had a part of a batch */
    struct err why; /* it failed */
};

void log_init(struct log *log, const struct log_ops *ops, const struct log_config *config);
void log_done(struct log *log);
int log_deliver(struct log *log, const struct log_batch *batch, struct err *err);
/* As much as the owner takes now: LOG_APPLY_MORE when it is to be called again with the same. */
int log_deliver_some(struct log *log, const struct log_batch *batch, struct err *err);
void log_refuse(struct log *log, uint32_t count, const struct err *why);
void log_fail(struct log *log, const struct err *why);
void log_set_role(struct log *log, enum log_role role, const char *leader);

#endif
