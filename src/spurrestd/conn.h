/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn.h - a connection of a caller: what serve.c (sockets, time), h1.c and h2.c (what is spoken) share
 */
#ifndef SPURRESTD_CONN_H
#define SPURRESTD_CONN_H

#include "rpc/link.h"
#include "spurrestd/rest.h"

struct h2c;

struct conn {
    struct link link;
    struct rest *rest;
    struct conn *prev, *next;
    struct timer timer;
    struct peer peer;
    bool told_h2;      /* HTTP/2 it is, by ALPN or by its first bytes */
    bool decided;      /* what is spoken is known */
    int64_t active_ms; /* when something last happened, and when the present step began */
    int64_t since_ms;

    /* HTTP/1.1 */
    enum { H1_HEAD, H1_BODY, H1_ANSWER } step;
    struct str in;  /* what came and is not read yet */
    size_t scanned; /* of the head in `in` */
    struct http_chunks chunks;
    bool is_1_1, in_chunks, answer_chunked, keep_alive;
    uint64_t body_left;
    struct exchange *x; /* the request that is read or answered */
    struct str out;
    size_t out_at;

    struct h2c *h2; /* HTTP/2 */
};

enum {
    CONN_OUT_LOW = 256 * 1024, /* less waits to be sent: more may be written */
};

void conn_active(struct conn *conn);
void conn_watch(struct conn *conn); /* sets the timer by what is due */
/* Charges bytes of bodies to the bound of all; false: there is no room. */
bool conn_charge(struct rest *rest, size_t bytes);

/* h1.c */
int h1_received(struct conn *conn, const char *bytes, size_t len, struct err *err);
size_t h1_gather(struct conn *conn, char *out, size_t room);
void h1_flushed(struct conn *conn);
void h1_timed_out(struct conn *conn);
void h1_closed(struct conn *conn);
int64_t h1_due_ms(const struct conn *conn); /* INT64_MAX: nothing is */
bool h1_idle(const struct conn *conn);

/* h2.c */
void h2c_begin(struct conn *conn);
int h2c_received(struct conn *conn, const char *bytes, size_t len, struct err *err);
size_t h2c_gather(struct conn *conn, char *out, size_t room);
void h2c_flushed(struct conn *conn);
void h2c_closed(struct conn *conn);
int64_t h2c_due_ms(const struct conn *conn);
bool h2c_idle(const struct conn *conn);
void h2c_timed_out(struct conn *conn);

#endif
