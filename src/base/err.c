/* SPDX-License-Identifier: Apache-2.0 */
/*
 * err.c - errors travel up, once
 */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct row {
    const char *name, *text;
    int slurm, http;
    enum grpc_status grpc;
} rows[ERR_COUNT] = {
    [ERR_OK] = { "ERR_OK", "No error", 0, 200, GRPC_OK },
#define ERR(code, slurm_number, grpc_status, http_status, words) \
    [code] = { #code, words, slurm_number, http_status, GRPC_##grpc_status },
#include "base/err_list.h"
#undef ERR
};

static void set_text(struct err *err, enum err_code code, const char *fmt, va_list args)
{
    err->code = code;
    err->option[0] = '\0';
    vsnprintf(err->text, sizeof(err->text), fmt, args);
}

int err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
    if (err) {
        va_list args;
        va_start(args, fmt);
        set_text(err, code, fmt, args);
        va_end(args);
    }
    return -(int)code;
}

int err_code(struct err *err, enum err_code code)
{
    return err_set(err, code, "%s", err_text(code));
}

int err_wrap(struct err *err, const char *fmt, ...)
{
    char old[ERR_TEXT_BYTES];
    va_list args;

    if (!err)
        return -(int)ERR_INTERNAL;
    memcpy(old, err->text, sizeof(old));
    va_start(args, fmt);
    int len = vsnprintf(err->text, sizeof(err->text), fmt, args);
    va_end(args);
    if (len >= 0 && (size_t)len < sizeof(err->text))
        snprintf(err->text + len, sizeof(err->text) - (size_t)len, ": %s", old);
    return -(int)err->code;
}

int err_errno(struct err *err, int saved_errno, const char *fmt, ...)
{
    enum err_code code = saved_errno == ENOENT                            ? ERR_NOT_FOUND
                         : saved_errno == EACCES || saved_errno == EPERM  ? ERR_PERMISSION
                         : saved_errno == ENOSPC || saved_errno == EDQUOT ? ERR_DISK_FULL
                         : saved_errno == ENOMEM                          ? ERR_NO_MEMORY
                         : saved_errno == EEXIST                          ? ERR_EXISTS
                                                                          : ERR_IO;

    if (err) {
        va_list args;
        va_start(args, fmt);
        set_text(err, code, fmt, args);
        va_end(args);
        size_t len = strlen(err->text);
        snprintf(err->text + len, sizeof(err->text) - len, ": %s", strerror(saved_errno));
    }
    return -(int)code;
}

void err_option(struct err *err, const char *option)
{
    if (err)
        snprintf(err->option, sizeof(err->option), "%s", option ? option : "");
}

void err_clear(struct err *err)
{
    if (err)
        *err = (struct err){ 0 };
}

static const struct row *row_of(enum err_code code)
{
    return &rows[(unsigned)code < ERR_COUNT ? code : ERR_INTERNAL];
}

const char *err_name(enum err_code code)
{
    return row_of(code)->name;
}

const char *err_text(enum err_code code)
{
    return row_of(code)->text;
}

int err_slurm(enum err_code code)
{
    return row_of(code)->slurm;
}

enum grpc_status err_grpc(enum err_code code)
{
    return row_of(code)->grpc;
}

int err_http(enum err_code code)
{
    return row_of(code)->http;
}

enum err_code err_from_slurm(int number)
{
    for (int code = 1; number && code < ERR_COUNT; code++) {
        if (rows[code].slurm == number)
            return (enum err_code)code;
    }
    return ERR_OK;
}

enum err_code err_from_grpc(enum grpc_status status)
{
    static const enum err_code nearest[] = {
        [GRPC_OK] = ERR_OK,
        [GRPC_CANCELLED] = ERR_CANCELLED,
        [GRPC_UNKNOWN] = ERR_INTERNAL,
        [GRPC_INVALID_ARGUMENT] = ERR_INVALID,
        [GRPC_DEADLINE_EXCEEDED] = ERR_DEADLINE,
        [GRPC_NOT_FOUND] = ERR_NOT_FOUND,
        [GRPC_ALREADY_EXISTS] = ERR_EXISTS,
        [GRPC_PERMISSION_DENIED] = ERR_PERMISSION,
        [GRPC_RESOURCE_EXHAUSTED] = ERR_TOO_LARGE,
        [GRPC_FAILED_PRECONDITION] = ERR_TRANSITION,
        [GRPC_ABORTED] = ERR_TRANSITION,
        [GRPC_OUT_OF_RANGE] = ERR_RANGE,
        [GRPC_UNIMPLEMENTED] = ERR_NO_METHOD,
        [GRPC_INTERNAL] = ERR_INTERNAL,
        [GRPC_UNAVAILABLE] = ERR_UNREACHABLE,
        [GRPC_DATA_LOSS] = ERR_CORRUPT,
        [GRPC_UNAUTHENTICATED] = ERR_UNAUTHENTICATED,
    };

    return (unsigned)status < ARRAY_LEN(nearest) ? nearest[status] : ERR_INTERNAL;
}
