/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trigger.h - programs of the site that the leader runs when something happens (strigger)
 *
 * A trigger waits, is pulled by an event, and is due when its offset is over. The leader then proposes that it runs
 * the program (CmdTrigger.run); once that is agreed it does so. A leader that comes later finds what is due and not
 * agreed. A program is thus never run twice; it is lost only with the host that had agreed to run it at that moment.
 */
#ifndef CORE_TRIGGER_H
#define CORE_TRIGGER_H

#include "base/hostlist.h"
#include "base/vec.h"
#include "proto/command.pb-c.h"

struct state;

struct trigger {
    TriggerSpec *spec;
    struct hostlist named; /* spec->nodes */
    int64_t pulled_us;     /* 0: it was not pulled */
    VEC(char *) nodes;     /* that pulled it */
    char *pulled_for;      /* the name of the event, or NULL */
    int64_t idle_seen_us;
    uint64_t hash;
};

size_t state_trigger_count(const struct state *state);
const struct trigger *state_trigger_at(const struct state *state, size_t number);
/* Its program should run now. */
bool trigger_is_due(const struct state *state, const struct trigger *trigger);

#endif
