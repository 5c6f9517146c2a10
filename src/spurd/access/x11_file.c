/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x11_file.c - the file with the cookie of a forwarded display
 *
 * Below our run directory, where only we make files, readable for the job's user alone; or, where the site
 * wants that (home_xauthority), as entries in the user's own ~/.Xauthority, written by a worker with the
 * user's identity. Others who write that file (xauth) and we keep out of each other's way by the locks
 * that they use: FILE-c, made exclusively, then linked to FILE-l.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "spurd/access/x11.h"
#include "sys/files.h"
#include "sys/host.h"
#include "sys/log.h"

enum { LOCK_TRIES = 50, LOCK_WAIT_US = 100000, LOCK_STALE_S = 60 };

static void add_entries(const struct x11 *x11, struct str *out)
{
    char host[HOST_NAME_BYTES];

    if (gethostname(host, sizeof(host)) == 0) {
        host[sizeof(host) - 1] = '\0';
        x11_add_entry(out, X11_FAMILY_LOCAL, host, x11->display, x11->cookie);
    }
    x11_add_entry(out, X11_FAMILY_WILD, "", x11->display, x11->cookie);
}

int x11_write_file(struct x11 *x11, const JobOwner *owner, struct err *err)
{
    CLEANUP(str_done) struct str text = { 0 };

    x11->path =
        mem_printf("%s/x11/%u.%u.%u", x11->agent->run_dir, x11->job, x11->attempt, x11->display);
    add_entries(x11, &text);
    unlink(x11->path);
    int fd = open(x11->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool good = fd >= 0 && write(fd, text.data, text.len) == (ssize_t)text.len &&
                (geteuid() != 0 || fchown(fd, owner->uid, owner->gid) == 0);
    int why = errno;
    file_close(&fd);
    return good ? 0 : err_errno(err, why, "%s", x11->path);
}

/* ---- ~/.Xauthority ---- */

struct home_work {
    uv_work_t work;
    struct x11 *x11;
    struct as_user *user;
    struct str add; /* empty: entries are only removed */
    char *file;
    uint32_t display;
    void (*done)(struct x11 *x11, const struct err *err);
    struct err err;
};

/* A lock that is old was left by somebody who died. */
static bool lock(const char *file)
{
    CLEANUP(freep) char *made = mem_printf("%s-c", file);
    CLEANUP(freep) char *linked = mem_printf("%s-l", file);
    struct stat info;

    for (int tries = 0; tries < LOCK_TRIES; tries++) {
        int fd = open(made, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd >= 0) {
            close(fd);
            if (link(made, linked) == 0)
                return true;
            unlink(made);
        }
        if (stat(made, &info) == 0 && time(NULL) - info.st_ctime > LOCK_STALE_S) {
            unlink(linked);
            unlink(made);
        }
        usleep(LOCK_WAIT_US);
    }
    return false;
}

static void unlock(const char *file)
{
    CLEANUP(freep) char *made = mem_printf("%s-c", file);
    CLEANUP(freep) char *linked = mem_printf("%s-l", file);

    unlink(linked);
    unlink(made);
}

static void rewrite(struct home_work *home)
{
    CLEANUP(str_done) struct str old = { 0 }, text = { 0 };
    CLEANUP(freep) char *other = mem_printf("%s-n", home->file);
    char host[HOST_NAME_BYTES] = "";

    gethostname(host, sizeof(host) - 1);
    if (file_read(home->file, LIMIT_XAUTHORITY_BYTES, &old, &home->err) < 0 &&
        home->err.code != ERR_NOT_FOUND)
        return;
    err_clear(&home->err);
    x11_copy_others(&text, str_text(&old), old.len, home->display, host);
    str_add_len(&text, str_text(&home->add), home->add.len);
    unlink(other);
    int fd = open(other, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool good = fd >= 0 && write(fd, str_text(&text), text.len) == (ssize_t)text.len;
    if (!good || rename(other, home->file) < 0)
        err_errno(&home->err, errno, "%s", home->file);
    file_close(&fd);
}

static void write_home(uv_work_t *work)
{
    struct home_work *home = work->data;

    if (as_user_begin(home->user, &home->err) < 0)
        return;
    if (!lock(home->file)) {
        err_set(&home->err, ERR_EXISTS, "%s is locked by another program", home->file);
    } else {
        rewrite(home);
        unlock(home->file);
    }
    as_user_end();
}

static void home_written(uv_work_t *work, int status)
{
    struct home_work *home = work->data;

    (void)status;
    if (home->done)
        home->done(home->x11, home->err.code ? &home->err : NULL);
    else if (home->err.code)
        log_warn("x11.file", "file=%s error=%s", home->file, home->err.text);
    x11_unref(home->x11);
    str_done(&home->add);
    free(home->file);
    free(home);
}

static void queue(struct x11 *x11, bool add, void (*done)(struct x11 *x11, const struct err *err))
{
    struct home_work *home = NEW(struct home_work);

    home->work.data = home;
    home->x11 = x11;
    home->user = &x11->user;
    home->file = mem_strdup(x11->home_file);
    home->display = x11->display;
    home->done = done;
    if (add)
        add_entries(x11, &home->add);
    x11_ref(x11);
    uv_queue_work(x11->agent->uv, &home->work, write_home, home_written);
}

void x11_write_home(struct x11 *x11, const char *home,
                    void (*done)(struct x11 *x11, const struct err *err))
{
    x11->home_file = mem_printf("%s/.Xauthority", home);
    queue(x11, true, done);
}

void x11_remove_file(struct x11 *x11)
{
    if (x11->path)
        unlink(x11->path);
    if (x11->home_file)
        queue(x11, false, NULL);
}
