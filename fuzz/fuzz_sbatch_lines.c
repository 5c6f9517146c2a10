/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_sbatch_lines.c - any text is a script: its lines are options or an error, within bounds
 */
#include "schema/script.h"

#include "base/limits.h"
#include "fuzz/fuzz.h"
#include "schema/columns.h"
#include "schema/pattern.h"

/* What was accepted survives the wire, and its names can be shown and expanded. */
static void accepted(struct job_request *request)
{
    Job job = JOB__INIT;
    struct field_ctx ctx = { .now_us = 1794768163000000 };
    size_t size = job_spec__get_packed_size(request->spec);
    uint8_t *bytes = mem_new(size + 1);
    FUZZ_TEXT out = { 0 };
    JobSpec *again;

    CHECK(request->spec->n_gres <= LIMIT_GRES_KINDS);
    CHECK(request->spec->time_limit_s >= -1 && request->spec->time_limit_s <= LIMIT_SECONDS + 60);
    CHECK(job_spec__pack(request->spec, bytes) == size);
    again = job_spec__unpack(NULL, size, bytes);
    CHECK(again);
    job.spec = again;
    field_add_record(&job_fields, &job, &ctx, true, &out);
    CHECK(strchr(str_text(&out), '\n') == out.data + out.len - 1);
    str_clear(&out);
    if (pattern_output_path(&job, false, &out, NULL) == 0)
        CHECK(out.len <= 2 * LIMIT_PATH_BYTES + 1);
    job_spec__free_unpacked(again, NULL);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char *no_env[] = { NULL };
    struct option_ctx ctx = { .now_us = 1794768163000000, .env = no_env };
    const char *script = size ? (const char *)data : "";
    struct err err = { 0 };
    unsigned components = 1;

    if (script_check(script, size, &err) < 0)
        CHECK(err.text[0]);
    for (unsigned i = 0; i < components && i < 3; i++) {
        struct job_request request;

        job_request_init(&request);
        err_clear(&err);
        if (script_read_options(&sbatch_options, &ctx, &request, script, size, i, &components,
                                &err) < 0 ||
            job_request_finish(&request, &err) < 0) {
            CHECK(err.code != ERR_OK && err.text[0]);
            components = 0;
        } else {
            CHECK(components >= 1 && components <= LIMIT_HET_COMPONENTS);
            accepted(&request);
        }
        job_request_done(&request);
    }
    return 0;
}
