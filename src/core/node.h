/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node.h - nodes, partitions and reservations as the cluster keeps them
 *
 * Read by others, written only by core_apply(). A node's number is its place in state_node_at();
 * numbers change only when EVENT_CONFIG says so, and sets of nodes (struct bitset) go by them.
 *
 * (1) used <= total for every amount, unless the configuration shrank a node under running jobs.
 * (2) A node's base state is UNKNOWN, DOWN, IDLE or FUTURE; ALLOCATED and MIXED follow from use.
 * (3) A node that left the configuration while jobs hold it stays, `removed`, until they release it.
 * (4) CPUs that are left to the system are in cpu_ids too, so nobody finds them free; they are not in
 *     cpus_used, nor among `cpus`.
 */
#ifndef CORE_NODE_H
#define CORE_NODE_H

#include "base/bitset.h"
#include "base/util.h"
#include "base/vec.h"
#include "proto/command.pb-c.h"
#include "proto/config.pb-c.h"
#include "proto/node.pb-c.h"

struct job;

enum { SOCKETS_MOST = 32, SOCKET_ANY = 255 };

struct node_gres {
    const char *name, *type;     /* type may be NULL; both live as long as the node's spec */
    uint64_t name_key, type_key; /* text_key() of them */
    uint64_t total, used;
    bool shared;         /* counted in shares; has no index */
    struct bitset index; /* devices in use; no words when they are only counted */
    struct bitset lent;  /* devices that are in use by shares */
    uint32_t base_at;    /* of shares: place + 1 of the devices they are of; 0: of nothing */
    uint32_t per;        /* shares of one device */
    uint32_t *shares;    /* in use, by device */
    struct bitset *near; /* CPUs near each device; NULL: nobody knows. gres_locality.c */
    uint8_t *socket;     /* that each is near, or SOCKET_ANY; NULL: nobody knows */
};

/* What was said of the reboot that is asked for; reboot.c. */
struct node_reboot {
    unsigned next; /* NodeAfterReboot */
    bool drained;
    int64_t issued_us;
};

struct node {
    uint32_t number;
    uint8_t state;  /* NodeState; (2) */
    uint32_t flags; /* NodeFlag */
    bool removed;   /* (3) */
    bool shrunk;    /* the configuration took away what jobs hold; (1) */
    bool touched;
    uint8_t condition;      /* what triggers saw of it last; triggers.c */
    bool named, configured; /* of config_nodes.c */
    uint32_t cpus, threads; /* CPUs jobs may use; threads per core, 1 at least */
    uint32_t sockets;       /* that they divide among, 1 at least */
    uint32_t cpu_span;      /* their ids are below this: with those that are left to the system */
    struct bitset kept;     /* these; no words where there are none. (4) */
    uint32_t cpus_used;     /* CPUs in use, each counted once */
    uint32_t jobs_whole;    /* jobs that have the node for themselves */
    uint32_t jobs_active;   /* jobs that have not lent their CPUs to others */
    uint64_t mem_mb, mem_used_mb;
    uint64_t tmp_mb;
    uint32_t weight;
    struct bitset cpu_ids; /* CPUs in use */
    uint8_t *cpu_shares;   /* jobs per CPU where partitions share CPUs; NULL until then */
    struct node_gres *gres;
    size_t gres_count;
    VEC(struct job *) jobs; /* that hold something here, by job id */
    const char *word;       /* its name as parts of jobs have it, or NULL; node_word() */
    uint32_t word_hash;     /* words_hash() of it */
    NodeSpec *spec;         /* configuration with scontrol's changes */
    NodeInventory *found;   /* NULL before the first registration */
    char *reason, *reason_user;
    uint32_t reason_uid;
    int64_t reason_us, last_busy_us;
    struct node_reboot reboot;
    int64_t resume_us; /* when it comes back by itself; 0: not */
    uint64_t spec_hash, found_hash;
    uint64_t built_hash; /* of its amounts and where its devices are */
    uint64_t conf_hash;  /* of the spec that the configuration gives it */
    uint64_t features_hash;
    uint64_t fit_hash; /* of all that says what fits there when it is empty */
    uint64_t hash;
};

/* Is the CPU left to the system? */
static inline bool node_keeps(const struct node *node, size_t cpu)
{
    return bitset_has(&node->kept, cpu);
}

/* Is any in cpu_ids? To know that of thousands without looking at their sets. */
static inline bool node_has_cpu_ids(const struct node *node)
{
    return node->cpus_used || node->kept.words;
}

/* Those of exactly that name and type, or NULL. */
struct node_gres *node_gres_at(const struct node *node, const char *name, const char *type);

/* What gres is shares of, or NULL. */
static inline const struct node_gres *gres_base(const struct node *node,
                                                const struct node_gres *gres)
{
    return gres->base_at ? &node->gres[gres->base_at - 1] : NULL;
}

/* What the agent found of the devices, or else what the configuration says of them. gres_locality.c */
const GresInventory *gres_inventory(const struct node *node, const struct node_gres *gres);

/* The most one job can have of it. */
static inline uint64_t gres_most(const struct node_gres *gres)
{
    return gres->base_at ? gres->per : gres->total;
}

/* May a job start there now (up, not draining, failing, reserved for nothing)? */
bool node_is_usable(const struct node *node);
bool node_has_feature(const struct node *node, const char *feature);
/* With ALLOCATED, MIXED, and the COMPLETING flag worked out. */
NodeState node_shown_state(const struct node *node, uint32_t *flags);

struct partition {
    PartitionSpec *spec;
    struct bitset nodes;
    unsigned total_nodes, total_cpus;
    unsigned max_share; /* jobs that may share a CPU; 1 when none */
    bool share_forced;  /* also jobs that did not ask for it */
    bool whole_nodes;   /* OverSubscribe=EXCLUSIVE */
    unsigned number;    /* in state_partition_at() */
    bool touched;
    uint64_t hash;
};

PartitionState partition_state(const struct partition *partition);
/* By AllowAccounts, DenyAccounts, AllowQOS and DenyQOS; NULL is none. */
bool partition_takes_account(const struct partition *partition, const char *account);
bool partition_takes_qos(const struct partition *partition, const char *qos);
unsigned partition_tier(const struct partition *partition);

/* What a reservation has of one node when it has not all of it. */
enum { RESV_GRES = 16 };
struct resv_part {
    uint32_t node; /* its number */
    uint32_t cpus;
    uint64_t gres[RESV_GRES]; /* as node->gres */
};
struct resv_licence {
    char *name;
    uint32_t count, used; /* used: by its own jobs */
};

struct reservation {
    ReservationSpec *spec; /* start_us and end_us are always there */
    struct bitset nodes;
    VEC(struct resv_part) parts; /* by node; none: all of each */
    VEC(struct resv_licence) licences;
    unsigned flags;  /* enum resv_flag, of the spec's words */
    bool active;     /* its window has begun */
    bool over;       /* and ended, but for jobs that may go on for a while */
    uint32_t jobs;   /* that run in it */
    int64_t idle_us; /* since when none does, while it is active */
    bool touched;
    uint64_t hash;
};

#endif
