/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_report.c - what the controller hears of steps, in batches
 *
 * (1) The first node of a step says that it runs. That is soft: a leader that is new hears it again.
 * (2) Every node says how its part of a step ended. Those records are in a file until the controller has
 *     them in its log; they may be said twice, and are known by job, attempt, step and node.
 * (3) A step that begins and ends between two batches costs one record.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hostlist.h"
#include "spurd/link/session.h"
#include "spurd/step/step.h"
#include "sys/clock.h"
#include "sys/files.h"
#include "sys/log.h"

enum {
    BATCH_MS = 100,
    START_MS = 3,
    BATCH_PARTS = 500,
    PARTS_MAX = 200000, /* that no controller took; the oldest are then dropped, and counted */
    FILE_BYTES_MAX = 256 * 1024 * 1024,
};

struct part {
    uint64_t number;
    uint8_t *bytes; /* packed StepPart */
    uint32_t len;
};

struct reports {
    struct agent *agent;
    uv_timer_t *timer;
    int fd;            /* of the file; -1: none */
    uint64_t last;     /* number of the last part */
    bool all;          /* everything that runs is to be said */
    uint64_t last_ms;  /* when the last report was sent */
    uint64_t ended_ms; /* and the last that said what ended */
    uint64_t lost;
    VEC(struct part) parts;
    size_t sent;                     /* of them, on this connection */
    VEC(struct step_proc *) started; /* not said yet */
};

static void on_timer(uv_timer_t *timer);

static void soon(struct reports *reports)
{
    if (!uv_is_active((uv_handle_t *)reports->timer))
        uv_timer_start(reports->timer, on_timer, BATCH_MS, 0);
}

/* A step is listed before its tasks can ask for it; many that start together are said at once. */
static void at_once(struct reports *reports)
{
    uint64_t now = uv_now(reports->timer->loop), next = reports->last_ms + START_MS;

    uv_timer_start(reports->timer, on_timer, next > now ? next - now : 0, 0);
}

/* ---- the file (2) ---- */

static char *file_path(const struct agent *agent)
{
    return mem_printf("%s/step-parts", agent->spool_dir);
}

static void write_part(struct reports *reports, const struct part *part)
{
    struct str text = { 0 };

    str_add_len(&text, (const char *)&part->len, sizeof(part->len));
    str_add_len(&text, (const char *)part->bytes, part->len);
    if (reports->fd >= 0 && file_write_all(reports->fd, str_text(&text), text.len, NULL) < 0)
        log_warn("step.parts", "error=%s", "the record of a step that ended is only in memory");
    str_done(&text);
}

static void add_part(struct reports *reports, const uint8_t *bytes, size_t len, uint64_t number)
{
    struct part part = { .number = number, .len = (uint32_t)len, .bytes = mem_new(len + 1) };

    memcpy(part.bytes, bytes, len);
    if (reports->parts.len >= PARTS_MAX) {
        free(reports->parts.items[0].bytes);
        vec_remove(&reports->parts, 0);
        reports->sent -= reports->sent > 0;
        if (reports->lost++ % 1000 == 0)
            log_error("step.parts", "lost=%llu error=%s", (unsigned long long)reports->lost,
                      "no controller takes the records of steps");
    }
    vec_push(&reports->parts, part);
}

static void read_file(struct reports *reports, const char *path)
{
    CLEANUP(str_done) struct str text = { 0 };
    size_t at = 0;

    if (file_read(path, FILE_BYTES_MAX, &text, NULL) < 0)
        return;
    const uint8_t *bytes = (const uint8_t *)str_text(&text);
    while (at + sizeof(uint32_t) <= text.len) {
        uint32_t len;
        memcpy(&len, bytes + at, sizeof(len));
        at += sizeof(len);
        if (len > text.len - at)
            break; /* the last one was being written */
        StepPart *part = step_part__unpack(NULL, len, bytes + at);
        if (part) {
            add_part(reports, bytes + at, len, part->number);
            reports->last = MAX(reports->last, part->number);
            step_part__free_unpacked(part, NULL);
        }
        at += len;
    }
}

void step_reports_open(struct agent *agent)
{
    struct reports *reports = agent->steps->reports = NEW(struct reports);
    CLEANUP(freep) char *path = file_path(agent);

    reports->agent = agent;
    reports->timer = NEW(uv_timer_t);
    uv_timer_init(agent->uv, reports->timer);
    reports->timer->data = reports;
    reports->last = (uint64_t)clock_wall_us(); /* above every number of an earlier run */
    read_file(reports, path);
    reports->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static void free_handle(uv_handle_t *handle)
{
    free(handle);
}

void step_reports_close(struct agent *agent)
{
    struct reports *reports = TAKE(agent->steps->reports);

    uv_timer_stop(reports->timer);
    uv_close((uv_handle_t *)reports->timer, free_handle);
    vec_each (struct part, part, &reports->parts)
        free(part->bytes);
    vec_done(&reports->parts);
    vec_done(&reports->started);
    file_close(&reports->fd);
    free(reports);
}

void step_report_acked(struct agent *agent, uint64_t number)
{
    struct reports *reports = agent->steps->reports;
    size_t gone = 0;

    while (gone < reports->parts.len && reports->parts.items[gone].number <= number)
        free(reports->parts.items[gone++].bytes);
    memmove(reports->parts.items, reports->parts.items + gone,
            (reports->parts.len - gone) * sizeof(struct part));
    reports->parts.len -= gone;
    reports->sent -= MIN(reports->sent, gone);
    if (reports->parts.len == 0 && gone && reports->fd >= 0 && ftruncate(reports->fd, 0) < 0)
        log_warn("step.parts", "error=%s", "the file of records cannot be emptied");
}

/* ---- what is said ---- */

static char *node_list(const StepLayout *layout, struct arena *arena)
{
    CLEANUP(hostlist_done) struct hostlist hosts = { 0 };
    CLEANUP(str_done) struct str text = { 0 };

    for (size_t i = 0; i < layout->n_nodes; i++)
        hostlist_push(&hosts, layout->nodes[i]->name, NULL);
    hostlist_format(&hosts, &text);
    return arena_strdup(arena, str_text(&text));
}

static uint32_t cpu_count(const StepLayout *layout)
{
    uint32_t sum = 0;

    for (size_t i = 0; i < layout->n_nodes; i++)
        sum += layout->nodes[i]->cpus;
    return sum;
}

static uint64_t gres_count(const StepNode *node, const char *name)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < node->n_gres; i++) {
        if (str_eq(node->gres[i]->name, name))
            sum += node->gres[i]->count;
    }
    return sum;
}

/* Has it been named by an earlier node, or earlier in this one? */
static bool is_named(const StepLayout *layout, size_t node, size_t at, const char *name)
{
    for (size_t i = 0; i <= node; i++) {
        for (size_t k = 0; k < (i == node ? at : layout->nodes[i]->n_gres); k++) {
            if (str_eq(layout->nodes[i]->gres[k]->name, name))
                return true;
        }
    }
    return false;
}

/* "cpu=2,mem=100M,node=1,gres/gpu=2" */
static char *tres_of(const StepLayout *layout, struct arena *arena)
{
    CLEANUP(str_done) struct str text = { 0 };
    uint64_t mem_mb = 0;

    str_addf(&text, "cpu=%u", cpu_count(layout));
    for (size_t i = 0; i < layout->n_nodes; i++)
        mem_mb += layout->nodes[i]->mem_mb;
    if (mem_mb)
        str_addf(&text, ",mem=%lluM", (unsigned long long)mem_mb);
    str_addf(&text, ",node=%zu", layout->n_nodes);
    for (size_t i = 0; i < layout->n_nodes; i++) {
        for (size_t k = 0; k < layout->nodes[i]->n_gres; k++) {
            const char *name = layout->nodes[i]->gres[k]->name;
            uint64_t sum = 0;
            if (is_named(layout, i, k, name))
                continue;
            for (size_t n = i; n < layout->n_nodes; n++)
                sum += gres_count(layout->nodes[n], name);
            str_addf(&text, ",gres/%s=%llu", name, (unsigned long long)sum);
        }
    }
    return arena_strdup(arena, str_text(&text));
}

/* "gres/gpu:2": what the first node gives. */
static char *tres_per_node(const StepLayout *layout, struct arena *arena)
{
    const StepNode *first = layout->nodes[0];
    CLEANUP(str_done) struct str text = { 0 };

    for (size_t i = 0; i < first->n_gres; i++) {
        if (!is_named(layout, 0, i, first->gres[i]->name))
            str_addf(&text, "%sgres/%s:%llu", text.len ? "," : "", first->gres[i]->name,
                     (unsigned long long)gres_count(first, first->gres[i]->name));
    }
    return text.len ? arena_strdup(arena, str_text(&text)) : NULL;
}

static StepInfo *info_of(const struct step_proc *proc, struct arena *arena)
{
    const StepLayout *layout = proc->layout;
    StepInfo *info = ARENA_NEW(arena, StepInfo);

    step_info__init(info);
    info->id = layout->id;
    info->name = layout->name;
    info->has_started_us = info->has_node_count = info->has_ntasks = info->has_cpus = true;
    info->started_us = proc->started_us ? proc->started_us : proc->launched_us;
    info->nodes = node_list(layout, arena);
    info->node_count = (uint32_t)layout->n_nodes;
    info->ntasks = layout->ntasks;
    info->cpus = cpu_count(layout);
    info->has_time_limit_s = layout->has_time_limit_s;
    info->time_limit_s = layout->time_limit_s;
    info->host = layout->host;
    info->has_pid = layout->has_pid;
    info->pid = layout->pid;
    info->tres = tres_of(layout, arena);
    info->tres_per_node = tres_per_node(layout, arena);
    info->distribution = layout->distribution;
    info->cpu_freq = layout->cpu_freq;
    info->resv_ports = layout->resv_ports;
    info->submit_line = layout->submit_line;
    info->has_suspended = true;
    info->suspended = proc->frozen != 0;
    return info;
}

static bool says_that_it_runs(const struct step_proc *proc) /* (1) */
{
    return proc->layout && (proc->started_us || proc->launched_us) && !proc->ended &&
           proc->layout->n_nodes && str_eq(proc->layout->nodes[0]->name, proc->agent->name);
}

static void fill_running(struct reports *reports, struct arena *arena, StepsReport *out)
{
    const struct steps *steps = reports->agent->steps;
    size_t count = reports->all ? steps->procs.len : reports->started.len;
    struct step_proc **list = reports->all ? steps->procs.items : reports->started.items;

    out->has_all = out->all = reports->all;
    out->running = ARENA_ARRAY(arena, StepInfo *, count + 1);
    for (size_t i = 0; i < count; i++) {
        if (says_that_it_runs(list[i]))
            out->running[out->n_running++] = info_of(list[i], arena);
    }
}

static void fill_ended(struct reports *reports, struct arena *arena, StepsReport *out)
{
    size_t count = MIN(reports->parts.len - reports->sent, (size_t)BATCH_PARTS);

    out->ended = ARENA_ARRAY(arena, StepPart *, count + 1);
    for (size_t i = 0; i < count; i++) {
        const struct part *part = &reports->parts.items[reports->sent + i];
        StepPart *ended = step_part__unpack(NULL, part->len, part->bytes);
        if (ended)
            out->ended[out->n_ended++] = ended;
    }
    reports->sent += count;
}

static void on_timer(uv_timer_t *timer)
{
    struct reports *reports = timer->data;
    struct agent *agent = reports->agent;
    NodeMessage message = NODE_MESSAGE__INIT;
    StepsReport report = STEPS_REPORT__INIT;
    struct arena arena;

    if (!agent->welcomed || !agent->session)
        return; /* the welcome says it all again */
    arena_init(&arena);
    fill_running(reports, &arena, &report);
    if (uv_now(timer->loop) >= reports->ended_ms + BATCH_MS || reports->all) {
        fill_ended(reports, &arena, &report); /* many in one entry of the log */
        reports->ended_ms = uv_now(timer->loop);
    }
    vec_clear(&reports->started);
    reports->all = false;
    if (report.n_running || report.n_ended || report.all) {
        message.has_epoch = true;
        message.epoch = agent->table.epoch;
        message.what_case = NODE_MESSAGE__WHAT_STEPS;
        message.steps = &report;
        session_send(agent->session, &message);
        reports->last_ms = uv_now(timer->loop);
    }
    for (size_t i = 0; i < report.n_ended; i++)
        step_part__free_unpacked(report.ended[i], NULL);
    arena_done(&arena);
    if (reports->sent < reports->parts.len)
        soon(reports);
}

void step_report_all(struct agent *agent)
{
    struct reports *reports = agent->steps->reports;

    reports->all = true;
    reports->sent = 0;
    soon(reports);
}

void step_report_started(struct step_proc *proc)
{
    struct reports *reports = proc->agent->steps->reports;

    if (!says_that_it_runs(proc))
        return;
    for (size_t i = 0; i < reports->started.len; i++) {
        if (reports->started.items[i] == proc)
            return;
    }
    vec_push(&reports->started, proc);
    at_once(reports);
}

/* Why it ended, in one word. */
static JobState state_of(const StepEnded *ended)
{
    if (ended->has_state)
        return ended->state;
    return ended->exit_status || ended->launch_failed ? JOB_FAILED : JOB_COMPLETED;
}

void step_report_ended(struct step_proc *proc, const StepEnded *ended)
{
    struct reports *reports = proc->agent->steps->reports;
    const StepLayout *layout = proc->layout;
    const StepNode *here = layout ? step_layout_here(layout, proc->agent->name) : NULL;
    StepPart part = STEP_PART__INIT;
    StepId id = STEP_ID__INIT;
    struct arena arena;

    for (size_t i = reports->started.len; i-- > 0;) {
        if (reports->started.items[i] == proc)
            vec_remove(&reports->started, i); /* (3) */
    }
    arena_init(&arena);
    id.has_job_id = id.has_attempt = id.has_step = true;
    id.job_id = proc->job;
    id.attempt = proc->attempt;
    id.step = proc->step;
    part.id = &id;
    part.node = proc->agent->name;
    part.has_number = part.has_state = part.has_exit_status = true;
    part.number = ++reports->last;
    part.state = state_of(ended);
    part.exit_status = ended->exit_status;
    part.has_started_us = part.has_ended_us = true;
    part.started_us = ended->has_started_us ? ended->started_us : proc->started_us;
    part.ended_us = ended->ended_us;
    part.usage = ended->usage;
    if (here) {
        part.name = layout->name;
        part.nodes = node_list(layout, &arena);
        part.has_node_count = part.has_ntasks = part.has_cpus = part.has_tasks_here = true;
        part.node_count = (uint32_t)layout->n_nodes;
        part.ntasks = layout->ntasks;
        part.cpus = cpu_count(layout);
        part.tres = tres_of(layout, &arena);
        part.submit_line = layout->submit_line;
        part.tasks_here = (uint32_t)here->n_tasks;
        part.has_mem_mb = here->has_mem_mb;
        part.mem_mb = here->mem_mb;
    }
    size_t len = step_part__get_packed_size(&part);
    uint8_t *bytes = ARENA_ARRAY(&arena, uint8_t, len + 1);
    step_part__pack(&part, bytes);
    add_part(reports, bytes, len, part.number);
    write_part(reports, &reports->parts.items[reports->parts.len - 1]);
    arena_done(&arena);
    soon(reports);
}
