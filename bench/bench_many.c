/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_many.c - what happens to very many jobs at once, and to those that make room: rows of bench_shocks.c
 */
#include "bench_many.h"

#include "bench_rows.h"

enum {
    MANY = 100000,         /* jobs that something happens to at once */
    IDS_PER_COMMAND = 200, /* as ctl_many.c */
};

/* ---- many jobs at once ---- */

static uint32_t first_waiting(const struct rig *rig, uint32_t from)
{
    const struct job *job = state_job_from(rig->state, from);

    while (job && job->state != JOB_PENDING)
        job = state_job_from(rig->state, (uint64_t)job->id + 1);
    return job ? job->id : 0;
}

static void cancel_ids(struct rig *rig, uint32_t *ids, size_t count)
{
    Command cmd = COMMAND__INIT;
    CmdCancel msg = CMD_CANCEL__INIT;
    JobSelect jobs = JOB_SELECT__INIT;

    jobs.n_job_ids = count;
    jobs.job_ids = ids;
    SET(&jobs, alone, true);
    msg.jobs = &jobs;
    cmd.what_case = COMMAND__WHAT_CANCEL;
    cmd.cancel = &msg;
    if (rig_apply(rig, &cmd) != ERR_OK)
        die("nothing is cancelled");
}

void many_cancel(struct load *load)
{
    uint32_t ids[IDS_PER_COMMAND], at = 1;

    for (size_t done = 0; done < MANY; done += IDS_PER_COMMAND) {
        size_t count = 0;
        while (count < IDS_PER_COMMAND && (at = first_waiting(load->rig, at)))
            ids[count++] = at++;
        if (count)
            cancel_ids(load->rig, ids, count);
    }
}

/* They were cancelled a moment ago: MinJobAge has passed for all of them. */
void many_forget(struct load *load)
{
    rig_wait(load->rig, 10);
}

static uint32_t update(struct load *load, uint32_t id, const char *tasks, JobSpec *change, int hold)
{
    Command cmd = COMMAND__INIT;
    CmdUpdateJob msg = CMD_UPDATE_JOB__INIT;
    JobSelect jobs = JOB_SELECT__INIT;

    jobs.n_job_ids = 1;
    jobs.job_ids = &id;
    jobs.array_tasks = (char *)(uintptr_t)tasks;
    msg.jobs = &jobs;
    msg.change = change;
    SET(&msg, by_admin, true);
    if (hold >= 0)
        SET(&msg, hold, (uint32_t)hold);
    cmd.what_case = COMMAND__WHAT_UPDATE_JOB;
    cmd.update_job = &msg;
    if (rig_apply(load->rig, &cmd) != ERR_OK)
        die("the job is not changed");
    return id;
}

/* They are of the QOS that is added, and that is removed after. */
void many_use_qos(struct load *load)
{
    JobSpec change = JOB_SPEC__INIT;
    uint32_t at = 1;

    change.qos = (char *)"extra";
    for (size_t done = 0; done < MANY / 5 && (at = first_waiting(load->rig, at)); done++)
        update(load, at++, NULL, &change, -1);
}

static uint32_t the_array;

void many_array_submit(struct load *load)
{
    the_array = rig_submit(load->rig, "c=1 t=600 uid=1 array=0-99999 nice=1000");
    if (!the_array)
        die("the array is refused");
}

void many_array_hold(struct load *load)
{
    update(load, the_array, NULL, NULL, 2);
}

void many_array_release(struct load *load)
{
    update(load, the_array, NULL, NULL, 0);
}

void many_array_update(struct load *load)
{
    JobSpec change = JOB_SPEC__INIT;

    SET(&change, nice, 500);
    update(load, the_array, NULL, &change, -1);
}

/* Each task becomes a record: something is said about it alone. */
void many_array_split(struct load *load)
{
    for (unsigned i = 0; i < MANY / 2; i += IDS_PER_COMMAND) {
        char tasks[40];
        snprintf(tasks, sizeof(tasks), "%u-%u", i, i + IDS_PER_COMMAND - 1);
        update(load, the_array, tasks, NULL, 2);
    }
}

/* As ctl_many.c does it: the array's own record first, then those of its tasks. */
void many_array_cancel(struct load *load)
{
    uint32_t ids[IDS_PER_COMMAND], at = the_array + 1;

    cancel_ids(load->rig, &the_array, 1);
    for (size_t done = 0; done < MANY / 2; done += IDS_PER_COMMAND) {
        size_t count = 0;
        while (count < IDS_PER_COMMAND && (at = first_waiting(load->rig, at)))
            ids[count++] = at++;
        if (count)
            cancel_ids(load->rig, ids, count);
    }
}

static uint32_t the_first;

void many_depend_submit(struct load *load)
{
    char words[80];

    the_first = rig_submit(load->rig, "c=1 t=600 uid=1 hold");
    snprintf(words, sizeof(words), "c=1 t=600 uid=1 dep=afterany:%u", the_first);
    for (unsigned i = 0; i < MANY; i++) {
        if (!rig_submit(load->rig, words))
            die("a job that depends on another is refused");
    }
}

void many_depend_release(struct load *load)
{
    rig_cancel(load->rig, the_first);
}

/* With a dependency, many times; `first` is what they are named like, or NULL. */
static void submit_waiting(struct load *load, const char *name, const char *dependency, bool kill)
{
    JobSpec spec = JOB_SPEC__INIT;

    spec.name = (char *)(uintptr_t)name;
    spec.work_dir = (char *)"/";
    spec.dependency = (char *)(uintptr_t)dependency;
    SET(&spec, batch, true);
    SET(&spec, time_limit_s, 600);
    if (kill)
        SET(&spec, kill_on_invalid_dep, true);
    for (unsigned i = 0; i < MANY; i++) {
        if (!rig_submit_spec(load->rig, 1, &spec))
            die("a job that depends on another is refused");
    }
}

void many_killed_submit(struct load *load)
{
    char dependency[40];

    the_first = rig_submit(load->rig, "c=1 t=600 uid=1 hold");
    snprintf(dependency, sizeof(dependency), "afterok:%u", the_first);
    submit_waiting(load, "killed", dependency, true);
}

void many_singleton_submit(struct load *load)
{
    submit_waiting(load, "alone", "singleton", false);
    the_first = (uint32_t)(state_head(load->rig->state).next_job_id - MANY);
}

/* The next one may start now, and so on; these wait for nobody else. */
void many_singleton_release(struct load *load)
{
    for (unsigned i = 0; i < 100; i++)
        rig_cancel(load->rig, the_first + i);
}

/* Each waits for the one before. */
void many_chain_submit(struct load *load)
{
    char words[80];
    uint32_t id = rig_submit(load->rig, "c=1 t=600 uid=1 hold");

    for (unsigned i = 0; i < 3 * MANY; i++) {
        snprintf(words, sizeof(words), "c=1 t=600 uid=1 dep=afterok:%u", id);
        id = rig_submit(load->rig, words);
        if (!id)
            die("a job that depends on another is refused");
    }
}

void many_twins_submit(struct load *load)
{
    char words[80];

    the_first = rig_submit(load->rig, "c=1 t=600 uid=1 array=0-99999 hold");
    snprintf(words, sizeof(words), "c=1 t=600 uid=1 array=0-99999 dep=aftercorr:%u", the_first);
    if (!rig_submit(load->rig, words))
        die("an array that depends on another is refused");
}

void many_begin_submit(struct load *load)
{
    JobSpec spec = JOB_SPEC__INIT;

    spec.name = (char *)"later";
    spec.work_dir = (char *)"/";
    SET(&spec, batch, true);
    SET(&spec, time_limit_s, 600);
    SET(&spec, begin_us, load->rig->now_us + 60 * US_PER_S);
    for (unsigned i = 0; i < MANY; i++) {
        if (!rig_submit_spec(load->rig, 1, &spec))
            die("a job that begins later is refused");
    }
}

void many_begin_now(struct load *load)
{
    rig_wait(load->rig, 120);
}

/* ---- preemption ---- */

void many_preempt_one(struct load *load)
{
    rig_submit(load->rig, "p=high c=16 gres=gpu:h100:4 t=600 uid=1");
}

void many_preempt_wide(struct load *load)
{
    rig_submit(load->rig, "p=high N=200 ex t=600 uid=1");
}

/* All components at once, on other nodes each. */
void many_preempt_het(struct load *load)
{
    rig_submit(load->rig,
               "p=high N=100 ex t=600 uid=1 : p=high N=100 ex gres=gpu:h100:8 t=600 uid=1");
}

/* They must wait behind nobody; when they can start is worked out over all nodes. */
void many_book_het(struct load *load)
{
    rig_submit(load->rig,
               "p=first N=2000 ex t=600 uid=1 : p=first N=1000 ex gres=gpu:h100:8 t=600 uid=1");
}
