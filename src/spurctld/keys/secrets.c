/* SPDX-License-Identifier: Apache-2.0 */
/*
 * secrets.c - the secrets of one controller, and the tokens made with them
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "rpc/jwt.h"
#include "rpc/tls.h"
#include "spurctld/keys/secrets.h"
#include "sys/clock.h"
#include "sys/files.h"
#include "sys/host.h"
#include "sys/rng.h"

static const char CLUSTER_KID[] = "cluster";
static const int64_t NODE_TOKEN_S = INT64_C(10) * 365 * 86400;

/* The file's bytes; made with `len` random bytes when it is not there. */
static int read_or_make(const char *path, size_t len, struct str *out, struct err *err)
{
    uint8_t random[64];

    if (access(path, F_OK) == 0)
        return file_read_secret(path, 4096, out, err);
    rng_bytes(random, len);
    if (file_write(path, random, len, 0600, err) < 0)
        return -(int)err->code;
    str_add_len(out, random, len);
    return 0;
}

static int load_id(struct secrets *secrets, const char *dir, struct err *err)
{
    CLEANUP(freep) char *path = mem_printf("%s/cluster.id", dir);
    struct str id = { 0 };
    int code = read_or_make(path, sizeof(secrets->cluster_id), &id, err);

    if (code == 0 && id.len != sizeof(secrets->cluster_id))
        code = err_set(err, ERR_CORRUPT, "'%s' has %zu bytes instead of %zu", path, id.len,
                       sizeof(secrets->cluster_id));
    if (code == 0)
        memcpy(secrets->cluster_id, id.data, id.len);
    str_done(&id);
    return code;
}

int secrets_ca_hash(const struct secrets *secrets, char out[KEY_HASH_TEXT], struct err *err)
{
    CLEANUP(freep) char *path = mem_printf("%s/ca.crt", secrets->dir);
    struct str pem = { 0 };
    int code = file_read(path, KEY_FILE_MAX, &pem, err);

    if (code == 0)
        code = cert_hash(pem.data, pem.len, out, err);
    str_done(&pem);
    return code;
}

int secrets_join_line(const struct secrets *secrets, struct str *out, struct err *err)
{
    char hash[KEY_HASH_TEXT];

    if (secrets_ca_hash(secrets, hash, err) < 0)
        return -(int)err->code;
    str_addf(out, "%s %s", secrets->join_token, hash);
    return 0;
}

static int make_join(struct secrets *secrets, const char *path, struct err *err)
{
    uint8_t random[32];
    struct str secret = { 0 }, line = { 0 };

    rng_bytes(random, sizeof(random));
    for (size_t i = 0; i < sizeof(random); i++)
        str_addf(&secret, "%02x", random[i]);
    secrets->join_token = str_take(&secret);
    int code = secrets_join_line(secrets, &line, err);
    str_add_char(&line, '\n');
    if (code == 0)
        code = file_write(path, line.data, line.len, 0600, err);
    str_done(&line);
    return code;
}

static int load_join(struct secrets *secrets, struct err *err)
{
    CLEANUP(freep) char *path = mem_printf("%s/join.token", secrets->dir);
    struct str line = { 0 };
    struct span word;

    if (access(path, F_OK) != 0)
        return make_join(secrets, path, err);
    int code = file_read_secret(path, 4096, &line, err);
    const char *cursor = str_text(&line);
    if (code == 0 && !str_next(&cursor, " \t\n", &word))
        code = err_set(err, ERR_CORRUPT, "'%s' is empty", path);
    if (code == 0)
        secrets->join_token = mem_strndup(word.ptr, word.len);
    str_done(&line);
    return code;
}

/* Whether the certificate is there and was made for these names; an old one lacks an address. */
static bool has_names(const struct secrets *secrets, const char *cert, const char *names)
{
    CLEANUP(freep) char *path = mem_printf("%s/controller.names", secrets->dir);
    CLEANUP(str_done) struct str had = { 0 };
    struct err ignored;

    return access(cert, F_OK) == 0 && file_read(path, LIMIT_CONFIG_BYTES, &had, &ignored) == 0 &&
           strcmp(str_text(&had), names) == 0;
}

static int issue(struct secrets *secrets, const struct cert_names *names, const char *key,
                 const char *cert, struct err *err)
{
    CLEANUP(freep) char *path = mem_printf("%s/controller.names", secrets->dir);
    CLEANUP(str_done) struct str text = { 0 };

    for (size_t i = 0; i < names->host_count; i++)
        str_addf(&text, "%s\n", names->hosts[i]);
    CLEANUP(freep) char *authority = mem_printf("%s/ca.key", secrets->dir);
    if (has_names(secrets, cert, str_text(&text)) ||
        (access(cert, F_OK) == 0 && access(authority, F_OK) != 0)) /* made elsewhere */
        return 0;
    int code = cert_issue(secrets->dir, names, key, cert, err);
    return code < 0 ? code : file_write(path, str_text(&text), text.len, 0600, err);
}

/* The names that a controller is reached by. */
struct own_names {
    char host[HOST_NAME_BYTES];
    char addresses[HOST_ADDRESSES][HOST_ADDRESS_BYTES];
    char *subject;
    const char *hosts[6 + HOST_ADDRESSES];
    struct cert_names names;
};

static void own_names(struct own_names *out, const char *controller, const char *address)
{
    host_name(out->host);
    out->subject = mem_printf("controller:%s", controller);
    const char *hosts[] = { "localhost", "127.0.0.1", "::1", out->host, controller, address };
    memcpy(out->hosts, hosts, sizeof(hosts));
    out->names = (struct cert_names){ .subject = out->subject,
                                      .hosts = out->hosts,
                                      .host_count = ARRAY_LEN(hosts) - (address ? 0 : 1) };
    for (size_t i = 0, count = host_addresses(out->addresses); i < count; i++)
        out->hosts[out->names.host_count++] = out->addresses[i];
}

/* The authority and the server's certificate, which has the names we are reached by. */
static int load_tls(struct secrets *secrets, const char *controller, const char *address,
                    struct err *err)
{
    CLEANUP(freep) char *ca = mem_printf("%s/ca.crt", secrets->dir);
    CLEANUP(freep) char *cert = mem_printf("%s/controller.crt", secrets->dir);
    CLEANUP(freep) char *key = mem_printf("%s/controller.key", secrets->dir);
    struct own_names own;

    if (access(ca, F_OK) != 0 && cert_create_ca(secrets->dir, secrets->cluster, err) < 0)
        return -(int)err->code;
    own_names(&own, controller, address);
    int code = issue(secrets, &own.names, key, cert, err);
    free(own.subject);
    if (code < 0)
        return code;
    struct tls_options options = {
        .server = true, .cert_path = cert, .key_path = key, .ca_path = ca
    };
    secrets->tls = tls_ctx_new(&options, err);
    return secrets->tls ? 0 : -(int)err->code;
}

void secrets_seal_key(const struct secrets *secrets, uint8_t out[KEY_SECRET_BYTES])
{
    key_derive(secrets->sign, "spur log seal", out);
}

static int copy_into(const char *from, struct str *out, struct err *err)
{
    return file_read(from, KEY_FILE_MAX, out, err);
}

int secrets_etcd(const struct secrets *secrets, const char *controller, const char *address,
                 bool own, struct err *err)
{
    CLEANUP(freep) char *dir = mem_printf("%s/etcd", secrets->dir);
    CLEANUP(freep) char *ca = mem_printf("%s/ca.crt", dir);
    CLEANUP(freep) char *trust = mem_printf("%s/trust.crt", dir);
    CLEANUP(freep) char *cert = mem_printf("%s/member.crt", dir);
    CLEANUP(freep) char *before = mem_printf("%s/controller.crt", secrets->dir);
    CLEANUP(freep) char *key = mem_printf("%s/controller.key", secrets->dir);
    CLEANUP(freep) char *cluster_ca = mem_printf("%s/ca.crt", secrets->dir);
    CLEANUP(str_done) struct str both = { 0 };
    CLEANUP(str_done) struct str old = { 0 };
    uint8_t seed[KEY_SECRET_BYTES];
    struct own_names names;
    char name[64];

    snprintf(name, sizeof(name), "Spur controllers of %.40s", secrets->cluster);
    key_derive(secrets->sign, "spur etcd authority", seed);
    if (file_make_dirs(dir, 0700, err) < 0 || cert_create_ca_from(dir, name, seed, err) < 0 ||
        copy_into(ca, &both, err) < 0 || copy_into(cluster_ca, &both, err) < 0 ||
        file_write(trust, both.data, both.len, 0644, err) < 0)
        return err_wrap(err, "authority of etcd");
    if (!own)
        return copy_into(before, &old, err) < 0 ? -(int)err->code
                                                : file_write(cert, old.data, old.len, 0644, err);
    own_names(&names, controller, address);
    int code = cert_issue(dir, &names.names, key, cert, err);
    free(names.subject);
    return code;
}

int secrets_sign(const struct secrets *secrets, const char *subject, const char *csr, size_t len,
                 struct str *certificate, struct str *ca, struct err *err)
{
    CLEANUP(freep) char *path = mem_printf("%s/ca.crt", secrets->dir);
    const char *hosts[] = { strchr(subject, ':') + 1 };
    struct cert_names names = { .subject = subject, .hosts = hosts, .host_count = 1 };

    if (cert_sign(secrets->dir, csr, len, &names, certificate, err) < 0)
        return err_wrap(err, "certificate of '%s'", subject);
    return file_read(path, KEY_FILE_MAX, ca, err);
}

static int load_sign(struct secrets *secrets, const char *dir, struct err *err)
{
    CLEANUP(freep) char *path = mem_printf("%s/cluster.key", dir);

    if (access(path, F_OK) != 0 && key_create(path, err) < 0)
        return -(int)err->code;
    secrets->sign = key_load(path, err);
    if (!secrets->sign)
        return -(int)err->code;
    key_public(secrets->sign, secrets->public_key);
    return jwt_keys_add_public(secrets->verify, CLUSTER_KID, JWT_CLUSTER, secrets->public_key, err);
}

static int load_site(struct secrets *secrets, const char *path, struct err *err)
{
    struct str secret = { 0 };
    int code = key_secret_load(path, &secret, err);

    if (code == 0)
        code =
            jwt_keys_add_secret(secrets->verify, "site", JWT_ISSUER, secret.data, secret.len, err);
    str_done(&secret);
    return code;
}

int secrets_open(struct secrets *secrets, const char *state_dir, const char *cluster,
                 const char *controller, const char *address, const char *jwt_key, struct err *err)
{
    char *dir = secrets->dir = mem_printf("%s/keys", state_dir);

    if (file_make_dirs(dir, 0700, err) < 0)
        return -(int)err->code;
    secrets->cluster = mem_strdup(cluster);
    secrets->verify = jwt_keys_new(cluster);
    /* join.token comes last: who waits for it finds everything else in place. */
    if (load_id(secrets, dir, err) < 0 || load_sign(secrets, dir, err) < 0 ||
        load_tls(secrets, controller, address, err) < 0 ||
        (jwt_key && load_site(secrets, jwt_key, err) < 0) || load_join(secrets, err) < 0)
        return err_wrap(err, "keys of the controller");
    return 0;
}

void secrets_done(struct secrets *secrets)
{
    if (secrets->verify)
        jwt_keys_free(secrets->verify);
    if (secrets->sign)
        key_free(secrets->sign);
    if (secrets->tls)
        tls_ctx_free(secrets->tls);
    free(secrets->join_token);
    free(secrets->cluster);
    free(secrets->dir);
    *secrets = (struct secrets){ 0 };
}

static char *sign(const struct secrets *secrets, struct jwt_claims *claims, int64_t lifespan_s,
                  struct err *err)
{
    struct str token = { 0 };

    claims->issued_s = MAX(clock_wall_s(), secrets->revoked_s + 1);
    claims->expires_s = claims->issued_s + lifespan_s;
    snprintf(claims->cluster, sizeof(claims->cluster), "%s", secrets->cluster);
    if (jwt_sign_key(secrets->sign, CLUSTER_KID, claims, &token, err) < 0) {
        str_done(&token);
        return NULL;
    }
    return str_take(&token);
}

char *secrets_job_token(const struct secrets *secrets, const JobOwner *owner, uint32_t job,
                        const char *node, int64_t lifespan_s, struct err *err)
{
    struct jwt_claims claims = { .has_uid = true,
                                 .has_gid = true,
                                 .uid = owner->uid,
                                 .gid = owner->gid,
                                 .has_job = true,
                                 .job = job };

    snprintf(claims.user, sizeof(claims.user), "%s", owner->user ? owner->user : "");
    snprintf(claims.job_node, sizeof(claims.job_node), "%s", node);
    return sign(secrets, &claims, lifespan_s, err);
}

char *secrets_user_token(const struct secrets *secrets, uint32_t uid, uint32_t gid,
                         const char *user, const char *by, int64_t lifespan_s, struct err *err)
{
    struct jwt_claims claims = { .has_uid = true, .has_gid = true, .uid = uid, .gid = gid };

    snprintf(claims.by, sizeof(claims.by), "%s", by);
    snprintf(claims.user, sizeof(claims.user), "%s", user);
    return sign(secrets, &claims, lifespan_s, err);
}

char *secrets_rest_token(const struct secrets *secrets, uint32_t uid, uint32_t gid,
                         const char *user, const char *by, int64_t lifespan_s, struct err *err)
{
    struct jwt_claims claims = {
        .has_uid = true, .has_gid = true, .uid = uid, .gid = gid, .no_staff = true
    };

    snprintf(claims.by, sizeof(claims.by), "%s", by);
    snprintf(claims.user, sizeof(claims.user), "%s", user);
    return sign(secrets, &claims, lifespan_s, err);
}

char *secrets_node_token(const struct secrets *secrets, const char *node, struct err *err)
{
    struct jwt_claims claims = { 0 };

    snprintf(claims.node, sizeof(claims.node), "%s", node);
    return sign(secrets, &claims, NODE_TOKEN_S, err);
}

char *secrets_node_pass(const struct secrets *secrets, const char *node, int64_t lifespan_s,
                        struct err *err)
{
    struct jwt_claims claims = { 0 };

    snprintf(claims.node, sizeof(claims.node), "%s", node);
    return sign(secrets, &claims, lifespan_s, err);
}
