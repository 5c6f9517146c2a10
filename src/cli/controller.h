/* SPDX-License-Identifier: Apache-2.0 */
/*
 * controller.h - changing who the controllers are, for `spur controller` and `spur up`
 */
#ifndef CLI_CONTROLLER_H
#define CLI_CONTROLLER_H

#include "client/client.h"
#include "schema/option.h"

extern const struct option_set controller_options;

struct controller_watch {
    void *ctx;
    /* The newcomer's invitation, once; secret. */
    int (*invited)(void *ctx, const char *line, struct err *err);
    /* What it is at, each time that is new; paused_ms: the log moved, which took so long. */
    void (*phase)(void *ctx, const char *phase, uint32_t paused_ms);
};

/*
 * `what` is the method: AddController, RemoveController, TransferLeader. Asks again until it is done
 * or wait_s is over; may be repeated after that.
 */
int controller_change(struct client *client, const char *what, const char *name,
                      const char *address, const struct controller_watch *watch, unsigned wait_s,
                      struct err *err);

#endif
