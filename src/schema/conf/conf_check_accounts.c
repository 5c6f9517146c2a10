/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_check_accounts.c - what must agree among accounts, users, QOS and partitions
 */
#include <string.h>

#include "base/limits.h"
#include "base/map.h"
#include "schema/conf/conf_priv.h"

struct names {
    struct conf *conf;
    struct map accounts, qos, partitions; /* name → struct conf_item, or the map itself */
};

static struct conf_origin origin(const struct conf_item *item, const char *name)
{
    struct conf_origin at = *conf_key_origin(item, conf_key_find(item->section, name));

    return at.line ? at : item->at;
}

static void lacks(struct names *names, const struct conf_item *item, const char *key,
                  const char *who, const char *what, const char *name, const struct map *among)
{
    struct conf_guess guess = { .wanted = name };

    map_each (entry, among)
        conf_guess(&guess, entry->key);
    conf_note_add(names->conf, CONF_NOTE_ERROR, origin(item, key), "%s '%.64s': %s '%.64s'%s",
                  conf_kind(names->conf, item->section), who, what, name,
                  conf_guess_text(&guess, &names->conf->arena));
}

static void check_qos_list(struct names *names, const struct conf_item *item, const char *who,
                           char *const *list, size_t count, const char *one)
{
    for (size_t i = 0; i < count; i++) {
        if (!map_has(&names->qos, list[i]))
            lacks(names, item, "qos", who, "there is no QOS", list[i], &names->qos);
    }
    if (one && !map_has(&names->qos, one))
        lacks(names, item, "default_qos", who, "there is no QOS", one, &names->qos);
}

static void check_account(struct names *names, const struct conf_item *item)
{
    const ConfAccount *account = (const ConfAccount *)item->message;
    bool is_root = account->name && strcmp(account->name, "root") == 0;

    if (!account->name)
        return;
    if (map_has(&names->accounts, account->name) && !is_root)
        conf_note_add(names->conf, CONF_NOTE_ERROR, origin(item, "name"),
                      "[[accounts]] '%.64s' is there twice", account->name);
    if (account->parent && !map_has(&names->accounts, account->parent))
        lacks(names, item, "parent", account->name, "no account before it is its parent",
              account->parent, &names->accounts);
    map_put(&names->accounts, account->name, names);
    check_qos_list(names, item, account->name, account->qos_list, account->n_qos_list,
                   account->default_qos);
}

static void check_user(struct names *names, const struct conf_item *item, struct map *seen)
{
    const ConfUser *user = (const ConfUser *)item->message;
    struct str key = { 0 };

    if (!user->name || !user->account)
        return;
    if (!map_has(&names->accounts, user->account))
        lacks(names, item, "account", user->name, "there is no account", user->account,
              &names->accounts);
    if (user->partition && !map_has(&names->partitions, user->partition))
        lacks(names, item, "partition", user->name, "there is no partition", user->partition,
              &names->partitions);
    str_addf(&key, "%s|%s|%s", user->account, user->name, user->partition ? user->partition : "");
    if (map_put(seen, str_text(&key), names))
        conf_note_add(names->conf, CONF_NOTE_ERROR, origin(item, "name"),
                      "[[users]] '%.64s' is twice in account '%.64s'", user->name, user->account);
    str_done(&key);
    check_qos_list(names, item, user->name, user->qos_list, user->n_qos_list, user->default_qos);
}

static void check_decimal(struct conf *conf, const struct conf_item *item, const char *key,
                          const char *text)
{
    if (text &&
        (!*text || text[strspn(text, "0123456789.")] || strchr(text, '.') != strrchr(text, '.')))
        conf_note_add(conf, CONF_NOTE_ERROR, origin(item, key),
                      "[[qos]] %s = \"%.64s\": a number such as \"0.5\" is wanted", key, text);
}

static void check_qos(struct names *names, const struct conf_item *item)
{
    const ConfQos *qos = (const ConfQos *)item->message;

    check_decimal(names->conf, item, "usage_factor", qos->usage_factor);
    check_decimal(names->conf, item, "limit_factor", qos->limit_factor);
    check_decimal(names->conf, item, "usage_threshold", qos->usage_threshold);
    for (size_t i = 0; i < qos->n_qos_preempt; i++) {
        if (!map_has(&names->qos, qos->qos_preempt[i]))
            lacks(names, item, "preempt", qos->name ? qos->name : "", "there is no QOS",
                  qos->qos_preempt[i], &names->qos);
    }
}

static bool is_section(const struct conf_item *item, const char *name)
{
    return strcmp(item->section->name, name) == 0;
}

static void collect(struct names *names)
{
    struct conf *conf = names->conf;

    map_put(&names->accounts, "root", names);
    for (size_t i = 0; i < conf->items.len; i++) {
        const struct conf_item *item = &conf->items.items[i];
        const ConfQos *qos = (const ConfQos *)item->message;
        const PartitionSpec *part = (const PartitionSpec *)item->message;

        if (is_section(item, "partitions") && part->name)
            map_put(&names->partitions, part->name, names);
        if (is_section(item, "qos") && qos->name && map_put(&names->qos, qos->name, names))
            conf_note_add(conf, CONF_NOTE_ERROR, origin(item, "name"),
                          "[[qos]] '%.64s' is there twice", qos->name);
    }
    if (!map_has(&names->qos, "normal"))
        map_put(&names->qos, "normal", names);
}

void conf_check_accounts(struct conf *conf)
{
    struct names names = { .conf = conf };
    const Config *config = &conf->config;
    struct map seen;

    if (!config->n_accounts && !config->n_users && !config->n_qos)
        return;
    map_init(&names.accounts);
    map_init(&names.qos);
    map_init(&names.partitions);
    map_init(&seen);
    collect(&names);
    for (size_t i = 0; i < conf->items.len; i++) {
        const struct conf_item *item = &conf->items.items[i];
        if (is_section(item, "qos"))
            check_qos(&names, item);
        else if (is_section(item, "accounts"))
            check_account(&names, item);
    }
    for (size_t i = 0; i < conf->items.len; i++) {
        const struct conf_item *item = &conf->items.items[i];
        const PartitionSpec *part = (const PartitionSpec *)item->message;
        if (is_section(item, "users"))
            check_user(&names, item, &seen);
        else if (is_section(item, "partitions") && part->qos && !map_has(&names.qos, part->qos))
            lacks(&names, item, "qos", part->name ? part->name : "", "there is no QOS", part->qos,
                  &names.qos);
    }
    map_done(&names.accounts);
    map_done(&names.qos);
    map_done(&names.partitions);
    map_done(&seen);
}
