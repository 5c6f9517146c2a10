/* SPDX-License-Identifier: Apache-2.0 */
/*
 * params.h - what a path or a query says, read and checked
 */
#ifndef SPURRESTD_PARAMS_H
#define SPURRESTD_PARAMS_H

#include "base/err.h"
#include "proto/controller.pb-c.h"
#include "spurrestd/exchange.h"

/* Filters of a list of jobs; `limit` and `cursor` of the native API are 0 when they are not given. */
int params_jobs(struct exchange *x, ListJobsRequest *request, uint64_t *limit, uint64_t *cursor,
                struct err *err);

/* True when {job_id} is not one; the exchange is then answered. */
bool params_bad_job(struct exchange *x);

/*
 * update_time and flags of a list. True: the exchange is answered, because a flag is not known; or *unchanged is set,
 * because nothing of `what` changed since, and the list is empty then.
 */
bool params_since(struct exchange *x, unsigned what, bool *unchanged);
/* flags=ALL: hidden partitions too. */
bool params_all(const struct exchange *x);

/* "a,b" as words in the arena. */
char **params_list(struct exchange *x, const char *text, size_t *count);

#endif
