/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pb_add.c - packed bytes put together by hand
 */
#include "wire/pb_add.h"

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
