/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_pb_check.c - what would unpack, without unpacking it
 */
#include "proto/job.pb-c.h"
#include "test/unit.h"
#include "wire/pb.h"

/* What we accept, the library that will unpack it accepts; it also takes field numbers that cannot be. */
static void assert_unpacks(const ProtobufCMessageDescriptor *type, const void *bytes, size_t len)
{
    ProtobufCMessage *message = protobuf_c_message_unpack(type, NULL, len, bytes);
    bool said = pb_would_unpack(type, bytes, len);

    pb_free(message);
    if (said && !message)
        fail_msg("%zu bytes that do not unpack were accepted", len);
}

static size_t pack_payload(uint8_t *out)
{
    JobPayload payload = JOB_PAYLOAD__INIT;
    Rlimit limit = RLIMIT__INIT, *limits[] = { &limit };
    char *args[] = { (char[]){ "one" }, (char[]){ "" } };

    limit.name = (char[]){ "NOFILE" };
    limit.has_soft = true;
    limit.soft = UINT64_MAX;
    payload.has_script = true;
    payload.script = (ProtobufCBinaryData){ .data = (uint8_t[]){ "#!/bin/sh\n" }, .len = 10 };
    payload.n_args = 2;
    payload.args = args;
    payload.n_rlimits = 1;
    payload.rlimits = limits;
    payload.has_get_user_env = payload.get_user_env = true;
    return job_payload__pack(&payload, out);
}

static void whole_and_cut_payloads(void **state)
{
    uint8_t bytes[256];
    size_t len = pack_payload(bytes);

    (void)state;
    assert_true(pb_would_unpack(&job_payload__descriptor, bytes, len));
    for (size_t i = 0; i < len; i++)
        assert_unpacks(&job_payload__descriptor, bytes, i);
    assert_false(pb_would_unpack(&job_payload__descriptor, bytes, 5));
}

/* Every byte takes every value. */
static void damaged_payloads(void **state)
{
    uint8_t bytes[256];
    size_t len = pack_payload(bytes), refused = 0;

    (void)state;
    for (size_t i = 0; i < len; i++) {
        uint8_t was = bytes[i];
        for (unsigned value = 0; value < 256; value++) {
            bytes[i] = (uint8_t)value;
            refused += !pb_would_unpack(&job_payload__descriptor, bytes, len);
            assert_unpacks(&job_payload__descriptor, bytes, len);
        }
        bytes[i] = was;
    }
    assert_true(refused > len);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_and_cut_payloads),
        cmocka_unit_test(damaged_payloads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
