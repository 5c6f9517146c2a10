/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_shocks.c - what happens rarely and touches everything: how long it holds up the loop
 *
 * Each row happens as the controller does it: in commands of its size, with CmdTime while something
 * is due, and in slices of the planner of its size until nothing is left to do. What the loop cannot
 * put down is one command (core applies it, the planner is fed) and one slice: the longest of each.
 */
#include "bench_shocks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench_changes.h"
#include "bench_load.h"
#include "bench_many.h"
#include "bench_wide.h"
#include "sys/heap.h"

enum {
    FREED = 50, /* jobs that end before it: there is room for others */
    GOAL_MS = 5,
    MANY = 20000, /* users */
};

/* ---- the table ---- */

enum { PLAIN = 1, LIMITED = 2, PREEMPTS = 4, WIDE = 8, TREE = 16, BOTH = PLAIN | LIMITED };
enum { MANY_USERS = 64 /* ten times as many, with limits */ };
enum { ROOM = 32 }; /* some jobs have just ended: how soon do others start in their place? */

/* In this order: some go on from what happened before them. */
static const struct {
    const char *name;
    void (*happen)(struct load *load);
    unsigned in;
} shocks[] = {
    { "slices.partition", changes_partition, BOTH | ROOM },
    { "slices.part_qos", changes_partition_qos, BOTH | ROOM },
    { "slices.part_billing", changes_partition_billing, BOTH | ROOM },
    { "slices.reconfigure", changes_nothing, BOTH | ROOM },
    { "slices.nodes_added", changes_add_nodes, BOTH | ROOM },
    { "slices.nodes_between", changes_nodes_between, BOTH | ROOM },
    { "slices.nodes_changed", changes_nodes, BOTH | ROOM },
    { "slices.nodes_removed", changes_remove_nodes, BOTH | ROOM },
    { "slices.qos_added", changes_add_qos, BOTH | MANY_USERS | ROOM },
    { "slices.limits_raised", changes_raise_limits, LIMITED | MANY_USERS | ROOM },
    { "slices.qos_used", many_use_qos, LIMITED },
    { "slices.qos_removed", changes_remove_qos, LIMITED | MANY_USERS | ROOM },
    { "slices.user_added", changes_add_user, LIMITED | MANY_USERS | ROOM },
    { "slices.user_removed", changes_remove_user, LIMITED | MANY_USERS | ROOM },
    { "slices.share_changed", changes_share, LIMITED | MANY_USERS | ROOM },
    { "slices.acct_removed", changes_remove_account, LIMITED | MANY_USERS | ROOM },
    { "slices.licences", changes_licences, BOTH | ROOM },
    { "slices.priority_turn", changes_turn, LIMITED },
    { "slices.resv_create", changes_make_reservation, BOTH },
    { "slices.resv_change", changes_reservation, BOTH },
    { "slices.resv_begins", changes_reservation_begins, BOTH },
    { "slices.resv_ends", changes_reservation_ends, BOTH },
    { "slices.drain_2000", changes_drain_nodes, BOTH },
    { "slices.resume_2000", changes_resume_nodes, BOTH },
    { "slices.node_down", changes_node_down, BOTH },
    { "slices.lead", changes_lead, BOTH },
    { "slices.cancel_1e5", many_cancel, BOTH },
    { "slices.forget_1e5", many_forget, BOTH },
    { "slices.array_submit", many_array_submit, PLAIN },
    { "slices.array_hold", many_array_hold, PLAIN },
    { "slices.array_release", many_array_release, PLAIN },
    { "slices.array_update", many_array_update, PLAIN },
    { "slices.array_split", many_array_split, PLAIN },
    { "slices.array_cancel", many_array_cancel, PLAIN },
    { "slices.depend_submit", many_depend_submit, PLAIN },
    { "slices.depend_1e5", many_depend_release, PLAIN },
    { "slices.killed_submit", many_killed_submit, PLAIN },
    { "slices.killed_1e5", many_depend_release, PLAIN },
    { "slices.single_submit", many_singleton_submit, PLAIN },
    { "slices.single_100", many_singleton_release, PLAIN },
    { "slices.twins_submit", many_twins_submit, PLAIN },
    { "slices.twins_1e5", many_depend_release, PLAIN },
    { "slices.begin_submit", many_begin_submit, PLAIN },
    { "slices.begin_1e5", many_begin_now, PLAIN },
    { "slices.chain_submit", many_chain_submit, PLAIN },
    { "slices.preempt_1", many_preempt_one, PREEMPTS },
    { "slices.preempt_200", many_preempt_wide, PREEMPTS },
    { "slices.preempt_het", many_preempt_het, PREEMPTS },
    { "slices.book_het", many_book_het, PREEMPTS },
    { "slices.wide_before", wide_before, WIDE },
    { "slices.wide_het3", wide_het3, WIDE },
    { "slices.wide_all", wide_all, WIDE },
    { "slices.wide_uneven", wide_uneven, WIDE },
    { "slices.wide_contig", wide_contig, WIDE },
    { "slices.wide_named", wide_named, WIDE },
    { "slices.wide_either", wide_either, WIDE },
    { "slices.wide_features", wide_features, WIDE },
    { "slices.wide_explain", wide_explain, WIDE },
    { "slices.wide_start", wide_start, WIDE },
    { "slices.wide_test", wide_test, WIDE },
    { "slices.wide_begins", wide_begins, WIDE },
    { "slices.wide_widest", wide_widest, WIDE },
    { "slices.tree_before", wide_before, TREE },
    { "slices.tree_switch", wide_switch, TREE },
    { "slices.tree_leaves", wide_leaves, TREE },
    { "slices.tree_het3", wide_het3, TREE },
    { "slices.tree_explain", wide_explain, TREE },
    { "slices.tree_start", wide_start, TREE },
    { "slices.tree_test", wide_test, TREE },
};

/* As the controller: what is due, then a slice, until there is neither. */
static unsigned go_on(struct rig *rig, double *first_ms)
{
    uint64_t preempts = rig->preempts, started = rig->started;
    unsigned slices = 0;
    bool more = true, due = true;

    for (; more || due || rig->preempts != preempts; slices++) {
        preempts = rig->preempts;
        due = core_next_due(rig->state) <= rig->now_us;
        if (due)
            rig_wait(rig, 0);
        rig_slice(rig, &more);
        if (*first_ms < 0 && rig->started != started)
            *first_ms = rig->core_ms + rig->feed_ms + rig->plan_ms;
    }
    return slices;
}

static void end_some(struct rig *rig)
{
    const struct job *job = state_job_from(rig->state, 1);

    for (unsigned ended = 0; job && ended < FREED;
         job = state_job_from(rig->state, (uint64_t)job->id + 1)) {
        if (job->state != JOB_RUNNING)
            continue;
        rig_end(rig, job->id);
        ended++;
    }
}

static bool print_one(struct load *load, size_t i)
{
    struct rig *rig = load->rig;
    const struct setting *of = load->of;
    char first[24] = "-";
    double first_ms = -1;

    if (shocks[i].in & ROOM)
        end_some(rig);
    rig->turn_ms = rig->slice_ms = rig->fed_ms = rig->applied_ms = rig->core_ms = rig->plan_ms =
        rig->feed_ms = 0;
    shocks[i].happen(load);
    unsigned slices = go_on(rig, &first_ms);
    if (shocks[i].in & ROOM && first_ms >= 0)
        snprintf(first, sizeof(first), "%.1f", first_ms);
    /* A question about so many nodes is answered by a copy of the controller: ctl_forked.c. */
    bool aside = shocks[i].happen == wide_explain || shocks[i].happen == wide_test;
    bool over = !aside && (rig->turn_ms > GOAL_MS || rig->slice_ms > GOAL_MS);
    printf("%-20s %8u %6u %10.2f %8.2f %8.2f %8u %8s %9.0f %9.0f%s%s\n", shocks[i].name, of->jobs,
           of->nodes, rig->applied_ms, rig->fed_ms, rig->slice_ms, slices, first,
           rig->plan_ms + rig->feed_ms, rig->core_ms,
           !of->limits        ? ""
           : of->users < MANY ? "  limits"
                              : "  limits, 20,000 users",
           over    ? "  OVER 5 ms"
           : aside ? "  by a copy, not in the loop"
                   : "");
    fflush(stdout);
    return over;
}

static unsigned is_in(const struct setting *of)
{
    if (of->wide)
        return of->switches ? TREE : WIDE;
    if (of->limits)
        return of->users < MANY ? LIMITED : MANY_USERS;
    return of->preempts ? PREEMPTS : PLAIN;
}

static unsigned run_shocks(const struct setting *of, const char *only)
{
    unsigned in = is_in(of), over = 0, rows = 0;
    struct load load;

    for (size_t i = 0; i < ARRAY_LEN(shocks); i++)
        rows += (shocks[i].in & in) && strncmp(shocks[i].name, only, strlen(only)) == 0;
    if (!rows)
        return 0;
    load_begin(&load, of);
    load_fill(&load);
    rig_plan(load.rig);
    heap_mend(NULL); /* as at the end of a start */
    load.rig->watch = true;
    for (size_t i = 0; i < ARRAY_LEN(shocks); i++) {
        if ((shocks[i].in & in) && strncmp(shocks[i].name, only, strlen(only)) == 0)
            over += print_one(&load, i);
    }
    load_done(&load);
    return over;
}

static const struct setting shocked[] = {
    { "slices", 1000000, 10000, 100, 100, 8 },
    { "slices", 1000000, 10000, 100, 2000, 200, .limits = true },
    { "slices", 100000, 10000, 100, MANY, 200, .limits = true },
    { "slices", 1000000, 10000, 100, 100, 8, .preempts = true },
    { "slices", 1000000, 10000, 100, 100, 8, .bookings = 80, .wide = true },
    { "slices", 1000000, 10000, 100, 100, 8, .bookings = 80, .wide = true, .switches = true },
};

unsigned shocks_print(const char *only, unsigned jobs)
{
    const char *users = getenv("SHOCK_USERS"); /* with limits */
    unsigned over = 0;

    printf("%-20s %8s %6s %10s %8s %8s %8s %8s %9s %9s\n", "sched", "jobs", "nodes", "command ms",
           "feed ms", "slice ms", "slices", "first ms", "all ms", "core ms");
    for (size_t i = 0; i < ARRAY_LEN(shocked); i++) {
        struct setting of = shocked[i];
        if (jobs)
            of.jobs = jobs;
        if (users && of.limits && of.users < MANY)
            of.users = (unsigned)atoi(users);
        over += run_shocks(&of, only);
    }
    return over;
}
