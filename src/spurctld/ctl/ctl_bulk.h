/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_bulk.h - one request about many jobs
 *
 * `command` says what happens to each job: a cancel, update, requeue or suspend without `jobs`, from
 * the asker's arena. The ask is answered with one result per id, or for a filter with those that
 * were refused; or it fails as a whole when the log takes no more, and may then be asked again.
 */
#ifndef SPURCTLD_CTL_BULK_H
#define SPURCTLD_CTL_BULK_H

#include "spurctld/ctl/ctl_priv.h"

/* Ids as people write them, at most LIMIT_REQUEST_IDS; of the request, or of the arena. */
void ctl_bulk_ids(struct ctl *ctl, struct ctl_ask *ask, Command *command, char **ids, size_t count);

/* Every job that the filter matches and the asker may change. The filter is in the arena too. */
void ctl_bulk_filter(struct ctl *ctl, struct ctl_ask *ask, Command *command,
                     const ListJobsRequest *filter);

#endif
