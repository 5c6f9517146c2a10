/* SPDX-License-Identifier: Apache-2.0 */
/*
 * as_user.c - files opened in a worker thread with the identity of a job's user
 */
#include "spurd/as_user.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"

void as_user_init(struct as_user *user, const JobOwner *owner)
{
    user->uid = owner->uid;
    user->gid = owner->gid;
    user->count = owner->n_gids;
    user->groups = NEW_ARRAY(gid_t, owner->n_gids + 1);
    for (size_t i = 0; i < owner->n_gids; i++)
        user->groups[i] = owner->gids[i];
}

void as_user_done(struct as_user *user)
{
    free(TAKE(user->groups));
    user->count = 0;
}

/* Raw calls: the C library's would change every thread. */
static void take(uid_t uid, gid_t gid, size_t count, const gid_t *groups)
{
    int saved = errno;

    syscall(SYS_setgroups, count, groups);
    syscall(SYS_setfsgid, gid);
    syscall(SYS_setfsuid, uid);
    errno = saved;
}

void as_user_begin(const struct as_user *user)
{
    if (geteuid() == 0)
        take(user->uid, user->gid, user->count, user->groups);
}

void as_user_end(void)
{
    if (geteuid() == 0)
        take(0, 0, 0, NULL);
}
