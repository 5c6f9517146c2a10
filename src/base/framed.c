/* SPDX-License-Identifier: Apache-2.0 */
/*
 * framed.c - messages on a stream, each with its length before it
 */
#include "base/framed.h"

#include <string.h>

uint8_t *framed_add(struct str *out, size_t len)
{
    str_reserve(out, FRAMED_HEAD_BYTES + len);
    for (unsigned i = 0; i < FRAMED_HEAD_BYTES; i++)
        str_add_char(out, (char)(len >> (8 * i) & 0xff));
    str_add_fill(out, 0, len);
    return (uint8_t *)out->data + out->len - len;
}

static size_t head(const struct str *in)
{
    size_t len = 0;

    for (unsigned i = 0; i < FRAMED_HEAD_BYTES; i++)
        len |= (size_t)(uint8_t)in->data[i] << (8 * i);
    return len;
}

int framed_next(const struct str *in, size_t max, struct span *out)
{
    if (in->len < FRAMED_HEAD_BYTES)
        return 0;
    size_t len = head(in);
    if (len > max)
        return -1;
    if (in->len < FRAMED_HEAD_BYTES + len)
        return 0;
    *out = (struct span){ .ptr = in->data + FRAMED_HEAD_BYTES, .len = len };
    return 1;
}

void framed_drop(struct str *in)
{
    size_t whole = FRAMED_HEAD_BYTES + head(in);

    memmove(in->data, in->data + whole, in->len - whole);
    str_truncate(in, in->len - whole);
}
