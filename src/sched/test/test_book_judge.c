/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_book_judge.c - promised starts against slow ways to find them
 *
 * What is kept up to date with every event must be what comes out when all promises are made from nothing, one
 * after the other; and what one walk over a host finds what every moment on its own says. A promise becomes later
 * only because of a job before it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "sched/plan.h"
#include "sched/test/rig.h"
#include "test/unit.h"

static uint64_t seed, first_seed;

static uint32_t dice(uint32_t sides)
{
    seed = hash_mix(seed + UINT64_C(0x9e3779b97f4a7c15));
    return (uint32_t)(seed >> 33) % sides;
}

static const char mixed[] =
    "cluster_name = \"t\"\n[scheduler]\nselect = [\"CR_Core_Memory\"]\n"
    "licenses = [\"matlab:5\", \"comsol:3\"]\nbookings = %u\n"
    "[jobs]\ndef_mem_per_cpu = 100\n"
    "[[nodes]]\nnames = \"c[1-5]\"\ncpus = 16\nsockets = 2\ncores_per_socket = 4\n"
    "threads_per_core = 2\nmemory_mb = 4000\nfeatures = [\"cpu\"]\n"
    "[[nodes]]\nnames = \"g[1-4]\"\ncpus = 32\nsockets = 2\ncores_per_socket = 16\n"
    "memory_mb = 8000\ngres = [\"gpu:h100:8\"]\nweight = 5\nfeatures = [\"fast\"]\n"
    "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n"
    "[[partitions]]\nname = \"gpu\"\nnodes = \"g[1-4]\"\npriority_tier = 2\n";

static const char *const shapes[] = {
    "c=1",
    "c=4",
    "c=7",
    "n=12",
    "N=2 n=4",
    "N=3 tpn=2 n=6",
    "N=2 ex",
    "ex",
    "gres=gpu:1",
    "gres=gpu:2 c=4",
    "gpus=gpu:6 n=6",
    "N=2 gres=gpu:8",
    "mem=3000",
    "mem=1500 c=2",
    "w=c2",
    "x=c[1-3] c=3",
    "C=fast c=2",
    "p=main,gpu c=3",
    "contig N=3",
    "array=0-5%2 c=2",
    "N=1-4 n=20",
    "lic=matlab:2 c=1",
    "mem=0",
    "lic=matlab|comsol:2 c=2",
    "N=9 n=9",
    "c=2 : gres=gpu:2 c=2",
};
static const char *const limits[] = { "t=60", "t=300", "t=600", "t=3600", "t=7200", "t=inf" };

static void random_job(struct rig *rig, bool flat)
{
    char words[200];
    const char *shape = shapes[dice(ARRAY_LEN(shapes))];
    int len = snprintf(words, sizeof(words), "%s %s uid=%u", shape, limits[dice(6)], 1 + dice(3));

    if (!flat && dice(3) == 0)
        snprintf(words + len, sizeof(words) - (size_t)len, " prio=%u", 1 + dice(100000));
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

static void something_happens(struct rig *rig)
{
    static const char *const nodes[] = { "c1", "c2", "g1", "g3" };
    uint32_t what = dice(100);

    if (what < 50)
        random_job(rig, false);
    else if (what < 85)
        random_end(rig);
    else if (what < 90)
        rig_cancel(rig, 1 + dice((uint32_t)rig->index));
    else if (what < 93)
        rig_node(rig, nodes[dice(4)], dice(2) ? "DRAIN" : "RESUME");
    else
        rig_wait(rig, dice(200));
}

/* ---- one walk over a host ---- */

static const struct amount *random_amount(const struct host *host, struct amount *made)
{
    if (host->running.len && dice(2))
        return host->running.items[dice((uint32_t)host->running.len)].amount;
    if (host->blocks.len && dice(2))
        return host->blocks.items[dice((uint32_t)host->blocks.len)].amount;
    *made = (struct amount){ .cpus = dice(host->node->cpus + 1), .whole = dice(5) == 0 };
    made->mem_mb = dice((uint32_t)host->node->mem_mb);
    if (host->node->gres_count && dice(2))
        made->gres[0] = dice(9);
    return made;
}

static struct view random_view(const struct rig *rig)
{
    const struct sched *sched = rig->sched;
    struct view view = { .now_us = rig->now_us, .start_us = rig->now_us };

    if (dice(4) == 0)
        view.start_us += dice(4000) * US_PER_S;
    if (sched->book->list.len && dice(2)) {
        const struct booking *any = &sched->book->list.items[dice((uint32_t)sched->book->list.len)];
        view.mine = any->job_id;
        if (dice(2))
            view.order = any->order;
    }
    return view;
}

/* Starts that are tried there, in no order; as many as are to be taken off again. */
static size_t random_forecasts(const struct rig *rig, struct host *host, struct amount *amount)
{
    size_t count = dice(2) ? dice(3) : 0;

    *amount = (struct amount){ .cpus = dice(host->node->cpus + 1), .whole = dice(2) == 0 };
    for (size_t i = 0; i < count; i++) {
        struct block block = { .job_id = UINT32_MAX, .amount = amount };
        block.start_us = rig->now_us + dice(4000) * US_PER_S;
        block.end_us = block.start_us + (1 + dice(4000)) * US_PER_S;
        vec_push(&host->forecasts, block);
    }
    return count;
}

static void hosts_agree(const struct rig *rig)
{
    const struct sched *sched = rig->sched;

    for (size_t n = 0; n < sched->hosts->list.len; n++) {
        struct host *host = &sched->hosts->list.items[n];
        struct amount made, tried;
        size_t forecasts = random_forecasts(rig, host, &tried);
        const struct amount *amount = random_amount(host, &made);
        struct view view = random_view(rig);
        view.forecast = forecasts > 0;
        int64_t length = dice(5) ? dice(9000) * US_PER_S : INT64_MAX;
        int64_t before = dice(2) ? INT64_MAX : view.start_us + (1 + dice(9000)) * US_PER_S;
        int64_t quick = host_earliest(sched, host, amount, &view, length, before);
        int64_t slow = host_earliest_slow(sched, host, amount, &view, length, before);
        if ((host->blocks.len || forecasts) && quick != slow)
            fail_msg("seed %llu: host %zu: %lld, not %lld", (unsigned long long)first_seed, n,
                     (long long)quick, (long long)slow);
        if (amount->whole && sched->hosts->summaries.items[n].last_end_us > quick)
            fail_msg("seed %llu: host %zu is empty before its last job ends",
                     (unsigned long long)first_seed, n);
        host->forecasts.len -= forecasts;
    }
}

static void a_walk_sees_what_moments_say(void **state)
{
    (void)state;
    for (uint64_t from = 1; from <= 6; from++) {
        char toml[sizeof(mixed) + 10];
        snprintf(toml, sizeof(toml), mixed, 40);
        struct rig *rig = rig_new(toml);
        seed = first_seed = from;
        rig->check = false;
        for (int step = 0; step < 300; step++) {
            something_happens(rig);
            rig_plan(rig);
            hosts_agree(rig);
        }
        rig_free(rig);
    }
}

/* ---- all of them from nothing ---- */

/* What was promised to whom: "12@1700000000000001:0,3;" */
static char *promises(const struct rig *rig)
{
    struct str text = { 0 };

    vec_each (struct booking, booking, &rig->sched->book->list) {
        str_addf(&text, "%u@%lld:", booking->job_id, (long long)booking->start_us);
        for (uint32_t k = 0; k < booking->count; k++) {
            for (size_t i = 0; i < booking->of[k].parts.list.len; i++)
                str_addf(&text, "%u,", booking->of[k].parts.list.items[i].host);
        }
        str_add(&text, "\n");
    }
    char *copy = mem_strdup(str_text(&text));
    str_done(&text);
    return copy;
}

/* Jobs start just after they are planned: some end a moment after what was promised for then. */
static bool ends_just_after(const struct host *host)
{
    for (size_t i = 0; i < host->blocks.len; i++) {
        for (size_t k = 0; k < host->running.len; k++) {
            int64_t after = host->running.items[k].end_us - host->blocks.items[i].start_us;
            if (after > 0 && after < US_PER_S)
                return true;
        }
    }
    return false;
}

/* Nobody has what another was promised. */
static void promises_hold(const struct rig *rig)
{
    const struct sched *sched = rig->sched;

    vec_each (struct host, host, &sched->hosts->list) {
        for (size_t i = 0; i < host->blocks.len; i++) {
            const struct block *block = &host->blocks.items[i];
            struct view view = { .now_us = rig->now_us, .mine = block->job_id };
            view.start_us = block->start_us;
            view.end_us = block->end_us;
            view.order = block->order;
            const struct booking *booking = booking_of(sched, block->job_id);
            if (!booking || booking->count > 1 || block->start_us <= rig->now_us || !host->usable ||
                ends_just_after(host))
                continue;
            if (!host_has_room(sched, host, block->amount, &view))
                fail_msg("seed %llu: no room for what job %u was promised",
                         (unsigned long long)first_seed, block->job_id);
        }
    }
}

/* Up to where one was kept that could not be made as early any more: what follows has another start. */
static bool is_as_good(const char *kept, const char *made)
{
    size_t line = 0;

    for (size_t i = 0; kept[i] == made[i]; i++) {
        if (!kept[i])
            return true;
        line = kept[i] == '\n' ? i + 1 : line;
    }
    unsigned long long one = 0, start = 0, other = 0, later = 0;
    sscanf(kept + line, "%llu@%llu", &one, &start);
    sscanf(made + line, "%llu@%llu", &other, &later);
    return one == other && start < later;
}

static void all_from_nothing(struct rig *rig)
{
    char *kept = promises(rig);

    for (bool same = false; !same;) {
        unsigned budget = UINT32_MAX;
        char *was = kept;
        book_settle(rig->sched, &budget);
        rig_plan(rig);
        kept = promises(rig);
        same = strcmp(kept, was) == 0;
        free(was);
    }
    while (rig->sched->book->list.len)
        book_drop(rig->sched, rig->sched->book->list.items[0].job_id);
    rig_plan(rig);
    char *made = promises(rig);
    if (!is_as_good(kept, made))
        fail_msg("seed %llu: kept\n%s, made from nothing\n%s", (unsigned long long)first_seed, kept,
                 made);
    free(kept);
    free(made);
}

static void promises_are_what_all_from_nothing_gives(void **state)
{
    const char *more = getenv("SPUR_TEST_SEEDS");
    uint64_t last = more ? strtoull(more, NULL, 10) : 9;
    static const unsigned bookings[] = { 1, 5, 40 };

    (void)state;
    for (uint64_t from = 1; from <= last; from++) {
        char toml[sizeof(mixed) + 10];
        snprintf(toml, sizeof(toml), mixed, bookings[from % 3]);
        struct rig *rig = rig_new(toml);
        seed = first_seed = from;
        for (int step = 0; step < 200; step++) {
            something_happens(rig);
            rig->budget = 1 + dice(200);
            if (dice(3) == 0)
                continue;
            rig_plan(rig);
            promises_hold(rig);
            if (dice(4) == 0)
                all_from_nothing(rig);
        }
        assert_int_equal(rig->refused, 0);
        rig_free(rig);
    }
}

/* ---- promises become later only because of those before them ---- */

enum { PROMISED_MOST = 256 };
struct promise {
    struct order order;
    int64_t start_us;
    uint64_t hosts; /* a hash */
};

static size_t note(const struct rig *rig, struct promise *out)
{
    size_t count = 0;

    vec_each (struct booking, booking, &rig->sched->book->list) {
        struct promise promise = { booking->order, booking->start_us, 0 };
        for (uint32_t k = 0; k < booking->count; k++) {
            for (size_t i = 0; i < booking->of[k].parts.list.len; i++)
                promise.hosts = hash_mix(promise.hosts + booking->of[k].parts.list.items[i].host);
        }
        assert_true(count < PROMISED_MOST);
        out[count++] = promise;
    }
    return count;
}

static const struct promise *find(const struct promise *list, size_t count, uint32_t id)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i].order.id == id)
            return &list[i];
    }
    return NULL;
}

static uint32_t started[PROMISED_MOST];
static size_t starts;

static void on_start(struct rig *rig, const struct job *job)
{
    (void)rig;
    assert_true(starts < PROMISED_MOST);
    started[starts++] = job->id;
}

/* Before it by its partitions, one of which has a higher tier, by priority or by id. */
static bool one_started_before(const struct rig *rig, uint32_t id)
{
    const struct job *job = rig_job(rig, id);

    for (size_t i = 0; i < starts; i++) {
        const struct job *other = rig_job(rig, started[i]);
        uint64_t its = job_priority(rig->state, other), mine = job_priority(rig->state, job);
        if (other->shape->partition_count > job->shape->partition_count || its > mine ||
            (its == mine && other->id < id))
            return true;
    }
    return false;
}

/* In order: was one before it started, moved, or is one there that was not promised anything? */
static void later_with_cause(const struct rig *rig, const struct promise *was, size_t were,
                             const struct promise *is, size_t are)
{
    bool cause = false;

    for (size_t i = 0, k = 0; i < were; i++) {
        const struct promise *now = find(is, are, was[i].order.id);
        for (; k < are && order_before(is[k].order, was[i].order); k++)
            cause = cause || !find(was, were, is[k].order.id);
        if (now && now->start_us > was[i].start_us + US_PER_S && !cause &&
            !one_started_before(rig, was[i].order.id))
            fail_msg("seed %llu: job %u was promised %lld, then %lld",
                     (unsigned long long)first_seed, was[i].order.id, (long long)was[i].start_us,
                     (long long)now->start_us);
        cause = cause || !now || now->start_us != was[i].start_us || now->hosts != was[i].hosts;
    }
}

static void promises_become_later_only_with_cause(void **state)
{
    struct promise was[PROMISED_MOST], is[PROMISED_MOST];

    (void)state;
    for (uint64_t from = 1; from <= 8; from++) {
        char toml[sizeof(mixed) + 10];
        snprintf(toml, sizeof(toml), mixed, 200);
        struct rig *rig = rig_new(toml);
        seed = first_seed = from;
        rig->check = false;
        rig->on_start = on_start;
        for (int step = 0; step < 250; step++) {
            size_t were = note(rig, was);
            starts = 0;
            if (dice(100) < 52)
                random_job(rig, from % 2);
            else
                random_end(rig);
            rig_plan(rig);
            later_with_cause(rig, was, were, is, note(rig, is));
            for (const struct job *job = state_job_from(rig->state, 1); job;
                 job = state_job_from(rig->state, (uint64_t)job->id + 1)) {
                if (job_is_eligible(job) && job->array == NULL &&
                    !(job->more && job->more->het_count))
                    assert_true(sched_planned_start(rig->sched, job) > 0);
            }
        }
        rig_free(rig);
    }
}

UNIT_MAIN(UNIT(a_walk_sees_what_moments_say), UNIT(promises_are_what_all_from_nothing_gives),
          UNIT(promises_become_later_only_with_cause))
