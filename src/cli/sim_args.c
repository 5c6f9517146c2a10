/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_args.c - the options of `spur sim`, for the program, its manual page and completion
 */
#include "cli/sim_args.h"
#include "base/util.h"

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
          "predict:PATIENCE:LATE as order_patience and order_late), preempt (predict, and running "
          "jobs are requeued for smaller ones: preemption.type = \"size\"). Several, with commas, are "
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
    { .name = "checkpoint",
      .arg = "TIME",
      .read = option_text,
      .into = TEXT(checkpoint),
      .help = "Requeued jobs go on from what they saved: every so often (minutes, or 1:00:00), 0: "
              "when they were told to go. Without it they begin again." },
    { .name = "restart",
      .arg = "TIME",
      .read = option_text,
      .into = TEXT(restart),
      .help =
          "A job that was requeued needs so long more each time, before it goes on (0:01:00 with "
          "--checkpoint, else 0)." },
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

static const struct option_section sections[] = {
    { "TRACES",
      "A file in the Standard Workload Format (its name has .swf, or its first line begins with ; or "
      "a number), or a table separated by tabs whose first line names its columns: submit_s and "
      "duration_s are needed; gpus, gpu_milli (thousandths of one GPU), cpus, cpu_milli, nodes, "
      "mem_mb, limit_s, user, name, partition, qos, job_id and trace are read, others ignored. "
      "Lines in any order; gzip or not. CPUs and GPUs are those of the whole job. Lines without a "
      "run time (-1, - or nothing) or a size are left out and counted; what cannot be read is an "
      "error that names its line." },
    { "FIGURES",
      "WAIT: from submission to the first start. DONE: from submission to the end. SLOWDOWN: "
      "completion / run time, run times under 10 s taken as 10 s. USED: the share of GPU time (CPU "
      "time without GPUs) in use until the last end. FRAGM: the share that was free on partly used "
      "nodes while a job waited. FAIR: Jain's index of the users' slowdowns, 1 is alike. The same "
      "trace and options give the same figures, but for CMDS/S, the speed of the simulation." },
    { "PREEMPTION",
      "As configured ([preemption]): a requeued job begins again, or goes on as --checkpoint and "
      "--restart say; a suspended one goes on where it stopped, SIGTERM is not heeded. Preemptions are counted under the figures." },
    { "EXIT STATUS",
      "0, also when jobs were refused (they are counted); 1 after an error; 130 after Ctrl-C, which "
      "shows what is known so far." },
    { "EXAMPLES",
      "spur sim log.swf.gz --policy fifo,backfill,conservative; spur sim trace.tsv --nodes 8 --gpus 8 "
      "--policy predict --timeline out.svg; spur sim trace.tsv --config new.conf --users; spur sim "
      "--what-if --config new.conf; spur sim --what-if --policy sjf" },
    { 0 },
};

const struct option_set sim_options = {
    .command = "spur sim",
    .usage =
        "TRACE [--nodes N --gpus N | --config FILE] [--policy LIST] [--timeline FILE] [--json]\n"
        "       spur sim --what-if [--config FILE] [--policy NAME] [--json]",
    .about = "Runs a trace of jobs through the real planner in simulated time.",
    .bit = 1,
    .usage_exit = 1,
    .rows = rows,
    .count = ARRAY_LEN(rows),
    .sections = sections,
};
