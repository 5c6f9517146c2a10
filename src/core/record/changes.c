/* SPDX-License-Identifier: Apache-2.0 */
/*
 * changes.c - what changed since an index of the log
 *
 * Soft: a job's `changed` and the ring of forgotten ids are not in the digest, and begin anew with a
 * restored state. Who asks about an earlier index gets everything.
 */
#include "core/query.h"
#include "core/record/record.h"

#include <stdlib.h>

void changes_forgot(struct changes *changes, uint32_t id, uint64_t index)
{
    if (!changes->gone)
        changes->gone = NEW_ARRAY(struct forgotten, CHANGES_GONE);
    if (changes->count == CHANGES_GONE) {
        changes->since = changes->gone[changes->first].index;
        changes->first = (changes->first + 1) % CHANGES_GONE;
        changes->count--;
    }
    changes->gone[(changes->first + changes->count++) % CHANGES_GONE] =
        (struct forgotten){ index, id };
}

bool changes_reach(const struct state *state, uint64_t since)
{
    return since >= state->changes.since && since <= state->index;
}
