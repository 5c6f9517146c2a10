/* SPDX-License-Identifier: Apache-2.0 */
/* Which components of a heterogeneous job a list names; which variables each has. */
#include "test/unit.h"

#include "schema/het.h"

static void lists(void **state)
{
    (void)state;
    static const struct {
        const char *text, *set;
    } good[] = {
        { "0", "0" },       { "2", "2" },     { "0,4", "0,4" },    { "1,3-5", "1,3-5" },
        { "0-1,1", "0-1" }, { "127", "127" }, { " 1 , 2", "1-2" }, { "3-3", "3" },
    };
    static const char *const bad[] = {
        "", ",", "x", "1-", "-1", "3-1", "128", "0-128", "1;2", "1.5"
    };

    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        CLEANUP(str_done) struct str text = { 0 };
        struct bitset set;
        assert_int_equal(het_read_list(good[i].text, &set, NULL), 0);
        bitset_format(&set, &text);
        assert_string_equal(str_text(&text), good[i].set);
        bitset_done(&set);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err err = { 0 };
        struct bitset set;
        assert_true(het_read_list(bad[i], &set, &err) < 0);
        assert_int_equal(err.code, ERR_INVALID);
        bitset_done(&set);
    }
}

static void names(void **state)
{
    (void)state;
    assert_true(het_has_name("SLURM_JOB_ID", 12));
    assert_true(het_has_name("SLURM_NTASKS=4", 12));
    assert_false(het_has_name("SLURM_JOBID", 11)); /* the same in all components */
    assert_false(het_has_name("SLURM_JOB_I", 11));
    for (size_t i = 1; i < het_name_count; i++)
        assert_true(strcmp(het_names[i - 1], het_names[i]) < 0);
}

UNIT_MAIN(UNIT(lists), UNIT(names))
