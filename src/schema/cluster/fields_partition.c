// SPDX-License-Identifier: Apache-2.0
/*
 * fields_partition.c - every visible field of a partition, in the order of scontrol show partition
 */
#include "base/hostlist.h"
#include "base/timefmt.h"
#include "proto/config.pb-c.h"
#include "proto/controller.pb-c.h"
#include "schema/field.h"
#include "schema/names.h"
#include "schema/node_view.h"

#define SPEC(member) FIELD_OF(Partition, spec, PartitionSpec, member, partition_spec__descriptor)
#define TOTAL(member)                                          \
    {                                                          \
        0, offsetof(Partition, member), &partition__descriptor \
    }

static const PartitionSpec *spec_of(const struct field_call *call)
{
    static const PartitionSpec none = PARTITION_SPEC__INIT;
    const Partition *partition = call->object;

    return partition->spec ? partition->spec : &none;
}

static bool text(struct str *out, const char *value)
{
    str_add(out, value);
    return true;
}

static bool number_or(const struct field_call *call, struct str *out, const char *absent)
{
    return field_present(call) ? field_number(call, out) : text(out, absent);
}

static bool w_unlimited(const struct field_call *call, struct str *out)
{
    return number_or(call, out, "UNLIMITED");
}

static bool w_one(const struct field_call *call, struct str *out)
{
    return number_or(call, out, "1");
}

static int64_t n_one(const struct field_call *call)
{
    return field_present(call) ? field_value(call) : 1;
}

static bool w_none(const struct field_call *call, struct str *out)
{
    return number_or(call, out, "NONE");
}

static int64_t n_unlimited(const struct field_call *call)
{
    return field_present(call) ? field_value(call) : -1;
}

static bool w_allow_accounts(const struct field_call *call, struct str *out)
{
    const PartitionSpec *spec = spec_of(call);

    return (spec->n_allow_accounts || !spec->n_deny_accounts) && field_list_all(call, out);
}

static bool w_deny_accounts(const struct field_call *call, struct str *out)
{
    const PartitionSpec *spec = spec_of(call);

    return !spec->n_allow_accounts && spec->n_deny_accounts && field_list(call, out);
}

static bool w_allow_qos(const struct field_call *call, struct str *out)
{
    const PartitionSpec *spec = spec_of(call);

    return (spec->n_allow_qos || !spec->n_deny_qos) && field_list_all(call, out);
}

static bool w_deny_qos(const struct field_call *call, struct str *out)
{
    const PartitionSpec *spec = spec_of(call);

    return !spec->n_allow_qos && spec->n_deny_qos && field_list(call, out);
}

static bool list_or_empty(const struct field_call *call, struct str *out)
{
    return field_present(call) && field_list(call, out);
}

static bool w_time_or_none(const struct field_call *call, struct str *out)
{
    if (!field_present(call))
        return text(out, "NONE");
    timefmt_write_duration(out, field_value(call), TIMEFMT_LONG);
    return true;
}

static bool w_max_time(const struct field_call *call, struct str *out)
{
    timefmt_write_duration(out, field_present(call) ? field_value(call) : -1, TIMEFMT_LONG);
    return true;
}

static bool w_exclusive(const struct field_call *call, struct str *out)
{
    return text(out, field_value(call) ? "USER" : "NO");
}

static bool w_nodes(const struct field_call *call, struct str *out)
{
    const Partition *partition = call->object;
    CLEANUP(hostlist_done) struct hostlist list = { 0 };

    if (!partition->n_node_names)
        return field_text(call, out);
    for (size_t i = 0; i < partition->n_node_names; i++)
        hostlist_push(&list, partition->node_names[i], NULL);
    hostlist_format(&list, out);
    return true;
}

static bool w_oversubscribe(const struct field_call *call, struct str *out)
{
    return text(out, field_string(call) ? field_string(call) : "NO");
}

static bool w_preempt(const struct field_call *call, struct str *out)
{
    return text(out, field_string(call) ? field_string(call) : "OFF");
}

static bool w_state(const struct field_call *call, struct str *out)
{
    const PartitionSpec *spec = spec_of(call);

    return text(out, name_of(&partition_state_names,
                             spec->has_state ? (uint32_t)spec->state : PARTITION_UP));
}

static bool w_select(const struct field_call *call, struct str *out)
{
    return text(out, field_string(call) ? field_string(call) : "NONE");
}

static bool w_job_defaults(const struct field_call *call, struct str *out)
{
    const PartitionSpec *spec = spec_of(call);

    if (spec->has_def_cpu_per_gpu)
        str_addf(out, "DefCpuPerGPU=%u", spec->def_cpu_per_gpu);
    if (spec->has_def_mem_per_gpu_mb)
        str_addf(out, "%sDefMemPerGPU=%llu", spec->has_def_cpu_per_gpu ? "," : "",
                 (unsigned long long)spec->def_mem_per_gpu_mb);
    if (!spec->has_def_cpu_per_gpu && !spec->has_def_mem_per_gpu_mb)
        str_add(out, "(null)");
    return true;
}

/* Of memory per CPU and per node only the one that is set is shown; per node when none is. */
static bool w_def_mem_cpu(const struct field_call *call, struct str *out)
{
    return spec_of(call)->def_mem_per_cpu_mb && field_number(call, out);
}

static bool w_def_mem_node(const struct field_call *call, struct str *out)
{
    return !spec_of(call)->def_mem_per_cpu_mb &&
           (field_value(call) ? field_number(call, out) : text(out, "UNLIMITED"));
}

static bool w_max_mem_cpu(const struct field_call *call, struct str *out)
{
    return spec_of(call)->max_mem_per_cpu_mb && field_number(call, out);
}

static bool w_max_mem_node(const struct field_call *call, struct str *out)
{
    return !spec_of(call)->max_mem_per_cpu_mb &&
           (field_value(call) ? field_number(call, out) : text(out, "UNLIMITED"));
}

static bool w_tres(const struct field_call *call, struct str *out)
{
    const Partition *partition = call->object;
    struct tres_count count = { .cpus = partition->total_cpus,
                                .nodes = partition->total_nodes,
                                .billing = partition->total_cpus };

    if (partition->tres)
        str_add(out, partition->tres);
    else
        tres_add(out, &count);
    return true;
}

static void j_flags(const struct field_call *call, struct jsonw *json)
{
    const PartitionSpec *spec = spec_of(call);
    const struct {
        bool set;
        const char *name;
    } flags[] = {
        { spec->is_default, "DEFAULT" },           { spec->hidden, "HIDDEN" },
        { spec->disable_root, "NO_ROOT" },         { spec->root_only, "ROOT_ONLY" },
        { spec->req_resv, "REQUIRE_RESERVATION" }, { spec->lln, "LLN" },
    };

    jsonw_list(json, "flags");
    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        if (flags[i].set)
            jsonw_text(json, NULL, flags[i].name);
    }
    jsonw_list_end(json);
}

/* clang-format off */
static const struct field rows[] = {
    { .of = SPEC(name), .write = field_text, .key = "PartitionName", .line = true, .json = { "name", SHAPE_TEXT }, .help = "Name of the partition." },
    { .of = SPEC(allow_groups), .write = list_or_empty, .key = "AllowGroups", .line = true, .record = field_list_all, .json = { "groups.allowed", SHAPE_SHOWN }, .help = "Groups that may use it." },
    { .of = SPEC(allow_accounts), .write = list_or_empty, .key = "AllowAccounts", .record = w_allow_accounts, .json = { "accounts.allowed", SHAPE_SHOWN }, .help = "Accounts that may use it." },
    { .of = SPEC(deny_accounts), .write = list_or_empty, .key = "DenyAccounts", .record = w_deny_accounts, .json = { "accounts.deny", SHAPE_SHOWN }, .help = "Accounts that may not." },
    { .of = SPEC(allow_qos), .write = list_or_empty, .key = "AllowQos", .record = w_allow_qos, .json = { "qos.allowed", SHAPE_SHOWN }, .help = "QOS that may use it." },
    { .of = SPEC(deny_qos), .write = list_or_empty, .key = "DenyQos", .record = w_deny_qos, .json = { "qos.deny", SHAPE_SHOWN }, .help = "QOS that may not." },
    { .of = SPEC(allow_alloc_nodes), .write = list_or_empty, .key = "AllocNodes", .line = true, .record = field_list_all, .json = { "nodes.allowed_allocation", SHAPE_SHOWN }, .help = "Hosts that may submit to it." },
    { .of = SPEC(is_default), .write = field_yes_no, .key = "Default", .json = { "flags", SHAPE_FN, .write = j_flags }, .help = "Used when a job names none." },
    { .of = SPEC(qos), .write = field_text_na, .key = "QoS", .json = { "qos.assigned", SHAPE_TEXT }, .help = "QOS whose limits it has." },
    { .of = SPEC(alternate), .write = field_text, .key = "Alternate", .record = field_text_or_skip, .json = { "alternate", SHAPE_TEXT }, .help = "Used instead when it is down." },
    { .of = SPEC(default_time_s), .write = w_time_or_none, .key = "DefaultTime", .line = true, .json = { "defaults.time", SHAPE_SET, .per = 60 }, .help = "Time limit of jobs that ask for none." },
    { .of = SPEC(disable_root), .write = field_yes_no, .key = "DisableRootJobs", .help = "Root may not run jobs." },
    { .of = SPEC(exclusive_user), .write = w_exclusive, .key = "Exclusive", .json = { "partition.exclusive", SHAPE_SHOWN }, .help = "Nodes are for one user at a time." },
    { .of = SPEC(grace_time_s), .write = field_number, .key = "GraceTime", .json = { "grace_time", SHAPE_NUMBER }, .help = "Seconds a preempted job gets." },
    { .of = SPEC(hidden), .write = field_yes_no, .key = "Hidden", .help = "Not shown unless asked for." },
    { .of = SPEC(max_nodes), .write = w_unlimited, .number = n_unlimited, .key = "MaxNodes", .line = true, .json = { "maximums.nodes", SHAPE_SET }, .help = "Most nodes of a job." },
    { .of = SPEC(max_time_s), .write = w_max_time, .number = n_unlimited, .key = "MaxTime", .json = { "maximums.time", SHAPE_SET, .per = 60 }, .help = "Longest time limit." },
    { .of = SPEC(min_nodes), .write = field_number, .key = "MinNodes", .json = { "minimums.nodes", SHAPE_NUMBER }, .help = "Fewest nodes of a job." },
    { .of = SPEC(lln), .write = field_yes_no, .key = "LLN", .help = "Least loaded nodes first." },
    { .of = SPEC(max_cpus_per_node), .write = w_unlimited, .number = n_unlimited, .key = "MaxCPUsPerNode", .json = { "maximums.cpus_per_node", SHAPE_SET }, .help = "Most CPUs of a node for its jobs." },
    { .of = SPEC(max_cpus_per_socket), .write = w_unlimited, .number = n_unlimited, .key = "MaxCPUsPerSocket", .json = { "maximums.cpus_per_socket", SHAPE_SET }, .help = "Most CPUs of a socket for its jobs." },
    { .of = SPEC(nodes), .write = w_nodes, .key = "Nodes", .line = true, .json = { "nodes.configured", SHAPE_SHOWN }, .help = "Its nodes." },
    { .of = SPEC(priority_job_factor), .write = w_one, .number = n_one, .key = "PriorityJobFactor", .line = true, .json = { "priority.job_factor", SHAPE_NUMBER }, .help = "Part of its jobs' priority." },
    { .of = SPEC(priority_tier), .write = w_one, .number = n_one, .key = "PriorityTier", .json = { "priority.tier", SHAPE_NUMBER }, .help = "Jobs of a higher tier come first." },
    { .of = SPEC(root_only), .write = field_yes_no, .key = "RootOnly", .help = "Only root may use it." },
    { .of = SPEC(req_resv), .write = field_yes_no, .key = "ReqResv", .help = "Jobs must name a reservation." },
    { .of = SPEC(oversubscribe), .write = w_oversubscribe, .key = "OverSubscribe", .json = { "partition.oversubscribe", SHAPE_SHOWN }, .help = "How many jobs share a CPU." },
    { .of = SPEC(over_time_limit_min), .write = w_none, .key = "OverTimeLimit", .line = true, .json = { "maximums.over_time_limit", SHAPE_SET }, .help = "Minutes a job may exceed its limit." },
    { .of = SPEC(preempt_mode), .write = w_preempt, .key = "PreemptMode", .json = { "preempt_mode", SHAPE_WORDS }, .help = "What happens to preempted jobs." },
    { .of = SPEC(state), .write = w_state, .key = "State", .line = true, .json = { "partition.state", SHAPE_WORDS }, .help = "UP, DOWN, DRAIN or INACTIVE." },
    { .of = TOTAL(total_cpus), .write = field_number, .key = "TotalCPUs", .json = { "cpus.total", SHAPE_NUMBER }, .help = "CPUs of its nodes." },
    { .of = TOTAL(total_nodes), .write = field_number, .key = "TotalNodes", .json = { "nodes.total", SHAPE_NUMBER }, .help = "Number of its nodes." },
    { .of = SPEC(select_parameters), .write = w_select, .key = "SelectTypeParameters", .json = { "select_type", SHAPE_WORDS }, .help = "How resources are counted." },
    { .of = SPEC(def_cpu_per_gpu), .write = w_job_defaults, .key = "JobDefaults", .line = true, .json = { "defaults.job", SHAPE_SHOWN }, .help = "CPUs and memory per GPU when not asked for." },
    { .of = SPEC(def_mem_per_gpu_mb), .skip = "part of the job defaults" },
    { .of = SPEC(bookings), .skip = "Slurm has no such setting; scontrol show config has it in its own form" },
    { .of = SPEC(def_mem_per_cpu_mb), .write = w_def_mem_cpu, .key = "DefMemPerCPU", .line = true, .json = { "defaults.partition_memory_per_cpu", SHAPE_SET }, .help = "Memory per CPU when not asked for, in MB." },
    { .of = SPEC(def_mem_per_node_mb), .write = w_def_mem_node, .key = "DefMemPerNode", .json = { "defaults.partition_memory_per_node", SHAPE_SET_0 }, .help = "Memory per node when not asked for, in MB." },
    { .of = SPEC(max_mem_per_cpu_mb), .write = w_max_mem_cpu, .key = "MaxMemPerCPU", .json = { "maximums.partition_memory_per_cpu", SHAPE_SET }, .help = "Most memory per CPU, in MB." },
    { .of = SPEC(max_mem_per_node_mb), .write = w_max_mem_node, .key = "MaxMemPerNode", .json = { "maximums.partition_memory_per_node", SHAPE_SET_0 }, .help = "Most memory per node, in MB." },
    { .of = TOTAL(tres), .write = w_tres, .key = "TRES", .line = true, .json = { "tres.configured", SHAPE_SHOWN }, .help = "All its nodes have." },
    { .of = SPEC(tres_billing_weights), .write = field_text, .key = "TRESBillingWeights", .line = true, .record = field_text_or_skip, .json = { "tres.billing_weights", SHAPE_TEXT }, .help = "What its resources cost." },
    { .of = SPEC(suspend_time_s), .json = { "suspend_time", SHAPE_SET }, .help = "Idle nodes are powered down after so long." },
    { .of = SPEC(cpu_bind), .json = { "cpus.task_binding", SHAPE_TEXT }, .help = "How tasks are bound when not asked for." },
    { .of = SPEC(topology), .json = { "topology", SHAPE_TEXT }, .help = "Topology its jobs are placed by." },
};
/* clang-format on */

const struct field_table partition_fields = { .what = "partition",
                                              .rows = rows,
                                              .count = ARRAY_LEN(rows) };
