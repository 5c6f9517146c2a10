/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etcd.h - the log of several controllers: etcd's Raft keeps it, a lease says who leads
 *
 * (1) An append is a transaction: the leader key is the one I created, the entry before is there,
 *     this one is not. A deposed leader's transaction cannot succeed, however late it arrives.
 * (2) An append without an answer is decided by a linearizable read before anything is said: my
 *     bytes are there (committed), nothing is there and I lead (sent again, the same bytes),
 *     nothing and I do not lead (refused), other bytes (refused). Unless the place was trimmed
 *     meanwhile: then it is refused with ERR_CONNECTION_LOST, "nobody can tell".
 * (3) A controller leads after it has applied every entry that was there when it won.
 * (4) Entries are trimmed behind a snapshot that a majority of controllers holds on disk, with the
 *     payloads it refers to.
 *
 * In config->dir: snapshot-INDEX, payload.db, lock. Everything else is in etcd.
 */
#ifndef LOG_ETCD_H
#define LOG_ETCD_H

#include "log/etcd_io.h"
#include "log/log.h"

struct memory_disk;

enum { ETCD_SEAL_KEY_BYTES = 32 };

struct etcd_options {
    const struct etcd_io *io;
    void *io_ctx;
    const char *prefix;   /* "/spur/CLUSTER" */
    unsigned controllers; /* how many there are; what a majority is counted of */
    /* etcd is new and empty; the snapshot in config->dir is where this cluster's log begins. */
    bool bootstrap;
    /* The owner brings a snapshot (log_snapshot_fetched()) before any entry is read. */
    bool fetch_first;
    const uint8_t *seal_key;   /* ETCD_SEAL_KEY_BYTES that only controllers have; NULL: no seals */
    const uint8_t *cluster_id; /* 16 bytes, with it */
    unsigned lease_s;          /* 0: 5 */
    uint64_t trim_bytes;       /* 0: 256 MB */
    struct memory_disk *disk;  /* simulations: instead of config->dir */
};

struct log *log_etcd_new(const struct log_config *config, const struct etcd_options *options,
                         struct err *err);
void log_etcd_set_controllers(struct log *log, unsigned controllers);
/* A controller that was removed no longer counts as holding anything. */
void log_etcd_forget_controller(struct log *log, const char *name);

#endif
