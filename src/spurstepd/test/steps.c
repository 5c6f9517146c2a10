/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps.c - a zygote and tasks for tests, without spurd
 */
#include "spurstepd/test/steps.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "sys/clock.h"
#include "sys/files.h"

static void need(bool ok, const char *what)
{
    if (!ok) {
        perror(what);
        abort();
    }
}

void steps_connect(struct steps *steps)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    uint8_t hello[256];

    snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/zygote.sock", steps->dir);
    steps->zygote_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    for (int i = 0; i < 500; i++) {
        if (connect(steps->zygote_fd, (struct sockaddr *)&addr, sizeof(addr)) == 0) {
            need(recv(steps->zygote_fd, hello, sizeof(hello), 0) > 0, "hello of the zygote");
            return;
        }
        usleep(10000);
    }
    need(false, "connect to the zygote");
}

static void find_cgroup(struct steps *steps)
{
    FILE *mounts = fopen("/proc/mounts", "r");
    char line[512], path[256], type[64];

    while (mounts && fgets(line, sizeof(line), mounts)) {
        if (sscanf(line, "%*s %255s %63s", path, type) != 2 || strcmp(type, "cgroup2") != 0)
            continue;
        snprintf(steps->cgroup, sizeof(steps->cgroup), "%.80s/spur-test-%d", path, (int)getpid());
        if (mkdir(steps->cgroup, 0755) < 0)
            steps->cgroup[0] = '\0';
        break;
    }
    if (mounts)
        fclose(mounts);
}

void steps_open(struct steps *steps)
{
    const char *program = getenv("SPURSTEPD");
    char socket_path[128], log_path[128];

    *steps = (struct steps){ .zygote_fd = -1, .next_job = 1 };
    strcpy(steps->dir, "/tmp/spur-step-XXXXXX");
    need(mkdtemp(steps->dir) != NULL, "mkdtemp");
    need(chmod(steps->dir, 0777) == 0, "chmod");
    need(program != NULL, "SPURSTEPD is not set");
    find_cgroup(steps);
    snprintf(socket_path, sizeof(socket_path), "%s/zygote.sock", steps->dir);
    snprintf(log_path, sizeof(log_path), "%s/zygote.log", steps->dir);
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* what outlives a failed test comes to us */
    steps->zygote = fork();
    if (steps->zygote == 0) {
        /* Not our own output: whoever reads that to its end would wait for every supervisor. */
        int log = open(log_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
        dup2(log, STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
        close(log);
        execl(program, "spurstepd", "--zygote", socket_path, "--idle", "2", NULL);
        _exit(127);
    }
    steps_connect(steps);
}

/* Ends every process below us. Returns how many there were. */
static int end_leftovers(void)
{
    int ended = 0;

    for (bool again = true; again;) {
        DIR *dir = opendir("/proc");
        struct dirent *item;
        again = false;
        while (dir && (item = readdir(dir))) {
            char path[300], line[512];
            int pid = atoi(item->d_name), parent = 0;
            snprintf(path, sizeof(path), "/proc/%s/stat", item->d_name);
            FILE *stat = pid > 0 ? fopen(path, "r") : NULL;
            if (stat && fgets(line, sizeof(line), stat) && strrchr(line, ')'))
                sscanf(strrchr(line, ')'), ") %*c %d", &parent);
            if (stat)
                fclose(stat);
            if (parent != getpid())
                continue;
            again = true;
            ended++;
            kill(pid, SIGKILL);
            waitpid(pid, NULL, 0);
        }
        if (dir)
            closedir(dir);
    }
    return ended;
}

void steps_close(struct steps *steps)
{
    ZygoteRequest quit = ZYGOTE_REQUEST__INIT;
    uint8_t bytes[16];

    quit.has_quit = quit.quit = true;
    send(steps->zygote_fd, bytes, zygote_request__pack(&quit, bytes), MSG_NOSIGNAL);
    close(steps->zygote_fd);
    waitpid(steps->zygote, NULL, 0);
    char path[128], *log;
    snprintf(path, sizeof(path), "%s/zygote.log", steps->dir);
    log = steps_read(path);
    fputs(log, stderr);
    free(log);
    int left = 0;
    for (int i = 0; i < 500 && waitpid(-1, NULL, WNOHANG) >= 0; i++)
        usleep(10000); /* supervisors that are about to exit */
    left = end_leftovers();
    if (steps->cgroup[0])
        need(rmdir(steps->cgroup) == 0, "a cgroup was left behind");
    file_remove_tree(steps->dir, NULL);
    if (left)
        fprintf(stderr, "%d processes were left behind\n", left);
}

void steps_set(char **field, const char *text)
{
    free(*field);
    *field = strdup(text);
}

StepTask *steps_task(struct steps *steps, const char *script)
{
    StepTask *task = malloc(sizeof(*task));
    char path[256];
    uint32_t job = steps->next_job++;

    step_task__init(task);
    task->id = malloc(sizeof(StepId));
    step_id__init(task->id);
    task->id->has_job_id = task->id->has_attempt = task->id->has_step = true;
    task->id->job_id = job;
    task->id->attempt = 1;
    task->id->step = 0xfffffffb;
    task->owner = malloc(sizeof(JobOwner));
    job_owner__init(task->owner);
    task->owner->has_uid = task->owner->has_gid = true;
    task->owner->uid = getuid();
    task->owner->gid = getgid();
    task->has_change_user = task->change_user = geteuid() == 0;
    task->name = strdup("batch");
    task->node = strdup("n1");
    snprintf(path, sizeof(path), "%s/%u.1", steps->dir, job);
    task->dir = strdup(path);
    snprintf(path, sizeof(path), "%s/%u.1.kept", steps->dir, job);
    task->keep_file = strdup(path);
    task->work_dir = strdup(steps->dir);
    snprintf(path, sizeof(path), "%s/%u.out", steps->dir, job);
    task->std_out = strdup(path);
    task->has_umask = true;
    task->umask = 022;
    task->has_script = true;
    task->script.data = (uint8_t *)strdup(script);
    task->script.len = strlen(script);
    task->n_env = 1;
    task->env = malloc(sizeof(char *));
    task->env[0] = strdup("PATH=/usr/bin:/bin");
    if (steps->cgroup[0]) {
        bool nested = job % 2; /* with and without a directory of the job */
        snprintf(path, sizeof(path), "%s/%u.1%cbatch", steps->cgroup, job, nested ? '/' : '.');
        task->cgroup = strdup(path);
        snprintf(path, sizeof(path), "%s/%u.1", steps->cgroup, job);
        task->job_cgroup = nested ? strdup(path) : NULL;
    }
    return task;
}

void steps_task_free(StepTask *task)
{
    step_task__free_unpacked(task, NULL);
}

/* Long tasks travel in a file, as spurd does it. */
int steps_launch(struct steps *steps, const StepTask *task)
{
    ZygoteRequest request = ZYGOTE_REQUEST__INIT;
    int pair[2], fds[2] = { -1, -1 };
    size_t len = step_task__get_packed_size(task);
    bool in_file = len > 100000;
    CLEANUP(freep) uint8_t *bytes = mem_new(len + 64);

    need(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0, "socketpair");
    fds[0] = pair[1];
    if (in_file) {
        request.has_in_file = request.in_file = true;
        fds[1] = memfd_create("task", MFD_CLOEXEC);
        step_task__pack(task, bytes);
        need(write(fds[1], bytes, len) == (ssize_t)len, "memfd");
    } else {
        request.launch = (StepTask *)task;
    }
    struct iovec part = { .iov_base = bytes, .iov_len = zygote_request__pack(&request, bytes) };
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof(fds))];
    } control = { 0 };
    size_t count = in_file ? 2 : 1;
    struct msghdr msg = { .msg_iov = &part,
                          .msg_iovlen = 1,
                          .msg_control = &control,
                          .msg_controllen = CMSG_SPACE(sizeof(int) * count) };
    control.head.cmsg_level = SOL_SOCKET;
    control.head.cmsg_type = SCM_RIGHTS;
    control.head.cmsg_len = CMSG_LEN(sizeof(int) * count);
    memcpy(CMSG_DATA(&control.head), fds, sizeof(int) * count);
    need(sendmsg(steps->zygote_fd, &msg, MSG_NOSIGNAL) > 0, "sendmsg");
    close(pair[1]);
    if (in_file)
        close(fds[1]);
    return pair[0];
}

void steps_order(int chan, const StepOrder *order)
{
    uint8_t bytes[256];

    need(send(chan, bytes, step_order__pack(order, bytes), MSG_NOSIGNAL) > 0, "order");
}

StepNews *steps_news(int chan, int wait_ms)
{
    struct pollfd ready = { .fd = chan, .events = POLLIN };
    uint8_t bytes[16384];

    if (poll(&ready, 1, wait_ms) <= 0)
        return NULL;
    ssize_t len = recv(chan, bytes, sizeof(bytes), 0);
    return len > 0 ? step_news__unpack(NULL, (size_t)len, bytes) : NULL;
}

StepNews *steps_wait_end(int chan, int wait_ms)
{
    int64_t until = clock_mono_us() + wait_ms * INT64_C(1000);
    StepNews *news;

    while ((news = steps_news(chan, (int)((until - clock_mono_us()) / 1000)))) {
        if (news->ended || news->already)
            return news;
        step_news__free_unpacked(news, NULL);
    }
    return NULL;
}

StepNews *steps_finish(struct steps *steps, const StepTask *task, int wait_ms)
{
    int chan = steps_launch(steps, task);
    StepNews *news = steps_wait_end(chan, wait_ms);
    uint8_t byte;

    if (news && news->ended)
        need(recv(chan, &byte, 1, 0) == 0, "end of the channel"); /* the supervisor has exited */
    close(chan);
    return news;
}

char *steps_read(const char *path)
{
    struct str text = { 0 };

    file_read(path, LIMIT_SCRIPT_BYTES, &text, NULL);
    return str_take(&text);
}

char *steps_output(struct steps *steps, const StepTask *task)
{
    (void)steps;
    return steps_read(task->std_out);
}
