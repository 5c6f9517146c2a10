/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.h - spurdbd as a process: a loop, sockets, and workers that use the database
 */
#ifndef SPURDBD_SERVE_H
#define SPURDBD_SERVE_H

#include <stdatomic.h>
#include <uv.h>

#include "base/map.h"
#include "base/vec.h"
#include "proto/acct.pb-c.h"
#include "proto/dbd.pb-c.h"
#include "proto/usage.pb-c.h"
#include "rpc/rpc.h"
#include "schema/conf.h"
#include "spurdbd/history.h"
#include "spurdbd/purge.h"
#include "spurdbd/store.h"

struct dbd_options {
    const char *conf_path; /* NULL: the usual place, or none */
    const char *url;       /* NULL: $SPUR_DATABASE_URL, the configuration, or a file in state_dir */
    const char *state_dir; /* NULL: /var/lib/spurdb */
    const char *socket;    /* NULL: beside the port */
    const char *const *listen; /* NULL-terminated; NULL: port 6819 */
    bool migrate;
};

struct feed;
struct jwt_keys;
struct tls_ctx;

struct dbd {
    uv_loop_t *uv;
    struct rpc_loop *rpc_loop;
    struct rpc_server *rpc;
    const struct dbd_options *options;
    struct conf *conf;
    char *state_dir, *url, *socket;
    struct tls_ctx *tls;
    struct jwt_keys *jwt;
    struct store *writer;             /* of the one worker that writes */
    VEC(struct store *) readers;      /* that no query uses now */
    VEC(struct feed *) feeds;         /* leaders that are connected */
    VEC(struct history_call *) calls; /* that wait for a leader's answer */
    struct map users;                 /* uid → struct known_user */
    struct map revoked;      /* uid → int64_t *: tokens issued up to this time are refused */
    uint32_t controller_uid; /* of spurctld on this host */
    uint64_t next_ask;
    uv_signal_t signals[2];
    uv_timer_t rollup;  /* of dbd_rollup_start() */
    uv_timer_t purging; /* of dbd_purge_start() */
    struct purge purge;
    int64_t start_us, serves_us;
    uint64_t entries, batches;
    VEC(struct tables_call *) changes; /* of accounts, in the order in which they came */
    bool stopping;
    bool away;            /* the last batch could not be written */
    atomic_bool settled;  /* the tables are of our version */
    atomic_bool settling; /* a worker is seeing to that */
    uv_work_t migration;
    struct err failure; /* of the migration */
    bool failed;
    bool writing; /* the one worker that writes is at it */
};

int dbd_run(const struct dbd_options *options, struct err *err);
void dbd_stop(struct dbd *dbd, const char *why);

/* database.c, for workers. ERR_DB_CONNECTION: the database is away, or its tables are being changed. */
int dbd_open(struct dbd *dbd, struct store **out, struct err *err);
/* Brings the tables up to date where that is allowed: one worker at a time, to others the database is away. */
int dbd_settle(struct dbd *dbd, struct store *store, struct err *err);

/* methods.c */
int dbd_methods(struct dbd *dbd, struct err *err);

/* who.c: identities to people */
unsigned dbd_roles(void *ctx, const struct rpc_identity *identity, struct rpc_auth *auth);
void dbd_viewer(struct dbd *dbd, struct rpc_call *call, struct history_viewer *out);
void dbd_users_free(struct dbd *dbd);
void dbd_revoke(struct dbd *dbd, const FeedHello *hello);

/* feeds.c: the streams of leaders */
void dbd_on_feed(struct rpc_call *call, const ProtobufCMessage *request);
/* The leader of a cluster (NULL: any) that is connected, or NULL. */
struct feed *dbd_feed(const struct dbd *dbd, const char *cluster);
const char *feed_cluster(const struct feed *feed);
bool dbd_feed_comes(const struct dbd *dbd); /* a leader says hello, or we have just started */
const char *dbd_only_cluster(const struct dbd *dbd); /* NULL: leaders of none, or of several */
uint64_t feed_index(const struct feed *feed);        /* what the database has of it */
void feed_ask(struct feed *feed, const FeedAsk *ask);
void dbd_add_feeds(const struct dbd *dbd, AcctCluster *clusters, size_t count);
void dbd_feeds_end(struct dbd *dbd);

const FeedHello *feed_hello(const struct feed *feed);
void feed_change(struct feed *feed, const FeedChange *change);
void feed_sync_later(struct feed *feed); /* calls dbd_tables_sync() in a second */

/* tables_calls.c: accounts, users, associations, QOS */
void dbd_on_tables(struct rpc_call *call, const ProtobufCMessage *request);
void dbd_on_change(struct rpc_call *call, const ProtobufCMessage *request);
void dbd_on_adopt(struct rpc_call *call, const ProtobufCMessage *request);
void dbd_on_records(struct rpc_call *call, const ProtobufCMessage *request);
void dbd_on_runaway(struct rpc_call *call, const ProtobufCMessage *request);
void dbd_on_repair(struct rpc_call *call, const ProtobufCMessage *request);
/* Removes what is too old, now and every hour, where a setting says so. */
void dbd_purge_start(struct dbd *dbd);
/* A leader was welcomed: its cluster is registered, and told what it lacks. */
void dbd_tables_sync(struct dbd *dbd, const struct feed *feed);

/* usage_calls.c: use of the past */
void dbd_on_usage(struct rpc_call *call, const ProtobufCMessage *request);
void dbd_on_sizes(struct rpc_call *call, const ProtobufCMessage *request);
void dbd_on_reservations(struct rpc_call *call, const ProtobufCMessage *request);
void dbd_on_recompute(struct rpc_call *call, const ProtobufCMessage *request);
void dbd_rollup_start(struct dbd *dbd); /* sums up what is due, now and from time to time */

/* calls.c: what people ask */
void dbd_on_list(struct rpc_call *call, const ProtobufCMessage *request);
void dbd_on_status(struct rpc_call *call, const ProtobufCMessage *request);
void dbd_answered(struct dbd *dbd, struct feed *feed, const FeedAnswer *answer);
void dbd_progress(struct dbd *dbd, struct feed *feed);  /* feed_index() has grown */
void dbd_feed_came(struct dbd *dbd, struct feed *feed); /* it was welcomed */
void dbd_feed_gone(struct dbd *dbd, struct feed *feed);

#endif
