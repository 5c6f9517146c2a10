/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_args.c - the options of `spur sim`, for the program, its manual page and completion
 */
#include "cli/sim.h"

#define BOOL(member) OPTION_BOOL(struct sim_args, member)
#define TEXT(member) OPTION_TEXT(struct sim_args, member)
#define U32(member)  OPTION_U32(struct sim_args, member)

static const struct option rows[] = {
    { .name = "config",
      .arg = "FILE",
      .read = option_text,
      .into = TEXT(config),
      .help = "The cluster: a spur.conf or slurm.conf. With --what-if: the changed one." },
    { .name = "policy",
      .arg = "LIST",
      .read = option_text,
      .into = TEXT(policy),
      .help =
          "fifo (strictly in order), backfill (in order, with EASY backfill), conservative (every "
          "waiting job has a promised start), sjf (the shortest "
          "time limit first), predict (the smallest first by what earlier jobs let expect; "
          "predict:STRETCH:BOUND as order_stretch and order_bound). Several, with commas, are "
          "compared. What the configuration says when not given." },
    { .name = "nodes",
      .arg = "N",
      .read = option_positive,
      .into = U32(nodes),
      .help = "Without --config: so many nodes, all alike. From the header of an SWF file when not "
              "given." },
    { .name = "cpus",
      .arg = "N",
      .read = option_positive,
      .into = U32(cpus),
      .help =
          "CPUs of each; as many as GPUs when not given, 32 for each where jobs ask for parts of GPUs." },
    { .name = "gpus",
      .arg = "N",
      .read = option_positive,
      .into = U32(gpus),
      .help = "GPUs of each." },
    { .name = "only",
      .arg = "COLUMN=VALUE",
      .read = option_text,
      .into = TEXT(only),
      .help = "Only rows of the table that have this value." },
    { .name = "limits",
      .arg = "RULE",
      .read = option_text,
      .into = TEXT(limits),
      .help =
          "Time limits of the jobs. trace: as written there, the run time where none is "
          "(default). exact: the run time. xF: F times the run time. random:F: between once and "
          "F times. none: no limits." },
    { .name = "timeline",
      .arg = "FILE",
      .read = option_text,
      .into = TEXT(timeline),
      .help = "Draws the schedule as SVG: nodes from top to bottom, time from left to right." },
    { .name = "users",
      .read = option_flag,
      .into = BOOL(users),
      .help = "Shows each user's jobs, wait, slowdown and use." },
    { .name = "jobs",
      .read = option_flag,
      .into = BOOL(jobs),
      .help = "Shows when each job was submitted, started and ended." },
    { .name = "json", .read = option_flag, .into = BOOL(json), .help = "All of it as JSON." },
    { .name = "what-if",
      .read = option_flag,
      .into = BOOL(what_if),
      .help = "Instead of a trace: the present queue of the controller, and when its jobs would "
              "start with --config or --policy instead of the present configuration. Jobs are "
              "taken to run until their time limit." },
    { .name = "help",
      .key = 'h',
      .read = option_flag,
      .into = BOOL(help),
      .help = "Show this text." },
};

const struct option_set sim_options = {
    .command = "spur sim",
    .usage =
        "TRACE [--nodes N --gpus N | --config FILE] [--policy LIST] [--timeline FILE] [--json]\n"
        "       spur sim --what-if --config FILE",
    .about =
        "Runs a trace of jobs through the real planner in simulated time. A trace is a file in the "
        "Standard Workload Format, or a table separated by tabs whose first line names its "
        "columns: submit_s and duration_s, and any of gpus, gpu_milli (a part of one GPU), "
        "cpus, cpu_milli, nodes, mem_mb, limit_s, user, name, partition, qos, job_id, trace. "
        "Either may be compressed by gzip. Preemption is simulated as configured.",
    .bit = 1,
    .usage_exit = 1,
    .rows = rows,
    .count = ARRAY_LEN(rows),
};
