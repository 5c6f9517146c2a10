// SPDX-License-Identifier: Apache-2.0
/*
 * srun.c - runs a parallel program: in the allocation it is called in, or in one of its own
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "cli/commands.h"
#include "cli/plugins.h"
#include "cli/srun.h"
#include "cli/submit.h"
#include "client/client.h"
#include "sys/host.h"

enum { DEBUG_LEVEL = 3 }; /* Slurm's number of what is said without -v */

/* What describes an allocation, and is too late inside one. */
static const char *const of_jobs[] = {
    "account",     "array",
    "begin",       "bb",
    "bbf",         "cluster-constraint",
    "clusters",    "constraint",
    "contiguous",  "core-spec",
    "deadline",    "delay-boot",
    "dependency",  "hold",
    "licenses",    "mail-type",
    "mail-user",   "mcs-label",
    "mincpus",     "nice",
    "partition",   "prefer",
    "priority",    "qos",
    "reservation", "segment",
    "spare-nodes", "spread-job",
    "switches",    "test-only",
    "thread-spec", "time-min",
    "tmp",         "use-min-nodes",
    "wckey",
};

static void warn_ignored(struct srun *srun)
{
    for (size_t i = 0; !srun->own && i < ARRAY_LEN(of_jobs); i++) {
        if (alloc_given(&srun->request, of_jobs[i], NULL))
            cli_say(&srun->cli,
                    "warning: --%s describes an allocation and is ignored inside job %u",
                    of_jobs[i], srun->request.jobid);
    }
}

static void resolve_dir(struct srun *srun)
{
    JobSpec *spec = srun->request.spec;
    char cwd[LIMIT_PATH_BYTES];

    if (!getcwd(cwd, sizeof(cwd)))
        strcpy(cwd, "/");
    if (!spec->work_dir) {
        spec->work_dir = mem_strdup(cwd);
    } else if (spec->work_dir[0] != '/') {
        char *full = mem_printf("%s/%s", cwd, spec->work_dir);
        free(spec->work_dir);
        spec->work_dir = full;
    }
}

static int open_input_file(struct srun *srun, const char *name)
{
    const JobSpec *spec = srun->request.spec;
    CLEANUP(freep)
    char *full = name[0] == '/' ? mem_strdup(name) : mem_printf("%s/%s", spec->work_dir, name);
    srun->input_fd = open(full, O_RDONLY | O_CLOEXEC);
    if (srun->input_fd >= 0)
        return 0;
    cli_error(&srun->cli, "Could not open stdin file: %m");
    return 1;
}

static int open_input(struct srun *srun)
{
    const JobSpec *spec = srun->request.spec;
    const char *name = spec->std_in;
    uint64_t number;

    srun->input_fd = STDIN_FILENO;
    if (str_is_empty(name) || strcmp(name, "all") == 0)
        return 0;
    if (strcmp(name, "none") == 0) {
        srun->input_fd = -1;
        return 0;
    }
    if (str_to_u64(name, UINT32_MAX, &number)) {
        srun->has_input_task = true;
        srun->input_task = (uint32_t)number;
        return 0;
    }
    if (srun_differs(name)) { /* the nodes open it */
        srun->input_pattern = name;
        srun->input_fd = -1;
        return 0;
    }
    if (strchr(name, '%'))
        return 0; /* opened when the step has its number */
    return open_input_file(srun, name);
}

static int open_named_input(struct srun *srun)
{
    const char *name = srun->request.spec->std_in;
    CLEANUP(str_done) struct str path = { 0 };
    struct err err = { 0 };

    if (srun->input_pattern || str_is_empty(name) || !strchr(name, '%'))
        return 0;
    if (srun_expand(srun, name, 0, &path, &err) < 0) {
        cli_error(&srun->cli, "Could not open stdin file: %s", err.text);
        return 1;
    }
    return open_input_file(srun, str_text(&path));
}

static int get_env(struct srun *srun)
{
    extern char **environ;
    struct submit_env from = { .export = srun->request.export,
                               .export_file = srun->request.export_file,
                               .step = alloc_given(&srun->request, "export", NULL) };
    struct err err = { 0 };

    char level[16];

    if (srun->request.label)
        setenv("SLURM_LABELIO", "1", 1);
    if (srun->mpi)
        setenv("SLURM_MPI_TYPE", srun->mpi, 1);
    snprintf(level, sizeof(level), "%u", DEBUG_LEVEL + srun->request.verbose);
    setenv("SRUN_DEBUG", level, 1);
    from.env = environ;
    submit_rlimits(srun->request.propagate, &srun->cli.arena, &srun->env);
    if (submit_env(&from, &srun->cli.arena, &srun->env, &err) < 0) {
        cli_error(&srun->cli, "%s", err.text);
        return 1;
    }
    plugins_fill_step(&srun->cli, &srun->env);
    return 0;
}

static int set_programs(struct srun *srun)
{
    struct arena *arena = &srun->cli.arena;
    const JobSpec *spec = srun->request.spec;
    bool inside = !str_is_empty(spec->container_image) || !str_is_empty(spec->container);
    const char *dir = inside ? NULL : spec->work_dir;
    struct err err = { 0 };

    if (srun->request.multi_prog) {
        if (srun_read_programs(srun->argv[0], dir, srun->layout->ntasks, srun->argv + 1,
                               (size_t)srun->argc - 1, arena, &srun->programs, &srun->program_count,
                               &err) < 0) {
            cli_error(&srun->cli, "%s", err.text);
            return 1;
        }
        for (size_t i = 0; i < srun->program_count; i++) {
            for (size_t k = 0; k < srun->programs[i]->n_tasks; k++)
                srun->programs[i]->tasks[k] += srun->first_task; /* the file counts its own */
        }
        return 0;
    }
    StepProgram *program = ARENA_NEW(arena, StepProgram);
    step_program__init(program);
    program->n_args = (size_t)srun->argc;
    program->args = srun->argv;
    program->args[0] = srun_find_program(srun->argv[0], dir, arena);
    if (getenv("SLURM_TEST_EXEC") && !inside && access(program->args[0], X_OK) < 0) {
        cli_fatal(&srun->cli, "Can not execute %s", program->args[0]);
        return 1;
    }
    srun->programs = ARENA_ARRAY(arena, StepProgram *, 1);
    srun->programs[0] = program;
    srun->program_count = 1;
    return 0;
}

/* One job with all components. */
static int allocate(struct srun *srun, int argc, char **argv)
{
    struct job_request *requests[LIMIT_HET_COMPONENTS];
    const char *seconds = NULL;
    uint64_t immediate = 0;

    for (size_t i = 0; i < srun->part_count; i++) {
        struct srun *part = srun->parts[i];
        JobSpec *spec = part->request.spec;
        if (spec->no_allocate && str_is_empty(spec->nodelist)) {
            cli_error(&srun->cli, "must specify a node list with -Z, --no-allocate.");
            return 1;
        }
        if (spec->no_allocate && i == 0 && !srun->cli.quiet)
            cli_say(&srun->cli, "do not allocate resources");
        if (spec->no_allocate) /* tasks are not counted against CPUs that nobody gave */
            spec->has_overcommit = spec->overcommit = true;
        alloc_fill_spec(&part->request, srun->parts[0]->name, argv, argc);
        requests[i] = &part->request;
    }
    srun->alloc = (struct alloc){ .cli = &srun->cli, .immediate_s = -1, .hold = true };
    if (srun->request.spec->immediate) {
        alloc_given(&srun->request, "immediate", &seconds);
        if (seconds)
            str_to_u64(seconds, INT32_MAX, &immediate);
        srun->alloc.immediate_s = (int64_t)immediate;
        srun->request.spec->has_immediate = srun->request.spec->immediate =
            false; /* we see to it */
    }
    int code = alloc_get(&srun->alloc, requests, srun->part_count, &srun_interrupted);
    if (code != 0)
        return code;
    for (size_t i = 0; i < srun->part_count; i++) {
        srun->parts[i]->job_id = srun->alloc.jobs[i]->id;
        srun->parts[i]->alloc.job = srun->alloc.jobs[i];
    }
    srun_verbose_allocation(srun);
    alloc_set_env(srun->alloc.job, &srun->request, NULL);
    alloc_set_het_env(&srun->alloc, requests);
    return 0;
}

static int get_allocation(struct srun *srun, int argc, char **argv)
{
    bool own = srun->request.jobid == 0 || srun->request.spec->no_allocate;

    if (srun->request.interactive && own) {
        cli_error(&srun->cli, "--interactive is for salloc: there is no allocation");
        return 1;
    }
    if (srun->request.het_group && own) {
        cli_error(&srun->cli,
                  "--het-group is for steps of a heterogeneous job: there is no allocation");
        return 1;
    }
    for (size_t i = 0; i < srun->part_count; i++) {
        srun->parts[i]->own = own;
        if (srun_check_options(srun->parts[i]))
            return 1;
        warn_ignored(srun->parts[i]);
    }
    return own ? allocate(srun, argc, argv) : srun_find_jobs(srun);
}

/* What they set in our environment goes with the step. */
static int init_plugins(struct srun *srun)
{
    int code = plugins_loaded() ? plugins_user_init(srun) : 0;

    for (size_t i = 0; plugins_loaded() && code == 0 && i < srun->part_count; i++) {
        srun->parts[i]->env.n_env = srun->parts[i]->env.n_rlimits = 0;
        code = get_env(srun->parts[i]);
    }
    return code;
}

/* Everything before the first task can start; 0, or the exit code after a complaint. */
static int prepare_step(struct srun *srun)
{
    int code = 0;

    for (size_t i = 0; code == 0 && i < srun->part_count; i++)
        code = get_env(srun->parts[i]);
    if (code == 0)
        code = srun_create_all(srun);
    for (size_t i = 0; code == 0 && i < srun->part_count; i++)
        code = set_programs(srun->parts[i]);
    if (code == 0 && srun->has_input_task && srun->input_task >= srun->ntasks) {
        cli_error(&srun->cli, "Invalid task id %u for --input", srun->input_task);
        code = 1;
    }
    for (size_t i = 0; code == 0 && i < srun->part_count; i++)
        code = srun_bcast(srun->parts[i]);
    if (code == 0)
        code = srun_x11_start(srun);
    if (code == 0)
        code = srun_open_sinks(srun);
    if (code == 0)
        code = open_named_input(srun);
    if (code == 0)
        code = init_plugins(srun);
    if (code == 0)
        code = srun_hook(srun, false);
    return code;
}

static int run_step(struct srun *srun)
{
    int code = prepare_step(srun);

    if (code) {
        srun_x11_stop(srun);
        srun->highest_status = code << 8;
        srun_leave(srun);
        return code;
    }
    srun_share_parts(srun);
    srun_launch(srun);
    code = srun_loop(srun);
    srun_x11_stop(srun);
    srun_close_sinks(srun);
    srun_hook(srun, true);
    return code;
}

/* What each component runs, where. */
static int settle_part(struct srun *srun)
{
    if (srun->argc == 0) {
        cli_fatal(&srun->cli, "No command given to execute.");
        return 1;
    }
    const char *slash = strrchr(srun->argv[0], '/');
    srun->name = srun->request.spec->name && alloc_given(&srun->request, "job-name", NULL)
                     ? srun->request.spec->name
                 : slash ? (char *)slash + 1
                         : srun->argv[0];
    resolve_dir(srun);
    return 0;
}

static int run(struct srun *srun, int argc, char **argv)
{
    struct str text = { 0 };
    int code = plugins_open(&srun->cli, &srun_options);

    if (code == 0)
        code = srun_read_parts(srun, argc, argv);
    if (code)
        return code;
    if (cli_help_job(plugins_set(&srun_options), &srun->request))
        return 0;
    if (str_eq(srun->request.mpi, "list")) {
        srun_list_mpi();
        return 0;
    }
    for (size_t i = 0; i < srun->part_count && code == 0; i++)
        code = srun_set_mpi(srun->parts[i]);
    if (code)
        return code;
    if (srun->request.verbose) {
        job_request_add_given(&srun->request, "srun", &text);
        fputs(str_text(&text), stderr);
        str_done(&text);
    }
    for (size_t i = 0; i < srun->part_count; i++) {
        if (settle_part(srun->parts[i]))
            return 1;
    }
    code = cli_become(&srun->cli, &srun->request);
    if (code == 0)
        code = plugins_options(&srun->cli, &srun->request);
    if (code)
        return code;
    for (size_t i = 0; i < srun->part_count; i++)
        plugins_fill_spec(srun->parts[i]->request.spec);
    srun->cli.timeout_ms = srun->request.msg_timeout_s * 1000;
    if (open_input(srun))
        return 1;
    code = srun_x11_ask(srun);
    if (code)
        return code;
    code = srun_catch_signals(srun);
    if (code)
        return code;
    code = get_allocation(srun, argc, argv);
    if (code == 0) {
        code = run_step(srun);
        if (srun->own && srun_interrupted && srun->highest == 0 && code)
            alloc_cancel(&srun->alloc);
        else if (srun->own)
            alloc_finish(&srun->alloc, srun->highest_status);
    }
    alloc_done(&srun->alloc);
    return code < 0 ? 0 : code;
}

int srun_main(int argc, char **argv)
{
    struct srun srun = { .input_fd = -1, .site_kill_wait_s = SRUN_KILL_WAIT_S };

    cli_init(&srun.cli, cli_name(argv));
    job_payload__init(&srun.env);
    job_request_init(&srun.request);
    int code = run(&srun, argc, argv);
    plugins_close(&srun.cli);
    srun_close(&srun);
    srun_free_parts(&srun);
    job_request_done(&srun.request);
    cli_done(&srun.cli);
    return code;
}
