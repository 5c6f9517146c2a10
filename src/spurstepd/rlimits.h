/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rlimits.h - resource limits by the names they travel under
 */
#ifndef SPURSTEPD_RLIMITS_H
#define SPURSTEPD_RLIMITS_H

#include <stddef.h>

enum { RLIMITS_MAX = 16 };

/* The names, from 0; NULL behind the last. */
const char *rlimits_name(size_t index);
/* "NOFILE" gives RLIMIT_NOFILE; -1 when there is no such limit. */
int rlimits_number(const char *name);

#endif
