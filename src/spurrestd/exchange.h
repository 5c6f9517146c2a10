/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange.h - one HTTP request and its answer, whatever carries it
 *
 * h1.c and h2.c make an exchange when a request is whole; routes.c finds its handler. A handler answers with
 * exchange_reply(), or with exchange_begin(), any number of exchange_write() and exchange_end(); each of the two
 * ends frees the exchange. When the caller goes first, everything that was asked of the controller for it (ask.h)
 * is cancelled, `on_gone` is called, and the exchange is freed: a handler has nothing to do.
 */
#ifndef SPURRESTD_EXCHANGE_H
#define SPURRESTD_EXCHANGE_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "spurrestd/http.h"

struct rest;
struct route;
struct exchange;
struct ask;

/* Who is at the other end of the connection, as the kernel knows it. */
struct peer {
    bool is_unix, is_loopback, tls;
    bool asked_owner, has_uid; /* has_uid: uid and gid are known */
    uint32_t uid, gid;
    int fd;
    char text[64]; /* "127.0.0.1:4711", "unix" */
};

/* What carries exchanges; `x->carrier` is its own. */
struct exchange_ops {
    /* The status and x->headers go out. `length` is the body's, negative: it comes in parts. */
    void (*begin)(struct exchange *x, int64_t length);
    void (*write)(struct exchange *x, const char *bytes, size_t len);
    void (*end)(struct exchange *x);   /* forgets x */
    void (*abort)(struct exchange *x); /* cut off, so that the caller sees that it is not whole */
    bool (*writable)(const struct exchange *x);
};

enum exchange_format { FORMAT_JSON, FORMAT_YAML };
enum { EXCHANGE_ARGS = 4, EXCHANGE_PAIRS = 64 };

struct exchange_pair {
    const char *name, *value;
};

struct exchange {
    struct rest *rest;
    const struct exchange_ops *ops;
    void *carrier;
    struct peer *peer;
    struct arena arena;

    /* the request */
    enum http_method method;
    const char *path; /* as it came, without the query */
    struct http_field *fields;
    size_t field_count;
    struct exchange_pair query[EXCHANGE_PAIRS]; /* decoded */
    size_t query_count;
    struct str body;

    /* what routes.c found */
    const struct route *route;
    const char *args[EXCHANGE_ARGS]; /* what stands for {job_id} and the like, decoded */
    unsigned version;                /* of Slurm's API: 42 for v0.0.42; 0: another path */
    enum exchange_format format;     /* of the answer */

    /* who asks (caller.c) */
    const char *authorization; /* "Bearer …" for the controller; NULL: nobody */
    const char *user;          /* as far as it is known without the controller; may be NULL */
    int64_t expires_s;         /* of a token that came with the request; 0: not known */

    /* the answer */
    int status;
    struct str headers; /* "name: value\r\n" each */
    const char *content_type;
    bool began;

    /* the handler's */
    void *data;
    void (*on_writable)(struct exchange *x);
    void (*on_gone)(struct exchange *x);
    struct ask *asks; /* under way */
};

/* The value of a header field, in the arena; NULL: absent. */
const char *exchange_field(struct exchange *x, const char *name);
bool exchange_has_field(const struct exchange *x, const char *name);
/* The value in the query; NULL: absent. */
const char *exchange_query(const struct exchange *x, const char *name);
/* 0 or 1 by the words that people use; -1: absent or neither. */
int exchange_query_bool(const struct exchange *x, const char *name);

void exchange_header(struct exchange *x, const char *name, const char *value);

/* The whole answer; takes the body. */
void exchange_reply(struct exchange *x, int status, const char *content_type, struct str *body);
void exchange_reply_text(struct exchange *x, int status, const char *text);

void exchange_begin(struct exchange *x, int status, const char *content_type);
void exchange_write(struct exchange *x, const char *bytes, size_t len);
bool exchange_writable(const struct exchange *x); /* little waits to be sent */
void exchange_end(struct exchange *x);
void exchange_abort(struct exchange *x); /* after exchange_begin() */

/* ---- for what carries exchanges ---- */

/* Copies what it needs. `target` has path and query. NULL: it is not a good target; *status says why. */
struct exchange *exchange_new(struct rest *rest, const struct exchange_ops *ops, void *carrier,
                              struct peer *peer, enum http_method method, struct span target,
                              const struct http_field *fields, size_t field_count, int *status);
void exchange_gone(struct exchange *x); /* the caller is; frees it */
void exchange_free(struct exchange *x);

#endif
