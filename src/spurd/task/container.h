/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container.h - the words that make a program run inside an image
 *
 * spur-container does the work (src/container): its words are put before the program's own.
 */
#ifndef SPURD_CONTAINER_H
#define SPURD_CONTAINER_H

#include "base/arena.h"
#include "base/str.h"
#include "proto/job.pb-c.h"
#include "proto/run.pb-c.h"

/*
 * "spur-container run --image X ... --"; `visible` and `too` are seen inside under their own
 * paths; NULL: none.
 */
char **container_words(const char *program, const StepContainer *container, const char *visible,
                       const char *too, struct arena *arena, size_t *count);

#endif
