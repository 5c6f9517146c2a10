/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nodes.c - node records: what a node has
 */
#include "core/cluster/cluster.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "schema/node_view.h"
#include "wire/pb.h"

struct node *node_new(const NodeSpec *spec)
{
    struct node *node = NEW(struct node);

    node->state = NODE_UNKNOWN;
    node_set_spec(node, spec);
    node_amounts(node);
    return node;
}

static void free_amounts(struct node *node)
{
    for (size_t i = 0; i < node->gres_count; i++) {
        gres_locality_free(&node->gres[i]);
        bitset_done(&node->gres[i].index);
        bitset_done(&node->gres[i].lent);
        free(node->gres[i].shares);
    }
    free(node->gres);
    free(node->cpu_shares);
    bitset_done(&node->cpu_ids);
    bitset_done(&node->kept);
    node->kept = (struct bitset){ 0 };
    node->gres = NULL;
    node->cpu_shares = NULL;
    node->gres_count = 0;
}

const char *node_word(struct state *state, struct node *node)
{
    if (!node->word) {
        node->word = words_take(&state->words, node->spec->name);
        node->word_hash = words_hash(node->word);
    }
    return node->word;
}

void node_free(struct state *state, struct node *node)
{
    if (!node)
        return;
    words_drop(&state->words, node->word);
    free_amounts(node);
    vec_done(&node->jobs);
    pb_free(node->spec);
    pb_free(node->found);
    free(node->reason);
    free(node->reason_user);
    free(node);
}

static uint64_t features_hash(const NodeSpec *spec)
{
    uint64_t hash = spec->n_features;

    for (size_t i = 0; i < spec->n_features; i++)
        hash = hash_bytes(spec->features[i], strlen(spec->features[i]) + 1, hash);
    return hash;
}

void node_set_spec(struct node *node, const NodeSpec *spec)
{
    NodeSpec *copy = pb_copy(spec);

    pb_free(node->spec);
    node->spec = copy;
    node->spec_hash = message_hash(&copy->base, 0);
    node->features_hash = features_hash(copy);
}

void node_set_found(struct node *node, const NodeInventory *found)
{
    NodeInventory *copy = pb_copy(found);

    pb_free(node->found);
    node->found = copy;
    node->found_hash = message_hash(&copy->base, 0);
}

static uint64_t first_known(uint64_t configured, uint64_t found, uint64_t otherwise)
{
    return configured ? configured : found ? found : otherwise;
}

/* Shares are of the GPUs of the same type, or of all where there is only one. */
static void find_base(struct node *node, struct node_gres *gres)
{
    uint32_t gpus = 0;

    for (uint32_t i = 0; i < node->gres_count; i++) {
        const struct node_gres *other = &node->gres[i];
        if (!str_eq(other->name, "gpu") || !other->index.words)
            continue;
        if (gres->type && !str_eq(gres->type, other->type))
            continue;
        gpus++;
        gres->base_at = i + 1;
    }
    struct node_gres *base = gpus == 1 ? &node->gres[gres->base_at - 1] : NULL;
    if (!base || gres->total < base->total) {
        gres->base_at = 0;
        return;
    }
    gres->per = (uint32_t)MIN(gres->total / base->total, UINT32_MAX);
    gres->shares = NEW_ARRAY(uint32_t, base->total);
    if (!base->lent.words)
        bitset_init(&base->lent, base->total);
}

/* A short text as a number: to compare those of thousands of nodes without looking at the text of each. */
#define LONG_KEY UINT64_MAX
static uint64_t text_key(const char *text)
{
    size_t len = text ? strnlen(text, sizeof(uint64_t)) : 0;
    uint64_t key = 0;

    if (len == sizeof(key))
        return LONG_KEY;
    memcpy(&key, text ? text : "", len);
    return key;
}

static struct node_gres *add_gres(struct node *node, const char *name, const char *type,
                                  uint64_t total)
{
    struct node_gres *gres = &node->gres[node->gres_count++];

    gres->name = name ? name : "";
    gres->type = str_is_empty(type) ? NULL : type;
    gres->name_key = text_key(gres->name);
    gres->type_key = text_key(gres->type);
    gres->total = total;
    return gres;
}

struct node_gres *node_gres_at(const struct node *node, const char *name, const char *type)
{
    uint64_t name_key = text_key(name), type_key = text_key(type);

    for (size_t i = 0; i < node->gres_count; i++) {
        struct node_gres *gres = &node->gres[i];
        if (gres->name_key == name_key && gres->type_key == type_key &&
            (name_key != LONG_KEY || str_eq(gres->name, name)) &&
            (type_key != LONG_KEY || str_eq(gres->type, type)))
            return gres;
    }
    return NULL;
}

static bool is_shared(const GresInventory *gres)
{
    return gres->shared || str_eq(gres->name, "shard") || str_eq(gres->name, "mps");
}

/* GPUs of several types share out what is of none: each as much, and what is left over is of none. */
static bool share_out(struct node *node, const GresInventory *shares, GresInventory **from,
                      size_t count)
{
    uint64_t devices = 0, all = shares->has_count ? shares->count : 1;
    size_t kinds = 0;

    for (size_t i = 0; i < count; i++) {
        if (!str_eq(from[i]->name, "gpu") || is_shared(from[i]))
            continue;
        if (str_is_empty(from[i]->type))
            return false;
        devices += from[i]->has_count ? from[i]->count : 1;
        kinds++;
    }
    if (!str_is_empty(shares->type) || kinds < 2 || all < devices ||
        node->gres_count + kinds > TAKE_GRES)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (str_eq(from[i]->name, "gpu") && !is_shared(from[i]))
            add_gres(node, shares->name, from[i]->type,
                     all / devices * (from[i]->has_count ? from[i]->count : 1))
                ->shared = true;
    }
    return true;
}

static void take_gres(struct node *node, GresInventory **from, size_t count)
{
    node->gres_count = 0;
    node->gres = count ? NEW_ARRAY(struct node_gres, TAKE_GRES) : NULL;
    for (size_t i = 0; i < count && node->gres_count < TAKE_GRES; i++) {
        if (is_shared(from[i]) && share_out(node, from[i], from, count))
            continue;
        struct node_gres *gres =
            add_gres(node, from[i]->name, from[i]->type, from[i]->has_count ? from[i]->count : 1);
        gres->shared = is_shared(from[i]);
        if (!gres->shared && gres->total && gres->total <= LIMIT_GRES_PER_NODE)
            bitset_init(&gres->index, gres->total);
    }
    for (size_t i = 0; i < node->gres_count; i++) {
        if (node->gres[i].shared)
            find_base(node, &node->gres[i]);
    }
}

static uint64_t amounts_hash(const struct node *node)
{
    uint64_t hash = node->cpus * UINT64_C(31) + node->threads;

    hash = hash * 31 + node->mem_mb;
    hash = hash * 31 + node->tmp_mb;
    if (node->kept.words)
        hash = hash_bytes(node->kept.words, (node->kept.bits + 63) / 64 * sizeof(uint64_t), hash);
    for (size_t i = 0; i < node->gres_count; i++)
        hash = gres_hash(&node->gres[i], hash);
    return hash;
}

/* Of what fit.c, gres_per_socket.c and gres_locality.c read of an empty node. */
static uint64_t fit_hash(const struct node *node)
{
    uint64_t parts[] = { node->built_hash, node->cpus,    node->cpu_span,
                         node->threads,    node->sockets, node->spec->cores_per_socket,
                         node->mem_mb,     node->tmp_mb };
    uint64_t hash = hash_bytes(parts, sizeof(parts), node->gres_count);

    for (size_t i = 0; i < node->gres_count; i++) {
        const struct node_gres *gres = &node->gres[i];
        hash = hash_mix(hash ^ gres_most(gres) << 1 ^ gres->shared);
        hash = hash_mix(hash ^ gres->base_at);
        if (gres->socket)
            hash = hash_bytes(gres->socket, gres->index.bits, hash);
    }
    return hash;
}

static void keep_cpus(struct node *node)
{
    const NodeSpec *spec = node->spec;

    node->cpus = node->cpu_span;
    if (!spec->core_spec && str_is_empty(spec->cpu_spec_list))
        return;
    if (node_kept_cpus(spec, node->cpu_span, node->sockets, node->threads, &node->kept)) {
        node->cpus -= (uint32_t)bitset_count(&node->kept);
    } else {
        bitset_done(&node->kept);
        node->kept = (struct bitset){ 0 };
    }
}

bool node_amounts(struct node *node)
{
    static const NodeInventory nothing = NODE_INVENTORY__INIT;
    const NodeInventory *found = node->found ? node->found : &nothing;
    const NodeSpec *spec = node->spec;
    uint64_t before = node->built_hash;

    free_amounts(node);
    node->threads = (uint32_t)first_known(spec->threads_per_core, found->threads_per_core, 1);
    uint64_t built = (uint64_t)spec->sockets * MAX(spec->cores_per_socket, 1) * node->threads;
    uint64_t cpus = first_known(spec->cpus ? spec->cpus : built, found->cpus, 1);
    node->cpu_span = (uint32_t)MIN(cpus, LIMIT_CPUS_PER_NODE);
    node->threads = MIN(node->threads, node->cpu_span);
    node->sockets = (uint32_t)first_known(spec->sockets, found->sockets, 1);
    node->sockets = node->cpu_span % node->sockets ? 1 : node->sockets;
    keep_cpus(node);
    node->mem_mb = first_known(spec->memory_mb, found->memory_mb, 1);
    node->mem_mb -= MIN(spec->mem_spec_mb, node->mem_mb);
    node->tmp_mb = first_known(spec->tmp_disk_mb, found->tmp_disk_mb, 0);
    node->weight = spec->has_weight ? spec->weight : 1;
    if (spec->n_gres)
        take_gres(node, spec->gres, spec->n_gres);
    else
        take_gres(node, found->gres, found->n_gres);
    node_read_gres_locality(node);
    node->built_hash = amounts_hash(node);
    node->fit_hash = fit_hash(node);
    bitset_init(&node->cpu_ids, node->cpu_span);
    if (node->kept.words) /* (4) */
        bitset_or(&node->cpu_ids, &node->kept);
    node->cpus_used = node->jobs_whole = node->jobs_active = 0;
    node->mem_used_mb = 0;
    node_use_recount(node);
    node_see_shrunk(node);
    return node->built_hash != before;
}

void node_see_shrunk(struct node *node)
{
    node->shrunk = node->mem_used_mb > node->mem_mb;
    for (size_t i = 0; i < node->gres_count; i++)
        node->shrunk = node->shrunk || node->gres[i].used > node->gres[i].total;
}

void node_set_reason(struct state *state, struct node *node, const char *reason, const char *user,
                     uint32_t uid)
{
    if (str_is_empty(reason)) {
        job_set_text(&node->reason, NULL);
        job_set_text(&node->reason_user, NULL);
        node->reason_uid = 0;
        node->reason_us = 0;
    } else {
        job_set_text(&node->reason, reason);
        job_set_text(&node->reason_user, user);
        node->reason_uid = uid;
        node->reason_us = state->time_us;
    }
    node_touch(state, node);
}

bool node_is_usable(const struct node *node)
{
    const uint32_t bad = NODE_FLAG_DRAIN | NODE_FLAG_FAIL | NODE_FLAG_NO_RESPOND |
                         NODE_FLAG_POWERED_DOWN | NODE_FLAG_POWERING_UP | NODE_FLAG_REBOOT_ISSUED |
                         NODE_FLAG_INVALID_REG;

    return node->state == NODE_IDLE && !(node->flags & bad) && !node->removed;
}

NodeState node_shown_state(const struct node *node, uint32_t *flags)
{
    bool completing = false, busy = false;

    vec_each (struct job *, job, &node->jobs) {
        completing = completing || (*job)->flags & JOB_FLAG_COMPLETING;
        busy = busy || !(*job)->beside;
    }
    *flags = node->flags | (completing ? NODE_FLAG_COMPLETING : 0);
    if (node->state != NODE_IDLE || !busy)
        return node->state;
    return node->cpus_used >= node->cpus || node->jobs_whole ? NODE_ALLOCATED : NODE_MIXED;
}

void node_set_key(struct state *state, const char *name, const ProtobufCBinaryData *from,
                  bool forgotten)
{
    struct node_key *key = map_get(&state->keys, name);

    if (key)
        state->digest -= key->hash;
    if (!from) {
        map_del(&state->keys, name);
        if (key)
            free(key->key.data);
        free(key);
        return;
    }
    if (!key) {
        key = NEW(struct node_key);
        map_put(&state->keys, name, key);
    }
    uint8_t *bytes = mem_new(from->len + 1); /* it may be a copy of its own */
    if (from->len)
        memcpy(bytes, from->data, from->len);
    size_t len = from->len;
    free(key->key.data);
    key->key = (ProtobufCBinaryData){ len, bytes };
    key->forgotten = forgotten;
    key->hash = key_hash(name, key);
    state->digest += key->hash;
}

/* The configuration's word for a node that is new. */
void node_first_state(struct state *state, struct node *node)
{
    const NodeSpec *spec = node->spec;

    if (str_is_empty(spec->state))
        return;
    if (str_ieq(spec->state, "DOWN"))
        node->state = NODE_DOWN;
    else if (str_ieq(spec->state, "FUTURE"))
        node->state = NODE_FUTURE;
    else if (str_ieq(spec->state, "DRAIN"))
        node->flags |= NODE_FLAG_DRAIN;
    else if (str_ieq(spec->state, "FAIL"))
        node->flags |= NODE_FLAG_FAIL;
    if (spec->reason)
        node_set_reason(state, node, spec->reason, "slurm", 0);
}
