/* SPDX-License-Identifier: Apache-2.0 */
/*
 * acct.h - fields of the history: columns of sacct, and a job of the history as JSON
 *
 * A line is a run of a job or one of its steps. One row of acct_fields says what a field is called, how wide its
 * column is and how it is written; sacct, its --helpformat and seff read the same rows, and REST the JSON.
 */
#ifndef SCHEMA_ACCT_H
#define SCHEMA_ACCT_H

#include "base/str.h"
#include "proto/dbd.pb-c.h"
#include "schema/jsonw.h"

enum {
    ACCT_STEP_BATCH = 0xfffffffb,
    ACCT_STEP_EXTERN = 0xfffffffc,
    ACCT_STEP_INTERACTIVE = 0xfffffffa
};

/* What writers may know of the world. */
struct acct_ctx {
    int64_t now_us;
    const char *time_format; /* SLURM_TIME_FORMAT */
    char units;              /* of sizes: K, M, G, T, P; 0: the largest that loses nothing */
    bool noconvert;
    bool expand;   /* patterns in names of files */
    bool truncate; /* starts and ends outside the window are its ends */
    int64_t from_us, upto_us;
    size_t array_chars; /* SLURM_BITSTR_LEN; 0: all */
};

struct acct_line {
    const struct acct_ctx *ctx;
    const AcctJob *job;
    const AcctStep *step; /* NULL: the line of the job */
};

typedef void acct_writer(const struct acct_line *line, unsigned number, struct str *out);

struct acct_field {
    const char *name;
    int width; /* negative: to the left */
    acct_writer *write;
    unsigned number; /* the writer's own */
};
extern const struct acct_field acct_fields[];
extern const size_t acct_field_count;

/* By its name, case ignored, also an unambiguous beginning of it as in Slurm; NULL: there is none. */
const struct acct_field *acct_field_find(const char *name, size_t len);

/* "batch", "extern", "interactive", "0". */
void acct_add_step_name(struct str *out, uint32_t step);

/* What columns and seff share. */
int64_t acct_start_us(const struct acct_line *line); /* 0: not yet */
int64_t acct_end_us(const struct acct_line *line);   /* 0: not yet */
int64_t acct_elapsed_s(const struct acct_line *line);
/* CPU time of the line; of a job that of all its steps. */
void acct_cpu_us(const struct acct_line *line, int64_t *user_us, int64_t *system_us);
/* The number of `name` in "cpu=8,mem=4000M,gres/gpu=2"; sizes in MB. */
uint64_t acct_tres(const char *tres, const char *name);
void acct_add_tres(const struct acct_line *line, bool given, struct str *out);
uint32_t acct_cpus(const struct acct_line *line);
void acct_add_state(const struct acct_line *line, struct str *out);

/* Slurm's number of a TRES; 1001 for those that a site names. */
unsigned acct_tres_id(const char *name, size_t len);
/* A list of { type, name, id, count } from "cpu=8,gres/gpu=2"; NULL is an empty list. */
void acct_add_tres_json(struct jsonw *json, const char *key, const char *text);

/* One JSON object of a run of a job, with its steps. */
void acct_add_json(const struct acct_ctx *ctx, const AcctJob *job, struct jsonw *json);

#endif
