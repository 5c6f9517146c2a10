/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_accrue.c - limits on how many waiting jobs age
 */
#include <stdlib.h>

#include "core/test/fixture.h"
#include "core/view/view.h"
#include "wire/pb.h"

#define S INT64_C(1000000)

struct tree {
    ConfAccount account;
    ConfUser users[2];
    ConfQos qos;
};

static struct fix *tree_up(struct tree *tree)
{
    Config *plain = fix_config(4), config = *plain;
    ConfAccount *accounts[] = { &tree->account };
    ConfUser *users[] = { &tree->users[0], &tree->users[1] };
    ConfQos *qos[] = { &tree->qos };
    struct fix *fix = fix_new(4);

    tree->account.name = (char *)"a";
    tree->qos.name = (char *)"q";
    for (size_t i = 0; i < 2; i++) {
        conf_user__init(&tree->users[i]);
        tree->users[i].name = (char *)(i ? "bob" : "alice");
        tree->users[i].account = (char *)"a";
    }
    config.n_accounts = config.n_qos = 1;
    config.n_users = 2;
    config.accounts = accounts;
    config.users = users;
    config.qos = qos;
    config.accounting_enforce = (char *)"limits";
    SET(&config, weight_age, 1000);
    SET(&config, priority_max_age_s, 1000);
    SET(&config, priority_calc_period_s, 60);
    assert_int_equal(fix_reconfigure(fix, &config, false), ERR_OK);
    config__free_unpacked(plain, NULL);
    return fix;
}

static void tree_init(struct tree *tree)
{
    conf_account__init(&tree->account);
    conf_qos__init(&tree->qos);
}

static uint32_t submit(struct fix *fix, const char *tasks)
{
    JobSpec spec = fix_spec();

    spec.qos = (char *)"q";
    spec.array = (char *)(uintptr_t)tasks;
    return fix_submit(fix, &spec);
}

static bool ages(const struct fix *fix, uint32_t job)
{
    return fix_get(fix, job)->accrue_us != 0;
}

/* A state made from the snapshot gives the same answers. */
static void check(const struct fix *fix)
{
    struct state *copy = fix_copy(fix);

    assert_int_equal(core_digest(copy), core_digest(fix->state));
    state_free(copy);
}

/* Of three jobs two age; the third does when one of these has started, from the next turn on. */
static void a_limit_lets_two_age(void **unused)
{
    static const struct {
        const char *field;
        bool of_qos;
    } rows[] = {
        { "grp_jobs_accrue", false },
        { "max_jobs_accrue", false },
        { "grp_jobs_accrue", true },
        { "max_jobs_accrue", true },
        { "max_jobs_accrue_per_account", true },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct tree tree;
        tree_init(&tree);
        ProtobufCMessage *at = rows[i].of_qos ? &tree.qos.base : &tree.account.base;
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field_by_name(at->descriptor, rows[i].field);
        assert_non_null(field);
        *(uint32_t *)(void *)((char *)at + field->offset) = 2;
        *(protobuf_c_boolean *)(void *)((char *)at + field->quantifier_offset) = true;
        struct fix *fix = tree_up(&tree);
        uint32_t first = submit(fix, NULL), second = submit(fix, NULL), third = submit(fix, NULL);
        assert_true(ages(fix, first) && ages(fix, second) && !ages(fix, third));
        check(fix);
        fix_time(fix, 100);
        struct priority priority;
        job_priority_of(fix->state, fix_get(fix, first), &priority);
        assert_in_range(priority.part[PRIO_AGE], 99, 101);
        job_priority_of(fix->state, fix_get(fix, third), &priority);
        assert_int_equal(priority.part[PRIO_AGE], 0);
        assert_true(job_order_key(fix->state, fix_get(fix, second)) >
                    job_order_key(fix->state, fix_get(fix, third)));
        struct limit_hit hit;
        assert_true(state_accrue_limit(fix->state, fix_get(fix, third), &hit));
        assert_int_equal(hit.most, 2);
        assert_false(state_accrue_limit(fix->state, fix_get(fix, first), &hit));
        assert_int_equal(fix_start(fix, first, "n1", 1), ERR_OK);
        assert_false(ages(fix, third));
        fix_time(fix, 61);
        assert_true(ages(fix, third));
        assert_true(fix_get(fix, third)->accrue_us > fix_get(fix, third)->eligible_us + 99 * S);
        check(fix);
        fix_free(fix);
    }
}

/* A held job gives its place away; what waited longest gets it, however high its id. */
static void places_go_to_who_waited_longest(void **unused)
{
    struct tree tree;

    tree_init(&tree);
    SET(&tree.qos, grp_jobs_accrue, 1);
    struct fix *fix = tree_up(&tree);
    uint32_t first = submit(fix, NULL), second = submit(fix, NULL), third = submit(fix, NULL);
    assert_int_equal(fix_hold(fix, second, 1, true), ERR_OK);
    assert_int_equal(fix_hold(fix, second, 0, true), ERR_OK);
    assert_int_equal(fix_hold(fix, first, 1, true), ERR_OK);
    assert_int_equal(fix_hold(fix, first, 0, true), ERR_OK);
    assert_false(ages(fix, first)); /* others stand in line */
    fix_time(fix, 61);
    assert_true(ages(fix, third));
    assert_false(ages(fix, second));
    assert_int_equal(fix_cancel(fix, third, NULL), ERR_OK);
    fix_time(fix, 61);
    assert_true(ages(fix, second) && !ages(fix, first));
    check(fix);
    fix_free(fix);
}

/* As many tasks of an array as there is room for. */
static void tasks_of_an_array_age_one_by_one(void **unused)
{
    struct tree tree;

    tree_init(&tree);
    SET(&tree.account, grp_jobs_accrue, 3);
    struct fix *fix = tree_up(&tree);
    uint32_t one = submit(fix, NULL), array = submit(fix, "1-5");
    assert_true(ages(fix, one) && !ages(fix, array));
    fix_time(fix, 61);
    const struct job *meta = fix_get(fix, array);
    assert_int_equal(meta->array->waiting, 3);
    assert_false(meta->accrue_us);
    assert_int_equal(state_assoc(fix->state, "a", NULL, NULL)->holder.accruing, 3);
    check(fix);
    assert_int_equal(fix_cancel(fix, one, NULL), ERR_OK);
    fix_time(fix, 61);
    assert_int_equal(fix_get(fix, array)->array->waiting, 2);
    check(fix);
    fix_free(fix);
}

UNIT_MAIN(UNIT(a_limit_lets_two_age), UNIT(places_go_to_who_waited_longest),
          UNIT(tasks_of_an_array_age_one_by_one))
