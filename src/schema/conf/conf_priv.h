/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_priv.h - what the files of the configuration reader share
 *
 * conf.c        the object: items, notes, defaults, the verdict
 * conf_value.c  text to value, by the type of a key
 * conf_field.c  value into and out of a protobuf field
 * conf_toml.c   spur.conf: a TOML document, walked by the table
 * conf_check.c  what must agree between sections
 * conf_nodes.c  groups of nodes to single nodes; host lists with node sets
 * conf_write.c  the configuration as TOML
 * slurmconf*.c  slurm.conf, gres.conf, topology.conf, cgroup.conf
 *
 * (1) Everything hangs in conf->arena, the strings of the messages too.
 * (2) A value is set only through conf_set(), so it is checked and its origin is known.
 */
#ifndef SCHEMA_CONF_PRIV_H
#define SCHEMA_CONF_PRIV_H

#include "base/arena.h"
#include "base/vec.h"
#include "schema/conf.h"

enum { CONF_NOTES_MAX = 1000 };

struct conf {
    struct arena arena;
    const char *file;
    const struct conf_files *files; /* while reading */
    Config config;
    ConfLocal local;
    VEC(struct conf_item) items;
    VEC(struct conf_note) notes;
    size_t counts[3];                   /* of notes by kind */
    VEC(const struct conf_key *) later; /* keys said to have no effect yet: once is enough */
    bool is_slurm;
    bool no_expansion; /* a host list is wrong: what compares lists is skipped */
};

/* Where a value stands, and what it is called there: "jobs.kill_wait", "KillWait". */
struct conf_source {
    struct conf_origin at;
    const char *as;
};

struct conf *conf_new(const char *file);
void conf_note_add(struct conf *conf, enum conf_note_kind kind, struct conf_origin at,
                   const char *fmt, ...) PRINTF(4, 5);
/* No more notes are kept, so making their texts is in vain. */
static inline bool conf_notes_full(const struct conf *conf)
{
    return conf->notes.len >= CONF_NOTES_MAX;
}
/* An error in TOML; in slurm.conf, which Slurm reads with a shrug, a warning. */
enum conf_note_kind conf_lenient(const struct conf *conf);

/* The item of a [section]; the item of a new [[section]]. Pointers last until the next one is added. */
struct conf_item *conf_single(struct conf *conf, const struct conf_section *section);
struct conf_item *conf_list_add(struct conf *conf, const struct conf_section *section,
                                struct conf_origin at);
struct conf_origin *conf_key_origin(const struct conf_item *item, const struct conf_key *key);
ProtobufCMessage *conf_item_message(const struct conf *conf, const struct conf_item *item,
                                    const struct conf_key *key);

/* Defaults for what is unset, then the checks and the hash. */
void conf_finish(struct conf *conf);
void conf_check(struct conf *conf);
void conf_check_lists(struct conf *conf);
void conf_check_accounts(struct conf *conf);

/*
 * Sets a key from text: a list has one text per element, all others one. A wrong value becomes a
 * note and -1. conf_set_list() splits at commas first.
 */
int conf_set(struct conf *conf, struct conf_item *item, const struct conf_key *key,
             struct conf_source source, const char *const *texts, size_t count);
int conf_set_list(struct conf *conf, struct conf_item *item, const struct conf_key *key,
                  struct conf_source source, const char *text);
bool conf_type_is_list(enum conf_type type);

/* conf_field.c */
void conf_field_clear(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);
void conf_field_put_num(struct arena *arena, ProtobufCMessage *message,
                        const ProtobufCFieldDescriptor *field, int64_t num);
void conf_field_put_text(struct arena *arena, ProtobufCMessage *message,
                         const ProtobufCFieldDescriptor *field, const char *text);
void conf_field_put_message(struct arena *arena, ProtobufCMessage *message,
                            const ProtobufCFieldDescriptor *field, ProtobufCMessage *value);
size_t conf_field_count(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);
int64_t conf_field_num(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                       size_t index);
const char *conf_field_text(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                            size_t index);
const ProtobufCMessage *conf_field_message(const ProtobufCMessage *message,
                                           const ProtobufCFieldDescriptor *field, size_t index);

/*
 * "; did you mean 'x'?" for the nearest of the candidates that were offered, or nothing.
 *
 *     struct conf_guess guess = { .wanted = text };
 *     conf_guess(&guess, "one"); conf_guess(&guess, "two");
 *     ... "%s", conf_guess_text(&guess, arena)
 */
struct conf_guess {
    const char *wanted;
    const char *best;
    unsigned distance;
};
void conf_guess(struct conf_guess *guess, const char *candidate);
const char *conf_guess_text(const struct conf_guess *guess, struct arena *arena);

/* A TOML string in quotes. */
void conf_quote(struct str *out, const char *text);
/* What a section and a key are called in the notation of the file: "[[nodes]]" or "NodeName". */
const char *conf_kind(const struct conf *conf, const struct conf_section *section);
const char *conf_called(const struct conf *conf, const struct conf_section *section,
                        const char *name);
/* For messages: in quotes, and cut when it is long. */
const char *conf_quoted(struct conf *conf, const char *text);
/* The same, but a number stands without quotes, as in a file. */
const char *conf_shown(struct conf *conf, const char *text);

/* conf_toml.c, slurmconf.c: fill conf from the text of a file; -1 when it is no such file at all */
int conf_toml_read(struct conf *conf, const char *text, size_t len);
int slurmconf_read(struct conf *conf, const char *text, size_t len);
/* The text looks like slurm.conf, not like TOML. */
bool slurmconf_recognise(const char *text, size_t len);

#endif
