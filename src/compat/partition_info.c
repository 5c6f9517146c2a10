// SPDX-License-Identifier: Apache-2.0
/*
 * partition_info.c - partitions as partition_info_t; loading, freeing, changing them
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/hostlist.h"
#include "compat/compat.h"
#include "schema/node_view.h"
#include "schema/update.h"
#include "sys/clock.h"

static const struct {
    size_t offset; /* of a bool in PartitionSpec */
    uint32_t flag, clear;
    const char *key;
} flag_rows[] = {
    { offsetof(PartitionSpec, is_default), PART_FLAG_DEFAULT, PART_FLAG_DEFAULT_CLR, "Default" },
    { offsetof(PartitionSpec, hidden), PART_FLAG_HIDDEN, PART_FLAG_HIDDEN_CLR, "Hidden" },
    { offsetof(PartitionSpec, disable_root), PART_FLAG_NO_ROOT, PART_FLAG_NO_ROOT_CLR,
      "DisableRootJobs" },
    { offsetof(PartitionSpec, root_only), PART_FLAG_ROOT_ONLY, PART_FLAG_ROOT_ONLY_CLR,
      "RootOnly" },
    { offsetof(PartitionSpec, req_resv), PART_FLAG_REQ_RESV, PART_FLAG_REQ_RESV_CLR, "ReqResv" },
    { offsetof(PartitionSpec, lln), PART_FLAG_LLN, PART_FLAG_LLN_CLR, "LLN" },
    { offsetof(PartitionSpec, exclusive_user), PART_FLAG_EXCLUSIVE_USER, PART_FLAG_EXC_USER_CLR,
      "ExclusiveUser" },
};

static uint32_t flags_of(const PartitionSpec *spec)
{
    uint32_t flags = 0;

    for (size_t i = 0; i < ARRAY_LEN(flag_rows); i++) {
        if (*(const protobuf_c_boolean *)((const char *)spec + flag_rows[i].offset))
            flags |= flag_rows[i].flag;
    }
    return flags;
}

static char *defaults_of(const PartitionSpec *spec)
{
    struct str out = { 0 };

    if (spec->has_def_cpu_per_gpu)
        str_addf(&out, "DefCpuPerGPU=%u", spec->def_cpu_per_gpu);
    if (spec->has_def_mem_per_gpu_mb)
        str_addf(&out, "%sDefMemPerGPU=%llu", out.len ? "," : "",
                 (unsigned long long)spec->def_mem_per_gpu_mb);
    return compat_take(&out);
}

/* "NO" 1, "YES:4" 4, "FORCE:4" 4 with the force bit, "EXCLUSIVE" 0. */
static uint16_t share_of(const PartitionSpec *spec)
{
    const char *text = spec->oversubscribe ? spec->oversubscribe : "NO";
    const char *colon = strchr(text, ':');
    uint16_t count = colon ? (uint16_t)strtoul(colon + 1, NULL, 10) : 4;

    if (strncasecmp(text, "EXCLUSIVE", 9) == 0)
        return 0;
    if (strncasecmp(text, "FORCE", 5) == 0)
        return (uint16_t)(count | SHARED_FORCE);
    return strncasecmp(text, "YES", 3) == 0 ? count : 1;
}

static uint16_t state_of(const PartitionSpec *spec)
{
    switch (spec->has_state ? spec->state : PARTITION_UP) {
    case PARTITION_DOWN:
        return SLURM_PARTITION_DOWN;
    case PARTITION_DRAIN:
        return SLURM_PARTITION_DRAIN;
    case PARTITION_INACTIVE:
        return SLURM_PARTITION_INACTIVE;
    default:
        return SLURM_PARTITION_UP;
    }
}

static char *hosts_of(struct session *session, const Partition *part)
{
    CLEANUP(hostlist_done) struct hostlist list = { 0 };
    struct str out = { 0 };

    for (size_t i = 0; i < part->n_node_names; i++)
        hostlist_push(&list, part->node_names[i], NULL);
    hostlist_format(&list, &out);
    char *text = arena_strdup(&session->arena, str_text(&out));
    str_done(&out);
    return text;
}

static void fill(partition_info_t *out, const Partition *part, const char *hosts)
{
    static const PartitionSpec none = PARTITION_SPEC__INIT;
    const PartitionSpec *spec = part->spec ? part->spec : &none;

#define FILL(member, ...) \
    IF_MEMBER(partition_info_t_##member, out->member = (__typeof__(out->member))(__VA_ARGS__);)
#define SKIP(member, why)
#include "compat/partition_info_rows.h"
#undef FILL
#undef SKIP
}

struct load {
    partition_info_msg_t **out;
    uint16_t show_flags;
};

static int load(struct session *session, void *args, struct err *err)
{
    struct load *asked = args;
    ListPartitionsRequest request = LIST_PARTITIONS_REQUEST__INIT;
    ListPartitionsReply *reply;
    ListNodesReply *nodes;

    request.has_hidden_too = request.hidden_too = (asked->show_flags & SHOW_ALL) != 0;
    if (compat_call(session, "ListPartitions", &request.base, &list_partitions_reply__descriptor,
                    (ProtobufCMessage **)&reply, err) < 0 ||
        compat_list_nodes(session, &nodes, err) < 0)
        return -1;
    partitions_fill_tres(reply, nodes, &session->arena);
    partition_info_msg_t *msg = compat_alloc(sizeof(*msg));
    msg->last_update = compat_seconds(clock_wall_us());
    msg->record_count = (uint32_t)reply->n_partitions;
    msg->partition_array =
        reply->n_partitions ? compat_alloc(reply->n_partitions * sizeof(partition_info_t)) : NULL;
    for (size_t i = 0; i < reply->n_partitions; i++)
        fill(&msg->partition_array[i], reply->partitions[i],
             hosts_of(session, reply->partitions[i]));
    *asked->out = msg;
    return 0;
}

int slurm_load_partitions(time_t update_time, partition_info_msg_t **part_buffer_ptr,
                          uint16_t show_flags)
{
    NEED(part_buffer_ptr, SLURM_ERROR);
    struct load asked = { .out = part_buffer_ptr, .show_flags = show_flags };

    return compat_run(load, &asked);
}

int slurm_load_partitions2(time_t update_time, partition_info_msg_t **resp, uint16_t show_flags,
                           slurmdb_cluster_rec_t *cluster)
{
    return slurm_load_partitions(update_time, resp, show_flags);
}

void slurm_free_partition_info_msg(partition_info_msg_t *part_info_ptr)
{
    if (!part_info_ptr)
        return;
    compat_free_partition_info_msg_t(part_info_ptr);
    slurm_xfree((void **)&part_info_ptr);
}

void slurm_free_partition_info_members(partition_info_t *part)
{
    if (part)
        compat_free_partition_info_t(part);
}

/* ---- changes ---- */

void slurm_init_part_desc_msg(partition_info_t *update_part_msg)
{
    if (!update_part_msg)
        return;
    memset(update_part_msg, 0, sizeof(*update_part_msg));
    update_part_msg->default_time = update_part_msg->grace_time = NO_VAL;
    update_part_msg->max_cpus_per_node = update_part_msg->max_nodes = NO_VAL;
    update_part_msg->max_time = update_part_msg->min_nodes = NO_VAL;
    update_part_msg->suspend_time = NO_VAL;
    update_part_msg->def_mem_per_cpu = update_part_msg->max_mem_per_cpu = NO_VAL64;
    update_part_msg->max_share = update_part_msg->over_time_limit = NO_VAL16;
    update_part_msg->preempt_mode = update_part_msg->priority_job_factor = NO_VAL16;
    update_part_msg->priority_tier = update_part_msg->state_up = NO_VAL16;
    update_part_msg->resume_timeout = update_part_msg->suspend_timeout = NO_VAL16;
    IF_MEMBER(partition_info_t_max_cpus_per_socket, update_part_msg->max_cpus_per_socket = NO_VAL;)
}

/* A word of `scontrol update partition`, read by the same rows. */
PRINTF(3, 4)
static int say(struct partition_update *update, struct err *err, const char *fmt, ...)
{
    struct option_ctx ctx = { .now_us = clock_wall_us() };
    struct str word = { 0 };
    va_list args;

    va_start(args, fmt);
    str_vaddf(&word, fmt, args);
    va_end(args);
    int rc = update_read(&partition_updates, &ctx, update, str_text(&word), err);
    str_done(&word);
    return rc;
}

static int say_text(struct partition_update *update, struct err *err, const char *key,
                    const char *value)
{
    return value ? say(update, err, "%s=%s", key, value) : 0;
}

static int say_number(struct partition_update *update, struct err *err, const char *key,
                      uint64_t value, uint64_t none, uint64_t infinite)
{
    if (value == none)
        return 0;
    if (value == infinite)
        return say(update, err, "%s=UNLIMITED", key);
    return say(update, err, "%s=%llu", key, (unsigned long long)value);
}

static int say_memory(struct partition_update *update, struct err *err, const char *per_cpu,
                      const char *per_node, uint64_t value)
{
    if (value == NO_VAL64)
        return 0;
    return say(update, err, "%s=%llu", value & MEM_PER_CPU ? per_cpu : per_node,
               (unsigned long long)(value & ~MEM_PER_CPU));
}

static int say_flags(struct partition_update *update, struct err *err, uint32_t flags)
{
    int rc = 0;

    for (size_t i = 0; rc >= 0 && i < ARRAY_LEN(flag_rows); i++) {
        if (flags & flag_rows[i].flag)
            rc = say(update, err, "%s=YES", flag_rows[i].key);
        else if (flags & flag_rows[i].clear)
            rc = say(update, err, "%s=NO", flag_rows[i].key);
    }
    return rc;
}

static int say_state(struct partition_update *update, struct err *err, uint16_t state)
{
    static const struct {
        uint16_t state;
        const char *word;
    } words[] = { { SLURM_PARTITION_UP, "UP" },
                  { SLURM_PARTITION_DOWN, "DOWN" },
                  { SLURM_PARTITION_DRAIN, "DRAIN" },
                  { SLURM_PARTITION_INACTIVE, "INACTIVE" } };

    for (size_t i = 0; state != NO_VAL16 && i < ARRAY_LEN(words); i++) {
        if (words[i].state == state)
            return say(update, err, "State=%s", words[i].word);
    }
    return 0;
}

static int say_share(struct partition_update *update, struct err *err, uint16_t share)
{
    if (share == NO_VAL16)
        return 0;
    if (share == 0)
        return say(update, err, "OverSubscribe=EXCLUSIVE");
    if (share == 1)
        return say(update, err, "OverSubscribe=NO");
    return say(update, err, "OverSubscribe=%s:%u", share & SHARED_FORCE ? "FORCE" : "YES",
               (unsigned)(share & ~SHARED_FORCE));
}

static int read_change(struct partition_update *update, const partition_info_t *msg,
                       struct err *err)
{
    return say_text(update, err, "AllowAccounts", msg->allow_accounts) < 0 ||
                   say_text(update, err, "AllowGroups", msg->allow_groups) < 0 ||
                   say_text(update, err, "AllowQos", msg->allow_qos) < 0 ||
                   say_text(update, err, "AllocNodes", msg->allow_alloc_nodes) < 0 ||
                   say_text(update, err, "Alternate", msg->alternate) < 0 ||
                   say_text(update, err, "TRESBillingWeights", msg->billing_weights_str) < 0 ||
                   say_text(update, err, "DenyAccounts", msg->deny_accounts) < 0 ||
                   say_text(update, err, "DenyQos", msg->deny_qos) < 0 ||
                   say_text(update, err, "Nodes", msg->nodes) < 0 ||
                   say_text(update, err, "QOS", msg->qos_char) < 0 ||
                   say_number(update, err, "DefaultTime", msg->default_time, NO_VAL, INFINITE) <
                       0 ||
                   say_number(update, err, "MaxTime", msg->max_time, NO_VAL, INFINITE) < 0 ||
                   say_number(update, err, "MaxNodes", msg->max_nodes, NO_VAL, INFINITE) < 0 ||
                   say_number(update, err, "MinNodes", msg->min_nodes, NO_VAL, INFINITE) < 0 ||
                   say_number(update, err, "GraceTime", msg->grace_time, NO_VAL, INFINITE) < 0 ||
                   say_number(update, err, "MaxCPUsPerNode", msg->max_cpus_per_node, NO_VAL,
                              INFINITE) < 0 ||
                   say_number(update, err, "PriorityTier", msg->priority_tier, NO_VAL16,
                              INFINITE16) < 0 ||
                   say_number(update, err, "PriorityJobFactor", msg->priority_job_factor, NO_VAL16,
                              INFINITE16) < 0 ||
                   say_number(update, err, "OverTimeLimit", msg->over_time_limit, NO_VAL16,
                              INFINITE16) < 0 ||
                   say_memory(update, err, "DefMemPerCPU", "DefMemPerNode", msg->def_mem_per_cpu) <
                       0 ||
                   say_memory(update, err, "MaxMemPerCPU", "MaxMemPerNode", msg->max_mem_per_cpu) <
                       0 ||
                   (msg->preempt_mode != NO_VAL16 &&
                    say(update, err, "PreemptMode=%s",
                        slurm_preempt_mode_string(msg->preempt_mode)) < 0) ||
                   say_flags(update, err, msg->flags) < 0 ||
                   say_state(update, err, msg->state_up) < 0 ||
                   say_share(update, err, msg->max_share) < 0
               ? -1
               : 0;
}

struct change {
    const partition_info_t *msg;
    bool create;
};

static int change(struct session *session, void *args, struct err *err)
{
    const struct change *asked = args;
    UpdatePartitionRequest request = UPDATE_PARTITION_REQUEST__INIT;
    struct partition_update update = { .spec = NEW(PartitionSpec) };
    DoneReply *reply;

    partition_spec__init(update.spec);
    int rc = str_is_empty(asked->msg->name) ? err_code(err, ERR_INVALID_PARTITION)
                                            : read_change(&update, asked->msg, err);
    if (rc >= 0) {
        update.spec->name = mem_strdup(asked->msg->name);
        request.change = update.spec;
        request.clear = (char **)update.clear.items;
        request.n_clear = update.clear.len;
        request.has_create = request.create = asked->create;
        rc = compat_call(session, "UpdatePartition", &request.base, &done_reply__descriptor,
                         (ProtobufCMessage **)&reply, err);
    }
    partition_update_done(&update);
    return rc;
}

int slurm_update_partition(partition_info_t *part_msg)
{
    NEED(part_msg, SLURM_ERROR);
    return compat_run(change, &(struct change){ .msg = part_msg });
}

int slurm_create_partition(partition_info_t *part_msg)
{
    NEED(part_msg, SLURM_ERROR);
    return compat_run(change, &(struct change){ .msg = part_msg, .create = true });
}

static int delete (struct session *session, void *args, struct err *err)
{
    UpdatePartitionRequest request = UPDATE_PARTITION_REQUEST__INIT;
    PartitionSpec spec = PARTITION_SPEC__INIT;
    DoneReply *reply;

    spec.name = ((delete_part_msg_t *)args)->name;
    request.change = &spec;
    request.has_remove = request.remove = true;
    return compat_call(session, "UpdatePartition", &request.base, &done_reply__descriptor,
                       (ProtobufCMessage **)&reply, err);
}

int slurm_delete_partition(delete_part_msg_t *part_msg)
{
    NEED(part_msg && part_msg->name, SLURM_ERROR);
    return compat_run(delete, part_msg);
}
