// SPDX-License-Identifier: Apache-2.0
/*
 * control_show.c - scontrol show: records of jobs, nodes, partitions and reservations
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/timefmt.h"
#include "cli/control.h"
#include "client/client.h"
#include "schema/jsonw.h"
#include "schema/node_view.h"
#include "schema/objects_json.h"

static struct field_ctx ctx_of(const struct control *control)
{
    struct field_ctx ctx = cli_field_ctx(0);

    ctx.detail = control->detail;
    return ctx;
}

/* Objects of one table, as records or as JSON. */
struct listing {
    struct control *control;
    const struct field_table *table;
    struct field_ctx ctx;
    struct str out;
    struct jsonw json;
    size_t count;
};

/* What REST answers with for such a list. */
static const char *answer_of(const char *key)
{
    static const struct {
        const char *key, *object;
    } answers[] = { { "jobs", "openapi_job_info_resp" },
                    { "nodes", "openapi_nodes_resp" },
                    { "partitions", "openapi_partition_resp" },
                    { "licenses", "openapi_licenses_resp" } };

    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        if (str_eq(key, answers[i].key))
            return answers[i].object;
    }
    return NULL;
}

static const char *cluster_of(struct control *control)
{
    GetConfigRequest request = GET_CONFIG_REQUEST__INIT;
    GetConfigReply *reply;
    struct err err = { 0 };

    if (cli_call(&control->cli, "GetConfig", &request.base, &get_config_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) < 0 ||
        !reply->config)
        return NULL;
    return reply->config->cluster_name;
}

static void listing_begin(struct listing *listing, struct control *control,
                          const struct field_table *table, const char *key)
{
    *listing = (struct listing){ .control = control, .table = table, .ctx = ctx_of(control) };
    if (control->json) {
        cli_json_begin(&listing->json, &listing->out, control->yaml, control->argv, answer_of(key));
        listing->ctx.cluster = cluster_of(control);
        jsonw_list(&listing->json, key);
    }
}

static void listing_add(struct listing *listing, const void *object)
{
    listing->count++;
    if (listing->control->json) {
        jsonw_object(&listing->json, NULL);
        field_add_json(listing->table, object, &listing->ctx, &listing->json);
        jsonw_object_end(&listing->json);
    } else {
        field_add_record(listing->table, object, &listing->ctx, listing->control->one_line,
                         &listing->out);
    }
    if (listing->out.len > 1 << 16)
        cli_flush(&listing->out);
}

static void listing_end(struct listing *listing)
{
    if (listing->control->json) {
        jsonw_list_end(&listing->json);
        jsonw_set(&listing->json, "last_update", true, false, listing->ctx.now_us / 1000000);
        cli_json_end(&listing->json, listing->control->argc, listing->control->argv,
                     listing->ctx.cluster);
    }
    cli_flush(&listing->out);
    str_done(&listing->out);
}

static int load_failed(const struct control *control, const char *before, const struct err *err)
{
    return cli_load_error(&control->cli, before, err);
}

static int show_all_jobs(struct control *control, struct listing *listing)
{
    ListJobsRequest request = LIST_JOBS_REQUEST__INIT;
    struct client_stream *stream = NULL;
    struct err err = { 0 };
    ProtobufCMessage *message;
    struct arena arena;
    int next = -1;

    request.has_all_states = request.all_states = true;
    request.has_with_spec = request.with_spec = true;
    request.has_hidden_too = request.hidden_too = control->all;
    if (cli_connect(&control->cli, &err) == 0)
        stream = client_stream_open(
            control->cli.client,
            &(struct client_stream_options){ .path = "/spur.Controller/ListJobs",
                                             .message = &request.base,
                                             .reply_type = &list_jobs_reply__descriptor },
            &err);
    arena_init(&arena);
    while (stream &&
           (next = client_stream_next(stream, &arena, &message, &err)) == CLIENT_MESSAGE) {
        const ListJobsReply *reply = (const ListJobsReply *)message;

        for (size_t i = 0; i < reply->n_jobs; i++)
            listing_add(listing, reply->jobs[i]);
        arena_reset(&arena);
    }
    arena_done(&arena);
    client_stream_free(stream);
    if (next != CLIENT_ENDED)
        return load_failed(control, "slurm_load_jobs error:", &err);
    if (!listing->count && !control->json)
        puts("No jobs in the system");
    return 0;
}

static int show_one_job(struct control *control, struct listing *listing, char *id)
{
    GetJobRequest request = GET_JOB_REQUEST__INIT;
    GetJobReply *reply;
    struct err err = { 0 };

    if (!cli_is_job_id(id, strlen(id))) {
        fprintf(stderr, "scontrol_print_job error: %s\n", err_text(ERR_INVALID_JOB_ID));
        return 1;
    }
    request.id = id;
    if (cli_call(&control->cli, "GetJob", &request.base, &get_job_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) < 0)
        return load_failed(control, "slurm_load_jobs error:", &err);
    for (size_t i = 0; i < reply->n_jobs; i++) {
        JobStatus *status = reply->jobs[i]->status;
        const char *task = strchr(id, '_');
        uint64_t number;

        /* One task of many that wait as one record is shown as itself. */
        if (status && task && str_to_u64(task + 1, UINT32_MAX, &number) && status->array_tasks) {
            status->has_array_task_id = true;
            status->array_task_id = (uint32_t)number;
        }
        listing_add(listing, reply->jobs[i]);
    }
    return 0;
}

static int show_job(struct control *control, int argc, char **argv)
{
    struct listing listing;
    char **ids = NULL;
    size_t count = 0;
    int code = 0;

    for (int i = 0; i < argc; i++)
        cli_split(&control->cli, argv[i], ",", &ids, &count);
    listing_begin(&listing, control, &job_fields, "jobs");
    if (!count)
        code = show_all_jobs(control, &listing);
    for (size_t i = 0; i < count; i++)
        code |= show_one_job(control, &listing, ids[i]);
    listing_end(&listing);
    return code;
}

static int show_node(struct control *control, int argc, char **argv)
{
    ListNodesRequest request = LIST_NODES_REQUEST__INIT;
    ListNodesReply *reply;
    struct listing listing;
    struct err err = { 0 };

    for (int i = 0; i < argc; i++) {
        request.names = argv;
        request.n_names = (size_t)argc;
    }
    if (cli_call(&control->cli, "ListNodes", &request.base, &list_nodes_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) < 0) {
        if (err.code != ERR_INVALID_NODE_NAME || !argc)
            return load_failed(control, "slurm_load_node error:", &err);
        printf("Node %s not found\n", argv[0]);
        return 1;
    }
    listing_begin(&listing, control, &node_fields, "nodes");
    for (size_t i = 0; i < reply->n_nodes; i++) {
        bool future = node_status(reply->nodes[i])->state == NODE_FUTURE;

        if (!future || control->future || argc)
            listing_add(&listing, reply->nodes[i]);
    }
    listing_end(&listing);
    if (!listing.count && !control->json)
        printf(argc ? "Node %s not found\n" : "No nodes in the system\n", argc ? argv[0] : "");
    return !listing.count && argc;
}

static void fill_tres(struct control *control, ListPartitionsReply *partitions)
{
    ListNodesRequest request = LIST_NODES_REQUEST__INIT;
    ListNodesReply *nodes;

    if (cli_call(&control->cli, "ListNodes", &request.base, &list_nodes_reply__descriptor,
                 (ProtobufCMessage **)&nodes, NULL) == 0)
        partitions_fill_tres(partitions, nodes, &control->cli.arena);
}

char **control_names(struct control *control, int argc, char **argv, size_t *count)
{
    char **names = NULL;

    *count = 0;
    for (int i = 0; i < argc; i++)
        cli_split(&control->cli, argv[i], ", ", &names, count);
    return names;
}

bool control_is_named(const char *name, char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq(name, names[i]))
            return true;
    }
    return count == 0;
}

static int show_partition(struct control *control, int argc, char **argv)
{
    ListPartitionsRequest request = LIST_PARTITIONS_REQUEST__INIT;
    ListPartitionsReply *reply;
    struct listing listing;
    struct err err = { 0 };

    request.has_hidden_too = request.hidden_too = control->all || argc;
    if (cli_call(&control->cli, "ListPartitions", &request.base, &list_partitions_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) < 0)
        return load_failed(control, "slurm_load_partitions error:", &err);
    fill_tres(control, reply);
    listing_begin(&listing, control, &partition_fields, "partitions");
    size_t count = 0;
    char **names = control_names(control, argc, argv, &count);
    for (size_t i = 0; i < reply->n_partitions; i++) {
        const PartitionSpec *spec = reply->partitions[i]->spec;

        if (spec && control_is_named(spec->name, names, count))
            listing_add(&listing, reply->partitions[i]);
    }
    listing_end(&listing);
    if (!listing.count && !control->json)
        printf(argc ? "Partition %s not found\n" : "No partitions in the system\n",
               argc ? argv[0] : "");
    return listing.count < count || (argc && !listing.count);
}

static int by_license(const void *a, const void *b)
{
    return strcmp((*(License *const *)a)->name, (*(License *const *)b)->name);
}

static void json_licenses(struct control *control, const ListLicensesReply *reply)
{
    struct listing listing;
    struct jsonw *json = &listing.json;

    listing_begin(&listing, control, NULL, "licenses");
    for (size_t i = 0; i < reply->n_licenses; i++) {
        const License *one = reply->licenses[i];
        license_add_json(one, json);
    }
    listing_end(&listing);
}

static int show_licenses(struct control *control, int argc, char **argv)
{
    ListLicensesRequest request = LIST_LICENSES_REQUEST__INIT;
    ListLicensesReply *reply;
    struct err err = { 0 };

    request.n_names = argc ? 1 : 0;
    request.names = argv;
    if (cli_call(&control->cli, "ListLicenses", &request.base, &list_licenses_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) < 0)
        return load_failed(control, "slurm_load_licenses error:", &err);
    if (reply->n_licenses)
        qsort(reply->licenses, reply->n_licenses, sizeof(*reply->licenses), by_license);
    if (control->json) {
        json_licenses(control, reply);
        return 0;
    }
    for (size_t i = 0; i < reply->n_licenses; i++) {
        const License *one = reply->licenses[i];
        printf("LicenseName=%s%sTotal=%u Used=%u Free=%u Reserved=%u Remote=no\n", one->name,
               control->one_line ? " " : "\n    ", one->total, one->used,
               one->total - MIN(one->used, one->total), one->reserved);
    }
    if (!reply->n_licenses)
        printf(argc ? "License name '%s' not found.\n" : "No licenses configured in Slurm.\n",
               argc ? argv[0] : "");
    return !reply->n_licenses && argc;
}

static int show_config(struct control *control, int argc, char **argv)
{
    return control_show_config(control);
}

static const char *hosts_given(int argc, char **argv)
{
    const char *job = getenv("SLURM_NODELIST");

    if (argc)
        return argv[0];
    return job ? job : getenv("SLURM_JOB_NODELIST");
}

static int show_hostnames(struct control *control, int argc, char **argv)
{
    CLEANUP(hostlist_done) struct hostlist list = { 0 };
    const char *text = hosts_given(argc, argv);
    struct err err = { 0 };
    struct str out = { 0 };

    if (str_is_empty(text)) {
        cli_error(&control->cli, "host list is empty");
        return 0;
    }
    if (strcmp(text, "[]") == 0)
        return 0; /* no hosts, as Slurm reads it */
    if (hostlist_parse(&list, text, &err) < 0) {
        cli_error(&control->cli, "Invalid hostlist: %s: %s", text, err.text);
        return 1;
    }
    if (hostlist_count(&list) > LIMIT_HOSTLIST_HOSTS) {
        cli_error(&control->cli, "Invalid hostlist: %s: more than %d hosts", text,
                  LIMIT_HOSTLIST_HOSTS);
        return 1;
    }
    hostlist_each (host, &list) {
        str_addf(&out, "%.*s\n", (int)host.len, host.name);
        if (out.len > 1 << 16 && !cli_flush(&out))
            break;
    }
    cli_flush(&out);
    str_done(&out);
    return 0;
}

static int hostlist_text(struct control *control, int argc, char **argv, bool sorted)
{
    CLEANUP(hostlist_done) struct hostlist list = { 0 };
    const char *text = hosts_given(argc, argv);
    struct err err = { 0 };
    struct str out = { 0 };

    if (str_is_empty(text)) {
        cli_error(&control->cli, "host list is empty");
        return 0;
    }
    if (hostlist_parse(&list, text, &err) < 0 || (sorted && hostlist_sort(&list, &err) < 0)) {
        cli_error(&control->cli, "Invalid hostlist: %s: %s", text, err.text);
        return 1;
    }
    hostlist_format(&list, &out);
    str_add_char(&out, '\n');
    cli_flush(&out);
    str_done(&out);
    return 0;
}

static int show_hostlist(struct control *control, int argc, char **argv)
{
    return hostlist_text(control, argc, argv, false);
}

static int show_hostlist_sorted(struct control *control, int argc, char **argv)
{
    return hostlist_text(control, argc, argv, true);
}

static int show_nothing(struct control *control, int argc, char **argv)
{
    return 0; /* there are none, and Slurm prints nothing then */
}

/* clang-format off */
static const struct control_row entities[] = {
    { "aliases", 1, 0, 1, show_nothing, .help = "names of nodes on one machine" },
    { "assoc_mgr", 2, 0, 9, NULL, .help = "associations in memory", .later = "there is no accounting yet" },
    { "bbstat", 2, 0, 9, show_nothing, .help = "state of burst buffers" },
    { "burstbuffer", 2, 0, 1, show_nothing, .help = "burst buffers" },
    { "config", 1, 0, 1, show_config, .help = "configuration of the controller" },
    { "daemons", 1, 0, 1, control_show_daemons, .help = "daemons of this host" },
    { "dwstat", 2, 0, 9, show_nothing, .help = "state of burst buffers" },
    { "federation", 1, 0, 1, show_nothing, .help = "federation" },
    { "frontend", 2, 0, 1, NULL, .help = "front end nodes", .later = "every node runs its own agent" },
    { "hostlist", 5, 0, 1, show_hostlist, .help = "names of hosts, made short" },
    { "hostlistsorted", 9, 0, 1, show_hostlist_sorted, .help = "the same, sorted" },
    { "hostnames", 5, 0, 1, show_hostnames, .help = "names of hosts, one a line" },
    { "jobs", 1, 0, 1, show_job, .help = "jobs" },
    { "jobid", 4, 0, 1, show_job },
    { "licenses", 2, 0, 1, show_licenses, .help = "licences" },
    { "licensename", 8, 0, 1, show_licenses },
    { "nodes", 1, 0, 1, show_node, .help = "nodes" },
    { "nodename", 5, 0, 1, show_node },
    { "partitions", 1, 0, 1, show_partition, .help = "partitions" },
    { "partitionname", 10, 0, 1, show_partition },
    { "reservations", 1, 0, 1, control_show_reservation, .help = "reservations" },
    { "reservationname", 12, 0, 1, control_show_reservation },
    { "slurmd", 6, 0, 1, control_show_slurmd, .help = "agent of this host" },
    { "steps", 2, 0, 1, control_show_steps, .help = "steps" },
    { "stepid", 5, 0, 1, control_show_steps },
    { "topoconf", 5, 0, 1, NULL, .help = "topology settings", .later = "show topology has them, and the files are those of [topology]" },
    { "topology", 1, 0, 1, control_show_topology, .help = "switches and blocks" },
};
/* clang-format on */

void control_add_entities(struct str *out)
{
    for (size_t i = 0; i < ARRAY_LEN(entities); i++) {
        if (entities[i].help && !entities[i].later)
            str_addf(out, "%s%s", out->len ? ", " : "", entities[i].name);
    }
}

int control_show(struct control *control, int argc, char **argv)
{
    char *equals = strchr(argv[0], '=');
    size_t len = equals ? (size_t)(equals - argv[0]) : strlen(argv[0]);
    const struct control_row *row = control_find(entities, ARRAY_LEN(entities), argv[0], len);
    char *value[1] = { equals ? equals + 1 : NULL };

    if (!row) {
        fprintf(stderr, "invalid entity:%.*s for keyword:show\n", (int)len, argv[0]);
        return 1;
    }
    if (row->later) {
        fprintf(stderr, "show %s is not supported yet: %s\n", row->name, row->later);
        return 1;
    }
    if (argc - 1 + (equals != NULL) > row->max) {
        fprintf(stderr, "too many arguments for keyword:show\n");
        return 1;
    }
    return equals ? row->run(control, 1, value) : row->run(control, argc - 1, argv + 1);
}
