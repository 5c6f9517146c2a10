/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_args.h - the options of `spur sim`
 *
 * They are here and not beside the simulator because the manual page and completion, which the
 * `spur` binary writes, read them too.
 */
#ifndef CLI_SIM_ARGS_H
#define CLI_SIM_ARGS_H

#include "schema/option.h"

struct sim_args {
    const char *config, *policy, *only, *limits, *timeline;
    const char *checkpoint, *restart;
    uint32_t nodes, cpus, gpus; /* 0: not said */
    bool json, users, jobs, what_if, help;
};
extern const struct option_set sim_options;

#endif
