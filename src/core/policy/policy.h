/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy.h - accounts, limits, usage, fair share and priority
 *
 * A configuration says which accounts, associations and QOS there are and which limits they have (struct accounts).
 * Each of them is a holder: it counts what jobs have now and what they used. Jobs that the same holders count are kept
 * in billing groups, so that a change of the configuration adds up groups and looks at no job.
 */
#ifndef CORE_POLICY_POLICY_H
#define CORE_POLICY_POLICY_H

#include "core/accounts.h"
#include "core/event.h"
#include "core/shape/shapes.h"

/* Sums over running jobs: what they have, that times the second at which each ends, and what grows with time. */
struct billing_group_sum {
    uint64_t used, run_end;
    uint64_t rate; /* of jobs that are not suspended, without the usage factor */
};

/* A kind of GRES or a licence, whether the present configuration counts it or not. */
struct billing_group_thing {
    const char *name, *type;
    bool is_licence;
    struct billing_group_sum sum;
};

/* The running jobs of a billing group in one partition, added up. */
struct billing_group_run {
    const char *partition;
    uint32_t jobs, going; /* all; those that are not suspended */
    struct billing_group_sum fixed[TRES_FIXED];
    VEC(struct billing_group_thing) things;
};

/* A waiting job that does not age yet, and all such jobs of a billing group; accrue.c. */
struct ageless {
    int64_t eligible_us;
    uint32_t id;
};

struct ageless_heap {
    struct ageless *items;
    size_t len, cap;
};

struct billing_group_record {
    struct interned head;
    struct billing_group billing_group;
    uint32_t at;   /* among all billing groups */
    uint32_t open; /* jobs that have not ended; every task of an array counts */
    uint32_t submitted, accruing;
    VEC(struct billing_group_run) runs;
    struct ageless_heap ageless;
    struct accrue_line *line; /* that it is part of, or NULL */
    unsigned moves;           /* HOLDS_* that differ, while a configuration is applied */
    const struct owner *owner;
    struct billing_group_record *next_of_user, *prev_of_user; /* of the same user, in no order */
    const char *account, *qos;
    uint32_t key_len;
    char key[]; /* owner, account and QOS, then its partitions */
};

/* Holders of a job: its association with those above it; its QOS; the QOS of its partition. */
enum { HOLDS_ASSOC = 1, HOLDS_QOS = 2, HOLDS_PART = 4, HOLDS_ALL = 7 };

/* ---- accrue.c ---- */

void accrue_clear(struct accounts *accounts);
void accrue_leave(struct accounts *accounts, struct billing_group_record *group);
void accrue_join(struct state *state,
                 struct billing_group_record *group); /* where its holders are */
/* The job ages from now on, if limits allow it; otherwise it joins the line. */
void accrue_begin(struct state *state, struct job *job);
void accrue_stop(struct state *state, struct job *job);
/* Puts the job in line if it does not age. */
void accrue_wait(struct state *state, const struct job *job);
/* For accrue_turn.c: the first job of a line; how many more may age; the line of a job; it ages from then on. */
const struct ageless *accrue_head(const struct state *state, const struct accrue_line *line);
uint64_t accrue_room(const struct state *state, const struct job *job, struct limit_hit *hit);
const struct accrue_line *accrue_line_of(const struct job *job);
void accrue_set(struct state *state, struct job *job, int64_t us);
void ageless_push(struct ageless_heap *to, struct ageless one);
void ageless_pop(struct ageless_heap *from);

/* ---- accounts.c ---- */

/* Notes partitions and their QOS. Call it before jobs are counted. */
void accounts_see_partitions(struct state *state);
/* Adds the hashes of new holders to the digest. */
void accounts_hash_all(struct state *state);
/* For a restore: makes empty accounts of the configuration that was just read. */
void accounts_replace(struct state *state);
/* The holder of an association, or of a QOS if that is not NULL. */
struct holder *accounts_holder(const struct state *state, const char *account, const char *user,
                               const char *partition, const char *qos, struct assoc **assoc);
/* The QOS of a partition; NULL: none. */
const struct qos *partition_qos(const struct state *state, const struct partition *partition);

/* ---- accounts_check.c ---- */

/* Are the counters equal to the sums over job records? */
int accounts_check(const struct state *state, uint64_t *digest, struct err *err);

/* ---- accounts_change.c ---- */

/*
 * The state has a new configuration, and perhaps other partitions: what differs is changed in its place,
 * usage is kept, and jobs that belong to others than before are counted there. Sections of `old` that
 * are the same belong to the new one already.
 */
unsigned accounts_rebuild(struct state *state, const Config *old, const struct sections *sections);
/* Partitions changed, and with them perhaps the holders of jobs. Both return enum changed. */
unsigned accounts_follow(struct state *state);

/* ---- charge.c ---- */

/* The user and the account of the job within the QOS; those of its own QOS are at hand. */
struct holder *job_qos_user(const struct state *state, const struct job *job,
                            const struct qos *qos);
struct holder *job_qos_account(const struct state *state, const struct job *job,
                               const struct qos *qos);
bool job_is_counted_running(const struct job *job);
bool tres_is_gres(const struct tres *tres, const char *name, const char *type);
bool tres_is_licence(const struct tres *tres, const char *name);
/* These holders count all jobs of the group (1), or stop counting them (-1). */
void limits_count_group(struct state *state, const struct billing_group_record *group,
                        unsigned holds, uint64_t by);
/* Counts what runs of the group for TRES (bits) that were not counted before. */
void limits_count_tres(struct state *state, const struct billing_group_record *group,
                       unsigned holds, uint32_t tres);
void limits_count(struct state *state, const struct job *job, int sign, uint64_t weight);
/* Takes back what was charged for the last `us` microseconds: the job had ended before. */
void limits_refund(struct state *state, const struct job *job, int64_t us);
/* Works out what the job is billed, by the present weights. Call it between counting the job out and in. */
void charge_bill(const struct state *state, const struct job *job);
uint64_t holder_run_secs(const struct state *state, const struct holder *holder, size_t tres);

/* ---- billing_group.c ---- */

struct span billing_group_key(const struct interned *value);
struct billing_group_record *billing_group_record(const struct billing_group *group);
const char *billing_group_partition(const struct billing_group_record *group); /* the first one */
/* Finds the association and QOS of the job. Call it between counting the job out and in. */
void job_bind(struct state *state, struct job *job);
void billing_group_drop(struct state *state,
                        const struct billing_group *group); /* NULL is nothing */
/* One more (1) or one less (-1) such job runs. */
void billing_group_run_add(struct state *state, const struct job *job, uint64_t by);
/* What the running jobs have of the TRES that are counted. */
void billing_group_run_sums(const struct accounts *accounts, const struct billing_group_run *run,
                            struct billing_group_sum out[TRES_MOST]);
void billing_group_bind(const struct state *state, struct billing_group_record *group,
                        unsigned holds);
/* Do they hold any of these TRES? */
bool billing_group_run_has(const struct accounts *accounts, const struct billing_group_run *run,
                           uint32_t tres);
/* Does a job that has not ended ask for the partition? */
bool billing_groups_use(const struct state *state, const char *partition);

/* ---- limits.c ---- */

/* The QOS whose limits are checked first, and the other; both may be NULL. */
void limits_qos_order(const struct state *state, const struct job *job,
                      const struct partition *partition, const struct qos *out[2]);
/* DenyOnLimit: could a job like this ever start? */
bool limits_ever(const struct state *state, const struct job *job,
                 const struct partition *partition, struct limit_hit *out);
/* May `count` more jobs like this be in the queue? */
bool limits_submit(const struct state *state, const struct job *job,
                   const struct partition *partition, uint64_t count, struct limit_hit *hit);

/* ---- usage.c ---- */

void usage_settle(struct state *state, struct holder *holder);
uint64_t holder_wall_s(const struct state *state, const struct holder *holder);
void holder_rehash(struct state *state, struct holder *holder);
int64_t usage_next_due(const struct state *state);
/* Decays usage and works out shares if that is due; false: it was not. */
bool usage_due(struct state *state);

void fairshare_update(struct state *state);

/* ---- priority.c ---- */

/* How much of the TRES the partition has, or the cluster (NULL). */
uint64_t total_of(const struct state *state, const struct partition *partition, size_t tres);
uint64_t billing_of(const struct state *state, const struct partition *partition,
                    const uint64_t *tres);
bool partition_has_weights(const struct state *state, const struct partition *partition);
uint64_t partition_billing(const struct state *state, const struct partition *partition);

#endif
