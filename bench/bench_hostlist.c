/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_hostlist.c - 100,000 node names compressed, sorted and expanded
 *
 * The floor is one malloc, strlen and memcpy per name. Compressing and expanding together must stay
 * below 50 ms; the program fails when they do not.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "bench/bench.h"

enum { NAMES = 100000, ROUNDS = 7 };
#define BOUND_MS 50.0

static char *ordered[NAMES], *mixed[NAMES];
static size_t kept; /* what the compiler may not leave out */

static void make_names(void)
{
    uint64_t random = 42;

    for (size_t i = 0; i < NAMES; i++)
        ordered[i] = mem_printf("node%06zu", i + 1);
    memcpy(mixed, ordered, sizeof(mixed));
    for (size_t i = NAMES - 1; i > 0; i--) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        size_t other = (random >> 33) % (i + 1);
        char *name = mixed[i];
        mixed[i] = mixed[other];
        mixed[other] = name;
    }
}

static void copy_names(void)
{
    static char *copies[NAMES];

    for (size_t i = 0; i < NAMES; i++) {
        size_t len = strlen(ordered[i]);
        copies[i] = malloc(len + 1);
        if (copies[i])
            memcpy(copies[i], ordered[i], len + 1);
    }
    for (size_t i = 0; i < NAMES; i++) {
        kept += copies[i] != NULL;
        free(copies[i]);
    }
}

static void compress(char **names, bool sorted)
{
    struct hostlist list = { 0 };
    struct str text = { 0 };

    for (size_t i = 0; i < NAMES; i++)
        hostlist_push(&list, names[i], NULL);
    if (sorted)
        hostlist_sort(&list, NULL);
    hostlist_format(&list, &text);
    kept += text.len;
    str_done(&text);
    hostlist_done(&list);
}

static void expand(const char *text)
{
    struct hostlist list = { 0 };
    struct arena arena = { 0 };
    char **names;
    size_t count;

    if (hostlist_parse(&list, text, NULL) < 0 ||
        hostlist_expand(&list, &arena, &names, &count, NULL) < 0 || count != NAMES)
        abort();
    kept += count;
    arena_done(&arena);
    hostlist_done(&list);
}

/* Half of the nodes taken from all of them: what "nodes not in the reservation" costs. */
static void subtract(const struct hostlist *half)
{
    struct hostlist list = { 0 };

    if (hostlist_parse(&list, "node[000001-100000]", NULL) < 0 ||
        hostlist_minus(&list, half, NULL) < 0)
        abort();
    kept += hostlist_count(&list);
    hostlist_done(&list);
}

int main(void)
{
    struct hostlist half = { 0 };

    make_names();
    for (size_t i = 0; i < NAMES / 2; i++)
        hostlist_push(&half, mixed[i], NULL);
    double floor = BENCH_BEST(ROUNDS, copy_names());
    double in_order = BENCH_BEST(ROUNDS, compress(ordered, false));
    double any_order = BENCH_BEST(ROUNDS, compress(mixed, true));
    double expanded = BENCH_BEST(ROUNDS, expand("node[000001-100000]"));
    double minus = BENCH_BEST(ROUNDS, subtract(&half));

    bench_print("hostlist.floor_copy_100k", floor, "ms", floor);
    bench_print("hostlist.compress_100k", in_order, "ms", floor);
    bench_print("hostlist.compress_sort_100k", any_order, "ms", floor);
    bench_print("hostlist.expand_100k", expanded, "ms", floor);
    bench_print("hostlist.minus_50k_of_100k", minus, "ms", floor);
    hostlist_done(&half);
    for (size_t i = 0; i < NAMES; i++)
        free(ordered[i]);
    if (in_order + expanded > BOUND_MS || kept == 0) {
        fprintf(stderr, "hostlist: compress and expand took more than %.0f ms\n", BOUND_MS);
        return 1;
    }
    return 0;
}
