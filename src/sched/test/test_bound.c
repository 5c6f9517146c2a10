/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_bound.c - a wide job does not starve under a stream of small ones
 *
 * The cluster is full of small jobs and more of them come than it can run, when a wide job is submitted. It must
 * start when the longest limit of what ran then is over, or earlier: with each kind of thing that it can be wide in,
 * with one promised start and with many, and where jobs preempt others too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "sched/test/rig.h"
#include "test/unit.h"

#define S INT64_C(1000000)
enum { WAITING = 12, RUNNING_MOST = 256, SMALL_MOST = 4 };

static uint64_t seed;

static uint32_t dice(uint32_t sides)
{
    seed = hash_mix(seed + UINT64_C(0x9e3779b97f4a7c15));
    return (uint32_t)(seed >> 33) % sides;
}

/* ---- what there is ---- */

#define CPU_NODES                                                                  \
    "[[nodes]]\nnames = \"n[1-8]\"\ncpus = 8\nsockets = 2\ncores_per_socket = 4\n" \
    "memory_mb = 8000\n"
#define GPU_NODES                                                                          \
    "[[nodes]]\nnames = \"n[1-4]\"\ncpus = 8\nmemory_mb = 8000\ngres = [\"gpu:h100:4\"]\n" \
    "[[nodes]]\nnames = \"m[1-4]\"\ncpus = 8\nmemory_mb = 8000\ngres = [\"gpu:a100:4\"]\n"
#define MAIN "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n"
#define TREE                                                                           \
    "[topology]\nplugin = \"tree\"\n[[switches]]\nname = \"l1\"\nnodes = \"n[1-4]\"\n" \
    "[[switches]]\nname = \"l2\"\nnodes = \"n[5-8]\"\n"                                \
    "[[switches]]\nname = \"top\"\nswitches = \"l[1-2]\"\n"
#define BLOCKS                                                                        \
    "[topology]\nplugin = \"block\"\n[[blocks]]\nname = \"b1\"\nnodes = \"n[1-4]\"\n" \
    "[[blocks]]\nname = \"b2\"\nnodes = \"n[5-8]\"\n"
#define ACCOUNTS                                                            \
    "[accounting]\nenforce = [\"limits\"]\n[[accounts]]\nname = \"all\"\n"  \
    "[[accounts]]\nname = \"a\"\nparent = \"all\"\ngrp_tres = \"cpu=64\"\n" \
    "[[accounts]]\nname = \"b\"\nparent = \"all\"\ngrp_tres = \"cpu=64\"\n" \
    "[[users]]\nname = \"u1\"\naccount = \"a\"\n[[users]]\nname = \"u2\"\naccount = \"b\"\n"

#define TIERS "[preemption]\ntype = \"partition_prio\"\nmode = \"REQUEUE\"\n"

static const struct scene {
    const char *name, *scheduler, *rest;
    const char *wide;
    const char *small[SMALL_MOST];
    int64_t resv_s; /* a reservation of n1 begins then, for an hour */
} scenes[] = {
    { "all nodes", "", CPU_NODES MAIN, "N=8 ex", { "c=8", "c=4", "N=2 ex" }, 0 },
    { "fragments of cores", "", CPU_NODES MAIN, "N=8 tpn=8 n=64", { "c=1", "c=2", "c=3" }, 0 },
    { "tasks anywhere", "", CPU_NODES MAIN, "N=1-8 n=60", { "c=1", "c=2", "c=3" }, 0 },
    { "half of each", "", CPU_NODES MAIN, "N=8 tpn=5 n=40", { "c=3", "c=2", "c=5" }, 0 },
    { "memory",
      "",
      CPU_NODES MAIN,
      "N=8 mem=8000",
      { "c=1 mem=2000", "c=2 mem=1000", "mem=5000" },
      0 },
    { "licences",
      "licenses = [\"lic:10\"]\n",
      CPU_NODES MAIN,
      "lic=lic:10 c=1",
      { "c=1 lic=lic:1", "c=2 lic=lic:3", "c=1 lic=lic:2" },
      0 },
    { "GPUs of one type",
      "",
      GPU_NODES MAIN,
      "N=4 gres=gpu:h100:4",
      { "gres=gpu:h100:1", "gres=gpu:h100:2", "gres=gpu:1", "gres=gpu:a100:3" },
      0 },
    { "GPUs of the job", "", GPU_NODES MAIN, "gpus=gpu:30 n=8", { "gres=gpu:1", "gres=gpu:3" }, 0 },
    { "behind a reservation", "", CPU_NODES MAIN, "N=8 ex", { "c=4", "c=8", "c=2" }, 3000 },
    { "one switch",
      "",
      CPU_NODES MAIN TREE,
      "N=4 ex switches=1 swait=100000",
      { "c=8", "c=4", "c=3" },
      0 },
    { "side by side", "", CPU_NODES MAIN, "N=6 ex contig", { "c=8", "c=4", "c=3" }, 0 },
    { "segments", "", CPU_NODES MAIN BLOCKS, "N=8 ex segment=4", { "c=8", "c=4", "c=3" }, 0 },
    { "components", "", CPU_NODES MAIN, "N=4 ex : N=4 ex", { "c=8", "c=4", "c=3" }, 0 },
    { "exclusive", "", CPU_NODES MAIN, "N=1 ex", { "c=1", "c=2", "c=3" }, 0 },
    { "alone with his own", "", CPU_NODES MAIN, "N=4 n=32 exuser", { "c=1", "c=2", "c=3" }, 0 },
    { "a higher tier on the same nodes",
      "",
      CPU_NODES MAIN "[[partitions]]\nname = \"high\"\nnodes = \"ALL\"\npriority_tier = 5\n",
      "p=high N=8 ex",
      { "c=8", "c=4", "c=3" },
      0 },
    { "another partition on the same nodes",
      "",
      CPU_NODES MAIN "[[partitions]]\nname = \"more\"\nnodes = \"ALL\"\n",
      "p=more N=8 ex",
      { "c=8", "c=4", "c=3" },
      0 },
    { "a limit that others are at too",
      "",
      CPU_NODES MAIN ACCOUNTS,
      "N=8 ex uid=1",
      { "c=8 uid=2", "c=4 uid=2", "c=3 uid=2" },
      0 },
    { "features",
      "",
      "[[nodes]]\nnames = \"n[1-4]\"\ncpus = 8\nmemory_mb = 8000\nfeatures = [\"x\"]\n"
      "[[nodes]]\nnames = \"m[1-4]\"\ncpus = 8\nmemory_mb = 8000\nfeatures = [\"y\"]\n" MAIN,
      "N=4 ex C=x",
      { "c=8", "c=4", "c=3" },
      0 },
    { "so many of each feature",
      "",
      "[[nodes]]\nnames = \"n[1-4]\"\ncpus = 8\nmemory_mb = 8000\nfeatures = [\"x\"]\n"
      "[[nodes]]\nnames = \"m[1-4]\"\ncpus = 8\nmemory_mb = 8000\nfeatures = [\"y\"]\n" MAIN,
      "N=6 ex C=[x*3&y*3]",
      { "c=8", "c=4", "c=3" },
      0 },
    { "named nodes", "", CPU_NODES MAIN, "N=3 ex w=n[2-4]", { "c=8", "c=4", "c=3" }, 0 },
};

/* ---- a run ---- */

struct ending {
    uint32_t id;
    int64_t us;
};
static struct ending endings[RUNNING_MOST];
static size_t running;

static void on_start(struct rig *rig, const struct job *job)
{
    int64_t limit = job->time_limit_s;

    assert_true(running < RUNNING_MOST);
    endings[running].id = job->id;
    /* Many run until their limit. */
    endings[running++].us = rig->now_us + (dice(2) ? limit : 1 + dice((uint32_t)limit)) * S;
}

static void stream(struct rig *rig, const struct scene *scene)
{
    size_t kinds = 0;

    while (kinds < SMALL_MOST && scene->small[kinds])
        kinds++;
    while (state_counts(rig->state).pending < WAITING) {
        char words[120];
        snprintf(words, sizeof(words), "%s t=%u", scene->small[dice((uint32_t)kinds)],
                 300 * (1 + dice(8)));
        if (!rig_submit(rig, words))
            fail_msg("%s: %s is refused", scene->name, words);
    }
}

/* To the next end of a job. */
static void pass_time(struct rig *rig)
{
    size_t first = 0;

    for (size_t i = 1; i < running; i++)
        first = endings[i].us < endings[first].us ? i : first;
    if (!running) {
        rig_wait(rig, 60);
        return;
    }
    struct ending end = endings[first];
    endings[first] = endings[--running];
    int64_t wait = end.us > rig->now_us ? end.us - rig->now_us : 0;
    if (wait >= S)
        rig_wait(rig, wait / S);
    if (rig_runs(rig, end.id))
        rig_end(rig, end.id);
}

static int64_t longest_end_us(const struct rig *rig)
{
    int64_t last = rig->now_us;

    for (const struct job *job = state_job_from(rig->state, 1); job;
         job = state_job_from(rig->state, (uint64_t)job->id + 1)) {
        int64_t end = job->state == JOB_RUNNING ? job_end_by(job, job->run->start_us) : 0;
        last = end > last ? end : last;
    }
    return last;
}

static void run(const struct scene *scene, const char *backfill, const char *preemption,
                uint64_t from)
{
    struct str toml = { 0 };

    str_addf(&toml,
             "cluster_name = \"t\"\n[scheduler]\nselect = [\"CR_Core_Memory\"]\nbackfill = \"%s\"\n"
             "%s[jobs]\ndef_mem_per_cpu = 100\n%s%s",
             backfill, scene->scheduler, preemption, scene->rest);
    struct rig *rig = rig_new(str_text(&toml));
    str_done(&toml);
    seed = from;
    running = 0;
    rig->on_start = on_start;
    rig->check = false;
    for (int i = 0; i < 60; i++) {
        stream(rig, scene);
        rig_plan(rig);
        pass_time(rig);
    }
    /* Those that wait go away: it is the next. */
    for (const struct job *job = state_job_from(rig->state, 1), *next; job; job = next) {
        uint32_t id = job->id;
        if (job->state == JOB_PENDING)
            rig_cancel(rig, id);
        next = state_job_from(rig->state, (uint64_t)id + 1);
    }
    if (scene->resv_s)
        rig_reserve(rig, "maint", "n1", scene->resv_s, false);
    char words[120];
    snprintf(words, sizeof(words), "%s t=1200", scene->wide);
    if (strchr(words, ':') && strstr(words, " : ")) /* each component has its own limit */
        snprintf(words, sizeof(words), "N=4 ex t=1200 : N=4 ex t=1200");
    int64_t bound = longest_end_us(rig), begin = rig->now_us;
    uint32_t wide = rig_submit(rig, words);
    if (!wide)
        fail_msg("%s: %s is refused", scene->name, words);
    if (scene->resv_s && bound + 1200 * S > begin + scene->resv_s * S)
        bound = begin + (scene->resv_s + 3600) * S;
    for (int steps = 0; steps < 2000 && !rig_runs(rig, wide); steps++) {
        rig_plan(rig);
        rig_release_all(rig);
        rig_plan(rig);
        if (rig_runs(rig, wide))
            break;
        stream(rig, scene);
        rig_plan(rig);
        if (rig->now_us > bound + 10 * S)
            fail_msg("%s, %s, seed %llu: waits for %lld s, longer than %lld s", scene->name,
                     backfill, (unsigned long long)from, (long long)((rig->now_us - begin) / S),
                     (long long)((bound - begin) / S));
        pass_time(rig);
    }
    assert_true(rig_runs(rig, wide));
    assert_int_equal(rig->refused, 0);
    rig_free(rig);
}

static void a_wide_job_waits_no_longer_than_what_runs(void **state)
{
    const char *more = getenv("SPUR_TEST_SEEDS"), *only = getenv("SCENE");
    uint64_t last = more ? strtoull(more, NULL, 10) : 2;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(scenes); i++) {
        for (uint64_t from = 1; from <= last && (!only || strstr(scenes[i].name, only)); from++) {
            run(&scenes[i], "easy", "", from);
            run(&scenes[i], "conservative", "", from);
            run(&scenes[i], "easy", TIERS, from);
            run(&scenes[i], "conservative", TIERS, from);
        }
    }
}

UNIT_MAIN(UNIT(a_wide_job_waits_no_longer_than_what_runs))
