/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sections.h - which sections of a configuration are those that there were before
 *
 * Of ten thousand users one is new: the others are known to be the same by a look at each, and are
 * neither copied, hashed nor read again.
 */
#ifndef SCHEMA_SECTIONS_H
#define SCHEMA_SECTIONS_H

#include <stdbool.h>

#include "base/err.h"
#include "proto/command.pb-c.h"

/* Kinds of sections that there are many of. */
enum section { SECTION_NODES, SECTION_QOS, SECTION_ACCOUNTS, SECTION_USERS, SECTIONS };

/* All sections of a kind. */
struct sections_of {
    size_t count, old_count;
    uint32_t *was;  /* of each, the old one of the same name + 1; 0: there was none */
    uint32_t *now;  /* of each old one, the one of the same name + 1; 0: there is none */
    bool *in_order; /* of each: it stands among the others as it did */
    bool *same;     /* of each: and says the same */
    bool *old_same; /* of each old one */
    bool all_same;
};
struct sections {
    struct sections_of of[SECTIONS];
};

void sections_compare(struct sections *sections, const Config *old, const Config *config);
void sections_done(struct sections *sections);

/* The hashes of sections, of the names that say which they are, and of all else. */
struct section_hashes {
    uint64_t *of[SECTIONS], *names[SECTIONS];
    uint64_t rest, text; /* all but sections and `hash`; that one */
};
/* Of a whole configuration, from these: which one it is, as changes of it name it. */
uint64_t section_hashes_base(const struct section_hashes *hashes, const size_t count[SECTIONS]);
/*
 * A copy of the configuration, which takes from `old` the sections that are the same: of old only
 * config_drop() is to be called, or to read sections that are not.
 */
Config *config_take(const Config *config, Config *old, const struct sections *sections,
                    struct section_hashes *hashes, uint64_t *hash);
void config_drop(Config *old, const struct sections *sections);
/* The hash of one that is there. */
uint64_t config_hash(const Config *config, struct section_hashes *hashes);
void section_hashes_done(struct section_hashes *hashes);

/*
 * The same of the runs of a change (command.proto). Fills `config` too, whose lists are of `old` and
 * of the change, to be freed with sections_unmerge(). Negative when the runs are wrong.
 */
int sections_merge(struct sections *sections, Config *config, const Config *old,
                   const CmdConfigChange *change, struct err *err);
void sections_unmerge(Config *config);

/* Hashes of one section, and of all that are no sections. */
uint64_t section_name_hash(const ProtobufCMessage *section, enum section kind);
void config_rest_hash(const Config *config, struct section_hashes *out); /* `rest` and `text` */

/* The sections of a kind. */
ProtobufCMessage **sections_list(const Config *config, enum section kind, size_t *count);
void sections_set(Config *config, enum section kind, ProtobufCMessage **list, size_t count);

#endif
