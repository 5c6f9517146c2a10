/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.h - the search for a start, spread over several slices
 *
 * The planner asks for a search again in every slice, and it walks the same way to where it stopped: what hosts
 * answered is kept, so that is cheap. When a host has no answer yet and the effort of the slice is spent, the
 * search is paused. What comes out of a paused walk is worth nothing, and nothing of it is kept.
 *
 * (1) Nothing in a search points to what events may free: hosts are numbers, starts are times.
 * (2) An answer is forgotten when its host changes. So the last walk, which is not paused, sees every host as
 *     it is then: its result holds, whatever happened before.
 * (3) Starts that did not work are not tried again. One that has become possible since is found when the
 *     booking is reviewed: the releases that it goes by are those of the beginning.
 * (4) Every walk looks at one more host at least. When more answers were lost than there are hosts, twice, a
 *     slice does twice as much from then on: the search ends, whatever happens.
 * (5) The result is the same in one slice or in many, if nothing happens between them. So the effort that
 *     decides how far forecasts go is that of questions without an answer, not that of slices.
 */
#ifndef SCHED_PLACE_SEARCH_H
#define SCHED_PLACE_SEARCH_H

#include "sched/place/place.h"

/* ---- what hosts answered ---- */

/* From when on the host has what was asked for; only moments before before_us were looked at. */
struct said {
    int64_t from_us, before_us;
    uint32_t turn;
};
/* What the host has at the start that is tried, and for how many tasks. */
struct seen_room {
    struct room_at room;
    uint32_t units, turn;
};

/* ---- moments: binary search for the first good one, as if all later ones were good too ---- */

struct halving {
    VEC(int64_t) list;
    size_t low, high; /* the first good one is not before low; high is good, or the end */
    size_t middle;    /* that is tried; SIZE_MAX: none is */
    int64_t best_us;  /* INT64_MAX: none was good */
    uint32_t next;    /* the host, or entry, whose moments are gathered next */
    bool gathered;
};
void halving_begin(struct halving *halving); /* the list is there, in any order */
/* The next moment to try; false: the answer is known. */
bool halving_next(struct halving *halving, int64_t *when_us);
void halving_said(struct halving *halving, bool good);
void halving_done(struct halving *halving);

/* ---- earliest_start.c: how far the search for one job, or component, got ---- */

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
    host_earliest_list earliest; /* of this stage, if it is known */
    bool gathered, counted, sorted;
    unsigned passes;  /* over all hosts, for that list */
    uint64_t changes; /* of hosts, when it was gathered */
    int64_t first_us; /* enough hosts have room from then on */
    unsigned tries;   /* without success; the last one: */
    int64_t failed_us;
    struct halving halving;
};

/* ---- hets.c: the same for all components of a job ---- */

struct het_turns {
    uint32_t *order; /* of `count` components */
    uint32_t count, moves, few[4];
};
struct het_at {
    bool begun, turned; /* the job; the orders of this start */
    struct het_turns turns;
    struct booked *of; /* one for each component */
    uint32_t at;       /* this many of them, in that order, are in place */
    int64_t start_us, next_us;
    unsigned tries; /* starts */
    uint32_t late;  /* the component that could not start with the others last, + 1; 0: none */
    struct halving halving;
};

struct search {
    uint32_t job_id; /* 0: none */
    struct order order;
    int64_t now_us;                /* when it began: the result is for then */
    uint64_t releases, generation; /* at that time */
    uint64_t cost;                 /* hosts that were looked at */
    uint64_t asked;                /* the same without what is asked again after a pause; (5) */
    uint64_t lost;                 /* answers of hosts that changed */
    unsigned urgency;              /* the effort of a slice was doubled this often; (4) */
    int64_t left;                  /* effort of this slice */
    bool worked;                   /* something was looked at in this slice */
    bool paused;
    bool keeps; /* what hosts answer; from the first pause on */
    VEC(struct said) said;
    VEC(struct seen_room) seen;
    uint32_t said_turn, seen_turn; /* answers with this number are right */
    int64_t seen_us;               /* the start that seen[] is for */
    uint64_t changes;              /* of hosts */
    struct bitset touched;         /* hosts that changed since it was paused */
    struct earliest_start_at earliest;
    struct het_at het;
};
/* One search for each purpose, so that they do not hinder each other. */
enum { SEARCH_BOOK, SEARCH_REVIEW, SEARCH_FORECAST, SEARCH_EXPLAIN, SEARCHES };

/* The effort of looking at a host: everything that is walked counts. */
static inline uint64_t host_effort(const struct host *host)
{
    return 1 + (host->running.len + host->blocks.len) / 16;
}

/* May that much be done in this slice? Otherwise the search is paused. NULL: always. */
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
