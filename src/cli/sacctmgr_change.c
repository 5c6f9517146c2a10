/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sacctmgr_change.c - `sacctmgr add`, `modify`, `delete`: words become edits
 *
 * What is printed is what Slurm prints: programs read it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "cli/sacctmgr.h"

/* ---- what words say ---- */

struct asked {
    struct names names, accounts, clusters, partitions, users, wckeys;
    const char *description, *organization, *parent, *default_account, *admin, *new_name;
    const char *classification, *default_wckey;
    words settings; /* of the association or QOS */
    bool any;       /* besides names */
};

static void asked_done(struct asked *asked)
{
    vec_done(&asked->settings);
}

enum what { WHAT_ACCOUNT, WHAT_USER, WHAT_CLUSTER, WHAT_QOS, WHAT_COORD, WHAT_WCKEY };

static bool what_of(const char *word, enum what *out)
{
    static const char *const entities[] = { "account", "user",        "cluster",
                                            "qos",     "coordinator", "wckey" };

    for (size_t i = 0; i < ARRAY_LEN(entities); i++) {
        if (word_is(word, entities[i])) {
            *out = (enum what)i;
            return true;
        }
    }
    return false;
}

/* False: the word is not known here. */
static bool take_word(struct manager *m, enum what what, const struct word *word, struct asked *out,
                      bool set)
{
    const struct setting *table = what == WHAT_QOS ? qos_settings : assoc_settings;
    const char *value = word->value;

    if (!value) {
        if (set)
            return false;
        out->names = names_of(m, word->key);
        return true;
    }
    bool of_user = what == WHAT_USER || what == WHAT_COORD, exact = true;
    if (!set && (word_is(word->key, "Names") || str_ieq(word->key, "Name")))
        out->names = names_of(m, value);
    else if (!set && word_is(word->key, "Users"))
        *(of_user ? &out->names : &out->users) = names_of(m, value);
    else if (!set && (word_is(word->key, "Accounts") || word_is(word->key, "Accts")))
        *(what == WHAT_ACCOUNT ? &out->names : &out->accounts) = names_of(m, value);
    else if (!set && word_is(word->key, "Clusters"))
        *(what == WHAT_CLUSTER ? &out->names : &out->clusters) = names_of(m, value);
    else if (!set && what == WHAT_USER && word_is(word->key, "Partitions"))
        out->partitions = names_of(m, value);
    else
        exact = false;
    if (exact)
        return true;
    out->any = true;
    if (what == WHAT_ACCOUNT && word_is(word->key, "Description"))
        out->description = value;
    else if (what == WHAT_ACCOUNT && word_is(word->key, "Organization"))
        out->organization = value;
    else if (what == WHAT_ACCOUNT && word_is(word->key, "Parent"))
        out->parent = names_of(m, value).items[0];
    else if (what == WHAT_USER && word_is(word->key, "DefaultAccount"))
        out->default_account = names_of(m, value).items[0];
    else if (what == WHAT_USER && word_is(word->key, "DefaultWCKey"))
        out->default_wckey = value;
    else if (what == WHAT_USER && word_is(word->key, "AdminLevel"))
        out->admin = value;
    else if (what == WHAT_USER && word_is(word->key, "WCKeys"))
        out->wckeys = names_of(m, value);
    else if (what == WHAT_CLUSTER && word_is(word->key, "Classification"))
        out->classification = value;
    else if (what != WHAT_COORD && what != WHAT_WCKEY && setting_find(table, word->key))
        vec_push(&out->settings, *word);
    else
        return false;
    return true;
}

static const struct {
    const char *key, *why;
} refused[] = {
    { "RawUsage", "usage cannot be set: it follows from what jobs used" },
    { "NewName", "a user is renamed in the directory service, not here" },
    { "Federation", "there are no federations" },
    { "FedState", "there are no federations" },
    { "Features", "there are no federations" },
    { "RPC", "a controller says which protocol it speaks" },
};

int manager_bad_word(const struct manager *m, const struct word *word, bool modify)
{
    (void)m;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        if (str_ieq(word->key, refused[i].key)) {
            fprintf(stderr, " %s: %s\n", word->key, refused[i].why);
            return 1;
        }
    }
    fprintf(stderr, " Unknown option: %s%s%s\n", word->key, word->value ? "=" : "",
            word->value ? word->value : "");
    if (modify)
        fprintf(stderr, " Use keyword 'where' to modify condition\n");
    return 1;
}

static bool take_words(struct manager *m, enum what what, const words *list, struct asked *out,
                       bool set)
{
    for (size_t i = 0; i < list->len; i++) {
        const struct word *word = &list->items[i];
        if (!word->value && (str_ieq(word->key, "where") || str_ieq(word->key, "set")))
            continue;
        if (!take_word(m, what, word, out, set)) {
            manager_bad_word(m, word, set);
            return false;
        }
    }
    return true;
}

/* ---- edits ---- */

AcctEdit *edit_new(struct manager *m, bool remove, const char *action, const char *what)
{
    AcctEdit *edit = ARENA_NEW(&m->cli.arena, AcctEdit);

    acct_edit__init(edit);
    edit->has_remove = true;
    edit->remove = remove;
    edit->action = (char *)(uintptr_t)action;
    edit->what = (char *)(uintptr_t)what;
    vec_push(&m->edits, edit);
    return edit;
}

AcctAssoc *assoc_copy(struct manager *m, const AcctAssoc *assoc)
{
    AcctAssoc *copy = ARENA_NEW(&m->cli.arena, AcctAssoc);

    *copy = *assoc;
    copy->limits = ARENA_NEW(&m->cli.arena, ConfUser);
    *copy->limits = *assoc->limits;
    return copy;
}

AcctAssoc *assoc_new(struct manager *m, const char *cluster, const char *account, const char *user,
                     const char *partition)
{
    AcctAssoc *assoc = ARENA_NEW(&m->cli.arena, AcctAssoc);

    acct_assoc__init(assoc);
    assoc->limits = ARENA_NEW(&m->cli.arena, ConfUser);
    conf_user__init(assoc->limits);
    assoc->cluster = arena_strdup(&m->cli.arena, cluster);
    assoc->limits->account = arena_strdup(&m->cli.arena, account);
    assoc->limits->name = arena_strdup(&m->cli.arena, user ? user : "");
    assoc->limits->partition =
        str_is_empty(partition) ? NULL : arena_strdup(&m->cli.arena, partition);
    assoc->limits->has_fairshare = true;
    assoc->limits->fairshare = 1;
    return assoc;
}

/* The QOS that it may use while it names none: += and -= go on from those. */
static void inherit_list(struct manager *m, AcctAssoc *assoc, const struct setting *setting,
                         const struct word *word)
{
    if (setting->kind != KEY_LIST || word->how == '=' || assoc->limits->n_qos_list)
        return;
    const ConfUser *has = limits_with(m, assoc, setting);
    if (has) {
        assoc->limits->qos_list = has->qos_list;
        assoc->limits->n_qos_list = has->n_qos_list;
    }
}

static bool put_settings(struct manager *m, AcctAssoc *assoc, const words *settings)
{
    for (size_t i = 0; i < settings->len; i++) {
        const struct setting *setting = setting_find(assoc_settings, settings->items[i].key);
        inherit_list(m, assoc, setting, &settings->items[i]);
        if (!setting_put(m, setting, assoc->limits, &settings->items[i]))
            return false;
    }
    return true;
}

static void say_settings(struct manager *m, const struct setting *table, const void *message,
                         const words *settings, bool qos)
{
    for (const struct setting *row = table; row->name; row++) {
        struct str value = { 0 };
        bool said = qos && str_eq(row->name, "Description");
        for (size_t i = 0; i < settings->len; i++)
            said = said || setting_find(table, settings->items[i].key) == row;
        if (said && setting_get(row, message, false, &value)) {
            if (!qos)
                str_addf(&m->out, "  %-13s = %s\n",
                         str_eq(row->name, "MaxWallDurationPerJob") ? "MaxWall" : row->name,
                         str_text(&value));
            else if (str_eq(row->name, "Description") || str_eq(row->name, "MaxJobsPU"))
                str_addf(&m->out, "  %-14s = %s\n",
                         str_eq(row->name, "MaxJobsPU") ? "MaxJobsPerUser" : row->name,
                         str_text(&value));
            else
                str_addf(&m->out, "  %-24s = %s\n",
                         str_eq(row->name, "MaxWallDurationPerJob") ? "MaxWall" : row->name,
                         str_text(&value));
        }
        str_done(&value);
    }
}

static void say_assoc(struct manager *m, const AcctAssoc *assoc, bool of_parent)
{
    const ConfUser *limits = assoc->limits;

    if (of_parent && str_is_empty(limits->name)) {
        str_addf(&m->out, "  C = %-10.10s A = %s%s%s\n", assoc->cluster, limits->account,
                 assoc->parent ? " of " : "", assoc->parent ? assoc->parent : "");
        return;
    }
    str_addf(&m->out, "  C = %-10.10s A = %-20.20s", assoc->cluster, limits->account);
    if (!str_is_empty(limits->name))
        str_addf(&m->out, " U = %-9.9s", limits->name);
    if (!str_is_empty(limits->partition))
        str_addf(&m->out, " P = %-10.10s", limits->partition);
    str_add_char(&m->out, '\n');
}

/* ---- add ---- */

/* Those that were named, or all. */
static bool clusters_of(struct manager *m, struct asked *asked)
{
    if (!asked->clusters.count) {
        asked->clusters.items = ARENA_ARRAY(&m->cli.arena, char *, m->tables->n_clusters + 1);
        for (size_t i = 0; i < m->tables->n_clusters; i++)
            asked->clusters.items[asked->clusters.count++] = m->tables->clusters[i]->name;
    }
    if (!asked->clusters.count)
        fprintf(stderr, " There are no clusters yet: a controller registers its own when it finds "
                        "spurdbd, or say 'sacctmgr add cluster NAME'\n");
    for (size_t i = 0; i < asked->clusters.count; i++) {
        bool known = false;
        for (size_t k = 0; k < m->tables->n_clusters; k++)
            known = known || str_eq(m->tables->clusters[k]->name, asked->clusters.items[i]);
        if (!known) {
            fprintf(stderr, " This cluster '%s' doesn't exist.\n", asked->clusters.items[i]);
            return false;
        }
    }
    return asked->clusters.count > 0;
}

static AcctAccount *new_account(struct manager *m, const struct asked *asked, const char *name)
{
    AcctAccount *account = ARENA_NEW(&m->cli.arena, AcctAccount);
    const char *org = asked->organization ? asked->organization
                      : asked->parent     ? asked->parent
                                          : name;

    acct_account__init(account);
    account->name = arena_strdup(&m->cli.arena, name);
    account->description =
        arena_strdup(&m->cli.arena, asked->description ? asked->description : name);
    account->organization = arena_strdup(&m->cli.arena, org);
    return account;
}

static int add_accounts(struct manager *m, struct asked *asked)
{
    const char *parent = asked->parent ? asked->parent : "root";
    struct str assocs = { 0 }, accounts = { 0 };
    AcctAssoc *last = NULL;
    bool good = clusters_of(m, asked);

    for (size_t i = 0; good && i < asked->names.count; i++) {
        const char *name = asked->names.items[i];
        if (!account_find(m, name)) {
            edit_new(m, false, "Add Accounts", name)->account = new_account(m, asked, name);
            str_addf(&accounts, "  %s\n", name);
        }
        for (size_t k = 0; good && k < asked->clusters.count; k++) {
            const char *cluster = asked->clusters.items[k];
            if (assoc_find(m, cluster, name, "", "")) {
                str_addf(&m->out, " Already existing account %s on cluster %s\n", name, cluster);
                continue;
            }
            if (!assoc_find(m, cluster, parent, "", "")) {
                fprintf(stderr,
                        " Parent account '%s' doesn't exist on cluster %s\n        Contact your "
                        "admin to add this account.\n",
                        parent, cluster);
                good = false;
                continue;
            }
            last = assoc_new(m, cluster, name, "", "");
            last->parent = arena_strdup(&m->cli.arena, parent);
            good = put_settings(m, last, &asked->settings);
            edit_new(m, false, "Add Associations", name)->assoc = last;
            str_addf(&assocs, "  C = %-10.10s A = %-20.20s\n", cluster, name);
        }
    }
    if (accounts.len)
        str_addf(
            &m->out,
            " Adding Account(s)\n%s Settings\n  Description     = %s\n  Organization    = %s\n",
            str_text(&accounts), asked->description ? asked->description : "Account Name",
            asked->organization ? asked->organization : "Parent/Account Name");
    if (assocs.len)
        str_addf(&m->out, " Associations =\n%s", str_text(&assocs));
    if (last && asked->any) {
        str_add(&m->out, " Settings\n");
        say_settings(m, assoc_settings, last->limits, &asked->settings, false);
        if (asked->parent)
            str_addf(&m->out, "  %-13s = %s\n", "Parent", asked->parent);
    }
    str_done(&assocs);
    str_done(&accounts);
    return good && m->edits.len ? 0 : 1;
}

static int read_level(const char *text)
{
    static const char *const levels[] = { "None", "Operator", "Administrator" };

    for (int i = 0; i < (int)ARRAY_LEN(levels); i++) {
        if (*text && str_istarts(levels[i], text))
            return i;
    }
    fprintf(stderr, " Bad AdminLevel value: %s: None, Operator or Administrator\n", text);
    return -1;
}

static bool add_user_assoc(struct manager *m, struct asked *asked, const char *user,
                           const char *account, const char *cluster, struct map *first,
                           struct str *said)
{
    size_t parts = MAX(asked->partitions.count, 1);

    for (size_t p = 0; p < parts; p++) {
        const char *partition = asked->partitions.count ? asked->partitions.items[p] : "";
        if (assoc_find(m, cluster, account, user, partition))
            continue;
        AcctAssoc *assoc = assoc_new(m, cluster, account, user, partition);
        CLEANUP(freep) char *key = mem_printf("%s\n%s", cluster, user);
        const char *was = default_account(m, cluster, user);
        bool is_default = asked->default_account ? str_eq(asked->default_account, account)
                                                 : !was && !map_has(first, key);
        if (is_default)
            map_put(first, key, asked);
        assoc->limits->has_is_default = true;
        assoc->limits->is_default = is_default;
        if (!put_settings(m, assoc, &asked->settings))
            return false;
        edit_new(m, false, "Add Associations", user)->assoc = assoc;
        str_addf(said, "  C = %-10.10s A = %-20.20s U = %-9.9s", cluster, account, user);
        if (*partition)
            str_addf(said, " P = %-10.10s", partition);
        str_add_char(said, '\n');
    }
    return true;
}

/* Another default account than before. */
static void move_default(struct manager *m, const char *cluster, const char *user,
                         const char *account)
{
    for (size_t i = 0; i < m->tables->n_assocs; i++) {
        const AcctAssoc *old = m->tables->assocs[i];
        bool is = str_eq(old->limits->account, account);
        if (!str_eq(old->cluster, cluster) || !str_eq(old->limits->name, user) ||
            old->limits->is_default == is)
            continue;
        AcctAssoc *copy = assoc_copy(m, old);
        copy->limits->has_is_default = true;
        copy->limits->is_default = is;
        edit_new(m, false, "Modify Associations", user)->assoc = copy;
    }
}

static void add_wckeys(struct manager *m, const struct asked *asked, const char *user)
{
    for (size_t k = 0; k < asked->clusters.count; k++) {
        for (size_t i = 0; i < asked->wckeys.count; i++) {
            AcctWckey *wckey = ARENA_NEW(&m->cli.arena, AcctWckey);
            acct_wckey__init(wckey);
            wckey->name = asked->wckeys.items[i];
            wckey->user = arena_strdup(&m->cli.arena, user);
            wckey->cluster = asked->clusters.items[k];
            edit_new(m, false, "Add WCKeys", wckey->name)->wckey = wckey;
        }
    }
}

static int add_users(struct manager *m, struct asked *asked)
{
    struct str users = { 0 }, assocs = { 0 };
    int level = asked->admin ? read_level(asked->admin) : 0;
    struct map first;
    bool good = true;

    map_init(&first);
    if (!asked->accounts.count && asked->default_account)
        asked->accounts = names_of(m, asked->default_account);
    if (!asked->accounts.count && !asked->wckeys.count) {
        fprintf(stderr, " Need name of account or wckey to add.\n");
        good = false;
    }
    good = good && level >= 0 && clusters_of(m, asked);
    for (size_t i = 0; good && i < asked->names.count; i++) {
        const char *name = asked->names.items[i];
        if (!user_find(m, name)) {
            AcctUser *user = ARENA_NEW(&m->cli.arena, AcctUser);
            acct_user__init(user);
            user->name = arena_strdup(&m->cli.arena, name);
            user->has_admin_level = true;
            user->admin_level = (uint32_t)level;
            user->default_wckey = arena_strdup(&m->cli.arena, asked->default_wckey);
            edit_new(m, false, "Add Users", name)->user = user;
            str_addf(&users, "  %s\n", name);
        }
        for (size_t k = 0; good && k < asked->clusters.count; k++) {
            for (size_t a = 0; good && a < asked->accounts.count; a++) {
                const char *account = asked->accounts.items[a];
                if (!assoc_find(m, asked->clusters.items[k], account, "", "")) {
                    fprintf(stderr, " This account '%s' doesn't exist on cluster %s\n", account,
                            asked->clusters.items[k]);
                    good = false;
                } else {
                    good = add_user_assoc(m, asked, name, account, asked->clusters.items[k], &first,
                                          &assocs);
                }
            }
            if (good && asked->default_account && user_find(m, name))
                move_default(m, asked->clusters.items[k], name, asked->default_account);
        }
        if (good)
            add_wckeys(m, asked, name);
    }
    if (good && users.len)
        str_addf(&m->out, " Adding User(s)\n%s Settings\n", str_text(&users));
    if (good && users.len && asked->default_account)
        str_addf(&m->out, "  Default Account = %s\n", asked->default_account);
    if (good && users.len && asked->admin)
        str_addf(&m->out, "  Admin Level     = %s\n", asked->admin);
    if (good && assocs.len) {
        str_addf(&m->out, " Associations =\n%s", str_text(&assocs));
        if (asked->settings.len) {
            str_add(&m->out, " Non Default Settings\n");
            for (size_t i = m->edits.len; i-- > 0;) {
                if (!m->edits.items[i]->assoc)
                    continue;
                say_settings(m, assoc_settings, m->edits.items[i]->assoc->limits, &asked->settings,
                             false);
                break;
            }
        }
    }
    if (good && !m->edits.len) {
        str_add(&m->out, "Request didn't affect anything\nNothing added.\nMake sure the accounts "
                         "requested here have been added to the system/cluster. (sacctmgr add "
                         "account...)\n");
        good = false;
    }
    map_done(&first);
    str_done(&users);
    str_done(&assocs);
    return good ? 0 : 1;
}

static int add_qos(struct manager *m, const struct asked *asked)
{
    struct str names = { 0 };
    ConfQos *last = NULL;
    bool good = true;

    for (size_t i = 0; good && i < asked->names.count; i++) {
        const char *name = asked->names.items[i];
        if (qos_find(m, name)) {
            str_addf(&m->out, " This QOS %s already exists.  Not adding.\n", name);
            continue;
        }
        AcctQos *qos = ARENA_NEW(&m->cli.arena, AcctQos);
        acct_qos__init(qos);
        last = qos->qos = ARENA_NEW(&m->cli.arena, ConfQos);
        conf_qos__init(last);
        last->name = arena_strdup(&m->cli.arena, name);
        last->description = last->name;
        for (size_t k = 0; good && k < asked->settings.len; k++)
            good = setting_put(m, setting_find(qos_settings, asked->settings.items[k].key), last,
                               &asked->settings.items[k]);
        edit_new(m, false, "Add QOS", last->name)->qos = qos;
        str_addf(&names, "  %s\n", name);
    }
    if (good && last) {
        str_addf(&m->out, " Adding QOS(s)\n%s Settings\n", str_text(&names));
        say_settings(m, qos_settings, last, &asked->settings, true);
    }
    str_done(&names);
    return good && last ? 0 : 1;
}

static int add_clusters(struct manager *m, const struct asked *asked)
{
    bool good = true;

    str_add(&m->out, " Adding Cluster(s)\n");
    for (size_t i = 0; good && i < asked->names.count; i++) {
        AcctClusterRow *row = ARENA_NEW(&m->cli.arena, AcctClusterRow);
        acct_cluster_row__init(row);
        row->name = asked->names.items[i];
        row->classification = arena_strdup(&m->cli.arena, asked->classification);
        edit_new(m, false, "Add Clusters", row->name)->cluster = row;
        str_addf(&m->out, "  %-14s = %s\n", "Name", row->name);
        if (asked->settings.len) {
            AcctAssoc *root = assoc_new(m, row->name, "root", "", "");
            good = put_settings(m, root, &asked->settings);
            edit_new(m, false, "Add Associations", row->name)->assoc = root;
        }
    }
    return good && m->edits.len ? 0 : 1;
}

static int change_coords(struct manager *m, struct asked *asked, bool remove)
{
    if (!asked->accounts.count || !asked->names.count) {
        fprintf(stderr, " You need to specify %s\n",
                asked->names.count ? "a account list" : "a user list");
        return 1;
    }
    str_addf(&m->out, remove ? " Removing Coordinator User(s)\n" : " Adding Coordinator User(s)\n");
    for (size_t i = 0; i < asked->names.count; i++) {
        str_addf(&m->out, "  %s\n", asked->names.items[i]);
        for (size_t a = 0; a < asked->accounts.count; a++) {
            AcctCoord *coord = ARENA_NEW(&m->cli.arena, AcctCoord);
            acct_coord__init(coord);
            coord->user = asked->names.items[i];
            coord->account = asked->accounts.items[a];
            edit_new(m, remove, remove ? "Remove Coordinators" : "Add Coordinators", coord->user)
                ->coord = coord;
        }
    }
    str_add(&m->out, remove ? " From Account(s) and all sub-accounts\n"
                            : " To Account(s) and all sub-accounts\n");
    for (size_t a = 0; a < asked->accounts.count; a++)
        str_addf(&m->out, "  %s\n", asked->accounts.items[a]);
    return 0;
}

int manager_add(struct manager *m, const char *entity, const words *specs)
{
    struct asked asked = { 0 };
    enum what what;
    int code = 1;

    if (!what_of(entity, &what) || what == WHAT_WCKEY)
        return -1;
    if (take_words(m, what, specs, &asked, false) && !manager_load(m, false, false)) {
        if (!asked.names.count)
            fprintf(stderr, " Need name of %s to add.\n", entity);
        else
            code = what == WHAT_ACCOUNT   ? add_accounts(m, &asked)
                   : what == WHAT_USER    ? add_users(m, &asked)
                   : what == WHAT_QOS     ? add_qos(m, &asked)
                   : what == WHAT_CLUSTER ? add_clusters(m, &asked)
                                          : change_coords(m, &asked, false);
    }
    asked_done(&asked);
    return code;
}

/* ---- modify ---- */

static bool inherits(const struct asked *set, const AcctAssoc *assoc)
{
    for (size_t i = 0; i < set->settings.len; i++) {
        const struct setting *setting = setting_find(assoc_settings, set->settings.items[i].key);
        struct str text = { 0 };
        bool own = setting_get(setting, assoc->limits, false, &text);
        str_done(&text);
        if (setting->inherited && !own)
            return true;
    }
    return false;
}

static bool is_under(const struct manager *m, const AcctAssoc *assoc, const AcctAssoc *top)
{
    while ((assoc = assoc_above(m, assoc))) {
        if (assoc == top)
            return true;
    }
    return false;
}

static bool modify_assoc(struct manager *m, const AcctAssoc *old, const struct asked *set)
{
    AcctAssoc *copy = assoc_copy(m, old);

    if (!put_settings(m, copy, &set->settings))
        return false;
    if (set->parent)
        copy->parent = arena_strdup(&m->cli.arena, set->parent);
    edit_new(m, false, "Modify Associations",
             str_is_empty(old->limits->name) ? old->limits->account : old->limits->name)
        ->assoc = copy;
    say_assoc(m, copy, true);
    return true;
}

static int modify_accounts(struct manager *m, const struct asked *where, const struct asked *set)
{
    size_t before = m->edits.len;

    if (set->description || set->organization) {
        str_add(&m->out, " Modified accounts...\n");
        for (size_t i = 0; i < m->tables->n_accounts; i++) {
            const AcctAccount *old = m->tables->accounts[i];
            if (!names_have(&where->names, old->name))
                continue;
            AcctAccount *copy = ARENA_NEW(&m->cli.arena, AcctAccount);
            *copy = *old;
            if (set->description)
                copy->description = arena_strdup(&m->cli.arena, set->description);
            if (set->organization)
                copy->organization = arena_strdup(&m->cli.arena, set->organization);
            edit_new(m, false, "Modify Accounts", old->name)->account = copy;
            str_addf(&m->out, "  %s\n", old->name);
        }
    }
    if (set->settings.len || set->parent) {
        str_add(&m->out, " Modified account associations...\n");
        for (size_t i = 0; i < m->tables->n_assocs; i++) {
            const AcctAssoc *old = m->tables->assocs[i];
            if (!str_is_empty(old->limits->name) ||
                !names_have(&where->names, old->limits->account) ||
                !names_have(&where->clusters, old->cluster))
                continue;
            if (!modify_assoc(m, old, set))
                return 1;
            for (size_t k = 0; k < m->tables->n_assocs; k++) {
                const AcctAssoc *below = m->tables->assocs[k];
                if (inherits(set, below) && is_under(m, below, old))
                    say_assoc(m, below, true);
            }
        }
    }
    if (m->edits.len == before)
        str_add(&m->out, "  Nothing modified\n");
    return m->edits.len == before ? 1 : 0;
}

static bool modify_person(struct manager *m, const AcctUser *old, const struct asked *set,
                          int level)
{
    AcctUser *copy = ARENA_NEW(&m->cli.arena, AcctUser);

    *copy = *old;
    if (set->admin) {
        copy->has_admin_level = true;
        copy->admin_level = (uint32_t)level;
    }
    if (set->default_wckey)
        copy->default_wckey = arena_strdup(&m->cli.arena, set->default_wckey);
    edit_new(m, false, "Modify Users", old->name)->user = copy;
    str_addf(&m->out, "  %s\n", old->name);
    return true;
}

static bool modify_default(struct manager *m, const struct asked *where, const struct asked *set,
                           const char *user)
{
    size_t before = m->edits.len;

    for (size_t k = 0; k < m->tables->n_clusters; k++) {
        const char *cluster = m->tables->clusters[k]->name;
        if (names_have(&where->clusters, cluster) &&
            assoc_find(m, cluster, set->default_account, user, ""))
            move_default(m, cluster, user, set->default_account);
    }
    if (m->edits.len > before || str_eq(default_account(m, NULL, user), set->default_account))
        return true;
    fprintf(stderr, " User '%s' is not in account '%s'\n", user, set->default_account);
    return false;
}

static int modify_users(struct manager *m, const struct asked *where, const struct asked *set)
{
    size_t before = m->edits.len;
    int level = set->admin ? read_level(set->admin) : 0;
    bool of_person = set->admin || set->default_account || set->default_wckey, some = false;

    if (level < 0)
        return 1;
    if (of_person)
        str_add(&m->out, " Modified users...\n");
    for (size_t i = 0; of_person && i < m->tables->n_users; i++) {
        const AcctUser *old = m->tables->users[i];
        if (!names_have(&where->names, old->name))
            continue;
        some = true;
        if (set->admin || set->default_wckey)
            modify_person(m, old, set, level);
        else
            str_addf(&m->out, "  %s\n", old->name);
        if (set->default_account && !modify_default(m, where, set, old->name))
            return 1;
    }
    if (set->settings.len)
        str_add(&m->out, " Modified user associations...\n");
    for (size_t i = 0; set->settings.len && i < m->tables->n_assocs; i++) {
        const AcctAssoc *old = m->tables->assocs[i];
        if (str_is_empty(old->limits->name) || !names_have(&where->names, old->limits->name) ||
            !names_have(&where->accounts, old->limits->account) ||
            !names_have(&where->partitions, old->limits->partition ? old->limits->partition : "") ||
            !names_have(&where->clusters, old->cluster))
            continue;
        if (!modify_assoc(m, old, set))
            return 1;
    }
    if (m->edits.len == before && !some)
        str_add(&m->out, "  Nothing modified\n");
    return m->edits.len == before && !some ? 1 : 0;
}

static int modify_qos(struct manager *m, const struct asked *where, const struct asked *set)
{
    size_t before = m->edits.len;

    str_add(&m->out, " Modified qos...\n");
    for (size_t i = 0; i < m->tables->n_qos; i++) {
        const AcctQos *old = m->tables->qos[i];
        if (!names_have(&where->names, old->qos->name))
            continue;
        AcctQos *copy = ARENA_NEW(&m->cli.arena, AcctQos);
        *copy = *old;
        copy->qos = ARENA_NEW(&m->cli.arena, ConfQos);
        *copy->qos = *old->qos;
        for (size_t k = 0; k < set->settings.len; k++) {
            if (!setting_put(m, setting_find(qos_settings, set->settings.items[k].key), copy->qos,
                             &set->settings.items[k]))
                return 1;
        }
        edit_new(m, false, "Modify QOS", old->qos->name)->qos = copy;
        str_addf(&m->out, "  %s\n", old->qos->name);
    }
    if (m->edits.len == before)
        str_add(&m->out, "  Nothing modified\n");
    return m->edits.len == before ? 1 : 0;
}

static int modify_clusters(struct manager *m, const struct asked *where, const struct asked *set)
{
    size_t before = m->edits.len;

    str_add(&m->out, " Modified cluster...\n");
    for (size_t i = 0; i < m->tables->n_clusters; i++) {
        const AcctClusterRow *row = m->tables->clusters[i];
        const AcctAssoc *root = assoc_find(m, row->name, "root", "", "");
        if (!names_have(&where->names, row->name))
            continue;
        if (set->classification) {
            AcctClusterRow *copy = ARENA_NEW(&m->cli.arena, AcctClusterRow);
            *copy = *row;
            copy->classification = arena_strdup(&m->cli.arena, set->classification);
            edit_new(m, false, "Modify Clusters", row->name)->cluster = copy;
        }
        if (root && set->settings.len && !modify_assoc(m, root, set))
            return 1;
        str_addf(&m->out, "  %s\n", row->name);
    }
    if (m->edits.len == before)
        str_add(&m->out, "  Nothing modified\n");
    return m->edits.len == before ? 1 : 0;
}

int manager_modify(struct manager *m, const char *entity, const words *where, const words *set)
{
    struct asked from = { 0 }, to = { 0 };
    enum what what;
    int code = 1;

    if (!what_of(entity, &what) || what == WHAT_COORD || what == WHAT_WCKEY)
        return -1;
    if (take_words(m, what, set, &to, true) && take_words(m, what, where, &from, false) &&
        !manager_load(m, false, false)) {
        if (!to.any)
            fprintf(stderr, " You didn't give me anything to set\n");
        else
            code = what == WHAT_ACCOUNT ? modify_accounts(m, &from, &to)
                   : what == WHAT_USER  ? modify_users(m, &from, &to)
                   : what == WHAT_QOS   ? modify_qos(m, &from, &to)
                                        : modify_clusters(m, &from, &to);
    }
    asked_done(&from);
    asked_done(&to);
    return code;
}

/* ---- delete ---- */

static void delete_accounts(struct manager *m, const struct asked *asked)
{
    for (size_t i = 0; i < m->tables->n_accounts; i++) {
        AcctAccount *account = m->tables->accounts[i];
        if (!names_have(&asked->names, account->name))
            continue;
        edit_new(m, true, "Remove Accounts", account->name)->account = account;
        str_addf(&m->out, "%s  %s\n", m->out.len ? "" : " Deleting accounts...\n", account->name);
    }
}

static void delete_users(struct manager *m, const struct asked *asked)
{
    bool some = asked->accounts.count || asked->partitions.count || asked->clusters.count;

    for (size_t i = 0; !some && i < m->tables->n_users; i++) {
        AcctUser *user = m->tables->users[i];
        if (!names_have(&asked->names, user->name))
            continue;
        edit_new(m, true, "Remove Users", user->name)->user = user;
        str_addf(&m->out, "%s  %s\n", m->out.len ? "" : " Deleting users...\n", user->name);
    }
    for (size_t i = 0; some && i < m->tables->n_assocs; i++) {
        AcctAssoc *assoc = m->tables->assocs[i];
        const ConfUser *limits = assoc->limits;
        if (str_is_empty(limits->name) || !names_have(&asked->names, limits->name) ||
            !names_have(&asked->accounts, limits->account) ||
            !names_have(&asked->clusters, assoc->cluster) ||
            !names_have(&asked->partitions, limits->partition ? limits->partition : ""))
            continue;
        if (!m->out.len)
            str_add(&m->out, " Deleting user associations...\n");
        edit_new(m, true, "Remove Associations", limits->name)->assoc = assoc;
        say_assoc(m, assoc, true);
    }
}

/* Who may use it or has it as default does no more. */
static void forget_qos(struct manager *m, const char *name)
{
    const struct setting *list = setting_find(assoc_settings, "QOS");
    struct word word = { "QOS", name, '-' };

    for (size_t i = 0; i < m->tables->n_assocs; i++) {
        const ConfUser *limits = m->tables->assocs[i]->limits;
        bool named = str_eq(limits->default_qos, name);
        for (size_t k = 0; k < limits->n_qos_list; k++)
            named = named || str_eq(limits->qos_list[k], name);
        if (!named)
            continue;
        AcctAssoc *copy = assoc_copy(m, m->tables->assocs[i]);
        setting_put(m, list, copy->limits, &word);
        if (str_eq(copy->limits->default_qos, name))
            copy->limits->default_qos = NULL;
        edit_new(m, false, "Modify Associations", copy->limits->account)->assoc = copy;
    }
    for (size_t i = 0; i < m->tables->n_qos; i++) {
        const ConfQos *qos = m->tables->qos[i]->qos;
        bool named = false;
        for (size_t k = 0; k < qos->n_qos_preempt; k++)
            named = named || str_eq(qos->qos_preempt[k], name);
        if (!named || str_eq(qos->name, name))
            continue;
        AcctQos *copy = ARENA_NEW(&m->cli.arena, AcctQos);
        *copy = *m->tables->qos[i];
        copy->qos = ARENA_NEW(&m->cli.arena, ConfQos);
        *copy->qos = *qos;
        setting_put(m, setting_find(qos_settings, "Preempt"), copy->qos, &word);
        edit_new(m, false, "Modify QOS", qos->name)->qos = copy;
    }
}

static void delete_rest(struct manager *m, enum what what, const struct asked *asked)
{
    for (size_t i = 0; what == WHAT_QOS && i < m->tables->n_qos; i++) {
        AcctQos *qos = m->tables->qos[i];
        if (!names_have(&asked->names, qos->qos->name))
            continue;
        forget_qos(m, qos->qos->name);
        edit_new(m, true, "Remove QOS", qos->qos->name)->qos = qos;
        str_addf(&m->out, "%s  %s\n", m->out.len ? "" : " Deleting QOS(s)...\n", qos->qos->name);
    }
    for (size_t i = 0; what == WHAT_CLUSTER && i < m->tables->n_clusters; i++) {
        AcctClusterRow *row = m->tables->clusters[i];
        if (!names_have(&asked->names, row->name))
            continue;
        edit_new(m, true, "Remove Clusters", row->name)->cluster = row;
        str_addf(&m->out, "%s  %s\n", m->out.len ? "" : " Deleting clusters...\n", row->name);
    }
}

int manager_delete(struct manager *m, const char *entity, const words *where)
{
    struct asked asked = { 0 };
    enum what what;
    int code = 1;

    if (!what_of(entity, &what) || what == WHAT_WCKEY)
        return -1;
    if (take_words(m, what, where, &asked, false) && !manager_load(m, false, false)) {
        if (!asked.names.count && !asked.accounts.count) {
            fprintf(stderr, " No conditions given, not executing\n");
        } else if (what == WHAT_COORD) {
            code = change_coords(m, &asked, true);
        } else {
            if (what == WHAT_ACCOUNT)
                delete_accounts(m, &asked);
            else if (what == WHAT_USER)
                delete_users(m, &asked);
            else
                delete_rest(m, what, &asked);
            code = m->edits.len ? 0 : 1;
            if (code)
                str_add(&m->out, " Nothing deleted\n");
        }
    }
    asked_done(&asked);
    return code;
}
