/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched.c - the planner: fed by events, asked for a plan
 *
 * EASY backfill: jobs start in order while they fit. The first that does not gets a reservation:
 * the earliest time it can start if running jobs end at their limits, and the nodes it takes then.
 * A later job may start before it if it ends by that time or stays off those nodes.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/sched_priv.h"

/* ---- life ---- */

static int by_weight(const void *a, const void *b, void *state)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    uint32_t wx = state_node_at(state, x)->weight, wy = state_node_at(state, y)->weight;

    if (wx != wy)
        return wx < wy ? -1 : 1;
    return (x > y) - (x < y);
}

/* Everything that goes by node numbers, from the state. */
static void read_nodes(struct sched *sched)
{
    size_t count = state_node_count(sched->state);

    vec_clear(&sched->order);
    vec_clear(&sched->held);
    for (size_t i = 0; i < count; i++) {
        vec_push(&sched->order, (uint32_t)i);
        vec_push(&sched->held, (struct held){ 0 });
    }
    if (count)
        qsort_r(sched->order.items, count, sizeof(uint32_t), by_weight, (void *)sched->state);
    bitset_done(&sched->top_nodes);
    bitset_init(&sched->top_nodes, count);
    sched->top_job = 0;
}

static void clear_queue(struct sched *sched)
{
    map_each (entry, &sched->entries)
        free(entry->value);
    map_clear(&sched->entries);
    vec_each (struct class *, class, &sched->classes) {
        vec_done(&(*class)->queue);
        free(*class);
    }
    vec_clear(&sched->classes);
    map_clear(&sched->class_of);
}

static void drop_tentative(struct sched *sched, size_t at, bool give_back)
{
    struct tentative *t = &sched->tentative.items[at];

    for (size_t i = 0; give_back && i < t->count; i++) {
        struct held *held = &sched->held.items[t->parts[i].node];
        held->cpus -= t->parts[i].take.cpus;
        held->mem_mb -= t->parts[i].take.mem_mb;
        held->jobs--;
        held->whole -= t->whole;
        for (size_t g = 0; g < TAKE_GRES; g++)
            held->gres[g] -= t->parts[i].take.gres[g];
    }
    free(t->parts);
    *t = sched->tentative.items[--sched->tentative.len];
}

static void rebuild(struct sched *sched)
{
    while (sched->tentative.len)
        drop_tentative(sched, sched->tentative.len - 1, false);
    clear_queue(sched);
    read_nodes(sched);
    for (const struct job *job = state_job_from(sched->state, 1); job;
         job = state_job_from(sched->state, (uint64_t)job->id + 1))
        queue_add(sched, job);
    sched->version++;
}

struct sched *sched_new(const struct state *state)
{
    struct sched *sched = NEW(struct sched);

    sched->state = state;
    sched->version = 1;
    map_init(&sched->entries);
    map_init(&sched->class_of);
    arena_init(&sched->plan_arena);
    rebuild(sched);
    return sched;
}

void sched_free(struct sched *sched)
{
    if (!sched)
        return;
    while (sched->tentative.len)
        drop_tentative(sched, sched->tentative.len - 1, false);
    clear_queue(sched);
    map_done(&sched->entries);
    map_done(&sched->class_of);
    vec_done(&sched->classes);
    vec_done(&sched->tentative);
    vec_done(&sched->held);
    vec_done(&sched->order);
    vec_done(&sched->starts);
    bitset_done(&sched->top_nodes);
    arena_done(&sched->plan_arena);
    free(sched);
}

/* ---- what is planned and not yet applied ---- */

static size_t find_tentative(const struct sched *sched, uint32_t job_id, uint32_t task)
{
    size_t i = 0;

    while (i < sched->tentative.len &&
           (sched->tentative.items[i].job_id != job_id || sched->tentative.items[i].task != task))
        i++;
    return i;
}

static void settle(struct sched *sched, uint32_t job_id, uint32_t task, bool again)
{
    size_t at = find_tentative(sched, job_id, task);
    struct entry *entry = map_get_num(&sched->entries, job_id);

    if (at < sched->tentative.len)
        drop_tentative(sched, at, true);
    if (!entry)
        return;
    if (entry->planned)
        entry->planned--;
    if (!again)
        return;
    entry->next_task = 0;
    /*
     * Something changed after it was planned: look again, but once. If core goes on refusing what
     * we plan while nothing changes, proposing it for ever would help nobody.
     */
    if (entry->refused != sched->version)
        entry->class->tried = 0;
    entry->refused = sched->version;
}

void sched_abandon(struct sched *sched, const CmdStart *start)
{
    for (size_t i = 0; i < start->n_starts; i++)
        settle(sched, start->starts[i]->job_id,
               start->starts[i]->has_array_task_id ? start->starts[i]->array_task_id : NO_TASK,
               true);
    sched->version++;
}

void sched_abandon_all(struct sched *sched)
{
    while (sched->tentative.len) {
        struct tentative *t = &sched->tentative.items[sched->tentative.len - 1];
        settle(sched, t->job_id, t->task, true);
    }
    sched->version++;
}

/* ---- events ---- */

static void started(struct sched *sched, const struct event *event)
{
    const struct job *job = event->job;
    bool is_task = event->task != NO_TASK && event->array_id;

    settle(sched, is_task ? event->array_id : job->id, is_task ? event->task : NO_TASK, false);
    if (!is_task) {
        queue_remove(sched, job->id);
        return;
    }
    /* A task that had a record of its own was planned by its own id. */
    settle(sched, job->id, NO_TASK, false);
    queue_remove(sched, job->id);
    /* The array's record stays while tasks wait in it, or while it is another task that waits. */
    const struct job *first = state_job(sched->state, event->array_id);
    if (!first || !job_is_eligible(first) || (job_is_meta(first) && !first->array->waiting))
        queue_remove(sched, event->array_id);
}

void sched_feed(struct sched *sched, const struct event *event)
{
    switch (event->kind) {
    case EVENT_JOB_SUBMITTED:
    case EVENT_JOB_ELIGIBLE:
    case EVENT_JOB_REQUEUED:
    case EVENT_TASK_SPLIT:
        if (event->job)
            queue_add(sched, event->job);
        break;
    case EVENT_JOB_CHANGED:
        if (event->job && event->job->state == JOB_PENDING)
            queue_add(sched, event->job);
        sched->version++; /* a running job's new limit moves what is planned behind it */
        break;
    case EVENT_JOB_WAITING:
        queue_remove(sched, event->job->id);
        break;
    case EVENT_JOB_STARTED:
        started(sched, event);
        break;
    case EVENT_REJECTED:
        settle(sched, event->job_id, event->task, true);
        break;
    case EVENT_JOB_ENDED:
    case EVENT_JOB_FORGOTTEN:
        queue_remove(sched, event->job ? event->job->id : event->job_id);
        sched->version++; /* a throttled array may go on */
        break;
    case EVENT_TASKS_CANCELLED:
        if (event->job && !job_is_eligible(event->job))
            queue_remove(sched, event->job->id);
        break;
    case EVENT_JOB_RELEASED:
    case EVENT_JOB_CLEAN:
    case EVENT_NODE_UP:
    case EVENT_NODE_CHANGED:
    case EVENT_RESERVATION:
        sched->version++;
        break;
    case EVENT_NODE_DOWN:
        sched->top_job = 0;
        sched->version++;
        break;
    case EVENT_PARTITION:
    case EVENT_CONFIG:
        rebuild(sched);
        break;
    default:
        break;
    }
}

void sched_feed_all(struct sched *sched, const struct events *events)
{
    events_each(event, events) sched_feed(sched, event);
}

/* ---- the plan ---- */

static void hold(struct sched *sched, const struct job *job, uint32_t task, bool whole,
                 const struct parts *parts)
{
    struct tentative t = { .job_id = job->id, .task = task, .whole = whole };

    t.count = parts->list.len;
    t.parts = NEW_ARRAY(struct chosen, t.count + 1);
    memcpy(t.parts, parts->list.items, t.count * sizeof(*t.parts));
    for (size_t i = 0; i < t.count; i++) {
        struct held *held = &sched->held.items[t.parts[i].node];
        held->cpus += t.parts[i].take.cpus;
        held->mem_mb += t.parts[i].take.mem_mb;
        held->jobs++;
        held->whole += whole;
        for (size_t g = 0; g < TAKE_GRES; g++)
            held->gres[g] += t.parts[i].take.gres[g];
    }
    vec_push(&sched->tentative, t);
}

static NodeAlloc *node_alloc(struct sched *sched, const struct chosen *chosen)
{
    struct arena *arena = &sched->plan_arena;
    const struct node *node = state_node_at(sched->state, chosen->node);
    NodeAlloc *out = ARENA_NEW(arena, NodeAlloc);

    node_alloc__init(out);
    out->node = node->spec->name;
    out->has_cpus = out->has_mem_mb = out->has_tasks = true;
    out->cpus = chosen->take.cpus;
    out->mem_mb = chosen->take.mem_mb;
    out->tasks = chosen->take.tasks;
    out->gres = ARENA_ARRAY(arena, GresAlloc *, node->gres_count + 1);
    for (size_t g = 0; g < node->gres_count && g < TAKE_GRES; g++) {
        if (!chosen->take.gres[g])
            continue;
        GresAlloc *gres = ARENA_NEW(arena, GresAlloc);
        gres_alloc__init(gres);
        gres->name = (char *)node->gres[g].name;
        gres->type = (char *)node->gres[g].type;
        gres->has_count = true;
        gres->count = chosen->take.gres[g];
        out->gres[out->n_gres++] = gres;
    }
    return out;
}

static JobStart *job_start(struct sched *sched, const struct job *job, uint32_t task,
                           const struct need *need, const struct parts *parts)
{
    struct arena *arena = &sched->plan_arena;
    JobStart *start = ARENA_NEW(arena, JobStart);
    Allocation *allocation = ARENA_NEW(arena, Allocation);

    job_start__init(start);
    allocation__init(allocation);
    start->has_job_id = start->has_attempt = true;
    start->job_id = job->id;
    start->attempt = job->attempt + 1;
    start->has_array_task_id = task != NO_TASK;
    start->array_task_id = task;
    start->allocation = allocation;
    allocation->partition = need->partition->spec->name;
    allocation->nodes = ARENA_ARRAY(arena, NodeAlloc *, parts->list.len);
    for (size_t i = 0; i < parts->list.len; i++)
        allocation->nodes[allocation->n_nodes++] = node_alloc(sched, &parts->list.items[i]);
    return start;
}

/* Places the job, or all components that start with it. */
static bool plan_job(struct sched *sched, const struct job *job, uint32_t task,
                     const struct view *view)
{
    uint32_t count = job->more && job->more->het_count ? job->more->het_count : 1;
    CmdStart *command = ARENA_NEW(&sched->plan_arena, CmdStart);
    struct parts parts = { 0 };
    const struct need *need;
    bool good = true;

    cmd_start__init(command);
    command->starts = ARENA_ARRAY(&sched->plan_arena, JobStart *, count);
    for (uint32_t i = 0; good && i < count; i++) {
        const struct job *component = i ? state_job(sched->state, job->id + i) : job;
        good =
            component && job_is_eligible(component) && place(sched, component, view, &parts, &need);
        if (!good)
            break;
        command->starts[command->n_starts++] = job_start(sched, component, task, need, &parts);
        hold(sched, component, task, need->whole_nodes, &parts);
    }
    if (good)
        vec_push(&sched->starts, command);
    for (uint32_t i = 0; !good && i < command->n_starts; i++)
        drop_tentative(sched, find_tentative(sched, job->id + i, task), true);
    vec_done(&parts.list);
    return good;
}

/* The first that must wait: nothing may delay it. */
static void reserve(struct sched *sched, const struct job *job, int64_t now_us)
{
    struct parts parts = { 0 };

    sched->top_job = job->id;
    sched->top_start_us = shadow(sched, job, now_us, &parts);
    bitset_clear(&sched->top_nodes);
    for (size_t i = 0; sched->top_start_us != INT64_MAX && i < parts.list.len; i++)
        bitset_add(&sched->top_nodes, parts.list.items[i].node);
    vec_done(&parts.list);
}

/* Whether the array may run one task more than those that run or are planned. */
static bool array_has_room(const struct sched *sched, const struct array *array)
{
    uint32_t room = array_room(array), planned = 0;

    if (!array->max_running)
        return true;
    vec_each (const struct tentative, t, &sched->tentative) {
        const struct job *job = state_job(sched->state, t->job_id);
        planned += job && job->array == array;
    }
    return room > planned;
}

/* Which task of an array is next; NO_TASK with *any false when none may start now. */
static uint32_t next_task(const struct sched *sched, struct entry *entry, const struct job *job,
                          bool *any)
{
    *any = !entry->planned && (!job->array || array_has_room(sched, job->array));
    if (!job_is_meta(job))
        return NO_TASK;
    uint32_t number = array_next_waiting(job->array, entry->next_task);
    *any = number < job->array->count && array_has_room(sched, job->array);
    if (!*any)
        return NO_TASK;
    entry->next_task = number + 1;
    return array_task_id(job->array, number);
}

/* Starts as many of the class as fit; false when its head must wait. */
static bool plan_class(struct sched *sched, struct class *class, int64_t now_us, unsigned *budget)
{
    for (size_t i = class->head; i < class->queue.len && *budget;) {
        struct entry *entry = class->queue.items[i];
        const struct job *job = state_job(sched->state, entry->job_id);
        bool any;
        uint32_t task = next_task(sched, entry, job, &any);
        if (!any) { /* all of it is planned, or it is throttled: those behind it may go */
            i++;
            continue;
        }
        struct view view = { .start_us = now_us, .end_us = job_end_by(job, now_us) };
        if (sched->top_job && sched->top_start_us != INT64_MAX && view.end_us > sched->top_start_us)
            view.forbidden = &sched->top_nodes;
        --*budget;
        if (!plan_job(sched, job, task, &view)) {
            if (task != NO_TASK)
                entry->next_task--;
            if (!sched->top_job)
                reserve(sched, job, now_us);
            class->tried = sched->version;
            return false;
        }
        entry->planned++;
    }
    if (*budget)
        class->tried = sched->version;
    return true;
}

const struct plan *sched_plan(struct sched *sched, int64_t now_us, unsigned budget)
{
    struct class *class;

    arena_reset(&sched->plan_arena);
    vec_clear(&sched->starts);
    const struct job *top = sched->top_job ? state_job(sched->state, sched->top_job) : NULL;
    if (!top || !job_is_eligible(top) || sched->top_version != sched->version) {
        sched->top_job = 0; /* is found again, in order */
        sched->top_version = sched->version;
    }
    while (budget && (class = queue_best(sched)))
        plan_class(sched, class, now_us, &budget);
    sched->plan.starts = (CmdStart *const *)sched->starts.items;
    sched->plan.count = sched->starts.len;
    sched->plan.more = !budget && queue_best(sched);
    sched->plan.wake_us = INT64_MAX;
    return &sched->plan;
}
