// SPDX-License-Identifier: Apache-2.0
/*
 * copy_libs.c - which shared objects a program needs, and sending them along
 *
 * The program's own loader is asked (its --list), which is what `ldd` does: it knows rpaths, the
 * cache and LD_LIBRARY_PATH of this environment. The loader's name is in the program.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "cli/copy.h"
#include "sys/files.h"
#include "sys/spawn.h"

enum { LIST_MS = 20000, LIST_BYTES = 1024 * 1024, HEADERS_MOST = 256 };

static const char usual_exclude[] = "/lib,/usr/lib,/lib64,/usr/lib64";

/* The loader that the program names; "" when it has none: a script, or all in one piece. */
static int read_loader(const char *program, char out[LIMIT_PATH_BYTES], struct err *err)
{
    CLEANUP(file_close) int fd = open(program, O_RDONLY | O_CLOEXEC);
    Elf64_Ehdr head;
    Elf64_Phdr part;

    out[0] = '\0';
    if (fd < 0)
        return err_errno(err, errno, "Can't open `%s`", program);
    if (pread(fd, &head, sizeof(head), 0) != sizeof(head) ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
        head.e_phentsize != sizeof(part) || head.e_phnum > HEADERS_MOST)
        return 0;
    for (unsigned i = 0; i < head.e_phnum; i++) {
        off_t at = (off_t)(head.e_phoff + i * sizeof(part));
        if (pread(fd, &part, sizeof(part), at) != sizeof(part))
            return 0;
        if (part.p_type != PT_INTERP || part.p_filesz < 2 || part.p_filesz >= LIMIT_PATH_BYTES)
            continue;
        if (pread(fd, out, part.p_filesz, (off_t)part.p_offset) != (ssize_t)part.p_filesz)
            out[0] = '\0';
        out[part.p_filesz] = '\0';
        if (out[0] != '/')
            out[0] = '\0';
        return 0;
    }
    return 0;
}

static bool is_excluded(const char *path, const char *exclude)
{
    struct span word;

    if (!exclude)
        exclude = usual_exclude;
    if (strcmp(exclude, "NONE") == 0)
        return false;
    while (str_next(&exclude, ",", &word)) {
        size_t len = word.len;
        while (len > 1 && word.ptr[len - 1] == '/')
            len--;
        if (len && strncmp(path, word.ptr, len) == 0 &&
            (path[len] == '/' || (len == 1 && path[0] == '/')))
            return true;
    }
    return false;
}

/* "        libm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f…)": the path, or NULL. */
static char *path_in_line(struct span line, struct arena *arena)
{
    char *text = arena_strndup(arena, line.ptr, line.len), *end;
    char *arrow = strstr(text, " => ");

    if (!arrow || arrow[4] != '/')
        return NULL;
    end = strstr(arrow + 4, " (0x");
    if (end)
        *end = '\0';
    return arrow + 4;
}

static int list(const char *loader, const char *program, struct str *out, struct err *err)
{
    extern char **environ;
    char *const argv[] = { (char *)loader, (char *)"--list", (char *)program, NULL };
    struct spawn_result result;
    const struct spawn spec = { .path = loader, .argv = argv, .env = environ };

    if (spawn_run(&spec, (struct span){ 0 }, LIST_MS, out, LIST_BYTES, &result, err) < 0)
        return err_wrap(err, "%s", loader);
    if (result.timed_out || result.truncated || result.status != 0)
        return err_set(err, ERR_INVALID, "%s cannot say what '%s' needs", loader, program);
    return 0;
}

int copy_send_libs(struct copy_job *copy, const char *program, const char *dir, const char *exclude,
                   bool force, bool preserve, struct err *err)
{
    CLEANUP(str_done) struct str text = { 0 };
    CLEANUP(freep) char *full = realpath(program, NULL);
    struct arena *arena = &copy->cli->arena;
    char loader[LIMIT_PATH_BYTES + 1];
    unsigned count = 0;
    struct span line;

    if (!full)
        return err_errno(err, errno, "Can't open `%s`", program);
    if (read_loader(full, loader, err) < 0)
        return -1;
    if (!loader[0])
        return 0;
    if (list(loader, full, &text, err) < 0)
        return -1;
    const char *rest = str_text(&text);
    while (str_next(&rest, "\n", &line)) {
        char *path = path_in_line(line, arena);
        if (!path || is_excluded(path, exclude))
            continue;
        if (++count > COPY_LIBS_MOST)
            return err_set(err, ERR_TOO_MANY, "'%s' needs more than %d shared objects", program,
                           COPY_LIBS_MOST);
        struct copy_send what = { .from = path,
                                  .to = arena_printf(arena, "%s/%s", dir, strrchr(path, '/') + 1),
                                  .force = force,
                                  .preserve = preserve,
                                  .make_dir = true };
        if (copy_send(copy, &what, err) < 0)
            return -1;
    }
    return 0;
}
