/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resvs.h - reservations: their times, nodes, parts of nodes and licences
 */
#ifndef CORE_RESV_RESVS_H
#define CORE_RESV_RESVS_H

#include "core/policy/policy.h"
#include "core/resv.h"

enum { FLOAT_STEP_S = 60 };

/* ---- resv_parts.c ---- */

/* Which of "a|b" a job gets: the one that is named, or the first that is free */
bool licences_choose(const struct state *state, const struct shape *shape,
                     const Allocation *allocation, uint32_t *choice);
void resv_parts_derive(const struct state *state, struct reservation *resv);
void resv_licences_derive(struct reservation *resv);
/* A job of it starts (1) or is gone (-1). */
void resv_licences_count(struct reservation *resv, const struct job *job, int by);
void resv_licences_recount(struct state *state, struct reservation *resv);
void resv_add_use(const struct job *job, const struct node *node, struct resv_part *use);
size_t resv_gres_at(const struct node *node, const char *name, const char *type);

/* ---- resv.c ---- */

void reservation_free(struct reservation *reservation);
/* Frees what it has, not itself. */
void reservation_clear(struct reservation *reservation);
void reservation_settle(struct state *state, struct reservation *reservation);
void reservations_renumber(struct state *state);   /* nodes have new numbers */
void resv_derive(struct reservation *reservation); /* what follows from its spec */
/* A job that runs in one holds nodes (by 1) or none any more (by -1). */
void resv_job(struct state *state, const struct job *job, int by);
void reservations_next(struct state *state); /* when the next one begins or ends */
bool resv_is_used(const struct reservation *resv);
/* When something happens to it next; NEVER: nothing does. */
int64_t resv_due_us(const struct state *state, const struct reservation *resv);

/* ---- resv_nodes.c ---- */

/*
 * Fills in times, flags and nodes of `fresh`, whose spec may still lack them. `named`: its nodes were
 * named in this request; `again`: what it has is to be chosen. `old` may be NULL.
 */
int resv_resolve(struct state *state, const struct reservation *old, struct reservation *fresh,
                 bool named, bool again, struct err *err);
/* Other nodes for those that are down (or in use); false when nothing changed. */
bool resv_replace(struct state *state, struct reservation *resv);
bool resv_follow(struct state *state, struct reservation *resv); /* PART_NODES: its partition */
/* Does the job, which is not the reservation's own, run into it? */
bool resv_job_runs_into(const struct job *job, const ReservationSpec *spec);

/* ---- resv_time.c ---- */

/* On to the first of its times that ends after now. */
void resv_time_after(unsigned flags, int64_t now_us, int64_t *start_us, int64_t *end_us);
/* Does a time of one meet a time of the other? */
bool resv_times_meet(const ReservationSpec *a, unsigned a_flags, const ReservationSpec *b,
                     unsigned b_flags);

/* ---- resv_request.c ---- */

/* *partial: it wants parts of nodes, so resv_request_choose() finds its nodes. */
int resv_request_read(struct state *state, struct reservation *fresh, bool again, bool *partial,
                      struct err *err);
int resv_request_choose(struct state *state, struct reservation *fresh, const struct bitset *named,
                        struct err *err);

/* ---- resv_change.c ---- */

/* What is more or less of it becomes what it is to be, in the change */
int resv_change_nodes(struct state *state, const struct reservation *resv, ReservationSpec *change,
                      struct arena *arena, struct err *err);
void resv_change_length(const struct reservation *resv, ReservationSpec *change);

#endif
