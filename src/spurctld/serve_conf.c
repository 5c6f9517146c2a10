// SPDX-License-Identifier: Apache-2.0
/*
 * serve_conf.c - the configuration file: read, with every node on its own, and put to the log
 */
#include <stdlib.h>

#include "client/conf_file.h"
#include "spurctld/serve.h"

int server_load_conf(struct server *server, struct err *err)
{
    struct conf *conf = conf_file_load(server->options->conf_path, err);

    if (!conf)
        return -(int)err->code;
    conf_free(server->conf);
    server->conf = conf;
    return 0;
}

struct expand {
    struct arena *arena;
    VEC(NodeSpec *) nodes;
};

static int expand_node(void *ctx, const NodeSpec *node)
{
    struct expand *expand = ctx;
    size_t len = node_spec__get_packed_size(node);
    uint8_t *bytes = arena_alloc(expand->arena, len + 1);

    node_spec__pack(node, bytes);
    NodeSpec *copy = node_spec__unpack(NULL, len, bytes);
    vec_push(&expand->nodes, copy);
    return copy ? 0 : -(int)ERR_INTERNAL;
}

/* The caller frees it with config__free_unpacked(). */
static int expand_conf(const struct conf *conf, struct arena *arena, Config **out, struct err *err)
{
    const Config *from = conf_config(conf);
    struct expand expand = { .arena = arena };
    size_t len = config__get_packed_size(from);
    uint8_t *bytes = arena_alloc(arena, len + 1);
    int code;

    config__pack(from, bytes);
    Config *config = config__unpack(NULL, len, bytes);
    code = conf_each_node(from, expand_node, &expand, err);
    for (size_t i = 0; i < config->n_nodes; i++)
        node_spec__free_unpacked(config->nodes[i], NULL);
    free(config->nodes);
    config->n_nodes = expand.nodes.len;
    config->nodes = expand.nodes.items;
    for (size_t i = 0; code == 0 && i < config->n_partitions; i++) {
        PartitionSpec *partition = config->partitions[i];
        struct hostlist hosts = { 0 };
        code = conf_hosts(from, partition->nodes ? partition->nodes : "", &hosts, err);
        if (code == 0) {
            struct str text = { 0 };
            hostlist_format(&hosts, &text);
            free(partition->nodes);
            partition->nodes = str_take(&text);
        }
        hostlist_done(&hosts);
    }
    if (code < 0)
        config__free_unpacked(config, NULL);
    else
        *out = config;
    return code;
}

int server_propose_conf(struct server *server, bool reconfigure, ctl_agreed_fn *done, void *arg,
                        struct err *err)
{
    struct arena arena;
    Config *config = NULL;

    arena_init(&arena);
    int code = expand_conf(server->conf, &arena, &config, err);
    if (code == 0 && (code = core_admit_config(config, err)) == 0)
        ctl_set_config(server->ctl, config, reconfigure, done, arg);
    if (config)
        config__free_unpacked(config, NULL);
    arena_done(&arena);
    return code;
}
