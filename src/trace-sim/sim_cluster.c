/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_cluster.c - core and planner without the rest of a controller
 *
 * Commands are applied as they come, without a log between; nodes do at once what they are told.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/sched.h"
#include "schema/conf.h"
#include "trace-sim/sim.h"
#include "wire/set.h"

enum { BUDGET = 2000, IDLE_SLICES = 64 };
/* ---- nodes do at once what they are told ---- */

static void note(struct sim_cluster *cluster, const struct event *event)
{
    if (event->kind == EVENT_JOB_STARTED && job_phase(event->job) == PHASE_CONFIGURING)
        vec_push(&cluster->ready, event->job->id);
    else if (event->kind == EVENT_JOB_ENDING)
        vec_push(&cluster->ending, event->job->id);
    if (cluster->on_event)
        cluster->on_event(cluster->ctx, event);
}

static void tell_ready(struct sim_cluster *cluster, const struct job *job)
{
    CmdReady ready = CMD_READY__INIT;
    Command command = COMMAND__INIT;
    struct err err = { 0 };

    SET(&ready, job_id, job->id);
    SET(&ready, attempt, job->attempt);
    command.what_case = COMMAND__WHAT_READY;
    command.ready = &ready;
    sim_cluster_apply(cluster, &command, &err);
}

static void tell_released(struct sim_cluster *cluster, const struct job *job)
{
    CmdRelease release = CMD_RELEASE__INIT;
    Command command = COMMAND__INIT;
    struct err err = { 0 };
    CLEANUP(freep) char **names = NEW_ARRAY(char *, job->run->count + 1);

    for (unsigned i = 0; i < job->run->count; i++)
        names[i] = (char *)(uintptr_t)job->run->parts[i].name;
    SET(&release, job_id, job->id);
    SET(&release, attempt, job->attempt);
    release.n_nodes = job->run->count;
    release.nodes = names;
    command.what_case = COMMAND__WHAT_RELEASE;
    command.release = &release;
    sim_cluster_apply(cluster, &command, &err);
}

static void nodes_answer(struct sim_cluster *cluster)
{
    const struct job *job;

    if (cluster->telling)
        return;
    cluster->telling = true;
    while (cluster->ready.len || cluster->ending.len) {
        if (cluster->ready.len) {
            job = state_job(cluster->state, cluster->ready.items[--cluster->ready.len]);
            if (job && job->run && job_phase(job) == PHASE_CONFIGURING)
                tell_ready(cluster, job);
        } else {
            job = state_job(cluster->state, cluster->ending.items[--cluster->ending.len]);
            if (job && job->run)
                tell_released(cluster, job);
        }
    }
    cluster->telling = false;
}

int sim_cluster_apply(struct sim_cluster *cluster, Command *command, struct err *err)
{
    SET(command, time_us, cluster->now_us);
    events_clear(&cluster->events);
    core_apply(cluster->state, ++cluster->index, command, &cluster->events);
    if (cluster->sched)
        sched_feed_all(cluster->sched, &cluster->events);
    events_each(event, &cluster->events) note(cluster, event);
    const struct event *answer = &cluster->events.list.items[cluster->events.list.len - 1];
    int code = answer->code == ERR_OK
                   ? 0
                   : err_set(err, answer->code, "%s",
                             answer->text ? answer->text : err_text(answer->code));
    if (cluster->ready.len || cluster->ending.len)
        nodes_answer(cluster);
    return code;
}

/* ---- */

struct hello {
    struct sim_cluster *cluster;
    struct err *err;
};

static int node_up(void *ctx, const NodeSpec *spec)
{
    struct hello *hello = ctx;
    NodeInventory found = NODE_INVENTORY__INIT;
    CmdNodeUp up = CMD_NODE_UP__INIT;
    Command command = COMMAND__INIT;

    SET(&found, cpus, spec->cpus);
    SET(&found, memory_mb, spec->memory_mb);
    SET(&found, sockets, spec->sockets);
    SET(&found, cores_per_socket, spec->cores_per_socket);
    SET(&found, threads_per_core, spec->threads_per_core);
    SET(&found, tmp_disk_mb, spec->tmp_disk_mb);
    found.n_gres = spec->n_gres;
    found.gres = spec->gres;
    up.node = spec->name;
    up.found = &found;
    command.what_case = COMMAND__WHAT_NODE_UP;
    command.node_up = &up;
    return sim_cluster_apply(hello->cluster, &command, hello->err);
}

int sim_cluster_new(struct sim_cluster *cluster, const Config *config, int64_t begin_us,
                    struct err *err)
{
    CmdConfig msg = CMD_CONFIG__INIT;
    Command command = COMMAND__INIT;
    struct hello hello = { cluster, err };

    cluster->state = state_new();
    cluster->now_us = begin_us;
    events_init(&cluster->events);
    cluster->wake_us = INT64_MAX;
    msg.config = (Config *)(uintptr_t)config;
    command.what_case = COMMAND__WHAT_CONFIG;
    command.config = &msg;
    if (sim_cluster_apply(cluster, &command, err) < 0 ||
        conf_each_node(config, node_up, &hello, err) < 0)
        return -1;
    cluster->sched = sched_new(cluster->state);
    return 0;
}

void sim_cluster_done(struct sim_cluster *cluster)
{
    if (!cluster->state)
        return;
    sched_free(cluster->sched);
    events_done(&cluster->events);
    vec_done(&cluster->ready);
    vec_done(&cluster->ending);
    state_free(cluster->state);
    cluster->state = NULL;
}

uint32_t sim_cluster_submit_all(struct sim_cluster *cluster, const JobOwner *owner,
                                const JobSpec *specs, size_t count, struct err *err)
{
    PackedComponent *list = NEW_ARRAY(PackedComponent, count);
    PackedComponent **components = NEW_ARRAY(PackedComponent *, count);
    CmdSubmit submit = CMD_SUBMIT__INIT;
    Command command = COMMAND__INIT;
    uint8_t digest[PAYLOAD_DIGEST_BYTES] = { 0 };

    for (size_t i = 0; i < count; i++) {
        size_t len = job_spec__get_packed_size(&specs[i]);
        uint8_t *bytes = mem_new(len + 1);
        job_spec__pack(&specs[i], bytes);
        packed_component__init(&list[i]);
        SET(&list[i], spec, ((ProtobufCBinaryData){ len, bytes }));
        SET(&list[i], payload_digest, ((ProtobufCBinaryData){ sizeof(digest), digest }));
        components[i] = &list[i];
    }
    submit.owner = (JobOwner *)(uintptr_t)owner;
    submit.n_components = count;
    submit.components = components;
    command.what_case = COMMAND__WHAT_SUBMIT;
    command.submit = &submit;
    int code = sim_cluster_apply(cluster, &command, err);
    for (size_t i = 0; i < count; i++)
        free(list[i].spec.data);
    free(list);
    free(components);
    return code < 0 ? 0 : cluster->events.list.items[cluster->events.list.len - 1].job_id;
}

uint32_t sim_cluster_submit(struct sim_cluster *cluster, const JobOwner *owner, const JobSpec *spec,
                            struct err *err)
{
    return sim_cluster_submit_all(cluster, owner, spec, 1, err);
}

static void start_all(struct sim_cluster *cluster, CmdStart **starts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        Command command = COMMAND__INIT;
        struct err err = { 0 };
        command.what_case = COMMAND__WHAT_START;
        command.start = starts[i];
        bool good = sim_cluster_apply(cluster, &command, &err) == 0;
        cluster->starts += good;
        cluster->refused += !good;
    }
}

static void preempt_all(struct sim_cluster *cluster, CmdPreempt **preempts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        Command command = COMMAND__INIT;
        struct err err = { 0 };
        command.what_case = COMMAND__WHAT_PREEMPT;
        command.preempt = preempts[i];
        cluster->refused += sim_cluster_apply(cluster, &command, &err) < 0;
    }
}

void sim_cluster_plan(struct sim_cluster *cluster)
{
    VEC(CmdStart *) starts = { 0 };
    VEC(CmdPreempt *) preempts = { 0 };

    for (unsigned idle = 0; idle < IDLE_SLICES;) {
        const struct plan *plan = sched_plan(cluster->sched, cluster->now_us, BUDGET);
        bool more = plan->more;
        vec_clear(&starts);
        vec_clear(&preempts);
        for (size_t i = 0; i < plan->count; i++)
            vec_push(&starts, plan->starts[i]);
        for (size_t i = 0; i < plan->preempt_count; i++)
            vec_push(&preempts, plan->preempts[i]);
        cluster->wake_us = plan->wake_us;
        start_all(cluster, starts.items, starts.len);
        preempt_all(cluster, preempts.items, preempts.len);
        bool news = starts.len || preempts.len;
        if (!news && !more)
            break;
        idle = news ? 0 : idle + 1;
    }
    vec_done(&starts);
    vec_done(&preempts);
}

void sim_cluster_end(struct sim_cluster *cluster, uint32_t job_id)
{
    const struct job *job = state_job(cluster->state, job_id);
    CmdFinish finish = CMD_FINISH__INIT;
    Command command = COMMAND__INIT;
    struct err err = { 0 };

    if (!job || !job->run)
        return;
    CLEANUP(freep) char **names = NEW_ARRAY(char *, job->run->count + 1);
    for (unsigned i = 0; i < job->run->count; i++)
        names[i] = (char *)(uintptr_t)job->run->parts[i].name;
    SET(&finish, job_id, job_id);
    SET(&finish, attempt, job->attempt);
    SET(&finish, exit_status, 0);
    finish.n_released = job->run->count;
    finish.released = names;
    command.what_case = COMMAND__WHAT_FINISH;
    command.finish = &finish;
    sim_cluster_apply(cluster, &command, &err);
}

void sim_cluster_wait(struct sim_cluster *cluster, int64_t now_us)
{
    CmdTime time = CMD_TIME__INIT;
    Command command = COMMAND__INIT;
    struct err err = { 0 };

    cluster->now_us = MAX(cluster->now_us, now_us);
    if (core_next_due(cluster->state) > now_us)
        return;
    command.what_case = COMMAND__WHAT_TIME;
    command.time = &time;
    sim_cluster_apply(cluster, &command, &err);
}
