/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agree.h - do the controllers have the same state? What one of them thinks, without a socket
 *
 * Controllers tell each other the digests of their states at certain indexes of the log (core.h, marks).
 * Each compares the newest one that it has in common with another.
 *
 *     a majority, we among it, is the same        confirmed, up to the newest index that they share
 *     a majority is the same without us           outvoted: our state is wrong
 *     somebody differs, and no majority agrees    split: nobody can tell who is right
 *     otherwise                                   unknown: too few were heard, or none is comparable
 *
 * (1) Who was not heard for AGREE_FRESH_MS says nothing.
 * (2) Who says that its own state is wrong (it is outvoted, or has found damage) counts neither way.
 * (3) A controller of a build that knows nothing of marks is counted as agreeing with everybody.
 * (4) Who begins again from an earlier index has not been compared.
 * (5) An administrator's word makes a state right: agree_trust(). Who differs from it is outvoted.
 */
#ifndef SPURCTLD_AGREE_H
#define SPURCTLD_AGREE_H

#include "core/core.h"

enum {
    AGREE_PEERS = 16,
    AGREE_SAID = 48,       /* marks in a message */
    AGREE_NEAR = 8,        /* that many of the newest, then every eighth */
    AGREE_FRESH_MS = 5000, /* (1) */
    AGREE_SPLIT_MS = 2000, /* who was not heard yet may be about to speak */
};

enum agree_verdict { AGREE_UNKNOWN, AGREE_CONFIRMED, AGREE_SPLIT, AGREE_OUTVOTED };

/* What a controller says of its state: newest first, the present one before all others. */
struct agree_said {
    bool speaks;  /* (3) */
    bool wrong;   /* (2) */
    bool trusted; /* (5) */
    size_t count; /* 0: it has no state yet */
    struct state_mark marks[AGREE_SAID];
};

struct agree_peer {
    char *name;
    int64_t heard_ms;
    struct agree_said said;
    uint64_t common; /* the newest index that was compared; 0: none */
    bool differs;    /* there */
};

struct agree {
    size_t controllers; /* with us; 1: there is nobody to compare with */
    struct agree_peer peers[AGREE_PEERS];
    size_t count;    /* of them that were heard */
    uint64_t agreed; /* the newest index that a majority has confirmed; grows */
    bool trusted;    /* (5) */
};

/* Also when the list changes: what was heard is forgotten, what was confirmed is not. */
void agree_init(struct agree *agree, size_t controllers);
void agree_done(struct agree *agree);
void agree_say(const struct state *state, bool wrong, struct agree_said *out);
void agree_heard(struct agree *agree, const struct state *state, const char *peer,
                 const struct agree_said *said, int64_t now_ms);
enum agree_verdict agree_look(struct agree *agree, const struct state *state, int64_t now_ms);
/* Everybody who is heard and can be compared has our digest, or a majority has. */
bool agree_may_lead(struct agree *agree, const struct state *state, int64_t now_ms);
/* (5) Our state is the right one, until all who are heard have it. */
void agree_trust(struct agree *agree);
/* Names of those who differ from us, with commas. */
void agree_names(const struct agree *agree, int64_t now_ms, struct str *out);

#endif
