/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar.c - reads a tar archive from front to back: ustar, GNU long names, pax
 */
#include "container/tar.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

enum { BLOCK = 512, NAME_AT = 0, MODE_AT = 100, SIZE_AT = 124, MTIME_AT = 136, SUM_AT = 148 };
enum { TYPE_AT = 156, LINK_AT = 157, MAGIC_AT = 257, PREFIX_AT = 345 };

/* What a pax header or a GNU long name said about the entry that follows. */
struct before {
    bool has_name, has_link, has_size, has_mtime;
    uint64_t size;
    int64_t mtime;
};

void tar_open(struct tar *tar, tar_read_fn read, void *ctx)
{
    *tar = (struct tar){ .read = read, .ctx = ctx };
}

void tar_close(struct tar *tar)
{
    str_done(&tar->name);
    str_done(&tar->link);
}

/* All of `len`; short is an error. Returns 0, or 1 when the archive ended before the first byte. */
static int read_full(struct tar *tar, void *bytes, size_t len, struct err *err)
{
    size_t have = 0;

    while (have < len) {
        ssize_t got = tar->read(tar->ctx, (char *)bytes + have, len - have, err);
        if (got < 0)
            return (int)got;
        if (got == 0 && have == 0)
            return 1;
        if (got == 0)
            return err_set(err, ERR_INVALID, "the archive is cut off at byte %llu",
                           (unsigned long long)tar->at);
        have += (size_t)got;
        tar->at += (size_t)got;
    }
    return 0;
}

ssize_t tar_content(struct tar *tar, void *bytes, size_t len, struct err *err)
{
    char pad[BLOCK];

    if (tar->left == 0)
        return 0;
    size_t want = len < tar->left ? len : (size_t)tar->left;
    int code = read_full(tar, bytes, want, err);
    if (code > 0)
        code = err_set(err, ERR_INVALID, "the archive ends within a file");
    if (code < 0)
        return code;
    tar->left -= want;
    if (tar->left == 0 && tar->pad) {
        code = read_full(tar, pad, tar->pad, err);
        tar->pad = 0;
        if (code < 0)
            return code;
    }
    return (ssize_t)want;
}

static int skip_content(struct tar *tar, struct err *err)
{
    char bytes[16 * 1024];
    ssize_t got;

    while ((got = tar_content(tar, bytes, sizeof(bytes), err)) > 0)
        ;
    return (int)got;
}

/* Octal text, or GNU's binary form when the first bit is set. */
static bool read_number(const uint8_t *at, size_t len, uint64_t *out)
{
    uint64_t value = 0;
    size_t i = 0;

    if (at[0] & 0x80) {
        for (i = 0; i < len; i++) {
            uint8_t byte = i == 0 ? at[0] & 0x7f : at[i];
            if (value >> 55)
                return false;
            value = value << 8 | byte;
        }
        *out = value;
        return true;
    }
    while (i < len && at[i] == ' ')
        i++;
    for (; i < len && at[i] >= '0' && at[i] <= '7'; i++)
        value = value << 3 | (uint64_t)(at[i] - '0');
    *out = value;
    return i == len || at[i] == ' ' || at[i] == '\0';
}

static bool sum_is_right(const uint8_t head[BLOCK])
{
    uint64_t written, sum = 0;

    if (!read_number(head + SUM_AT, 8, &written))
        return false;
    for (size_t i = 0; i < BLOCK; i++)
        sum += i >= SUM_AT && i < SUM_AT + 8 ? ' ' : head[i];
    return sum == written;
}

static bool is_zero(const uint8_t head[BLOCK])
{
    for (size_t i = 0; i < BLOCK; i++) {
        if (head[i])
            return false;
    }
    return true;
}

/* The content of a header entry, whole; bounded. */
static int read_text(struct tar *tar, size_t most, struct str *out, struct err *err)
{
    char bytes[4096];
    ssize_t got;

    if (tar->left > most)
        return err_set(err, ERR_TOO_LARGE, "a name or header of %llu bytes in the archive",
                       (unsigned long long)tar->left);
    str_clear(out);
    while ((got = tar_content(tar, bytes, sizeof(bytes), err)) > 0)
        str_add_len(out, bytes, (size_t)got);
    return (int)got;
}

static void take_pax(struct tar *tar, struct before *before, const char *key, size_t key_len,
                     const char *value, size_t value_len)
{
    char number[32] = "";

    if (value_len < sizeof(number))
        memcpy(number, value, value_len);
    if (key_len == 4 && memcmp(key, "path", 4) == 0) {
        str_clear(&tar->name);
        str_add_len(&tar->name, value, value_len);
        before->has_name = true;
    } else if (key_len == 8 && memcmp(key, "linkpath", 8) == 0) {
        str_clear(&tar->link);
        str_add_len(&tar->link, value, value_len);
        before->has_link = true;
    } else if (key_len == 4 && memcmp(key, "size", 4) == 0) {
        before->has_size = str_to_u64(number, INT64_MAX, &before->size);
    } else if (key_len == 5 && memcmp(key, "mtime", 5) == 0) {
        number[strcspn(number, ".")] = '\0';
        before->has_mtime = str_to_i64(number, INT64_MIN / 2, INT64_MAX / 2, &before->mtime);
    }
}

/* "30 path=some/name\n", again and again. */
static int read_pax(struct tar *tar, struct before *before, const struct str *text, struct err *err)
{
    size_t at = 0;

    while (at < text->len) {
        size_t len = 0, digits = 0;
        while (at + digits < text->len && digits < 9 && text->data[at + digits] >= '0' &&
               text->data[at + digits] <= '9')
            len = len * 10 + (size_t)(text->data[at + digits++] - '0');
        const char *key = text->data + at + digits + 1;
        const char *end = text->data + at + len;
        if (digits == 0 || len < digits + 3 || len > text->len - at ||
            text->data[at + digits] != ' ' || end[-1] != '\n')
            return err_set(err, ERR_INVALID, "a pax header of the archive is broken");
        const char *equal = memchr(key, '=', (size_t)(end - key));
        if (equal)
            take_pax(tar, before, key, (size_t)(equal - key), equal + 1,
                     (size_t)(end - 1 - equal - 1));
        at += len;
    }
    return 0;
}

static void take_names(struct tar *tar, const uint8_t *head, const struct before *before)
{
    const char *text = (const char *)head;

    if (!before->has_name) {
        str_clear(&tar->name);
        if (memcmp(text + MAGIC_AT, "ustar\0", 6) == 0 && text[PREFIX_AT]) {
            str_add_len(&tar->name, text + PREFIX_AT, strnlen(text + PREFIX_AT, 155));
            str_add_char(&tar->name, '/');
        }
        str_add_len(&tar->name, text + NAME_AT, strnlen(text + NAME_AT, 100));
    }
    if (!before->has_link) {
        str_clear(&tar->link);
        str_add_len(&tar->link, text + LINK_AT, strnlen(text + LINK_AT, 100));
    }
}

static int check_names(const struct tar *tar, struct err *err)
{
    if (tar->name.len >= LIMIT_PATH_BYTES || tar->link.len >= LIMIT_PATH_BYTES)
        return err_set(err, ERR_TOO_LARGE, "a name of %zu bytes in the archive",
                       tar->name.len > tar->link.len ? tar->name.len : tar->link.len);
    if (strlen(str_text(&tar->name)) != tar->name.len ||
        strlen(str_text(&tar->link)) != tar->link.len)
        return err_set(err, ERR_INVALID, "a name with a zero byte in the archive");
    return 0;
}

static int read_head(struct tar *tar, uint8_t head[BLOCK], uint64_t *size, struct err *err)
{
    int code = read_full(tar, head, BLOCK, err);

    if (code)
        return code;
    if (is_zero(head))
        return 1;
    if (!sum_is_right(head) || !read_number(head + SIZE_AT, 12, size))
        return err_set(err, ERR_INVALID, "not a tar archive, or broken at byte %llu",
                       (unsigned long long)(tar->at - BLOCK));
    return 0;
}

/* True for an entry that speaks about the next one; it has been read then. */
static int read_before(struct tar *tar, char type, struct before *before, struct err *err)
{
    CLEANUP(str_done) struct str text = { 0 };
    int code;

    switch (type) {
    case 'L':
    case 'K':
        code = read_text(tar, LIMIT_PATH_BYTES, type == 'L' ? &tar->name : &tar->link, err);
        struct str *name = type == 'L' ? &tar->name : &tar->link;
        str_truncate(name, strlen(str_text(name))); /* it ends in a zero byte */
        before->has_name = before->has_name || type == 'L';
        before->has_link = before->has_link || type == 'K';
        return code < 0 ? code : 1;
    case 'x':
        code = read_text(tar, LIMIT_TAR_HEADER, &text, err);
        if (code == 0)
            code = read_pax(tar, before, &text, err);
        return code < 0 ? code : 1;
    case 'g':
        code = skip_content(tar, err);
        return code < 0 ? code : 1;
    default:
        return 0;
    }
}

int tar_next(struct tar *tar, struct tar_entry *out, struct err *err)
{
    struct before before = { 0 };
    uint8_t head[BLOCK];
    uint64_t size, number = 0;
    int code = skip_content(tar, err);

    for (;;) {
        if (code < 0)
            return code;
        code = read_head(tar, head, &size, err);
        if (code)
            return code < 0 ? code : 0;
        if (++tar->entries > LIMIT_TAR_ENTRIES)
            return err_set(err, ERR_TOO_MANY, "more than %d entries in the archive",
                           LIMIT_TAR_ENTRIES);
        char type = (char)head[TYPE_AT];
        bool about_next = type == 'L' || type == 'K' || type == 'x' || type == 'g';
        if (!about_next && before.has_size)
            size = before.size;
        tar->left = size;
        tar->pad = (unsigned)((BLOCK - size % BLOCK) % BLOCK);
        code = read_before(tar, type, &before, err);
        if (code == 0)
            break;
    }
    take_names(tar, head, &before);
    if ((code = check_names(tar, err)) < 0)
        return code;
    *out = (struct tar_entry){ .name = str_text(&tar->name),
                               .link = str_text(&tar->link),
                               .type = head[TYPE_AT] == '\0' || head[TYPE_AT] == '7'
                                           ? '0'
                                           : (char)head[TYPE_AT],
                               .size = size,
                               .offset = tar->at };
    read_number(head + MODE_AT, 8, &number);
    out->mode = (mode_t)(number & 07777);
    out->mtime = before.has_mtime                            ? before.mtime
                 : read_number(head + MTIME_AT, 12, &number) ? (int64_t)(number & INT64_MAX)
                                                             : 0;
    if (out->type != '0' &&
        tar->left) /* links and directories have no content, whatever they say */
        return (code = skip_content(tar, err)) < 0 ? code : 1;
    return 1;
}
