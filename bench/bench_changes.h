/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_changes.h - what an administrator changes: rows of bench_shocks.c
 */
#ifndef BENCH_CHANGES_H
#define BENCH_CHANGES_H

#include "bench_load.h"

void changes_partition(struct load *load);
void changes_partition_qos(struct load *load);
void changes_partition_billing(struct load *load);
void changes_nothing(struct load *load);
void changes_add_nodes(struct load *load);
void changes_nodes_between(struct load *load);
void changes_nodes(struct load *load);
void changes_remove_nodes(struct load *load);
void changes_add_qos(struct load *load);
void changes_raise_limits(struct load *load);
void changes_add_user(struct load *load);
void changes_share(struct load *load);
void changes_remove_user(struct load *load);
void changes_remove_account(struct load *load);
void changes_remove_qos(struct load *load);
void changes_licences(struct load *load);
void changes_make_reservation(struct load *load);
void changes_reservation(struct load *load);
void changes_reservation_begins(struct load *load);
void changes_reservation_ends(struct load *load);
void changes_drain_nodes(struct load *load);
void changes_resume_nodes(struct load *load);
void changes_node_down(struct load *load);
void changes_lead(struct load *load);
void changes_turn(struct load *load);

#endif
