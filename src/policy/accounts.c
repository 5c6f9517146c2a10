/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accounts.c - accounts, associations and QOS: all of them, and found by name
 *
 * What one is is read in accounts_parse.c; a new configuration is taken in accounts_change.c.
 */
#include "policy/accounts.h"

#include <stdlib.h>
#include <string.h>

/* account|user|partition; names have no bar. */
void assoc_key(struct str *out, const char *account, const char *user, const char *partition)
{
    str_add(out, account);
    str_add(out, "|");
    str_add(out, user ? user : "");
    str_add(out, "|");
    str_add(out, partition ? partition : "");
}

/* The same for a name of usual length, without memory of its own; 0 when it is longer. */
static size_t small_key(char *out, size_t size, const char *account, const char *user,
                        const char *partition)
{
    const char *parts[] = { account, user ? user : "", partition ? partition : "" };
    size_t len = 0;

    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        size_t more = strlen(parts[i]);
        if (len + more + 2 > size)
            return 0;
        memcpy(out + len, parts[i], more);
        len += more;
        if (i + 1 < ARRAY_LEN(parts))
            out[len++] = '|';
    }
    return len;
}

struct assoc *assoc_get(const struct accounts *accounts, const char *account, const char *user,
                        const char *partition)
{
    char small[256];
    struct str key = { 0 };
    size_t len = small_key(small, sizeof(small), account, user, partition);

    if (len)
        return map_get_len(&accounts->assoc_keys, small, len);
    assoc_key(&key, account, user, partition);
    struct assoc *assoc = map_get(&accounts->assoc_keys, str_text(&key));
    str_done(&key);
    return assoc;
}

struct accounts *accounts_new(const Config *config)
{
    struct accounts *accounts = NEW(struct accounts);

    arena_init(&accounts->arena);
    map_init(&accounts->assoc_keys);
    map_init(&accounts->defaults);
    map_init(&accounts->by_user);
    map_init(&accounts->qos_names);
    map_init(&accounts->part_qos);
    map_init(&accounts->accrue_lines);
    accounts_make(accounts, config);
    return accounts;
}

void accounts_free(struct accounts *accounts)
{
    if (!accounts)
        return;
    vec_each (struct assoc *, at, &accounts->assocs)
        assoc_free(accounts, *at);
    vec_each (struct qos *, at, &accounts->qos)
        qos_free(accounts, *at);
    map_done(&accounts->accrue_lines);
    vec_done(&accounts->assocs);
    vec_done(&accounts->of_accounts);
    vec_done(&accounts->of_users);
    vec_done(&accounts->qos);
    vec_done(&accounts->of_qos);
    vec_done(&accounts->free_numbers);
    vec_done(&accounts->free_slots);
    vec_done(&accounts->totals);
    map_done(&accounts->assoc_keys);
    map_done(&accounts->defaults);
    map_done(&accounts->by_user);
    map_done(&accounts->qos_names);
    map_done(&accounts->part_qos);
    arena_done(&accounts->arena);
    free(accounts);
}
