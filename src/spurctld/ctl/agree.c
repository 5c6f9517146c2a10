/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agree.c - do the controllers have the same state?
 */
#include "spurctld/ctl/agree.h"

#include <stdlib.h>
#include <string.h>

void agree_init(struct agree *agree, size_t controllers)
{
    agree_done(agree);
    agree->controllers = controllers;
}

void agree_done(struct agree *agree)
{
    while (agree->count)
        free(agree->peers[--agree->count].name);
}

void agree_say(const struct state *state, bool wrong, struct agree_said *out)
{
    size_t marks = core_marks(state);
    struct state_mark now;

    *out = (struct agree_said){ .speaks = true, .wrong = wrong };
    if (state_head(state).index && core_mark_now(state, &now))
        out->marks[out->count++] = now;
    for (size_t i = 0; i < marks && out->count < AGREE_SAID; i += i < AGREE_NEAR ? 1 : AGREE_NEAR)
        out->marks[out->count++] = core_mark(state, i);
}

/* ---- comparing ---- */

static struct agree_peer *find(struct agree *agree, const char *name)
{
    for (size_t i = 0; i < agree->count; i++) {
        if (strcmp(agree->peers[i].name, name) == 0)
            return &agree->peers[i];
    }
    if (agree->count == AGREE_PEERS)
        return NULL;
    struct agree_peer *peer = &agree->peers[agree->count++];
    *peer = (struct agree_peer){ .name = mem_strdup(name) };
    return peer;
}

/* Our digest at that index, if we know it. */
static bool own_mark(const struct state *state, uint64_t index, struct state_mark *out)
{
    if (index == state_head(state).index && core_mark_now(state, out))
        return true;
    return core_mark_at(state, index, out);
}

static void compare(struct agree_peer *peer, const struct state *state)
{
    struct state_mark mine;

    for (size_t i = 0; i < peer->said.count; i++) {
        const struct state_mark *theirs = &peer->said.marks[i];
        if (theirs->index < peer->common)
            return;
        if (!own_mark(state, theirs->index, &mine))
            continue;
        peer->common = theirs->index;
        peer->differs = theirs->digest != mine.digest;
        return;
    }
}

void agree_heard(struct agree *agree, const struct state *state, const char *name,
                 const struct agree_said *said, int64_t now_ms)
{
    struct agree_peer *peer = find(agree, name);

    if (!peer)
        return;
    uint64_t was = peer->said.count ? peer->said.marks[0].index : 0;
    peer->said = *said;
    peer->heard_ms = now_ms;
    if (!said->count || said->marks[0].index < was) { /* (4) */
        peer->common = 0;
        peer->differs = false;
    }
    compare(peer, state);
}

/* ---- judging ---- */

static bool counts(const struct agree_peer *peer, int64_t now_ms)
{
    return now_ms - peer->heard_ms < AGREE_FRESH_MS && !peer->said.wrong; /* (1), (2) */
}

static bool is_same(const struct agree_peer *peer)
{
    return !peer->said.speaks || (peer->common && !peer->differs); /* (3) */
}

static uint64_t same_upto(const struct agree_peer *peer)
{
    return peer->said.speaks ? peer->common : UINT64_MAX;
}

static bool agree_with_each_other(const struct agree_peer *a, const struct agree_peer *b)
{
    for (size_t i = 0; i < a->said.count; i++) {
        for (size_t k = 0; k < b->said.count; k++) {
            if (a->said.marks[i].index == b->said.marks[k].index)
                return a->said.marks[i].digest == b->said.marks[k].digest;
        }
    }
    return false;
}

static int compare_down(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? 1 : x > y ? -1 : 0;
}

/* Have we, with others, a majority? Then up to where. */
static bool confirm(const struct agree *agree, const struct state *state, int64_t now_ms,
                    uint64_t *upto)
{
    uint64_t same[AGREE_PEERS];
    size_t count = 0, others = agree->controllers / 2; /* that make a majority with us */

    *upto = state_head(state).index;
    if (others == 0)
        return true;
    for (size_t i = 0; i < agree->count; i++) {
        if (counts(&agree->peers[i], now_ms) && is_same(&agree->peers[i]))
            same[count++] = same_upto(&agree->peers[i]);
    }
    if (count < others)
        return false;
    qsort(same, count, sizeof(same[0]), compare_down);
    *upto = MIN(*upto, same[others - 1]);
    return true;
}

static bool is_outvoted(const struct agree *agree, int64_t now_ms)
{
    for (size_t i = 0; i < agree->count; i++) {
        const struct agree_peer *one = &agree->peers[i];
        size_t group = 1;
        if (!counts(one, now_ms) || !one->differs)
            continue;
        for (size_t k = 0; k < agree->count; k++) {
            const struct agree_peer *other = &agree->peers[k];
            group += k != i && counts(other, now_ms) && other->differs &&
                     agree_with_each_other(one, other);
        }
        if (group > agree->controllers / 2)
            return true;
    }
    return false;
}

static bool somebody_differs(const struct agree *agree, int64_t now_ms)
{
    for (size_t i = 0; i < agree->count; i++) {
        if (counts(&agree->peers[i], now_ms) && agree->peers[i].differs)
            return true;
    }
    return false;
}

/* (5) */
static bool differs_from_trusted(const struct agree *agree, int64_t now_ms)
{
    for (size_t i = 0; i < agree->count && !agree->trusted; i++) {
        const struct agree_peer *peer = &agree->peers[i];
        if (counts(peer, now_ms) && peer->said.trusted && peer->differs)
            return true;
    }
    return false;
}

enum agree_verdict agree_look(struct agree *agree, const struct state *state, int64_t now_ms)
{
    bool differs = somebody_differs(agree, now_ms);
    uint64_t upto;

    if (differs_from_trusted(agree, now_ms))
        return AGREE_OUTVOTED;

    if (confirm(agree, state, now_ms, &upto)) {
        agree->agreed = MAX(agree->agreed, upto);
        agree->trusted = agree->trusted && differs;
        return AGREE_CONFIRMED;
    }
    if (agree->trusted) { /* (5) */
        agree->agreed = MAX(agree->agreed, state_head(state).index);
        return AGREE_CONFIRMED;
    }
    if (!differs)
        return AGREE_UNKNOWN;
    return is_outvoted(agree, now_ms) ? AGREE_OUTVOTED : AGREE_SPLIT;
}

bool agree_may_lead(struct agree *agree, const struct state *state, int64_t now_ms)
{
    enum agree_verdict verdict = agree_look(agree, state, now_ms);

    return verdict == AGREE_CONFIRMED || verdict == AGREE_UNKNOWN;
}

void agree_trust(struct agree *agree)
{
    agree->trusted = true;
}

void agree_names(const struct agree *agree, int64_t now_ms, struct str *out)
{
    for (size_t i = 0; i < agree->count; i++) {
        const struct agree_peer *peer = &agree->peers[i];
        if (counts(peer, now_ms) && peer->differs)
            str_addf(out, "%s%s", out->len ? "," : "", peer->name);
    }
}
