/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slurmconf_lines.c - lines that describe one thing: NodeName, PartitionName, NodeSet, DownNodes,
 * and those of gres.conf and topology.conf
 */
#include <string.h>

#include "base/limits.h"
#include "base/map.h"
#include "schema/conf/slurmconf.h"

static const struct {
    const char *leader, *section;
} kinds[SLURMCONF_SCOPES] = {
    [SLURMCONF_NODE] = { "NodeName", "nodes" },
    [SLURMCONF_PARTITION] = { "PartitionName", "partitions" },
    [SLURMCONF_NODESET] = { "NodeSet", "nodesets" },
    [SLURMCONF_DOWN] = { "DownNodes", "down" },
    [SLURMCONF_GRES] = { "Name", "gres" },
};

/* What Slurm writes for "nothing" in any key. */
static bool is_unset(const struct conf_key *key, const char *value)
{
    bool has_none = false;

    for (size_t i = 0; key->words && key->words[i]; i++)
        has_none = has_none || str_ieq(key->words[i], value);
    return !*value || str_eq(value, "(null)") || str_ieq(value, "N/A") ||
           (str_ieq(value, "none") && !has_none && key->type != CONF_NAME);
}

/* "sched/backfill" to "backfill", each of a list. */
static const char *without_kind(struct slurmconf *sc, const char *value)
{
    struct str out = { 0 };
    const char *cursor = value, *result;
    struct span word;

    while (str_next(&cursor, ",", &word)) {
        const char *slash = memchr(word.ptr, '/', word.len);
        const char *from = slash ? slash + 1 : word.ptr;

        str_add(&out, out.len ? "," : "");
        str_add_len(&out, from, (size_t)(word.ptr + word.len - from));
    }
    result = arena_strdup(&sc->conf->arena, str_text(&out));
    str_done(&out);
    return result;
}

int slurmconf_put_key(struct slurmconf *sc, struct conf_item *item, const struct conf_key *key,
                      struct conf_source source, const char *value)
{
    if (is_unset(key, value)) {
        conf_field_clear(conf_item_message(sc->conf, item, key),
                         conf_key_field(item->section, key));
        return 0;
    }
    if (key->kind)
        value = without_kind(sc, value);
    if (key->type == CONF_PATH && *value != '/' && *sc->dir)
        value = arena_printf(&sc->conf->arena, "%s/%s", sc->dir, value);
    return conf_set_list(sc->conf, item, key, source, value);
}

int slurmconf_put(struct slurmconf *sc, const char *to, struct conf_source source,
                  const char *value)
{
    const char *dot = strchr(to, '.');
    const struct conf_section *section;
    struct conf_item *item = sc->item;

    if (dot) {
        section = conf_section_find(arena_strndup(&sc->conf->arena, to, (size_t)(dot - to)));
        item = conf_single(sc->conf, section);
        to = dot + 1;
    }
    return slurmconf_put_key(sc, item, conf_key_find(item->section, to), source, value);
}

void slurmconf_note_row(struct slurmconf *sc, const struct slurmconf_key *row, const char *value,
                        struct conf_origin at)
{
    bool inert = !*value || str_eq(value, "(null)") || str_ieq(value, "none") ||
                 str_ends(value, "/none") || str_eq(value, "0") || str_ieq(value, "no") ||
                 str_ieq(value, "INFINITE") || str_eq(value, "-1");

    if (map_put_num(sc->noted, (uint64_t)(uintptr_t)row, sc))
        return;
    conf_note_add(sc->conf, row->lacks && !inert ? CONF_NOTE_WARNING : CONF_NOTE_KEPT, at,
                  "%s=%.80s %s: %s", row->name, value,
                  row->lacks && !inert ? "is not supported" : "changes nothing here", row->why);
}

/* Nodes= is a key of switches and of blocks. */
static const struct conf_key *key_of_section(const struct conf_section *section, const char *name)
{
    for (const struct conf_key *key = section->keys; key->name; key++) {
        if (key->slurm && str_ieq(key->slurm, name))
            return key;
    }
    return NULL;
}

void slurmconf_pair(struct slurmconf *sc, enum slurmconf_scope scope, struct conf_item *item,
                    const struct slurmconf_pair *pair, struct conf_origin at)
{
    struct slurmconf_match match;
    struct conf_source source = { .at = at, .as = pair->key };

    if (!slurmconf_find(scope, pair->key, &match)) {
        conf_note_add(
            sc->conf, CONF_NOTE_ERROR, at, "unknown key '%.48s'%s%s%s", pair->key,
            kinds[scope].leader ? " on a line of " : "",
            kinds[scope].leader ? kinds[scope].leader : "",
            conf_notes_full(sc->conf) ? "" : slurmconf_guess(scope, pair->key, &sc->conf->arena));
        return;
    }
    if (match.section && item && match.section != item->section &&
        !(match.key = key_of_section(item->section, match.name))) {
        conf_note_add(sc->conf, CONF_NOTE_ERROR, at, "%s does not belong on this line", match.name);
        return;
    }
    source.as = arena_strdup(&sc->conf->arena, match.name);
    sc->item = item;
    if (match.row && match.row->set) {
        match.row->set(sc, source, pair->value);
        if (match.row->keep)
            slurmconf_keep(sc->conf, match.name, pair->value);
    } else if (match.row) {
        slurmconf_note_row(sc, match.row, pair->value, at);
        if (scope == SLURMCONF_GLOBAL)
            slurmconf_keep(sc->conf, match.name, pair->value);
    } else {
        slurmconf_put_key(sc, item ? item : conf_single(sc->conf, match.section), match.key, source,
                          pair->value);
    }
}

static bool has_key(const struct slurmconf_line *line, const char *key)
{
    for (size_t i = 0; i < line->pairs.len; i++) {
        if (str_ieq(line->pairs.items[i].key, key))
            return true;
    }
    return false;
}

static void keep_default(struct slurmconf *sc, enum slurmconf_scope scope,
                         const struct slurmconf_pair *pair, struct conf_origin at)
{
    struct slurmconf_match match;

    if (!slurmconf_find(scope, pair->key, &match)) {
        slurmconf_pair(sc, scope, NULL, pair, at); /* says so, here and not on every line */
        return;
    }
    vec_each (struct slurmconf_default, old, &sc->defaults) {
        if (old->scope == scope && str_ieq(old->key, pair->key)) {
            old->value = pair->value;
            return;
        }
    }
    vec_push(&sc->defaults, (struct slurmconf_default){ scope, pair->key, pair->value });
}

/* Every pair of the line but the first, then the defaults it does not override. */
static void fill_item(struct slurmconf *sc, enum slurmconf_scope scope, struct conf_item *item,
                      const struct slurmconf_line *line)
{
    for (size_t i = 0; i < line->pairs.len; i++)
        slurmconf_pair(sc, scope, item, &line->pairs.items[i], line->at);
    for (size_t i = 0; i < sc->defaults.len; i++) {
        const struct slurmconf_default *def = &sc->defaults.items[i];
        struct slurmconf_pair pair = { def->key, def->value };

        if (def->scope == scope && !has_key(line, def->key))
            slurmconf_pair(sc, scope, item, &pair, line->at);
    }
}

/* topology.conf says what a line is by its key. */
static const char *topology_section(const struct slurmconf_line *line)
{
    if (has_key(line, "SwitchName"))
        return "switches";
    return has_key(line, "BlockName") ? "blocks" : NULL;
}

static const char *port_of(struct slurmconf *sc, const struct slurmconf_line *line)
{
    const char *port = NULL;

    vec_each (struct slurmconf_default, def, &sc->defaults)
        port = def->scope == SLURMCONF_NODE && str_ieq(def->key, "Port") ? def->value : port;
    for (size_t i = 0; i < line->pairs.len; i++) {
        if (str_ieq(line->pairs.items[i].key, "Port"))
            port = line->pairs.items[i].value;
    }
    /* 17001-17008 is [17001-17008] of a list of names. */
    return port && !strchr(port, '[') && strpbrk(port, "-,")
               ? arena_printf(&sc->conf->arena, "[%s]", port)
               : port;
}

/* The name at `index` of a list in a pair, when the list is as long as the nodes. */
static const char *pick(struct slurmconf *sc, const char *text, uint64_t index)
{
    CLEANUP(hostlist_done) struct hostlist list = { 0 };
    struct str out = { 0 };
    const char *result = text;

    if (hostlist_parse(&list, text, NULL) == 0 && hostlist_count(&list) > 1 &&
        hostlist_nth(&list, index, &out))
        result = arena_strdup(&sc->conf->arena, str_text(&out));
    str_done(&out);
    return result;
}

/* A line with a range of ports is many nodes on one host, each with its own: one section each. */
static bool split_ports(struct slurmconf *sc, const struct slurmconf_line *line)
{
    static const char *const paired[] = { "NodeName", "NodeAddr", "NodeHostname" };
    const char *port = port_of(sc, line);
    uint64_t ports, names;

    if (!port || hostlist_count_text(port, &ports, NULL) < 0 || ports < 2)
        return false;
    if (hostlist_count_text(line->pairs.items[0].value, &names, NULL) < 0 || names > LIMIT_NODES)
        return false;
    if (ports != names) {
        conf_note_add(sc->conf, CONF_NOTE_ERROR, line->at,
                      "Port=%.64s has %llu entries for %llu names", port, (unsigned long long)ports,
                      (unsigned long long)names);
        return true;
    }
    for (uint64_t i = 0; i < names; i++) {
        struct slurmconf_line one = { .at = line->at };

        for (size_t k = 0; k < line->pairs.len; k++) {
            struct slurmconf_pair pair = line->pairs.items[k];

            if (str_ieq(pair.key, "Port"))
                continue;
            for (size_t m = 0; m < ARRAY_LEN(paired); m++) {
                if (str_ieq(pair.key, paired[m]))
                    pair.value = pick(sc, pair.value, i);
            }
            vec_push(&one.pairs, pair);
        }
        vec_push(&one.pairs, ((struct slurmconf_pair){ "Port", pick(sc, port, i) }));
        slurmconf_read_line(sc, SLURMCONF_NODE, &one);
        vec_done(&one.pairs);
    }
    return true;
}

/* Lines of things that do not exist here, said once for each kind. */
static const struct slurmconf_key no_frontend = { .name = "FrontendName",
                                                  .lacks = true,
                                                  .why = "every node runs its own agent" };
static const struct slurmconf_key no_power = { .name = "PowerAction",
                                               .lacks = true,
                                               .why = "nodes are not powered down" };

void slurmconf_read_line(struct slurmconf *sc, enum slurmconf_scope scope,
                         const struct slurmconf_line *line)
{
    const char *section = kinds[scope].section;

    if (scope == SLURMCONF_FRONTEND || scope == SLURMCONF_POWER) {
        slurmconf_note_row(sc, scope == SLURMCONF_POWER ? &no_power : &no_frontend,
                           line->pairs.items[0].value, line->at);
        return;
    }
    if (scope == SLURMCONF_TOPOLOGY && !(section = topology_section(line))) {
        vec_each (struct slurmconf_pair, pair, &line->pairs)
            slurmconf_pair(sc, scope, NULL, pair, line->at);
        return;
    }
    if (str_ieq(line->pairs.items[0].value, "DEFAULT") &&
        (scope == SLURMCONF_NODE || scope == SLURMCONF_PARTITION)) {
        for (size_t i = 1; i < line->pairs.len; i++)
            keep_default(sc, scope, &line->pairs.items[i], line->at);
        return;
    }
    if (scope == SLURMCONF_NODE && split_ports(sc, line))
        return;
    sc->line = line;
    fill_item(sc, scope, conf_list_add(sc->conf, conf_section_find(section), line->at), line);
    sc->line = NULL;
}
