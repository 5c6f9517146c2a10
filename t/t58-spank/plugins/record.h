/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - what the test plugins write down: callbacks, identities, items
 *
 * Lines go to the file that the first argument of the plugin names (file=PATH), which everybody may write to:
 *
 *     CALLBACK id CONTEXT REMOTE EUID UID EGID
 *     CALLBACK ITEM VALUE        or   CALLBACK ITEM !ERROR
 */
#ifndef T58_RECORD_H
#define T58_RECORD_H

#include <fcntl.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char record_path[512];

static void note(const char *callback, const char *format, ...)
{
    char line[2048];
    va_list args;
    int len = snprintf(line, sizeof(line), "%s ", callback);
    int fd = open(record_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);

    va_start(args, format);
    len += vsnprintf(line + len, sizeof(line) - (size_t)len - 1, format, args);
    va_end(args);
    line[len++] = '\n';
    if (fd < 0 || write(fd, line, (size_t)len) != len)
        slurm_error("cannot record in %s", record_path);
    if (fd >= 0)
        close(fd);
}

static void begin(spank_t spank, const char *callback, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "file=", 5) == 0)
            snprintf(record_path, sizeof(record_path), "%s", argv[i] + 5);
    }
    note(callback, "id %d %d %u %u %u", (int)spank_context(), spank_remote(spank),
         (unsigned)geteuid(), (unsigned)getuid(), (unsigned)getegid());
}

/* One item by its type; `name` is that of slurm/spank.h. */
#define GET(type, format, item)                                     \
    do {                                                            \
        type value = 0;                                             \
        int code = (int)spank_get_item(spank, item, &value);        \
        if (code)                                                   \
            note(callback, #item " !%d", code);                     \
        else                                                        \
            note(callback, #item " " format, value);                \
    } while (0)

#define LOOK_UP(type, item, from)                                   \
    do {                                                            \
        uint32_t value = 0;                                         \
        int code = (int)spank_get_item(spank, item, (type)from, &value); \
        if (code)                                                   \
            note(callback, #item " !%d", code);                     \
        else                                                        \
            note(callback, #item " %u", value);                     \
    } while (0)

static void record_lists(spank_t spank, const char *callback)
{
    char **list = NULL;
    gid_t *gids = NULL;
    int count = 0;

    int code = (int)spank_get_item(spank, S_JOB_ARGV, &count, &list);
    if (code)
        note(callback, "S_JOB_ARGV !%d", code);
    else
        note(callback, "S_JOB_ARGV %d %s %s", count, list[0], list[count] ? "open" : "ended");
    code = (int)spank_get_item(spank, S_JOB_ENV, &list);
    for (count = 0; !code && list[count]; count++)
        ;
    if (code)
        note(callback, "S_JOB_ENV !%d", code);
    else
        note(callback, "S_JOB_ENV %s", count > 5 ? "many" : "few");
    code = (int)spank_get_item(spank, S_JOB_SUPPLEMENTARY_GIDS, &gids, &count);
    if (code)
        note(callback, "S_JOB_SUPPLEMENTARY_GIDS !%d", code);
    else
        note(callback, "S_JOB_SUPPLEMENTARY_GIDS %d", count);
}

static void record_all(spank_t spank, const char *callback)
{
    pid_t pid = 0;

    GET(uid_t, "%u", S_JOB_UID);
    GET(gid_t, "%u", S_JOB_GID);
    GET(uint32_t, "%u", S_JOB_ID);
    GET(uint32_t, "%u", S_JOB_STEPID);
    GET(uint32_t, "%u", S_JOB_NNODES);
    GET(uint32_t, "%u", S_JOB_NODEID);
    GET(uint32_t, "%u", S_JOB_LOCAL_TASK_COUNT);
    GET(uint32_t, "%u", S_JOB_TOTAL_TASK_COUNT);
    GET(uint16_t, "%u", S_JOB_NCPUS);
    record_lists(spank, callback);
    GET(int, "%d", S_TASK_ID);
    GET(uint32_t, "%u", S_TASK_GLOBAL_ID);
    GET(int, "%d", S_TASK_EXIT_STATUS);
    int code = (int)spank_get_item(spank, S_TASK_PID, &pid);
    if (code)
        note(callback, "S_TASK_PID !%d", code);
    else
        note(callback, "S_TASK_PID %s", pid == getpid() ? "self" : pid > 1 ? "other" : "none");
    LOOK_UP(pid_t, S_JOB_PID_TO_GLOBAL_ID, pid);
    LOOK_UP(pid_t, S_JOB_PID_TO_LOCAL_ID, pid);
    LOOK_UP(uint32_t, S_JOB_LOCAL_TO_GLOBAL_ID, 0);
    LOOK_UP(uint32_t, S_JOB_GLOBAL_TO_LOCAL_ID, 1);
    GET(char *, "%s", S_SLURM_VERSION);
    GET(char *, "%s", S_SLURM_VERSION_MAJOR);
    GET(char *, "%s", S_SLURM_VERSION_MINOR);
    GET(char *, "%s", S_SLURM_VERSION_MICRO);
    GET(uint32_t, "%u", S_STEP_CPUS_PER_TASK);
    GET(char *, "%s", S_JOB_ALLOC_CORES);
    GET(uint64_t, "%ju", S_JOB_ALLOC_MEM);
    GET(char *, "%s", S_STEP_ALLOC_CORES);
    GET(uint64_t, "%ju", S_STEP_ALLOC_MEM);
    GET(uint32_t, "%u", S_SLURM_RESTART_COUNT);
    GET(uint32_t, "%u", S_JOB_ARRAY_ID);
    GET(uint32_t, "%u", S_JOB_ARRAY_TASK_ID);
}

/* A callback that records itself and every item, in one context alone. */
#define RECORDED(callback, context)                            \
    int slurm_spank_##callback(spank_t spank, int ac, char *av[]) \
    {                                                          \
        if (spank_context() != (context))                      \
            return 0;                                          \
        begin(spank, #callback, ac, av);                       \
        record_all(spank, #callback);                          \
        return 0;                                              \
    }

#endif
