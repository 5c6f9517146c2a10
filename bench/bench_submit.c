/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_submit.c - P1 and P2: durable submissions per second, and the latency of one
 *
 *     bench-submit ADDRESS CONNECTIONS IN_FLIGHT COUNT [ENV_BYTES [SCRIPT_BYTES]]
 *
 * Every job is held, so that only the submission is measured. Prints `submissions RATE per_s` and
 * the latencies p50 and p99 of single calls.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "proto/controller.pb-c.h"
#include "rpc/rpc.h"
#include "sys/clock.h"

struct bench {
    uv_loop_t uv;
    SubmitJobRequest request;
    long left, open, count, failed;
    int64_t *took_us;
    long done;
};

struct slot {
    struct bench *bench;
    struct rpc_client *client;
    int64_t began_us;
};

static void submit(struct slot *slot);

static void on_done(struct rpc_request *request, const ProtobufCMessage *reply,
                    const struct err *err)
{
    struct slot *slot = rpc_request_data(request);
    struct bench *bench = slot->bench;

    (void)reply;
    if (err && !bench->failed++)
        fprintf(stderr, "bench-submit: %s\n", err->text);
    bench->took_us[bench->done++] = clock_mono_us() - slot->began_us;
    bench->open--;
    if (bench->left > 0)
        submit(slot);
    else if (bench->open == 0)
        uv_stop(&bench->uv);
}

static void submit(struct slot *slot)
{
    struct rpc_request_options options = {
        .path = "/spur.Controller/SubmitJob",
        .message = &slot->bench->request.base,
        .reply = &submit_job_reply__descriptor,
        .wait_ready = true,
        .timeout_ms = 60000,
        .data = slot,
        .on_done = on_done,
    };

    slot->bench->left--;
    slot->bench->open++;
    slot->began_us = clock_mono_us();
    rpc_request_start(slot->client, &options);
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void fill_payload(JobPayload *payload, size_t env_bytes, size_t script_bytes)
{
    size_t count = env_bytes / 60 + 1;
    struct str script = { 0 };

    payload->n_env = count;
    payload->env = NEW_ARRAY(ProtobufCBinaryData, count);
    for (size_t i = 0; i < count; i++) {
        char *text =
            mem_printf("BENCH_VARIABLE_%03zu=/opt/software/module/%zu/lib64:/usr/lib", i, i);
        payload->env[i] = (ProtobufCBinaryData){ strlen(text), (uint8_t *)text };
    }
    str_add(&script, "#!/bin/bash\n");
    while (script.len < script_bytes)
        str_add(&script, "# a line of the script\n");
    str_add(&script, "true\n");
    payload->has_script = true;
    payload->script = (ProtobufCBinaryData){ script.len, (uint8_t *)script.data };
}

int main(int argc, char **argv)
{
    static JobComponent component;
    static JobComponent *components[] = { &component };
    static JobSpec spec;
    static JobPayload payload;
    struct bench bench = { 0 };
    struct err err = { 0 };

    if (argc < 5) {
        fprintf(stderr, "usage: bench-submit ADDRESS CONNECTIONS IN_FLIGHT COUNT [ENV [SCRIPT]]\n");
        return 2;
    }
    int connections = atoi(argv[2]), in_flight = atoi(argv[3]);
    bench.count = bench.left = atol(argv[4]);
    bench.took_us = NEW_ARRAY(int64_t, bench.count + 1);
    job_component__init(&component);
    job_spec__init(&spec);
    job_payload__init(&payload);
    submit_job_request__init(&bench.request);
    spec.name = (char *)"bench";
    spec.work_dir = (char *)"/tmp";
    spec.std_out = (char *)"/dev/null";
    spec.has_batch = spec.batch = true;
    spec.has_hold = true;
    spec.hold = !getenv("BENCH_RUN"); /* then they run: `true` each */
    fill_payload(&payload, argc > 5 ? (size_t)atol(argv[5]) : 3000,
                 argc > 6 ? (size_t)atol(argv[6]) : 300);
    component.spec = &spec;
    component.payload = &payload;
    bench.request.n_components = 1;
    bench.request.components = components;

    uv_loop_init(&bench.uv);
    struct rpc_loop *loop = rpc_loop_new(&bench.uv);
    struct slot *slots = NEW_ARRAY(struct slot, connections * in_flight);
    int64_t began = clock_mono_us();
    for (int c = 0; c < connections; c++) {
        struct rpc_client_options options = { .addresses = argv[1] };
        struct rpc_client *client = rpc_client_new(loop, &options, &err);
        if (!client) {
            fprintf(stderr, "bench-submit: %s\n", err.text);
            return 1;
        }
        for (int i = 0; i < in_flight && bench.left > 0; i++) {
            struct slot *slot = &slots[c * in_flight + i];
            *slot = (struct slot){ &bench, client, 0 };
            submit(slot);
        }
    }
    uv_run(&bench.uv, UV_RUN_DEFAULT);
    double seconds = (double)(clock_mono_us() - began) / 1e6;
    qsort(bench.took_us, (size_t)bench.done, sizeof(int64_t), by_value);
    printf("submissions %.0f per_s p50 %.3f ms p99 %.3f ms failed %ld\n",
           (double)bench.done / seconds, (double)bench.took_us[bench.done / 2] / 1e3,
           (double)bench.took_us[bench.done * 99 / 100] / 1e3, bench.failed);
    return bench.failed != 0;
}
