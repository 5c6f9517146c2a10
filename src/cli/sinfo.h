/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sinfo.h - the parts of sinfo: nodes that look alike in the columns asked for share a line
 */
#ifndef CLI_SINFO_H
#define CLI_SINFO_H

#include "base/hostlist.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "proto/controller.pb-c.h"
#include "schema/columns.h"

struct sinfo_range {
    uint64_t min, max;
};

/* One line: nodes of one partition, or of several when no column tells partitions apart. */
struct sinfo_group {
    const Partition *partition;
    size_t order; /* of the partition */
    const Node *first;
    VEC(const Node *) nodes;
    uint32_t alloc, idle, other; /* nodes */
    uint64_t cpus_alloc, cpus_idle, cpus_other;
    uint64_t alloc_mem_mb;
    struct sinfo_range cpus, sockets, cores, threads, memory, disk, weight, load, free_mem;
    bool any_load, any_free;
};

typedef VEC(struct sinfo_group) sinfo_groups;

/* One word of --states. A node is shown when it fits all words of one of the lists between commas. */
struct sinfo_state {
    uint32_t base_states; /* bit by NodeState; with flags: any of them */
    uint32_t flags;
    bool drained, draining;
    bool negated; /* ~word */
    bool more;    /* & or + follows: the next word counts with it */
};
enum { SINFO_STATES_MAX = 64 };

struct sinfo_filter {
    const char *nodes;      /* a hostlist, or NULL */
    const char *partitions; /* a list, or NULL */
    struct sinfo_state states[SINFO_STATES_MAX];
    size_t state_count; /* 0: all */
    bool dead, responding, reasons, future;
};

/* "idle,down&drain,~mixed". ERR_INVALID with the word that is not a state. */
int sinfo_read_states(const char *text, struct sinfo_filter *filter, struct err *err);

/*
 * Groups nodes by the columns. `by_node` makes a line for each node and partition; `exact` also
 * tells sizes apart. The groups borrow the nodes and partitions.
 */
int sinfo_group(const ListPartitionsReply *partitions, const ListNodesReply *nodes,
                const struct columns *columns, const struct sinfo_filter *filter, bool by_node,
                bool exact, sinfo_groups *out, struct err *err);
void sinfo_groups_done(sinfo_groups *groups);

/* By letters, "#P" being partitions in the order of the configuration. */
int sinfo_sort(sinfo_groups *groups, const char *spec, const struct field_ctx *ctx,
               struct err *err);

extern const struct field_table sinfo_fields; /* of struct sinfo_group */

/* What a column tells apart. */
enum sinfo_match {
    MATCH_PARTITION = 1,
    MATCH_AVAIL = 2,
    MATCH_TIME = 4,
    MATCH_PART_OTHER = 8, /* any other setting of a partition */
    MATCH_STATE = 16,
    MATCH_STATE_FULL = 32,
    MATCH_FEATURES = 64,
    MATCH_GRES = 128,
    MATCH_REASON = 256,
    MATCH_HOSTNAME = 512,
    MATCH_ADDR = 1024,
    MATCH_VERSION = 2048,
    MATCH_SIZE = 4096, /* only when exact */
    MATCH_GRES_USED = 8192,
    MATCH_COMMENT = 16384,
    MATCH_ALLOC_MEM = 32768,
    MATCH_RESERVATION = 65536,
};
unsigned sinfo_match_of(const struct field *field);

struct sinfo_args {
    const char *format, *names_format, *nodes, *partition, *sort, *states, *json;
    bool all, dead, exact, future, help, usage, version, hide, reasons, long_form, by_node,
        no_header, reservations, responding, summary, noconvert, help_letters, help_names,
        help_states, has_json, yaml, stale;
    uint32_t iterate_s, verbose;
};

struct sinfo {
    struct cli cli;
    struct option_set set;
    struct sinfo_args args;
    struct sinfo_filter filter;
    struct columns columns;
    const char *sort;
    int argc;
    char **argv;
};

void sinfo_init(struct sinfo *sinfo, int argc, char **argv);
void sinfo_done(struct sinfo *sinfo);
/* -1: go on; else the exit code, all that was to be said being said. */
int sinfo_read(struct sinfo *sinfo);
/* Groups, sorts and prints to standard output; the exit code. */
int sinfo_print(struct sinfo *sinfo, const ListPartitionsReply *partitions,
                const ListNodesReply *nodes, struct field_ctx ctx);

void sinfo_add_json(struct jsonw *json, const sinfo_groups *groups, const struct field_ctx *ctx);

#endif
