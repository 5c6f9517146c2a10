/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_view.h - what follows from a Job and the time: columns, filters and sorting ask here
 *
 * All of them work on any Job, also one without spec, status or owner.
 */
#ifndef SCHEMA_JOB_VIEW_H
#define SCHEMA_JOB_VIEW_H

#include "base/str.h"
#include "proto/job.pb-c.h"

/* A status, spec or owner that is never NULL. */
const JobStatus *job_status(const Job *job);
const JobSpec *job_spec(const Job *job);
const JobOwner *job_owner(const Job *job);

int64_t job_used_s(const Job *job, int64_t now_us);   /* run time without suspensions */
int64_t job_limit_s(const Job *job);                  /* -1 unlimited, -2 not set */
int64_t job_start_us(const Job *job, int64_t now_us); /* begun, or expected; 0 unknown */
int64_t job_end_us(const Job *job, int64_t now_us);   /* ended, or expected; 0 unknown */
uint32_t job_node_count(const Job *job);
uint32_t job_cpu_count(const Job *job);
uint32_t job_task_count(const Job *job);

void job_add_id(struct str *out, const Job *job); /* "136_[5-19:2%2]", "136_1", "139+0", "133" */
/* The tasks that wait, "5-19:2%2"; their ids are cut to so many characters ("1,5,9,...%2"), 0: not. */
void job_add_array_tasks(struct str *out, const Job *job, size_t most);
void job_add_nodes(struct str *out, const Job *job); /* "node[2-3]"; nothing before the start */
/* "cpu=8,mem=4000M,node=2,billing=8,gres/gpu=2": asked for, or given; nothing before the start. */
void job_add_tres(struct str *out, const Job *job, bool given);
void job_add_gres(struct str *out, const Job *job, GresScope scope, const char *joiner);

#endif
