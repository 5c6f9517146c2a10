/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pb_unpack.h - protobuf messages in arenas, with a bound
 *
 * Unpacked memory is many times the packed one when somebody means it to be (a two-byte submessage
 * becomes a struct of hundreds), so an unpack has a budget that follows from the packed size.
 */
#ifndef WIRE_PB_UNPACK_H
#define WIRE_PB_UNPACK_H

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

/* Everything in *out lives in the arena; nothing is freed alone. Borrows nothing from bytes. */
int pb_unpack(const ProtobufCMessageDescriptor *type, struct arena *arena, const void *bytes,
              size_t len, ProtobufCMessage **out, struct err *err);

/* No type contains itself: unpacking such a type cannot be made to recurse without end. */
bool pb_is_finite(const ProtobufCMessageDescriptor *type);

#endif
