/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf.c - the configuration object: items, notes, defaults and the verdict
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/limits.h"
#include "schema/conf/conf_priv.h"

struct conf *conf_new(const char *file)
{
    struct conf *conf = NEW(struct conf);

    arena_init(&conf->arena);
    conf->file = arena_strdup(&conf->arena, file);
    config__init(&conf->config);
    conf_local__init(&conf->local);
    for (size_t i = 0; i < conf_section_count; i++) {
        const struct conf_section *section = &conf_sections[i];

        if (section->list)
            continue;
        vec_push(&conf->items,
                 (struct conf_item){ .section = section,
                                     .origins = ARENA_ARRAY(&conf->arena, struct conf_origin,
                                                            conf_key_count(section)) });
    }
    return conf;
}

void conf_free(struct conf *conf)
{
    if (!conf)
        return;
    vec_done(&conf->items);
    vec_done(&conf->notes);
    vec_done(&conf->later);
    arena_done(&conf->arena);
    free(conf);
}

void conf_freep(struct conf **conf)
{
    conf_free(*conf);
}

void conf_note_add(struct conf *conf, enum conf_note_kind kind, struct conf_origin at,
                   const char *fmt, ...)
{
    char text[1024];
    va_list args;

    conf->counts[kind]++;
    if (conf->notes.len >= CONF_NOTES_MAX)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    vec_push(&conf->notes, (struct conf_note){
                               .kind = kind, .at = at, .text = arena_strdup(&conf->arena, text) });
}

enum conf_note_kind conf_lenient(const struct conf *conf)
{
    return conf->is_slurm ? CONF_NOTE_WARNING : CONF_NOTE_ERROR;
}

struct conf_item *conf_single(struct conf *conf, const struct conf_section *section)
{
    vec_each (struct conf_item, item, &conf->items) {
        if (item->section == section)
            return item;
    }
    return NULL;
}

struct conf_item *conf_list_add(struct conf *conf, const struct conf_section *section,
                                struct conf_origin at)
{
    const ProtobufCFieldDescriptor *list =
        protobuf_c_message_descriptor_get_field_by_name(&config__descriptor, section->list);
    ProtobufCMessage *message = arena_alloc(&conf->arena, section->message->sizeof_message);

    protobuf_c_message_init(section->message, message);
    conf_field_put_message(&conf->arena, &conf->config.base, list, message);
    vec_push(&conf->items,
             (struct conf_item){ .section = section,
                                 .message = message,
                                 .at = at,
                                 .origins = ARENA_ARRAY(&conf->arena, struct conf_origin,
                                                        conf_key_count(section)) });
    return &conf->items.items[conf->items.len - 1];
}

struct conf_origin *conf_key_origin(const struct conf_item *item, const struct conf_key *key)
{
    return &item->origins[key - item->section->keys];
}

ProtobufCMessage *conf_item_message(const struct conf *conf, const struct conf_item *item,
                                    const struct conf_key *key)
{
    struct conf *own = (struct conf *)(uintptr_t)conf;

    if (item->message)
        return item->message;
    return key->flags & CONF_LOCAL ? &own->local.base : &own->config.base;
}

static void set_defaults(struct conf *conf)
{
    for (size_t i = 0; i < conf->items.len; i++) {
        struct conf_item *item = &conf->items.items[i];

        for (const struct conf_key *key = item->section->keys; key->name; key++) {
            struct conf_source source = { .as = key->name };

            if (key->def && !conf_key_origin(item, key)->line)
                conf_set_list(conf, item, key, source, key->def);
        }
    }
}

static void note_missing(struct conf *conf)
{
    vec_each (struct conf_item, item, &conf->items) {
        for (const struct conf_key *key = item->section->keys; key->name; key++) {
            if (!(key->flags & CONF_REQUIRED) || conf_key_origin(item, key)->line)
                continue;
            if (item->message)
                conf_note_add(conf, CONF_NOTE_ERROR, item->at, "[[%s]] has no '%s'",
                              item->section->name, key->name);
            else
                conf_note_add(conf, CONF_NOTE_ERROR, (struct conf_origin){ conf->file, 1 },
                              "'%s' is missing", key->name);
        }
    }
}

/* 128 bits over the packed message: for "is it the same", not for secrecy. */
static void set_hash(struct conf *conf)
{
    size_t len = config__get_packed_size(&conf->config);
    uint8_t *packed = mem_new(len + 1);

    config__pack(&conf->config, packed);
    conf->config.hash =
        arena_printf(&conf->arena, "%016llx%016llx", (unsigned long long)hash_bytes(packed, len, 1),
                     (unsigned long long)hash_bytes(packed, len, 2));
    free(packed);
}

/* Into the order of the lines; files stay in the order they were first complained about. */
static void sort_notes(struct conf *conf)
{
    for (size_t i = 1; i < conf->notes.len; i++) {
        struct conf_note note = conf->notes.items[i];
        size_t to = i;

        for (size_t k = i; k-- > 0 && strcmp(conf->notes.items[k].at.file, note.at.file) == 0;) {
            if (conf->notes.items[k].at.line > note.at.line)
                to = k;
        }
        memmove(&conf->notes.items[to + 1], &conf->notes.items[to], (i - to) * sizeof(note));
        conf->notes.items[to] = note;
    }
}

void conf_finish(struct conf *conf)
{
    note_missing(conf);
    set_defaults(conf);
    conf_check(conf);
    set_hash(conf);
    sort_notes(conf);
}

struct conf *conf_read(const char *name, const char *text, size_t len,
                       const struct conf_files *files)
{
    struct conf *conf = conf_new(name);

    conf->files = files;
    if (len > LIMIT_CONFIG_BYTES) {
        conf_note_add(conf, CONF_NOTE_ERROR, (struct conf_origin){ conf->file, 1 },
                      "the file has %zu bytes; the most is %d", len, LIMIT_CONFIG_BYTES);
        return conf;
    }
    conf->is_slurm = slurmconf_recognise(text, len);
    if ((conf->is_slurm ? slurmconf_read(conf, text, len) : conf_toml_read(conf, text, len)) == 0)
        conf_finish(conf);
    conf->files = NULL;
    return conf;
}

struct conf *conf_defaults(void)
{
    struct conf *conf = conf_new("defaults");

    set_defaults(conf);
    set_hash(conf);
    return conf;
}

int conf_verdict(const struct conf *conf, struct err *err)
{
    size_t errors = conf->counts[CONF_NOTE_ERROR];
    struct str text = { 0 };
    int code;

    if (!errors)
        return 0;
    vec_each (struct conf_note, note, &conf->notes) {
        if (note->kind == CONF_NOTE_ERROR) {
            conf_note_format(note, &text);
            break;
        }
    }
    if (errors > 1)
        str_addf(&text, " (and %zu more)", errors - 1);
    code = err_set(err, ERR_CONFIG, "%s", str_text(&text));
    str_done(&text);
    return code;
}

const Config *conf_config(const struct conf *conf)
{
    return &conf->config;
}

const ConfLocal *conf_local(const struct conf *conf)
{
    return &conf->local;
}

bool conf_is_slurm(const struct conf *conf)
{
    return conf->is_slurm;
}

bool conf_text_is_slurm(const char *text)
{
    return slurmconf_recognise(text, strlen(text));
}

size_t conf_note_count(const struct conf *conf, enum conf_note_kind kind)
{
    return conf->counts[kind];
}

const struct conf_note *conf_note(const struct conf *conf, size_t index)
{
    return index < conf->notes.len ? &conf->notes.items[index] : NULL;
}

void conf_note_format(const struct conf_note *note, struct str *out)
{
    str_addf(out, "%s:%u: %s", note->at.file, note->at.line, note->text);
}

size_t conf_item_count(const struct conf *conf)
{
    return conf->items.len;
}

const struct conf_item *conf_item(const struct conf *conf, size_t index)
{
    return index < conf->items.len ? &conf->items.items[index] : NULL;
}

void conf_guess(struct conf_guess *guess, const char *candidate)
{
    size_t len = strlen(guess->wanted), other = strlen(candidate);
    /* Half of a short word and a third of a long one may be wrong. */
    size_t allowed = len < 6 ? (len + 1) / 2 : len / 3;
    unsigned distance;

    if (len > 64 || len > other + allowed || other > len + allowed)
        return;
    distance = str_distance(guess->wanted, candidate);
    if (distance > allowed)
        return;
    if (!guess->best || distance < guess->distance) {
        guess->best = candidate;
        guess->distance = distance;
    }
}

const char *conf_guess_text(const struct conf_guess *guess, struct arena *arena)
{
    return guess->best ? arena_printf(arena, "; did you mean '%s'?", guess->best) : "";
}

void conf_quote(struct str *out, const char *text)
{
    str_add_char(out, '"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            str_addf(out, "\\%c", *text);
        else if ((unsigned char)*text < 0x20 || *text == 0x7f)
            str_addf(out, "\\u%04x", (unsigned char)*text);
        else
            str_add_char(out, *text);
    }
    str_add_char(out, '"');
}

const char *conf_kind(const struct conf *conf, const struct conf_section *section)
{
    struct arena *arena = &((struct conf *)(uintptr_t)conf)->arena;

    if (conf->is_slurm && section->keys[0].slurm)
        return section->keys[0].slurm;
    return arena_printf(arena, section->list ? "[[%s]]" : "[%s]", section->name);
}

const char *conf_called(const struct conf *conf, const struct conf_section *section,
                        const char *name)
{
    const struct conf_key *key = conf_key_find(section, name);
    struct arena *arena = &((struct conf *)(uintptr_t)conf)->arena;

    if (!conf->is_slurm || !key->slurm)
        return name;
    return arena_strndup(arena, key->slurm, strcspn(key->slurm, ","));
}

const char *conf_quoted(struct conf *conf, const char *text)
{
    char cut[96];
    struct str out = { 0 };
    const char *shown;

    snprintf(cut, sizeof(cut), "%s", text);
    if (strlen(text) >= sizeof(cut))
        memcpy(cut + sizeof(cut) - 4, "...", 4);
    conf_quote(&out, cut);
    shown = arena_strdup(&conf->arena, str_text(&out));
    str_done(&out);
    return shown;
}

const char *conf_shown(struct conf *conf, const char *text)
{
    if (*text && !text[strspn(text, "-0123456789")] && strlen(text) < 32)
        return arena_strdup(&conf->arena, text);
    return conf_quoted(conf, text);
}
