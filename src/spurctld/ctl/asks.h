/* SPDX-License-Identifier: Apache-2.0 */
/*
 * asks.h - what people ask, as far as it takes longer than one call
 *
 * ctl_query.c lists and watches, ctl_inventory.c lists nodes, ctl_changes.c tells all changes, ctl_bulk.c does one thing to many
 * jobs, ctl_read.c waits for the log's word, ctl_forked.c hands a question to a copy of the process, ctl_alloc.c keeps
 * allocations for their clients.
 */
#ifndef SPURCTLD_CTL_ASKS_H
#define SPURCTLD_CTL_ASKS_H

#include "base/vec.h"
#include "core/query.h"
#include "spurctld/ctl/ctl.h"

struct watcher {
    uint32_t job_id;
    struct ctl_ask *ask;
    bool hold; /* by the client of an allocation; see ctl_alloc.c */
    bool ends; /* wants to know of ends alone */
};

/* Who reads all changes; ctl_changes.c. */
struct change_reader {
    struct ctl_ask *ask;
    bool behind, gone;
};

/* An allocation whose client has gone. */
struct orphan {
    uint32_t job_id;
    int64_t at_us; /* when it is cancelled; monotonic */
};

enum { CTL_STEP_KEY_BYTES = 32 };

struct node_listing;
struct listing; /* a ListJobs stream that waits for its reader */
struct reading; /* a read that waits for the log's word */
struct ctl_bulk;

/* Those who are not answered yet. */
struct ctl_asks {
    VEC(struct watcher) watchers;
    VEC(struct change_reader) change_readers;
    VEC(struct orphan) orphans;
    VEC(struct listing *) listings;
    VEC(struct node_listing *) node_listings; /* ctl_inventory.c */
    VEC(struct ctl_bulk *) finders;           /* ctl_bulk.c */
    VEC(struct reading *) readings;
    VEC(struct ctl_forked *) forked;
    bool is_forked; /* this is a copy of the process, or what is asked is not handed to one */
};

void ctl_watchers_notify(struct ctl *ctl, const struct job *job);
/* ctl_changes.c: tells readers what the last command changed; a reader has gone. */
void ctl_changes_notify(struct ctl *ctl);
void ctl_changes_gone(struct ctl *ctl, const struct ctl_ask *ask);

/* ---- ctl_alloc.c ---- */
void ctl_step_key(const struct ctl *ctl, const struct job *job, const char *node,
                  uint8_t out[CTL_STEP_KEY_BYTES]);
void ctl_hold_lost(struct ctl *ctl, uint32_t job_id);
void ctl_hold_timer(struct ctl *ctl);
void ctl_hold_stalled(struct ctl *ctl, int64_t us);

/* ---- ctl_forked.c ---- */
/* True: it was handed over, or refused; `handler` is called again where it may take long. */
bool ctl_forked(struct ctl *ctl, struct ctl_ask *ask, ctl_handler *handler,
                const ProtobufCMessage *request, size_t components);
void ctl_forked_gone(struct ctl *ctl, const struct ctl_ask *ask);

/* ---- ctl_read.c ---- */
void ctl_read_gone(struct ctl *ctl, const struct ctl_ask *ask);

/* ---- ctl_query.c ---- */
void ctl_query_gone(struct ctl *ctl, const struct ctl_ask *ask);
void ctl_listings_gone(struct ctl *ctl);
void ctl_lists_timer(struct ctl *ctl);
void ctl_bulk_timer(struct ctl *ctl);
void ctl_bulk_gone(struct ctl *ctl);
/* The request id of the n-th command of a request: 0 is its own. */
void ctl_place_id(const uint8_t id[16], size_t place, uint8_t out[16]);

/* ---- ctl_inventory.c ---- */
void ctl_inventory_timer(struct ctl *ctl);
void ctl_inventory_gone(struct ctl *ctl);

/* ---- objects ---- */
/* May the asker change this job? */
bool ctl_may_change(const struct ctl_ask *ask, const struct job *job);
bool ctl_may_see_payload(const struct ctl_ask *ask, const struct job *job);
void ctl_fail(struct ctl_ask *ask, enum err_code code);

/* ---- ctl_private.c ---- */
/* Does the configuration hide `what` ("jobs", "nodes", …) of others from the asker? */
bool ctl_hides(const struct ctl *ctl, const struct ctl_ask *ask, const char *what);
bool ctl_may_see_job(const struct ctl *ctl, const struct ctl_ask *ask, const struct job *job);
bool ctl_may_see_reservation(const struct ctl *ctl, const struct ctl_ask *ask,
                             const struct reservation *resv);

/* ---- ctl_check.c ---- */
/* May this person ask for it at submission: its priority and nice value. */
/* ctl_submit.c: what a job may ask for; the message that the log holds of it. False: it has no payload. */
int ctl_submit_check(const struct ctl *ctl, const struct ctl_ask *ask,
                     const SubmitJobPackedComponent *component, struct err *err);
bool ctl_submit_pack(struct ctl *ctl, struct arena *arena,
                     const SubmitJobPackedComponent *component, PackedComponent *out,
                     struct log_payload *payload);
void ctl_submit_owner(const struct ctl_who *who, JobOwner *owner);
int ctl_check_asked(const struct ctl_who *who, const JobSpec *spec, struct err *err);
/* Refuses control characters in names and comments, and addresses that could be options of the mail program. */
int ctl_check_texts(const JobSpec *spec, struct err *err);
/* What plugins gave the job: variables with names, bounded, and a level that has them. */
int ctl_check_spank(const struct state *state, const JobSpec *spec, struct err *err);
int ctl_check_text(const char *name, const char *text, struct err *err); /* NULL is nothing */

#endif
