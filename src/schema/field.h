/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field.h - visible fields of jobs, nodes and partitions: one row each, read by every walk
 *
 * A row names a field of a message, says how a column shows it, under which key scontrol prints it
 * and under which name and shape JSON has it. Walks: columns of squeue and sinfo (columns.h),
 * key=value records (field_add_record), JSON (field_add_json), lists of names.
 *
 *     { .of = STATUS(start_us), .write = field_time,
 *       .column = { 'S', "StartTime", "START_TIME" }, .key = "StartTime", .record = record_start,
 *       .json = { "start_time", SHAPE_TIME }, .help = "When it started, or is expected to." },
 *
 * (1) Rows with a key stand in the order in which scontrol prints them.
 * (2) A writer adds text and returns true, or adds nothing and returns false: a record then leaves
 *     the key out, a column stays empty.
 * (3) What users typed is shown, never obeyed: records and columns escape control characters, JSON
 *     is always valid UTF-8.
 */
#ifndef SCHEMA_FIELD_H
#define SCHEMA_FIELD_H

#include <protobuf-c/protobuf-c.h>

#include "base/str.h"
#include "schema/jsonw.h"

/* What writers may know of the world. */
struct field_ctx {
    int64_t now_us;
    const char *time_format; /* SLURM_TIME_FORMAT: NULL is standard, "relative", or strftime's */
    const char *cluster;
    size_t array_chars; /* SLURM_BITSTR_LEN: of the tasks of an array; 0 all */
    bool noconvert;     /* sizes stay in MB */
    bool detail;        /* scontrol -d */
    bool expand;        /* squeue --expand-patterns */
};

/* Where a value is: in the object's message, or in the message that it points to at `via`. */
struct field_of {
    size_t via; /* offset of the pointer in the object; 0: the object itself */
    size_t offset;
    const ProtobufCMessageDescriptor *type;
};
#define FIELD_OF(object, member, message, field, descriptor)              \
    {                                                                     \
        offsetof(object, member), offsetof(message, field), &(descriptor) \
    }

enum field_shape {
    SHAPE_NONE,   /* not in JSON */
    SHAPE_TEXT,   /* the field's text; absent is "" */
    SHAPE_SHOWN,  /* what the column shows; "(null)" and "N/A" are "" */
    SHAPE_NUMBER, /* a number; absent is 0 */
    SHAPE_BOOL,
    SHAPE_SET,   /* { set, infinite, number }; absent is set false, negative is infinite */
    SHAPE_SET_0, /* the same, but absent is number 0 and set */
    SHAPE_TIME,  /* the same for microseconds, written as seconds */
    SHAPE_WORDS, /* an array of strings: the column's text split at commas */
    SHAPE_FN,    /* .json.write does it */
};

struct field;
struct field_call {
    const struct field *field;
    const void *object;
    const struct field_ctx *ctx;
};
typedef bool field_writer(const struct field_call *call, struct str *out);
typedef int64_t field_number_of(const struct field_call *call);
#define FIELD_ABSENT INT64_MIN

struct field {
    struct field_of of;
    field_writer *write;     /* as a column */
    field_number_of *number; /* for JSON, when it is not the field's own; may be FIELD_ABSENT */
    struct {
        char letter;        /* of -o, or 0 */
        const char *name;   /* of -O, or NULL */
        const char *header; /* NULL: the row is no column */
    } column;
    const char *key;      /* in records, or NULL */
    bool line;            /* begins a line of the record */
    bool detail;          /* only with scontrol -d */
    bool raw;             /* the record's writer escapes for itself: it writes several lines */
    field_writer *record; /* when it differs from the column */
    struct {
        const char *name; /* "time_limit", or "defaults.time" for an object in an object */
        enum field_shape shape;
        int64_t per; /* the number is divided by this: 60 makes minutes of seconds */
        void (*write)(const struct field_call *call, struct jsonw *json);
    } json;
    bool whole; /* its column is never cut, as times in squeue */
    bool brief; /* for columns of jobs, a list without full specs is enough */
    const char *help;
    const char *skip; /* not visible, and why; then only .of counts */
};

struct field_table {
    const char *what; /* "job" */
    const struct field *rows;
    size_t count;
};

extern const struct field_table job_fields;       /* of Job */
extern const struct field_table node_fields;      /* of Node */
extern const struct field_table partition_fields; /* of Partition */

/* The record of scontrol show: lines that begin with blanks, or all on one line. Ends in newline. */
void field_add_record(const struct field_table *table, const void *object,
                      const struct field_ctx *ctx, bool one_line, struct str *out);

/* One JSON object. */
void field_add_json(const struct field_table *table, const void *object,
                    const struct field_ctx *ctx, struct jsonw *json);

/* Column by letter, or by -O name (case ignored); NULL when there is none. */
const struct field *field_by_letter(const struct field_table *table, char letter);
const struct field *field_by_name(const struct field_table *table, const char *name, size_t len);

/* For writers: the message and descriptor of call->field->of; NULL when the message is absent. */
const void *field_message(const struct field_call *call);
bool field_present(const struct field_call *call);
int64_t field_value(const struct field_call *call);      /* 0 when absent */
const char *field_string(const struct field_call *call); /* NULL when absent */

/* Writers that any table may use. */
field_writer field_text;           /* the text, "(null)" when absent */
field_writer field_text_na;        /* "N/A" when absent */
field_writer field_text_empty;     /* "" when absent */
field_writer field_text_or_skip;   /* nothing at all when absent */
field_writer field_number;         /* 0 when absent */
field_writer field_number_or_skip; /* nothing when absent or 0 */
field_writer field_number_na;      /* "N/A" when absent */
field_writer field_number_star;    /* "*" when absent */
field_writer field_bool_digit;     /* 1 or 0 */
field_writer field_yes_no;         /* YES or NO */
field_writer field_time;           /* "2026-11-15T18:43:14"; "N/A" when absent */
field_writer field_time_unknown;   /* "Unknown" when absent */
field_writer field_time_none;      /* "None" when absent */
field_writer field_limit;          /* seconds as 1:00:00, UNLIMITED, "NOT_SET" when absent */
field_writer field_list;           /* repeated text joined by commas; "(null)" when empty */
field_writer field_list_all;       /* the same; "ALL" when empty */

/* Pieces of text that several writers share. */
void field_add_moment(struct str *out, const struct field_ctx *ctx, int64_t us);
void field_add_megabytes(struct str *out, uint64_t mb, bool noconvert); /* 500M, 62.50G */

#endif
