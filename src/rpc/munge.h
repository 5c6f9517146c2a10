/* SPDX-License-Identifier: Apache-2.0 */
/*
 * munge.h - MUNGE credentials, where libmunge is installed
 *
 * The library is opened when it is first needed, never linked. A credential of ours has a fixed text
 * inside, so that one made for another program is not good here. Both calls talk to munged and may
 * block; a daemon makes them on a worker.
 */
#ifndef RPC_MUNGE_H
#define RPC_MUNGE_H

#include "base/err.h"
#include "base/str.h"

bool munge_available(void); /* the library is there and munged has a socket */
int munge_make(struct str *out, struct err *err);
int munge_check(const char *credential, uint32_t *uid, uint32_t *gid, struct err *err);

#endif
