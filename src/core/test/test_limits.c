/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_limits.c - limits, usage, fair share and priority: each rule by itself
 *
 * That counters are right whatever happens is test_replay.c's claim: accounts_check() runs there
 * after every command, half of the histories having accounts.
 */
#include <stdlib.h>

#include "core/test/fixture.h"
#include "core/view/view.h"
#include "schema/reasons.h"
#include "wire/pb.h"

#define S INT64_C(1000000)

/* One account `a` of alice, one QOS `q`, and a cluster with them. */
struct tree {
    Config *plain, config;
    ConfAccount account, *accounts[1];
    ConfUser user, *users[1];
    ConfQos qos, *all_qos[1];
};

static void tree_init(struct tree *tree)
{
    tree->plain = fix_config(4);
    tree->config = *tree->plain;
    conf_account__init(&tree->account);
    conf_user__init(&tree->user);
    conf_qos__init(&tree->qos);
    tree->account.name = (char *)"a";
    tree->user.name = (char *)"alice";
    tree->user.account = (char *)"a";
    tree->qos.name = (char *)"q";
    tree->accounts[0] = &tree->account;
    tree->users[0] = &tree->user;
    tree->all_qos[0] = &tree->qos;
    tree->config.n_accounts = tree->config.n_users = tree->config.n_qos = 1;
    tree->config.accounts = tree->accounts;
    tree->config.users = tree->users;
    tree->config.qos = tree->all_qos;
    tree->config.accounting_enforce = (char *)"limits";
}

static struct fix *tree_up(struct tree *tree)
{
    struct fix *fix = fix_new(4);

    assert_int_equal(fix_reconfigure(fix, &tree->config, false), ERR_OK);
    config__free_unpacked(tree->plain, NULL);
    return fix;
}

static uint32_t submit(struct fix *fix, const char *qos, uint32_t tasks, int64_t limit_s)
{
    JobSpec spec = fix_spec();

    spec.qos = (char *)(uintptr_t)qos;
    SET(&spec, ntasks, tasks);
    SET(&spec, time_limit_s, limit_s);
    return fix_submit(fix, &spec);
}

/* The first job runs with 2 CPUs for ten minutes; what does the second wait for? */
static const struct {
    bool of_qos;
    const char *field, *value;
    unsigned reason;
    bool ends; /* with the first job */
} cases[] = {
    { false, "grp_jobs", "1", REASON_ASSOC_GRP_JOB, true },
    { false, "max_jobs", "1", REASON_ASSOC_MAX_JOBS, true },
    { false, "max_wall_s", "300", REASON_ASSOC_MAX_WALL_PER_JOB, false },
    { false, "grp_tres", "cpu=3", REASON_ASSOC_GRP_CPU, true },
    { false, "grp_tres", "node=1", REASON_ASSOC_GRP_NODE, true },
    { false, "grp_tres", "billing=3", REASON_ASSOC_GRP_BILLING, true },
    { false, "grp_tres_run_mins", "cpu=30", REASON_ASSOC_GRP_CPU_RUN_MIN, true },
    { false, "max_tres_per_job", "cpu=1", REASON_ASSOC_MAX_CPU_PER_JOB, false },
    { false, "max_tres_per_node", "cpu=1", REASON_ASSOC_MAX_CPU_PER_NODE, false },
    { false, "max_tres_mins_per_job", "cpu=15", REASON_ASSOC_MAX_CPU_MINS_PER_JOB, false },
    { true, "grp_jobs", "1", REASON_QOS_GRP_JOB, true },
    { true, "max_jobs", "1", REASON_QOS_MAX_JOB_PER_USER, true },
    { true, "max_jobs_per_account", "1", REASON_QOS_MAX_JOB_PER_ACCT, true },
    { true, "max_wall_s", "300", REASON_QOS_MAX_WALL_PER_JOB, false },
    { true, "grp_tres", "cpu=3", REASON_QOS_GRP_CPU, true },
    { true, "grp_tres_run_mins", "node=15", REASON_QOS_GRP_NODE_RUN_MIN, true },
    { true, "max_tres_per_job", "cpu=1", REASON_QOS_MAX_CPU_PER_JOB, false },
    { true, "max_tres_per_node", "node=0", REASON_QOS_MAX_UNK_PER_NODE, false },
    { true, "max_tres_mins_per_job", "node=5", REASON_QOS_MAX_NODE_MINS_PER_JOB, false },
    { true, "max_tres_per_user", "cpu=3", REASON_QOS_MAX_CPU_PER_USER, true },
    { true, "max_tres_per_account", "node=1", REASON_QOS_MAX_NODE_PER_ACCT, true },
    { true, "max_tres_run_mins_per_user", "cpu=30", REASON_QOS_MAX_CPU_RUN_MINS_PER_USER, true },
    { true, "max_tres_run_mins_per_account", "cpu=30", REASON_QOS_MAX_CPU_RUN_MINS_PER_ACCT, true },
    { true, "min_tres_per_job", "cpu=3", REASON_QOS_MIN_CPU, false },
    { true, "min_tres_per_job", "gres/gpu=1", REASON_QOS_MIN_GRES, false },
};

static void set_field(void *message, const char *name, const char *value)
{
    const ProtobufCMessage *base = message;
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(base->descriptor, name);
    char *at = (char *)message + field->offset;

    assert_non_null(field);
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        *(char **)(void *)at = (char *)(uintptr_t)value;
        return;
    }
    *(protobuf_c_boolean *)(void *)((char *)message + field->quantifier_offset) = true;
    if (field->type == PROTOBUF_C_TYPE_INT64)
        *(int64_t *)(void *)at = atoll(value);
    else
        *(uint32_t *)(void *)at = (uint32_t)atoll(value);
}

static void every_limit_has_its_reason(void **unused)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct tree tree;
        tree_init(&tree);
        set_field(cases[i].of_qos ? (void *)&tree.qos : (void *)&tree.account, cases[i].field,
                  cases[i].value);
        struct fix *fix = tree_up(&tree);
        uint32_t first = submit(fix, "q", 2, 600), second = submit(fix, "q", 2, 600);
        unsigned reason = fix_reason(fix, first);
        if (cases[i].ends ? reason != 0 : reason != cases[i].reason)
            fail_msg("%s %s: the first job waits for %s", cases[i].field, cases[i].value,
                     reason_word(reason));
        if (cases[i].ends) {
            assert_int_equal(fix_start(fix, first, "n1", 2), ERR_OK);
            if (fix_reason(fix, second) != cases[i].reason)
                fail_msg("%s %s: the second waits for %s", cases[i].field, cases[i].value,
                         reason_word(fix_reason(fix, second)));
        }
        assert_int_equal(fix_start(fix, second, "n3", 2), ERR_ACCOUNTING_POLICY);
        if (cases[i].ends) {
            assert_int_equal(fix_finish(fix, first, 0), ERR_OK);
            assert_int_equal(fix_reason(fix, second), REASON_NONE);
            assert_int_equal(fix_start(fix, second, "n3", 2), ERR_OK);
        }
        fix_free(fix);
    }
}

static void a_qos_goes_before_the_association(void **unused)
{
    struct tree tree;

    tree_init(&tree);
    SET(&tree.account, max_jobs, 1);
    SET(&tree.qos, max_jobs, 2);
    struct fix *fix = tree_up(&tree);
    uint32_t a = submit(fix, "q", 1, 600), b = submit(fix, "q", 1, 600);
    uint32_t c = submit(fix, NULL, 1, 600);
    assert_int_equal(fix_start(fix, a, "n1", 2), ERR_OK);
    assert_int_equal(fix_reason(fix, b), REASON_NONE); /* the QOS lets two */
    assert_int_equal(fix_reason(fix, c), REASON_ASSOC_MAX_JOBS);
    fix_free(fix);
}

/* The partition's QOS goes first unless the job's has OverPartQOS. */
static void the_qos_of_a_partition_goes_first(void **unused)
{
    for (int over = 0; over < 2; over++) {
        struct tree tree;
        ConfQos part = CONF_QOS__INIT, *both[2];
        static char *flags[] = { (char *)"OverPartQOS" };
        tree_init(&tree);
        part.name = (char *)"part";
        SET(&part, max_jobs, 1);
        SET(&tree.qos, max_jobs, 2);
        tree.qos.n_qos_flags = (size_t)over;
        tree.qos.qos_flags = flags;
        both[0] = &tree.qos;
        both[1] = &part;
        tree.config.n_qos = 2;
        tree.config.qos = both;
        tree.config.partitions[0]->qos = mem_strdup("part");
        struct fix *fix = tree_up(&tree);
        uint32_t a = submit(fix, "q", 1, 600), b = submit(fix, "q", 1, 600);
        assert_int_equal(fix_start(fix, a, "n1", 2), ERR_OK);
        assert_int_equal(fix_reason(fix, b), over ? REASON_NONE : REASON_QOS_MAX_JOB_PER_USER);
        fix_free(fix);
    }
}

/* PartitionTimeLimit: the QOS sets the partition's limit aside, also where it is enforced. */
static void a_qos_sets_limits_of_partitions_aside(void **unused)
{
    for (int flag = 0; flag < 2; flag++) {
        struct tree tree;
        static char *flags[] = { (char *)"PartitionTimeLimit" };
        JobSpec spec = fix_spec();
        tree_init(&tree);
        tree.qos.n_qos_flags = (size_t)flag;
        tree.qos.qos_flags = flags;
        tree.config.enforce_part_limits = (char *)"ALL";
        struct fix *fix = tree_up(&tree);
        spec.partition = (char *)"small";
        spec.qos = (char *)"q";
        SET(&spec, time_limit_s, 7200);
        uint32_t job = fix_submit(fix, &spec);
        assert_int_equal(job != 0, flag);
        if (job)
            assert_int_equal(fix_reason(fix, job), REASON_NONE);
        fix_free(fix);
    }
}

static void as_many_as_may_are_submitted(void **unused)
{
    struct tree tree;
    JobSpec spec = fix_spec();

    tree_init(&tree);
    SET(&tree.account, grp_submit, 5);
    struct fix *fix = tree_up(&tree);
    spec.array = (char *)"1-4";
    uint32_t array = fix_submit(fix, &spec);
    assert_int_not_equal(array, 0);
    spec.array = (char *)"1-2";
    assert_int_equal(fix_submit(fix, &spec), 0);
    assert_int_equal(fix_answer(fix)->code, ERR_ACCOUNTING_POLICY);
    spec.array = NULL;
    assert_int_not_equal(fix_submit(fix, &spec), 0);
    assert_int_equal(fix_submit(fix, &spec), 0);
    assert_int_equal(fix_cancel(fix, array, "2"), ERR_OK);
    assert_int_not_equal(fix_submit(fix, &spec), 0);
    fix_free(fix);
}

/* ---- usage ---- */

static const struct assoc *alice(const struct fix *fix)
{
    return state_assoc(fix->state, "a", "alice", NULL);
}

static void usage_grows_and_decays(void **unused)
{
    struct tree tree;

    tree_init(&tree);
    tree.qos.usage_factor = (char *)"0.5";
    SET(&tree.config, priority_decay_half_life_s, 3600);
    SET(&tree.config, priority_calc_period_s, 60);
    struct fix *fix = tree_up(&tree);
    uint32_t job = submit(fix, "q", 2, 6000);
    assert_int_equal(fix_start(fix, job, "n1", 2), ERR_OK);
    fix_time(fix, 50);
    uint64_t used = holder_usage(fix->state, &alice(fix)->holder, TRES_CPU);
    assert_in_range(used, 49, 51); /* 2 CPUs, half of it counts */
    fix_time(fix, 3000);
    assert_int_equal(fix_finish(fix, job, 0), ERR_OK);
    used = alice(fix)->holder.usage[TRES_CPU];
    assert_int_equal(used, state_assoc(fix->state, "root", NULL, NULL)->holder.usage[TRES_CPU]);
    struct state *copy = fix_copy(fix);
    assert_int_equal(used, state_assoc(copy, "a", "alice", NULL)->holder.usage[TRES_CPU]);
    state_free(copy);
    for (int i = 0; i < 60; i++)
        fix_time(fix, 61);
    uint64_t left = alice(fix)->holder.usage[TRES_CPU];
    assert_in_range(left * 1000 / used, 480, 520);
    fix_free(fix);
}

/* INCR_ONLY: what a user's jobs use does not lower those of his that wait. */
static void priorities_only_grow(void **unused)
{
    for (int only = 0; only < 2; only++) {
        struct tree tree;
        tree_init(&tree);
        SET(&tree.config, priority_decay_half_life_s, 3600);
        SET(&tree.config, priority_calc_period_s, 60);
        SET(&tree.config, weight_fairshare, 10000);
        tree.config.priority_flags = (char *)(only ? "NO_FAIR_TREE,INCR_ONLY" : "NO_FAIR_TREE");
        struct fix *fix = tree_up(&tree);
        uint32_t runs = submit(fix, NULL, 2, 6000), waits = submit(fix, NULL, 2, 6000);
        fix_time(fix, 61);
        uint32_t before = job_priority(fix->state, fix_get(fix, waits));
        assert_int_equal(fix_start(fix, runs, "n1", 2), ERR_OK);
        for (int i = 0; i < 10; i++)
            fix_time(fix, 61);
        uint32_t after = job_priority(fix->state, fix_get(fix, waits));
        assert_int_equal(after < before, !only);
        struct state *copy = fix_copy(fix); /* also after a restart */
        assert_int_equal(job_priority(copy, fix_get(fix, waits)), after);
        state_free(copy);
        assert_int_equal(fix_finish(fix, runs, 0), ERR_OK);
        assert_int_equal(fix_start(fix, waits, "n1", 2), ERR_OK);
        for (int i = 0; i < 10; i++)
            fix_time(fix, 61);
        uint32_t later = submit(fix, NULL, 2, 6000); /* nobody waited when it came */
        assert_true(job_priority(fix->state, fix_get(fix, later)) < before);
        fix_free(fix);
    }
}

static void minutes_that_are_used_up_stay_so(void **unused)
{
    for (int safe = 0; safe < 2; safe++) {
        struct tree tree;
        tree_init(&tree);
        tree.account.grp_tres_mins = (char *)"cpu=20";
        if (safe)
            tree.config.accounting_enforce = (char *)"safe";
        struct fix *fix = tree_up(&tree);
        uint32_t a = submit(fix, NULL, 2, 600), b = submit(fix, NULL, 2, 600);
        assert_int_equal(fix_reason(fix, a), REASON_NONE);
        assert_int_equal(fix_start(fix, a, "n1", 2), ERR_OK);
        /* What a will use counts only with safe. */
        assert_int_equal(fix_reason(fix, b), safe ? REASON_ASSOC_GRP_CPU_MIN : REASON_NONE);
        fix_time(fix, 601);
        if (job_phase(fix_get(fix, a)) == PHASE_RUNNING)
            assert_int_equal(fix_finish(fix, a, 0), ERR_OK);
        assert_int_equal(fix_reason(fix, b), REASON_ASSOC_GRP_CPU_MIN);
        fix_free(fix);
    }
}

/* ---- fair share ---- */

static void powers_of_two(void **unused)
{
    long double wanted = (long double)FRACTION;

    for (unsigned num = 0; num < 4000;
         num += 7, wanted *= 0.9839566535081121238331177L) { /* 2^(-7/300) */
        long double off = (long double)exp2_minus(num, 300) - wanted;
        assert_true(off < 64 && off > -64);
    }
}

/* What a real Slurm showed for this tree. */
static void the_tree_is_ranked_as_slurm_does(void **unused)
{
    static const struct {
        const char *account, *user;
        unsigned used, fifths;
    } users[] = {
        { "root", "root", 0, 5 },   { "chemistry", "bob", 319, 4 }, { "physics", "alice", 1353, 1 },
        { "physics", "bob", 0, 3 }, { "bio", "alice", 0, 3 },
    };
    Config config = CONFIG__INIT;
    ConfAccount accounts[3] = { CONF_ACCOUNT__INIT, CONF_ACCOUNT__INIT, CONF_ACCOUNT__INIT };
    ConfAccount *all[3] = { &accounts[0], &accounts[1], &accounts[2] };
    ConfUser people[4] = { CONF_USER__INIT, CONF_USER__INIT, CONF_USER__INIT, CONF_USER__INIT };
    ConfUser *everybody[4] = { &people[0], &people[1], &people[2], &people[3] };

    accounts[0].name = (char *)"chemistry";
    accounts[1].name = (char *)"physics";
    accounts[2].name = (char *)"bio";
    accounts[2].parent = (char *)"physics";
    SET(&accounts[2], fairshare, 20);
    for (size_t i = 0; i < 4; i++) {
        people[i].name = (char *)(uintptr_t)users[i + 1].user;
        people[i].account = (char *)(uintptr_t)users[i + 1].account;
    }
    SET(&people[1], fairshare, 10);
    config.n_accounts = 3;
    config.accounts = all;
    config.n_users = 4;
    config.users = everybody;
    struct fix *fix = fix_new(1);
    assert_int_equal(fix_reconfigure(fix, &config, false), ERR_OK);
    for (size_t i = 0; i < ARRAY_LEN(users); i++) {
        const struct assoc *at = state_assoc(fix->state, users[i].account, users[i].user, NULL);
        for (struct assoc *up = (struct assoc *)(uintptr_t)at; up; up = up->parent)
            up->holder.usage[TRES_BILLING] += users[i].used;
    }
    fairshare_update(fix->state);
    for (size_t i = 0; i < ARRAY_LEN(users); i++) {
        const struct assoc *at = state_assoc(fix->state, users[i].account, users[i].user, NULL);
        assert_int_equal(at->factor, users[i].fifths * FRACTION / 5);
    }
    fix_free(fix);
}

/* ---- priority ---- */

static void keys_do_not_change_while_jobs_age(void **unused)
{
    struct tree tree;

    tree_init(&tree);
    SET(&tree.config, weight_age, 100000);
    SET(&tree.config, weight_qos, 1000);
    SET(&tree.qos, qos_priority, 10);
    SET(&tree.config, priority_max_age_s, 86400);
    SET(&tree.config, priority_calc_period_s, 60);
    struct fix *fix = tree_up(&tree);
    uint32_t old = submit(fix, NULL, 1, 600);
    fix_time(fix, 4000);
    uint32_t high = submit(fix, "q", 1, 600);
    uint64_t key_old = job_order_key(fix->state, fix_get(fix, old));
    uint64_t key_high = job_order_key(fix->state, fix_get(fix, high));
    for (int i = 0; i < 20; i++) {
        fix_time(fix, 1000);
        uint32_t a = job_priority(fix->state, fix_get(fix, old));
        uint32_t b = job_priority(fix->state, fix_get(fix, high));
        assert_int_equal(job_order_key(fix->state, fix_get(fix, old)), key_old);
        assert_int_equal(job_order_key(fix->state, fix_get(fix, high)), key_high);
        assert_true((key_old > key_high) == (a > b)); /* the same order */
        assert_in_range(a - b, 3600, 3660);           /* 4000 s of age less the QOS */
    }
    fix_time(fix, 86400);
    struct priority priority;
    job_priority_of(fix->state, fix_get(fix, old), &priority);
    assert_int_equal(priority.part[PRIO_AGE], 100000);
    assert_int_equal(priority.total, 100000);
    fix_free(fix);
}

/*
 * Users with the share "parent" are all level, by what their account has used; an account with it is
 * not there: its users are ranked with those of the account above.
 */
static void shares_of_the_parent(void **unused)
{
    static const struct {
        const char *account, *user;
        bool parent;
        unsigned used, fifths;
    } users[] = {
        { "root", "root", false, 0, 5 },  { "physics", "alice", true, 1000, 3 },
        { "physics", "bob", true, 0, 3 }, { "chemistry", "carl", false, 100, 4 },
        { "lab", "dora", false, 900, 1 },
    };
    Config config = CONFIG__INIT;
    ConfAccount accounts[3] = { CONF_ACCOUNT__INIT, CONF_ACCOUNT__INIT, CONF_ACCOUNT__INIT };
    ConfAccount *all[3] = { &accounts[0], &accounts[1], &accounts[2] };
    ConfUser people[4] = { CONF_USER__INIT, CONF_USER__INIT, CONF_USER__INIT, CONF_USER__INIT };
    ConfUser *everybody[4] = { &people[0], &people[1], &people[2], &people[3] };

    accounts[0].name = (char *)"physics";
    accounts[1].name = (char *)"chemistry";
    accounts[2].name = (char *)"lab";
    accounts[2].parent = (char *)"chemistry";
    SET(&accounts[2], fairshare, FAIRSHARE_PARENT);
    for (size_t i = 0; i < 4; i++) {
        people[i].name = (char *)(uintptr_t)users[i + 1].user;
        people[i].account = (char *)(uintptr_t)users[i + 1].account;
        if (users[i + 1].parent)
            SET(&people[i], fairshare, FAIRSHARE_PARENT);
    }
    config.n_accounts = 3;
    config.accounts = all;
    config.n_users = 4;
    config.users = everybody;
    struct fix *fix = fix_new(1);
    assert_int_equal(fix_reconfigure(fix, &config, false), ERR_OK);
    for (size_t i = 0; i < ARRAY_LEN(users); i++) {
        const struct assoc *at = state_assoc(fix->state, users[i].account, users[i].user, NULL);
        for (struct assoc *up = (struct assoc *)(uintptr_t)at; up; up = up->parent)
            up->holder.usage[TRES_BILLING] += users[i].used;
    }
    fairshare_update(fix->state);
    for (size_t i = 0; i < ARRAY_LEN(users); i++) {
        const struct assoc *at = state_assoc(fix->state, users[i].account, users[i].user, NULL);
        if (at->factor != users[i].fifths * FRACTION / 5)
            fail_msg("%s: %llu fifths", users[i].user,
                     (unsigned long long)(at->factor * 5 / FRACTION));
    }
    fix_free(fix);
}

/* UsageThreshold: whose fair share is too low waits, and goes on when it is not. */
static void a_share_below_the_threshold_waits(void **unused)
{
    struct tree tree;
    static char *flags[] = { (char *)"EnforceUsageThreshold" };

    tree_init(&tree);
    tree.qos.n_qos_flags = 1;
    tree.qos.qos_flags = flags;
    tree.qos.usage_threshold = (char *)"0.6";
    struct fix *fix = tree_up(&tree);
    uint32_t job = submit(fix, "q", 1, 600);
    assert_int_equal(fix_reason(fix, job), REASON_NONE);
    for (struct assoc *at = (struct assoc *)(uintptr_t)alice(fix); at; at = at->parent)
        at->holder.usage[TRES_BILLING] = 1000;
    fairshare_update(fix->state); /* root, who has used nothing, is first of two */
    assert_int_equal(fix_reason(fix, job), REASON_QOS_THRES);
    fix_free(fix);
}

/* What a configuration says of other things leaves accounts, their counters and the order alone. */
static void other_settings_do_not_touch_accounts(void **unused)
{
    struct fix *fix = fix_new(4);
    Config *config = fix_config_accounts(4, "limits"), *more = fix_config_accounts(6, "limits");
    struct err err = { 0 };

    config->hash = mem_strdup("1");
    more->hash = mem_strdup("2"); /* it is of nodes too */
    assert_int_equal(fix_reconfigure(fix, config, false), ERR_OK);
    const struct assoc *at = state_assoc(fix->state, "phys", "alice", NULL);
    uint64_t turn = state_priority_turn(fix->state);
    assert_int_equal(fix_reconfigure(fix, more, true), ERR_OK);
    assert_int_equal(state_priority_turn(fix->state), turn);
    assert_ptr_equal(state_assoc(fix->state, "phys", "alice", NULL), at);
    assert_int_equal(core_check(fix->state, &err), 0);
    state_free(fix_copy(fix));

    SET(more->users[0], max_jobs, 3);
    assert_int_equal(fix_reconfigure(fix, more, false), ERR_OK);
    assert_int_not_equal(state_priority_turn(fix->state), turn);
    at = state_assoc(fix->state, "phys", "alice", NULL);
    assert_int_equal(at->tres_limits.count[MAX_JOBS], 3);
    assert_int_equal(core_check(fix->state, &err), 0);
    state_free(fix_copy(fix));
    config__free_unpacked(config, NULL);
    config__free_unpacked(more, NULL);
    fix_free(fix);
}

/* As in Slurm: other weights are for jobs that start later. */
static void a_job_is_billed_as_when_it_started(void **unused)
{
    struct tree tree;
    Command cmd = COMMAND__INIT;
    CmdPartition msg = CMD_PARTITION__INIT;
    PartitionSpec spec = PARTITION_SPEC__INIT;

    tree_init(&tree);
    char *name = mem_strdup(tree.config.partitions[0]->name);
    free(tree.config.partitions[0]->tres_billing_weights);
    tree.config.partitions[0]->tres_billing_weights = mem_strdup("cpu=3");
    struct fix *fix = tree_up(&tree);
    const struct assoc *alice = state_assoc(fix->state, "a", "alice", NULL);
    uint32_t first = submit(fix, "q", 1, 600), second = submit(fix, "q", 1, 600);
    assert_int_equal(fix_start(fix, first, "n1", 2), ERR_OK);
    assert_int_equal(alice->holder.used[TRES_BILLING], 6);

    spec.name = name;
    spec.tres_billing_weights = (char *)"cpu=10";
    msg.change = &spec;
    cmd.what_case = COMMAND__WHAT_PARTITION;
    cmd.partition = &msg;
    assert_int_equal(fix_apply(fix, &cmd), ERR_OK);
    assert_int_equal(alice->holder.used[TRES_BILLING], 6);
    assert_int_equal(fix_start(fix, second, "n2", 2), ERR_OK);
    assert_int_equal(alice->holder.used[TRES_BILLING], 26);
    struct state *copy = fix_copy(fix);
    alice = state_assoc(copy, "a", "alice", NULL);
    assert_int_equal(alice->holder.used[TRES_BILLING], 26);
    assert_int_equal(alice->holder.rate[TRES_BILLING], 26000);
    state_free(copy);
    free(name);
    fix_free(fix);
}

UNIT_MAIN(UNIT(every_limit_has_its_reason), UNIT(a_qos_goes_before_the_association),
          UNIT(the_qos_of_a_partition_goes_first), UNIT(a_qos_sets_limits_of_partitions_aside),
          UNIT(as_many_as_may_are_submitted), UNIT(usage_grows_and_decays),
          UNIT(priorities_only_grow), UNIT(minutes_that_are_used_up_stay_so), UNIT(powers_of_two),
          UNIT(the_tree_is_ranked_as_slurm_does), UNIT(shares_of_the_parent),
          UNIT(a_share_below_the_threshold_waits), UNIT(keys_do_not_change_while_jobs_age),
          UNIT(other_settings_do_not_touch_accounts), UNIT(a_job_is_billed_as_when_it_started))
