/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pb_add.h - packed bytes put together by hand: a list whose members are packed already
 */
#ifndef WIRE_PB_ADD_H
#define WIRE_PB_ADD_H

#include <protobuf-c/protobuf-c.h>

#include "base/str.h"

void pb_add_varint(struct str *out, uint64_t value);
void pb_add_bytes(struct str *out, unsigned field, const void *bytes, size_t len);
void pb_add_uint(struct str *out, unsigned field, uint64_t value);
void pb_add_message(struct str *out, unsigned field, const ProtobufCMessage *message);

#endif
