/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slurm_conf.h - where the controllers of a slurm.conf are, without reading the rest of it
 *
 * A command starts in milliseconds, also where slurm.conf describes ten thousand nodes: only the lines
 * that name controllers and their port are looked at. schema/conf.h reads the whole file.
 */
#ifndef SYS_SLURM_CONF_H
#define SYS_SLURM_CONF_H

#include "base/err.h"
#include "base/str.h"

/*
 * Appends "localhost:6817,c2:6817" and so on, in the file's order; a controller of this host is
 * localhost, where a socket says who asks. ERR_CONFIG when the file names none.
 */
int slurm_conf_controllers(const char *path, struct str *out, struct err *err);

#endif
