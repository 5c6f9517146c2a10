/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_many.h - what happens to very many jobs at once, and to those that make room: rows of bench_shocks.c
 */
#ifndef BENCH_MANY_H
#define BENCH_MANY_H

#include "bench_load.h"

void many_cancel(struct load *load);
void many_forget(struct load *load);
void many_use_qos(struct load *load);
void many_array_submit(struct load *load);
void many_array_hold(struct load *load);
void many_array_release(struct load *load);
void many_array_update(struct load *load);
void many_array_split(struct load *load);
void many_array_cancel(struct load *load);
void many_depend_submit(struct load *load);
void many_depend_release(struct load *load);
void many_killed_submit(struct load *load);
void many_singleton_submit(struct load *load);
void many_singleton_release(struct load *load);
void many_chain_submit(struct load *load);
void many_twins_submit(struct load *load);
void many_begin_submit(struct load *load);
void many_begin_now(struct load *load);
void many_preempt_one(struct load *load);
void many_preempt_wide(struct load *load);
void many_preempt_het(struct load *load);
void many_book_het(struct load *load);

#endif
