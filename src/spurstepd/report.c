/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.c - the end of a step, on disk until somebody has it in better hands
 */
#include "spurstepd/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sys/files.h"

enum { NAME_BYTES = 64 };

int report_write(int dir_fd, const char *name, const StepEnded *ended, struct err *err)
{
    char fresh[NAME_BYTES], final[NAME_BYTES];
    size_t len = step_ended__get_packed_size(ended);
    CLEANUP(freep) uint8_t *bytes = mem_new(len);

    snprintf(fresh, sizeof(fresh), "%.40s.end.new", name);
    snprintf(final, sizeof(final), "%.40s.end", name);
    step_ended__pack(ended, bytes);
    CLEANUP(file_close)
    int fd = openat(dir_fd, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(err, errno, "%s", fresh);
    if (file_write_all(fd, bytes, len, err) < 0)
        return err_wrap(err, "%s", fresh);
    if (renameat(dir_fd, fresh, dir_fd, final) < 0)
        return err_errno(err, errno, "%s", final);
    return 0;
}

int report_keep(const char *path, const StepEnded *ended, struct err *err)
{
    size_t len = step_ended__get_packed_size(ended);
    CLEANUP(freep) uint8_t *bytes = mem_new(len);

    step_ended__pack(ended, bytes);
    return file_write(path, bytes, len, 0600, err);
}

void report_remove(int dir_fd, const char *name, const char *dir)
{
    static const char *const ends[] = { ".end", ".sock" };
    char path[NAME_BYTES];

    unlinkat(dir_fd, "slurm_script", 0);
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        snprintf(path, sizeof(path), "%.40s%s", name, ends[i]);
        unlinkat(dir_fd, path, 0);
    }
    rmdir(dir);
}
