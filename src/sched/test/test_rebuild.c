/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_rebuild.c - a planner that reads everything anew, while things happen
 *
 * Partitions and reservations change while jobs come, end and are cancelled and nodes go and come
 * back, with so small slices that each rebuild takes many. Then a planner that is made from the state
 * alone must find nothing more to start.
 */
#include "base/hash.h"
#include "sched/sched_check.h"
#include "sched/test/rig.h"
#include "test/unit.h"

static uint64_t seed;

static uint32_t dice(uint32_t sides)
{
    seed = hash_mix(seed + UINT64_C(0x9e3779b97f4a7c15));
    return (uint32_t)(seed >> 33) % sides;
}

static const char large[] =
    "cluster_name = \"t\"\n[scheduler]\nselect = [\"CR_Core_Memory\"]\nlicenses = [\"matlab:90\"]\n"
    "[jobs]\ndef_mem_per_cpu = 100\n"
    "[[nodes]]\nnames = \"c[1-900]\"\ncpus = 4\nmemory_mb = 4000\n"
    "[[nodes]]\nnames = \"g[1-300]\"\ncpus = 8\nmemory_mb = 8000\ngres = [\"gpu:h100:4\"]\n"
    "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n"
    "[[partitions]]\nname = \"gpu\"\nnodes = \"g[1-300]\"\npriority_tier = 2\n";

static const char *const words[] = {
    "c=1 t=600",         "c=2 t=3600", "c=4 t=7200",     "N=3 tpn=2 n=6 t=600",
    "gres=gpu:2 t=1800", "p=gpu c=3",  "lic=matlab c=1", "N=20 ex t=300",
    "array=0-3%2 c=2",   "exuser c=2", "p=main,gpu c=4",
};

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

static void submit(struct rig *rig)
{
    char text[100];

    snprintf(text, sizeof(text), "%s uid=%u", words[dice(ARRAY_LEN(words))], 1 + dice(3));
    assert_int_not_equal(rig_submit(rig, text), 0);
}

static void happen(struct rig *rig)
{
    static const char *const nodes[] = { "c1", "c899", "g1", "g150", "g299" };
    uint32_t id, what = dice(100);

    if (what < 40)
        submit(rig);
    else if (what < 75 && (id = random_running(rig)))
        rig_end(rig, id);
    else if (what < 85)
        rig_cancel(rig, 1 + dice((uint32_t)rig->index));
    else if (what < 92)
        rig_node(rig, nodes[dice(5)], dice(2) ? "DRAIN" : "RESUME");
    else if (what < 95)
        rig_wait(rig, dice(100));
    else if (what < 98)
        rig_partition(rig, dice(2) ? "main" : "gpu", 86400 + dice(1000));
    else
        rig_reserve(rig, "r", dice(2) ? "c[1-450]" : "g[100-300],c[600-700]", 7200 + dice(5), true);
}

/* Does a planner that knows nothing but the state see more than the one that lived through it? */
static void assert_nothing_forgotten(struct rig *rig, uint64_t from)
{
    struct err err = { 0 };

    rig->budget = 2000;
    rig_plan(rig);
    if (sched_check(rig->sched, &err) < 0)
        fail_msg("seed %llu: %s", (unsigned long long)from, err.text);
    sched_free(rig->sched);
    rig->sched = sched_new(rig->state);
    size_t more = rig_plan(rig);
    if (more)
        fail_msg("seed %llu: %zu jobs were forgotten", (unsigned long long)from, more);
}

static void live(uint64_t from)
{
    struct rig *rig = rig_new(large);
    bool more;

    seed = from;
    rig->check = false;
    for (int i = 0; i < 1500; i++)
        submit(rig);
    rig_reserve(rig, "r", "c[1-10]", 7200, false);
    rig_plan(rig);
    for (int step = 0; step < 300; step++) {
        happen(rig);
        rig->budget = 1 + dice(300);
        if (dice(3))
            rig_slice(rig, &more);
    }
    assert_nothing_forgotten(rig, from);
    assert_true(rig->started > 100);
    assert_int_equal(rig->refused, 0);
    rig_free(rig);
}

static void nothing_is_forgotten(void **state)
{
    const char *more = getenv("SPUR_TEST_SEEDS"); /* for a long night */
    uint64_t last = more ? strtoull(more, NULL, 10) : 4;

    (void)state;
    for (uint64_t from = 1; from <= last; from++)
        live(from);
}

/* Everything is set aside and read again over many slices: nothing starts before it is done, then all. */
static void nothing_starts_while_it_reads(void **state)
{
    struct rig *rig = rig_new(large);
    bool more = true;
    unsigned slices = 0;
    size_t count = 0;

    (void)state;
    rig->check = false;
    rig->budget = 100;
    rig_partition(rig, "main", 86400);
    uint32_t job = rig_submit(rig, "c=2");
    for (; more && !count; slices++)
        count = rig_slice(rig, &more);
    assert_true(slices > 3);
    assert_true(rig_runs(rig, job));
    rig_free(rig);
}

/* Whoever asks meanwhile gets an answer. */
static void questions_are_answered_while_it_reads(void **state)
{
    struct rig *rig = rig_new(large);
    struct arena arena;
    struct explanation out;

    (void)state;
    arena_init(&arena);
    uint32_t wide = rig_submit(rig, "N=1200 ex t=60"), other = rig_submit(rig, "N=1000 ex t=60");
    rig_plan(rig);
    rig_partition(rig, "gpu", 86400);
    assert_true(rig_runs(rig, wide));
    assert_int_not_equal(sched_reason(rig->sched, rig_job(rig, other)), 0);
    sched_planned_start(rig->sched, rig_job(rig, other));
    assert_false(sched_is_planned(rig->sched, state_node_at(rig->state, 1100)));
    sched_forecast(rig->sched, rig->now_us);
    sched_explain(rig->sched, rig_job(rig, other), rig->now_us, &arena, &out);
    assert_true(strlen(out.sentence) > 0);
    arena_done(&arena);
    rig_free(rig);
}

UNIT_MAIN(UNIT(nothing_is_forgotten), UNIT(nothing_starts_while_it_reads),
          UNIT(questions_are_answered_while_it_reads))
