/* SPDX-License-Identifier: Apache-2.0 */
/*
 * more.c - what else is asked of the controller: explain, steps, reservations, licences, diag, who am I
 */
#include <string.h>

#include "base/hostlist.h"
#include "proto/controller.pb-c.h"
#include "schema/diag.h"
#include "schema/job_view.h"
#include "schema/names.h"
#include "schema/objects_json.h"
#include "schema/reasons.h"
#include "schema/update.h"
#include "spurrestd/answer.h"
#include "spurrestd/ask.h"
#include "spurrestd/body.h"
#include "spurrestd/events.h"
#include "spurrestd/params.h"
#include "spurrestd/routes.h"
#include "sys/clock.h"

static void start(struct exchange *x, const char *method, const ProtobufCMessage *message,
                  const ProtobufCMessageDescriptor *reply, bool change, ask_done *done)
{
    const struct ask_call call = {
        .method = method, .message = message, .reply = reply, .change = change, .done = done
    };

    ask_start(x, &call);
}

static const ProtobufCMessage *empty(struct exchange *x)
{
    Empty *message = ARENA_NEW(&x->arena, Empty);

    empty__init(message);
    return &message->base;
}

/* ---- who am I ---- */

static void on_who(struct exchange *x, const ProtobufCMessage *message, const struct err *err)
{
    const IdentityReply *reply = (const void *)message;

    if (err) {
        answer_error(x, err, NULL);
        return;
    }
    struct answer *answer = answer_new(x);
    jsonw_text(&answer->json, "user", reply->user);
    jsonw_number(&answer->json, "uid", reply->uid);
    jsonw_bool(&answer->json, "operator", reply->is_operator);
    jsonw_bool(&answer->json, "administrator", reply->is_admin);
    answer_send(answer);
}

void get_whoami(struct exchange *x)
{
    start(x, "WhoAmI", empty(x), &identity_reply__descriptor, false, on_who);
}

/* ---- explain ---- */

static void on_explained(struct exchange *x, const ProtobufCMessage *message, const struct err *err)
{
    const ExplainReply *reply = (const void *)message;

    if (err) {
        answer_error(x, err, NULL);
        return;
    }
    struct answer *answer = answer_new(x);
    struct jsonw *json = &answer->json;
    const JobStatus *status = job_status(reply->job);
    struct str reason = { 0 };
    reason_add(&reason, status->reason, status->reason_text, 0);
    jsonw_number(json, "job_id", reply->job ? reply->job->id : 0);
    jsonw_text(json, "state", job_state_text(status->state, status->flags));
    jsonw_text(json, "reason", str_text(&reason));
    jsonw_text(json, "sentence", reply->sentence);
    jsonw_list(json, "details");
    for (size_t i = 0; i < reply->n_details; i++)
        jsonw_text(json, NULL, reply->details[i]);
    jsonw_list_end(json);
    jsonw_set(json, "planned_start", reply->planned_start_us > 0, false,
              reply->planned_start_us / 1000000);
    jsonw_text(json, "planned_nodes", reply->planned_nodes);
    jsonw_number(json, "jobs_ahead", reply->jobs_ahead);
    jsonw_bool(json, "never", reply->never);
    str_done(&reason);
    answer_send(answer);
}

void get_explain(struct exchange *x)
{
    ExplainRequest *request = ARENA_NEW(&x->arena, ExplainRequest);

    if (params_bad_job(x))
        return;
    explain_request__init(request);
    request->id = (char *)(uintptr_t)x->args[0];
    start(x, "Explain", &request->base, &explain_reply__descriptor, false, on_explained);
}

/* ---- steps ---- */

static void on_steps(struct exchange *x, const ProtobufCMessage *message, const struct err *err)
{
    const ListStepsReply *reply = (const void *)message;

    if (err) {
        answer_error(x, err, NULL);
        return;
    }
    struct answer *answer = answer_new(x);
    struct jsonw *json = &answer->json;
    jsonw_list(json, "steps");
    for (size_t i = 0; i < reply->n_steps; i++) {
        const StepInfo *step = reply->steps[i];
        jsonw_object(json, NULL);
        jsonw_number(json, "job_id", step->id ? step->id->job_id : 0);
        jsonw_number(json, "step_id", step->id ? step->id->step : 0);
        jsonw_text(json, "name", step->name);
        jsonw_text(json, "nodes", step->nodes);
        jsonw_number(json, "node_count", step->node_count);
        jsonw_number(json, "tasks", step->ntasks);
        jsonw_number(json, "cpus", step->cpus);
        jsonw_set(json, "start_time", step->started_us > 0, false, step->started_us / 1000000);
        jsonw_set(json, "time_limit", step->has_time_limit_s, !step->has_time_limit_s,
                  step->time_limit_s / 60);
        jsonw_text(json, "tres", step->tres);
        jsonw_bool(json, "suspended", step->suspended);
        jsonw_object_end(json);
    }
    jsonw_list_end(json);
    answer_send(answer);
}

void get_steps(struct exchange *x)
{
    ListStepsRequest *request = ARENA_NEW(&x->arena, ListStepsRequest);
    uint64_t id;
    struct err err = { 0 };

    list_steps_request__init(request);
    if (x->args[0]) {
        if (!str_to_u64(x->args[0], UINT32_MAX, &id)) {
            err_set(&err, ERR_INVALID, "'%.64s' is not the number of a job", x->args[0]);
            answer_error(x, &err, NULL);
            return;
        }
        request->job_ids = ARENA_ARRAY(&x->arena, uint32_t, 1);
        request->job_ids[0] = (uint32_t)id;
        request->n_job_ids = 1;
    }
    start(x, "ListSteps", &request->base, &list_steps_reply__descriptor, false, on_steps);
}

/* ---- states of jobs ---- */

static void on_states(struct exchange *x, const ProtobufCMessage *message)
{
    const ListJobsReply *reply = (const void *)message;
    struct answer *answer = x->data;
    struct str id = { 0 };

    for (size_t i = 0; i < reply->n_jobs; i++) {
        const JobStatus *status = job_status(reply->jobs[i]);
        str_clear(&id);
        job_add_id(&id, reply->jobs[i]);
        jsonw_object(&answer->json, NULL);
        jsonw_text(&answer->json, "job_id", str_text(&id));
        jsonw_list(&answer->json, "state");
        jsonw_text(&answer->json, NULL, name_of(&job_state_names, status->state));
        for (size_t k = 0; k < job_flag_names.count; k++) {
            if (status->flags & job_flag_names.rows[k].value)
                jsonw_text(&answer->json, NULL, job_flag_names.rows[k].name);
        }
        jsonw_list_end(&answer->json);
        jsonw_object_end(&answer->json);
    }
    str_done(&id);
    answer_flush(answer);
}

static void states_gone(struct exchange *x)
{
    answer_free(x->data);
}

static void on_states_done(struct exchange *x, const ProtobufCMessage *reply, const struct err *err)
{
    struct answer *answer = x->data;

    (void)reply;
    x->on_gone = NULL;
    if (err) {
        answer_free(answer);
        answer_error(x, err, NULL);
        return;
    }
    jsonw_list_end(&answer->json);
    answer_send(answer);
}

void get_jobs_state(struct exchange *x)
{
    ListJobsRequest *request = ARENA_NEW(&x->arena, ListJobsRequest);
    const char *ids = exchange_query(x, "job_id");

    list_jobs_request__init(request);
    request->has_all_states = request->all_states = true;
    request->ids = params_list(x, str_is_empty(ids) ? NULL : ids, &request->n_ids);
    struct answer *answer = answer_new(x);
    jsonw_list(&answer->json, "jobs");
    x->data = answer;
    x->on_gone = states_gone;
    const struct ask_call call = { .method = "ListJobs",
                                   .message = &request->base,
                                   .reply = &list_jobs_reply__descriptor,
                                   .message_came = on_states,
                                   .done = on_states_done };
    ask_start(x, &call);
}

/* ---- licences and reservations ---- */

static void on_licenses(struct exchange *x, const ProtobufCMessage *message, const struct err *err)
{
    const ListLicensesReply *reply = (const void *)message;

    if (err) {
        answer_error(x, err, NULL);
        return;
    }
    struct answer *answer = answer_new(x);
    jsonw_list(&answer->json, "licenses");
    for (size_t i = 0; i < reply->n_licenses; i++)
        license_add_json(reply->licenses[i], &answer->json);
    jsonw_list_end(&answer->json);
    jsonw_set(&answer->json, "last_update", true, false, clock_wall_s());
    answer_send(answer);
}

void list_licenses(struct exchange *x)
{
    ListLicensesRequest *request = ARENA_NEW(&x->arena, ListLicensesRequest);

    list_licenses_request__init(request);
    start(x, "ListLicenses", &request->base, &list_licenses_reply__descriptor, false, on_licenses);
}

static void on_reservations(struct exchange *x, const ProtobufCMessage *message,
                            const struct err *err)
{
    const ListReservationsReply *reply = (const void *)message;
    struct err own = { 0 };

    if (!err && x->args[0] && !reply->n_reservations)
        err_set(&own, ERR_RESERVATION_INVALID, "there is no reservation '%.64s'", x->args[0]);
    if (err || own.code) {
        if (own.code && !x->version)
            own.code = ERR_NOT_FOUND;
        answer_error(x, err ? err : &own, NULL);
        return;
    }
    struct answer *answer = answer_new(x);
    jsonw_list(&answer->json, "reservations");
    for (size_t i = 0; i < reply->n_reservations; i++)
        reservation_add_json(reply->reservations[i], &answer->json);
    jsonw_list_end(&answer->json);
    jsonw_set(&answer->json, "last_update", true, false, clock_wall_s());
    answer_send(answer);
}

void list_reservations(struct exchange *x)
{
    ListReservationsRequest *request = ARENA_NEW(&x->arena, ListReservationsRequest);

    bool unchanged;
    if (params_since(x, EVENTS_RESERVATIONS, &unchanged))
        return;
    if (unchanged) {
        answer_send(answer_new(x));
        return;
    }
    list_reservations_request__init(request);
    if (x->args[0]) {
        request->names = (char **)(uintptr_t)&x->args[0];
        request->n_names = 1;
    }
    start(x, "ListReservations", &request->base, &list_reservations_reply__descriptor, false,
          on_reservations);
}

static void on_done(struct exchange *x, const ProtobufCMessage *message, const struct err *err)
{
    (void)message;
    if (err)
        answer_error(x, err, NULL);
    else
        answer_send(answer_new(x));
}

void delete_reservation(struct exchange *x)
{
    UpdateReservationRequest *request = ARENA_NEW(&x->arena, UpdateReservationRequest);
    ReservationSpec *spec = ARENA_NEW(&x->arena, ReservationSpec);

    update_reservation_request__init(request);
    reservation_spec__init(spec);
    spec->name = (char *)(uintptr_t)x->args[0];
    request->change = spec;
    request->has_remove = request->remove = true;
    start(x, "UpdateReservation", &request->base, &done_reply__descriptor, true, on_done);
}

/* ---- words of scontrol update, from JSON ---- */

struct word_row {
    const char *json, *key;
    bool time; /* seconds since 1970 */
};

static const struct word_row reservation_words[] = {
    { "accounts", "Accounts", false },
    { "burst_buffer", "BurstBuffer", false },
    { "comment", "Comment", false },
    { "core_count", "CoreCnt", false },
    { "duration", "Duration", false },
    { "end_time", "EndTime", true },
    { "features", "Features", false },
    { "flags", "Flags", false },
    { "groups", "Groups", false },
    { "licenses", "Licenses", false },
    { "max_start_delay", "MaxStartDelay", false },
    { "name", "ReservationName", false },
    { "node_count", "NodeCnt", false },
    { "node_list", "Nodes", false },
    { "partition", "PartitionName", false },
    { "start_time", "StartTime", true },
    { "users", "Users", false },
};

static const struct word_row node_words[] = {
    { "comment", "Comment", false },
    { "extra", "Extra", false },
    { "features", "AvailableFeatures", false },
    { "features_act", "ActiveFeatures", false },
    { "gres", "Gres", false },
    { "address", "NodeAddr", false },
    { "hostname", "NodeHostname", false },
    { "state", "State", false },
    { "reason", "Reason", false },
    { "resume_after", "ResumeAfter", false },
    { "topology_str", "Topology", false },
    { "weight", "Weight", false },
};

/* A text, a number, { set, number } or a list of texts, as a word's value; NULL: not given. */
static const char *word_value(struct exchange *x, const json_t *value, struct err *err)
{
    struct str text = { 0 };
    const char *out = NULL;
    json_t *item;
    size_t i;

    if (!json_is_array(value))
        return body_text(x, value, "INFINITE", &out, err) ? out : NULL;
    json_array_foreach((json_t *)(uintptr_t)value, i, item)
    {
        if (json_is_string(item))
            str_addf(&text, "%s%s", text.len ? "," : "", json_string_value(item));
    }
    out = text.len ? arena_strdup(&x->arena, str_text(&text)) : NULL;
    str_done(&text);
    return out;
}

static int read_words(struct exchange *x, const json_t *object, const struct word_row *rows,
                      size_t count, const struct option_set *set, void *target,
                      int (*take_time)(void *target, const char *key, int64_t us), struct err *err)
{
    static char *const no_env[] = { NULL };
    const struct option_ctx ctx = { .now_us = clock_wall_us(), .env = no_env };
    const char *name;
    json_t *value;

    if (!json_is_object(object))
        return err_set(err, ERR_INVALID, "it is not an object");
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        const struct word_row *row = NULL;
        int64_t seconds;
        for (size_t i = 0; i < count && !row; i++)
            row = strcmp(rows[i].json, name) == 0 ? &rows[i] : NULL;
        if (!row)
            return err_set(err, ERR_UNKNOWN_OPTION,
                           "%.64s: there is no such field, or it cannot be "
                           "changed",
                           name);
        const char *text = word_value(x, value, err);
        if (err->code)
            return err_wrap(err, "%s", name);
        if (!text)
            continue;
        if (row->time && str_to_i64(text, 0, INT64_C(1) << 40, &seconds)) {
            take_time(target, row->key, seconds * 1000000);
            continue;
        }
        if (update_read(set, &ctx, target, arena_printf(&x->arena, "%s=%s", row->key, text), err) <
            0)
            return err_wrap(err, "%s", name);
    }
    return 0;
}

static int take_reservation_time(void *target, const char *key, int64_t us)
{
    ReservationSpec *spec = ((struct reservation_update *)target)->spec;

    if (strcmp(key, "StartTime") == 0) {
        spec->has_start_us = true;
        spec->start_us = us;
    } else {
        spec->has_end_us = true;
        spec->end_us = us;
    }
    return 0;
}

struct reserving {
    struct reservation_update update;
    UpdateReservationRequest request;
    UpdateNodeRequest node_request;
    struct node_update node;
    bool create;
};

static void reserving_gone(struct exchange *x)
{
    struct reserving *state = x->data;

    if (state->update.spec)
        reservation_update_done(&state->update);
    if (state->node.spec)
        node_update_done(&state->node);
}

static void on_reserved(struct exchange *x, const ProtobufCMessage *message, const struct err *err)
{
    struct reserving *state = x->data;
    const DoneReply *reply = (const void *)message;

    x->on_gone = NULL;
    if (err) {
        reserving_gone(x);
        answer_error(x, err, NULL);
        return;
    }
    struct answer *answer = answer_new(x);
    const char *name = reply->name ? reply->name : state->update.spec->name;
    jsonw_list(&answer->json, "reservations");
    jsonw_object(&answer->json, NULL);
    jsonw_text(&answer->json, "name", name);
    jsonw_object_end(&answer->json);
    jsonw_list_end(&answer->json);
    reserving_gone(x);
    answer_send(answer);
}

/* Slurm's two routes create one that has no name or is not there, and change it otherwise. */
static void on_looked(struct exchange *x, const ProtobufCMessage *message, const struct err *err)
{
    struct reserving *state = x->data;
    const ListReservationsReply *reply = (const void *)message;
    UpdateReservationRequest *request = &state->request;

    update_reservation_request__init(request);
    request->change = state->update.spec;
    request->clear = (char **)(uintptr_t)state->update.clear.items;
    request->n_clear = state->update.clear.len;
    request->has_create = true;
    request->create = err || !reply->n_reservations;
    start(x, "UpdateReservation", &request->base, &done_reply__descriptor, true, on_reserved);
}

void post_reservation(struct exchange *x)
{
    struct reserving *state = ARENA_NEW(&x->arena, struct reserving);
    ListReservationsRequest *look = ARENA_NEW(&x->arena, ListReservationsRequest);
    struct err err = { 0 };
    json_t *body = body_read(x);

    if (!body)
        return;
    const json_t *list = json_object_get(body, "reservations");
    const json_t *object = list ? json_array_get(list, 0) : body;
    state->update.spec = NEW(ReservationSpec);
    reservation_spec__init(state->update.spec);
    x->data = state;
    x->on_gone = reserving_gone;
    if (json_array_size(list) > 1)
        err_set(&err, ERR_UNSUPPORTED, "one reservation at a time");
    else
        read_words(x, object, reservation_words, ARRAY_LEN(reservation_words), &reservation_updates,
                   &state->update, take_reservation_time, &err);
    json_decref(body);
    if (err.code) {
        x->on_gone = NULL;
        reserving_gone(x);
        answer_error(x, &err, NULL);
        return;
    }
    list_reservations_request__init(look);
    if (state->update.spec->name) {
        look->names = &state->update.spec->name;
        look->n_names = 1;
        start(x, "ListReservations", &look->base, &list_reservations_reply__descriptor, false,
              on_looked);
    } else {
        err_code(&err, ERR_NOT_FOUND);
        on_looked(x, NULL, &err);
    }
}

/* ---- nodes ---- */

static void on_node_updated(struct exchange *x, const ProtobufCMessage *message,
                            const struct err *err)
{
    const char *name = x->args[0] ? x->args[0] : "";

    x->on_gone = NULL;
    reserving_gone(x);
    if (err && x->version && err_http(err->code) != 503 && err->code != ERR_UNAUTHENTICATED) {
        bool denied = err->code == ERR_PERMISSION; /* Slurm says so in other words */
        answer_failed(x, 422, denied ? err_slurm(ERR_NOT_OWNER) : err_slurm(err->code),
                      denied ? err_text(ERR_NOT_OWNER) : err_text(err->code),
                      arena_printf(&x->arena, "Failure to update node %s", name), "_update_node");
        return;
    }
    on_done(x, message, err);
}

void post_node(struct exchange *x)
{
    struct reserving *state = ARENA_NEW(&x->arena, struct reserving);
    struct err err = { 0 };
    json_t *body = body_read(x);

    if (!body)
        return;
    state->node.spec = NEW(NodeSpec);
    node_spec__init(state->node.spec);
    x->data = state;
    x->on_gone = reserving_gone;
    const char *named = word_value(x, json_object_get(body, "name"), &err);
    json_object_del(body, "name");
    json_object_del(body, "reason_uid");
    json_object_del(body, "cpu_bind");
    if (!err.code)
        read_words(x, body, node_words, ARRAY_LEN(node_words), &node_updates, &state->node, NULL,
                   &err);
    json_decref(body);
    const char *names = x->args[0] ? x->args[0] : named;
    if (!err.code && str_is_empty(names))
        err_set(&err, ERR_INVALID_NODE_NAME, "name says no node");
    if (err.code) {
        x->on_gone = NULL;
        reserving_gone(x);
        answer_error(x, &err, NULL);
        return;
    }
    UpdateNodeRequest *request = &state->node_request;
    update_node_request__init(request);
    request->names = (char *)(uintptr_t)names;
    request->state = (char *)(uintptr_t)state->node.state;
    request->reason = (char *)(uintptr_t)state->node.reason;
    request->change = state->node.spec;
    request->has_resume_after_s = state->node.has_resume_after;
    request->resume_after_s = state->node.resume_after_s;
    request->has_clear_features = request->clear_features =
        state->node.features && !state->node.spec->n_features;
    start(x, "UpdateNode", &request->base, &done_reply__descriptor, true, on_node_updated);
}

/* ---- the controller ---- */

void get_reconfigure(struct exchange *x)
{
    start(x, "Reconfigure", empty(x), &done_reply__descriptor, true, on_done);
}

static void on_diag(struct exchange *x, const ProtobufCMessage *message, const struct err *err)
{
    const DiagReply *d = (const void *)message;

    if (err) {
        answer_error(x, err, NULL);
        return;
    }
    struct answer *answer = answer_new(x);
    diag_add_json(d, 0, &answer->json);
    answer_send(answer);
}

void get_diag(struct exchange *x)
{
    DiagRequest *request = ARENA_NEW(&x->arena, DiagRequest);

    diag_request__init(request);
    start(x, "Diag", &request->base, &diag_reply__descriptor, false, on_diag);
}

/* What Slurm has and we do not: said, not ignored. */
void not_possible(struct exchange *x)
{
    struct err err = { 0 };

    err_set(&err, ERR_UNSUPPORTED, "not possible: %s", x->route->help);
    answer_error(x, &err, NULL);
}

void delete_partition(struct exchange *x)
{
    UpdatePartitionRequest *request = ARENA_NEW(&x->arena, UpdatePartitionRequest);
    PartitionSpec *spec = ARENA_NEW(&x->arena, PartitionSpec);

    update_partition_request__init(request);
    partition_spec__init(spec);
    spec->name = (char *)(uintptr_t)x->args[0];
    request->change = spec;
    request->has_remove = request->remove = true;
    start(x, "UpdatePartition", &request->base, &done_reply__descriptor, true, on_done);
}

/* ---- host lists ---- */

void post_hostnames(struct exchange *x)
{
    CLEANUP(hostlist_done) struct hostlist list = { 0 };
    struct err err = { 0 };
    json_t *body = body_read(x);

    if (!body)
        return;
    const char *text = json_string_value(json_object_get(body, "hostlist"));
    if (!text || hostlist_parse(&list, text, &err) < 0 ||
        hostlist_count(&list) > LIMIT_HOSTLIST_HOSTS / 8) {
        if (!err.code)
            err_set(&err, ERR_INVALID, "hostlist is missing, or names too many hosts");
        json_decref(body);
        answer_error(x, &err, NULL);
        return;
    }
    json_decref(body);
    struct answer *answer = answer_new(x);
    jsonw_list(&answer->json, "hostnames");
    hostlist_each (host, &list)
        jsonw_text_len(&answer->json, NULL, host.name, host.len);
    jsonw_list_end(&answer->json);
    answer_send(answer);
}

void post_hostlist(struct exchange *x)
{
    CLEANUP(hostlist_done) struct hostlist list = { 0 };
    CLEANUP(str_done) struct str joined = { 0 };
    CLEANUP(str_done) struct str out = { 0 };
    struct err err = { 0 };
    json_t *body = body_read(x);
    json_t *item;
    size_t i;

    if (!body)
        return;
    const json_t *names = json_object_get(body, "hostnames");
    if (json_is_string(names))
        str_add(&joined, json_string_value(names));
    json_array_foreach((json_t *)(uintptr_t)names, i, item)
    {
        if (json_is_string(item))
            str_addf(&joined, "%s%s", joined.len ? "," : "", json_string_value(item));
    }
    json_decref(body);
    if (hostlist_parse(&list, str_text(&joined), &err) < 0) {
        answer_error(x, &err, NULL);
        return;
    }
    hostlist_format(&list, &out);
    struct answer *answer = answer_new(x);
    jsonw_text(&answer->json, "hostlist", str_text(&out));
    answer_send(answer);
}
