/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixture.c - a small cluster and short ways to give it commands
 */
#include "core/test/fixture.h"

#include "base/lz.h"
#include "core/config_change.h"
#include "core/shape.h"
#include "core/view/view.h"
#include "wire/pb.h"

#define FIRST_US INT64_C(1700000000000000)

static ConfAccount any_account(const char *name, const char *parent, unsigned shares)
{
    ConfAccount account = CONF_ACCOUNT__INIT;

    account.name = (char *)(uintptr_t)name;
    account.parent = (char *)(uintptr_t)parent;
    SET(&account, fairshare, shares);
    return account;
}

static ConfUser any_user(const char *name, const char *account, unsigned shares)
{
    ConfUser user = CONF_USER__INIT;

    user.name = (char *)(uintptr_t)name;
    user.account = (char *)(uintptr_t)account;
    SET(&user, fairshare, shares);
    return user;
}

Config *fix_config_accounts(unsigned nodes, const char *enforce)
{
    Config *plain = fix_config(nodes), config = *plain;
    ConfAccount accounts[] = { any_account("sci", NULL, 2), any_account("phys", "sci", 3),
                               any_account("chem", "sci", 1) };
    ConfUser users[] = { any_user("alice", "phys", 1), any_user("bob", "phys", 2),
                         any_user("alice", "chem", 1) };
    ConfQos qos[] = { CONF_QOS__INIT, CONF_QOS__INIT, CONF_QOS__INIT };
    ConfAccount *all_accounts[] = { &accounts[0], &accounts[1], &accounts[2] };
    ConfUser *all_users[] = { &users[0], &users[1], &users[2] };
    ConfQos *all_qos[] = { &qos[0], &qos[1], &qos[2] };

    accounts[0].grp_tres = (char *)"cpu=12,gres/gpu=4";
    SET(&accounts[1], grp_jobs, 4);
    SET(&accounts[1], max_jobs, 3);
    SET(&accounts[0], grp_jobs_accrue, 9);
    SET(&accounts[1], max_jobs_accrue, 3);
    SET(&accounts[2], grp_submit, 40);
    accounts[2].max_tres_per_job = (char *)"cpu=4";
    accounts[1].grp_tres_mins = (char *)"cpu=600";
    qos[0].name = (char *)"high";
    SET(&qos[0], qos_priority, 100);
    qos[0].usage_factor = (char *)"2.5";
    SET(&qos[0], max_jobs, 2);
    SET(&qos[0], max_jobs_accrue_per_account, 2);
    qos[1].name = (char *)"tiny";
    qos[1].max_tres_per_user = (char *)"cpu=4,mem=3000";
    qos[1].grp_tres_run_mins = (char *)"cpu=120";
    SET(&qos[1], max_wall_s, 1800);
    qos[2].name = (char *)"part";
    SET(&qos[2], grp_jobs, 2);
    SET(&qos[2], max_submit, 30);
    config.partitions[1]->qos = mem_strdup("part");
    config.partitions[1]->tres_billing_weights = mem_strdup("cpu=1.5,mem=0.25G,gres/gpu=4");
    config.n_accounts = ARRAY_LEN(all_accounts);
    config.accounts = all_accounts;
    config.n_users = ARRAY_LEN(all_users);
    config.users = all_users;
    config.n_qos = ARRAY_LEN(all_qos);
    config.qos = all_qos;
    config.accounting_enforce = (char *)(uintptr_t)enforce;
    SET(&config, weight_age, 1000);
    SET(&config, weight_fairshare, 10000);
    SET(&config, weight_qos, 500);
    SET(&config, weight_job_size, 100);
    SET(&config, priority_calc_period_s, 60);
    SET(&config, priority_decay_half_life_s, 3600);
    SET(&config, priority_max_age_s, 3600);
    Config *copy = pb_copy(&config);
    config__free_unpacked(plain, NULL);
    return copy;
}

Config *fix_config(unsigned nodes)
{
    Config config = CONFIG__INIT;
    NodeSpec **specs = NEW_ARRAY(NodeSpec *, nodes);
    PartitionSpec parts[2] = { PARTITION_SPEC__INIT, PARTITION_SPEC__INIT };
    PartitionSpec *both[2] = { &parts[0], &parts[1] };
    GresInventory gpu = GRES_INVENTORY__INIT, *gpus[1] = { &gpu };

    gpu.name = (char *)"gpu";
    gpu.type = (char *)"mi300x";
    SET(&gpu, count, 2);
    for (unsigned i = 0; i < nodes; i++) {
        NodeSpec *spec = specs[i] = NEW(NodeSpec);
        node_spec__init(spec);
        spec->name = mem_printf("n%u", i + 1);
        SET(spec, cpus, 4);
        SET(spec, sockets, 1);
        SET(spec, cores_per_socket, 2);
        SET(spec, threads_per_core, 2);
        SET(spec, memory_mb, 4000);
        static char *features[] = { (char *)"odd", (char *)"even", (char *)"ib" };
        spec->n_features = 1;
        spec->features = (i + 1) % 2 ? features : features + 1;
        if ((i + 1) % 2 == 0) {
            spec->n_features = 2;
            spec->n_gres = 1;
            spec->gres = gpus;
        }
    }
    config.cluster_name = (char *)"test";
    config.n_nodes = nodes;
    config.nodes = specs;
    parts[0].name = (char *)"main";
    parts[0].nodes = (char *)"ALL";
    SET(&parts[0], is_default, true);
    parts[1].name = (char *)"small";
    parts[1].nodes = (char *)(nodes > 1 ? "n[1-2]" : "n1");
    SET(&parts[1], max_time_s, 3600);
    SET(&parts[1], max_nodes, 1);
    config.n_partitions = 2;
    config.partitions = both;
    SET(&config, min_job_age_s, 300);
    SET(&config, return_to_service, 1);
    SET(&config, max_array_size, 100000);
    config.licenses = (char *)"matlab:2";
    Config *copy = pb_copy(&config);
    for (unsigned i = 0; i < nodes; i++) {
        free(specs[i]->name);
        free(specs[i]);
    }
    free(specs);
    return copy;
}

struct fix *fix_new(unsigned nodes)
{
    return fix_new_recorded(nodes, false);
}

struct fix *fix_new_recorded(unsigned nodes, bool recorded)
{
    struct fix *fix = NEW(struct fix);
    Command cmd = COMMAND__INIT;
    CmdLead lead = CMD_LEAD__INIT;
    Config *config = fix_config(nodes);
    uint8_t id[16] = "cluster id 12345";

    fix->state = state_new();
    fix->now = FIRST_US;
    fix->check = true;
    fix->record = recorded;
    events_init(&fix->events);
    events_init(&fix->mirror_events);
    lead.leader = (char *)"c1";
    SET(&lead, cluster_id, ((ProtobufCBinaryData){ 16, id }));
    cmd.what_case = COMMAND__WHAT_LEAD;
    cmd.lead = &lead;
    assert_int_equal(fix_apply(fix, &cmd), ERR_OK);
    assert_int_equal(fix_reconfigure(fix, config, false), ERR_OK);
    config__free_unpacked(config, NULL);
    for (unsigned i = 0; i < nodes; i++) {
        char name[16];
        snprintf(name, sizeof(name), "n%u", i + 1);
        assert_int_equal(fix_node_up(fix, name, "boot-1"), ERR_OK);
    }
    return fix;
}

void fix_free(struct fix *fix)
{
    vec_each (struct span, at, &fix->log)
        free((char *)(uintptr_t)at->ptr);
    vec_done(&fix->log);
    events_done(&fix->events);
    events_done(&fix->mirror_events);
    state_free(fix->state);
    state_free(fix->mirror);
    free(fix);
}

/* The same facts in the same order. */
static void compare_events(const struct events *a, const struct events *b)
{
    assert_int_equal(a->list.len, b->list.len);
    for (size_t i = 0; i < a->list.len; i++) {
        const struct event *x = &a->list.items[i], *y = &b->list.items[i];
        assert_string_equal(event_name(x->kind), event_name(y->kind));
        assert_int_equal(x->code, y->code);
        assert_int_equal(x->job_id, y->job_id);
        assert_int_equal(x->attempt, y->attempt);
        assert_int_equal(x->task, y->task);
        assert_int_equal(x->end_state, y->end_state);
        assert_int_equal(x->start_us, y->start_us);
        assert_int_equal(x->end_us, y->end_us);
        assert_int_equal(x->job == NULL, y->job == NULL);
        if (x->node)
            assert_string_equal(x->node->spec->name, y->node->spec->name);
    }
}

static void tell_mirror(struct fix *fix, const Command *cmd)
{
    events_clear(&fix->mirror_events);
    core_apply(fix->mirror, fix->index, cmd, &fix->mirror_events);
    compare_events(&fix->events, &fix->mirror_events);
    if (core_digest(fix->state) != core_digest(fix->mirror) ||
        core_next_due(fix->state) != core_next_due(fix->mirror))
        fail_msg("seed %llu, index %llu, command %u: digest %llx and %llx, due %lld and %lld",
                 (unsigned long long)fix->seed, (unsigned long long)fix->index,
                 (unsigned)cmd->what_case, (unsigned long long)core_digest(fix->state),
                 (unsigned long long)core_digest(fix->mirror), (long long)core_next_due(fix->state),
                 (long long)core_next_due(fix->mirror));
}

static void record(struct fix *fix, const Command *cmd)
{
    size_t len = command__get_packed_size(cmd);
    uint8_t *bytes = mem_new(len + 1);

    command__pack(cmd, bytes);
    vec_push(&fix->log, (struct span){ (char *)bytes, len });
}

struct state *fix_replay(const struct fix *fix)
{
    struct state *state = state_new();
    struct events events;
    uint64_t index = 0;

    state->notify_most = fix->state->notify_most;
    events_init(&events);
    vec_each (struct span, at, &fix->log) {
        Command *cmd = command__unpack(NULL, at->len, (const uint8_t *)at->ptr);
        events_clear(&events);
        core_apply(state, ++index, cmd, &events);
        command__free_unpacked(cmd, NULL);
    }
    events_done(&events);
    return state;
}

static void put_record(struct str *out, char kind, const void *bytes, size_t len)
{
    str_add_char(out, kind);
    for (unsigned i = 0; i < 4; i++)
        str_add_char(out, (char)(len >> 8 * i));
    str_add_len(out, bytes, len);
}

static void put_digest(struct str *out, const struct state *state)
{
    uint64_t digest = core_digest(state);
    uint8_t bytes[8];

    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(digest >> 8 * i);
    put_record(out, 'D', bytes, sizeof(bytes));
}

static int into_text(void *to, const void *bytes, size_t len)
{
    str_add_len(to, bytes, len);
    return 0;
}

static void put_snapshot(struct str *out, const struct state *state)
{
    struct str bytes = { 0 };

    core_snapshot_write(state, into_text, &bytes);
    put_record(out, 'S', str_text(&bytes), bytes.len);
    str_done(&bytes);
}

/* Four bytes with the length, then a block of lz.h. */
static void write_packed(const char *path, const struct str *text)
{
    struct str block = { 0 };
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(lz_compress(str_text(text), text->len, &block));
    for (unsigned i = 0; i < 4; i++)
        fputc((int)(text->len >> 8 * i & 0xff), file);
    fwrite(str_text(&block), 1, block.len, file);
    assert_int_equal(fclose(file), 0);
    str_done(&block);
}

void fix_write_history(const struct fix *fix, const char *dir, const char *name)
{
    enum { DIGEST_EVERY = 20, SNAPSHOT_EVERY = 200 };
    struct state *state = state_new();
    struct str out = { 0 };
    struct events events;
    uint64_t index = 0;
    char path[512];

    state->notify_most = fix->state->notify_most;
    put_record(&out, 'T', (uint8_t[]){ (uint8_t)state->notify_most }, 1);
    events_init(&events);
    vec_each (struct span, at, &fix->log) {
        Command *cmd = command__unpack(NULL, at->len, (const uint8_t *)at->ptr);
        events_clear(&events);
        core_apply(state, ++index, cmd, &events);
        command__free_unpacked(cmd, NULL);
        put_record(&out, 'C', at->ptr, at->len);
        if (index % DIGEST_EVERY == 0 || index == fix->log.len)
            put_digest(&out, state);
        if (index % SNAPSHOT_EVERY == 0 || index == fix->log.len)
            put_snapshot(&out, state);
    }
    snprintf(path, sizeof(path), "%s/%s.history", dir, name);
    write_packed(path, &out);
    events_done(&events);
    state_free(state);
    str_done(&out);
}

enum err_code fix_apply(struct fix *fix, Command *cmd)
{
    struct err err = { 0 };

    fix->now += 1000;
    SET(cmd, time_us, fix->now);
    Command *copy = pb_copy(cmd);
    assert_non_null(copy);
    events_clear(&fix->events);
    core_apply(fix->state, ++fix->index, copy, &fix->events);
    if (fix->check && core_check(fix->state, &err) < 0)
        fail_msg("seed %llu, index %llu, command %u: %s", (unsigned long long)fix->seed,
                 (unsigned long long)fix->index, (unsigned)cmd->what_case, err.text);
    if (fix->record)
        record(fix, copy);
    if (fix->mirror)
        tell_mirror(fix, copy);
    enum err_code code = fix_answer(fix)->code;
    command__free_unpacked(copy, NULL);
    return code;
}

const struct event *fix_answer(const struct fix *fix)
{
    const struct event *last = &fix->events.list.items[fix->events.list.len - 1];

    assert_int_equal(last->kind, EVENT_ANSWER);
    return last;
}

size_t fix_events(const struct fix *fix, enum event_kind kind, const struct event **out)
{
    size_t count = 0;

    events_each(event, &fix->events)
    {
        if (event->kind != kind)
            continue;
        if (count++ == 0 && out)
            *out = event;
    }
    return count;
}

JobSpec fix_spec(void)
{
    JobSpec spec = JOB_SPEC__INIT;

    spec.name = (char *)"job";
    spec.work_dir = (char *)"/home/user";
    SET(&spec, batch, true);
    SET(&spec, time_limit_s, 3600);
    return spec;
}

uint32_t fix_submit_as(struct fix *fix, uint32_t uid, const JobSpec *spec)
{
    Command cmd = COMMAND__INIT;
    CmdSubmit submit = CMD_SUBMIT__INIT;
    JobOwner owner = JOB_OWNER__INIT;
    PackedComponent component = PACKED_COMPONENT__INIT, *components[1] = { &component };
    uint8_t digest[32] = { 0 };
    struct arena arena;

    arena_init(&arena);
    memcpy(digest, &fix->index, sizeof(fix->index));
    struct span bytes = pb_pack(spec, &arena);
    SET(&component, spec, ((ProtobufCBinaryData){ bytes.len, (uint8_t *)(uintptr_t)bytes.ptr }));
    SET(&component, payload_digest, ((ProtobufCBinaryData){ sizeof(digest), digest }));
    SET(&owner, uid, uid);
    SET(&owner, gid, 100);
    owner.user = (char *)(uid == 1000 ? "alice" : uid == 0 ? "root" : "bob");
    owner.group = (char *)"users";
    submit.owner = &owner;
    submit.n_components = 1;
    submit.components = components;
    cmd.what_case = COMMAND__WHAT_SUBMIT;
    cmd.submit = &submit;
    enum err_code code = fix_apply(fix, &cmd);
    arena_done(&arena);
    return code == ERR_OK ? fix_answer(fix)->job_id : 0;
}

uint32_t fix_submit(struct fix *fix, const JobSpec *spec)
{
    return fix_submit_as(fix, 1000, spec);
}

uint32_t fix_job(struct fix *fix)
{
    JobSpec spec = fix_spec();

    return fix_submit(fix, &spec);
}

static enum err_code start(struct fix *fix, uint32_t id, uint32_t task, const char *const *nodes,
                           size_t count, uint32_t cpus)
{
    Command cmd = COMMAND__INIT;
    CmdStart msg = CMD_START__INIT;
    JobStart one = JOB_START__INIT, *starts[1] = { &one };
    Allocation allocation = ALLOCATION__INIT;
    NodeAlloc allocs[2] = { NODE_ALLOC__INIT, NODE_ALLOC__INIT };
    NodeAlloc *list[2] = { &allocs[0], &allocs[1] };
    const struct job *job = state_job(fix->state, id);

    for (size_t i = 0; i < count; i++) {
        allocs[i].node = (char *)(uintptr_t)nodes[i];
        SET(&allocs[i], cpus, cpus);
        SET(&allocs[i], tasks, 1);
    }
    allocation.nodes = list;
    allocation.n_nodes = count;
    struct span partition = { "main", 4 };
    if (job)
        job_spec_field(job, 3, &partition);
    char *name = mem_strndup(partition.ptr, partition.len);
    allocation.partition = name;
    if (job && job->shape->reservation)
        allocation.reservation = (char *)(uintptr_t)job->shape->reservation;
    SET(&one, job_id, id);
    SET(&one, attempt, job ? job->attempt + 1 : 1);
    if (task != NO_ARRAY_TASK)
        SET(&one, array_task_id, task);
    one.allocation = &allocation;
    msg.n_starts = 1;
    msg.starts = starts;
    cmd.what_case = COMMAND__WHAT_START;
    cmd.start = &msg;
    enum err_code code = fix_apply(fix, &cmd);
    free(name);
    return code;
}

enum err_code fix_start(struct fix *fix, uint32_t id, const char *node, uint32_t cpus)
{
    return start(fix, id, NO_ARRAY_TASK, &node, 1, cpus);
}

enum err_code fix_start_task(struct fix *fix, uint32_t array, uint32_t task, const char *node,
                             uint32_t cpus)
{
    return start(fix, array, task, &node, 1, cpus);
}

enum err_code fix_start_two(struct fix *fix, uint32_t id, const char *first, const char *second)
{
    const char *nodes[2] = { first, second };

    return start(fix, id, NO_ARRAY_TASK, nodes, 2, 2);
}

static uint32_t attempt_of(const struct fix *fix, uint32_t id)
{
    const struct job *job = state_job(fix->state, id);

    return job ? job->attempt : 0;
}

enum err_code fix_ready(struct fix *fix, uint32_t id)
{
    Command cmd = COMMAND__INIT;
    CmdReady msg = CMD_READY__INIT;

    SET(&msg, job_id, id);
    SET(&msg, attempt, attempt_of(fix, id));
    cmd.what_case = COMMAND__WHAT_READY;
    cmd.ready = &msg;
    return fix_apply(fix, &cmd);
}

static enum err_code finish(struct fix *fix, uint32_t id, uint32_t status, bool released)
{
    Command cmd = COMMAND__INIT;
    CmdFinish msg = CMD_FINISH__INIT;
    const struct job *job = state_job(fix->state, id);
    char *node = job && job->run ? mem_strdup(job->run->parts[0].name) : NULL;

    SET(&msg, job_id, id);
    SET(&msg, attempt, attempt_of(fix, id));
    SET(&msg, exit_status, status);
    msg.n_released = released && node;
    msg.released = &node;
    cmd.what_case = COMMAND__WHAT_FINISH;
    cmd.finish = &msg;
    enum err_code code = fix_apply(fix, &cmd);
    free(node);
    return code;
}

enum err_code fix_finish(struct fix *fix, uint32_t id, uint32_t status)
{
    return finish(fix, id, status, true);
}

enum err_code fix_finish_held(struct fix *fix, uint32_t id, uint32_t status)
{
    return finish(fix, id, status, false);
}

enum err_code fix_release(struct fix *fix, uint32_t id, const char *node)
{
    Command cmd = COMMAND__INIT;
    CmdRelease msg = CMD_RELEASE__INIT;
    char *name = (char *)(uintptr_t)node;

    SET(&msg, job_id, id);
    SET(&msg, attempt, attempt_of(fix, id));
    msg.n_nodes = 1;
    msg.nodes = &name;
    cmd.what_case = COMMAND__WHAT_RELEASE;
    cmd.release = &msg;
    return fix_apply(fix, &cmd);
}

static JobSelect select_of(uint32_t *id, const char *tasks)
{
    JobSelect jobs = JOB_SELECT__INIT;

    jobs.n_job_ids = 1;
    jobs.job_ids = id;
    jobs.array_tasks = (char *)(uintptr_t)tasks;
    return jobs;
}

enum err_code fix_cancel(struct fix *fix, uint32_t id, const char *tasks)
{
    Command cmd = COMMAND__INIT;
    CmdCancel msg = CMD_CANCEL__INIT;
    JobSelect jobs = select_of(&id, tasks);

    msg.jobs = &jobs;
    cmd.what_case = COMMAND__WHAT_CANCEL;
    cmd.cancel = &msg;
    return fix_apply(fix, &cmd);
}

enum err_code fix_hold(struct fix *fix, uint32_t id, unsigned hold, bool by_admin)
{
    Command cmd = COMMAND__INIT;
    CmdUpdateJob msg = CMD_UPDATE_JOB__INIT;
    JobSelect jobs = select_of(&id, NULL);

    msg.jobs = &jobs;
    SET(&msg, hold, hold);
    SET(&msg, by_admin, by_admin);
    cmd.what_case = COMMAND__WHAT_UPDATE_JOB;
    cmd.update_job = &msg;
    return fix_apply(fix, &cmd);
}

enum err_code fix_update(struct fix *fix, uint32_t id, const JobSpec *change, bool by_admin)
{
    Command cmd = COMMAND__INIT;
    CmdUpdateJob msg = CMD_UPDATE_JOB__INIT;
    JobSelect jobs = select_of(&id, NULL);

    msg.jobs = &jobs;
    msg.change = (JobSpec *)(uintptr_t)change;
    SET(&msg, by_admin, by_admin);
    cmd.what_case = COMMAND__WHAT_UPDATE_JOB;
    cmd.update_job = &msg;
    return fix_apply(fix, &cmd);
}

enum err_code fix_requeue(struct fix *fix, uint32_t id, bool hold)
{
    Command cmd = COMMAND__INIT;
    CmdRequeue msg = CMD_REQUEUE__INIT;
    JobSelect jobs = select_of(&id, NULL);

    msg.jobs = &jobs;
    SET(&msg, hold, hold);
    cmd.what_case = COMMAND__WHAT_REQUEUE;
    cmd.requeue = &msg;
    return fix_apply(fix, &cmd);
}

enum err_code fix_suspend(struct fix *fix, uint32_t id, bool resume)
{
    Command cmd = COMMAND__INIT;
    CmdSuspend msg = CMD_SUSPEND__INIT;
    JobSelect jobs = select_of(&id, NULL);

    msg.jobs = &jobs;
    SET(&msg, resume, resume);
    cmd.what_case = COMMAND__WHAT_SUSPEND;
    cmd.suspend = &msg;
    return fix_apply(fix, &cmd);
}

enum err_code fix_node_up(struct fix *fix, const char *node, const char *boot_id)
{
    Command cmd = COMMAND__INIT;
    CmdNodeUp msg = CMD_NODE_UP__INIT;
    NodeInventory found = NODE_INVENTORY__INIT;
    GresInventory gpu = GRES_INVENTORY__INIT, *gpus[1] = { &gpu };

    msg.node = (char *)(uintptr_t)node;
    SET(&found, cpus, 4);
    SET(&found, memory_mb, 4000);
    gpu.name = (char *)"gpu";
    gpu.type = (char *)"mi300x";
    SET(&gpu, count, 2);
    found.n_gres = atoi(node + 1) % 2 == 0;
    found.gres = gpus;
    found.boot_id = (char *)(uintptr_t)boot_id;
    msg.found = &found;
    cmd.what_case = COMMAND__WHAT_NODE_UP;
    cmd.node_up = &msg;
    return fix_apply(fix, &cmd);
}

enum err_code fix_node_down(struct fix *fix, const char *node, bool jobs_lost)
{
    Command cmd = COMMAND__INIT;
    CmdNodeDown msg = CMD_NODE_DOWN__INIT;

    msg.node = (char *)(uintptr_t)node;
    msg.reason = (char *)"Not responding";
    SET(&msg, jobs_lost, jobs_lost);
    SET(&msg, no_respond, true);
    cmd.what_case = COMMAND__WHAT_NODE_DOWN;
    cmd.node_down = &msg;
    return fix_apply(fix, &cmd);
}

enum err_code fix_node_state(struct fix *fix, const char *node, const char *word,
                             const char *reason)
{
    Command cmd = COMMAND__INIT;
    CmdUpdateNode msg = CMD_UPDATE_NODE__INIT;
    char *name = (char *)(uintptr_t)node;

    msg.n_nodes = 1;
    msg.nodes = &name;
    msg.state = (char *)(uintptr_t)word;
    msg.reason = (char *)(uintptr_t)reason;
    msg.by_user = (char *)"root";
    cmd.what_case = COMMAND__WHAT_UPDATE_NODE;
    cmd.update_node = &msg;
    return fix_apply(fix, &cmd);
}

enum err_code fix_site_prolog(struct fix *fix, uint32_t id)
{
    Command cmd = COMMAND__INIT;
    CmdReady msg = CMD_READY__INIT;

    SET(&msg, job_id, id);
    SET(&msg, attempt, fix_get(fix, id)->attempt);
    SET(&msg, controller, true);
    cmd.what_case = COMMAND__WHAT_READY;
    cmd.ready = &msg;
    return fix_apply(fix, &cmd);
}

enum err_code fix_site_epilog(struct fix *fix, uint32_t id)
{
    Command cmd = COMMAND__INIT;
    CmdRelease msg = CMD_RELEASE__INIT;

    SET(&msg, job_id, id);
    SET(&msg, attempt, fix_get(fix, id)->attempt);
    SET(&msg, controller, true);
    cmd.what_case = COMMAND__WHAT_RELEASE;
    cmd.release = &msg;
    return fix_apply(fix, &cmd);
}

enum err_code fix_time(struct fix *fix, int64_t seconds_later)
{
    Command cmd = COMMAND__INIT;
    CmdTime msg = CMD_TIME__INIT;

    fix->now += seconds_later * 1000000;
    cmd.what_case = COMMAND__WHAT_TIME;
    cmd.time = &msg;
    return fix_apply(fix, &cmd);
}

enum err_code fix_reconfigure(struct fix *fix, const Config *config, bool reconfigure)
{
    Command cmd = COMMAND__INIT;
    CmdConfig msg = CMD_CONFIG__INIT;

    msg.config = (Config *)(uintptr_t)config;
    SET(&msg, reconfigure, reconfigure);
    cmd.what_case = COMMAND__WHAT_CONFIG;
    cmd.config = &msg;
    return fix_apply(fix, &cmd);
}

enum err_code fix_change(struct fix *fix, const Config *config, bool reconfigure, size_t most)
{
    struct config_base base;
    struct config_changes changes;
    enum err_code code = ERR_OK;

    config_base_take(fix->state, &base);
    config_changes_make(&changes, &base, config, reconfigure, most);
    for (size_t i = 0; code == ERR_OK && i < changes.list.len; i++) {
        Command cmd = COMMAND__INIT;
        cmd.what_case = COMMAND__WHAT_CONFIG_CHANGE;
        cmd.config_change = changes.list.items[i];
        code = fix_apply(fix, &cmd);
    }
    config_changes_done(&changes);
    config_base_done(&base);
    return code;
}

const struct job *fix_get(const struct fix *fix, uint32_t id)
{
    const struct job *job = state_job(fix->state, id);

    assert_non_null(job);
    return job;
}

unsigned fix_reason(const struct fix *fix, uint32_t id)
{
    return core_job_reason(fix->state, fix_get(fix, id));
}

static int collect(void *to, const void *bytes, size_t len)
{
    str_add_len(to, bytes, len);
    return 0;
}

struct state *fix_copy(const struct fix *fix)
{
    struct str bytes = { 0 };
    struct err err = { 0 };
    struct restore *restore = core_restore_begin();

    assert_int_equal(core_snapshot_write(fix->state, collect, &bytes), 0);
    /* In uneven pieces, as a network gives them. */
    for (size_t at = 0, step = 1; at < bytes.len; at += step, step = step * 3 % 4093 + 1) {
        size_t len = MIN(step, bytes.len - at);
        if (core_restore_feed(restore, bytes.data + at, len, &err) < 0)
            fail_msg("%s", err.text);
    }
    struct state *state = core_restore_end(restore, &err);
    if (!state)
        fail_msg("%s", err.text);
    str_done(&bytes);
    if (core_check(state, &err) < 0)
        fail_msg("restored: %s", err.text);
    assert_int_equal(core_digest(state), core_digest(fix->state));
    state->notify_most = fix->state->notify_most;
    return state;
}
