/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_run.c - a trace in simulated time
 *
 * The next thing that happens is a submission, an end, or what core or planner wait for; time jumps
 * there. What ends at a moment ends before what is submitted then, and both before the planner is
 * asked. A job that is suspended goes on where it stopped; one that is requeued begins again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/preempt.h"
#include "trace-sim/sim_going.h"
#include "wire/set.h"

enum {
    TICK_EVERY = 512,
    IDLE_MOST = 4096, /* turns in which nothing runs and nothing starts: nothing will */
};
#define US_PER_S INT64_C(1000000)
static bool ends_before(struct sim_ending a, struct sim_ending b)
{
    return a.s != b.s ? a.s < b.s : a.index < b.index;
}

static void push(struct sim_going *going, struct sim_ending item)
{
    vec_push(&going->endings, item);
    struct sim_ending *heap = going->endings.items;
    size_t at = going->endings.len - 1;
    for (; at && ends_before(item, heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = item;
}

static struct sim_ending pop(struct sim_going *going)
{
    struct sim_ending *heap = going->endings.items, first = heap[0], last;
    size_t at = 0, len = --going->endings.len;

    last = heap[len];
    for (size_t child; (child = at * 2 + 1) < len; at = child) {
        if (child + 1 < len && ends_before(heap[child + 1], heap[child]))
            child++;
        if (!ends_before(heap[child], last))
            break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return first;
}

static double cpu_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* ---- what becomes of jobs ---- */

static void runs(struct sim_going *going, struct sim_job *line, const struct job *job)
{
    struct sim_run *run = going->run;

    going->running += line->fate != SIM_RUNS;
    line->fate = SIM_RUNS;
    line->since_s = run->now_s;
    push(going, (struct sim_ending){ run->now_s + line->left_s,
                                     (uint32_t)(line - run->trace->jobs.items), ++line->turn });
    sim_use_begin(going, line, job);
}

/* It does not run any more, or not now. */
static void stops(struct sim_going *going, struct sim_job *line, const struct job *job,
                  enum sim_fate fate)
{
    struct sim_run *run = going->run;

    if (line->fate == SIM_RUNS) {
        going->running--;
        line->left_s -= run->now_s - line->since_s;
        line->turn++;
        sim_use_end(going, line, job);
    }
    line->fate = (uint8_t)fate;
}

/* Of the work that it began with, what is left when so much of it was saved. */
static int64_t saved(const struct sim_how *how, const struct sim_job *line, int64_t ran_s)
{
    int64_t done = ran_s - (line->again ? how->restart_s : 0);

    if (how->checkpoint_s < 0 || done <= 0)
        return 0;
    return MIN(how->checkpoint_s ? done / how->checkpoint_s * how->checkpoint_s : done,
               line->work_s);
}

/* What it has run is lost, but for what it has saved. */
static void in_vain(struct sim_going *going, struct sim_job *line, const struct job *job,
                    enum sim_fate fate)
{
    double units = (double)sim_use_of(going, job) / going->scale;
    int64_t all = line->work_s + (line->again ? going->run->how->restart_s : 0);

    stops(going, line, job, fate);
    int64_t ran = all - line->left_s,
            kept = fate == SIM_WAITS ? saved(going->run->how, line, ran) : 0;
    line->work_s -= kept;
    going->run->sum.lost += units * (double)(ran - kept);
}

static void on_event(void *ctx, const struct event *event)
{
    struct sim_going *going = ctx;
    struct sim_run *run = going->run;
    uint32_t at = event->job ? event->job->id - going->first_id : UINT32_MAX;

    if (at >= going->by_id.len)
        return;
    struct sim_job *line = &run->trace->jobs.items[going->by_id.items[at]];
    switch (event->kind) {
    case EVENT_JOB_STARTED:
        line->start_s = line->start_s < 0 ? run->now_s : line->start_s;
        line->left_s = line->work_s + (line->again ? run->how->restart_s : 0);
        runs(going, line, event->job);
        break;
    case EVENT_JOB_RESUMED:
        runs(going, line, event->job);
        break;
    case EVENT_JOB_SUSPENDED:
        stops(going, line, event->job, SIM_STANDS);
        break;
    case EVENT_JOB_PREEMPTED:
        run->sum.preempted++;
        line->preempted++;
        run->sum.suspended += job_phase(event->job) == PHASE_SUSPENDED;
        break;
    case EVENT_JOB_REQUEUED:
        run->sum.requeued++;
        in_vain(going, line, event->job, SIM_WAITS);
        line->again = true;
        break;
    case EVENT_JOB_ENDED:
        if (event->end_state == JOB_COMPLETED)
            break; /* end() did it */
        run->sum.cancelled++;
        in_vain(going, line, event->job, SIM_PREEMPTED);
        line->end_s = run->now_s;
        run->ended++;
        break;
    default:
        break;
    }
}

static void submit(struct sim_going *going, uint32_t index)
{
    struct sim_run *run = going->run;
    struct sim_job *line = &run->trace->jobs.items[index];
    const char *user = run->trace->users.items[line->user];
    JobOwner owner = JOB_OWNER__INIT;
    struct sim_asked asked;
    struct err err = { 0 };

    sim_ask(going, line, &asked);
    SET(&owner, uid, 100000 + line->user);
    SET(&owner, gid, 100);
    owner.user = (char *)(uintptr_t)(*user ? user : "nobody");
    owner.group = (char *)"users";
    /* Its number may be wanted before the answer is here: it starts when the planner is asked. */
    line->id = sim_cluster_submit(&going->cluster, &owner, &asked.spec, &err);
    if (!line->id) {
        line->fate = SIM_REFUSED;
        if (!run->refused++) {
            snprintf(run->why_refused, sizeof(run->why_refused), "%s", err.text);
            run->refused_line = line->line;
        }
        return;
    }
    if (!going->by_id.len)
        going->first_id = line->id;
    while (going->by_id.len <= line->id - going->first_id)
        vec_push(&going->by_id, index);
    run->submitted++;
}

static void end(struct sim_going *going, struct sim_ending ending)
{
    struct sim_job *line = &going->run->trace->jobs.items[ending.index];
    const struct job *job = state_job(going->cluster.state, line->id);

    if (line->turn != ending.turn || line->fate != SIM_RUNS || !job || !job->run)
        return;
    stops(going, line, job, SIM_ENDED);
    sim_cluster_end(&going->cluster, line->id);
    line->end_s = ending.s;
    going->run->ended++;
}

/* ---- time ---- */

static int64_t us_of(int64_t s)
{
    return SIM_BEGIN_US + s * US_PER_S;
}

/* Up to `us` nothing changes. */
static void pass_time(struct sim_going *going, int64_t us)
{
    struct sim_run *run = going->run;
    int64_t then = (us - SIM_BEGIN_US) / US_PER_S;
    double seconds = (double)(then - run->now_s);
    size_t waiting = run->submitted - run->ended - going->running;

    run->sum.area += seconds * (double)going->in_use / going->scale;
    if (waiting) {
        run->sum.waiting += seconds;
        run->sum.waste += seconds * (double)going->stranded / going->scale;
    }
    run->sum.most_waiting = MAX(run->sum.most_waiting, waiting);
    run->now_s = then;
    going->cluster.now_us = MAX(going->cluster.now_us, us);
}

/* What should have been by now is looked at in a second: nothing stands still. */
static int64_t not_past(const struct sim_cluster *cluster, int64_t us)
{
    return us > cluster->now_us ? us : cluster->now_us + US_PER_S;
}

/* When something happens next; INT64_MAX: nothing does any more. */
static int64_t next_us(const struct sim_going *going, size_t next)
{
    const struct sim_run *run = going->run;
    const struct sim_cluster *cluster = &going->cluster;
    int64_t us = INT64_MAX;

    if (next < run->trace->jobs.len)
        us = us_of(run->trace->jobs.items[next].submit_s);
    if (going->endings.len)
        us = MIN(us, us_of(going->endings.items[0].s));
    if (us == INT64_MAX && (run->submitted == run->ended || going->idle > IDLE_MOST))
        return us;
    us = MIN(us, not_past(cluster, cluster->wake_us));
    if (preempt_is_on(cluster->state)) /* grace, turns, who goes on */
        us = MIN(us, not_past(cluster, core_next_due(cluster->state)));
    return us;
}

static void go(struct sim_going *going)
{
    struct sim_run *run = going->run;
    size_t next = 0, count = run->trace->jobs.len;
    int64_t us;

    for (uint64_t turn = 0; (us = next_us(going, next)) != INT64_MAX; turn++) {
        pass_time(going, us);
        while (going->endings.len && going->endings.items[0].s <= run->now_s)
            end(going, pop(going));
        sim_cluster_wait(&going->cluster, going->cluster.now_us);
        while (next < count && run->trace->jobs.items[next].submit_s <= run->now_s)
            submit(going, (uint32_t)next++);
        uint64_t starts = going->cluster.starts;
        sim_cluster_plan(&going->cluster);
        going->idle = going->endings.len || going->cluster.starts > starts ? 0 : going->idle + 1;
        if (turn % TICK_EVERY == 0 && run->how->tick && !run->how->tick(run->how->ctx, run)) {
            run->stopped = true;
            return;
        }
    }
}

int sim_run(struct sim_run *run, const struct sim_how *how, struct sim_trace *trace,
            struct err *err)
{
    struct sim_going going = { .run = run };

    *run = (struct sim_run){ .how = how, .trace = trace };
    vec_each (struct sim_job, job, &trace->jobs) {
        job->fate = SIM_WAITS;
        job->start_s = job->end_s = -1;
        job->work_s = job->run_s;
        job->again = false;
        job->id = job->bar = job->bars = job->turn = job->preempted = 0;
        job->counted = false;
    }
    double begin = cpu_ms();
    int code = sim_cluster_new(&going.cluster, how->config, SIM_BEGIN_US, err);
    if (code >= 0) {
        going.cluster.on_event = on_event;
        going.cluster.ctx = &going;
        sim_use_read(&going);
        go(&going);
    }
    run->sum.cpu_ms = cpu_ms() - begin;
    run->sum.events = going.cluster.index;
    run->sum.starts = going.cluster.starts;
    run->sum.refused_starts = going.cluster.refused;
    sim_cluster_done(&going.cluster);
    sim_use_done(&going);
    vec_done(&going.endings);
    vec_done(&going.by_id);
    return code;
}

void sim_run_done(struct sim_run *run)
{
    vec_each (char *, name, &run->nodes)
        free(*name);
    vec_done(&run->nodes);
    vec_done(&run->bars);
}
