/* SPDX-License-Identifier: Apache-2.0 */
/*
 * as_user.h - files opened in a worker thread with the identity of a job's user
 *
 * The whole effective identity of the calling thread changes (sys/identity.h), so every check is the
 * kernel's and nothing is reached that the user could not reach. Nothing changes where we are not
 * root: all jobs here are our own then.
 */
#ifndef SPURD_AS_USER_H
#define SPURD_AS_USER_H

#include <sys/types.h>

#include "base/err.h"
#include "proto/job.pb-c.h"

struct as_user {
    uid_t uid;
    gid_t gid;
    gid_t *groups;
    size_t count;
};

void as_user_init(struct as_user *user, const JobOwner *owner); /* copies */
void as_user_done(struct as_user *user);

/*
 * Between the two, in one worker thread, everything is done as the user. When as_user_begin() fails
 * the thread is as it was and as_user_end() must not be called. as_user_end() keeps errno, and ends
 * the process when it cannot return.
 */
int as_user_begin(const struct as_user *user, struct err *err);
void as_user_end(void);

#endif
