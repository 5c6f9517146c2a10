/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suspect.c - is the leader dead?
 */
#include "spurctld/ctl/suspect.h"

#include "base/util.h"

void suspect_init(struct suspect *suspect, size_t count, size_t self, int64_t now_ms)
{
    *suspect = (struct suspect){ .count = MIN(count, (size_t)SUSPECT_PEERS),
                                 .self = self,
                                 .looked_ms = now_ms,
                                 .term_ms = now_ms,
                                 .wait_until_ms = INT64_MIN };
    for (size_t i = 0; i < SUSPECT_PEERS; i++)
        suspect->peers[i].heard_ms = suspect->peers[i].gone_ms = INT64_MIN;
}

void suspect_heard(struct suspect *suspect, size_t peer, uint64_t instance, int64_t now_ms)
{
    struct suspect_peer *p = &suspect->peers[peer];

    p->heard_ms = now_ms;
    p->gone_ms = INT64_MIN;
    p->instance = instance;
    if (p->deposed && p->deposed == instance) { /* (4) */
        int64_t wait = MAX(suspect->wait_ms * 2, (int64_t)SUSPECT_WAIT_MIN_MS);
        if (now_ms > suspect->wait_until_ms + 4 * (int64_t)SUSPECT_WAIT_MAX_MS)
            wait = SUSPECT_WAIT_MIN_MS; /* long ago */
        suspect->wait_ms = MIN(wait, (int64_t)SUSPECT_WAIT_MAX_MS);
        suspect->wait_until_ms = now_ms + suspect->wait_ms;
    }
    p->deposed = 0;
}

void suspect_gone(struct suspect *suspect, size_t peer, int64_t now_ms)
{
    suspect->peers[peer].gone_ms = now_ms;
}

static bool is_gone(const struct suspect *suspect, size_t peer)
{
    return suspect->peers[peer].gone_ms != INT64_MIN;
}

bool suspect_hears(const struct suspect *suspect, size_t peer, int64_t now_ms)
{
    const struct suspect_peer *p = &suspect->peers[peer];

    return peer == suspect->self || (!is_gone(suspect, peer) && p->heard_ms != INT64_MIN &&
                                     now_ms - p->heard_ms < SUSPECT_SILENT_MS);
}

static void forget_round(struct suspect *suspect)
{
    for (size_t i = 0; i < suspect->count; i++)
        suspect->peers[i].asked = suspect->peers[i].agrees = false;
    suspect->ask_ms = INT64_MIN;
}

/* (2) */
static void excuse_all(struct suspect *suspect, int64_t now_ms)
{
    for (size_t i = 0; i < suspect->count; i++) {
        if (suspect->peers[i].heard_ms != INT64_MIN)
            suspect->peers[i].heard_ms = now_ms;
    }
    suspect->term_ms = now_ms;
}

static bool is_suspect(const struct suspect *suspect, size_t leader, int64_t now_ms)
{
    const struct suspect_peer *p = &suspect->peers[leader];

    if (is_gone(suspect, leader)) /* (3): refused since it began to lead */
        return p->gone_ms >= suspect->term_ms;
    return now_ms - MAX(p->heard_ms, suspect->term_ms) >= SUSPECT_SILENT_MS;
}

/* (1): does somebody whom we hear not agree, or not yet; are we enough? */
static bool all_agree(const struct suspect *suspect, int64_t now_ms)
{
    size_t votes = 0;

    for (size_t i = 0; i < suspect->count; i++) {
        const struct suspect_peer *p = &suspect->peers[i];
        bool votes_too = i == suspect->self || is_gone(suspect, i) || p->agrees;
        if (!votes_too && suspect_hears(suspect, i, now_ms))
            return false;
        votes += votes_too;
    }
    return 2 * votes > suspect->count;
}

static bool ask_round(struct suspect *suspect, size_t leader, int64_t now_ms)
{
    bool any = false;

    if (suspect->ask_ms != INT64_MIN && now_ms < suspect->ask_ms + SUSPECT_ASK_MS)
        return false;
    suspect->ask_ms = now_ms;
    for (size_t i = 0; i < suspect->count; i++) {
        struct suspect_peer *p = &suspect->peers[i];
        p->asked = i != leader && i != suspect->self && suspect_hears(suspect, i, now_ms);
        p->agrees = false;
        any = any || p->asked;
    }
    return any;
}

enum suspect_act suspect_look(struct suspect *suspect, size_t leader, int64_t term, int64_t now_ms)
{
    int64_t since_ms = now_ms - suspect->looked_ms;

    suspect->looked_ms = now_ms;
    if (term != suspect->term) {
        suspect->term = term;
        suspect->term_ms = now_ms;
        forget_round(suspect);
    }
    if (since_ms >= SUSPECT_STALL_MS)
        excuse_all(suspect, now_ms);
    if (leader >= suspect->count || leader == suspect->self || term == 0 ||
        !is_suspect(suspect, leader, now_ms) || now_ms < suspect->wait_until_ms) {
        forget_round(suspect);
        return SUSPECT_NOTHING;
    }
    if (all_agree(suspect, now_ms)) {
        struct suspect_peer *p = &suspect->peers[leader];
        p->deposed = p->instance;
        suspect->term_ms = now_ms; /* once in a while, should it still lead then */
        if (is_gone(suspect, leader))
            p->gone_ms = now_ms - 1; /* until it is refused again */
        forget_round(suspect);
        return SUSPECT_DEPOSE;
    }
    return ask_round(suspect, leader, now_ms) ? SUSPECT_ASK : SUSPECT_NOTHING;
}

void suspect_answer(struct suspect *suspect, size_t peer, int64_t term, bool hears)
{
    struct suspect_peer *p = &suspect->peers[peer];

    if (term == suspect->term && p->asked)
        p->agrees = !hears;
}
