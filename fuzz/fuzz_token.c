/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_token.c - no bytes are a good token, unless we signed them
 *
 * The input is tried as a token, and as the header and payload (split at a line feed) of one that is
 * signed with the right secret: then whatever is accepted must have an end in the future and a name.
 */
#include "fuzz/fuzz.h"
#include "rpc/address.h"
#include "rpc/coding.h"
#include "rpc/jwt.h"

#include <openssl/hmac.h>

enum { NOW = 1700000000 };
static const char secret[] = "0123456789abcdef0123456789abcdef";

static void codings(const uint8_t *data, size_t size)
{
    FUZZ_TEXT text = { 0 }, back = { 0 }, percent = { 0 }, plain = { 0 };
    int64_t ms;

    base64_add(&text, data, size);
    CHECK(base64_decode(&back, str_text(&text), text.len));
    CHECK(back.len == size && (!size || memcmp(back.data, data, size) == 0));
    percent_add(&percent, (const char *)data, size);
    percent_decode(&plain, str_text(&percent), percent.len);
    CHECK(plain.len == size && (!size || memcmp(plain.data, data, size) == 0));
    if (timeout_decode((const char *)data, size, &ms))
        CHECK(ms >= 0);
}

static void addresses(const char *text)
{
    struct address_list list, again;
    char written[ADDRESS_TEXT_BYTES];
    struct err err = { 0 };

    if (address_list_parse(text, 6817, &list, &err) < 0) {
        CHECK(err.text[0]);
        return;
    }
    for (size_t i = 0; i < list.len; i++) {
        address_text(&list.items[i], written);
        if (strpbrk(written, ", "))
            continue; /* a path may have what separates a list */
        CHECK(address_list_parse(written, 1, &again, &err) == 0 && again.len == 1);
        CHECK(address_eq(&again.items[0], &list.items[i]));
    }
}

static void signed_token(const struct jwt_keys *keys, const uint8_t *data, size_t size)
{
    const uint8_t *feed = memchr(data, '\n', size);
    unsigned char mac[32];
    unsigned len = sizeof(mac);
    struct jwt_claims claims;
    enum jwt_kind kind;
    struct err err = { 0 };
    FUZZ_TEXT token = { 0 };

    size_t head = feed ? (size_t)(feed - data) : 0;
    if (feed)
        base64url_add(&token, data, head);
    else
        base64url_add(&token, "{\"alg\":\"HS256\"}", 15);
    str_add_char(&token, '.');
    base64url_add(&token, data + (feed ? head + 1 : 0), size - (feed ? head + 1 : 0));
    HMAC(EVP_sha256(), secret, 32, (unsigned char *)token.data, token.len, mac, &len);
    str_add_char(&token, '.');
    base64url_add(&token, mac, len);
    if (jwt_verify(keys, token.data, token.len, NOW, &claims, &kind, &err) < 0) {
        CHECK(err.code && err.text[0]);
        return;
    }
    CHECK(kind == JWT_CLUSTER && claims.expires_s > NOW);
    CHECK(claims.user[0] || claims.has_uid || claims.node[0]);
    CHECK(!strpbrk(claims.user, " \n\t\r") && !strpbrk(claims.node, " \n\t\r"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct jwt_keys *keys; /* made once: the fuzzer runs millions of times */
    CLEANUP(freep) char *text = fuzz_text(data, size);
    struct jwt_claims claims;
    enum jwt_kind kind;
    struct err err = { 0 };

    if (!keys) {
        keys = jwt_keys_new("c");
        CHECK(jwt_keys_add_secret(keys, NULL, JWT_CLUSTER, secret, 32, &err) == 0);
    }
    CHECK(jwt_verify(keys, (const char *)data, size, NOW, &claims, &kind, &err) < 0);
    CHECK(err.code && err.text[0]);
    signed_token(keys, data, size);
    codings(data, size);
    addresses(text);
    return 0;
}
