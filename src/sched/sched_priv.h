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
 * (2) A family that did not fit is cold: it is not tried again until a host that one of its jobs
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
#include "sched/sched.h"

#define US_PER_S INT64_C(1000000)
/* A job without a limit is taken to end after this. */
#define UNLIMITED_US (INT64_C(365) * 86400 * US_PER_S)

/* (5): what is smaller goes first. */
struct order {
    uint64_t rank;
    uint32_t id;
};
static inline bool order_before(struct order a, struct order b)
{
    return a.rank != b.rank ? a.rank < b.rank : a.id < b.id;
}
#define ORDER_LAST ((struct order){ UINT64_MAX, UINT32_MAX })
static inline bool order_is_last(struct order order)
{
    return order.rank == UINT64_MAX && order.id == UINT32_MAX;
}

/* Which of the partitions that a job names would take it. */
struct mask {
    uint64_t bits[(LIMIT_JOB_PARTITIONS + 63) / 64];
};
static inline bool mask_has(const struct mask *mask, size_t i)
{
    return mask->bits[i / 64] >> (i % 64) & 1;
}

/* ---- line.c: a sorted list of jobs, cheap at both ends ---- */

struct chunk;
struct line {
    struct chunk **chunks;
    uint32_t first, count, cap;
};
void line_put(struct line *queue, struct order order);
bool line_del(struct line *queue, struct order order);
struct order line_head(const struct line *queue); /* ORDER_LAST when empty */
/* Walks in order; begin with a zeroed cursor. */
struct line_cursor {
    uint32_t chunk, item;
};
struct order line_next(const struct line *queue, struct line_cursor *cursor);
size_t line_count_before(const struct line *queue, struct order order);
void line_done(struct line *queue);

/* ---- heap.c: families by the order of their first job ---- */

struct family;
struct heap_item {
    struct order key;
    struct family *family;
    uint32_t *at; /* where the family keeps its place + 1; 0: not in the heap */
};
struct heap {
    VEC(struct heap_item) items;
};
void heap_set(struct heap *heap, uint32_t *at, struct family *family, struct order key);
void heap_del(struct heap *heap, uint32_t *at);
const struct heap_item *heap_top(const struct heap *heap); /* NULL when empty */

/* ---- amounts.c: what a job takes of one node, kept once ---- */

struct amount {
    uint32_t refs;
    bool whole; /* nobody else may be there */
    uint32_t cpus;
    uint64_t mem_mb;
    uint64_t gres[TAKE_GRES];
    uint64_t hash;
    struct amount *same;
};
struct amount *amount_take(struct sched *sched, const struct take *take, bool whole);
struct amount *amount_share(struct amount *amount);
void amount_drop(struct sched *sched, struct amount *amount);
void amounts_done(struct sched *sched);

/* ---- grid.c: hosts of one kind by what they have ---- */

struct cell {
    uint64_t *hosts; /* a bit each */
    uint32_t count;
};
struct grid {
    uint32_t rows, cols; /* generic resources; CPUs */
    uint32_t words;      /* of a cell */
    struct cell *cells;
    uint64_t *filled; /* a bit per cell, rows apart */
    uint32_t row_words;
};
#define NO_CELL UINT32_MAX
void grid_init(struct grid *grid, uint32_t rows, uint32_t cols, size_t hosts);
void grid_done(struct grid *grid);
void grid_move(struct grid *grid, uint32_t host, uint32_t *at, uint32_t cell);

/* Walks the hosts of `among` in cells at or beyond (row, col); `down`: from the roomiest. */
struct grid_walk {
    const struct grid *grid;
    const uint64_t *among;
    uint32_t first_row, first_col;
    uint32_t row, col, word;
    uint64_t bits;
    bool down, inside;
};
void grid_walk_begin(struct grid_walk *walk, const struct grid *grid, const uint64_t *among,
                     uint32_t row, uint32_t col, bool down);
uint32_t grid_walk_next(struct grid_walk *walk); /* UINT32_MAX at the end */

/* ---- hosts.c ---- */

/* Devices of one generic resource of a kind of node. */
struct devices {
    uint32_t count;
    uint8_t *links;      /* count * count; 0 nothing … 4 the best; NULL unknown */
    struct bitset *near; /* CPUs by device; NULL unknown */
};

/* What a family wants of a host at least; see priv (2). */
struct want {
    uint32_t cpus, row;
    uint64_t mem_mb;
    struct family *family;
    uint32_t partition; /* of the family's */
};

struct kind {
    uint64_t hash;
    uint32_t number; /* in order of preference */
    const struct node *sample;
    uint64_t most_mem_mb;
    uint32_t weight, devices_total, hosts;
    uint32_t row_shift, col_shift;
    bool in_row[TAKE_GRES]; /* these generic resources make the row */
    struct grid spare;      /* every usable host, by what is spare */
    struct grid bound;      /* those with blocks, by what is free now */
    struct devices devices[TAKE_GRES];
    VEC(struct want) wants; /* of families that one host can serve, by cpus; see wants.c */
    VEC(struct want) wide;  /* of the others */
};

struct run {
    int64_t end_us;
    uint32_t job_id;
    struct amount *amount;
};
struct block {
    int64_t start_us, end_us;
    uint32_t job_id;       /* of the booking; 0 for a reservation */
    uint64_t resv;         /* hash of the reservation's name */
    struct amount *amount; /* NULL: all of the host */
};
/* Whom a job does not share hosts with: those of other users, or with other MCS labels. */
enum minds { MINDS_USER = 1, MINDS_MCS = 2 };
uint64_t mcs_hash(const char *label);
unsigned job_minds(const struct sched *sched, const struct job *job); /* of one that runs */

/* A part of a start that is planned. */
struct claim {
    struct claim *next; /* on the same host */
    uint32_t host, job_id;
    int64_t end_us;
    struct amount *amount;
    uint32_t uid, fresh_cpus; /* CPUs that nobody else had */
    uint8_t minds;            /* enum minds */
    uint64_t mcs;             /* hash of its label; 0 none */
    struct bitset cpus;
    struct bitset *devices; /* device_kinds of them, as node->gres */
    size_t device_kinds;
};

struct room_at {
    uint32_t cpus;
    bool empty;
    uint64_t mem_mb;
    uint64_t gres[TAKE_GRES];
};

struct host {
    struct room_at free;
    const struct node *node;
    struct kind *kind;
    uint32_t jobs; /* there now, claims too */
    bool usable, bound, freed, whole;
    bool minded; /* somebody there minds who else is */
    uint32_t spare_cell, bound_cell;
    struct claim *claims;
    VEC(struct run) runs;     /* by end */
    VEC(struct block) blocks; /* by start */
    VEC(struct block) forecasts;
    uint32_t offer_at;    /* place + 1 in the heap of offers */
    struct order offered; /* jobs up to this one were tried since it was freed */
    struct room_at spare;
};

struct kind *kind_of(struct sched *sched, const struct node *node);
void kind_leave(struct sched *sched, struct kind *kind, const struct node *node);
void kinds_done(struct sched *sched);
uint32_t kind_cell(const struct kind *kind, const struct room_at *room);

void hosts_read(struct sched *sched); /* all of it anew */
void hosts_done(struct sched *sched);
void host_changed(struct sched *sched, const struct node *node); /* kind, amounts, state */
void host_refresh(struct sched *sched, uint32_t number);         /* (1), (4) */
int64_t job_runs_until(const struct job *job); /* at the latest; of one that holds nodes */
void host_run_add(struct sched *sched, const struct job *job);
void host_run_end(struct sched *sched, const struct job *job); /* ends at another time */
void host_run_del(struct sched *sched, uint32_t job_id, uint32_t number);
void host_block_add(struct sched *sched, uint32_t number, struct block block);
void host_block_del(struct sched *sched, uint32_t number, uint32_t job_id);
void hosts_read_reservations(struct sched *sched);

/* What the host has left for all of [start, end) as far as is known now; `mine`: whose block is
 * no hindrance; `resv`: the reservation whose blocks are none. */
struct view {
    int64_t now_us, start_us, end_us;
    uint32_t mine;
    uint64_t resv; /* hash of its name; 0 none */
    unsigned share;
    bool forecast; /* starts that are only foreseen are hindrances too */
};
void host_room(const struct sched *sched, const struct host *host, const struct view *view,
               struct room_at *out);
/* The first moment before `before_us` from which the host has that for so long; INT64_MAX none. */
int64_t host_earliest(const struct sched *sched, const struct host *host,
                      const struct amount *amount, const struct view *view, int64_t length_us,
                      int64_t before_us);

/* ---- classes.c ---- */

struct class
{
    struct family *family;
    int64_t limit_us; /* no job of it has a longer one; INT64_MAX unlimited */
    uint32_t number, members;
    struct order head; /* of the queue */
    struct line queue;
    uint64_t key;
    struct class *same;
    struct class *left, *right, *parent; /* a treap by limit */
    uint32_t luck;
    struct order best; /* of the subtree */
};

/* What a family wants of one host of a kind, for one of its partitions. */
struct ask {
    bool able;
    uint32_t most;       /* tasks that an empty host of the kind could run */
    uint32_t unit_tasks; /* a host that cannot run these is of no use */
    uint32_t row, col;   /* for unit_tasks */
    uint64_t mem_mb;
    uint32_t cpus;
};

struct family {
    struct shape *shape;
    uint32_t shape_hash;
    struct mask mask; /* of shape->partitions */
    uint32_t uid;     /* where it matters whose jobs share a host; else UINT32_MAX */
    uint8_t minds;    /* enum minds: must not share hosts with others */
    struct family *same;
    uint64_t key;
    uint64_t generation, kinds_version; /* of the asks */
    uint32_t kinds;                     /* the asks are for so many */
    struct ask *asks;                   /* shape->partition_count * kinds */
    struct class *root;
    uint32_t class_count;
    uint32_t hot_at;
    uint32_t *lane_at; /* one per partition of the shape */
    uint32_t *lanes;   /* their numbers; UINT32_MAX: none of that name */
    uint32_t lane_count;
    int64_t end_by_us; /* (2): a job that would end later than this does not fit; INT64_MIN: none */
    uint32_t lacking;  /* hosts or tasks that must be freed before another try */
    bool by_tasks;     /* lacking counts tasks */
    uint32_t booked;   /* jobs of it that are */
    uint64_t hopeless; /* epoch + 1 at which no start could be foreseen */
    uint64_t barred;   /* turn at which it did not fit without what is promised behind it either */
    uint64_t counted;  /* epoch + 1 at which hosts were counted */
    uint32_t could, usable; /* hosts that could run a part of a job; those of them that may now */
    bool single;            /* one host serves a job */
    bool wanted;            /* is among the wants of the kinds */
    bool particular;        /* not placed by the grid alone */
};

enum pend_place {
    PEND_IDLE,    /* all of it is planned */
    PEND_QUEUED,  /* may be tried */
    PEND_PARKED,  /* its array runs as many tasks as it may */
    PEND_LIMITED, /* a limit of its association or QOS is in the way */
};
struct pend {
    uint64_t rank;
    uint32_t class;    /* number + 1; 0: not in the queue of the planner */
    uint32_t array_id; /* 0: none */
    uint8_t place;     /* enum pend_place */
    uint8_t booked;
    uint32_t holder;   /* whose limit it is, while LIMITED */
    uint32_t foreseen; /* place + 1 among the forecasts; 0: none */
};

/* Of an array with records that wait for its %N, or with planned tasks. */
struct throttle {
    struct line parked;
    uint32_t planned;
};
/* `by` more or fewer of the array's tasks are planned. */
void throttle_plan(struct sched *sched, uint32_t array_id, int by);
/* Records that wait for others of the array may go, as many as it has room for. */
void throttle_release(struct sched *sched, uint32_t array_id);

struct pend *pend_find(const struct sched *sched, uint32_t job_id);

/* Could any of it be planned now? */
enum pend_place class_place(const struct sched *sched, const struct job *job);
/* Puts the job where it belongs: into a class, parked, or out. */
void class_refresh(struct sched *sched, const struct job *job);
void class_remove(struct sched *sched, uint32_t job_id);
/* Only what is planned of it changed. */
void class_settle(struct sched *sched, const struct job *job);
struct class *class_of(const struct sched *sched, const struct pend *pend);
/* The first job of the family whose class has no longer limit. */
struct order family_first(const struct family *family, int64_t limit_us, struct class **class);
void family_heat(struct sched *sched, struct family *family, int64_t end_by_us);
void family_cool(struct sched *sched, struct family *family, int64_t end_by_us, uint32_t lacking,
                 struct order tried);
void families_heat_all(struct sched *sched);
void classes_done(struct sched *sched);
/* A family for a job that is not queued; free with family_free(). */
struct family *family_for(struct sched *sched, const struct job *job);
void family_free(struct family *family);
int64_t job_length_us(const struct job *job);
uint64_t resv_hash(const char *name); /* 0 for NULL */

/* ---- predict.c: who goes first, where that is not the priority ---- */

enum order_by { ORDER_BY_PRIORITY, ORDER_BY_LIMIT, ORDER_BY_SIZE };

/* What was seen of jobs that were alike. */
struct seen {
    uint32_t count;   /* as far as it matters */
    int64_t mean_s;   /* they ran, the latest counting most */
    int64_t part;     /* of their limit that they ran, in 1/PART_ONE */
    uint32_t miss[2]; /* by which these two were wrong, in 1/256 of a doubling */
};
struct predict {
    enum order_by by;
    uint32_t stretch;
    int64_t bound_s;
    struct map young, old;    /* hash of what makes jobs alike → struct seen; see predict.c (2) */
    uint64_t learned, reread; /* jobs; how many when all places were worked out anew */
};

void predict_init(struct sched *sched);
void predict_read_config(struct sched *sched);
void predict_done(struct sched *sched);
/* A job ended: how long did it run? */
void predict_learn(struct sched *sched, const struct event *event);
/* The same for jobs that ended before there was a planner, as far as they are still known. */
void predict_recall(struct sched *sched);
/* How long it is expected to run, at most its limit. */
int64_t predict_run_s(struct sched *sched, const struct job *job);
/* Its place in the order of its tier: what is smaller goes first. */
uint64_t predict_place(struct sched *sched, const struct job *job);

/* ---- wants.c ---- */

/* What it wants of each kind of host; worked out when nodes changed. */
const struct ask *family_asks(struct sched *sched, struct family *family);
void wants_add(struct sched *sched, struct family *family);
void wants_del(struct sched *sched, struct family *family);
/* Finds out who could use what was freed. */
void wants_absorb(struct sched *sched, unsigned *budget);
/* The first job that a freed host could serve, and the host; NULL when there is none. */
struct family *wants_offer(struct sched *sched, struct order *order, struct host **host);
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
    uint32_t licence; /* where one of several was asked for: which */
};
/*
 * Chooses hosts; true when the job fits. Otherwise *short_of says by how many hosts or tasks not,
 * at least.
 */
bool place(struct sched *sched, struct family *family, const struct job *job,
           const struct view *view, struct parts *parts, uint32_t *short_of);

void parts_names(const struct sched *sched, const struct parts *parts, struct str *out);

bool family_may_use(struct sched *sched, const struct family *family, size_t partition);
/* The same at view->start_us, among the given hosts in the order they are in. */
bool place_among(struct sched *sched, struct family *family, size_t partition,
                 const struct job *job, const struct view *view, const uint32_t *hosts,
                 size_t count, struct parts *parts);

/* ---- profile.c ---- */

/*
 * When and where the job can start if nothing goes before it but what is booked for others;
 * INT64_MAX never. `parts` is filled unless never.
 */
int64_t profile_start(struct sched *sched, struct family *family, const struct job *job,
                      int64_t now_us, bool forecast, struct parts *parts);

/* ---- forecast.c: starts of jobs that are not booked, as far as they can be foreseen ---- */

struct forecast {
    uint32_t job_id;
    int64_t start_us;
    char *hosts; /* names */
};
const struct forecast *forecast_of(const struct sched *sched, uint32_t job_id);
void forecasts_done(struct sched *sched);

/* ---- licences.c: licences now and later ---- */

/* Somebody has so many of a pool for a while. */
struct licence_use {
    struct licence_use *next; /* of the same owner */
    uint32_t pool, count, job_id;
    int64_t start_us, end_us;
    uint32_t at; /* place in the pool */
};
struct licence_pool {
    char *name;
    uint32_t total;
    bool lacking; /* somebody waits for it */
    VEC(struct licence_use *) uses;
};
void licences_read(struct sched *sched);
void licences_done(struct sched *sched);
/* Are they there for all of the view's time? *choice: which of several. */
bool licences_fit(struct sched *sched, const struct family *family, const struct view *view,
                  uint32_t *choice);
/* The first moment from start_us at which they are, for so long; INT64_MAX never. */
int64_t licences_from(struct sched *sched, const struct family *family, const struct view *view,
                      int64_t length_us);
struct licence_use *licences_claim(struct sched *sched, uint32_t job_id,
                                   const struct family *family, uint32_t choice, int64_t end_us);
struct licence_use *licences_book(struct sched *sched, uint32_t job_id, const struct family *family,
                                  uint32_t choice, int64_t start_us, int64_t end_us);
void licences_give(struct sched *sched, struct licence_use *uses); /* NULL: nothing */
void licences_run(struct sched *sched, const struct job *job);     /* it runs, until another time */
void licences_ended(struct sched *sched, uint32_t job_id);         /* if it holds nothing more */
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
};
void topo_read(struct sched *sched);
void topo_done(struct sched *sched);

/* ---- pick.c ---- */

bool host_cpu_is_free(const struct host *host, size_t cpu, unsigned share);
/*
 * Fills in which CPUs and devices of its host the claim gets, for its amount. `devices` that are
 * best linked with each other, of these the ones that leave the others best linked; CPUs near them.
 */
void pick(const struct host *host, const struct need *need, const struct take *take,
          struct claim *claim);

/* ---- lanes.c: the jobs of one partition in order ---- */

struct lane {
    struct heap heap;     /* families by their first job */
    bool unsure;          /* its first jobs may have to be booked */
    unsigned most;        /* bookings; 1 at least */
    struct order last;    /* of the booked */
    VEC(uint32_t) booked; /* ids, in order */
};
struct lane_step {
    struct order key;
    enum { STEP_FAMILY, STEP_TREE, STEP_QUEUE } what;
    size_t index;        /* of a family in the heap */
    struct class *class; /* a subtree, or a queue and the place in it */
    struct line_cursor cursor;
};
struct lane_walk {
    const struct lane *lane;
    VEC(struct lane_step) steps;
};
void lane_walk_begin(struct lane_walk *walk, const struct lane *lane);
struct order lane_walk_next(struct lane_walk *walk, struct class **class);
void lane_walk_done(struct lane_walk *walk);
void lane_doubt(struct sched *sched, uint32_t number);
/* Doubts it only if a job at this place could be among those that must be booked. */
void lane_doubt_at(struct sched *sched, uint32_t number, struct order order);

/* ---- book.c ---- */

struct booking {
    uint32_t job_id;
    uint32_t refs; /* lanes that count it among their first */
    struct order order;
    int64_t start_us, end_us;
    uint64_t releases; /* at the time it was made */
    uint64_t cost;     /* hosts that were looked at */
    struct licence_use *licences;
    struct parts parts;
};
/* Books what goes before `before` and must wait; true when something changed. */
bool book_ahead(struct sched *sched, struct order before, unsigned *budget);
void book_drop(struct sched *sched, uint32_t job_id);
/* Gives up what is booked for jobs behind this one; false when there was nothing. */
bool book_drop_behind(struct sched *sched, struct order order);
/* Looks again at bookings that are due or may have become better. */
void book_review(struct sched *sched, unsigned *budget);
const struct booking *booking_of(const struct sched *sched, uint32_t job_id);
void book_blocks(struct sched *sched); /* when blocks begin, anew */
void bookings_done(struct sched *sched);

/* ---- limits.c ---- */

#define NO_HOLDER UINT32_MAX
struct held;
/* Does a limit keep the job from starting? Then it is out of its class when this returns. */
bool limits_in_way(struct sched *sched, const struct job *job);
/* The same with what it would be given. Changes nothing. */
bool limits_in_way_of(struct sched *sched, const struct job *job, const struct parts *parts,
                      struct limit_hit *hit);
/* A start is planned; it came back. */
struct held *limits_plan(struct sched *sched, const struct job *job, const struct parts *parts);
void limits_unplan(struct sched *sched, struct held *held);
/* The job runs no more. */
void limits_freed(struct sched *sched, const struct job *job);
void limits_sweep(struct sched *sched, unsigned *budget);
void limits_done(struct sched *sched);
void limited_put(struct sched *sched, uint32_t holder, struct order order);
void limited_del(struct sched *sched, uint32_t holder, struct order order);
/* classes.c: out of its queue until the limit has room. */
void class_limit_job(struct sched *sched, const struct job *job, const struct limit_hit *hit);
bool class_rank_is_old(struct sched *sched, const struct job *job);

/* ---- flights.c ---- */

/* A start that is planned and has not come back. */
struct flight {
    struct flight *next; /* of the same job record */
    uint32_t task, array_id;
    struct held *held;            /* by limits */
    struct licence_use *licences; /* NULL: none */
    size_t count;
    struct claim claims[]; /* one a part */
};
struct flights {
    struct flight *first, *last;
    uint32_t count, next_task;
};
struct flight *flight_begin(struct sched *sched, const struct job *job, uint32_t task,
                            const struct parts *parts, const struct family *family, int64_t end_us);
/* It came back, or never will: its claims are given up. */
bool flight_land(struct sched *sched, uint32_t job_id, uint32_t task);
void flights_done(struct sched *sched);

struct sched {
    const struct state *state;
    VEC(struct host) hosts; /* by node number */
    VEC(struct kind *) kinds;
    uint64_t kinds_version;
    bool minds;          /* some job minds who shares its hosts: families go by user */
    bool reclass;        /* that is new: all families anew */
    VEC(uint32_t) freed; /* hosts with more room than before */
    struct map amounts;  /* hash → struct amount, chained */
    struct map pages;    /* of struct pend */
    struct pend_page *last_page;
    VEC(struct class *) classes; /* by number; NULL: free */
    VEC(uint32_t) free_classes;
    struct map class_keys; /* hash → struct class, chained */
    struct map families;   /* hash → struct family, chained */
    size_t family_count;
    struct heap hot;
    struct heap offers;           /* freed hosts, by the first job that may fit there */
    VEC(struct lane) lanes;       /* by partition number */
    VEC(uint32_t) unsure;         /* lanes whose first job may have to be booked */
    VEC(struct booking) bookings; /* in order */
    VEC(struct forecast) forecasts;
    uint64_t changes;          /* grows with every event that may change a start */
    uint64_t forecast_at;      /* changes + 1 when the forecasts were made; 0: never */
    int64_t forecast_us;       /* and when */
    uint64_t forecast_cost;    /* hosts that were looked at for them */
    VEC(int64_t) block_starts; /* that lie ahead, in order */
    int64_t last_block_us;     /* INT64_MIN: none */
    VEC(uint32_t) refused; /* jobs whose start core refused: not tried until something happens */
    int64_t refused_until_us;
    uint64_t generation, kinds_seen, epoch; /* epoch grows with every change of nodes */
    VEC(struct licence_pool) pools;         /* as core has them */
    struct map licence_runs;                /* job id → struct licence_use */
    struct topo topo;
    struct map limited;     /* number of a holder → struct line */
    struct tallies planned; /* by holder */
    uint64_t turn;          /* of the priorities that was seen last */
    uint32_t sweep_id;      /* the next job to be put in its place; 0 none */
    struct map flights;     /* job id → struct flights */
    struct map arrays;      /* array id → struct throttle */
    uint64_t releases;      /* grows with every release */
    int64_t now_us;
    struct predict predict;
    bool in_order;     /* no backfill */
    bool least_loaded; /* CR_LLN */
    uint64_t looked;   /* hosts looked at closely, ever */
    struct arena plan_arena;
    struct plan plan;
    VEC(CmdStart *) starts;
    struct parts scratch;
    VEC(struct chosen) candidates;
};

#endif
