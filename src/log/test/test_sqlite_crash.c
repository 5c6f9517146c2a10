/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sqlite_crash.c - kill -9 at any moment loses nothing that was acknowledged
 *
 * A child writes, snapshots and trims; what was applied it tells through a pipe. The parent kills
 * it, recovers, compares, and lets the next child go on from there.
 */
#include <signal.h>
#include <sys/wait.h>

#include "log/test/recorder.h"
#include "sys/rng.h"

/* SPUR_ROUNDS=N asks for more. */
static uint64_t rounds(void)
{
    const char *text = getenv("SPUR_ROUNDS");
    uint64_t count = 25;

    if (text)
        assert_true(str_to_u64(text, 1000000, &count));
    return count;
}

static void child_main(int pipe_fd, uint64_t seed)
{
    struct recorder rec;
    struct err err;
    uint64_t told = 0;

    rng_seed(seed);
    recorder_init(&rec);
    struct log *log = open_log(test_dir, &rec, 0);
    if (log_start(log, &err) < 0) {
        fprintf(stderr, "child: %s\n", err.text);
        _exit(3);
    }
    for (uint64_t next = rec.seen.len + 1;;) {
        uint64_t burst = 1 + rng_below(20);
        for (uint64_t i = 0; i < burst; i++)
            append_number(log, next++, rng_below(3) ? 500 : 20000, &err);
        log_flush(log);
        if (rng_below(4) == 0) /* else the next burst meets a batch in flight */
            settle(log, &rec, next - 1);
        log_poll(log);
        if (rec.failed)
            _exit(4);
        if (rec.seen.len > told) {
            told = rec.seen.len;
            if (write(pipe_fd, &told, sizeof(told)) != sizeof(told))
                _exit(0);
        }
        if (rng_below(30) == 0)
            take_snapshot(log, &rec);
    }
}

static uint64_t run_and_kill(uint64_t seed)
{
    uint64_t acknowledged = 0, told;
    int ends[2], status;

    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        child_main(ends[1], seed);
    }
    close(ends[1]);
    usleep((useconds_t)rng_below(80000));
    kill(pid, SIGKILL);
    while (read(ends[0], &told, sizeof(told)) == sizeof(told))
        acknowledged = told;
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFSIGNALED(status))
        fail_msg("the child ended by itself: 0x%x", status);
    return acknowledged;
}

static void nothing_acknowledged_is_lost(void **state)
{
    struct recorder rec;
    struct err err;
    uint64_t before = 0, count = rounds();

    (void)state;
    rng_seed(20261115);
    for (uint64_t round = 0; round < count; round++) {
        uint64_t acknowledged = run_and_kill(round);
        recorder_init(&rec);
        struct log *log = open_log(test_dir, &rec, 0);
        if (log_start(log, &err) < 0)
            fail_msg("round %d: %s", (int)round, err.text);
        assert_true(rec.seen.len >= MAX(acknowledged, before));
        assert_counts_from_one(&rec, rec.seen.len); /* none twice, none missing between */
        before = rec.seen.len;
        log_free(log);
        recorder_done(&rec);
    }
    print_message("%llu rounds, %llu commands, lost 0\n", (unsigned long long)count,
                  (unsigned long long)before);
    assert_true(before > count);
}

UNIT_MAIN(cmocka_unit_test_setup_teardown(nothing_acknowledged_is_lost, make_dir, remove_dir))
