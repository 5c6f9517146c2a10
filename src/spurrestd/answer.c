/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer.c - the objects around what handlers answer: meta, errors, warnings
 */
#include "spurrestd/answer.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "spurrestd/rest.h"
#include "spurrestd/routes.h"

enum { PART_BYTES = 64 * 1024 };
#define SLURM_RELEASE "24.11.0" /* what commands say, too */

const char *answer_type(const struct exchange *x)
{
    return x->format == FORMAT_YAML ? "application/yaml" : "application/json";
}

/* Under /slurm and /slurmdb an answer has the shape that its version has. */
static void expect(struct answer *answer)
{
    const struct exchange *x = answer->x;
    const struct api_operation *operation =
        x->version && x->route
            ? api_operation_of(x->version, http_method_name(x->route->method), x->route->path)
            : NULL;

    jsonw_expect(&answer->json, x->version,
                 operation ? api_object(x->version, operation->answer) : NULL);
}

struct answer *answer_new(struct exchange *x)
{
    struct answer *answer = NEW(struct answer);

    answer->x = x;
    (x->format == FORMAT_YAML ? jsonw_init_yaml : jsonw_init)(&answer->json, &answer->out);
    expect(answer);
    jsonw_object(&answer->json, NULL);
    return answer;
}

void answer_free(struct answer *answer)
{
    if (answer) {
        str_done(&answer->out);
        free(answer);
    }
}

void answer_warn(struct answer *answer, const char *source, const char *fmt, ...)
{
    struct str text = { 0 };
    va_list args;

    if (answer->warning_count == ARRAY_LEN(answer->warnings))
        return;
    va_start(args, fmt);
    str_vaddf(&text, fmt, args);
    va_end(args);
    answer->warnings[answer->warning_count++] =
        (struct warning){ arena_strdup(&answer->x->arena, str_text(&text)),
                          arena_strdup(&answer->x->arena, source) };
    str_done(&text);
}

static void add_slurm_meta(struct jsonw *json, const struct exchange *x)
{
    bool db = str_starts(x->path, "/slurmdb/");
    char parser[32];

    snprintf(parser, sizeof(parser), "data_parser/v0.0.%u", x->version);
    jsonw_object(json, "plugin");
    jsonw_text(json, "type", db ? "openapi/slurmdbd" : "openapi/slurmctld");
    jsonw_text(json, "name", db ? "Slurm OpenAPI slurmdbd" : "Slurm OpenAPI slurmctld");
    jsonw_text(json, "data_parser", parser);
    jsonw_text(json, "accounting_storage", db ? "accounting_storage/slurmdbd" : "");
    jsonw_object_end(json);
    jsonw_object(json, "client");
    jsonw_text(json, "source", x->peer->text);
    jsonw_text(json, "user", x->user);
    jsonw_text(json, "group", "");
    jsonw_object_end(json);
    jsonw_list(json, "command");
    jsonw_list_end(json);
    jsonw_object(json, "slurm");
    jsonw_object(json, "version");
    jsonw_text(json, "major", "24");
    jsonw_text(json, "micro", "0");
    jsonw_text(json, "minor", "11");
    jsonw_object_end(json);
    jsonw_text(json, "release", SLURM_RELEASE);
    jsonw_text(json, "cluster", x->rest->cluster);
    jsonw_object_end(json);
}

static void add_meta(struct jsonw *json, const struct exchange *x)
{
    jsonw_object(json, "meta");
    if (x->version) {
        add_slurm_meta(json, x);
    } else {
        jsonw_text(json, "version", SPUR_VERSION);
        jsonw_text(json, "cluster", x->rest->cluster);
    }
    jsonw_object_end(json);
}

struct failure {
    const char *description, *error, *source;
    int number;
};

static void add_errors(struct jsonw *json, const struct failure *failure)
{
    jsonw_list(json, "errors");
    if (failure) {
        jsonw_object(json, NULL);
        jsonw_text(json, "description", failure->description);
        jsonw_number(json, "error_number", failure->number);
        jsonw_text(json, "error", failure->error);
        jsonw_text(json, "source", failure->source);
        jsonw_object_end(json);
    }
    jsonw_list_end(json);
}

static void add_warnings(struct jsonw *json, const struct answer *answer)
{
    jsonw_list(json, "warnings");
    for (size_t i = 0; i < answer->warning_count; i++) {
        jsonw_object(json, NULL);
        jsonw_text(json, "description", answer->warnings[i].text);
        jsonw_text(json, "source", answer->warnings[i].source);
        jsonw_object_end(json);
    }
    jsonw_list_end(json);
}

void answer_flush(struct answer *answer)
{
    struct exchange *x = answer->x;

    if (answer->out.len < PART_BYTES)
        return;
    if (!x->began)
        exchange_begin(x, 200, answer_type(x));
    exchange_write(x, answer->out.data, answer->out.len);
    str_clear(&answer->out);
}

static void send_whole(struct answer *answer, int status)
{
    struct exchange *x = answer->x;

    jsonw_object_end(&answer->json);
    str_add_char(&answer->out, '\n');
    if (x->began) {
        exchange_write(x, answer->out.data, answer->out.len);
        answer_free(answer);
        exchange_end(x);
        return;
    }
    struct str out = answer->out;
    free(answer);
    exchange_reply(x, status, answer_type(x), &out);
}

void answer_send(struct answer *answer)
{
    add_meta(&answer->json, answer->x);
    add_errors(&answer->json, NULL);
    add_warnings(&answer->json, answer);
    send_whole(answer, 200);
}

void answer_failed(struct exchange *x, int status, int number, const char *error,
                   const char *description, const char *source)
{
    answer_failed_warned(x, status, number, error, description, source, NULL, 0);
}

void answer_failed_warned(struct exchange *x, int status, int number, const char *error,
                          const char *description, const char *source,
                          const struct warning *warnings, size_t count)
{
    const struct failure failure = { description, error, source ? source : x->path, number };

    if (x->began) { /* a part of it has gone out already */
        exchange_abort(x);
        return;
    }
    struct answer *answer = answer_new(x);
    answer->warning_count = MIN(count, ARRAY_LEN(answer->warnings));
    for (size_t i = 0; i < answer->warning_count; i++)
        answer->warnings[i] = warnings[i];
    add_errors(&answer->json, &failure);
    add_warnings(&answer->json, answer);
    add_meta(&answer->json, x);
    send_whole(answer, status);
}

/* Slurm answers 422 to what its controller refuses; what does not exist, and who is not known, have their own. */
static int slurm_status(const struct err *err)
{
    switch (err->code) {
    case ERR_INVALID_JOB_ID:
        return 404;
    case ERR_UNAUTHENTICATED:
    case ERR_TOKEN_EXPIRED:
        return 401;
    case ERR_UNREACHABLE:
    case ERR_NOT_LEADER:
    case ERR_CONNECTION_LOST:
    case ERR_SHUTTING_DOWN:
    case ERR_SUBMISSIONS_DISABLED:
        return 503;
    case ERR_DEADLINE:
        return 504;
    case ERR_INTERNAL:
    case ERR_CORRUPT:
        return 500;
    default:
        return 422;
    }
}

void answer_error(struct exchange *x, const struct err *err, const char *source)
{
    int status = x->version ? slurm_status(err) : err_http(err->code);

    if (status == 401) {
        answer_unauthenticated(x, err);
        return;
    }
    if (status == 503 || status == 499) {
        status = 503;
        exchange_header(x, "Retry-After", "2");
    }
    answer_failed(x, status, err_slurm(err->code),
                  x->version ? err_text(err->code) : err_name(err->code),
                  err->text[0] ? err->text : err_text(err->code), source);
}

void answer_unauthenticated(struct exchange *x, const struct err *err)
{
    if (err && err->code != ERR_UNAUTHENTICATED && err->code != ERR_TOKEN_EXPIRED) {
        answer_error(x, err, NULL);
        return;
    }
    exchange_header(x, "WWW-Authenticate", "Bearer");
    if (x->version)
        exchange_reply_text(x, 401, "Authentication failure");
    else
        answer_failed(x, 401, err_slurm(ERR_UNAUTHENTICATED), err_name(ERR_UNAUTHENTICATED),
                      err ? err->text : "This needs to know who you are: show a token (spur token)",
                      NULL);
}

void answer_forbidden(struct exchange *x, const struct err *err)
{
    if (x->version)
        exchange_reply_text(x, 403, err->text);
    else
        answer_error(x, err, NULL);
}

void answer_not_found(struct exchange *x)
{
    if (str_starts(x->path, "/api/"))
        answer_failed(x, 404, 0, err_name(ERR_NOT_FOUND), "There is nothing under this path", NULL);
    else
        exchange_reply_text(x, 404, "Invalid or unknown URL path");
}

struct field_ctx answer_ctx(const struct exchange *x, int64_t now_us)
{
    return (struct field_ctx){ .now_us = now_us, .cluster = x->rest->cluster };
}
