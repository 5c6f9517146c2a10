/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_private.c - what users do not see of others (access.private_data, Slurm's PrivateData)
 *
 * Operators and administrators see everything. A job that may not be seen is as if it were not
 * there, with its steps, its script and its command line.
 */
#include "core/resv.h"
#include "schema/private_data.h"
#include "spurctld/ctl/ctl_priv.h"

bool ctl_hides(const struct ctl *ctl, const struct ctl_ask *ask, const char *what)
{
    return private_data_hides(state_config(ctl->state)->private_data, what,
                              ask->who->is_admin || ask->who->is_operator);
}

bool ctl_may_see_job(const struct ctl *ctl, const struct ctl_ask *ask, const struct job *job)
{
    return job->owner->uid == ask->who->uid || !ctl_hides(ctl, ask, "jobs");
}

bool ctl_may_see_reservation(const struct ctl *ctl, const struct ctl_ask *ask,
                             const struct reservation *resv)
{
    const struct resv_access who = { .uid = ask->who->uid,
                                     .user = ask->who->user,
                                     .group = ask->who->group,
                                     .gids = ask->who->gids,
                                     .gid_count = ask->who->gid_count };

    return !ctl_hides(ctl, ask, "reservations") || resv_admits_person(resv, &who);
}
