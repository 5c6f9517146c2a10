/* SPDX-License-Identifier: Apache-2.0 */
/*
 * facts.c - shares, the layout of a job's resources, and the configuration, as Slurm's API has them
 */
#include <stdlib.h>
#include <string.h>

#include "proto/acct.pb-c.h"
#include "proto/controller.pb-c.h"
#include "schema/conf_keys.h"
#include "schema/job_view.h"
#include "schema/shares.h"
#include "spurrestd/answer.h"
#include "spurrestd/ask.h"
#include "spurrestd/db.h"
#include "spurrestd/params.h"
#include "spurrestd/routes.h"
#include "sys/clock.h"

/* ---- shares ---- */

static void on_shares(struct exchange *x, const ProtobufCMessage *message, const struct err *err)
{
    const ListSharesReply *reply = (const void *)message;

    if (err) {
        answer_error(x, err, NULL);
        return;
    }
    struct answer *answer = answer_new(x);
    jsonw_object(&answer->json, "shares");
    jsonw_list(&answer->json, "shares");
    for (size_t i = 0; i < reply->n_rows; i++) {
        const ShareRow *row = reply->rows[i];
        if (db_matches(x, "accounts", row->account) &&
            (str_is_empty(row->user) || db_matches(x, "users", row->user)))
            share_add_json(reply, row, (uint32_t)(i + 1), &answer->json);
    }
    jsonw_list_end(&answer->json);
    jsonw_number(&answer->json, "total_shares", (int64_t)shares_total(reply));
    jsonw_object_end(&answer->json);
    answer_send(answer);
}

void get_shares(struct exchange *x)
{
    ListSharesRequest *request = ARENA_NEW(&x->arena, ListSharesRequest);

    list_shares_request__init(request);
    const struct ask_call call = { .method = "/spur.Shares/List",
                                   .message = &request->base,
                                   .reply = &list_shares_reply__descriptor,
                                   .done = on_shares };
    ask_start(x, &call);
}

/* ---- where a job's resources are ---- */

static void add_node(struct jsonw *json, const NodeAlloc *node)
{
    jsonw_object(json, NULL);
    jsonw_text(json, "node", node->node);
    jsonw_text(json, "core_bitmap", node->cpu_ids);
    jsonw_number(json, "sockets_per_node", 1);
    jsonw_number(json, "cores_per_socket", node->cpus);
    jsonw_number(json, "mem_alloc", (int64_t)node->mem_mb);
    jsonw_list(json, "gres");
    for (size_t i = 0; i < node->n_gres; i++) {
        jsonw_object(json, NULL);
        jsonw_text(json, "name", node->gres[i]->name);
        jsonw_text(json, "type", node->gres[i]->type);
        jsonw_number(json, "count", (int64_t)node->gres[i]->count);
        jsonw_text(json, "index", node->gres[i]->index);
        jsonw_object_end(json);
    }
    jsonw_list_end(json);
    jsonw_object_end(json);
}

static void on_job(struct exchange *x, const ProtobufCMessage *message, const struct err *err)
{
    const GetJobReply *reply = (const void *)message;

    if (err) {
        answer_error(x, err, NULL);
        return;
    }
    struct answer *answer = answer_new(x);
    jsonw_list(&answer->json, "nodes");
    for (size_t i = 0; i < reply->n_jobs; i++) {
        const Allocation *given = job_status(reply->jobs[i])->allocation;
        for (size_t k = 0; given && k < given->n_nodes; k++) {
            if (!given->nodes[k]->left)
                add_node(&answer->json, given->nodes[k]);
        }
    }
    jsonw_list_end(&answer->json);
    answer_send(answer);
}

void get_resources(struct exchange *x)
{
    GetJobRequest *request = ARENA_NEW(&x->arena, GetJobRequest);

    if (params_bad_job(x))
        return;
    get_job_request__init(request);
    request->id = (char *)(uintptr_t)x->args[0];
    const struct ask_call call = { .method = "GetJob",
                                   .message = &request->base,
                                   .reply = &get_job_reply__descriptor,
                                   .done = on_job };
    ask_start(x, &call);
}

/* ---- the configuration ---- */

/* A setting that slurm.conf has too, under the name that it has there. */
static void add_setting(struct jsonw *json, const struct conf_key *key,
                        const ProtobufCFieldDescriptor *field, const ProtobufCMessage *message)
{
    const char *at = (const char *)message;
    const void *place = at + field->offset, *quantifier = at + field->quantifier_offset;
    char name[64];

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(key->slurm, ","), key->slurm);
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        if (field->type != PROTOBUF_C_TYPE_STRING)
            return;
        jsonw_list(json, name);
        for (size_t i = 0; i < *(const size_t *)quantifier; i++)
            jsonw_text(json, NULL, (*(char *const *const *)place)[i]);
        jsonw_list_end(json);
    } else if (field->type == PROTOBUF_C_TYPE_STRING) {
        jsonw_text(json, name, *(const char *const *)place);
    } else if (!*(const protobuf_c_boolean *)quantifier) {
        return;
    } else if (field->type == PROTOBUF_C_TYPE_BOOL) {
        jsonw_bool(json, name, *(const protobuf_c_boolean *)place);
    } else if (field->type == PROTOBUF_C_TYPE_UINT32) {
        jsonw_number(json, name, *(const uint32_t *)place);
    } else if (field->type == PROTOBUF_C_TYPE_INT64 || field->type == PROTOBUF_C_TYPE_UINT64) {
        int64_t number = *(const int64_t *)place;
        jsonw_number(json, name, key->type == CONF_MINUTES ? number / 60 : number);
    }
}

static void add_settings(struct jsonw *json, const GetConfigReply *reply)
{
    for (size_t i = 0; i < conf_section_count; i++) {
        const struct conf_section *section = &conf_sections[i];
        for (const struct conf_key *key = section->keys; !section->list && key->name; key++) {
            const ProtobufCMessage *message =
                key->flags & CONF_LOCAL ? (const void *)reply->local : (const void *)reply->config;
            if (message && key->slurm && !(key->flags & CONF_SECRET))
                add_setting(json, key, conf_key_field(section, key), message);
        }
    }
}

static void on_conf(struct exchange *x, const ProtobufCMessage *message, const struct err *err)
{
    if (err) {
        answer_error(x, err, NULL);
        return;
    }
    struct answer *answer = answer_new(x);
    jsonw_object(&answer->json, "slurm_conf");
    add_settings(&answer->json, (const void *)message);
    jsonw_object_end(&answer->json);
    answer_send(answer);
}

void get_conf(struct exchange *x)
{
    GetConfigRequest *request = ARENA_NEW(&x->arena, GetConfigRequest);

    get_config_request__init(request);
    const struct ask_call call = { .method = "GetConfig",
                                   .message = &request->base,
                                   .reply = &get_config_reply__descriptor,
                                   .done = on_conf };
    ask_start(x, &call);
}
