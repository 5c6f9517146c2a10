/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_check_lists.c - what must agree in the sections around nodes: sets, devices, topology, hosts
 */
#include <string.h>

#include "base/limits.h"
#include "base/map.h"
#include "schema/conf/conf_priv.h"

static struct conf_origin origin(const struct conf_item *item, const char *name)
{
    struct conf_origin at = *conf_key_origin(item, conf_key_find(item->section, name));

    return at.line ? at : item->at;
}

/* The hosts of a list are nodes (and, where sets are allowed, sets). */
static void check_hosts(struct conf *conf, const struct conf_item *item, const char *name,
                        const char *nodes)
{
    CLEANUP(hostlist_done) struct hostlist hosts = { 0 };
    struct err err = { 0 };

    if (nodes && !conf->no_expansion && conf_hosts(&conf->config, nodes, &hosts, &err) < 0)
        conf_note_add(conf, CONF_NOTE_ERROR, origin(item, "nodes"), "%s%s%s%s %s = \"%.64s\": %s",
                      conf_kind(conf, item->section), name ? " '" : "", name ? name : "",
                      name ? "'" : "", conf_called(conf, item->section, "nodes"), nodes, err.text);
}

static void check_nodeset(struct conf *conf, const struct conf_item *item)
{
    const ConfNodeSet *set = (const ConfNodeSet *)item->message;
    CLEANUP(hostlist_done) struct hostlist hosts = { 0 };
    Config bare = conf->config;

    if (!set->name)
        return;
    bare.n_nodesets = 0; /* a set does not hold sets */
    if (set->nodes && !conf->no_expansion) {
        struct err err = { 0 };

        if (conf_hosts(&bare, set->nodes, &hosts, &err) < 0)
            conf_note_add(conf, CONF_NOTE_ERROR, origin(item, "nodes"),
                          "%s '%s' %s = \"%.64s\": %s", conf_kind(conf, item->section), set->name,
                          conf_called(conf, item->section, "nodes"), set->nodes, err.text);
    }
    if (!conf->no_expansion && conf_hosts(&bare, set->name, &hosts, NULL) == 0)
        conf_note_add(conf, CONF_NOTE_ERROR, origin(item, "name"),
                      "%s '%s' is the name of a node%s", conf_kind(conf, item->section), set->name,
                      str_ieq(set->name, "ALL") ? " list, the list of all" : " too");
    if (!set->nodes && !set->feature)
        conf_note_add(conf, CONF_NOTE_ERROR, item->at, "%s '%s' has neither nodes nor a feature",
                      conf_kind(conf, item->section), set->name);
}

static uint64_t count_files(const ConfGres *gres)
{
    uint64_t count = 0;

    return gres->files && hostlist_count_text(gres->files, &count, NULL) == 0 ? count : 0;
}

static void check_gres(struct conf *conf, const struct conf_item *item)
{
    const ConfGres *gres = (const ConfGres *)item->message;
    struct err err = { 0 };
    uint64_t count;

    if (!gres->name && !gres->autodetect)
        conf_note_add(conf, CONF_NOTE_ERROR, item->at, "%s",
                      conf->is_slurm ? "the line has neither Name nor AutoDetect"
                                     : "[[gres]] has neither name nor autodetect");
    if (gres->files && hostlist_count_text(gres->files, &count, &err) < 0) {
        conf_note_add(conf, CONF_NOTE_ERROR, origin(item, "files"), "%s = %s: %s",
                      conf_called(conf, item->section, "files"), conf_shown(conf, gres->files),
                      err.text);
        conf->no_expansion = true;
        return;
    }
    if (gres->files && gres->has_count && gres->count != count_files(gres) && gres->name &&
        strcmp(gres->name, "gpu") == 0)
        conf_note_add(conf, CONF_NOTE_ERROR, origin(item, "count"),
                      "%s = %llu, but %s = \"%.64s\" are %llu",
                      conf_called(conf, item->section, "count"), (unsigned long long)gres->count,
                      conf_called(conf, item->section, "files"), gres->files,
                      (unsigned long long)count_files(gres));
    check_hosts(conf, item, gres->name, gres->nodes);
}

/* Devices given for a node that are more or fewer than its resources; the first such node. */
static int check_devices(void *ctx, const NodeSpec *node)
{
    struct conf *conf = ctx;

    for (size_t i = 0; i < node->n_gres; i++) {
        const GresInventory *gres = node->gres[i];

        if (gres->n_files && gres->n_files != gres->count && strcmp(gres->name, "gpu") == 0) {
            conf_note_add(conf, CONF_NOTE_WARNING, (struct conf_origin){ conf->file, 1 },
                          "node '%s' has %llu of %s%s%s, but %s %zu files", node->name,
                          (unsigned long long)gres->count, gres->name, gres->type ? ":" : "",
                          gres->type ? gres->type : "",
                          conf->is_slurm ? "gres.conf gives it" : "[[gres]] sections give it",
                          gres->n_files);
            return 1;
        }
    }
    return 0;
}

/* A tree: every switch under at most one other, and none under itself. */
static void check_switch(struct conf *conf, const struct conf_item *item, struct map *parents)
{
    const ConfSwitch *sw = (const ConfSwitch *)item->message;
    CLEANUP(hostlist_done) struct hostlist below = { 0 };

    if (!sw->name)
        return;
    check_hosts(conf, item, sw->name, sw->nodes);
    if (!sw->nodes == !sw->switches)
        conf_note_add(conf, CONF_NOTE_ERROR, item->at,
                      "%s '%s' must have nodes or switches, and not both",
                      conf_kind(conf, item->section), sw->name);
    if (!sw->switches || hostlist_parse(&below, sw->switches, NULL) < 0)
        return;
    hostlist_each (child, &below) {
        const char *before = map_get(parents, child.name);
        bool known = false;

        for (size_t i = 0; i < conf->config.n_switches; i++)
            known = known || str_eq(conf->config.switches[i]->name, child.name);
        if (!known)
            conf_note_add(conf, CONF_NOTE_ERROR, origin(item, "switches"),
                          "%s '%s': there is no switch '%s'", conf_kind(conf, item->section),
                          sw->name, child.name);
        else if (before)
            conf_note_add(conf, CONF_NOTE_ERROR, origin(item, "switches"),
                          "%s '%s' is under both '%s' and '%s'", conf_kind(conf, item->section),
                          child.name, before, sw->name);
        else
            map_put(parents, child.name, sw->name);
    }
}

static void check_cycles(struct conf *conf, const struct conf_item *item, const struct map *parents)
{
    const ConfSwitch *sw = (const ConfSwitch *)item->message;
    const char *at = sw->name;

    for (size_t steps = 0; at && steps <= conf->config.n_switches; steps++) {
        at = map_get(parents, at);
        if (at && strcmp(at, sw->name) == 0) {
            conf_note_add(conf, CONF_NOTE_ERROR, item->at, "%s '%s' is under itself",
                          conf_kind(conf, item->section), sw->name);
            return;
        }
    }
}

static void check_topology(struct conf *conf)
{
    const char *plugin = conf->config.topology_plugin;
    struct map parents;

    map_init(&parents);
    vec_each (struct conf_item, item, &conf->items) {
        if (strcmp(item->section->name, "switches") == 0)
            check_switch(conf, item, &parents);
        else if (strcmp(item->section->name, "blocks") == 0)
            check_hosts(conf, item, ((const ConfBlock *)item->message)->name,
                        ((const ConfBlock *)item->message)->nodes);
    }
    vec_each (struct conf_item, item, &conf->items) {
        if (strcmp(item->section->name, "switches") == 0 &&
            ((const ConfSwitch *)item->message)->name)
            check_cycles(conf, item, &parents);
    }
    map_done(&parents);
    if (!plugin)
        return;
    if (strcmp(plugin, "tree") == 0 && !conf->config.n_switches)
        conf_note_add(conf, CONF_NOTE_WARNING,
                      origin(conf_single(conf, conf_section_find("topology")), "plugin"),
                      "the topology is a tree, but there are no switches");
    if (strcmp(plugin, "block") == 0 && !conf->config.n_blocks)
        conf_note_add(conf, CONF_NOTE_WARNING,
                      origin(conf_single(conf, conf_section_find("topology")), "plugin"),
                      "the topology is of blocks, but there are no blocks");
}

static void check_controller(struct conf *conf)
{
    const struct conf_item *item = conf_single(conf, conf_section_find("controller"));
    const ConfLocal *local = &conf->local;

    if (!local->tls_cert != !local->tls_key)
        conf_note_add(conf, CONF_NOTE_ERROR, origin(item, local->tls_cert ? "tls_cert" : "tls_key"),
                      "controller.tls_cert and controller.tls_key need each other");
    if (local->n_hosts == 2 && !local->witness && !local->n_etcd)
        conf_note_add(conf, CONF_NOTE_WARNING, origin(item, "hosts"),
                      "two controllers are safe but no safer than one against a failure: writes "
                      "stop while one is away; add a third or a witness");
    for (size_t i = 0; i < local->n_hosts; i++) {
        for (size_t k = 0; k < i; k++) {
            if (strcmp(local->hosts[i], local->hosts[k]) == 0)
                conf_note_add(conf, CONF_NOTE_ERROR, origin(item, "hosts"),
                              "controller.hosts names '%s' twice", local->hosts[i]);
        }
    }
}

static void check_preemption(struct conf *conf)
{
    const struct conf_item *item = conf_single(conf, conf_section_find("preemption"));
    const Config *config = &conf->config;

    if (!config->preempt_mode || !config->preempt_type)
        return;
    if (strcmp(config->preempt_type, "none") != 0 && strcmp(config->preempt_mode, "OFF") == 0)
        conf_note_add(conf, conf_lenient(conf), origin(item, "type"),
                      "preemption.type = \"%s\" with mode \"OFF\" preempts nothing",
                      config->preempt_type);
    if (strcmp(config->preempt_type, "size") == 0 &&
        (!config->scheduler_order || strcmp(config->scheduler_order, "predict") != 0))
        conf_note_add(conf, CONF_NOTE_ERROR, origin(item, "type"),
                      "preemption.type = \"size\" needs scheduler.order = \"predict\"");
    if (strcmp(config->preempt_type, "size") == 0 && !strstr(config->preempt_mode, "REQUEUE") &&
        strcmp(config->preempt_mode, "OFF") != 0)
        conf_note_add(
            conf, CONF_NOTE_ERROR, origin(item, "mode"),
            "preemption.type = \"size\" needs mode \"REQUEUE\": jobs begin again from what "
            "they saved");
    if (strstr(config->preempt_mode, "SUSPEND") && !strstr(config->preempt_mode, "GANG"))
        conf_note_add(conf, CONF_NOTE_ERROR, origin(item, "mode"),
                      "preemption.mode SUSPEND needs GANG too, which resumes what was suspended");
}

/* What an agent could not mount. */
static void check_private(struct conf *conf)
{
    struct conf_item *item = conf_single(conf, conf_section_find("private"));
    const Config *config = &conf->config;

    if (config->n_private_dirs > LIMIT_PRIVATE_DIRS)
        conf_note_add(conf, CONF_NOTE_ERROR, origin(item, "dirs"), "private.dirs are more than %d",
                      LIMIT_PRIVATE_DIRS);
    for (size_t i = 0; i < config->n_private_dirs; i++) {
        const char *dir = config->private_dirs[i];
        size_t len = strlen(dir);
        if (dir[0] != '/' || len < 2 || dir[len - 1] == '/' || strpbrk(dir, "\t\n") ||
            strstr(dir, "//") || strstr(dir, "/.."))
            conf_note_add(conf, CONF_NOTE_ERROR, origin(item, "dirs"),
                          "private.dirs: \"%.64s\" is not the absolute path of a directory", dir);
    }
}

/* "rbps=200M": a word of io.max, with a unit of two's powers. */
static bool is_io_word(struct span word)
{
    static const char *const keys[] = { "rbps=", "wbps=", "riops=", "wiops=" };

    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        size_t len = strlen(keys[i]), digits = 0;
        if (word.len <= len || strncmp(word.ptr, keys[i], len) != 0)
            continue;
        while (len + digits < word.len && word.ptr[len + digits] >= '0' &&
               word.ptr[len + digits] <= '9')
            digits++;
        size_t rest = word.len - len - digits;
        return digits && digits <= 12 &&
               (rest == 0 || (rest == 1 && strchr("KMGT", word.ptr[len + digits])));
    }
    return false;
}

static void check_disks(struct conf *conf)
{
    struct conf_item *item = conf_single(conf, conf_section_find("cgroup"));
    const Config *config = &conf->config;

    for (size_t i = 0; i < config->n_io_max; i++) {
        const char *cursor = config->io_max[i];
        struct span word;
        bool good = str_next(&cursor, " ", &word) && word.ptr[0] == '/';
        size_t words = 0;
        while (good && str_next(&cursor, " ", &word)) {
            good = is_io_word(word);
            words++;
        }
        if (!good || !words)
            conf_note_add(conf, CONF_NOTE_ERROR, origin(item, "io_max"),
                          "cgroup.io_max: \"%.64s\" is not a device with rbps=, wbps=, riops= or "
                          "wiops= and a number",
                          config->io_max[i]);
    }
}

void conf_check_lists(struct conf *conf)
{
    for (size_t i = 0; i < conf->items.len; i++) {
        const struct conf_item *item = &conf->items.items[i];

        if (strcmp(item->section->name, "nodesets") == 0)
            check_nodeset(conf, item);
        else if (strcmp(item->section->name, "gres") == 0)
            check_gres(conf, item);
        else if (strcmp(item->section->name, "down") == 0)
            check_hosts(conf, item, NULL, ((const ConfDown *)item->message)->nodes);
    }
    if (!conf->no_expansion && conf->config.n_gres && !conf->counts[CONF_NOTE_ERROR])
        conf_each_node(&conf->config, check_devices, conf, NULL);
    check_disks(conf);
    check_topology(conf);
    check_controller(conf);
    check_preemption(conf);
    check_private(conf);
    conf_check_accounts(conf);
}
