/* SPDX-License-Identifier: Apache-2.0 */
/*
 * change.h - a configuration takes the place of another: what differs is changed in its place
 */
#ifndef POLICY_CHANGE_H
#define POLICY_CHANGE_H

#include "policy/accounts.h"

/* Of an association or QOS, while a configuration is taken. */
enum mark {
    MARK_GONE = 1,
    MARK_MOVED = 2,    /* it, or who is above it, has another parent; a QOS: another usage factor */
    MARK_READ = 4,     /* it was read again */
    MARK_BELOW = 8,    /* what it passes on is another */
    MARK_SHRINKS = 16, /* some of its children are no more */
};

struct billing_group_record;

struct change {
    bool has_jobs;    /* there are jobs that are counted; else all is made from nothing */
    int64_t time_us;  /* until when usage counts, when there are */
    uint64_t *digest; /* of the state, which holders' hashes are parts of; NULL: of none */
    struct accounts *accounts;
    const Config *config, *old;
    const struct sections *sections; /* NULL: the configuration is what it was */
    bool all;                        /* the TRES are others: everything is read again */
    bool binds;                      /* some jobs belong to others */
    bool binds_any;                  /* and not only those of `users` */
    bool assocs;                     /* some of the associations there were are gone or moved */
    uint32_t new_tres;               /* bits of TRES that were not counted */
    bool shares, priorities;         /* some of these are others */
    bool has_root;                   /* a user of that name is configured */
    struct map users;                /* names of users whose sections are others */
    struct map new_qos;              /* names */
    struct map parts;                /* partitions whose QOS is another */
    assoc_list touched, gone;        /* have a mark */
    VEC(struct qos *) gone_qos;
    VEC(struct holder *) fresh;
    VEC(struct billing_group_record *) moving; /* jobs that others count from now on */
};

static inline const struct sections_of *sections_of(const struct change *change, enum section kind)
{
    return &change->sections->of[kind];
}

void change_mark(struct change *change, struct assoc *assoc, unsigned how);

void change_init(struct change *change);
void change_done(struct change *change);
/* Which QOS, accounts and users are others. */
void change_find(struct change *change);
/* Do the TRES that are counted differ? Then *then has the new ones, and change->all says whether all is read again. */
bool change_find_tres(struct change *change, struct accounts *then);
/* They take the place of the old ones, whose amounts move with them; or are dropped, if they are the same. */
void change_take_tres(struct change *change, struct accounts *then);

/* accounts_merge.c: the tables; jobs that belong to others are counted nowhere meanwhile. */
void change_take(struct change *change);
uint64_t accounts_settings(const Config *config); /* the hash of all that is no section */

#endif
