/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_membership.c - who the controllers are: addresses, the file, moves that a crash cut short; invitations
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "log/convert.h"
#include "log/snapshot.h"
#include "log/sqlite.h"
#include "spurctld/ha/membership.h"
#include "spurctld/keys/secrets.h"
#include "sys/files.h"

static char dir[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/test-membership.XXXXXX");
    assert_non_null(mkdtemp(dir));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return file_remove_tree(dir, NULL);
}

static void put(const char *name, const char *text)
{
    CLEANUP(freep) char *path = mem_printf("%s/%s", dir, name);

    assert_int_equal(file_write(path, text, strlen(text), 0600, NULL), 0);
}

static bool has(const char *name)
{
    CLEANUP(freep) char *path = mem_printf("%s/%s", dir, name);

    return access(path, F_OK) == 0;
}

static void addresses_are_read(void **state)
{
    static const struct {
        const char *text, *host;
        unsigned port;
    } good[] = {
        { "c1", "c1", 6817 },
        { "10.0.0.1:7000", "10.0.0.1", 7000 },
        { "[fe80::1]:7000", "[fe80::1]", 7000 },
        { "[::1]", "[::1]", 6817 },
    };
    static const char *const bad[] = { "",        ":7000",   "c1:0", "c1:65535",  "c1:x",
                                       "fe80::1", "c1 :700", "a,b",  "c1/x:7000", "c1=c2" };
    char *host;
    unsigned port;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        assert_int_equal(controller_parse_address(good[i].text, &host, &port, NULL), 0);
        assert_string_equal(host, good[i].host);
        assert_int_equal(port, good[i].port);
        free(host);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_true(controller_parse_address(bad[i], &host, &port, NULL) < 0);
    struct controller controller;
    assert_int_equal(controller_parse("c1(10.0.0.1:7000)", &controller, NULL), 0);
    assert_string_equal(controller.name, "c1");
    CLEANUP(freep) char *url = controller_url(&controller, ETCD_PEER_OFFSET);
    assert_string_equal(url, "https://10.0.0.1:7005");
    free(controller.name);
    free(controller.host);
    assert_true(controller_parse("c1(10.0.0.1", &controller, NULL) < 0);
}

static void the_file_holds_the_list(void **state)
{
    struct membership out = { .etcd = true, .bootstrap = true }, in;
    struct err err = { 0 };

    (void)state;
    out.token = mem_strdup("spur-1");
    membership_add(&out, "c1", "10.0.0.1", 6817);
    membership_add(&out, "c2", "[::1]", 7000);
    assert_int_equal(membership_save(&out, dir, NULL), 0);
    assert_int_equal(membership_load(&in, dir, NULL, NULL), 0);
    assert_true(in.etcd && in.bootstrap && in.from_file && !in.entering && !in.removed);
    assert_string_equal(in.token, "spur-1");
    assert_int_equal(in.list.len, 2);
    assert_int_equal(membership_find(&in, "c2")->port, 7000);
    assert_true(membership_drop(&in, "c1"));
    assert_null(membership_find(&in, "c1"));
    membership_done(&in);
    membership_done(&out);

    static const char *const bad[] = { "nonsense yes\n", "controller c1\n",
                                       "controller c1 a:b:x\n" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        put("controllers", bad[i]);
        assert_true(membership_load(&in, dir, NULL, &err) < 0);
        membership_done(&in);
    }
    put("controllers", "engine sqlite\nremoved yes\n");
    assert_int_equal(membership_load(&in, dir, NULL, NULL), 0);
    assert_int_equal(membership_settle(&in, dir, &err), -(int)ERR_CONFIG);
    membership_done(&in);
}

static void the_state_has_the_same_list(void **state)
{
    struct membership from = { 0 }, to = { .etcd = true };
    struct arena arena;

    (void)state;
    arena_init(&arena);
    from.token = mem_strdup("t");
    membership_add(&from, "c1", "h1", 1);
    membership_add(&from, "c2", "h2", 2);
    assert_int_equal(membership_from(&to, membership_command(&from, &arena), NULL), 0);
    assert_true(to.etcd);
    assert_int_equal(to.list.len, 2);
    assert_string_equal(to.list.items[1].host, "h2");
    arena_done(&arena);
    membership_done(&from);
    membership_done(&to);
}

/* ---- moves that a crash cut short ---- */

static int no_restore(void *ctx, struct snapshot_reader *snapshot, struct err *err)
{
    (void)ctx, (void)snapshot, (void)err;
    return 0;
}
static int no_apply(void *ctx, const struct log_batch *batch, struct err *err)
{
    (void)ctx, (void)batch, (void)err;
    return 0;
}
static void no_refused(void *ctx, uint32_t count, const struct err *why)
{
    (void)ctx, (void)count, (void)why;
}
static void no_role(void *ctx, enum log_role role, const char *leader)
{
    (void)ctx, (void)role, (void)leader;
}
static void no_failed(void *ctx, const struct err *why)
{
    (void)ctx;
    fail_msg("%s", why->text);
}
static bool all_live(void *ctx, const uint8_t *digest)
{
    (void)ctx, (void)digest;
    return true;
}
static void no_wake(void *ctx)
{
    (void)ctx;
}

static const struct log_owner owner = { .restore = no_restore,
                                        .apply = no_apply,
                                        .refused = no_refused,
                                        .role = no_role,
                                        .failed = no_failed,
                                        .payload_live = all_live,
                                        .wake = no_wake };

static struct log *open_log(void)
{
    struct log_config config = { .dir = dir, .name = "c1", .owner = &owner };
    struct log *log = log_sqlite_new(&config);

    assert_int_equal(log_start(log, NULL), 0);
    return log;
}

/* A log with a few entries and a snapshot of its end. */
static struct log_point make_log(void)
{
    struct log *log = open_log();
    struct snapshot_writer *writer = NULL;

    for (int i = 0; i < 10; i++)
        assert_int_equal(log_append(log, (struct span){ "command", 7 }, NULL, 0, NULL), 0);
    log_flush(log);
    for (int i = 0; i < 1000 && log_point(log).index < 10; i++) {
        usleep(2000);
        log_poll(log);
    }
    struct log_point point = log_point(log);
    assert_int_equal(point.index, 10);
    log_free(log);
    assert_int_equal(snapshot_create(dir, point, &writer, NULL), 0);
    assert_int_equal(snapshot_write(writer, "state", 5, NULL), 0);
    assert_int_equal(snapshot_finish(writer, NULL), 0);
    return point;
}

static void a_move_that_was_cut_short_is_completed(void **state)
{
    struct membership membership = { .etcd = true, .from_file = true };
    struct err err = { 0 };

    (void)state;
    struct log_point point = make_log();
    /* The file says etcd, the log is still where it was. */
    assert_int_equal(membership_settle(&membership, dir, &err), 0);
    assert_true(has("payload.db") && !has("log.db") && has("log.db.before"));
    assert_int_equal(membership_settle(&membership, dir, &err), 0);
    /* And back. */
    membership.etcd = false;
    assert_int_equal(membership_settle(&membership, dir, &err), 0);
    assert_true(has("log.db") && !has("payload.db"));
    struct log *log = open_log();
    assert_int_equal(log_point(log).index, point.index);
    assert_int_equal(log_point(log).crc, point.crc);
    log_free(log);
}

static void another_configuration_does_not_begin_anew(void **state)
{
    struct membership membership = { .etcd = true };
    struct err err = { 0 };

    (void)state;
    make_log();
    assert_int_equal(membership_settle(&membership, dir, &err), -(int)ERR_CONFIG);
    assert_non_null(strstr(err.text, "spur controller add"));
    assert_true(has("log.db"));
    membership.etcd = false;
    assert_int_equal(membership_settle(&membership, dir, &err), 0);
}

/* ---- invitations ---- */

static void an_invitation_is_for_one_controller(void **state)
{
    struct secrets secrets = { 0 }, others = { 0 };
    CLEANUP(freep) char *other_dir = mem_printf("%s/other", dir);
    CLEANUP(str_done) struct str line = { 0 };
    struct invitation invitation;
    struct err err = { 0 };

    (void)state;
    assert_int_equal(file_make_dirs(other_dir, 0700, NULL), 0);
    assert_int_equal(secrets_open(&secrets, dir, "spur", "c1", NULL, NULL, &err), 0);
    assert_int_equal(secrets_open(&others, other_dir, "spur", "c1", NULL, NULL, &err), 0);
    assert_int_equal(secrets_invitation(&secrets, "c2", "10.0.0.2", 6817, &line, &err), 0);
    assert_int_equal(secrets_invited(&secrets, str_text(&line), &invitation, &err), 0);
    assert_string_equal(invitation.name, "c2");
    assert_string_equal(invitation.address, "10.0.0.2:6817");
    assert_int_equal(secrets_invited(&others, str_text(&line), &invitation, &err),
                     -(int)ERR_UNAUTHENTICATED);
    /* Any change of what is signed spoils it. */
    const char *hash = strstr(line.data, "sha256:");
    for (size_t i = 0; i < (size_t)(hash - line.data) - 1; i++) {
        char before = line.data[i];
        if (before == ' ')
            continue;
        line.data[i] = before == '1' ? '2' : '1';
        assert_int_equal(secrets_invited(&secrets, line.data, &invitation, &err),
                         -(int)ERR_UNAUTHENTICATED);
        line.data[i] = before;
    }
    assert_int_equal(secrets_invited(&secrets, "c2 h:1 1", &invitation, &err),
                     -(int)ERR_UNAUTHENTICATED);
    assert_int_equal(secrets_invited(&secrets, NULL, &invitation, &err), -(int)ERR_UNAUTHENTICATED);
    secrets_done(&secrets);
    secrets_done(&others);
}

static int joins(const struct secrets *secrets, const char *nodes, int64_t lifespan_s,
                 const char *node, struct err *err)
{
    CLEANUP(str_done) struct str line = { 0 };

    assert_int_equal(secrets_join_pass(secrets, nodes, lifespan_s, &line, err), 0);
    return secrets_join_check(secrets, str_text(&line), node, err);
}

static void a_join_token_is_for_its_nodes_and_its_time(void **state)
{
    struct secrets secrets = { 0 }, others = { 0 };
    CLEANUP(freep) char *other_dir = mem_printf("%s/other", dir);
    CLEANUP(str_done) struct str line = { 0 }, own = { 0 };
    struct err err = { 0 };

    (void)state;
    assert_int_equal(file_make_dirs(other_dir, 0700, NULL), 0);
    assert_int_equal(secrets_open(&secrets, dir, "spur", "c1", NULL, NULL, &err), 0);
    assert_int_equal(secrets_open(&others, other_dir, "spur", "c1", NULL, NULL, &err), 0);
    assert_int_equal(secrets_join_line(&secrets, &own, &err), 0);
    assert_int_equal(secrets_join_check(&secrets, str_text(&own), "n1", &err), 0);
    assert_int_equal(joins(&secrets, "n1", 60, "n1", &err), 0);
    assert_int_equal(joins(&secrets, NULL, 60, "n1", &err), 0);
    assert_int_equal(joins(&secrets, "n[1-3],x", 60, "n2", &err), 0);
    assert_int_equal(joins(&secrets, "n1", 60, "n2", &err), -(int)ERR_UNAUTHENTICATED);
    assert_string_equal(err.text, "the join token is for node 'n1', not for 'n2'");
    assert_true(secrets_join_pass(&secrets, "n1", 0, &line, &err) < 0);
    assert_true(secrets_join_pass(&secrets, "n1/n2", 60, &line, &err) < 0);
    assert_true(secrets_join_pass(&secrets, "n[1", 60, &line, &err) < 0);
    assert_int_equal(line.len, 0);
    assert_int_equal(secrets_join_pass(&secrets, "n1", 60, &line, &err), 0);
    assert_int_equal(secrets_join_check(&others, line.data, "n1", &err), -(int)ERR_UNAUTHENTICATED);
    assert_string_equal(err.text, "the join token is not this cluster's");
    /* Any change spoils it: another name, a later end. */
    const char *hash = strstr(line.data, " sha256:");
    for (size_t i = 0; i < (size_t)(hash - line.data); i++) {
        char before = line.data[i];
        line.data[i] = before == '1' ? '2' : '1';
        assert_int_equal(secrets_join_check(&secrets, line.data, "n1", &err),
                         -(int)ERR_UNAUTHENTICATED);
        line.data[i] = before;
    }
    assert_int_equal(secrets_join_check(&secrets, NULL, "n1", &err), -(int)ERR_UNAUTHENTICATED);
    assert_int_equal(secrets_join_check(&secrets, "join/n1", "n1", &err),
                     -(int)ERR_UNAUTHENTICATED);
    secrets_done(&secrets);
    secrets_done(&others);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_read),
        cmocka_unit_test(a_join_token_is_for_its_nodes_and_its_time),
        cmocka_unit_test_setup_teardown(the_file_holds_the_list, set_up, tear_down),
        cmocka_unit_test(the_state_has_the_same_list),
        cmocka_unit_test_setup_teardown(a_move_that_was_cut_short_is_completed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_configuration_does_not_begin_anew, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(an_invitation_is_for_one_controller, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
