/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_stub_turns.c - how long the turns of the controller's loop were, and how long the machine stood still
 *
 * (1) The controller says how long the longest turn was (Diag), and logs each that took over 5 ms by the
 *     clock, with its CPU time.
 * (2) A virtual machine is stopped now and then by its host; to the kernel in it that is CPU time of who
 *     was running. A thread of the highest priority on each CPU wakes up every half millisecond: while
 *     all of them are late at once the machine stood still, and what of that lies in a turn is not its.
 *     A CPU that stands still alone may be at something of ours in the kernel, so that counts.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/bench_stubs.h"
#include "sys/clock.h"

enum { LONG_US = 5000, WAKE_US = 500, LATE_US = 1000, CPUS_MOST = 64 };

/* ---- (2) ---- */

struct late { /* by the wall clock */
    int64_t from, to;
};
struct lates {
    VEC(struct late);
};

static struct {
    pthread_mutex_t lock;
    struct lates lates[CPUS_MOST];
    unsigned cpus; /* 0: none is watched */
} watch = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void *watch_cpu(void *arg)
{
    struct lates *lates = arg;
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    for (;;) {
        at.tv_nsec += WAKE_US * 1000;
        if (at.tv_nsec >= 1000000000) {
            at.tv_nsec -= 1000000000;
            at.tv_sec++;
        }
        int64_t due = (int64_t)at.tv_sec * 1000000 + at.tv_nsec / 1000;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
        clock_gettime(CLOCK_MONOTONIC, &at);
        int64_t late = (int64_t)at.tv_sec * 1000000 + at.tv_nsec / 1000 - due;
        if (late < LATE_US)
            continue;
        int64_t now = clock_wall_us();
        pthread_mutex_lock(&watch.lock);
        vec_push(lates, (struct late){ now - late, now });
        pthread_mutex_unlock(&watch.lock);
    }
    return NULL;
}

void stub_watch_start(void)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    pthread_t thread;

    for (long i = 0; i < MIN(cpus, CPUS_MOST); i++) {
        struct sched_param param = { .sched_priority = sched_get_priority_max(SCHED_FIFO) };
        pthread_attr_t attr;
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET((size_t)i, &set);
        pthread_attr_init(&attr);
        pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
        pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
        pthread_attr_setschedparam(&attr, &param);
        pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
        int rc = pthread_create(&thread, &attr, watch_cpu, &watch.lates[i]);
        pthread_attr_destroy(&attr);
        if (rc) {
            fprintf(stderr,
                    "bench-stubs: no real-time thread: %s; a machine that stands still "
                    "is not noticed\n",
                    strerror(rc));
            return;
        }
    }
    watch.cpus = (unsigned)MIN(cpus, CPUS_MOST);
}

/* What of a piece of time lies in those of one CPU, and of the next CPUs too. */
static int64_t stopped_in(struct late piece, unsigned cpu)
{
    int64_t sum = 0;

    if (cpu == watch.cpus)
        return piece.to - piece.from;
    vec_each (struct late, late, &watch.lates[cpu]) {
        struct late both = { MAX(piece.from, late->from), MIN(piece.to, late->to) };
        if (both.from < both.to)
            sum += stopped_in(both, cpu + 1);
    }
    return sum;
}

static int64_t stopped_us(int64_t from, int64_t to)
{
    pthread_mutex_lock(&watch.lock);
    int64_t sum = watch.cpus ? stopped_in((struct late){ from, to }, 0) : 0;
    pthread_mutex_unlock(&watch.lock);
    return sum;
}

/* ---- (1) ---- */

static struct {
    int fd;
    struct str rest; /* of the line that was not whole */
    int64_t began_us;
} ctl_log = { .fd = -1 };

static uint64_t number_after(const char *line, const char *name)
{
    const char *at = strstr(line, name);

    return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

static int64_t time_of(const char *line)
{
    struct tm tm = { .tm_isdst = -1 };
    const char *rest = strptime(line, "%Y-%m-%dT%H:%M:%S", &tm);

    return rest && *rest == '.' ? (int64_t)mktime(&tm) * 1000000 + strtol(rest + 1, NULL, 10) : 0;
}

static void read_line(const char *line, struct stub_turns *out)
{
    if (!strstr(line, " loop.slow "))
        return;
    int64_t end = time_of(line), us = (int64_t)number_after(line, " us=");
    int64_t cpu = (int64_t)number_after(line, " cpu_us=") - stopped_us(end - us, end);
    out->over += cpu > LONG_US;
    out->longest_us = MAX(out->longest_us, cpu);
}

static void read_log(const struct bench *bench, struct stub_turns *out)
{
    char bytes[65536];
    ssize_t got;

    if (ctl_log.fd < 0) {
        char *path = mem_printf("%s/log", bench->dir);
        ctl_log.fd = open(path, O_RDONLY | O_CLOEXEC);
        free(path);
    }
    while ((got = read(ctl_log.fd, bytes, sizeof(bytes))) > 0) {
        str_add_len(&ctl_log.rest, bytes, (size_t)got);
        char *line = ctl_log.rest.data, *end;
        while ((end = strchr(line, '\n'))) {
            *end = '\0';
            read_line(line, out);
            line = end + 1;
        }
        struct str rest = { 0 };
        str_add(&rest, line);
        str_done(&ctl_log.rest);
        ctl_log.rest = rest;
    }
}

void stub_turns_begin(struct bench *bench, bool running)
{
    struct stub_turns before;

    if (running)
        stub_ask_diag(bench, true);
    read_log(bench, &before);
    ctl_log.began_us = clock_wall_us();
}

struct stub_turns stub_turns_end(struct bench *bench, bool running)
{
    struct stub_turns out = { 0 };
    int64_t longest = 0;

    if (running) {
        stub_ask_diag(bench, true);
        longest = (int64_t)bench->diag.turn_cpu_us_max;
    }
    int64_t now = clock_wall_us();
    read_log(bench, &out);
    out.stopped_us = stopped_us(ctl_log.began_us, now);
    ctl_log.began_us = now;
    /* What is not in the log took less by the clock. */
    out.longest_us =
        longest <= LONG_US ? MAX(longest, MIN(out.longest_us, LONG_US)) : out.longest_us;
    return out;
}
