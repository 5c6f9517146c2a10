/* SPDX-License-Identifier: Apache-2.0 */
/*
 * requests.c - request ids and the answers they were given
 *
 * A ring in order of time, with a hash table beside it. An answer is kept for ten minutes, or until
 * LIMIT_REQUESTS newer ones have come.
 *
 * (1) slots[] holds place + 1, where a place is counted from the beginning of the ring's memory.
 */
#include "core/state_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define KEPT_US (600 * US_PER_S)

static uint64_t id_hash(uint32_t uid, const uint8_t *id)
{
    return hash_bytes(id, 16, uid);
}

static size_t slot_count(const struct requests *requests)
{
    return requests->cap * 2;
}

static void place(struct requests *requests, size_t at)
{
    const struct request *request = &requests->ring[at];
    size_t mask = slot_count(requests) - 1, slot = id_hash(request->uid, request->id) & mask;

    while (requests->slots[slot])
        slot = (slot + 1) & mask;
    requests->slots[slot] = (uint32_t)at + 1;
}

static void resize(struct requests *requests, size_t cap)
{
    struct request *ring = NEW_ARRAY(struct request, cap);

    for (size_t i = 0; i < requests->count; i++)
        ring[i] = requests->ring[(requests->head + i) & (requests->cap - 1)];
    free(requests->ring);
    free(requests->slots);
    requests->ring = ring;
    requests->cap = cap;
    requests->head = 0;
    requests->slots = NEW_ARRAY(uint32_t, slot_count(requests));
    for (size_t i = 0; i < requests->count; i++)
        place(requests, i);
}

static size_t slot_of(const struct requests *requests, uint32_t uid, const uint8_t *id)
{
    size_t mask = slot_count(requests) - 1;

    for (size_t slot = id_hash(uid, id) & mask; requests->slots[slot]; slot = (slot + 1) & mask) {
        const struct request *request = &requests->ring[requests->slots[slot] - 1];
        if (request->uid == uid && memcmp(request->id, id, 16) == 0)
            return slot;
    }
    return SIZE_MAX;
}

struct request *request_find(const struct state *state, uint32_t uid, const uint8_t *id)
{
    const struct requests *requests = &state->requests;

    if (!requests->count)
        return NULL;
    size_t slot = slot_of(requests, uid, id);
    return slot == SIZE_MAX ? NULL : &requests->ring[requests->slots[slot] - 1];
}

static void drop_oldest(struct state *state)
{
    struct requests *requests = &state->requests;
    const struct request *oldest = &requests->ring[requests->head];
    size_t mask = slot_count(requests) - 1, at = slot_of(requests, oldest->uid, oldest->id);

    state->digest -= request_hash(oldest);
    for (size_t next = (at + 1) & mask; requests->slots[next]; next = (next + 1) & mask) {
        const struct request *other = &requests->ring[requests->slots[next] - 1];
        size_t home = id_hash(other->uid, other->id) & mask;
        if (((next - home) & mask) >= ((next - at) & mask)) {
            requests->slots[at] = requests->slots[next];
            at = next;
        }
    }
    requests->slots[at] = 0;
    requests->head = (requests->head + 1) & (requests->cap - 1);
    requests->count--;
}

void request_put(struct state *state, const struct request *request)
{
    struct requests *requests = &state->requests;

    if (requests->count >= LIMIT_REQUESTS)
        drop_oldest(state);
    if (requests->count == requests->cap)
        resize(requests, requests->cap ? requests->cap * 2 : 64);
    size_t at = (requests->head + requests->count) & (requests->cap - 1);
    requests->ring[at] = *request;
    requests->count++;
    place(requests, at);
    state->digest += request_hash(request);
}

void requests_shift(struct state *state, int64_t us)
{
    struct requests *requests = &state->requests;

    for (size_t i = 0; i < requests->count; i++) {
        struct request *request = &requests->ring[(requests->head + i) & (requests->cap - 1)];
        state->digest -= request_hash(request);
        request->time_us += us;
        state->digest += request_hash(request);
    }
}

void requests_expire(struct state *state)
{
    struct requests *requests = &state->requests;

    while (requests->count && requests->ring[requests->head].time_us + KEPT_US <= state->time_us)
        drop_oldest(state);
    if (requests->cap > 4096 && requests->count < requests->cap / 8)
        resize(requests, requests->cap / 4);
}

void requests_done(struct requests *requests)
{
    free(requests->ring);
    free(requests->slots);
    *requests = (struct requests){ 0 };
}

void request_advance(struct state *state, struct request *request, uint32_t job_id, uint32_t code,
                     bool more)
{
    state->digest -= request_hash(request);
    request->job_id = job_id;
    request->code = code;
    request->more = more;
    state->digest += request_hash(request);
}

bool core_request_seen(const struct state *state, uint32_t uid, const uint8_t id[16],
                       struct request_seen *out)
{
    const struct request *request = request_find(state, uid, id);

    if (!request)
        return false;
    *out = (struct request_seen){ request->job_id, (enum err_code)request->code, request->more };
    return true;
}
