/* SPDX-License-Identifier: Apache-2.0 */
/*
 * amounts.c - what a job takes of one node, kept once
 *
 * Most jobs take one of a few amounts, so a running job costs the planner a pointer and a time.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/must.h"
#include "sched/hosts/hosts.h"

static bool is_same(const struct amount *amount, const struct take *take, bool whole)
{
    return amount->whole == whole && amount->cpus == take->cpus && amount->mem_mb == take->mem_mb &&
           memcmp(amount->gres, take->gres, sizeof(take->gres)) == 0;
}

/* Of what there is: most takes have one generic resource or none. */
static uint64_t hash_of(const struct take *take, bool whole)
{
    uint64_t hash = hash_mix(take->cpus * UINT64_C(2) + whole) ^ take->mem_mb;

    for (uint64_t i = 0; i < TAKE_GRES; i++)
        hash = take->gres[i] ? hash_mix(hash ^ (take->gres[i] << 4 | i)) : hash;
    return hash;
}

struct amount *amount_take(struct sched *sched, const struct take *take, bool whole)
{
    if (sched->hosts->last_amount && is_same(sched->hosts->last_amount, take, whole))
        return amount_share(sched->hosts->last_amount);
    uint64_t hash = hash_of(take, whole);
    struct amount *chain = map_get_num(&sched->hosts->amounts, hash);

    for (struct amount *amount = chain; amount; amount = amount->same) {
        if (is_same(amount, take, whole))
            return amount_share(sched->hosts->last_amount = amount);
    }
    struct amount *amount = sched->hosts->last_amount = NEW(struct amount);
    *amount = (struct amount){ .refs = 1,
                               .whole = whole,
                               .cpus = take->cpus,
                               .mem_mb = take->mem_mb,
                               .hash = hash,
                               .same = chain };
    memcpy(amount->gres, take->gres, sizeof(take->gres));
    map_put_num(&sched->hosts->amounts, hash, amount);
    return amount;
}

struct amount *amount_share(struct amount *amount)
{
    if (amount)
        amount->refs++;
    return amount;
}

void amount_drop(struct sched *sched, struct amount *amount)
{
    MUST(!amount || amount->refs > 0);
    if (!amount || --amount->refs)
        return;
    if (sched->hosts->last_amount == amount)
        sched->hosts->last_amount = NULL;
    struct amount *chain = map_get_num(&sched->hosts->amounts, amount->hash);
    if (chain == amount && amount->same) {
        map_put_num(&sched->hosts->amounts, amount->hash, amount->same);
    } else if (chain == amount) {
        map_del_num(&sched->hosts->amounts, amount->hash);
    } else {
        while (chain->same != amount)
            chain = chain->same;
        chain->same = amount->same;
    }
    free(amount);
}

void amounts_done(struct sched *sched)
{
    map_each (entry, &sched->hosts->amounts) {
        for (struct amount *amount = entry->value, *next; amount; amount = next) {
            next = amount->same;
            free(amount);
        }
    }
    map_done(&sched->hosts->amounts);
    sched->hosts->last_amount = NULL;
}
