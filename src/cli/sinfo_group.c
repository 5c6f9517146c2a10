// SPDX-License-Identifier: Apache-2.0
/*
 * sinfo_group.c - which nodes share a line of sinfo, and in which order the lines stand
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "cli/sinfo.h"
#include "schema/names.h"
#include "schema/node_view.h"

enum { KEYS_MAX = 16 };

void sinfo_groups_done(sinfo_groups *groups)
{
    vec_each (struct sinfo_group, group, groups)
        vec_done(&group->nodes);
    vec_done(groups);
}

/* Words of sinfo itself: what the state is called, not a state or flag of its own. */
static const struct {
    const char *word;
    uint32_t flags;
} more_states[] = {
    { "maint", NODE_FLAG_MAINT },
    { "no_respond", NODE_FLAG_NO_RESPOND },
    { "inval", NODE_FLAG_INVALID_REG },
    { "failing", NODE_FLAG_FAIL },
    { "failg", NODE_FLAG_FAIL },
    { "reboot", NODE_FLAG_REBOOT_REQUESTED },
    { "boot", NODE_FLAG_REBOOT_REQUESTED },
};

static bool read_state(struct span word, struct sinfo_state *out)
{
    const struct name_row *base = name_find(&node_state_names, word.ptr, word.len);
    const struct name_row *flag = name_find(&node_flag_names, word.ptr, word.len);

    out->drained = span_ieq(word, "drained");
    out->draining = span_ieq(word, "draining") || span_ieq(word, "drng");
    if (span_ieq(word, "all"))
        out->base_states = UINT32_MAX;
    else if (out->drained || out->draining)
        return true;
    else if (base)
        out->base_states = 1u << base->value;
    else if (flag)
        out->flags = flag->value;
    for (size_t i = 0; i < ARRAY_LEN(more_states) && !out->base_states && !out->flags; i++) {
        if (span_ieq(word, more_states[i].word))
            out->flags = more_states[i].flags;
    }
    return out->base_states || out->flags;
}

int sinfo_read_states(const char *text, struct sinfo_filter *filter, struct err *err)
{
    const char *cursor = text;

    while (*cursor) {
        size_t len = strcspn(cursor, ",&+");
        struct sinfo_state *state = &filter->states[filter->state_count];
        struct span word = { cursor, len };

        if (filter->state_count == SINFO_STATES_MAX)
            return err_set(err, ERR_INVALID, "%s", text);
        *state = (struct sinfo_state){ .negated = *cursor == '~' };
        word = (struct span){ word.ptr + state->negated, word.len - state->negated };
        if (word.len || cursor[len] == '&' || cursor[len] == '+') {
            if (!read_state(word, state))
                return err_set(err, ERR_INVALID, "%.*s", (int)len, cursor);
            state->more = cursor[len] == '&' || cursor[len] == '+';
            filter->state_count++;
        }
        cursor += len + (cursor[len] != '\0');
    }
    return 0;
}

static bool is_busy(const NodeStatus *status)
{
    return status->state == NODE_ALLOCATED || status->state == NODE_MIXED ||
           (status->flags & NODE_FLAG_COMPLETING);
}

static bool in_state(const struct sinfo_state *state, const NodeStatus *status)
{
    bool drain = status->flags & NODE_FLAG_DRAIN;
    bool is = (state->base_states >> status->state & 1) || (state->flags & status->flags) ||
              (state->drained && drain && !is_busy(status)) ||
              (state->draining && drain && is_busy(status));

    return is != state->negated;
}

static bool in_states(const struct sinfo_filter *filter, const NodeStatus *status)
{
    bool all = true;

    for (size_t i = 0; i < filter->state_count; i++) {
        all = all && in_state(&filter->states[i], status);
        if (filter->states[i].more)
            continue;
        if (all)
            return true;
        all = true;
    }
    return false;
}

static bool wanted(const Node *node, const struct sinfo_filter *filter,
                   const struct hostlist *hosts)
{
    const NodeStatus *status = node_status(node);

    if (status->state == NODE_FUTURE && !filter->future)
        return false;
    if (filter->nodes && hostlist_find(hosts, node_spec(node)->name) < 0)
        return false;
    if (filter->dead && !(status->flags & NODE_FLAG_NO_RESPOND))
        return false;
    if (filter->responding && (status->flags & NODE_FLAG_NO_RESPOND))
        return false;
    if (filter->reasons && str_is_empty(status->reason))
        return false;
    return filter->state_count == 0 || in_states(filter, status);
}

static bool same_state(const Node *a, const Node *b, bool full)
{
    struct str x = { 0 }, y = { 0 };
    bool same;

    if (full) {
        node_state_add_full(&x, node_status(a)->state, node_status(a)->flags);
        node_state_add_full(&y, node_status(b)->state, node_status(b)->flags);
    } else {
        node_state_add_text(&x, node_status(a)->state, node_status(a)->flags);
        node_state_add_text(&y, node_status(b)->state, node_status(b)->flags);
    }
    same = str_eq(str_text(&x), str_text(&y));
    str_done(&x);
    str_done(&y);
    return same;
}

static bool same_text(void (*add)(struct str *out, const Node *node), const Node *a, const Node *b)
{
    struct str x = { 0 }, y = { 0 };
    bool same;

    add(&x, a);
    add(&y, b);
    same = str_eq(str_text(&x), str_text(&y));
    str_done(&x);
    str_done(&y);
    return same;
}

static bool same_size(const Node *a, const Node *b)
{
    return node_cpus(a) == node_cpus(b) && node_memory_mb(a) == node_memory_mb(b) &&
           node_sockets(a) == node_sockets(b) && node_cores(a) == node_cores(b) &&
           node_threads(a) == node_threads(b) && node_tmp_mb(a) == node_tmp_mb(b) &&
           node_spec(a)->weight == node_spec(b)->weight;
}

static bool same_node(const Node *a, const Node *b, unsigned match, bool exact)
{
    const NodeStatus *x = node_status(a), *y = node_status(b);

    if ((match & MATCH_STATE && !same_state(a, b, false)) ||
        (match & MATCH_STATE_FULL && !same_state(a, b, true)) ||
        (match & MATCH_FEATURES && !same_text(node_add_features, a, b)) ||
        (match & MATCH_GRES && !same_text(node_add_gres, a, b)) ||
        (match & MATCH_GRES_USED && !same_text(node_add_gres_used, a, b)))
        return false;
    if ((match & MATCH_HOSTNAME && !str_eq(node_hostname(a), node_hostname(b))) ||
        (match & MATCH_ADDR && !str_eq(node_address(a), node_address(b))) ||
        (match & MATCH_VERSION && !str_eq(node_version(a), node_version(b))) ||
        (match & MATCH_COMMENT && (!str_eq(node_spec(a)->comment, node_spec(b)->comment) ||
                                   !str_eq(node_spec(a)->extra, node_spec(b)->extra))) ||
        (match & MATCH_RESERVATION && !str_eq(x->reservation, y->reservation)) ||
        (match & MATCH_ALLOC_MEM && x->alloc_mem_mb != y->alloc_mem_mb))
        return false;
    if (match & MATCH_REASON &&
        (!str_eq(x->reason, y->reason) || x->reason_us / 1000000 != y->reason_us / 1000000 ||
         x->reason_uid != y->reason_uid))
        return false;
    return !exact || !(match & MATCH_SIZE) || same_size(a, b);
}

static bool same_partition(const Partition *a, const Partition *b, unsigned match)
{
    if (a == b)
        return true;
    if (match & (MATCH_PARTITION | MATCH_PART_OTHER))
        return false;
    return (!(match & MATCH_AVAIL) || a->spec->state == b->spec->state) &&
           (!(match & MATCH_TIME) || (a->spec->max_time_s == b->spec->max_time_s &&
                                      a->spec->default_time_s == b->spec->default_time_s));
}

static void widen(struct sinfo_range *range, uint64_t value, bool first)
{
    range->min = first ? value : MIN(range->min, value);
    range->max = first ? value : MAX(range->max, value);
}

static void count_node(struct sinfo_group *group, const Node *node)
{
    const NodeStatus *status = node_status(node);
    bool out_of_use = status->flags & (NODE_FLAG_DRAIN | NODE_FLAG_FAIL | NODE_FLAG_INVALID_REG) ||
                      status->state == NODE_DOWN || status->state == NODE_UNKNOWN ||
                      status->state == NODE_ERROR || status->state == NODE_FUTURE;
    uint64_t used = MIN(status->alloc_cpus, node_cpus(node)), left = node_cpus(node) - used;

    if (is_busy(status))
        group->alloc++;
    else if (out_of_use)
        group->other++;
    else
        group->idle++;
    group->cpus_alloc += used;
    group->cpus_idle += out_of_use ? 0 : left;
    group->cpus_other += out_of_use ? left : 0;
    group->alloc_mem_mb += status->alloc_mem_mb;
}

static void add_node(struct sinfo_group *group, const Node *node)
{
    const NodeStatus *status = node_status(node);
    const NodeSpec *spec = node_spec(node);
    bool first = group->nodes.len == 0;

    if (first)
        group->first = node;
    vec_push(&group->nodes, node);
    count_node(group, node);
    widen(&group->cpus, node_cpus(node), first);
    widen(&group->sockets, node_sockets(node), first);
    widen(&group->cores, node_cores(node), first);
    widen(&group->threads, node_threads(node), first);
    widen(&group->memory, node_memory_mb(node), first);
    widen(&group->disk, node_tmp_mb(node), first);
    widen(&group->weight, spec->has_weight ? spec->weight : 1, first);
    if (status->has_load_centi)
        widen(&group->load, status->load_centi, !group->any_load);
    if (status->has_free_mem_mb)
        widen(&group->free_mem, status->free_mem_mb, !group->any_free);
    group->any_load |= status->has_load_centi;
    group->any_free |= status->has_free_mem_mb;
}

static bool holds(const struct sinfo_group *group, const Node *node)
{
    for (size_t i = 0; i < group->nodes.len; i++) {
        if (group->nodes.items[i] == node)
            return true;
    }
    return false;
}

struct grouping {
    unsigned match;
    bool by_node, exact;
    sinfo_groups *groups;
    size_t from; /* first group of this partition, when partitions are told apart */
};

static void place(struct grouping *grouping, const Partition *partition, size_t order,
                  const Node *node)
{
    bool apart = grouping->match & (MATCH_PARTITION | MATCH_PART_OTHER);
    struct sinfo_group fresh = { .partition = partition,
                                 .order = apart || grouping->by_node ? order : 0 };

    for (size_t i = apart ? grouping->from : 0; !grouping->by_node && i < grouping->groups->len;
         i++) {
        struct sinfo_group *group = &grouping->groups->items[i];

        if (!group->first || !same_partition(group->partition, partition, grouping->match) ||
            !same_node(group->first, node, grouping->match, grouping->exact))
            continue;
        /* A node of several partitions counts once when they are not told apart. */
        if (apart || !holds(group, node))
            add_node(group, node);
        return;
    }
    add_node(&fresh, node);
    vec_push(grouping->groups, fresh);
}

static bool listed(const char *list, const char *name)
{
    const char *cursor = list;
    struct span word;

    if (!list)
        return true;
    while (str_next(&cursor, ",", &word)) {
        if (span_eq(word, name))
            return true;
    }
    return false;
}

int sinfo_group(const ListPartitionsReply *partitions, const ListNodesReply *nodes,
                const struct columns *columns, const struct sinfo_filter *filter, bool by_node,
                bool exact, sinfo_groups *out, struct err *err)
{
    struct grouping grouping = { .by_node = by_node, .exact = exact, .groups = out };
    CLEANUP(hostlist_done) struct hostlist hosts = { 0 };
    struct map by_name;

    if (filter->nodes && hostlist_parse(&hosts, filter->nodes, err) < 0)
        return -1;
    vec_each (const struct column, column, &columns->list)
        grouping.match |= column->field ? sinfo_match_of(column->field) : 0;
    map_init(&by_name);
    for (size_t i = 0; i < nodes->n_nodes; i++)
        map_put(&by_name, node_spec(nodes->nodes[i])->name, nodes->nodes[i]);
    for (size_t i = 0; i < partitions->n_partitions; i++) {
        const Partition *partition = partitions->partitions[i];

        if (!partition->spec || !listed(filter->partitions, partition->spec->name))
            continue;
        grouping.from = out->len;
        for (size_t k = 0; k < partition->n_node_names; k++) {
            const Node *node = map_get(&by_name, partition->node_names[k]);

            if (node && wanted(node, filter, &hosts))
                place(&grouping, partition, i, node);
        }
        /* A partition without such nodes still has a line. */
        if (out->len == grouping.from && grouping.match & MATCH_PARTITION && !by_node &&
            !filter->reasons)
            vec_push(out, (struct sinfo_group){ .partition = partition, .order = i });
    }
    map_done(&by_name);
    return 0;
}

struct key {
    char letter;
    bool down, by_order;
    const struct field *field;
};

struct sorting {
    struct key keys[KEYS_MAX];
    size_t count;
    const struct field_ctx *ctx;
};

static int64_t state_number(const struct sinfo_group *group)
{
    const NodeStatus *status = group->first ? node_status(group->first) : NULL;

    return status ? (int64_t)(status->flags | (uint32_t)status->state) : 0;
}

static bool number_of(const struct key *key, const struct sinfo_group *group, int64_t *out)
{
    int64_t limit =
        group->partition->spec->has_max_time_s ? group->partition->spec->max_time_s : -1;

    switch (key->letter) {
    case 'P':
        *out = (int64_t)group->order;
        return key->by_order;
    case 't':
    case 'T':
        *out = state_number(group);
        return true;
    case 'D':
        *out = (int64_t)group->nodes.len;
        return true;
    case 'c':
        *out = (int64_t)group->cpus.min;
        return true;
    case 'm':
        *out = (int64_t)group->memory.min;
        return true;
    case 'd':
        *out = (int64_t)group->disk.min;
        return true;
    case 'w':
        *out = (int64_t)group->weight.min;
        return true;
    case 'O':
        *out = (int64_t)group->load.min;
        return true;
    case 'e':
        *out = (int64_t)group->free_mem.min;
        return true;
    case 'l':
        *out = limit < 0 ? INT64_MAX : limit;
        return true;
    default:
        return false;
    }
}

static int compare_by(const struct key *key, const struct sinfo_group *a,
                      const struct sinfo_group *b, const struct field_ctx *ctx)
{
    struct field_call call = { key->field, a, ctx };
    struct str x = { 0 }, y = { 0 };
    int64_t m, n;
    int order;

    if (number_of(key, a, &m) && number_of(key, b, &n))
        return (m > n) - (m < n);
    key->field->write(&call, &x);
    call.object = b;
    key->field->write(&call, &y);
    order = hostlist_natural_cmp(str_text(&x), x.len, str_text(&y), y.len);
    str_done(&x);
    str_done(&y);
    return order;
}

static int compare(const void *a, const void *b, void *ctx)
{
    const struct sorting *sorting = ctx;
    const struct sinfo_group *x = a, *y = b;

    for (size_t i = 0; i < sorting->count; i++) {
        int order = compare_by(&sorting->keys[i], x, y, sorting->ctx);

        if (order)
            return sorting->keys[i].down ? -order : order;
    }
    return (x->order > y->order) - (x->order < y->order);
}

int sinfo_sort(sinfo_groups *groups, const char *spec, const struct field_ctx *ctx, struct err *err)
{
    struct sorting sorting = { .ctx = ctx };
    const char *cursor = spec;
    struct span word;

    while (str_next(&cursor, ",", &word)) {
        struct key key = { 0 };

        for (; word.len > 1 && strchr("+-#", *word.ptr); word.ptr++, word.len--) {
            key.down |= *word.ptr == '-';
            key.by_order |= *word.ptr == '#';
        }
        key.letter = *word.ptr;
        key.field =
            isalpha((unsigned char)key.letter) ? field_by_letter(&sinfo_fields, key.letter) : NULL;
        if (word.len != 1 || !key.field || sorting.count == KEYS_MAX)
            return err_set(err, ERR_INVALID, "%c", key.letter);
        sorting.keys[sorting.count++] = key;
    }
    if (groups->len)
        qsort_r(groups->items, groups->len, sizeof(groups->items[0]), compare, &sorting);
    return 0;
}
