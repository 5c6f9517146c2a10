/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_nodes.c - from groups of nodes to single nodes, and host lists that name node sets
 */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "schema/conf/conf_priv.h"

/* A message may come from elsewhere and lack what a file must have. */
static int parse(struct hostlist *list, const char *text, struct err *err)
{
    return text ? hostlist_parse(list, text, err) : 0;
}

static bool has_feature(const NodeSpec *group, const char *feature)
{
    for (size_t i = 0; i < group->n_features; i++) {
        if (strcmp(group->features[i], feature) == 0)
            return true;
    }
    return false;
}

static int add_set(const Config *config, const ConfNodeSet *set, struct hostlist *out,
                   struct err *err)
{
    if (parse(out, set->nodes, err) < 0)
        return -(int)ERR_SYNTAX;
    for (size_t i = 0; set->feature && i < config->n_nodes; i++) {
        if (has_feature(config->nodes[i], set->feature) &&
            parse(out, config->nodes[i]->name, err) < 0)
            return -(int)ERR_SYNTAX;
    }
    return 0;
}

static int add_all(const Config *config, struct hostlist *out, struct err *err)
{
    for (size_t i = 0; i < config->n_nodes; i++) {
        if (parse(out, config->nodes[i]->name, err) < 0)
            return -(int)ERR_SYNTAX;
    }
    return 0;
}

static const ConfNodeSet *find_set(const Config *config, const char *name)
{
    for (size_t i = 0; i < config->n_nodesets; i++) {
        if (config->nodesets[i]->name && strcmp(config->nodesets[i]->name, name) == 0)
            return config->nodesets[i];
    }
    return NULL;
}

/* The next word of a list, brackets kept whole: "a[1,3],b" has two. */
static bool next_word(const char **cursor, struct span *word)
{
    const char *p = *cursor;
    bool inside = false;

    while (*p == ',' || *p == ' ')
        p++;
    word->ptr = p;
    for (; *p && (inside || (*p != ',' && *p != ' ')); p++)
        inside = *p == '[' ? true : *p == ']' ? false : inside;
    word->len = (size_t)(p - word->ptr);
    *cursor = p;
    return word->len > 0;
}

/* ALL and the names of sets add their nodes to `out`; other words go to `hosts`. */
static int split_words(const Config *config, const char *text, struct hostlist *hosts,
                       struct hostlist *out, struct err *err)
{
    struct span word;

    while (next_word(&text, &word)) {
        CLEANUP(freep) char *name = mem_strndup(word.ptr, word.len);
        const ConfNodeSet *set = find_set(config, name);
        int result;

        if (set)
            result = add_set(config, set, out, err);
        else if (str_ieq(name, "ALL"))
            result = add_all(config, out, err);
        else
            result = parse(hosts, name, err);
        if (result < 0)
            return result;
    }
    return 0;
}

static int refuse_unknown(const struct hostlist *unknown, struct err *err)
{
    struct str text = { 0 };
    int code;

    hostlist_format(unknown, &text);
    if (text.len > 200) {
        str_truncate(&text, 200);
        str_add(&text, "...");
    }
    code = err_set(err, ERR_INVALID_NODE_NAME, "no node or node set is called %s", str_text(&text));
    str_done(&text);
    return code;
}

static int find_hosts(const Config *config, const char *text, bool check, struct hostlist *out,
                      struct err *err)
{
    CLEANUP(hostlist_done) struct hostlist hosts = { 0 }, known = { 0 }, found = { 0 };
    int result;

    if (!text || !*text)
        return 0;
    if ((result = split_words(config, text, &hosts, &found, err)) < 0 ||
        (check && (result = add_all(config, &known, err)) < 0))
        return result;
    if (check && !hostlist_within(&hosts, &known)) {
        if ((result = hostlist_minus(&hosts, &known, err)) < 0)
            return result;
        return refuse_unknown(&hosts, err);
    }
    if ((result = hostlist_union(&found, &hosts, err)) < 0)
        return result;
    return hostlist_union(out, &found, err);
}

int conf_hosts(const Config *config, const char *text, struct hostlist *out, struct err *err)
{
    return find_hosts(config, text, true, out, err);
}

int conf_hosts_named(const Config *config, const char *text, struct hostlist *out, struct err *err)
{
    return find_hosts(config, text, false, out, err);
}

/* What [[gres]] and [[down]] say, by node; built once per walk. */
struct expansion {
    const Config *config;
    struct arena arena; /* of one node */
    struct hostlist *gres_hosts, *down_hosts;
};

static void expansion_done(struct expansion *e)
{
    for (size_t i = 0; e->gres_hosts && i < e->config->n_gres; i++)
        hostlist_done(&e->gres_hosts[i]);
    for (size_t i = 0; e->down_hosts && i < e->config->n_down; i++)
        hostlist_done(&e->down_hosts[i]);
    free(e->gres_hosts);
    free(e->down_hosts);
    arena_done(&e->arena);
}

static int expansion_init(struct expansion *e, const Config *config, struct err *err)
{
    *e = (struct expansion){ .config = config };
    arena_init(&e->arena);
    e->gres_hosts = NEW_ARRAY(struct hostlist, config->n_gres + 1);
    e->down_hosts = NEW_ARRAY(struct hostlist, config->n_down + 1);
    for (size_t i = 0; i < config->n_gres; i++) {
        if (parse(&e->gres_hosts[i], config->gres[i]->nodes, err) < 0)
            return -(int)ERR_SYNTAX;
    }
    for (size_t i = 0; i < config->n_down; i++) {
        if (parse(&e->down_hosts[i], config->down[i]->nodes, err) < 0)
            return -(int)ERR_SYNTAX;
    }
    return 0;
}

static bool same_text(const char *a, const char *b)
{
    return str_eq(a ? a : "", b ? b : "");
}

/* Is that section about this resource of this node? */
static bool is_about(const struct expansion *e, size_t number, const char *node,
                     const GresInventory *gres)
{
    const ConfGres *line = e->config->gres[number];

    if (!line->name || !str_eq(line->name, gres->name) ||
        (line->type && !same_text(line->type, gres->type)))
        return false;
    return !line->nodes || hostlist_find(&e->gres_hosts[number], node) >= 0;
}

/* Cores are counted over the node's sockets; the CPUs of core 3 are 6 and 7 where cores have two. */
static char *cpus_of_cores(struct arena *arena, const char *cores, uint32_t threads)
{
    CLEANUP(str_done) struct str text = { 0 };
    const char *cursor = cores;
    struct span word;

    while (str_next(&cursor, ", ", &word)) {
        char first[12] = "", *dash;
        uint64_t low = 0, high = 0;
        memcpy(first, word.ptr, MIN(word.len, sizeof(first) - 1));
        dash = strchr(first, '-');
        if (dash)
            *dash++ = '\0';
        if (!str_to_u64(first, LIMIT_CPUS_PER_NODE, &low) ||
            !str_to_u64(dash ? dash : first, LIMIT_CPUS_PER_NODE, &high) || high < low)
            return arena_strdup(arena, cores); /* no such cores: near all, as if nothing was said */
        str_addf(&text, "%s%llu-%llu", text.len ? "," : "", (unsigned long long)(low * threads),
                 (unsigned long long)(high * threads + threads - 1));
    }
    return arena_strdup(arena, str_text(&text));
}

/* One line of gres.conf: its files become the next devices, its cores near each of them. */
static int add_devices(struct arena *arena, GresInventory *gres, const ConfGres *line,
                       uint32_t threads, struct err *err)
{
    CLEANUP(hostlist_done) struct hostlist files = { 0 };
    char **names;
    size_t count;

    if (!line->files)
        return 0;
    if (parse(&files, line->files, err) < 0 ||
        hostlist_expand(&files, arena, &names, &count, err) < 0)
        return -(int)ERR_SYNTAX;
    gres->files = memcpy(ARENA_ARRAY(arena, char *, gres->n_files + count),
                         gres->files ? gres->files : names, gres->n_files * sizeof(char *));
    memcpy(gres->files + gres->n_files, names, count * sizeof(char *));
    gres->n_files += count;
    if (!line->cores)
        return 0;
    gres->cpus = memcpy(ARENA_ARRAY(arena, char *, gres->n_cpus + count),
                        gres->cpus ? gres->cpus : names, gres->n_cpus * sizeof(char *));
    char *near = threads > 1 ? cpus_of_cores(arena, line->cores, threads) : line->cores;
    for (size_t i = 0; i < count; i++)
        gres->cpus[gres->n_cpus++] = near;
    return 0;
}

/* "-1,16,0": links of one device to each, itself too. */
static void read_links(const char *text, uint32_t *out, size_t count)
{
    struct span word;

    for (size_t i = 0; i < count && str_next(&text, ", ", &word); i++) {
        char number[12] = "";
        uint64_t value = 0;
        memcpy(number, word.ptr, MIN(word.len, sizeof(number) - 1));
        out[i] = str_to_u64(number, UINT32_MAX, &value) ? (uint32_t)value : 0;
    }
}

/* The links of all its devices, when each line says them: one line for each device. */
static void add_links(struct expansion *e, const char *node, GresInventory *gres)
{
    size_t count = gres->n_files, row = 0;

    if (!count || count > LIMIT_GRES_PER_NODE)
        return;
    uint32_t *links = ARENA_ARRAY(&e->arena, uint32_t, count * count);
    for (size_t i = 0; i < e->config->n_gres && row < count; i++) {
        const ConfGres *line = e->config->gres[i];
        if (!line->files || !is_about(e, i, node, gres))
            continue;
        if (str_is_empty(line->links) || strchr(line->files, '['))
            return;
        read_links(line->links, links + row++ * count, count);
    }
    if (row < count)
        return;
    gres->links = links;
    gres->n_links = count * count;
}

/* A copy of the group's resource with the devices that [[gres]] sections give this node. */
static int expand_gres(struct expansion *e, const NodeSpec *node, const GresInventory *from,
                       GresInventory **out, struct err *err)
{
    GresInventory *gres = arena_copy(&e->arena, from, sizeof(*from));

    *out = gres;
    if (from->n_files) /* a node of a configuration that was expanded before */
        return 0;
    for (size_t i = 0; i < e->config->n_gres; i++) {
        if (is_about(e, i, node->name, from) &&
            add_devices(&e->arena, gres, e->config->gres[i], node->threads_per_core, err) < 0)
            return -(int)ERR_SYNTAX;
    }
    add_links(e, node->name, gres);
    return 0;
}

static void apply_down(struct expansion *e, NodeSpec *node)
{
    for (size_t i = 0; i < e->config->n_down; i++) {
        if (hostlist_find(&e->down_hosts[i], node->name) < 0)
            continue;
        node->state = e->config->down[i]->state;
        node->reason = e->config->down[i]->reason;
    }
}

/* The text at `index` of a list as long as the names, or the only one. */
static char *paired(struct expansion *e, const struct hostlist *list, uint64_t index)
{
    struct str text = { 0 };
    char *out = NULL;

    if (hostlist_count(list) == 1)
        index = 0;
    if (hostlist_nth(list, index, &text))
        out = arena_strdup(&e->arena, str_text(&text));
    str_done(&text);
    return out;
}

static int expand_group(struct expansion *e, const NodeSpec *group,
                        int (*each)(void *ctx, const NodeSpec *node), void *ctx, struct err *err)
{
    CLEANUP(hostlist_done) struct hostlist names = { 0 }, addrs = { 0 }, hosts = { 0 };
    uint64_t index = 0;

    if (parse(&names, group->name, err) < 0 || parse(&addrs, group->addr, err) < 0 ||
        parse(&hosts, group->hostname, err) < 0)
        return -(int)ERR_SYNTAX;
    hostlist_each (host, &names) {
        NodeSpec node = *group;
        int result;

        arena_reset(&e->arena);
        node.name = host.name;
        node.addr = paired(e, &addrs, index);
        node.hostname = paired(e, &hosts, index);
        if (e->config->n_gres && group->n_gres) {
            node.gres = ARENA_ARRAY(&e->arena, GresInventory *, group->n_gres);
            for (size_t i = 0; i < group->n_gres; i++) {
                if (expand_gres(e, &node, group->gres[i], &node.gres[i], err) < 0)
                    return -(int)ERR_SYNTAX;
            }
        }
        apply_down(e, &node);
        result = each(ctx, &node);
        if (result)
            return result;
        index++;
    }
    return 0;
}

int conf_each_node(const Config *config, int (*each)(void *ctx, const NodeSpec *node), void *ctx,
                   struct err *err)
{
    CLEANUP(expansion_done) struct expansion e;
    int result = expansion_init(&e, config, err);

    for (size_t i = 0; !result && i < config->n_nodes; i++)
        result = expand_group(&e, config->nodes[i], each, ctx, err);
    return result;
}
