/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contain.c - where the processes of a step are held, so that none gets away
 */
#include "spurstepd/contain.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spurstepd/devices.h"
#include "spurstepd/proc_tree.h"

enum { FILE_BYTES = 4096, REMOVE_TRIES = 20 };

static const char *const passed_down[] = { "+memory", "+pids", "+cpuset", "+cpu", "+io" };

/* A control file is absent when the kernel or the parent does not offer it; that is no error. */
static bool put(int dir_fd, const char *name, const char *text)
{
    int fd = openat(dir_fd, name, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    bool ok = write(fd, text, strlen(text)) >= 0;
    close(fd);
    return ok;
}

static bool get(int dir_fd, const char *name, char out[FILE_BYTES])
{
    int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    ssize_t len = read(fd, out, FILE_BYTES - 1);
    close(fd);
    out[len > 0 ? len : 0] = '\0';
    return len > 0;
}

/* "user_usec 17" in a file of such lines. */
static bool get_count(const char *text, const char *key, uint64_t *out)
{
    size_t len = strlen(key);

    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, len) == 0 && line[len] == ' ')
            return sscanf(line + len + 1, "%" SCNu64, out) == 1;
    }
    return false;
}

static void put_number(int dir_fd, const char *name, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRIu64, value);
    put(dir_fd, name, text);
}

/* Limits belong to the job's cgroup, so that all its steps share them. */
static void limit_job(struct contain *contain, const StepTask *task)
{
    int fd = open(contain->job_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return;
    if (task->mem_bytes)
        put_number(fd, "memory.max", task->mem_bytes);
    if (task->mem_high_bytes)
        put_number(fd, "memory.high", task->mem_high_bytes);
    if (task->has_swap_bytes)
        put_number(fd, "memory.swap.max", task->swap_bytes);
    if (!str_is_empty(task->cpuset))
        contain->has_cpuset = put(fd, "cpuset.cpus", task->cpuset);
    if (task->has_max_processes)
        put_number(fd, "pids.max", task->max_processes);
    if (task->has_cpu_weight)
        put_number(fd, "cpu.weight", task->cpu_weight);
    if (task->cpu_quota) {
        char text[48];
        snprintf(text, sizeof(text), "%u00000 100000", task->cpu_quota);
        put(fd, "cpu.max", text);
    }
    for (size_t i = 0; i < task->n_io_max; i++)
        put(fd, "io.max", task->io_max[i]);
    if (task->has_io_weight)
        put_number(fd, "io.weight", task->io_weight);
    /* One at a time: what the kernel lacks does not keep the rest from the steps. */
    for (size_t i = 0; i < ARRAY_LEN(passed_down); i++)
        put(fd, "cgroup.subtree_control", passed_down[i]);
    close(fd);
}

/* What is this step's alone; its usage and its out-of-memory kills are counted here too. */
static void limit_step(struct contain *contain, const StepTask *task)
{
    if (task->step_mem_bytes)
        put_number(contain->cgroup_fd, "memory.max", task->step_mem_bytes);
    if (task->oom_kill_step)
        put(contain->cgroup_fd, "memory.oom.group", "1");
    if (!str_is_empty(task->step_cpuset))
        contain->has_cpuset = put(contain->cgroup_fd, "cpuset.cpus", task->step_cpuset);
}

static bool make_dir(struct contain *contain, const char *path)
{
    if (mkdir(path, 0755) == 0 || errno == EEXIST)
        return true;
    snprintf(contain->how, sizeof(contain->how), "process tree (cgroup: %s)", strerror(errno));
    return false;
}

static void forget_paths(struct contain *contain)
{
    free(contain->step_dir);
    free(contain->job_dir);
    contain->step_dir = contain->job_dir = NULL;
}

void contain_open(struct contain *contain, const StepTask *task)
{
    *contain = (struct contain){ .cgroup_fd = -1 };
    strcpy(contain->how, "process tree");
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);

    if (str_is_empty(task->cgroup))
        return;
    contain->step_dir = mem_strdup(task->cgroup);
    contain->job_dir = mem_strdup(task->job_cgroup);
    if ((contain->job_dir && !make_dir(contain, contain->job_dir)) ||
        !make_dir(contain, contain->step_dir)) {
        forget_paths(contain);
        return;
    }
    if (contain->job_dir)
        limit_job(contain, task);
    contain->cgroup_fd = open(contain->step_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (contain->cgroup_fd < 0) {
        forget_paths(contain);
        return;
    }
    strcpy(contain->how, "cgroup v2");
    if (contain->job_dir)
        limit_step(contain, task);
    struct err err = { 0 };
    if (devices_deny(contain->cgroup_fd, task->denied, task->n_denied, &err) < 0)
        snprintf(contain->how, sizeof(contain->how), "cgroup v2 (%.100s)", err.text);
}

static void cgroup_signal(struct contain *contain, int sig)
{
    char path[] = "cgroup.procs";
    int fd = openat(contain->cgroup_fd, path, O_RDONLY | O_CLOEXEC);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    int pid;

    if (!file) {
        if (fd >= 0)
            close(fd);
        return;
    }
    while (fscanf(file, "%d", &pid) == 1) {
        if (pid > 1)
            kill(pid, sig);
    }
    fclose(file);
}

void contain_signal(struct contain *contain, int sig)
{
    if (contain->cgroup_fd >= 0)
        cgroup_signal(contain, sig);
    else
        proc_tree_signal(getpid(), sig);
}

void contain_freeze(struct contain *contain, bool on)
{
    if (contain->frozen == on)
        return;
    contain->frozen = on;
    if (contain->cgroup_fd >= 0 && put(contain->cgroup_fd, "cgroup.freeze", on ? "1" : "0"))
        return;
    if (on)
        proc_tree_stop(getpid());
    else
        contain_signal(contain, SIGCONT);
}

void contain_kill(struct contain *contain)
{
    if (contain->cgroup_fd >= 0 && put(contain->cgroup_fd, "cgroup.kill", "1"))
        return;
    /* Linux before 5.14 has no cgroup.kill; freezing keeps forks out while we walk. */
    if (contain->cgroup_fd >= 0) {
        put(contain->cgroup_fd, "cgroup.freeze", "1");
        cgroup_signal(contain, SIGKILL);
        put(contain->cgroup_fd, "cgroup.freeze", "0");
    }
    proc_tree_kill(getpid());
}

void contain_usage(const struct contain *contain, Usage *usage)
{
    char text[FILE_BYTES];
    uint64_t user, system;

    if (contain->cgroup_fd < 0)
        return;
    if (get(contain->cgroup_fd, "cpu.stat", text) && get_count(text, "user_usec", &user) &&
        get_count(text, "system_usec", &system)) {
        usage->user_us = (int64_t)user;
        usage->system_us = (int64_t)system;
    }
    if (!contain->job_dir) /* no controllers, none of these files */
        return;
    if (get(contain->cgroup_fd, "io.stat", text)) {
        usage->read_bytes = usage->write_bytes = 0;
        for (const char *at = text; (at = strstr(at, "bytes=")); at += 6) {
            uint64_t bytes = strtoull(at + 6, NULL, 10);
            if (at > text && at[-1] == 'r')
                usage->read_bytes += bytes, usage->has_read_bytes = true;
            else if (at > text && at[-1] == 'w')
                usage->write_bytes += bytes, usage->has_write_bytes = true;
        }
    }
}

uint64_t contain_memory_peak(const struct contain *contain)
{
    char text[FILE_BYTES];
    uint64_t peak = 0;

    if (contain->cgroup_fd >= 0 && get(contain->cgroup_fd, "memory.peak", text))
        sscanf(text, "%" SCNu64, &peak);
    return peak;
}

uint64_t contain_oom_kills(const struct contain *contain)
{
    char text[FILE_BYTES];
    uint64_t kills = 0;

    if (contain->cgroup_fd < 0 || !contain->job_dir ||
        (!get(contain->cgroup_fd, "memory.events", text) &&
         !get(contain->cgroup_fd, "../memory.events", text)))
        return 0;
    get_count(text, "oom_kill", &kills);
    return kills;
}

bool contain_pids(const struct contain *contain, struct pids *out)
{
    int fd = openat(contain->cgroup_fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    int pid;

    if (!file) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    while (fscanf(file, "%d", &pid) == 1)
        vec_push(&out->list, (pid_t)pid);
    fclose(file);
    return true;
}

/* A process that wait() has returned may still be leaving its cgroup. */
static void remove_dir(const char *path)
{
    for (int i = 0; i < REMOVE_TRIES && rmdir(path) < 0 && errno == EBUSY; i++)
        usleep(1000);
}

void contain_close(struct contain *contain)
{
    if (contain->cgroup_fd >= 0)
        close(contain->cgroup_fd);
    contain->cgroup_fd = -1;
    if (contain->step_dir) {
        remove_dir(contain->step_dir);
        if (contain->job_dir)
            rmdir(contain->job_dir); /* the last step does it; before that it is busy */
    }
    forget_paths(contain);
}
