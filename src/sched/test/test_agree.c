/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_agree.c - what the planner proposes core carries out
 *
 * Random jobs of all kinds at once: shared CPUs in turns, preemption in every mode, heterogeneous jobs, arrays,
 * reservations, licences, limits, nodes that come and go. Starts and preemptions are applied in the order they
 * were planned with nothing between, so each one that is refused is a thing they do not see alike.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sched/test/rig.h"
#include "test/unit.h"

enum { SEEDS = 48, STEPS = 70, JOBS = 1200 };

struct story {
    struct rig *rig;
    unsigned luck, resvs;
    uint32_t ids[JOBS], count;
};

static unsigned dice(struct story *story, unsigned sides)
{
    return (unsigned)rand_r(&story->luck) % sides;
}

static const char conf[] =
    "cluster_name = \"t\"\n[scheduler]\nselect = [\"%s\"]\nlicenses = [\"m:4\", \"k:2\"]\n"
    "bookings = %u\ntime_slice = 10\n"
    "[preemption]\ntype = \"%s\"\nmode = [%s]\n%s"
    "[accounting]\nenforce = [\"limits\", \"qos\"]\n"
    "[[qos]]\nname = \"normal\"\n[[qos]]\nname = \"urgent\"\npreempt = [\"normal\"]\n"
    "[[accounts]]\nname = \"a\"\ngrp_tres = \"cpu=%u\"\n"
    "[[users]]\nname = \"u1\"\naccount = \"a\"\nmax_jobs = 12\nqos = [\"normal\", \"urgent\"]\n"
    "[[users]]\nname = \"u2\"\naccount = \"a\"\nqos = [\"normal\", \"urgent\"]\n"
    "[[nodes]]\nnames = \"n[1-5]\"\ncpus = 8\nsockets = 2\ncores_per_socket = 4\n"
    "memory_mb = 8000\nfeatures = [\"old\"]\n"
    "[[nodes]]\nnames = \"g[1-3]\"\ncpus = 8\nsockets = 2\ncores_per_socket = 2\n"
    "threads_per_core = 2\nmemory_mb = 8000\ngres = [\"gpu:h100:4\", \"shard:16\"]\n"
    "[[partitions]]\nname = \"low\"\nnodes = \"ALL\"\ndefault = true\npriority_tier = 1\n"
    "oversubscribe = \"%s\"\n"
    "[[partitions]]\nname = \"mid\"\nnodes = \"n[1-5],g1\"\npriority_tier = 3\n"
    "oversubscribe = \"YES:2\"\nmax_cpus_per_node = 6\npreempt_mode = \"%s\"\n"
    "[[partitions]]\nname = \"high\"\nnodes = \"ALL\"\npriority_tier = 5\n"
    "[[partitions]]\nname = \"alone\"\nnodes = \"n[3-5]\"\npriority_tier = 2\n"
    "oversubscribe = \"EXCLUSIVE\"\n";

static struct rig *cluster(unsigned seed)
{
    static const char *const modes[] = { "\"SUSPEND\", \"GANG\"", "\"REQUEUE\"", "\"CANCEL\"",
                                         "\"GANG\", \"SUSPEND\"" };
    static const char *const shares[] = { "FORCE:2", "YES:3", "NO", "FORCE:3" };
    static const char *const selects[] = { "CR_Core_Memory", "CR_CPU", "CR_Core" };
    static const char *const mids[] = { "REQUEUE", "CANCEL", "OFF" };
    char toml[4096];

    snprintf(toml, sizeof(toml), conf, selects[seed % 3], seed % 4 == 3 ? 16 : 1,
             seed % 5 == 4 ? "qos" : "partition_prio", modes[seed % 4],
             seed % 6 == 5 ? "exempt_time = \"1\"\n" : "", 24 + seed % 7 * 8, shares[seed / 2 % 4],
             mids[seed % 3]);
    return rig_new(toml);
}

static void add_component(struct story *story, char *words, size_t size)
{
    static const char *const partition_queues[] = { "low",  "low",   "low",     "mid",
                                                    "high", "alone", "low,high" };
    static const char *const kinds[] = { "",
                                         "",
                                         "",
                                         " gres=gpu:1",
                                         " gres=gpu:h100:2",
                                         " gres=shard:3",
                                         " lic=m:2",
                                         " lic=m:1,k:1",
                                         " ex",
                                         " exuser",
                                         " share",
                                         " C=old",
                                         " contig",
                                         " spread",
                                         " over" };
    size_t len = strlen(words);

    snprintf(words + len, size - len, "%suid=%u qos=%s p=%s N=%u n=%u mem=%u t=%u%s",
             len ? " : " : "", 1 + dice(story, 2), dice(story, 4) ? "normal" : "urgent",
             partition_queues[dice(story, ARRAY_LEN(partition_queues))], 1 + dice(story, 2),
             2 + dice(story, 6), 100 + dice(story, 1500), 60 + dice(story, 600),
             kinds[dice(story, ARRAY_LEN(kinds))]);
}

static void add_job(struct story *story)
{
    char words[600] = "";
    unsigned parts = dice(story, 5) ? 1 : 2 + dice(story, 2);

    for (unsigned i = 0; i < parts; i++)
        add_component(story, words, sizeof(words));
    if (parts == 1 && dice(story, 8) == 0)
        strcat(words, " array=0-4%2");
    if (parts == 1 && story->resvs && dice(story, 12) == 0)
        sprintf(words + strlen(words), " resv=r%u", 1 + dice(story, story->resvs));
    uint32_t id = rig_submit(story->rig, words);
    for (uint32_t i = 0; id && i < parts && story->count < JOBS; i++)
        story->ids[story->count++] = id + i;
}

/* What nodes and people do meanwhile. */
static void something_else(struct story *story)
{
    struct rig *rig = story->rig;
    char name[16];

    switch (dice(story, 14)) {
    case 0:
        snprintf(name, sizeof(name), "n%u", 1 + dice(story, 5));
        rig_node(rig, name, dice(story, 2) ? "DRAIN" : "RESUME");
        break;
    case 1:
        if (story->resvs < 2) {
            snprintf(name, sizeof(name), "r%u", story->resvs + 1);
            rig_reserve(rig, name, story->resvs++ ? "n[1-2]" : "g3", dice(story, 300), false);
        }
        break;
    case 2:
        if (story->count) {
            uint32_t id = story->ids[dice(story, story->count)];
            const struct job *job = rig_job(rig, id);
            if (job && !job_has_ended(job))
                rig_cancel(rig, id);
        }
        break;
    }
}

static void end_some(struct story *story)
{
    struct rig *rig = story->rig;

    for (size_t n = 0; n < state_node_count(rig->state); n++) {
        const struct node *node = state_node_at(rig->state, n);
        for (size_t i = 0; i < node->jobs.len;) {
            const struct job *job = node->jobs.items[i];
            size_t before = node->jobs.len;
            if (job_has_ended(job) || job->flags & JOB_FLAG_COMPLETING)
                rig_release(rig, job->id);
            else if (job->state == JOB_RUNNING && dice(story, 12) == 0)
                rig_end(rig, job->id);
            i = node->jobs.len < before ? 0 : i + 1;
        }
    }
}

static void all_done(const struct rig *rig, unsigned seed, int step)
{
    if (rig->refused)
        fail_msg("seed %u, step %d: %llu refused", seed, step, (unsigned long long)rig->refused);
}

static void what_is_planned_is_done(void **state)
{
    (void)state;
    const char *more = getenv("SPUR_TEST_SEEDS"), *from = getenv("SPUR_TEST_SEED");
    unsigned seed = from ? (unsigned)atoi(from) : 1, last = more ? (unsigned)atoi(more) : SEEDS;
    uint64_t preempts = 0, started = 0;
    for (; seed <= last; seed++) {
        struct story story = { .luck = seed * 104729, .rig = cluster(seed) };
        struct rig *rig = story.rig;
        rig->check = seed % 8 == 0;
        rig->budget = seed % 3 ? rig->budget : 24;
        for (int step = 0; step < STEPS; step++) {
            for (unsigned i = dice(&story, 3); i-- > 0;)
                add_job(&story);
            something_else(&story);
            rig_plan(rig);
            all_done(rig, seed, step);
            end_some(&story);
            rig_plan(rig);
            all_done(rig, seed, step);
            rig_wait(rig, 1 + dice(&story, 20));
        }
        preempts += rig->preempts;
        started += rig->started;
        rig_free(rig);
    }
    assert_true(from || (preempts > 100 && started > 1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(what_is_planned_is_done) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
