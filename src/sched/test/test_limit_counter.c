/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_limit_counter.c - the planner under limits, held against a judge that looks at everything
 *
 * Random users with random limits of every kind that is counted: of jobs and of TRES, of users,
 * accounts and QOS, of a partition's QOS. After every step core and planner check all their
 * invariants. Whenever nothing more starts, each waiting job is held against every limit and every
 * node: what the limits allow, what fits and is in nobody's way must run. Each user has few shapes,
 * so that all of his jobs that differ are looked at (limit_review.c (2)).
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "core/accounts.h"
#include "sched/test/rig.h"
#include "test/unit.h"

enum { USERS = 6, NODES = 5, SHAPES = 3 };

static uint64_t seed, first_seed;
static bool lengths; /* jobs of a shape differ in their limit */

static uint32_t dice(uint32_t sides)
{
    seed = hash_mix(seed + UINT64_C(0x9e3779b97f4a7c15));
    return (uint32_t)(seed >> 33) % sides;
}

static void add_bound(struct str *toml, const char *key, uint32_t least, uint32_t spread)
{
    if (dice(2))
        str_addf(toml, "%s = %u\n", key, least + dice(spread));
}

static void add_tres(struct str *toml, const char *key, uint32_t least, uint32_t spread)
{
    if (dice(2) == 0)
        return;
    str_addf(toml, "%s = \"cpu=%u", key, least + dice(spread));
    if (dice(3) == 0)
        str_addf(toml, ",gres/gpu=%u", 2 + dice(6));
    if (dice(3) == 0)
        str_addf(toml, ",node=%u", 2 + dice(8));
    str_add(toml, "\"\n");
}

static struct rig *cluster(void)
{
    struct str toml = { 0 };

    str_addf(&toml,
             "cluster_name = \"t\"\n[scheduler]\nselect = [\"CR_Core\"]\nbookings = %u\n"
             "[accounting]\nenforce = [\"limits\"]\ntres = [\"gres/gpu\"]\n"
             "[priority]\nweight_age = 1000\nweight_fairshare = %u\ncalc_period = 1\n"
             "[[nodes]]\nnames = \"n[1-%u]\"\ncpus = 8\nmemory_mb = 8000\ngres = [\"gpu:4\"]\n"
             "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\nqos = \"part\"\n"
             "[[partitions]]\nname = \"other\"\nnodes = \"ALL\"\n",
             1 + dice(3), dice(2) * 10000, NODES);
    for (unsigned i = 0; i < 2; i++) {
        str_addf(&toml, "[[qos]]\nname = \"%s\"\n", i ? "part" : "normal");
        add_bound(&toml, "grp_jobs", 4, 12);
        add_bound(&toml, "max_jobs_per_user", 2, 6);
        add_tres(&toml, "max_tres_per_user", 8, 12);
        add_tres(&toml, "max_tres_per_account", 10, 16);
    }
    str_add(&toml, "[[accounts]]\nname = \"all\"\n");
    add_tres(&toml, "grp_tres", 20, 20);
    for (unsigned i = 0; i < 3; i++) {
        str_addf(&toml, "[[accounts]]\nname = \"a%u\"\nparent = \"all\"\n", i);
        add_bound(&toml, "grp_jobs", 2, 6);
        add_tres(&toml, "grp_tres", 8, 16);
    }
    for (unsigned i = 1; i <= USERS; i++) {
        str_addf(&toml, "[[users]]\nname = \"u%u\"\naccount = \"a%u\"\n", i, i % 3);
        add_bound(&toml, "max_jobs", 1, 5);
        add_tres(&toml, "grp_tres", 8, 8);
    }
    struct rig *rig = rig_new(str_text(&toml));
    str_done(&toml);
    rig->check = true;
    return rig;
}

static void submit(struct rig *rig)
{
    uint32_t user = 1 + dice(USERS), shape = (user + dice(SHAPES)) % 7;
    char words[120];
    static const char *const shapes[] = {
        "n=1 N=1",
        "n=2 N=1",
        "n=4 N=1",
        "n=8 N=1",
        "n=1 N=1 gres=gpu:1",
        "n=3 N=1",
        "n=2 N=1 gres=gpu:3",
    };

    uint32_t length = 600 * (lengths ? 1 + dice(7) : 1 + shape);
    snprintf(words, sizeof(words), "%s t=%u uid=%u%s%s", shapes[shape], length, user,
             user == 3 ? " p=other" : "", dice(4) ? "" : " nice=20");
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

/* ---- the judge ---- */

static bool fits(const struct rig *rig, const struct job *job)
{
    const struct need *need = &shape_needs(rig->state, job->shape)[0];

    for (size_t n = 0; n < state_node_count(rig->state); n++) {
        const struct node *node = state_node_at(rig->state, n);
        uint64_t gres[TAKE_GRES] = { node->gres[0].total - node->gres[0].used };
        struct room room = { node->cpus - node->cpus_used, node->mem_mb - node->mem_used_mb, gres,
                             node->jobs.len == 0 };
        if (node_is_usable(node) && fit_units(job->shape, need, node, &room) >= job->shape->units)
            return true;
    }
    return false;
}

static void nothing_was_forgotten(const struct rig *rig)
{
    int64_t first = INT64_MAX;

    for (const struct job *job = state_job_from(rig->state, 1); job;
         job = state_job_from(rig->state, (uint64_t)job->id + 1)) {
        int64_t start = job->state == JOB_PENDING ? sched_planned_start(rig->sched, job) : 0;
        if (start)
            first = first < start ? first : start;
    }
    for (const struct job *job = state_job_from(rig->state, 1); job;
         job = state_job_from(rig->state, (uint64_t)job->id + 1)) {
        struct limit_hit hit;
        if (!job_is_eligible(job) || job_end_by(job, rig->now_us) > first)
            continue;
        if (limits_allow_any(rig->state, job, NULL, &hit) && fits(rig, job))
            fail_msg("seed %llu: job %u could run and is in nobody's way",
                     (unsigned long long)first_seed, job->id);
    }
}

static uint64_t live(uint64_t from, int steps)
{
    seed = first_seed = from;
    struct rig *rig = cluster();
    for (int step = 0; step < steps; step++) {
        uint32_t what = dice(100), id;
        if (what < 45) {
            submit(rig);
        } else if (what < 88) {
            if ((id = random_running(rig)))
                rig_end(rig, id);
        } else if (what < 92) {
            rig_cancel(rig, 1 + dice((uint32_t)rig->index));
        } else if (what < 95) {
            rig_node(rig, dice(2) ? "n1" : "n2", dice(2) ? "DRAIN" : "RESUME");
        } else {
            rig_wait(rig, dice(200));
        }
        rig->budget = 1 + dice(50);
        if (dice(4) == 0)
            continue; /* several things happen at once */
        rig_plan(rig);
        nothing_was_forgotten(rig);
    }
    uint64_t digest = core_digest(rig->state);
    assert_int_equal(rig->refused, 0);
    rig_free(rig);
    return digest;
}

static uint64_t number_of(const char *name, uint64_t unless)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 10) : unless;
}

static void what_limits_allow_and_fits_runs(void **state)
{
    static const uint64_t known[] = { 930 }; /* that once found something */
    uint64_t from = number_of("SPUR_TEST_FROM", 1);
    uint64_t last = number_of("SPUR_TEST_SEEDS", 12); /* more for a long night */

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        live(known[i], 300);
    for (; from <= last; from++)
        live(from, 300);
}

static void short_ones_run_where_long_ones_do_not(void **state)
{
    uint64_t from = number_of("SPUR_TEST_FROM", 1), last = number_of("SPUR_TEST_SEEDS", 8);

    (void)state;
    lengths = true;
    live(310, 300); /* once found something */
    for (; from <= last; from++)
        live(from, 300);
    lengths = false;
}

static void the_same_history_gives_the_same_plan(void **state)
{
    (void)state;
    assert_int_equal(live(77, 200), live(77, 200));
}

UNIT_MAIN(UNIT(what_limits_allow_and_fits_runs), UNIT(short_ones_run_where_long_ones_do_not),
          UNIT(the_same_history_gives_the_same_plan))
