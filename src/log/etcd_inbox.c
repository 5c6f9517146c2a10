/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etcd_inbox.c - what etcd has told and we have not looked at yet, in its order
 *
 * What others appended is applied in as many turns of the loop as the owner wants; what was told together
 * with it or after it waits here. Nothing in here is needed: a read brings it again (etcd_sync.c).
 */
#include <stdlib.h>
#include <string.h>

#include "log/etcd_priv.h"

static EtcdKeyValue *copy_into(EtcdKeyValue *to, uint8_t *space, const EtcdKeyValue *kv)
{
    *to = *kv;
    to->key.data = space;
    to->value.data = space + kv->key.len;
    if (kv->key.len)
        memcpy(to->key.data, kv->key.data, kv->key.len);
    if (kv->value.len)
        memcpy(to->value.data, kv->value.data, kv->value.len);
    return to;
}

void etcd_inbox_push(struct etcd_log *self, const EtcdKeyValue *kv, bool gone)
{
    size_t len = kv->key.len + kv->value.len;
    struct etcd_item *item = mem_new(sizeof(*item) + len);

    copy_into(&item->kv, item->space, kv);
    item->gone = gone;
    item->bytes = sizeof(*item) + len;
    if (self->inbox_last)
        self->inbox_last->next = item;
    else
        self->inbox = item;
    self->inbox_last = item;
    self->inbox_bytes += item->bytes;
}

struct etcd_item *etcd_inbox_pop(struct etcd_log *self)
{
    struct etcd_item *item = self->inbox;

    self->inbox = item->next;
    if (!self->inbox)
        self->inbox_last = NULL;
    self->inbox_bytes -= item->bytes;
    return item;
}

void etcd_inbox_clear(struct etcd_log *self)
{
    while (self->inbox)
        free(etcd_inbox_pop(self));
    free(self->page);
    self->page = NULL;
}

void etcd_inbox_page(struct etcd_log *self, const struct etcd_page *page,
                     const EtcdKeyValue *leader)
{
    size_t len = leader ? leader->key.len + leader->value.len : 0;
    struct etcd_page *kept = mem_new(sizeof(*kept) + len);

    *kept = *page;
    if (leader)
        kept->leader = copy_into(&kept->leader_kv, kept->space, leader);
    self->page = kept;
}
