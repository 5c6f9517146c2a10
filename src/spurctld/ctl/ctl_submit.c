/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_submit.c - a job comes in
 *
 * (1) The owner of a job is who asked, as rpc proved it; nothing in a request says so.
 * (2) Asked again, it gets the first answer, even if the cluster would take no such job now.
 */
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "core/shape.h"
#include "spurctld/ctl/ctl_priv.h"
#include "wire/pb.h"

static void answer_submit(struct ctl_ask *ask, uint32_t job_id, enum err_code code,
                          const char *text)
{
    SubmitJobReply reply = SUBMIT_JOB_REPLY__INIT;
    struct err refused = { 0 };

    if (code) {
        err_set(&refused, code, "%s", text ? text : err_text(code));
        ask->ops->fail(ask, &refused);
        return;
    }
    reply.has_job_id = true;
    reply.job_id = job_id;
    ask->ops->reply(ask, &reply.base);
}

static void submit_done(struct ctl *ctl, void *arg, const struct events *events,
                        const struct err *err)
{
    struct ctl_ask *ask = arg;

    (void)ctl;
    if (err) {
        ask->ops->fail(ask, err);
        return;
    }
    const struct event *answer = ctl_answer(events);
    answer_submit(ask, answer->job_id, answer->code, answer->text);
}

static uint32_t asked_cpus(struct ctl *ctl, const JobSpec *const *specs, size_t count)
{
    uint64_t cpus = 0;

    for (size_t i = 0; i < count; i++) {
        struct err ignored = { 0 };
        struct shape *shape =
            shape_parse(ctl->state, specs[i], &ignored); /* admitted: can be read */
        if (shape)
            shape_needs(ctl->state, shape); /* how many nodes it takes */
        cpus += shape ? shape_cpus(shape) : 0;
        shape_free(shape);
    }
    return (uint32_t)MIN(cpus, UINT32_MAX);
}

/* Partitions that were not named are filled in, as a submission would. */
static const JobSpec *const *fill_partitions(struct ctl *ctl, struct arena *arena,
                                             const JobSpec *const *asked, size_t count)
{
    const struct partition *fallback = state_default_partition(ctl->state);
    JobSpec *filled = ARENA_ARRAY(arena, JobSpec, count);
    const JobSpec **out = ARENA_ARRAY(arena, const JobSpec *, count);

    for (size_t i = 0; i < count; i++) {
        filled[i] = *asked[i];
        if (str_is_empty(filled[i].partition) && fallback)
            filled[i].partition = fallback->spec->name;
        out[i] = &filled[i];
    }
    return out;
}

/* Of all components, each once. */
static char *partitions_of(struct arena *arena, const JobSpec *const *specs, size_t count)
{
    struct str text = { 0 };

    for (size_t i = 0; i < count; i++) {
        bool seen = false;
        for (size_t k = 0; k < i; k++)
            seen = seen || str_eq(specs[k]->partition, specs[i]->partition);
        if (!seen && specs[i]->partition)
            str_addf(&text, "%s%s", i ? "," : "", specs[i]->partition);
    }
    char *out = arena_strdup(arena, str_text(&text));
    str_done(&text);
    return out;
}

static void test_only(struct ctl *ctl, struct ctl_ask *ask, const JobOwner *owner,
                      const JobSpec *const *asked, size_t count)
{
    SubmitJobReply reply = SUBMIT_JOB_REPLY__INIT;
    const JobSpec *const *specs = fill_partitions(ctl, ask->arena, asked, count);
    struct explanation about = { 0 };
    struct err err = { 0 };

    if (sched_test(ctl->sched, owner, specs, count, ctl_now(ctl), ask->arena, &about, &err) < 0) {
        ask->ops->fail(ask, &err);
        return;
    }
    if (about.never)
        err_set(&err, ERR_NODE_CONFIG_UNAVAILABLE, "%s", about.sentence);
    else if (!about.planned_start_us && about.unusable)
        err_code(&err, ERR_NODE_NOT_AVAIL);
    else if (!about.planned_start_us && count > 1)
        err_code(&err, ERR_NODES_BUSY); /* no moment was found at which there is room for all */
    if (err.code) {
        ask->ops->fail(ask, &err);
        return;
    }
    reply.has_job_id = true;
    reply.job_id = state_head(ctl->state).next_job_id;
    reply.has_planned_start_us = true;
    reply.planned_start_us = about.planned_start_us ? about.planned_start_us : ctl_now(ctl);
    reply.planned_nodes = (char *)about.planned_nodes;
    reply.has_planned_cpus = true;
    reply.planned_cpus = asked_cpus(ctl, specs, count);
    reply.message = (char *)about.sentence;
    reply.partition =
        about.partition ? (char *)about.partition : partitions_of(ask->arena, specs, count);
    reply.preempts = (char *)about.preempts;
    ask->ops->reply(ask, &reply.base);
}

void ctl_submit_owner(const struct ctl_who *who, JobOwner *owner)
{
    owner->has_uid = owner->has_gid = true;
    owner->uid = who->uid;
    owner->gid = who->gid;
    owner->user = (char *)who->user;
    owner->group = (char *)who->group;
    owner->n_gids = who->gid_count;
    owner->gids = (uint32_t *)who->gids;
}

/* False: the bytes end in it. */
static bool read_varint(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        uint8_t byte = *(*at)++;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

/* Bytes of the script of a packed JobPayload, which is not unpacked here; the longest when there are several. */
static uint64_t script_bytes(const ProtobufCBinaryData *payload)
{
    enum { SCRIPT_FIELD = 1, WIRE_VARINT = 0, WIRE_BYTES = 2 };
    const uint8_t *at = payload->data, *end = at + payload->len;
    uint64_t tag, value, longest = 0;

    while (at < end && read_varint(&at, end, &tag) && read_varint(&at, end, &value)) {
        if ((tag & 7) == WIRE_VARINT)
            continue;
        if ((tag & 7) != WIRE_BYTES || value > (uint64_t)(end - at))
            break;
        if (tag >> 3 == SCRIPT_FIELD)
            longest = MAX(longest, value);
        at += value;
    }
    return longest;
}

/* What a payload may be is checked here once; the node trusts it. */
static int check_payload(const struct ctl *ctl, const SubmitJobPackedComponent *component,
                         struct err *err)
{
    const Config *config = state_config(ctl->state);
    uint64_t most =
        config && config->max_script_bytes ? config->max_script_bytes : LIMIT_SCRIPT_BYTES;
    bool batch = component->spec->batch;

    if (batch && script_bytes(&component->payload) > most)
        return err_set(err, ERR_TOO_LARGE, "the batch script has more than %llu bytes",
                       (unsigned long long)most);

    if (component->payload.len > LIMIT_SCRIPT_BYTES + LIMIT_ENV_BYTES + 65536)
        return err_set(err, ERR_TOO_LARGE, "script and environment have %zu bytes, at most %d",
                       component->payload.len, LIMIT_SCRIPT_BYTES + LIMIT_ENV_BYTES);
    if (batch && !component->payload.len)
        return err_code(err, ERR_NO_SCRIPT);
    if (!pb_would_unpack(&job_payload__descriptor, component->payload.data, component->payload.len))
        return err_set(err, ERR_BAD_MESSAGE,
                       "the job's script and environment cannot be read: not a JobPayload");
    return 0;
}

/* The limit that a job without one has, in the first partition it names; -1: none. */
static int64_t usual_limit_s(const struct ctl *ctl, const JobSpec *spec)
{
    char name[LIMIT_NAME_BYTES + 1];
    const struct partition *partition = state_default_partition(ctl->state);

    if (!str_is_empty(spec->partition)) {
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(spec->partition, ","), spec->partition);
        partition = state_partition(ctl->state, name);
    }
    if (!partition)
        return -1;
    return partition->spec->default_time_s > 0 ? partition->spec->default_time_s
           : partition->spec->max_time_s > 0   ? partition->spec->max_time_s
                                               : -1;
}

/*
 * A job with a deadline has no more time than is left until then: without a limit of its own it gets what
 * is left, with --time-min its limit is shortened, else a limit beyond it is refused.
 */
static int settle_deadline(const struct ctl *ctl, JobSpec *spec, struct err *err)
{
    int64_t left_s = (spec->deadline_us - ctl_now(ctl)) / 1000000;
    int64_t limit_s = spec->has_time_limit_s ? spec->time_limit_s : usual_limit_s(ctl, spec);

    if (!spec->deadline_us)
        return 0;
    if (left_s <= 0)
        return err_code(err, ERR_TIME_LIMIT);
    if (spec->time_min_s > left_s)
        return err_code(err, ERR_TIME_MIN);
    if (limit_s > 0 && limit_s <= left_s)
        return 0;
    if (spec->has_time_limit_s && spec->time_limit_s > 0 && !spec->time_min_s)
        return err_code(err, ERR_TIME_LIMIT);
    spec->has_time_limit_s = true;
    spec->time_limit_s = left_s;
    if (!spec->time_min_s) { /* it may start as long as a minute is left */
        spec->has_time_min_s = true;
        spec->time_min_s = MIN(left_s, 60);
    }
    return 0;
}

/* What is filled in or refused before the cluster looks at the job. */
static int settle_spec(const struct ctl *ctl, JobSpec *spec, struct err *err)
{
    if (spec->min_nodes > LIMIT_NODES)
        return err_code(err, ERR_TOO_MANY_CPUS);
    return settle_deadline(ctl, spec, err);
}

int ctl_submit_check(const struct ctl *ctl, const struct ctl_ask *ask,
                     const SubmitJobPackedComponent *component, struct err *err)
{
    const struct ctl_who *who = ask->who;
    JobSpec *spec = component->spec;

    if (!spec)
        return err_set(err, ERR_BAD_MESSAGE, "a component has no spec");
    if ((spec->no_allocate || spec->reboot) && !who->is_operator && !who->is_admin)
        return err_code(err, ERR_PERMISSION);
    if (ctl_check_asked(who, spec, err) < 0 || ctl_check_texts(spec, err) < 0 ||
        ctl_check_spank(ctl->state, spec, err) < 0 || check_payload(ctl, component, err) < 0 ||
        settle_spec(ctl, spec, err) < 0)
        return -(int)err->code;
    return 0;
}

bool ctl_submit_pack(struct ctl *ctl, struct arena *arena,
                     const SubmitJobPackedComponent *component, PackedComponent *out,
                     struct log_payload *payload)
{
    size_t len = job_spec__get_packed_size(component->spec);

    packed_component__init(out);
    out->has_spec = true;
    out->spec.len = len;
    out->spec.data = arena_alloc(arena, len + 1);
    job_spec__pack(component->spec, out->spec.data);
    if (!component->payload.len)
        return false;
    out->has_payload_digest = true;
    out->payload_digest.len = LOG_DIGEST_BYTES;
    out->payload_digest.data = arena_alloc(arena, LOG_DIGEST_BYTES);
    ctl->io.digest(ctl->io.ctx, component->payload.data, component->payload.len,
                   out->payload_digest.data);
    *payload =
        (struct log_payload){ out->payload_digest.data,
                              { (const char *)component->payload.data, component->payload.len } };
    return true;
}

void ctl_submit(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    const SubmitJobPacked *request = (const void *)message;
    size_t count = request->n_components;
    JobOwner owner = JOB_OWNER__INIT;
    struct request_seen seen;
    struct err err = { 0 };

    if (count == 0 || count > LIMIT_HET_COMPONENTS) {
        ctl_fail(ask, count ? ERR_TOO_MANY : ERR_NO_SCRIPT);
        return;
    }
    if (ctl_seen(ctl, ask, &seen)) { /* (2) */
        answer_submit(ask, seen.job_id, seen.code, NULL);
        return;
    }
    ctl_submit_owner(ask->who, &owner); /* (1) */
    const JobSpec **specs = ARENA_ARRAY(ask->arena, const JobSpec *, count);
    PackedComponent *packed = ARENA_ARRAY(ask->arena, PackedComponent, count);
    PackedComponent **list = ARENA_ARRAY(ask->arena, PackedComponent *, count);
    struct log_payload *payloads = ARENA_ARRAY(ask->arena, struct log_payload, count);
    uint32_t payload_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (ctl_submit_check(ctl, ask, request->components[i], &err) == 0 &&
            request->components[i]->spec->cron)
            err_set(&err, ERR_INVALID, "only scrontab makes jobs that run again and again");
        if (err.code) {
            ask->ops->fail(ask, &err);
            return;
        }
        specs[i] = request->components[i]->spec;
    }
    if (core_admit_submit(ctl->state, &owner, specs, count, ctl_now(ctl), &err) < 0) {
        ask->ops->fail(ask, &err);
        return;
    }
    if (request->test_only) {
        if (ctl_forked(ctl, ask, ctl_submit, message, count))
            return;
        test_only(ctl, ask, &owner, specs, count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        list[i] = &packed[i];
        payload_count += ctl_submit_pack(ctl, ask->arena, request->components[i], &packed[i],
                                         &payloads[payload_count]);
    }
    CmdSubmit submit = CMD_SUBMIT__INIT;
    submit.owner = &owner;
    submit.n_components = count;
    submit.components = list;
    Command command = CTL_COMMAND(SUBMIT, .submit = &submit);
    ctl_stamp_ask(ask, &command);
    ctl_propose_payloads(ctl, &command, payloads, payload_count, submit_done, ask);
}
