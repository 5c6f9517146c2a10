/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz.h - quick compression of blocks
 *
 * For batches of submissions, which bring nearly the same environment each, and for files that are
 * copied to nodes. The blocks are those of the public LZ4 block format: literals and back-references
 * of at most 64 KB, no entropy coding.
 */
#ifndef BASE_LZ_H
#define BASE_LZ_H

#include "base/str.h"

/* Appends the block to `out`. False, and nothing appended, when it would not be smaller. */
bool lz_compress(const void *bytes, size_t len, struct str *out);
/* Appends exactly `len` bytes to `out`; false when the block is not one of that many. */
bool lz_expand(const void *block, size_t block_len, size_t len, struct str *out);

#endif
