/* SPDX-License-Identifier: Apache-2.0 */
/* Every error has a text, a status for each protocol, and survives wrapping. */
#include "test/unit.h"

#include <errno.h>

#include "base/err.h"

static void every_row_is_whole(void **state)
{
    (void)state;
    for (int code = 1; code < ERR_COUNT; code++) {
        assert_true(err_text((enum err_code)code)[0] != '\0');
        assert_true(err_grpc((enum err_code)code) != GRPC_OK);
        assert_true(err_http((enum err_code)code) >= 400);
        int slurm = err_slurm((enum err_code)code);
        assert_true(slurm == 0 || slurm >= 1000);
    }
    assert_int_equal(err_from_slurm(2017), ERR_INVALID_JOB_ID);
    assert_int_equal(err_from_slurm(0), ERR_OK);
    assert_int_equal(err_slurm((enum err_code)9999), 2090);
}

static void wraps_from_inside_out(void **state)
{
    (void)state;
    struct err err = { 0 };

    assert_int_equal(err_set(&err, ERR_NOT_FOUND, "no such file"), -ERR_NOT_FOUND);
    assert_int_equal(err_wrap(&err, "batch script '%s'", "x.sh"), -ERR_NOT_FOUND);
    assert_string_equal(err.text, "batch script 'x.sh': no such file");
    assert_int_equal(err_set(NULL, ERR_IO, "x"), -ERR_IO);
    for (int i = 0; i < 100; i++)
        err_wrap(&err, "a longer and longer prefix");
    assert_true(strlen(err.text) < sizeof(err.text));
}

static void errno_chooses_the_code(void **state)
{
    (void)state;
    struct err err;

    assert_int_equal(err_errno(&err, ENOSPC, "write '%s'", "/x"), -ERR_DISK_FULL);
    assert_string_equal(err.text, "write '/x': No space left on device");
    assert_int_equal(err_errno(&err, EACCES, "open"), -ERR_PERMISSION);
    assert_int_equal(err_errno(&err, EIO, "open"), -ERR_IO);
}

UNIT_MAIN(UNIT(every_row_is_whole), UNIT(wraps_from_inside_out), UNIT(errno_chooses_the_code))
