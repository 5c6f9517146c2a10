/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http.h - strict reading of HTTP/1.1 requests, without I/O
 *
 * What two programs could read in two ways is refused (decision 39): a NUL, a carriage return or line feed that
 * does not end a line together with the other, a line that begins with a blank, a blank before the colon,
 * Content-Length together with Transfer-Encoding, two of either, a transfer coding other than chunked.
 *
 * The caller collects bytes until http_head_scan() says that the header block is whole, and then reads it.
 * Spans point into the block.
 */
#ifndef SPURRESTD_HTTP_H
#define SPURRESTD_HTTP_H

#include "base/limits.h"
#include "base/str.h"

enum http_method {
    HTTP_GET = 1,
    HTTP_HEAD = 2,
    HTTP_POST = 4,
    HTTP_DELETE = 8,
    HTTP_PUT = 16,
    HTTP_PATCH = 32,
    HTTP_OPTIONS = 64,
    HTTP_OTHER = 128,
};

struct http_field {
    struct span name, value; /* the value without blanks around it */
};

struct http_head {
    enum http_method method;
    struct span target;      /* begins with '/'; or "*" */
    struct span scheme_host; /* of a target in absolute form; else empty */
    unsigned minor;          /* HTTP/1.0 or 1.1 */
    struct http_field fields[LIMIT_HTTP_FIELDS];
    size_t field_count;
    bool keep_alive, chunked, expect_continue, has_length;
    uint64_t length;
};

/*
 * Looks at bytes from *at on and moves it. Positive: the block is whole and so long; 0: more is needed;
 * negative: it can never become a request.
 */
long http_head_scan(const char *bytes, size_t len, size_t *at);

/* Reads a whole block. 0, or the status to refuse it with; *why is a sentence then. */
int http_head_read(const char *block, size_t len, struct http_head *out, const char **why);

/* The value of a field that may come once; {NULL, 0}: absent. Several: *twice (may be NULL) is set. */
struct span http_field(const struct http_head *head, const char *name, bool *twice);

enum http_method http_method_read(struct span text);
const char *http_method_name(enum http_method method); /* of one bit */
bool http_is_token(struct span text);
bool http_is_field_value(struct span text);
/* "host", "host:port", "[::1]:port": characters that a host may have, and nothing else. */
bool http_is_host(struct span text);

/* ---- a chunked body ---- */

struct http_chunks {
    enum {
        CHUNK_SIZE,
        CHUNK_SIZE_LF,
        CHUNK_DATA,
        CHUNK_DATA_CR,
        CHUNK_DATA_LF,
        CHUNK_END_CR,
        CHUNK_END_LF,
        CHUNK_DONE,
    } state;
    unsigned digits; /* of the size */
    uint64_t left;
};

/*
 * Takes bytes of the body: data goes to `body`, at most `most` in all. Sets *used. 0, or the status to refuse
 * it with. The body is whole when state is CHUNK_DONE; extensions and trailers are refused:
 * parsers differ in what they take of them, and nobody sends any.
 */
int http_chunks_take(struct http_chunks *chunks, const char *bytes, size_t len, struct str *body,
                     size_t most, size_t *used);

/* ---- targets ---- */

/*
 * Decodes %XX of one segment or value into `out`; '+' is a blank in a query. False: not hexadecimal, a NUL, a
 * control character, not UTF-8; in a path also an encoded slash.
 */
bool http_decode(struct span text, bool query, struct str *out);

const char *http_reason(int status); /* "Not Found" */

#endif
