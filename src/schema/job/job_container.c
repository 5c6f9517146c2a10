/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_container.c - the container options of a job, as a step carries them
 */
#include "schema/job_container.h"

#include "base/str.h"

bool job_container(const JobSpec *spec, StepContainer *out)
{
    step_container__init(out);
    out->image = spec->container_image;
    out->bundle = spec->container;
    out->mounts = spec->container_mounts;
    out->workdir = spec->container_workdir;
    out->name = spec->container_name;
    out->env = spec->container_env;
    out->has_mount_home = out->has_entrypoint = out->has_readonly = out->has_remap_root = true;
    out->mount_home = spec->container_mount_home;
    out->entrypoint = spec->container_entrypoint;
    out->readonly = spec->container_readonly;
    out->remap_root = spec->container_remap_root;
    return !str_is_empty(out->image) || !str_is_empty(out->bundle);
}
