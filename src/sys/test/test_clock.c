/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_clock.c - clock, rng, host, signals
 */
#include <signal.h>

#include "sys/clock.h"
#include "sys/host.h"
#include "sys/rng.h"
#include "sys/signals.h"
#include "test/unit.h"

static void real_clocks_go_forward(void **state)
{
    char id[CLOCK_BOOT_ID_BYTES];
    int64_t mono = clock_mono_us(), boot = clock_boot_us();

    (void)state;
    assert_true(clock_wall_us() > INT64_C(1700000000000000));
    assert_true(clock_mono_us() >= mono);
    assert_true(boot >= mono);
    assert_int_equal(clock_boot_id(id, NULL), 0);
    assert_int_equal(strlen(id), 36);
}

static int64_t fixed(void *ctx)
{
    return *(int64_t *)ctx;
}

static int fixed_id(void *ctx, char out[CLOCK_BOOT_ID_BYTES], struct err *err)
{
    (void)ctx, (void)err;
    snprintf(out, CLOCK_BOOT_ID_BYTES, "simulated");
    return 0;
}

static void a_simulation_owns_time(void **state)
{
    static const struct clock_ops ops = { fixed, fixed, fixed, fixed_id };
    char id[CLOCK_BOOT_ID_BYTES];
    int64_t now = 42;

    (void)state;
    clock_use(&ops, &now);
    assert_int_equal(clock_wall_us(), 42);
    now = 43;
    assert_int_equal(clock_boot_us(), 43);
    assert_int_equal(clock_boot_id(id, NULL), 0);
    assert_string_equal(id, "simulated");
    clock_use(NULL, NULL);
    assert_int_not_equal(clock_wall_us(), 43);
}

static void a_seed_decides_every_byte(void **state)
{
    uint64_t first[4], again[4];

    (void)state;
    rng_seed(7);
    rng_bytes(first, sizeof(first));
    rng_seed(7);
    rng_bytes(again, sizeof(again));
    assert_memory_equal(first, again, sizeof(first));
    rng_seed(8);
    assert_int_not_equal(rng_u64(), first[0]);
    rng_unseed();
    assert_int_not_equal(rng_u64(), rng_u64());
}

static void rng_below_is_even(void **state)
{
    unsigned counts[3] = { 0, 0, 0 };

    (void)state;
    rng_seed(1);
    for (int i = 0; i < 30000; i++)
        counts[rng_below(3)]++;
    for (int i = 0; i < 3; i++)
        assert_in_range(counts[i], 9500, 10500);
    assert_int_equal(rng_below(1), 0);
    rng_unseed();
}

static void host_short_name_ends_at_the_dot(void **state)
{
    char name[HOST_NAME_BYTES];

    (void)state;
    host_name(name);
    assert_true(name[0]);
    host_use("n1.example.org");
    host_short(name);
    assert_string_equal(name, "n1");
    host_use(NULL);
}

static void signals_have_names(void **state)
{
    static const struct {
        const char *text;
        int sig;
    } good[] = {
        { "9", 9 },         { "KILL", 9 },      { "SIGKILL", 9 },  { "sigusr1", SIGUSR1 },
        { "rtmin+3", 37 },  { "SIGRTMAX", 64 }, { "RTMAX-1", 63 }, { "64", 64 },
        { "CLD", SIGCHLD }, { "RTMIN+16", 50 },
    };
    static const char *const bad[] = { "", "65", "KIL", "-9", "9x", "SIG", "RTMIN+99", "RTMAX-40" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        assert_int_equal(signals_parse(good[i].text), good[i].sig);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(signals_parse(bad[i]), 0);
    for (int sig = 1; sig <= 64; sig++) {
        if (sig != 32 && sig != 33)
            assert_int_equal(signals_parse(signals_name(sig)), sig);
    }
    assert_string_equal(signals_name(99), "?");
}

UNIT_MAIN(UNIT(real_clocks_go_forward), UNIT(a_simulation_owns_time),
          UNIT(a_seed_decides_every_byte), UNIT(rng_below_is_even),
          UNIT(host_short_name_ends_at_the_dot), UNIT(signals_have_names))
