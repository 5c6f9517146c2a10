/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_bulk.c - one request about many jobs
 *
 * (1) Who may change a job: its owner, operators, administrators.
 * (2) Each id that is named becomes a command with a request id of its own, made from the request's
 *     and the id's place: asked again, each is answered as the first time. Many are named
 *     NAMED_PER_TURN in a turn of the loop.
 * (3) What a filter matches is done in order of job id, IDS_PER_COMMAND at a time, the next when the
 *     last is durable, and found LOOKS_PER_TURN jobs at a time. An array that is matched is its record:
 *     those of its tasks are matched by themselves. So is an array that is named and has many. All carry the request's id, and core remembers how far it got: asked again,
 *     also of another leader, it goes on from there and does nothing twice. That there was nothing to do
 *     is remembered too: what comes later was not meant, however late a second copy of the request is.
 * (4) Many tasks of an array that are named are done IDS_PER_COMMAND at a time too, since each gets a
 *     record. Those that wait come first and together when that costs nothing: all of them are the array's
 *     record, and cancelled ones need none. How far it got is 2 + the number of the last task, 1 after
 *     those that wait.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/limits.h"
#include "spurctld/ctl/ctl_bulk.h"

enum { IDS_PER_COMMAND = 200, LOOKS_PER_TURN = 5000, NAMED_PER_TURN = 500 };

struct ctl_bulk {
    struct ctl_ask *ask;
    Command *command;
    unsigned waiting; /* commands not yet applied, and one while they are still being made */
    VEC(JobResult *) results;
    struct err err; /* of the log */
    char **named;   /* (2): ids, of which named_at have been looked at */
    size_t named_count, named_at;
    /* (3) */
    struct query *query;
    struct query_cursor cursor;
    uint32_t after;                /* the last job of the last command */
    uint32_t next_id;              /* jobs that come later are not meant */
    uint32_t ids[IDS_PER_COMMAND]; /* that were found for the next command */
    size_t id_count;
    /* Of an array that was named: */
    struct ctl_bulk *of;
    const char *id;
    uint8_t request_id[16];
    bool done;             /* something was */
    enum err_code refused; /* the first that was not */
    uint32_t array;        /* (4): whose tasks those are; 0: they are jobs */
    struct bitset tasks;   /* that are left */
    bool together;         /* those that wait are to come first */
};

struct many_one {
    struct ctl_bulk *many;
    const char *id;
};

static struct ctl_bulk *many_new(struct ctl_ask *ask, Command *command)
{
    struct ctl_bulk *many = ARENA_NEW(ask->arena, struct ctl_bulk);

    many->ask = ask;
    many->command = command;
    many->waiting = 1;
    return many;
}

static void add_result(struct ctl_bulk *many, const char *id, enum err_code code, const char *text)
{
    JobResult *result = ARENA_NEW(many->ask->arena, JobResult);

    job_result__init(result);
    result->id = arena_strdup(many->ask->arena, id);
    result->has_code = result->has_slurm = true;
    result->code = code;
    result->slurm = (uint32_t)err_slurm(code);
    result->text = arena_strdup(many->ask->arena, text ? text : code ? err_text(code) : NULL);
    vec_push(&many->results, result);
}

static void array_answered(struct ctl_bulk *many);

/* Answers when nothing is waited for any more; the arena, and `many` in it, are gone then. */
static void many_step(struct ctl_bulk *many)
{
    struct ctl_ask *ask = many->ask;
    JobResult **items = many->results.items;
    JobsReply reply = JOBS_REPLY__INIT;

    if (--many->waiting)
        return;
    query_free(many->query);
    bitset_done(&many->tasks);
    if (many->of) {
        array_answered(many);
        return;
    }
    reply.n_results = many->results.len;
    reply.results = items;
    if (many->err.code)
        ask->ops->fail(ask, &many->err);
    else
        ask->ops->reply(ask, &reply.base);
    free(items);
}

static JobSelect **select_of(Command *command)
{
    switch (command->what_case) {
    case COMMAND__WHAT_CANCEL:
        return &command->cancel->jobs;
    case COMMAND__WHAT_UPDATE_JOB:
        return &command->update_job->jobs;
    case COMMAND__WHAT_REQUEUE:
        return &command->requeue->jobs;
    default:
        return &command->suspend->jobs;
    }
}

static void add_rejected(struct ctl_bulk *many, const struct events *events, const char *id)
{
    char number[32];

    events_each(event, events)
    {
        if (event->kind != EVENT_REJECTED)
            continue;
        snprintf(number, sizeof(number), "%u", event->job_id);
        add_result(many, id ? id : number, event->code, event->text);
    }
}

static void next_command(struct ctl *ctl, struct ctl_bulk *many);

/* ---- ids that are named ---- */

static void one_done(struct ctl *ctl, void *arg, const struct events *events, const struct err *err)
{
    struct many_one *one = arg;
    struct ctl_bulk *many = one->many;
    size_t before = many->results.len;

    (void)ctl;
    if (err) {
        many->err = *err;
    } else {
        add_rejected(many, events, one->id);
        const struct event *answer = ctl_answer(events);
        if (many->results.len == before)
            add_result(many, one->id, answer->code, answer->text);
    }
    many_step(many);
}

/* (2) */
void ctl_place_id(const uint8_t id[16], size_t place, uint8_t out[16])
{
    uint64_t halves[2] = { hash_bytes(id, 16, place), hash_bytes(id, 16, ~(uint64_t)place) };

    memcpy(out, place ? (const void *)halves : id, 16);
}

static bool has_many_records(const struct job *job, const struct job_ref *ref);
static void array_id(struct ctl *ctl, struct ctl_bulk *of, const char *id,
                     const uint8_t *request_id, uint32_t after);
static bool tasks_id(struct ctl *ctl, struct ctl_bulk *of, const struct job *job,
                     const struct job_ref *ref, const char *id, const uint8_t *request_id,
                     uint32_t after);

static void one_id(struct ctl *ctl, struct ctl_bulk *many, const char *id, size_t place)
{
    struct ctl_ask *ask = many->ask;
    struct many_one *one = ARENA_NEW(ask->arena, struct many_one);
    JobSelect select = JOB_SELECT__INIT;
    struct job_ref ref;
    struct err err = { 0 };
    struct request_seen seen = { 0 };
    uint8_t request_id[16];

    if (ask->who->request_id) {
        ctl_place_id(ask->who->request_id, place, request_id);
        if (core_request_seen(ctl->state, ask->who->uid, request_id, &seen) && !seen.more) {
            add_result(many, id, seen.code, NULL);
            return;
        }
    }
    if (job_ref_parse(id, &ref, &err) < 0) {
        add_result(many, id, ERR_INVALID_JOB_ID, NULL);
        return;
    }
    uint32_t job_id = ref.has_offset ? ref.id + ref.offset : ref.id;
    const struct job *job = state_job(ctl->state, job_id);
    if (!job || !ctl_may_change(ask, job)) { /* (1) */
        add_result(many, id, job ? ERR_PERMISSION : ERR_INVALID_JOB_ID, NULL);
        return;
    }
    const uint8_t *of_request = ask->who->request_id ? request_id : NULL;
    uint32_t after = seen.more ? seen.job_id : 0;
    if (ref.has_tasks && tasks_id(ctl, many, job, &ref, id, of_request, after))
        return;
    if (!ref.has_tasks && (seen.more || has_many_records(job, &ref))) {
        array_id(ctl, many, id, of_request, after);
        return;
    }
    select.n_job_ids = 1;
    select.job_ids = &job_id;
    if (ref.has_tasks)
        select.array_tasks = arena_strndup(ask->arena, ref.tasks, ref.tasks_len);
    *one = (struct many_one){ many, arena_strdup(ask->arena, id) };
    *select_of(many->command) = &select;
    ctl_stamp_ask(ask, many->command);
    many->command->has_after_job = many->command->has_upto_job = false; /* of an array before it */
    if (ask->who->request_id)
        many->command->request_id.data = request_id;
    many->waiting++;
    ctl_propose(ctl, many->command, one_done, one);
}

static void in_next_turn(struct ctl *ctl, struct ctl_bulk *many)
{
    many->waiting++;
    vec_push(&ctl->asks.finders, many);
    ctl->io.timer(ctl->io.ctx, CTL_TIMER_LISTS, ctl_now(ctl));
}

static void next_named(struct ctl *ctl, struct ctl_bulk *many)
{
    size_t end = MIN(many->named_count, many->named_at + NAMED_PER_TURN);

    for (; many->named_at < end; many->named_at++)
        one_id(ctl, many, many->named[many->named_at], many->named_at);
    if (many->named_at < many->named_count)
        in_next_turn(ctl, many);
}

void ctl_bulk_ids(struct ctl *ctl, struct ctl_ask *ask, Command *command, char **ids, size_t count)
{
    struct ctl_bulk *many = many_new(ask, command);

    if (count > LIMIT_REQUEST_IDS) {
        err_set(&many->err, ERR_TOO_MANY, "%zu ids in one request; %d are the most", count,
                LIMIT_REQUEST_IDS);
    } else {
        many->named = ids;
        many->named_count = count;
        next_named(ctl, many);
    }
    many_step(many);
}

/* ---- what a filter matches ---- */

static void some_done(struct ctl *ctl, void *arg, const struct events *events,
                      const struct err *err)
{
    struct ctl_bulk *many = arg;

    if (err) {
        many->err = *err;
    } else if (many->of) {
        const struct event *answer = ctl_answer(events);
        many->done = many->done || answer->code == ERR_OK;
        many->refused = many->refused ? many->refused : answer->code;
    } else {
        add_rejected(many, events, NULL);
    }
    if (!err && many->after)
        next_command(ctl, many);
    many_step(many);
}

enum found { FOUND_LAST, FOUND_MORE, FOUND_NOT_YET };

static unsigned most_ids(const struct ctl *ctl)
{
    return ctl->self.ids_per_command ? MIN(ctl->self.ids_per_command, IDS_PER_COMMAND)
                                     : (unsigned)IDS_PER_COMMAND;
}

/* At most IDS_PER_COMMAND ids. */
static enum found find_ids(struct ctl *ctl, struct ctl_bulk *many)
{
    unsigned most = most_ids(ctl);
    unsigned budget = LOOKS_PER_TURN;
    const struct job *job;
    uint32_t task;

    for (;;) {
        struct query_cursor before = many->cursor;
        job = query_next(many->query, ctl->state, &many->cursor, &budget, &task);
        if (!job && !budget)
            return FOUND_NOT_YET;
        if (!job || job->id >= many->next_id)
            return FOUND_LAST;
        if (!ctl_may_change(many->ask, job)) /* (1) */
            continue;
        if (many->id_count == most) {
            many->cursor = before;
            return FOUND_MORE;
        }
        many->ids[many->id_count++] = job->id;
    }
}

/* Nothing but the request's id is written. */
static void nothing_to_do(struct ctl *ctl, struct ctl_bulk *many)
{
    if (!many->ask->who->request_id)
        return;
    many->waiting++;
    ctl_propose_time(ctl, many->ask, some_done, many);
}

/* The request is done when `upto` is 0. */
static void propose_some(struct ctl *ctl, struct ctl_bulk *many, JobSelect *select, uint32_t upto)
{
    Command *command = many->command;

    *select_of(command) = select;
    ctl_stamp_ask(many->ask, command);
    if (many->of && many->ask->who->request_id)
        command->request_id.data = many->request_id;
    command->has_after_job = true;
    command->after_job = many->after;
    command->has_upto_job = upto != 0;
    command->upto_job = many->after = upto;
    many->waiting++;
    ctl_propose(ctl, command, some_done, many);
}

static void next_tasks(struct ctl *ctl, struct ctl_bulk *many);

static void next_command(struct ctl *ctl, struct ctl_bulk *many)
{
    JobSelect select = JOB_SELECT__INIT;

    if (many->array) {
        next_tasks(ctl, many);
        return;
    }
    enum found found = find_ids(ctl, many);
    if (found == FOUND_NOT_YET) {
        in_next_turn(ctl, many);
        return;
    }
    if (!many->id_count) {
        if (!many->after)
            nothing_to_do(ctl, many);
        return;
    }
    select.n_job_ids = many->id_count;
    select.job_ids = many->ids;
    select.has_alone = select.alone = true;
    uint32_t upto = found == FOUND_MORE ? many->ids[many->id_count - 1] : 0;
    many->id_count = 0;
    propose_some(ctl, many, &select, upto);
}

void ctl_bulk_timer(struct ctl *ctl)
{
    if (!ctl->asks.finders.len)
        return;
    struct ctl_bulk *many = ctl->asks.finders.items[0];
    vec_remove(&ctl->asks.finders, 0);
    if (many->named_at < many->named_count)
        next_named(ctl, many);
    else
        next_command(ctl, many);
    many_step(many);
    if (ctl->asks.finders.len)
        ctl->io.timer(ctl->io.ctx, CTL_TIMER_LISTS, ctl_now(ctl));
}

void ctl_bulk_gone(struct ctl *ctl)
{
    vec_each (struct ctl_bulk *, at, &ctl->asks.finders) {
        query_free((*at)->query);
        free((*at)->results.items);
    }
    vec_done(&ctl->asks.finders);
}

/* ---- an array that is named and has many records ---- */

static void array_answered(struct ctl_bulk *many)
{
    struct ctl_bulk *of = many->of;

    if (many->err.code)
        of->err = many->err;
    else
        add_result(of, many->id, many->done ? ERR_OK : many->refused, NULL);
    many_step(of);
}

static void array_id(struct ctl *ctl, struct ctl_bulk *of, const char *id,
                     const uint8_t *request_id, uint32_t after)
{
    struct ctl_bulk *many = many_new(of->ask, of->command);
    ListJobsRequest *filter = ARENA_NEW(of->ask->arena, ListJobsRequest);
    char **ids = ARENA_ARRAY(of->ask->arena, char *, 1);

    list_jobs_request__init(filter);
    many->of = of;
    many->id = ids[0] = arena_strdup(of->ask->arena, id);
    if (request_id)
        memcpy(many->request_id, request_id, sizeof(many->request_id));
    many->after = after;
    many->cursor.job = after ? (uint64_t)after + 1 : 0;
    many->next_id = state_head(ctl->state).next_job_id;
    many->done = after != 0;
    filter->n_ids = 1;
    filter->ids = ids;
    filter->has_all_states = filter->all_states = true;
    filter->has_hidden_too = filter->hidden_too = true;
    of->waiting++;
    if (query_new(ctl->state, filter, &many->query, &many->err) == 0)
        next_command(ctl, many);
    many_step(many);
}

/* ---- many tasks of an array ---- */

/* (4): what the next command does, taken from what is left. */
static uint32_t take_tasks(const struct ctl *ctl, struct ctl_bulk *many, const struct array *array,
                           struct bitset *out)
{
    unsigned most = most_ids(ctl);
    bool waiting = many->together;
    uint32_t upto = 1;

    many->together = false;
    bitset_each (number, &many->tasks) {
        bool waits = array_task(array, (uint32_t)number) == TASK_WAITING;
        if (waiting && !waits)
            continue;
        if (!waiting && most-- == 0)
            break;
        bitset_add(out, number);
        bitset_del(&many->tasks, number);
        upto = waiting ? 1 : (uint32_t)number + 2;
    }
    return bitset_is_empty(&many->tasks) ? 0 : upto;
}

static void next_tasks(struct ctl *ctl, struct ctl_bulk *many)
{
    const struct job *job = state_job(ctl->state, many->array);
    JobSelect select = JOB_SELECT__INIT;
    struct bitset some;
    struct str text = { 0 };

    if (!job || !job->array) { /* the array was forgotten meanwhile */
        many->refused = many->refused ? many->refused : ERR_INVALID_JOB_ID;
        return;
    }
    bitset_init(&some, job->array->count);
    uint32_t upto = take_tasks(ctl, many, job->array, &some);
    if (bitset_is_empty(&some) && upto) /* none waits */
        upto = take_tasks(ctl, many, job->array, &some);
    array_format_set(job->array, &some, &text);
    select.n_job_ids = 1;
    select.job_ids = &many->array;
    select.array_tasks = (char *)str_text(&text);
    propose_some(ctl, many, &select, upto);
    str_done(&text);
    bitset_done(&some);
}

static bool covers_waiting(const struct array *array, const struct bitset *set)
{
    size_t waiting = 0;

    bitset_each (number, set)
        waiting += array_task(array, (uint32_t)number) == TASK_WAITING;
    return waiting == array->waiting;
}

/* (4): those that are done already, when another leader began it. */
static void leave_out_done(struct ctl_bulk *many, const struct array *array)
{
    bitset_each (number, &many->tasks) {
        bool waits = array_task(array, (uint32_t)number) == TASK_WAITING;
        if (number + 2 <= many->after || (many->together && waits))
            bitset_del(&many->tasks, number);
    }
    many->together = false;
}

/* False: there are not so many, one command will do. */
static bool tasks_id(struct ctl *ctl, struct ctl_bulk *of, const struct job *job,
                     const struct job_ref *ref, const char *id, const uint8_t *request_id,
                     uint32_t after)
{
    struct bitset set;
    struct err err = { 0 };

    if (!job->array || job->array->id != job->id ||
        array_select(job->array, ref->tasks, ref->tasks_len, &set, &err) < 0)
        return false; /* core says what is wrong */
    if (!after && bitset_count(&set) <= most_ids(ctl)) {
        bitset_done(&set);
        return false;
    }
    struct ctl_bulk *many = many_new(of->ask, of->command);
    many->of = of;
    many->id = arena_strdup(of->ask->arena, id);
    if (request_id)
        memcpy(many->request_id, request_id, sizeof(many->request_id));
    many->array = job->id;
    many->tasks = set;
    many->together =
        of->command->what_case == COMMAND__WHAT_CANCEL || covers_waiting(job->array, &set);
    many->after = after;
    many->done = after != 0;
    if (after)
        leave_out_done(many, job->array);
    of->waiting++;
    if (!bitset_is_empty(&many->tasks))
        next_tasks(ctl, many);
    many_step(many);
    return true;
}

static bool has_many_records(const struct job *job, const struct job_ref *ref)
{
    return !ref->has_tasks && job->array && job->array->id == job->id &&
           job->array->records > IDS_PER_COMMAND;
}

void ctl_bulk_filter(struct ctl *ctl, struct ctl_ask *ask, Command *command,
                     const ListJobsRequest *filter)
{
    struct ctl_bulk *many = many_new(ask, command);
    struct request_seen seen = { .more = true };

    ctl_seen(ctl, ask, &seen);
    many->after = seen.job_id;
    many->cursor.job = seen.job_id ? (uint64_t)seen.job_id + 1 : 0;
    many->next_id = state_head(ctl->state).next_job_id;
    if (seen.more && query_new(ctl->state, filter, &many->query, &many->err) == 0)
        next_command(ctl, many); /* (3) */
    many_step(many);
}
