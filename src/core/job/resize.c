/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize.c - a running job gives up nodes, or loses them and goes on
 *
 * (1) What a job keeps stays as it is: the same CPUs, memory and devices on the same nodes. Nothing
 *     is added, so it cannot come to hold more than nodes have.
 * (2) A part that leaves counts for no limit from then on. Its resources are free when its node says
 *     that nothing of the job is left there.
 * (3) A batch job never gives up its first node, where its script runs.
 * (4) What was asked for is not changed: when the job is requeued it asks for the same again.
 */
#include "core/job/jobs.h"

#include "base/hostlist.h"

void job_leave(struct state *state, struct job *job, struct job_part *part)
{
    job_count(state, job, -1); /* (2) */
    part_changes(job->run, part);
    part->left = true;
    part_changed(job->run, part);
    charge_bill(state, job);
    job_count(state, job, 1);
    job_touch(state, job);
}

bool job_can_spare(const struct job *job, const struct job_part *part)
{
    enum job_phase phase = job_phase(job);

    if ((phase != PHASE_RUNNING && phase != PHASE_SUSPENDED) || part->left)
        return false;
    if (job->batch && part == &job->run->parts[0])
        return false; /* (3) */
    return part->spare || run_nodes(job->run) > 1 || spare_nodes_has(job, part);
}

bool job_goes_on_without(const struct job *job, const struct job_part *part)
{
    return job_can_spare(job, part) && (job->no_kill || spare_nodes_has(job, part));
}

/* The first `count` nodes stay, as in Slurm. */
static enum err_code keep_first(const struct job_run *run, uint32_t count, struct bitset *stay,
                                struct err *err)
{
    unsigned have = run_nodes(run);

    if (count == 0)
        return (enum err_code) - err_set(err, ERR_NODE_COUNT, "a job keeps one node at least");
    if (count > have)
        return (enum err_code) - err_set(err, ERR_UNSUPPORTED, "%s", err_text(ERR_UNSUPPORTED));
    for (unsigned i = 0; i < run->count && count > 0; i++) {
        if (!run->parts[i].left && !run->parts[i].spare) {
            bitset_add(stay, i);
            count--;
        }
    }
    return ERR_OK;
}

static enum err_code keep_named(const struct job_run *run, const char *names, struct bitset *stay,
                                struct err *err)
{
    CLEANUP(hostlist_done) struct hostlist list = { 0 };
    size_t found = 0;

    if (hostlist_parse(&list, names, err) < 0)
        return ERR_INVALID_NODE_NAME;
    for (unsigned i = 0; i < run->count; i++) {
        if (!run->parts[i].left && !run->parts[i].spare &&
            hostlist_find(&list, run->parts[i].name) >= 0) {
            bitset_add(stay, i);
            found++;
        }
    }
    if (found == 0 || found < hostlist_count(&list))
        return (enum err_code) -
               err_set(err, ERR_INVALID_NODE_NAME, "the job does not have all of these nodes");
    return ERR_OK;
}

static enum err_code choose_kept(const struct job *job, const JobSpec *change, struct bitset *stay,
                                 struct err *err)
{
    enum err_code code = ERR_OK;

    if (!str_is_empty(change->nodelist))
        code = keep_named(job->run, change->nodelist, stay, err);
    else
        code = keep_first(job->run, change->min_nodes, stay, err);
    if (code == ERR_OK && !str_is_empty(change->nodelist) && change->has_min_nodes &&
        change->min_nodes != bitset_count(stay))
        code = (enum err_code) -
               err_set(err, ERR_NODE_COUNT, "NodeList names another number of nodes than NumNodes");
    if (code == ERR_OK && job->batch && !job->run->parts[0].left && !bitset_has(stay, 0)) /* (3) */
        code = (enum err_code) - err_set(err, ERR_NODE_NOT_AVAIL,
                                         "the script runs on node %s, which must stay",
                                         job->run->parts[0].name);
    return code;
}

bool job_resize_asked(const struct job *job, const JobSpec *change)
{
    enum job_phase phase = job_phase(job);

    return change && (phase == PHASE_RUNNING || phase == PHASE_SUSPENDED) &&
           (change->has_min_nodes || !str_is_empty(change->nodelist));
}

enum err_code job_resize(struct state *state, struct job *job, const JobSpec *change, bool try,
                         struct err *err)
{
    struct job_run *run = job->run;
    struct bitset stay;

    bitset_init(&stay, run->count);
    enum err_code code = choose_kept(job, change, &stay, err);
    for (unsigned i = 0; i < run->count && code == ERR_OK && !try; i++) {
        if (!run->parts[i].left && !run->parts[i].spare && !bitset_has(&stay, i))
            job_leave(state, job, &run->parts[i]);
    }
    bitset_done(&stay);
    return code;
}
