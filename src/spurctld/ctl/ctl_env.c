/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_env.c - the variables of programs that the controller runs for a job: one row each
 */
#include <string.h>
#include <sys/wait.h>

#include "base/hostlist.h"
#include "schema/names.h"
#include "schema/pattern.h"
#include "spurctld/ctl/ctl_priv.h"

struct env_of {
    const Config *config;
    const struct job *job;
    const Job *msg;
    const JobSpec *spec;
    const JobStatus *status;
};

enum {
    END = CTL_ENV_EPILOG,
    ALL = CTL_ENV_PROLOG | CTL_ENV_EPILOG | CTL_ENV_MAIL,
};

#define ROW(fn) static bool fn(const struct env_of *of, struct str *out)

static bool text(struct str *out, const char *value)
{
    if (str_is_empty(value))
        return false;
    str_add(out, value);
    return true;
}

static bool number(struct str *out, bool present, uint64_t value)
{
    if (present)
        str_add_u64(out, value);
    return present;
}

#define SPEC_TEXT(fn, field)               \
    ROW(fn)                                \
    {                                      \
        return text(out, of->spec->field); \
    }
SPEC_TEXT(name, name)
SPEC_TEXT(comment, comment)
SPEC_TEXT(features, features)
SPEC_TEXT(extra, extra)
SPEC_TEXT(licenses, licenses)
SPEC_TEXT(work_dir, work_dir)
SPEC_TEXT(wckey, wckey)

/* ---- who and where ---- */

ROW(path)
{
    (void)of;
    return text(out, "/usr/sbin:/usr/bin:/sbin:/bin");
}
ROW(cluster)
{
    return text(out, of->config->cluster_name);
}
ROW(job_id)
{
    return number(out, true, of->job->id);
}
ROW(user)
{
    return text(out, of->job->owner->user);
}
ROW(group)
{
    return text(out, of->job->owner->group);
}
ROW(uid)
{
    return number(out, true, of->job->owner->uid);
}
ROW(gid)
{
    return number(out, true, of->job->owner->gid);
}
ROW(account)
{
    return text(out, of->status->account ? of->status->account : of->spec->account);
}
ROW(qos)
{
    return text(out, of->status->qos ? of->status->qos : of->spec->qos);
}
ROW(reservation)
{
    const struct job_run *run = of->job->run;

    return text(out, run && run->reservation ? run->reservation : of->spec->reservation);
}
ROW(partition)
{
    return text(out, of->job->run ? of->job->run->partition : of->status->partition);
}
ROW(restarts)
{
    return number(out, true, of->job->restarts);
}
ROW(exclusive)
{
    return text(out, name_of(&exclusive_names,
                             of->spec->has_exclusive ? of->spec->exclusive : EXCLUSIVE_NO));
}
ROW(oversubscribe)
{
    return text(out, of->spec->has_oversubscribe && of->spec->oversubscribe ? "YES" : "NO");
}

/* ---- nodes ---- */

ROW(node_list)
{
    CLEANUP(hostlist_done) struct hostlist nodes = { 0 };
    const struct job_run *run = of->job->run;

    for (size_t i = 0; run && i < run->count; i++) {
        if (!run->parts[i].left)
            hostlist_push(&nodes, run->parts[i].name, NULL);
    }
    hostlist_format(&nodes, out);
    return out->len > 0;
}
ROW(num_nodes)
{
    return number(out, of->job->run != NULL, of->job->run ? run_nodes(of->job->run) : 0);
}
ROW(cpus_per_node)
{
    const struct job_run *run = of->job->run;

    for (size_t i = 0, next; run && i < run->count; i = next) {
        for (next = i + 1; next < run->count && run->parts[next].cpus == run->parts[i].cpus;)
            next++;
        str_addf(out, "%s%u", i ? "," : "", run->parts[i].cpus);
        if (next - i > 1)
            str_addf(out, "(x%zu)", next - i);
    }
    return out->len > 0;
}

/* ---- files ---- */

ROW(std_in)
{
    return text(out, of->spec->std_in ? of->spec->std_in : "/dev/null");
}
ROW(std_out)
{
    return of->job->batch && pattern_output_path(of->msg, false, out, NULL) == 0;
}
ROW(std_err)
{
    return of->job->batch && pattern_output_path(of->msg, true, out, NULL) == 0;
}

/* ---- times and the end ---- */

ROW(start_time)
{
    return number(out, of->job->run != NULL,
                  of->job->run ? (uint64_t)(of->job->run->start_us / 1000000) : 0);
}
ROW(end_time)
{
    int64_t end_us = of->job->end_us;

    if (!end_us && of->job->run && of->job->time_limit_s >= 0)
        end_us = job_end_by(of->job, of->job->run->start_us);
    return number(out, end_us > 0, (uint64_t)(end_us / 1000000));
}
static unsigned status_of(const struct env_of *of)
{
    return of->job->run ? of->job->run->exit_status : 0;
}
ROW(exit_code)
{
    return number(out, true, status_of(of));
}
ROW(exit_code2)
{
    unsigned status = status_of(of);

    str_addf(out, "%d:%d", WEXITSTATUS(status), WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    return true;
}
ROW(derived_code)
{
    return number(out, true, of->status->derived_status);
}
ROW(state_word)
{
    return text(out, name_of(&job_state_names, of->job->state));
}

/* ---- arrays ---- */

static const struct array *array_of(const struct env_of *of)
{
    return of->job->is_task ? of->job->array : NULL;
}
ROW(array_job)
{
    return array_of(of) && number(out, true, array_of(of)->id);
}
ROW(task_id)
{
    return array_of(of) && number(out, true, of->job->array_task_id);
}
ROW(array_count)
{
    return array_of(of) && number(out, true, array_of(of)->count);
}
ROW(array_min)
{
    return array_of(of) && number(out, true, array_task_id(array_of(of), 0));
}
ROW(array_max)
{
    return array_of(of) && number(out, true, array_task_id(array_of(of), array_of(of)->count - 1));
}
ROW(array_step)
{
    return array_of(of) && number(out, true, MAX(array_of(of)->runs[0].step, 1));
}

static const struct {
    const char *name;
    unsigned where;
    bool (*write)(const struct env_of *of, struct str *out);
} rows[] = {
    { "PATH", ALL, path },
    { "SLURM_CLUSTER_NAME", ALL, cluster },
    { "SLURM_JOB_ID", ALL, job_id },
    { "SLURM_JOBID", ALL, job_id },
    { "SLURM_JOB_NAME", ALL, name },
    { "SLURM_JOB_USER", ALL, user },
    { "SLURM_JOB_GROUP", ALL, group },
    { "SLURM_JOB_UID", ALL, uid },
    { "SLURM_JOB_GID", ALL, gid },
    { "SLURM_JOB_ACCOUNT", ALL, account },
    { "SLURM_JOB_QOS", ALL, qos },
    { "SLURM_JOB_RESERVATION", ALL, reservation },
    { "SLURM_JOB_PARTITION", ALL, partition },
    { "SLURM_JOB_COMMENT", ALL, comment },
    { "SLURM_JOB_CONSTRAINTS", ALL, features },
    { "SLURM_JOB_EXTRA", ALL, extra },
    { "SLURM_JOB_LICENSES", ALL, licenses },
    { "SLURM_JOB_EXCLUSIVE", ALL, exclusive },
    { "SLURM_JOB_OVERSUBSCRIBE", ALL, oversubscribe },
    { "SLURM_WCKEY", ALL, wckey },
    { "SLURM_JOB_WORK_DIR", ALL, work_dir },
    { "SLURM_JOB_STDIN", ALL, std_in },
    { "SLURM_JOB_STDOUT", ALL, std_out },
    { "SLURM_JOB_STDERR", ALL, std_err },
    { "SLURM_JOB_NODELIST", ALL, node_list },
    { "SLURM_JOB_NUM_NODES", ALL, num_nodes },
    { "SLURM_JOB_CPUS_PER_NODE", ALL, cpus_per_node },
    { "SLURM_JOB_START_TIME", ALL, start_time },
    { "SLURM_JOB_END_TIME", ALL, end_time },
    { "SLURM_JOB_RESTART_COUNT", ALL, restarts },
    { "SLURM_ARRAY_JOB_ID", ALL, array_job },
    { "SLURM_ARRAY_TASK_ID", ALL, task_id },
    { "SLURM_ARRAY_TASK_COUNT", ALL, array_count },
    { "SLURM_ARRAY_TASK_MIN", ALL, array_min },
    { "SLURM_ARRAY_TASK_MAX", ALL, array_max },
    { "SLURM_ARRAY_TASK_STEP", ALL, array_step },
    { "SLURM_JOB_EXIT_CODE", END, exit_code },
    { "SLURM_JOB_EXIT_CODE2", END, exit_code2 },
    { "SLURM_JOB_DERIVED_EC", END, derived_code },
    { "SLURM_JOB_STATE", CTL_ENV_MAIL, state_word },
};

static const char *context_of(enum ctl_env_where where)
{
    return where == CTL_ENV_PROLOG   ? "prolog_slurmctld"
           : where == CTL_ENV_EPILOG ? "epilog_slurmctld"
                                     : NULL;
}

char **ctl_job_env(const struct ctl *ctl, const struct job *job, enum ctl_env_where where,
                   struct arena *arena)
{
    const Job *msg = job_msg(ctl->state, job, arena);
    struct env_of of = { state_config(ctl->state), job, msg, msg->spec, msg->status };
    char **env = ARENA_ARRAY(arena, char *, ARRAY_LEN(rows) + CTL_ENV_MORE + 2);
    const char *context = context_of(where);
    size_t count = 0;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(str_done) struct str value = { 0 };
        if (rows[i].where & where && rows[i].write(&of, &value))
            env[count++] = arena_printf(arena, "%s=%s", rows[i].name, str_text(&value));
    }
    if (context)
        env[count++] = arena_printf(arena, "SLURM_SCRIPT_CONTEXT=%s", context);
    return env;
}

void ctl_env_add(char **env, struct arena *arena, const char *name, const char *value)
{
    size_t count = 0;

    while (env[count])
        count++;
    env[count] = arena_printf(arena, "%s=%s", name, value);
}
