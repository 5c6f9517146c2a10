/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sreport_rows.c - rows of the reports of `sreport`, from what spurdbd has summed up
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/map.h"
#include "cli/accounting.h"
#include "cli/sreport.h"
#include "client/client.h"

bool report_list_has(const struct report_list *list, const char *name)
{
    for (size_t i = 0; name && i < list->count; i++) {
        if (strcasecmp(list->items[i], name) == 0)
            return true;
    }
    return list->count == 0;
}

static int ask(struct sreport *r, const char *method, const ProtobufCMessage *request,
               const ProtobufCMessageDescriptor *type, ProtobufCMessage **reply)
{
    struct err err = { 0 };

    if (!r->client)
        r->client = accounting_connect(&r->cli, &err);
    if (!r->client || client_call(r->client, method, request, type, &r->cli.arena, reply, &err) < 0)
        return accounting_error(&r->cli, &err);
    return 0;
}

static int load_tables(struct sreport *r)
{
    ListTablesRequest request = LIST_TABLES_REQUEST__INIT;
    ProtobufCMessage *message = NULL;

    request.has_with_deleted = request.with_deleted = true; /* what was used stays used */
    if (ask(r, "/spur.Accounts/List", &request.base, &list_tables_reply__descriptor, &message))
        return 1;
    r->tables = (const void *)message;
    return 0;
}

/* ---- the tree of accounts ---- */

/* The account above; NULL: none, or nobody knows. */
static const char *above(const struct sreport *r, const char *cluster, const char *account)
{
    for (size_t i = 0; i < r->tables->n_assocs; i++) {
        const AcctAssoc *assoc = r->tables->assocs[i];
        if (str_is_empty(assoc->limits->name) && str_eq(assoc->cluster, cluster) &&
            str_eq(assoc->limits->account, account))
            return str_is_empty(assoc->parent) ? NULL : assoc->parent;
    }
    return str_eq(account, "root") ? NULL : "root";
}

/* From the root to the account, in the arena; "physics" of "root", "science", "physics". */
static size_t path_of(struct sreport *r, const char *cluster, const char *account,
                      const char **path, size_t most)
{
    size_t count = 0;

    for (const char *at = account; at && count < most; at = above(r, cluster, at))
        path[count++] = at;
    for (size_t i = 0; i < count / 2; i++) {
        const char *swap = path[i];
        path[i] = path[count - 1 - i];
        path[count - 1 - i] = swap;
    }
    return count;
}

enum { PATH_MOST = 64 };

/* Is the account meant: listed, or below one that is? */
static bool account_meant(struct sreport *r, const char *cluster, const char *account)
{
    const char *path[PATH_MOST];
    size_t count = path_of(r, cluster, account, path, PATH_MOST);

    for (size_t i = 0; i < count; i++) {
        if (report_list_has(&r->accounts, path[i]))
            return true;
    }
    return r->accounts.count == 0;
}

/* ---- sums by a key ---- */

struct sums {
    struct sreport *r;
    struct map rows; /* key → number in r->rows and one */
    const UsageReply *reply;
};

static struct report_row *row_of(struct sums *s, const char *key)
{
    uintptr_t known = (uintptr_t)map_get(&s->rows, key);

    if (known)
        return &s->r->rows.items[known - 1];
    vec_push(&s->r->rows, (struct report_row){ 0 });
    map_put(&s->rows, key, (void *)(uintptr_t)s->r->rows.len);
    return &s->r->rows.items[s->r->rows.len - 1];
}

static int64_t total_of(const UsageReply *reply, const char *cluster, const char *tres)
{
    for (size_t i = 0; i < reply->n_clusters; i++) {
        if (str_eq(reply->clusters[i]->cluster, cluster) && str_eq(reply->clusters[i]->tres, tres))
            return reply->clusters[i]->total;
    }
    return 0;
}

/* Adds to the line of (cluster, account, login, wckey, qos); energy stands beside the first TRES. */
static void add_to(struct sums *s, struct report_row like, const char *tres, int64_t amount)
{
    CLEANUP(str_done) struct str key = { 0 };
    bool energy = !s->r->tres_text && str_eq(tres, "energy");
    const char *shown = energy ? s->r->tres.items[0] : tres;

    str_addf(&key, "%s\1%s\1%s\1%s\1%s\1%s", like.cluster, like.account ? like.account : "",
             like.login ? like.login : "", like.wckey ? like.wckey : "", like.qos ? like.qos : "",
             shown);
    struct report_row *row = row_of(s, str_text(&key));
    if (!row->cluster) {
        *row = like;
        row->tres = shown;
        row->total = total_of(s->reply, like.cluster, shown);
        row->count = row->total / MAX(s->r->end_s - s->r->start_s, 1);
    }
    if (energy)
        row->energy += amount;
    else
        row->used += amount;
}

/* The account and all above it, then the user below it. */
static void add_account(struct sums *s, const UsageWho *who, const char *tres, int64_t amount)
{
    struct sreport *r = s->r;
    const char *path[PATH_MOST];
    size_t count = path_of(r, who->cluster, who->account, path, PATH_MOST);
    bool by_qos = r->id == REPORT_ACCOUNT_BY_QOS;

    for (size_t i = 0; i < count; i++) {
        if (r->accounts.count && !account_meant(r, who->cluster, path[i]))
            continue;
        add_to(s,
               (struct report_row){ .cluster = who->cluster,
                                    .account = path[i],
                                    .depth = (unsigned)i,
                                    .qos = by_qos ? who->qos : NULL },
               tres, amount);
    }
    if (!by_qos)
        add_to(s,
               (struct report_row){ .cluster = who->cluster,
                                    .account = who->account,
                                    .login = who->user,
                                    .depth = (unsigned)count },
               tres, amount);
}

static void add_use(struct sums *s, const UsageWho *who, const char *tres, int64_t amount)
{
    struct sreport *r = s->r;
    struct report_row like = { .cluster = who->cluster, .login = who->user };

    if (!report_list_has(&r->users, who->user) || !report_list_has(&r->wckeys, who->wckey) ||
        (r->accounts.count && !account_meant(r, who->cluster, who->account)))
        return;
    switch (r->id) {
    case REPORT_ACCOUNT_BY_USER:
    case REPORT_ACCOUNT_BY_QOS:
        add_account(s, who, tres, amount);
        return;
    case REPORT_USER_BY_ACCOUNT:
        like.account = who->account;
        break;
    case REPORT_TOP:
        like.account = r->group ? NULL : who->account;
        break;
    case REPORT_USER_BY_WCKEY:
        like.wckey = who->wckey;
        break;
    default: /* by workload key: the key itself, then its users */
        like.wckey = who->wckey;
        add_to(s, (struct report_row){ .cluster = who->cluster, .wckey = who->wckey }, tres,
               amount);
        break;
    }
    add_to(s, like, tres, amount);
}

/* ---- order ---- */

/* qsort has no context; a command makes one report at a time. */
static struct sreport *sorting;

static int text_order(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "");
}

static int tres_order(const struct report_row *a, const struct report_row *b)
{
    size_t i = 0, k = 0;

    while (i < sorting->tres.count && !str_eq(sorting->tres.items[i], a->tres))
        i++;
    while (k < sorting->tres.count && !str_eq(sorting->tres.items[k], b->tres))
        k++;
    return (i > k) - (i < k);
}

/* Accounts as in their tree, each before its users, those before the accounts below. */
static int by_tree(const void *left, const void *right)
{
    const struct report_row *a = left, *b = right;
    const char *one[PATH_MOST], *two[PATH_MOST];
    int order = text_order(a->cluster, b->cluster);

    if (order)
        return order;
    size_t x = path_of(sorting, a->cluster, a->account, one, PATH_MOST);
    size_t y = path_of(sorting, b->cluster, b->account, two, PATH_MOST);
    for (size_t i = 0; i < MIN(x, y); i++) {
        order = text_order(one[i], two[i]);
        if (order)
            return order;
    }
    if (x != y)
        return x < y ? -1 : 1;
    order = text_order(a->login, b->login);
    if (!order)
        order = text_order(a->qos, b->qos);
    return order ? order : tres_order(a, b);
}

/* What a user or a workload key used of the first TRES in all, for the order of groups. */
static int64_t group_used(const struct report_row *row)
{
    int64_t sum = 0;
    bool by_wckey = sorting->id == REPORT_WCKEY_BY_USER;

    for (size_t i = 0; i < sorting->rows.len; i++) {
        const struct report_row *other = &sorting->rows.items[i];
        bool same = by_wckey ? !other->login && text_order(other->wckey, row->wckey) == 0
                             : text_order(other->login, row->login) == 0;
        if (same && str_eq(other->cluster, row->cluster) &&
            str_eq(other->tres, sorting->tres.items[0]))
            sum += other->used;
    }
    return sum;
}

static int by_group(const void *left, const void *right)
{
    const struct report_row *a = left, *b = right;
    int order = text_order(a->cluster, b->cluster);

    if (!order && !sorting->by_name)
        order = (a->start_s < b->start_s) - (a->start_s > b->start_s); /* what its group used */
    if (!order && sorting->id == REPORT_WCKEY_BY_USER)
        order = text_order(a->wckey, b->wckey);
    if (!order)
        order = text_order(a->login, b->login);
    if (!order)
        order = text_order(a->account, b->account);
    if (!order)
        order = text_order(a->wckey, b->wckey);
    return order ? order : tres_order(a, b);
}

static void sort_rows(struct sreport *r)
{
    bool tree = r->id == REPORT_ACCOUNT_BY_USER || r->id == REPORT_ACCOUNT_BY_QOS;

    sorting = r;
    if (!r->rows.len)
        return;
    for (size_t i = 0; i < r->rows.len && !tree; i++)
        r->rows.items[i].start_s = r->id == REPORT_TOP && !r->group ? r->rows.items[i].used
                                                                    : group_used(&r->rows.items[i]);
    qsort(r->rows.items, r->rows.len, sizeof(struct report_row), tree ? by_tree : by_group);
}

/* ---- the most ---- */

static int by_text(const void *left, const void *right)
{
    return text_order(*(const char *const *)left, *(const char *const *)right);
}

/* All accounts of a user in one line, as "bio,physics": whatever order the database has them in. */
static void name_accounts(struct sreport *r, const UsageReply *reply, struct report_row *row)
{
    CLEANUP(str_done) struct str text = { 0 };
    VEC(const char *) names = { 0 };

    for (size_t i = 0; i < reply->n_who; i++) {
        const UsageWho *who = reply->who[i];
        if (str_eq(who->user, row->login) && str_eq(who->cluster, row->cluster))
            vec_push(&names, who->account);
    }
    if (names.len)
        qsort(names.items, names.len, sizeof(*names.items), by_text);
    for (size_t i = 0; i < names.len; i++) {
        if (i == 0 || text_order(names.items[i], names.items[i - 1]) != 0)
            str_addf(&text, "%s%s", text.len ? "," : "", names.items[i]);
    }
    vec_done(&names);
    row->account = arena_strdup(&r->cli.arena, str_text(&text));
}

/* The first `top` users of each cluster. */
static void keep_top(struct sreport *r, const UsageReply *reply)
{
    const char *cluster = "", *login = "", *account = "";
    size_t kept = 0;
    unsigned count = 0;

    for (size_t i = 0; i < r->rows.len; i++) {
        struct report_row row = r->rows.items[i];
        if (!str_eq(row.cluster, cluster))
            count = 0, login = "\1";
        if (!str_eq(row.login, login) || (!r->group && text_order(row.account, account) != 0))
            count++;
        cluster = row.cluster;
        login = row.login;
        account = row.account ? row.account : "";
        if (count > r->top)
            continue;
        if (r->group)
            name_accounts(r, reply, &row);
        r->rows.items[kept++] = row;
    }
    r->rows.len = kept;
}

static void wanted_tres(struct sreport *r, UsageRequest *request)
{
    bool all = r->tres_text && strcasecmp(r->tres_text, "all") == 0;

    request->tres = ARENA_ARRAY(&r->cli.arena, char *, r->tres.count + 2);
    for (size_t i = 0; i < r->tres.count && !all; i++)
        request->tres[request->n_tres++] = r->tres.items[i];
    if (!r->tres_text)
        request->tres[request->n_tres++] = (char *)"energy";
}

/* -T all: those that somebody used, or a cluster has. */
static void find_tres(struct sreport *r, const UsageReply *reply)
{
    if (!r->tres_text || strcasecmp(r->tres_text, "all") != 0)
        return;
    r->tres.items = ARENA_ARRAY(&r->cli.arena, char *, reply->n_tres + reply->n_clusters + 1);
    r->tres.count = 0;
    for (size_t i = 0; i < reply->n_tres + reply->n_clusters; i++) {
        char *name = i < reply->n_tres ? reply->tres[i] : reply->clusters[i - reply->n_tres]->tres;
        if (r->tres.count == 0 || !report_list_has(&r->tres, name))
            r->tres.items[r->tres.count++] = name;
    }
}

static int ask_usage(struct sreport *r, bool clusters_only, const UsageReply **out)
{
    UsageRequest request = USAGE_REQUEST__INIT;
    int64_t edges[] = { r->start_s, r->end_s };
    ProtobufCMessage *message = NULL;

    request.edges_s = edges;
    request.n_edges_s = 2;
    request.clusters = r->clusters.items;
    request.n_clusters = r->clusters.count;
    request.has_all_clusters = request.has_clusters_only = true;
    request.all_clusters = r->all_clusters;
    request.clusters_only = clusters_only;
    wanted_tres(r, &request);
    if (ask(r, "/spur.Reports/Sum", &request.base, &usage_reply__descriptor, &message))
        return 1;
    *out = (const void *)message;
    find_tres(r, *out);
    return 0;
}

static int fill_sums(struct sreport *r)
{
    struct sums s = { .r = r };

    if (load_tables(r) || ask_usage(r, false, &s.reply))
        return 1;
    map_init(&s.rows);
    for (size_t i = 0; i < s.reply->n_row_who; i++)
        add_use(&s, s.reply->who[s.reply->row_who[i]], s.reply->tres[s.reply->row_tres[i]],
                s.reply->row_amount[i]);
    map_done(&s.rows);
    sort_rows(r);
    if (r->id == REPORT_TOP)
        keep_top(r, s.reply);
    return 0;
}

/* ---- clusters ---- */

static int by_cluster(const void *left, const void *right)
{
    const struct report_row *a = left, *b = right;
    int order = text_order(a->cluster, b->cluster);

    return order ? order : tres_order(a, b);
}

static int fill_clusters(struct sreport *r)
{
    const UsageReply *reply;

    if (ask_usage(r, true, &reply))
        return 1;
    if (reply->hidden) {
        cli_error(&r->cli, "Access/permission denied: PrivateData has 'usage'");
        return 1;
    }
    for (size_t i = 0; i < reply->n_clusters; i++) {
        const UsageCluster *from = reply->clusters[i];
        if (!report_list_has(&r->tres, from->tres))
            continue;
        vec_push(&r->rows,
                 (struct report_row){ .cluster = from->cluster,
                                      .tres = from->tres,
                                      .alloc = from->alloc + from->reserved,
                                      .down = from->down,
                                      .planned_down = from->planned_down,
                                      .idle = from->idle,
                                      .planned = from->planned,
                                      .over = from->over,
                                      .reported = from->total,
                                      .total = from->total,
                                      .count = from->total / MAX(r->end_s - r->start_s, 1) });
    }
    sorting = r;
    if (r->rows.len)
        qsort(r->rows.items, r->rows.len, sizeof(struct report_row), by_cluster);
    return 0;
}

/* ---- sizes of jobs ---- */

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* "50,100": 0-49, 50-99, >= 100. */
static int read_groups(struct sreport *r, const SizesReply *reply)
{
    const char *cursor = r->grouping ? r->grouping : "50,250,500,1000";
    struct span word;

    vec_clear(&r->groups);
    r->individual = r->grouping && strcasecmp(r->grouping, "individual") == 0;
    if (!r->individual)
        vec_push(&r->groups, 0);
    while (!r->individual && str_next(&cursor, ",", &word)) {
        char *end;
        int64_t bound = strtoll(word.ptr, &end, 10);
        if (end != word.ptr + word.len || bound <= r->groups.items[r->groups.len - 1]) {
            cli_error(&r->cli, "Grouping=%s: expected sizes that grow, such as 50,250,500",
                      r->grouping);
            return 1;
        }
        vec_push(&r->groups, bound);
    }
    for (size_t i = 0; r->individual && i < reply->n_rows; i++) {
        bool known = false;
        for (size_t k = 0; k < r->groups.len; k++)
            known = known || r->groups.items[k] == reply->rows[i]->size;
        if (!known)
            vec_push(&r->groups, reply->rows[i]->size);
    }
    if (r->individual && r->groups.len)
        qsort(r->groups.items, r->groups.len, sizeof(int64_t), by_number);
    return 0;
}

static size_t group_of(const struct sreport *r, int64_t size)
{
    size_t at = 0;

    while (at + 1 < r->groups.len && r->groups.items[at + 1] <= size)
        at++;
    return at;
}

/*
 * The account that a job counts for: itself (FlatView), the listed one that it is or is below (root when none is),
 * or the account next below that (AcctAsParent). NULL: none.
 */
static const char *size_account(struct sreport *r, const SizesRow *row)
{
    const char *path[PATH_MOST];
    size_t count = path_of(r, row->cluster, row->account, path, PATH_MOST);

    for (size_t i = 0; i < count; i++) {
        if (r->accounts.count && !report_list_has(&r->accounts, path[i]))
            continue;
        if (r->flat)
            return row->account;
        return path[r->as_parent && i + 1 < count ? i + 1 : i];
    }
    return NULL;
}

static void add_size(struct sums *s, const SizesRow *from)
{
    struct sreport *r = s->r;
    struct arena *arena = &r->cli.arena;
    const char *account = size_account(r, from);
    CLEANUP(str_done) struct str key = { 0 };

    if (!account)
        return;
    if (r->id == REPORT_SIZES_WCKEY)
        str_add(&key, from->wckey);
    else if (r->id == REPORT_SIZES_BOTH)
        str_addf(&key, "%s:%s", account, from->wckey);
    else
        str_add(&key, account);
    const char *name = arena_strdup(arena, str_text(&key));
    str_addf(&key, "\1%s", from->cluster);
    struct report_row *row = row_of(s, str_text(&key));
    if (!row->cluster) {
        row->cluster = from->cluster;
        row->account = row->wckey = name;
        row->sizes = ARENA_ARRAY(arena, int64_t, r->groups.len + 1);
    }
    int64_t amount = r->job_count ? from->jobs : from->amount;
    row->sizes[group_of(r, from->size)] += amount;
    row->used += amount;
}

static int by_name(const void *left, const void *right)
{
    const struct report_row *a = left, *b = right;
    int order = text_order(a->cluster, b->cluster);

    return order ? order : text_order(a->account, b->account);
}

static void read_numbers(struct sreport *r, const struct report_list *list, uint32_t **out,
                         size_t *count)
{
    *out = ARENA_ARRAY(&r->cli.arena, uint32_t, list->count + 1);
    for (size_t i = 0; i < list->count; i++)
        (*out)[(*count)++] = (uint32_t)strtoul(list->items[i], NULL, 10);
}

static int ask_sizes(struct sreport *r, const SizesReply **out)
{
    SizesRequest request = SIZES_REQUEST__INIT;
    ProtobufCMessage *message = NULL;

    request.has_start_s = request.has_end_s = request.has_all_clusters = true;
    request.start_s = r->start_s;
    request.end_s = r->end_s;
    request.all_clusters = r->all_clusters;
    request.clusters = r->clusters.items;
    request.n_clusters = r->clusters.count;
    request.users = r->users.items;
    request.n_users = r->users.count;
    request.partitions = r->partitions.items;
    request.n_partitions = r->partitions.count;
    request.wckeys = r->wckeys.items;
    request.n_wckeys = r->wckeys.count;
    request.nodes = (char *)(uintptr_t)r->nodes;
    request.tres = r->tres.items[0];
    read_numbers(r, &r->gids, &request.gids, &request.n_gids);
    read_numbers(r, &r->jobs, &request.jobs, &request.n_jobs);
    if (ask(r, "/spur.Reports/Sizes", &request.base, &sizes_reply__descriptor, &message))
        return 1;
    *out = (const void *)message;
    return 0;
}

static int fill_sizes(struct sreport *r)
{
    struct sums s = { .r = r };
    const SizesReply *reply;

    if (load_tables(r) || ask_sizes(r, &reply) || read_groups(r, reply))
        return 1;
    map_init(&s.rows);
    for (size_t i = 0; i < reply->n_rows; i++)
        add_size(&s, reply->rows[i]);
    map_done(&s.rows);
    for (size_t i = 0; i < r->rows.len; i++) {
        for (size_t k = 0; k < r->rows.len; k++) {
            if (str_eq(r->rows.items[i].cluster, r->rows.items[k].cluster))
                r->rows.items[i].total += r->rows.items[k].used;
        }
    }
    if (r->rows.len)
        qsort(r->rows.items, r->rows.len, sizeof(struct report_row), by_name);
    return 0;
}

/* ---- reservations ---- */

static void add_reservation(struct sreport *r, const ReservationRow *from)
{
    bool all = r->tres_text && strcasecmp(r->tres_text, "all") == 0;

    for (size_t i = 0; i < from->n_tres; i++) {
        const ReservationTres *tres = from->tres[i];
        if (!all && !report_list_has(&r->tres, tres->tres))
            continue;
        vec_push(&r->rows,
                 (struct report_row){
                     .cluster = from->cluster,
                     .id = from->id,
                     .name = from->name,
                     .nodes = from->nodes,
                     .flags = from->flags,
                     .associations = str_is_empty(from->accounts) ? from->users : from->accounts,
                     .start_s = from->start_s,
                     .end_s = from->end_s,
                     .tres = tres->tres,
                     .alloc = tres->alloc,
                     .idle = MAX(tres->total - tres->alloc, 0),
                     .total = tres->total,
                     .count = tres->total / MAX(MIN(from->end_s, MIN(r->end_s, r->now_s)) -
                                                    MAX(from->start_s, r->start_s),
                                                1) });
    }
}

static int fill_reservations(struct sreport *r)
{
    ReservationsRequest request = RESERVATIONS_REQUEST__INIT;
    ProtobufCMessage *message = NULL;

    request.has_start_s = request.has_end_s = request.has_all_clusters = true;
    request.start_s = r->start_s;
    request.end_s = r->end_s;
    request.all_clusters = r->all_clusters;
    request.clusters = r->clusters.items;
    request.n_clusters = r->clusters.count;
    request.names = r->names.items;
    request.n_names = r->names.count;
    request.nodes = (char *)(uintptr_t)r->nodes;
    if (ask(r, "/spur.Reports/Reservations", &request.base, &reservations_reply__descriptor,
            &message))
        return 1;
    const ReservationsReply *reply = (const void *)message;
    for (size_t i = 0; i < reply->n_rows; i++)
        add_reservation(r, reply->rows[i]);
    return 0;
}

int report_fill(struct sreport *r)
{
    switch (r->id) {
    case REPORT_CLUSTER:
        return fill_clusters(r);
    case REPORT_SIZES_ACCOUNT:
    case REPORT_SIZES_BOTH:
    case REPORT_SIZES_WCKEY:
        return fill_sizes(r);
    case REPORT_RESERVATION:
        return fill_reservations(r);
    default:
        return fill_sums(r);
    }
}
