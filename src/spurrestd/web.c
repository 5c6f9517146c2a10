/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web.c - serves the files of the web page
 *
 * (1) The content security policy lets the browser run only what comes from here: text of users
 *     (names, logs) can never run as a script.
 * (2) The files are public. What a person may see is decided where /api/v1 is answered.
 */
#include "spurrestd/web.h"

#include <string.h>

#include "spurrestd/exchange.h"

static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

static const struct web_file *find(const char *path)
{
    if (strcmp(path, "/") == 0)
        path = "/index.html";
    for (size_t i = 0; i < web_file_count; i++) {
        if (strcmp(web_files[i].path, path) == 0)
            return &web_files[i];
    }
    return NULL;
}

static bool takes_gzip(struct exchange *x)
{
    const char *cursor = exchange_field(x, "Accept-Encoding");
    struct span word;

    while (cursor && str_next(&cursor, ", ", &word)) {
        if (span_ieq(word, "gzip"))
            return true;
    }
    return false;
}

bool web_serve(struct exchange *x)
{
    const struct web_file *file = find(x->path);
    struct str body = { 0 };

    if (!file || (x->method != HTTP_GET && x->method != HTTP_HEAD))
        return false;
    const char *known = exchange_field(x, "If-None-Match");
    exchange_header(x, "X-Content-Type-Options", "nosniff");
    exchange_header(x, "Content-Security-Policy", policy); /* (1) */
    exchange_header(x, "Referrer-Policy", "no-referrer");
    exchange_header(x, "Cache-Control", "no-cache"); /* asked again, and answered with 304 */
    exchange_header(x, "ETag", file->etag);
    exchange_header(x, "Vary", "Accept-Encoding");
    if (known && strcmp(known, file->etag) == 0) {
        exchange_reply(x, 304, file->type, &body);
        return true;
    }
    if (takes_gzip(x)) {
        exchange_header(x, "Content-Encoding", "gzip");
        str_add_len(&body, file->gzip, file->gzip_len);
    } else {
        str_add_len(&body, file->plain, file->plain_len);
    }
    exchange_reply(x, 200, file->type, &body);
    return true;
}
