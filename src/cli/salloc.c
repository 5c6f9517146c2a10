// SPDX-License-Identifier: Apache-2.0
/*
 * salloc.c - gets an allocation and runs a command in it, here
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/limits.h"
#include "cli/alloc.h"
#include "cli/commands.h"
#include "cli/het.h"
#include "cli/plugins.h"
#include "cli/x11.h"
#include "client/client.h"
#include "schema/job_view.h"
#include "schema/names.h"

static volatile int interrupted;
static int signal_pipe[2] = { -1, -1 };

static void on_signal(int sig)
{
    int saved = errno;
    unsigned char byte = (unsigned char)sig;
    ssize_t ignored = write(signal_pipe[1], &byte, 1);

    (void)ignored;
    if (sig != SIGCHLD)
        interrupted = sig;
    errno = saved;
}

static void catch_signals(void)
{
    static const int caught[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD };
    struct sigaction action = { .sa_handler = on_signal };

    if (pipe2(signal_pipe, O_CLOEXEC | O_NONBLOCK) < 0)
        return;
    for (size_t i = 0; i < ARRAY_LEN(caught); i++)
        sigaction(caught[i], &action, NULL);
}

static const char *user_shell(void)
{
    const char *shell = getenv("SHELL");
    struct passwd *user = shell ? NULL : getpwuid(getuid());

    return shell && *shell ? shell : user && *user->pw_shell ? user->pw_shell : "/bin/sh";
}

static bool can_run(const char *name)
{
    const char *path = getenv("PATH"), *cursor = path ? path : "";
    struct span dir;

    if (strchr(name, '/'))
        return access(name, X_OK) == 0;
    while (str_next(&cursor, ":", &dir)) {
        CLEANUP(freep) char *full = mem_printf("%.*s/%s", (int)dir.len, dir.ptr, name);
        if (access(full, X_OK) == 0)
            return true;
    }
    return false;
}

/* A shell at a terminal gets the terminal; salloc takes it back at the end. */
static pid_t start(struct alloc *alloc, char **argv, bool interactive)
{
    if (!can_run(argv[0])) {
        cli_error(alloc->cli, "_fork_command: Unable to find command \"%s\"", argv[0]);
        return -1;
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        cli_error(alloc->cli, "fork: %m");
    if (pid != 0) {
        if (pid > 0 && interactive) {
            setpgid(pid, pid);
            tcsetpgrp(STDIN_FILENO, pid);
        }
        return pid;
    }
    if (interactive) {
        setpgid(0, 0);
        signal(SIGTTOU, SIG_IGN);
        tcsetpgrp(STDIN_FILENO, getpid());
    }
    for (int sig = 1; sig < 32; sig++)
        signal(sig, SIG_DFL);
    execvp(argv[0], argv);
    fprintf(stderr, "salloc: error: execvp: %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

struct waiting {
    struct alloc *alloc;
    pid_t pid;
    bool revoked;
    uint32_t kill_command; /* signal; 0: only hang up a shell */
    bool interactive;
};

/* The allocation is gone while the command runs. */
static void on_revoked(struct waiting *waiting)
{
    struct alloc *alloc = waiting->alloc;

    waiting->revoked = true;
    if (alloc->state == JOB_TIMEOUT)
        cli_say(alloc->cli,
                "Job %u has exceeded its time limit and its allocation has been revoked.",
                alloc->id);
    else
        cli_say(alloc->cli, "Job allocation %u has been revoked.", alloc->id);
    if (waiting->kill_command)
        kill(waiting->interactive ? -waiting->pid : waiting->pid, (int)waiting->kill_command);
    else if (waiting->interactive)
        kill(-waiting->pid, SIGHUP);
}

static int wait_command(struct waiting *waiting)
{
    int status = 0;

    for (;;) {
        pid_t got = waitpid(waiting->pid, &status, WNOHANG | WUNTRACED);
        if (got == waiting->pid && !WIFSTOPPED(status))
            return status;
        struct pollfd fds[] = { { .fd = signal_pipe[0], .events = POLLIN },
                                { .fd = waiting->revoked ? -1 : alloc_fd(waiting->alloc),
                                  .events = POLLIN } };
        unsigned char sig;
        poll(fds, ARRAY_LEN(fds), -1);
        while (read(signal_pipe[0], &sig, 1) == 1) {
            if (sig == SIGTERM || sig == SIGHUP)
                kill(waiting->pid, sig);
        }
        if (!waiting->revoked && !alloc_check(waiting->alloc))
            on_revoked(waiting);
    }
}

static void say_granted(struct alloc *alloc)
{
    if (alloc->cli->quiet)
        return;
    cli_say(alloc->cli, "Granted job allocation %u", alloc->id);
    for (size_t i = 0; i < alloc->count; i++) {
        CLEANUP(str_done) struct str nodes = { 0 };
        job_add_nodes(&nodes, alloc->jobs[i]);
        cli_say(alloc->cli, "Nodes %s are ready for job", str_text(&nodes));
    }
}

static int run_command(struct alloc *alloc, const struct job_request *request, char **argv,
                       bool shell)
{
    bool interactive = shell && isatty(STDIN_FILENO);
    struct waiting waiting = { .alloc = alloc,
                               .kill_command = request->kill_command,
                               .interactive = interactive };
    struct termios before;
    bool terminal = tcgetattr(STDIN_FILENO, &before) == 0;
    int status = 1 << 8;

    if (interactive)
        signal(SIGTTOU, SIG_IGN);
    waiting.pid = start(alloc, argv, interactive);
    if (waiting.pid > 0)
        status = wait_command(&waiting);
    if (interactive)
        tcsetpgrp(STDIN_FILENO, getpgrp());
    if (terminal && WIFSIGNALED(status)) /* it may have had no time for that */
        tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
    if (!waiting.revoked) {
        if (!alloc->cli->quiet)
            cli_say(alloc->cli, "Relinquishing job allocation %u", alloc->id);
        alloc_finish(alloc, status);
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static const char *cluster_name(struct cli *cli)
{
    GetConfigRequest request = GET_CONFIG_REQUEST__INIT;
    GetConfigReply *reply;
    struct err err = { 0 };

    if (cli_call(cli, "GetConfig", &request.base, &get_config_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) < 0 ||
        !reply->config)
        return NULL;
    return reply->config->cluster_name;
}

/* A word of the site's options; "$NAME" is what the environment has. */
static char *step_word(struct arena *arena, struct span word)
{
    char *text = arena_copy(arena, word.ptr, word.len + 1);

    text[word.len] = '\0';
    if (strcmp(text, "$SHELL") == 0)
        return arena_strdup(arena, user_shell());
    if (text[0] == '$' && text[1])
        return arena_strdup(arena, getenv(text + 1) ? getenv(text + 1) : "");
    return text;
}

/*
 * The shell runs on the first node, as a step of its own number, by srun with the site's options
 * (LaunchParameters=use_interactive_step, the default unless the site names others); without a terminal it
 * runs here.
 */
static char **shell_words(struct alloc *alloc, char **operands)
{
    GetConfigRequest request = GET_CONFIG_REQUEST__INIT;
    GetConfigReply *reply = NULL;
    struct arena *arena = &alloc->cli->arena;
    struct err err = { 0 };
    struct span word;

    operands[0] = arena_strdup(arena, user_shell());
    if (!isatty(STDIN_FILENO) ||
        cli_call(alloc->cli, "GetConfig", &request.base, &get_config_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) < 0 ||
        !reply->config)
        return operands;
    const char *launch = reply->config->launch_parameters;
    if (!str_is_empty(launch) && !strstr(launch, "use_interactive_step"))
        return operands;
    const char *list = reply->config->interactive_step_options;
    if (str_is_empty(list))
        list = "--interactive --preserve-env --pty $SHELL";
    char **words = ARENA_ARRAY(arena, char *, strlen(list) / 2 + 3);
    size_t count = 0;
    words[count++] = arena_strdup(arena, "srun");
    while (str_next(&list, " \t", &word))
        words[count++] = step_word(arena, word);
    return words;
}

struct salloc {
    struct cli cli;
    struct job_request requests[LIMIT_HET_COMPONENTS]; /* by component */
    struct job_request *list[LIMIT_HET_COMPONENTS];
    size_t count;
    char **operands; /* the command */
    int operand_count;
};

/* The options of each component; the operands of the last are the command. */
static int read_options(struct salloc *salloc, int argc, char **argv, struct err *err)
{
    struct option_ctx ctx = cli_option_ctx();
    struct het_words *words;
    size_t count;

    if (het_split(plugins_set(&salloc_options), &ctx, &salloc->cli.arena, argc - 1, argv + 1,
                  &words, &count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        struct job_request *request = salloc->list[i] = &salloc->requests[i];
        char **none = ARENA_ARRAY(&salloc->cli.arena, char *, words[i].count + 1);
        int left;
        job_request_init(request);
        salloc->count++;
        if (option_read_env(plugins_set(&salloc_options), &ctx, request, err) < 0 ||
            option_read_words(plugins_set(&salloc_options), &ctx, request, LEVEL_ARGV,
                              words[i].count, words[i].words, OPTION_STOP, none, &left, err) < 0 ||
            job_request_finish(request, err) < 0)
            return -1;
        if (i)
            job_request_inherit(request, &salloc->requests[0]);
        cli_settle_counts(&salloc->cli, request);
        if (words[i].operand_count && i + 1 < count)
            return err_set(err, ERR_INVALID, "Unexpected argument before \":\": %s",
                           words[i].operands[0]);
    }
    salloc->operand_count = words[count - 1].operand_count;
    salloc->operands = words[count - 1].operands;
    return 0;
}

static void fill_specs(struct salloc *salloc, int argc, char **argv)
{
    const char *slash = salloc->operand_count ? strrchr(salloc->operands[0], '/') : NULL;
    const char *name = !salloc->operand_count ? "interactive"
                       : slash                ? slash + 1
                                              : salloc->operands[0];

    for (size_t i = 0; i < salloc->count; i++) {
        alloc_fill_spec(salloc->list[i], name, argv, argc);
        name = salloc->list[0]->spec->name;
    }
}

/* Steps of the job forward by themselves, the shell's first; here it is only looked whether they can. */
static int ask_x11(const struct cli *cli, const struct job_request *request)
{
    struct x11_server server;

    if (!request->x11)
        return 0;
    if (request->no_shell) {
        cli_error(cli, "--x11 cannot be combined with --no-shell");
        return 1;
    }
    setenv(X11_VARIABLE, request->x11, 1);
    return x11_find_server(cli, &server);
}

static int go(struct salloc *salloc, int argc, char **argv)
{
    struct cli *cli = &salloc->cli;
    struct job_request *request = &salloc->requests[0];
    struct alloc alloc = { .cli = cli, .is_salloc = true, .immediate_s = -1 };
    const char *seconds = NULL;
    struct err err = { 0 };
    uint64_t immediate = 0;

    int code = plugins_open(cli, &salloc_options);
    if (code)
        return code;
    if (read_options(salloc, argc, argv, &err) < 0)
        return cli_option_error(&salloc_options, &err);
    if (cli_help_job(plugins_set(&salloc_options), request))
        return 0;
    cli->quiet = request->quiet;
    code = cli_become(cli, request);
    if (code == 0)
        code = plugins_options(cli, request);
    if (code)
        return code;
    if (getenv("SLURM_JOB_ID") && !request->no_shell)
        cli_say(cli, "warning: this is already inside of allocation %s", getenv("SLURM_JOB_ID"));
    code = ask_x11(cli, request);
    if (code)
        return code;
    fill_specs(salloc, argc, argv);
    for (size_t i = 0; i < salloc->count; i++)
        plugins_fill_spec(salloc->list[i]->spec);
    if (request->spec->immediate) {
        alloc_given(request, "immediate", &seconds);
        if (seconds)
            str_to_u64(seconds, INT32_MAX, &immediate);
        alloc.immediate_s = (int64_t)immediate;
        request->spec->has_immediate = request->spec->immediate = false; /* we see to it */
    }
    alloc.hold = !request->no_shell;
    catch_signals();
    code = alloc_get(&alloc, salloc->list, salloc->count, &interrupted);
    if (code == 0) {
        plugins_allocated();
        plugins_set_env();
        say_granted(&alloc);
        if (request->bell)
            fputc('\a', stdout), fflush(stdout);
        if (!request->no_shell) {
            bool shell = salloc->operand_count == 0;
            alloc_set_env(alloc.job, request, cluster_name(cli));
            alloc_set_het_env(&alloc, salloc->list);
            code = run_command(&alloc, request,
                               shell ? shell_words(&alloc, salloc->operands) : salloc->operands,
                               shell);
        }
    }
    alloc_done(&alloc);
    return code < 0 ? 0 : code;
}

int salloc_main(int argc, char **argv)
{
    struct salloc *salloc = NEW(struct salloc);

    cli_init(&salloc->cli, cli_name(argv));
    int code = go(salloc, argc, argv);
    plugins_close(&salloc->cli);
    for (size_t i = 0; i < salloc->count; i++)
        job_request_done(&salloc->requests[i]);
    cli_done(&salloc->cli);
    free(salloc);
    return code;
}
