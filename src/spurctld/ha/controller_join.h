/* SPDX-License-Identifier: Apache-2.0 */
/*
 * controller_join.h - a new controller gets what it needs to be one
 */
#ifndef SPURCTLD_CONTROLLER_JOIN_H
#define SPURCTLD_CONTROLLER_JOIN_H

#include "spurctld/serve.h"

/*
 * Shows the invitation in options->join to a controller of the cluster and keeps what comes back in
 * state_dir. Nothing when that was done before. Blocks, before the server begins.
 */
int server_controller_join(const struct server_options *options, const char *state_dir,
                           struct err *err);

#endif
