/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - what time it is, in the three ways that matter
 *
 * Wall time is for people and for stamps; it jumps. Monotonic time is for timers. Boot time also
 * counts while the machine is suspended, and together with the boot id it tells whether a stored
 * figure still means something. All are int64 microseconds. clock_use() replaces them all.
 */
#ifndef SYS_CLOCK_H
#define SYS_CLOCK_H

#include "base/err.h"

enum { CLOCK_BOOT_ID_BYTES = 37 }; /* a UUID as text with its NUL */

struct clock_ops {
    int64_t (*wall_us)(void *ctx); /* since 1970, UTC */
    int64_t (*mono_us)(void *ctx);
    int64_t (*boot_us)(void *ctx); /* as mono, plus the time the machine was suspended */
    int (*boot_id)(void *ctx, char out[CLOCK_BOOT_ID_BYTES], struct err *err);
};

/* From now on every caller gets these; NULL gives the machine's own clocks back. */
void clock_use(const struct clock_ops *ops, void *ctx);

int64_t clock_wall_us(void);
int64_t clock_mono_us(void);
int64_t clock_boot_us(void);

/* Changes with every start of the machine. */
int clock_boot_id(char out[CLOCK_BOOT_ID_BYTES], struct err *err);

static inline int64_t clock_wall_s(void)
{
    return clock_wall_us() / 1000000;
}

#endif
