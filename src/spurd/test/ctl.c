/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl.c - a fake controller that drives a real spurd
 */
#include "spurd/test/ctl.h"

#include "test/unit.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/str.h"
#include "rpc/jwt.h"
#include "rpc/keys.h"
#include "sys/clock.h"
#include "sys/files.h"
#include "sys/log.h"

/* ---- the service ---- */

static void send_welcome(struct ctl *ctl, const NodeHello *hello)
{
    CtlMessage message = CTL_MESSAGE__INIT;
    CtlWelcome welcome = CTL_WELCOME__INIT;

    ctl->config.common = &ctl->common;
    ctl->config.spec = &ctl->spec;
    welcome.config = &ctl->config;
    welcome.has_epoch = welcome.has_heartbeat_ms = true;
    welcome.epoch = ctl->epoch;
    welcome.heartbeat_ms = 200;
    welcome.has_lease_ms = true;
    welcome.lease_ms = ctl->lease_ms;
    if (ctl->has_verify_key) {
        welcome.has_verify_key = true;
        welcome.verify_key = (ProtobufCBinaryData){ .data = ctl->verify_key, .len = 32 };
    }
    if (!ctl->keep_none) {
        welcome.n_keep = hello->n_held;
        welcome.keep = hello->held;
    }
    message.what_case = CTL_MESSAGE__WHAT_WELCOME;
    message.welcome = &welcome;
    ctl_send(ctl, &message);
}

static NodeMessage *copy(const NodeMessage *message)
{
    size_t len = node_message__get_packed_size(message);
    uint8_t *bytes = malloc(len + 1);

    node_message__pack(message, bytes);
    NodeMessage *out = node_message__unpack(NULL, len, bytes);
    free(bytes);
    return out;
}

static void answer_beat(struct ctl *ctl, uint64_t seq)
{
    CtlMessage message = CTL_MESSAGE__INIT;
    CtlPing ping = CTL_PING__INIT;

    ping.has_seq = true;
    ping.seq = seq;
    message.what_case = CTL_MESSAGE__WHAT_PING;
    message.ping = &ping;
    ctl_send(ctl, &message);
}

static void on_message(struct rpc_call *call, const ProtobufCMessage *base)
{
    struct ctl *ctl = rpc_call_ctx(call);
    NodeMessage *message = copy((const NodeMessage *)(const void *)base);

    if (message->what_case == NODE_MESSAGE__WHAT_HEARTBEAT && ctl->answer_beats)
        answer_beat(ctl, message->heartbeat->seq);
    if (message->what_case != NODE_MESSAGE__WHAT_HELLO) {
        vec_push(&ctl->inbox, message);
        return;
    }
    if (ctl->hello)
        node_hello__free_unpacked(ctl->hello, NULL);
    ctl->hello = TAKE(message->hello);
    message->what_case = NODE_MESSAGE__WHAT__NOT_SET;
    node_message__free_unpacked(message, NULL);
    if (ctl->stream && ctl->stream != call)
        rpc_end(ctl->stream);
    ctl->stream = call;
    ctl->hellos++;
    if (!ctl->silent)
        send_welcome(ctl, ctl->hello);
}

static void on_gone(struct rpc_call *call)
{
    struct ctl *ctl = rpc_call_ctx(call);

    if (ctl->stream == call)
        ctl->stream = NULL;
    rpc_end(call);
}

static const struct rpc_watch watch = { .on_message = on_message,
                                        .on_cancel = on_gone,
                                        .on_half_close = on_gone };

static void on_session(struct rpc_call *call, const ProtobufCMessage *message)
{
    struct ctl *ctl = rpc_call_ctx(call);

    (void)message;
    snprintf(ctl->shown_node, sizeof(ctl->shown_node), "%.63s", rpc_call_identity(call)->node);
    rpc_watch(call, &watch);
}

static void on_join(struct rpc_call *call, const ProtobufCMessage *base)
{
    const JoinRequest *request = (const JoinRequest *)(const void *)base;
    struct ctl *ctl = rpc_call_ctx(call);
    JoinReply reply = JOIN_REPLY__INIT;
    struct jwt_claims claims = { .expires_s = clock_wall_s() + 3600 };
    struct str token = { 0 };

    snprintf(claims.node, sizeof(claims.node), "%s", request->node);
    assert_int_equal(jwt_sign_key(ctl->key, NULL, &claims, &token, NULL), 0);
    snprintf(ctl->joined_with, sizeof(ctl->joined_with), "%s", request->token);
    assert_true(request->csr.len > 100);
    reply.node_token = token.data;
    rpc_reply(call, &reply.base);
    str_done(&token);
}

static const struct rpc_method methods[] = {
    { "/spur.Agents/Session", RPC_ANON, false, RPC_BIDI, &node_message__descriptor,
      &ctl_message__descriptor, on_session, 0 },
    { "/spur.Agents/Join", RPC_ANON, false, RPC_UNARY, &join_request__descriptor,
      &join_reply__descriptor, on_join, 0 },
};

static unsigned roles(void *ctx, const struct rpc_identity *identity, struct rpc_auth *auth)
{
    (void)ctx, (void)identity, (void)auth;
    return RPC_NODE;
}

/* ---- life ---- */

static struct ctl *open_now;

static char *cgroup_dir(void)
{
    FILE *mounts = fopen("/proc/mounts", "r");
    char line[512], path[256], type[64], *found = NULL;

    while (mounts && !found && fgets(line, sizeof(line), mounts)) {
        if (sscanf(line, "%*s %255s %63s", path, type) == 2 && strcmp(type, "cgroup2") == 0)
            found = mem_printf("%s/spur/test%d-n1", path, (int)getpid());
    }
    if (mounts)
        fclose(mounts);
    return found;
}

/* Jobs of a test that failed outlive their agent, as they should; not this program. */
static void end_jobs(void)
{
    char *dir = cgroup_dir(), *path = dir ? mem_printf("%s/cgroup.kill", dir) : NULL;
    FILE *file = path ? fopen(path, "w") : NULL;

    if (file) {
        fputs("1", file);
        fclose(file);
    }
    for (int i = 0; dir && i < 100 && rmdir(dir) < 0 && errno == EBUSY; i++)
        usleep(20000);
    free(path);
    free(dir);
}

static void clean_up(void)
{
    if (!open_now)
        return;
    if (open_now->spurd > 0)
        kill(open_now->spurd, SIGKILL);
    end_jobs();
}

void ctl_open(struct ctl *ctl)
{
    struct err err = { 0 };
    static char cluster[32], hash[] = "1", name[] = "n1";

    memset(ctl, 0, sizeof(*ctl));
    strcpy(ctl->dir, "/tmp/spurd-XXXXXX");
    assert_non_null(mkdtemp(ctl->dir));
    assert_int_equal(chmod(ctl->dir, 0777), 0);
    ctl->epoch = 1;
    ctl->patience = 1;
    config__init(&ctl->common);
    node_config__init(&ctl->config);
    node_spec__init(&ctl->spec);
    snprintf(cluster, sizeof(cluster), "test%d", (int)getpid());
    ctl->config.cluster_name = cluster;
    if (!open_now)
        atexit(clean_up);
    open_now = ctl;
    ctl->config.hash = hash;
    ctl->spec.name = name;
    ctl->common.has_disable_root_jobs = true; /* root's jobs are allowed */
    ctl->common.has_kill_wait_s = true;
    ctl->common.kill_wait_s = 1;
    uv_loop_init(&ctl->uv);
    ctl->rpc = rpc_loop_new(&ctl->uv);
    uint8_t public_key[KEY_PUBLIC_BYTES];
    ctl->key = key_generate();
    ctl->tokens = jwt_keys_new("");
    key_public(ctl->key, public_key);
    assert_int_equal(jwt_keys_add_public(ctl->tokens, NULL, JWT_CLUSTER, public_key, NULL), 0);
    const struct rpc_server_options options = { .ctx = ctl, .roles = roles, .jwt = ctl->tokens };
    ctl->server = rpc_server_new(ctl->rpc, &options, &err);
    assert_non_null(ctl->server);
    assert_int_equal(rpc_server_add(ctl->server, methods, 2, &err), 0);
    if (rpc_server_listen(ctl->server, "127.0.0.1:0", &err) < 0)
        fail_msg("%s", err.text);
    ctl->port = rpc_server_port(ctl->server, 0);
    ctl_put(ctl, "spur.conf", "cluster_name = \"test\"\n", 0644); /* not the machine's own */
}

void ctl_close(struct ctl *ctl)
{
    if (ctl->spurd)
        ctl_kill_spurd(ctl, SIGTERM);
    vec_each (NodeMessage *, message, &ctl->inbox)
        node_message__free_unpacked(*message, NULL);
    vec_done(&ctl->inbox);
    if (ctl->hello)
        node_hello__free_unpacked(ctl->hello, NULL);
    if (ctl->stream)
        rpc_end(TAKE(ctl->stream));
    rpc_server_free(ctl->server);
    rpc_loop_free(ctl->rpc);
    uv_run(&ctl->uv, UV_RUN_DEFAULT);
    uv_loop_close(&ctl->uv);
    jwt_keys_free(ctl->tokens);
    key_free(ctl->key);
    end_jobs();
    file_remove_tree(ctl->dir, NULL);
}

void ctl_start_spurd(struct ctl *ctl)
{
    char spool[128], run[128], controller[64], log_path[128], conf[128];
    const char *args[40];
    size_t n = 0;

    snprintf(spool, sizeof(spool), "%s/spool", ctl->dir);
    snprintf(run, sizeof(run), "%s/run", ctl->dir);
    snprintf(log_path, sizeof(log_path), "%s/spurd.log", ctl->dir);
    snprintf(conf, sizeof(conf), "%s/spur.conf", ctl->dir);
    snprintf(controller, sizeof(controller), "http://127.0.0.1:%u", ctl->port);
    args[n++] = "spurd";
    args[n++] = "-D";
    args[n++] = "-N";
    args[n++] = "n1";
    args[n++] = "--controller";
    args[n++] = controller;
    args[n++] = "--spool-dir";
    args[n++] = ctl->spool ? ctl->spool : spool;
    args[n++] = "--run-dir";
    args[n++] = run;
    args[n++] = "--listen";
    args[n++] = "127.0.0.1:0";
    args[n++] = "-v";
    args[n++] = "-f";
    args[n++] = conf;
    if (ctl->sysroot) {
        args[n++] = "--sysroot";
        args[n++] = ctl->sysroot;
    }
    if (ctl->token) {
        args[n++] = "--token-file";
        args[n++] = ctl->token;
    }
    if (ctl->no_cgroups) {
        args[n++] = "--cgroup-root";
        args[n++] = "none";
    }
    args[n] = NULL;
    ctl->spurd = fork();
    if (ctl->spurd == 0) {
        FILE *log = freopen(log_path, "a", stderr);
        if (!log || !freopen("/dev/null", "w", stdout) ||
            (ctl->as_uid && (setgid(ctl->as_uid) < 0 || setuid(ctl->as_uid) < 0)))
            _exit(126);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
        execv(getenv("SPURD"), (char *const *)args);
        _exit(127);
    }
    assert_true(ctl->spurd > 0);
}

void ctl_kill_spurd(struct ctl *ctl, int sig)
{
    kill(ctl->spurd, sig);
    assert_int_equal(waitpid(ctl->spurd, NULL, 0), ctl->spurd);
    ctl->spurd = 0;
}

static void on_tick(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
}

/* Runs the loop until `done` says so or the time is over. */
static bool wait_until(struct ctl *ctl, bool (*done)(struct ctl *ctl, const void *arg),
                       const void *arg, int ms)
{
    uv_timer_t timer;
    bool over = ms <= 0;

    uv_timer_init(&ctl->uv, &timer);
    timer.data = &over;
    uv_timer_start(&timer, on_tick, (uint64_t)MAX(ms, 0), 0);
    while (!over && !done(ctl, arg))
        uv_run(&ctl->uv, UV_RUN_ONCE);
    uv_timer_stop(&timer);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&ctl->uv, UV_RUN_NOWAIT);
    return done(ctl, arg);
}

static bool never(struct ctl *ctl, const void *arg)
{
    (void)ctl, (void)arg;
    return false;
}

void ctl_run(struct ctl *ctl, int ms)
{
    wait_until(ctl, never, NULL, ms);
}

static void show_log(struct ctl *ctl)
{
    char *text = ctl_file(ctl, "spurd.log");

    print_message("--- log of spurd\n%s---\n", text);
    free(text);
}

static bool has_hello(struct ctl *ctl, const void *arg)
{
    if (ctl->spurd && waitpid(ctl->spurd, NULL, WNOHANG) == ctl->spurd) {
        ctl->spurd = 0;
        show_log(ctl);
        fail_msg("spurd has ended");
    }
    return ctl->hellos >= *(const unsigned *)arg;
}

void ctl_wait_hello(struct ctl *ctl, unsigned hellos)
{
    if (!wait_until(ctl, has_hello, &hellos, CTL_WAIT_MS)) {
        show_log(ctl);
        fail_msg("no hello number %u", hellos);
    }
}

void ctl_drop_stream(struct ctl *ctl)
{
    struct err err = { 0 };

    err_code(&err, ERR_SHUTTING_DOWN);
    if (ctl->stream)
        rpc_fail(TAKE(ctl->stream), &err);
}

/* ---- messages ---- */

struct wanted {
    int what;
    uint32_t job; /* 0: any */
};

static uint32_t job_of(const NodeMessage *message)
{
    switch (message->what_case) {
    case NODE_MESSAGE__WHAT_GRANT_ACK:
        return message->grant_ack->job_id;
    case NODE_MESSAGE__WHAT_STARTED:
        return message->started->id->job_id;
    case NODE_MESSAGE__WHAT_ENDED:
        return message->ended->id->job_id;
    case NODE_MESSAGE__WHAT_RELEASED:
        return message->released->job_id;
    default:
        return 0;
    }
}

static size_t find(struct ctl *ctl, const struct wanted *wanted)
{
    for (size_t i = 0; i < ctl->inbox.len; i++) {
        const NodeMessage *message = ctl->inbox.items[i];
        if ((int)message->what_case == wanted->what &&
            (!wanted->job || job_of(message) == wanted->job))
            return i;
    }
    return ctl->inbox.len;
}

static bool is_there(struct ctl *ctl, const void *arg)
{
    return find(ctl, arg) < ctl->inbox.len;
}

static NodeMessage *take(struct ctl *ctl, const struct wanted *wanted, int wait_ms)
{
    if (!is_there(ctl, wanted) && !wait_until(ctl, is_there, wanted, wait_ms))
        return NULL;
    size_t at = find(ctl, wanted);
    NodeMessage *message = ctl->inbox.items[at];
    vec_remove(&ctl->inbox, at);
    return message;
}

NodeMessage *ctl_take(struct ctl *ctl, int what, int wait_ms)
{
    const struct wanted wanted = { .what = what };

    return take(ctl, &wanted, wait_ms);
}

NodeMessage *ctl_expect(struct ctl *ctl, int what, uint32_t job)
{
    const struct wanted wanted = { .what = what, .job = job };
    NodeMessage *message = take(ctl, &wanted, ctl->patience * CTL_WAIT_MS);

    if (!message) {
        show_log(ctl);
        fail_msg("no message %d about job %u", what, job);
    }
    return message;
}

void ctl_expect_none(struct ctl *ctl, int what, int wait_ms)
{
    NodeMessage *message = ctl_take(ctl, what, wait_ms);

    if (message) {
        show_log(ctl);
        fail_msg("unexpected message %d about job %u", what, job_of(message));
    }
}

void ctl_free(NodeMessage *message)
{
    node_message__free_unpacked(message, NULL);
}

void ctl_discard(struct ctl *ctl, int what)
{
    NodeMessage *message;

    while ((message = ctl_take(ctl, what, 0)))
        ctl_free(message);
}

void ctl_send(struct ctl *ctl, CtlMessage *message)
{
    if (!message->has_epoch) {
        message->has_epoch = true;
        message->epoch = ctl->epoch;
    }
    assert_non_null(ctl->stream);
    rpc_send(ctl->stream, &message->base);
}

/* ---- jobs ---- */

/* Parts of a grant that must live until it is sent. */
struct parts {
    Grant grant;
    Launch launch;
    JobSpec spec;
    JobOwner owner;
    JobStatus status;
    NodeAlloc *allocs;
    NodeAlloc **list;
    Allocation allocation;
    char out[128];
    uint8_t *payload;
};

static void fill_payload(struct parts *parts, const struct ctl_job *job)
{
    JobPayload payload = JOB_PAYLOAD__INIT;
    ProtobufCBinaryData env[2] = { { .data = (uint8_t *)"FROM=submit", .len = 11 },
                                   { .data = (uint8_t *)"PATH=/usr/bin:/bin", .len = 18 } };

    payload.has_script = true;
    payload.script =
        (ProtobufCBinaryData){ .data = (uint8_t *)job->script, .len = strlen(job->script) };
    payload.n_env = 2;
    payload.env = env;
    payload.has_get_user_env = payload.get_user_env = job->get_user_env;
    size_t len = job_payload__get_packed_size(&payload);
    parts->payload = malloc(len);
    job_payload__pack(&payload, parts->payload);
    parts->launch.has_payload = true;
    parts->launch.payload = (ProtobufCBinaryData){ .data = parts->payload, .len = len };
}

static void fill(struct ctl *ctl, const struct ctl_job *job, struct parts *parts)
{
    static const char *const alone[] = { "n1" };
    const char *const *names = job->nodes ? job->nodes : alone;
    size_t count = job->nodes ? job->node_count : 1;
    static char job_name[] = "test-job", user[] = "somebody";

    grant__init(&parts->grant);
    launch__init(&parts->launch);
    job_spec__init(&parts->spec);
    job_owner__init(&parts->owner);
    job_status__init(&parts->status);
    allocation__init(&parts->allocation);
    parts->owner.has_uid = parts->owner.has_gid = true;
    parts->owner.uid = parts->owner.gid = job->uid;
    parts->owner.user = user;
    snprintf(parts->out, sizeof(parts->out), "%%j.out");
    parts->spec.name = job_name;
    parts->spec.work_dir = ctl->dir;
    parts->spec.std_out = parts->out;
    parts->spec.has_requeue = job->no_requeue;
    parts->allocs = calloc(count, sizeof(NodeAlloc));
    parts->list = calloc(count, sizeof(NodeAlloc *));
    for (size_t i = 0; i < count; i++) {
        node_alloc__init(&parts->allocs[i]);
        parts->allocs[i].node = (char *)names[i];
        parts->allocs[i].has_cpus = true;
        parts->allocs[i].cpus = 1;
        parts->list[i] = &parts->allocs[i];
    }
    parts->allocation.n_nodes = count;
    parts->allocation.nodes = parts->list;
    Grant *grant = &parts->grant;
    grant->has_job_id = grant->has_attempt = grant->has_version = true;
    grant->job_id = job->job;
    grant->attempt = job->attempt;
    grant->version = 1;
    grant->owner = &parts->owner;
    grant->alloc = parts->list[0];
    grant->manager = (char *)names[0];
    grant->allocation = &parts->allocation;
    grant->spec = &parts->spec;
    grant->has_start_us = grant->has_time_limit_s = true;
    grant->start_us = clock_wall_us();
    grant->time_limit_s = job->limit_s ? job->limit_s : -1;
    parts->launch.has_job_id = parts->launch.has_attempt = true;
    parts->launch.job_id = job->job;
    parts->launch.attempt = job->attempt;
    parts->launch.spec = &parts->spec;
    parts->launch.status = &parts->status;
    if (job->script)
        fill_payload(parts, job);
}

static void parts_done(struct parts *parts)
{
    free(parts->allocs);
    free(parts->list);
    free(parts->payload);
}

void ctl_grant(struct ctl *ctl, const struct ctl_job *job)
{
    struct parts parts = { 0 };
    CtlMessage message = CTL_MESSAGE__INIT;

    fill(ctl, job, &parts);
    if (job->script && !job->nodes)
        parts.grant.launch = &parts.launch;
    uint8_t signature[KEY_SIGNATURE_BYTES];
    parts.grant.has_expires_us = job->sign_with != NULL;
    parts.grant.expires_us = clock_wall_us() + (job->expired ? -1000000 : 60000000);
    if (job->sign_with) {
        size_t len = grant__get_packed_size(&parts.grant);
        uint8_t *bytes = malloc(len);
        key_sign(job->sign_with, bytes, grant__pack(&parts.grant, bytes), signature);
        free(bytes);
        parts.grant.has_signature = true;
        parts.grant.signature =
            (ProtobufCBinaryData){ .data = signature, .len = sizeof(signature) };
    }
    message.what_case = CTL_MESSAGE__WHAT_GRANT;
    message.grant = &parts.grant;
    ctl_send(ctl, &message);
    parts_done(&parts);
}

void ctl_launch(struct ctl *ctl, const struct ctl_job *job)
{
    struct parts parts = { 0 };
    CtlMessage message = CTL_MESSAGE__INIT;

    fill(ctl, job, &parts);
    message.what_case = CTL_MESSAGE__WHAT_LAUNCH;
    message.launch = &parts.launch;
    ctl_send(ctl, &message);
    parts_done(&parts);
}

void ctl_revoke(struct ctl *ctl, uint32_t job, uint32_t attempt, unsigned kill_wait_s)
{
    CtlMessage message = CTL_MESSAGE__INIT;
    Revoke revoke_order = REVOKE__INIT;

    revoke_order.has_job_id = revoke_order.has_attempt = revoke_order.has_kill = true;
    revoke_order.job_id = job;
    revoke_order.attempt = attempt;
    revoke_order.kill = true;
    revoke_order.has_kill_wait_s = true;
    revoke_order.kill_wait_s = kill_wait_s;
    message.what_case = CTL_MESSAGE__WHAT_REVOKE;
    message.revoke = &revoke_order;
    ctl_send(ctl, &message);
}

void ctl_ack(struct ctl *ctl, uint32_t job, uint32_t attempt)
{
    CtlMessage message = CTL_MESSAGE__INIT;
    AckReport ack = ACK_REPORT__INIT;

    ack.has_job_id = ack.has_attempt = ack.has_step = true;
    ack.job_id = job;
    ack.attempt = attempt;
    ack.step = CTL_BATCH;
    message.what_case = CTL_MESSAGE__WHAT_ACK;
    message.ack = &ack;
    ctl_send(ctl, &message);
}

uint32_t ctl_finish(struct ctl *ctl, uint32_t job, uint32_t attempt)
{
    NodeMessage *message = ctl_expect(ctl, NODE_MESSAGE__WHAT_ENDED, job);
    uint32_t status = message->ended->exit_status;

    assert_int_equal(message->ended->id->attempt, attempt);
    ctl_free(message);
    ctl_ack(ctl, job, attempt);
    return status;
}

/* ---- files ---- */

char *ctl_file(struct ctl *ctl, const char *name)
{
    struct str text = { 0 };
    char *path = mem_printf("%s/%s", ctl->dir, name);

    file_read(path, LIMIT_MESSAGE_BYTES, &text, NULL);
    free(path);
    return str_take(&text);
}

void ctl_put(struct ctl *ctl, const char *name, const char *text, mode_t mode)
{
    char *path = mem_printf("%s/%s", ctl->dir, name);

    assert_int_equal(file_write_quick(path, text, strlen(text), mode, NULL), 0);
    free(path);
}

static bool file_is_there(struct ctl *ctl, const void *name)
{
    char *path = mem_printf("%s/%s", ctl->dir, (const char *)name);
    bool there = access(path, F_OK) == 0;

    free(path);
    return there;
}

void ctl_wait_file(struct ctl *ctl, const char *name)
{
    int64_t until = clock_mono_us() + ctl->patience * CTL_WAIT_MS * INT64_C(1000);

    while (!file_is_there(ctl, name) && clock_mono_us() < until)
        ctl_run(ctl, 10);
    if (!file_is_there(ctl, name)) {
        show_log(ctl);
        fail_msg("no file %s", name);
    }
}
