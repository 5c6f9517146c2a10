/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rollup_cluster.h - what a cluster had in a window, which nodes were out of use, what was reserved
 *
 *     struct past *past = past_new();
 *     past_read(past, store, cluster, from_s, to_s, &err);
 *     past_add(past, meter, from_s, to_s);
 *     past_free(past);
 *
 * For reservations a meter of their own counts, each reservation as somebody: what it had (METER_TOTAL) and what jobs
 * inside it used (METER_USED).
 */
#ifndef SPURDBD_ROLLUP_CLUSTER_H
#define SPURDBD_ROLLUP_CLUSTER_H

#include "base/arena.h"
#include "base/hostlist.h"
#include "base/vec.h"
#include "spurdbd/rollup.h"

struct past_event {
    const char *node, *tres; /* node "": the whole cluster */
    int64_t from_s, to_s;    /* to_s INT64_MAX: it lasts */
};
struct past_reservation {
    uint32_t id;
    const char *name, *tres, *nodes, *users, *accounts, *flags;
    int64_t from_s, to_s;
    struct hostlist hosts;
    bool maint;
};
struct past {
    struct arena arena;
    VEC(struct past_event) events;
    VEC(struct past_reservation) reservations;
};

struct past *past_new(void);
void past_free(struct past *past); /* NULL is allowed */
int past_read(struct past *past, struct store *store, int64_t cluster, int64_t from_s, int64_t to_s,
              struct err *err);
/* METER_TOTAL and METER_DOWN of the window. */
void past_add(const struct past *past, struct meter *meter, int64_t from_s, int64_t to_s);

/* Reservation i of `past` is somebody with the account "i" in `resv`. */
void past_begin_reservations(const struct past *past, struct meter *resv, int64_t from_s,
                             int64_t to_s);
void past_use_reservation(const struct past *past, struct meter *resv, const struct rollup_run *run,
                          int64_t from_s, int64_t to_s);
/* METER_PDOWN and METER_RESV of `out`, which has the same `spans`. */
void past_end_reservations(const struct past *past, struct meter *resv, size_t spans,
                           struct meter *out);

#endif
