/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps.c - the scripts on a node and their supervisors
 *
 * A supervisor outlives its agent: what happens here to a launched script does not ask whether the
 * agent is up, only whether there is power. Time limits count the time that the script really ran.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/world.h"

/* ---- what the node keeps ---- */

struct grant *machine_grant(const struct machine *machine, uint32_t job_id, uint32_t attempt)
{
    for (size_t i = 0; i < machine->grants.len; i++) {
        struct grant *grant = machine->grants.items[i];
        if (grant->job_id == job_id && grant->attempt == attempt)
            return grant;
    }
    return NULL;
}

struct grant *machine_other(const struct machine *machine, uint32_t job_id, uint32_t attempt)
{
    for (size_t i = 0; i < machine->grants.len; i++) {
        struct grant *grant = machine->grants.items[i];
        if (grant->job_id == job_id && grant->attempt != attempt)
            return grant;
    }
    return NULL;
}

/* The script that the grant is for, when it is this node's to run; NULL before it started. */
struct run *grant_run(struct world *world, const struct machine *machine, const struct grant *grant)
{
    struct run *run = truth_run(world, grant->job_id, grant->attempt);

    return run && run->machine == machine->number ? run : NULL;
}

void machine_forget_grant(struct machine *machine, struct grant *grant)
{
    for (size_t i = 0; i < machine->grants.len; i++) {
        if (machine->grants.items[i] == grant) {
            vec_remove(&machine->grants, i);
            break;
        }
    }
    bitset_done(&grant->cpu_ids);
    free(grant);
}

struct report *machine_report(struct machine *machine, uint32_t job_id, uint32_t attempt)
{
    for (size_t i = 0; i < machine->reports.len; i++) {
        struct report *report = &machine->reports.items[i];
        if (report->job_id == job_id && report->attempt == attempt)
            return report;
    }
    return NULL;
}

static uint64_t key_of(uint32_t job_id, uint32_t attempt)
{
    return (uint64_t)job_id << 32 | attempt;
}

bool machine_has_tombstone(const struct machine *machine, uint32_t job_id, uint32_t attempt)
{
    for (size_t i = machine->tombstones.len; i-- > 0;) {
        if (machine->tombstones.items[i] == key_of(job_id, attempt))
            return true;
    }
    return false;
}

void machine_tombstone(struct world *world, struct machine *machine, uint32_t job_id,
                       uint32_t attempt)
{
    if (world->options.mutation != MUTATE_NO_TOMBSTONES &&
        !machine_has_tombstone(machine, job_id, attempt))
        vec_push(&machine->tombstones, key_of(job_id, attempt));
}

/* ---- what it says ---- */

void machine_send_report(struct world *world, struct machine *machine, struct report *report)
{
    NodeMessage message = NODE_MESSAGE__INIT;
    StepEnded ended = STEP_ENDED__INIT;
    StepId id = STEP_ID__INIT;

    if (!machine->welcomed)
        return;
    world_count(world, report->sent ? COUNT_REPORTS_2 : COUNT_REPORTS);
    report->sent = true;
    report->sent_us = world->now_us;
    id.has_job_id = id.has_attempt = id.has_step = true;
    id.job_id = report->job_id;
    id.attempt = report->attempt;
    id.step = 0xfffffffb;
    ended.id = &id;
    ended.has_exit_status = true;
    ended.exit_status = report->exit_status;
    ended.has_state = report->has_state;
    ended.state = report->state;
    ended.has_released = ended.has_launch_failed = true;
    ended.released = report->released;
    ended.launch_failed = report->launch_failed;
    message.has_epoch = true;
    message.epoch = machine->epoch;
    message.what_case = NODE_MESSAGE__WHAT_ENDED;
    message.ended = &ended;
    TRACE(world, "%s reports end of %u.%u status %x", machine->name, report->job_id,
          report->attempt, report->exit_status);
    wire_to_ctl(world, machine->session, &message);
}

void machine_send_released(struct world *world, struct machine *machine, uint32_t job_id,
                           uint32_t attempt)
{
    NodeMessage message = NODE_MESSAGE__INIT;
    Released released = RELEASED__INIT;

    if (!machine->welcomed)
        return;
    released.has_job_id = released.has_attempt = true;
    released.job_id = job_id;
    released.attempt = attempt;
    message.has_epoch = true;
    message.epoch = machine->epoch;
    message.what_case = NODE_MESSAGE__WHAT_RELEASED;
    message.released = &released;
    TRACE(world, "%s released %u.%u", machine->name, job_id, attempt);
    wire_to_ctl(world, machine->session, &message);
}

static void say_ready(struct world *world, struct machine *machine, const struct grant *grant,
                      const char *refused)
{
    NodeMessage message = NODE_MESSAGE__INIT;
    GrantAck ack = GRANT_ACK__INIT;

    if (!machine->welcomed)
        return; /* hello says it */
    ack.has_job_id = ack.has_attempt = ack.has_refused = true;
    ack.job_id = grant->job_id;
    ack.attempt = grant->attempt;
    ack.refused = refused != NULL;
    ack.text = (char *)refused;
    message.has_epoch = true;
    message.epoch = machine->epoch;
    message.what_case = NODE_MESSAGE__WHAT_GRANT_ACK;
    message.grant_ack = &ack;
    wire_to_ctl(world, machine->session, &message);
}

/* ---- prolog ---- */

static void prepared(struct world *world, const struct happening *what)
{
    struct machine *machine = &world->machines[what->a];
    struct grant *grant = machine_grant(machine, (uint32_t)(what->b >> 32), (uint32_t)what->b);

    if (!machine->agent_up || !grant || grant->turn != what->c)
        return;
    if (fault_on(world, FAULT_NODE) && rand_chance(&world->rand, 20)) {
        TRACE(world, "%s refuses %u.%u: prolog", machine->name, grant->job_id, grant->attempt);
        say_ready(world, machine, grant, "prolog failed");
        machine_tombstone(world, machine, grant->job_id, grant->attempt);
        machine_forget_grant(machine, grant);
        return;
    }
    grant->ready = true;
    say_ready(world, machine, grant, NULL);
    if (grant->has_launch)
        step_launch(world, machine, grant);
}

void step_prepare(struct world *world, struct machine *machine, struct grant *grant)
{
    int64_t takes = rand_skewed(&world->rand, 0, MS);

    if (machine_other(machine, grant->job_id, grant->attempt))
        return; /* an earlier attempt is still here: when it has gone */
    if (world->has_prolog)
        takes = rand_skewed(&world->rand, MS, 20 * SEC);
    grant->turn = ++world->turn;
    world_later(world, takes, prepared, machine->number, key_of(grant->job_id, grant->attempt),
                grant->turn);
}

/* ---- the script ---- */

static void keep_report(struct world *world, struct machine *machine, struct report report)
{
    bool fits = !machine_report(machine, report.job_id, report.attempt);

    if (!fits)
        return;
    if (world->options.mutation == MUTATE_WRONG_EXIT && report.exit_status == 0x100)
        report.exit_status = 0;
    vec_push(&machine->reports, report);
    machine_send_report(world, machine, &machine->reports.items[machine->reports.len - 1]);
    if (world->options.mutation == MUTATE_DROP_REPORTS)
        machine->reports.len--;
}

/* The script is over; its supervisor writes the report, and in the simple case that is all. */
static void script_over(struct world *world, struct machine *machine, struct grant *grant,
                        uint32_t exit_status, JobState state)
{
    struct run *run = grant_run(world, machine, grant);
    struct report report = { .job_id = grant->job_id,
                             .attempt = grant->attempt,
                             .exit_status = exit_status,
                             .has_state = state != JOB_COMPLETED,
                             .state = state };

    grant->turn = ++world->turn;
    truth_stopped(world, run, exit_status);
    TRACE(world, "%s script %u.%u over, status %x", machine->name, grant->job_id, grant->attempt,
          exit_status);
    report.released = grant->alone && !grant->ending;
    if (report.released) {
        machine_tombstone(world, machine, grant->job_id, grant->attempt);
        machine_forget_grant(machine, grant);
    }
    keep_report(world, machine, report);
}

static void script_due(struct world *world, const struct happening *what)
{
    struct machine *machine = &world->machines[what->a];
    struct grant *grant = machine_grant(machine, (uint32_t)(what->b >> 32), (uint32_t)what->b);

    if (!machine->powered || !grant || grant->turn != what->c)
        return;
    struct run *run = grant_run(world, machine, grant);
    const struct request *request = people_request(world, run->request);
    if (run_elapsed_us(world, run) >= run->work_us)
        run->finished = true;
    if (run->finished)
        script_over(world, machine, grant, request->exit_code << 8, JOB_COMPLETED);
    else
        script_over(world, machine, grant, 15, JOB_TIMEOUT);
}

void step_arm(struct world *world, struct machine *machine, struct grant *grant)
{
    const struct run *run = grant_run(world, machine, grant);

    if (!run || !run->alive || grant->ending)
        return;
    grant->turn = ++world->turn;
    if (run->frozen)
        return;
    int64_t left = run->work_us - run_elapsed_us(world, run);
    if (grant->limit_s >= 0)
        left = MIN(left, grant->limit_s * SEC - run_elapsed_us(world, run));
    world_later(world, MAX(left, 0), script_due, machine->number,
                key_of(grant->job_id, grant->attempt), grant->turn);
}

void step_launch(struct world *world, struct machine *machine, struct grant *grant)
{
    struct run *run = grant_run(world, machine, grant);

    if (grant->launched && world->options.mutation != MUTATE_NO_TOMBSTONES)
        return;
    grant->launched = true;
    if (fault_on(world, FAULT_NODE) && rand_chance(&world->rand, 15)) {
        struct report report = { .job_id = grant->job_id,
                                 .attempt = grant->attempt,
                                 .exit_status = 1 << 8,
                                 .released = grant->alone,
                                 .launch_failed = true };
        TRACE(world, "%s cannot launch %u.%u", machine->name, grant->job_id, grant->attempt);
        if (grant->alone) {
            machine_tombstone(world, machine, grant->job_id, grant->attempt);
            machine_forget_grant(machine, grant);
        }
        keep_report(world, machine, report);
        return;
    }
    if (!run) {
        const struct request *request = people_request(world, grant->request);
        if (!request || !grant->payload_good) {
            world_violation(world, "job %u attempt %u was launched with another job's script",
                            grant->job_id, grant->attempt);
            return;
        }
        run = NEW(struct run);
        *run = (struct run){ .job_id = grant->job_id,
                             .attempt = grant->attempt,
                             .request = grant->request,
                             .machine = machine->number,
                             .work_us = request->work_us };
    }
    TRACE(world, "%s runs %u.%u for %lld ms", machine->name, grant->job_id, grant->attempt,
          (long long)(run->work_us / 1000));
    run->machine = machine->number;
    truth_started(world, run);
    if (grant->frozen)
        step_freeze(world, machine, grant, false);
    step_arm(world, machine, grant);
}

void step_freeze(struct world *world, struct machine *machine, struct grant *grant, bool thaw)
{
    struct run *run = grant_run(world, machine, grant);

    grant->frozen = !thaw;
    if (!run || !run->alive || run->frozen == !thaw)
        return;
    TRACE(world, "%s %s %u.%u", machine->name, thaw ? "thaws" : "freezes", grant->job_id,
          grant->attempt);
    if (run->frozen) {
        run->resumed_us = world->now_us;
        run->frozen = false;
    } else {
        run->ran_us = run_elapsed_us(world, run);
        run->frozen = true;
    }
    step_arm(world, machine, grant);
}

/* ---- the end from outside ---- */

static void released(struct world *world, struct machine *machine, struct grant *grant)
{
    uint32_t job_id = grant->job_id, attempt = grant->attempt;

    machine_tombstone(world, machine, job_id, attempt);
    machine_forget_grant(machine, grant);
    machine_send_released(world, machine, job_id, attempt);
    struct grant *next = machine_other(machine, job_id, attempt);
    if (next && !next->ready && !next->ending)
        step_prepare(world, machine, next);
}

static void revoked(struct world *world, const struct happening *what)
{
    struct machine *machine = &world->machines[what->a];
    struct grant *grant = machine_grant(machine, (uint32_t)(what->b >> 32), (uint32_t)what->b);

    if (!machine->agent_up || !grant || grant->turn != what->c || !grant->ending)
        return;
    struct run *run = grant_run(world, machine, grant);
    if (run && run->alive) {
        const struct request *request = people_request(world, run->request);
        script_over(world, machine, grant, request->stubborn ? 9 : 15, JOB_CANCELLED);
    }
    released(world, machine, grant);
}

void step_revoke(struct world *world, struct machine *machine, struct grant *grant)
{
    const struct run *run = grant_run(world, machine, grant);
    int64_t takes = rand_skewed(&world->rand, MS, 2 * SEC);

    if (grant->ending)
        return;
    if (run && run->alive && people_request(world, run->request)->stubborn)
        takes += KILL_WAIT_S * SEC;
    grant->ending = true;
    grant->turn = ++world->turn;
    world_later(world, takes, revoked, machine->number, key_of(grant->job_id, grant->attempt),
                grant->turn);
    if (world->options.mutation == MUTATE_EARLY_RELEASE)
        machine_send_released(world, machine, grant->job_id, grant->attempt);
}
