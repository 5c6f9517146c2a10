/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shares.c - fractions of shares and usage
 */
#include "schema/shares.h"

#include <stdio.h>
#include <string.h>

#include "schema/acct.h"

#define WHOLE 4294967296.0

const ShareRow *share_parent(const ListSharesReply *reply, const ShareRow *row)
{
    const char *above = *row->user ? row->account : row->parent;

    for (size_t i = 0; i < reply->n_rows; i++) {
        const ShareRow *other = reply->rows[i];
        if (!*other->user && other != row && str_eq(other->account, above))
            return other;
    }
    return NULL;
}

static double level_shares(const ListSharesReply *reply, const ShareRow *row)
{
    const ShareRow *parent = share_parent(reply, row);
    double all = 0;

    if (!parent || row->shares == SHARE_OF_PARENT)
        return 0;
    for (size_t i = 0; i < reply->n_rows; i++) {
        const ShareRow *other = reply->rows[i];
        if (other->shares != SHARE_OF_PARENT && share_parent(reply, other) == parent)
            all += other->shares;
    }
    return all > 0 ? row->shares / all : 0;
}

double share_norm(const ListSharesReply *reply, const ShareRow *row)
{
    const ShareRow *parent = share_parent(reply, row);

    if (!reply->classic)
        return level_shares(reply, row);
    if (!parent)
        return 1;
    return (row->shares == SHARE_OF_PARENT ? 1 : level_shares(reply, row)) *
           share_norm(reply, parent);
}

double share_effective(const ListSharesReply *reply, const ShareRow *row)
{
    const ShareRow *parent = share_parent(reply, row);
    double own = share_used(row, reply->rows[0]);

    if (!reply->classic)
        return share_used(row, parent);
    if (!parent)
        return 1;
    double above = share_effective(reply, parent);
    if (row->shares == SHARE_OF_PARENT)
        return above;
    if (reply->depth_oblivious || above <= own)
        return own;
    return own + (above - own) * level_shares(reply, row);
}

double share_used(const ShareRow *row, const ShareRow *whole)
{
    return !whole ? 1 : whole->usage ? (double)row->usage / (double)whole->usage : 0;
}

double share_factor(const ShareRow *row)
{
    return (double)row->factor / WHOLE;
}

uint64_t shares_total(const ListSharesReply *reply)
{
    uint64_t total = 0;

    for (size_t i = 0; i < reply->n_rows; i++) {
        if (reply->rows[i]->shares != SHARE_OF_PARENT)
            total += reply->rows[i]->shares;
    }
    return total;
}

enum amount { RUN_SECONDS, GROUP_MINUTES, USAGE };

static void add_tres(struct jsonw *json, const char *key, const ShareRow *row, enum amount amount)
{
    jsonw_list(json, key);
    for (size_t i = 0; i < row->n_tres; i++) {
        const ShareTres *tres = row->tres[i];
        char name[80];
        jsonw_object(json, NULL);
        jsonw_text(json, "name", tres->name);
        snprintf(name, sizeof(name), "%s=", tres->name);
        bool limited = row->grp_tres_mins && strstr(row->grp_tres_mins, name);
        if (amount == USAGE)
            jsonw_double(json, "value", (double)tres->used);
        else if (amount == RUN_SECONDS)
            jsonw_set(json, "value", true, false, (int64_t)tres->run_secs);
        else
            jsonw_set(json, "value", limited, !limited,
                      limited ? (int64_t)acct_tres(row->grp_tres_mins, tres->name) : 0);
        jsonw_object_end(json);
    }
    jsonw_list_end(json);
}

void share_add_json(const ListSharesReply *reply, const ShareRow *row, uint32_t id,
                    struct jsonw *json)
{
    const ShareRow *parent = share_parent(reply, row);
    double norm = share_norm(reply, row), used = share_effective(reply, row);
    bool is_user = *row->user;

    jsonw_object(json, NULL);
    jsonw_number(json, "id", id);
    jsonw_text(json, "cluster", reply->cluster);
    jsonw_text(json, "name", is_user ? row->user : row->account);
    jsonw_text(json, "parent", is_user ? row->account : row->parent);
    jsonw_text(json, "partition", row->partition);
    jsonw_set_double(json, "shares_normalized", parent != NULL, false, norm);
    jsonw_set(json, "shares", parent && row->shares != SHARE_OF_PARENT, false,
              row->shares == SHARE_OF_PARENT ? 0 : row->shares);
    jsonw_object(json, "tres");
    add_tres(json, "run_seconds", row, RUN_SECONDS);
    add_tres(json, "group_minutes", row, GROUP_MINUTES);
    add_tres(json, "usage", row, USAGE);
    jsonw_object_end(json);
    jsonw_set_double(json, "effective_usage", true, false, used);
    jsonw_set_double(json, "usage_normalized", parent != NULL, false,
                     share_used(row, reply->n_rows ? reply->rows[0] : NULL));
    jsonw_number(json, "usage", (int64_t)row->usage);
    jsonw_object(json, "fairshare");
    jsonw_set_double(json, "factor", true, false,
                     is_user || reply->classic ? share_factor(row) : 0);
    jsonw_set_double(json, "level", parent && used > 0, parent && used <= 0,
                     used > 0 ? norm / used : 0);
    jsonw_object_end(json);
    jsonw_list(json, "type");
    jsonw_text(json, NULL, is_user ? "USER" : "ASSOCIATION");
    jsonw_list_end(json);
    jsonw_object_end(json);
}
