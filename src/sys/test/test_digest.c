/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_digest.c - SHA-256 against the published vectors
 */
#include "sys/digest.h"
#include "test/unit.h"

static void known_digests(void **state)
{
    static const struct {
        const char *text, *hex;
    } rows[] = {
        { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    };
    uint8_t digest[DIGEST_BYTES], back[DIGEST_BYTES];
    char hex[DIGEST_HEX_BYTES];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        digest_sha256(rows[i].text, strlen(rows[i].text), digest);
        digest_hex(digest, hex);
        assert_string_equal(hex, rows[i].hex);
        assert_true(digest_parse(hex, back));
        assert_memory_equal(digest, back, DIGEST_BYTES);
    }
    assert_false(digest_parse("ba78", back));
    hex[5] = 'g';
    assert_false(digest_parse(hex, back));
}

static void pieces_equal_the_whole(void **state)
{
    uint8_t whole[DIGEST_BYTES], pieces[DIGEST_BYTES];
    struct digest *digest = digest_begin();

    (void)state;
    digest_add(digest, "a", 1);
    digest_add(digest, "bc", 2);
    digest_end(digest, pieces);
    digest_sha256("abc", 3, whole);
    assert_memory_equal(whole, pieces, DIGEST_BYTES);
}

UNIT_MAIN(UNIT(known_digests), UNIT(pieces_equal_the_whole))
