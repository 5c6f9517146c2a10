/* SPDX-License-Identifier: Apache-2.0 */
/*
 * users.h - who a uid is, and which groups they are in
 *
 * The system's name service (files, SSSD, LDAP) may take seconds to answer: call this from a worker
 * thread, never from the loop. Answers are kept USERS_KEEP_S, "no such user" USERS_KEEP_ABSENT_S;
 * while the service fails, the last answer goes on being given. users_use_files() reads a passwd
 * and a group file instead, users_use() anything else. Thread-safe.
 */
#ifndef SYS_USERS_H
#define SYS_USERS_H

#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

enum { USERS_KEEP_S = 60, USERS_KEEP_ABSENT_S = 5 };

struct user {
    uid_t uid;
    gid_t gid;
    char *name, *home, *shell;
    gid_t *groups; /* the primary group is among them */
    size_t group_count;
};

/* *out is the caller's: user_free(). Nobody of that name or number is ERR_USER_MISSING. */
int users_by_name(const char *name, struct user **out, struct err *err);
int users_by_uid(uid_t uid, struct user **out, struct err *err);
void user_free(struct user *user);
void user_freep(struct user **user);
bool user_in_group(const struct user *user, gid_t gid);

/* ERR_NOT_FOUND when there is no such group. The name is appended to `name`. */
int users_group_by_name(const char *name, gid_t *gid, struct err *err);
int users_group_by_gid(gid_t gid, struct str *name, struct err *err);

/* Text when it is a name or a number: "alice", "1000". What --uid and --user take. */
int users_parse(const char *text, struct user **out, struct err *err);

void users_forget(void); /* empties the cache */

struct users_ops {
    /* By name, or by number when name is NULL. Absent: ERR_USER_MISSING, ERR_NOT_FOUND. */
    int (*user)(void *ctx, const char *name, uid_t uid, struct user **out, struct err *err);
    int (*group)(void *ctx, const char *name, gid_t gid, gid_t *found, struct str *found_name,
                 struct err *err);
};
void users_use(const struct users_ops *ops, void *ctx); /* NULL: the name service */
void users_use_files(const char *passwd_path, const char *group_path);

/* The same from text in the format of passwd(5) and group(5). */
int users_from_text(const char *passwd, const char *groups, const char *name, uid_t uid,
                    struct user **out, struct err *err);
int users_group_from_text(const char *groups, const char *name, gid_t gid, gid_t *found,
                          struct str *found_name, struct err *err);

#endif
