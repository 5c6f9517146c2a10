/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_places.c - a job of several partitions has its place in each of them
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "sched/plan.h"
#include "sched/test/rig.h"
#include "schema/reasons.h"
#include "test/unit.h"

#define CLUSTER "cluster_name = \"t\"\n[scheduler]\nselect = [\"CR_Core_Memory\"]\n"
#define NODES   "[[nodes]]\nnames = \"n[1-6]\"\ncpus = 4\nmemory_mb = 4000\n"
#define TIERS                                                                              \
    "[[partitions]]\nname = \"low\"\nnodes = \"ALL\"\ndefault = true\npriority_tier = 1\n" \
    "[[partitions]]\nname = \"high\"\nnodes = \"ALL\"\npriority_tier = 5\n"                \
    "[[partitions]]\nname = \"top\"\nnodes = \"n1\"\npriority_tier = 9\n"                  \
    "[[partitions]]\nname = \"part\"\nnodes = \"n[2-3]\"\npriority_tier = 3\n"

static const char *where(const struct rig *rig, uint32_t id)
{
    return rig_runs(rig, id) ? rig_job(rig, id)->run->partition : "";
}

/* In low it is behind all of high, though it is before them in top. */
static void a_lower_tier_is_not_overtaken_from_above(void **state)
{
    struct rig *rig = rig_new(CLUSTER NODES TIERS);

    (void)state;
    uint32_t full = rig_submit(rig, "N=6 ex t=3600");
    assert_int_equal(rig_plan(rig), 1);
    uint32_t both = rig_submit(rig, "p=low,top c=4 t=60"), high[6];
    for (int i = 0; i < 6; i++)
        high[i] = rig_submit(rig, "p=high c=4 t=60");
    rig_plan(rig);
    rig_end(rig, full);
    assert_int_equal(rig_plan(rig), 6);
    assert_string_equal(where(rig, both), "top"); /* of n1 it has the first claim */
    for (int i = 0; i < 5; i++)
        assert_true(rig_runs(rig, high[i]));
    assert_false(rig_runs(rig, high[5]));
    /* Now n1 is in use: of the others it is the last. */
    uint32_t other = rig_submit(rig, "p=low,top c=4 t=60");
    rig_plan(rig);
    rig_end(rig, high[0]);
    assert_int_equal(rig_plan(rig), 1);
    assert_true(rig_runs(rig, high[5]));
    rig_end(rig, high[1]);
    assert_int_equal(rig_plan(rig), 1);
    assert_string_equal(where(rig, other), "low");
    rig_free(rig);
}

/* Of many places none is lost, whatever order the partitions are named in. */
static void many_tiers(void **state)
{
    enum { TIERS_MOST = 80 };
    static const struct {
        unsigned count;
        bool up;
    } rows[] = {
        { 9, true }, { 9, false }, { 20, true }, { TIERS_MOST, true }, { TIERS_MOST, false }
    };

    (void)state;
    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        struct str toml = { 0 }, words = { 0 };
        str_add(&toml, CLUSTER "[[nodes]]\nnames = \"n1\"\ncpus = 4\nmemory_mb = 4000\n");
        str_add(&words, "c=4 t=60 p=");
        for (unsigned i = 0; i < rows[row].count; i++) {
            unsigned tier = (rows[row].up ? i + 1 : rows[row].count - i) * 10;
            str_addf(&toml, "[[partitions]]\nname = \"p%u\"\nnodes = \"ALL\"\npriority_tier = %u\n",
                     tier, tier);
            str_addf(&words, "%sp%u", i ? "," : "", tier);
        }
        unsigned top = rows[row].count * 10;
        str_addf(&toml, "[[partitions]]\nname = \"near\"\nnodes = \"ALL\"\npriority_tier = %u\n",
                 top - 5);
        struct rig *rig = rig_new(str_text(&toml));
        rig->check = true;
        uint32_t full = rig_submit(rig, "p=near c=4 t=60");
        assert_int_equal(rig_plan(rig), 1);
        uint32_t near = rig_submit(rig, "p=near c=4 t=60"),
                 many = rig_submit(rig, str_text(&words));
        rig_plan(rig);
        rig_end(rig, full);
        assert_int_equal(rig_plan(rig), 1);
        assert_true(rig_runs(rig, many));
        rig_end(rig, many);
        assert_int_equal(rig_plan(rig), 1);
        assert_true(rig_runs(rig, near));
        rig_free(rig);
        str_done(&toml);
        str_done(&words);
    }
}

/* A component in a high partition does not let the others overtake where they are. */
static void a_component_overtakes_nobody(void **state)
{
    static const char *hets[] = { "p=top c=1 t=60 : p=low c=4 t=60 w=n2",
                                  "p=low c=4 t=60 w=n2 : p=top c=1 t=60" };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct rig *rig = rig_new(CLUSTER NODES TIERS);
        rig->check = true;
        uint32_t full = rig_submit(rig, "N=6 ex t=3600");
        assert_int_equal(rig_plan(rig), 1);
        uint32_t high = rig_submit(rig, "p=high c=4 t=60 w=n2"),
                 low = rig_submit(rig, "p=low c=4 t=60 w=n2");
        uint32_t het = rig_submit(rig, hets[i]), last = rig_submit(rig, "p=low c=4 t=60 w=n2");
        rig_plan(rig);
        rig_end(rig, full);
        uint32_t turns[] = { high, low, het, last };
        for (size_t k = 0; k < 4; k++) {
            rig_plan(rig);
            for (size_t other = 0; other < 4; other++)
                assert_int_equal(rig_runs(rig, turns[other]), other == k);
            if (turns[k] == het)
                rig_end(rig, het + 1);
            rig_end(rig, turns[k]);
        }
        rig_free(rig);
    }
}

/* The same by the priority that partitions give. */
static void each_partition_has_its_priority(void **state)
{
    struct rig *rig = rig_new(
        CLUSTER
        "[priority]\ntype = \"multifactor\"\nweight_partition = 1000\nweight_qos = 0\n" NODES
        "[[partitions]]\nname = \"some\"\nnodes = \"ALL\"\ndefault = true\npriority_job_"
        "factor = 1\n"
        "[[partitions]]\nname = \"more\"\nnodes = \"ALL\"\npriority_job_factor = 50\n"
        "[[partitions]]\nname = \"most\"\nnodes = \"n1\"\npriority_job_factor = 100\n");

    (void)state;
    uint32_t full = rig_submit(rig, "N=5 ex t=3600 x=n1"), first = rig_submit(rig, "p=most c=4");
    assert_int_equal(rig_plan(rig), 2);
    uint32_t both = rig_submit(rig, "p=some,most c=4 t=60"), more[5];
    for (int i = 0; i < 5; i++)
        more[i] = rig_submit(rig, "p=more c=4 t=60");
    rig_plan(rig);
    rig_end(rig, full);
    assert_int_equal(rig_plan(rig), 5);
    for (int i = 0; i < 5; i++)
        assert_true(rig_runs(rig, more[i]));
    assert_false(rig_runs(rig, both));
    rig_end(rig, first);
    assert_int_equal(rig_plan(rig), 1);
    assert_string_equal(where(rig, both), "most");
    rig_free(rig);
}

/* It is promised a start once, in the partition where it stands first, or where it is among the first. */
static void it_is_booked_once(void **state)
{
    struct rig *rig = rig_new(CLUSTER NODES TIERS);

    (void)state;
    rig_submit(rig, "N=6 ex t=600");
    assert_int_equal(rig_plan(rig), 1);
    uint32_t both = rig_submit(rig, "p=low,top c=4 t=60");
    rig_plan(rig);
    assert_int_equal(rig->sched->book->list.len, 1);
    assert_int_equal(rig->sched->book->list.items[0].job_id, both);
    assert_int_equal(rig->sched->book->list.items[0].of->parts.list.items[0].host, 0);
    uint32_t before = rig_submit(rig, "p=top c=4 t=60 prio=4294960000");
    rig_plan(rig); /* one of each partition: it is the first of low still */
    assert_non_null(booking_of(rig->sched, before));
    const struct booking *booking = booking_of(rig->sched, both);
    assert_non_null(booking);
    assert_string_equal(booking->of->parts.need->partition->spec->name, "low");
    rig_cancel(rig, before);
    rig_plan(rig);
    booking = booking_of(rig->sched, both);
    assert_non_null(booking);
    assert_string_equal(booking->of->parts.need->partition->spec->name, "top");
    rig_free(rig);
}

/* In low there is room in an hour, in top tomorrow; then that is over sooner. */
static void it_is_promised_the_first_start(void **state)
{
    struct rig *rig = rig_new(CLUSTER NODES TIERS);

    (void)state;
    uint32_t day = rig_submit(rig, "w=n1 ex t=86400"), hour = rig_submit(rig, "N=5 ex t=3600 x=n1");
    assert_int_equal(rig_plan(rig), 2);
    uint32_t both = rig_submit(rig, "p=low,top c=4 t=60");
    rig_plan(rig);
    const struct booking *booking = booking_of(rig->sched, both);
    assert_non_null(booking);
    assert_in_range((booking->start_us - rig->now_us) / US_PER_S, 3598, 3600);
    assert_string_equal(booking->of->parts.need->partition->spec->name, "low");
    /* Nobody behind it in low has it. */
    rig_submit(rig, "N=5 ex t=600 x=n1");
    rig_plan(rig);
    rig_end(rig, hour);
    rig_plan(rig);
    assert_string_equal(where(rig, both), "low");
    assert_true(rig_runs(rig, day));
    rig_free(rig);
}

/* What is kept for it elsewhere, on the same node, is not in its way: it goes where it comes first. */
static void its_promise_is_not_in_its_way(void **state)
{
    struct rig *rig = rig_new(CLUSTER NODES TIERS);

    (void)state;
    uint32_t one = rig_submit(rig, "w=n1 ex t=1800"), two = rig_submit(rig, "w=n2 ex t=1800");
    rig_submit(rig, "N=4 ex t=86400 x=n[1-2]");
    assert_int_equal(rig_plan(rig), 3);
    uint32_t both = rig_submit(rig, "p=low,top ex t=600"),
             high = rig_submit(rig, "p=high ex t=600");
    rig_end(rig, two);
    assert_int_equal(rig_plan(rig), 1);
    assert_true(rig_runs(rig, high));
    const struct booking *booking = booking_of(rig->sched, both); /* when that ends, in low */
    assert_non_null(booking);
    assert_int_equal(booking->of->parts.list.items[0].host, 1);
    rig_end(rig, one);
    assert_int_equal(rig_plan(rig), 1);
    assert_string_equal(where(rig, both), "top");
    rig_free(rig);
}

/* Who is ahead of it is said of the place where it comes first, of each once. */
static void it_is_said_who_is_ahead(void **state)
{
    struct rig *rig = rig_new(CLUSTER NODES TIERS);
    struct explanation about;
    struct arena arena;

    (void)state;
    arena_init(&arena);
    rig_submit(rig, "N=6 ex t=600");
    assert_int_equal(rig_plan(rig), 1);
    rig_submit(rig, "p=low,top c=4 t=60");
    for (int i = 0; i < 3; i++)
        rig_submit(rig, "p=high c=4 t=60");
    uint32_t last = rig_submit(rig, "p=top,low c=4 t=60"), low = rig_submit(rig, "c=4 t=60");
    rig_plan(rig);
    sched_explain(rig->sched, rig_job(rig, last), rig->now_us, &arena, &about);
    assert_int_equal(about.jobs_ahead, 1);
    sched_explain(rig->sched, rig_job(rig, low), rig->now_us, &arena, &about);
    assert_int_equal(about.jobs_ahead, 2); /* of its partition: both are there too */
    assert_int_equal(sched_reason(rig->sched, rig_job(rig, last)), REASON_RESOURCES);
    arena_done(&arena);
    rig_free(rig);
}

/* ---- any history ---- */

static uint64_t seed;

static uint32_t dice(uint32_t sides)
{
    seed = hash_mix(seed + UINT64_C(0x9e3779b97f4a7c15));
    return (uint32_t)(seed >> 33) % sides;
}

static uint32_t random_of(const struct rig *rig, JobState wanted)
{
    uint32_t found = 0, count = 0;

    for (const struct job *job = state_job_from(rig->state, 1); job;
         job = state_job_from(rig->state, (uint64_t)job->id + 1)) {
        if (job->state == wanted && dice(++count) == 0)
            found = job->id;
    }
    return found;
}

/*
 * A job that waits and has room in a partition waits for one that goes before it there, or is promised something. So
 * none of one node does when nobody else waits.
 */
static uint64_t live(uint64_t from)
{
    static const char *const lists[] = { "low",      "high",     "top",          "low,top",
                                         "top,low",  "part,low", "low,high,top", "part,top",
                                         "high,top", "part" };
    static const char *const limits[] = { "", "",
                                          "[accounting]\nenforce = [\"limits\"]\n"
                                          "[[accounts]]\nname = \"all\"\n"
                                          "[[accounts]]\nname = \"a\"\nparent = \"all\"\n"
                                          "grp_tres = \"cpu=9\"\n"
                                          "[[users]]\nname = \"u1\"\naccount = \"a\"\n"
                                          "[[users]]\nname = \"u2\"\naccount = \"all\"\n" };
    struct str toml = { 0 };

    str_addf(&toml, "%sbookings = %u\n%s%s%s%s", CLUSTER, from % 2 ? 1 : 20,
             from % 4 < 2 ? "" : "[preemption]\ntype = \"partition_prio\"\nmode = \"REQUEUE\"\n",
             limits[from % 3], NODES, TIERS);
    struct rig *rig = rig_new(str_text(&toml));
    str_done(&toml);
    seed = from;
    rig->check = true;
    for (int step = 0; step < 150; step++) {
        char words[120];
        uint32_t what = dice(10), id;
        snprintf(words, sizeof(words), "p=%s %s t=%u uid=%u%s", lists[dice(ARRAY_LEN(lists))],
                 dice(4) ? "c=3" : "c=1", 60 * (1 + dice(20)), 1 + dice(2),
                 dice(3) ? "" : " array=0-3%2");
        if (what < 5)
            rig_submit(rig, words);
        else if (what < 8 && (id = random_of(rig, JOB_RUNNING)))
            rig_end(rig, id);
        else if (what == 8 && (id = random_of(rig, JOB_PENDING)))
            rig_cancel(rig, id);
        else
            rig_wait(rig, dice(60));
        rig->budget = 1 + dice(60);
        rig_plan(rig);
        rig_release_all(rig);
        rig_plan(rig);
    }
    uint64_t digest = core_digest(rig->state);
    for (int i = 0; i < 3000 && state_counts(rig->state).pending + state_counts(rig->state).running;
         i++) { /* nobody is left */
        uint32_t id = random_of(rig, JOB_RUNNING);
        if (!id)
            fail_msg("seed %llu: jobs wait and none runs", (unsigned long long)from);
        rig_end(rig, id);
        rig_plan(rig);
        rig_release_all(rig);
        rig_plan(rig);
    }
    assert_int_equal(state_counts(rig->state).pending, 0);
    assert_int_equal(rig->refused, 0);
    assert_int_equal(map_len(&rig->sched->queue->positions), 0);
    rig_free(rig);
    return digest;
}

static void random_histories(void **state)
{
    const char *more = getenv("SPUR_TEST_SEEDS");
    uint64_t last = more ? strtoull(more, NULL, 10) : 24;

    (void)state;
    for (uint64_t from = 1; from <= last; from++)
        live(from);
    assert_true(live(3) == live(3)); /* the same input, the same plan */
}

UNIT_MAIN(UNIT(many_tiers), UNIT(a_component_overtakes_nobody),
          UNIT(a_lower_tier_is_not_overtaken_from_above), UNIT(each_partition_has_its_priority),
          UNIT(it_is_booked_once), UNIT(it_is_promised_the_first_start),
          UNIT(its_promise_is_not_in_its_way), UNIT(it_is_said_who_is_ahead),
          UNIT(random_histories))
