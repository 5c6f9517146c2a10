/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_search.c - starts that are worked out over several slices
 *
 * However little is done in a slice, what is promised is what comes out at once, as long as nothing happens
 * meanwhile. When something does, the search ends all the same, what is promised holds, and a release is not missed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "sched/plan.h"
#include "sched/test/rig.h"
#include "test/unit.h"

static uint64_t seed;

static uint32_t dice(uint32_t sides)
{
    seed = hash_mix(seed + UINT64_C(0x9e3779b97f4a7c15));
    return (uint32_t)(seed >> 33) % sides;
}

static const char toml[] =
    "cluster_name = \"t\"\n[scheduler]\nselect = [\"CR_Core_Memory\"]\nbookings = 6\n"
    "licenses = [\"matlab:5\"]\n[jobs]\ndef_mem_per_cpu = 100\n"
    "[[nodes]]\nnames = \"c[1-8]\"\ncpus = 16\nsockets = 2\ncores_per_socket = 8\n"
    "memory_mb = 4000\nfeatures = [\"cpu\"]\n"
    "[[nodes]]\nnames = \"g[1-6]\"\ncpus = 32\nsockets = 2\ncores_per_socket = 16\n"
    "memory_mb = 8000\ngres = [\"gpu:h100:8\"]\nfeatures = [\"fast\", \"new\"]\n"
    "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n"
    "[[partitions]]\nname = \"gpu\"\nnodes = \"g[1-6]\"\n";

static const char tree[] = "[topology]\nplugin = \"tree\"\n"
                           "[[switches]]\nname = \"s1\"\nnodes = \"c[1-4]\"\n"
                           "[[switches]]\nname = \"s2\"\nnodes = \"c[5-8]\"\n"
                           "[[switches]]\nname = \"s3\"\nnodes = \"g[1-6]\"\n"
                           "[[switches]]\nname = \"top\"\nswitches = \"s[1-3]\"\n";

static const char *const narrow[] = {
    "c=3",
    "c=7",
    "n=12",
    "N=2 n=4",
    "gres=gpu:2 c=4",
    "mem=3000 c=1",
    "N=2 tpn=6 n=12",
    "ex",
    "c=2",
    "lic=matlab:2 c=1",
};

/* Those whose searches are long. */
static const char *const wide[] = {
    "N=14 ex",
    "N=9 ex",
    "N=6 tpn=8 n=48",
    "N=2-9 n=120",
    "N=4 ex contig",
    "N=4 ex w=c[2-4]",
    "N=5 ex C=[cpu|fast|new]",
    "N=4 C=[cpu*2&fast*2]",
    "N=4 ex prefer=fast",
    "N=4 ex switches=1",
    "p=main,gpu N=5 ex",
    "N=4 ex lic=matlab:5",
    "N=1,3,6 ex",
    "gpus=20 n=20",
    "N=4 ex : N=3 ex : N=3 ex gres=gpu:8",
    "N=8 n=64 : N=4 gres=gpu:4 c=2",
    "p=gpu N=6 ex : N=8 ex",
    "N=5 ex lic=matlab:3 : N=5 ex lic=matlab:2 : c=4 : mem=3000",
};

static void random_job(struct rig *rig, const char *shape)
{
    char words[200];

    snprintf(words, sizeof(words), "%s t=%u uid=%u", shape, 60 * (1 + dice(60)), 1 + dice(3));
    rig_submit(rig, words);
}

static void random_end(struct rig *rig)
{
    uint32_t found = 0, count = 0;

    for (const struct job *job = state_job_from(rig->state, 1); job;
         job = state_job_from(rig->state, (uint64_t)job->id + 1)) {
        if (job->state == JOB_RUNNING && dice(++count) == 0)
            found = job->id;
    }
    if (found)
        rig_end(rig, found);
}

static struct rig *history(uint64_t from)
{
    char text[sizeof(toml) + sizeof(tree)];

    seed = from;
    snprintf(text, sizeof(text), "%s%s", toml, from % 2 ? tree : "");
    struct rig *rig = rig_new(text);
    rig->check = false;
    for (int step = 0; step < 60; step++) {
        if (dice(10) < 8)
            random_job(rig,
                       dice(8) ? narrow[dice(ARRAY_LEN(narrow))] : wide[dice(ARRAY_LEN(wide))]);
        else if (dice(2))
            random_end(rig);
        else
            rig_wait(rig, dice(100));
        rig_plan(rig);
    }
    return rig;
}

/* "1700000000000001:0x8,3x16;..." of a booking; nothing: it is not booked. */
static char *promise(const struct rig *rig, uint32_t id)
{
    const struct booking *booking = booking_of(rig->sched, id);
    struct str text = { 0 };

    if (booking)
        str_addf(&text, "%lld:", (long long)booking->start_us);
    for (uint32_t k = 0; booking && k < booking->count; k++) {
        const struct parts *parts = &booking->of[k].parts;
        for (size_t i = 0; i < parts->list.len; i++)
            str_addf(&text, "%ux%u/%u,", parts->list.items[i].host, parts->list.items[i].take.tasks,
                     parts->list.items[i].take.cpus);
        str_add(&text, ";");
    }
    char *copy = mem_strdup(str_text(&text));
    str_done(&text);
    return copy;
}

static uint32_t submit_first(struct rig *rig, const char *shape)
{
    char words[300] = "", part[200];

    /* The same priority for all components. */
    for (const char *at = shape; at;
         at = strchr(at, ':') && strstr(at, " : ") ? strstr(at, " : ") + 3 : NULL) {
        size_t len = strstr(at, " : ") ? (size_t)(strstr(at, " : ") - at) : strlen(at);
        snprintf(part, sizeof(part), "%s%.*s t=3000 uid=9 prio=4294960000", *words ? " : " : "",
                 (int)len, at);
        strncat(words, part, sizeof(words) - strlen(words) - 1);
    }
    return rig_submit(rig, words);
}

static uint64_t last_seed(uint64_t otherwise)
{
    const char *more = getenv("SPUR_TEST_SEEDS");

    return more ? strtoull(more, NULL, 10) : otherwise;
}

static unsigned slices_of(struct rig *rig)
{
    unsigned slices = 0;
    bool more = true;

    for (; more && slices < 1000000; slices++) {
        if (rig_slice(rig, &more))
            more = true;
    }
    assert_true(slices < 1000000);
    return slices;
}

static void slices_change_nothing(void **state)
{
    static const unsigned looks[] = { 0, 1, 7, 50, 1000 };
    unsigned booked = 0, most = 0;

    (void)state;
    for (uint64_t from = 1; from <= last_seed(40); from++) {
        char *first = NULL;
        for (size_t i = 0; i < ARRAY_LEN(looks); i++) {
            struct rig *rig = history(from);
            rig->sched->book->search_looks = looks[i];
            uint32_t id = submit_first(rig, wide[from % ARRAY_LEN(wide)]);
            unsigned slices = slices_of(rig);
            most = MAX(most, slices);
            char *text = promise(rig, id);
            booked += *text != '\0';
            if (first && strcmp(first, text) != 0)
                fail_msg("seed %llu, %u looks: %s\n, at once: %s", (unsigned long long)from,
                         looks[i], text, first);
            if (!first)
                first = text;
            else
                free(text);
            rig_free(rig);
        }
        free(first);
    }
    assert_true(booked > last_seed(40)); /* many of them, and over many slices */
    assert_true(most > 100);
}

/* Something happens after every slice; all invariants are looked at. It comes to an end when nothing more does. */
static void something_comes_between(void **state)
{
    unsigned booked = 0;

    (void)state;
    for (uint64_t from = 1; from <= last_seed(30); from++) {
        struct rig *rig = history(from);
        bool more = true;
        rig->check = true;
        rig->sched->book->search_looks = 1 + dice(20);
        uint32_t id = submit_first(rig, wide[from % ARRAY_LEN(wide)]);
        for (int step = 0; step < 60 && more; step++) {
            rig_slice(rig, &more);
            uint32_t what = dice(10);
            if (what < 4)
                random_end(rig);
            else if (what < 6)
                random_job(rig, narrow[dice(ARRAY_LEN(narrow))]);
            else if (what == 6)
                rig_wait(rig, dice(30));
            else if (what == 7)
                submit_first(rig, wide[dice(ARRAY_LEN(wide))]);
            else if (what == 8)
                rig_node(rig, dice(2) ? "c3" : "g2", dice(2) ? "DRAIN" : "RESUME");
        }
        slices_of(rig);
        const struct booking *booking = booking_of(rig->sched, id);
        booked += booking != NULL;
        rig_free(rig);
    }
    assert_true(booked > 0);
}

/* A search for ever in the way of changes: something happens in each of a thousand slices, and it is booked. */
static void it_ends_whatever_happens(void **state)
{
    struct rig *rig = rig_new(toml);
    bool more;

    (void)state;
    rig->check = false;
    for (unsigned i = 0; i < 14; i++)
        rig_submit(rig, "N=1 n=2 tpn=2 t=86400 uid=1");
    rig_plan(rig);
    rig->sched->book->search_looks = 2;
    uint32_t id = submit_first(rig, "N=6 ex : N=4 ex gres=gpu:8 : N=3 ex"), ids[50] = { 0 };
    unsigned slices = 0;
    for (; slices < 3000 && !booking_of(rig->sched, id); slices++) {
        uint32_t *last = &ids[slices % 50];
        if (*last && rig_runs(rig, *last))
            rig_end(rig, *last);
        *last = rig_submit(rig, "c=1 t=600 uid=2 prio=4294967000"); /* where it was to be */
        rig_slice(rig, &more);
    }
    assert_in_range(slices, 20, 2999);
    rig_free(rig);
}

/* Nodes become free at 100, 200, 300, 400 s; in the middle of the search the last one does at once. */
static void a_release_is_seen(void **state)
{
    (void)state;
    for (unsigned after = 0; after < 40; after++) {
        struct rig *rig =
            rig_new("cluster_name = \"t\"\n[[nodes]]\nnames = \"n[1-4]\"\ncpus = 4\n"
                    "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n");
        char words[80];
        uint32_t last = 0;
        bool more = true;
        for (unsigned i = 1; i <= 4; i++) {
            snprintf(words, sizeof(words), "ex w=n%u t=%u", i, 100 * i);
            last = rig_submit(rig, words);
        }
        rig_plan(rig);
        rig->sched->book->search_looks = 1;
        uint32_t id = rig_submit(rig, after % 2 ? "N=2 ex t=60 : N=2 ex t=60" : "N=4 ex t=60");
        for (unsigned i = 0; i < after && more; i++)
            rig_slice(rig, &more);
        rig_end(rig, last);
        slices_of(rig);
        const struct booking *booking = booking_of(rig->sched, id);
        assert_non_null(booking);
        assert_in_range((booking->start_us - rig->now_us) / US_PER_S, 299, 301);
        rig_free(rig);
    }
}

/* "id@start;" of all that wait, as it is said of them. */
static char *foreseen(struct rig *rig)
{
    struct str text = { 0 };

    for (const struct job *job = state_job_from(rig->state, 1); job;
         job = state_job_from(rig->state, (uint64_t)job->id + 1)) {
        if (job->state != JOB_PENDING)
            continue;
        str_addf(&text, "%u@%lld ", job->id, (long long)sched_planned_start(rig->sched, job));
        sched_planned_nodes(rig->sched, job, &text);
        str_add(&text, "; ");
    }
    char *copy = mem_strdup(str_text(&text));
    str_done(&text);
    return copy;
}

static int64_t explained(struct rig *rig, uint32_t id)
{
    struct arena arena;
    struct explanation about;

    arena_init(&arena);
    sched_explain(rig->sched, rig_job(rig, id), rig->now_us, &arena, &about);
    int64_t start = about.planned_start_us;
    arena_done(&arena);
    return start;
}

/* The last that waits is neither booked nor foreseen. */
static void what_is_asked_is_answered_in_slices(void **state)
{
    static const unsigned looks[] = { 0, 1, 30 };
    static const uint64_t failed_once[] = { 142, 144 };
    unsigned known = 0;

    (void)state;
    for (uint64_t i = 0; i < ARRAY_LEN(failed_once) + last_seed(16); i++) {
        uint64_t from =
            i < ARRAY_LEN(failed_once) ? failed_once[i] : i + 1 - ARRAY_LEN(failed_once);
        char *first = NULL;
        int64_t start = 0;
        for (size_t turn = 0; turn < ARRAY_LEN(looks); turn++) {
            struct rig *rig = history(from);
            for (unsigned k = 0; k < 66; k++)
                rig_submit(rig, "N=9 ex t=60 uid=4");
            uint32_t id = rig_submit(rig, wide[from % ARRAY_LEN(wide)]);
            rig_plan(rig);
            rig_wait(rig, 2);
            rig_plan(rig);
            rig->sched->book->search_looks = looks[turn];
            sched_forecast(rig->sched, rig->now_us);
            slices_of(rig);
            assert_false(sched_is_asked(rig->sched));
            char *text = foreseen(rig);
            if (id)
                explained(rig, id);
            slices_of(rig);
            int64_t said = id ? explained(rig, id) : 0;
            assert_false(sched_is_asked(rig->sched));
            known += said > 0;
            if (first)
                assert_string_equal(text, first);
            if (first)
                assert_int_equal(said, start);
            start = said;
            free(first);
            first = text;
            rig_free(rig);
        }
        free(first);
    }
    assert_true(known > 10);
}

UNIT_MAIN(UNIT(what_is_asked_is_answered_in_slices), UNIT(slices_change_nothing),
          UNIT(something_comes_between), UNIT(it_ends_whatever_happens), UNIT(a_release_is_seen))
