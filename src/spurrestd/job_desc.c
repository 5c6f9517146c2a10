/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_desc.c - a job as JSON describes it, read into the rows of options that sbatch has
 */
#include "spurrestd/job_desc.h"

#include <stdio.h>
#include <string.h>

#include "spurrestd/body.h"
#include "sys/clock.h"

/* clang-format off */
const struct job_desc_row job_desc_rows[] = {
    { "account", DESC_TEXT, "account", .help = "Account that is charged." },
    { "account_gather_frequency", DESC_TEXT, "acctg-freq", .help = "How often usage is sampled." },
    { "admin_comment", DESC_REFUSED, .help = "A comment of an administrator; set it by an update." },
    { "allocation_node_list", DESC_REFUSED, .help = "Where the one who allocates is; known from the request." },
    { "allocation_node_port", DESC_REFUSED, .help = "The port of the one who allocates; not used." },
    { "argv", DESC_OTHER, .help = "Arguments of the script." },
    { "array", DESC_TEXT, "array", .help = "Indexes of a job array: 0-15, 1,3,5%2." },
    { "batch_features", DESC_TEXT, "batch", .help = "Features of the node that runs the script." },
    { "begin_time", DESC_EPOCH, "begin", .help = "Earliest start, in seconds since 1970." },
    { "burst_buffer", DESC_TEXT, "bb", .help = "Burst buffer specification." },
    { "cluster_constraint", DESC_TEXT, "cluster-constraint", .help = "Features of the cluster." },
    { "clusters", DESC_TEXT, "clusters", .help = "Clusters to submit to." },
    { "comment", DESC_TEXT, "comment", .help = "A comment to keep with the job." },
    { "constraints", DESC_TEXT, "constraint", .help = "Features that nodes must have." },
    { "container", DESC_TEXT, "container", .help = "OCI bundle to run in." },
    { "container_id", DESC_TEXT, "container-id", .help = "Name of the container." },
    { "container_type", DESC_REFUSED, .since = 45, .help = "Kind of container; it is known from the image." },
    { "contiguous", DESC_YES, "contiguous", .help = "Nodes that stand side by side." },
    { "core_specification", DESC_TEXT, "core-spec", .help = "Cores left to the system." },
    { "cores_per_socket", DESC_TEXT, "cores-per-socket", .since = 45, .help = "Cores that each socket must have." },
    { "cpu_binding", DESC_TEXT, "cpu-bind", .help = "How tasks are bound to CPUs." },
    { "cpu_binding_flags", DESC_REFUSED, .help = "Part of cpu_binding here." },
    { "cpu_frequency", DESC_TEXT, "cpu-freq", .help = "Frequency of the CPUs." },
    { "cpus_per_task", DESC_TEXT, "cpus-per-task", .help = "CPUs of each task." },
    { "cpus_per_tres", DESC_GPUS, "cpus-per-gpu", .help = "CPUs of each GPU, as gres/gpu:N." },
    { "crontab", DESC_REFUSED, .help = "A job that comes again and again is not possible." },
    { "current_working_directory", DESC_TEXT, "chdir", .help = "Directory the job runs in." },
    { "deadline", DESC_EPOCH, "deadline", .help = "Removed when it could not end by then; seconds since 1970." },
    { "delay_boot", DESC_TEXT, "delay-boot", .help = "How long a reboot may be put off, in minutes." },
    { "dependency", DESC_TEXT, "dependency", .help = "Jobs that it waits for: afterok:12." },
    { "distribution", DESC_TEXT, "distribution", .help = "How tasks are spread over nodes." },
    { "distribution_plane_size", DESC_REFUSED, .help = "Say plane=SIZE in distribution." },
    { "end_time", DESC_REFUSED, .help = "When it ends follows from its time limit." },
    { "environment", DESC_OTHER, .help = "NAME=value, one each." },
    { "excluded_nodes", DESC_LIST, "exclude", .help = "Nodes that it does not use." },
    { "extra", DESC_TEXT, "extra", .help = "Text to keep with the job." },
    { "flags", DESC_OTHER, .help = "Flags of the job, by name." },
    { "gpus", DESC_TEXT, "gpus", .since = 1, .help = "GPUs of the whole job: 4, mi300x:8." },
    { "gpus_per_node", DESC_TEXT, "gpus-per-node", .since = 1, .help = "GPUs of each node." },
    { "gres", DESC_TEXT, "gres", .since = 1, .help = "Generic resources of each node: gpu:mi300x:8." },
    { "group_id", DESC_REFUSED, .help = "The group is the caller's." },
    { "hetjob_group", DESC_REFUSED, .help = "Components are numbered in the order they come in." },
    { "hold", DESC_YES, "hold", .help = "Held until it is released." },
    { "immediate", DESC_YES, "immediate", .help = "Refused unless it starts at once." },
    { "job_id", DESC_REFUSED, .help = "The controller numbers jobs." },
    { "kill_on_node_fail", DESC_YES_NO, NULL, "no-kill", .help = "False: it goes on when a node fails." },
    { "kill_warning_delay", DESC_REFUSED, .help = "Say it in kill_warning_signal: USR1@60." },
    { "kill_warning_flags", DESC_REFUSED, .help = "Say it in kill_warning_signal: B:USR1@60." },
    { "kill_warning_signal", DESC_TEXT, "signal", .help = "Signal before its time is over: USR1@60." },
    { "licenses", DESC_TEXT, "licenses", .help = "Licences: matlab:2." },
    { "mail_type", DESC_LIST, "mail-type", .help = "When mail is sent: END, FAIL." },
    { "mail_user", DESC_TEXT, "mail-user", .help = "Who gets mail." },
    { "maximum_cpus", DESC_REFUSED, .help = "CPUs follow from tasks and cpus_per_task." },
    { "maximum_nodes", DESC_OTHER, .help = "Most nodes." },
    { "mcs_label", DESC_TEXT, "mcs-label", .help = "Security label." },
    { "mem", DESC_TEXT, "mem", .since = 1, .help = "Memory of each node: 8G." },
    { "memory_binding", DESC_TEXT, "mem-bind", .help = "How memory is bound." },
    { "memory_binding_type", DESC_REFUSED, .help = "Part of memory_binding here." },
    { "memory_per_cpu", DESC_MEGABYTES, "mem-per-cpu", .help = "Memory of each CPU, in megabytes." },
    { "memory_per_node", DESC_MEGABYTES, "mem", .help = "Memory of each node, in megabytes." },
    { "memory_per_tres", DESC_GPUS, "mem-per-gpu", .help = "Memory of each GPU, as gres/gpu:MB." },
    { "memory_update_delay", DESC_REFUSED, .since = 45, .help = "Memory is not given back while a job runs." },
    { "memory_update_margin", DESC_REFUSED, .since = 45, .help = "Memory is not given back while a job runs." },
    { "minimum_boards_per_node", DESC_REFUSED, .help = "Nodes have one board." },
    { "minimum_cpus", DESC_TEXT, "ntasks", .help = "CPUs at least: as many tasks of one CPU." },
    { "minimum_cpus_per_node", DESC_TEXT, "mincpus", .help = "CPUs that each node must have." },
    { "minimum_nodes", DESC_OTHER, .help = "Fewest nodes." },
    { "minimum_sockets_per_board", DESC_REFUSED, .help = "Nodes have one board; see sockets_per_node." },
    { "name", DESC_TEXT, "job-name", .help = "Name of the job." },
    { "network", DESC_TEXT, "network", .help = "Network specification." },
    { "nice", DESC_TEXT, "nice", .help = "Taken off the priority." },
    { "nodes", DESC_TEXT, "nodes", .help = "Nodes: 2, 2-4." },
    { "ntasks_per_tres", DESC_TEXT, "ntasks-per-gpu", .help = "Tasks of each GPU." },
    { "oom_kill_step", DESC_TEXT, "oom-kill-step", .help = "Whether a step ends when one of its tasks has too little memory." },
    { "open_mode", DESC_LIST, "open-mode", .help = "APPEND or TRUNCATE." },
    { "overcommit", DESC_YES, "overcommit", .help = "More tasks than CPUs." },
    { "partition", DESC_TEXT, "partition", .help = "Partition, or several that it may start in." },
    { "power_flags", DESC_REFUSED, .until = 44, .help = "There are none." },
    { "prefer", DESC_TEXT, "prefer", .help = "Features that nodes should have." },
    { "priority", DESC_TEXT, "priority", .help = "Priority; for operators." },
    { "profile", DESC_LIST, "profile", .help = "What is recorded in detail." },
    { "qos", DESC_TEXT, "qos", .help = "Quality of service." },
    { "reboot", DESC_YES, "reboot", .help = "Nodes are rebooted first." },
    { "requeue", DESC_YES_NO, "requeue", "no-requeue", .help = "Whether it may be put back into the queue." },
    { "required_nodes", DESC_LIST, "nodelist", .help = "Nodes that it must have." },
    { "required_switches", DESC_TEXT, "switches", .help = "Most switches between its nodes." },
    { "reservation", DESC_TEXT, "reservation", .help = "Reservation to use." },
    { "reserve_ports", DESC_REFUSED, .help = "Ports are reserved by srun --resv-ports." },
    { "rlimits", DESC_REFUSED, .help = "Limits of the nodes apply." },
    { "script", DESC_OTHER, .help = "The batch script, which begins with #!." },
    { "segment_size", DESC_TEXT, "segment", .help = "Nodes of a segment." },
    { "selinux_context", DESC_TEXT, "context", .help = "SELinux context." },
    { "shared", DESC_OTHER, .help = "Whether nodes are shared." },
    { "site_factor", DESC_REFUSED, .help = "Set it by an update; for administrators." },
    { "sockets_per_node", DESC_TEXT, "sockets-per-node", .help = "Sockets that each node must have." },
    { "spank_environment", DESC_REFUSED, .help = "Environment of plugins; not possible here." },
    { "standard_error", DESC_TEXT, "error", .help = "File for standard error." },
    { "standard_input", DESC_TEXT, "input", .help = "File for standard input." },
    { "standard_output", DESC_TEXT, "output", .help = "File for standard output." },
    { "step_id", DESC_REFUSED, .since = 44, .help = "Steps are numbered by the node that manages them." },
    { "tasks", DESC_TEXT, "ntasks", .help = "Tasks." },
    { "tasks_per_board", DESC_REFUSED, .help = "Nodes have one board; see tasks_per_node." },
    { "tasks_per_core", DESC_TEXT, "ntasks-per-core", .help = "Most tasks of a core." },
    { "tasks_per_node", DESC_TEXT, "ntasks-per-node", .help = "Tasks of each node." },
    { "tasks_per_socket", DESC_TEXT, "ntasks-per-socket", .help = "Most tasks of a socket." },
    { "temporary_disk_per_node", DESC_MEGABYTES, "tmp", .help = "Temporary disk space of each node, in megabytes." },
    { "thread_specification", DESC_TEXT, "thread-spec", .help = "Threads left to the system." },
    { "threads_per_core", DESC_TEXT, "threads-per-core", .help = "Threads of each core." },
    { "time_limit", DESC_MINUTES, "time", .help = "Limit on its run time, in minutes." },
    { "time_minimum", DESC_MINUTES, "time-min", .help = "Shortest limit that it accepts, in minutes." },
    { "tres_bind", DESC_TEXT, "tres-bind", .help = "How tasks are bound to GPUs." },
    { "tres_freq", DESC_TEXT, "gpu-freq", .help = "Frequency of the GPUs." },
    { "tres_per_job", DESC_GPUS, "gpus", .help = "GPUs of the whole job, as gres/gpu:N." },
    { "tres_per_node", DESC_TEXT, "gres", .help = "Generic resources of each node: gres/gpu:2." },
    { "tres_per_socket", DESC_GPUS, "gpus-per-socket", .help = "GPUs of each socket, as gres/gpu:N." },
    { "tres_per_task", DESC_TEXT, "tres-per-task", .help = "Resources of each task." },
    { "user_id", DESC_REFUSED, .help = "The job is the caller's." },
    { "wait_all_nodes", DESC_YES, "wait-all-nodes", .help = "Begins when all nodes are ready." },
    { "wait_for_switch", DESC_REFUSED, .help = "Say it in required_switches: 1@60." },
    { "wckey", DESC_TEXT, "wckey", .help = "Workload characterisation key." },
    { "x11", DESC_REFUSED, .help = "X11 needs a command that forwards it." },
    { "x11_magic_cookie", DESC_REFUSED, .help = "X11 needs a command that forwards it." },
    { "x11_target_host", DESC_REFUSED, .help = "X11 needs a command that forwards it." },
    { "x11_target_port", DESC_REFUSED, .help = "X11 needs a command that forwards it." },
};
/* clang-format on */
const size_t job_desc_count = ARRAY_LEN(job_desc_rows);

static const struct job_desc_row *find(const struct exchange *x, const char *name)
{
    for (size_t i = 0; i < job_desc_count; i++) {
        const struct job_desc_row *row = &job_desc_rows[i];
        if (strcmp(row->name, name) != 0)
            continue;
        if (!x->version || (row->since != 1 && row->since <= x->version &&
                            (!row->until || x->version <= row->until)))
            return row;
    }
    return NULL;
}

struct reading {
    struct exchange *x;
    struct job_request *request;
    struct option_ctx ctx;
};

static int give(const struct reading *reading, const char *option, const char *value,
                struct err *err)
{
    return option_read_one(&sbatch_options, &reading->ctx, reading->request, LEVEL_ARGV, option,
                           value, err);
}

static int give_list(const struct reading *reading, const char *option, const json_t *value,
                     struct err *err)
{
    struct str text = { 0 };
    json_t *item;
    size_t i;

    if (json_is_string(value)) {
        str_add(&text, json_string_value(value));
    } else {
        json_array_foreach((json_t *)(uintptr_t)value, i, item)
        {
            if (json_is_string(item))
                str_addf(&text, "%s%s", text.len ? "," : "", json_string_value(item));
        }
    }
    const char *copy = arena_strdup(&reading->x->arena, str_text(&text));
    str_done(&text);
    return *copy ? give(reading, option, copy, err) : 0;
}

/* "gres/gpu:2", "gres:gpu:a100:2", "gpu:2": what follows the word gpu. */
static int give_gpus(const struct reading *reading, const char *option, const char *text,
                     struct err *err)
{
    if (str_istarts(text, "gres/") || str_istarts(text, "gres:"))
        text += 5;
    if (str_istarts(text, "gpu:") || str_istarts(text, "gpu="))
        text += 4;
    else if (str_ieq(text, "gpu"))
        text = "1";
    return give(reading, option, text, err);
}

static int give_epoch(const struct reading *reading, const char *option, const char *text,
                      struct err *err)
{
    JobSpec *spec = reading->request->spec;
    int64_t seconds;

    if (!str_to_i64(text, 0, INT64_C(1) << 40, &seconds))
        return give(reading, option, text, err); /* words such as now+1hour */
    if (!seconds)
        return 0;
    if (strcmp(option, "begin") == 0) {
        spec->has_begin_us = true;
        spec->begin_us = seconds * 1000000;
    } else {
        spec->has_deadline_us = true;
        spec->deadline_us = seconds * 1000000;
    }
    return 0;
}

static int give_yes(const struct reading *reading, const struct job_desc_row *row,
                    const json_t *value, struct err *err)
{
    bool yes = json_is_true(value) || json_integer_value(value) > 0;
    const char *option = yes ? row->option : row->other;
    const struct option *found = option ? option_find(&sbatch_options, option) : NULL;

    if (!json_is_boolean(value) && !json_is_integer(value))
        return err_set(err, ERR_INVALID, "the value is neither true nor false");
    return found ? give(reading, option, option_arity(found) == 1 ? "1" : NULL, err) : 0;
}

static int read_row(const struct reading *reading, const struct job_desc_row *row,
                    const json_t *value, struct err *err)
{
    const char *text = NULL;
    bool forever = row->kind == DESC_MINUTES;

    switch (row->kind) {
    case DESC_OTHER:
        return 0;
    case DESC_REFUSED:
        return err_set(err, ERR_UNSUPPORTED, "not possible: %s", row->help);
    case DESC_LIST:
        return give_list(reading, row->option, value, err);
    case DESC_YES:
    case DESC_YES_NO:
        return give_yes(reading, row, value, err);
    default:
        break;
    }
    if (!body_text(reading->x, value, forever ? "UNLIMITED" : NULL, &text, err))
        return err->code ? -(int)err->code : 0;
    if (row->kind == DESC_GPUS)
        return give_gpus(reading, row->option, text, err);
    if (row->kind == DESC_EPOCH)
        return give_epoch(reading, row->option, text, err);
    if (row->kind == DESC_MEGABYTES && strspn(text, "0123456789") == strlen(text))
        text = arena_printf(&reading->x->arena, "%sM", text);
    return *text ? give(reading, row->option, text, err) : 0;
}

/* Fewest and most nodes are one option. */
static int read_nodes(const struct reading *reading, const json_t *desc, struct err *err)
{
    json_int_t least = json_integer_value(json_object_get(desc, "minimum_nodes"));
    json_int_t most = json_integer_value(json_object_get(desc, "maximum_nodes"));
    char text[64];

    if (least <= 0 && most <= 0)
        return 0;
    if (least > 0 && most > 0)
        snprintf(text, sizeof(text), "%lld-%lld", (long long)least, (long long)most);
    else
        snprintf(text, sizeof(text), least > 0 ? "%lld" : "1-%lld",
                 (long long)(least > 0 ? least : most));
    return give(reading, "nodes", arena_strdup(&reading->x->arena, text), err);
}

/* [ "none" ] and { } of job_shared and job_flags: words that stand for flags of sbatch. */
static int read_words(const struct reading *reading, const json_t *list, struct err *err)
{
    static const struct {
        const char *word, *option, *value;
    } words[] = {
        { "none", "exclusive", NULL },
        { "exclusive", "exclusive", NULL },
        { "user", "exclusive", "user" },
        { "mcs", "exclusive", "mcs" },
        { "topo", "exclusive", "topo" },
        { "oversubscribe", "oversubscribe", NULL },
        { "SPREAD_JOB", "spread-job", NULL },
        { "USE_MIN_NODES", "use-min-nodes", NULL },
        { "KILL_INVALID_DEPENDENCY", "kill-on-invalid-dep", "yes" },
        { "NO_KILL_INVALID_DEPENDENCY", "kill-on-invalid-dep", "no" },
        { "STEPMGR_ENABLED", "stepmgr", NULL },
        { "EXTERNAL_JOB", "external", NULL },
    };
    json_t *item;
    size_t i;

    json_array_foreach((json_t *)(uintptr_t)list, i, item)
    {
        const char *word = json_string_value(item);
        bool found = false;

        for (size_t k = 0; word && k < ARRAY_LEN(words) && !found; k++) {
            found = str_ieq(word, words[k].word);
            if (found && give(reading, words[k].option, words[k].value, err) < 0)
                return -(int)err->code;
        }
        if (!found)
            return err_set(err, ERR_UNSUPPORTED, "'%.64s' is not possible here", word ? word : "");
    }
    return 0;
}

static const char *type_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_STRING:
        return "string";
    case JSON_INTEGER:
        return "64 bit integer";
    case JSON_REAL:
        return "64 bit floating point number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "boolean";
    case JSON_ARRAY:
        return "list";
    case JSON_OBJECT:
        return "dictionary";
    default:
        return "null";
    }
}

int job_desc_read(struct exchange *x, const json_t *desc, struct job_request *request,
                  struct warning *warnings, size_t most, size_t *warning_count, struct err *err)
{
    struct reading reading = { x, request, { .now_us = clock_wall_us() } };
    static char *const no_env[] = { NULL };
    const char *key;
    json_t *value;

    reading.ctx.env = no_env;
    json_object_foreach((json_t *)(uintptr_t)desc, key, value)
    {
        const struct job_desc_row *row = find(x, key);

        if (!row && x->version) {
            if (*warning_count < most)
                warnings[(*warning_count)++] =
                    (struct warning){ arena_printf(&x->arena,
                                                   "Ignoring unknown field \"%s\" of type %s in "
                                                   "DATA_PARSER_JOB_DESC_MSG",
                                                   key, type_name(value)),
                                      arena_printf(&x->arena, "#/job/%s/", key) };
            continue;
        }
        if (!row)
            return err_set(err, ERR_UNKNOWN_OPTION, "job.%.64s: there is no such field", key);
        if (read_row(&reading, row, value, err) < 0)
            return err_wrap(err, "job.%.64s", key);
    }
    if (read_nodes(&reading, desc, err) < 0)
        return err_wrap(err, "job.minimum_nodes");
    if (read_words(&reading, json_object_get(desc, "shared"), err) < 0)
        return err_wrap(err, "job.shared");
    if (read_words(&reading, json_object_get(desc, "flags"), err) < 0)
        return err_wrap(err, "job.flags");
    return 0;
}
