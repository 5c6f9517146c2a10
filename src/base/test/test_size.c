/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and counts read and write as Slurm's do; nothing overflows. */
#include "test/unit.h"

#include "base/size.h"

#define TEXT CLEANUP(str_done) struct str

#define MEMORY(...)
#define WRITE(...)
#define IN(...)

static const struct {
    const char *text;
    uint64_t megabytes;
} memories[] = {
#undef MEMORY
#define MEMORY(...) { __VA_ARGS__ },
#include "base/test/data/size.inc"
#undef MEMORY
#define MEMORY(...)
};

static const struct {
    uint64_t value;
    enum size_unit unit;
    enum size_style style;
    const char *text;
} written[] = {
#undef WRITE
#define WRITE(...) { __VA_ARGS__ },
#include "base/test/data/size.inc"
#undef WRITE
#define WRITE(...)
};

static const struct {
    uint64_t value;
    enum size_unit unit, as;
    const char *text;
} written_in[] = {
#undef IN
#define IN(...) { __VA_ARGS__ },
#include "base/test/data/size.inc"
};

static void memory_reads_as_slurm(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(memories); i++) {
        uint64_t bytes;

        assert_int_equal(size_read_memory(memories[i].text, SIZE_M, &bytes, NULL), 0);
        assert_int_equal(size_megabytes(bytes), memories[i].megabytes);
    }
}

static void memory_in_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum size_unit unit;
        uint64_t bytes;
    } rows[] = {
        { "500", SIZE_M, 500 << 20 },
        { "500", SIZE_ONE, 500 },
        { "500K", SIZE_M, 500 << 10 },
        { "4GiB", SIZE_M, UINT64_C(4) << 30 },
        { "4gib", SIZE_M, UINT64_C(4) << 30 },
        { "1P", SIZE_M, UINT64_C(1) << 50 },
        { "7E", SIZE_M, UINT64_C(7) << 60 },
        { "9223372036854775807", SIZE_ONE, INT64_MAX },
        { "00004G", SIZE_M, UINT64_C(4) << 30 },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t bytes;

        assert_int_equal(size_read_memory(rows[i].text, rows[i].unit, &bytes, NULL), 0);
        assert_true(bytes == rows[i].bytes);
    }
    assert_int_equal(size_megabytes(0), 0);
    assert_int_equal(size_megabytes(1), 1);
    assert_int_equal(size_megabytes(1 << 20), 1);
    assert_int_equal(size_megabytes((1 << 20) + 1), 2);
    assert_true(size_megabytes(UINT64_MAX) == UINT64_C(1) << 44);
}

static void wrong_memory_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum err_code code;
    } rows[] = {
        { "", ERR_INVALID },
        { "G", ERR_INVALID },
        { "-1", ERR_INVALID },
        { "-5G", ERR_INVALID },
        { "+5G", ERR_INVALID },
        { "1.5G", ERR_INVALID },
        { "4 G", ERR_INVALID },
        { " 4G", ERR_INVALID },
        { "4G ", ERR_INVALID },
        { "4X", ERR_INVALID },
        { "4GG", ERR_INVALID },
        { "4B", ERR_INVALID },
        { "4Gi", ERR_INVALID },
        { "0x10", ERR_INVALID },
        { "unlimited", ERR_INVALID },
        { "999999999999T", ERR_RANGE },
        { "8E", ERR_RANGE },
        { "17592186044416T", ERR_RANGE },
        { "18446744073709551616", ERR_RANGE },
        { "99999999999999999999999999G", ERR_RANGE },
    };
    struct err err = { 0 };
    uint64_t bytes = 7;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(size_read_memory(rows[i].text, SIZE_M, &bytes, &err), -(int)rows[i].code);
        assert_int_equal(bytes, 7);
    }
    size_read_memory("999999999999T", SIZE_M, &bytes, &err);
    assert_string_equal(err.text, "invalid amount '999999999999T': it is too large");
    size_read_memory("4\x1bX", SIZE_M, &bytes, &err);
    assert_string_equal(err.text, "invalid amount '4\\x1bX': the unit is one of K, M, G, T, P");
}

static void counts_have_units_and_bounds(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum size_step step;
        int result;
        uint64_t count;
    } rows[] = {
        { "4", SIZE_STEP_1024, 0, 4 },
        { "0", SIZE_STEP_1024, 0, 0 },
        { "2k", SIZE_STEP_1024, 0, 2048 },
        { "2K", SIZE_STEP_1000, 0, 2000 },
        { "1m", SIZE_STEP_1024, -ERR_RANGE, 0 },
        { "1m", SIZE_STEP_1000, 0, 1000000 },
        { "1000000", SIZE_STEP_1024, 0, 1000000 },
        { "1000001", SIZE_STEP_1024, -ERR_RANGE, 0 },
        { "99999999999999999999", SIZE_STEP_1024, -ERR_RANGE, 0 },
        { "18446744073709551615k", SIZE_STEP_1024, -ERR_RANGE, 0 },
        { "2g", SIZE_STEP_1024, -ERR_INVALID, 0 },
        { "2kb", SIZE_STEP_1024, -ERR_INVALID, 0 },
        { "1.5k", SIZE_STEP_1024, -ERR_INVALID, 0 },
        { "-1", SIZE_STEP_1024, -ERR_INVALID, 0 },
        { "", SIZE_STEP_1024, -ERR_INVALID, 0 },
        { "k", SIZE_STEP_1024, -ERR_INVALID, 0 },
        { "2-4", SIZE_STEP_1024, -ERR_INVALID, 0 },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t count = 0;
        assert_int_equal(size_read_count(rows[i].text, 1000000, rows[i].step, &count, NULL),
                         rows[i].result);
        assert_int_equal(count, rows[i].count);
    }
}

static void ranges_have_two_ends(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int result;
        uint64_t low, high;
    } rows[] = {
        { "4", 0, 4, 4 },
        { "2-4", 0, 2, 4 },
        { "2k-4k", 0, 2048, 4096 },
        { "0", 0, 0, 0 },
        { "4-2", -ERR_INVALID, 7, 7 },
        { "2-", -ERR_INVALID, 7, 7 },
        { "-2", -ERR_INVALID, 7, 7 },
        { "1-2-3", -ERR_INVALID, 7, 7 },
        { "1,3", -ERR_INVALID, 7, 7 },
        { "1-99999999999", -ERR_RANGE, 7, 7 },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t low = 7, high = 7;
        assert_int_equal(size_read_range(rows[i].text, 100000, &low, &high, NULL), rows[i].result);
        assert_int_equal(low, rows[i].low);
        assert_int_equal(high, rows[i].high);
    }
}

static void lists_are_sorted(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int result;
        size_t count;
        uint32_t first, last;
    } rows[] = {
        { "1,3,5-9", 0, 7, 1, 9 },          { "1-15:4", 0, 4, 1, 13 },
        { "8,2,2,4", 0, 3, 2, 8 },          { "3", 0, 1, 3, 3 },
        { "1,0", -ERR_INVALID, 0, 0, 0 },   { "1,", -ERR_INVALID, 0, 0, 0 },
        { ",1", -ERR_INVALID, 0, 0, 0 },    { "1-9:0", -ERR_INVALID, 0, 0, 0 },
        { "4-2,1", -ERR_INVALID, 0, 0, 0 }, { "1;2", -ERR_INVALID, 0, 0, 0 },
        { "1,101", -ERR_RANGE, 0, 0, 0 },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint32_t *list = NULL;
        size_t count = 0;
        assert_int_equal(size_read_list(rows[i].text, 100, &list, &count, NULL), rows[i].result);
        assert_int_equal(count, rows[i].count);
        assert_int_equal(list ? list[0] : 0, rows[i].first);
        assert_int_equal(list ? list[count - 1] : 0, rows[i].last);
        free(list);
    }
}

static void writes_as_slurm(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(written); i++) {
        TEXT out = { 0 };

        size_write(&out, written[i].value, written[i].unit, written[i].style);
        if (!str_eq(str_text(&out), written[i].text))
            fail_msg("%llu, unit %d, style %d is %s, not %s", (unsigned long long)written[i].value,
                     written[i].unit, written[i].style, str_text(&out), written[i].text);
    }
    for (size_t i = 0; i < ARRAY_LEN(written_in); i++) {
        TEXT out = { 0 };

        size_write_in(&out, written_in[i].value, written_in[i].unit, written_in[i].as);
        assert_string_equal(str_text(&out), written_in[i].text);
    }
}

static void writes_what_slurm_cannot(void **state)
{
    (void)state;
    static const struct {
        uint64_t value;
        enum size_unit unit;
        enum size_style style;
        const char *text;
    } rows[] = {
        { UINT64_MAX, SIZE_ONE, SIZE_ROUNDED, "16.00E" },
        { UINT64_MAX, SIZE_M, SIZE_ROUNDED, "16777216.00E" },
        { UINT64_MAX, SIZE_ONE, SIZE_EXACT, "18446744073709551615" },
        { UINT64_C(1) << 60, SIZE_ONE, SIZE_EXACT, "1E" },
        { 1049088, SIZE_K, SIZE_EXACT, "1024.50M" }, /* Slurm says 1.00G */
        { 5, SIZE_E, SIZE_EXACT, "5E" },
        { 5000, SIZE_E, SIZE_ROUNDED, "5000E" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        TEXT out = { 0 };
        size_write(&out, rows[i].value, rows[i].unit, rows[i].style);
        assert_string_equal(str_text(&out), rows[i].text);
    }
    TEXT out = { 0 };
    size_write_in(&out, UINT64_MAX, SIZE_E, SIZE_ONE);
    assert_string_equal(str_text(&out), "18446744073709551615E");
    str_clear(&out);
    size_write_in(&out, UINT64_MAX, SIZE_ONE, SIZE_E);
    assert_string_equal(str_text(&out), "16.00E");
}

UNIT_MAIN(UNIT(memory_reads_as_slurm), UNIT(memory_in_bytes), UNIT(wrong_memory_is_refused),
          UNIT(counts_have_units_and_bounds), UNIT(ranges_have_two_ends), UNIT(lists_are_sorted),
          UNIT(writes_as_slurm), UNIT(writes_what_slurm_cannot))
