// SPDX-License-Identifier: Apache-2.0
/*
 * test_store.c - a statement means the same to both databases
 *
 * Runs on a file of SQLite, and on the server that SPUR_TEST_DATABASE names (tools/postgresql with).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "spurdbd/store.h"

static char url[256];

static struct store *open_store(void)
{
    struct store *store = NULL;
    struct err err = { 0 };

    if (store_open(url, &store, &err) < 0)
        fail_msg("%s", err.text);
    return store;
}

static int set_up(void **state)
{
    struct store *store = open_store();
    struct err err = { 0 };

    assert_int_equal(store_script(store,
                                  "DROP TABLE IF EXISTS thing;"
                                  "CREATE TABLE thing(id @id, name TEXT NOT NULL UNIQUE,"
                                  " number @big, bytes @bytes);",
                                  &err),
                     0);
    *state = store;
    return 0;
}

static int tear_down(void **state)
{
    store_close(*state);
    return 0;
}

static int add(struct store *store, const char *name, struct store_value number,
               struct store_value bytes, struct err *err)
{
    return store_run(store, "INSERT INTO thing(name, number, bytes) VALUES(?1, ?2, ?3)",
                     STORE_VALUES(STORE_TEXT(name), number, bytes), err);
}

static int64_t number_of(struct store *store, const char *sql)
{
    struct err err = { 0 };
    int64_t number = 0;

    if (store_number(store, sql, STORE_NO_VALUES, -1, &number, &err) < 0)
        fail_msg("%s", err.text);
    return number;
}

static int join_names(void *ctx, const struct store_row *row, struct err *err)
{
    struct span name = store_row_bytes(row, 0);

    (void)err;
    str_addf(ctx, "%.*s ", (int)name.len, name.ptr);
    return 0;
}

static int take_bytes(void *ctx, const struct store_row *row, struct err *err)
{
    struct span bytes = store_row_bytes(row, 0);

    (void)err;
    str_add_len(ctx, bytes.ptr, bytes.len);
    return 0;
}

static void values_come_back(void **state)
{
    struct store *store = *state;
    CLEANUP(str_done) struct str got = { 0 };
    struct err err = { 0 };

    assert_int_equal(add(store, "a", STORE_NONE, STORE_BYTES("\0\x01?\xff", 4), &err), 0);
    assert_int_equal(add(store, "b", STORE_INT(INT64_MAX), STORE_BYTES("", 0), &err), 0);
    assert_int_equal(add(store, "c", STORE_INT(INT64_MIN), STORE_NONE, &err), 0);
    assert_int_equal(number_of(store, "SELECT number FROM thing WHERE name = 'a'"), 0);
    assert_int_equal(number_of(store, "SELECT number FROM thing WHERE name = 'b'"), INT64_MAX);
    assert_int_equal(number_of(store, "SELECT number FROM thing WHERE name = 'c'"), INT64_MIN);
    assert_int_equal(number_of(store, "SELECT number FROM thing WHERE name = 'd'"), -1);
    assert_int_equal(number_of(store, "SELECT count(*) FROM thing WHERE number IS NULL"), 1);
    assert_int_equal(store_each(store, "SELECT bytes FROM thing WHERE name = ?1",
                                STORE_VALUES(STORE_TEXT("a")), take_bytes, &got, &err),
                     0);
    assert_int_equal(got.len, 4);
    assert_memory_equal(got.data, "\0\x01?\xff", 4);
}

static void sums_and_words(void **state)
{
    struct store *store = *state;
    struct err err = { 0 };

    for (int i = 0; i < 5; i++) {
        char name[8];
        snprintf(name, sizeof(name), "n%d", i);
        assert_int_equal(add(store, name, STORE_INT(i * INT64_C(1000000000000)), STORE_NONE, &err),
                         0);
    }
    assert_int_equal(number_of(store, "SELECT sum(number) FROM thing"), INT64_C(10000000000000));
    assert_int_equal(number_of(store, "SELECT -sum(number) FROM thing"), INT64_C(-10000000000000));
    assert_int_equal(number_of(store, "SELECT sum(number) / 3 FROM thing WHERE name = 'n1'"),
                     INT64_C(333333333333));
    assert_int_equal(number_of(store, "SELECT sum(number) FROM thing WHERE name = 'none'"), 0);
    assert_int_equal(number_of(store, "SELECT @greatest(3, 7) + @least(3, 7)"), 10);
    assert_int_equal(number_of(store, "SELECT count(*) FROM thing WHERE name = '?1 @id TEXT'"), 0);
}

static void text_is_in_the_order_of_its_bytes(void **state)
{
    struct store *store = *state;
    CLEANUP(str_done) struct str got = { 0 };
    struct err err = { 0 };
    static const char *const names[] = { "b", "a_1", "B", "a1", "A", "\xc3\xa4" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_int_equal(add(store, names[i], STORE_NONE, STORE_NONE, &err), 0);
    assert_int_equal(store_each(store, "SELECT name FROM thing ORDER BY name", STORE_NO_VALUES,
                                join_names, &got, &err),
                     0);
    assert_string_equal(str_text(&got), "A B a1 a_1 b \xc3\xa4 ");
}

/* A job may have any name; PostgreSQL takes only UTF-8, and a batch must not fail for it. */
static void text_that_is_not_utf8_is_taken(void **state)
{
    struct store *store = *state;
    struct err err = { 0 };

    if (add(store, "x\xff\xc3", STORE_NONE, STORE_NONE, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(number_of(store, "SELECT count(*) FROM thing WHERE name LIKE 'x%'"), 1);
}

/* Whether it is said at once or when the transaction ends. */
static void an_error_undoes_a_transaction(void **state)
{
    struct store *store = *state;
    struct err err = { 0 };
    int code = store_begin(store, &err);

    for (int i = 0; i < 2 && code == 0; i++)
        code = add(store, "twice", STORE_NONE, STORE_NONE, &err);
    if (code == 0)
        code = store_commit(store, &err);
    assert_true(code < 0);
    assert_true(strstr(err.text, "INSERT INTO thing") || strstr(err.text, "UNIQUE"));
    store_rollback(store);
    assert_int_equal(number_of(store, "SELECT count(*) FROM thing"), 0);
    assert_int_equal(add(store, "after", STORE_NONE, STORE_NONE, &err), 0);
    assert_int_equal(number_of(store, "SELECT count(*) FROM thing"), 1);
}

static void what_is_not_committed_is_gone(void **state)
{
    struct store *store = open_store();
    struct err err = { 0 };

    assert_int_equal(store_begin(store, &err), 0);
    assert_int_equal(add(store, "one", STORE_NONE, STORE_NONE, &err), 0);
    assert_int_equal(number_of(store, "SELECT count(*) FROM thing"), 1);
    store_close(store);
    assert_int_equal(number_of(*state, "SELECT count(*) FROM thing"), 0);
}

static int stop_at_three(void *ctx, const struct store_row *row, struct err *err)
{
    (void)row;
    return ++*(int *)ctx < 3 ? 0 : err_set(err, ERR_INVALID, "enough");
}

static void a_walk_can_end_early(void **state)
{
    struct store *store = *state;
    struct err err = { 0 };
    int seen = 0;

    assert_int_equal(store_begin(store, &err), 0);
    for (int i = 0; i < 1000; i++) {
        char name[8];
        snprintf(name, sizeof(name), "n%d", i);
        assert_int_equal(add(store, name, STORE_INT(i), STORE_NONE, &err), 0);
    }
    assert_int_equal(store_commit(store, &err), 0);
    assert_int_equal(store_each(store, "SELECT a.name FROM thing a, thing b", STORE_NO_VALUES,
                                stop_at_three, &seen, &err),
                     -(int)ERR_INVALID);
    assert_int_equal(seen, 3);
    assert_string_equal(err.text, "enough");
    assert_int_equal(number_of(store, "SELECT count(*) FROM thing"), 1000);
}

/* More texts than are kept prepared. */
static void many_statements(void **state)
{
    struct store *store = *state;

    for (int i = 0; i < 400; i++) {
        char sql[64];
        snprintf(sql, sizeof(sql), "SELECT count(*) + %d FROM thing", i % 300);
        assert_int_equal(number_of(store, sql), i % 300);
    }
}

static void a_mistake_is_told(void **state)
{
    struct err err = { 0 };
    int64_t ignored;

    assert_true(
        store_number(*state, "SELECT nonsense FROM thing", STORE_NO_VALUES, 0, &ignored, &err) < 0);
    assert_non_null(strstr(err.text, "nonsense"));
    assert_int_equal(number_of(*state, "SELECT count(*) FROM thing"), 0);
}

static void urls(void **state)
{
    static const struct {
        const char *url, *shown;
    } rows[] = {
        { "sqlite:/a/b@c:d.db", "sqlite:/a/b@c:d.db" },
        { "postgresql://spur:se@cret@db1:5432/spur", "postgresql://spur@db1:5432/spur" },
        { "postgresql://spur@/spur?host=/run/pg&password=secret&sslmode=require",
          "postgresql://spur@/spur?host=/run/pg&sslmode=require" },
        { "postgresql:///spur?password=secret", "postgresql:///spur" },
        { "postgresql://h1,h2/spur", "postgresql://h1,h2/spur" },
    };
    struct store *store = NULL;
    struct err err = { 0 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(str_done) struct str shown = { 0 };
        CLEANUP(freep) char *hidden = mem_strdup(rows[i].url);
        store_add_shown(&shown, rows[i].url);
        assert_string_equal(str_text(&shown), rows[i].shown);
        store_hide_password(hidden);
        assert_string_equal(hidden, rows[i].shown);
    }
    assert_true(store_open("mysql://root:secret@h/x", &store, &err) < 0);
    assert_null(strstr(err.text, "secret"));
    assert_true(store_open("postgresql://spur:secret@[::1/x", &store, &err) < 0);
    assert_null(strstr(err.text, "secret"));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(values_come_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sums_and_words, set_up, tear_down),
        cmocka_unit_test_setup_teardown(text_is_in_the_order_of_its_bytes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(text_that_is_not_utf8_is_taken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_error_undoes_a_transaction, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_not_committed_is_gone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_walk_can_end_early, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_statements, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_mistake_is_told, set_up, tear_down),
        cmocka_unit_test(urls),
    };
    const char *server = getenv("SPUR_TEST_DATABASE");
    char path[] = "/tmp/spur-store.XXXXXX";
    int fd = mkstemp(path);

    snprintf(url, sizeof(url), "sqlite:%s", path);
    if (server)
        snprintf(url, sizeof(url), "%s", server);
    int code = cmocka_run_group_tests(tests, NULL, NULL);
    static const char *const ends[] = { "", "-wal", "-shm" };
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        CLEANUP(freep) char *file = mem_printf("%s%s", path, ends[i]);
        unlink(file);
    }
    close(fd);
    return code;
}
