/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_etcd_near.c - when etcd's leadership is moved, and to whom
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "log/etcd_near.h"
#include "log/log_priv.h"

/* An etcd of three members, ids 11 to 13, of which we speak to one. */
static struct {
    uint64_t asked, leads; /* whom we speak to; who leads */
    uint64_t moved_to;
    unsigned calls;
    void (*fire)(void *arg);
    void *fire_arg;
    etcd_done_fn done;
    void *done_arg;
    enum etcd_method method;
    bool fails;
} etcd;

static struct log_leader leads; /* as our log says */

static struct log_leader leader_op(const struct log *log)
{
    (void)log;
    return leads;
}

static const struct log_ops ops = { .name = "test", .leader = leader_op };
static struct log fake_log = { .ops = &ops };

static void *io_call(void *ctx, enum etcd_method method, const ProtobufCMessage *request,
                     unsigned timeout_ms, etcd_done_fn done, void *arg)
{
    (void)ctx, (void)timeout_ms;
    etcd.calls++;
    etcd.method = method;
    etcd.done = done;
    etcd.done_arg = arg;
    if (method == ETCD_CALL_MOVE_LEADER)
        etcd.moved_to = ((const EtcdMoveLeaderRequest *)(const void *)request)->target_id;
    return &etcd;
}

static void io_cancel(void *ctx, void *call)
{
    (void)ctx, (void)call;
    etcd.done = NULL;
}

static void *io_timer(void *ctx, unsigned ms, void (*fn)(void *arg), void *arg)
{
    (void)ctx, (void)ms;
    assert_null(etcd.fire);
    etcd.fire = fn;
    etcd.fire_arg = arg;
    return &etcd;
}

static void io_untimer(void *ctx, void *timer)
{
    (void)ctx, (void)timer;
    etcd.fire = NULL;
}

static const struct etcd_io io = {
    .call = io_call, .cancel = io_cancel, .timer = io_timer, .untimer = io_untimer
};

static void answer(void)
{
    EtcdHeader header = ETCD_HEADER__INIT;
    EtcdStatusResponse status = ETCD_STATUS_RESPONSE__INIT;
    EtcdMemberListResponse list = ETCD_MEMBER_LIST_RESPONSE__INIT;
    EtcdMoveLeaderResponse moved = ETCD_MOVE_LEADER_RESPONSE__INIT;
    EtcdMember members[3], *rows[3];
    static char names[3][3] = { "c1", "c2", "c3" };
    struct err err;
    etcd_done_fn done = TAKE(etcd.done);

    if (etcd.fails) {
        err_set(&err, ERR_DEADLINE, "no answer");
        done(etcd.done_arg, NULL, &err);
        return;
    }
    header.member_id = etcd.asked;
    status.header = &header;
    status.leader = etcd.leads;
    for (uint64_t i = 0; i < 3; i++) {
        etcd_member__init(&members[i]);
        members[i].id = 11 + i;
        members[i].name = names[i];
        rows[i] = &members[i];
    }
    list.n_members = 3;
    list.members = rows;
    done(etcd.done_arg,
         etcd.method == ETCD_CALL_STATUS        ? &status.base
         : etcd.method == ETCD_CALL_MEMBER_LIST ? &list.base
                                                : &moved.base,
         NULL);
}

/* One look, with all that follows from it. */
static void look(void)
{
    void (*fire)(void *arg) = TAKE(etcd.fire);

    assert_non_null(fire);
    fire(etcd.fire_arg);
    while (etcd.done)
        answer();
}

static struct etcd_near *begin(const char *leader, uint64_t asked, uint64_t etcd_leads)
{
    memset(&etcd, 0, sizeof(etcd));
    etcd.asked = asked;
    etcd.leads = etcd_leads;
    leads = (struct log_leader){ .name = leader, .term = 5 };
    return etcd_near_new(&io, NULL, &fake_log);
}

static void who_speaks_to_etcds_leader_moves_it(void **state)
{
    struct etcd_near *near = begin("c2", 11, 11);

    (void)state;
    look(); /* it has just begun to lead */
    assert_int_equal(etcd.calls, 0);
    look();
    assert_int_equal(etcd.moved_to, 12);
    etcd_near_free(near);
}

static void others_leave_it(void **state)
{
    struct etcd_near *near = begin("c2", 13, 11);

    (void)state;
    look();
    look();
    look();
    assert_int_equal(etcd.moved_to, 0);
    etcd_near_free(near);
}

static void it_stays_where_it_belongs(void **state)
{
    struct etcd_near *near = begin("c2", 12, 12); /* our own member is down: we ask c2's */

    (void)state;
    look();
    look();
    assert_int_equal(etcd.moved_to, 0);
    etcd_near_free(near);
}

static void who_leads_moves_nothing(void **state)
{
    struct etcd_near *near = begin("c1", 11, 11);

    (void)state;
    leads.self = true;
    look();
    look();
    assert_int_equal(etcd.calls, 0);
    etcd_near_free(near);
}

static void a_leader_that_changes_is_not_followed_at_once(void **state)
{
    struct etcd_near *near = begin("c2", 11, 11);

    (void)state;
    for (int i = 0; i < 5; i++) {
        leads.term++;
        look();
    }
    leads = (struct log_leader){ .name = "" };
    look();
    look();
    assert_int_equal(etcd.calls, 0);
    etcd_near_free(near);
}

static void an_unknown_name_and_an_error_are_nothing(void **state)
{
    struct etcd_near *near = begin("elsewhere", 11, 11);

    (void)state;
    look();
    look();
    assert_int_equal(etcd.moved_to, 0);
    etcd.fails = true;
    look();
    assert_int_equal(etcd.moved_to, 0);
    etcd_near_free(near); /* while a timer is set */
    assert_null(etcd.fire);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_speaks_to_etcds_leader_moves_it),
        cmocka_unit_test(others_leave_it),
        cmocka_unit_test(it_stays_where_it_belongs),
        cmocka_unit_test(who_leads_moves_nothing),
        cmocka_unit_test(a_leader_that_changes_is_not_followed_at_once),
        cmocka_unit_test(an_unknown_name_and_an_error_are_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
