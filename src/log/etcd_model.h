/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etcd_model.h - a model of etcd and of the network before it, for simulations
 *
 * Keys with revisions, transactions, leases, watches and compaction as etcd has them, in memory and
 * in simulated time. Every request and every answer travels over its client's link, which delays
 * them (so they overtake each other), loses them or cuts them off. A request that was lost on its
 * way back has happened; that is the point.
 *
 *     model = etcd_model_new(seed);
 *     client = etcd_model_client(model);
 *     options.io = &etcd_model_io; options.io_ctx = client;
 *     while (etcd_model_step(model)) …          // one event; time jumps to it
 */
#ifndef LOG_ETCD_MODEL_H
#define LOG_ETCD_MODEL_H

#include "log/etcd_io.h"

struct etcd_model;
struct etcd_client;

extern const struct etcd_io etcd_model_io; /* its ctx is a client */

struct etcd_link {
    unsigned min_ms, max_ms;           /* each way */
    unsigned lose_request, lose_reply; /* of 1000 */
    bool cut;                          /* nothing passes; watches end after a while */
};

struct etcd_model *etcd_model_new(uint64_t seed);
void etcd_model_free(struct etcd_model *model); /* clients too */

struct etcd_client *etcd_model_client(struct etcd_model *model);
struct etcd_link *etcd_model_link(struct etcd_client *client); /* change it at any time */
/* The process died: no callback any more; what is under way to etcd may still arrive. */
void etcd_model_forget(struct etcd_client *client);

/* False: nothing is due. */
bool etcd_model_step(struct etcd_model *model);
/* For a simulation with a clock of its own: when the next step is due (INT64_MAX: never), and that
   it is so late now, with nothing due before. */
int64_t etcd_model_next(const struct etcd_model *model);
void etcd_model_pass(struct etcd_model *model, int64_t now_ms);
int64_t etcd_model_now(const struct etcd_model *model);
/* Something of the simulation's own, on the same clock. */
void etcd_model_at(struct etcd_model *model, unsigned in_ms, void (*fn)(void *arg), void *arg);
/* No majority: requests wait for it (and time out). */
void etcd_model_set_quorum(struct etcd_model *model, bool has);
void etcd_model_set_full(struct etcd_model *model, bool full); /* puts are refused */
/* For checks: the value of a key, or NULL. */
const char *etcd_model_peek(struct etcd_model *model, const char *key, size_t *len);
size_t etcd_model_keys(const struct etcd_model *model, const char *prefix);

#endif
