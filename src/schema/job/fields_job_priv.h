/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fields_job_priv.h - writers of job fields, between their rows and their code
 */
#ifndef SCHEMA_FIELDS_JOB_PRIV_H
#define SCHEMA_FIELDS_JOB_PRIV_H

#include "proto/job.pb-c.h"
#include "schema/field.h"

static inline const Job *job_of(const struct field_call *call)
{
    return call->object;
}

/* Ids, states and times: fields_job_state.c */
field_writer job_w_id, job_w_array_job, job_w_array_job_or_skip, job_w_array_task,
    job_w_array_task_or_skip, job_w_het_offset_or_skip, job_w_het_offset, job_w_het_id_or_skip,
    job_w_het_id, job_w_het_set_or_skip, job_w_state, job_w_state_code, job_w_reason,
    job_w_reason_record, job_w_nodes_or_reason, job_w_dependency, job_w_exit, job_w_derived_exit,
    job_w_used, job_w_used_long, job_w_left, job_w_limit, job_w_limit_long, job_w_time_min,
    job_w_time_min_record, job_w_start, job_w_start_record, job_w_end, job_w_end_record,
    job_w_eligible, job_w_eligible_record, job_w_pending_time, job_w_delay_boot,
    job_w_delay_boot_long, job_w_preemptable, job_w_preempted, job_w_suspend, job_w_pre_suspend,
    job_w_deadline;
field_number_of job_n_start, job_n_end, job_n_limit, job_n_pre_suspend, job_n_hold;
void job_j_exit(const struct field_call *call, struct jsonw *json);
void job_j_derived_exit(const struct field_call *call, struct jsonw *json);
void job_j_state(const struct field_call *call, struct jsonw *json);

/* What it asks for and has: fields_job_who.c, _size.c, _gres.c and _files.c */
bool job_decided_or_asked(struct str *out, const char *decided, const char *asked);
field_writer job_w_user, job_w_group, job_w_account, job_w_qos, job_w_partition,
    job_w_priority_ratio, job_w_requeue, job_w_nodes, job_w_nodes_record, job_w_exec_host,
    job_w_batch_host, job_w_node_count, job_w_node_count_record, job_w_cpu_count, job_w_max_nodes,
    job_w_task_count, job_w_min_cpus, job_w_memory, job_w_memory_cpu, job_w_memory_node, job_w_sct,
    job_w_bsct, job_w_ntasks_per, job_w_cpus_per_task, job_w_core_spec_record,
    job_w_thread_spec_record, job_w_tres_alloc, job_w_tres_bind_or_skip, job_w_gpu_freq,
    job_w_gpu_freq_or_skip, job_w_enforce_or_skip, job_w_spread_or_skip, job_w_gres_node,
    job_w_gres_job, job_w_gres_socket, job_w_gres_task, job_w_gres_node_or_skip,
    job_w_gres_job_or_skip, job_w_gres_socket_or_skip, job_w_gres_task_or_skip, job_w_cpus_per_gpu,
    job_w_cpus_per_gpu_or_skip, job_w_mem_per_gpu, job_w_mem_per_gpu_or_skip, job_w_licenses_given,
    job_w_oversubscribe, job_w_exclusive, job_w_gres_given, job_w_parts, job_w_alloc_node_sid,
    job_w_switch_wait, job_w_switches_or_skip, job_w_std_in, job_w_std_out, job_w_std_err,
    job_w_std_in_record, job_w_std_out_record, job_w_std_err_record, job_w_mail_type,
    job_w_mail_user, job_w_min_tmp, job_w_signal_or_skip;
field_number_of job_n_nodes, job_n_cpus, job_n_tasks, job_n_requeue, job_n_min_cpus;
void job_j_resources(const struct field_call *call, struct jsonw *json);
void job_j_shared(const struct field_call *call, struct jsonw *json);
void job_j_tres_given(const struct field_call *call, struct jsonw *json);
void job_j_batch_host(const struct field_call *call, struct jsonw *json);
void job_j_expanded(const struct field_call *call, struct jsonw *json);

/* What Slurm shows and we have nothing behind. */
field_writer job_w_null, job_w_na, job_w_bare_na, job_w_zero, job_w_cron, job_w_empty, job_w_main;
field_writer job_w_cluster, job_w_profile, job_w_tres_req, job_w_tres_given;

#endif
