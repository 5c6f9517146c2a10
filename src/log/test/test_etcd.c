/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_etcd.c - three controllers on three real etcd members, on loopback
 *
 * One process runs the three logs on one loop; the members are processes that member.c starts.
 * Members and controllers are killed; figures are printed.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <uv.h>

#include "log/etcd.h"
#include "log/etcd_rpc.h"
#include "log/log_uv.h"
#include "log/member.h"
#include "log/test/recorder.h"
#include "rpc/keys.h"
#include "rpc/tls.h"

enum { CONTROLLERS = 3, LEN = 3300 };

struct controller {
    char name[8], dir[128], member_dir[128], key[128], cert[128], client_url[64], peer_url[64],
        addresses[256];
    struct member *member;
    struct etcd_rpc *rpc;
    struct log_uv *binding;
    struct log *log;
    VEC(uint64_t) seen;
    uint64_t restored, own, refused, wanted;
    bool leads, failed;
    int64_t led_us;
    struct err why;
};

static uv_loop_t loop;
static struct rpc_loop *rpc_loop;
static struct controller controllers[CONTROLLERS];
static char cluster[512];
static bool with_tls;
static struct tls_ctx *tls;

/* ---- an owner ---- */

static int on_restore(void *ctx, struct snapshot_reader *snapshot, struct err *err)
{
    struct controller *self = ctx;
    uint64_t number;

    vec_clear(&self->seen);
    while (snapshot_read(snapshot, &number, sizeof(number), err) == sizeof(number))
        vec_push(&self->seen, number);
    self->restored = self->seen.len;
    return 0;
}

static int on_apply(void *ctx, const struct log_batch *batch, struct err *err)
{
    struct controller *self = ctx;
    struct log_walk walk;
    struct log_entry entry;
    uint64_t number;

    (void)err;
    for (log_walk_init(&walk, batch); log_walk_next(&walk, &entry);) {
        assert_int_equal(entry.index, self->seen.len + 1);
        memcpy(&number, entry.command.ptr, sizeof(number));
        vec_push(&self->seen, number);
    }
    if (batch->own)
        self->own += batch->count;
    return 0;
}

static void on_refused(void *ctx, uint32_t count, const struct err *why)
{
    struct controller *self = ctx;

    self->refused += count;
    self->why = *why;
}

static void on_role(void *ctx, enum log_role role, const char *leader)
{
    struct controller *self = ctx;

    (void)leader;
    self->leads = role == LOG_LEADS;
    if (self->leads)
        self->led_us = clock_mono_us();
}

static void on_failed(void *ctx, const struct err *why)
{
    struct controller *self = ctx;

    self->failed = true;
    self->why = *why;
}

static bool on_live(void *ctx, const uint8_t digest[LOG_DIGEST_BYTES])
{
    (void)ctx, (void)digest;
    return true;
}

static void on_wake(void *ctx)
{
    log_uv_wake(((struct controller *)ctx)->binding);
}

static void on_need_snapshot(void *ctx, uint64_t index)
{
    ((struct controller *)ctx)->wanted = index;
}

static const struct log_owner etcd_owner = {
    .restore = on_restore,
    .apply = on_apply,
    .refused = on_refused,
    .role = on_role,
    .failed = on_failed,
    .payload_live = on_live,
    .wake = on_wake,
    .need_snapshot = on_need_snapshot,
};

/* ---- the world ---- */

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

static bool pump(bool (*until)(void), int timeout_ms)
{
    int64_t end = clock_mono_us() + (int64_t)timeout_ms * 1000;
    uv_timer_t tick;

    uv_timer_init(&loop, &tick);
    uv_timer_start(&tick, on_tick, 5, 5);
    while (!until() && clock_mono_us() < end)
        uv_run(&loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&tick, NULL);
    uv_run(&loop, UV_RUN_NOWAIT);
    return until();
}

static int free_port(void)
{
    struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
    close(fd);
    return ntohs(addr.sin_port);
}

static void start_member(struct controller *self)
{
    struct member_options options = {
        .uv = &loop,
        .dir = self->member_dir,
        .name = self->name,
        .client_url = self->client_url,
        .peer_url = self->peer_url,
        .cluster = cluster,
        .token = test_dir,
    };
    char ca[128];
    struct err err;

    if (with_tls) {
        snprintf(ca, sizeof(ca), "%s/ca.crt", test_dir);
        options.cert_path = self->cert;
        options.key_path = self->key;
        options.ca_path = ca;
    }
    if (member_start(&options, &self->member, &err) < 0)
        fail_msg("%s", err.text);
}

static void start_log(struct controller *self)
{
    struct log_config config = {
        .dir = self->dir, .name = self->name, .owner = &etcd_owner, .owner_ctx = self
    };
    struct etcd_rpc_options rpc = {
        .uv = &loop, .loop = rpc_loop, .addresses = self->addresses, .tls = tls
    };
    struct etcd_options options = { .io = &etcd_rpc_io,
                                    .prefix = "/spur/test",
                                    .controllers = CONTROLLERS };
    struct err err;

    self->leads = self->failed = false;
    self->own = self->refused = self->wanted = self->restored = 0;
    vec_clear(&self->seen);
    self->rpc = etcd_rpc_new(&rpc, &err);
    assert_non_null(self->rpc);
    options.io_ctx = self->rpc;
    self->binding = log_uv_new(&loop);
    self->log = log_etcd_new(&config, &options, &err);
    log_uv_bind(self->binding, self->log);
    if (log_start(self->log, &err) < 0)
        fail_msg("%s", err.text);
}

static void kill_log(struct controller *self)
{
    log_free(TAKE(self->log));
    log_uv_close(TAKE(self->binding));
    etcd_rpc_free(TAKE(self->rpc));
    self->leads = false;
    uv_run(&loop, UV_RUN_NOWAIT);
}

static struct controller *leader(void)
{
    for (int i = 0; i < CONTROLLERS; i++) {
        if (controllers[i].leads)
            return &controllers[i];
    }
    return NULL;
}

static bool somebody_leads(void)
{
    return leader() != NULL;
}

static size_t want_seen;
static bool all_have_seen(void)
{
    for (int i = 0; i < CONTROLLERS; i++) {
        assert_false(controllers[i].failed);
        if (controllers[i].log && controllers[i].seen.len < want_seen)
            return false;
    }
    return true;
}

static bool leader_has_seen(void)
{
    return leader() && leader()->seen.len + leader()->refused >= want_seen;
}

static void append_to_leader(uint64_t count, size_t payload_len)
{
    struct controller *self = leader();
    struct err err;

    assert_non_null(self);
    for (uint64_t i = 1; i <= count; i++) {
        if (append_number(self->log, self->seen.len + i, payload_len, &err) < 0)
            fail_msg("%s", err.text);
    }
    log_flush(self->log);
    want_seen = self->seen.len + count;
}

static void assert_all_agree(size_t want)
{
    want_seen = want;
    assert_true(pump(all_have_seen, 10000));
    for (int i = 0; i < CONTROLLERS; i++) {
        const struct controller *self = &controllers[i];
        if (!self->log)
            continue;
        assert_int_equal(self->seen.len, want);
        for (size_t j = 0; j < want; j++)
            assert_int_equal(self->seen.items[j], j + 1);
    }
}

static void make_certificate(struct controller *self)
{
    static const char *const hosts[] = { "127.0.0.1", "localhost" };
    char subject[32];
    struct cert_names names = { .subject = subject, .hosts = hosts, .host_count = 2 };
    struct err err;

    snprintf(subject, sizeof(subject), "controller:%s", self->name);
    snprintf(self->key, sizeof(self->key), "%.100s/tls.key", self->dir);
    snprintf(self->cert, sizeof(self->cert), "%.100s/tls.crt", self->dir);
    if (cert_issue(test_dir, &names, self->key, self->cert, &err) < 0)
        fail_msg("%s", err.text);
}

/* All three controllers are this process, so one certificate serves them all as clients. */
static void start_tls(void)
{
    char ca[128];
    struct tls_options options = { .cert_path = controllers[0].cert,
                                   .key_path = controllers[0].key,
                                   .ca_path = ca };
    struct err err;

    snprintf(ca, sizeof(ca), "%s/ca.crt", test_dir);
    tls = tls_ctx_new(&options, &err);
    if (!tls)
        fail_msg("%s", err.text);
}

static int start_world(void **state)
{
    const char *scheme = with_tls ? "https" : "http";

    make_dir(state);
    if (with_tls && cert_create_ca(test_dir, "test", NULL) < 0)
        return -1;
    log_use(getenv("SPUR_LOUD") ? NULL : quiet, NULL);
    uv_loop_init(&loop);
    rpc_loop = rpc_loop_new(&loop);
    for (int i = 0; i < CONTROLLERS; i++) {
        struct controller *self = &controllers[i];
        snprintf(self->name, sizeof(self->name), "c%d", i + 1);
        snprintf(self->dir, sizeof(self->dir), "%.63s/%.7s", test_dir, self->name);
        snprintf(self->member_dir, sizeof(self->member_dir), "%.100s/etcd", self->dir);
        mkdir(self->dir, 0700);
        if (with_tls)
            make_certificate(self);
        snprintf(self->client_url, sizeof(self->client_url), "%s://127.0.0.1:%d", scheme,
                 free_port());
        snprintf(self->peer_url, sizeof(self->peer_url), "%s://127.0.0.1:%d", scheme, free_port());
        snprintf(cluster + strlen(cluster), sizeof(cluster) - strlen(cluster), "%s%.7s=%.63s",
                 i ? "," : "", self->name, self->peer_url);
    }
    for (int i = 0; i < CONTROLLERS; i++) {
        struct controller *self = &controllers[i];
        for (int j = 0; j < CONTROLLERS; j++)
            snprintf(self->addresses + strlen(self->addresses),
                     sizeof(self->addresses) - strlen(self->addresses), "%s%.63s", j ? "," : "",
                     controllers[(i + j) % CONTROLLERS].client_url);
        start_member(self);
    }
    if (with_tls)
        start_tls();
    for (int i = 0; i < CONTROLLERS; i++)
        start_log(&controllers[i]);
    return 0;
}

static int end_world(void **state)
{
    for (int i = 0; i < CONTROLLERS; i++) {
        if (controllers[i].log)
            kill_log(&controllers[i]);
        member_end(TAKE(controllers[i].member));
        vec_done(&controllers[i].seen);
    }
    rpc_loop_free(rpc_loop);
    tls_ctx_free(tls);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    return remove_dir(state);
}

/* ---- what is claimed ---- */

static void one_leads_and_all_hear(void **state)
{
    (void)state;
    int64_t start = clock_mono_us();
    assert_true(pump(somebody_leads, 20000));
    print_message("first leader after %lld ms\n", (long long)(clock_mono_us() - start) / 1000);
    append_to_leader(200, LEN);
    assert_true(pump(leader_has_seen, 10000));
    assert_all_agree(200);
    for (int i = 0; i < CONTROLLERS; i++) {
        for (uint64_t n = 1; n <= 200; n += 50)
            assert_int_equal(check_payload(controllers[i].log, n, LEN, NULL), 0);
    }
    /* A follower refuses. */
    for (int i = 0; i < CONTROLLERS; i++) {
        if (!controllers[i].leads)
            assert_int_equal(append_number(controllers[i].log, 1, 0, NULL), -(int)ERR_NOT_LEADER);
    }
}

static int confirmed;
static void on_confirmed(void *arg, int rc)
{
    (void)arg;
    confirmed = rc == 0 ? 1 : -1;
}
static bool is_confirmed(void)
{
    return confirmed != 0;
}

static void reads_are_confirmed(void **state)
{
    (void)state;
    confirmed = 0;
    log_confirm(leader()->log, on_confirmed, NULL);
    assert_int_equal(confirmed, 0);
    assert_true(pump(is_confirmed, 5000));
    assert_int_equal(confirmed, 1);
}

/* An environment as a login shell has it, with what differs from job to job in it. */
static void append_environment(struct log *log, uint64_t number)
{
    CLEANUP(str_done) struct str text = { 0 };
    uint8_t digest[DIGEST_BYTES];

    for (unsigned i = 0; text.len < LEN - 100; i++)
        str_addf(&text, "SETTING_%u=/opt/site/%08x/share/module%u:/usr/lib/x86_64-linux-gnu%c", i,
                 i * 2654435761u, i * 7, 0);
    str_addf(&text, "JOB_NUMBER=%llu%cJOB_KEY=%016llx%c", (unsigned long long)number, 0,
             (unsigned long long)number * 0x9e3779b97f4a7c15u, 0);
    digest_sha256(text.data, text.len, digest);
    struct log_payload payload = { digest, { text.data, text.len } };
    assert_int_equal(
        log_append(log, (struct span){ (char *)&number, sizeof(number) }, &payload, 1, NULL), 0);
}

/* Three replicas in one process, and the making of environments. */
static int64_t cpu_us(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (int64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
           usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

static void figures(void **state)
{
    enum { ROUNDS = 200 };
    static const unsigned sizes[] = { 1, 16, 64, 128 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        int64_t start = clock_mono_us(), cpu = cpu_us();
        size_t before = leader()->seen.len;
        for (int round = 0; round < ROUNDS; round++) {
            struct controller *self = leader();
            for (unsigned j = 1; j <= sizes[i]; j++)
                append_environment(self->log, self->seen.len + j);
            log_flush(self->log);
            want_seen = self->seen.len + sizes[i];
            assert_true(pump(leader_has_seen, 10000));
        }
        double took = (double)(clock_mono_us() - start) / 1e6;
        print_message(
            "%2u a batch: %.0f commits/s, %.0f commands/s, %.2f ms each, %.1f us of our CPU a command\n",
            sizes[i], ROUNDS / took, (double)(leader()->seen.len - before) / took,
            took * 1e3 / ROUNDS, (double)(cpu_us() - cpu) / (double)(leader()->seen.len - before));
    }
    assert_all_agree(leader()->seen.len);
}

static void handing_over_is_quick(void **state)
{
    struct controller *old = leader();
    size_t had = old->seen.len;

    (void)state;
    int64_t start = clock_mono_us();
    log_resign(old->log);
    old->leads = false; /* until it hears so itself */
    assert_true(pump(somebody_leads, 5000));
    print_message("handed over in %lld ms\n", (long long)(leader()->led_us - start) / 1000);
    assert_ptr_not_equal(leader(), old);
    append_to_leader(10, LEN);
    assert_true(pump(leader_has_seen, 10000));
    assert_all_agree(had + 10);
}

static void a_dead_leader_is_deposed(void **state)
{
    struct controller *old = leader();
    size_t had = old->seen.len;

    (void)state;
    kill_log(old);
    int64_t start = clock_mono_us();
    for (int i = 0; i < CONTROLLERS; i++) {
        if (controllers[i].log) /* as an owner does whose connection to the leader broke */
            log_depose(controllers[i].log, log_leader(controllers[i].log).term);
    }
    assert_true(pump(somebody_leads, 8000));
    print_message("new leader after %lld ms\n", (long long)(leader()->led_us - start) / 1000);
    append_to_leader(10, LEN);
    assert_true(pump(leader_has_seen, 10000));
    start_log(old);
    assert_all_agree(had + 10);
    assert_int_equal(check_payload(old->log, had + 5, LEN, NULL), 0);
}

static pid_t killed;
static bool member_is_back(void)
{
    for (int i = 0; i < CONTROLLERS; i++) {
        if (member_pid(controllers[i].member) == 0 || member_pid(controllers[i].member) == killed)
            return false;
    }
    return true;
}

static void killed_members_come_back(void **state)
{
    (void)state;
    for (int i = 0; i < CONTROLLERS; i++) { /* one of them is etcd's own leader */
        size_t had = leader()->seen.len;
        killed = member_pid(controllers[i].member);
        assert_int_equal(kill(killed, SIGKILL), 0);
        int64_t start = clock_mono_us();
        append_to_leader(10, LEN);
        assert_true(pump(leader_has_seen, 15000));
        print_message("member %s killed: next commit after %lld ms\n", controllers[i].name,
                      (long long)(clock_mono_us() - start) / 1000);
        assert_true(pump(member_is_back, 10000));
        assert_true(pump(somebody_leads, 10000));
        assert_int_equal(leader()->refused, 0);
        assert_all_agree(had + 10);
    }
}

static void members_outlive_controllers(void **state)
{
    struct controller *self = &controllers[1];
    pid_t pid = member_pid(self->member);

    (void)state;
    member_release(TAKE(self->member));
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(kill(pid, 0), 0);
    start_member(self);
    assert_int_equal(member_pid(self->member), pid);
}

static void write_snapshot(struct controller *self)
{
    struct snapshot_writer *writer = NULL;
    struct log_point point = log_point(self->log);

    assert_int_equal(snapshot_create(self->dir, point, &writer, NULL), 0);
    snapshot_write(writer, self->seen.items, self->seen.len * sizeof(uint64_t), NULL);
    assert_int_equal(snapshot_finish(writer, NULL), 0);
    assert_int_equal(log_snapshot_taken(self->log, point, NULL), 0);
}

static uint64_t trim_goal;
static bool is_trimmed(void)
{
    struct log_status status;

    log_status(leader()->log, &status);
    return status.first > trim_goal;
}

static bool last_wants_snapshot(void)
{
    return controllers[2].wanted != 0;
}

static bool last_has_restored(void)
{
    return controllers[2].seen.len == want_seen;
}

static void a_late_one_gets_a_snapshot(void **state)
{
    char command[512];

    (void)state;
    if (controllers[2].leads) {
        log_resign(controllers[2].log);
        controllers[2].leads = false;
        assert_true(pump(somebody_leads, 5000));
    }
    kill_log(&controllers[2]);
    append_to_leader(50, LEN);
    assert_true(pump(leader_has_seen, 10000));
    assert_all_agree(want_seen);
    trim_goal = want_seen;
    write_snapshot(&controllers[0]);
    write_snapshot(&controllers[1]);
    append_to_leader(5, LEN); /* the newest entry is never trimmed */
    assert_true(pump(leader_has_seen, 10000));
    assert_true(pump(is_trimmed, 10000));
    start_log(&controllers[2]);
    assert_true(pump(last_wants_snapshot, 10000));
    assert_int_equal(controllers[2].wanted, trim_goal);
    snprintf(command, sizeof(command), "cp %s/snapshot-%020llu %s/", controllers[0].dir,
             (unsigned long long)trim_goal, controllers[2].dir);
    assert_int_equal(system(command), 0);
    want_seen = trim_goal + 5;
    assert_int_equal(log_snapshot_fetched(controllers[2].log, trim_goal, NULL), 0);
    assert_true(pump(last_has_restored, 10000));
    assert_int_equal(controllers[2].restored, trim_goal);
    assert_all_agree(trim_goal + 5);
}

static struct controller *watched;
static uint64_t snapshot_goal;
static bool has_snapshot(void)
{
    struct log_status status;

    log_status(watched->log, &status);
    return status.snapshot == snapshot_goal;
}

/* Held in memory, then in segments, then moved to the table: the bytes are the same. */
static void payloads_stay(void **state)
{
    size_t had = leader()->seen.len;

    (void)state;
    watched = &controllers[0];
    for (int round = 0; round < 4; round++) {
        append_to_leader(20, LEN);
        assert_true(pump(leader_has_seen, 10000));
        assert_all_agree(want_seen);
        snapshot_goal = want_seen;
        write_snapshot(watched);
        assert_true(pump(has_snapshot, 10000));
        for (uint64_t n = had + 1; n <= want_seen; n++)
            assert_int_equal(check_payload(watched->log, n, LEN, NULL), 0);
    }
    bool led = watched->leads;
    kill_log(watched);
    start_log(watched);
    want_seen = snapshot_goal;
    assert_true(pump(all_have_seen, 10000));
    assert_true(!led || pump(somebody_leads, 10000));
    for (uint64_t n = had + 1; n <= want_seen; n++)
        assert_int_equal(check_payload(watched->log, n, LEN, NULL), 0);
}

/* "tls": the same over TLS with certificates on both sides, members among themselves too. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        UNIT(one_leads_and_all_hear),
        UNIT(reads_are_confirmed),
        UNIT(figures),
        UNIT(handing_over_is_quick),
        UNIT(a_dead_leader_is_deposed),
        UNIT(killed_members_come_back),
        UNIT(members_outlive_controllers),
        UNIT(a_late_one_gets_a_snapshot),
        UNIT(payloads_stay),
    };
    const struct CMUnitTest tls_tests[] = {
        UNIT(one_leads_and_all_hear),
        UNIT(handing_over_is_quick),
        UNIT(killed_members_come_back),
    };

    if (access("/usr/bin/etcd", X_OK) != 0) {
        printf("etcd is not installed: not tried\n");
        return 77;
    }
    with_tls = argc > 1 && str_eq(argv[1], "tls");
    return with_tls ? cmocka_run_group_tests(tls_tests, start_world, end_world)
                    : cmocka_run_group_tests(tests, start_world, end_world);
}
