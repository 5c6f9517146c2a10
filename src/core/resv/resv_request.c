/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resv_request.c - CoreCnt, TRES and Licenses of a reservation: what is wished for, and which nodes give it
 */
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "core/resv/resvs.h"
#include "wire/pb.h"

enum { WISH_GRES = 8 };

struct resv_request {
    uint64_t cores, cpus; /* of all nodes together; cpus: threads count */
    struct {
        char *name, *type;
        uint64_t count;
    } gres[WISH_GRES];
    size_t gres_count;
    bool per_node; /* so much of each node */
};

/* ---- reading ---- */

static int bad_tres(struct err *err, struct span word)
{
    return err_set(err, ERR_TRES, "%.*s is no TRES of a reservation", (int)MIN(word.len, 100),
                   word.ptr);
}

static int request_gres(struct resv_request *request, char *name, uint64_t count, struct span word,
                        struct err *err)
{
    char *type = strchr(name, ':');

    if (request->gres_count == WISH_GRES)
        return bad_tres(err, word);
    if (type)
        *type++ = '\0';
    request->gres[request->gres_count].name = name;
    request->gres[request->gres_count].type = type;
    request->gres[request->gres_count++].count = count;
    return 0;
}

/* license/NAME=COUNT is the same as Licenses=NAME:COUNT. */
static void request_licence(ReservationSpec *spec, const char *name, uint64_t count,
                            struct arena *arena)
{
    const char *text = arena_printf(arena, "%s:%llu", name, (unsigned long long)count);

    if (!str_is_empty(spec->licenses) && strstr(spec->licenses, text))
        return;
    if (!str_is_empty(spec->licenses))
        text = arena_printf(arena, "%s,%s", spec->licenses, text);
    free(spec->licenses);
    spec->licenses = mem_strdup(text);
}

static int read_tres(ReservationSpec *spec, const char *text, struct arena *arena,
                     struct resv_request *request, struct err *err)
{
    const char *cursor = text;
    struct span word;
    int code = 0;

    while (code == 0 && str_next(&cursor, ",", &word)) {
        char *name = arena_strndup(arena, word.ptr, word.len), *equals = strrchr(name, '=');
        uint64_t count;
        if (!equals)
            equals = strrchr(name, ':');
        if (!equals || !str_to_u64(equals + 1, UINT32_MAX, &count) || !count)
            return bad_tres(err, word);
        *equals = '\0';
        if (str_ieq(name, "cpu")) {
            request->cpus = count;
        } else if (str_ieq(name, "node") && !request->per_node) {
            spec->has_node_count = true;
            spec->node_count = (uint32_t)count;
        } else if (str_istarts(name, "license/") && !request->per_node) {
            request_licence(spec, name + strlen("license/"), count, arena);
        } else if (str_istarts(name, "gres/") || str_istarts(name, "gres:")) {
            code = request_gres(request, name + strlen("gres/"), count, word, err);
        } else {
            return bad_tres(err, word);
        }
    }
    return code;
}

static int read_request(struct state *state, ReservationSpec *spec, struct resv_request *request,
                        struct err *err)
{
    int code = 0;

    *request = (struct resv_request){ 0 };
    if (!str_is_empty(spec->tres))
        code = read_tres(spec, spec->tres, &state->scratch, request, err);
    if (code == 0 && !str_is_empty(spec->tres_per_node)) {
        if (request->cpus || request->gres_count)
            return err_set(err, ERR_TRES, "TRES and TRESPerNode cannot both be given");
        request->per_node = true;
        code = read_tres(spec, spec->tres_per_node, &state->scratch, request, err);
    }
    for (size_t i = 0; i < spec->n_core_counts; i++)
        request->cores += spec->core_counts[i];
    if (!spec->n_core_counts)
        request->cores = spec->core_count;
    return code;
}

static int check_licences(const struct state *state, const struct reservation *fresh,
                          struct err *err)
{
    vec_each (struct resv_licence, at, &fresh->licences) {
        const struct licence *licence = state_licence(state, at->name);
        uint64_t taken = at->count;
        if (!licence || !at->count)
            return err_set(err, ERR_LICENSES, "Invalid license specification: %.100s", at->name);
        vec_each (struct reservation *, other, &state->reservations) {
            if (!str_eq((*other)->spec->name, fresh->spec->name) &&
                resv_times_meet((*other)->spec, (*other)->flags, fresh->spec, fresh->flags))
                taken += resv_licences(*other, at->name);
        }
        if (taken > licence->total)
            return err_set(err, ERR_LICENSES,
                           "there are %u licenses %s, and %llu would be reserved", licence->total,
                           at->name, (unsigned long long)taken);
    }
    return 0;
}

/* ---- what nodes have for it ---- */

static void take_off(struct resv_part *room, const struct resv_part *use)
{
    room->cpus -= MIN(use->cpus, room->cpus);
    for (size_t i = 0; i < RESV_GRES; i++)
        room->gres[i] -= MIN(use->gres[i], room->gres[i]);
}

static struct resv_part room_on(const struct state *state, const struct reservation *fresh,
                                const struct node *node)
{
    struct resv_part room = { .node = node->number, .cpus = node->cpus };

    for (size_t i = 0; i < node->gres_count && i < RESV_GRES; i++)
        room.gres[i] = node->gres[i].total;
    vec_each (struct reservation *, at, &state->reservations) {
        if (fresh->flags & (RESV_OVERLAP | RESV_MAINT) ||
            !bitset_has(&(*at)->nodes, node->number) ||
            str_eq((*at)->spec->name, fresh->spec->name) ||
            !resv_times_meet((*at)->spec, (*at)->flags, fresh->spec, fresh->flags))
            continue;
        const struct resv_part *part = resv_part_of(*at, node->number);
        if (!part)
            return (struct resv_part){ .node = node->number };
        take_off(&room, part);
    }
    for (size_t i = 0; !(fresh->flags & RESV_IGNORE_JOBS) && i < node->jobs.len; i++) {
        struct resv_part use = { 0 };
        if (!resv_job_runs_into(node->jobs.items[i], fresh->spec))
            continue;
        resv_add_use(node->jobs.items[i], node, &use);
        take_off(&room, &use);
    }
    return room;
}

static int no_room(struct err *err, const struct node *node)
{
    return err_set(err, ERR_NODES_BUSY, "Requested nodes are busy: node %s has not so much left",
                   node->spec->name);
}

/* ---- sharing it out ---- */

static void free_parts(ReservationSpec *spec)
{
    for (size_t i = 0; i < spec->n_parts; i++)
        pb_free(spec->parts[i]);
    free(spec->parts);
    spec->parts = NULL;
    spec->n_parts = 0;
}

static void add_part(struct reservation *fresh, const struct node *node,
                     const struct resv_part *part)
{
    ReservationSpec *spec = fresh->spec;
    ReservationPart *out = NEW(ReservationPart);

    reservation_part__init(out);
    out->node = mem_strdup(node->spec->name);
    out->has_cpus = true;
    out->cpus = part->cpus;
    for (size_t i = 0; i < node->gres_count && i < RESV_GRES; i++) {
        if (!part->gres[i])
            continue;
        ReservationGres *gres = NEW(ReservationGres);
        reservation_gres__init(gres);
        gres->name = mem_strdup(node->gres[i].name);
        gres->type = node->gres[i].type ? mem_strdup(node->gres[i].type) : NULL;
        gres->has_count = true;
        gres->count = part->gres[i];
        out->gres = mem_resize(out->gres, (out->n_gres + 1) * sizeof(*out->gres));
        out->gres[out->n_gres++] = gres;
    }
    spec->parts = mem_resize(spec->parts, (spec->n_parts + 1) * sizeof(*spec->parts));
    spec->parts[spec->n_parts++] = out;
    bitset_add(&fresh->nodes, node->number);
}

static uint64_t share_of(uint64_t left, uint32_t nodes)
{
    return nodes ? (left + nodes - 1) / nodes : left;
}

static uint64_t up_to(uint64_t value, uint32_t unit)
{
    return (value + unit - 1) / unit * unit;
}

/*
 * What the node gives of what is left: its share when so many nodes are to give it, else as much as
 * it has. False when it has not its share, or nothing.
 */
static bool give(const struct node *node, const struct resv_part *room, struct resv_request *left,
                 uint32_t nodes, const uint32_t *cores, struct resv_part *out)
{
    uint64_t by_core = cores ? *cores : left->per_node ? left->cores : share_of(left->cores, nodes);
    uint64_t want = by_core * node->threads, cpus = 0;
    bool some = false;

    *out = (struct resv_part){ .node = node->number };
    if (!want) {
        cpus = left->per_node ? left->cpus : share_of(left->cpus, nodes);
        want = up_to(cpus, node->threads);
    }
    bool exact = nodes || left->per_node || cores;
    if (want > room->cpus && exact)
        return false;
    out->cpus = (uint32_t)MIN(want, room->cpus - room->cpus % node->threads);
    some = out->cpus > 0;
    for (size_t i = 0; i < left->gres_count; i++) {
        uint64_t need = left->per_node ? left->gres[i].count : share_of(left->gres[i].count, nodes);
        for (size_t k = 0; need && k < node->gres_count && k < RESV_GRES; k++) {
            if (!str_eq(node->gres[k].name, left->gres[i].name) ||
                (left->gres[i].type && !str_eq(node->gres[k].type, left->gres[i].type)))
                continue;
            uint64_t here = MIN(need, room->gres[k] - MIN(out->gres[k], room->gres[k]));
            out->gres[k] += here;
            need -= here;
            some = some || here;
        }
        if (need && exact)
            return false;
    }
    return some;
}

static void count_given(const struct node *node, const struct resv_part *given,
                        struct resv_request *left)
{
    if (left->per_node)
        return;
    left->cores -= MIN(left->cores, given->cpus / node->threads);
    left->cpus -= MIN(left->cpus, given->cpus);
    for (size_t i = 0; i < left->gres_count; i++) {
        for (size_t k = 0; k < node->gres_count && k < RESV_GRES; k++) {
            if (str_eq(node->gres[k].name, left->gres[i].name) &&
                (!left->gres[i].type || str_eq(node->gres[k].type, left->gres[i].type)))
                left->gres[i].count -= MIN(left->gres[i].count, given->gres[k]);
        }
    }
}

static bool is_given(const struct resv_request *left)
{
    bool all = !left->cores && !left->cpus;

    for (size_t i = 0; i < left->gres_count; i++)
        all = all && !left->gres[i].count;
    return all;
}

/* Of the nodes that were named, each its share. */
static int from_named(struct state *state, struct reservation *fresh, struct resv_request *left,
                      const struct bitset *named, struct err *err)
{
    const ReservationSpec *spec = fresh->spec;
    uint32_t nodes = (uint32_t)bitset_count(named), at = 0;
    bool by_node = spec->n_core_counts > 1;

    if (by_node && spec->n_core_counts != nodes)
        return err_set(err, ERR_NODE_COUNT, "CoreCnt has %zu numbers for %u nodes",
                       spec->n_core_counts, nodes);
    bitset_each (number, named) {
        const struct node *node = state->nodes.items[number];
        struct resv_part room = room_on(state, fresh, node), part;
        if (!give(node, &room, left, nodes - at, by_node ? &spec->core_counts[at] : NULL, &part))
            return no_room(err, node);
        count_given(node, &part, left);
        add_part(fresh, node, &part);
        at++;
    }
    return 0;
}

/* So many nodes of the partition with their share, or as few as it takes. */
static int from_partition(struct state *state, struct reservation *fresh, struct resv_request *left,
                          struct err *err)
{
    const ReservationSpec *spec = fresh->spec;
    const struct partition *partition = str_is_empty(spec->partition)
                                            ? state_default_partition(state)
                                            : state_partition(state, spec->partition);
    struct features features = { 0 };
    uint32_t count = spec->node_count, found = 0;
    bool by_node = spec->n_core_counts > 1;

    if (!partition)
        return err_code(err, ERR_INVALID_PARTITION);
    if (!str_is_empty(spec->features) &&
        features_read(spec->features, &state->scratch, &features, err) < 0)
        return -(int)err->code;
    if (left->per_node && !count)
        return err_set(err, ERR_NODE_COUNT, "TRESPerNode needs NodeCnt or Nodes");
    if (by_node && spec->n_core_counts != count)
        return err_set(err, ERR_NODE_COUNT, "CoreCnt has %zu numbers for %u nodes",
                       spec->n_core_counts, count);
    for (int usable = 1; usable >= 0; usable--) {
        bitset_each (number, &partition->nodes) {
            const struct node *node = state->nodes.items[number];
            struct resv_part room, part;
            if (node_is_usable(node) != usable || node->state == NODE_FUTURE ||
                (features.plain && !feature_match(features.plain, node)) ||
                (count ? found == count : is_given(left)))
                continue;
            room = room_on(state, fresh, node);
            if (!give(node, &room, left, count ? count - found : 0,
                      by_node ? &spec->core_counts[found] : NULL, &part))
                continue;
            count_given(node, &part, left);
            add_part(fresh, node, &part);
            found++;
        }
    }
    if (count ? found < count : !is_given(left))
        return err_set(err, ERR_NODES_BUSY,
                       "Requested nodes are busy: not so much could be reserved");
    return 0;
}

/* ---- all of it ---- */

/* Times are others, what it has is not: is it still there? */
static int check_parts(const struct state *state, struct reservation *fresh, struct err *err)
{
    resv_parts_derive(state, fresh);
    vec_each (struct resv_part, part, &fresh->parts) {
        const struct node *node = state->nodes.items[part->node];
        struct resv_part room = room_on(state, fresh, node);
        bool good = part->cpus <= room.cpus;
        for (size_t i = 0; i < RESV_GRES; i++)
            good = good && part->gres[i] <= room.gres[i];
        if (!good)
            return no_room(err, node);
        bitset_add(&fresh->nodes, part->node);
    }
    return 0;
}

int resv_request_read(struct state *state, struct reservation *fresh, bool again, bool *partial,
                      struct err *err)
{
    struct resv_request request;
    int code = read_request(state, fresh->spec, &request, err);

    if (code < 0)
        return code;
    if (again)
        free_parts(fresh->spec);
    *partial = fresh->spec->n_parts || request.cores || request.cpus || request.gres_count;
    if (*partial && fresh->flags & (RESV_REPLACE | RESV_REPLACE_DOWN | RESV_PART_NODES))
        return err_set(err, ERR_INVALID, "only whole nodes are replaced or those of a partition");
    resv_licences_derive(fresh);
    return check_licences(state, fresh, err);
}

int resv_request_choose(struct state *state, struct reservation *fresh, const struct bitset *named,
                        struct err *err)
{
    struct resv_request request;
    int code = 0;

    bitset_init(&fresh->nodes, state->nodes.len);
    if (!fresh->spec->n_parts) {
        code = read_request(state, fresh->spec, &request, err);
        if (code == 0)
            code = named ? from_named(state, fresh, &request, named, err)
                         : from_partition(state, fresh, &request, err);
    }
    return code < 0 ? code : check_parts(state, fresh, err);
}
