/* SPDX-License-Identifier: Apache-2.0 */
/*
 * marks.c - the digest at certain indexes, for replicas to compare
 *
 * (1) Which indexes these are follows from the log alone, so that all replicas have the same ones: age is
 *     counted in entries, never by the clock.
 * (2) A mark is not taken while request ids are still to be moved (requests.c (3)): the digest would move
 *     all of them at once. A replica that was restored meanwhile may have that mark and the others not.
 */
#include "core/record/record.h"

#include "base/must.h"

void mark_put(struct state *state, struct state_mark mark)
{
    state->marks.kept[state->marks.taken++ % MARKS_KEPT] = mark;
}

size_t core_marks(const struct state *state)
{
    return MIN(state->marks.taken, (size_t)MARKS_KEPT);
}

struct state_mark core_mark(const struct state *state, size_t n)
{
    MUST(n < core_marks(state));
    return state->marks.kept[(state->marks.taken - 1 - n) % MARKS_KEPT];
}

bool core_mark_at(const struct state *state, uint64_t index, struct state_mark *out)
{
    for (size_t i = 0; i < core_marks(state); i++) {
        struct state_mark mark = core_mark(state, i);
        if (mark.index <= index) {
            *out = mark;
            return mark.index == index;
        }
    }
    return false;
}

bool core_mark_now(const struct state *state, struct state_mark *out)
{
    if (!requests_are_settled(state)) /* (2) */
        return false;
    *out = (struct state_mark){ state->index, core_digest(state) };
    return true;
}

void marks_applied(struct state *state)
{
    struct state_mark mark;

    if (state->index % MARK_EVERY == 0 && core_mark_now(state, &mark)) /* (1) */
        mark_put(state, mark);
}
