/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap.c - a heap in huge pages that is there before it is used
 *
 * (1) The allocator of libc takes small memory from the end of one region that grows (sbrk). Where in
 *     it the unused rest begins, it does not say; mem_high() is the highest address that it gave.
 * (2) To let it grow we ask for a little more than the rest and give that back. It writes the head of
 *     its new rest, one page of 4 KiB. The worker asks for huge pages, one by one: where the loop is
 *     faster it finds small ones, which are there at once.
 * (3) What is larger than APART_BYTES has a mapping of its own, which moves instead of being copied when
 *     it grows: 16 MiB would take 10 ms. libc takes it from the rest when that is large enough, so the
 *     rest is always less. These mappings are found in /proc when they are mended.
 * (4) While the kernel puts a huge page together nobody's memory can grow: the loop would spin for a
 *     millisecond or five. So a worker that is at it holds a lock; the loop leaves growing to a later turn
 *     then, and says that it waits: before its next page the worker lets it go first.
 */
#include "sys/heap.h"

#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/str.h"
#include "sys/clock.h"
#include "sys/files.h"

/* Not in the headers of Debian 12. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum {
    HUGE_BYTES = 2 << 20,
    SMALL_HEAP = 64 << 20, /* less is left alone */
    AHEAD_BYTES = HUGE_BYTES / 4 * 3,
    PAGE_BYTES = 4096,
    AGAIN_BYTES = 1 << 20,  /* used since a try that found a hole in the heap */
    APART_BYTES = 4 << 20,  /* (3) */
    TRIM_BYTES = 256 << 20, /* unused at the end goes back to the kernel when it is that much */
    LARGE_BYTES = 16 << 20, /* (3) more than a stack */
    WORKED_US = 100,
    START_US = 500000, /* of a start, for putting pages together; it may be more */
    EACH_US = 20000,   /* while each takes less: a half is usual, in a virtual machine five */
    PAUSE_US = 2000,
    FIRST_US = 100, /* (4): the worker looks again after this, so often */
    FIRST_MOST = 100,
    NEVER_APART = 0,
    APART_MOST = 65536, /* mappings; libc's own value */
};

static struct {
    char *begin, *end; /* of the region, as we last saw it */
    char *tried; /* how far it was used when we asked for more and there was a hole; or NULL */
    bool large, never;
    pthread_mutex_t lock;          /* (4) */
    bool wanted;                   /* (4): the loop waits for it */
    int64_t start_us, start_pages; /* what a start took for how many */
} heap = { .lock = PTHREAD_MUTEX_INITIALIZER };

void heap_begin(void)
{
    heap.begin = heap.end = sbrk(0);
    mallopt(M_MMAP_THRESHOLD, APART_BYTES);
}

static char *up(char *at)
{
    return at + (-(uintptr_t)at & (HUGE_BYTES - 1));
}

static char *down(char *at)
{
    return at - ((uintptr_t)at & (HUGE_BYTES - 1));
}

static bool allowed(void)
{
    CLEANUP(str_done) struct str text = { 0 };

    return file_read("/sys/kernel/mm/transparent_hugepage/enabled", LIMIT_NAME_BYTES, &text,
                     NULL) == 0 &&
           !strstr(str_text(&text), "[never]");
}

/* (2): up to a little after the end of the huge page in which AHEAD_BYTES end. */
static void grow(char *high, char *end)
{
    mallopt(M_MMAP_MAX, NEVER_APART);
    mallopt(M_TOP_PAD, (int)(up(high + AHEAD_BYTES) - end) + PAGE_BYTES);
    /* volatile: or the compiler sees no use for it */
    void *volatile memory = malloc((size_t)(end - high) + 1);
    free(memory);
    mallopt(M_MMAP_MAX, APART_MOST);
}

/* (4): false when a worker is at it. */
static bool grow_soon(char *high, char *end)
{
    bool now = pthread_mutex_trylock(&heap.lock) == 0;

    __atomic_store_n(&heap.wanted, !now, __ATOMIC_RELAXED);
    if (!now)
        return false;
    grow(high, end);
    pthread_mutex_unlock(&heap.lock);
    return true;
}

bool heap_ahead(struct heap_range *out)
{
    char *high = mem_high(), *end = sbrk(0);

    if (end - heap.begin < SMALL_HEAP || heap.never)
        return false;
    if (!heap.large) {
        if ((heap.never = !allowed()))
            return false;
        __atomic_store_n(&heap.large, true, __ATOMIC_RELAXED);
        heap.end = heap.begin;
        mallopt(M_TRIM_THRESHOLD, TRIM_BYTES);
    }
    if (high < heap.begin || high >= end)
        high = end;
    bool needs = down(end) - high < AHEAD_BYTES &&
                 (!heap.tried || high < heap.tried || high - heap.tried >= AGAIN_BYTES);
    if (!needs)
        __atomic_store_n(&heap.wanted, false, __ATOMIC_RELAXED);
    if (needs && grow_soon(high, end)) {
        heap.tried = sbrk(0) == end ? high : NULL;
        end = sbrk(0);
    }
    if (end <= heap.end) {
        heap.end = end;
        return false;
    }
    *out = (struct heap_range){ MAX(down(heap.end), up(heap.begin)), down(end) };
    heap.end = out->to; /* the last piece when it is whole */
    return out->from < out->to;
}

/* ---- in a worker ---- */

static bool goes_on(const bool *stop)
{
    return !stop || !__atomic_load_n(stop, __ATOMIC_RELAXED);
}

/* (4) */
static int advise(char *at, int advice)
{
    for (unsigned i = 0; i < FIRST_MOST && __atomic_load_n(&heap.wanted, __ATOMIC_RELAXED); i++)
        usleep(FIRST_US);
    pthread_mutex_lock(&heap.lock);
    int rc = madvise(at, HUGE_BYTES, advice);
    pthread_mutex_unlock(&heap.lock);
    return rc;
}

/* At a start; other processes do not count. */
static int64_t cpu_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static bool is_hard(void)
{
    return heap.start_us > START_US && heap.start_us > heap.start_pages * EACH_US;
}

/* Who touches a page of it meanwhile waits, so one at a time and with a pause. What cannot be is left. */
static bool collapse(char *from, char *to, const bool *stop)
{
    for (char *at = from; at < to; at += HUGE_BYTES) {
        if (stop ? !goes_on(stop) : is_hard())
            return false;
        int64_t began = stop ? clock_mono_us() : cpu_us();
        advise(at, MADV_COLLAPSE);
        if (!stop) {
            heap.start_us += cpu_us() - began;
            heap.start_pages++;
        } else if (clock_mono_us() - began > WORKED_US) {
            usleep(PAUSE_US);
        }
    }
    return true;
}

void heap_fill(struct heap_range range, const bool *stop)
{
    for (char *at = range.from; at < range.to && goes_on(stop); at += HUGE_BYTES) {
        advise(at, MADV_HUGEPAGE);
        if (advise(at, MADV_POPULATE_WRITE) < 0)
            return;
    }
    collapse(range.from, range.to, stop); /* where the loop was first */
}

bool heap_mend(const bool *stop)
{
    bool all = true;
    FILE *maps =
        __atomic_load_n(&heap.large, __ATOMIC_RELAXED) ? fopen("/proc/self/maps", "re") : NULL;
    char line[512], access[5];
    uintptr_t from, to;

    while (maps && all && fgets(line, sizeof(line), maps)) {
        int at = 0;
        sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s 00:00 0 %n", &from, &to, access, &at);
        if (!at || strcmp(access, "rw-p") != 0 || to - from < LARGE_BYTES ||
            (line[at] && !str_starts(line + at, "[heap]"))) /* a file's, a stack */
            continue;
        char *first = up((char *)from), *last = down((char *)to);
        all = collapse(first, last, stop);
    }
    if (maps)
        fclose(maps);
    return all;
}
