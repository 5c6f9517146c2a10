/* SPDX-License-Identifier: Apache-2.0 */
/* Digests are those of the bytes, whatever came before. */
#include "test/unit.h"

#include "spurctld/payload_seen.h"

static void assert_digest(struct payload_seen *recall, const void *bytes, size_t len)
{
    uint8_t is[DIGEST_BYTES], should[DIGEST_BYTES];

    digest_sha256(bytes, len, should);
    payload_seen_digest(recall, bytes, len, is);
    assert_memory_equal(is, should, DIGEST_BYTES);
}

/* More texts than are kept, many of one length, in an order in which each is met at every age. */
static void every_digest_is_that_of_its_bytes(void **state)
{
    (void)state;
    struct payload_seen recall = { 0 };
    char text[64];

    for (unsigned i = 0; i < 2000; i++) {
        unsigned which = (i * 7 + i / 13) % (2 * RECALL_COUNT);
        snprintf(text, sizeof(text), "payload %02u", which);
        assert_digest(&recall, text, strlen(text));
        assert_digest(&recall, text, strlen(text) - (i % 3));
    }
    assert_digest(&recall, "", 0);
    payload_seen_done(&recall);
}

/* The same buffer with other bytes in it is something else; so is what is too long to be kept. */
static void bytes_are_copied_and_long_ones_are_not_kept(void **state)
{
    (void)state;
    struct payload_seen recall = { 0 };
    size_t len = RECALL_BYTES + 1;
    char *bytes = calloc(1, len);

    for (int i = 0; i < 3; i++) {
        bytes[17] = (char)i;
        assert_digest(&recall, bytes, 1000);
        assert_digest(&recall, bytes, RECALL_BYTES);
        assert_digest(&recall, bytes, len);
    }
    for (size_t i = 0; i < RECALL_COUNT; i++)
        assert_true(recall.list[i].len <= RECALL_BYTES);
    free(bytes);
    payload_seen_done(&recall);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(every_digest_is_that_of_its_bytes),
        UNIT(bytes_are_copied_and_long_ones_are_not_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
