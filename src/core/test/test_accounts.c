/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_accounts.c - a configuration that changes accounts gives what making them from nothing gives
 *
 * Random trees of accounts, users and QOS change while jobs wait and run. After each change the
 * state is compared with one that was restored from its snapshot, where all tables were made from
 * nothing and every job was counted one by one. CORE_SEED=1-1000 runs those seeds.
 */
#include <stdlib.h>
#include <string.h>

#include "core/test/fixture.h"
#include "core/view/view.h"

enum { NODES = 6, ACCOUNTS = 6, USERS = 14, QOS = 5, NONE = -1, JOBS = 40 };

static uint64_t random_state;

static unsigned dice(unsigned below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)((random_state >> 16) % below);
}

static const char *const account_names[ACCOUNTS] = { "a", "b", "c", "d", "e", "root" };
static const char *const user_names[] = { "alice", "bob", "root" };
static const char *const qos_names[QOS] = { "q1", "q2", "q3", "q4", "normal" };
static const char *const tres_texts[] = {
    NULL, NULL, "cpu=9", "cpu=3,node=2", "gres/gpu=4", "license/matlab=1,cpu=20", "mem=9000",
};
static const char *const factors[] = { NULL, NULL, "2", "0.5" };

/* What the next configuration is made from. */
struct model {
    struct {
        bool is;
        int parent, fairshare, priority, max_jobs, grp_jobs, accrue, tres, qos, other_qos;
    } accounts[ACCOUNTS];
    struct {
        bool is, is_default;
        int name, account, partition, fairshare, max_jobs, tres, qos;
    } users[USERS];
    struct {
        bool is;
        int factor, priority, max_jobs, grp_jobs, accrue, tres, deny;
    } qos[QOS];
    int part_qos[2];
    unsigned first_user, first_account, enforce, weights, damping;
};

static void model_init(struct model *model)
{
    *model = (struct model){ .part_qos = { NONE, NONE } };
    for (int i = 0; i < ACCOUNTS; i++) {
        model->accounts[i].parent = i % 3 ? i - 1 : NONE;
        model->accounts[i].qos = model->accounts[i].other_qos = NONE;
        model->accounts[i].is = true;
    }
    model->accounts[ACCOUNTS - 1].parent = NONE;
    for (int i = 0; i < USERS; i++) { /* no two are the same */
        model->users[i].name = i % 3;
        model->users[i].account = i / 3 % ACCOUNTS;
        model->users[i].partition = i >= 12;
        model->users[i].qos = NONE;
        model->users[i].is = dice(4);
    }
    model->users[13].account = 5;
    model->users[13].partition = false;
    model->users[13].name = 2;
}

static bool is_under(const struct model *model, int account, int top)
{
    while (account != NONE && account != top)
        account = model->accounts[account].parent;
    return account == top;
}

static void drop_account(struct model *model, int at)
{
    model->accounts[at].is = false;
    for (int i = 0; i < ACCOUNTS; i++) {
        if (model->accounts[i].parent == at)
            model->accounts[i].parent = model->accounts[at].parent;
    }
    model->accounts[at].parent = NONE;
    for (int i = 0; i < USERS && at != ACCOUNTS - 1; i++) {
        if (model->users[i].account == at)
            model->users[i].is = false;
    }
}

static void drop_qos(struct model *model, int at)
{
    model->qos[at].is = false;
    if (at == QOS - 1)
        return; /* it is always there */
    for (int i = 0; i < ACCOUNTS; i++) {
        model->accounts[i].qos = model->accounts[i].qos == at ? NONE : model->accounts[i].qos;
        if (model->accounts[i].other_qos == at)
            model->accounts[i].other_qos = NONE;
    }
    for (int i = 0; i < USERS; i++)
        model->users[i].qos = model->users[i].qos == at ? NONE : model->users[i].qos;
    for (int i = 0; i < 2; i++)
        model->part_qos[i] = model->part_qos[i] == at ? NONE : model->part_qos[i];
}

static int some_qos(const struct model *model)
{
    int at = (int)dice(QOS);

    return model->qos[at].is || at == QOS - 1 ? at : NONE;
}

static void change_account(struct model *model)
{
    int at = (int)dice(ACCOUNTS), parent = (int)dice(ACCOUNTS - 1);

    switch (dice(12)) {
    case 0:
        drop_account(model, at);
        break;
    case 1:
        if (at != ACCOUNTS - 1 && model->accounts[parent].is && !is_under(model, parent, at))
            model->accounts[at].parent = parent;
        break;
    case 2:
        model->accounts[at].parent = NONE;
        break;
    case 3:
        model->accounts[at].fairshare = (int)dice(4);
        break;
    case 4:
        model->accounts[at].max_jobs = (int)dice(4);
        break;
    case 5:
        model->accounts[at].grp_jobs = (int)dice(5);
        model->accounts[at].accrue = (int)dice(4);
        break;
    case 6:
        model->accounts[at].tres = (int)dice(ARRAY_LEN(tres_texts));
        model->accounts[at].priority = (int)dice(3);
        break;
    case 7:
        model->accounts[at].qos = some_qos(model);
        model->accounts[at].other_qos = some_qos(model);
        break;
    default:
        model->accounts[at].is = true;
    }
}

static void change_user(struct model *model)
{
    int at = (int)dice(USERS), account = model->users[at].account;

    switch (dice(9)) {
    case 0:
        model->users[at].is = false;
        break;
    case 1:
        model->users[at].fairshare = (int)dice(4);
        break;
    case 2:
        model->users[at].max_jobs = (int)dice(4);
        break;
    case 3:
        model->users[at].tres = (int)dice(ARRAY_LEN(tres_texts));
        break;
    case 4:
        model->users[at].is_default = dice(2);
        break;
    case 5:
        model->users[at].qos = some_qos(model);
        break;
    default:
        model->users[at].is = model->accounts[account].is || account == ACCOUNTS - 1;
    }
}

static void change_qos(struct model *model)
{
    int at = (int)dice(QOS);

    switch (dice(8)) {
    case 0:
        drop_qos(model, at);
        break;
    case 1:
        model->qos[at].factor = (int)dice(ARRAY_LEN(factors));
        break;
    case 2:
        model->qos[at].max_jobs = (int)dice(4);
        model->qos[at].accrue = (int)dice(4);
        break;
    case 3:
        model->qos[at].tres = (int)dice(ARRAY_LEN(tres_texts));
        model->qos[at].grp_jobs = (int)dice(5);
        break;
    case 4:
        model->qos[at].priority = (int)dice(3) * 10;
        model->qos[at].deny = (int)dice(2);
        break;
    default:
        model->qos[at].is = true;
    }
}

static void change_model(struct model *model)
{
    switch (dice(10)) {
    case 0:
    case 1:
    case 2:
        change_account(model);
        break;
    case 3:
    case 4:
    case 5:
        change_user(model);
        break;
    case 6:
    case 7:
        change_qos(model);
        break;
    case 8:
        model->part_qos[dice(2)] = dice(2) ? some_qos(model) : NONE;
        break;
    default:
        model->first_user = dice(USERS);
        model->first_account = dice(ACCOUNTS);
        model->enforce = dice(3);
        model->weights = dice(3);
        model->damping = dice(3);
    }
}

/* ---- from a model to a configuration ---- */

struct made {
    Config config;
    ConfAccount accounts[ACCOUNTS], *account_list[ACCOUNTS];
    ConfUser users[USERS], *user_list[USERS];
    ConfQos qos[QOS], *qos_list[QOS];
    char *names[ACCOUNTS + USERS][2];
};

#define TEXT(text) ((char *)(uintptr_t)(text))

static void put_number(int value, protobuf_c_boolean *has, uint32_t *out)
{
    *has = value > 0;
    *out = (uint32_t)value;
}

static void make_account(const struct model *model, struct made *made, int at)
{
    ConfAccount *conf = &made->accounts[at];
    char **names = made->names[at];

    conf_account__init(conf);
    conf->name = TEXT(account_names[at]);
    if (model->accounts[at].parent != NONE)
        conf->parent = TEXT(account_names[model->accounts[at].parent]);
    put_number(model->accounts[at].fairshare, &conf->has_fairshare, &conf->fairshare);
    if (conf->fairshare == 3)
        conf->fairshare = FAIRSHARE_PARENT;
    put_number(model->accounts[at].priority, &conf->has_assoc_priority, &conf->assoc_priority);
    put_number(model->accounts[at].max_jobs, &conf->has_max_jobs, &conf->max_jobs);
    put_number(model->accounts[at].grp_jobs, &conf->has_grp_jobs, &conf->grp_jobs);
    put_number(model->accounts[at].accrue, &conf->has_max_jobs_accrue, &conf->max_jobs_accrue);
    conf->grp_tres = TEXT(tres_texts[model->accounts[at].tres]);
    conf->max_tres_per_job = TEXT(tres_texts[model->accounts[at].tres / 2]);
    conf->qos_list = names;
    for (int i = 0; i < 2; i++) {
        int qos = i ? model->accounts[at].other_qos : model->accounts[at].qos;
        if (qos != NONE)
            names[conf->n_qos_list++] = TEXT(qos_names[qos]);
    }
    made->account_list[made->config.n_accounts++] = conf;
}

/* Parents first, beginning anywhere. */
static void make_accounts(const struct model *model, struct made *made)
{
    bool done[ACCOUNTS] = { false };

    for (int round = 0; round < ACCOUNTS; round++) {
        for (int k = 0; k < ACCOUNTS; k++) {
            int at = (int)(model->first_account + (unsigned)k) % ACCOUNTS;
            int parent = model->accounts[at].parent;
            if (!model->accounts[at].is || done[at] || (parent != NONE && !done[parent]))
                continue;
            done[at] = true;
            make_account(model, made, at);
        }
    }
}

static void make_users(const struct model *model, struct made *made)
{
    for (unsigned k = 0; k < USERS; k++) {
        unsigned at = (model->first_user + k) % USERS;
        ConfUser *conf = &made->users[at];
        char **names = made->names[ACCOUNTS + at];
        if (!model->users[at].is)
            continue;
        conf_user__init(conf);
        conf->name = TEXT(user_names[model->users[at].name]);
        conf->account = TEXT(account_names[model->users[at].account]);
        conf->partition = TEXT(model->users[at].partition ? "small" : NULL);
        SET(conf, is_default, model->users[at].is_default);
        put_number(model->users[at].fairshare, &conf->has_fairshare, &conf->fairshare);
        put_number(model->users[at].max_jobs, &conf->has_max_jobs, &conf->max_jobs);
        conf->grp_tres = TEXT(tres_texts[model->users[at].tres]);
        names[0] = TEXT(qos_names[MAX(model->users[at].qos, 0)]);
        conf->n_qos_list = model->users[at].qos != NONE;
        conf->qos_list = names;
        made->user_list[made->config.n_users++] = conf;
    }
}

static void make_qos(const struct model *model, struct made *made)
{
    static char *deny[] = { (char *)"DenyOnLimit", (char *)"NoDecay" };

    for (int i = 0; i < QOS; i++) {
        ConfQos *conf = &made->qos[i];
        if (!model->qos[i].is)
            continue;
        conf_qos__init(conf);
        conf->name = TEXT(qos_names[i]);
        conf->usage_factor = TEXT(factors[model->qos[i].factor]);
        put_number(model->qos[i].priority, &conf->has_qos_priority, &conf->qos_priority);
        put_number(model->qos[i].max_jobs, &conf->has_max_jobs, &conf->max_jobs);
        put_number(model->qos[i].grp_jobs, &conf->has_grp_jobs, &conf->grp_jobs);
        put_number(model->qos[i].accrue, &conf->has_max_jobs_accrue_per_account,
                   &conf->max_jobs_accrue_per_account);
        conf->max_tres_per_user = TEXT(tres_texts[model->qos[i].tres]);
        conf->n_qos_flags = model->qos[i].deny ? 2 : 0;
        conf->qos_flags = deny;
        made->qos_list[made->config.n_qos++] = conf;
    }
}

static void make(const struct model *model, const Config *plain, struct made *made)
{
    static const char *const enforce[] = { "limits", "limits,qos", "safe" };
    static const char *const flags[] = { NULL, "NO_FAIR_TREE", "DEPTH_OBLIVIOUS" };

    *made = (struct made){ .config = *plain };
    make_accounts(model, made);
    make_users(model, made);
    make_qos(model, made);
    made->config.accounts = made->account_list;
    made->config.users = made->user_list;
    made->config.qos = made->qos_list;
    for (int i = 0; i < 2; i++)
        made->config.partitions[i]->qos =
            TEXT(model->part_qos[i] == NONE ? NULL : qos_names[model->part_qos[i]]);
    made->config.accounting_enforce = TEXT(enforce[model->enforce]);
    made->config.priority_flags = TEXT(flags[model->weights]);
    SET(&made->config, weight_age, 1000);
    SET(&made->config, weight_fairshare, 1000);
    SET(&made->config, priority_calc_period_s, 600);
    SET(&made->config, priority_decay_half_life_s, 3600);
    SET(&made->config, priority_fairshare_damping, model->damping);
}

/* ---- comparing ---- */

static void same_holder(const struct holder *a, const struct holder *b)
{
    static const struct holder none;

    a = a ? a : &none;
    b = b ? b : &none;
    assert_int_equal(a->jobs, b->jobs);
    assert_int_equal(a->submitted, b->submitted);
    assert_int_equal(a->accruing, b->accruing);
    assert_memory_equal(a->used, b->used, sizeof(a->used));
    assert_memory_equal(a->run_end, b->run_end, sizeof(a->run_end));
    assert_memory_equal(a->rate, b->rate, sizeof(a->rate));
    assert_int_equal(a->wall_rate, b->wall_rate);
    assert_memory_equal(a->usage, b->usage, sizeof(a->usage));
    assert_int_equal(a->wall, b->wall);
    assert_int_equal(a->no_decay, b->no_decay);
}

static void same_assoc(const struct state *left, const struct state *right, size_t at)
{
    const struct assoc *a = state_assoc_at(left, at), *b = state_assoc_at(right, at);

    assert_true(str_eq(a->account, b->account) && str_eq(a->user, b->user) &&
                str_eq(a->partition, b->partition));
    assert_true(!a->parent == !b->parent);
    if (a->parent)
        assert_string_equal(a->parent->account, b->parent->account);
    assert_int_equal(a->fairshare, b->fairshare);
    assert_int_equal(a->priority, b->priority);
    assert_int_equal(a->depth, b->depth);
    assert_memory_equal(&a->tres_limits, &b->tres_limits, sizeof(a->tres_limits));
    assert_string_equal(a->share_of->account, b->share_of->account);
    assert_int_equal(a->shares_below, b->shares_below);
    assert_int_equal(a->factor, b->factor);
    assert_int_equal(a->children.len, b->children.len);
    assert_string_equal(a->default_qos->name, b->default_qos->name);
    for (size_t i = 0; i < state_qos_count(left); i++) {
        const struct qos *p = state_qos_at(left, i), *q = state_qos_at(right, i);
        assert_true(!a->qos == !b->qos);
        bool one =
            a->qos && p->index / 64 < a->qos_words && a->qos[p->index / 64] >> p->index % 64 & 1;
        bool two =
            b->qos && q->index / 64 < b->qos_words && b->qos[q->index / 64] >> q->index % 64 & 1;
        assert_int_equal(one, two);
    }
    assert_int_equal(a->mark, 0);
    same_holder(&a->holder, &b->holder);
}

static void same_parts(const struct map *a, const struct map *b)
{
    map_each (entry, a)
        same_holder(entry->value, entry->key ? map_get(b, entry->key) : map_get_num(b, entry->num));
}

static void same_qos(const struct state *left, const struct state *right, size_t at)
{
    const struct qos *a = state_qos_at(left, at), *b = state_qos_at(right, at);

    assert_string_equal(a->name, b->name);
    assert_int_equal(a->flags, b->flags);
    assert_int_equal(a->priority, b->priority);
    assert_int_equal(a->usage_factor, b->usage_factor);
    assert_memory_equal(&a->tres_limits, &b->tres_limits, sizeof(a->tres_limits));
    assert_int_equal(a->mark, 0);
    same_holder(&a->holder, &b->holder);
    same_parts(a->users, b->users);
    same_parts(b->users, a->users);
    same_parts(a->accounts, b->accounts);
    same_parts(b->accounts, a->accounts);
}

/* The verdict for every job that waits. */
static void same_verdicts(const struct state *left, const struct state *right)
{
    for (const struct job *a = state_job_from(left, 0); a;
         a = state_job_from(left, (uint64_t)a->id + 1)) {
        const struct job *b = state_job(right, a->id);
        struct limit_hit one, two;
        assert_true(!job_assoc(a) == !job_assoc(b) && !job_qos(a) == !job_qos(b));
        if (a->state != JOB_PENDING)
            continue;
        assert_int_equal(limits_allow_any(left, a, NULL, &one),
                         limits_allow_any(right, b, NULL, &two));
        assert_int_equal(one.reason, two.reason);
        assert_true(str_eq(one.limit, two.limit));
        assert_true(one.most == two.most && one.used == two.used && one.asks == two.asks);
        assert_int_equal(state_accrue_limit(left, a, &one), state_accrue_limit(right, b, &two));
        assert_int_equal(core_job_reason(left, a), core_job_reason(right, b));
        assert_int_equal(job_priority(left, a), job_priority(right, b));
        assert_int_equal(job_order_key(left, a), job_order_key(right, b));
    }
}

static void same_states(const struct state *left, const struct state *right)
{
    const struct accounts *a = left->accounts, *b = right->accounts;

    assert_int_equal(core_digest(left), core_digest(right));
    assert_int_equal(a->tres_count, b->tres_count);
    for (size_t i = 0; i < a->tres_count; i++)
        assert_string_equal(a->tres[i].name, b->tres[i].name);
    assert_int_equal(a->assocs.len, b->assocs.len);
    assert_int_equal(map_len(&a->assoc_keys), map_len(&b->assoc_keys));
    assert_int_equal(a->qos.len, b->qos.len);
    assert_int_equal(map_len(&a->qos_names), map_len(&b->qos_names));
    for (size_t i = 0; i < a->qos.len; i++)
        same_qos(left, right, i);
    for (size_t i = 0; i < a->assocs.len; i++)
        same_assoc(left, right, i);
    assert_int_equal(map_len(&a->defaults), map_len(&b->defaults));
    map_each (entry, &a->defaults) {
        const struct assoc *one = entry->value, *two = map_get(&b->defaults, entry->key);
        assert_non_null(two);
        assert_string_equal(one->account, two->account);
    }
    assert_int_equal(map_len(&a->part_qos), map_len(&b->part_qos));
    assert_int_equal(a->users, b->users);
    assert_int_equal(a->top_assoc, b->top_assoc);
    assert_int_equal(a->top_qos, b->top_qos);
    assert_int_equal(a->accrue_limited, b->accrue_limited);
    assert_int_equal(a->accrue_bounds, b->accrue_bounds);
    same_verdicts(left, right);
}

/* ---- jobs ---- */

static uint32_t ids[JOBS];

static void submit_one(struct fix *fix, size_t slot)
{
    JobSpec spec = fix_spec();

    if (dice(4))
        spec.account = TEXT(account_names[dice(ACCOUNTS)]);
    if (dice(3))
        spec.qos = TEXT(qos_names[dice(QOS)]);
    if (dice(3) == 0)
        spec.partition = (char *)"small";
    if (dice(3) == 0)
        spec.licenses = (char *)"matlab:1";
    SET(&spec, time_limit_s, 600 + dice(20) * 60);
    spec.array = TEXT(dice(8) ? NULL : "0-3");
    ids[slot] = fix_submit_as(fix, (uint32_t[]){ 0, 1000, 1001 }[dice(3)], &spec);
}

static void job_step(struct fix *fix)
{
    size_t slot = dice(JOBS);
    uint32_t id = ids[slot];
    const struct job *job = id ? state_job(fix->state, id) : NULL;
    char node[8] = { 'n', (char)('1' + dice(NODES)), '\0' };

    if (!job || job_has_ended(job)) {
        submit_one(fix, slot);
        return;
    }
    switch (dice(8)) {
    case 0:
        fix_cancel(fix, id, NULL);
        break;
    case 1:
        fix_suspend(fix, id, dice(2));
        break;
    case 2:
        fix_finish(fix, id, 0);
        break;
    case 3:
        fix_time(fix, 1 + dice(900));
        break;
    default:
        if (job->state == JOB_PENDING && !job->array)
            fix_start(fix, id, node, 2);
        else
            submit_one(fix, dice(JOBS));
    }
}

/* ---- */

/* Wrong in some way, or the same as it was. */
static void spoil(struct made *made)
{
    Config *config = &made->config;

    switch (dice(5)) {
    case 0:
        if (config->n_users > 1)
            config->users[dice((unsigned)config->n_users)] = config->users[0];
        break;
    case 1:
        if (config->n_users)
            config->users[dice((unsigned)config->n_users)]->account = (char *)"nowhere";
        break;
    case 2:
        if (config->n_users)
            config->users[dice((unsigned)config->n_users)]->default_qos = (char *)"none";
        break;
    case 3:
        config->n_accounts = dice((unsigned)config->n_accounts + 1);
        break;
    default:
        config->n_qos = dice((unsigned)config->n_qos + 1);
    }
}

static void check_one(struct fix *fix, const struct made *made)
{
    struct err err = { 0 };
    bool good = core_admit_config(&made->config, &err) == 0;

    enum err_code code =
        dice(2) ? fix_reconfigure(fix, &made->config, dice(2))
                : fix_change(fix, &made->config, dice(2), good ? 1 + dice(8) : SIZE_MAX);
    if (code != (good ? ERR_OK : ERR_CONFIG))
        fail_msg("%s: %s", good ? "it is refused" : "it is taken", err.text);
    struct state *copy = fix_copy(fix);
    same_states(fix->state, copy);
    if (fix->mirror)
        same_states(fix->state, fix->mirror);
    if (dice(4) == 0) {
        state_free(fix->mirror);
        fix->mirror = copy;
    } else {
        state_free(copy);
    }
}

static void run_seed(uint64_t seed)
{
    struct fix *fix = fix_new(NODES);
    Config *plain = fix_config(NODES);
    struct model model;
    struct made made;

    random_state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    model_init(&model);
    memset(ids, 0, sizeof(ids));
    for (unsigned i = 0; i < 30; i++)
        change_model(&model);
    for (unsigned step = 0; step < 60; step++) {
        for (unsigned i = 1 + dice(3); i; i--)
            change_model(&model);
        make(&model, plain, &made);
        if (dice(4) == 0)
            spoil(&made);
        check_one(fix, &made);
        for (unsigned i = dice(12); i; i--)
            job_step(fix);
    }
    for (int i = 0; i < 2; i++)
        plain->partitions[i]->qos = NULL;
    config__free_unpacked(plain, NULL);
    fix_free(fix);
}

static void a_change_gives_what_making_from_nothing_gives(void **unused)
{
    const char *text = getenv("CORE_SEED");
    uint64_t first = text ? strtoull(text, NULL, 10) : 1, last = first + 19;

    (void)unused;
    if (text)
        last = strchr(text, '-') ? strtoull(strchr(text, '-') + 1, NULL, 10) : first;
    for (uint64_t seed = first; seed <= last; seed++)
        run_seed(seed);
}

UNIT_MAIN(UNIT(a_change_gives_what_making_from_nothing_gives))
