// SPDX-License-Identifier: Apache-2.0
/*
 * message.c - reads and sets one field of a message through its descriptor
 */
#include "wire/message.h"

#include <stdlib.h>
#include <string.h>

const ProtobufCFieldDescriptor *msg_field_at(const ProtobufCMessageDescriptor *type, size_t offset)
{
    for (unsigned i = 0; i < type->n_fields; i++) {
        if (type->fields[i].offset == offset)
            return &type->fields[i];
    }
    return NULL;
}

static void *place(const void *message, unsigned offset)
{
    return (char *)(uintptr_t)message + offset;
}

static bool is_pointer(const ProtobufCFieldDescriptor *field)
{
    return field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE;
}

bool msg_has(const void *message, const ProtobufCFieldDescriptor *field)
{
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return *(size_t *)place(message, field->quantifier_offset) > 0;
    if (is_pointer(field))
        return *(void **)place(message, field->offset) != NULL;
    return *(protobuf_c_boolean *)place(message, field->quantifier_offset);
}

int64_t msg_number(const void *message, const ProtobufCFieldDescriptor *field)
{
    const void *at = place(message, field->offset);

    if (field->label == PROTOBUF_C_LABEL_REPEATED || is_pointer(field) || !msg_has(message, field))
        return 0;
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_UINT64:
        return *(const int64_t *)at;
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
        return *(const int32_t *)at;
    case PROTOBUF_C_TYPE_UINT32:
        return *(const uint32_t *)at;
    case PROTOBUF_C_TYPE_ENUM:
        return *(const int *)at;
    case PROTOBUF_C_TYPE_BOOL:
        return *(const protobuf_c_boolean *)at;
    default:
        return 0;
    }
}

const char *msg_text(const void *message, const ProtobufCFieldDescriptor *field)
{
    if (field->type != PROTOBUF_C_TYPE_STRING || field->label == PROTOBUF_C_LABEL_REPEATED)
        return NULL;
    return *(char **)place(message, field->offset);
}

void msg_set_number(void *message, const ProtobufCFieldDescriptor *field, int64_t value)
{
    void *at = place(message, field->offset);

    switch (field->type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_UINT64:
        *(int64_t *)at = value;
        break;
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_UINT32:
        *(uint32_t *)at = (uint32_t)value;
        break;
    case PROTOBUF_C_TYPE_ENUM:
        *(int *)at = (int)value;
        break;
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)at = value != 0;
        break;
    default:
        return;
    }
    *(protobuf_c_boolean *)place(message, field->quantifier_offset) = true;
}

void msg_set_text(void *message, const ProtobufCFieldDescriptor *field, const char *text)
{
    char **at = place(message, field->offset);
    char *copy = mem_strdup(text);

    free(*at);
    *at = copy;
}

void msg_clear(void *message, const ProtobufCFieldDescriptor *field)
{
    if (field->type == PROTOBUF_C_TYPE_STRING)
        msg_set_text(message, field, NULL);
    else if (field->type != PROTOBUF_C_TYPE_MESSAGE) {
        msg_set_number(message, field, 0);
        *(protobuf_c_boolean *)place(message, field->quantifier_offset) = false;
    }
}
