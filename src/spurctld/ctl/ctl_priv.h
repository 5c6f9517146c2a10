/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_priv.h - the controller's root: its parts by name
 *
 * Each part is defined in a header of its own, with what the files of that part do: proposals.h, nodes.h, site.h,
 * asks.h, marks.h.
 */
#ifndef SPURCTLD_CTL_PRIV_H
#define SPURCTLD_CTL_PRIV_H

#include "base/bitset.h"
#include "base/map.h"
#include "core/config_change.h"
#include "core/msg.h"
#include "core/query.h"
#include "proto/journal.pb-c.h"
#include "sched/sched.h"
#include "spurctld/ctl/asks.h"
#include "spurctld/ctl/ctl.h"
#include "spurctld/ctl/marks.h"
#include "spurctld/ctl/nodes.h"
#include "spurctld/ctl/proposals.h"
#include "spurctld/ctl/site.h"

struct ctl_counts {
    uint64_t submitted, started, completed, cancelled, failed;
    uint64_t batches, commands, plans, plan_us_total, plan_us_max, plan_us_last;
    uint64_t turns, turn_us_max, turn_cpu_us_max, turns_long; /* of the loop */
    uint64_t turn_commands, turn_plan_us;                     /* before the present one */
    uint64_t plan_starts, plan_backfilled, plan_queue_sum;
    int64_t start_us, since_us, plan_last_us;
};

/* Who we are. */
struct ctl_self {
    char *name, *address;
    uint8_t cluster_id[16];
    uint8_t verify_key[32];
    bool has_verify_key;
    uint8_t step_secret[CTL_STEP_KEY_BYTES];
    bool several; /* there are other controllers */
    unsigned ids_per_command, wide_from;
};

/* The planner's slices; ctl_plan.c. */
struct ctl_plan {
    bool wanted, more;
    unsigned starts_in_flight;
    unsigned due_in_flight; /* CmdTime because something is due */
    unsigned budget;        /* of the next slice */
    unsigned put_off;       /* so often in a row */
    size_t idle_slices;     /* that wanted to go on and started nothing */
};

struct begun_step {
    uint32_t job_id, attempt, step;
};

struct ctl {
    struct ctl_io io;
    void (*settle)(struct ctl *ctl); /* ctl_settle(), for what is below it */
    struct ctl_self self;
    struct state *state;
    struct sched *sched; /* NULL while recovering */
    struct log *log;
    bool leading, must_lead, lead_proposed;
    int64_t leading_us; /* since when; monotonic */
    Config *config;     /* of this process's file, until proposed; may be NULL */
    bool config_reconfigure;
    uint64_t configs;      /* that the cluster has had; nodes may have other numbers */
    unsigned level_rising; /* the feature level that was proposed; 0: none */
    struct ctl_marks marks;
    struct ctl_proposals proposals;
    struct ctl_applying applying;
    struct ctl_plan plan;
    struct ctl_nodes nodes;
    struct ctl_site site;
    struct map steps;                   /* job id → struct job_steps: what runs, as nodes say */
    VEC(struct begun_step) steps_begun; /* of which the log has yet to hear: ctl_steps.c (4) */
    struct ctl_asks asks;
    uint64_t journaled;
    struct str journal;                     /* of the entry that is applied */
    struct str journal_record, journal_job; /* while it is written */
    struct ctl_counts counts;
};

static inline int64_t ctl_now(const struct ctl *ctl)
{
    return ctl->io.now_us(ctl->io.ctx);
}

static inline int64_t ctl_mono(const struct ctl *ctl)
{
    return ctl->io.mono_us(ctl->io.ctx);
}

/* Slices of different kinds come together in one turn of the loop: the later ones look at this. */
static inline int64_t ctl_busy_us(const struct ctl *ctl)
{
    return ctl->io.busy_us ? ctl->io.busy_us(ctl->io.ctx) : 0;
}

/* ---- ctl_plan.c ---- */
void ctl_plan_kick(struct ctl *ctl);
void ctl_plan_timer(struct ctl *ctl);

/* ---- ctl_journal.c ---- */
void ctl_journal(struct ctl *ctl, uint64_t index, const Command *command);
/* Adds a record to the entry that is being put together. */
void ctl_journal_record(struct ctl *ctl, const JournalRecord *record);

/* ---- ctl_journal_cluster.c ---- */
/* Adds what the command meant for nodes, capacity and reservations; false: nothing. */
bool ctl_journal_cluster(struct ctl *ctl, const Command *command);

/* ---- ctl_config.c ---- */
void ctl_config_leading(struct ctl *ctl); /* proposes what was read before */
void ctl_forget_config(struct ctl *ctl);  /* unless it is no longer what counts */

#endif
