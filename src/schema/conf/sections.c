/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sections.c - which sections of a configuration are those that there were before
 *
 * (1) What this finds decides what a change costs, never what comes of it.
 * (2) Mostly sections come in the order they had: both lists are walked side by side, with a short
 *     look ahead where they part. When that does not help, a map of names does.
 */
#include "schema/sections.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "wire/pb.h"

enum { LOOK_AHEAD = 16, FETCH_AHEAD = 8 };

static const struct row {
    size_t count, list; /* offsets in Config */
    unsigned names;     /* fields that say which one it is: the first so many */
} rows[SECTIONS] = {
    [SECTION_NODES] = { offsetof(Config, n_nodes), offsetof(Config, nodes), 1 },
    [SECTION_QOS] = { offsetof(Config, n_qos), offsetof(Config, qos), 1 },
    [SECTION_ACCOUNTS] = { offsetof(Config, n_accounts), offsetof(Config, accounts), 1 },
    [SECTION_USERS] = { offsetof(Config, n_users), offsetof(Config, users), 3 },
};

static size_t *count_in(Config *config, enum section kind)
{
    return (size_t *)(void *)((char *)config + rows[kind].count);
}

static ProtobufCMessage ***list_in(Config *config, enum section kind)
{
    return (ProtobufCMessage ***)(void *)((char *)config + rows[kind].list);
}

ProtobufCMessage **sections_list(const Config *config, enum section kind, size_t *count)
{
    Config *any = (Config *)(uintptr_t)config;

    *count = *count_in(any, kind);
    return *list_in(any, kind);
}

void sections_set(Config *config, enum section kind, ProtobufCMessage **list, size_t count)
{
    *list_in(config, kind) = list;
    *count_in(config, kind) = count;
}

/* ---- comparing ---- */

struct lists {
    ProtobufCMessage **old, **now;
    struct sections_of *of;
    unsigned names;
    struct pb_compare compare;
    struct map by_name; /* old ones from a certain place on, + 1; (2) */
    bool has_map;
};

static bool is_named(const struct lists *lists, size_t now, size_t old)
{
    return pb_same_names(lists->now[now], lists->old[old], lists->names);
}

static void set_pair(struct lists *lists, size_t now, size_t old, bool in_order, bool same)
{
    lists->of->in_order[now] = in_order;
    lists->of->was[now] = (uint32_t)old + 1;
    lists->of->now[old] = (uint32_t)now + 1;
    lists->of->same[now] = lists->of->old_same[old] = same;
    lists->of->all_same = lists->of->all_same && same;
}

static void pair(struct lists *lists, size_t now, size_t old, bool in_order)
{
    set_pair(lists, now, old, in_order,
             in_order && pb_compare(&lists->compare, lists->now[now], lists->old[old]));
}

/* They lie all over the memory. */
static void fetch(const struct lists *lists, size_t old)
{
    enum { LINES = 4, LINE_BYTES = 64 };

    for (size_t i = 0; old < lists->of->old_count && i < LINES; i++)
        __builtin_prefetch((const char *)lists->old[old] + i * LINE_BYTES);
}

static const char *name_of(const struct lists *lists, const ProtobufCMessage *message,
                           struct str *out)
{
    str_clear(out);
    for (unsigned i = 0; i < lists->names; i++) {
        const char *text = pb_text(message, i);
        str_add(out, text ? text : "");
        str_add(out, "|");
    }
    return str_text(out);
}

static void make_map(struct lists *lists, size_t from)
{
    struct str name = { 0 };

    lists->has_map = true;
    for (size_t i = from; i < lists->of->old_count; i++) {
        const char *key = name_of(lists, lists->old[i], &name);
        if (!map_has(&lists->by_name, key))
            map_put(&lists->by_name, key, (void *)(uintptr_t)(i + 1));
    }
    str_done(&name);
}

/* Where the old one of that name is, at `from` or after it, by a short look ahead; or -1. */
static ptrdiff_t near(const struct lists *lists, size_t now, size_t from)
{
    size_t end = MIN(from + LOOK_AHEAD, lists->of->old_count);

    for (size_t i = from; i < end; i++) {
        if (is_named(lists, now, i))
            return (ptrdiff_t)i;
    }
    return -1;
}

/* Is the old one named by one that follows? Then what stands before that is new. */
static bool comes_later(const struct lists *lists, size_t now, size_t old)
{
    size_t end = MIN(now + LOOK_AHEAD, lists->of->count);

    for (size_t i = now + 1; i < end; i++) {
        if (is_named(lists, i, old))
            return true;
    }
    return false;
}

/* (2) */
static void walk(struct lists *lists)
{
    struct str name = { 0 };
    size_t next = 0;

    for (size_t i = 0; i < lists->of->count; i++) {
        fetch(lists, next + FETCH_AHEAD);
        if (next < lists->of->old_count &&
            pb_compare(&lists->compare, lists->now[i], lists->old[next])) {
            set_pair(lists, i, next++, true, true);
            continue;
        }
        ptrdiff_t at =
            next < lists->of->old_count && is_named(lists, i, next) ? (ptrdiff_t)next : -1;
        if (at < 0 && !lists->has_map) {
            at = near(lists, i, next);
            if (at < 0 && next < lists->of->old_count && !comes_later(lists, i, next))
                make_map(lists, next);
        }
        if (at < 0 && lists->has_map)
            at = (ptrdiff_t)(uintptr_t)map_get(&lists->by_name,
                                               name_of(lists, lists->now[i], &name)) -
                 1;
        if (at < 0 || lists->of->now[at])
            continue;
        pair(lists, i, (size_t)at, (size_t)at >= next);
        next = MAX(next, (size_t)at + 1);
    }
    str_done(&name);
}

/* What the walk passed over on both sides. */
static void pair_rest(struct lists *lists)
{
    struct sections_of *of = lists->of;
    struct str name = { 0 };
    bool old_left = false, left = false;

    for (size_t i = 0; i < of->old_count; i++)
        old_left = old_left || !of->now[i];
    for (size_t i = 0; i < of->count; i++)
        left = left || !of->was[i];
    of->all_same = of->all_same && !left && !old_left;
    if (!left || !old_left)
        return;
    map_clear(&lists->by_name);
    for (size_t i = 0; i < of->old_count; i++) {
        if (!of->now[i])
            map_put(&lists->by_name, name_of(lists, lists->old[i], &name),
                    (void *)(uintptr_t)(i + 1));
    }
    for (size_t i = 0; i < of->count; i++) {
        uintptr_t at =
            of->was[i] ? 0
                       : (uintptr_t)map_get(&lists->by_name, name_of(lists, lists->now[i], &name));
        if (at && !of->now[at - 1])
            pair(lists, i, at - 1, false);
    }
    str_done(&name);
}

static struct lists lists_init(struct sections_of *of, const Config *old, const Config *config,
                               enum section kind)
{
    struct lists lists = { .of = of, .names = rows[kind].names };

    lists.old = sections_list(old, kind, &of->old_count);
    lists.now = sections_list(config, kind, &of->count);
    of->was = NEW_ARRAY(uint32_t, of->count + 1);
    of->now = NEW_ARRAY(uint32_t, of->old_count + 1);
    of->in_order = NEW_ARRAY(bool, of->count + 1);
    of->same = NEW_ARRAY(bool, of->count + 1);
    of->old_same = NEW_ARRAY(bool, of->old_count + 1);
    of->all_same = true;
    return lists;
}

void sections_compare(struct sections *sections, const Config *old, const Config *config)
{
    for (enum section kind = 0; kind < SECTIONS; kind++) {
        struct sections_of *of = &sections->of[kind];
        struct lists lists = lists_init(of, old, config, kind);
        if (!of->count || !of->old_count) {
            of->all_same = of->count == of->old_count;
            continue;
        }
        map_init(&lists.by_name);
        pb_compare_init(&lists.compare, lists.now[0]->descriptor);
        walk(&lists);
        pair_rest(&lists);
        pb_compare_done(&lists.compare);
        map_done(&lists.by_name);
    }
}

/* ---- a change ---- */

static size_t fresh_in(const CmdConfigChange *change, enum section kind,
                       ProtobufCMessage *const **list)
{
    size_t count = 0;

    *list = change->config ? sections_list(change->config, kind, &count) : NULL;
    return count;
}

static bool has_runs(const CmdConfigChange *change, enum section kind)
{
    for (size_t i = 0; i < change->n_runs; i++) {
        if (change->runs[i]->kind == kind)
            return true;
    }
    return false;
}

/* Old ones in their order, each once, and all that came: how many there are then, or -1. */
static int64_t look_runs(const CmdConfigChange *change, enum section kind, size_t old_count,
                         size_t fresh_count)
{
    uint64_t next = 0, fresh = 0, all = 0;

    for (size_t i = 0; i < change->n_runs; i++) {
        const ConfigRun *run = change->runs[i];
        if (run->kind != kind)
            continue;
        if (run->count && (run->from < next || (uint64_t)run->from + run->count > old_count))
            return -1;
        next = run->count ? (uint64_t)run->from + run->count : next;
        fresh += run->fresh;
        all += (uint64_t)run->count + run->fresh;
        if (fresh > fresh_count)
            return -1;
    }
    return fresh == fresh_count ? (int64_t)all : -1;
}

static int merge_lists(Config *config, const Config *old, const CmdConfigChange *change,
                       enum section kind, struct err *err)
{
    ProtobufCMessage *const *fresh;
    size_t old_count, fresh_count = fresh_in(change, kind, &fresh), len = 0;
    ProtobufCMessage **had = sections_list(old, kind, &old_count), **list;
    bool has = has_runs(change, kind);
    int64_t count = has           ? look_runs(change, kind, old_count, fresh_count)
                    : fresh_count ? -1
                                  : (int64_t)old_count;

    if (count < 0 || count > INT32_MAX)
        return err_set(err, ERR_BAD_MESSAGE, "the change of the configuration is damaged");
    list = NEW_ARRAY(ProtobufCMessage *, (size_t)count + 1);
    for (size_t i = 0; i < change->n_runs; i++) {
        const ConfigRun *run = change->runs[i];
        if (run->kind != kind)
            continue;
        for (uint32_t k = 0; k < run->count; k++)
            list[len++] = had[run->from + k];
        for (uint32_t k = 0; k < run->fresh; k++)
            list[len++] = *fresh++;
    }
    for (size_t i = 0; i < old_count && !has; i++)
        list[i] = had[i];
    sections_set(config, kind, list, (size_t)count);
    return 0;
}

static void keep_run(struct lists *lists, size_t now, size_t from, size_t count)
{
    for (size_t k = 0; k < count; k++)
        set_pair(lists, now + k, from + k, true, true);
}

static size_t next_kept(const CmdConfigChange *change, size_t run, enum section kind, size_t none)
{
    for (size_t i = run + 1; i < change->n_runs; i++) {
        if (change->runs[i]->kind == kind && change->runs[i]->count)
            return change->runs[i]->from;
    }
    return none;
}

/* Those that came to those of their names that do not stay; in order between what stays. */
static void pair_fresh(struct lists *lists, const CmdConfigChange *change, enum section kind)
{
    struct str name = { 0 };
    size_t now = 0, next = 0;

    for (size_t i = 0; i < lists->of->old_count; i++) {
        if (!lists->of->now[i])
            map_put(&lists->by_name, name_of(lists, lists->old[i], &name),
                    (void *)(uintptr_t)(i + 1));
    }
    for (size_t i = 0; i < change->n_runs; i++) {
        const ConfigRun *run = change->runs[i];
        if (run->kind != kind)
            continue;
        now += run->count;
        next = run->count ? (size_t)run->from + run->count : next;
        size_t until = run->fresh ? next_kept(change, i, kind, lists->of->old_count) : 0;
        for (uint32_t k = 0; k < run->fresh; k++, now++) {
            size_t at =
                (size_t)(uintptr_t)map_get(&lists->by_name, name_of(lists, lists->now[now], &name));
            if (!at || lists->of->now[at - 1])
                continue;
            bool in_order = at - 1 >= next && at - 1 < until;
            set_pair(lists, now, at - 1, in_order, false);
            next = in_order ? at : next;
        }
    }
    str_done(&name);
}

static void pair_runs(struct sections_of *of, const Config *old, const Config *config,
                      const CmdConfigChange *change, enum section kind)
{
    struct lists lists = lists_init(of, old, config, kind);
    size_t now = 0, fresh = 0, kept = 0;

    if (!has_runs(change, kind)) {
        keep_run(&lists, 0, 0, of->count);
        return;
    }
    for (size_t i = 0; i < change->n_runs; i++) {
        const ConfigRun *run = change->runs[i];
        if (run->kind != kind)
            continue;
        keep_run(&lists, now, run->from, run->count);
        now += (size_t)run->count + run->fresh;
        kept += run->count;
        fresh += run->fresh;
    }
    of->all_same = !fresh && kept == of->old_count;
    if (!fresh || kept == of->old_count)
        return;
    map_init(&lists.by_name);
    pair_fresh(&lists, change, kind);
    map_done(&lists.by_name);
}

int sections_merge(struct sections *sections, Config *config, const Config *old,
                   const CmdConfigChange *change, struct err *err)
{
    static const Config nothing = CONFIG__INIT;
    int code = 0;

    *config = change->keeps_rest ? *old : change->config ? *change->config : nothing;
    if (change->keeps_rest) /* some of it is another: it is not the one of that hash */
        config->hash = NULL;
    for (enum section kind = 0; kind < SECTIONS; kind++)
        sections_set(config, kind, NULL, 0);
    for (enum section kind = 0; code == 0 && kind < SECTIONS; kind++)
        code = merge_lists(config, old, change, kind, err);
    for (enum section kind = 0; code == 0 && kind < SECTIONS; kind++)
        pair_runs(&sections->of[kind], old, config, change, kind);
    if (code < 0)
        sections_unmerge(config);
    return code;
}

void sections_unmerge(Config *config)
{
    for (enum section kind = 0; kind < SECTIONS; kind++)
        free(*list_in(config, kind));
}

void sections_done(struct sections *sections)
{
    for (enum section kind = 0; kind < SECTIONS; kind++) {
        struct sections_of *of = &sections->of[kind];
        free(of->was);
        free(of->now);
        free(of->in_order);
        free(of->same);
        free(of->old_same);
    }
    *sections = (struct sections){ 0 };
}

/* ---- copying ---- */

/* What stays when all these sections are left out. */
static Config without(const Config *config)
{
    Config rest = *config;

    for (enum section kind = 0; kind < SECTIONS; kind++)
        *count_in(&rest, kind) = 0;
    return rest;
}

static uint64_t fold_all(uint64_t hash, const struct section_hashes *hashes, const size_t count[])
{
    for (enum section kind = 0; kind < SECTIONS; kind++) {
        hash = hash_mix(hash + count[kind]);
        for (size_t i = 0; i < count[kind]; i++)
            hash = hash_mix(hash ^ hashes->of[kind][i]);
    }
    return hash;
}

uint64_t section_hashes_base(const struct section_hashes *hashes, const size_t count[SECTIONS])
{
    return fold_all(hash_mix(hashes->rest) ^ hashes->text, hashes, count);
}

uint64_t section_name_hash(const ProtobufCMessage *section, enum section kind)
{
    uint64_t hash = kind;

    for (unsigned i = 0; i < rows[kind].names; i++) {
        const char *text = pb_text(section, i);
        hash = text ? hash_bytes(text, strlen(text), hash) : hash_mix(hash + 1);
    }
    return hash;
}

void config_rest_hash(const Config *config, struct section_hashes *out)
{
    Config rest = without(config);

    out->text = rest.hash ? hash_bytes(rest.hash, strlen(rest.hash), 1) : 0;
    rest.hash = NULL;
    out->rest = message_hash(&rest.base, 0);
}

static void take(const Config *config, Config *old, Config *to, const struct sections_of *of,
                 enum section kind, struct section_hashes *hashes)
{
    ProtobufCMessage **from = *list_in((Config *)(uintptr_t)config, kind);
    uint64_t *mine = NEW_ARRAY(uint64_t, of->count + 1);
    uint64_t *names = NEW_ARRAY(uint64_t, of->count + 1);

    *count_in(to, kind) = of->count;
    *list_in(to, kind) = of->count ? NEW_ARRAY(ProtobufCMessage *, of->count) : NULL;
    for (size_t i = 0; i < of->count; i++) {
        if (of->same[i]) {
            (*list_in(to, kind))[i] = (*list_in(old, kind))[of->was[i] - 1];
            mine[i] = hashes->of[kind][of->was[i] - 1];
            names[i] = hashes->names[kind][of->was[i] - 1];
        } else {
            (*list_in(to, kind))[i] = pb_copy_hash(from[i], &mine[i]);
            names[i] = section_name_hash(from[i], kind);
        }
    }
    free(hashes->of[kind]);
    free(hashes->names[kind]);
    hashes->of[kind] = mine;
    hashes->names[kind] = names;
}

Config *config_take(const Config *config, Config *old, const struct sections *sections,
                    struct section_hashes *hashes, uint64_t *hash)
{
    Config rest = without(config);
    Config *copy = pb_copy_hash(&rest, hash);
    size_t count[SECTIONS];

    config_rest_hash(copy, hashes);

    for (enum section kind = 0; kind < SECTIONS; kind++) {
        take(config, old, copy, &sections->of[kind], kind, hashes);
        count[kind] = sections->of[kind].count;
    }
    *hash = fold_all(*hash, hashes, count);
    return copy;
}

void config_drop(Config *old, const struct sections *sections)
{
    for (enum section kind = 0; kind < SECTIONS; kind++) {
        ProtobufCMessage **list = *list_in(old, kind);
        size_t left = 0;
        for (size_t i = 0; i < *count_in(old, kind); i++) {
            if (!sections->of[kind].old_same[i])
                list[left++] = list[i];
        }
        *count_in(old, kind) = left;
        if (!left) { /* it is freed only with what is in it */
            free(list);
            *list_in(old, kind) = NULL;
        }
    }
    pb_free(old);
}

uint64_t config_hash(const Config *config, struct section_hashes *hashes)
{
    size_t count[SECTIONS];

    Config rest = without(config);

    section_hashes_done(hashes);
    config_rest_hash(config, hashes);
    for (enum section kind = 0; kind < SECTIONS; kind++) {
        ProtobufCMessage **list = sections_list(config, kind, &count[kind]);
        hashes->of[kind] = NEW_ARRAY(uint64_t, count[kind] + 1);
        hashes->names[kind] = NEW_ARRAY(uint64_t, count[kind] + 1);
        for (size_t i = 0; i < count[kind]; i++) {
            hashes->of[kind][i] = message_hash(list[i], 0);
            hashes->names[kind][i] = section_name_hash(list[i], kind);
        }
    }
    return fold_all(message_hash(&rest.base, 0), hashes, count);
}

void section_hashes_done(struct section_hashes *hashes)
{
    for (enum section kind = 0; kind < SECTIONS; kind++) {
        free(hashes->of[kind]);
        free(hashes->names[kind]);
    }
    *hashes = (struct section_hashes){ 0 };
}
