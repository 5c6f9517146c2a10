/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_turns.c - whose turn it is among many owners with limits
 *
 * All jobs of a shape would fit on the same nodes, so of those that limits allow the one of highest priority
 * must be the one that starts.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "core/accounts.h"
#include "sched/test/rig.h"
#include "test/unit.h"

enum { OWNERS = 24, NODES = 6, STARTS_MOST = 64 };

static uint64_t seed, first_seed;

static uint32_t dice(uint32_t sides)
{
    seed = hash_mix(seed + UINT64_C(0x9e3779b97f4a7c15));
    return (uint32_t)(seed >> 33) % sides;
}

static uint32_t started[STARTS_MOST];
static size_t starts;

static void on_start(struct rig *rig, const struct job *job)
{
    (void)rig;
    assert_true(starts < STARTS_MOST);
    started[starts++] = job->id;
}

static struct rig *cluster(void)
{
    struct str toml = { 0 };

    str_addf(&toml,
             "cluster_name = \"t\"\n[scheduler]\nselect = [\"CR_Core\"]\n%s"
             "[accounting]\nenforce = [\"limits\"]\n"
             "[[nodes]]\nnames = \"n[1-%u]\"\ncpus = 8\nmemory_mb = 8000\n"
             "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n"
             "[[qos]]\nname = \"normal\"\n[[accounts]]\nname = \"all\"\n",
             dice(2) ? "backfill = \"conservative\"\n" : "", NODES);
    for (unsigned i = 0; i < 3; i++)
        str_addf(&toml, "[[accounts]]\nname = \"a%u\"\nparent = \"all\"\ngrp_tres = \"cpu=%u\"\n",
                 i, 16 + 8 * dice(3));
    for (unsigned i = 1; i <= OWNERS; i++)
        str_addf(&toml, "[[users]]\nname = \"u%u\"\naccount = \"a%u\"\nmax_jobs = %u\n", i, i % 3,
                 1 + dice(2));
    struct rig *rig = rig_new(str_text(&toml));
    str_done(&toml);
    rig->on_start = on_start;
    return rig;
}

static void submit(struct rig *rig)
{
    static const char *const shapes[] = { "n=8 N=1", "n=4 N=1", "n=8 N=1" };
    char words[100];

    snprintf(words, sizeof(words), "%s t=600 uid=%u prio=%u", shapes[dice(3)], 1 + dice(OWNERS),
             1 + dice(1000));
    assert_int_not_equal(rig_submit(rig, words), 0);
}

static uint32_t random_running(const struct rig *rig)
{
    uint32_t found = 0, count = 0;

    for (const struct job *job = state_job_from(rig->state, 1); job;
         job = state_job_from(rig->state, (uint64_t)job->id + 1)) {
        if (job->state == JOB_RUNNING && dice(++count) == 0)
            found = job->id;
    }
    return found;
}

static bool goes_before(const struct rig *rig, const struct job *a, const struct job *b)
{
    uint64_t x = job_priority(rig->state, a), y = job_priority(rig->state, b);

    return x != y ? x > y : a->id < b->id;
}

static void it_was_their_turn(const struct rig *rig)
{
    for (size_t i = 0; i < starts; i++) {
        const struct job *job = rig_job(rig, started[i]);
        for (const struct job *other = state_job_from(rig->state, 1); other;
             other = state_job_from(rig->state, (uint64_t)other->id + 1)) {
            struct limit_hit hit;
            if (job_is_eligible(other) && other->shape == job->shape &&
                goes_before(rig, other, job) && limits_allow_any(rig->state, other, NULL, &hit))
                fail_msg("seed %llu: job %u of user %u started before %u of user %u",
                         (unsigned long long)first_seed, job->id, job->owner->uid, other->id,
                         other->owner->uid);
        }
    }
}

static void the_first_that_may_is_next(void **state)
{
    const char *more = getenv("SPUR_TEST_SEEDS");
    uint64_t last = more ? strtoull(more, NULL, 10) : 10;

    (void)state;
    for (uint64_t from = 1; from <= last; from++) {
        seed = first_seed = from;
        struct rig *rig = cluster();
        for (int step = 0; step < 500; step++) {
            uint32_t id;
            starts = 0;
            if (dice(100) < 52)
                submit(rig);
            else if ((id = random_running(rig)))
                rig_end(rig, id);
            rig->budget = 1 + dice(60);
            rig_plan(rig);
            it_was_their_turn(rig);
        }
        assert_int_equal(rig->refused, 0);
        rig_free(rig);
    }
}

UNIT_MAIN(UNIT(the_first_that_may_is_next))
