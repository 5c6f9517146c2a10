/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_keys.c - the sections of the configuration, and finding their keys
 *
 * The rows are in conf_keys_system.c (what daemons run with), conf_keys_sched.c, conf_keys_jobs.c,
 * conf_keys_partitions.c, conf_keys_accounts.c and conf_keys_lists.c (nodes and what is listed
 * around them).
 */
#include "schema/conf_keys.h"

#include <assert.h>
#include <string.h>

#include "base/str.h"
#include "proto/config.pb-c.h"

/* Lists come last and nodes before what names them, so that the file reads top down. */
const struct conf_section conf_sections[] = {
    { .name = "", .keys = conf_keys_top, .help = "Stands at the top, before any section." },
    { .name = "controller",
      .keys = conf_keys_controller,
      .help =
          "The controller daemon, spurctld. These are each machine's own and never replicated." },
    { .name = "agent", .keys = conf_keys_agent, .help = "The agent on every node, spurd." },
    { .name = "cgroup",
      .keys = conf_keys_cgroup,
      .help = "What a job is held to on its nodes (Slurm's cgroup.conf)." },
    { .name = "scheduler", .keys = conf_keys_scheduler, .help = "Which jobs start, and where." },
    { .name = "priority",
      .keys = conf_keys_priority,
      .help = "The order of waiting jobs: the sum of factors from 0 to 1, each times its weight." },
    { .name = "preemption",
      .keys = conf_keys_preemption,
      .help = "Whether a job may take the place of a running one." },
    { .name = "jobs", .keys = conf_keys_jobs, .help = "Bounds, defaults and ends of jobs." },
    { .name = "hooks",
      .keys = conf_keys_hooks,
      .help = "Programs of the site that run around jobs, and mail." },
    { .name = "private",
      .keys = conf_keys_private,
      .help =
          "Directories that each job has for itself, such as /tmp (Slurm's job_container/tmpfs)." },
    { .name = "access", .keys = conf_keys_access, .help = "Who may do and see what." },
    { .name = "accounting",
      .keys = conf_keys_accounting,
      .help = "History, accounts and limits, kept by spurdbd." },
    { .name = "topology",
      .keys = conf_keys_topology,
      .help = "How nodes hang together, so that jobs are placed close (Slurm's topology.conf)." },
    { .name = "update",
      .keys = conf_keys_update,
      .help = "Looking for newer releases. Nothing is ever restarted by it." },
    { .name = "nodes",
      .list = "nodes",
      .message = &node_spec__descriptor,
      .keys = conf_keys_nodes,
      .help = "Nodes that are alike, one section for each kind." },
    { .name = "gres",
      .list = "gres",
      .message = &conf_gres__descriptor,
      .keys = conf_keys_gres,
      .help =
          "Devices behind the nodes' generic resources (Slurm's gres.conf). Not needed for GPUs "
          "that the agent finds by itself." },
    { .name = "down",
      .list = "down",
      .message = &conf_down__descriptor,
      .keys = conf_keys_down,
      .help = "Nodes that are not usable when the cluster starts (Slurm's DownNodes)." },
    { .name = "nodesets",
      .list = "nodesets",
      .message = &conf_node_set__descriptor,
      .keys = conf_keys_nodesets,
      .help = "Names for groups of nodes, to be used in the nodes of a partition." },
    { .name = "partitions",
      .list = "partitions",
      .message = &partition_spec__descriptor,
      .keys = conf_keys_partitions,
      .help = "The queues that jobs are sent to." },
    { .name = "switches",
      .list = "switches",
      .message = &conf_switch__descriptor,
      .keys = conf_keys_switches,
      .help = "Switches of a tree topology: leaves name nodes, others name switches." },
    { .name = "blocks",
      .list = "blocks",
      .message = &conf_block__descriptor,
      .keys = conf_keys_blocks,
      .help = "Blocks of nodes of a block topology." },
    { .name = "qos",
      .list = "qos",
      .message = &conf_qos__descriptor,
      .keys = conf_keys_qos,
      .help = "Qualities of service: limits and priorities that jobs choose by name." },
    { .name = "accounts",
      .list = "accounts",
      .message = &conf_account__descriptor,
      .keys = conf_keys_accounts,
      .help = "Accounts that jobs are charged to: a tree below root." },
    { .name = "users",
      .list = "users",
      .message = &conf_user__descriptor,
      .keys = conf_keys_users,
      .help = "Users in accounts: associations." },
};
const size_t conf_section_count = ARRAY_LEN(conf_sections);

const struct conf_skip conf_skips[] = {
    { "Config", "partitions", "one message per [[partitions]] section" },
    { "Config", "nodes", "one message per [[nodes]] section" },
    { "Config", "nodesets", "one message per [[nodesets]] section" },
    { "Config", "gres", "one message per [[gres]] section" },
    { "Config", "switches", "one message per [[switches]] section" },
    { "Config", "blocks", "one message per [[blocks]] section" },
    { "Config", "down", "one message per [[down]] section" },
    { "Config", "qos", "one message per [[qos]] section" },
    { "Config", "accounts", "one message per [[accounts]] section" },
    { "Config", "users", "one message per [[users]] section" },
    { "Config", "db_admins", "said by sacctmgr" },
    { "Config", "db_operators", "said by sacctmgr" },
    { "Config", "db_coordinators", "said by sacctmgr" },
    { "NodeSpec", "instance_id", "said by scontrol update" },
    { "NodeSpec", "instance_type", "said by scontrol update" },
    { "Config", "hash", "computed from the other fields" },
    { "Config", "kept", "the keys of the [slurm] section, which are Slurm's own" },
    { "NodeSpec", "extra", "set by scontrol update only" },
};
const size_t conf_skip_count = ARRAY_LEN(conf_skips);

size_t conf_key_count(const struct conf_section *section)
{
    size_t count = 0;

    while (section->keys[count].name)
        count++;
    return count;
}

const struct conf_section *conf_section_find(const char *name)
{
    for (size_t i = 0; i < conf_section_count; i++) {
        if (strcmp(conf_sections[i].name, name) == 0)
            return &conf_sections[i];
    }
    return NULL;
}

const struct conf_key *conf_key_find(const struct conf_section *section, const char *name)
{
    for (const struct conf_key *key = section->keys; key->name; key++) {
        if (strcmp(key->name, name) == 0)
            return key;
    }
    return NULL;
}

const ProtobufCFieldDescriptor *conf_key_field(const struct conf_section *section,
                                               const struct conf_key *key)
{
    const ProtobufCMessageDescriptor *message = section->message;
    const ProtobufCFieldDescriptor *field;

    if (!message)
        message = key->flags & CONF_LOCAL ? &conf_local__descriptor : &config__descriptor;
    field = protobuf_c_message_descriptor_get_field_by_name(message, key->field);
    assert(field);
    return field;
}

static const char *const expects[] = {
    [CONF_TEXT] = "text on one line",
    [CONF_NAME] = "a name of letters, digits and . _ - + : / @",
    [CONF_PATH] = "an absolute path",
    [CONF_BOOL] = "true or false",
    [CONF_COUNT] = "a whole number%s",
    [CONF_SECONDS] = "seconds%s, or \"hours:minutes:seconds\"",
    [CONF_MINUTES] = "minutes%s, or \"hours:minutes:seconds\"",
    [CONF_TIME] = "minutes, or a time such as \"1-12:00:00\" or \"24:00:00\"",
    [CONF_DAYS] = "days%s, or a time such as \"7-12:00:00\"",
    [CONF_MB] = "MB, or a size such as \"512G\"",
    [CONF_HOSTS] = "a host list such as \"node[001-008]\"",
    [CONF_WORD] = "one of",
    [CONF_WORDS] = "some of",
    [CONF_LIST] = "a list of texts",
    [CONF_COUNTS] = "a list of whole numbers%s",
    [CONF_TRES] = "resources and numbers such as \"cpu=1.0,gres/gpu=3\"",
    [CONF_GRES] = "resources such as \"gpu:mi300x:8\"",
    [CONF_ADDR] = "a host or address without blanks",
    [CONF_ADDRS] = "address:port such as \"[::]:6817\"",
};

/* "a whole number from 1 to 8": the range stands where the text has "%s". */
static void add_with_range(struct str *out, const char *text, const struct conf_key *key)
{
    const char *at = strstr(text, "%s");

    if (!at) {
        str_add(out, text);
        return;
    }
    str_add_len(out, text, (size_t)(at - text));
    if (key->max)
        str_addf(out, " from %lld to %lld", (long long)key->min, (long long)key->max);
    str_add(out, at + 2);
}

void conf_key_expects(const struct conf_key *key, struct str *out)
{
    add_with_range(out, expects[key->type], key);
    for (size_t i = 0; key->words && key->words[i]; i++)
        str_addf(out, "%s %s", i ? "," : "", key->words[i]);
    if (key->flags & CONF_UNLIMITED)
        str_add(out, ", or \"UNLIMITED\"");
    if (key->flags & CONF_PARENT)
        str_add(out, ", or \"parent\"");
}
