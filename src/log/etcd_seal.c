/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etcd_seal.c - entries in etcd that only a controller can have written
 *
 * Whoever can write to etcd could put an entry into the log. So each entry carries a seal: an HMAC with a key that
 * only controllers have, over the cluster's id, where the entry stands, the epoch, the seal of the entry before it
 * and its bytes. It is checked before the owner sees the entry.
 *
 * (1) Entries from before the owner called log_require_seals() have none. After that an entry without one, or with a
 *     wrong one, stops this replica: nothing of it is applied.
 * (2) After a snapshot the seal before is not known until an entry has been read. A leader who has none to go on from
 *     begins a new chain: its first entry says that nothing is before it, under its own seal.
 */
#include <string.h>

#include "log/etcd_priv.h"

static const uint8_t nothing[ETCD_SEAL_BYTES];

static void put_number(uint8_t *at, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static void work_out(const struct etcd_log *self, const struct log_batch *batch,
                     const uint8_t before[ETCD_SEAL_BYTES], uint8_t out[ETCD_SEAL_BYTES])
{
    uint8_t head[24];

    put_number(head, batch->first);
    put_number(head + 8, batch->epoch);
    put_number(head + 16, batch->count);
    struct span parts[] = {
        { "spur log seal", 13 },
        { (const char *)self->cluster_id, sizeof(self->cluster_id) },
        { (const char *)head, sizeof(head) },
        { (const char *)before, ETCD_SEAL_BYTES },
        batch->bytes,
    };
    digest_hmac(self->seal_key, sizeof(self->seal_key), parts, ARRAY_LEN(parts), out);
}

const struct etcd_seal *etcd_seal_make(struct etcd_log *self, const struct log_batch *batch)
{
    if (!self->sealing)
        return NULL;
    memcpy(self->flying_seal.before, self->seal_known ? self->last_seal : nothing,
           ETCD_SEAL_BYTES); /* (2) */
    work_out(self, batch, self->flying_seal.before, self->flying_seal.seal);
    return &self->flying_seal;
}

static bool same(const uint8_t *a, const uint8_t *b)
{
    uint8_t differs = 0;

    for (unsigned i = 0; i < ETCD_SEAL_BYTES; i++)
        differs |= (uint8_t)(a[i] ^ b[i]);
    return differs == 0;
}

static bool is_right(const struct etcd_log *self, const struct log_batch *batch,
                     const struct etcd_seal *seal)
{
    uint8_t wanted[ETCD_SEAL_BYTES];

    work_out(self, batch, seal->before, wanted);
    return same(wanted, seal->seal);
}

const char *etcd_seal_wrong(struct etcd_log *self, const struct log_batch *batch, struct span value)
{
    struct etcd_seal seal;

    if (!self->has_seal_key)
        return NULL;
    if (!etcd_value_seal(value, &seal))
        return self->sealing ? "has no seal of a controller" : NULL; /* (1) */
    if (!is_right(self, batch, &seal))
        return "has a seal that no controller of this cluster made";
    if (self->seal_known && !same(seal.before, self->last_seal) && !same(seal.before, nothing))
        return "has a seal that does not continue the one before";
    return NULL;
}

void etcd_seal_taken(struct etcd_log *self, struct span value)
{
    struct etcd_seal seal = { 0 };

    etcd_value_seal(value, &seal); /* without one the chain begins anew */
    memcpy(self->last_seal, seal.seal, ETCD_SEAL_BYTES);
    self->seal_known = true;
}

void etcd_seal_newest(struct etcd_log *self, const EtcdKeyValue *kv)
{
    struct span value = { (const char *)kv->value.data, kv->value.len };
    struct log_batch batch;
    struct etcd_seal seal;

    if (!self->seal_known && self->has_seal_key && etcd_value_seal(value, &seal) &&
        etcd_value_decode(value, &self->room, &batch) && is_right(self, &batch, &seal))
        etcd_seal_taken(self, value);
}

void etcd_require_seals(struct log *log)
{
    struct etcd_log *self = etcd_self(log);

    self->sealing = self->has_seal_key;
}
