/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.c - what time it is, in the three ways that matter
 */
#include "sys/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sys/files.h"

static int64_t read_us(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/*
 * For fault runs, which may not set the machine's clock: $SPUR_CLOCK_SHIFT/PROGRAM holds microseconds,
 * as eight bytes, by which this program's wall clock is off. NULL: there is no such file.
 */
static const volatile int64_t *find_shift(void)
{
    const char *dir = secure_getenv("SPUR_CLOCK_SHIFT");
    void *map = MAP_FAILED;

    if (!dir)
        return NULL;
    CLEANUP(freep) char *path = mem_printf("%s/%s", dir, program_invocation_short_name);
    CLEANUP(file_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    if (fd >= 0 && fstat(fd, &info) == 0 && info.st_size >= (off_t)sizeof(int64_t))
        map = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
    return map == MAP_FAILED ? NULL : map;
}

static int64_t real_wall(void *ctx)
{
    static const volatile int64_t *shift;
    static bool looked;

    (void)ctx;
    if (!looked) {
        shift = find_shift();
        looked = true;
    }
    return read_us(CLOCK_REALTIME) + (shift ? *shift : 0);
}

static int64_t real_mono(void *ctx)
{
    (void)ctx;
    return read_us(CLOCK_MONOTONIC);
}

static int64_t real_boot(void *ctx)
{
    (void)ctx;
    return read_us(CLOCK_BOOTTIME);
}

static int real_boot_id(void *ctx, char out[CLOCK_BOOT_ID_BYTES], struct err *err)
{
    CLEANUP(str_done) struct str text = { 0 };

    (void)ctx;
    if (file_read("/proc/sys/kernel/random/boot_id", 128, &text, err) < 0)
        return err_wrap(err, "boot id");
    if (text.len < CLOCK_BOOT_ID_BYTES - 1)
        return err_set(err, ERR_IO, "boot id is too short: '%s'", str_text(&text));
    memcpy(out, text.data, CLOCK_BOOT_ID_BYTES - 1);
    out[CLOCK_BOOT_ID_BYTES - 1] = '\0';
    return 0;
}

static const struct clock_ops real_ops = { real_wall, real_mono, real_boot, real_boot_id };
static const struct clock_ops *used = &real_ops;
static void *used_ctx;

void clock_use(const struct clock_ops *ops, void *ctx)
{
    used = ops ? ops : &real_ops;
    used_ctx = ctx;
}

int64_t clock_wall_us(void)
{
    return used->wall_us(used_ctx);
}

int64_t clock_mono_us(void)
{
    return used->mono_us(used_ctx);
}

int64_t clock_boot_us(void)
{
    return used->boot_us(used_ctx);
}

int clock_boot_id(char out[CLOCK_BOOT_ID_BYTES], struct err *err)
{
    return used->boot_id(used_ctx, out, err);
}
