/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_memory.c - the log that a simulation owns
 */
#include "log/memory.h"
#include "log/test/recorder.h"

static struct log *start_on(struct memory_disk *disk, struct recorder *rec)
{
    struct log_config config = {
        .dir = "/nowhere", .name = "c1", .owner = &recorder_owner, .owner_ctx = rec
    };
    struct log *log = log_memory_new(&config, disk);

    recorder_init(rec);
    assert_int_equal(log_start(log, NULL), 0);
    return log;
}

static void the_simulation_decides(void **state)
{
    struct memory_disk *disk = memory_disk_new();
    struct recorder rec;
    struct log *log = start_on(disk, &rec);

    (void)state;
    append_number(log, 1, 10, NULL);
    assert_false(memory_in_flight(log));
    log_flush(log);
    assert_true(memory_in_flight(log));
    append_number(log, 99, 0, NULL); /* fills meanwhile */
    log_flush(log);
    log_poll(log);
    assert_int_equal(rec.seen.len, 0);
    memory_settle(log, MEMORY_COMMIT);
    log_poll(log); /* delivers, and sends the next */
    assert_counts_from_one(&rec, 1);
    assert_true(memory_in_flight(log));
    memory_settle(log, MEMORY_FULL);
    log_poll(log);
    assert_int_equal(rec.refused, 1);
    assert_int_equal(rec.refused_for, ERR_DISK_FULL);
    append_number(log, 2, 10, NULL);
    log_flush(log);
    memory_crash(log, true);
    recorder_done(&rec);

    log = start_on(disk, &rec);
    assert_counts_from_one(&rec, 2);
    assert_int_equal(check_payload(log, 2, 10, NULL), 0);
    append_number(log, 3, 10, NULL);
    log_flush(log);
    memory_crash(log, false);
    recorder_done(&rec);

    log = start_on(disk, &rec);
    assert_counts_from_one(&rec, 2);
    append_number(log, 3, 10, NULL);
    log_flush(log);
    memory_settle(log, MEMORY_BROKEN);
    log_poll(log);
    assert_true(rec.failed);
    log_free(log);
    recorder_done(&rec);
    memory_disk_free(disk);
}

static void snapshots_trim_and_restore(void **state)
{
    struct memory_disk *disk = memory_disk_new();
    struct recorder rec;
    struct log *log = start_on(disk, &rec);
    struct log_status status;

    (void)state;
    memory_auto(log, true);
    for (uint64_t i = 1; i <= 30; i++) {
        append_number(log, i, 10, NULL);
        log_flush(log);
        log_poll(log);
        if (i % 10 == 0) {
            CLEANUP(str_done) struct str bytes = { 0 };
            struct snapshot_writer *writer = snapshot_create_memory(log_point(log), &bytes);
            snapshot_write(writer, rec.seen.items, rec.seen.len * sizeof(uint64_t), NULL);
            assert_int_equal(snapshot_finish(writer, NULL), 0);
            memory_disk_snapshot(disk, log_point(log), (struct span){ bytes.data, bytes.len });
            assert_int_equal(log_snapshot_taken(log, log_point(log), NULL), 0);
        }
    }
    log_status(log, &status);
    assert_int_equal(status.first, 21);
    assert_int_equal(check_payload(log, 3, 10, NULL), 0);
    memory_crash(log, false);
    recorder_done(&rec);
    log = start_on(disk, &rec);
    assert_counts_from_one(&rec, 30);
    assert_int_equal(rec.restored, 30);
    log_free(log);
    recorder_done(&rec);
    memory_disk_free(disk);
}

UNIT_MAIN(UNIT(the_simulation_decides), UNIT(snapshots_trim_and_restore))
