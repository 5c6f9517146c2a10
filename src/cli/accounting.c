// SPDX-License-Identifier: Apache-2.0
/*
 * accounting.c - what commands ask spurdbd
 */
#include "cli/accounting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "cli/steps.h"
#include "client/client.h"
#include "proto/controller.pb-c.h"
#include "rpc/address.h"
#include "wire/pb_unpack.h"

/* A socket of the controller's host, which this one is not. */
static bool is_elsewhere(const char *address)
{
    struct address controller;
    char path[ADDRESS_PATH_BYTES];

    if (!str_starts(address, "unix:"))
        return false;
    snprintf(path, sizeof(path), "%.*s", (int)strcspn(address + 5, ","), address + 5);
    if (strrchr(path, '/'))
        *strrchr(path, '/') = '\0';
    return access(path, F_OK) != 0 &&
           !(address_local_socket(ADDRESS_PORT_CONTROLLER, &controller) &&
             access(controller.path, F_OK) == 0);
}

/* The controller knows where, or passes questions on (NULL); its answer lives in the command's arena. */
static int ask_controller(struct cli *cli, const char **address, char **cluster, struct err *err)
{
    GetConfigRequest request = GET_CONFIG_REQUEST__INIT;
    ProtobufCMessage *message;

    if (cli_call(cli, "GetConfig", &request.base, &get_config_reply__descriptor, &message, err) < 0)
        return -(int)err->code;
    const GetConfigReply *reply = (const void *)message;
    if (!reply->local || !reply->local->accounting_enabled ||
        str_is_empty(reply->local->accounting_addr))
        return err_set(err, ERR_UNSUPPORTED, "Slurm accounting storage is disabled");
    *address = reply->local->accounting_addr;
    *cluster = reply->config ? reply->config->cluster_name : NULL;
    if (is_elsewhere(*address))
        *address = NULL; /* the controller passes questions on */
    return 0;
}

/* `cluster` is the one that we are in, when the controller was asked. */
static int find_address(struct cli *cli, const char **address, char **cluster, struct err *err)
{
    const char *given = getenv("SPUR_ACCOUNTING_ADDR");
    struct address beside;

    if (!str_is_empty(given)) {
        *address = given;
        return 0;
    }
    if (str_is_empty(getenv("SPUR_CONTROLLER_ADDR")) &&
        address_local_socket(ADDRESS_PORT_ACCOUNTING, &beside) && access(beside.path, F_OK) == 0) {
        *address = arena_printf(&cli->arena, "unix:%s", beside.path);
        return 0;
    }
    return ask_controller(cli, address, cluster, err);
}

static struct client *connect_in(struct cli *cli, char **cluster, struct err *err)
{
    const char *address = NULL;

    if (find_address(cli, &address, cluster, err) < 0)
        return NULL;
    if (!address)
        return client_new(&(struct client_options){ 0 }, err);
    return client_new(&(struct client_options){ .addresses = address,
                                                .default_port = ADDRESS_PORT_ACCOUNTING,
                                                .timeout_ms = cli->timeout_ms },
                      err);
}

struct client *accounting_connect(struct cli *cli, struct err *err)
{
    char *ignored = NULL;

    return connect_in(cli, &ignored, err);
}

int accounting_error(const struct cli *cli, const struct err *err)
{
    if (err->code == ERR_UNSUPPORTED)
        fprintf(stderr, "%s\n", err->text);
    else if (err->code == ERR_UNREACHABLE)
        cli_error(
            cli,
            "the accounting daemon (spurdbd) cannot be reached, so there is no history now: %s",
            err->text);
    else
        cli_error(cli, "%s", err->text);
    return 1;
}

/* ---- ids ---- */

static AcctJobId *add_id(struct cli *cli, ListHistoryRequest *request, uint32_t job)
{
    AcctJobId *id = ARENA_NEW(&cli->arena, AcctJobId);

    acct_job_id__init(id);
    id->has_job = true;
    id->job = job;
    if ((request->n_ids & (request->n_ids + 1)) == 0) { /* room for twice as many, and one */
        AcctJobId **longer = ARENA_ARRAY(&cli->arena, AcctJobId *, 2 * request->n_ids + 1);
        if (request->n_ids)
            memcpy(longer, request->ids, request->n_ids * sizeof(*longer));
        request->ids = longer;
    }
    request->ids[request->n_ids++] = id;
    return id;
}

/* "3", "1-5,7" of an array. */
static bool add_tasks(struct cli *cli, ListHistoryRequest *request, uint32_t job, const char *tasks,
                      const char *step_text, uint32_t step)
{
    const char *cursor = tasks;
    struct span word;

    while (str_next(&cursor, ",[]", &word)) {
        char *end;
        unsigned long first = strtoul(word.ptr, &end, 10), last = first;
        if (end == word.ptr)
            return false;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        if (end != word.ptr + word.len || last < first || last - first > 100000)
            return false;
        for (unsigned long task = first; task <= last; task++) {
            AcctJobId *id = add_id(cli, request, job);
            id->has_task = true;
            id->task = (uint32_t)task;
            id->has_step = step_text != NULL;
            id->step = step;
        }
    }
    return true;
}

bool accounting_read_id(struct cli *cli, const char *text, ListHistoryRequest *request)
{
    size_t len;
    const char *step_text;
    uint32_t step = 0;
    char *end;

    if (!cli_is_step_id(text, &len, &step_text) ||
        (step_text && !steps_read_name(step_text, &step)))
        return false;
    unsigned long job = strtoul(text, &end, 10);
    if (!job || job > UINT32_MAX)
        return false;
    char *rest = arena_strndup(&cli->arena, end, len - (size_t)(end - text));
    if (*rest == '_' && rest[1] != '*')
        return add_tasks(cli, request, (uint32_t)job, rest + 1, step_text, step);
    AcctJobId *id = add_id(cli, request, (uint32_t)job);
    id->has_step = step_text != NULL;
    id->step = step;
    if (*rest == '+') {
        id->has_offset = true;
        id->offset = (uint32_t)strtoul(rest + 1, NULL, 10);
    }
    return true;
}

/* ---- the answer ---- */

static int take_replies(struct cli *cli, struct client_stream *stream, accounting_each_fn *each,
                        void *ctx, char **cluster, struct err *err)
{
    int64_t now_us = 0;
    int next;

    do {
        struct arena arena;
        ProtobufCMessage *message = NULL;
        arena_init(&arena);
        next = client_stream_next(stream, &arena, &message, err);
        const ListHistoryReply *reply = (const void *)message;
        if (next == CLIENT_MESSAGE) {
            if (!str_is_empty(reply->note))
                cli_say(cli, "%s", reply->note);
            if (reply->has_now_us)
                now_us = reply->now_us;
            if (cluster && reply->cluster)
                *cluster = arena_strdup(&cli->arena, reply->cluster);
            for (size_t i = 0; i < reply->n_jobs; i++)
                each(ctx, reply->jobs[i], now_us);
        }
        arena_done(&arena);
    } while (next == CLIENT_MESSAGE);
    return next < 0 ? next : 0;
}

int accounting_list(struct cli *cli, const ListHistoryRequest *request, accounting_each_fn *each,
                    void *ctx, char **cluster, struct err *err)
{
    ListHistoryRequest asked = *request;
    char *own = NULL;
    struct client *client = connect_in(cli, &own, err);

    if (!client)
        return -(int)err->code;
    if (own && !asked.n_clusters && !asked.all_clusters) {
        asked.clusters = &own;
        asked.n_clusters = 1;
    }
    struct client_stream_options options = {
        .path = "/spur.Accounting/ListHistory",
        .message = &asked.base,
        .reply_type = &list_history_reply__descriptor,
    };
    struct client_stream *stream = client_stream_open(client, &options, err);
    int code = stream ? take_replies(cli, stream, each, ctx, cluster, err) : -(int)err->code;
    client_stream_free(stream);
    client_free(client);
    return code;
}

struct found {
    struct cli *cli;
    AcctJob *job;
};

static void keep_job(void *ctx, const AcctJob *job, int64_t now_us)
{
    struct found *found = ctx;
    size_t len = acct_job__get_packed_size(job);
    CLEANUP(freep) uint8_t *packed = mem_new(len + 1);
    ProtobufCMessage *copy = NULL;

    (void)now_us;
    acct_job__pack(job, packed);
    if (pb_unpack(&acct_job__descriptor, &found->cli->arena, packed, len, &copy, NULL) == 0)
        found->job = (AcctJob *)copy;
}

int accounting_find(struct cli *cli, const char *id, const AcctJob **out, struct err *err)
{
    ListHistoryRequest request = LIST_HISTORY_REQUEST__INIT;
    struct found found = { .cli = cli };

    if (!accounting_read_id(cli, id, &request))
        return err_code(err, ERR_INVALID_JOB_ID);
    if (accounting_list(cli, &request, keep_job, &found, NULL, err) < 0)
        return -(int)err->code;
    if (!found.job || !found.job->job || !found.job->job->status)
        return err_code(err, ERR_INVALID_JOB_ID);
    JobStatus *status = found.job->job->status;
    status->has_state = status->has_start_us = status->has_end_us = true;
    status->state = found.job->state;
    status->flags = 0;
    status->start_us = found.job->start_us;
    status->end_us = found.job->end_us;
    *out = found.job;
    return 0;
}
