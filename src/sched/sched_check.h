/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched_check.h - does every invariant of the planner hold?
 */
#ifndef SCHED_SCHED_CHECK_H
#define SCHED_SCHED_CHECK_H

#include "sched/sched.h"

/* Walks everything and compares with core. For tests, simulation and an operator's question. */
int sched_check(const struct sched *sched, struct err *err);

#endif
