/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_heap.c - a heap of many small things: whole, present before it is used, in huge pages
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/heap.h"
#include "test/unit.h"

enum { BLOCKS = 400000, BLOCK_WORDS = 64, PER_TURN = 500, PAGE = 4096, PAGES_MOST = 65536 };

static uint64_t *blocks[BLOCKS];
static const bool never;

static void fill_block(size_t i)
{
    blocks[i] = mem_new(sizeof(uint64_t) * BLOCK_WORDS);
    for (size_t k = 0; k < BLOCK_WORDS; k++)
        blocks[i][k] = i * BLOCK_WORDS + k;
}

static void check_blocks(void)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        for (size_t k = 0; k < BLOCK_WORDS; k++)
            assert_true(blocks[i][k] == i * BLOCK_WORDS + k);
    }
}

/* KiB of the heap in huge pages. */
static unsigned long huge_kib(void)
{
    FILE *file = fopen("/proc/self/smaps", "re");
    char line[512];
    bool inside = false;
    unsigned long sum = 0, kib;

    assert_non_null(file);
    while (fgets(line, sizeof(line), file)) {
        if (strstr(line, " rw-p ") || strstr(line, "---p") || strstr(line, " r"))
            inside = strstr(line, "[heap]") != NULL;
        else if (inside && sscanf(line, "AnonHugePages: %lu", &kib) == 1)
            sum += kib;
    }
    fclose(file);
    return sum;
}

static bool kernel_can(void)
{
    char text[64] = "";
    FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
    char *memory = aligned_alloc(2 << 20, 2 << 20);

    memset(memory, 1, 2 << 20);
    bool can = file && fgets(text, sizeof(text), file) && !strstr(text, "[never]") &&
               madvise(memory, 2 << 20, 25 /* MADV_COLLAPSE */) == 0;
    if (file)
        fclose(file);
    free(memory);
    return can;
}

static size_t absent(struct heap_range range)
{
    static unsigned char present[PAGES_MOST];
    size_t pages = (size_t)(range.to - range.from) / PAGE, count = 0;

    assert_true(pages < PAGES_MOST);
    assert_int_equal(mincore(range.from, pages * PAGE, present), 0);
    for (size_t i = 0; i < pages; i++)
        count += !(present[i] & 1);
    return count;
}

/* How much of what was used in a turn had been filled in an earlier one. */
static void test_ahead(void **unused)
{
    struct heap_range range, last = { 0 };
    size_t late = 0, turns = 0;

    (void)unused;
    for (size_t i = 0; i < BLOCKS; i++) {
        fill_block(i);
        if ((i + 1) % PER_TURN)
            continue;
        turns += last.to != NULL;
        late += last.to && (char *)blocks[i] > last.to && (char *)blocks[i] < last.to + (1 << 30);
        if (!heap_ahead(&range))
            continue;
        assert_true(range.from < range.to);
        assert_true(!last.to || range.from >= last.to - (2 << 20));
        heap_fill(range, i < BLOCKS / 2 ? NULL : &never); /* as at a start, and while others wait */
        assert_int_equal(absent(range), 0);
        last = range;
    }
    assert_true(turns > 100);
    assert_int_equal(late, 0);
    check_blocks();
    char *apart = mem_new(5 << 20); /* it can grow without being copied */
    assert_true(apart > (char *)sbrk(0));
    free(apart);
}

static void test_mended(void **unused)
{
    (void)unused;
    if (!kernel_can())
        skip();
    unsigned long before = huge_kib();
    assert_true(before > 100 * 1024);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    for (size_t i = 0; i < BLOCKS; i += 64)
        blocks[i][0] = blocks[i][0];
    for (size_t i = 0; i < BLOCKS; i += 64)
        ((volatile uint64_t *)blocks[i])[1] = i * BLOCK_WORDS + 1;
    unsigned long split = huge_kib();
    assert_true(split < before / 2);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_true(heap_mend(&never));
    assert_true(huge_kib() > before * 9 / 10);
    check_blocks();
}

/* A worker is at it all the time: the heap grows in spite of it when it must, and is whole. */
static void *mend_on(void *stop)
{
    while (!__atomic_load_n((bool *)stop, __ATOMIC_RELAXED))
        heap_mend(stop);
    return NULL;
}

static void test_grows_beside_a_worker(void **unused)
{
    static void *more[BLOCKS / 8];
    struct heap_range range;
    bool stop = false;
    pthread_t worker;

    (void)unused;
    assert_int_equal(pthread_create(&worker, NULL, mend_on, &stop), 0);
    for (size_t i = 0; i < ARRAY_LEN(more); i++) {
        more[i] = mem_new(sizeof(uint64_t) * BLOCK_WORDS);
        memset(more[i], 0x5a, sizeof(uint64_t) * BLOCK_WORDS);
        if ((i + 1) % PER_TURN == 0 && heap_ahead(&range))
            heap_fill(range, &never);
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    pthread_join(worker, NULL);
    for (size_t i = 0; i < ARRAY_LEN(more); i++) {
        assert_int_equal(((uint8_t *)more[i])[sizeof(uint64_t) * BLOCK_WORDS - 1], 0x5a);
        free(more[i]);
    }
    check_blocks();
}

static void test_stops(void **unused)
{
    const bool stop = true;
    struct heap_range range = { 0 };

    (void)unused;
    heap_fill(range, &stop);
    assert_true(!heap_mend(&stop) || !kernel_can());
    check_blocks();
    for (size_t i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    while (heap_ahead(&range))
        heap_fill(range, &never);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_mended),
        cmocka_unit_test(test_grows_beside_a_worker),
        cmocka_unit_test(test_stops),
    };

#ifdef __SANITIZE_ADDRESS__
    return 77; /* skipped: there the allocator is another one */
#endif
    mem_steady();
    heap_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
