/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_floor.c - what this machine allows: the floors that the figures of a cluster stand beside
 *
 *     bench-floor sync DIR BYTES SECONDS   appends of BYTES with fdatasync each; batches of 1 and 64
 *     bench-floor spawn SECONDS [PROGRAM]  processes of PROGRAM, two at a time; without it bash
 *                                          scripts of one `true`
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

extern char **environ;

static double records_per_s(const char *path, size_t bytes, int batch, double seconds)
{
    char *data = calloc((size_t)batch, bytes);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    double begin = bench_ms(), end = begin + seconds * 1e3, now;
    long count = 0;

    while ((now = bench_ms()) < end) {
        if (write(fd, data, bytes * (size_t)batch) < 0 || fdatasync(fd) < 0)
            break;
        count += batch;
    }
    close(fd);
    unlink(path);
    free(data);
    return (double)count / (now - begin) * 1e3;
}

static int sync_floor(const char *dir, size_t bytes, double seconds)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s/bench-floor.tmp", dir);
    printf("floor.sync.1 %.0f per_s\n", records_per_s(path, bytes, 1, seconds));
    printf("floor.sync.64 %.0f per_s\n", records_per_s(path, bytes, 64, seconds));
    return 0;
}

static int spawn_floor(double seconds, char *program)
{
    char script[] = "/tmp/bench-floor-XXXXXX";
    int fd = mkstemp(script), running = 0;
    char *const argv[] = { program ? program : script, NULL };
    double begin = bench_ms(), end = begin + seconds * 1e3;
    long count = 0;

    if (fd < 0 || write(fd, "#!/bin/bash\ntrue\n", 17) != 17)
        return 1;
    fchmod(fd, 0700);
    close(fd);
    while (bench_ms() < end || running) {
        pid_t pid;
        while (running < 2 && bench_ms() < end &&
               posix_spawn(&pid, argv[0], NULL, NULL, argv, environ) == 0)
            running++;
        if (wait(NULL) < 0)
            break;
        running--;
        count++;
    }
    unlink(script);
    printf("floor.spawn %.0f per_s\n", (double)count / (bench_ms() - begin) * 1e3);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "sync") == 0)
        return sync_floor(argv[2], (size_t)atol(argv[3]), atof(argv[4]));
    if ((argc == 3 || argc == 4) && strcmp(argv[1], "spawn") == 0)
        return spawn_floor(atof(argv[2]), argv[3]);
    fprintf(stderr, "usage: bench-floor sync DIR BYTES SECONDS | spawn SECONDS [PROGRAM]\n");
    return 2;
}
