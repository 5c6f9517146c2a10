/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query.h - which jobs a list asks for
 *
 * A query is compiled once from the request and then walked by job id, so that a long list can be
 * sent in pieces while the cluster goes on: keep the cursor between pieces.
 */
#ifndef CORE_QUERY_H
#define CORE_QUERY_H

#include "base/err.h"
#include "base/vec.h"
#include "core/state.h"
#include "proto/controller.pb-c.h"

/* One id as people write it: "12", "12_3", "12_[1-5,9]", "12+1". */
struct job_ref {
    uint32_t id;       /* of the job or array */
    bool has_tasks;    /* only these tasks */
    const char *tasks; /* "1-5,9": inside the text that was parsed */
    size_t tasks_len;
    bool has_offset; /* component of a heterogeneous job */
    uint32_t offset;
};
int job_ref_parse(const char *text, struct job_ref *out, struct err *err);

struct query;
struct id_list {
    VEC(uint32_t) ids;
};

/* Compiles the filters. The request must outlive the query. */
int query_new(const struct state *state, const ListJobsRequest *request, struct query **out,
              struct err *err);
void query_free(struct query *query);

struct query_cursor {
    uint64_t job; /* next job id to look at; begin with 0 */
    uint32_t task;
};
/*
 * The next match, or NULL at the end. *task is the task to show a meta record as (array_expand),
 * else NO_TASK. Looks at no more than `budget` records when it is not NULL; when it runs out the
 * result is NULL with *budget 0: call again with the same cursor.
 */
const struct job *query_next(const struct query *query, const struct state *state,
                             struct query_cursor *cursor, unsigned *budget, uint32_t *task);

/* Is the query about changes, and since which index? */
bool query_since(const struct query *query, uint64_t *since);
/*
 * changed_since: the ids that a reader of an earlier list is to drop. Those that changed and do not match
 * (any more) are added to `out` by query_next() when it meets them; query_gone() adds those that are
 * forgotten, and is false when that list is too old: then the query gives everything.
 */
void query_collect(struct query *query, struct id_list *out);
bool query_gone(const struct query *query, const struct state *state, struct id_list *out);

/* Does one job match (for watchers)? */
bool query_match(const struct query *query, const struct state *state, const struct job *job);

#endif
