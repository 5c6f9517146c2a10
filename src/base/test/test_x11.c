/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_x11.c - displays, files of cookies and first messages of X clients
 */
#include "base/x11.h"
#include "test/unit.h"

#include <string.h>

static const uint8_t cookie[X11_COOKIE_BYTES] = { 1, 2,  3,  4,  5,  6,  7, 8,
                                                  9, 10, 11, 12, 13, 14, 0, 255 };

static void displays(void **state)
{
    static const struct {
        const char *text, *host;
        uint32_t number;
    } good[] = {
        { ":0", "", 0 },
        { ":1.0", "", 1 },
        { "unix:7.1", "", 7 },
        { "localhost:10.0", "localhost", 10 },
        { "login1.example.org:3", "login1.example.org", 3 },
        { "::1:5.0", "::1", 5 },
    };
    static const char *const bad[] = {
        "", ":", "host", "host:x", "node::0", ":99999", ":-1", ":0x1"
    };
    struct x11_display display;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        assert_true(x11_read_display(good[i].text, &display));
        assert_string_equal(display.host, good[i].host);
        assert_int_equal(display.number, good[i].number);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(x11_read_display(bad[i], &display));
    assert_false(x11_read_display(NULL, &display));
}

static void add(struct str *file, unsigned family, const char *address, uint32_t number,
                uint8_t first)
{
    uint8_t own[X11_COOKIE_BYTES] = { first };

    x11_add_entry(file, family, address, number, own);
}

static int found(const struct str *file, const char *display)
{
    struct x11_display where;
    struct x11_auth auth;

    assert_true(x11_read_display(display, &where));
    return x11_find_auth(file->data, file->len, &where, "me", &auth) ? auth.data[0] : -1;
}

static void the_best_entry_is_found(void **state)
{
    CLEANUP(str_done) struct str file = { 0 };

    (void)state;
    add(&file, X11_FAMILY_LOCAL, "other", 0, 1);
    add(&file, X11_FAMILY_LOCAL, "me", 0, 2);
    add(&file, X11_FAMILY_WILD, "", 10, 3);
    add(&file, 0, "\x7f", 4, 4);
    add(&file, X11_FAMILY_LOCAL, "renamed", 6, 5);
    assert_int_equal(found(&file, ":0"), 2);
    assert_int_equal(found(&file, "me:0.0"), 2);
    assert_int_equal(found(&file, "localhost:10.0"), 3);
    assert_int_equal(found(&file, "far:4"), 4);
    assert_int_equal(found(&file, ":6"), 5); /* the host had another name when it was made */
    assert_int_equal(found(&file, "far:6"), -1);
    assert_int_equal(found(&file, ":1"), -1);
}

static void a_file_that_is_cut_off_is_read_as_far_as_it_goes(void **state)
{
    CLEANUP(str_done) struct str file = { 0 };
    struct x11_display where = { .number = 2 };
    struct x11_auth auth;

    (void)state;
    add(&file, X11_FAMILY_LOCAL, "me", 1, 1);
    size_t first = file.len;
    add(&file, X11_FAMILY_LOCAL, "me", 2, 2);
    for (size_t len = 0; len < file.len; len++)
        assert_false(x11_find_auth(file.data, len, &where, "me", &auth));
    where.number = 1;
    assert_true(x11_find_auth(file.data, first, &where, "me", &auth));
}

static void only_our_entries_are_left_out(void **state)
{
    CLEANUP(str_done) struct str file = { 0 }, rest = { 0 };

    (void)state;
    add(&file, X11_FAMILY_LOCAL, "me", 10, 1);
    add(&file, X11_FAMILY_WILD, "", 10, 1);
    size_t before = file.len;
    add(&file, X11_FAMILY_LOCAL, "me", 0, 2);
    add(&file, X11_FAMILY_LOCAL, "other", 10, 3);
    x11_copy_others(&rest, file.data, file.len, 10, "me");
    assert_int_equal(rest.len, file.len - before);
    assert_memory_equal(rest.data, file.data + before, rest.len);
}

static void first_message(void **state)
{
    static const char orders[] = "lB";

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        CLEANUP(str_done) struct str text = { 0 }, refusal = { 0 };
        uint8_t head[X11_HEAD_BYTES] = { (uint8_t)orders[i] };
        struct x11_auth auth = { .len = sizeof(cookie) };
        memcpy(auth.data, cookie, sizeof(cookie));
        x11_add_setup(&text, head, &auth);
        assert_int_equal(text.len, 12 + 20 + 16);
        for (size_t len = 0; len < text.len; len++)
            assert_int_equal(x11_setup_bytes((const uint8_t *)text.data, len), 0);
        str_add(&text, "more");
        assert_int_equal(x11_setup_bytes((const uint8_t *)text.data, text.len), 48);
        assert_true(x11_setup_shows((const uint8_t *)text.data, cookie));
        for (size_t at = 6; at < 48; at++) {
            if (at == 10 || at == 11 || at == 30 || at == 31)
                continue; /* not used, and filled up */
            text.data[at] ^= 1;
            assert_false(x11_setup_shows((const uint8_t *)text.data, cookie));
            text.data[at] ^= 1;
        }
        x11_add_refusal(&refusal, head, "No.");
        assert_int_equal(refusal.len, 12);
        assert_int_equal(refusal.data[0], 0);
        assert_int_equal(refusal.data[1], 3);
        assert_int_equal(refusal.data[i ? 7 : 6], 1);
    }
    assert_int_equal(x11_setup_bytes((const uint8_t *)"GET / HTTP/1.0", 14), -1);
    assert_int_equal(x11_setup_bytes((const uint8_t *)"l\0\v\0\0\0\xff\xff\0\0\0\0", 12), -1);
}

UNIT_MAIN(UNIT(displays), UNIT(the_best_entry_is_found),
          UNIT(a_file_that_is_cut_off_is_read_as_far_as_it_goes),
          UNIT(only_our_entries_are_left_out), UNIT(first_message))
