/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that two programs could read in two ways are refused; the others are read whole. */
#include "test/unit.h"

#include "spurrestd/http.h"

/* The status that a request gets: 0 when it is taken, -1 when its head never becomes whole. */
static int status_of(const char *text, size_t len, struct http_head *head)
{
    const char *why = NULL;
    size_t at = 0;
    long end = http_head_scan(text, len, &at);

    if (end == 0)
        return -1;
    if (end < 0)
        return 400;
    int status = http_head_read(text, (size_t)end, head, &why);
    assert_true(status == 0 || (why && *why));
    return status;
}

#define H       "Host: a\r\n"
#define N(text) text, sizeof(text) - 1

static void refuses_what_is_not_clear(void **state)
{
    static const struct {
        const char *text;
        size_t len;
        int status;
    } bad[] = {
        { N("GET / HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n"), 400 },
        { N("GET / HTTP/1.1\rHost: a\r\n\r\n"), 400 },
        { N("GET / HTTP/1.1\nHost: a\n\n"), 400 },
        { N("GET / HTTP/1.1\r\nHost: a\n\r\n"), 400 },
        { N("GET / HTTP/1.1\r\nHost: a\r\n Content-Length: 5\r\n\r\n"), 400 },
        { N("GET / HTTP/1.1\r\n\tX: 1\r\nHost: a\r\n\r\n"), 400 },
        { N("GET / HTTP/1.1\r\nHost : a\r\n\r\n"), 400 },
        { N("GET / HTTP/1.1\r\n" H "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
          400 },
        { N("GET / HTTP/1.1\r\n" H "Content-Length: 1\r\nContent-Length: 1\r\n\r\n"), 400 },
        { N("GET / HTTP/1.1\r\n" H "Content-Length: 1, 1\r\n\r\n"), 400 },
        { N("GET / HTTP/1.1\r\n" H "Content-Length: +1\r\n\r\n"), 400 },
        { N("GET / HTTP/1.1\r\n" H "Content-Length: 0x1\r\n\r\n"), 400 },
        { N("GET / HTTP/1.1\r\n" H "Content-Length:\r\n\r\n"), 400 },
        { N("GET / HTTP/1.1\r\n" H "Content-Length: 99999999999999999999\r\n\r\n"), 400 },
        { N("GET / HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n"), 501 },
        { N("GET / HTTP/1.1\r\n" H "Transfer-Encoding: xchunked\r\n\r\n"), 501 },
        { N("GET / HTTP/1.1\r\n" H
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
          400 },
        { N("GET / HTTP/1.0\r\n" H "Transfer-Encoding: chunked\r\n\r\n"), 400 },
        { N("GET / HTTP/1.1\r\n\r\n"), 400 },
        { N("GET / HTTP/1.1\r\n" H H "\r\n"), 400 },
        { N("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"), 400 },
        { N("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"), 400 },
        { N("GET  / HTTP/1.1\r\n" H "\r\n"), 400 },
        { N("GET /a b HTTP/1.1\r\n" H "\r\n"), 400 },
        { N("GET\t/ HTTP/1.1\r\n" H "\r\n"), 400 },
        { N("GET /#a HTTP/1.1\r\n" H "\r\n"), 400 },
        { N("GET /\x80 HTTP/1.1\r\n" H "\r\n"), 400 },
        { N("GET a HTTP/1.1\r\n" H "\r\n"), 400 },
        { N("GET * HTTP/1.1\r\n" H "\r\n"), 400 },
        { N("G@T / HTTP/1.1\r\n" H "\r\n"), 400 },
        { N("GET / HTTP/2.0\r\n" H "\r\n"), 505 },
        { N("GET / http/1.1\r\n" H "\r\n"), 400 },
        { N("GET / HTTP/1.12\r\n" H "\r\n"), 400 },
        { N("GET /\r\n\r\n"), 400 },
        { N("\r\nGET / HTTP/1.1\r\n" H "\r\n"), 400 },
        { N("GET / HTTP/1.1\r\n" H "no colon\r\n\r\n"), 400 },
        { N("GET / HTTP/1.1\r\n" H ": no name\r\n\r\n"), 400 },
        { N("GET / HTTP/1.1\r\n" H "Expect: tea\r\n\r\n"), 417 },
        { N("GET / HTTP/1.1\r\n" H "X: \x7f\r\n\r\n"), 400 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct http_head head;
        int status = status_of(bad[i].text, bad[i].len, &head);
        if (status != bad[i].status)
            fail_msg("%s: %d instead of %d", bad[i].text, status, bad[i].status);
    }
}

static void reads_what_is_clear(void **state)
{
    static const char text[] =
        "POST http://h:1/a?b=c HTTP/1.1\r\nhOST: h:1\r\nX-A:  two words \t\r\n"
        "Content-Length: 12\r\nConnection: foo, Close\r\nX-Empty:\r\n\r\n";
    struct http_head head;

    (void)state;
    assert_int_equal(status_of(text, sizeof(text) - 1, &head), 0);
    assert_int_equal(head.method, HTTP_POST);
    assert_true(span_eq(head.target, "/a?b=c"));
    assert_true(span_eq(http_field(&head, "x-a", NULL), "two words"));
    assert_true(http_field(&head, "X-Empty", NULL).ptr != NULL);
    assert_null(http_field(&head, "X-None", NULL).ptr);
    assert_int_equal(head.length, 12);
    assert_false(head.keep_alive);
    assert_int_equal(status_of("GET / HTTP/1.0\r\n\r\n", 18, &head), 0);
    assert_false(head.keep_alive);
}

/* However the bytes are cut, the end is found at the same place. */
static void scans_byte_by_byte(void **state)
{
    static const char text[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\nrest";
    size_t at = 0;
    long end = 0;

    (void)state;
    for (size_t len = 1; len < sizeof(text) && end == 0; len++)
        end = http_head_scan(text, len, &at);
    assert_int_equal(end, sizeof(text) - 1 - 4);
}

static int chunked(const char *text, size_t piece, struct str *body)
{
    struct http_chunks chunks = { 0 };
    size_t len = strlen(text), used;

    str_clear(body);
    for (size_t at = 0; at < len && chunks.state != CHUNK_DONE; at += used) {
        int status = http_chunks_take(&chunks, text + at, MIN(piece, len - at), body, 100, &used);
        if (status)
            return status;
        assert_true(used > 0);
    }
    return chunks.state == CHUNK_DONE ? 0 : -1;
}

static void joins_chunks(void **state)
{
    static const struct {
        const char *text;
        int status;
        const char *body;
    } rows[] = {
        { "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", 0, "abcde" },
        { "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n", 400, NULL },
        { "0\r\nTrailer: 1\r\n\r\n", 400, NULL },
        { "0\r\n\r\n", 0, "" },
        { "3\r\nabc\r\n", -1, "abc" },
        { "3\nabc\r\n0\r\n\r\n", 400, NULL },
        { "3 \r\nabc\r\n0\r\n\r\n", 400, NULL },
        { "\r\nabc\r\n0\r\n\r\n", 400, NULL },
        { "3\r\nabcd\r\n0\r\n\r\n", 400, NULL },
        { "3\r\nabc\n0\r\n\r\n", 400, NULL },
        { "-1\r\n", 400, NULL },
        { "0x3\r\nabc\r\n", 400, NULL },
        { "0\r\n X: 1\r\n\r\n", 400, NULL },
        { "0\r\nX : 1\r\n\r\n", 400, NULL },
        { "0\r\nX\r\n\r\n", 400, NULL },
        { "65\r\n", 413, NULL },
        { "ffffffffffffffffff\r\n", 413, NULL },
    };
    struct str body = { 0 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (size_t piece = 1; piece < 40; piece++) {
            assert_int_equal(chunked(rows[i].text, piece, &body), rows[i].status);
            if (rows[i].body)
                assert_string_equal(str_text(&body), rows[i].body);
        }
    }
    str_done(&body);
}

static void decodes_targets(void **state)
{
    static const struct {
        const char *text;
        bool query;
        const char *out; /* NULL: refused */
    } rows[] = {
        { "a%20b", false, "a b" }, { "a+b", false, "a+b" },
        { "a+b", true, "a b" },    { "%C3%A4", false, "\xc3\xa4" },
        { "%2F", false, NULL },    { "%2f", true, "/" },
        { "%00", true, NULL },     { "%0a", true, NULL },
        { "%", true, NULL },       { "%4", true, NULL },
        { "%4g", true, NULL },     { "%ff", false, NULL },
        { "%C0%AF", false, NULL },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct str out = { 0 };
        bool good =
            http_decode((struct span){ rows[i].text, strlen(rows[i].text) }, rows[i].query, &out);
        assert_int_equal(good, rows[i].out != NULL);
        if (good)
            assert_string_equal(str_text(&out), rows[i].out);
        str_done(&out);
    }
}

UNIT_MAIN(UNIT(refuses_what_is_not_clear), UNIT(reads_what_is_clear), UNIT(scans_byte_by_byte),
          UNIT(joins_chunks), UNIT(decodes_targets))
