/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env_ml.c - --ml-env: what distributed training reads to find its other processes
 *
 * The first node of the step is where they meet. The port is made from the job and the step: it is the
 * same on every node, another one for steps that run beside each other, and below those that the kernel
 * gives to clients.
 */
#include <stdio.h>
#include <string.h>

#include "spurd/task/env.h"
#include "spurd/task/env_priv.h"

enum { PORT_FIRST = 20000, PORT_COUNT = 12000, PORT_STEP = 1009 };

uint16_t env_ml_port(uint32_t job, uint32_t step)
{
    uint64_t number = job + (uint64_t)step * PORT_STEP;

    return (uint16_t)(PORT_FIRST + number % PORT_COUNT);
}

bool env_ml_host(const char *address, const char *node, struct str *out)
{
    const char *scheme = str_is_empty(address) ? NULL : strstr(address, "://");
    const char *host = scheme ? scheme + 3 : address;
    const char *port = str_is_empty(host) ? NULL : strrchr(host, ':');

    if (str_is_empty(host)) {
        str_add(out, node);
    } else {
        size_t len = port ? (size_t)(port - host) : strlen(host);
        bool brackets = len > 2 && host[0] == '[' && host[len - 1] == ']';
        str_add_len(out, host + brackets, len - 2 * (size_t)brackets);
    }
    return out->len > 0;
}

const char *env_ml_own_port(const struct env *env)
{
    const char *port = env_get(env, "MASTER_PORT");
    const char *ours = env_get(env, "SPUR_ML_PORT");

    return str_is_empty(port) || (ours && strcmp(port, ours) == 0) ? NULL : port;
}

/* ---- of a batch script: it stands on the first node, as its first process ---- */

static bool wanted(const struct env_job *job)
{
    return job->spec->ml_env;
}

bool env_ml_flag(const struct env_job *job, struct str *out)
{
    if (wanted(job))
        str_add(out, "1");
    return wanted(job);
}

bool env_ml_zero(const struct env_job *job, struct str *out)
{
    if (wanted(job))
        str_add(out, "0");
    return wanted(job);
}

bool env_ml_address(const struct env_job *job, struct str *out)
{
    return wanted(job) && env_ml_host(job->ml_address, job->node, out);
}

bool env_ml_made_port(const struct env_job *job, struct str *out)
{
    if (wanted(job))
        str_add_u64(out, env_ml_port(job->job_id, 0));
    return wanted(job);
}

bool env_ml_master_port(const struct env_job *job, struct str *out)
{
    if (!wanted(job) || !job->ml_port)
        return env_ml_made_port(job, out);
    str_add(out, job->ml_port);
    return true;
}

bool env_ml_world(const struct env_job *job, struct str *out)
{
    uint64_t all = 0;

    for (size_t i = 0; job->allocation && i < job->allocation->n_nodes; i++)
        all += job->allocation->nodes[i]->left ? 0 : job->allocation->nodes[i]->tasks;
    if (wanted(job))
        str_add_u64(out, MAX(all, 1));
    return wanted(job);
}

bool env_ml_local_world(const struct env_job *job, struct str *out)
{
    if (wanted(job))
        str_add_u64(out, job->here ? MAX(job->here->tasks, 1) : 1);
    return wanted(job);
}
