/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_check.c - what must agree between the values of a configuration: nodes and partitions
 *
 * Also fills in what follows from other values, so that whoever uses the messages need not.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/bitset.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/size.h"
#include "schema/conf/conf_priv.h"

/* The origin of a key of an item, or of its header when the key was not given. */
static struct conf_origin origin(const struct conf_item *item, const char *name)
{
    const struct conf_key *key = conf_key_find(item->section, name);
    struct conf_origin at = *conf_key_origin(item, key);

    return at.line ? at : item->at;
}

static bool is_given(const struct conf_item *item, const char *name)
{
    return conf_key_origin(item, conf_key_find(item->section, name))->line != 0;
}

static const char *called(const struct conf *conf, const struct conf_item *item, const char *name)
{
    return conf_called(conf, item->section, name);
}

static const char *kind(const struct conf *conf, const struct conf_item *item)
{
    return conf_kind(conf, item->section);
}

static uint64_t count_hosts(const char *text)
{
    uint64_t count = 0;

    return text && hostlist_count_text(text, &count, NULL) == 0 ? count : 0;
}

/* Names that are used twice, over all items of a section. */
static void check_unique(struct conf *conf, const char *section, const char *key)
{
    struct map seen;

    map_init(&seen);
    for (size_t i = 0; i < conf->items.len; i++) {
        struct conf_item *item = &conf->items.items[i], *before;
        const struct conf_key *row;
        const char *name;

        if (strcmp(item->section->name, section) != 0)
            continue;
        row = conf_key_find(item->section, key);
        if (!conf_field_count(item->message, conf_key_field(item->section, row)))
            continue;
        name = conf_field_text(item->message, conf_key_field(item->section, row), 0);
        before = map_get(&seen, name);
        if (before)
            conf_note_add(conf, CONF_NOTE_ERROR, origin(item, key),
                          "%s '%s' was defined already at line %u", kind(conf, item), name,
                          origin(before, key).line);
        else
            map_put(&seen, name, item);
    }
    map_done(&seen);
}

static void check_paired(struct conf *conf, const struct conf_item *item, const char *key,
                         const char *text, uint64_t names)
{
    uint64_t count = count_hosts(text);

    if (text && count != names && count != 1)
        conf_note_add(conf, CONF_NOTE_ERROR, origin(item, key),
                      "%s %s = \"%.64s\" has %llu entries for %llu names", kind(conf, item),
                      called(conf, item, key), text, (unsigned long long)count,
                      (unsigned long long)names);
}

/* What is not said of sockets, cores and threads follows from the CPUs, and the other way. */
static void complete_cpus(struct conf *conf, const struct conf_item *item, NodeSpec *node)
{
    uint64_t cores, total;

    if (!node->has_boards)
        node->has_boards = node->boards = 1;
    if (!node->has_cores_per_socket)
        node->has_cores_per_socket = node->cores_per_socket = 1;
    if (!node->has_threads_per_core)
        node->has_threads_per_core = node->threads_per_core = 1;
    total = (uint64_t)node->cores_per_socket * node->threads_per_core;
    if (!node->has_sockets) {
        node->has_sockets = 1;
        node->sockets = node->has_cpus && node->cpus >= total ? node->cpus / (uint32_t)total : 1;
    }
    cores = (uint64_t)node->sockets * node->cores_per_socket;
    total = cores * node->threads_per_core;
    if (!node->has_cpus) {
        node->has_cpus = 1;
        node->cpus = (uint32_t)MIN(total, (uint64_t)UINT32_MAX);
    }
    if (total > LIMIT_CPUS_PER_NODE)
        conf_note_add(conf, CONF_NOTE_ERROR, item->at,
                      "%s %.64s: %u sockets x %u cores x %u threads are more than %d CPUs",
                      kind(conf, item), node->name, node->sockets, node->cores_per_socket,
                      node->threads_per_core, LIMIT_CPUS_PER_NODE);
    else if (node->cpus != total && node->cpus != cores && node->cpus != node->sockets) {
        conf_note_add(
            conf, conf_lenient(conf), origin(item, "cpus"),
            "%s %.64s: %u CPUs are neither sockets (%u), cores (%llu) nor threads (%llu)%s",
            kind(conf, item), node->name, node->cpus, node->sockets, (unsigned long long)cores,
            (unsigned long long)total,
            conf->is_slurm ? "; the number of threads is used, as Slurm does" : "");
        node->cpus = (uint32_t)total;
    }
}

static void check_gres_known(struct conf *conf, const struct conf_item *item, const NodeSpec *node)
{
    const Config *config = &conf->config;

    for (size_t i = 0; config->n_gres_types && i < node->n_gres; i++) {
        bool known = false;

        for (size_t k = 0; k < config->n_gres_types; k++)
            known = known || str_eq(config->gres_types[k], node->gres[i]->name);
        if (!known)
            conf_note_add(conf, CONF_NOTE_ERROR, origin(item, "gres"),
                          "%s %.64s: resource '%s' is not in %s", kind(conf, item), node->name,
                          node->gres[i]->name, conf->is_slurm ? "GresTypes" : "jobs.gres_types");
    }
    if (node->n_gres > LIMIT_GRES_KINDS)
        conf_note_add(conf, CONF_NOTE_ERROR, origin(item, "gres"),
                      "%s %.64s: more than %d kinds of resources", kind(conf, item), node->name,
                      LIMIT_GRES_KINDS);
}

/* CPUs that it has, and some of them left for jobs. */
static void check_spec_list(struct conf *conf, const struct conf_item *item, const NodeSpec *node)
{
    uint32_t cpus = MIN(node->cpus, LIMIT_CPUS_PER_NODE);
    uint32_t threads = MAX(node->threads_per_core, 1);
    struct bitset list;

    bitset_init(&list, MAX(cpus, 1));
    bool good = bitset_parse(&list, node->cpu_spec_list);
    for (uint32_t core = 0; good && core < cpus; core += threads) {
        if (bitset_next(&list, core) < MIN(core + threads, cpus))
            bitset_add_range(&list, core, MIN(core + threads, cpus) - 1);
    }
    bool all = good && bitset_count(&list) == cpus;
    bitset_done(&list);
    if (!good)
        conf_note_add(conf, CONF_NOTE_ERROR, origin(item, "cpu_spec_list"),
                      "%s %.64s: %s = '%.64s' is no list of its CPUs 0-%u", kind(conf, item),
                      node->name, called(conf, item, "cpu_spec_list"), node->cpu_spec_list,
                      cpus - 1);
    else if (all)
        conf_note_add(conf, CONF_NOTE_ERROR, origin(item, "cpu_spec_list"),
                      "%s %.64s: %s = '%.64s' leaves none of %u CPUs", kind(conf, item), node->name,
                      called(conf, item, "cpu_spec_list"), node->cpu_spec_list, cpus);
    else if (node->core_spec)
        conf_note_add(conf, CONF_NOTE_WARNING, origin(item, "core_spec"),
                      "%s %.64s: %s says which CPUs are kept; %s is not used", kind(conf, item),
                      node->name, called(conf, item, "cpu_spec_list"),
                      called(conf, item, "core_spec"));
}

static void check_node(struct conf *conf, const struct conf_item *item, uint64_t *total)
{
    NodeSpec *node = (NodeSpec *)item->message;
    uint64_t names = count_hosts(node->name);

    if (!node->name)
        return;
    *total += names;
    check_paired(conf, item, "addr", node->addr, names);
    check_paired(conf, item, "hostname", node->hostname, names);
    complete_cpus(conf, item, node);
    check_gres_known(conf, item, node);
    if (node->has_mem_spec_mb && node->mem_spec_mb >= node->memory_mb)
        conf_note_add(conf, CONF_NOTE_ERROR, origin(item, "mem_spec_mb"),
                      "%s %.64s: %s = %llu leaves nothing of %s = %llu", kind(conf, item),
                      node->name, called(conf, item, "mem_spec_mb"),
                      (unsigned long long)node->mem_spec_mb, called(conf, item, "memory_mb"),
                      (unsigned long long)node->memory_mb);
    if (node->has_core_spec && node->core_spec >= node->sockets * node->cores_per_socket)
        conf_note_add(conf, CONF_NOTE_ERROR, origin(item, "core_spec"),
                      "%s %.64s: %s = %u leaves none of %u cores", kind(conf, item), node->name,
                      called(conf, item, "core_spec"), node->core_spec,
                      node->sockets * node->cores_per_socket);
    if (!str_is_empty(node->cpu_spec_list))
        check_spec_list(conf, item, node);
    if (!is_given(item, "memory_mb"))
        conf_note_add(conf, CONF_NOTE_WARNING, item->at,
                      "%s %.64s: no %s, so 1 MB is all that jobs can have", kind(conf, item),
                      node->name, called(conf, item, "memory_mb"));
}

/* Every node once. Says which name is there twice, for the first few. */
static void check_node_names(struct conf *conf)
{
    enum { SHOW = 5 };
    unsigned shown = 0;
    struct map seen;

    map_init(&seen);
    vec_each (struct conf_item, item, &conf->items) {
        CLEANUP(hostlist_done) struct hostlist names = { 0 };
        const NodeSpec *node = (const NodeSpec *)item->message;

        if (strcmp(item->section->name, "nodes") != 0 || !node->name ||
            hostlist_parse(&names, node->name, NULL) < 0)
            continue;
        hostlist_each (host, &names) {
            struct conf_item *before = map_get(&seen, host.name);

            if (!before)
                map_put(&seen, host.name, item);
            else if (shown++ < SHOW)
                conf_note_add(conf, CONF_NOTE_ERROR, origin(item, "names"),
                              "node '%s' was defined already at line %u", host.name,
                              origin(before, "names").line);
        }
    }
    map_done(&seen);
}

static void check_nodes(struct conf *conf)
{
    uint64_t total = 0;

    for (size_t i = 0; i < conf->items.len; i++) {
        if (strcmp(conf->items.items[i].section->name, "nodes") == 0)
            check_node(conf, &conf->items.items[i], &total);
    }
    if (total > LIMIT_NODES) {
        conf_note_add(conf, CONF_NOTE_ERROR, (struct conf_origin){ conf->file, 1 },
                      "%llu nodes are more than %d", (unsigned long long)total, LIMIT_NODES);
        conf->no_expansion = true;
    } else {
        check_node_names(conf);
    }
}

static bool oversubscribe_ok(const char *text)
{
    int64_t count;

    if (strcmp(text, "NO") == 0 || strcmp(text, "EXCLUSIVE") == 0 || strcmp(text, "YES") == 0 ||
        strcmp(text, "FORCE") == 0)
        return true;
    if (str_starts(text, "YES:") || str_starts(text, "FORCE:"))
        return str_to_i64(strchr(text, ':') + 1, 1, 32767, &count);
    return false;
}

static void check_oversubscribe(struct conf *conf, const struct conf_item *item,
                                const PartitionSpec *part)
{
    for (char *p = part->oversubscribe; p && *p; p++)
        *p = *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p;
    if (part->oversubscribe && !oversubscribe_ok(part->oversubscribe))
        conf_note_add(
            conf, CONF_NOTE_ERROR, origin(item, "oversubscribe"),
            "%s %s = %s: expected \"NO\", \"EXCLUSIVE\", \"YES\", \"YES:4\", \"FORCE\" or "
            "\"FORCE:4\"",
            kind(conf, item), called(conf, item, "oversubscribe"),
            conf_shown(conf, part->oversubscribe));
}

/* ["ALL"] is no restriction. */
static void drop_all(size_t *count, char **names)
{
    if (*count == 1 && str_ieq(names[0], "ALL"))
        *count = 0;
}

static void check_partition(struct conf *conf, const struct conf_item *item)
{
    PartitionSpec *part = (PartitionSpec *)item->message;
    CLEANUP(hostlist_done) struct hostlist hosts = { 0 };
    struct err err = { 0 };

    drop_all(&part->n_allow_groups, part->allow_groups);
    drop_all(&part->n_allow_accounts, part->allow_accounts);
    drop_all(&part->n_allow_qos, part->allow_qos);
    drop_all(&part->n_allow_alloc_nodes, part->allow_alloc_nodes);
    check_oversubscribe(conf, item, part);
    if (part->has_default_time_s && part->max_time_s >= 0 &&
        (part->default_time_s < 0 || part->default_time_s > part->max_time_s))
        conf_note_add(conf, conf_lenient(conf), origin(item, "default_time"),
                      "%s '%s': %s is longer than %s", kind(conf, item), part->name,
                      called(conf, item, "default_time"), called(conf, item, "max_time"));
    if (part->has_max_nodes && part->min_nodes > part->max_nodes)
        conf_note_add(conf, CONF_NOTE_ERROR, origin(item, "min_nodes"),
                      "%s '%s': %s = %u is more than %s = %u", kind(conf, item), part->name,
                      called(conf, item, "min_nodes"), part->min_nodes,
                      called(conf, item, "max_nodes"), part->max_nodes);
    if (part->n_allow_accounts && part->n_deny_accounts)
        conf_note_add(conf, CONF_NOTE_WARNING, origin(item, "deny_accounts"),
                      "%s '%s': %s is not used where %s is given", kind(conf, item), part->name,
                      called(conf, item, "deny_accounts"), called(conf, item, "allow_accounts"));
    if (!conf->no_expansion && conf_hosts(&conf->config, part->nodes, &hosts, &err) < 0)
        conf_note_add(conf, CONF_NOTE_ERROR, origin(item, "nodes"), "%s '%s' %s = \"%.64s\": %s",
                      kind(conf, item), part->name, called(conf, item, "nodes"), part->nodes,
                      err.text);
    else if (!conf->no_expansion && !hostlist_count(&hosts))
        conf_note_add(conf, CONF_NOTE_WARNING, item->at, "%s '%s' has no nodes", kind(conf, item),
                      part->name);
}

static void check_default(struct conf *conf)
{
    PartitionSpec *chosen = NULL;

    vec_each (struct conf_item, item, &conf->items) {
        PartitionSpec *part = (PartitionSpec *)item->message;

        if (strcmp(item->section->name, "partitions") != 0 || !part->is_default)
            continue;
        if (chosen)
            conf_note_add(conf, conf_lenient(conf), origin(item, "default"),
                          "%s '%s' and '%s' are both the default%s", kind(conf, item), chosen->name,
                          part->name, conf->is_slurm ? "; the last one is used" : "");
        if (chosen && conf->is_slurm)
            chosen->is_default = 0;
        chosen = part;
    }
    if (!chosen && conf->config.n_partitions && !conf->counts[CONF_NOTE_ERROR])
        conf_note_add(conf, CONF_NOTE_WARNING, (struct conf_origin){ conf->file, 1 },
                      "no partition is the default: every job must name one");
}

static void check_alternate(struct conf *conf, const struct conf_item *item)
{
    const PartitionSpec *part = (const PartitionSpec *)item->message;

    for (size_t i = 0; part->alternate && i < conf->config.n_partitions; i++) {
        if (str_eq(conf->config.partitions[i]->name, part->alternate))
            return;
    }
    if (part->alternate)
        conf_note_add(conf, CONF_NOTE_ERROR, origin(item, "alternate"),
                      "%s '%s': there is no partition '%s' to be its alternate", kind(conf, item),
                      part->name, part->alternate);
}

static void check_partitions(struct conf *conf)
{
    vec_each (struct conf_item, item, &conf->items) {
        if (strcmp(item->section->name, "partitions") != 0 ||
            !((PartitionSpec *)item->message)->name)
            continue;
        check_partition(conf, item);
        check_alternate(conf, item);
    }
    check_unique(conf, "partitions", "name");
    check_default(conf);
    if (conf->counts[CONF_NOTE_ERROR])
        return; /* what is missing may be what is wrong */
    if (!conf->config.n_nodes)
        conf_note_add(conf, CONF_NOTE_WARNING, (struct conf_origin){ conf->file, 1 },
                      "there are no nodes");
    if (!conf->config.n_partitions)
        conf_note_add(conf, CONF_NOTE_WARNING, (struct conf_origin){ conf->file, 1 },
                      "there are no partitions, so no job can be submitted");
}

/* "12000-12999,13500" */
static bool are_ports(const char *text)
{
    struct span word;

    while (str_next(&text, ",", &word)) {
        char range[16];
        uint64_t low, high;
        snprintf(range, sizeof(range), "%.*s", (int)MIN(word.len, sizeof(range)), word.ptr);
        if (word.len >= sizeof(range) || size_read_range(range, 65535, &low, &high, NULL) < 0 ||
            low == 0)
            return false;
    }
    return true;
}

static void check_ports(struct conf *conf)
{
    const char *ports = conf->config.tcp_ports;

    vec_each (struct conf_item, item, &conf->items) {
        if (strcmp(item->section->name, "jobs") != 0 || str_is_empty(ports) || are_ports(ports))
            continue;
        conf_note_add(conf, CONF_NOTE_ERROR, origin(item, "mpi_ports"),
                      "%s = %s: expected ports and ranges of them, such as 12000-12999",
                      called(conf, item, "mpi_ports"), conf_shown(conf, ports));
        return;
    }
}

/* A word that hides nothing would be a promise that is not kept. */
static void check_private_data(struct conf *conf)
{
    static const char *const acting[] = { "accounts",     "jobs",  "nodes", "partitions",
                                          "reservations", "usage", "users" };
    const char *words = conf->config.private_data;
    struct span word;

    while (words && str_next(&words, ",", &word)) {
        bool acts = false;
        for (size_t i = 0; i < ARRAY_LEN(acting); i++)
            acts = acts ||
                   (strlen(acting[i]) == word.len && memcmp(acting[i], word.ptr, word.len) == 0);
        if (acts)
            continue;
        vec_each (struct conf_item, item, &conf->items) {
            if (strcmp(item->section->name, "access") != 0 || !is_given(item, "private_data"))
                continue;
            conf_note_add(
                conf, CONF_NOTE_ERROR, origin(item, "private_data"),
                "%s: '%.*s' would hide nothing in this version; remove it (accounts, jobs, "
                "nodes, partitions, reservations, usage and users act)",
                called(conf, item, "private_data"), (int)word.len, word.ptr);
            return;
        }
    }
}

/* "cpu=0.01,gres/gpu=1.2" */
static bool are_rates(const char *text)
{
    struct span word;

    while (str_next(&text, ",", &word)) {
        const char *equal = memchr(word.ptr, '=', word.len);
        char *end = NULL;
        if (!equal || equal == word.ptr || !isdigit((unsigned char)equal[1]))
            return false;
        double rate = strtod(equal + 1, &end);
        if (end != word.ptr + word.len || !(rate >= 0 && rate < 1e9))
            return false;
    }
    return true;
}

static void check_rates(struct conf *conf)
{
    const char *rates = conf->local.accounting_rates;

    vec_each (struct conf_item, item, &conf->items) {
        if (strcmp(item->section->name, "accounting") != 0 || str_is_empty(rates) ||
            are_rates(rates))
            continue;
        conf_note_add(conf, CONF_NOTE_ERROR, origin(item, "rates"),
                      "%s = %s: expected TRES with what an hour costs, such as "
                      "cpu=0.01,gres/gpu=1.2",
                      called(conf, item, "rates"), conf_shown(conf, rates));
        return;
    }
}

void conf_check(struct conf *conf)
{
    check_rates(conf);
    check_private_data(conf);
    check_ports(conf);
    check_nodes(conf);
    check_unique(conf, "nodesets", "name");
    check_unique(conf, "switches", "name");
    check_unique(conf, "blocks", "name");
    conf_check_lists(conf);
    check_partitions(conf);
}
