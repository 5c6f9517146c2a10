/* SPDX-License-Identifier: Apache-2.0 */
/* Server and loop client on one loop: every kind of call, and every way it can end. */
#include "test/unit.h"

#include <unistd.h>

#include "echo_service.h"
#include "rpc/jwt.h"
#include "rpc/keys.h"
#include "rpc/tls.h"
#include "sys/clock.h"
#include "sys/files.h"

static struct echo echo;
static struct rpc_client *client;
static char dir[64], address[128];

struct result {
    unsigned done, messages, number;
    enum err_code code;
    char text[512], option[48], reply[64], leader[64];
    size_t bytes;
    EchoWho who;
};

static void spin(const unsigned *until, unsigned want)
{
    while (*until < want)
        assert_true(uv_run(uv_default_loop(), UV_RUN_ONCE) != 0 || *until >= want);
}

static void spin_ms(unsigned ms)
{
    uint64_t end = uv_hrtime() + ms * 1000000ull;

    while (uv_hrtime() < end) {
        uv_run(uv_default_loop(), UV_RUN_NOWAIT);
        usleep(500);
    }
}

static void on_done(struct rpc_request *request, const ProtobufCMessage *reply,
                    const struct err *err)
{
    struct result *result = rpc_request_data(request);

    result->done++;
    result->code = err ? err->code : ERR_OK;
    if (err) {
        snprintf(result->text, sizeof(result->text), "%s", err->text);
        snprintf(result->option, sizeof(result->option), "%s", err->option);
        snprintf(result->leader, sizeof(result->leader), "%s", rpc_request_leader(request));
    } else if (reply && reply->descriptor == &echo_message__descriptor) {
        const EchoMessage *message = (const void *)reply;
        snprintf(result->reply, sizeof(result->reply), "%s", message->text ? message->text : "");
        result->bytes = message->data.len;
        result->number = message->number;
    } else if (reply) {
        result->who = *(const EchoWho *)(const void *)reply;
        snprintf(result->reply, sizeof(result->reply), "%s", result->who.how);
    }
}

static void on_message(struct rpc_request *request, const ProtobufCMessage *message)
{
    struct result *result = rpc_request_data(request);
    const EchoMessage *echoed = (const void *)message;

    result->messages++;
    result->bytes += echoed->data.len;
}

static EchoMessage text_message(const char *text, uint32_t number)
{
    EchoMessage message = ECHO_MESSAGE__INIT;

    message.text = (char *)(uintptr_t)text;
    message.has_number = number != 0;
    message.number = number;
    return message;
}

static void start_server(const struct rpc_server_options *options)
{
    struct err err;

    memset(&echo, 0, sizeof(echo));
    strcpy(dir, "/tmp/spur-rpc.XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(address, sizeof(address), "unix:%s/s", dir);
    echo_start(&echo, uv_default_loop(), options);
    assert_int_equal(rpc_server_listen(echo.server, address, &err), 0);
}

static void start_client(const char *to)
{
    struct err err;

    client = rpc_client_new(
        echo.loop, &(struct rpc_client_options){ .addresses = to, .backoff_min_ms = 20 }, &err);
    assert_non_null(client);
}

static int setup(void **state)
{
    (void)state;
    start_server(NULL);
    start_client(address);
    return 0;
}

static void stop_all(void)
{
    rpc_client_free(TAKE(client));
    rpc_server_free(TAKE(echo.server));
    rpc_loop_free(echo.loop);
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    struct err err;
    file_remove_tree(dir, &err);
}

static int teardown(void **state)
{
    (void)state;
    stop_all();
    return 0;
}

static struct rpc_request *ask(const char *path, const EchoMessage *message, unsigned timeout_ms,
                               struct result *result)
{
    bool who = strstr(path, "Who") || strstr(path, "Known") || strstr(path, "Admin");

    *result = (struct result){ 0 };
    return rpc_request_start(client,
                             &(struct rpc_request_options){
                                 .path = path,
                                 .message = &message->base,
                                 .reply = who ? &echo_who__descriptor : &echo_message__descriptor,
                                 .timeout_ms = timeout_ms,
                                 .data = result,
                                 .on_done = on_done });
}

static void unary_calls_are_answered(void **state)
{
    struct result results[64];
    EchoMessage message = text_message("hello", 0);

    (void)state;
    for (int i = 0; i < 64; i++)
        ask("/echo.Echo/Say", &message, 5000, &results[i]);
    for (int i = 0; i < 64; i++) {
        spin(&results[i].done, 1);
        assert_int_equal(results[i].code, ERR_OK);
        assert_string_equal(results[i].reply, "hello");
    }
    struct result result;
    ask("/echo.Echo/Raw", &message, 5000, &result);
    spin(&result.done, 1);
    assert_string_equal(result.reply, "hello");
}

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

static void errors_arrive_whole(void **state)
{
    struct result result;
    EchoMessage message = text_message(NULL, 42);

    (void)state;
    ask("/echo.Echo/Fail", &message, 5000, &result);
    spin(&result.done, 1);
    assert_int_equal(result.code, ERR_INVALID_JOB_ID);
    assert_string_equal(result.text, "no job 42: 100% sure, \xc3\xa9t\xc3\xa9");
    assert_string_equal(result.option, "job");
    ask("/echo.Echo/Nothing", &message, 5000, &result);
    spin(&result.done, 1);
    assert_int_equal(result.code, ERR_NO_METHOD);
}

static void metadata_goes_along(void **state)
{
    const struct rpc_metadata metadata = { "x-test", "some value" };
    struct result result = { 0 };
    EchoMessage message = text_message("", 0);

    (void)state;
    for (int i = 0; i < 2; i++) { /* first while connecting, then on the connection */
        result = (struct result){ 0 };
        rpc_request_start(client, &(struct rpc_request_options){ .path = "/echo.Echo/Meta",
                                                                 .message = &message.base,
                                                                 .reply = &echo_message__descriptor,
                                                                 .timeout_ms = 5000,
                                                                 .metadata = &metadata,
                                                                 .metadata_count = 1,
                                                                 .data = &result,
                                                                 .on_done = on_done });
        spin(&result.done, 1);
        assert_string_equal(result.reply, "some value");
        assert_in_range(result.number, 3000, 5000);
    }
    ask("/echo.Echo/Meta", &message, 0, &result);
    spin(&result.done, 1);
    assert_string_equal(result.reply, "none");
    assert_int_equal(result.number, 0);
}

static void deadlines_hold_on_both_sides(void **state)
{
    struct result result;
    EchoMessage message = text_message("late", 400);
    uint64_t start = uv_hrtime();

    (void)state;
    ask("/echo.Echo/Say", &message, 50, &result);
    spin(&result.done, 1);
    assert_int_equal(result.code, ERR_DEADLINE);
    assert_true(uv_hrtime() - start < 300 * 1000000ull);
    spin_ms(450); /* the handler answers into nothing */
    message.number = 20;
    ask("/echo.Echo/Say", &message, 1000, &result);
    spin(&result.done, 1);
    assert_int_equal(result.code, ERR_OK);
}

static struct rpc_request *stream(const char *path, const EchoMessage *message, bool open,
                                  struct result *result)
{
    *result = (struct result){ 0 };
    return rpc_request_start(
        client, &(struct rpc_request_options){ .path = path,
                                               .message = message ? &message->base : NULL,
                                               .reply = &echo_message__descriptor,
                                               .open = open,
                                               .data = result,
                                               .on_message = on_message,
                                               .on_done = on_done });
}

static void a_server_stream_arrives_whole(void **state)
{
    struct result result;
    EchoMessage message = text_message("", 3000);
    static uint8_t data[5000];

    (void)state;
    message.has_data = true;
    message.data = (ProtobufCBinaryData){ sizeof(data), data };
    stream("/echo.Echo/Count", &message, false, &result);
    spin(&result.done, 1);
    assert_int_equal(result.code, ERR_OK);
    assert_int_equal(result.messages, 3000);
    assert_int_equal(result.bytes, 3000 * sizeof(data));
    message.number = 0;
    message.has_number = false;
    stream("/echo.Echo/Count", &message, false, &result);
    spin(&result.done, 1);
    assert_int_equal(result.code, ERR_OK);
    assert_int_equal(result.messages, 0);
}

static void a_paused_reader_holds_the_server(void **state)
{
    struct result result;
    EchoMessage message = text_message("", 20000);
    static uint8_t data[10000];

    (void)state;
    message.has_data = true;
    message.data = (ProtobufCBinaryData){ sizeof(data), data };
    struct rpc_request *request = stream("/echo.Echo/Count", &message, false, &result);
    rpc_request_pause(request); /* no stream yet: nothing to pause */
    spin(&result.messages, 1);
    rpc_request_pause(request);
    spin_ms(100);
    unsigned held = result.messages;
    spin_ms(100);
    assert_int_equal(result.messages, held);
    assert_true(held < 1000);
    rpc_request_resume(request);
    spin(&result.done, 1);
    assert_int_equal(result.messages, 20000);
}

static void a_stuck_handler_holds_the_client(void **state)
{
    struct result result;
    static uint8_t data[10000];
    EchoMessage message = text_message("", 0);

    (void)state;
    message.has_data = true;
    message.data = (ProtobufCBinaryData){ sizeof(data), data };
    echo.stuck_chat = true;
    struct rpc_request *request = stream("/echo.Echo/Chat", &message, true, &result);
    spin(&result.messages, 1);
    unsigned sent = 1;
    for (int i = 0; i < 200; i++) {
        while (rpc_request_writable(request) && sent < 5000) {
            assert_true(rpc_request_send(request, &message.base));
            sent++;
        }
        spin_ms(1);
    }
    assert_true(sent < 5000); /* flow control stopped us */
    assert_int_equal(echo.messages, 1);
    echo_unstick(&echo);
    rpc_request_finish(request);
    spin(&result.done, 1);
    assert_int_equal(result.code, ERR_OK);
    assert_int_equal(result.messages, sent);
    assert_int_equal(echo.half_closed, 1);
}

static void a_cancelled_stream_tells_the_handler(void **state)
{
    struct result result;
    EchoMessage message = text_message("x", 0);

    (void)state;
    struct rpc_request *request = stream("/echo.Echo/Chat", &message, true, &result);
    spin(&result.messages, 1);
    rpc_request_cancel(request);
    spin(&echo.cancelled, 1);
    assert_int_equal(result.done, 0);
}

static void a_message_over_the_limit_is_refused(void **state)
{
    struct result result;
    static uint8_t data[2000];
    EchoMessage message = text_message("", 0);

    (void)state;
    message.has_data = true;
    message.data = (ProtobufCBinaryData){ sizeof(data), data };
    ask("/echo.Echo/Small", &message, 5000, &result);
    spin(&result.done, 1);
    assert_int_equal(result.code, ERR_TOO_LARGE);
    message.data.len = 100;
    ask("/echo.Echo/Small", &message, 5000, &result);
    spin(&result.done, 1);
    assert_int_equal(result.code, ERR_OK);
    assert_int_equal(result.bytes, 100);
}

static void large_messages_go_both_ways(void **state)
{
    struct result result;
    size_t len = 12 * 1024 * 1024;
    EchoMessage message = text_message("", 0);

    (void)state;
    message.has_data = true;
    message.data = (ProtobufCBinaryData){ len, calloc(1, len) };
    ask("/echo.Echo/Say", &message, 5000, &result);
    spin(&result.done, 1);
    assert_int_equal(result.code, ERR_OK);
    assert_int_equal(result.bytes, len);
    free(message.data.data);
}

static void followers_name_the_leader(void **state)
{
    struct result result;
    EchoMessage message = text_message("x", 0);

    (void)state;
    rpc_server_set_leader(echo.server, false, "http://c2:6817");
    ask("/echo.Echo/Lead", &message, 5000, &result);
    spin(&result.done, 1);
    assert_int_equal(result.code, ERR_NOT_LEADER);
    assert_string_equal(result.leader, "http://c2:6817");
    ask("/echo.Echo/Say", &message, 5000, &result);
    spin(&result.done, 1);
    assert_int_equal(result.code, ERR_OK);
    rpc_server_set_leader(echo.server, true, NULL);
    ask("/echo.Echo/Lead", &message, 5000, &result);
    spin(&result.done, 1);
    assert_int_equal(result.code, ERR_OK);
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

static void on_stopped(void *ctx)
{
    (*(unsigned *)ctx)++;
}

static void stopping_lets_calls_end(void **state)
{
    struct result slow, next;
    unsigned stopped = 0;
    EchoMessage message = text_message("slow", 150);

    (void)state;
    ask("/echo.Echo/Say", &message, 5000, &slow);
    spin(&echo.held, 1);
    rpc_server_stop(echo.server, 2000, on_stopped, &stopped);
    spin_ms(20);
    ask("/echo.Echo/Say", &message, 5000, &next);
    spin(&next.done, 1);
    assert_int_equal(err_grpc(next.code), GRPC_UNAVAILABLE);
    spin(&slow.done, 1);
    assert_int_equal(slow.code, ERR_OK);
    spin(&stopped, 1);
}

static void the_client_comes_back(void **state)
{
    struct result result;
    EchoMessage message = text_message("back", 0);
    struct err err;

    (void)state;
    ask("/echo.Echo/Say", &message, 5000, &result);
    spin(&result.done, 1);
    rpc_server_free(echo.server);
    spin_ms(30);
    result = (struct result){ 0 };
    rpc_request_start(client, &(struct rpc_request_options){ .path = "/echo.Echo/Say",
                                                             .message = &message.base,
                                                             .reply = &echo_message__descriptor,
                                                             .wait_ready = true,
                                                             .timeout_ms = 5000,
                                                             .data = &result,
                                                             .on_done = on_done });
    spin_ms(100);
    assert_int_equal(result.done, 0);
    struct rpc_server_options options = { .ctx = &echo, .roles = echo_roles };
    echo.server = rpc_server_new(echo.loop, &options, &err);
    assert_int_equal(rpc_server_add(echo.server, echo_methods, echo_method_count, &err), 0);
    assert_int_equal(rpc_server_listen(echo.server, address, &err), 0);
    spin(&result.done, 1);
    assert_int_equal(result.code, ERR_OK);
    assert_string_equal(result.reply, "back");
}

static void tcp_on_any_free_port(void **state)
{
    struct result result;
    EchoMessage message = text_message("tcp", 0);
    char to[64];
    struct err err;

    (void)state;
    assert_int_equal(rpc_server_listen(echo.server, "127.0.0.1:0", &err), 0);
    assert_int_equal(rpc_server_listen(echo.server, "[::1]:0", &err), 0);
    for (unsigned i = 1; i <= 2; i++) {
        rpc_client_free(client);
        snprintf(to, sizeof(to), i == 1 ? "127.0.0.1:1,http://localhost:%u" : "[::1]:%u",
                 rpc_server_port(echo.server, i));
        start_client(to);
        ask("/echo.Echo/Who", &message, 5000, &result);
        spin(&result.done, 1);
        assert_int_equal(result.code, ERR_OK);
        assert_string_equal(result.reply, "none");
        ask("/echo.Echo/Known", &message, 5000, &result);
        spin(&result.done, 1);
        assert_int_equal(result.code, ERR_UNAUTHENTICATED);
    }
    assert_true(rpc_server_listen(echo.server, address, &err) < 0);
    assert_non_null(strstr(err.text, "another process listens"));
}

static unsigned states;
static enum rpc_state seen[32];

static void on_state(void *ctx, enum rpc_state state, const struct err *why)
{
    (void)ctx;
    assert_true(state != RPC_WAITING || (why && why->text[0]));
    if (states < ARRAY_LEN(seen))
        seen[states++] = state;
}

static void the_client_tells_its_state(void **state)
{
    struct err err;

    (void)state;
    states = 0;
    rpc_client_free(client);
    client = rpc_client_new(echo.loop,
                            &(struct rpc_client_options){
                                .addresses = address, .state = on_state, .backoff_min_ms = 50 },
                            &err);
    spin(&states, 2);
    rpc_server_free(TAKE(echo.server));
    spin(&states, 5);
    static const enum rpc_state wanted[] = { RPC_CONNECTING, RPC_READY, RPC_WAITING, RPC_CONNECTING,
                                             RPC_WAITING };
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        assert_int_equal(seen[i], wanted[i]);
    assert_int_equal(rpc_client_set_addresses(client, "unix:/nonexistent", &err), 0);
    assert_true(rpc_client_set_addresses(client, "", &err) < 0);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SANITIZED
#endif

#ifdef SANITIZED /* keeps what was freed for a while; it counts what is in use itself */
size_t __sanitizer_get_current_allocated_bytes(void);

static long memory_kb(void)
{
    return (long)(__sanitizer_get_current_allocated_bytes() / 1024);
}
#else
static long memory_kb(void)
{
    char line[128];
    long kb = 0;
    FILE *file = fopen("/proc/self/status", "r");

    while (file && fgets(line, sizeof(line), file))
        sscanf(line, "VmRSS: %ld", &kb);
    if (file)
        fclose(file);
    return kb;
}
#endif

/* Both ends are in this process: what either of them kept would show. */
static void a_long_stream_takes_no_memory(void **state)
{
    struct result result;
    EchoMessage message = text_message("", 200);
    static uint8_t data[100000];

    (void)state;
    message.has_data = true;
    message.data = (ProtobufCBinaryData){ sizeof(data), data };
    stream("/echo.Echo/Count", &message, false, &result);
    spin(&result.done, 1);
    long before = memory_kb();
    message.number = 2000; /* 200 MB */
    stream("/echo.Echo/Count", &message, false, &result);
    spin(&result.done, 1);
    assert_int_equal(result.bytes, 2000 * sizeof(data));
    assert_true(memory_kb() - before < 8 * 1024);
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

#define LOOP(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOOP(unary_calls_are_answered),
        LOOP(the_kernel_says_who_calls),
        LOOP(errors_arrive_whole),
        LOOP(metadata_goes_along),
        LOOP(deadlines_hold_on_both_sides),
        LOOP(a_server_stream_arrives_whole),
        LOOP(a_paused_reader_holds_the_server),
        LOOP(a_stuck_handler_holds_the_client),
        LOOP(a_cancelled_stream_tells_the_handler),
        LOOP(a_message_over_the_limit_is_refused),
        LOOP(large_messages_go_both_ways),
        LOOP(followers_name_the_leader),
        LOOP(roles_may_come_later),
        LOOP(stopping_lets_calls_end),
        LOOP(the_client_comes_back),
        LOOP(tcp_on_any_free_port),
        LOOP(the_client_tells_its_state),
        LOOP(a_long_stream_takes_no_memory),
        LOOP(tls_and_plain_share_a_port),
        LOOP(tokens_say_who),
        LOOP(one_user_has_only_so_many_connections),
    };

    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    uv_loop_close(uv_default_loop());
    return failed;
}
