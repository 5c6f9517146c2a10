/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dep_waiters.c - who waits for what
 *
 * (1) An item that waits is registered once under its key, so that notice reach it: in the list of
 *     those who wait now, or in that of notice which it has not been told yet.
 * (2) A list is in order of id. Most come at its end and go at its beginning, so it has room at
 *     both, and what must move for others is the shorter part.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "core/job/jobs.h"

/* ---- lists of ids; (2) ---- */

static size_t place_of(const struct wait_list *list, uint32_t id)
{
    size_t lo = 0, hi = list->len;

    if (list->len && wait_list_at(list, list->len - 1) < id)
        return list->len;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (wait_list_at(list, mid) < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

bool wait_list_has(const struct wait_list *list, uint32_t id)
{
    size_t at = place_of(list, id);

    return at < list->len && wait_list_at(list, at) == id;
}

/* Into twice the room, with this much of it before the first. */
static void make_room(struct wait_list *list, size_t before)
{
    size_t cap = MAX(list->len * 2, 4);
    uint32_t *items = NEW_ARRAY(uint32_t, cap);

    if (list->len)
        memcpy(items + before, list->items + list->from, list->len * sizeof(*items));
    free(list->items);
    list->items = items;
    list->from = before;
    list->cap = cap;
}

bool wait_list_add(struct wait_list *list, uint32_t id)
{
    size_t at = place_of(list, id);

    if (at < list->len && wait_list_at(list, at) == id)
        return false;
    bool front = at < list->len / 2;
    if (front && list->from == 0)
        make_room(list, (list->len + 1) / 2);
    else if (!front && list->from + list->len == list->cap)
        make_room(list, 0);
    uint32_t *first = list->items + list->from;
    if (front) {
        memmove(first - 1, first, at * sizeof(id));
        list->from--;
    } else {
        memmove(first + at + 1, first + at, (list->len - at) * sizeof(id));
    }
    list->items[list->from + at] = id;
    list->len++;
    list->sum += hash_mix(id);
    return true;
}

bool wait_list_del(struct wait_list *list, uint32_t id)
{
    size_t at = place_of(list, id);

    if (at >= list->len || wait_list_at(list, at) != id)
        return false;
    uint32_t *first = list->items + list->from;
    if (at < list->len / 2) {
        memmove(first + 1, first, at * sizeof(id));
        list->from++;
    } else {
        memmove(first + at, first + at + 1, (list->len - at - 1) * sizeof(id));
    }
    list->len--;
    list->sum -= hash_mix(id);
    return true;
}

void wait_list_done(struct wait_list *list)
{
    free(list->items);
    *list = (struct wait_list){ 0 };
}

/* ---- registering; (1) ---- */

static uint32_t slot_hash(uint64_t key)
{
    return (uint32_t)hash_mix(key);
}

static struct dep_waiters **cell(const struct wait_map *map, uint32_t number)
{
    return paged_at(&map->made, number - 1);
}

/* A free cell has a number where others have a pointer, so its lowest bit is set. */
static bool is_free(const struct dep_waiters *waiters)
{
    return (uintptr_t)waiters & 1;
}

struct dep_waiters *dep_waiters_at(const struct wait_map *map, uint64_t key)
{
    uint32_t number;

    for (struct slots_at at = { 0 }; (number = slots_next(&map->slots, slot_hash(key), &at));) {
        struct dep_waiters *waiters = *cell(map, number);
        if (waiters->key == key)
            return waiters;
    }
    return NULL;
}

static uint32_t take_number(struct wait_map *map)
{
    uint32_t number = map->free;

    if (number) {
        map->free = (uint32_t)((uintptr_t)*cell(map, number) >> 1);
        return number;
    }
    paged_push(&map->made, NULL);
    return (uint32_t)map->made.len;
}

struct dep_waiters *dep_waiters_make(struct wait_map *map, uint64_t key)
{
    struct dep_waiters *waiters = dep_waiters_at(map, key);

    if (waiters)
        return waiters;
    waiters = NEW(struct dep_waiters);
    waiters->key = key;
    waiters->number = take_number(map);
    *cell(map, waiters->number) = waiters;
    slots_put(&map->slots, slot_hash(key), waiters->number);
    return waiters;
}

static void dep_waiters_free(struct dep_waiters *waiters)
{
    wait_list_done(&waiters->ids);
    wait_list_done(&waiters->runs);
    free(waiters);
}

void dep_waiters_settle(struct wait_map *map, struct dep_waiters *waiters)
{
    uint32_t number = waiters->number;

    if (waiters->ids.len || waiters->notice)
        return;
    slots_del(&map->slots, slot_hash(waiters->key), number);
    *cell(map, number) = (struct dep_waiters *)((uintptr_t)map->free << 1 | 1);
    map->free = number;
    dep_waiters_free(waiters);
}

static void remove_from(struct state *state, struct wait_map *map, uint64_t key, uint32_t id)
{
    struct dep_waiters *waiters = dep_waiters_at(map, key);

    if (!waiters)
        return;
    if (!wait_list_del(&waiters->ids, id)) {
        for (struct dep_notice *notice = waiters->notice; notice; notice = notice->next_same) {
            if (wait_list_del(&notice->ids, id)) {
                dep_notify_changed(state, notice);
                break;
            }
        }
    }
    dep_waiters_settle(map, waiters);
}

static uint64_t own_name(const struct job *job)
{
    return job_name_hash(job->owner->uid, job_name(job));
}

struct dep_notice *deps_pending_notice(const struct state *state, const struct job *job,
                                       const struct dep *dep)
{
    if (!state->dep_pending.first || dep->type == DEP_SINGLETON || dep->failed)
        return NULL;
    const struct dep_waiters *waiters = dep_waiters_at(&state->dep_waiters, dep_key(dep));
    for (struct dep_notice *notice = waiters ? waiters->notice : NULL; notice;
         notice = notice->next_same) {
        if (wait_list_has(&notice->ids, job->id))
            return notice;
    }
    return NULL;
}

void deps_register(struct state *state, struct job *job)
{
    for (size_t i = 0; i < job->deps->count; i++) {
        const struct dep *dep = &job->deps->items[i];
        if (dep->type == DEP_SINGLETON)
            job_name_waits(state, job);
        else if (!dep->failed && !deps_pending_notice(state, job, dep))
            wait_list_add(&dep_waiters_make(&state->dep_waiters, dep_key(dep))->ids, job->id);
    }
}

void deps_unregister(struct state *state, struct job *job)
{
    for (size_t i = 0; i < job->deps->count; i++) {
        const struct dep *dep = &job->deps->items[i];
        if (dep->type == DEP_SINGLETON)
            remove_from(state, &state->singletons, own_name(job), job->id);
        else
            remove_from(state, &state->dep_waiters, dep_key(dep), job->id);
    }
}

void deps_withdraw(struct state *state, struct job *job)
{
    for (size_t i = 0; i < job->deps->count; i++) {
        const struct dep *dep = &job->deps->items[i];
        bool singleton = dep->type == DEP_SINGLETON;
        struct wait_map *map = singleton ? &state->singletons : &state->dep_waiters;
        uint64_t key = singleton ? own_name(job) : dep_key(dep);
        struct dep_waiters *waiters = dep_waiters_at(map, key);
        if (waiters && wait_list_del(&waiters->ids, job->id))
            dep_waiters_settle(map, waiters);
    }
}

void deps_rename(struct state *state, struct job *job, bool before)
{
    for (size_t i = 0; job->deps && i < job->deps->count; i++) {
        if (job->deps->items[i].type != DEP_SINGLETON)
            continue;
        if (before)
            remove_from(state, &state->singletons, own_name(job), job->id);
        else
            job_name_waits(state, job);
    }
}

void deps_follow(struct state *state, struct job *task, const struct job *meta)
{
    for (size_t i = 0; state->dep_pending.first && task->deps && i < task->deps->count; i++) {
        const struct dep *dep = &task->deps->items[i];
        struct dep_notice *notice = deps_pending_notice(state, meta, dep);
        if (!notice || !wait_list_add(&notice->ids, task->id))
            continue;
        struct dep_waiters *waiters = dep_waiters_at(&state->dep_waiters, dep_key(dep));
        wait_list_del(&waiters->ids, task->id);
        dep_notify_changed(state, notice);
    }
}

static void free_map(struct wait_map *map)
{
    for (uint32_t number = 1; number <= map->made.len; number++) {
        if (!is_free(*cell(map, number)))
            dep_waiters_free(*cell(map, number));
    }
    paged_done(&map->made);
    slots_done(&map->slots);
}

void deps_done(struct state *state)
{
    for (struct dep_notice *notice = state->dep_pending.first, *next; notice; notice = next) {
        next = notice->next;
        wait_list_done(&notice->ids);
        free(notice);
    }
    vec_done(&state->dep_changed);
    free_map(&state->dep_waiters);
    free_map(&state->singletons);
}

/* ---- is all of it right? ---- */

static int wrong(struct err *err, const char *what, uint64_t number)
{
    return err_set(err, ERR_INTERNAL, "core: dependencies: %s (%llu)", what,
                   (unsigned long long)number);
}

/* In which lists the item's job is, of those it can be in. */
static unsigned places(const struct state *state, const struct job *job, const struct dep *dep)
{
    bool singleton = dep->type == DEP_SINGLETON;
    const struct dep_waiters *waiters =
        dep_waiters_at(singleton ? &state->singletons : &state->dep_waiters,
                       singleton ? own_name(job) : dep_key(dep));
    unsigned count = waiters && wait_list_has(&waiters->ids, job->id);

    for (const struct dep_notice *notice = waiters ? waiters->notice : NULL; notice;
         notice = notice->next_same)
        count += wait_list_has(&notice->ids, job->id);
    return count;
}

static bool is_first_of_key(const struct deps *deps, size_t i)
{
    const struct dep *dep = &deps->items[i];

    for (size_t k = 0; k < i; k++) {
        const struct dep *other = &deps->items[k];
        bool same = dep->type == DEP_SINGLETON
                        ? other->type == DEP_SINGLETON
                        : other->type != DEP_SINGLETON && dep_key(other) == dep_key(dep);
        if (same && !other->failed)
            return false;
    }
    return true;
}

static int check_list(const struct state *state, const struct wait_list *list, struct err *err)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < list->len; i++) {
        uint32_t id = wait_list_at(list, i);
        const struct job *job = job_at(state, id);
        if ((i && wait_list_at(list, i - 1) >= id) || !job || !job->deps)
            return wrong(err, "a list has a job that does not wait", id);
        sum += hash_mix(id);
    }
    return sum == list->sum ? 0 : wrong(err, "a list's sum is not right", sum);
}

static int check_map(const struct state *state, const struct wait_map *map, size_t *listed,
                     struct err *err)
{
    size_t count = 0;
    int code = 0;

    for (uint32_t number = 1; number <= map->made.len; number++) {
        const struct dep_waiters *waiters = *cell(map, number);
        if (is_free(waiters))
            continue;
        count++;
        *listed += waiters->ids.len;
        if (!waiters->ids.len && !waiters->notice)
            return wrong(err, "an empty list was kept", waiters->key);
        if (waiters->number != number || dep_waiters_at(map, waiters->key) != waiters)
            return wrong(err, "a list is not found", waiters->key);
        for (const struct dep_notice *notice = waiters->notice; notice; notice = notice->next_same)
            *listed += notice->ids.len;
        code = code < 0 ? code : check_list(state, &waiters->ids, err);
    }
    if (code == 0 && count != dep_waiters_len(map))
        code = wrong(err, "lists are not counted right", count);
    return code;
}

int deps_check(const struct state *state, uint64_t *digest, struct err *err)
{
    size_t listed = 0, waiting = 0, count = 0;

    for (const struct dep_notice *notice = state->dep_pending.first; notice;
         notice = notice->next, count++) {
        if (notice->hash != dep_notify_hash(notice) ||
            (notice->next && notice->next->number <= notice->number))
            return wrong(err, "news are not right", notice->number);
        int code = check_list(state, &notice->ids, err);
        if (code < 0)
            return code;
        *digest += notice->hash;
    }
    if (count != state->dep_pending.count)
        return wrong(err, "news are not counted right", count);
    for (const struct job *job = state_job_from(state, 0); job;
         job = state_job_from(state, (uint64_t)job->id + 1)) {
        for (size_t i = 0; job->deps && i < job->deps->count; i++) {
            const struct dep *dep = &job->deps->items[i];
            if (dep->failed || !is_first_of_key(job->deps, i))
                continue;
            waiting++;
            if (places(state, job, dep) != 1)
                return wrong(err, "an item is not registered once", job->id);
        }
    }
    int code = check_map(state, &state->dep_waiters, &listed, err);
    code = code < 0 ? code : check_map(state, &state->singletons, &listed, err);
    if (code == 0 && listed != waiting)
        code = wrong(err, "somebody is registered who does not wait", listed);
    return code;
}
