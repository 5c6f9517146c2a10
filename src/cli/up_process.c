/* SPDX-License-Identifier: Apache-2.0 */
/*
 * up_process.c - the processes of a private cluster: start, find, end
 *
 * (1) A pid file holds "PID STARTTIME". The start time (field 22 of /proc/PID/stat) tells our
 *     process from another one that got the same number later, so nothing foreign is ever ended.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/up.h"
#include "sys/files.h"
#include "sys/spawn.h"

extern char **environ;

static bool start_time(int pid, unsigned long long *out)
{
    char path[64];
    struct str text = { 0 };
    struct err err;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    bool good = file_read(path, 4096, &text, &err) == 0;
    const char *at = good ? strrchr(str_text(&text), ')') : NULL;
    char state = '?';
    good = at && sscanf(at,
                        ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
                        "%*d %llu",
                        &state, out) == 2;
    str_done(&text);
    return good && state != 'Z' && state != 'X';
}

static bool file_alive(const char *path, int *pid)
{
    struct str text = { 0 };
    struct err err;
    unsigned long long then = 0, now = 0;
    int number = 0;
    bool alive = file_read(path, 256, &text, &err) == 0 &&
                 sscanf(str_text(&text), "%d %llu", &number, &then) == 2 && number > 1 &&
                 start_time(number, &now) && now == then; /* (1) */

    str_done(&text);
    if (alive && pid)
        *pid = number;
    return alive;
}

bool up_alive(const char *dir, const char *name, int *pid)
{
    CLEANUP(freep) char *path = mem_printf("%s/run/%s.pid", dir, name);

    return file_alive(path, pid);
}

/* The directories where our daemons are: beside this program, ../sbin, and the build tree. */
static char *find_program(const char *program, struct err *err)
{
    static const char *const places[] = { "%s/%s", "%s/../sbin/%s", "%s/../%s/%s" };
    char self[4096];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (len < 0) {
        err_errno(err, errno, "cannot find this program's own path");
        return NULL;
    }
    self[len] = '\0';
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        char *path = i < 2 ? mem_printf(i ? "%s/../sbin/%s" : "%s/%s", self, program)
                           : mem_printf("%s/../%s/%s", self, program, program);
        if (access(path, X_OK) == 0)
            return path;
        free(path);
    }
    err_set(err, ERR_NOT_FOUND, "'%s' is neither in %s nor in ../sbin beside it", program, self);
    return NULL;
}

/* Our environment without what names another cluster. */
static char **clean_env(void)
{
    size_t count = 0, kept = 0;

    while (environ[count])
        count++;
    char **env = NEW_ARRAY(char *, count + 1);
    for (size_t i = 0; i < count; i++) {
        if (!str_starts(environ[i], "SPUR_CONF=") &&
            !str_starts(environ[i], "SPUR_CONTROLLER_ADDR=") &&
            !str_starts(environ[i], "SPUR_ACCOUNTING_ADDR="))
            env[kept++] = environ[i];
    }
    return env;
}

int up_start(const char *dir, const char *name, const char *program, char *const *argv,
             struct err *err)
{
    return up_start_as(dir, name, program, argv, NULL, -1, err);
}

/*
 * Another user may not be able to go where the program and the cluster's directory are, below somebody's home: it
 * gets both as descriptors.
 */
int up_start_as(const char *dir, const char *name, const char *program, char *const *argv,
                const struct spawn_user *user, int dir_fd, struct err *err)
{
    CLEANUP(freep) char *path = find_program(program, err);
    CLEANUP(freep) char *log = mem_printf("%s/log/%s.log", dir, name);
    CLEANUP(freep) char *pid_path = mem_printf("%s/run/%s.pid", dir, name);
    CLEANUP(freep) char **env = clean_env();
    CLEANUP(file_close) int out = -1;
    unsigned long long started = 0;
    pid_t pid = 0;
    char text[64];

    if (!path)
        return -(int)err->code;
    out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (out < 0)
        return err_errno(err, errno, "cannot write '%s'", log);
    CLEANUP(file_close) int exe = user ? open(path, O_PATH | O_CLOEXEC) : -1;
    struct spawn_fd fds[] = { { out, 1 }, { out, 2 }, { dir_fd, 8 }, { exe, 9 } };
    size_t fd_count = dir_fd < 0 ? 2 : user ? 4 : 3;
    struct spawn spec = { .path = user ? "/proc/self/fd/9" : path,
                          .user = user,
                          .argv = argv,
                          .env = env,
                          .fds = fds,
                          .fd_count = fd_count,
                          .new_session = true };
    if (spawn_start(&spec, &pid, NULL, err) < 0)
        return err_wrap(err, "cannot start %s", name);
    if (!start_time(pid, &started))
        return err_set(err, ERR_INTERNAL, "%s ended at once; see %s", name, log);
    int len = snprintf(text, sizeof(text), "%d %llu\n", (int)pid, started);
    return file_write_quick(pid_path, text, (size_t)len, 0644, err);
}

static void pause_ms(long ms)
{
    struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

    nanosleep(&t, NULL);
}

/* Names of what D/run says was started; agents first, so that they can still report. */
static void list_names(const char *dir, up_names *names)
{
    CLEANUP(freep) char *run = mem_printf("%s/run", dir);
    DIR *entries = opendir(run);
    struct dirent *entry;

    if (!entries)
        return;
    while ((entry = readdir(entries))) {
        size_t len = strlen(entry->d_name);
        if (len > 4 && strcmp(entry->d_name + len - 4, ".pid") == 0)
            vec_push(names, mem_strndup(entry->d_name, len - 4));
    }
    closedir(entries);
}

/* In the order in which they are ended: who comes later keeps what the ones before still say. */
enum rank { AGENT, CONTROLLER, ACCOUNTING, RANKS };

static enum rank rank_of(const char *name)
{
    return strcmp(name, UP_DBD) == 0 ? ACCOUNTING : str_starts(name, "ctl") ? CONTROLLER : AGENT;
}

static unsigned signal_all(const char *dir, const up_names *names, enum rank rank, int signo)
{
    unsigned count = 0;
    int pid;

    for (size_t i = 0; i < names->len; i++) {
        if (rank_of(names->items[i]) == rank && up_alive(dir, names->items[i], &pid) &&
            kill(pid, signo) == 0)
            count++;
    }
    return count;
}

static bool wait_gone(const char *dir, const up_names *names, enum rank rank, int ms)
{
    for (; ms > 0; ms -= 10) {
        bool any = false;
        for (size_t i = 0; i < names->len && !any; i++)
            any = rank_of(names->items[i]) == rank && up_alive(dir, names->items[i], NULL);
        if (!any)
            return true;
        pause_ms(10);
    }
    return false;
}

/* The etcd member of a controller outlives it; it is ended last, by its own pid file. */
static bool stop_member(const char *dir, const char *controller)
{
    CLEANUP(freep) char *path = mem_printf("%s/state/%s/etcd/etcd.pid", dir, controller);
    int pid;

    for (int ms = 0; file_alive(path, &pid); ms += 10) {
        if (ms % 5000 == 0)
            kill(pid, ms ? SIGKILL : SIGTERM);
        if (ms > 10000)
            return false;
        pause_ms(10);
    }
    return true;
}

int up_stop_all(const char *dir, unsigned *count, struct err *err)
{
    up_names names = { 0 };
    bool gone = true;

    (void)err;
    list_names(dir, &names);
    *count = 0;
    /* Agents end their jobs on QUIT (TERM would leave them running), then the others go. */
    for (enum rank rank = AGENT; rank < RANKS; rank++) {
        *count += signal_all(dir, &names, rank, rank == AGENT ? SIGQUIT : SIGTERM);
        if (!wait_gone(dir, &names, rank, 15000)) {
            signal_all(dir, &names, rank, SIGKILL);
            gone = wait_gone(dir, &names, rank, 5000) && gone;
        }
    }
    for (size_t i = 0; i < names.len; i++) {
        CLEANUP(freep) char *path = mem_printf("%s/run/%s.pid", dir, names.items[i]);
        if (rank_of(names.items[i]) == CONTROLLER)
            gone = stop_member(dir, names.items[i]) && gone;
        if (!up_alive(dir, names.items[i], NULL))
            unlink(path);
        free(names.items[i]);
    }
    vec_done(&names);
    return gone ? 0 : err_set(err, ERR_INTERNAL, "some processes of '%s' did not end", dir);
}
