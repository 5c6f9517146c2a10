// SPDX-License-Identifier: Apache-2.0
/*
 * journal_json.c - a message as one line of JSON, by its description
 *
 * Keys are the names of the .proto file; what is absent is left out; words of an enumeration lose what
 * they all begin with: COMPLETED, STARTED.
 */
#include "cli/journal.h"

#include <string.h>

#include "schema/jsonw.h"

static const void *member_at(const ProtobufCMessage *message, unsigned offset)
{
    return (const char *)message + offset;
}

static size_t size_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return sizeof(int64_t);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    default:
        return sizeof(int32_t);
    }
}

static void add_enum(struct jsonw *json, const char *key, const ProtobufCEnumDescriptor *words,
                     int value)
{
    const ProtobufCEnumValue *word = protobuf_c_enum_descriptor_get_value(words, value);
    const char *rest = word ? strchr(word->name, '_') : NULL;

    if (rest)
        jsonw_text(json, key, rest + 1);
    else
        jsonw_number(json, key, value);
}

static void add_message(struct jsonw *json, const char *key, const ProtobufCMessage *message);

static void add_value(struct jsonw *json, const char *key, const ProtobufCFieldDescriptor *field,
                      const void *at)
{
    const ProtobufCBinaryData *bytes = at;

    switch (field->type) {
    case PROTOBUF_C_TYPE_MESSAGE:
        add_message(json, key, *(ProtobufCMessage *const *)at);
        break;
    case PROTOBUF_C_TYPE_STRING:
        jsonw_text(json, key, *(char *const *)at);
        break;
    case PROTOBUF_C_TYPE_BYTES:
        jsonw_text_len(json, key, (const char *)bytes->data, bytes->len);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        jsonw_bool(json, key, *(const protobuf_c_boolean *)at);
        break;
    case PROTOBUF_C_TYPE_ENUM:
        add_enum(json, key, field->descriptor, *(const int *)at);
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        jsonw_number(json, key, *(const uint32_t *)at);
        break;
    default:
        jsonw_number(json, key,
                     size_of(field->type) == sizeof(int64_t) ? *(const int64_t *)at
                                                             : *(const int32_t *)at);
    }
}

static bool is_present(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    if (field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE)
        return *(void *const *)member_at(message, field->offset) != NULL;
    return *(const protobuf_c_boolean *)member_at(message, field->quantifier_offset);
}

static void add_list(struct jsonw *json, const ProtobufCMessage *message,
                     const ProtobufCFieldDescriptor *field)
{
    size_t count = *(const size_t *)member_at(message, field->quantifier_offset);
    const char *items = *(char *const *)member_at(message, field->offset);

    if (!count)
        return;
    jsonw_list(json, field->name);
    for (size_t i = 0; i < count; i++)
        add_value(json, NULL, field, items + i * size_of(field->type));
    jsonw_list_end(json);
}

static void add_message(struct jsonw *json, const char *key, const ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;

    jsonw_object(json, key);
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        if (field->label == PROTOBUF_C_LABEL_REPEATED)
            add_list(json, message, field);
        else if (is_present(message, field))
            add_value(json, field->name, field, member_at(message, field->offset));
    }
    jsonw_object_end(json);
}

void journal_add_json(struct str *out, const ProtobufCMessage *message)
{
    struct jsonw json;
    size_t from = out->len, to = out->len;

    jsonw_init(&json, out);
    add_message(&json, NULL, message);
    /* Texts hold no line ends of their own, so those that are there are the form's. */
    for (size_t at = from; at < out->len; at++) {
        if (out->data[at] != '\n') {
            out->data[to++] = out->data[at];
            continue;
        }
        while (at + 1 < out->len && out->data[at + 1] == ' ')
            at++;
    }
    str_truncate(out, to);
    str_add_char(out, '\n');
}
