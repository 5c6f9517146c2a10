/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.c - GET /metrics: the cluster's figures, in the text format of OpenMetrics
 *
 * (1) Without a token there are totals only, as spurrestd itself is told them. With one: jobs by state, partition and account,
 *     and those who have most jobs, of what the caller may see.
 * (2) The number of series is bounded: SERIES_MOST partitions and accounts (the rest is summed as "other"), TOP_USERS users.
 */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "proto/controller.pb-c.h"
#include "schema/job_view.h"
#include "schema/names.h"
#include "schema/node_view.h"
#include "spurrestd/answer.h"
#include "spurrestd/ask.h"
#include "spurrestd/events.h"
#include "spurrestd/rest.h"
#include "spurrestd/routes.h"

enum { SERIES_MOST = 200, TOP_USERS = 20, STATES = 32 };
static const char TYPE[] = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/* Jobs of one partition, account or user. */
struct tally {
    uint64_t by_state[STATES], all;
};

struct gathering {
    struct str out;
    DiagRequest diag;
    ListJobsRequest jobs;
    ListNodesRequest nodes;
    struct tally total;
    struct map partitions, accounts, users;
};

/* ---- writing ---- */

static void family(struct str *out, const char *name, const char *type, const char *help)
{
    str_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void gauge(struct str *out, const char *name, const char *help, uint64_t value)
{
    family(out, name, "gauge", help);
    str_addf(out, "%s %llu\n", name, (unsigned long long)value);
}

static void counter(struct str *out, const char *name, const char *help, uint64_t value)
{
    family(out, name, "counter", help);
    str_addf(out, "%s_total %llu\n", name, (unsigned long long)value);
}

/* Seconds from microseconds. */
static void seconds(struct str *out, const char *name, const char *type, const char *help,
                    uint64_t us)
{
    family(out, name, type, help);
    str_addf(out, "%s%s %llu.%06llu\n", name, strcmp(type, "counter") == 0 ? "_total" : "",
             (unsigned long long)(us / 1000000), (unsigned long long)(us % 1000000));
}

static void add_label(struct str *out, const char *name, const char *value)
{
    str_addf(out, "%s=\"", name);
    for (; *value; value++) {
        if (*value == '"' || *value == '\\')
            str_add_char(out, '\\');
        if (*value == '\n')
            str_add(out, "\\n");
        else
            str_add_char(out, *value);
    }
    str_add_char(out, '"');
}

/* ---- totals ---- */

static void add_totals(struct str *out, const DiagReply *d)
{
    counter(out, "spur_jobs_submitted", "Jobs that were submitted.", d->jobs_submitted);
    counter(out, "spur_jobs_started", "Jobs that were started.", d->jobs_started);
    counter(out, "spur_jobs_completed", "Jobs that ended by themselves.", d->jobs_completed);
    counter(out, "spur_jobs_cancelled", "Jobs that were cancelled.", d->jobs_cancelled);
    counter(out, "spur_jobs_failed", "Jobs that failed.", d->jobs_failed);
    gauge(out, "spur_jobs_pending", "Jobs that wait.", d->jobs_pending);
    gauge(out, "spur_jobs_running", "Jobs that run.", d->jobs_running);
    gauge(out, "spur_nodes_connected", "Nodes whose agent is connected.", d->nodes_connected);
    counter(out, "spur_log_batches", "Batches that were written to the durable log.",
            d->log_batches);
    counter(out, "spur_log_commands", "Commands that were written to the durable log.",
            d->log_commands);
    counter(out, "spur_planner_passes", "Passes of the planner.", d->plans);
    seconds(out, "spur_planner_seconds", "counter", "Time that the planner took.",
            d->plan_us_total);
    seconds(out, "spur_planner_longest_seconds", "gauge", "The planner's longest pass.",
            d->plan_us_max);
    counter(out, "spur_planner_backfilled_jobs",
            "Jobs that started while an earlier one had a planned start.", d->plan_backfilled);
    counter(out, "spur_controller_calls", "Calls that the controller answered.", d->calls);
    seconds(out, "spur_controller_longest_turn_seconds", "gauge",
            "The longest time for which the controller answered nobody.", d->turn_us_max);
    gauge(out, "spur_controller_memory_bytes", "Memory of the controller.", d->memory_bytes);
    gauge(out, "spur_accounting_unsent", "Journal entries that accounting has not acknowledged.",
          d->journal_unsent);
}

static void add_own(struct str *out, const struct rest *rest)
{
    counter(out, "spur_rest_requests", "HTTP requests that were read.", rest->stats.requests);
    counter(out, "spur_rest_refused", "HTTP connections and requests that were refused.",
            rest->stats.refused);
    gauge(out, "spur_rest_connections", "HTTP connections that are open.", rest->conn_count);
    gauge(out, "spur_rest_listeners", "Callers who listen to events.",
          events_listening(rest->events));
}

static void gathering_free(struct exchange *x)
{
    struct gathering *g = x->data;
    struct map *maps[] = { &g->partitions, &g->accounts, &g->users };

    for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
        map_each (entry, maps[i])
            free(entry->value);
        map_done(maps[i]);
    }
    str_done(&g->out);
    x->on_gone = NULL;
}

static void send_metrics(struct exchange *x)
{
    struct gathering *g = x->data;
    struct str out = g->out;

    g->out = (struct str){ 0 };
    str_add(&out, "# EOF\n");
    gathering_free(x);
    exchange_reply(x, 200, TYPE, &out);
}

static void failed(struct exchange *x, const struct err *err)
{
    gathering_free(x);
    answer_error(x, err, NULL);
}

/* ---- of what the caller may see ---- */

static void count(struct map *map, const char *name, uint32_t state, size_t most)
{
    const char *key = str_is_empty(name) ? "none" : name;
    struct tally *tally = map_get(map, key);

    if (!tally && map_len(map) >= most) /* (2) */
        tally = map_get(map, key = "other");
    if (!tally) {
        tally = NEW(struct tally);
        map_put(map, key, tally);
    }
    tally->by_state[MIN(state, STATES - 1u)]++;
    tally->all++;
}

static void on_jobs(struct exchange *x, const ProtobufCMessage *message)
{
    const ListJobsReply *reply = (const void *)message;
    struct gathering *g = x->data;

    for (size_t i = 0; i < reply->n_jobs; i++) {
        const Job *job = reply->jobs[i];
        const JobStatus *status = job_status(job);
        g->total.by_state[MIN((uint32_t)status->state, STATES - 1u)]++;
        count(&g->partitions, status->partition ? status->partition : job_spec(job)->partition,
              status->state, SERIES_MOST);
        count(&g->accounts, status->account, status->state, SERIES_MOST);
        count(&g->users, job_owner(job)->user, status->state, 1000000);
    }
}

static void add_states(struct str *out, const char *name, const char *label, const char *value,
                       const struct tally *tally)
{
    for (uint32_t state = 0; state < STATES; state++) {
        if (!tally->by_state[state])
            continue;
        str_addf(out, "%s{", name);
        if (label) {
            add_label(out, label, value);
            str_add_char(out, ',');
        }
        add_label(out, "state", name_of(&job_state_names, state));
        str_addf(out, "} %llu\n", (unsigned long long)tally->by_state[state]);
    }
}

static void add_map(struct str *out, const char *name, const char *label, const char *help,
                    const struct map *map)
{
    family(out, name, "gauge", help);
    map_each (entry, map)
        add_states(out, name, label, entry->key, entry->value);
}

static int by_jobs(const void *a, const void *b)
{
    const struct map_entry *left = *(struct map_entry *const *)a,
                           *right = *(struct map_entry *const *)b;
    const struct tally *x = left->value, *y = right->value;

    return x->all == y->all ? strcmp(left->key, right->key) : x->all < y->all ? 1 : -1;
}

static void add_users(struct str *out, const struct map *users)
{
    VEC(struct map_entry *) list = { 0 };

    map_each (entry, users)
        vec_push(&list, entry);
    if (list.len)
        qsort(list.items, list.len, sizeof(list.items[0]), by_jobs);
    family(out, "spur_user_jobs", "gauge", "Jobs of those users who have most, by state.");
    for (size_t i = 0; i < MIN(list.len, (size_t)TOP_USERS); i++)
        add_states(out, "spur_user_jobs", "user", list.items[i]->key, list.items[i]->value);
    vec_done(&list);
}

static void on_nodes(struct exchange *x, const ProtobufCMessage *message, const struct err *err)
{
    const ListNodesReply *reply = (const void *)message;
    struct gathering *g = x->data;
    uint64_t by_state[STATES] = { 0 }, cpus = 0, used = 0, gpus = 0, gpus_used = 0;

    if (err) {
        failed(x, err);
        return;
    }
    for (size_t i = 0; i < reply->n_nodes; i++) {
        const Node *node = reply->nodes[i];
        const NodeStatus *status = node_status(node);
        by_state[MIN((uint32_t)status->state, STATES - 1u)]++;
        cpus += node_cpus(node);
        used += status->alloc_cpus;
        for (size_t k = 0; k < node_spec(node)->n_gres; k++) {
            if (str_eq(node_spec(node)->gres[k]->name, "gpu"))
                gpus += node_spec(node)->gres[k]->count;
        }
        for (size_t k = 0; k < status->n_alloc_gres; k++) {
            if (str_eq(status->alloc_gres[k]->name, "gpu"))
                gpus_used += status->alloc_gres[k]->count;
        }
    }
    family(&g->out, "spur_nodes", "gauge", "Nodes by state.");
    for (uint32_t state = 0; state < STATES; state++) {
        if (by_state[state]) {
            str_add(&g->out, "spur_nodes{");
            add_label(&g->out, "state", name_of(&node_state_names, state));
            str_addf(&g->out, "} %llu\n", (unsigned long long)by_state[state]);
        }
    }
    gauge(&g->out, "spur_cpus", "CPUs of all nodes.", cpus);
    gauge(&g->out, "spur_cpus_used", "CPUs that jobs have.", used);
    gauge(&g->out, "spur_gpus", "GPUs of all nodes.", gpus);
    gauge(&g->out, "spur_gpus_used", "GPUs that jobs have.", gpus_used);
    send_metrics(x);
}

static void on_jobs_done(struct exchange *x, const ProtobufCMessage *reply, const struct err *err)
{
    struct gathering *g = x->data;
    const struct ask_call call = { .method = "ListNodes",
                                   .message = &g->nodes.base,
                                   .reply = &list_nodes_reply__descriptor,
                                   .done = on_nodes };

    (void)reply;
    if (err) {
        failed(x, err);
        return;
    }
    family(&g->out, "spur_jobs", "gauge", "Jobs by state.");
    add_states(&g->out, "spur_jobs", NULL, NULL, &g->total);
    add_map(&g->out, "spur_partition_jobs", "partition", "Jobs by partition and state.",
            &g->partitions);
    add_map(&g->out, "spur_account_jobs", "account", "Jobs by account and state.", &g->accounts);
    add_users(&g->out, &g->users);
    list_nodes_request__init(&g->nodes);
    ask_start(x, &call);
}

static void on_diag(struct exchange *x, const ProtobufCMessage *message, const struct err *err)
{
    struct gathering *g = x->data;
    const struct ask_call call = { .method = "ListJobs",
                                   .message = &g->jobs.base,
                                   .reply = &list_jobs_reply__descriptor,
                                   .message_came = on_jobs,
                                   .done = on_jobs_done };

    if (err) {
        failed(x, err);
        return;
    }
    add_totals(&g->out, (const DiagReply *)(const void *)message);
    if (!x->authorization) { /* (1) */
        send_metrics(x);
        return;
    }
    list_jobs_request__init(&g->jobs);
    ask_start(x, &call);
}

void get_metrics(struct exchange *x)
{
    struct gathering *g = ARENA_NEW(&x->arena, struct gathering);
    const struct ask_call call = { .method = "Diag",
                                   .message = &g->diag.base,
                                   .reply = &diag_reply__descriptor,
                                   .ours = !x->authorization,
                                   .done = on_diag };

    map_init(&g->partitions);
    map_init(&g->accounts);
    map_init(&g->users);
    x->data = g;
    x->on_gone = gathering_free;
    diag_request__init(&g->diag);
    add_own(&g->out, x->rest);
    ask_start(x, &call);
}
