/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pb.c - protobuf messages in arenas, with a bound
 */
#include "rpc/pb.h"

enum {
    UNPACK_BASE = 256 * 1024,
    UNPACK_TIMES = 24,
    UNPACK_MOST = 64 * 1024 * 1024,
    DEPTH_MOST = 32,
};

struct bounded {
    struct arena *arena;
    size_t left;
    bool over;
};

static void *bounded_alloc(void *ctx, size_t size)
{
    struct bounded *bounded = ctx;

    if (size > bounded->left) {
        bounded->over = true;
        return NULL;
    }
    bounded->left -= size;
    return arena_alloc(bounded->arena, size);
}

static void bounded_free(void *ctx, void *ptr)
{
    (void)ctx, (void)ptr; /* the arena is freed whole */
}

int pb_unpack(const ProtobufCMessageDescriptor *type, struct arena *arena, const void *bytes,
              size_t len, ProtobufCMessage **out, struct err *err)
{
    struct bounded bounded = {
        .arena = arena,
        .left = MIN(UNPACK_BASE + len * UNPACK_TIMES, (size_t)UNPACK_MOST),
    };
    ProtobufCAllocator allocator = { bounded_alloc, bounded_free, &bounded };
    ProtobufCMessage *message = protobuf_c_message_unpack(type, &allocator, len, bytes);

    if (!message && bounded.over)
        return err_set(err, ERR_TOO_LARGE, "%s of %zu bytes unpacks to too much memory",
                       type->short_name, len);
    if (!message)
        return err_set(err, ERR_BAD_MESSAGE, "malformed %s of %zu bytes", type->short_name, len);
    *out = message;
    return 0;
}

static bool is_finite(const ProtobufCMessageDescriptor *type,
                      const ProtobufCMessageDescriptor **above, unsigned depth)
{
    for (unsigned i = 0; i < depth; i++) {
        if (above[i] == type)
            return false;
    }
    if (depth == DEPTH_MOST)
        return false;
    above[depth] = type;
    for (unsigned i = 0; i < type->n_fields; i++) {
        if (type->fields[i].type == PROTOBUF_C_TYPE_MESSAGE &&
            !is_finite(type->fields[i].descriptor, above, depth + 1))
            return false;
    }
    return true;
}

bool pb_is_finite(const ProtobufCMessageDescriptor *type)
{
    const ProtobufCMessageDescriptor *above[DEPTH_MOST];

    return is_finite(type, above, 0);
}

void pb_add_varint(struct str *out, uint64_t value)
{
    char bytes[10];
    size_t len = 0;

    do {
        bytes[len++] = (char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value);
    str_add_len(out, bytes, len);
}

void pb_add_bytes(struct str *out, unsigned field, const void *bytes, size_t len)
{
    pb_add_varint(out, (uint64_t)field << 3 | 2);
    pb_add_varint(out, len);
    str_add_len(out, bytes, len);
}

void pb_add_uint(struct str *out, unsigned field, uint64_t value)
{
    pb_add_varint(out, (uint64_t)field << 3);
    pb_add_varint(out, value);
}

void pb_add_message(struct str *out, unsigned field, const ProtobufCMessage *message)
{
    size_t len = protobuf_c_message_get_packed_size(message);

    pb_add_varint(out, (uint64_t)field << 3 | 2);
    pb_add_varint(out, len);
    str_reserve(out, len);
    protobuf_c_message_pack(message, (uint8_t *)out->data + out->len);
    out->len += len;
    out->data[out->len] = '\0';
}
