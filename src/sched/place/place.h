/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.h - choosing hosts, CPUs, devices and licences for a job
 *
 * place() chooses hosts and how many tasks each gets; pick() chooses the CPUs and devices of one host. Both only
 * look: what was chosen is taken by a start in flight (inflight.c) or a booking (book.c).
 */
#ifndef SCHED_PLACE_PLACE_H
#define SCHED_PLACE_PLACE_H

#include "sched/queue/queue.h"

/* ---- place.c ---- */

/* A host that was chosen, and what the job gets there. */
struct chosen {
    uint32_t host;
    struct take take;
};
/* Where a job is to run. */
struct parts {
    VEC(struct chosen) list;
    const struct need *need;
    const struct reservation *resv; /* that it runs in; NULL: none */
    uint32_t licence;               /* which, where the job asked for one of several */
};
/*
 * Chooses hosts; true when the job fits. Otherwise *short_of is the number of hosts or tasks that are missing at
 * least.
 */
bool place(struct sched *sched, struct family *family, const struct job *job,
           const struct view *view, struct parts *parts, uint32_t *short_of);
/* The same at view->start_us, among the given hosts in the order in which they are. */
bool place_among(struct sched *sched, struct family *family, size_t partition,
                 const struct job *job, const struct view *view, const uint32_t *hosts,
                 size_t count, struct parts *parts);
/* How many tasks of the job one host has room for. */
uint32_t place_tasks_at(struct sched *sched, struct family *family, size_t partition,
                        const struct job *job, const struct view *view, uint32_t host);
bool family_may_use(struct sched *sched, const struct family *family, size_t partition);
/* The names of the hosts as a host list. */
void parts_names(const struct sched *sched, const struct parts *parts, struct str *out);

/* In the start of a search that is paused: not known yet, ask again in the next slice. */
#define LATER INT64_MIN

/* ---- pick.c, pick_cpus.c ---- */

/*
 * Fills in which CPUs and devices of its host the claim gets. Devices are the best linked ones, and among these
 * the ones that leave the others best linked; CPUs are near the devices.
 */
void pick(const struct host *host, const struct shape *shape, const struct need *need,
          const struct take *take, struct claim *claim);
/* How many of the tasks find CPUs with no more of them on a socket than the job allows. */
uint32_t pick_socket_tasks(const struct host *host, const struct shape *shape,
                           const struct need *need, uint32_t tasks);
/* Devices that nobody has or is about to get; no words where devices are only counted. */
void host_unused(const struct host *host, size_t gres, struct bitset *out);

/* ---- licences.c: licences now and later ---- */

/* A number of licences of a pool that are used for a while. */
struct licence_use {
    struct licence_use *next; /* of the same owner */
    uint32_t pool, count, job_id;
    struct order order; /* of a booking */
    int64_t start_us, end_us;
    uint32_t at; /* place in the pool */
    uint64_t
        resv; /* hash of the job's reservation, or of the one that keeps them (job_id 0); 0 none */
};
struct licence_pool {
    char *name;
    uint32_t total;
    bool lacking; /* a job waits for it, */
    bool limited; /* or would take it because a limit keeps it from another */
    VEC(struct licence_use *) uses;
};
void licences_read(struct sched *sched);
void licences_done(struct sched *sched);
/*
 * Is the licence at `at` of the job's list free now? If not, jobs behind limits are reviewed when it is given
 * back.
 */
bool licences_free(struct sched *sched, const struct job *job, uint32_t at);
/* Are the family's licences free for all of the view's time? *choice: which of several. */
bool licences_fit(struct sched *sched, const struct family *family, const struct view *view,
                  uint32_t *choice);
/* The first moment from view->start_us at which they are, for that long; INT64_MAX never. */
int64_t licences_from(struct sched *sched, const struct family *family, const struct view *view,
                      int64_t length_us);
struct licence_use *licences_claim(struct sched *sched, uint32_t job_id,
                                   const struct family *family, const struct parts *parts,
                                   int64_t end_us);
struct licence_use *licences_book(struct sched *sched, struct order order,
                                  const struct shape *shape, const struct parts *parts,
                                  int64_t start_us, int64_t end_us);
/* Reads again what reservations keep. */
void licences_read_reservations(struct sched *sched);
void licences_give(struct sched *sched, struct licence_use *uses); /* NULL is allowed */
/* Frees uses that were only tried: no job is told. */
void licences_forget(struct sched *sched, struct licence_use *uses);
/* The job runs, perhaps until another time than before. */
void licences_run(struct sched *sched, const struct job *job);
/* The job has given back a node; its licences are free if it holds nothing more. */
void licences_ended(struct sched *sched, uint32_t job_id);
/* The name of a licence that the shape lacks now; NULL: none. */
const char *licences_lacking(const struct sched *sched, const struct shape *shape);

/* ---- topo.c: switches and blocks ---- */

void topo_read(struct sched *sched);
void topo_done(struct sched *sched);
/* Until when a job waits for nodes of few switches (--switches); 0: it does not. */
int64_t topo_waits_until(const struct sched *sched, const struct job *job);

/* ---- place_scan.c ---- */

/* The hosts that match a feature expression. */
struct featured {
    char *text;
    struct bitset hosts;
};
void featured_done(struct sched *sched);

/* ---- the part of struct sched ---- */

struct placing {
    bool least_loaded;              /* CR_LLN */
    VEC(struct chosen) candidates;  /* of the job that is placed now */
    VEC(struct licence_pool) pools; /* as core has them */
    struct map licence_runs;        /* job id → struct licence_use */
    struct licence_use *licence_resvs;
    VEC(struct featured) featured;
    uint64_t featured_at; /* the generation of nodes + 1 */
};

#endif
