/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample.h - the jobs, nodes and partitions that a real Slurm showed when test/data was recorded
 */
#ifndef SCHEMA_TEST_SAMPLE_H
#define SCHEMA_TEST_SAMPLE_H

#include "proto/controller.pb-c.h"

#define SAMPLE_START_US INT64_C(1794768163000000) /* 2026-11-15T18:42:43 UTC */

/* The job with this number; the caller frees it with job__free_unpacked(). NULL: no such job. */
Job *sample_job(uint32_t id);
Node *sample_node(unsigned number); /* 1 ... 8 */
Partition *sample_partition(const char *name);

/* The recorded standard output of a file in test/data; the caller frees it. */
char *sample_output(const char *file);

#endif
