/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_allocate.c - srun -Z: a job without an allocation, on the nodes it names
 *
 * (1) It starts when it is submitted, whatever else runs there and also on nodes that are drained. Who may ask
 *     is for the controller: operators.
 * (2) It holds no CPU, no memory and no device of its nodes (run->lent, and its parts have none of the rest),
 *     and is charged nothing. Its nodes have a grant for it as for any job, so its steps need no other rule.
 */
#include "base/hostlist.h"
#include "core/command/command.h"

/* Somebody answers there. */
static bool is_up(const struct node *node)
{
    const uint32_t away = NODE_FLAG_NO_RESPOND | NODE_FLAG_POWERED_DOWN | NODE_FLAG_POWERING_UP |
                          NODE_FLAG_REBOOT_ISSUED;

    return node->state == NODE_IDLE && !(node->flags & away) && !node->removed;
}

int no_allocate_admit(const struct state *state, const JobSpec *spec, struct err *err)
{
    CLEANUP(hostlist_done) struct hostlist hosts = { 0 };

    if (!spec->no_allocate)
        return 0;
    if (str_is_empty(spec->nodelist))
        return err_set(err, ERR_INVALID, "must specify a node list with -Z, --no-allocate.");
    if (spec->batch || spec->array || spec->hold || spec->begin_us || spec->dependency)
        return err_set(err, ERR_INVALID, "--no-allocate is for steps that start at once");
    int code = hostlist_parse(&hosts, spec->nodelist, err);
    if (code < 0)
        return code;
    if (hostlist_count(&hosts) > LIMIT_NODES)
        return err_code(err, ERR_NODE_COUNT);
    hostlist_each (host, &hosts) {
        const struct node *node = node_at(state, host.name);
        if (!node)
            return err_code(err, ERR_INVALID_NODE_NAME);
        if (!is_up(node))
            return err_set(err, ERR_NODE_NOT_AVAIL, "node %s is not available", host.name);
    }
    return 0;
}

static void fill_part(struct state *state, struct node *node, struct job_part *part)
{
    part->name = node_word(state, node);
    part->node = node;
    part->cpus = node->cpus;
    part->tasks = 1;
    bitset_init(&part->cpu_ids, node->cpu_span);
    bitset_fill(&part->cpu_ids);
    if (node->kept.words)
        bitset_minus(&part->cpu_ids, &node->kept);
}

void no_allocate_start(struct state *state, struct job *job, const JobSpec *spec,
                       struct events *out)
{
    CLEANUP(hostlist_done) struct hostlist hosts = { 0 };

    if (hostlist_parse(&hosts, spec->nodelist, NULL) < 0)
        return;
    struct job_run *run = mem_new(sizeof(*run) + hostlist_count(&hosts) * sizeof(struct job_part));
    run->start_us = state->time_us;
    run->skipped_us = -state->skipped_us;
    run->partition = words_take(&state->words, job->shape->partitions[0]);
    run->lent = true; /* (2) */
    job->run = run;
    hostlist_each (host, &hosts) {
        struct node *node = node_at(state, host.name);
        bool twice = false;
        for (unsigned i = 0; i < run->count; i++)
            twice = twice || run->parts[i].node == node;
        if (twice)
            continue;
        fill_part(state, node, &run->parts[run->count]);
        alloc_hold(state, job, &run->parts[run->count++]);
        node_touch(state, node);
    }
    run->parts_hash = run_hash_parts(run);
    job_begin(state, job, out);
}
