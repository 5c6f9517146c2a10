/* SPDX-License-Identifier: Apache-2.0 */
/*
 * purge.h - what is older than the site wants to keep goes
 */
#ifndef SPURDBD_PURGE_H
#define SPURDBD_PURGE_H

#include "proto/config.pb-c.h"
#include "spurdbd/store.h"

/* Seconds after their end; 0: for ever. */
struct purge {
    int64_t job_s, step_s, event_s, resv_s, txn_s;
};

/* "12months", "30days", "24hours"; a number alone is months, as in slurmdbd.conf. False: it is none of these. */
bool purge_read_age(const char *text, int64_t *seconds);
/* The settings purge_*_after. ERR_INVALID names the one that cannot be read. */
int purge_read(const ConfLocal *local, struct purge *out, struct err *err);
/*
 * Removes some of what is too old, in one transaction. *left: there may be more. Runs that have not ended stay, and
 * so does what was summed up.
 */
int purge_some(struct store *store, const struct purge *purge, int64_t now_us, bool *left,
               uint64_t *removed, struct err *err);

#endif
