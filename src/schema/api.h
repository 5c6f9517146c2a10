/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.h - what Slurm's REST API has, version by version: operations, objects, fields and their shapes
 *
 * The facts are in slurm_api.tsv. A writer that is told which object it writes (jsonw_expect()) leaves out what
 * the version does not have, gives a value the shape that it has there, and adds what nobody wrote as absent.
 */
#ifndef SCHEMA_API_H
#define SCHEMA_API_H

#include "base/util.h"

enum api_kind {
    API_ANY, /* whatever is written */
    API_TEXT,
    API_INT,
    API_NUM,
    API_BOOL,
    API_SET,  /* { set, infinite, number } */
    API_WORD, /* one of .words */
    API_LIST,
    API_OBJECT,
};

struct api_type;
struct api_shape {
    enum api_kind kind;
    bool decimal;                 /* of a set: the number has a fraction */
    const struct api_shape *item; /* of a list */
    const struct api_type *type;  /* of an object */
    const char *words;            /* "A|B" */
};

struct api_field {
    const char *name;
    struct api_shape shape;
    bool required;
};

struct api_type {
    const char *name; /* NULL: an object inside another, without a name of its own */
    struct api_field *fields;
    size_t count;
    uint16_t *index; /* by the hash of the name */
    size_t index_size;
};

struct api_operation {
    const char *method, *path; /* "/slurm/{v}/jobs/" */
    const char *answer, *body; /* names of objects; NULL: none */
    const char *id;            /* "slurm_{v}_get_jobs" */
    const char *params;        /* of the query, with commas */
};

enum { API_FIRST = 42, API_LAST = 45, API_DEFAULT = 42 };

/* NULL: the version does not have it. Everything lives as long as the process. */
const struct api_type *api_object(unsigned version, const char *name);
const struct api_operation *api_operation_of(unsigned version, const char *method,
                                             const char *path);
const struct api_type *api_types(unsigned version, size_t *count);

/* The number of the field, or -1. */
int api_field_find(const struct api_type *type, const char *name);

/* "v0.0.43" or "43" of --json=; 0: not one that there is. */
unsigned api_version_read(const char *text);

#endif
