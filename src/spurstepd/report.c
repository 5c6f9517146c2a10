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

enum { NAME_BYTES = 64, SMALL_BYTES = 1024 };

/* One write: whoever kills us finds all of it or an empty file, which is no report. */
int report_write(int dir_fd, const char *name, const StepEnded *ended, struct err *err)
{
    char file[NAME_BYTES];
    uint8_t small[SMALL_BYTES], *bytes = small;
    size_t len = step_ended__get_packed_size(ended);
    CLEANUP(freep) uint8_t *large = len > sizeof(small) ? mem_new(len) : NULL;

    snprintf(file, sizeof(file), "%.40s.end", name);
    bytes = large ? large : small;
    step_ended__pack(ended, bytes);
    CLEANUP(file_close)
    int fd = openat(dir_fd, file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(err, errno, "%s", file);
    if (file_write_all(fd, bytes, len, err) < 0)
        return err_wrap(err, "%s", file);
    return 0;
}

int report_keep(const char *path, const StepEnded *ended, struct err *err)
{
    size_t len = step_ended__get_packed_size(ended);
    CLEANUP(freep) uint8_t *bytes = mem_new(len);

    step_ended__pack(ended, bytes);
    return file_write(path, bytes, len, 0600, err);
}
