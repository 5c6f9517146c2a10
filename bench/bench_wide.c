/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_wide.c - jobs of thousands of nodes: rows of bench_shocks.c
 *
 * Each goes before the million that waits, behind those of wide_before(), and is promised a start. What is
 * asked about them is answered in one turn: that is timed as if it were a slice.
 */
#include "bench_wide.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The first of the wide ones goes before the next. */
static unsigned next_priority = 4294966000;
static VEC(uint32_t) submitted;

static void submit(struct load *load, const char *words)
{
    char all[4096];

    snprintf(all, sizeof(all), "prio=%u %s", --next_priority, words);
    uint32_t id = rig_submit(load->rig, all);
    if (!id) {
        fprintf(stderr, "bench-sched: refused: %s\n", all);
        exit(1);
    }
    vec_push(&submitted, id);
}

void wide_before(struct load *load)
{
    next_priority = 4294967000;
    for (unsigned i = 0; i < 64; i++)
        submit(load, "N=20 ex t=86400 uid=1");
    next_priority = 4294966000;
    vec_clear(&submitted);
}

void wide_het3(struct load *load)
{
    char words[256];

    snprintf(words, sizeof(words),
             "N=1000 ex t=600 uid=1 : prio=%u N=1000 ex t=900 uid=1 : "
             "prio=%u N=1000 ex gres=gpu:h100:8 t=600 uid=1",
             next_priority - 1, next_priority - 1);
    submit(load, words);
}

void wide_uneven(struct load *load)
{
    submit(load, "N=2000-9000 n=200000 t=600 uid=1");
}

void wide_all(struct load *load)
{
    submit(load, "N=10000 ex t=600 uid=1");
}

void wide_contig(struct load *load)
{
    submit(load, "N=3000 ex contig t=600 uid=1");
}

void wide_named(struct load *load)
{
    submit(load, "N=2000 w=c[1001-3000] ex t=600 uid=1");
}

void wide_either(struct load *load)
{
    submit(load, "N=1500 ex t=600 uid=1 C=[c0|g0|c10|g10|(c20|c30|c40)|(g20|g30|g40)|c50|c60]");
}

void wide_features(struct load *load)
{
    struct str words = { 0 };

    str_add(&words, "N=3000 ex t=600 uid=1 C=c0");
    for (unsigned i = 1; i < 200; i++)
        str_addf(&words, "|%s%u", i < 100 ? "c" : "g", i % 100);
    submit(load, str_text(&words));
    str_done(&words);
}

void wide_switch(struct load *load)
{
    submit(load, "N=18 ex switches=1 swait=86400 t=600 uid=1");
}

void wide_leaves(struct load *load)
{
    submit(load, "N=2000 ex t=600 uid=1");
}

static double cpu_ms(void)
{
    struct timespec at;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return (double)at.tv_sec * 1e3 + (double)at.tv_nsec / 1e6;
}

static void as_slice(struct load *load, double from_ms)
{
    double took = cpu_ms() - from_ms;

    load->rig->slice_ms = took > load->rig->slice_ms ? took : load->rig->slice_ms;
    load->rig->plan_ms += took;
}

void wide_explain(struct load *load)
{
    struct arena arena;
    struct explanation about;

    arena_init(&arena);
    for (size_t i = 0; i < submitted.len; i++) {
        const struct job *job = rig_job(load->rig, submitted.items[i]);
        if (!job || job->state != JOB_PENDING)
            continue;
        double from_ms = cpu_ms();
        sched_explain(load->rig->sched, job, load->rig->now_us, &arena, &about);
        as_slice(load, from_ms);
        arena_reset(&arena);
    }
    arena_done(&arena);
}

void wide_start(struct load *load)
{
    double from_ms = cpu_ms();

    load->rig->now_us += 2 * US_PER_S;
    rig_wait(load->rig, 0);
    sched_forecast(load->rig->sched, load->rig->now_us);
    as_slice(load, from_ms);
}

static void end_all(struct rig *rig)
{
    for (const struct job *job = state_job_from(rig->state, 1); job;
         job = state_job_from(rig->state, (uint64_t)job->id + 1)) {
        if (rig_runs(rig, job->id))
            rig_end(rig, job->id);
    }
    rig_release_all(rig); /* components that ended with the first */
}

/* All nodes are free: those that waited for thousands of them start. */
void wide_begins(struct load *load)
{
    end_all(load->rig);
}

static void set_partition(struct rig *rig, PartitionState state)
{
    Command cmd = COMMAND__INIT;
    CmdPartition msg = CMD_PARTITION__INIT;
    PartitionSpec spec = PARTITION_SPEC__INIT;

    spec.name = (char *)(uintptr_t)state_default_partition(rig->state)->spec->name;
    spec.has_state = true;
    spec.state = state;
    msg.change = &spec;
    cmd.what_case = COMMAND__WHAT_PARTITION;
    cmd.partition = &msg;
    rig_apply(rig, &cmd);
}

static void cancel_waiting(struct rig *rig)
{
    enum { NARROW = 8 }; /* as those of the load */

    for (const struct job *job = state_job_from(rig->state, 1); job;
         job = state_job_from(rig->state, (uint64_t)job->id + 1)) {
        if (job->state == JOB_PENDING && job->shape->min_nodes > NARROW)
            rig_cancel(rig, job->id);
    }
}

/* All nodes are free, and one job wants them all. */
void wide_widest(struct load *load)
{
    struct rig *rig = load->rig;
    bool more = true;

    set_partition(rig, PARTITION_DOWN);
    end_all(rig);
    cancel_waiting(rig);
    uint32_t id = rig_submit(rig, "prio=4294967200 N=10000 ex t=600 uid=1");
    while (more)
        rig_slice(rig, &more);
    set_partition(rig, PARTITION_UP);
    for (more = true; more && !rig_runs(rig, id);)
        rig_slice(rig, &more);
    if (!rig_runs(rig, id)) {
        fprintf(stderr, "bench-sched: the job of all nodes does not start\n");
        exit(1);
    }
}

void wide_test(struct load *load)
{
    double from_ms = cpu_ms();

    rig_test(load->rig, "N=1000 ex t=600 uid=1 : N=1000 ex gres=gpu:h100:8 t=600 uid=1");
    as_slice(load, from_ms);
}
