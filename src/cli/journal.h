/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.h - `spur journal`
 */
#ifndef CLI_JOURNAL_H
#define CLI_JOURNAL_H

#include <protobuf-c/protobuf-c.h>

#include "base/str.h"

/* Any message as one line of JSON. */
void journal_add_json(struct str *out, const ProtobufCMessage *message);

#endif
