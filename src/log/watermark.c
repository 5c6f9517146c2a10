/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watermark.c - the last index that was acknowledged, beside the database
 */
#include "log/watermark.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "sys/files.h"

enum { SLOT_BYTES = 4096 };

struct slot {
    char magic[8];
    uint64_t index;
    uint32_t chain, crc;
};

static const char magic[8] = "SPURMARK";

static struct slot slot_of(struct log_point point)
{
    struct slot slot = { .index = point.index, .chain = point.crc };

    memcpy(slot.magic, magic, sizeof(magic));
    slot.crc = crc32c(0, &slot, offsetof(struct slot, crc));
    return slot;
}

int watermark_write(int fd, struct log_point point, uint64_t turn, struct err *err)
{
    struct slot slot = slot_of(point);
    off_t at = (off_t)(turn % 2) * SLOT_BYTES;

    if (pwrite(fd, &slot, sizeof(slot), at) != (ssize_t)sizeof(slot))
        return err_errno(err, errno, "watermark");
    return 0;
}

int watermark_read(int fd, struct log_point *out, struct err *err)
{
    bool found = false;

    for (int i = 0; i < 2; i++) {
        struct slot slot;
        ssize_t got = pread(fd, &slot, sizeof(slot), (off_t)i * SLOT_BYTES);

        if (got < 0)
            return err_errno(err, errno, "watermark");
        if (got < (ssize_t)sizeof(slot) || memcmp(slot.magic, magic, sizeof(magic)) != 0 ||
            slot.crc != crc32c(0, &slot, offsetof(struct slot, crc)))
            continue;
        if (!found || slot.index > out->index)
            *out = (struct log_point){ slot.index, slot.chain };
        found = true;
    }
    return found ? 0 : err_set(err, ERR_CORRUPT, "watermark: damaged");
}

int watermark_open(const char *dir, bool create, struct err *err)
{
    CLEANUP(freep) char *path = mem_printf("%s/watermark", dir);
    CLEANUP(file_close)
    int fd = open(path, O_RDWR | O_CLOEXEC | (create ? O_CREAT | O_TRUNC : 0), 0600);

    if (fd < 0)
        return err_errno(err, errno, "%s", path);
    if (create) {
        static const char zeros[2 * SLOT_BYTES];
        struct log_point none = { 0, 0 };
        int rc = file_write_all(fd, zeros, sizeof(zeros), err);
        for (uint64_t turn = 0; rc == 0 && turn < 2; turn++)
            rc = watermark_write(fd, none, turn, err);
        if (rc == 0)
            rc = file_sync(fd, err);
        if (rc == 0)
            rc = file_sync_dir(dir, err);
        if (rc < 0)
            return rc;
    }
    int kept = fd;
    fd = -1;
    return kept;
}
