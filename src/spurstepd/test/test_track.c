/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_track.c - energy, GPUs and frequencies of a recorded machine; peaks of tasks
 */
#include "spurstepd/track.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/str.h"
#include "sys/files.h"

static char root[64];

static void put(const char *path, const char *text)
{
    CLEANUP(freep) char *file = mem_printf("%s%s", root, path);
    CLEANUP(freep) char *dir = mem_strdup(file);

    *strrchr(dir, '/') = '\0';
    assert_int_equal(file_make_dirs(dir, 0700, NULL), 0);
    assert_int_equal(file_write_quick(file, text, strlen(text), 0600, NULL), 0);
}

static int set_up(void **state)
{
    (void)state;
    strcpy(root, "/tmp/spur-track-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return file_remove_tree(root, NULL);
}

struct rig {
    StepTask task;
    struct track track;
    struct contain contain;
    struct sample_task tasks[2];
    struct arena arena;
    StepHere here;
};

static void begin(struct rig *rig)
{
    static char gpu0[] = "/sys/class/drm/renderD128/device";
    static char gpu1[] = "/sys/class/drm/renderD129/device";
    static char *gpus[] = { gpu0, gpu1 };

    step_task__init(&rig->task);
    rig->task.sysroot = root;
    rig->task.gpus = gpus;
    rig->task.n_gpus = 2;
    rig->task.sample_s = 10;
    rig->contain = (struct contain){ .cgroup_fd = -1 };
    rig->tasks[0] = (struct sample_task){ .number = 4 };
    rig->tasks[1] = (struct sample_task){ .number = 7 };
    arena_init(&rig->arena);
    step_here__init(&rig->here);
    track_start(&rig->track, &rig->task, 2, 0);
}

static const Usage *sample(struct rig *rig)
{
    track_sample(&rig->track, &rig->contain, rig->tasks, 1, &rig->arena, &rig->here);
    return rig->here.usage;
}

static void end(struct rig *rig)
{
    track_done(&rig->track);
    arena_done(&rig->arena);
}

static void energy_is_added_up_over_packages_and_wraps(void **state)
{
    struct rig rig;

    (void)state;
    put("/sys/class/powercap/intel-rapl:0/energy_uj", "1000000\n");
    put("/sys/class/powercap/intel-rapl:0/max_energy_range_uj", "50000000\n");
    put("/sys/class/powercap/intel-rapl:0:0/energy_uj", "900000\n"); /* a part of it */
    put("/sys/class/powercap/intel-rapl:1/energy_uj", "40000000\n");
    put("/sys/class/powercap/intel-rapl:1/max_energy_range_uj", "50000000\n");
    begin(&rig);
    put("/sys/class/powercap/intel-rapl:0/energy_uj", "6000000\n");
    put("/sys/class/powercap/intel-rapl:0:0/energy_uj", "90000000\n");
    put("/sys/class/powercap/intel-rapl:1/energy_uj", "43000000\n");
    assert_true(sample(&rig)->has_energy_j);
    assert_int_equal(rig.here.usage->energy_j, 5 + 3);
    put("/sys/class/powercap/intel-rapl:1/energy_uj", "1000000\n"); /* it wrapped */
    Usage usage = USAGE__INIT;
    track_end(&rig.track, rig.tasks, &usage);
    assert_int_equal(usage.energy_j, 5 + 3 + 7 + 1);
    end(&rig);
}

static void what_cannot_be_read_is_absent(void **state)
{
    struct rig rig;

    (void)state;
    begin(&rig);
    const Usage *usage = sample(&rig);
    assert_false(usage->has_energy_j);
    assert_false(usage->has_gpu_percent);
    assert_false(usage->has_gpu_mem_bytes);
    assert_false(usage->has_cpu_khz);
    end(&rig);
}

static void gpus_have_a_highest_sum(void **state)
{
    struct rig rig;

    (void)state;
    put("/sys/class/drm/renderD128/device/gpu_busy_percent", "40\n");
    put("/sys/class/drm/renderD129/device/gpu_busy_percent", "50\n");
    put("/sys/class/drm/renderD128/device/mem_info_vram_used", "1000000\n");
    put("/sys/class/drm/renderD129/device/mem_info_vram_used", "2000000\n");
    begin(&rig);
    assert_int_equal(sample(&rig)->gpu_percent, 90);
    put("/sys/class/drm/renderD128/device/gpu_busy_percent", "0\n");
    put("/sys/class/drm/renderD129/device/mem_info_vram_used", "7000000\n");
    Usage usage = USAGE__INIT;
    track_end(&rig.track, rig.tasks, &usage);
    assert_int_equal(usage.gpu_percent, 90);
    assert_int_equal(usage.gpu_mem_bytes, 8000000);
    end(&rig);
}

static void written_gpus_count_our_processes(void **state)
{
    struct rig rig;
    pid_t child = fork();
    char text[128];

    (void)state;
    if (child == 0) {
        pause();
        _exit(0);
    }
    snprintf(text, sizeof(text), "device 90 900\nprocesses\n1 50 500\n%d 40 400\n", child);
    put("/gpus/nvidia0", text);
    put("/gpus/nvidia1", "device 7 70\n"); /* its driver does not know them */
    CLEANUP(freep) char *gpu0 = mem_printf("%s/gpus/nvidia0", root);
    CLEANUP(freep) char *gpu1 = mem_printf("%s/gpus/nvidia1", root);
    CLEANUP(freep) char *gpu2 = mem_printf("%s/gpus/nvidia2", root); /* not there */
    char *gpus[] = { gpu0, gpu1, gpu2 };
    begin(&rig);
    rig.task.gpus = gpus;
    rig.task.n_gpus = 3;
    rig.tasks[0].pid = child;
    assert_int_equal(sample(&rig)->gpu_percent, 47);
    assert_int_equal(rig.here.usage->gpu_mem_bytes, 470);
    const struct timespec old[2] = { { 1000, 0 }, { 1000, 0 } };
    put("/gpus/nvidia1", "device 99 99999\n");
    assert_int_equal(utimensat(AT_FDCWD, gpu1, old, 0), 0);
    assert_int_equal(sample(&rig)->gpu_percent, 47); /* nobody writes it any more */
    kill(child, 9);
    end(&rig);
}

static void frequency_is_the_mean_of_samples(void **state)
{
    struct rig rig;
    pid_t child = fork();

    (void)state;
    if (child == 0) {
        pause();
        _exit(0);
    }
    for (int cpu = 0; cpu < 64; cpu++) {
        char path[96];
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", cpu);
        put(path, "2000000\n");
    }
    begin(&rig);
    rig.tasks[0].pid = child;
    assert_true(sample(&rig)->has_cpu_khz);
    assert_int_equal(rig.here.usage->cpu_khz, 2000000);
    for (int cpu = 0; cpu < 64; cpu++) {
        char path[96];
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", cpu);
        put(path, "3000000\n");
    }
    assert_int_equal(sample(&rig)->cpu_khz, 2500000);
    kill(child, 9);
    end(&rig);
}

static void peaks_are_kept_by_task(void **state)
{
    struct rig rig;
    Usage one = USAGE__INIT, two = USAGE__INIT, usage = USAGE__INIT;

    (void)state;
    one.user_us = 5000000;
    one.max_rss_bytes = 100;
    one.read_bytes = 9;
    two.user_us = 2000000;
    two.max_rss_bytes = 300;
    two.write_bytes = 8;
    begin(&rig);
    rig.tasks[0].ended = &one;
    rig.tasks[1].ended = &two;
    track_end(&rig.track, rig.tasks, &usage);
    assert_int_equal(usage.max_rss_bytes, 300);
    assert_int_equal(usage.max_rss_task, 7);
    assert_int_equal(usage.tot_rss_bytes, 400);
    assert_int_equal(usage.min_cpu_us, 2000000);
    assert_int_equal(usage.min_cpu_task, 7);
    assert_int_equal(usage.max_read_bytes, 9);
    assert_int_equal(usage.max_read_task, 4);
    assert_int_equal(usage.max_write_task, 7);
    end(&rig);
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(energy_is_added_up_over_packages_and_wraps),
        T(what_cannot_be_read_is_absent),
        T(gpus_have_a_highest_sum),
        T(written_gpus_count_our_processes),
        T(frequency_is_the_mean_of_samples),
        T(peaks_are_kept_by_task),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
