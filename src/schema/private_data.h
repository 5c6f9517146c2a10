/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private_data.h - what users do not see of others (access.private_data, Slurm's PrivateData)
 *
 * The controller and spurrestd decide by the same function.
 */
#ifndef SCHEMA_PRIVATE_DATA_H
#define SCHEMA_PRIVATE_DATA_H

#include "base/util.h"

/* Whether `words` ("jobs,reservations"; NULL: none) hides `what` from somebody who is not staff. */
bool private_data_hides(const char *words, const char *what, bool staff);

/* Whether somebody sees a job of `owner`. */
static inline bool private_data_shows_job(const char *words, uint32_t owner, uint32_t uid,
                                          bool staff)
{
    return owner == uid || !private_data_hides(words, "jobs", staff);
}

#endif
