/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meter.c - sums of use over spans of time
 *
 * (1) A cell is (span, kind, who, tres); its key is those numbers beside each other.
 */
#include "spurdbd/meter.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/size.h"
#include "base/str.h"
#include "base/vec.h"

enum { TRES_BITS = 14, WHO_BITS = 26, KIND_BITS = 4 };

struct meter {
    struct arena arena;
    int64_t *edges;
    size_t spans;
    struct map whos, names; /* → number and one */
    VEC(struct meter_who) who;
    VEC(char *) tres;
    struct map cells; /* → int64_t in the arena */
    struct str key;
};

struct meter *meter_new(const int64_t *edges_s, size_t count)
{
    struct meter *meter = NEW(struct meter);

    arena_init(&meter->arena);
    map_init(&meter->whos);
    map_init(&meter->names);
    map_init(&meter->cells);
    meter->edges = ARENA_ARRAY(&meter->arena, int64_t, count);
    memcpy(meter->edges, edges_s, count * sizeof(*edges_s));
    meter->spans = count - 1;
    return meter;
}

struct meter *meter_like(const struct meter *meter)
{
    return meter_new(meter->edges, meter->spans + 1);
}

size_t meter_spans(const struct meter *meter)
{
    return meter->spans;
}

void meter_free(struct meter *meter)
{
    if (!meter)
        return;
    map_done(&meter->whos);
    map_done(&meter->names);
    map_done(&meter->cells);
    vec_done(&meter->who);
    vec_done(&meter->tres);
    str_done(&meter->key);
    arena_done(&meter->arena);
    free(meter);
}

static const char *text_of(const char *text)
{
    return text ? text : "";
}

unsigned meter_who(struct meter *meter, const struct meter_who *who)
{
    str_clear(&meter->key);
    str_addf(&meter->key, "%s\1%s\1%s\1%s\1%s", text_of(who->account), text_of(who->user),
             text_of(who->partition), text_of(who->qos), text_of(who->wckey));
    uintptr_t known = (uintptr_t)map_get(&meter->whos, str_text(&meter->key));
    if (known)
        return (unsigned)known - 1;
    struct meter_who copy = { arena_strdup(&meter->arena, text_of(who->account)),
                              arena_strdup(&meter->arena, text_of(who->user)),
                              arena_strdup(&meter->arena, text_of(who->partition)),
                              arena_strdup(&meter->arena, text_of(who->qos)),
                              arena_strdup(&meter->arena, text_of(who->wckey)),
                              who->uid };
    vec_push(&meter->who, copy);
    map_put(&meter->whos, str_text(&meter->key), (void *)(uintptr_t)meter->who.len);
    return (unsigned)meter->who.len - 1;
}

unsigned meter_tres(struct meter *meter, const char *name, size_t len)
{
    uintptr_t known = (uintptr_t)map_get_len(&meter->names, name, len);

    if (known)
        return (unsigned)known - 1;
    char *copy = arena_strndup(&meter->arena, name, len);
    vec_push(&meter->tres, copy);
    map_put(&meter->names, copy, (void *)(uintptr_t)meter->tres.len);
    return (unsigned)meter->tres.len - 1;
}

const struct meter_who *meter_who_at(const struct meter *meter, unsigned who)
{
    return &meter->who.items[who];
}

const char *meter_tres_at(const struct meter *meter, unsigned tres)
{
    return meter->tres.items[tres];
}

size_t meter_who_count(const struct meter *meter)
{
    return meter->who.len;
}

size_t meter_tres_count(const struct meter *meter)
{
    return meter->tres.len;
}

/* (1) */
static uint64_t key_of(enum meter_kind kind, size_t span, unsigned who, unsigned tres)
{
    return ((((uint64_t)span << KIND_BITS | kind) << WHO_BITS | who) << TRES_BITS) | tres;
}

static int64_t *cell(struct meter *meter, enum meter_kind kind, size_t span, unsigned who,
                     unsigned tres)
{
    uint64_t key = key_of(kind, span, who, tres);
    int64_t *found = map_get_num(&meter->cells, key);

    if (!found) {
        found = ARENA_NEW(&meter->arena, int64_t);
        map_put_num(&meter->cells, key, found);
    }
    return found;
}

int64_t meter_value(const struct meter *meter, enum meter_kind kind, size_t span, unsigned who,
                    unsigned tres)
{
    const int64_t *found = map_get_num(&meter->cells, key_of(kind, span, who, tres));

    return found ? *found : 0;
}

void meter_put(struct meter *meter, enum meter_kind kind, size_t span, unsigned who, unsigned tres,
               int64_t value)
{
    *cell(meter, kind, span, who, tres) += value;
}

/* The span that holds the moment, or the first one after it. */
static size_t span_at(const struct meter *meter, int64_t at_s)
{
    size_t low = 0, high = meter->spans;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (meter->edges[middle + 1] <= at_s)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void meter_add(struct meter *meter, enum meter_kind kind, unsigned who, unsigned tres,
               int64_t amount, int64_t from_s, int64_t to_s)
{
    for (size_t i = span_at(meter, from_s); i < meter->spans && meter->edges[i] < to_s; i++) {
        int64_t from = MAX(from_s, meter->edges[i]), to = MIN(to_s, meter->edges[i + 1]);
        if (to > from && amount)
            *cell(meter, kind, i, who, tres) += amount * (to - from);
    }
}

/* Sizes are in MB where they carry a unit. */
static int64_t number_of(const char *text, size_t len)
{
    char *end = NULL;
    char copy[40];

    len = MIN(len, sizeof(copy) - 1);
    memcpy(copy, text, len);
    copy[len] = '\0';
    double value = strtod(copy, &end);
    static const struct {
        char unit;
        double mb;
    } units[] = { { 'K', 1.0 / 1024 }, { 'M', 1 }, { 'G', 1024 }, { 'T', 1048576 } };
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (*end == units[i].unit)
            return (int64_t)(value * units[i].mb + 0.5);
    }
    return strtoll(copy, NULL, 10);
}

void meter_add_tres(struct meter *meter, enum meter_kind kind, unsigned who, const char *tres,
                    size_t len, int64_t from_s, int64_t to_s)
{
    size_t at = 0;

    while (at < len && from_s < to_s) {
        const char *comma = memchr(tres + at, ',', len - at);
        size_t word = comma ? (size_t)(comma - tres) - at : len - at;
        const char *equal = memchr(tres + at, '=', word);
        if (equal) {
            size_t name = (size_t)(equal - tres) - at;
            meter_add(meter, kind, who, meter_tres(meter, tres + at, name),
                      number_of(equal + 1, word - name - 1), from_s, to_s);
        }
        at += word + 1;
    }
}

/* ---- what fits ---- */

static void settle_one(struct meter *meter, size_t span, unsigned tres)
{
    static const enum meter_kind order[] = { METER_DOWN, METER_PDOWN, METER_RESV };
    int64_t total = meter_value(meter, METER_TOTAL, span, 0, tres);
    int64_t left = MAX(total - meter_value(meter, METER_ALLOC, span, 0, tres), 0);

    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        int64_t have = meter_value(meter, order[i], span, 0, tres);
        if (have > left)
            *cell(meter, order[i], span, 0, tres) = left;
        left -= MIN(have, left);
    }
    int64_t wanted = meter_value(meter, METER_PLANNED, span, 0, tres);
    if (wanted > left) {
        *cell(meter, METER_PLANNED, span, 0, tres) = left;
        *cell(meter, METER_OVER, span, 0, tres) = wanted - left;
    }
}

/* A cell that is added may move the others, so the sums are taken first. */
static void sum_used(struct meter *meter)
{
    int64_t *sums = NEW_ARRAY(int64_t, meter->spans * meter->tres.len + 1);

    map_each (entry, &meter->cells) {
        uint64_t key = entry->num;
        size_t span = (size_t)(key >> (TRES_BITS + WHO_BITS + KIND_BITS));
        if (((key >> (TRES_BITS + WHO_BITS)) & ((1u << KIND_BITS) - 1)) == METER_USED)
            sums[span * meter->tres.len + (key & ((1u << TRES_BITS) - 1))] +=
                *(const int64_t *)entry->value;
    }
    for (size_t i = 0; i < meter->spans * meter->tres.len; i++) {
        if (sums[i])
            *cell(meter, METER_ALLOC, i / meter->tres.len, 0, (unsigned)(i % meter->tres.len)) =
                sums[i];
    }
    free(sums);
}

void meter_settle(struct meter *meter)
{
    sum_used(meter);
    for (unsigned tres = 0; tres < meter->tres.len; tres++) {
        for (size_t span = 0; span < meter->spans; span++)
            settle_one(meter, span, tres);
    }
}

void meter_each(const struct meter *meter, meter_each_fn *each, void *ctx)
{
    map_each (entry, &meter->cells) {
        uint64_t key = entry->num;
        unsigned tres = key & ((1u << TRES_BITS) - 1);
        unsigned who = (key >> TRES_BITS) & ((1u << WHO_BITS) - 1);
        unsigned kind = (key >> (TRES_BITS + WHO_BITS)) & ((1u << KIND_BITS) - 1);
        each(ctx, (enum meter_kind)kind, (size_t)(key >> (TRES_BITS + WHO_BITS + KIND_BITS)), who,
             tres, *(const int64_t *)entry->value);
    }
}
