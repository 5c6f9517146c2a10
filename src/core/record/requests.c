/* SPDX-License-Identifier: Apache-2.0 */
/*
 * requests.c - request ids and the answers they were given
 *
 * A ring in order of time, in pages that come and go with what is in it, and a hash table beside it.
 * An answer is kept for ten minutes, or until LIMIT_REQUESTS newer ones have come.
 *
 * (1) The table holds place + 1 in the ring.
 * (2) A command forgets no more than EXPIRE_MOST: others wait for the next.
 * (3) When time did not pass for those that are there, each command moves the times of SHIFT_MOST of
 *     them, the oldest first: so whoever is looked at by (2) has his already. What is left is moved
 *     before anybody sees it: core_digest().
 */
#include "core/record/record.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define KEPT_US (600 * US_PER_S)

static uint64_t id_hash(uint32_t uid, const uint8_t *id)
{
    return hash_bytes(id, 16, uid);
}

enum { PAGE = 1024, PLACES = LIMIT_REQUESTS + PAGE, EXPIRE_MOST = 64, SHIFT_MOST = 8192 };

struct request *request_at(const struct requests *requests, size_t number)
{
    size_t place = (requests->head + number) % PLACES;

    return &requests->pages[place / PAGE][place % PAGE];
}

struct request *request_find(const struct state *state, uint32_t uid, const uint8_t *id)
{
    const struct requests *requests = &state->requests;
    uint32_t found;

    for (struct slots_at at = { 0 };
         (found = slots_next(&requests->slots, (uint32_t)id_hash(uid, id), &at));) {
        struct request *request = &requests->pages[(found - 1) / PAGE][(found - 1) % PAGE];
        if (request->uid == uid && memcmp(request->id, id, 16) == 0)
            return request;
    }
    return NULL;
}

static void drop_oldest(struct state *state)
{
    struct requests *requests = &state->requests;
    size_t page = requests->head / PAGE;
    const struct request *oldest = request_at(requests, 0);

    state->digest -= request_hash(oldest);
    slots_del(&requests->slots, (uint32_t)id_hash(oldest->uid, oldest->id),
              (uint32_t)requests->head + 1);
    requests->head = (requests->head + 1) % PLACES;
    requests->count--;
    requests->shift_from -= MIN(requests->shift_from, 1U);
    requests->shift_to -= MIN(requests->shift_to, 1U);
    if (requests->head / PAGE != page || !requests->count) {
        free(requests->pages[page]);
        requests->pages[page] = NULL;
    }
}

void request_put(struct state *state, const struct request *request)
{
    struct requests *requests = &state->requests;

    if (requests->count >= LIMIT_REQUESTS)
        drop_oldest(state);
    size_t place = (requests->head + requests->count++) % PLACES;
    if (!requests->pages)
        requests->pages = NEW_ARRAY(struct request *, PLACES / PAGE);
    if (!requests->pages[place / PAGE])
        requests->pages[place / PAGE] = NEW_ARRAY(struct request, PAGE);
    *request_at(requests, requests->count - 1) = *request;
    slots_put(&requests->slots, (uint32_t)id_hash(request->uid, request->id), (uint32_t)place + 1);
    state->digest += request_hash(request);
}

/* (3) */
static void shift_some(struct state *state, size_t most)
{
    struct requests *requests = &state->requests;
    size_t left = requests->shift_to - requests->shift_from, end;

    for (end = requests->shift_from + MIN(left, most); requests->shift_from < end;
         requests->shift_from++) {
        struct request *request = request_at(requests, requests->shift_from);
        state->digest -= request_hash(request);
        request->time_us += requests->shift_us;
        state->digest += request_hash(request);
    }
}

void requests_settle(struct state *state)
{
    shift_some(state, SIZE_MAX);
}

bool requests_are_settled(const struct state *state)
{
    return state->requests.shift_from >= state->requests.shift_to;
}

void requests_shift(struct state *state, int64_t us)
{
    requests_settle(state);
    state->requests.shift_from = 0;
    state->requests.shift_to = state->requests.count;
    state->requests.shift_us = us;
}

void requests_expire(struct state *state)
{
    struct requests *requests = &state->requests;

    shift_some(state, SHIFT_MOST);
    for (unsigned i = 0; i < EXPIRE_MOST && requests->count &&
                         request_at(requests, 0)->time_us + KEPT_US <= state->time_us;
         i++)
        drop_oldest(state);
}

void requests_done(struct requests *requests)
{
    for (size_t i = 0; requests->pages && i < PLACES / PAGE; i++)
        free(requests->pages[i]);
    free(requests->pages);
    slots_done(&requests->slots);
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
