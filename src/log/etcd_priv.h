/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etcd_priv.h - the etcd engine's object and its parts
 *
 *     etcd.c          starts and stops it, answers the interface
 *     etcd_sync.c     reads entries and watches for more
 *     etcd_inbox.c    what was read and waits to be looked at
 *     etcd_elect.c    lease, campaign, deposing, confirming
 *     etcd_append.c   writes entries and finds out what became of them
 *     etcd_seal.c     entries that only a controller can have written
 *     etcd_keep.c     payloads and snapshots on this controller's disk
 *     etcd_trim.c     telling the others, trimming what a majority holds
 */
#ifndef LOG_ETCD_PRIV_H
#define LOG_ETCD_PRIV_H

#include "base/vec.h"
#include "log/etcd.h"
#include "log/etcd_msg.h"
#include "log/log_priv.h"
#include "log/payload_disk.h"
#include "log/payload_index.h"
#include "sys/digest.h"

enum {
    ETCD_CALL_MS = 1000, /* longer than etcd needs to find itself a leader */
    ETCD_NAME_BYTES = 256,
    ETCD_PAGE = 32,                      /* entries per read */
    ETCD_INBOX_BYTES = 16 * 1024 * 1024, /* more is forgotten, and read in pages */
};

struct etcd_confirm {
    log_confirm_fn fn;
    void *arg;
};

struct etcd_member_note {
    char name[ETCD_NAME_BYTES];
    struct log_point held;
};

struct etcd_held {
    uint64_t row; /* each one more than the one before */
    struct str value;
};

struct etcd_item {
    struct etcd_item *next;
    EtcdKeyValue kv; /* of bytes in `space` */
    bool gone;       /* it was deleted */
    size_t bytes;
    uint8_t space[];
};

/* How a read ended, for when its entries are applied. */
struct etcd_page {
    bool more;             /* entries follow */
    uint64_t reaches;      /* where we stand after its entries, if we append nothing meanwhile */
    struct log_point end;  /* of the newest entry then, or where the log was trimmed */
    uint64_t newest_first; /* 0: there was none */
    int64_t revision;
    const EtcdKeyValue *leader; /* leader_kv, or NULL: nobody led */
    EtcdKeyValue leader_kv;
    uint8_t space[];
};

struct digest_note {
    uint8_t bytes[LOG_DIGEST_BYTES];
};

struct etcd_log {
    struct log log;
    const struct etcd_io *io;
    void *io_ctx;
    struct etcd_keys keys;
    struct memory_disk *memory;
    unsigned controllers, lease_s;
    bool bootstrap, fetch_first;
    int lock_fd;

    /* etcd_sync.c */
    void *sync_call, *sync_timer, *watch;
    unsigned sync_failures;
    bool caught_up;       /* the watch continues where the last read ended */
    bool snapshot_wanted; /* the owner was asked for one */
    struct str room;      /* for a batch that is expanded */
    uint64_t sync_from;   /* where we stood when the read was sent */
    uint64_t last_first;  /* first index of the newest entry; 0: etcd holds none */
    struct log_point trimmed;
    struct etcd_item *inbox, *inbox_last;
    size_t inbox_bytes;
    struct etcd_page *page; /* follows the inbox; NULL: that is of a watch */

    /* etcd_elect.c */
    struct {
        char name[ETCD_NAME_BYTES];
        int64_t term; /* 0: nobody */
    } leader;
    bool leading, held_back, resigning;
    bool doubted; /* our state may be wrong: we do not lead, and trim nothing */
    int64_t term; /* ours, while leading */
    int64_t lease, lease_until_ms, lease_sent_ms, hold_until_ms;
    void *lease_call, *lease_timer, *campaign_call, *campaign_timer, *depose_call;
    int64_t depose_term, depose_after_ms;
    VEC(struct etcd_confirm) confirm_waiting, confirm_asked;
    void *confirm_call;

    /* etcd_append.c */
    struct batch *queue, *queue_tail;
    size_t queue_bytes;
    uint32_t queued;
    bool released, disk_full;
    struct batch *flying;
    struct batch *applying; /* committed, and applied in part */
    bool applying_own;
    bool delivering; /* the owner is just doing so */
    struct str flying_value;
    int64_t flying_term;
    bool flying_repeated; /* sent more than once, or without an answer */
    unsigned append_failures;
    void *append_call, *append_timer, *gather_timer;
    uint32_t expected; /* commands that the next batch waits for, until the timer */

    /* etcd_seal.c */
    bool has_seal_key, sealing, seal_known;
    uint8_t seal_key[ETCD_SEAL_KEY_BYTES], cluster_id[16];
    uint8_t last_seal[ETCD_SEAL_BYTES]; /* of the last entry; zeros: it has none */
    struct etcd_seal flying_seal;

    /* etcd_keep.c */
    struct payload_disk *disk;
    struct payload_index index; /* where each payload is: which batch or segment */
    VEC(struct etcd_held) held; /* batches that are not on disk yet, compressed */
    size_t held_bytes;
    uint64_t row;          /* of the last one */
    uint64_t disk_row;     /* up to here they are on disk, as segments */
    uint64_t old_row;      /* `row` when the last snapshot was taken */
    uint64_t expanded_row; /* what `expanded` holds: launches ask for neighbours */
    struct str expanded, segment;
    struct payload_job *job;
    uint64_t job_row;
    bool flush, disk_blocked;
    bool listing;        /* what nobody refers to any more is looked for, */
    int64_t list_cursor; /* from here on */
    uint64_t trim_row;   /* segments up to it go */
    void *disk_timer;
    VEC(struct digest_note) drops;
    struct log_point taken;    /* a snapshot that the owner took, not yet verified */
    struct log_point previous; /* the snapshot before log.snapshot */

    /* etcd_trim.c */
    struct log_point announced;
    uint64_t confirmed; /* a snapshot up to it may be announced */
    VEC(struct etcd_member_note) members;
    void *announce_call, *trim_call, *compact_call, *forget_call;
};

static inline struct etcd_log *etcd_self(const struct log *log)
{
    return (struct etcd_log *)(uintptr_t)log; /* its first member */
}

static inline bool etcd_over(const struct etcd_log *self)
{
    return self->log.failed || self->log.stopped;
}

void *etcd_send(struct etcd_log *self, struct etcd_txn *txn, etcd_done_fn done);
void etcd_cancel(struct etcd_log *self, void **call);
void etcd_untimer(struct etcd_log *self, void **timer);

void etcd_sync(struct etcd_log *self);       /* read everything we lack, then watch */
void etcd_sync_later(struct etcd_log *self); /* after a pause that grows */
void etcd_sync_stop(struct etcd_log *self);
void etcd_sync_poll(struct etcd_log *self); /* the next entry of the inbox */

void etcd_inbox_push(struct etcd_log *self, const EtcdKeyValue *kv, bool gone); /* copies it */
struct etcd_item *etcd_inbox_pop(struct etcd_log *self); /* of one that is not empty */
void etcd_inbox_page(struct etcd_log *self, const struct etcd_page *page,
                     const EtcdKeyValue *leader);
void etcd_inbox_clear(struct etcd_log *self);

/* The leader key as it is now; NULL: there is none. */
void etcd_leader_seen(struct etcd_log *self, const EtcdKeyValue *kv);
void etcd_campaign_soon(struct etcd_log *self);
void etcd_step_down(struct etcd_log *self);
void etcd_lease_start(struct etcd_log *self);
void etcd_depose(struct etcd_log *self, int64_t term);
void etcd_confirm(struct log *log, log_confirm_fn fn, void *arg);
void etcd_resign(struct log *log);
void etcd_resign_next(struct etcd_log *self); /* nothing is in flight any more */
void etcd_elect_stop(struct etcd_log *self);

int etcd_append(struct log *log, struct span command, const struct log_payload *payloads,
                uint32_t payload_count, struct err *err);
void etcd_flush(struct log *log);
/* Somebody's entry stands where ours was to be. True: it is ours, and is delivered as such. */
bool etcd_append_met(struct etcd_log *self, const struct log_batch *batch);
void etcd_append_refuse_queue(struct etcd_log *self, const struct err *why);
void etcd_append_stop(struct etcd_log *self);

/* Of the batch that is applied in part: the owner gets more of it; the rest of it. */
void etcd_apply_on(struct etcd_log *self);
void etcd_settle(struct etcd_log *self);

/* It is in the log: its payloads stay available from now on. */
void etcd_taken(struct etcd_log *self, const struct log_batch *batch, struct span value);
/* Gives a committed batch of another one to the owner, as much as it takes now. */
bool etcd_deliver(struct etcd_log *self, const struct log_batch *batch, struct span value);

/* The seal of what is to be written next; NULL: it gets none. Valid until the next call. */
const struct etcd_seal *etcd_seal_make(struct etcd_log *self, const struct log_batch *batch);
/* What is wrong with the seal of an entry that is to be applied next; NULL: nothing. */
const char *etcd_seal_wrong(struct etcd_log *self, const struct log_batch *batch,
                            struct span value);
void etcd_seal_taken(struct etcd_log *self, struct span value);
/* The newest entry, which is the last that we have applied: the next one goes on from its seal. */
void etcd_seal_newest(struct etcd_log *self, const EtcdKeyValue *kv);
void etcd_require_seals(struct log *log);

int etcd_keep_start(struct etcd_log *self, struct err *err);
int etcd_keep_load(struct etcd_log *self, struct err *err); /* after the state is restored */
/* Its payloads stay available; `value` is the same as etcd holds it. */
void etcd_keep_batch(struct etcd_log *self, const struct log_batch *batch, struct span value);
void etcd_keep_poll(struct etcd_log *self);
bool etcd_keep_is_full(const struct etcd_log *self); /* the disk does not keep up */
void etcd_keep_rest(struct etcd_log *self); /* waits until all is on disk; log.unkept: it is not */
void etcd_keep_stop(struct etcd_log *self);
void etcd_trim(struct etcd_log *self); /* if there is anything to */
void etcd_trim_announce(struct etcd_log *self);
void etcd_trim_note_member(struct etcd_log *self, const EtcdKeyValue *kv);
void etcd_trim_stop(struct etcd_log *self);
int etcd_snapshot_taken(struct log *log, struct log_point point, struct err *err);
int etcd_payload_get(struct log *log, const uint8_t *digest, struct str *out, struct err *err);
bool etcd_payload_has(struct log *log, const uint8_t *digest);
void etcd_payload_drop(struct log *log, const uint8_t *digest);
int etcd_payload_put(struct log *log, const uint8_t *digest, struct span bytes, struct err *err);

#endif
