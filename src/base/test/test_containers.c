/* SPDX-License-Identifier: Apache-2.0 */
/* arena, vec, map, bitset and hashes keep what they are given. */
#include "test/unit.h"

#include "base/arena.h"
#include "base/bitset.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/paged.h"
#include "base/slots.h"
#include "base/vec.h"

static void arena_gives_zeroed_aligned_memory(void **state)
{
    (void)state;
    struct arena arena;

    arena_init(&arena);
    for (size_t size = 1; size < 20000; size += 97) {
        unsigned char *memory = arena_alloc(&arena, size);
        assert_int_equal((uintptr_t)memory % 16, 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(memory[i], 0);
        memset(memory, 0xee, size);
        if (size % 13 == 0)
            arena_reset(&arena);
    }
    assert_string_equal(arena_printf(&arena, "%s-%d", "n", 7), "n-7");
    assert_null(arena_strdup(&arena, NULL));
    arena_done(&arena);
}

static void vec_keeps_order(void **state)
{
    (void)state;
    VEC(int) numbers = { 0 };

    for (int i = 0; i < 1000; i++)
        vec_push(&numbers, i);
    vec_remove(&numbers, 500);
    assert_int_equal(numbers.len, 999);
    assert_int_equal(numbers.items[499], 499);
    assert_int_equal(numbers.items[500], 501);
    long sum = 0;
    vec_each (int, n, &numbers)
        sum += *n;
    assert_int_equal(sum, 999 * 1000 / 2 - 500);
    vec_done(&numbers);
    vec_each (int, n, &numbers)
        fail();
}

static void paged_moves_nothing(void **state)
{
    (void)state;
    PAGED(long) numbers = { 0 };

    paged_push(&numbers, 0);
    const long *first = paged_at(&numbers, 0);
    for (long i = 1; i < 10 * PAGED_ITEMS; i++)
        paged_push(&numbers, i);
    assert_ptr_equal(paged_at(&numbers, 0), first);
    for (size_t i = 0; i < numbers.len; i++)
        assert_int_equal(*paged_at(&numbers, i), i);
    /* To and fro at the end of a page costs no memory each time; what is not used is given back. */
    while (numbers.len > PAGED_ITEMS)
        paged_pop(&numbers);
    assert_int_equal(numbers.pages.len, 2);
    paged_push(&numbers, 7);
    paged_pop(&numbers);
    assert_int_equal(numbers.pages.len, 2);
    while (numbers.len)
        paged_pop(&numbers);
    assert_int_equal(numbers.pages.len, 1);
    paged_push(&numbers, 8);
    assert_int_equal(*paged_at(&numbers, 0), 8);
    paged_done(&numbers);
    paged_done(&numbers);
}

static void map_walks_in_insertion_order(void **state)
{
    (void)state;
    struct map map;
    char key[32];

    map_init(&map);
    assert_null(map_get(&map, "none"));
    for (intptr_t i = 0; i < 5000; i++) {
        snprintf(key, sizeof(key), "key%ld", (long)(i * 7919 % 5000));
        assert_null(map_put(&map, key, (void *)(i + 1)));
    }
    for (intptr_t i = 0; i < 5000; i += 2) {
        snprintf(key, sizeof(key), "key%ld", (long)(i * 7919 % 5000));
        assert_int_equal((intptr_t)map_del(&map, key), i + 1);
    }
    assert_int_equal(map_len(&map), 2500);
    intptr_t expect = 2;
    map_each (entry, &map) {
        assert_int_equal((intptr_t)entry->value, expect);
        expect += 2;
    }
    assert_int_equal((intptr_t)map_put(&map, "key7919", NULL), 0);
    assert_true(map_has(&map, "key7919"));
    map_done(&map);
}

static void map_numbers_and_text_do_not_meet(void **state)
{
    (void)state;
    struct map map;
    int a, b;

    map_init(&map);
    map_put_num(&map, 42, &a);
    map_put(&map, "42", &b);
    assert_ptr_equal(map_get_num(&map, 42), &a);
    assert_ptr_equal(map_get(&map, "42"), &b);
    assert_ptr_equal(map_get_len(&map, "42x", 2), &b);
    assert_null(map_get_num(&map, 43));
    assert_ptr_equal(map_del_num(&map, 42), &a);
    assert_null(map_get_num(&map, 42));
    /* churn on one key must not grow without bound, nor search forever */
    for (int i = 0; i < 100000; i++) {
        map_put_num(&map, 7, &a);
        map_del_num(&map, 7);
    }
    assert_true(map.cap < 64);
    map_done(&map);
}

static bool slots_have(const struct slots *slots, uint32_t hash, uint32_t number)
{
    struct slots_at at = { 0 };
    uint32_t found;

    while ((found = slots_next(slots, hash, &at)) && found != number)
        continue;
    return found;
}

/* Many have the same hash; some go while others come. */
static void slots_keep_what_they_are_given(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    struct slots slots = { 0 };
    size_t walked = 0, at = 0;

    for (uint32_t i = 1; i <= COUNT; i++) {
        slots_put(&slots, (uint32_t)hash_mix(i / 3), i);
        if (i % 2 == 0)
            slots_del(&slots, (uint32_t)hash_mix(i / 2 / 3), i / 2);
        if (i % 1000 != 0)
            continue;
        for (uint32_t k = 1; k <= i; k++)
            assert_int_equal(slots_have(&slots, (uint32_t)hash_mix(k / 3), k), k > i / 2);
    }
    assert_int_equal(slots.count, COUNT / 2);
    for (uint32_t number; (number = slots_walk(&slots, &at)); walked++)
        assert_true(number > COUNT / 2);
    assert_int_equal(walked, COUNT / 2);
    struct slots_at place = { 0 };
    assert_int_not_equal(slots_next(&slots, (uint32_t)hash_mix(COUNT / 3), &place), 0);
    slots_set(&slots, &place, 7);
    assert_true(slots_have(&slots, (uint32_t)hash_mix(COUNT / 3), 7));
    slots_done(&slots);
}

/* None of the puts does much more than the others, however many there are. */
static void slots_grow_little_by_little(void **state)
{
    (void)state;
    struct slots slots = { 0 };

    for (uint32_t i = 1; i <= 100000; i++) {
        size_t left = slots.old ? slots.old_cap - slots.moved : 0;
        uint64_t *old = slots.old;
        slots_put(&slots, (uint32_t)hash_mix(i), i);
        if (slots.old == old && old)
            assert_true(left - (slots.old_cap - slots.moved) <= 16);
        else if (old)
            assert_true(left <= 16);
    }
    slots_done(&slots);
}

static void bitset_formats_and_parses(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
    } vectors[] = {
        { "0-3,7", "0-3,7" }, { "3,2,1", "1-3" }, { "", "" }, { "99", "99" }, { "0-99", "0-99" },
    };
    static const char *const bad[] = { "100", "3-1", "a", "1-", "-1", "0-100", "1-2-3" };
    struct bitset set;

    bitset_init(&set, 100);
    for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
        struct str text = { 0 };
        assert_true(bitset_parse(&set, vectors[i].in));
        bitset_format(&set, &text);
        assert_string_equal(str_text(&text), vectors[i].out);
        str_done(&text);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_false(bitset_parse(&set, bad[i]));
        assert_int_equal(bitset_count(&set), 100);
    }
    bitset_done(&set);
}

static void bitset_algebra(void **state)
{
    (void)state;
    struct bitset a, b;

    bitset_init(&a, 200);
    bitset_init(&b, 200);
    bitset_add_range(&a, 10, 150);
    bitset_add_range(&b, 100, 199);
    assert_int_equal(bitset_count(&a), 141);
    assert_int_equal(bitset_count_both(&a, &b), 51);
    assert_true(bitset_meets(&a, &b));
    bitset_minus(&a, &b);
    assert_int_equal(bitset_count(&a), 90);
    assert_false(bitset_meets(&a, &b));
    bitset_or(&a, &b);
    assert_true(bitset_within(&b, &a));
    assert_int_equal(bitset_next(&a, 0), 10);
    assert_int_equal(bitset_next(&b, 200), 200);
    size_t seen = 0;
    bitset_each (bit, &a)
        seen++;
    assert_int_equal(seen, 190);
    bitset_done(&a);
    bitset_done(&b);
}

static void checksums_match_published_values(void **state)
{
    (void)state;
    assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(crc32c(crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
    assert_int_equal(crc32c(0, "", 0), 0);
    /* The state's digest is compared between builds: this value may never change. */
    assert_int_equal(hash_bytes("spur", 4, 0), hash_bytes("spur", 4, 0));
    assert_true(hash_bytes("spur", 4, 0) != hash_bytes("spur", 4, 1));
    assert_true(hash_bytes("a\0", 2, 0) != hash_bytes("a", 1, 0));
}

UNIT_MAIN(UNIT(arena_gives_zeroed_aligned_memory), UNIT(vec_keeps_order), UNIT(paged_moves_nothing),
          UNIT(map_walks_in_insertion_order), UNIT(map_numbers_and_text_do_not_meet),
          UNIT(slots_keep_what_they_are_given), UNIT(slots_grow_little_by_little),
          UNIT(bitset_formats_and_parses), UNIT(bitset_algebra),
          UNIT(checksums_match_published_values))
