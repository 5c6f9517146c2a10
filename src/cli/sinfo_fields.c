// SPDX-License-Identifier: Apache-2.0
/*
 * sinfo_fields.c - columns of sinfo, and what each of them tells apart
 */
#include <ctype.h>
#include <string.h>

#include "base/timefmt.h"
#include "cli/sinfo.h"
#include "schema/names.h"
#include "schema/node_view.h"

static const struct sinfo_group *group_of(const struct field_call *call)
{
    return call->object;
}

static const PartitionSpec *spec_of(const struct field_call *call)
{
    return group_of(call)->partition->spec;
}

static bool text(struct str *out, const char *value)
{
    str_add(out, value);
    return true;
}

static void lower(struct str *out, size_t from)
{
    for (size_t i = from; i < out->len; i++)
        out->data[i] = (char)tolower((unsigned char)out->data[i]);
}

static bool w_avail(const struct field_call *call, struct str *out)
{
    const PartitionSpec *spec = spec_of(call);
    const char *name =
        name_of(&partition_state_names, spec->has_state ? (uint32_t)spec->state : PARTITION_UP);
    size_t from = out->len;

    str_add_len(out, name, MIN(strlen(name), 5)); /* "inact" */
    lower(out, from);
    return true;
}

static bool w_features(const struct field_call *call, struct str *out)
{
    size_t from = out->len;

    if (group_of(call)->first)
        node_add_features(out, group_of(call)->first);
    return out->len > from || text(out, "(null)");
}

/* "4", or "4+" when nodes differ. */
static bool range_plus(struct str *out, struct sinfo_range range)
{
    str_add_u64(out, range.min);
    if (range.max != range.min)
        str_add_char(out, '+');
    return true;
}

static bool w_cpus(const struct field_call *call, struct str *out)
{
    return range_plus(out, group_of(call)->cpus);
}

static bool w_disk(const struct field_call *call, struct str *out)
{
    return range_plus(out, group_of(call)->disk);
}

static bool w_memory(const struct field_call *call, struct str *out)
{
    return range_plus(out, group_of(call)->memory);
}

static bool w_weight(const struct field_call *call, struct str *out)
{
    return range_plus(out, group_of(call)->weight);
}

static bool w_sockets(const struct field_call *call, struct str *out)
{
    return range_plus(out, group_of(call)->sockets);
}

static bool w_cores(const struct field_call *call, struct str *out)
{
    return range_plus(out, group_of(call)->cores);
}

static bool w_threads(const struct field_call *call, struct str *out)
{
    return range_plus(out, group_of(call)->threads);
}

static bool w_sct(const struct field_call *call, struct str *out)
{
    w_sockets(call, out);
    str_add_char(out, ':');
    w_cores(call, out);
    str_add_char(out, ':');
    return w_threads(call, out);
}

static bool w_free(const struct field_call *call, struct str *out)
{
    const struct sinfo_group *group = group_of(call);

    if (!group->any_free)
        return text(out, "N/A");
    str_add_u64(out, group->free_mem.min);
    if (group->free_mem.max != group->free_mem.min)
        str_addf(out, "-%llu", (unsigned long long)group->free_mem.max);
    return true;
}

static bool w_load(const struct field_call *call, struct str *out)
{
    const struct sinfo_group *group = group_of(call);
    unsigned low = (unsigned)group->load.min, high = (unsigned)group->load.max;

    if (!group->any_load)
        return text(out, "N/A");
    str_addf(out, "%u.%02u", low / 100, low % 100);
    if (low != high)
        str_addf(out, "-%u.%02u", high / 100, high % 100);
    return true;
}

static bool list_or_all(struct str *out, char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        str_addf(out, "%s%s", i ? "," : "", list[i]);
    return count || text(out, "all");
}

static bool w_groups(const struct field_call *call, struct str *out)
{
    return list_or_all(out, spec_of(call)->allow_groups, spec_of(call)->n_allow_groups);
}

static bool w_alloc_nodes(const struct field_call *call, struct str *out)
{
    return list_or_all(out, spec_of(call)->allow_alloc_nodes, spec_of(call)->n_allow_alloc_nodes);
}

static bool w_oversubscribe(const struct field_call *call, struct str *out)
{
    return text(out, spec_of(call)->oversubscribe ? spec_of(call)->oversubscribe : "NO");
}

static bool w_time(const struct field_call *call, struct str *out)
{
    const PartitionSpec *spec = spec_of(call);

    if (!spec->has_max_time_s || spec->max_time_s < 0)
        return text(out, "infinite");
    timefmt_write_duration(out, spec->max_time_s, TIMEFMT_SHORT);
    return true;
}

static bool w_default_time(const struct field_call *call, struct str *out)
{
    const PartitionSpec *spec = spec_of(call);

    if (!spec->has_default_time_s)
        return text(out, "n/a");
    if (spec->default_time_s < 0)
        return text(out, "infinite");
    timefmt_write_duration(out, spec->default_time_s, TIMEFMT_SHORT);
    return true;
}

static bool w_hostname(const struct field_call *call, struct str *out)
{
    const Node *first = group_of(call)->first;

    return text(out, first && node_hostname(first) ? node_hostname(first) : "");
}

static bool w_addr(const struct field_call *call, struct str *out)
{
    const Node *first = group_of(call)->first;

    return text(out, first && node_address(first) ? node_address(first) : "");
}

static bool w_port(const struct field_call *call, struct str *out)
{
    const Node *first = group_of(call)->first;

    str_add_u64(
        out, first ? node_spec(first)->port ? node_spec(first)->port : node_found(first)->port : 0);
    return true;
}

static bool w_version(const struct field_call *call, struct str *out)
{
    const Node *first = group_of(call)->first;

    return text(out, first ? node_version(first) : "");
}

static bool w_tier(const struct field_call *call, struct str *out)
{
    str_add_u64(out, spec_of(call)->has_priority_tier ? spec_of(call)->priority_tier : 1);
    return true;
}

static bool w_factor(const struct field_call *call, struct str *out)
{
    str_add_u64(out,
                spec_of(call)->has_priority_job_factor ? spec_of(call)->priority_job_factor : 1);
    return true;
}

static bool w_root(const struct field_call *call, struct str *out)
{
    return text(out, spec_of(call)->root_only ? "yes" : "no");
}

static bool w_size(const struct field_call *call, struct str *out)
{
    const PartitionSpec *spec = spec_of(call);
    uint32_t least = MAX(spec->min_nodes, 1);

    str_add_u64(out, least);
    if (!spec->has_max_nodes)
        return text(out, "-infinite");
    if (spec->max_nodes != least)
        str_addf(out, "-%u", spec->max_nodes);
    return true;
}

static bool w_max_cpus(const struct field_call *call, struct str *out)
{
    if (!spec_of(call)->has_max_cpus_per_node)
        return text(out, "UNLIMITED");
    str_add_u64(out, spec_of(call)->max_cpus_per_node);
    return true;
}

static bool w_state_code(const struct field_call *call, struct str *out)
{
    const Node *first = group_of(call)->first;
    size_t from = out->len;

    if (!first)
        return text(out, "n/a");
    node_state_add_code(out, node_status(first)->state, node_status(first)->flags);
    lower(out, from);
    return true;
}

static bool w_state(const struct field_call *call, struct str *out)
{
    const Node *first = group_of(call)->first;
    size_t from = out->len;

    if (!first)
        return text(out, "n/a");
    node_state_add_text(out, node_status(first)->state, node_status(first)->flags);
    lower(out, from);
    return true;
}

static bool w_state_full(const struct field_call *call, struct str *out)
{
    const Node *first = group_of(call)->first;
    size_t from = out->len;

    if (!first)
        return text(out, "n/a");
    node_state_add_full(out, node_status(first)->state, node_status(first)->flags);
    lower(out, from);
    return true;
}

static const NodeStatus *reason_of(const struct field_call *call)
{
    const Node *first = group_of(call)->first;

    return first && !str_is_empty(node_status(first)->reason) ? node_status(first) : NULL;
}

static bool w_reason(const struct field_call *call, struct str *out)
{
    const NodeStatus *status = reason_of(call);

    return text(out, status ? status->reason : "none");
}

static bool w_user(const struct field_call *call, struct str *out)
{
    const NodeStatus *status = reason_of(call);

    if (!status)
        return text(out, "Unknown");
    if (status->reason_user)
        str_add(out, status->reason_user);
    else
        str_add_u64(out, status->reason_uid);
    return true;
}

static bool w_user_long(const struct field_call *call, struct str *out)
{
    const NodeStatus *status = reason_of(call);

    w_user(call, out);
    if (status)
        str_addf(out, "(%u)", status->reason_uid);
    return true;
}

static bool w_timestamp(const struct field_call *call, struct str *out)
{
    const NodeStatus *status = reason_of(call);

    if (!status || status->reason_us <= 0)
        return text(out, "Unknown");
    field_add_moment(out, call->ctx, status->reason_us);
    return true;
}

static bool w_nodes_ai(const struct field_call *call, struct str *out)
{
    str_addf(out, "%u/%u", group_of(call)->alloc, group_of(call)->idle);
    return true;
}

static bool w_nodes_aiot(const struct field_call *call, struct str *out)
{
    const struct sinfo_group *group = group_of(call);

    str_addf(out, "%u/%u/%u/%zu", group->alloc, group->idle, group->other, group->nodes.len);
    return true;
}

static bool w_cpus_aiot(const struct field_call *call, struct str *out)
{
    const struct sinfo_group *group = group_of(call);

    str_addf(out, "%llu/%llu/%llu/%llu", (unsigned long long)group->cpus_alloc,
             (unsigned long long)group->cpus_idle, (unsigned long long)group->cpus_other,
             (unsigned long long)(group->cpus_alloc + group->cpus_idle + group->cpus_other));
    return true;
}

static bool w_count(const struct field_call *call, struct str *out)
{
    str_add_u64(out, group_of(call)->nodes.len);
    return true;
}

static bool w_gres(const struct field_call *call, struct str *out)
{
    size_t from = out->len;

    if (group_of(call)->first)
        node_add_gres(out, group_of(call)->first);
    return out->len > from || text(out, "(null)");
}

static bool w_gres_used(const struct field_call *call, struct str *out)
{
    size_t from = out->len;

    if (group_of(call)->first)
        node_add_gres_used(out, group_of(call)->first);
    return out->len > from || text(out, "(null)");
}

static bool w_preempt(const struct field_call *call, struct str *out)
{
    return text(out, spec_of(call)->preempt_mode ? spec_of(call)->preempt_mode : "OFF");
}

static bool w_nodes(const struct field_call *call, struct str *out)
{
    CLEANUP(hostlist_done) struct hostlist list = { 0 };

    for (size_t i = 0; i < group_of(call)->nodes.len; i++)
        hostlist_push(&list, node_spec(group_of(call)->nodes.items[i])->name, NULL);
    hostlist_sort(&list, NULL);
    hostlist_format(&list, out);
    return true;
}

static bool w_partition(const struct field_call *call, struct str *out)
{
    str_addf(out, "%s%s", spec_of(call)->name, spec_of(call)->is_default ? "*" : "");
    return true;
}

static bool w_partition_name(const struct field_call *call, struct str *out)
{
    return text(out, spec_of(call)->name);
}

static bool w_cluster(const struct field_call *call, struct str *out)
{
    return text(out, "N/A");
}

static bool w_alloc_mem(const struct field_call *call, struct str *out)
{
    const Node *first = group_of(call)->first;

    /* Of each node: nodes that differ in it do not share a line. */
    str_add_u64(out, first ? node_status(first)->alloc_mem_mb : 0);
    return true;
}

static bool w_comment(const struct field_call *call, struct str *out)
{
    const Node *first = group_of(call)->first;

    return text(out, first && node_spec(first)->comment ? node_spec(first)->comment : "(null)");
}

static bool w_reservation(const struct field_call *call, struct str *out)
{
    const Node *first = group_of(call)->first;

    return text(out, first && first->status && first->status->reservation
                         ? first->status->reservation
                         : "");
}

static bool w_extra(const struct field_call *call, struct str *out)
{
    const Node *first = group_of(call)->first;

    return text(out, first && node_spec(first)->extra ? node_spec(first)->extra : "(null)");
}

/* clang-format off */
static const struct field rows[] = {
    { .write = w_avail, .column = { 'a', "Available", "AVAIL" }, .help = "State of the partition." },
    { .write = w_features, .column = { 'b', "features_act", "ACTIVE_FEATURES" }, .help = "Features that nodes have now." },
    { .write = w_cpus, .column = { 'c', "CPUs", "CPUS" }, .help = "CPUs of each node." },
    { .write = w_disk, .column = { 'd', "Disk", "TMP_DISK" }, .help = "Temporary disk of each node, in MB." },
    { .write = w_free, .column = { 'e', "FreeMem", "FREE_MEM" }, .help = "Memory that nodes have free, in MB." },
    { .write = w_features, .column = { 'f', "Features", "AVAIL_FEATURES" }, .help = "Features that nodes can have." },
    { .write = w_groups, .column = { 'g', "Groups", "GROUPS" }, .help = "Groups that may use the partition." },
    { .write = w_oversubscribe, .column = { 'h', "OverSubscribe", "OVERSUBSCRIBE" }, .help = "Whether jobs share CPUs." },
    { .write = w_reservation, .column = { 'i', "Reservation", "RESERVATION" }, .help = "Reservation that nodes are in." },
    { .write = w_time, .column = { 'l', "Time", "TIMELIMIT" }, .help = "Longest time limit of the partition." },
    { .write = w_memory, .column = { 'm', "Memory", "MEMORY" }, .help = "Memory of each node, in MB." },
    { .write = w_hostname, .column = { 'n', "NodeHost", "HOSTNAMES" }, .help = "Names of the machines." },
    { .write = w_addr, .column = { 'o', "NodeAddr", "NODE_ADDR" }, .help = "Addresses of nodes." },
    { .write = w_tier, .column = { 'p', "PriorityTier", "PRIO_TIER" }, .help = "Priority tier of the partition." },
    { .write = w_root, .column = { 'r', "Root", "ROOT" }, .help = "Whether only root may use the partition." },
    { .write = w_size, .column = { 's', "Size", "JOB_SIZE" }, .help = "Nodes that a job may have." },
    { .write = w_state_code, .column = { 't', "StateCompact", "STATE" }, .help = "State of nodes, short." },
    { .write = w_user, .column = { 'u', "User", "USER" }, .help = "Who gave the reason." },
    { .write = w_version, .column = { 'v', "Version", "VERSION" }, .help = "Version of the agents." },
    { .write = w_weight, .column = { 'w', "Weight", "WEIGHT" }, .help = "Weight of nodes." },
    { .write = w_sct, .column = { 'z', "SocketCoreThread", "S:C:T" }, .help = "Sockets, cores and threads of each node." },
    { .write = w_nodes_ai, .column = { 'A', "NodeAI", "NODES(A/I)" }, .help = "Nodes allocated and idle." },
    { .write = w_max_cpus, .column = { 'B', "MaxCPUsPerNode", "MAX_CPUS_PER_NODE" }, .help = "Most CPUs of a node for jobs of the partition." },
    { .write = w_cpus_aiot, .column = { 'C', "CPUsState", "CPUS(A/I/O/T)" }, .help = "CPUs allocated, idle, other and in total." },
    { .write = w_count, .column = { 'D', "Nodes", "NODES" }, .help = "Number of nodes." },
    { .write = w_reason, .column = { 'E', "Reason", "REASON" }, .help = "Why nodes are down or drained." },
    { .write = w_nodes_aiot, .column = { 'F', "NodeAIOT", "NODES(A/I/O/T)" }, .help = "Nodes allocated, idle, other and in total." },
    { .write = w_gres, .column = { 'G', "Gres", "GRES" }, .help = "Generic resources of each node." },
    { .write = w_timestamp, .column = { 'H', "TimeStamp", "TIMESTAMP" }, .help = "When the reason was given." },
    { .write = w_factor, .column = { 'I', "PriorityJobFactor", "PRIO_JOB_FACTOR" }, .help = "Priority factor of the partition." },
    { .write = w_default_time, .column = { 'L', "DefaultTime", "DEFAULTTIME" }, .help = "Time limit of jobs that ask for none." },
    { .write = w_preempt, .column = { 'M', "PreemptMode", "PREEMPT_MODE" }, .help = "What happens to preempted jobs." },
    { .write = w_nodes, .column = { 'N', "NodeList", "NODELIST" }, .help = "Names of nodes." },
    { .write = w_load, .column = { 'O', "CPUsLoad", "CPU_LOAD" }, .help = "Load of nodes." },
    { .write = w_partition, .column = { 'P', "Partition", "PARTITION" }, .help = "Partition; the default one has a star." },
    { .write = w_partition_name, .column = { 'R', "PartitionName", "PARTITION" }, .help = "Partition." },
    { .write = w_alloc_nodes, .column = { 'S', "AllocNodes", "ALLOCNODES" }, .help = "Hosts that may submit to the partition." },
    { .write = w_state, .column = { 'T', "StateLong", "STATE" }, .help = "State of nodes." },
    { .write = w_user_long, .column = { 'U', "UserLong", "USER" }, .help = "Who gave the reason, with number." },
    { .write = w_cluster, .column = { 'V', "Cluster", "CLUSTER" }, .help = "Cluster." },
    { .write = w_sockets, .column = { 'X', "Sockets", "SOCKETS" }, .help = "Sockets of each node." },
    { .write = w_cores, .column = { 'Y', "Cores", "CORES" }, .help = "Cores of each socket." },
    { .write = w_threads, .column = { 'Z', "Threads", "THREADS" }, .help = "Threads of each core." },
    { .write = w_alloc_mem, .column = { 0, "AllocMem", "ALLOCMEM" }, .help = "Memory that jobs have, in MB." },
    { .write = w_comment, .column = { 0, "Comment", "COMMENT" }, .help = "Comment on nodes." },
    { .write = w_extra, .column = { 0, "Extra", "EXTRA" }, .help = "Text for filters and plugins." },
    { .write = w_gres_used, .column = { 0, "GresUsed", "GRES_USED" }, .help = "Generic resources that jobs have." },
    { .write = w_port, .column = { 0, "Port", "PORT" }, .help = "Port of the agents." },
    { .write = w_state_full, .column = { 0, "StateComplete", "STATECOMPLETE" }, .help = "State of nodes with all flags." },
};
/* clang-format on */

const struct field_table sinfo_fields = { .what = "sinfo", .rows = rows, .count = ARRAY_LEN(rows) };

unsigned sinfo_match_of(const struct field *field)
{
    static const struct {
        field_writer *write;
        unsigned match;
    } matches[] = {
        { w_avail, MATCH_AVAIL },
        { w_features, MATCH_FEATURES },
        { w_groups, MATCH_PART_OTHER },
        { w_oversubscribe, MATCH_PART_OTHER },
        { w_time, MATCH_TIME },
        { w_default_time, MATCH_TIME },
        { w_hostname, MATCH_HOSTNAME },
        { w_addr, MATCH_ADDR },
        { w_tier, MATCH_PART_OTHER },
        { w_factor, MATCH_PART_OTHER },
        { w_root, MATCH_PART_OTHER },
        { w_size, MATCH_PART_OTHER },
        { w_max_cpus, MATCH_PART_OTHER },
        { w_preempt, MATCH_PART_OTHER },
        { w_alloc_nodes, MATCH_PART_OTHER },
        { w_state_code, MATCH_STATE },
        { w_state, MATCH_STATE },
        { w_state_full, MATCH_STATE_FULL },
        { w_user, MATCH_REASON },
        { w_user_long, MATCH_REASON },
        { w_timestamp, MATCH_REASON },
        { w_reason, MATCH_REASON },
        { w_version, MATCH_VERSION },
        { w_gres, MATCH_GRES },
        { w_gres_used, MATCH_GRES_USED },
        { w_partition, MATCH_PARTITION },
        { w_partition_name, MATCH_PARTITION },
        { w_cpus, MATCH_SIZE },
        { w_memory, MATCH_SIZE },
        { w_disk, MATCH_SIZE },
        { w_weight, MATCH_SIZE },
        { w_sct, MATCH_SIZE },
        { w_sockets, MATCH_SIZE },
        { w_cores, MATCH_SIZE },
        { w_threads, MATCH_SIZE },
        { w_comment, MATCH_COMMENT },
        { w_extra, MATCH_COMMENT },
        { w_reservation, MATCH_RESERVATION },
        { w_alloc_mem, MATCH_ALLOC_MEM },
    };

    for (size_t i = 0; i < ARRAY_LEN(matches); i++) {
        if (matches[i].write == field->write)
            return matches[i].match;
    }
    return 0;
}
