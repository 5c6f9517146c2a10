/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sacctmgr_records.c - `sacctmgr show event`, `show reservation`, `show runawayjobs`
 *
 * Runaway jobs run in the history and are not known to the controller: the two are compared here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hostlist.h"
#include "base/map.h"
#include "base/timefmt.h"
#include "cli/accounting.h"
#include "cli/sacctmgr.h"
#include "client/client.h"
#include "proto/controller.pb-c.h"
#include "schema/names.h"

/* What a line is about; one of them is there. */
struct record {
    const AcctEvent *event;
    const AcctReservation *resv;
    const AcctJob *job;
};

enum kind { KIND_EVENT, KIND_RESV, KIND_RUNAWAY };

struct query {
    struct manager *m;
    enum kind kind;
    const char *format;
    struct names clusters, names, users, ids, reasons, states;
    struct hostlist nodes;
    bool only_cluster, only_nodes, only_open;
    uint32_t min_cpus, max_cpus;
    int64_t start_s, end_s;
};

/* ---- cells ---- */

typedef void cell_fn(const struct record *record, struct str *out);

static void add_point(struct str *out, int64_t us)
{
    if (us)
        timefmt_write_point(out, us / 1000000, 0, NULL);
    else
        str_add(out, "Unknown");
}

static void cell_cluster(const struct record *r, struct str *out)
{
    str_add(out, r->event ? r->event->cluster : r->resv ? r->resv->cluster : r->job->cluster);
}

static void cell_start(const struct record *r, struct str *out)
{
    add_point(out, r->event ? r->event->start_us : r->resv ? r->resv->start_us : r->job->start_us);
}

static void cell_end(const struct record *r, struct str *out)
{
    add_point(out, r->event ? r->event->end_us : r->resv ? r->resv->end_us : r->job->end_us);
}

static void cell_submit(const struct record *r, struct str *out)
{
    add_point(out, r->job->job->status->submit_us);
}

static void cell_duration(const struct record *r, struct str *out)
{
    int64_t end_us = r->event->end_us ? r->event->end_us : (int64_t)time(NULL) * 1000000;

    timefmt_write_duration(out, (end_us - r->event->start_us) / 1000000, TIMEFMT_LONG);
}

static bool is_cluster(const AcctEvent *event)
{
    return str_is_empty(event->node);
}

static void cell_event(const struct record *r, struct str *out)
{
    str_add(out, is_cluster(r->event) ? "Cluster" : "Node");
}

static void cell_event_raw(const struct record *r, struct str *out)
{
    str_add(out, is_cluster(r->event) ? "1" : "2");
}

static void cell_node(const struct record *r, struct str *out)
{
    str_add(out, r->event->node);
}

static void cell_nodes(const struct record *r, struct str *out)
{
    str_add(out, r->event ? r->event->nodes : r->resv->nodes);
}

static void cell_reason(const struct record *r, struct str *out)
{
    str_add(out, r->event->reason);
}

static void cell_state(const struct record *r, struct str *out)
{
    if (r->job)
        str_add(out, job_state_text(r->job->state, 0));
    else if (is_cluster(r->event))
        return;
    else if (r->event->state == NODE_DOWN)
        node_state_add_text(out, NODE_DOWN, r->event->flags & NODE_FLAG_NO_RESPOND);
    else
        str_add(out, r->event->flags & NODE_FLAG_FAIL ? "FAIL" : "DRAIN");
}

static void cell_state_raw(const struct record *r, struct str *out)
{
    str_addf(out, "%u", is_cluster(r->event) ? 0 : r->event->state | r->event->flags);
}

static void cell_tres(const struct record *r, struct str *out)
{
    str_add(out, r->event ? r->event->tres : r->resv->tres);
}

static void cell_user(const struct record *r, struct str *out)
{
    if (!str_is_empty(r->event->reason_user))
        str_addf(out, "%s(%u)", r->event->reason_user, r->event->reason_uid);
}

static void cell_name(const struct record *r, struct str *out)
{
    const char *name = r->resv ? r->resv->name : r->job->job->spec ? r->job->job->spec->name : NULL;

    str_add(out, name ? name : "");
}

static void cell_id(const struct record *r, struct str *out)
{
    str_addf(out, "%u", r->resv ? r->resv->id : r->job->job->id);
}

static void cell_partition(const struct record *r, struct str *out)
{
    str_add(out, r->job->job->status->partition ? r->job->job->status->partition : "");
}

static void cell_flags(const struct record *r, struct str *out)
{
    str_add(out, r->resv->flags);
}

/* Who may use it, as the database has no ids for groups. */
static void cell_assocs(const struct record *r, struct str *out)
{
    str_addf(out, "%s%s%s", r->resv->accounts, *r->resv->accounts && *r->resv->users ? "," : "",
             r->resv->users);
}

static void cell_unused(const struct record *r, struct str *out)
{
    str_addf(out, "%llu.000000", (unsigned long long)r->resv->unused_s);
}

enum { EVENT = 1 << KIND_EVENT, RESV = 1 << KIND_RESV, RUN = 1 << KIND_RUNAWAY };

static const struct column {
    const char *name, *also;
    unsigned kinds;
    const char *header;
    int width;
    cell_fn *cell;
} columns[] = {
    { "Associations", NULL, RESV, "Assocs", 30, cell_assocs },
    { "Cluster", NULL, EVENT | RESV | RUN, "Cluster", 10, cell_cluster },
    { "ClusterNodes", NULL, EVENT, "Cluster Nodes", 20, cell_nodes },
    { "Duration", NULL, EVENT, "Duration", 13, cell_duration },
    { "End", "TimeEnd", EVENT | RESV | RUN, "TimeEnd", 19, cell_end },
    { "Event", NULL, EVENT, "Event", 7, cell_event },
    { "EventRaw", NULL, EVENT, "EventRaw", 8, cell_event_raw },
    { "Flags", NULL, RESV, "Flags", 20, cell_flags },
    { "ID", NULL, RESV | RUN, "ID", 6, cell_id },
    { "Name", NULL, RESV, "Name", 15, cell_name },
    { "Name", NULL, RUN, "Name", 10, cell_name },
    { "NodeName", NULL, EVENT, "NodeName", -15, cell_node },
    { "NodeNames", NULL, RESV, "NodeNames", 20, cell_nodes },
    { "Partition", NULL, RUN, "Partition", 10, cell_partition },
    { "Reason", NULL, EVENT, "Reason", 30, cell_reason },
    { "Start", "TimeStart", EVENT | RESV | RUN, "TimeStart", 19, cell_start },
    { "State", NULL, EVENT, "State", 6, cell_state },
    { "State", NULL, RUN, "State", 10, cell_state },
    { "StateRaw", NULL, EVENT, "StateRaw", 8, cell_state_raw },
    { "TimeSubmit", "Submit", RUN, "TimeSubmit", 19, cell_submit },
    { "TRES", NULL, EVENT, "TRES", 20, cell_tres },
    { "TRES", NULL, RESV, "TRES", 30, cell_tres },
    { "UnusedWall", NULL, RESV, "UnusedWall", 10, cell_unused },
    { "User", NULL, EVENT, "User", 10, cell_user },
};

static const char *const formats[] = {
    [KIND_EVENT] = "Cluster,NodeName,Start,End,State,Reason,User",
    [KIND_RESV] = "Cluster,Name,TRES,Start,End,UnusedWall",
    [KIND_RUNAWAY] = "ID,Name,Partition,Cluster,State,TimeSubmit,Start,End",
};

struct shown {
    const struct column *column;
    int width;
};
typedef VEC(struct shown) shown_list;

static bool read_columns(const struct query *q, shown_list *out)
{
    const char *cursor = q->format ? q->format : formats[q->kind];
    struct span word;

    while (str_next(&cursor, ",", &word)) {
        char *name = arena_strndup(&q->m->cli.arena, word.ptr, word.len);
        char *percent = strchr(name, '%');
        struct shown shown = { 0 };
        if (percent)
            *percent = '\0';
        for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
            const struct column *at = &columns[i];
            if (at->kinds & 1U << q->kind &&
                (str_ieq(name, at->name) || (at->also && str_ieq(name, at->also)) ||
                 (!shown.column && word_is(name, at->name))))
                shown = (struct shown){ at, at->width };
        }
        if (!shown.column) {
            fprintf(stderr, " Unknown field '%s'\n", name);
            return false;
        }
        if (percent)
            shown.width = atoi(percent + 1);
        vec_push(out, shown);
    }
    return true;
}

static void print_cell(struct manager *m, const struct shown *shown, const char *text, bool last)
{
    size_t width = (size_t)abs(shown->width), len = strlen(text), part = MIN(len, width);

    if (m->parsable || m->parsable2) {
        str_addf(&m->out, "%s%s", text, last && !m->parsable ? "" : "|");
        return;
    }
    if (shown->width > 0)
        str_add_fill(&m->out, ' ', width - part);
    str_add_len(&m->out, text, part);
    if (len > width && width)
        m->out.data[m->out.len - 1] = '+';
    if (shown->width < 0)
        str_add_fill(&m->out, ' ', width - part);
    str_add_char(&m->out, ' ');
}

static void print_header(struct manager *m, const shown_list *shown)
{
    if (m->no_header)
        return;
    for (size_t i = 0; i < shown->len; i++)
        print_cell(m, &shown->items[i], shown->items[i].column->header, i + 1 == shown->len);
    str_add_char(&m->out, '\n');
    for (size_t i = 0; i < shown->len && !m->parsable && !m->parsable2; i++) {
        str_add_fill(&m->out, '-', (size_t)abs(shown->items[i].width));
        str_add(&m->out, i + 1 < shown->len ? " " : " \n");
    }
}

static void print_record(struct manager *m, const shown_list *shown, const struct record *record)
{
    CLEANUP(str_done) struct str cell = { 0 };

    for (size_t i = 0; i < shown->len; i++) {
        str_clear(&cell);
        shown->items[i].column->cell(record, &cell);
        print_cell(m, &shown->items[i], str_text(&cell), i + 1 == shown->len);
    }
    str_add_char(&m->out, '\n');
}

/* ---- conditions ---- */

static bool read_point(const char *text, int64_t *out)
{
    struct err err = { 0 };

    if (timefmt_read_point(text, time(NULL), TIMEFMT_PAST, out, &err) == 0)
        return true;
    fprintf(stderr, " %s\n", err.text);
    return false;
}

static bool read_range(struct query *q, const char *key, const char *value)
{
    uint32_t *into = str_ieq(key, "MinCPUs") ? &q->min_cpus : &q->max_cpus;
    uint64_t number;

    if (!str_to_u64(value, UINT32_MAX, &number))
        return false;
    *into = (uint32_t)number;
    return true;
}

static bool read_event_word(struct query *q, const struct word *word)
{
    if (!word->value) {
        if (str_ieq(word->key, "All_Time")) {
            q->start_s = 1;
            return true;
        }
        return str_ieq(word->key, "All_Clusters") || str_ieq(word->key, "where");
    }
    if (word_is(word->key, "Event")) {
        q->only_cluster = str_istarts("cluster", word->value);
        q->only_nodes = str_istarts("node", word->value);
        return q->only_cluster || q->only_nodes;
    }
    if (word_is(word->key, "CondFlags"))
        return q->only_open = str_ieq(word->value, "open");
    if (str_ieq(word->key, "MinCPUs") || str_ieq(word->key, "MaxCPUs"))
        return read_range(q, word->key, word->value);
    if (word_is(word->key, "Reason")) {
        q->reasons = names_of(q->m, word->value);
        return true;
    }
    if (word_is(word->key, "States")) {
        q->states = names_of(q->m, word->value);
        return true;
    }
    if (word_is(word->key, "Users")) {
        q->users = names_of(q->m, word->value);
        return true;
    }
    return false;
}

static bool read_word(struct query *q, const struct word *word)
{
    if (word->value && word_is(word->key, "Format"))
        return (q->format = word->value) != NULL;
    if (word->value && word_is(word->key, "Clusters")) {
        q->clusters = names_of(q->m, word->value);
        return true;
    }
    if (q->kind == KIND_RUNAWAY)
        return !word->value && str_ieq(word->key, "where");
    if (word->value && str_ieq(word->key, "Start"))
        return read_point(word->value, &q->start_s);
    if (word->value && str_ieq(word->key, "End"))
        return read_point(word->value, &q->end_s);
    if (word->value && word_is(word->key, "Nodes"))
        return hostlist_parse(&q->nodes, word->value, NULL) == 0;
    if (q->kind == KIND_EVENT)
        return read_event_word(q, word);
    if (word->value && str_ieq(word->key, "ID"))
        q->ids = names_of(q->m, word->value);
    else if (word_is(word->key, "Names") && word->value)
        q->names = names_of(q->m, word->value);
    else if (!word->value && !str_ieq(word->key, "where"))
        q->names = names_of(q->m, word->key);
    else
        return !word->value;
    return true;
}

static uint32_t cpus_of(const char *tres)
{
    return tres && str_starts(tres, "cpu=") ? (uint32_t)strtoul(tres + 4, NULL, 10) : 0;
}

static bool picks_event(const struct query *q, const AcctEvent *event)
{
    CLEANUP(str_done) struct str state = { 0 };
    struct record record = { .event = event };
    bool cluster = is_cluster(event);

    if ((q->only_cluster && !cluster) || (q->only_nodes && cluster) ||
        (q->only_open && event->end_us) || !names_have(&q->clusters, event->cluster) ||
        (q->min_cpus && cpus_of(event->tres) < q->min_cpus) ||
        (q->max_cpus && cpus_of(event->tres) > q->max_cpus))
        return false;
    if (hostlist_count(&q->nodes) && hostlist_find(&q->nodes, event->node) < 0)
        return false;
    if (q->users.count && !names_have(&q->users, event->reason_user))
        return false;
    cell_state(&record, &state);
    if (q->states.count) {
        bool found = false;
        for (size_t i = 0; i < q->states.count && !cluster; i++)
            found = found || str_istarts(str_text(&state), q->states.items[i]);
        if (!found)
            return false;
    }
    for (size_t i = 0; i < q->reasons.count; i++) {
        if (strcasestr(event->reason, q->reasons.items[i]))
            return true;
    }
    return q->reasons.count == 0;
}

static bool picks_resv(const struct query *q, const AcctReservation *resv)
{
    CLEANUP(hostlist_done) struct hostlist nodes = { 0 };
    char id[16];

    snprintf(id, sizeof(id), "%u", resv->id);
    if (!names_have(&q->clusters, resv->cluster) || !names_have(&q->names, resv->name) ||
        !names_have(&q->ids, id))
        return false;
    if (!hostlist_count(&q->nodes))
        return true;
    return hostlist_parse(&nodes, resv->nodes, NULL) == 0 &&
           hostlist_intersect(&nodes, &q->nodes, NULL) == 0 && hostlist_count(&nodes) > 0;
}

/* ---- runaway jobs ---- */

struct runaway {
    struct query *q;
    VEC(AcctJob *) jobs;
    struct map live; /* ids of jobs that have not ended for the controller */
};

static void keep_open(void *ctx, const AcctJob *job, int64_t now_us)
{
    struct runaway *runaway = ctx;
    size_t len = acct_job__get_packed_size(job);
    CLEANUP(freep) uint8_t *packed = mem_new(len + 1);

    (void)now_us;
    if (job->has_end_us || !job->job || !job->job->status)
        return;
    acct_job__pack(job, packed);
    vec_push(&runaway->jobs, acct_job__unpack(NULL, len, packed));
}

static int read_live(struct runaway *runaway, struct err *err)
{
    struct cli *cli = &runaway->q->m->cli;
    ListJobsRequest request = LIST_JOBS_REQUEST__INIT;
    int next = CLIENT_MESSAGE;

    request.has_all_states = request.all_states = true;
    request.has_hidden_too = request.hidden_too = true;
    if (cli_connect(cli, err) < 0)
        return -(int)err->code;
    struct client_stream *stream = client_stream_open(
        cli->client,
        &(struct client_stream_options){ .path = "/spur.Controller/ListJobs",
                                         .message = &request.base,
                                         .reply_type = &list_jobs_reply__descriptor },
        err);
    if (!stream)
        return -(int)err->code;
    while (next == CLIENT_MESSAGE) {
        struct arena arena;
        ProtobufCMessage *message = NULL;
        arena_init(&arena);
        next = client_stream_next(stream, &arena, &message, err);
        const ListJobsReply *reply = (const void *)message;
        for (size_t i = 0; next == CLIENT_MESSAGE && i < reply->n_jobs; i++)
            if (!reply->jobs[i]->status || !job_state_ended(reply->jobs[i]->status->state))
                map_put_num(&runaway->live, reply->jobs[i]->id, runaway);
        arena_done(&arena);
    }
    client_stream_free(stream);
    return next < 0 ? next : 0;
}

static void drop_known(struct runaway *runaway)
{
    size_t kept = 0;

    for (size_t i = 0; i < runaway->jobs.len; i++) {
        AcctJob *job = runaway->jobs.items[i];
        if (map_get_num(&runaway->live, job->job->id) ||
            !names_have(&runaway->q->clusters, job->cluster))
            acct_job__free_unpacked(job, NULL);
        else
            runaway->jobs.items[kept++] = job;
    }
    runaway->jobs.len = kept;
}

static int fix(struct runaway *runaway)
{
    struct manager *m = runaway->q->m;
    FixRunawayRequest request = FIX_RUNAWAY_REQUEST__INIT;
    uint64_t *ids = ARENA_ARRAY(&m->cli.arena, uint64_t, runaway->jobs.len);
    ProtobufCMessage *message;
    struct err err = { 0 };

    cli_flush(&m->out);
    if (m->read_only) {
        cli_error(&m->cli, "Can't run this command in readonly mode.");
        return 1;
    }
    if (!m->immediate && !manager_agrees("\nWould you like to fix these runaway jobs?\n"
                                         "(This will set the end time for each job to its start "
                                         "and set the state to completed.)\n"))
        return 0;
    for (size_t i = 0; i < runaway->jobs.len; i++)
        ids[i] = runaway->jobs.items[i]->db_id;
    request.n_db_ids = runaway->jobs.len;
    request.db_ids = ids;
    if (client_call(m->client, "/spur.Accounting/FixRunaway", &request.base,
                    &fix_runaway_reply__descriptor, &m->cli.arena, &message, &err) < 0)
        return accounting_error(&m->cli, &err);
    return 0;
}

static int show_runaway(struct runaway *runaway, const shown_list *shown)
{
    struct manager *m = runaway->q->m;
    ListHistoryRequest request = LIST_HISTORY_REQUEST__INIT;
    struct err err = { 0 };
    char *cluster = NULL;

    request.has_start_us = true;
    request.start_us = 1;
    request.has_no_steps = request.no_steps = request.has_duplicates = request.duplicates = true;
    if (read_live(runaway, &err) < 0 || /* first: what ends between the two is not runaway */
        accounting_list(&m->cli, &request, keep_open, runaway, &cluster, &err) < 0)
        return accounting_error(&m->cli, &err);
    drop_known(runaway);
    if (!runaway->jobs.len) {
        str_addf(&m->out, "Runaway Jobs: No runaway jobs found on cluster %s\n",
                 cluster ? cluster : "");
        return 0;
    }
    str_add(&m->out, "NOTE: Runaway jobs are jobs that don't exist in the controller but have a "
                     "start time and no end time in the database\n");
    print_header(m, shown);
    for (size_t i = 0; i < runaway->jobs.len; i++)
        print_record(m, shown, &(struct record){ .job = runaway->jobs.items[i] });
    return manager_connect(m) ? 1 : fix(runaway);
}

static int list_runaway(struct query *q, const shown_list *shown)
{
    struct runaway runaway = { .q = q };

    map_init(&runaway.live);
    int code = show_runaway(&runaway, shown);
    for (size_t i = 0; i < runaway.jobs.len; i++)
        acct_job__free_unpacked(runaway.jobs.items[i], NULL);
    vec_done(&runaway.jobs);
    map_done(&runaway.live);
    return code;
}

/* ---- the command ---- */

static int list_records(struct query *q, const shown_list *shown)
{
    struct manager *m = q->m;
    ListRecordsRequest request = LIST_RECORDS_REQUEST__INIT;
    ProtobufCMessage *message;
    struct err err = { 0 };

    request.has_start_us = request.has_events = request.has_reservations = true;
    request.start_us = q->start_s * 1000000;
    request.has_end_us = q->end_s != 0;
    request.end_us = q->end_s * 1000000;
    request.events = q->kind == KIND_EVENT;
    request.reservations = q->kind == KIND_RESV;
    if (manager_connect(m))
        return 1;
    if (client_call(m->client, "/spur.Accounting/ListRecords", &request.base,
                    &list_records_reply__descriptor, &m->cli.arena, &message, &err) < 0)
        return accounting_error(&m->cli, &err);
    const ListRecordsReply *reply = (const void *)message;
    print_header(m, shown);
    for (size_t i = 0; i < reply->n_events; i++) {
        if (picks_event(q, reply->events[i]))
            print_record(m, shown, &(struct record){ .event = reply->events[i] });
    }
    for (size_t i = 0; i < reply->n_reservations; i++) {
        if (picks_resv(q, reply->reservations[i]))
            print_record(m, shown, &(struct record){ .resv = reply->reservations[i] });
    }
    return 0;
}

/* Since when, unless something says so: the midnight before the last one; for states, always. */
static void set_window(struct query *q)
{
    time_t now = time(NULL);
    struct tm day;

    if (q->start_s)
        return;
    localtime_r(&now, &day);
    day.tm_hour = day.tm_min = day.tm_sec = 0;
    day.tm_mday--;
    day.tm_isdst = -1;
    q->start_s = q->states.count || q->only_open ? 1 : (int64_t)mktime(&day);
}

int manager_records(struct manager *m, const char *entity, const words *specs)
{
    struct query q = { .m = m };
    shown_list shown = { 0 };
    int code = 1;

    if (word_is(entity, "events"))
        q.kind = KIND_EVENT;
    else if (word_is(entity, "reservations"))
        q.kind = KIND_RESV;
    else if (word_is(entity, "runawayjobs"))
        q.kind = KIND_RUNAWAY;
    else
        return -1;
    bool good = true;
    for (size_t i = 0; i < specs->len && good; i++) {
        const struct word *word = &specs->items[i];
        good = read_word(&q, word);
        if (!good)
            fprintf(stderr, " Unknown condition: %s%s%s\n", word->key, word->value ? "=" : "",
                    word->value ? word->value : "");
    }
    set_window(&q);
    if (good && read_columns(&q, &shown))
        code = q.kind == KIND_RUNAWAY ? list_runaway(&q, &shown) : list_records(&q, &shown);
    vec_done(&shown);
    hostlist_done(&q.nodes);
    return code;
}
