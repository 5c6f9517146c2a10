/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - the end of a step, on disk until somebody has it in better hands
 *
 * DIR/NAME.end holds the packed StepEnded. It is written before spurd hears of the end, so killing
 * any process loses nothing. DIR may be in memory; a copy goes to disk, synced, only when nobody
 * acknowledges the report soon, which spares a healthy cluster a sync for each job.
 */
#ifndef SPURSTEPD_REPORT_H
#define SPURSTEPD_REPORT_H

#include "base/err.h"
#include "proto/step.pb-c.h"

/* Whole or not at all. */
int report_write(int dir_fd, const char *name, const StepEnded *ended, struct err *err);
/* The copy that a power cut does not take. */
int report_keep(const char *path, const StepEnded *ended, struct err *err);

#endif
