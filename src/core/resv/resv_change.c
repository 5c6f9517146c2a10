// SPDX-License-Identifier: Apache-2.0
/*
 * resv_change.c - changes of a reservation that say what is more or less of it, not what it becomes
 *
 * Two that are made at once both hold: what they change is what is there when they are applied.
 */
#include <string.h>

#include "base/hostlist.h"
#include "core/resv/resvs.h"
#include "schema/conf.h"
#include "wire/pb.h"

static int name_nodes(const struct state *state, const char *text, struct bitset *out,
                      struct err *err)
{
    CLEANUP(hostlist_done) struct hostlist hosts = { 0 };

    bitset_init(out, state->nodes.len);
    int code = conf_hosts(state->config, text, &hosts, err);
    if (code < 0)
        return code;
    hostlist_each (host, &hosts) {
        const struct node *node = map_get_len(&state->node_names, host.name, host.len);
        if (node)
            bitset_add(out, node->number);
    }
    return 0;
}

static int change_nodes(const struct state *state, const struct reservation *resv, const char *text,
                        bool more, struct bitset *nodes, struct err *err)
{
    struct bitset named = { 0 };
    int code = str_is_empty(text) ? 0 : name_nodes(state, text, &named, err);

    if (code == 0 && named.words && more)
        bitset_or(nodes, &named);
    if (code == 0 && named.words && !more && !bitset_within(&named, nodes))
        code = err_set(err, ERR_INVALID_NODE_NAME, "not all of %.200s are of reservation %s", text,
                       resv->spec->name);
    if (code == 0 && named.words && !more)
        bitset_minus(nodes, &named);
    bitset_done(&named);
    return code;
}

static char *names_of(const struct state *state, const struct bitset *nodes, struct arena *arena)
{
    CLEANUP(hostlist_done) struct hostlist hosts = { 0 };
    CLEANUP(str_done) struct str text = { 0 };

    bitset_each (number, nodes)
        hostlist_push(&hosts, state->nodes.items[number]->spec->name, NULL);
    hostlist_format(&hosts, &text);
    return arena_strdup(arena, str_text(&text));
}

int resv_change_nodes(struct state *state, const struct reservation *resv, ReservationSpec *change,
                      struct arena *arena, struct err *err)
{
    struct bitset nodes;

    if (str_is_empty(change->nodes_more) && str_is_empty(change->nodes_less))
        return 0;
    if (resv->flags & RESV_PART_NODES)
        return err_set(err, ERR_INVALID, "reservation %s has the nodes of its partition",
                       resv->spec->name);
    bitset_init_copy(&nodes, &resv->nodes);
    int code = change_nodes(state, resv, change->nodes_more, true, &nodes, err);
    if (code == 0)
        code = change_nodes(state, resv, change->nodes_less, false, &nodes, err);
    if (code == 0 && bitset_is_empty(&nodes))
        code = err_set(err, ERR_INVALID_NODE_NAME, "that leaves reservation %s no node",
                       resv->spec->name);
    if (code == 0)
        change->nodes = names_of(state, &nodes, arena);
    change->nodes_more = change->nodes_less = NULL;
    bitset_done(&nodes);
    return code;
}

void resv_change_length(const struct reservation *resv, ReservationSpec *change)
{
    int64_t start_us = change->has_start_us ? change->start_us : resv->spec->start_us;

    if (!change->has_longer_s || change->has_end_us || change->has_duration_s)
        return;
    change->has_end_us = true;
    change->end_us = start_us + resv->spec->end_us - resv->spec->start_us +
                     MIN(MAX(change->longer_s, -LIMIT_SECONDS), LIMIT_SECONDS) * US_PER_S;
    change->has_longer_s = false;
}
