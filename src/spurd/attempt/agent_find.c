/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_find.c - what became of steps while nobody looked: after a restart, or when a channel broke
 *
 * The attempt's directory says it: absent, never begun; locked, its supervisor lives and listens;
 * unlocked, it is over, and the report is in it unless the supervisor itself was killed.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spurd/access/private.h"
#include "spurd/attempt/life.h"
#include "spurd/node/cgroups.h"
#include "spurd/task/stepd.h"
#include "spurd/task/task.h"
#include "sys/clock.h"
#include "sys/files.h"
#include "sys/log.h"

enum { RETRY_MS = 50 };

/* Something to do for an attempt, later or in a worker. */
struct later {
    uv_timer_t timer;
    uv_work_t work;
    struct agent *agent;
    uint32_t job, attempt;
    char *cgroup;
};

static struct later *later_new(struct agent *agent, const struct attempt *held)
{
    struct later *later = NEW(struct later);

    later->agent = agent;
    later->job = held->job;
    later->attempt = held->attempt;
    later->work.data = later;
    return later;
}

static void later_free(struct later *later)
{
    free(later->cgroup);
    free(later);
}

static void timer_closed(uv_handle_t *handle)
{
    later_free(handle->data);
}

static void look_again(uv_timer_t *timer)
{
    struct later *later = timer->data;
    struct agent *agent = later->agent;
    struct attempt *held = attempt_find(&agent->table, later->job, later->attempt);

    if (held && !held->chan && !held->ended && !agent->stopping) {
        agent_find_step(agent, held);
        agent_advance(agent, held);
    }
    uv_close((uv_handle_t *)timer, timer_closed);
}

/* The supervisor notices that we are new within moments, and then listens. */
static void look_later(struct agent *agent, const struct attempt *held)
{
    struct later *later = later_new(agent, held);

    uv_timer_init(agent->uv, &later->timer);
    later->timer.data = later;
    uv_timer_start(&later->timer, look_again, RETRY_MS, 0);
}

static void end_processes(uv_work_t *work)
{
    struct later *later = work->data;

    if (later->cgroup)
        cgroups_end(later->cgroup);
    cgroups_end_marked(later->job, later->attempt, later->agent->socket);
}

static void processes_ended(uv_work_t *work, int status)
{
    struct later *later = work->data;
    struct agent *agent = later->agent;
    struct attempt *held = attempt_find(&agent->table, later->job, later->attempt);

    (void)status;
    if (held && !held->ended && !agent->stopping) {
        agent_fail_step(agent, held, false, "the job's supervisor was killed");
        agent_advance(agent, held);
    }
    later_free(later);
}

static void supervisor_died(struct agent *agent, struct attempt *held, char *cgroup)
{
    struct later *later = later_new(agent, held);

    later->cgroup = mem_strdup(cgroup);
    uv_queue_work(agent->uv, &later->work, end_processes, processes_ended);
}

static bool take_report(struct attempt *held, StepEnded *report)
{
    if (!report)
        return false;
    bool ours = report->id && report->id->job_id == held->job &&
                report->id->attempt == held->attempt && report->has_ended_us;
    if (ours)
        attempt_set_report(held, report);
    held->running = held->running && !ours;
    step_ended__free_unpacked(report, NULL);
    return ours;
}

/* Nothing began: it may be launched as if it had never been said. */
static void never_began(struct attempt *held)
{
    held->given = held->running = false;
    if (!held->has_load)
        held->launched = false;
}

void agent_find_step(struct agent *agent, struct attempt *held)
{
    struct arena arena;
    struct task_node node;
    struct err err = { 0 };

    arena_init(&arena);
    agent_task_node(agent, &node);
    char *dir = task_dir(&node, held->job, held->attempt, &arena);
    char *keep = task_keep_file(&node, held->job, held->attempt, &arena);
    char *cgroup = task_cgroup(&node, held->job, held->attempt, &arena);
    held->found = true;
    switch (stepd_look(dir)) {
    case STEPD_ABSENT:
        if (!take_report(held, stepd_read_report(dir, "batch", keep)))
            never_began(held);
        break;
    case STEPD_ALIVE:
        held->given = true;
        held->chan = stepd_connect(agent->stepd, dir, "batch", held, &err);
        held->kill_ordered = false;
        if (held->chan)
            agent_freeze_again(held);
        else
            look_later(agent, held);
        break;
    case STEPD_DEAD:
        held->given = true;
        if (!take_report(held, stepd_read_report(dir, "batch", keep)))
            supervisor_died(agent, held, cgroup);
        break;
    }
    arena_done(&arena);
    if (held->ended)
        agent_keep_later(agent, held);
}

/*
 * Before everything is ended: an attempt whose directory is gone would count as never begun and run
 * a second time. What is over says so on disk, in the words of its supervisor if there are some.
 */
void agent_keep_ends(struct agent *agent)
{
    struct arena arena;
    struct task_node node;

    arena_init(&arena);
    agent_task_node(agent, &node);
    map_each (entry, &agent->table.held) {
        struct attempt *held = entry->value;
        struct err err = { 0 };
        char *dir = task_dir(&node, held->job, held->attempt, &arena);
        char *keep = task_keep_file(&node, held->job, held->attempt, &arena);
        if (held->acked || held->kept || (!held->given && !held->ended))
            continue;
        if (!held->ended && !take_report(held, stepd_read_report(dir, "batch", keep)))
            agent_fail_step(agent, held, false, "the agent was told to end its jobs");
        size_t len = step_ended__get_packed_size(held->report);
        uint8_t *bytes = arena_alloc(&arena, len + 1);
        step_ended__pack(held->report, bytes);
        if (file_write(keep, bytes, len, 0600, &err) < 0)
            log_error("report.keep", "path=%s error=%s", keep, err.text);
    }
    arena_done(&arena);
}

/* ---- after a restart ---- */

/* The machine was started anew: only reports that reached the disk are left of it. */
static void recover_other_boot(struct agent *agent, struct attempt *held)
{
    struct arena arena;
    struct task_node node;

    arena_init(&arena);
    agent_task_node(agent, &node);
    char *dir = task_dir(&node, held->job, held->attempt, &arena);
    char *keep = task_keep_file(&node, held->job, held->attempt, &arena);
    held->found = true;
    bool has_report = held->launched && take_report(held, stepd_read_report(dir, "batch", keep));
    arena_done(&arena);
    if (has_report) {
        held->revoked = held->epilog_done = true;
        return;
    }
    log_warn("grant.lost", "job=%u attempt=%u why=%s", held->job, held->attempt,
             "the machine was started anew");
    agent_forget(agent, held);
}

/* Directories that the journal does not know: it was cut, or the attempt is over. */
static void recover_dir(struct agent *agent, const char *name)
{
    unsigned job, attempt;
    int end = 0;
    CLEANUP(freep) char *dir = mem_printf("%s/%s", agent->run_dir, name);

    if (sscanf(name, "%u.%u%n", &job, &attempt, &end) != 2 || name[end] ||
        attempt_find(&agent->table, job, attempt))
        return;
    bool buried = attempt_is_buried(&agent->table, job, attempt);
    if (buried && stepd_look(dir) == STEPD_DEAD) {
        file_remove_tree(dir, NULL);
    } else if (!buried) {
        struct attempt *held = attempt_add(&agent->table, job, attempt);
        log_warn("grant.found", "job=%u attempt=%u", job, attempt);
        held->ready = held->launched = held->given = true;
    }
}

static void each_name(struct agent *agent, const char *path,
                      void (*use)(struct agent *agent, const char *name))
{
    DIR *dir = opendir(path);
    struct dirent *item;

    while (dir && (item = readdir(dir))) {
        if (item->d_name[0] >= '1' && item->d_name[0] <= '9')
            use(agent, item->d_name);
    }
    if (dir)
        closedir(dir);
}

static void drop_kept(struct agent *agent, const char *name)
{
    unsigned job, attempt;
    CLEANUP(freep) char *path = mem_printf("%s/ended/%s", agent->spool_dir, name);

    if (sscanf(name, "%u.%u.", &job, &attempt) == 2 && !attempt_find(&agent->table, job, attempt))
        unlink(path);
}

void agent_recover(struct agent *agent)
{
    VEC(struct attempt *) list = { 0 };
    CLEANUP(freep) char *kept = mem_printf("%s/ended", agent->spool_dir);
    bool same_boot;

    map_each (entry, &agent->table.held)
        vec_push(&list, (struct attempt *)entry->value);
    vec_each (struct attempt *, held, &list) {
        same_boot = str_eq((*held)->boot_id, agent->boot_id);
        if (!same_boot)
            recover_other_boot(agent, *held);
        else if ((*held)->launched)
            agent_find_step(agent, *held);
    }
    vec_done(&list);
    each_name(agent, agent->run_dir, recover_dir);
    map_each (entry, &agent->table.held) {
        struct attempt *held = entry->value;
        if (!held->grant && !held->chan && !held->ended)
            agent_find_step(agent, held);
    }
    each_name(agent, kept, drop_kept);
    private_recover(agent);
    log_info("agent.recovered", "held=%zu", map_len(&agent->table.held));
}
