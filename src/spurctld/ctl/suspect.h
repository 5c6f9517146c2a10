/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suspect.h - is the leader dead? What one controller thinks, without a clock or a socket
 *
 * Peers are numbers from 0, as controller.hosts lists them; one of them is ourselves. The owner says
 * who was heard and who was refused, and looks often; it is told to ask the others, or to depose.
 *
 *     heard within SUSPECT_SILENT_MS         it lives
 *     its kernel refused a connection        gone: no process is there
 *     nothing for SUSPECT_SILENT_MS          silent: stopped, or cut off; who can tell
 *
 * (1) A leader is deposed when it is gone or silent, every peer that we hear says the same, and those
 *     who say so, we, and those whose kernels say they are gone are a majority of all controllers. A
 *     controller that is itself cut off deposes nobody.
 * (2) A time in which we ourselves stood still is nobody's silence.
 * (3) A new leader is given time: what was before its term counts against nobody.
 * (4) Who deposed a process that then turned out to be alive waits before the next time, longer each time.
 *
 * Being wrong costs a change of leaders, never anything that was agreed on: the log fences.
 */
#ifndef SPURCTLD_SUSPECT_H
#define SPURCTLD_SUSPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SUSPECT_LOOK_MS = 100,    /* how often the owner looks, at least */
    SUSPECT_SILENT_MS = 1000, /* without an answer */
    SUSPECT_STALL_MS = 500,   /* between two looks: we stood still */
    SUSPECT_ASK_MS = 100,     /* until somebody who heard the leader is asked again */
    SUSPECT_WAIT_MIN_MS = 1000,
    SUSPECT_WAIT_MAX_MS = 16000,
    SUSPECT_PEERS = 16,
};

enum suspect_act { SUSPECT_NOTHING, SUSPECT_ASK, SUSPECT_DEPOSE };

struct suspect_peer {
    int64_t heard_ms, gone_ms; /* INT64_MIN: never */
    uint64_t instance;         /* of the process that was heard last */
    bool asked, agrees;        /* in this round */
    uint64_t deposed;          /* the instance that we deposed last; 0: none */
};

struct suspect {
    struct suspect_peer peers[SUSPECT_PEERS];
    size_t count, self;
    int64_t looked_ms, term, term_ms, ask_ms;
    int64_t wait_until_ms;
    int64_t wait_ms; /* the last one; 0: none */
};

void suspect_init(struct suspect *suspect, size_t count, size_t self, int64_t now_ms);
/* It answered; `instance` differs for every process. */
void suspect_heard(struct suspect *suspect, size_t peer, uint64_t instance, int64_t now_ms);
void suspect_gone(struct suspect *suspect, size_t peer, int64_t now_ms);
/* What we say when we are asked. */
bool suspect_hears(const struct suspect *suspect, size_t peer, int64_t now_ms);
/*
 * `leader` is a peer, or SIZE_MAX when nobody or somebody unknown leads. SUSPECT_ASK: peers with `asked`
 * set are to be asked whether they hear it. SUSPECT_DEPOSE: end that term; said once in a while.
 */
enum suspect_act suspect_look(struct suspect *suspect, size_t leader, int64_t term, int64_t now_ms);
/* An answer to SUSPECT_ASK. */
void suspect_answer(struct suspect *suspect, size_t peer, int64_t term, bool hears);

#endif
