/* SPDX-License-Identifier: Apache-2.0 */
/*
 * update.h - key=value words of scontrol create and update, one row each
 *
 * Jobs use the rows of options_job.c, whose `.update` names the same thing as the option does. The
 * targets begin with the message that rows fill; `clear` collects fields that get their default
 * back ("MaxTime=", "AllowAccounts=ALL").
 */
#ifndef SCHEMA_UPDATE_H
#define SCHEMA_UPDATE_H

#include "base/vec.h"
#include "proto/command.pb-c.h"
#include "proto/config.pb-c.h"
#include "proto/node.pb-c.h"
#include "schema/option.h"

struct partition_update {
    PartitionSpec *spec;
    VEC(const char *) clear; /* names of fields */
};

struct node_update {
    NodeSpec *spec;
    VEC(const char *) clear;
    const char *names, *state, *reason;
    bool has_resume_after;
    uint32_t resume_after_s;
    bool features; /* spec->features is meant, also when empty */
};

struct reservation_update {
    ReservationSpec *spec;
    VEC(const char *) clear;
};

extern const struct option_set partition_updates, node_updates, reservation_updates;

void partition_update_done(struct partition_update *update);
void node_update_done(struct node_update *update);
void reservation_update_done(struct reservation_update *update);

/*
 * Reads one word "Key=value" by the rows of a set. ERR_UNKNOWN_OPTION: no such key. The text of
 * other errors says what is wrong with the value.
 */
int update_read(const struct option_set *set, const struct option_ctx *ctx, void *target,
                const char *word, struct err *err);

#endif
