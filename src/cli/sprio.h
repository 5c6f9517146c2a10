/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sprio.h - what sprio.c and sprio_fields.c share
 */
#ifndef CLI_SPRIO_H
#define CLI_SPRIO_H

#include "proto/controller.pb-c.h"
#include "schema/columns.h"

/* One line: a job, or the weights when there is none. */
struct sprio_row {
    const Job *job;
    const PriorityParts *parts; /* in one of its partitions, or in its only one */
    const Config *config;
    size_t at; /* of its partitions, in its order */
};

extern const struct field_table sprio_fields;

/* By letters of columns, as in "-Y,i"; then by the numbers of jobs. */
void sprio_sort(struct sprio_row *rows, size_t count, const char *by);

#endif
