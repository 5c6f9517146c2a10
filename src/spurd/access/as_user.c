/* SPDX-License-Identifier: Apache-2.0 */
/*
 * as_user.c - files opened in a worker thread with the identity of a job's user
 */
#include "spurd/access/as_user.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/util.h"
#include "sys/identity.h"

/* What the thread goes back to. */
static __thread struct {
    bool taken;
    gid_t gid;
    gid_t *groups;
    size_t count;
} before;

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

static int remember(struct err *err)
{
    int count = getgroups(0, NULL);

    if (count < 0)
        return err_errno(err, errno, "getgroups");
    before.gid = getegid();
    before.groups = NEW_ARRAY(gid_t, (size_t)count + 1);
    before.count = (size_t)getgroups(count, before.groups);
    before.taken = true;
    return 0;
}

int as_user_begin(const struct as_user *user, struct err *err)
{
    if (geteuid() != 0)
        return 0;
    if (remember(err) < 0)
        return -(int)err->code;
    int error = identity_take(user->uid, user->gid, user->groups, user->count);
    if (error == 0)
        return 0;
    as_user_end();
    return err_errno(err, error, "could not take the identity of uid %u", (unsigned)user->uid);
}

void as_user_end(void)
{
    if (!before.taken)
        return;
    identity_return(before.gid, before.groups, before.count);
    before.taken = false;
    free(TAKE(before.groups));
}
