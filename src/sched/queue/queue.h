/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.h - pending jobs in order: job lists, classes, families, partition queues
 *
 * Pending jobs of the same shape, partitions and time limit form a class. Classes that differ only in the limit
 * form a family: their jobs fit on the same hosts. A partition queue is a heap of families.
 */
#ifndef SCHED_QUEUE_QUEUE_H
#define SCHED_QUEUE_QUEUE_H

#include "sched/hosts/hosts.h"

struct event;
struct limit_queue;

/* Which of the partitions that a job names would take it. */
struct mask {
    uint64_t bits[(LIMIT_JOB_PARTITIONS + 63) / 64];
};
static inline bool mask_has(const struct mask *mask, size_t i)
{
    return mask->bits[i / 64] >> (i % 64) & 1;
}

/* ---- job_list.c: a sorted list of jobs, cheap at both ends ---- */

struct chunk;
struct job_list {
    struct chunk **chunks;
    uint32_t first, count, cap;
    struct chunk *tail; /* the last chunk, and the last job in it: most jobs come behind it */
    struct order last;
};
void job_list_put(struct job_list *queue, struct order order);
bool job_list_del(struct job_list *queue, struct order order);
struct order job_list_head(const struct job_list *queue); /* ORDER_LAST when empty */
/*
 * Prefetches the head, which will be taken soon. One address leads to the next, so callers do this in three
 * steps, `time` 0 to 2, with other work between them.
 */
void job_list_prefetch(const struct job_list *queue, unsigned time);
/* Walks in order; begin with a zeroed cursor. */
struct job_list_cursor {
    uint32_t chunk, item;
};
struct order job_list_next(const struct job_list *queue, struct job_list_cursor *cursor);
size_t job_list_count_before(const struct job_list *queue, struct order order);
void job_list_done(struct job_list *queue);

/* ---- heap.c: families by the order of their first job ---- */

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

/* ---- classes and families ---- */

/*
 * A job that comes or goes touches few cache lines: the first one has what is read when the first job of a
 * family is sought, the second one the queue, the third one what is rarely needed.
 */
enum { CACHE_LINE = 64, CLASSES_PER_SLAB = 64 };
struct class
{
    _Alignas(CACHE_LINE) struct order head; /* of the queue */
    struct order best;                      /* of the subtree */
    struct class *left, *right, *parent;    /* a treap by limit */
    int64_t limit_us;                       /* the longest of its jobs; INT64_MAX unlimited */
    struct family *family;
    struct job_list queue;
    uint32_t number, members;
    uint64_t key;
    struct class *same;
    uint32_t luck; /* the treap's priority */
};

/* What a family asks of one host of a kind, for one of its partitions. */
struct ask {
    bool able;
    uint32_t most;        /* tasks that an empty host of the kind could run */
    uint32_t least_units; /* a host that cannot have these is of no use */
    uint32_t row, col;    /* for least_units */
    uint64_t mem_mb;
    uint32_t cpus;
};

struct family {
    struct shape *shape;
    uint32_t shape_hash;
    struct mask mask;  /* of shape->partitions */
    uint32_t uid;      /* where it matters whose jobs share a host; else UINT32_MAX */
    uint8_t exclusive; /* enum exclusive_kind */
    uint32_t het;      /* the heterogeneous job that is its only one; 0: none */
    struct family *same;
    uint64_t key;
    uint64_t made;                      /* generation of nodes that it was made for */
    uint64_t generation, kinds_version; /* of the asks */
    uint32_t kinds;                     /* the asks are for this many */
    struct ask *asks;                   /* shape->partition_count * kinds */
    uint32_t *turns; /* the partitions in the order in which they are tried; wants.c */
    struct class *root;
    VEC(uint32_t) outs; /* jobs that left their limit queues to be tried here */
    /* Bins of limit queues: those that no limit was found to stop, and those that were passed over.
     * limit_review.c (3) */
    struct heap opens[2];
    uint8_t open_side;     /* which of the two has those that were not passed over yet */
    uint64_t *charge;      /* what a job of it asks for, by TRES; NULL: not worked out */
    uint64_t charge_rules; /* limit->rules at that time */
    uint64_t passed_at; /* sched->changes when the bins that were passed over were opened again */
    bool waking;        /* its bins are being looked at because it is ready */
    uint32_t class_count;
    uint32_t ready_at;
    uint32_t *partition_queue_at; /* one for each partition of the shape */
    uint32_t *partition_queues;   /* their numbers; UINT32_MAX: none of that name */
    uint32_t partition_queue_count;
    int64_t
        end_by_us; /* root.h (2): a job that would end later does not fit; INT64_MIN: none does */
    uint32_t lacking;         /* hosts or tasks that must be freed before another try */
    bool by_tasks;            /* `lacking` counts tasks */
    uint32_t booked;          /* jobs of it that are booked, at any of their positions */
    uint64_t hopeless;        /* epoch + 1 at which no start could be foreseen, */
    struct order hopeless_at; /* for a job at this place */
    uint64_t barred;   /* turn at which it did not fit even without the promises behind it, */
    int64_t barred_us; /* for a job of this length */
    uint64_t counted;  /* epoch + 1 at which hosts were counted: */
    uint32_t could,
        usable;      /* those that could run a part of a job, and those of them that may now */
    char *missing;   /* why too few may: "ReqNodeNotAvail, UnavailableNodes:n1"; or NULL */
    bool single;     /* one host serves a job */
    bool wanted;     /* is among the wants of the kinds */
    bool particular; /* the grid alone cannot place it */
    bool by_socket;  /* asks for devices per socket */
};

/* Jobs of a limit queue that have the same shape; limit_queue.c. */
struct bin {
    struct family *family;
    struct limit_queue *queue;
    uint32_t open_at;    /* place + 1 in a heap of family->opens; 0: in none */
    uint8_t side;        /* which of the two */
    uint32_t keyed;      /* the job that it is keyed by there, */
    uint64_t keyed_turn; /* at this turn of the priorities */
    int64_t shortest_us; /* no job of it has a shorter limit */
    struct job_list jobs;
};

/* ---- pending.c: the planner's record of a pending job ---- */

enum pending_place {
    PENDING_IDLE,    /* all of it is planned */
    PENDING_QUEUED,  /* may be tried */
    PENDING_PARKED,  /* its array runs as many tasks as it may */
    PENDING_LIMITED, /* a limit of its association or QOS keeps it waiting */
};
/* Of a job that left the limit queue of its owner and is in its class's queue now. */
enum pending_out {
    OUT_NOT = 0,
    OUT_TO_BE_TRIED, /* the next one of the limit queue waits until it was tried */
    OUT_SHOWN,       /* the limit queue is reviewed when it leaves */
};
struct pending {
    uint64_t rank;
    uint32_t class;    /* number + 1; 0: the planner does not have the job */
    uint32_t array_id; /* 0: none */
    uint8_t place;     /* enum pending_place */
    uint8_t booked;    /* 0: not; else at which position, the first one being 1 */
    uint8_t out;       /* enum pending_out */
    uint8_t over;      /* while LIMITED: because of what it would be given, not what it asks for */
    uint8_t positions; /* that it has behind this one; position.c */
    uint32_t limit_queue; /* its owner's, number + 1, while LIMITED; or which it left; 0: none */
    uint32_t foreseen;    /* place + 1 among the forecasts; 0: none */
};
enum { PENDING_PER_PAGE = 1024 };
struct pending_page {
    uint32_t used;                         /* records that have a class */
    uint64_t there[PENDING_PER_PAGE / 64]; /* which: most ids that are sought have none */
    struct pending pendings[PENDING_PER_PAGE];
};
struct pending_index {
    struct pending_page **pages; /* of ids first * PENDING_PER_PAGE and up; some are NULL */
    size_t first, count, cap;
};
struct pending *pending_new(struct sched *sched, uint32_t job_id);
void pending_free(struct sched *sched, uint32_t job_id);
/* Prefetches the records of a job that will be looked at soon. */
void pending_prefetch(const struct sched *sched, uint32_t job_id);
/* Prefetches its place in its queue; job_list_prefetch(). */
void pending_prefetch_list(const struct sched *sched, uint32_t job_id, unsigned time);
void pendings_done(struct sched *sched);
bool pendings_done_some(struct sched *sched, unsigned *budget); /* true: all are freed */
/* The first component of the heterogeneous job that it belongs to; otherwise itself. */
const struct job *het_first(const struct sched *sched, const struct job *job);
/* How many components start with it; 1 for any other job. */
uint32_t het_count(const struct job *job);

/* An array that has parked records, or planned tasks. */
struct throttle {
    struct job_list parked;
    uint32_t planned;
};
struct throttle *throttle_of(struct sched *sched, uint32_t array_id);
void throttle_tidy(struct sched *sched, uint32_t array_id);
/* `by` more or fewer of the array's tasks are planned. */
void throttle_plan(struct sched *sched, uint32_t array_id, int by);
/* How many more of its tasks may be planned. */
uint32_t array_left(const struct sched *sched, const struct array *array);

/* ---- position.c: a job of several partitions has a position for each tier and priority ---- */

enum { POSITIONS_MOST = 64 };
struct position {
    uint64_t rank;
    uint32_t class;    /* number + 1 */
    uint64_t compared; /* releases + 1 when its start was compared with the booking; 0: never */
    uint64_t cost;     /* of that */
};
/* Where a job stands, and with which of its partitions; the best first. */
struct queue_place {
    uint64_t rank;
    struct mask mask;
};
/* Fills in the job's places and returns how many; 0: no partition would take it. */
unsigned positions_of_job(const struct sched *sched, const struct job *job, bool own,
                          struct queue_place *out);
const struct position *position_at(const struct sched *sched, const struct pending *pending,
                                   uint32_t job_id, unsigned i);
void positions_put(struct sched *sched, struct pending *pending, uint32_t job_id,
                   const struct position *list, unsigned count);
/* Works out their ranks again; the job is in no queue. */
void positions_rank(struct sched *sched, const struct pending *pending, const struct job *job);
void positions_del(struct sched *sched, struct pending *pending, uint32_t job_id);
/* The class that the job is in with that rank; NULL: none. */
struct class *position_class(const struct sched *sched, const struct pending *pending,
                             struct order order);
/* Its place in the queue of a partition, by the partition's number; its first place if it has no other. */
struct order position_in_partition(const struct sched *sched, const struct pending *pending,
                                   uint32_t job_id, uint32_t partition_queue);
/* Where it is booked; ORDER_LAST: it is not. */
struct order position_booked(const struct sched *sched, const struct pending *pending,
                             uint32_t job_id);
/* Tells all families that the job is in that it is booked (1), or not any more (-1). */
void positions_booked(struct sched *sched, const struct pending *pending, uint32_t job_id, int by);
/* Which of its positions that is; 1: the first. */
uint8_t position_number(const struct sched *sched, const struct pending *pending,
                        struct order order);
/* Should a start at that position be compared with its booking at another? */
bool position_is_due(const struct sched *sched, const struct pending *pending, struct order order);
void position_compared(struct sched *sched, const struct pending *pending, struct order order,
                       uint64_t cost);
/* The job may need a booking at a position behind its first. */
void positions_need_booking(struct sched *sched, const struct pending *pending, uint32_t job_id);
void positions_done(struct sched *sched);

/* ---- families.c ---- */

/* The partitions that would take the job; false when there is none. */
bool job_mask(const struct sched *sched, const struct job *job, struct mask *mask);
struct family *family_get(struct sched *sched, const struct job *job, const struct mask *mask);
void family_drop(struct sched *sched, struct family *family);
/* A family for a job that is not queued; free it with family_free(). */
struct family *family_for(struct sched *sched, const struct job *job);
void family_free(struct family *family);
int64_t job_length_us(const struct job *job);
/* Are there numbers of nodes between its least and most that a job of the shape may not have? */
bool shape_sizes_limited(const struct shape *shape, const struct need *need);
/* The first job of some class changed: `order` came or went. */
void family_rekey(struct sched *sched, struct family *family, struct order order);
void class_link(struct family *family, struct class *class);
void class_unlink(struct family *family, struct class *class);
void class_pull_up(struct class *class, struct order was); /* `was`: its head before */
/* The first job of the family whose class has no longer limit. */
struct order family_first(const struct family *family, int64_t limit_us, struct class **class);
/* Jobs that end by then are worth trying. */
void family_mark_ready(struct sched *sched, struct family *family, int64_t end_by_us);
/* Jobs that end later than that do not fit until hosts are freed. */
void family_mark_blocked(struct sched *sched, struct family *family, int64_t end_by_us,
                         uint32_t lacking, struct order tried);
/* There is a new job at this place. */
void family_joined(struct sched *sched, const struct family *family, struct order order);
/* The job at this place was tried without success: it may need a booking. */
void family_needs_booking(struct sched *sched, const struct family *family, struct order order);
void families_mark_ready(struct sched *sched); /* all of them */
/* Those of heterogeneous jobs, if something happened that may let one start. */
void families_mark_het_ready(struct sched *sched);
/* Is the family ready for jobs of that limit? */
bool family_will_try(const struct sched *sched, const struct family *family, int64_t limit_us);
/* Would it be, if it had such a job; and with the hosts that are on offer? */
bool family_is_ready(const struct sched *sched, const struct family *family, int64_t limit_us);
bool family_would_try(struct sched *sched, struct family *family, int64_t limit_us);
static inline struct heap *family_open(struct family *family)
{
    return &family->opens[family->open_side];
}
static inline struct heap *family_passed(struct family *family)
{
    return &family->opens[!family->open_side];
}
static inline bool family_is_open(const struct family *family)
{
    return family->opens[0].items.len || family->opens[1].items.len;
}
/* The family is ready and has nobody to try: its bins in limit queues should be looked at. */
void family_wake(struct sched *sched, struct family *family);
/* The bins that were passed over may be looked at again. */
void family_open_again(struct family *family);

/* ---- classes.c ---- */

/* The class of jobs like this one with those partitions; made if there is none. */
struct class *class_get(struct sched *sched, const struct job *job, const struct mask *mask);
/* Its last member has gone. */
void class_drop(struct sched *sched, struct class *class);
void classes_done(struct sched *sched);
bool classes_done_some(struct sched *sched, unsigned *budget); /* true: all are freed */

/* ---- wants.c: which families could use hosts that are freed ---- */

/* What the family asks of each kind of host; worked out again when nodes changed. */
const struct ask *family_asks(struct sched *sched, struct family *family);
void wants_add(struct sched *sched, struct family *family);
void wants_del(struct sched *sched, struct family *family);
/* Finds out which families could use the hosts that were freed. */
void wants_absorb(struct sched *sched, unsigned *budget);
/*
 * The first job that a freed host could serve, and the host; NULL when there is none. Stops when the budget is
 * used up: then it is not known which job is first.
 */
struct family *wants_offer(struct sched *sched, struct order *order, struct host **host,
                           unsigned *budget);
/* Is a freed host on offer that may have room for a job of the family? */
bool wants_may_offer(struct sched *sched, struct family *family);
/* The job was tried: the host looks for the next one. */
void wants_offered(struct sched *sched, struct host *host, struct order order);

/* ---- predict.c: the order of jobs where it is not the priority ---- */

enum order_by { ORDER_BY_PRIORITY, ORDER_BY_LIMIT, ORDER_BY_SIZE };

/* What is known of earlier jobs that were alike. */
struct seen {
    uint32_t count;   /* as far as it matters */
    int64_t mean_s;   /* how long they ran, the latest counting most */
    int64_t log;      /* mean of the logarithms, in 1/16 of predict_log() */
    int64_t ran_s;    /* how long in all, */
    int64_t limit_s;  /* of the time that they asked for; both weighted alike */
    uint32_t miss[2]; /* by how much these two were wrong, in 1/256 of a doubling */
};
struct predict {
    enum order_by by;
    bool preempts;            /* by size */
    uint32_t patience;        /* per cent; overtake.c (2) */
    uint32_t late;            /* of a thousand jobs, those that may be late; overtake.c (3) */
    int64_t bound_s;          /* and no other job waits longer than this */
    struct map young, old;    /* hash of what makes jobs alike → struct seen; predict.c (2) */
    uint64_t learned, reread; /* jobs; how many when all places were last worked out */
    struct map overtakes;     /* hash of a partition's name → struct overtake */
    struct map entries;       /* job id → struct overtake_entry */
};

void predict_init(struct sched *sched);
void predict_read_config(struct sched *sched);
void predict_done(struct sched *sched);
/* Learns from what happened to a job. */
void predict_hear(struct sched *sched, const struct event *event);
/* How long the job is expected to run, at most its limit, including what it ran before a preemption. */
int64_t predict_run_s(const struct sched *sched, const struct job *job);
/* How long a job like it usually runs; a few that run very long do not count for more than others. */
int64_t predict_usual_s(const struct sched *sched, const struct job *job);
/* Its place in the order of the partition's tier, with its fair share (`own`) or not; the smaller one goes first. */
uint64_t predict_place(const struct sched *sched, const struct job *job,
                       const struct partition *partition, bool own);
/* Binary logarithm in 1/256, linear between powers of two. */
int64_t predict_log(int64_t value);

/* ---- overtake.c: how long a job may be overtaken ---- */

enum overtake_lot { OVERTAKE_DUE, OVERTAKE_USUAL, OVERTAKE_LATE }; /* in this order */
enum { OVERTAKE_SHIFT = 46 }; /* in a place; above it are the tiers */
void overtake_done(struct sched *sched);
/* The job changed, or is new; `ran_us` more of its work is done. */
void overtake_hear(struct sched *sched, const struct job *job, int64_t ran_us);
void overtake_forget(struct sched *sched, uint32_t job_id);
enum overtake_lot overtake_lot(const struct sched *sched, const struct job *job, int64_t *since_s);
/* Logarithm of what is left of the job: its share of the partition times its time. */
int64_t overtake_size(const struct sched *sched, const struct job *job);
int64_t overtake_ran_s(const struct sched *sched, uint32_t job_id);
/* Does the job need no booking? Larger jobs make room for it, and it for smaller ones, until it is due. */
bool overtake_waits(const struct sched *sched, struct order order);
/* Puts jobs that became due first; some in each slice. */
void overtake_look(struct sched *sched, unsigned *budget);
/* May the job take the place of a running one that is larger, or less urgent? */
bool overtake_goes_before(const struct sched *sched, const struct job *job,
                          const struct job *victim);
/* What it costs to preempt the job; the largest job is the cheapest. */
uint32_t overtake_worth(const struct sched *sched, const struct job *victim);

/* ---- partition_queue.c: the jobs of one partition in order ---- */

typedef VEC(struct order) order_list;
/* Where the order is in the list, or would be. */
size_t order_list_place(const struct order *list, size_t count, struct order order);
bool order_list_put(order_list *list, struct order order); /* false: it was there */

enum { PARTITION_FRONT = 64 }; /* jobs behind the booked ones that are looked at */
struct partition_queue {
    struct heap heap;   /* families by their first job */
    bool needs_booking; /* some of its first jobs may need a booking: */
    struct order needs_booking_lo, needs_booking_hi; /* those between these */
    VEC(struct order) front;                         /* its first jobs; book_queue.c (2) */
    struct order front_end;
    unsigned most;            /* bookings; 1 at least */
    VEC(struct order) booked; /* in order */
};
struct partition_queue_step {
    struct order key;
    enum { STEP_FAMILY, STEP_TREE, STEP_QUEUE } what;
    size_t index;        /* of a family in the heap */
    struct class *class; /* a subtree, or a queue and the place in it */
    struct job_list_cursor cursor;
};
struct partition_queue_walk {
    const struct partition_queue *partition_queue;
    VEC(struct partition_queue_step) steps;
};
void partition_queue_walk_begin(struct partition_queue_walk *walk,
                                const struct partition_queue *partition_queue);
struct order partition_queue_walk_next(struct partition_queue_walk *walk, struct class **class);
void partition_queue_walk_done(struct partition_queue_walk *walk);
/* A new job is in the queue. */
void partition_queue_joined(struct sched *sched, uint32_t number, struct order order);
/* A job at this place may need a booking. */
void partition_queue_needs_booking(struct sched *sched, uint32_t number, struct order order);
/* The same, if a job at this place could be among those that are booked. */
void partition_queue_needs_booking_at(struct sched *sched, uint32_t number, struct order order);
/* The queue does not count the job among its booked ones any more; false: it did not. */
bool partition_queue_uncount(struct partition_queue *partition_queue, struct order order);
size_t partition_queue_front_most(const struct partition_queue *partition_queue);

/* ---- the part of struct sched ---- */

struct queue {
    struct pending_index pendings;
    struct map positions;        /* job id → struct position, as many as its record says */
    struct map arrays;           /* array id → struct throttle */
    VEC(struct class *) classes; /* by number; NULL: free */
    VEC(void *) class_slabs;     /* memory of CLASSES_PER_SLAB classes each, by number */
    VEC(uint32_t) free_classes;
    struct map class_keys; /* hash → struct class, chained */
    struct map families;   /* hash → struct family, chained */
    size_t family_count;
    VEC(struct family *) hets; /* of heterogeneous jobs: they wait for more hosts than their own */
    uint64_t het_news,
        het_seen; /* het_news grows with every event that may let one of them start */
    struct heap ready;
    struct heap offers; /* freed hosts, by the first job that may fit there */
    VEC(struct partition_queue) partition_queues; /* by partition number */
    VEC(uint32_t) needs_booking;                  /* partition queues whose first jobs may */
    VEC(struct family *) woken;                   /* family_wake() */
    bool reclass;      /* jobs may belong to other families: reconfigure.c (1) */
    uint32_t sweep_id; /* the next job whose rank is worked out again; 0: none */
    bool in_order;     /* no backfill */
    struct predict predict;
    bool preempt_changed;    /* something happened that may make victims */
    int64_t preempt_wake_us; /* when there may be victims that there are not now */
};

static inline struct pending_page *page_find(const struct sched *sched, uint32_t job_id)
{
    const struct pending_index *index = &sched->queue->pendings;
    size_t page = job_id / PENDING_PER_PAGE - index->first; /* wraps around below the first */

    return page < index->count ? index->pages[page] : NULL;
}

static inline struct pending *pending_find(const struct sched *sched, uint32_t job_id)
{
    struct pending_page *page = page_find(sched, job_id);
    uint32_t at = job_id % PENDING_PER_PAGE;

    return page && page->there[at / 64] >> (at % 64) & 1 ? &page->pendings[at] : NULL;
}

static inline struct class *class_of(const struct sched *sched, const struct pending *pending)
{
    return sched->queue->classes.items[pending->class - 1];
}

#endif
