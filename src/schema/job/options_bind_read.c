/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options_bind_read.c - readers of the options that say where on a node tasks run, and their "help"
 */
#include <stdlib.h>
#include <string.h>

#include "schema/bind.h"
#include "schema/freq.h"
#include "schema/job/options_job_priv.h"

/* "help" as a value: the command shows what values there are, and ends. */
static bool asks_for_help(const struct option_call *call, const char *value)
{
    struct job_request *request = call->target;

    if (!str_ieq(value, "help"))
        return false;
    request->topic = call->row->name;
    return true;
}

int read_hint(const struct option_call *call, const char *value, struct err *err)
{
    static const char *const hints[] = { "compute_bound", "memory_bound", "multithread",
                                         "nomultithread" };
    JobSpec *spec = ((struct job_request *)call->target)->spec;

    if (asks_for_help(call, value))
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(hints); i++) {
        if (strcmp(value, hints[i]) != 0)
            continue;
        if (i >= 2) { /* the last two say how many threads of a core a task may use */
            spec->has_threads_per_core = i == 3;
            spec->threads_per_core = i == 3;
        }
        option_set_text(call, value);
        return 0;
    }
    return err_set(err, ERR_RANGE, "unrecognized --hint argument \"%s\", see --hint=help", value);
}

/* node[:socket[:core]][,Pack|NoPack] */
/* "plane" without its size: the environment has it. */
static const char *with_plane_size(const struct option_call *call, const char *value,
                                   struct err *err)
{
    const char *size = option_getenv(call->ctx, "SLURM_DIST_PLANESIZE");
    struct job_request *request = call->target;
    uint64_t count;

    if (!str_istarts(value, "plane") || value[5] == '=')
        return value;
    if (!size || !str_to_u64(size, INT32_MAX, &count) || count == 0) {
        err_set(err, ERR_INVALID,
                "%s: error: Invalid plane size or size not specified\n"
                "Invalid --distribution specification",
                call->set->command);
        return NULL;
    }
    return arena_printf(&request->arena, "plane=%s%s", size, value + 5);
}

int read_distribution(const struct option_call *call, const char *value, struct err *err)
{
    value = with_plane_size(call, value, err);
    if (!value)
        return -(int)ERR_INVALID;

    if (str_ieq(value, "pack") || str_ieq(value, "nopack")) { /* of the usual order */
        option_set_text(call, str_ieq(value, "pack") ? "block,Pack" : "block,NoPack");
        return 0;
    }
    static const char *const words[] = { "block", "cyclic", "fcyclic", "*", "arbitrary" };
    const char *comma = strchr(value, ','), *cursor = value;
    size_t len = comma ? (size_t)(comma - value) : strlen(value), level = 0;
    char *layout = mem_strndup(value, len);
    struct span word;
    bool good = len > 0 && (!comma || str_ieq(comma + 1, "pack") || str_ieq(comma + 1, "nopack"));

    cursor = layout;
    while (good && str_next(&cursor, ":", &word)) {
        bool known = level == 0 && word.len > 6 && strncasecmp(word.ptr, "plane=", 6) == 0 &&
                     atoi(word.ptr + 6) > 0;

        for (size_t i = 0; i < ARRAY_LEN(words); i++)
            known |= span_ieq(word, words[i]);
        good = known && ++level <= 3;
    }
    free(layout);
    if (!good)
        return option_invalid(call, err);
    if (value[0] == '*') { /* of nodes it means block */
        char *text = mem_printf("block%s", value + 1);
        option_set_text(call, text);
        free(text);
        return 0;
    }
    option_set_text(call, value);
    return 0;
}

int read_cpu_bind(const struct option_call *call, const char *value, struct err *err)
{
    struct bind_cpu bind;

    if (asks_for_help(call, value))
        return 0;
    if (bind_read_cpu(value, &bind, err) < 0)
        return -(int)err->code;
    option_set_text(call, value);
    return 0;
}

int read_mem_bind(const struct option_call *call, const char *value, struct err *err)
{
    struct bind_mem bind;

    if (asks_for_help(call, value))
        return 0;
    if (bind_read_mem(value, &bind, err) < 0)
        return -(int)err->code;
    option_set_text(call, value);
    return 0;
}

int read_cpu_freq(const struct option_call *call, const char *value, struct err *err)
{
    struct err why = { 0 };
    struct freq freq;

    if (str_is_empty(value))
        err_set(&why, ERR_INVALID, "unrecognized --cpu-freq argument \"\"");
    if (why.code || freq_read(value, &freq, &why) < 0)
        return err_set(err, ERR_INVALID, "%s: error: %s\nInvalid --cpu-freq argument",
                       call->set->command, why.text);
    option_set_text(call, value);
    return 0;
}

int read_gpu_freq(const struct option_call *call, const char *value, struct err *err)
{
    struct freq_gpu freq;

    if (freq_read_gpu(value, &freq, err) < 0)
        return -(int)err->code;
    option_set_text(call, value);
    return 0;
}

int read_gpu_bind(const struct option_call *call, const char *value, struct err *err)
{
    struct bind_gpu bind;

    if (bind_read_gpu(value, &bind, err) < 0)
        return -(int)err->code;
    option_set_text(call, value);
    return 0;
}

int read_tres_bind(const struct option_call *call, const char *value, struct err *err)
{
    struct bind_gpu bind;

    if (bind_read_tres(value, &bind, err) < 0)
        return -(int)err->code;
    option_set_text(call, value);
    return 0;
}

/* Letters of what the tasks are bound to: GPUs; v says it. */
int read_accel_bind(const struct option_call *call, const char *value, struct err *err)
{
    if (str_is_empty(value) || value[strspn(value, "gnv")])
        return option_invalid(call, err);
    if (strchr(value, 'n'))
        return err_set(err, ERR_UNSUPPORTED,
                       "--accel-bind=n is not supported yet: tasks are not bound to network cards");
    if (strchr(value, 'g'))
        option_set_text(call, strchr(value, 'v') ? "verbose,closest" : "closest");
    return 0;
}

/* ---- help as a value ---- */

static const struct topic {
    const char *option, *text;
} topics[] = {
    { "cpu-bind", "--cpu-bind=WORD[,WORD...]: which CPUs tasks are bound to\n"
                  "    none              not bound\n"
                  "    threads, cores, sockets, ldoms\n"
                  "                      each task has whole ones (ldom: NUMA node)\n"
                  "    rank              CPU by the task's number on its node\n"
                  "    map_cpu:LIST      CPU of each task on a node: 0,2,4*2\n"
                  "    mask_cpu:LIST     CPUs of each task as hexadecimal masks: 0x3,0xc\n"
                  "    rank_ldom         NUMA node by the task's number on its node\n"
                  "    map_ldom:LIST     NUMA node of each task\n"
                  "    mask_ldom:LIST    NUMA nodes of each task as masks\n"
                  "    verbose, quiet    say how each task was bound, or nothing (default)\n"
                  "    help              this text\n" },
    { "mem-bind", "--mem-bind=WORD[,WORD...]: the memory of which NUMA nodes tasks use\n"
                  "    none              any (default)\n"
                  "    local             of the CPUs that the task is bound to\n"
                  "    rank              by the task's number on its node\n"
                  "    map_mem:LIST      NUMA node of each task on a node: 0,1*2\n"
                  "    mask_mem:LIST     NUMA nodes of each task as hexadecimal masks: 0x1,0x3\n"
                  "    prefer            other memory too, when there is none left\n"
                  "    sort, nosort      sort free pages before the tasks start, or not (default)\n"
                  "    verbose, quiet    say how each task was bound, or nothing (default)\n"
                  "    help              this text\n" },
    { "hint", "--hint=WORD: what the program is limited by\n"
              "    compute_bound     CPUs: every core, one thread each\n"
              "    memory_bound      memory: one core of each socket\n"
              "    multithread       all threads of a core are used\n"
              "    nomultithread     one thread of a core is used\n"
              "    help              this text\n" },
};

bool job_request_add_topic(const struct job_request *request, struct str *out)
{
    for (size_t i = 0; request->topic && i < ARRAY_LEN(topics); i++) {
        const char *name = strcmp(request->topic, "cpu_bind") == 0 ? "cpu-bind" : request->topic;
        if (strcmp(name, topics[i].option) != 0)
            continue;
        str_add(out, topics[i].text);
        return true;
    }
    return false;
}
