// SPDX-License-Identifier: Apache-2.0
/*
 * srun_ports.c - --resv-ports: each node of the step holds its ports before any task starts
 *
 * The node that manages the job does not know what steps of other jobs have elsewhere. Where some of the ports
 * are taken, the step is given back and asked for again without these.
 */
#include <poll.h>
#include <stdlib.h>

#include "cli/srun.h"
#include "client/client.h"

enum { AGAIN_MS = 500 };

static int ask(struct srun *srun, size_t index, bool release, char **busy, struct err *err)
{
    const StepNode *node = srun->layout->nodes[index];
    HoldPortsRequest request = HOLD_PORTS_REQUEST__INIT;
    HoldPortsReply *reply;
    struct client *client = client_new(
        &(struct client_options){ .addresses = node->address, .token = "", .default_port = 6818 },
        err);

    if (!client)
        return -1;
    request.has_layout = request.has_proof = request.has_release = true;
    request.layout = srun->created->layout;
    if (index < srun->created->n_proofs)
        request.proof = srun->created->proofs[index];
    request.release = release;
    int ret = client_call(client, "/spur.NodeAccess/HoldPorts", &request.base,
                          &hold_ports_reply__descriptor, &srun->cli.arena,
                          (ProtobufCMessage **)&reply, err);
    if (ret == 0)
        *busy = reply->busy;
    client_free(client);
    return ret;
}

/* 0: all have them; 1: some are taken, which `avoid` then names; -1 after a complaint. */
static int hold_all(struct srun *srun, struct str *avoid)
{
    size_t at = 0;
    char *busy = NULL, *ignored = NULL;
    struct err err = { 0 };

    while (at < srun->layout->n_nodes && !busy && ask(srun, at, false, &busy, &err) == 0)
        at++;
    if (at == srun->layout->n_nodes && !busy)
        return 0;
    for (size_t i = 0; i + 1 < at; i++)
        ask(srun, i, true, &ignored, NULL);
    if (!busy) {
        cli_error(&srun->cli, "%s: %s", srun->layout->nodes[at]->name, err.text);
        return -1;
    }
    str_addf(avoid, "%s%s", avoid->len ? "," : "", busy);
    return 1;
}

static void give_back(struct srun *srun)
{
    struct srun_node *manager = &srun->manager;
    ProtobufCMessage *message;
    struct err err = { 0 };

    client_stream_finish(manager->stream);
    while (client_stream_next(manager->stream, &srun->cli.arena, &message, &err) == CLIENT_MESSAGE)
        ;
    client_stream_free(TAKE(manager->stream));
    client_free(TAKE(manager->client));
    step_layout__free_unpacked(TAKE(srun->layout), NULL);
    srun->created = NULL;
}

static bool wait_some(struct srun *srun, bool *said)
{
    if (srun->request.spec->immediate) {
        cli_error(&srun->cli, "Unable to create step for job %u: %s", srun->job_id,
                  err_text(ERR_PORTS_BUSY));
        return false;
    }
    if (!*said && !srun->cli.quiet)
        cli_say(&srun->cli, "Job %u step creation temporarily disabled, retrying (%s)",
                srun->job_id, err_text(ERR_PORTS_BUSY));
    *said = srun->waited = true;
    poll(NULL, 0, AGAIN_MS);
    if (srun_interrupted)
        cli_say(&srun->cli, "Cancelled pending step for job %u", srun->job_id);
    return !srun_interrupted;
}

int srun_create(struct srun *srun)
{
    CLEANUP(str_done) struct str avoid = { 0 };
    bool said = false;

    for (;;) {
        srun->avoid_ports = avoid.len ? avoid.data : NULL;
        int code = srun_create_once(srun);
        if (code == 0 && str_is_empty(srun->layout->resv_ports))
            return 0;
        if (code == 0) {
            int held = hold_all(srun, &avoid);
            if (held == 0)
                return 0;
            give_back(srun);
            if (held < 0)
                return 1;
            continue;
        }
        if (code != SRUN_PORTS_BUSY)
            return code;
        str_clear(&avoid); /* who had them may be gone by then */
        if (!wait_some(srun, &said))
            return 1;
    }
}
