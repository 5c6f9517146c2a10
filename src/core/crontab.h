/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crontab.h - the jobs that users have run again and again (scrontab)
 *
 * One record for each user that has a crontab. A job of it that has ended is put back into the queue by the leader, with
 * its next time, because only the leader knows a calendar; a leader that comes later finds what is left to do.
 */
#ifndef CORE_CRONTAB_H
#define CORE_CRONTAB_H

#include <stdbool.h>

#include "proto/command.pb-c.h"

struct job;
struct state;

/* NULL: the user has none. */
const Crontab *state_crontab(const struct state *state, uint32_t uid);
size_t state_crontab_count(const struct state *state);
const Crontab *state_crontab_at(const struct state *state, size_t number);
/* Is it one of its owner's crontab, as that is now? */
bool state_is_cron_job(const struct state *state, const struct job *job);

#endif
