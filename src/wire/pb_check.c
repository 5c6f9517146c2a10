/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pb_check.c - would these bytes unpack? Walked, not unpacked: nothing is allocated or copied
 */
#include "wire/pb.h"

enum { VARINT_BYTES = 10, DEEPEST = 16 };

struct walk {
    const uint8_t *at, *end;
};

static bool read_varint(struct walk *walk, uint64_t *out)
{
    *out = 0;
    for (unsigned i = 0; walk->at < walk->end && i < VARINT_BYTES; i++) {
        uint8_t byte = *walk->at++;
        if (7 * i < 64)
            *out |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

static ProtobufCWireType wire_type_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return PROTOBUF_C_WIRE_TYPE_32BIT;
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return PROTOBUF_C_WIRE_TYPE_64BIT;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
    default:
        return PROTOBUF_C_WIRE_TYPE_VARINT;
    }
}

/* The field's bytes are in *value, also those of a number. */
static bool read_value(struct walk *walk, unsigned wire, struct walk *value)
{
    uint64_t number, len = wire == PROTOBUF_C_WIRE_TYPE_64BIT ? 8 : 4;

    value->at = walk->at;
    if (wire == PROTOBUF_C_WIRE_TYPE_VARINT) {
        bool whole = read_varint(walk, &number);
        value->end = walk->at;
        return whole;
    }
    if (wire == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED) {
        if (!read_varint(walk, &len))
            return false;
        value->at = walk->at;
    } else if (wire != PROTOBUF_C_WIRE_TYPE_64BIT && wire != PROTOBUF_C_WIRE_TYPE_32BIT) {
        return false;
    }
    if (len > (uint64_t)(walk->end - walk->at))
        return false;
    value->end = walk->at = walk->at + len;
    return true;
}

/* A list of numbers in one field. */
static bool is_packed_list(struct walk value, ProtobufCWireType wire)
{
    uint64_t number;
    size_t len = (size_t)(value.end - value.at);

    if (wire == PROTOBUF_C_WIRE_TYPE_32BIT || wire == PROTOBUF_C_WIRE_TYPE_64BIT)
        return len % (wire == PROTOBUF_C_WIRE_TYPE_64BIT ? 8 : 4) == 0;
    while (value.at < value.end) {
        if (!read_varint(&value, &number))
            return false;
    }
    return true;
}

static bool would_unpack(const ProtobufCMessageDescriptor *type, struct walk walk, unsigned depth);

static bool is_value_of(const ProtobufCFieldDescriptor *field, unsigned wire, struct walk value,
                        unsigned depth)
{
    ProtobufCWireType wanted = wire_type_of(field->type);

    if (wire != wanted)
        return field->label == PROTOBUF_C_LABEL_REPEATED &&
               wire == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED && is_packed_list(value, wanted);
    return field->type != PROTOBUF_C_TYPE_MESSAGE || would_unpack(field->descriptor, value, depth);
}

static bool would_unpack(const ProtobufCMessageDescriptor *type, struct walk walk, unsigned depth)
{
    uint64_t tag;
    struct walk value;

    if (depth > DEEPEST)
        return false;
    while (walk.at < walk.end) {
        if (!read_varint(&walk, &tag) || tag >> 3 == 0 || tag >> 3 > UINT32_MAX >> 3 ||
            !read_value(&walk, tag & 7, &value))
            return false;
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(type, (unsigned)(tag >> 3));
        if (field && !is_value_of(field, tag & 7, value, depth + 1))
            return false;
    }
    return true;
}

bool pb_would_unpack(const ProtobufCMessageDescriptor *type, const void *bytes, size_t len)
{
    return len == 0 || would_unpack(type, (struct walk){ bytes, (const uint8_t *)bytes + len }, 0);
}
