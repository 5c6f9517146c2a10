/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_metrics.c - what a simulation comes to, in numbers
 */
#include <stdlib.h>
#include <string.h>

#include "trace-sim/sim.h"

static int by_value(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* The p-th part of a sorted list is the value with that share of the list before it. */
static struct sim_spread spread(int64_t *values, size_t count)
{
    struct sim_spread out = { 0 };
    double sum = 0;

    if (!count)
        return out;
    qsort(values, count, sizeof(*values), by_value);
    for (size_t i = 0; i < count; i++)
        sum += (double)values[i];
    out.avg = sum / (double)count;
    out.p50 = values[count / 2];
    out.p99 = values[MIN(count - 1, count * 99 / 100)];
    out.most = values[count - 1];
    return out;
}

static double slowdown(const struct sim_job *job)
{
    double ran = (double)job->run_s, took = (double)(job->start_s - job->submit_s) + ran;

    if (job->fate == SIM_ENDED) /* it may have been interrupted */
        took = (double)(job->end_s - job->submit_s);
    double value = took / (ran > SIM_BOUND_S ? ran : SIM_BOUND_S);

    return value < 1 ? 1 : value;
}

static void add_user(struct sim_figures *out, const struct sim_run *run, const struct sim_job *job)
{
    struct sim_user *user = &out->users.items[job->user];

    user->jobs++;
    user->wait_s += (double)(job->start_s - job->submit_s);
    user->slowdown += slowdown(job);
    double gpus =
        job->gpu_milli && !run->sum.rounded ? (double)job->gpu_milli / SIM_MILLI : job->gpus;
    user->unit_s += (double)job->run_s * (run->of_gpus ? gpus : (double)MAX(job->cpus, 1));
}

/* (sum x)^2 / (n sum x^2): 1 when all are treated alike, 1/n when one bears it all. */
static double jain(const struct sim_figures *figures)
{
    double sum = 0, squares = 0;
    size_t count = 0;

    vec_each (struct sim_user, user, &figures->users) {
        if (!user->jobs)
            continue;
        count++;
        sum += user->slowdown;
        squares += user->slowdown * user->slowdown;
    }
    return count && squares > 0 ? sum * sum / ((double)count * squares) : 1;
}

void sim_measure(const struct sim_run *run, struct sim_figures *out)
{
    size_t count = run->trace->jobs.len, waits = 0, ends = 0;
    CLEANUP(freep) int64_t *wait = NEW_ARRAY(int64_t, count + 1);
    CLEANUP(freep) int64_t *completion = NEW_ARRAY(int64_t, count + 1);

    *out = (struct sim_figures){ .refused = run->refused };
    vec_each (char *, name, &run->trace->users)
        vec_push(&out->users, (struct sim_user){ .name = *name });
    vec_each (struct sim_job, job, &run->trace->jobs) {
        out->waiting += (job->fate == SIM_WAITS || job->fate == SIM_STANDS) && job->id;
        out->running += job->fate == SIM_RUNS;
        if (job->fate != SIM_PREEMPTED && job->start_s >= 0) {
            wait[waits++] = job->start_s - job->submit_s;
            out->slowdown += slowdown(job);
            add_user(out, run, job);
        }
        if (job->fate == SIM_ENDED)
            completion[ends++] = job->end_s - job->submit_s;
    }
    vec_each (struct sim_user, user, &out->users) {
        if (user->jobs) {
            user->wait_s /= (double)user->jobs;
            user->slowdown /= (double)user->jobs;
        }
    }
    out->jobs = ends;
    out->wait = spread(wait, waits);
    out->completion = spread(completion, ends);
    out->slowdown = waits ? out->slowdown / (double)waits : 0;
    out->makespan_s = run->now_s;
    double all = (double)run->units * (double)run->now_s;
    out->used = all > 0 ? run->sum.area / all : 0;
    double waiting = (double)run->units * run->sum.waiting;
    out->fragmented = waiting > 0 ? run->sum.waste / waiting : 0;
    out->lost = all > 0 ? run->sum.lost / all : 0;
    out->fairness = jain(out);
}

void sim_figures_done(struct sim_figures *figures)
{
    vec_done(&figures->users);
}
