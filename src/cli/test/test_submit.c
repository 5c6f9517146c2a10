// SPDX-License-Identifier: Apache-2.0
/*
 * test_submit.c - the environment that --export lets through
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/limits.h"
#include "cli/submit.h"
#include "test/unit.h"

static char *environment[] = {
    (char *)"A=1",       (char *)"B=2",       (char *)"PATH=/bin",
    (char *)"SLURM_X=s", (char *)"SPANK_Y=p", NULL,
};

static void check(const char *export, const char *want, bool login)
{
    struct submit_env from = { .export = export, .env = environment };
    JobPayload payload = JOB_PAYLOAD__INIT;
    struct arena arena;
    struct str got = { 0 };
    struct err err = { 0 };

    arena_init(&arena);
    assert_int_equal(submit_env(&from, &arena, &payload, &err), 0);
    for (size_t i = 0; i < payload.n_env; i++)
        str_addf(&got, "%s%.*s", i ? " " : "", (int)payload.env[i].len, payload.env[i].data);
    assert_string_equal(str_text(&got), want);
    assert_int_equal(payload.get_user_env, login);
    str_done(&got);
    arena_done(&arena);
}

static void test_export_in_all_forms(void **state)
{
    check(NULL, "A=1 B=2 PATH=/bin SLURM_X=s SPANK_Y=p", false);
    check("ALL", "A=1 B=2 PATH=/bin SLURM_X=s SPANK_Y=p SLURM_EXPORT_ENV=ALL", false);
    check("NIL", "SLURM_X=s SPANK_Y=p SLURM_EXPORT_ENV=NIL", false);
    check("NONE", "SLURM_X=s SPANK_Y=p SLURM_GET_USER_ENV=1 SLURM_EXPORT_ENV=NONE", true);
    check("A", "SLURM_X=s SPANK_Y=p A=1 SLURM_GET_USER_ENV=1 SLURM_EXPORT_ENV=A", true);
    check("A=9,NEW=x y",
          "SLURM_X=s SPANK_Y=p A=9 NEW=x y SLURM_GET_USER_ENV=1 SLURM_EXPORT_ENV=A=9,NEW=x y",
          true);
    check(
        "ALL,A=9,MISSING",
        "A=9 B=2 PATH=/bin SLURM_X=s SPANK_Y=p SLURM_GET_USER_ENV=1 SLURM_EXPORT_ENV=ALL,A=9,MISSING",
        true);
    check("L='a,b',M=c",
          "SLURM_X=s SPANK_Y=p L=a,b M=c SLURM_GET_USER_ENV=1 SLURM_EXPORT_ENV=L='a,b',M=c", true);
}

static void test_export_file_replaces_the_environment(void **state)
{
    char path[] = "/tmp/spur-export-XXXXXX";
    int fd = mkstemp(path);
    struct submit_env from = { .export_file = path, .env = environment, .submit_dir = "/d" };
    JobPayload payload = JOB_PAYLOAD__INIT;
    struct arena arena;
    struct err err = { 0 };

    assert_true(fd >= 0);
    assert_int_equal(write(fd, "X=1\0Y=a\nb\0junk\0", 15), 15);
    close(fd);
    arena_init(&arena);
    assert_int_equal(submit_env(&from, &arena, &payload, &err), 0);
    assert_int_equal(payload.n_env, 3);
    assert_string_equal((char *)payload.env[1].data, "Y=a\nb");
    assert_string_equal((char *)payload.env[2].data, "SLURM_SUBMIT_DIR=/d");
    unlink(path);
    from.export_file = "/nonexistent/file";
    assert_true(submit_env(&from, &arena, &payload, &err) < 0);
    assert_string_equal(err.text, "Could not open user environment file /nonexistent/file");
    arena_done(&arena);
}

static void test_environment_is_bounded(void **state)
{
    char *huge = malloc(LIMIT_ENV_BYTES + 16);
    char *list[] = { huge, NULL };
    struct submit_env from = { .env = list };
    JobPayload payload = JOB_PAYLOAD__INIT;
    struct arena arena;
    struct err err = { 0 };

    memset(huge, 'x', LIMIT_ENV_BYTES + 8);
    memcpy(huge, "X=", 2);
    huge[LIMIT_ENV_BYTES + 8] = '\0';
    arena_init(&arena);
    assert_true(submit_env(&from, &arena, &payload, &err) < 0);
    arena_done(&arena);
    free(huge);
}

static void test_rlimits_by_name(void **state)
{
    JobPayload payload = JOB_PAYLOAD__INIT;
    struct arena arena;

    arena_init(&arena);
    submit_rlimits(NULL, &arena, &payload);
    assert_true(payload.n_rlimits >= 9);
    payload = (JobPayload)JOB_PAYLOAD__INIT;
    submit_rlimits("NONE", &arena, &payload);
    assert_int_equal(payload.n_rlimits, 0);
    submit_rlimits("STACK,RLIMIT_NOFILE", &arena, &payload);
    assert_int_equal(payload.n_rlimits, 2);
    assert_string_equal(payload.rlimits[1]->name, "NOFILE");
    arena_done(&arena);
}

UNIT_MAIN(UNIT(test_export_in_all_forms), UNIT(test_export_file_replaces_the_environment),
          UNIT(test_environment_is_bounded), UNIT(test_rlimits_by_name))
