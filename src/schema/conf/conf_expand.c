/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_expand.c - a configuration with every node on its own
 */
#include <stdlib.h>

#include "base/arena.h"
#include "schema/conf/conf_priv.h"

struct expand {
    struct arena arena; /* of one node */
    VEC(NodeSpec *) nodes;
};

static int expand_node(void *ctx, const NodeSpec *node)
{
    struct expand *expand = ctx;
    size_t len = node_spec__get_packed_size(node);
    uint8_t *bytes = arena_alloc(&expand->arena, len + 1);

    node_spec__pack(node, bytes);
    NodeSpec *copy = node_spec__unpack(NULL, len, bytes);
    arena_reset(&expand->arena);
    if (!copy)
        return -(int)ERR_INTERNAL;
    vec_push(&expand->nodes, copy);
    return 0;
}

static Config *copy_of(const Config *config)
{
    size_t len = config__get_packed_size(config);
    uint8_t *bytes = mem_new(len + 1);

    config__pack(config, bytes);
    Config *copy = config__unpack(NULL, len, bytes);
    free(bytes);
    return copy;
}

static int plain_hosts(const Config *from, PartitionSpec *partition, struct err *err)
{
    CLEANUP(hostlist_done) struct hostlist hosts = { 0 };
    struct str text = { 0 };
    int code = conf_hosts(from, partition->nodes ? partition->nodes : "", &hosts, err);

    if (code < 0)
        return code;
    hostlist_format(&hosts, &text);
    free(partition->nodes);
    partition->nodes = str_take(&text);
    return 0;
}

int conf_expand(const struct conf *conf, Config **out, struct err *err)
{
    const Config *from = conf_config(conf);
    struct expand expand = { 0 };
    Config *config = copy_of(from);

    arena_init(&expand.arena);
    int code = conf_each_node(from, expand_node, &expand, err);
    for (size_t i = 0; i < config->n_nodes; i++)
        node_spec__free_unpacked(config->nodes[i], NULL);
    free(config->nodes);
    config->n_nodes = expand.nodes.len;
    config->nodes = expand.nodes.items;
    for (size_t i = 0; code == 0 && i < config->n_partitions; i++)
        code = plain_hosts(from, config->partitions[i], err);
    arena_done(&expand.arena);
    if (code < 0)
        config__free_unpacked(config, NULL);
    else
        *out = config;
    return code;
}
