// SPDX-License-Identifier: Apache-2.0
/*
 * update.c - rows of scontrol create and update for partitions, nodes and reservations
 */
#include "schema/update.h"

#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/limits.h"
#include "base/size.h"
#include "base/timefmt.h"
#include "schema/conf.h"
#include "schema/names.h"
#include "wire/message.h"

/* Every target here begins with its message and the list of fields to clear. */
struct any_update {
    void *message;
    VEC(const char *) clear;
};

static int bad(const struct option_call *call, const char *value, struct err *err)
{
    return err_set(err, ERR_INVALID, "Invalid %s value: %s", call->row->update, value);
}

static const ProtobufCFieldDescriptor *field_of(const struct option_call *call)
{
    return msg_field_at(call->row->into.type, call->row->into.offset);
}

static int clear_field(const struct option_call *call)
{
    struct any_update *update = call->target;

    vec_push(&update->clear, field_of(call)->name);
    return 0;
}

static int read_text(const struct option_call *call, const char *value, struct err *err)
{
    if (!*value)
        return clear_field(call);
    if (strlen(value) > LIMIT_COMMENT_BYTES)
        return err_set(err, ERR_TOO_LARGE, "%s is longer than %d bytes", call->row->update,
                       LIMIT_COMMENT_BYTES);
    option_set_text(call, value);
    return 0;
}

static int read_hosts(const struct option_call *call, const char *value, struct err *err)
{
    CLEANUP(hostlist_done) struct hostlist list = { 0 };

    if (hostlist_parse(&list, value, NULL) < 0)
        return bad(call, value, err);
    return read_text(call, value, err);
}

/* A comma list; ALL and nothing are the default. */
static int read_list(const struct option_call *call, const char *value, struct err *err)
{
    const ProtobufCFieldDescriptor *field = field_of(call);
    char *base = *(char **)call->target;
    char ***items = (char ***)(void *)(base + field->offset);
    size_t *count = (size_t *)(void *)(base + field->quantifier_offset);
    const char *cursor = value;
    struct span word;

    if (!*value || str_ieq(value, "ALL"))
        return clear_field(call);
    while (str_next(&cursor, ",", &word)) {
        if (*count >= LIMIT_NODES)
            return err_set(err, ERR_TOO_MANY, "%s has too many words", call->row->update);
        *items = mem_resize(*items, (*count + 1) * sizeof(char *));
        (*items)[(*count)++] = mem_strndup(word.ptr, word.len);
    }
    return 0;
}

/* cpu=1.0,mem=0.25G,gres/gpu=2: every weight is a number, with a unit if need be. */
static int read_weights(const struct option_call *call, const char *value, struct err *err)
{
    const char *cursor = value;
    struct span word;

    while (str_next(&cursor, ",", &word)) {
        const char *equals = memchr(word.ptr, '=', word.len);
        size_t len = equals ? (size_t)(word.ptr + word.len - equals) - 1 : 0;
        size_t digits = len ? strspn(equals + 1, "0123456789.") : 0;

        digits = MIN(digits, len);
        if (!digits || equals == word.ptr || digits + 1 < len ||
            (digits < len && !strchr("KMGTPkmgtp", equals[1 + digits])))
            return bad(call, value, err);
    }
    return read_text(call, value, err);
}

static int read_bool(const struct option_call *call, const char *value, struct err *err)
{
    bool yes = str_ieq(value, "yes") || str_ieq(value, "true") || strcmp(value, "1") == 0;

    if (!yes && !str_ieq(value, "no") && !str_ieq(value, "false") && strcmp(value, "0") != 0)
        return bad(call, value, err);
    option_set_number(call, yes);
    return 0;
}

static int read_count(const struct option_call *call, const char *value, struct err *err)
{
    uint64_t number;

    if (!*value || str_ieq(value, "UNLIMITED") || str_ieq(value, "INFINITE") ||
        str_ieq(value, "NONE"))
        return clear_field(call);
    if (!str_to_u64(value, UINT32_MAX - 2, &number))
        return bad(call, value, err);
    option_set_number(call, (int64_t)number);
    return 0;
}

/* A number, or one for each node by comma. */
static int read_counts(const struct option_call *call, const char *value, struct err *err)
{
    const ProtobufCFieldDescriptor *field = field_of(call);
    char *base = *(char **)call->target;
    uint32_t **items = (uint32_t **)(void *)(base + field->offset);
    size_t *count = (size_t *)(void *)(base + field->quantifier_offset);
    const char *cursor = value;
    struct span word;

    while (str_next(&cursor, ",", &word)) {
        uint64_t number = 0;
        for (size_t i = 0; i < word.len && number <= UINT32_MAX; i++) {
            if (word.ptr[i] < '0' || word.ptr[i] > '9')
                return bad(call, value, err);
            number = number * 10 + (uint64_t)(word.ptr[i] - '0');
        }
        if (!word.len || number > UINT32_MAX - 2 || *count >= LIMIT_NODES)
            return bad(call, value, err);
        *items = mem_resize(*items, (*count + 1) * sizeof(**items));
        (*items)[(*count)++] = (uint32_t)number;
    }
    return *count ? 0 : bad(call, value, err);
}

static int read_megabytes(const struct option_call *call, const char *value, struct err *err)
{
    uint64_t bytes;

    if (!*value || str_ieq(value, "UNLIMITED"))
        return clear_field(call);
    if (size_read_memory(value, SIZE_M, &bytes, NULL) < 0)
        return bad(call, value, err);
    option_set_number(call, (int64_t)size_megabytes(bytes));
    return 0;
}

static int read_limit(const struct option_call *call, const char *value, struct err *err)
{
    int64_t seconds;

    if (!*value || str_ieq(value, "NONE"))
        return clear_field(call);
    if (timefmt_read_duration(value, &seconds, NULL) < 0)
        return bad(call, value, err);
    option_set_number(call, seconds);
    return 0;
}

static int read_partition_state(const struct option_call *call, const char *value, struct err *err)
{
    const struct name_row *row = name_find(&partition_state_names, value, strlen(value));

    if (!row)
        return err_set(
            err, ERR_INVALID,
            "Invalid input: %s\nAcceptable State values are UP, DOWN, DRAIN, and INACTIVE", value);
    option_set_number(call, row->value);
    return 0;
}

static int read_point(const struct option_call *call, const char *value, struct err *err)
{
    int64_t point;

    if (timefmt_read_point(value, call->ctx->now_us / 1000000, TIMEFMT_COMING, &point, NULL) < 0)
        return err_set(err, ERR_INVALID, "Invalid %s: %s", call->row->update, value);
    option_set_number(call, point * 1000000);
    return 0;
}

static int read_duration(const struct option_call *call, const char *value, struct err *err)
{
    int64_t seconds;

    if (timefmt_read_duration(value, &seconds, NULL) < 0)
        return bad(call, value, err);
    option_set_number(call, seconds);
    return 0;
}

static int read_node_state(const struct option_call *call, const char *value, struct err *err)
{
    static const char *const words[] = {
        "CANCEL_REBOOT", "DOWN",    "DRAIN",           "FAIL",
        "FUTURE",        "IDLE",    "NORESP",          "NO_RESPOND",
        "RESUME",        "UNDRAIN", "POWER_DOWN",      "POWER_UP",
        "DRAINING",      "FAILING", "POWER_DOWN_ASAP", "POWER_DOWN_FORCE",
    };

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_ieq(value, words[i])) {
            option_set_text(call, words[i]);
            return 0;
        }
    }
    return err_set(err, ERR_INVALID,
                   "Invalid input: %s\nRequest aborted\nValid states are: CANCEL_REBOOT DOWN DRAIN "
                   "FAIL FUTURE NORESP RESUME UNDRAIN",
                   value);
}

static int read_node_text(const struct option_call *call, const char *value, struct err *err)
{
    option_set_text(call, value);
    return 0;
}

static int read_features(const struct option_call *call, const char *value, struct err *err)
{
    struct node_update *update = call->target;

    update->features = true;
    return *value ? read_list(call, value, err) : 0;
}

static int read_node_gres(const struct option_call *call, const char *value, struct err *err)
{
    struct node_update *update = call->target;
    NodeSpec *spec = update->spec;
    const char *cursor = value;
    struct arena arena;
    struct span word;
    int result = 0;

    arena_init(&arena);
    while (result == 0 && str_next(&cursor, ",", &word)) {
        GresInventory found = GRES_INVENTORY__INIT, *gres;
        result = conf_gres_parse(arena_strndup(&arena, word.ptr, word.len), &arena, &found, err);
        if (result < 0)
            break;
        gres = NEW(GresInventory);
        gres_inventory__init(gres);
        gres->name = mem_strdup(found.name);
        gres->type = found.type ? mem_strdup(found.type) : NULL;
        gres->has_count = true;
        gres->count = found.count;
        spec->gres = mem_resize(spec->gres, (spec->n_gres + 1) * sizeof(*spec->gres));
        spec->gres[spec->n_gres++] = gres;
    }
    arena_done(&arena);
    return result == 0 && !spec->n_gres ? bad(call, value, err) : result;
}

/* Seconds; -1 is never. */
static int read_resume_after(const struct option_call *call, const char *value, struct err *err)
{
    struct node_update *update = call->target;
    uint64_t seconds = 0;

    if (strcmp(value, "-1") != 0 && !str_to_u64(value, 86400 * 366, &seconds))
        return bad(call, value, err);
    update->has_resume_after = true;
    update->resume_after_s = (uint32_t)seconds;
    return 0;
}

static void set_text(char **text, const char *value)
{
    free(*text);
    *text = mem_strdup(value);
}

static int read_exclusive(const struct option_call *call, const char *value, struct err *err)
{
    struct partition_update *update = call->target;
    bool user = str_ieq(value, "USER"), node = str_ieq(value, "NODE");

    if (!user && !node && !str_ieq(value, "NO"))
        return bad(call, value, err);
    update->spec->has_exclusive_user = true;
    update->spec->exclusive_user = user;
    set_text(&update->spec->oversubscribe, node ? "EXCLUSIVE" : "NO");
    return 0;
}

/* DefCpuPerGPU=4,DefMemPerGPU=8000 */
static int read_job_defaults(const struct option_call *call, const char *value, struct err *err)
{
    struct partition_update *update = call->target;
    const char *cursor = value;
    struct span word;

    while (str_next(&cursor, ",", &word)) {
        CLEANUP(freep) char *text = mem_strndup(word.ptr, word.len);
        const char *equals = strchr(text, '=');
        uint64_t number;
        if (!equals || !str_to_u64(equals + 1, UINT32_MAX - 2, &number))
            return bad(call, value, err);
        if (str_istarts(text, "DefCpuPerGPU=")) {
            update->spec->has_def_cpu_per_gpu = true;
            update->spec->def_cpu_per_gpu = (uint32_t)number;
        } else if (str_istarts(text, "DefMemPerGPU=")) {
            update->spec->has_def_mem_per_gpu_mb = true;
            update->spec->def_mem_per_gpu_mb = number;
        } else {
            return bad(call, value, err);
        }
    }
    return *value ? 0 : bad(call, value, err);
}

/* The old word for both. */
static int read_both_priorities(const struct option_call *call, const char *value, struct err *err)
{
    struct partition_update *update = call->target;
    uint64_t number;

    if (!str_to_u64(value, 65533, &number))
        return bad(call, value, err);
    update->spec->has_priority_job_factor = update->spec->has_priority_tier = true;
    update->spec->priority_job_factor = update->spec->priority_tier = (uint32_t)number;
    return 0;
}

static int read_no_power(const struct option_call *call, const char *value, struct err *err)
{
    if (str_ieq(value, "no"))
        return 0; /* as it is */
    return err_set(err, ERR_UNSUPPORTED, "PowerDownOnIdle: nodes are not powered down");
}

#define PART(member) OPTION_MESSAGE(PartitionSpec, member, partition_spec__descriptor)
#define NODE(member) OPTION_MESSAGE(NodeSpec, member, node_spec__descriptor)
#define RESV(member) OPTION_MESSAGE(ReservationSpec, member, reservation_spec__descriptor)

/* clang-format off */
static const struct option partition_rows[] = {
    { .name = "name", .update = "PartitionName,Partition", .read = read_text, .into = PART(name) },
    { .name = "alloc-nodes", .update = "AllocNodes", .read = read_list, .into = PART(allow_alloc_nodes) },
    { .name = "allow-accounts", .update = "AllowAccounts", .read = read_list, .into = PART(allow_accounts) },
    { .name = "allow-groups", .update = "AllowGroups", .read = read_list, .into = PART(allow_groups) },
    { .name = "allow-qos", .update = "AllowQOS", .read = read_list, .into = PART(allow_qos) },
    { .name = "alternate", .update = "Alternate", .read = read_text, .into = PART(alternate) },
    { .name = "cpu-bind", .update = "CpuBind", .read = read_text, .into = PART(cpu_bind) },
    { .name = "default", .update = "Default", .read = read_bool, .into = PART(is_default) },
    { .name = "default-time", .update = "DefaultTime", .read = read_limit, .into = PART(default_time_s) },
    { .name = "def-mem-per-cpu", .update = "DefMemPerCPU", .read = read_megabytes, .into = PART(def_mem_per_cpu_mb) },
    { .name = "def-mem-per-node", .update = "DefMemPerNode", .read = read_megabytes, .into = PART(def_mem_per_node_mb) },
    { .name = "deny-accounts", .update = "DenyAccounts", .read = read_list, .into = PART(deny_accounts) },
    { .name = "deny-qos", .update = "DenyQOS", .read = read_list, .into = PART(deny_qos) },
    { .name = "disable-root-jobs", .update = "DisableRootJobs", .read = read_bool, .into = PART(disable_root) },
    { .name = "exclusive", .update = "Exclusive", .read = read_exclusive },
    { .name = "job-defaults", .update = "JobDefaults", .read = read_job_defaults },
    { .name = "priority", .update = "Priority", .read = read_both_priorities },
    { .name = "power-down-on-idle", .update = "PowerDownOnIdle", .read = read_no_power },
    { .name = "exclusive-user", .update = "ExclusiveUser", .read = read_bool, .into = PART(exclusive_user) },
    { .name = "grace-time", .update = "GraceTime", .read = read_count, .into = PART(grace_time_s) },
    { .name = "hidden", .update = "Hidden", .read = read_bool, .into = PART(hidden) },
    { .name = "lln", .update = "LLN", .read = read_bool, .into = PART(lln) },
    { .name = "max-cpus-per-node", .update = "MaxCPUsPerNode", .read = read_count, .into = PART(max_cpus_per_node) },
    { .name = "max-cpus-per-socket", .update = "MaxCPUsPerSocket", .read = read_count, .into = PART(max_cpus_per_socket) },
    { .name = "max-mem-per-cpu", .update = "MaxMemPerCPU", .read = read_megabytes, .into = PART(max_mem_per_cpu_mb) },
    { .name = "max-mem-per-node", .update = "MaxMemPerNode", .read = read_megabytes, .into = PART(max_mem_per_node_mb) },
    { .name = "max-nodes", .update = "MaxNodes", .read = read_count, .into = PART(max_nodes) },
    { .name = "max-time", .update = "MaxTime", .read = read_limit, .into = PART(max_time_s) },
    { .name = "min-nodes", .update = "MinNodes", .read = read_count, .into = PART(min_nodes) },
    { .name = "nodes", .update = "Nodes", .read = read_hosts, .into = PART(nodes) },
    { .name = "oversubscribe", .update = "OverSubscribe,Shared", .read = read_text, .into = PART(oversubscribe) },
    { .name = "over-time-limit", .update = "OverTimeLimit", .read = read_count, .into = PART(over_time_limit_min) },
    { .name = "preempt-mode", .update = "PreemptMode", .read = read_text, .into = PART(preempt_mode) },
    { .name = "priority-job-factor", .update = "PriorityJobFactor", .read = read_count, .into = PART(priority_job_factor) },
    { .name = "priority-tier", .update = "PriorityTier", .read = read_count, .into = PART(priority_tier) },
    { .name = "qos", .update = "QOS", .read = read_text, .into = PART(qos) },
    { .name = "req-resv", .update = "ReqResv", .read = read_bool, .into = PART(req_resv) },
    { .name = "root-only", .update = "RootOnly", .read = read_bool, .into = PART(root_only) },
    { .name = "state", .update = "State", .read = read_partition_state, .into = PART(state) },
    { .name = "topology", .update = "Topology", .read = read_text, .into = PART(topology) },
    { .name = "tres-billing-weights", .update = "TRESBillingWeights", .read = read_weights, .into = PART(tres_billing_weights) },
};

static const struct option node_rows[] = {
    { .name = "name", .update = "NodeName,Node,Nodes", .read = read_node_text, .into = OPTION_TEXT(struct node_update, names) },
    { .name = "state", .update = "State", .read = read_node_state, .into = OPTION_TEXT(struct node_update, state) },
    { .name = "reason", .update = "Reason", .read = read_node_text, .into = OPTION_TEXT(struct node_update, reason) },
    { .name = "features", .update = "AvailableFeatures,ActiveFeatures,Features", .read = read_features, .into = NODE(features) },
    { .name = "comment", .update = "Comment", .read = read_text, .into = NODE(comment) },
    { .name = "extra", .update = "Extra", .read = read_text, .into = NODE(extra) },
    { .name = "addr", .update = "NodeAddr", .read = read_text, .into = NODE(addr) },
    { .name = "hostname", .update = "NodeHostname", .read = read_text, .into = NODE(hostname) },
    { .name = "topology", .update = "Topology", .read = read_text, .into = NODE(topology) },
    { .name = "weight", .update = "Weight", .read = read_count, .into = NODE(weight) },
    { .name = "gres", .update = "Gres", .read = read_node_gres, .into = NODE(gres) },
    { .name = "instance-id", .update = "InstanceId", .read = read_node_text, .into = NODE(instance_id) },
    { .name = "instance-type", .update = "InstanceType", .read = read_node_text, .into = NODE(instance_type) },
    { .name = "resume-after", .update = "ResumeAfter", .read = read_resume_after },
};

static const struct option reservation_rows[] = {
    { .name = "name", .update = "ReservationName,Reservation", .read = read_text, .into = RESV(name) },
    { .name = "allowed-partitions", .update = "AllowedPartitions,AllowedPartition", .read = read_list, .into = RESV(allowed_partitions) },
    { .name = "accounts", .update = "Accounts,Account", .read = read_list, .into = RESV(accounts) },
    { .name = "burst-buffer", .update = "BurstBuffer", .read = read_text, .into = RESV(burst_buffer) },
    { .name = "comment", .update = "Comment", .read = read_text, .into = RESV(comment) },
    { .name = "core-count", .update = "CoreCnt,CoreCount", .read = read_counts, .into = RESV(core_counts) },
    { .name = "duration", .update = "Duration", .read = read_duration, .into = RESV(duration_s) },
    { .name = "end-time", .update = "EndTime", .read = read_point, .into = RESV(end_us) },
    { .name = "features", .update = "Features,Feature", .read = read_text, .into = RESV(features) },
    { .name = "flags", .update = "Flags,Flag", .read = read_list, .into = RESV(flags) },
    { .name = "groups", .update = "Groups,Group", .read = read_list, .into = RESV(groups) },
    { .name = "licenses", .update = "Licenses,License", .read = read_text, .into = RESV(licenses) },
    { .name = "max-start-delay", .update = "MaxStartDelay", .read = read_duration, .into = RESV(max_start_delay_s) },
    { .name = "node-count", .update = "NodeCnt,NodeCount", .read = read_count, .into = RESV(node_count) },
    { .name = "nodes", .update = "Nodes,NodeList,Node", .read = read_hosts, .into = RESV(nodes) },
    { .name = "partition", .update = "PartitionName,Partition", .read = read_text, .into = RESV(partition) },
    { .name = "qos", .update = "QOS", .read = read_list, .into = RESV(qos) },
    { .name = "start-time", .update = "StartTime,Start", .read = read_point, .into = RESV(start_us) },
    { .name = "tres", .update = "TRES", .read = read_text, .into = RESV(tres) },
    { .name = "tres-per-node", .update = "TRESPerNode", .read = read_text, .into = RESV(tres_per_node) },
    { .name = "users", .update = "Users,User", .read = read_list, .into = RESV(users) },
};
/* clang-format on */

#define UPDATE_SET(what, table)                                            \
    {                                                                      \
        .command = "scontrol", .about = (what), .bit = 1, .rows = (table), \
        .count = ARRAY_LEN(table)                                          \
    }

const struct option_set partition_updates = UPDATE_SET("partition", partition_rows);
const struct option_set node_updates = UPDATE_SET("node", node_rows);
const struct option_set reservation_updates = UPDATE_SET("reservation", reservation_rows);

void partition_update_done(struct partition_update *update)
{
    if (update->spec)
        partition_spec__free_unpacked(update->spec, NULL);
    vec_done(&update->clear);
}

void node_update_done(struct node_update *update)
{
    if (update->spec)
        node_spec__free_unpacked(update->spec, NULL);
    vec_done(&update->clear);
}

void reservation_update_done(struct reservation_update *update)
{
    if (update->spec)
        reservation_spec__free_unpacked(update->spec, NULL);
    vec_done(&update->clear);
}

int update_read(const struct option_set *set, const struct option_ctx *ctx, void *target,
                const char *word, struct err *err)
{
    const char *equals = strchr(word, '=');
    const struct option *row =
        equals ? option_find_update(set, word, (size_t)(equals - word)) : NULL;

    if (!row)
        return err_set(err, ERR_UNKNOWN_OPTION, "Update of this parameter is not supported: %s",
                       word);
    return option_call_row(set, ctx, target, row, equals + 1, err);
}
