/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_effects.c - what the leader does because of what the cluster decided
 *
 * core_apply() says what happened; this file makes it true outside. Followers never run it.
 *
 * (1) An effect is a function of one event and the state, nothing else.
 * (2) Running an effect twice equals running it once: agents compare (epoch, job, attempt).
 * (3) Nothing is queued here. A node that is not connected gets what is due when it says hello; those of
 *     a wide job hear it bit by bit (ctl_fanout.c).
 */
#include <stdlib.h>
#include <string.h>

#include "spurctld/ctl/ctl_priv.h"
#include "sys/log.h"

static const int64_t GRANT_VALID_US = INT64_C(600) * 1000000;

/* Of proto/agent.proto; the most that is kept of a launch that is over. */
enum { FIELD_GRANT_ALLOCATION = 7, FIELD_GRANT_SPEC = 9, FIELD_LAUNCH_SPEC = 3 };
enum { LAUNCHED_BYTES = 1024 * 1024 };

static struct agent *part_agent(struct ctl *ctl, const struct job *job, size_t part)
{
    struct agent *agent = ctl_agent(ctl, job->run->parts[part].name);

    return agent && agent->session && agent->welcomed ? agent : NULL;
}

/* ---- grants and launches ---- */

/* The script of a heterogeneous job knows what every component was given. */
static void fill_components(struct ctl *ctl, const struct job *job, struct arena *arena,
                            Launch *launch)
{
    uint32_t count = job->more ? job->more->het_count : 0;

    launch->components = ARENA_ARRAY(arena, Job *, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        const struct job *part = state_job(ctl->state, job->more->het_job_id + i);
        if (part)
            launch->components[launch->n_components++] = job_msg(ctl->state, part, arena);
    }
}

/* The script and environment of the job; those of the last one stay, for the next task of an array. */
static bool take_payload(struct ctl *ctl, const struct job *job)
{
    struct str *bytes = &ctl->nodes.launched.bytes;
    struct err err = { 0 };

    if (!job->payload) {
        str_clear(bytes);
        ctl->nodes.launched.is_whole = false;
        return true;
    }
    if (ctl->nodes.launched.is_whole &&
        memcmp(ctl->nodes.launched.digest, job->payload->digest, LOG_DIGEST_BYTES) == 0)
        return true;
    if (bytes->cap > LAUNCHED_BYTES)
        str_done(bytes);
    str_clear(bytes);
    ctl->nodes.launched.is_whole =
        log_payload_get(ctl->log, job->payload->digest, bytes, &err) == 0;
    memcpy(ctl->nodes.launched.digest, job->payload->digest, LOG_DIGEST_BYTES);
    if (!ctl->nodes.launched.is_whole)
        log_error("job.payload", "job=%u text=%s", job->id, err.text);
    return ctl->nodes.launched.is_whole;
}

/*
 * Bytes that are packed already: a field that the message does not know is written as it stands, and is
 * the field that it should be for who reads it. Others may follow it in the same bytes.
 */
static void splice(ProtobufCMessage *into, unsigned field, const char *data, size_t len,
                   struct arena *arena)
{
    ProtobufCMessageUnknownField *unknown = ARENA_NEW(arena, ProtobufCMessageUnknownField);

    unknown->tag = field;
    unknown->wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
    unknown->len = len;
    unknown->data = (uint8_t *)(uintptr_t)data;
    into->n_unknown_fields = 1;
    into->unknown_fields = unknown;
}

/* The spec goes as it is packed in the state. */
static void splice_spec(const struct job *job, unsigned field, struct arena *arena,
                        ProtobufCMessage *into)
{
    uint8_t *data = arena_alloc(arena, job->spec->len + 10);
    size_t at = 0;

    for (size_t len = job->spec->len;; len >>= 7) {
        data[at++] = (uint8_t)((len & 127) | (len > 127 ? 128 : 0));
        if (len <= 127)
            break;
    }
    memcpy(data + at, job->spec->data, job->spec->len);
    splice(into, field, (char *)data, at + job->spec->len, arena);
}

static bool fill_launch(struct ctl *ctl, const struct job *job, struct arena *arena, Launch *launch)
{
    JobStatus *status = ARENA_NEW(arena, JobStatus);

    if (!take_payload(ctl, job))
        return false;
    job_status__init(status);
    job_status_msg(ctl->state, job, arena, status);
    launch->has_job_id = launch->has_attempt = true;
    launch->job_id = job->id;
    launch->attempt = job->attempt;
    splice_spec(job, FIELD_LAUNCH_SPEC, arena, &launch->base);
    launch->status = status;
    launch->has_payload = true;
    launch->payload.len = ctl->nodes.launched.bytes.len;
    launch->payload.data = (uint8_t *)ctl->nodes.launched.bytes.data;
    launch->cluster_name = state_config(ctl->state)->cluster_name;
    launch->has_time_limit_s = true;
    launch->time_limit_s = job->time_limit_s;
    fill_components(ctl, job, arena, launch);
    return true;
}

/* Grows with each node that the job gives up or loses. */
uint32_t ctl_grant_version(const struct job *job)
{
    uint32_t version = 1; /* one more for each node that it does not have any more */

    for (unsigned i = 0; i < job->run->count; i++)
        version += job->run->parts[i].left;
    return version;
}

static bool is_het(const struct job *job)
{
    return job->more && job->more->het_count;
}

/* For one node, grant and launch are one message; not while other components are being prepared. */
bool ctl_launches_with_grant(const struct job *job)
{
    return job->batch && job->run->count == 1 && !is_het(job);
}

bool ctl_may_launch(const struct ctl *ctl, const struct job *job)
{
    for (uint32_t i = 0; is_het(job) && i < job->more->het_count; i++) {
        const struct job *part = state_job(ctl->state, job->more->het_job_id + i);
        enum job_phase phase = part ? job_phase(part) : PHASE_ENDED;
        if (phase != PHASE_RUNNING && phase != PHASE_SUSPENDED)
            return false;
    }
    return true;
}

/* The nodes of a job are ready; of a heterogeneous one, perhaps those of its last component. */
static void ready(struct ctl *ctl, const struct job *job)
{
    const struct job *first = is_het(job) ? state_job(ctl->state, job->more->het_job_id) : job;

    ctl_granting_end(ctl, job->id);
    if (first && first->run && !ctl_launches_with_grant(first))
        ctl_send_launch(ctl, first);
}

/* Where users reach the nodes of a job. */
static void fill_addresses(struct ctl *ctl, const struct job *job, struct arena *arena,
                           Grant *grant)
{
    grant->n_addresses = job->run->count;
    grant->addresses = ARENA_ARRAY(arena, char *, job->run->count);
    for (size_t i = 0; i < job->run->count; i++) {
        const struct node *node = state_node(ctl->state, job->run->parts[i].name);
        const NodeInventory *found = node ? node->found : NULL;
        grant->addresses[i] = found && found->addr
                                  ? arena_printf(arena, "http://%s:%u", found->addr,
                                                 found->has_port ? found->port : 6818)
                                  : arena_strdup(arena, "");
    }
}

static ProtobufCBinaryData step_key(struct ctl *ctl, const struct job *job, size_t part,
                                    struct arena *arena)
{
    ProtobufCBinaryData key = { CTL_STEP_KEY_BYTES,
                                ARENA_ARRAY(arena, uint8_t, CTL_STEP_KEY_BYTES) };

    ctl_step_key(ctl, job, job->run->parts[part].name, key.data);
    return key;
}

static void fill_step_keys(struct ctl *ctl, const struct job *job, size_t part, struct arena *arena,
                           Grant *grant)
{
    grant->has_step_key = true;
    grant->step_key = step_key(ctl, job, part, arena);
    if (part != ctl_manager(job))
        return;
    grant->n_step_keys = job->run->count;
    grant->step_keys = ARENA_ARRAY(arena, ProtobufCBinaryData, job->run->count);
    for (size_t i = 0; i < job->run->count; i++)
        grant->step_keys[i] = step_key(ctl, job, i, arena);
}

/* All that is the same for each node; its first field is the allocation. */
static void pack_common(struct ctl *ctl, const struct job *job, struct str *out)
{
    Grant grant = GRANT__INIT;
    Allocation allocation = ALLOCATION__INIT;
    struct arena arena;

    arena_init(&arena);
    alloc_all_msg(job, &arena, &allocation);
    grant.allocation = &allocation;
    fill_addresses(ctl, job, &arena, &grant);
    if (!ctl_launches_with_grant(job))
        splice_spec(job, FIELD_GRANT_SPEC, &arena, &grant.base);
    size_t len = grant__get_packed_size(&grant);
    str_reserve(out, len);
    out->len = grant__pack(&grant, (uint8_t *)out->data);
    out->data[out->len] = '\0';
    arena_done(&arena);
}

void ctl_send_grant(struct ctl *ctl, const struct job *job, size_t part, struct str *common)
{
    struct agent *agent = part_agent(ctl, job, part);
    struct arena arena;
    Grant grant = GRANT__INIT;
    Launch launch = LAUNCH__INIT;
    JobOwner owner = JOB_OWNER__INIT;
    NodeAlloc alloc = NODE_ALLOC__INIT;
    CtlMessage message = CTL_MESSAGE__INIT;
    struct str own = { 0 };

    if (!agent || job->run->prolog == SITE_DUE || job->run->boot == SITE_DUE)
        return; /* (3); and not before the site's program is done and its nodes are back */
    common = common ? common : &own;
    if (!common->len)
        pack_common(ctl, job, common);
    arena_init(&arena);
    job_owner_msg(job->owner, &owner);
    alloc_node_msg(job, part, &arena, &alloc);
    grant.has_job_id = grant.has_attempt = grant.has_version = true;
    grant.job_id = job->id;
    grant.attempt = job->attempt;
    grant.has_het_job_id = is_het(job);
    grant.het_job_id = is_het(job) ? job->more->het_job_id : 0;
    size_t manager = ctl_manager(job);
    grant.version = ctl_grant_version(job);
    grant.owner = &owner;
    grant.alloc = &alloc;
    grant.manager = (char *)job->run->parts[manager].name;
    grant.has_lease_bound = true;
    grant.lease_bound = job_is_bound(ctl->state, job);
    grant.has_time_limit_s = grant.has_start_us = grant.has_expires_us = true;
    grant.time_limit_s = job->time_limit_s;
    grant.start_us = job->run->start_us;
    grant.expires_us = ctl_now(ctl) + GRANT_VALID_US;
    fill_step_keys(ctl, job, part, &arena, &grant);
    /* Its tag is one byte, which is written for it. */
    splice(&grant.base, FIELD_GRANT_ALLOCATION, common->data + 1, common->len - 1, &arena);
    bool good = true;
    if (ctl_launches_with_grant(job)) {
        good = fill_launch(ctl, job, &arena, &launch);
        grant.launch = &launch;
    }
    message.what_case = CTL_MESSAGE__WHAT_GRANT;
    message.grant = &grant;
    if (good) {
        ctl_granting_sent(ctl, job, part);
        ctl_send(ctl, agent, &message);
    } else {
        ctl_finish_lost(ctl, job, NULL, "the job's script is not in the store", false, false);
    }
    arena_done(&arena);
    str_done(&own);
}

void ctl_send_launch(struct ctl *ctl, const struct job *job)
{
    struct agent *agent = part_agent(ctl, job, 0);
    struct arena arena;
    Launch launch = LAUNCH__INIT;
    CtlMessage message = CTL_MESSAGE__INIT;

    if (!agent || !job->batch || !ctl_may_launch(ctl, job))
        return;
    arena_init(&arena);
    message.what_case = CTL_MESSAGE__WHAT_LAUNCH;
    message.launch = &launch;
    if (fill_launch(ctl, job, &arena, &launch))
        ctl_send(ctl, agent, &message);
    else
        ctl_finish_lost(ctl, job, NULL, "the job's script is not in the store", false, false);
    arena_done(&arena);
}

/* The attempt is over without a report: its node refused it, or its script is gone. */
void ctl_finish_lost(struct ctl *ctl, const struct job *job, const char *node, const char *why,
                     bool requeue, bool hold)
{
    CmdFinish finish = CMD_FINISH__INIT;
    Command command = CTL_COMMAND(FINISH, .finish = &finish);

    finish.has_job_id = finish.has_attempt = finish.has_requeue = true;
    finish.job_id = job->id;
    finish.attempt = job->attempt;
    finish.requeue = requeue;
    finish.has_hold = finish.hold = hold;
    if (!requeue) {
        finish.has_state = true;
        finish.state = JOB_FAILED;
        finish.has_exit_status = true;
        finish.exit_status = 1 << 8;
    }
    finish.failed_node = (char *)node;
    finish.text = (char *)why;
    log_warn("job.lost", "job=%u attempt=%u node=%s requeue=%d hold=%d why=%s", job->id,
             job->attempt, node ? node : "-", requeue, hold, why);
    ctl_propose(ctl, &command, NULL, NULL);
}

void ctl_send_revoke(struct ctl *ctl, const struct job *job, size_t part)
{
    struct agent *agent = part_agent(ctl, job, part);
    const Config *config = state_config(ctl->state);
    Revoke revoke = REVOKE__INIT;
    CtlMessage message = CTL_MESSAGE__INIT;

    if (!agent)
        return; /* (3) */
    revoke.has_job_id = revoke.has_attempt = revoke.has_kill = true;
    revoke.job_id = job->id;
    revoke.attempt = job->attempt;
    revoke.kill = true;
    revoke.has_kill_wait_s = true;
    revoke.kill_wait_s = config->has_kill_wait_s ? config->kill_wait_s : 30;
    revoke.has_state = true;
    revoke.state = job->run->parts[part].left ? JOB_CANCELLED : (JobState)job->state;
    message.what_case = CTL_MESSAGE__WHAT_REVOKE;
    message.revoke = &revoke;
    ctl_send(ctl, agent, &message);
}

static void revoke_all(struct ctl *ctl, const struct job *job)
{
    ctl_granting_end(ctl, job->id);
    ctl_fanout_tell(ctl, job, WIDE_REVOKE, NULL);
}

static void started(struct ctl *ctl, const struct job *job)
{
    ctl_granting_start(ctl, job)->own = true;
    ctl_fanout_tell(ctl, job, WIDE_GRANT, NULL);
}

/* ---- signals, freezing, limits ---- */

enum { ALL_PARTS = -1 };

void ctl_send_part(struct ctl *ctl, const struct job *job, size_t part, CtlMessage *message)
{
    struct agent *agent = part_agent(ctl, job, part);

    if (agent && job->run->parts[part].node)
        ctl_send(ctl, agent, message);
}

static void each_node(struct ctl *ctl, const struct job *job, int part, CtlMessage *message)
{
    if (part == ALL_PARTS)
        ctl_fanout_tell(ctl, job, WIDE_MESSAGE, message);
    else if (job->run && (unsigned)part < job->run->count)
        ctl_send_part(ctl, job, (size_t)part, message);
}

static void signal_job(struct ctl *ctl, const struct event *event)
{
    SignalJob signal = SIGNAL_JOB__INIT;
    CtlMessage message = CTL_MESSAGE__INIT;

    signal.has_job_id = signal.has_attempt = signal.has_signal = true;
    signal.job_id = event->job->id;
    signal.attempt = event->job->attempt;
    signal.signal = event->signal;
    signal.has_batch_only = signal.has_full = true;
    signal.batch_only = event->batch_only;
    signal.full = event->full;
    message.what_case = CTL_MESSAGE__WHAT_SIGNAL;
    message.signal = &signal;
    each_node(ctl, event->job, ALL_PARTS, &message);
}

static void freeze_job(struct ctl *ctl, const struct job *job, int part, bool thaw)
{
    FreezeJob freeze = FREEZE_JOB__INIT;
    CtlMessage message = CTL_MESSAGE__INIT;

    freeze.has_job_id = freeze.has_attempt = freeze.has_thaw = true;
    freeze.job_id = job->id;
    freeze.attempt = job->attempt;
    freeze.thaw = thaw;
    message.what_case = CTL_MESSAGE__WHAT_FREEZE;
    message.freeze = &freeze;
    each_node(ctl, job, part, &message);
}

static void new_limit(struct ctl *ctl, const struct job *job, int part)
{
    UpdateLimit limit = UPDATE_LIMIT__INIT;
    CtlMessage message = CTL_MESSAGE__INIT;

    limit.has_job_id = limit.has_attempt = limit.has_time_limit_s = true;
    limit.job_id = job->id;
    limit.attempt = job->attempt;
    limit.time_limit_s = job->time_limit_s;
    message.what_case = CTL_MESSAGE__WHAT_LIMIT;
    message.limit = &limit;
    each_node(ctl, job, part, &message);
}

/* What it missed while it was away; the grant it holds may be older. */
void ctl_send_condition(struct ctl *ctl, const struct job *job, size_t part)
{
    new_limit(ctl, job, (int)part);
    if (job->run->suspend_us)
        freeze_job(ctl, job, (int)part, job_phase(job) != PHASE_SUSPENDED);
}

/*
 * The job has fewer nodes than it started with: those that it gave up are to end what they run of it,
 * the others hear which are left and who manages its steps.
 */
static void tell_smaller(struct ctl *ctl, const struct job *job)
{
    if (ctl_grant_version(job) > 1)
        ctl_fanout_tell(ctl, job, WIDE_SMALLER, NULL);
}

void ctl_send_reboot(struct ctl *ctl, const struct node *node)
{
    struct agent *agent = ctl_agent(ctl, node->spec->name);
    RebootNode reboot = REBOOT_NODE__INIT;
    CtlMessage message = CTL_MESSAGE__INIT;

    if (!agent || !agent->session || !agent->welcomed || !(node->flags & NODE_FLAG_REBOOT_ISSUED))
        return; /* (3) */
    reboot.reason = node->reason;
    message.what_case = CTL_MESSAGE__WHAT_REBOOT;
    message.reboot = &reboot;
    log_info("node.reboot", "node=%s", agent->name);
    ctl_send(ctl, agent, &message);
}

void ctl_effect(struct ctl *ctl, const struct event *event)
{
    switch (event->kind) {
    case EVENT_JOB_STARTED:
        started(ctl, event->job);
        break;
    case EVENT_JOB_PREPARED:
        ctl_fanout_tell(ctl, event->job, WIDE_GRANT, NULL);
        break;
    case EVENT_JOB_READY:
        ready(ctl, event->job);
        break;
    case EVENT_JOB_SIGNAL:
        signal_job(ctl, event);
        break;
    case EVENT_JOB_ENDING:
        revoke_all(ctl, event->job);
        break;
    case EVENT_JOB_SUSPENDED:
        freeze_job(ctl, event->job, ALL_PARTS, false);
        break;
    case EVENT_JOB_RESUMED:
        freeze_job(ctl, event->job, ALL_PARTS, true);
        break;
    case EVENT_JOB_CHANGED:
        if (event->job->run && !job_has_ended(event->job)) {
            new_limit(ctl, event->job, ALL_PARTS);
            tell_smaller(ctl, event->job);
        }
        break;
    case EVENT_JOB_ENDED:
    case EVENT_JOB_REQUEUED:
    case EVENT_JOB_CLEAN:
        ctl_steps_gone(ctl, event->job->id);
        break;
    case EVENT_NODE_REBOOT:
        ctl_send_reboot(ctl, event->node);
        break;
    case EVENT_RESERVATION:
        ctl_resv_changed(ctl);
        break;
    case EVENT_CONFIG:
        ctl_nodes_config(ctl);
        break;
    default:
        break;
    }
    if (event->job) {
        ctl_mail(ctl, event);
        ctl_site(ctl, event);
    }
}
