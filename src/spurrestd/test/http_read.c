/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_read.c - requests from standard input, each behind its length, as http.c reads them; for t/t70-rest/oracle.t
 *
 * Methods that we have no name for are left out: llhttp knows a list of its own.
 * "ok" 0x1f target 0x1f body (0x1f name 0x1d value)* 0x1e for one that is taken whole, "no" 0x1e else.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spurrestd/http.h"

static void put(struct span text)
{
    fwrite(text.ptr, 1, text.len, stdout);
}

static bool read_body(const struct http_head *head, const char *bytes, size_t len, struct str *out)
{
    struct http_chunks chunks = { 0 };
    size_t used;

    if (head->chunked)
        return http_chunks_take(&chunks, bytes, len, out, LIMIT_HTTP_BODY, &used) == 0 &&
               chunks.state == CHUNK_DONE;
    if (head->length > len)
        return false;
    str_add_len(out, bytes, (size_t)head->length);
    return true;
}

static void read_one(const char *bytes, size_t len)
{
    struct http_head head;
    struct str body = { 0 };
    const char *why;
    size_t at = 0;
    long end = http_head_scan(bytes, len, &at);

    if (end > 0 && http_head_read(bytes, (size_t)end, &head, &why) == 0 &&
        head.method != HTTP_OTHER && !head.scheme_host.len &&
        read_body(&head, bytes + end, len - (size_t)end, &body)) {
        fputs("ok\x1f", stdout);
        put(head.target);
        putchar(0x1f);
        put((struct span){ str_text(&body), body.len });
        for (size_t i = 0; i < head.field_count; i++) {
            putchar(0x1f);
            for (size_t k = 0; k < head.fields[i].name.len; k++) {
                char c = head.fields[i].name.ptr[k];
                putchar(c >= 'A' && c <= 'Z' ? c + 32 : c);
            }
            putchar(0x1d);
            put(head.fields[i].value);
        }
    } else {
        fputs("no", stdout);
    }
    putchar(0x1e);
    str_done(&body);
}

int main(void)
{
    uint32_t len;

    while (fread(&len, sizeof(len), 1, stdin) == 1 && len <= LIMIT_HTTP_BODY) {
        char *bytes = malloc(len + 1);
        if (!bytes || fread(bytes, 1, len, stdin) != len)
            return 1;
        read_one(bytes, len);
        free(bytes);
    }
    return 0;
}
