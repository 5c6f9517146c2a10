/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_size.c - amounts that are read lie within bounds and come back from their text
 */
#include "base/size.h"

#include "fuzz/fuzz.h"

static void memory(const char *text)
{
    uint64_t bytes, again;
    struct err err = { 0 };

    if (size_read_memory(text, SIZE_M, &bytes, &err) < 0) {
        CHECK((err.code == ERR_INVALID || err.code == ERR_RANGE) && err.text[0]);
        return;
    }
    CHECK(bytes <= INT64_MAX);
    uint64_t megabytes = size_megabytes(bytes);
    CHECK(megabytes << 20 >= bytes && (megabytes << 20) - bytes < 1 << 20);
    for (int style = SIZE_EXACT; style <= SIZE_RAW; style++) {
        FUZZ_TEXT out = { 0 };
        size_write(&out, bytes, SIZE_ONE, style);
        if (!strchr(str_text(&out), '.'))
            CHECK(size_read_memory(str_text(&out), SIZE_ONE, &again, NULL) == 0 && again == bytes);
        else
            CHECK(style == SIZE_EXACT || style == SIZE_ROUNDED);
    }
}

static void counts(const char *text)
{
    uint64_t count, low, high;

    if (size_read_count(text, 100000, SIZE_STEP_1024, &count, NULL) == 0)
        CHECK(count <= 100000);
    if (size_read_count(text, UINT64_MAX, SIZE_STEP_1000, &count, NULL) == 0)
        CHECK(size_read_range(text, UINT64_MAX, &low, &high, NULL) == 0 ||
              count > UINT64_MAX / 1049);
    if (size_read_range(text, 100000, &low, &high, NULL) == 0)
        CHECK(low <= high && high <= 100000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(freep) char *text = fuzz_text(data, size);
    uint64_t value = 0;

    memory(text);
    counts(text);
    memcpy(&value, data, MIN(size, sizeof(value)));
    for (unsigned unit = SIZE_ONE; unit <= SIZE_E; unit++) {
        for (unsigned other = 0; other <= SIZE_E; other++) {
            FUZZ_TEXT out = { 0 };
            size_write_in(&out, value, unit, other);
            if (other <= SIZE_RAW)
                size_write(&out, value, unit, other);
            CHECK(out.len > 0 && out.len < 80);
        }
    }
    return 0;
}
