/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_freq.c - CPU frequencies of a made-up machine: set, taken over, restored
 */
#include "spurstepd/freq.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/str.h"
#include "sys/files.h"

#define CPUFREQ "/sys/devices/system/cpu/cpu%d/cpufreq/"

static char root[64], said[256];

static void put(int cpu, const char *name, const char *text)
{
    CLEANUP(freep) char *file = mem_printf("%s" CPUFREQ "%s", root, cpu, name);
    CLEANUP(freep) char *dir = mem_strdup(file);

    *strrchr(dir, '/') = '\0';
    assert_int_equal(file_make_dirs(dir, 0700, NULL), 0);
    assert_int_equal(file_write_quick(file, text, strlen(text), 0600, NULL), 0);
}

static void make_cpu(int cpu, const char *governors)
{
    put(cpu, "scaling_available_governors", governors);
    put(cpu, "scaling_available_frequencies", "2400000 2000000 1600000 1200000 \n");
    put(cpu, "scaling_governor", "ondemand\n");
    put(cpu, "scaling_min_freq", "1200000\n");
    put(cpu, "scaling_max_freq", "2400000\n");
    put(cpu, "scaling_cur_freq", "2000000\n");
    put(cpu, "scaling_setspeed", "<unsupported>\n");
}

/* Governor, limits, and the speed that was set last. */
static void check(int cpu, const char *wanted)
{
    static const char *const names[] = { "scaling_governor", "scaling_min_freq", "scaling_max_freq",
                                         "scaling_setspeed" };
    struct str got = { 0 };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        CLEANUP(freep) char *file = mem_printf("%s" CPUFREQ "%s", root, cpu, names[i]);
        struct str text = { 0 };
        assert_int_equal(file_read(file, 64, &text, NULL), 0);
        str_addf(&got, "%s%.*s", i ? " " : "", (int)strcspn(str_text(&text), "\n"),
                 str_text(&text));
        str_done(&text);
    }
    assert_string_equal(str_text(&got), wanted);
    str_done(&got);
}

static int set_up(void **state)
{
    (void)state;
    strcpy(root, "/tmp/spur-freq-XXXXXX");
    said[0] = '\0';
    if (!mkdtemp(root))
        return -1;
    make_cpu(0, "performance powersave userspace ondemand\n");
    make_cpu(1, "performance powersave userspace ondemand\n");
    make_cpu(2, "performance powersave\n");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return file_remove_tree(root, NULL);
}

static void say(void *owner, const char *text)
{
    (void)owner;
    snprintf(said, sizeof(said), "%s", text);
}

struct rig {
    StepTask task;
    StepId id;
    StepFreq freq;
    struct containment hold;
    char dir[96];
};

static void begin(struct rig *rig, uint32_t job, const char *cpus, uint32_t min, uint32_t max,
                  const char *governor)
{
    *rig = (struct rig){ 0 };
    step_task__init(&rig->task);
    step_id__init(&rig->id);
    step_freq__init(&rig->freq);
    snprintf(rig->dir, sizeof(rig->dir), "%s/own", root);
    rig->id.job_id = job;
    rig->freq.min = min;
    rig->freq.max = max;
    rig->freq.governor = (char *)governor;
    rig->freq.cpus = (char *)cpus;
    rig->freq.dir = rig->dir;
    rig->task.id = &rig->id;
    rig->task.name = (char *)"0";
    rig->task.freq = &rig->freq;
    rig->task.sysroot = root;
    rig->hold.task = &rig->task;
    rig->hold.say = say;
    freq_set(&rig->hold);
}

static const char *const before = "ondemand 1200000 2400000 <unsupported>";

static void test_one_frequency(void **state)
{
    static const struct {
        uint32_t asked;
        const char *wanted;
    } cases[] = {
        { STEP_FREQ_LOW, "userspace 1200000 2400000 1200000" },
        { STEP_FREQ_MEDIUM, "userspace 1200000 2400000 1600000" },
        { STEP_FREQ_HIGHM1, "userspace 1200000 2400000 2000000" },
        { STEP_FREQ_HIGH, "userspace 1200000 2400000 2400000" },
        { 1700000, "userspace 1200000 2400000 2000000" },
        { 9900000, "userspace 1200000 2400000 2400000" },
        { 1000, "userspace 1200000 2400000 1200000" },
    };
    struct rig rig;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        put(0, "scaling_setspeed", "<unsupported>\n");
        begin(&rig, 7, "0", 0, cases[i].asked, "UserSpace");
        check(0, cases[i].wanted);
        check(1, before);
        freq_reset(&rig.task);
        put(0, "scaling_setspeed", "<unsupported>\n");
        check(0, before);
        assert_string_equal(said, "");
    }
}

static void test_range_and_governor(void **state)
{
    struct rig rig;

    (void)state;
    begin(&rig, 7, "0-1", 1600000, STEP_FREQ_HIGHM1, NULL);
    check(0, "ondemand 1600000 2000000 <unsupported>");
    check(1, "ondemand 1600000 2000000 <unsupported>");
    freq_reset(&rig.task);
    check(1, before);
    begin(&rig, 7, "1", 0, 0, "Performance");
    check(1, "performance 1200000 2400000 <unsupported>");
    freq_reset(&rig.task);
    check(1, before);
    begin(&rig, 7, "1", STEP_FREQ_LOW, 1600000, "UserSpace");
    check(1, "userspace 1200000 1600000 1600000");
    freq_reset(&rig.task);
}

/* Where the governor is missing: limits hold one frequency, anything else is said and goes on. */
static void test_without_governor(void **state)
{
    struct rig rig;

    (void)state;
    begin(&rig, 7, "2", 0, 1600000, "UserSpace");
    check(2, "ondemand 1600000 1600000 <unsupported>");
    freq_reset(&rig.task);
    check(2, before);
    begin(&rig, 7, "2", 0, 0, "OnDemand");
    assert_string_equal(
        said,
        "slurmstepd: error: cpu_freq: Can not set scaling_governor of CPU 2: Invalid argument");
    freq_reset(&rig.task);
    check(2, before);
    begin(&rig, 7, "5-6", 0, 1600000, "UserSpace");
    assert_string_equal(said,
                        "slurmstepd: error: CPU frequency setting not configured for this node");
    freq_reset(&rig.task);
}

/* Steps that overlap: the last one's request holds, and what was before both comes back. */
static void test_two_steps(void **state)
{
    struct rig first, second, third;

    (void)state;
    begin(&first, 7, "0-1", 0, 0, "Performance");
    begin(&second, 8, "1", 0, 0, "PowerSave");
    check(0, "performance 1200000 2400000 <unsupported>");
    check(1, "powersave 1200000 2400000 <unsupported>");
    freq_reset(&first.task);
    check(0, before);
    check(1, "powersave 1200000 2400000 <unsupported>");
    freq_reset(&second.task);
    check(1, before);
    /* a supervisor that was killed restores nothing; the next one does */
    begin(&first, 9, "0", STEP_FREQ_LOW, STEP_FREQ_LOW, NULL);
    begin(&third, 10, "0", 0, 0, "Performance");
    freq_reset(&third.task);
    check(0, before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_frequency, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_range_and_governor, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_without_governor, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_two_steps, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
