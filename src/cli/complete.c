// SPDX-License-Identifier: Apache-2.0
/*
 * complete.c - shell completion: `spur completion SHELL` and `spur complete WORD...`
 *
 * The script for a shell is a few lines that hand the words typed so far to `spur complete`, whose
 * last argument is the word under the cursor. It prints one candidate a line: commands, options from
 * the option tables, and what the cluster knows (partitions, nodes, jobs, accounts). Nothing is
 * printed where only a file name makes sense; the scripts then complete file names.
 *
 * (1) What the cluster knows comes from our own commands, run with a short time limit. A controller
 *     that does not answer means no candidates, never an error on the user's prompt.
 * (2) bash splits `--partition=gpu` into three words, zsh and fish do not. A joined word gets its
 *     prefix back in each candidate.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/controller.h"
#include "cli/plugins.h"
#include "cli/sim_args.h"
#include "schema/request.h"
#include "sys/spawn.h"

enum { ASK_TIMEOUT_MS = 1500, ASK_BYTES = 256 * 1024 };

/* What may stand in a place, and the command of ours that lists it. */
enum kind { KIND_NONE, KIND_PARTITION, KIND_NODE, KIND_JOB, KIND_ACCOUNT, KIND_STATE, KIND_COUNT };

static const struct source {
    const char *argv[6];
} sources[KIND_COUNT] = {
    [KIND_PARTITION] = { { "sinfo", "-h", "-o", "%R" } },
    [KIND_NODE] = { { "sinfo", "-h", "-N", "-o", "%N" } },
    [KIND_JOB] = { { "squeue", "-h", "--me", "-o", "%i" } },
    [KIND_ACCOUNT] = { { "squeue", "-h", "-t", "all", "-o", "%a" } },
};

static const char job_states[] = "PENDING\nRUNNING\nSUSPENDED\nCOMPLETING\nCOMPLETED\nCANCELLED\n"
                                 "FAILED\nTIMEOUT\nNODE_FAIL\nPREEMPTED\nOUT_OF_MEMORY\nall\n";

/* By the option's long name, whatever the command. */
static const struct {
    const char *option;
    enum kind kind;
} option_kinds[] = {
    { "partition", KIND_PARTITION },
    { "nodelist", KIND_NODE },
    { "exclude", KIND_NODE },
    { "nodes", KIND_NODE },
    { "node", KIND_NODE },
    { "jobid", KIND_JOB },
    { "jobs", KIND_JOB },
    { "job", KIND_JOB },
    { "dependency", KIND_NONE },
    { "account", KIND_ACCOUNT },
    { "accounts", KIND_ACCOUNT },
    { "states", KIND_STATE },
    { "state", KIND_STATE },
};

/* Operands of commands, by the name that is not Slurm's where there are two. */
static const struct {
    const char *name, *slurm;
    enum kind kind;
} operand_kinds[] = {
    { "cancel", "scancel", KIND_JOB }, { "explain", NULL, KIND_JOB },
    { "wait", NULL, KIND_JOB },        { "logs", NULL, KIND_JOB },
    { "exec", NULL, KIND_JOB },        { "attach", "sattach", KIND_JOB },
    { "seff", "seff", KIND_JOB },
};

/* Commands whose first operand is a verb; `show` and friends have entities behind that. */
static const struct {
    const char *command, *words;
} verb_lists[] = {
    { "controller", "list\nadd\nremove\ntransfer\ninit\n" },
    { "node", "drain\nresume\nshow\n" },
    { "config", "check\nshow\nimport\n" },
    { "image", "import\nlist\nremove\n" },
    { "completion", "bash\nzsh\nfish\n" },
    { "show", "job\nnode\npartition\nreservation\nstep\nconfig\n" },
};

static const struct {
    const char *entity;
    enum kind kind;
} entity_kinds[] = {
    { "job", KIND_JOB },
    { "node", KIND_NODE },
    { "partition", KIND_PARTITION },
};

static const struct option_set *const sets[] = {
    &sbatch_options,   &srun_options,     &salloc_options,     &squeue_options, &scancel_options,
    &sinfo_options,    &scontrol_options, &sattach_options,    &sbcast_options, &sgather_options,
    &sstat_options,    &exec_options,     &sprio_options,      &sdiag_options,  &strigger_options,
    &scrontab_options, &journal_options,  &explain_options,    &logs_options,   &token_options,
    &web_options,      &sim_options,      &controller_options, &wait_options,
};

struct typed {
    char **words;
    int count;           /* words[count - 1] is under the cursor */
    const char *command; /* "sbatch" or "submit" */
    int first;           /* where the command's arguments begin */
    const char *word;    /* what has been typed of the candidate */
    const char *prefix;  /* what stands before it in the same shell word */
    size_t prefix_len;
};

static const struct option_set *find_set(const char *command)
{
    const char *slurm = command_slurm_name(command);

    for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
        const char *name = sets[i]->command;

        if (str_starts(name, "spur "))
            name += 5;
        if (strcmp(name, command) == 0 || (slurm && strcmp(name, slurm) == 0))
            return sets[i];
    }
    return NULL;
}

static void offer(const struct typed *typed, struct span candidate)
{
    if (candidate.len == 0 || strncmp(candidate.ptr, typed->word, strlen(typed->word)) != 0)
        return;
    if (candidate.len < strlen(typed->word))
        return;
    printf("%.*s%.*s\n", (int)typed->prefix_len, typed->prefix, (int)candidate.len, candidate.ptr);
}

static void offer_lines(const struct typed *typed, const char *lines)
{
    struct span line;

    while (str_next(&lines, "\n", &line))
        offer(typed, line);
}

/* Runs one of our own commands and offers each line it prints. */
static void offer_from(const struct typed *typed, enum kind kind)
{
    struct spawn spec = { .path = "/proc/self/exe",
                          .argv = (char *const *)sources[kind].argv,
                          .env = environ };
    struct spawn_result result;
    struct str out = { 0 };
    struct err err = { 0 };

    if (spawn_run(&spec, (struct span){ 0 }, ASK_TIMEOUT_MS, &out, ASK_BYTES, &result, &err) == 0 &&
        !result.timed_out && result.status == 0)
        offer_lines(typed, str_text(&out));
    str_done(&out);
}

/* A list (`-p gpu,c`) is completed behind its last comma. */
static void offer_kind(struct typed *typed, enum kind kind)
{
    const char *comma = strrchr(typed->word, ',');

    if (comma && typed->prefix == typed->word)
        typed->prefix_len = (size_t)(comma + 1 - typed->prefix);
    else if (comma && !typed->prefix_len)
        typed->prefix = typed->word, typed->prefix_len = (size_t)(comma + 1 - typed->word);
    else if (comma)
        typed->prefix_len = (size_t)(comma + 1 - typed->prefix);
    if (comma)
        typed->word = comma + 1;
    if (kind == KIND_STATE)
        offer_lines(typed, job_states);
    else if (kind != KIND_NONE)
        offer_from(typed, kind);
}

static enum kind kind_of_option(const struct option *row)
{
    for (size_t i = 0; i < ARRAY_LEN(option_kinds); i++) {
        if (strcmp(option_kinds[i].option, row->name) == 0)
            return option_kinds[i].kind;
    }
    return KIND_NONE;
}

/* The row of `--name` (len bytes) or `-k`; NULL when there is none. */
static const struct option *find_row(const struct option_set *set, const char *word, size_t len)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct option *row = &set->rows[i];

        if (!option_applies(set, row))
            continue;
        if (len > 2 && word[1] == '-' && strlen(row->name) == len - 2 &&
            strncmp(row->name, word + 2, len - 2) == 0)
            return row;
        if (len == 2 && word[0] == '-' && row->key == word[1])
            return row;
    }
    return NULL;
}

static void offer_options(const struct typed *typed, const struct option_set *set)
{
    struct str text = { 0 };

    for (size_t i = 0; i < set->count; i++) {
        const struct option *row = &set->rows[i];

        if (!row->help || row->later || !option_applies(set, row))
            continue;
        str_clear(&text);
        str_addf(&text, "--%s%s", row->name, option_arity(row) == 1 ? "=" : "");
        offer(typed, (struct span){ text.data, text.len });
    }
    str_done(&text);
}

/* Whether the cursor is on an option's value; if so, offers values. */
static bool complete_value(struct typed *typed, const struct option_set *set)
{
    const char *last = typed->words[typed->count - 1];
    const char *before = typed->count - 1 > typed->first ? typed->words[typed->count - 2] : "";
    const char *equals = str_starts(last, "--") ? strchr(last, '=') : NULL;
    const struct option *row = NULL;

    if (equals) { /* zsh, fish: one word */
        row = find_row(set, last, (size_t)(equals - last));
        typed->prefix = last;
        typed->prefix_len = (size_t)(equals + 1 - last);
        typed->word = equals + 1;
    } else if (strcmp(last, "=") == 0) { /* bash, nothing behind it yet */
        row = find_row(set, before, strlen(before));
        typed->word = "";
    } else if (strcmp(before, "=") == 0 && typed->count - 2 > typed->first) {
        before = typed->words[typed->count - 3];
        row = find_row(set, before, strlen(before));
    } else if (before[0] == '-') {
        row = find_row(set, before, strlen(before));
        if (row && option_arity(row) != 1)
            row = NULL;
    }
    if (!row)
        return equals != NULL;
    offer_kind(typed, kind_of_option(row));
    return true;
}

/* Operands before the cursor, options left out. */
static int operands_before(const struct typed *typed, const char **first)
{
    int count = 0;

    for (int i = typed->first; i < typed->count - 1; i++) {
        if (typed->words[i][0] == '-')
            continue;
        if (count++ == 0)
            *first = typed->words[i];
    }
    return count;
}

static void complete_entity(struct typed *typed, const char *entity)
{
    for (size_t i = 0; i < ARRAY_LEN(entity_kinds); i++) {
        if (strcmp(entity_kinds[i].entity, entity) == 0)
            offer_kind(typed, entity_kinds[i].kind);
    }
}

static void complete_scontrol(struct typed *typed, int before, const char *verb)
{
    struct str verbs = { 0 };

    if (before == 0) {
        scontrol_add_verbs(&verbs);
        offer_lines(typed, str_text(&verbs));
    } else if (before == 1 && strcmp(verb, "show") == 0) {
        offer_lines(typed,
                    "job\nnode\npartition\nreservation\nstep\nconfig\nhostnames\nhostlist\n");
    } else if (before == 1) {
        offer_kind(typed, KIND_JOB); /* hold, release, requeue, suspend ... */
    } else if (strcmp(verb, "show") == 0) {
        complete_entity(typed, typed->words[typed->count - 2]);
    }
    str_done(&verbs);
}

static void complete_operand(struct typed *typed)
{
    const char *verb = "";
    int before = operands_before(typed, &verb);

    if (strcmp(typed->command, "scontrol") == 0) {
        complete_scontrol(typed, before, verb);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(verb_lists); i++) {
        if (strcmp(verb_lists[i].command, typed->command) != 0)
            continue;
        if (before == 0)
            offer_lines(typed, verb_lists[i].words);
        else if (strcmp(typed->command, "node") == 0)
            offer_kind(typed, KIND_NODE);
        else if (strcmp(typed->command, "show") == 0)
            complete_entity(typed, verb);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(operand_kinds); i++) {
        if (strcmp(operand_kinds[i].name, typed->command) == 0 ||
            str_eq(operand_kinds[i].slurm, typed->command))
            offer_kind(typed, operand_kinds[i].kind);
    }
}

static void offer_commands(const struct typed *typed)
{
    struct str names = { 0 };

    commands_add_names(&names);
    offer_lines(typed, str_text(&names));
    str_done(&names);
}

static void complete_options(struct typed *typed)
{
    const struct option_set *set = find_set(typed->command);
    bool of_jobs = set == &sbatch_options || set == &salloc_options || set == &srun_options;
    struct cli cli;

    cli_init(&cli, typed->command);
    if (of_jobs && plugins_open(&cli, set) == 0)
        set = plugins_set(set);
    if (set && complete_value(typed, set))
        ;
    else if (set && typed->word[0] == '-')
        offer_options(typed, set);
    else
        complete_operand(typed);
    plugins_close(&cli);
    cli_done(&cli);
}

int complete_main(int argc, char **argv)
{
    struct typed typed = { .words = argv + 1, .count = argc - 1, .first = 1 };
    const char *slash;

    if (typed.count < 2)
        return 0;
    typed.word = typed.prefix = typed.words[typed.count - 1];
    slash = strrchr(typed.words[0], '/');
    typed.command = slash ? slash + 1 : typed.words[0];
    if (strcmp(typed.command, "spur") == 0) {
        if (typed.count == 2) {
            offer_commands(&typed);
            return 0;
        }
        typed.command = typed.words[1];
        typed.first = 2;
    }
    if (strcmp(typed.command, "help") == 0) {
        offer_commands(&typed);
        return 0;
    }
    complete_options(&typed);
    return 0;
}

static const char bash_script[] =
    "# bash completion for Spur\n"
    "_spur_complete() {\n"
    "    local IFS=$'\\n'\n"
    "    COMPREPLY=($(spur complete \"${COMP_WORDS[@]:0:COMP_CWORD+1}\" 2>/dev/null))\n"
    "    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null\n"
    "    return 0\n"
    "}\n"
    "complete -o default -F _spur_complete spur";

static const char zsh_script[] =
    "# zsh completion for Spur: a file _spur on the fpath, or eval of this text\n"
    "_spur_complete() {\n"
    "    local -a found\n"
    "    found=(${(f)\"$(spur complete \"${(@)words[1,CURRENT]}\" 2>/dev/null)\"})\n"
    "    if (( ${#found} )); then\n"
    "        if [[ ${#found} -eq 1 && ${found[1]} == *= ]]; then\n"
    "            compadd -S '' -- ${found}\n"
    "        else\n"
    "            compadd -- ${found}\n"
    "        fi\n"
    "    else\n"
    "        _files\n"
    "    fi\n"
    "}\n"
    "if [[ ${funcstack[1]} == _spur ]]; then _spur_complete \"$@\"; else compdef _spur_complete "
    "spur";

static const char fish_head[] =
    "# fish completion for Spur\n"
    "function __spur_complete\n"
    "    spur complete (commandline -opc) (commandline -ct) 2>/dev/null\n"
    "end\n";

static void add_completion(const char *shell, struct str *out)
{
    struct str names = { 0 };
    struct span name;
    const char *cursor;

    commands_add_slurm_names(&names);
    cursor = str_text(&names);
    if (strcmp(shell, "zsh") == 0) {
        str_add(out, "#compdef spur");
        for (const char *next = cursor; str_next(&next, "\n", &name);)
            str_addf(out, " %.*s", (int)name.len, name.ptr);
        str_add_char(out, '\n');
    }
    if (strcmp(shell, "fish") == 0) {
        str_add(out, fish_head);
        str_add(out, "complete -c spur -a '(__spur_complete)'\n");
    } else {
        str_add(out, strcmp(shell, "bash") == 0 ? bash_script : zsh_script);
    }
    while (str_next(&cursor, "\n", &name)) {
        if (strcmp(shell, "fish") == 0)
            str_addf(out, "complete -c %.*s -a '(__spur_complete)'\n", (int)name.len, name.ptr);
        else
            str_addf(out, " %.*s", (int)name.len, name.ptr);
    }
    if (strcmp(shell, "zsh") == 0)
        str_add(out, "; fi");
    if (strcmp(shell, "fish") != 0)
        str_add_char(out, '\n');
    str_done(&names);
}

int completion_main(int argc, char **argv)
{
    struct str out = { 0 };
    bool help = argc == 2 && strcmp(argv[1], "--help") == 0;

    if (argc != 2 || (strcmp(argv[1], "bash") != 0 && strcmp(argv[1], "zsh") != 0 &&
                      strcmp(argv[1], "fish") != 0)) {
        fputs("Usage: spur completion bash|zsh|fish\n\n"
              "Prints a script for that shell. For this session: . <(spur completion bash)\n",
              help ? stdout : stderr);
        return help ? 0 : 1;
    }
    add_completion(argv[1], &out);
    cli_flush(&out);
    str_done(&out);
    return 0;
}
