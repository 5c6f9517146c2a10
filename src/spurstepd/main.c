/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - spurstepd: supervises one step of a job
 *
 * Started by spurd only, and by itself before a task that has a prolog. A person may ask for --help and
 * --version.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "spurstepd/prolog.h"
#include "spurstepd/zygote.h"

enum { IDLE_DEFAULT_S = 10, IDLE_MAX_S = 86400 };

static int usage(FILE *to, int status)
{
    fputs("usage: spurstepd --zygote SOCKET [--idle SECONDS]\n"
          "       spurstepd --version | --help\n"
          "Supervises the steps of jobs; spurd starts it.\n"
          "  --zygote SOCKET  listen there and fork a supervisor for each step asked for\n"
          "  --idle SECONDS   end after so long without a client (10)\n",
          to);
    return status;
}

/* 0, 1 and 2 are always open, so that no file of a job becomes one of them by accident. */
static void keep_standard_fds(void)
{
    int fd;

    while ((fd = open("/dev/null", O_RDWR)) >= 0 && fd < 3)
        ;
    if (fd >= 3)
        close(fd);
}

int main(int argc, char **argv)
{
    const char *path = NULL;
    int64_t idle_s = IDLE_DEFAULT_S;
    struct err err = { 0 };

    if (argc > 1 && str_eq(argv[1], "--task"))
        return prolog_main(argc - 2, argv + 2);
    for (int i = 1; i < argc; i++) {
        if (str_eq(argv[i], "--help") || str_eq(argv[i], "-h"))
            return usage(stdout, 0);
        if (str_eq(argv[i], "--version") || str_eq(argv[i], "-V"))
            return printf("spur %s\n", SPUR_VERSION) < 0;
        if (str_eq(argv[i], "--zygote") && i + 1 < argc)
            path = argv[++i];
        else if (str_eq(argv[i], "--idle") && i + 1 < argc &&
                 str_to_i64(argv[i + 1], 1, IDLE_MAX_S, &idle_s))
            i++;
        else
            return usage(stderr, 2);
    }
    if (!path)
        return usage(stderr, 2);
    keep_standard_fds();
    if (chdir("/") < 0)
        return 1;
    CLEANUP(freep) char *own_path = mem_strdup(path);
    char *last = argv[argc - 1];
    size_t room = (size_t)(last + strlen(last) - argv[0]) + 1; /* the arguments are one block */
    if (zygote_run(own_path, (int)idle_s, argv[0], room, &err) < 0) {
        fprintf(stderr, "spurstepd: %s\n", err.text);
        return 1;
    }
    return 0;
}
