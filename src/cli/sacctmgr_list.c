/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sacctmgr_list.c - `sacctmgr list ENTITY`: which rows, which columns
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/timefmt.h"
#include "cli/sacctmgr.h"

/* What a line is about; what is not known is NULL. */
struct row {
    const AcctClusterRow *cluster;
    const AcctAccount *account;
    const AcctUser *user;
    const AcctAssoc *assoc;
    const AcctQos *qos;
    const AcctTres *tres;
    const AcctWckey *wckey;
    const AcctTransaction *transaction;
    const char *problem;
};

enum entity {
    LIST_ACCOUNT,
    LIST_ASSOC,
    LIST_CLUSTER,
    LIST_EVENT,
    LIST_PROBLEM,
    LIST_QOS,
    LIST_RESERVATION,
    LIST_RESOURCE,
    LIST_TRANSACTION,
    LIST_TRES,
    LIST_USER,
    LIST_WCKEY,
    LIST_ENTITIES,
};

struct listing {
    struct manager *m;
    enum entity entity;
    struct names names, users, accounts, clusters, partitions, qos, actors, actions, parents, ids;
    const char *format;
    bool with_assoc, with_coord, with_deleted, tree, only_defaults, with_sub;
    bool wo_limits, wo_parents;
    bool has_level;
    unsigned level;
    int64_t start_s, end_s;
};

/* ---- columns ---- */

typedef void cell_fn(const struct listing *l, const struct row *row, struct str *out);

static void cell_cluster(const struct listing *l, const struct row *row, struct str *out)
{
    (void)l;
    str_add(out, row->assoc     ? row->assoc->cluster
                 : row->cluster ? row->cluster->name
                 : row->wckey   ? row->wckey->cluster
                                : "");
}

static void cell_account(const struct listing *l, const struct row *row, struct str *out)
{
    if (l->tree && row->assoc)
        str_add_fill(out, ' ', assoc_depth(l->m, row->assoc));
    str_add(out, row->assoc ? row->assoc->limits->account : row->account ? row->account->name : "");
}

static void cell_user(const struct listing *l, const struct row *row, struct str *out)
{
    (void)l;
    str_add(out, row->user    ? row->user->name
                 : row->assoc ? row->assoc->limits->name
                 : row->wckey ? row->wckey->user
                              : "");
}

static void cell_partition(const struct listing *l, const struct row *row, struct str *out)
{
    (void)l;
    if (row->assoc && row->assoc->limits->partition)
        str_add(out, row->assoc->limits->partition);
}

static void cell_descr(const struct listing *l, const struct row *row, struct str *out)
{
    (void)l;
    if (row->account && row->account->description)
        str_add(out, row->account->description);
    if (row->qos && row->qos->qos->description)
        str_add(out, row->qos->qos->description);
}

static void cell_org(const struct listing *l, const struct row *row, struct str *out)
{
    (void)l;
    if (row->account && row->account->organization)
        str_add(out, row->account->organization);
}

/* Of an account who coordinates it; of a user which accounts. */
static void cell_coords(const struct listing *l, const struct row *row, struct str *out)
{
    for (size_t i = 0; i < l->m->tables->n_coords; i++) {
        const AcctCoord *coord = l->m->tables->coords[i];
        const char *name = row->account && str_eq(coord->account, row->account->name) ? coord->user
                           : row->user && str_eq(coord->user, row->user->name) ? coord->account
                                                                               : NULL;
        if (name)
            str_addf(out, "%s%s", out->len ? "," : "", name);
    }
}

static void cell_default(const struct listing *l, const struct row *row, struct str *out)
{
    const char *account =
        row->user ? default_account(l->m, row->assoc ? row->assoc->cluster : NULL, row->user->name)
                  : NULL;

    str_add(out, account ? account : "");
}

static const char *const levels[] = { "None", "Operator", "Administrator" };

static void cell_admin(const struct listing *l, const struct row *row, struct str *out)
{
    (void)l;
    if (row->user && row->user->admin_level < ARRAY_LEN(levels))
        str_add(out, levels[row->user->admin_level]);
}

static void cell_default_wckey(const struct listing *l, const struct row *row, struct str *out)
{
    (void)l;
    if (row->user && row->user->default_wckey)
        str_add(out, row->user->default_wckey);
}

static void cell_id(const struct listing *l, const struct row *row, struct str *out)
{
    (void)l;
    str_addf(out, "%u",
             row->assoc     ? row->assoc->id
             : row->qos     ? row->qos->id
             : row->tres    ? row->tres->id
             : row->wckey   ? row->wckey->id
             : row->cluster ? row->cluster->id
                            : 0);
}

static void cell_name(const struct listing *l, const struct row *row, struct str *out)
{
    (void)l;
    str_add(out, row->qos ? row->qos->qos->name : row->tres ? row->tres->name : "");
}

static void cell_type(const struct listing *l, const struct row *row, struct str *out)
{
    (void)l;
    str_add(out, row->tres ? row->tres->type : "");
}

static void cell_wckey(const struct listing *l, const struct row *row, struct str *out)
{
    (void)l;
    str_add(out, row->wckey ? row->wckey->name : "");
}

static void cell_parent(const struct listing *l, const struct row *row, struct str *out)
{
    (void)l;
    if (row->assoc && row->assoc->parent)
        str_add(out, row->assoc->parent);
}

static void cell_parent_id(const struct listing *l, const struct row *row, struct str *out)
{
    const AcctAssoc *above = row->assoc ? assoc_above(l->m, row->assoc) : NULL;

    if (row->assoc)
        str_addf(out, "%u", above ? above->id : 0);
}

static void add_lineage(const struct manager *m, const AcctAssoc *assoc, struct str *out)
{
    const AcctAssoc *above = assoc_above(m, assoc);

    if (!above) {
        str_add(out, "/");
        return;
    }
    add_lineage(m, above, out);
    if (str_is_empty(assoc->limits->name))
        str_addf(out, "%s/", assoc->limits->account);
    else
        str_addf(out, "0-%s/", assoc->limits->name);
}

static void cell_lineage(const struct listing *l, const struct row *row, struct str *out)
{
    if (row->assoc)
        add_lineage(l->m, row->assoc, out);
}

static void cell_flags(const struct listing *l, const struct row *row, struct str *out)
{
    (void)l;
    bool deleted = (row->assoc && row->assoc->deleted) || (row->account && row->account->deleted) ||
                   (row->user && row->user->deleted) || (row->qos && row->qos->deleted);

    for (size_t i = 0; row->qos && i < row->qos->qos->n_qos_flags; i++)
        str_addf(out, "%s%s", i ? "," : "", row->qos->qos->qos_flags[i]);
    if (deleted)
        str_addf(out, "%sDELETED", out->len ? "," : "");
}

static void cell_host(const struct listing *l, const struct row *row, struct str *out)
{
    const char *host = row->cluster ? row->cluster->control_host : NULL;
    const char *colon = host ? strrchr(host, ':') : NULL;

    (void)l;
    if (host)
        str_add_len(out, host, colon ? (size_t)(colon - host) : strlen(host));
}

static void cell_port(const struct listing *l, const struct row *row, struct str *out)
{
    const char *host = row->cluster ? row->cluster->control_host : NULL;
    const char *colon = host ? strrchr(host, ':') : NULL;

    (void)l;
    str_add(out, colon ? colon + 1 : "0");
}

static void cell_class(const struct listing *l, const struct row *row, struct str *out)
{
    (void)l;
    if (row->cluster && row->cluster->classification)
        str_add(out, row->cluster->classification);
}

static void cell_zero(const struct listing *l, const struct row *row, struct str *out)
{
    (void)l;
    (void)row;
    str_add(out, "0");
}

static void cell_empty(const struct listing *l, const struct row *row, struct str *out)
{
    (void)l;
    (void)row;
    (void)out;
}

static void cell_time(const struct listing *l, const struct row *row, struct str *out)
{
    (void)l;
    if (row->transaction)
        timefmt_write_point(out, row->transaction->time_us / 1000000, 0, NULL);
}

static void cell_action(const struct listing *l, const struct row *row, struct str *out)
{
    (void)l;
    str_add(out, row->transaction ? row->transaction->action : "");
}

static void cell_actor(const struct listing *l, const struct row *row, struct str *out)
{
    (void)l;
    str_add(out, row->transaction ? row->transaction->actor : "");
}

static void cell_where(const struct listing *l, const struct row *row, struct str *out)
{
    (void)l;
    str_add(out, row->transaction ? row->transaction->what : "");
}

static void cell_info(const struct listing *l, const struct row *row, struct str *out)
{
    (void)l;
    str_add(out, row->transaction ? row->transaction->info : "");
}

static void cell_problem(const struct listing *l, const struct row *row, struct str *out)
{
    (void)l;
    str_add(out, row->problem ? row->problem : "");
}

/* The amount of one TRES in a limit: Slurm's older columns. */
static void add_amount(const struct listing *l, const struct row *row, const char *setting,
                       const char *tres, struct str *out)
{
    const struct setting *found = setting_find(assoc_settings, setting);
    const ConfUser *limits = row->assoc ? limits_with(l->m, row->assoc, found) : NULL;
    struct str text = { 0 };
    const char *cursor;
    struct span word;
    size_t len = strlen(tres);

    if (limits && setting_get(found, limits, false, &text)) {
        for (cursor = str_text(&text); str_next(&cursor, ",", &word);) {
            if (word.len > len && word.ptr[len] == '=' && strncmp(word.ptr, tres, len) == 0)
                str_add_len(out, word.ptr + len + 1, word.len - len - 1);
        }
    }
    str_done(&text);
}

#define AMOUNT(name, setting, tres)                                                   \
    static void name(const struct listing *l, const struct row *row, struct str *out) \
    {                                                                                 \
        add_amount(l, row, setting, tres, out);                                       \
    }
AMOUNT(cell_grp_nodes, "GrpTRES", "node")
AMOUNT(cell_grp_cpus, "GrpTRES", "cpu")
AMOUNT(cell_grp_mem, "GrpTRES", "mem")
AMOUNT(cell_grp_cpu_mins, "GrpTRESMins", "cpu")
AMOUNT(cell_max_nodes, "MaxTRESPerJob", "node")
AMOUNT(cell_max_cpus, "MaxTRESPerJob", "cpu")
AMOUNT(cell_max_cpu_mins, "MaxTRESMinsPerJob", "cpu")

/* clang-format off */
static const struct column {
    const char *name, *also, *header;
    int width;
    cell_fn *cell;
} columns[] = {
    { "Account", "Acct", "Account", 10, cell_account },
    { "Action", NULL, "Action", 20, cell_action },
    { "Actor", NULL, "Actor", 10, cell_actor },
    { "AdminLevel", "Admin", "Admin", 9, cell_admin },
    { "Classification", "CPUCount", "Class", 9, cell_class },
    { "Cluster", NULL, "Cluster", 10, cell_cluster },
    { "ControlHost", NULL, "ControlHost", 15, cell_host },
    { "ControlPort", NULL, "ControlPort", 12, cell_port },
    { "Coordinators", "Coord Accounts", "Coord Accounts", 20, cell_coords },
    { "DefaultAccount", "Def Acct", "Def Acct", 10, cell_default },
    { "DefaultWCKey", "Def WCKey", "Def WCKey", 10, cell_default_wckey },
    { "Description", "Descr", "Descr", 20, cell_descr },
    { "Features", NULL, "Features", 20, cell_empty },
    { "Federation", NULL, "Federation", 10, cell_empty },
    { "FedState", NULL, "FedState", 12, cell_empty },
    { "FedStateRaw", NULL, "FedStateRaw", 11, cell_zero },
    { "Flags", NULL, "Flags", 20, cell_flags },
    { "GrpCPUMins", NULL, "GrpCPUMins", 11, cell_grp_cpu_mins },
    { "GrpCPUs", NULL, "GrpCPUs", 8, cell_grp_cpus },
    { "GrpMem", NULL, "GrpMem", 7, cell_grp_mem },
    { "GrpNodes", NULL, "GrpNodes", 8, cell_grp_nodes },
    { "ID", NULL, "ID", 6, cell_id },
    { "Info", NULL, "Info", 20, cell_info },
    { "Lineage", NULL, "Lineage", -20, cell_lineage },
    { "MaxCPUMins", NULL, "MaxCPUMins", 11, cell_max_cpu_mins },
    { "MaxCPUs", NULL, "MaxCPUs", 8, cell_max_cpus },
    { "MaxNodes", NULL, "MaxNodes", 8, cell_max_nodes },
    { "Name", NULL, "Name", 10, cell_name },
    { "NodeCount", NULL, "NodeCount", 9, cell_zero },
    { "NodeNames", NULL, "NodeNames", 20, cell_empty },
    { "Organization", "Org", "Org", 20, cell_org },
    { "ParentID", NULL, "ParentID", 8, cell_parent_id },
    { "ParentName", NULL, "ParentName", 10, cell_parent },
    { "Partition", NULL, "Partition", 10, cell_partition },
    { "Problem", NULL, "Problem", 40, cell_problem },
    { "RPC", NULL, "RPC", 5, cell_zero },
    { "TimeStamp", "Time", "Time", 19, cell_time },
    { "TRES", NULL, "TRES", 20, cell_empty },
    { "Type", NULL, "Type", 8, cell_type },
    { "User", NULL, "User", 10, cell_user },
    { "WCKey", "WCKeys", "WCKey", 10, cell_wckey },
    { "Where", NULL, "Where", 20, cell_where },
};

static const struct {
    const char *word, *format, *with_assoc;
} lists[LIST_ENTITIES] = {
    [LIST_ACCOUNT] = { "account", "Account,Descr,Org",
        "Account,Descr,Org,Cluster,ParentName,User,Share,Priority,GrpJobs,GrpNodes,GrpCPUs,GrpMem,GrpSubmit,GrpWall,GrpCPUMins,"
        "MaxJobs,MaxNodes,MaxCPUs,MaxSubmit,MaxWall,MaxCPUMins,QOS,DefaultQOS" },
    [LIST_ASSOC] = { "association", "Cluster,Account,User,Partition,Share,Priority,GrpJobs,GrpTRES,GrpSubmit,GrpWall,GrpTRESMins,"
        "MaxJobs,MaxTRES,MaxTRESPerNode,MaxSubmit,MaxWall,MaxTRESMins,QOS,DefaultQOS,GrpTRESRunMins", NULL },
    [LIST_CLUSTER] = { "cluster", "Cluster,ControlHost,ControlPort,RPC,Share,GrpJobs,GrpTRES,GrpSubmit,MaxJobs,MaxTRES,MaxSubmit,MaxWall,QOS,DefaultQOS", NULL },
    [LIST_PROBLEM] = { "problem", "Cluster,Account,User,Problem", NULL },
    [LIST_QOS] = { "qos", "Name,Priority,GraceTime,Preempt,PreemptExemptTime,PreemptMode,Flags%40,UsageThres,UsageFactor,GrpTRES,GrpTRESMins,GrpTRESRunMins,"
        "GrpJobs,GrpSubmit,GrpWall,MaxTRES,MaxTRESPerNode,MaxTRESMins,MaxWall,MaxTRESPU,MaxJobsPU,MaxSubmitPU,MaxTRESPA,MaxTRESRunMinsPA,MaxTRESRunMinsPU,"
        "MaxJobsPA,MaxSubmitPA,MinTRES", NULL },
    [LIST_TRANSACTION] = { "transaction", "TimeStamp,Action,Actor,Where,Info", NULL },
    [LIST_TRES] = { "tres", "Type,Name%15,ID", NULL },
    [LIST_USER] = { "user", "User,DefaultAccount,AdminLevel",
        "User,DefaultAccount,AdminLevel,Cluster,Account,Partition,Share,Priority,MaxJobs,MaxNodes,MaxCPUs,MaxSubmit,MaxWall,MaxCPUMins,QOS,DefaultQOS" },
    [LIST_WCKEY] = { "wckey", "WCKey,Cluster,User", NULL },
};
/* clang-format on */

struct shown {
    const struct column *column;   /* or */
    const struct setting *setting; /* this */
    const char *header;
    int width;
};
typedef VEC(struct shown) shown_list;

static bool read_column(struct listing *l, struct span word, shown_list *out)
{
    char *name = arena_strndup(&l->m->cli.arena, word.ptr, word.len);
    char *percent = strchr(name, '%');
    struct shown shown = { 0 };
    const struct setting *table = l->entity == LIST_QOS ? qos_settings : assoc_settings;

    if (percent)
        *percent = '\0';
    for (int exact = 1; exact >= 0 && !shown.header; exact--) {
        for (size_t i = 0; i < ARRAY_LEN(columns) && !shown.header; i++) {
            const struct column *column = &columns[i];
            if (exact ? str_ieq(name, column->name) || (column->also && str_ieq(name, column->also))
                      : word_is(name, column->name))
                shown = (struct shown){ column, NULL, column->header, column->width };
        }
        if (!shown.header && (shown.setting = setting_find(table, name))) {
            shown.header = shown.setting->header;
            shown.width = shown.setting->width;
        }
    }
    if (!shown.header) {
        fprintf(stderr, " Unknown field '%s'\n", name);
        return false;
    }
    if (percent)
        shown.width = atoi(percent + 1);
    if (l->tree && shown.column && shown.column->cell == cell_account && !percent)
        shown.width = -20;
    vec_push(out, shown);
    return true;
}

static void setting_cell(const struct listing *l, const struct setting *setting,
                         const struct row *row, struct str *out)
{
    if (row->qos) {
        if (!setting_get(setting, row->qos->qos, false, out))
            str_add(out, str_eq(setting->name, "Priority")      ? "0"
                         : str_eq(setting->name, "GraceTime")   ? "00:00:00"
                         : str_eq(setting->name, "PreemptMode") ? "cluster"
                         : str_eq(setting->name, "UsageFactor") ? "1.000000"
                                                                : "");
        return;
    }
    const AcctAssoc *assoc = row->assoc;
    if (!assoc && row->cluster)
        assoc = assoc_find(l->m, row->cluster->name, "root", "", "");
    if (!assoc || (l->wo_limits && !str_eq(setting->name, "Fairshare")))
        return;
    const ConfUser *limits = l->wo_parents ? assoc->limits : limits_with(l->m, assoc, setting);
    if ((!limits || !setting_get(setting, limits, false, out)) &&
        str_eq(setting->name, "Fairshare"))
        str_add(out, "1");
}

static void print_cell(const struct listing *l, const struct shown *shown, const char *text,
                       bool last)
{
    struct str *out = &l->m->out;
    size_t width = (size_t)abs(shown->width), len = strlen(text);

    if (l->m->parsable || l->m->parsable2) {
        str_add(out, text);
        if (!last || l->m->parsable)
            str_add_char(out, '|');
        return;
    }
    if (shown->width < 0) {
        str_add_len(out, text, MIN(len, width));
        str_add_fill(out, ' ', width - MIN(len, width));
    } else {
        str_add_fill(out, ' ', width - MIN(len, width));
        str_add_len(out, text, MIN(len, width));
    }
    if (len > width && width) /* the end is missing */
        out->data[out->len - 1] = '+';
    str_add_char(out, ' ');
}

static void print_header(const struct listing *l, const shown_list *shown)
{
    struct str *out = &l->m->out;

    if (l->m->no_header)
        return;
    for (size_t i = 0; i < shown->len; i++) {
        const struct shown *at = &shown->items[i];
        size_t width = (size_t)abs(at->width);
        bool plain = l->m->parsable || l->m->parsable2;
        char *name = arena_strndup(&l->m->cli.arena, at->header,
                                   plain ? strlen(at->header) : MIN(strlen(at->header), width));
        print_cell(l, at, name, i + 1 == shown->len);
    }
    str_add_char(out, '\n');
    if (l->m->parsable || l->m->parsable2)
        return;
    for (size_t i = 0; i < shown->len; i++) {
        str_add_fill(out, '-', (size_t)abs(shown->items[i].width));
        str_add_char(out, ' ');
    }
    str_add_char(out, '\n');
}

static void print_row(const struct listing *l, const shown_list *shown, const struct row *row)
{
    struct str cell = { 0 };

    for (size_t i = 0; i < shown->len; i++) {
        const struct shown *at = &shown->items[i];
        str_clear(&cell);
        if (at->column)
            at->column->cell(l, row, &cell);
        else
            setting_cell(l, at->setting, row, &cell);
        print_cell(l, at, str_text(&cell), i + 1 == shown->len);
    }
    str_add_char(&l->m->out, '\n');
    str_done(&cell);
}

/* ---- rows ---- */

static bool is_below(const struct manager *m, const AcctAssoc *assoc, const struct names *accounts)
{
    for (unsigned i = 0; assoc && i < 64; i++, assoc = assoc_above(m, assoc)) {
        if (names_have(accounts, assoc->limits->account))
            return true;
    }
    return false;
}

static bool picks_assoc(const struct listing *l, const AcctAssoc *assoc)
{
    const ConfUser *limits = assoc->limits;

    if ((assoc->deleted && !l->with_deleted) || !names_have(&l->clusters, assoc->cluster) ||
        !names_have(&l->partitions, limits->partition ? limits->partition : "") ||
        (l->users.count && !names_have(&l->users, limits->name)) ||
        (l->only_defaults && !limits->is_default))
        return false;
    if (l->parents.count && !names_have(&l->parents, assoc->parent ? assoc->parent : ""))
        return false;
    return l->with_sub ? is_below(l->m, assoc, &l->accounts)
                       : names_have(&l->accounts, limits->account);
}

static void list_assocs(const struct listing *l, const shown_list *shown)
{
    for (size_t i = 0; i < l->m->tables->n_assocs; i++) {
        struct row row = { .assoc = l->m->tables->assocs[i] };
        if (picks_assoc(l, row.assoc))
            print_row(l, shown, &row);
    }
}

static void list_accounts(const struct listing *l, const shown_list *shown)
{
    for (size_t i = 0; i < l->m->tables->n_accounts; i++) {
        struct row row = { .account = l->m->tables->accounts[i] };
        if (!names_have(&l->names, row.account->name) || (row.account->deleted && !l->with_deleted))
            continue;
        if (!l->with_assoc)
            print_row(l, shown, &row);
        for (size_t k = 0; l->with_assoc && k < l->m->tables->n_assocs; k++) {
            row.assoc = l->m->tables->assocs[k];
            if (str_eq(row.assoc->limits->account, row.account->name) && picks_assoc(l, row.assoc))
                print_row(l, shown, &row);
        }
    }
}

static bool picks_user(const struct listing *l, const AcctUser *user)
{
    const char *account = default_account(l->m, NULL, user->name);

    return names_have(&l->names, user->name) && (!user->deleted || l->with_deleted) &&
           (!l->has_level || user->admin_level == l->level) &&
           (l->with_assoc || !l->accounts.count || names_have(&l->accounts, account));
}

static void list_users(const struct listing *l, const shown_list *shown)
{
    for (size_t i = 0; i < l->m->tables->n_users; i++) {
        struct row row = { .user = l->m->tables->users[i] };
        if (!picks_user(l, row.user))
            continue;
        if (!l->with_assoc)
            print_row(l, shown, &row);
        for (size_t k = 0; l->with_assoc && k < l->m->tables->n_assocs; k++) {
            row.assoc = l->m->tables->assocs[k];
            if (str_eq(row.assoc->limits->name, row.user->name) && picks_assoc(l, row.assoc))
                print_row(l, shown, &row);
        }
    }
}

static void list_problems(const struct listing *l, const shown_list *shown)
{
    for (size_t i = 0; i < l->m->tables->n_accounts; i++) {
        bool used = str_eq(l->m->tables->accounts[i]->name, "root");
        for (size_t k = 0; k < l->m->tables->n_assocs && !used; k++)
            used =
                str_eq(l->m->tables->assocs[k]->limits->account, l->m->tables->accounts[i]->name) &&
                !str_is_empty(l->m->tables->assocs[k]->limits->name);
        struct row row = { .account = l->m->tables->accounts[i],
                           .problem = "Account has no users" };
        if (!used)
            print_row(l, shown, &row);
    }
    for (size_t i = 0; i < l->m->tables->n_users; i++) {
        bool used = false;
        for (size_t k = 0; k < l->m->tables->n_assocs && !used; k++)
            used = str_eq(l->m->tables->assocs[k]->limits->name, l->m->tables->users[i]->name);
        struct row row = { .user = l->m->tables->users[i], .problem = "User has no associations" };
        if (!used)
            print_row(l, shown, &row);
    }
}

static void list_rest(const struct listing *l, const shown_list *shown)
{
    const ListTablesReply *t = l->m->tables;

    for (size_t i = 0; l->entity == LIST_CLUSTER && i < t->n_clusters; i++) {
        struct row row = { .cluster = t->clusters[i] };
        if (names_have(&l->names, row.cluster->name))
            print_row(l, shown, &row);
    }
    for (size_t i = 0; l->entity == LIST_QOS && i < t->n_qos; i++) {
        struct row row = { .qos = t->qos[i] };
        if (names_have(&l->names, row.qos->qos->name) && (!row.qos->deleted || l->with_deleted))
            print_row(l, shown, &row);
    }
    for (size_t i = 0; l->entity == LIST_TRES && i < t->n_tres; i++) {
        struct row row = { .tres = t->tres[i] };
        if (names_have(&l->names, row.tres->name))
            print_row(l, shown, &row);
    }
    for (size_t i = 0; l->entity == LIST_WCKEY && i < t->n_wckeys; i++) {
        struct row row = { .wckey = t->wckeys[i] };
        if (names_have(&l->names, row.wckey->name) && names_have(&l->users, row.wckey->user) &&
            names_have(&l->clusters, row.wckey->cluster) &&
            (!row.wckey->deleted || l->with_deleted))
            print_row(l, shown, &row);
    }
    for (size_t i = 0; l->entity == LIST_TRANSACTION && i < t->n_transactions; i++) {
        struct row row = { .transaction = t->transactions[i] };
        int64_t at_s = row.transaction->time_us / 1000000;
        if (names_have(&l->actors, row.transaction->actor) &&
            names_have(&l->actions, row.transaction->action) && at_s >= l->start_s &&
            (!l->end_s || at_s <= l->end_s))
            print_row(l, shown, &row);
    }
}

/* ---- conditions ---- */

static bool read_point(const char *text, int64_t *out)
{
    struct err err = { 0 };
    int64_t now_s = time(NULL);

    if (timefmt_read_point(text, now_s, TIMEFMT_PAST, out, &err) == 0)
        return true;
    fprintf(stderr, " %s\n", err.text);
    return false;
}

static bool read_level(struct listing *l, const char *text)
{
    for (unsigned i = 0; i < ARRAY_LEN(levels); i++) {
        if (*text && str_istarts(levels[i], text)) {
            l->has_level = true;
            l->level = i;
            return true;
        }
    }
    fprintf(stderr, " Bad AdminLevel value: %s\n", text);
    return false;
}

static bool read_flag(struct listing *l, const char *key)
{
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {
        { "WithAssoc", &l->with_assoc },       { "WithCoord", &l->with_coord },
        { "WithDeleted", &l->with_deleted },   { "Tree", &l->tree },
        { "OnlyDefaults", &l->only_defaults }, { "WithSubAccounts", &l->with_sub },
        { "WOLimits", &l->wo_limits },         { "WOPInfo", &l->wo_parents },
        { "WOPLimits", &l->wo_parents },
    };

    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        if (str_ieq(key, flags[i].name) || (strlen(key) > 4 && word_is(key, flags[i].name))) {
            *flags[i].flag = true;
            return true;
        }
    }
    return false;
}

static bool read_condition(struct listing *l, const struct word *word)
{
    struct manager *m = l->m;
    bool named = l->entity == LIST_USER || l->entity == LIST_ACCOUNT || l->entity == LIST_CLUSTER;
    const struct {
        const char *name;
        struct names *names;
    } lists_of[] = {
        { "Names", &l->names },
        { "Users", l->entity == LIST_USER ? &l->names : &l->users },
        { "Accounts", l->entity == LIST_ACCOUNT ? &l->names : &l->accounts },
        { "Accts", l->entity == LIST_ACCOUNT ? &l->names : &l->accounts },
        { "Clusters", l->entity == LIST_CLUSTER ? &l->names : &l->clusters },
        { "Partitions", &l->partitions },
        { "Parents", &l->parents },
        { "WCKeys", &l->names },
        { "Actors", &l->actors },
        { "Actions", &l->actions },
    };

    (void)named;
    if (!word->value) {
        if (str_ieq(word->key, "where") || read_flag(l, word->key))
            return true;
        struct names *into = l->entity == LIST_ASSOC ? &l->accounts : &l->names;
        *into = names_of(m, word->key);
        return l->entity != LIST_TRANSACTION;
    }
    if (word_is(word->key, "Format")) {
        l->format = word->value;
        return true;
    }
    if (word_is(word->key, "AdminLevel") && l->entity == LIST_USER)
        return read_level(l, word->value);
    if (str_ieq(word->key, "Start") && l->entity == LIST_TRANSACTION)
        return read_point(word->value, &l->start_s);
    if (str_ieq(word->key, "End") && l->entity == LIST_TRANSACTION)
        return read_point(word->value, &l->end_s);
    for (size_t i = 0; i < ARRAY_LEN(lists_of); i++) {
        if (word_is(word->key, lists_of[i].name)) {
            *lists_of[i].names = names_of(m, word->value);
            return true;
        }
    }
    return false;
}

/* ---- the command ---- */

static int list_text(struct manager *m, const char *entity)
{
    CLEANUP(str_done) struct str now = { 0 };

    if (manager_load(m, false, false))
        return 1;
    timefmt_write_point(&now, m->tables->now_us / 1000000, 0, NULL);
    if (word_is(entity, "configuration")) {
        str_addf(
            &m->out,
            "Configuration data as of %s\nAccountingStorageType  = accounting_storage/slurmdbd\n"
            "Database               = %s\nPrivateData            = %s\n",
            str_text(&now), m->tables->database ? m->tables->database : "",
            str_is_empty(m->tables->private_data) ? "none" : m->tables->private_data);
        for (size_t i = 0; i < m->tables->n_clusters; i++) {
            const AcctClusterRow *row = m->tables->clusters[i];
            str_addf(&m->out, "Cluster                = %s accounts=%s connected=%s changes=%llu\n",
                     row->name, row->file_owns ? "file" : "database", row->connected ? "yes" : "no",
                     (unsigned long long)row->changes);
        }
        return 0;
    }
    str_addf(&m->out, "sacctmgr show stats output at %s\n", str_text(&now));
    str_clear(&now);
    timefmt_write_point(&now, m->tables->start_us / 1000000, 0, NULL);
    str_addf(&m->out, "Data since                    %s\n", str_text(&now));
    str_addf(&m->out,
             "Accounts:     %zu\nUsers:        %zu\nAssociations: %zu\nQOS:          %zu\n"
             "Revision:     %llu\n",
             m->tables->n_accounts, m->tables->n_users, m->tables->n_assocs, m->tables->n_qos,
             (unsigned long long)m->tables->revision);
    return 0;
}

static bool find_entity(const char *word, enum entity *out)
{
    for (enum entity i = 0; i < LIST_ENTITIES; i++) {
        if (lists[i].word && (word_is(word, lists[i].word) || str_ieq(word, "qoses"))) {
            *out = i;
            return true;
        }
    }
    if (str_istarts("assoc", word) || str_ieq(word, "associations")) {
        *out = LIST_ASSOC;
        return true;
    }
    return false;
}

int manager_list(struct manager *m, const char *entity, const words *specs)
{
    struct listing l = { .m = m };
    shown_list shown = { 0 };
    struct span word;
    bool good = true;

    if (word_is(entity, "configuration") || word_is(entity, "stats"))
        return list_text(m, entity);
    if (!find_entity(entity, &l.entity))
        return -1;
    l.with_assoc = m->with_assocs;
    for (size_t i = 0; i < specs->len; i++) {
        if (!read_condition(&l, &specs->items[i])) {
            fprintf(stderr, " Unknown condition: %s%s%s\n", specs->items[i].key,
                    specs->items[i].value ? "=" : "",
                    specs->items[i].value ? specs->items[i].value : "");
            return 1;
        }
    }
    if (manager_load(m, l.with_deleted, l.entity == LIST_TRANSACTION))
        return 1;
    const char *format = l.format                                     ? l.format
                         : l.with_assoc && lists[l.entity].with_assoc ? lists[l.entity].with_assoc
                                                                      : lists[l.entity].format;
    while (good && str_next(&format, ",", &word))
        good = read_column(&l, word, &shown);
    if (good && !l.format && l.with_coord)
        good = read_column(&l, (struct span){ "Coordinators", 12 }, &shown);
    if (good) {
        print_header(&l, &shown);
        if (l.entity == LIST_ASSOC)
            list_assocs(&l, &shown);
        else if (l.entity == LIST_ACCOUNT)
            list_accounts(&l, &shown);
        else if (l.entity == LIST_USER)
            list_users(&l, &shown);
        else if (l.entity == LIST_PROBLEM)
            list_problems(&l, &shown);
        else
            list_rest(&l, &shown);
    }
    vec_done(&shown);
    return good ? 0 : 1;
}
