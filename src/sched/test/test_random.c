/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_random.c - whatever happens: never over capacity, nothing forgotten, the same again
 *
 * After every step core and planner check all their invariants. Whenever nothing more starts, each
 * pending job is held against the nodes one by one: what fits and is in nobody's way must run.
 */
#include "base/hash.h"
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
    "threads_per_core = 2\nmemory_mb = 4000\nfeatures = [\"cpu\"]\ncpu_spec_list = \"2\"\n"
    "[[nodes]]\nnames = \"g[1-4]\"\ncpus = 32\nsockets = 2\ncores_per_socket = 16\n"
    "memory_mb = 8000\ngres = [\"gpu:h100:8\"]\nweight = 5\nfeatures = [\"fast\"]\n"
    "[[nodes]]\nnames = \"m[1-2]\"\ncpus = 32\nmemory_mb = 8000\n"
    "gres = [\"gpu:mi300x:4\", \"gpu:mi250x:2\", \"shard:mi300x:16\"]\nweight = 5\n"
    "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n"
    "[[partitions]]\nname = \"gpu\"\nnodes = \"g[1-4],m[1-2]\"\npriority_tier = 2\n";

static const char *const shapes[] = {
    "c=1",
    "c=2",
    "c=4",
    "c=7",
    "n=3",
    "n=12",
    "N=2 n=4",
    "N=3 tpn=2 n=6",
    "N=2 ex",
    "ex",
    "gres=gpu:1",
    "gres=gpu:2 c=4",
    "gres=gpu:h100:4",
    "gpus=gpu:6 n=6",
    "gpus=gpu:9 n=20",
    "gpus=gpu:13",
    "gpus=gpu:35 cpg=2",
    "gpus=gpu:7 N=2-3",
    "gpus=gpu:mi300x:5 gpus=gpu:mi250x:2",
    "gpus=gpu:5 tpg=3",
    "N=2 gres=gpu:8",
    "gpt=gpu:1 n=3",
    "mem=3000",
    "mem=1500 c=2",
    "w=c2",
    "N=2 w=g1 gres=gpu:1",
    "x=c[1-3] c=3",
    "C=fast c=2",
    "p=main,gpu c=3",
    "contig N=3",
    "contig N=1-5 n=7",
    "contig n=9 w=n2",
    "exuser c=2",
    "array=0-5%2 c=2",
    "array=1-3 gres=gpu:1",
    "N=1-4 n=20",
    "over n=40 N=1",
    "mem=0",
    "prefer=fast c=2",
    "hint=nomultithread c=2",
    "lic=matlab:2 c=1",
    "lic=matlab|comsol:2 c=2",
    "lic=comsol,matlab n=2",
    "C=[cpu|fast] N=2",
    "C=[cpu*1&fast*2] c=2",
    "corespec=1 N=2",
    "exmcs mcs=red c=2",
    "mcs=red c=1",
    "N=1-3 c=4",
    "N=1-4 n=8 spread",
    "tres=cpu=2,mem=300 n=3",
    "gres=shard:1",
    "gres=shard:3 c=2",
    "gps=gpu:h100:2 spn=2 c=2",
};
static const char *const limits[] = { "t=60", "t=300", "t=600", "t=3600", "t=7200", "t=inf" };

static uint32_t random_job(struct rig *rig)
{
    char words[200];
    const char *shape = shapes[dice(sizeof(shapes) / sizeof(*shapes))];
    const char *partition = strstr(shape, "p=")                    ? ""
                            : dice(3) == 0 && strstr(shape, "gpu") ? "p=gpu"
                                                                   : "";

    snprintf(words, sizeof(words), "%s %s %s uid=%u %s%.0u", shape, limits[dice(6)], partition,
             1 + dice(3), dice(4) == 0 ? "prio=" : "name=", 1000);
    if (strstr(words, "prio="))
        snprintf(words + strlen(words) - 4, 12, "%u", 1 + dice(100000));
    return rig_submit(rig, words);
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

static uint32_t tasks_on(const struct rig *rig, const struct job *job, const struct need *need,
                         const struct node *node)
{
    uint64_t gres[TAKE_GRES];
    bool by_user = job->shape->exclusive_user;
    struct room room = { node->cpus - node->cpus_used, node->mem_mb - node->mem_used_mb, gres,
                         node->jobs.len == 0 };

    (void)rig;
    room.cpus -= room.cpus % node->threads;
    for (size_t i = 0; i < node->gres_count; i++)
        gres[i] = node->gres[i].total - node->gres[i].used;
    for (size_t i = 0; i < node->gres_count; i++) {
        const struct node_gres *base = gres_base(node, &node->gres[i]);
        if (!base)
            continue;
        gres[i] = 0;
        gres[node->gres[i].base_at - 1] -= bitset_count(&base->lent);
        for (size_t d = 0; d < base->total; d++) {
            uint64_t left = node->gres[i].per - node->gres[i].shares[d];
            if (!bitset_has(&base->index, d) && left > gres[i])
                gres[i] = left;
        }
    }
    if (!node_is_usable(node) || node->jobs_whole || !bitset_has(&need->nodes, node->number))
        return 0;
    for (size_t i = 0; i < node->jobs.len; i++) {
        const struct job *other = node->jobs.items[i];
        if ((by_user || other->shape->exclusive_user) && other->owner->uid != job->owner->uid)
            return 0;
        if ((job->shape->exclusive_mcs || other->shape->exclusive_mcs) &&
            !str_eq(job->shape->mcs_label, other->shape->mcs_label))
            return 0;
    }
    return fit_units(job->shape, need, node, &room);
}

static int most_first(const void *a, const void *b)
{
    return *(const int *)b - *(const int *)a;
}

static bool has_licences(const struct rig *rig, const struct shape *shape)
{
    size_t good = 0;

    for (size_t i = 0; i < shape->licence_count; i++) {
        const struct licence *licence = state_licence(rig->state, shape->licences[i].name);
        assert_true(licence->used <= licence->total);
        good += licence->total - licence->used >= shape->licences[i].count;
    }
    return shape->licence_any ? good > 0 : good == shape->licence_count;
}

/* Could the job start now if it were alone in the queue? */
static bool could_start(const struct rig *rig, const struct job *job)
{
    const struct shape *shape = job->shape;
    const struct need *needs = shape_needs(rig->state, job->shape);

    /* The judge does not know these. */
    if (shape->contiguous || shape->nodelist || shape->features.group_count)
        return false;
    if (!has_licences(rig, shape))
        return false;
    if (job->array && array_room(job->array) == 0)
        return false;
    for (size_t p = 0; p < shape->partition_count; p++) {
        int tasks[64];
        size_t count = state_node_count(rig->state);
        uint64_t sum = 0, hosts = 0;
        if (core_partition_reason(job, &needs[p]))
            continue;
        for (size_t n = 0; n < count; n++)
            tasks[n] = (int)tasks_on(rig, job, &needs[p], state_node_at(rig->state, n));
        qsort(tasks, count, sizeof(int), most_first);
        for (size_t n = 0; n < count && n < shape->max_nodes && tasks[n]; n++) {
            sum += (uint64_t)tasks[n];
            hosts++;
        }
        if (hosts >= shape->min_nodes && sum >= shape->units)
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
        if (!job_is_eligible(job) || job_end_by(job, rig->now_us) > first)
            continue;
        if (could_start(rig, job))
            fail_msg("seed %llu: job %u could run and is in nobody's way",
                     (unsigned long long)first_seed, job->id);
    }
}

static uint64_t live(uint64_t from, int steps)
{
    static const char *const nodes[] = { "c1", "c2", "g1", "g3", "m2" };
    static const unsigned bookings[] = { 1, 3, 40 };
    char toml[sizeof(mixed) + 10];

    snprintf(toml, sizeof(toml), mixed, bookings[from % 3]);
    struct rig *rig = rig_new(toml);
    seed = first_seed = from;
    for (int step = 0; step < steps; step++) {
        uint32_t what = dice(100), id;
        if (what < 45) {
            random_job(rig);
        } else if (what < 85) {
            if ((id = random_running(rig)))
                rig_end(rig, id);
        } else if (what < 90) {
            rig_cancel(rig, 1 + dice((uint32_t)rig->index));
        } else if (what < 94) {
            rig_node(rig, nodes[dice(5)], dice(2) ? "DRAIN" : "RESUME");
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
    assert_true(rig->started > (uint64_t)steps / 5);
    assert_int_equal(rig->refused, 0);
    rig_free(rig);
    return digest;
}

static void anything_may_happen(void **state)
{
    const char *more = getenv("SPUR_TEST_SEEDS"); /* for a long night */
    uint64_t last = more ? strtoull(more, NULL, 10) : 12;

    (void)state;
    for (uint64_t from = 1; from <= last; from++)
        live(from, 250);
}

static void the_same_history_gives_the_same_plan(void **state)
{
    (void)state;
    assert_int_equal(live(77, 200), live(77, 200));
}

UNIT_MAIN(UNIT(anything_may_happen), UNIT(the_same_history_gives_the_same_plan))
