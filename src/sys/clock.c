/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.c - what time it is, in the three ways that matter
 */
#include "sys/clock.h"

#include <string.h>
#include <time.h>

#include "sys/files.h"

static int64_t read_us(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static int64_t real_wall(void *ctx)
{
    (void)ctx;
    return read_us(CLOCK_REALTIME);
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
