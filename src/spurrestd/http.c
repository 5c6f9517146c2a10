/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http.c - strict reading of HTTP/1.1 requests
 */
#include "spurrestd/http.h"

#include <string.h>

static const struct {
    enum http_method method;
    const char *name;
} methods[] = {
    { HTTP_GET, "GET" },         { HTTP_HEAD, "HEAD" }, { HTTP_POST, "POST" },
    { HTTP_DELETE, "DELETE" },   { HTTP_PUT, "PUT" },   { HTTP_PATCH, "PATCH" },
    { HTTP_OPTIONS, "OPTIONS" },
};

static const struct {
    int status;
    const char *text;
} reasons[] = {
    { 200, "OK" },
    { 201, "Created" },
    { 204, "No Content" },
    { 304, "Not Modified" },
    { 400, "Bad Request" },
    { 401, "Unauthorized" },
    { 403, "Forbidden" },
    { 404, "Not Found" },
    { 405, "Method Not Allowed" },
    { 406, "Not Acceptable" },
    { 408, "Request Timeout" },
    { 409, "Conflict" },
    { 413, "Content Too Large" },
    { 414, "URI Too Long" },
    { 415, "Unsupported Media Type" },
    { 417, "Expectation Failed" },
    { 421, "Misdirected Request" },
    { 422, "Unprocessable Content" },
    { 429, "Too Many Requests" },
    { 431, "Request Header Fields Too Large" },
    { 500, "Internal Server Error" },
    { 501, "Not Implemented" },
    { 503, "Service Unavailable" },
    { 504, "Gateway Timeout" },
    { 505, "HTTP Version Not Supported" },
    { 507, "Insufficient Storage" },
};

const char *http_reason(int status)
{
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
        if (reasons[i].status == status)
            return reasons[i].text;
    }
    return "Unknown";
}

enum http_method http_method_read(struct span text)
{
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        if (span_eq(text, methods[i].name))
            return methods[i].method;
    }
    return HTTP_OTHER;
}

const char *http_method_name(enum http_method method)
{
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        if (methods[i].method == method)
            return methods[i].name;
    }
    return "";
}

static bool is_tchar(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

bool http_is_token(struct span text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (!is_tchar(text.ptr[i]))
            return false;
    }
    return text.len > 0;
}

bool http_is_field_value(struct span text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if ((c < ' ' && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

bool http_is_host(struct span text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              (c && strchr("-._~:[]%", c))))
            return false;
    }
    return text.len > 0 && text.len <= LIMIT_HOST_NAME + 8;
}

/* One pass over every byte, so that what is refused is refused as soon as it is there. */
long http_head_scan(const char *bytes, size_t len, size_t *at)
{
    for (size_t i = *at; i < len; i++) {
        unsigned char c = (unsigned char)bytes[i];

        if (c == '\r') {
            if (i + 1 == len) { /* what follows decides */
                *at = i;
                return 0;
            }
            if (bytes[i + 1] != '\n')
                return -1;
        } else if (c == '\n') {
            if (i == 0 || bytes[i - 1] != '\r')
                return -1;
            if (i == 1) /* no request begins with an empty line */
                return -1;
            if (i >= 3 && bytes[i - 2] == '\n')
                return (long)i + 1;
        } else if ((c < ' ' && c != '\t') || c == 0x7f) {
            return -1;
        }
    }
    *at = len;
    return 0;
}

static struct span trim(struct span text)
{
    while (text.len && (text.ptr[0] == ' ' || text.ptr[0] == '\t')) {
        text.ptr++;
        text.len--;
    }
    while (text.len && (text.ptr[text.len - 1] == ' ' || text.ptr[text.len - 1] == '\t'))
        text.len--;
    return text;
}

static int refuse(const char **why, int status, const char *text)
{
    *why = text;
    return status;
}

/* "http://host/path" is the other form that a server must take; what counts is the path. */
static int read_target(struct span text, struct http_head *out, const char **why)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c <= ' ' || c >= 0x7f || strchr("\"<>\\^`{|}#", c))
            return refuse(why, 400, "The request target has a character that no URL has");
    }
    if (text.len > LIMIT_HTTP_TARGET)
        return refuse(why, 414, "The request target is too long");
    if (text.len && text.ptr[0] == '/') {
        out->target = text;
        return 0;
    }
    if (span_eq(text, "*")) {
        out->target = text;
        return out->method == HTTP_OPTIONS ? 0 : refuse(why, 400, "The request target is '*'");
    }
    size_t scheme = text.len > 7 && strncmp(text.ptr, "http://", 7) == 0    ? 7
                    : text.len > 8 && strncmp(text.ptr, "https://", 8) == 0 ? 8
                                                                            : 0;
    const char *slash = scheme ? memchr(text.ptr + scheme, '/', text.len - scheme) : NULL;
    if (!slash)
        return refuse(why, 400, "The request target does not begin with '/'");
    out->scheme_host = (struct span){ text.ptr + scheme, (size_t)(slash - text.ptr) - scheme };
    out->target = (struct span){ slash, text.len - (size_t)(slash - text.ptr) };
    return http_is_host(out->scheme_host) ? 0 : refuse(why, 400, "The request target has no host");
}

static int read_request_line(struct span line, struct http_head *out, const char **why)
{
    const char *first = memchr(line.ptr, ' ', line.len);
    const char *last = memrchr(line.ptr, ' ', line.len);

    if (!first || first == last || memchr(first + 1, ' ', (size_t)(last - first - 1)) ||
        memchr(line.ptr, '\t', line.len))
        return refuse(why, 400, "The request line is not METHOD TARGET VERSION");
    struct span method = { line.ptr, (size_t)(first - line.ptr) };
    struct span target = { first + 1, (size_t)(last - first - 1) };
    struct span version = { last + 1, line.len - (size_t)(last + 1 - line.ptr) };
    if (!http_is_token(method))
        return refuse(why, 400, "The method is not a word");
    out->method = http_method_read(method);
    if (span_eq(version, "HTTP/1.1"))
        out->minor = 1;
    else if (!span_eq(version, "HTTP/1.0"))
        return version.len == 8 && strncmp(version.ptr, "HTTP/", 5) == 0
                   ? refuse(why, 505, "Only HTTP/1.1, HTTP/1.0 and HTTP/2 are spoken here")
                   : refuse(why, 400, "The request line does not end with a version of HTTP");
    return read_target(target, out, why);
}

static int read_field(struct span line, struct http_head *out, const char **why)
{
    const char *colon = memchr(line.ptr, ':', line.len);

    if (line.len && (line.ptr[0] == ' ' || line.ptr[0] == '\t'))
        return refuse(why, 400, "A header line begins with a blank");
    if (!colon)
        return refuse(why, 400, "A header line has no colon");
    struct span name = { line.ptr, (size_t)(colon - line.ptr) };
    if ((span_ieq(name, "Transfer-Encoding") || span_ieq(name, "Content-Length")) &&
        memchr(line.ptr, '\t', line.len))
        return refuse(why, 400, "A header field that says how long the body is has a tab");
    if (out->field_count == LIMIT_HTTP_FIELDS)
        return refuse(why, 431, "There are too many header fields");
    struct http_field *field = &out->fields[out->field_count++];
    field->name = name;
    field->value = trim((struct span){ colon + 1, line.len - (size_t)(colon + 1 - line.ptr) });
    return http_is_token(field->name)
               ? 0
               : refuse(why, 400, "The name of a header field is not a word");
}

struct span http_field(const struct http_head *head, const char *name, bool *twice)
{
    struct span found = { 0 };
    bool any = false;

    for (size_t i = 0; i < head->field_count; i++) {
        if (!span_ieq(head->fields[i].name, name))
            continue;
        if (any && twice)
            *twice = true;
        if (!any)
            found = head->fields[i].value.ptr ? head->fields[i].value : (struct span){ "", 0 };
        any = true;
    }
    return found;
}

static bool has_word(const struct http_head *head, const char *name, const char *word)
{
    for (size_t i = 0; i < head->field_count; i++) {
        struct span value = head->fields[i].value;
        if (!span_ieq(head->fields[i].name, name))
            continue;
        while (value.len) {
            const char *comma = memchr(value.ptr, ',', value.len);
            size_t len = comma ? (size_t)(comma - value.ptr) : value.len;
            if (span_ieq(trim((struct span){ value.ptr, len }), word))
                return true;
            value.ptr += len + (comma ? 1 : 0);
            value.len -= len + (comma ? 1 : 0);
        }
    }
    return false;
}

static bool read_length(struct span text, uint64_t *out)
{
    char digits[20];

    if (!text.len || text.len >= sizeof(digits))
        return false;
    memcpy(digits, text.ptr, text.len);
    digits[text.len] = '\0';
    return strspn(digits, "0123456789") == text.len && str_to_u64(digits, INT64_MAX, out);
}

/* How long the body is, and whether the connection goes on after it. */
static int read_framing(struct http_head *out, const char **why)
{
    bool twice = false;
    struct span host = http_field(out, "Host", &twice);
    struct span length = http_field(out, "Content-Length", &twice);
    struct span coding = http_field(out, "Transfer-Encoding", &twice);
    struct span expect = http_field(out, "Expect", &twice);

    if (twice)
        return refuse(why, 400, "A header field that may come once comes twice");
    if (out->minor == 1 && !host.ptr)
        return refuse(why, 400, "There is no Host");
    if (host.ptr && !http_is_host(host))
        return refuse(why, 400, "The Host is not one");
    if (coding.ptr && (length.ptr || out->minor == 0))
        return refuse(why, 400, "Transfer-Encoding comes with Content-Length or HTTP/1.0");
    if (coding.ptr && !span_ieq(coding, "chunked"))
        return refuse(why, 501, "The only transfer coding here is chunked");
    if (length.ptr && !read_length(length, &out->length))
        return refuse(why, 400, "The Content-Length is not a number");
    if (expect.ptr && !span_ieq(expect, "100-continue"))
        return refuse(why, 417, "The only expectation here is 100-continue");
    out->chunked = coding.ptr != NULL;
    out->has_length = length.ptr != NULL;
    out->expect_continue = expect.ptr != NULL && out->minor == 1;
    out->keep_alive = out->minor == 1 ? !has_word(out, "Connection", "close")
                                      : has_word(out, "Connection", "keep-alive");
    return 0;
}

int http_head_read(const char *block, size_t len, struct http_head *out, const char **why)
{
    const char *at = block, *end = block + len;
    int status = 0;

    *out = (struct http_head){ 0 };
    for (bool first = true; at < end && !status; first = false) {
        const char *eol = memchr(at, '\r', (size_t)(end - at));
        struct span line = { at, eol ? (size_t)(eol - at) : (size_t)(end - at) };

        at += line.len + 2;
        if (first)
            status = read_request_line(line, out, why);
        else if (line.len)
            status = read_field(line, out, why);
    }
    return status ? status : read_framing(out, why);
}

/* ---- a chunked body ---- */

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static int chunk_size(struct http_chunks *chunks, char c)
{
    int digit = hex(c);

    if (digit >= 0) {
        if (++chunks->digits > 15)
            return 413;
        chunks->left = chunks->left * 16 + (unsigned)digit;
        return 0;
    }
    if (!chunks->digits)
        return 400;
    chunks->state = CHUNK_SIZE_LF;
    return c == '\r' ? 0 : 400;
}

static int expect_char(struct http_chunks *chunks, char c, char wanted, int next)
{
    if (c != wanted)
        return 400;
    chunks->state = next;
    return 0;
}

static int chunk_char(struct http_chunks *chunks, char c)
{
    switch (chunks->state) {
    case CHUNK_SIZE:
        return chunk_size(chunks, c);
    case CHUNK_SIZE_LF:
        return expect_char(chunks, c, '\n', chunks->left ? CHUNK_DATA : CHUNK_END_CR);
    case CHUNK_DATA_CR:
        return expect_char(chunks, c, '\r', CHUNK_DATA_LF);
    case CHUNK_DATA_LF:
        chunks->digits = 0;
        return expect_char(chunks, c, '\n', CHUNK_SIZE);
    case CHUNK_END_CR:
        return expect_char(chunks, c, '\r', CHUNK_END_LF);
    case CHUNK_END_LF:
        return expect_char(chunks, c, '\n', CHUNK_DONE);
    default:
        return 400;
    }
}

int http_chunks_take(struct http_chunks *chunks, const char *bytes, size_t len, struct str *body,
                     size_t most, size_t *used)
{
    size_t at = 0;
    int status = 0;

    while (at < len && chunks->state != CHUNK_DONE && !status) {
        if (chunks->state != CHUNK_DATA) {
            status = chunk_char(chunks, bytes[at++]);
            if (!status && chunks->left > most - body->len)
                status = 413;
            continue;
        }
        size_t part = (size_t)MIN(chunks->left, (uint64_t)(len - at));
        str_add_len(body, bytes + at, part);
        at += part;
        chunks->left -= part;
        if (!chunks->left)
            chunks->state = CHUNK_DATA_CR;
    }
    *used = at;
    return status;
}

/* ---- targets ---- */

bool http_decode(struct span text, bool query, struct str *out)
{
    size_t begin = out->len;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '%') {
            int high = i + 2 < text.len ? hex(text.ptr[i + 1]) : -1;
            int low = i + 2 < text.len ? hex(text.ptr[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            c = (char)(high * 16 + low);
            i += 2;
            if (!query && c == '/')
                return false;
        } else if (query && c == '+') {
            c = ' ';
        }
        if ((unsigned char)c < ' ' || c == 0x7f)
            return false;
        str_add_char(out, c);
    }
    return str_is_utf8(str_text(out) + begin);
}
