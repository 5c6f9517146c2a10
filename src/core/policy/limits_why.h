/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits_why.h - what a limit is called, and the reason of a job that waits for it
 */
#ifndef CORE_POLICY_LIMITS_WHY_H
#define CORE_POLICY_LIMITS_WHY_H

#include "core/accounts.h"

/* qos NULL: of an association. */
unsigned why_bound(const struct qos *qos, enum bound bound);
unsigned why_tres(const struct qos *qos, enum tres_limit bound, enum tres_kind kind);
const char *why_bound_name(const struct qos *qos, enum bound bound);
const char *why_tres_name(enum tres_limit bound);

#endif
