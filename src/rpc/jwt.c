/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jwt.c - signed tokens: HS256 and EdDSA (Ed25519), nothing else
 *
 * (1) The key decides the algorithm. The token's "alg" must equal it, so "none" and a public key used
 *     as a secret lead nowhere.
 * (2) Nothing of the payload is looked at before its signature is found good.
 * (3) A token that names a key by its kid is good by that key or not at all.
 */
#include "rpc/jwt.h"

#include <jansson.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "rpc/coding.h"
#include "rpc/openssl.h"

enum { SIGNATURE_MAX = 64, HMAC_BYTES = 32, ED25519_BYTES = 64 };

enum alg { ALG_NONE, ALG_HS256, ALG_EDDSA };

struct jwt_key {
    enum alg alg;
    enum jwt_kind kind;
    char *kid; /* may be NULL */
    struct str secret;
    EVP_PKEY *pkey;
};

struct jwt_keys {
    char cluster[JWT_NAME_BYTES];
    struct map by_kid;
    VEC(struct jwt_key *) general; /* all but nodes' */
    bool told;                     /* there has been one */
};

static void json_freep(json_t **json)
{
    json_decref(*json);
}

struct jwt_keys *jwt_keys_new(const char *cluster)
{
    struct jwt_keys *keys = NEW(struct jwt_keys);

    snprintf(keys->cluster, sizeof(keys->cluster), "%s", cluster ? cluster : "");
    map_init(&keys->by_kid);
    return keys;
}

static void key_drop(struct jwt_keys *keys, struct jwt_key *key)
{
    for (size_t i = 0; i < keys->general.len; i++) {
        if (keys->general.items[i] == key) {
            vec_remove(&keys->general, i);
            break;
        }
    }
    if (key->kid)
        map_del(&keys->by_kid, key->kid);
    if (key->secret.data)
        OPENSSL_cleanse(key->secret.data, key->secret.cap);
    str_done(&key->secret);
    EVP_PKEY_free(key->pkey);
    free(key->kid);
    free(key);
}

void jwt_keys_remove(struct jwt_keys *keys, const char *kid)
{
    struct jwt_key *key = map_get(&keys->by_kid, kid);

    if (key)
        key_drop(keys, key);
}

void jwt_keys_free(struct jwt_keys *keys)
{
    if (!keys)
        return;
    while (keys->general.len)
        key_drop(keys, keys->general.items[keys->general.len - 1]);
    map_each (entry, &keys->by_kid)
        key_drop(keys, entry->value);
    map_done(&keys->by_kid);
    vec_done(&keys->general);
    free(keys);
}

static void add(struct jwt_keys *keys, struct jwt_key *key, const char *kid)
{
    keys->told = true;
    if (kid) {
        jwt_keys_remove(keys, kid);
        key->kid = mem_strdup(kid);
        map_put(&keys->by_kid, kid, key);
    }
    vec_push(&keys->general, key);
}

int jwt_keys_add_secret(struct jwt_keys *keys, const char *kid, enum jwt_kind kind,
                        const void *bytes, size_t len, struct err *err)
{
    if (len < KEY_SECRET_MIN)
        return err_set(err, ERR_INVALID, "a secret of %zu bytes is too short for tokens", len);
    struct jwt_key *key = NEW(struct jwt_key);
    key->alg = ALG_HS256;
    key->kind = kind;
    str_add_len(&key->secret, bytes, len);
    add(keys, key, kid);
    return 0;
}

int jwt_keys_add_public(struct jwt_keys *keys, const char *kid, enum jwt_kind kind,
                        const uint8_t public_key[KEY_PUBLIC_BYTES], struct err *err)
{
    EVP_PKEY *pkey =
        EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, public_key, KEY_PUBLIC_BYTES);

    if (!pkey)
        return openssl_err(err, ERR_INVALID, "not an Ed25519 public key");
    struct jwt_key *key = NEW(struct jwt_key);
    key->alg = ALG_EDDSA;
    key->kind = kind;
    key->pkey = pkey;
    add(keys, key, kid);
    return 0;
}

/* ---- reading ---- */

struct parts {
    struct span header, payload, signature;
    struct span signed_text;
};

static bool split(const char *token, size_t len, struct parts *out)
{
    const char *end = token + len;
    const char *one = memchr(token, '.', len);
    const char *two = one ? memchr(one + 1, '.', (size_t)(end - one - 1)) : NULL;

    if (!two || memchr(two + 1, '.', (size_t)(end - two - 1)))
        return false;
    out->header = (struct span){ token, (size_t)(one - token) };
    out->payload = (struct span){ one + 1, (size_t)(two - one - 1) };
    out->signature = (struct span){ two + 1, (size_t)(end - two - 1) };
    out->signed_text = (struct span){ token, (size_t)(two - token) };
    return true;
}

static json_t *part_json(struct span part)
{
    CLEANUP(str_done) struct str text = { 0 };

    if (!base64url_decode(&text, part.ptr, part.len) || !text.len)
        return NULL;
    json_t *json = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(json)) {
        json_decref(json);
        return NULL;
    }
    return json;
}

static enum alg alg_of(const json_t *header)
{
    const char *alg = json_string_value(json_object_get(header, "alg"));

    if (str_eq(alg, "HS256"))
        return ALG_HS256;
    return str_eq(alg, "EdDSA") ? ALG_EDDSA : ALG_NONE;
}

static bool hs256(const struct str *secret, struct span text, uint8_t out[HMAC_BYTES])
{
    unsigned len = 0;

    return HMAC(EVP_sha256(), secret->data, (int)secret->len, (const unsigned char *)text.ptr,
                text.len, out, &len) &&
           len == HMAC_BYTES;
}

static bool signature_is_good(const struct jwt_key *key, struct span text,
                              const struct str *signature)
{
    if (key->alg == ALG_HS256) {
        uint8_t expected[HMAC_BYTES];
        return signature->len == HMAC_BYTES && hs256(&key->secret, text, expected) &&
               CRYPTO_memcmp(expected, signature->data, HMAC_BYTES) == 0;
    }
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool good = ctx && signature->len == ED25519_BYTES &&
                EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, key->pkey) == 1 &&
                EVP_DigestVerify(ctx, (const unsigned char *)signature->data, signature->len,
                                 (const unsigned char *)text.ptr, text.len) == 1;
    EVP_MD_CTX_free(ctx);
    ERR_clear_error();
    return good;
}

static const struct jwt_key *find_key(const struct jwt_keys *keys, enum alg alg, const char *kid,
                                      struct span text, const struct str *signature)
{
    const struct jwt_key *named = kid ? map_get(&keys->by_kid, kid) : NULL;

    if (named) /* (3) */
        return named->alg == alg && signature_is_good(named, text, signature) ? named : NULL;
    for (size_t i = 0; i < keys->general.len; i++) {
        const struct jwt_key *key = keys->general.items[i];
        if (key->alg == alg && !(kid && key->kid) &&
            signature_is_good(key, text, signature)) /* (1) */
            return key;
    }
    return NULL;
}

static bool take_text(const json_t *json, const char *name, char *out, size_t room)
{
    const json_t *value = json_object_get(json, name);
    const char *text = json_string_value(value);

    if (!value)
        return true;
    if (!text || json_string_length(value) >= room)
        return false;
    for (const char *p = text; *p; p++) {
        if ((unsigned char)*p <= ' ' || *p == 0x7f)
            return false;
    }
    strcpy(out, text);
    return strlen(text) == json_string_length(value);
}

static bool take_id(const json_t *json, const char *name, bool *has, uint32_t *out)
{
    const json_t *value = json_object_get(json, name);

    if (!value)
        return true;
    json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < 0 || number >= UINT32_MAX)
        return false;
    *has = true;
    *out = (uint32_t)number;
    return true;
}

static bool take_time(const json_t *json, const char *name, int64_t *out)
{
    const json_t *value = json_object_get(json, name);

    if (!value)
        return true;
    double number = json_number_value(value); /* issuers write 1.7e9 and 1700000000.5, too */
    if (!json_is_number(value) || !(number > 0 && number < 1e12))
        return false;
    *out = (int64_t)number;
    return true;
}

static bool take_flag(const json_t *json, const char *name, bool *out)
{
    const json_t *value = json_object_get(json, name);

    *out = json_is_true(value);
    return !value || json_is_boolean(value);
}

static bool take_claims(const json_t *json, struct jwt_claims *out)
{
    return take_text(json, "sun", out->user, sizeof(out->user)) &&
           take_text(json, "node", out->node, sizeof(out->node)) &&
           take_text(json, "cluster", out->cluster, sizeof(out->cluster)) &&
           take_text(json, "spur_node", out->job_node, sizeof(out->job_node)) &&
           take_text(json, "spur_by", out->by, sizeof(out->by)) &&
           take_id(json, "spur_job", &out->has_job, &out->job) &&
           take_flag(json, "spur_no_staff", &out->no_staff) &&
           take_id(json, "uid", &out->has_uid, &out->uid) &&
           take_id(json, "gid", &out->has_gid, &out->gid) &&
           take_time(json, "iat", &out->issued_s) && take_time(json, "nbf", &out->not_before_s) &&
           take_time(json, "exp", &out->expires_s);
}

static int check_times(const struct jwt_claims *claims, int64_t now_s, struct err *err)
{
    if (!claims->expires_s)
        return err_set(err, ERR_UNAUTHENTICATED, "the token has no end (exp)");
    if (claims->expires_s <= now_s)
        return err_set(err, ERR_TOKEN_EXPIRED, "the token expired %lld seconds ago",
                       (long long)(now_s - claims->expires_s));
    if (claims->not_before_s > now_s + JWT_LEEWAY_S || claims->issued_s > now_s + JWT_LEEWAY_S)
        return err_set(err, ERR_UNAUTHENTICATED,
                       "the token is from the future: are the clocks of both machines right?");
    return 0;
}

static int check_kind(const struct jwt_keys *keys, const struct jwt_key *key,
                      const struct jwt_claims *claims, struct err *err)
{
    if (claims->cluster[0] && keys->cluster[0] && strcmp(claims->cluster, keys->cluster) != 0)
        return err_set(err, ERR_UNAUTHENTICATED, "the token is for cluster '%.60s'",
                       claims->cluster);
    if (key->kind == JWT_CLUSTER)
        return claims->user[0] || claims->has_uid || claims->node[0]
                   ? 0
                   : err_set(err, ERR_UNAUTHENTICATED, "the token names nobody");
    if (claims->node[0])
        return err_set(err, ERR_UNAUTHENTICATED, "this issuer may not name nodes");
    return claims->user[0] || claims->has_uid
               ? 0
               : err_set(err, ERR_UNAUTHENTICATED, "the token names no user");
}

int jwt_verify(const struct jwt_keys *keys, const char *token, size_t len, int64_t now_s,
               struct jwt_claims *out, enum jwt_kind *kind, struct err *err)
{
    CLEANUP(json_freep) json_t *header = NULL;
    CLEANUP(json_freep) json_t *payload = NULL;
    CLEANUP(str_done) struct str signature = { 0 };
    struct jwt_claims claims = { 0 };
    struct parts parts;

    if (len > JWT_BYTES_MAX || !split(token, len, &parts) || !(header = part_json(parts.header)) ||
        !base64url_decode(&signature, parts.signature.ptr, parts.signature.len))
        return err_set(err, ERR_UNAUTHENTICATED, "the token is malformed");
    enum alg alg = alg_of(header);
    if (alg == ALG_NONE || json_object_get(header, "crit"))
        return err_set(err, ERR_UNAUTHENTICATED, "the token is not signed with HS256 or EdDSA");
    if (!keys->told) /* come again, it may be good */
        return err_set(err, ERR_UNREACHABLE, "it is not known here yet who signs tokens");
    const char *kid = json_string_value(json_object_get(header, "kid"));
    const struct jwt_key *key = find_key(keys, alg, kid, parts.signed_text, &signature);
    if (!key)
        return err_set(err, ERR_UNAUTHENTICATED, "the token's signature is not good");
    payload = part_json(parts.payload); /* (2) */
    if (!payload || !take_claims(payload, &claims))
        return err_set(err, ERR_UNAUTHENTICATED, "the token's claims are malformed");
    int rc = check_times(&claims, now_s, err);
    if (rc == 0)
        rc = check_kind(keys, key, &claims, err);
    if (rc < 0)
        return rc;
    *out = claims;
    *kind = key->kind;
    return 0;
}

/* ---- writing ---- */

static void add_json(struct str *out, json_t *json)
{
    char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);

    base64url_add(out, text, strlen(text));
    free(text);
    json_decref(json);
}

static void put_time(json_t *json, const char *name, int64_t value)
{
    if (value)
        json_object_set_new(json, name, json_integer(value));
}

static void put_text(json_t *json, const char *name, const char *value)
{
    if (value && *value)
        json_object_set_new(json, name, json_string(value));
}

static int write_unsigned(const char *alg, const char *kid, const struct jwt_claims *claims,
                          struct str *out, struct err *err)
{
    json_t *header = json_object(), *payload = json_object();

    if (!claims->expires_s) {
        json_decref(header);
        json_decref(payload);
        return err_set(err, ERR_INTERNAL, "a token must expire");
    }
    put_text(header, "alg", alg);
    put_text(header, "typ", "JWT");
    put_text(header, "kid", kid);
    put_text(payload, "sun", claims->user);
    put_text(payload, "node", claims->node);
    put_text(payload, "cluster", claims->cluster);
    put_text(payload, "spur_node", claims->job_node);
    put_text(payload, "spur_by", claims->by);
    if (claims->has_job)
        json_object_set_new(payload, "spur_job", json_integer(claims->job));
    if (claims->no_staff)
        json_object_set_new(payload, "spur_no_staff", json_true());
    if (claims->has_uid)
        json_object_set_new(payload, "uid", json_integer(claims->uid));
    if (claims->has_gid)
        json_object_set_new(payload, "gid", json_integer(claims->gid));
    put_time(payload, "iat", claims->issued_s);
    put_time(payload, "nbf", claims->not_before_s);
    put_time(payload, "exp", claims->expires_s);
    add_json(out, header);
    str_add_char(out, '.');
    add_json(out, payload);
    return 0;
}

int jwt_sign_secret(const void *bytes, size_t len, const char *kid, const struct jwt_claims *claims,
                    struct str *out, struct err *err)
{
    CLEANUP(str_done) struct str text = { 0 };
    struct str secret = { .data = (char *)(uintptr_t)bytes, .len = len };
    uint8_t signature[HMAC_BYTES];

    int rc = write_unsigned("HS256", kid, claims, &text, err);
    if (rc < 0)
        return rc;
    if (len < KEY_SECRET_MIN || !hs256(&secret, (struct span){ text.data, text.len }, signature))
        return openssl_err(err, ERR_INTERNAL, "cannot sign a token");
    str_add_char(&text, '.');
    base64url_add(&text, signature, sizeof(signature));
    str_add_len(out, text.data, text.len);
    return 0;
}

int jwt_sign_key(const struct key *key, const char *kid, const struct jwt_claims *claims,
                 struct str *out, struct err *err)
{
    CLEANUP(str_done) struct str text = { 0 };
    uint8_t signature[ED25519_BYTES];
    size_t len = sizeof(signature);

    int rc = write_unsigned("EdDSA", kid, claims, &text, err);
    if (rc < 0)
        return rc;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool done =
        ctx && EVP_DigestSignInit(ctx, NULL, NULL, NULL, key->pkey) == 1 &&
        EVP_DigestSign(ctx, signature, &len, (const unsigned char *)text.data, text.len) == 1;
    EVP_MD_CTX_free(ctx);
    if (!done)
        return openssl_err(err, ERR_INTERNAL, "cannot sign a token");
    str_add_char(&text, '.');
    base64url_add(&text, signature, len);
    str_add_len(out, text.data, text.len);
    return 0;
}
