/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_uv.c - a log on a libuv loop: one turn's commands travel together
 */
#include "log/log_uv.h"
#include "log/test/recorder.h"

static struct log_uv *binding;
static struct recorder rec;
static struct log *durable;
static uv_timer_t timer;
static unsigned turns;

static void wake_loop(void *ctx)
{
    (void)ctx;
    log_uv_wake(binding);
}

static void each_turn(uv_timer_t *handle)
{
    if (rec.seen.len == 500) {
        uv_close((uv_handle_t *)handle, NULL);
        return;
    }
    for (uint64_t i = 1; i <= 50 && turns < 10; i++)
        assert_int_equal(append_number(durable, turns * 50 + i, 10, NULL), 0);
    turns++;
}

static void turns_become_batches(void **state)
{
    struct log_owner owner = recorder_owner;
    struct log_status status;
    uv_loop_t loop;

    (void)state;
    owner.wake = wake_loop;
    struct log_config config = {
        .dir = test_dir, .name = "c1", .owner = &owner, .owner_ctx = &rec
    };
    recorder_init(&rec);
    assert_int_equal(uv_loop_init(&loop), 0);
    binding = log_uv_new(&loop);
    durable = log_sqlite_new(&config);
    log_uv_bind(binding, durable);
    assert_int_equal(log_start(durable, NULL), 0);
    uv_timer_init(&loop, &timer);
    uv_timer_start(&timer, each_turn, 1, 1);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_counts_from_one(&rec, 500);
    log_status(durable, &status);
    assert_in_range(status.commits, 1, 10);
    log_free(durable);
    log_uv_close(binding);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    recorder_done(&rec);
}

UNIT_MAIN(cmocka_unit_test_setup_teardown(turns_become_batches, make_dir, remove_dir))
