/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preempt.h - running jobs that make room for others
 *
 * A preempt search finds the running jobs that must go so that a job (the preemptor) can start. These are its
 * victims. A preempt hold keeps the room that they leave until the last of them is gone; then start_held.c
 * starts the preemptor before all other jobs.
 */
#ifndef SCHED_PREEMPT_PREEMPT_H
#define SCHED_PREEMPT_PREEMPT_H

#include "sched/book/book.h"

/* A preemptor that did not start although its victims were gone is left alone for this long. */
#define PREEMPT_RETRY_US (60 * US_PER_S)

struct preemptible;
/* A family and QOS for which a search in a partition found nothing in this pass. */
struct preempt_failure {
    const struct family *family;
    uint64_t key; /* of the family: another one may be at this address */
    const struct qos *qos;
    uint32_t partition_queue;
};
/* A preemptor that is left alone until then. */
struct preempt_retry {
    uint32_t job_id;
    int64_t until_us;
};
typedef VEC(uint32_t) id_list;

/* ---- preempt.c ---- */

void preempts_read(struct sched *sched); /* the configuration */
void preempts_done(struct sched *sched);
void preempt_started(struct sched *sched, const struct job *job);
void preempt_ended(struct sched *sched, uint32_t job_id);
void preempt_refused(struct sched *sched, uint32_t job_id);
void preempts_renew(struct sched *sched); /* accounts or partitions changed */
void preempt_again(struct sched *sched, const struct job *job);
bool preempt_plan(struct sched *sched, unsigned *budget); /* true: it must go on */
/* Who would have to go for jobs that nobody submitted, in the first partition where that helps: *partition. */
bool preempt_test(struct sched *sched, const struct job *const *jobs, uint32_t count,
                  struct parts *parts, id_list *victims, const char **partition);

/* ---- preempt_hold.c: room that is kept for a preemptor until its victims are gone ---- */

struct victim_id {
    uint32_t id, attempt;
};
/* What the job, or a component of it, gets of one host. */
struct seat {
    uint32_t host, component;
    struct take take;
};
struct preempt_hold {
    uint32_t job_id, components;
    size_t count, named; /* victims; the named ones are told to go, the others end anyway */
    size_t told;         /* of the named; some are told at a time */
    size_t gone;         /* the first of all victims that may not be gone */
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
/* When all victims are gone at the latest, as far as is known; and where the component is to run. */
int64_t preempt_hold_start_us(const struct sched *sched, const struct preempt_hold *hold);
void preempt_hold_names(const struct sched *sched, const struct preempt_hold *hold,
                        uint32_t component, struct str *out);
/* Does a preemptor wait for that job to go? */
bool preempt_hold_waits_for(const struct sched *sched, uint32_t victim);
void preempt_holds_done(struct sched *sched);
/* What the job's hold keeps of limits stops counting (-1), or counts again (1). */
void preempt_hold_lift(struct sched *sched, const struct job *job, int by);
/* A start of the job is planned: jobs that were suspended for it may run again. */
void preempt_hold_returns(struct sched *sched, const struct job *job);
/* Tells the next victims to go. */
void preempt_holds_tell(struct sched *sched, unsigned *budget);
/* It holds nothing any more, or only lends its CPUs. */
bool preempt_victim_is_gone(const struct sched *sched, const struct victim_id *victim);
/*
 * Where the components of the job fit now, on the seats that are held, over what is booked behind the order;
 * NULL: they do not fit. The caller frees it.
 */
struct booked *preempt_hold_parts_now(struct sched *sched, const struct preempt_hold *hold,
                                      struct order over);

/* ---- preempt_search.c, preempt_cost.c: which jobs must go; the search goes on over several slices ---- */

/* What preempting a job costs; the parts are compared in this order. */
struct price {
    uint32_t worth, priority;
    int64_t start_us;
    uint32_t id;
};
/* What it costs to make room on a host. */
struct host_cost {
    uint32_t host, tasks, jobs;
    struct price dear; /* of the dearest of its victims */
};
/* A job that may have to go, or goes anyway. */
struct victim {
    uint32_t id, attempt;
    uint32_t worth, priority;
    int64_t start_us;
    uint64_t sides; /* a bit for each group of preemptors that may preempt it */
    uint8_t
        out;    /* what it leaves: HOST_JOB_LENDS, HOST_JOB_GONE; HOST_JOB_RETURNS: takes it back */
    bool going; /* anyway */
    bool lent;  /* is suspended already, and must stay so */
    bool stays; /* it need not go */
};
struct preempt_search {
    uint32_t job_id;          /* of the preemptor; 0: none */
    uint32_t partition_queue; /* the number of the partition, for components that name it */
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
    VEC(uint32_t)
    by_cost;          /* victims that do not go anyway, places in the list, the cheapest first */
    struct map by_id; /* job → place + 1 in the list; with all components */
    VEC(struct seat) seats;
    VEC(uint32_t) order; /* of components, as they were placed */
};
void preempt_search_begin(struct sched *sched, uint32_t job_id, uint32_t partition_queue);
void preempt_search_end(struct sched *sched);
void preempt_search_done(struct sched *sched);
/* May some job be preempted for it, with all its components, in that partition? */
bool preempt_search_suits(struct sched *sched, const struct job *job, uint32_t partition_queue,
                          bool (*has_preemptible)(const struct sched *sched, const struct job *job,
                                                  const struct partition *partition));
enum preempt_search_result { PREEMPT_SEARCH_GOES_ON, PREEMPT_SEARCH_FAILED, PREEMPT_SEARCH_NAMED };
enum preempt_search_result preempt_search_continue(struct sched *sched, unsigned *budget);
/*
 * Who would have to go for a job of these components that nobody submitted, and where they would run. Changes
 * nothing.
 */
bool preempt_search_test(struct sched *sched, const struct job *const *jobs, uint32_t count,
                         uint32_t partition_queue, struct parts *parts, id_list *victims);

/* ---- the part of struct sched ---- */

struct preemption {
    bool on;                          /* there may be victims */
    VEC(struct preemptible *) groups; /* running jobs that may be preempted */
    struct map group_of;              /* job id → struct preemptible */
    VEC(struct preempt_hold) holds;
    struct map held_victims; /* ids of victims that preemptors wait for → how many do */
    struct preempt_search search;
    VEC(struct preempt_failure) failed;
    VEC(struct preempt_retry) retries;
    unsigned searches_left; /* before other jobs have their turn */
    bool pass_over;         /* all jobs were tried */
    VEC(CmdPreempt *) commands;
};

#endif
