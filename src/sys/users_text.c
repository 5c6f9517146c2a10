/* SPDX-License-Identifier: Apache-2.0 */
/*
 * users_text.c - users and groups from text as passwd(5) and group(5) have it
 */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "sys/files.h"
#include "sys/users_priv.h"

enum { FILE_BYTES = 64 * 1024 * 1024, MOST_FIELDS = 7 };

int users_absent(const char *name, uid_t uid, struct err *err)
{
    return name ? err_set(err, ERR_USER_MISSING, "no user '%s'", name)
                : err_set(err, ERR_USER_MISSING, "no user has uid %u", (unsigned)uid);
}

int users_no_group(const char *name, gid_t gid, struct err *err)
{
    return name ? err_set(err, ERR_NOT_FOUND, "no group '%s'", name)
                : err_set(err, ERR_NOT_FOUND, "no group has gid %u", (unsigned)gid);
}

/* The next line's fields, empty ones too; false at the end of the text. */
static bool next_line(const char **text, struct span fields[MOST_FIELDS], size_t *count)
{
    if (!**text)
        return false;
    size_t len = strcspn(*text, "\n");
    const char *at = *text, *end = at + len;

    *count = 0;
    while (*count < MOST_FIELDS) {
        const char *colon = memchr(at, ':', (size_t)(end - at));
        const char *stop = colon ? colon : end;
        fields[(*count)++] = (struct span){ at, (size_t)(stop - at) };
        if (!colon)
            break;
        at = colon + 1;
    }
    *text = end + (*end == '\n');
    return true;
}

static bool span_number(struct span span, uint32_t *out)
{
    char digits[16];
    uint64_t number;

    if (span.len == 0 || span.len >= sizeof(digits))
        return false;
    memcpy(digits, span.ptr, span.len);
    digits[span.len] = '\0';
    if (!str_to_u64(digits, UINT32_MAX, &number))
        return false;
    *out = (uint32_t)number;
    return true;
}

static bool is_member(struct span members, const char *name)
{
    const char *at = members.ptr, *end = at + members.len;

    while (at < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma ? comma : end;
        if (span_eq((struct span){ at, (size_t)(stop - at) }, name))
            return true;
        at = stop + 1;
    }
    return false;
}

static void add_groups(struct user *user, const char *groups)
{
    struct span fields[MOST_FIELDS];
    size_t count, room = 16;
    uint32_t gid;

    user->groups = NEW_ARRAY(gid_t, room);
    user->groups[user->group_count++] = user->gid;
    while (next_line(&groups, fields, &count)) {
        if (count < 4 || !span_number(fields[2], &gid) || gid == user->gid ||
            !is_member(fields[3], user->name) || user->group_count >= LIMIT_GROUPS)
            continue;
        if (user->group_count == room) {
            room *= 2;
            user->groups = mem_resize(user->groups, room * sizeof(gid_t));
        }
        user->groups[user->group_count++] = gid;
    }
}

int users_from_text(const char *passwd, const char *groups, const char *name, uid_t uid,
                    struct user **out, struct err *err)
{
    struct span fields[MOST_FIELDS];
    uint32_t found_uid, gid;
    size_t count;

    while (next_line(&passwd, fields, &count)) {
        if (count < 7 || !span_number(fields[2], &found_uid) || !span_number(fields[3], &gid))
            continue;
        if (name ? !span_eq(fields[0], name) : found_uid != uid)
            continue;
        struct user *user = NEW(struct user);
        user->uid = found_uid;
        user->gid = gid;
        user->name = mem_strndup(fields[0].ptr, fields[0].len);
        user->home = mem_strndup(fields[5].ptr, fields[5].len);
        user->shell = mem_strndup(fields[6].ptr, fields[6].len);
        add_groups(user, groups);
        *out = user;
        return 0;
    }
    return users_absent(name, uid, err);
}

int users_group_from_text(const char *groups, const char *name, gid_t gid, gid_t *found,
                          struct str *found_name, struct err *err)
{
    struct span fields[MOST_FIELDS];
    uint32_t number;
    size_t count;

    while (next_line(&groups, fields, &count)) {
        if (count < 3 || !span_number(fields[2], &number))
            continue;
        if (name ? !span_eq(fields[0], name) : number != gid)
            continue;
        *found = number;
        if (found_name)
            str_add_len(found_name, fields[0].ptr, fields[0].len);
        return 0;
    }
    return users_no_group(name, gid, err);
}

static char *passwd_file, *group_file;

static int file_user(void *ctx, const char *name, uid_t uid, struct user **out, struct err *err)
{
    CLEANUP(str_done) struct str passwd = { 0 };
    CLEANUP(str_done) struct str groups = { 0 };

    (void)ctx;
    int rc = file_read(passwd_file, FILE_BYTES, &passwd, err);
    if (rc == 0)
        rc = file_read(group_file, FILE_BYTES, &groups, err);
    return rc < 0 ? rc : users_from_text(str_text(&passwd), str_text(&groups), name, uid, out, err);
}

static int file_group(void *ctx, const char *name, gid_t gid, gid_t *found, struct str *found_name,
                      struct err *err)
{
    CLEANUP(str_done) struct str groups = { 0 };

    (void)ctx;
    int rc = file_read(group_file, FILE_BYTES, &groups, err);
    return rc < 0 ? rc
                  : users_group_from_text(str_text(&groups), name, gid, found, found_name, err);
}

void users_use_files(const char *passwd_path, const char *group_path)
{
    static const struct users_ops file_ops = { file_user, file_group };

    free(passwd_file);
    free(group_file);
    passwd_file = mem_strdup(passwd_path);
    group_file = mem_strdup(group_path);
    users_use(&file_ops, NULL);
}
