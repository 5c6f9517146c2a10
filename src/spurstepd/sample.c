/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample.c - what the processes of a step use now, by task
 */
#include "spurstepd/sample.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "spurstepd/proc_tree.h"

struct process {
    pid_t pid, parent, session;
    uint64_t ticks_user, ticks_system, faults, vm_bytes, rss_bytes, peak_bytes, read, written;
    uint64_t anon_bytes, shared_bytes;
    size_t task;
    int cpu; /* that it was last on; -1: not known */
};

static bool read_file(pid_t pid, const char *name, char *out, size_t size)
{
    char path[48];

    snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t len = read(fd, out, size - 1);
    close(fd);
    out[len > 0 ? len : 0] = '\0';
    return len > 0;
}

static uint64_t number_after(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static bool read_process(pid_t pid, struct process *out)
{
    char text[4096];
    uint64_t user, system, child_user, child_system;
    int64_t pages;

    if (!read_file(pid, "stat", text, sizeof(text)))
        return false;
    const char *after = strrchr(text, ')');
    *out = (struct process){ .pid = pid, .cpu = -1 };
    if (!after || sscanf(after + 1,
                         " %*c %d %*d %d %*d %*d %*u %*u %*u %" SCNu64 " %*u %" SCNu64 " %" SCNu64
                         " %" SCNu64 " %" SCNu64 " %*d %*d %*d %*d %*u %" SCNu64 " %" SCNd64
                         " %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %d",
                         &out->parent, &out->session, &out->faults, &user, &system, &child_user,
                         &child_system, &out->vm_bytes, &pages, &out->cpu) < 9)
        return false;
    out->ticks_user = user + child_user;
    out->ticks_system = system + child_system;
    out->rss_bytes = (uint64_t)MAX(pages, 0) * (uint64_t)sysconf(_SC_PAGESIZE);
    if (read_file(pid, "status", text, sizeof(text))) {
        out->peak_bytes = number_after(text, "VmHWM:") * 1024;
        out->anon_bytes = number_after(text, "RssAnon:") * 1024;
        out->shared_bytes = number_after(text, "RssShmem:") * 1024;
    }
    if (read_file(pid, "io", text, sizeof(text))) {
        out->read = number_after(text, "\nread_bytes:");
        out->written = number_after(text, "\nwrite_bytes:");
    }
    return true;
}

static size_t task_of(const struct process *process, const struct process *earlier, size_t n,
                      const struct sample_task *tasks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (tasks[i].pid == process->pid)
            return i;
    }
    for (size_t i = 0; i < n; i++) {
        if (earlier[i].pid == process->parent)
            return earlier[i].task;
    }
    for (size_t i = 0; i < count; i++) {
        if (tasks[i].pid && tasks[i].pid == process->session)
            return i;
    }
    return 0;
}

static void mark(Usage *usage)
{
    usage->has_user_us = usage->has_system_us = usage->has_max_rss_bytes = true;
    usage->has_read_bytes = usage->has_write_bytes = usage->has_max_vm_bytes = true;
    usage->has_page_faults = usage->has_processes = true;
}

static void add_process(Usage *usage, const struct process *process, uint64_t *rss)
{
    int64_t tick_us = 1000000 / sysconf(_SC_CLK_TCK);

    usage->user_us += (int64_t)process->ticks_user * tick_us;
    usage->system_us += (int64_t)process->ticks_system * tick_us;
    usage->page_faults += process->faults;
    usage->max_vm_bytes += process->vm_bytes;
    usage->read_bytes += process->read;
    usage->write_bytes += process->written;
    usage->processes++;
    *rss += process->rss_bytes;
    usage->max_rss_bytes = MAX(usage->max_rss_bytes, process->peak_bytes);
}

static void add_usage(Usage *sum, const Usage *more)
{
    sum->user_us += more->user_us;
    sum->system_us += more->system_us;
    sum->page_faults += more->page_faults;
    sum->read_bytes += more->read_bytes;
    sum->write_bytes += more->write_bytes;
    sum->processes += more->processes;
    sum->max_rss_bytes = MAX(sum->max_rss_bytes, more->max_rss_bytes);
    sum->max_vm_bytes = MAX(sum->max_vm_bytes, more->max_vm_bytes);
}

static StepTaskUsage *new_task(const struct sample_task *task, size_t processes,
                               struct arena *arena)
{
    StepTaskUsage *one = ARENA_NEW(arena, StepTaskUsage);

    step_task_usage__init(one);
    one->has_task = true;
    one->task = task->number;
    one->usage = ARENA_NEW(arena, Usage);
    usage__init(one->usage);
    mark(one->usage);
    if (task->ended)
        add_usage(one->usage, task->ended);
    one->pids = ARENA_ARRAY(arena, uint32_t, processes + 1);
    return one;
}

static int by_number(const void *a, const void *b)
{
    pid_t left = *(const pid_t *)a, right = *(const pid_t *)b;

    return (left > right) - (left < right);
}

/* A cgroup knows its processes; without one all of /proc is read. Parents mostly come first. */
static void list_pids(const struct contain *contain, struct pids *out)
{
    if (contain->cgroup_fd < 0 || !contain_pids(contain, out))
        proc_tree_list(getpid(), out);
    else if (out->list.len)
        qsort(out->list.items, out->list.len, sizeof(pid_t), by_number);
}

/* Of the CPUs that the processes were last on, where the kernel says how fast they are. */
static void read_frequency(const char *sysroot, const struct process *list, size_t n, Usage *usage)
{
    uint64_t total = 0, count = 0;

    for (size_t i = 0; i < n; i++) {
        char path[LIMIT_PATH_BYTES], text[32];
        if (list[i].cpu < 0)
            continue;
        snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq",
                 sysroot ? sysroot : "", list[i].cpu);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return; /* the others have none either */
        ssize_t len = read(fd, text, sizeof(text) - 1);
        close(fd);
        text[len > 0 ? len : 0] = '\0';
        total += strtoull(text, NULL, 10);
        count++;
    }
    usage->has_cpu_khz = count > 0;
    usage->cpu_khz = count ? total / count : 0;
}

uint64_t sample_take(const struct contain *contain, const struct sample_task *tasks, size_t count,
                     const char *sysroot, struct arena *arena, StepHere *out)
{
    CLEANUP(pids_done) struct pids pids = { 0 };
    uint64_t held = 0, shared = 0;
    size_t n = 0;

    list_pids(contain, &pids);
    struct process *list = ARENA_ARRAY(arena, struct process, pids.list.len + 1);
    uint64_t *rss = ARENA_ARRAY(arena, uint64_t, count + 1);
    vec_each (pid_t, pid, &pids.list) {
        if (!read_process(*pid, &list[n]))
            continue;
        list[n].task = task_of(&list[n], list, n, tasks, count);
        held += list[n].anon_bytes;
        shared = MAX(shared, list[n].shared_bytes);
        n++;
    }
    out->n_tasks = count;
    out->tasks = ARENA_ARRAY(arena, StepTaskUsage *, count + 1);
    out->usage = ARENA_NEW(arena, Usage);
    usage__init(out->usage);
    mark(out->usage);
    for (size_t i = 0; i < count; i++)
        out->tasks[i] = new_task(&tasks[i], n, arena);
    for (size_t i = 0; i < n; i++) {
        StepTaskUsage *task = out->tasks[list[i].task];
        add_process(task->usage, &list[i], &rss[list[i].task]);
        task->pids[task->n_pids++] = (uint32_t)list[i].pid;
    }
    for (size_t i = 0; i < count; i++) {
        Usage *usage = out->tasks[i]->usage;
        usage->max_rss_bytes = MAX(usage->max_rss_bytes, rss[i]);
        add_usage(out->usage, usage);
    }
    contain_usage(contain, out->usage);
    read_frequency(sysroot, list, n, out->usage);
    return held + shared;
}
