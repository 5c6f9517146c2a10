/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_batch.c - the bytes of a batch, the snapshot file, the watermark, the payload index
 */
#include <fcntl.h>
#include <unistd.h>

#include "log/batch.h"
#include "log/payload_index.h"
#include "log/snapshot.h"
#include "log/watermark.h"
#include "sys/files.h"
#include "sys/rng.h"
#include "test/unit.h"

static const uint8_t digest_a[LOG_DIGEST_BYTES] = { 1, 2, 3 };
static const uint8_t digest_b[LOG_DIGEST_BYTES] = { 9, 9 };

static struct batch *sample(void)
{
    struct batch *batch = NEW(struct batch);
    struct log_payload two[] = { { digest_a, { "script", 6 } }, { digest_b, { "", 0 } } };

    batch->first = 10;
    batch_add(batch, (struct span){ "one", 3 }, NULL, 0);
    batch_add(batch, (struct span){ "twotwo", 6 }, two, 2);
    batch_add(batch, (struct span){ "", 0 }, NULL, 0);
    return batch;
}

static void what_goes_in_comes_out(void **state)
{
    struct batch *batch = sample();
    struct log_batch view = batch_view(batch, true);
    struct log_walk walk;
    struct log_entry entry;
    struct log_payload payload;

    (void)state;
    assert_true(batch_is_whole(&view));
    log_walk_init(&walk, &view);
    assert_true(log_walk_next(&walk, &entry));
    assert_int_equal(entry.index, 10);
    assert_memory_equal(entry.command.ptr, "one", 3);
    assert_false(log_walk_payload(&walk, &payload));
    assert_true(log_walk_next(&walk, &entry));
    assert_int_equal(entry.payload_count, 2);
    assert_true(log_walk_payload(&walk, &payload));
    assert_memory_equal(payload.digest, digest_a, LOG_DIGEST_BYTES);
    assert_memory_equal(payload.bytes.ptr, "script", 6);
    assert_true(log_walk_next(&walk, &entry)); /* the second payload is passed over */
    assert_int_equal(entry.index, 12);
    assert_int_equal(entry.command.len, 0);
    assert_false(log_walk_next(&walk, &entry));
    batch_free(batch);
}

static void damaged_bytes_are_never_followed_outside(void **state)
{
    struct batch *batch = sample();
    struct log_batch view = batch_view(batch, true);
    uint32_t crc = batch_crc(7, &view);

    (void)state;
    for (size_t bit = 0; bit < view.bytes.len * 8; bit++) {
        char *copy = mem_strndup("", 0);
        copy = mem_resize(copy, view.bytes.len);
        memcpy(copy, view.bytes.ptr, view.bytes.len);
        copy[bit / 8] = (char)(copy[bit / 8] ^ 1 << bit % 8);
        struct log_batch flipped = view;
        flipped.bytes.ptr = copy;
        batch_is_whole(&flipped); /* the sanitizer watches */
        assert_int_not_equal(batch_crc(7, &flipped), crc);
        free(copy);
    }
    for (size_t len = 0; len < view.bytes.len; len++) {
        struct log_batch cut = view;
        cut.bytes.len = len;
        assert_false(batch_is_whole(&cut));
    }
    batch_free(batch);
}

static void the_checksum_covers_place_and_past(void **state)
{
    struct batch *batch = sample();
    struct log_batch view = batch_view(batch, true), other = view;

    (void)state;
    uint32_t crc = batch_crc(7, &view);
    assert_int_not_equal(batch_crc(8, &view), crc);
    other.first++;
    assert_int_not_equal(batch_crc(7, &other), crc);
    other = view;
    other.epoch++;
    assert_int_not_equal(batch_crc(7, &other), crc);
    batch_free(batch);
}

static void the_index_follows_rows(void **state)
{
    enum { ROWS = 3000 };
    struct payload_index index = { 0 };
    const struct payload_place *place;
    uint64_t upto;
    uint8_t(*digests)[LOG_DIGEST_BYTES] = mem_new((size_t)ROWS * LOG_DIGEST_BYTES);

    (void)state;
    rng_seed(3);
    for (uint64_t row = 0; row < ROWS; row++) {
        struct batch batch = { .first = row + 1 };
        rng_bytes(digests[row], LOG_DIGEST_BYTES);
        struct log_payload payload = { digests[row], { "x", 1 } };
        batch_add(&batch, (struct span){ "c", 1 }, &payload, 1);
        struct log_batch view = batch_view(&batch, true);
        payload_index_add(&index, &view);
        str_done(&batch.bytes);
        if (row % 3 == 2) /* every third is gone soon */
            assert_true(payload_index_drop(&index, digests[row - 1]));
        if (row == 2000)
            payload_index_forget(&index, 1000);
    }
    for (uint64_t row = 0; row < ROWS; row++) {
        place = payload_index_get(&index, digests[row]);
        if (row < 1000 || row % 3 == 1) {
            assert_null(place);
        } else {
            assert_non_null(place);
            assert_int_equal(place->row, row + 1);
            assert_int_equal(place->offset, 8 + 1 + 32 + 4);
        }
    }
    assert_false(payload_index_drop(&index, digests[0]));
    assert_int_equal(payload_index_upto(&index, 1003, SIZE_MAX, &upto), 3);
    assert_int_equal(upto, 1003);
    assert_int_equal(payload_index_nth(&index, 2)->row, 1003);
    assert_int_equal(payload_index_upto(&index, 2000, 10, &upto), 10);
    assert_int_equal(upto, 1010);
    payload_index_forget(&index, upto);
    assert_null(payload_index_get(&index, digests[1009]));
    assert_int_equal(payload_index_get(&index, digests[1010])->row, 1011);
    payload_index_forget(&index, UINT64_MAX);
    assert_null(payload_index_get(&index, digests[ROWS - 1]));
    payload_index_done(&index);
    free(digests);
    rng_unseed();
}

/* Rows of several payloads go whole, and one that comes again is where it came last. */
static void the_index_takes_whole_rows(void **state)
{
    enum { ROWS = 400, EACH = 7, SAME = 3 };
    struct payload_index index = { 0 };
    uint8_t digests[ROWS * EACH][LOG_DIGEST_BYTES];
    uint64_t upto;

    (void)state;
    rng_seed(4);
    for (uint64_t row = 0; row < ROWS; row++) {
        struct batch batch = { .first = row + 1 };
        for (size_t i = 0; i < EACH; i++) {
            uint8_t *digest = digests[row * EACH + i];
            if (i == SAME)
                memset(digest, 0x77, LOG_DIGEST_BYTES);
            else
                rng_bytes(digest, LOG_DIGEST_BYTES);
            struct log_payload payload = { digest, { "x", 1 } };
            batch_add(&batch, (struct span){ "c", 1 }, &payload, 1);
        }
        struct log_batch view = batch_view(&batch, true);
        payload_index_add(&index, &view);
        str_done(&batch.bytes);
    }
    for (uint64_t from = 1; from <= ROWS; from = upto + 1) {
        size_t count = payload_index_upto(&index, ROWS, 10, &upto);
        assert_int_equal(count, (upto - from + 1) * EACH);
        assert_in_range(count, EACH, 2 * EACH);
        assert_int_equal(payload_index_get(&index, digests[SAME])->row, ROWS);
        payload_index_forget(&index, upto);
        for (uint64_t row = from; row <= MIN(upto + 1, ROWS); row++) {
            const struct payload_place *place =
                payload_index_get(&index, digests[(row - 1) * EACH]);
            assert_true(row <= upto ? !place : place && place->row == row);
        }
    }
    assert_null(payload_index_get(&index, digests[SAME]));
    assert_int_equal(payload_index_upto(&index, UINT64_MAX, 10, &upto), 0);
    payload_index_done(&index);
    rng_unseed();
}

static void make_snapshot(const char *dir, uint64_t index, const char *body, size_t repeat)
{
    struct snapshot_writer *writer;

    assert_int_equal(snapshot_create(dir, (struct log_point){ index, 77 }, &writer, NULL), 0);
    for (size_t i = 0; i < repeat; i++)
        assert_int_equal(snapshot_write(writer, body, strlen(body), NULL), 0);
    assert_int_equal(snapshot_finish(writer, NULL), 0);
}

static void a_snapshot_is_whole_or_refused(void **state)
{
    char dir[] = "/tmp/test-snapshot.XXXXXX", path[128];
    struct snapshot_reader *reader = NULL;
    struct snapshot_writer *writer;
    CLEANUP(str_done) struct str bytes = { 0 };
    uint64_t list[SNAPSHOT_MOST];
    char body[16];
    size_t count;

    (void)state;
    assert_non_null(mkdtemp(dir));
    make_snapshot(dir, 5, "0123456789", 100000); /* several buffers */
    make_snapshot(dir, 12, "0123456789", 1);
    assert_int_equal(snapshot_create(dir, (struct log_point){ 30, 1 }, &writer, NULL), 0);
    snapshot_write(writer, "x", 1, NULL);
    snapshot_abandon(writer);
    assert_int_equal(snapshot_list(dir, list, SNAPSHOT_MOST, &count, NULL), 0);
    assert_int_equal(count, 2);
    assert_int_equal(list[0], 12);
    assert_int_equal(list[1], 5);
    assert_int_equal(snapshot_list(dir, list, 1, &count, NULL), 0);
    assert_int_equal(count, 1);
    assert_int_equal(list[0], 12);

    assert_int_equal(snapshot_open(dir, 5, &reader, NULL), 0);
    assert_int_equal(snapshot_bytes(reader), 1000000);
    assert_int_equal(snapshot_point(reader).crc, 77);
    assert_int_equal(snapshot_read(reader, body, 10, NULL), 10);
    assert_memory_equal(body, "0123456789", 10);
    snapshot_close(reader);

    snprintf(path, sizeof(path), "%s/snapshot-%020d", dir, 12);
    assert_int_equal(file_read(path, 4096, &bytes, NULL), 0);
    for (size_t bit = 0; bit < bytes.len * 8; bit++) {
        bytes.data[bit / 8] = (char)(bytes.data[bit / 8] ^ 1 << bit % 8);
        assert_int_equal(file_write_quick(path, bytes.data, bytes.len, 0600, NULL), 0);
        int rc = snapshot_open(dir, 12, &reader, NULL);
        assert_true(rc == -(int)ERR_CORRUPT || rc == -(int)ERR_PROTOCOL_VERSION);
        bytes.data[bit / 8] = (char)(bytes.data[bit / 8] ^ 1 << bit % 8);
    }
    for (size_t len = 0; len < bytes.len; len += 7) {
        assert_int_equal(file_write_quick(path, bytes.data, len, 0600, NULL), 0);
        assert_int_equal(snapshot_open(dir, 12, &reader, NULL), -(int)ERR_CORRUPT);
    }
    assert_int_equal(file_remove_tree(dir, NULL), 0);
}

static void a_snapshot_being_written_survives_a_listing(void **state)
{
    char dir[] = "/tmp/test-snapshot.XXXXXX";
    struct snapshot_writer *writer;
    uint64_t list[SNAPSHOT_MOST];
    size_t count;

    (void)state;
    assert_non_null(mkdtemp(dir));
    make_snapshot(dir, 5, "old", 1);
    assert_int_equal(snapshot_create(dir, (struct log_point){ 9, 1 }, &writer, NULL), 0);
    snapshot_prune(dir, 5); /* the worker that trims behind the last one */
    assert_int_equal(snapshot_finish(writer, NULL), 0);
    assert_int_equal(snapshot_create(dir, (struct log_point){ 12, 1 }, &writer, NULL), 0);
    snapshot_remove_unfinished(dir); /* as after a crash */
    assert_true(snapshot_finish(writer, NULL) < 0);
    assert_int_equal(snapshot_list(dir, list, SNAPSHOT_MOST, &count, NULL), 0);
    assert_int_equal(count, 2);
    assert_int_equal(list[0], 9);
    assert_int_equal(file_remove_tree(dir, NULL), 0);
}

static void a_torn_watermark_leaves_the_other(void **state)
{
    char dir[] = "/tmp/test-mark.XXXXXX", zero[24] = { 0 };
    struct log_point point;

    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(watermark_open(dir, false, NULL), -(int)ERR_NOT_FOUND);
    int fd = watermark_open(dir, true, NULL);
    assert_true(fd >= 0);
    assert_int_equal(watermark_read(fd, &point, NULL), 0);
    assert_int_equal(point.index, 0);
    assert_int_equal(watermark_write(fd, (struct log_point){ 41, 5 }, 0, NULL), 0);
    assert_int_equal(watermark_write(fd, (struct log_point){ 42, 6 }, 1, NULL), 0);
    assert_int_equal(watermark_read(fd, &point, NULL), 0);
    assert_int_equal(point.index, 42);
    assert_int_equal(point.crc, 6);
    assert_int_equal(pwrite(fd, zero, 10, 4096 + 5), 10);
    assert_int_equal(watermark_read(fd, &point, NULL), 0);
    assert_int_equal(point.index, 41);
    assert_int_equal(pwrite(fd, zero, 24, 0), 24);
    assert_int_equal(watermark_read(fd, &point, NULL), -(int)ERR_CORRUPT);
    close(fd);
    assert_int_equal(file_remove_tree(dir, NULL), 0);
}

UNIT_MAIN(UNIT(what_goes_in_comes_out), UNIT(damaged_bytes_are_never_followed_outside),
          UNIT(the_checksum_covers_place_and_past), UNIT(the_index_follows_rows),
          UNIT(the_index_takes_whole_rows), UNIT(a_snapshot_is_whole_or_refused),
          UNIT(a_snapshot_being_written_survives_a_listing),
          UNIT(a_torn_watermark_leaves_the_other))
