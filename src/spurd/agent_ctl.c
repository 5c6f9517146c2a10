/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_ctl.c - what the leader says
 *
 * (1) A message of an epoch below the highest seen is from a leader that has been replaced: refused.
 * (2) Every message may come again. (job, attempt) tells: what was done is answered, not repeated.
 * (3) Nothing is taken before the welcome, which says whose leader this is and what we should hold.
 */
#include <signal.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/limits.h"
#include "rpc/jwt.h"
#include "spurd/agent_priv.h"
#include "spurd/attempt/life.h"
#include "spurd/link/send.h"
#include "spurd/link/session.h"
#include "spurd/root.h"
#include "spurd/step/step.h"
#include "spurd/task/hook.h"
#include "spurd/task/stepd.h"
#include "spurd/task/task.h"
#include "sys/clock.h"
#include "sys/log.h"

/* ---- grants ---- */

static int check_spool(const struct agent *agent, bool *drain, struct err *err)
{
    const char *const dirs[] = { agent->spool_dir, agent->run_dir };
    struct statvfs info;

    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        if (statvfs(dirs[i], &info) < 0)
            continue;
        bool no_inodes = info.f_files > 0 && info.f_favail == 0;
        if ((uint64_t)info.f_bavail * info.f_frsize >= AGENT_FREE_BYTES && !no_inodes)
            continue;
        *drain = true;
        return err_set(err, ERR_DISK_FULL, "spool directory '%s' is full", dirs[i]);
    }
    return 0;
}

static int check_user(const struct agent *agent, const JobOwner *owner, struct err *err)
{
    const Config *config = agent_common(agent);

    if (geteuid() != 0 && owner->uid != geteuid())
        return err_set(err, ERR_USER_MISSING,
                       "spurd on this node runs as uid %u and can run jobs of that user only",
                       (unsigned)geteuid());
    if (owner->uid == 0 && geteuid() == 0 &&
        !(config && config->has_disable_root_jobs && !config->disable_root_jobs))
        return err_set(err, ERR_USER_MISSING, "jobs of root are not allowed on this node");
    return 0;
}

/* A signature is on grants that came by way of somebody else; it covers all other fields. */
static int check_signature(const struct agent *agent, const Grant *grant, struct err *err)
{
    if (!grant->has_signature)
        return 0;
    if (grant->has_expires_us && grant->expires_us < clock_wall_us())
        return err_code(err, ERR_CREDENTIAL_EXPIRED);
    if (!agent->has_verify_key)
        return 0;
    Grant unsigned_grant = *grant;
    unsigned_grant.has_signature = false;
    unsigned_grant.signature = (ProtobufCBinaryData){ 0 };
    size_t len = grant__get_packed_size(&unsigned_grant);
    CLEANUP(freep) uint8_t *bytes = mem_new(len + 1);
    grant__pack(&unsigned_grant, bytes);
    if (!key_verify(agent->verify_key, bytes, len, grant->signature.data, grant->signature.len))
        return err_code(err, ERR_CREDENTIAL);
    return 0;
}

static int check_grant(const struct agent *agent, const Grant *grant, bool *drain, struct err *err)
{
    if (!grant->job_id || grant->job_id > LIMIT_JOB_ID || !grant->attempt || !grant->owner ||
        !grant->alloc || !task_spec(grant))
        return err_set(err, ERR_BAD_MESSAGE, "a grant that is not whole");
    if (!str_eq(grant->alloc->node, agent->name))
        return err_set(err, ERR_INVALID_NODE_NAME, "a grant for node '%s' came to '%s'",
                       grant->alloc->node ? grant->alloc->node : "", agent->name);
    if (attempt_is_buried(&agent->table, grant->job_id, grant->attempt))
        return err_code(err, ERR_CREDENTIAL_REVOKED);
    if (check_signature(agent, grant, err) < 0 || check_user(agent, grant->owner, err) < 0)
        return -(int)err->code;
    return check_spool(agent, drain, err);
}

/* An older attempt that nobody revoked: the new one says that it is over. */
static void end_older(struct agent *agent, uint32_t job, uint32_t attempt)
{
    struct attempt *other = attempt_other(&agent->table, job, attempt);

    if (!other || other->attempt > attempt || other->revoked)
        return;
    other->revoked = other->revoke_kill = true;
    other->revoke_state = JOB_CANCELLED;
    agent_advance(agent, other);
}

/* Said again, whatever it is. */
static void answer_again(struct agent *agent, struct attempt *held)
{
    held->grant_acked = held->started_sent = held->report_sent = false;
    agent_advance(agent, held);
}

static void on_grant(struct agent *agent, const Grant *grant)
{
    struct attempt *held = attempt_find(&agent->table, grant->job_id, grant->attempt);
    struct attempt *other = attempt_other(&agent->table, grant->job_id, grant->attempt);
    struct err err = { 0 };
    bool drain = false;

    if (held) {
        if (held->grant && grant->version > held->grant->version) {
            log_info("grant.version", "job=%u version=%u manager=%s", held->job, grant->version,
                     grant->manager);
            attempt_set_grant(held, grant);
            held->written = false;
            steps_end_lost(agent, held);
        }
        answer_again(agent, held);
        return;
    }
    if (other && other->attempt > grant->attempt)
        err_code(&err, ERR_STALE_ATTEMPT);
    else
        check_grant(agent, grant, &drain, &err);
    if (err.code) {
        log_info("grant.refused", "job=%u attempt=%u why=%s", grant->job_id, grant->attempt,
                 err.text);
        agent_send_grant_ack(agent, grant->job_id, grant->attempt, &err, drain);
        return;
    }
    held = attempt_add(&agent->table, grant->job_id, grant->attempt);
    attempt_set_grant(held, grant);
    end_older(agent, grant->job_id, grant->attempt);
    agent_advance(agent, held);
}

static void on_launch(struct agent *agent, const Launch *launch)
{
    struct attempt *held = attempt_find(&agent->table, launch->job_id, launch->attempt);
    struct err err = { 0 };

    if (!held || !held->grant || held->revoked) {
        if (attempt_is_buried(&agent->table, launch->job_id, launch->attempt) || held)
            err_code(&err, ERR_CREDENTIAL_REVOKED);
        else
            err_set(&err, ERR_INVALID_JOB_ID, "this node holds no grant for the job");
        log_info("launch.refused", "job=%u attempt=%u why=%s", launch->job_id, launch->attempt,
                 err.text);
        agent_send_grant_ack(agent, launch->job_id, launch->attempt, &err, false);
        return;
    }
    if (!held->launched && !held->has_load) {
        Grant with = *held->grant;
        with.launch = (Launch *)launch;
        attempt_set_grant(held, &with);
        held->written = false;
        agent_advance(agent, held);
        return;
    }
    answer_again(agent, held);
}

static void write_revoke(struct agent *agent, const Revoke *revoke)
{
    SpoolRecord record = SPOOL_RECORD__INIT;

    record.what_case = SPOOL_RECORD__WHAT_REVOKE;
    record.revoke = (Revoke *)revoke;
    agent_write_record(agent, &record, NULL);
}

/* Nothing of it is here: a tombstone, so that what is late finds it. */
static void bury_unknown(struct agent *agent, uint32_t job, uint32_t attempt)
{
    SpoolRecord record = SPOOL_RECORD__INIT;
    SpoolGone gone = SPOOL_GONE__INIT;

    if (attempt_is_buried(&agent->table, job, attempt))
        return;
    gone.has_job_id = gone.has_attempt = gone.has_time_us = true;
    gone.job_id = job;
    gone.attempt = attempt;
    gone.time_us = clock_wall_us();
    record.what_case = SPOOL_RECORD__WHAT_GONE;
    record.gone = &gone;
    agent_write_record(agent, &record, NULL);
    attempt_bury(&agent->table, &gone);
}

static void revoke_held(struct agent *agent, struct attempt *held, const Revoke *order)
{
    bool first = !held->revoked;

    held->revoked = true;
    held->revoke_kill = order->kill;
    held->kill_wait_s = order->has_kill_wait_s ? order->kill_wait_s : TASK_KILL_WAIT_S;
    held->revoke_state = order->has_state ? order->state : JOB_CANCELLED;
    held->kill_ordered = false; /* a shorter wait, or KILL at once, counts */
    held->released = false;
    if (first)
        write_revoke(agent, order);
    agent_advance(agent, held);
}

static void on_revoke(struct agent *agent, const Revoke *order)
{
    struct attempt *held = attempt_find(&agent->table, order->job_id, order->attempt);

    if (held) {
        revoke_held(agent, held, order);
        return;
    }
    bury_unknown(agent, order->job_id, order->attempt);
    agent_send_released(agent, order->job_id, order->attempt, NULL);
}

/* ---- running jobs ---- */

static struct attempt *find_running(struct agent *agent, uint32_t job, uint32_t attempt)
{
    struct attempt *held = attempt_find(&agent->table, job, attempt);

    return held && held->chan && !held->ended ? held : NULL;
}

/* As in Slurm: without --batch or --full a signal is for steps, not for the batch script. */
static void on_signal(struct agent *agent, const SignalJob *order)
{
    struct attempt *held = attempt_find(&agent->table, order->job_id, order->attempt);
    StepOrder step = STEP_ORDER__INIT;
    StepSignal words = STEP_SIGNAL__INIT;

    if (held && !order->batch_only)
        steps_signal(agent, held, order);
    held = find_running(agent, order->job_id, order->attempt);
    if (!held || (!order->batch_only && !order->full && !order->text &&
                  !(order->has_step && order->step == TASK_STEP_BATCH)))
        return;
    words.has_signal = words.has_script_only = true;
    words.signal = order->signal;
    words.text = order->text;
    words.script_only = order->batch_only && !order->full;
    step.what_case = STEP_ORDER__WHAT_SIGNAL;
    step.signal = &words;
    stepd_order(held->chan, &step);
}

static void on_freeze(struct agent *agent, const FreezeJob *order)
{
    struct attempt *held = attempt_find(&agent->table, order->job_id, order->attempt);

    if (held)
        agent_gang_turn(agent, held, order->thaw);
}

static void on_limit(struct agent *agent, const UpdateLimit *order)
{
    struct attempt *held = attempt_find(&agent->table, order->job_id, order->attempt);
    StepOrder step = STEP_ORDER__INIT;
    StepLimit words = STEP_LIMIT__INIT;

    if (!held || held->ended)
        return;
    steps_limit(agent, held, order->time_limit_s);
    if (!held->chan) { /* of a step that is still to begin */
        if (held->grant) {
            held->grant->has_time_limit_s = true;
            held->grant->time_limit_s = order->time_limit_s;
        }
        return;
    }
    words.has_time_limit_s = true;
    words.time_limit_s = order->time_limit_s;
    step.what_case = STEP_ORDER__WHAT_LIMIT;
    step.limit = &words;
    stepd_order(held->chan, &step);
}

static void on_ack(struct agent *agent, const AckReport *ack)
{
    struct attempt *held = attempt_find(&agent->table, ack->job_id, ack->attempt);

    if (!held || !held->ended || (ack->has_step && ack->step != TASK_STEP_BATCH))
        return;
    held->acked = true;
    agent_advance(agent, held);
}

struct reboot_ctx {
    struct agent *agent;
};

static void reboot_done(void *ctx, int status, const struct err *err)
{
    struct reboot_ctx *reboot = ctx;

    (void)status;
    if (!err)
        return;
    log_error("reboot.failed", "error=%s", err->text);
    reboot->agent->rebooting = false; /* it may be told again */
}

static void on_reboot(struct agent *agent, const RebootNode *order)
{
    const Config *config = agent_common(agent);

    log_warn("reboot.asked", "reason=%s", order->reason ? order->reason : "");
    if (!config || str_is_empty(config->reboot_program)) {
        log_error("reboot.failed", "error=%s", "no reboot program is configured");
        return;
    }
    if (agent->rebooting) /* a controller that does not know tells it again */
        return;
    char **env = NEW_ARRAY(char *, 2);
    env[0] = mem_printf("SLURMD_NODENAME=%s", agent->name);
    struct reboot_ctx *ctx = NEW(struct reboot_ctx);
    ctx->agent = agent;
    agent->rebooting = true;
    hook_start(agent->uv, config->reboot_program, env, 0, reboot_done, ctx);
}

/* ---- the welcome ---- */

static bool take_epoch(struct agent *agent, uint64_t epoch, const CtlWelcome *welcome)
{
    struct attempt_table *table = &agent->table;
    SpoolRecord record = SPOOL_RECORD__INIT;
    SpoolEpoch words = SPOOL_EPOCH__INIT;
    const ProtobufCBinaryData *id = &welcome->cluster_id;

    if (welcome->has_cluster_id && table->cluster_id_len &&
        (id->len != table->cluster_id_len || memcmp(id->data, table->cluster_id, id->len) != 0)) {
        log_error("session.wrong_cluster", "controller=%s error=%s", agent->controllers,
                  "this node belongs to another cluster; empty its spool to move it");
        return false;
    }
    bool new_id =
        welcome->has_cluster_id && !table->cluster_id_len && id->len <= sizeof(table->cluster_id);
    if (new_id) {
        memcpy(table->cluster_id, id->data, id->len);
        table->cluster_id_len = id->len;
    }
    if (epoch == table->epoch && !new_id)
        return true;
    table->epoch = epoch;
    words.has_epoch = true;
    words.epoch = epoch;
    words.has_cluster_id = table->cluster_id_len > 0;
    words.cluster_id =
        (ProtobufCBinaryData){ .data = (uint8_t *)table->cluster_id, .len = table->cluster_id_len };
    record.what_case = SPOOL_RECORD__WHAT_EPOCH;
    record.epoch = &words;
    agent_write_record(agent, &record, NULL);
    return true;
}

static void take_key(struct agent *agent, const ProtobufCBinaryData *key)
{
    if (key->len != sizeof(agent->verify_key) ||
        (agent->has_verify_key && memcmp(agent->verify_key, key->data, key->len) == 0))
        return;
    memcpy(agent->verify_key, key->data, key->len);
    agent->has_verify_key = true;
    if (agent->job_keys)
        jwt_keys_add_public(agent->job_keys, NULL, JWT_CLUSTER, agent->verify_key, NULL);
}

static bool is_kept(const CtlWelcome *welcome, const struct attempt *held)
{
    for (size_t i = 0; i < welcome->n_keep; i++) {
        if (welcome->keep[i]->job_id == held->job && welcome->keep[i]->attempt == held->attempt)
            return true;
    }
    return false;
}

/* What the leader does not know of any more ends here; its report is still told. */
static void take_keep(struct agent *agent, const CtlWelcome *welcome)
{
    VEC(uint64_t) keys = { 0 };
    Revoke order = REVOKE__INIT;
    const Config *config = agent_common(agent);

    order.has_kill = order.kill = true;
    order.has_kill_wait_s = order.has_state = true;
    order.kill_wait_s = config && config->has_kill_wait_s ? config->kill_wait_s : TASK_KILL_WAIT_S;
    order.state = JOB_CANCELLED;
    map_each (entry, &agent->table.held)
        vec_push(&keys, entry->num);
    vec_each (uint64_t, key, &keys) {
        struct attempt *held = map_get_num(&agent->table.held, *key);
        if (!held)
            continue;
        held->grant_acked = held->started_sent = held->report_sent = held->released = false;
        order.has_job_id = order.has_attempt = true;
        order.job_id = held->job;
        order.attempt = held->attempt;
        if (is_kept(welcome, held)) {
            agent_freeze(agent, held, FREEZE_LEASE, true);
            agent_advance(agent, held);
        } else if (held->revoked) {
            agent_advance(agent, held);
        } else {
            log_info("grant.unknown", "job=%u attempt=%u", held->job, held->attempt);
            revoke_held(agent, held, &order);
        }
    }
    vec_done(&keys);
}

static void on_welcome(struct agent *agent, uint64_t epoch, const CtlWelcome *welcome)
{
    if (!take_epoch(agent, epoch, welcome)) {
        session_reconnect(agent->session, "wrong cluster");
        return;
    }
    bool first = !agent->welcomed;
    agent->welcomed = true;
    if (welcome->config)
        agent_set_config(agent, welcome->config);
    if (welcome->has_verify_key)
        take_key(agent, &welcome->verify_key);
    if (welcome->n_controllers)
        session_set_controllers(agent->session, welcome->controllers, welcome->n_controllers);
    agent_set_heartbeat(agent, welcome->heartbeat_ms);
    agent_set_lease(agent, welcome->lease_ms);
    if (first)
        log_info("session.welcome", "epoch=%llu held=%zu kept=%zu", (unsigned long long)epoch,
                 map_len(&agent->table.held), welcome->n_keep);
    take_keep(agent, welcome);
    step_report_all(agent);
}

/* ---- dispatch ---- */

/* "grant", "revoke", … */
static const char *message_name(const CtlMessage *message)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(message->base.descriptor, message->what_case);

    return field ? field->name : "nothing";
}

/* (1): grants and launches are answered, so that the old leader learns of it. */
static void refuse_stale(struct agent *agent, const CtlMessage *message)
{
    struct err err = { 0 };

    err_set(&err, ERR_STALE_EPOCH, "epoch %llu is over, %llu has begun",
            (unsigned long long)message->epoch, (unsigned long long)agent->table.epoch);
    log_warn("session.stale", "what=%s refused: %s", message_name(message), err.text);
    if (message->what_case == CTL_MESSAGE__WHAT_GRANT)
        agent_send_grant_ack(agent, message->grant->job_id, message->grant->attempt, &err, false);
    else if (message->what_case == CTL_MESSAGE__WHAT_LAUNCH)
        agent_send_grant_ack(agent, message->launch->job_id, message->launch->attempt, &err, false);
    session_reconnect(agent->session, "a leader of an earlier epoch");
}

void agent_on_message(struct agent *agent, const CtlMessage *message)
{
    if (agent->stopping)
        return;
    if (message->epoch < agent->table.epoch) {
        refuse_stale(agent, message);
        return;
    }
    if (message->what_case == CTL_MESSAGE__WHAT_WELCOME) {
        agent_heard(agent, agent->hello_sent_us);
        on_welcome(agent, message->epoch, message->welcome);
        return;
    }
    if (!agent->welcomed) /* (3) */
        return;
    switch (message->what_case) {
    case CTL_MESSAGE__WHAT_GRANT:
        on_grant(agent, message->grant);
        break;
    case CTL_MESSAGE__WHAT_LAUNCH:
        on_launch(agent, message->launch);
        break;
    case CTL_MESSAGE__WHAT_REVOKE:
        on_revoke(agent, message->revoke);
        break;
    case CTL_MESSAGE__WHAT_SIGNAL:
        on_signal(agent, message->signal);
        break;
    case CTL_MESSAGE__WHAT_FREEZE:
        on_freeze(agent, message->freeze);
        break;
    case CTL_MESSAGE__WHAT_LIMIT:
        on_limit(agent, message->limit);
        break;
    case CTL_MESSAGE__WHAT_CONFIG:
        agent_set_config(agent, message->config);
        break;
    case CTL_MESSAGE__WHAT_CONTROLLERS:
        session_set_controllers(agent->session, message->controllers->addresses,
                                message->controllers->n_addresses);
        break;
    case CTL_MESSAGE__WHAT_ACK:
        on_ack(agent, message->ack);
        break;
    case CTL_MESSAGE__WHAT_PING:
        agent_heard_beat(agent, message->ping->seq);
        break;
    case CTL_MESSAGE__WHAT_STEPS:
        step_report_acked(agent, message->steps->number);
        break;
    case CTL_MESSAGE__WHAT_STOP:
        log_info("agent.stop", "reason=%s", message->stop->reason ? message->stop->reason : "");
        kill(getpid(), SIGTERM); /* as an administrator would here */
        break;
    case CTL_MESSAGE__WHAT_REBOOT:
        on_reboot(agent, message->reboot);
        break;
    default:
        break;
    }
}

void agent_on_disconnect(struct agent *agent)
{
    if (agent->welcomed)
        log_info("session.lost", "held=%zu", map_len(&agent->table.held));
    agent->welcomed = false;
}
