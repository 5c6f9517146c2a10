/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pbs.c - qsub, qstat, qdel, qhold, qrls, pbsnodes: what people type who come from PBS or Torque
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/util.h"
#include "cli/commands.h"
#include "cli/wrapper.h"
#include "schema/pbs.h"
#include "sys/files.h"

/* ---- qsub ---- */

static int qsub_help(void)
{
    puts(
        "Usage: qsub [OPTIONS] [SCRIPT [ARGUMENT...]]\n"
        "Submits a batch script with the options of PBS and prints its job id.\n\n"
        "The options are those of #PBS lines: -A -J -M -N -P -V -X -a -d -e -h -j -l -m -o -p -q -r -t\n"
        "-v -w -z -W; sbatch has more. -I, -C and -u are refused. -S, -c, -k and some resources of -l\n"
        "have no counterpart: a warning says so. Without SCRIPT the script is standard input.");
    return 0;
}

/* With a name given and nothing else, output goes where PBS puts it. */
static void add_output(struct wrapper *wrapper, const struct pbs_words *pbs)
{
    bool has_error = false;

    vec_each (char *, word, &pbs->words) {
        if (pbs->joined && str_starts(*word, "--error="))
            continue;
        has_error |= str_starts(*word, "--error=");
        wrapper_add(wrapper, "%s", *word);
    }
    if (pbs->named && !pbs->has_output)
        wrapper_add(wrapper, "--output=%%x.o%%j");
    if (pbs->named && !has_error && !pbs->joined)
        wrapper_add(wrapper, "--error=%%x.e%%j");
}

/* PBS runs a script without #! by the shell; on standard input that is the usual form. */
static int complete_input(struct wrapper *wrapper)
{
    CLEANUP(str_done) struct str text = { 0 }, script = { 0 };
    struct err err = { 0 };

    if (file_read_fd(STDIN_FILENO, LIMIT_SCRIPT_BYTES, &text, &err) < 0)
        return wrapper_error(wrapper, "script from standard input: %s", err.text);
    if (!str_starts(str_text(&text), "#!"))
        str_add(&script, "#!/bin/sh\n");
    str_add_len(&script, text.data, text.len);
    return wrapper_give_input(wrapper, script.data, script.len);
}

static int qsub(struct wrapper *wrapper, struct pbs_words *pbs, int argc, char **argv)
{
    struct err err = { 0 };
    int used = 0;

    if (pbs_read_words(pbs, argc - 1, argv + 1, &used, &err) < 0)
        return wrapper_error(wrapper, "%s", err.text);
    vec_each (const char *, word, &pbs->unused)
        fprintf(stderr, "qsub: warning: %s has no counterpart here and is not used\n", *word);
    if (pbs->has_umask)
        umask((mode_t)pbs->umask);
    wrapper_add(wrapper, "--parsable");
    add_output(wrapper, pbs);
    if (1 + used == argc) {
        int code = complete_input(wrapper);
        if (code >= 0)
            return code;
    }
    for (int i = 1 + used; i < argc; i++)
        wrapper_add(wrapper, "%s", argv[i]);
    return wrapper_call(wrapper, sbatch_main);
}

int qsub_main(int argc, char **argv)
{
    struct wrapper wrapper;

    if (argc > 1 && str_eq(argv[1], "--help"))
        return qsub_help();
    wrapper_init(&wrapper, argv[0], "sbatch");
    struct pbs_words pbs = { .arena = &wrapper.arena };
    int code = qsub(&wrapper, &pbs, argc, argv);
    pbs_words_done(&pbs);
    wrapper_done(&wrapper);
    return code;
}

/* ---- qdel, qhold, qrls ---- */

static int add_ids(struct wrapper *wrapper, int argc, char **argv)
{
    if (!argc)
        return wrapper_error(wrapper, "a job id is needed");
    for (int i = 0; i < argc; i++) {
        const char *id = wrapper_job_id(wrapper, argv[i]);
        if (!id[0])
            return wrapper_error(wrapper, "'%s' is not a job id", argv[i]);
        wrapper_add(wrapper, "%s", id);
    }
    return -1;
}

static int act_on_jobs(const char *program, const struct wrapper_table *table, int argc,
                       char **argv, int (*run)(int, char **), const char *verb)
{
    const char *flags[128] = { 0 };
    struct wrapper wrapper;
    int used = 0;

    wrapper_init(&wrapper, argv[0], program);
    int code = wrapper_read(&wrapper, table, argc - 1, argv + 1, &used, flags);
    if (code < 0 && flags['h'])
        verb = str_eq(flags['h'], "u") && str_eq(verb, "hold") ? "uhold" : verb;
    if (code < 0 && verb)
        wrapper_add(&wrapper, "%s", verb);
    if (code < 0)
        code = add_ids(&wrapper, argc - 1 - used, argv + 1 + used);
    if (code < 0)
        code = wrapper_call(&wrapper, run);
    wrapper_done(&wrapper);
    return code;
}

int qdel_main(int argc, char **argv)
{
    static const struct wrapper_option rows[] = {
        { .name = "-m", .has_value = true, .why = "a job that is ended gets no message" },
        { .name = "-p", .why = "a job is ended on its nodes before it is forgotten" },
        { .name = "-W", .has_value = true, .why = "the delay before KILL is KillWait" },
        { .name = "-x", .why = "jobs that have ended are forgotten by themselves" },
    };
    static const struct wrapper_table table = { "JOB...", "Ends jobs.", rows, ARRAY_LEN(rows) };

    return act_on_jobs("scancel", &table, argc, argv, scancel_main, NULL);
}

static const struct wrapper_option hold_rows[] = {
    { .name = "-h", .has_value = true, .flag = 'h' }, /* u: the owner may release it */
};

int qhold_main(int argc, char **argv)
{
    static const struct wrapper_table table = { "[-h u|o|s] JOB...", "Holds jobs.", hold_rows,
                                                ARRAY_LEN(hold_rows) };

    return act_on_jobs("scontrol", &table, argc, argv, scontrol_main, "hold");
}

int qrls_main(int argc, char **argv)
{
    static const struct wrapper_table table = { "[-h u|o|s] JOB...", "Releases held jobs.",
                                                hold_rows, ARRAY_LEN(hold_rows) };

    return act_on_jobs("scontrol", &table, argc, argv, scontrol_main, "release");
}

/* ---- qstat ---- */

enum { ID, NAME, USER, USED, STATE, QUEUE, NODES, CPUS, LIMIT, WHERE, REASON, QSTAT_FIELDS };
#define QSTAT_FORMAT "%i|%j|%u|%M|%t|%P|%D|%C|%l|%N|%r"

static char pbs_state(const char *state, const char *reason)
{
    if (str_eq(state, "PD"))
        return str_starts(reason, "JobHeld") ? 'H' : str_eq(reason, "BeginTime") ? 'W' : 'Q';
    if (str_eq(state, "R") || str_eq(state, "CF"))
        return 'R';
    if (str_eq(state, "S") || str_eq(state, "ST"))
        return 'S';
    return str_eq(state, "CG") ? 'E' : 'C';
}

static void print_full(char *const f[QSTAT_FIELDS])
{
    printf("Job Id: %s\n    Job_Name = %s\n    Job_Owner = %s\n    job_state = %c\n    queue = %s\n"
           "    Resource_List.nodect = %s\n    Resource_List.ncpus = %s\n"
           "    Resource_List.walltime = %s\n    resources_used.walltime = %s\n",
           f[ID], f[NAME], f[USER], pbs_state(f[STATE], f[REASON]), f[QUEUE], f[NODES], f[CPUS],
           f[LIMIT], f[USED]);
    if (f[WHERE][0])
        printf("    exec_host = %s\n", f[WHERE]);
    putchar('\n');
}

static void print_jobs(char *text, const char *flags[128])
{
    bool first = true;

    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *f[QSTAT_FIELDS];
        wrapper_fields(line, f, QSTAT_FIELDS);
        if (flags['f']) {
            print_full(f);
            continue;
        }
        if (first)
            printf("%-19s %-16s %-15s %8s %s %s\n%s\n", "Job id", "Name", "User", "Time Use", "S",
                   "Queue",
                   "------------------- ---------------- --------------- -------- - -----");
        first = false;
        printf("%-19s %-16.16s %-15.15s %8s %c %s\n", f[ID], f[NAME], f[USER], f[USED],
               pbs_state(f[STATE], f[REASON]), f[QUEUE]);
        if (flags['n'])
            printf("   %s\n", f[WHERE][0] ? f[WHERE] : "--");
    }
}

int qstat_main(int argc, char **argv)
{
    static const struct wrapper_option rows[] = {
        { .name = "-a", .ours = "--all" },
        { .name = "-f", .flag = 'f' },
        { .name = "-i", .ours = "--states=PD" },
        { .name = "-n", .flag = 'n' },
        { .name = "-r", .ours = "--states=R,S,CG" },
        { .name = "-t", .ours = "--array" },
        { .name = "-u", .has_value = true, .ours = "--user=%s" },
        { .name = "-x", .ours = "--states=all" },
        { .name = "-B", .why = "scontrol ping and scontrol show config tell about the server" },
        { .name = "-q", .why = "sinfo lists the queues, which are partitions" },
        { .name = "-Q", .why = "sinfo lists the queues, which are partitions" },
    };
    static const struct wrapper_table table = { "[OPTIONS] [JOB...]", "Lists jobs.", rows,
                                                ARRAY_LEN(rows) };
    const char *flags[128] = { 0 };
    CLEANUP(str_done) struct str text = { 0 };
    struct wrapper wrapper;
    int used = 0;

    wrapper_init(&wrapper, argv[0], "squeue");
    int code = wrapper_read(&wrapper, &table, argc - 1, argv + 1, &used, flags);
    for (int i = 1 + used; code < 0 && i < argc; i++)
        wrapper_add(&wrapper, "--jobs=%s", wrapper_job_id(&wrapper, argv[i]));
    if (code < 0) {
        wrapper_add(&wrapper, "--noheader");
        wrapper_add(&wrapper, "--format=%s", QSTAT_FORMAT);
        code = wrapper_capture(&wrapper, squeue_main, &text);
        if (code == 0 && text.len)
            print_jobs(text.data, flags);
    }
    wrapper_done(&wrapper);
    return code;
}

/* ---- pbsnodes ---- */

enum { NODE, NODE_STATE, NODE_CPUS, NODE_MEM, NODE_FEATURES, NODE_GRES, NODE_FIELDS };
#define NODE_FORMAT "%N|%T|%c|%m|%f|%G"

static const char *node_state(const char *state)
{
    static const char *const words[][2] = {
        { "idle", "free" },
        { "mixed", "free" },
        { "allocated", "job-exclusive" },
        { "down", "down" },
        { "drained", "offline" },
        { "draining", "offline" },
        { "unknown", "down" },
        { "fail", "down" },
        { "maint", "offline" },
        { "completing", "busy" },
        { "reserved", "resv-exclusive" },
    };

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_starts(state, words[i][0]))
            return words[i][1];
    }
    return state;
}

static bool has_value(const char *text)
{
    return text[0] && !str_eq(text, "(null)");
}

static void print_nodes(char *text, bool list)
{
    char last[LIMIT_HOST_NAME + 1] = "";

    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *f[NODE_FIELDS];
        wrapper_fields(line, f, NODE_FIELDS);
        if (str_eq(f[NODE], last)) /* it is in several partitions */
            continue;
        snprintf(last, sizeof(last), "%s", f[NODE]);
        const char *state = node_state(f[NODE_STATE]);
        if (list) {
            if (str_eq(state, "down") || str_eq(state, "offline"))
                printf("%-20s %s\n", f[NODE], state);
            continue;
        }
        printf("%s\n     state = %s\n     np = %s\n", f[NODE], state, f[NODE_CPUS]);
        if (has_value(f[NODE_FEATURES]))
            printf("     properties = %s\n", f[NODE_FEATURES]);
        if (has_value(f[NODE_GRES]))
            printf("     gres = %s\n", f[NODE_GRES]);
        printf("     memory = %smb\n\n", f[NODE_MEM]);
    }
}

/* -o and -r: by scontrol */
static int change_nodes(struct wrapper *wrapper, const char *flags[128], int argc, char **argv)
{
    struct str names = { 0 };

    for (int i = 0; i < argc; i++)
        str_addf(&names, "%s%s", i ? "," : "", argv[i]);
    if (!argc) {
        str_done(&names);
        return wrapper_error(wrapper, "a node is needed");
    }
    vec_clear(&wrapper->words);
    wrapper_add(wrapper, "scontrol");
    wrapper_add(wrapper, "update");
    wrapper_add(wrapper, "NodeName=%s", str_text(&names));
    str_done(&names);
    wrapper_add(wrapper, "State=%s", flags['o'] ? "DRAIN" : "RESUME");
    if (flags['o'])
        wrapper_add(wrapper, "Reason=%s", flags['N'] ? flags['N'] : "pbsnodes -o");
    return wrapper_call(wrapper, scontrol_main);
}

int pbsnodes_main(int argc, char **argv)
{
    static const struct wrapper_option rows[] = {
        { .name = "-a", .flag = 'a' },
        { .name = "-l", .flag = 'l' },
        { .name = "-o", .flag = 'o' },
        { .name = "-c", .flag = 'r' },
        { .name = "-r", .flag = 'r' },
        { .name = "-C", .has_value = true, .flag = 'N' },
        { .name = "-N", .has_value = true, .flag = 'N' },
    };
    static const struct wrapper_table table = {
        "[-a | -l] [NODE...] | -o [-N REASON] NODE... | -r NODE...",
        "Shows nodes; -l those that are down or offline; -o drains nodes, -r and -c resume them.",
        rows, ARRAY_LEN(rows)
    };
    const char *flags[128] = { 0 };
    CLEANUP(str_done) struct str text = { 0 };
    struct wrapper wrapper;
    int used = 0;

    wrapper_init(&wrapper, argv[0], "sinfo");
    int code = wrapper_read(&wrapper, &table, argc - 1, argv + 1, &used, flags);
    if (code < 0 && (flags['o'] || flags['r'])) {
        code = change_nodes(&wrapper, flags, argc - 1 - used, argv + 1 + used);
    } else if (code < 0) {
        for (int i = 1 + used; i < argc; i++)
            wrapper_add(&wrapper, "--nodes=%s", argv[i]);
        wrapper_add(&wrapper, "--Node");
        wrapper_add(&wrapper, "--noheader");
        wrapper_add(&wrapper, "--format=%s", NODE_FORMAT);
        code = wrapper_capture(&wrapper, sinfo_main, &text);
        if (code == 0 && text.len)
            print_nodes(text.data, flags['l'] != NULL);
    }
    wrapper_done(&wrapper);
    return code;
}
