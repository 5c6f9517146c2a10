/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_config.c - configurations, partitions and reservations that change under jobs
 */
#include "core/test/fixture.h"
#include "core/view/view.h"

static enum err_code partition(struct fix *fix, PartitionSpec *spec, bool create, bool remove_it)
{
    Command cmd = COMMAND__INIT;
    CmdPartition msg = CMD_PARTITION__INIT;

    msg.change = spec;
    SET(&msg, create, create);
    SET(&msg, remove, remove_it);
    cmd.what_case = COMMAND__WHAT_PARTITION;
    cmd.partition = &msg;
    return fix_apply(fix, &cmd);
}

static void reconfigure_keeps_drain_and_resets_partitions(void **unused)
{
    struct fix *fix = fix_new(3);
    Config *config = fix_config(3);
    PartitionSpec spec = PARTITION_SPEC__INIT;

    fix_node_state(fix, "n1", "DRAIN", "mine");
    fix_node_down(fix, "n2", true);
    spec.name = (char *)"small";
    SET(&spec, state, PARTITION_DOWN);
    assert_int_equal(partition(fix, &spec, false, false), ERR_OK);
    /* The same file, read again by a new leader: nothing is lost. */
    fix_reconfigure(fix, config, false);
    assert_int_equal(partition_state(state_partition(fix->state, "small")), PARTITION_DOWN);
    /* Asked for: what scontrol changed goes, what was decided about nodes stays. */
    fix_reconfigure(fix, config, true);
    assert_int_equal(partition_state(state_partition(fix->state, "small")), PARTITION_UP);
    assert_true(state_node(fix->state, "n1")->flags & NODE_FLAG_DRAIN);
    assert_string_equal(state_node(fix->state, "n1")->reason, "mine");
    assert_int_equal(state_node(fix->state, "n2")->state, NODE_DOWN);
    partition(fix, &spec, false, false);
    config->reconfig_flags = mem_strdup("KeepPartState");
    fix_reconfigure(fix, config, true);
    assert_int_equal(partition_state(state_partition(fix->state, "small")), PARTITION_DOWN);
    config__free_unpacked(config, NULL);
    fix_free(fix);
}

static void nodes_come_and_go(void **unused)
{
    struct fix *fix = fix_new(4);
    uint32_t id = fix_job(fix);

    fix_start(fix, id, "n4", 2);
    Config *fewer = fix_config(2);
    assert_int_equal(fix_reconfigure(fix, fewer, true), ERR_OK);
    assert_null(state_node(fix->state, "n3"));
    const struct node *kept = state_node(fix->state, "n4"); /* its job still runs */
    assert_non_null(kept);
    assert_true(kept->removed);
    assert_false(node_is_usable(kept));
    assert_int_equal(state_partition(fix->state, "main")->total_nodes, 2);
    state_free(fix_copy(fix));
    assert_int_equal(fix_finish(fix, id, 0), ERR_OK);
    fix_reconfigure(fix, fewer, true);
    assert_null(state_node(fix->state, "n4"));
    config__free_unpacked(fewer, NULL);
    Config *more = fix_config(5);
    fix_reconfigure(fix, more, false);
    assert_int_equal(state_node_count(fix->state), 5);
    assert_int_equal(state_node(fix->state, "n5")->state, NODE_UNKNOWN);
    assert_int_equal(state_node(fix->state, "n1")->state, NODE_IDLE);
    config__free_unpacked(more, NULL);
    fix_free(fix);
}

static void a_node_may_shrink_under_its_jobs(void **unused)
{
    struct fix *fix = fix_new(1);
    uint32_t a = fix_job(fix), b = fix_job(fix);
    Config *config = fix_config(1);

    fix_start(fix, a, "n1", 4);
    config->nodes[0]->cpus = 2;
    assert_int_equal(fix_reconfigure(fix, config, true), ERR_OK);
    assert_int_equal(state_node(fix->state, "n1")->cpus, 2);
    assert_int_equal(state_node(fix->state, "n1")->cpus_used, 2);
    state_free(fix_copy(fix));
    fix_finish(fix, a, 0);
    assert_int_equal(state_node(fix->state, "n1")->cpus_used, 0);
    assert_int_equal(fix_start(fix, b, "n1", 3), ERR_NODES_BUSY);
    assert_int_equal(fix_start(fix, b, "n1", 2), ERR_OK);
    config__free_unpacked(config, NULL);
    fix_free(fix);
}

static void bad_configurations_are_refused_whole(void **unused)
{
    struct fix *fix = fix_new(2);
    uint64_t epoch = state_head(fix->state).epoch;
    struct err err;

    Config *config = fix_config(2);
    free(config->nodes[1]->name);
    config->nodes[1]->name = mem_strdup("n1");
    assert_int_equal(core_admit_config(config, &err), -(int)ERR_CONFIG);
    assert_int_equal(fix_reconfigure(fix, config, true), ERR_CONFIG);
    config__free_unpacked(config, NULL);
    config = fix_config(2);
    free(config->partitions[0]->nodes);
    config->partitions[0]->nodes = mem_strdup("n[1-7]");
    assert_int_equal(fix_reconfigure(fix, config, true), ERR_INVALID_NODE_NAME);
    config__free_unpacked(config, NULL);
    config = fix_config(2);
    free(config->partitions[1]->name);
    config->partitions[1]->name = mem_strdup("main");
    assert_int_equal(fix_reconfigure(fix, config, true), ERR_CONFIG);
    config__free_unpacked(config, NULL);
    assert_int_equal(state_node_count(fix->state), 2);
    assert_int_equal(state_head(fix->state).epoch, epoch);
    fix_free(fix);
}

static void partition_states_say_what_may_start(void **unused)
{
    static const struct {
        PartitionState state;
        bool submit, start;
        unsigned reason;
    } rows[] = {
        { PARTITION_UP, true, true, REASON_NONE },
        { PARTITION_DOWN, true, false, REASON_PART_DOWN },
        { PARTITION_DRAIN, false, true, REASON_NONE },
        { PARTITION_INACTIVE, false, false, REASON_PART_INACTIVE },
    };
    struct fix *fix = fix_new(1);
    PartitionSpec spec = PARTITION_SPEC__INIT;

    spec.name = (char *)"main";
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        SET(&spec, state, PARTITION_UP);
        partition(fix, &spec, false, false);
        uint32_t id = fix_job(fix);
        SET(&spec, state, rows[i].state);
        assert_int_equal(partition(fix, &spec, false, false), ERR_OK);
        assert_int_equal(fix_events(fix, EVENT_PARTITION, NULL), 1);
        assert_int_equal(fix_reason(fix, id), rows[i].reason);
        assert_int_equal(fix_job(fix) != 0, rows[i].submit);
        assert_int_equal(fix_start(fix, id, "n1", 1),
                         rows[i].start ? ERR_OK : ERR_PARTITION_NOT_AVAIL);
        fix_cancel(fix, id, NULL);
        if (rows[i].start)
            fix_release(fix, id, "n1");
    }
    fix_free(fix);
}

static void partitions_are_made_changed_and_removed(void **unused)
{
    struct fix *fix = fix_new(2);
    PartitionSpec spec = PARTITION_SPEC__INIT;

    spec.name = (char *)"new";
    assert_int_equal(partition(fix, &spec, false, false), ERR_INVALID_PARTITION);
    spec.nodes = (char *)"n9";
    assert_int_equal(partition(fix, &spec, true, false), ERR_INVALID_NODE_NAME);
    spec.nodes = (char *)"n2";
    SET(&spec, is_default, true);
    assert_int_equal(partition(fix, &spec, true, false), ERR_OK);
    assert_int_equal(partition(fix, &spec, true, false), ERR_EXISTS);
    assert_string_equal(state_default_partition(fix->state)->spec->name, "new");
    assert_false(state_partition(fix->state, "main")->spec->is_default);
    uint32_t id = fix_job(fix); /* goes to the default, and stays there */
    PartitionSpec old = PARTITION_SPEC__INIT;
    old.name = (char *)"main";
    SET(&old, is_default, true);
    partition(fix, &old, false, false);
    assert_string_equal(fix_get(fix, id)->shape->partitions[0], "new");
    assert_int_equal(partition(fix, &spec, false, true), ERR_PARTITION_IN_USE);
    fix_cancel(fix, id, NULL);
    assert_int_equal(partition(fix, &spec, false, true), ERR_OK);
    assert_null(state_partition(fix->state, "new"));
    fix_free(fix);
}

static void cpus_are_shared_where_the_partition_says_so(void **unused)
{
    struct fix *fix = fix_new(1);
    PartitionSpec spec = PARTITION_SPEC__INIT;
    uint32_t ids[5];

    spec.name = (char *)"main";
    spec.oversubscribe = (char *)"FORCE:2";
    partition(fix, &spec, false, false);
    for (size_t i = 0; i < 5; i++)
        ids[i] = fix_job(fix);
    assert_int_equal(fix_start(fix, ids[0], "n1", 4), ERR_OK);
    assert_int_equal(fix_start(fix, ids[1], "n1", 4), ERR_OK);
    assert_int_equal(fix_start(fix, ids[2], "n1", 1), ERR_NODES_BUSY);
    assert_int_equal(state_node(fix->state, "n1")->cpus_used, 4);
    state_free(fix_copy(fix));
    fix_finish(fix, ids[0], 0);
    assert_int_equal(state_node(fix->state, "n1")->cpus_used, 4);
    assert_int_equal(fix_start(fix, ids[2], "n1", 2), ERR_OK);
    spec.oversubscribe = (char *)"EXCLUSIVE";
    partition(fix, &spec, false, false);
    assert_int_equal(fix_start(fix, ids[3], "n1", 1), ERR_NODES_BUSY);
    fix_free(fix);
}

static enum err_code reserve(struct fix *fix, ReservationSpec *spec, bool create, bool remove_it)
{
    Command cmd = COMMAND__INIT;
    CmdReservation msg = CMD_RESERVATION__INIT;

    msg.change = spec;
    SET(&msg, create, create);
    SET(&msg, remove, remove_it);
    cmd.what_case = COMMAND__WHAT_RESERVATION;
    cmd.reservation = &msg;
    return fix_apply(fix, &cmd);
}

static void reservations_begin_and_end(void **unused)
{
    struct fix *fix = fix_new(4);
    ReservationSpec spec = RESERVATION_SPEC__INIT;
    char *users[] = { (char *)"alice" };

    spec.name = (char *)"r";
    SET(&spec, start_us, fix->now - INT64_C(1000000000));
    assert_int_equal(reserve(fix, &spec, true, false), ERR_INVALID_TIME);
    SET(&spec, start_us, fix->now + INT64_C(100000000));
    SET(&spec, duration_s, 100);
    assert_int_equal(reserve(fix, &spec, true, false), ERR_RESERVATION_EMPTY);
    SET(&spec, node_count, 2);
    spec.n_users = 1;
    spec.users = users;
    assert_int_equal(reserve(fix, &spec, true, false), ERR_OK);
    assert_int_equal(reserve(fix, &spec, true, false), ERR_RESERVATION_DUP);
    const struct reservation *r = state_reservation(fix->state, "r");
    assert_string_equal(r->spec->nodes, "n[1-2]");
    assert_false(r->active);
    assert_int_equal(core_next_due(fix->state), spec.start_us);

    ReservationSpec other = RESERVATION_SPEC__INIT;
    other.name = (char *)"other";
    SET(&other, start_us, spec.start_us);
    SET(&other, duration_s, 10);
    other.nodes = (char *)"n[2-3]";
    assert_int_equal(reserve(fix, &other, true, false), ERR_RESERVATION_OVERLAP);
    other.nodes = (char *)"n[3-4]";
    assert_int_equal(reserve(fix, &other, true, false), ERR_OK);

    JobSpec job = fix_spec();
    job.reservation = (char *)"nothing";
    assert_int_equal(fix_submit(fix, &job), 0);
    assert_int_equal(fix_answer(fix)->code, ERR_RESERVATION_INVALID);
    job.reservation = (char *)"r";
    assert_int_equal(fix_submit_as(fix, 1001, &job), 0);
    assert_int_equal(fix_answer(fix)->code, ERR_RESERVATION_ACCESS);
    uint32_t id = fix_submit(fix, &job);
    assert_int_not_equal(id, 0);
    fix_time(fix, 101);
    assert_true(state_reservation(fix->state, "r")->active);
    assert_int_equal(fix_events(fix, EVENT_RESERVATION, NULL), 1);
    state_free(fix_copy(fix));
    fix_start(fix, id, "n1", 1);
    assert_int_equal(reserve(fix, &spec, false, true), ERR_RESERVATION_BUSY);
    uint32_t waits = fix_submit(fix, &job);
    fix_time(fix, 101);
    assert_null(state_reservation(fix->state, "r"));
    assert_null(state_reservation(fix->state, "other"));
    assert_int_equal(fix_reason(fix, waits), REASON_RESV_DELETED);
    fix_free(fix);
}

static void a_leader_adds_one_to_the_epoch(void **unused)
{
    struct fix *fix = fix_new(1);
    Command cmd = COMMAND__INIT;
    CmdLead msg = CMD_LEAD__INIT;
    uint8_t id[16] = "another cluster!";

    uint64_t epoch = state_head(fix->state).epoch;
    msg.leader = (char *)"c2";
    SET(&msg, cluster_id, ((ProtobufCBinaryData){ 16, id }));
    cmd.what_case = COMMAND__WHAT_LEAD;
    cmd.lead = &msg;
    fix_apply(fix, &cmd);
    assert_int_equal(state_head(fix->state).epoch, epoch + 1);
    assert_string_equal(state_head(fix->state).leader, "c2");
    assert_memory_equal(state_head(fix->state).cluster_id, "cluster id 12345", 16); /* the first */
    fix_free(fix);
}

UNIT_MAIN(UNIT(reconfigure_keeps_drain_and_resets_partitions), UNIT(nodes_come_and_go),
          UNIT(a_node_may_shrink_under_its_jobs), UNIT(bad_configurations_are_refused_whole),
          UNIT(partition_states_say_what_may_start), UNIT(partitions_are_made_changed_and_removed),
          UNIT(cpus_are_shared_where_the_partition_says_so), UNIT(reservations_begin_and_end),
          UNIT(a_leader_adds_one_to_the_epoch))
