/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_mail.c - what users asked to be told of their jobs
 *
 * The program is called as Slurm calls it, but with the end of its options marked, so that no address is one of
 * them: PROGRAM -s SUBJECT -- USER, with the job in SLURM_* variables. The subject is one line.
 * What is told once stays told: time limits are events of the state (EVENT_JOB_TIME), so neither a
 * restart nor another leader repeats them.
 */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "schema/names.h"
#include "spurctld/ctl/ctl_priv.h"
#include "wire/pb.h"

enum { MAIL_TIMEOUT_S = 60, FIELD_SPEC_MAIL_TYPE = 103 /* of proto/job.proto */ };

/* What is sent: its MailType, which may be less than what was asked for, and words about it. */
struct mail {
    uint32_t type; /* 0: nothing */
    char words[160];
    char queued[48], run[48]; /* "00:00:01"; empty: not known */
    int exit_max;             /* of an array's tasks; -1: not known */
};

static const struct {
    uint32_t type;
    const char *words;
} kinds[] = {
    { MAIL_BEGIN, "Began" },
    { MAIL_END, "Ended" },
    { MAIL_FAIL, "Failed" },
    { MAIL_REQUEUE, "Requeued" },
    { MAIL_TIME100, "Reached time limit" },
    { MAIL_TIME90, "Reached 90% of time limit" },
    { MAIL_TIME80, "Reached 80% of time limit" },
    { MAIL_TIME50, "Reached 50% of time limit" },
    { MAIL_INVALID_DEPEND, "Invalid dependency" },
};

static size_t kind_of(uint32_t type)
{
    size_t i = 0;

    while (i + 1 < ARRAY_LEN(kinds) && kinds[i].type != type)
        i++;
    return i;
}

/* "00:00:01", "2-03:00:00" */
static void write_time(char out[48], int64_t us)
{
    int64_t s = MAX(us, 0) / 1000000;

    out[0] = '\0';
    if (s >= 86400)
        snprintf(out, 48, "%lld-", (long long)(s / 86400));
    size_t len = strlen(out);
    snprintf(out + len, 48 - len, "%02lld:%02lld:%02lld", (long long)(s % 86400 / 3600),
             (long long)(s / 60 % 60), (long long)(s % 60));
}

/* "Began, Queued time 00:00:01" */
static void timed(struct mail *mail, uint32_t type, const char *which, int64_t us)
{
    char time[48] = "";

    if (which)
        write_time(time, us);
    mail->type = type;
    snprintf(mail->words, sizeof(mail->words), "%s%s%s%s", kinds[kind_of(type)].words,
             which ? ", " : "", which ? which : "", time);
}

/* Who cancels a job knows it: that is an end, not a failure. */
static uint32_t end_type(JobState state, unsigned wanted)
{
    bool failed = state != JOB_COMPLETED && state != JOB_CANCELLED;

    return failed && wanted & MAIL_FAIL ? MAIL_FAIL : wanted & MAIL_END;
}

static void say_end(const struct event *event, unsigned wanted, struct mail *mail)
{
    uint32_t type = end_type(event->end_state, wanted);
    unsigned status = event->job->run ? event->job->run->exit_status : 0;

    if (!type)
        return;
    timed(mail, type, "Run time ", event->start_us ? event->end_us - event->start_us : 0);
    size_t len = strlen(mail->words);
    snprintf(mail->words + len, sizeof(mail->words) - len, ", %s, ExitCode %d",
             name_of(&job_state_names, event->end_state), WEXITSTATUS(status));
}

/* About one job, or one task of an array. */
static void say_job(const struct event *event, unsigned wanted, struct mail *mail)
{
    const struct job *job = event->job;

    if (event->kind == EVENT_JOB_STARTED && wanted & MAIL_BEGIN)
        timed(mail, MAIL_BEGIN, "Queued time ", job->run->start_us - job->submit_us);
    else if (event->kind == EVENT_JOB_CHANGED && wanted & MAIL_INVALID_DEPEND)
        timed(mail, MAIL_INVALID_DEPEND, NULL, 0);
    else if (event->kind == EVENT_JOB_REQUEUED && wanted & MAIL_REQUEUE)
        timed(mail, MAIL_REQUEUE, "Run time ",
              event->start_us ? event->end_us - event->start_us : 0);
    else if (event->kind == EVENT_JOB_ENDED)
        say_end(event, wanted, mail);
}

/* How much of the time limit is over; said of each task of an array, whoever wants what. */
static void say_time(const struct ctl *ctl, const struct event *event, unsigned wanted,
                     struct mail *mail)
{
    const struct job *job = event->job;
    bool reached = event->kind == EVENT_JOB_ENDED && event->end_state == JOB_TIMEOUT &&
                   !(job->more && job->more->mail_sent & MAIL_TIME100);
    uint32_t type = event->kind == EVENT_JOB_TIME ? event->mail : reached ? MAIL_TIME100 : 0;
    int64_t now_us = reached ? event->end_us : ctl_now(ctl);

    if (job->run && wanted & type)
        timed(mail, type, "Run time ", now_us - job->run->start_us - job->run->suspended_total_us);
}

/* The smallest and the largest exit code of the array's tasks that are still known. */
static void exit_codes(const struct state *state, const struct array *array, int *low, int *high)
{
    uint32_t id = array->id;

    *low = *high = -1;
    for (size_t at = 0; id; id = slots_walk(&array->record_ids, &at)) {
        const struct job *job = state_job(state, id);
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
static void say_array(const struct ctl *ctl, const struct event *event, unsigned wanted,
                      struct mail *mail)
{
    const struct array *array = event->job->array;
    int low, high;

    if (event->kind == EVENT_JOB_STARTED && event->array_first && wanted & MAIL_BEGIN)
        timed(mail, MAIL_BEGIN, NULL, 0);
    if (event->kind == EVENT_JOB_CHANGED && wanted & MAIL_INVALID_DEPEND)
        timed(mail, MAIL_INVALID_DEPEND, NULL, 0);
    if (event->kind == EVENT_JOB_REQUEUED && wanted & MAIL_REQUEUE)
        timed(mail, MAIL_REQUEUE, NULL, 0);
    if (event->kind != EVENT_JOB_CLEAN || !event->array_last)
        return;
    bool failed = array->ok < array->count;
    if (!(wanted & MAIL_END) && !(failed && wanted & MAIL_FAIL))
        return;
    exit_codes(ctl->state, array, &low, &high);
    mail->exit_max = high;
    mail->type = failed && !array->ok ? MAIL_FAIL : MAIL_END;
    snprintf(mail->words, sizeof(mail->words), "%s, %s, ExitCode [%d-%d]",
             kinds[kind_of(mail->type)].words,
             !failed     ? "COMPLETED"
             : array->ok ? "Mixed"
                         : "FAILED",
             low, high);
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
                      const struct mail *mail)
{
    const Config *config = state_config(ctl->state);
    const char *to = spec->mail_user ? spec->mail_user : job->owner->user;
    CLEANUP(freep) char *called = mail_name(job, whole_array);
    struct arena arena;

    arena_init(&arena);
    char **env = ctl_job_env(ctl, job, CTL_ENV_MAIL, &arena);
    ctl_env_add(env, &arena, "SLURM_JOB_MAIL_TYPE", kinds[kind_of(mail->type)].words);
    if (mail->queued[0])
        ctl_env_add(env, &arena, "SLURM_JOB_QUEUED_TIME", mail->queued);
    if (mail->run[0])
        ctl_env_add(env, &arena, "SLURM_JOB_RUN_TIME", mail->run);
    if (mail->exit_max >= 0)
        ctl_env_add(env, &arena, "SLURM_JOB_EXIT_CODE_MAX",
                    arena_printf(&arena, "%d", mail->exit_max));
    char *subject = arena_printf(&arena, "Slurm %s Name=%s %s", called,
                                 spec->name ? spec->name : "", mail->words);
    char *full = config->mail_domain && !strchr(to, '@')
                     ? arena_printf(&arena, "%s@%s", to, config->mail_domain)
                     : arena_strdup(&arena, to);
    for (char *c = subject; *c; c++) { /* a job that was submitted before names were checked */
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
    }
    char *argv[] = { config->mail_prog, (char *)"-s", subject, (char *)"--", full, NULL };
    struct ctl_hook hook = { .what = "mail",
                             .argv = argv,
                             .env = env,
                             .input = "",
                             .timeout_s = MAIL_TIMEOUT_S,
                             .job_id = job->id,
                             .attempt = job->attempt,
                             .series = job->array ? job->array->id : job->id };
    ctl->io.hook(ctl->io.ctx, &hook);
    arena_done(&arena);
}

/* Many tasks of an array may be requeued by one command, which is one piece of news. */
static bool is_news(struct ctl *ctl, const struct event *event)
{
    const struct array *array = event->job->array;

    if (event->kind != EVENT_JOB_REQUEUED)
        return true;
    if (ctl->site.requeue_mailed.array == array->id &&
        ctl->site.requeue_mailed.at_us == event->end_us)
        return false;
    ctl->site.requeue_mailed.array = array->id;
    ctl->site.requeue_mailed.at_us = event->end_us;
    return true;
}

static bool may_be_told(const struct event *event)
{
    const struct job *job = event->job;

    if (job->more && job->more->het_count && job->more->het_offset)
        return false; /* the first component stands for all */
    switch (event->kind) {
    case EVENT_JOB_STARTED:
    case EVENT_JOB_ENDED:
    case EVENT_JOB_REQUEUED:
    case EVENT_JOB_TIME:
        return true;
    case EVENT_JOB_CLEAN:
        return job->array != NULL;
    case EVENT_JOB_CHANGED:
        return event->dep_invalid;
    default:
        return false;
    }
}

/* How long it waited, how long it has run, how it ended. */
static void fill_times(const struct ctl *ctl, const struct event *event, struct mail *mail)
{
    const struct job *job = event->job;
    int64_t start_us = event->start_us ? event->start_us : job->run ? job->run->start_us : 0;
    int64_t end_us = event->end_us ? event->end_us : ctl_now(ctl);

    if (!start_us)
        return;
    write_time(mail->queued, start_us - job->submit_us);
    write_time(mail->run, end_us - start_us);
    if (mail->exit_max < 0 && event->kind == EVENT_JOB_ENDED)
        mail->exit_max = job->run ? WEXITSTATUS(job->run->exit_status) : 0;
}

void ctl_mail(struct ctl *ctl, const struct event *event)
{
    const struct job *job = event->job;
    struct mail mail = { .exit_max = -1 }, time = { .exit_max = -1 };

    uint64_t wants = 0;

    if (str_is_empty(state_config(ctl->state)->mail_prog) || !may_be_told(event) ||
        !pb_number(job->spec->data, job->spec->len, FIELD_SPEC_MAIL_TYPE, &wants) || !wants)
        return;
    JobSpec *spec = job_spec_unpack(job);
    unsigned wanted = (unsigned)wants;
    bool whole_array = job->array && !(wanted & MAIL_ARRAY_TASKS);
    if (wanted && whole_array)
        say_array(ctl, event, wanted, &mail);
    else if (wanted)
        say_job(event, wanted, &mail);
    say_time(ctl, event, wanted, &time);
    fill_times(ctl, event, &mail);
    fill_times(ctl, event, &time);
    if (time.type)
        send_mail(ctl, job, spec, false, &time);
    if (mail.type && (!whole_array || is_news(ctl, event)))
        send_mail(ctl, job, spec, whole_array, &mail);
    job_spec__free_unpacked(spec, NULL);
}
