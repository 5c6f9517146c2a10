/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ping.h - which controllers are up
 */
#ifndef CLI_PING_H
#define CLI_PING_H

#include "cli/cli.h"

/* scontrol ping: one line for each controller; 1 when none is up. */
int ping_print(struct cli *cli, bool as_json, int argc, char **argv);

#endif
