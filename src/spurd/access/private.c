/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private.c - directories that each job has for itself
 */
#include "spurd/access/private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/limits.h"
#include "spurd/link/send.h"
#include "sys/files.h"
#include "sys/log.h"
#include "sys/rng.h"

enum { LIST_BYTES = 64 * 1024, MODE_OURS = 0700, MODE_JOB = 01777 };

static bool is_wanted(const struct agent *agent)
{
    const Config *config = agent_common(agent);

    return config && !str_is_empty(config->private_base_path);
}

/* What follows `dir` in `path`, beginning with a slash or empty; NULL: it is not below it. */
static const char *below(const char *path, const char *dir)
{
    size_t len = strlen(dir);

    return strncmp(path, dir, len) == 0 && (path[len] == '/' || !path[len]) ? path + len : NULL;
}

static char *list_path(const struct agent *agent, uint32_t job, uint32_t attempt)
{
    return mem_printf("%s/private/%u.%u", agent->spool_dir, job, attempt);
}

/* ---- where they are ---- */

static void add_node(struct str *out, const struct agent *agent, const char *pattern)
{
    char host[256] = "";

    gethostname(host, sizeof(host) - 1);
    for (const char *c = pattern; *c; c++) {
        if (c[0] == '%' && (c[1] == 'n' || c[1] == 'h'))
            str_add(out, *++c == 'n' ? agent->name : host);
        else
            str_add_char(out, *c);
    }
}

/*
 * In /dev/shm, where everybody may make names: when somebody took ours, another that nobody can
 * guess is used. private_make() checks what it then finds.
 */
static void add_memory_home(struct str *out, const struct agent *agent)
{
    uint64_t number = hash_bytes(agent->spool_dir, strlen(agent->spool_dir), 0);
    CLEANUP(freep)
    char *dir = mem_printf("/dev/shm/spurd-%u-%012llx", (unsigned)geteuid(),
                           (unsigned long long)(number & 0xffffffffffffULL));
    struct stat info;

    str_add(out, dir);
    if (lstat(dir, &info) == 0 && (info.st_uid != geteuid() || !S_ISDIR(info.st_mode)))
        str_addf(out, "-%016llx", (unsigned long long)rng_u64());
    str_add(out, "/private");
}

/* Of all jobs of this agent; another one on the same machine has another. */
static void add_home(struct str *out, const struct agent *agent, bool memory)
{
    if (memory) {
        add_memory_home(out, agent);
        return;
    }
    add_node(out, agent, agent_common(agent)->private_base_path);
    str_addf(out, "/%s", agent->name);
}

static bool in_memory(const char *dir)
{
    return below(dir, "/dev/shm") != NULL;
}

/* ---- the list (1): "DIR\tFROM\n" ---- */

struct entry {
    char *path, *from;
};
typedef VEC(struct entry) entries;

/* The first lines that hold; `text` is changed. */
static void split_list(char *text, entries *out)
{
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        char *tab = strchr(line, '\t');
        *end = '\0';
        if (!tab || tab > end)
            continue;
        *tab = '\0';
        vec_push(out, (struct entry){ .path = line, .from = tab + 1 });
    }
}

static bool read_list(const struct agent *agent, uint32_t job, uint32_t attempt, struct str *text,
                      entries *out)
{
    CLEANUP(freep) char *path = list_path(agent, job, attempt);

    if (file_read(path, LIST_BYTES, text, NULL) < 0 || text->len == 0)
        return false;
    split_list(text->data, out);
    return out->len > 0;
}

static int write_list(const struct agent *agent, const struct attempt *held, struct str *text,
                      struct err *err)
{
    const Config *config = agent_common(agent);
    CLEANUP(freep) char *dir = mem_printf("%s/private", agent->spool_dir);
    CLEANUP(freep) char *path = list_path(agent, held->job, held->attempt);

    for (size_t i = 0; i < config->n_private_dirs; i++) {
        str_addf(text, "%s\t", config->private_dirs[i]);
        add_home(text, agent, in_memory(config->private_dirs[i]));
        str_addf(text, "/%u.%u/%zu\n", held->job, held->attempt, i);
    }
    if (file_make_dirs(dir, MODE_OURS, err) < 0)
        return -(int)err->code;
    return file_write(path, str_text(text), text->len, 0600, err);
}

/* ---- making them ---- */

static int make_base(const struct agent *agent, struct err *err)
{
    const Config *config = agent_common(agent);
    CLEANUP(str_done) struct str base = { 0 };
    struct stat info;

    add_node(&base, agent, config->private_base_path);
    if (stat(str_text(&base), &info) == 0)
        return S_ISDIR(info.st_mode) ? 0 : err_errno(err, ENOTDIR, "%s", str_text(&base));
    if (!config->private_auto_base_path)
        return err_errno(err, errno, "%s", str_text(&base));
    return file_make_dirs(str_text(&base), 0755, err);
}

/*
 * A directory of our own in `parent`, made if it is not there; returns its descriptor. One that
 * somebody else made under this name, or may change, is refused.
 */
static int open_ours(int parent, const char *name, mode_t mode, struct err *err)
{
    struct stat info;

    if (mkdirat(parent, name, mode) < 0 && errno != EEXIST)
        return err_errno(err, errno, "%s", name);
    CLEANUP(file_close)
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) < 0)
        return err_errno(err, errno, "%s", name);
    if (info.st_uid != geteuid())
        return err_set(err, ERR_PERMISSION, "%s belongs to uid %u, not to us", name,
                       (unsigned)info.st_uid);
    if ((info.st_mode & 07777) != mode && fchmod(fd, mode) < 0)
        return err_errno(err, errno, "%s", name);
    int ours = fd;
    fd = -1;
    return ours;
}

/* One below the other, as `path` says; the last gets `last_mode`. Each is made by descriptor. */
static int open_chain(int parent, const char *path, mode_t first_mode, mode_t mode,
                      mode_t last_mode, struct err *err)
{
    CLEANUP(file_close) int at = fcntl(parent, F_DUPFD_CLOEXEC, 0);
    struct span name;
    const char *rest = path;
    mode_t now = first_mode;

    while (at >= 0 && str_next(&rest, "/", &name)) {
        CLEANUP(freep) char *text = mem_strndup(name.ptr, name.len);
        int next = open_ours(at, text, *rest ? now : last_mode, err);
        if (next < 0)
            return err_wrap(err, "%s", path);
        file_close(&at);
        at = next;
        now = mode;
    }
    int fd = at;
    at = -1;
    return fd < 0 ? err_errno(err, errno, "%s", path) : fd;
}

/*
 * FROM is HOME/JOB.ATTEMPT/N. HOME is in a directory of the site's; in memory it is below a directory
 * of ours in /dev/shm, where everybody may make names. Returns the descriptor of FROM.
 */
static int make_from(const char *from, bool memory, struct err *err)
{
    CLEANUP(freep) char *path = mem_strdup(from);
    char *below_base = path + strlen(path);

    for (int slashes = memory ? 4 : 3; slashes > 0; slashes--) {
        while (*--below_base != '/')
            ;
    }
    *below_base = '\0';
    CLEANUP(file_close) int base = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (base < 0)
        return err_errno(err, errno, "%s", path);
    return open_chain(base, from + strlen(path) + 1, memory ? 0711 : MODE_OURS, MODE_OURS, MODE_JOB,
                      err);
}

/* The run directory stays in sight: the script and our socket are in it. */
static int make_window(const struct agent *agent, const struct entry *entry, int from_fd,
                       struct err *err)
{
    const char *rest = below(agent->run_dir, entry->path);

    if (!rest || !*rest)
        return 0;
    CLEANUP(file_close) int fd = open_chain(from_fd, rest + 1, 0711, 0711, 0711, err);
    return fd < 0 ? -(int)err->code : 0;
}

static int make_one(const struct agent *agent, const struct entry *entry, struct err *err)
{
    CLEANUP(file_close) int fd = make_from(entry->from, in_memory(entry->path), err);

    return fd < 0 ? -(int)err->code : make_window(agent, entry, fd, err);
}

int private_make(struct agent *agent, struct attempt *held, struct err *err)
{
    CLEANUP(str_done) struct str text = { 0 };
    entries list = { 0 };
    int ret;

    if (!is_wanted(agent))
        return 0;
    private_check(agent);
    if (!agent->can_private)
        return geteuid() == 0 ? err_set(err, ERR_PERMISSION, "no private directories for jobs here")
                              : 0;
    ret = make_base(agent, err);
    if (ret == 0)
        ret = write_list(agent, held, &text, err);
    held->is_private = ret == 0;
    if (ret == 0)
        split_list(text.data, &list);
    for (size_t i = 0; ret == 0 && i < list.len; i++)
        ret = make_one(agent, &list.items[i], err);
    vec_done(&list);
    return ret < 0 ? err_wrap(err, "private directories") : 0;
}

int private_fill(struct agent *agent, const struct attempt *held, struct arena *arena,
                 StepTask *out, struct err *err)
{
    const Config *config = agent_common(agent);
    CLEANUP(str_done) struct str text = { 0 };
    entries list = { 0 };

    if (!held->is_private)
        return 0;
    if (!read_list(agent, held->job, held->attempt, &text, &list))
        return err_set(err, ERR_IO, "the list of the job's private directories cannot be read");
    StepPrivate *all = out->private_dirs = ARENA_NEW(arena, StepPrivate);
    step_private__init(all);
    all->has_shared = true;
    all->shared = config && config->private_shared;
    all->dirs = ARENA_ARRAY(arena, StepPrivateDir *, list.len);
    vec_each (struct entry, entry, &list) {
        StepPrivateDir *dir = all->dirs[all->n_dirs++] = ARENA_NEW(arena, StepPrivateDir);
        step_private_dir__init(dir);
        dir->path = arena_strdup(arena, entry->path);
        dir->from = arena_strdup(arena, entry->from);
        if (below(agent->run_dir, entry->path))
            all->keep = arena_strdup(arena, agent->run_dir);
    }
    vec_done(&list);
    return 0;
}

char *private_path(struct agent *agent, const struct attempt *held, const char *path, int *fd)
{
    CLEANUP(str_done) struct str text = { 0 };
    entries list = { 0 };
    char *ours = NULL;

    *fd = AT_FDCWD;
    if (!held || !held->is_private || !read_list(agent, held->job, held->attempt, &text, &list))
        return mem_strdup(path);
    for (size_t i = 0; !ours && i < list.len; i++) {
        const char *rest = below(path, list.items[i].path);
        if (!rest || !*rest)
            continue;
        *fd = open(list.items[i].from, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        ours = *fd >= 0 ? mem_printf(".%s", rest) : NULL;
    }
    vec_done(&list);
    return ours ? ours : mem_strdup(path);
}

/* ---- removing them ---- */

struct removal {
    uv_work_t work;
    struct str text;
    char *list;
    VEC(char *) homes;
    struct err err;
};

/* The last job's, in memory: nothing of ours stays behind. Here on the loop, as they are made. */
static void drop_home(char *home)
{
    if (!in_memory(home) || rmdir(home) < 0)
        return;
    *strrchr(home, '/') = '\0';
    rmdir(home);
}

/* The directory of the job holds all of one home. */
static void remove_in_worker(uv_work_t *work)
{
    struct removal *removal = work->data;
    entries list = { 0 };

    split_list(removal->text.data, &list);
    vec_each (struct entry, entry, &list) {
        char *slash = strrchr(entry->from, '/');
        *slash = '\0';
        struct err err = { 0 };
        if (file_remove_tree(entry->from, &err) < 0 && err.code != ERR_NOT_FOUND)
            removal->err = err;
        *strrchr(entry->from, '/') = '\0';
        vec_push(&removal->homes, mem_strdup(entry->from));
    }
    vec_done(&list);
    if (!removal->err.code)
        unlink(removal->list);
}

static void removed(uv_work_t *work, int status)
{
    struct removal *removal = work->data;

    (void)status;
    vec_each (char *, home, &removal->homes) {
        drop_home(*home);
        free(*home);
    }
    vec_done(&removal->homes);
    if (removal->err.code)
        log_error("private.remove", "list=%s error=%s", removal->list, removal->err.text);
    str_done(&removal->text);
    free(removal->list);
    free(removal);
}

void private_remove(struct agent *agent, uint32_t job, uint32_t attempt)
{
    struct removal *removal = NEW(struct removal);

    removal->work.data = removal;
    removal->list = list_path(agent, job, attempt);
    if (file_read(removal->list, LIST_BYTES, &removal->text, NULL) < 0 || removal->text.len == 0)
        removed(&removal->work, 0);
    else
        uv_queue_work(agent->uv, &removal->work, remove_in_worker, removed);
}

void private_recover(struct agent *agent)
{
    CLEANUP(freep) char *path = mem_printf("%s/private", agent->spool_dir);
    DIR *dir = opendir(path);
    struct dirent *item;
    unsigned job, attempt;
    int end;

    while (dir && (item = readdir(dir))) {
        end = 0;
        if (sscanf(item->d_name, "%u.%u%n", &job, &attempt, &end) != 2 || item->d_name[end])
            continue;
        struct attempt *held = attempt_find(&agent->table, job, attempt);
        if (held)
            held->is_private = true;
        else
            private_remove(agent, job, attempt);
    }
    if (dir)
        closedir(dir);
}

/* ---- can we? ---- */

static int try_namespace(void)
{
    pid_t pid = fork();
    int status = 0;

    if (pid == 0) {
        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
            _exit(errno & 0xff);
        _exit(0);
    }
    if (pid < 0)
        return errno;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

void private_check(struct agent *agent)
{
    char text[128];

    if (!is_wanted(agent) || agent->private_tried)
        return;
    agent->private_tried = true;
    int error = try_namespace();
    agent->can_private = error == 0;
    if (error == 0)
        return;
    snprintf(text, sizeof(text), "no private directories for jobs: %s", strerror(error));
    log_warn("private.off", "%s", text);
    if (geteuid() == 0)
        agent_ask_drain(agent, text);
}
