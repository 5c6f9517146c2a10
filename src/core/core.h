/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core.h - the cluster as a value
 *
 * core_apply(state, command) gives the same state and the same events on every replica. There is no
 * clock, randomness, floating point, log, callback or hash order behind it: time and identity are
 * inside the command. Read event.h and state.h next.
 */
#ifndef CORE_CORE_H
#define CORE_CORE_H

#include "base/err.h"
#include "core/event.h"
#include "core/state.h"
#include "proto/command.pb-c.h"

/*
 * Applies one committed command. `out` gets its events, the last one being EVENT_ANSWER; it is not
 * cleared first. A command that cannot be done changes nothing but time, index and the memory of
 * its request id. A request id that (uid, id) was applied with in the last ten minutes changes
 * nothing and is given its first answer.
 */
void core_apply(struct state *state, uint64_t index, const Command *cmd, struct events *out);

/* What apply would answer to this submission, so that nothing hopeless is proposed. */
int core_admit_submit(const struct state *state, const JobOwner *owner,
                      const JobSpec *const *components, size_t count, int64_t now_us,
                      struct err *err);
/* The same for a configuration: names unique, partitions name nodes, counts within limits. */
int core_admit_config(const Config *config, struct err *err);

/* True when the id was used before; then *out is the answer that was given. */
struct request_seen {
    uint32_t job_id;
    enum err_code code;
    bool more; /* it was about many jobs and got no further than job_id: it may go on from there */
};
bool core_request_seen(const struct state *state, uint32_t uid, const uint8_t id[16],
                       struct request_seen *out);

/* Would this change be refused? Negative, and why. */
int core_check_node_update(const struct state *state, const CmdUpdateNode *cmd, struct err *err);

/* The jobs for which the leader has to run a program (job_run: prolog, epilog). */
void core_site_due(const struct state *state, void (*each)(void *ctx, const struct job *job),
                   void *ctx);

/* When a CmdTime is to be proposed; INT64_MAX when nothing is due. */
int64_t core_next_due(const struct state *state);
/* Calls `each` with every running job that a CmdTime at `now_us` would end. */
void core_limits_due(const struct state *state, int64_t now_us,
                     void (*each)(void *ctx, const struct job *job), void *ctx);

/*
 * Sum of the hashes of all records, and the head: equal states have equal digests. Costs nothing.
 * A CmdCheck names the digest of the state just before it; builds before marks could write one.
 */
uint64_t core_digest(const struct state *state);

/*
 * The digest at some index. core_apply() takes one every MARK_EVERY entries and keeps the newest; replicas
 * compare them (spurctld/agree.h). They are in snapshots, and outside of the digest.
 */
struct state_mark {
    uint64_t index, digest;
};
enum { MARK_EVERY = 64, MARKS_KEPT = 256 };
size_t core_marks(const struct state *state);
struct state_mark core_mark(const struct state *state, size_t n); /* 0 is the newest */
bool core_mark_at(const struct state *state, uint64_t index, struct state_mark *out);
/* Of the state as it is now. False: to work it out would take long just now. */
bool core_mark_now(const struct state *state, struct state_mark *out);

/*
 * Rehashes `most` records from where the last call ended (begin with zeros) and compares them with the
 * hashes that were kept when they were last changed: so a record is found whose memory was changed by
 * nobody. Negative: what is wrong. A request id is not looked at; it is within ten minutes, when it is
 * forgotten. A pass is complete when `passes` grows.
 */
struct rehash {
    unsigned kind; /* of records */
    uint64_t next, passes;
    uint64_t sum; /* of the hashes of this pass */
};
int core_rehash(const struct state *state, struct rehash *at, size_t most, struct err *err);
/* The same of everything at once, and whether the digest is their sum: before others get a snapshot. */
int core_verify(const struct state *state, struct err *err);
/* About how many records a pass looks at. */
size_t core_rehash_records(const struct state *state);

/* Why the job waits or ended: an enum job_reason (Slurm's number), 0 when only the planner knows. */
unsigned core_job_reason(const struct state *state, const struct job *job);
/* What is left of its dependency: which jobs, in which state, what they have to do. */
void core_dependency_words(const struct state *state, const struct job *job, struct str *out);
/*
 * When nothing of it is left, at the latest, if each job that it waits for starts, or ends, when `when` says; INT64_MAX:
 * that is not foreseen. A job may be given that has started or ended.
 */
typedef int64_t core_when_fn(void *ctx, const struct job *job, bool end);
int64_t core_dependency_us(const struct state *state, const struct job *job, core_when_fn *when,
                           void *ctx);

/*
 * Writes the state as a stream of length-prefixed SnapshotRecords (4 bytes little-endian, then the
 * record). `write` returns < 0 to stop, which is then the result. May run in a forked child.
 */
typedef int core_write_fn(void *to, const void *bytes, size_t len);
int core_snapshot_write(const struct state *state, core_write_fn *write, void *to);

/*
 * Reads such a stream in pieces of any size. core_restore_end() gives the state when the stream was
 * whole and the digest is the one the snapshot was written with; it frees `restore` in any case.
 */
struct restore;
struct restore *core_restore_begin(void);
int core_restore_feed(struct restore *restore, const void *bytes, size_t len, struct err *err);
struct state *core_restore_end(struct restore *restore, struct err *err);

/*
 * Does every invariant hold? Walks everything: allocations within capacity and equal to what nodes
 * count, indexes complete, digest as recomputed. For tests, simulation and an operator's question.
 */
int core_check(const struct state *state, struct err *err);

#endif
