/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_step_layout.c - which tasks of a step run on which nodes
 */
#include <string.h>

#include "base/str.h"
#include "spurd/step/step_layout.h"
#include "test/unit.h"

enum { NODES_MAX = 4 };

/* Nodes n1, n2, … of an allocation; `used` CPUs of each are taken by other steps. */
struct step_case {
    uint32_t cpus[NODES_MAX];
    uint32_t used[NODES_MAX];
    StepRequest request;
    const char *wanted; /* "n1:0,1 n2:2", or the name of the error */
    uint32_t sockets, threads;
};

#define REQUEST(...)                                                                     \
    {                                                                                    \
        PROTOBUF_C_MESSAGE_INIT(&step_request__descriptor), .has_job_id = 0, __VA_ARGS__ \
    }
#define N(n)     .has_ntasks = true, .ntasks = (n)
#define NODES(n) .has_min_nodes = true, .min_nodes = (n), .has_max_nodes = true, .max_nodes = (n)

static void describe(const StepLayout *layout, struct str *out)
{
    for (size_t i = 0; i < layout->n_nodes; i++) {
        str_addf(out, "%s%s:", i ? " " : "", layout->nodes[i]->name);
        for (size_t k = 0; k < layout->nodes[i]->n_tasks; k++)
            str_addf(out, "%s%u", k ? "," : "", layout->nodes[i]->tasks[k]);
    }
}

static void check(const struct step_case *one)
{
    static char names[NODES_MAX][4] = { "n1", "n2", "n3", "n4" };
    NodeAlloc allocs[NODES_MAX], *list[NODES_MAX];
    Allocation allocation = ALLOCATION__INIT;
    StepLayout layout = STEP_LAYOUT__INIT;
    struct step_used used[NODES_MAX] = { 0 };
    uint32_t picked[NODES_MAX];
    struct arena arena;
    struct str got = { 0 };
    struct err err = { 0 };

    arena_init(&arena);
    allocation.nodes = list;
    for (size_t i = 0; i < NODES_MAX && one->cpus[i]; i++) {
        node_alloc__init(&allocs[i]);
        allocs[i].node = names[i];
        allocs[i].has_cpus = true;
        allocs[i].cpus = one->cpus[i];
        used[i].cpus = one->used[i];
        used[i].sockets = one->sockets;
        used[i].threads = one->threads;
        used[i].per_socket = one->sockets ? one->cpus[i] / one->sockets : 0;
        list[allocation.n_nodes++] = &allocs[i];
    }
    if (step_layout(&allocation, NULL, used, &one->request, &arena, &layout, picked, &err) < 0)
        str_add(&got, err_name(err.code));
    else
        describe(&layout, &got);
    assert_string_equal(str_text(&got), one->wanted);
    str_done(&got);
    arena_done(&arena);
}

static void test_tasks_go_round_the_nodes_and_are_numbered_by_the_distribution(void **state)
{
    const struct step_case cases[] = {
        { { 4, 2, 1 }, { 0 }, REQUEST(N(1)), "n1:0" },
        { { 4, 2, 1 }, { 0 }, REQUEST(N(5), NODES(2)), "n1:0,1,2 n2:3,4" },
        { { 4, 2, 1 }, { 0 }, REQUEST(N(7)), "n1:0,1,2,3 n2:4,5 n3:6" },
        { { 3, 1 }, { 0 }, REQUEST(N(4), NODES(2)), "n1:0,1,2 n2:3" },
        { { 3, 1 }, { 0 }, REQUEST(N(4), NODES(2), .first_task = 5), "n1:5,6,7 n2:8" },
        { { 3, 1 }, { 0 }, REQUEST(N(4), .first_task = UINT32_MAX), "ERR_TASK_COUNT" },
        { { 4, 4 },
          { 0 },
          REQUEST(N(4), NODES(2), .distribution = (char *)"cyclic"),
          "n1:0,2 n2:1,3" },
        { { 4, 4 },
          { 0 },
          REQUEST(N(6), NODES(2), .distribution = (char *)"plane=2"),
          "n1:0,1,4 n2:2,3,5" },
        { { 4, 4 }, { 0 }, REQUEST(NODES(2)), "n1:0 n2:1" },
        { { 4, 4 },
          { 0 },
          REQUEST(NODES(2), .has_ntasks_per_node = 1, .ntasks_per_node = 2),
          "n1:0,1 n2:2,3" },
        { { 2, 2 }, { 0 }, REQUEST(N(6), NODES(2), .overcommit = 1), "n1:0,1,2 n2:3,4,5" },
        { { 4, 4 }, { 0 }, REQUEST(N(2), .has_cpus_per_task = 1, .cpus_per_task = 4), "n1:0 n2:1" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check(&cases[i]);
}

static void test_nodes_are_chosen_as_asked(void **state)
{
    const struct step_case cases[] = {
        { { 1, 1, 1 }, { 0 }, REQUEST(N(1), NODES(1), .nodelist = (char *)"n2"), "n2:0" },
        { { 1, 1, 1 }, { 0 }, REQUEST(N(2), NODES(2), .nodelist = (char *)"n3"), "n1:0 n3:1" },
        { { 1, 1, 1 }, { 0 }, REQUEST(N(2), .exclude = (char *)"n1"), "n2:0 n3:1" },
        { { 1, 1, 1 }, { 0 }, REQUEST(N(1), .has_relative = 1, .relative = 2), "n3:0" },
        { { 1, 1, 1 }, { 0 }, REQUEST(N(2), .has_relative = 1, .relative = 2), "n1:0 n3:1" },
        { { 1, 1 }, { 0 }, REQUEST(N(1), .has_relative = 1, .relative = 2), "ERR_NODE_COUNT" },
        { { 1, 1, 1 },
          { 0 },
          REQUEST(N(2), NODES(2), .has_relative = 1, .relative = 2),
          "ERR_NODE_COUNT" },
        { { 1, 1 }, { 0 }, REQUEST(N(1), .nodelist = (char *)"n9"), "ERR_NODE_CONFIG_UNAVAILABLE" },
        { { 1, 1 },
          { 0 },
          REQUEST(N(1), .nodelist = (char *)"n1", .exclude = (char *)"n1"),
          "ERR_NODE_CONFIG_UNAVAILABLE" },
        { { 1, 1 }, { 0 }, REQUEST(NODES(3)), "ERR_NODE_CONFIG_UNAVAILABLE" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check(&cases[i]);
}

static void test_what_others_have_is_waited_for_or_shared(void **state)
{
    const struct step_case cases[] = {
        { { 4 }, { 1 }, REQUEST(N(1)), "ERR_NODES_BUSY" },
        { { 4 }, { 1 }, REQUEST(N(3), .exact = 1), "n1:0,1,2" },
        { { 4 }, { 1 }, REQUEST(N(4), .exact = 1), "ERR_NODES_BUSY" },
        { { 4 }, { 4 }, REQUEST(N(4), .overlap = 1), "n1:0,1,2,3" },
        { { 4, 4 }, { 4, 0 }, REQUEST(N(2), .exact = 1), "n2:0,1" },
        { { 4 }, { 0 }, REQUEST(N(5)), "ERR_TOO_MANY_CPUS" },
        { { 4 }, { 4 }, REQUEST(N(5), .exact = 1), "ERR_TOO_MANY_CPUS" },
        { { 4 },
          { 0 },
          REQUEST(N(2), .has_cpus_per_task = 1, .cpus_per_task = 3),
          "ERR_TOO_MANY_CPUS" },
        { { 4 }, { 0 }, REQUEST(N(0)), "ERR_TASK_COUNT" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check(&cases[i]);
}

static void test_cores_and_sockets_hold_so_many_tasks(void **state)
{
    const struct step_case cases[] = {
        /* two sockets of two cores of two threads */
        { { 8, 8 }, { 0 }, REQUEST(N(4), .ntasks_per_core = 1), "n1:0,1,2,3", 2, 2 },
        { { 8, 8 }, { 0 }, REQUEST(N(5), .ntasks_per_core = 1), "n1:0,1,2 n2:3,4", 2, 2 },
        { { 8, 8 }, { 0 }, REQUEST(N(8), .ntasks_per_core = 2), "n1:0,1,2,3,4,5,6,7", 2, 2 },
        { { 8, 8 }, { 0 }, REQUEST(N(3), .ntasks_per_socket = 1), "n1:0,1 n2:2", 2, 2 },
        { { 8 }, { 0 }, REQUEST(N(3), .ntasks_per_socket = 1), "ERR_TOO_MANY_CPUS", 2, 2 },
        { { 8 }, { 0 }, REQUEST(N(5), .ntasks_per_core = 1), "ERR_TOO_MANY_CPUS", 2, 2 },
        { { 8 }, { 4 }, REQUEST(N(2), .exact = 1, .ntasks_per_core = 1), "n1:0,1", 2, 2 },
        { { 8 }, { 6 }, REQUEST(N(2), .exact = 1, .ntasks_per_core = 1), "ERR_NODES_BUSY", 2, 2 },
        { { 4, 4 }, { 0 }, REQUEST(N(3), .ntasks_per_socket = 2), "n1:0,1 n2:2", 0, 0 },
        { { 8 }, { 0 }, REQUEST(N(1), .sockets_per_node = 2, .cores_per_socket = 2), "n1:0", 2, 2 },
        { { 8 }, { 0 }, REQUEST(N(1), .sockets_per_node = 3), "ERR_NODE_CONFIG_UNAVAILABLE", 2, 2 },
        { { 8 }, { 0 }, REQUEST(N(1), .cores_per_socket = 3), "ERR_NODE_CONFIG_UNAVAILABLE", 2, 2 },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check(&cases[i]);
}

static void test_packed(void **state)
{
    const struct step_case cases[] = {
        { { 4, 4, 4 },
          { 0 },
          REQUEST(N(6), NODES(3), .distribution = (char *)"block,Pack"),
          "n1:0,1,2,3 n2:4 n3:5" },
        { { 4, 4, 4 },
          { 0 },
          REQUEST(N(6), NODES(3), .distribution = (char *)"block,NoPack"),
          "n1:0,1 n2:2,3 n3:4,5" },
        { { 4, 4 },
          { 0 },
          REQUEST(N(5), NODES(2), .distribution = (char *)"*:block,pack"),
          "n1:0,1,2,3 n2:4" },
        { { 4, 4 },
          { 0 },
          REQUEST(N(4), NODES(2), .distribution = (char *)"cyclic,Pack"),
          "n1:0,2 n2:1,3" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check(&cases[i]);
}

UNIT_MAIN(UNIT(test_cores_and_sockets_hold_so_many_tasks), UNIT(test_packed),
          UNIT(test_tasks_go_round_the_nodes_and_are_numbered_by_the_distribution),
          UNIT(test_nodes_are_chosen_as_asked), UNIT(test_what_others_have_is_waited_for_or_shared))
