// SPDX-License-Identifier: Apache-2.0
/*
 * sample.c - builds the recorded jobs, nodes and partitions as messages
 */
#include "sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/util.h"
#include "schema/reasons.h"
#include "wire/set.h"

enum { SECOND = 1000000 };

/* Seconds are after SAMPLE_START_US; -1 means none. */
static const struct sample {
    uint32_t id;
    const char *name, *user, *account, *partition, *qos, *nodes, *asked_nodes, *excluded;
    uint32_t priority, cpus, tasks, node_count, max_nodes;
    uint64_t mem_mb; /* of all nodes, DefMemPerCPU=500 */
    uint64_t mem_per_node;
    int64_t limit_s, submit, eligible, start, sched, accrue;
    JobState state;
    uint32_t reason;
    const char *line;
} jobs[] = {
    /* clang-format off */
    { 133, "twonodes", "alice", "physics", "batch", "normal", "node2,node3", "node[2-3]", NULL, 10575, 8, 8, 2, 0, 4000, 0, 5400, 0, 0, 0, 0, 0, JOB_RUNNING, REASON_NONE,
      "-J twonodes -p batch -N2 -n8 -w node[2-3] -t 1:30:00 --comment=a comment --mail-type=END --mail-user=alice@example.org -o w/tn-%j.out -e w/tn-%j.err" },
    { 134, "gpujob", "alice", "physics", "gpu", "normal", "node7", NULL, NULL, 13796, 2, 2, 1, 0, 1000, 0, 86400, 0, 0, 0, 0, 0, JOB_RUNNING, REASON_NONE,
      "-J gpujob -p gpu --gres=gpu:a100:2 -n2 -t 1-00:00:00 -L matlab:2 -o /dev/null" },
    { 136, "arr", "alice", "physics", "batch", "normal", NULL, "node5", NULL, 10270, 1, 1, 1, 0, 500, 0, 3600, 0, -1, -1, 0, -1, JOB_PENDING, REASON_ARRAY_TASK_LIMIT,
      "-J arr -p batch -w node5 -a 1-20:2%2 -o /dev/null" },
    { 137, "arr", "alice", "physics", "batch", "normal", "node5", "node5", NULL, 10270, 1, 1, 1, 0, 500, 0, 3600, 0, 0, 0, 0, -1, JOB_RUNNING, REASON_NONE,
      "-J arr -p batch -w node5 -a 1-20:2%2 -o /dev/null" },
    { 138, "arr", "alice", "physics", "batch", "normal", "node5", "node5", NULL, 10270, 1, 1, 1, 0, 500, 0, 3600, 0, 0, 0, 0, -1, JOB_RUNNING, REASON_NONE,
      "-J arr -p batch -w node5 -a 1-20:2%2 -o /dev/null" },
    { 140, "hetero", "alice", "physics", "batch", "normal", "node8", "node8", "node5", 10270, 1, 1, 1, 0, 500, 0, 3600, 0, 0, 30, 30, 0, JOB_RUNNING, REASON_NONE,
      "-J hetero -p batch -n1 -w node5 -o /dev/null : -p batch -n1 -w node8 -o /dev/null" },
    { 141, "susp", "alice", "physics", "batch", "normal", "node1", "node1", NULL, 0, 1, 1, 1, 0, 100, 100, 3600, 0, 0, 30, 30, 0, JOB_SUSPENDED, REASON_NONE,
      "-J susp -p batch -w node1 -n1 --mem=100 -o /dev/null" },
    { 142, "bigpend", "alice", "physics", "batch", "normal", NULL, NULL, NULL, 10692, 7, 7, 7, 7, 3500, 0, 3600, 31, 31, -1, 33, 31, JOB_PENDING, REASON_PRIORITY,
      "-J bigpend -p batch -N7 --exclusive -t 1:00:00 -o /dev/null" },
    { 143, "prio", "bob", "physics", "batch", "normal", NULL, NULL, NULL, 10900, 16, 16, 4, 4, 8000, 0, 10800, 31, 31, -1, 33, 31, JOB_PENDING, REASON_PRIORITY,
      "-J prio -p batch -N4 -n16 --nice=50 -t 3:00:00 -o /dev/null" },
    { 145, "adminheld", "alice", "physics", "debug", "normal", NULL, NULL, NULL, 0, 1, 1, 1, 1, 500, 0, 600, 31, -1, -1, 31, -1, JOB_PENDING, REASON_HELD_ADMIN,
      "-J adminheld -H -o /dev/null" },
    { 146, "dep", "alice", "physics", "debug", "normal", NULL, NULL, NULL, 10364, 1, 1, 1, 0, 500, 0, 600, 31, -1, -1, 31, -1, JOB_PENDING, REASON_DEPENDENCY,
      "-J dep -d afterok:133:134,singleton -o /dev/null" },
    { 147, "depnever", "alice", "physics", "debug", "normal", NULL, NULL, NULL, 10364, 1, 1, 1, 0, 500, 0, 600, 31, -1, -1, 31, -1, JOB_PENDING, REASON_DEP_INVALID,
      "-J depnever -d afterok:131 -o /dev/null" },
    { 148, "later", "alice", "physics", "debug", "normal", NULL, NULL, NULL, 10364, 1, 1, 1, 0, 500, 0, 600, 31, -1, -1, 31, -1, JOB_PENDING, REASON_BEGIN_TIME,
      "-J later --begin=now+3hours -o /dev/null" },
    { 149, "lic", "alice", "physics", "batch", "normal", NULL, NULL, NULL, 10270, 1, 1, 1, 0, 500, 0, 3600, 31, 31, -1, 33, 31, JOB_PENDING, REASON_PRIORITY,
      "-J lic -p batch -L ansys:2,matlab:10 -o /dev/null" },
    { 152, "drained", "alice", "physics", "batch", "normal", NULL, "node6", NULL, 10270, 1, 1, 1, 1, 500, 0, 3600, 31, 31, -1, 33, 31, JOB_PENDING, REASON_NODE_NOT_AVAIL,
      "-J drained -p batch -w node6 -o /dev/null" },
    /* clang-format on */
};

static void set_time(protobuf_c_boolean *has, int64_t *at, int64_t seconds)
{
    *has = seconds >= 0;
    *at = seconds >= 0 ? SAMPLE_START_US + seconds * SECOND : 0;
}

static JobSpec *make_spec(const struct sample *row)
{
    JobSpec *spec = NEW(JobSpec);

    job_spec__init(spec);
    spec->name = mem_strdup(row->name);
    spec->account = mem_strdup(row->account);
    spec->partition = mem_strdup(row->partition);
    spec->nodelist = mem_strdup(row->asked_nodes);
    spec->exclude = mem_strdup(row->excluded);
    if (row->max_nodes)
        SET(spec, max_nodes, row->max_nodes);
    if (row->mem_per_node)
        SET(spec, mem_per_node_mb, row->mem_per_node);
    else
        SET(spec, mem_per_cpu_mb, 500);
    SET(spec, batch, true);
    SET(spec, alloc_sid, 17721);
    spec->alloc_node = mem_strdup("localhost");
    spec->work_dir = mem_printf("/home/%s", row->user);
    spec->std_out = mem_strdup("/dev/null");
    spec->submit_line = mem_printf("sbatch --parsable %s --wrap sleep 600", row->line);
    return spec;
}

static Allocation *make_allocation(const struct sample *row)
{
    Allocation *given = NEW(Allocation);
    const char *cursor = row->nodes;
    struct span word;

    allocation__init(given);
    given->nodes = NEW_ARRAY(NodeAlloc *, row->node_count);
    while (str_next(&cursor, ",", &word)) {
        NodeAlloc *part = NEW(NodeAlloc);

        node_alloc__init(part);
        part->node = mem_strndup(word.ptr, word.len);
        SET(part, cpus, row->cpus / row->node_count);
        SET(part, mem_mb, row->mem_mb / row->node_count);
        part->cpu_ids = mem_printf("0-%u", row->cpus / row->node_count - 1);
        given->nodes[given->n_nodes++] = part;
    }
    return given;
}

static JobStatus *make_status(const struct sample *row)
{
    JobStatus *status = NEW(JobStatus);

    job_status__init(status);
    SET(status, state, row->state);
    SET(status, reason, row->reason);
    SET(status, priority, row->priority);
    SET(status, num_nodes, row->node_count);
    SET(status, num_cpus, row->cpus);
    SET(status, num_tasks, row->tasks);
    SET(status, mem_mb, row->mem_mb);
    SET(status, time_limit_s, row->limit_s);
    set_time(&status->has_submit_us, &status->submit_us, row->submit);
    set_time(&status->has_eligible_us, &status->eligible_us, row->eligible);
    set_time(&status->has_start_us, &status->start_us, row->start);
    set_time(&status->has_last_sched_us, &status->last_sched_us, row->sched);
    set_time(&status->has_accrue_us, &status->accrue_us, row->accrue);
    status->partition = mem_strdup(row->partition);
    status->qos = mem_strdup(row->qos);
    status->tres_req = mem_printf("cpu=%u,mem=%lluM,node=%u,billing=%u", row->cpus,
                                  (unsigned long long)row->mem_mb, row->node_count, row->cpus);
    if (row->nodes) {
        status->allocation = make_allocation(row);
        status->tres_alloc = mem_strdup(status->tres_req);
    }
    return status;
}

static void append(char **text, const char *more)
{
    char *longer = mem_printf("%s%s", *text, more);

    free(*text);
    *text = longer;
}

static void give_gpus(Job *job)
{
    GresRequest *asked = NEW(GresRequest);
    GresAlloc *given = NEW(GresAlloc);
    NodeAlloc *part = job->status->allocation->nodes[0];

    gres_request__init(asked);
    asked->name = mem_strdup("gpu");
    asked->type = mem_strdup("a100");
    SET(asked, count, 2);
    job->spec->gres = NEW_ARRAY(GresRequest *, 1);
    job->spec->gres[job->spec->n_gres++] = asked;
    gres_alloc__init(given);
    given->name = mem_strdup("gpu");
    given->type = mem_strdup("a100");
    given->index = mem_strdup("0-1");
    SET(given, count, 2);
    part->gres = NEW_ARRAY(GresAlloc *, 1);
    part->gres[part->n_gres++] = given;
    append(&job->status->tres_req, ",gres/gpu=2");
    append(&job->status->tres_alloc, ",gres/gpu=2");
    job->spec->licenses = mem_strdup("matlab:2");
}

/* What only one of them has. */
static void add_rest(Job *job)
{
    JobSpec *spec = job->spec;
    JobStatus *status = job->status;

    switch (job->id) {
    case 133:
        spec->comment = mem_strdup("a comment");
        spec->mail_user = mem_strdup("alice@example.org");
        SET(spec, mail_type, MAIL_END);
        free(spec->std_out);
        spec->std_out = mem_strdup("w/tn-%j.out");
        spec->std_err = mem_strdup("w/tn-%j.err");
        break;
    case 134:
        give_gpus(job);
        break;
    case 136:
    case 137:
    case 138:
        SET(status, array_job_id, 136);
        SET(status, array_max_running, 2);
        if (job->id == 136)
            status->array_tasks = mem_strdup("5-19:2%2");
        else
            SET(status, array_task_id, job->id == 137 ? 1 : 3);
        break;
    case 140:
        SET(status, het_job_id, 139);
        SET(status, het_offset, 1);
        status->het_ids = mem_strdup("139-140");
        free(status->tres_alloc);
        status->tres_alloc = mem_strdup("cpu=1,mem=500M,node=1");
        break;
    case 141:
        set_time(&status->has_suspend_us, &status->suspend_us, 31);
        break;
    case 142:
        SET(spec, exclusive, EXCLUSIVE_NODE);
        break;
    case 143:
        SET(spec, nice, 50);
        break;
    case 146:
        spec->dependency = mem_strdup("afterok:133:134");
        status->dependency = mem_strdup("afterok:133(unfulfilled),afterok:134(unfulfilled)");
        break;
    case 147:
        spec->dependency = mem_strdup("afterok:131");
        status->dependency = mem_strdup("afterok:131(failed)");
        break;
    case 148:
        SET(spec, begin_us, SAMPLE_START_US + (31 + 3 * 3600) * (int64_t)SECOND);
        break;
    case 149:
        spec->licenses = mem_strdup("ansys:2,matlab:10");
        break;
    case 152:
        status->reason_text = mem_strdup("ReqNodeNotAvail, May be reserved for other job");
        break;
    default:
        break;
    }
}

Job *sample_job(uint32_t id)
{
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
        Job *job;

        if (jobs[i].id != id)
            continue;
        job = NEW(Job);
        job__init(job);
        SET(job, id, id);
        job->owner = NEW(JobOwner);
        job_owner__init(job->owner);
        job->owner->user = mem_strdup(jobs[i].user);
        job->owner->group = mem_strdup(jobs[i].user);
        SET(job->owner, uid, jobs[i].user[0] == 'a' ? 2001 : 2002);
        SET(job->owner, gid, job->owner->uid);
        job->spec = make_spec(&jobs[i]);
        job->status = make_status(&jobs[i]);
        add_rest(job);
        return job;
    }
    return NULL;
}

static GresInventory *two_gpus(void)
{
    GresInventory *gres = NEW(GresInventory);

    gres_inventory__init(gres);
    gres->name = mem_strdup("gpu");
    gres->type = mem_strdup("a100");
    SET(gres, count, 2);
    return gres;
}

static const struct {
    uint32_t cpus, flags;
    uint64_t mem;
    NodeState state;
    int64_t busy, started;
    const char *partitions;
    uint32_t load;
    uint64_t free_mb;
} nodes[] = {
    { 2, NODE_FLAG_PLANNED, 500, NODE_MIXED, 0, -339, "debug,batch,restricted,closed", 3244,
      19553 },
    { 4, 0, 2000, NODE_ALLOCATED, 0, -340, "debug,batch,restricted", 3244, 19553 },
    { 4, 0, 2000, NODE_ALLOCATED, 0, -340, "batch,restricted", 2298, 18642 },
    { 4, 0, 2000, NODE_ALLOCATED, 0, -340, "batch,restricted", 2298, 18642 },
    { 3, NODE_FLAG_PLANNED, 1500, NODE_MIXED, 0, -340, "batch,restricted", 2298, 18642 },
    { 0, NODE_FLAG_DRAIN, 0, NODE_IDLE, -141, -340, "batch,restricted", 2298, 18642 },
    { 2, NODE_FLAG_PLANNED, 1000, NODE_MIXED, -141, -340, "batch,gpu,restricted", 2298, 18642 },
    { 1, NODE_FLAG_PLANNED, 500, NODE_MIXED, -120, -340, "batch,gpu,restricted", 2298, 18642 },
};

static NodeInventory *make_found(void)
{
    NodeInventory *found = NEW(NodeInventory);

    node_inventory__init(found);
    found->arch = mem_strdup("x86_64");
    found->os = mem_strdup("Linux 6.18.44-fc-v445 #1 SMP PREEMPT_DYNAMIC @0");
    found->version = mem_strdup("26.11.0");
    return found;
}

static void add_partitions(NodeStatus *status, const char *names)
{
    const char *cursor = names;
    struct span word;

    status->partitions = NEW_ARRAY(char *, 4);
    while (str_next(&cursor, ",", &word))
        status->partitions[status->n_partitions++] = mem_strndup(word.ptr, word.len);
}

Node *sample_node(unsigned number)
{
    Node *node = NEW(Node);
    NodeSpec *spec = node->spec = NEW(NodeSpec);
    NodeStatus *status = NEW(NodeStatus);

    node__init(node);
    node->spec = spec;
    node->status = status;
    node_spec__init(spec);
    node_status__init(status);
    spec->name = mem_printf("node%u", number);
    spec->addr = mem_strdup("127.0.0.1");
    SET(spec, port, 16917 + number);
    SET(spec, cpus, 4);
    SET(spec, cores_per_socket, 4);
    SET(spec, memory_mb, 8000);
    SET(spec, weight, 10);
    spec->features = NEW_ARRAY(char *, 2);
    spec->features[spec->n_features++] = mem_strdup("intel");
    spec->features[spec->n_features++] = mem_strdup("ib");
    if (number >= 7) {
        spec->gres = NEW_ARRAY(GresInventory *, 1);
        spec->gres[spec->n_gres++] = two_gpus();
    }
    SET(status, state, nodes[number - 1].state);
    SET(status, flags, nodes[number - 1].flags);
    SET(status, alloc_cpus, nodes[number - 1].cpus);
    SET(status, alloc_mem_mb, nodes[number - 1].mem);
    SET(status, load_centi, nodes[number - 1].load);
    SET(status, free_mem_mb, nodes[number - 1].free_mb);
    SET(status, boot_us, SAMPLE_START_US - 2312 * (int64_t)SECOND);
    SET(status, started_us, SAMPLE_START_US + nodes[number - 1].started * SECOND);
    SET(status, last_busy_us, SAMPLE_START_US + nodes[number - 1].busy * SECOND);
    status->found = make_found();
    add_partitions(status, nodes[number - 1].partitions);
    if (number == 6) {
        status->reason = mem_strdup("bad fan");
        status->reason_user = mem_strdup("root");
        SET(status, reason_us, SAMPLE_START_US - 4 * SECOND);
    }
    if (number == 7) {
        GresAlloc *used = NEW(GresAlloc);

        gres_alloc__init(used);
        used->name = mem_strdup("gpu");
        used->type = mem_strdup("a100");
        used->index = mem_strdup("0-1");
        SET(used, count, 2);
        status->alloc_gres = NEW_ARRAY(GresAlloc *, 1);
        status->alloc_gres[status->n_alloc_gres++] = used;
    }
    return node;
}

static const struct {
    const char *name;
    unsigned first, last;
    int64_t limit_s, default_s;
    PartitionState state;
    uint32_t factor, max_nodes;
    const char *account, *tres;
} partitions[] = {
    { "debug", 1, 2, 1800, 600, PARTITION_UP, 1, 0, NULL, "cpu=8,mem=16000M,node=2,billing=8" },
    { "batch", 1, 8, 604800, 3600, PARTITION_UP, 1, 0, NULL,
      "cpu=32,mem=62.50G,node=8,billing=32,gres/gpu=4" },
    { "gpu", 7, 8, 172800, -1, PARTITION_UP, 10, 0, NULL,
      "cpu=8,mem=16000M,node=2,billing=8,gres/gpu=4" },
    { "restricted", 1, 8, -1, -1, PARTITION_UP, 1, 2, "chemistry",
      "cpu=32,mem=62.50G,node=8,billing=32,gres/gpu=4" },
    { "closed", 1, 1, -1, -1, PARTITION_DOWN, 1, 0, NULL, "cpu=4,mem=8000M,node=1,billing=4" },
};

Partition *sample_partition(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(partitions); i++) {
        Partition *partition;
        PartitionSpec *spec;
        unsigned count = partitions[i].last - partitions[i].first + 1;

        if (strcmp(partitions[i].name, name) != 0)
            continue;
        partition = NEW(Partition);
        partition__init(partition);
        spec = partition->spec = NEW(PartitionSpec);
        partition_spec__init(spec);
        spec->name = mem_strdup(name);
        SET(spec, is_default, i == 0);
        SET(spec, state, partitions[i].state);
        SET(spec, priority_job_factor, partitions[i].factor);
        if (partitions[i].limit_s > 0)
            SET(spec, max_time_s, partitions[i].limit_s);
        if (partitions[i].default_s > 0)
            SET(spec, default_time_s, partitions[i].default_s);
        if (partitions[i].max_nodes)
            SET(spec, max_nodes, partitions[i].max_nodes);
        if (partitions[i].account) {
            spec->allow_accounts = NEW_ARRAY(char *, 1);
            spec->allow_accounts[spec->n_allow_accounts++] = mem_strdup(partitions[i].account);
        }
        SET(partition, total_nodes, count);
        SET(partition, total_cpus, count * 4);
        partition->tres = mem_strdup(partitions[i].tres);
        partition->node_names = NEW_ARRAY(char *, count);
        for (unsigned n = partitions[i].first; n <= partitions[i].last; n++)
            partition->node_names[partition->n_node_names++] = mem_printf("node%u", n);
        return partition;
    }
    return NULL;
}

char *sample_output(const char *file)
{
    struct str text = { 0 };
    char *path = mem_printf("%s/%s", SAMPLE_DATA, file), *from, *to;
    FILE *in = fopen(path, "r");
    char buffer[4096];
    size_t got;

    free(path);
    if (!in)
        return NULL;
    while ((got = fread(buffer, 1, sizeof(buffer), in)) > 0)
        str_add_len(&text, buffer, got);
    fclose(in);
    from = strstr(str_text(&text), "# --- stdout\n");
    to = strstr(str_text(&text), "# --- stderr\n");
    if (from && to) {
        char *result = mem_strndup(from + 13, (size_t)(to - from - 13));

        str_done(&text);
        return result;
    }
    return str_take(&text);
}
