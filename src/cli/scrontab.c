/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scrontab.c - jobs that run at their times, again and again: `scrontab`, `spur cron`
 *
 * A crontab is kept by the controller. Each line of it that has a time and a command becomes a batch job; #SCRON lines
 * before it are options of that job alone, NAME=VALUE lines hold for all that follow.
 */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/submit.h"
#include "proto/controller.pb-c.h"
#include "schema/cron.h"
#include "schema/script.h"
#include "sys/files.h"

struct scrontab_args {
    bool help, usage, version, edit, list, remove;
    const char *user;
    uint32_t verbose;
};

#define FLAG(member) OPTION_BOOL(struct scrontab_args, member)

/* clang-format off */
static const struct option rows[] = {
    { .name = "autocomplete", .arg = "TEXT", .read = option_text, .later = "spur completion writes it for a shell" },
    { .name = "edit", .key = 'e', .read = option_flag, .into = FLAG(edit), .help = "Edit the crontab with $VISUAL or $EDITOR." },
    { .name = "help", .read = option_flag, .into = FLAG(help), .help = "Show this text." },
    { .name = "list", .key = 'l', .read = option_flag, .into = FLAG(list), .help = "Show the crontab." },
    { .name = "remove", .key = 'r', .read = option_flag, .into = FLAG(remove), .help = "Remove the crontab and cancel its jobs that wait." },
    { .name = "usage", .read = option_flag, .into = FLAG(usage), .help = "Show a short summary of options." },
    { .name = "user", .key = 'u', .arg = "NAME", .read = option_text, .into = OPTION_TEXT(struct scrontab_args, user), .help = "The crontab of this user; for root." },
    { .name = "verbose", .key = 'v', .read = option_increase, .into = OPTION_U32(struct scrontab_args, verbose), .help = "Say which jobs were made." },
    { .name = "version", .key = 'V', .read = option_flag, .into = FLAG(version), .help = "Show the version." },
};
/* clang-format on */

const struct option_set scrontab_options = {
    .command = "scrontab",
    .usage = "[-u NAME] [FILE | -e | -l | -r]",
    .about = "Run commands as batch jobs at times that a crontab names. Without an option the "
             "crontab is read from FILE, or from standard input when that is '-'.",
    .usage_exit = 1,
    .rows = rows,
    .count = ARRAY_LEN(rows),
};

struct scrontab {
    struct cli cli;
    struct scrontab_args args;
    const struct passwd *user;
    VEC(struct job_request *) requests;
    VEC(SubmitJobPackedComponent *) jobs;
    VEC(uint32_t) lines;
    VEC(char *) env;  /* NAME=VALUE lines so far */
    struct str scron; /* options for the next job, as a script's lines */
};

/* ---- a line that is a job ---- */

static char *default_name(struct arena *arena, const char *command)
{
    const char *word = command + strspn(command, " \t");
    size_t len = strcspn(word, " \t;|&<>");
    const char *slash = memrchr(word, '/', len);

    if (slash) {
        len -= (size_t)(slash + 1 - word);
        word = slash + 1;
    }
    return arena_printf(arena, "%.*s", (int)MIN(len, (size_t)60), word);
}

static void fill_spec(struct scrontab *scrontab, JobSpec *spec, const char *time, size_t time_len,
                      const char *command)
{
    struct arena *arena = &scrontab->cli.arena;

    if (!spec->name)
        spec->name = mem_strdup(default_name(arena, command));
    if (!spec->work_dir)
        spec->work_dir = mem_strdup(scrontab->user->pw_dir);
    spec->command = mem_strdup(command);
    spec->cron = mem_printf("%.*s", (int)time_len, time);
    spec->has_batch = spec->batch = true;
    spec->has_requeue = spec->requeue = true;
    if (!spec->has_open_append)
        spec->has_open_append = spec->open_append = true;
    if (!spec->has_umask) {
        spec->has_umask = true;
        spec->umask = cli_umask();
    }
}

/* As cron has it: little, and what the crontab says. */
static int add_payload(struct scrontab *scrontab, const struct job_request *request,
                       const char *command, SubmitJobPackedComponent *job, struct err *err)
{
    struct arena *arena = &scrontab->cli.arena;
    const struct passwd *user = scrontab->user;
    JobPayload payload = JOB_PAYLOAD__INIT;
    char **env = ARENA_ARRAY(arena, char *, scrontab->env.len + 6);
    size_t count = 0;
    char *script =
        arena_printf(arena, "#!/bin/sh\n# This script was created by scrontab.\n\n%s\n", command);

    env[count++] = arena_printf(arena, "HOME=%s", user->pw_dir);
    env[count++] = arena_printf(arena, "USER=%s", user->pw_name);
    env[count++] = arena_printf(arena, "LOGNAME=%s", user->pw_name);
    env[count++] = (char *)"SHELL=/bin/sh";
    env[count++] = (char *)"PATH=/usr/local/bin:/usr/bin:/bin";
    vec_each (char *, one, &scrontab->env)
        env[count++] = *one;
    struct submit_env from = { .export = request->export,
                               .export_file = request->export_file,
                               .submit_dir = request->spec->work_dir,
                               .submit_host = "scrontab",
                               .env = env };
    if (submit_env(&from, arena, &payload, err) < 0)
        return -1;
    payload.has_script = true;
    payload.script.data = (uint8_t *)script;
    payload.script.len = strlen(script);
    job->has_payload = true;
    job->payload.len = job_payload__get_packed_size(&payload);
    job->payload.data = arena_alloc(arena, job->payload.len + 1);
    job_payload__pack(&payload, job->payload.data);
    return 0;
}

static int add_job(struct scrontab *scrontab, const char *line, uint32_t number, struct err *err)
{
    struct option_ctx ctx = cli_option_ctx();
    SubmitJobPackedComponent *job = ARENA_NEW(&scrontab->cli.arena, SubmitJobPackedComponent);
    struct job_request *request = NEW(struct job_request);
    const char *time = line + strspn(line, " \t"), *command;
    struct cron cron;

    job_request_init(request);
    vec_push(&scrontab->requests, request);
    if (cron_read(time, &cron, &command, err) < 0)
        return -1;
    if (!*command)
        return err_set(err, ERR_SYNTAX, "there is no command after the time");
    size_t time_len = (size_t)(command - time);
    while (time_len && strchr(" \t", time[time_len - 1]))
        time_len--;
    struct str script = { 0 };
    str_addf(&script, "#!/bin/sh\n%s", str_text(&scrontab->scron));
    int code = script_read_options(&sbatch_options, &ctx, request, str_text(&script), script.len, 0,
                                   NULL, err);
    str_done(&script);
    if (code < 0 || job_request_finish(request, err) < 0)
        return -1;
    if (request->spec->array || request->spec->begin_us)
        return err_set(err, ERR_INVALID, "--array and --begin are not for scrontab");
    cli_settle_counts(&scrontab->cli, request);
    fill_spec(scrontab, request->spec, time, time_len, command);
    submit_job_packed_component__init(job);
    job->spec = request->spec;
    if (add_payload(scrontab, request, command, job, err) < 0)
        return -1;
    vec_push(&scrontab->jobs, job);
    vec_push(&scrontab->lines, number);
    str_clear(&scrontab->scron);
    return 0;
}

/* ---- the text ---- */

/* NAME=VALUE: a name, and no blank before the sign. */
static bool is_variable(const char *line)
{
    size_t len = strspn(line, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");

    return len && line[len] == '=' && (line[0] < '0' || line[0] > '9');
}

static void add_variable(struct scrontab *scrontab, const char *line)
{
    struct arena *arena = &scrontab->cli.arena;
    size_t len = strlen(line), name = strcspn(line, "=") + 1;
    char quote = line[name];

    if ((quote == '"' || quote == '\'') && len > name + 1 && line[len - 1] == quote)
        vec_push(&scrontab->env, arena_printf(arena, "%.*s%.*s", (int)name, line,
                                              (int)(len - name - 2), line + name + 1));
    else
        vec_push(&scrontab->env, arena_strdup(arena, line));
}

static int read_line(struct scrontab *scrontab, char *line, uint32_t number, struct err *err)
{
    line += strspn(line, " \t");
    if (strncmp(line, "#SCRON", 6) == 0 && strchr(" \t", line[6])) {
        str_addf(&scrontab->scron, "#SBATCH%s\n", line + 6);
        return 0;
    }
    if (!*line || *line == '#')
        return 0;
    if (is_variable(line)) {
        add_variable(scrontab, line);
        return 0;
    }
    if (scrontab->jobs.len >= LIMIT_CRON_JOBS)
        return err_set(err, ERR_TOO_MANY, "a crontab has at most %d jobs", (int)LIMIT_CRON_JOBS);
    return add_job(scrontab, line, number, err);
}

static int read_text(struct scrontab *scrontab, const char *text)
{
    uint32_t number = 1;
    struct err err = { 0 };

    for (const char *at = text; *at; number++) {
        size_t len = strcspn(at, "\n");
        char *line = arena_printf(&scrontab->cli.arena, "%.*s", (int)len, at);
        if (read_line(scrontab, line, number, &err) < 0) {
            cli_error(&scrontab->cli, "line %u: %s", number, err.text);
            cli_error(&scrontab->cli, "%s", line);
            return 1;
        }
        at += len + (at[len] == '\n');
    }
    return 0;
}

static int store(struct scrontab *scrontab, const char *text)
{
    SetCrontabRequest request = SET_CRONTAB_REQUEST__INIT;
    struct err err = { 0 };
    JobsReply *reply;

    if (read_text(scrontab, text))
        return 1;
    request.text = (char *)(uintptr_t)text;
    request.n_jobs = scrontab->jobs.len;
    request.jobs = scrontab->jobs.items;
    request.n_lines = scrontab->lines.len;
    request.lines = scrontab->lines.items;
    if (cli_call(&scrontab->cli, "SetCrontab", &request.base, &jobs_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) < 0) {
        cli_error(&scrontab->cli, "%s", err.text[0] ? err.text : err_text(err.code));
        return 1;
    }
    for (size_t i = 0; scrontab->args.verbose && i < reply->n_results; i++)
        cli_say(&scrontab->cli, "line %u is job %s", scrontab->lines.items[i],
                reply->results[i]->id);
    return 0;
}

/* ---- what is asked ---- */

static int load(struct scrontab *scrontab, const char **text)
{
    GetCrontabRequest request = GET_CRONTAB_REQUEST__INIT;
    GetCrontabReply *reply;
    struct err err = { 0 };

    if (cli_call(&scrontab->cli, "GetCrontab", &request.base, &get_crontab_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) < 0) {
        cli_error(&scrontab->cli, "%s", err.text[0] ? err.text : err_text(err.code));
        return 1;
    }
    *text = reply->crontab ? reply->crontab->text : NULL;
    return 0;
}

static int list(struct scrontab *scrontab)
{
    const char *text;

    if (load(scrontab, &text))
        return 1;
    if (!text) {
        fprintf(stderr, "no crontab for %s\n", scrontab->user->pw_name);
        return 1;
    }
    fputs(text, stdout);
    return 0;
}

static int remove_it(struct scrontab *scrontab)
{
    SetCrontabRequest request = SET_CRONTAB_REQUEST__INIT;
    JobsReply *reply;
    struct err err = { 0 };

    if (cli_call(&scrontab->cli, "SetCrontab", &request.base, &jobs_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) == 0)
        return 0;
    if (err.code == ERR_NOT_FOUND)
        fprintf(stderr, "no crontab for %s\n", scrontab->user->pw_name);
    else
        cli_error(&scrontab->cli, "%s", err.text[0] ? err.text : err_text(err.code));
    return 1;
}

static const char sample[] = "# min hour day-of-month month day-of-week command\n"
                             "#SCRON --time=10\n"
                             "# 0 * * * * echo 'every hour'\n";

static int run_editor(struct scrontab *scrontab, const char *path)
{
    const char *editor = getenv("VISUAL");

    if (str_is_empty(editor))
        editor = getenv("EDITOR");
    if (str_is_empty(editor))
        editor = "vi";
    char *line = arena_printf(&scrontab->cli.arena, "%s \"$1\"", editor);
    pid_t pid = fork();
    int status = 0;
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", line, "sh", path, (char *)NULL);
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    cli_error(&scrontab->cli, "the editor '%s' failed: nothing was changed", editor);
    return 1;
}

static int edit_file(struct scrontab *scrontab, const char *path, const char *before)
{
    struct str text = { 0 };
    struct err err = { 0 };
    int code = run_editor(scrontab, path);

    if (code == 0 && file_read(path, LIMIT_CRONTAB_BYTES, &text, &err) < 0) {
        cli_error(&scrontab->cli, "%s", err.text);
        code = 1;
    }
    if (code == 0 && strcmp(str_text(&text), before) == 0)
        cli_say(&scrontab->cli, "nothing was changed");
    else if (code == 0)
        code = store(scrontab, str_text(&text));
    str_done(&text);
    return code;
}

static int edit(struct scrontab *scrontab)
{
    char path[] = "/tmp/scrontab-XXXXXX";
    const char *text;

    if (load(scrontab, &text))
        return 1;
    int fd = mkstemp(path);
    if (fd < 0) {
        cli_error(&scrontab->cli, "%s: %s", path, strerror(errno));
        return 1;
    }
    const char *begin = text ? text : sample;
    int code = 1;
    if (write(fd, begin, strlen(begin)) == (ssize_t)strlen(begin))
        code = edit_file(scrontab, path, text ? text : "");
    else
        cli_error(&scrontab->cli, "%s: %s", path, strerror(errno));
    close(fd);
    unlink(path);
    return code;
}

static int from_file(struct scrontab *scrontab, const char *path)
{
    struct str text = { 0 };
    struct err err = { 0 };
    int code = strcmp(path, "-") == 0 ? file_read_fd(STDIN_FILENO, LIMIT_CRONTAB_BYTES, &text, &err)
                                      : file_read(path, LIMIT_CRONTAB_BYTES, &text, &err);

    if (code < 0)
        cli_error(&scrontab->cli, "%s", err.text);
    code = code < 0 ? 1 : store(scrontab, str_text(&text));
    str_done(&text);
    return code;
}

/* -u: root becomes that user before anything is asked. */
static int become(struct scrontab *scrontab)
{
    const char *name = scrontab->args.user;
    uint32_t uid = getuid();

    if (name && !cli_user(name, &uid)) {
        cli_error(&scrontab->cli, "Invalid user '%s'", name);
        return 1;
    }
    if (uid != getuid() && getuid() != 0) {
        cli_error(&scrontab->cli, "only root may use -u for another user");
        return 1;
    }
    scrontab->user = getpwuid(uid);
    if (!scrontab->user) {
        cli_error(&scrontab->cli, "uid %u has no entry in the user database", uid);
        return 1;
    }
    if (uid == getuid())
        return 0;
    struct job_request request = { .run_uid = name };
    return cli_become(&scrontab->cli, &request);
}

static int act(struct scrontab *scrontab, char **operands, int count)
{
    const struct scrontab_args *args = &scrontab->args;

    if (args->edit + args->list + args->remove + count > 1) {
        cli_error(&scrontab->cli, "only one of -e, -l, -r and a file can be used");
        return 1;
    }
    if (become(scrontab))
        return 1;
    if (args->list)
        return list(scrontab);
    if (args->remove)
        return remove_it(scrontab);
    return args->edit || (!count && isatty(STDIN_FILENO))
               ? edit(scrontab)
               : from_file(scrontab, count ? operands[0] : "-");
}

int scrontab_main(int argc, char **argv)
{
    struct option_set set = scrontab_options;
    struct option_ctx ctx = cli_option_ctx();
    struct scrontab scrontab = { 0 };
    struct err err = { 0 };
    int count = 0, code;

    set.command = cli_name(argv);
    cli_init(&scrontab.cli, set.command);
    char **operands = ARENA_ARRAY(&scrontab.cli.arena, char *, (size_t)argc + 1);
    if (option_read_env(&set, &ctx, &scrontab.args, &err) < 0 ||
        option_read_argv(&set, &ctx, &scrontab.args, argc, argv, OPTION_PERMUTE, operands, &count,
                         &err) < 0)
        code = cli_option_error(&set, &err);
    else if (cli_help(&set, scrontab.args.help, scrontab.args.usage, scrontab.args.version))
        code = 0;
    else
        code = act(&scrontab, operands, count);
    vec_each (struct job_request *, request, &scrontab.requests) {
        job_request_done(*request);
        free(*request);
    }
    vec_done(&scrontab.requests);
    vec_done(&scrontab.jobs);
    vec_done(&scrontab.lines);
    vec_done(&scrontab.env);
    str_done(&scrontab.scron);
    cli_done(&scrontab.cli);
    return code;
}
