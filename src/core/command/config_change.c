/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_change.c - from the configuration that a cluster has to another, in commands of bounded cost
 *
 * (1) All sections of a kind, old and new, are put in one order: old ones that keep their place among
 *     each other are in it once, with what is new between them. What there is at any time is some of
 *     that order, so each command keeps runs of what the last one left.
 * (2) QOS, accounts, users and nodes that are new or others come first, in that order; then the
 *     settings and partitions, which may name them; then those that are no more go, users first.
 */
#include "core/config_change.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "core/command/command.h"
#include "wire/pb.h"

/* ---- what there is ---- */

void config_base_take(const struct state *state, struct config_base *out)
{
    *out = (struct config_base){ 0 };
    out->hashes.rest = state->section_hashes.rest;
    out->hashes.text = state->section_hashes.text;
    for (enum section kind = 0; kind < SECTIONS; kind++) {
        size_t count;
        sections_list(state->config, kind, &count);
        out->count[kind] = count;
        out->hashes.of[kind] = NEW_ARRAY(uint64_t, count + 1);
        out->hashes.names[kind] = NEW_ARRAY(uint64_t, count + 1);
        memcpy(out->hashes.of[kind], state->section_hashes.of[kind], count * sizeof(uint64_t));
        memcpy(out->hashes.names[kind], state->section_hashes.names[kind],
               count * sizeof(uint64_t));
    }
    out->hash = section_hashes_base(&out->hashes, out->count);
}

uint64_t config_base_hash(const struct state *state)
{
    size_t count[SECTIONS];

    for (enum section kind = 0; kind < SECTIONS; kind++)
        sections_list(state->config, kind, &count[kind]);
    return section_hashes_base(&state->section_hashes, count);
}

void config_base_done(struct config_base *base)
{
    section_hashes_done(&base->hashes);
}

/* ---- (1) ---- */

enum { NOT = UINT32_MAX };

/* In the order of all: an old one, a new one, or both of a name that keeps its place. */
struct slot {
    uint32_t old, now; /* or NOT */
    uint32_t to;       /* an old one alone: where the new one of its name is, or NOT: it goes */
    uint32_t gone;     /* that goes: how many do before it */
    bool same;         /* both: they say the same */
};

struct kind {
    ProtobufCMessage **list;
    size_t count, old_count;
    uint64_t *hashes, *old_hashes;
    uint32_t *was; /* of each new one the old one of its name, or NOT */
    bool *stays;   /* it keeps its place */
    bool moved;    /* some do not */
    uint32_t edits, goes;
    VEC(struct slot) slots;
};

/* How far it has got. */
struct point {
    size_t upto[SECTIONS], gone[SECTIONS]; /* of the new ones; of those that go */
    bool rest;
};

/* The most that stand in the order that they had. */
static void find_stays(struct kind *kind)
{
    uint32_t *tails = NEW_ARRAY(uint32_t, kind->count + 1); /* the last of each length */
    uint32_t *before = NEW_ARRAY(uint32_t, kind->count + 1);
    size_t len = 0;

    for (size_t i = 0; i < kind->count; i++) {
        if (kind->was[i] == NOT)
            continue;
        size_t low = 0, high = len;
        while (low < high) {
            size_t middle = (low + high) / 2;
            if (kind->was[tails[middle]] < kind->was[i])
                low = middle + 1;
            else
                high = middle;
        }
        before[i] = low ? tails[low - 1] : NOT;
        tails[low] = (uint32_t)i;
        len = MAX(len, low + 1);
    }
    for (uint32_t at = len ? tails[len - 1] : NOT; at != NOT; at = before[at])
        kind->stays[at] = true;
    for (size_t i = 0; i < kind->count; i++)
        kind->moved = kind->moved || (kind->was[i] != NOT && !kind->stays[i]);
    free(tails);
    free(before);
}

static void add_old(struct kind *kind, const uint32_t *to, uint32_t from, uint32_t until)
{
    for (uint32_t i = from; i < until; i++) {
        struct slot slot = { .old = i, .now = NOT, .to = to[i], .gone = kind->goes };
        kind->goes += to[i] == NOT;
        vec_push(&kind->slots, slot);
    }
}

static void put_in_order(struct kind *kind)
{
    uint32_t *to = NEW_ARRAY(uint32_t, kind->old_count + 1), next = 0;

    memset(to, 0xff, kind->old_count * sizeof(*to));
    for (uint32_t i = 0; i < kind->count; i++) {
        if (kind->was[i] != NOT)
            to[kind->was[i]] = i;
    }
    vec_reserve(&kind->slots, kind->count + kind->old_count);
    for (uint32_t i = 0; i < kind->count; i++) {
        struct slot slot = { .old = NOT, .now = i, .to = NOT };
        if (kind->stays[i]) {
            slot.old = kind->was[i];
            slot.same = kind->hashes[i] == kind->old_hashes[slot.old];
            add_old(kind, to, next, slot.old);
            next = slot.old + 1;
        }
        kind->edits += !slot.same;
        vec_push(&kind->slots, slot);
    }
    add_old(kind, to, next, (uint32_t)kind->old_count);
    free(to);
}

static void kind_init(struct kind *kind, const struct config_base *base, const Config *config,
                      enum section of)
{
    struct map names;

    *kind = (struct kind){ .old_count = base->count[of], .old_hashes = base->hashes.of[of] };
    kind->list = sections_list(config, of, &kind->count);
    kind->hashes = NEW_ARRAY(uint64_t, kind->count + 1);
    kind->was = NEW_ARRAY(uint32_t, kind->count + 1);
    kind->stays = NEW_ARRAY(bool, kind->count + 1);
    map_init(&names);
    for (size_t i = kind->old_count; i-- > 0;)
        map_put_num(&names, base->hashes.names[of][i], (void *)(uintptr_t)(i + 1));
    for (size_t i = 0; i < kind->count; i++) {
        uint64_t name = section_name_hash(kind->list[i], of);
        uintptr_t at = (uintptr_t)map_del_num(&names, name); /* each once */
        kind->hashes[i] = message_hash(kind->list[i], 0);
        kind->was[i] = at ? (uint32_t)at - 1 : NOT;
    }
    map_done(&names);
    find_stays(kind);
    put_in_order(kind);
}

static void kind_done(struct kind *kind)
{
    free(kind->hashes);
    free(kind->was);
    free(kind->stays);
    vec_done(&kind->slots);
}

/* Which of the two is there at that point; NOT: none. */
enum which { WHICH_NONE, WHICH_OLD, WHICH_NEW };

static enum which which_at(const struct slot *slot, size_t upto, size_t gone)
{
    if (slot->same)
        return WHICH_OLD;
    if (slot->now != NOT && slot->now < upto)
        return WHICH_NEW;
    if (slot->old == NOT)
        return WHICH_NONE;
    if (slot->now != NOT)
        return WHICH_OLD;
    return slot->to == NOT ? (slot->gone >= gone ? WHICH_OLD : WHICH_NONE)
                           : (slot->to >= upto ? WHICH_OLD : WHICH_NONE);
}

/* ---- commands ---- */

struct making {
    struct config_changes *out;
    const Config *config;
    struct kind kinds[SECTIONS];
    struct point at;
    struct section_hashes hashes; /* of what is no section */
};

static uint64_t hash_at(const struct making *making)
{
    struct section_hashes hashes = making->hashes;
    size_t count[SECTIONS] = { 0 };

    for (enum section of = 0; of < SECTIONS; of++) {
        const struct kind *kind = &making->kinds[of];
        hashes.of[of] = NEW_ARRAY(uint64_t, kind->slots.len + 1);
        for (size_t i = 0; i < kind->slots.len; i++) {
            const struct slot *slot = &kind->slots.items[i];
            enum which which = which_at(slot, making->at.upto[of], making->at.gone[of]);
            if (which != WHICH_NONE)
                hashes.of[of][count[of]++] =
                    which == WHICH_NEW ? kind->hashes[slot->now] : kind->old_hashes[slot->old];
        }
    }
    uint64_t hash = section_hashes_base(&hashes, count);
    section_hashes_done(&hashes);
    return hash;
}

typedef VEC(ConfigRun *) run_list;

static ConfigRun *add_run(struct making *making, run_list *runs, enum section of, size_t from)
{
    ConfigRun *run = ARENA_NEW(&making->out->arena, ConfigRun);

    config_run__init(run);
    run->has_kind = run->has_from = run->has_count = run->has_fresh = true;
    run->kind = of;
    run->from = (uint32_t)from;
    vec_push(runs, run);
    return run;
}

/* What is there then, of what is there now; the new ones to `list`. */
static size_t make_runs(struct making *making, enum section of, const struct point *then,
                        run_list *runs, ProtobufCMessage **list)
{
    const struct kind *kind = &making->kinds[of];
    ConfigRun *run = add_run(making, runs, of, 0);
    size_t old = 0, fresh = 0;

    for (size_t i = 0; i < kind->slots.len; i++) {
        const struct slot *slot = &kind->slots.items[i];
        enum which was = which_at(slot, making->at.upto[of], making->at.gone[of]);
        enum which is = which_at(slot, then->upto[of], then->gone[of]);
        if (is == WHICH_NONE) {
            old += was != WHICH_NONE;
        } else if (is == was) {
            if (run->fresh || run->from + run->count != old)
                run = run->fresh || run->count ? add_run(making, runs, of, old) : run;
            run->from = run->count ? run->from : (uint32_t)old;
            run->count++;
            old++;
        } else {
            run->fresh++;
            list[fresh++] = kind->list[slot->now];
            old += was != WHICH_NONE;
        }
    }
    return fresh;
}

static bool moves_on(const struct making *making, const struct point *then, enum section of)
{
    return then->upto[of] != making->at.upto[of] || then->gone[of] != making->at.gone[of];
}

/* One command; `last`: with the hash that the configuration has in the end. */
static CmdConfigChange *go_to(struct making *making, const struct point *then, bool last)
{
    struct arena *arena = &making->out->arena;
    CmdConfigChange *cmd = ARENA_NEW(arena, CmdConfigChange);
    Config *config = ARENA_NEW(arena, Config);
    run_list runs = { 0 };

    cmd_config_change__init(cmd);
    cmd->has_base_hash = cmd->has_keeps_rest = true;
    cmd->base_hash = hash_at(making);
    cmd->keeps_rest = !then->rest || (making->at.rest && !last);
    config__init(config);
    if (!cmd->keeps_rest) {
        *config = *making->config;
        config->hash = last ? config->hash : NULL;
        config_rest_hash(config, &making->hashes);
    } else {
        making->hashes.text = 0;
    }
    for (enum section of = 0; of < SECTIONS; of++) {
        ProtobufCMessage **list =
            ARENA_ARRAY(arena, ProtobufCMessage *, making->kinds[of].count + 1);
        size_t count = moves_on(making, then, of) ? make_runs(making, of, then, &runs, list) : 0;
        sections_set(config, of, list, count);
    }
    cmd->config = config;
    cmd->n_runs = runs.len;
    cmd->runs = ARENA_ARRAY(arena, ConfigRun *, runs.len + 1);
    for (size_t i = 0; i < runs.len; i++)
        cmd->runs[i] = runs.items[i];
    vec_done(&runs);
    vec_push(&making->out->list, cmd);
    making->at = *then;
    return cmd;
}

/* (2) */
static void come(struct making *making, enum section of, size_t most)
{
    const struct kind *kind = &making->kinds[of];
    struct point then = making->at;
    size_t edits = 0;

    for (size_t i = 0; i < kind->slots.len; i++) {
        const struct slot *slot = &kind->slots.items[i];
        if (slot->now == NOT)
            continue;
        then.upto[of] = (size_t)slot->now + 1;
        edits += !slot->same;
        if (edits >= most) {
            go_to(making, &then, false);
            edits = 0;
        }
    }
    if (edits)
        go_to(making, &then, false);
    making->at.upto[of] = kind->count; /* the same */
}

static void leave(struct making *making, enum section of, size_t most)
{
    while (making->at.gone[of] < making->kinds[of].goes) {
        struct point then = making->at;
        then.gone[of] = MIN(then.gone[of] + most, making->kinds[of].goes);
        go_to(making, &then, false);
    }
}

static struct point the_end(const struct making *making)
{
    struct point end = { .rest = true };

    for (enum section of = 0; of < SECTIONS; of++) {
        end.upto[of] = making->kinds[of].count;
        end.gone[of] = making->kinds[of].goes;
    }
    return end;
}

static void in_steps(struct making *making, size_t most, size_t goes)
{
    static const enum section order[SECTIONS] = { SECTION_QOS, SECTION_ACCOUNTS, SECTION_USERS,
                                                  SECTION_NODES };

    for (size_t i = 0; i < SECTIONS; i++) {
        bool few = order[i] == SECTION_QOS || order[i] == SECTION_ACCOUNTS;
        come(making, order[i], few ? SIZE_MAX : most);
    }
    if (goes > most) {
        struct point then = making->at;
        then.rest = true;
        go_to(making, &then, false);
        leave(making, SECTION_USERS, most);
        leave(making, SECTION_NODES, most);
    }
}

void config_changes_make(struct config_changes *out, const struct config_base *base,
                         const Config *config, bool reconfigure, size_t most)
{
    struct making making = { .out = out, .config = config };
    size_t edits = 0, goes = 0;

    *out = (struct config_changes){ 0 };
    arena_init(&out->arena);
    making.hashes.rest = base->hashes.rest;
    making.hashes.text = base->hashes.text;
    for (enum section of = 0; of < SECTIONS; of++) {
        kind_init(&making.kinds[of], base, config, of);
        edits += making.kinds[of].edits;
        goes += making.kinds[of].goes;
    }
    if (edits + goes > most && !making.kinds[SECTION_ACCOUNTS].moved)
        in_steps(&making, most, goes);
    struct point end = the_end(&making);
    CmdConfigChange *last = go_to(&making, &end, true);
    last->has_reconfigure = true;
    last->reconfigure = reconfigure;
    for (enum section of = 0; of < SECTIONS; of++)
        kind_done(&making.kinds[of]);
}

void config_changes_done(struct config_changes *changes)
{
    vec_done(&changes->list);
    arena_done(&changes->arena);
}
