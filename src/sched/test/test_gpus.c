// SPDX-License-Identifier: Apache-2.0
/*
 * test_gpus.c - GPUs of the whole job (--gpus): on as few nodes as have them, more on those that have more
 */
#include <string.h>

#include "core/apply.h"
#include "sched/test/rig.h"
#include "test/unit.h"

#define HEAD "cluster_name = \"t\"\n[scheduler]\nselect = [\"CR_Core\"]\n"
#define NODES(names, gres)                                                              \
    "[[nodes]]\nnames = \"" names "\"\ncpus = 32\nsockets = 2\ncores_per_socket = 16\n" \
    "memory_mb = 64000\ngres = [" gres "]\n"
#define MAIN "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n"

/* As in the request that was refused: 8, 8, 8, 8, 6, 6. */
#define UNEVEN HEAD NODES("e[1-4]", "\"gpu:8\"") NODES("s[1-2]", "\"gpu:6\"") MAIN
#define TYPES                                                                   \
    HEAD NODES("m[1-2]", "\"gpu:a:4\", \"gpu:b:2\"") NODES("x1", "\"gpu:a:4\"") \
        NODES("y1", "\"gpu:b:4\"") MAIN

/* "e1=8/1 e2=2/1": GPUs and tasks of each node. */
static const char *shares(const struct rig *rig, uint32_t id)
{
    static struct str text;
    const struct job *job = rig_job(rig, id);

    str_clear(&text);
    for (unsigned i = 0; job && job->run && i < job->run->count; i++) {
        const struct job_part *part = &job->run->parts[i];
        uint64_t gpus = 0;
        for (size_t g = 0; g < part->gres_count; g++)
            gpus += part->gres[g].count;
        str_addf(&text, "%s%s=%u/%u", i ? " " : "", part->name, (unsigned)gpus, part->tasks);
    }
    return str_text(&text);
}

struct row {
    const char *words, *shares; /* NULL: is refused */
};

static void answers(const char *toml, const struct row *rows, size_t count)
{
    struct rig *rig = rig_new(toml);

    rig->check = true;
    for (size_t i = 0; i < count; i++) {
        enum err_code code = rig_admit(rig, rows[i].words);
        if ((code == 0) != (rows[i].shares != NULL))
            fail_msg("%s: admitted with %d", rows[i].words, code);
        if (code)
            continue;
        assert_int_equal(rig_test(rig, rows[i].words), rig->now_us);
        uint32_t id = rig_submit(rig, rows[i].words);
        rig_plan(rig);
        if (strcmp(shares(rig, id), rows[i].shares) != 0)
            fail_msg("%s: %s", rows[i].words, shares(rig, id));
        rig_end(rig, id);
        rig_plan(rig);
    }
    rig_free(rig);
}

static void each_node_gives_what_it_has(void **state)
{
    static const struct row rows[] = {
        { "gpus=gpu:38", "e1=8/1 e2=8/1 e3=8/1 e4=8/1 s1=6/1" },
        { "gpus=gpu:44", "e1=8/1 e2=8/1 e3=8/1 e4=8/1 s1=6/1 s2=6/1" },
        { "gpus=gpu:45", NULL },
        { "gpus=gpu:10", "s1=5/1 s2=5/1" },
        { "gpus=gpu:31", "e1=8/1 e2=8/1 e3=8/1 e4=7/1" },
        { "N=6 gpus=gpu:43", "e1=8/1 e2=8/1 e3=8/1 e4=8/1 s1=6/1 s2=5/1" },
        { "N=6 gpus=gpu:6", "e1=1/1 e2=1/1 e3=1/1 e4=1/1 s1=1/1 s2=1/1" },
        { "N=6 gpus=gpu:5", NULL },
        { "N=2-3 gpus=gpu:20", "e1=7/1 e2=7/1 e3=6/1" },
        { "N=1-2 gpus=gpu:20", NULL },
        { "N=1 gpus=gpu:9", NULL },
        { "w=s1 gpus=gpu:10", "e1=5/1 s1=5/1" },
        { "w=s1 gpus=gpu:38", "e1=8/1 e2=8/1 e3=8/1 e4=8/1 s1=6/1" },
        { "w=s[1-2] gpus=gpu:39", "e1=7/1 e2=7/1 e3=7/1 e4=7/1 s1=6/1 s2=5/1" },
        { "x=e1 gpus=gpu:37", NULL },
        { "x=e1 gpus=gpu:36", "e2=8/1 e3=8/1 e4=8/1 s1=6/1 s2=6/1" },
        { "contig gpus=gpu:27", "e1=7/1 e2=7/1 e3=7/1 e4=6/1" },
        { "contig N=3 gpus=gpu:20", "e1=7/1 e2=7/1 e3=6/1" },
    };

    (void)state;
    answers(UNEVEN, rows, ARRAY_LEN(rows));
}

/* Tasks have their CPUs on these nodes too, but not more where more GPUs are. */
static void tasks_are_where_cpus_are(void **state)
{
    static const struct row rows[] = {
        { "n=4 gpus=gpu:10", "s1=5/2 s2=5/2" },
        { "n=40 gpus=gpu:4", "s1=2/20 s2=2/20" }, /* one node has GPUs for it, but not CPUs */
        { "n=40 gpus=gpu:2", "s1=1/20 s2=1/20" },
        { "n=40 N=1 gpus=gpu:4", NULL },
        { "n=1 gpus=gpu:8", "e1=8/1" },
        { "n=1 gpus=gpu:9", NULL }, /* two nodes, and one would be without a task */
        { "n=2 gpus=gpu:16", "e1=8/1 e2=8/1" },
        { "n=2 gpus=gpu:17", NULL },
        { "N=2 gpt=gpu:2 gres=gpu:4", "s1=4/2 s2=4/2" },
        { "gpt=gpu:2 gres=gpu:4", "s1=4/2" },
        { "gpt=gpu:3 gres=gpu:4", NULL },
        { "gpt=gpu:3", NULL },
        { "n=70 gpus=gpu:2", NULL }, /* two nodes have not the CPUs */
        { "n=70 gpus=gpu:3", "e1=1/24 s1=1/24 s2=1/22" },
        { "n=64 gpus=gpu:9", "s1=5/32 s2=4/32" },
        { "n=192 gpus=gpu:44", "e1=8/32 e2=8/32 e3=8/32 e4=8/32 s1=6/32 s2=6/32" },
        { "n=193 gpus=gpu:44", NULL },
        { "N=2 n=8 c=4 gpus=gpu:12", "s1=6/4 s2=6/4" },
        { "tpn=2 gpus=gpu:12", "s1=6/2 s2=6/2" },
        { "tpn=2 N=3 gpus=gpu:12", "e1=4/2 s1=4/2 s2=4/2" },
        { "cpg=4 gpus=gpu:10", "s1=5/1 s2=5/1" },
        { "cpg=8 gpus=gpu:10", "e1=4/1 s1=4/1 s2=2/1" },
        { "cpg=8 gpus=gpu:24", "e1=4/1 e2=4/1 e3=4/1 e4=4/1 s1=4/1 s2=4/1" },
        { "cpg=8 gpus=gpu:25", NULL },
        { "tpg=2 gpus=gpu:10", "s1=5/10 s2=5/10" },
        { "tpg=2 n=20", "s1=5/10 s2=5/10" },
        { "tpg=2 n=4 gpus=gpu:4", "s1=4/8" },
        { "tpg=8 gpus=gpu:10", "e1=4/32 s1=4/32 s2=2/16" },
        { "tpg=8 gpus=gpu:25", NULL },
        { "ex N=3 gpus=gpu:4", "e1=8/1 s1=6/1 s2=6/1" },
    };

    (void)state;
    answers(UNEVEN, rows, ARRAY_LEN(rows));
}

/* Below switches: all of it below one, and on few leaves. */
static void switches_are_kept_to(void **state)
{
#define LEAVES                                                                         \
    "[topology]\nplugin = \"tree\"\n[[switches]]\nname = \"l1\"\nnodes = \"e[1-4]\"\n" \
    "[[switches]]\nname = \"l2\"\nnodes = \"s[1-2]\"\n"
    static const struct row joined[] = {
        { "gpus=gpu:38", "e1=8/1 e2=8/1 e3=8/1 e4=8/1 s1=6/1" },
        { "gpus=gpu:12", "s1=6/1 s2=6/1" },
        { "gpus=gpu:20", "e1=7/1 e2=7/1 e3=6/1" },
        { "n=40 gpus=gpu:4", "s1=2/20 s2=2/20" },
        { "n=70 gpus=gpu:3", "e1=1/24 e2=1/24 e3=1/22" },
    };
    static const struct row apart[] = {
        { "gpus=gpu:32", "e1=8/1 e2=8/1 e3=8/1 e4=8/1" },
        { "gpus=gpu:33", NULL },
        { "gpus=gpu:12", "s1=6/1 s2=6/1" },
        { "n=128 gpus=gpu:12", "e1=3/32 e2=3/32 e3=3/32 e4=3/32" },
        { "n=129 gpus=gpu:12", NULL },
    };

    (void)state;
    answers(UNEVEN LEAVES "[[switches]]\nname = \"top\"\nswitches = \"l[1-2]\"\n", joined,
            ARRAY_LEN(joined));
    answers(UNEVEN LEAVES, apart, ARRAY_LEN(apart));
}

static void each_node_has_all_types(void **state)
{
    static const struct row rows[] = {
        { "gpus=gpu:a:3 gpus=gpu:b:2", "m1=5/1" },
        { "gpus=gpu:a:6 gpus=gpu:b:2", "m1=4/1 m2=4/1" },
        { "gpus=gpu:a:8 gpus=gpu:b:4", "m1=6/1 m2=6/1" },
        { "gpus=gpu:a:9 gpus=gpu:b:4", NULL },
        { "gpus=gpu:a:3 gpus=gpu:b:3", "m1=4/1 m2=2/1" },
        { "gpus=gpu:a:12", "m1=4/1 m2=4/1 x1=4/1" },
        { "gpus=gpu:b:8", "m1=2/1 m2=2/1 y1=4/1" },
        { "gpus=gpu:14", "m1=6/1 x1=4/1 y1=4/1" },
        { "gpus=gpu:20", "m1=6/1 m2=6/1 x1=4/1 y1=4/1" },
        { "gpus=gpu:21", NULL },
        { "cpg=8 gpus=gpu:a:4 gpus=gpu:b:4", "m1=4/1 m2=4/1" },
    };

    (void)state;
    answers(TYPES, rows, ARRAY_LEN(rows));
}

/* Cores of two threads are given whole: tasks fill them, and with one task a core it is one GPU a core too. */
static void cores_are_filled(void **state)
{
    static const struct {
        const char *words;
        uint64_t cpus;
    } rows[] = {
        { "n=70 gpus=gpu:4", 70 },
        { "N=2 n=6 gpus=gpu:12", 6 },
        { "n=5 gpus=gpu:10", 6 },
        { "gpus=gpu:4 cpg=2", 8 },
        { "gpus=gpu:4 cpg=2 hint=nomultithread", 16 },
        { "gres=gpu:4 cpg=3 hint=nomultithread", 24 },
    };
    struct rig *rig = rig_new(
        HEAD "[[nodes]]\nnames = \"n[1-4]\"\ncpus = 64\nsockets = 2\ncores_per_socket = 16\n"
             "threads_per_core = 2\nmemory_mb = 8000\ngres = [\"gpu:8\"]\n" MAIN);

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint32_t id = rig_submit(rig, rows[i].words);
        uint64_t cpus = 0;
        assert_int_equal(rig_plan(rig), 1);
        for (unsigned k = 0; k < rig_job(rig, id)->run->count; k++)
            cpus += rig_job(rig, id)->run->parts[k].cpus;
        if (cpus != rows[i].cpus)
            fail_msg("%s: %u CPUs", rows[i].words, (unsigned)cpus);
        rig_end(rig, id);
    }
    rig_free(rig);
}

/* 3, 5 and 1 are free; the rest is not. */
static struct rig *nearly_full(const char *toml, const char *more)
{
    struct rig *rig = rig_new(toml);
    static const char *words[] = { "w=e1 gres=gpu:5", "w=e2 gres=gpu:3", "w=e3 gres=gpu:7",
                                   "w=e4 gres=gpu:8", "w=s[1-2] N=2 gres=gpu:6" };

    rig->check = true;
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        CLEANUP(str_done) struct str text = { 0 };
        str_addf(&text, "%s %s", words[i], more);
        rig_submit(rig, str_text(&text));
    }
    assert_int_equal(rig_plan(rig), ARRAY_LEN(words));
    return rig;
}

static void what_is_free_does(void **state)
{
    struct rig *rig = nearly_full(UNEVEN, "t=1000");

    (void)state;
    assert_int_equal(rig_test(rig, "gpus=gpu:9 t=10"), rig->now_us);
    assert_true(rig_test(rig, "gpus=gpu:10 t=10") > rig->now_us);
    uint32_t nine = rig_submit(rig, "gpus=gpu:9 t=10"), one = rig_submit(rig, "gpus=gpu:1 t=10");
    assert_int_equal(rig_plan(rig), 1);
    assert_string_equal(shares(rig, nine), "e1=3/1 e2=5/1 e3=1/1");
    assert_false(rig_runs(rig, one));
    rig_end(rig, nine);
    assert_int_equal(rig_plan(rig), 1);
    /* One that waits for more than is free is tried when that is there, from whatever node. */
    uint32_t ten = rig_submit(rig, "gpus=gpu:10 t=10");
    assert_int_equal(rig_plan(rig), 0);
    rig_end(rig, one);
    assert_int_equal(rig_plan(rig), 0);
    rig_end(rig, 3); /* seven of e3 */
    assert_int_equal(rig_plan(rig), 1);
    assert_true(rig_runs(rig, ten));
    rig_free(rig);
}

/* A start is promised when so many are free together, and kept from those that would be in its way. */
static void its_start_is_foreseen(void **state)
{
    struct rig *rig = rig_new(UNEVEN);
    int64_t begin_us = rig->now_us;

    (void)state;
    rig->check = true;
    uint32_t first = rig_submit(rig, "w=e[1-4] N=4 gres=gpu:8 t=100");
    rig_submit(rig, "w=s[1-2] N=2 gres=gpu:3 t=300");
    assert_int_equal(rig_plan(rig), 2);
    uint32_t all = rig_submit(rig, "gpus=gpu:38 t=100"); /* 32 + 3 + 3, from 100 s on */
    uint32_t small = rig_submit(rig, "gres=gpu:3 t=500");
    uint32_t brief = rig_submit(rig, "gres=gpu:3 t=50");
    assert_int_equal(rig_plan(rig), 1);
    assert_true(rig_runs(rig, brief));
    assert_int_equal((sched_planned_start(rig->sched, rig_job(rig, all)) - begin_us) / 1000000,
                     100);
    assert_int_equal((rig_test(rig, "gpus=gpu:39 t=100") - begin_us) / 1000000, 300);
    rig_wait(rig, 50);
    rig_end(rig, brief);
    assert_int_equal(rig_plan(rig), 0);
    rig_wait(rig, 50);
    rig_end(rig, first);
    assert_int_equal(rig_plan(rig), 1);
    assert_string_equal(shares(rig, all), "e1=8/1 e2=8/1 e3=8/1 e4=8/1 s1=3/1 s2=3/1");
    assert_false(rig_runs(rig, small));
    rig_free(rig);
}

#define LANES                                                                                   \
    "[preemption]\ntype = \"partition_prio\"\nmode = \"CANCEL\"\n" NODES("e[1-4]", "\"gpu:8\"") \
        NODES("s[1-2]", "\"gpu:6\"") MAIN                                                       \
        "[[partitions]]\nname = \"high\"\nnodes = \"ALL\"\npriority_tier = 2\n"

/* No more go than make room for it. */
static void room_is_made_for_it(void **state)
{
    struct rig *rig = nearly_full(HEAD LANES, "t=1000");

    (void)state;
    uint32_t id = rig_submit(rig, "p=high gpus=gpu:12 t=100"); /* 9 are free */
    rig_plan(rig);
    assert_int_equal(rig->preempts, 1);
    rig_release_all(rig);
    rig_plan(rig);
    assert_true(rig_runs(rig, id));
    rig_end(rig, id);
    id = rig_submit(rig, "p=high gpus=gpu:44 t=100");
    rig_plan(rig);
    for (uint32_t low = 1; low <= 5; low++)
        assert_false(rig_runs(rig, low));
    rig_release_all(rig);
    rig_plan(rig);
    assert_string_equal(shares(rig, id), "e1=8/1 e2=8/1 e3=8/1 e4=8/1 s1=6/1 s2=6/1");
    rig_free(rig);
}

UNIT_MAIN(UNIT(each_node_gives_what_it_has), UNIT(tasks_are_where_cpus_are),
          UNIT(switches_are_kept_to), UNIT(each_node_has_all_types), UNIT(cores_are_filled),
          UNIT(what_is_free_does), UNIT(its_start_is_foreseen), UNIT(room_is_made_for_it))
