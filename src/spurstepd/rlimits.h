/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rlimits.h - resource limits by the names they travel under
 */
#ifndef SPURSTEPD_RLIMITS_H
#define SPURSTEPD_RLIMITS_H

/* "NOFILE" gives RLIMIT_NOFILE; -1 when there is no such limit. */
int rlimits_number(const char *name);

#endif
