/* SPDX-License-Identifier: Apache-2.0 */
/*
 * member.c - the etcd member that a controller runs
 */
#include "log/member.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/vec.h"
#include "sys/clock.h"
#include "sys/files.h"
#include "sys/log.h"

enum {
    PAUSE_MIN_MS = 200,
    PAUSE_MAX_MS = 10000,
    WELL_MS = 10000, /* ran that long: the next pause is short again */
    END_WAIT_MS = 5000,
    LAST_BYTES = 2048,
};

struct member {
    struct member_options o;
    char *binary, *dir, *data, *name, *client_url, *peer_url, *cluster, *token;
    char *cert, *key, *ca, *listen_client, *listen_peer;
    pid_t pid;
    int pidfd;
    bool ours; /* our child: to be waited for */
    uv_poll_t *poll;
    uv_timer_t *timer;
    unsigned pause_ms;
    int64_t started_ms;
};

static void begin(struct member *member);

static void free_handle(uv_handle_t *handle)
{
    free(handle);
}

static void tell(struct member *member, enum member_state state, const char *why)
{
    static const char *const words[] = { "etcd.started", "etcd.adopted", "etcd.ended" };

    log_at(state == MEMBER_ENDED ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, words[state],
           "name=%s pid=%ld %s", member->name, (long)member->pid, why);
    if (member->o.state)
        member->o.state(member->o.ctx, state, why);
}

/* When the process began, in ticks since boot: with its id, it names a process for good. */
static bool start_time(pid_t pid, uint64_t *out)
{
    CLEANUP(str_done) struct str text = { 0 };
    char path[64];
    const char *at;

    snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    if (file_read(path, 4096, &text, NULL) < 0 || !(at = strrchr(str_text(&text), ')')))
        return false;
    /* After the name: the state is field 3, the start time field 22. */
    for (int field = 2; field < 22 && at; field++)
        at = strchr(at + 1, ' ');
    return at && sscanf(at, " %lu", (unsigned long *)out) == 1;
}

static bool command_names(pid_t pid, const char *data)
{
    CLEANUP(str_done) struct str text = { 0 };
    char path[64];

    snprintf(path, sizeof(path), "/proc/%ld/cmdline", (long)pid);
    if (file_read(path, 65536, &text, NULL) < 0)
        return false;
    for (size_t at = 0; at < text.len; at += strlen(text.data + at) + 1) {
        if (str_eq(text.data + at, data))
            return true;
    }
    return false;
}

/* ---- watching it ---- */

static void stop_watching(struct member *member)
{
    if (member->poll) {
        uv_poll_stop(member->poll);
        uv_close((uv_handle_t *)TAKE(member->poll), free_handle);
    }
    file_close(&member->pidfd);
}

static void on_pause_over(uv_timer_t *timer)
{
    begin(timer->data);
}

static void start_later(struct member *member)
{
    if (clock_mono_us() / 1000 - member->started_ms > WELL_MS)
        member->pause_ms = 0;
    member->pause_ms =
        MIN(MAX(member->pause_ms * 2, (unsigned)PAUSE_MIN_MS), (unsigned)PAUSE_MAX_MS);
    uv_timer_start(member->timer, on_pause_over, member->pause_ms, 0);
}

static void on_end(uv_poll_t *poll, int status, int events)
{
    struct member *member = poll->data;
    CLEANUP(str_done) struct str why = { 0 };
    int code = 0;

    (void)status, (void)events;
    if (member->ours && waitpid(member->pid, &code, WNOHANG) == member->pid)
        spawn_describe(code, &why);
    stop_watching(member);
    CLEANUP(str_done) struct str last = { 0 };
    member_last_line(member, &last);
    str_addf(&why, "; etcd says: %s", str_text(&last));
    tell(member, MEMBER_ENDED, str_text(&why));
    member->pid = 0;
    start_later(member);
}

static int watch(struct member *member, struct err *err)
{
    member->poll = NEW(uv_poll_t);
    if (uv_poll_init(member->o.uv, member->poll, member->pidfd) < 0) {
        free(TAKE(member->poll));
        return err_set(err, ERR_IO, "cannot watch process %ld", (long)member->pid);
    }
    member->poll->data = member;
    uv_unref((uv_handle_t *)member->poll);
    uv_poll_start(member->poll, UV_READABLE, on_end);
    return 0;
}

/* ---- starting it ---- */

typedef VEC(char *) words;

static void add(words *list, const char *flag, const char *value)
{
    if (!value)
        return;
    vec_push(list, mem_strdup(flag));
    vec_push(list, mem_strdup(value));
}

static void add_tls(words *list, const struct member *member)
{
    if (!member->cert)
        return;
    if (str_starts(member->client_url, "https:")) {
        add(list, "--cert-file", member->cert);
        add(list, "--key-file", member->key);
        add(list, "--trusted-ca-file", member->ca);
        vec_push(list, mem_strdup("--client-cert-auth"));
    }
    if (str_starts(member->peer_url, "https:")) {
        add(list, "--peer-cert-file", member->cert);
        add(list, "--peer-key-file", member->key);
        add(list, "--peer-trusted-ca-file", member->ca);
        vec_push(list, mem_strdup("--peer-client-cert-auth"));
    }
}

static void add_flags(words *list, const struct member *member)
{
    const struct member_options *o = &member->o;
    char heartbeat[16], election[16];

    snprintf(heartbeat, sizeof(heartbeat), "%u", o->heartbeat_ms ? o->heartbeat_ms : 50);
    snprintf(election, sizeof(election), "%u", o->election_ms ? o->election_ms : 300);
    vec_push(list, mem_strdup(member->binary));
    add(list, "--name", member->name);
    add(list, "--data-dir", member->data);
    add(list, "--listen-client-urls", member->listen_client);
    add(list, "--advertise-client-urls", member->client_url);
    add(list, "--listen-peer-urls", member->listen_peer);
    add(list, "--initial-advertise-peer-urls", member->peer_url);
    add(list, "--initial-cluster", member->cluster);
    add(list, "--initial-cluster-token", member->token);
    add(list, "--initial-cluster-state", o->existing ? "existing" : "new");
    add(list, "--heartbeat-interval", heartbeat);
    add(list, "--election-timeout", election);
    add(list, "--quota-backend-bytes", "8589934592");
    add(list, "--snapshot-count", "5000"); /* entries are large: few stay in memory */
    add(list, "--logger", "zap");
    add(list, "--log-outputs", "stderr");
    vec_push(list, mem_strdup("--pre-vote"));
    vec_push(list, mem_strdup("--experimental-initial-corrupt-check"));
    add_tls(list, member);
    vec_push(list, NULL);
}

static int open_output(const struct member *member, struct err *err)
{
    CLEANUP(freep) char *path = mem_printf("%s/etcd.log", member->dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0640);

    return fd < 0 ? err_errno(err, errno, "%s", path) : fd;
}

static void write_pid(const struct member *member)
{
    CLEANUP(freep) char *path = mem_printf("%s/etcd.pid", member->dir);
    uint64_t ticks = 0;
    char text[64];
    struct err err;

    start_time(member->pid, &ticks);
    int len =
        snprintf(text, sizeof(text), "%ld %llu\n", (long)member->pid, (unsigned long long)ticks);
    if (file_write_quick(path, text, (size_t)len, 0644, &err) < 0)
        log_error("etcd.pid", "error=%s", err.text);
}

static int spawn_member(struct member *member, struct err *err)
{
    char *env[] = { (char[]){ "PATH=/usr/bin:/bin" }, (char[]){ "GOMAXPROCS=4" }, NULL };
    CLEANUP(file_close) int output = open_output(member, err);
    words list = { 0 };

    if (output < 0)
        return output;
    add_flags(&list, member);
    struct spawn_fd fds[] = { { output, 1 }, { output, 2 } };
    struct spawn spec = {
        .path = member->binary,
        .argv = list.items,
        .env = env,
        .cwd = "/",
        .user = member->o.user,
        .fds = fds,
        .fd_count = ARRAY_LEN(fds),
        .cgroup_fd = member->o.cgroup_fd,
        .new_session = true, /* what ends us does not end it */
    };
    int rc = spawn_start(&spec, &member->pid, &member->pidfd, err);
    for (size_t i = 0; i < list.len; i++)
        free(list.items[i]);
    vec_done(&list);
    if (rc < 0)
        return rc;
    member->ours = true;
    write_pid(member);
    return watch(member, err);
}

static void begin(struct member *member)
{
    struct err err;

    member->started_ms = clock_mono_us() / 1000;
    if (spawn_member(member, &err) < 0) {
        log_error("etcd.start", "name=%s error=%s", member->name, err.text);
        start_later(member);
    } else {
        tell(member, MEMBER_STARTED, "");
    }
}

/* ---- taking over ---- */

static bool adopt(struct member *member)
{
    CLEANUP(freep) char *path = mem_printf("%s/etcd.pid", member->dir);
    CLEANUP(str_done) struct str text = { 0 };
    unsigned long long ticks;
    uint64_t found;
    long pid;

    if (file_read(path, 64, &text, NULL) < 0 ||
        sscanf(str_text(&text), "%ld %llu", &pid, &ticks) != 2 || pid <= 1)
        return false;
    /* First hold it, then look who it is: the number may be another's by now. */
    member->pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    if (member->pidfd < 0)
        return false;
    fcntl(member->pidfd, F_SETFD, FD_CLOEXEC);
    if (!start_time((pid_t)pid, &found) || found != ticks ||
        !command_names((pid_t)pid, member->data)) {
        file_close(&member->pidfd);
        return false;
    }
    member->pid = (pid_t)pid;
    member->ours = false;
    member->started_ms = clock_mono_us() / 1000;
    if (watch(member, NULL) < 0) {
        file_close(&member->pidfd);
        return false;
    }
    tell(member, MEMBER_ADOPTED, "");
    return true;
}

int member_start(const struct member_options *options, struct member **out, struct err *err)
{
    struct member *member;
    CLEANUP(freep) char *data = mem_printf("%s/data", options->dir);
    int rc = file_make_dirs(options->dir, 0700, err);

    if (rc == 0)
        rc = file_make_dirs(data, 0700, err);
    if (rc < 0)
        return rc;
    if (options->user && geteuid() == 0 &&
        (chown(options->dir, options->user->uid, options->user->gid) < 0 ||
         chown(data, options->user->uid, options->user->gid) < 0))
        return err_errno(err, errno, "chown %s", options->dir);
    member = NEW(struct member);
    member->o = *options;
    member->binary = mem_strdup(options->binary ? options->binary : "/usr/bin/etcd");
    member->dir = mem_strdup(options->dir);
    member->data = TAKE(data);
    member->name = mem_strdup(options->name);
    member->client_url = mem_strdup(options->client_url);
    member->peer_url = mem_strdup(options->peer_url);
    member->listen_client =
        mem_strdup(options->listen_client_url ? options->listen_client_url : options->client_url);
    member->listen_peer =
        mem_strdup(options->listen_peer_url ? options->listen_peer_url : options->peer_url);
    member->cluster = mem_strdup(options->cluster);
    member->token = mem_strdup(options->token);
    member->cert = mem_strdup(options->cert_path);
    member->key = mem_strdup(options->key_path);
    member->ca = mem_strdup(options->ca_path);
    member->pidfd = -1;
    member->timer = NEW(uv_timer_t);
    uv_timer_init(options->uv, member->timer);
    member->timer->data = member;
    uv_unref((uv_handle_t *)member->timer);
    if (access(member->binary, X_OK) < 0) {
        rc = err_errno(err, errno, "%s (Debian package etcd-server)", member->binary);
        member_release(member);
        return rc;
    }
    if (!adopt(member)) {
        begin(member);
    } else if (member->ca && !command_names(member->pid, member->ca)) {
        /* It trusts another authority. on_end() starts it as it is to be. */
        log_info("etcd.restart", "name=%s pid=%ld for another authority", member->name,
                 (long)member->pid);
        syscall(SYS_pidfd_send_signal, member->pidfd, SIGTERM, NULL, 0);
    }
    *out = member;
    return 0;
}

/* Lines of zap are JSON: what is said is in "msg" and "error". */
static void add_said(const char *line, const char *key, struct str *out)
{
    CLEANUP(freep) char *begin = mem_printf("\"%s\":\"", key);
    const char *at = strstr(line, begin);

    if (!at)
        return;
    at += strlen(begin);
    str_addf(out, "%s%.*s", out->len ? ": " : "", (int)strcspn(at, "\""), at);
}

void member_last_line(const struct member *member, struct str *out)
{
    CLEANUP(freep) char *path = mem_printf("%s/etcd.log", member->dir);
    char tail[LAST_BYTES + 1];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    off_t end = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    ssize_t len = end < 0 ? -1 : pread(fd, tail, LAST_BYTES, MAX(end - LAST_BYTES, (off_t)0));

    file_close(&fd);
    while (len > 0 && tail[len - 1] == '\n')
        len--;
    if (len <= 0)
        return;
    tail[len] = '\0';
    const char *line = strrchr(tail, '\n');
    line = line ? line + 1 : tail;
    add_said(line, "msg", out);
    add_said(line, "error", out);
    if (!out->len)
        str_add(out, line);
}

pid_t member_pid(const struct member *member)
{
    return member->pid;
}

void member_release(struct member *member)
{
    if (!member)
        return;
    stop_watching(member);
    uv_timer_stop(member->timer);
    uv_close((uv_handle_t *)member->timer, free_handle);
    char *texts[] = { member->binary,     member->dir,      member->data,    member->name,
                      member->client_url, member->peer_url, member->cluster, member->token,
                      member->cert,       member->key,      member->ca,      member->listen_client,
                      member->listen_peer };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        free(texts[i]);
    free(member);
}

static void signal_and_wait(struct member *member, int sig, int wait_ms)
{
    struct pollfd ended = { member->pidfd, POLLIN, 0 };

    syscall(SYS_pidfd_send_signal, member->pidfd, sig, NULL, 0);
    while (poll(&ended, 1, wait_ms) < 0 && errno == EINTR)
        ;
}

static void end_by(struct member *member, int sig)
{
    if (!member)
        return;
    CLEANUP(freep) char *path = mem_printf("%s/etcd.pid", member->dir);
    if (member->pidfd >= 0) {
        signal_and_wait(member, sig, END_WAIT_MS);
        signal_and_wait(member, SIGKILL, 1000);
        if (member->ours)
            waitpid(member->pid, NULL, WNOHANG);
    }
    unlink(path);
    member_release(member);
}

void member_end(struct member *member)
{
    end_by(member, SIGTERM);
}

void member_kill(struct member *member)
{
    end_by(member, SIGKILL);
}
