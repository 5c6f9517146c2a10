/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem_sort.h - --mem-bind=sort: free pages of NUMA nodes are sorted before the tasks start
 */
#ifndef SPURSTEPD_MEM_SORT_H
#define SPURSTEPD_MEM_SORT_H

#include "spurstepd/step_plugins.h"

bool mem_sort_wanted(const StepTask *task);
int mem_sort_begin(struct tasks *tasks, struct err *err);

#endif
