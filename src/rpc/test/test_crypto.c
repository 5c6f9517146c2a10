/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens and keys: what is accepted, and above all what is not. */
#include "test/unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc/coding.h"
#include "rpc/crypto.h"
#include "rpc/munge.h"
#include "sys/files.h"

enum { NOW = 1700000000 };

static const char secret[] = "0123456789abcdef0123456789abcdef";
static const char other_secret[] = "fedcba9876543210fedcba9876543210";
static char dir[64];

static struct jwt_claims user_claims(void)
{
    return (struct jwt_claims){ .user = "alice",
                                .has_uid = true,
                                .uid = 1000,
                                .has_gid = true,
                                .gid = 100,
                                .cluster = "c",
                                .issued_s = NOW,
                                .expires_s = NOW + 60 };
}

static struct jwt_keys *cluster_keys(void)
{
    struct jwt_keys *keys = jwt_keys_new("c");
    struct err err;

    assert_int_equal(jwt_keys_add_secret(keys, NULL, JWT_CLUSTER, secret, 32, &err), 0);
    return keys;
}

static int verify(const struct jwt_keys *keys, const char *token, int64_t now, struct err *err)
{
    struct jwt_claims claims;
    enum jwt_kind kind;

    return jwt_verify(keys, token, strlen(token), now, &claims, &kind, err);
}

static void hs256_both_ways(void **state)
{
    CLEANUP(str_done) struct str token = { 0 };
    struct jwt_claims claims = user_claims(), back;
    struct jwt_keys *keys = cluster_keys();
    enum jwt_kind kind;
    struct err err;

    (void)state;
    assert_int_equal(jwt_sign_secret(secret, 32, NULL, &claims, &token, &err), 0);
    assert_int_equal(jwt_verify(keys, token.data, token.len, NOW, &back, &kind, &err), 0);
    assert_string_equal(back.user, "alice");
    assert_string_equal(back.cluster, "c");
    assert_true(back.has_uid && back.uid == 1000 && back.has_gid && back.gid == 100);
    assert_true(back.issued_s == NOW && back.expires_s == NOW + 60 && !back.not_before_s);
    assert_int_equal(kind, JWT_CLUSTER);
    jwt_keys_free(keys);
}

/* The text that any other library makes of these claims, and that Slurm's own tokens have. */
static void tokens_have_the_usual_form(void **state)
{
    const char *token = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."
                        "eyJleHAiOjE3MDAwMDAwNjAsImlhdCI6MTcwMDAwMDAwMCwic3VuIjoiYm9iIn0.";
    CLEANUP(str_done) struct str made = { 0 };
    struct jwt_claims claims = { .user = "bob", .issued_s = NOW, .expires_s = NOW + 60 }, back;
    struct jwt_keys *keys = cluster_keys();
    enum jwt_kind kind;
    struct err err;

    (void)state;
    assert_int_equal(jwt_sign_secret(secret, 32, NULL, &claims, &made, &err), 0);
    assert_memory_equal(made.data, token, strlen(token)); /* ours is the standard's spelling */
    assert_int_equal(jwt_verify(keys, made.data, made.len, NOW, &back, &kind, &err), 0);
    assert_string_equal(back.user, "bob");
    assert_false(back.has_uid);
    jwt_keys_free(keys);
}

static void times_are_checked(void **state)
{
    static const struct {
        int64_t issued, not_before, expires;
        int want;
    } cases[] = {
        { NOW, 0, NOW + 1, 0 },
        { NOW, 0, NOW, -ERR_TOKEN_EXPIRED },
        { NOW - 100, 0, NOW - 1, -ERR_TOKEN_EXPIRED },
        { NOW + 30, 0, NOW + 100, 0 }, /* clocks differ a little */
        { NOW + 300, 0, NOW + 400, -ERR_UNAUTHENTICATED },
        { NOW, NOW + 300, NOW + 400, -ERR_UNAUTHENTICATED },
        { 0, 0, NOW + 10, 0 },
    };
    struct jwt_keys *keys = cluster_keys();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(str_done) struct str token = { 0 };
        struct jwt_claims claims = user_claims();
        struct err err;
        claims.issued_s = cases[i].issued;
        claims.not_before_s = cases[i].not_before;
        claims.expires_s = cases[i].expires;
        assert_int_equal(jwt_sign_secret(secret, 32, NULL, &claims, &token, &err), 0);
        assert_int_equal(verify(keys, token.data, NOW, &err), cases[i].want);
    }
    jwt_keys_free(keys);
}

static void add_part(struct str *out, const char *json)
{
    base64url_add(out, json, strlen(json));
}

static void forged_tokens_are_refused(void **state)
{
    static const char *const headers[] = {
        "{\"alg\":\"none\"}",
        "{\"alg\":\"None\"}",
        "{\"alg\":\"HS512\"}",
        "{\"alg\":\"RS256\"}",
        "{\"alg\":\"EdDSA\"}",
        "{}",
        "[]",
        "{\"alg\":\"HS256\",\"crit\":[\"x\"]}",
        "{\"alg\":\"HS256\",\"alg\":\"none\"}",
        "{\"alg\":[\"HS256\"]}",
    };
    struct jwt_keys *keys = cluster_keys();
    struct err err;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        CLEANUP(str_done) struct str token = { 0 };
        add_part(&token, headers[i]);
        str_add_char(&token, '.');
        add_part(&token, "{\"sun\":\"root\",\"uid\":0,\"exp\":1800000000}");
        str_add_char(&token, '.');
        assert_int_equal(verify(keys, token.data, NOW, &err), -ERR_UNAUTHENTICATED);
        base64url_add(&token, secret, 32);
        assert_int_equal(verify(keys, token.data, NOW, &err), -ERR_UNAUTHENTICATED);
    }
    static const char *const texts[] = { "", ".", "..", "...", "a.b", "a.b.c", "....", "x..y" };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        assert_int_equal(verify(keys, texts[i], NOW, &err), -ERR_UNAUTHENTICATED);
    jwt_keys_free(keys);
}

static void every_changed_byte_is_noticed(void **state)
{
    CLEANUP(str_done) struct str token = { 0 };
    struct jwt_claims claims = user_claims();
    struct jwt_keys *keys = cluster_keys();
    struct err err;

    (void)state;
    assert_int_equal(jwt_sign_secret(secret, 32, NULL, &claims, &token, &err), 0);
    for (size_t i = 0; i < token.len; i++) {
        char was = token.data[i];
        token.data[i] = was == 'A' ? 'B' : 'A';
        assert_int_equal(verify(keys, token.data, NOW, &err), -ERR_UNAUTHENTICATED);
        token.data[i] = was;
    }
    for (size_t len = 0; len < token.len; len++) {
        enum jwt_kind kind;
        struct jwt_claims out;
        assert_true(jwt_verify(keys, token.data, len, NOW, &out, &kind, &err) < 0);
    }
    assert_int_equal(verify(keys, token.data, NOW, &err), 0);
    str_clear(&token);
    assert_int_equal(jwt_sign_secret(other_secret, 32, NULL, &claims, &token, &err), 0);
    assert_int_equal(verify(keys, token.data, NOW, &err), -ERR_UNAUTHENTICATED);
    jwt_keys_free(keys);
}

/* The classic: a public key is not secret, so nothing signed with it as HS256 secret may pass. */
static void without_keys_nobody_can_tell(void **state)
{
    CLEANUP(str_done) struct str token = { 0 };
    struct jwt_keys *keys = jwt_keys_new("c");
    struct jwt_claims claims = user_claims();
    struct err err;

    (void)state;
    assert_int_equal(jwt_sign_secret(secret, 32, NULL, &claims, &token, &err), 0);
    assert_int_equal(verify(keys, token.data, NOW, &err), -ERR_UNREACHABLE);
    assert_int_equal(jwt_keys_add_secret(keys, NULL, JWT_CLUSTER, secret, 32, &err), 0);
    assert_int_equal(verify(keys, token.data, NOW, &err), 0);
    jwt_keys_free(keys);
}

static void a_public_key_is_no_secret(void **state)
{
    CLEANUP(str_done) struct str token = { 0 };
    struct jwt_keys *keys = jwt_keys_new("c");
    struct jwt_claims claims = user_claims();
    struct key *key = key_generate();
    uint8_t public_key[KEY_PUBLIC_BYTES];
    struct err err;

    (void)state;
    key_public(key, public_key);
    assert_int_equal(jwt_keys_add_public(keys, "k1", JWT_CLUSTER, public_key, &err), 0);
    assert_int_equal(jwt_sign_secret(public_key, 32, "k1", &claims, &token, &err), 0);
    assert_int_equal(verify(keys, token.data, NOW, &err), -ERR_UNAUTHENTICATED);
    str_clear(&token);
    assert_int_equal(jwt_sign_secret(public_key, 32, NULL, &claims, &token, &err), 0);
    assert_int_equal(verify(keys, token.data, NOW, &err), -ERR_UNAUTHENTICATED);
    str_clear(&token);
    assert_int_equal(jwt_sign_key(key, "k1", &claims, &token, &err), 0);
    assert_int_equal(verify(keys, token.data, NOW, &err), 0);
    jwt_keys_remove(keys, "k1");
    assert_int_equal(verify(keys, token.data, NOW, &err), -ERR_UNAUTHENTICATED);
    key_free(key);
    jwt_keys_free(keys);
}

static void an_issuer_names_users_only(void **state)
{
    struct jwt_keys *keys = jwt_keys_new("c");
    struct key *n1 = key_generate(), *issuer = key_generate();
    uint8_t public_key[KEY_PUBLIC_BYTES];
    struct jwt_claims back;
    enum jwt_kind kind;
    struct err err;

    (void)state;
    key_public(issuer, public_key);
    assert_int_equal(jwt_keys_add_public(keys, "site", JWT_ISSUER, public_key, &err), 0);
    const struct {
        const struct key *key;
        const char *kid, *node, *cluster;
        bool uid;
        int want;
    } cases[] = {
        { n1, "site", "", "c", true, -ERR_UNAUTHENTICATED }, /* another's key */
        { n1, NULL, "", "c", true, -ERR_UNAUTHENTICATED },
        { issuer, "site", "", "c", true, 0 },
        { issuer, NULL, "", "", true, 0 },
        { issuer, "site", "", "d", true, -ERR_UNAUTHENTICATED },  /* another cluster */
        { issuer, "site", "", "c", false, -ERR_UNAUTHENTICATED }, /* for nobody */
        { issuer, "site", "n1", "c", true, -ERR_UNAUTHENTICATED },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(str_done) struct str token = { 0 };
        struct jwt_claims claims = {
            .has_uid = cases[i].uid, .uid = 1000, .issued_s = NOW, .expires_s = NOW + 60
        };
        strcpy(claims.node, cases[i].node);
        strcpy(claims.cluster, cases[i].cluster);
        assert_int_equal(jwt_sign_key(cases[i].key, cases[i].kid, &claims, &token, &err), 0);
        int rc = jwt_verify(keys, token.data, token.len, NOW, &back, &kind, &err);
        if (rc != cases[i].want)
            fail_msg("case %zu: %d, %s", i, rc, err.text);
        if (rc == 0)
            assert_int_equal(kind, JWT_ISSUER);
    }
    key_free(n1);
    key_free(issuer);
    jwt_keys_free(keys);
}

static const char *in_dir(const char *name)
{
    static char paths[8][128];
    static unsigned at;
    char *path = paths[at++ % ARRAY_LEN(paths)];

    snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
    return path;
}

static void key_files_are_private(void **state)
{
    CLEANUP(str_done) struct str bytes = { 0 };
    struct stat st;
    struct err err;

    (void)state;
    assert_int_equal(key_secret_create(in_dir("secret"), &err), 0);
    assert_int_equal(stat(in_dir("secret"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(key_secret_load(in_dir("secret"), &bytes, &err), 0);
    assert_int_equal(bytes.len, KEY_SECRET_BYTES);
    assert_int_equal(key_secret_create(in_dir("secret"), &err), -ERR_EXISTS);
    static const mode_t modes[] = { 0640, 0604, 0660, 0644 };
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        assert_int_equal(chmod(in_dir("secret"), modes[i]), 0);
        assert_int_equal(key_secret_load(in_dir("secret"), &bytes, &err), -ERR_PERMISSION);
        assert_non_null(strstr(err.text, "chmod 600"));
    }
    assert_int_equal(key_create(in_dir("sign"), &err), 0);
    struct key *key = key_load(in_dir("sign"), &err);
    assert_non_null(key);
    key_free(key);
    assert_int_equal(chmod(in_dir("sign"), 0644), 0);
    assert_null(key_load(in_dir("sign"), &err));
    assert_int_equal(err.code, ERR_PERMISSION);
    assert_int_equal(file_write(in_dir("short"), "tiny", 4, 0600, &err), 0);
    assert_int_equal(key_secret_load(in_dir("short"), &bytes, &err), -ERR_INVALID);
    assert_null(key_load(in_dir("short"), &err));
    assert_null(key_load(in_dir("absent"), &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
}

static void the_authority_signs_what_we_say(void **state)
{
    const char *hosts[] = { "c1.example.org", "10.0.0.1", "::1" };
    const char *evil[] = { "a,IP:6.6.6.6" };
    struct cert_names names = { .subject = "controller:c1", .hosts = hosts, .host_count = 3 };
    CLEANUP(str_done) struct str pem = { 0 }, csr = { 0 }, cert = { 0 };
    char hash[KEY_HASH_TEXT], again[KEY_HASH_TEXT];
    struct err err;

    (void)state;
    assert_int_equal(cert_create_ca(dir, "test", &err), 0);
    assert_int_equal(cert_create_ca(dir, "test", &err), -ERR_EXISTS);
    assert_int_equal(file_read(in_dir("ca.crt"), KEY_FILE_MAX, &pem, &err), 0);
    assert_int_equal(cert_hash(pem.data, pem.len, hash, &err), 0);
    assert_int_equal(strlen(hash), 71);
    assert_int_equal(cert_hash(pem.data, pem.len, again, &err), 0);
    assert_string_equal(hash, again);
    assert_int_equal(cert_hash("nonsense", 8, again, &err), -ERR_INVALID);

    if (cert_issue(dir, &names, in_dir("c1.key"), in_dir("c1.crt"), &err) < 0)
        fail_msg("%s", err.text);
    names = (struct cert_names){ .subject = "controller:x", .hosts = evil, .host_count = 1 };
    assert_int_equal(cert_issue(dir, &names, in_dir("x.key"), in_dir("x.crt"), &err), -ERR_INVALID);
    static const char *const subjects[] = { "root", "node:", "node:a b", "node:a,URI:controller:c",
                                            "user:x" };
    for (size_t i = 0; i < ARRAY_LEN(subjects); i++) {
        names = (struct cert_names){ .subject = subjects[i] };
        assert_int_equal(cert_issue(dir, &names, in_dir("x.key"), in_dir("x.crt"), &err),
                         -ERR_INVALID);
    }

    /* A request that calls itself a controller becomes the node that we say it is. */
    assert_int_equal(cert_request(in_dir("n1.key"), "controller:c1", &csr, &err), 0);
    names = (struct cert_names){ .subject = "node:n1" };
    assert_int_equal(cert_sign(dir, csr.data, csr.len, &names, &cert, &err), 0);
    assert_int_equal(file_write(in_dir("n1.crt"), cert.data, cert.len, 0644, &err), 0);
    csr.data[csr.len / 2] ^= 1;
    assert_true(cert_sign(dir, csr.data, csr.len, &names, &cert, &err) < 0);
}

/* Moves bytes between two engines until both are done or one fails. */
static int shake(struct tls *client, struct tls *server, struct err *err)
{
    char bytes[20000];
    int done = 0;

    for (int round = 0; round < 20; round++) {
        int c = tls_handshake(client, err);
        size_t len = tls_output(client, bytes, sizeof(bytes));
        if (len && tls_input(server, bytes, len, err) < 0)
            return -1;
        if (c < 0)
            return c;
        int s = tls_handshake(server, err);
        len = tls_output(server, bytes, sizeof(bytes));
        if (len && tls_input(client, bytes, len, err) < 0)
            return -1;
        if (s < 0)
            return s;
        done = c == 1 && s == 1;
        if (done && !len)
            return 0;
    }
    return done ? 0 : -1;
}

static struct tls_ctx *context_of(bool server, const char *name, const char *ca, const char *hash)
{
    char cert[64], key[64];
    struct err err;

    snprintf(cert, sizeof(cert), "%s.crt", name ? name : "");
    snprintf(key, sizeof(key), "%s.key", name ? name : "");
    struct tls_ctx *ctx =
        tls_ctx_new(&(struct tls_options){ .server = server,
                                           .cert_path = name ? in_dir(cert) : NULL,
                                           .key_path = name ? in_dir(key) : NULL,
                                           .ca_path = ca ? in_dir(ca) : NULL,
                                           .ca_hash = hash },
                    &err);
    if (!ctx)
        fail_msg("%s", err.text);
    return ctx;
}

static void tls_checks_both_sides(void **state)
{
    CLEANUP(str_done) struct str pem = { 0 }, shown = { 0 };
    char hash[KEY_HASH_TEXT], wrong[KEY_HASH_TEXT], other[128];
    struct err err;

    (void)state;
    assert_int_equal(file_read(in_dir("ca.crt"), KEY_FILE_MAX, &pem, &err), 0);
    assert_int_equal(cert_hash(pem.data, pem.len, hash, &err), 0);
    memcpy(wrong, hash, sizeof(wrong));
    wrong[20] ^= 1;
    snprintf(other, sizeof(other), "%s/other", dir);
    assert_int_equal(mkdir(other, 0700), 0);
    assert_int_equal(cert_create_ca(other, "other", &err), 0);
    const struct {
        const char *server, *client, *ca, *hash, *peer;
        bool good;
        const char *subject; /* the client's, as the server sees it */
    } cases[] = {
        { "c1", NULL, "ca.crt", NULL, "c1.example.org", true, "" },
        { "c1", NULL, "ca.crt", NULL, "10.0.0.1", true, "" },
        { "c1", NULL, "ca.crt", NULL, "any.name", true, "" }, /* a controller is one by any name */
        { "c1", "n1", "ca.crt", NULL, "c1", true, "node:n1" },
        { "n1", "c1", "ca.crt", NULL, "node:n1", true, "controller:c1" },
        { "n1", NULL, "ca.crt", NULL, "node:n2", false, "" }, /* a node is not another */
        { "n1", NULL, "ca.crt", NULL, "c1.example.org", false, "" },
        { "c1", NULL, "other/ca.crt", NULL, "c1", false, "" },
        { "c1", NULL, NULL, hash, "c1", true, "" },
        { "c1", NULL, NULL, wrong, "c1", false, "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct tls_ctx *server_ctx = context_of(true, cases[i].server, "ca.crt", NULL);
        struct tls_ctx *client_ctx = context_of(false, cases[i].client, cases[i].ca, cases[i].hash);
        struct tls *server = tls_new(server_ctx, NULL);
        struct tls *client = tls_new(client_ctx, cases[i].peer);
        int rc = shake(client, server, &err);
        if ((rc == 0) != cases[i].good)
            fail_msg("case %zu: %d %s", i, rc, rc ? err.text : "");
        if (rc == 0)
            assert_string_equal(tls_peer_subject(server), cases[i].subject);
        else
            assert_int_equal(rc, -ERR_UNAUTHENTICATED);
        if (rc == 0 && cases[i].hash) { /* what a joining node keeps */
            assert_int_equal(tls_peer_ca(client, &shown, &err), 0);
            assert_string_equal(shown.data, pem.data);
        }
        tls_ctx_free(server_ctx);
        tls_ctx_free(client_ctx);
        tls_free(server);
        tls_free(client);
    }
    assert_null(tls_ctx_new(&(struct tls_options){ .server = false }, &err));
    assert_null(tls_ctx_new(&(struct tls_options){ .server = true }, &err));
}

static void the_module_has_the_same_functions(void **state)
{
    struct err err;
    const struct crypto_api *api = crypto_load(&err);

    (void)state;
    if (!api)
        fail_msg("%s", err.text);
    assert_int_equal(api->key_create(in_dir("by-module"), &err), 0);
    assert_int_equal(api->key_create(in_dir("by-module"), &err), -ERR_EXISTS);
    setenv("SPUR_LIB_DIR", "/nonexistent", 1);
    assert_ptr_equal(crypto_load(&err), api);
    unsetenv("SPUR_LIB_DIR");
}

static void munge_is_optional(void **state)
{
    CLEANUP(str_done) struct str credential = { 0 };
    uint32_t uid, gid;
    struct err err;

    (void)state;
    setenv("SPUR_MUNGE_SOCKET", in_dir("no-munged"), 1);
    assert_false(munge_available());
    assert_true(munge_make(&credential, &err) < 0);
    assert_true(munge_check("MUNGE:nonsense:", &uid, &gid, &err) < 0);
    unsetenv("SPUR_MUNGE_SOCKET");
}

static int setup(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/spur-keys.XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    struct err err;

    (void)state;
    return file_remove_tree(dir, &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(hs256_both_ways),
        UNIT(tokens_have_the_usual_form),
        UNIT(times_are_checked),
        UNIT(forged_tokens_are_refused),
        UNIT(every_changed_byte_is_noticed),
        UNIT(without_keys_nobody_can_tell),
        UNIT(a_public_key_is_no_secret),
        UNIT(an_issuer_names_users_only),
        UNIT(key_files_are_private),
        UNIT(the_authority_signs_what_we_say),
        UNIT(tls_checks_both_sides),
        UNIT(the_module_has_the_same_functions),
        UNIT(munge_is_optional),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
