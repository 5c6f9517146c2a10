/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ping.h - which controllers are up
 */
#ifndef CLI_PING_H
#define CLI_PING_H

#include "cli/cli.h"
#include "proto/controller.pb-c.h"

enum { PING_MAX = 64 };

struct pinged {
    const char *address;
    PingReply *reply; /* NULL: it did not answer */
    struct err err;
};

/* Asks the controller at pinged->address. */
void ping_one(struct cli *cli, struct pinged *pinged);
/* Every address that commands use, each controller once. How many there are. */
size_t ping_all(struct cli *cli, struct pinged *all);

/* scontrol ping: one line for each controller; 1 when none is up. */
int ping_print(struct cli *cli, bool as_json, bool yaml, int argc, char **argv);

#endif
