/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env_priv.h - the table of variables
 */
#ifndef SPURD_ENV_PRIV_H
#define SPURD_ENV_PRIV_H

#include "spurd/task/env.h"

struct env_row {
    const char *name;
    unsigned where;
    /* Adds the value; false: the variable is not set. */
    bool (*write)(const struct env_job *job, struct str *out);
};

extern const struct env_row env_rows[];
extern const size_t env_row_count;

/* env_gpu.c: global indexes of this job's GPUs on this node, "0,1,4"; false when it has none. */
bool env_gpu_indexes(const struct env_job *job, struct str *out);
bool env_gpu_count(const struct env_job *job, struct str *out);
bool env_gpu_cuda(const struct env_job *job, struct str *out);
bool env_gpu_hip(const struct env_job *job, struct str *out);
bool env_gpu_rocr(const struct env_job *job, struct str *out);
bool env_gpu_other(const struct env_job *job, struct str *out);
/* Of the threads of its GPU, for CUDA's multi-process service. */
bool env_mps_percent(const struct env_job *job, struct str *out);
bool env_shards(const struct env_job *job, struct str *out);

/* env_ml.c: false without --ml-env. */
bool env_ml_flag(const struct env_job *job, struct str *out);
bool env_ml_zero(const struct env_job *job, struct str *out);
bool env_ml_address(const struct env_job *job, struct str *out);
bool env_ml_made_port(const struct env_job *job, struct str *out);
bool env_ml_master_port(const struct env_job *job, struct str *out);
bool env_ml_world(const struct env_job *job, struct str *out);
bool env_ml_local_world(const struct env_job *job, struct str *out);

#endif
