/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim.h - `spur sim`: the real planner on a trace of jobs, in simulated time
 *
 * A trace is read (sim_trace.c), run by the real core and planner (sim_run.c), measured
 * (sim_metrics.c), printed (sim_print.c) and drawn (sim_svg.c). It is a program of its own,
 * `spur-sim`, which `spur sim` becomes: the other commands need neither planner nor zlib.
 *
 * (1) Times of a trace are seconds from its begin. What is not known is -1.
 * (2) What the planner is told is what a controller would be told: never how long a job will run,
 *     except by its time limit.
 */
#ifndef TRACE_SIM_SIM_H
#define TRACE_SIM_SIM_H

#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "cli/sim_args.h"
#include "core/core.h"
#include "proto/config.pb-c.h"
#include "proto/job.pb-c.h"

struct sched;
struct sim_run;

/* ---- sim_trace.c, sim_swf.c ---- */

enum sim_fate { SIM_WAITS, SIM_RUNS, SIM_STANDS, SIM_ENDED, SIM_PREEMPTED, SIM_REFUSED };
enum { SIM_MILLI = 1000 }; /* of a GPU */

struct sim_job {
    int64_t submit_s, run_s, limit_s; /* limit -1: none is known */
    int64_t start_s, end_s;           /* what came of it; -1. The first start, the last end */
    int64_t since_s, left_s;          /* runs since then, and so long still at that time */
    int64_t work_s;                   /* of its run time not done, or not saved */
    uint64_t mem_mb;                  /* of each node; 0: not said */
    uint32_t number;                  /* in the trace, as it is written there */
    uint32_t line;
    uint32_t nodes, cpus, gpus; /* 0: not said; CPUs and GPUs of the whole job */
    uint32_t gpu_milli;         /* thousandths of its one GPU; 0: all of each */
    uint32_t user, name;        /* index in users, names */
    uint32_t partition, qos;    /* index in names */
    uint32_t id;                /* in the simulated cluster */
    uint32_t turn;              /* grows whenever it starts, stops or goes on */
    uint32_t preempted;         /* so many times */
    uint32_t bar, bars;         /* for the timeline: the first that is open, and how many */
    uint8_t fate;
    bool counted; /* in what is in use */
    bool again;   /* was requeued before */
};

/* Where and when a job was: consecutive GPUs or CPUs of a node, or a part of one GPU. */
struct sim_bar {
    uint32_t job; /* index in the trace */
    uint32_t node, first, count;
    uint16_t from_milli, milli; /* of the GPU; milli 0: all of it */
    int64_t start_s, end_s;     /* end -1: still there */
};

struct sim_trace {
    VEC(struct sim_job) jobs; /* in order of submission once read */
    VEC(char *) users;
    VEC(char *) names;
    struct map user_index, name_index;
    uint32_t max_nodes, max_procs; /* of an SWF header; 0: not said */
    uint32_t skipped;              /* lines without a run time or a size */
    uint32_t raised;               /* limits below the run time */
    bool parts;                    /* some jobs ask for a part of a GPU */
    bool cut;                      /* the last line does not end */
};

/* Lines are read by these: `line` is writable and ends with NUL, `number` begins with 1. */
struct sim_reader {
    struct sim_trace *trace;
    const char *path, *only; /* "column=value": rows with another value are left out */
    int columns[24];         /* by enum sim_column; -1 absent */
    int column_count;
    int only_column;
    char *only_value;
    char *part;  /* of a file with several traces: the one that is read */
    bool header; /* has been read */
};
typedef int sim_line_fn(struct sim_reader *reader, char *line, uint32_t number, struct err *err);
sim_line_fn sim_swf_line, sim_tsv_line;

void sim_trace_init(struct sim_trace *trace);
void sim_trace_done(struct sim_trace *trace);
/*
 * Reads a file, plain or gzip. ".swf" in its name, or a first line that begins with ';' or a number,
 * says it is SWF; else it is a table whose first line names its columns. Errors name file and line.
 */
int sim_trace_read(struct sim_trace *trace, const char *path, const char *only, struct err *err);
/* Adds a job that was read; too many are an error. */
int sim_trace_add(struct sim_reader *reader, const struct sim_job *job, struct err *err);
uint32_t sim_trace_user(struct sim_trace *trace, const char *name);
uint32_t sim_trace_name(struct sim_trace *trace, const char *name);
/* "file:line: ..." */
int sim_trace_error(const struct sim_reader *reader, uint32_t line, struct err *err,
                    const char *fmt, ...) PRINTF(4, 5);
/* Limits as --limits says: "trace", "exact", "none", "x2.5", "random:5". */
int sim_trace_limits(struct sim_trace *trace, const char *rule, struct err *err);

/* ---- sim_run.c ---- */

struct sim_sum {
    double area;     /* units x seconds in use */
    double waste;    /* free units of nodes that are partly in use, x seconds with jobs waiting */
    double waiting;  /* seconds in which a job waited */
    uint64_t events; /* commands applied */
    uint64_t starts, refused_starts;
    int64_t first_s, last_s;
    double cpu_ms; /* of core and planner */
    size_t most_waiting;
    uint64_t preempted, requeued, suspended, cancelled; /* all; of these */
    double lost;                                        /* units x seconds that were run in vain */
    uint32_t rounded; /* jobs that were given a whole GPU for want of parts */
    uint32_t unnamed; /* partitions and QOS that this cluster has not */
};

struct sim_how {
    const Config *config;
    bool bars; /* keep where each job was */
    int64_t
        checkpoint_s;  /* requeued jobs saved what they had done: that often, 0 last; -1: never */
    int64_t restart_s; /* and need so long to go on */
    bool (*tick)(void *ctx, const struct sim_run *run); /* now and then; false stops */
    void *ctx;
};

struct sim_run {
    const struct sim_how *how;
    struct sim_trace *trace;
    struct sim_sum sum;
    VEC(struct sim_bar) bars;      /* in order of their start */
    VEC(char *) nodes;             /* names */
    uint32_t units, unit_per_node; /* GPUs, or CPUs when there are none; the most of a node */
    bool of_gpus, stopped;
    size_t submitted, ended, refused;
    int64_t now_s;
    char why_refused[ERR_TEXT_BYTES]; /* the first time */
    uint32_t refused_line;
};

/* Runs all jobs of the trace to their end; results are in the jobs, in run->sum and run->bars. */
int sim_run(struct sim_run *run, const struct sim_how *how, struct sim_trace *trace,
            struct err *err);
void sim_run_done(struct sim_run *run);

/* ---- sim_cluster.c: core and planner, as a controller drives them ---- */

struct sim_cluster {
    struct state *state;
    struct sched *sched;
    struct events events;
    uint64_t index;
    int64_t now_us, wake_us; /* the planner wants to be asked again then */
    double cpu_ms;
    void (*on_event)(void *ctx, const struct event *event); /* of every command, once applied */
    void *ctx;
    uint64_t starts, refused;
    VEC(uint32_t) ready, ending; /* ids: nodes are to be told, which do it at once */
    bool telling;
};
#define SIM_BEGIN_US INT64_C(1700000000000000)
/* Nodes of the configuration say hello with what they are configured to have. */
int sim_cluster_new(struct sim_cluster *cluster, const Config *config, int64_t begin_us,
                    struct err *err);
void sim_cluster_done(struct sim_cluster *cluster);
/* The id of the job; 0 when it was refused, and why. */
uint32_t sim_cluster_submit(struct sim_cluster *cluster, const JobOwner *owner, const JobSpec *spec,
                            struct err *err);
/* All components of one: the id of the first. */
uint32_t sim_cluster_submit_all(struct sim_cluster *cluster, const JobOwner *owner,
                                const JobSpec *specs, size_t count, struct err *err);
void sim_cluster_plan(struct sim_cluster *cluster);
void sim_cluster_end(struct sim_cluster *cluster, uint32_t job_id);
/* What is due becomes so. */
void sim_cluster_wait(struct sim_cluster *cluster, int64_t now_us);
int sim_cluster_apply(struct sim_cluster *cluster, Command *command, struct err *err);

/* ---- sim_conf.c ---- */

struct conf;
/* The cluster that the options or the trace describe. */
struct conf *sim_conf_read(const struct sim_args *args, const struct sim_trace *trace,
                           struct err *err);
/* One of sim_policies put into it. */
int sim_conf_policy(Config *config, const char *policy, struct err *err);
extern const char *const sim_policies; /* as a message lists them */

/* ---- sim_metrics.c ---- */

struct sim_spread {
    double avg;
    int64_t p50, p99, most;
};
struct sim_user {
    const char *name;
    size_t jobs;
    double wait_s, slowdown, unit_s; /* averages; sum of units x seconds */
};
struct sim_figures {
    size_t jobs, waiting, running, refused;
    struct sim_spread wait, completion;
    double slowdown; /* bounded by SIM_BOUND_S */
    int64_t makespan_s;
    double used, fragmented, lost; /* shares of all units */
    double fairness;               /* Jain's index of the users' slowdowns */
    VEC(struct sim_user) users;
};
enum { SIM_BOUND_S = 10 };
void sim_measure(const struct sim_run *run, struct sim_figures *out);
void sim_figures_done(struct sim_figures *figures);

/* ---- sim_print.c ---- */

void sim_print_head(struct str *out, const struct sim_run *run);
void sim_print_table_head(struct str *out);
void sim_print_row(struct str *out, const char *policy, const struct sim_run *run,
                   const struct sim_figures *figures);
void sim_print_users(struct str *out, const struct sim_run *run, const struct sim_figures *figures);
void sim_print_jobs(struct str *out, const struct sim_run *run);
struct jsonw;
void sim_json(struct jsonw *json, const char *policy, const struct sim_run *run,
              const struct sim_figures *figures, bool jobs);

/* ---- sim_svg.c ---- */

/* Draws nodes x time; ERR_TOO_LARGE when it would not be readable. */
int sim_svg(const struct sim_run *run, const char *title, struct str *out, struct err *err);

/* ---- sim_deps.c ---- */

/* The ids here of a job there, at most SIM_DEPS_MOST; how many. */
enum { SIM_DEPS_MOST = 64 };
typedef size_t sim_deps_fn(void *ctx, uint32_t live_id, uint32_t *ids);
/* What a job still depends on, with other ids; NULL: on nobody. To be freed. */
char *sim_deps(const char *text, sim_deps_fn *find, void *ctx);

/* ---- sim_live.c ---- */

struct cli;
int sim_what_if(struct cli *cli, const struct sim_args *args);

/* Ctrl-C was pressed: say what is known and end. */
bool sim_interrupted(void);

#endif
