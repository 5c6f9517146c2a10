/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_users.c - who a uid is
 */
#include <unistd.h>

#include "sys/clock.h"
#include "sys/files.h"
#include "sys/users.h"
#include "test/unit.h"

static const char passwd[] = "root:x:0:0:root:/root:/bin/bash\n"
                             "# a comment\n"
                             "broken:x:notanumber:1:::\n"
                             "alice:x:1000:100:Alice,,,:/home/alice:/bin/zsh\n"
                             "bob:x:1001:100::/home/bob:";
static const char groups[] = "root:x:0:\nusers:x:100:bob\nwheel:x:10:root,alice\n"
                             "ali:x:11:alicea,malice\ngpu:x:12:bob,alice\n";

static void text_gives_users_and_groups(void **state)
{
    CLEANUP(user_freep) struct user *user = NULL;
    CLEANUP(str_done) struct str name = { 0 };
    gid_t gid;

    (void)state;
    assert_int_equal(users_from_text(passwd, groups, "alice", 0, &user, NULL), 0);
    assert_int_equal(user->uid, 1000);
    assert_int_equal(user->gid, 100);
    assert_string_equal(user->home, "/home/alice");
    assert_string_equal(user->shell, "/bin/zsh");
    assert_int_equal(user->group_count, 3);
    assert_true(user_in_group(user, 100));
    assert_true(user_in_group(user, 10));
    assert_true(user_in_group(user, 12));
    assert_false(user_in_group(user, 11));
    user_freep(&user);
    assert_int_equal(users_from_text(passwd, groups, NULL, 1001, &user, NULL), 0);
    assert_string_equal(user->name, "bob");
    assert_string_equal(user->shell, "");
    user_freep(&user);
    assert_int_equal(users_from_text(passwd, groups, "broken", 0, &user, NULL),
                     -(int)ERR_USER_MISSING);
    assert_int_equal(users_group_from_text(groups, "gpu", 0, &gid, NULL, NULL), 0);
    assert_int_equal(gid, 12);
    assert_int_equal(users_group_from_text(groups, NULL, 10, &gid, &name, NULL), 0);
    assert_string_equal(str_text(&name), "wheel");
    assert_int_equal(users_group_from_text(groups, "none", 0, &gid, NULL, NULL),
                     -(int)ERR_NOT_FOUND);
}

static void the_name_service_knows_root(void **state)
{
    CLEANUP(user_freep) struct user *user = NULL;
    CLEANUP(user_freep) struct user *same = NULL;
    CLEANUP(str_done) struct str name = { 0 };
    struct err err;
    gid_t gid;

    (void)state;
    assert_int_equal(users_by_name("root", &user, NULL), 0);
    assert_int_equal(user->uid, 0);
    assert_true(user_in_group(user, 0));
    assert_int_equal(users_parse("0", &same, NULL), 0);
    assert_string_equal(same->name, "root");
    assert_int_equal(users_group_by_name("root", &gid, NULL), 0);
    assert_int_equal(gid, 0);
    assert_int_equal(users_group_by_gid(0, &name, NULL), 0);
    assert_string_equal(name.data, "root");
    user_freep(&same);
    assert_int_equal(users_by_name("no-such-user-here", &same, &err), -(int)ERR_USER_MISSING);
    assert_string_equal(err.text, "no user 'no-such-user-here'");
    users_forget();
}

static unsigned asked;
static int answer;
static int64_t now_us;

static int fake_user(void *ctx, const char *name, uid_t uid, struct user **out, struct err *err)
{
    (void)ctx;
    asked++;
    return answer < 0 ? err_set(err, (enum err_code) - answer, "fake")
                      : users_from_text(passwd, groups, name, uid, out, err);
}

static int64_t fixed(void *ctx)
{
    (void)ctx;
    return now_us;
}

static void answers_are_kept_for_a_minute(void **state)
{
    static const struct users_ops ops = { fake_user, NULL };
    static const struct clock_ops clock = { fixed, fixed, fixed, NULL };
    static const struct {
        int64_t at_s;
        const char *name;
        int service, rc;
        unsigned asked;
    } rows[] = {
        { 0, "alice", 0, 0, 1 },
        { 59, "alice", 0, 0, 1 },
        { 61, "alice", 0, 0, 2 },
        { 130, "alice", -(int)ERR_IO, 0, 3 }, /* the last answer, while the service fails */
        { 130, "carol", -(int)ERR_IO, -(int)ERR_IO, 4 },
        { 140, "carol", 0, -(int)ERR_USER_MISSING, 5 },
        { 144, "carol", 0, -(int)ERR_USER_MISSING, 5 },
        { 146, "carol", 0, -(int)ERR_USER_MISSING, 6 },
    };

    (void)state;
    users_use(&ops, NULL);
    clock_use(&clock, NULL);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(user_freep) struct user *user = NULL;
        now_us = rows[i].at_s * 1000000;
        answer = rows[i].service;
        assert_int_equal(users_by_name(rows[i].name, &user, NULL), rows[i].rc);
        assert_int_equal(asked, rows[i].asked);
    }
    clock_use(NULL, NULL);
    users_use(NULL, NULL);
}

static void files_stand_in_for_the_service(void **state)
{
    CLEANUP(user_freep) struct user *user = NULL;
    char dir[] = "/tmp/test-users.XXXXXX", pw[64], gr[64];

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(pw, sizeof(pw), "%s/passwd", dir);
    snprintf(gr, sizeof(gr), "%s/group", dir);
    assert_int_equal(file_write(pw, passwd, strlen(passwd), 0644, NULL), 0);
    assert_int_equal(file_write(gr, groups, strlen(groups), 0644, NULL), 0);
    users_use_files(pw, gr);
    assert_int_equal(users_by_uid(1000, &user, NULL), 0);
    assert_string_equal(user->name, "alice");
    users_use_files(NULL, NULL);
    users_use(NULL, NULL);
    assert_int_equal(file_remove_tree(dir, NULL), 0);
}

UNIT_MAIN(UNIT(text_gives_users_and_groups), UNIT(the_name_service_knows_root),
          UNIT(answers_are_kept_for_a_minute), UNIT(files_stand_in_for_the_service))
