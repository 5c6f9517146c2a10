/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accounts.h - who may use how much: accounts, associations, QOS, and what they have in use
 *
 * An association is a user in an account (perhaps only in one partition), or an account itself.
 * They form a tree below the account root. Every running or waiting job is counted by its `holders`:
 * its association and all above it, its QOS, the QOS of its partition, and of each QOS the user's
 * and the account's part. Limits are compared with these counters, so a check costs the depth of
 * the tree and nothing else; no job is ever looked at.
 *
 * (1) Counters follow from the records of jobs and are rebuilt on restore. Usage is kept: it is in
 *     the snapshot and in the digest.
 * (2) Usage of a holder at time t is usage + rate * (t - usage_us): it grows without being touched.
 * (3) All is integers: shares and factors are fractions of FRACTION.
 */
#ifndef CORE_ACCOUNTS_H
#define CORE_ACCOUNTS_H

#include "base/vec.h"
#include "core/job.h"
#include "policy/accounts.h"
#include "policy/limits_why.h"

struct state;
struct partition;

/*
 * Jobs with the same owner, account, QOS and partitions: the same counters count them, so what they
 * are bound to is found once for all of them, and a new configuration looks at no job.
 */
struct billing_group {
    const struct assoc *assoc; /* of owner and account, or NULL */
    const struct qos *qos;     /* that has the name, or NULL */
    struct holder *qos_user,
        *qos_account; /* its parts for them; NULL: not asked for yet, or none */
};
static inline const struct assoc *job_assoc(const struct job *job)
{
    return job->billing_group ? job->billing_group->assoc : NULL;
}
static inline const struct qos *job_qos(const struct job *job)
{
    return job->billing_group ? job->billing_group->qos : NULL;
}

unsigned state_enforce(const struct state *state);

/* The TRES that are counted, in order; index is the one of all arrays above. */
const struct tres *state_tres(const struct state *state, size_t *count);
size_t state_assoc_count(const struct state *state);
const struct assoc *state_assoc_at(const struct state *state, size_t number); /* parents first */
size_t state_qos_count(const struct state *state);
const struct qos *state_qos_at(const struct state *state, size_t number);
const struct qos *state_qos(const struct state *state, const char *name);
/* partition may be NULL; the nearest there is, or NULL. */
const struct assoc *state_assoc(const struct state *state, const char *account, const char *user,
                                const char *partition);

/* ---- limits.c: may it run? ---- */

/* What a job takes, or would. */
struct charge {
    uint64_t tres[TRES_MOST];
    uint64_t node[TRES_MOST]; /* the most of it on one node */
};
/* What a waiting job asks for in one of its partitions, at least. */
void charge_asked(const struct state *state, const struct job *job, size_t partition,
                  struct charge *out);
/* The same when of "a or b" that licence is chosen; else neither is counted. */
#define LICENCE_OPEN UINT32_MAX
void charge_asked_with(const struct state *state, const struct job *job, size_t partition,
                       uint32_t licence, struct charge *out);
/* What a running job has. */
void charge_given(const struct state *state, const struct job *job, struct charge *out);
/* What is said here of one node of an allocation is added. */
void charge_add(const struct state *state, struct charge *charge, const char *gres,
                const char *type, uint64_t count);
void charge_add_node(const struct state *state, struct charge *charge, uint32_t cpus,
                     uint64_t mem_mb);
/* Licences (of "a or b" that one) and billing, when all nodes are added. */
void charge_close(const struct state *state, struct charge *charge, const struct shape *shape,
                  uint32_t licence, const struct partition *partition);

/*
 * What the planner has decided and core has not applied, by the number of the holder; less than nothing
 * for what is taken to have ended. Empty at first; free with tallies_done(), also when a configuration gave the holders other numbers.
 */
struct planned {
    uint32_t jobs;
    uint64_t tres[TRES_MOST];
    uint64_t secs[TRES_MOST]; /* times the time limit */
};
struct tallies {
    struct planned *items;
    size_t count;
};

enum { HOLDERS_MOST = 40 };
/* Who counts the job when it runs in that partition; returns how many. */
size_t limits_holders(const struct state *state, const struct job *job,
                      const struct partition *partition, const struct holder *out[HOLDERS_MOST]);
size_t state_holder_count(const struct state *state);
/* One more (sign 1) or one less such job of these holders is planned. */
void tallies_add(const struct state *state, struct tallies *tallies,
                 const struct holder *const *holders, size_t count, const struct charge *charge,
                 int64_t seconds, int sign);
/* How long the job may run, for limits of TRES times minutes. */
int64_t limits_seconds(const struct job *job);
void tallies_done(struct tallies *tallies);

/*
 * May a job with such a charge start now in that partition? `planned` may be NULL. Costs the depth
 * of the tree. Without ENFORCE_LIMITS nothing is in the way.
 */
bool limits_allow(const struct state *state, const struct job *job,
                  const struct partition *partition, const struct charge *charge,
                  const struct tallies *planned, struct limit_hit *hit);
/* The same with what it asks for, in any of its partitions; `hit` is the first one's. */
bool limits_allow_any(const struct state *state, const struct job *job,
                      const struct tallies *planned, struct limit_hit *hit);
/* Which limit keeps the age of a waiting job from counting; false when none does. */
bool state_accrue_limit(const struct state *state, const struct job *job, struct limit_hit *hit);
/*
 * When what was used so far has decayed below the limit, or is forgotten, if nothing more is used until then; INT64_MAX:
 * it does not, or the limit is about something else.
 */
int64_t limit_decays_us(const struct state *state, const struct limit_hit *hit);

/* ---- priority.c: the order ---- */

enum prio_factor {
    PRIO_AGE,
    PRIO_ASSOC,
    PRIO_FAIRSHARE,
    PRIO_JOB_SIZE,
    PRIO_PARTITION,
    PRIO_QOS,
    PRIO_SITE,
    PRIO_FACTORS,
};
struct priority {
    uint32_t total;                /* what squeue shows */
    uint64_t factor[PRIO_FACTORS]; /* of FRACTION, before the weight */
    int64_t part[PRIO_FACTORS];    /* after it */
    uint64_t tres_factor[TRES_MOST];
    int64_t tres_part[TRES_MOST];
    int64_t tres_total, nice;
    bool direct; /* set by hand: the total is all there is */
};
/* Since when its age counts; 0: it does not yet. */
int64_t job_accrues_us(const struct state *state, const struct job *job);
bool priority_is_basic(const struct state *state);
void job_priority_of(const struct state *state, const struct job *job, struct priority *out);
/* What it would be if the job were in this partition only; job_priority_of() has its best one. */
void job_priority_in(const struct state *state, const struct job *job,
                     const struct partition *partition, struct priority *out);
uint32_t job_priority(const struct state *state, const struct job *job);
/*
 * What the planner sorts by: greater goes first. Constant while the job waits, because all jobs age
 * alike, but for jobs that have reached PriorityMaxAge, that have a priority set by hand, or whose
 * association's fair share changed: those are others after each state_priority_turn().
 */
uint64_t job_order_key(const struct state *state, const struct job *job);
/* The same in one partition (NULL: the best); `own`: without its fair share, the order among jobs of one association. */
uint64_t job_order_key_in(const struct state *state, const struct job *job,
                          const struct partition *partition, bool own);
/* Grows when keys may have become others. */
uint64_t state_priority_turn(const struct state *state);
/* Usage in TRES-seconds as of the state's time. */
uint64_t holder_usage(const struct state *state, const struct holder *holder, size_t tres);

#endif
