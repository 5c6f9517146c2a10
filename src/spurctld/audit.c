/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit.c - who changed what: a line of the log for each administrative change, and for each change of another user's job
 *
 *     audit.UpdateNode uid=0 user=root how=unix from=uid:0 asked="names=n1 state=DRAIN reason=hot" result=done
 *
 * The call is noted when it comes; the line is written with its answer, also when it was refused.
 */
#include <string.h>

#include "core/query.h"
#include "core/state.h"
#include "spurctld/serve.h"
#include "sys/log.h"

enum { ASKED_BYTES = 1024, LIST_MOST = 16, DEPTH_MOST = 4 };

/* ---- a request as text: its fields that are set ---- */

static void add_message(struct str *out, const ProtobufCMessage *message, unsigned depth);

static void add_value(struct str *out, const ProtobufCFieldDescriptor *field, const void *at,
                      unsigned depth)
{
    const ProtobufCEnumValue *word;

    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        str_add(out, *(char *const *)at);
        break;
    case PROTOBUF_C_TYPE_BYTES:
        str_addf(out, "(%zu bytes)", ((const ProtobufCBinaryData *)at)->len);
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        str_add_char(out, '{');
        add_message(out, *(const ProtobufCMessage *const *)at, depth + 1);
        str_add_char(out, '}');
        break;
    case PROTOBUF_C_TYPE_ENUM:
        word = protobuf_c_enum_descriptor_get_value(field->descriptor, *(const int *)at);
        str_addf(out, "%s", word ? word->name : "?");
        break;
    case PROTOBUF_C_TYPE_BOOL:
        str_add(out, *(const protobuf_c_boolean *)at ? "yes" : "no");
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        str_addf(out, "%lld", (long long)*(const int64_t *)at);
        break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        str_addf(out, "%llu", (unsigned long long)*(const uint64_t *)at);
        break;
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
        str_add(out, "?"); /* no request has one */
        break;
    default:
        str_addf(out, "%ld",
                 field->type == PROTOBUF_C_TYPE_UINT32 || field->type == PROTOBUF_C_TYPE_FIXED32
                     ? (long)*(const uint32_t *)at
                     : (long)*(const int32_t *)at);
    }
}

static size_t size_of(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    default:
        return 4; /* numbers, words and yes or no */
    }
}

static size_t count_of(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    const char *base = (const char *)message;

    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return *(const size_t *)(const void *)(base + field->quantifier_offset);
    if (field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE)
        return *(void *const *)(const void *)(base + field->offset) != NULL;
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        return 0;
    return *(const protobuf_c_boolean *)(const void *)(base + field->quantifier_offset) != 0;
}

static void add_field(struct str *out, const ProtobufCMessage *message,
                      const ProtobufCFieldDescriptor *field, unsigned depth)
{
    const char *base = (const char *)message + field->offset;
    size_t count = count_of(message, field);

    if (!count || out->len > ASKED_BYTES)
        return;
    str_addf(out, "%s%s=", out->len && out->data[out->len - 1] != '{' ? " " : "", field->name);
    if (field->label != PROTOBUF_C_LABEL_REPEATED) {
        add_value(out, field, base, depth);
        return;
    }
    const char *items = *(char *const *)(const void *)base;
    for (size_t i = 0; i < MIN(count, (size_t)LIST_MOST); i++) {
        str_add(out, i ? "," : "");
        add_value(out, field, items + i * size_of(field), depth);
    }
    if (count > LIST_MOST)
        str_addf(out, ",… (%zu)", count);
}

static void add_message(struct str *out, const ProtobufCMessage *message, unsigned depth)
{
    for (unsigned i = 0; depth < DEPTH_MOST && i < message->descriptor->n_fields; i++)
        add_field(out, message, &message->descriptor->fields[i], depth);
}

/* ---- whose jobs ---- */

static bool is_others(const struct server *server, const char *id, uint32_t uid)
{
    struct job_ref ref;
    struct err err = { 0 };

    if (!id || job_ref_parse(id, &ref, &err) < 0)
        return true; /* a range or a word for many: more than we look into */
    const struct job *job = state_job(ctl_state(server->ctl), ref.id);
    return job && job->owner->uid != uid;
}

/* Whether a request about jobs may concern jobs of others than the asker. */
static bool concerns_others(const struct server *server, const ProtobufCMessage *request,
                            uint32_t uid)
{
    const ProtobufCMessageDescriptor *type = request->descriptor;
    const ProtobufCFieldDescriptor *ids =
        protobuf_c_message_descriptor_get_field_by_name(type, "ids");
    const ProtobufCFieldDescriptor *id =
        protobuf_c_message_descriptor_get_field_by_name(type, "id");
    const ProtobufCFieldDescriptor *number =
        protobuf_c_message_descriptor_get_field_by_name(type, "job_id");
    const ProtobufCFieldDescriptor *me =
        protobuf_c_message_descriptor_get_field_by_name(type, "me");
    const char *base = (const char *)request;

    if (me && count_of(request, me))
        return false;
    if (ids && ids->label == PROTOBUF_C_LABEL_REPEATED && ids->type == PROTOBUF_C_TYPE_STRING &&
        count_of(request, ids)) {
        char *const *items = *(char **const *)(const void *)(base + ids->offset);
        for (size_t i = 0; i < count_of(request, ids); i++) {
            if (is_others(server, items[i], uid))
                return true;
        }
        return false;
    }
    if (id && id->type == PROTOBUF_C_TYPE_STRING && count_of(request, id))
        return is_others(server, *(char *const *)(const void *)(base + id->offset), uid);
    if (number && number->type == PROTOBUF_C_TYPE_UINT32) {
        const struct job *job = state_job(ctl_state(server->ctl),
                                          *(const uint32_t *)(const void *)(base + number->offset));
        return job && job->owner->uid != uid;
    }
    return true; /* by a filter */
}

/* ---- the line ---- */

void server_audit(struct server *server, struct rpc_call *call, const ProtobufCMessage *request,
                  bool about_jobs)
{
    const struct rpc_identity *who = rpc_call_identity(call);
    CLEANUP(str_done) struct str asked = { 0 };

    if (about_jobs && who->has_uid && !concerns_others(server, request, who->uid))
        return;
    add_message(&asked, request, 0);
    rpc_call_set_note(call, arena_strdup(rpc_call_arena(call), str_text(&asked)));
}

void server_audit_answered(void *ctx, struct rpc_call *call, const struct err *err)
{
    const struct rpc_identity *who = rpc_call_identity(call);
    const char *slash = strrchr(rpc_call_method(call)->path, '/');
    CLEANUP(freep) char *event = mem_printf("audit.%s", slash + 1);
    struct ctl_who *person = server_identity(ctx, call);

    if (who->has_uid)
        log_info(event, "uid=%u user=%s how=%s by=%s from=%s asked=%s result=%s", who->uid,
                 person && person->user ? person->user : "", rpc_how_name(who->how), who->by,
                 rpc_call_peer(call), rpc_call_note(call), err ? err->text : "done");
    else
        log_info(event, "node=%s how=%s from=%s asked=%s result=%s", who->node,
                 rpc_how_name(who->how), rpc_call_peer(call), rpc_call_note(call),
                 err ? err->text : "done");
}
