/* SPDX-License-Identifier: Apache-2.0 */
/* Orders to running jobs; a job's output for its owner only; joining; signed grants. */
#include "test/unit.h"

#include <pwd.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "rpc/jwt.h"
#include "rpc/keys.h"
#include "spurd/test/ctl.h"
#include "sys/clock.h"
#include "sys/files.h"

enum {
    ACK = NODE_MESSAGE__WHAT_GRANT_ACK,
    STARTED = NODE_MESSAGE__WHAT_STARTED,
    ENDED = NODE_MESSAGE__WHAT_ENDED,
};

static void open_with_spurd(struct ctl *ctl)
{
    ctl_open(ctl);
    ctl_start_spurd(ctl);
    ctl_wait_hello(ctl, 1);
}

static void send_signal(struct ctl *ctl, uint32_t job, bool batch_only, bool full)
{
    CtlMessage message = CTL_MESSAGE__INIT;
    SignalJob order = SIGNAL_JOB__INIT;

    order.has_job_id = order.has_attempt = order.has_signal = true;
    order.job_id = job;
    order.attempt = 1;
    order.signal = SIGUSR1;
    order.has_batch_only = order.has_full = true;
    order.batch_only = batch_only;
    order.full = full;
    message.what_case = CTL_MESSAGE__WHAT_SIGNAL;
    message.signal = &order;
    ctl_send(ctl, &message);
}

/* As in Slurm: a plain signal is for steps, --batch for the script, --full for everything. */
static void signals_go_where_slurm_sends_them(void **state)
{
    (void)state;
    struct ctl ctl;

    open_with_spurd(&ctl);
    const struct ctl_job job = {
        .job = 1,
        .attempt = 1,
        .uid = getuid(),
        .script = "#!/bin/bash\ntrap 'echo script' USR1\n(trap 'echo child' USR1; touch up; while "
                  ":; do sleep 0.02; done) &\nwhile :; do sleep 0.02; done\n"
    };
    ctl_grant(&ctl, &job);
    ctl_wait_file(&ctl, "up");
    ctl_run(&ctl, 100);
    static const char *const after[] = { "", "script\n", "script\n" };
    for (int i = 0; i < 2; i++) {
        send_signal(&ctl, 1, i == 1, false);
        ctl_run(&ctl, 200);
        char *out = ctl_file(&ctl, "1.out");
        assert_string_equal(out, after[i]);
        free(out);
    }
    send_signal(&ctl, 1, false, true);
    ctl_run(&ctl, 300);
    char *out = ctl_file(&ctl, "1.out");
    assert_non_null(strstr(out, "child\n"));
    assert_non_null(strstr(strstr(out, "script\n") + 1, "script\n"));
    free(out);
    ctl_revoke(&ctl, 1, 1, 0);
    ctl_finish(&ctl, 1, 1);
    ctl_close(&ctl);
}

static void send_freeze(struct ctl *ctl, uint32_t job, bool thaw)
{
    CtlMessage message = CTL_MESSAGE__INIT;
    FreezeJob order = FREEZE_JOB__INIT;

    order.has_job_id = order.has_attempt = order.has_thaw = true;
    order.job_id = job;
    order.attempt = 1;
    order.thaw = thaw;
    message.what_case = CTL_MESSAGE__WHAT_FREEZE;
    message.freeze = &order;
    ctl_send(ctl, &message);
}

static void send_limit(struct ctl *ctl, uint32_t job, int64_t limit_s)
{
    CtlMessage message = CTL_MESSAGE__INIT;
    UpdateLimit order = UPDATE_LIMIT__INIT;

    order.has_job_id = order.has_attempt = order.has_time_limit_s = true;
    order.job_id = job;
    order.attempt = 1;
    order.time_limit_s = limit_s;
    message.what_case = CTL_MESSAGE__WHAT_LIMIT;
    message.limit = &order;
    ctl_send(ctl, &message);
}

/* Suspended while its agent is away and comes back; a limit that is set while it runs. */
static void suspend_and_limit_survive_the_agent(void **state)
{
    (void)state;
    struct ctl ctl;

    open_with_spurd(&ctl);
    const struct ctl_job job = {
        .job = 2,
        .attempt = 1,
        .uid = getuid(),
        .script = "#!/bin/bash\nwhile :; do echo x >>ticks; sleep 0.02; done\n"
    };
    ctl_grant(&ctl, &job);
    ctl_wait_file(&ctl, "ticks");
    send_freeze(&ctl, 2, false);
    ctl_run(&ctl, 150);
    char *before = ctl_file(&ctl, "ticks");
    ctl_kill_spurd(&ctl, SIGKILL);
    ctl_start_spurd(&ctl);
    ctl_wait_hello(&ctl, 2);
    ctl_run(&ctl, 200);
    char *later = ctl_file(&ctl, "ticks");
    assert_string_equal(before, later);
    free(later);
    send_freeze(&ctl, 2, true);
    ctl_run(&ctl, 300);
    later = ctl_file(&ctl, "ticks");
    assert_true(strlen(later) > strlen(before));
    send_limit(&ctl, 2, 1);
    NodeMessage *message = ctl_expect(&ctl, ENDED, 2);
    assert_int_equal(message->ended->state, JOB_TIMEOUT);
    ctl_free(message);
    ctl_ack(&ctl, 2, 1);
    char *out = ctl_file(&ctl, "2.out");
    assert_non_null(strstr(out, "DUE TO TIME LIMIT"));
    free(out);
    free(before);
    free(later);
    ctl_close(&ctl);
}

/* What is said of a step before its supervisor can be reached is not lost. */
static void orders_that_come_before_the_supervisor_count(void **state)
{
    (void)state;
    struct ctl ctl;

    open_with_spurd(&ctl);
    struct ctl_job job = { .job = 4,
                           .attempt = 1,
                           .uid = getuid(),
                           .script = "#!/bin/bash\nwhile :; do echo x; sleep 0.02; done\n" };
    ctl_grant(&ctl, &job);
    send_freeze(&ctl, 4, false);
    ctl_free(ctl_expect(&ctl, STARTED, 4));
    ctl_run(&ctl, 300);
    char *before = ctl_file(&ctl, "4.out");
    ctl_run(&ctl, 300);
    char *later = ctl_file(&ctl, "4.out");
    assert_string_equal(before, later);
    free(later);
    send_freeze(&ctl, 4, true);
    ctl_run(&ctl, 400);
    later = ctl_file(&ctl, "4.out");
    assert_true(strlen(later) > strlen(before));
    free(before);
    free(later);
    job.job = 5;
    ctl_grant(&ctl, &job);
    send_limit(&ctl, 5, 1);
    NodeMessage *message = ctl_expect(&ctl, ENDED, 5);
    assert_int_equal(message->ended->state, JOB_TIMEOUT);
    ctl_free(message);
    ctl_ack(&ctl, 5, 1);
    ctl_revoke(&ctl, 4, 1, 0);
    ctl_finish(&ctl, 4, 1);
    ctl_close(&ctl);
}

/* ---- output ---- */

struct reading {
    struct str text;
    bool done, ended;
    struct err err;
    char *token;
};

static void credentials(void *ctx, struct str *out)
{
    struct reading *reading = ctx;

    if (reading->token)
        str_addf(out, "Bearer %s", reading->token);
}

static void on_chunk(struct rpc_request *request, const ProtobufCMessage *message)
{
    struct reading *reading = rpc_request_data(request);
    const OutputChunk *chunk = (const OutputChunk *)(const void *)message;

    assert_int_equal(chunk->offset, reading->text.len);
    str_add_len(&reading->text, chunk->data.data, chunk->data.len);
    reading->ended = chunk->ended;
}

static void on_done(struct rpc_request *request, const ProtobufCMessage *reply,
                    const struct err *err)
{
    struct reading *reading = rpc_request_data(request);

    (void)reply;
    reading->done = true;
    if (err)
        reading->err = *err;
}

/* For one job on this node; job 0: a token of a user, for all that the user may do. */
static char *make_token(const struct key *key, uint32_t uid, uint32_t job)
{
    struct jwt_claims claims = { .has_uid = true,
                                 .uid = uid,
                                 .has_job = job != 0,
                                 .job = job,
                                 .job_node = "n1",
                                 .expires_s = clock_wall_s() + 60 };
    struct str out = { 0 };

    claims.issued_s = clock_wall_s();
    assert_int_equal(jwt_sign_key(key, NULL, &claims, &out, NULL), 0);
    return str_take(&out);
}

/* Reads with this token; frees it. */
static void read_output(struct ctl *ctl, const ReadOutputRequest *request, char *token,
                        struct reading *out)
{
    char address[64];
    struct err err = { 0 };

    memset(out, 0, sizeof(*out));
    out->token = token;
    snprintf(address, sizeof(address), "127.0.0.1:%u", ctl->hello->found->port);
    const struct rpc_client_options options = { .addresses = address,
                                                .ctx = out,
                                                .credentials = credentials };
    struct rpc_client *client = rpc_client_new(ctl->rpc, &options, &err);
    assert_non_null(client);
    const struct rpc_request_options call = {
        .path = "/spur.NodeAccess/ReadOutput",
        .message = &request->base,
        .reply = &output_chunk__descriptor,
        .wait_ready = true,
        .timeout_ms = 10000,
        .data = out,
        .on_message = on_chunk,
        .on_done = on_done,
    };
    rpc_request_start(client, &call);
    for (int i = 0; i < 1200 && !out->done; i++)
        ctl_run(ctl, 10);
    assert_true(out->done);
    rpc_client_free(client);
    free(token);
}

static void output_is_for_its_owner(void **state)
{
    (void)state;
    struct ctl ctl;
    struct key *key = key_generate(), *other_key = key_generate();
    uint32_t uid = getuid() == 0 ? 20001 : getuid();
    struct reading reading;
    ReadOutputRequest request = READ_OUTPUT_REQUEST__INIT;

    ctl_open(&ctl);
    key_public(key, ctl.verify_key);
    ctl.has_verify_key = true;
    ctl_start_spurd(&ctl);
    ctl_wait_hello(&ctl, 1);
    const struct ctl_job job = {
        .job = 3,
        .attempt = 1,
        .uid = uid,
        .script = "#!/bin/bash\nfor i in 1 2 3 4 5; do echo line $i; sleep 0.1; done\n"
    };
    ctl_grant(&ctl, &job);
    ctl_free(ctl_expect(&ctl, STARTED, 3));
    request.has_job_id = request.has_follow = true;
    request.job_id = 3;
    request.follow = true;
    read_output(&ctl, &request, make_token(key, uid, 3), &reading);
    assert_int_equal(reading.err.code, 0);
    assert_true(reading.ended);
    assert_string_equal(str_text(&reading.text), "line 1\nline 2\nline 3\nline 4\nline 5\n");
    str_done(&reading.text);
    ctl_finish(&ctl, 3, 1);
    ctl_run(&ctl, 100);

    const struct {
        char *token;
        enum err_code code;
    } cases[] = {
        { make_token(key, uid, 3), 0 }, /* also when the job is long over */
        { make_token(key, 0, 3), 0 },
        { make_token(key, uid, 0), ERR_UNAUTHENTICATED },
        { make_token(key, uid + 1, 3), ERR_PERMISSION },
        { make_token(other_key, uid, 3), ERR_UNAUTHENTICATED },
        { NULL, ERR_PERMISSION },
    };
    request.follow = false;
    request.has_tail_lines = true;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        request.tail_lines = 0;
        read_output(&ctl, &request, cases[i].token, &reading);
        if (cases[i].code == ERR_PERMISSION)
            assert_true(reading.err.code == ERR_PERMISSION ||
                        reading.err.code == ERR_UNAUTHENTICATED);
        else
            assert_int_equal(reading.err.code, cases[i].code);
        assert_int_equal(reading.text.len, cases[i].code ? 0 : 35);
        str_done(&reading.text);
    }
    request.job_id = 4;
    read_output(&ctl, &request, make_token(key, uid, 4), &reading);
    assert_int_equal(reading.err.code, ERR_INVALID_JOB_ID);
    key_free(key);
    key_free(other_key);
    ctl_close(&ctl);
}

/* Between the job and the reader the user put a link to what only root may read. */
static void a_link_is_followed_as_the_user_only(void **state)
{
    (void)state;
    struct ctl ctl;
    struct key *key = key_generate();
    struct reading reading;
    ReadOutputRequest request = READ_OUTPUT_REQUEST__INIT;
    char path[128];

    if (getuid() != 0) {
        key_free(key);
        skip();
    }
    ctl_open(&ctl);
    key_public(key, ctl.verify_key);
    ctl.has_verify_key = true;
    ctl_start_spurd(&ctl);
    ctl_wait_hello(&ctl, 1);
    const struct ctl_job job = {
        .job = 5, .attempt = 1, .uid = 20001, .script = "#!/bin/sh\nrm 5.out; ln -s secret 5.out\n"
    };
    ctl_put(&ctl, "secret", "only root\n", 0600);
    ctl_grant(&ctl, &job);
    ctl_finish(&ctl, 5, 1);
    request.has_job_id = true;
    request.job_id = 5;
    read_output(&ctl, &request, make_token(key, 20001, request.job_id), &reading);
    assert_int_equal(reading.err.code, ERR_PERMISSION);
    assert_int_equal(reading.text.len, 0);
    snprintf(path, sizeof(path), "%s/5.out", ctl.dir);
    unlink(path);
    assert_int_equal(mkfifo(path, 0666), 0); /* and nothing waits for ever */
    read_output(&ctl, &request, make_token(key, 20001, request.job_id), &reading);
    assert_int_equal(reading.err.code, ERR_INVALID);
    key_free(key);
    ctl_close(&ctl);
}

/* ---- joining, signatures, login ---- */

static void a_join_token_is_shown_once(void **state)
{
    (void)state;
    struct ctl ctl;
    char token[128];
    struct stat info;

    ctl_open(&ctl);
    snprintf(token, sizeof(token), "%s/join.token", ctl.dir);
    ctl_put(&ctl, "join.token", "secret-of-the-cluster\n", 0600);
    ctl.token = token;
    ctl_start_spurd(&ctl);
    ctl_wait_hello(&ctl, 1);
    assert_string_equal(ctl.joined_with, "secret-of-the-cluster");
    assert_string_equal(ctl.shown_node, "n1");
    char *path = mem_printf("%s/spool/node.token", ctl.dir);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    free(path);
    ctl.joined_with[0] = '\0';
    ctl_kill_spurd(&ctl, SIGTERM);
    ctl_start_spurd(&ctl);
    ctl_wait_hello(&ctl, 2);
    assert_string_equal(ctl.joined_with, "");
    assert_string_equal(ctl.shown_node, "n1");
    ctl_close(&ctl);
}

static void signed_grants_are_checked(void **state)
{
    (void)state;
    struct ctl ctl;
    struct key *key = key_generate(), *other = key_generate();
    NodeMessage *message;

    ctl_open(&ctl);
    key_public(key, ctl.verify_key);
    ctl.has_verify_key = true;
    ctl_start_spurd(&ctl);
    ctl_wait_hello(&ctl, 1);
    ctl_run(&ctl, 50);
    struct ctl_job job = {
        .job = 6, .attempt = 1, .uid = getuid(), .script = "#!/bin/sh\nexit 0\n", .sign_with = other
    };
    ctl_grant(&ctl, &job);
    message = ctl_expect(&ctl, ACK, 6);
    assert_int_equal(message->grant_ack->code, ERR_CREDENTIAL);
    ctl_free(message);
    job.sign_with = key;
    job.expired = true;
    ctl_grant(&ctl, &job);
    message = ctl_expect(&ctl, ACK, 6);
    assert_int_equal(message->grant_ack->code, ERR_CREDENTIAL_EXPIRED);
    ctl_free(message);
    job.expired = false;
    ctl_grant(&ctl, &job);
    assert_int_equal(ctl_finish(&ctl, 6, 1), 0);
    key_free(key);
    key_free(other);
    ctl_close(&ctl);
}

static void the_login_environment_is_looked_up(void **state)
{
    (void)state;
    struct ctl ctl;

    open_with_spurd(&ctl);
    const struct ctl_job job = { .job = 7,
                                 .attempt = 1,
                                 .uid = getuid(),
                                 .get_user_env = true,
                                 .script =
                                     "#!/bin/sh\necho $SLURM_GET_USER_ENV $FROM ${HOME:+home}\n" };
    ctl_grant(&ctl, &job);
    assert_int_equal(ctl_finish(&ctl, 7, 1), 0);
    char *out = ctl_file(&ctl, "7.out");
    assert_string_equal(out, getpwuid(getuid()) ? "1 submit home\n" : "1 submit\n");
    free(out);
    ctl_close(&ctl);
}

UNIT_MAIN(UNIT(signals_go_where_slurm_sends_them), UNIT(suspend_and_limit_survive_the_agent),
          UNIT(orders_that_come_before_the_supervisor_count), UNIT(output_is_for_its_owner),
          UNIT(a_link_is_followed_as_the_user_only), UNIT(a_join_token_is_shown_once),
          UNIT(signed_grants_are_checked), UNIT(the_login_environment_is_looked_up))
