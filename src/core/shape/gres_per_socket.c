// SPDX-License-Identifier: Apache-2.0
/*
 * gres_per_socket.c - devices that are asked for per socket (--gpus-per-socket)
 *
 * Of so many sockets as --sockets-per-node says, each must have as many devices as are asked for. Devices
 * that are near no socket in particular stand in where one has too few.
 */
#include <stdlib.h>
#include <string.h>

#include "core/shape/shapes.h"

bool shape_by_socket(const struct shape *shape)
{
    for (size_t i = 0; i < shape->gres_count; i++) {
        if (shape->gres[i].scope == GRES_PER_SOCKET)
            return true;
    }
    return false;
}

static uint8_t socket_at(const struct node_gres *gres, size_t device)
{
    return gres->socket ? gres->socket[device] : SOCKET_ANY;
}

/* What is unused, by kind of device and socket; the last is of any. */
static void count_unused(const struct node *node, const struct bitset *unused,
                         struct socket_quota *out)
{
    memset(out, 0, sizeof(*out));
    for (size_t g = 0; g < node->gres_count && g < TAKE_GRES; g++) {
        if (!unused[g].words)
            continue;
        bitset_each (device, &unused[g])
            out->of[g][MIN(socket_at(&node->gres[g], device), SOCKETS_MOST)]++;
    }
}

/* Takes up to `want` of what is on the socket (or of any). */
static uint64_t take_of(const struct shape_gres *gres, const struct node *node, unsigned socket,
                        uint64_t want, struct socket_quota *left, struct socket_quota *out)
{
    for (size_t g = 0; g < node->gres_count && g < TAKE_GRES && want; g++) {
        uint16_t some = (uint16_t)MIN(want, left->of[g][socket]);
        if (!gres_matches(gres, &node->gres[g]))
            continue;
        left->of[g][socket] = (uint16_t)(left->of[g][socket] - some);
        out->of[g][socket] = (uint16_t)(out->of[g][socket] + some);
        want -= some;
    }
    return want;
}

/* All that the shape wants of one socket, or nothing. */
static bool take_socket(const struct shape *shape, const struct node *node, unsigned socket,
                        struct socket_quota *left, struct socket_quota *out)
{
    struct socket_quota was_left = *left, was_out = *out;

    for (size_t i = 0; i < shape->gres_count; i++) {
        const struct shape_gres *gres = &shape->gres[i];
        if (gres->scope != GRES_PER_SOCKET)
            continue;
        uint64_t want = take_of(gres, node, socket, gres->count, left, out);
        if (take_of(gres, node, SOCKETS_MOST, want, left, out)) {
            *left = was_left;
            *out = was_out;
            return false;
        }
    }
    return true;
}

struct socket_rank {
    uint64_t missing, unused;
    unsigned socket;
};

/* Those that need no help first; of them the one that has least left over. */
static int by_rank(const void *a, const void *b)
{
    const struct socket_rank *x = a, *y = b;

    if (x->missing != y->missing)
        return x->missing < y->missing ? -1 : 1;
    if (x->unused != y->unused)
        return x->unused < y->unused ? -1 : 1;
    return x->socket < y->socket ? -1 : x->socket > y->socket;
}

static void rank(const struct shape *shape, const struct node *node,
                 const struct socket_quota *unused, unsigned socket, struct socket_rank *out)
{
    *out = (struct socket_rank){ .socket = socket };
    for (size_t i = 0; i < shape->gres_count; i++) {
        uint64_t have = 0;
        if (shape->gres[i].scope != GRES_PER_SOCKET)
            continue;
        for (size_t g = 0; g < node->gres_count && g < TAKE_GRES; g++)
            have += gres_matches(&shape->gres[i], &node->gres[g]) ? unused->of[g][socket] : 0;
        out->missing += shape->gres[i].count - MIN(have, shape->gres[i].count);
        out->unused += have;
    }
}

bool fit_sockets(const struct shape *shape, const struct node *node, const struct bitset *unused,
                 struct socket_quota *out)
{
    unsigned sockets = MIN(node->sockets, SOCKETS_MOST), want = MAX(shape->sockets, 1);
    struct socket_rank ranks[SOCKETS_MOST];
    struct socket_quota left;

    memset(out, 0, sizeof(*out));
    count_unused(node, unused, &left);
    for (unsigned socket = 0; socket < sockets; socket++)
        rank(shape, node, &left, socket, &ranks[socket]);
    qsort(ranks, sockets, sizeof(*ranks), by_rank);
    for (unsigned i = 0; i < sockets && want; i++)
        want -= take_socket(shape, node, ranks[i].socket, &left, out);
    return want == 0;
}

/* With all devices of the node. */
bool fit_sockets_empty(const struct shape *shape, const struct node *node)
{
    struct bitset all[TAKE_GRES] = { { 0 } };
    struct socket_quota quota;

    for (size_t g = 0; g < node->gres_count && g < TAKE_GRES; g++) {
        if (!node->gres[g].index.words)
            continue;
        bitset_init(&all[g], node->gres[g].index.bits);
        bitset_fill(&all[g]);
    }
    bool fits = fit_sockets(shape, node, all, &quota);
    for (size_t g = 0; g < TAKE_GRES; g++)
        bitset_done(&all[g]);
    return fits;
}
