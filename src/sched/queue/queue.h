/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.h - pending jobs in order: limit queues, heaps, classes, families, partition queues
 *
 * Inside the planner; see sched_priv.h for what holds.
 */
#ifndef SCHED_QUEUE_QUEUE_H
#define SCHED_QUEUE_QUEUE_H

#include "base/limits.h"
#include "base/vec.h"
#include "core/shape.h"

struct sched;
struct event;
struct limit_queue;

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
#define NO_ORDER   ((struct order){ 0, 0 })
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

/* ---- job_list.c: a sorted list of jobs, cheap at both ends ---- */

struct chunk;
struct job_list {
    struct chunk **chunks;
    uint32_t first, count, cap;
    struct chunk *tail; /* the last one, and the last job in it: most come behind it */
    struct order last;
};
void job_list_put(struct job_list *queue, struct order order);
bool job_list_del(struct job_list *queue, struct order order);
struct order job_list_head(const struct job_list *queue); /* ORDER_LAST when empty */
/*
 * The head will be taken soon: its memory is asked for. One place leads to the next, so this is said
 * three times, 0 to 2, with something else done between.
 */
void job_list_prefetch(const struct job_list *queue, unsigned time);
/* Walks in order; begin with a zeroed cursor. */
struct job_list_cursor {
    uint32_t chunk, item;
};
struct order job_list_next(const struct job_list *queue, struct job_list_cursor *cursor);
size_t job_list_count_before(const struct job_list *queue, struct order order);
void job_list_done(struct job_list *queue);

/* Jobs of a limit queue that have the same shape. */
struct bin {
    struct family *family;
    struct limit_queue *queue;
    uint32_t open_at;    /* place + 1 in a heap of family->opens; 0: in none */
    uint8_t side;        /* which of them */
    uint32_t keyed;      /* the job by which it is there */
    uint64_t keyed_turn; /* and the turn of the priorities */
    int64_t shortest_us; /* no job of it has a shorter limit */
    struct job_list jobs;
};

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

/* ---- classes and families ---- */

/*
 * A job that comes or goes touches few limit queues of memory: the first one is what is looked at when the
 * first job of a family is sought, the second the queue, the third what is rarely needed.
 */
enum { CACHE_LINE = 64, CLASSES_PER_SLAB = 64 };
struct class
{
    _Alignas(CACHE_LINE) struct order head; /* of the queue */
    struct order best;                      /* of the subtree */
    struct class *left, *right, *parent;    /* a treap by limit */
    int64_t limit_us;                       /* no job of it has a longer one; INT64_MAX unlimited */
    struct family *family;
    struct job_list queue;
    uint32_t number, members;
    uint64_t key;
    struct class *same;
    uint32_t luck;
};

/* What a family wants of one host of a kind, for one of its partitions. */
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
    uint8_t exclusive; /* enum exclusive_kind: must not share hosts with others */
    uint32_t het;      /* the heterogeneous job that it is of, alone; 0: none */
    struct family *same;
    uint64_t key;
    uint64_t made;                      /* generation of nodes for which that is so */
    uint64_t generation, kinds_version; /* of the asks */
    uint32_t kinds;                     /* the asks are for so many */
    struct ask *asks;                   /* shape->partition_count * kinds */
    uint32_t *turns; /* the partitions in the order in which they are tried: wants.c */
    struct class *root;
    VEC(uint32_t) outs; /* jobs that were let out of their limit queues, to be tried here */
    /* Of limit queues: jobs that no limit was found to keep waiting; those that were looked at. limit_review.c (3) */
    struct heap opens[2];
    uint8_t open_side;     /* which of them has those that were not passed yet */
    uint64_t *charge;      /* what a job of it asks for, by TRES; NULL: not worked out */
    uint64_t charge_rules; /* sched->rules when it was */
    uint64_t passed_at;    /* sched->changes when those that were passed were open again */
    bool waking;           /* they are looked at, because it is ready */
    uint32_t class_count;
    uint32_t ready_at;
    uint32_t *partition_queue_at; /* one per partition of the shape */
    uint32_t *partition_queues;   /* their numbers; UINT32_MAX: none of that name */
    uint32_t partition_queue_count;
    int64_t end_by_us; /* (2): a job that would end later than this does not fit; INT64_MIN: none */
    uint32_t lacking;  /* hosts or tasks that must be freed before another try */
    bool by_tasks;     /* lacking counts tasks */
    uint32_t booked;   /* jobs of it that are, for any of their places */
    uint64_t hopeless; /* epoch + 1 at which no start could be foreseen */
    struct order hopeless_at; /* for a job at this place */
    uint64_t barred;   /* turn at which it did not fit without what is promised behind it either */
    int64_t barred_us; /* and how long the job was that did not */
    uint64_t counted;  /* epoch + 1 at which hosts were counted */
    uint32_t could, usable; /* hosts that could run a part of a job; those of them that may now */
    char *missing;          /* why too few may: "ReqNodeNotAvail, UnavailableNodes:n1"; or NULL */
    bool single;            /* one host serves a job */
    bool wanted;            /* is among the wants of the kinds */
    bool particular;        /* not placed by the grid alone */
    bool by_socket;         /* devices are asked for per socket */
};

enum pending_place {
    PENDING_IDLE,    /* all of it is planned */
    PENDING_QUEUED,  /* may be tried */
    PENDING_PARKED,  /* its array runs as many tasks as it may */
    PENDING_LIMITED, /* a limit of its association or QOS is in the way */
};
/* Of a job that was in the limit queue of its owner and is in its queue now. */
enum pending_out {
    OUT_NOT = 0,
    OUT_TO_BE_TRIED, /* the next one of the limit queue waits until it was */
    OUT_SHOWN,       /* the limit queue is looked at again when it goes */
};
struct pending {
    uint64_t rank;
    uint32_t class;       /* number + 1; 0: not in the queue of the planner */
    uint32_t array_id;    /* 0: none */
    uint8_t place;        /* enum pending_place */
    uint8_t booked;       /* 0: not; else for which place, the first one being 1 */
    uint8_t out;          /* enum pending_out */
    uint8_t over;         /* while LIMITED: by what it would be given, not by what it asks for */
    uint8_t positions;    /* places that it has behind this one; position.c */
    uint32_t limit_queue; /* its owner's, number + 1, while LIMITED; or was, while out; 0: none */
    uint32_t foreseen;    /* place + 1 among the forecasts; 0: none */
};

/* ---- position.c: a job of several partitions has a place for each tier and priority ---- */

enum { POSITIONS_MOST = 64 };
struct position {
    uint64_t rank;
    uint32_t class;    /* number + 1 */
    uint64_t compared; /* releases + 1 when its start was compared with what is booked; 0: never */
    uint64_t cost;     /* of that */
};
/* Where it stands, and with which of its partitions; the best first. */
struct queue_place {
    uint64_t rank;
    struct mask mask;
};
/* So many; 0: no partition would take it. */
unsigned positions_of_job(const struct sched *sched, const struct job *job, bool own,
                          struct queue_place *out);
const struct position *position_at(const struct sched *sched, const struct pending *pending,
                                   uint32_t job_id, unsigned i);
void positions_put(struct sched *sched, struct pending *pending, uint32_t job_id,
                   const struct position *list, unsigned count);
/* They are what they are now; it is in no queue. */
void positions_rank(struct sched *sched, const struct pending *pending, const struct job *job);
void positions_del(struct sched *sched, struct pending *pending, uint32_t job_id);
/* The class that it is in with that rank; NULL: none. */
struct class *position_class(const struct sched *sched, const struct pending *pending,
                             struct order order);
/* The place for a partition, by its number: its own, if no other. */
struct order position_in_partition(const struct sched *sched, const struct pending *pending,
                                   uint32_t job_id, uint32_t partition_queue);
/* Where it is booked; ORDER_LAST: not. */
struct order position_booked(const struct sched *sched, const struct pending *pending,
                             uint32_t job_id);
/* It is booked (1), or not any more (-1): all families that it is in know that. */
void positions_booked(struct sched *sched, const struct pending *pending, uint32_t job_id, int by);
/* Which of its places that is: 1 the first. */
uint8_t position_number(const struct sched *sched, const struct pending *pending,
                        struct order order);
/* Is a start at that place to be compared with what is booked for another? It was. */
bool position_is_due(const struct sched *sched, const struct pending *pending, struct order order);
void position_compared(struct sched *sched, const struct pending *pending, struct order order,
                       uint64_t cost);
/* It may have to be booked for one of the places behind its first. */
void positions_need_booking(struct sched *sched, const struct pending *pending, uint32_t job_id);
void positions_done(struct sched *sched);

/* Of an array with records that wait for its %N, or with planned tasks. */
struct throttle {
    struct job_list parked;
    uint32_t planned;
};
/* `by` more or fewer of the array's tasks are planned. */
void throttle_plan(struct sched *sched, uint32_t array_id, int by);
/* Records that wait for others of the array may go, as many as it has room for. */
void throttle_release(struct sched *sched, uint32_t array_id);

/* ---- pending.c ---- */

enum { PENDING_PER_PAGE = 1024 };
struct pending_page {
    uint32_t used;                         /* of pending jobs that have a class */
    uint64_t there[PENDING_PER_PAGE / 64]; /* which: most that are looked for have none */
    struct pending pendings[PENDING_PER_PAGE];
};
struct pending_index {
    struct pending_page **pages; /* of ids first * PENDING_PER_PAGE and up; some are NULL */
    size_t first, count, cap;
};
struct pending *pending_new(struct sched *sched, uint32_t job_id);
void pending_free(struct sched *sched, uint32_t job_id);
struct throttle *throttle_of(struct sched *sched, uint32_t array_id);
void throttle_tidy(struct sched *sched, uint32_t array_id);
uint32_t array_left(const struct sched *sched, const struct array *array); /* more may be planned */
/* It will be looked at soon: its memory, and that of the job, is asked for. */
void pending_prefetch(const struct sched *sched, uint32_t job_id);
/* It may be taken from its queue soon; job_list_prefetch(). */
void pending_prefetch_list(const struct sched *sched, uint32_t job_id, unsigned time);
void pendings_done(struct sched *sched);
bool pendings_done_some(struct sched *sched, unsigned *budget); /* true: all of them */

/* ---- families.c ---- */

/* The partitions that would take the job; false when there is none. */
bool job_mask(const struct sched *sched, const struct job *job, struct mask *mask);
struct family *family_get(struct sched *sched, const struct job *job, const struct mask *mask);
void family_drop(struct sched *sched, struct family *family);
/* The first job of some class changed, `order` came or went. */
void family_rekey(struct sched *sched, struct family *family, struct order order);
void class_link(struct family *family, struct class *class);
void class_unlink(struct family *family, struct class *class);
void class_pull_up(struct class *class, struct order was); /* its head was that */

/* ---- classes.c: members ---- */

/* The class of jobs like it, with those partitions; made if there is none. */
struct class *class_get(struct sched *sched, const struct job *job, const struct mask *mask);
/* Its last member has gone. */
void class_drop(struct sched *sched, struct class *class);

/* ---- pending_place.c ---- */

/* Could any of it be planned now? */
enum pending_place pending_place_of(const struct sched *sched, const struct job *job);
/* Puts the job where it belongs: into a class, parked, or out. */
void pending_refresh(struct sched *sched, const struct job *job);
/* Is it in the class, and the limit queue, that it belongs to? If not it must be put there at once. */
bool pending_is_right(struct sched *sched, const struct job *job);
void pending_remove(struct sched *sched, uint32_t job_id);
/* Only what is planned of it changed. */
void pending_settle(struct sched *sched, const struct job *job);
/* The first job of the family whose class has no longer limit. */
struct order family_first(const struct family *family, int64_t limit_us, struct class **class);
void family_mark_ready(struct sched *sched, struct family *family, int64_t end_by_us);
void family_mark_blocked(struct sched *sched, struct family *family, int64_t end_by_us,
                         uint32_t lacking, struct order tried);
/* There is a job at this place that was not there. */
void family_joined(struct sched *sched, const struct family *family, struct order order);
/* The job at this place was tried in in vain: it may have to be booked. */
void family_needs_booking(struct sched *sched, const struct family *family, struct order order);
void families_mark_ready(struct sched *sched);
/* Those of heterogeneous jobs, when something happened that may let one start. */
void families_mark_het_ready(struct sched *sched);
/* Is it ready for jobs of that limit? */
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
/* Jobs that were let out are not tried here: others of their limit queues follow. */
void family_tried(struct sched *sched, struct family *family);
/* Its bins may be looked at again. */
void family_open_again(struct family *family);
void classes_done(struct sched *sched);
bool classes_done_some(struct sched *sched, unsigned *budget); /* true: all of them */
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
    int64_t log;      /* mean of the logarithms, in 1/16 of predict_log() */
    int64_t ran_s;    /* in all, */
    int64_t limit_s;  /* of so much that they asked for; both weighted alike */
    uint32_t miss[2]; /* by which these two were wrong, in 1/256 of a doubling */
};
struct predict {
    enum order_by by;
    bool preempts;            /* by size */
    uint32_t patience;        /* percent; overtake.c (2) */
    uint32_t late;            /* of a thousand jobs that may be late; overtake.c (3) */
    int64_t bound_s;          /* and nobody else waits longer than this */
    struct map young, old;    /* hash of what makes jobs alike → struct seen; see predict.c (2) */
    uint64_t learned, reread; /* jobs; how many when all places were worked out anew */
    struct map overtakes;     /* hash of a partition's name → struct overtake */
    struct map entries;       /* job id → struct overtake_entry */
};

void predict_init(struct sched *sched);
void predict_read_config(struct sched *sched);
void predict_done(struct sched *sched);
/* Something happened to a job. */
void predict_hear(struct sched *sched, const struct event *event);
/* How long it is expected to run, at most its limit; what it ran before it was preempted too. */
int64_t predict_run_s(const struct sched *sched, const struct job *job);
/* How long one like it usually runs: few that run very long do not count for more than others. */
int64_t predict_usual_s(const struct sched *sched, const struct job *job);
/* Its place in the order of the partition's tier, with its fair share or not: what is smaller goes first. */
uint64_t predict_place(const struct sched *sched, const struct job *job,
                       const struct partition *partition, bool own);
/* Binary logarithm in 1/256, straight between powers of two. */
int64_t predict_log(int64_t value);

/* ---- overtake.c: how long a job may be overtaken ---- */

enum overtake_lot { OVERTAKE_DUE, OVERTAKE_USUAL, OVERTAKE_LATE }; /* who goes first */
enum { OVERTAKE_SHIFT = 46 }; /* in a place; above it are the tiers */
void overtake_done(struct sched *sched);
/* The job is not what it was, or is new; `ran_us` more of its work is done. */
void overtake_hear(struct sched *sched, const struct job *job, int64_t ran_us);
void overtake_forget(struct sched *sched, uint32_t job_id);
enum overtake_lot overtake_lot(const struct sched *sched, const struct job *job, int64_t *since_s);
/* Logarithm of what is left of it: of its share of the partition, and more of its time. */
int64_t overtake_size(const struct sched *sched, const struct job *job);
int64_t overtake_ran_s(const struct sched *sched, uint32_t job_id);
/* Needs no promise: what is larger makes room for it, and it for what is smaller, until it is due. */
bool overtake_waits(const struct sched *sched, struct order order);
/* Those whose time has come go first; some in each slice. */
void overtake_look(struct sched *sched, unsigned *budget);
/* May a job take the place of a running one that is larger, or less urgent? */
bool overtake_goes_before(const struct sched *sched, const struct job *job,
                          const struct job *victim);
/* The largest is the cheapest. */
uint32_t overtake_worth(const struct sched *sched, const struct job *victim);

/* ---- partition_queue.c: the jobs of one partition in order ---- */

struct partition_queue {
    struct heap heap;                                /* families by their first job */
    bool needs_booking;                              /* its first jobs may have to be booked */
    struct order needs_booking_lo, needs_booking_hi; /* of these */
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
/* A job is there that was not; book_queue.c, as those below. */
void partition_queue_joined(struct sched *sched, uint32_t number, struct order order);
/* A job at this place may have to be booked. */
void partition_queue_needs_booking(struct sched *sched, uint32_t number, struct order order);
/* Doubts it only if a job at this place could be among those that must be booked. */
void partition_queue_needs_booking_at(struct sched *sched, uint32_t number, struct order order);
/* So many jobs behind the booked ones are looked at. */
enum { PARTITION_FRONT = 64 };
size_t partition_queue_front_most(const struct partition_queue *partition_queue);
typedef VEC(struct order) order_list;
/* Where it is in the list, or would be. */
size_t order_list_place(const struct order *list, size_t count, struct order order);
bool order_list_put(order_list *list, struct order order); /* false: it was there */

#endif
