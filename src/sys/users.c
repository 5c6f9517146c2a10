/* SPDX-License-Identifier: Apache-2.0 */
/*
 * users.c - who a uid is, and which groups they are in
 *
 * (1) The lock is held for table look-ups only, never while the name service is asked.
 * (2) An entry is replaced whole; what a caller holds is its own copy.
 */
#include "sys/users.h"

#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/map.h"
#include "sys/clock.h"
#include "sys/users_priv.h"

enum { MOST_ENTRIES = 65536 };

struct entry {
    struct user *user; /* NULL: absent */
    int64_t until_us;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct map by_name, by_uid;
static bool ready;
static const struct users_ops *used;
static void *used_ctx;

void user_free(struct user *user)
{
    if (!user)
        return;
    free(user->name);
    free(user->home);
    free(user->shell);
    free(user->groups);
    free(user);
}

void user_freep(struct user **user)
{
    user_free(*user);
    *user = NULL;
}

static struct user *user_copy(const struct user *from)
{
    struct user *user = NEW(struct user);

    *user = *from;
    user->name = mem_strdup(from->name);
    user->home = mem_strdup(from->home);
    user->shell = mem_strdup(from->shell);
    user->groups = NEW_ARRAY(gid_t, from->group_count + 1);
    memcpy(user->groups, from->groups, from->group_count * sizeof(gid_t));
    return user;
}

bool user_in_group(const struct user *user, gid_t gid)
{
    for (size_t i = 0; i < user->group_count; i++) {
        if (user->groups[i] == gid)
            return true;
    }
    return user->gid == gid;
}

static int load_groups(struct user *user, struct err *err)
{
    for (int room = 64;; room *= 4) {
        int count = room;

        if (room > LIMIT_GROUPS * 4)
            return err_set(err, ERR_TOO_MANY, "user '%s' is in more than %d groups", user->name,
                           LIMIT_GROUPS);
        user->groups = mem_resize(user->groups, (size_t)room * sizeof(gid_t));
        if (getgrouplist(user->name, user->gid, user->groups, &count) >= 0) {
            user->group_count = (size_t)count;
            return 0;
        }
    }
}

static int nss_user(void *ctx, const char *name, uid_t uid, struct user **out, struct err *err)
{
    CLEANUP(freep) char *buf = NULL;
    struct passwd pw, *found = NULL;
    int rc = ERANGE;

    (void)ctx;
    for (size_t size = 4096; rc == ERANGE && size <= 1024 * 1024; size *= 4) {
        buf = mem_resize(buf, size);
        rc = name ? getpwnam_r(name, &pw, buf, size, &found)
                  : getpwuid_r(uid, &pw, buf, size, &found);
    }
    if (!found && rc != 0 && rc != ENOENT && rc != ESRCH)
        return err_errno(err, rc, "name service");
    if (!found)
        return users_absent(name, uid, err);
    CLEANUP(user_freep) struct user *user = NEW(struct user);
    user->uid = pw.pw_uid;
    user->gid = pw.pw_gid;
    user->name = mem_strdup(pw.pw_name);
    user->home = mem_strdup(pw.pw_dir);
    user->shell = mem_strdup(pw.pw_shell);
    rc = load_groups(user, err);
    if (rc == 0)
        *out = TAKE(user);
    return rc;
}

static int nss_group(void *ctx, const char *name, gid_t gid, gid_t *found, struct str *found_name,
                     struct err *err)
{
    CLEANUP(freep) char *buf = NULL;
    struct group gr, *got = NULL;
    int rc = ERANGE;

    (void)ctx;
    for (size_t size = 4096; rc == ERANGE && size <= 64 * 1024 * 1024; size *= 4) {
        buf = mem_resize(buf, size);
        rc = name ? getgrnam_r(name, &gr, buf, size, &got) : getgrgid_r(gid, &gr, buf, size, &got);
    }
    if (!got && rc != 0 && rc != ENOENT && rc != ESRCH)
        return err_errno(err, rc, "name service");
    if (!got)
        return users_no_group(name, gid, err);
    *found = gr.gr_gid;
    if (found_name)
        str_add(found_name, gr.gr_name);
    return 0;
}

static const struct users_ops nss_ops = { nss_user, nss_group };

static void clear_map(struct map *map)
{
    map_each (at, map) {
        struct entry *entry = at->value;
        user_free(entry->user);
        free(entry);
    }
    map_done(map);
    map_init(map);
}

static void prepare(void)
{
    if (ready && map_len(&by_name) + map_len(&by_uid) < MOST_ENTRIES)
        return;
    if (ready) {
        clear_map(&by_name);
        clear_map(&by_uid);
    }
    map_init(&by_name);
    map_init(&by_uid);
    ready = true;
}

void users_forget(void)
{
    pthread_mutex_lock(&lock);
    if (ready) {
        clear_map(&by_name);
        clear_map(&by_uid);
    }
    pthread_mutex_unlock(&lock);
}

void users_use(const struct users_ops *ops, void *ctx)
{
    used = ops;
    used_ctx = ctx;
    users_forget();
}

static struct entry *find(const char *name, uid_t uid)
{
    return name ? map_get(&by_name, name) : map_get_num(&by_uid, uid);
}

/* `stale` also takes what is out of date: better the last answer than none. */
static bool cached(const char *name, uid_t uid, bool stale, struct user **out, bool *absent)
{
    bool hit = false;

    pthread_mutex_lock(&lock);
    prepare();
    const struct entry *entry = find(name, uid);
    if (entry && (stale || entry->until_us > clock_mono_us())) {
        hit = true;
        *absent = !entry->user;
        if (entry->user)
            *out = user_copy(entry->user);
    }
    pthread_mutex_unlock(&lock);
    return hit;
}

static void remember(const char *name, uid_t uid, const struct user *user)
{
    struct entry *entry = NEW(struct entry), *old;

    entry->user = user ? user_copy(user) : NULL;
    entry->until_us =
        clock_mono_us() + (int64_t)(user ? USERS_KEEP_S : USERS_KEEP_ABSENT_S) * 1000000;
    pthread_mutex_lock(&lock);
    prepare();
    old = name ? map_put(&by_name, name, entry) : map_put_num(&by_uid, uid, entry);
    pthread_mutex_unlock(&lock);
    if (old)
        user_free(old->user);
    free(old);
}

static int look_up(const char *name, uid_t uid, struct user **out, struct err *err)
{
    const struct users_ops *ops = used ? used : &nss_ops;
    bool absent = false;

    if (cached(name, uid, false, out, &absent))
        return absent ? users_absent(name, uid, err) : 0;
    int rc = ops->user(used_ctx, name, uid, out, err); /* (1) */
    if (rc == 0)
        remember(name, uid, *out);
    else if (rc == -(int)ERR_USER_MISSING)
        remember(name, uid, NULL);
    else if (cached(name, uid, true, out, &absent) && !absent)
        rc = 0;
    return rc;
}

int users_by_name(const char *name, struct user **out, struct err *err)
{
    if (str_is_empty(name) || strlen(name) > LIMIT_NAME_BYTES)
        return err_set(err, ERR_USER_MISSING, "a user name is 1 to %d bytes", LIMIT_NAME_BYTES);
    return look_up(name, 0, out, err);
}

int users_by_uid(uid_t uid, struct user **out, struct err *err)
{
    return look_up(NULL, uid, out, err);
}

int users_parse(const char *text, struct user **out, struct err *err)
{
    uint64_t number;

    if (str_to_u64(text, UINT32_MAX - 1, &number))
        return users_by_uid((uid_t)number, out, err);
    return users_by_name(text, out, err);
}

int users_group_by_name(const char *name, gid_t *gid, struct err *err)
{
    const struct users_ops *ops = used ? used : &nss_ops;

    return ops->group(used_ctx, name, 0, gid, NULL, err);
}

int users_group_by_gid(gid_t gid, struct str *name, struct err *err)
{
    const struct users_ops *ops = used ? used : &nss_ops;
    gid_t found;

    return ops->group(used_ctx, NULL, gid, &found, name, err);
}
