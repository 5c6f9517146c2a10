/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - becomes a command inside an image
 *
 * Without privilege: a user namespace in which only the caller exists (under its own number, or as
 * root with --container-remap-root), a mount namespace, the image under a writable layer in
 * memory. The process stays the same, so that signals, exit codes and cgroups are the command's.
 */
#include "container/run.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "container/image.h"
#include "container/mounts.h"
#include "container/named.h"
#include "sys/files.h"

/* What of the image matters for running: the same for an image and a bundle. */
struct inside {
    char *root, *stage;
    json_t *json; /* owns the rest */
    const json_t *env, *entrypoint, *command;
    const char *workdir;
    bool readonly;
};

static void inside_done(struct inside *inside)
{
    free(inside->root);
    free(inside->stage);
    json_decref(inside->json);
}

static int from_image(const char *source, struct inside *out, struct err *err)
{
    struct image image;
    const json_t *config;

    if (image_get(source, NULL, &image, err) < 0)
        return -(int)err->code;
    config = json_object_get(image.config, "config");
    *out = (struct inside){ .root = mem_printf("%s/rootfs", image.dir),
                            .stage = mem_printf("%s/stage", image.dir),
                            .json = json_incref(image.config),
                            .env = json_object_get(config, "Env"),
                            .entrypoint = json_object_get(config, "Entrypoint"),
                            .command = json_object_get(config, "Cmd"),
                            .workdir = json_string_value(json_object_get(config, "WorkingDir")) };
    image_done(&image);
    return 0;
}

static int from_bundle(const char *dir, struct inside *out, struct err *err)
{
    CLEANUP(freep) char *path = mem_printf("%s/config.json", dir);
    CLEANUP(freep) char *store = image_store(err);
    json_error_t why;

    if (!store)
        return -(int)err->code;
    json_t *json = json_load_file(path, 0, &why);
    if (!json)
        return err_set(err, ERR_INVALID, "bundle %s: %s", path, why.text);
    const json_t *root = json_object_get(json, "root"), *process = json_object_get(json, "process");
    const char *root_path = json_string_value(json_object_get(root, "path"));
    *out =
        (struct inside){ .root = root_path && root_path[0] == '/'
                                     ? mem_strdup(root_path)
                                     : mem_printf("%s/%s", dir, root_path ? root_path : "rootfs"),
                         .stage = mem_printf("%s/stage", store),
                         .json = json,
                         .env = json_object_get(process, "env"),
                         .command = json_object_get(process, "args"),
                         .workdir = json_string_value(json_object_get(process, "cwd")),
                         .readonly = json_is_true(json_object_get(root, "readonly")) };
    if (mkdir(out->stage, 0700) < 0 && errno != EEXIST)
        return err_errno(err, errno, "%s", out->stage);
    return 0;
}

/* ---- namespaces ---- */

static int put(const char *path, const char *text, struct err *err)
{
    CLEANUP(file_close) int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        return err_errno(err, errno, "%s", path);
    return 0;
}

static int leave(bool remap_root, struct err *err)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();
    char text[64];

    if (uid == 0) {
        if (unshare(CLONE_NEWNS) < 0)
            return err_errno(err, errno, "a mount namespace");
    } else {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
            return err_errno(err, errno,
                             "a user namespace (see user.max_user_namespaces and "
                             "kernel.unprivileged_userns_clone)");
        snprintf(text, sizeof(text), "%u %u 1\n", remap_root ? 0 : (unsigned)uid, (unsigned)uid);
        if (put("/proc/self/setgroups", "deny", err) < 0 ||
            put("/proc/self/uid_map", text, err) < 0)
            return -(int)err->code;
        snprintf(text, sizeof(text), "%u %u 1\n", remap_root ? 0 : (unsigned)gid, (unsigned)gid);
        if (put("/proc/self/gid_map", text, err) < 0)
            return -(int)err->code;
    }
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return err_errno(err, errno, "private mounts");
    return 0;
}

/* The new root is put over the old one, which is then let go. */
static int change_root(const char *root, bool readonly, struct err *err)
{
    if (chdir(root) < 0)
        return err_errno(err, errno, "%s", root);
    if (readonly &&
        mount(NULL, ".", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) < 0)
        return err_errno(err, errno, "a read-only root");
    if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        return err_errno(err, errno, "changing the root");
    return 0;
}

static int enter(const struct run *run, const struct inside *inside, struct named *named,
                 struct err *err)
{
    if (named->user >= 0) {
        /* as ourselves: it was made by the same user */
        if ((geteuid() != 0 && setns(named->user, CLONE_NEWUSER) < 0) ||
            setns(named->mnt, CLONE_NEWNS) < 0 || chdir("/") < 0)
            return err_errno(err, errno, "joining the container '%s'", run->name);
        return 0;
    }
    if (leave(run->remap_root, err) < 0 ||
        mounts_root(inside->root, inside->stage, named->dir, inside->root, err) < 0)
        return -(int)err->code;
    CLEANUP(file_close) int root_fd = open(inside->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0)
        return err_errno(err, errno, "%s", inside->root);
    if (mounts_all(root_fd, run, err) < 0 || (named->dir && named_publish(named, err) < 0))
        return -(int)err->code;
    return change_root(inside->root, run->readonly || inside->readonly, err);
}

/* ---- the command ---- */

static bool in_list(const char *list, const char *name, size_t len)
{
    const char *cursor = list ? list : "";
    struct span word;

    while (str_next(&cursor, ", ", &word)) {
        if (word.len == len && memcmp(word.ptr, name, len) == 0)
            return true;
    }
    return false;
}

/* The image's variables win, but for those the user wants kept. */
static void set_env(const struct run *run, const struct inside *inside)
{
    for (size_t i = 0; i < json_array_size(inside->env); i++) {
        const char *text = json_string_value(json_array_get(inside->env, i));
        const char *equal = text ? strchr(text, '=') : NULL;
        if (!equal || equal == text)
            continue;
        CLEANUP(freep) char *name = mem_strndup(text, (size_t)(equal - text));
        if (!in_list(run->keep_env, name, strlen(name)) || !getenv(name))
            setenv(name, equal + 1, 1);
    }
    if (run->remap_root && !run->mount_home)
        setenv("HOME", "/root", 1);
}

static void add_words(char **argv, size_t most, size_t *n, const json_t *words)
{
    for (size_t i = 0; i < json_array_size(words) && *n < most; i++) {
        const char *word = json_string_value(json_array_get(words, i));
        if (word)
            argv[(*n)++] = (char *)word;
    }
}

static char **build_argv(const struct run *run, const struct inside *inside, char *const *given)
{
    size_t count = 0, n = 0;

    while (given[count])
        count++;
    size_t most = count + json_array_size(inside->entrypoint) + json_array_size(inside->command);
    char **argv = NEW_ARRAY(char *, most + 1);
    if (run->entrypoint || count == 0)
        add_words(argv, most, &n, inside->entrypoint);
    for (size_t i = 0; i < count; i++)
        argv[n++] = given[i];
    if (count == 0)
        add_words(argv, most, &n, inside->command);
    return argv;
}

static int go_to(const char *asked, const char *of_image, struct err *err)
{
    const char *dir = !str_is_empty(asked) ? asked : !str_is_empty(of_image) ? of_image : "/";

    if (chdir(dir) == 0)
        return 0;
    if (!str_is_empty(asked))
        return err_errno(err, errno, "--container-workdir %s", asked);
    return chdir("/") < 0 ? err_errno(err, errno, "/") : 0;
}

int run_inside(const struct run *run, char *const *argv, struct err *err)
{
    CLEANUP(inside_done) struct inside inside = { 0 };
    CLEANUP(named_close) struct named named = { .lock = -1, .user = -1, .mnt = -1 };
    int code =
        run->image ? from_image(run->image, &inside, err) : from_bundle(run->bundle, &inside, err);

    if (code < 0)
        return code;
    if (run->name) {
        CLEANUP(freep) char *store = image_store(err);
        if (!store || named_open(&named, store, run->name, err) < 0)
            return -(int)err->code;
    }
    if (enter(run, &inside, &named, err) < 0)
        return -(int)err->code;
    set_env(run, &inside);
    if (go_to(run->workdir, inside.workdir, err) < 0)
        return -(int)err->code;
    CLEANUP(freep) char **command = build_argv(run, &inside, argv);
    if (!command[0])
        return err_set(err, ERR_INVALID, "no command, and the image names none");
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    execvp(command[0], command);
    return err_errno(err, errno, "%s", command[0]);
}
