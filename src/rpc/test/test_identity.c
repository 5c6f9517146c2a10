/* SPDX-License-Identifier: Apache-2.0 */
/* Who a caller is: the kernel, a certificate or a token says so, and roles follow. */
#include "harness.h"

#include "rpc/jwt.h"
#include "rpc/keys.h"
#include "rpc/tls.h"
#include "sys/clock.h"

static void the_kernel_says_who_calls(void **state)
{
    struct result result;
    EchoMessage message = text_message("", 0);

    (void)state;
    ask("/echo.Echo/Who", &message, 5000, &result);
    spin(&result.done, 1);
    assert_string_equal(result.reply, "unix");
    assert_int_equal(result.who.uid, getuid());
}

static void roles_may_come_later(void **state)
{
    struct result results[8];
    EchoMessage message = text_message("x", 0);

    (void)state;
    echo.later_roles_ms = 30;
    for (int i = 0; i < 8; i++)
        ask(i % 2 ? "/echo.Echo/Known" : "/echo.Echo/Say", &message, 5000, &results[i]);
    for (int i = 0; i < 8; i++) {
        spin(&results[i].done, 1);
        assert_int_equal(results[i].code, ERR_OK);
    }
}

static int64_t later_us;

static int64_t later_mono(void *ctx)
{
    struct timespec now;

    (void)ctx;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000 + later_us;
}

static int64_t wall(void *ctx)
{
    (void)ctx;
    return time(NULL) * INT64_C(1000000);
}

static enum err_code known(void)
{
    struct result result;
    EchoMessage message = text_message("x", 0);

    ask("/echo.Echo/Known", &message, 5000, &result);
    spin(&result.done, 1);
    return result.code;
}

static void roles_are_asked_for_again(void **state)
{
    const struct clock_ops ops = { .wall_us = wall, .mono_us = later_mono, .boot_us = later_mono };

    (void)state;
    assert_int_equal(known(), ERR_OK);
    unsigned asked = echo.roles_asked;
    assert_int_equal(known(), ERR_OK);
    assert_int_equal(echo.roles_asked, asked);
    echo.no_roles = true; /* as when an administrator is taken off the list */
    assert_int_equal(known(), ERR_OK);
    clock_use(&ops, NULL);
    later_us = 6 * 1000000;
    enum err_code after = known();
    clock_use(NULL, NULL);
    echo.no_roles = false;
    assert_int_equal(echo.roles_asked, asked + 1);
    assert_int_equal(after, ERR_PERMISSION);
}

static const char *in_dir(const char *name)
{
    static char paths[4][128];
    static unsigned at;
    char *path = paths[at++ % ARRAY_LEN(paths)];

    snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
    return path;
}

static struct tls_ctx *tls_context(bool server, const char *name)
{
    char cert[64], key[64];
    struct err err;

    snprintf(cert, sizeof(cert), "%s.crt", name ? name : "");
    snprintf(key, sizeof(key), "%s.key", name ? name : "");
    struct tls_ctx *ctx =
        tls_ctx_new(&(struct tls_options){ .server = server,
                                           .cert_path = name ? in_dir(cert) : NULL,
                                           .key_path = name ? in_dir(key) : NULL,
                                           .ca_path = in_dir("ca.crt") },
                    &err);
    if (!ctx)
        fail_msg("%s", err.text);
    return ctx;
}

static void issue(const char *subject, const char *name)
{
    char cert[64], key[64];
    struct err err;

    snprintf(cert, sizeof(cert), "%s.crt", name);
    snprintf(key, sizeof(key), "%s.key", name);
    if (cert_issue(dir, &(struct cert_names){ .subject = subject }, in_dir(key), in_dir(cert),
                   &err) < 0)
        fail_msg("%s", err.text);
}

/* A second server on TCP, with TLS; returns its address with the scheme. */
static struct rpc_server *tls_server(struct tls_ctx *ctx, const struct jwt_keys *jwt, char to[64])
{
    struct rpc_server_options options = {
        .ctx = &echo, .roles = echo_roles, .tls = ctx, .jwt = jwt
    };
    struct err err;
    struct rpc_server *server = rpc_server_new(echo.loop, &options, &err);

    assert_int_equal(rpc_server_add(server, echo_methods, echo_method_count, &err), 0);
    assert_int_equal(rpc_server_listen(server, "127.0.0.1:0", &err), 0);
    snprintf(to, 64, "https://127.0.0.1:%u", rpc_server_port(server, 0));
    return server;
}

static void token_of_alice(void *ctx, struct str *out)
{
    str_addf(out, "Bearer %s", (const char *)ctx);
}

static void use_client(const char *to, struct tls_ctx *tls, const char *token)
{
    struct err err;

    rpc_client_free(client);
    client =
        rpc_client_new(echo.loop,
                       &(struct rpc_client_options){ .addresses = to,
                                                     .tls = tls,
                                                     .ctx = (void *)(uintptr_t)token,
                                                     .credentials = token ? token_of_alice : NULL },
                       &err);
    assert_non_null(client);
}

static void tls_and_plain_share_a_port(void **state)
{
    struct result result;
    EchoMessage message = text_message("x", 0);
    size_t len = 3 * 1024 * 1024;
    char to[64];
    struct err err;

    (void)state;
    assert_int_equal(cert_create_ca(dir, "test", &err), 0);
    issue("controller:c1", "c1");
    issue("node:n7", "n7");
    struct tls_ctx *server_tls = tls_context(true, "c1");
    struct tls_ctx *node_tls = tls_context(false, "n7"), *user_tls = tls_context(false, NULL);
    struct rpc_server *server = tls_server(server_tls, NULL, to);

    use_client(to, node_tls, NULL);
    ask("/echo.Echo/Known", &message, 5000, &result);
    spin(&result.done, 1);
    assert_int_equal(result.code, ERR_OK);
    assert_string_equal(result.reply, "cert");
    assert_int_equal(result.who.roles, RPC_ANON | RPC_NODE);
    message.has_data = true;
    message.data = (ProtobufCBinaryData){ len, calloc(1, len) };
    ask("/echo.Echo/Say", &message, 5000, &result);
    spin(&result.done, 1);
    assert_int_equal(result.bytes, len);
    free(message.data.data);
    message = text_message("x", 0);

    use_client(to, user_tls, NULL); /* encrypted, but nobody */
    ask("/echo.Echo/Known", &message, 5000, &result);
    spin(&result.done, 1);
    assert_int_equal(result.code, ERR_UNAUTHENTICATED);

    use_client(to + strlen("https://"), NULL, NULL); /* the same port, plain, from this host */
    ask("/echo.Echo/Say", &message, 5000, &result);
    spin(&result.done, 1);
    assert_int_equal(result.code, ERR_OK);

    use_client(to, NULL, NULL); /* https without knowing whom to trust */
    ask("/echo.Echo/Say", &message, 5000, &result);
    spin(&result.done, 1);
    assert_int_equal(result.code, ERR_UNREACHABLE);
    tls_ctx_free(server_tls);
    tls_ctx_free(node_tls);
    tls_ctx_free(user_tls);
    rpc_server_free(server);
}

static void tokens_say_who(void **state)
{
    static const char secret[] = "0123456789abcdef0123456789abcdef";
    struct jwt_claims claims = { .user = "alice", .has_uid = true, .uid = 4242 };
    CLEANUP(str_done) struct str good = { 0 }, late = { 0 };
    struct jwt_keys *keys = jwt_keys_new("c");
    struct result result;
    EchoMessage message = text_message("x", 0);
    char to[64];
    struct err err;

    (void)state;
    claims.expires_s = clock_wall_s() + 60;
    assert_int_equal(jwt_keys_add_secret(keys, NULL, JWT_CLUSTER, secret, 32, &err), 0);
    assert_int_equal(jwt_sign_secret(secret, 32, NULL, &claims, &good, &err), 0);
    claims.expires_s = clock_wall_s() - 1;
    assert_int_equal(jwt_sign_secret(secret, 32, NULL, &claims, &late, &err), 0);
    struct rpc_server *server = tls_server(NULL, keys, to);
    const struct {
        const char *token, *path;
        enum err_code want;
    } cases[] = {
        { good.data, "/echo.Echo/Known", ERR_OK },
        { good.data, "/echo.Echo/Admin", ERR_PERMISSION },
        { late.data, "/echo.Echo/Say", ERR_TOKEN_EXPIRED }, /* never falls back to nobody */
        { "x.y.z", "/echo.Echo/Say", ERR_UNAUTHENTICATED },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        use_client(to + strlen("https://"), NULL, cases[i].token);
        for (int n = 0; n < 3; n++) { /* the second time from the connection's memory */
            ask(cases[i].path, &message, 5000, &result);
            spin(&result.done, 1);
            assert_int_equal(result.code, cases[i].want);
        }
        if (cases[i].want == ERR_OK)
            assert_int_equal(result.who.uid, 4242);
    }
    rpc_server_free(server);
    rpc_client_free(TAKE(client));
    spin_ms(20);
    jwt_keys_free(keys);
}

static void one_user_has_only_so_many_connections(void **state)
{
    struct rpc_server_options options = { .ctx = &echo, .roles = echo_roles, .max_per_uid = 3 };
    struct rpc_client *clients[5];
    struct result result;
    EchoMessage message = text_message("x", 0);
    struct rpc_server_stats stats;
    struct err err;

    (void)state;
    rpc_server_free(echo.server);
    echo.server = rpc_server_new(echo.loop, &options, &err);
    assert_int_equal(rpc_server_add(echo.server, echo_methods, echo_method_count, &err), 0);
    assert_int_equal(rpc_server_listen(echo.server, address, &err), 0);
    rpc_client_free(client);
    for (int i = 0; i < 5; i++) {
        start_client(address);
        clients[i] = client;
        ask("/echo.Echo/Say", &message, 500, &result);
        spin(&result.done, 1);
        assert_int_equal(result.code == ERR_OK, i < 3);
    }
    rpc_server_stats(echo.server, &stats);
    assert_int_equal(stats.connections, 3);
    assert_true(stats.refused >= 2);
    rpc_client_free(clients[3]); /* they would try again */
    rpc_client_free(clients[4]);
    rpc_client_free(clients[0]);
    spin_ms(20);
    start_client(address); /* there is room again */
    ask("/echo.Echo/Say", &message, 2000, &result);
    spin(&result.done, 1);
    assert_int_equal(result.code, ERR_OK);
    rpc_client_free(clients[1]);
    rpc_client_free(clients[2]);
}

LOOP_MAIN(LOOP(the_kernel_says_who_calls), LOOP(roles_may_come_later),
          LOOP(roles_are_asked_for_again), LOOP(tls_and_plain_share_a_port), LOOP(tokens_say_who),
          LOOP(one_user_has_only_so_many_connections))
