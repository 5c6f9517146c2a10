/* SPDX-License-Identifier: Apache-2.0 */
/*
 * room.h - hosts: what they have free now and later, and how they are found
 *
 * Inside the planner; see sched_priv.h for what holds.
 */
#ifndef SCHED_HOSTS_HOSTS_H
#define SCHED_HOSTS_HOSTS_H

#include "base/vec.h"
#include "core/shape.h"
#include "sched/queue/queue.h"

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
    uint64_t *hosts; /* a bit each; then one for each of these words */
    uint32_t count;
};
struct grid {
    uint32_t rows, cols; /* generic resources; CPUs */
    uint32_t words;      /* of a cell */
    uint32_t full_words; /* that say which of them are not empty */
    struct cell *cells;
    uint32_t *in_col; /* hosts of all rows; and which of them are not 0: */
    uint64_t *cols_filled;
    uint64_t *filled; /* a bit per cell, rows apart */
    uint32_t row_words;
};
#define NO_CELL UINT32_MAX
void grid_init(struct grid *grid, uint32_t rows, uint32_t cols, size_t hosts);
void grid_done(struct grid *grid);
void grid_move(struct grid *grid, uint32_t host, uint32_t *at, uint32_t cell);
/* Hosts in cells at or beyond (row, col); `enough`: more need not be counted. */
uint32_t grid_count(const struct grid *grid, uint32_t row, uint32_t col, uint32_t enough);

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
    bool everywhere;    /* the partition has all nodes */
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

/* In a view without some jobs (view.without): which of them, and what they leave; or take back. */
enum { HOST_JOB_STAYS, HOST_JOB_LENDS, HOST_JOB_GONE, HOST_JOB_RETURNS };
struct host_job {
    int64_t end_us;
    uint32_t job_id;
    uint8_t out;
    uint16_t lent_cpus; /* of one that is suspended for others; they are not in the amount */
    struct amount *amount;
    uint64_t resv; /* hash of the name of the reservation it runs in; 0 none */
};
struct block {
    int64_t start_us, end_us;
    uint32_t job_id;       /* of the booking; 0 for a reservation */
    struct order order;    /* of the job; NO_ORDER: goes before all */
    uint32_t delay_s;      /* of a reservation: jobs that go within this may be there */
    uint32_t partition;    /* of a start that is tried: its number + 1 */
    bool flex;             /* a reservation that does not bound its own jobs */
    uint64_t resv;         /* hash of the reservation's name; of a booking: that it will run in */
    struct amount *amount; /* NULL: all of the host */
};
/* Whom a job does not share hosts with: those of other users, or with other MCS labels. */
enum exclusive_kind {
    EXCLUDES_USER = 1,
    EXCLUDES_MCS = 2,
    EXCLUDES_TOPO = 4 /* others on its leaf switch */
};
uint64_t mcs_hash(const char *label);
unsigned job_exclusive_kind(const struct sched *sched,
                            const struct job *job); /* of one that runs */

/* A part of a start that is planned. */
struct claim {
    struct claim *next; /* on the same host */
    uint32_t host, job_id;
    int64_t end_us;
    struct amount *amount;
    uint32_t uid, fresh_cpus; /* CPUs that nobody else had */
    uint32_t partition;       /* its number */
    uint8_t exclusive;        /* enum exclusive_kind */
    bool shared;              /* others like it may have its CPUs too */
    uint64_t mcs;             /* hash of its label; 0 none */
    uint64_t resv;            /* hash of its reservation; 0 none */
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
    bool exclusive; /* somebody there minds who else is */
    uint32_t spare_cell, bound_cell;
    struct claim *claims;
    VEC(struct host_job) running; /* by end */
    VEC(struct block) blocks;     /* by start */
    VEC(struct block) forecasts;
    uint32_t offer_at;    /* place + 1 in the heap of offers */
    struct order offered; /* jobs up to this one were tried since it was freed */
    struct room_at spare;
};

/*
 * The least that must be known of a host to pass it over, all of them in one array: what it has
 * grows only when a run ends.
 */
struct host_summary {
    int64_t first_end_us; /* of runs; INT64_MIN: look closer */
    uint64_t mem_mb;      /* free now, as those below */
    uint32_t cpus, devices;
    uint32_t kind;       /* its number; UINT32_MAX: not usable */
    int64_t last_end_us; /* nobody has the whole host before; INT64_MIN: look closer */
};
/* The best of so many of them side by side: what all of them lack need not be asked of each. */
enum { SUMMARY_BLOCK = 16 };
struct summary_block {
    struct host_summary best;
    bool stale; /* one of them is not what it was */
};

/* ---- gres_shares.c: shard and mps, parts of GPUs ---- */

/* What is left of shares, the most of one device, and of the devices they are of. */
void gres_shares_room(const struct host *host, size_t gres, uint64_t *room);
/* The same without jobs that are marked or have ended by `when_us`: exact, device by device. */
void gres_shares_room_without(const struct host *host, int64_t now_us, int64_t when_us,
                              uint64_t *room);
/* The device that has least left (or most) and enough; UINT32_MAX none. */
uint32_t gres_shares_device(const struct host *host, size_t gres, uint64_t count, bool most,
                            const struct bitset *except);
/* How many devices have so many left. */
uint32_t gres_shares_devices(const struct host *host, size_t gres, uint64_t count);

struct kind *kind_of(struct sched *sched, const struct node *node);
void kind_leave(struct sched *sched, struct kind *kind, const struct node *node);
void kinds_done(struct sched *sched);
uint32_t kind_cell(const struct kind *kind, const struct room_at *room);

void host_take_new(struct sched *sched, const struct node *node); /* the next one */
/* What runs there, anew. Its room is not worked out. */
void host_read_jobs(struct sched *sched, uint32_t number);
bool hosts_done_some(struct sched *sched, unsigned *budget); /* true: all of them */
void hosts_done(struct sched *sched);
void host_free(struct sched *sched, struct host *host);
/* renumber.c: as the nodes are now. All hosts are to be read again (rebuild_nodes()), what is promised
   and held was given up. */
void hosts_renumber(struct sched *sched);
void kinds_renumber(struct sched *sched); /* the part of it that is about kinds */
void host_changed(struct sched *sched, const struct node *node); /* kind, amounts, state */
void host_refresh(struct sched *sched, uint32_t number);         /* (1), (4) */
/* There is a block more: all else is as it was. */
void host_blocked(struct sched *sched, uint32_t number);
/* What was kept of it is not: there is more room until the next block begins, even if not after. */
void host_unblocked(struct sched *sched, uint32_t number);
int64_t job_runs_until(const struct job *job); /* at the latest; of one that holds nodes */
void host_summarise(struct sched *sched, uint32_t number);
void hosts_summarise(struct sched *sched); /* all of them, if kinds have other numbers */
/* The best of SUMMARY_BLOCK hosts, from that one on. */
const struct host_summary *hosts_summary_block(struct sched *sched, size_t first);
/* Devices that make the row of a kind. */
uint64_t kind_devices(const struct kind *kind, const uint64_t *gres);
void host_job_add(struct sched *sched, const struct job *job);
void host_job_end(struct sched *sched, const struct job *job); /* ends at another time */
void host_job_again(struct sched *sched, const struct job *job);
void host_job_del(struct sched *sched, uint32_t job_id, uint32_t number);
void host_block_add(struct sched *sched, uint32_t number, struct block block);
/* The same; the room of the host is worked out by the caller. */
void host_block_put(struct sched *sched, uint32_t number, struct block block);
size_t host_block_take(struct sched *sched, uint32_t number, uint32_t job_id);
void host_block_del(struct sched *sched, uint32_t number, uint32_t job_id);
/* ---- resvs.c ---- */

void resvs_begin(struct sched *sched); /* what is not about hosts */
/* What reservations keep of the host, anew; so many blocks. */
size_t host_read_reservations(struct sched *sched, uint32_t number);

struct search;
/* What the host has left for all of [start, end) as far as is known now; `mine`: whose block is
 * no hindrance; `resv`: the reservation whose blocks are none. */
struct view {
    int64_t now_us, start_us, end_us;
    uint32_t mine;
    uint64_t resv;   /* hash of its name; 0 none */
    uint32_t warn_s; /* the job goes so soon when a reservation wants it to; 0: not */
    unsigned share;
    bool without; /* as if jobs that are marked had gone; preempt.c */
    struct order
        order;     /* only bookings before this are hindrances; NO_ORDER: all, unless without */
    bool forecast; /* starts that are only foreseen are hindrances too */
    struct search *search; /* it goes on in the next slice, LATER; NULL: all at once */
};
bool block_hinders(const struct block *block, const struct view *view);
/* A block of a part of the host: less room for others, no more than that for its own jobs. */
void room_keep(const struct host *host, const struct view *view, const struct block *block,
               int64_t when_us, struct room_at *room);
void host_room(const struct sched *sched, const struct host *host, const struct view *view,
               struct room_at *out);
/* Has it that for all of the view's time? */
bool host_has_room(const struct sched *sched, const struct host *host, const struct amount *amount,
                   const struct view *view);
/* preempt_trial.c: CPUs that are free there for a job that shares them with so many, without those that are marked or
 * have ended by `when_us`: exact, CPU by CPU. */
uint32_t host_cpus_without(const struct host *host, const struct view *view, int64_t when_us);
/* Of runs: the host is not empty before. Who lends its CPUs does not count; INT64_MIN: there are none. */
int64_t host_last_end(const struct host *host);
/* The first moment from view->start_us on and before `before_us` from which the host has that for so
 * long; INT64_MAX none. */
int64_t host_earliest(const struct sched *sched, const struct host *host,
                      const struct amount *amount, const struct view *view, int64_t length_us,
                      int64_t before_us);
/* The same, moment by moment: for what the other one has no way for, and to judge it. */
int64_t host_earliest_slow(const struct sched *sched, const struct host *host,
                           const struct amount *amount, const struct view *view, int64_t length_us,
                           int64_t before_us);

#endif
