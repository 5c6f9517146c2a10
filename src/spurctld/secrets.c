/* SPDX-License-Identifier: Apache-2.0 */
/*
 * secrets.c - the secrets of one controller, and the tokens made with them
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rpc/jwt.h"
#include "spurctld/secrets.h"
#include "sys/clock.h"
#include "sys/files.h"
#include "sys/rng.h"

static const char CLUSTER_KID[] = "cluster";
static const int64_t NODE_TOKEN_S = INT64_C(10) * 365 * 86400;

/* The file's bytes; made with `len` random bytes (as text when hex) when it is not there. */
static int read_or_make(const char *path, size_t len, bool hex, struct str *out, struct err *err)
{
    uint8_t random[64];
    struct str text = { 0 };

    if (access(path, F_OK) == 0)
        return file_read_secret(path, 4096, out, err);
    rng_bytes(random, len);
    if (hex) {
        for (size_t i = 0; i < len; i++)
            str_addf(&text, "%02x", random[i]);
        str_add_char(&text, '\n');
    } else {
        str_add_len(&text, random, len);
    }
    int code = file_write(path, text.data, text.len, 0600, err);
    if (code == 0)
        str_add_len(out, text.data, text.len);
    str_done(&text);
    return code;
}

static int load_id(struct secrets *secrets, const char *dir, struct err *err)
{
    CLEANUP(freep) char *path = mem_printf("%s/cluster.id", dir);
    struct str id = { 0 };
    int code = read_or_make(path, sizeof(secrets->cluster_id), false, &id, err);

    if (code == 0 && id.len != sizeof(secrets->cluster_id))
        code = err_set(err, ERR_CORRUPT, "'%s' has %zu bytes instead of %zu", path, id.len,
                       sizeof(secrets->cluster_id));
    if (code == 0)
        memcpy(secrets->cluster_id, id.data, id.len);
    str_done(&id);
    return code;
}

static int load_join(struct secrets *secrets, const char *dir, struct err *err)
{
    CLEANUP(freep) char *path = mem_printf("%s/join.token", dir);
    struct str token = { 0 };
    int code = read_or_make(path, 32, true, &token, err);

    if (code == 0)
        secrets->join_token = mem_strdup(str_trim(token.data));
    str_done(&token);
    return code;
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
                 const char *jwt_key, struct err *err)
{
    CLEANUP(freep) char *dir = mem_printf("%s/keys", state_dir);

    if (file_make_dirs(dir, 0700, err) < 0)
        return -(int)err->code;
    secrets->cluster = mem_strdup(cluster);
    secrets->verify = jwt_keys_new(cluster);
    /* join.token comes last: who waits for it finds everything else in place. */
    if (load_id(secrets, dir, err) < 0 || load_sign(secrets, dir, err) < 0 ||
        (jwt_key && load_site(secrets, jwt_key, err) < 0) || load_join(secrets, dir, err) < 0)
        return err_wrap(err, "keys of the controller");
    return 0;
}

void secrets_done(struct secrets *secrets)
{
    if (secrets->verify)
        jwt_keys_free(secrets->verify);
    if (secrets->sign)
        key_free(secrets->sign);
    free(secrets->join_token);
    free(secrets->cluster);
    *secrets = (struct secrets){ 0 };
}

bool secrets_join_ok(const struct secrets *secrets, const char *token)
{
    size_t len = strlen(secrets->join_token);
    unsigned char different = 0;

    if (!token || strlen(token) != len)
        return false;
    for (size_t i = 0; i < len; i++)
        different |= (unsigned char)(token[i] ^ secrets->join_token[i]);
    return different == 0;
}

static char *sign(const struct secrets *secrets, struct jwt_claims *claims, int64_t lifespan_s,
                  struct err *err)
{
    struct str token = { 0 };

    claims->issued_s = clock_wall_s();
    claims->expires_s = claims->issued_s + lifespan_s;
    snprintf(claims->cluster, sizeof(claims->cluster), "%s", secrets->cluster);
    if (jwt_sign_key(secrets->sign, CLUSTER_KID, claims, &token, err) < 0) {
        str_done(&token);
        return NULL;
    }
    return str_take(&token);
}

char *secrets_user_token(const struct secrets *secrets, uint32_t uid, uint32_t gid,
                         const char *user, int64_t lifespan_s, struct err *err)
{
    struct jwt_claims claims = { .has_uid = true, .has_gid = true, .uid = uid, .gid = gid };

    snprintf(claims.user, sizeof(claims.user), "%s", user);
    return sign(secrets, &claims, lifespan_s, err);
}

char *secrets_node_token(const struct secrets *secrets, const char *node, struct err *err)
{
    struct jwt_claims claims = { 0 };

    snprintf(claims.node, sizeof(claims.node), "%s", node);
    return sign(secrets, &claims, NODE_TOKEN_S, err);
}
