/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.h - one field of any protobuf message, by its place in the C struct
 *
 * Tables name fields with offsetof(), so that the compiler checks them; the descriptor that
 * protobuf-c generates tells type and has_ bit. Messages are those that x__free_unpacked() frees:
 * everything in them is malloc'ed.
 */
#ifndef WIRE_MESSAGE_H
#define WIRE_MESSAGE_H

#include <protobuf-c/protobuf-c.h>

#include "base/util.h"

/* The field at this offset of the struct, or NULL. */
const ProtobufCFieldDescriptor *msg_field_at(const ProtobufCMessageDescriptor *type, size_t offset);

bool msg_has(const void *message, const ProtobufCFieldDescriptor *field);
/* Of an integer, bool or enum field; 0 when it is absent. */
int64_t msg_number(const void *message, const ProtobufCFieldDescriptor *field);
/* Of a text field; NULL when it is absent. */
const char *msg_text(const void *message, const ProtobufCFieldDescriptor *field);

void msg_set_number(void *message, const ProtobufCFieldDescriptor *field, int64_t value);
void msg_set_text(void *message, const ProtobufCFieldDescriptor *field, const char *text);
void msg_clear(void *message, const ProtobufCFieldDescriptor *field); /* not for repeated fields */

#endif
