/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accounts.c - accounts, associations and QOS: made from the configuration, found by name
 */
#include "core/accounts_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "core/state_priv.h"

/* ---- finding ---- */

/* account|user|partition; names have no bar. */
static void assoc_key(struct str *out, const char *account, const char *user, const char *partition)
{
    str_add(out, account);
    str_add(out, "|");
    str_add(out, user ? user : "");
    str_add(out, "|");
    str_add(out, partition ? partition : "");
}

/* The same for a name of usual length, without memory of its own; 0 when it is longer. */
static size_t small_key(char *out, size_t size, const char *account, const char *user,
                        const char *partition)
{
    const char *parts[] = { account, user ? user : "", partition ? partition : "" };
    size_t len = 0;

    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        size_t more = strlen(parts[i]);
        if (len + more + 2 > size)
            return 0;
        memcpy(out + len, parts[i], more);
        len += more;
        if (i + 1 < ARRAY_LEN(parts))
            out[len++] = '|';
    }
    return len;
}

static struct assoc *assoc_get(const struct accounts *accounts, const char *account,
                               const char *user, const char *partition)
{
    char small[256];
    struct str key = { 0 };
    size_t len = small_key(small, sizeof(small), account, user, partition);

    if (len)
        return map_get_len(&accounts->assoc_keys, small, len);
    assoc_key(&key, account, user, partition);
    struct assoc *assoc = map_get(&accounts->assoc_keys, str_text(&key));
    str_done(&key);
    return assoc;
}

const struct assoc *state_assoc(const struct state *state, const char *account, const char *user,
                                const char *partition)
{
    const struct assoc *assoc = NULL;

    if (partition && user)
        assoc = assoc_get(state->accounts, account, user, partition);
    return assoc ? assoc : assoc_get(state->accounts, account, user, NULL);
}

const struct qos *state_qos(const struct state *state, const char *name)
{
    return name ? map_get(&state->accounts->qos_names, name) : NULL;
}

unsigned state_enforce(const struct state *state)
{
    return state->accounts->enforce;
}

const struct tres *state_tres(const struct state *state, size_t *count)
{
    *count = state->accounts->tres_count;
    return state->accounts->tres;
}

size_t state_assoc_count(const struct state *state)
{
    return state->accounts->assocs.len;
}

const struct assoc *state_assoc_at(const struct state *state, size_t number)
{
    return state->accounts->assocs.items[number];
}

size_t state_qos_count(const struct state *state)
{
    return state->accounts->qos.len;
}

const struct qos *state_qos_at(const struct state *state, size_t number)
{
    return state->accounts->qos.items[number];
}

size_t state_holder_count(const struct state *state)
{
    return state->accounts->holders;
}

const struct qos *partition_qos(const struct state *state, const struct partition *partition)
{
    return partition && !str_is_empty(partition->spec->qos) ? state_qos(state, partition->spec->qos)
                                                            : NULL;
}

struct holder *accounts_holder(const struct state *state, const char *account, const char *user,
                               const char *partition, const char *qos, struct assoc **assoc)
{
    if (qos) {
        struct qos *found = map_get(&state->accounts->qos_names, qos);
        return found ? &found->holder : NULL;
    }
    *assoc = account ? assoc_get(state->accounts, account, user, partition) : NULL;
    return *assoc ? &(*assoc)->holder : NULL;
}

/* ---- making ---- */

static unsigned enforce_of(const char *text)
{
    static const struct {
        const char *word;
        unsigned bits;
    } rows[] = {
        { "associations", ENFORCE_ASSOCS },
        { "limits", ENFORCE_ASSOCS | ENFORCE_LIMITS },
        { "qos", ENFORCE_ASSOCS | ENFORCE_QOS },
        { "safe", ENFORCE_ASSOCS | ENFORCE_LIMITS | ENFORCE_SAFE },
        { "wckeys", ENFORCE_ASSOCS },
        { "all", ENFORCE_ASSOCS | ENFORCE_LIMITS | ENFORCE_QOS | ENFORCE_SAFE },
    };
    unsigned bits = 0;
    struct span word;

    while (text && str_next(&text, ", ", &word)) {
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
            if (strlen(rows[i].word) == word.len &&
                strncasecmp(rows[i].word, word.ptr, word.len) == 0)
                bits |= rows[i].bits;
        }
    }
    return bits;
}

static void holder_init(struct accounts *accounts, struct holder *holder, bool keeps)
{
    holder->number = accounts->holders++;
    holder->keeps = keeps;
}

static unsigned qos_flags(const ConfQos *conf)
{
    static const struct {
        const char *word;
        unsigned flag;
    } rows[] = {
        { "DenyOnLimit", QOS_DENY_ON_LIMIT },
        { "EnforceUsageThreshold", QOS_ENFORCE_THRESHOLD },
        { "NoDecay", QOS_NO_DECAY },
        { "NoReserve", QOS_NO_RESERVE },
        { "OverPartQOS", QOS_OVER_PART },
        { "PartitionMaxNodes", QOS_PART_MAX_NODES },
        { "PartitionMinNodes", QOS_PART_MIN_NODES },
        { "PartitionTimeLimit", QOS_PART_TIME },
        { "Relative", QOS_RELATIVE },
        { "RequiresReservation", QOS_REQUIRES_RESV },
        { "UsageFactorSafe", QOS_FACTOR_SAFE },
    };
    unsigned flags = 0;

    for (size_t i = 0; i < conf->n_qos_flags; i++) {
        for (size_t k = 0; k < ARRAY_LEN(rows); k++)
            flags |= str_ieq(conf->qos_flags[i], rows[k].word) ? rows[k].flag : 0;
    }
    return flags;
}

static void add_qos(struct accounts *accounts, const ConfQos *conf)
{
    struct qos *qos = NEW(struct qos);

    holder_init(accounts, &qos->holder, true);
    qos->name = arena_strdup(&accounts->arena, conf->name);
    qos->index = (uint32_t)accounts->qos.len;
    qos->priority = conf->qos_priority;
    qos->flags = qos_flags(conf);
    qos->holder.no_decay = qos->flags & QOS_NO_DECAY;
    qos->usage_factor = (uint32_t)MIN(thousandths(conf->usage_factor, 1000), UINT64_C(1000000));
    qos->limit_factor = (uint32_t)MIN(thousandths(conf->limit_factor, 0), UINT64_C(1000000));
    qos->min_priority = conf->min_prio_threshold;
    qos->threshold = MIN(thousandths(conf->usage_threshold, 0), UINT64_C(1000)) * FRACTION / 1000;
    qos->preempts = ARENA_ARRAY(&accounts->arena, char *, conf->n_qos_preempt + 1);
    for (size_t i = 0; i < conf->n_qos_preempt; i++)
        qos->preempts[qos->preempt_count++] = arena_strdup(&accounts->arena, conf->qos_preempt[i]);
    if (conf->qos_preempt_mode)
        qos->preempt_mode = arena_strdup(&accounts->arena, conf->qos_preempt_mode);
    qos->preempt_exempt_s = conf->has_qos_preempt_exempt_s ? conf->qos_preempt_exempt_s : -1;
    qos->grace_s = conf->qos_grace_time_s;
    qos->users = NEW(struct map);
    qos->accounts = NEW(struct map);
    map_init(qos->users);
    map_init(qos->accounts);
    bounds_none(&qos->bounds);
    bounds_read(accounts, &conf->base, &qos->bounds);
    accounts->top_qos = MAX(accounts->top_qos, qos->priority);
    vec_push(&accounts->qos, qos);
    map_put(&accounts->qos_names, qos->name, qos);
}

static void take_qos_list(struct accounts *accounts, struct assoc *assoc, char *const *names,
                          size_t count, const char *one)
{
    size_t words = accounts->qos.len / 64 + 1;

    if (count)
        assoc->qos = ARENA_ARRAY(&accounts->arena, uint64_t, words);
    for (size_t i = 0; i < count; i++) {
        const struct qos *qos = map_get(&accounts->qos_names, names[i]);
        if (qos)
            assoc->qos[qos->index / 64] |= UINT64_C(1) << qos->index % 64;
    }
    if (one)
        assoc->default_qos = map_get(&accounts->qos_names, one);
    else if (count) /* the parent's may not be among them */
        assoc->default_qos = map_get(&accounts->qos_names, names[0]);
}

/* Max limits are the parent's unless given; Grp limits are each one's own. */
static void inherit(struct assoc *assoc)
{
    const struct assoc *parent = assoc->parent;
    static const enum bound counts[] = { MAX_JOBS, MAX_SUBMIT, MAX_ACCRUE, MAX_WALL };
    static const enum tres_bound tres[] = { MAX_TRES_JOB, MAX_TRES_NODE, MAX_TRES_MINS_JOB };

    if (!parent)
        return;
    assoc->qos = parent->qos;
    assoc->default_qos = parent->default_qos;
    assoc->priority = parent->priority;
    assoc->depth = parent->depth + 1;
    for (size_t i = 0; i < ARRAY_LEN(counts); i++)
        assoc->bounds.count[counts[i]] = parent->bounds.count[counts[i]];
    for (size_t i = 0; i < ARRAY_LEN(tres); i++) {
        memcpy(assoc->bounds.tres[tres[i]], parent->bounds.tres[tres[i]],
               sizeof(assoc->bounds.tres[0]));
        assoc->bounds.has_tres[tres[i]] = parent->bounds.has_tres[tres[i]];
    }
}

static struct assoc *add_assoc(struct accounts *accounts, const char *account, const char *user,
                               const char *partition, struct assoc *parent)
{
    struct assoc *assoc = NEW(struct assoc);
    struct str key = { 0 };

    holder_init(accounts, &assoc->holder, true);
    assoc->account = arena_strdup(&accounts->arena, account);
    assoc->user = arena_strdup(&accounts->arena, user);
    assoc->partition = arena_strdup(&accounts->arena, partition);
    assoc->parent = parent;
    assoc->fairshare = 1;
    bounds_none(&assoc->bounds);
    inherit(assoc);
    if (parent)
        vec_push(&parent->children, assoc);
    vec_push(&accounts->assocs, assoc);
    assoc_key(&key, account, user, partition);
    map_put(&accounts->assoc_keys, str_text(&key), assoc);
    str_done(&key);
    return assoc;
}

/* Parents come first. */
static void find_share(struct assoc *assoc)
{
    bool own = !assoc->parent || assoc->fairshare != FAIRSHARE_PARENT;

    assoc->share_of = own ? assoc : assoc->parent->share_of;
    if (own && assoc->parent)
        ((struct assoc *)(uintptr_t)assoc->parent->share_of)->shares_below += assoc->fairshare;
}

static void add_account(struct accounts *accounts, const ConfAccount *conf)
{
    struct assoc *root = accounts->assocs.items[0];
    struct assoc *assoc = root;

    if (!str_eq(conf->name, "root")) {
        struct assoc *parent = conf->parent ? assoc_get(accounts, conf->parent, NULL, NULL) : root;
        assoc = add_assoc(accounts, conf->name, NULL, NULL, parent ? parent : root);
    }
    if (conf->has_fairshare)
        assoc->fairshare = conf->fairshare;
    if (conf->has_assoc_priority)
        assoc->priority = conf->assoc_priority;
    bounds_read(accounts, &conf->base, &assoc->bounds);
    take_qos_list(accounts, assoc, conf->qos_list, conf->n_qos_list, conf->default_qos);
}

static void add_user(struct accounts *accounts, const ConfUser *conf)
{
    struct assoc *parent = assoc_get(accounts, conf->account, NULL, NULL);
    struct assoc *assoc = add_assoc(accounts, conf->account, conf->name, conf->partition,
                                    parent ? parent : accounts->assocs.items[0]);

    if (conf->has_fairshare)
        assoc->fairshare = conf->fairshare;
    if (conf->has_assoc_priority)
        assoc->priority = conf->assoc_priority;
    bounds_read(accounts, &conf->base, &assoc->bounds);
    take_qos_list(accounts, assoc, conf->qos_list, conf->n_qos_list, conf->default_qos);
    if (conf->is_default || !map_has(&accounts->defaults, conf->name))
        map_put(&accounts->defaults, conf->name, assoc);
    accounts->users++;
}

/* Nodes, partitions and licences are nothing to accounts; `hash` is of those too. */
static uint64_t accounts_config_hash(const Config *config)
{
    Config rest = *config;

    rest.n_nodes = rest.n_partitions = rest.n_gres = rest.n_down = rest.n_nodesets = 0;
    rest.n_switches = rest.n_blocks = 0;
    rest.licenses = rest.hash = NULL;
    uint64_t hash = message_hash(&rest.base, 0);
    for (size_t i = 0; i < config->n_partitions; i++) { /* they name TRES */
        const char *text = config->partitions[i]->tres_billing_weights;
        hash = text ? hash_bytes(text, strlen(text), hash) : hash;
    }
    return hash;
}

struct accounts *accounts_new(const Config *config)
{
    static const ConfQos normal = { .base = PROTOBUF_C_MESSAGE_INIT(&conf_qos__descriptor),
                                    .name = (char *)"normal" };
    struct accounts *accounts = NEW(struct accounts);
    bool has_normal = false;

    arena_init(&accounts->arena);
    map_init(&accounts->assoc_keys);
    map_init(&accounts->defaults);
    map_init(&accounts->qos_names);
    map_init(&accounts->accrue_lines);
    accounts->config_hash = accounts_config_hash(config);
    accounts->enforce = enforce_of(config->accounting_enforce);
    tres_collect(accounts, config);
    for (size_t i = 0; i < config->n_qos; i++) {
        add_qos(accounts, config->qos[i]);
        has_normal = has_normal || str_eq(config->qos[i]->name, "normal");
    }
    if (!has_normal)
        add_qos(accounts, &normal);
    struct assoc *root = add_assoc(accounts, "root", NULL, NULL, NULL);
    root->default_qos = map_get(&accounts->qos_names, "normal");
    for (size_t i = 0; i < config->n_accounts; i++)
        add_account(accounts, config->accounts[i]);
    for (size_t i = 0; i < config->n_users; i++)
        add_user(accounts, config->users[i]);
    if (!map_has(&accounts->defaults, "root")) {
        map_put(&accounts->defaults, "root", add_assoc(accounts, "root", "root", NULL, root));
        accounts->users++;
    }
    vec_each (struct assoc *, at, &accounts->assocs) {
        accounts->top_assoc = MAX(accounts->top_assoc, (*at)->priority);
        find_share(*at);
    }
    priority_read(accounts, config);
    accrue_read(accounts);
    return accounts;
}

void accounts_free(struct accounts *accounts)
{
    if (!accounts)
        return;
    vec_each (struct assoc *, at, &accounts->assocs) {
        vec_done(&(*at)->children);
        free(*at);
    }
    vec_each (struct qos *, at, &accounts->qos) {
        map_done((*at)->users);
        map_done((*at)->accounts);
        free((*at)->users);
        free((*at)->accounts);
        free(*at);
    }
    vec_each (struct holder *, at, &accounts->parts)
        free(*at);
    accrue_clear(accounts);
    map_done(&accounts->accrue_lines);
    vec_done(&accounts->assocs);
    vec_done(&accounts->qos);
    vec_done(&accounts->parts);
    vec_done(&accounts->totals);
    map_done(&accounts->assoc_keys);
    map_done(&accounts->defaults);
    map_done(&accounts->qos_names);
    arena_done(&accounts->arena);
    free(accounts);
}

static struct holder *new_part(struct accounts *accounts)
{
    struct holder *holder = NEW(struct holder);

    holder_init(accounts, holder, false);
    vec_push(&accounts->parts, holder);
    return holder;
}

struct holder *qos_user(struct accounts *accounts, const struct qos *qos, uint32_t uid, bool make)
{
    struct holder *holder = map_get_num(qos->users, uid);

    if (!holder && make) {
        holder = new_part(accounts);
        map_put_num(qos->users, uid, holder);
    }
    return holder;
}

struct holder *qos_account(struct accounts *accounts, const struct qos *qos, const char *account,
                           bool make)
{
    struct holder *holder = account ? map_get(qos->accounts, account) : NULL;

    if (!holder && account && make) {
        holder = new_part(accounts);
        map_put(qos->accounts, account, holder);
    }
    return holder;
}

/* ---- a new configuration ---- */

/* What was used of each TRES goes to its index among the new ones; NULL: it is forgotten. */
static void keep_holder(struct state *state, struct holder *to, struct holder *from,
                        const size_t *index)
{
    usage_settle(state, from);
    state->digest -= from->hash;
    if (!to)
        return;
    for (size_t i = 0; i < state->accounts->tres_count; i++) {
        if (index[i] < TRES_MOST)
            to->usage[index[i]] = from->usage[i];
    }
    to->wall = from->wall;
}

/* Usage of what is still there; state still has the old ones. */
static void keep_usage(struct state *state, struct accounts *to, struct accounts *from)
{
    size_t index[TRES_MOST];

    for (size_t i = 0; i < from->tres_count; i++)
        index[i] = tres_find(to, from->tres[i].name, strlen(from->tres[i].name));
    vec_each (struct assoc *, at, &from->assocs) {
        struct assoc *now = assoc_get(to, (*at)->account, (*at)->user, (*at)->partition);
        keep_holder(state, now ? &now->holder : NULL, &(*at)->holder, index);
    }
    vec_each (struct qos *, at, &from->qos) {
        struct qos *now = map_get(&to->qos_names, (*at)->name);
        keep_holder(state, now ? &now->holder : NULL, &(*at)->holder, index);
    }
}

/* PriorityUsageResetPeriod=NOW: with each configuration that says so. */
static void forget_usage(struct accounts *accounts)
{
    vec_each (struct assoc *, at, &accounts->assocs) {
        memset((*at)->holder.usage, 0, sizeof((*at)->holder.usage));
        (*at)->holder.wall = 0;
    }
    vec_each (struct qos *, at, &accounts->qos) {
        memset((*at)->holder.usage, 0, sizeof((*at)->holder.usage));
        (*at)->holder.wall = 0;
    }
}

static void begin_usage(struct state *state)
{
    struct accounts *accounts = state->accounts;

    vec_each (struct assoc *, at, &accounts->assocs) {
        (*at)->holder.usage_us = state->time_us;
        holder_rehash(state, &(*at)->holder);
    }
    vec_each (struct qos *, at, &accounts->qos) {
        (*at)->holder.usage_us = state->time_us;
        holder_rehash(state, &(*at)->holder);
    }
}

void accounts_replace(struct state *state)
{
    vec_each (struct assoc *, at, &state->accounts->assocs)
        state->digest -= (*at)->holder.hash;
    vec_each (struct qos *, at, &state->accounts->qos)
        state->digest -= (*at)->holder.hash;
    accounts_free(state->accounts);
    state->accounts = accounts_new(state->config);
    accounts_see_partitions(state);
    accounts_hash_all(state);
}

void accounts_hash_all(struct state *state)
{
    vec_each (struct assoc *, at, &state->accounts->assocs)
        holder_rehash(state, &(*at)->holder);
    vec_each (struct qos *, at, &state->accounts->qos)
        holder_rehash(state, &(*at)->holder);
}

void accounts_see_partitions(struct state *state)
{
    struct accounts *accounts = state->accounts;

    accounts->part_qos = false;
    accounts->part_qos_hash = 0;
    vec_each (struct partition *, at, &state->partitions) {
        const PartitionSpec *spec = (*at)->spec;
        uint64_t name = hash_bytes(spec->name, strlen(spec->name), 0);
        if (!str_is_empty(spec->qos)) {
            accounts->part_qos = true;
            accounts->part_qos_hash += hash_bytes(spec->qos, strlen(spec->qos), name);
        }
    }
}

void accounts_rebuild(struct state *state)
{
    struct accounts *old = state->accounts;

    if (!str_ieq(state->config->priority_usage_reset, "NOW") &&
        old->config_hash == accounts_config_hash(state->config)) {
        accounts_follow(state);
        return;
    }
    struct accounts *fresh = accounts_new(state->config);
    keep_usage(state, fresh, old);
    if (str_ieq(state->config->priority_usage_reset, "NOW"))
        forget_usage(fresh);
    state->accounts = fresh;
    begin_usage(state);
    accounts_see_partitions(state);
    tabs_recount(state, true);
    accounts_free(old);
    state->priority_us = state->time_us;
    fairshare_update(state);
}

static void zero(struct state *state, struct holder *holder)
{
    usage_settle(state, holder);
    holder->jobs = holder->submitted = holder->accruing = 0;
    memset(holder->used, 0, sizeof(holder->used));
    memset(holder->run_end, 0, sizeof(holder->run_end));
    memset(holder->rate, 0, sizeof(holder->rate));
    holder->wall_rate = 0;
}

void accounts_follow(struct state *state)
{
    struct accounts *accounts = state->accounts;
    uint64_t qos = accounts->part_qos_hash;

    accounts_see_partitions(state);
    accounts->totals_generation = 0;
    if (qos == accounts->part_qos_hash)
        return;
    vec_each (struct assoc *, at, &accounts->assocs)
        zero(state, &(*at)->holder);
    vec_each (struct qos *, at, &accounts->qos)
        zero(state, &(*at)->holder);
    vec_each (struct holder *, at, &accounts->parts)
        zero(state, *at);
    tabs_recount(state, false);
}
