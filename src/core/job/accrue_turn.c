/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accrue_turn.c - waiting jobs whose age counts from now on, because a limit has room
 */
#include "core/job/jobs.h"

/* Tasks of an array that become records in one turn, at most. */
enum { SPLITS_PER_TURN = 1000 };

/* accrue.c (2) */
static void begin_tasks(struct state *state, struct job *meta, uint64_t room, unsigned *splits,
                        struct events *out)
{
    for (; room && *splits; room--, --*splits) {
        uint32_t number = array_next_waiting(meta->array, 0);
        struct job *task = array_split(state, meta, number, out);
        accrue_set(state, task, state->time_us);
        job_touch(state, task);
    }
}

void accrue_turn(struct state *state, struct events *out)
{
    struct ageless_heap firsts = { 0 }; /* of the lines that have room */
    unsigned splits = SPLITS_PER_TURN;

    map_each (entry, &state->accounts->accrue_lines) {
        const struct ageless *first = accrue_head(state, entry->value);
        if (first && accrue_room(state, job_at(state, first->id), NULL))
            ageless_push(&firsts, *first);
    }
    while (firsts.len) {
        struct job *job = job_at(state, firsts.items[0].id);
        const struct accrue_line *line = accrue_line_of(job);
        size_t weight = job_is_meta(job) ? job->array->waiting : 1;
        uint64_t room = accrue_room(state, job, NULL);
        ageless_pop(&firsts);
        if (room < weight) { /* nor is there for who comes after it in this line */
            begin_tasks(state, job, room, &splits, out);
            continue;
        }
        accrue_set(state, job, state->time_us);
        job_touch(state, job);
        const struct ageless *next = accrue_head(state, line);
        if (next)
            ageless_push(&firsts, *next);
    }
    vec_done(&firsts);
}
