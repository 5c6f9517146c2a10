/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_desc.h - a job as JSON describes it, read into the rows of options that sbatch has
 *
 * A key of Slurm's job description stands for an option: the same row reads the value, so that what sbatch takes,
 * REST takes, and means the same.
 */
#ifndef SPURRESTD_JOB_DESC_H
#define SPURRESTD_JOB_DESC_H

#include <jansson.h>

#include "schema/request.h"
#include "spurrestd/answer.h"

enum job_desc_kind {
    DESC_TEXT,    /* text or number: the option's value */
    DESC_MINUTES, /* a number of minutes, or text as the option has it */
    DESC_MEGABYTES,
    DESC_LIST,    /* texts, joined by commas */
    DESC_YES,     /* true: the option is given; false: it is not */
    DESC_YES_NO,  /* true and false are two options; the second is .other */
    DESC_EPOCH,   /* seconds since 1970, into the spec */
    DESC_GPUS,    /* "gres/gpu:2" or "gpu:2": the option takes what follows */
    DESC_OTHER,   /* read by submit.c itself: script, environment, argv */
    DESC_REFUSED, /* known, and not possible here */
};

struct job_desc_row {
    const char *name; /* in JSON */
    enum job_desc_kind kind;
    const char *option, *other;
    unsigned since, until; /* versions of Slurm's API; 0: always; NATIVE: only /api/v1 */
    const char *help;      /* our own words, for OpenAPI */
};
extern const struct job_desc_row job_desc_rows[];
extern const size_t job_desc_count;

/* Reads every key of `desc`. What is not known is a warning under /slurm, as recorded, and an error elsewhere. */
int job_desc_read(struct exchange *x, const json_t *desc, struct job_request *request,
                  struct warning *warnings, size_t most, size_t *warning_count, struct err *err);

#endif
