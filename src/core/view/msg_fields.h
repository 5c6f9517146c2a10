/* SPDX-License-Identifier: Apache-2.0 */
/*
 * msg_fields.h - what the files that fill messages share
 */
#ifndef CORE_VIEW_MSG_FIELDS_H
#define CORE_VIEW_MSG_FIELDS_H

#include "core/msg.h"

/* An optional field of the message `out`. */
#define SET(field, value)        \
    do {                         \
        out->has_##field = true; \
        out->field = (value);    \
    } while (0)

/* Counts and TRES that it asks for and has. */
void job_tres_msg(const struct state *state, const struct job *job, struct arena *arena,
                  JobStatus *out);

#endif
