/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hosts.h - hosts: what they have free now and later, and how they are found
 *
 * A host is the planner's record of a node. Hosts with the same hardware are of one kind, and the hosts of a
 * kind lie in a grid by what they have free: the best one is found without looking at the others.
 */
#ifndef SCHED_HOSTS_HOSTS_H
#define SCHED_HOSTS_HOSTS_H

#include "sched/root.h"

struct family;
struct search;

/* What a host has free at some moment. */
struct room_at {
    uint32_t cpus;
    bool empty;
    uint64_t mem_mb;
    uint64_t gres[TAKE_GRES];
};

/* ---- amounts.c: what a job takes of one node; equal amounts are kept once ---- */

struct amount {
    uint32_t refs;
    bool whole; /* the job shares the node with nobody */
    uint32_t cpus;
    uint64_t mem_mb;
    uint64_t gres[TAKE_GRES];
    uint64_t hash;
    struct amount *same; /* the next with this hash */
};
struct amount *amount_take(struct sched *sched, const struct take *take, bool whole);
struct amount *amount_share(struct amount *amount);
void amount_drop(struct sched *sched, struct amount *amount);
void amounts_done(struct sched *sched);

/* ---- grid.c: hosts of one kind by what they have ---- */

struct cell {
    uint64_t *hosts; /* a bit for each host, then a bit for each of these words */
    uint32_t count;
};
struct grid {
    uint32_t rows, cols; /* generic resources; CPUs */
    uint32_t words;      /* of a cell */
    uint32_t full_words; /* those that tell which of them are not empty */
    struct cell *cells;
    uint32_t *in_col;      /* hosts of all rows in each column */
    uint64_t *cols_filled; /* a bit for each column that has some */
    uint64_t *filled;      /* a bit for each cell that has some, row by row */
    uint32_t row_words;
};
#define NO_CELL UINT32_MAX
void grid_init(struct grid *grid, uint32_t rows, uint32_t cols, size_t hosts);
void grid_done(struct grid *grid);
void grid_move(struct grid *grid, uint32_t host, uint32_t *at, uint32_t cell);
/* Counts the hosts in cells at or beyond (row, col), up to `enough`. */
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

/* ---- kinds.c ---- */

/* The devices of one generic resource of a kind. */
struct devices {
    uint32_t count;
    uint8_t *links;      /* count * count; 0 no link … 4 the best; NULL unknown */
    struct bitset *near; /* CPUs near each device; NULL unknown */
};

/* The least that a family wants of a host; root.h (2). */
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
    struct grid bound;      /* the hosts with blocks, by what is free now */
    struct devices devices[TAKE_GRES];
    VEC(struct want) wants; /* of families that one host can serve, by CPUs; wants.c */
    VEC(struct want) wide;  /* of the other families */
};
struct kind *kind_of(struct sched *sched, const struct node *node);
void kind_leave(struct sched *sched, struct kind *kind, const struct node *node);
void kinds_done(struct sched *sched);
uint32_t kind_cell(const struct kind *kind, const struct room_at *room);
/* The devices that make the row of a kind. */
uint64_t kind_devices(const struct kind *kind, const uint64_t *gres);
void kinds_renumber(struct sched *sched); /* hosts have new numbers; renumber.c */

/* ---- what is on a host ---- */

/* What a job leaves in a view without some jobs (view.without), or takes back. */
enum { HOST_JOB_STAYS, HOST_JOB_LENDS, HOST_JOB_GONE, HOST_JOB_RETURNS };
/* A job that runs on the host. */
struct host_job {
    int64_t end_us;
    uint32_t job_id;
    uint8_t out;        /* HOST_JOB_* */
    uint16_t lent_cpus; /* that it lends while it is suspended; the amount is without them */
    struct amount *amount;
    uint64_t resv; /* hash of the reservation that it runs in; 0: none */
};
/* Room that is kept from a moment on, for a booking or a reservation. */
struct block {
    int64_t start_us, end_us;
    uint32_t job_id;       /* of the booking; 0: of a reservation */
    struct order order;    /* of the job; NO_ORDER: goes before all jobs */
    uint32_t delay_s;      /* of a reservation: jobs that can leave within this time may be there */
    uint32_t partition;    /* of a start that is tried: its number + 1 */
    bool flex;             /* the reservation does not bound its own jobs */
    uint64_t resv;         /* hash of the reservation; of a booking: in which it will run */
    struct amount *amount; /* NULL: the whole host */
};
/* With whom a job does not share hosts. */
enum exclusive_kind {
    EXCLUDES_USER = 1, /* with other users */
    EXCLUDES_MCS = 2,  /* with other MCS labels */
    EXCLUDES_TOPO = 4, /* with other jobs on its leaf switch */
};
uint64_t mcs_hash(const char *label);
unsigned job_exclusive_kind(const struct sched *sched,
                            const struct job *job); /* of a running job */

/* What a planned start takes of one host. */
struct claim {
    struct claim *next; /* on the same host */
    uint32_t host, job_id;
    int64_t end_us;
    struct amount *amount;
    uint32_t uid, fresh_cpus; /* CPUs that no other job has */
    uint32_t partition;       /* its number */
    uint8_t exclusive;        /* enum exclusive_kind */
    bool shared;              /* similar jobs may use its CPUs too */
    uint64_t mcs;             /* hash of its label; 0: none */
    uint64_t resv;            /* hash of its reservation; 0: none */
    struct bitset cpus;
    struct bitset *devices; /* device_kinds of them, as in node->gres */
    size_t device_kinds;
};

struct host {
    struct room_at free;
    const struct node *node;
    struct kind *kind;
    uint32_t jobs; /* on it now, claims included */
    bool usable, bound, freed, whole;
    bool exclusive; /* a job on it is exclusive of some others */
    uint32_t spare_cell, bound_cell;
    struct claim *claims;
    VEC(struct host_job) running; /* by end */
    VEC(struct block) blocks;     /* by start */
    VEC(struct block) forecasts;
    uint32_t offer_at;    /* place + 1 in the heap of offers */
    struct order offered; /* jobs up to this one were tried since the host was freed */
    struct room_at spare;
};

/*
 * The least that must be known of a host to pass over it; all of them are in one array. What a host has grows
 * only when a job on it ends.
 */
struct host_summary {
    int64_t first_end_us; /* of a running job; INT64_MIN: look closer */
    uint64_t mem_mb;      /* free now, like the next two */
    uint32_t cpus, devices;
    uint32_t kind;       /* its number; UINT32_MAX: not usable */
    int64_t last_end_us; /* nobody has the whole host before this; INT64_MIN: look closer */
};
/* The best of this many neighbours: what all of them lack need not be asked of each. */
enum { SUMMARY_BLOCK = 16 };
struct summary_block {
    struct host_summary best;
    bool stale; /* one of them changed */
};

/* Switches, or blocks of nodes; place/topo.c reads them. */
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

/* ---- the part of struct sched ---- */

struct hosts {
    VEC(struct host) list;                    /* by node number */
    VEC(struct host_summary) summaries;       /* the same */
    VEC(struct summary_block) summary_blocks; /* of SUMMARY_BLOCK hosts each */
    VEC(struct kind *) kinds;
    uint64_t kinds_version,
        summarised;             /* `summarised`: the version of kinds that summaries are for */
    VEC(uint32_t) freed;        /* hosts that have more room than before */
    uint64_t changes;           /* grows when what a host has, or has promised, changes */
    struct map amounts;         /* hash → struct amount, chained */
    struct amount *last_amount; /* taken last: the next one is often the same */
    struct topo topo;
    int64_t last_block_us; /* when the last block ends; INT64_MIN: there is none */
    bool
        usable_again; /* set when hosts become usable: a job over its limit may fit there with less */
    bool exclusive;   /* some job is exclusive: families are by user */
    bool topo_exclusive; /* some job has leaf switches for itself */
};

/* ---- gres_shares.c: shard and mps, shares of GPUs ---- */

/* What is left of shares, the most of one device, and of the devices that they are shares of. */
void gres_shares_room(const struct host *host, size_t gres, uint64_t *room);
/* The same without jobs that are marked or have ended by `when_us`: exact, device by device. */
void gres_shares_room_without(const struct host *host, int64_t now_us, int64_t when_us,
                              uint64_t *room);
/* Of the devices with enough left, the one with least (or `most`) left; UINT32_MAX: none. */
uint32_t gres_shares_device(const struct host *host, size_t gres, uint64_t count, bool most,
                            const struct bitset *except);
/* How many devices have that many shares left. */
uint32_t gres_shares_devices(const struct host *host, size_t gres, uint64_t count);

/* ---- hosts.c ---- */

void host_take_new(struct sched *sched, const struct node *node); /* the next one */
bool hosts_done_some(struct sched *sched, unsigned *budget);      /* true: all are freed */
void hosts_done(struct sched *sched);
void host_free(struct sched *sched, struct host *host);
/* Follows a node whose hardware, amounts or state changed. */
void host_changed(struct sched *sched, const struct node *node);
/* Works out what the host has free and spare; root.h (1), (4). */
void host_refresh(struct sched *sched, uint32_t number);
/* A block was added; nothing else changed. */
void host_blocked(struct sched *sched, uint32_t number);
/* A block was removed: there is more room until the next one begins. */
void host_unblocked(struct sched *sched, uint32_t number);
/* When a job that holds nodes ends at the latest. */
int64_t job_runs_until(const struct job *job);
void host_summarise(struct sched *sched, uint32_t number);
void hosts_summarise(struct sched *sched); /* all hosts, if kinds have new numbers */
/* The best of SUMMARY_BLOCK hosts, from `first` on. */
const struct host_summary *hosts_summary_block(struct sched *sched, size_t first);

/* ---- host_jobs.c ---- */

/* Reads again which jobs run on the host. Does not work out its room. */
void host_read_jobs(struct sched *sched, uint32_t number);
void host_job_add(struct sched *sched, const struct job *job);
void host_job_end(struct sched *sched, const struct job *job); /* its end is at another time */
void host_job_again(struct sched *sched, const struct job *job);
void host_job_del(struct sched *sched, uint32_t job_id, uint32_t number);
void host_block_add(struct sched *sched, uint32_t number, struct block block);
/* The same; the caller works out the room of the host. */
void host_block_put(struct sched *sched, uint32_t number, struct block block);
size_t host_block_take(struct sched *sched, uint32_t number, uint32_t job_id);
void host_block_del(struct sched *sched, uint32_t number, uint32_t job_id);

/* ---- resvs.c: reservations ---- */

uint64_t resv_hash(const char *name);  /* 0 for NULL */
void resvs_begin(struct sched *sched); /* reads what is not about single hosts */
/* Reads again what reservations keep of the host; returns the number of blocks. */
size_t host_read_reservations(struct sched *sched, uint32_t number);

/* ---- host_timeline.c: what a host has left at later moments ---- */

/* A question to a host: what has it left for all of [start_us, end_us)? */
struct view {
    int64_t now_us, start_us, end_us;
    uint32_t mine;      /* the job whose own blocks do not count */
    uint64_t resv;      /* hash of the reservation whose blocks do not count; 0: none */
    uint32_t warn_s;    /* the job leaves within this time when a reservation wants it to; 0: not */
    unsigned share;     /* jobs that may share a CPU */
    bool without;       /* as if the jobs that are marked had gone */
    struct order order; /* only bookings before this one count; NO_ORDER: all, unless `without` */
    bool forecast;      /* starts that are only foreseen count too */
    struct search *search; /* goes on in the next slice, see LATER; NULL: all at once */
};
/* Does the block keep room from the view's job? */
bool block_hinders(const struct block *block, const struct view *view);
/* Takes a partial block off the room: less for others, and no more than the block for its own jobs. */
void room_keep(const struct host *host, const struct view *view, const struct block *block,
               int64_t when_us, struct room_at *room);
void host_room(const struct sched *sched, const struct host *host, const struct view *view,
               struct room_at *out);
/* Has the host that amount for all of the view's time? */
bool host_has_room(const struct sched *sched, const struct host *host, const struct amount *amount,
                   const struct view *view);
bool host_cpu_is_free(const struct host *host, size_t cpu, unsigned share);
/*
 * Counts CPUs that are free for a job that shares them with view->share others, without jobs that are marked
 * or have ended by `when_us`: exact, CPU by CPU.
 */
uint32_t host_cpus_without(const struct host *host, const struct view *view, int64_t when_us);
/* When the last running job ends: the host is not empty before. Jobs that lend their CPUs do not count.
 * INT64_MIN: no job runs. */
int64_t host_last_end(const struct host *host);
/* The first moment, from view->start_us on and before `before_us`, from which the host has the amount for
 * `length_us`; INT64_MAX: there is none. */
int64_t host_earliest(const struct sched *sched, const struct host *host,
                      const struct amount *amount, const struct view *view, int64_t length_us,
                      int64_t before_us);
/* The same, moment by moment: for cases that the fast one cannot do, and to check it. */
int64_t host_earliest_slow(const struct sched *sched, const struct host *host,
                           const struct amount *amount, const struct view *view, int64_t length_us,
                           int64_t before_us);

#endif
