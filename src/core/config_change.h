/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_change.h - from the configuration that a cluster has to another, in commands of bounded cost
 *
 * A configuration may have ten thousand nodes and as many users; of these mostly few are others. Who
 * proposes one takes the hashes of what there is (config_base_take(), cheap), and works out elsewhere,
 * in a thread of its own if it likes, what has to be said (config_changes_make()). Each command names
 * the configuration that it goes on from: when another came between them, none of the rest is done.
 */
#ifndef CORE_CONFIG_CHANGE_H
#define CORE_CONFIG_CHANGE_H

#include "base/arena.h"
#include "base/vec.h"
#include "core/state.h"
#include "schema/sections.h"

/* What the configuration of a state is, without referring to the state. */
struct config_base {
    struct section_hashes hashes;
    size_t count[SECTIONS];
    uint64_t hash;
};
void config_base_take(const struct state *state, struct config_base *out);
void config_base_done(struct config_base *base);
uint64_t config_base_hash(const struct state *state); /* its `hash`, now */

/*
 * The commands that lead to `config`, in order; their sections are its own. A command changes at most
 * about `most` sections, unless these depend on each other. Until the last one the configuration has
 * no hash, so that who reads a file finds that it is another.
 * Nothing is taken away before all else is as it is to be. In doubt about the order of accounts it
 * is one command.
 */
struct config_changes {
    struct arena arena;
    VEC(CmdConfigChange *) list;
};
void config_changes_make(struct config_changes *out, const struct config_base *base,
                         const Config *config, bool reconfigure, size_t most);
void config_changes_done(struct config_changes *changes);

#endif
