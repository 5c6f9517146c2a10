/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resv.h - what is special about a reservation, and who may use it
 */
#ifndef CORE_RESV_H
#define CORE_RESV_H

#include "base/err.h"
#include "core/node.h"

struct assoc;
struct job;
struct shape;
struct state;

enum resv_flag {
    RESV_MAINT = 1 << 0,
    RESV_OVERLAP = 1 << 1,
    RESV_IGNORE_JOBS = 1 << 2,
    RESV_HOURLY = 1 << 3,
    RESV_DAILY = 1 << 4,
    RESV_WEEKDAY = 1 << 5,
    RESV_WEEKEND = 1 << 6,
    RESV_WEEKLY = 1 << 7,
    RESV_SPEC_NODES = 1 << 8, /* nodes were named */
    RESV_ANY_NODES = 1 << 9,
    RESV_PART_NODES = 1 << 10, /* all nodes of its partition, whatever these are */
    RESV_STATIC = 1 << 11,     /* nodes are never replaced */
    RESV_TIME_FLOAT = 1 << 12, /* begins so long from now, always */
    RESV_REPLACE = 1 << 13,    /* nodes that are down or in use are replaced */
    RESV_REPLACE_DOWN = 1 << 14,
    RESV_PURGE_COMP = 1 << 15,  /* ends when it was not used for a while */
    RESV_FLEX = 1 << 16,        /* its jobs may begin before, end after and go beyond it */
    RESV_MAGNETIC = 1 << 17,    /* jobs that may use it do, unasked */
    RESV_NO_HOLD = 1 << 18,     /* jobs that wait for it go on without it when it ends */
    RESV_USER_DELETE = 1 << 19, /* who may use it may delete it */
    RESV_FORCE_START = 1 << 20, /* may begin in the past */
    RESV_REPEATS = RESV_HOURLY | RESV_DAILY | RESV_WEEKDAY | RESV_WEEKEND | RESV_WEEKLY,
};

/* Of the words of a spec; a word that is none, or cannot act, is an error. */
int resv_flags_read(const ReservationSpec *spec, unsigned *flags, struct err *err);
/* The words again, in one order and spelling. */
void resv_flags_write(ReservationSpec *spec, unsigned flags);

/* Who wants to use one; what is not known is NULL. */
struct resv_access {
    uint32_t uid;
    const char *user, *group;
    const uint32_t *gids;
    size_t gid_count;
    const char *account, *qos;
    const struct assoc *assoc;
    const char *partitions; /* one of these, by comma */
};
bool resv_admits(const struct reservation *resv, const struct resv_access *who);
/* Only by user and groups: somebody who has no job there. */
bool resv_admits_person(const struct reservation *resv, const struct resv_access *who);
bool resv_admits_partition(const struct reservation *resv, const char *partition);
bool resv_admits_job(const struct reservation *resv, const struct job *job);

/*
 * The reservations that a job may run in: those it names, or else the magnetic ones that admit it.
 * Begin with *at == 0; NULL at the end. Those of the list that are gone are passed over.
 */
const struct reservation *resv_next_for(const struct state *state, const struct job *job,
                                        size_t *at);

/* ---- resv_parts.c: reservations of parts of nodes ---- */

/* What it has of a node; NULL: all of it, or nothing. */
const struct resv_part *resv_part_of(const struct reservation *resv, uint32_t number);
/* Licences of that name that it keeps for its jobs, in use or not. */
uint32_t resv_licences(const struct reservation *resv, const char *name);
/* Of these, those that none of its jobs has, in all reservations that hold now but `own`. */
uint32_t resv_licences_kept(const struct state *state, const char *own, const char *name);

/*
 * Its next time after the one at *start, *end. False when it does not repeat.
 */
bool resv_next_time(unsigned flags, int64_t *start_us, int64_t *end_us);

/* MaxStartDelay: may the job use its nodes until its own jobs want them? (--signal=R:) */
bool resv_lends(const struct reservation *resv, const struct shape *shape);
/* Does the allocation keep to the reservations that hold now, its own and those of others? */
struct alloc_parts;
int resv_check_start(const struct state *state, const struct job *job, const Allocation *allocation,
                     const struct alloc_parts *parts, struct err *err);
/* NODE_FLAG_MAINT or NODE_FLAG_RESERVED of a node that belongs to one now. */
uint32_t resv_node_flags(const struct state *state, const struct node *node);
/* The name of the first that has it now; NULL: none. */
const char *resv_node_name(const struct state *state, const struct node *node);

/* How long jobs may go on when their reservation has ended; INT64_MAX: they are not ended. */
int64_t resv_over_run_us(const struct state *state, const struct reservation *resv);

#endif
