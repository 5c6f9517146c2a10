/* SPDX-License-Identifier: Apache-2.0 */
/*
 * framed.h - messages on a stream, each with its length before it: four bytes, lowest first
 */
#ifndef BASE_FRAMED_H
#define BASE_FRAMED_H

#include "base/str.h"

enum { FRAMED_HEAD_BYTES = 4 };

/* Room for a message of `len` at the end of `out`, its length written. */
uint8_t *framed_add(struct str *out, size_t len);

/* 1: `out` is the first message in `in`; 0: it is not whole yet; -1: it is longer than `max`. */
int framed_next(const struct str *in, size_t max, struct span *out);
/* Takes that message out of `in`. */
void framed_drop(struct str *in);

#endif
