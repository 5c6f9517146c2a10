/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dep_notice.c - a notice's part of the digest
 */
#include "base/hash.h"
#include "core/job/jobs.h"

enum { SEED_NEWS = 100 };

static uint64_t fold(uint64_t hash, uint64_t value)
{
    return hash_mix(hash ^ value) + UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t fold_fate(uint64_t hash, const struct fate *fate)
{
    hash =
        fold(hash, (uint64_t)fate->started | (uint64_t)fate->ended << 1 | (uint64_t)fate->ok << 2);
    return fold(hash, (uint64_t)fate->start_us);
}

uint64_t dep_notify_hash(const struct dep_notice *notice)
{
    uint64_t hash = fold(fold(SEED_NEWS, notice->number), notice->key);

    hash =
        fold(hash, (uint64_t)notice->task << 2 | (uint64_t)notice->array << 1 | notice->singleton);
    hash = fold_fate(fold_fate(hash, &notice->all), &notice->one);
    hash = fold(fold(hash, (uint64_t)notice->time_us), notice->ids.sum);
    return fold(hash, (uint64_t)notice->twin_of << 32 | notice->twin);
}

void dep_notify_changed(struct state *state, struct dep_notice *notice)
{
    state->digest -= notice->hash;
    notice->hash = dep_notify_hash(notice);
    state->digest += notice->hash;
}
