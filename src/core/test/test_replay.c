/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_replay.c - random commands: every invariant holds, and every replica agrees
 *
 * Each seed makes a history of commands, most of them possible, some nonsense. After each command
 * all invariants are checked, and a second state that was given the same commands has the same
 * digest, due time and events. Now and then the second state is replaced by a snapshot that was
 * written and read back, which must go on as if nothing had happened. At the end the whole history
 * is replayed from nothing.
 */
#include "core/level.h"
#include "core/test/fixture.h"
#include "core/trigger.h"
#include "core/view/view.h"
#include "wire/pb.h"

enum { SEEDS = 24, STEPS = 700, NODES = 6 };

static uint64_t random_state;

static uint32_t any(uint32_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)((random_state >> 16) % below);
}

static bool chance(uint32_t percent)
{
    return any(100) < percent;
}

/* A job that is there, most of the time. */
static uint32_t any_job(const struct fix *fix)
{
    uint32_t next = state_head(fix->state).next_job_id;

    if (chance(3))
        return any(next + 3);
    const struct job *job = state_job_from(fix->state, any(next + 1));
    if (!job)
        job = state_job_from(fix->state, 0);
    return job ? job->id : 1;
}

static const struct job *any_in(const struct fix *fix, enum job_phase phase)
{
    uint32_t from = any(state_head(fix->state).next_job_id + 1);

    for (int round = 0; round < 2; round++, from = 0) {
        for (const struct job *job = state_job_from(fix->state, from); job;
             job = state_job_from(fix->state, (uint64_t)job->id + 1)) {
            if (job_phase(job) == phase)
                return job;
        }
    }
    return NULL;
}

static const char *any_node(void)
{
    static char name[8];

    snprintf(name, sizeof(name), "n%u", 1 + any(NODES + (chance(3) ? 2 : 0)));
    return name;
}

static char *any_word(const char *const *words, size_t count)
{
    return (char *)(uintptr_t)words[any((uint32_t)count)];
}

static void any_dependency(const struct fix *fix, char *text, size_t size)
{
    static const char *const types[] = { "after",     "afterany",  "afterok",         "afternotok",
                                         "aftercorr", "singleton", "afterburstbuffer" };
    size_t len = 0, count = 1 + any(3);
    char joiner = chance(30) ? '?' : ',';

    for (size_t i = 0; i < count && len < size - 40; i++) {
        const char *type = types[any(ARRAY_LEN(types))];
        if (i)
            text[len++] = joiner;
        if (strcmp(type, "singleton") == 0) {
            len += (size_t)snprintf(text + len, size - len, "singleton");
            continue;
        }
        len += (size_t)snprintf(text + len, size - len, "%s:%u", type, any_job(fix));
        const struct job *job = any_in(fix, PHASE_PENDING);
        if (job && job->array && chance(30))
            len += (size_t)snprintf(text + len, size - len, ":%u_%u", job->array->id, any(8));
        if (strcmp(type, "after") == 0 && chance(40))
            len += (size_t)snprintf(text + len, size - len, "+%u", 1 + any(5));
    }
    text[len] = '\0';
}

static void fill_spec(const struct fix *fix, JobSpec *spec, char *dependency, size_t size)
{
    static const char *const names[] = { "a", "b", "c", "train" };
    static const char *const arrays[] = { "0-5", "1-9:2%2", "3", "0-3%1", "7,1-4,2", "0-40%7" };
    static const char *const features[] = { "odd", "even", "even&ib", "odd|ib", "(odd|even)&ib" };
    static GresRequest gpu = GRES_REQUEST__INIT, *gpus[1] = { &gpu };

    *spec = fix_spec();
    spec->name = any_word(names, ARRAY_LEN(names));
    SET(spec, time_limit_s, 60 + any(3600));
    if (chance(20))
        SET(spec, mail_type, any(2048));
    if (fix->seed % 2) {
        static const char *const accounts[] = { NULL, NULL, "phys", "chem", "none" };
        static const char *const qos[] = { NULL, NULL, "high", "tiny", "normal" };
        spec->account = any_word(accounts, ARRAY_LEN(accounts));
        spec->qos = any_word(qos, ARRAY_LEN(qos));
    }
    if (chance(10))
        SET(spec, hold, true);
    if (chance(10))
        SET(spec, begin_us, fix->now + any(600) * INT64_C(1000000));
    if (chance(5))
        SET(spec, deadline_us, fix->now + (60 + any(7200)) * INT64_C(1000000));
    if (chance(25))
        spec->array = any_word(arrays, ARRAY_LEN(arrays));
    if (chance(30)) {
        any_dependency(fix, dependency, size);
        spec->dependency = dependency;
        if (chance(40))
            SET(spec, kill_on_invalid_dep, chance(60));
    }
    if (chance(10))
        SET(spec, requeue, chance(50));
    if (chance(5))
        SET(spec, reboot, true);
    if (chance(10))
        SET(spec, no_kill, true);
    if (chance(10))
        SET(spec, spare_nodes, 1 + any(2));
    if (chance(10))
        SET(spec, batch, false);
    if (chance(15))
        spec->features = any_word(features, ARRAY_LEN(features));
    if (chance(10))
        SET(spec, exclusive, any(3));
    if (chance(15))
        SET(spec, mem_per_node_mb, 100 + any(4500));
    if (chance(10))
        spec->licenses = (char *)"matlab";
    if (chance(10)) {
        gpu.name = (char *)"gpu";
        gpu.type = (char *)"mi300x";
        SET(&gpu, count, 1 + any(2));
        spec->n_gres = 1;
        spec->gres = gpus;
    }
    if (chance(10))
        spec->partition = (char *)"small,main";
    if (chance(5))
        spec->reservation = (char *)"r1";
    if (chance(5))
        SET(spec, min_nodes, 1 + any(8));
}

static void step_submit(struct fix *fix)
{
    char dependency[400];
    JobSpec spec;

    fill_spec(fix, &spec, dependency, sizeof(dependency));
    fix_submit_as(fix, 1000 + any(2), &spec);
}

static void step_submit_het(struct fix *fix)
{
    Command cmd = COMMAND__INIT;
    CmdSubmit submit = CMD_SUBMIT__INIT;
    JobOwner owner = JOB_OWNER__INIT;
    PackedComponent one = PACKED_COMPONENT__INIT, *list[3] = { &one, &one, &one };
    uint8_t digest[32] = { 7 };
    JobSpec spec = fix_spec();
    struct arena arena;

    arena_init(&arena);
    struct span bytes = pb_pack(&spec, &arena);
    SET(&one, spec, ((ProtobufCBinaryData){ bytes.len, (uint8_t *)(uintptr_t)bytes.ptr }));
    SET(&one, payload_digest, ((ProtobufCBinaryData){ sizeof(digest), digest }));
    SET(&owner, uid, 1000);
    submit.owner = &owner;
    submit.n_components = 2 + any(2);
    submit.components = list;
    cmd.what_case = COMMAND__WHAT_SUBMIT;
    cmd.submit = &submit;
    fix_apply(fix, &cmd);
    arena_done(&arena);
}

static void step_start_het(struct fix *fix)
{
    const struct job *job = any_in(fix, PHASE_PENDING);
    Command cmd = COMMAND__INIT;
    CmdStart msg = CMD_START__INIT;
    JobStart one[4], *starts[4];
    Allocation allocation[4];
    NodeAlloc node[4], *nodes[4];
    char names[4][8];

    for (int i = 0; i < 8 && job && !(job->more && job->more->het_count); i++)
        job = any_in(fix, PHASE_PENDING);
    if (!job || !job->more || !job->more->het_count)
        return;
    for (uint32_t i = 0; i < job->more->het_count; i++) {
        job_start__init(&one[i]);
        allocation__init(&allocation[i]);
        node_alloc__init(&node[i]);
        snprintf(names[i], sizeof(names[i]), "n%u", 1 + any(NODES));
        node[i].node = names[i];
        SET(&node[i], cpus, 1);
        nodes[i] = &node[i];
        allocation[i].n_nodes = 1;
        allocation[i].nodes = &nodes[i];
        allocation[i].partition = (char *)"main";
        SET(&one[i], job_id, job->more->het_job_id + i);
        SET(&one[i], attempt, job->attempt + 1);
        one[i].allocation = &allocation[i];
        starts[i] = &one[i];
    }
    msg.n_starts = job->more->het_count - (chance(10) ? 1 : 0);
    msg.starts = starts;
    cmd.what_case = COMMAND__WHAT_START;
    cmd.start = &msg;
    fix_apply(fix, &cmd);
}

static const struct node *free_node(const struct fix *fix)
{
    size_t count = state_node_count(fix->state), from = any((uint32_t)count + 1);

    for (size_t i = 0; i < count; i++) {
        const struct node *node = state_node_at(fix->state, (from + i) % count);
        if (node_is_usable(node) && node->cpus_used < node->cpus)
            return node;
    }
    return state_node_at(fix->state, 0);
}

static void step_start(struct fix *fix)
{
    const struct job *job = any_in(fix, PHASE_PENDING);

    for (int i = 0; i < 4 && job && !job_is_eligible(job); i++)
        job = any_in(fix, PHASE_PENDING);
    if (!job || state_node_count(fix->state) == 0)
        return;
    const struct node *node = free_node(fix);
    uint32_t cpus = 1 + any(3), task = NO_ARRAY_TASK;
    if (job_is_meta(job)) {
        uint32_t number = array_next_waiting(job->array, any(job->array->count));
        if (number == job->array->count)
            number = array_next_waiting(job->array, 0);
        task = array_task_id(job->array, number == job->array->count ? 0 : number);
    }
    if (task == NO_ARRAY_TASK && chance(20))
        fix_start_two(fix, job->id, any_node(), node->spec->name);
    else if (task != NO_ARRAY_TASK)
        fix_start_task(fix, job->id, task, node->spec->name, cpus);
    else
        fix_start(fix, job->id, node->spec->name, cpus);
}

static void step_finish(struct fix *fix)
{
    static const uint32_t statuses[] = { 0, 0, 0, 1 << 8, 9, 3 << 8 };
    const struct job *job = any_in(fix, chance(20) ? PHASE_COMPLETING : PHASE_RUNNING);
    uint32_t status = statuses[any(ARRAY_LEN(statuses))];

    if (!job)
        return;
    if (chance(60))
        fix_finish(fix, job->id, status);
    else
        fix_finish_held(fix, job->id, status);
}

static void step_launch_failed(struct fix *fix)
{
    const struct job *job = any_in(fix, chance(50) ? PHASE_CONFIGURING : PHASE_RUNNING);
    Command cmd = COMMAND__INIT;
    CmdFinish msg = CMD_FINISH__INIT;

    if (!job)
        return;
    SET(&msg, job_id, job->id);
    SET(&msg, attempt, job->attempt - (chance(10) ? 1 : 0));
    SET(&msg, requeue, true);
    if (chance(30))
        SET(&msg, state, JOB_NODE_FAIL);
    msg.failed_node = (char *)"n2";
    cmd.what_case = COMMAND__WHAT_FINISH;
    cmd.finish = &msg;
    fix_apply(fix, &cmd);
}

static void step_release(struct fix *fix)
{
    const struct job *job = any_in(fix, chance(50) ? PHASE_COMPLETING : PHASE_REQUEUING);

    if (job && (chance(10) || (job->run->epilog == SITE_DUE && chance(70))))
        fix_site_epilog(fix, job->id);
    else if (job)
        fix_release(fix, job->id, job->run->parts[any(job->run->count)].name);
}

static void step_ready(struct fix *fix)
{
    const struct job *job = any_in(fix, PHASE_CONFIGURING);

    if (job && (chance(10) || (job->run->prolog == SITE_DUE && chance(80))))
        fix_site_prolog(fix, job->id);
    else
        fix_ready(fix, job && chance(90) ? job->id : any_job(fix));
}

static void step_cancel(struct fix *fix)
{
    static const char *const tasks[] = { "1", "0-2", "1,3", "[2-4]", "99", "x" };

    fix_cancel(fix, any_job(fix), chance(30) ? tasks[any(ARRAY_LEN(tasks))] : NULL);
}

static void step_update(struct fix *fix)
{
    JobSpec change = JOB_SPEC__INIT;
    char dependency[400];

    switch (any(10)) {
    case 0:
        SET(&change, time_limit_s, 60 + any(7200));
        break;
    case 1:
        any_dependency(fix, dependency, sizeof(dependency));
        change.dependency = dependency;
        break;
    case 2:
        change.name = (char *)(chance(50) ? "a" : "renamed");
        break;
    case 3:
        SET(&change, nice, (int32_t)any(200) - 50);
        break;
    case 4:
        SET(&change, priority, any(1000));
        break;
    case 5:
        change.array = (char *)(chance(50) ? "%1" : "%3");
        break;
    case 6:
        SET(&change, begin_us, fix->now + any(300) * INT64_C(1000000));
        break;
    case 7:
        change.partition = (char *)(chance(50) ? "small" : "main");
        break;
    case 8:
        change.comment = (char *)"seen";
        break;
    default:
        SET(&change, min_nodes, 1 + any(3));
        break;
    }
    fix_update(fix, any_job(fix), &change, chance(70));
}

/* A running job gives up nodes; those that it has given up say that they are free. */
static void step_resize(struct fix *fix)
{
    const struct job *job = any_in(fix, PHASE_RUNNING);
    JobSpec change = JOB_SPEC__INIT;

    for (int i = 0; i < 8 && job && job->run->count < 2; i++)
        job = any_in(fix, PHASE_RUNNING);
    if (!job || job->run->count < 2)
        return;
    for (unsigned i = 0; i < job->run->count; i++) {
        if (job->run->parts[i].left && chance(80)) {
            fix_release(fix, job->id, job->run->parts[i].name);
            return;
        }
    }
    if (chance(50))
        SET(&change, min_nodes, any(3));
    else
        change.nodelist = (char *)(uintptr_t)job->run->parts[any(job->run->count)].name;
    fix_update(fix, job->id, &change, chance(50));
}

static void step_update_tasks(struct fix *fix)
{
    const struct job *job = any_in(fix, PHASE_PENDING);
    Command cmd = COMMAND__INIT;
    CmdUpdateJob msg = CMD_UPDATE_JOB__INIT;
    JobSelect jobs = JOB_SELECT__INIT;
    char *clear = (char *)"dependency";

    if (!job)
        return;
    uint32_t id = job->array ? job->array->id : job->id;
    jobs.n_job_ids = 1;
    jobs.job_ids = &id;
    jobs.array_tasks = (char *)(chance(50) ? "1-3" : "2");
    if (!job->array)
        jobs.array_tasks = NULL;
    msg.jobs = &jobs;
    if (chance(40))
        SET(&msg, hold, any(3));
    else if (chance(30))
        SET(&msg, top, true);
    else if (chance(30))
        msg.admin_comment = (char *)"noted";
    else {
        msg.n_clear = 1;
        msg.clear = &clear;
    }
    SET(&msg, by_admin, chance(50));
    cmd.what_case = COMMAND__WHAT_UPDATE_JOB;
    cmd.update_job = &msg;
    fix_apply(fix, &cmd);
}

static void step_node(struct fix *fix)
{
    static const char *const words[] = { "DOWN",         "DRAIN",        "RESUME", "RESUME",
                                         "RESUME",       "UNDRAIN",      "FAIL",   "FUTURE",
                                         "IDLE",         "NONSENSE",     "REBOOT", "REBOOT_ASAP",
                                         "REBOOT_FORCE", "CANCEL_REBOOT" };

    switch (any(3)) {
    case 0:
        fix_node_up(fix, any_node(), chance(80) ? "boot-1" : "boot-2");
        break;
    case 1:
        fix_node_down(fix, any_node(), chance(50));
        break;
    default:
        fix_node_state(fix, any_node(), words[any(ARRAY_LEN(words))], "test");
        break;
    }
}

static void step_partition(struct fix *fix)
{
    Command cmd = COMMAND__INIT;
    CmdPartition msg = CMD_PARTITION__INIT;
    PartitionSpec spec = PARTITION_SPEC__INIT;

    spec.name = (char *)(chance(60) ? "small" : chance(50) ? "main" : "extra");
    if (chance(50))
        SET(&spec, state, any(4));
    if (chance(20))
        SET(&spec, max_time_s, 600 + any(7200));
    if (chance(20))
        spec.nodes = (char *)(chance(80) ? "n[1-3]" : "n[1-99]");
    if (chance(20))
        spec.oversubscribe = (char *)(chance(50) ? "FORCE:2" : "EXCLUSIVE");
    if (chance(20))
        spec.qos = (char *)(chance(30) ? "" : chance(50) ? "part" : "tiny");
    if (chance(20))
        spec.tres_billing_weights = (char *)(chance(50) ? "cpu=2,mem=1G" : "cpu=0.3");
    if (chance(20))
        SET(&spec, over_time_limit_min, chance(80) ? any(4) : UINT32_MAX);
    SET(&msg, create, chance(10));
    SET(&msg, remove, chance(5));
    msg.change = &spec;
    cmd.what_case = COMMAND__WHAT_PARTITION;
    cmd.partition = &msg;
    fix_apply(fix, &cmd);
}

static void step_reservation(struct fix *fix)
{
    Command cmd = COMMAND__INIT;
    CmdReservation msg = CMD_RESERVATION__INIT;
    ReservationSpec spec = RESERVATION_SPEC__INIT;

    spec.name = (char *)(chance(70) ? "r1" : "r2");
    SET(&spec, start_us, fix->now + any(200) * INT64_C(1000000));
    SET(&spec, duration_s, any(600));
    if (chance(50))
        spec.nodes = (char *)"n[1-2]";
    else
        SET(&spec, node_count, 1 + any(3));
    SET(&msg, create, chance(60));
    SET(&msg, remove, chance(20));
    msg.change = &spec;
    cmd.what_case = COMMAND__WHAT_RESERVATION;
    cmd.reservation = &msg;
    fix_apply(fix, &cmd);
}

/* Half of the histories have accounts, with all limits, some or none of them enforced. */
static bool has_accounts(const struct fix *fix)
{
    return fix->seed % 2;
}

static Config *any_config(const struct fix *fix, unsigned nodes)
{
    static const char *const enforce[] = { "limits,qos", "safe", "limits", "associations", NULL };

    static const char *const types[] = { "none", "qos", "partition_prio", "partition_prio" };
    static const char *const modes[] = { "CANCEL", "REQUEUE", "SUSPEND,GANG" };
    Config *config = has_accounts(fix)
                         ? fix_config_accounts(nodes, enforce[any(ARRAY_LEN(enforce))])
                         : fix_config(nodes);

    config->preempt_type = mem_strdup(any_word(types, ARRAY_LEN(types)));
    config->preempt_mode = mem_strdup(any_word(modes, ARRAY_LEN(modes)));
    SET(config->partitions[1], priority_tier, 10);
    if (chance(50))
        SET(config->partitions[0], grace_time_s, 20);
    return config;
}

static void step_config(struct fix *fix)
{
    Config *config = any_config(fix, NODES - any(3) + any(2));

    if (chance(30))
        config->nodes[0]->cpus = 2 + any(3);
    if (chance(20))
        config->nodes[1]->memory_mb = 500;
    if (chance(30))
        SET(config, min_job_age_s, 60 + any(300));
    if (chance(30))
        SET(config, kill_invalid_depend, true);
    if (chance(30))
        config->prolog = mem_strdup("/etc/prolog");
    if (chance(60))
        config->reboot_program = mem_strdup("/etc/reboot");
    if (chance(20))
        config->prolog_ctld = mem_strdup("/etc/prolog-ctld");
    if (chance(20))
        config->epilog_ctld = mem_strdup("/etc/epilog-ctld");
    if (chance(20))
        SET(config, return_to_service, any(3));
    if (chance(20))
        SET(config, over_time_limit_min, chance(80) ? any(4) : UINT32_MAX);
    if (chance(20))
        SET(config, kill_wait_s, any(90));
    if (chance(20))
        SET(config->partitions[0], over_time_limit_min, any(3));
    if (chance(20)) {
        free(config->licenses);
        config->licenses = mem_strdup(chance(50) ? "fluent:1" : "fluent:2,matlab:3");
    }
    if (has_accounts(fix) && chance(20))
        conf_qos__free_unpacked(config->qos[--config->n_qos], NULL); /* the partition has none */
    if (has_accounts(fix) && chance(20))
        conf_user__free_unpacked(config->users[--config->n_users], NULL);
    if (has_accounts(fix) && chance(20))
        config->priority_flags = mem_strdup("MAX_TRES");
    if (chance(50))
        fix_reconfigure(fix, config, chance(50));
    else
        fix_change(fix, config, chance(50), 1 + any(9));
    config__free_unpacked(config, NULL);
}

static void step_time(struct fix *fix)
{
    int64_t due = core_next_due(fix->state);

    if (due != INT64_MAX && due > fix->now && chance(70))
        fix->now = due;
    fix_time(fix, chance(80) ? any(20) : any(400));
}

static void step_small(struct fix *fix)
{
    Command cmd = COMMAND__INIT;
    CmdPlanned planned = CMD_PLANNED__INIT;
    PlannedStart start = PLANNED_START__INIT, *starts[1] = { &start };
    CmdNodeKey key = CMD_NODE_KEY__INIT;
    CmdJournalAck ack = CMD_JOURNAL_ACK__INIT;
    CmdCheck check = CMD_CHECK__INIT;
    CmdLead lead = CMD_LEAD__INIT;
    CmdControllers list = CMD_CONTROLLERS__INIT;
    ControllerSpec one = CONTROLLER_SPEC__INIT, two = CONTROLLER_SPEC__INIT;
    ControllerSpec *specs[] = { &one, &two };
    CmdSteps steps = CMD_STEPS__INIT;
    CmdLevel level = CMD_LEVEL__INIT;
    uint8_t bytes[8] = "key";

    switch (any(8)) {
    case 0:
        SET(&start, job_id, any_job(fix));
        SET(&start, start_us, fix->now + 5);
        start.nodes = (char *)"n1";
        planned.n_starts = 1;
        planned.starts = starts;
        cmd.what_case = COMMAND__WHAT_PLANNED;
        cmd.planned = &planned;
        break;
    case 1:
        key.node = (char *)(uintptr_t)any_node();
        bytes[3] = (uint8_t)any(255);
        SET(&key, key, ((ProtobufCBinaryData){ sizeof(bytes), bytes }));
        SET(&key, remove, chance(30));
        if (chance(20))
            SET(&key, forgotten, true);
        cmd.what_case = COMMAND__WHAT_NODE_KEY;
        cmd.node_key = &key;
        break;
    case 2:
        SET(&ack, index, fix->index);
        cmd.what_case = COMMAND__WHAT_JOURNAL_ACK;
        cmd.journal_ack = &ack;
        break;
    case 4:
        one.name = (char *)"c1";
        two.name = (char *)(chance(20) ? "c1" : "c2"); /* the same twice is refused */
        one.address = two.address = (char *)"10.0.0.1:6817";
        list.n_controllers = any(3);
        list.controllers = specs;
        list.token = (char *)"t";
        cmd.what_case = COMMAND__WHAT_CONTROLLERS;
        cmd.controllers = &list;
        break;
    case 3:
        SET(&check, digest, core_digest(fix->state));
        cmd.what_case = COMMAND__WHAT_CHECK;
        cmd.check = &check;
        break;
    case 6:
        SET(&level, level, 1 + any(LEVEL_NEWEST));
        if (chance(30))
            SET(&level, pin, any(LEVEL_NEWEST + 2));
        cmd.what_case = COMMAND__WHAT_LEVEL;
        cmd.level = &level;
        break;
    case 5:
        cmd.what_case = COMMAND__WHAT_STEPS;
        cmd.steps = &steps;
        break;
    default:
        lead.leader = (char *)"c2";
        cmd.what_case = COMMAND__WHAT_LEAD;
        cmd.lead = &lead;
        break;
    }
    fix_apply(fix, &cmd);
    assert_int_equal(fix_events(fix, EVENT_DIVERGED, NULL), 0);
}

static void step_trigger(struct fix *fix)
{
    static const char *const programs[] = { "/a", "/b", "/c x" };
    Command cmd = COMMAND__INIT;
    CmdTrigger msg = CMD_TRIGGER__INIT;
    TriggerSpec spec = TRIGGER_SPEC__INIT;
    size_t count = state_trigger_count(fix->state);

    for (size_t i = 0; i < count && !msg.has_run; i++) {
        const struct trigger *trigger = state_trigger_at(fix->state, i);
        if (trigger_is_due(fix->state, trigger))
            SET(&msg, run, trigger->spec->id);
    }
    if (msg.has_run) {
        /* one that is due runs */
    } else if (chance(70) && count < 20) {
        SET(&spec, types, 1u << any(23));
        if (chance(40))
            SET(&spec, job_id, any_job(fix));
        else
            spec.nodes = (char *)(uintptr_t)(chance(50) ? "" : any_node());
        if (chance(50))
            SET(&spec, offset_s, (int32_t)any(100) - 20);
        if (chance(40))
            SET(&spec, permanent, true);
        SET(&spec, uid, any(3));
        spec.program = (char *)(uintptr_t)programs[any(3)];
        msg.set = &spec;
    } else if (chance(50)) {
        SET(&msg, happened, 1u << any(23));
    } else {
        SET(&msg, clear_uid, any(3));
        if (chance(50))
            SET(&msg, clear_job_id, any_job(fix));
    }
    cmd.what_case = COMMAND__WHAT_TRIGGER;
    cmd.trigger = &msg;
    fix_apply(fix, &cmd);
}

static void step_with_id(struct fix *fix)
{
    Command cmd = COMMAND__INIT;
    CmdCancel msg = CMD_CANCEL__INIT;
    JobSelect jobs = JOB_SELECT__INIT;
    uint32_t id = any_job(fix);
    uint8_t request[16] = { (uint8_t)any(50) };

    jobs.n_job_ids = 1;
    jobs.job_ids = &id;
    msg.jobs = &jobs;
    if (chance(60))
        SET(&msg, signal, 10);
    SET(&cmd, request_id, ((ProtobufCBinaryData){ 16, request }));
    SET(&cmd, uid, any(2));
    cmd.what_case = COMMAND__WHAT_CANCEL;
    cmd.cancel = &msg;
    fix_apply(fix, &cmd);
}

static void step_hold(struct fix *fix)
{
    fix_hold(fix, any_job(fix), any(3), chance(60));
}

static void step_requeue(struct fix *fix)
{
    fix_requeue(fix, any_job(fix), chance(20));
}

static void step_suspend(struct fix *fix)
{
    const struct job *job = any_in(fix, chance(50) ? PHASE_RUNNING : PHASE_SUSPENDED);

    if (job)
        fix_suspend(fix, job->id, chance(50));
}

static void step_preempt(struct fix *fix)
{
    const struct job *job = any_in(fix, PHASE_PENDING);
    Command cmd = COMMAND__INIT;
    CmdPreempt msg = CMD_PREEMPT__INIT;
    uint32_t victims[3], attempts[3], later[3], later_attempts[3];
    PreemptFor other = PREEMPT_FOR__INIT, *others[1] = { &other };

    msg.victims = victims;
    msg.attempts = attempts;
    msg.later = later;
    msg.later_attempts = later_attempts;
    for (int i = 0; i < 3; i++) {
        const struct job *victim = any_in(fix, chance(80) ? PHASE_RUNNING : PHASE_SUSPENDED);
        if (!victim || (i && chance(60)))
            continue;
        uint32_t attempt = victim->attempt - (chance(5) ? 1 : 0);
        if (i && chance(30)) {
            later[msg.n_later++] = victim->id;
            later_attempts[msg.n_later_attempts++] = attempt;
        } else {
            victims[msg.n_victims++] = victim->id;
            attempts[msg.n_attempts++] = attempt;
        }
    }
    if (!job)
        return;
    if (job->more && job->more->het_count > 1) {
        SET(&other, job_id, job->more->het_job_id + 1);
        other.partition = (char *)"small";
        msg.also = others;
        msg.n_also = chance(80);
    }
    SET(&msg, job_id, job->id);
    msg.partition = (char *)(chance(90) ? "small" : "main");
    cmd.what_case = COMMAND__WHAT_PREEMPT;
    cmd.preempt = &msg;
    fix_apply(fix, &cmd);
}

static const struct {
    unsigned weight;
    void (*step)(struct fix *fix);
} steps[] = {
    { 20, step_submit },   { 2, step_submit_het },   { 30, step_start },
    { 3, step_start_het }, { 14, step_finish },      { 3, step_launch_failed },
    { 10, step_release },  { 4, step_ready },        { 4, step_cancel },
    { 6, step_update },    { 4, step_update_tasks }, { 6, step_node },
    { 2, step_partition }, { 2, step_reservation },  { 1, step_config },
    { 10, step_time },     { 2, step_small },        { 2, step_with_id },
    { 3, step_hold },      { 4, step_requeue },      { 3, step_suspend },
    { 6, step_preempt },   { 4, step_resize },       { 6, step_trigger },
};

static void any_step(struct fix *fix)
{
    unsigned total = 0;

    for (size_t i = 0; i < ARRAY_LEN(steps); i++)
        total += steps[i].weight;
    unsigned at = any(total);
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        if (at < steps[i].weight) {
            steps[i].step(fix);
            return;
        }
        at -= steps[i].weight;
    }
}

/* Which edges and answers a run has seen, so that the test cannot become empty unnoticed. */
static size_t seen_events[EVENT_DIVERGED + 1];

static void one_seed(uint64_t seed)
{
    struct fix *fix = fix_new_recorded(NODES, true);
    struct err err = { 0 };

    fix->seed = seed;
    fix->state->notify_most = seed % 4; /* 0: as many as ever */
    random_state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    Config *config = any_config(fix, NODES);
    fix_reconfigure(fix, config, false);
    config__free_unpacked(config, NULL);
    fix->mirror = fix_copy(fix);
    for (unsigned i = 0; i < STEPS; i++) {
        any_step(fix);
        events_each(event, &fix->events) seen_events[event->kind]++;
        if (any(60) == 0) {
            state_free(fix->mirror);
            fix->mirror = fix_copy(fix);
        }
    }
    if (core_check(fix->mirror, &err) < 0)
        fail_msg("mirror: %s", err.text);
    struct state *again = fix_replay(fix);
    assert_int_equal(core_digest(again), core_digest(fix->state));
    state_free(again);
    if (getenv("CORE_RECORD")) { /* recorded/README.md */
        char name[64];
        snprintf(name, sizeof(name), "level%u-seed%llu", (unsigned)LEVEL_NEWEST,
                 (unsigned long long)seed);
        fix_write_history(fix, getenv("CORE_RECORD"), name);
    }
    fix_free(fix);
}

static void replicas_agree_whatever_happens(void **unused)
{
    const char *given = getenv("CORE_SEED");

    if (given) { /* "17", or "100-200" */
        char *dash;
        uint64_t first = strtoull(given, &dash, 10);
        uint64_t last = *dash == '-' ? strtoull(dash + 1, NULL, 10) : first;
        for (uint64_t seed = first; seed <= last; seed++)
            one_seed(seed);
        return;
    }
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        one_seed(seed);
    for (size_t kind = 0; kind < EVENT_DIVERGED; kind++) {
        if (getenv("CORE_SEEN"))
            printf("%8zu %s\n", seen_events[kind], event_name(kind));
        if (seen_events[kind] == 0)
            fail_msg("no history has %s", event_name(kind));
    }
}

static void a_wrong_digest_is_noticed(void **unused)
{
    struct fix *fix = fix_new(1);
    Command cmd = COMMAND__INIT;
    CmdCheck check = CMD_CHECK__INIT;

    SET(&check, digest, core_digest(fix->state) + 1);
    cmd.what_case = COMMAND__WHAT_CHECK;
    cmd.check = &check;
    fix_apply(fix, &cmd);
    assert_int_equal(fix_events(fix, EVENT_DIVERGED, NULL), 1);
    fix_free(fix);
}

UNIT_MAIN(UNIT(replicas_agree_whatever_happens), UNIT(a_wrong_digest_is_noticed))
