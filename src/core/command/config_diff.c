/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_diff.c - does a new configuration place jobs in another way?
 *
 * Most settings say how jobs are run, who may do what, or how long something is waited for. A change
 * of these is nothing to who plans. They are named here; any other is taken to be something.
 */
#include <stddef.h>
#include <string.h>

#include "core/command/config.h"
#include "wire/pb.h"

/* Read when they are needed, by the daemons or by core, and never kept. */
static const struct {
    size_t at, bytes; /* all 0 when it is not there */
} no_matter[] = {
#define TEXT(name)                             \
    {                                          \
        offsetof(Config, name), sizeof(char *) \
    }
#define NUMBER(name)                                             \
    {                                                            \
        offsetof(Config, has_##name), sizeof(protobuf_c_boolean) \
    }
#define LIST(name)                                 \
    {                                              \
        offsetof(Config, n_##name), sizeof(size_t) \
    }
    TEXT(hash),
    /* sections, which are compared one by one */
    LIST(nodes),
    LIST(partitions),
    LIST(nodesets),
    LIST(gres),
    LIST(down),
    LIST(accounts),
    LIST(users),
    LIST(qos),
    LIST(kept),
    /* what may be submitted, and what becomes of it */
    NUMBER(max_job_count),
    NUMBER(max_array_size),
    NUMBER(first_job_id),
    NUMBER(min_job_age_s),
    NUMBER(max_batch_requeue),
    NUMBER(max_step_count),
    NUMBER(max_script_bytes),
    NUMBER(enable_user_top),
    NUMBER(salloc_wait_nodes),
    NUMBER(sbatch_wait_nodes),
    TEXT(reconfig_flags),
    TEXT(requeue_exit),
    TEXT(requeue_exit_hold),
    NUMBER(wait_time_s),
    NUMBER(kill_on_bad_exit),
    /* how long something is waited for */
    NUMBER(kill_wait_s),
    NUMBER(agent_timeout_s),
    NUMBER(node_timeout_s),
    NUMBER(node_lease_s),
    NUMBER(return_to_service),
    NUMBER(batch_start_timeout_s),
    NUMBER(inactive_limit_s),
    NUMBER(resume_timeout_s),
    NUMBER(unkillable_timeout_s),
    NUMBER(prolog_epilog_timeout_s),
    NUMBER(prolog_timeout_s),
    NUMBER(epilog_timeout_s),
    NUMBER(health_interval_s),
    NUMBER(health_timeout_s),
    TEXT(health_node_state),
    /* programs of the site */
    TEXT(prolog),
    TEXT(epilog),
    TEXT(prolog_ctld),
    TEXT(epilog_ctld),
    TEXT(task_prolog),
    TEXT(task_epilog),
    TEXT(srun_prolog),
    TEXT(srun_epilog),
    TEXT(mail_prog),
    TEXT(mail_domain),
    TEXT(prolog_flags),
    TEXT(fence_program),
    TEXT(health_program),
    TEXT(unkillable_program),
    TEXT(resv_prolog),
    TEXT(resv_epilog),
    NUMBER(nohold_on_prolog_fail),
    /* who may do what */
    LIST(admins),
    LIST(operators),
    LIST(db_admins),
    LIST(db_operators),
    LIST(db_coordinators),
    TEXT(private_data),
    LIST(login_nodes),
    NUMBER(disable_root_jobs),
    /* jobs on nodes */
    TEXT(private_base_path),
    LIST(private_dirs),
    NUMBER(private_auto_base_path),
    TEXT(private_init_script),
    NUMBER(private_shared),
    TEXT(propagate_rlimits),
    TEXT(propagate_rlimits_except),
    NUMBER(append_output),
    TEXT(tmp_fs),
    TEXT(node_spool_dir),
    TEXT(cgroup_root),
    TEXT(launch_parameters),
    TEXT(mpi_default),
    TEXT(tcp_ports),
    NUMBER(vsize_factor),
    TEXT(interactive_step_options),
    NUMBER(propagate_nice),
    TEXT(sample_interval),
    TEXT(node_log_file),
    TEXT(node_log_level),
    TEXT(node_pid_file),
    NUMBER(tree_width),
    TEXT(x11_parameters),
    NUMBER(constrain_cores),
    NUMBER(constrain_devices),
    NUMBER(constrain_ram),
    NUMBER(constrain_swap),
    NUMBER(allowed_ram_percent),
    NUMBER(allowed_swap_percent),
    NUMBER(max_ram_percent),
    NUMBER(max_swap_percent),
    NUMBER(min_ram_mb),
    NUMBER(max_processes),
    NUMBER(cpu_quota),
    LIST(io_max),
    NUMBER(io_weight),
    TEXT(accounting_store),
    NUMBER(track_wckey),
#undef TEXT
#undef NUMBER
#undef LIST
};

static uint64_t rest_hash(const Config *config)
{
    Config rest = *config;

    for (size_t i = 0; i < ARRAY_LEN(no_matter); i++)
        memset((char *)&rest + no_matter[i].at, 0, no_matter[i].bytes);
    return message_hash(&rest.base, 0);
}

unsigned config_differs(const Config *old, const Config *config)
{
    return rest_hash(old) == rest_hash(config) ? 0 : CHANGED_ALL;
}
