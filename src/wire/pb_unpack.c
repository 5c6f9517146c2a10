/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pb_unpack.c - protobuf messages in arenas, with a bound
 */
#include "wire/pb_unpack.h"

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
