/* SPDX-License-Identifier: Apache-2.0 */
/* Text grows, splits and converts; nothing overflows. */
#include "test/unit.h"

#include "base/str.h"

static void grows_and_is_taken(void **state)
{
    (void)state;
    struct str str = { 0 };

    assert_string_equal(str_text(&str), "");
    for (int i = 0; i < 1000; i++)
        str_addf(&str, "%d,", i);
    str_add_i64(&str, INT64_MIN);
    str_add_char(&str, ' ');
    str_add_u64(&str, UINT64_MAX);
    assert_true(str_ends(str.data, ",-9223372036854775808 18446744073709551615"));
    assert_int_equal(strlen(str.data), str.len);
    CLEANUP(freep) char *taken = str_take(&str);
    assert_true(str_starts(taken, "0,1,2,"));
    assert_null(str.data);
    CLEANUP(freep) char *empty = str_take(&str);
    assert_string_equal(empty, "");
}

static void splits_words(void **state)
{
    (void)state;
    const char *cursor = ",a,,bc, ";
    struct span word;

    assert_true(str_next(&cursor, ", ", &word) && span_eq(word, "a"));
    assert_true(str_next(&cursor, ", ", &word) && span_ieq(word, "BC"));
    assert_false(str_next(&cursor, ", ", &word));
}

static void numbers_have_bounds(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "", "-", "1 ", " 1", "+1", "1x", "9223372036854775808", "99999999999999999999", "0x10"
    };
    int64_t value;
    uint64_t big;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(str_to_i64(bad[i], INT64_MIN, INT64_MAX, &value));
    assert_true(str_to_i64("-9223372036854775808", INT64_MIN, INT64_MAX, &value));
    assert_true(value == INT64_MIN);
    assert_false(str_to_i64("11", 0, 10, &value));
    assert_true(str_to_u64("18446744073709551615", UINT64_MAX, &big));
    assert_false(str_to_u64("18446744073709551616", UINT64_MAX, &big));
}

static void compares_and_suggests(void **state)
{
    (void)state;
    assert_true(str_ieq("UNLIMITED", "unlimited"));
    assert_false(str_ieq("a", "ab"));
    assert_true(str_eq(NULL, NULL));
    assert_false(str_eq(NULL, ""));
    assert_int_equal(str_distance("partiton", "partition"), 1);
    assert_int_equal(str_distance("", "abc"), 3);
    char text[] = "  x y \n";
    assert_string_equal(str_trim(text), "x y");
}

static void terminals_are_safe(void **state)
{
    (void)state;
    struct str str = { 0 };

    str_add_visible(&str, "a\n\x1b[31m\0b", 9);
    assert_string_equal(str.data, "a\\n\\x1b[31m\\x00b");
    str_done(&str);
}

static void utf8_is_checked(void **state)
{
    static const struct {
        const char *text;
        bool ok;
    } cases[] = {
        { "", true },
        { "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", true },
        { "\xf4\x8f\xbf\xbf", true },
        { "\xc3", false },             /* cut off */
        { "\xe8key", false },          /* Latin-1 */
        { "\xc0\x80", false },         /* overlong */
        { "\xe0\x9f\xbf", false },     /* overlong */
        { "\xed\xa0\x80", false },     /* surrogate */
        { "\xf4\x90\x80\x80", false }, /* beyond Unicode */
        { "\xff", false },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(str_is_utf8(cases[i].text), cases[i].ok);
}

UNIT_MAIN(UNIT(utf8_is_checked), UNIT(grows_and_is_taken), UNIT(splits_words),
          UNIT(numbers_have_bounds), UNIT(compares_and_suggests), UNIT(terminals_are_safe))
