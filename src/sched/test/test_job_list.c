/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_job_list.c - a list of jobs is a sorted list, whatever comes and goes where
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "sched/plan.h"
#include "test/unit.h"

enum { MOST = 6000, STEPS = 40000 };

/* The plain list that it is held against. */
struct plain {
    struct order items[MOST];
    size_t count;
};

static uint64_t seed;

static uint32_t dice(uint32_t sides)
{
    seed = hash_mix(seed + UINT64_C(0x9e3779b97f4a7c15));
    return (uint32_t)((seed >> 33) % sides);
}

static size_t place_of(const struct plain *plain, struct order order)
{
    size_t low = 0, high = plain->count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (order_before(plain->items[middle], order))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void put(struct job_list *list, struct plain *plain, struct order order)
{
    size_t at = place_of(plain, order);

    memmove(&plain->items[at + 1], &plain->items[at],
            (plain->count++ - at) * sizeof(*plain->items));
    plain->items[at] = order;
    job_list_put(list, order);
}

static void del(struct job_list *list, struct plain *plain, size_t at)
{
    struct order order = plain->items[at];

    memmove(&plain->items[at], &plain->items[at + 1],
            (--plain->count - at) * sizeof(*plain->items));
    assert_true(job_list_del(list, order));
    assert_false(job_list_del(list, order));
}

static void assert_same(const struct job_list *list, const struct plain *plain)
{
    struct job_list_cursor cursor = { 0 };

    for (size_t i = 0; i < plain->count; i++) {
        struct order order = job_list_next(list, &cursor);
        assert_int_equal(order.id, plain->items[i].id);
        assert_int_equal(order.rank, plain->items[i].rank);
    }
    assert_true(order_is_last(job_list_next(list, &cursor)));
    if (plain->count) {
        size_t at = dice((uint32_t)plain->count);
        assert_int_equal(job_list_head(list).id, plain->items[0].id);
        assert_int_equal(job_list_count_before(list, plain->items[at]), at);
    }
}

/* `spread`: of ranks, so that most come in at the end or anywhere. */
static void run(uint64_t number, uint32_t spread, uint32_t front)
{
    struct plain *plain = calloc(1, sizeof(*plain));
    struct job_list list = { 0 };

    seed = number;
    for (uint32_t step = 1; step <= STEPS; step++) {
        bool grow = plain->count < MOST - 1 && (step / 8000 % 2 == 0 ? dice(4) : !dice(3));
        if (grow)
            put(&list, plain, (struct order){ dice(spread), step });
        else if (plain->count)
            del(&list, plain, dice(front) ? 0 : dice((uint32_t)plain->count));
        if (step % 997 == 0)
            assert_same(&list, plain);
    }
    while (plain->count)
        del(&list, plain, 0);
    assert_same(&list, plain);
    job_list_done(&list);
    free(plain);
}

static void test_it_stays_sorted(void **state)
{
    (void)state;
    for (uint64_t number = 1; number <= 4; number++) {
        run(number, 1, 2);
        run(number, 20, 2);
        run(number, 1000000, 20);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_stays_sorted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
