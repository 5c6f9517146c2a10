// SPDX-License-Identifier: Apache-2.0
/*
 * test_takes.c - what a job takes of a node, and how many nodes its GPUs make
 */
#include "core/test/fixture.h"
#include "core/view/view.h"

/* So many CPUs, megabytes and GPUs of n2 (4 CPUs, 2 threads each core, 2 GPUs) for `tasks` tasks. */
static void takes(struct fix *fix, const JobSpec *spec, uint32_t tasks, uint32_t cpus,
                  uint64_t mem_mb, uint64_t devices)
{
    struct err err = { 0 };
    struct shape *shape = shape_parse(fix->state, spec, &err);
    uint64_t free_gpus[TAKE_GRES] = { 2 };
    struct room room = { .cpus = 4, .mem_mb = 4000, .gres = free_gpus, .empty = true };
    struct take take;

    if (!shape)
        fail_msg("%s", err.text);
    fit_part(shape, shape_needs(fix->state, shape), state_node(fix->state, "n2"), &room, tasks,
             &take);
    assert_int_equal(take.cpus, cpus);
    assert_int_equal(take.mem_mb, mem_mb);
    assert_int_equal(take.gres[0], devices);
    shape_free(shape);
}

static void what_is_taken_goes_by_how_it_is_asked_for(void **unused)
{
    struct fix *fix = fix_new(4);
    JobSpec spec = fix_spec();

    spec.partition = (char *)"main";
    SET(&spec, mem_per_cpu_mb, 100);
    SET(&spec, ntasks, 2);
    takes(fix, &spec, 2, 2, 200, 0);
    spec.hint = (char *)"nomultithread"; /* memory goes by what is used */
    takes(fix, &spec, 2, 4, 200, 0);
    spec.hint = (char *)"memory_bound";
    takes(fix, &spec, 2, 4, 200, 0);
    spec.hint = NULL;
    SET(&spec, ntasks, 40);
    SET(&spec, overcommit, true); /* one task's CPUs */
    takes(fix, &spec, 40, 2, 200, 0);
    spec.has_overcommit = spec.overcommit = false;
    SET(&spec, ntasks, 2);
    SET(&spec, ntasks_per_core, 1); /* a core is of one task, whatever it uses of it */
    SET(&spec, cpus_per_task, 1);
    takes(fix, &spec, 2, 4, 400, 0);
    SET(&spec, ntasks_per_core, 2);
    takes(fix, &spec, 2, 2, 200, 0);
    SET(&spec, ntasks_per_core, 1);
    SET(&spec, cpus_per_task, 3);
    takes(fix, &spec, 1, 4, 400, 0);
    spec.has_ntasks_per_core = spec.has_cpus_per_task = false;
    spec.ntasks_per_core = spec.cpus_per_task = 0;
    SET(&spec, ntasks, 1);
    SET(&spec, exclusive, EXCLUSIVE_NODE); /* everything but memory */
    takes(fix, &spec, 1, 4, 400, 2);
    fix_free(fix);
}

static void gpus_of_a_job_are_of_few_nodes(void **unused)
{
    static const struct {
        uint32_t gpus, nodes, tasks, tasks_given;
    } rows[] = { { 1, 1, 1, 0 }, { 2, 1, 1, 0 }, { 3, 2, 2, 0 }, { 4, 2, 2, 0 },
                 { 4, 2, 2, 2 }, { 5, 1, 1, 0 }, { 4, 2, 4, 4 } };
    struct fix *fix = fix_new(4);

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        JobSpec spec = fix_spec();
        struct err err = { 0 };
        spec.partition = (char *)"main";
        GresRequest gpu = GRES_REQUEST__INIT, *list[1] = { &gpu };
        gpu.name = (char *)"gpu";
        SET(&gpu, count, rows[i].gpus);
        SET(&gpu, scope, GRES_PER_JOB);
        spec.gres = list;
        spec.n_gres = 1;
        if (rows[i].tasks_given)
            SET(&spec, ntasks, rows[i].tasks_given);
        struct shape *shape = shape_parse(fix->state, &spec, &err);
        assert_non_null(shape);
        assert_int_equal(shape_needs(fix->state, shape)->fits, rows[i].gpus <= 4);
        assert_int_equal(shape->min_nodes, rows[i].nodes);
        assert_int_equal(shape->tasks, rows[i].tasks);
        shape_free(shape);
    }
    fix_free(fix);
}

UNIT_MAIN(UNIT(what_is_taken_goes_by_how_it_is_asked_for), UNIT(gpus_of_a_job_are_of_few_nodes))
