/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_accounts.c - accounts that spurdbd owns: its changes become commands
 *
 * (1) The number of the last change is in the state. While it is 0 the configuration file has the accounts;
 *     from then on a new file does not touch them.
 * (2) A change says how all is after it, so whoever missed some needs only the last one. What is the same is
 *     not written again (core/config_change.c); the last command of a change carries its number.
 */
#include <stdlib.h>

#include "core/level.h"
#include "spurctld/ctl/ctl_priv.h"
#include "wire/pb.h"

bool config_has_accounts(const Config *config)
{
    return config->n_accounts || config->n_users || config->n_qos;
}

bool ctl_file_owns_accounts(const struct ctl *ctl)
{
    return state_head(ctl->state).accounts == 0 && config_has_accounts(state_config(ctl->state));
}

/* What of a configuration belongs to accounts; borrowed. */
static Config accounts_of(const Config *config)
{
    Config part = CONFIG__INIT;

    part.n_accounts = config->n_accounts;
    part.accounts = config->accounts;
    part.n_users = config->n_users;
    part.users = config->users;
    part.n_qos = config->n_qos;
    part.qos = config->qos;
    part.n_db_admins = config->n_db_admins;
    part.db_admins = config->db_admins;
    part.n_db_operators = config->n_db_operators;
    part.db_operators = config->db_operators;
    part.n_db_coordinators = config->n_db_coordinators;
    part.db_coordinators = config->db_coordinators;
    return part;
}

Config *ctl_accounts_copy(const struct ctl *ctl)
{
    Config part = accounts_of(state_config(ctl->state));

    return pb_copy(&part);
}

Config *ctl_accounts_kept(const struct ctl *ctl)
{
    return state_head(ctl->state).accounts ? ctl_accounts_copy(ctl) : NULL;
}

Config *config_with_accounts(const Config *config, const Config *accounts)
{
    Config rest = *config, part = accounts_of(accounts);

    rest.n_accounts = rest.n_users = rest.n_qos = 0;
    rest.n_db_admins = rest.n_db_operators = rest.n_db_coordinators = 0;
    /* Packed messages one behind the other are one message: lists are joined. */
    size_t first = config__get_packed_size(&rest), second = config__get_packed_size(&part);
    uint8_t *bytes = mem_new(first + second + 1);
    config__pack(&rest, bytes);
    config__pack(&part, bytes + first);
    Config *joined = config__unpack(NULL, first + second, bytes);
    free(bytes);
    return joined;
}

bool ctl_can_take_accounts(const struct ctl *ctl)
{
    return ctl->leading && state_level(ctl->state) >= LEVEL_ACCOUNTS;
}

void ctl_take_accounts(struct ctl *ctl, uint64_t number, const Config *accounts,
                       ctl_agreed_fn *done, void *arg)
{
    Config *config = config_with_accounts(state_config(ctl->state), accounts);
    struct config_base base;
    struct config_changes changes;

    config_base_take(ctl->state, &base);
    config_changes_make(&changes, &base, config, false, CTL_CONFIG_SECTIONS);
    CmdConfigChange *last = changes.list.items[changes.list.len - 1]; /* (2) */
    last->has_accounts = true;
    last->accounts = number;
    ctl_change_config(ctl, &changes, done, arg);
    config_changes_done(&changes);
    config_base_done(&base);
    config__free_unpacked(config, NULL);
}
