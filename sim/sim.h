/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim.h - one seed, one run: the real controller over simulated time, disk, network and nodes
 *
 * Same seed, same options: same run, to the last byte of the trace.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* What may go wrong in a run; the seed chooses which of them do. */
enum sim_fault {
    FAULT_CRASH = 1 << 0,     /* the controller dies: between events, or in the middle of one */
    FAULT_DISK = 1 << 1,      /* its disk is full for a while, slow, or fails */
    FAULT_AGENT = 1 << 2,     /* agents die and are started again; their jobs go on */
    FAULT_REBOOT = 1 << 3,    /* machines lose power and come back with a new boot id */
    FAULT_PARTITION = 1 << 4, /* packets are swallowed, one way or both */
    FAULT_REPORTS = 1 << 5,   /* connections break, messages are repeated and late */
    FAULT_CLOCK = 1 << 6,     /* the controller's wall clock jumps */
    FAULT_CLIENT = 1 << 7,    /* requests and answers are lost: clients ask again */
    FAULT_NODE = 1 << 8,      /* prologs and launches fail, processes do not want to end */
    FAULT_STOP = 1 << 9,      /* controllers are stopped for a while and go on */
    FAULT_FLIP = 1 << 10,     /* memory of one of several controllers changes by itself */
    FAULT_ALL = (1 << 11) - 1,
};

/* Deliberate errors of the model, to show that the checks notice them. */
enum sim_mutation {
    MUTATE_NOTHING,
    MUTATE_LYING_DISK,     /* a crash loses what was said to be durable */
    MUTATE_NEW_REQUEST_ID, /* a client asks again with another request id */
    MUTATE_NO_TOMBSTONES,  /* a node forgets what it has run */
    MUTATE_DROP_REPORTS,   /* a node does not keep a report until it is acknowledged */
    MUTATE_EARLY_RELEASE,  /* a node says released while processes are left */
    MUTATE_WRONG_EXIT,     /* a node reports another exit status than the script's */
    MUTATE_SPLIT_STATE,    /* a replica that applies something else */
    MUTATE_STALE_READS,    /* several controllers: a list does not wait for the log's word */
    MUTATE_BLIND,          /* several controllers: nobody compares marks or rehashes records */
    MUTATE_COUNT
};
const char *sim_mutation_name(enum sim_mutation mutation);

/* What happened how often. */
enum sim_count {
    COUNT_STEPS,     /* calls into the controller */
    COUNT_COMMANDS,  /* applied */
    COUNT_CHECKS,    /* of the whole state */
    COUNT_SUBMITTED, /* different submissions */
    COUNT_ACKED,     /* of them acknowledged */
    COUNT_RETRIES,   /* requests sent again with the same id */
    COUNT_JOBS,      /* that reached their end, tasks one by one */
    COUNT_RUNS,      /* scripts started */
    COUNT_ATTEMPTS,  /* starts agreed on */
    COUNT_CRASHES,   /* of the controller */
    COUNT_MIDWAY,    /* of them between two outputs of one event */
    COUNT_INFLIGHT,  /* of them while a batch was being written */
    COUNT_SNAPSHOTS,
    COUNT_REFUSED,     /* batches that a full disk refused */
    COUNT_DISK_FULL,   /* periods */
    COUNT_DISK_BROKEN, /* write errors */
    COUNT_AGENTS,      /* agents killed */
    COUNT_REBOOTS,
    COUNT_PARTITIONS,
    COUNT_BREAKS,     /* connections */
    COUNT_REPEATED,   /* messages */
    COUNT_LATE,       /* of them after others */
    COUNT_REPORTS,    /* sent */
    COUNT_REPORTS_2,  /* of them again */
    COUNT_JUMPS,      /* of the clock */
    COUNT_LOST_NODES, /* attempts given up after agent_timeout */
    COUNT_REQUEUES,
    COUNT_SUSPENDS,
    COUNT_LISTS,
    COUNT_LEADERS, /* changes of them, with several controllers */
    COUNT_DEPOSED, /* leaders that others took for dead */
    COUNT_STOPS,
    COUNT_CUTS,    /* of a controller from etcd, or of etcd's majority */
    COUNT_FLIPS,   /* bits of a controller's memory */
    COUNT_RELOADS, /* controllers that read their state again */
    COUNT_STALE,   /* messages of earlier epochs that nodes refused */
    COUNT_COUNT
};

struct sim_options {
    uint64_t seed;
    FILE *trace;          /* may be NULL */
    uint64_t trace_from;  /* only from this step on */
    unsigned controllers; /* 1 or 3; 0: the seed chooses */
    unsigned only;        /* sim_fault bits; 0: the seed chooses */
    unsigned check_every; /* core_check() after so many commands; 0: the default */
    enum sim_mutation mutation;
};

struct sim_result {
    bool violated;
    char what[512]; /* what was violated */
    uint64_t step;  /* when */
    int64_t time_us;
    unsigned faults; /* that the seed chose */
    unsigned nodes, controllers;
    uint64_t digest; /* of the final state: the same for the same seed */
    uint64_t count[COUNT_COUNT];
};

void sim_run(const struct sim_options *options, struct sim_result *result);

#endif
