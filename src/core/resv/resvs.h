/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resvs.h - reservations: their times, nodes, parts of nodes and licences
 */
#ifndef CORE_RESV_RESVS_H
#define CORE_RESV_RESVS_H

#include "core/policy/policy.h"
#include "core/resv.h"

enum { FLOAT_STEP_S = 60 }; /* a floating reservation moves by this much */

/* ---- resv_parts.c ---- */

/* Which licence of "a|b" a job gets: the one that the allocation names, or the first that is free. */
bool licences_choose(const struct state *state, const struct shape *shape,
                     const Allocation *allocation, uint32_t *choice);
/* Work out its parts of nodes, and its licences, from its spec. */
void resv_parts_derive(const struct state *state, struct reservation *resv);
void resv_licences_derive(struct reservation *resv);
/* A job that runs in it starts (1) or is gone (-1). */
void resv_licences_count(struct reservation *resv, const struct job *job, int by);
void resv_licences_recount(struct state *state, struct reservation *resv);
void resv_add_use(const struct job *job, const struct node *node, struct resv_part *use);
size_t resv_gres_at(const struct node *node, const char *name, const char *type);

/* ---- resv.c ---- */

void reservation_free(struct reservation *reservation);
/* Frees what it holds, not itself. */
void reservation_clear(struct reservation *reservation);
/* Brings its hash and the digest up to date. */
void reservation_settle(struct state *state, struct reservation *reservation);
void reservations_renumber(struct state *state);   /* nodes have new numbers */
void resv_derive(struct reservation *reservation); /* works out what follows from its spec */
/* A job that runs in a reservation holds nodes (1), or none any more (-1). */
void resv_job(struct state *state, const struct job *job, int by);
void reservations_next(struct state *state); /* works out when something happens to one next */
/* Do jobs run in it? */
bool resv_is_used(const struct reservation *resv);
/* When something happens to it next; NEVER: nothing does. */
int64_t resv_due_us(const struct state *state, const struct reservation *resv);

/* ---- resv_nodes.c ---- */

/*
 * Fills in times, flags and nodes of `fresh`, whose spec may still lack them. `named`: this request names its
 * nodes; `again`: its nodes must be chosen again. `old` may be NULL.
 */
int resv_resolve(struct state *state, const struct reservation *old, struct reservation *fresh,
                 bool named, bool again, struct err *err);
/* Replaces nodes that are down or in use; false when nothing changed. */
bool resv_replace(struct state *state, struct reservation *resv);
bool resv_follow(struct state *state,
                 struct reservation *resv); /* PART_NODES: the nodes of its partition */
/* Would the job, which does not run in the reservation, still run when it begins? */
bool resv_job_runs_into(const struct job *job, const ReservationSpec *spec);

/* ---- resv_time.c ---- */

/* Moves a recurring reservation to the first of its times that ends after now. */
void resv_time_after(unsigned flags, int64_t now_us, int64_t *start_us, int64_t *end_us);
/* Do the times of the two reservations ever overlap? */
bool resv_times_meet(const ReservationSpec *a, unsigned a_flags, const ReservationSpec *b,
                     unsigned b_flags);

/* ---- resv_request.c ---- */

/* Reads what it asks for. *partial: parts of nodes, so resv_request_choose() finds its nodes. */
int resv_request_read(struct state *state, struct reservation *fresh, bool again, bool *partial,
                      struct err *err);
int resv_request_choose(struct state *state, struct reservation *fresh, const struct bitset *named,
                        struct err *err);

/* ---- resv_change.c ---- */

/* Turn relative changes (+=, -=) of nodes and of the length into absolute ones. */
int resv_change_nodes(struct state *state, const struct reservation *resv, ReservationSpec *change,
                      struct arena *arena, struct err *err);
void resv_change_length(const struct reservation *resv, ReservationSpec *change);

#endif
