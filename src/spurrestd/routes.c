/* SPDX-License-Identifier: Apache-2.0 */
/*
 * routes.c - what is served, and how a request finds its row
 *
 * (1) Segments are compared decoded; "." and ".." and empty ones in the middle are nowhere. A slash at the end
 *     makes no difference, as with slurmrestd.
 * (2) Under /slurm a method that a path does not have is 404, as was recorded; elsewhere it is 405 with Allow.
 */
#include "spurrestd/routes.h"

#include <string.h>

#include "spurrestd/answer.h"
#include "spurrestd/rest.h"
#include "spurrestd/web.h"

#define S "/slurm/{v}/"
#define D "/slurmdb/{v}/"
#define N "/api/v1/"

/* clang-format off */
const struct route routes[] = {
    { HTTP_GET, N "ping", 0, 0, WHO_ANYBODY, get_ping, "Whether the controllers answer, and which one leads." },
    { HTTP_GET, N "jobs", 0, 0, WHO_USER, list_jobs, "The jobs of the queue, and those that ended a moment ago." },
    { HTTP_GET, N "job/{job_id}", 0, 0, WHO_USER, get_job, "One job; an array gives its records." },
    { HTTP_POST, N "job/submit", 0, 0, WHO_USER, post_submit, "Submits a batch job." },
    { HTTP_POST, N "job/{job_id}", 0, 0, WHO_USER, post_job, "Changes a job." },
    { HTTP_DELETE, N "job/{job_id}", 0, 0, WHO_USER, delete_job, "Ends a job, or sends it a signal." },
    { HTTP_POST, N "job/{job_id}/cancel", 0, 0, WHO_USER, delete_job, "Ends a job, or sends it a signal." },
    { HTTP_POST, N "job/{job_id}/update", 0, 0, WHO_USER, post_job, "Changes a job." },
    { HTTP_POST, N "job/{job_id}/hold", 0, 0, WHO_USER, post_hold, "Holds a job that waits." },
    { HTTP_POST, N "job/{job_id}/release", 0, 0, WHO_USER, post_release, "Releases a held job." },
    { HTTP_POST, N "job/{job_id}/requeue", 0, 0, WHO_USER, post_requeue, "Puts a job back into the queue." },
    { HTTP_POST, N "job/{job_id}/suspend", 0, 0, WHO_STAFF, post_suspend, "Suspends a job that runs." },
    { HTTP_POST, N "job/{job_id}/resume", 0, 0, WHO_STAFF, post_resume, "Resumes a suspended job." },
    { HTTP_GET, N "job/{job_id}/explain", 0, 0, WHO_USER, get_explain, "What a job waits for, in words, and when it will start." },
    { HTTP_GET, N "job/{job_id}/steps", 0, 0, WHO_USER, get_steps, "The steps of a job that run." },
    { HTTP_GET, N "job/{job_id}/logs", 0, 0, WHO_USER, get_logs, "The output of a job; follow=1 goes on until it ends." },
    { HTTP_DELETE, N "jobs", 0, 0, WHO_USER, delete_jobs, "Ends the jobs that match." },
    { HTTP_GET, N "steps", 0, 0, WHO_USER, get_steps, "All steps that run." },
    { HTTP_GET, N "whoami", 0, 0, WHO_USER, get_whoami, "Who the caller is, and what he may do." },
    { HTTP_GET, N "reservations", 0, 0, WHO_USER, list_reservations, "The reservations." },
    { HTTP_GET, N "reservation/{reservation_name}", 0, 0, WHO_USER, list_reservations, "One reservation." },
    { HTTP_POST, N "reservation", 0, 0, WHO_STAFF, post_reservation, "Makes or changes a reservation." },
    { HTTP_DELETE, N "reservation/{reservation_name}", 0, 0, WHO_STAFF, delete_reservation, "Deletes a reservation." },
    { HTTP_GET, N "licenses", 0, 0, WHO_USER, list_licenses, "The licences." },
    { HTTP_GET, N "diag", 0, 0, WHO_USER, get_diag, "Figures of the controller." },
    { HTTP_GET, N "events", 0, 0, WHO_USER, get_events, "What changes, as server-sent events." },
    { HTTP_POST, N "node/{node_name}", 0, 0, WHO_STAFF, post_node, "Changes a node: drain, resume, comment." },
    { HTTP_GET, "/metrics", 0, 0, WHO_ANYBODY, get_metrics, "Figures for Prometheus; totals only without a token." },
    { HTTP_GET, "/openapi", 0, 0, WHO_ANYBODY, get_openapi, "This description." },
    { HTTP_GET, "/openapi/v3", 0, 0, WHO_ANYBODY, get_openapi, "This description." },
    { HTTP_GET, "/openapi.json", 0, 0, WHO_ANYBODY, get_openapi, "This description, as JSON." },
    { HTTP_GET, "/openapi.yaml", 0, 0, WHO_ANYBODY, get_openapi, "This description, as YAML." },
    { HTTP_GET, N "nodes", 0, 0, WHO_USER, list_nodes, "The nodes, with their GPUs." },
    { HTTP_GET, N "node/{node_name}", 0, 0, WHO_USER, get_node, "One node." },
    { HTTP_GET, N "partitions", 0, 0, WHO_USER, list_partitions, "The partitions." },
    { HTTP_GET, N "partition/{partition_name}", 0, 0, WHO_USER, get_partition, "One partition." },
    { HTTP_GET, S "ping/", 0, 0, WHO_USER, get_ping, "Whether the controllers answer, and which one leads." },
    { HTTP_GET, S "jobs/", 0, 0, WHO_USER, list_jobs, "The jobs of the queue, and those that ended a moment ago." },
    { HTTP_GET, S "job/{job_id}", 0, 0, WHO_USER, get_job, "One job; an array gives its records." },
    { HTTP_POST, S "job/submit", 0, 0, WHO_USER, post_submit, "Submits a batch job." },
    { HTTP_POST, S "job/allocate", 0, 0, WHO_USER, post_allocate, "Asks for an allocation without a script." },
    { HTTP_POST, S "job/{job_id}", 0, 0, WHO_USER, post_job, "Changes a job." },
    { HTTP_DELETE, S "job/{job_id}", 0, 0, WHO_USER, delete_job, "Ends a job, or sends it a signal." },
    { HTTP_GET, S "job/{job_id}/requeue", 45, 0, WHO_USER, post_requeue, "Puts a job back into the queue." },
    { HTTP_DELETE, S "jobs/", 0, 0, WHO_USER, delete_jobs, "Ends the jobs that match." },
    { HTTP_POST, S "jobs/requeue", 45, 0, WHO_USER, post_jobs_requeue, "Puts jobs back into the queue." },
    { HTTP_GET, S "jobs/state/", 0, 0, WHO_USER, get_jobs_state, "The states of jobs." },
    { HTTP_GET, S "licenses/", 0, 0, WHO_USER, list_licenses, "The licences." },
    { HTTP_GET, S "reservations/", 0, 0, WHO_USER, list_reservations, "The reservations." },
    { HTTP_GET, S "reservation/{reservation_name}", 0, 0, WHO_USER, list_reservations, "One reservation." },
    { HTTP_DELETE, S "reservation/{reservation_name}", 0, 0, WHO_STAFF, delete_reservation, "Deletes a reservation." },
    { HTTP_POST, S "reservation", 43, 0, WHO_STAFF, post_reservation, "Makes or changes a reservation." },
    { HTTP_POST, S "reservations/", 43, 0, WHO_STAFF, post_reservation, "Makes or changes a reservation." },
    { HTTP_GET, S "reconfigure/", 0, 0, WHO_STAFF, get_reconfigure, "Reads the configuration again." },
    { HTTP_GET, S "diag/", 0, 0, WHO_USER, get_diag, "Figures of the controller." },
    { HTTP_POST, S "node/{node_name}", 0, 0, WHO_STAFF, post_node, "Changes a node." },
    { HTTP_POST, S "nodes/", 0, 0, WHO_STAFF, post_node, "Changes the nodes that it names." },
    { HTTP_POST, "/util/{v}/hostnames", 44, 0, WHO_USER, post_hostnames, "The names of a host list." },
    { HTTP_POST, "/util/{v}/hostlist", 44, 0, WHO_USER, post_hostlist, "The host list of names." },
    { HTTP_GET, S "shares", 0, 0, WHO_USER, get_shares, "Shares and usage of accounts and users." },
    { HTTP_DELETE, S "node/{node_name}", 0, 0, WHO_STAFF, not_possible, "Nodes are in the configuration, and are deleted there." },
    { HTTP_POST, S "new/node/", 44, 0, WHO_STAFF, not_possible, "Nodes are in the configuration, and are added there." },
    { HTTP_GET, S "resources/{job_id}", 44, 0, WHO_USER, get_resources, "Where the resources of a job are." },
    { HTTP_GET, S "conf", 45, 0, WHO_USER, get_conf, "The configuration, as far as slurm.conf has it too." },
    { HTTP_DELETE, S "partition/{partition_name}", 45, 0, WHO_STAFF, delete_partition, "Deletes a partition." },
    { HTTP_POST, S "partitions/", 45, 0, WHO_STAFF, not_possible, "Partitions are changed by scontrol update." },
    { HTTP_GET, D "accounts/", 0, 0, WHO_USER, db_get_accounts, "The accounts." },
    { HTTP_POST, D "accounts/", 0, 0, WHO_STAFF, db_post_accounts, "Adds or changes accounts." },
    { HTTP_GET, D "account/{account_name}", 0, 0, WHO_USER, db_get_accounts, "One account." },
    { HTTP_DELETE, D "account/{account_name}", 0, 0, WHO_STAFF, db_delete_account, "Deletes an account." },
    { HTTP_POST, D "accounts_association/", 0, 0, WHO_STAFF, db_post_accounts_assoc, "Adds accounts with their associations." },
    { HTTP_GET, D "users/", 0, 0, WHO_USER, db_get_users, "The users." },
    { HTTP_POST, D "users/", 0, 0, WHO_STAFF, db_post_users, "Adds or changes users." },
    { HTTP_GET, D "user/{name}", 0, 0, WHO_USER, db_get_users, "One user." },
    { HTTP_DELETE, D "user/{name}", 0, 0, WHO_STAFF, db_delete_user, "Deletes a user." },
    { HTTP_POST, D "users_association/", 0, 0, WHO_STAFF, db_post_users_assoc, "Adds users with their associations." },
    { HTTP_GET, D "associations/", 0, 0, WHO_USER, db_get_assocs, "The associations that match." },
    { HTTP_POST, D "associations/", 0, 0, WHO_STAFF, db_post_assocs, "Adds or changes associations." },
    { HTTP_DELETE, D "associations/", 0, 0, WHO_STAFF, db_delete_assocs, "Deletes the associations that match." },
    { HTTP_GET, D "association/", 0, 0, WHO_USER, db_get_assoc, "The first association that matches." },
    { HTTP_DELETE, D "association/", 0, 0, WHO_STAFF, db_delete_assocs, "Deletes the associations that match." },
    { HTTP_GET, D "qos/", 0, 0, WHO_USER, db_get_qos, "The QOS." },
    { HTTP_POST, D "qos/", 0, 0, WHO_STAFF, db_post_qos, "Adds or changes QOS." },
    { HTTP_GET, D "qos/{qos}", 0, 0, WHO_USER, db_get_qos, "One QOS." },
    { HTTP_DELETE, D "qos/{qos}", 0, 0, WHO_STAFF, db_delete_qos, "Deletes a QOS." },
    { HTTP_GET, D "clusters/", 0, 0, WHO_USER, db_get_clusters, "The clusters." },
    { HTTP_POST, D "clusters/", 0, 0, WHO_STAFF, db_post_clusters, "Adds clusters." },
    { HTTP_GET, D "cluster/{cluster_name}", 0, 0, WHO_USER, db_get_clusters, "One cluster." },
    { HTTP_DELETE, D "cluster/{cluster_name}", 0, 0, WHO_STAFF, db_delete_cluster, "Deletes a cluster." },
    { HTTP_GET, D "tres/", 0, 0, WHO_USER, db_get_tres, "The kinds of resources that are counted." },
    { HTTP_POST, D "tres/", 0, 0, WHO_STAFF, db_post_tres, "TRES follow from the configuration and are not added here." },
    { HTTP_GET, D "wckeys/", 0, 0, WHO_USER, db_get_wckeys, "The workload keys." },
    { HTTP_POST, D "wckeys/", 0, 0, WHO_STAFF, db_post_wckeys, "Adds workload keys." },
    { HTTP_GET, D "wckey/{id}", 0, 0, WHO_USER, db_get_wckeys, "One workload key." },
    { HTTP_DELETE, D "wckey/{id}", 0, 0, WHO_STAFF, db_delete_wckey, "Deletes a workload key." },
    { HTTP_GET, D "instances/", 0, 0, WHO_USER, db_get_instances, "Cloud instances: there are none." },
    { HTTP_GET, D "instance/", 0, 0, WHO_USER, db_get_instances, "Cloud instances: there are none." },
    { HTTP_GET, D "config", 0, 0, WHO_USER, db_get_config, "Clusters, TRES, accounts, users, QOS, keys and associations at once." },
    { HTTP_POST, D "config", 0, 0, WHO_STAFF, db_post_config, "Adds or changes all of them at once." },
    { HTTP_GET, D "conf", 45, 0, WHO_USER, db_get_conf, "The configuration of spurdbd." },
    { HTTP_GET, D "diag/", 0, 0, WHO_USER, db_get_diag, "Figures of spurdbd." },
    { HTTP_GET, D "ping/", 0, 0, WHO_USER, db_get_ping, "Whether spurdbd answers." },
    { HTTP_GET, D "jobs/", 0, 0, WHO_USER, db_get_jobs, "The history of jobs." },
    { HTTP_GET, D "job/{job_id}", 0, 0, WHO_USER, db_get_job, "One job of the history, all its runs." },
    { HTTP_POST, D "jobs/", 44, 0, WHO_STAFF, not_possible, "The history of jobs is not changed; comments of a job that is in the queue are changed under /slurm." },
    { HTTP_POST, D "job/{job_id}", 44, 0, WHO_STAFF, not_possible, "The history of jobs is not changed; comments of a job that is in the queue are changed under /slurm." },
    { HTTP_GET, S "nodes/", 0, 0, WHO_USER, list_nodes, "The nodes." },
    { HTTP_GET, S "node/{node_name}", 0, 0, WHO_USER, get_node, "One node." },
    { HTTP_GET, S "partitions/", 0, 0, WHO_USER, list_partitions, "The partitions." },
    { HTTP_GET, S "partition/{partition_name}", 0, 0, WHO_USER, get_partition, "One partition." },
};
/* clang-format on */
const size_t route_count = ARRAY_LEN(routes);

enum { SEGMENTS = 8 };

/* Splits and decodes; the number of segments, negative: not a good path. (1) */
static int split(struct exchange *x, const char *segments[SEGMENTS])
{
    const char *at = x->path;
    int count = 0;

    while (*at == '/') {
        size_t len = strcspn(++at, "/");
        struct str text = { 0 };
        bool good = http_decode((struct span){ at, len }, false, &text);

        if (good && len == 0 && *at == '\0') { /* the slash at the end */
            str_done(&text);
            break;
        }
        if (!good || !len || count == SEGMENTS || strcmp(str_text(&text), ".") == 0 ||
            strcmp(str_text(&text), "..") == 0) {
            str_done(&text);
            return -1;
        }
        segments[count++] = arena_strdup(&x->arena, str_text(&text));
        str_done(&text);
        at += len;
    }
    return count;
}

/* "v0.0.42" is 42; 0: not one that we speak. */
static unsigned version_of(const char *text)
{
    uint64_t number;

    if (!str_starts(text, "v0.0.") || !str_to_u64(text + 5, 999, &number) ||
        number < SLURM_VERSION_FIRST || number > SLURM_VERSION_LAST)
        return 0;
    return (unsigned)number;
}

static bool matches(struct exchange *x, const struct route *route, const char **segments, int count)
{
    const char *at = route->path;
    unsigned version = 0;
    int args = 0;

    for (int i = 0; i < count; i++) {
        if (*at++ != '/' || *at == '\0')
            return false;
        size_t len = strcspn(at, "/");
        if (strncmp(at, "{v}", len) == 0 && len == 3) {
            version = version_of(segments[i]);
            if (!version || (route->since && version < route->since) ||
                (route->until && version > route->until))
                return false;
        } else if (*at == '{') {
            if (args < EXCHANGE_ARGS)
                x->args[args++] = segments[i];
        } else if (strlen(segments[i]) != len || strncmp(at, segments[i], len) != 0) {
            return false;
        }
        at += len;
    }
    if (*at && strcmp(at, "/") != 0)
        return false;
    x->version = version;
    return true;
}

/* A fixed word wins over {job_id}: "job/submit" is not a job. */
static unsigned placeholders(const struct route *route)
{
    unsigned count = 0;

    for (const char *at = route->path; *at; at++)
        count += *at == '{';
    return count;
}

static const struct route *find(struct exchange *x, unsigned *allowed)
{
    const char *segments[SEGMENTS];
    int count = split(x, segments);
    const struct route *found = NULL, *best = NULL;
    unsigned method = x->method == HTTP_HEAD ? HTTP_GET : x->method;

    for (size_t i = 0; count > 0 && i < route_count; i++) {
        if (!matches(x, &routes[i], segments, count))
            continue;
        if (best && placeholders(&routes[i]) > placeholders(best))
            continue;
        if (best && placeholders(&routes[i]) < placeholders(best)) {
            *allowed = 0;
            found = NULL;
        }
        best = &routes[i];
        *allowed |= routes[i].method;
        if (routes[i].method == method)
            found = &routes[i];
    }
    if (best)
        matches(x, found ? found : best, segments, count); /* its arguments, not another's */
    return found;
}

/* Accept: the first that we can write; nothing said is JSON. Elsewhere than under /slurm it only chooses. */
static bool read_accept(struct exchange *x)
{
    const char *accept = exchange_field(x, "Accept");
    const char *cursor = accept;
    struct span word;

    if (str_is_empty(accept))
        return true;
    while (str_next(&cursor, ",", &word)) {
        struct span type = { word.ptr, strcspn(word.ptr, ";, ") };
        while (type.len && *type.ptr == ' ') {
            type.ptr++;
            type.len = strcspn(type.ptr, ";, ");
        }
        if (span_ieq(type, "application/json") || span_ieq(type, "*/*") ||
            span_ieq(type, "application/*"))
            return true;
        if (span_ieq(type, "application/yaml") || span_ieq(type, "application/x-yaml") ||
            span_ieq(type, "text/yaml")) {
            x->format = FORMAT_YAML;
            return true;
        }
    }
    return false;
}

static void add_allow(struct exchange *x, unsigned allowed)
{
    struct str list = { 0 };

    if (allowed & HTTP_GET)
        allowed |= HTTP_HEAD;
    for (unsigned bit = 1; bit < HTTP_OTHER; bit <<= 1) {
        if (allowed & bit)
            str_addf(&list, "%s%s", list.len ? ", " : "", http_method_name(bit));
    }
    exchange_header(x, "Allow", str_text(&list));
    str_done(&list);
}

static void on_known(struct exchange *x)
{
    x->route->handle(x);
}

void route_exchange(struct exchange *x)
{
    unsigned allowed = 0;

    if (web_serve(x))
        return;
    exchange_header(x, "X-Content-Type-Options", "nosniff");
    exchange_header(x, "Cache-Control", "no-store");
    x->route = find(x, &allowed);
    if (!x->route && allowed && !x->version) { /* (2) */
        add_allow(x, allowed);
        answer_failed(x, 405, 0, "ERR_UNSUPPORTED", "This path does not have that method", NULL);
    } else if (!x->route && x->rest->page && x->rest->page(x)) {
        return; /* a file of the web page */
    } else if (!x->route) {
        x->version = 0;
        answer_not_found(x);
    } else if (!read_accept(x) && x->version) {
        exchange_reply_text(x, 415, "HTTP Accept header content type is unknown or unsupported");
    } else {
        caller_identify(x, x->route->who != WHO_ANYBODY, on_known);
    }
}
