/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_het_preempt.c - room is made for heterogeneous jobs, for all components or for none
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/preempt.h"
#include "sched/test/rig.h"
#include "test/unit.h"

#define US INT64_C(1000000)
#define CLUSTER(mode, more)                                                                    \
    "cluster_name = \"t\"\n[scheduler]\nselect = [\"CR_Core_Memory\"]\nlicenses = [\"m:3\"]\n" \
    "[preemption]\ntype = \"partition_prio\"\nmode = \"" mode "\"\n" more                      \
    "[[nodes]]\nnames = \"n[1-4]\"\ncpus = 8\nsockets = 2\ncores_per_socket = 4\nmemory_mb = " \
    "8000\n"                                                                                   \
    "[[nodes]]\nnames = \"g[1-2]\"\ncpus = 8\nsockets = 2\ncores_per_socket = 4\nmemory_mb = " \
    "8000\ngres = [\"gpu:h100:4\"]\n"
#define LOW(more) \
    "[[partitions]]\nname = \"low\"\nnodes = \"ALL\"\ndefault = true\npriority_tier = 1\n" more
#define HIGH                                                                \
    "[[partitions]]\nname = \"high\"\nnodes = \"ALL\"\npriority_tier = 5\n" \
    "[[partitions]]\nname = \"stays\"\nnodes = \"ALL\"\npriority_tier = 1\npreempt_mode = \"OFF\"\n"
#define TIERS(mode) CLUSTER(mode, "") LOW("") HIGH

static JobState state_of(const struct rig *rig, uint32_t id)
{
    return (JobState)rig_job(rig, id)->state;
}

static size_t running(const struct rig *rig, uint32_t id)
{
    size_t count = 0;

    for (uint32_t i = 0; i < rig_job(rig, id)->more->het_count; i++)
        count += rig_runs(rig, id + i);
    return count;
}

/* A job on each node that is named, the last one is the youngest. */
static void fill(struct rig *rig, const char *words, const char *const *nodes, size_t count,
                 uint32_t *ids)
{
    for (size_t i = 0; i < count; i++) {
        char text[120];
        snprintf(text, sizeof(text), "%s w=%s", words, nodes[i]);
        ids[i] = rig_submit(rig, text);
        rig_wait(rig, 1);
        assert_int_equal(rig_plan(rig), 1);
    }
}

static const char *const all[] = { "n1", "n2", "n3", "n4", "g1", "g2" };

static void all_start_when_the_last_has_gone(void **state)
{
    struct rig *rig = rig_new(TIERS("CANCEL"));
    uint32_t ids[6], gone[2], found = 0;

    (void)state;
    rig->check = true;
    fill(rig, "c=8 mem=100", all, 6, ids);
    uint32_t het = rig_submit(rig, "p=high c=8 mem=100 : p=high c=4 gres=gpu:2 mem=100");
    rig_plan(rig);
    assert_int_equal(rig->preempts, 1); /* one command for all of them */
    for (int i = 0; i < 6; i++) {
        if (state_of(rig, ids[i]) == JOB_PREEMPTED)
            gone[found++] = ids[i];
    }
    assert_int_equal(found, 2); /* no more than must */
    assert_int_equal(gone[1], ids[5]);
    rig_release(rig, gone[0]);
    rig_plan(rig);
    assert_int_equal(running(rig, het), 0);
    /* What is free already is not for others. */
    uint32_t other = rig_submit(rig, "c=8 mem=100");
    rig_plan(rig);
    assert_false(rig_runs(rig, other));
    rig_release(rig, gone[1]);
    rig_plan(rig);
    assert_int_equal(running(rig, het), 2);
    assert_int_equal(rig->refused, 0);
    rig_free(rig);
}

/* With all that may go one component would still find no room: nobody goes for the other. */
static void nobody_goes_for_a_part_of_it(void **state)
{
    struct rig *rig = rig_new(TIERS("CANCEL"));
    uint32_t ids[6];

    (void)state;
    fill(rig, "c=8 mem=100", all, 4, ids);
    fill(rig, "p=stays c=8 mem=100", all + 4, 2, ids + 4);
    rig_submit(rig, "p=high c=8 mem=100 : p=high gres=gpu:1 mem=100");
    rig_plan(rig);
    assert_int_equal(rig->preempts, 0);
    for (int i = 0; i < 6; i++)
        assert_true(rig_runs(rig, ids[i]));
    /* Nor when each alone would. */
    rig_submit(rig, "p=high N=3 ex mem=100 : p=high N=2 ex mem=100");
    rig_plan(rig);
    assert_int_equal(rig->preempts, 0);
    rig_free(rig);
}

/* A component makes no use of rights that only another one has. */
static void each_for_itself(void **state)
{
    struct rig *rig = rig_new(TIERS("CANCEL"));
    uint32_t ids[6];

    (void)state;
    fill(rig, "c=8 mem=100", all, 6, ids);
    uint32_t het = rig_submit(rig, "p=high c=8 mem=100 : p=low c=8 mem=100");
    rig_plan(rig);
    assert_int_equal(rig->preempts, 0);
    rig_end(rig, ids[2]);
    rig_plan(rig);
    assert_int_equal(rig->preempts, 1);
    rig_release_all(rig);
    rig_plan(rig);
    assert_int_equal(running(rig, het), 2);
    rig_free(rig);
}

/* The first cannot be beside the second in the order they are asked for. */
static void in_whatever_order(void **state)
{
    struct rig *rig = rig_new(TIERS("CANCEL"));
    uint32_t ids[6];

    (void)state;
    fill(rig, "c=8 mem=100", all + 4, 2, ids);
    fill(rig, "p=stays c=8 mem=100", all, 4, ids + 2);
    uint32_t het = rig_submit(rig, "p=high c=4 mem=100 : p=high c=8 w=g2 mem=100");
    rig_plan(rig);
    assert_int_equal(rig->preempts, 1);
    rig_release_all(rig);
    rig_plan(rig);
    assert_int_equal(running(rig, het), 2);
    rig_free(rig);
}

static void requeued_and_suspended(void **state)
{
    static const char *const modes[] = { TIERS("REQUEUE"), TIERS("SUSPEND,GANG") };

    (void)state;
    for (int mode = 0; mode < 2; mode++) {
        struct rig *rig = rig_new(modes[mode]);
        uint32_t ids[6];
        size_t other = 0;
        rig->check = true;
        fill(rig, "c=8 mem=100", all, 6, ids);
        uint32_t het = rig_submit(rig, "p=high c=8 mem=100 t=60 : p=high c=8 mem=100 t=60");
        rig_plan(rig);
        rig_release_all(rig);
        rig_plan(rig);
        assert_int_equal(running(rig, het), 2);
        for (int i = 0; i < 6; i++)
            other += state_of(rig, ids[i]) == (mode ? JOB_SUSPENDED : JOB_PENDING);
        assert_int_equal(other, 2);
        rig_end(rig, het + 1);
        rig_release_all(rig);
        rig_plan(rig);
        other = 0;
        for (int i = 0; i < 6; i++)
            other += rig_runs(rig, ids[i]);
        assert_int_equal(other, 6); /* they are back */
        rig_free(rig);
    }
}

static void grace_and_exempt_time(void **state)
{
    struct rig *rig =
        rig_new(CLUSTER("REQUEUE", "exempt_time = \"10\"\n") LOW("grace_time = 120\n") HIGH);
    uint32_t ids[6];
    size_t told = 0;
    bool more;

    (void)state;
    fill(rig, "c=8 mem=100", all, 6, ids);
    uint32_t het = rig_submit(rig, "p=high c=8 mem=100 : p=high gres=gpu:4 c=8 mem=100");
    rig_plan(rig);
    assert_int_equal(rig->preempts, 0);
    rig_wait(rig, 601);
    rig_slice(rig, &more);
    assert_int_equal(rig->preempts, 1);
    events_each(event, &rig->events) told +=
        event->kind == EVENT_JOB_SIGNAL && event->signal == SIGTERM;
    assert_int_equal(told, 2);
    rig_wait(rig, 60);
    rig_plan(rig);
    assert_int_equal(running(rig, het), 0);
    /* A new planner knows who goes for it: nobody else has to. */
    sched_free(rig->sched);
    rig->sched = sched_new(rig->state);
    rig_plan(rig);
    assert_int_equal(rig->preempts, 1);
    uint32_t other = rig_submit(rig, "p=high c=8 nice=100 mem=100 w=g2");
    rig_wait(rig, 61);
    rig_release_all(rig);
    rig_plan(rig);
    assert_int_equal(running(rig, het), 2);
    assert_int_equal(rig->preempts, 1);
    assert_false(rig_runs(rig, other));
    rig_free(rig);
}

/* ---- heterogeneous jobs that go ---- */

static void components_go_and_come_back_together(void **state)
{
    static const char *const modes[] = { TIERS("CANCEL"), TIERS("REQUEUE"), TIERS("SUSPEND,GANG") };

    (void)state;
    for (int mode = 0; mode < 3; mode++) {
        struct rig *rig = rig_new(modes[mode]);
        rig->check = true;
        uint32_t het = rig_submit(rig, "c=8 mem=100 w=n1 : c=8 mem=100 w=n2");
        uint32_t keeps[4];
        rig_plan(rig);
        assert_int_equal(running(rig, het), 2);
        fill(rig, "p=stays c=8 mem=100", all + 2, 4, keeps);
        uint32_t high = rig_submit(rig, "p=high c=8 mem=100 t=60 w=n2");
        rig_plan(rig);
        assert_int_equal(running(rig, het), 0);
        assert_int_equal(state_of(rig, het), state_of(rig, het + 1));
        if (mode == 2)
            assert_int_equal(state_of(rig, het), JOB_SUSPENDED);
        rig_release_all(rig);
        rig_plan(rig);
        assert_true(rig_runs(rig, high));
        rig_plan(rig);
        assert_int_equal(running(rig, het), 0); /* the other node is free, and of no use to one */
        rig_end(rig, high);
        rig_plan(rig);
        assert_int_equal(running(rig, het), mode ? 2 : 0);
        rig_free(rig);
    }
}

static void one_that_stays_saves_the_others(void **state)
{
    struct rig *rig = rig_new(TIERS("CANCEL"));
    uint32_t keeps[4];

    (void)state;
    uint32_t het = rig_submit(rig, "c=8 mem=100 w=n1 : p=stays c=8 mem=100 w=n2");
    rig_plan(rig);
    fill(rig, "p=stays c=8 mem=100", all + 2, 4, keeps);
    rig_submit(rig, "p=high c=8 mem=100");
    rig_plan(rig);
    assert_int_equal(rig->preempts, 0);
    assert_int_equal(running(rig, het), 2);
    rig_free(rig);
}

/* ---- what else must be there ---- */

#define LIMITED                                                          \
    "[accounting]\nenforce = [\"limits\"]\n[[accounts]]\nname = \"a\"\n" \
    "[[users]]\nname = \"u1000\"\naccount = \"a\"\n"                     \
    "[[users]]\nname = \"u2\"\naccount = \"a\"\ngrp_tres = \"cpu=12\"\n"

static void not_when_limits_let_only_a_part_of_it_start(void **state)
{
    struct rig *rig = rig_new(TIERS("CANCEL") LIMITED);
    uint32_t ids[6];

    (void)state;
    fill(rig, "c=8 mem=100", all, 6, ids);
    rig_submit(rig, "uid=2 p=high c=8 mem=100 : uid=2 p=high c=8 mem=100");
    rig_plan(rig);
    assert_int_equal(rig->preempts, 0);
    uint32_t het = rig_submit(rig, "uid=2 p=high c=8 mem=100 : uid=2 p=high c=4 mem=100");
    rig_plan(rig);
    assert_int_equal(rig->preempts, 1);
    /* What it will count for is kept for it, too. */
    rig_end(rig, ids[0]);
    uint32_t other = rig_submit(rig, "uid=2 p=high nice=5 c=4 mem=100");
    rig_plan(rig);
    assert_false(rig_runs(rig, other));
    rig_release_all(rig);
    rig_plan(rig);
    assert_int_equal(running(rig, het), 2);
    assert_false(rig_runs(rig, other));
    rig_end(rig, het);
    rig_release_all(rig);
    rig_plan(rig);
    assert_true(rig_runs(rig, other));
    rig_free(rig);
}

static void not_when_licences_are_there_for_a_part_of_it(void **state)
{
    struct rig *rig = rig_new(TIERS("CANCEL"));
    uint32_t ids[6];

    (void)state;
    fill(rig, "c=8 mem=100", all, 6, ids);
    uint32_t one = rig_submit(rig, "p=high c=1 w=n1 lic=m:1 mem=100");
    rig_plan(rig);
    rig_release_all(rig);
    rig_plan(rig);
    assert_true(rig_runs(rig, one));
    uint64_t before = rig->preempts;
    rig_submit(rig, "p=high c=8 lic=m:1 mem=100 : p=high c=8 lic=m:2 mem=100");
    rig_plan(rig);
    assert_int_equal(rig->preempts, before);
    rig_end(rig, one);
    rig_plan(rig);
    assert_int_equal(rig->preempts, before + 1);
    rig_free(rig);
}

/* ---- very many of them ---- */

#define WIDE                                                                                   \
    "cluster_name = \"t\"\n[scheduler]\nselect = [\"CR_Core_Memory\"]\nlicenses = [\"m:3\"]\n" \
    "[preemption]\ntype = \"partition_prio\"\nmode = \"CANCEL\"\n"                             \
    "[[nodes]]\nnames = \"n[1-100]\"\ncpus = 8\nsockets = 2\ncores_per_socket = 4\n"           \
    "memory_mb = 8000\n"

static size_t preempted(const struct rig *rig, uint32_t first, uint32_t count)
{
    size_t sum = 0;

    for (uint32_t i = 0; i < count; i++)
        sum += state_of(rig, first + i) == JOB_PREEMPTED;
    return sum;
}

static void many_are_told_some_at_a_time(void **state)
{
    struct rig *rig = rig_new(WIDE LOW("") HIGH);
    uint32_t first = 0;
    bool more = true;
    unsigned slices = 0;

    (void)state;
    rig->check = false; /* it takes long with so many jobs */
    for (int i = 0; i < 800; i++) {
        uint32_t id = rig_submit(rig, "c=1 mem=100");
        first = first ? first : id;
    }
    rig_plan(rig);
    rig->budget = 64;
    uint32_t het = rig_submit(rig, "p=high N=40 ex : p=high N=60 ex");
    size_t most = 0, before = 0;
    for (uint64_t preempts = 0; more || preempts != rig->preempts; slices++) {
        preempts = rig->preempts;
        rig_slice(rig, &more);
        size_t now = preempted(rig, first, 800);
        most = MAX(most, now - before);
        before = now;
    }
    assert_int_equal(before, 800);
    assert_true(most <= 256);
    assert_true(slices > 10);
    assert_int_equal(rig->preempts, 4);
    assert_int_equal(rig->refused, 0);
    for (uint32_t i = 0; i < 800; i++)
        rig_release(rig, first + i);
    rig_plan(rig);
    assert_int_equal(running(rig, het), 2);
    rig_free(rig);
}

/* It is cancelled while they are told: the others stay. Jobs that end meanwhile are no hindrance. */
static void who_is_not_needed_any_more_stays(void **state)
{
    struct rig *rig = rig_new(WIDE LOW("") HIGH);
    uint32_t first = 0;
    bool more;

    (void)state;
    rig->check = false; /* it takes long with so many jobs */
    for (int i = 0; i < 800; i++) {
        uint32_t id = rig_submit(rig, "c=1 mem=100");
        first = first ? first : id;
    }
    rig_plan(rig);
    rig->budget = 64;
    uint32_t het = rig_submit(rig, "p=high N=50 ex : p=high N=50 ex");
    for (int i = 0; i < 1000 && rig->preempts < 2; i++) {
        rig_slice(rig, &more);
        if (i < 20)
            rig_end(rig, first + 799 - (uint32_t)i);
    }
    size_t gone = preempted(rig, first, 800);
    assert_true(gone > 256 && gone <= 512);
    rig_cancel(rig, het);
    rig_plan(rig);
    assert_int_equal(preempted(rig, first, 800), gone);
    assert_int_equal(rig->refused, 0);
    rig_free(rig);
}

/* All components would start now because others made room; nobody goes for a question. */
static void a_question_counts_on_preemption(void **state)
{
    struct rig *rig = rig_new(TIERS("REQUEUE"));
    uint32_t ids[ARRAY_LEN(all)];

    (void)state;
    fill(rig, "ex", all, ARRAY_LEN(all), ids);
    assert_int_equal(rig_test(rig, "p=high N=2 ex : p=high gres=gpu:4"), rig->now_us);
    assert_int_equal(rig_test(rig, "p=high N=4 ex : p=high N=2 ex"), rig->now_us);
    /* For one of them nobody goes. */
    assert_true(rig_test(rig, "p=high N=2 ex : N=2 ex t=60") != rig->now_us);
    assert_true(rig_test(rig, "N=2 ex t=60 : N=2 ex t=60") != rig->now_us);
    assert_int_equal(rig_test(rig, "p=high N=4 ex : p=high N=3 ex"), INT64_MAX); /* there are six */
    assert_int_equal(rig_plan(rig), 0);
    assert_int_equal(rig->preempts, 0);
    rig_free(rig);
}

/* ---- any history ---- */

static int64_t last_start_us[1000]; /* by job */

static void note_start(struct rig *rig, const struct job *job)
{
    assert_true(job->id < ARRAY_LEN(last_start_us));
    last_start_us[job->id] = rig->now_us;
}

struct story {
    struct rig *rig;
    unsigned luck;
    uint32_t ids[800], count;
};

static unsigned dice(struct story *story, unsigned sides)
{
    return (unsigned)rand_r(&story->luck) % sides;
}

static void add_component(struct story *story, char *words, size_t size)
{
    static const char *const partition_queues[] = { "low", "low", "high", "top", "low,top" };
    size_t len = strlen(words);

    snprintf(words + len, size - len, "%sp=%s N=%u n=%u mem=%u t=%u%s%s", len ? " : " : "",
             partition_queues[dice(story, 5)], 1 + dice(story, 2), 2 + dice(story, 7),
             100 + dice(story, 1500), 60 + dice(story, 600), dice(story, 5) ? "" : " gres=gpu:1",
             dice(story, 6) ? "" : " lic=m:1");
}

static void add_job(struct story *story)
{
    char words[400] = "";

    for (unsigned i = 1 + (dice(story, 3) == 0) * (1 + dice(story, 2)); i-- > 0;)
        add_component(story, words, sizeof(words));
    uint32_t id = rig_submit(story->rig, words);
    if (!id)
        return;
    uint32_t parts =
        MAX(1, rig_job(story->rig, id)->more ? rig_job(story->rig, id)->more->het_count : 0);
    for (uint32_t i = 0; i < parts; i++)
        story->ids[story->count++] = id + i;
}

/* Who goes, goes for a job that starts as soon as all of them have gone, whatever becomes of it then. */
static void judge(struct story *story, unsigned seed, int64_t since_us)
{
    struct rig *rig = story->rig;
    struct gone {
        uint32_t by;
        int64_t at_us;
    } gone[ARRAY_LEN(story->ids)];
    size_t count = 0;

    for (uint32_t i = 0; i < story->count; i++) {
        const struct job *job = rig_job(rig, story->ids[i]);
        if (job && job->more && job->more->preempt_us > since_us &&
            rig_job(rig, job->more->preempted_by))
            gone[count++] = (struct gone){ job->more->preempted_by, job->more->preempt_us };
    }
    rig_release_all(rig);
    rig_plan(rig);
    for (size_t i = 0; i < count; i++) {
        const struct job *job = rig_job(rig, gone[i].by);
        for (uint32_t k = 0; job && k < (job->more ? MAX(1, job->more->het_count) : 1); k++)
            if (last_start_us[gone[i].by + k] < gone[i].at_us)
                fail_msg("seed %u: some went for job %u, which does not start", seed, gone[i].by);
    }
}

static void random_histories(void **state)
{
    static const char *const modes[] = { "CANCEL", "REQUEUE", "SUSPEND,GANG" };
    static const unsigned failed_once[] = { 45, 122, 343, 385 };
    const char *more = getenv("SPUR_TEST_SEEDS");
    unsigned last = more ? (unsigned)atoi(more) : 60;
    uint64_t preempts = 0;

    (void)state;
    for (unsigned i = 0; i < ARRAY_LEN(failed_once) + last; i++) {
        unsigned seed =
            i < ARRAY_LEN(failed_once) ? failed_once[i] : i + 1 - (unsigned)ARRAY_LEN(failed_once);
        char toml[2048];
        struct story story = { .luck = seed * 7919 };
        snprintf(toml, sizeof(toml),
                 CLUSTER("%s", "") LOW("%s") HIGH
                 "[[partitions]]\nname = \"top\"\nnodes = \"ALL\"\npriority_tier = 9\n",
                 modes[seed % 3], seed % 2 ? "" : "preempt_mode = \"CANCEL\"\n");
        struct rig *rig = story.rig = rig_new(toml);
        memset(last_start_us, 0, sizeof(last_start_us));
        rig->on_start = note_start;
        rig->check = seed % 4 == 0;
        rig->budget = seed % 4 ? rig->budget : 16;
        for (int step = 0; step < 80; step++) {
            int64_t since_us = rig->now_us;
            add_job(&story);
            rig_plan(rig);
            judge(&story, seed, since_us);
            for (uint32_t k = 0; k < story.count; k++) {
                const struct job *job = rig_job(rig, story.ids[k]);
                if (job && rig_runs(rig, job->id) && dice(&story, 10) == 0)
                    rig_end(rig, job->id);
            }
            rig_release_all(rig);
            rig_wait(rig, 1 + dice(&story, 20));
        }
        assert_int_equal(rig->refused, 0);
        preempts += rig->preempts;
        rig_free(rig);
    }
    assert_true(preempts > last);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_start_when_the_last_has_gone),
        cmocka_unit_test(nobody_goes_for_a_part_of_it),
        cmocka_unit_test(each_for_itself),
        cmocka_unit_test(in_whatever_order),
        cmocka_unit_test(requeued_and_suspended),
        cmocka_unit_test(grace_and_exempt_time),
        cmocka_unit_test(components_go_and_come_back_together),
        cmocka_unit_test(one_that_stays_saves_the_others),
        cmocka_unit_test(not_when_limits_let_only_a_part_of_it_start),
        cmocka_unit_test(not_when_licences_are_there_for_a_part_of_it),
        cmocka_unit_test(many_are_told_some_at_a_time),
        cmocka_unit_test(who_is_not_needed_any_more_stays),
        cmocka_unit_test(a_question_counts_on_preemption),
        cmocka_unit_test(random_histories),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
