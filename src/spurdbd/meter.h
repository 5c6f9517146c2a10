/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meter.h - how much of each TRES was in use, in consecutive spans of time
 *
 *     struct meter *meter = meter_new(edges_s, 25);          // 24 spans
 *     unsigned who = meter_who(meter, &(struct meter_who){ .account = "physics", .user = "alice" });
 *     meter_add(meter, METER_USED, who, meter_tres(meter, "cpu", 3), 8, from_s, to_s);
 *     meter_settle(meter);
 *     meter_each(meter, each, ctx);
 *     meter_free(meter);
 *
 * Pure: no database and no clock. Amounts are TRES-seconds, whole seconds, so that the sums of two spans equal
 * the sum of the span that both make.
 */
#ifndef SPURDBD_METER_H
#define SPURDBD_METER_H

#include "base/util.h"

/* Whose use: an association with the QOS and workload key of its jobs. */
struct meter_who {
    const char *account, *user, *partition, *qos, *wckey;
    uint32_t uid;
};

enum meter_kind {
    METER_USED,    /* by somebody; the others are of the whole cluster */
    METER_TOTAL,   /* what the cluster has */
    METER_ALLOC,   /* meter_settle(): all of METER_USED */
    METER_DOWN,    /* nodes that are out of use */
    METER_PDOWN,   /* reserved for maintenance */
    METER_RESV,    /* reserved, and not used by a job */
    METER_PLANNED, /* jobs wait for it; meter_settle(): as far as it is idle */
    METER_OVER,    /* meter_settle(): what they wait for beyond that */
    METER_KINDS
};

struct meter;
/* Span i is [edges_s[i], edges_s[i + 1]); `count` edges, ascending, at least two. */
struct meter *meter_new(const int64_t *edges_s, size_t count);
struct meter *meter_like(const struct meter *meter); /* empty, with the same spans */
size_t meter_spans(const struct meter *meter);
void meter_free(struct meter *meter); /* NULL is allowed */

/* The number of somebody, or of a TRES; known from then on. */
unsigned meter_who(struct meter *meter, const struct meter_who *who);
unsigned meter_tres(struct meter *meter, const char *name, size_t len);
const struct meter_who *meter_who_at(const struct meter *meter, unsigned who);
const char *meter_tres_at(const struct meter *meter, unsigned tres);
size_t meter_who_count(const struct meter *meter);
size_t meter_tres_count(const struct meter *meter);

/* `amount` of a TRES from one moment to another; what lies outside the spans does not count. */
void meter_add(struct meter *meter, enum meter_kind kind, unsigned who, unsigned tres,
               int64_t amount, int64_t from_s, int64_t to_s);
/* All of "cpu=4,mem=2000M,gres/gpu=1", sizes in MB. */
void meter_add_tres(struct meter *meter, enum meter_kind kind, unsigned who, const char *tres,
                    size_t len, int64_t from_s, int64_t to_s);
/* TRES-seconds that are known already, into one span. */
void meter_put(struct meter *meter, enum meter_kind kind, size_t span, unsigned who, unsigned tres,
               int64_t value);

/*
 * Works out METER_ALLOC, and what of the rest fits into METER_TOTAL: use comes first, then down, planned down,
 * reserved, planned. Idle is what none of them has.
 */
void meter_settle(struct meter *meter);

typedef void meter_each_fn(void *ctx, enum meter_kind kind, size_t span, unsigned who,
                           unsigned tres, int64_t value);
/* In the order in which they came to be; values that are 0 too. */
void meter_each(const struct meter *meter, meter_each_fn *each, void *ctx);
int64_t meter_value(const struct meter *meter, enum meter_kind kind, size_t span, unsigned who,
                    unsigned tres);

#endif
