/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admit.c - may this job be in the queue at all?
 *
 * The same answer before a submission is proposed and when it is applied. Refused is what no
 * configured node could ever run and what is not allowed; what only has to wait is accepted.
 */
#include "core/command/command.h"
#include "core/level.h"
#include "core/resv.h"
#include "schema/freq.h"

#include <stdlib.h>
#include <string.h>

enum { DEFAULT_MAX_ARRAY_SIZE = 1001 };

/* What is asked for and would not happen: refused, never ignored. */
static int check_supported(const struct state *state, const JobSpec *spec, struct err *err)
{
    const struct {
        bool asked;
        const char *option;
    } not_there[] = {
        { spec->burst_buffer, "--burst-buffer" },
        { spec->reboot && spec->no_allocate, "--reboot with --no-allocate" },
        { spec->clusters, "--clusters" },
        { spec->immediate, "--immediate" },
    };

    if (spec->reboot && str_is_empty(state->config->reboot_program))
        return err_set(err, ERR_DISABLED, "--reboot: RebootProgram is not configured");
    bool unknown = spec->base.n_unknown_fields;
    for (size_t i = 0; i < spec->n_gres; i++)
        unknown = unknown || spec->gres[i]->base.n_unknown_fields;
    if (unknown)
        return err_set(err, ERR_UNSUPPORTED,
                       "the job asks for something that this version does not know");
    for (size_t i = 0; i < ARRAY_LEN(not_there); i++) {
        if (!not_there[i].asked)
            continue;
        int code = err_set(err, ERR_UNSUPPORTED, "%s is not supported yet", not_there[i].option);
        err_option(err, not_there[i].option);
        return code;
    }
    return 0;
}

static int check_frequency(const struct state *state, const JobSpec *spec, struct err *err)
{
    struct freq freq;

    int code = freq_read(spec->cpu_freq, &freq, err);
    return code < 0 ? code : freq_allowed(&freq, state->config->cpu_freq_governors, err);
}

static int check_texts(const JobSpec *spec, struct err *err)
{
    const struct {
        const char *text, *option;
        size_t limit;
        enum err_code code;
    } rows[] = {
        { spec->name, "job-name", LIMIT_NAME_BYTES, ERR_PATH_TOO_LONG },
        { spec->account, "account", LIMIT_NAME_BYTES, ERR_ACCOUNT },
        { spec->qos, "qos", LIMIT_NAME_BYTES, ERR_QOS },
        { spec->wckey, "wckey", LIMIT_NAME_BYTES, ERR_WCKEY },
        { spec->partition, "partition", LIMIT_COMMENT_BYTES, ERR_INVALID_PARTITION },
        { spec->comment, "comment", LIMIT_COMMENT_BYTES, ERR_PATH_TOO_LONG },
        { spec->work_dir, "chdir", LIMIT_PATH_BYTES, ERR_PATH_TOO_LONG },
        { spec->std_out, "output", LIMIT_PATH_BYTES, ERR_PATH_TOO_LONG },
        { spec->std_err, "error", LIMIT_PATH_BYTES, ERR_PATH_TOO_LONG },
        { spec->std_in, "input", LIMIT_PATH_BYTES, ERR_PATH_TOO_LONG },
        { spec->features, "constraint", LIMIT_COMMENT_BYTES, ERR_FEATURE },
        { spec->prefer, "prefer", LIMIT_COMMENT_BYTES, ERR_PREFER },
        { spec->dependency, "dependency", LIMIT_HOSTLIST_TEXT, ERR_DEPENDENCY },
        { spec->nodelist, "nodelist", LIMIT_HOSTLIST_TEXT, ERR_INVALID_NODE_NAME },
        { spec->exclude, "exclude", LIMIT_HOSTLIST_TEXT, ERR_INVALID_NODE_NAME },
        { spec->array, "array", LIMIT_COMMENT_BYTES, ERR_ARRAY },
        { spec->submit_line, "submit-line", LIMIT_COMMENT_BYTES, ERR_PATH_TOO_LONG },
        { spec->command, "command", LIMIT_COMMENT_BYTES, ERR_PATH_TOO_LONG },
        { spec->extra, "extra", LIMIT_COMMENT_BYTES, ERR_PATH_TOO_LONG },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].text && strlen(rows[i].text) > rows[i].limit) {
            int code = err_set(err, rows[i].code, "%s: --%s is longer than %zu bytes",
                               err_text(rows[i].code), rows[i].option, rows[i].limit);
            err_option(err, rows[i].option);
            return code;
        }
    }
    return 0;
}

static int check_times(const JobSpec *spec, int64_t now_us, struct err *err)
{
    int64_t shortest = spec->time_min_s ? spec->time_min_s : spec->time_limit_s;

    if (spec->time_limit_s < -1 || spec->time_limit_s > LIMIT_SECONDS ||
        (spec->has_time_limit_s && spec->time_limit_s == 0))
        return err_code(err, ERR_TIME_LIMIT);
    if (spec->time_min_s < 0 || spec->time_min_s > LIMIT_SECONDS ||
        (spec->time_min_s && spec->time_limit_s > 0 && spec->time_min_s > spec->time_limit_s))
        return err_code(err, ERR_TIME_MIN);
    if (spec->begin_us < 0 || spec->begin_us > now_us + LIMIT_SECONDS * US_PER_S ||
        spec->deadline_us < 0 || spec->deadline_us > now_us + LIMIT_SECONDS * US_PER_S)
        return err_code(err, ERR_INVALID_TIME);
    if (spec->deadline_us && spec->deadline_us < now_us + MAX(shortest, 0) * US_PER_S)
        return err_set(err, ERR_INVALID_TIME,
                       "Invalid time specified: the job cannot end before "
                       "its deadline");
    return 0;
}

/* Access to one partition. */

static int64_t time_limit_of(const struct state *state, const struct shape *shape,
                             const JobSpec *spec)
{
    const struct partition *partition = state_partition(state, shape->partitions[0]);

    if (spec->has_time_limit_s)
        return spec->time_limit_s;
    if (partition && partition->spec->default_time_s > 0)
        return partition->spec->default_time_s;
    return partition && partition->spec->max_time_s > 0 ? partition->spec->max_time_s : -1;
}

/* A shape that others have already needs no second look at every node. */
static struct shape *known_shape(const struct state *state, const JobSpec *spec)
{
    struct arena arena;

    arena_init(&arena);
    struct shape *shape = shape_find(state, spec, &arena);
    arena_done(&arena);
    return shape;
}

static int admit_shape(const struct state *state, const JobOwner *owner, const JobSpec *spec,
                       struct admitted *out, struct err *err)
{
    static const JobOwner nobody = JOB_OWNER__INIT;
    const struct partition *fallback = state_default_partition(state);
    JobSpec filled = *spec;

    if (str_is_empty(filled.partition)) {
        if (!fallback)
            return err_code(err, ERR_NO_DEFAULT_PARTITION);
        filled.partition = fallback->spec->name;
    }
    int code = admit_account(state, owner, &filled, err);
    if (code < 0)
        return code;
    out->account = filled.account;
    out->qos = filled.qos;
    struct shape *shape = known_shape(state, &filled);
    if (!shape) {
        shape = out->shape = shape_parse(state, &filled, err);
        if (!shape)
            return -(int)(err ? err->code : ERR_INVALID);
    } else {
        out->known = shape;
    }
    code = admit_check_shape(state, shape, owner ? owner : &nobody, &filled, err);
    if (code == 0)
        out->time_limit_s = time_limit_of(state, shape, &filled);
    return code;
}

static int admit_array(const struct state *state, const JobSpec *spec, struct admitted *out,
                       struct err *err)
{
    const Config *config = state->config;
    uint32_t max_size = config->max_array_size ? config->max_array_size : DEFAULT_MAX_ARRAY_SIZE;
    uint32_t most = config->max_job_count ? config->max_job_count : LIMIT_JOBS_DEFAULT;
    bool refused = config->has_max_array_size && !config->max_array_size;

    if (str_is_empty(spec->array))
        return 0;
    if (refused && state_level(state) >= LEVEL_LEVELS) /* builds before took it for the default */
        return err_set(err, ERR_ARRAY, "this cluster takes no job arrays (max_array_size is 0)");
    struct err mine = { 0 };
    out->array = array_parse(spec->array, max_size, most, &mine);
    if (!out->array && err)
        *err = mine;
    return out->array ? 0 : -(int)mine.code;
}

static int admit_policy(const struct state *state, const JobOwner *owner, const JobSpec *spec,
                        const struct job *self, struct admitted *out, struct err *err)
{
    JobSpec filled = *spec;

    filled.account = (char *)(uintptr_t)out->account;
    filled.qos = (char *)(uintptr_t)out->qos;
    return admit_limits(state, owner, &filled, out->known ? out->known : out->shape,
                        &out->time_limit_s, out->array ? out->array->count : 1, self, err);
}

int admit(const struct state *state, const JobOwner *owner, const JobSpec *spec,
          const struct job *self, int64_t now_us, struct admitted *out, struct err *err)
{
    *out = (struct admitted){ 0 };
    if (state->config->disable_root_jobs && owner && owner->uid == 0)
        return err_set(err, ERR_PERMISSION, "Jobs of root are not allowed here");
    int code = check_supported(state, spec, err);
    if (code == 0)
        code = check_frequency(state, spec, err);
    if (code == 0)
        code = no_allocate_admit(state, spec, err);
    if (code == 0)
        code = check_texts(spec, err);
    if (code == 0)
        code = check_times(spec, now_us, err);
    if (code == 0 && spec->batch && str_is_empty(spec->work_dir))
        code = err_code(err, ERR_WORK_DIR);
    if (code == 0)
        code = admit_shape(state, owner, spec, out, err);
    if (code == 0)
        code = admit_array(state, spec, out, err);
    if (code == 0)
        code = admit_policy(state, owner, spec, self, out, err);
    if (code == 0 && !str_is_empty(spec->dependency))
        code = deps_parse(state, self, spec->dependency, &out->deps, err);
    if (code < 0)
        admitted_done(out);
    return code;
}
