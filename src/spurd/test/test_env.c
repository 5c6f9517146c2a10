/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of a batch script, a prolog and an epilog, against what Slurm 26.11 sets. */
#include "test/unit.h"

#include "spurd/task/env.h"

/* As alice's jobs on an 8-node cluster; the expected lists are sorted. */
static JobOwner alice(void)
{
    JobOwner owner = JOB_OWNER__INIT;
    static char user[] = "alice";

    owner.uid = owner.gid = 2001;
    owner.user = user;
    return owner;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *text_of(const struct env_job *job, enum env_where where)
{
    struct arena arena;
    struct env env;
    struct str out = { 0 };

    arena_init(&arena);
    env_init(&env, &arena);
    env_fill(&env, job, where);
    qsort(env.list.items, env.list.len, sizeof(char *), by_text);
    for (size_t i = 0; i < env.list.len; i++)
        str_addf(&out, "%s\n", env.list.items[i]);
    env_done(&env);
    arena_done(&arena);
    return str_take(&out);
}

static void a_minimal_job(void **state)
{
    (void)state;
    JobOwner owner = alice();
    JobSpec spec = JOB_SPEC__INIT;
    NodeAlloc here = NODE_ALLOC__INIT;
    JobStatus status = JOB_STATUS__INIT;
    char name[] = "env.sh", dir[] = "/home/alice", part[] = "debug", qos[] = "normal",
         account[] = "physics", node[] = "node1";

    spec.name = name;
    spec.work_dir = dir;
    spec.partition = part;
    spec.has_mem_per_cpu_mb = true;
    spec.mem_per_cpu_mb = 500;
    status.qos = qos;
    status.account = account;
    here.node = node;
    here.cpus = here.tasks = 1;
    struct env_job job = { .job_id = 1,
                           .attempt = 1,
                           .owner = &owner,
                           .spec = &spec,
                           .status = &status,
                           .here = &here,
                           .node = "node1",
                           .cluster = "peer",
                           .start_us = INT64_C(1794767535) * 1000000,
                           .time_limit_s = 600 };
    char *text = text_of(&job, ENV_BATCH);
    assert_string_equal(text, "ENVIRONMENT=BATCH\nHOSTNAME=node1\n"
                              "OMPI_MCA_plm_slurm_args=--external-launcher\nPWD=/home/alice\n"
                              "SLURMD_NODENAME=node1\nSLURM_CLUSTER_NAME=peer\n"
                              "SLURM_CPUS_ON_NODE=1\nSLURM_GTIDS=0\nSLURM_JOBID=1\n"
                              "SLURM_JOB_ACCOUNT=physics\nSLURM_JOB_CPUS_PER_NODE=1\n"
                              "SLURM_JOB_END_TIME=1794768135\nSLURM_JOB_EXCLUSIVE=NO\n"
                              "SLURM_JOB_GID=2001\nSLURM_JOB_ID=1\nSLURM_JOB_NAME=env.sh\n"
                              "SLURM_JOB_NODELIST=node1\nSLURM_JOB_NUM_NODES=1\n"
                              "SLURM_JOB_OVERSUBSCRIBE=NO\nSLURM_JOB_PARTITION=debug\n"
                              "SLURM_JOB_QOS=normal\nSLURM_JOB_START_TIME=1794767535\n"
                              "SLURM_JOB_UID=2001\nSLURM_JOB_USER=alice\nSLURM_LOCALID=0\n"
                              "SLURM_MEM_PER_CPU=500\nSLURM_NNODES=1\nSLURM_NODEID=0\n"
                              "SLURM_NODELIST=node1\nSLURM_OOM_KILL_STEP=0\nSLURM_PRIO_PROCESS=0\n"
                              "SLURM_PROCID=0\nSLURM_RESTART_COUNT=0\nSLURM_STEPID=-5\n"
                              "SLURM_STEP_ID=-5\nSLURM_TASKS_PER_NODE=1\n"
                              "SLURM_TOPOLOGY_ADDR=node1\nSLURM_TOPOLOGY_ADDR_PATTERN=node\n"
                              "SPUR_JOB=1.1\n");
    free(text);
}

static void has_line(const char *text, const char *line)
{
    char *whole = mem_printf("\n%s\n", line);

    if (!strstr(text, whole) && strncmp(text, whole + 1, strlen(whole) - 1) != 0)
        fail_msg("'%s' is not in:\n%s", line, text);
    free(whole);
}

static void a_job_on_several_nodes(void **state)
{
    (void)state;
    JobOwner owner = alice();
    JobSpec spec = JOB_SPEC__INIT;
    JobStatus status = JOB_STATUS__INIT;
    Allocation allocation = ALLOCATION__INIT;
    NodeAlloc nodes[4];
    NodeAlloc *list[4];
    char names[4][8], part[] = "batch", hint[] = "nomultithread", array[] = "1-9:2%2",
                      plane[] = "plane=4";

    for (int i = 0; i < 4; i++) {
        node_alloc__init(&nodes[i]);
        snprintf(names[i], sizeof(names[i]), "node%d", i + 1);
        nodes[i].node = names[i];
        nodes[i].cpus = i == 3 ? 8 : 4;
        nodes[i].tasks = i == 3 ? 1 : 2;
        list[i] = &nodes[i];
    }
    allocation.n_nodes = 4;
    allocation.nodes = list;
    allocation.partition = part;
    spec.has_ntasks = spec.has_cpus_per_task = spec.has_ntasks_per_node = true;
    spec.ntasks = 7;
    spec.cpus_per_task = 2;
    spec.ntasks_per_node = 2;
    spec.hint = hint;
    spec.array = array;
    spec.distribution = plane;
    spec.has_mem_per_node_mb = true;
    spec.mem_per_node_mb = 200;
    status.has_array_job_id = status.has_array_task_id = status.has_restarts = true;
    status.array_job_id = 9;
    status.array_task_id = 5;
    status.restarts = 2;
    struct env_job job = { .job_id = 10,
                           .attempt = 3,
                           .owner = &owner,
                           .spec = &spec,
                           .status = &status,
                           .allocation = &allocation,
                           .here = &nodes[0],
                           .node = "node1",
                           .topology = "s0.s1.node1",
                           .time_limit_s = -1 };
    char *text = text_of(&job, ENV_BATCH);
    static const char *const lines[] = {
        "SLURM_JOB_NODELIST=node[1-4]",
        "SLURM_NODELIST=node[1-4]",
        "SLURM_JOB_NUM_NODES=4",
        "SLURM_JOB_CPUS_PER_NODE=4(x3),8",
        "SLURM_TASKS_PER_NODE=2(x3),1",
        "SLURM_CPUS_ON_NODE=4",
        "SLURM_NTASKS=7",
        "SLURM_NPROCS=7",
        "SLURM_NTASKS_PER_NODE=2",
        "SLURM_CPUS_PER_TASK=2",
        "SLURM_TRES_PER_TASK=cpu=2",
        "SLURM_MEM_PER_NODE=200",
        "SLURM_HINT=nomultithread",
        "SLURM_DIST_PLANESIZE=4",
        "SLURM_ARRAY_JOB_ID=9",
        "SLURM_ARRAY_TASK_ID=5",
        "SLURM_ARRAY_TASK_COUNT=5",
        "SLURM_ARRAY_TASK_MIN=1",
        "SLURM_ARRAY_TASK_MAX=9",
        "SLURM_ARRAY_TASK_STEP=2",
        "SLURM_RESTART_COUNT=2",
        "SLURM_JOB_PARTITION=batch",
        "SLURM_TOPOLOGY_ADDR=s0.s1.node1",
        "SLURM_TOPOLOGY_ADDR_PATTERN=switch.switch.node",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        has_line(text, lines[i]);
    assert_null(strstr(text, "SLURM_JOB_END_TIME"));
    assert_null(strstr(text, "MEM_PER_CPU"));
    free(text);
}

static void gpus_by_their_make(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        const char *set, *not_set;
    } cases[] = {
        { NULL, "CUDA_VISIBLE_DEVICES=1,2,3,6", "SLURM_GPUS=" },
        { NULL, "ZE_AFFINITY_MASK=1,2,3,6", "HIP_VISIBLE_DEVICES" },
        { "/dev/dri/renderD128", "ROCR_VISIBLE_DEVICES=1,2,3,6", "CUDA_VISIBLE_DEVICES" },
        { "/dev/dri/renderD128", "HIP_VISIBLE_DEVICES=0,1,2,3", "ZE_AFFINITY_MASK" },
        { "/dev/nvidia0", "CUDA_VISIBLE_DEVICES=1,2,3,6", "ROCR_VISIBLE_DEVICES" },
    };
    JobOwner owner = alice();
    JobSpec spec = JOB_SPEC__INIT;
    NodeAlloc here = NODE_ALLOC__INIT;
    GresAlloc given[2] = { GRES_ALLOC__INIT, GRES_ALLOC__INIT };
    GresAlloc *given_list[] = { &given[0], &given[1] };
    char gpu[] = "gpu", first[] = "1-3", second[] = "6", node[] = "n";
    NodeInventory found = NODE_INVENTORY__INIT;
    GresInventory has = GRES_INVENTORY__INIT;
    GresInventory *has_list[] = { &has };

    given[0].name = given[1].name = has.name = gpu;
    given[0].index = first;
    given[0].count = 3;
    given[1].index = second;
    given[1].count = 1;
    here.node = node;
    here.n_gres = 2;
    here.gres = given_list;
    found.n_gres = 1;
    found.gres = has_list;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char file[64], *files[] = { file };
        snprintf(file, sizeof(file), "%s", cases[i].file ? cases[i].file : "");
        has.n_files = cases[i].file ? 1 : 0;
        has.files = files;
        struct env_job job = { .owner = &owner,
                               .spec = &spec,
                               .here = &here,
                               .found = &found,
                               .node = "n",
                               .time_limit_s = -1 };
        char *text = text_of(&job, ENV_BATCH);
        has_line(text, cases[i].set);
        has_line(text, "SLURM_GPUS_ON_NODE=4");
        has_line(text, "SLURM_JOB_GPUS=1,2,3,6");
        assert_null(strstr(text, cases[i].not_set));
        free(text);
    }
}

static void prolog_and_epilog(void **state)
{
    (void)state;
    JobOwner owner = alice();
    JobSpec spec = JOB_SPEC__INIT;
    NodeAlloc here = NODE_ALLOC__INIT;
    StepEnded ended = STEP_ENDED__INIT;
    char dir[] = "/home/alice", comment[] = "hello";

    spec.work_dir = dir;
    spec.comment = comment;
    ended.exit_status = 3 << 8;
    struct env_job job = { .job_id = 7,
                           .owner = &owner,
                           .spec = &spec,
                           .here = &here,
                           .node = "n1",
                           .std_out = "/home/alice/o",
                           .time_limit_s = -1,
                           .ended = &ended };
    char *text = text_of(&job, ENV_PROLOG);
    has_line(text, "SLURM_SCRIPT_CONTEXT=prolog_slurmd");
    has_line(text, "SLURM_JOB_STDERR=/home/alice/o");
    has_line(text, "SLURM_JOB_COMMENT=hello");
    assert_null(strstr(text, "EXIT_CODE"));
    assert_null(strstr(text, "SLURM_PROCID"));
    free(text);
    text = text_of(&job, ENV_EPILOG);
    has_line(text, "SLURM_SCRIPT_CONTEXT=epilog_slurmd");
    has_line(text, "SLURM_JOB_EXIT_CODE=768");
    has_line(text, "SLURM_JOB_EXIT_CODE2=3:0");
    free(text);
}

static void array_texts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool ok;
        struct env_array want;
    } cases[] = {
        { "1-3%2", true, { 3, 1, 3, 1 } },
        { "0-99:2%5", true, { 50, 0, 98, 2 } },
        { "7", true, { 1, 7, 7, 1 } },
        { "1,3,5", true, { 3, 1, 5, 2 } },
        { "1,3,6", true, { 3, 1, 6, 1 } },
        { "1-3,2-5", true, { 5, 1, 5, 1 } },
        { "0-4000000", true, { 4000001, 0, 4000000, 1 } },
        { "", false, { 0 } },
        { "x", false, { 0 } },
        { "5-3", false, { 0 } },
        { "1-4:0", false, { 0 } },
        { "1-99999999", false, { 0 } },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct env_array got = { 0 };
        assert_int_equal(env_read_array(cases[i].text, &got), cases[i].ok);
        if (cases[i].ok)
            assert_true(got.count == cases[i].want.count && got.min == cases[i].want.min &&
                        got.max == cases[i].want.max && got.step == cases[i].want.step);
    }
}

static void components_of_a_heterogeneous_job(void **state)
{
    (void)state;
    JobOwner owner = alice();
    char batch[] = "batch", debug[] = "debug", name[] = "het.sh", node1[] = "node1",
         node2[] = "node2", node3[] = "node3";
    NodeAlloc nodes[3] = { NODE_ALLOC__INIT, NODE_ALLOC__INIT, NODE_ALLOC__INIT };
    NodeAlloc *lists[2][2] = { { &nodes[2] }, { &nodes[0], &nodes[1] } };
    Allocation allocations[2] = { ALLOCATION__INIT, ALLOCATION__INIT };
    JobSpec specs[2] = { JOB_SPEC__INIT, JOB_SPEC__INIT };
    JobStatus status[2] = { JOB_STATUS__INIT, JOB_STATUS__INIT };
    Job jobs[2] = { JOB__INIT, JOB__INIT }, *components[] = { &jobs[0], &jobs[1] };
    struct env_job about = { .job_id = 11, .owner = &owner, .spec = &specs[0] };
    struct arena arena;
    struct env env;

    nodes[0].node = node1;
    nodes[1].node = node2;
    nodes[2].node = node3;
    for (size_t i = 0; i < 3; i++)
        nodes[i].cpus = nodes[i].tasks = 1;
    for (uint32_t i = 0; i < 2; i++) {
        allocations[i].nodes = lists[i];
        allocations[i].n_nodes = i + 1;
        allocations[i].partition = i ? debug : batch;
        status[i].allocation = &allocations[i];
        specs[i].name = name;
        specs[i].has_ntasks = specs[i].has_mem_per_node_mb = true;
        specs[i].ntasks = i + 1;
        specs[i].mem_per_node_mb = i ? 50 : 100;
        jobs[i].id = 11 + i;
        jobs[i].spec = &specs[i];
        jobs[i].status = &status[i];
    }
    arena_init(&arena);
    env_init(&env, &arena);
    env_fill_het(&env, &about, components, 1);
    assert_int_equal(env.list.len, 0); /* one alone is no heterogeneous job */
    env_fill_het(&env, &about, components, 2);
    static const char *const wanted[][2] = {
        { "SLURM_HET_SIZE", "2" },
        { "SLURM_PACK_SIZE", "2" },
        { "SLURM_JOB_ID_HET_GROUP_0", "11" },
        { "SLURM_JOB_ID_HET_GROUP_1", "12" },
        { "SLURM_JOB_ID_PACK_GROUP_1", "12" },
        { "SLURM_JOB_PARTITION_HET_GROUP_0", "batch" },
        { "SLURM_JOB_PARTITION_HET_GROUP_1", "debug" },
        { "SLURM_JOB_NODELIST_HET_GROUP_0", "node3" },
        { "SLURM_JOB_NODELIST_HET_GROUP_1", "node[1-2]" },
        { "SLURM_JOB_NUM_NODES_HET_GROUP_1", "2" },
        { "SLURM_JOB_CPUS_PER_NODE_HET_GROUP_1", "1(x2)" },
        { "SLURM_TASKS_PER_NODE_HET_GROUP_1", "1(x2)" },
        { "SLURM_NTASKS_HET_GROUP_0", "1" },
        { "SLURM_NPROCS_PACK_GROUP_1", "2" },
        { "SLURM_MEM_PER_NODE_HET_GROUP_0", "100" },
        { "SLURM_MEM_PER_NODE_HET_GROUP_1", "50" },
    };
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        const char *value = env_get(&env, wanted[i][0]);
        assert_non_null(value);
        assert_string_equal(value, wanted[i][1]);
    }
    assert_null(env_get(&env, "SLURM_JOB_ID_HET_GROUP_2"));
    assert_null(env_get(&env, "SLURM_PROCID_HET_GROUP_0"));
    env_done(&env);
    arena_done(&arena);
}

static void the_last_value_counts(void **state)
{
    (void)state;
    struct arena arena;
    struct env env;
    char name[32], value[32];

    arena_init(&arena);
    env_init(&env, &arena);
    assert_null(env_get(&env, "A"));
    env_put(&env, "A=1", 3);
    env_put(&env, "nothing", 7);
    env_put(&env, "=x", 2);
    env_put(&env, "N=a\0b", 5);
    env_put(&env, "B=x=y", 5);
    env_set(&env, "A", "2");
    assert_string_equal(env_get(&env, "A"), "2");
    assert_null(env_get(&env, "N"));
    char **list = env_copy(&env);
    assert_string_equal(list[0], "A=2");
    assert_string_equal(list[1], "B=x=y");
    assert_null(list[2]);
    env_list_free(list);
    for (int round = 0; round < 2; round++) { /* more than the first table holds */
        for (int i = 0; i < 5000; i++) {
            snprintf(name, sizeof(name), "V%d", i);
            snprintf(value, sizeof(value), "%d", i + round);
            env_set(&env, name, value);
        }
    }
    assert_int_equal(env.list.len, 5002);
    assert_string_equal(env_get(&env, "V4999"), "5000");
    assert_null(env_get(&env, "V"));
    env_done(&env);
    arena_done(&arena);
}

static void where_training_meets(void **state)
{
    (void)state;
    static const struct {
        const char *address, *host;
    } rows[] = {
        { "http://10.0.0.7:6818", "10.0.0.7" },
        { "http://[fd00::1]:6818", "fd00::1" },
        { "host", "host" },
        { "", "node7" },
        { NULL, "node7" },
    };
    struct str out = { 0 };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        str_clear(&out);
        assert_true(env_ml_host(rows[i].address, "node7", &out));
        assert_string_equal(str_text(&out), rows[i].host);
    }
    str_done(&out);
    assert_int_equal(env_ml_port(1, 0), 20001);
    assert_int_equal(env_ml_port(12000, 0), 20000);
    assert_true(env_ml_port(5, 0) != env_ml_port(5, 1));
    assert_true(env_ml_port(UINT32_MAX, UINT32_MAX) < 32000);
}

UNIT_MAIN(UNIT(a_minimal_job), UNIT(a_job_on_several_nodes), UNIT(gpus_by_their_make),
          UNIT(prolog_and_epilog), UNIT(array_texts), UNIT(components_of_a_heterogeneous_job),
          UNIT(the_last_value_counts), UNIT(where_training_meets))
