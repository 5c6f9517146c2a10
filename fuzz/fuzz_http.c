/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1 requests: whatever comes, in whatever pieces, is refused or read, and reading it again gives the same.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "spurrestd/http.h"

static void check_head(const struct http_head *head)
{
    for (size_t i = 0; i < head->field_count; i++) {
        if (!http_is_token(head->fields[i].name) || !http_is_field_value(head->fields[i].value))
            abort();
    }
    if (head->chunked && head->has_length)
        abort();
    if (!head->target.len)
        abort();
}

static void check_body(const char *bytes, size_t len)
{
    enum { MOST = 4096 };
    struct http_chunks whole = { 0 }, pieces = { 0 };
    struct str one = { 0 }, two = { 0 };
    size_t used = 0, at = 0;
    int status = http_chunks_take(&whole, bytes, len, &one, MOST, &used), other = 0;

    while (at < len && !other && pieces.state != CHUNK_DONE) {
        size_t took;
        other = http_chunks_take(&pieces, bytes + at, 1, &two, MOST, &took);
        at += took;
    }
    if (status != other || whole.state != pieces.state || one.len > MOST)
        abort();
    if (!status && (one.len != two.len || (one.len && memcmp(one.data, two.data, one.len) != 0)))
        abort();
    str_done(&one);
    str_done(&two);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct http_head head;
    const char *why = "";
    size_t at = 0, step = 0;
    long end = http_head_scan(text, size, &at), bit_by_bit = 0;

    for (size_t len = 0; len <= size && bit_by_bit == 0; len++)
        bit_by_bit = http_head_scan(text, len, &step);
    if ((end > 0) != (bit_by_bit > 0) || (end > 0 && end != bit_by_bit))
        abort();
    if (end > 0 && http_head_read(text, (size_t)end, &head, &why) == 0) {
        check_head(&head);
        if (head.chunked)
            check_body(text + end, size - (size_t)end);
    }
    struct str out = { 0 };
    http_decode((struct span){ text, size }, size % 2, &out);
    str_done(&out);
    return 0;
}
