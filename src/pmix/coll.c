/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll.c - what the tasks of several nodes do together: fences, connections, groups
 *
 * (1) Who does the same with the same tasks again is in its next turn, on every node alike: turns are
 *     counted by key. A part may come before our own tasks have begun that turn.
 * (2) The first node alone counts parts; the others wait for the whole.
 */
#include "pmix/coll.h"

#include <stdlib.h>

#include "base/str.h"

enum { TURNS_AHEAD_MAX = 64 };

struct part {
    bool here;
    struct str data;
};

struct coll {
    char *key;
    uint32_t turn;
    bool begun; /* by our own tasks: `among` and `token` are set */
    struct bitset among;
    void *token;
    struct part *parts; /* by node; only on the first */
};

void colls_init(struct colls *colls, uint32_t here, uint32_t nodes)
{
    *colls = (struct colls){ .here = here, .nodes = nodes };
    map_init(&colls->turns);
    bitset_init(&colls->gone, nodes);
}

static void coll_free(const struct colls *colls, struct coll *coll)
{
    for (uint32_t i = 0; coll->parts && i < colls->nodes; i++)
        str_done(&coll->parts[i].data);
    free(coll->parts);
    if (coll->begun)
        bitset_done(&coll->among);
    free(coll->key);
    free(coll);
}

void colls_done(struct colls *colls)
{
    for (size_t i = 0; i < colls->list.len; i++)
        coll_free(colls, colls->list.items[i]);
    vec_done(&colls->list);
    map_done(&colls->turns);
    bitset_done(&colls->gone);
}

static uint32_t turns_begun(const struct colls *colls, const char *key)
{
    return (uint32_t)(uintptr_t)map_get(&colls->turns, key);
}

static struct coll *find(const struct colls *colls, const char *key, uint32_t turn)
{
    for (size_t i = 0; i < colls->list.len; i++) {
        struct coll *coll = colls->list.items[i];
        if (coll->turn == turn && str_eq(coll->key, key))
            return coll;
    }
    return NULL;
}

static struct coll *find_or_new(struct colls *colls, const char *key, uint32_t turn)
{
    struct coll *coll = find(colls, key, turn);

    if (coll)
        return coll;
    coll = NEW(struct coll);
    coll->key = mem_strdup(key);
    coll->turn = turn;
    vec_push(&colls->list, coll);
    return coll;
}

static void end(struct colls *colls, struct coll *coll, bool ok, const ProtobufCBinaryData *data,
                uint64_t number)
{
    for (size_t i = 0; i < colls->list.len; i++) {
        if (colls->list.items[i] != coll)
            continue;
        vec_remove(&colls->list, i);
        break;
    }
    colls->done(colls->ctx, coll->token, ok, data, number);
    coll_free(colls, coll);
}

static void put_part(struct colls *colls, struct coll *coll, uint32_t node, const void *data,
                     size_t len)
{
    if (!coll->parts)
        coll->parts = NEW_ARRAY(struct part, colls->nodes);
    coll->parts[node].here = true;
    str_add_len(&coll->parts[node].data, data, len);
}

static void send_whole(struct colls *colls, const struct coll *coll, PmixWhole *whole)
{
    PmixTalk talk = PMIX_TALK__INIT;

    whole->key = coll->key;
    whole->has_turn = true;
    whole->turn = coll->turn;
    talk.what_case = PMIX_TALK__WHAT_WHOLE;
    talk.whole = whole;
    colls->send(colls->ctx, &coll->among, &talk);
}

/* A node it needs has gone. The first tells the others; those hear by themselves that the first has. */
static void fail(struct colls *colls, struct coll *coll)
{
    PmixWhole whole = PMIX_WHOLE__INIT;

    whole.has_failed = whole.failed = true;
    if (coll->parts)
        send_whole(colls, coll, &whole);
    end(colls, coll, false, &whole.data, 0);
}

/* (2) */
static void check(struct colls *colls, struct coll *coll)
{
    CLEANUP(str_done) struct str all = { 0 };
    PmixWhole whole = PMIX_WHOLE__INIT;

    if (!coll->begun)
        return;
    bool failed = false;
    bitset_each (node, &coll->among) {
        if (coll->parts[node].here)
            continue;
        if (!bitset_has(&colls->gone, node))
            return;
        failed = true; /* when the others are here: one that has not begun could not be told */
    }
    if (failed) {
        fail(colls, coll);
        return;
    }
    bitset_each (node, &coll->among)
        str_add_len(&all, str_text(&coll->parts[node].data), coll->parts[node].data.len);
    whole.has_data = whole.has_number = true;
    whole.data = (ProtobufCBinaryData){ .data = (uint8_t *)all.data, .len = all.len };
    whole.number = ++colls->last_number;
    send_whole(colls, coll, &whole);
    end(colls, coll, true, &whole.data, whole.number);
}

static void send_part(struct colls *colls, const struct coll *coll, uint32_t first,
                      const void *data, size_t len)
{
    PmixTalk talk = PMIX_TALK__INIT;
    PmixPart part = PMIX_PART__INIT;
    struct bitset to;

    part.key = coll->key;
    part.has_turn = part.has_data = true;
    part.turn = coll->turn;
    part.data = (ProtobufCBinaryData){ .data = (uint8_t *)data, .len = len };
    talk.what_case = PMIX_TALK__WHAT_PART;
    talk.part = &part;
    bitset_init(&to, colls->nodes);
    bitset_add(&to, first);
    colls->send(colls->ctx, &to, &talk);
    bitset_done(&to);
}

void coll_begin(struct colls *colls, const char *key, const struct bitset *among, const void *data,
                size_t len, void *token)
{
    uint32_t turn = turns_begun(colls, key) + 1, first = (uint32_t)bitset_next(among, 0);

    map_put(&colls->turns, key, (void *)(uintptr_t)turn); /* (1) */
    struct coll *coll = find_or_new(colls, key, turn);
    coll->begun = true;
    coll->token = token;
    bitset_init_copy(&coll->among, among);
    if (first != colls->here) {
        if (bitset_has(&colls->gone, first))
            fail(colls, coll);
        else
            send_part(colls, coll, first, data, len);
        return;
    }
    put_part(colls, coll, colls->here, data, len);
    check(colls, coll);
}

bool coll_take_part(struct colls *colls, uint32_t from, const PmixPart *part)
{
    uint32_t begun = str_is_empty(part->key) ? 0 : turns_begun(colls, part->key);
    struct coll *coll;

    if (str_is_empty(part->key) || from >= colls->nodes || part->turn == 0 ||
        part->turn > begun + TURNS_AHEAD_MAX)
        return false;
    coll = find(colls, part->key, part->turn);
    if (!coll && part->turn <= begun)
        return false;
    if (!coll)
        coll = find_or_new(colls, part->key, part->turn);
    if ((coll->parts && coll->parts[from].here) ||
        (coll->begun && (!bitset_has(&coll->among, from) || !coll->parts)))
        return false;
    put_part(colls, coll, from, part->data.data, part->data.len);
    check(colls, coll);
    return true;
}

bool coll_take_whole(struct colls *colls, const PmixWhole *whole)
{
    struct coll *coll = str_is_empty(whole->key) ? NULL : find(colls, whole->key, whole->turn);

    if (!coll || !coll->begun || coll->parts)
        return false;
    end(colls, coll, !whole->failed, &whole->data, whole->number);
    return true;
}

void coll_take_gone(struct colls *colls, uint32_t node)
{
    if (node >= colls->nodes)
        return;
    bitset_add(&colls->gone, node);
    for (size_t i = 0; i < colls->list.len;) {
        struct coll *coll = colls->list.items[i];
        size_t before = colls->list.len;
        if (coll->begun && coll->parts)
            check(colls, coll);
        else if (coll->begun && bitset_next(&coll->among, 0) == node)
            fail(colls, coll);
        i += colls->list.len == before;
    }
}
