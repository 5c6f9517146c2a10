/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_nodes.c - what simple policies reach on nodes of several GPUs: anchors of Q1
 *
 *     bench-nodes TRACE NODES GPUS
 *
 * TRACE has lines "submit_s duration_s gpus", by submission. A job that fits on a node is on one, on the
 * fullest that has room; a wider one on the fewest nodes, evenly. Prints for FIFO, FIFO+EASY and
 * SJF+EASY the average completion time and its 99th percentile. It shares no code with the planner:
 * what it loses against one pool of GPUs (traces/baselines.tsv), any scheduler with such nodes loses.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

enum { PARTS_MOST = 256 };

struct job {
    int64_t submit_s, run_s, end_s;
    int gpus, parts, node[PARTS_MOST], count[PARTS_MOST];
};
typedef VEC(uint32_t) id_list;
struct world {
    VEC(struct job) jobs;
    id_list waiting, running;      /* in order; by end */
    int *free_gpus, *later, *kept; /* of each node: now, when the first can start, for it */
    int nodes, per_node;
    bool by_length, easy;
};

/* The fullest node with so much room that the job has no part on yet; -1. */
static int find(const struct world *world, const int *room, const struct job *job, int gpus)
{
    int best = -1;

    for (int i = 0; i < world->nodes; i++) {
        bool taken = false;
        for (int p = 0; p < job->parts; p++)
            taken = taken || job->node[p] == i;
        if (!taken && room[i] >= gpus && (best < 0 || room[i] < room[best]))
            best = i;
    }
    return best;
}

static bool place(const struct world *world, const int *room, struct job *job)
{
    int nodes = (job->gpus + world->per_node - 1) / world->per_node;

    job->parts = 0;
    for (int p = 0; p < nodes; p++) {
        int gpus = job->gpus / nodes + (p < job->gpus % nodes);
        int at = find(world, room, job, gpus);
        if (at < 0)
            return false;
        job->node[job->parts] = at;
        job->count[job->parts++] = gpus;
    }
    return true;
}

static void put(const struct job *job, int *room, int sign)
{
    for (int p = 0; p < job->parts; p++)
        room[job->node[p]] += sign * job->count[p];
}

static bool before(const struct world *world, uint32_t a, uint32_t b)
{
    const struct job *x = &world->jobs.items[a], *y = &world->jobs.items[b];

    if (world->by_length && x->run_s != y->run_s)
        return x->run_s < y->run_s;
    return a < b;
}

static void insert(id_list *list, size_t at, uint32_t value)
{
    vec_push(list, value);
    memmove(&list->items[at + 1], &list->items[at], (list->len - 1 - at) * sizeof(value));
    list->items[at] = value;
}

static void wait_in_line(struct world *world, uint32_t id)
{
    size_t low = 0, high = world->waiting.len;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (before(world, world->waiting.items[middle], id))
            low = middle + 1;
        else
            high = middle;
    }
    insert(&world->waiting, low, id);
}

static void start(struct world *world, uint32_t id, int64_t now_s)
{
    struct job *job = &world->jobs.items[id];
    size_t low = 0, high = world->running.len;

    put(job, world->free_gpus, -1);
    job->end_s = now_s + job->run_s;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (world->jobs.items[world->running.items[middle]].end_s <= job->end_s)
            low = middle + 1;
        else
            high = middle;
    }
    insert(&world->running, low, id);
}

/* When and where the first that waits can start; the rest may not be in its way then. */
static int64_t shadow(struct world *world)
{
    struct job *first = &world->jobs.items[world->waiting.items[0]];

    memcpy(world->later, world->free_gpus, (size_t)world->nodes * sizeof(int));
    memset(world->kept, 0, (size_t)world->nodes * sizeof(int));
    for (size_t i = 0; i < world->running.len; i++) {
        const struct job *job = &world->jobs.items[world->running.items[i]];
        put(job, world->later, 1);
        bool last = i + 1 == world->running.len ||
                    world->jobs.items[world->running.items[i + 1]].end_s != job->end_s;
        if (last && place(world, world->later, first)) {
            put(first, world->kept, 1);
            return job->end_s;
        }
    }
    return INT64_MAX;
}

static void backfill(struct world *world, int64_t now_s)
{
    int64_t until = shadow(world);
    int *spare = calloc((size_t)world->nodes, sizeof(int));
    int most = 0, failed = 1 << 30;

    for (int i = 0; i < world->nodes; i++)
        most += world->free_gpus[i];
    for (size_t at = 1; at < world->waiting.len && most; at++) {
        uint32_t id = world->waiting.items[at];
        struct job *job = &world->jobs.items[id];
        bool ends = now_s + job->run_s <= until;
        if (job->gpus > most || (ends && job->gpus >= failed))
            continue;
        for (int i = 0; i < world->nodes && !ends; i++) {
            int left = world->later[i] - world->kept[i];
            spare[i] = world->kept[i] && left < world->free_gpus[i] ? left : world->free_gpus[i];
        }
        if (!place(world, ends ? world->free_gpus : spare, job)) {
            if (ends && job->gpus <= world->per_node)
                failed = job->gpus < failed ? job->gpus : failed;
            continue;
        }
        if (!ends)
            put(job, world->later, -1);
        start(world, id, now_s);
        most -= job->gpus;
        vec_remove(&world->waiting, at);
        at--;
    }
    free(spare);
}

static void run(struct world *world)
{
    size_t next = 0, ended = 0;

    for (int i = 0; i < world->nodes; i++)
        world->free_gpus[i] = world->per_node;
    while (ended < world->jobs.len) {
        int64_t now_s = next < world->jobs.len ? world->jobs.items[next].submit_s : INT64_MAX;
        if (world->running.len && world->jobs.items[world->running.items[0]].end_s < now_s)
            now_s = world->jobs.items[world->running.items[0]].end_s;
        while (world->running.len && world->jobs.items[world->running.items[0]].end_s <= now_s) {
            put(&world->jobs.items[world->running.items[0]], world->free_gpus, 1);
            vec_remove(&world->running, 0);
            ended++;
        }
        while (next < world->jobs.len && world->jobs.items[next].submit_s <= now_s)
            wait_in_line(world, (uint32_t)next++);
        while (world->waiting.len &&
               place(world, world->free_gpus, &world->jobs.items[world->waiting.items[0]])) {
            start(world, world->waiting.items[0], now_s);
            vec_remove(&world->waiting, 0);
        }
        if (world->easy && world->waiting.len)
            backfill(world, now_s);
    }
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static void tell(const struct world *world, const char *name)
{
    size_t count = world->jobs.len;
    int64_t *took = calloc(count, sizeof(*took));
    double sum = 0;

    for (size_t i = 0; i < count; i++) {
        took[i] = world->jobs.items[i].end_s - world->jobs.items[i].submit_s;
        sum += (double)took[i];
    }
    qsort(took, count, sizeof(*took), by_number);
    printf("%s %.0f %lld\n", name, sum / (double)count, (long long)took[count * 99 / 100]);
    free(took);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        bool by_length, easy;
    } policies[] = { { "FIFO", false, false },
                     { "FIFO+EASY", false, true },
                     { "SJF+EASY", true, true } };
    FILE *file = argc == 4 ? fopen(argv[1], "r") : NULL;
    struct world world = { 0 };
    long long submit_s, run_s;
    int gpus;

    if (!file) {
        fprintf(stderr, "usage: bench-nodes TRACE NODES GPUS\n");
        return 1;
    }
    world.nodes = atoi(argv[2]);
    world.per_node = atoi(argv[3]);
    while (fscanf(file, "%lld %lld %d", &submit_s, &run_s, &gpus) == 3) {
        if (gpus > 0 && gpus <= world.nodes * world.per_node && gpus / world.per_node < PARTS_MOST)
            vec_push(&world.jobs,
                     (struct job){ .submit_s = submit_s, .run_s = run_s, .gpus = gpus });
    }
    fclose(file);
    world.free_gpus = calloc((size_t)world.nodes + 1, sizeof(int));
    world.later = calloc((size_t)world.nodes + 1, sizeof(int));
    world.kept = calloc((size_t)world.nodes + 1, sizeof(int));
    for (size_t i = 0; world.jobs.len && i < sizeof(policies) / sizeof(policies[0]); i++) {
        world.by_length = policies[i].by_length;
        world.easy = policies[i].easy;
        run(&world);
        tell(&world, policies[i].name);
    }
    free(world.free_gpus);
    free(world.later);
    free(world.kept);
    vec_done(&world.jobs);
    vec_done(&world.waiting);
    vec_done(&world.running);
    return 0;
}
