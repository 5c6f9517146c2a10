/* SPDX-License-Identifier: Apache-2.0 */
/*
 * level.h - the cluster's feature level: what all who read the log can read
 *
 * The level is a number in the state. It rises by a command (CmdLevel) when every controller, and every node where
 * it matters, has said that its build knows the level; an administrator can pin it. It never goes back.
 *
 * Whoever changes what the log holds or what core_apply() results in
 *   - adds a level at the end of base/feature_level.h, and moves LEVEL_NEWEST,
 *   - gives each new field of a message that the log or a snapshot holds a row in level.c (test_fields.c fails
 *     otherwise): the leader then proposes no command with that field below its level,
 *   - and asks `state_level(state) >= LEVEL_X` wherever the result of a command, the digest or a snapshot is
 *     another than before.
 * A new field of JobSpec that core reads needs the same question: a submitted spec is carried as bytes that
 * nobody checks.
 *
 * A replica that meets an unknown command, an unknown field or a level that it does not know stops: the log
 * was written by a newer build. Read docs/decisions/0035-feature-level.md.
 */
#ifndef CORE_LEVEL_H
#define CORE_LEVEL_H

#include <protobuf-c/protobuf-c.h>

#include "base/err.h"
#include "base/feature_level.h"
#include "base/str.h"
#include "core/state.h"

/* The level in force. */
unsigned state_level(const struct state *state);
/* The level that it does not rise above; 0: it is not pinned. */
unsigned state_level_pin(const struct state *state);

/* The lowest level that every node has to know while the cluster has this one. */
unsigned level_for_nodes(unsigned level);

/* The level from which on this field may be written; 0: the field has no row. */
unsigned level_of_field(const ProtobufCMessageDescriptor *message, unsigned field);
/*
 * The level that a command, or any message inside one, needs by its fields. *field is the name of one that
 * needs it; NULL is allowed.
 */
unsigned level_needed(const void *message, const char **field);
/* Unsets all fields that need more than `level`; their names are appended, with commas. */
void level_trim(void *message, unsigned level, struct str *names);

/*
 * Can this build apply the command as it was meant? ERR_NEWER_BUILD when not: the replica must stop, and
 * nothing of the log may be given up for it.
 */
int level_check(const struct state *state, uint64_t index, const Command *command, struct err *err);

#endif
