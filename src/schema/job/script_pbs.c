// SPDX-License-Identifier: Apache-2.0
/*
 * script_pbs.c - #PBS lines of scripts that came from Torque or PBS Professional
 *
 * Every directive is one row: the option that says the same, and how its value is written there.
 * What has no counterpart and no effect on where and how a job runs is left out on purpose
 * (`.option` NULL); a directive or resource without a row is an error that names it.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "schema/pbs.h"
#include "schema/script.h"

struct pbs {
    const struct option_set *set;
    const struct option_ctx *ctx;
    struct job_request *request;
    struct arena *arena;
    struct pbs_words *out; /* of qsub: instead of the request; NULL: into the request */
};

typedef int pbs_give(const struct pbs *pbs, const char *option, const char *value, struct err *err);

static int give(const struct pbs *pbs, const char *option, const char *value, struct err *err)
{
    if (pbs->out) {
        vec_push(&pbs->out->words, arena_printf(pbs->arena, "--%s=%s", option, value));
        return 0;
    }
    return option_read_one(pbs->set, pbs->ctx, pbs->request, LEVEL_SCRIPT, option,
                           arena_strdup(pbs->arena, value), err);
}

static int give_flag(const struct pbs *pbs, const char *option, const char *value, struct err *err)
{
    if (pbs->out) {
        vec_push(&pbs->out->words, arena_printf(pbs->arena, "--%s", option));
        return 0;
    }
    return option_read_one(pbs->set, pbs->ctx, pbs->request, LEVEL_SCRIPT, option, NULL, err);
}

/* "host:/path" and "queue@server": only one side matters here. */
static int give_path(const struct pbs *pbs, const char *option, const char *value, struct err *err)
{
    const char *colon = strchr(value, ':');

    return give(pbs, option, colon ? colon + 1 : value, err);
}

static int give_before_at(const struct pbs *pbs, const char *option, const char *value,
                          struct err *err)
{
    return give(pbs, option, arena_strndup(pbs->arena, value, strcspn(value, "@")), err);
}

/* [[H:]M:]S, where Slurm reads two fields as minutes and seconds and one as minutes. */
static int give_time(const struct pbs *pbs, const char *option, const char *value, struct err *err)
{
    uint64_t total = 0;
    const char *cursor = value;
    struct span word;
    unsigned fields = 0;

    while (str_next(&cursor, ":", &word)) {
        uint64_t part = 0;

        for (size_t i = 0; i < word.len; i++) {
            if (!isdigit((unsigned char)word.ptr[i]) || part > LIMIT_SECONDS)
                return err_set(err, ERR_INVALID, "Invalid #PBS time: %s", value);
            part = part * 10 + (uint64_t)(word.ptr[i] - '0');
        }
        total = total * 60 + part;
        fields++;
    }
    if (!fields || fields > 3 || total > LIMIT_SECONDS)
        return err_set(err, ERR_INVALID, "Invalid #PBS time: %s", value);
    return give(pbs, option, arena_printf(pbs->arena, "0:%llu", (unsigned long long)total), err);
}

/* 500mb, 2gb, 100kw: bytes without a letter, words of 8 bytes with w. */
static int give_size(const struct pbs *pbs, const char *option, const char *value, struct err *err)
{
    static const char letters[] = "kmgt";
    char *end;
    unsigned long long number = strtoull(value, &end, 10);
    unsigned shift = 0;

    if (*end && strchr("kmgtKMGT", *end))
        shift = 10 * (1 + (unsigned)(strchr(letters, tolower((unsigned char)*end++)) - letters));
    if (end == value || (*end && !strchr("bBwW", *end)) || (*end && end[1]) ||
        number > (UINT64_MAX >> 4 >> shift))
        return err_set(err, ERR_INVALID, "Invalid #PBS size: %s", value);
    number <<= shift;
    if (tolower((unsigned char)*end) == 'w')
        number *= 8;
    return give(pbs, option, arena_printf(pbs->arena, "%lluK", (number + 1023) / 1024), err);
}

/* 2:ppn=4:gpus=1:feature, or a+b+c as names of hosts */
static int give_nodes(const struct pbs *pbs, const char *option, const char *value, struct err *err)
{
    struct arena *arena = pbs->arena;
    const char *cursor = value;
    struct span word;
    bool first = true;

    if (!isdigit((unsigned char)value[0]) || strchr(value, '+')) {
        char *hosts = arena_strdup(arena, value);
        unsigned count = 1;

        for (char *at = hosts; *at; at++) {
            if (*at == '+') {
                *at = ',';
                count++;
            }
        }
        if (give(pbs, "nodelist", hosts, err) < 0)
            return -(int)ERR_INVALID;
        return give(pbs, "nodes", arena_printf(arena, "%u", count), err);
    }
    while (str_next(&cursor, ":", &word)) {
        const char *part = arena_strndup(arena, word.ptr, word.len);
        int result;

        if (first)
            result = give(pbs, "nodes", part, err);
        else if (str_starts(part, "ppn="))
            result = give(pbs, "ntasks-per-node", part + 4, err);
        else if (str_starts(part, "gpus="))
            result = give(pbs, "gpus-per-node", part + 5, err);
        else
            result = give(pbs, "constraint", part, err);
        if (result < 0)
            return result;
        first = false;
    }
    return 0;
}

/* PBS Professional: 2:ncpus=8:mpiprocs=4:mem=4gb:ngpus=1; CPUs of a task are ncpus / mpiprocs. */
static int give_select(const struct pbs *pbs, const char *option, const char *value,
                       struct err *err)
{
    struct arena *arena = pbs->arena;
    unsigned ncpus = 0, procs = 0;
    const char *cursor = value;
    struct span word;
    bool first = true;
    int result = 0;

    if (strchr(value, '+'))
        return err_set(err, ERR_UNSUPPORTED,
                       "#PBS -l select with several kinds of chunks: write "
                       "them as components with #SBATCH hetjob");
    while (result >= 0 && str_next(&cursor, ":", &word)) {
        const char *part = arena_strndup(arena, word.ptr, word.len);

        if (first && isdigit((unsigned char)part[0]))
            result = give(pbs, "nodes", part, err);
        else if (str_starts(part, "ncpus="))
            ncpus = (unsigned)MIN(strtoul(part + 6, NULL, 10), 65535);
        else if (str_starts(part, "mpiprocs="))
            procs = (unsigned)MIN(strtoul(part + 9, NULL, 10), 65535);
        else if (str_starts(part, "mem="))
            result = give_size(pbs, "mem", part + 4, err);
        else if (str_starts(part, "ngpus="))
            result = give(pbs, "gpus-per-node", part + 6, err);
        else if (!str_starts(part, "ompthreads="))
            result = err_set(err, ERR_INVALID, "unknown #PBS -l select resource: %s", part);
        first = false;
    }
    if (result >= 0 && procs)
        result = give(pbs, "ntasks-per-node", arena_printf(arena, "%u", procs), err);
    if (result >= 0 && ncpus)
        result = give(pbs, "cpus-per-task",
                      arena_printf(arena, "%u", MAX(ncpus / MAX(procs, 1), 1)), err);
    return result;
}

static int give_place(const struct pbs *pbs, const char *option, const char *value, struct err *err)
{
    if (strstr(value, "excl"))
        return give_flag(pbs, "exclusive", NULL, err);
    return strstr(value, "scatter") ? give_flag(pbs, "spread-job", NULL, err) : 0;
}

/* a: FAIL, b: BEGIN, e: END */
static int give_mail(const struct pbs *pbs, const char *option, const char *value, struct err *err)
{
    struct str types = { 0 };
    char *text;

    for (const char *at = value; *at; at++) {
        const char *type = strchr("afp", *at) ? "FAIL"
                           : *at == 'b'       ? "BEGIN"
                           : *at == 'e'       ? "END"
                                              : "NONE";

        str_addf(&types, "%s%s", types.len ? "," : "", type);
    }
    text = arena_strdup(pbs->arena, str_text(&types));
    str_done(&types);
    return give(pbs, option, text, err);
}

static int give_requeue(const struct pbs *pbs, const char *option, const char *value,
                        struct err *err)
{
    return give_flag(pbs, tolower((unsigned char)value[0]) == 'n' ? "no-requeue" : "requeue", NULL,
                     err);
}

/* PBS: a larger number is more urgent; Slurm's nice is the other way round. */
static int give_priority(const struct pbs *pbs, const char *option, const char *value,
                         struct err *err)
{
    int64_t priority;

    if (!str_to_i64(value, -1024, 1023, &priority))
        return err_set(err, ERR_INVALID, "Invalid #PBS -p value: %s", value);
    return give(pbs, option, arena_printf(pbs->arena, "%lld", (long long)-priority), err);
}

/* PBS exports only what is listed. */
static int give_export(const struct pbs *pbs, const char *option, const char *value,
                       struct err *err)
{
    return give(pbs, option, value, err);
}

static int give_export_all(const struct pbs *pbs, const char *option, const char *value,
                           struct err *err)
{
    return give(pbs, "export", "ALL", err);
}

/* [[CC]YY]MMDDhhmm[.SS]: Slurm's form of the same moment. */
static int give_begin(const struct pbs *pbs, const char *option, const char *value, struct err *err)
{
    size_t digits = strspn(value, "0123456789");
    const char *seconds = value[digits] == '.' ? value + digits + 1 : "00";
    struct arena *arena = pbs->arena;
    const char *v = value;

    if (strlen(seconds) != 2 || (digits != 4 && digits != 8 && digits != 10 && digits != 12))
        return err_set(err, ERR_INVALID, "Invalid #PBS -a time: %s", value);
    if (digits == 4)
        return give(pbs, option, arena_printf(arena, "%.2s:%.2s:%s", v, v + 2, seconds), err);
    if (digits == 8)
        return give(pbs, option, arena_printf(arena, "%.4s %.2s:%.2s:%s", v, v + 4, v + 6, seconds),
                    err);
    return give(pbs, option,
                arena_printf(arena, "%s%.*s-%.2s-%.2sT%.2s:%.2s:%s", digits == 10 ? "20" : "",
                             (int)digits - 8, v, v + digits - 8, v + digits - 6, v + digits - 4,
                             v + digits - 2, seconds),
                err);
}

/* -W depend=afterok:12.server,umask=022,block=true */
static int give_depend(const struct pbs *pbs, const char *option, const char *value,
                       struct err *err)
{
    struct str ids = { 0 };
    char *text;

    for (const char *at = value; *at; at++) {
        if (*at == '.') /* an id with its server: 12.host */
            at += strcspn(at, ":,") - 1;
        else
            str_add_char(&ids, *at);
    }
    text = arena_strdup(pbs->arena, str_text(&ids));
    str_done(&ids);
    return give(pbs, option, text, err);
}

static int give_umask(const struct pbs *pbs, const char *option, const char *value, struct err *err)
{
    char *end;
    unsigned long mask = strtoul(value, &end, 8);

    if (end == value || *end || mask > 0777)
        return err_set(err, ERR_INVALID, "Invalid #PBS -W umask: %s", value);
    if (pbs->out) {
        pbs->out->has_umask = true;
        pbs->out->umask = (unsigned)mask;
    } else {
        pbs->request->spec->has_umask = true;
        pbs->request->spec->umask = (uint32_t)mask;
    }
    return 0;
}

static int give_block(const struct pbs *pbs, const char *option, const char *value, struct err *err)
{
    return str_ieq(value, "true") ? give_flag(pbs, option, NULL, err) : 0;
}

static int give_gpus(const struct pbs *pbs, const char *option, const char *value, struct err *err)
{
    if (str_ieq(value, "false"))
        return 0;
    return give(pbs, option,
                arena_printf(pbs->arena, "gpu:%s", str_ieq(value, "true") ? "1" : value), err);
}

struct pbs_row {
    const char *name; /* of a resource, or one letter of a directive */
    const char *option;
    pbs_give *give;
    bool alone; /* takes no value */
};

static const struct pbs_row directives[] = {
    { "A", "account", give, false },
    { "C", NULL, NULL, false },
    { "I", NULL, NULL, true },
    { "J", "array", give, false },
    { "M", "mail-user", give, false },
    { "N", "job-name", give, false },
    { "P", "account", give, false },
    { "S", NULL, NULL, false },
    { "V", "export", give_export_all, true },
    { "X", NULL, NULL, true },
    { "a", "begin", give_begin, false },
    { "c", NULL, NULL, false },
    { "d", "chdir", give, false },
    { "e", "error", give_path, false },
    { "h", "hold", give_flag, true },
    { "j", NULL, NULL, false },
    { "k", NULL, NULL, false },
    { "m", "mail-type", give_mail, false },
    { "o", "output", give_path, false },
    { "p", "nice", give_priority, false },
    { "q", "partition", give_before_at, false },
    { "r", "requeue", give_requeue, false },
    { "t", "array", give, false },
    { "u", NULL, NULL, false },
    { "v", "export", give_export, false },
    { "w", "chdir", give, false },
    { "z", "quiet", give_flag, true },
};

static const struct pbs_row resources[] = {
    { "nodes", "nodes", give_nodes, false },
    { "select", "nodes", give_select, false },
    { "walltime", "time", give_time, false },
    { "cput", "time", give_time, false },
    { "pcput", "time", give_time, false },
    { "h_rt", "time", give_time, false },
    { "mem", "mem", give_size, false },
    { "pmem", "mem-per-cpu", give_size, false },
    { "mppmem", "mem-per-cpu", give_size, false },
    { "h_vmem", "mem-per-cpu", give_size, false },
    { "vmem", NULL, NULL, false },
    { "pvmem", NULL, NULL, false },
    { "ncpus", "mincpus", give, false },
    { "procs", "ntasks", give, false },
    { "mppwidth", "ntasks", give, false },
    { "mppdepth", "cpus-per-task", give, false },
    { "mppnppn", "ntasks-per-node", give, false },
    { "mppnodes", "nodelist", give, false },
    { "nice", "nice", give, false },
    { "file", "tmp", give_size, false },
    { "host", "nodelist", give, false },
    { "proc", "constraint", give, false },
    { "naccelerators", "gres", give_gpus, false },
    { "accelerator", "gres", give_gpus, false },
    { "ngpus", "gpus-per-node", give, false },
    { "place", NULL, give_place, false },
    { "arch", NULL, NULL, false },
    { "opsys", NULL, NULL, false },
    { "other", NULL, NULL, false },
    { "software", NULL, NULL, false },
};

static const struct pbs_row attributes[] = {
    { "depend", "dependency", give_depend, false },
    { "umask", NULL, give_umask, false },
    { "block", "wait", give_block, false },
    { "group_list", NULL, NULL, false },
    { "stagein", NULL, NULL, false },
    { "stageout", NULL, NULL, false },
    { "x", NULL, NULL, false },
};

static const struct pbs_row *find(const struct pbs_row *rows, size_t count, struct span name)
{
    for (size_t i = 0; i < count; i++) {
        if (span_eq(name, rows[i].name))
            return &rows[i];
    }
    return NULL;
}

/* Where a value ends: at a comma that "name=" follows; other commas belong to it. */
static char *value_end(char *value)
{
    for (char *comma = value; (comma = strchr(comma, ',')); comma++) {
        size_t name = strspn(comma + 1, "abcdefghijklmnopqrstuvwxyz_");

        if (name && comma[1 + name] == '=')
            return comma;
    }
    return value + strlen(value);
}

/* name=value,name=value of -l and -W */
static int read_pairs(const struct pbs *pbs, const struct pbs_row *rows, size_t count, char flag,
                      char *text, struct err *err)
{
    while (*text) {
        size_t name_len = strcspn(text, "=,");
        const struct pbs_row *row = find(rows, count, (struct span){ text, name_len });
        char *value = text + name_len + (text[name_len] == '='), *next;
        int result = 0;

        if (!row)
            return err_set(err, ERR_INVALID, "unknown #PBS -%c resource: %.*s", flag,
                           (int)MIN(name_len, 100), text);
        next = value_end(value);
        text = *next ? next + 1 : next;
        *next = '\0';
        if (row->give)
            result = row->give(pbs, row->option, value, err);
        else if (pbs->out)
            vec_push(&pbs->out->unused, arena_printf(pbs->arena, "-%c %s", flag, row->name));
        if (result < 0)
            return result;
    }
    return 0;
}

/* What only a command line has: -I and -X act there, -j and -N change where output goes. */
static int read_for_qsub(const struct pbs *pbs, char letter, const char *value, struct err *err)
{
    struct pbs_words *out = pbs->out;

    switch (letter) {
    case 'I':
        return err_set(err, ERR_UNSUPPORTED,
                       "-I is not supported: an interactive job is one of salloc, with the "
                       "options of sbatch");
    case 'C':
        return err_set(err, ERR_UNSUPPORTED,
                       "-C is not supported: lines of options begin with #PBS or #SBATCH");
    case 'u':
        return err_set(err, ERR_UNSUPPORTED, "-u is not supported: a job runs as who submits it");
    case 'X':
        return give_flag(pbs, "x11", NULL, err);
    case 'j':
        out->joined = !str_eq(value, "n");
        return 0;
    default:
        vec_push(&out->unused, arena_printf(pbs->arena, "-%c", letter));
        return 0;
    }
}

/* One directive and its value; *used is how many words they are. */
static int read_directive(const struct pbs *pbs, int count, char **words, int *used,
                          struct err *err)
{
    char *word = words[0], *value;
    bool pairs = word[1] == 'l' || word[1] == 'W';
    const struct pbs_row *row =
        pairs ? NULL : find(directives, ARRAY_LEN(directives), (struct span){ word + 1, 1 });
    bool alone = row && row->alone;

    if (!row && !pairs)
        return err_set(err, ERR_UNKNOWN_OPTION, "invalid option -- '%c'", word[1]);
    *used = 1 + (!word[2] && count > 1 && !alone);
    value = word[2] ? word + 2 : *used == 2 ? words[1] : NULL;
    if (!value && !alone)
        return err_set(err, ERR_UNKNOWN_OPTION, "option requires an argument -- '%c'", word[1]);
    if (word[1] == 'l')
        return read_pairs(pbs, resources, ARRAY_LEN(resources), 'l', value, err);
    if (word[1] == 'W')
        return read_pairs(pbs, attributes, ARRAY_LEN(attributes), 'W', value, err);
    if (row->give)
        return row->give(pbs, row->option, value, err);
    return pbs->out ? read_for_qsub(pbs, word[1], value, err) : 0;
}

int script_read_pbs(const struct option_set *set, const struct option_ctx *ctx,
                    struct job_request *request, int count, char **words, struct err *err)
{
    const struct pbs pbs = { set, ctx, request, &request->arena, NULL };
    int result = 0;

    for (int i = 0, used; i < count && result >= 0; i += used) {
        if (words[i][0] != '-' || !words[i][1])
            return err_set(err, ERR_INVALID, "Invalid directive found in batch script: %s",
                           words[i]);
        result = read_directive(&pbs, count - i, words + i, &used, err);
    }
    return MIN(result, 0);
}

int pbs_read_words(struct pbs_words *out, int count, char **words, int *used, struct err *err)
{
    const struct pbs pbs = { .arena = out->arena, .out = out };
    int result = 0, i = 0;

    for (int more; i < count && result >= 0 && words[i][0] == '-' && words[i][1]; i += more) {
        if (str_eq(words[i], "--")) {
            i++;
            break;
        }
        out->named |= words[i][1] == 'N';
        out->has_output |= words[i][1] == 'o';
        result = read_directive(&pbs, count - i, words + i, &more, err);
        if (result < 0)
            return result;
    }
    *used = i;
    return 0;
}

void pbs_words_done(struct pbs_words *words)
{
    vec_done(&words->words);
    vec_done(&words->unused);
}
