/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shadow.c - when a waiting job can start, from the ends of what runs
 *
 * Running jobs are taken to end at their limit. They are let go one after the other, in order of
 * end, until the job fits. What has no limit never ends.
 */
#include <stdlib.h>

#include "sched/sched_priv.h"

struct ending {
    int64_t end_us;
    const struct job *job;
};

static int by_end(const void *a, const void *b)
{
    const struct ending *x = a, *y = b;

    if (x->end_us != y->end_us)
        return x->end_us < y->end_us ? -1 : 1;
    return (x->job->id > y->job->id) - (x->job->id < y->job->id);
}

static void let_go(const struct job *job, struct held *freed)
{
    for (size_t i = 0; i < job->run->count; i++) {
        const struct job_part *part = &job->run->parts[i];
        if (!part->node)
            continue;
        struct held *held = &freed[part->node->number];
        held->cpus += part->cpus;
        held->mem_mb += part->mem_mb;
        held->jobs++;
        held->whole += job->run->whole_nodes;
        for (size_t g = 0; g < part->gres_count; g++) {
            for (size_t k = 0; k < part->node->gres_count && k < TAKE_GRES; k++) {
                if (str_eq(part->gres[g].name, part->node->gres[k].name) &&
                    str_eq(part->gres[g].type, part->node->gres[k].type))
                    held->gres[k] += part->gres[g].count;
            }
        }
    }
}

int64_t shadow(const struct sched *sched, const struct job *job, int64_t now_us,
               struct parts *parts)
{
    size_t nodes = state_node_count(sched->state);
    struct held *freed = NEW_ARRAY(struct held, nodes + 1);
    VEC(struct ending) list = { 0 };
    const struct need *need;
    int64_t start = INT64_MAX;

    for (size_t n = 0; n < nodes; n++) {
        const struct node *node = state_node_at(sched->state, n);
        for (size_t i = 0; i < node->jobs.len; i++) {
            const struct job *other = node->jobs.items[i];
            if (other->run->parts[0].node != node && other->run->parts[0].node)
                continue; /* counted at its first node */
            vec_push(&list, (struct ending){ job_end_by(other, other->run->start_us), other });
        }
    }
    qsort(list.items, list.len, sizeof(*list.items), by_end);
    for (size_t i = 0; i <= list.len; i++) {
        int64_t at = i == 0 ? now_us : MAX(list.items[i - 1].end_us, now_us);
        if (at == INT64_MAX)
            break;
        if (i > 0)
            let_go(list.items[i - 1].job, freed);
        if (i < list.len && i > 0 && MAX(list.items[i].end_us, now_us) == at)
            continue; /* more end at the same time */
        struct view view = { .freed = freed, .start_us = at, .end_us = job_end_by(job, at) };
        if (place(sched, job, &view, parts, &need)) {
            start = at;
            break;
        }
    }
    free(freed);
    vec_done(&list);
    return start;
}
