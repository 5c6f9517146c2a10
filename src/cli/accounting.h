/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accounting.h - what commands ask spurdbd
 */
#ifndef CLI_ACCOUNTING_H
#define CLI_ACCOUNTING_H

#include "base/vec.h"
#include "cli/cli.h"
#include "proto/dbd.pb-c.h"

struct client;

/*
 * Connects to spurdbd: where $SPUR_ACCOUNTING_ADDR says, or on this host, or where the controller says. NULL:
 * err says why; ERR_UNSUPPORTED when the cluster has accounting switched off.
 */
struct client *accounting_connect(struct cli *cli, struct err *err);

/* The words that Slurm's commands have for accounting that is off; other errors as they are. Returns 1. */
int accounting_error(const struct cli *cli, const struct err *err);

/* 12, 12_3, 12_[1-5,7], 12+1, each with .batch or .0 behind it; appended to the request. */
bool accounting_read_id(struct cli *cli, const char *text, ListHistoryRequest *request);

/*
 * Asks for a history and calls `each` for every run, in an arena that lives until the next piece. A note of
 * spurdbd goes to standard error. `cluster` (may be NULL) gets the name of the cluster that answers.
 */
typedef void accounting_each_fn(void *ctx, const AcctJob *job, int64_t now_us);
int accounting_list(struct cli *cli, const ListHistoryRequest *request, accounting_each_fn *each,
                    void *ctx, char **cluster, struct err *err);

/*
 * The last run of one job as the history has it, for commands that found no such job at the controller. In the
 * command's arena, with the state that it ended in. ERR_INVALID_JOB_ID when the history has none either.
 */
int accounting_find(struct cli *cli, const char *id, const AcctJob **out, struct err *err);

#endif
