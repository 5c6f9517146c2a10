/* SPDX-License-Identifier: Apache-2.0 */
/*
 * book.h - promised starts: bookings, the search for an earliest start, forecasts
 *
 * The first waiting jobs of each partition are booked. A booking has a start and hosts, and a block on each of
 * these. The starts of other jobs are only foreseen, when somebody asks or when there is time.
 */
#ifndef SCHED_BOOK_BOOK_H
#define SCHED_BOOK_BOOK_H

#include "sched/limit/limit.h"
#include "sched/place/search.h"

/* ---- earliest_start.c ---- */

/*
 * When and where the job can start beside what is booked for others; INT64_MAX: never. Fills `parts` unless
 * never. Reads of the view: now_us; start_us (not before); mine, order, forecast.
 */
int64_t earliest_start(struct sched *sched, struct family *family, const struct job *job,
                       const struct view *from, struct parts *parts);

/* ---- hets.c: heterogeneous jobs ---- */

/* Why a component of the job may not start yet; 0: all may. */
unsigned het_reason(const struct sched *sched, const struct job *job);
/* Where a component is to run, and until when. */
struct booked {
    int64_t end_us;
    struct licence_use *licences;
    struct parts parts;
};
void booked_free(struct sched *sched, struct booked *of, uint32_t count); /* NULL is allowed */
/* When the job ends by its limit; far away where it has none. */
int64_t job_ends_us(const struct job *job, int64_t start_us);
/* Puts what is tried in the way of views with forecasts; tried_take() takes it back, the last one first. */
void tried_put(struct sched *sched, const struct job *job, int64_t start_us, struct booked *of);
void tried_take(struct sched *sched, struct booked *of);
/*
 * The components in the order in which they are placed: as they were asked for, until one finds no room beside
 * those before it. Then it goes before them.
 */
void het_turns_init(struct het_turns *turns, uint32_t count);
void het_turns_done(struct het_turns *turns);
/* The component at this place found no room; false: nothing is left to try. */
bool het_turns_retry(struct het_turns *turns, uint32_t at);
/*
 * When all of the jobs can start at one moment, beside each other and what is booked; INT64_MAX: never. Fills
 * `of`, one for each job, unless never. *last is set to the job that keeps the others waiting, if any.
 */
int64_t het_start(struct sched *sched, const struct job *const *jobs, uint32_t count,
                  const struct view *from, bool now_only, struct booked *of,
                  const struct job **last);
/* Can the heterogeneous job start now? The caller frees *of in any case. */
bool het_starts_now(struct sched *sched, const struct job *job, struct order order,
                    struct booked **of);
/*
 * The earliest start of a pending job of any kind with all its components. Reads from->now_us, order and
 * forecast. The caller frees *of in any case.
 */
int64_t start_of(struct sched *sched, struct family *family, const struct job *job,
                 const struct view *from, struct booked **of, const struct job **last);

/* ---- book.c ---- */

struct booking {
    uint32_t job_id;
    uint32_t refs; /* partition queues that count it among their first */
    struct order order;
    int64_t start_us;
    int64_t due_us;    /* its time has come, and it is reviewed after this; 0: not so */
    uint64_t releases; /* when it was made */
    uint64_t cost;     /* hosts that were looked at */
    uint32_t count;    /* components that start together; 1 for most jobs */
    bool kept;         /* on all of its hosts */
    uint32_t late_id;  /* the component that the others wait for; 0: none */
    struct booked *of; /* one for each component */
    bool leaves;       /* all hosts of its leaf switches are blocked */
};
/* The booking whose hosts are being blocked, and which host is next. */
struct keeping {
    uint32_t job_id; /* 0: none */
    struct order order;
    uint32_t component;
    size_t part;
    unsigned slices; /* since it began */
};
/* Books jobs that go before `before` and must wait; true when something changed. */
bool book_ahead(struct sched *sched, struct order before, unsigned *budget);
void book_drop(struct sched *sched, uint32_t job_id);
/* Is something booked for jobs behind this one? */
bool book_is_behind(const struct sched *sched, struct order order);
/* Gives up bookings of jobs behind this one that have no room beside what it got. */
void book_yield(struct sched *sched, struct order order, const struct shape *shape,
                const struct parts *parts);
/* The same on one host; for licences. */
void book_yield_at(struct sched *sched, struct order order, uint32_t host);
void book_yield_licences(struct sched *sched, struct order order, const struct shape *shape);
/* Is there still room on the host, from then on, for what the booking was promised there? */
bool book_host_keeps(const struct sched *sched, const struct host *host, uint32_t job_id,
                     int64_t from_us);
/* Where the job was promised to start, if there is room now; NULL: there is not. One for each component. */
const struct booked *book_seats(struct sched *sched, uint32_t job_id);
/* The latest moment before that one at which a block begins; INT64_MIN: none. */
int64_t book_start_before(const struct sched *sched, int64_t when_us);
/* Reviews bookings that are due or may start earlier. */
void book_review(struct sched *sched, unsigned *budget);
/* Reviews all bookings: each is then as if all were made now, one after the other. */
void book_settle(struct sched *sched, unsigned *budget);
const struct booking *booking_of(const struct sched *sched, uint32_t job_id);
struct booking *booking_find(const struct sched *sched, uint32_t job_id); /* the same */
/*
 * Books the job. False when no start can be foreseen for it, or it is not to be booked, or it is not known yet
 * (its search is paused). A job that is booked at another of its positions stays there unless this start is
 * earlier.
 */
bool book_job(struct sched *sched, struct order order, struct family *family, unsigned *budget);
void book_blocks(struct sched *sched); /* works out again when blocks begin */
void bookings_done(struct sched *sched);

/* ---- book_keep.c ---- */

/* Blocks the hosts of the booking; false: book_keep_continue() must be called. */
bool book_keep(struct sched *sched, uint32_t job_id);
bool book_keep_continue(struct sched *sched);
void book_unkeep(struct sched *sched, const struct booking *booking);

/* ---- book_bounds.c ---- */

/* Do as many jobs of its user or association as may be booked go before it? Then it is not booked. */
bool book_is_bounded(struct sched *sched, struct order order);
void book_bounds_changed(struct sched *sched); /* other jobs are booked than before */

/* ---- forecast.c: starts of jobs that are not booked, as far as they can be foreseen ---- */

struct forecast {
    uint32_t job_id, count, late_id;
    int64_t start_us;
    char **hosts;      /* names, of each component */
    struct booked *of; /* the same, until all are made */
};
typedef VEC(struct forecast) forecast_list;
/* How far the forecasts were made. */
struct foresees {
    bool under_way;
    uint32_t partition_queue;
    struct order order; /* up to this one */
    uint64_t cost, generation;
};
/* Goes on with the forecasts, in a slice. */
void forecast_continue(struct sched *sched, uint64_t effort);
/* The start of one job that somebody asked about, and that is neither booked nor foreseen. */
struct answer {
    struct forecast forecast; /* start_us INT64_MAX: never */
    int64_t until_us;         /* it is right until then */
};
/* When the job starts; NULL: not known yet, the planner works on it in its slices. */
const struct forecast *answer_for(struct sched *sched, const struct job *job, int64_t now_us);
void answer_continue(struct sched *sched, uint64_t effort);
void answer_done(struct sched *sched);
const struct forecast *forecast_of(const struct sched *sched, uint32_t job_id);
void forecasts_done(struct sched *sched);

/* ---- search.c ---- */

/* Begins a search for the job or goes on with it, with that much effort in this slice. */
struct search *search_begin(struct sched *sched, unsigned which, const struct job *job,
                            struct order order, uint64_t effort);
/* The search came to its end, or is given up. */
void search_end(struct sched *sched, struct search *search);
void search_forget(struct sched *sched, uint32_t job_id);
/* The host changed: what it answered is forgotten. */
void search_touch(struct sched *sched, uint32_t number);
/* What is only tried changes hosts and changes them back: searches hear of it when it happened, or never. */
void search_hold(struct sched *sched);
void search_unhold(struct sched *sched, bool happened);
/* The search began again, in part. NULL is allowed. */
void search_lost(const struct sched *sched, struct search *search);
/* From now on it asks other questions; or about another start. */
void search_asks(struct search *search);
void search_sees(struct search *search, int64_t start_us);
void searches_done(struct sched *sched);
void earliest_start_at_done(struct earliest_start_at *at);
void het_at_done(struct sched *sched, struct het_at *at);

/* ---- the parts of struct sched ---- */

struct bookings {
    struct search searches[SEARCHES];
    VEC(uint32_t) touches; /* hosts that changed while something is tried */
    bool touches_held;
    unsigned search_looks;     /* the least effort of a slice; 0: as is best */
    VEC(struct booking) list;  /* in order */
    VEC(int64_t) block_starts; /* that lie ahead, in order */
    struct keeping keeping;
    bool review_soon;      /* something was released while a booking was made */
    size_t limits_at;      /* the booking whose limits are looked at next */
    uint64_t booked_epoch; /* epoch + 1 in which all jobs that could not be booked were looked at */
};

struct forecasts {
    forecast_list list, old;
    struct foresees foresees;
    struct answer answer;
    uint64_t made_at; /* sched->changes + 1 when they were made; 0: never */
    int64_t made_us;  /* and the time */
    uint64_t cost;    /* hosts that were looked at for them */
    bool takes_time;  /* answers are worked out whole, not in slices */
};

#endif
