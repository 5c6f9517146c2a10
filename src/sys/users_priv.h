/* SPDX-License-Identifier: Apache-2.0 */
/*
 * users_priv.h - what users.c and users_text.c share
 */
#ifndef SYS_USERS_PRIV_H
#define SYS_USERS_PRIV_H

#include "sys/users.h"

int users_absent(const char *name, uid_t uid, struct err *err);
int users_no_group(const char *name, gid_t gid, struct err *err);

#endif
