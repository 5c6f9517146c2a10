// SPDX-License-Identifier: Apache-2.0
/*
 * seff.c - `seff JOB`, `spur seff`: what a job used of what it was given, in words with a hint
 *
 * The first lines are those of Slurm's seff, because programs read them; GPUs and hints follow.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/timefmt.h"
#include "base/vec.h"
#include "cli/accounting.h"
#include "cli/commands.h"
#include "schema/acct.h"
#include "schema/job_view.h"
#include "schema/names.h"

struct seff_args {
    bool help, usage, version;
};

/* clang-format off */
static const struct option rows[] = {
    { .name = "help", .key = 'h', .read = option_flag, .into = OPTION_BOOL(struct seff_args, help), .help = "Show this text." },
    { .name = "version", .key = 'V', .read = option_flag, .into = OPTION_BOOL(struct seff_args, version), .help = "Show the version." },
};
/* clang-format on */

const struct option_set seff_options = {
    .command = "seff",
    .usage = "JOB...",
    .about = "Shows what jobs used of the CPUs, memory and GPUs that they had.",
    .bit = 1,
    .usage_exit = 1,
    .rows = rows,
    .count = ARRAY_LEN(rows),
};

/* What of a job counts. */
struct use {
    int64_t cpu_us, wall_s, core_s;
    uint64_t mem_used, mem_given; /* bytes */
    uint32_t cpus, nodes;
    uint64_t gpus, gpu_percent, gpu_mem; /* gpu_percent: the highest sum over them */
    bool gpu_known;
};

static struct use use_of(const struct acct_line *line)
{
    CLEANUP(str_done) struct str tres = { 0 };
    struct use use = { .wall_s = acct_elapsed_s(line), .cpus = acct_cpus(line) };
    int64_t user_us, system_us;

    acct_cpu_us(line, &user_us, &system_us);
    use.cpu_us = user_us + system_us;
    use.core_s = use.wall_s * use.cpus;
    use.nodes = job_node_count(line->job->job);
    if (line->job->start_us)
        job_add_tres(&tres, line->job->job, true);
    use.mem_given = acct_tres(str_text(&tres), "mem") * 1024 * 1024;
    use.gpus = acct_tres(str_text(&tres), "gres/gpu");
    for (size_t i = 0; i < line->job->n_steps; i++) {
        const AcctUsage *usage = line->job->steps[i]->usage;
        if (usage && usage->rss_bytes)
            use.mem_used = MAX(use.mem_used, usage->rss_bytes->total);
        if (usage && usage->gpu_percent) {
            use.gpu_known = true;
            use.gpu_percent = MAX(use.gpu_percent, usage->gpu_percent->total);
        }
        if (usage && usage->gpu_mem_bytes)
            use.gpu_mem = MAX(use.gpu_mem, usage->gpu_mem_bytes->total);
    }
    return use;
}

static void add_bytes(struct str *out, uint64_t bytes)
{
    static const char *const units[] = { "B", "KB", "MB", "GB", "TB", "PB" };
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= 1024 && unit + 1 < ARRAY_LEN(units))
        value /= 1024, unit++;
    str_addf(out, "%.2f %s", value, units[unit]);
}

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

static void add_head(struct str *out, const struct acct_line *line)
{
    const JobOwner *owner = job_owner(line->job->job);
    const JobStatus *status = job_status(line->job->job);

    str_addf(out, "Job ID: %u\n", line->job->job->id);
    if (status->array_job_id || status->het_job_id) {
        str_add(out, status->array_job_id ? "Array Job ID: " : "Het Job ID: ");
        job_add_id(out, line->job->job);
        str_add_char(out, '\n');
    }
    str_addf(out, "Cluster: %s\n", line->job->cluster ? line->job->cluster : "");
    str_addf(out, "User/Group: %s/%s\n", owner->user ? owner->user : "",
             owner->group ? owner->group : "");
    str_add(out, "State: ");
    str_add(out, line->job->requeued ? "REQUEUED" : name_of(&job_state_names, line->job->state));
    str_addf(out, " (exit code %u)\n", status->exit_status >> 8 & 0xff);
}

static void add_numbers(struct str *out, const struct use *use)
{
    if (use->nodes > 1)
        str_addf(out, "Nodes: %u\nCores per node: %u\n", use->nodes, use->cpus / use->nodes);
    else
        str_addf(out, "Cores: %u\n", use->cpus);
    str_add(out, "CPU Utilized: ");
    timefmt_write_duration(out, use->cpu_us / 1000000, TIMEFMT_LONG);
    str_addf(out, "\nCPU Efficiency: %.2f%% of ",
             percent((double)use->cpu_us / 1e6, (double)use->core_s));
    timefmt_write_duration(out, use->core_s, TIMEFMT_LONG);
    str_add(out, " core-walltime\nJob Wall-clock time: ");
    timefmt_write_duration(out, use->wall_s, TIMEFMT_LONG);
    str_add(out, "\nMemory Utilized: ");
    add_bytes(out, use->mem_used);
    str_add_char(out, '\n');
    if (use->mem_given) {
        str_addf(out, "Memory Efficiency: %.2f%% of ",
                 percent((double)use->mem_used, (double)use->mem_given));
        add_bytes(out, use->mem_given);
        str_add_char(out, '\n');
    }
    if (use->gpus && use->gpu_known) {
        str_addf(out, "GPU Utilized: at most %" PRIu64 "%% of %" PRIu64 "%%\nGPU Memory: ",
                 use->gpu_percent, use->gpus * 100);
        add_bytes(out, use->gpu_mem);
        str_add_char(out, '\n');
    } else if (use->gpus) {
        str_addf(out, "GPUs: %" PRIu64 ", whose use was not measured\n", use->gpus);
    }
}

/* One sentence for each thing that was asked for and not used. */
static void add_hints(struct str *out, const struct acct_line *line, const struct use *use)
{
    int64_t limit_s = job_limit_s(line->job->job);

    if (!use->wall_s)
        return;
    if (use->cpus > 1 && percent((double)use->cpu_us / 1e6, (double)use->core_s) < 50)
        str_addf(out, "Hint: its %u CPUs were busy less than half of the time; fewer would do.\n",
                 use->cpus);
    if (use->mem_given && use->mem_used && use->mem_used * 4 < use->mem_given) {
        str_add(out, "Hint: it used at most ");
        add_bytes(out, use->mem_used);
        str_add(out, " of memory; asking for less lets it start sooner.\n");
    }
    if (use->gpus && use->gpu_known && use->gpu_percent < use->gpus * 20)
        str_addf(out, "Hint: its GPUs were used at most to a fifth; does the program use %s?\n",
                 use->gpus > 1 ? "all of them" : "it");
    if (limit_s > 3600 && use->wall_s * 4 < limit_s && line->job->state == JOB_COMPLETED) {
        str_add(out, "Hint: it ended after ");
        timefmt_write_duration(out, use->wall_s, TIMEFMT_LONG);
        str_add(out, " of ");
        timefmt_write_duration(out, limit_s, TIMEFMT_LONG);
        str_add(out, "; a shorter time limit lets it start sooner.\n");
    }
}

struct seff {
    unsigned shown;
    struct str out;
};

static void show(void *ctx, const AcctJob *job, int64_t now_us)
{
    struct seff *seff = ctx;
    struct acct_ctx world = { .now_us = now_us };
    struct acct_line line = { &world, job, NULL };

    if (seff->shown++)
        str_add_char(&seff->out, '\n');
    add_head(&seff->out, &line);
    if (!job->start_us) {
        str_addf(&seff->out, "Efficiency not available for jobs in the %s state.\n",
                 name_of(&job_state_names, job->state));
    } else {
        struct use use = use_of(&line);
        add_numbers(&seff->out, &use);
        if (!job->has_end_us)
            str_add(&seff->out,
                    "WARNING: Efficiency statistics may be misleading for RUNNING jobs.\n");
        else
            add_hints(&seff->out, &line, &use);
    }
    cli_flush(&seff->out);
}

static int run(struct cli *cli, char **ids, int count)
{
    ListHistoryRequest request = LIST_HISTORY_REQUEST__INIT;
    struct seff seff = { 0 };
    struct err err = { 0 };

    for (int i = 0; i < count; i++) {
        if (!accounting_read_id(cli, ids[i], &request)) {
            cli_error(cli, "'%s' is not a job id", ids[i]);
            return 1;
        }
    }
    int code = accounting_list(cli, &request, show, &seff, NULL, &err);
    str_done(&seff.out);
    if (code < 0)
        return accounting_error(cli, &err);
    if (!seff.shown) {
        fprintf(stderr, "Job not found.\n");
        return 2;
    }
    return 0;
}

int seff_main(int argc, char **argv)
{
    struct option_set set = seff_options;
    struct option_ctx ctx = cli_option_ctx();
    struct seff_args args = { 0 };
    struct err err = { 0 };
    struct cli cli;
    char **operands = NEW_ARRAY(char *, argc + 1);
    int count = 0, code = 0;

    set.command = cli_name(argv);
    cli_init(&cli, set.command);
    if (option_read_argv(&set, &ctx, &args, argc, argv, OPTION_PERMUTE, operands, &count, &err) < 0)
        code = cli_option_error(&set, &err);
    else if (cli_help(&set, args.help, false, args.version))
        code = 0;
    else if (!count) {
        cli_error(&cli, "a job id is needed");
        code = 1;
    } else {
        code = run(&cli, operands, count);
    }
    cli_done(&cli);
    free(operands);
    return code;
}
