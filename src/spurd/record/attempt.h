/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attempt.h - what this node holds: grants, and what is known to be over
 *
 * A table of attempts, rebuilt from the journal after a restart. An attempt that was here and has
 * gone leaves a tombstone: whatever arrives late for it, or for an earlier attempt of the job, is
 * refused. Tombstones also remember where the output went, for `spur logs`. They are bounded by
 * number; a message that is older than all of them comes from a stream that ended long ago.
 */
#ifndef SPURD_ATTEMPT_H
#define SPURD_ATTEMPT_H

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "proto/spool.pb-c.h"
#include "proto/step.pb-c.h"
#include "spurd/record/journal.h"

enum { HELD_TOMBS_MAX = 50000 };

struct step_chan;
struct hook;

struct attempt {
    uint32_t job, attempt;
    Grant *grant;             /* NULL: found running, but the journal does not know it */
    struct arena arena;       /* of the grant */
    ProtobufCBinaryData load; /* packed JobPayload of a launch that is to come */
    char *std_out, *std_err;
    char *boot_id;

    bool has_load;
    bool written;    /* the grant is in the journal */
    bool looking_up; /* the name service is asked for the user's login */
    bool ready;      /* prolog done */
    bool launched;   /* written down */
    bool given;      /* the zygote has it, or had */
    bool running;    /* the supervisor said so */
    bool ended;      /* `report` is set */
    bool acked;
    bool revoked;
    bool epilog_done;
    bool released;     /* said so */
    bool grant_acked;  /* said so on this connection */
    bool started_sent; /* likewise */
    bool report_sent;  /* likewise */
    bool unkillable;
    bool is_private; /* it has directories of its own: private.h */
    bool prepared;   /* and they were made, if it gets some */
    bool found;      /* after a restart, not launched by this process */
    bool kept;       /* the report is on disk */
    unsigned frozen; /* FreezeCause bits as far as known */
    unsigned freeze_said, freeze_wanted;
    bool thaw_waits, launch_waits; /* until those who have its CPUs are frozen; agent_gang.c */

    uint32_t kill_wait_s; /* of the revocation */
    bool revoke_kill;
    JobState revoke_state;
    bool kill_ordered;
    int64_t kill_late_us; /* boot time: the supervisor should have ended it by then */

    uint32_t pid;
    int64_t started_us;
    int64_t ended_boot_us; /* when the report came */
    StepEnded *report;
    struct step_chan *chan;
    unsigned steps;          /* of srun that are alive here */
    uint32_t derived_status; /* the highest of those that ended here */
    struct hook *hook;
    bool hook_waits; /* until another's program is done */
};

struct tomb {
    uint32_t job, attempt;
    int64_t time_us;
    JobOwner *owner; /* NULL: nothing ran here */
    char *std_out, *std_err;
};

struct attempt_table {
    struct map held;  /* attempt_key() to struct attempt */
    struct map tombs; /* job to struct tomb, oldest first */
    uint64_t epoch;
    char cluster_id[64];
    size_t cluster_id_len;
    char boot_id[64]; /* of the run that the records being read are from */
    char last_node[256];
};

static inline uint64_t attempt_key(uint32_t job, uint32_t attempt)
{
    return (uint64_t)job << 32 | attempt;
}

void attempt_table_init(struct attempt_table *table);
void attempt_table_done(struct attempt_table *table);

struct attempt *attempt_find(const struct attempt_table *table, uint32_t job, uint32_t attempt);
/* Another attempt of the same job that is still here, or NULL. */
struct attempt *attempt_other(const struct attempt_table *table, uint32_t job, uint32_t attempt);
struct attempt *attempt_add(struct attempt_table *table, uint32_t job, uint32_t attempt);
/* Forgets it without a trace; see attempt_bury(). */
void attempt_drop(struct attempt_table *table, struct attempt *held);

/* Replaces the grant, keeping a load that came earlier. Copies: the load apart from the rest. */
void attempt_set_grant(struct attempt *held, const Grant *grant);
void attempt_set_report(struct attempt *held, const StepEnded *report);

/* The attempt, or a later one of the job, has been here and is over. */
bool attempt_is_buried(const struct attempt_table *table, uint32_t job, uint32_t attempt);
const struct tomb *attempt_tomb(const struct attempt_table *table, uint32_t job);
void attempt_bury(struct attempt_table *table, const SpoolGone *gone);

/* True for a job that has this node only. */
bool attempt_is_alone(const struct attempt *held);
const NodeAlloc *attempt_alloc(const struct attempt *held);

/* ---- the journal ---- */

/* Records in the order they were written; a journal_record_fn. */
void attempt_replay(void *table, const SpoolRecord *record);
/* Everything that matters, for a new journal. */
void attempt_write(void *table, struct journal_builder *builder);

#endif
