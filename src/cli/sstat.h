/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sstat.h - what is known of a running step, and the columns of sstat
 */
#ifndef CLI_SSTAT_H
#define CLI_SSTAT_H

#include "cli/steps.h"

/* One task of the step, wherever it runs. */
struct task {
    const char *node;
    const StepTaskUsage *usage;
};

/* What is known of one step; `node` is set while a row is of one node only. */
struct stat {
    struct cli *cli;
    bool noconvert;
    uint32_t job;
    const StepHere *here;
    const StepLayout *layout; /* NULL: a batch script */
    VEC(struct task) tasks;
    VEC(const char *) nodes;
    VEC(const Usage *) totals; /* of each of the nodes; NULL: it did not say */
    const char *node;
};

struct stat_field {
    const char *name;
    int width; /* negative: to the left */
    void (*write)(const struct stat *stat, unsigned number, struct str *out);
    unsigned number;
};
enum { STAT_DEFAULT_FIELDS = 48 }; /* the first ones */
extern const struct stat_field stat_fields[];
extern const size_t stat_field_count;

#endif
