/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slurmconf.c - slurm.conf as it is: its files, its global keys, and what is not used said once
 */
#include "schema/conf/slurmconf.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/map.h"

/* Which of our sections a scope's keys are looked for in; NULL stands for every [section]. */
static const char *const scope_sections[SLURMCONF_SCOPES][3] = {
    [SLURMCONF_NODE] = { "nodes" },       [SLURMCONF_PARTITION] = { "partitions" },
    [SLURMCONF_NODESET] = { "nodesets" }, [SLURMCONF_DOWN] = { "down" },
    [SLURMCONF_GRES] = { "gres" },        [SLURMCONF_TOPOLOGY] = { "switches", "blocks" },
    [SLURMCONF_CGROUP] = { "cgroup" },    [SLURMCONF_PRIVATE] = { "private" },
};

static bool in_scope(enum slurmconf_scope scope, const struct conf_section *section)
{
    if (scope == SLURMCONF_GLOBAL)
        return !section->list && strcmp(section->name, "cgroup") != 0 &&
               strcmp(section->name, "private") != 0;
    for (size_t i = 0; i < 3 && scope_sections[scope][i]; i++) {
        if (strcmp(scope_sections[scope][i], section->name) == 0)
            return true;
    }
    return false;
}

/* The key is one of the names of the row: "CPUs,Procs". */
static bool is_name_of(const struct conf_key *key, const char *name, struct slurmconf_match *out)
{
    const char *cursor = key->slurm ? key->slurm : "";
    struct span word;

    while (str_next(&cursor, ",", &word)) {
        if (span_ieq(word, name)) {
            snprintf(out->name, sizeof(out->name), "%.*s", (int)word.len, word.ptr);
            return true;
        }
    }
    return false;
}

bool slurmconf_find(enum slurmconf_scope scope, const char *name, struct slurmconf_match *out)
{
    *out = (struct slurmconf_match){ 0 };
    for (size_t i = 0; i < slurmconf_key_count; i++) {
        if (slurmconf_keys[i].scope == scope && str_ieq(slurmconf_keys[i].name, name)) {
            out->row = &slurmconf_keys[i];
            snprintf(out->name, sizeof(out->name), "%s", out->row->name);
            return true;
        }
    }
    for (size_t i = 0; i < conf_section_count; i++) {
        if (!in_scope(scope, &conf_sections[i]))
            continue;
        for (const struct conf_key *key = conf_sections[i].keys; key->name; key++) {
            if (is_name_of(key, name, out)) {
                out->section = &conf_sections[i];
                out->key = key;
                return true;
            }
        }
    }
    return false;
}

const char *slurmconf_target(const struct slurmconf_match *match, struct arena *arena)
{
    if (match->row)
        return match->row->to;
    if (match->section->list)
        return arena_printf(arena, "[[%s]] %s", match->section->name, match->key->name);
    if (!*match->section->name)
        return match->key->name;
    return arena_printf(arena, "%s.%s", match->section->name, match->key->name);
}

const char *slurmconf_guess(enum slurmconf_scope scope, const char *name, struct arena *arena)
{
    struct conf_guess guess = { .wanted = name };

    for (size_t i = 0; i < slurmconf_key_count; i++) {
        if (slurmconf_keys[i].scope == scope)
            conf_guess(&guess, slurmconf_keys[i].name);
    }
    for (size_t i = 0; i < conf_section_count; i++) {
        for (const struct conf_key *key = conf_sections[i].keys; key->name; key++) {
            const char *cursor = key->slurm && in_scope(scope, &conf_sections[i]) ? key->slurm : "";
            struct span word;

            while (str_next(&cursor, ",", &word))
                conf_guess(&guess, arena_strndup(arena, word.ptr, word.len));
        }
    }
    return conf_guess_text(&guess, arena);
}

void slurmconf_keep(struct conf *conf, const char *key, const char *value)
{
    Config *config = &conf->config;
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(&config__descriptor, "kept");
    ConfKept *kept;

    for (size_t i = 0; i < config->n_kept; i++) {
        if (strcmp(config->kept[i]->key, key) == 0) {
            config->kept[i]->value = arena_strdup(&conf->arena, value);
            return;
        }
    }
    kept = ARENA_NEW(&conf->arena, ConfKept);
    conf_kept__init(kept);
    kept->key = arena_strdup(&conf->arena, key);
    kept->value = arena_strdup(&conf->arena, value);
    conf_field_put_message(&conf->arena, &config->base, field, &kept->base);
}

/* The keys that a line of another scope begins with. */
static const struct {
    const char *key;
    enum slurmconf_scope scope;
} leaders[] = {
    { "NodeName", SLURMCONF_NODE },         { "PartitionName", SLURMCONF_PARTITION },
    { "NodeSet", SLURMCONF_NODESET },       { "DownNodes", SLURMCONF_DOWN },
    { "FrontendName", SLURMCONF_FRONTEND }, { "PowerAction", SLURMCONF_POWER },
};

static enum slurmconf_scope line_scope(const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(leaders); i++) {
        if (str_ieq(key, leaders[i].key))
            return leaders[i].scope;
    }
    return SLURMCONF_GLOBAL;
}

/* Keys that may be given several times, each adding to the others. */
static bool may_repeat(const char *key)
{
    return str_ieq(key, "SlurmctldHost");
}

static void read_global(struct slurmconf *sc, const struct slurmconf_line *line)
{
    vec_each (struct slurmconf_pair, pair, &line->pairs) {
        if (!may_repeat(pair->key) && map_has(sc->seen, pair->key))
            conf_note_add(sc->conf, CONF_NOTE_WARNING, line->at,
                          "%s is given a second time; the last one is used", pair->key);
        map_put(sc->seen, pair->key, sc);
        slurmconf_pair(sc, SLURMCONF_GLOBAL, NULL, pair, line->at);
    }
}

static const char *path_beside(struct slurmconf *sc, const char *path)
{
    return *path == '/' || !*sc->dir ? path
                                     : arena_printf(&sc->conf->arena, "%s/%s", sc->dir, path);
}

static int read_other(struct slurmconf *sc, const char *path, char **text, size_t *len,
                      struct err *err)
{
    const struct conf_files *files = sc->conf->files;

    if (!files || !files->read)
        return err_set(err, ERR_NOT_FOUND, "other files cannot be read here");
    return files->read(files->ctx, path, text, len, err);
}

static void read_text(struct slurmconf *sc, enum slurmconf_scope scope, const char *file,
                      const char *text, size_t len);

/* Include may hold %c for the name of the cluster. */
static const char *expand_path(struct slurmconf *sc, const char *path)
{
    struct str out = { 0 };
    const char *result;

    for (; *path; path++) {
        if (path[0] == '%' && path[1] == 'c') {
            str_add(&out, sc->conf->config.cluster_name ? sc->conf->config.cluster_name : "");
            path++;
        } else {
            str_add_char(&out, *path);
        }
    }
    result = path_beside(sc, arena_strdup(&sc->conf->arena, str_text(&out)));
    str_done(&out);
    return result;
}

static void read_include(struct slurmconf *sc, enum slurmconf_scope scope,
                         const struct slurmconf_line *line)
{
    const char *path = expand_path(sc, line->include);
    CLEANUP(freep) char *text = NULL;
    struct err err = { 0 };
    size_t len = 0;

    if (sc->depth >= LIMIT_INCLUDE_DEPTH) {
        conf_note_add(sc->conf, CONF_NOTE_ERROR, line->at,
                      "Include %s: files include each other more than %d deep", line->include,
                      LIMIT_INCLUDE_DEPTH);
    } else if (++sc->includes > LIMIT_INCLUDE_FILES) {
        if (sc->includes == LIMIT_INCLUDE_FILES + 1)
            conf_note_add(sc->conf, CONF_NOTE_ERROR, line->at, "Include %s: more than %d files",
                          line->include, LIMIT_INCLUDE_FILES);
    } else if (read_other(sc, path, &text, &len, &err) < 0) {
        conf_note_add(sc->conf, CONF_NOTE_ERROR, line->at, "Include %s: %s", line->include,
                      err.text);
    } else {
        sc->depth++;
        read_text(sc, scope, path, text, len);
        sc->depth--;
    }
}

static void read_line(struct slurmconf *sc, enum slurmconf_scope scope,
                      const struct slurmconf_line *line)
{
    struct conf_item *item;

    if (scope == SLURMCONF_GLOBAL)
        scope = line_scope(line->pairs.items[0].key);
    if (scope == SLURMCONF_GLOBAL) {
        read_global(sc, line);
    } else if (scope == SLURMCONF_CGROUP || scope == SLURMCONF_PRIVATE) {
        item = conf_single(sc->conf, conf_section_find(scope_sections[scope][0]));
        vec_each (struct slurmconf_pair, pair, &line->pairs)
            slurmconf_pair(sc, scope, item, pair, line->at);
    } else {
        slurmconf_read_line(sc, scope, line);
    }
}

static void read_text(struct slurmconf *sc, enum slurmconf_scope scope, const char *file,
                      const char *text, size_t len)
{
    struct slurmconf_lexer lexer = { .p = text,
                                     .end = text + len,
                                     .line = 1,
                                     .file = arena_strdup(&sc->conf->arena, file),
                                     .arena = &sc->conf->arena };
    struct slurmconf_line line = { 0 };
    struct err err = { 0 };
    int got;

    if (len > LIMIT_CONFIG_BYTES) {
        conf_note_add(sc->conf, CONF_NOTE_ERROR, (struct conf_origin){ lexer.file, 1 },
                      "the file has %zu bytes; the most is %d", len, LIMIT_CONFIG_BYTES);
        return;
    }
    while ((got = slurmconf_next(&lexer, &line, &err)) != 0) {
        if (got < 0)
            conf_note_add(sc->conf, CONF_NOTE_ERROR, line.at, "%s", err.text);
        else if (line.include)
            read_include(sc, scope, &line);
        else
            read_line(sc, scope, &line);
    }
    vec_done(&line.pairs);
}

/* gres.conf and its kind: beside slurm.conf if there, or where the caller said. */
static void read_beside(struct slurmconf *sc, enum slurmconf_scope scope, const char *name,
                        const char *given)
{
    const char *path = given ? given : path_beside(sc, name);
    CLEANUP(freep) char *text = NULL;
    struct err err = { 0 };
    size_t len = 0;
    int result;

    if (!sc->conf->files)
        return;
    result = read_other(sc, path, &text, &len, &err);
    if (result == 0)
        read_text(sc, scope, path, text, len);
    else if (given || result != -(int)ERR_NOT_FOUND)
        conf_note_add(sc->conf, CONF_NOTE_ERROR, (struct conf_origin){ sc->conf->file, 1 },
                      "%s: %s", path, err.text);
}

/* Without cgroup.conf, Slurm holds jobs to nothing; here it would. The same file, the same result. */
static void use_slurm_defaults(struct slurmconf *sc)
{
    static const char *const keys[] = { "constrain_cores", "constrain_devices", "constrain_ram" };
    const struct conf_section *section = conf_section_find("cgroup");
    struct conf_item *item = conf_single(sc->conf, section);

    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const struct conf_key *key = conf_key_find(section, keys[i]);
        struct conf_source source = { .at = { sc->conf->file, 1 }, .as = keys[i] };
        const char *no = "false";

        if (!conf_key_origin(item, key)->line)
            conf_set(sc->conf, item, key, source, &no, 1);
    }
}

int slurmconf_read(struct conf *conf, const char *text, size_t len)
{
    const char *slash = strrchr(conf->file, '/');
    struct map seen, noted;
    struct slurmconf sc = { .conf = conf, .seen = &seen, .noted = &noted };

    sc.dir = slash ? arena_strndup(&conf->arena, conf->file, (size_t)(slash - conf->file)) : "";
    if (slash == conf->file)
        sc.dir = "/.";
    map_init(&seen);
    map_init(&noted);
    read_text(&sc, SLURMCONF_GLOBAL, conf->file, text, len);
    read_beside(&sc, SLURMCONF_GRES, "gres.conf", conf->files ? conf->files->gres : NULL);
    read_beside(&sc, SLURMCONF_TOPOLOGY, "topology.conf",
                conf->files ? conf->files->topology : NULL);
    read_beside(&sc, SLURMCONF_CGROUP, "cgroup.conf", conf->files ? conf->files->cgroup : NULL);
    if (sc.private_dirs)
        read_beside(&sc, SLURMCONF_PRIVATE, "job_container.conf", NULL);
    use_slurm_defaults(&sc);
    slurmconf_settle(&sc);
    map_done(&seen);
    map_done(&noted);
    vec_done(&sc.defaults);
    vec_done(&sc.hosts);
    vec_done(&sc.addrs);
    return 0;
}

/*
 * TOML begins a section with '[' or a key of ours; slurm.conf begins a line with a key of Slurm's.
 * The first line that is clearly one or the other decides.
 */
bool slurmconf_recognise(const char *text, size_t len)
{
    const char *p = text, *end = text + len;

    while (p < end) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));
        char word[64];
        size_t n = 0;
        struct slurmconf_match match;

        for (eol = eol ? eol : end; p < eol && isspace((unsigned char)*p);)
            p++;
        while (p + n < eol && n < sizeof(word) - 1 && (isalnum((unsigned char)p[n]) || p[n] == '_'))
            n++;
        memcpy(word, p, n);
        word[n] = '\0';
        if (p < eol && *p == '[')
            return false;
        if (n && conf_key_find(&conf_sections[0], word))
            return false;
        if (n && (p + n >= eol || p[n] != '.') &&
            (str_ieq(word, "Include") || line_scope(word) != SLURMCONF_GLOBAL ||
             slurmconf_find(SLURMCONF_GLOBAL, word, &match)))
            return true;
        p = eol < end ? eol + 1 : end;
    }
    return false;
}
