// SPDX-License-Identifier: Apache-2.0
/*
 * srun_relay.c - what nodes say to each other for MPI goes by way of us; which kind of MPI it is
 *
 * (1) Frames for a node are numbered from one and kept until it took them: a connection that is made
 *     again goes on after the last. One frame for many nodes is in memory once.
 * (2) No more than RELAY_WINDOW_BYTES are on their way to a node, LIMIT_RELAY_KEPT are kept for all.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "cli/srun.h"
#include "client/client.h"
#include "spur_pmix.h"

enum { RELAY_WINDOW_BYTES = 64 * 1024, RELAY_COST_BYTES = 512 };

struct srun_relay {
    uint32_t from;
    unsigned refs;
    bool more;
    size_t len;
    uint8_t bytes[];
};

static size_t cost(const struct srun_relay *relay)
{
    return relay->len + RELAY_COST_BYTES;
}

static void unref(struct srun *srun, struct srun_relay *relay)
{
    if (--relay->refs > 0)
        return;
    srun->relay_kept -= cost(relay);
    free(relay);
}

void srun_send_relays(struct srun_node *node)
{
    while (node->stream && node->attached && node->relays_sent < node->relays.len &&
           (node->relays_sent == 0 || node->relay_bytes < RELAY_WINDOW_BYTES)) { /* (2) */
        struct srun_relay *relay = node->relays.items[node->relays_sent++];
        RunStepIn in = RUN_STEP_IN__INIT;
        StepRelay words = STEP_RELAY__INIT;
        words.has_number = words.has_from = words.has_data = words.has_more = true;
        words.number = node->relays_taken + node->relays_sent;
        words.from = relay->from;
        words.data = (ProtobufCBinaryData){ .data = relay->bytes, .len = relay->len };
        words.more = relay->more;
        in.what_case = RUN_STEP_IN__WHAT_RELAY;
        in.relay = &words;
        node->relay_bytes += cost(relay);
        client_stream_send(node->stream, &in.base);
    }
}

void srun_on_relay(struct srun *srun, struct srun_node *node, const StepRelay *words)
{
    size_t len = words->data.len;
    struct srun_relay *relay = mem_new(sizeof(*relay) + len);

    *relay = (struct srun_relay){
        .from = (uint32_t)(node - srun->nodes), .refs = 1, .more = words->more, .len = len
    };
    memcpy(relay->bytes, words->data.data, len);
    srun->relay_kept += cost(relay);
    for (size_t i = 0; i < srun->task_nodes; i++) {
        struct srun_node *other = &srun->nodes[i];
        if (other == node || other->over || (words->has_to && words->to != i))
            continue;
        relay->refs++;
        vec_push(&other->relays, relay);
        srun_send_relays(other);
    }
    unref(srun, relay);
    if (srun->relay_kept > LIMIT_RELAY_KEPT && !srun->killing) { /* (2) */
        cli_error(&srun->cli, "%s: the nodes have too much to say to each other for --mpi=%s",
                  srun_step_name(srun), srun->layout->mpi);
        srun->failed = true;
        srun_end_step(srun, JOB_FAILED, SRUN_FORCE_WAIT_S);
    }
}

void srun_on_relayed(struct srun *srun, struct srun_node *node, uint64_t number, bool again)
{
    size_t gone = number > node->relays_taken ? (size_t)(number - node->relays_taken) : 0;

    gone = MIN(gone, node->relays_sent);
    for (size_t i = 0; i < gone; i++) {
        node->relay_bytes -= cost(node->relays.items[i]);
        unref(srun, node->relays.items[i]);
    }
    if (gone) {
        memmove(node->relays.items, node->relays.items + gone,
                (node->relays.len - gone) * sizeof(node->relays.items[0]));
        node->relays.len -= gone;
        node->relays_sent -= gone;
        node->relays_taken += gone;
    }
    if (again)
        node->relays_sent = node->relay_bytes = 0;
    srun_send_relays(node);
}

void srun_drop_relays(struct srun *srun, struct srun_node *node)
{
    for (size_t i = 0; i < node->relays.len; i++)
        unref(srun, node->relays.items[i]);
    vec_done(&node->relays);
    node->relays_sent = node->relay_bytes = 0;
}

void srun_on_abort(struct srun *srun, struct srun_node *node, const StepAbort *words)
{
    if (words->task < srun->ntasks) /* another node may be the first to say it */
        node = &srun->nodes[srun->tasks[words->task].node];
    if (srun->mpi_aborted)
        return;
    srun->mpi_aborted = true;
    srun->mpi_code = words->code ? words->code & 0xff : 1;
    if (!str_is_empty(words->text))
        cli_error(&srun->cli, "%s: task %u: %s", node->node->name, words->task, words->text);
    if (!srun->killing)
        srun_end_step(srun, JOB_CANCELLED, SRUN_FORCE_WAIT_S);
}

/* ---- which kind ---- */

static const struct {
    const char *name, *is;
    bool unlisted; /* a name of a version */
} kinds[] = {
    { "none", "none" },
    { "pmi2", "pmi2" },
#if SPUR_HAS_PMIX
    { "pmix", "pmix" },
    { SPUR_PMIX_NAME, "pmix", true },
#endif
};

/* A launcher's daemons are few, share everything with who started them, and bind what they start. */
static void serve_launcher(struct job_request *request)
{
    request->overlap = true;
    request->exact = false;
    request->mpi = "none";
    if (!request->spec->cpu_bind)
        request->spec->cpu_bind = mem_strdup("none");
}

int srun_set_mpi(struct srun *srun)
{
    if (srun->request.external_launcher)
        serve_launcher(&srun->request);
    const char *asked = srun->request.mpi;

    for (size_t i = 0; asked && i < ARRAY_LEN(kinds); i++) {
        if (str_ieq(kinds[i].name, asked))
            srun->mpi = kinds[i].is;
    }
    if (!asked || srun->mpi)
        return 0;
    cli_error(&srun->cli, "Couldn't find the specified plugin name for mpi/%s looking at all files",
              asked);
    if (!SPUR_HAS_PMIX && str_istarts(asked, "pmix"))
        cli_error(&srun->cli, "This Spur was built without PMIx (libpmix-dev)");
    cli_error(&srun->cli, "Invalid MPI type '%s', --mpi=list for acceptable types", asked);
    return 1;
}

void srun_list_mpi(void)
{
    puts("MPI plugin types are...");
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (!kinds[i].unlisted)
            printf("\t%s\n", kinds[i].name);
    }
    if (SPUR_HAS_PMIX)
        puts("specific pmix plugin versions available: " SPUR_PMIX_NAME);
}
