/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deps_priv.h - a dependency: a list of items, of which all or one must come true
 */
#ifndef CORE_DEPS_PRIV_H
#define CORE_DEPS_PRIV_H

#include "core/state_priv.h"

enum dep_type {
    DEP_AFTER,
    DEP_AFTER_ANY,
    DEP_AFTER_BURST_BUFFER,
    DEP_AFTER_CORR,
    DEP_AFTER_NOT_OK,
    DEP_AFTER_OK,
    DEP_SINGLETON,
};

struct dep {
    uint8_t type;
    bool failed;
    bool array;      /* all tasks of one; written "12_*" */
    uint32_t job_id; /* 0 for singleton */
    uint32_t task;   /* NO_TASK: the whole job */
    uint32_t minutes;
};

struct deps {
    bool any; /* '?' */
    size_t count;
    struct dep items[];
};

/* What has become of the job that an item names. */
struct fate {
    bool started; /* all of it started, or will not any more */
    bool ended;   /* all of it */
    bool ok;      /* ended, and all of it with COMPLETED */
    int64_t start_us;
};

enum verdict { WAIT, DONE, NEVER_DONE };

/*
 * News of a job for those who waited for it when they came. What it had become then is written here,
 * so it may be requeued or forgotten before the last of them has been told.
 */
struct dep_notice {
    struct dep_notice *next;      /* of all, in the order they came */
    struct dep_notice *next_same; /* of the same key */
    uint64_t number;              /* grows */
    uint64_t key;                 /* dep_waiters_key(); of a singleton its name's hash */
    bool singleton;
    bool array;           /* the key is of a whole array */
    uint32_t task;        /* only this one of its tasks has notice, or NO_TASK */
    struct fate all, one; /* of the whole, of the task */
    int64_t time_us;
    struct wait_list ids;   /* who has not been told; none for a singleton: they are in the map */
    uint32_t twin, twin_of; /* of the array twin_of, tasks from this one on have not been told */
    uint64_t hash;          /* its part of the digest */
};

/* deps.c */
struct fate deps_fate(const struct state *state, uint32_t job_id, uint32_t task);
enum verdict deps_judge(const struct dep *dep, const struct fate *fate, int64_t now_us);
/* Each task of that array waits for its twin. */
bool deps_of_twins(const struct job *job, const struct dep *dep);
/* Something about its items has changed. NULL items: nothing is left to wait for. */
void deps_changed(struct state *state, struct job *job, bool was_never, struct events *out);

/* job_names.c */
enum verdict deps_singleton(struct state *state, const struct job *self);
/* It waits to be alone with its name. */
void job_name_waits(struct state *state, const struct job *job);

/* dep_waiters.c */
bool wait_list_add(struct wait_list *list, uint32_t id); /* false: it is there */
bool wait_list_del(struct wait_list *list, uint32_t id);
bool wait_list_has(const struct wait_list *list, uint32_t id);
void wait_list_done(struct wait_list *list);
static inline uint32_t wait_list_at(const struct wait_list *list, size_t i)
{
    return list->items[list->from + i];
}
/* What items of this kind are registered by: who waits for a start hears of no end, and so on. */
static inline uint64_t dep_waiters_key(uint32_t job_id, bool start)
{
    return (uint64_t)job_id << 1 | start;
}
static inline uint64_t dep_key(const struct dep *dep)
{
    return dep_waiters_key(dep->job_id, dep->type == DEP_AFTER);
}
struct dep_waiters *dep_waiters_at(const struct wait_map *map, uint64_t key); /* NULL: nobody */
static inline size_t dep_waiters_len(const struct wait_map *map)
{
    return map->slots.count;
}
struct dep_waiters *dep_waiters_make(struct wait_map *map, uint64_t key);
/* It may have become empty. */
void dep_waiters_settle(struct wait_map *map, struct dep_waiters *waiters);
/* News that the job has not been told about this item; NULL when there is none. */
struct dep_notice *deps_pending_notice(const struct state *state, const struct job *job,
                                       const struct dep *dep);
/* Out of the lists of those who wait now; not of those who wait to be told. */
void deps_withdraw(struct state *state, struct job *job);

/* dep_notify.c */
void dep_notify_changed(struct state *state,
                        struct dep_notice *notice); /* after any change of it */
void dep_notify_append(struct state *state, struct dep_notice *notice);
uint64_t dep_notify_hash(const struct dep_notice *notice);

/* Reads what a person wrote, or what deps_format() did; NULL when it is no dependency. */
struct deps *deps_read(const char *text);

#endif
