/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - compares what the controller says with what really happened
 *
 * (1) A job that was acknowledged is there, once, under the id that was said; ids come once.
 * (2) Attempts grow; a job that ended stays so, unless somebody asked for a requeue.
 * (3) What holds nothing according to the state runs nowhere, but on a node that was silent for
 *     agent_timeout.
 * (4) An end is what happened: the exit status is the script's, TIMEOUT had its time, NODE_FAIL lost
 *     its node, CANCELLED was asked for.
 * (5) core_check() holds: allocations within capacity, indexes complete, digest as recomputed.
 * (6) Another replica, which gets every batch when it is written and never restarts, has the same
 *     digest at every index; so does a recovered state, which holds all that was durable.
 * (7) What a person asks for carries a request id and is done once, however often it is asked.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "sim/world.h"
#include "spurctld/ctl/ctl_priv.h"

#define FOUND_US (120 * SEC) /* a wrong state */
enum { LATE_US = 1000000 };  /* after it goes on, until it knows what happened meanwhile */
enum { OUTDATED_US = 12000000 };
enum { CHECK_EVERY = 24 }; /* commands: walking the whole state after each would cost too much */

static struct known_job *known_of(struct world *world, uint32_t id)
{
    return map_get_num(&world->truth.jobs, id);
}

uint32_t check_request_of(const struct job *job)
{
    struct span name = job_name(job);
    char text[16] = "";

    if (name.len < 2 || name.len >= sizeof(text))
        return 0;
    memcpy(text, name.ptr, name.len);
    return (uint32_t)strtoul(text + 1, NULL, 10);
}

/* ---- (4) ---- */

/* The controller may give it up, or has just done so when it came back. */
static bool is_silent(const struct world *world, const struct machine *machine)
{
    return world->now_us - machine->heard_us >= AGENT_TIMEOUT_S * SEC ||
           (machine->back_us && world->now_us - machine->back_us < 10 * SEC);
}

/* Since the job's start it went away, or it is silent. */
static bool went_away(const struct world *world, const struct machine *machine,
                      const struct known_job *known)
{
    return !machine->powered || machine->off_us >= known->started_us ||
           machine->on_us >= known->started_us || is_silent(world, machine);
}

/* What keeps a controller from knowing that a grant cannot have arrived. */
static uint64_t troubles(const struct world *world)
{
    uint64_t count =
        world->host_count + world->result->count[COUNT_STOPS] + world->result->count[COUNT_JUMPS];

    for (unsigned i = 0; i < world->host_count; i++)
        count += world->hosts[i].life;
    return count;
}

/* The same, or the cluster learnt that it had been away, when the job may have run there. */
static bool is_lost(struct world *world, const struct machine *machine,
                    const struct known_job *known)
{
    if (went_away(world, machine, known))
        return true;
    bool ran = truth_run(world, known->id, known->attempt) || world->host_count > 1 ||
               known->troubles != troubles(world);
    return machine->met_us >= known->started_us && ran;
}

static bool lost_a_node(struct world *world, const struct job *job, const struct known_job *known)
{
    for (unsigned i = 0; job->run && i < job->run->count; i++) {
        for (unsigned n = 0; n < world->machine_count; n++) {
            const struct machine *machine = &world->machines[n];
            if (strcmp(machine->name, job->run->parts[i].name) == 0 &&
                is_lost(world, machine, known))
                return true;
        }
    }
    return false;
}

static bool any_is_lost(struct world *world, const struct known_job *known)
{
    for (unsigned n = 0; n < world->machine_count; n++) {
        if (is_lost(world, &world->machines[n], known))
            return true;
    }
    return false;
}

/* A script that came to its own end is not run again, unless somebody asks or a node is lost. */
static void check_requeued(struct world *world, const struct job *job,
                           const struct known_job *known)
{
    const struct run *run = truth_run(world, job->id, job->attempt);
    const struct request *request = people_request(world, known->request);

    if (run && run->finished && !request->requeues_asked && !any_is_lost(world, known))
        world_violation(world, "job %u is to run again, and attempt %u had finished", job->id,
                        job->attempt);
}

static bool ended_rightly(struct world *world, const struct job *job, const struct known_job *known)
{
    const struct run *run = truth_run(world, job->id, job->attempt);
    const struct request *request = people_request(world, known->request);

    switch (job->state) {
    case JOB_COMPLETED:
        return run && !run->alive && run->exit_status == 0;
    case JOB_FAILED:
        return run && !run->alive && run->exit_status != 0;
    case JOB_TIMEOUT:
        return run && run_elapsed_us(world, run) >= known->limit_s * SEC;
    case JOB_NODE_FAIL:
        return lost_a_node(world, job, known);
    case JOB_CANCELLED:
        return request->cancel_asked ||
               (request->spec->dependency && request->spec->kill_on_invalid_dep);
    default:
        return false;
    }
}

static void check_end(struct world *world, const struct job *job, struct known_job *known)
{
    const struct run *run = truth_run(world, job->id, job->attempt);

    if (!ended_rightly(world, job, known))
        world_violation(world,
                        "job %u attempt %u ended in state %d wrongly (script: %s, status %x)",
                        job->id, job->attempt, job->state,
                        !run         ? "never started"
                        : run->alive ? "runs"
                                     : "over",
                        run ? run->exit_status : 0);
    if (run && job->run && job->run->has_exit && job->run->exit_status != run->exit_status)
        world_violation(world, "job %u has exit status %x, its script had %x", job->id,
                        job->run->exit_status, run->exit_status);
    if (!known->counted)
        world_count(world, COUNT_JOBS);
    known->counted = true;
}

/* ---- (1), (2) ---- */

static struct known_job *first_seen(struct world *world, const struct job *job)
{
    struct known_job *known = NEW(struct known_job);
    struct request *request = people_request(world, check_request_of(job));
    uint32_t root = job->array ? job->array->id : job->id;

    known->id = job->id;
    known->request = check_request_of(job);
    known->limit_s = INT64_MAX;
    map_put_num(&world->truth.jobs, job->id, known);
    if (job->id <= world->truth.highest_id)
        world_violation(world, "id %u was used again", job->id);
    world->truth.highest_id = job->id;
    if (!request || request->kind != ASK_SUBMIT)
        world_violation(world, "job %u was submitted by nobody", job->id);
    else if (request->root_id && request->root_id != root)
        world_violation(world, "request %u was submitted twice: jobs %u and %u", request->number,
                        request->root_id, root);
    else
        request->root_id = root;
    return known;
}

static void check_job(struct world *world, const struct job *job)
{
    struct known_job *known = known_of(world, job->id);

    if (!known)
        known = first_seen(world, job);
    if (world->violated)
        return;
    const struct request *request = people_request(world, known->request);
    if (job->attempt < known->attempt)
        world_violation(world, "attempt of job %u went from %u to %u", job->id, known->attempt,
                        job->attempt);
    if (job->attempt > known->attempt) {
        known->started_us = world->now_us;
        known->troubles = world->recovering ? 0 : troubles(world);
        world_count(world, COUNT_ATTEMPTS);
    }
    if (job->time_limit_s >= 0)
        known->limit_s = MIN(known->limit_s, job->time_limit_s);
    known->attempt = job->attempt;
    bool ended = job_has_ended(job) && !job_is_meta(job);
    if (known->ended && !ended && !request->requeues_asked)
        world_violation(world, "job %u ended and is in state %d again", job->id, job->state);
    if (ended && !known->ended)
        check_end(world, job, known);
    bool active = job->state == JOB_RUNNING || job->state == JOB_SUSPENDED;
    if (known->active && job->state == JOB_PENDING)
        check_requeued(world, job, known);
    known->ended = ended;
    known->active = active;
}

static void check_acknowledged(struct world *world, const struct state *state)
{
    vec_each (struct request *, item, &world->requests) {
        const struct request *request = *item;
        if (request->kind != ASK_SUBMIT || !request->job_id)
            continue;
        if (!state_job(state, request->job_id))
            world_violation(world, "job %u was acknowledged and is not there", request->job_id);
        else if (request->root_id != request->job_id)
            world_violation(world, "request %u was told job %u and became %u", request->number,
                            request->job_id, request->root_id);
    }
}

/* ---- (3) ---- */

static bool holds_node(const struct job *job, const struct run *run, const char *node)
{
    if (!job || job->attempt != run->attempt || !job->run)
        return false;
    for (unsigned i = 0; i < job->run->count; i++) {
        if (job->run->parts[i].node && strcmp(job->run->parts[i].name, node) == 0)
            return true;
    }
    return false;
}

static void check_alive(struct world *world, const struct state *state)
{
    map_each (entry, &world->truth.alive) {
        struct run *run = entry->value;
        const struct machine *machine = &world->machines[run->machine];
        if (run->excused || holds_node(state_job(state, run->job_id), run, machine->name))
            continue;
        if (is_silent(world, machine)) {
            run->excused = true;
            world_count(world, COUNT_LOST_NODES);
            continue;
        }
        world_violation(world, "job %u attempt %u runs on %s, which the state says is released",
                        run->job_id, run->attempt, machine->name);
    }
}

/* ---- (5) ---- */

void check_whole(struct world *world, const struct state *state, uint64_t index)
{
    unsigned every = world->options.check_every ? world->options.check_every : CHECK_EVERY;
    struct err err = { 0 };

    if (index < world->checked_index + every)
        return;
    world->checked_index = index == UINT64_MAX ? world->checked_index : index;
    world_count(world, COUNT_CHECKS);
    if (core_check(state, &err) < 0)
        world_violation(world, "core_check: %s", err.text);
}

/* ---- (6): another replica ---- */

/* (7) */
static void check_request(struct world *world, const Command *command, const struct events *events)
{
    if (!command->has_uid)
        return;
    if (command->request_id.len != 16) {
        world_violation(world, "a person's command %d has no request id", command->what_case);
        return;
    }
    if (events->list.len <= 1) /* only the answer */
        return;
    uint64_t key = hash_bytes(command->request_id.data, 16, command->after_job);
    if (map_put_num(&world->truth.effects, key, world))
        world_violation(world, "a request of user %u (command %d) was done twice", command->uid,
                        command->what_case);
}

void check_written(struct world *world, const struct log_batch *batch)
{
    struct state *follower = world->follower;
    struct events events;
    struct log_walk walk;
    struct log_entry entry;

    events_init(&events);
    for (log_walk_init(&walk, batch); log_walk_next(&walk, &entry);) {
        Command *command =
            command__unpack(NULL, entry.command.len, (const uint8_t *)entry.command.ptr);
        events_clear(&events);
        if (world->options.mutation == MUTATE_SPLIT_STATE &&
            command->what_case == COMMAND__WHAT_CANCEL)
            command->time_us++;
        core_apply(follower, state_head(follower).index + 1, command, &events);
        check_request(world, command, &events);
        command__free_unpacked(command, NULL);
    }
    events_done(&events);
}

static int add_bytes(void *to, const void *bytes, size_t len)
{
    str_add_len(to, bytes, len);
    return 0;
}

/* The next record of a snapshot stream; false at the end. */
static bool next_record(const struct str *stream, size_t *at, struct span *out)
{
    uint32_t len;

    if (*at + 4 > stream->len)
        return false;
    memcpy(&len, stream->data + *at, 4); /* little-endian, as the machines that run this */
    *out = (struct span){ stream->data + *at + 4, len };
    *at += 4 + len;
    return true;
}

static void name_record(struct span record, struct str *out)
{
    SnapshotRecord *message =
        snapshot_record__unpack(NULL, record.len, (const uint8_t *)record.ptr);
    const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(
        &snapshot_record__descriptor, (unsigned)message->what_case);

    str_addf(out, "%s", field ? field->name : "?");
    if (message->what_case == SNAPSHOT_RECORD__WHAT_JOB)
        str_addf(out, " %u", message->job->id);
    snapshot_record__free_unpacked(message, NULL);
}

/* Which record differs first, for whoever looks for the cause. */
static void name_difference(const struct state *a, const struct state *b, struct str *out)
{
    struct str left = { 0 }, right = { 0 };
    struct span one, other;
    size_t at = 0, to = 0;
    bool first = true; /* the head holds the digest, which differs anyway */

    core_snapshot_write(a, add_bytes, &left);
    core_snapshot_write(b, add_bytes, &right);
    while (next_record(&left, &at, &one) && next_record(&right, &to, &other)) {
        if (!first && (one.len != other.len || memcmp(one.ptr, other.ptr, one.len) != 0)) {
            name_record(one, out);
            break;
        }
        first = false;
    }
    if (getenv("SPUR_SIM_DUMP")) {
        FILE *files[2] = { fopen("sim-left.snapshot", "w"), fopen("sim-right.snapshot", "w") };
        fwrite(left.data, 1, left.len, files[0]);
        fwrite(right.data, 1, right.len, files[1]);
        fclose(files[0]);
        fclose(files[1]);
    }
    str_done(&left);
    str_done(&right);
}

static void check_replicas(struct world *world, const struct state *state)
{
    const struct state *follower = world->follower;
    struct state_head head = state_head(state);

    if (world->etcd || head.index != state_head(follower).index ||
        core_digest(state) == core_digest(follower))
        return;
    struct str where = { 0 };
    name_difference(state, follower, &where);
    world_violation(world, "two replicas differ at index %llu: %s", (unsigned long long)head.index,
                    where.len ? str_text(&where) : "no record");
    str_done(&where);
}

/* When the cluster learnt of a reboot: what it had started there until then is lost. */
static void meet_boots(struct world *world, const struct state *state)
{
    for (unsigned i = 0; i < world->machine_count; i++) {
        struct machine *machine = &world->machines[i];
        const struct node *node = state_node(state, machine->name);
        const char *boot_id = node && node->found ? node->found->boot_id : NULL;
        uint64_t boot = boot_id ? hash_bytes(boot_id, strlen(boot_id), 0) : 0;
        if (boot != machine->met_boot)
            machine->met_us = world->now_us;
        machine->met_boot = boot;
    }
}

static void scan(struct world *world, const struct state *state)
{
    meet_boots(world, state);
    for (const struct job *job = state_job_from(state, 1); job && !world->violated;
         job = state_job_from(state, (uint64_t)job->id + 1))
        check_job(world, job);
    if (world->violated)
        return;
    check_acknowledged(world, state);
    check_alive(world, state);
}

/* Replicas stand at the same indexes, batch by batch: whoever comes later must have the digest. */
static void compare_digests(struct host *host, uint64_t index, const struct state *state)
{
    struct world *world = host->world;
    uint64_t digest = core_digest(state);

    while (world->digests.len <= index)
        vec_push(&world->digests, 0);
    if (world->digests.items[index] && world->digests.items[index] != digest)
        world_violation(world, "%s differs from another replica at index %llu", host->name,
                        (unsigned long long)index);
    world->digests.items[index] = digest;
}

static uint64_t highest_epoch(const struct world *world)
{
    uint64_t highest = 0;

    for (size_t i = 0; i < world->host_count; i++) {
        const struct host *host = &world->hosts[i];
        if (host->ctl)
            highest = MAX(highest, state_head(ctl_state(host->ctl)).epoch);
    }
    return highest;
}

/* Who leads in an epoch that is over learns of it soon after it can. */
static void check_outdated(struct host *host, bool leads, uint64_t epoch)
{
    struct world *world = host->world;

    if (!leads || epoch >= highest_epoch(world)) {
        host->outdated_us = 0;
        return;
    }
    if (!host->outdated_us)
        host->outdated_us = world->now_us;
    if (world->now_us - MAX(host->outdated_us, host->stopped_until_us) > OUTDATED_US)
        world_violation(world, "%s leads on in epoch %llu, which is over", host->name,
                        (unsigned long long)epoch);
}

/* Who begins to lead has applied everything that was ever committed. */
static void check_leadership(struct host *host, const struct state_head *head)
{
    struct world *world = host->world;
    bool leads = host_leads(host);

    check_outdated(host, leads, head->epoch);

    if (leads && !host->led) {
        world_count(world, COUNT_LEADERS);
        TRACE(world, "%s leads, epoch %llu index %llu", host->name, (unsigned long long)head->epoch,
              (unsigned long long)head->index);
        /* One that was stopped hears that it had been chosen when another leads already: what it
           says carries its old epoch, and what it writes is refused. */
        bool late = host->stopped_until_us && world->now_us - host->stopped_until_us < LATE_US &&
                    head->epoch < highest_epoch(world);
        if (head->index < world->durable_index && !late)
            world_violation(world, "%s leads at index %llu, and %llu was committed", host->name,
                            (unsigned long long)head->index,
                            (unsigned long long)world->durable_index);
    }
    host->led = leads;
}

/* What was wrong may have been written anew. */
bool check_is_flipped(struct host *host)
{
    const struct world *world = host->world;
    const struct state *state = ctl_state(host->ctl);
    uint64_t index = state_head(state).index;

    if (host->flipped_us && index < world->digests.len &&
        world->digests.items[index] == core_digest(state) && core_verify(state, NULL) == 0)
        host->flipped_us = 0;
    return host->flipped_us;
}

/* Where nothing else goes wrong it is found soon. */
static void check_flipped(struct host *host)
{
    struct world *world = host->world;

    if (host->flipped_us && world->faults == FAULT_FLIP &&
        world->now_us - host->flipped_us > FOUND_US && check_is_flipped(host))
        world_violation(world, "%s has a wrong state and was not found for %d s: %s", host->name,
                        (int)(FOUND_US / SEC), host->flipped_what);
}

void check_step(struct host *host)
{
    struct world *world = host->world;
    const struct state *state = ctl_state(host->ctl);
    struct state_head head = state_head(state);

    if (world->violated)
        return;
    check_leadership(host, &head);
    check_flipped(host);
    if (head.index == host->seen_index)
        return;
    host->seen_index = head.index;
    if (!host->flipped_us)
        compare_digests(host, head.index, state);
    if (head.index <= world->scanned_index)
        return; /* another replica was here before */
    world->result->count[COUNT_COMMANDS] += head.index - world->scanned_index;
    world->scanned_index = head.index;
    world->durable_index = MAX(world->durable_index, head.index);
    check_replicas(world, state);
    scan(world, state);
    if (!host->flipped_us)
        check_whole(world, state, head.index);
}

void check_recovered(struct host *host)
{
    struct world *world = host->world;
    const struct state *state = ctl_state(host->ctl);
    struct state_head head = state_head(state);
    struct err err = { 0 };

    TRACE(world, "%s recovered index %llu", host->name, (unsigned long long)head.index);
    host->seen_index = head.index;
    if (!world->etcd && head.index < world->durable_index)
        world_violation(world, "commands %llu to %llu were durable and are gone",
                        (unsigned long long)head.index + 1,
                        (unsigned long long)world->durable_index);
    else if (!world->etcd && head.index != state_head(world->follower).index)
        world_violation(world, "recovered up to index %llu, written were %llu",
                        (unsigned long long)head.index,
                        (unsigned long long)state_head(world->follower).index);
    if (world->etcd && head.index)
        compare_digests(host, head.index, state);
    check_replicas(world, state);
    if (core_check(state, &err) < 0)
        world_violation(world, "core_check after recovery: %s", err.text);
    world->recovering = true; /* who started these jobs is not here to know what it sent */
    if (!world->etcd)
        scan(world, state);
    world->recovering = false;
}

/* ---- for the trace ---- */

void check_trace_command(struct world *world, struct span bytes)
{
    Command *command = command__unpack(NULL, bytes.len, (const uint8_t *)bytes.ptr);
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(&command__descriptor, (unsigned)command->what_case);
    char about[64] = "";

    if (command->what_case == COMMAND__WHAT_START && command->start->n_starts) {
        const JobStart *start = command->start->starts[0];
        snprintf(about, sizeof(about), "%u.%u task %d on %s", start->job_id, start->attempt,
                 start->has_array_task_id ? (int)start->array_task_id : -1,
                 start->allocation->nodes[0]->node);
    } else if (command->what_case == COMMAND__WHAT_FINISH) {
        snprintf(about, sizeof(about), "%u.%u", command->finish->job_id, command->finish->attempt);
    } else if (command->what_case == COMMAND__WHAT_RELEASE) {
        snprintf(about, sizeof(about), "%u.%u by %s", command->release->job_id,
                 command->release->attempt, command->release->nodes[0]);
    }
    TRACE(world, "  command %s %s", field ? field->name : "?", about);
    command__free_unpacked(command, NULL);
}
