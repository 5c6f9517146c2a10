/* SPDX-License-Identifier: Apache-2.0 */
/* Messages come out of a stream as they went in, however it was cut; one that is too long is refused. */
#include "test/unit.h"

#include "base/framed.h"

static void add(struct str *out, const char *text)
{
    memcpy(framed_add(out, strlen(text)), text, strlen(text));
}

static void test_cut_anywhere(void **state)
{
    CLEANUP(str_done) struct str stream = { 0 };
    const char *const texts[] = { "one", "", "three words here" };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        add(&stream, texts[i]);
    for (size_t step = 1; step <= stream.len; step++) {
        CLEANUP(str_done) struct str in = { 0 };
        size_t at = 0, got = 0;
        while (at < stream.len) {
            size_t part = MIN(step, stream.len - at);
            struct span message;
            str_add_len(&in, stream.data + at, part);
            at += part;
            while (framed_next(&in, 100, &message) == 1) {
                assert_true(got < ARRAY_LEN(texts));
                assert_true(span_eq(message, texts[got++]));
                framed_drop(&in);
            }
        }
        assert_int_equal(got, ARRAY_LEN(texts));
        assert_int_equal(in.len, 0);
    }
}

static void test_too_long(void **state)
{
    CLEANUP(str_done) struct str in = { 0 };
    struct span message;

    str_add_len(&in, "\xff\xff\xff\xff", 4);
    assert_int_equal(framed_next(&in, 100, &message), -1);
    str_clear(&in);
    add(&in, "12345");
    assert_int_equal(framed_next(&in, 4, &message), -1);
    assert_int_equal(framed_next(&in, 5, &message), 1);
}

UNIT_MAIN(UNIT(test_cut_anywhere), UNIT(test_too_long))
