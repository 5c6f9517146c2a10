// SPDX-License-Identifier: Apache-2.0
/*
 * options_job_read.c - readers of job options whose values have a grammar of their own
 *
 * Each takes what Slurm takes and complains in Slurm's words.
 */
#include "schema/job/options_job_priv.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/limits.h"
#include "base/size.h"
#include "base/timefmt.h"
#include "schema/names.h"

static struct job_request *request_of(const struct option_call *call)
{
    return call->target;
}

static JobSpec *spec_of(const struct option_call *call)
{
    return request_of(call)->spec;
}

int read_moment(const struct option_call *call, const char *value, struct err *err)
{
    int64_t point;
    struct err why = { 0 };

    if (timefmt_read_point(value, call->ctx->now_us / 1000000, TIMEFMT_COMING, &point, &why) < 0) {
        const char *at = strstr(why.text, "): "); /* "... (pos=0): TEXT (why)": Slurm has no why */
        int len = at ? (int)MIN((size_t)(at + 3 - why.text) + strlen(value), strlen(why.text))
                     : (int)strlen(why.text);

        return err_set(err, ERR_INVALID, "%.*s\nInvalid --%s specification", len, why.text,
                       call->row->name);
    }
    option_set_number(call, point * 1000000);
    return 0;
}

/* 0 is no limit. */
int read_time_limit(const struct option_call *call, const char *value, struct err *err)
{
    int result = option_duration(call, value, err);

    if (result == 0 && spec_of(call)->time_limit_s == 0)
        option_set_number(call, -1);
    return result;
}

int read_memory(const struct option_call *call, const char *value, struct err *err)
{
    uint64_t bytes;

    if (size_read_memory(value, SIZE_M, &bytes, NULL) < 0)
        return option_invalid(call, err);
    option_set_number(call, (int64_t)size_megabytes(bytes));
    return 0;
}

int read_mem(const struct option_call *call, const char *value, struct err *err)
{
    struct job_request *request = request_of(call);
    JobSpec *spec = request->spec;
    enum option_level *levels[] = { &request->mem_level, &request->mem_cpu_level,
                                    &request->mem_gpu_level };
    protobuf_c_boolean *has[] = { &spec->has_mem_per_node_mb, &spec->has_mem_per_cpu_mb,
                                  &spec->has_mem_per_gpu_mb };
    int result = read_memory(call, value, err);

    if (result < 0)
        return result;
    /* One that comes later in the order script, environment, command line replaces the others. */
    for (int i = 0; i < (int)ARRAY_LEN(levels); i++) {
        if (i == call->row->value) {
            *levels[i] = call->level;
        } else if (*levels[i] < call->level) {
            *levels[i] = LEVEL_NONE;
            *has[i] = false;
        }
    }
    return 0;
}

static void job_set_sizes(JobSpec *spec, const char *text)
{
    free(spec->node_sizes);
    spec->node_sizes = text ? mem_strdup(text) : NULL;
}

/* 1,3,5-9: these numbers and no others */
static int read_sizes(JobSpec *spec, const char *value, struct err *err)
{
    uint32_t *sizes;
    size_t count;

    if (size_read_list(value, LIMIT_NODES, &sizes, &count, NULL) < 0)
        return err_set(err, ERR_INVALID, "\"%s\" is not a valid node count", value);
    spec->has_min_nodes = spec->has_max_nodes = true;
    spec->min_nodes = sizes[0];
    spec->max_nodes = sizes[count - 1];
    free(sizes);
    if (count == spec->max_nodes - spec->min_nodes + 1)
        return 0; /* a range after all */
    job_set_sizes(spec, value);
    return 0;
}

int read_nodes(const struct option_call *call, const char *value, struct err *err)
{
    JobSpec *spec = spec_of(call);
    uint64_t low, high;
    const char *dash = strchr(value, '-');

    job_set_sizes(spec, NULL);
    if (strpbrk(value, ",:"))
        return read_sizes(spec, value, err);
    if (size_read_range(value, UINT32_MAX, &low, &high, NULL) < 0) {
        char *first = dash ? mem_strndup(value, (size_t)(dash - value)) : NULL;
        uint64_t least, most;
        bool numbers = dash &&
                       size_read_count(first, UINT32_MAX, SIZE_STEP_1024, &least, NULL) == 0 &&
                       size_read_count(dash + 1, UINT32_MAX, SIZE_STEP_1024, &most, NULL) == 0;

        free(first);
        if (numbers && most < least)
            return err_set(err, ERR_INVALID,
                           "Maximum node count %llu is less than minimum node count %llu",
                           (unsigned long long)most, (unsigned long long)least);
        return err_set(err, ERR_INVALID, "\"%s\" is not a valid node count", value);
    }
    spec->has_min_nodes = spec->has_max_nodes = true;
    spec->min_nodes = (uint32_t)low;
    spec->max_nodes = (uint32_t)high;
    return 0;
}

int read_extra_node_info(const struct option_call *call, const char *value, struct err *err)
{
    JobSpec *spec = spec_of(call);
    struct {
        protobuf_c_boolean *has;
        uint32_t *at;
    } parts[] = {
        { &spec->has_sockets_per_node, &spec->sockets_per_node },
        { &spec->has_cores_per_socket, &spec->cores_per_socket },
        { &spec->has_threads_per_core, &spec->threads_per_core },
    };
    const char *cursor = value;
    struct span word;
    size_t count = 0;

    while (str_next(&cursor, ":", &word)) {
        char *text = mem_strndup(word.ptr, word.len);
        uint64_t number = 0;
        bool any = strcmp(text, "*") == 0;
        bool good = any || (str_to_u64(text, 65535, &number) && number > 0);

        free(text);
        if (!good || count >= ARRAY_LEN(parts))
            return option_invalid(call, err);
        *parts[count].has = !any;
        *parts[count].at = (uint32_t)number;
        count++;
    }
    return count ? 0 : option_invalid(call, err);
}

/* [R|B|RB:]SIGNAL[@SECONDS]; 60 seconds before the end when not said. */
int read_signal(const struct option_call *call, const char *value, struct err *err)
{
    JobSpec *spec = spec_of(call);
    const char *colon = strchr(value, ':'), *name = colon ? colon + 1 : value;
    const char *when = strchr(name, '@');
    char *word = mem_strndup(name, when ? (size_t)(when - name) : strlen(name));
    uint64_t before = 60;
    uint32_t number;
    bool batch = false, reservation = false, good = true;

    for (const char *flag = value; colon && flag < colon; flag++) {
        batch |= toupper((unsigned char)*flag) == 'B';
        reservation |= toupper((unsigned char)*flag) == 'R';
        good &= strchr("BbRr", *flag) != NULL;
    }
    good &= signal_find(word, &number);
    good &= !when || str_to_u64(when + 1, 65535, &before);
    free(word);
    if (!good)
        return option_invalid(call, err);
    spec->has_signal = spec->has_signal_before_s = true;
    spec->signal = number;
    spec->signal_before_s = (uint32_t)before;
    spec->has_signal_batch_only = spec->has_signal_at_reservation = true;
    spec->signal_batch_only = batch;
    spec->signal_at_reservation = reservation;
    return 0;
}

int read_mail_type(const struct option_call *call, const char *value, struct err *err)
{
    const uint32_t all =
        MAIL_BEGIN | MAIL_END | MAIL_FAIL | MAIL_REQUEUE | MAIL_STAGE_OUT | MAIL_INVALID_DEPEND;
    const char *cursor = value;
    struct span word;
    uint32_t mask = 0;
    bool none = false;

    while (str_next(&cursor, ",", &word)) {
        const struct name_row *row = name_find(&mail_type_names, word.ptr, word.len);

        if (row)
            mask |= row->value;
        else if (span_ieq(word, "ALL"))
            mask |= all;
        else if (span_ieq(word, "NONE"))
            none = true;
        else
            return option_invalid(call, err);
    }
    option_set_number(call, none ? 0 : mask);
    return 0;
}

int read_nice(const struct option_call *call, const char *value, struct err *err)
{
    int64_t nice = 100;

    if (value && !str_to_i64(value, INT64_MIN, INT64_MAX, &nice))
        return err_set(err, ERR_RANGE, "Invalid numeric value \"%s\" for --nice.", value);
    if (nice > INT32_MAX - 2 || nice < -(INT32_MAX - 2))
        return err_set(err, ERR_INVALID, "Invalid --nice value, out of range (+/- %d)",
                       INT32_MAX - 2);
    option_set_number(call, nice);
    return 0;
}

int read_exclusive(const struct option_call *call, const char *value, struct err *err)
{
    const struct name_row *row = value ? name_find(&exclusive_names, value, strlen(value)) : NULL;

    if (value && (!row || row->value == EXCLUSIVE_NO || row->value == EXCLUSIVE_NODE))
        return option_invalid(call, err);
    spec_of(call)->has_oversubscribe = true;
    spec_of(call)->oversubscribe = false;
    option_set_number(call, row ? row->value : EXCLUSIVE_NODE);
    return 0;
}

/* Of the words of --gres-flags those that say where CPUs are; GPUs of tasks are not shared out so. */
int read_gres_flags(const struct option_call *call, const char *value, struct err *err)
{
    JobSpec *spec = spec_of(call);
    const char *cursor = value;
    struct span word;

    while (str_next(&cursor, ",", &word)) {
        bool enforce = span_ieq(word, "enforce-binding"),
             one = span_ieq(word, "one-task-per-sharing");
        if (enforce || span_ieq(word, "disable-binding")) {
            option_set_number(call, enforce);
        } else if (one || span_ieq(word, "multiple-tasks-per-sharing")) {
            spec->has_one_task_per_sharing = true;
            spec->one_task_per_sharing = one;
        } else if (!span_ieq(word, "allow-task-sharing")) {
            /* Devices are closed to other steps, never to other tasks. */
            return option_invalid(call, err);
        }
    }
    return 0;
}

int read_oversubscribe(const struct option_call *call, const char *value, struct err *err)
{
    spec_of(call)->has_exclusive = false;
    spec_of(call)->exclusive = EXCLUSIVE_NO;
    return option_flag(call, value, err);
}

int read_no_kill(const struct option_call *call, const char *value, struct err *err)
{
    if (value && !str_ieq(value, "off") && !str_ieq(value, "no") && *value)
        return option_invalid(call, err);
    option_set_number(call, !value || !*value);
    return 0;
}

int read_yes_no(const struct option_call *call, const char *value, struct err *err)
{
    bool yes = str_ieq(value, "yes") || str_ieq(value, "y") || strcmp(value, "1") == 0;
    bool no = str_ieq(value, "no") || str_ieq(value, "n") || strcmp(value, "0") == 0;

    if (!yes && !no)
        return option_invalid(call, err);
    option_set_number(call, yes);
    return 0;
}

int read_open_mode(const struct option_call *call, const char *value, struct err *err)
{
    bool append = str_ieq(value, "append") || str_ieq(value, "a");

    if (!append && !str_ieq(value, "truncate") && !str_ieq(value, "t"))
        return option_invalid(call, err);
    option_set_number(call, append);
    return 0;
}

/* The other half of what the environment says of switches. */
static void read_switches_wait(const struct option_call *call, JobSpec *spec)
{
    const char *name = call->set->bit == CMD_SBATCH   ? "SBATCH_WAIT4SWITCH"
                       : call->set->bit == CMD_SALLOC ? "SALLOC_WAIT4SWITCH"
                                                      : "SLURM_WAIT4SWITCH";
    const char *text = option_getenv(call->ctx, name);
    int64_t wait;

    if (!text || timefmt_read_duration(text, &wait, NULL) < 0 || wait < 0)
        return;
    spec->has_switches_wait_s = true;
    spec->switches_wait_s = (uint32_t)wait;
}

int read_switches(const struct option_call *call, const char *value, struct err *err)
{
    JobSpec *spec = spec_of(call);
    const char *when = strchr(value, '@');
    char *count = mem_strndup(value, when ? (size_t)(when - value) : strlen(value));
    uint64_t switches;
    int64_t wait = 0;
    bool good = str_to_u64(count, 65535, &switches);

    if (!good)
        err_set(err, ERR_RANGE, "Invalid numeric value \"%s\" for --switches.", count);
    free(count);
    if (!good)
        return -(int)ERR_RANGE;
    if (when && (timefmt_read_duration(when + 1, &wait, NULL) < 0 || wait < 0))
        return option_invalid(call, err);
    spec->has_switches = true;
    spec->switches = (uint32_t)switches;
    spec->has_switches_wait_s = when != NULL;
    spec->switches_wait_s = (uint32_t)wait;
    if (call->level == LEVEL_ENVIRONMENT && !when)
        read_switches_wait(call, spec);
    return 0;
}

/* A hostlist, or a file when there is a slash in it; the command reads the file. */
int read_hosts(const struct option_call *call, const char *value, struct err *err)
{
    CLEANUP(hostlist_done) struct hostlist list = { 0 };

    if (!strchr(value, '/') && hostlist_parse(&list, value, NULL) < 0)
        return err_set(err, ERR_SYNTAX, "Invalid node list specified");
    option_set_text(call, value);
    return 0;
}

/* The command itself waits so many seconds. */
int read_immediate(const struct option_call *call, const char *value, struct err *err)
{
    uint64_t seconds;

    if (!str_is_empty(value) && !str_to_u64(value, INT32_MAX, &seconds))
        return err_set(err, ERR_RANGE, "Invalid numeric value \"%s\" for immediate.", value);
    option_set_number(call, 1);
    return 0;
}

int read_priority(const struct option_call *call, const char *value, struct err *err)
{
    uint64_t priority = UINT32_MAX - 2;

    if (!str_ieq(value, "TOP") && !str_to_u64(value, UINT32_MAX - 1, &priority))
        return err_set(err, ERR_INVALID, "Invalid --priority specification");
    option_set_number(call, (int64_t)priority);
    return 0;
}

int read_requeue(const struct option_call *call, const char *value, struct err *err)
{
    if (value && *value && strcmp(value, "1") != 0) {
        if (str_ieq(value, "expedite"))
            return err_set(err, ERR_UNSUPPORTED, "--requeue=expedite is not supported yet");
        if (call->level != LEVEL_ENVIRONMENT)
            return option_invalid(call, err);
    }
    option_set_number(call, 1);
    return 0;
}

int read_name(const struct option_call *call, const char *value, struct err *err)
{
    if (strlen(value) > LIMIT_NAME_BYTES)
        return err_set(err, ERR_TOO_LARGE, "--%s is longer than %d bytes", call->row->name,
                       LIMIT_NAME_BYTES);
    option_set_text(call, value);
    return 0;
}

/* Energy is read whenever tasks are: its own interval changes nothing. */
/* none, all, or a list of what is recorded. */
int read_profile(const struct option_call *call, const char *value, struct err *err)
{
    static const char *const words[] = { "none",   "all",        "energy", "task",
                                         "lustre", "filesystem", "network" };
    const char *cursor = value;
    struct span word;

    while (str_next(&cursor, ",", &word)) {
        bool known = false;
        for (size_t i = 0; i < ARRAY_LEN(words); i++)
            known = known || span_ieq(word, words[i]);
        if (!known)
            return err_set(err, ERR_INVALID, "invalid --profile=%s option", value);
    }
    option_set_text(call, value);
    return 0;
}

int read_acctg_freq(const struct option_call *call, const char *value, struct err *err)
{
    const char *cursor = value;
    struct span word;

    while (str_next(&cursor, ",", &word)) {
        const char *equals = memchr(word.ptr, '=', word.len);
        struct span key = { word.ptr, equals ? (size_t)(equals - word.ptr) : 0 };
        CLEANUP(freep)
        char *number = equals ? mem_strndup(equals + 1, word.len - key.len - 1)
                              : mem_strndup(word.ptr, word.len);
        uint64_t seconds;
        if (span_ieq(key, "network") || span_ieq(key, "filesystem"))
            return err_set(err, ERR_UNSUPPORTED, "--acctg-freq: %.*s is not sampled", (int)key.len,
                           key.ptr);
        if ((equals && !span_ieq(key, "task") && !span_ieq(key, "energy")) ||
            !str_to_u64(number, UINT16_MAX, &seconds))
            return err_set(err, ERR_INVALID, "Invalid --acctg-freq specification: %s", value);
    }
    option_set_text(call, value);
    return 0;
}

int read_path(const struct option_call *call, const char *value, struct err *err)
{
    if (strlen(value) > LIMIT_PATH_BYTES)
        return err_set(err, ERR_PATH_TOO_LONG, "--%s is longer than %d bytes", call->row->name,
                       LIMIT_PATH_BYTES);
    option_set_text(call, value);
    return 0;
}

/* Slurm knows "none" as /dev/null for the three standard files. */
int read_std_file(const struct option_call *call, const char *value, struct err *err)
{
    return read_path(call, str_ieq(value, "none") ? "/dev/null" : value, err);
}

int read_propagate(const struct option_call *call, const char *value, struct err *err)
{
    static const char *const limits[] = { "ALL",   "NONE",    "AS",     "CORE",  "CPU", "DATA",
                                          "FSIZE", "MEMLOCK", "NOFILE", "NPROC", "RSS", "STACK" };
    const char *cursor = value ? value : "ALL";
    struct span word;

    while (str_next(&cursor, ",", &word)) {
        bool known = false;

        if (word.len > 7 && strncasecmp(word.ptr, "RLIMIT_", 7) == 0) {
            word.ptr += 7;
            word.len -= 7;
        }
        for (size_t i = 0; i < ARRAY_LEN(limits); i++)
            known |= span_ieq(word, limits[i]);
        if (!known)
            return err_set(err, ERR_INVALID, "--propagate=%s is not valid.", value);
    }
    option_set_text(call, value ? value : "ALL");
    return 0;
}

/* 22.05 let it take a time-out and a letter; both are history. */
int read_user_env(const struct option_call *call, const char *value, struct err *err)
{
    for (const char *at = value; at && *at; at++) {
        if (!isdigit((unsigned char)*at) && !strchr("SLsl", *at))
            return option_invalid(call, err);
    }
    return option_flag(call, NULL, err);
}

/* ---- srun and salloc ---- */

int read_kill_command(const struct option_call *call, const char *value, struct err *err)
{
    uint32_t number = 15;

    if (!str_is_empty(value) && !signal_find(value, &number))
        return option_invalid(call, err);
    option_set_number(call, number);
    return 0;
}

int read_kill_on_bad_exit(const struct option_call *call, const char *value, struct err *err)
{
    if (!str_is_empty(value) && strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
        return option_invalid(call, err);
    option_set_number(call, !value || strcmp(value, "0") != 0);
    return 0;
}

int read_x11(const struct option_call *call, const char *value, struct err *err)
{
    static const char *const modes[] = { "all", "first", "last", "batch" };
    bool batch = call->set->bit == CMD_SBATCH;

    if (str_is_empty(value)) {
        option_set_text(call, batch ? "batch" : "all");
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        if (str_ieq(value, modes[i])) {
            option_set_text(call, modes[i]);
            return 0;
        }
    }
    return option_invalid(call, err);
}

int read_resv_ports(const struct option_call *call, const char *value, struct err *err)
{
    uint64_t count;

    if (!str_is_empty(value) && !str_to_u64(value, UINT16_MAX, &count))
        return option_invalid(call, err);
    /* None at all is as if nothing was said. */
    option_set_text(call, str_is_empty(value) ? "" : count ? value : NULL);
    return 0;
}

/* Names or numbers; srun knows what they are. */
int read_signals(const struct option_call *call, const char *value, struct err *err)
{
    if (str_is_empty(value))
        return option_invalid(call, err);
    option_set_text(call, value);
    return 0;
}

int read_treewidth(const struct option_call *call, const char *value, struct err *err)
{
    uint64_t width;

    if (!str_ieq(value, "off") && (!str_to_u64(value, 65533, &width) || width == 0))
        return option_invalid(call, err);
    return 0;
}

int read_debug(const struct option_call *call, const char *value, struct err *err)
{
    static const char *const levels[] = { "quiet", "fatal",  "error",  "info",   "verbose",
                                          "debug", "debug2", "debug3", "debug4", "debug5" };
    uint64_t level;

    for (level = 0; level < ARRAY_LEN(levels) && !str_ieq(value, levels[level]);)
        level++;
    if (level == ARRAY_LEN(levels) && !str_to_u64(value, ARRAY_LEN(levels) - 1, &level))
        return option_invalid(call, err);
    option_set_number(call, (int64_t)level);
    return 0;
}
