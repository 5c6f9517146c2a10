/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_dep_notify.c - many who wait for one are told in parts, and it comes to the same
 */
#include "core/test/fixture.h"
#include "core/view/view.h"

static uint64_t random_state;

static unsigned any(unsigned below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)((random_state >> 33) % below);
}

static uint32_t submit(struct fix *fix, const char *name, const char *array, const char *dependency,
                       bool kill)
{
    JobSpec spec = fix_spec();

    spec.name = (char *)(uintptr_t)name;
    spec.array = (char *)(uintptr_t)array;
    spec.dependency = (char *)(uintptr_t)dependency;
    if (kill)
        SET(&spec, kill_on_invalid_dep, true);
    return fix_submit(fix, &spec);
}

static uint32_t submit_after(struct fix *fix, const char *type, uint32_t id, bool kill)
{
    char text[60];

    snprintf(text, sizeof(text), "%s:%u", type, id);
    return submit(fix, "waiter", NULL, text, kill);
}

/* As the leader: CmdTime at once while something is left. How many it took. */
static unsigned drain(struct fix *fix)
{
    unsigned count = 0;

    while (core_next_due(fix->state) <= fix->state->time_us) {
        fix_time(fix, 0);
        count++;
        assert_true(count < 10000);
    }
    return count;
}

/* ---- one thing at a time ---- */

enum { MANY = 20 };

/* A job, and many who wait for it; two are told by each command. */
static struct fix *hub(const char *type, bool kill, uint32_t *out)
{
    struct fix *fix = fix_new(1);

    fix->state->notify_most = 2;
    fix->mirror = fix_copy(fix);
    *out = fix_job(fix);
    for (unsigned i = 0; i < MANY; i++)
        submit_after(fix, type, *out, kill);
    return fix;
}

static unsigned eligible(const struct fix *fix, uint32_t hub_id)
{
    unsigned count = 0;

    for (uint32_t id = hub_id + 1; id <= hub_id + MANY; id++)
        count += job_is_eligible(fix_get(fix, id));
    return count;
}

static void all_are_told_once_in_order(void **unused)
{
    uint32_t id;
    struct fix *fix = hub("afterany", false, &id);
    uint32_t next = id + 1;

    fix_cancel(fix, id, NULL);
    do {
        unsigned some = 0;
        events_each(event, &fix->events)
        {
            if (event->kind != EVENT_JOB_ELIGIBLE)
                continue;
            assert_int_equal(event->job_id, next++);
            some++;
        }
        assert_true(some <= 2);
        assert_int_equal(eligible(fix, id), next - id - 1);
        if (next <= id + MANY) { /* the others say what they said, and time asks for more */
            assert_int_equal(fix_reason(fix, next), REASON_DEPENDENCY);
            assert_true(core_next_due(fix->state) <= fix->state->time_us);
        }
        fix_time(fix, 0);
    } while (next <= id + MANY);
    assert_true(core_next_due(fix->state) > fix->state->time_us);
    assert_int_equal(dep_waiters_len(&fix->state->dep_waiters), 0);
    fix_free(fix);
}

/* Only CmdTime goes on: a batch of other commands takes no longer because of it. */
static void other_commands_do_not_pay(void **unused)
{
    uint32_t id;
    struct fix *fix = hub("afterany", false, &id);

    fix_cancel(fix, id, NULL);
    for (unsigned i = 0; i < 5; i++)
        fix_job(fix);
    assert_int_equal(eligible(fix, id), 2);
    fix_time(fix, 0);
    assert_int_equal(eligible(fix, id), 4);
    fix_free(fix);
}

/* What it had become counts, not what it is when their turn comes. */
static void requeued_before_all_are_told(void **unused)
{
    static const struct {
        const char *type;
        uint32_t status;
        bool starts;
    } rows[] = { { "afterok", 0, false }, { "afternotok", 256, false }, { "after", 0, true } };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint32_t id;
        struct fix *fix = hub(rows[i].type, false, &id);
        fix_start(fix, id, "n1", 1);
        if (!rows[i].starts)
            fix_finish(fix, id, rows[i].status);
        assert_int_equal(fix_requeue(fix, id, false), ERR_OK);
        assert_int_equal(eligible(fix, id), 2);
        /* Who comes now waits for its next end. */
        uint32_t late = submit_after(fix, rows[i].type, id, false);
        drain(fix);
        assert_int_equal(eligible(fix, id), MANY);
        assert_false(job_is_eligible(fix_get(fix, late)));
        fix_free(fix);
    }
}

static void forgotten_before_all_are_told(void **unused)
{
    uint32_t id;
    struct fix *fix = hub("afterok", false, &id);

    fix_start(fix, id, "n1", 1);
    fix_finish(fix, id, 0);
    fix_time(fix, 100000); /* long after MinJobAge, as after an outage */
    assert_non_null(fix_get(fix, id));
    drain(fix);
    assert_null(state_job(fix->state, id));
    assert_int_equal(eligible(fix, id), MANY);
    fix_free(fix);
}

static void failures_kill_in_parts(void **unused)
{
    uint32_t id;
    struct fix *fix = hub("afterok", true, &id);
    uint32_t last = submit_after(fix, "afterany", id + MANY, false);

    fix_start(fix, id, "n1", 1);
    fix_finish(fix, id, 256);
    assert_state(fix, id + 2, JOB_CANCELLED);
    assert_state(fix, id + 3, JOB_PENDING);
    /* One that is named hears of it first: there is nothing left to cancel or to change. */
    assert_int_equal(fix_cancel(fix, id + MANY, NULL), ERR_ALREADY_DONE);
    assert_int_equal(fix_get(fix, id + MANY)->reason, REASON_DEP_INVALID);
    JobSpec change = JOB_SPEC__INIT;
    change.dependency = (char *)"";
    assert_int_not_equal(fix_update(fix, id + MANY - 1, &change, false), ERR_OK);
    assert_state(fix, id + MANY - 1, JOB_CANCELLED);
    /* One that is requeued was cancelled before: who waited for it hears of that. */
    uint32_t other = submit_after(fix, "afterany", id + 10, false);
    assert_int_equal(fix_requeue(fix, id + 10, true), ERR_OK);
    assert_state(fix, id + 10, JOB_PENDING);
    drain(fix);
    for (uint32_t i = id + 1; i <= id + MANY; i++)
        assert_state(fix, i, i == id + 10 ? JOB_PENDING : JOB_CANCELLED);
    assert_true(job_is_eligible(fix_get(fix, last)));
    assert_true(job_is_eligible(fix_get(fix, other)));
    fix_free(fix);
}

static void who_is_cancelled_or_changed_is_not_told(void **unused)
{
    uint32_t id;
    struct fix *fix = hub("afterany", false, &id);
    uint32_t other = fix_job(fix);
    JobSpec change = JOB_SPEC__INIT;
    char text[40];

    snprintf(text, sizeof(text), "afterok:%u", other);
    change.dependency = text;
    fix_cancel(fix, id, NULL);
    fix_cancel(fix, id + 10, NULL);
    assert_int_equal(fix_update(fix, id + 12, &change, false), ERR_OK);
    fix_hold(fix, id + 14, 1, false);
    drain(fix);
    assert_state(fix, id + 10, JOB_CANCELLED);
    assert_int_equal(fix_reason(fix, id + 12), REASON_DEPENDENCY);
    assert_int_equal(fix_reason(fix, id + 14), REASON_HELD_USER);
    assert_null(fix_get(fix, id + 14)->deps);
    assert_int_equal(eligible(fix, id), MANY - 3);
    fix_free(fix);
}

static void a_restart_goes_on_where_it_was(void **unused)
{
    uint32_t id;
    struct fix *fix = hub("afterok", true, &id);

    fix_start(fix, id, "n1", 1);
    fix_finish(fix, id, 0);
    fix_requeue(fix, id, false);
    for (unsigned i = 0; i < 5; i++) {
        struct state *copy = fix_copy(fix); /* checks the digest */
        state_free(fix->state);
        fix->state = copy;
        fix_time(fix, 0); /* the mirror was never restarted and does the same */
    }
    assert_int_equal(eligible(fix, id), 12);
    drain(fix);
    assert_int_equal(eligible(fix, id), MANY);
    fix_free(fix);
}

/* A hundred tasks that wait for their twins. */
static void twins_are_told_in_parts(void **unused)
{
    struct fix *fix = fix_new(1);
    char text[40];

    fix->state->notify_most = 3;
    fix->mirror = fix_copy(fix);
    uint32_t first = submit(fix, "a", "0-99", NULL, false);
    snprintf(text, sizeof(text), "aftercorr:%u", first);
    uint32_t second = submit(fix, "b", "0-99", text, false);
    drain(fix);
    assert_int_equal(fix_get(fix, second)->array->waiting, 100);
    assert_int_equal(fix_cancel(fix, first, "50-79"), ERR_OK);
    assert_int_equal(fix_hold(fix, second, 1, false), ERR_OK); /* also of those not yet told */
    drain(fix);
    assert_int_equal(fix_get(fix, second)->array->waiting, 70);
    assert_int_equal(fix_cancel(fix, first, NULL), ERR_OK);
    assert_true(fix_get(fix, second)->array->waiting > 60);
    assert_int_equal(fix_requeue(fix, first, false), ERR_TRANSITION);
    struct state *copy = fix_copy(fix);
    state_free(fix->state);
    fix->state = copy;
    assert_true(drain(fix) > 20);
    assert_int_equal(fix_get(fix, second)->array->waiting, 0);
    for (uint32_t task = 0; task < 100; task++) {
        const struct job *twin = state_task(fix->state, second, task);
        assert_true(deps_never(twin->deps));
        assert_int_equal(twin->hold, 1);
    }
    /* An array that comes later is told at once what there is, in parts too. */
    fix->check = false;
    uint32_t third = submit(fix, "c", "0-199", text, true);
    assert_true(drain(fix) > 60);
    for (uint32_t task = 0; task < 200; task++) {
        const struct job *twin = state_task(fix->state, third, task);
        assert_int_equal(twin->state, task < 100 ? JOB_CANCELLED : JOB_PENDING);
        assert_int_equal(job_is_eligible(twin), task >= 100);
    }
    fix->check = true;
    fix_time(fix, 1);
    fix_free(fix);
}

/* Records of one array wait for another job of its name, not for each other. */
static void singletons_are_told_in_parts(void **unused)
{
    struct fix *fix = fix_new(1);

    fix->state->notify_most = 3;
    fix->mirror = fix_copy(fix);
    uint32_t first = submit(fix, "alone", NULL, NULL, false);
    uint32_t array = submit(fix, "alone", "0-29", "singleton", false);
    assert_int_equal(fix_start(fix, first, "n1", 1), ERR_OK);
    JobSpec change = JOB_SPEC__INIT;
    SET(&change, nice, 5);
    for (unsigned i = 0; i < 29; i++) { /* each gets its own record */
        uint32_t id = array;
        Command cmd = COMMAND__INIT;
        CmdUpdateJob msg = CMD_UPDATE_JOB__INIT;
        JobSelect jobs = JOB_SELECT__INIT;
        char task[12];
        snprintf(task, sizeof(task), "%u", i);
        jobs.n_job_ids = 1;
        jobs.job_ids = &id;
        jobs.array_tasks = task;
        msg.jobs = &jobs;
        msg.change = &change;
        cmd.what_case = COMMAND__WHAT_UPDATE_JOB;
        cmd.update_job = &msg;
        assert_int_equal(fix_apply(fix, &cmd), ERR_OK);
    }
    uint32_t next = submit(fix, "alone", NULL, "singleton", false);
    fix_finish(fix, first, 0);
    assert_true(drain(fix) >= 9);
    for (uint32_t task = 0; task < 30; task++)
        assert_true(job_is_eligible(state_task(fix->state, array, task)));
    assert_false(job_is_eligible(fix_get(fix, next)));
    fix_cancel(fix, array, NULL);
    drain(fix);
    assert_true(job_is_eligible(fix_get(fix, next)));
    fix_free(fix);
}

/* Of two that run with the name of one that waits, the later one too keeps it waiting. */
static void singletons_wait_for_later_jobs_that_run(void **unused)
{
    struct fix *fix = fix_new(1);
    JobSpec change = JOB_SPEC__INIT;

    uint32_t before = submit(fix, "alone", NULL, NULL, false);
    uint32_t self = submit(fix, "alone", NULL, NULL, false);
    uint32_t after = submit(fix, "alone", NULL, NULL, false);
    uint32_t other = submit(fix, "other", NULL, NULL, false);
    fix_start(fix, after, "n1", 1);
    change.dependency = (char *)"singleton";
    assert_int_equal(fix_update(fix, self, &change, false), ERR_OK);
    assert_false(job_is_eligible(fix_get(fix, self)));
    fix_cancel(fix, before, NULL);
    assert_false(job_is_eligible(fix_get(fix, self)));
    fix_requeue(fix, after, true);
    fix_release(fix, after, "n1");
    assert_true(job_is_eligible(fix_get(fix, self)));
    fix_requeue(fix, before, true); /* it is there again, before it */
    assert_int_equal(fix_update(fix, self, &change, false), ERR_OK);
    assert_false(job_is_eligible(fix_get(fix, self)));
    /* Under another name it is no hindrance. */
    change.dependency = NULL;
    change.name = (char *)"other";
    assert_int_equal(fix_update(fix, before, &change, false), ERR_OK);
    assert_true(job_is_eligible(fix_get(fix, self)));
    assert_true(job_is_eligible(fix_get(fix, other)));
    fix_free(fix);
}

/* ---- in parts or at once: the same ---- */

struct pair {
    struct fix *parts, *once;
};

static const char *const names[] = { "a", "b", "c" };

static void any_dependency(const struct fix *fix, char *text, size_t size)
{
    static const char *const types[] = { "after",     "afterany", "afterok",  "afternotok",
                                         "aftercorr", "afterok",  "afterany", "afterburstbuffer" };
    uint32_t last = fix->state->next_job_id;
    char joiner = any(3) ? ',' : '?';
    size_t used = 0;

    text[0] = '\0';
    for (unsigned i = 0, count = 1 + any(3); i < count; i++) {
        const struct job *job = job_at(fix->state, 1 + any(MIN(last - 1, 8 + any(last))));
        if (!job || (job->array && job->array->id != job->id))
            continue;
        const char *type = types[any(ARRAY_LEN(types))];
        if (used)
            text[used++] = joiner;
        used += (size_t)snprintf(text + used, size - used, "%s:%u", type, job->id);
        if (job->array && any(2) && strcmp(type, "aftercorr") != 0)
            used += (size_t)snprintf(text + used, size - used, "_%u", any(job->array->count));
    }
}

/* The same job in the other state: tasks may have other ids there. */
static const struct job *like(const struct fix *fix, const struct job *job)
{
    if (job->array && job->is_task && job->id != job->array->id)
        return array_record(fix->state, job_at(fix->state, job->array->id)->array,
                            job->array_task_id);
    return job_at(fix->state, job->id);
}

static void compare(const struct pair *pair)
{
    for (const struct job *job = state_job_from(pair->once->state, 0); job;
         job = state_job_from(pair->once->state, (uint64_t)job->id + 1)) {
        const struct job *other = like(pair->parts, job);
        struct str text = { 0 }, more = { 0 };
        if (!other)
            fail_msg("seed %llu: job %u is not there", (unsigned long long)pair->once->seed,
                     job->id);
        if (job->deps)
            deps_format(job->deps, &text);
        if (other->deps)
            deps_format(other->deps, &more);
        if (job->state != other->state || job->flags != other->flags || job->hold != other->hold ||
            job->reason != other->reason || job->attempt != other->attempt ||
            job->restarts != other->restarts || job_is_eligible(job) != job_is_eligible(other) ||
            strcmp(str_text(&text), str_text(&more)) != 0 ||
            (job->array && job->array->bits_hash != other->array->bits_hash))
            fail_msg("seed %llu: job %u: state %u and %u, reason %u and %u, '%s' and '%s'",
                     (unsigned long long)pair->once->seed, job->id, job->state, other->state,
                     job->reason, other->reason, str_text(&text), str_text(&more));
        str_done(&text);
        str_done(&more);
    }
    assert_int_equal(pair->once->state->records, pair->parts->state->records);
}

static void settle_both(struct pair *pair)
{
    drain(pair->parts);
    drain(pair->once);
    compare(pair);
}

static void any_submit(struct pair *pair)
{
    char text[300];
    const char *name = names[any(ARRAY_LEN(names))], *array = any(4) ? NULL : "0-5";
    /* An array that is cancelled as one has no records, one whose twins were told before has some. */
    bool kill = !array && any(4) == 0, depends = any(5) > 0;

    settle_both(pair); /* ids are the same then */
    any_dependency(pair->once, text, sizeof(text));
    /* A singleton is judged by what is there when it is asked. */
    uint32_t id = submit(pair->once, name, array, depends ? text : NULL, kill);
    assert_int_equal(submit(pair->parts, name, array, depends ? text : NULL, kill), id);
}

static const struct job *any_job(const struct pair *pair)
{
    return state_job_from(pair->once->state, 1 + any(pair->once->state->next_job_id));
}

static void any_start(struct pair *pair)
{
    const struct job *job = any_job(pair), *other = job ? like(pair->parts, job) : NULL;

    if (!other || !job_is_eligible(job) || !job_is_eligible(other) || job->array != NULL)
        return;
    fix_start(pair->once, job->id, "n1", 1);
    fix_start(pair->parts, other->id, "n1", 1);
}

static void any_task_start(struct pair *pair)
{
    const struct job *job = any_job(pair), *other = job ? like(pair->parts, job) : NULL;

    if (!other || !job->array || !job_is_eligible(job) || !job_is_eligible(other))
        return;
    if (job->is_task != other->is_task)
        return;
    if (job->is_task) {
        fix_start(pair->once, job->id, "n1", 1);
        fix_start(pair->parts, other->id, "n1", 1);
        return;
    }
    uint32_t number = array_next_waiting(job->array, any(job->array->count));
    if (number == job->array->count || array_task(other->array, number) != TASK_WAITING)
        return;
    fix_start_task(pair->once, job->id, array_task_id(job->array, number), "n1", 1);
    fix_start_task(pair->parts, job->id, array_task_id(job->array, number), "n1", 1);
}

static void any_finish(struct pair *pair)
{
    const struct job *job = any_job(pair), *other = job ? like(pair->parts, job) : NULL;
    uint32_t status = any(3) ? 0 : 256;

    if (!other || job_phase(job) != PHASE_RUNNING || job_phase(other) != PHASE_RUNNING)
        return;
    fix_finish(pair->once, job->id, status);
    fix_finish(pair->parts, other->id, status);
}

/* It waits for one that is to be told something: what comes of that it cannot be told before. */
static void settle_before(struct pair *pair, const struct job *job)
{
    const struct job *other = like(pair->parts, job);
    bool told = true;

    for (size_t i = 0; other->deps && i < other->deps->count; i++)
        told = told && !deps_pending_notice(pair->parts->state, other, &other->deps->items[i]);
    if (told && job_phase(job) != job_phase(other))
        settle_both(pair);
}

static void any_cancel(struct pair *pair)
{
    const struct job *job = any_job(pair);

    if (!job || (job->array && job->array->id != job->id))
        return;
    if (job->array) /* of one half the twins have records, of the other not */
        settle_both(pair);
    const char *tasks = job->array && any(2) ? "2-4" : NULL;
    fix_cancel(pair->once, job->id, tasks);
    fix_cancel(pair->parts, job->id, tasks);
}

static void any_requeue(struct pair *pair)
{
    const struct job *job = any_job(pair), *other = job ? like(pair->parts, job) : NULL;
    bool hold = any(2);

    if (!other || job->array)
        return;
    uint32_t id = job->id;
    bool held = job_holds(job);
    settle_before(pair, job);
    fix_requeue(pair->once, id, hold);
    fix_requeue(pair->parts, id, hold);
    if (held) {
        fix_release(pair->once, id, "n1");
        fix_release(pair->parts, id, "n1");
    }
}

static void any_change(struct pair *pair)
{
    const struct job *job = any_job(pair);
    JobSpec change = JOB_SPEC__INIT;
    char text[300];

    if (!job || job->array)
        return;
    any_dependency(pair->once, text, sizeof(text));
    change.dependency = text;
    uint32_t id = job->id;
    settle_before(pair, job);
    switch (any(3)) {
    case 0:
        fix_hold(pair->once, id, 1, false);
        fix_hold(pair->parts, id, 1, false);
        return;
    case 1:
        fix_hold(pair->once, id, 0, false);
        fix_hold(pair->parts, id, 0, false);
        return;
    default:
        settle_both(pair); /* whether it is a circle is seen from all that wait */
        fix_update(pair->once, id, &change, false);
        fix_update(pair->parts, id, &change, false);
    }
}

static void any_restart(struct pair *pair)
{
    struct fix *fix = pair->parts;
    struct state *copy = fix_copy(fix);

    state_free(fix->state);
    fix->state = copy;
}

static void time_passes(struct pair *pair)
{
    int64_t seconds = any(40) ? 20 : 400;

    settle_both(pair); /* what is due waits for that */
    fix_time(pair->once, seconds);
    fix_time(pair->parts, seconds);
}

static const struct {
    void (*step)(struct pair *pair);
    unsigned weight;
} steps[] = {
    { any_submit, 12 }, { any_start, 20 },  { any_task_start, 14 },
    { any_finish, 25 }, { any_cancel, 6 },  { any_requeue, 12 },
    { any_change, 6 },  { any_restart, 2 }, { time_passes, 2 },
};

static void any_step(struct pair *pair)
{
    unsigned at = any(99);

    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        if (at < steps[i].weight) {
            steps[i].step(pair);
            return;
        }
        at -= steps[i].weight;
    }
}

static uint64_t lagged; /* steps that found something untold */

static void one_seed(uint64_t seed)
{
    struct pair pair = { fix_new(1), fix_new(1) };

    random_state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    pair.once->seed = pair.parts->seed = seed;
    pair.once->state->notify_most = UINT32_MAX;
    pair.parts->state->notify_most = 1;
    pair.parts->mirror = fix_copy(pair.parts);
    fix_job(pair.once);
    fix_job(pair.parts);
    for (unsigned i = 0; i < 300; i++) {
        any_step(&pair);
        lagged += pair.parts->state->dep_pending.first != NULL;
        assert_null(pair.once->state->dep_pending.first);
    }
    settle_both(&pair);
    fix_free(pair.once);
    fix_free(pair.parts);
}

static void in_parts_or_at_once_is_the_same(void **unused)
{
    const char *given = getenv("CORE_SEED");
    uint64_t first = given ? strtoull(given, NULL, 10) : 1, last = given ? first : 12;
    const char *dash = given ? strchr(given, '-') : NULL;

    if (dash)
        last = strtoull(dash + 1, NULL, 10);
    for (uint64_t seed = first; seed <= last; seed++)
        one_seed(seed);
    assert_true(given || lagged > 100);
}

UNIT_MAIN(UNIT(all_are_told_once_in_order), UNIT(other_commands_do_not_pay),
          UNIT(requeued_before_all_are_told), UNIT(forgotten_before_all_are_told),
          UNIT(failures_kill_in_parts), UNIT(who_is_cancelled_or_changed_is_not_told),
          UNIT(a_restart_goes_on_where_it_was), UNIT(twins_are_told_in_parts),
          UNIT(singletons_are_told_in_parts), UNIT(singletons_wait_for_later_jobs_that_run),
          UNIT(in_parts_or_at_once_is_the_same))
