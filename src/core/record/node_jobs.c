/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_jobs.c - the jobs that hold nodes, without a look at those that wait or have ended
 *
 * They are found at their nodes: there are as many as nodes have room for, however long the queue is.
 */
#include "core/record/record.h"

void node_jobs_each(struct state *state, node_jobs_fn *each, void *ctx)
{
    vec_each (struct node *, at, &state->nodes) {
        const struct node *node = *at;
        for (size_t i = 0; i < node->jobs.len; i++) {
            struct job *job = node->jobs.items[i];
            unsigned first = 0;
            while (!job->run->parts[first].node)
                first++;
            state->looked++;
            if (job->run->parts[first].node == node) /* its first node that holds it counts */
                each(state, job, ctx);
        }
    }
}
