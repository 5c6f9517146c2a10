/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_convert.c - from one controller to several and back, nothing lost on the way
 */
#include <fcntl.h>
#include <poll.h>

#include "log/convert.h"
#include "log/etcd.h"
#include "log/etcd_model.h"
#include "log/test/recorder.h"

enum { LEN = 500 };

static struct etcd_model *model;

static struct log *open_etcd(struct recorder *rec)
{
    struct log_config config = {
        .dir = test_dir, .name = "c1", .owner = &recorder_owner, .owner_ctx = rec
    };
    struct etcd_options options = { .io = &etcd_model_io,
                                    .io_ctx = etcd_model_client(model),
                                    .prefix = "/spur/test",
                                    .controllers = 1,
                                    .bootstrap = true };

    return log_etcd_new(&config, &options, NULL);
}

/* Model time, and what the threads of the log have to say. */
static void run_etcd(struct log *log, struct recorder *rec, int64_t ms)
{
    int64_t end = etcd_model_now(model) + ms;
    struct pollfd awake = { rec->wake[0], POLLIN, 0 };
    char bytes[64];

    while (etcd_model_now(model) < end && etcd_model_step(model)) {
        if (poll(&awake, 1, 0) > 0 && read(rec->wake[0], bytes, sizeof(bytes)) > 0)
            log_poll(log);
    }
}

static void append_and_check(struct log *log, struct recorder *rec, uint64_t count, bool etcd)
{
    uint64_t from = rec->seen.len;

    for (uint64_t i = 1; i <= count; i++) {
        assert_int_equal(append_number(log, from + i, LEN, NULL), 0);
        if (i % 10 == 0 && etcd) {
            log_flush(log);
            run_etcd(log, rec, 100);
        } else if (i % 10 == 0) {
            settle(log, rec, from + i);
        }
    }
    assert_counts_from_one(rec, from + count);
}

static void check_payloads(struct log *log, uint64_t count)
{
    struct err err;

    for (uint64_t i = 1; i <= count; i++) {
        if (check_payload(log, i, LEN, &err) < 0)
            fail_msg("payload %llu: %s", (unsigned long long)i, err.text);
    }
}

/* A snapshot of the very end, as the owner takes before it converts. */
static struct log_point snapshot_the_end(struct log *log, const struct recorder *rec)
{
    struct snapshot_writer *writer;
    struct log_point point = log_point(log);

    assert_int_equal(snapshot_create(test_dir, point, &writer, NULL), 0);
    snapshot_write(writer, rec->seen.items, rec->seen.len * sizeof(uint64_t), NULL);
    assert_int_equal(snapshot_finish(writer, NULL), 0);
    return point;
}

static void there_and_back(void **state)
{
    struct recorder rec;
    struct log_point point;
    struct err err;

    (void)state;
    model = etcd_model_new(1);
    recorder_init(&rec);
    assert_int_equal(fcntl(rec.wake[0], F_SETFL, 0), 0);
    struct log *log = open_log(test_dir, &rec, 0);
    assert_int_equal(log_start(log, NULL), 0);
    append_and_check(log, &rec, 30, false);
    take_snapshot(log, &rec);
    append_and_check(log, &rec, 30, false);
    take_snapshot(log, &rec);
    append_and_check(log, &rec, 40, false);
    point = snapshot_the_end(log, &rec);
    struct log_point wrong = { point.index, point.crc + 1 };
    assert_int_equal(convert_to_etcd(test_dir, point, record_live, &rec, &err), -(int)ERR_EXISTS);
    log_free(log);
    assert_int_equal(convert_to_etcd(test_dir, wrong, record_live, &rec, &err), -(int)ERR_CORRUPT);
    if (convert_to_etcd(test_dir, point, record_live, &rec, &err) < 0)
        fail_msg("%s", err.text);

    vec_clear(&rec.seen);
    log = open_etcd(&rec);
    assert_int_equal(log_start(log, &err), 0);
    assert_counts_from_one(&rec, 100);
    run_etcd(log, &rec, 3000);
    assert_int_equal(rec.role, LOG_LEADS);
    assert_false(rec.failed);
    check_payloads(log, 100);
    append_and_check(log, &rec, 50, true);
    check_payloads(log, 150);
    /* Also what is still in memory goes with it: the snapshot makes it durable. */
    point = snapshot_the_end(log, &rec);
    assert_int_equal(log_snapshot_taken(log, point, &err), 0);
    struct log_status status;
    for (log_status(log, &status); status.snapshot != point.index; log_status(log, &status)) {
        char byte;
        assert_int_equal(read(rec.wake[0], &byte, 1), 1);
        log_poll(log);
    }
    log_free(log);
    if (convert_to_sqlite(test_dir, point, record_live, &rec, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(convert_to_sqlite(test_dir, point, record_live, &rec, &err),
                     -(int)ERR_NOT_FOUND); /* done already, and not done again over it */

    vec_clear(&rec.seen);
    log = open_log(test_dir, &rec, 0);
    if (log_start(log, &err) < 0)
        fail_msg("%s", err.text);
    assert_counts_from_one(&rec, 150);
    append_and_check(log, &rec, 20, false);
    check_payloads(log, 170);
    log_free(log);
    recorder_done(&rec);
    etcd_model_free(model);
}

UNIT_MAIN(cmocka_unit_test_setup_teardown(there_and_back, make_dir, remove_dir))
