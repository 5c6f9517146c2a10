/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry.c - an image from a registry over plain HTTP, written as an OCI layout
 *
 * For registries on the machine or inside a cluster. What comes is not trusted: manifest.c and
 * image.c check every digest afterwards.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "container/image.h"
#include "sys/files.h"

enum { WAIT_S = 60, HEAD_BYTES = 64 * 1024, PIECE = 64 * 1024 };

struct where {
    char host[256], port[8], name[600], tag[160];
};

struct answer {
    int fd;
    int status;
    bool chunked, has_length;
    uint64_t length;
    struct str head; /* headers, then the first bytes of the body */
    size_t at;
};

static int parse_where(const char *source, struct where *out, struct err *err)
{
    const char *host = source + strlen("http://");
    const char *slash = strchr(host, '/');
    char text[600];

    if (!slash || slash == host || (size_t)(slash - host) >= sizeof(out->host) ||
        strlen(slash + 1) >= sizeof(text) || !slash[1])
        return err_set(err, ERR_INVALID, "'%s' is not http://HOST[:PORT]/NAME[:TAG]", source);
    snprintf(out->host, sizeof(out->host), "%.*s", (int)(slash - host), host);
    char *colon = strchr(out->host, ':');
    snprintf(out->port, sizeof(out->port), "%s", colon ? colon + 1 : "80");
    if (colon)
        *colon = '\0';
    snprintf(text, sizeof(text), "%s", slash + 1);
    char *at = strchr(text, '@'), *tag = at ? at : strrchr(text, ':');
    snprintf(out->tag, sizeof(out->tag), "%s", tag ? tag + 1 : "latest");
    if (tag)
        *tag = '\0';
    snprintf(out->name, sizeof(out->name), "%s", text);
    if (strpbrk(source, " \r\n\t?#") || strstr(source, ".."))
        return err_set(err, ERR_INVALID, "'%s' cannot name an image", source);
    return 0;
}

static int dial(const struct where *where, struct err *err)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list = NULL;
    struct timeval wait = { .tv_sec = WAIT_S };
    int fd = -1, code = getaddrinfo(where->host, where->port, &hints, &list);

    if (code)
        return err_set(err, ERR_UNREACHABLE, "%s: %s", where->host, gai_strerror(code));
    for (struct addrinfo *item = list; item && fd < 0; item = item->ai_next) {
        fd = socket(item->ai_family, item->ai_socktype | SOCK_CLOEXEC, item->ai_protocol);
        if (fd < 0)
            continue;
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
        if (connect(fd, item->ai_addr, item->ai_addrlen) < 0)
            file_close(&fd);
    }
    freeaddrinfo(list);
    if (fd < 0)
        return err_errno(err, errno, "%s:%s", where->host, where->port);
    return fd;
}

static int read_more(struct answer *answer, struct err *err)
{
    char bytes[PIECE];
    ssize_t got = recv(answer->fd, bytes, sizeof(bytes), 0);

    if (got < 0)
        return err_errno(err, errno, "reading from the registry");
    str_add_len(&answer->head, bytes, (size_t)got);
    return got > 0;
}

static void take_headers(struct answer *answer, const char *end)
{
    const char *line = answer->head.data;

    sscanf(line, "HTTP/1.%*c %d", &answer->status);
    while ((line = strstr(line, "\r\n")) && line < end) {
        line += 2;
        if (strncasecmp(line, "content-length:", 15) == 0) {
            answer->length = strtoull(line + 15, NULL, 10);
            answer->has_length = true;
        }
        if (strncasecmp(line, "transfer-encoding:", 18) == 0)
            answer->chunked = strncasecmp(line + 18 + strspn(line + 18, " "), "chunked", 7) == 0;
    }
}

static int ask(const struct where *where, const char *path, struct answer *out, struct err *err)
{
    CLEANUP(str_done) struct str text = { 0 };
    char *end = NULL;
    int code = 1;

    *out = (struct answer){ .fd = dial(where, err) };
    if (out->fd < 0)
        return out->fd;
    str_addf(
        &text,
        "GET /v2/%s/%s HTTP/1.1\r\nHost: %s:%s\r\nConnection: close\r\nUser-Agent: spur\r\n"
        "Accept: application/vnd.oci.image.index.v1+json, "
        "application/vnd.oci.image.manifest.v1+json, "
        "application/vnd.docker.distribution.manifest.list.v2+json, "
        "application/vnd.docker.distribution.manifest.v2+json, application/octet-stream\r\n\r\n",
        where->name, path, where->host, where->port);
    if (file_write_all(out->fd, text.data, text.len, err) < 0)
        return -(int)err->code;
    while (code > 0 && !(end = strstr(str_text(&out->head), "\r\n\r\n"))) {
        if (out->head.len > HEAD_BYTES)
            return err_set(err, ERR_TOO_LARGE, "the registry's headers have no end");
        code = read_more(out, err);
    }
    if (code < 0)
        return code;
    if (!end)
        return err_set(err, ERR_IO, "the registry hung up");
    take_headers(out, end);
    out->at = (size_t)(end - out->head.data) + 4;
    if (out->status != 200)
        return err_set(err, out->status == 404 ? ERR_NOT_FOUND : ERR_IO,
                       "http://%s:%s/v2/%s/%s: the registry says %d", where->host, where->port,
                       where->name, path, out->status);
    return 0;
}

static void answer_done(struct answer *answer)
{
    file_close(&answer->fd);
    str_done(&answer->head);
}

/* The next bytes of the body as they came; 0 is the end of the connection. */
static ssize_t raw(struct answer *answer, const char **bytes, struct err *err)
{
    if (answer->at == answer->head.len) {
        str_clear(&answer->head);
        answer->at = 0;
        int code = read_more(answer, err);
        if (code <= 0)
            return code;
    }
    *bytes = answer->head.data + answer->at;
    return (ssize_t)(answer->head.len - answer->at);
}

/* "1a3f\r\n" before each chunk, "\r\n" after it, 0 at the end. */
static int next_chunk(struct answer *answer, uint64_t *left, struct err *err)
{
    char line[32];
    size_t len = 0;

    for (;;) {
        const char *bytes;
        ssize_t got = raw(answer, &bytes, err);
        if (got <= 0 || len + 1 >= sizeof(line))
            return got < 0 ? (int)got : err_set(err, ERR_IO, "the registry's answer is cut off");
        answer->at++;
        if (*bytes == '\n' && len == 0)
            continue;
        if (*bytes == '\n')
            break;
        if (*bytes != '\r')
            line[len++] = *bytes;
    }
    line[len] = '\0';
    *left = strtoull(line, NULL, 16);
    return 0;
}

static int copy_body(struct answer *answer, int fd, uint64_t most, struct err *err)
{
    uint64_t left = answer->has_length ? answer->length : UINT64_MAX, total = 0;

    if (answer->chunked && next_chunk(answer, &left, err) < 0)
        return -(int)err->code;
    while (left) {
        const char *bytes;
        ssize_t got = raw(answer, &bytes, err);
        if (got < 0)
            return (int)got;
        if (got == 0 && !answer->chunked && !answer->has_length)
            return 0;
        if (got == 0)
            return err_set(err, ERR_IO, "the registry's answer is cut off");
        size_t take = (size_t)MIN((uint64_t)got, left);
        total += take;
        if (total > most)
            return err_set(err, ERR_TOO_LARGE, "the registry sends more than %llu bytes",
                           (unsigned long long)most);
        if (file_write_all(fd, bytes, take, err) < 0)
            return -(int)err->code;
        answer->at += take;
        left -= take;
        if (left == 0 && answer->chunked && next_chunk(answer, &left, err) < 0)
            return -(int)err->code;
    }
    return 0;
}

static int fetch(const struct where *where, const char *what, const char *to, uint64_t most,
                 struct err *err)
{
    CLEANUP(answer_done) struct answer answer;
    int code = ask(where, what, &answer, err);

    if (code < 0)
        return code;
    CLEANUP(file_close) int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    return fd < 0 ? err_errno(err, errno, "%s", to) : copy_body(&answer, fd, most, err);
}

/* Manifests are asked for by name or digest, kept by digest. */
static int fetch_manifest(const struct where *where, const char *ref, const char *dir, char hex[65],
                          struct str *text, struct err *err)
{
    CLEANUP(freep) char *what = mem_printf("manifests/%s", ref);
    CLEANUP(freep) char *fresh = mem_printf("%s/manifest", dir);
    uint8_t bytes[DIGEST_BYTES];

    str_clear(text);
    if (fetch(where, what, fresh, LIMIT_IMAGE_JSON, err) < 0 ||
        file_read(fresh, LIMIT_IMAGE_JSON, text, err) < 0)
        return -(int)err->code;
    digest_sha256(str_text(text), text->len, bytes);
    digest_hex(bytes, hex);
    if (str_starts(ref, "sha256:") && !str_eq(ref + 7, hex))
        return err_set(err, ERR_INVALID, "the registry sent another manifest than %s", ref);
    CLEANUP(freep) char *path = mem_printf("%s/blobs/sha256/%s", dir, hex);
    return rename(fresh, path) < 0 ? err_errno(err, errno, "%s", path) : 0;
}

struct bringing {
    const struct where *where;
    const char *dir;
};

/* What manifest.c looks for and does not find is the manifest of this machine's kind. */
static int bring_manifest(void *ctx, const char *name, struct err *err)
{
    const struct bringing *bringing = ctx;
    CLEANUP(freep) char *ref = mem_printf("sha256:%s", strrchr(name, '/') + 1);
    CLEANUP(str_done) struct str text = { 0 };
    char hex[DIGEST_HEX_BYTES];

    return fetch_manifest(bringing->where, ref, bringing->dir, hex, &text, err);
}

static int fetch_pieces(const struct where *where, const char *dir, struct err *err)
{
    struct bringing bringing = { .where = where, .dir = dir };
    CLEANUP(blobs_close) struct blobs blobs;
    CLEANUP(manifest_done) struct manifest manifest = { 0 };

    if (blobs_open(&blobs, dir, err) < 0)
        return -(int)err->code;
    blobs.bring = bring_manifest;
    blobs.ctx = &bringing;
    if (manifest_read(&blobs, NULL, &manifest, err) < 0)
        return -(int)err->code;
    for (size_t i = 0; i <= manifest.count; i++) {
        const char *name = i < manifest.count ? manifest.layers[i] : manifest.config;
        CLEANUP(freep) char *what = mem_printf("blobs/sha256:%s", strrchr(name, '/') + 1);
        CLEANUP(freep) char *path = mem_printf("%s/%s", dir, name);
        if (access(path, F_OK) < 0 && fetch(where, what, path, LIMIT_IMAGE_BYTES, err) < 0)
            return -(int)err->code;
    }
    return 0;
}

int registry_fetch(const char *source, const char *dir, struct err *err)
{
    CLEANUP(freep) char *blobs = mem_printf("%s/blobs/sha256", dir);
    CLEANUP(freep) char *index = mem_printf("%s/index.json", dir);
    CLEANUP(str_done) struct str text = { 0 };
    char hex[DIGEST_HEX_BYTES];
    struct where where;

    if (parse_where(source, &where, err) < 0 || file_make_dirs(blobs, 0700, err) < 0 ||
        fetch_manifest(&where, where.tag, dir, hex, &text, err) < 0)
        return -(int)err->code;
    str_clear(&text);
    str_addf(&text, "{\"schemaVersion\":2,\"manifests\":[{\"digest\":\"sha256:%s\"}]}\n", hex);
    if (file_write_quick(index, text.data, text.len, 0600, err) < 0)
        return -(int)err->code;
    return fetch_pieces(&where, dir, err);
}
