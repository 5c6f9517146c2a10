/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_stub_jobs.c - jobs of 24 shapes, submitted over kept connections, many at a time
 */
#include <stdlib.h>
#include <string.h>

#include "bench/bench_stubs.h"
#include "sys/clock.h"

enum { CONNECTIONS = 16, IN_FLIGHT = 8, PROBE_MS = 20, VARIABLES = 50, BACKOFF_MS = 200 };

struct slot {
    struct bench *bench;
    struct rpc_client *client;
    int64_t began_us;
    bool probe;
};

/* One load at a time. */
static struct {
    SubmitJobRequest request[STUB_SHAPES];
    JobComponent component[STUB_SHAPES], *components[STUB_SHAPES][1];
    JobSpec spec[STUB_SHAPES];
    GresRequest gpus[STUB_SHAPES], *gres[STUB_SHAPES][1];
    JobPayload payload;
    long count;
} load;

static void fill_payload(JobPayload *payload)
{
    static char script[] = "#!/bin/bash\ntrue\n";

    job_payload__init(payload);
    payload->n_env = VARIABLES;
    payload->env = NEW_ARRAY(ProtobufCBinaryData, VARIABLES);
    for (size_t i = 0; i < VARIABLES; i++) {
        char *text =
            mem_printf("BENCH_VARIABLE_%03zu=/opt/software/module/%zu/lib64:/usr/lib", i, i);
        payload->env[i] = (ProtobufCBinaryData){ strlen(text), (uint8_t *)text };
    }
    SET(payload, script, ((ProtobufCBinaryData){ strlen(script), (uint8_t *)script }));
}

static void make_requests(const struct stub_load *of)
{
    if (!load.payload.n_env)
        fill_payload(&load.payload);
    for (unsigned i = 0; i < STUB_SHAPES; i++) {
        JobSpec *spec = &load.spec[i];
        job_component__init(&load.component[i]);
        job_spec__init(spec);
        submit_job_request__init(&load.request[i]);
        spec->name = (char *)of->name;
        spec->dependency = (char *)of->dependency;
        spec->work_dir = (char *)"/tmp";
        spec->std_out = (char *)"/dev/null";
        SET(spec, batch, true);
        SET(spec, requeue, true);
        SET(spec, cpus_per_task, 1 + i % 4);
        SET(spec, mem_per_node_mb, 1024 * (1 + i % 3));
        SET(spec, time_limit_s, 600 * (1 + i % 8));
        if (i % 2) {
            gres_request__init(&load.gpus[i]);
            load.gpus[i].name = (char *)"gpu";
            SET(&load.gpus[i], count, 1 + i % 2);
            SET(&load.gpus[i], scope, GRES_PER_NODE);
            load.gres[i][0] = &load.gpus[i];
            spec->n_gres = 1;
            spec->gres = load.gres[i];
        }
        load.component[i].spec = spec;
        load.component[i].payload = &load.payload;
        load.components[i][0] = &load.component[i];
        load.request[i].n_components = 1;
        load.request[i].components = load.components[i];
    }
}

static void submit(struct slot *slot);

static void on_submitted(struct rpc_request *request, const ProtobufCMessage *reply,
                         const struct err *err)
{
    struct slot *slot = rpc_request_data(request);
    struct bench *bench = slot->bench;

    (void)reply;
    if (err)
        stub_die("submitting", err);
    if (slot->probe) {
        vec_push(&bench->probes, clock_mono_us() - slot->began_us);
        free(slot);
    } else if (++bench->answered == load.count) {
        uv_stop(&bench->uv);
    } else if (bench->submitted < load.count) {
        submit(slot);
    }
}

static void submit(struct slot *slot)
{
    struct bench *bench = slot->bench;

    slot->began_us = clock_mono_us();
    rpc_request_start(slot->client,
                      &(struct rpc_request_options){
                          .path = "/spur.Controller/SubmitJob",
                          .message = &load.request[bench->submitted % STUB_SHAPES].base,
                          .reply = &submit_job_reply__descriptor,
                          .wait_ready = true,
                          .timeout_ms = 60000,
                          .data = slot,
                          .on_done = on_submitted });
    bench->submitted += !slot->probe;
}

static void credentials(void *ctx, struct str *out)
{
    const struct bench *bench = ctx;

    str_addf(out, "Bearer %s", bench->other_token);
}

static struct rpc_client *connection(struct bench *bench, bool other)
{
    struct rpc_client_options options = { .addresses = other ? bench->address : bench->socket,
                                          .ctx = bench,
                                          .backoff_max_ms = BACKOFF_MS };
    struct err err = { 0 };

    if (other)
        options.credentials = credentials;
    struct rpc_client *client = rpc_client_new(bench->rpc, &options, &err);
    if (!client)
        stub_die("connecting", &err);
    return client;
}

void stub_jobs_queue(struct bench *bench, const struct stub_load *of, long count)
{
    struct slot *slots = NEW_ARRAY(struct slot, CONNECTIONS * IN_FLIGHT);
    struct rpc_client *clients[CONNECTIONS];

    make_requests(of);
    load.count = count;
    bench->submitted = bench->answered = 0;
    for (int c = 0; c < CONNECTIONS; c++) {
        clients[c] = connection(bench, of->other);
        for (int i = 0; i < IN_FLIGHT && bench->submitted < count; i++) {
            struct slot *slot = &slots[c * IN_FLIGHT + i];
            *slot = (struct slot){ bench, clients[c], 0, false };
            submit(slot);
        }
    }
    uv_run(&bench->uv, UV_RUN_DEFAULT);
    for (int c = 0; c < CONNECTIONS; c++)
        rpc_client_free(clients[c]);
    free(slots);
}

/* Their jobs run too, behind the others. */
static void on_probe(uv_timer_t *timer)
{
    struct bench *bench = timer->data;
    struct slot *slot = NEW(struct slot);

    *slot = (struct slot){ bench, bench->admin, 0, true };
    submit(slot);
}

void stub_jobs_probe(struct bench *bench, bool on)
{
    if (on)
        uv_timer_start(&bench->probe, on_probe, PROBE_MS, PROBE_MS);
    else
        uv_timer_stop(&bench->probe);
}
