/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_book.h - what step_book.c and step_ask.c share: the books of jobs that this node manages
 */
#ifndef SPURD_STEP_BOOK_H
#define SPURD_STEP_BOOK_H

#include "spurd/step/step.h"
#include "spurd/step/step_layout.h"

/* What a step has of the allocation. */
struct share {
    struct agent *agent;
    struct book *book;
    uint32_t step;
    StepLayout *layout;
    ProtobufCBinaryData packed;
    uint32_t *nodes;      /* indexes into the allocation; UINT32_MAX: not of it any more */
    struct step_run *run; /* NULL: srun is away */
    uv_timer_t *timer;
};

/* The steps of one attempt that this node manages. */
struct book {
    uint32_t job, attempt;
    uint32_t next, reserved; /* numbers */
    struct step_used *used;  /* by node of the allocation */
    size_t count;            /* of them */
    VEC(struct share *) shares;
    VEC(struct step_run *) waiting;
};

/* Where the next number of a step is kept; free() it. */
char *step_counter_path(const struct agent *agent, uint32_t job, uint32_t attempt);
/* The book of what is held here, made when there is none. */
struct book *step_book_of(struct agent *agent, const struct attempt *held);
struct book *step_book_find(const struct agent *agent, uint32_t job, uint32_t attempt);

/* Takes the bytes, which are a layout's; NULL when they are not. */
struct share *step_share_new(struct agent *agent, struct book *book, const struct attempt *held,
                             ProtobufCBinaryData packed);
void step_share_free(struct share *share, bool for_good);
/* Into its file, for the next spurd. */
void step_share_write(const struct share *share);
struct share *step_share_find(const struct book *book, uint32_t step);
/* srun left without a word: it may come back within so many ms. */
void step_share_away(struct share *share, unsigned ms);
/*
 * One for each node of the layout and one for ourselves, in the arena; empty for a node whose key we do
 * not have.
 */
ProtobufCBinaryData *step_share_prove(const struct share *share, const Grant *grant,
                                      struct arena *arena, size_t *count);

/* ---- step_ask.c ---- */

/* Something was given back: who waits is tried again. */
void step_ask_waiting(struct agent *agent, struct book *book);

#endif
