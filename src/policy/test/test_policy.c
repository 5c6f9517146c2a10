/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_policy.c - accounts of a configuration without a cluster: found, checked, and their shares
 */
#include "test/unit.h"

#include "base/units.h"
#include "policy/accounts.h"

static ConfAccount physics = CONF_ACCOUNT__INIT, lab = CONF_ACCOUNT__INIT;
static ConfUser alice = CONF_USER__INIT, bob = CONF_USER__INIT;
static ConfQos urgent = CONF_QOS__INIT;

static Config example(void)
{
    static ConfAccount *accounts[] = { &physics, &lab };
    static ConfUser *users[] = { &alice, &bob };
    static ConfQos *qos[] = { &urgent };
    Config config = CONFIG__INIT;

    physics.name = (char *)"physics";
    lab.name = (char *)"lab";
    lab.parent = (char *)"physics";
    lab.has_max_jobs = true;
    lab.max_jobs = 7;
    alice.name = (char *)"alice";
    bob.name = (char *)"bob";
    alice.account = bob.account = (char *)"lab";
    urgent.name = (char *)"urgent";
    config.n_accounts = 2;
    config.accounts = accounts;
    config.n_users = 2;
    config.users = users;
    config.n_qos = 1;
    config.qos = qos;
    config.weight_fairshare = 1000;
    return config;
}

static void a_tree_is_read_from_a_configuration(void **unused)
{
    Config config = example();
    struct accounts *accounts = accounts_new(&config);
    const struct assoc *found = assoc_get(accounts, "lab", "alice", NULL);

    (void)unused;
    assert_non_null(found);
    assert_string_equal(found->parent->account, "lab");
    assert_string_equal(found->parent->parent->account, "physics");
    assert_int_equal(found->tres_limits.count[MAX_JOBS], 7); /* of the account */
    assert_null(assoc_get(accounts, "physics", "alice", NULL));
    assert_non_null(map_get(&accounts->qos_names, "urgent"));
    accounts_free(accounts);
}

static void who_has_used_less_goes_first(void **unused)
{
    Config config = example();
    struct accounts *accounts = accounts_new(&config);
    struct assoc *a = assoc_get(accounts, "lab", "alice", NULL);
    struct assoc *b = assoc_get(accounts, "lab", "bob", NULL);

    (void)unused;
    fairshare_work_out(accounts, &config, 0);
    assert_true(a->factor == b->factor);
    a->holder.rate[TRES_BILLING] = 1000; /* one a second */
    a->holder.wall_rate = 1000;
    fairshare_work_out(accounts, &config, 100 * US_PER_S);
    assert_int_equal(a->share_used, 16 * 100);
    assert_true(a->factor < b->factor);
    usage_decay(&a->holder, accounts->tres_count, 100 * US_PER_S, 0);
    assert_int_equal(usage_at(&a->holder, TRES_BILLING, 100 * US_PER_S), 0);
    accounts_free(accounts);
}

static void a_parent_that_is_missing_is_refused(void **unused)
{
    Config config = example();
    struct err err = { 0 };

    (void)unused;
    assert_int_equal(accounts_validate(NULL, &config, NULL, &err), 0);
    lab.parent = (char *)"chemistry";
    assert_true(accounts_validate(NULL, &config, NULL, &err) < 0);
    assert_string_equal(err.text, "account 'lab': its parent 'chemistry' does not stand before it");
    lab.parent = (char *)"physics";
    config.users[1]->account = (char *)"chemistry";
    assert_true(accounts_validate(NULL, &config, NULL, &err) < 0);
    assert_string_equal(err.text, "user 'bob': there is no account 'chemistry'");
}

UNIT_MAIN(UNIT(a_tree_is_read_from_a_configuration), UNIT(who_has_used_less_goes_first),
          UNIT(a_parent_that_is_missing_is_refused))
