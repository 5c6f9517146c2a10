/* SPDX-License-Identifier: Apache-2.0 */
/* Server and loop client on one loop: every kind of call, and every way it can end. */
#include "harness.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "rpc/wake.h"

static void on_message(struct rpc_request *request, const ProtobufCMessage *message)
{
    struct result *result = rpc_request_data(request);
    const EchoMessage *echoed = (const void *)message;

    result->messages++;
    result->bytes += echoed->data.len;
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

static void work_for_us(int64_t us)
{
    uint64_t end = uv_hrtime() + (uint64_t)us * 1000;

    while (uv_hrtime() < end)
        ;
}

static void look_how_busy(uv_timer_t *timer)
{
    int64_t *busy = timer->data;

    busy[0] = rpc_loop_busy_us(echo.loop);
    work_for_us(3000);
    busy[1] = rpc_loop_busy_us(echo.loop);
    uv_close((uv_handle_t *)timer, NULL);
}

static void waiting_is_not_work(void **state)
{
    uv_timer_t timer;
    int64_t busy[2] = { -1, -1 };

    (void)state;
    uv_timer_init(uv_default_loop(), &timer);
    timer.data = busy;
    uv_timer_start(&timer, look_how_busy, 700, 0);
    while (busy[1] < 0)
        uv_run(uv_default_loop(), UV_RUN_ONCE);
    assert_in_range(busy[0], 0, 600000); /* it waited 700 ms */
    assert_true(busy[1] >= busy[0] + 3000);
    uv_run(uv_default_loop(), UV_RUN_NOWAIT); /* the timer is closed */
}

static void work_much(uv_check_t *check)
{
    (void)check;
    work_for_us(4000);
}

/* A turn that is long without us reads one link at least. */
static void long_turns_go_on(void **state)
{
    struct result results[16];
    EchoMessage message = text_message("hello", 0);
    uv_check_t check;

    (void)state;
    uv_check_init(uv_default_loop(), &check);
    uv_check_start(&check, work_much);
    for (int i = 0; i < 16; i++)
        ask("/echo.Echo/Say", &message, 20000, &results[i]);
    for (int i = 0; i < 16; i++) {
        spin(&results[i].done, 1);
        assert_int_equal(results[i].code, ERR_OK);
    }
    uv_close((uv_handle_t *)&check, NULL);
    uv_run(uv_default_loop(), UV_RUN_NOWAIT);
}

static unsigned connections(void)
{
    struct rpc_server_stats stats;

    rpc_server_stats(echo.server, &stats);
    return stats.connections;
}

/* Many peers that go at once are given up some in each turn. */
static void ends_come_bit_by_bit(void **state)
{
    enum { PEERS = 500, TURN_MOST = 70 };
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    int peers[PEERS];

    (void)state;
    snprintf(to.sun_path, sizeof(to.sun_path), "%s/s", dir);
    for (int i = 0; i < PEERS; i++) {
        peers[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_true(peers[i] >= 0);
        while (connect(peers[i], (struct sockaddr *)&to, sizeof(to)) < 0) /* the row is full */
            uv_run(uv_default_loop(), UV_RUN_NOWAIT);
    }
    for (int turns = 0; connections() < PEERS && turns < 1000; turns++)
        uv_run(uv_default_loop(), UV_RUN_NOWAIT);
    unsigned left = connections();
    assert_true(left >= PEERS);
    for (int i = 0; i < PEERS; i++)
        close(peers[i]);
    unsigned most = 0, first = left;
    for (int turns = 0; first - left < PEERS && turns < 1000; turns++) {
        uv_run(uv_default_loop(), UV_RUN_NOWAIT);
        unsigned now = connections();
        most = MAX(most, left - now);
        left = now;
    }
    assert_int_equal(first - left, PEERS);
    assert_in_range(most, 1, TURN_MOST);
}

enum { WAKES = 200000 };
struct woken {
    struct wake wake;
    unsigned said, heard; /* said: atomic */
    int again;
    uv_timer_t late;
    bool gave_up;
};

static void on_woken(void *data)
{
    struct woken *woken = data;

    woken->heard = __atomic_load_n(&woken->said, __ATOMIC_SEQ_CST);
    if (woken->heard == WAKES && woken->again-- > 0)
        wake_send(&woken->wake); /* and is heard though we were not done */
    else if (woken->heard == WAKES)
        uv_stop(uv_default_loop());
}

static void on_late(uv_timer_t *timer)
{
    struct woken *woken = timer->data;

    woken->gave_up = true;
    uv_stop(uv_default_loop());
}

static void wake_often(void *arg)
{
    struct woken *woken = arg;

    for (unsigned i = 0; i < WAKES; i++) {
        __atomic_add_fetch(&woken->said, 1, __ATOMIC_SEQ_CST);
        wake_send(&woken->wake);
    }
}

/* The last one of many is heard, and what is sent while one is heard. */
static void no_wake_is_lost(void **state)
{
    struct woken woken = { 0 };
    uv_thread_t thread;

    (void)state;
    assert_int_equal(wake_init(&woken.wake, uv_default_loop(), on_woken, &woken), 0);
    uv_timer_init(uv_default_loop(), &woken.late);
    woken.late.data = &woken;
    uv_timer_start(&woken.late, on_late, 30000, 0);
    for (int round = 0; round < 3; round++) {
        woken.said = woken.heard = 0;
        woken.again = 3;
        assert_int_equal(uv_thread_create(&thread, wake_often, &woken), 0);
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
        uv_thread_join(&thread);
        assert_false(woken.gave_up);
        assert_int_equal(woken.heard, WAKES);
    }
    wake_close(&woken.wake, NULL);
    uv_close((uv_handle_t *)&woken.late, NULL);
    uv_run(uv_default_loop(), UV_RUN_NOWAIT);
}

LOOP_MAIN(LOOP(no_wake_is_lost), LOOP(unary_calls_are_answered), LOOP(errors_arrive_whole),
          LOOP(metadata_goes_along), LOOP(deadlines_hold_on_both_sides),
          LOOP(a_server_stream_arrives_whole), LOOP(a_paused_reader_holds_the_server),
          LOOP(a_stuck_handler_holds_the_client), LOOP(a_cancelled_stream_tells_the_handler),
          LOOP(a_message_over_the_limit_is_refused), LOOP(large_messages_go_both_ways),
          LOOP(followers_name_the_leader), LOOP(stopping_lets_calls_end),
          LOOP(the_client_comes_back), LOOP(tcp_on_any_free_port), LOOP(the_client_tells_its_state),
          LOOP(waiting_is_not_work), LOOP(long_turns_go_on), LOOP(ends_come_bit_by_bit),
          LOOP(a_long_stream_takes_no_memory))
