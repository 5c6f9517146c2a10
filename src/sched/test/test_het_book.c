/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_het_book.c - a start is promised to heterogeneous jobs too: one moment for all components
 */
#include "base/hash.h"
#include "sched/test/rig.h"
#include "test/unit.h"

#define S INT64_C(1000000)

static const char two_kinds[] =
    "cluster_name = \"t\"\n[scheduler]\nlicenses = [\"a:1\", \"b:2\"]\n"
    "[[nodes]]\nnames = \"c[1-3]\"\ncpus = 8\nmemory_mb = 8000\n"
    "[[nodes]]\nnames = \"g[1-2]\"\ncpus = 8\nmemory_mb = 8000\ngres = [\"gpu:h100:4\"]\n"
    "[[partitions]]\nname = \"main\"\nnodes = \"c[1-3]\"\ndefault = true\n"
    "[[partitions]]\nname = \"gpu\"\nnodes = \"g[1-2]\"\n"
    "[[partitions]]\nname = \"all\"\nnodes = \"c[1-3],g[1-2]\"\n";

static uint64_t seed;

static uint32_t dice(uint32_t sides)
{
    seed = hash_mix(seed + UINT64_C(0x9e3779b97f4a7c15));
    return (uint32_t)(seed >> 33) % sides;
}

static bool all_run(const struct rig *rig, uint32_t id)
{
    const struct job *job = rig_job(rig, id);
    uint32_t count = job->more && job->more->het_count ? job->more->het_count : 1, run = 0;

    for (uint32_t i = 0; i < count; i++)
        run += rig_runs(rig, id + i);
    assert_true(run == 0 || run == count);
    return run == count;
}

static int64_t planned(const struct rig *rig, uint32_t id)
{
    return sched_planned_start(rig->sched, rig_job(rig, id));
}

static const char *planned_nodes(const struct rig *rig, uint32_t id)
{
    static char text[256];
    struct str names = { 0 };

    sched_planned_nodes(rig->sched, rig_job(rig, id), &names);
    snprintf(text, sizeof(text), "%s", str_text(&names));
    str_done(&names);
    return text;
}

static void all_components_have_the_same_start(void **state)
{
    struct rig *rig = rig_new(two_kinds);

    (void)state;
    uint32_t c1 = rig_submit(rig, "w=c1 ex t=100"), g1 = rig_submit(rig, "p=gpu w=g1 ex t=300");
    rig_plan(rig);
    uint32_t het = rig_submit(rig, "N=3 ex t=50 : p=gpu N=2 gres=gpu:1 t=60");
    uint32_t later = rig_submit(rig, "w=c2 c=1 t=1000"); /* would be in the way */
    uint32_t short_one = rig_submit(rig, "w=c2 c=1 t=200");
    uint32_t gpu = rig_submit(rig, "p=gpu w=g2 c=8 t=1000"),
             beside = rig_submit(rig, "p=gpu w=g2 c=7 t=900");
    rig_plan(rig);
    assert_true(rig_runs(rig, c1) && rig_runs(rig, g1) && rig_runs(rig, short_one));
    assert_false(rig_runs(rig, later) || rig_runs(rig, gpu));
    assert_true(rig_runs(rig, beside)); /* the GPU node has room for both */
    int64_t start = job_end_by(rig_job(rig, g1), rig_job(rig, g1)->run->start_us);
    assert_int_equal(planned(rig, het), start);
    assert_int_equal(planned(rig, het + 1), start);
    assert_string_equal(planned_nodes(rig, het), "c[1-3]");
    assert_string_equal(planned_nodes(rig, het + 1), "g[1-2]");
    assert_true(sched_is_planned(rig->sched, state_node(rig->state, "c3")));
    assert_true(sched_is_planned(rig->sched, state_node(rig->state, "g2")));
    rig_end(rig, g1); /* earlier than it might have */
    rig_plan(rig);
    assert_false(all_run(rig, het));
    assert_true(planned(rig, het) <= start);
    rig_end(rig, c1);
    rig_end(rig, short_one);
    rig_plan(rig);
    assert_true(all_run(rig, het));
    assert_false(rig_runs(rig, later) || rig_runs(rig, gpu));
    rig_free(rig);
}

/* What one could take is what another must have. */
static void the_one_with_less_choice_goes_first(void **state)
{
    static const char *const jobs[] = {
        "c=1 t=60 : w=c1 ex t=60",
        "N=2 ex t=60 : w=c2 ex t=60",
        "c=1 t=60 : w=c1 ex t=60 : w=c3 ex t=60",
        "p=all N=2 ex t=60 : p=main N=3 ex t=60",
        "p=all c=8 t=60 : p=all N=3 ex t=60 : p=gpu c=8 t=60",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
        struct rig *rig = rig_new(two_kinds);
        uint32_t first = rig_submit(rig, "p=all N=5 ex t=100");
        rig_plan(rig);
        uint32_t het = rig_submit(rig, jobs[i]);
        rig_plan(rig);
        assert_int_equal(planned(rig, het),
                         job_end_by(rig_job(rig, first), rig_job(rig, first)->run->start_us));
        rig_end(rig, first);
        rig_plan(rig);
        if (!all_run(rig, het))
            fail_msg("'%s' waits on an empty cluster", jobs[i]);
        rig_free(rig);
    }
}

static void licences_are_for_all_of_them(void **state)
{
    struct rig *rig = rig_new(two_kinds);

    (void)state;
    uint32_t one = rig_submit(rig, "c=1 lic=b:1 t=100");
    rig_plan(rig);
    uint32_t het = rig_submit(rig, "c=1 lic=b:1 t=60 : c=1 lic=b:1 t=60");
    uint32_t behind = rig_submit(rig, "c=1 lic=b:1 t=200");
    rig_plan(rig);
    assert_false(all_run(rig, het));
    assert_false(rig_runs(rig, behind));
    assert_int_equal(planned(rig, het),
                     job_end_by(rig_job(rig, one), rig_job(rig, one)->run->start_us));
    rig_end(rig, one);
    rig_plan(rig);
    assert_true(all_run(rig, het));
    rig_free(rig);
}

static void a_component_that_changes_is_planned_anew(void **state)
{
    struct rig *rig = rig_new(two_kinds);
    Command cmd = COMMAND__INIT;
    CmdUpdateJob update = CMD_UPDATE_JOB__INIT;
    JobSelect select = JOB_SELECT__INIT;
    JobSpec change = JOB_SPEC__INIT;

    (void)state;
    uint32_t c1 = rig_submit(rig, "w=c1 ex t=100"), g1 = rig_submit(rig, "p=gpu N=2 ex t=300");
    rig_plan(rig);
    uint32_t het = rig_submit(rig, "w=c1 c=1 t=50 : p=gpu c=1 t=60"), second = het + 1;
    rig_plan(rig);
    assert_int_equal(planned(rig, het),
                     job_end_by(rig_job(rig, g1), rig_job(rig, g1)->run->start_us));
    select.job_ids = &second;
    select.n_job_ids = 1;
    change.partition = (char *)"main";
    update.jobs = &select;
    update.change = &change;
    cmd.what_case = COMMAND__WHAT_UPDATE_JOB;
    cmd.update_job = &update;
    assert_int_equal(rig_apply(rig, &cmd), ERR_OK);
    rig_plan(rig);
    assert_int_equal(planned(rig, het),
                     job_end_by(rig_job(rig, c1), rig_job(rig, c1)->run->start_us));
    rig_free(rig);
}

/* ---- what can never be ---- */

static void impossible_together(void **state)
{
    static const struct {
        const char *words;
        enum err_code code;
    } rows[] = {
        { "N=3 ex : p=gpu N=2 ex", ERR_OK },
        { "N=2 ex : N=1 ex", ERR_OK },
        { "N=2 ex : N=2 ex", ERR_NODE_CONFIG_UNAVAILABLE },
        { "N=3 ex : c=1", ERR_NODE_CONFIG_UNAVAILABLE },
        { "N=3 ex : p=all c=1", ERR_OK },
        { "N=3 ex : p=gpu N=2 ex : p=all c=1", ERR_NODE_CONFIG_UNAVAILABLE },
        { "w=c1 c=4 : w=c1 c=4", ERR_OK },
        { "w=c1 c=5 : w=c1 c=4", ERR_NODE_CONFIG_UNAVAILABLE },
        { "n=12 : n=12", ERR_OK },
        { "n=12 : n=13", ERR_NODE_CONFIG_UNAVAILABLE },
        { "c=5 : c=5 : c=5", ERR_OK },
        { "c=5 : c=5 : c=5 : c=5", ERR_NODE_CONFIG_UNAVAILABLE },
        { "p=gpu gpus=gpu:4 : p=gpu gpus=gpu:4", ERR_OK },
        { "p=gpu gpus=gpu:4 : p=gpu gpus=gpu:4 : p=gpu gpus=gpu:1", ERR_NODE_CONFIG_UNAVAILABLE },
        { "p=gpu N=2 gres=gpu:3 : p=gpu n=3 gpt=gpu:1", ERR_NODE_CONFIG_UNAVAILABLE },
        { "w=c2 mem=5000 : w=c2 mem=4000", ERR_NODE_CONFIG_UNAVAILABLE },
        { "lic=b:1 : lic=b:1", ERR_OK },
        { "lic=b:2 : lic=b:1", ERR_LICENSES },
        { "over n=24 : over n=24", ERR_OK },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct rig *rig = rig_new(two_kinds);
        if (rig_admit(rig, rows[i].words) != rows[i].code)
            fail_msg("'%s': %d", rows[i].words, rig_admit(rig, rows[i].words));
        if (rows[i].code != ERR_OK) /* the planner says the same of it */
            assert_int_equal(rig_test(rig, rows[i].words), INT64_MAX);
        else
            assert_int_equal(rig_test(rig, rows[i].words), rig->now_us);
        rig_free(rig);
    }
}

static const char *const any[] = {
    "c=1",
    "c=3",
    "c=5",
    "c=8",
    "N=2 n=4",
    "n=6",
    "n=11",
    "N=2 ex",
    "ex",
    "c=2 mem=3000",
    "mem=6000",
    "p=gpu gres=gpu:1",
    "p=gpu gres=gpu:3 c=2",
    "p=gpu N=2 gres=gpu:2",
    "p=gpu gpus=gpu:5 n=5",
    "w=c1 c=2",
    "w=c1,c2 n=9",
    "p=main,gpu c=4",
    "p=all N=3 ex",
    "p=all n=17",
    "lic=b:1",
    "over n=9",
    "N=1 n=7",
};

/* What starts on an empty cluster is never refused; what starts is what the test of it says. */
static void what_is_possible_is_not_refused(void **state)
{
    size_t refused = 0, started = 0, late = 0;

    (void)state;
    seed = 5;
    for (int i = 0; i < 800; i++) {
        char words[256] = "";
        for (uint32_t k = 0, count = 2 + dice(3); k < count; k++)
            snprintf(words + strlen(words), sizeof(words) - strlen(words), "%s%s t=60",
                     k ? " : " : "", any[dice(ARRAY_LEN(any))]);
        struct rig *rig = rig_new(two_kinds);
        bool good = rig_admit(rig, words) == ERR_OK;
        int64_t now = rig->now_us, start = rig_test(rig, words);
        uint32_t id = rig_submit(rig, words);
        assert_true(id);
        rig_plan(rig);
        bool runs = all_run(rig, id);
        if (runs && !good)
            fail_msg("'%s' is refused and could run", words);
        if (!runs && start == now)
            fail_msg("'%s' waits, but was to start now", words);
        late += runs && start != now; /* hets.c (2) */
        refused += !good;
        started += runs;
        assert_int_equal(rig->refused, 0);
        rig_free(rig);
    }
    assert_true(refused > 60 && started > 60 && late * 100 < started);
}

/* ---- Q2, whatever comes ---- */

static const char *const small[] = {
    "c=1", "c=3", "c=8", "p=gpu gres=gpu:1", "p=gpu c=5", "p=all c=2", "p=all c=4 mem=2000",
};
static const char *const wide[] = {
    "N=3 ex t=500 : p=gpu N=2 ex t=500",
    "N=3 ex t=100 : p=gpu N=2 gres=gpu:4 t=900",
    "p=gpu N=2 ex t=200 : N=3 ex t=100",
    "p=all N=2 ex t=100 : p=all N=2 ex t=100 : p=all N=1 ex t=100",
    "p=all n=20 t=100 : p=all n=20 t=300",
    "p=all n=40 t=200",
    "N=1 c=8 t=100 : p=gpu N=1 gres=gpu:4 t=100",
};
enum { STREAM = 600, STEPS = 120, STEP_S = 10 };

static void end_what_is_due(struct rig *rig, const uint32_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct job *job = rig_job(rig, ids[i]);
        if (job && job->state == JOB_RUNNING &&
            (job_end_by(job, job->run->start_us) <= rig->now_us || dice(40) == 0))
            rig_end(rig, ids[i]);
    }
}

static uint64_t stream(uint64_t from, const char *words)
{
    struct rig *rig = rig_new(two_kinds);
    uint32_t ids[STREAM], het = 0;
    int64_t latest = 0;
    size_t count = 0;

    seed = from;
    for (int step = 0; step < STEPS; step++) {
        if (step == 15) {
            het = rig_submit(rig, words);
            assert_true(het);
            for (size_t i = 0; i < count; i++) { /* what waits is before it too */
                const struct job *job = rig_job(rig, ids[i]);
                if (job && job->state == JOB_RUNNING)
                    latest = MAX(latest, job_end_by(job, job->run->start_us));
                else if (job && job->state == JOB_PENDING)
                    rig_cancel(rig, ids[i]);
            }
        }
        for (uint32_t more = 1 + dice(4); more > 0 && count < STREAM; more--) {
            char text[64];
            snprintf(text, sizeof(text), "%s t=%u", small[dice(ARRAY_LEN(small))],
                     10 * (1 + dice(30)));
            ids[count++] = rig_submit(rig, text);
        }
        rig->budget = 1 + dice(300);
        rig_plan(rig);
        if (het && all_run(rig, het))
            break;
        rig_wait(rig, STEP_S);
        end_what_is_due(rig, ids, count);
    }
    if (!all_run(rig, het))
        fail_msg("seed %llu: '%s' starves", (unsigned long long)from, words);
    if (rig->now_us > latest + STEP_S * S && latest)
        fail_msg("seed %llu: '%s' started %lld s after what was before it",
                 (unsigned long long)from, words, (long long)((rig->now_us - latest) / S));
    assert_int_equal(rig->refused, 0); /* never over capacity */
    uint64_t digest = core_digest(rig->state);
    rig_free(rig);
    return digest;
}

static void none_starves(void **state)
{
    (void)state;
    for (uint64_t from = 1; from <= 10; from++) {
        for (size_t i = 0; i < ARRAY_LEN(wide); i++)
            stream(from * 100 + i, wide[i]);
    }
    assert_int_equal(stream(7, wide[0]), stream(7, wide[0]));
}

/* On very many hosts the start is worked out in several slices, and nothing behind it goes meanwhile. */
static void a_wide_one_is_booked_in_slices(void **state)
{
    struct rig *rig = rig_new("cluster_name = \"t\"\n[[nodes]]\nnames = \"n[1-3000]\"\ncpus = 8\n"
                              "memory_mb = 8000\n[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\n"
                              "default = true\n");
    bool more = true;
    unsigned slices = 0;

    (void)state;
    rig->check = false;
    uint32_t a = rig_submit(rig, "N=1000 ex t=600"), b = rig_submit(rig, "N=1900 ex t=900");
    rig_plan(rig);
    assert_true(rig_runs(rig, a) && rig_runs(rig, b));
    uint32_t het = rig_submit(rig, "N=900 ex t=600 : N=1500 ex t=600");
    uint32_t beside = rig_submit(rig, "N=100 ex t=600");
    for (; more; slices++)
        rig_slice(rig, &more);
    assert_true(slices > 2);
    int64_t start = sched_planned_start(rig->sched, rig_job(rig, het));
    int64_t ends = rig_job(rig, b)->run->start_us + 900 * S;
    assert_true(start >= ends && start < ends + S);
    assert_int_equal(start, sched_planned_start(rig->sched, rig_job(rig, het + 1)));
    assert_true(rig_runs(rig, beside)); /* it ends before */
    rig_end(rig, a);
    rig_end(rig, b);
    rig_plan(rig);
    assert_true(rig_runs(rig, het) && rig_runs(rig, het + 1));
    rig_free(rig);
}

UNIT_MAIN(UNIT(all_components_have_the_same_start), UNIT(the_one_with_less_choice_goes_first),
          UNIT(licences_are_for_all_of_them), UNIT(a_wide_one_is_booked_in_slices),
          UNIT(a_component_that_changes_is_planned_anew), UNIT(impossible_together),
          UNIT(what_is_possible_is_not_refused), UNIT(none_starves))
