/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.h - a start that is worked out over several slices
 *
 * Included by sched_priv.h. A search is asked again in every slice and walks the same way to where it was left:
 * what hosts answered is kept, so that is cheap. When a host has no answer yet and the effort of the slice is
 * spent the search is paused: whatever comes out of this walk is worth nothing, and nothing of it is kept.
 *
 * (1) Nothing in a search points to what events may free: hosts are numbers, starts are times.
 * (2) An answer is forgotten when its host changes. So the last walk, which is not paused, sees every host as it
 *     is then: what comes out holds, whatever happened meanwhile.
 * (3) Starts that were tried in in vain are not tried again. One that has become possible since is found when the
 *     booking is reviewed: the releases that it goes by are those of the beginning.
 * (4) Every walk looks at one host more at least. When more answers were lost than there are hosts, twice, a slice
 *     does twice as much from then on: the search ends whatever happens.
 * (5) What comes out is the same in one slice or in many, if nothing happens between them. So what decides how far
 *     forecasts go is the effort of questions that had no answer, not that of slices: they keep answers at once.
 */
#ifndef SCHED_PLACE_SEARCH_H
#define SCHED_PLACE_SEARCH_H

#include "sched/hosts/hosts.h"

/* ---- what hosts answered ---- */

/* From when on it has what is asked for; only what is before before_us was looked for. */
struct said {
    int64_t from_us, before_us;
    uint32_t turn;
};
/* What there is at the start that is tried, and for how many tasks. */
struct seen_room {
    struct room_at room;
    uint32_t units, turn;
};

/* ---- moments: the first good one, as if all behind it were good too ---- */

struct halving {
    VEC(int64_t) list;
    size_t low, high; /* the first good one is not before low; high is good, or the end */
    size_t middle;    /* that is tried; SIZE_MAX: none is */
    int64_t best_us;  /* INT64_MAX: none was good */
    uint32_t next;    /* host, or offer, whose moments are gathered next */
    bool gathered;
};
void halving_begin(struct halving *halving); /* the list is there, in any order */
/* The next to be tried; false: all is known. */
bool halving_next(struct halving *halving, int64_t *when_us);
void halving_said(struct halving *halving, bool good);
void halving_done(struct halving *halving);

/* ---- earliest_start.c: one job, or component ---- */

struct host_earliest {
    int64_t from_us;
    uint32_t host;
};
typedef VEC(struct host_earliest) host_earliest_list;
enum stage { STAGE_FEW, STAGE_ALL, STAGE_UNEVEN, STAGE_OVER };
struct earliest_start_at {
    bool begun;
    size_t turn;     /* of the partitions */
    int64_t best_us; /* of those before; and where: */
    struct parts *best;
    enum stage stage;
    host_earliest_list earliest; /* of this stage, if they are known */
    bool gathered, counted, sorted;
    unsigned passes;  /* over all hosts, for them */
    uint64_t changes; /* of hosts, when they were gathered */
    int64_t first_us; /* enough of them have it */
    unsigned tries;   /* in in vain; the last one: */
    int64_t failed_us;
    struct halving halving;
};
void earliest_start_at_done(struct earliest_start_at *at);

/* ---- hets.c ---- */

struct het_turns {
    uint32_t *order; /* of `count` */
    uint32_t count, moves, few[4];
};
struct het_at {
    bool begun, turned; /* the job; orders of this start */
    struct het_turns turns;
    struct booked *of; /* one for each component */
    uint32_t at;       /* so many of them, in that order, are in place */
    int64_t start_us, next_us;
    unsigned tries; /* starts */
    uint32_t late;  /* the component that could not start with the others last, + 1; 0: none */
    struct halving halving;
};
void het_at_done(struct sched *sched, struct het_at *at);

struct search {
    uint32_t job_id; /* 0: none */
    struct order order;
    int64_t now_us;                /* when it began; it is worked out for then */
    uint64_t releases, generation; /* at that time */
    uint64_t cost;                 /* hosts that were looked at */
    uint64_t asked;                /* the same without what is asked again after a pause; (5) */
    uint64_t lost;                 /* answers of hosts that changed */
    unsigned urgency;              /* the effort of a slice is doubled as often; (4) */
    int64_t left;                  /* effort of this slice */
    bool worked;                   /* something was looked at in this slice */
    bool paused;
    bool keeps; /* what hosts answer; from the first pause on */
    VEC(struct said) said;
    VEC(struct seen_room) seen;
    uint32_t said_turn, seen_turn; /* those with this number are right */
    int64_t seen_us;               /* the start that seen[] is for */
    uint64_t changes;              /* of hosts */
    struct bitset touched;         /* changed since it was paused */
    struct earliest_start_at earliest;
    struct het_at het;
};
/* One for jobs that are to be booked, one for reviews, and so on: they do not hinder each other. */
enum { SEARCH_BOOK, SEARCH_REVIEW, SEARCH_FORECAST, SEARCH_EXPLAIN, SEARCHES };

/* Goes on with the job, or begins; with so much effort in this slice. */
struct search *search_begin(struct sched *sched, unsigned which, const struct job *job,
                            struct order order, uint64_t effort);
/* It came to its end, or is given up. */
void search_end(struct sched *sched, struct search *search);
void search_forget(struct sched *sched, uint32_t job_id);
/* A host is not what it was. */
void search_touch(struct sched *sched, uint32_t number);
/* What is only tried changes hosts and changes them back: nothing is said of it until it happened, or did not. */
void search_hold(struct sched *sched);
void search_unhold(struct sched *sched, bool happened);
/* It began again, in part; NULL: nothing. */
void search_lost(const struct sched *sched, struct search *search);
/* Other questions are asked from now on; of another start. */
void search_asks(struct search *search);
void search_sees(struct search *search, int64_t start_us);
void searches_done(struct sched *sched);

/* What it costs to look at a host, in effort: all that is walked counts. */
static inline uint64_t host_effort(const struct host *host)
{
    return 1 + (host->running.len + host->blocks.len) / 16;
}

/* May so much be done in this slice? Otherwise the search is paused. NULL: always. */
static inline bool search_may(struct search *search, uint64_t effort)
{
    if (!search)
        return true;
    if (search->left <= 0 && search->worked)
        search->paused = true;
    if (search->paused)
        return false;
    search->worked = true;
    search->asked += effort;
    search->left -= (int64_t)effort;
    return true;
}

static inline bool search_paused(const struct search *search)
{
    return search && search->paused;
}

#endif
