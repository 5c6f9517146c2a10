/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits_why.h - what a limit is called, and the reason of a job that waits for it
 */
#ifndef POLICY_LIMITS_WHY_H
#define POLICY_LIMITS_WHY_H

#include "policy/accounts.h"

/* What the answer depends on, for who asks again and again. */
enum limit_is {
    LIMIT_OTHER, /* time too */
    LIMIT_JOBS,  /* holder->jobs alone: it is in the way of every job that the same holders count */
    LIMIT_TRES,  /* holder->used of the TRES, and how much of it the job asks for */
};
struct limit_hit {
    enum limit_is is;
    unsigned reason; /* REASON_*: 0 when nothing is in the way */
    const struct assoc *assoc;
    const struct qos *qos;   /* whose limit it is */
    const char *part;        /* " of user alice", "" */
    const char *limit;       /* "GrpTRES" */
    const struct tres *tres; /* NULL when it is not about one */
    uint64_t most, used, asks;
    bool past;                   /* it is what was used so far, which decays */
    const struct holder *holder; /* when this one counts less, it may be another answer; or NULL */
};
/* The limit, what is in use and whose it is, as a sentence. */
void limit_hit_text(const struct limit_hit *hit, struct str *out);

/* qos NULL: of an association. */
unsigned why_bound(const struct qos *qos, enum bound bound);
unsigned why_tres(const struct qos *qos, enum tres_limit bound, enum tres_kind kind);
const char *why_bound_name(const struct qos *qos, enum bound bound);
const char *why_tres_name(enum tres_limit bound);

#endif
