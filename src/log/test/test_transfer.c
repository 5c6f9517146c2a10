/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_transfer.c - a snapshot or payload from a peer is taken whole, or not at all
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/limits.h"
#include "base/vec.h"
#include "log/snapshot.h"
#include "log/transfer.h"
#include "sys/digest.h"
#include "sys/files.h"

enum { INDEX = 77, BODY = 700 * 1000 };

static char from[] = "/tmp/test-transfer-a.XXXXXX", to[] = "/tmp/test-transfer-b.XXXXXX";

struct chunk {
    PeerSnapshotChunk msg;
    uint8_t *data;
    uint8_t sum[32];
};
static VEC(struct chunk) chunks;

static void copy_chunks(void)
{
    struct transfer_out *out = NULL;
    PeerSnapshotChunk msg;
    int rc;

    assert_int_equal(transfer_open(from, INDEX, &out, NULL), 0);
    while ((rc = transfer_next(out, &msg, NULL)) == 1) {
        struct chunk chunk = { .msg = msg, .data = malloc(msg.data.len) };
        memcpy(chunk.data, msg.data.data, msg.data.len);
        if (msg.has_sha256)
            memcpy(chunk.sum, msg.sha256.data, 32);
        vec_push(&chunks, chunk);
    }
    assert_int_equal(rc, 0);
    for (size_t i = 0; i < chunks.len; i++) {
        chunks.items[i].msg.data.data = chunks.items[i].data;
        chunks.items[i].msg.sha256.data = chunks.items[i].sum;
    }
    transfer_close(out);
}

static int set_up(void **state)
{
    struct snapshot_writer *writer = NULL;
    uint8_t *body = malloc(BODY);

    (void)state;
    assert_non_null(mkdtemp(from));
    assert_non_null(mkdtemp(to));
    for (size_t i = 0; i < BODY; i++)
        body[i] = (uint8_t)(i * 31 >> 3);
    assert_int_equal(snapshot_create(from, (struct log_point){ INDEX, 5 }, &writer, NULL), 0);
    assert_int_equal(snapshot_write(writer, body, BODY, NULL), 0);
    assert_int_equal(snapshot_finish(writer, NULL), 0);
    free(body);
    copy_chunks();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (size_t i = 0; i < chunks.len; i++)
        free(chunks.items[i].data);
    vec_done(&chunks);
    file_remove_tree(from, NULL);
    file_remove_tree(to, NULL);
    return 0;
}

static size_t files_in(const char *dir)
{
    DIR *entries = opendir(dir);
    size_t count = 0;

    while (readdir(entries))
        count++;
    closedir(entries);
    return count - 2;
}

static void a_snapshot_arrives_whole(void **state)
{
    struct transfer_in *in = NULL;
    struct snapshot_reader *reader = NULL;
    uint64_t index = 0;

    (void)state;
    assert_int_equal(chunks.len, 3); /* 256 KB each */
    assert_int_equal(transfer_begin(to, INDEX - 1, &in, NULL), 0);
    for (size_t i = 0; i < chunks.len; i++)
        assert_int_equal(transfer_take(in, &chunks.items[i].msg, NULL), 0);
    assert_int_equal(transfer_finish(in, &index, NULL), 0);
    assert_int_equal(index, INDEX);
    assert_int_equal(files_in(to), 1);
    assert_int_equal(snapshot_open(to, INDEX, &reader, NULL), 0);
    assert_int_equal(snapshot_point(reader).crc, 5);
    assert_int_equal(snapshot_bytes(reader), BODY);
    snapshot_close(reader);
    snapshot_remove(to, INDEX);
}

static void a_transfer_that_breaks_leaves_nothing(void **state)
{
    struct err err = { 0 };

    (void)state;
    for (size_t some = 0; some < chunks.len; some++) {
        struct transfer_in *in = NULL;
        uint64_t index = 0;
        assert_int_equal(transfer_begin(to, 1, &in, NULL), 0);
        for (size_t i = 0; i < some; i++)
            assert_int_equal(transfer_take(in, &chunks.items[i].msg, NULL), 0);
        assert_int_equal(transfer_finish(in, &index, &err), -(int)ERR_CONNECTION_LOST);
        assert_int_equal(index, 0);
        assert_int_equal(files_in(to), 0);
    }
    assert_int_equal(transfer_open(from, INDEX + 1, NULL, &err), -(int)ERR_NOT_FOUND);
}

/* What a peer may send instead of the right piece `at`; each must be refused there. */
static void to_older(PeerSnapshotChunk *msg)
{
    msg->index = 3;
}
static void to_another(PeerSnapshotChunk *msg)
{
    msg->index++;
}
static void to_huge(PeerSnapshotChunk *msg)
{
    msg->total = LIMIT_SNAPSHOT_BYTES + 1;
}
static void to_nothing(PeerSnapshotChunk *msg)
{
    msg->total = 0;
}
static void to_longer(PeerSnapshotChunk *msg)
{
    msg->total++;
}
static void to_gap(PeerSnapshotChunk *msg)
{
    msg->offset++;
}
static void to_empty(PeerSnapshotChunk *msg)
{
    msg->data.len = 0;
}
static void to_beyond(PeerSnapshotChunk *msg)
{
    msg->total = msg->data.len - 1;
}
static void to_bad_sum(PeerSnapshotChunk *msg)
{
    static uint8_t zero[32];

    msg->sha256.data = zero;
}
static void to_no_sum(PeerSnapshotChunk *msg)
{
    msg->sha256.len = 0;
}

static const struct {
    size_t at;
    void (*change)(PeerSnapshotChunk *msg);
    enum err_code code;
} hostile[] = {
    { 0, to_older, ERR_RANGE },         { 0, to_huge, ERR_TOO_LARGE },
    { 0, to_nothing, ERR_TOO_LARGE },   { 0, to_gap, ERR_BAD_MESSAGE },
    { 0, to_empty, ERR_BAD_MESSAGE },   { 0, to_beyond, ERR_BAD_MESSAGE },
    { 1, to_another, ERR_BAD_MESSAGE }, { 1, to_longer, ERR_BAD_MESSAGE },
    { 1, to_gap, ERR_BAD_MESSAGE },     { 1, to_empty, ERR_BAD_MESSAGE },
    { 2, to_bad_sum, ERR_CORRUPT },     { 2, to_no_sum, ERR_CORRUPT },
};

static void a_hostile_peer_is_refused(void **state)
{
    (void)state;
    for (size_t h = 0; h < ARRAY_LEN(hostile); h++) {
        struct transfer_in *in = NULL;
        struct err err = { 0 };
        uint64_t index;
        assert_int_equal(transfer_begin(to, 10, &in, NULL), 0);
        for (size_t i = 0; i < hostile[h].at; i++)
            assert_int_equal(transfer_take(in, &chunks.items[i].msg, NULL), 0);
        PeerSnapshotChunk msg = chunks.items[hostile[h].at].msg;
        hostile[h].change(&msg);
        assert_int_equal(transfer_take(in, &msg, &err), -(int)hostile[h].code);
        assert_true(transfer_finish(in, &index, &err) < 0);
        assert_int_equal(files_in(to), 0);
    }
}

/* The sum is right, but what it is of is no snapshot. */
static void a_file_that_is_no_snapshot_gets_no_name(void **state)
{
    struct transfer_in *in = NULL;
    uint8_t junk[100] = { 1, 2, 3 }, sum[32];
    PeerSnapshotChunk msg = PEER_SNAPSHOT_CHUNK__INIT;
    struct err err = { 0 };
    uint64_t index;

    (void)state;
    digest_sha256(junk, sizeof(junk), sum);
    msg.index = INDEX;
    msg.total = sizeof(junk);
    msg.data = (ProtobufCBinaryData){ sizeof(junk), junk };
    msg.sha256 = (ProtobufCBinaryData){ 32, sum };
    assert_int_equal(transfer_begin(to, 1, &in, NULL), 0);
    assert_int_equal(transfer_take(in, &msg, &err), 0);
    assert_int_equal(transfer_take(in, &msg, &err),
                     -(int)ERR_BAD_MESSAGE); /* nothing after the end */
    assert_int_equal(transfer_finish(in, &index, &err), -(int)ERR_CORRUPT);
    assert_int_equal(files_in(to), 0);
}

static void payloads_are_checked(void **state)
{
    uint8_t wanted[2][LOG_DIGEST_BYTES], other[LOG_DIGEST_BYTES];
    struct transfer_payload payload = { 0 };
    PeerPayloadChunk msg = PEER_PAYLOAD_CHUNK__INIT;
    struct err err = { 0 };
    uint8_t text[] = "#!/bin/sh\nhostname\n";

    (void)state;
    digest_sha256(text, sizeof(text), wanted[0]);
    digest_sha256("", 0, wanted[1]);
    digest_sha256("?", 1, other);
    msg.digest = (ProtobufCBinaryData){ 32, wanted[0] };
    msg.total = sizeof(text);
    msg.data = (ProtobufCBinaryData){ 5, text };
    assert_int_equal(transfer_payload_take(&payload, &msg, wanted, 2, &err), 0);
    msg.offset = 5;
    msg.data = (ProtobufCBinaryData){ sizeof(text) - 5, text + 5 };
    assert_int_equal(transfer_payload_take(&payload, &msg, wanted, 2, &err), 1);
    assert_memory_equal(payload.bytes.data, text, sizeof(text));
    /* Nothing after its end. */
    assert_int_equal(transfer_payload_take(&payload, &msg, wanted, 2, &err), -(int)ERR_BAD_MESSAGE);

    msg.offset = 0;
    text[3] ^= 1;
    msg.data = (ProtobufCBinaryData){ sizeof(text), text };
    assert_int_equal(transfer_payload_take(&payload, &msg, wanted, 2, &err), -(int)ERR_CORRUPT);
    msg.total = (uint64_t)LOG_PAYLOAD_BYTES + 1;
    assert_int_equal(transfer_payload_take(&payload, &msg, wanted, 2, &err), -(int)ERR_TOO_LARGE);
    msg.total = 4;
    assert_int_equal(transfer_payload_take(&payload, &msg, wanted, 2, &err), -(int)ERR_BAD_MESSAGE);
    msg.digest.data = other;
    assert_int_equal(transfer_payload_take(&payload, &msg, wanted, 2, &err), -(int)ERR_BAD_MESSAGE);
    msg.digest.len = 31;
    assert_int_equal(transfer_payload_take(&payload, &msg, wanted, 2, &err), -(int)ERR_BAD_MESSAGE);
    /* A payload may be empty. */
    msg = (PeerPayloadChunk)PEER_PAYLOAD_CHUNK__INIT;
    msg.digest = (ProtobufCBinaryData){ 32, wanted[1] };
    assert_int_equal(transfer_payload_take(&payload, &msg, wanted, 2, &err), 1);
    str_done(&payload.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_snapshot_arrives_whole),
        cmocka_unit_test(a_transfer_that_breaks_leaves_nothing),
        cmocka_unit_test(a_hostile_peer_is_refused),
        cmocka_unit_test(a_file_that_is_no_snapshot_gets_no_name),
        cmocka_unit_test(payloads_are_checked),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
