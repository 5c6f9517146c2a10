/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_step_bind.c - which CPUs each task is bound to, on several machines
 */
#include <string.h>

#include "base/limits.h"
#include "spurd/step/step_bind.h"
#include "spurd/step/step_mem.h"
#include "test/unit.h"

struct bind_case {
    struct bind_ask ask;
    const char *wanted; /* masks, "-" when nothing is bound, or the name of the error */
};

#define ASK(...)                      \
    {                                 \
        .affinity = true, __VA_ARGS__ \
    }
#define TASKS(n, each) .tasks = (n), .cpus_per_task = (each)

static void check(const struct bind_node *node, const struct bind_case *one)
{
    struct bind_plan plan;
    struct str got = { 0 };
    struct err err = { 0 };

    if (bind_plan(node, &one->ask, &plan, &err) < 0) {
        str_add(&got, err_name(err.code));
    } else {
        for (size_t i = 0; i < plan.count; i++) {
            str_add(&got, i ? " " : "");
            bind_add_mask(&got, &plan.masks[i], 0);
        }
        if (plan.count == 0)
            str_add(&got, "-");
    }
    if (strcmp(str_text(&got), one->wanted) != 0)
        print_message("bind %s dist %s hint %s tasks %u\n",
                      one->ask.cpu_bind ? one->ask.cpu_bind : "",
                      one->ask.distribution ? one->ask.distribution : "",
                      one->ask.hint ? one->ask.hint : "", one->ask.tasks);
    assert_string_equal(str_text(&got), one->wanted);
    bind_done(&plan);
    str_done(&got);
}

static void check_all(const struct bind_node *node, const struct bind_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check(node, &cases[i]);
}

/* Two sockets of four cores of two threads: 0-7 and 8-15; a core is 0-1, 2-3, … */
static void test_two_sockets_with_threads(void **state)
{
    const struct bind_node node = { .cpus = 16, .cores_per_socket = 4, .threads = 2 };
    const struct bind_case cases[] = {
        /* by itself: as many sockets, cores or threads as the tasks need, else all */
        { ASK(TASKS(2, 1)), "0xff 0xff00" },
        { ASK(TASKS(8, 1)), "0x3 0x300 0xc 0xc00 0x30 0x3000 0xc0 0xc000" },
        { ASK(TASKS(4, 4)), "0xf 0xf00 0xf0 0xf000" },
        { ASK(TASKS(3, 1)), "0xffff 0xffff 0xffff" },
        { ASK(TASKS(3, 1), .otherwise = BIND_CORES), "0x3 0x300 0xc" },
        { { .tasks = 2 }, "-" },
        /* units */
        { ASK(TASKS(3, 1), .cpu_bind = "threads"), "0x1 0x100 0x4" },
        { ASK(TASKS(3, 1), .cpu_bind = "cores"), "0x3 0x300 0xc" },
        { ASK(TASKS(3, 1), .cpu_bind = "sockets"), "0xff 0xff00 0xff" },
        { ASK(TASKS(3, 1), .cpu_bind = "ldoms"), "0xff 0xff00 0xff" },
        { ASK(TASKS(2, 1), .cpu_bind = "verbose,none"), "-" },
        /* the second part of the distribution: sockets */
        { ASK(TASKS(3, 1), .cpu_bind = "cores", .distribution = "block:block"), "0x3 0x3 0xc" },
        { ASK(TASKS(3, 2), .cpu_bind = "threads", .distribution = "*:block"), "0x3 0xc 0x30" },
        { ASK(TASKS(3, 2), .cpu_bind = "threads", .distribution = "block:cyclic"),
          "0x3 0x300 0xc" },
        { ASK(TASKS(2, 2), .cpu_bind = "threads", .distribution = "block:fcyclic"), "0x101 0x404" },
        { ASK(TASKS(2, 2), .cpu_bind = "cores", .distribution = "block:fcyclic"), "0x303 0xc0c" },
        /* the third: cores */
        { ASK(TASKS(3, 1), .cpu_bind = "threads", .distribution = "block:block:cyclic"),
          "0x1 0x4 0x10" },
        { ASK(TASKS(3, 1), .cpu_bind = "threads", .distribution = "block:cyclic:block"),
          "0x1 0x100 0x2" },
        { ASK(TASKS(2, 3), .cpu_bind = "threads", .distribution = "block:block:fcyclic"),
          "0x15 0x4a" },
        { ASK(TASKS(3, 2), .cpu_bind = "threads", .distribution = "plane=2:block:cyclic"),
          "0x3 0xc 0x30" },
        /* the step has only a part */
        { ASK(TASKS(2, 1), .cpu_ids = "2-5"), "0xc 0x30" },
        { ASK(TASKS(2, 1), .cpu_ids = "4,12", .cpu_bind = "cores"), "0x10 0x1000" },
        { ASK(TASKS(3, 1), .cpu_ids = "4-5", .cpu_bind = "threads"), "0x10 0x20 0x10" },
        /* threads and hints */
        { ASK(TASKS(2, 2), .threads_per_core = 1), "0x5 0x500" },
        { ASK(TASKS(2, 1), .hint = "nomultithread", .threads_per_core = 1), "0x1 0x100" },
        { ASK(TASKS(8, 1), .hint = "compute_bound"),
          "0x1 0x100 0x4 0x400 0x10 0x1000 0x40 0x4000" },
        { ASK(TASKS(2, 1), .hint = "memory_bound"), "0x1 0x100" },
        { ASK(TASKS(16, 1), .hint = "multithread", .distribution = "block:block:block"),
          "0x1 0x2 0x4 0x8 0x10 0x20 0x40 0x80 0x100 0x200 0x400 0x800 0x1000 0x2000 0x4000 0x8000" },
        /* so many tasks on each core or socket */
        { ASK(TASKS(4, 1), .cpu_bind = "threads", .distribution = "*:block:block", .per_core = 1),
          "0x1 0x4 0x10 0x40" },
        { ASK(TASKS(3, 1), .cpu_bind = "threads", .distribution = "*:block:block", .per_core = 2),
          "0x1 0x2 0x4" },
        { ASK(TASKS(3, 1), .cpu_bind = "threads", .distribution = "*:block:block", .per_socket = 2),
          "0x1 0x2 0x100" },
        { ASK(TASKS(2, 1), .cpu_bind = "cores", .distribution = "*:block:block", .per_socket = 1),
          "0x3 0x300" },
        /* lists */
        { ASK(TASKS(3, 1), .cpu_bind = "rank"), "0x1 0x2 0x4" },
        { ASK(TASKS(3, 1), .cpu_ids = "6-7", .cpu_bind = "rank"), "0x40 0x80 0x40" },
        { ASK(TASKS(3, 1), .cpu_bind = "map_cpu:3,0xa"), "0x8 0x400 0x8" },
        { ASK(TASKS(3, 1), .cpu_bind = "map_cpu:3*2,5"), "0x8 0x8 0x20" },
        { ASK(TASKS(2, 1), .cpu_bind = "quiet,mask_cpu:f0,0x1"), "0xf0 0x1" },
        { ASK(TASKS(3, 1), .cpu_bind = "rank_ldom"), "0xff 0xff00 0xff" },
        { ASK(TASKS(2, 1), .cpu_bind = "map_ldom:1,0"), "0xff00 0xff" },
        { ASK(TASKS(1, 1), .cpu_bind = "mask_ldom:0x3"), "0xffff" },
        { ASK(TASKS(1, 1), .cpu_bind = "map_cpu:16"), "ERR_CPU_BIND" },
        { ASK(TASKS(1, 1), .cpu_ids = "0-3", .cpu_bind = "map_cpu:4"), "ERR_CPU_BIND" },
        { ASK(TASKS(1, 1), .cpu_bind = "map_ldom:2"), "ERR_CPU_BIND" },
        { ASK(TASKS(2, 1), .cpu_bind = "mask_cpu:f0,f,verbose"), "0xf0 0xf" },
        { ASK(TASKS(2, 1), .cpu_bind = "map_cpu:1,2,quiet"), "0x2 0x4" },
        { ASK(TASKS(1, 1), .cpu_bind = "cores,v"), "0x3" },
        { ASK(TASKS(1, 1), .cpu_bind = "bogus"), "ERR_INVALID" },
        { ASK(TASKS(1, 1), .cpu_bind = "map_cpu:1,x"), "ERR_INVALID" },
    };

    (void)state;
    check_all(&node, cases, ARRAY_LEN(cases));
}

static void test_one_socket_without_threads(void **state)
{
    const struct bind_node node = { .cpus = 4, .cores_per_socket = 4, .threads = 1 };
    const struct bind_case cases[] = {
        { ASK(TASKS(1, 1)), "0xf" },
        { ASK(TASKS(4, 1)), "0x1 0x2 0x4 0x8" },
        { ASK(TASKS(2, 2)), "0x3 0xc" },
        { ASK(TASKS(2, 1), .cpu_ids = "1-2"), "0x2 0x4" },
        { ASK(TASKS(1, 9), .cpu_bind = "threads"), "0xf" },
    };

    (void)state;
    check_all(&node, cases, ARRAY_LEN(cases));
}

/* The kernel numbers threads after all cores, as most do; NUMA nodes are half a socket. */
static void test_numbers_of_the_kernel(void **state)
{
    static const unsigned map[] = { 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15 };
    static char *const ldoms[] = { (char *)"0-1,8-9", (char *)"2-3,10-11", (char *)"4-5,12-13",
                                   (char *)"6-7,14-15" };
    const struct bind_node node = {
        .cpus = 16, .cores_per_socket = 4, .threads = 2, .map = map, .ldoms = ldoms, .ldom_count = 4
    };
    const struct bind_case cases[] = {
        { ASK(TASKS(3, 1), .cpu_bind = "cores"), "0x101 0x1010 0x202" },
        { ASK(TASKS(2, 1), .cpu_bind = "ldoms"), "0x303 0x3030" },
        { ASK(TASKS(2, 1), .cpu_bind = "rank_ldom"), "0x303 0xc0c" },
        { ASK(TASKS(1, 1), .cpu_bind = "map_ldom:3"), "0xc0c0" },
        { ASK(TASKS(1, 1), .cpu_bind = "map_cpu:9"), "0x200" },
        { ASK(TASKS(1, 1), .cpu_ids = "2-3", .cpu_bind = "map_cpu:9"), "0x200" },
        { ASK(TASKS(1, 1), .cpu_ids = "2-3", .cpu_bind = "map_cpu:2"), "ERR_CPU_BIND" },
    };

    (void)state;
    check_all(&node, cases, ARRAY_LEN(cases));
}

static void test_default_of_the_configuration(void **state)
{
    (void)state;
    assert_int_equal(bind_autobind(NULL), BIND_DEFAULT);
    assert_int_equal(bind_autobind("Verbose,autobind=Cores"), BIND_CORES);
    assert_int_equal(bind_autobind("autobind=none"), BIND_DEFAULT);
}

static void test_gpu_words(void **state)
{
    struct bind_gpu bind;
    struct err err = { 0 };

    (void)state;
    assert_int_equal(bind_read_gpu("verbose,single:2", &bind, &err), 0);
    assert_true(bind.verbose && bind.kind == BIND_GPU_SINGLE && bind.count == 2);
    assert_int_equal(bind_read_gpu("map_gpu:0,1*2", &bind, &err), 0);
    assert_int_equal(bind.kind, BIND_GPU_MAP);
    assert_int_equal(bind_read_gpu("gpu:per_task:3", &bind, &err), 0);
    assert_true(bind.kind == BIND_GPU_PER_TASK && bind.count == 3);
    assert_true(bind_read_gpu("single:0", &bind, &err) < 0);
    assert_int_equal(bind_read_gpu("closest,verbose", &bind, &err), 0);
    assert_true(bind.kind == BIND_GPU_CLOSEST && bind.verbose);
    assert_int_equal(bind_read_tres("gres/gpu:verbose,per_task:2", &bind, &err), 0);
    assert_true(bind.kind == BIND_GPU_PER_TASK && bind.count == 2 && bind.verbose);
    assert_int_equal(bind_read_tres("gpu:map:0,1", &bind, &err), 0);
    assert_true(bind_read_tres("gres/nic:closest", &bind, &err) < 0);
    assert_true(bind_read_tres("closest", &bind, &err) < 0);
    assert_true(bind_read_tres("gres/gpu:near", &bind, &err) < 0);
    assert_true(bind_read_gpu("near", &bind, &err) < 0);
    assert_string_equal(err.text, "Invalid --gpu-bind argument: near");
}

/* ---- memory ---- */

static void test_memory(void **state)
{
    static char *const cpus[] = { (char *)"0-3", (char *)"4-7", (char *)"" };
    static const unsigned ids[] = { 0, 1, 4 };
    const struct mem_node node = { .cpus = cpus, .ids = ids, .count = 3 };
    static const struct {
        const char *text;
        size_t task;
        const char *cpus, *wanted; /* NUMA nodes, or the error */
    } cases[] = {
        { "none", 0, NULL, "0-1,4" },
        { "local", 0, "5", "1" },
        { "local,verbose", 0, "3-4", "0-1" },
        { "quiet,local", 0, NULL, "0-1,4" },
        { "rank", 1, NULL, "1" },
        { "rank", 2, NULL, "NUMA node 2 does not exist" },
        { "map_mem:0,4", 0, NULL, "0" },
        { "map_mem:0,4,prefer", 1, NULL, "4" },
        { "prefer,map_mem:0x4*3,1", 2, NULL, "4" },
        { "map_mem:0,4", 2, NULL, "0" },
        { "mask_mem:0x3,10", 0, NULL, "0-1" },
        { "mask_mem:0x3,10", 1, NULL, "4" },
        { "mask_mem:4", 0, NULL, "NUMA node 2 does not exist" },
        { "mask_mem:0", 0, NULL, "no NUMA node is named" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bind_mem bind;
        struct bitset own, got;
        struct err err = { 0 };
        struct str text = { 0 };
        bitset_init(&own, LIMIT_CPU_NUMBER);
        bitset_init(&got, LIMIT_NUMA_NODES);
        assert_int_equal(bind_read_mem(cases[i].text, &bind, &err), 0);
        if (cases[i].cpus)
            assert_true(bitset_parse(&own, cases[i].cpus));
        if (mem_plan(&node, &bind, cases[i].task, cases[i].cpus ? &own : NULL, &got, &err) < 0)
            str_add(&text, err.text);
        else
            bitset_format(&got, &text);
        assert_string_equal(str_text(&text), cases[i].wanted);
        str_done(&text);
        bitset_done(&own);
        bitset_done(&got);
    }
}

static void test_memory_texts(void **state)
{
    static const struct {
        const char *text, *all, *type, *list;
    } good[] = {
        { "none", "quiet,none", "none", "" },
        { "v,p,local", "verbose,prefer,local", "local", "" },
        { "verbose", "verbose", "", "" },
        { "map_mem:0,1*2,sort", "quiet,sort,map_mem:0,1*2", "map_mem:", "0,1*2" },
        { "nosort,mask_mem:0x1,f", "quiet,nosort,mask_mem:0x1,f", "mask_mem:", "0x1,f" },
    };
    static const char *const bad[] = { "near", "map_mem:", "map_mem:x", "mask_mem:0xg",
                                       "local,no_" };
    struct bind_mem bind;
    struct err err = { 0 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct str all = { 0 }, type = { 0 }, list = { 0 };
        assert_true(bind_mem_variable(good[i].text, "", &all));
        assert_true(bind_mem_variable(good[i].text, "TYPE", &type));
        assert_true(bind_mem_variable(good[i].text, "LIST", &list));
        assert_string_equal(str_text(&all), good[i].all);
        assert_string_equal(str_text(&type), good[i].type);
        assert_string_equal(str_text(&list), good[i].list);
        str_done(&all);
        str_done(&type);
        str_done(&list);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_true(bind_read_mem(bad[i], &bind, &err) < 0);
    bind_read_mem("map_mem:", &bind, &err);
    assert_string_equal(err.text, "missing list for \"--mem-bind=map_mem:<list>\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_sockets_with_threads),
        cmocka_unit_test(test_one_socket_without_threads),
        cmocka_unit_test(test_numbers_of_the_kernel),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_memory_texts),
        cmocka_unit_test(test_default_of_the_configuration),
        cmocka_unit_test(test_gpu_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
