/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshots.c - a forked child writes the state while we go on
 *
 * The child sees the state as it was at the fork. It writes and syncs the file and ends; only then
 * is the log told, which verifies it before anything older is removed. A child that fails costs
 * nothing but the try.
 *
 * The child compares all records with their hashes first: no snapshot is written of damaged ones. While others have
 * not confirmed the newest snapshot, or differ from us, there is no other.
 *
 * A clean end writes one more, so that the next start, which may be that of another build, replays nothing.
 * It is bounded: what a start finds without it, the last snapshot and the log, is as good.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log/journal.h"
#include "log/snapshot.h"
#include "spurctld/serve.h"
#include "sys/clock.h"
#include "sys/log.h"

#define VERIFY_US INT64_C(60000000) /* the log may take that long to read one back */
#define END_US    INT64_C(10000000) /* who ends us waits longer: spur down 15 s, systemd 90 s */
#define LOOK_US   5000

enum { CHILD_DAMAGED = 3 };

struct snapshot_child {
    pid_t pid;
    struct log_point point;
    int64_t began_us;
};

static int write_piece(void *to, const void *bytes, size_t len)
{
    struct err err;

    return snapshot_write(to, bytes, len, &err);
}

/*
 * In the child. It holds nothing of the parent's but its memory, so that a start need not wait for it to
 * end, and it ends with the parent.
 */
static void be_alone(pid_t parent)
{
    static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGCHLD };

    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        signal(signals[i], SIG_DFL); /* libuv's would write to the parent's loop */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    close_range(STDERR_FILENO + 1, ~0U, 0);
}

static void write_state(struct server *server, struct log_point point)
{
    struct err err = { 0 };
    struct snapshot_writer *writer = NULL;
    int code = journal_sync_files(server->journal, &err);

    if (code == 0 && core_verify(ctl_state(server->ctl), &err) < 0)
        _exit(CHILD_DAMAGED);
    if (code == 0)
        code = snapshot_create(log_dir(ctl_log(server->ctl)), point, &writer, &err);
    if (code == 0 && (code = core_snapshot_write(ctl_state(server->ctl), write_piece, writer)) < 0)
        snapshot_abandon(writer);
    else if (code == 0)
        code = snapshot_finish(writer, &err);
    _exit(code < 0);
}

static pid_t fork_writer(struct server *server, struct log_point point)
{
    pid_t parent = getpid(), pid = fork();

    if (pid == 0) {
        be_alone(parent);
        write_state(server, point);
    }
    return pid;
}

/* One that others have confirmed stays, whatever becomes of the next. */
static bool may_take(const struct server *server, const struct log_status *status)
{
    return !ctl_is_in_doubt(server->ctl) && ctl_is_confirmed(server->ctl, status->snapshot);
}

void server_snapshot_maybe(struct server *server)
{
    struct log_status status;

    if (server->snapshot || !server->ctl || !log_wants_snapshot(ctl_log(server->ctl)))
        return;
    log_status(ctl_log(server->ctl), &status);
    if (!may_take(server, &status))
        return;
    if (server->snapshot_index > status.snapshot && clock_mono_us() < server->snapshot_after_us)
        return; /* the last one is being read back */
    if (!server_may_fork(server))
        return;
    if (!server_journal_mark(server))
        return; /* it must be durable up to the snapshot, and the disk is full */
    struct snapshot_child *child = NEW(struct snapshot_child);
    child->point = log_point(ctl_log(server->ctl));
    child->began_us = clock_mono_us();
    child->pid = fork_writer(server, child->point);
    if (child->pid < 0) {
        log_warn("snapshot.fork", "failed");
        free(child);
        return;
    }
    server->snapshot = child;
    log_info("snapshot.begin", "index=%llu fork_us=%lld", (unsigned long long)child->point.index,
             (long long)(clock_mono_us() - child->began_us));
}

void server_snapshot_child(struct server *server)
{
    struct snapshot_child *child = server->snapshot;
    struct err err = { 0 };
    int status = 0;

    if (!child || waitpid(child->pid, &status, WNOHANG) != child->pid)
        return;
    if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_DAMAGED) {
        err_set(&err, ERR_CORRUPT, "a record is damaged: no snapshot of index %llu was written",
                (unsigned long long)child->point.index);
        ctl_is_damaged(server->ctl, &err);
    } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        log_warn("snapshot.failed", "index=%llu status=%d", (unsigned long long)child->point.index,
                 status);
    else if (log_snapshot_taken(ctl_log(server->ctl), child->point, &err) < 0)
        log_warn("snapshot.refused", "index=%llu text=%s", (unsigned long long)child->point.index,
                 err.text);
    else {
        journal_synced(server->journal, child->point.index);
        server->snapshot_index = child->point.index;
        server->snapshot_after_us = clock_mono_us() + VERIFY_US;
        log_info("snapshot.taken", "index=%llu took_us=%lld",
                 (unsigned long long)child->point.index,
                 (long long)(clock_mono_us() - child->began_us));
    }
    free(child);
    server->snapshot = NULL;
    server_huge_pages_mend(server);
}

void server_snapshot_abandon(struct server *server)
{
    if (!server->snapshot)
        return;
    kill(server->snapshot->pid, SIGKILL);
    waitpid(server->snapshot->pid, NULL, 0);
    free(TAKE(server->snapshot));
}

/* Waits for it, but not for long; one that cannot be ended is left. */
static bool ends_well(pid_t pid, int64_t until_us)
{
    pid_t got;
    int status = 0;

    while ((got = waitpid(pid, &status, WNOHANG)) == 0 && clock_mono_us() < until_us)
        usleep(LOOK_US);
    if (got == 0)
        kill(pid, SIGKILL);
    return got == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void server_snapshot_end(struct server *server)
{
    struct log *log = ctl_log(server->ctl);
    int64_t began = clock_mono_us();

    server_snapshot_abandon(server);
    log_stop(log); /* what is on its way to the disk is still applied */
    struct log_status status;
    log_status(log, &status);
    if (!may_take(server, &status) || !log_is_kept(log) || status.last <= status.snapshot ||
        !server_journal_mark(server))
        return;
    struct log_point point = log_point(log);
    pid_t pid = fork_writer(server, point);
    if (pid > 0 && ends_well(pid, began + END_US))
        log_info("snapshot.end", "index=%llu took_us=%lld", (unsigned long long)point.index,
                 (long long)(clock_mono_us() - began));
    else
        log_warn("snapshot.end", "index=%llu given up after_us=%lld: the next start reads the log",
                 (unsigned long long)point.index, (long long)(clock_mono_us() - began));
}

/* After the log was closed. A lone controller has nobody to confirm any, and keeps them. */
void server_reload_snapshots(struct server *server)
{
    uint64_t indexes[SNAPSHOT_MOST];
    size_t count = 0;
    struct err err = { 0 };

    if (snapshot_list(server->state_dir, indexes, SNAPSHOT_MOST, &count, &err) < 0)
        log_warn("snapshot.list", "text=%s", err.text);
    for (size_t i = 0; i < count; i++) {
        if (indexes[i] <= server->reload_agreed)
            continue;
        log_warn("snapshot.removed", "index=%llu nobody has confirmed it",
                 (unsigned long long)indexes[i]);
        snapshot_remove(server->state_dir, indexes[i]);
    }
}
