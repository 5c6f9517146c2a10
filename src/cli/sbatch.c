// SPDX-License-Identifier: Apache-2.0
/*
 * sbatch.c - submits a batch script: `sbatch`, `spur submit`
 *
 * Options come from the script, the environment and the command line, in this order, for each
 * component of a heterogeneous job. The command line is read twice: first to find the script, then,
 * after the script's own lines, to win over them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/timefmt.h"
#include "cli/commands.h"
#include "cli/plugins.h"
#include "cli/submit.h"
#include "cli/x11.h"
#include "schema/job_view.h"
#include "schema/script.h"
#include "sys/files.h"
#include "sys/host.h"

/* One component's words on the command line. */
struct words {
    int argc;
    char **argv;
};

struct submit {
    struct cli cli;
    struct option_set set;
    struct option_ctx ctx;
    struct words words[LIMIT_HET_COMPONENTS];
    unsigned word_sets; /* components on the command line */
    unsigned components;
    struct job_request first; /* of the first reading */
    struct job_request requests[LIMIT_HET_COMPONENTS];
    char **operands; /* script and its arguments */
    int operand_count;
    struct str script;
    char *command;    /* absolute path of the script, or NULL */
    const char *name; /* when no option names the job */
    char *cwd;
};

static int option_error(struct submit *submit, const struct err *err)
{
    return cli_option_error(&submit->set, err);
}

/*
 * Splits the command line at ":" and reads it once, to find the script. A component ends where the
 * first operand is ":"; the operands of the last one are the script and its arguments.
 */
static int read_first(struct submit *submit, int argc, char **argv, struct err *err)
{
    struct arena *arena = &submit->cli.arena;
    char **rest = argv + 1;
    int left = argc - 1;

    for (;;) {
        struct words *words = &submit->words[submit->word_sets];
        char **operands = ARENA_ARRAY(arena, char *, left + 1);
        int count = 0;

        if (left > LIMIT_ARGS_COUNT)
            return err_set(err, ERR_TOO_MANY, "more than %d arguments", LIMIT_ARGS_COUNT);
        if (option_read_words(&submit->set, &submit->ctx, &submit->first, LEVEL_ARGV, left, rest,
                              OPTION_STOP, operands, &count, err) < 0)
            return -1;
        words->argv = rest;
        words->argc = left - count;
        submit->word_sets++;
        if (!count || strcmp(operands[0], ":") != 0) {
            submit->operands = operands;
            submit->operand_count = count;
            return 0;
        }
        if (submit->word_sets == LIMIT_HET_COMPONENTS)
            return err_set(err, ERR_TOO_MANY, "more than %d components", LIMIT_HET_COMPONENTS);
        rest += left - count + 1;
        left = count - 1;
    }
}

/* A name without a slash that is not here is looked for in $PATH, as Slurm does. */
static char *find_script(struct submit *submit, const char *name)
{
    const char *path = getenv("PATH");
    const char *cursor = path ? path : "";
    struct span dir;

    if (name[0] == '/')
        return arena_strdup(&submit->cli.arena, name);
    if (strchr(name, '/') || access(name, F_OK) == 0)
        return arena_printf(&submit->cli.arena, "%s/%s", submit->cwd, name);
    while (str_next(&cursor, ":", &dir)) {
        char *full = arena_printf(&submit->cli.arena, "%.*s/%s", (int)dir.len, dir.ptr, name);

        if (access(full, R_OK) == 0)
            return full;
    }
    return arena_printf(&submit->cli.arena, "%s/%s", submit->cwd, name);
}

static int read_script(struct submit *submit, struct err *err)
{
    const char *slash;
    struct stat about;

    if (submit->first.wrap) {
        if (submit->operand_count)
            return err_set(err, ERR_RANGE, "Script arguments not permitted with --wrap option");
        str_addf(&submit->script, "#!/bin/sh\n# This script was created by sbatch --wrap.\n\n%s\n",
                 submit->first.wrap);
        submit->name = "wrap";
        return 0;
    }
    if (submit->operand_count == 0) {
        submit->name = "sbatch";
        if (file_read_fd(STDIN_FILENO, LIMIT_SCRIPT_BYTES, &submit->script, err) < 0)
            return err_wrap(err, "batch script from standard input");
        return 0;
    }
    submit->command = find_script(submit, submit->operands[0]);
    slash = strrchr(submit->operands[0], '/');
    submit->name = slash ? slash + 1 : submit->operands[0];
    if (stat(submit->command, &about) == 0 && S_ISDIR(about.st_mode))
        return script_check("x", 1, err); /* a directory is no script */
    if (file_read(submit->command, LIMIT_SCRIPT_BYTES, &submit->script, err) < 0) {
        if (err->code == ERR_TOO_LARGE)
            return err_set(err, ERR_RANGE, "Batch script is larger than %d bytes",
                           LIMIT_SCRIPT_BYTES);
        return err_set(err, ERR_RANGE, "Unable to open file %s", submit->operands[0]);
    }
    return 0;
}

/* Node names from a file: any blanks between them. */
static int hosts_from_file(const char *path, char **at, struct err *err)
{
    struct str text = { 0 }, list = { 0 };
    const char *cursor;
    struct span word;

    if (file_read(path, LIMIT_HOSTLIST_TEXT, &text, NULL) < 0) {
        str_done(&text);
        return err_set(err, ERR_RANGE, "Unable to read node list from %s", path);
    }
    cursor = str_text(&text);
    while (str_next(&cursor, " \t\n,", &word))
        str_addf(&list, "%s%.*s", list.len ? "," : "", (int)word.len, word.ptr);
    str_done(&text);
    free(*at);
    *at = str_take(&list);
    return 0;
}

/* SBATCH_IGNORE_PBS=0 lets #PBS lines count. */
static bool ignores_pbs(void)
{
    const char *value = getenv("SBATCH_IGNORE_PBS");

    return value && strcmp(value, "0") != 0 && !str_ieq(value, "no");
}

static int read_component(struct submit *submit, unsigned index, struct err *err)
{
    struct job_request *request = &submit->requests[index];
    struct words words = index < submit->word_sets ? submit->words[index] : (struct words){ 0 };
    char **operands = ARENA_ARRAY(&submit->cli.arena, char *, words.argc + 1);
    JobSpec *spec = request->spec;
    int left;

    request->ignore_pbs = submit->first.ignore_pbs || ignores_pbs();
    if (script_read_options(&submit->set, &submit->ctx, request, str_text(&submit->script),
                            submit->script.len, index, NULL, err) < 0 ||
        option_read_env(&submit->set, &submit->ctx, request, err) < 0 ||
        option_read_words(&submit->set, &submit->ctx, request, LEVEL_ARGV, words.argc, words.argv,
                          OPTION_STOP, operands, &left, err) < 0 ||
        job_request_finish(request, err) < 0)
        return -1;
    if (request->nodefile && hosts_from_file(request->nodefile, &spec->nodelist, err) < 0)
        return -1;
    if (spec->nodelist && strchr(spec->nodelist, '/') &&
        hosts_from_file(spec->nodelist, &spec->nodelist, err) < 0)
        return -1;
    if (spec->exclude && strchr(spec->exclude, '/') &&
        hosts_from_file(spec->exclude, &spec->exclude, err) < 0)
        return -1;
    cli_settle_counts(&submit->cli, request);
    return 0;
}

static void set_text(char **at, const char *text)
{
    if (!*at)
        *at = mem_strdup(text);
}

/* "sbatch -n 2 job.sh", with blanks where the shell had them. */
static char *submit_line(int argc, char **argv)
{
    struct str line = { 0 };

    for (int i = 0; i < argc && line.len < LIMIT_COMMENT_BYTES; i++)
        str_addf(&line, "%s%s", i ? " " : "", i ? argv[i] : cli_name(argv));
    return str_take(&line);
}

static void fill_spec(struct submit *submit, unsigned index, int argc, char **argv)
{
    const struct job_request *request = &submit->requests[index];
    JobSpec *spec = request->spec;
    const char *first_name = submit->requests[0].spec->name;
    char host[HOST_NAME_BYTES];
    pid_t session = getsid(0);

    host_short(host);
    set_text(&spec->name, index && first_name ? first_name : submit->name);
    if (spec->work_dir && spec->work_dir[0] != '/') {
        char *full = mem_printf("%s/%s", submit->cwd, spec->work_dir);

        free(spec->work_dir);
        spec->work_dir = full;
    }
    set_text(&spec->work_dir, submit->cwd);
    set_text(&spec->alloc_node, host);
    if (submit->command)
        set_text(&spec->command, submit->command);
    if (!spec->submit_line)
        spec->submit_line = submit_line(argc, argv);
    spec->has_batch = true;
    spec->batch = index == 0; /* the script runs in the first component */
    spec->has_alloc_sid = session > 0;
    spec->alloc_sid = (uint32_t)MAX(session, 0);
    if (!spec->has_umask) {
        spec->has_umask = true;
        spec->umask = cli_umask();
    }
}

/* What srun inside the job is to do as if it had been told itself. */
static void add_for_steps(struct submit *submit, const char *name, const char *value,
                          JobPayload *payload)
{
    struct arena *arena = &submit->cli.arena;
    char *text = arena_printf(arena, "%s=%s", name, value);
    ProtobufCBinaryData *env = ARENA_ARRAY(arena, ProtobufCBinaryData, payload->n_env + 1);

    if (payload->n_env)
        memcpy(env, payload->env, payload->n_env * sizeof(*env));
    env[payload->n_env++] = (ProtobufCBinaryData){ .data = (uint8_t *)text, .len = strlen(text) };
    payload->env = env;
}

static int make_payload(struct submit *submit, JobPayload *payload, struct err *err)
{
    const struct job_request *request = &submit->requests[0];
    extern char **environ;
    char host[HOST_NAME_BYTES];
    struct submit_env env = { .export = request->export,
                              .export_file = request->export_file,
                              .submit_dir = submit->cwd,
                              .submit_host = host,
                              .env = submit->ctx.env };

    host_short(host);
    payload->has_script = true;
    payload->script.data = (uint8_t *)submit->script.data;
    payload->script.len = submit->script.len;
    if (submit->operand_count > 1) {
        payload->args = submit->operands + 1;
        payload->n_args = (size_t)submit->operand_count - 1;
    }
    if (request->get_user_env)
        payload->has_get_user_env = payload->get_user_env = true;
    submit_rlimits(request->propagate, &submit->cli.arena, payload);
    if (!str_is_empty(request->gpus_per_node)) { /* the job knows GPUs of nodes, not who said so */
        setenv("SLURM_GPUS_PER_NODE", request->gpus_per_node, 1);
        env.env = environ;
    }
    if (submit_env(&env, &submit->cli.arena, payload, err) < 0)
        return -1;
    if (request->x11) /* the node gives the script a display when it finds this */
        add_for_steps(submit, X11_VARIABLE, request->x11, payload);
    if (request->resv_ports)
        add_for_steps(submit, "SLURM_RESV_PORTS", request->resv_ports, payload);
    plugins_fill_payload(&submit->cli, payload);
    return 0;
}

/* What the controller said, as Slurm says it: its own words first, then the general text. */
static void submission_failed(struct submit *submit, const struct err *err, bool test_only)
{
    const char *general = err_text(err->code);

    if (err->code == ERR_GRES || (err->text[0] && strcmp(err->text, general) != 0))
        cli_error(&submit->cli, "%s", err->text[0] ? err->text : general);
    if (err->code == ERR_GRES)
        return;
    if (test_only)
        fprintf(stderr, "allocation failure: %s\n", general);
    else
        cli_error(&submit->cli, "Batch job submission failed: %s", general);
}

static void say_planned(struct submit *submit, const SubmitJobReply *reply)
{
    const Job job = { .base = PROTOBUF_C_MESSAGE_INIT(&job__descriptor),
                      .spec = submit->requests[0].spec };
    struct str when = { 0 };

    timefmt_write_point(&when, reply->planned_start_us / 1000000, submit->ctx.now_us / 1000000,
                        getenv("SLURM_TIME_FORMAT"));
    cli_say(&submit->cli, "Job %u to start at %s a using %u processors on nodes %s in partition %s",
            reply->job_id, str_text(&when),
            reply->has_planned_cpus ? reply->planned_cpus : job_cpu_count(&job),
            reply->planned_nodes ? reply->planned_nodes : "",
            reply->partition ? reply->partition : "");
    if (reply->preempts)
        cli_say(&submit->cli, "  Preempts: %s", reply->preempts);
    str_done(&when);
}

static int send_request(struct submit *submit, struct err *err, SubmitJobReply **reply)
{
    struct arena *arena = &submit->cli.arena;
    SubmitJobRequest request = SUBMIT_JOB_REQUEST__INIT;
    JobPayload *payload = ARENA_NEW(arena, JobPayload);

    job_payload__init(payload);
    if (make_payload(submit, payload, err) < 0)
        return -1;
    request.has_test_only = request.test_only = submit->requests[0].test_only;
    request.components = ARENA_ARRAY(arena, JobComponent *, submit->components);
    for (unsigned i = 0; i < submit->components; i++) {
        JobComponent *component = ARENA_NEW(arena, JobComponent);

        job_component__init(component);
        component->spec = submit->requests[i].spec;
        component->payload = i == 0 ? payload : NULL;
        request.components[request.n_components++] = component;
    }
    return cli_call(&submit->cli, "SubmitJob", &request.base, &submit_job_reply__descriptor,
                    (ProtobufCMessage **)reply, err);
}

static int finish(struct submit *submit, const SubmitJobReply *reply)
{
    const struct job_request *request = &submit->requests[0];

    if (reply->message && *reply->message && (!request->test_only || request->verbose))
        cli_say(&submit->cli, "%s", reply->message);
    if (request->test_only) {
        say_planned(submit, reply);
        return 0;
    }
    if (request->parsable)
        printf("%u\n", reply->job_id);
    else if (!request->quiet)
        printf("Submitted batch job %u\n", reply->job_id);
    fflush(stdout);
    if (request->watch)
        return submit_watch(&submit->cli, reply->job_id);
    return request->wait ? submit_wait(&submit->cli, reply->job_id) : 0;
}

static int ask_x11(struct submit *submit, struct x11_server *server)
{
    const struct job_request *request = &submit->requests[0];

    if (request->spec->array) {
        cli_error(&submit->cli, "--x11 cannot be combined with --array");
        return 1;
    }
    return x11_find_server(&submit->cli, server);
}

/* Everything up to the call, then the call. */
static int submit_run(struct submit *submit, int argc, char **argv)
{
    struct err err = { 0 };
    SubmitJobReply *reply;
    int code = plugins_open(&submit->cli, &sbatch_options);

    if (code)
        return code;
    submit->set = *plugins_set(&sbatch_options);
    submit->set.command = submit->cli.name;
    if (read_first(submit, argc, argv, &err) < 0)
        return option_error(submit, &err);
    if (cli_help_job(&submit->set, &submit->first))
        return 0;
    submit->cwd = getcwd(NULL, 0);
    if (!submit->cwd) {
        cli_error(&submit->cli, "getcwd failed: %s", strerror(errno));
        return 1;
    }
    if (read_script(submit, &err) < 0 ||
        script_check(str_text(&submit->script), submit->script.len, &err) < 0) {
        cli_error(&submit->cli, "%s", err.text);
        return 1;
    }
    if (script_read_options(&submit->set, &submit->ctx, &submit->first, str_text(&submit->script),
                            submit->script.len, 0, &submit->components, &err) < 0)
        return option_error(submit, &err);
    submit->components = MAX(submit->components, submit->word_sets);
    for (unsigned i = 0; i < submit->components; i++) {
        job_request_init(&submit->requests[i]);
        if (read_component(submit, i, &err) < 0)
            return option_error(submit, &err);
        if (i)
            job_request_inherit(&submit->requests[i], &submit->requests[0]);
    }
    for (unsigned i = 0; i < submit->components; i++)
        fill_spec(submit, i, argc, argv);
    submit->cli.quiet = submit->requests[0].quiet;
    if (submit->requests[0].verbose) {
        struct str given = { 0 };

        job_request_add_given(&submit->requests[0], submit->set.command, &given);
        fputs(str_text(&given), stderr);
        str_done(&given);
    }
    code = cli_become(&submit->cli, &submit->requests[0]);
    if (code == 0)
        code = plugins_options(&submit->cli, &submit->requests[0]);
    if (code)
        return code;
    for (unsigned i = 0; i < submit->components; i++)
        plugins_fill_spec(submit->requests[i].spec);
    struct x11_server server;
    code = submit->requests[0].x11 ? ask_x11(submit, &server) : 0;
    if (code)
        return code;
    code = send_request(submit, &err, &reply);
    if (code < 0 && err.code == ERR_RANGE) {
        cli_error(&submit->cli, "%s", err.text);
        return 1;
    }
    if (code < 0) {
        submission_failed(submit, &err, submit->requests[0].test_only);
        return cli_error_code();
    }
    if (submit->requests[0].x11 && !submit->requests[0].test_only)
        x11_stay(&submit->cli, &server, reply->job_id);
    return finish(submit, reply);
}

int sbatch_main(int argc, char **argv)
{
    struct submit *submit = NEW(struct submit);
    int code;

    submit->set = sbatch_options;
    submit->set.command = cli_name(argv);
    submit->ctx = cli_option_ctx();
    cli_init(&submit->cli, submit->set.command);
    job_request_init(&submit->first);
    code = submit_run(submit, argc, argv);
    plugins_close(&submit->cli);
    job_request_done(&submit->first);
    for (unsigned i = 0; i < LIMIT_HET_COMPONENTS; i++) {
        if (submit->requests[i].spec)
            job_request_done(&submit->requests[i]);
    }
    str_done(&submit->script);
    free(submit->cwd);
    cli_done(&submit->cli);
    free(submit);
    return code;
}
