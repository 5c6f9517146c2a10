/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_hooks.c - programs of the site that the controller runs: mail, EpilogSlurmctld
 *
 * They run beside the loop and their failure is logged, never acted on. The mail program is called
 * as Slurm calls it: PROGRAM -s SUBJECT USER, with the job in SLURM_* variables.
 */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/hostlist.h"
#include "schema/names.h"
#include "spurctld/ctl_priv.h"
#include "sys/log.h"

static void run_time(const struct job *job, char *out, size_t size)
{
    int64_t end = job->end_us, start = job->run ? job->run->start_us : end;
    int64_t s = (end - start) / 1000000;

    snprintf(out, size, "%02lld:%02lld:%02lld", (long long)(s / 3600), (long long)(s / 60 % 60),
             (long long)(s % 60));
}

/* "Began, Queued time 00:00:01", "Ended, Run time 00:01:00, COMPLETED, ExitCode 0"; NULL: none. */
static const char *mail_event(const struct event *event, unsigned wanted, char *text, size_t size)
{
    const struct job *job = event->job;
    char time[32];

    if (event->kind == EVENT_JOB_STARTED && wanted & MAIL_BEGIN) {
        int64_t s = (job->run->start_us - job->submit_us) / 1000000;
        snprintf(text, size, "Began, Queued time %02lld:%02lld:%02lld", (long long)(s / 3600),
                 (long long)(s / 60 % 60), (long long)(s % 60));
        return text;
    }
    if (event->kind == EVENT_JOB_CHANGED && wanted & MAIL_INVALID_DEPEND)
        return "Invalid dependency";
    if (event->kind == EVENT_JOB_REQUEUED && wanted & MAIL_REQUEUE) {
        snprintf(text, size, "Requeued");
        return text;
    }
    if (event->kind == EVENT_JOB_ENDED && event->end_state == JOB_TIMEOUT &&
        wanted & MAIL_TIME100 && !(wanted & (MAIL_END | MAIL_FAIL))) {
        run_time(job, time, sizeof(time));
        snprintf(text, size, "Reached time limit, Run time %s", time);
        return text;
    }
    if (event->kind != EVENT_JOB_ENDED)
        return NULL;
    bool failed = event->end_state != JOB_COMPLETED;
    if (!(wanted & MAIL_END) && !(failed && wanted & MAIL_FAIL))
        return NULL;
    unsigned status = job->run ? job->run->exit_status : 0;
    run_time(job, time, sizeof(time));
    snprintf(text, size, "%s, Run time %s, %s, ExitCode %d",
             failed && event->end_state == JOB_FAILED ? "Failed" : "Ended", time,
             name_of(&job_state_names, event->end_state), WEXITSTATUS(status));
    return text;
}

/* The smallest and the largest exit code of the array's tasks that are still known. */
static void exit_codes(const struct state *state, const struct array *array, int *low, int *high)
{
    *low = *high = -1;
    for (uint32_t i = 0; i <= array->record_cap; i++) {
        uint32_t id = i < array->record_cap ? array->record_slots[i] : array->id;
        const struct job *job = id ? state_job(state, id) : NULL;
        if (!job || !job->is_task || !job->run)
            continue;
        int code = WEXITSTATUS(job->run->exit_status);
        *low = *low < 0 ? code : MIN(*low, code);
        *high = MAX(*high, code);
    }
    *low = MAX(*low, 0);
    *high = MAX(*high, 0);
}

/* Of an array as a whole: the first start, and the end of all. */
static const char *array_event(const struct ctl *ctl, const struct event *event, unsigned wanted,
                               char *text, size_t size)
{
    const struct array *array = event->job->array;
    int low, high;

    if (event->kind == EVENT_JOB_STARTED && event->array_first && wanted & MAIL_BEGIN)
        return "Began";
    if (event->kind == EVENT_JOB_CHANGED && wanted & MAIL_INVALID_DEPEND)
        return "Invalid dependency";
    if (event->kind != EVENT_JOB_CLEAN || !event->array_last)
        return NULL;
    bool failed = array->ok < array->count;
    if (!(wanted & MAIL_END) && !(failed && wanted & MAIL_FAIL))
        return NULL;
    exit_codes(ctl->state, array, &low, &high);
    snprintf(text, size, "%s, %s, ExitCode [%d-%d]", failed && !array->ok ? "Failed" : "Ended",
             !failed     ? "COMPLETED"
             : array->ok ? "Mixed"
                         : "FAILED",
             low, high);
    return text;
}

/* What the subject calls the job. */
static char *mail_name(const struct job *job, bool whole_array)
{
    if (whole_array)
        return mem_printf("Array Summary Job_id=%u_* (%u)", job->array->id, job->array->id);
    if (job->is_task)
        return mem_printf("Array Task Job_id=%u_%u (%u)", job->array->id, job->array_task_id,
                          job->id);
    return mem_printf("Job_id=%u", job->id);
}

static void send_mail(struct ctl *ctl, const struct job *job, const JobSpec *spec, bool whole_array,
                      const char *what)
{
    const Config *config = state_config(ctl->state);
    const char *to = spec->mail_user ? spec->mail_user : job->owner->user;
    CLEANUP(freep) char *called = mail_name(job, whole_array);
    CLEANUP(freep)
    char *subject =
        mem_printf("%s %s Name=%s %s", config->cluster_name ? config->cluster_name : "Spur", called,
                   spec->name ? spec->name : "", what);
    CLEANUP(freep) char *id = mem_printf("SLURM_JOB_ID=%u", job->id);
    CLEANUP(freep) char *name = mem_printf("SLURM_JOB_NAME=%s", spec->name ? spec->name : "");
    CLEANUP(freep) char *user = mem_printf("SLURM_JOB_USER=%s", job->owner->user);
    CLEANUP(freep)
    char *full = config->mail_domain && !strchr(to, '@')
                     ? mem_printf("%s@%s", to, config->mail_domain)
                     : mem_strdup(to);
    char *argv[] = { config->mail_prog, (char *)"-s", subject, full, NULL };
    char *env[] = { id, name, user, (char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };
    struct ctl_hook hook = { .what = "mail",
                             .argv = argv,
                             .env = env,
                             .input = "",
                             .timeout_s = 60,
                             .job_id = job->id,
                             .attempt = job->attempt };

    ctl->io.hook(ctl->io.ctx, &hook);
}

void ctl_mail(struct ctl *ctl, const struct event *event)
{
    const Config *config = state_config(ctl->state);
    const struct job *job = event->job;
    char text[160];

    if ((event->kind != EVENT_JOB_STARTED && event->kind != EVENT_JOB_ENDED &&
         event->kind != EVENT_JOB_REQUEUED && !(event->kind == EVENT_JOB_CLEAN && job->array) &&
         !(event->kind == EVENT_JOB_CHANGED && event->dep_invalid)) ||
        str_is_empty(config->mail_prog))
        return;
    JobSpec *spec = job_spec_unpack(job);
    unsigned wanted = spec->has_mail_type ? spec->mail_type : 0;
    bool whole_array = job->array && !(wanted & MAIL_ARRAY_TASKS);
    const char *what = NULL;
    if (wanted && whole_array)
        what = array_event(ctl, event, wanted, text, sizeof(text));
    else if (wanted)
        what = mail_event(event, wanted, text, sizeof(text));
    if (what)
        send_mail(ctl, job, spec, whole_array, what);
    job_spec__free_unpacked(spec, NULL);
}

/* ---- EpilogSlurmctld ---- */

enum { EPILOG_VARS = 24, EPILOG_MAX_S = 300 };

static const char *number(struct arena *arena, uint32_t value)
{
    return arena_printf(arena, "%u", value);
}

static const char *node_list(const struct job *job, struct arena *arena)
{
    CLEANUP(hostlist_done) struct hostlist nodes = { 0 };
    CLEANUP(str_done) struct str text = { 0 };

    for (size_t i = 0; job->run && i < job->run->count; i++)
        hostlist_push(&nodes, job->run->parts[i].name, NULL);
    hostlist_format(&nodes, &text);
    return arena_strdup(arena, str_text(&text));
}

static void epilog_env(struct ctl *ctl, const struct job *job, const JobSpec *spec,
                       struct arena *arena, char **env)
{
    unsigned status = job->run ? job->run->exit_status : 0;
    const struct {
        const char *name, *value;
    } rows[] = {
        { "PATH", "/usr/sbin:/usr/bin:/sbin:/bin" },
        { "SLURM_SCRIPT_CONTEXT", "epilog_slurmctld" },
        { "SLURM_CLUSTER_NAME", state_config(ctl->state)->cluster_name },
        { "SLURM_JOB_ID", number(arena, job->id) },
        { "SLURM_JOBID", number(arena, job->id) },
        { "SLURM_JOB_NAME", spec->name },
        { "SLURM_JOB_USER", job->owner->user },
        { "SLURM_JOB_UID", number(arena, job->owner->uid) },
        { "SLURM_JOB_GID", number(arena, job->owner->gid) },
        { "SLURM_JOB_ACCOUNT", spec->account },
        { "SLURM_JOB_COMMENT", spec->comment },
        { "SLURM_JOB_PARTITION", job->run ? job->run->partition : NULL },
        { "SLURM_JOB_NODELIST", node_list(job, arena) },
        { "SLURM_JOB_WORK_DIR", spec->work_dir },
        { "SLURM_JOB_RESTART_COUNT", number(arena, job->restarts) },
        { "SLURM_JOB_EXIT_CODE", number(arena, status) },
        { "SLURM_JOB_EXIT_CODE2", arena_printf(arena, "%d:%d", WEXITSTATUS(status),
                                               WIFSIGNALED(status) ? WTERMSIG(status) : 0) },
        { "SLURM_ARRAY_JOB_ID", job->is_task ? number(arena, job->array->id) : NULL },
        { "SLURM_ARRAY_TASK_ID", job->is_task ? number(arena, job->array_task_id) : NULL },
    };
    size_t count = 0;

    _Static_assert(ARRAY_LEN(rows) < EPILOG_VARS, "room for the end");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].value)
            env[count++] = arena_printf(arena, "%s=%s", rows[i].name, rows[i].value);
    }
    env[count] = NULL;
}

void ctl_epilog(struct ctl *ctl, const struct event *event)
{
    const Config *config = state_config(ctl->state);
    const struct job *job = event->job;

    if ((event->kind != EVENT_JOB_ENDED && event->kind != EVENT_JOB_REQUEUED) ||
        str_is_empty(config->epilog_ctld) || !event->start_us)
        return;
    unsigned wait_s = config->epilog_timeout_s ? config->epilog_timeout_s : EPILOG_MAX_S;
    char *argv[] = { config->epilog_ctld, NULL }, *env[EPILOG_VARS];
    struct ctl_hook hook = { .what = "controller_epilog",
                             .argv = argv,
                             .env = env,
                             .timeout_s = MIN(wait_s, EPILOG_MAX_S),
                             .job_id = job->id,
                             .attempt = job->attempt };
    struct arena arena;
    JobSpec *spec = job_spec_unpack(job);
    arena_init(&arena);
    epilog_env(ctl, job, spec, &arena, env);
    ctl->io.hook(ctl->io.ctx, &hook);
    arena_done(&arena);
    job_spec__free_unpacked(spec, NULL);
}

void ctl_hook_done(struct ctl *ctl, const char *what, uint32_t job_id, uint32_t attempt,
                   int exit_status)
{
    (void)ctl;
    if (exit_status != 0)
        log_warn("hook.failed", "what=%s job=%u attempt=%u status=%d ignored", what, job_id,
                 attempt, exit_status);
}
