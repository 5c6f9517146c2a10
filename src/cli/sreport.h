/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sreport.h - what the files of `sreport` share
 *
 * A report is a list of rows (sreport_rows.c) that are printed in columns (sreport_print.c). A row of the table
 * in sreport.c says which rows, columns and words it has.
 */
#ifndef CLI_SREPORT_H
#define CLI_SREPORT_H

#include "base/vec.h"
#include "cli/cli.h"
#include "proto/acct.pb-c.h"
#include "proto/usage.pb-c.h"

enum report_time {
    TIME_SECONDS,
    TIME_MINUTES,
    TIME_HOURS,
    TIME_PERCENT,
    TIME_SECONDS_PERCENT,
    TIME_MINUTES_PERCENT,
    TIME_HOURS_PERCENT,
};

enum report_id {
    REPORT_ACCOUNT_BY_USER,
    REPORT_ACCOUNT_BY_QOS,
    REPORT_USER_BY_ACCOUNT,
    REPORT_USER_BY_WCKEY,
    REPORT_CLUSTER,
    REPORT_WCKEY_BY_USER,
    REPORT_SIZES_ACCOUNT,
    REPORT_SIZES_BOTH,
    REPORT_SIZES_WCKEY,
    REPORT_RESERVATION,
    REPORT_TOP,
};

/* One line; what a report does not have is 0 or NULL. Amounts are TRES-seconds. */
struct report_row {
    const char *cluster, *account, *login, *wckey, *qos, *tres;
    const char *name, *nodes, *flags, *associations; /* of a reservation */
    unsigned depth;                                  /* of an account in its tree */
    int64_t used, energy, total;                     /* total: what the cluster had */
    int64_t alloc, down, planned_down, idle, planned, over, reported;
    int64_t count; /* of the TRES that the cluster has */
    int64_t start_s, end_s;
    uint32_t id;
    int64_t *sizes; /* by group */
};

struct report_list {
    char **items;
    size_t count;
};

struct sreport {
    struct cli cli;
    struct client *client;
    enum report_time time;
    bool no_header, parsable, parsable2, all_clusters, quiet, by_name;
    const char *tres_text; /* NULL: cpu alone */
    struct report_list tres;
    struct report_list clusters;
    /* Of one report. */
    enum report_id id;
    int64_t start_s, end_s, now_s;
    struct report_list accounts, users, wckeys, partitions, jobs, gids, names;
    const char *nodes, *format, *grouping;
    bool tree, group, flat, as_parent, job_count;
    unsigned top;
    const ListTablesReply *tables;
    VEC(struct report_row) rows;
    VEC(int64_t) groups; /* lower bounds of sizes, the first is 0 */
    bool individual;     /* a column for each size */
    struct str out;
};

/* Asks, and fills `rows`. 0, or the exit code after a complaint. */
int report_fill(struct sreport *r);
/* Title, header and rows to standard output. 0, or the exit code after a complaint. */
int report_print(struct sreport *r);

bool report_list_has(const struct report_list *list, const char *name); /* an empty one has all */

#endif
