/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_het.c - the components of a heterogeneous job start together or not at all
 */
#include "base/hash.h"
#include "sched/test/rig.h"
#include "test/unit.h"

static const char two_kinds[] =
    "cluster_name = \"t\"\n"
    "[[nodes]]\nnames = \"c[1-2]\"\ncpus = 8\nmemory_mb = 8000\n"
    "[[nodes]]\nnames = \"g[1-2]\"\ncpus = 8\nmemory_mb = 8000\ngres = [\"gpu:h100:4\"]\n"
    "[[partitions]]\nname = \"main\"\nnodes = \"c[1-2]\"\ndefault = true\n"
    "[[partitions]]\nname = \"gpu\"\nnodes = \"g[1-2]\"\n";

/* How many components run; the others must be as one says. */
static size_t running(const struct rig *rig, uint32_t id)
{
    const struct job *first = rig_job(rig, id);
    size_t count = 0;

    for (uint32_t i = 0; i < first->more->het_count; i++)
        count += rig_runs(rig, id + i);
    return count;
}

static void a_host_that_only_the_second_wants_wakes_the_first(void **state)
{
    struct rig *rig = rig_new(two_kinds);

    (void)state;
    uint32_t gpus = rig_submit(rig, "p=gpu N=2 gres=gpu:4 t=600");
    rig_plan(rig);
    assert_true(rig_runs(rig, gpus));
    uint32_t het = rig_submit(rig, "c=1 t=600 : p=gpu gres=gpu:1 t=600");
    rig_plan(rig);
    assert_int_equal(running(rig, het), 0);
    assert_int_equal(state_node_at(rig->state, 0)->cpus_used, 0); /* nothing is held for it */
    rig_end(rig, gpus);
    rig_plan(rig);
    assert_int_equal(running(rig, het), 2);
    rig_free(rig);
}

static void one_that_waits_is_not_in_the_way_of_its_like(void **state)
{
    struct rig *rig = rig_new(two_kinds);

    (void)state;
    uint32_t gpus = rig_submit(rig, "p=gpu N=2 gres=gpu:4 t=600");
    rig_plan(rig);
    uint32_t het = rig_submit(rig, "c=2 t=600 : p=gpu gres=gpu:1 t=600");
    rig_plan(rig);
    uint32_t like = rig_submit(rig, "c=2 t=600"); /* as its first component alone */
    rig_plan(rig);
    assert_true(rig_runs(rig, like));
    assert_int_equal(running(rig, het), 0);
    rig_end(rig, gpus);
    rig_plan(rig);
    assert_int_equal(running(rig, het), 2);
    rig_free(rig);
}

static void nothing_is_tried_in_vain_for_ever(void **state)
{
    struct rig *rig = rig_new(two_kinds);
    bool more = true;

    (void)state;
    rig_submit(rig, "p=gpu N=2 gres=gpu:4 t=600");
    rig_plan(rig);
    rig_submit(rig, "c=1 t=600 : p=gpu gres=gpu:1 t=600");
    rig_submit(rig, "c=1 t=600 : c=1 hold t=600");
    for (int i = 0; i < 20 && more; i++)
        assert_int_equal(rig_slice(rig, &more), 0);
    assert_false(more);
    rig_free(rig);
}

static void a_component_that_is_let_go_brings_the_others(void **state)
{
    struct rig *rig = rig_new(two_kinds);
    Command cmd = COMMAND__INIT;
    CmdUpdateJob release = CMD_UPDATE_JOB__INIT;
    JobSelect select = JOB_SELECT__INIT;

    (void)state;
    uint32_t het = rig_submit(rig, "c=1 t=600 : c=1 hold t=600 : c=2 t=600"), second = het + 1;
    rig_plan(rig);
    assert_int_equal(running(rig, het), 0);
    assert_int_equal(sched_reason(rig->sched, rig_job(rig, het)),
                     core_job_reason(rig->state, rig_job(rig, second)));
    select.job_ids = &second;
    select.n_job_ids = 1;
    release.jobs = &select;
    release.has_hold = true;
    cmd.what_case = COMMAND__WHAT_UPDATE_JOB;
    cmd.update_job = &release;
    assert_int_equal(rig_apply(rig, &cmd), ERR_OK);
    rig_plan(rig);
    assert_int_equal(running(rig, het), 3);
    rig_free(rig);
}

static void the_start_is_that_of_the_last_component(void **state)
{
    struct rig *rig = rig_new(two_kinds);
    struct explanation about = { 0 };
    struct arena arena;

    (void)state;
    arena_init(&arena);
    rig_submit(rig, "p=gpu N=2 gres=gpu:4 t=600");
    rig_plan(rig);
    uint32_t het = rig_submit(rig, "c=1 t=60 : p=gpu gres=gpu:1 t=60");
    rig_plan(rig);
    int64_t free_us = rig->now_us + INT64_C(590) * 1000000;
    sched_explain(rig->sched, rig_job(rig, het), rig->now_us, &arena, &about);
    assert_true(about.planned_start_us > free_us);
    assert_true(sched_planned_start(rig->sched, rig_job(rig, het)) > free_us);
    assert_true(sched_planned_start(rig->sched, rig_job(rig, het + 1)) > free_us);
    arena_done(&arena);
    rig_free(rig);
}

static void both_may_share_a_node(void **state)
{
    struct rig *rig = rig_new(two_kinds);

    (void)state;
    uint32_t het = rig_submit(rig, "c=4 w=c1 t=600 : c=4 w=c1 t=600");
    rig_plan(rig);
    assert_int_equal(running(rig, het), 2);
    uint32_t over = rig_submit(rig, "c=5 w=c2 t=600 : c=4 w=c2 t=600");
    rig_plan(rig);
    assert_int_equal(running(rig, over), 0); /* never beside each other */
    assert_int_equal(rig->refused, 0);
    rig_free(rig);
}

/* ---- whatever happens ---- */

static uint64_t seed;

static uint32_t dice(uint32_t sides)
{
    seed = hash_mix(seed + UINT64_C(0x9e3779b97f4a7c15));
    return (uint32_t)(seed >> 33) % sides;
}

static const char *const shapes[] = {
    "c=1",
    "c=3",
    "c=8",
    "N=2 n=4",
    "n=6",
    "c=2 mem=3000",
    "p=gpu gres=gpu:1",
    "p=gpu gres=gpu:3 c=2",
    "p=gpu N=2 gres=gpu:2",
    "w=c1 c=2",
    "p=main,gpu c=4",
};
static const char *const lengths[] = { "t=60", "t=600", "t=3600" };

enum { JOBS_MOST = 1024, WORDS_MOST = 256 };
static char asked[JOBS_MOST][WORDS_MOST]; /* by the first component's number */

static uint32_t random_job(struct rig *rig)
{
    char words[WORDS_MOST] = "";
    size_t parts = dice(2) ? 1 : 2 + dice(2);

    for (size_t i = 0; i < parts; i++)
        snprintf(words + strlen(words), sizeof(words) - strlen(words), "%s%s %s", i ? " : " : "",
                 shapes[dice(ARRAY_LEN(shapes))], lengths[dice(3)]);
    uint32_t id = rig_submit(rig, words);
    assert_true(id < JOBS_MOST);
    strcpy(asked[id], words);
    return id;
}

/* Is there room for all its components at once when nothing else runs? */
static bool fits_alone(const struct job *job)
{
    uint32_t first = job->more && job->more->het_count ? job->more->het_job_id : job->id;
    struct rig *rig = rig_new(two_kinds);
    uint32_t id = rig_submit(rig, asked[first]);

    rig_plan(rig);
    bool runs = rig_runs(rig, id);
    rig_free(rig);
    return runs;
}

/* All of a job's components run, or none, and none has anything of a node that does not run or end. */
static void together_or_not_at_all(const struct rig *rig)
{
    for (const struct job *job = state_job_from(rig->state, 1); job;
         job = state_job_from(rig->state, (uint64_t)job->id + 1)) {
        if (!job->more || !job->more->het_count || job->more->het_offset)
            continue;
        uint32_t count = job->more->het_count, pending = 0, active = 0;
        for (uint32_t i = 0; i < count; i++) {
            const struct job *part = rig_job(rig, job->id + i);
            pending += part->state == JOB_PENDING;
            active += part->state == JOB_RUNNING;
            if (part->state == JOB_PENDING)
                assert_null(part->run);
        }
        assert_true(pending == 0 || pending == count);
        assert_true(active == 0 || active == count);
    }
}

static uint32_t pick(const struct rig *rig, JobState wanted)
{
    uint32_t found = 0, count = 0;

    for (const struct job *job = state_job_from(rig->state, 1); job;
         job = state_job_from(rig->state, (uint64_t)job->id + 1)) {
        if (job->state == wanted && dice(++count) == 0)
            found = job->id;
    }
    return found;
}

/* The nodes of all that ended say that nothing is left. */
static void release_all(struct rig *rig)
{
    for (const struct job *job = state_job_from(rig->state, 1); job;
         job = state_job_from(rig->state, (uint64_t)job->id + 1)) {
        if (job->flags & JOB_FLAG_COMPLETING)
            rig_release(rig, job->id);
    }
}

static uint64_t live(uint64_t from, int steps)
{
    static const char *const nodes[] = { "c1", "g1", "g2" };
    struct rig *rig = rig_new(two_kinds);

    seed = from;
    for (int step = 0; step < steps; step++) {
        uint32_t what = dice(100), id;
        if (what < 45) {
            random_job(rig);
        } else if (what < 80) {
            if ((id = pick(rig, JOB_RUNNING)))
                rig_end(rig, id);
        } else if (what < 88) {
            if ((id = pick(rig, JOB_PENDING)))
                rig_cancel(rig, id);
        } else if (what < 94) {
            rig_node(rig, nodes[dice(3)], dice(2) ? "DRAIN" : "RESUME");
        } else {
            rig_wait(rig, dice(200)); /* some reach their limit */
        }
        if (dice(3))
            release_all(rig);
        rig->budget = 1 + dice(50);
        rig_plan(rig);
        together_or_not_at_all(rig);
    }
    for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
        rig_node(rig, nodes[i], "RESUME");
    release_all(rig);
    rig_plan(rig);
    for (uint32_t id; (id = pick(rig, JOB_RUNNING)); rig_plan(rig)) { /* everything has its turn */
        rig_end(rig, id);
        release_all(rig);
        together_or_not_at_all(rig);
    }
    for (const struct job *job = state_job_from(rig->state, 1); job;
         job = state_job_from(rig->state, (uint64_t)job->id + 1)) {
        if (job->state == JOB_PENDING && fits_alone(job))
            fail_msg("seed %llu: job %u waits on an empty cluster", (unsigned long long)from,
                     job->id);
    }
    assert_int_equal(rig->refused, 0);
    uint64_t digest = core_digest(rig->state);
    rig_free(rig);
    return digest;
}

static void anything_may_happen(void **state)
{
    (void)state;
    for (uint64_t from = 1; from <= 20; from++)
        live(from, 150);
    assert_int_equal(live(77, 150), live(77, 150));
}

/* Only its second component minds; in one plan, and when it runs. */
static void a_component_has_its_node_for_one_user(void **state)
{
    struct rig *rig = rig_new(two_kinds);

    (void)state;
    uint32_t het = rig_submit(rig, "c=1 uid=1 t=600 : p=gpu w=g1 c=1 exuser uid=1 t=600");
    uint32_t other = rig_submit(rig, "p=gpu w=g1 c=1 uid=2 t=600");
    uint32_t own = rig_submit(rig, "p=gpu w=g1 c=1 uid=1 t=600");
    rig_plan(rig);
    assert_int_equal(running(rig, het), 2);
    assert_int_equal(rig->refused, 0);
    assert_false(rig_runs(rig, other));
    assert_true(rig_runs(rig, own));
    rig_free(rig);
}

UNIT_MAIN(UNIT(a_component_has_its_node_for_one_user),
          UNIT(a_host_that_only_the_second_wants_wakes_the_first),
          UNIT(one_that_waits_is_not_in_the_way_of_its_like),
          UNIT(nothing_is_tried_in_vain_for_ever),
          UNIT(a_component_that_is_let_go_brings_the_others),
          UNIT(the_start_is_that_of_the_last_component), UNIT(both_may_share_a_node),
          UNIT(anything_may_happen))
