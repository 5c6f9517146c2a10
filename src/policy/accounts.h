/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accounts.h - accounts, associations and QOS: what a configuration says of them, and what they count
 *
 * An association is a user in an account (perhaps only in one partition), or an account itself. They form a tree below
 * the account root. Each of them and each QOS is a holder: it counts what jobs have now and what they used.
 *
 * Nothing here knows a job, a node or the state: `core` keeps the counters and asks whether a job may run, and whoever
 * else has a configuration can read its tree, check it, and work out shares.
 *
 * (1) Usage of a holder at time t is usage + rate * (t - usage_us): it grows without being touched.
 * (2) All is integers: shares and factors are fractions of FRACTION.
 */
#ifndef POLICY_ACCOUNTS_H
#define POLICY_ACCOUNTS_H

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "proto/config.pb-c.h"
#include "schema/sections.h"

enum {
    TRES_CPU,
    TRES_MEM, /* MB */
    TRES_NODE,
    TRES_BILLING,
    TRES_FIXED, /* more follow: gres/gpu, license/matlab, … */
    TRES_MOST = 16,
};

/* What the name of a TRES begins with decides which word a limit on it has. */
enum tres_kind {
    TRES_IS_CPU,
    TRES_IS_MEM,
    TRES_IS_NODE,
    TRES_IS_ENERGY,
    TRES_IS_GRES,
    TRES_IS_LICENSE,
    TRES_IS_BB,
    TRES_IS_BILLING,
    TRES_IS_OTHER,
    TRES_KINDS,
};

struct tres {
    const char *name;        /* "gres/gpu:mi300x" */
    const char *what, *type; /* "gpu", "mi300x" or NULL; of a licence its name */
    enum tres_kind kind;
};

#define NO_LIMIT UINT64_MAX
#define FRACTION (UINT64_C(1) << 32) /* the whole; (2) */

/* Limits that are one number. */
enum bound {
    GRP_JOBS,
    GRP_SUBMIT,
    GRP_ACCRUE, /* waiting jobs whose age counts */
    GRP_WALL,   /* seconds */
    MAX_JOBS,   /* of an association; of a QOS: per user */
    MAX_SUBMIT,
    MAX_JOBS_ACCT,
    MAX_SUBMIT_ACCT,
    MAX_ACCRUE,
    MAX_ACCRUE_ACCT,
    MAX_WALL, /* seconds */
    BOUNDS,
};
/* Limits that are numbers of TRES. */
enum tres_limit {
    GRP_TRES,
    GRP_TRES_MINS,
    GRP_TRES_RUN_MINS,
    MAX_TRES_JOB,
    MAX_TRES_NODE,
    MAX_TRES_MINS_JOB,
    MAX_TRES_USER,
    MAX_TRES_ACCT,
    MAX_TRES_RUN_MINS_USER,
    MAX_TRES_RUN_MINS_ACCT,
    MIN_TRES_JOB,
    TRES_BOUNDS,
};
struct tres_limits {
    uint64_t count[BOUNDS];
    uint64_t tres[TRES_BOUNDS][TRES_MOST];
    uint32_t has_tres[TRES_BOUNDS]; /* a bit for each that is limited */
};

/* Who counts jobs. */
struct holder {
    uint32_t number; /* index in the planner's tallies; may be another after a configuration */
    uint32_t jobs, submitted;
    uint32_t accruing; /* waiting jobs whose age counts */
    uint64_t used[TRES_MOST];
    uint64_t run_end[TRES_MOST]; /* sum of what is used times the second it ends by */
    bool keeps;                  /* the following: of associations and QOS, not of their parts */
    bool no_decay;
    uint64_t rate[TRES_MOST]; /* of usage: what is used times the usage factor in thousandths */
    uint64_t wall_rate;
    uint64_t usage[TRES_MOST]; /* sixteenths of TRES-seconds; (1) */
    uint64_t wall;             /* sixteenths of seconds */
    int64_t usage_us;
    uint64_t seed, hash; /* of its name; of its usage, for the digest */
};

struct assoc {
    struct holder holder;
    const char *account, *user, *partition; /* user and partition NULL: the account itself */
    const ProtobufCMessage *conf;           /* its section, of the state's configuration; or NULL */
    struct assoc *parent;                   /* NULL for root */
    uint32_t fairshare, priority, depth;
    struct tres_limits tres_limits; /* Max limits with those of the parents filled in */
    const struct assoc *share_of;   /* whose share it uses: its own, or ("parent") one above */
    uint64_t shares_below; /* of its children, and of those of accounts that use its share */
    uint64_t norm_shares;  /* of the whole tree */
    uint64_t share_used;   /* billing, as of when shares were worked out */
    uint64_t factor;       /* fair share, for users */
    const uint64_t *qos;   /* bits of those it may use; NULL: all */
    uint64_t *own_qos;     /* the same when it names them itself */
    uint32_t qos_words, own_words;
    const struct qos *default_qos;
    VEC(struct assoc *) children; /* in no order that means anything */
    struct assoc *next_of_user;   /* the same */
    bool ages;                    /* has limits on how many may age */
    uint8_t mark;                 /* while a configuration is taken; change.h */
    char names[];
};

enum qos_flag {
    QOS_DENY_ON_LIMIT = 1,
    QOS_ENFORCE_THRESHOLD = 2,
    QOS_NO_DECAY = 4,
    QOS_NO_RESERVE = 8,
    QOS_OVER_PART = 16,
    QOS_PART_MAX_NODES = 32,
    QOS_PART_MIN_NODES = 64,
    QOS_PART_TIME = 128,
    QOS_REQUIRES_RESV = 256,
    QOS_FACTOR_SAFE = 512,
    QOS_RELATIVE = 1024, /* its limits are parts of a hundred of what there is */
};

struct qos {
    struct holder holder;
    const char *name;
    const ConfQos
        *conf;      /* its section, of the state's configuration; NULL: it is there of itself */
    uint32_t index; /* its bit; its own while it is there */
    uint32_t priority;
    unsigned flags;
    uint32_t usage_factor; /* thousandths */
    uint32_t limit_factor; /* thousandths; 0 none */
    uint32_t min_priority; /* that a job needs to have resources kept for it; 0 none */
    uint64_t threshold;    /* of FRACTION; 0 none */
    char **preempts;       /* names of QOS whose jobs its jobs may preempt */
    size_t preempt_count;
    const char *preempt_mode;          /* of its own jobs; NULL: as for all */
    int64_t preempt_exempt_s, grace_s; /* exempt -1: as for all */
    struct tres_limits tres_limits;
    struct map *users, *accounts; /* uid, account → struct holder */
    struct arena *texts;
    bool ages;    /* has limits on how many may age */
    uint8_t mark; /* while a configuration is taken; change.h */
};

/* What AccountingStorageEnforce asks for. */
enum { ENFORCE_ASSOCS = 1, ENFORCE_LIMITS = 2, ENFORCE_QOS = 4, ENFORCE_SAFE = 8 };

/* What a partition has, and what a unit of it is billed. */
struct part_totals {
    uint64_t tres[TRES_MOST];
    uint64_t weights[TRES_MOST]; /* thousandths; of memory times 1024 */
    uint32_t has_weights;
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
/* Do they say how many jobs may age? */
bool tres_limits_age(const struct tres_limits *tres_limits);
/* Does a section name TRES other than those that always exist? */
bool tres_are_named(struct accounts *accounts, const ProtobufCMessage *from);
/* The hash of all texts outside sections that name TRES. */
uint64_t tres_texts_hash(const Config *config);

/* ---- accounts.c ---- */

struct accounts *accounts_new(const Config *config);
void accounts_free(struct accounts *accounts);
/* Writes account|user|partition. */
void assoc_key(struct str *out, const char *account, const char *user, const char *partition);
struct assoc *assoc_get(const struct accounts *accounts, const char *account, const char *user,
                        const char *partition);

/* ---- settings.c: what a configuration says outside sections ---- */

void priority_read(struct accounts *accounts, const Config *config);
void accrue_read(struct accounts *accounts);

/* ---- accounts_change.c ---- */

void accounts_make(struct accounts *accounts, const Config *config);

/* ---- accounts_validate.c ---- */

/* May these accounts, users and QOS be? `was` are those there were, or NULL. */
int accounts_validate(const struct accounts *was, const Config *config,
                      const struct sections *sections, struct err *err);

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

/* ---- fairshare.c ---- */

/* 2^(-num/den) of FRACTION. */
uint64_t exp2_minus(uint64_t num, uint64_t den);
/* The factor of every user, from what all have used by then. */
void fairshare_work_out(struct accounts *accounts, const Config *config, int64_t time_us);

/* ---- usage.c ---- */

/* Sixteenths of TRES-seconds that a rate in thousandths gives over a time. */
uint64_t usage_over(uint64_t rate, int64_t us);
uint64_t holder_hash(const struct holder *holder);
/* Adds what came until then; false: nothing did. Of what keeps no usage nothing is added. */
bool usage_settle_until(struct holder *holder, size_t tres_count, int64_t time_us);
/* Usage as it would be after that, in sixteenths. */
uint64_t usage_at(const struct holder *holder, size_t tres, int64_t time_us);
uint64_t usage_wall_at(const struct holder *holder, int64_t time_us);
/* Usage until the last turn becomes this fraction of itself; what came since is not old yet. 0 forgets all. */
void usage_decay(struct holder *holder, size_t tres_count, int64_t time_us, uint64_t fraction);

#endif
