/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched_priv.h - inside the planner
 *
 * Pending jobs are in classes: same shape, partitions, time limit. Classes that differ only in the
 * limit form a family: they fit on the same hosts. A host is the planner's record of a node; hosts
 * of one kind lie in a grid by what they have free, so the best one is found without looking at
 * the others.
 *
 * (1) What a host has free is what `core` says, less the claims of starts that are planned and not
 *     yet applied. It is read again from core whenever something happened there: it cannot drift.
 * (2) A family that did not fit is blocked: it is not tried again until a host that one of its jobs
 *     could use got more room (freed), or enough of them did (lacking).
 * (3) The first job of each partition that must wait is booked: it has a start and hosts, and a
 *     block on each of them. Nothing that goes behind it may take what a block needs.
 * (4) spare <= free: what is left for a job of any length, with all blocks ahead of it.
 * (5) The order is (tier, priority, id). Nothing depends on addresses.
 */
#ifndef SCHED_SCHED_PRIV_H
#define SCHED_SCHED_PRIV_H

#include "base/limits.h"
#include "base/map.h"
#include "base/vec.h"
#include "core/accounts.h"
#include "core/shape.h"
#include "sched/hosts/hosts.h"
#include "sched/place/search.h"
#include "sched/queue/queue.h"
#include "sched/sched.h"

/* ---- wants.c ---- */

/* What it wants of each kind of host; worked out when nodes changed. */
const struct ask *family_asks(struct sched *sched, struct family *family);
void wants_add(struct sched *sched, struct family *family);
void wants_del(struct sched *sched, struct family *family);
/* Finds out who could use what was freed. */
void wants_absorb(struct sched *sched, unsigned *budget);
/* The first job that a freed host could serve, and the host; NULL when there is none. */
/* Stops when the budget is used up: which one is first is not known then. */
struct family *wants_offer(struct sched *sched, struct order *order, struct host **host,
                           unsigned *budget);
/* Is a freed host on offer that may have room for a job of the family? */
bool wants_may_offer(struct sched *sched, struct family *family);
/* It was tried: the host looks for the next one. */
void wants_offered(struct sched *sched, struct host *host, struct order order);

/* ---- place.c ---- */

struct chosen {
    uint32_t host;
    struct take take;
};
struct parts {
    VEC(struct chosen) list;
    const struct need *need;
    const struct reservation *resv; /* that it runs in; NULL: none */
    uint32_t licence;               /* where one of several was asked for: which */
};
/*
 * Chooses hosts; true when the job fits. Otherwise *short_of says by how many hosts or tasks not,
 * at least.
 */
bool place(struct sched *sched, struct family *family, const struct job *job,
           const struct view *view, struct parts *parts, uint32_t *short_of);

void parts_names(const struct sched *sched, const struct parts *parts, struct str *out);

/* May a job of the shape not have every number of nodes between its least and most? place_sizes.c */
bool shape_sizes_limited(const struct shape *shape, const struct need *need);
bool family_may_use(struct sched *sched, const struct family *family, size_t partition);
/* The same at view->start_us, among the given hosts in the order they are in. */
bool place_among(struct sched *sched, struct family *family, size_t partition,
                 const struct job *job, const struct view *view, const uint32_t *hosts,
                 size_t count, struct parts *parts);

/* ---- earliest_start.c ---- */

/*
 * When and where the job can start if nothing goes before it but what is booked for others;
 * INT64_MAX never. `parts` is filled unless never.
 * With view->now_us, not before view->start_us; view->mine, view->order, view->forecast.
 */
int64_t earliest_start(struct sched *sched, struct family *family, const struct job *job,
                       const struct view *from, struct parts *parts);
/* In a view with a search: not known yet, ask again in the next slice. */
#define LATER INT64_MIN

/* ---- hets.c ---- */

/* The first component of the heterogeneous job it belongs to; else itself. */
const struct job *het_first(const struct sched *sched, const struct job *job);
/* Why some component of it may not start yet; 0: all may. */
unsigned het_reason(const struct sched *sched, const struct job *job);
/* Where a component is to run, and until when. */
struct booked {
    int64_t end_us;
    struct licence_use *licences;
    struct parts parts;
};
void booked_free(struct sched *sched, struct booked *of, uint32_t count); /* NULL: nothing */
/* With its limit; far away where it has none. */
int64_t job_ends_us(const struct job *job, int64_t start_us);
/* What is tried is in the way of a view with forecasts, until it is taken back, the last one first. */
void tried_put(struct sched *sched, const struct job *job, int64_t start_us, struct booked *of);
void tried_take(struct sched *sched, struct booked *of);
/* How many components it has that start with it; 1 for any other job. */
uint32_t het_count(const struct job *job);
/*
 * The components in the order in which they are placed: as they were asked for, until one finds no room
 * beside those before it. Then it goes before them.
 */
void het_turns_init(struct het_turns *turns, uint32_t count);
void het_turns_done(struct het_turns *turns);
/* The one at this place found none; false: nothing is left to be tried. */
bool het_turns_retry(struct het_turns *turns, uint32_t at);
/*
 * When all of the jobs can start at one moment, beside each other and what is booked; INT64_MAX never. Fills
 * `of`, one for each, unless never. *last is set to the one that keeps them waiting, if any.
 */
int64_t het_start(struct sched *sched, const struct job *const *jobs, uint32_t count,
                  const struct view *from, bool now_only, struct booked *of,
                  const struct job **last);
/* Only whether it is now; *of is to be freed in any case. */
bool het_starts_now(struct sched *sched, const struct job *job, struct order order,
                    struct booked **of);
/*
 * The same for a pending job of any kind with all its components: from->now_us, order, forecast. *of is to be
 * freed in any case.
 */
int64_t start_of(struct sched *sched, struct family *family, const struct job *job,
                 const struct view *from, struct booked **of, const struct job **last);

/* ---- forecast.c: starts of jobs that are not booked, as far as they can be foreseen ---- */

struct forecast {
    uint32_t job_id, count, late_id;
    int64_t start_us;
    char **hosts;      /* names, of each component */
    struct booked *of; /* the same, until all are made */
};
typedef VEC(struct forecast) forecast_list;
/* How far they were made. */
struct foresees {
    bool under_way;
    uint32_t partition_queue;
    struct order order; /* up to this one */
    uint64_t cost, generation;
};
/* Goes on with them, in a slice. */
void forecast_continue(struct sched *sched, uint64_t effort);
/* The start of one job that somebody asked about, and which is neither booked nor foreseen. */
struct answer {
    struct forecast forecast; /* start_us INT64_MAX: never */
    int64_t until_us;         /* it is not right for long */
};
/* When it starts; NULL: that is not known yet, and goes on in the slices of the planner. */
const struct forecast *answer_for(struct sched *sched, const struct job *job, int64_t now_us);
void answer_continue(struct sched *sched, uint64_t effort);
void answer_done(struct sched *sched);
const struct forecast *forecast_of(const struct sched *sched, uint32_t job_id);
void forecasts_done(struct sched *sched);

/* ---- licences.c: licences now and later ---- */

/* Somebody has so many of a pool for a while. */
struct licence_use {
    struct licence_use *next; /* of the same owner */
    uint32_t pool, count, job_id;
    struct order order; /* of one that is booked */
    int64_t start_us, end_us;
    uint32_t at;   /* place in the pool */
    uint64_t resv; /* hash of the reservation: of the job, or that keeps them (job_id 0); 0 none */
};
struct licence_pool {
    char *name;
    uint32_t total;
    bool lacking; /* somebody waits for it */
    bool limited; /* or would take it because a limit keeps it from another */
    VEC(struct licence_use *) uses;
};
void licences_read(struct sched *sched);
void licences_done(struct sched *sched);
/* Is the one at `at` of its licences free now? If not, jobs that wait for limits are looked at when it is. */
bool licences_free(struct sched *sched, const struct job *job, uint32_t at);
/* Are they there for all of the view's time? *choice: which of several. */
bool licences_fit(struct sched *sched, const struct family *family, const struct view *view,
                  uint32_t *choice);
/* The first moment from start_us at which they are, for so long; INT64_MAX never. */
int64_t licences_from(struct sched *sched, const struct family *family, const struct view *view,
                      int64_t length_us);
struct licence_use *licences_claim(struct sched *sched, uint32_t job_id,
                                   const struct family *family, const struct parts *parts,
                                   int64_t end_us);
struct licence_use *licences_book(struct sched *sched, struct order order,
                                  const struct shape *shape, const struct parts *parts,
                                  int64_t start_us, int64_t end_us);
void licences_read_reservations(struct sched *sched);              /* anew */
void licences_give(struct sched *sched, struct licence_use *uses); /* NULL: nothing */
/* They were only thought of: nobody is told. */
void licences_forget(struct sched *sched, struct licence_use *uses);
void licences_run(struct sched *sched, const struct job *job); /* it runs, until another time */
void licences_ended(struct sched *sched, uint32_t job_id);     /* if it holds nothing more */
/* A licence that the family lacks now; NULL: none. */
const char *licences_lacking(const struct sched *sched, const struct shape *shape);

/* ---- topo.c: switches and blocks ---- */

struct topo_switch {
    uint32_t level, leaves; /* 0: a leaf; leaves below it */
    struct bitset hosts;
};
struct topo {
    struct topo_switch *switches; /* leaves first, then by level; NULL: flat */
    uint32_t count, leaves;
    uint32_t *leaf_of; /* by host; UINT32_MAX: none */
    int64_t wake_us;   /* when a job has waited long enough for few switches */
    bool blocks;       /* leaves are blocks */
};
void topo_read(struct sched *sched);
void topo_done(struct sched *sched);
/* How long a job waits for nodes of few switches (--switches) at most; 0: it does not. */
int64_t topo_waits_until(const struct sched *sched, const struct job *job);

/* ---- place_scan.c ---- */

/* Hosts that match a text of features. */
struct featured {
    char *text;
    struct bitset hosts;
};
void featured_done(struct sched *sched);

/* ---- limit_stop.c ---- */

/* A job before it that waits for a limit holds it up, in all its partitions. */
bool limit_stop_blocks(struct sched *sched, const struct family *family, struct order order);

/* ---- completing.c ---- */

struct completing {
    uint32_t job_id, attempt;
    int64_t until_us;
};
/* It has ended; where it still holds nodes, others may have to wait. */
void completing_add(struct sched *sched, const struct job *job, int64_t end_us);
/* Until when nobody starts, unless something happens before; 0: it does not matter. */
int64_t completing_until(struct sched *sched);

/* ---- pick.c ---- */

bool host_cpu_is_free(const struct host *host, size_t cpu, unsigned share);
/*
 * Fills in which CPUs and devices of its host the claim gets, for its amount. `devices` that are
 * best linked with each other, of these the ones that leave the others best linked; CPUs near them.
 */
void pick(const struct host *host, const struct shape *shape, const struct need *need,
          const struct take *take, struct claim *claim);
/* Of so many tasks, those that find CPUs with no more on a socket than may be there. pick_cpus.c */
uint32_t pick_socket_tasks(const struct host *host, const struct shape *shape,
                           const struct need *need, uint32_t tasks);
/* Devices that nobody has or is about to get; no words where they are only counted. */
void host_unused(const struct host *host, size_t gres, struct bitset *out);

/* ---- book.c ---- */

struct booking {
    uint32_t job_id;
    uint32_t refs; /* partition queues that count it among their first */
    struct order order;
    int64_t start_us;
    int64_t due_us;    /* its time has come, and it is looked at again after this; 0: not so */
    uint64_t releases; /* at the time it was made */
    uint64_t cost;     /* hosts that were looked at */
    uint32_t count;    /* of components that start together; 1 for most jobs */
    bool kept;         /* on all of its hosts */
    uint32_t late_id;  /* the component that the others wait for; 0: none */
    struct booked *of; /* one for each */
    bool leaves;       /* of its leaf switches all hosts are blocked */
};
/* The booking whose hosts are being blocked, and which is the next. */
struct keeping {
    uint32_t job_id; /* 0: none */
    struct order order;
    uint32_t component;
    size_t part;
    unsigned slices; /* that went by */
};
/* book_keep.c: what it needs is not had by others from now on; false: book_keep_continue() must be called. */
bool book_keep(struct sched *sched, uint32_t job_id);
bool book_keep_continue(struct sched *sched);
void book_unkeep(struct sched *sched, const struct booking *booking);
/* Books what goes before `before` and must wait; true when something changed. */
bool book_ahead(struct sched *sched, struct order before, unsigned *budget);
void book_drop(struct sched *sched, uint32_t job_id);
/* Is something booked for jobs behind this one? */
bool book_is_behind(const struct sched *sched, struct order order);
/* Gives up what is booked for jobs behind this one and has no room beside what it got there. */
void book_yield(struct sched *sched, struct order order, const struct shape *shape,
                const struct parts *parts);
/* The same on one host; for licences. */
void book_yield_at(struct sched *sched, struct order order, uint32_t host);
void book_yield_licences(struct sched *sched, struct order order, const struct shape *shape);
/* Is there still room from then on for what it was promised on the host, with those before it? */
bool book_host_keeps(const struct sched *sched, const struct host *host, uint32_t job_id,
                     int64_t from_us);
/* Where it was promised to start, if there is room now; NULL: there is not. One for each component. */
const struct booked *book_seats(struct sched *sched, uint32_t job_id);
/* The latest moment before that one at which a block begins; INT64_MIN none. */
int64_t book_start_before(const struct sched *sched, int64_t when_us);
/* As many before it are of its user or association as may be: it is not booked then. book_bounds.c */
bool book_is_bounded(struct sched *sched, struct order order);
void book_bounds_changed(struct sched *sched); /* other jobs are booked than were */
/* Looks again at bookings that are due or may have become better. */
void book_review(struct sched *sched, unsigned *budget);
/* The same at all of them: each is then as if all were made now, one after the other. */
void book_settle(struct sched *sched, unsigned *budget);
const struct booking *booking_of(const struct sched *sched, uint32_t job_id);
struct booking *booking_find(const struct sched *sched, uint32_t job_id); /* the same */
/* False when no start can be foreseen for it, or none is to be; or not yet: its search is paused then. One that is
 * booked for another of its places stays there, unless this start is better. */
bool book_job(struct sched *sched, struct order order, struct family *family, unsigned *budget);
/* book_queue.c: the partition queue does not count it among its first any more; false: it did not. */
bool partition_queue_uncount(struct partition_queue *partition_queue, struct order order);
void book_blocks(struct sched *sched); /* when blocks begin, anew */
void bookings_done(struct sched *sched);

/* ---- limits.c ---- */

struct held;
/* Does a limit keep the job from starting? Then it is out of its class when this returns. */
bool limits_in_way(struct sched *sched, const struct job *job);
/* The same; changes nothing. */
bool limits_stop(struct sched *sched, uint32_t job_id);
/* The same with what it would be given. Changes nothing. */
bool limits_in_way_of(struct sched *sched, const struct job *job, struct parts *parts,
                      struct limit_hit *hit);
/* A start is planned; it came back. */
struct held *limits_plan(struct sched *sched, const struct job *job, const struct parts *parts);
void limits_unplan(struct sched *sched, struct held *held, bool started);
/* It counts no more (-1), and does again (1); NULL: nothing. */
void limits_lift(struct sched *sched, const struct held *held, int by);
/* The job runs no more. */
void limits_freed(struct sched *sched, const struct job *job);
void limits_sweep(struct sched *sched, unsigned *budget);
/* A start that is planned is counted by nobody, or by those who count such jobs now. NULL is allowed. */
void limits_count_again(struct sched *sched, struct held *held, const struct job *job,
                        uint32_t partition, bool counts);
void limits_renew(struct sched *sched); /* limits, or who counts what, are others */
void limits_done(struct sched *sched);

/* ---- limit_counter.c, limit_queue.c, limit_review.c: jobs that wait for counters of limits ---- */

struct limit_counter;
struct limit_queue;
/* The holder's counter is less than it was. */
void limit_counter_fell(struct sched *sched, const struct holder *holder);
void limit_counters_renew(struct sched *sched);
void limit_counters_tidy(struct sched *sched, unsigned *budget); /* frees those there were before */
/* Does the job belong to the limit queue that it is in? */
bool limit_queue_has(const struct sched *sched, uint32_t queue, const struct job *job);
/* The limit queue of the job's owner. */
uint32_t limit_queue_of(struct sched *sched, const struct job *job);
void limit_queue_put(struct sched *sched, uint32_t queue, const struct class *class,
                     struct order order);
void limit_queue_del(struct sched *sched, uint32_t queue, const struct class *class,
                     struct order order);
/* This is in the way of a job that was put there. */
void limit_queue_hit(struct sched *sched, uint32_t queue, const struct class *class,
                     const struct limit_hit *hit, bool over);
/* The limit queue is looked at again; `fell`: because a counter is less. */
void limit_queue_review(struct sched *sched, uint32_t queue, bool fell);
void limit_queues_review_all(struct sched *sched);              /* all of them, in time */
void limit_queues_sweep(struct sched *sched, unsigned *budget); /* some of these */
/* One of its jobs is out (1), or was tried (-1). */
void limit_queue_out(struct sched *sched, uint32_t queue, int by);
/* The family is ready and has nobody to try: who is in limit queues? */
void family_wake(struct sched *sched, struct family *family);
/* Does somebody in a limit queue go before the job that is to be tried? Then the limit queue is looked at first. */
bool limit_queue_ahead(struct sched *sched, struct family *family, struct order order);
void limit_queues_done(struct sched *sched);
bool limit_queues_done_some(struct sched *sched, unsigned *budget); /* true: all of them */
/* Lets go who waited for counters that have fallen. */
void limits_review(struct sched *sched, unsigned *budget);
bool limits_to_review(const struct sched *sched);
/* classes.c: out of its queue until the limit has room. */
void pending_limit(struct sched *sched, const struct job *job, const struct limit_hit *hit,
                   bool over);
/* Back into its queue. `out`: to be tried; false when it will not be. */
bool pending_let_out(struct sched *sched, const struct job *job, bool out);
/* Would it be tried there soon? */
bool pending_would_try(struct sched *sched, const struct pending *pending, uint32_t job_id);
struct order pending_order(const struct sched *sched, const struct job *job);
bool pending_rank_is_old(struct sched *sched, const struct job *job);

/* ---- inflight.c ---- */

/* A start that is planned and has not come back. */
struct inflight {
    struct inflight *next; /* of the same job record */
    uint32_t task, array_id;
    struct held *held;            /* by limits */
    struct licence_use *licences; /* NULL: none */
    size_t count;
    struct claim claims[]; /* one a part */
};
struct inflight_list {
    struct inflight *first, *last;
    uint32_t count, next_task;
};
struct inflight *inflight_start(struct sched *sched, const struct job *job, uint32_t task,
                                const struct parts *parts, const struct family *family,
                                int64_t end_us);
/* Who is suspended for a job whose start is planned; see inflight.c. */
struct returning {
    uint32_t with_id, job_id;
};
void inflight_return(struct sched *sched, const struct job *lent, uint32_t with_id);
/*
 * It came back or never will: its claims are given up. `started`: the job that did, NULL when none; what it
 * has is then to be told to its hosts.
 */
bool inflight_end(struct sched *sched, uint32_t job_id, uint32_t task, const struct job *started);
/* The same; it was never proposed, and nobody was told of it. */
void inflight_undo(struct sched *sched, uint32_t job_id, uint32_t task);
void inflights_done(struct sched *sched);

/* ---- preempt.c: running jobs that make room for others ---- */

struct preemptible;
/* Families and QOS for which a search in a partition came to nothing in this pass. */
struct preempt_failure {
    const struct family *family;
    uint64_t key; /* of the family: another one may lie there */
    const struct qos *qos;
    uint32_t partition_queue;
};
/* A job that did not start although all that was to go for it has gone. */
struct preempt_retry {
    uint32_t job_id;
    int64_t until_us;
};
void preempts_read(struct sched *sched); /* the configuration */
void preempts_done(struct sched *sched);
void preempt_started(struct sched *sched, const struct job *job);
void preempt_ended(struct sched *sched, uint32_t job_id);
void preempt_refused(struct sched *sched, uint32_t job_id);
void preempts_renew(struct sched *sched); /* accounts or partitions are others */
void preempt_again(struct sched *sched, const struct job *job);
bool preempt_plan(struct sched *sched, unsigned *budget); /* true: it must go on */

/* ---- preempt_hold.c: room that is kept for a job until those that must go for it have gone ---- */

struct victim_id {
    uint32_t id, attempt;
};
/* A part of the job, or of a component of it. */
struct seat {
    uint32_t host, component;
    struct take take;
};
struct preempt_hold {
    uint32_t job_id, components;
    size_t count, named; /* victims; named: are told to go; the others end anyway */
    size_t told;         /* of the named; they are told some at a time */
    size_t gone;         /* the first of all of them that may not have */
    struct victim_id *victims;
    uint32_t *partition_queues; /* numbers of the partitions, one for each component */
    uint32_t *order;            /* of components, as they were placed */
    struct seat *seats;         /* by host */
    size_t seat_count;
    struct held **held; /* by limits; one for each component */
    struct booked *of;  /* the same: only their licences */
};
const struct preempt_hold *preempt_hold_of(const struct sched *sched, uint32_t job_id);
void preempt_hold_drop(struct sched *sched, uint32_t job_id);
/* When all have gone at the latest, as far as is known; and where the component is to be. */
int64_t preempt_hold_start_us(const struct sched *sched, const struct preempt_hold *hold);
void preempt_hold_names(const struct sched *sched, const struct preempt_hold *hold,
                        uint32_t component, struct str *out);
bool preempt_hold_waits_for(const struct sched *sched, uint32_t victim);
void preempt_holds_done(struct sched *sched);
/* What the job's hold keeps of limits does not count (-1), and does again (1). */
void preempt_hold_lift(struct sched *sched, const struct job *job, int by);
/* A start of it is planned: who was suspended for it may run again. */
void preempt_hold_returns(struct sched *sched, const struct job *job);
/* The next of those that are to go are told. */
void preempt_holds_tell(struct sched *sched, unsigned *budget);
/* Jobs whose victims are gone, before all others. */
void preempt_start_held(struct sched *sched);
#define PREEMPT_RETRY_US (60 * US_PER_S)
/* It holds nothing any more, or only lends its CPUs. */
bool preempt_victim_is_gone(const struct sched *sched, const struct victim_id *victim);

/* ---- preempt_trial.c, preempt_cost.c: who must go for a job; as far as it was found out, slices lie between ---- */

/* What hosts said that they would cost, until all of them did. */
struct price {
    uint32_t worth, priority;
    int64_t start_us;
    uint32_t id;
};
struct host_cost {
    uint32_t host, tasks, jobs;
    struct price dear; /* of the dearest of them */
};
/* Somebody who may have to go, or goes anyway. */
struct victim {
    uint32_t id, attempt;
    uint32_t worth, priority;
    int64_t start_us;
    uint64_t sides; /* of preemptors that may send it away, a bit each */
    uint8_t
        out; /* what it leaves: HOST_JOB_LENDS, HOST_JOB_GONE; HOST_JOB_RETURNS: it takes what others leave */
    bool going; /* anyway */
    bool lent;  /* is suspended already, and must stay so */
    bool stays; /* it need not go */
};
struct preempt_search {
    uint32_t job_id;          /* that is searched for; 0: none */
    uint32_t partition_queue; /* the number of the partition for components that name it */
    enum {
        PREEMPT_SEARCH_COSTS,
        PREEMPT_SEARCH_GATHER,
        PREEMPT_SEARCH_PLACE,
        PREEMPT_SEARCH_SPARE,
        PREEMPT_SEARCH_END
    } phase;
    uint32_t component; /* whose hosts are asked */
    size_t next;        /* host, or victim */
    VEC(struct host_cost) host_costs;
    VEC(uint32_t) hosts; /* of the first component, the cheapest first, then of the others */
    VEC(size_t) ends;    /* where those of each component end */
    VEC(struct victim) list;
    VEC(uint32_t) by_cost; /* those who do not go anyway, places in the list, the cheapest first */
    struct map by_id;      /* job → place + 1 in the list; with all components */
    VEC(struct seat) seats;
    VEC(uint32_t) order; /* of components, as they were placed */
};
void preempt_search_begin(struct sched *sched, uint32_t job_id, uint32_t partition_queue);
void preempt_search_end(struct sched *sched);
void preempt_search_done(struct sched *sched);
/* Is there somebody to be searched for it, with all its components, where the partition queue says? */
bool preempt_search_suits(struct sched *sched, const struct job *job, uint32_t partition_queue,
                          bool (*has_preemptible)(const struct sched *sched, const struct job *job,
                                                  const struct partition *partition));
enum preempt_search_result { PREEMPT_SEARCH_GOES_ON, PREEMPT_SEARCH_FAILED, PREEMPT_SEARCH_NAMED };
enum preempt_search_result preempt_search_continue(struct sched *sched, unsigned *budget);
typedef VEC(uint32_t) id_list;
/* Who would have to go for a job that nobody submitted, of these components, and where they would be; nothing is
 * changed. */
bool preempt_search_test(struct sched *sched, const struct job *const *jobs, uint32_t count,
                         uint32_t partition_queue, struct parts *parts, id_list *victims);
/* The same in the first of its partitions where it helps: *partition. preempt.c */
bool preempt_test(struct sched *sched, const struct job *const *jobs, uint32_t count,
                  struct parts *parts, id_list *victims, const char **partition);
/* Where the components of the job fit now, on the seats that are held, over what is booked behind the order; NULL:
 * they do not. To be freed. */
struct booked *preempt_hold_parts_now(struct sched *sched, const struct preempt_hold *hold,
                                      struct order over);

/* start_message.c: the message of a start of it, with these parts. */
JobStart *start_message(struct sched *sched, const struct job *job, uint32_t task,
                        const struct parts *parts, const struct inflight *inflight);
/* plan.c: tries to plan a start of it; over what is booked behind the order, unless that is NO_ORDER. */
bool plan_job(struct sched *sched, struct family *family, const struct job *job, struct order over,
              uint32_t *short_of);
/* The same on these hosts, one for each component. */
bool plan_job_at(struct sched *sched, struct family *family, const struct job *job,
                 struct order over, const struct booked *of);
/* place.c: tasks of it that one host has room for. */
uint32_t place_tasks_at(struct sched *sched, struct family *family, size_t partition,
                        const struct job *job, const struct view *view, uint32_t host);

/*
 * What is taken of the budget. A unit is about two microseconds, so that a slice of some thousand
 * takes a few milliseconds, whatever it does.
 */
enum {
    COST_TRY = 4,          /* to place a job; and one for so many hosts that were looked at: */
    HOSTS_PER_COST = 64,   /* closely, or */
    STARTS_PER_COST = 2,   /* for when they could start it */
    GIVEN_PER_COST = 2,    /* that it was given */
    COST_LIMIT_QUEUE = 2,  /* to look at a limit queue that waits for limits; and for its jobs: */
    JOBS_PER_COST = 2,     /* looked at closely, or put to another place in the order */
    ITEMS_PER_COST = 8,    /* that are only passed */
    COST_PER_RELEASE = 16, /* hosts that a release pays for, when a start is worked out again */
};
static inline void budget_take(unsigned *budget, uint64_t cost)
{
    *budget -= (unsigned)MIN(*budget, cost);
}

/* ---- reconfigure.c: a new configuration, of which only a part is another ---- */

/* `changed`: enum changed. False: all must be read anew. */
bool reconfigure_follow(struct sched *sched, unsigned changed);
/* Each pending job to where it belongs now, some in each slice. */
void reconfigure_continue(struct sched *sched, unsigned *budget);
/* Was the job that is about to be tried not where it belongs? It is now. */
bool reconfigure_moves(struct sched *sched, uint32_t job_id);
/* sched.c: how many waiting jobs of the partition are booked. */
unsigned bookings_of(const struct sched *sched, size_t partition);

/* ---- rebuild.c: the state is read in slices ---- */

enum {
    READ_HOSTS = 1,
    READ_ROOM = 2,
    READ_RESVS = 4,
    READ_JOBS = 8,
    READ_NODES = 16,
    READ_NEEDS = 32,
};
struct rebuild {
    unsigned left; /* to be read; 0: all was */
    uint32_t host, room_host, node_host, class, resv_host;
    uint64_t job_id; /* and these: the next one of each */
};
void rebuild_begin(struct sched *sched);                      /* all of it */
void rebuild_reservations(struct sched *sched);               /* these changed */
void rebuild_nodes(struct sched *sched);                      /* what they have did */
void rebuild_needs(struct sched *sched);                      /* what shapes need of them did */
bool rebuild_continue(struct sched *sched, unsigned *budget); /* true when all is read */
void rebuild_feed(struct sched *sched);                       /* some of it, after each command */
void rebuild_all(struct sched *sched);
/* What the event is about was not read yet. */
bool rebuild_passes(struct sched *sched, const struct event *event);
/* To work out what it needs, if that must be done. */
uint64_t shape_cost(const struct sched *sched, const struct shape *shape);
/* sched.c: it waits again, or is no more. */
void sched_again(struct sched *sched, uint32_t job_id);
/* sched.c: some of what was set aside is freed. */
void retired_free_some(struct sched *sched, unsigned *budget);

/*
 * What groups of the planner tell or ask the groups above them, which they do not know. sched.c fills it in.
 */
struct sched_hooks {
    /* What the host has, or has promised, changed. */
    void (*host_touched)(struct sched *sched, uint32_t number);
    /* The job was found on a host while hosts are read. */
    void (*job_read)(struct sched *sched, const struct job *job);
    /* A licence was given back that a job behind a limit could use. */
    void (*licence_freed)(struct sched *sched);
    /* The job has another place in the order. */
    void (*reorder)(struct sched *sched, const struct job *job);
    /* The job gives up its booking, if it has one; or the search for one. */
    void (*unbook)(struct sched *sched, uint32_t job_id);
    void (*forget_search)(struct sched *sched, uint32_t job_id);
    /* What the job's preempt hold keeps of limits does not count (-1), or counts again (1). */
    void (*hold_lift)(struct sched *sched, const struct job *job, int by);
    /* Is room held for the job until its victims are gone? */
    bool (*is_held)(const struct sched *sched, uint32_t job_id);
};

struct sched {
    const struct state *state;
    const struct sched_hooks *hooks;
    struct rebuild rebuild;
    struct sched *retired;  /* what there was before all was read anew; NULL: freed */
    VEC(struct host) hosts; /* by node number */
    VEC(struct host_summary) host_summaries;  /* the same */
    VEC(struct summary_block) summary_blocks; /* of SUMMARY_BLOCK of them each */
    VEC(struct kind *) kinds;
    uint64_t kinds_version, summarised; /* the version that summaries go by */
    bool topo_exclusive;                /* some job has leaf switches for itself */
    bool exclusive;             /* some job minds who shares its hosts: families go by user */
    bool reclass;               /* that is new: all families anew */
    uint64_t reclass_id;        /* the next job that goes to its new one; 0: none */
    bool reclass_first;         /* nothing starts before that; reconfigure.c (1) */
    VEC(uint32_t) freed;        /* hosts with more room than before */
    struct map amounts;         /* hash → struct amount, chained */
    struct amount *last_amount; /* that was taken: the next one is often the same */
    struct pending_index pendings;
    struct map positions;        /* job id → struct position, as many as its pending job says */
    VEC(struct class *) classes; /* by number; NULL: free */
    VEC(void *) class_slabs;     /* the memory of so many of them each, in order of their numbers */
    VEC(uint32_t) free_classes;
    struct map class_keys; /* hash → struct class, chained */
    struct map families;   /* hash → struct family, chained */
    size_t family_count;
    struct search searches[SEARCHES];
    VEC(uint32_t) touches; /* hosts that are changed while something is tried */
    bool touches_held;
    unsigned search_looks;     /* effort of a slice at least; 0: as is best */
    VEC(struct family *) hets; /* of heterogeneous jobs: they wait for more hosts than their own */
    uint64_t het_news, het_seen; /* grows with every event that may let one of them start */
    struct heap ready;
    struct heap offers; /* freed hosts, by the first job that may fit there */
    VEC(struct partition_queue) partition_queues; /* by partition number */
    VEC(uint32_t) needs_booking;  /* partition queues whose first job may have to be booked */
    VEC(struct booking) bookings; /* in order */
    struct keeping keeping;
    bool review_soon;      /* something was released while a booking was made */
    size_t limits_at;      /* the booking whose limits are looked at next */
    uint64_t booked_epoch; /* epoch + 1 in which all who could not be booked were looked at */
    forecast_list forecasts, forecasts_old;
    struct foresees foresees;
    struct answer answer;
    uint64_t changes;          /* grows with every event that may change a start */
    uint64_t forecast_at;      /* changes + 1 when the forecasts were made; 0: never */
    int64_t forecast_us;       /* and when */
    bool takes_time;           /* what is asked is worked out whole */
    uint64_t forecast_cost;    /* hosts that were looked at for them */
    VEC(int64_t) block_starts; /* that lie ahead, in order */
    int64_t last_block_us;     /* INT64_MIN: none */
    VEC(uint32_t) refused; /* jobs whose start core refused: not tried until something happens */
    int64_t refused_until_us;
    VEC(struct completing) completing;      /* completing.c */
    bool limit_stop_changed;                /* who was held up may not be any more; limit_stop.c */
    uint64_t generation, kinds_seen, epoch; /* epoch grows with every change of nodes */
    VEC(struct licence_pool) pools;         /* as core has them */
    struct map licence_runs;                /* job id → struct licence_use */
    struct licence_use *licence_resvs;      /* of reservations */
    struct topo topo;
    VEC(struct featured) featured;
    uint64_t featured_at;                   /* the generation of nodes + 1 */
    struct map limit_queue_keys;            /* hash → struct limit_queue, chained */
    VEC(struct limit_queue *) limit_queues; /* by number; NULL: free */
    VEC(uint32_t) free_limit_queues;
    VEC(struct limit_counter *)
    limit_counters; /* by number of the holder; NULL: nobody waits for it */
    VEC(struct limit_counter *)
    old_limit_counters;                /* of rules that were, until no limit queue knows them */
    uint64_t rules;                    /* grows when limits, or who counts what, are others */
    size_t old_limit_queues;           /* that know older ones */
    VEC(uint32_t) limit_queue_reviews; /* limit queues and counters that are looked at again */
    bool
        hosts_news; /* some can be used that could not: who is over may get less there; limit_review.c (4) */
    uint32_t
        limit_queue_sweep; /* of all limit queues those up to this number are still to be; 0: none */
    VEC(uint32_t) limit_counter_reviews;
    VEC(struct family *) woken;
    uint64_t falls, limit_counter_turns,
        limit_queue_turns;  /* of counters; looks at counters and limit queues */
    struct tallies planned; /* by holder */
    uint64_t turn;          /* of the priorities that was seen last */
    uint32_t sweep_id;      /* the next job to be put in its place; 0 none */
    struct map inflights;   /* job id → struct inflight_list */
    VEC(struct returning) returning;
    struct map arrays; /* array id → struct throttle */
    uint64_t releases; /* grows with every release */
    int64_t now_us;
    struct predict predict;
    bool preempting;         /* there may be victims */
    bool preempt_news;       /* something happened that may make some */
    int64_t preempt_wake_us; /* when some may be that may not be now */
    VEC(struct preemptible *) preemptible;
    struct map preemptible_of; /* job id → struct preemptible */
    VEC(struct preempt_hold) holds;
    struct map held_victims; /* ids of those that somebody waits for → how many do */
    struct preempt_search preempt_search;
    VEC(struct preempt_failure) failed;
    unsigned searches_left; /* before others have their turn */
    bool pass_over;         /* all were tried */
    VEC(struct preempt_retry) retries;
    VEC(CmdPreempt *) preempts;
    bool in_order;     /* no backfill */
    bool least_loaded; /* CR_LLN */
    uint64_t looked;   /* hosts looked at closely, ever */
    uint64_t given;    /* hosts of all starts, ever */
    struct arena plan_arena;
    struct str names; /* while a start is written */
    struct {
        uint32_t job_id;             /* 0: none */
        uint32_t last_id;            /* that was put off: once is enough */
        uint64_t at, epoch, changed; /* host_changes, epoch and the job's `changed` then */
        struct order over;
        struct parts parts;
        bool now;          /* in this slice */
    } placed;              /* a wide job that has its hosts and starts in the next slice; plan.c */
    uint64_t host_changes; /* grows when what a host has, or has promised, changes */
    struct plan plan;
    VEC(CmdStart *) starts;
    struct parts scratch;
    VEC(struct chosen) candidates;
};

static inline bool rebuild_is_done(const struct sched *sched)
{
    return !sched->rebuild.left;
}

/* What the host has is read again later. */
static inline bool rebuild_is_due(const struct sched *sched, uint32_t host)
{
    return sched->rebuild.left & READ_NODES && host >= sched->rebuild.node_host;
}

static inline struct pending_page *page_find(const struct sched *sched, uint32_t job_id)
{
    size_t page =
        job_id / PENDING_PER_PAGE - sched->pendings.first; /* wraps around below the first */

    return page < sched->pendings.count ? sched->pendings.pages[page] : NULL;
}

static inline struct pending *pending_find(const struct sched *sched, uint32_t job_id)
{
    struct pending_page *page = page_find(sched, job_id);
    uint32_t at = job_id % PENDING_PER_PAGE;

    return page && page->there[at / 64] >> (at % 64) & 1 ? &page->pendings[at] : NULL;
}

static inline struct inflight_list *inflights_of(const struct sched *sched, uint32_t job_id)
{
    return map_len(&sched->inflights) ? map_get_num(&sched->inflights, job_id) : NULL;
}

static inline struct class *class_of(const struct sched *sched, const struct pending *pending)
{
    return sched->classes.items[pending->class - 1];
}

#endif
