/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options_job_priv.h - readers of job options, between their rows and their code
 */
#ifndef SCHEMA_OPTIONS_JOB_PRIV_H
#define SCHEMA_OPTIONS_JOB_PRIV_H

#include "schema/request.h"

option_reader read_moment, read_time_limit, read_memory, read_mem, read_nodes, read_extra_node_info,
    read_signal, read_mail_type, read_nice, read_exclusive, read_gres_flags, read_oversubscribe,
    read_no_kill, read_yes_no, read_open_mode, read_switches, read_hosts, read_hint,
    read_distribution, read_cpu_bind, read_mem_bind, read_cpu_freq, read_gpu_freq, read_tres_bind,
    read_signals, read_treewidth, read_debug, read_accel_bind, read_immediate, read_gpu_bind,
    read_priority, read_requeue, read_resv_ports, read_x11, read_name, read_acctg_freq,
    read_profile, read_path, read_std_file, read_propagate, read_user_env, read_kill_command,
    read_kill_on_bad_exit;

#endif
