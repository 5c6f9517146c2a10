/* SPDX-License-Identifier: Apache-2.0 */
/* The blocking client against a server in another process. */
#include "test/unit.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/client.h"
#include "echo_service.h"

static char dir[64], unix_address[128], tcp_address[64];
static pid_t server_pid;

/* The child serves on the socket and a free port, says which, and ends with its parent's pipe. */
static void serve(int ready, const char *leader, const char *die_with_id)
{
    struct echo echo = { .die_with_id = die_with_id };
    struct err err;
    uint16_t port;

    alarm(60);
    echo_start(&echo, uv_default_loop(), NULL);
    if (rpc_server_listen(echo.server, unix_address, &err) < 0 ||
        rpc_server_listen(echo.server, "127.0.0.1:0", &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        _exit(1);
    }
    rpc_server_set_leader(echo.server, leader == NULL, leader);
    port = rpc_server_port(echo.server, 1);
    if (write(ready, &port, sizeof(port)) != sizeof(port))
        _exit(1);
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    _exit(0);
}

static pid_t start_dying_server(const char *leader, const char *die_with_id, uint16_t *port)
{
    int ready[2];

    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        serve(ready[1], leader, die_with_id);
    close(ready[1]);
    assert_int_equal(read(ready[0], port, sizeof(*port)), sizeof(*port));
    close(ready[0]);
    return pid;
}

static pid_t start_server(const char *leader, uint16_t *port)
{
    return start_dying_server(leader, NULL, port);
}

static void end_server(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static int setup(void **state)
{
    uint16_t port;

    (void)state;
    strcpy(dir, "/tmp/spur-client.XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(unix_address, sizeof(unix_address), "unix:%s/s", dir);
    server_pid = start_server(NULL, &port);
    snprintf(tcp_address, sizeof(tcp_address), "http://localhost:%u", port);
    setenv("SPUR_RUN_DIR", "/nonexistent", 1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    end_server(server_pid);
    unlink(unix_address + 5);
    rmdir(dir);
    return 0;
}

static struct client *connect_to(const char *addresses, unsigned timeout_ms)
{
    struct err err;
    struct client *client = client_new(&(struct client_options){ .addresses = addresses,
                                                                 .timeout_ms = timeout_ms,
                                                                 .retry_ms = 300 },
                                       &err);
    if (!client)
        fail_msg("%s", err.text);
    return client;
}

static int say(struct client *client, const char *path, const char *text, uint32_t number,
               struct arena *arena, EchoMessage **reply, struct err *err)
{
    EchoMessage request = ECHO_MESSAGE__INIT;
    ProtobufCMessage *out = NULL;

    request.text = (char *)(uintptr_t)text;
    request.has_number = number != 0;
    request.number = number;
    int rc = client_call(client, path, &request.base, &echo_message__descriptor, arena, &out, err);
    *reply = (EchoMessage *)(void *)out;
    return rc;
}

static void unary_calls_over_every_address(void **state)
{
    char both[256];
    struct arena arena = { 0 };
    EchoMessage *reply;
    struct err err;

    (void)state;
    snprintf(both, sizeof(both), "127.0.0.1:1, %s", tcp_address);
    const char *addresses[] = { unix_address, tcp_address, both };
    for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
        struct client *client = connect_to(addresses[i], 5000);
        for (int n = 0; n < 100; n++) {
            assert_int_equal(say(client, "/echo.Echo/Say", "hi", 0, &arena, &reply, &err), 0);
            assert_string_equal(reply->text, "hi");
            arena_reset(&arena);
        }
        client_free(client);
    }
    arena_done(&arena);
}

static void errors_and_deadlines(void **state)
{
    struct arena arena = { 0 };
    EchoMessage *reply;
    struct err err;
    struct client *client = connect_to(unix_address, 100);

    (void)state;
    assert_int_equal(say(client, "/echo.Echo/Fail", NULL, 7, &arena, &reply, &err),
                     -ERR_INVALID_JOB_ID);
    assert_string_equal(err.option, "job");
    assert_int_equal(say(client, "/echo.Echo/Say", "x", 1000, &arena, &reply, &err), -ERR_DEADLINE);
    assert_int_equal(say(client, "/echo.Echo/Say", "x", 0, &arena, &reply, &err), 0);
    client_free(client);
    client = connect_to("127.0.0.1:1", 5000);
    assert_int_equal(say(client, "/echo.Echo/Say", "x", 0, &arena, &reply, &err), -ERR_UNREACHABLE);
    assert_non_null(strstr(err.text, "127.0.0.1:1"));
    client_free(client);
    arena_done(&arena);
}

static void a_follower_sends_us_to_the_leader(void **state)
{
    struct arena arena = { 0 };
    EchoMessage *reply;
    struct err err;
    uint16_t port;
    char saved[sizeof(unix_address)];

    (void)state;
    memcpy(saved, unix_address, sizeof(saved));
    strcat(unix_address, "2");
    pid_t follower = start_server(tcp_address, &port);
    struct client *client = connect_to(unix_address, 5000);
    assert_int_equal(say(client, "/echo.Echo/Lead", "led", 0, &arena, &reply, &err), 0);
    assert_string_equal(reply->text, "led");
    assert_string_equal(client_peer(client), tcp_address);
    client_free(client);

    EchoMessage request = ECHO_MESSAGE__INIT;
    ProtobufCMessage *message;
    unsigned count = 0;
    request.has_number = true;
    request.number = 5;
    client = connect_to(unix_address, 5000);
    struct client_stream *stream = client_stream_open(
        client,
        &(struct client_stream_options){ .path = "/echo.Echo/LeadCount",
                                         .message = &request.base,
                                         .reply_type = &echo_message__descriptor },
        &err);
    assert_non_null(stream);
    while (client_stream_next(stream, &arena, &message, &err) == CLIENT_MESSAGE)
        count++;
    assert_int_equal(count, 5);
    client_stream_free(stream);
    client_free(client);
    end_server(follower);
    unlink(unix_address + 5);
    memcpy(unix_address, saved, sizeof(saved));
    arena_done(&arena);
}

static void a_lost_connection_is_made_again(void **state)
{
    struct arena arena = { 0 };
    EchoMessage *reply;
    struct err err;
    uint16_t port;
    struct client *client = connect_to(unix_address, 5000);

    (void)state;
    assert_int_equal(say(client, "/echo.Echo/Say", "1", 0, &arena, &reply, &err), 0);
    end_server(server_pid);
    server_pid = start_server(NULL, &port);
    snprintf(tcp_address, sizeof(tcp_address), "http://localhost:%u", port);
    assert_int_equal(say(client, "/echo.Echo/Say", "2", 0, &arena, &reply, &err), 0);
    client_free(client);
    arena_done(&arena);
}

static void a_repeated_call_has_the_same_id(void **state)
{
    struct arena arena = { 0 };
    EchoMessage *reply;
    char both[256], path[128], first[64] = "", saved[sizeof(unix_address)];
    struct err err;
    uint16_t port;

    (void)state;
    snprintf(path, sizeof(path), "%s/id", dir);
    memcpy(saved, unix_address, sizeof(saved));
    strcat(unix_address, "3");
    pid_t dying = start_dying_server(NULL, path, &port);
    snprintf(both, sizeof(both), "%s,%s", unix_address, saved);
    struct client *client = connect_to(both, 5000);
    assert_int_equal(say(client, "/echo.Echo/Id", "", 0, &arena, &reply, &err), 0);
    waitpid(dying, NULL, 0);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(first, sizeof(first), file));
    fclose(file);
    assert_int_equal(strlen(first), 32);
    assert_string_equal(reply->text, first);
    assert_int_equal(say(client, "/echo.Echo/Id", "", 0, &arena, &reply, &err), 0);
    assert_string_not_equal(reply->text, first); /* another call, another id */
    client_free(client);
    unlink(path);
    unlink(unix_address + 5);
    memcpy(unix_address, saved, sizeof(saved));
    arena_done(&arena);
}

static void a_stream_is_read_to_its_end(void **state)
{
    static uint8_t data[3000];
    struct arena arena = { 0 };
    EchoMessage request = ECHO_MESSAGE__INIT;
    ProtobufCMessage *message;
    struct err err;
    struct client *client = connect_to(unix_address, 5000);
    unsigned count = 0;
    int rc;

    (void)state;
    request.has_number = request.has_data = true;
    request.number = 2000;
    request.data = (ProtobufCBinaryData){ sizeof(data), data };
    struct client_stream *stream = client_stream_open(
        client,
        &(struct client_stream_options){ .path = "/echo.Echo/Count",
                                         .message = &request.base,
                                         .reply_type = &echo_message__descriptor },
        &err);
    assert_non_null(stream);
    while ((rc = client_stream_next(stream, &arena, &message, &err)) == CLIENT_MESSAGE) {
        assert_int_equal(((EchoMessage *)(void *)message)->data.len, sizeof(data));
        arena_reset(&arena);
        count++;
    }
    assert_int_equal(rc, CLIENT_ENDED);
    assert_int_equal(count, 2000);
    client_stream_free(stream);
    client_free(client);
    arena_done(&arena);
}

static void two_way_streams_fit_a_poll_loop(void **state)
{
    static uint8_t data[20000];
    struct arena arena = { 0 };
    EchoMessage request = ECHO_MESSAGE__INIT;
    ProtobufCMessage *message;
    struct err err;
    struct client *client = connect_to(tcp_address, 5000);
    unsigned sent = 0, got = 0;
    int rc = CLIENT_AGAIN;

    (void)state;
    request.has_data = true;
    request.data = (ProtobufCBinaryData){ sizeof(data), data };
    struct client_stream *stream = client_stream_open(
        client,
        &(struct client_stream_options){ .path = "/echo.Echo/Chat",
                                         .open = true,
                                         .timeout_ms = 5000,
                                         .reply_type = &echo_message__descriptor },
        &err);
    assert_non_null(stream);
    while (rc == CLIENT_AGAIN || rc == CLIENT_MESSAGE) {
        while (sent < 500 && client_stream_writable(stream)) {
            assert_true(client_stream_send(stream, &request.base));
            if (++sent == 500)
                client_stream_finish(stream);
        }
        struct pollfd pfd = { .fd = client_fd(client), .events = client_events(client) };
        assert_true(poll(&pfd, 1, client_wait_ms(client)) > 0);
        assert_int_equal(client_pump(client, &err), 0);
        while ((rc = client_stream_try(stream, &arena, &message, &err)) == CLIENT_MESSAGE) {
            got++;
            arena_reset(&arena);
        }
    }
    assert_int_equal(rc, CLIENT_ENDED);
    assert_int_equal(got, 500);
    client_stream_free(stream);
    client_free(client);
    arena_done(&arena);
}

static void the_local_socket_is_preferred(void **state)
{
    struct arena arena = { 0 };
    ProtobufCMessage *out;
    EchoMessage request = ECHO_MESSAGE__INIT;
    char beside[128];
    struct err err;

    (void)state;
    snprintf(beside, sizeof(beside), "%s/%s.sock", dir, strrchr(tcp_address, ':') + 1);
    assert_int_equal(symlink(unix_address + 5, beside), 0);
    setenv("SPUR_RUN_DIR", dir, 1);
    setenv("SPUR_CONTROLLER_ADDR", tcp_address, 1);
    struct client *client = connect_to(NULL, 5000);
    assert_int_equal(client_call(client, "/echo.Echo/Who", &request.base, &echo_who__descriptor,
                                 &arena, &out, &err),
                     0);
    assert_string_equal(((EchoWho *)(void *)out)->how, "unix");
    client_free(client);
    setenv("SPUR_RUN_DIR", "/nonexistent", 1);
    client = connect_to(NULL, 5000);
    assert_int_equal(client_call(client, "/echo.Echo/Known", &request.base, &echo_who__descriptor,
                                 &arena, &out, &err),
                     -ERR_UNAUTHENTICATED);
    client_free(client);
    unlink(beside);
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(unary_calls_over_every_address),    UNIT(errors_and_deadlines),
        UNIT(a_follower_sends_us_to_the_leader), UNIT(a_lost_connection_is_made_again),
        UNIT(a_stream_is_read_to_its_end),       UNIT(two_way_streams_fit_a_poll_loop),
        UNIT(the_local_socket_is_preferred),     UNIT(a_repeated_call_has_the_same_id),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
