/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lsf.c - bsub, bjobs, bkill: what people type who come from LSF
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/util.h"
#include "cli/commands.h"
#include "cli/submit.h"
#include "cli/wrapper.h"
#include "schema/script.h"
#include "sys/files.h"

/* ---- bsub ---- */

/* clang-format off */
static const struct wrapper_option bsub_rows[] = {
    { .name = "-B", .ours = "--mail-type=BEGIN" },
    { .name = "-cwd", .has_value = true, .ours = "--chdir=%s" },
    { .name = "-e", .has_value = true, .flag = 'e' },
    { .name = "-eo", .has_value = true, .flag = 'e', .ours = "--open-mode=truncate" },
    { .name = "-env", .has_value = true, .flag = 'E' },
    { .name = "-G", .has_value = true, .ours = "--account=%s" },
    { .name = "-gpu", .has_value = true, .flag = 'g' },
    { .name = "-H", .ours = "--hold" },
    { .name = "-I", .why = "srun runs a command and shows its output; salloc gets an allocation" },
    { .name = "-Ip", .why = "srun --pty runs a command with a terminal" },
    { .name = "-Is", .why = "srun --pty runs a command with a terminal" },
    { .name = "-J", .has_value = true, .flag = 'J' },
    { .name = "-K", .flag = 'K' },
    { .name = "-M", .has_value = true, .flag = 'M' },
    { .name = "-m", .has_value = true, .flag = 'm' },
    { .name = "-N", .ours = "--mail-type=END" },
    { .name = "-n", .has_value = true, .flag = 'n' },
    { .name = "-o", .has_value = true, .flag = 'o' },
    { .name = "-oo", .has_value = true, .flag = 'o', .ours = "--open-mode=truncate" },
    { .name = "-P", .has_value = true, .ours = "--account=%s" },
    { .name = "-q", .has_value = true, .ours = "--partition=%s", .flag = 'q' },
    { .name = "-R", .has_value = true, .flag = 'R' },
    { .name = "-r", .ours = "--requeue" },
    { .name = "-rn", .ours = "--no-requeue" },
    { .name = "-u", .has_value = true, .ours = "--mail-user=%s" },
    { .name = "-W", .has_value = true, .flag = 'W' },
    { .name = "-w", .has_value = true, .flag = 'w' },
    { .name = "-x", .ours = "--exclusive" },
    { .name = "-app", .has_value = true, .why = "there are no application profiles" },
    { .name = "-b", .has_value = true, .why = "say when with sbatch --begin" },
    { .name = "-sla", .has_value = true, .why = "there are no service classes; sbatch has --qos" },
    { .name = "-t", .has_value = true, .why = "say until when with sbatch --deadline" },
};
/* clang-format on */
static const struct wrapper_table bsub_table = {
    "[OPTIONS] COMMAND [ARGUMENT...] | [OPTIONS] <SCRIPT",
    "Submits a command, or a script with #BSUB lines, with the options of LSF.", bsub_rows,
    ARRAY_LEN(bsub_rows)
};

/* %J and %I of LSF */
static void add_path(struct wrapper *wrapper, const char *option, const char *path)
{
    CLEANUP(str_done) struct str ours = { 0 };

    for (; *path; path++) {
        bool id = path[0] == '%' && (path[1] == 'J' || path[1] == 'I');
        if (id)
            str_add(&ours, *++path == 'J' ? "%j" : "%a");
        else
            str_add_char(&ours, *path);
    }
    wrapper_add(wrapper, "--%s=%s", option, str_text(&ours));
}

/* "name[1-10:2]%3" */
static void add_name(struct wrapper *wrapper, const char *text)
{
    size_t len = strcspn(text, "[");
    const char *list = text[len] ? text + len + 1 : "";
    size_t list_len = strcspn(list, "]");

    if (len)
        wrapper_add(wrapper, "--job-name=%.*s", (int)len, text);
    if (list_len)
        wrapper_add(wrapper, "--array=%.*s%s", (int)list_len, list,
                    list[list_len] ? list + list_len + 1 : "");
}

/* A number is KB; a unit may follow. */
static int add_memory(struct wrapper *wrapper, const char *text)
{
    size_t digits = strspn(text, "0123456789");
    const char *unit = text + digits;

    if (!digits || (*unit && !strchr("KMGTkmgt", *unit)))
        return wrapper_error(wrapper, "-M '%s' is not a size", text);
    wrapper_add(wrapper, "--mem=%.*s%c", (int)digits, text, *unit ? *unit : 'K');
    return -1;
}

/* "[HOURS:]MINUTES", where sbatch would read minutes and seconds. */
static void add_limit(struct wrapper *wrapper, const char *text)
{
    size_t len = strcspn(text, "/"); /* a host model may follow */
    bool hours = memchr(text, ':', len) != NULL;

    wrapper_add(wrapper, "--time=%.*s%s", (int)len, text, hours ? ":00" : "");
}

/* "done(12) && ended(13)" */
static int add_dependency(struct wrapper *wrapper, const char *text)
{
    static const char *const words[][2] = { { "done(", "afterok" },
                                            { "ended(", "afterany" },
                                            { "exit(", "afternotok" },
                                            { "started(", "after" } };
    CLEANUP(str_done) struct str ours = { 0 };
    const char *at = text;

    while (*at) {
        size_t i = 0;
        at += strspn(at, " &");
        while (i < ARRAY_LEN(words) && !str_starts(at, words[i][0]))
            i++;
        const char *id = i < ARRAY_LEN(words) ? at + strlen(words[i][0]) : at;
        size_t len = strspn(id, "0123456789");
        if (i == ARRAY_LEN(words) || !len || id[len] != ')')
            return wrapper_error(wrapper,
                                 "-w '%s' is not supported: done(ID), ended(ID), exit(ID) and "
                                 "started(ID) joined by && are",
                                 text);
        str_addf(&ours, "%s%s:%.*s", ours.len ? "," : "", words[i][1], (int)len, id);
        at = id + len + 1;
        at += strspn(at, " ");
    }
    wrapper_add(wrapper, "--dependency=%s", str_text(&ours));
    return -1;
}

/* "span[hosts=1] rusage[mem=500]" */
static int add_resources(struct wrapper *wrapper, const char *text)
{
    static const char *const words[][2] = { { "span[hosts=", "--nodes=" },
                                            { "span[ptile=", "--ntasks-per-node=" },
                                            { "rusage[mem=", "--mem-per-cpu=" } };
    const char *at = text + strspn(text, " ");

    while (*at) {
        size_t i = 0;
        while (i < ARRAY_LEN(words) && !str_starts(at, words[i][0]))
            i++;
        const char *value = i < ARRAY_LEN(words) ? at + strlen(words[i][0]) : at;
        size_t len = strspn(value, "0123456789");
        if (i == ARRAY_LEN(words) || !len || value[len] != ']')
            return wrapper_error(wrapper,
                                 "-R '%s' is not supported: span[hosts=N], span[ptile=N] and "
                                 "rusage[mem=MB] are",
                                 text);
        wrapper_add(wrapper, "%s%.*s", words[i][1], (int)len, value);
        at = value + len + 1;
        at += strspn(at, " ");
    }
    return -1;
}

static int add_gpus(struct wrapper *wrapper, const char *text)
{
    size_t len = str_starts(text, "num=") ? strspn(text + 4, "0123456789") : 0;

    if (!len || text[4 + len])
        return wrapper_error(wrapper, "-gpu '%s' is not supported: num=N is", text);
    wrapper_add(wrapper, "--gpus-per-node=%s", text + 4);
    return -1;
}

static void add_hosts(struct wrapper *wrapper, const char *text)
{
    char *names = arena_strdup(&wrapper->arena, text);

    for (char *at = names; *at; at++)
        *at = *at == ' ' ? ',' : *at;
    wrapper_add(wrapper, "--nodelist=%s", names);
}

/* Options whose value is written another way here. */
static int add_flags(struct wrapper *wrapper, const char *flags[128])
{
    int code = -1;

    if (flags['o'])
        add_path(wrapper, "output", flags['o']);
    if (flags['e'])
        add_path(wrapper, "error", flags['e']);
    if (flags['J'])
        add_name(wrapper, flags['J']);
    if (flags['W'])
        add_limit(wrapper, flags['W']);
    if (flags['m'])
        add_hosts(wrapper, flags['m']);
    if (flags['E'])
        wrapper_add(wrapper, "--export=%s", flags['E']);
    if (flags['n']) /* "4" or "4,8": at least as many */
        wrapper_add(wrapper, "--ntasks=%.*s", (int)strcspn(flags['n'], ","), flags['n']);
    if (flags['M'])
        code = add_memory(wrapper, flags['M']);
    if (code < 0 && flags['w'])
        code = add_dependency(wrapper, flags['w']);
    if (code < 0 && flags['R'])
        code = add_resources(wrapper, flags['R']);
    if (code < 0 && flags['g'])
        code = add_gpus(wrapper, flags['g']);
    return code;
}

/* #BSUB lines; what the command line says comes later and wins. */
static int read_lines(struct wrapper *wrapper, const char *script, const char *flags[128])
{
    int code = -1;

    for (const char *line = script; code < 0 && *line;) {
        size_t len = strcspn(line, "\n");
        char **words;
        int count = 0, used = 0;
        struct err err = { 0 };

        if (str_starts(line, "#BSUB") &&
            script_split(&wrapper->arena, line + 5, len - 5, &words, &count, &err) < 0)
            return wrapper_error(wrapper, "%s", err.text);
        if (count)
            code = wrapper_read(wrapper, &bsub_table, count, words, &used, flags);
        if (code < 0 && used < count)
            code = wrapper_error(wrapper, "#BSUB: unexpected word '%s'", words[used]);
        line += len + (line[len] == '\n');
    }
    return code;
}

static int read_input(struct wrapper *wrapper, const char *flags[128])
{
    CLEANUP(str_done) struct str text = { 0 }, script = { 0 };
    struct err err = { 0 };

    if (file_read_fd(STDIN_FILENO, LIMIT_SCRIPT_BYTES, &text, &err) < 0)
        return wrapper_error(wrapper, "script from standard input: %s", err.text);
    if (!str_starts(str_text(&text), "#!"))
        str_add(&script, "#!/bin/sh\n");
    str_add_len(&script, text.data, text.len);
    int code = wrapper_give_input(wrapper, script.data, script.len);
    return code < 0 ? read_lines(wrapper, str_text(&script), flags) : code;
}

static void add_command(struct wrapper *wrapper, int argc, char **argv)
{
    CLEANUP(str_done) struct str text = { 0 };

    for (int i = 0; i < argc; i++)
        str_addf(&text, "%s%s", i ? " " : "", argv[i]);
    wrapper_add(wrapper, "--wrap=%s", str_text(&text));
}

/* Where it went, as LSF says it. */
static void say_submitted(const char *id, const char *queue)
{
    if (queue)
        printf("Job <%s> is submitted to queue <%s>.\n", id, queue);
    else
        printf("Job <%s> is submitted to default queue.\n", id);
    fflush(stdout);
}

static int wait_for(const char *id)
{
    struct cli cli;

    cli_init(&cli, "bsub");
    int code = submit_wait(&cli, (uint32_t)strtoul(id, NULL, 10));
    cli_done(&cli);
    return code;
}

static int bsub(struct wrapper *wrapper, int argc, char **argv)
{
    const char *flags[128] = { 0 }, *given[128] = { 0 };
    CLEANUP(str_done) struct str id = { 0 };
    struct wrapper words; /* of the command line */
    int used = 0;

    wrapper_init(&words, argv[0], "");
    int code = wrapper_read(&words, &bsub_table, argc - 1, argv + 1, &used, given);
    wrapper_add(wrapper, "--parsable");
    if (code < 0 && 1 + used == argc)
        code = read_input(wrapper, flags);
    for (size_t i = 0; i < ARRAY_LEN(flags); i++)
        flags[i] = given[i] ? given[i] : flags[i];
    for (size_t i = 1; code < 0 && i < words.words.len; i++)
        wrapper_add(wrapper, "%s", words.words.items[i]);
    wrapper_done(&words);
    if (code < 0)
        code = add_flags(wrapper, flags);
    if (code >= 0)
        return code;
    if (1 + used < argc)
        add_command(wrapper, argc - 1 - used, argv + 1 + used);
    code = wrapper_capture(wrapper, sbatch_main, &id);
    if (code != 0)
        return code;
    str_truncate(&id, strcspn(str_text(&id), ";\n"));
    say_submitted(str_text(&id), flags['q']);
    return flags['K'] ? wait_for(str_text(&id)) : 0;
}

int bsub_main(int argc, char **argv)
{
    struct wrapper wrapper;

    wrapper_init(&wrapper, argv[0], "sbatch");
    int code = bsub(&wrapper, argc, argv);
    wrapper_done(&wrapper);
    return code;
}

/* ---- bjobs ---- */

enum { ID, USER, STATE, QUEUE, WHERE, NAME, WHEN, REASON, FIELDS };
#define BJOBS_FORMAT "%i|%u|%T|%P|%N|%j|%V|%r"

static const char *lsf_state(const char *state, const char *reason)
{
    static const char *const words[][2] = {
        { "PENDING", "PEND" },   { "RUNNING", "RUN" },     { "CONFIGURING", "RUN" },
        { "COMPLETING", "RUN" }, { "SUSPENDED", "SSUSP" }, { "STOPPED", "USUSP" },
        { "COMPLETED", "DONE" },
    };

    if (str_eq(state, "PENDING") && str_starts(reason, "JobHeld"))
        return "PSUSP";
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_eq(state, words[i][0]))
            return words[i][1];
    }
    return "EXIT";
}

/* "2026-11-18T02:44:57" as "Nov 18 02:44" */
static void print_time(const char *text)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    unsigned month, day, hour, minute;

    if (sscanf(text, "%*u-%u-%uT%u:%u", &month, &day, &hour, &minute) == 4 && month >= 1 &&
        month <= 12)
        printf("%.3s %2u %02u:%02u\n", months + 3 * (month - 1), day, hour, minute);
    else
        puts(text);
}

static void print_jobs(char *text)
{
    printf("%-7s %-7s %-5s %-10s %-11s %-11s %-10s %s\n", "JOBID", "USER", "STAT", "QUEUE",
           "FROM_HOST", "EXEC_HOST", "JOB_NAME", "SUBMIT_TIME");
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *f[FIELDS];
        wrapper_fields(line, f, FIELDS);
        printf("%-7s %-7s %-5s %-10s %-11s %-11s %-10s ", f[ID], f[USER],
               lsf_state(f[STATE], f[REASON]), f[QUEUE], "-", f[WHERE][0] ? f[WHERE] : "-",
               f[NAME]);
        print_time(f[WHEN]);
    }
}

/* Whose: those of the caller, unless -u or an id says another. */
static void add_whose(struct wrapper *wrapper, const char *user, bool ids)
{
    if (!user && !ids)
        wrapper_add(wrapper, "--me");
    else if (user && !str_eq(user, "all"))
        wrapper_add(wrapper, "--user=%s", user);
}

int bjobs_main(int argc, char **argv)
{
    static const struct wrapper_option rows[] = {
        { .name = "-a", .ours = "--states=all" },
        { .name = "-d", .ours = "--states=CD,F,CA,TO,NF,OOM" },
        { .name = "-J", .has_value = true, .ours = "--name=%s" },
        { .name = "-m", .has_value = true, .ours = "--nodelist=%s" },
        { .name = "-p", .ours = "--states=PD" },
        { .name = "-q", .has_value = true, .ours = "--partition=%s" },
        { .name = "-r", .ours = "--states=R,CG" },
        { .name = "-s", .ours = "--states=S" },
        { .name = "-u", .has_value = true, .flag = 'u' },
        { .name = "-w", .flag = 'w' }, /* columns are never cut */
        { .name = "-l", .why = "scontrol show job and spur explain tell all about a job" },
        { .name = "-o", .has_value = true, .why = "squeue --format chooses columns" },
    };
    static const struct wrapper_table table = { "[OPTIONS] [JOB...]", "Lists your jobs.", rows,
                                                ARRAY_LEN(rows) };
    const char *flags[128] = { 0 };
    CLEANUP(str_done) struct str text = { 0 };
    struct wrapper wrapper;
    int used = 0;

    wrapper_init(&wrapper, argv[0], "squeue");
    int code = wrapper_read(&wrapper, &table, argc - 1, argv + 1, &used, flags);
    if (code < 0) {
        add_whose(&wrapper, flags['u'], 1 + used < argc);
        for (int i = 1 + used; i < argc; i++)
            wrapper_add(&wrapper, "--jobs=%s", wrapper_job_id(&wrapper, argv[i]));
        wrapper_add(&wrapper, "--noheader");
        wrapper_add(&wrapper, "--format=%s", BJOBS_FORMAT);
        code = wrapper_capture(&wrapper, squeue_main, &text);
        if (code == 0 && text.len)
            print_jobs(text.data);
        else if (code == 0)
            fputs("No unfinished job found\n", stderr);
    }
    wrapper_done(&wrapper);
    return code;
}

/* ---- bkill ---- */

int bkill_main(int argc, char **argv)
{
    static const struct wrapper_option rows[] = {
        { .name = "-J", .has_value = true, .ours = "--name=%s", .flag = 'f' },
        { .name = "-m", .has_value = true, .ours = "--nodelist=%s", .flag = 'f' },
        { .name = "-q", .has_value = true, .ours = "--partition=%s", .flag = 'f' },
        { .name = "-s", .has_value = true, .ours = "--signal=%s" },
        { .name = "-u", .has_value = true, .flag = 'u' },
        { .name = "-r", .why = "a job is ended on its nodes before it is forgotten" },
    };
    static const struct wrapper_table table = { "[OPTIONS] JOB... | 0",
                                                "Ends or signals jobs; 0 is all of yours.", rows,
                                                ARRAY_LEN(rows) };
    const char *flags[128] = { 0 };
    struct wrapper wrapper;
    int used = 0, ids = 0;
    bool all = false;

    wrapper_init(&wrapper, argv[0], "scancel");
    int code = wrapper_read(&wrapper, &table, argc - 1, argv + 1, &used, flags);
    for (int i = 1 + used; code < 0 && i < argc; i++) {
        all |= str_eq(argv[i], "0");
        if (!str_eq(argv[i], "0")) {
            wrapper_add(&wrapper, "%s", wrapper_job_id(&wrapper, argv[i]));
            ids++;
        }
    }
    if (code < 0 && !all && !ids && !flags['f'] && !flags['u'])
        code = wrapper_error(&wrapper, "a job id is needed; 0 is all of your jobs");
    if (code < 0 && (all || flags['f'] || flags['u']))
        add_whose(&wrapper, flags['u'], false);
    if (code < 0)
        code = wrapper_call(&wrapper, scancel_main);
    wrapper_done(&wrapper);
    return code;
}
