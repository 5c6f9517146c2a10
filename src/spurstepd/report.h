/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - the end of a step, on disk until somebody has it in better hands
 *
 * DIR/NAME.end holds the packed StepEnded. It is written before spurd hears of the end, so killing
 * any process loses nothing; it is synced only when nobody acknowledges it soon, which spares a
 * sync for each job of a healthy cluster.
 */
#ifndef SPURSTEPD_REPORT_H
#define SPURSTEPD_REPORT_H

#include "base/err.h"
#include "proto/step.pb-c.h"

/* Whole or not at all. */
int report_write(int dir_fd, const char *name, const StepEnded *ended, struct err *err);
/* The file, its directory and the directory above. */
int report_sync(int dir_fd, const char *name, struct err *err);
/* The step's files; the directory too if `dir` is given and it is then empty. */
void report_remove(int dir_fd, const char *name, const char *dir);

#endif
