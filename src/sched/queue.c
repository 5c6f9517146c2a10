/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.c - pending jobs by class, in order
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "sched/sched_priv.h"

bool entry_before(const struct entry *a, const struct entry *b)
{
    if (a->tier != b->tier)
        return a->tier > b->tier;
    if (a->priority != b->priority)
        return a->priority > b->priority;
    return a->job_id < b->job_id;
}

struct entry *class_head(struct class *class)
{
    return class->head < class->queue.len ? class->queue.items[class->head] : NULL;
}

/* Where the entry is, or belongs. */
static size_t position(const struct class *class, const struct entry *entry)
{
    size_t low = class->head, high = class->queue.len;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (entry_before(class->queue.items[middle], entry))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct class *class_for(struct sched *sched, const struct job *job)
{
    struct {
        struct shape *shape;
        int64_t limit_s;
    } key = { job->shape, job->time_limit_s };
    uint64_t hash = hash_bytes(&key, sizeof(key), 0);
    struct class *class;

    /* Pointers only find a class; the order never depends on them. */
    while ((class = map_get_num(&sched->class_of, hash)) &&
           (class->shape != job->shape || class->limit_s != job->time_limit_s))
        hash++;
    if (!class) {
        class = NEW(struct class);
        class->shape = job->shape;
        class->limit_s = job->time_limit_s;
        map_put_num(&sched->class_of, hash, class);
        vec_push(&sched->classes, class);
    }
    return class;
}

static uint32_t tier_of(const struct sched *sched, const struct job *job)
{
    uint32_t tier = 0;

    for (size_t i = 0; i < job->shape->partition_count; i++) {
        const struct partition *partition =
            state_partition(sched->state, job->shape->partitions[i]);
        if (partition)
            tier = MAX(tier, partition_tier(partition));
    }
    return tier;
}

/* Components of a heterogeneous job behind the first are placed with it. */
static bool follows_another(const struct job *job)
{
    return job->more && job->more->het_job_id && job->more->het_offset > 0;
}

void queue_add(struct sched *sched, const struct job *job)
{
    queue_remove(sched, job->id);
    if (!job_is_eligible(job) || follows_another(job))
        return;
    struct entry *entry = NEW(struct entry);
    entry->job_id = job->id;
    entry->priority = job->priority;
    entry->tier = tier_of(sched, job);
    entry->class = class_for(sched, job);
    size_t at = position(entry->class, entry);
    vec_push(&entry->class->queue, NULL);
    struct entry **items = entry->class->queue.items;
    memmove(&items[at + 1], &items[at], (entry->class->queue.len - 1 - at) * sizeof(*items));
    items[at] = entry;
    if (at == entry->class->head)
        entry->class->tried = 0;
    map_put_num(&sched->entries, job->id, entry);
    const struct entry *top = sched->top_job ? map_get_num(&sched->entries, sched->top_job) : NULL;
    if (top && entry_before(entry, top))
        sched->top_job = 0; /* what goes before it is planned without its reservation */
}

static void class_free(struct sched *sched, struct class *class)
{
    for (size_t i = 0; i < sched->classes.len; i++) {
        if (sched->classes.items[i] == class) {
            vec_remove(&sched->classes, i);
            break;
        }
    }
    map_each (slot, &sched->class_of) {
        if (slot->value == class) {
            map_del_num(&sched->class_of, slot->num);
            break;
        }
    }
    vec_done(&class->queue);
    free(class);
}

void queue_remove(struct sched *sched, uint32_t job_id)
{
    struct entry *entry = map_del_num(&sched->entries, job_id);

    if (!entry)
        return;
    struct class *class = entry->class;
    size_t at = position(class, entry);
    if (at == class->head) {
        class->head++;
        if (class->head > 1024 && class->head * 2 > class->queue.len) {
            class->queue.len -= class->head;
            memmove(class->queue.items, class->queue.items + class->head,
                    class->queue.len * sizeof(*class->queue.items));
            class->head = 0;
        }
    } else {
        vec_remove(&class->queue, at);
    }
    if (!class_head(class))
        class_free(sched, class);
    free(entry);
}

struct class *queue_best(struct sched *sched)
{
    struct class *best = NULL;

    vec_each (struct class *, at, &sched->classes) {
        struct class *class = *at;
        struct entry *head = class_head(class);
        if (class->tried == sched->version || !head)
            continue;
        if (!best || entry_before(head, class_head(best)))
            best = class;
    }
    return best;
}
