/* SPDX-License-Identifier: Apache-2.0 */
/*
 * devices.h - device files that the processes of a cgroup may not open
 */
#ifndef SPURSTEPD_DEVICES_H
#define SPURSTEPD_DEVICES_H

#include "base/err.h"
#include "proto/step.pb-c.h"

/* Opens of these fail with EPERM from now on, for everything in the cgroup and below it. */
int devices_deny(int cgroup_fd, StepDevice *const *list, size_t count, struct err *err);

#endif
