/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_lz.c - what is compressed comes back; what is not a block is refused
 */
#include "base/lz.h"
#include "test/unit.h"

enum { MOST = 200000 };

/* The same bytes every time: xorshift. */
static uint64_t rng_state;
static void rng_seed(uint64_t seed)
{
    rng_state = seed + 1;
}
static uint64_t rng_u64(void)
{
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 7;
    rng_state ^= rng_state << 17;
    return rng_state;
}
static uint64_t rng_below(uint64_t bound)
{
    return rng_u64() % bound;
}

static void fill(uint8_t *bytes, size_t len, unsigned kind)
{
    for (size_t i = 0; i < len; i++) {
        bytes[i] = kind == 0   ? 0
                   : kind == 1 ? (uint8_t)rng_u64()
                   : kind == 2 ? (uint8_t)("PATH=/usr/local/bin:/usr/bin;"[i % 29] + (i / 3300) % 3)
                               : (uint8_t)rng_below(3);
    }
}

static void everything_comes_back(void **state)
{
    uint8_t *bytes = NEW_ARRAY(uint8_t, MOST);

    (void)state;
    rng_seed(5);
    for (unsigned kind = 0; kind < 4; kind++) {
        for (size_t len = 0; len < MOST; len += 1 + len / 3) {
            CLEANUP(str_done) struct str block = { 0 };
            CLEANUP(str_done) struct str back = { 0 };
            fill(bytes, len, kind);
            str_add(&block, "before"); /* it appends */
            if (!lz_compress(bytes, len, &block)) {
                assert_int_equal(block.len, 6);
                assert_true(len < 40 || kind == 1 || (kind == 3 && len < 100));
                continue;
            }
            assert_true(block.len - 6 < len);
            assert_true(lz_expand(block.data + 6, block.len - 6, len, &back));
            assert_int_equal(back.len, len);
            assert_memory_equal(back.data, bytes, len);
            /* One byte more or less is another block. */
            assert_false(lz_expand(block.data + 6, block.len - 6, len + 1, &back));
            assert_false(lz_expand(block.data + 6, block.len - 6, len - 1, &back));
        }
    }
    free(bytes);
}

static void damaged_blocks_stay_inside(void **state)
{
    enum { LEN = 3000 };
    uint8_t bytes[LEN];
    CLEANUP(str_done) struct str block = { 0 };

    (void)state;
    rng_seed(6);
    fill(bytes, LEN, 2);
    assert_true(lz_compress(bytes, LEN, &block));
    for (int i = 0; i < 20000; i++) {
        CLEANUP(str_done) struct str back = { 0 };
        char *copy = mem_new(block.len + 1);
        memcpy(copy, block.data, block.len);
        copy[rng_below(block.len)] = (char)rng_u64();
        size_t len = rng_below(4) ? block.len : rng_below(block.len + 1);
        if (lz_expand(copy, len, LEN, &back)) /* the sanitizer watches */
            assert_int_equal(back.len, LEN);
        else
            assert_int_equal(back.len, 0);
        free(copy);
    }
}

/* A block written by hand from the format's description: "abcabcabcabcabcXYZZY". */
static void the_format_is_the_public_one(void **state)
{
    static const uint8_t block[] = { 0x38, 'a', 'b', 'c', 3, 0, 0x50, 'X', 'Y', 'Z', 'Z', 'Y' };
    CLEANUP(str_done) struct str back = { 0 };

    (void)state;
    assert_true(lz_expand(block, sizeof(block), 20, &back));
    assert_string_equal(back.data, "abcabcabcabcabcXYZZY");
}

UNIT_MAIN(UNIT(everything_comes_back), UNIT(damaged_blocks_stay_inside),
          UNIT(the_format_is_the_public_one))
