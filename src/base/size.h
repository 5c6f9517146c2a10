/* SPDX-License-Identifier: Apache-2.0 */
/*
 * size.h - amounts of memory and counts, as Slurm's users write and read them
 *
 * A unit is 1024 of the one below, for memory and for counts: --mem=4G, --nodes=2k, --gres=x:1k and
 * what the commands print all agree on that. Only burst buffer capacities know decimal units.
 * Writing uses integers alone and rounds as printf("%.2f") does, halves to even.
 */
#ifndef BASE_SIZE_H
#define BASE_SIZE_H

#include "base/err.h"
#include "base/str.h"

enum size_unit { SIZE_ONE, SIZE_K, SIZE_M, SIZE_G, SIZE_T, SIZE_P, SIZE_E };

/*
 * Memory: "500" (in `unit`, megabytes for --mem), "4G", "4g", "4GB", "4GiB", "0". Whole numbers
 * only, as in Slurm. ERR_RANGE above 2^63-1 bytes, ERR_INVALID for anything else.
 */
int size_read_memory(const char *text, enum size_unit unit, uint64_t *bytes, struct err *err);

/* Whole megabytes, part of one counted as one: --mem=500K asks for 1 MB. */
uint64_t size_megabytes(uint64_t bytes);

/*
 * A count with an optional k or m, 1024 and 1048576 as for --nodes. `step` is 1000 where decimal
 * units are meant. ERR_RANGE above `max`.
 */
enum size_step { SIZE_STEP_1024 = 1024, SIZE_STEP_1000 = 1000 };
int size_read_count(const char *text, uint64_t max, enum size_step step, uint64_t *count,
                    struct err *err);

/* "4" or "2-4", "1k-2k": --nodes. One number is both ends. ERR_INVALID when it runs backwards. */
int size_read_range(const char *text, uint64_t max, uint64_t *low, uint64_t *high, struct err *err);

/*
 * "1,3,5-9" or "1-15:4" (every fourth): --nodes. The numbers in ascending order, each once, in memory that is
 * the caller's to free; none is 0, and there are no more of them than `max`.
 */
int size_read_list(const char *text, uint32_t max, uint32_t **out, size_t *count, struct err *err);

enum size_style {
    SIZE_EXACT,   /* 8000M, 62.50G, 4G: the largest unit that needs no rounding (Slurm's default) */
    SIZE_ROUNDED, /* 7.81G: the largest unit, two decimals when it is not whole */
    SIZE_NOCONVERT, /* 4096M: the unit it is kept in (--noconvert) */
    SIZE_RAW,       /* 4096: that, without the letter */
};
/* Writes `value`, which counts in `unit`. Nothing is "0", without a letter. */
void size_write(struct str *out, uint64_t value, enum size_unit unit, enum size_style style);

/* In one unit whatever it takes, "0.49G": sacct --units=G. */
void size_write_in(struct str *out, uint64_t value, enum size_unit unit, enum size_unit as);

/* 'G' or 'g' to SIZE_G, false for what is no unit. */
bool size_unit_from(char letter, enum size_unit *unit);

#endif
