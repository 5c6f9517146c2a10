// SPDX-License-Identifier: Apache-2.0
/*
 * print.c - records as `scontrol show` prints them, from the structs that clients hold
 *
 * A struct is read back into the message it is filled from; the rows of schema/field.h then write it, so that these
 * functions and scontrol cannot differ. Steps and reservations have no rows and are written here.
 */
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/timefmt.h"
#include "compat/compat.h"
#include "schema/field.h"
#include "schema/job_view.h"
#include "sys/clock.h"

enum { GROUP_BYTES = 1 << 16 };

static struct field_ctx ctx_of(void)
{
    return (struct field_ctx){ .now_us = clock_wall_us(),
                               .time_format = getenv("SLURM_TIME_FORMAT") };
}

static int64_t us(time_t seconds)
{
    return (int64_t)seconds * 1000000;
}

/* A record as text that the client frees with slurm_xfree(). */
static char *record(const struct field_table *table, const void *object, int one_liner)
{
    struct field_ctx ctx = ctx_of();
    struct str out = { 0 };

    field_add_record(table, object, &ctx, one_liner, &out);
    return compat_take(&out);
}

static void put(FILE *out, char *text)
{
    if (text && out)
        fputs(text, out);
    slurm_xfree((void **)&text);
}

static void put_header(FILE *out, const char *what, time_t last_update, uint32_t count)
{
    char when[64];

    slurm_make_time_str(&last_update, when, sizeof(when));
    fprintf(out, "%s data as of %s, record count %u\n", what, when, count);
}

/* The words of "a,b" as an array of the arena. */
static char **words_of(struct arena *arena, const char *text, size_t *count)
{
    const char *cursor = text ? text : "";
    char **out = ARENA_ARRAY(arena, char *, strlen(cursor) + 1);
    struct span word;

    *count = 0;
    while (str_next(&cursor, ",", &word))
        out[(*count)++] = arena_strndup(arena, word.ptr, word.len);
    return out;
}

/* ---- jobs ---- */

#define SET(has, field, value)        \
    do {                              \
        if (has) {                    \
            spec->has_##field = true; \
            spec->field = (value);    \
        }                             \
    } while (0)

static void read_gres(struct arena *arena, JobSpec *spec, const char *text, GresScope scope)
{
    const char *cursor = text ? text : "";
    struct span word;

    while (spec->gres && str_next(&cursor, ",", &word)) {
        char *one = arena_strndup(arena, word.ptr, word.len), *save = NULL;
        GresRequest *gres = ARENA_NEW(arena, GresRequest);
        gres_request__init(gres);
        if (str_starts(one, "gres:") || str_starts(one, "gres/"))
            one += 5;
        gres->name = strtok_r(one, ":", &save);
        char *second = strtok_r(NULL, ":", &save), *third = strtok_r(NULL, ":", &save);
        gres->type = third ? second : NULL;
        gres->has_count = gres->has_scope = true;
        gres->count = second ? strtoull(third ? third : second, NULL, 10) : 1;
        gres->scope = scope;
        spec->gres[spec->n_gres++] = gres;
    }
}

static size_t comma_count(const char *text)
{
    size_t count = text ? 1 : 0;

    for (; text && *text; text++)
        count += *text == ',';
    return count;
}

static JobSpec *spec_of(struct arena *arena, const slurm_job_info_t *info)
{
    JobSpec *spec = ARENA_NEW(arena, JobSpec);

    job_spec__init(spec);
    spec->name = info->name;
    spec->account = info->account;
    spec->partition = info->partition;
    spec->qos = info->qos;
    spec->reservation = info->resv_name;
    spec->wckey = info->wckey;
    spec->comment = info->comment;
    spec->mcs_label = info->mcs_label;
    spec->dependency = info->dependency;
    spec->licenses = info->licenses;
    spec->features = info->features;
    spec->prefer = info->prefer;
    spec->batch_features = info->batch_features;
    spec->nodelist = info->req_nodes;
    spec->exclude = info->exc_nodes;
    spec->work_dir = info->work_dir;
    spec->std_out = info->std_out;
    spec->std_err = info->std_err;
    spec->std_in = info->std_in;
    spec->mail_user = info->mail_user;
    spec->network = info->network;
    spec->burst_buffer = info->burst_buffer;
    spec->container = info->container;
    spec->command = info->command;
    spec->alloc_node = info->alloc_node;
    spec->tres_bind = info->tres_bind;
    spec->gpu_freq = info->tres_freq;
    IF_MEMBER(slurm_job_info_t_extra, spec->extra = info->extra;)
    IF_MEMBER(slurm_job_info_t_submit_line, spec->submit_line = info->submit_line;)
    SET(true, alloc_sid, info->alloc_sid);
    SET(true, batch, info->batch_flag != 0);
    SET(true, reboot, info->reboot != 0);
    SET(true, requeue, info->requeue != 0);
    SET(true, nice, (int32_t)(info->nice - NICE_OFFSET));
    SET(info->contiguous, contiguous, true);
    SET(info->mail_type, mail_type, info->mail_type);
    SET(info->deadline, deadline_us, us(info->deadline));
    SET(info->time_min && info->time_min != NO_VAL, time_min_s, (int64_t)info->time_min * 60);
    SET(info->cpus_per_task > 1 && info->cpus_per_task != NO_VAL16, cpus_per_task,
        info->cpus_per_task);
    SET(info->ntasks_per_node && info->ntasks_per_node != NO_VAL16, ntasks_per_node,
        info->ntasks_per_node);
    SET(info->ntasks_per_socket < INFINITE16 - 1u && info->ntasks_per_socket, ntasks_per_socket,
        info->ntasks_per_socket);
    SET(info->ntasks_per_core < INFINITE16 - 1u && info->ntasks_per_core, ntasks_per_core,
        info->ntasks_per_core);
    SET(info->sockets_per_node != NO_VAL16 && info->sockets_per_node, sockets_per_node,
        info->sockets_per_node);
    SET(info->cores_per_socket != NO_VAL16 && info->cores_per_socket, cores_per_socket,
        info->cores_per_socket);
    SET(info->threads_per_core != NO_VAL16 && info->threads_per_core, threads_per_core,
        info->threads_per_core);
    SET(info->pn_min_tmp_disk, tmp_disk_mb, info->pn_min_tmp_disk);
    SET(info->delay_boot, delay_boot_s, info->delay_boot);
    SET(info->req_switch, switches, info->req_switch);
    SET(info->wait4switch, switches_wait_s, info->wait4switch);
    SET(info->max_nodes, max_nodes, info->max_nodes);
    SET(info->pn_min_memory & MEM_PER_CPU, mem_per_cpu_mb, info->pn_min_memory & ~MEM_PER_CPU);
    SET(!(info->pn_min_memory & MEM_PER_CPU) && info->pn_min_memory, mem_per_node_mb,
        info->pn_min_memory);
    if (info->core_spec != NO_VAL16) {
        bool threads = (info->core_spec & CORE_SPEC_THREAD) != 0;
        SET(threads, thread_spec, info->core_spec & (uint32_t)~CORE_SPEC_THREAD);
        SET(!threads, core_spec, info->core_spec);
    }
    IF_MEMBER(slurm_job_info_t_shared, SET(info->shared == 1, oversubscribe, true);
              SET(info->shared != 1 && info->shared < 5, exclusive,
                  info->shared == 0   ? EXCLUSIVE_NODE
                  : info->shared == 2 ? EXCLUSIVE_USER
                  : info->shared == 3 ? EXCLUSIVE_MCS
                                      : EXCLUSIVE_TOPO);)
    spec->gres =
        ARENA_ARRAY(arena, GresRequest *,
                    comma_count(info->tres_per_job) + comma_count(info->tres_per_node) +
                        comma_count(info->tres_per_socket) + comma_count(info->tres_per_task) + 1);
    read_gres(arena, spec, info->tres_per_job, GRES_PER_JOB);
    read_gres(arena, spec, info->tres_per_node, GRES_PER_NODE);
    read_gres(arena, spec, info->tres_per_socket, GRES_PER_SOCKET);
    read_gres(arena, spec, info->tres_per_task, GRES_PER_TASK);
    return spec;
}

static Allocation *given_of(struct arena *arena, const slurm_job_info_t *info)
{
    CLEANUP(hostlist_done) struct hostlist list = { 0 };
    Allocation *given = ARENA_NEW(arena, Allocation);
    char **names;
    size_t count;

    if (!info->nodes || hostlist_parse(&list, info->nodes, NULL) < 0 ||
        hostlist_expand(&list, arena, &names, &count, NULL) < 0)
        return NULL;
    allocation__init(given);
    given->nodes = ARENA_ARRAY(arena, NodeAlloc *, count + 1);
    for (size_t i = 0; i < count; i++) {
        NodeAlloc *node = ARENA_NEW(arena, NodeAlloc);
        node_alloc__init(node);
        node->node = names[i];
        given->nodes[given->n_nodes++] = node;
    }
    /* the first manages the job */
    for (size_t i = 1; info->batch_host && i < given->n_nodes; i++) {
        if (str_eq(given->nodes[i]->node, info->batch_host)) {
            NodeAlloc *first = given->nodes[0];
            given->nodes[0] = given->nodes[i];
            given->nodes[i] = first;
        }
    }
    return given;
}

#undef SET
#define SET(has, field, value)          \
    do {                                \
        if (has) {                      \
            status->has_##field = true; \
            status->field = (value);    \
        }                               \
    } while (0)

static JobStatus *status_of(struct arena *arena, const slurm_job_info_t *info)
{
    JobStatus *status = ARENA_NEW(arena, JobStatus);

    job_status__init(status);
    status->has_state = status->has_flags = true;
    status->state = (JobState)(info->job_state & JOB_STATE_BASE);
    status->flags = info->job_state & JOB_STATE_FLAGS;
    SET(true, reason, info->state_reason);
    status->reason_text = info->state_desc;
    SET(true, priority, info->priority);
    SET(info->submit_time, submit_us, us(info->submit_time));
    SET(info->eligible_time, eligible_us, us(info->eligible_time));
    SET(info->accrue_time, accrue_us, us(info->accrue_time));
    bool pending = status->state == JOB_PENDING;
    SET(info->start_time && !pending, start_us, us(info->start_time));
    SET(info->start_time && pending, planned_start_us, us(info->start_time));
    SET(info->end_time, end_us, us(info->end_time));
    SET(info->suspend_time, suspend_us, us(info->suspend_time));
    SET(info->preempt_time, preempt_us, us(info->preempt_time));
    SET(info->preemptable_time, preemptable_us, us(info->preemptable_time));
    SET(info->last_sched_eval, last_sched_us, us(info->last_sched_eval));
    SET(true, restarts, info->restart_cnt);
    SET(true, exit_status, info->exit_code);
    SET(true, derived_status, info->derived_ec);
    status->allocation = given_of(arena, info);
    status->partition = info->partition;
    SET(info->time_limit != NO_VAL, time_limit_s,
        info->time_limit == INFINITE ? -1 : (int64_t)info->time_limit * 60);
    status->admin_comment = info->admin_comment;
    status->system_comment = info->system_comment;
    status->qos = info->qos;
    status->account = info->account;
    status->planned_nodes = info->sched_nodes;
    SET(info->array_job_id, array_job_id, info->array_job_id);
    SET(info->array_task_id != NO_VAL, array_task_id, info->array_task_id);
    status->array_tasks = info->array_task_str;
    SET(info->array_max_tasks, array_max_running, info->array_max_tasks);
    SET(info->het_job_id, het_job_id, info->het_job_id);
    SET(info->het_job_id, het_offset, info->het_job_offset);
    status->het_ids = info->het_job_id_set;
    SET(true, num_nodes, info->num_nodes);
    SET(true, num_cpus, info->num_cpus);
    SET(true, num_tasks, info->num_tasks);
    status->tres_req = info->tres_req_str;
    status->tres_alloc = info->tres_alloc_str;
    status->dependency = info->dependency;
    IF_MEMBER(slurm_job_info_t_failed_node, status->failed_node = info->failed_node;)
    return status;
}
#undef SET

static char *group_of(struct arena *arena, uint32_t gid)
{
    struct group group, *found = NULL;
    char *room = arena_alloc(arena, GROUP_BYTES);

    return getgrgid_r(gid, &group, room, GROUP_BYTES, &found) == 0 && found
               ? group.gr_name
               : arena_printf(arena, "%u", gid);
}

static char *job_record(const slurm_job_info_t *info, int one_liner)
{
    Job job = JOB__INIT;
    JobOwner owner = JOB_OWNER__INIT;
    struct arena arena;

    arena_init(&arena);
    job.has_id = true;
    job.id = info->job_id;
    job.owner = &owner;
    owner.has_uid = owner.has_gid = true;
    owner.uid = info->user_id;
    owner.gid = info->group_id;
    owner.user = info->user_name;
    owner.group = group_of(&arena, info->group_id);
    job.spec = spec_of(&arena, info);
    job.status = status_of(&arena, info);
    char *text = record(&job_fields, &job, one_liner);
    arena_done(&arena);
    return text;
}

#if EXPORTS_slurm_print_job_info_msg
char *slurm_sprint_job_info(slurm_job_info_t *job_ptr, int one_liner)
{
    GUARD(NULL);

    return job_ptr ? job_record(job_ptr, one_liner) : NULL;
}

void slurm_print_job_info(FILE *out, slurm_job_info_t *job_ptr, int one_liner)
{
    GUARD();

    if (job_ptr)
        put(out, job_record(job_ptr, one_liner));
}

void slurm_print_job_info_msg(FILE *out, job_info_msg_t *job_info_msg_ptr, int one_liner)
{
    GUARD();
    const job_info_msg_t *msg = job_info_msg_ptr;

    if (!msg || !out)
        return;
    put_header(out, "Job", msg->last_update, msg->record_count);
    for (uint32_t i = 0; i < msg->record_count; i++)
        put(out, job_record(&msg->job_array[i], one_liner));
}
#else
/* Not of these numbers; kept so that the readers above are the same code in all. */
extern char *spur_job_record(const slurm_job_info_t *info, int one_liner);
char *spur_job_record(const slurm_job_info_t *info, int one_liner)
{
    return job_record(info, one_liner);
}
#endif

/* ---- nodes ---- */

/* "gpu:a100:2,shard:4" as an inventory. */
static void read_inventory(struct arena *arena, NodeSpec *spec, const char *text)
{
    size_t count;
    char **words = words_of(arena, text, &count);

    spec->gres = ARENA_ARRAY(arena, GresInventory *, count + 1);
    for (size_t i = 0; i < count; i++) {
        GresInventory *gres = ARENA_NEW(arena, GresInventory);
        char *save = NULL;
        gres_inventory__init(gres);
        gres->name = strtok_r(words[i], ":", &save);
        char *second = strtok_r(NULL, ":(", &save), *third = strtok_r(NULL, ":(", &save);
        bool typed = third && *third >= '0' && *third <= '9';
        gres->type = typed ? second : NULL;
        gres->has_count = true;
        gres->count = second ? strtoull(typed ? third : second, NULL, 10) : 1;
        spec->gres[spec->n_gres++] = gres;
    }
}

static char *node_record(const node_info_t *info, int one_liner)
{
    Node node = NODE__INIT;
    NodeSpec spec = NODE_SPEC__INIT;
    NodeStatus status = NODE_STATUS__INIT;
    NodeInventory found = NODE_INVENTORY__INIT;
    struct arena arena;

    arena_init(&arena);
    node.spec = &spec;
    node.status = &status;
    status.found = &found;
    spec.name = info->name;
    spec.addr = info->node_addr;
    spec.hostname = info->node_hostname;
    spec.comment = info->comment;
    spec.extra = info->extra;
    spec.cpu_spec_list = info->cpu_spec_list;
    spec.features = words_of(&arena, info->features, &spec.n_features);
    spec.has_port = spec.has_cpus = spec.has_boards = spec.has_sockets = true;
    spec.port = info->port;
    spec.cpus = info->cpus;
    spec.boards = info->boards;
    spec.sockets = info->sockets;
    spec.has_cores_per_socket = spec.has_threads_per_core = spec.has_memory_mb = true;
    spec.cores_per_socket = info->cores;
    spec.threads_per_core = info->threads;
    spec.memory_mb = info->real_memory;
    spec.has_tmp_disk_mb = spec.has_weight = spec.has_core_spec = spec.has_mem_spec_mb = true;
    spec.tmp_disk_mb = info->tmp_disk;
    spec.weight = info->weight;
    spec.core_spec = info->core_spec_cnt;
    spec.mem_spec_mb = info->mem_spec_limit;
    spec.has_core_spec = info->core_spec_cnt != 0;
    spec.has_mem_spec_mb = info->mem_spec_limit != 0;
    read_inventory(&arena, &spec, info->gres);
    found.arch = info->arch;
    found.os = info->os;
    found.version = info->version;
    status.has_state = status.has_flags = true;
    status.state = (NodeState)(info->node_state & NODE_STATE_BASE);
    status.flags = info->node_state & NODE_STATE_FLAGS;
    status.reason = info->reason;
    status.has_reason_uid = info->reason_uid != NO_VAL;
    status.reason_uid = info->reason_uid;
    status.has_reason_us = info->reason_time != 0;
    status.reason_us = us(info->reason_time);
    status.has_last_busy_us = info->last_busy != 0;
    status.last_busy_us = us(info->last_busy);
    status.has_boot_us = info->boot_time != 0;
    status.boot_us = us(info->boot_time);
    status.has_started_us = info->slurmd_start_time != 0;
    status.started_us = us(info->slurmd_start_time);
    status.has_load_centi = info->cpu_load != NO_VAL;
    status.load_centi = info->cpu_load;
    status.has_free_mem_mb = info->free_mem != NO_VAL64;
    status.free_mem_mb = info->free_mem;
    status.partitions = words_of(&arena, info->partitions, &status.n_partitions);
    status.has_alloc_cpus = status.has_alloc_mem_mb = true;
#if EXPORTS_slurm_get_select_nodeinfo
    uint16_t cpus = 0;
    slurm_get_select_nodeinfo(info->select_nodeinfo, SELECT_NODEDATA_SUBCNT, NODE_STATE_ALLOCATED,
                              &cpus);
    status.alloc_cpus = cpus;
    slurm_get_select_nodeinfo(info->select_nodeinfo, SELECT_NODEDATA_MEM_ALLOC,
                              NODE_STATE_ALLOCATED, &status.alloc_mem_mb);
#else
    status.alloc_cpus = info->alloc_cpus;
    status.alloc_mem_mb = info->alloc_memory;
#endif
    char *text = record(&node_fields, &node, one_liner);
    arena_done(&arena);
    return text;
}

char *slurm_sprint_node_table(node_info_t *node_ptr, int one_liner)
{
    GUARD(NULL);

    return node_ptr ? node_record(node_ptr, one_liner) : NULL;
}

void slurm_print_node_table(FILE *out, node_info_t *node_ptr, int one_liner)
{
    GUARD();

    if (node_ptr)
        put(out, node_record(node_ptr, one_liner));
}

void slurm_print_node_info_msg(FILE *out, node_info_msg_t *node_info_msg_ptr, int one_liner)
{
    GUARD();
    const node_info_msg_t *msg = node_info_msg_ptr;

    if (!msg || !out)
        return;
    put_header(out, "Node", msg->last_update, msg->record_count);
    for (uint32_t i = 0; i < msg->record_count; i++)
        put(out, node_record(&msg->node_array[i], one_liner));
}

/* ---- partitions ---- */

static char *share_text(struct arena *arena, uint16_t share)
{
    unsigned count = (unsigned)(share & ~SHARED_FORCE);

    if (share == 0)
        return arena_strdup(arena, "EXCLUSIVE");
    if (share & SHARED_FORCE)
        return arena_printf(arena, "FORCE:%u", count);
    return count == 1 ? NULL : arena_printf(arena, "YES:%u", count);
}

static PartitionState part_state(uint16_t state)
{
    switch (state) {
    case SLURM_PARTITION_DOWN:
        return PARTITION_DOWN;
    case SLURM_PARTITION_DRAIN:
        return PARTITION_DRAIN;
    case SLURM_PARTITION_INACTIVE:
        return PARTITION_INACTIVE;
    default:
        return PARTITION_UP;
    }
}

static char *partition_record(const partition_info_t *info, int one_liner)
{
    CLEANUP(hostlist_done) struct hostlist list = { 0 };
    Partition part = PARTITION__INIT;
    PartitionSpec spec = PARTITION_SPEC__INIT;
    struct arena arena;

    arena_init(&arena);
    part.spec = &spec;
    spec.name = info->name;
    spec.nodes = info->nodes;
    spec.alternate = info->alternate;
    spec.qos = info->qos_char;
    spec.tres_billing_weights = info->billing_weights_str;
    spec.allow_accounts = words_of(&arena, info->allow_accounts, &spec.n_allow_accounts);
    spec.allow_groups = words_of(&arena, info->allow_groups, &spec.n_allow_groups);
    spec.allow_qos = words_of(&arena, info->allow_qos, &spec.n_allow_qos);
    spec.deny_accounts = words_of(&arena, info->deny_accounts, &spec.n_deny_accounts);
    spec.deny_qos = words_of(&arena, info->deny_qos, &spec.n_deny_qos);
    spec.allow_alloc_nodes = words_of(&arena, info->allow_alloc_nodes, &spec.n_allow_alloc_nodes);
    spec.has_is_default = spec.is_default = (info->flags & PART_FLAG_DEFAULT) != 0;
    spec.has_hidden = spec.hidden = (info->flags & PART_FLAG_HIDDEN) != 0;
    spec.has_disable_root = spec.disable_root = (info->flags & PART_FLAG_NO_ROOT) != 0;
    spec.has_root_only = spec.root_only = (info->flags & PART_FLAG_ROOT_ONLY) != 0;
    spec.has_req_resv = spec.req_resv = (info->flags & PART_FLAG_REQ_RESV) != 0;
    spec.has_lln = spec.lln = (info->flags & PART_FLAG_LLN) != 0;
    spec.has_exclusive_user = spec.exclusive_user = (info->flags & PART_FLAG_EXCLUSIVE_USER) != 0;
    spec.has_default_time_s = info->default_time != NO_VAL;
    spec.default_time_s = info->default_time == INFINITE ? -1 : (int64_t)info->default_time * 60;
    spec.has_max_time_s = info->max_time != INFINITE;
    spec.max_time_s = (int64_t)info->max_time * 60;
    spec.has_max_nodes = info->max_nodes != INFINITE;
    spec.max_nodes = info->max_nodes;
    spec.has_min_nodes = true;
    spec.min_nodes = info->min_nodes;
    spec.has_max_cpus_per_node = info->max_cpus_per_node != INFINITE;
    spec.max_cpus_per_node = info->max_cpus_per_node;
    spec.has_grace_time_s = true;
    spec.grace_time_s = info->grace_time;
    spec.has_state = spec.has_priority_tier = spec.has_priority_job_factor = true;
    spec.state = part_state(info->state_up);
    spec.priority_tier = info->priority_tier;
    spec.priority_job_factor = info->priority_job_factor;
    spec.oversubscribe = share_text(&arena, info->max_share);
    spec.preempt_mode = info->preempt_mode == NO_VAL16
                            ? NULL
                            : (char *)slurm_preempt_mode_string(info->preempt_mode);
    spec.has_over_time_limit_min = info->over_time_limit != NO_VAL16;
    spec.over_time_limit_min = info->over_time_limit;
    bool per_cpu = (info->def_mem_per_cpu & MEM_PER_CPU) != 0;
    *(per_cpu ? &spec.has_def_mem_per_cpu_mb : &spec.has_def_mem_per_node_mb) = true;
    *(per_cpu ? &spec.def_mem_per_cpu_mb : &spec.def_mem_per_node_mb) =
        info->def_mem_per_cpu & ~MEM_PER_CPU;
    per_cpu = (info->max_mem_per_cpu & MEM_PER_CPU) != 0;
    *(per_cpu ? &spec.has_max_mem_per_cpu_mb : &spec.has_max_mem_per_node_mb) = true;
    *(per_cpu ? &spec.max_mem_per_cpu_mb : &spec.max_mem_per_node_mb) =
        info->max_mem_per_cpu & ~MEM_PER_CPU;
    part.has_total_cpus = part.has_total_nodes = true;
    part.total_cpus = info->total_cpus;
    part.total_nodes = info->total_nodes;
    part.tres = info->tres_fmt_str;
    if (info->nodes && hostlist_parse(&list, info->nodes, NULL) == 0)
        hostlist_expand(&list, &arena, &part.node_names, &part.n_node_names, NULL);
    char *text = record(&partition_fields, &part, one_liner);
    arena_done(&arena);
    return text;
}

char *slurm_sprint_partition_info(partition_info_t *part_ptr, int one_liner)
{
    GUARD(NULL);

    return part_ptr ? partition_record(part_ptr, one_liner) : NULL;
}

void slurm_print_partition_info(FILE *out, partition_info_t *part_ptr, int one_liner)
{
    GUARD();

    if (part_ptr)
        put(out, partition_record(part_ptr, one_liner));
}

#if EXPORTS_slurm_print_partition_info_msg
void slurm_print_partition_info_msg(FILE *out, partition_info_msg_t *part_info_ptr, int one_liner)
{
    GUARD();
    const partition_info_msg_t *msg = part_info_ptr;

    if (!msg || !out)
        return;
    put_header(out, "Partition", msg->last_update, msg->record_count);
    for (uint32_t i = 0; i < msg->record_count; i++)
        put(out, partition_record(&msg->partition_array[i], one_liner));
}
#endif

/* ---- reservations ---- */

static const char *or_null(const char *text)
{
    return str_is_empty(text) ? "(null)" : text;
}

static char *reservation_record(const reserve_info_t *info, int one_liner)
{
    const char *line = one_liner ? " " : "\n   ";
    time_t now = (time_t)(clock_wall_us() / 1000000);
    struct field_ctx ctx = ctx_of();
    struct str out = { 0 };
    char *flags = slurm_reservation_flags_string((reserve_info_t *)info);

    str_addf(&out, "ReservationName=%s StartTime=", or_null(info->name));
    field_add_moment(&out, &ctx, us(info->start_time));
    str_add(&out, " EndTime=");
    field_add_moment(&out, &ctx, us(info->end_time));
    str_add(&out, " Duration=");
    timefmt_write_duration(&out, info->end_time - info->start_time, TIMEFMT_LONG);
    str_addf(&out, "%sNodes=%s NodeCnt=%u CoreCnt=%u Features=%s PartitionName=%s Flags=%s", line,
             info->node_list ? info->node_list : "", info->node_cnt, info->core_cnt,
             or_null(info->features), or_null(info->partition), flags ? flags : "");
    str_addf(&out, "%sTRES=%s%sUsers=%s Groups=%s Accounts=%s Licenses=%s State=%s BurstBuffer=%s",
             line, or_null(info->tres_str), line, or_null(info->users), or_null(info->groups),
             or_null(info->accounts), or_null(info->licenses),
             info->start_time <= now && now < info->end_time ? "ACTIVE" : "INACTIVE",
             or_null(info->burst_buffer));
    str_addf(&out, "%sMaxStartDelay=", line);
    if (info->max_start_delay)
        timefmt_write_duration(&out, info->max_start_delay, TIMEFMT_LONG);
    else
        str_add(&out, "(null)");
    str_add(&out, one_liner ? "\n" : "\n\n");
    slurm_xfree((void **)&flags);
    return compat_take(&out);
}

char *slurm_sprint_reservation_info(reserve_info_t *resv_ptr, int one_liner)
{
    GUARD(NULL);

    return resv_ptr ? reservation_record(resv_ptr, one_liner) : NULL;
}

void slurm_print_reservation_info(FILE *out, reserve_info_t *resv_ptr, int one_liner)
{
    GUARD();

    if (resv_ptr)
        put(out, reservation_record(resv_ptr, one_liner));
}

void slurm_print_reservation_info_msg(FILE *out, reserve_info_msg_t *resv_info_ptr, int one_liner)
{
    GUARD();
    const reserve_info_msg_t *msg = resv_info_ptr;

    if (!msg || !out)
        return;
    put_header(out, "Reservation", msg->last_update, msg->record_count);
    for (uint32_t i = 0; i < msg->record_count; i++)
        put(out, reservation_record(&msg->reservation_array[i], one_liner));
}

/* ---- steps ---- */

#if EXPORTS_slurm_sprint_job_step_info
static char *step_record(const job_step_info_t *info, int one_liner)
{
    const char *line = one_liner ? " " : "\n   ";
    struct field_ctx ctx = ctx_of();
    struct str out = { 0 };

    str_addf(&out, "StepId=%u.%u UserId=%u StartTime=", info->step_id.job_id, info->step_id.step_id,
             info->user_id);
    field_add_moment(&out, &ctx, us(info->start_time));
    str_add(&out, " TimeLimit=");
    if (info->time_limit == INFINITE)
        str_add(&out, "UNLIMITED");
    else
        timefmt_write_duration(&out, (int64_t)info->time_limit * 60, TIMEFMT_LONG);
    str_addf(&out, "%sState=%s Partition=%s NodeList=%s", line, slurm_job_state_string(info->state),
             or_null(info->partition), or_null(info->nodes));
    str_addf(&out, "%sNodes=%u CPUs=%u Tasks=%u Name=%s Network=%s", line,
             info->node_inx && info->node_inx[0] >= 0
                 ? (unsigned)(info->node_inx[1] - info->node_inx[0] + 1)
                 : 0,
             info->num_cpus, info->num_tasks, or_null(info->name), or_null(info->network));
    str_addf(&out, "%sTRES=%s%sResvPorts=%s%sCPUFreqReq=Default Dist=%s", line,
             or_null(info->tres_alloc_str), line, or_null(info->resv_ports), line,
             slurm_step_layout_type_name((task_dist_states_t)info->task_dist));
    str_addf(&out, "%sSrunHost:Pid=%s:%u", line, or_null(info->srun_host), info->srun_pid);
    str_add(&out, one_liner ? "\n" : "\n\n");
    return compat_take(&out);
}

char *slurm_sprint_job_step_info(job_step_info_t *step_ptr, int one_liner)
{
    GUARD(NULL);

    return step_ptr ? step_record(step_ptr, one_liner) : NULL;
}

void slurm_print_job_step_info(FILE *out, job_step_info_t *step_ptr, int one_liner)
{
    GUARD();

    if (step_ptr)
        put(out, step_record(step_ptr, one_liner));
}

void slurm_print_job_step_info_msg(FILE *out, job_step_info_response_msg_t *job_step_info_msg_ptr,
                                   int one_liner)
{
    GUARD();
    const job_step_info_response_msg_t *msg = job_step_info_msg_ptr;

    if (!msg || !out)
        return;
    put_header(out, "Job step", msg->last_update, msg->job_step_count);
    for (uint32_t i = 0; i < msg->job_step_count; i++)
        put(out, step_record(&msg->job_steps[i], one_liner));
}
#endif
