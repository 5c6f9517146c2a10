/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sacctmgr_file.c - `sacctmgr dump` and `load`: a cluster as a file, in Slurm's format
 *
 *     Cluster - 'peer':Fairshare=1:QOS='normal'
 *     Parent - 'root'
 *     Account - 'physics':Description='physics dept':Fairshare=1
 *     Parent - 'physics'
 *     User - 'alice':DefaultAccount='physics':Fairshare=10
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "cli/commands.h"
#include "cli/sacctmgr.h"
#include "schema/conf.h"
#include "schema/conf_keys.h"

static const char introduction[] =
    "# To edit this file start with a cluster line for the new cluster\n"
    "# Cluster - 'cluster_name':MaxTRESPerJob=node=50\n"
    "# Followed by Accounts you want in this fashion (root is created by default)...\n"
    "# Parent - 'root'\n"
    "# Account - 'cs':MaxTRESPerJob=node=5:MaxJobs=4:MaxTRESMinsPerJob=cpu=20:FairShare=399:"
    "MaxWallDurationPerJob=40:Description='Computer Science':Organization='LC'\n"
    "# Any of the options after a ':' can be left out and they can be in any order.\n"
    "# If you want to add any sub accounts just list the Parent THAT HAS ALREADY\n"
    "# BEEN CREATED before the account line in this fashion...\n"
    "# Parent - 'cs'\n"
    "# Account - 'test':MaxTRESPerJob=node=1:MaxJobs=1:MaxTRESMinsPerJob=cpu=1:FairShare=1:"
    "MaxWallDurationPerJob=1:Description='Test Account':Organization='Test'\n"
    "# To add users to a account add a line like this after a Parent - 'line'\n"
    "# User - 'lipari':MaxTRESPerJob=node=2:MaxJobs=3:MaxTRESMinsPerJob=cpu=4:FairShare=1:"
    "MaxWallDurationPerJob=1\n";

/* ---- dump ---- */

static void add_settings(const struct setting *table, const void *message, struct str *out)
{
    for (const struct setting *row = table; row->name; row++) {
        struct str value = { 0 };
        bool quoted = row->kind == KEY_LIST || row->kind == KEY_TEXT;
        if (setting_get(row, message, true, &value))
            str_addf(out, quoted ? ":%s='%s'" : ":%s=%s", row->name, str_text(&value));
        str_done(&value);
    }
}

static void dump_user(const struct manager *m, const AcctAssoc *assoc, struct str *out)
{
    static const char *const levels[] = { "None", "Operator", "Administrator" };
    const ConfUser *limits = assoc->limits;
    const AcctUser *user = user_find(m, limits->name);
    const char *account = default_account(m, assoc->cluster, limits->name);

    str_addf(out, "User - '%s'", limits->name);
    if (!str_is_empty(limits->partition))
        str_addf(out, ":Partition='%s'", limits->partition);
    if (account)
        str_addf(out, ":DefaultAccount='%s'", account);
    if (user && user->admin_level && user->admin_level < ARRAY_LEN(levels))
        str_addf(out, ":AdminLevel='%s'", levels[user->admin_level]);
    bool coordinates = false;
    for (size_t i = 0; i < m->tables->n_coords; i++) {
        if (str_eq(m->tables->coords[i]->user, limits->name)) {
            str_addf(out, "%s%s", coordinates ? "," : ":Coordinator='",
                     m->tables->coords[i]->account);
            coordinates = true;
        }
    }
    if (coordinates)
        str_add_char(out, '\'');
    add_settings(assoc_settings, limits, out);
    str_add_char(out, '\n');
}

static void dump_account(const struct manager *m, const AcctAssoc *assoc, struct str *out)
{
    const AcctAccount *account = account_find(m, assoc->limits->account);

    str_addf(out, "Account - '%s'", assoc->limits->account);
    if (account && !str_is_empty(account->description))
        str_addf(out, ":Description='%s'", account->description);
    if (account && !str_is_empty(account->organization))
        str_addf(out, ":Organization='%s'", account->organization);
    add_settings(assoc_settings, assoc->limits, out);
    str_add_char(out, '\n');
}

/* Users and accounts below it, then each of these accounts. */
static void dump_below(const struct manager *m, const AcctAssoc *top, struct str *out)
{
    bool some = false;

    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < m->tables->n_assocs; i++) {
            const AcctAssoc *assoc = m->tables->assocs[i];
            if (assoc_above(m, assoc) != top)
                continue;
            bool is_account = str_is_empty(assoc->limits->name);
            if (pass == 0 && !some)
                str_addf(out, "Parent - '%s'\n", top->limits->account);
            some = true;
            if (pass == 0)
                (is_account ? dump_account : dump_user)(m, assoc, out);
            else if (is_account)
                dump_below(m, assoc, out);
        }
    }
}

int manager_dump(struct manager *m, const words *specs)
{
    const char *cluster = NULL, *path = NULL;
    struct str text = { 0 };

    for (size_t i = 0; i < specs->len; i++) {
        const struct word *word = &specs->items[i];
        if (!word->value && !str_ieq(word->key, "cluster"))
            cluster = names_of(m, word->key).items[0];
        else if (word->value && word_is(word->key, "File"))
            path = word->value;
        else if (word->value && word_is(word->key, "Clusters"))
            cluster = names_of(m, word->value).items[0];
        else if (word->value)
            return manager_bad_word(m, word, false);
    }
    if (!cluster) {
        fprintf(stderr, " We need a cluster to dump.\n");
        return 1;
    }
    if (manager_load(m, false, false))
        return 1;
    const AcctAssoc *root = assoc_find(m, cluster, "root", "", "");
    if (!root) {
        fprintf(stderr, " No cluster named %s\n", cluster);
        return 1;
    }
    str_add(&text, introduction);
    for (size_t i = 0; i < m->tables->n_qos; i++) {
        str_addf(&text, "QOS - '%s'", m->tables->qos[i]->qos->name);
        add_settings(qos_settings, m->tables->qos[i]->qos, &text);
        str_add_char(&text, '\n');
    }
    str_addf(&text, "Cluster - '%s'", cluster);
    add_settings(assoc_settings, root->limits, &text);
    str_add_char(&text, '\n');
    dump_below(m, root, &text);
    if (!path)
        path = arena_printf(&m->cli.arena, "./%s.cfg", cluster);
    FILE *file = fopen(path, "w");
    bool good = file && fwrite(text.data, 1, text.len, file) == text.len;
    if (file && fclose(file) != 0)
        good = false;
    if (!good)
        cli_error(&m->cli, "%s cannot be written: %s", path, strerror(errno));
    str_done(&text);
    return good ? 0 : 1;
}

/* ---- load ---- */

struct line {
    char *kind, *name;
    words values;
};

/* `Kind - 'name':Key=value:Key='value'`; quotes keep colons. */
static bool read_line(struct manager *m, char *text, struct line *out)
{
    char *at = strchr(text, '-');

    vec_clear(&out->values);
    if (!at)
        return false;
    *at++ = '\0';
    out->kind = str_trim(text);
    out->name = NULL;
    at = str_trim(at);
    while (*at) {
        char *part = at, quote = '\0';
        while (*at && (quote || *at != ':')) {
            if ((*at == '\'' || *at == '"') && (!quote || quote == *at))
                quote = quote ? '\0' : *at;
            at++;
        }
        if (*at)
            *at++ = '\0';
        CLEANUP(str_done) struct str plain = { 0 };
        for (char *c = part; *c; c++) {
            if (*c != '\'' && *c != '"')
                str_add_char(&plain, *c);
        }
        char *copy = arena_strdup(&m->cli.arena, str_text(&plain));
        char *equal = strchr(copy, '=');
        if (!out->name) {
            out->name = copy;
        } else if (equal) {
            *equal = '\0';
            struct word word = { copy, equal + 1, '=' };
            vec_push(&out->values, word);
        }
    }
    return out->name != NULL;
}

struct load {
    struct manager *m;
    const char *cluster, *parent, *only;
    struct map defaults; /* users that have one */
    unsigned number;
};

static const char *value_of(const struct line *line, const char *key)
{
    for (size_t i = 0; i < line->values.len; i++) {
        if (str_ieq(line->values.items[i].key, key))
            return line->values.items[i].value;
    }
    return NULL;
}

/* Settings among the values; others are looked at by name. */
static bool put_values(struct load *load, const struct line *line, const struct setting *table,
                       void *message)
{
    static const char *const others[] = { "DefaultAccount", "AdminLevel",   "Coordinator",
                                          "Description",    "Organization", "Partition",
                                          "DefaultWCKey",   "WCKeys",       "Classification",
                                          "Parent",         "Flags" };

    for (size_t i = 0; i < line->values.len; i++) {
        const struct word *word = &line->values.items[i];
        const struct setting *setting = setting_find(table, word->key);
        bool other = false;
        for (size_t k = 0; k < ARRAY_LEN(others); k++)
            other = other || str_ieq(word->key, others[k]);
        if (setting && !(other && table == assoc_settings)) {
            if (!setting_put(load->m, setting, message, word))
                return false;
        } else if (!other) {
            fprintf(stderr, " line %u: unknown key '%s'\n", load->number, word->key);
            return false;
        }
    }
    return true;
}

static bool load_qos(struct load *load, const struct line *line)
{
    struct manager *m = load->m;
    AcctQos *qos = ARENA_NEW(&m->cli.arena, AcctQos);

    acct_qos__init(qos);
    qos->qos = ARENA_NEW(&m->cli.arena, ConfQos);
    conf_qos__init(qos->qos);
    qos->qos->name = line->name;
    if (!put_values(load, line, qos_settings, qos->qos))
        return false;
    edit_new(m, false, "Add QOS", line->name)->qos = qos;
    return true;
}

static bool load_cluster(struct load *load, const struct line *line)
{
    struct manager *m = load->m;
    AcctClusterRow *row = ARENA_NEW(&m->cli.arena, AcctClusterRow);

    load->cluster = load->only ? load->only : line->name;
    load->parent = "root";
    acct_cluster_row__init(row);
    row->name = arena_strdup(&m->cli.arena, load->cluster);
    row->classification = arena_strdup(&m->cli.arena, value_of(line, "Classification"));
    bool known = false;
    for (size_t i = 0; i < m->tables->n_clusters; i++)
        known = known || str_eq(m->tables->clusters[i]->name, load->cluster);
    if (!known)
        edit_new(m, false, "Add Clusters", load->cluster)->cluster = row;
    AcctAssoc *root = assoc_new(m, load->cluster, "root", "", "");
    if (!put_values(load, line, assoc_settings, root->limits))
        return false;
    edit_new(m, false, "Modify Associations", "root")->assoc = root;
    return true;
}

static bool load_account(struct load *load, const struct line *line)
{
    struct manager *m = load->m;
    AcctAccount *account = ARENA_NEW(&m->cli.arena, AcctAccount);
    AcctAssoc *assoc = assoc_new(m, load->cluster, line->name, "", "");
    const char *description = value_of(line, "Description"),
               *organization = value_of(line, "Organization");

    acct_account__init(account);
    account->name = line->name;
    account->description = arena_strdup(&m->cli.arena, description ? description : line->name);
    account->organization = arena_strdup(&m->cli.arena, organization ? organization : load->parent);
    edit_new(m, false, "Add Accounts", line->name)->account = account;
    assoc->parent = arena_strdup(&m->cli.arena, load->parent);
    if (!put_values(load, line, assoc_settings, assoc->limits))
        return false;
    edit_new(m, false, "Add Associations", line->name)->assoc = assoc;
    return true;
}

static bool load_user(struct load *load, const struct line *line)
{
    struct manager *m = load->m;
    AcctUser *user = ARENA_NEW(&m->cli.arena, AcctUser);
    AcctAssoc *assoc =
        assoc_new(m, load->cluster, load->parent, line->name, value_of(line, "Partition"));
    const char *level = value_of(line, "AdminLevel"), *account = value_of(line, "DefaultAccount");
    const AcctUser *was = user_find(m, line->name);

    acct_user__init(user);
    user->name = line->name;
    user->has_admin_level = true;
    user->admin_level = level && str_istarts(level, "Admin")  ? 2
                        : level && str_istarts(level, "Oper") ? 1
                        : was                                 ? was->admin_level
                                                              : 0;
    user->default_wckey = arena_strdup(&m->cli.arena, value_of(line, "DefaultWCKey"));
    edit_new(m, false, "Add Users", line->name)->user = user;
    bool is_default = account ? str_ieq(account, load->parent) && !assoc->limits->partition
                              : !map_has(&load->defaults, line->name);
    if (is_default)
        map_put(&load->defaults, line->name, load);
    assoc->limits->has_is_default = true;
    assoc->limits->is_default = is_default;
    if (!put_values(load, line, assoc_settings, assoc->limits))
        return false;
    edit_new(m, false, "Add Associations", line->name)->assoc = assoc;
    struct names coords = names_of(m, value_of(line, "Coordinator"));
    for (size_t i = 0; i < coords.count; i++) {
        AcctCoord *coord = ARENA_NEW(&m->cli.arena, AcctCoord);
        acct_coord__init(coord);
        coord->user = line->name;
        coord->account = coords.items[i];
        edit_new(m, false, "Add Coordinators", line->name)->coord = coord;
    }
    return true;
}

static bool load_line(struct load *load, const struct line *line)
{
    if (str_ieq(line->kind, "QOS"))
        return load_qos(load, line);
    if (str_ieq(line->kind, "Cluster"))
        return load_cluster(load, line);
    if (!load->cluster)
        fprintf(stderr, " line %u: a Cluster line must come first\n", load->number);
    else if (str_ieq(line->kind, "Parent"))
        load->parent = line->name;
    else if (str_ieq(line->kind, "Account") || str_ieq(line->kind, "Project"))
        return load_account(load, line);
    else if (str_ieq(line->kind, "User"))
        return load_user(load, line);
    else
        fprintf(stderr, " line %u: '%s' is not QOS, Cluster, Parent, Account or User\n",
                load->number, line->kind);
    return load->cluster && str_ieq(line->kind, "Parent");
}

int manager_load_file(struct manager *m, const words *specs)
{
    struct load load = { .m = m };
    const char *path = NULL;
    char *text = NULL;
    size_t size = 0;
    bool good = true;

    for (size_t i = 0; i < specs->len; i++) {
        const struct word *word = &specs->items[i];
        if (!word->value && str_ieq(word->key, "clean")) {
            fprintf(stderr, " clean: remove what is there with 'sacctmgr delete' first; jobs "
                            "that run hold their accounts\n");
            return 1;
        }
        if (!word->value || word_is(word->key, "File"))
            path = word->value ? word->value : word->key;
        else if (word_is(word->key, "Cluster"))
            load.only = word->value;
        else
            return manager_bad_word(m, word, false);
    }
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file) {
        fprintf(stderr, " Unable to open file %s: %s\n", path ? path : "(none)", strerror(errno));
        return 1;
    }
    if (manager_load(m, false, false)) {
        fclose(file);
        return 1;
    }
    struct line line = { 0 };
    map_init(&load.defaults);
    while (good && getline(&text, &size, file) >= 0) {
        char *at = str_trim(text);
        load.number++;
        if (!*at || *at == '#')
            continue;
        good = read_line(m, at, &line) && load_line(&load, &line);
        if (!good)
            fprintf(stderr, " line %u of %s was not understood; nothing was loaded\n", load.number,
                    path);
    }
    map_done(&load.defaults);
    vec_done(&line.values);
    free(text);
    fclose(file);
    if (good)
        str_addf(&m->out, "For cluster %s\n %zu rows are put in place.\n",
                 load.cluster ? load.cluster : "(none)", m->edits.len);
    return good && m->edits.len ? 0 : 1;
}

/* ---- as sections of a configuration ---- */

static void add_section(const char *name, ProtobufCMessage *message, struct str *out)
{
    struct conf *conf = conf_defaults();

    for (size_t i = 0; i < conf_section_count; i++) {
        struct conf_item item = { .section = &conf_sections[i], .message = message };
        if (!str_eq(conf_sections[i].name, name))
            continue;
        str_addf(out, "\n[[%s]]\n", name);
        for (const struct conf_key *key = conf_sections[i].keys; key->name; key++) {
            struct str value = { 0 };
            if (conf_value_format(conf, &item, key, &value))
                str_addf(out, "%s = %s\n", key->name, str_text(&value));
            str_done(&value);
        }
    }
    conf_free(conf);
}

static void add_account_section(struct manager *m, const AcctAssoc *assoc,
                                const AcctAccount *account, struct str *out)
{
    ConfUser limits = *assoc->limits;
    ConfAccount *conf;

    limits.name = limits.account;
    limits.account = NULL;
    limits.has_is_default = false;
    size_t len = conf_user__get_packed_size(&limits);
    uint8_t *bytes = arena_alloc(&m->cli.arena, len + 1);
    conf_user__pack(&limits, bytes); /* limits have the same numbers in both */
    conf = conf_account__unpack(NULL, len, bytes);
    ConfAccount shown = *conf;
    shown.parent = str_eq(assoc->parent, "root") ? NULL : assoc->parent;
    shown.description = account ? account->description : NULL;
    shown.organization = account ? account->organization : NULL;
    add_section("accounts", &shown.base, out);
    conf_account__free_unpacked(conf, NULL);
}

bool sacctmgr_sections(const char *path, struct str *out)
{
    static const ListTablesReply nothing = LIST_TABLES_REPLY__INIT;
    struct manager m = { .tables = &nothing, .offline = true };
    struct word word = { "File", path, '=' };
    words specs = { 0 };
    const AcctAccount *account = NULL;

    cli_init(&m.cli, "spur config");
    vec_push(&specs, word);
    bool good = manager_load_file(&m, &specs) == 0;
    for (size_t i = 0; good && i < m.edits.len; i++) {
        const AcctEdit *edit = m.edits.items[i];
        if (edit->account)
            account = edit->account;
        if (edit->qos)
            add_section("qos", &edit->qos->qos->base, out);
        else if (edit->assoc && *edit->assoc->limits->name)
            add_section("users", &edit->assoc->limits->base, out);
        else if (edit->assoc)
            add_account_section(&m, edit->assoc, account, out);
    }
    vec_done(&specs);
    vec_done(&m.edits);
    str_done(&m.out);
    cli_done(&m.cli);
    return good;
}
