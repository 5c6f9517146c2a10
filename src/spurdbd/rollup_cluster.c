/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rollup_cluster.c - what a cluster had, what was out of use and what was reserved
 *
 * (1) A node that is down while it is reserved for maintenance is planned down: that is counted for the
 *     reservation, and cut out of the node's own time.
 * (2) Of a reservation counts what no job inside it used.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/hostlist.h"
#include "spurdbd/rollup_cluster.h"

#define SECOND_US INT64_C(1000000)

struct past *past_new(void)
{
    struct past *past = NEW(struct past);

    arena_init(&past->arena);
    return past;
}

void past_free(struct past *past)
{
    if (!past)
        return;
    for (size_t i = 0; i < past->reservations.len; i++)
        hostlist_done(&past->reservations.items[i].hosts);
    vec_done(&past->reservations);
    vec_done(&past->events);
    arena_done(&past->arena);
    free(past);
}

static char *text_at(struct past *past, const struct store_row *row, unsigned column)
{
    struct span text = store_row_bytes(row, column);

    return arena_strndup(&past->arena, text.ptr ? text.ptr : "", text.len);
}

static int64_t end_at(const struct store_row *row, unsigned column)
{
    int64_t us = store_row_int(row, column);

    return us ? us / SECOND_US : INT64_MAX;
}

static int take_event(void *ctx, const struct store_row *row, struct err *err)
{
    struct past *past = ctx;

    (void)err;
    vec_push(&past->events, (struct past_event){ .node = text_at(past, row, 0),
                                                 .from_s = store_row_int(row, 1) / SECOND_US,
                                                 .to_s = end_at(row, 2),
                                                 .tres = text_at(past, row, 3) });
    return 0;
}

static int take_reservation(void *ctx, const struct store_row *row, struct err *err)
{
    struct past *past = ctx;
    struct past_reservation resv = {
        .id = (uint32_t)store_row_int(row, 0),
        .name = text_at(past, row, 1),
        .from_s = store_row_int(row, 2) / SECOND_US,
        .to_s = end_at(row, 3),
        .tres = text_at(past, row, 4),
        .nodes = text_at(past, row, 5),
        .users = text_at(past, row, 6),
        .accounts = text_at(past, row, 7),
        .flags = text_at(past, row, 8),
    };

    (void)err;
    resv.maint = strcasestr(resv.flags, "maint") != NULL;
    if (resv.nodes[0] && hostlist_parse(&resv.hosts, resv.nodes, NULL) < 0)
        hostlist_done(&resv.hosts);
    vec_push(&past->reservations, resv);
    return 0;
}

int past_read(struct past *past, struct store *store, int64_t cluster, int64_t from_s, int64_t to_s,
              struct err *err)
{
    struct store_values window = STORE_VALUES(STORE_INT(cluster), STORE_INT(from_s * SECOND_US),
                                              STORE_INT(to_s * SECOND_US));

    if (store_each(store,
                   "SELECT node_name, t_start, t_end, tres FROM event WHERE cluster = ?1"
                   " AND (t_end = 0 OR t_end > ?2) AND t_start < ?3"
                   " ORDER BY node_name, t_start",
                   window, take_event, past, err) < 0)
        return -(int)err->code;
    return store_each(store,
                      "SELECT id, name, t_start, t_end, tres, nodes, users, accounts, flags"
                      " FROM resv WHERE cluster = ?1 AND t_end > ?2 AND t_start < ?3"
                      " ORDER BY name, t_start, id",
                      window, take_reservation, past, err);
}

/* (1) Adds [from, to) without what lies in a maintenance of the node, from reservation `at` on. */
static void add_down(struct meter *meter, const struct past *past, const struct past_event *event,
                     int64_t from, int64_t to, size_t at)
{
    for (; at < past->reservations.len && from < to; at++) {
        const struct past_reservation *resv = &past->reservations.items[at];
        int64_t begin = MAX(resv->from_s, from), end = MIN(resv->to_s, to);
        if (!resv->maint || begin >= end || hostlist_find(&resv->hosts, event->node) < 0)
            continue;
        add_down(meter, past, event, from, begin, at + 1);
        from = end;
    }
    meter_add_tres(meter, METER_DOWN, 0, event->tres, strlen(event->tres), from, to);
}

void past_add(const struct past *past, struct meter *meter, int64_t from_s, int64_t to_s)
{
    for (size_t i = 0; i < past->events.len; i++) {
        const struct past_event *event = &past->events.items[i];
        int64_t from = MAX(event->from_s, from_s), to = MIN(event->to_s, to_s);
        if (event->node[0])
            add_down(meter, past, event, from, to, 0);
        else
            meter_add_tres(meter, METER_TOTAL, 0, event->tres, strlen(event->tres), from, to);
    }
}

/* ---- reservations: (2) ---- */

static unsigned number_of(struct meter *resv, size_t i)
{
    char name[24];

    snprintf(name, sizeof(name), "%zu", i);
    return meter_who(resv, &(struct meter_who){ .account = name });
}

void past_begin_reservations(const struct past *past, struct meter *resv, int64_t from_s,
                             int64_t to_s)
{
    for (size_t i = 0; i < past->reservations.len; i++) {
        const struct past_reservation *at = &past->reservations.items[i];
        meter_add_tres(resv, METER_TOTAL, number_of(resv, i), at->tres, strlen(at->tres),
                       MAX(at->from_s, from_s), MIN(at->to_s, to_s));
    }
}

void past_use_reservation(const struct past *past, struct meter *resv, const struct rollup_run *run,
                          int64_t from_s, int64_t to_s)
{
    if (!run->reservation.len)
        return;
    for (size_t i = 0; i < past->reservations.len; i++) {
        const struct past_reservation *at = &past->reservations.items[i];
        if (!span_eq(run->reservation, at->name))
            continue;
        for (size_t k = 0; k < run->part_count; k++)
            meter_add_tres(resv, METER_USED, number_of(resv, i), run->parts[k].tres.ptr,
                           run->parts[k].tres.len,
                           MAX(MAX(run->parts[k].from_s, at->from_s), from_s),
                           MIN(MIN(run->parts[k].to_s, at->to_s), to_s));
    }
}

void past_end_reservations(const struct past *past, struct meter *resv, size_t spans,
                           struct meter *out)
{
    for (size_t i = 0; i < past->reservations.len; i++) {
        unsigned who = number_of(resv, i);
        for (unsigned tres = 0; tres < meter_tres_count(resv); tres++) {
            const char *name = meter_tres_at(resv, tres);
            for (size_t span = 0; span < spans; span++) {
                int64_t unused = meter_value(resv, METER_TOTAL, span, who, tres) -
                                 meter_value(resv, METER_USED, span, who, tres);
                if (unused > 0)
                    meter_put(out, past->reservations.items[i].maint ? METER_PDOWN : METER_RESV,
                              span, 0, meter_tres(out, name, strlen(name)), unused);
            }
        }
    }
}
