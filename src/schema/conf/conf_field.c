/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_field.c - values into and out of protobuf fields, by their descriptors
 *
 * A repeated field is filled element by element; its array grows at powers of two, so that the
 * capacity follows from the count. Several texts into a field that is one string are joined by
 * commas, as Slurm keeps most lists.
 */
#include <assert.h>
#include <string.h>

#include "schema/conf/conf_priv.h"

static void *member(const ProtobufCMessage *message, size_t offset)
{
    return (char *)(uintptr_t)message + offset;
}

static size_t *quantity(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    return member(message, field->quantifier_offset);
}

static size_t element_size(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_INT32:
        return sizeof(uint32_t);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_INT64:
        return sizeof(uint64_t);
    case PROTOBUF_C_TYPE_ENUM:
        return sizeof(int);
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    default:
        return sizeof(void *);
    }
}

/* Where the value goes: the member itself, or one more element of it. */
static void *slot(struct arena *arena, ProtobufCMessage *message,
                  const ProtobufCFieldDescriptor *field)
{
    size_t size = element_size(field), *count;
    char **array;

    if (field->label != PROTOBUF_C_LABEL_REPEATED) {
        if (field->type != PROTOBUF_C_TYPE_STRING)
            *(protobuf_c_boolean *)member(message, field->quantifier_offset) = 1;
        return member(message, field->offset);
    }
    count = quantity(message, field);
    array = member(message, field->offset);
    if ((*count & (*count - 1)) == 0) {
        char *grown = arena_alloc(arena, size * (*count ? *count * 2 : 1));

        if (*count)
            memcpy(grown, *array, size * *count);
        *array = grown;
    }
    return *array + size * (*count)++;
}

void conf_field_clear(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        *quantity(message, field) = 0;
        *(void **)member(message, field->offset) = NULL;
    } else if (field->type == PROTOBUF_C_TYPE_STRING) {
        *(char **)member(message, field->offset) = NULL;
    } else {
        *(protobuf_c_boolean *)member(message, field->quantifier_offset) = 0;
    }
}

void conf_field_put_num(struct arena *arena, ProtobufCMessage *message,
                        const ProtobufCFieldDescriptor *field, int64_t num)
{
    void *to = slot(arena, message, field);

    switch (field->type) {
    case PROTOBUF_C_TYPE_UINT32:
        *(uint32_t *)to = (uint32_t)num;
        break;
    case PROTOBUF_C_TYPE_UINT64:
        *(uint64_t *)to = (uint64_t)num;
        break;
    case PROTOBUF_C_TYPE_INT64:
        *(int64_t *)to = num;
        break;
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)to = num != 0;
        break;
    default:
        assert(!"a number for a field of that type");
    }
}

/* The enumerator PARTITION_UP is called UP in files. */
static const ProtobufCEnumValue *enum_word(const ProtobufCFieldDescriptor *field, const char *word)
{
    const ProtobufCEnumDescriptor *names = field->descriptor;

    for (unsigned i = 0; i < names->n_values; i++) {
        const char *tail = strrchr(names->values[i].name, '_');

        if (tail && strcmp(tail + 1, word) == 0)
            return &names->values[i];
    }
    return NULL;
}

void conf_field_put_text(struct arena *arena, ProtobufCMessage *message,
                         const ProtobufCFieldDescriptor *field, const char *text)
{
    if (field->type == PROTOBUF_C_TYPE_ENUM) {
        const ProtobufCEnumValue *value = enum_word(field, text);

        assert(value);
        *(int *)slot(arena, message, field) = value->value;
        return;
    }
    assert(field->type == PROTOBUF_C_TYPE_STRING);
    if (field->label != PROTOBUF_C_LABEL_REPEATED) {
        const char *before = *(char **)member(message, field->offset);

        if (before && *before)
            text = arena_printf(arena, "%s,%s", before, text);
    }
    *(char **)slot(arena, message, field) = arena_strdup(arena, text);
}

void conf_field_put_message(struct arena *arena, ProtobufCMessage *message,
                            const ProtobufCFieldDescriptor *field, ProtobufCMessage *value)
{
    assert(field->type == PROTOBUF_C_TYPE_MESSAGE && field->label == PROTOBUF_C_LABEL_REPEATED);
    *(ProtobufCMessage **)slot(arena, message, field) = value;
}

size_t conf_field_count(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return *quantity(message, field);
    if (field->type == PROTOBUF_C_TYPE_STRING)
        return *(char **)member(message, field->offset) != NULL;
    return *(protobuf_c_boolean *)member(message, field->quantifier_offset) != 0;
}

static const void *element(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                           size_t index)
{
    const char *at = member(message, field->offset);

    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        at = *(char *const *)(const void *)at + element_size(field) * index;
    return at;
}

int64_t conf_field_num(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                       size_t index)
{
    const void *from = element(message, field, index);

    switch (field->type) {
    case PROTOBUF_C_TYPE_UINT32:
        return *(const uint32_t *)from;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_INT64:
        return *(const int64_t *)from;
    case PROTOBUF_C_TYPE_BOOL:
        return *(const protobuf_c_boolean *)from;
    default:
        return 0;
    }
}

const char *conf_field_text(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                            size_t index)
{
    if (field->type == PROTOBUF_C_TYPE_ENUM) {
        const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(
            field->descriptor, *(const int *)element(message, field, index));

        return value ? strrchr(value->name, '_') + 1 : "?";
    }
    return *(const char *const *)element(message, field, index);
}

const ProtobufCMessage *conf_field_message(const ProtobufCMessage *message,
                                           const ProtobufCFieldDescriptor *field, size_t index)
{
    return *(const ProtobufCMessage *const *)element(message, field, index);
}
