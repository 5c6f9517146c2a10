/* SPDX-License-Identifier: Apache-2.0 */
/*
 * history.h - what people ask of the history: which runs of jobs, and all that is known of them
 *
 *     struct history *history = history_new(store, request, &viewer);
 *     history_select(history, &err);
 *     while (history_more(history))
 *         history_next(history, 256 * 1024, &packed, &err);
 *     history_free(history);
 *
 * The selection keeps a few numbers for each run; their messages are read as they are wanted. Runs come in
 * the order in which they came to be.
 */
#ifndef SPURDBD_HISTORY_H
#define SPURDBD_HISTORY_H

#include "proto/dbd.pb-c.h"
#include "spurdbd/store.h"

/* Who asks, and what of a cluster that is. */
struct history_viewer {
    uint32_t uid;
    const char *name;    /* NULL: no account */
    bool admin;          /* of the database */
    const char *cluster; /* that is meant when a request names none; NULL: all */
    bool plain;          /* the token never gives the roles of staff, whoever it names */
};

/* Of the cluster that said this hello (may be NULL), or of the database. */
bool history_is_admin(const struct history_viewer *viewer, const FeedHello *hello);

/* Does the cluster show the viewer what `word` of its private_data keeps from others? */
bool history_sees(const struct history_viewer *viewer, const FeedHello *hello, const char *word);

struct history;
/* `request` and `viewer` must outlive it. */
struct history *history_new(struct store *store, const ListHistoryRequest *request,
                            const struct history_viewer *viewer);
void history_free(struct history *history);
/* Steps that run now, of one cluster; borrowed until history_free(). */
void history_running(struct history *history, const char *cluster, StepInfo *const *steps,
                     size_t count);

int history_select(struct history *history, struct err *err);
size_t history_count(const struct history *history); /* runs that were selected */
bool history_more(const struct history *history);
/* Appends packed fields of a ListHistoryReply, about `bytes` of them and at least one run. */
int history_next(struct history *history, size_t bytes, struct str *out, struct err *err);

#endif
