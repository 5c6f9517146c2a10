/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_toml.c - spur.conf: a TOML document, walked by the table of keys
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/toml.h"
#include "schema/conf/conf_priv.h"
#include "schema/conf/slurmconf.h"

static struct conf_origin origin_of(const struct conf *conf, struct toml_pos pos)
{
    return (struct conf_origin){ .file = conf->file, .line = pos.line };
}

/* "jobs.kill_wait", "[[nodes]] cpus", "cluster_name" */
static const char *label(struct conf *conf, const struct conf_section *section, const char *name)
{
    if (section->list)
        return arena_printf(&conf->arena, "[[%s]] %s", section->name, name);
    if (!*section->name)
        return name;
    return arena_printf(&conf->arena, "%s.%s", section->name, name);
}

/* The text of a scalar, or NULL when such a value says nothing to a key of that type. */
static const char *scalar_text(struct conf *conf, const struct conf_key *key,
                               const struct toml_value *value)
{
    bool is_number = key->type == CONF_COUNT || key->type == CONF_COUNTS;
    bool may_be_number = is_number || key->type == CONF_SECONDS || key->type == CONF_MINUTES ||
                         key->type == CONF_TIME || key->type == CONF_DAYS || key->type == CONF_MB;

    switch (value->kind) {
    case TOML_STRING:
        if (key->type == CONF_BOOL || strlen(value->string.text) != value->string.len)
            return NULL;
        if (is_number && !(key->flags & (CONF_UNLIMITED | CONF_PARENT)))
            return NULL;
        return value->string.text;
    case TOML_INTEGER:
        return may_be_number ? arena_printf(&conf->arena, "%" PRId64, value->integer) : NULL;
    case TOML_BOOL:
        return key->type == CONF_BOOL ? (value->boolean ? "true" : "false") : NULL;
    default:
        return NULL;
    }
}

static void note_kind(struct conf *conf, const struct conf_key *key, struct conf_source source,
                      const struct toml_value *value)
{
    const char *found = toml_kind_name(value->kind);
    struct str says = { 0 };

    if (value->kind == TOML_INTEGER)
        found = arena_printf(&conf->arena, "the number %" PRId64, value->integer);
    else if (value->kind == TOML_STRING)
        found = arena_printf(&conf->arena, "the text %s", conf_quoted(conf, value->string.text));
    else if (value->kind == TOML_BOOL)
        found = value->boolean ? "true" : "false";
    conf_key_expects(key, &says);
    conf_note_add(conf, CONF_NOTE_ERROR, source.at, "%s: expected %s, found %s", source.as,
                  str_text(&says), found);
    str_done(&says);
}

static void set_array(struct conf *conf, struct conf_item *item, const struct conf_key *key,
                      struct conf_source source, const struct toml_array *array)
{
    VEC(const char *) texts = { 0 };

    for (size_t i = 0; i < array->len; i++) {
        const char *text = scalar_text(conf, key, array->items[i]);

        if (!text) {
            source.at.line = array->items[i]->pos.line;
            note_kind(conf, key, source, array->items[i]);
            vec_done(&texts);
            return;
        }
        vec_push(&texts, text);
    }
    conf_set(conf, item, key, source, texts.items, texts.len);
    vec_done(&texts);
}

static void set_key(struct conf *conf, struct conf_item *item, const struct conf_key *key,
                    const struct toml_entry *entry)
{
    struct conf_source source = { .at = origin_of(conf, entry->pos),
                                  .as = label(conf, item->section, key->name) };
    const char *text;

    *conf_key_origin(item, key) = source.at;
    if (entry->value->kind == TOML_ARRAY && conf_type_is_list(key->type)) {
        set_array(conf, item, key, source, &entry->value->array);
    } else if ((text = scalar_text(conf, key, entry->value))) {
        conf_set_list(conf, item, key, source, text);
    } else {
        note_kind(conf, key, source, entry->value);
    }
}

/* A section that has the key, for whoever put it into another one. */
static const struct conf_section *section_with(const char *name)
{
    for (size_t i = 0; i < conf_section_count; i++) {
        if (conf_key_find(&conf_sections[i], name))
            return &conf_sections[i];
    }
    return NULL;
}

static void note_unknown(struct conf *conf, const struct conf_section *section,
                         const struct toml_entry *entry)
{
    struct conf_guess guess = { .wanted = entry->key };
    const struct conf_section *other;
    const char *in = "", *hint;
    struct slurmconf_match slurm;
    const char *target;

    for (const struct conf_key *key = section->keys; key->name && !conf_notes_full(conf); key++)
        conf_guess(&guess, key->name);
    for (size_t i = 0; !*section->name && i < conf_section_count; i++)
        conf_guess(&guess, conf_sections[i].name);
    if (*section->name)
        in = arena_printf(&conf->arena, section->list ? " in [[%s]]" : " in [%s]", section->name);
    hint = conf_guess_text(&guess, &conf->arena);
    if (guess.best && guess.distance <= 1)
        other = NULL;
    else if ((other = section_with(entry->key)))
        hint = arena_printf(&conf->arena,
                            other->list    ? "; it belongs in [[%s]]"
                            : *other->name ? "; it belongs in [%s]"
                                           : "; it belongs at the top%s",
                            other->name);
    else if (slurmconf_find(SLURMCONF_GLOBAL, entry->key, &slurm) &&
             (target = slurmconf_target(&slurm, &conf->arena)))
        hint = arena_printf(&conf->arena, "; Slurm's %s is '%s' here", slurm.name, target);
    conf_note_add(conf, CONF_NOTE_ERROR, origin_of(conf, entry->pos), "unknown key %s%s%s",
                  conf_quoted(conf, entry->key), in, hint);
}

static void read_table(struct conf *conf, struct conf_item *item, const struct toml_value *table)
{
    for (size_t i = 0; i < table->table.len; i++) {
        const struct toml_entry *entry = &table->table.entries[i];
        const struct conf_key *key = conf_key_find(item->section, entry->key);

        if (key)
            set_key(conf, item, key, entry);
        else
            note_unknown(conf, item->section, entry);
    }
}

static void read_section(struct conf *conf, const struct conf_section *section,
                         const struct toml_entry *entry)
{
    const struct toml_value *value = entry->value;
    struct conf_origin at = origin_of(conf, entry->pos);

    if (!section->list && value->kind == TOML_TABLE) {
        struct conf_item *item = conf_single(conf, section);

        item->at = at;
        read_table(conf, item, value);
        return;
    }
    if (section->list && value->kind == TOML_ARRAY) {
        for (size_t i = 0; i < value->array.len; i++) {
            const struct toml_value *element = value->array.items[i];

            at.line = element->pos.line;
            if (element->kind == TOML_TABLE)
                read_table(conf, conf_list_add(conf, section, at), element);
            else
                conf_note_add(conf, CONF_NOTE_ERROR, at, "'%s' holds %s; write [[%s]] sections",
                              section->name, toml_kind_name(element->kind), section->name);
        }
        return;
    }
    conf_note_add(conf, CONF_NOTE_ERROR, at, "'%s' is %s here; write %s%s%s", section->name,
                  toml_kind_name(value->kind), section->list ? "[[" : "[", section->name,
                  section->list ? "]] with two brackets" : "]");
}

/* [slurm]: Slurm's own keys that mean nothing here, kept for scontrol show config. */
static void read_slurm(struct conf *conf, const struct toml_entry *section)
{
    if (section->value->kind != TOML_TABLE) {
        conf_note_add(conf, CONF_NOTE_ERROR, origin_of(conf, section->pos),
                      "'slurm' is %s here; write [slurm]", toml_kind_name(section->value->kind));
        return;
    }
    for (size_t i = 0; i < section->value->table.len; i++) {
        const struct toml_entry *entry = &section->value->table.entries[i];
        struct conf_origin at = origin_of(conf, entry->pos);
        struct slurmconf_match key;

        if (!slurmconf_find(SLURMCONF_GLOBAL, entry->key, &key))
            conf_note_add(conf, CONF_NOTE_ERROR, at, "slurm.%s: Slurm has no such key%s",
                          entry->key, slurmconf_guess(SLURMCONF_GLOBAL, entry->key, &conf->arena));
        else if (key.key || (key.row->set && !key.row->keep))
            conf_note_add(conf, CONF_NOTE_ERROR, at, "slurm.%s: this is '%s' here", key.name,
                          slurmconf_target(&key, &conf->arena));
        else if (entry->value->kind != TOML_STRING)
            conf_note_add(conf, CONF_NOTE_ERROR, at, "slurm.%s: expected text, found %s", key.name,
                          toml_kind_name(entry->value->kind));
        else
            slurmconf_keep(conf, key.name, entry->value->string.text);
    }
}

int conf_toml_read(struct conf *conf, const char *text, size_t len)
{
    CLEANUP(toml_freep) struct toml *doc = NULL;
    const struct conf_section *top = &conf_sections[0];
    struct err err = { 0 };
    const struct toml_value *root;

    if (toml_parse(NULL, text, len, &doc, &err) < 0) {
        unsigned line = 1;
        int used = 0;

        /* "line 3, column 7: ...": the note has the line already */
        sscanf(err.text, "line %u, %n", &line, &used);
        conf_note_add(conf, CONF_NOTE_ERROR, (struct conf_origin){ conf->file, line }, "%s",
                      err.text + used);
        return -1;
    }
    root = toml_root(doc);
    for (size_t i = 0; i < root->table.len; i++) {
        const struct toml_entry *entry = &root->table.entries[i];
        const struct conf_section *section = *entry->key ? conf_section_find(entry->key) : NULL;
        const struct conf_key *key = conf_key_find(top, entry->key);

        if (section)
            read_section(conf, section, entry);
        else if (strcmp(entry->key, "slurm") == 0)
            read_slurm(conf, entry);
        else if (key)
            set_key(conf, conf_single(conf, top), key, entry);
        else
            note_unknown(conf, top, entry);
    }
    return 0;
}
