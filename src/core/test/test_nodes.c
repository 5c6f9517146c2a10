/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_nodes.c - nodes that come, go, shrink and are drained, and their jobs
 */
#include "core/test/fixture.h"
#include "core/view/view.h"

static const struct node *get(const struct fix *fix, const char *name)
{
    const struct node *node = state_node(fix->state, name);

    assert_non_null(node);
    return node;
}

static void words_of_scontrol(void **unused)
{
    static const struct {
        const char *word;
        enum err_code code;
        NodeState state;
        uint32_t flags;
        bool usable;
    } rows[] = {
        /* each on the node as the row before left it */
        { "DRAIN", ERR_OK, NODE_IDLE, NODE_FLAG_DRAIN, false },
        { "RESUME", ERR_OK, NODE_IDLE, 0, true },
        { "drain", ERR_OK, NODE_IDLE, NODE_FLAG_DRAIN, false },
        { "UNDRAIN", ERR_OK, NODE_IDLE, 0, true },
        { "DOWN", ERR_OK, NODE_DOWN, 0, false },
        { "DRAIN", ERR_OK, NODE_DOWN, NODE_FLAG_DRAIN, false },
        { "RESUME", ERR_OK, NODE_IDLE, 0, true },
        { "FAIL", ERR_OK, NODE_IDLE, NODE_FLAG_FAIL, false },
        { "IDLE", ERR_OK, NODE_IDLE, 0, true },
        { "NORESP", ERR_OK, NODE_IDLE, NODE_FLAG_NO_RESPOND, false },
        { "FUTURE", ERR_OK, NODE_FUTURE, NODE_FLAG_NO_RESPOND, false },
        { "RESUME", ERR_NODE_TRANSITION, NODE_FUTURE, NODE_FLAG_NO_RESPOND, false },
        { "POWER_DOWN", ERR_NODE_STATE, NODE_FUTURE, NODE_FLAG_NO_RESPOND, false },
        { "ASLEEP", ERR_NODE_STATE, NODE_FUTURE, NODE_FLAG_NO_RESPOND, false },
    };
    struct fix *fix = fix_new(1);

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        enum err_code code = fix_node_state(fix, "n1", rows[i].word, "because");
        const struct node *node = get(fix, "n1");
        if (code != rows[i].code || node->state != rows[i].state || node->flags != rows[i].flags ||
            node_is_usable(node) != rows[i].usable)
            fail_msg("row %zu (%s): code %d state %d flags %x", i, rows[i].word, (int)code,
                     node->state, node->flags);
    }
    assert_int_equal(fix_node_state(fix, "n7", "DRAIN", "x"), ERR_INVALID_NODE_NAME);
    fix_free(fix);
}

static void reasons_say_who_and_when(void **unused)
{
    struct fix *fix = fix_new(1);
    const struct node *node = get(fix, "n1");

    fix_node_state(fix, "n1", "DRAIN", "disk is slow");
    assert_string_equal(node->reason, "disk is slow");
    assert_string_equal(node->reason_user, "root");
    assert_int_equal(node->reason_us, fix->now);
    fix_node_state(fix, "n1", "RESUME", NULL);
    assert_null(node->reason);
    fix_free(fix);
}

static void drained_nodes_take_no_new_jobs(void **unused)
{
    struct fix *fix = fix_new(1);
    uint32_t a = fix_job(fix), b = fix_job(fix);
    uint32_t flags;

    fix_start(fix, a, "n1", 1);
    assert_int_equal(node_shown_state(get(fix, "n1"), &flags), NODE_MIXED);
    fix_node_state(fix, "n1", "DRAIN", "test");
    assert_int_equal(fix_events(fix, EVENT_NODE_DOWN, NULL), 1);
    assert_phase(fix, a, PHASE_RUNNING);
    assert_int_equal(fix_start(fix, b, "n1", 1), ERR_NODE_NOT_AVAIL);
    fix_finish_held(fix, a, 0);
    assert_int_equal(node_shown_state(get(fix, "n1"), &flags), NODE_MIXED);
    assert_true(flags & NODE_FLAG_COMPLETING);
    fix_release(fix, a, "n1");
    assert_int_equal(node_shown_state(get(fix, "n1"), &flags), NODE_IDLE);
    fix_node_state(fix, "n1", "RESUME", NULL);
    assert_int_equal(fix_events(fix, EVENT_NODE_UP, NULL), 1);
    assert_int_equal(fix_start(fix, b, "n1", 4), ERR_OK);
    assert_int_equal(node_shown_state(get(fix, "n1"), &flags), NODE_ALLOCATED);
    fix_free(fix);
}

static uint32_t running(struct fix *fix, bool requeue, bool no_kill, bool batch, bool two)
{
    JobSpec spec = fix_spec();

    SET(&spec, requeue, requeue);
    SET(&spec, no_kill, no_kill);
    SET(&spec, batch, batch);
    uint32_t id = fix_submit(fix, &spec);
    assert_int_equal(two ? fix_start_two(fix, id, "n1", "n2") : fix_start(fix, id, "n2", 1),
                     ERR_OK);
    return id;
}

static void jobs_of_a_lost_node_end_or_run_elsewhere(void **unused)
{
    struct fix *fix = fix_new(3);
    uint32_t again = running(fix, true, false, true, false);
    uint32_t once = running(fix, false, false, true, false);
    uint32_t wide = running(fix, false, false, true, true);
    assert_int_equal(fix_ready(fix, wide), ERR_OK);

    /* Silence alone ends nothing. */
    fix_node_down(fix, "n2", false);
    assert_int_equal(get(fix, "n2")->state, NODE_DOWN);
    assert_phase(fix, again, PHASE_RUNNING);
    fix_node_down(fix, "n2", true);
    assert_phase(fix, again, PHASE_PENDING);
    assert_int_equal(fix_get(fix, again)->restarts, 1);
    assert_state(fix, once, JOB_NODE_FAIL);
    assert_phase(fix, once, PHASE_ENDED);
    assert_int_equal(fix_reason(fix, once), REASON_FAIL_DOWN_NODE);
    assert_string_equal(fix_get(fix, once)->more->failed_node, "n2");
    assert_state(fix, wide, JOB_NODE_FAIL);
    assert_phase(fix, wide, PHASE_COMPLETING); /* n1 is to be told */
    assert_int_equal(fix_events(fix, EVENT_JOB_ENDING, NULL), 1);
    assert_int_equal(get(fix, "n2")->jobs.len, 0);
    fix_free(fix);
}

/* Nothing is heard of n1 any more: its lease is over, or it is given up. */
static void silent(struct fix *fix, bool jobs_lost)
{
    Command cmd = COMMAND__INIT;
    CmdNodeDown msg = CMD_NODE_DOWN__INIT;

    msg.node = (char *)(uintptr_t) "n1";
    SET(&msg, jobs_lost, jobs_lost);
    SET(&msg, lease_over, true);
    SET(&msg, leases, true);
    SET(&msg, no_respond, true);
    cmd.what_case = COMMAND__WHAT_NODE_DOWN;
    cmd.node_down = &msg;
    assert_int_equal(fix_apply(fix, &cmd), ERR_OK);
}

static void rebooted(struct fix *fix)
{
    Command cmd = COMMAND__INIT;
    CmdNodeDown msg = CMD_NODE_DOWN__INIT;

    msg.node = (char *)(uintptr_t) "n1";
    SET(&msg, jobs_lost, true);
    cmd.what_case = COMMAND__WHAT_NODE_DOWN;
    cmd.node_down = &msg;
    assert_int_equal(fix_apply(fix, &cmd), ERR_OK);
}

static uint32_t runs_on_n1(struct fix *fix, bool requeue)
{
    JobSpec spec = fix_spec();
    uint32_t id;

    SET(&spec, requeue, requeue);
    id = fix_submit(fix, &spec);
    assert_int_equal(fix_start(fix, id, "n1", 1), ERR_OK);
    return id;
}

static void set_requeue(struct fix *fix, uint32_t id, bool to)
{
    JobSpec change = JOB_SPEC__INIT;

    SET(&change, requeue, to);
    assert_int_equal(fix_update(fix, id, &change, true), ERR_OK);
}

static bool bound(const struct fix *fix, uint32_t id)
{
    return job_is_bound(fix->state, fix_get(fix, id));
}

/* A node holds still what it was told may be requeued. What became so later may be alive there. */
static void what_no_lease_binds_runs_nowhere_else(void **unused)
{
    struct fix *fix = fix_new(2);
    uint32_t told = runs_on_n1(fix, true), later = runs_on_n1(fix, false);

    assert_true(bound(fix, told));
    assert_false(bound(fix, later));
    set_requeue(fix, later, true);
    assert_false(bound(fix, later));
    silent(fix, false);
    assert_phase(fix, told, PHASE_PENDING);
    assert_phase(fix, later, PHASE_RUNNING);
    silent(fix, true);
    assert_state(fix, later, JOB_NODE_FAIL);
    fix_free(fix);

    /* It waits for the node to say that nothing is left; the next attempt is told. */
    fix = fix_new(2);
    later = runs_on_n1(fix, false);
    set_requeue(fix, later, true);
    assert_int_equal(fix_requeue(fix, later, false), ERR_OK);
    silent(fix, true);
    assert_phase(fix, later, PHASE_REQUEUING);
    assert_int_equal(fix_release(fix, later, "n1"), ERR_OK);
    assert_phase(fix, later, PHASE_PENDING);
    assert_int_equal(fix_start(fix, later, "n2", 1), ERR_OK);
    assert_true(bound(fix, later));
    fix_free(fix);

    /* After a reboot nothing runs there, whatever it was told. */
    fix = fix_new(2);
    later = runs_on_n1(fix, false);
    set_requeue(fix, later, true);
    rebooted(fix);
    assert_phase(fix, later, PHASE_PENDING);
    fix_free(fix);

    /* The site changes its mind: so did what runs, and its nodes do not know. */
    fix = fix_new(2);
    Config *config = fix_config(2);
    SET(config, job_requeue, false);
    assert_int_equal(fix_reconfigure(fix, config, true), ERR_OK);
    uint32_t silent_about_it = fix_job(fix);
    assert_int_equal(fix_start(fix, silent_about_it, "n1", 1), ERR_OK);
    told = runs_on_n1(fix, true);
    SET(config, job_requeue, true);
    assert_int_equal(fix_reconfigure(fix, config, true), ERR_OK);
    assert_false(bound(fix, silent_about_it));
    assert_true(bound(fix, told));
    config__free_unpacked(config, NULL);
    fix_free(fix);

    /* Back and forth: which of it the node was told is not known any more. */
    fix = fix_new(2);
    told = runs_on_n1(fix, true);
    set_requeue(fix, told, true);
    assert_true(bound(fix, told));
    set_requeue(fix, told, false);
    set_requeue(fix, told, true);
    assert_false(bound(fix, told));
    fix_free(fix);
}

static void no_kill_keeps_what_is_left(void **unused)
{
    struct fix *fix = fix_new(3);
    uint32_t keeps = running(fix, false, true, true, true);

    fix_ready(fix, keeps);
    fix_node_down(fix, "n2", true);
    assert_phase(fix, keeps, PHASE_RUNNING);
    assert_int_equal(fix_events(fix, EVENT_JOB_CHANGED, NULL), 1);
    assert_int_equal(fix_get(fix, keeps)->run->held, 1);
    assert_true(fix_get(fix, keeps)->run->parts[1].left);
    assert_int_equal(run_nodes(fix_get(fix, keeps)->run), 1);
    fix_node_down(fix, "n1", true); /* its script was there */
    assert_state(fix, keeps, JOB_NODE_FAIL);
    assert_phase(fix, keeps, PHASE_ENDED);

    /* An allocation without a script goes on without its first node too, until none is left. */
    fix_free(fix);
    fix = fix_new(3);
    uint32_t plain = running(fix, false, true, false, true);
    fix_ready(fix, plain);
    fix_node_state(fix, "n1", "DOWN", "smoke");
    assert_phase(fix, plain, PHASE_RUNNING);
    assert_int_equal(run_manager(fix_get(fix, plain)->run), 1);
    assert_int_equal(fix_get(fix, plain)->run->held, 2); /* n1 is to say released */
    assert_int_equal(fix_release(fix, plain, "n1"), ERR_OK);
    assert_int_equal(get(fix, "n1")->cpus_used, 0);
    fix_node_down(fix, "n2", true);
    assert_phase(fix, plain, PHASE_ENDED);
    fix_free(fix);
}

static void a_running_job_gives_up_nodes(void **unused)
{
    struct fix *fix = fix_new(3);
    uint32_t id = running(fix, false, false, true, true);
    JobSpec change = JOB_SPEC__INIT;

    SET(&change, min_nodes, 1);
    assert_int_equal(fix_update(fix, id, &change, false), ERR_TRANSITION); /* it starts */
    fix_ready(fix, id);
    change.min_nodes = 3;
    assert_int_equal(fix_update(fix, id, &change, true), ERR_UNSUPPORTED);
    change.min_nodes = 0;
    assert_int_equal(fix_update(fix, id, &change, false), ERR_NODE_COUNT);
    change = (JobSpec)JOB_SPEC__INIT;
    change.nodelist = (char *)"n2"; /* the script is on n1 */
    assert_int_equal(fix_update(fix, id, &change, false), ERR_NODE_NOT_AVAIL);
    change.nodelist = (char *)"n[1,3]";
    assert_int_equal(fix_update(fix, id, &change, false), ERR_INVALID_NODE_NAME);
    assert_int_equal(fix_release(fix, id, "n2"), ERR_TRANSITION); /* it is not asked to */
    assert_int_equal(run_nodes(fix_get(fix, id)->run), 2);

    change.nodelist = (char *)"n1";
    assert_int_equal(fix_update(fix, id, &change, false), ERR_OK);
    assert_int_equal(run_nodes(fix_get(fix, id)->run), 1);
    assert_phase(fix, id, PHASE_RUNNING);
    assert_true(get(fix, "n2")->cpus_used > 0); /* until it says so */
    struct state *copy = fix_copy(fix);
    assert_true(state_job(copy, id)->run->parts[1].left);
    state_free(copy);
    assert_int_equal(fix_release(fix, id, "n2"), ERR_OK);
    assert_int_equal(fix_events(fix, EVENT_JOB_RELEASED, NULL), 1);
    assert_int_equal(get(fix, "n2")->cpus_used, 0);
    assert_phase(fix, id, PHASE_RUNNING);
    assert_int_equal(fix_finish(fix, id, 0), ERR_OK);
    assert_phase(fix, id, PHASE_ENDED);
    fix_free(fix);
}

static void down_by_hand_ends_jobs_and_tells_the_node(void **unused)
{
    struct fix *fix = fix_new(2);
    uint32_t id = running(fix, true, false, true, false);

    fix_node_state(fix, "n2", "DOWN", "smoke");
    assert_phase(fix, id, PHASE_REQUEUING);
    assert_int_equal(fix_events(fix, EVENT_JOB_ENDING, NULL), 1);
    fix_release(fix, id, "n2");
    assert_phase(fix, id, PHASE_PENDING);
    fix_free(fix);
}

static void who_comes_back_by_itself(void **unused)
{
    static const struct {
        uint32_t return_to_service;
        bool by_hand, back;
    } rows[] = {
        { 0, false, false }, { 0, true, false }, { 1, false, true },
        { 1, true, false },  { 2, false, true }, { 2, true, true },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fix *fix = fix_new(1);
        Config *config = fix_config(1);
        SET(config, return_to_service, rows[i].return_to_service);
        fix_reconfigure(fix, config, false);
        config__free_unpacked(config, NULL);
        if (rows[i].by_hand)
            fix_node_state(fix, "n1", "DOWN", "test");
        else
            fix_node_down(fix, "n1", true);
        fix_node_up(fix, "n1", "boot-1");
        assert_int_equal(get(fix, "n1")->state, rows[i].back ? NODE_IDLE : NODE_DOWN);
        assert_int_equal(get(fix, "n1")->flags, 0);
        fix_free(fix);
    }
}

static void a_reboot_is_seen_by_its_boot_id(void **unused)
{
    struct fix *fix = fix_new(2);
    uint32_t id = running(fix, true, false, true, false);

    fix_node_up(fix, "n2", "boot-1"); /* only the agent was new */
    assert_phase(fix, id, PHASE_RUNNING);
    fix_node_up(fix, "n2", "boot-2");
    assert_phase(fix, id, PHASE_PENDING);
    assert_int_equal(get(fix, "n2")->state, NODE_DOWN);
    assert_string_equal(get(fix, "n2")->reason, "Node unexpectedly rebooted");
    fix_node_up(fix, "n1", "boot-2"); /* nothing ran there */
    assert_int_equal(get(fix, "n1")->state, NODE_IDLE);
    fix_free(fix);
}

static enum err_code up_with(struct fix *fix, uint32_t cpus, uint64_t mem, uint64_t gpus,
                             const char *drain)
{
    Command cmd = COMMAND__INIT;
    CmdNodeUp msg = CMD_NODE_UP__INIT;
    NodeInventory found = NODE_INVENTORY__INIT;
    GresInventory gpu = GRES_INVENTORY__INIT, *list[1] = { &gpu };

    gpu.name = (char *)"gpu";
    gpu.type = (char *)"mi300x";
    SET(&gpu, count, gpus);
    found.n_gres = 1;
    found.gres = list;
    SET(&found, cpus, cpus);
    SET(&found, memory_mb, mem);
    msg.node = (char *)"n2";
    msg.found = &found;
    msg.drain_reason = (char *)(uintptr_t)drain;
    cmd.what_case = COMMAND__WHAT_NODE_UP;
    cmd.node_up = &msg;
    return fix_apply(fix, &cmd);
}

static void less_than_configured_is_drained(void **unused)
{
    static const struct {
        uint32_t cpus;
        uint64_t mem, gpus;
        const char *reason;
    } rows[] = {
        { 2, 4000, 2, "Low CPUs (reported:2 < configured:4)" },
        { 4, 3000, 2, "Low RealMemory (reported:3000 < 100.00% of configured:4000)" },
        { 4, 4000, 1, "gres/gpu count reported lower than configured (1 < 2)" },
        { 8, 9000, 4, NULL },
    };
    struct fix *fix = fix_new(2);

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(up_with(fix, rows[i].cpus, rows[i].mem, rows[i].gpus, NULL), ERR_OK);
        const struct node *node = get(fix, "n2");
        if (rows[i].reason) {
            assert_string_equal(node->reason, rows[i].reason);
            assert_true(node->flags & NODE_FLAG_DRAIN);
        } else {
            assert_true(node_is_usable(node));
            assert_null(node->reason);
        }
        up_with(fix, 4, 4000, 2, NULL); /* repaired */
        assert_true(node_is_usable(get(fix, "n2")));
    }
    up_with(fix, 4, 4000, 2, "found by the leader");
    assert_string_equal(get(fix, "n2")->reason, "found by the leader");
    Config *config = fix_config(2);
    SET(config, config_overrides, true);
    fix_reconfigure(fix, config, false);
    config__free_unpacked(config, NULL);
    up_with(fix, 1, 1, 0, NULL);
    assert_true(node_is_usable(get(fix, "n2")));
    /* A person's drain is not undone by good hardware. */
    fix_node_state(fix, "n2", "DRAIN", "mine");
    up_with(fix, 4, 4000, 2, NULL);
    assert_string_equal(get(fix, "n2")->reason, "mine");
    fix_free(fix);
}

static void features_and_weights_can_be_changed(void **unused)
{
    struct fix *fix = fix_new(2);
    Command cmd = COMMAND__INIT;
    CmdUpdateNode msg = CMD_UPDATE_NODE__INIT;
    NodeSpec change = NODE_SPEC__INIT;
    char *name = (char *)"n1", *features[] = { (char *)"fast" };
    JobSpec spec = fix_spec();

    spec.features = (char *)"fast";
    assert_int_equal(fix_submit(fix, &spec), 0);
    assert_int_equal(fix_answer(fix)->code, ERR_FEATURE);
    change.n_features = 1;
    change.features = features;
    SET(&change, weight, 7);
    msg.n_nodes = 1;
    msg.nodes = &name;
    msg.change = &change;
    cmd.what_case = COMMAND__WHAT_UPDATE_NODE;
    cmd.update_node = &msg;
    assert_int_equal(fix_apply(fix, &cmd), ERR_OK);
    assert_true(node_has_feature(get(fix, "n1"), "fast"));
    assert_false(node_has_feature(get(fix, "n1"), "odd"));
    assert_int_equal(get(fix, "n1")->weight, 7);
    assert_int_not_equal(fix_submit(fix, &spec), 0);
    SET(&change, cpus, 99);
    assert_int_equal(fix_apply(fix, &cmd), ERR_UNSUPPORTED);
    fix_free(fix);
}

static enum err_code give_features(struct fix *fix, const char *node, char **features, size_t count)
{
    Command cmd = COMMAND__INIT;
    CmdUpdateNode msg = CMD_UPDATE_NODE__INIT;
    NodeSpec change = NODE_SPEC__INIT;
    char *name = (char *)(uintptr_t)node;

    change.n_features = count;
    change.features = features;
    msg.n_nodes = 1;
    msg.nodes = &name;
    msg.change = &change;
    cmd.what_case = COMMAND__WHAT_UPDATE_NODE;
    cmd.update_node = &msg;
    return fix_apply(fix, &cmd);
}

/* What was found of a shape is found anew when a node has other features. */
static void nodes_that_are_to_agree_follow_their_features(void **unused)
{
    struct fix *fix = fix_new(2);
    char *both[] = { (char *)"fast", (char *)"slow" };
    JobSpec spec = fix_spec();

    assert_int_equal(give_features(fix, "n1", both, 1), ERR_OK);
    assert_int_equal(give_features(fix, "n2", both + 1, 1), ERR_OK);
    assert_false(feature_same(get(fix, "n1"), get(fix, "n2")));
    spec.features = (char *)"[fast|slow]";
    SET(&spec, min_nodes, 2);
    assert_int_equal(fix_submit(fix, &spec), 0);
    assert_int_equal(give_features(fix, "n2", both, 2), ERR_OK);
    assert_false(feature_same(get(fix, "n1"), get(fix, "n2")));
    assert_int_not_equal(fix_submit(fix, &spec), 0);
    assert_int_equal(give_features(fix, "n1", both, 2), ERR_OK);
    assert_true(feature_same(get(fix, "n1"), get(fix, "n2")));
    fix_free(fix);
}

static unsigned nodes_for(struct fix *fix, JobSpec *spec)
{
    uint32_t id = fix_submit(fix, spec);

    assert_int_not_equal(id, 0);
    return shape_needs(fix->state, state_job(fix->state, id)->shape)[0].node_count;
}

static void who_names_all_its_nodes_can_use_no_other(void **unused)
{
    struct fix *fix = fix_new(4);
    JobSpec spec = fix_spec();

    spec.nodelist = (char *)"n[2-3]";
    SET(&spec, min_nodes, 2);
    SET(&spec, max_nodes, 2);
    assert_int_equal(nodes_for(fix, &spec), 2);
    spec.max_nodes = 3;
    assert_int_equal(nodes_for(fix, &spec), 4);
    fix_free(fix);
}

static void devices_are_given_one_by_one(void **unused)
{
    struct fix *fix = fix_new(2);
    JobSpec spec = fix_spec();
    GresRequest gpu = GRES_REQUEST__INIT, *gpus[1] = { &gpu };
    Command cmd = COMMAND__INIT;
    CmdStart msg = CMD_START__INIT;
    JobStart one = JOB_START__INIT, *starts[1] = { &one };
    Allocation allocation = ALLOCATION__INIT;
    NodeAlloc node = NODE_ALLOC__INIT, *nodes[1] = { &node };
    GresAlloc give = GRES_ALLOC__INIT, *gives[1] = { &give };

    gpu.name = (char *)"gpu";
    SET(&gpu, count, 1);
    spec.n_gres = 1;
    spec.gres = gpus;
    uint32_t ids[3];
    for (size_t i = 0; i < 3; i++)
        ids[i] = fix_submit(fix, &spec);
    give.name = (char *)"gpu";
    give.type = (char *)"mi300x";
    SET(&give, count, 1);
    node.node = (char *)"n2";
    SET(&node, cpus, 1);
    node.n_gres = 1;
    node.gres = gives;
    allocation.n_nodes = 1;
    allocation.nodes = nodes;
    allocation.partition = (char *)"main";
    one.allocation = &allocation;
    SET(&one, attempt, 1);
    msg.n_starts = 1;
    msg.starts = starts;
    cmd.what_case = COMMAND__WHAT_START;
    cmd.start = &msg;

    SET(&one, job_id, ids[0]);
    give.index = (char *)"1";
    assert_int_equal(fix_apply(fix, &cmd), ERR_OK);
    SET(&one, job_id, ids[1]);
    assert_int_equal(fix_apply(fix, &cmd), ERR_NODES_BUSY); /* that device is taken */
    give.index = NULL;
    assert_int_equal(fix_apply(fix, &cmd), ERR_OK); /* the other one */
    assert_true(bitset_has(&fix_get(fix, ids[1])->run->parts[0].gres[0].index, 0));
    SET(&one, job_id, ids[2]);
    assert_int_equal(fix_apply(fix, &cmd), ERR_NODES_BUSY);
    fix_finish(fix, ids[0], 0);
    assert_int_equal(fix_apply(fix, &cmd), ERR_OK);
    give.type = (char *)"h100";
    SET(&one, job_id, ids[2]);
    fix_finish(fix, ids[2], 0);
    fix_requeue(fix, ids[2], false);
    SET(&one, attempt, 2);
    assert_int_equal(fix_apply(fix, &cmd), ERR_NODES_BUSY);
    fix_free(fix);
}

static void keys_are_kept(void **unused)
{
    struct fix *fix = fix_new(1);
    Command cmd = COMMAND__INIT;
    CmdNodeKey msg = CMD_NODE_KEY__INIT;
    uint8_t key[3] = { 1, 2, 3 };

    assert_null(state_node_key(fix->state, "n1"));
    msg.node = (char *)"n1";
    SET(&msg, key, ((ProtobufCBinaryData){ 3, key }));
    cmd.what_case = COMMAND__WHAT_NODE_KEY;
    cmd.node_key = &msg;
    assert_int_equal(fix_apply(fix, &cmd), ERR_OK);
    assert_memory_equal(state_node_key(fix->state, "n1")->data, key, 3);
    state_free(fix_copy(fix));
    SET(&msg, remove, true);
    fix_apply(fix, &cmd);
    assert_null(state_node_key(fix->state, "n1"));
    fix_free(fix);
}

UNIT_MAIN(UNIT(words_of_scontrol), UNIT(reasons_say_who_and_when),
          UNIT(drained_nodes_take_no_new_jobs), UNIT(jobs_of_a_lost_node_end_or_run_elsewhere),
          UNIT(what_no_lease_binds_runs_nowhere_else), UNIT(no_kill_keeps_what_is_left),
          UNIT(a_running_job_gives_up_nodes), UNIT(down_by_hand_ends_jobs_and_tells_the_node),
          UNIT(who_comes_back_by_itself), UNIT(a_reboot_is_seen_by_its_boot_id),
          UNIT(less_than_configured_is_drained), UNIT(features_and_weights_can_be_changed),
          UNIT(nodes_that_are_to_agree_follow_their_features),
          UNIT(who_names_all_its_nodes_can_use_no_other), UNIT(devices_are_given_one_by_one),
          UNIT(keys_are_kept))
