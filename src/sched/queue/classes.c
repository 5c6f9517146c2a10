/* SPDX-License-Identifier: Apache-2.0 */
/*
 * classes.c - classes: pending jobs that differ in nothing that decides where and when they fit
 *
 * (1) A family lives as long as it has a class, a class as long as it has a member.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/must.h"
#include "sched/queue/queue.h"

enum { EXACT_LIMITS = 2048 };

/* A family with very many different limits gets coarser classes: rounded up by less than 1 %. */
static int64_t class_limit(const struct family *family, int64_t limit_us)
{
    if (limit_us == INT64_MAX || family->class_count < EXACT_LIMITS || limit_us < 128)
        return limit_us;
    int shift = 63 - __builtin_clzll((uint64_t)limit_us) - 7;
    int64_t unit = INT64_C(1) << shift;
    return (limit_us + unit - 1) / unit * unit;
}

static uint64_t class_key(const struct family *family, int64_t limit_us)
{
    return hash_mix((uint64_t)limit_us) ^ family->key;
}

static struct class *class_find(const struct sched *sched, const struct family *family,
                                int64_t limit_us)
{
    struct class *class = map_get_num(&sched->queue->class_keys, class_key(family, limit_us));

    while (class && (class->family != family || class->limit_us != limit_us))
        class = class->same;
    return class;
}

/* The memory that goes with a number, whether a class is there or not. */
static struct class *class_memory(const struct sched *sched, uint32_t number)
{
    uintptr_t slab = (uintptr_t)sched->queue->class_slabs.items[number / CLASSES_PER_SLAB];
    uintptr_t first = (slab + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;

    return (struct class *)first + number % CLASSES_PER_SLAB;
}

/* They lie close together: all of them are looked at again and again. */
static struct class *class_new(struct sched *sched)
{
    uint32_t number = (uint32_t)sched->queue->classes.len;

    if (sched->queue->free_classes.len) {
        number = sched->queue->free_classes.items[--sched->queue->free_classes.len];
    } else {
        if (number % CLASSES_PER_SLAB == 0)
            vec_push(&sched->queue->class_slabs,
                     mem_new(sizeof(struct class) * CLASSES_PER_SLAB + CACHE_LINE));
        vec_push(&sched->queue->classes, NULL);
    }
    struct class *class = class_memory(sched, number);
    *class = (struct class){ .number = number };
    sched->queue->classes.items[number] = class;
    return class;
}

struct class *class_get(struct sched *sched, const struct job *job, const struct mask *mask)
{
    struct family *family = family_get(sched, job, mask);
    int64_t limit = class_limit(family, job_length_us(job));
    struct class *class = class_find(sched, family, limit);

    if (class)
        return class;
    class = class_new(sched);
    class->family = family;
    class->limit_us = limit;
    class->best = class->head = ORDER_LAST;
    class->key = class_key(family, limit);
    class->luck = (uint32_t) class->key;
    class->same = map_put_num(&sched->queue->class_keys, class->key, class);
    class_link(family, class);
    family->class_count++;
    return class;
}

void class_drop(struct sched *sched, struct class *class)
{
    struct family *family = class->family;
    struct class *chain = map_get_num(&sched->queue->class_keys, class->key);

    MUST(class->members == 0);
    if (chain == class && class->same) {
        map_put_num(&sched->queue->class_keys, class->key, class->same);
    } else if (chain == class) {
        map_del_num(&sched->queue->class_keys, class->key);
    } else {
        while (chain->same != class)
            chain = chain->same;
        chain->same = class->same;
    }
    class_unlink(family, class);
    sched->queue->classes.items[class->number] = NULL;
    vec_push(&sched->queue->free_classes, class->number);
    job_list_done(&class->queue);
    if (--family->class_count == 0) /* (1) */
        family_drop(sched, family);
}

static void class_free(struct class *class)
{
    if (class)
        job_list_done(&class->queue);
}

static void slabs_done(struct sched *sched)
{
    vec_each (void *, slab, &sched->queue->class_slabs)
        free(*slab);
    vec_done(&sched->queue->class_slabs);
}

bool classes_done_some(struct sched *sched, unsigned *budget)
{
    for (; sched->queue->classes.len && *budget; budget_take(budget, 1))
        class_free(sched->queue->classes.items[--sched->queue->classes.len]);
    for (; sched->queue->classes.len == 0 && sched->queue->families.entries && *budget;
         budget_take(budget, 1)) {
        struct map_entry *entry = map_live_from(
            &sched->queue->families, sched->queue->families.entries + sched->rebuild.host);
        if (!entry)
            break;
        sched->rebuild.host = (uint32_t)(entry - sched->queue->families.entries) + 1;
        for (struct family *family = entry->value, *next; family; family = next) {
            next = family->same;
            family_free(family);
        }
        entry->value = NULL;
    }
    return *budget > 0;
}

void classes_done(struct sched *sched)
{
    vec_each (struct class *, at, &sched->queue->classes)
        class_free(*at);
    map_each (entry, &sched->queue->families) {
        for (struct family *family = entry->value, *next; family; family = next) {
            next = family->same;
            family_free(family);
        }
    }
    pendings_done(sched);
    vec_done(&sched->queue->classes);
    slabs_done(sched);
    map_done(&sched->queue->class_keys);
    vec_done(&sched->queue->free_classes);
    map_done(&sched->queue->families);
    vec_done(&sched->queue->ready.items);
    vec_done(&sched->queue->offers.items);
    for (size_t i = 0; i < sched->queue->partition_queues.len; i++)
        vec_done(&sched->queue->partition_queues.items[i].heap.items);
    vec_done(&sched->queue->partition_queues);
    vec_done(&sched->queue->needs_booking);
    vec_done(&sched->queue->hets);
    sched->queue->family_count = 0;
}
