/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll.h - what the tasks of several nodes do together: fences, connections, groups
 *
 * Every node that takes part sends what its tasks bring to the first of them, which sends the whole to all:
 * two messages a node, however many there are. Pure: messages go out by a callback and come in by
 * coll_take_*(). Which tasks do what is a key, the same text on every node.
 */
#ifndef PMIX_COLL_H
#define PMIX_COLL_H

#include "base/bitset.h"
#include "base/map.h"
#include "base/vec.h"
#include "proto/pmix.pb-c.h"

struct coll;

struct colls {
    uint32_t here, nodes;
    void *ctx;
    /* To one node, or to all in `to` but us. */
    void (*send)(void *ctx, const struct bitset *to, PmixTalk *talk);
    /* It is over: `token` is the one coll_begin() was given. */
    void (*done)(void *ctx, void *token, bool ok, const ProtobufCBinaryData *data, uint64_t number);
    struct bitset gone;
    VEC(struct coll *) list;
    struct map turns; /* by key: how often it was begun here, plus one */
    uint64_t last_number;
};

void colls_init(struct colls *colls, uint32_t here, uint32_t nodes);
void colls_done(struct colls *colls);

/* All our tasks that take part have come; `among` are the nodes, ours too. `data` is copied. */
void coll_begin(struct colls *colls, const char *key, const struct bitset *among, const void *data,
                size_t len, void *token);
/* False: nobody can have meant it. */
bool coll_take_part(struct colls *colls, uint32_t from, const PmixPart *part);
bool coll_take_whole(struct colls *colls, const PmixWhole *whole);
/* That node says no more: what waits for it fails, and what begins with it. */
void coll_take_gone(struct colls *colls, uint32_t node);

#endif
