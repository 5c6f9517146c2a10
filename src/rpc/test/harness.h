/* SPDX-License-Identifier: Apache-2.0 */
/*
 * harness.h - a server and a loop client on one loop, for the tests of this folder
 *
 * LOOP(fn) is a test with both of them up, on a unix socket in a directory of its own.
 */
#ifndef RPC_TEST_HARNESS_H
#define RPC_TEST_HARNESS_H

#include "test/unit.h"

#include <unistd.h>

#include "echo_service.h"
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

static inline void spin(const unsigned *until, unsigned want)
{
    while (*until < want)
        assert_true(uv_run(uv_default_loop(), UV_RUN_ONCE) != 0 || *until >= want);
}

static inline void spin_ms(unsigned ms)
{
    uint64_t end = uv_hrtime() + ms * 1000000ull;

    while (uv_hrtime() < end) {
        uv_run(uv_default_loop(), UV_RUN_NOWAIT);
        usleep(500);
    }
}

static inline void on_done(struct rpc_request *request, const ProtobufCMessage *reply,
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

static inline EchoMessage text_message(const char *text, uint32_t number)
{
    EchoMessage message = ECHO_MESSAGE__INIT;

    message.text = (char *)(uintptr_t)text;
    message.has_number = number != 0;
    message.number = number;
    return message;
}

static inline void start_server(const struct rpc_server_options *options)
{
    struct err err;

    memset(&echo, 0, sizeof(echo));
    strcpy(dir, "/tmp/spur-rpc.XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(address, sizeof(address), "unix:%s/s", dir);
    echo_start(&echo, uv_default_loop(), options);
    assert_int_equal(rpc_server_listen(echo.server, address, &err), 0);
}

static inline void start_client(const char *to)
{
    struct err err;

    client = rpc_client_new(
        echo.loop, &(struct rpc_client_options){ .addresses = to, .backoff_min_ms = 20 }, &err);
    assert_non_null(client);
}

static inline int setup(void **state)
{
    (void)state;
    start_server(NULL);
    start_client(address);
    return 0;
}

static inline void stop_all(void)
{
    rpc_client_free(TAKE(client));
    rpc_server_free(TAKE(echo.server));
    rpc_loop_free(echo.loop);
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    struct err err;
    file_remove_tree(dir, &err);
}

static inline int teardown(void **state)
{
    (void)state;
    stop_all();
    return 0;
}

static inline struct rpc_request *ask(const char *path, const EchoMessage *message,
                                      unsigned timeout_ms, struct result *result)
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

#define LOOP(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

#define LOOP_MAIN(...)                                          \
    int main(void)                                              \
    {                                                           \
        const struct CMUnitTest tests[] = { __VA_ARGS__ };      \
        int failed = cmocka_run_group_tests(tests, NULL, NULL); \
        uv_loop_close(uv_default_loop());                       \
        return failed;                                          \
    }

#endif
