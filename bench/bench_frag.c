/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_frag.c - what packing rules reach on the same nodes and pods: the anchors of Q3
 *
 *     bench-frag NODES PODS
 *
 * NODES has lines "cpus mem_mb gpus", PODS lines "cpus mem_mb gpu_milli" in the order they come, CPUs
 * of both in the same unit. Nothing ever ends, and what does not fit is passed over. Two rules choose
 * among the nodes with room: best fit takes the one with least left, FGD (Weng et al., USENIX ATC
 * '23) the one where GPUs become least useless for pods as they usually are.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

enum { GPUS_MOST = 16, KINDS_MOST = 64, MILLI = 1000 };

struct node {
    int64_t cpus, mem_mb;
    int gpus, left[GPUS_MOST]; /* thousandths of each GPU */
    double useless;            /* of what is left, for the usual pod */
};
struct pod {
    int64_t cpus, mem_mb;
    int milli;
};
struct kind {
    struct pod pod;
    double share;
};
struct world {
    VEC(struct node) nodes;
    VEC(struct pod) pods;
    struct kind kinds[KINDS_MOST];
    size_t kind_count;
    int64_t cpus_most, mem_most; /* of a node */
};

static int full_gpus(const struct node *node)
{
    int count = 0;

    for (int i = 0; i < node->gpus; i++)
        count += node->left[i] == MILLI;
    return count;
}

/* Which GPU takes a part: -1 none. The fullest that still has room. */
static int tightest(const struct node *node, int milli)
{
    int best = -1;

    for (int i = 0; i < node->gpus; i++) {
        if (node->left[i] >= milli && (best < 0 || node->left[i] < node->left[best]))
            best = i;
    }
    return best;
}

static bool fits(const struct node *node, const struct pod *pod)
{
    if (node->cpus < pod->cpus || node->mem_mb < pod->mem_mb)
        return false;
    if (pod->milli >= MILLI)
        return full_gpus(node) >= pod->milli / MILLI;
    return pod->milli == 0 || tightest(node, pod->milli) >= 0;
}

static void take(struct node *node, const struct pod *pod, int gpu)
{
    int whole = pod->milli / MILLI;

    node->cpus -= pod->cpus;
    node->mem_mb -= pod->mem_mb;
    if (pod->milli && pod->milli < MILLI)
        node->left[gpu] -= pod->milli;
    for (int i = 0; pod->milli >= MILLI && i < node->gpus && whole; i++) {
        if (node->left[i] == MILLI) {
            node->left[i] = 0;
            whole--;
        }
    }
}

/* Thousandths of GPUs of the node that the usual pod could not use. */
static double useless(const struct world *world, const struct node *node)
{
    double sum = 0;

    for (size_t k = 0; k < world->kind_count; k++) {
        const struct pod *pod = &world->kinds[k].pod;
        bool can = pod->milli && fits(node, pod);
        int lost = 0;
        for (int i = 0; i < node->gpus; i++)
            lost += !can || node->left[i] < MIN(pod->milli, MILLI) ? node->left[i] : 0;
        sum += world->kinds[k].share * lost;
    }
    return sum;
}

/* The kinds that make up most pods. */
static int by_share(const void *a, const void *b)
{
    const struct kind *x = a, *y = b;

    return x->share > y->share ? -1 : x->share < y->share;
}

static void find_kinds(struct world *world)
{
    VEC(struct kind) all = { 0 };

    vec_each (struct pod, pod, &world->pods) {
        size_t i = 0;
        while (i < all.len &&
               (all.items[i].pod.cpus != pod->cpus || all.items[i].pod.milli != pod->milli))
            i++;
        if (i == all.len)
            vec_push(&all, (struct kind){ *pod, 0 });
        all.items[i].share += 1.0 / (double)world->pods.len;
    }
    qsort(all.items, all.len, sizeof(struct kind), by_share);
    world->kind_count = MIN(all.len, KINDS_MOST);
    memcpy(world->kinds, all.items, world->kind_count * sizeof(struct kind));
    vec_done(&all);
}

/* ---- the rules: less is better ---- */

static double best_fit(const struct world *world, const struct node *node, const struct pod *pod,
                       int *gpu)
{
    int left = 0;

    *gpu = tightest(node, pod->milli);
    for (int i = 0; i < node->gpus; i++)
        left += node->left[i];
    return (double)(node->cpus - pod->cpus) / 128 + (double)(node->mem_mb - pod->mem_mb) / 1048576 +
           (double)(left - pod->milli) / 8000;
}

static double fgd(const struct world *world, const struct node *node, const struct pod *pod,
                  int *gpu)
{
    bool part = pod->milli && pod->milli < MILLI;
    double best = 1e300;

    for (int i = 0; i < (part ? node->gpus : 1); i++) {
        struct node then = *node;
        if (part && node->left[i] < pod->milli)
            continue;
        take(&then, pod, i);
        double more = useless(world, &then) - node->useless;
        if (more < best) {
            best = more;
            *gpu = i;
        }
    }
    return best;
}

typedef double rule(const struct world *world, const struct node *node, const struct pod *pod,
                    int *gpu);

static double pack(const struct world *world, rule *score)
{
    struct node *nodes = NEW_ARRAY(struct node, world->nodes.len);
    int64_t given = 0, all = 0;

    memcpy(nodes, world->nodes.items, world->nodes.len * sizeof(*nodes));
    for (size_t i = 0; i < world->nodes.len; i++) {
        all += nodes[i].gpus * MILLI;
        nodes[i].useless = useless(world, &nodes[i]);
    }
    vec_each (struct pod, pod, &world->pods) {
        double least = 1e300;
        size_t best = SIZE_MAX;
        int gpu = 0, chosen = 0;
        for (size_t i = 0; i < world->nodes.len; i++) {
            if (!fits(&nodes[i], pod))
                continue;
            double value = score(world, &nodes[i], pod, &gpu);
            if (value < least) {
                least = value;
                best = i;
                chosen = gpu;
            }
        }
        if (best == SIZE_MAX)
            continue;
        take(&nodes[best], pod, chosen);
        nodes[best].useless = useless(world, &nodes[best]);
        given += pod->milli;
    }
    free(nodes);
    return (double)given / (double)all * 100;
}

static FILE *open_file(const char *path)
{
    FILE *file = fopen(path, "re");

    if (!file) {
        perror(path);
        exit(1);
    }
    return file;
}

int main(int argc, char **argv)
{
    struct world world = { 0 };
    long long cpus, mem;
    int gpus, milli;

    if (argc != 3) {
        fputs("Usage: bench-frag NODES PODS\n", stderr);
        return 2;
    }
    FILE *file = open_file(argv[1]);
    while (fscanf(file, "%lld %lld %d", &cpus, &mem, &gpus) == 3) {
        struct node node = { cpus, mem, MIN(gpus, GPUS_MOST), { 0 }, 0 };
        for (int i = 0; i < node.gpus; i++)
            node.left[i] = MILLI;
        vec_push(&world.nodes, node);
        world.cpus_most = MAX(world.cpus_most, cpus);
        world.mem_most = MAX(world.mem_most, mem);
    }
    fclose(file);
    file = open_file(argv[2]);
    while (fscanf(file, "%lld %lld %d", &cpus, &mem, &milli) == 3)
        vec_push(&world.pods, (struct pod){ cpus, mem, milli });
    fclose(file);
    find_kinds(&world);
    printf("best_fit %.2f\n", pack(&world, best_fit));
    printf("fgd %.2f\n", pack(&world, fgd));
    vec_done(&world.nodes);
    vec_done(&world.pods);
    return 0;
}
