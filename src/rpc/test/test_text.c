/* SPDX-License-Identifier: Apache-2.0 */
/* Encodings, addresses, deadlines and bounded unpacking: the parts without a connection. */
#include "test/unit.h"

#include "proto/echo.pb-c.h"
#include "rpc/address.h"
#include "rpc/coding.h"
#include "rpc/status.h"
#include "rpc/timers.h"
#include "wire/pb_add.h"
#include "wire/pb_unpack.h"

static void base64_both_ways(void **state)
{
    static const struct {
        const char *plain, *text;
    } pairs[] = {
        { "", "" },           { "f", "Zg" },          { "fo", "Zm8" },       { "foo", "Zm9v" },
        { "foob", "Zm9vYg" }, { "fooba", "Zm9vYmE" }, { "\xfb\xff", "+/8" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        CLEANUP(str_done) struct str text = { 0 }, plain = { 0 };
        base64_add(&text, pairs[i].plain, strlen(pairs[i].plain));
        assert_string_equal(str_text(&text), pairs[i].text);
        assert_true(base64_decode(&plain, text.data ? text.data : "", text.len));
        assert_string_equal(str_text(&plain), pairs[i].plain);
    }
    CLEANUP(str_done) struct str out = { 0 };
    assert_true(base64_decode(&out, "Zg==", 4));
    assert_true(base64url_decode(&out, "-_8", 3));
    static const char *const bad[] = { "Z", "Zh", "Zg=", "Z g", "Zm9v=", "====", "Zg==Zg==" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(base64_decode(&out, bad[i], strlen(bad[i])));
    assert_false(base64url_decode(&out, "Zg==", 4));
    assert_false(base64url_decode(&out, "+/8", 3));
}

static void percent_both_ways(void **state)
{
    CLEANUP(str_done) struct str text = { 0 }, plain = { 0 }, odd = { 0 };
    const char *words = "100% \xc3\xa9\n~ok";

    (void)state;
    percent_add(&text, words, strlen(words));
    assert_string_equal(text.data, "100%25 %C3%A9%0A~ok");
    percent_decode(&plain, text.data, text.len);
    assert_string_equal(plain.data, words);
    percent_decode(&odd, "%zz%4", 5);
    assert_string_equal(odd.data, "%zz%4");
}

static void timeouts_are_read_exactly(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = { { "1S", 1000 },  { "99999999H", INT64_C(99999999) * 3600000 },
                 { "1u", 1 },     { "1000n", 1 },
                 { "1001u", 2 },  { "0m", 0 },
                 { "2M", 120000 } };
    static const char *const bad[] = { "", "1", "S", "123456789S", "1s", "-1S", "1 S", "1.5S" };
    int64_t ms;
    char text[TIMEOUT_TEXT_BYTES];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        assert_true(timeout_decode(good[i].text, strlen(good[i].text), &ms));
        assert_int_equal(ms, good[i].ms);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(timeout_decode(bad[i], strlen(bad[i]), &ms));
    timeout_encode(1500, text);
    assert_string_equal(text, "1500m");
    timeout_encode(INT64_C(100000000), text);
    assert_string_equal(text, "100000S");
    assert_true(timeout_encode(INT64_MAX, text) <= 9);
}

static void addresses_as_people_write_them(void **state)
{
    static const struct {
        const char *text, *host, *path;
        unsigned port;
        enum address_tls tls;
    } good[] = {
        { "http://c1:7000", "c1", "", 7000, ADDRESS_TLS_AUTO },
        { "https://c1", "c1", "", 6817, ADDRESS_TLS_ALWAYS },
        { "HTTP://c1/", "c1", "", 6817, ADDRESS_TLS_AUTO },
        { "c1", "c1", "", 6817, ADDRESS_TLS_AUTO },
        { "10.0.0.1:1", "10.0.0.1", "", 1, ADDRESS_TLS_AUTO },
        { "[::1]:99", "::1", "", 99, ADDRESS_TLS_AUTO },
        { "[::]", "::", "", 6817, ADDRESS_TLS_AUTO },
        { "fe80::1", "fe80::1", "", 6817, ADDRESS_TLS_AUTO },
        { "*:80", "", "", 80, ADDRESS_TLS_AUTO },
        { "unix:/run/x", "", "/run/x", 0, ADDRESS_TLS_AUTO },
        { "unix:///run/x", "", "/run/x", 0, ADDRESS_TLS_AUTO },
        { "/run/x", "", "/run/x", 0, ADDRESS_TLS_AUTO },
        { "c1:0", "c1", "", 0, ADDRESS_TLS_AUTO },
    };
    static const char *const bad[] = {
        "",          "http://", "c1:65536", "c1:x",   "c1:",       "ftp://c1", "[::1",
        "[::1]x:80", "unix:",   "c 1",      "c1/etc", "c1\n:6817", "c1:-1",    "$(id)",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct address address, again;
        struct err err;
        char text[ADDRESS_TEXT_BYTES];
        if (address_parse(good[i].text, 6817, &address, &err) < 0)
            fail_msg("%s: %s", good[i].text, err.text);
        assert_string_equal(address.host, good[i].host);
        assert_string_equal(address.path, good[i].path);
        assert_int_equal(address.port, good[i].port);
        assert_int_equal(address.tls, good[i].tls);
        address_text(&address, text);
        assert_int_equal(address_parse(text, 1, &again, &err), 0);
        assert_true(address_eq(&address, &again));
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct address address;
        struct err err = { 0 };
        if (address_parse(bad[i], 6817, &address, &err) >= 0)
            fail_msg("'%s' was accepted", bad[i]);
        assert_true(err.text[0] != '\0');
    }
}

static void address_lists_and_locality(void **state)
{
    struct address_list list;
    struct err err;
    char many[256] = "a";

    (void)state;
    assert_int_equal(address_list_parse("c1, c2:1,unix:/x", 6817, &list, &err), 0);
    assert_int_equal(list.len, 3);
    assert_string_equal(list.items[1].host, "c2");
    assert_true(address_list_parse(" , ", 6817, &list, &err) < 0);
    for (int i = 0; i < ADDRESS_LIST_MAX; i++)
        strcat(many, ",b");
    assert_int_equal(address_list_parse(many, 6817, &list, &err), -ERR_TOO_MANY);
    static const char *const local[] = { "localhost", "127.0.0.9:1", "[::1]", "unix:/x" };
    for (size_t i = 0; i < ARRAY_LEN(local); i++) {
        assert_int_equal(address_parse(local[i], 1, &list.items[0], &err), 0);
        assert_true(address_is_local(&list.items[0]));
    }
    assert_int_equal(address_parse("localhost.evil.org", 1, &list.items[0], &err), 0);
    assert_false(address_is_local(&list.items[0]));
}

static unsigned fired;
static int64_t last_at;

static void on_fire(struct timer *timer)
{
    assert_true(timer->at_ms >= last_at);
    assert_false(timer_is_set(timer));
    last_at = timer->at_ms;
    fired++;
}

static void timers_fire_in_order(void **state)
{
    struct timers timers = { 0 };
    struct timer all[500] = { 0 };
    unsigned seed = 7;
    int64_t at_ms;

    (void)state;
    for (int round = 0; round < 20; round++) {
        unsigned cleared = 0, late = 0;
        fired = 0;
        last_at = 0;
        for (size_t i = 0; i < ARRAY_LEN(all); i++) {
            seed = seed * 1103515245 + 12345;
            all[i].fire = on_fire;
            timers_set(&timers, &all[i], seed >> 16 & 1023);
        }
        for (size_t i = 0; i < ARRAY_LEN(all); i++) {
            seed = seed * 1103515245 + 12345;
            if (seed >> 16 & 1) {
                timers_clear(&timers, &all[i]);
                cleared++;
            } else {
                timers_set(&timers, &all[i], seed >> 17 & 1023);
                late += all[i].at_ms > 500;
            }
        }
        timers_run(&timers, 500);
        assert_int_equal(fired, ARRAY_LEN(all) - cleared - late);
        assert_int_equal(timers_next(&timers, &at_ms), late > 0);
        assert_true(!late || at_ms > 500);
        timers_run(&timers, 1023);
        assert_int_equal(fired, ARRAY_LEN(all) - cleared);
        assert_false(timers_next(&timers, &at_ms));
    }
    timers_done(&timers);
}

static void unpacking_is_bounded(void **state)
{
    struct arena arena = { 0 };
    struct err err;
    ProtobufCMessage *message;
    size_t len = 4 * 1024 * 1024;
    uint8_t *bytes = malloc(len);

    (void)state;
    /* Unknown fields of two bytes each: a scanned member of dozens of bytes for every one. */
    for (size_t i = 0; i < len; i += 2) {
        bytes[i] = 0x78; /* field 15, varint */
        bytes[i + 1] = 0;
    }
    assert_int_equal(pb_unpack(&echo_message__descriptor, &arena, bytes, len, &message, &err) < 0,
                     1);
    assert_true(arena.total < 65 * 1024 * 1024);
    assert_int_equal(pb_unpack(&echo_message__descriptor, &arena, "\x0a\x05hi", 4, &message, &err),
                     -ERR_BAD_MESSAGE);
    assert_int_equal(pb_unpack(&echo_message__descriptor, &arena, "\x0a\x02hi", 4, &message, &err),
                     0);
    assert_string_equal(((EchoMessage *)(void *)message)->text, "hi");
    assert_true(pb_is_finite(&echo_message__descriptor));
    free(bytes);
    arena_done(&arena);
}

static void lists_are_spliced_from_packed_parts(void **state)
{
    CLEANUP(str_done) struct str out = { 0 };
    EchoMessage message = ECHO_MESSAGE__INIT;
    struct arena arena = { 0 };
    struct err err;
    ProtobufCMessage *back;

    (void)state;
    pb_add_bytes(&out, 1, "spliced", 7);
    pb_add_uint(&out, 2, 300);
    message.text = (char *)(uintptr_t) "inner";
    pb_add_message(&out, 3, &message.base);
    assert_int_equal(pb_unpack(&echo_message__descriptor, &arena, out.data, out.len, &back, &err),
                     0);
    const EchoMessage *echoed = (const void *)back;
    assert_string_equal(echoed->text, "spliced");
    assert_int_equal(echoed->number, 300);
    assert_int_equal(echoed->data.len, 7);
    arena_done(&arena);
}

static struct h2_header header(const char *name, const char *value)
{
    return H2_HEADER(name, value);
}

static void every_error_survives_the_trailers(void **state)
{
    (void)state;
    for (int code = 1; code < ERR_COUNT; code++) {
        CLEANUP(str_done) struct str scratch = { 0 };
        CLEANUP(status_done) struct status status = { 0 };
        struct h2_header trailers[STATUS_TRAILERS];
        struct err err, back;

        err_set(&err, (enum err_code)code, "text of %d \xe2\x82\xac", code);
        err_option(&err, "opt");
        size_t count = status_trailers(&err, "http://l:1", &scratch, trailers);
        for (size_t i = 0; i < count; i++)
            status_header(&status, &trailers[i]);
        assert_int_equal(status_result(&status, &back), -code);
        assert_int_equal(back.code, code);
        assert_string_equal(back.text, err.text);
        assert_string_equal(back.option, "opt");
        assert_string_equal(status.leader, "http://l:1");
    }
}

static void foreign_servers_are_understood(void **state)
{
    CLEANUP(status_done) struct status plain = { 0 }, http = { 0 }, odd = { 0 };
    struct h2_header h;
    struct err err;

    (void)state;
    h = header("grpc-status", "5");
    status_header(&plain, &h);
    h = header("grpc-message", "no%20such");
    status_header(&plain, &h);
    assert_int_equal(status_result(&plain, &err), -ERR_NOT_FOUND);
    assert_string_equal(err.text, "no such");
    h = header(":status", "404");
    status_header(&http, &h);
    assert_int_equal(status_result(&http, &err), -ERR_CONNECTION_LOST);
    h = header("grpc-status", "99999");
    status_header(&odd, &h);
    h = header("spur-error-bin", "!!");
    status_header(&odd, &h);
    assert_int_equal(status_result(&odd, &err), -ERR_CONNECTION_LOST);
    h = header("grpc-status", "77");
    status_header(&odd, &h);
    assert_int_equal(status_result(&odd, &err), -ERR_INTERNAL);
}

UNIT_MAIN(UNIT(base64_both_ways), UNIT(percent_both_ways), UNIT(timeouts_are_read_exactly),
          UNIT(addresses_as_people_write_them), UNIT(address_lists_and_locality),
          UNIT(timers_fire_in_order), UNIT(unpacking_is_bounded),
          UNIT(lists_are_spliced_from_packed_parts), UNIT(every_error_survives_the_trailers),
          UNIT(foreign_servers_are_understood))
