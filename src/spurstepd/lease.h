/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease.h - until when a step may run without a word from a controller
 */
#ifndef SPURSTEPD_LEASE_H
#define SPURSTEPD_LEASE_H

#include "base/util.h"

/*
 * Boot time at which the lease in `file` is over; -1: there is none. One that cannot be read is over
 * now: nobody can say that a controller was heard.
 */
int64_t lease_over_us(const char *file, int64_t now_us);

#endif
