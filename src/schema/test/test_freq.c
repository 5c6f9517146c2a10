/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_freq.c - the texts of --cpu-freq
 */
#include <string.h>

#include "schema/freq.h"
#include "test/unit.h"

static void test_good(void **state)
{
    static const struct {
        const char *text, *shown, *governor;
    } cases[] = {
        { "low", "Low", "UserSpace" },
        { "Medium", "Medium", "UserSpace" },
        { "highm1", "Highm1", "UserSpace" },
        { "HIGH", "High", "UserSpace" },
        { "2400000", "2400000", "UserSpace" },
        { "3", "Low", "UserSpace" },
        { "performance", "Performance", "Performance" },
        { "low-high", "Low-High", NULL },
        { "1200000-2400000:ondemand", "1200000-2400000:OnDemand", "OnDemand" },
        { "1200000-high:UserSpace", "1200000-High:UserSpace", "UserSpace" },
        { "highm1-high", "Highm1-High", NULL },
        { "high-high", "High-High", NULL },
        { "", "", NULL },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct freq freq;
        struct err err = { 0 };
        struct str text = { 0 };
        assert_int_equal(freq_read(cases[i].text, &freq, &err), 0);
        freq_add(&freq, &text);
        assert_string_equal(str_text(&text), cases[i].shown);
        assert_true(str_eq(freq.governor, cases[i].governor));
        str_done(&text);
    }
}

static void test_bad(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        { "foo", "unrecognized --cpu-freq argument \"foo\"" },
        { "0", "unrecognized --cpu-freq argument \"0\"" },
        { "123-foo", "unrecognized --cpu-freq argument \"foo\"" },
        { "high-low", "min cpu-frec (high) must be < max cpu-freq (low)" },
        { "low-123", "min cpu-frec (low) must be < max cpu-freq (123)" },
        { "performance-200", "min cpu-frec (performance) must be < max cpu-freq (200)" },
        { "low-high:foo", "illegal governor: foo on --cpu-freq" },
        { "low:performance", "gov on cpu-frec (performance) illegal without max" },
        { "conservative:low",
          "governor cannot be specified twice conservative{-}:low in --cpu-freq" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct freq freq;
        struct err err = { 0 };
        assert_true(freq_read(cases[i].text, &freq, &err) < 0);
        assert_string_equal(err.text, cases[i].why);
    }
}

static void test_allowed(void **state)
{
    struct freq freq;
    struct err err = { 0 };

    (void)state;
    freq_read("powersave", &freq, &err);
    assert_true(freq_allowed(&freq, "OnDemand,Performance", &err) < 0);
    assert_string_equal(err.text, "governor of powersave is not allowed in slurm.conf");
    assert_int_equal(freq_allowed(&freq, "OnDemand,PowerSave", &err), 0);
    freq_read("low", &freq, &err);
    assert_int_equal(freq_allowed(&freq, "OnDemand", &err), 0);
    freq_read("low-high:userspace", &freq, &err);
    assert_true(freq_allowed(&freq, "OnDemand", &err) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_allowed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
