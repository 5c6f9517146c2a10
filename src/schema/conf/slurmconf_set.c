/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slurmconf_set.c - keys of slurm.conf that take another shape here
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/timefmt.h"
#include "schema/conf/slurmconf.h"

static const char *copy(struct slurmconf *sc, const char *text)
{
    return arena_strdup(&sc->conf->arena, text);
}

void slurmconf_set_port(struct slurmconf *sc, struct conf_source source, const char *value)
{
    sc->ctld_port = copy(sc, value);
    sc->ctld_port_at = source.at;
}

void slurmconf_set_host(struct slurmconf *sc, struct conf_source source, const char *value)
{
    const char *paren = strchr(value, '(');

    if (!*value || (paren && (paren == value || !str_ends(value, ")")))) {
        conf_note_add(sc->conf, CONF_NOTE_ERROR, source.at,
                      "%s = %s: expected host or host(address)", source.as,
                      conf_shown(sc->conf, value));
        return;
    }
    vec_push(&sc->hosts, copy(sc, value));
    sc->hosts_at = source.at;
}

/* The names before SlurmctldHost: one controller and a list of others, addresses apart. */
void slurmconf_set_control(struct slurmconf *sc, struct conf_source source, const char *value)
{
    slurmconf_set_host(sc, source, value);
    if (sc->hosts.len > 1) {
        const char *first = sc->hosts.items[sc->hosts.len - 1];

        memmove(&sc->hosts.items[1], &sc->hosts.items[0],
                (sc->hosts.len - 1) * sizeof(sc->hosts.items[0]));
        sc->hosts.items[0] = first;
    }
}

void slurmconf_set_backup(struct slurmconf *sc, struct conf_source source, const char *value)
{
    const char *cursor = value;
    struct span word;

    while (str_next(&cursor, ",", &word))
        slurmconf_set_host(sc, source, arena_strndup(&sc->conf->arena, word.ptr, word.len));
}

static void set_addr(struct slurmconf *sc, size_t index, const char *value)
{
    while (sc->addrs.len <= index)
        vec_push(&sc->addrs, NULL);
    sc->addrs.items[index] = copy(sc, value);
}

void slurmconf_set_control_addr(struct slurmconf *sc, struct conf_source source, const char *value)
{
    set_addr(sc, 0, value);
}

void slurmconf_set_backup_addr(struct slurmconf *sc, struct conf_source source, const char *value)
{
    const char *cursor = value;
    struct span word;

    for (size_t i = 1; str_next(&cursor, ",", &word); i++)
        set_addr(sc, i, arena_strndup(&sc->conf->arena, word.ptr, word.len));
}

void slurmconf_set_dbd_host(struct slurmconf *sc, struct conf_source source, const char *value)
{
    sc->dbd_host = copy(sc, value);
    sc->dbd_at = source.at;
}

void slurmconf_set_dbd_port(struct slurmconf *sc, struct conf_source source, const char *value)
{
    sc->dbd_port = copy(sc, value);
    sc->dbd_at = source.at;
}

void slurmconf_set_dbd_type(struct slurmconf *sc, struct conf_source source, const char *value)
{
    const char *slash = strchr(value, '/'), *type = slash ? slash + 1 : value;

    sc->dbd_type = copy(sc, type);
    sc->dbd_at = source.at;
    if (!str_ieq(type, "slurmdbd") && !str_ieq(type, "none") && !str_eq(type, "(null)"))
        conf_note_add(sc->conf, CONF_NOTE_WARNING, source.at,
                      "%s=%s: there is no such accounting here; 'slurmdbd' names spurdbd",
                      source.as, value);
}

static void settle_hosts(struct slurmconf *sc)
{
    const struct conf_section *section = conf_section_find("controller");
    struct conf_source source = { .at = sc->hosts_at, .as = "SlurmctldHost" };

    for (size_t i = 0; i < sc->hosts.len && i < sc->addrs.len; i++) {
        if (sc->addrs.items[i] && !strchr(sc->hosts.items[i], '('))
            sc->hosts.items[i] =
                arena_printf(&sc->conf->arena, "%s(%s)", sc->hosts.items[i], sc->addrs.items[i]);
    }
    if (sc->hosts.len)
        conf_set(sc->conf, conf_single(sc->conf, section), conf_key_find(section, "hosts"), source,
                 sc->hosts.items, sc->hosts.len);
}

static void settle_port(struct slurmconf *sc)
{
    struct conf_source source = { .at = sc->ctld_port_at, .as = "SlurmctldPort" };
    size_t first = sc->ctld_port ? strcspn(sc->ctld_port, "-") : 0;
    int64_t number;

    if (!sc->ctld_port)
        return;
    if (!str_to_i64(arena_strndup(&sc->conf->arena, sc->ctld_port, first), 1, 65535, &number))
        conf_note_add(sc->conf, CONF_NOTE_ERROR, source.at, "SlurmctldPort = %s: expected a port",
                      conf_shown(sc->conf, sc->ctld_port));
    else
        slurmconf_put(sc, "controller.listen_addr", source,
                      arena_printf(&sc->conf->arena, "[::]:%lld", (long long)number));
    if (sc->ctld_port[first])
        conf_note_add(sc->conf, CONF_NOTE_KEPT, source.at,
                      "SlurmctldPort=%s: one port is enough here; the first is used",
                      sc->ctld_port);
}

static void settle_dbd(struct slurmconf *sc)
{
    struct conf_source source = { .at = sc->dbd_at, .as = "AccountingStorageHost" };
    const char *port = sc->dbd_port && !str_eq(sc->dbd_port, "0") ? sc->dbd_port : "6819";

    if (sc->dbd_type && str_ieq(sc->dbd_type, "slurmdbd"))
        slurmconf_put(sc, "accounting.addr", source,
                      arena_printf(&sc->conf->arena, "http://%s:%s",
                                   sc->dbd_host ? sc->dbd_host : "localhost", port));
    else if (sc->dbd_type && str_ieq(sc->dbd_type, "none"))
        slurmconf_put(sc, "accounting.enabled", source, "false");
    else if (sc->dbd_host)
        conf_note_add(sc->conf, CONF_NOTE_KEPT, sc->dbd_at,
                      "AccountingStorageHost=%s changes nothing here: AccountingStorageType is not "
                      "accounting_storage/slurmdbd",
                      sc->dbd_host);
}

void slurmconf_settle(struct slurmconf *sc)
{
    settle_hosts(sc);
    settle_port(sc);
    settle_dbd(sc);
}

/* A bare number is minutes in Slurm and would be days here. */
void slurmconf_set_decay(struct slurmconf *sc, struct conf_source source, const char *value)
{
    struct str text = { 0 };
    int64_t seconds;

    if (timefmt_read_duration(value, &seconds, NULL) < 0 || seconds < 0) {
        conf_note_add(sc->conf, CONF_NOTE_ERROR, source.at, "%s = %s: expected a time", source.as,
                      conf_shown(sc->conf, value));
        return;
    }
    if (seconds % 86400)
        timefmt_write_duration(&text, seconds, TIMEFMT_LONG);
    else
        str_add_i64(&text, seconds / 86400);
    slurmconf_put(sc, "scheduler.fairshare_halflife_days", source, str_text(&text));
    str_done(&text);
}

void slurmconf_set_enforce(struct slurmconf *sc, struct conf_source source, const char *value)
{
    slurmconf_put(sc, "scheduler.enforce_part_limits", source,
                  str_ieq(value, "YES") ? "ALL" : value);
}

static void set_debug(struct slurmconf *sc, const char *to, struct conf_source source,
                      const char *value)
{
    static const char *const by_number[] = { "quiet", "fatal",  "error",  "info",   "verbose",
                                             "debug", "debug2", "debug3", "debug4", "debug5" };

    if (*value >= '0' && *value <= '9' && !value[1])
        value = by_number[*value - '0'];
    slurmconf_put(sc, to, source, value);
}

void slurmconf_set_ctld_debug(struct slurmconf *sc, struct conf_source source, const char *value)
{
    set_debug(sc, "controller.log_level", source, value);
}

void slurmconf_set_node_debug(struct slurmconf *sc, struct conf_source source, const char *value)
{
    set_debug(sc, "agent.log_level", source, value);
}

void slurmconf_set_topology(struct slurmconf *sc, struct conf_source source, const char *value)
{
    const char *slash = strchr(value, '/'), *plugin = slash ? slash + 1 : value;

    if (str_ieq(plugin, "none") || str_ieq(plugin, "default"))
        plugin = "flat";
    if (str_ieq(plugin, "3d_torus"))
        conf_note_add(sc->conf, CONF_NOTE_WARNING, source.at,
                      "%s=%s is not supported: all nodes count as equally far", source.as, value);
    else
        slurmconf_put(sc, "topology.plugin", source, plugin);
}

static void note(struct slurmconf *sc, bool lacks, struct conf_source source, const char *value,
                 const char *why)
{
    conf_note_add(sc->conf, lacks ? CONF_NOTE_WARNING : CONF_NOTE_KEPT, source.at, "%s=%s %s: %s",
                  source.as, value, lacks ? "is not supported" : "changes nothing here", why);
}

void slurmconf_set_select_type(struct slurmconf *sc, struct conf_source source, const char *value)
{
    if (str_ends(value, "linear"))
        note(
            sc, true, source, value,
            "CPUs are given one by one; a partition with OverSubscribe=EXCLUSIVE gives whole nodes");
    else
        note(sc, false, source, value, "CPUs, memory and generic resources are always tracked");
}

void slurmconf_set_auth_type(struct slurmconf *sc, struct conf_source source, const char *value)
{
    if (str_ends(value, "none"))
        note(sc, true, source, value, "every call has a verified identity");
    else
        note(sc, false, source, value,
             "users are known by the kernel, MUNGE or a token, whichever there is");
}

/* One word of a list: sets what it stands for, or says why not. True when it was used. */
static bool use_word(struct slurmconf *sc, struct conf_source source, const char *word)
{
    const char *eq = strchr(word, '=');
    size_t len = eq ? (size_t)(eq - word) : strlen(word);

    for (size_t i = 0; i < slurmconf_word_count; i++) {
        const struct slurmconf_word *row = &slurmconf_words[i];
        size_t row_len = strcspn(row->word, "=");

        if (!str_ieq(row->key, source.as) || row_len != len ||
            strncasecmp(row->word, word, len) != 0)
            continue;
        if (row->to) {
            source.as = arena_printf(&sc->conf->arena, "%s of %s", row->word, source.as);
            slurmconf_put(sc, row->to, source, eq ? eq + 1 : "true");
        } else {
            conf_note_add(sc->conf, row->lacks ? CONF_NOTE_WARNING : CONF_NOTE_KEPT, source.at,
                          "%s: %s %s: %s", source.as, word,
                          row->lacks ? "is not supported" : "changes nothing here", row->why);
        }
        return true;
    }
    return false;
}

void slurmconf_set_words(struct slurmconf *sc, struct conf_source source, const char *value)
{
    const char *cursor = value;
    struct span span;

    while (str_next(&cursor, ",", &span)) {
        const char *word = arena_strndup(&sc->conf->arena, span.ptr, span.len);
        struct conf_guess guess = { .wanted = word };

        if (str_eq(word, "(null)") || str_ieq(word, "none") || use_word(sc, source, word))
            continue;
        for (size_t i = 0; i < slurmconf_word_count; i++) {
            if (str_ieq(slurmconf_words[i].key, source.as))
                conf_guess(&guess, slurmconf_words[i].word);
        }
        conf_note_add(sc->conf, CONF_NOTE_WARNING, source.at,
                      "%s: '%s' is no word of Slurm's either%s", source.as, word,
                      conf_guess_text(&guess, &sc->conf->arena));
    }
}

void slurmconf_set_job_defaults(struct slurmconf *sc, struct conf_source source, const char *value)
{
    static const struct {
        const char *word, *to, *to_line;
    } words[] = { { "DefCpuPerGPU=", "jobs.def_cpu_per_gpu", "def_cpu_per_gpu" },
                  { "DefMemPerGPU=", "jobs.def_mem_per_gpu", "def_mem_per_gpu" } };
    const char *cursor = value;
    struct span span;

    while (str_next(&cursor, ",", &span)) {
        const char *word = arena_strndup(&sc->conf->arena, span.ptr, span.len);
        bool used = false;

        for (size_t i = 0; i < ARRAY_LEN(words); i++) {
            if (!str_istarts(word, words[i].word))
                continue;
            slurmconf_put(sc, sc->item ? words[i].to_line : words[i].to, source,
                          strchr(word, '=') + 1);
            used = true;
        }
        if (!used)
            conf_note_add(sc->conf, CONF_NOTE_ERROR, source.at,
                          "%s = %s: expected DefCpuPerGPU= or DefMemPerGPU=", source.as,
                          conf_shown(sc->conf, word));
    }
}

void slurmconf_set_exclusive(struct slurmconf *sc, struct conf_source source, const char *value)
{
    if (str_ieq(value, "NODE") || str_ieq(value, "YES"))
        slurmconf_put(sc, "oversubscribe", source, "EXCLUSIVE");
    else if (str_ieq(value, "USER"))
        slurmconf_put(sc, "exclusive_user", source, "true");
    else if (str_ieq(value, "TOPO"))
        note(sc, true, source, value, "blocks are not given to one job alone");
    else if (!str_ieq(value, "NO"))
        conf_note_add(sc->conf, CONF_NOTE_ERROR, source.at,
                      "%s = %s: expected NO, NODE, USER or TOPO", source.as,
                      conf_shown(sc->conf, value));
}

/* Sockets of one board; the line, or a default, may say how many boards there are. */
void slurmconf_set_sockets_per_board(struct slurmconf *sc, struct conf_source source,
                                     const char *value)
{
    const char *boards_text = "1";
    int64_t boards, sockets;

    vec_each (struct slurmconf_default, def, &sc->defaults)
        boards_text =
            def->scope == SLURMCONF_NODE && str_ieq(def->key, "Boards") ? def->value : boards_text;
    for (size_t i = 0; sc->line && i < sc->line->pairs.len; i++) {
        if (str_ieq(sc->line->pairs.items[i].key, "Boards"))
            boards_text = sc->line->pairs.items[i].value;
    }
    if (str_to_i64(boards_text, 1, 65535, &boards) && str_to_i64(value, 1, 65535, &sockets))
        value = arena_printf(&sc->conf->arena, "%lld", (long long)(boards * sockets));
    slurmconf_put(sc, "sockets", source, value);
}

/* job_container/tmpfs, which is namespace/tmpfs of later releases. */
void slurmconf_set_container_type(struct slurmconf *sc, struct conf_source source,
                                  const char *value)
{
    const char *slash = strrchr(value, '/');
    const char *kind = slash ? slash + 1 : value;

    sc->private_dirs = str_ieq(kind, "tmpfs");
    if (!sc->private_dirs && !str_ieq(kind, "none"))
        conf_note_add(sc->conf, CONF_NOTE_WARNING, source.at,
                      "%s=%s: only tmpfs is known: jobs get no private directories", source.as,
                      value);
}

void slurmconf_set_block_sizes(struct slurmconf *sc, struct conf_source source, const char *value)
{
    slurmconf_put(sc, "topology.block_sizes", source, value);
}

/* States that a node gets by itself were once written into slurm.conf too. */
void slurmconf_set_node_state(struct slurmconf *sc, struct conf_source source, const char *value)
{
    if (str_ieq(value, "IDLE") || str_ieq(value, "ALLOCATED") || str_ieq(value, "RESUME"))
        value = "UNKNOWN";
    slurmconf_put(sc, "state", source, value);
}
