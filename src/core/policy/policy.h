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

/* What a partition has, and what a unit of it is billed. */
struct part_totals {
    uint64_t tres[TRES_MOST];
    uint64_t weights[TRES_MOST]; /* thousandths; of memory times 1024 */
    uint32_t has_weights;
};

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

/* Where a kind of message has its limits; tres_limits.c. */
struct tres_limit_fields {
    const ProtobufCMessageDescriptor *of;
    const ProtobufCFieldDescriptor **fields;
    struct tres_limit_fields *next;
};
typedef VEC(struct assoc *) assoc_list;

/* Everything that a configuration says about accounting; what the next one does not change is kept. */
struct accounts {
    struct arena arena; /* of the next two */
    struct tres tres[TRES_MOST];
    struct tres_limit_fields *tres_limit_fields;
    size_t tres_count;
    uint64_t tres_hash; /* of texts outside sections that name TRES */
    unsigned enforce;
    assoc_list assocs;                /* parents first; root is the first */
    assoc_list of_accounts, of_users; /* of each section of the configuration, in its order */
    struct map assoc_keys;            /* account|user|partition → struct assoc */
    struct map defaults;              /* user → struct assoc of the account that is the default */
    struct map by_user;               /* user → the first of the user's; assoc->next_of_user */
    uint32_t roots;                   /* sections of the user root */
    VEC(struct qos *) qos;
    VEC(struct qos *) of_qos; /* of each section */
    struct map qos_names;
    struct map
        part_qos; /* partition → its QOS, as jobs are counted; those that have none are not there */
    VEC(uint32_t) free_numbers; /* of holders, below `holders` */
    VEC(uint32_t) free_slots;   /* bits of QOS, below `qos_slots` */
    uint32_t holders, qos_slots;
    uint32_t users; /* associations of users */

    uint64_t share_rules;    /* how shares are worked out */
    uint64_t settings_hash;  /* of everything outside sections */
    uint32_t accrue_bounds;  /* holders with limits on how many jobs may age */
    bool accrue_limited;     /* some limit says how many may age */
    struct map accrue_lines; /* holders → struct accrue_line: jobs that do not age yet */

    bool basic;                            /* in order of submission */
    unsigned flags;                        /* PriorityFlags */
    uint32_t top_assoc, top_qos, top_part; /* highest priorities, for the factors */
    uint64_t weight_tres[TRES_MOST];
    bool has_weight_tres;
    VEC(struct part_totals) totals; /* of partitions, as of totals_generation */
    struct part_totals whole;       /* of the cluster */
    uint64_t totals_generation;
    uint64_t cluster_cpus, cluster_nodes;
};

enum {
    PRIO_ACCRUE_ALWAYS = 1,
    PRIO_DEPTH_OBLIVIOUS = 2,
    PRIO_NO_FAIR_TREE = 4,
    PRIO_MAX_TRES = 8,
    PRIO_MAX_TRES_GRES = 16,
    PRIO_RAW_ASSOC = 32,
    PRIO_RAW_PART = 64,
    PRIO_RAW_QOS = 128,
    PRIO_RAW_TRES = 256,
    PRIO_SIZE_BY_TIME = 512,
    PRIO_RUNNING = 1024,   /* running jobs have priorities too */
    PRIO_INCR_ONLY = 2048, /* the priority of a waiting job never falls */
};

enum { READ_SHARE = 1, READ_PRIORITY = 2, READ_BELOW = 4 }; /* what changed */

/* Holders of a job: its association with those above it; its QOS; the QOS of its partition. */
enum { HOLDS_ASSOC = 1, HOLDS_QOS = 2, HOLDS_PART = 4, HOLDS_ALL = 7 };
#define FAIRSHARE_PARENT 0x7fffffffU

static inline uint64_t mul_fraction(uint64_t value, uint64_t fraction)
{
    return (uint64_t)((unsigned __int128)value * fraction >> 32);
}

/* ---- tres_limits.c ---- */

/* Reads which TRES the configuration names. */
void tres_collect(struct accounts *accounts, const Config *config);
/* The index of a TRES by name; TRES_MOST when it is not counted. */
size_t tres_find(const struct accounts *accounts, const char *name, size_t len);
/* Reads "cpu=1.5,gres/gpu=3" in thousandths; *has: a bit for each TRES that is given. */
void tres_weights(const struct accounts *accounts, const char *text, uint64_t out[TRES_MOST],
                  uint32_t *has);
void tres_limits_none(struct tres_limits *tres_limits);
void tres_limits_read(struct accounts *accounts, const ProtobufCMessage *from,
                      struct tres_limits *out);
uint64_t thousandths(const char *text, uint64_t otherwise);
/* Does a section name TRES other than those that always exist? */
bool tres_are_named(struct accounts *accounts, const ProtobufCMessage *from);
/* The hash of all texts outside sections that name TRES. */
uint64_t tres_texts_hash(const Config *config);

/* ---- accrue.c ---- */

bool tres_limits_age(const struct tres_limits *tres_limits); /* do they say how many may age? */
void accrue_read(struct accounts *accounts);
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

/* ---- accounts_validate.c ---- */

int accounts_validate(const struct state *state, const Config *config,
                      const struct sections *sections, struct err *err);

/* ---- accounts.c ---- */

struct accounts *accounts_new(const Config *config);
void accounts_free(struct accounts *accounts);
/* Writes account|user|partition. */
void assoc_key(struct str *out, const char *account, const char *user, const char *partition);
struct assoc *assoc_get(const struct accounts *accounts, const char *account, const char *user,
                        const char *partition);
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
void accounts_make(struct accounts *accounts, const Config *config);

/* ---- accounts_parse.c ---- */

void holder_init(struct accounts *accounts, struct holder *holder, bool keeps);
void holder_done(struct accounts *accounts, const struct holder *holder);
struct assoc *assoc_make(struct accounts *accounts, const char *account, const char *user,
                         const char *partition, struct assoc *parent);
void assoc_free(struct accounts *accounts, struct assoc *assoc);
/* Reads everything but its counters from its section and its parent. */
unsigned assoc_read(struct accounts *accounts, struct assoc *assoc);
struct qos *qos_make(struct accounts *accounts, const char *name);
void qos_free(struct accounts *accounts, struct qos *qos);
void qos_read(struct accounts *accounts, struct qos *qos);
uint32_t qos_factor(const ConfQos *conf);
struct holder *qos_user(struct accounts *accounts, const struct qos *qos, uint32_t uid, bool make);
struct holder *qos_account(struct accounts *accounts, const struct qos *qos, const char *account,
                           bool make);

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
uint64_t holder_hash(const struct holder *holder);
uint64_t usage_over(uint64_t rate, int64_t us);
/* Usage as it would be after usage_settle(), in sixteenths. */
uint64_t usage_now(const struct state *state, const struct holder *holder, size_t tres);
uint64_t holder_wall_s(const struct state *state, const struct holder *holder);
void holder_rehash(struct state *state, struct holder *holder);
int64_t usage_next_due(const struct state *state);
/* Decays usage and works out shares if that is due; false: it was not. */
bool usage_due(struct state *state);

/* ---- fairshare.c ---- */

void fairshare_update(struct state *state);
/* 2^(-num/den) of FRACTION. */
uint64_t exp2_minus(uint64_t num, uint64_t den);

/* ---- priority.c ---- */

void priority_read(struct accounts *accounts, const Config *config);
/* How much of the TRES the partition has, or the cluster (NULL). */
uint64_t total_of(const struct state *state, const struct partition *partition, size_t tres);
uint64_t billing_of(const struct state *state, const struct partition *partition,
                    const uint64_t *tres);
bool partition_has_weights(const struct state *state, const struct partition *partition);
uint64_t partition_billing(const struct state *state, const struct partition *partition);

#endif
