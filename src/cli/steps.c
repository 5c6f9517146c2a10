// SPDX-License-Identifier: Apache-2.0
/*
 * steps.c - steps of jobs as commands ask for them: of the controller, and of the nodes themselves
 */
#include "cli/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/limits.h"
#include "client/client.h"

#define JOB_STEPS "/spur.NodeAccess/JobSteps"

static const struct {
    uint32_t step;
    const char *name;
} names[] = {
    { STEPS_BATCH, "batch" },
    { STEPS_INTERACTIVE, "interactive" },
    { 0xfffffffc, "extern" },
};

void steps_name(uint32_t step, char out[STEPS_NAME_BYTES])
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (names[i].step == step) {
            snprintf(out, STEPS_NAME_BYTES, "%s", names[i].name);
            return;
        }
    }
    snprintf(out, STEPS_NAME_BYTES, "%u", step);
}

bool steps_read_name(const char *text, uint32_t *step)
{
    uint64_t number;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strcmp(names[i].name, text) == 0) {
            *step = names[i].step;
            return true;
        }
    }
    if (!str_to_u64(text, 0xfffffff0, &number))
        return false;
    *step = (uint32_t)number;
    return true;
}

bool steps_read_id(const char *text, uint32_t *job, bool *has_step, uint32_t *step)
{
    const char *dot = strchr(text, '.');
    CLEANUP(freep) char *id = mem_strndup(text, dot ? (size_t)(dot - text) : strlen(text));
    char *plus = strchr(id, '+');
    uint64_t number, offset = 0;

    *has_step = dot != NULL;
    if (plus) { /* components have the numbers after the first */
        *plus = '\0';
        if (!str_to_u64(plus + 1, LIMIT_HET_COMPONENTS - 1, &offset))
            return false;
    }
    if (!str_to_u64(id, UINT32_MAX - LIMIT_HET_COMPONENTS, &number) || number == 0)
        return false;
    number += offset;
    *job = (uint32_t)number;
    return !dot || steps_read_name(dot + 1, step);
}

int steps_find_jobs(struct cli *cli, const char *text, steps_jobs *out, struct err *err)
{
    GetJobRequest request = GET_JOB_REQUEST__INIT;
    GetJobReply *reply;

    request.id = arena_printf(&cli->arena, "%.*s", (int)strcspn(text, "."), text);
    if (cli_call(cli, "GetJob", &request.base, &get_job_reply__descriptor,
                 (ProtobufCMessage **)&reply, err) < 0)
        return -(int)err->code;
    for (size_t i = 0; i < reply->n_jobs; i++)
        vec_push(out, reply->jobs[i]->id);
    return 0;
}

int steps_list(struct cli *cli, const uint32_t *jobs, size_t count, ListStepsReply **out,
               struct err *err)
{
    ListStepsRequest request = LIST_STEPS_REQUEST__INIT;

    request.n_job_ids = count;
    request.job_ids = (uint32_t *)jobs;
    return cli_call(cli, "ListSteps", &request.base, &list_steps_reply__descriptor,
                    (ProtobufCMessage **)out, err);
}

static int ask(struct cli *cli, const char *address, const char *token,
               const JobStepsRequest *request, JobStepsReply **out, struct err *err)
{
    struct client *node = client_new(
        &(struct client_options){ .addresses = address, .token = token, .default_port = 6818 },
        err);

    if (!node)
        return -(int)err->code;
    int ret = client_call(node, JOB_STEPS, &request->base, &job_steps_reply__descriptor,
                          &cli->arena, (ProtobufCMessage **)out, err);
    client_free(node);
    return ret;
}

int steps_ask_manager(struct cli *cli, uint32_t job, bool has_step, uint32_t step, bool usage,
                      JobAccessReply **access, JobStepsReply **out, struct err *err)
{
    JobAccessRequest where = JOB_ACCESS_REQUEST__INIT;
    JobStepsRequest request = JOB_STEPS_REQUEST__INIT;

    where.id = arena_printf(&cli->arena, "%u", job);
    if (cli_call(cli, "JobAccess", &where.base, &job_access_reply__descriptor,
                 (ProtobufCMessage **)access, err) < 0)
        return -(int)err->code;
    if (str_is_empty((*access)->address))
        return err_code(err, ERR_ALREADY_DONE);
    request.has_job_id = true;
    request.job_id = job;
    request.has_step = has_step;
    request.step = step;
    request.has_usage = request.usage = usage;
    return ask(cli, (*access)->address, (*access)->token, &request, out, err);
}

int steps_ask_node(struct cli *cli, const char *address, const StepHere *step, size_t index,
                   JobStepsReply **out, struct err *err)
{
    JobStepsRequest request = JOB_STEPS_REQUEST__INIT;

    if (index >= step->n_proofs)
        return err_code(err, ERR_CREDENTIAL);
    request.has_layout = request.has_proof = true;
    request.layout = step->layout;
    request.proof = step->proofs[index];
    request.has_usage = request.usage = true;
    return ask(cli, address, "", &request, out, err);
}

const char *steps_own_socket(uint32_t job)
{
    CLEANUP(hostlist_done) struct hostlist hosts = { 0 };
    CLEANUP(str_done) struct str first = { 0 };
    const char *socket = getenv("SPUR_NODE_SOCKET"), *node = getenv("SLURMD_NODENAME");
    const char *list = getenv("SLURM_JOB_NODELIST"), *id = getenv("SPUR_JOB"); /* JOB.ATTEMPT */
    uint64_t here;

    if (!socket || !node || !list || !id)
        return NULL;
    CLEANUP(freep) char *number = mem_strndup(id, strcspn(id, "."));
    if (!str_to_u64(number, UINT32_MAX, &here) || here != job ||
        hostlist_parse(&hosts, list, NULL) < 0 || !hostlist_nth(&hosts, 0, &first) ||
        strcmp(str_text(&first), node) != 0)
        return NULL;
    return socket;
}
