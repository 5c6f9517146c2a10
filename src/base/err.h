/* SPDX-License-Identifier: Apache-2.0 */
/*
 * err.h - errors travel up, once
 *
 * A function that can fail for a reason outside this program returns a negative code and fills
 * `struct err`, its last parameter (which may be NULL when the caller wants only the code). Outputs
 * are written only on success. Whoever decides what to do logs or prints the text, once.
 *
 *     if (file_read(path, &text, err) < 0)
 *         return err_wrap(err, "batch script '%s'", path);
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "base/util.h"

enum err_code {
    ERR_OK = 0,
#define ERR(code, slurm, grpc, http, text) code,
#include "base/err_list.h"
#undef ERR
    ERR_COUNT
};

/* gRPC's status codes, by their public numbers. */
enum grpc_status {
    GRPC_OK = 0,
    GRPC_CANCELLED = 1,
    GRPC_UNKNOWN = 2,
    GRPC_INVALID_ARGUMENT = 3,
    GRPC_DEADLINE_EXCEEDED = 4,
    GRPC_NOT_FOUND = 5,
    GRPC_ALREADY_EXISTS = 6,
    GRPC_PERMISSION_DENIED = 7,
    GRPC_RESOURCE_EXHAUSTED = 8,
    GRPC_FAILED_PRECONDITION = 9,
    GRPC_ABORTED = 10,
    GRPC_OUT_OF_RANGE = 11,
    GRPC_UNIMPLEMENTED = 12,
    GRPC_INTERNAL = 13,
    GRPC_UNAVAILABLE = 14,
    GRPC_DATA_LOSS = 15,
    GRPC_UNAUTHENTICATED = 16,
};

enum { ERR_TEXT_BYTES = 512, ERR_OPTION_BYTES = 48 };

struct err {
    enum err_code code;
    char option[ERR_OPTION_BYTES]; /* which option, key or field was wrong; may be empty */
    char text[ERR_TEXT_BYTES];     /* a sentence without a final newline */
};

/* Sets code and text; returns -(int)code. With err == NULL only returns. */
int err_set(struct err *err, enum err_code code, const char *fmt, ...) PRINTF(3, 4);
/* The code with its own text from the table. */
int err_code(struct err *err, enum err_code code);
/* Puts "prefix: " before the text that is there; returns the code that is there. */
int err_wrap(struct err *err, const char *fmt, ...) PRINTF(2, 3);
/* "what: <text of errno>"; the code follows from errno (ENOENT, EACCES, ENOSPC, ENOMEM, else IO). */
int err_errno(struct err *err, int saved_errno, const char *fmt, ...) PRINTF(3, 4);
void err_option(struct err *err, const char *option);
void err_clear(struct err *err);

const char *err_name(enum err_code code); /* "ERR_INVALID_JOB_ID" */
const char *err_text(enum err_code code); /* "Invalid job id specified" */
int err_slurm(enum err_code code);        /* 2017, or 0 */
enum grpc_status err_grpc(enum err_code code);
int err_http(enum err_code code);
enum err_code err_from_slurm(int number);        /* ERR_OK when there is none */
enum err_code err_from_grpc(enum grpc_status s); /* the nearest general code */

#endif
