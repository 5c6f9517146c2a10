/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reservation_rows.h - rows of reserve_info_t: what each member is filled with
 */
/* clang-format off */
FILL(accounts, compat_join(spec->accounts, spec->n_accounts))
FILL(allowed_parts, compat_join(spec->allowed_partitions, spec->n_allowed_partitions))
FILL(burst_buffer, compat_text(spec->burst_buffer))
FILL(comment, compat_text(spec->comment))
FILL(core_cnt, one->core_count)
SKIP(core_spec, "core_cnt says how many")
SKIP(core_spec_cnt, "core_cnt says how many")
FILL(end_time, compat_seconds(spec->end_us))
FILL(features, compat_text(spec->features))
FILL(flags, flags_of(spec))
FILL(groups, compat_join(spec->groups, spec->n_groups))
FILL(licenses, compat_text(spec->licenses))
FILL(max_start_delay, spec->max_start_delay_s)
FILL(name, compat_text(spec->name))
FILL(node_cnt, one->node_count)
FILL(node_inx, compat_index(one->node_names))
FILL(node_list, compat_text(one->node_names))
FILL(partition, compat_text(spec->partition))
FILL(purge_comp_time, spec->purge_comp_s)
FILL(qos, compat_join(spec->qos, spec->n_qos))
SKIP(resv_watts, "there is no power management")
FILL(start_time, compat_seconds(spec->start_us))
FILL(tres_str, compat_text(one->tres))
FILL(users, compat_join(spec->users, spec->n_users))
/* clang-format on */
