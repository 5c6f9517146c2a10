/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_trace.c - lines of a trace: an error, or jobs within their bounds
 *
 * The first byte chooses the form; the rest is the file, line by line.
 */
#include "trace-sim/sim.h"

#include "base/limits.h"
#include "fuzz/fuzz.h"

static void check_jobs(struct sim_trace *trace)
{
    vec_each (struct sim_job, job, &trace->jobs) {
        CHECK(job->submit_s >= 0 && job->submit_s <= LIMIT_SECONDS);
        CHECK(job->run_s > 0 && job->run_s <= LIMIT_SECONDS);
        CHECK(job->limit_s == -1 || (job->limit_s > 0 && job->limit_s <= LIMIT_SECONDS));
        CHECK(job->user < trace->users.len && job->name < trace->names.len);
    }
    CHECK(sim_trace_limits(trace, "random:5", NULL) == 0);
    vec_each (struct sim_job, job, &trace->jobs)
        CHECK(job->limit_s >= job->run_s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sim_trace trace;
    struct sim_reader reader = { .trace = &trace, .path = "fuzz" };
    struct err err = { 0 };
    uint32_t number = 1;
    int code = 0;

    if (!size)
        return 0;
    sim_trace_init(&trace);
    reader.only = data[0] & 2 ? "user=a" : NULL;
    for (size_t at = 1; code >= 0 && at < size; number++) {
        const uint8_t *end = memchr(data + at, '\n', size - at);
        size_t len = end ? (size_t)(end - data) - at : size - at;
        char *line = mem_strndup((const char *)data + at, len);
        code = (data[0] & 1 ? sim_swf_line : sim_tsv_line)(&reader, line, number, &err);
        CHECK(code >= 0 || err.text[0]);
        free(line);
        at += len + 1;
    }
    check_jobs(&trace);
    freep(&reader.only_value);
    freep(&reader.part);
    sim_trace_done(&trace);
    return 0;
}
