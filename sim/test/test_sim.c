/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sim.c - the simulation notices what it is there for, and repeats itself exactly
 *
 * A check that cannot fail shows nothing. Each row breaks one rule of the model; the violation must
 * be found within a few seeds, and it must be that one.
 */
#include <string.h>

#include "base/util.h"
#include "sim/sim.h"
#include "test/unit.h"

enum { SEEDS = 160 };

static const struct {
    enum sim_mutation mutation;
    unsigned only;
    const char *found; /* part of what is said */
    unsigned controllers;
} mutations[] = {
    { MUTATE_LYING_DISK, FAULT_CRASH, "were durable and are gone" },
    { MUTATE_NEW_REQUEST_ID, FAULT_CLIENT, "was submitted twice|was told job" },
    { MUTATE_NO_TOMBSTONES, FAULT_REPORTS, "was started 2 times|keeps 1 grants" },
    { MUTATE_DROP_REPORTS, FAULT_REPORTS | FAULT_CRASH,
      "and attempt 1 had finished|and attempt 2 had finished" },
    { MUTATE_EARLY_RELEASE, FAULT_CLIENT, "which the state says is released" },
    { MUTATE_WRONG_EXIT, FAULT_CLIENT, "ended in state" },
    { MUTATE_SPLIT_STATE, FAULT_CRASH, "two replicas differ" },
    { MUTATE_BLIND, FAULT_FLIP, "has a wrong state", 3 },
    { MUTATE_STALE_READS, FAULT_STOP | FAULT_CRASH, "is not in a later list", 3 },
};

static bool is_one_of(const char *text, const char *choices)
{
    char copy[128];
    char *rest = copy;

    snprintf(copy, sizeof(copy), "%s", choices);
    for (char *one; (one = strsep(&rest, "|"));) {
        if (strstr(text, one))
            return true;
    }
    return false;
}

static void test_mutations_are_found(void **state)
{
    (void)state;
    assert_int_equal(ARRAY_LEN(mutations), MUTATE_COUNT - 1);
    for (size_t i = 0; i < ARRAY_LEN(mutations); i++) {
        struct sim_result result = { 0 };
        struct sim_options options = { .only = mutations[i].only,
                                       .controllers = mutations[i].controllers,
                                       .mutation = mutations[i].mutation };
        for (options.seed = 1; options.seed <= SEEDS && !result.violated; options.seed++)
            sim_run(&options, &result);
        if (!result.violated || !is_one_of(result.what, mutations[i].found))
            fail_msg("%s: %s", sim_mutation_name(mutations[i].mutation),
                     result.violated ? result.what : "was not noticed");
    }
}

static void test_nothing_is_found_without(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct sim_options options = { .seed = seed };
        struct sim_result result;
        sim_run(&options, &result);
        if (result.violated)
            fail_msg("seed %llu step %llu: %s", (unsigned long long)seed,
                     (unsigned long long)result.step, result.what);
        assert_true(result.count[COUNT_COMMANDS] > 0);
    }
}

static void test_a_seed_is_one_run(void **state)
{
    struct sim_options options = { .seed = 77, .only = FAULT_ALL };
    struct sim_result first, second;

    (void)state;
    sim_run(&options, &first);
    sim_run(&options, &second);
    assert_memory_equal(&first, &second, sizeof(first));
}

UNIT_MAIN(UNIT(test_mutations_are_found), UNIT(test_nothing_is_found_without),
          UNIT(test_a_seed_is_one_run))
