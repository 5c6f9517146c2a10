/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_resources.c - features, licences, switches, blocks, and what else a job may ask for
 */
#include "sched/test/rig.h"
#include "schema/reasons.h"
#include "test/unit.h"

#define MAIN    "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n"
#define SOCKETS "cpus = 8\nsockets = 2\ncores_per_socket = 4\nmemory_mb = 8000\n"
#define RACKS                                                                 \
    "cluster_name = \"t\"\n[scheduler]\nselect = [\"CR_Core\"]\n"             \
    "licenses = [\"matlab:4\", \"comsol:2\"]\n"                               \
    "[[nodes]]\nnames = \"a[1-4]\"\nfeatures = [\"rack1\", \"ib\"]\n" SOCKETS \
    "[[nodes]]\nnames = \"b[1-4]\"\nfeatures = [\"rack2\", \"ib\"]\n" SOCKETS \
    "[[nodes]]\nnames = \"c[1-2]\"\nfeatures = [\"rack1\", \"rack2\"]\n" SOCKETS MAIN

static void counted_features(void **state)
{
    struct rig *rig = rig_new(RACKS);
    uint32_t job = rig_submit(rig, "C=[rack1*2&rack2*3]");

    (void)state;
    assert_int_equal(rig_plan(rig), 1);
    assert_string_equal(rig_where(rig, job), "a1:0;a2:0;b1:0;b2:0;b3:0");
    /* Both of the third rack count for one each. */
    uint32_t busy = rig_submit(rig, "ex w=a4");
    uint32_t tight = rig_submit(rig, "C=[rack1*5&rack2*5] ex");
    assert_int_equal(rig_plan(rig), 1);
    rig_end(rig, job);
    assert_int_equal(rig_plan(rig), 0);
    assert_int_equal(rig_submit(rig, "C=[rack1*7&rack2*3]"), 0);
    rig_end(rig, busy);
    assert_int_equal(rig_plan(rig), 1);
    assert_int_equal(rig_job(rig, tight)->run->count, 10);
    rig_free(rig);
}

static void some_of_the_nodes_have_the_feature(void **state)
{
    struct rig *rig = rig_new(RACKS);
    uint32_t job = rig_submit(rig, "N=5 ex C=rack2*2 x=c[1-2]");

    (void)state;
    assert_int_equal(rig_plan(rig), 1);
    assert_string_equal(rig_where(rig, job), "a1:0-7;a2:0-7;a3:0-7;b1:0-7;b2:0-7");
    rig_free(rig);
}

static void all_nodes_agree_on_one(void **state)
{
    struct rig *rig = rig_new(RACKS);
    uint32_t busy = rig_submit(rig, "ex w=a1"), job = rig_submit(rig, "N=4 ex C=[rack1|rack2]&ib");

    (void)state;
    assert_int_equal(rig_plan(rig), 2);
    assert_string_equal(rig_where(rig, job), "b1:0-7;b2:0-7;b3:0-7;b4:0-7");
    uint32_t next = rig_submit(rig, "N=4 ex C=[rack1|rack2]&ib");
    assert_int_equal(rig_plan(rig), 0); /* three of the one, none of the other */
    rig_end(rig, busy);
    assert_int_equal(rig_plan(rig), 1);
    assert_string_equal(rig_where(rig, next), "a1:0-7;a2:0-7;a3:0-7;a4:0-7");
    rig_free(rig);
}

static void preferred_features(void **state)
{
    struct rig *rig = rig_new(RACKS);
    uint32_t one = rig_submit(rig, "N=3 ex prefer=rack2&ib"),
             two = rig_submit(rig, "N=3 ex prefer=rack2&ib");

    (void)state;
    assert_int_equal(rig_plan(rig), 2);
    assert_string_equal(rig_where(rig, one), "b1:0-7;b2:0-7;b3:0-7");
    assert_string_equal(rig_where(rig, two), "a1:0-7;a2:0-7;a3:0-7"); /* only one is left */
    rig_free(rig);
}

static void licences_are_planned(void **state)
{
    struct rig *rig = rig_new(RACKS);
    uint32_t two = rig_submit(rig, "lic=matlab:2 t=600"),
             more = rig_submit(rig, "lic=matlab:3 t=600");

    (void)state;
    uint32_t other = rig_submit(rig, "lic=comsol t=600");
    assert_int_equal(rig_plan(rig), 2);
    assert_true(rig_runs(rig, two) && rig_runs(rig, other));
    assert_int_equal(sched_reason(rig->sched, rig_job(rig, more)), REASON_LICENSES);
    assert_in_range(sched_planned_start(rig->sched, rig_job(rig, more)),
                    rig->now_us + 599 * INT64_C(1000000), rig->now_us + 600 * INT64_C(1000000));
    /* What is behind it may have the two that are left, but only until then. */
    uint32_t longer = rig_submit(rig, "lic=matlab:2 t=7200");
    uint32_t shorter = rig_submit(rig, "lic=matlab:1 t=300");
    assert_int_equal(rig_plan(rig), 1);
    assert_false(rig_runs(rig, longer));
    assert_true(rig_runs(rig, shorter));
    rig_end(rig, shorter);
    rig_end(rig, two);
    assert_int_equal(rig_plan(rig), 1);
    assert_true(rig_runs(rig, more));
    assert_false(rig_runs(rig, longer));
    rig_end(rig, more);
    assert_int_equal(rig_plan(rig), 1);
    rig_free(rig);
}

/* What it asked for before is known to nobody else, and is looked at while it is forgotten. */
static void a_waiting_job_asks_for_others(void **state)
{
    struct rig *rig = rig_new(RACKS);
    uint32_t all = rig_submit(rig, "lic=matlab:4 t=600"),
             more = rig_submit(rig, "lic=matlab:3,comsol:1 t=600");
    Command cmd = COMMAND__INIT;
    CmdUpdateJob update = CMD_UPDATE_JOB__INIT;
    JobSelect select = JOB_SELECT__INIT;
    JobSpec change = JOB_SPEC__INIT;

    (void)state;
    assert_int_equal(rig_plan(rig), 1);
    assert_true(rig_runs(rig, all));
    assert_true(sched_planned_start(rig->sched, rig_job(rig, more)) > 0);
    select.n_job_ids = 1;
    select.job_ids = &more;
    change.licenses = (char *)"comsol:2";
    update.jobs = &select;
    update.change = &change;
    update.has_by_admin = update.by_admin = true;
    cmd.what_case = COMMAND__WHAT_UPDATE_JOB;
    cmd.update_job = &update;
    assert_int_equal(rig_apply(rig, &cmd), ERR_OK);
    assert_int_equal(rig_plan(rig), 1);
    assert_true(rig_runs(rig, more));
    rig_free(rig);
}

static void one_licence_or_another(void **state)
{
    struct rig *rig = rig_new(RACKS);
    uint32_t a = rig_submit(rig, "lic=comsol:2|matlab:2"),
             b = rig_submit(rig, "lic=comsol:2|matlab:2");

    (void)state;
    uint32_t c = rig_submit(rig, "lic=comsol|matlab:3");
    assert_int_equal(rig_plan(rig), 2);
    assert_int_equal(rig_job(rig, a)->run->licence, 0);
    assert_int_equal(rig_job(rig, b)->run->licence, 1);
    assert_int_equal(state_licence(rig->state, "comsol")->used, 2);
    assert_int_equal(state_licence(rig->state, "matlab")->used, 2);
    rig_end(rig, a);
    assert_int_equal(rig_plan(rig), 1);
    assert_int_equal(rig_job(rig, c)->run->licence, 0);
    assert_int_equal(rig_submit(rig, "lic=comsol|matlab,comsol"), 0);
    assert_int_equal(rig_submit(rig, "lic=comsol:3"), 0);
    rig_free(rig);
}

/* ---- what is taken of a node ---- */

static void cores_are_left_to_the_system(void **state)
{
    struct rig *rig = rig_new(RACKS);
    uint32_t one = rig_submit(rig, "corespec=2"), two = rig_submit(rig, "c=1 w=a1");

    (void)state;
    assert_int_equal(rig_plan(rig), 1);
    assert_string_equal(rig_where(rig, one), "a1:0-5");
    assert_false(rig_runs(rig, two)); /* the node is its own */
    assert_int_equal(rig_submit(rig, "corespec=2 c=7"), 0);
    rig_free(rig);
}

/* As built alike as they look: what the node keeps anyway counts. */
static void what_a_node_keeps_is_part_of_what_is_left(void **state)
{
    struct rig *rig =
        rig_new("cluster_name = \"c\"\n[[nodes]]\nnames = \"a1\"\ncpus = 8\ncores_per_socket = 8\n"
                "memory_mb = 8000\ncore_spec = 1\n"
                "[[nodes]]\nnames = \"b1\"\ncpus = 7\ncores_per_socket = 7\n"
                "memory_mb = 8000\n"
                "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n");
    uint32_t one = rig_submit(rig, "corespec=3 w=a1"), two = rig_submit(rig, "corespec=3 w=b1");

    (void)state;
    assert_int_equal(rig_plan(rig), 2);
    assert_string_equal(rig_where(rig, one), "a1:0-4");
    assert_string_equal(rig_where(rig, two), "b1:0-3");
    rig_end(rig, one);
    uint32_t less = rig_submit(rig, "corespec=1 w=a1");
    assert_int_equal(rig_plan(rig), 1);
    assert_string_equal(rig_where(rig, less), "a1:0-6");
    rig_free(rig);
}

/* Those that are named, with their whole cores, or the last of each socket: the others are jobs'. */
static void named_cpus_are_left_to_the_system(void **state)
{
    struct rig *rig = rig_new(
        "cluster_name = \"c\"\n[[nodes]]\nnames = \"a1\"\nsockets = 2\ncores_per_socket = 4\n"
        "threads_per_core = 2\nmemory_mb = 8000\ncpu_spec_list = \"0,1,9\"\n"
        "[[nodes]]\nnames = \"b1\"\nsockets = 2\ncores_per_socket = 4\nthreads_per_core = 2\n"
        "memory_mb = 8000\ncore_spec = 3\n"
        "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\noversubscribe = \"YES:2\"\n");
    static const struct {
        const char *words, *where;
    } asked[] = {
        { "c=2 w=a1", "a1:2-3" },
        { "ex w=a1", "a1:2-7,10-15" },
        { "c=12 w=a1", "a1:2-7,10-15" },
        { "c=12 share w=a1", "a1:2-7,10-15" },
        { "hint=memory_bound n=4 w=a1", "a1:2-5,10-13" },
        { "corespec=2 w=a1", "a1:2-7,10-15" }, /* that is what the node keeps anyway */
        { "corespec=3 w=a1", "a1:2-7,10-13" }, /* one more */
        { "ex w=b1", "b1:0-5,8-11" },
        { "corespec=4 w=b1", "b1:0-5,8-9" },
    };

    (void)state;
    assert_int_equal(rig_submit(rig, "c=13 w=a1"), 0);
    assert_int_equal(rig_submit(rig, "c=11 w=b1"), 0);
    assert_int_equal(rig_submit(rig, "corespec=3 c=11 w=a1"), 0);
    for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
        uint32_t id = rig_submit(rig, asked[i].words);
        assert_int_equal(rig_plan(rig), 1);
        assert_string_equal(rig_where(rig, id), asked[i].where);
        rig_end(rig, id);
    }
    rig_free(rig);
}

static void tasks_bring_what_they_need(void **state)
{
    struct rig *rig = rig_new(RACKS);
    uint32_t job = rig_submit(rig, "n=4 tres=cpu=3,mem=2G,license/matlab=1");

    (void)state;
    assert_int_equal(rig_plan(rig), 1);
    assert_string_equal(rig_where(rig, job), "a1:0-5;a2:0-5");
    assert_int_equal(rig_job(rig, job)->run->parts[0].mem_mb, 4096);
    assert_int_equal(state_licence(rig->state, "matlab")->used, 4);
    assert_int_equal(rig_submit(rig, "n=2 c=2 tres=cpu=3"), 0); /* how many, then? */
    assert_int_not_equal(rig_submit(rig, "n=2 c=3 tres=cpu=3"), 0);
    assert_int_equal(rig_submit(rig, "n=2 tres=cpu=3,license/matlab=3"), 0);
    rig_free(rig);
}

/* A licence that is named twice counts twice. */
static void the_same_licence_again(void **state)
{
    struct rig *rig = rig_new(RACKS);
    uint32_t two = rig_submit(rig, "lic=matlab:1,matlab:1"),
             three = rig_submit(rig, "lic=matlab tres=license/matlab=2");

    (void)state;
    assert_int_equal(rig_submit(rig, "lic=matlab:3,matlab:3"), 0);
    assert_int_equal(rig_submit(rig, "lic=matlab:3 tres=license/matlab=2"), 0);
    assert_int_equal(rig_plan(rig), 1);
    assert_true(rig_runs(rig, two));
    assert_int_equal(state_licence(rig->state, "matlab")->used, 2);
    rig_end(rig, two);
    assert_int_equal(rig_plan(rig), 1);
    assert_true(rig_runs(rig, three));
    assert_int_equal(state_licence(rig->state, "matlab")->used, 3);
    rig_free(rig);
}

static void as_many_nodes_as_are_free(void **state)
{
    struct rig *rig = rig_new(RACKS);
    uint32_t most = rig_submit(rig, "N=2-4 ex"), few = rig_submit(rig, "N=2-4 ex fewnodes");

    (void)state;
    uint32_t tasks = rig_submit(rig, "N=1-6 n=2"), rest = rig_submit(rig, "N=1-9 ex");
    assert_int_equal(rig_plan(rig), 4);
    assert_int_equal(rig_job(rig, most)->run->count, 4);
    assert_int_equal(rig_job(rig, few)->run->count, 2);
    assert_int_equal(rig_job(rig, tasks)->run->count, 2);
    assert_int_equal(rig_job(rig, rest)->run->count, 2);
    rig_free(rig);
}

static void tasks_spread_evenly(void **state)
{
    struct rig *rig = rig_new(RACKS);
    uint32_t job = rig_submit(rig, "N=1-4 n=10 spread");

    (void)state;
    assert_int_equal(rig_plan(rig), 1);
    assert_int_equal(rig_job(rig, job)->run->count, 4);
    for (unsigned i = 0; i < 4; i++)
        assert_in_range(rig_job(rig, job)->run->parts[i].tasks, 1, 3);
    rig_free(rig);
}

static void whole_sockets(void **state)
{
    struct rig *rig = rig_new("cluster_name = \"t\"\n[scheduler]\nselect = [\"CR_Socket\"]\n"
                              "[[nodes]]\nnames = \"n1\"\n" SOCKETS MAIN);
    uint32_t a = rig_submit(rig, "c=1"), b = rig_submit(rig, "c=3"), c = rig_submit(rig, "c=1");

    (void)state;
    assert_int_equal(rig_plan(rig), 2);
    assert_string_equal(rig_where(rig, a), "n1:0-3");
    assert_string_equal(rig_where(rig, b), "n1:4-7");
    assert_false(rig_runs(rig, c));
    rig_free(rig);
}

static void partitions_have_part_of_a_node(void **state)
{
    struct rig *rig = rig_new("cluster_name = \"t\"\n[[nodes]]\nnames = \"n1\"\n" SOCKETS MAIN
                              "[[partitions]]\nname = \"few\"\nnodes = \"ALL\"\n"
                              "max_cpus_per_node = 3\n");
    uint32_t two = rig_submit(rig, "p=few c=2 t=600"), more = rig_submit(rig, "p=few c=2 t=60");

    (void)state;
    uint32_t one = rig_submit(rig, "p=few c=1 t=60"), other = rig_submit(rig, "c=4 t=60");
    assert_int_equal(rig_plan(rig), 3);
    assert_true(rig_runs(rig, two) && rig_runs(rig, one) && rig_runs(rig, other));
    assert_int_equal(rig_submit(rig, "p=few c=4"), 0);
    rig_end(rig, two);
    assert_int_equal(rig_plan(rig), 1);
    assert_true(rig_runs(rig, more));
    rig_free(rig);
}

static void labels_keep_apart(void **state)
{
    struct rig *rig = rig_new(RACKS);
    uint32_t red = rig_submit(rig, "w=a1 exmcs mcs=red"), blue = rig_submit(rig, "w=a1 mcs=blue");

    (void)state;
    uint32_t too = rig_submit(rig, "w=a1 mcs=red uid=1001"), none = rig_submit(rig, "w=a1");
    rig_plan(rig);
    assert_true(rig_runs(rig, red) && rig_runs(rig, too));
    assert_false(rig_runs(rig, blue) || rig_runs(rig, none));
    rig_end(rig, red);
    assert_int_equal(rig_plan(rig), 2);
    rig_free(rig);
}

/* The first of the shortest runs of empty nodes that have room for its tasks: eight a node, or two. */
static const char *neighbours(unsigned taken, uint32_t nodes, uint32_t tasks)
{
    static char text[200];
    unsigned best = 0, best_len = 99;

    for (unsigned first = 1; first <= 12; first++) {
        uint32_t sum = 0;
        for (unsigned last = first; last <= 12 && !(taken >> last & 1); last++) {
            sum += last % 3 ? 8 : 2;
            if (last - first + 1 >= nodes && sum >= tasks && last - first + 1 < best_len) {
                best = first;
                best_len = last - first + 1;
            }
        }
    }
    if (!best)
        return "";
    snprintf(text, sizeof(text), "n%u %u", best, best_len);
    return text;
}

static void the_shortest_run_of_neighbours(void **state)
{
    char toml[1000] = "cluster_name = \"t\"\n" MAIN;

    for (unsigned i = 1; i <= 12; i++)
        snprintf(toml + strlen(toml), sizeof(toml) - strlen(toml),
                 "[[nodes]]\nnames = \"n%u\"\ncpus = %u\n", i, i % 3 ? 8 : 2);
    struct rig *rig = rig_new(toml);
    (void)state;
    for (unsigned turn = 0; turn < 400; turn++) {
        unsigned seed = turn * 2654435761U, taken = seed >> 9 & seed >> 20 & 0x1ffe;
        uint32_t nodes = 1 + seed % 4, tasks = nodes + seed / 7 % 30, ids[13] = { 0 };
        char words[80], found[80] = "";
        for (unsigned i = 1; i <= 12; i++) {
            snprintf(words, sizeof(words), "w=n%u ex", i);
            ids[i] = taken >> i & 1 ? rig_submit(rig, words) : 0;
        }
        rig_plan(rig);
        snprintf(words, sizeof(words), "N=%u-12 n=%u ex contig fewnodes", nodes, tasks);
        ids[0] = rig_submit(rig, words);
        rig_plan(rig);
        if (ids[0] && rig_runs(rig, ids[0])) {
            const struct job_run *run = rig_job(rig, ids[0])->run;
            snprintf(found, sizeof(found), "%s %u", run->parts[0].name, run->count);
        }
        assert_string_equal(found, ids[0] ? neighbours(taken, nodes, tasks) : "");
        for (unsigned i = 0; i <= 12; i++) {
            if (ids[i])
                rig_cancel(rig, ids[i]);
            if (ids[i] && rig_job(rig, ids[i])->run)
                rig_release(rig, ids[i]);
        }
    }
    rig_free(rig);
}

/* Small nodes that are liked better than the large ones. */
#define SMALL_LARGE                                               \
    "[[nodes]]\nnames = \"a[1-4]\"\ncpus = 4\nmemory_mb = 1000\n" \
    "[[nodes]]\nnames = \"b[1-2]\"\ncpus = 8\nmemory_mb = 1000\nweight = 9\n" MAIN
#define SMALL_LARGE_TREE                                                                \
    "cluster_name = \"t\"\n[topology]\nplugin = \"tree\"\n"                             \
    "[[switches]]\nname = \"s1\"\nnodes = \"a[1-2],b1\"\n[[switches]]\nname = \"s2\"\n" \
    "nodes = \"a[3-4],b2\"\n[[switches]]\nname = \"top\"\nswitches = \"s[1-2]\"\n" SMALL_LARGE

static void roomier_nodes_than_those_liked_best(void **state)
{
    static const char *const confs[] = { "cluster_name = \"t\"\n" SMALL_LARGE, SMALL_LARGE_TREE };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct rig *rig = rig_new(confs[i]);
        uint32_t named = rig_submit(rig, "N=2-2 n=11 w=a1");
        assert_int_equal(rig_plan(rig), 1);
        assert_string_equal(rig_where(rig, named), "a1:0-3;b1:0-6");
        rig_end(rig, named);
        uint32_t any = rig_submit(rig, "N=2-2 n=11");
        assert_int_equal(rig_plan(rig), 1);
        assert_int_equal(rig_job(rig, any)->run->count, 2);
        rig_end(rig, any);
        uint32_t busy = rig_submit(rig, "N=6 ex t=100");
        assert_int_equal(rig_plan(rig), 1);
        assert_int_equal(rig_test(rig, "N=2-2 n=11 w=a1"),
                         rig_job(rig, busy)->run->start_us + 100000000);
        assert_int_equal(rig_test(rig, "N=2-2 n=11"),
                         rig_job(rig, busy)->run->start_us + 100000000);
        rig_free(rig);
    }
}

static void what_the_named_nodes_could_never_run_is_refused(void **state)
{
    struct rig *rig = rig_new("cluster_name = \"t\"\n" SMALL_LARGE);

    (void)state;
    assert_int_equal(rig_submit(rig, "N=1-1 n=5 w=a1"), 0);
    assert_int_equal(rig_submit(rig, "N=2-2 n=9 w=a[1-2]"), 0);
    assert_int_equal(rig_submit(rig, "N=2-2 n=13 w=a1"), 0);
    assert_int_not_equal(rig_submit(rig, "N=2-2 n=12 w=a1"), 0);
    assert_int_not_equal(rig_submit(rig, "N=1-1 n=4 w=a1"), 0);
    rig_free(rig);
}

static void so_many_tasks_on_a_socket(void **state)
{
    struct rig *rig =
        rig_new("cluster_name = \"t\"\n[scheduler]\nselect = [\"CR_Core\"]\n"
                "[[nodes]]\nnames = \"a[1-2]\"\n" SOCKETS
                "[[nodes]]\nnames = \"t1\"\ncpus = 16\nsockets = 2\ncores_per_socket = 4\n"
                "threads_per_core = 2\nmemory_mb = 8000\ngres = [\"gpu:2\"]\n" MAIN);
    uint32_t job = rig_submit(rig, "N=1-1 n=4 tps=2 w=a1");

    (void)state;
    rig->check = true;
    assert_int_equal(rig_plan(rig), 1);
    assert_string_equal(rig_where(rig, job), "a1:0-1,4-5");
    assert_int_equal(rig_submit(rig, "N=1-1 n=5 tps=2"), 0);
    /* Of three CPUs that are free on each socket two are for it. */
    uint32_t large = rig_submit(rig, "N=1-1 n=2 c=2 tps=1 w=a1");
    assert_int_equal(rig_plan(rig), 1);
    assert_string_equal(rig_where(rig, large), "a1:2-3,6-7");
    rig_end(rig, large);
    uint32_t small = rig_submit(rig, "N=1-1 n=1 w=a1"), next;
    assert_int_equal(rig_plan(rig), 1);
    next = rig_submit(rig, "N=1-1 n=2 c=2 tps=1 w=a1"); /* three are free, on one socket one */
    assert_int_equal(rig_plan(rig), 0);
    rig_end(rig, small);
    assert_int_equal(rig_plan(rig), 1);
    assert_string_equal(rig_where(rig, next), "a1:2-3,6-7");
    /* Cores are given whole, to tasks of each socket. */
    uint32_t pairs = rig_submit(rig, "N=1-1 n=4 tps=2 w=t1");
    uint32_t ones = rig_submit(rig, "N=1-1 n=2 tps=1 w=t1");
    assert_int_equal(rig_plan(rig), 2);
    assert_string_equal(rig_where(rig, pairs), "t1:0-1,8-9");
    assert_string_equal(rig_where(rig, ones), "t1:2-3,10-11");
    rig_free(rig);
}

/* ---- topology ---- */

#define TREE                                                \
    "cluster_name = \"t\"\n[topology]\nplugin = \"tree\"\n" \
    "[[switches]]\nname = \"s1\"\nnodes = \"n[1-4]\"\n"     \
    "[[switches]]\nname = \"s2\"\nnodes = \"n[5-8]\"\n"     \
    "[[switches]]\nname = \"s3\"\nnodes = \"n[9-12]\"\n"    \
    "[[switches]]\nname = \"up\"\nswitches = \"s[1-2]\"\n"  \
    "[[switches]]\nname = \"top\"\nswitches = \"up,s3\"\n"  \
    "[[nodes]]\nnames = \"n[1-12]\"\n" SOCKETS MAIN

/* Two that are not joined, and two nodes of none. */
#define APART(plugin, kind)                                                                \
    "cluster_name = \"t\"\n[topology]\nplugin = \"" plugin "\"\n"                          \
    "[[nodes]]\nnames = \"n[1-7]\"\n" SOCKETS MAIN "[[" kind "]]\nname = \"s1\"\nnodes = " \
    "\"n[1-3]\"\n[[" kind "]]\nname = \"s2\"\nnodes = \"n[4-5]\"\n"

static void the_fewest_switches(void **state)
{
    struct rig *rig = rig_new(TREE);
    uint32_t two = rig_submit(rig, "N=2 ex w=n[1-2]"), four = rig_submit(rig, "N=4 ex");

    (void)state;
    uint32_t pair = rig_submit(rig, "N=2 ex");
    assert_int_equal(rig_plan(rig), 3);
    assert_string_equal(rig_where(rig, four), "n5:0-7;n6:0-7;n7:0-7;n8:0-7");
    assert_string_equal(rig_where(rig, pair), "n3:0-7;n4:0-7"); /* what is left of the first */
    rig_end(rig, two);
    rig_end(rig, four);
    uint32_t five = rig_submit(rig, "N=5 ex"); /* below one switch of the second level */
    assert_int_equal(rig_plan(rig), 1);
    assert_string_equal(rig_where(rig, five), "n1:0-7;n5:0-7;n6:0-7;n7:0-7;n8:0-7");
    rig_free(rig);
}

/* What is not below one switch, or has not the segments, is never free. */
static void nodes_that_are_never_together_are_refused(void **state)
{
    static const struct {
        const char *conf, *words;
        bool good;
    } jobs[] = {
        { APART("tree", "switches"), "N=3", true },
        { APART("tree", "switches"), "N=4", false },
        { APART("tree", "switches"), "N=4 spread", true },
        { APART("tree", "switches"), "N=4 contig", true },
        { APART("tree", "switches"), "N=2 w=n1,n4", false },
        { APART("tree", "switches"), "N=2 w=n4,n5", true },
        { APART("tree", "switches"), "N=2 w=n6,n7", false },
        { APART("tree", "switches"), "w=n7", true },
        { APART("tree", "switches"), "N=3 segment=2", true }, /* these are of blocks */
        { APART("tree", "switches"), "N=3 spreadseg", true },
        { APART("block", "blocks"), "N=3 segment=2", false },
        { APART("block", "blocks"), "N=4 spreadseg", true },
        { "cluster_name = \"t\"\n[[nodes]]\nnames = \"n[1-7]\"\n" SOCKETS MAIN, "N=3 segment=2",
          true },
        { APART("tree", "switches"), "n=24", true }, /* of three nodes */
        { APART("tree", "switches"), "n=25", false },
        { APART("tree", "switches"), "n=25 spread", true },
        { APART("block", "blocks"), "N=5", true },
        { APART("block", "blocks"), "N=6", false },
        { APART("block", "blocks"), "N=4 segment=2", true },
        { APART("block", "blocks"), "N=6 segment=3", false },
        { APART("block", "blocks"), "N=4 segment=4", false },
        { APART("block", "blocks"), "N=2 w=n6,n7 segment=2", false },
        { APART("tree", "switches") "[[switches]]\nname = \"top\"\nswitches = \"s[1-2]\"\n", "N=5",
          true },
        { APART("tree", "switches") "[[switches]]\nname = \"top\"\nswitches = \"s[1-2]\"\n", "N=6",
          false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
        struct rig *rig = rig_new(jobs[i].conf);
        uint32_t job = rig_submit(rig, jobs[i].words);
        assert_int_equal(job != 0, jobs[i].good);
        assert_int_equal(rig_plan(rig), jobs[i].good); /* the planner has it the same way */
        rig_free(rig);
    }
}

static void a_job_waits_for_few_switches(void **state)
{
    struct rig *rig = rig_new(TREE);

    (void)state;
    rig_submit(rig, "N=3 ex w=n1,n5,n9 t=7200");
    assert_int_equal(rig_plan(rig), 1);
    uint32_t near = rig_submit(rig, "N=4 ex switches=1 swait=60");
    uint32_t any = rig_submit(rig, "N=2 ex switches=1");
    assert_int_equal(rig_plan(rig), 1);
    assert_true(rig_runs(rig, any));
    assert_false(rig_runs(rig, near));
    rig_wait(rig, 61);
    assert_int_equal(rig_plan(rig), 1);
    assert_true(rig_runs(rig, near));
    rig_free(rig);
}

static void segments_stay_in_their_block(void **state)
{
    struct rig *rig = rig_new("cluster_name = \"t\"\n[topology]\nplugin = \"block\"\n"
                              "[[blocks]]\nname = \"b1\"\nnodes = \"n[1-4]\"\n"
                              "[[blocks]]\nname = \"b2\"\nnodes = \"n[5-8]\"\n"
                              "[[nodes]]\nnames = \"n[1-8]\"\n" SOCKETS MAIN);

    (void)state;
    uint32_t odd = rig_submit(rig, "N=1 ex w=n1");
    assert_int_equal(rig_plan(rig), 1);
    uint32_t pairs = rig_submit(rig, "N=6 ex segment=2");
    assert_int_equal(rig_plan(rig), 1);
    assert_string_equal(rig_where(rig, pairs), "n2:0-7;n3:0-7;n5:0-7;n6:0-7;n7:0-7;n8:0-7");
    assert_int_equal(rig_submit(rig, "N=5 segment=2"), 0);
    rig_end(rig, pairs);
    uint32_t fours = rig_submit(rig, "N=8 ex segment=4");
    assert_int_equal(rig_plan(rig), 0);
    rig_end(rig, odd);
    assert_int_equal(rig_plan(rig), 1);
    assert_true(rig_runs(rig, fours));
    rig_free(rig);
}

#define TWO_BLOCKS                                                                      \
    "cluster_name = \"t\"\n[topology]\nplugin = \"block\"\n[[blocks]]\nname = \"b1\"\n" \
    "nodes = \"n[1-4]\"\n[[blocks]]\nname = \"b2\"\nnodes = \"n[5-8]\"\n[[nodes]]\n"    \
    "names = \"n[1-8]\"\n" SOCKETS MAIN

static void segments_apart(void **state)
{
    struct rig *rig = rig_new(TWO_BLOCKS);
    uint32_t together = rig_submit(rig, "N=4 ex segment=2"), apart;

    (void)state;
    rig_plan(rig);
    assert_string_equal(rig_where(rig, together), "n1:0-7;n2:0-7;n3:0-7;n4:0-7");
    rig_end(rig, together);
    apart = rig_submit(rig, "N=4 ex segment=2 spreadseg");
    rig_plan(rig);
    assert_string_equal(rig_where(rig, apart), "n1:0-7;n2:0-7;n5:0-7;n6:0-7");
    rig_end(rig, apart);
    assert_int_equal(rig_submit(rig, "N=6 ex segment=2 spreadseg"), 0); /* in three blocks */
    assert_int_not_equal(rig_submit(rig, "N=4 spreadseg"), 0);          /* of no segments */
    rig_free(rig);
}

/* A job that has its block for itself: nobody else comes, and it comes where nobody is. */
static void a_block_alone(void **state)
{
    struct rig *rig = rig_new(TWO_BLOCKS);
    uint32_t first = rig_submit(rig, "c=1 w=n1"), alone = rig_submit(rig, "N=2 c=1 extopo");

    (void)state;
    rig->check = true;
    rig_plan(rig);
    assert_true(rig_runs(rig, first) && rig_runs(rig, alone));
    assert_string_equal(rig_where(rig, alone), "n5:0;n6:0");
    uint32_t there = rig_submit(rig, "c=1 w=n8"), here = rig_submit(rig, "c=1 w=n3");
    uint32_t second = rig_submit(rig, "c=1 extopo");
    rig_plan(rig);
    assert_false(rig_runs(rig, there));
    assert_true(rig_runs(rig, here));
    assert_false(rig_runs(rig, second));
    rig_end(rig, alone);
    rig_plan(rig);
    assert_true(rig_runs(rig, there)); /* on a node that the other was not on */
    rig_end(rig, first);
    rig_end(rig, here);
    rig_plan(rig);
    assert_true(rig_runs(rig, second));
    rig_free(rig);
}

/* It is foreseen for when all have left one of the blocks. */
static void a_block_alone_later(void **state)
{
    struct rig *rig = rig_new(TWO_BLOCKS);

    (void)state;
    rig->check = true;
    rig_submit(rig, "c=1 w=n1 t=600");
    rig_submit(rig, "c=1 w=n2 t=1200");
    rig_submit(rig, "c=1 w=n5 t=1800");
    rig_plan(rig);
    uint32_t alone = rig_submit(rig, "c=1 t=60 extopo");
    rig_plan(rig);
    assert_false(rig_runs(rig, alone));
    assert_in_range((sched_planned_start(rig->sched, rig_job(rig, alone)) - rig->now_us) / 1000000,
                    1198, 1200);
    rig_free(rig);
}

/* Without a topology each node stands for itself. */
static void nodes_alone(void **state)
{
    struct rig *rig = rig_new("cluster_name = \"t\"\n[[nodes]]\nnames = \"n[1-3]\"\n" SOCKETS MAIN);
    uint32_t first = rig_submit(rig, "c=1 w=n1"), alone = rig_submit(rig, "N=2 c=1 extopo");

    (void)state;
    rig->check = true;
    rig_plan(rig);
    assert_true(rig_runs(rig, first));
    assert_string_equal(rig_where(rig, alone), "n2:0;n3:0");
    uint32_t there = rig_submit(rig, "c=1 w=n2"), here = rig_submit(rig, "c=1 w=n1");
    uint32_t next = rig_submit(rig, "c=1 extopo");
    rig_plan(rig);
    assert_true(rig_runs(rig, here));
    assert_false(rig_runs(rig, there) || rig_runs(rig, next));
    rig_end(rig, alone);
    rig_plan(rig);
    assert_true(rig_runs(rig, there));
    assert_string_equal(rig_where(rig, next), "n3:0");
    rig_free(rig);
}

/* Nodes in reserve have room for as many tasks as any other, and take the place of one that fails. */
static void spares_take_the_place_of_nodes(void **state)
{
    struct rig *rig = rig_new("cluster_name = \"t\"\n[[nodes]]\nnames = \"n[1-5]\"\n" SOCKETS MAIN);
    uint32_t job = rig_submit(rig, "N=2 n=8 t=600 spare=2"), other;

    (void)state;
    rig->check = true;
    assert_int_equal(rig_submit(rig, "N=4 n=8 spare=2"), 0); /* never */
    assert_int_equal(rig_submit(rig, "N=2-3 n=8 spare=2"), 0);
    other = rig_submit(rig, "c=5 N=2 t=60");
    rig_plan(rig);
    const struct job *at = rig_job(rig, job);
    assert_true(rig_runs(rig, job));
    assert_int_equal(at->run->count, 4);
    assert_int_equal(run_nodes(at->run), 2);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(at->run->parts[i].cpus, 4);
    assert_true(at->run->parts[2].spare && at->run->parts[3].spare);
    assert_false(rig_runs(rig, other)); /* one node has five CPUs */
    Command ready = COMMAND__INIT;
    CmdReady msg = CMD_READY__INIT;
    ready.what_case = COMMAND__WHAT_READY;
    ready.ready = &msg;
    msg.has_job_id = msg.has_attempt = true;
    msg.job_id = job;
    msg.attempt = at->attempt;
    rig_apply(rig, &ready);
    rig_node(rig, at->run->parts[1].name, "DOWN");
    assert_true(rig_runs(rig, job));
    assert_int_equal(run_nodes(at->run), 2);
    assert_true(at->run->parts[1].left && !at->run->parts[2].spare && at->run->parts[3].spare);
    rig_node(rig, at->run->parts[3].name, "DOWN"); /* the spare itself */
    assert_int_equal(run_nodes(at->run), 2);
    assert_true(rig_runs(rig, job));
    rig_node(rig, at->run->parts[2].name, "DOWN"); /* there is none left */
    assert_false(rig_runs(rig, job));
    rig_free(rig);
}

UNIT_MAIN(UNIT(counted_features), UNIT(some_of_the_nodes_have_the_feature),
          UNIT(all_nodes_agree_on_one), UNIT(preferred_features), UNIT(licences_are_planned),
          UNIT(a_waiting_job_asks_for_others), UNIT(one_licence_or_another),
          UNIT(cores_are_left_to_the_system), UNIT(what_a_node_keeps_is_part_of_what_is_left),
          UNIT(named_cpus_are_left_to_the_system), UNIT(tasks_bring_what_they_need),
          UNIT(the_same_licence_again), UNIT(so_many_tasks_on_a_socket),
          UNIT(as_many_nodes_as_are_free), UNIT(tasks_spread_evenly), UNIT(whole_sockets),
          UNIT(labels_keep_apart), UNIT(partitions_have_part_of_a_node), UNIT(the_fewest_switches),
          UNIT(a_job_waits_for_few_switches), UNIT(nodes_that_are_never_together_are_refused),
          UNIT(roomier_nodes_than_those_liked_best),
          UNIT(what_the_named_nodes_could_never_run_is_refused), UNIT(segments_stay_in_their_block),
          UNIT(spares_take_the_place_of_nodes), UNIT(segments_apart), UNIT(a_block_alone),
          UNIT(a_block_alone_later), UNIT(nodes_alone), UNIT(the_shortest_run_of_neighbours))
