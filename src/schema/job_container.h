/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_container.h - the container options of a job, as a step carries them
 */
#ifndef SCHEMA_JOB_CONTAINER_H
#define SCHEMA_JOB_CONTAINER_H

#include <stdbool.h>

#include "proto/job.pb-c.h"
#include "proto/run.pb-c.h"

/* False: none is asked for. Points into `spec`. */
bool job_container(const JobSpec *spec, StepContainer *out);

#endif
