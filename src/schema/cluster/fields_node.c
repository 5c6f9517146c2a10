// SPDX-License-Identifier: Apache-2.0
/*
 * fields_node.c - every visible field of a node, in the order of scontrol show node
 *
 * sinfo shows groups of nodes, so its columns are in cli/sinfo_fields.c.
 */
#include "schema/field.h"
#include "schema/names.h"
#include "schema/node_view.h"

#define SPEC(member)   FIELD_OF(Node, spec, NodeSpec, member, node_spec__descriptor)
#define STATUS(member) FIELD_OF(Node, status, NodeStatus, member, node_status__descriptor)

static const Node *node_of(const struct field_call *call)
{
    return call->object;
}

static bool text_or(struct str *out, const char *text, const char *absent)
{
    str_add(out, str_is_empty(text) ? absent : text);
    return true;
}

static bool w_arch(const struct field_call *call, struct str *out)
{
    const char *arch = node_found(node_of(call))->arch;

    str_add(out, arch ? arch : "");
    return !str_is_empty(arch);
}

static bool w_cores(const struct field_call *call, struct str *out)
{
    str_addf(out, "%u ", node_cores(node_of(call)));
    return true;
}

static int64_t n_cores(const struct field_call *call)
{
    return node_cores(node_of(call));
}

static int64_t n_cpus(const struct field_call *call)
{
    return node_cpus(node_of(call));
}

static bool w_cpus(const struct field_call *call, struct str *out)
{
    str_add_u64(out, node_cpus(node_of(call)));
    return true;
}

/* CPUs that jobs may have: all but those left to the system. */
static int64_t n_effective(const struct field_call *call)
{
    return node_effective_cpus(node_of(call));
}

static int64_t n_core_spec(const struct field_call *call)
{
    return (node_cpus(node_of(call)) - n_effective(call)) / node_threads(node_of(call));
}

static bool w_core_spec(const struct field_call *call, struct str *out)
{
    str_add_i64(out, n_core_spec(call));
    return true;
}

static bool w_core_spec_record(const struct field_call *call, struct str *out)
{
    return n_core_spec(call) > 0 && w_core_spec(call, out);
}

static bool w_cpu_spec_list(const struct field_call *call, struct str *out)
{
    struct bitset kept;
    bool any = node_keeps_cpus(node_of(call), &kept);

    bitset_format(&kept, out);
    bitset_done(&kept);
    return any;
}

static bool w_effective(const struct field_call *call, struct str *out)
{
    str_add_i64(out, n_effective(call));
    return true;
}

static bool w_load(const struct field_call *call, struct str *out)
{
    const NodeStatus *status = node_status(node_of(call));

    if (status->has_load_centi)
        str_addf(out, "%u.%02u", status->load_centi / 100, status->load_centi % 100);
    else
        str_add(out, "N/A");
    return true;
}

static bool w_features(const struct field_call *call, struct str *out)
{
    size_t start = out->len;

    node_add_features(out, node_of(call));
    if (out->len == start)
        str_add(out, "(null)");
    return true;
}

static bool w_gres(const struct field_call *call, struct str *out)
{
    size_t start = out->len;

    node_add_gres(out, node_of(call));
    if (out->len == start)
        str_add(out, "(null)");
    return true;
}

static bool w_gres_used(const struct field_call *call, struct str *out)
{
    node_add_gres_used(out, node_of(call));
    return true;
}

static bool w_na(const struct field_call *call, struct str *out)
{
    return text_or(out, "N/A", "");
}

static bool w_addr(const struct field_call *call, struct str *out)
{
    return text_or(out, node_address(node_of(call)), "");
}

static bool w_hostname(const struct field_call *call, struct str *out)
{
    return text_or(out, node_hostname(node_of(call)), "");
}

static int64_t n_port(const struct field_call *call)
{
    const Node *node = node_of(call);

    return node_spec(node)->port ? node_spec(node)->port : node_found(node)->port;
}

static bool w_port(const struct field_call *call, struct str *out)
{
    if (n_port(call))
        str_add_i64(out, n_port(call));
    return n_port(call) != 0;
}

static bool w_version(const struct field_call *call, struct str *out)
{
    str_add(out, node_version(node_of(call)));
    return *node_version(node_of(call)) != '\0';
}

static bool w_os(const struct field_call *call, struct str *out)
{
    const char *os = node_found(node_of(call))->os;

    str_addf(out, "%s ", os ? os : "");
    return !str_is_empty(os);
}

static void j_os(const struct field_call *call, struct jsonw *json)
{
    jsonw_text(json, "operating_system", node_found(node_of(call))->os);
}

static int64_t n_memory(const struct field_call *call)
{
    return (int64_t)node_memory_mb(node_of(call));
}

static bool w_memory(const struct field_call *call, struct str *out)
{
    str_add_i64(out, n_memory(call));
    return true;
}

static int64_t n_sockets(const struct field_call *call)
{
    return node_sockets(node_of(call));
}

static bool w_sockets(const struct field_call *call, struct str *out)
{
    str_add_i64(out, n_sockets(call));
    return true;
}

static int64_t n_boards(const struct field_call *call)
{
    return MAX(node_spec(node_of(call))->boards, 1);
}

static bool w_boards(const struct field_call *call, struct str *out)
{
    str_add_i64(out, n_boards(call));
    return true;
}

static bool w_state(const struct field_call *call, struct str *out)
{
    const NodeStatus *status = node_status(node_of(call));

    node_state_add_full(out, status->state, status->flags);
    return true;
}

static void j_state(const struct field_call *call, struct jsonw *json)
{
    const NodeStatus *status = node_status(node_of(call));

    jsonw_list(json, "state");
    jsonw_text(json, NULL, name_of(&node_state_names, status->state));
    for (size_t i = 0; i < node_flag_names.count; i++) {
        if (node_flag_names.rows[i].value & status->flags)
            jsonw_text(json, NULL, node_flag_names.rows[i].name);
    }
    jsonw_list_end(json);
}

static const char *next_state(const Node *node)
{
    static const char *const words[] = { NULL, "RESUME", "DOWN" };
    unsigned next = (unsigned)node_status(node)->next_state;

    return next < ARRAY_LEN(words) ? words[next] : NULL;
}

static bool w_next_state(const struct field_call *call, struct str *out)
{
    const char *word = next_state(node_of(call));

    str_add(out, word ? word : "");
    return word;
}

static void j_next_state(const struct field_call *call, struct jsonw *json)
{
    const char *word = next_state(node_of(call));

    jsonw_list(json, "next_state_after_reboot");
    if (word)
        jsonw_text(json, NULL, word);
    jsonw_list_end(json);
}

static int64_t n_threads(const struct field_call *call)
{
    return node_threads(node_of(call));
}

static bool w_threads(const struct field_call *call, struct str *out)
{
    str_add_i64(out, n_threads(call));
    return true;
}

static int64_t n_tmp(const struct field_call *call)
{
    return (int64_t)node_tmp_mb(node_of(call));
}

static bool w_tmp(const struct field_call *call, struct str *out)
{
    str_add_i64(out, n_tmp(call));
    return true;
}

static int64_t n_weight(const struct field_call *call)
{
    const NodeSpec *spec = node_spec(node_of(call));

    return spec->has_weight ? spec->weight : 1;
}

static bool w_weight(const struct field_call *call, struct str *out)
{
    str_add_i64(out, n_weight(call));
    return true;
}

static bool w_partitions(const struct field_call *call, struct str *out)
{
    const NodeStatus *status = node_status(node_of(call));

    if (!status->n_partitions)
        return false;
    for (size_t i = 0; i < status->n_partitions; i++)
        str_addf(out, "%s%s", i ? "," : "", status->partitions[i]);
    return true;
}

static bool w_partitions_record(const struct field_call *call, struct str *out)
{
    bool any = w_partitions(call, out);

    if (any)
        str_add_char(out, ' ');
    return any;
}

static bool w_resume_after(const struct field_call *call, struct str *out)
{
    int64_t when_us = node_status(node_of(call))->resume_after_us;

    if (!when_us)
        return text_or(out, NULL, "None");
    field_add_moment(out, call->ctx, when_us);
    return true;
}

static bool w_infinite(const struct field_call *call, struct str *out)
{
    return text_or(out, "INFINITE", "");
}

static bool w_tres(const struct field_call *call, struct str *out)
{
    node_add_tres(out, node_of(call));
    return true;
}

static bool w_tres_used(const struct field_call *call, struct str *out)
{
    node_add_tres_used(out, node_of(call));
    return true;
}

static bool w_zero(const struct field_call *call, struct str *out)
{
    return text_or(out, "0", "");
}

static bool w_jobs(const struct field_call *call, struct str *out)
{
    const NodeStatus *status = node_status(node_of(call));

    for (size_t i = 0; i < status->n_jobs; i++)
        str_addf(out, "%s%u", i ? "," : "", status->jobs[i]);
    return status->n_jobs > 0;
}

/* "bad fan [root@2026-11-15T18:42:39]" */
static bool w_reason(const struct field_call *call, struct str *out)
{
    const NodeStatus *status = node_status(node_of(call));

    if (str_is_empty(status->reason))
        return false;
    str_add(out, status->reason);
    if (status->reason_us > 0) {
        str_add(out, " [");
        if (status->reason_user)
            str_add(out, status->reason_user);
        else
            str_add_u64(out, status->reason_uid);
        str_add_char(out, '@');
        field_add_moment(out, call->ctx, status->reason_us);
        str_add_char(out, ']');
    }
    return true;
}

static int64_t n_idle(const struct field_call *call)
{
    const Node *node = node_of(call);

    return (int64_t)node_cpus(node) - node_status(node)->alloc_cpus;
}

/* clang-format off */
static const struct field rows[] = {
    { .of = SPEC(name), .write = field_text, .key = "NodeName", .line = true, .json = { "name", SHAPE_TEXT }, .help = "Name of the node." },
    { .write = w_arch, .key = "Arch", .json = { "architecture", SHAPE_SHOWN }, .help = "Kind of processor." },
    { .of = SPEC(cores_per_socket), .write = w_cores, .number = n_cores, .key = "CoresPerSocket", .json = { "cores", SHAPE_NUMBER }, .help = "Cores of each socket." },
    { .of = STATUS(alloc_cpus), .write = field_number, .key = "CPUAlloc", .line = true, .json = { "alloc_cpus", SHAPE_NUMBER }, .help = "CPUs that jobs have." },
    { .write = w_effective, .number = n_effective, .key = "CPUEfctv", .json = { "effective_cpus", SHAPE_NUMBER }, .help = "CPUs that jobs may have." },
    { .of = SPEC(cpus), .write = w_cpus, .number = n_cpus, .key = "CPUTot", .json = { "cpus", SHAPE_NUMBER }, .help = "All CPUs." },
    { .of = STATUS(load_centi), .write = w_load, .key = "CPULoad", .json = { "cpu_load", SHAPE_NUMBER }, .help = "Load average." },
    { .of = SPEC(features), .write = w_features, .key = "AvailableFeatures", .line = true, .json = { "features", SHAPE_WORDS }, .help = "Features it can have." },
    { .write = w_features, .key = "ActiveFeatures", .line = true, .json = { "active_features", SHAPE_WORDS }, .help = "Features it has now." },
    { .of = SPEC(gres), .write = w_gres, .key = "Gres", .line = true, .json = { "gres", SHAPE_SHOWN }, .help = "Generic resources." },
    { .write = w_na, .key = "GresDrain", .line = true, .detail = true, .json = { "gres_drained", SHAPE_SHOWN }, .help = "Generic resources taken out of use." },
    { .of = STATUS(alloc_gres), .write = w_gres_used, .key = "GresUsed", .line = true, .detail = true, .json = { "gres_used", SHAPE_SHOWN }, .help = "Generic resources that jobs have." },
    { .of = SPEC(addr), .write = w_addr, .key = "NodeAddr", .line = true, .json = { "address", SHAPE_SHOWN }, .help = "Address its agent listens on." },
    { .of = SPEC(hostname), .write = w_hostname, .key = "NodeHostName", .json = { "hostname", SHAPE_SHOWN }, .help = "Name of its machine." },
    { .of = SPEC(port), .write = w_port, .number = n_port, .key = "Port", .json = { "port", SHAPE_NUMBER }, .help = "Port its agent listens on." },
    { .write = w_version, .key = "Version", .json = { "version", SHAPE_SHOWN }, .help = "Version of its agent." },
    { .write = w_os, .key = "OS", .line = true, .json = { "operating_system", SHAPE_FN, .write = j_os }, .help = "Operating system." },
    { .of = SPEC(memory_mb), .write = w_memory, .number = n_memory, .key = "RealMemory", .line = true, .json = { "real_memory", SHAPE_NUMBER }, .help = "Memory, in MB." },
    { .of = STATUS(alloc_mem_mb), .write = field_number, .key = "AllocMem", .json = { "alloc_memory", SHAPE_NUMBER }, .help = "Memory that jobs have, in MB." },
    { .of = STATUS(free_mem_mb), .write = field_number_na, .key = "FreeMem", .json = { "free_mem", SHAPE_SET }, .help = "Memory the machine has free, in MB." },
    { .of = SPEC(sockets), .write = w_sockets, .number = n_sockets, .key = "Sockets", .json = { "sockets", SHAPE_NUMBER }, .help = "Sockets." },
    { .of = SPEC(boards), .write = w_boards, .number = n_boards, .key = "Boards", .json = { "boards", SHAPE_NUMBER }, .help = "Boards." },
    { .of = SPEC(core_spec), .write = w_core_spec, .number = n_core_spec, .key = "CoreSpecCount", .line = true, .record = w_core_spec_record, .json = { "specialized_cores", SHAPE_NUMBER }, .help = "Cores left to the system." },
    { .of = SPEC(cpu_spec_list), .write = w_cpu_spec_list, .key = "CPUSpecList", .record = w_cpu_spec_list, .json = { "specialized_cpus", SHAPE_SHOWN }, .help = "CPUs left to the system." },
    { .of = SPEC(mem_spec_mb), .write = field_number, .key = "MemSpecLimit", .record = field_number_or_skip, .json = { "specialized_memory", SHAPE_NUMBER }, .help = "Memory left to the system, in MB." },
    { .of = STATUS(state), .write = w_state, .key = "State", .line = true, .json = { "state", SHAPE_FN, .write = j_state }, .help = "State with all its flags." },
    { .of = STATUS(flags), .skip = "part of the state" },
    { .of = SPEC(threads_per_core), .write = w_threads, .number = n_threads, .key = "ThreadsPerCore", .json = { "threads", SHAPE_NUMBER }, .help = "Threads of each core." },
    { .of = SPEC(tmp_disk_mb), .write = w_tmp, .number = n_tmp, .key = "TmpDisk", .json = { "temporary_disk", SHAPE_NUMBER }, .help = "Temporary disk, in MB." },
    { .of = SPEC(weight), .write = w_weight, .number = n_weight, .key = "Weight", .json = { "weight", SHAPE_NUMBER }, .help = "Nodes of low weight are used first." },
    { .write = w_na, .key = "Owner", .json = { "owner", SHAPE_SHOWN }, .help = "User who has it alone." },
    { .write = w_na, .key = "MCS_label", .json = { "mcs_label", SHAPE_SHOWN }, .help = "Security label." },
    { .of = STATUS(next_state), .write = w_next_state, .key = "NextState", .line = true, .record = w_next_state, .json = { "next_state_after_reboot", SHAPE_FN, .write = j_next_state }, .help = "What follows the reboot that is asked for." },
    { .of = STATUS(reboot_issued_us), .skip = "when it is late; State shows that it is under way" },
    { .of = STATUS(reboot_drained), .skip = "State shows the drain" },
    { .of = STATUS(partitions), .write = w_partitions, .key = "Partitions", .line = true, .record = w_partitions_record, .json = { "partitions", SHAPE_WORDS }, .help = "Partitions it is in." },
    { .of = STATUS(boot_us), .write = field_time_none, .key = "BootTime", .line = true, .json = { "boot_time", SHAPE_TIME }, .help = "When it booted." },
    { .of = STATUS(started_us), .write = field_time_none, .key = "SlurmdStartTime", .json = { "slurmd_start_time", SHAPE_TIME }, .help = "When its agent started." },
    { .of = STATUS(last_busy_us), .write = field_time_unknown, .key = "LastBusyTime", .line = true, .json = { "last_busy", SHAPE_TIME }, .help = "When a job last ended on it." },
    { .of = STATUS(reservation), .write = field_text, .json = { "reservation", SHAPE_TEXT }, .help = "Reservation that it is in now." },
    { .of = STATUS(resume_after), .skip = "resume_after_us is the time" },
    { .of = STATUS(resume_after_us), .write = w_resume_after, .key = "ResumeAfterTime", .json = { "resume_after", SHAPE_TIME }, .help = "When it comes back by itself." },
    { .write = w_infinite, .key = "SuspendTime", .help = "Powered down after being idle so long." },
    { .write = w_tres, .key = "CfgTRES", .line = true, .json = { "tres", SHAPE_SHOWN }, .help = "All it has." },
    { .write = w_tres_used, .key = "AllocTRES", .line = true, .json = { "tres_used", SHAPE_SHOWN }, .help = "All that jobs have." },
    { .write = w_zero, .key = "CurrentWatts", .line = true, .help = "Power it draws." },
    { .write = w_zero, .key = "AveWatts", .help = "Power it draws on average." },
    { .of = SPEC(comment), .write = field_text, .key = "Comment", .line = true, .record = field_text_or_skip, .json = { "comment", SHAPE_TEXT }, .help = "Comment of an administrator." },
    { .of = SPEC(extra), .write = field_text, .key = "Extra", .line = true, .record = field_text_or_skip, .json = { "extra", SHAPE_TEXT }, .help = "Text for filters and plugins." },
    { .of = SPEC(instance_id), .write = field_text, .key = "InstanceId", .line = true, .record = field_text_or_skip, .json = { "instance_id", SHAPE_TEXT }, .help = "Number of its machine at a cloud." },
    { .of = SPEC(instance_type), .write = field_text, .key = "InstanceType", .record = field_text_or_skip, .json = { "instance_type", SHAPE_TEXT }, .help = "Kind of its machine at a cloud." },
    { .of = SPEC(topology), .write = field_text, .key = "Topology", .line = true, .record = field_text_or_skip, .json = { "topology", SHAPE_TEXT }, .help = "Where it is in the network." },
    { .of = STATUS(reason), .write = field_text, .key = "Reason", .line = true, .record = w_reason, .json = { "reason", SHAPE_TEXT }, .help = "Why it is down or drained." },
    { .of = STATUS(reason_us), .json = { "reason_changed_at", SHAPE_TIME }, .help = "When the reason was given." },
    { .of = STATUS(reason_user), .json = { "reason_set_by_user", SHAPE_TEXT }, .help = "Who gave it." },
    { .of = STATUS(reason_uid), .json = { "reason_set_by_uid", SHAPE_NUMBER }, .help = "Number of who gave it." },
    { .of = STATUS(jobs), .write = w_jobs, .json = { "jobs", SHAPE_WORDS }, .help = "Jobs on it." },
    { .number = n_idle, .json = { "alloc_idle_cpus", SHAPE_NUMBER }, .help = "CPUs that are free." },
    { .of = STATUS(last_seen_us), .json = { "last_seen", SHAPE_TIME }, .help = "When it last answered." },
    { .of = STATUS(boot_id), .json = { "boot_id", SHAPE_TEXT }, .help = "Changes with every boot." },
    { .of = STATUS(found), .skip = "what the agent found fills in what is not configured" },
    { .of = SPEC(state), .skip = "only where a node begins; State shows where it is" },
    { .of = SPEC(reason), .skip = "only where a node begins; Reason shows the one that holds" },
};
/* clang-format on */

const struct field_table node_fields = { .what = "node", .rows = rows, .count = ARRAY_LEN(rows) };
