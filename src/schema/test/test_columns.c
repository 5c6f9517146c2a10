// SPDX-License-Identifier: Apache-2.0
/*
 * test_columns.c - formats of -o and -O, file name patterns, JSON text
 */
#include <time.h>

#include "sample.h"
#include "schema/columns.h"
#include "schema/pattern.h"
#include "test/unit.h"

static void check(bool names, const char *format, const char *header, const char *row,
                  const char *unknown)
{
    struct field_ctx ctx = { .now_us = SAMPLE_START_US + 41 * INT64_C(1000000) };
    struct columns columns = { 0 };
    struct str out = { 0 }, wrong = { 0 };
    Job *job = sample_job(133);

    assert_int_equal(names ? columns_read_names(&columns, &job_fields, format, &wrong, NULL)
                           : columns_read_letters(&columns, &job_fields, format, &wrong, NULL),
                     0);
    columns_add_header(&columns, &out);
    assert_string_equal(str_text(&out), header);
    str_clear(&out);
    columns_add_row(&columns, job, &ctx, &out);
    assert_string_equal(str_text(&out), row);
    assert_string_equal(str_text(&wrong), unknown);
    columns_done(&columns);
    str_done(&out);
    str_done(&wrong);
    job__free_unpacked(job, NULL);
}

static void test_letters(void **state)
{
    check(false, "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R",
          "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n",
          "               133     batch twonodes    alice  R       0:41      2 node[2-3]\n", "");
    check(false, "job=%i name=%j", "job=JOBID name=NAME\n", "job=133 name=twonodes\n", "");
    check(false, "%.6i|%-10j|%.10j|%3u|%.2t|%N|%%", " JOBID|%-10j|      NAME|USE|ST|NODELIST|\n",
          "   133|%-10j|  twonodes|ali| R|node[2-3]|\n", "-\n");
    check(false, "%~", "%~\n", "%~\n", "~\n");
    check(false, "plain", "plain\n", "plain\n", "");
    check(false, "", "\n", "\n", "");
    check(false, "%", "%\n", "%\n", "");
    check(false, "%5", "%5\n", "%5\n", "");
}

static void test_names(void **state)
{
    check(true, "JobID: |,Name:|,State", "JOBID |NAME|STATE               \n",
          "133 |twonodes|RUNNING             \n", "");
    check(true, "jobid:10,NAME:.20,State:5,NodeList:.10",
          "JOBID                     NAMESTATE  NODELIST\n",
          "133                   twonodesRUNNI node[2-3]\n", "");
    check(true, "nosuchfield", "\n", "\n", "nosuchfield\n");
    check(true, "JobID,,nope:3,Name:4", "JOBID               NAME\n", "133                 twon\n",
          "nope\n");
}

static void test_every_name_listed_is_accepted(void **state)
{
    struct str names = { 0 }, wrong = { 0 };
    char *save = NULL;

    columns_add_names(&job_fields, &names);
    for (char *name = strtok_r(names.data, "\n", &save); name; name = strtok_r(NULL, "\n", &save)) {
        struct columns columns = { 0 };

        assert_int_equal(columns_read_names(&columns, &job_fields, name, &wrong, NULL), 0);
        assert_int_equal(columns.list.len, 1);
        columns_done(&columns);
    }
    assert_string_equal(str_text(&wrong), "");
    str_done(&names);
    str_done(&wrong);
}

static void test_too_many_columns_are_refused(void **state)
{
    struct columns columns = { 0 };
    struct str format = { 0 }, wrong = { 0 };
    struct err err = { 0 };

    for (int i = 0; i < COLUMNS_MAX + 1; i++)
        str_add(&format, "%i");
    assert_true(columns_read_letters(&columns, &job_fields, str_text(&format), &wrong, &err) < 0);
    assert_int_equal(err.code, ERR_TOO_MANY);
    columns_done(&columns);
    str_done(&format);
    str_done(&wrong);
}

static void test_patterns(void **state)
{
    static const struct {
        const char *text, *path;
    } cases[] = {
        { "slurm-%j.out", "slurm-137.out" },
        { "slurm-%A_%a.out", "slurm-136_7.out" },
        { "%5j_%b_%u_%x_%N_%n_%t_%s_%J_%r_%%", "00137_7_alice_nm_node5_0_0_batch_137_2_%" },
        { "%99999999999j", "0000000137" },
        { "%q%", "%q%" },
        { "\\%j\\x", "%jx" },
        { "", "" },
    };
    struct pattern_job job = { .job_id = 137,
                               .array_job_id = 136,
                               .array_task_id = 7,
                               .user = "alice",
                               .name = "nm",
                               .host = "node5.example.org",
                               .restarts = 2 };
    struct str out = { 0 };
    struct err err = { 0 };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        str_clear(&out);
        assert_int_equal(pattern_expand(cases[i].text, &job, &out, &err), 0);
        assert_string_equal(str_text(&out), cases[i].path);
    }
    job.step = "3";
    str_clear(&out);
    assert_int_equal(pattern_expand("%J-%s", &job, &out, &err), 0);
    assert_string_equal(str_text(&out), "137.3-3");

    str_clear(&out);
    for (int i = 0; i < 2000; i++)
        str_add(&out, "%x");
    {
        char *bomb = str_take(&out);

        job.name = "a name of some length";
        assert_true(pattern_expand(bomb, &job, &out, &err) < 0);
        assert_int_equal(err.code, ERR_TOO_LARGE);
        assert_int_equal(out.len, 0);
        free(bomb);
    }
    str_done(&out);
}

static int set_zone(void **state)
{
    setenv("TZ", "UTC", 1);
    tzset();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(test_letters),
        UNIT(test_names),
        UNIT(test_every_name_listed_is_accepted),
        UNIT(test_too_many_columns_are_refused),
        UNIT(test_patterns),
    };

    return cmocka_run_group_tests(tests, set_zone, NULL);
}
