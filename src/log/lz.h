/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz.h - quick compression of batches
 *
 * Submissions that travel together bring nearly the same environment each, so most of a batch is a
 * repetition of what stands a few KB before it. The blocks are those of the public LZ4 block format:
 * literals and back-references of at most 64 KB, no entropy coding.
 */
#ifndef LOG_LZ_H
#define LOG_LZ_H

#include "base/str.h"

/* Appends the block to `out`. False, and nothing appended, when it would not be smaller. */
bool lz_compress(const void *bytes, size_t len, struct str *out);
/* Appends exactly `len` bytes to `out`; false when the block is not one of that many. */
bool lz_expand(const void *block, size_t block_len, size_t len, struct str *out);

#endif
