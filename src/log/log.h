/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - the durable log: what was agreed, in order, and nothing else
 *
 * A command is appended, waits for the batch that is being written, is written with all others that
 * wait (group commit), and is given back by apply() once it cannot be lost any more. The engines
 * differ in what that takes: SQLite syncs a disk, etcd a majority of disks, memory pretends.
 *
 *     append ──> batch fills ──> one batch in flight ──> apply(batch), the same on every replica
 *                                        └─ or refused(count, why): nothing of it is in the log
 *
 * (1) apply() is called for every committed batch, once, in order of index, without gaps: those of
 *     earlier runs during log_start(), then live ones. Indexes count commands, from 1.
 * (2) What log_append() took comes back in the order it was taken, each exactly once, as part of a
 *     batch with own == true or in the count of refused(). The owner keeps a queue beside it.
 * (3) What apply() has seen survives any crash. The reverse is not so: after a crash an append that
 *     never came back may be in the log. Commands carry request ids for that.
 * (4) All callbacks but wake() run on the owner's thread, inside log_start() or log_poll().
 *
 * No event loop in here: log_uv.h binds a log to libuv, sim/ to simulated time.
 */
#ifndef LOG_LOG_H
#define LOG_LOG_H

#include "base/err.h"
#include "base/str.h"

enum {
    LOG_DIGEST_BYTES = 32,
    LOG_PAYLOAD_BYTES = 16 * 1024 * 1024, /* one payload at most */
    LOG_QUEUE_BYTES = 64 * 1024 * 1024,   /* appended and not yet in flight, at most */
};

/* Script and environment: big, never looked into, named by SHA-256, kept on disk. */
struct log_payload {
    const uint8_t *digest; /* LOG_DIGEST_BYTES */
    struct span bytes;
};

struct log_batch {
    uint64_t first; /* index of its first command */
    uint32_t count;
    uint64_t epoch; /* of the leader that wrote it, as log_set_epoch() said */
    uint32_t crc;   /* of this and every batch before it, chained */
    bool own;       /* appended through this object */
    struct span bytes;
};

struct log_entry {
    uint64_t index;
    struct span command;
    uint32_t payload_count;
};

/* for (log_walk_init(&walk, batch); log_walk_next(&walk, &entry);) … */
struct log_walk {
    const struct log_batch *batch;
    size_t at;         /* where the next record begins */
    size_t payload_at; /* where the next payload of this entry begins */
    uint32_t done, payloads_left;
};
void log_walk_init(struct log_walk *walk, const struct log_batch *batch);
bool log_walk_next(struct log_walk *walk, struct log_entry *entry);
/* The payloads that came with the entry, one per call. */
bool log_walk_payload(struct log_walk *walk, struct log_payload *payload);

enum log_role { LOG_FOLLOWS, LOG_LEADS };

struct snapshot_reader;

/* What apply() returns when it wants the same batch again: it remembers how far it got. */
enum { LOG_APPLY_MORE = 1 };

/* What the owner answers to. A negative return of restore or apply stops the log (failed). */
struct log_owner {
    /* Replace the whole state by this snapshot. Bytes are verified before this is called. */
    int (*restore)(void *ctx, struct snapshot_reader *snapshot, struct err *err);
    /*
     * LOG_APPLY_MORE: enough for now. The rest comes in a later log_poll(), or at once where the engine
     * has no later; until then the state stands between two points, and no snapshot is wanted.
     */
    int (*apply)(void *ctx, const struct log_batch *batch, struct err *err);
    /*
     * The oldest `count` appends that were not answered yet are not in the log and never will be.
     * Except when why->code is ERR_CONNECTION_LOST: then nobody can tell (several controllers: we
     * were cut off until the place was trimmed). The caller's request id makes asking again safe.
     */
    void (*refused)(void *ctx, uint32_t count, const struct err *why);
    /* LOG_LEADS: append CmdLead. LOG_FOLLOWS: `leader` is a name, or "" when nobody leads. */
    void (*role)(void *ctx, enum log_role role, const char *leader);
    /* The log can no longer keep its word: stop the process at once, recover at the next start. */
    void (*failed)(void *ctx, const struct err *why);
    /* Whether any record refers to the payload; asked before one is thrown away. */
    bool (*payload_live)(void *ctx, const uint8_t digest[LOG_DIGEST_BYTES]);
    /* From any thread: see that log_poll() is called soon. */
    void (*wake)(void *ctx);
    /*
     * Entries up to `index` are gone, and our state is older. Bring a snapshot of at least that index
     * from a peer, write it with snapshot.h, call log_snapshot_fetched(). Several controllers only;
     * may be NULL otherwise.
     */
    void (*need_snapshot)(void *ctx, uint64_t index);
};

struct log_config {
    const char *dir;  /* exists; everything the log keeps is in it */
    const char *name; /* of this controller */
    const struct log_owner *owner;
    void *owner_ctx;
    /*
     * 0: refuse to start when acknowledged entries are missing or damaged; the error names them.
     * N: go on although entries from N on may be lost. The damaged files are kept beside.
     */
    uint64_t accept_loss;
    uint64_t snapshot_bytes; /* log_wants_snapshot() after that much; 0: 256 MB */
};

struct log;

/* Reads what is there: restore, apply …, then role. When it fails the log may only be freed. */
int log_start(struct log *log, struct err *err);
/*
 * Alone: waits for what is in flight; the rest is refused with ERR_SHUTTING_DOWN. With others: does
 * not wait; when something is in flight, it and all after it stay unanswered. Frees nothing.
 */
void log_stop(struct log *log);
void log_free(struct log *log); /* stops it first */

/*
 * Adds a command to the batch that fills. Payload bytes become durable in the same step. Negative,
 * and nothing is remembered: ERR_NOT_LEADER, ERR_TOO_LARGE, ERR_TOO_MANY (LOG_QUEUE_BYTES wait),
 * or the reason the log failed. Copies everything.
 */
int log_append(struct log *log, struct span command, const struct log_payload *payloads,
               uint32_t payload_count, struct err *err);
/* Nothing more to add in this turn of the loop: let the batch go if none is in flight. */
void log_flush(struct log *log);
/* Delivers what has happened. Never blocks. */
void log_poll(struct log *log);

void log_set_epoch(struct log *log, uint64_t epoch); /* stamped into batches from here on */

/*
 * Calls fn once it is certain that we led at a moment after this call: a read answered then is not
 * stale. rc is 0 or -ERR_NOT_LEADER. A lone controller knows at once: fn runs before it returns.
 */
typedef void (*log_confirm_fn)(void *arg, int rc);
void log_confirm(struct log *log, log_confirm_fn fn, void *arg);
/* Hands leadership over, if there is anybody; role() tells when it is done. */
void log_resign(struct log *log);

/* Several controllers: who leads, as far as we know. */
struct log_leader {
    const char *name; /* "" when nobody does; valid until the next log_poll() or callback */
    int64_t term;     /* differs for every leadership */
    bool self;
};
struct log_leader log_leader(const struct log *log);
/*
 * Ends that leadership, if it is still the present one: for an owner that has reason to think the
 * leader dead and has asked every peer it can reach. The same term is not tried again at once; how
 * often leaders may be deposed is the owner's to bound.
 */
void log_depose(struct log *log, int64_t term);
/* While held back we do not try to lead: payloads are missing, or we are about to stop. */
void log_hold_back(struct log *log, bool hold);
/* While in doubt we do not try to lead either, and nothing is trimmed: our state may be wrong. */
void log_doubt(struct log *log, bool doubt);
/*
 * Other controllers had the same state at this index: a snapshot up to it may be announced. Everything is
 * confirmed until this is called for the first time.
 */
void log_confirmed(struct log *log, uint64_t index);
/* From the next entry on each must carry the seal of a controller (etcd_seal.c). Nothing where only we can write. */
void log_require_seals(struct log *log);

/* Where the state stands after the last apply(): what a snapshot of it is called. */
struct log_point {
    uint64_t index;
    uint32_t crc;
};
struct log_point log_point(const struct log *log);
bool log_wants_snapshot(const struct log *log);
/*
 * A child wrote a snapshot of `point` with snapshot.h and ended well. It is verified by reading it
 * back; then older snapshots but one are removed, and entries that no kept snapshot needs trimmed.
 */
int log_snapshot_taken(struct log *log, struct log_point point, struct err *err);
/* Stopped: what a start from a snapshot of log_point() needs besides it is on this disk. */
bool log_is_kept(const struct log *log);
/* An answer to need_snapshot: the file is there. Calls restore(). */
int log_snapshot_fetched(struct log *log, uint64_t index, struct err *err);
const char *log_dir(const struct log *log);

/* Appends the payload to `out`; its digest is checked. ERR_NOT_FOUND, ERR_CORRUPT. */
int log_payload_get(struct log *log, const uint8_t digest[LOG_DIGEST_BYTES], struct str *out,
                    struct err *err);
/* Brought from a peer; checked. Durable before a snapshot that we take is announced. */
int log_payload_put(struct log *log, const uint8_t digest[LOG_DIGEST_BYTES], struct span bytes,
                    struct err *err);
bool log_payload_has(struct log *log, const uint8_t digest[LOG_DIGEST_BYTES]);
/* Nothing refers to it any more; its space is taken back in time. */
void log_payload_drop(struct log *log, const uint8_t digest[LOG_DIGEST_BYTES]);

struct log_status {
    const char *engine;
    enum log_role role;
    uint64_t first, last;       /* entries that the log holds */
    uint64_t snapshot;          /* index of the newest one; 0: none */
    uint64_t bytes_since;       /* log bytes since that snapshot */
    uint64_t commits, commands; /* in this run */
    uint64_t lost;              /* acknowledged entries that accept_loss gave up */
    uint32_t queued;            /* commands that wait */
    bool disk_full;             /* the last batch was refused for it */
};
void log_status(struct log *log, struct log_status *out);

#endif
