/* SPDX-License-Identifier: Apache-2.0 */
/* Archives: names long and short, and everything that is wrong with one. */
#include "test/unit.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "container/tar.h"

struct bytes {
    uint8_t data[16 * 512];
    size_t len, at;
};

static ssize_t read_bytes(void *ctx, void *out, size_t len, struct err *err)
{
    struct bytes *bytes = ctx;
    size_t take = MIN(len, MIN(bytes->len - bytes->at, (size_t)100)); /* in small pieces */

    (void)err;
    memcpy(out, bytes->data + bytes->at, take);
    bytes->at += take;
    return (ssize_t)take;
}

static void seal(uint8_t *head)
{
    unsigned sum = 0;

    memset(head + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += head[i];
    snprintf((char *)head + 148, 8, "%06o", sum);
}

static uint8_t *add(struct bytes *bytes, const char *name, char type, const void *content,
                    size_t len)
{
    uint8_t *head = bytes->data + bytes->len;

    memset(head, 0, 512);
    snprintf((char *)head, 100, "%s", name);
    snprintf((char *)head + 100, 8, "%07o", 0644U);
    snprintf((char *)head + 124, 12, "%011zo", len);
    head[156] = (uint8_t)type;
    memcpy(head + 257, "ustar\0", 6);
    seal(head);
    bytes->len += 512;
    memcpy(bytes->data + bytes->len, content, len);
    bytes->len += (len + 511) / 512 * 512;
    return head;
}

static int walk(struct bytes *bytes, struct err *err)
{
    struct tar_entry entry;
    struct tar tar;
    int code, count = 0;

    bytes->at = 0;
    tar_open(&tar, read_bytes, bytes);
    while ((code = tar_next(&tar, &entry, err)) > 0)
        count++;
    tar_close(&tar);
    return code < 0 ? code : count;
}

static void names_of_every_kind(void **state)
{
    static const char pax[] = "15 path=in/pax\n22 mtime=1234567890.5\n";
    struct bytes bytes = { 0 };
    struct tar_entry entry;
    struct tar tar;
    struct err err = { 0 };
    char long_name[300] = "", text[8] = "";

    (void)state;
    memset(long_name, 'x', 250);
    add(&bytes, "plain", '0', "hello", 5);
    add(&bytes, "././@LongLink", 'L', long_name, 251);
    add(&bytes, "short", '0', "", 0);
    add(&bytes, "pax", 'x', pax, sizeof(pax) - 1);
    add(&bytes, "other", '5', "", 0);
    tar_open(&tar, read_bytes, &bytes);
    assert_int_equal(tar_next(&tar, &entry, &err), 1);
    assert_string_equal(entry.name, "plain");
    assert_int_equal(tar_content(&tar, text, 2, &err), 2);
    assert_int_equal(tar_content(&tar, text + 2, 6, &err), 3);
    assert_string_equal(text, "hello");
    assert_int_equal(tar_content(&tar, text, 1, &err), 0);
    assert_int_equal(tar_next(&tar, &entry, &err), 1);
    assert_string_equal(entry.name, long_name);
    assert_int_equal(tar_next(&tar, &entry, &err), 1);
    assert_string_equal(entry.name, "in/pax");
    assert_int_equal(entry.mtime, 1234567890);
    assert_int_equal(entry.type, '5');
    assert_int_equal(tar_next(&tar, &entry, &err), 0);
    tar_close(&tar);
}

static void what_is_wrong_is_said(void **state)
{
    struct err err = { 0 };
    struct bytes bytes = { 0 };

    (void)state;
    uint8_t *head = add(&bytes, "file", '0', "content", 7);
    assert_int_equal(walk(&bytes, &err), 1);
    bytes.len -= 512;
    assert_true(walk(&bytes, &err) < 0); /* cut off before the content */
    bytes.len = 700;
    assert_true(walk(&bytes, &err) < 0);
    bytes.len = 100;
    assert_true(walk(&bytes, &err) < 0); /* and within the header */
    bytes.len = 0;
    assert_int_equal(walk(&bytes, &err), 0);
    bytes.len = 1024;
    head[3] ^= 1;
    assert_true(walk(&bytes, &err) < 0); /* a wrong sum */
    head[3] ^= 1;
    memset(head + 124, 0xff, 12);
    seal(head);
    assert_true(walk(&bytes, &err) < 0); /* a size beyond everything */
    bytes = (struct bytes){ 0 };
    add(&bytes, "pax", 'x', "1 a\n", 4);
    assert_true(walk(&bytes, &err) < 0);
    bytes = (struct bytes){ 0 };
    head = add(&bytes, "long", 'L', "", 0);
    snprintf((char *)head + 124, 12, "%011o", (unsigned)LIMIT_PATH_BYTES + 1);
    seal(head);
    assert_int_equal(walk(&bytes, &err), -(int)ERR_TOO_LARGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(names_of_every_kind),
        UNIT(what_is_wrong_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
