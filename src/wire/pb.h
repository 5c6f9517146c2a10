/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pb.h - messages in memory: from an arena, copied, looked into while packed
 */
#ifndef WIRE_PB_H
#define WIRE_PB_H

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"

/* Unpacks into an arena; nothing is freed alone. */
ProtobufCAllocator pb_arena(struct arena *arena);

/*
 * A copy of any message, on the heap: protobuf_c_message_free_unpacked(copy, NULL). Fields that
 * this build does not know are left out.
 */
void *pb_copy(const void *message);
/* The same; *hash is message_hash() of the copy. */
void *pb_copy_hash(const void *message, uint64_t *hash);
/* Calls `each` with every message that is a field of this one. */
void pb_each_inside(const ProtobufCMessage *message,
                    void (*each)(const ProtobufCMessage *inner, void *ctx), void *ctx);
/* Has the message, or one inside it, fields that this build does not know? */
bool pb_has_unknown(const void *message);
void pb_free(void *message); /* NULL is nothing */

/*
 * Would unpacking these bytes succeed? Walks them and takes no memory. For types whose fields are all
 * optional or repeated, as ours are.
 */
bool pb_would_unpack(const ProtobufCMessageDescriptor *type, const void *bytes, size_t len);

/* Packed, in the arena. */
struct span pb_pack(const void *message, struct arena *arena);

/* The last length-delimited field of that number; false when absent or damaged. */
bool pb_field(const uint8_t *bytes, size_t len, unsigned field, struct span *out);

/* The last field of that number if it is a whole number; false when absent or damaged. */
bool pb_number(const uint8_t *bytes, size_t len, unsigned field, uint64_t *out);

/* Of the packed message: the same on every machine, for digests. */
uint64_t message_hash(const ProtobufCMessage *message, uint64_t seed);

/*
 * Merges what is present in `change` into a copy of `message`: repeated fields are replaced. What
 * this build does not know is left out.
 */
void *pb_merge(const void *message, const void *change, struct arena *arena);
/* Unsets a field by name; false when the message has none of that name. */
bool pb_clear(void *message, const char *field);
bool pb_has(const void *message, const ProtobufCFieldDescriptor *field);

/* Do two messages of one kind say the same, as far as this build knows their fields? */
bool pb_same(const void *a, const void *b);
/*
 * The same for many of a kind: numbers are compared as bytes, the rest field by field. What is absent
 * should be zero, as it is in what was unpacked: else it may be false though they say the same.
 */
struct pb_span {
    uint32_t at, len;
};
struct pb_compare {
    VEC(const ProtobufCFieldDescriptor *) fields;
    VEC(struct pb_span) spans;
};
void pb_compare_init(struct pb_compare *compare, const ProtobufCMessageDescriptor *type);
void pb_compare_done(struct pb_compare *compare);
bool pb_compare(const struct pb_compare *compare, const void *a, const void *b);
/* The same of their first fields, which are texts. */
bool pb_same_names(const void *a, const void *b, unsigned fields);
/* A field that is a text, by its place; NULL when it is not there. */
const char *pb_text(const void *message, unsigned field);

#endif
