/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accounts_validate.c - may these accounts, users and QOS be?
 *
 * Users that were looked at before and are the same are not looked at again, while all accounts and
 * QOS that there were still are.
 */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "policy/accounts.h"

struct names {
    struct map accounts, users, qos;
};

static int look_qos_names(const struct names *names, const char *who, char *const *list,
                          size_t count, const char *one, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        if (!map_has(&names->qos, list[i]))
            return err_set(err, ERR_CONFIG, "%.100s: there is no QOS '%.100s'", who, list[i]);
    }
    if (one && !map_has(&names->qos, one))
        return err_set(err, ERR_CONFIG, "%.100s: there is no QOS '%.100s'", who, one);
    return 0;
}

static int look_accounts(const Config *config, struct names *names, struct err *err)
{
    map_put(&names->accounts, "root", names);
    for (size_t i = 0; i < config->n_accounts; i++) {
        const ConfAccount *account = config->accounts[i];
        const char *parent = account->parent ? account->parent : "root";
        bool is_root = str_eq(account->name, "root");
        if (str_is_empty(account->name))
            return err_set(err, ERR_CONFIG, "an account has no name");
        if (map_has(&names->accounts, account->name) && !is_root)
            return err_set(err, ERR_CONFIG, "account '%.100s' is there twice", account->name);
        if (!map_has(&names->accounts, parent))
            return err_set(err, ERR_CONFIG,
                           "account '%.100s': its parent '%.100s' does not stand before it",
                           account->name, parent);
        size_t depth = (size_t)(uintptr_t)map_get(&names->users, parent) + 1;
        if (depth > LIMIT_ACCOUNT_DEPTH)
            return err_set(err, ERR_CONFIG, "account '%.100s' is more than %d levels below root",
                           account->name, LIMIT_ACCOUNT_DEPTH);
        map_put(&names->accounts, account->name, names);
        map_put(&names->users, account->name, (void *)(uintptr_t)depth);
        int code = look_qos_names(names, account->name, account->qos_list, account->n_qos_list,
                                  account->default_qos, err);
        if (code < 0)
            return code;
    }
    map_clear(&names->users);
    return 0;
}

static bool all_are_left(const struct sections_of *of)
{
    bool left = true;

    for (size_t i = 0; left && i < of->old_count; i++)
        left = of->now[i];
    return left;
}

/* One that was there stays, so it is there once; are there two of a name that is new, or has one? */
static bool is_twice(const struct accounts *was, struct names *names, const ConfUser *user)
{
    const struct assoc *old =
        was ? assoc_get(was, user->account, user->name, user->partition) : NULL;
    struct str key = { 0 };

    assoc_key(&key, user->account, user->name, user->partition);
    bool twice = map_put(&names->users, str_text(&key), names) != NULL || (old && old->conf);
    str_done(&key);
    return twice;
}

static int look_users(const struct accounts *was, const Config *config,
                      const struct sections *sections, struct names *names, struct err *err)
{
    const struct sections_of *of = sections ? &sections->of[SECTION_USERS] : NULL;
    bool left = sections && all_are_left(&sections->of[SECTION_QOS]) &&
                all_are_left(&sections->of[SECTION_ACCOUNTS]);

    for (size_t i = 0; i < config->n_users; i++) {
        const ConfUser *user = config->users[i];
        if (left && of->same[i])
            continue;
        if (str_is_empty(user->name) || str_is_empty(user->account))
            return err_set(err, ERR_CONFIG, "a user has no name or no account");
        if (!map_has(&names->accounts, user->account))
            return err_set(err, ERR_CONFIG, "user '%.100s': there is no account '%.100s'",
                           user->name, user->account);
        if (!(of && of->was[i]) && is_twice(was, names, user))
            return err_set(err, ERR_CONFIG, "user '%.100s' is twice in account '%.100s'",
                           user->name, user->account);
        int code = look_qos_names(names, user->name, user->qos_list, user->n_qos_list,
                                  user->default_qos, err);
        if (code < 0)
            return code;
    }
    return 0;
}

static int look_qos(const Config *config, struct names *names, struct err *err)
{
    for (size_t i = 0; i < config->n_qos; i++) {
        if (str_is_empty(config->qos[i]->name))
            return err_set(err, ERR_CONFIG, "a QOS has no name");
        if (map_put(&names->qos, config->qos[i]->name, names))
            return err_set(err, ERR_CONFIG, "QOS '%.100s' is there twice", config->qos[i]->name);
    }
    map_put(&names->qos, "normal", names);
    bool any = config->n_qos || config->n_accounts || config->n_users;
    for (size_t i = 0; i < config->n_partitions && any; i++) {
        const char *qos = config->partitions[i]->qos;
        if (!str_is_empty(qos) && !map_has(&names->qos, qos))
            return err_set(err, ERR_CONFIG, "partition '%.100s': there is no QOS '%.100s'",
                           config->partitions[i]->name, qos);
    }
    return 0;
}

int accounts_validate(const struct accounts *was, const Config *config,
                      const struct sections *sections, struct err *err)
{
    struct names names;

    if (config->n_accounts + config->n_users > LIMIT_ASSOCS || config->n_qos > LIMIT_QOS)
        return err_set(err, ERR_CONFIG, "there are more than %d associations or %d QOS",
                       LIMIT_ASSOCS, LIMIT_QOS);
    map_init(&names.accounts);
    map_init(&names.users);
    map_init(&names.qos);
    int code = look_qos(config, &names, err);
    if (code == 0)
        code = look_accounts(config, &names, err);
    if (code == 0)
        code = look_users(was, config, sections, &names, err);
    map_done(&names.accounts);
    map_done(&names.users);
    map_done(&names.qos);
    return code;
}
