/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spank_step.h - SPANK plugins in a step; of spurstepd-spank alone
 */
#ifndef SPURSTEPD_SPANK_STEP_H
#define SPURSTEPD_SPANK_STEP_H

/* From here on plugins join in the step of this process (step_spank.h). */
void spank_step_use(void);

#endif
