/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pb.c - messages in memory: from an arena, copied, looked into while packed
 */
#include "wire/pb.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/vec.h"

static void *from_arena(void *arena, size_t size)
{
    return arena_alloc(arena, size);
}

static void keep(void *arena, void *pointer)
{
    (void)arena;
    (void)pointer;
}

ProtobufCAllocator pb_arena(struct arena *arena)
{
    return (ProtobufCAllocator){ .alloc = from_arena, .free = keep, .allocator_data = arena };
}

struct span pb_pack(const void *message, struct arena *arena)
{
    size_t len = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = arena_alloc(arena, len + 1);

    protobuf_c_message_pack(message, bytes);
    return (struct span){ (const char *)bytes, len };
}

void pb_free(void *message)
{
    if (message)
        protobuf_c_message_free_unpacked(message, NULL);
}

/* Calls `each` for every message directly inside. */
void pb_each_inside(const ProtobufCMessage *message,
                    void (*each)(const ProtobufCMessage *inner, void *ctx), void *ctx)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;

    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        if (field->type != PROTOBUF_C_TYPE_MESSAGE || !pb_has(message, field))
            continue;
        const char *at = (const char *)message + field->offset;
        if (field->label != PROTOBUF_C_LABEL_REPEATED) {
            each(*(ProtobufCMessage *const *)(const void *)at, ctx);
            continue;
        }
        size_t count =
            *(const size_t *)(const void *)((const char *)message + field->quantifier_offset);
        for (size_t k = 0; k < count; k++)
            each((*(ProtobufCMessage *const *const *)(const void *)at)[k], ctx);
    }
}

static void see_unknown(const ProtobufCMessage *message, void *found)
{
    if (message->n_unknown_fields)
        *(bool *)found = true;
    else
        pb_each_inside(message, see_unknown, found);
}

bool pb_has_unknown(const void *message)
{
    bool found = false;

    see_unknown(message, &found);
    return found;
}

/* Counts of unknown fields, taken off while a message is packed and put back in the same order. */
struct hidden {
    VEC(unsigned) counts;
    size_t next;
};

static void hide(const ProtobufCMessage *message, void *ctx)
{
    struct hidden *hidden = ctx;

    vec_push(&hidden->counts, message->n_unknown_fields);
    ((ProtobufCMessage *)(uintptr_t)message)->n_unknown_fields = 0;
    pb_each_inside(message, hide, hidden);
}

static void show(const ProtobufCMessage *message, void *ctx)
{
    struct hidden *hidden = ctx;

    ((ProtobufCMessage *)(uintptr_t)message)->n_unknown_fields =
        hidden->counts.items[hidden->next++];
    pb_each_inside(message, show, hidden);
}

/* The packed message without what we do not know; what is not known may not even be well formed. */
static void pack_known(const ProtobufCMessage *message, struct str *out)
{
    struct hidden hidden = { 0 };
    bool unknown = pb_has_unknown(message);

    if (unknown)
        hide(message, &hidden);
    size_t len = protobuf_c_message_get_packed_size(message);
    str_reserve(out, len + 1);
    protobuf_c_message_pack(message, (uint8_t *)out->data + out->len);
    out->len += len;
    if (unknown)
        show(message, &hidden);
    vec_done(&hidden.counts);
}

void *pb_copy_hash(const void *message, uint64_t *hash)
{
    const ProtobufCMessage *from = message;
    struct str bytes = { 0 };

    pack_known(from, &bytes);
    void *copy = protobuf_c_message_unpack(from->descriptor, NULL, bytes.len,
                                           (const uint8_t *)str_text(&bytes));
    if (hash)
        *hash = hash_bytes(str_text(&bytes), bytes.len, 0);
    str_done(&bytes);
    return copy;
}

void *pb_copy(const void *message)
{
    return pb_copy_hash(message, NULL);
}

static bool read_varint(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
    uint64_t value = 0;

    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        uint8_t byte = *(*at)++;
        value |= (uint64_t)(byte & 127) << shift;
        if (!(byte & 128)) {
            *out = value;
            return true;
        }
    }
    return false;
}

/* Moves over one field's value; for a length-delimited one `out` is its bytes. */
static bool skip_value(const uint8_t **at, const uint8_t *end, unsigned wire, struct span *out)
{
    uint64_t value;
    size_t size = wire == 1 ? 8 : 4;

    switch (wire) {
    case 0:
        return read_varint(at, end, &value);
    case 2:
        if (!read_varint(at, end, &value) || value > (uint64_t)(end - *at))
            return false;
        *out = (struct span){ (const char *)*at, (size_t)value };
        *at += value;
        return true;
    case 1:
    case 5:
        if ((size_t)(end - *at) < size)
            return false;
        *at += size;
        return true;
    default:
        return false;
    }
}

bool pb_field(const uint8_t *bytes, size_t len, unsigned field, struct span *out)
{
    const uint8_t *at = bytes, *end = bytes + len;
    struct span value = { 0 };
    uint64_t tag;
    bool found = false;

    while (at < end) {
        if (!read_varint(&at, end, &tag) || !skip_value(&at, end, tag & 7, &value))
            return false;
        /* Packers write fields in order of number, so nothing follows a higher one. */
        if (tag >> 3 > field)
            break;
        if (tag >> 3 == field && (tag & 7) == 2) {
            *out = value;
            found = true;
        }
    }
    return found;
}

bool pb_number(const uint8_t *bytes, size_t len, unsigned field, uint64_t *out)
{
    const uint8_t *at = bytes, *end = bytes + len;
    struct span ignored;
    uint64_t tag;
    bool found = false;

    while (at < end) {
        if (!read_varint(&at, end, &tag) || tag >> 3 > field)
            break;
        if (tag >> 3 == field && (tag & 7) == 0)
            found = read_varint(&at, end, out);
        else if (!skip_value(&at, end, tag & 7, &ignored))
            return false;
    }
    return found;
}

static void *member(const void *message, unsigned offset)
{
    return (char *)(uintptr_t)message + offset;
}

bool pb_has(const void *message, const ProtobufCFieldDescriptor *field)
{
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        return *(uint32_t *)member(message, field->quantifier_offset) == field->id;
    switch (field->label) {
    case PROTOBUF_C_LABEL_REPEATED:
        return *(size_t *)member(message, field->quantifier_offset) > 0;
    case PROTOBUF_C_LABEL_REQUIRED:
        return true;
    default:
        if (field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE)
            return *(void **)member(message, field->offset) != NULL;
        return *(protobuf_c_boolean *)member(message, field->quantifier_offset);
    }
}

static void unset(void *message, const ProtobufCFieldDescriptor *field)
{
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
        *(uint32_t *)member(message, field->quantifier_offset) = 0;
        *(void **)member(message, field->offset) = NULL;
    } else if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        *(size_t *)member(message, field->quantifier_offset) = 0;
        *(void **)member(message, field->offset) = NULL;
    } else if (field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE) {
        *(void **)member(message, field->offset) = NULL;
    } else {
        *(protobuf_c_boolean *)member(message, field->quantifier_offset) = 0;
    }
}

bool pb_clear(void *message, const char *name)
{
    const ProtobufCMessage *any = message;
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(any->descriptor, name);

    if (!field)
        return false;
    unset(message, field);
    return true;
}

void *pb_merge(const void *message, const void *change, struct arena *arena)
{
    const ProtobufCMessageDescriptor *type = ((const ProtobufCMessage *)message)->descriptor;
    ProtobufCAllocator allocator = pb_arena(arena);
    struct str bytes = { 0 };

    pack_known(message, &bytes);
    ProtobufCMessage *base =
        protobuf_c_message_unpack(type, &allocator, bytes.len, (const uint8_t *)bytes.data);
    for (unsigned i = 0; i < type->n_fields; i++) {
        if (pb_has(change, &type->fields[i]))
            unset(base, &type->fields[i]);
    }
    /* Packed messages merge by being put one behind the other. */
    str_clear(&bytes);
    pack_known(base, &bytes);
    pack_known(change, &bytes);
    void *merged =
        protobuf_c_message_unpack(type, &allocator, bytes.len, (const uint8_t *)bytes.data);
    str_done(&bytes);
    return merged;
}

/* ---- comparing ---- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static size_t size_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    default:
        return 4;
    }
}

static bool same_value(ProtobufCType type, const void *a, const void *b)
{
    switch (type) {
    case PROTOBUF_C_TYPE_STRING:
        return same_text(*(const char *const *)a, *(const char *const *)b);
    case PROTOBUF_C_TYPE_MESSAGE:
        return pb_same(*(const void *const *)a, *(const void *const *)b);
    case PROTOBUF_C_TYPE_BYTES: {
        const ProtobufCBinaryData *x = a, *y = b;
        return x->len == y->len && (!x->len || memcmp(x->data, y->data, x->len) == 0);
    }
    default:
        return memcmp(a, b, size_of(type)) == 0;
    }
}

static bool same_list(const void *a, const void *b, const ProtobufCFieldDescriptor *field)
{
    size_t count = *(size_t *)member(a, field->quantifier_offset), size = size_of(field->type);
    const char *x = *(const char *const *)member(a, field->offset);
    const char *y = *(const char *const *)member(b, field->offset);
    bool same = count == *(size_t *)member(b, field->quantifier_offset);

    for (size_t i = 0; same && i < count; i++)
        same = same_value(field->type, x + i * size, y + i * size);
    return same;
}

static bool same_field(const ProtobufCFieldDescriptor *field, const void *a, const void *b)
{
    return field->label == PROTOBUF_C_LABEL_REPEATED
               ? same_list(a, b, field)
               : same_value(field->type, member(a, field->offset), member(b, field->offset));
}

bool pb_same(const void *a, const void *b)
{
    const ProtobufCMessageDescriptor *type;

    if (!a || !b)
        return a == b;
    type = ((const ProtobufCMessage *)a)->descriptor;
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        bool has = pb_has(a, field);
        if (has != pb_has(b, field) || (has && !same_field(field, a, b)))
            return false;
    }
    return true;
}

static bool has_pointer(const ProtobufCFieldDescriptor *field)
{
    return field->label == PROTOBUF_C_LABEL_REPEATED || field->type == PROTOBUF_C_TYPE_STRING ||
           field->type == PROTOBUF_C_TYPE_MESSAGE || field->type == PROTOBUF_C_TYPE_BYTES;
}

static int by_offset(const void *a, const void *b)
{
    const ProtobufCFieldDescriptor *const *x = a, *const *y = b;

    return (*x)->offset < (*y)->offset ? -1 : (*x)->offset > (*y)->offset;
}

static void add_span(struct pb_compare *compare, size_t from, size_t to)
{
    if (from < to)
        vec_push(&compare->spans, (struct pb_span){ (uint32_t)from, (uint32_t)(to - from) });
}

void pb_compare_init(struct pb_compare *compare, const ProtobufCMessageDescriptor *type)
{
    size_t at = sizeof(ProtobufCMessage);

    *compare = (struct pb_compare){ 0 };
    for (unsigned i = 0; i < type->n_fields; i++) {
        if (has_pointer(&type->fields[i]))
            vec_push(&compare->fields, &type->fields[i]);
    }
    if (compare->fields.len)
        qsort(compare->fields.items, compare->fields.len, sizeof(*compare->fields.items),
              by_offset);
    vec_each (const ProtobufCFieldDescriptor *, field, &compare->fields) {
        bool list = (*field)->label == PROTOBUF_C_LABEL_REPEATED;
        add_span(compare, at, (*field)->offset);
        at = (*field)->offset + (list ? sizeof(void *) : size_of((*field)->type));
    }
    add_span(compare, at, type->sizeof_message);
}

void pb_compare_done(struct pb_compare *compare)
{
    vec_done(&compare->fields);
    vec_done(&compare->spans);
}

bool pb_compare(const struct pb_compare *compare, const void *a, const void *b)
{
    vec_each (struct pb_span, span, &compare->spans) {
        if (memcmp((const char *)a + span->at, (const char *)b + span->at, span->len) != 0)
            return false;
    }
    vec_each (const ProtobufCFieldDescriptor *, field, &compare->fields) {
        const void *x = *(void *const *)member(a, (*field)->offset);
        if (x != *(void *const *)member(b, (*field)->offset) && !same_field(*field, a, b))
            return false;
    }
    return true;
}

const char *pb_text(const void *message, unsigned field)
{
    const ProtobufCMessageDescriptor *type = ((const ProtobufCMessage *)message)->descriptor;

    return *(const char *const *)member(message, type->fields[field].offset);
}

bool pb_same_names(const void *a, const void *b, unsigned fields)
{
    bool same = true;

    for (unsigned i = 0; same && i < fields; i++)
        same = same_text(pb_text(a, i), pb_text(b, i));
    return same;
}

uint64_t message_hash(const ProtobufCMessage *message, uint64_t seed)
{
    CLEANUP(freep) uint8_t *bytes = mem_new(protobuf_c_message_get_packed_size(message) + 1);
    size_t len = protobuf_c_message_pack(message, bytes);

    return hash_bytes(bytes, len, seed);
}
