/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_admit.c - what may be in the queue, and what fits on a node
 */
#include "core/test/fixture.h"
#include "core/view/view.h"

static GresRequest gpu_any = { PROTOBUF_C_MESSAGE_INIT(&gres_request__descriptor),
                               .name = (char *)"gpu" };
static GresRequest *gpus[1] = { &gpu_any };

static void with_gpus(JobSpec *spec, uint64_t count, const char *type, GresScope scope)
{
    gpu_any.type = (char *)(uintptr_t)type;
    SET(&gpu_any, count, count);
    SET(&gpu_any, scope, scope);
    spec->n_gres = 1;
    spec->gres = gpus;
}

static GresRequest gpu_more = { PROTOBUF_C_MESSAGE_INIT(&gres_request__descriptor),
                                .name = (char *)"gpu" };
static GresRequest *both[2] = { &gpu_any, &gpu_more };

static void two_ways(JobSpec *s, uint64_t count, GresScope scope, uint64_t more, GresScope other)
{
    with_gpus(s, count, NULL, scope);
    gpu_more.type = NULL;
    SET(&gpu_more, count, more);
    SET(&gpu_more, scope, other);
    s->gres = both;
    s->n_gres = 2;
}

/* Each changes the spec of a job that would be accepted. The cluster has n1 … n4; see fixture.h. */
static void fine(JobSpec *s)
{
    (void)s;
}
static void no_partition(JobSpec *s)
{
    s->partition = (char *)"nope";
}
static void second_unknown(JobSpec *s)
{
    s->partition = (char *)"main,nope";
}
static void two_partitions(JobSpec *s)
{
    s->partition = (char *)"small,main";
}
static void node_range(JobSpec *s)
{
    SET(s, min_nodes, 3);
    SET(s, max_nodes, 2);
}
static void five_nodes(JobSpec *s)
{
    SET(s, min_nodes, 5);
}
static void four_nodes(JobSpec *s)
{
    SET(s, min_nodes, 4);
}
static void too_many_tasks(JobSpec *s)
{
    SET(s, ntasks, 17);
}
static void sixteen_tasks(JobSpec *s)
{
    SET(s, ntasks, 16);
}
static void tasks_in_two_nodes(JobSpec *s)
{
    SET(s, ntasks, 9);
    SET(s, max_nodes, 2);
}
static void huge_tasks(JobSpec *s)
{
    SET(s, ntasks, UINT32_MAX);
    SET(s, cpus_per_task, 65000);
}
static void five_cpus(JobSpec *s)
{
    SET(s, cpus_per_task, 5);
}
static void huge_cpus(JobSpec *s)
{
    SET(s, cpus_per_task, 70000);
}
static void five_per_node(JobSpec *s)
{
    SET(s, min_nodes, 2);
    SET(s, ntasks_per_node, 5);
}
static void nomultithread(JobSpec *s)
{
    s->hint = (char *)"nomultithread";
    SET(s, ntasks, 9);
}
static void nomultithread_ok(JobSpec *s)
{
    s->hint = (char *)"nomultithread";
    SET(s, ntasks, 8);
}
static void too_much_mem(JobSpec *s)
{
    SET(s, mem_per_node_mb, 4001);
}
static void all_mem(JobSpec *s)
{
    SET(s, mem_per_node_mb, 0);
}
static void mem_per_cpu(JobSpec *s)
{
    SET(s, mem_per_cpu_mb, 2001);
    SET(s, cpus_per_task, 2);
}
static void tmp_disk(JobSpec *s)
{
    SET(s, tmp_disk_mb, 1);
}
static void sockets(JobSpec *s)
{
    SET(s, sockets_per_node, 2);
}
static void threads(JobSpec *s)
{
    SET(s, threads_per_core, 4);
}
static void three_gpus(JobSpec *s)
{
    with_gpus(s, 3, NULL, GRES_PER_NODE);
}
static void two_gpus(JobSpec *s)
{
    with_gpus(s, 2, "mi300x", GRES_PER_NODE);
}
static void other_gpus(JobSpec *s)
{
    with_gpus(s, 1, "h100", GRES_PER_NODE);
}
static void gpus_for_job(JobSpec *s)
{
    with_gpus(s, 4, NULL, GRES_PER_JOB);
    SET(s, ntasks, 4);
}
static void gpus_for_job_bad(JobSpec *s)
{
    with_gpus(s, 5, NULL, GRES_PER_JOB);
    SET(s, ntasks, 5);
}
static void gpus_of_two_nodes(JobSpec *s)
{
    with_gpus(s, 4, NULL, GRES_PER_JOB);
}
static void gpus_of_two_nodes_bad(JobSpec *s)
{
    with_gpus(s, 4, NULL, GRES_PER_JOB);
    SET(s, min_nodes, 1);
    SET(s, max_nodes, 1);
}
static void fewer_gpus_than_nodes(JobSpec *s)
{
    with_gpus(s, 1, NULL, GRES_PER_JOB);
    SET(s, min_nodes, 2);
}
static void gpus_both_ways(JobSpec *s)
{
    two_ways(s, 4, GRES_PER_JOB, 2, GRES_PER_NODE);
}
static void gpus_no_multiple(JobSpec *s)
{
    two_ways(s, 3, GRES_PER_JOB, 2, GRES_PER_NODE);
}
static void gpus_other_nodes(JobSpec *s)
{
    two_ways(s, 4, GRES_PER_JOB, 2, GRES_PER_NODE);
    SET(s, min_nodes, 1);
    SET(s, max_nodes, 1);
}
static void gpus_make_tasks(JobSpec *s)
{
    two_ways(s, 4, GRES_PER_JOB, 2, GRES_PER_TASK);
}
static void gpus_other_tasks(JobSpec *s)
{
    two_ways(s, 4, GRES_PER_JOB, 2, GRES_PER_TASK);
    SET(s, ntasks, 3);
}
static void gpus_again(JobSpec *s)
{
    two_ways(s, 2, GRES_PER_NODE, 2, GRES_PER_NODE);
}
static void gpus_with_and_without_type(JobSpec *s)
{
    two_ways(s, 1, GRES_PER_NODE, 1, GRES_PER_NODE);
    gpu_more.type = (char *)"mi300x";
}
static void gpus_of_sockets(JobSpec *s)
{
    with_gpus(s, 1, NULL, GRES_PER_SOCKET);
}
static void cpus_two_ways(JobSpec *s)
{
    with_gpus(s, 1, NULL, GRES_PER_NODE);
    SET(s, cpus_per_gpu, 1);
    SET(s, cpus_per_task, 1);
}
static void memory_of_no_gpu(JobSpec *s)
{
    SET(s, mem_per_gpu_mb, 100);
}
static void tasks_of_no_gpu(JobSpec *s)
{
    SET(s, ntasks_per_gpu, 2);
}
static void tasks_of_half_a_gpu(JobSpec *s)
{
    SET(s, ntasks_per_gpu, 2);
    SET(s, ntasks, 3);
}
static void gpus_per_task(JobSpec *s)
{
    with_gpus(s, 1, NULL, GRES_PER_TASK);
    SET(s, ntasks, 4);
}
static void memory_of_gpus_of_tasks(JobSpec *s)
{
    gpus_per_task(s);
    SET(s, mem_per_gpu_mb, 100);
}
static void gpus_per_task_bad(JobSpec *s)
{
    with_gpus(s, 1, NULL, GRES_PER_TASK);
    SET(s, ntasks, 5);
}
static void strange_gres(JobSpec *s)
{
    with_gpus(s, 1, NULL, GRES_PER_NODE);
    gpu_any.name = (char *)"fpga";
}
static void prefers_nothing_known(JobSpec *s)
{
    s->prefer = (char *)"nosuch";
}
static void even(JobSpec *s)
{
    s->features = (char *)"even&ib";
    SET(s, min_nodes, 2);
}
static void even_three(JobSpec *s)
{
    s->features = (char *)"even";
    SET(s, min_nodes, 3);
}
static void either(JobSpec *s)
{
    s->features = (char *)"odd|even";
    SET(s, min_nodes, 4);
}
static void grouped(JobSpec *s)
{
    s->features = (char *)"(odd|even)&ib";
    SET(s, min_nodes, 3);
}
static void bad_feature(JobSpec *s)
{
    s->features = (char *)"purple";
}
static void bad_expression(JobSpec *s)
{
    s->features = (char *)"odd&";
}
static void bad_parenthesis(JobSpec *s)
{
    s->features = (char *)"(odd";
}
static void counted_feature(JobSpec *s)
{
    s->features = (char *)"odd*2";
    SET(s, min_nodes, 3);
}
static void counted_too_high(JobSpec *s)
{
    s->features = (char *)"[odd*3&even*1]";
}
static void counted_both(JobSpec *s)
{
    s->features = (char *)"[odd*2&even*2]";
}
static void counted_badly(JobSpec *s)
{
    s->features = (char *)"odd*x";
}
static void one_kind(JobSpec *s)
{
    s->features = (char *)"[odd|even]";
    SET(s, min_nodes, 2);
}
static void one_kind_of_three(JobSpec *s)
{
    s->features = (char *)"[odd|even]";
    SET(s, min_nodes, 3);
}
static void open_bracket(JobSpec *s)
{
    s->features = (char *)"[odd|even";
}
static void mixed_brackets(JobSpec *s)
{
    s->features = (char *)"[odd|even]&odd*2";
}
static void half_a_segment(JobSpec *s)
{
    SET(s, segment, 2);
}
static void tres_of_tasks(JobSpec *s)
{
    s->tres_per_task = (char *)"cpu=2,mem=1G,gres/gpu:1";
    SET(s, ntasks, 1);
}
static void tres_of_no_tasks(JobSpec *s)
{
    s->tres_per_task = (char *)"gres/gpu:1";
}
static void tres_of_many(JobSpec *s)
{
    s->tres_per_task = (char *)"cpu=5";
}
static void odd_tres(JobSpec *s)
{
    s->tres_per_task = (char *)"cpu=2,happiness=7";
}
static void listed(JobSpec *s)
{
    s->nodelist = (char *)"n[1-2]";
}
static void listed_unknown(JobSpec *s)
{
    s->nodelist = (char *)"n9";
}
static void listed_bomb(JobSpec *s)
{
    s->nodelist = (char *)"n[1-999999999]";
}
static void listed_elsewhere(JobSpec *s)
{
    s->nodelist = (char *)"n3";
    s->partition = (char *)"small";
}
static void listed_too_many(JobSpec *s)
{
    s->nodelist = (char *)"n[1-3]";
    SET(s, max_nodes, 2);
}
static void excluded(JobSpec *s)
{
    s->exclude = (char *)"n[1-3]";
    SET(s, min_nodes, 2);
}
static void exclude_unknown(JobSpec *s)
{
    s->exclude = (char *)"n9";
}
static void no_time(JobSpec *s)
{
    SET(s, time_limit_s, 0);
}
static void negative_time(JobSpec *s)
{
    SET(s, time_limit_s, -5);
}
static void unlimited(JobSpec *s)
{
    SET(s, time_limit_s, -1);
}
static void endless(JobSpec *s)
{
    SET(s, time_limit_s, INT64_MAX);
}
static void min_over_max(JobSpec *s)
{
    SET(s, time_min_s, 7200);
}
static void long_in_small(JobSpec *s)
{
    s->partition = (char *)"small";
    SET(s, time_limit_s, 7200);
}
static void past_deadline(JobSpec *s)
{
    SET(s, deadline_us, 5);
}
static void no_dir(JobSpec *s)
{
    s->work_dir = NULL;
}
static void burst(JobSpec *s)
{
    s->burst_buffer = (char *)"x";
}
static void bad_licence(JobSpec *s)
{
    s->licenses = (char *)"matlab:0";
}
static void odd_array(JobSpec *s)
{
    s->array = (char *)"1-";
}
static void big_array(JobSpec *s)
{
    s->array = (char *)"0-100000";
}
static void long_name(JobSpec *s)
{
    static char name[4096];

    memset(name, 'x', sizeof(name) - 1);
    s->name = name;
}

static void submissions(void **unused)
{
    static const struct {
        const char *what;
        void (*change)(JobSpec *spec);
        enum err_code code;
    } rows[] = {
#define ROW(fn, code) { #fn, fn, code }
        ROW(fine, ERR_OK),
        ROW(no_partition, ERR_INVALID_PARTITION),
        ROW(second_unknown, ERR_INVALID_PARTITION),
        ROW(two_partitions, ERR_OK),
        ROW(node_range, ERR_NODE_COUNT),
        ROW(five_nodes, ERR_NODE_CONFIG_UNAVAILABLE),
        ROW(four_nodes, ERR_OK),
        ROW(too_many_tasks, ERR_NODE_CONFIG_UNAVAILABLE),
        ROW(sixteen_tasks, ERR_OK),
        ROW(tasks_in_two_nodes, ERR_NODE_CONFIG_UNAVAILABLE),
        ROW(huge_tasks, ERR_NODE_CONFIG_UNAVAILABLE),
        ROW(five_cpus, ERR_NODE_CONFIG_UNAVAILABLE),
        ROW(huge_cpus, ERR_CPU_COUNT),
        ROW(five_per_node, ERR_NODE_CONFIG_UNAVAILABLE),
        ROW(nomultithread, ERR_NODE_CONFIG_UNAVAILABLE),
        ROW(nomultithread_ok, ERR_OK),
        ROW(too_much_mem, ERR_NODE_CONFIG_UNAVAILABLE),
        ROW(all_mem, ERR_OK),
        ROW(mem_per_cpu, ERR_NODE_CONFIG_UNAVAILABLE),
        ROW(tmp_disk, ERR_NODE_CONFIG_UNAVAILABLE),
        ROW(sockets, ERR_NODE_CONFIG_UNAVAILABLE),
        ROW(threads, ERR_NODE_CONFIG_UNAVAILABLE),
        ROW(three_gpus, ERR_NODE_CONFIG_UNAVAILABLE),
        ROW(two_gpus, ERR_OK),
        ROW(other_gpus, ERR_NODE_CONFIG_UNAVAILABLE),
        ROW(gpus_for_job, ERR_OK),
        ROW(gpus_for_job_bad, ERR_NODE_CONFIG_UNAVAILABLE),
        ROW(gpus_of_two_nodes, ERR_OK),
        ROW(gpus_of_two_nodes_bad, ERR_NODE_CONFIG_UNAVAILABLE),
        ROW(fewer_gpus_than_nodes, ERR_GRES),
        ROW(gpus_both_ways, ERR_OK),
        ROW(gpus_no_multiple, ERR_GRES),
        ROW(gpus_other_nodes, ERR_GRES),
        ROW(gpus_make_tasks, ERR_OK),
        ROW(gpus_other_tasks, ERR_GRES),
        ROW(gpus_again, ERR_OK),
        ROW(gpus_with_and_without_type, ERR_GRES),
        ROW(gpus_of_sockets, ERR_GRES),
        ROW(cpus_two_ways, ERR_GRES),
        ROW(memory_of_no_gpu, ERR_GRES),
        ROW(memory_of_gpus_of_tasks, ERR_OK),
        ROW(tasks_of_no_gpu, ERR_GRES),
        ROW(tasks_of_half_a_gpu, ERR_GRES),
        ROW(gpus_per_task, ERR_OK),
        ROW(gpus_per_task_bad, ERR_NODE_CONFIG_UNAVAILABLE),
        ROW(strange_gres, ERR_GRES),
        ROW(even, ERR_OK),
        ROW(even_three, ERR_NODE_CONFIG_UNAVAILABLE),
        ROW(either, ERR_OK),
        ROW(grouped, ERR_NODE_CONFIG_UNAVAILABLE),
        ROW(bad_feature, ERR_FEATURE),
        ROW(bad_expression, ERR_FEATURE),
        ROW(bad_parenthesis, ERR_FEATURE),
        ROW(counted_feature, ERR_OK),
        ROW(counted_too_high, ERR_NODE_CONFIG_UNAVAILABLE),
        ROW(counted_both, ERR_OK),
        ROW(counted_badly, ERR_FEATURE),
        ROW(one_kind, ERR_OK),
        ROW(one_kind_of_three, ERR_NODE_CONFIG_UNAVAILABLE),
        ROW(open_bracket, ERR_FEATURE),
        ROW(mixed_brackets, ERR_FEATURE),
        ROW(half_a_segment, ERR_OK),
        ROW(tres_of_tasks, ERR_OK),
        ROW(prefers_nothing_known, ERR_PREFER),
        ROW(tres_of_no_tasks, ERR_GRES),
        ROW(tres_of_many, ERR_NODE_CONFIG_UNAVAILABLE),
        ROW(odd_tres, ERR_TRES),
        ROW(listed, ERR_OK),
        ROW(listed_unknown, ERR_INVALID_NODE_NAME),
        ROW(listed_bomb, ERR_TOO_MANY),
        ROW(listed_elsewhere, ERR_NODES_NOT_IN_PARTITION),
        ROW(listed_too_many, ERR_NODE_COUNT),
        ROW(excluded, ERR_NODE_CONFIG_UNAVAILABLE),
        ROW(exclude_unknown, ERR_INVALID_NODE_NAME),
        ROW(no_time, ERR_TIME_LIMIT),
        ROW(negative_time, ERR_TIME_LIMIT),
        ROW(unlimited, ERR_OK),
        ROW(endless, ERR_TIME_LIMIT),
        ROW(min_over_max, ERR_TIME_MIN),
        ROW(long_in_small, ERR_OK), /* limits only delay unless they are enforced */
        ROW(past_deadline, ERR_INVALID_TIME),
        ROW(no_dir, ERR_WORK_DIR),
        ROW(burst, ERR_UNSUPPORTED),
        ROW(bad_licence, ERR_LICENSES),
        ROW(odd_array, ERR_ARRAY),
        ROW(big_array, ERR_ARRAY),
        ROW(long_name, ERR_PATH_TOO_LONG),
    };
    struct fix *fix = fix_new(4);

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        JobSpec spec = fix_spec();
        const JobSpec *components[1] = { &spec };
        JobOwner owner = JOB_OWNER__INIT;
        struct err err = { 0 };
        gpu_any.name = (char *)"gpu";
        SET(&owner, uid, 1000);
        rows[i].change(&spec);
        int before = core_admit_submit(fix->state, &owner, components, 1, fix->now, &err);
        uint32_t id = fix_submit(fix, &spec);
        enum err_code code = fix_answer(fix)->code;
        if (code != rows[i].code || before != -(int)code || (id != 0) != (code == ERR_OK))
            fail_msg("%s: %s, before %s (%s)", rows[i].what, err_name(code),
                     err_name((enum err_code) - before), err.text);
    }
    fix_free(fix);
}

static void partition_limits_refuse_or_delay(void **unused)
{
    static const struct {
        const char *enforce, *partitions;
        enum err_code code;
        unsigned reason;
    } rows[] = {
        { "NO", "small", ERR_OK, REASON_PART_TIME_LIMIT },
        { "ANY", "small", ERR_TIME_LIMIT, 0 },
        { "ALL", "small", ERR_TIME_LIMIT, 0 },
        { "NO", "small,main", ERR_OK, REASON_NONE },
        { "ANY", "small,main", ERR_OK, REASON_NONE },
        { "ALL", "small,main", ERR_TIME_LIMIT, 0 },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fix *fix = fix_new(2);
        Config *config = fix_config(2);
        config->enforce_part_limits = mem_strdup(rows[i].enforce);
        fix_reconfigure(fix, config, true);
        config__free_unpacked(config, NULL);
        JobSpec spec = fix_spec();
        spec.partition = (char *)(uintptr_t)rows[i].partitions;
        SET(&spec, time_limit_s, 7200);
        uint32_t id = fix_submit(fix, &spec);
        assert_int_equal(fix_answer(fix)->code, rows[i].code);
        if (id)
            assert_int_equal(fix_reason(fix, id), rows[i].reason);
        fix_free(fix);
    }
}

static enum err_code submit_to(const char *key, char **values, size_t count, uint32_t uid,
                               const char *account)
{
    struct fix *fix = fix_new(1);
    Config *config = fix_config(1);
    PartitionSpec *part = config->partitions[0];
    JobSpec spec = fix_spec();

    if (strcmp(key, "groups") == 0) {
        part->allow_groups = values;
        part->n_allow_groups = count;
    } else if (strcmp(key, "accounts") == 0) {
        part->allow_accounts = values;
        part->n_allow_accounts = count;
    } else if (strcmp(key, "deny") == 0) {
        part->deny_accounts = values;
        part->n_deny_accounts = count;
    } else if (strcmp(key, "root") == 0) {
        SET(part, root_only, true);
    }
    fix_reconfigure(fix, config, true);
    part->n_allow_groups = part->n_allow_accounts = part->n_deny_accounts = 0;
    part->allow_groups = part->allow_accounts = part->deny_accounts = NULL;
    config__free_unpacked(config, NULL);
    spec.account = (char *)(uintptr_t)account;
    fix_submit_as(fix, uid, &spec);
    enum err_code code = fix_answer(fix)->code;
    fix_free(fix);
    return code;
}

static void access_to_partitions(void **unused)
{
    char *users[] = { (char *)"staff", (char *)"users" }, *staff[] = { (char *)"staff" };
    char *number[] = { (char *)"100" }, *physics[] = { (char *)"physics" };

    assert_int_equal(submit_to("groups", users, 2, 1000, NULL), ERR_OK);
    assert_int_equal(submit_to("groups", staff, 1, 1000, NULL), ERR_PARTITION_GROUP);
    assert_int_equal(submit_to("groups", number, 1, 1000, NULL), ERR_OK);
    assert_int_equal(submit_to("accounts", physics, 1, 1000, "physics"), ERR_OK);
    assert_int_equal(submit_to("accounts", physics, 1, 1000, "art"), ERR_ACCOUNT);
    assert_int_equal(submit_to("deny", physics, 1, 1000, "physics"), ERR_ACCOUNT);
    assert_int_equal(submit_to("root", NULL, 0, 1000, NULL), ERR_PERMISSION);
    assert_int_equal(submit_to("root", NULL, 0, 0, NULL), ERR_OK);
}

static void root_and_full_queues(void **unused)
{
    struct fix *fix = fix_new(1);
    Config *config = fix_config(1);
    JobSpec spec = fix_spec();

    SET(config, disable_root_jobs, true);
    SET(config, max_job_count, 3);
    fix_reconfigure(fix, config, true);
    assert_int_equal(fix_submit_as(fix, 0, &spec), 0);
    assert_int_equal(fix_answer(fix)->code, ERR_PERMISSION);
    assert_int_not_equal(fix_job(fix), 0);
    spec.array = (char *)"1-3";
    assert_int_equal(fix_submit(fix, &spec), 0);
    assert_int_equal(fix_answer(fix)->code, ERR_MAX_JOB_COUNT);
    spec.array = (char *)"1-2";
    assert_int_not_equal(fix_submit(fix, &spec), 0);
    assert_int_equal(fix_job(fix), 0);
    assert_int_equal(fix_answer(fix)->code, ERR_MAX_JOB_COUNT);
    config__free_unpacked(config, NULL);
    fix_free(fix);
}

static void updates_are_admitted_like_submissions(void **unused)
{
    struct fix *fix = fix_new(2);
    uint32_t id = fix_job(fix);
    JobSpec change = JOB_SPEC__INIT;

    SET(&change, min_nodes, 9);
    assert_int_equal(fix_update(fix, id, &change, true), ERR_NODE_CONFIG_UNAVAILABLE);
    assert_int_equal(fix_get(fix, id)->shape->min_nodes, 1);
    SET(&change, min_nodes, 2);
    assert_int_equal(fix_update(fix, id, &change, false), ERR_OK);
    assert_int_equal(fix_get(fix, id)->shape->min_nodes, 2);
    change = (JobSpec)JOB_SPEC__INIT;
    SET(&change, time_limit_s, 7200);
    assert_int_equal(fix_update(fix, id, &change, false), ERR_PERMISSION);
    assert_int_equal(fix_update(fix, id, &change, true), ERR_OK);
    assert_int_equal(fix_get(fix, id)->time_limit_s, 7200);
    change = (JobSpec)JOB_SPEC__INIT;
    SET(&change, priority, UINT32_MAX);
    assert_int_equal(fix_update(fix, id, &change, false), ERR_PERMISSION);
    SET(&change, priority, 0); /* Slurm's way to say hold */
    assert_int_equal(fix_update(fix, id, &change, false), ERR_OK);
    assert_int_equal(fix_get(fix, id)->hold, 1);
    fix_hold(fix, id, 0, false);
    change = (JobSpec)JOB_SPEC__INIT;
    SET(&change, min_nodes, 1);
    fix_update(fix, id, &change, false);
    fix_start(fix, id, "n1", 1);
    assert_int_equal(fix_update(fix, id, &change, true), ERR_OK); /* as many as it has */
    SET(&change, min_nodes, 2);
    assert_int_equal(fix_update(fix, id, &change, true), ERR_UNSUPPORTED);
    change = (JobSpec)JOB_SPEC__INIT;
    SET(&change, time_limit_s, 600);
    assert_int_equal(fix_update(fix, id, &change, false), ERR_OK);
    assert_int_equal(fix_events(fix, EVENT_JOB_CHANGED, NULL), 1);
    fix_finish(fix, id, 0);
    assert_int_equal(fix_update(fix, id, &change, true), ERR_JOB_FINISHED);
    change = (JobSpec)JOB_SPEC__INIT;
    change.comment = (char *)"was good";
    assert_int_equal(fix_update(fix, id, &change, false), ERR_OK);
    change.container = (char *)"x";
    assert_int_equal(fix_update(fix, id, &change, true), ERR_UNSUPPORTED);
    fix_free(fix);
}

static void shapes_are_shared(void **unused)
{
    struct fix *fix = fix_new(1);
    JobSpec spec = fix_spec();
    uint32_t a = fix_job(fix);
    spec.name = (char *)"another";
    spec.work_dir = (char *)"/elsewhere";
    uint32_t b = fix_submit(fix, &spec);
    SET(&spec, cpus_per_task, 2);
    uint32_t c = fix_submit(fix, &spec);

    assert_ptr_equal(fix_get(fix, a)->shape, fix_get(fix, b)->shape);
    assert_ptr_not_equal(fix_get(fix, a)->shape, fix_get(fix, c)->shape);
    fix_free(fix);
}

static void what_fits_is_what_is_taken(void **unused)
{
    struct fix *fix = fix_new(2);
    JobSpec spec = fix_spec();
    struct err err;

    spec.partition = (char *)"main";
    SET(&spec, ntasks, 3);
    SET(&spec, mem_per_cpu_mb, 100);
    with_gpus(&spec, 2, NULL, GRES_PER_JOB);
    struct shape *shape = shape_parse(fix->state, &spec, &err);
    const struct need *need = shape_needs(fix->state, shape);
    const struct node *node = state_node(fix->state, "n2");
    uint64_t free_gpus[TAKE_GRES] = { 2 };
    struct room room = { .cpus = 4, .mem_mb = 4000, .gres = free_gpus, .empty = true };
    struct take take;
    uint32_t tasks;

    assert_int_equal(fit_units(shape, need, node, &room), 2);
    fit_also(shape, need, node, &room, &tasks);
    assert_int_equal(tasks, 3);
    fit_part(shape, need, node, &room, 2, &take);
    assert_int_equal(take.cpus, 4); /* whole cores */
    assert_int_equal(take.mem_mb, 400);
    assert_int_equal(take.gres[0], 2);
    /* One here and one elsewhere: tasks may be where they like. */
    fit_part(shape, need, node, &room, 1, &take);
    assert_int_equal(take.gres[0], 1);
    assert_int_equal(take.tasks, 1);
    room.cpus = 2;
    assert_int_equal(fit_units(shape, need, node, &room), 2);
    fit_also(shape, need, node, &room, &tasks);
    assert_int_equal(tasks, 2);
    free_gpus[0] = 1;
    assert_int_equal(fit_units(shape, need, node, &room), 1);
    room.mem_mb = 199;
    assert_int_equal(fit_units(shape, need, node, &room), 0);
    shape_free(shape);
    fix_free(fix);
}

UNIT_MAIN(UNIT(submissions), UNIT(partition_limits_refuse_or_delay), UNIT(access_to_partitions),
          UNIT(root_and_full_queues), UNIT(updates_are_admitted_like_submissions),
          UNIT(shapes_are_shared), UNIT(what_fits_is_what_is_taken))
