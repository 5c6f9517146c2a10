/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_resv.c - reservations: their times, parts of nodes, licences, and what must never happen
 *
 * The last tests make up reservations and jobs; every start is held against all reservations by
 * looking at everything.
 */
#include "base/hash.h"
#include "core/resv.h"
#include "sched/test/rig.h"
#include "test/unit.h"

#define S    INT64_C(1000000)
#define HOUR 3600
#define DAY  86400
static const char small[] =
    "cluster_name = \"t\"\n[scheduler]\nlicenses = [\"a:4\", \"b:2\"]\n"
    "[[nodes]]\nnames = \"n[1-4]\"\ncpus = 8\nsockets = 2\ncores_per_socket = 4\n"
    "memory_mb = 8000\ngres = [\"gpu:4\"]\n"
    "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n"
    "[[partitions]]\nname = \"other\"\nnodes = \"ALL\"\n";

/* ---- making them ---- */

struct wanted {
    const char *name, *nodes, *licenses, *tres, *per_node, *partition, *flags[4], *user, *open;
    int64_t start_s, length_s; /* from now */
    uint32_t node_count, cores[4];
    bool update, remove, skip;
};

static enum err_code put(struct rig *rig, struct wanted w)
{
    Command cmd = COMMAND__INIT;
    CmdReservation msg = CMD_RESERVATION__INIT;
    ReservationSpec spec = RESERVATION_SPEC__INIT;
    char *users[1] = { (char *)w.user }, *open[1] = { (char *)w.open };
    char flags[4][24], *flag_list[4];

    spec.name = (char *)w.name;
    spec.nodes = (char *)w.nodes;
    spec.licenses = (char *)w.licenses;
    spec.tres = (char *)w.tres;
    spec.tres_per_node = (char *)w.per_node;
    spec.partition = (char *)w.partition;
    spec.users = users;
    spec.n_users = w.user != NULL;
    spec.allowed_partitions = open;
    spec.n_allowed_partitions = w.open != NULL;
    spec.flags = flag_list;
    for (size_t i = 0; i < 4 && w.flags[i]; i++) {
        snprintf(flags[i], sizeof(flags[i]), "%s", w.flags[i]);
        flag_list[spec.n_flags++] = flags[i];
    }
    spec.has_start_us = spec.has_duration_s = w.length_s != 0;
    spec.start_us = rig->now_us + w.start_s * S;
    spec.duration_s = w.length_s;
    spec.has_node_count = w.node_count != 0;
    spec.node_count = w.node_count;
    spec.core_counts = w.cores;
    while (spec.n_core_counts < 4 && w.cores[spec.n_core_counts])
        spec.n_core_counts++;
    spec.has_skip = spec.skip = w.skip;
    cmd.what_case = COMMAND__WHAT_RESERVATION;
    cmd.reservation = &msg;
    msg.change = &spec;
    msg.has_create = msg.has_remove = true;
    msg.create = !w.update && !w.remove;
    msg.remove = w.remove;
    return rig_apply(rig, &cmd);
}

static const struct reservation *at(const struct rig *rig, const char *name)
{
    return state_reservation(rig->state, name);
}

static struct rig *new_rig(void)
{
    struct rig *rig = rig_new(small);

    rig->check = true;
    return rig;
}

/* ---- times ---- */

/* 2026-11-16 is a Monday. */
#define MONDAY INT64_C(1794787200)

static void repeats_come_again(void **state)
{
    static const struct {
        unsigned flag;
        int64_t first_day, next_s;
    } rows[] = {
        { RESV_HOURLY, 0, HOUR },     { RESV_DAILY, 4, DAY },       { RESV_WEEKLY, 2, 7 * DAY },
        { RESV_WEEKDAY, 0, DAY },     { RESV_WEEKDAY, 4, 3 * DAY }, { RESV_WEEKEND, 5, DAY },
        { RESV_WEEKEND, 6, 6 * DAY },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        int64_t start = (MONDAY + rows[i].first_day * DAY + 8 * HOUR) * S, end = start + 600 * S;
        int64_t was = start;
        assert_true(resv_next_time(rows[i].flag, &start, &end));
        assert_int_equal((start - was) / S, rows[i].next_s);
        assert_int_equal((end - start) / S, 600);
    }
    int64_t start = 0, end = 1;
    assert_false(resv_next_time(RESV_MAINT, &start, &end));
}

static void a_daily_one_keeps_its_hours(void **state)
{
    struct rig *rig = new_rig();
    int64_t start;

    (void)state;
    assert_int_equal(put(rig, (struct wanted){ "d", .nodes = "n[1-4]", .start_s = HOUR,
                                               .length_s = HOUR, .flags = { "DAILY" } }),
                     ERR_OK);
    start = at(rig, "d")->spec->start_us;
    uint32_t fits = rig_submit(rig, "c=1 t=3000"), not = rig_submit(rig, "c=1 t=4000");
    rig_plan(rig);
    assert_true(rig_runs(rig, fits));
    assert_false(rig_runs(rig, not ));
    rig_wait(rig, HOUR + 1);
    assert_true(at(rig, "d")->active);
    rig_plan(rig);
    assert_false(rig_runs(rig, not ));
    rig_wait(rig, HOUR);
    rig_plan(rig);
    assert_true(rig_runs(rig, not ));
    assert_int_equal((at(rig, "d")->spec->start_us - start) / S, DAY);
    /* A job of more than a day never fits, and is not promised a start within it. */
    uint32_t long_one = rig_submit(rig, "c=1 t=90000");
    rig_plan(rig);
    assert_false(rig_runs(rig, long_one));
    rig_wait(rig, 9 * DAY);
    assert_true((at(rig, "d")->spec->end_us - rig->now_us) / S > 0);
    assert_true((at(rig, "d")->spec->start_us - start) % (DAY * S) == 0);
    rig_free(rig);
}

static void one_time_is_skipped(void **state)
{
    struct rig *rig = new_rig();

    (void)state;
    put(rig, (struct wanted){ "d", .nodes = "n1", .start_s = HOUR, .length_s = HOUR,
                              .flags = { "DAILY" } });
    put(rig, (struct wanted){ "once", .nodes = "n2", .start_s = HOUR, .length_s = HOUR });
    int64_t start = at(rig, "d")->spec->start_us;
    assert_int_equal(put(rig, (struct wanted){ "d", .update = true, .skip = true }), ERR_OK);
    assert_int_equal((at(rig, "d")->spec->start_us - start) / S, DAY);
    assert_int_not_equal(put(rig, (struct wanted){ "once", .update = true, .skip = true }), ERR_OK);
    rig_free(rig);
}

static void repeats_meet(void **state)
{
    struct rig *rig = new_rig();

    (void)state;
    put(rig, (struct wanted){ "d", .nodes = "n1", .start_s = HOUR, .length_s = HOUR,
                              .flags = { "DAILY" } });
    /* Three days later at the same hour; the same weekly; an hour after it. */
    assert_int_equal(put(rig, (struct wanted){ "x", .nodes = "n1", .start_s = 3 * DAY + HOUR + 600,
                                               .length_s = 60 }),
                     ERR_RESERVATION_OVERLAP);
    assert_int_equal(put(rig, (struct wanted){ "x", .nodes = "n1", .start_s = 2 * DAY + HOUR,
                                               .length_s = 60, .flags = { "WEEKLY" } }),
                     ERR_RESERVATION_OVERLAP);
    assert_int_equal(put(rig, (struct wanted){ "x", .nodes = "n1", .start_s = 3 * DAY + 2 * HOUR,
                                               .length_s = HOUR, .flags = { "WEEKLY" } }),
                     ERR_OK);
    assert_int_equal(put(rig, (struct wanted){ "y", .nodes = "n1", .start_s = 3 * DAY + 10,
                                               .length_s = 60, .flags = { "HOURLY" } }),
                     ERR_RESERVATION_OVERLAP);
    rig_free(rig);
}

static void force_start_begins_in_the_past(void **state)
{
    struct rig *rig = new_rig();

    (void)state;
    assert_int_not_equal(
        put(rig, (struct wanted){ "p", .nodes = "n1", .start_s = -2 * HOUR, .length_s = 4 * HOUR }),
        ERR_OK);
    assert_int_equal(put(rig, (struct wanted){ "p", .nodes = "n1", .start_s = -2 * HOUR,
                                               .length_s = 4 * HOUR, .flags = { "FORCE_START" } }),
                     ERR_OK);
    assert_true(at(rig, "p")->active);
    rig_free(rig);
}

static void an_idle_one_is_purged(void **state)
{
    struct rig *rig = new_rig();

    (void)state;
    put(rig, (struct wanted){ "p", .nodes = "n1", .length_s = HOUR, .flags = { "PURGE_COMP=2" } });
    uint32_t job = rig_submit(rig, "c=1 t=60 resv=p");
    rig_plan(rig);
    assert_true(rig_runs(rig, job));
    rig_wait(rig, 50);
    rig_end(rig, job);
    rig_wait(rig, 100);
    assert_non_null(at(rig, "p"));
    rig_wait(rig, 30);
    assert_null(at(rig, "p"));
    rig_free(rig);
}

static void a_floating_one_stays_ahead(void **state)
{
    struct rig *rig = new_rig();

    (void)state;
    put(rig, (struct wanted){ "f", .nodes = "n1", .start_s = HOUR, .length_s = HOUR,
                              .flags = { "TIME_FLOAT" } });
    for (int i = 0; i < 5; i++) {
        rig_wait(rig, 1200);
        assert_false(at(rig, "f")->active);
        assert_true(at(rig, "f")->spec->start_us - rig->now_us > 3500 * S);
    }
    uint32_t brief = rig_submit(rig, "c=1 t=600 w=n1"), longer = rig_submit(rig, "c=1 t=7200 w=n1");
    rig_plan(rig);
    assert_true(rig_runs(rig, brief));
    assert_false(rig_runs(rig, longer));
    rig_free(rig);
}

/* ---- parts of nodes ---- */

static void cores_are_kept_and_bound(void **state)
{
    struct rig *rig = new_rig();

    (void)state;
    assert_int_equal(
        put(rig, (struct wanted){ "c", .nodes = "n1", .cores = { 3 }, .length_s = HOUR }), ERR_OK);
    assert_int_equal(at(rig, "c")->parts.items[0].cpus, 3);
    uint32_t in = rig_submit(rig, "c=2 t=60 resv=c"), more = rig_submit(rig, "c=2 t=60 resv=c");
    uint32_t out = rig_submit(rig, "c=5 t=60 w=n1"), over = rig_submit(rig, "c=1 t=60 w=n1");
    rig_plan(rig);
    assert_true(rig_runs(rig, in));
    assert_false(rig_runs(rig, more)); /* there is one left */
    assert_true(rig_runs(rig, out));
    assert_false(rig_runs(rig, over)); /* the one that is free is kept */
    uint32_t whole = rig_submit(rig, "ex t=60 w=n1");
    rig_end(rig, in);
    rig_plan(rig);
    assert_true(rig_runs(rig, more));
    rig_end(rig, out);
    rig_plan(rig);
    assert_true(rig_runs(rig, over));
    assert_false(rig_runs(rig, whole)); /* nobody has all of such a node */
    rig_wait(rig, HOUR + 1);
    rig_end(rig, over);
    rig_release(rig, more); /* was ended with it */
    rig_plan(rig);
    assert_null(at(rig, "c"));
    assert_true(rig_runs(rig, whole));
    rig_free(rig);
}

/* One outside that waits, with a start that is promised to it, takes nothing of what is kept. */
static void a_promise_outside_is_no_hindrance(void **state)
{
    struct rig *rig = new_rig();

    (void)state;
    put(rig, (struct wanted){ "c", .nodes = "n1", .cores = { 3 }, .length_s = 3 * HOUR });
    uint32_t others = rig_submit(rig, "c=5 t=300 w=n1"), waits;
    rig_plan(rig);
    assert_true(rig_runs(rig, others));
    waits = rig_submit(rig, "c=5 t=300 w=n1");
    rig_plan(rig);
    rig_wait(rig, 2);
    uint32_t in = rig_submit(rig, "c=3 t=300 resv=c");
    rig_plan(rig);
    assert_true(rig_runs(rig, in));
    assert_false(rig_runs(rig, waits));
    rig_free(rig);
}

static void cores_are_shared_out(void **state)
{
    struct rig *rig = new_rig();

    (void)state;
    /* All nodes have 8. By node; evenly; as few nodes as it takes; what is left; too many. */
    assert_int_equal(
        put(rig, (struct wanted){ "a", .nodes = "n[1-2]", .cores = { 2, 5 }, .length_s = HOUR }),
        ERR_OK);
    assert_int_equal(at(rig, "a")->parts.items[1].cpus, 5);
    assert_int_equal(
        put(rig, (struct wanted){ "b", .node_count = 2, .cores = { 12 }, .length_s = HOUR }),
        ERR_OK);
    assert_int_equal(at(rig, "b")->parts.items[0].cpus, 6);
    assert_int_equal(at(rig, "b")->parts.items[1].cpus, 6);
    assert_int_equal(put(rig, (struct wanted){ "c", .tres = "cpu=9", .length_s = HOUR }), ERR_OK);
    assert_int_equal(put(rig, (struct wanted){ "d", .tres = "cpu=9", .length_s = HOUR }),
                     ERR_NODES_BUSY);
    assert_int_equal(put(rig, (struct wanted){ "e", .nodes = "n1", .length_s = HOUR }),
                     ERR_RESERVATION_OVERLAP);
    assert_int_equal(
        put(rig, (struct wanted){ "e", .nodes = "n[1-3]", .cores = { 1, 1 }, .length_s = HOUR }),
        ERR_NODE_COUNT);
    assert_int_equal(put(rig, (struct wanted){ "e", .tres = "cpu=x", .length_s = HOUR }), ERR_TRES);
    assert_int_equal(put(rig, (struct wanted){ "c", .update = true, .tres = "cpu=2" }), ERR_OK);
    assert_int_equal(put(rig, (struct wanted){ "d", .tres = "cpu=7", .length_s = HOUR }), ERR_OK);
    rig_free(rig);
}

static void devices_are_kept(void **state)
{
    struct rig *rig = new_rig();

    (void)state;
    assert_int_equal(
        put(rig, (struct wanted){ "g", .nodes = "n1", .per_node = "gres/gpu=3", .length_s = HOUR }),
        ERR_OK);
    uint32_t in = rig_submit(rig, "c=1 gres=gpu:3 t=60 resv=g"), out;
    out = rig_submit(rig, "c=1 gres=gpu:2 t=60 w=n1");
    uint32_t one = rig_submit(rig, "c=1 gres=gpu:1 t=60 w=n1"), cpu = rig_submit(rig, "c=6 w=n1");
    rig_plan(rig);
    assert_true(rig_runs(rig, in));
    assert_false(rig_runs(rig, out));
    assert_true(rig_runs(rig, one));
    assert_true(rig_runs(rig, cpu)); /* of CPUs nothing is kept */
    rig_free(rig);
}

static void a_part_later_keeps_long_jobs_off(void **state)
{
    struct rig *rig = new_rig();

    (void)state;
    put(rig,
        (struct wanted){ "c", .nodes = "n1", .cores = { 6 }, .start_s = HOUR, .length_s = HOUR });
    uint32_t brief = rig_submit(rig, "c=6 t=600 w=n1"), wide = rig_submit(rig, "c=2 t=7000 w=n1");
    uint32_t over = rig_submit(rig, "c=2 t=7000 w=n1");
    rig_plan(rig);
    assert_true(rig_runs(rig, brief));
    assert_true(rig_runs(rig, wide)); /* two are not kept */
    rig_end(rig, brief);
    rig_plan(rig);
    assert_false(rig_runs(rig, over));
    rig_free(rig);
}

/* ---- licences, partitions ---- */

static void licences_are_kept(void **state)
{
    struct rig *rig = new_rig();

    (void)state;
    assert_int_equal(put(rig, (struct wanted){ "l", .licenses = "a:3", .length_s = HOUR }),
                     ERR_RESERVATION_EMPTY);
    assert_int_equal(put(rig, (struct wanted){ "l", .licenses = "a:5", .length_s = HOUR,
                                               .flags = { "ANY_NODES" } }),
                     ERR_LICENSES);
    assert_int_equal(put(rig, (struct wanted){ "l", .licenses = "a:3", .length_s = HOUR,
                                               .flags = { "LICENSE_ONLY" } }),
                     ERR_OK);
    assert_int_equal(put(rig, (struct wanted){ "m", .tres = "license/a=2", .length_s = HOUR,
                                               .flags = { "ANY_NODES" } }),
                     ERR_LICENSES);
    uint32_t out = rig_submit(rig, "c=1 t=60 lic=a:2"), one = rig_submit(rig, "c=1 t=60 lic=a:1");
    uint32_t in = rig_submit(rig, "c=1 t=60 lic=a:2 resv=l"), rest;
    rig_plan(rig);
    assert_false(rig_runs(rig, out));
    assert_true(rig_runs(rig, one));
    assert_true(rig_runs(rig, in));
    rest = rig_submit(rig, "c=1 t=60 lic=a:1 resv=l");
    rig_plan(rig);
    assert_true(rig_runs(rig, rest));
    rig_end(rig, one);
    rig_end(rig, rest);
    rig_plan(rig);
    assert_false(rig_runs(rig, out));
    rig_wait(rig, HOUR + 1);
    rig_plan(rig);
    assert_true(rig_runs(rig, out));
    rig_free(rig);
}

static void only_jobs_of_some_partitions(void **state)
{
    struct rig *rig = new_rig();

    (void)state;
    put(rig, (struct wanted){ "p", .nodes = "n1", .length_s = HOUR, .open = "other" });
    assert_int_equal(rig_submit(rig, "c=1 t=60 uid=7 resv=p"), 0);
    uint32_t both = rig_submit(rig, "c=1 t=60 uid=7 resv=p p=main,other");
    rig_plan(rig);
    assert_true(rig_runs(rig, both));
    assert_string_equal(rig_job(rig, both)->run->partition, "other");
    rig_free(rig);
}

/* ---- flags ---- */

static bool has_node(const struct rig *rig, const char *resv, const char *name)
{
    return bitset_has(&at(rig, resv)->nodes, state_node(rig->state, name)->number);
}

static void nodes_are_replaced(void **state)
{
    struct rig *rig = new_rig();

    (void)state;
    put(rig,
        (struct wanted){ "d", .node_count = 1, .length_s = HOUR, .flags = { "REPLACE_DOWN" } });
    put(rig, (struct wanted){ "r", .node_count = 1, .length_s = HOUR, .flags = { "REPLACE" } });
    put(rig,
        (struct wanted){ "s", .node_count = 1, .length_s = HOUR, .flags = { "STATIC_ALLOC" } });
    assert_true(has_node(rig, "d", "n1") && has_node(rig, "r", "n2") && has_node(rig, "s", "n3"));
    rig_node(rig, "n1", "DOWN");
    assert_false(has_node(rig, "d", "n1"));
    assert_true(has_node(rig, "d", "n4"));
    rig_node(rig, "n3", "DOWN");
    assert_true(has_node(rig, "s", "n3"));
    rig_node(rig, "n1", "RESUME");
    uint32_t in = rig_submit(rig, "c=1 t=60 resv=r"), down = rig_submit(rig, "c=1 t=60 resv=d");
    rig_plan(rig);
    assert_true(rig_runs(rig, in) && rig_runs(rig, down));
    assert_false(has_node(rig, "r", "n2")); /* in use: another comes in its place */
    assert_true(has_node(rig, "r", "n1"));
    assert_true(has_node(rig, "d", "n4")); /* in use is not down */
    assert_int_not_equal(
        put(rig, (struct wanted){ "x", .nodes = "n1", .length_s = HOUR, .flags = { "REPLACE" } }),
        ERR_OK);
    rig_free(rig);
}

static void overlapping_and_ignoring(void **state)
{
    struct rig *rig = new_rig();
    uint32_t job = rig_submit(rig, "c=8 t=3000 w=n1"), later;

    (void)state;
    rig_plan(rig);
    assert_int_equal(put(rig, (struct wanted){ "a", .nodes = "n1", .length_s = HOUR }),
                     ERR_NODES_BUSY);
    assert_int_equal(put(rig, (struct wanted){ "a", .nodes = "n1", .length_s = HOUR,
                                               .flags = { "IGNORE_JOBS" } }),
                     ERR_OK);
    assert_true(rig_runs(rig, job));
    assert_int_equal(put(rig, (struct wanted){ "b", .nodes = "n1", .length_s = HOUR,
                                               .flags = { "IGNORE_JOBS" } }),
                     ERR_RESERVATION_OVERLAP);
    assert_int_equal(put(rig, (struct wanted){ "b", .nodes = "n1", .length_s = HOUR,
                                               .flags = { "IGNORE_JOBS", "OVERLAP" } }),
                     ERR_OK);
    assert_int_equal(put(rig, (struct wanted){ "m", .nodes = "n1", .length_s = HOUR,
                                               .flags = { "IGNORE_JOBS", "MAINT" } }),
                     ERR_OK);
    assert_true(resv_node_flags(rig->state, state_node(rig->state, "n1")) == NODE_FLAG_MAINT);
    rig_end(rig, job);
    later = rig_submit(rig, "c=1 t=60 resv=b"); /* another has the node as well */
    rig_plan(rig);
    assert_false(rig_runs(rig, later));
    put(rig, (struct wanted){ "a", .remove = true });
    put(rig, (struct wanted){ "m", .remove = true });
    rig_plan(rig);
    assert_true(rig_runs(rig, later));
    rig_free(rig);
}

static void a_flexible_one_does_not_bind_its_jobs(void **state)
{
    struct rig *rig = new_rig();

    (void)state;
    put(rig, (struct wanted){ "f", .nodes = "n1", .start_s = HOUR, .length_s = HOUR,
                              .flags = { "FLEX" } });
    put(rig, (struct wanted){ "h", .nodes = "n2", .start_s = HOUR, .length_s = HOUR });
    uint32_t early = rig_submit(rig, "N=2 x=n2 t=8000 resv=f"),
             hard = rig_submit(rig, "t=60 resv=h");
    uint32_t other = rig_submit(rig, "c=1 t=8000 w=n1");
    rig_plan(rig);
    assert_true(rig_runs(rig, early)); /* before it begins, beyond its end and its nodes */
    assert_false(rig_runs(rig, hard));
    assert_false(rig_runs(rig, other));
    rig_wait(rig, 2 * HOUR + 1);
    assert_null(at(rig, "f"));
    assert_true(rig_runs(rig, early)); /* and is not ended with it */
    rig_free(rig);
}

static void who_waits_when_it_ends(void **state)
{
    struct rig *rig = new_rig();

    (void)state;
    put(rig, (struct wanted){ "k", .nodes = "n1", .length_s = 600 });
    put(rig,
        (struct wanted){ "g", .nodes = "n2", .length_s = 600, .flags = { "NO_HOLD_JOBS_AFTER" } });
    uint32_t first = rig_submit(rig, "ex t=3000 resv=k"),
             other = rig_submit(rig, "ex t=3000 resv=g");
    rig_plan(rig);
    assert_true(rig_runs(rig, first) && rig_runs(rig, other)); /* however long they may be */
    uint32_t held = rig_submit(rig, "c=1 t=3000 resv=k"),
             goes = rig_submit(rig, "c=1 t=3000 resv=g");
    rig_plan(rig);
    assert_false(rig_runs(rig, held) || rig_runs(rig, goes));
    rig_wait(rig, 601);
    assert_false(rig_runs(rig, first) || rig_runs(rig, other)); /* they ended with it */
    rig_plan(rig);
    assert_int_equal(rig_job(rig, held)->hold, 2);
    assert_true(rig_runs(rig, goes));
    rig_free(rig);
}

static void those_of_a_partition(void **state)
{
    struct rig *rig = new_rig();

    (void)state;
    assert_int_not_equal(
        put(rig, (struct wanted){ "p", .length_s = HOUR, .flags = { "PART_NODES" } }), ERR_OK);
    assert_int_equal(put(rig, (struct wanted){ "p", .nodes = "ALL", .partition = "other",
                                               .length_s = HOUR, .flags = { "PART_NODES" } }),
                     ERR_OK);
    assert_int_equal(bitset_count(&at(rig, "p")->nodes), 4);
    put(rig, (struct wanted){ "p", .remove = true });
    assert_int_equal(put(rig, (struct wanted){ "q", .partition = "other", .length_s = HOUR }),
                     ERR_OK); /* all of them, too */
    assert_int_equal(bitset_count(&at(rig, "q")->nodes), 4);
    rig_free(rig);
}

static void a_magnetic_one_draws_who_may_use_it(void **state)
{
    struct rig *rig = new_rig();

    (void)state;
    put(rig, (struct wanted){ "m", .nodes = "n1", .length_s = HOUR, .user = "u7",
                              .flags = { "MAGNETIC" } });
    uint32_t drawn = rig_submit(rig, "c=1 t=60 uid=7"),
             not_it = rig_submit(rig, "c=1 t=60 uid=8 w=n1");
    uint32_t longer = rig_submit(rig, "c=1 t=8000 uid=7");
    rig_plan(rig);
    assert_string_equal(rig_job(rig, drawn)->run->reservation, "m");
    assert_false(rig_runs(rig, not_it));
    assert_true(rig_runs(rig, longer)); /* does not fit in it, so elsewhere */
    assert_null(rig_job(rig, longer)->run->reservation);
    rig_free(rig);
}

/* ---- whatever happens ---- */

static uint64_t seed;
static unsigned starts_seen;

static uint32_t dice(uint32_t sides)
{
    seed = hash_mix(seed + UINT64_C(0x9e3779b97f4a7c15));
    return (uint32_t)(seed >> 33) % sides;
}

/* By its limit, and no later than the reservation that it asked for. */
static int64_t end_of(const struct rig *rig, const struct job *job)
{
    const struct reservation *resv =
        job->shape->reservation ? state_reservation(rig->state, job->run->reservation) : NULL;
    int64_t end = job_end_by(job, job->run->start_us + job->run->suspended_total_us);

    return resv && !(resv->flags & RESV_FLEX) && end > resv->spec->end_us ? resv->spec->end_us
                                                                          : end;
}

static uint64_t gpus_of(const struct job_part *part)
{
    uint64_t count = 0;

    for (size_t i = 0; i < part->gres_count; i++)
        count += part->gres[i].count;
    return count;
}

/* CPUs and GPUs of a node that jobs have beyond `from`, in the reservation or outside of it. */
static void beyond(const struct rig *rig, const struct node *node, const char *resv, bool in,
                   int64_t from_us, uint64_t *cpus, uint64_t *gpus)
{
    *cpus = *gpus = 0;
    for (size_t i = 0; i < node->jobs.len; i++) {
        const struct job *job = node->jobs.items[i];
        if (str_eq(job->run->reservation, resv) != in || end_of(rig, job) <= from_us)
            continue;
        for (unsigned k = 0; k < job->run->count; k++) {
            if (job->run->parts[k].node == node) {
                *cpus += job->run->parts[k].cpus;
                *gpus += gpus_of(&job->run->parts[k]);
            }
        }
    }
}

static void judge_node(const struct rig *rig, const struct node *node,
                       const struct reservation *resv, int64_t now_us)
{
    const struct resv_part *part = resv_part_of(resv, node->number);
    int64_t from = resv->spec->start_us > now_us ? resv->spec->start_us : now_us;
    uint64_t cpus, gpus;

    beyond(rig, node, resv->spec->name, false, from, &cpus, &gpus);
    assert_non_null(part);
    assert_true(cpus + part->cpus <= node->cpus);
    assert_true(gpus + part->gres[0] <= node->gres[0].total);
}

/* Every start, when it is made: it leaves to each reservation what is its own, as long as it runs. */
static void judge(struct rig *rig, const struct job *job)
{
    int64_t start = rig->now_us, end = end_of(rig, job);

    starts_seen++;
    for (size_t r = 0; r < state_reservation_count(rig->state); r++) {
        const struct reservation *resv = state_reservation_at(rig->state, r);
        bool own = str_eq(job->run->reservation, resv->spec->name);
        bool meets = resv->spec->start_us < end && start < resv->spec->end_us && !resv->over;
        if (own)
            assert_true(resv->active && end <= resv->spec->end_us + S);
        for (unsigned i = 0; i < job->run->count; i++) {
            const struct node *node = job->run->parts[i].node;
            bool has = bitset_has(&resv->nodes, node->number);
            const struct resv_part *part = resv_part_of(resv, node->number);
            uint64_t cpus, gpus;
            if (own)
                assert_true(has || resv->flags & RESV_ANY_NODES);
            if (own && part && part->cpus) {
                beyond(rig, node, resv->spec->name, true, start, &cpus, &gpus);
                assert_true(cpus <= part->cpus);
            }
            if (!own && meets && has)
                judge_node(rig, node, resv, start);
        }
    }
}

/* What was promised can be had: nothing is promised twice. */
static void judge_promises(const struct rig *rig)
{
    size_t count = state_reservation_count(rig->state);

    for (size_t n = 0; n < state_node_count(rig->state); n++) {
        const struct node *node = state_node_at(rig->state, n);
        for (size_t a = 0; a < count; a++) {
            const struct reservation *one = state_reservation_at(rig->state, a);
            uint64_t cpus = 0, gpus = 0;
            if (!bitset_has(&one->nodes, n))
                continue;
            for (size_t b = 0; b < count; b++) { /* at the moment at which `one` begins */
                const struct reservation *other = state_reservation_at(rig->state, b);
                const struct resv_part *part = resv_part_of(other, (uint32_t)n);
                if (!bitset_has(&other->nodes, n) || other->spec->start_us > one->spec->start_us ||
                    other->spec->end_us <= one->spec->start_us)
                    continue;
                cpus += part ? part->cpus : node->cpus;
                gpus += part ? part->gres[0] : node->gres[0].total;
            }
            assert_true(cpus <= node->cpus && gpus <= node->gres[0].total);
        }
    }
}

static void random_resv(struct rig *rig, unsigned number)
{
    static const char *const nodes[] = { "n1", "n2", "n[1-2]", "n[3-4]", "n[1-4]" };
    static const char *const flags[] = { NULL, "DAILY", "HOURLY", "NO_HOLD_JOBS", "MAGNETIC" };
    static const char *const tres[] = { "cpu=3", "cpu=10", "gres/gpu=2", "cpu=2,gres/gpu=1" };
    char name[8];
    struct wanted w = { .name = name, .flags = { flags[dice(5)] } };

    snprintf(name, sizeof(name), "r%u", number % 6);
    w.start_s = dice(4) * 600;
    w.length_s = 600 + dice(4) * 700;
    if (dice(3) == 0)
        w.user = "u2";
    if (dice(4) == 0) {
        w.remove = true;
        w.flags[0] = NULL;
    } else if (dice(4) == 0) {
        w.update = true;
        w.flags[0] = NULL;
        w.user = NULL;
    } else if (dice(2)) {
        w.nodes = nodes[dice(5)];
    } else {
        w.tres = tres[dice(4)];
    }
    if (dice(3) == 0 && !w.remove)
        w.licenses = "a:2";
    put(rig, w);
    judge_promises(rig);
}

static void random_job(struct rig *rig)
{
    static const char *const shapes[] = { "c=1", "c=3",        "c=8",        "N=2 n=4", "ex",
                                          "n=6", "gres=gpu:1", "gres=gpu:3", "lic=a:1", "lic=a:2" };
    char words[120], resv[16] = "";

    if (dice(3) == 0)
        snprintf(resv, sizeof(resv), "resv=r%u", dice(6));
    snprintf(words, sizeof(words), "%s t=%u uid=%u %s", shapes[dice(10)], 60 + dice(6) * 500,
             1 + dice(3), resv);
    rig_submit(rig, words);
}

static void nothing_takes_what_is_reserved(void **state)
{
    unsigned total = 0;

    (void)state;
    for (uint64_t first = 1; first <= 120; first++) {
        struct rig *rig = new_rig();
        seed = first;
        rig->on_start = judge;
        starts_seen = 0;
        for (unsigned step = 0; step < 120; step++) {
            uint32_t what = dice(10);
            if (what < 2)
                random_resv(rig, dice(6));
            else if (what < 7)
                random_job(rig);
            else
                rig_wait(rig, dice(400));
            for (const struct job *job = state_job_from(rig->state, 1); job;
                 job = state_job_from(rig->state, (uint64_t)job->id + 1)) {
                if (job->state == JOB_RUNNING && dice(8) == 0) {
                    rig_end(rig, job->id);
                    break;
                }
            }
            rig_plan(rig);
        }
        assert_int_equal(rig->refused, 0); /* core never had to say no */
        total += starts_seen;
        rig_free(rig);
    }
    assert_true(total > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(repeats_come_again),
        cmocka_unit_test(a_daily_one_keeps_its_hours),
        cmocka_unit_test(one_time_is_skipped),
        cmocka_unit_test(repeats_meet),
        cmocka_unit_test(force_start_begins_in_the_past),
        cmocka_unit_test(an_idle_one_is_purged),
        cmocka_unit_test(a_floating_one_stays_ahead),
        cmocka_unit_test(cores_are_kept_and_bound),
        cmocka_unit_test(a_promise_outside_is_no_hindrance),
        cmocka_unit_test(cores_are_shared_out),
        cmocka_unit_test(devices_are_kept),
        cmocka_unit_test(a_part_later_keeps_long_jobs_off),
        cmocka_unit_test(licences_are_kept),
        cmocka_unit_test(only_jobs_of_some_partitions),
        cmocka_unit_test(nodes_are_replaced),
        cmocka_unit_test(overlapping_and_ignoring),
        cmocka_unit_test(a_flexible_one_does_not_bind_its_jobs),
        cmocka_unit_test(who_waits_when_it_ends),
        cmocka_unit_test(those_of_a_partition),
        cmocka_unit_test(a_magnetic_one_draws_who_may_use_it),
        cmocka_unit_test(nothing_takes_what_is_reserved),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
