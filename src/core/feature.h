/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feature.h - does a node have the features that --constraint asks for
 *
 * "a&b", "a|b", "(a|b)&c", evaluated from left to right as in Slurm. Counts (a*2) and [a|b] need
 * the planner to choose sets of nodes; until it does they are refused.
 */
#ifndef CORE_FEATURE_H
#define CORE_FEATURE_H

#include "base/err.h"
#include "core/node.h"

/* Well formed? `known` (may be NULL) gets each feature's name, in order. */
int feature_check(const char *text, bool (*known)(const void *ctx, const char *name, size_t len),
                  const void *ctx, struct err *err);
/* For a text that was checked. */
bool feature_match(const char *text, const struct node *node);

#endif
