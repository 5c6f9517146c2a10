/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accounts_parse.c - an association, a QOS: from its section of the configuration
 *
 * One that is there is read again in its place: what it counts and has used stays.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "policy/accounts.h"

/* ---- holders ---- */

void holder_init(struct accounts *accounts, struct holder *holder, bool keeps)
{
    holder->number = accounts->free_numbers.len
                         ? accounts->free_numbers.items[--accounts->free_numbers.len]
                         : accounts->holders++;
    holder->keeps = keeps;
}

void holder_done(struct accounts *accounts, const struct holder *holder)
{
    vec_push(&accounts->free_numbers, holder->number);
}

static void part_free(struct accounts *accounts, struct holder *part)
{
    holder_done(accounts, part);
    free(part);
}

static struct holder *new_part(struct accounts *accounts)
{
    struct holder *holder = NEW(struct holder);

    holder_init(accounts, holder, false);
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

/* ---- QOS ---- */

struct qos *qos_make(struct accounts *accounts, const char *name)
{
    struct qos *qos = NEW(struct qos);

    holder_init(accounts, &qos->holder, true);
    qos->holder.seed = hash_bytes(name, strlen(name), 1);
    qos->name = mem_strdup(name);
    qos->index = accounts->free_slots.len ? accounts->free_slots.items[--accounts->free_slots.len]
                                          : accounts->qos_slots++;
    qos->users = NEW(struct map);
    qos->accounts = NEW(struct map);
    map_init(qos->users);
    map_init(qos->accounts);
    qos->texts = NEW(struct arena);
    arena_init(qos->texts);
    map_put(&accounts->qos_names, name, qos);
    return qos;
}

void qos_free(struct accounts *accounts, struct qos *qos)
{
    accounts->accrue_bounds -= qos->ages;
    vec_push(&accounts->free_slots, qos->index);
    holder_done(accounts, &qos->holder);
    map_each (entry, qos->users)
        part_free(accounts, entry->value);
    map_each (entry, qos->accounts)
        part_free(accounts, entry->value);
    map_done(qos->users);
    map_done(qos->accounts);
    free(qos->users);
    free(qos->accounts);
    arena_done(qos->texts);
    free(qos->texts);
    free((char *)(uintptr_t)qos->name);
    free(qos);
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

uint32_t qos_factor(const ConfQos *conf)
{
    return (uint32_t)MIN(thousandths(conf->usage_factor, 1000), UINT64_C(1000000));
}

static void count_ages(struct accounts *accounts, const struct tres_limits *tres_limits, bool *ages)
{
    bool now = tres_limits_age(tres_limits);

    accounts->accrue_bounds += (uint32_t)now - (uint32_t)*ages;
    *ages = now;
}

void qos_read(struct accounts *accounts, struct qos *qos)
{
    static const ConfQos nothing = CONF_QOS__INIT;
    const ConfQos *conf = qos->conf ? qos->conf : &nothing;
    struct arena *texts = qos->texts;

    arena_reset(texts);
    qos->priority = conf->qos_priority;
    qos->flags = qos_flags(conf);
    qos->holder.no_decay = qos->flags & QOS_NO_DECAY;
    qos->usage_factor = qos_factor(conf);
    qos->limit_factor = (uint32_t)MIN(thousandths(conf->limit_factor, 0), UINT64_C(1000000));
    qos->min_priority = conf->min_prio_threshold;
    qos->threshold = MIN(thousandths(conf->usage_threshold, 0), UINT64_C(1000)) * FRACTION / 1000;
    qos->preempts = ARENA_ARRAY(texts, char *, conf->n_qos_preempt + 1);
    qos->preempt_count = conf->n_qos_preempt;
    for (size_t i = 0; i < conf->n_qos_preempt; i++)
        qos->preempts[i] = arena_strdup(texts, conf->qos_preempt[i]);
    qos->preempt_mode = arena_strdup(texts, conf->qos_preempt_mode);
    qos->preempt_exempt_s = conf->has_qos_preempt_exempt_s ? conf->qos_preempt_exempt_s : -1;
    qos->grace_s = conf->qos_grace_time_s;
    tres_limits_none(&qos->tres_limits);
    tres_limits_read(accounts, &conf->base, &qos->tres_limits);
    count_ages(accounts, &qos->tres_limits, &qos->ages);
}

/* ---- associations ---- */

struct assoc *assoc_make(struct accounts *accounts, const char *account, const char *user,
                         const char *partition, struct assoc *parent)
{
    size_t lens[] = { strlen(account) + 1, user ? strlen(user) + 1 : 0,
                      partition ? strlen(partition) + 1 : 0 };
    struct assoc *assoc = mem_new(sizeof(*assoc) + lens[0] + lens[1] + lens[2]);
    struct str key = { 0 };

    holder_init(accounts, &assoc->holder, true);
    assoc->account = memcpy(assoc->names, account, lens[0]);
    if (user)
        assoc->user = memcpy(assoc->names + lens[0], user, lens[1]);
    if (partition)
        assoc->partition = memcpy(assoc->names + lens[0] + lens[1], partition, lens[2]);
    assoc->parent = parent;
    assoc->share_of = assoc;
    if (parent)
        vec_push(&parent->children, assoc);
    if (user)
        assoc->next_of_user = map_put(&accounts->by_user, user, assoc);
    assoc_key(&key, account, user, partition);
    map_put(&accounts->assoc_keys, str_text(&key), assoc);
    assoc->holder.seed = hash_bytes(str_text(&key), key.len, 2);
    str_done(&key);
    return assoc;
}

static void user_leave(struct accounts *accounts, const struct assoc *assoc)
{
    struct assoc *at = map_get(&accounts->by_user, assoc->user);

    if (at == assoc && assoc->next_of_user) {
        map_put(&accounts->by_user, assoc->user, assoc->next_of_user);
    } else if (at == assoc) {
        map_del(&accounts->by_user, assoc->user);
    } else {
        while (at->next_of_user != assoc)
            at = at->next_of_user;
        at->next_of_user = assoc->next_of_user;
    }
}

void assoc_free(struct accounts *accounts, struct assoc *assoc)
{
    if (assoc->user)
        user_leave(accounts, assoc);
    accounts->accrue_bounds -= assoc->ages;
    holder_done(accounts, &assoc->holder);
    free(assoc->own_qos);
    vec_done(&assoc->children);
    free(assoc);
}

/* What a section says besides limits, be it of an account or of a user. */
struct said {
    uint32_t fairshare, priority;
    bool has_fairshare, has_priority;
    char *const *qos;
    size_t qos_count;
    const char *default_qos;
};

#define SAID(conf)                                                                                \
    (struct said)                                                                                 \
    {                                                                                             \
        (conf)->fairshare, (conf)->assoc_priority, (conf)->has_fairshare,                         \
            (conf)->has_assoc_priority, (conf)->qos_list, (conf)->n_qos_list, (conf)->default_qos \
    }

static struct said said_by(const ProtobufCMessage *conf)
{
    if (!conf)
        return (struct said){ 0 };
    if (conf->descriptor == &conf_user__descriptor)
        return SAID((const ConfUser *)(const void *)conf);
    return SAID((const ConfAccount *)(const void *)conf);
}

static void take_qos_list(struct accounts *accounts, struct assoc *assoc, const struct said *said)
{
    size_t words = accounts->qos_slots / 64 + 1;
    uint64_t *bits = said->qos_count ? NEW_ARRAY(uint64_t, words) : NULL, *old = assoc->own_qos;

    for (size_t i = 0; i < said->qos_count; i++) {
        const struct qos *qos = map_get(&accounts->qos_names, said->qos[i]);
        if (qos)
            bits[qos->index / 64] |= UINT64_C(1) << qos->index % 64;
    }
    /* The same ones stay in their place: who is below refers to them. */
    if (bits && old && assoc->own_words == words && memcmp(bits, old, words * sizeof(*bits)) == 0) {
        free(bits);
    } else {
        free(old);
        assoc->own_qos = bits;
        assoc->own_words = (uint32_t)words;
    }
    if (assoc->own_qos) {
        assoc->qos = assoc->own_qos;
        assoc->qos_words = assoc->own_words;
    }
    if (said->default_qos)
        assoc->default_qos = map_get(&accounts->qos_names, said->default_qos);
    else if (said->qos_count) /* the parent's may not be among them */
        assoc->default_qos = map_get(&accounts->qos_names, said->qos[0]);
}

/* Max limits are the parent's unless given; Grp limits are each one's own. */
static const enum bound passed_counts[] = { MAX_JOBS, MAX_SUBMIT, MAX_ACCRUE, MAX_WALL };
static const enum tres_limit passed_tres[] = { MAX_TRES_JOB, MAX_TRES_NODE, MAX_TRES_MINS_JOB };

static void inherit(struct assoc *assoc)
{
    const struct assoc *parent = assoc->parent;

    assoc->qos = parent->qos;
    assoc->qos_words = parent->qos_words;
    assoc->default_qos = parent->default_qos;
    assoc->priority = parent->priority;
    assoc->depth = parent->depth + 1;
    for (size_t i = 0; i < ARRAY_LEN(passed_counts); i++)
        assoc->tres_limits.count[passed_counts[i]] = parent->tres_limits.count[passed_counts[i]];
    for (size_t i = 0; i < ARRAY_LEN(passed_tres); i++) {
        memcpy(assoc->tres_limits.tres[passed_tres[i]], parent->tres_limits.tres[passed_tres[i]],
               sizeof(assoc->tres_limits.tres[0]));
        assoc->tres_limits.has_tres[passed_tres[i]] = parent->tres_limits.has_tres[passed_tres[i]];
    }
}

/* Does it pass on to who is below it what it did before? */
static bool same_below(const struct assoc *a, const struct assoc *b)
{
    bool same = a->qos == b->qos && a->qos_words == b->qos_words &&
                a->default_qos == b->default_qos && a->priority == b->priority &&
                a->depth == b->depth;

    for (size_t i = 0; same && i < ARRAY_LEN(passed_counts); i++)
        same = a->tres_limits.count[passed_counts[i]] == b->tres_limits.count[passed_counts[i]];
    for (size_t i = 0; same && i < ARRAY_LEN(passed_tres); i++) {
        enum tres_limit at = passed_tres[i];
        same = a->tres_limits.has_tres[at] == b->tres_limits.has_tres[at] &&
               memcmp(a->tres_limits.tres[at], b->tres_limits.tres[at],
                      sizeof(a->tres_limits.tres[at])) == 0;
    }
    return same;
}

unsigned assoc_read(struct accounts *accounts, struct assoc *assoc)
{
    const struct said said = said_by(assoc->conf);
    uint32_t fairshare = assoc->fairshare, priority = assoc->priority;
    struct assoc was;

    if (!assoc->user) /* nobody is below a user */
        was = *assoc;
    assoc->qos = NULL;
    assoc->qos_words = 0;
    assoc->priority = assoc->depth = 0;
    assoc->default_qos = map_get(&accounts->qos_names, "normal");
    tres_limits_none(&assoc->tres_limits);
    if (assoc->parent)
        inherit(assoc);
    assoc->fairshare = said.has_fairshare ? said.fairshare : 1;
    if (said.has_priority)
        assoc->priority = said.priority;
    if (assoc->conf)
        tres_limits_read(accounts, assoc->conf, &assoc->tres_limits);
    take_qos_list(accounts, assoc, &said);
    count_ages(accounts, &assoc->tres_limits, &assoc->ages);
    return (assoc->fairshare != fairshare ? READ_SHARE : 0) |
           (assoc->priority != priority ? READ_PRIORITY : 0) |
           (assoc->user || same_below(assoc, &was) ? 0 : READ_BELOW);
}
