/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_contain.c - what is written into the cgroups of a job and a step, shown by plain files
 */
#include "spurstepd/contain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "sys/files.h"

static char root[64];

static void put(const char *path)
{
    CLEANUP(freep) char *file = mem_printf("%s%s", root, path);
    CLEANUP(freep) char *dir = mem_strdup(file);

    *strrchr(dir, '/') = '\0';
    assert_int_equal(file_make_dirs(dir, 0700, NULL), 0);
    assert_int_equal(file_write_quick(file, "", 0, 0600, NULL), 0);
}

static void check(const char *path, const char *wanted)
{
    CLEANUP(freep) char *file = mem_printf("%s%s", root, path);
    CLEANUP(str_done) struct str text = { 0 };

    assert_int_equal(file_read(file, 64, &text, NULL), 0);
    assert_string_equal(str_text(&text), wanted);
}

static void open_step(bool end_all)
{
    StepTask task = STEP_TASK__INIT;
    struct contain contain;
    CLEANUP(freep) char *job = mem_printf("%s/job", root);
    CLEANUP(freep) char *step = mem_printf("%s/job/step", root);

    put("/job/memory.max");
    put("/job/step/memory.max");
    put("/job/step/memory.oom.group");
    task.job_cgroup = job;
    task.cgroup = step;
    task.mem_bytes = 1000;
    task.step_mem_bytes = 500;
    task.oom_kill_step = end_all;
    contain_open(&contain, &task);
    check("/job/memory.max", "1000");
    check("/job/step/memory.max", "500");
    contain_close(&contain);
}

/* --oom-kill-step: the kernel ends all of the step's processes, not the largest alone. */
static void test_out_of_memory_ends_the_step(void **state)
{
    (void)state;
    strcpy(root, "/tmp/spur-contain-XXXXXX");
    assert_non_null(mkdtemp(root));
    open_step(true);
    check("/job/step/memory.oom.group", "1");
    open_step(false);
    check("/job/step/memory.oom.group", "");
    assert_int_equal(file_remove_tree(root, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_out_of_memory_ends_the_step),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
