/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_cluster.c - core and planner without the rest of a controller
 *
 * Commands are applied as they come, without a log between; nodes do at once what they are told.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/sim.h"
#include "sched/sched.h"
#include "schema/conf.h"

enum { BUDGET = 2000, IDLE_SLICES = 64 };
#define PUT(message, field, value)     \
    do {                               \
        (message)->has_##field = true; \
        (message)->field = (value);    \
    } while (0)

int sim_cluster_apply(struct sim_cluster *cluster, Command *command, struct err *err)
{
    PUT(command, time_us, cluster->now_us);
    events_clear(&cluster->events);
    core_apply(cluster->state, ++cluster->index, command, &cluster->events);
    if (cluster->sched)
        sched_feed_all(cluster->sched, &cluster->events);
    events_each(event, &cluster->events)
    {
        if (event->kind == EVENT_JOB_STARTED && cluster->on_start)
            cluster->on_start(cluster->ctx, event->job);
    }
    const struct event *answer = &cluster->events.list.items[cluster->events.list.len - 1];
    if (answer->code != ERR_OK)
        return err_set(err, answer->code, "%s",
                       answer->text ? answer->text : err_text(answer->code));
    return 0;
}

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

    PUT(&found, cpus, spec->cpus);
    PUT(&found, memory_mb, spec->memory_mb);
    PUT(&found, sockets, spec->sockets);
    PUT(&found, cores_per_socket, spec->cores_per_socket);
    PUT(&found, threads_per_core, spec->threads_per_core);
    PUT(&found, tmp_disk_mb, spec->tmp_disk_mb);
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
    Config plain = *config;
    plain.preempt_type = NULL; /* nobody here plays those that must go */
    msg.config = &plain;
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
    state_free(cluster->state);
    cluster->state = NULL;
}

uint32_t sim_cluster_submit(struct sim_cluster *cluster, const JobOwner *owner, const JobSpec *spec,
                            struct err *err)
{
    PackedComponent component = PACKED_COMPONENT__INIT, *components[1] = { &component };
    CmdSubmit submit = CMD_SUBMIT__INIT;
    Command command = COMMAND__INIT;
    uint8_t digest[PAYLOAD_DIGEST_BYTES] = { 0 };
    size_t len = job_spec__get_packed_size(spec);
    CLEANUP(freep) uint8_t *bytes = mem_new(len + 1);

    job_spec__pack(spec, bytes);
    PUT(&component, spec, ((ProtobufCBinaryData){ len, bytes }));
    PUT(&component, payload_digest, ((ProtobufCBinaryData){ sizeof(digest), digest }));
    submit.owner = (JobOwner *)(uintptr_t)owner;
    submit.n_components = 1;
    submit.components = components;
    command.what_case = COMMAND__WHAT_SUBMIT;
    command.submit = &submit;
    if (sim_cluster_apply(cluster, &command, err) < 0)
        return 0;
    return cluster->events.list.items[cluster->events.list.len - 1].job_id;
}

void sim_cluster_plan(struct sim_cluster *cluster)
{
    VEC(CmdStart *) starts = { 0 };

    for (unsigned idle = 0; idle < IDLE_SLICES;) {
        struct err err = { 0 };
        const struct plan *plan = sched_plan(cluster->sched, cluster->now_us, BUDGET);
        bool more = plan->more;
        vec_clear(&starts);
        for (size_t i = 0; i < plan->count; i++)
            vec_push(&starts, plan->starts[i]);
        vec_each (CmdStart *, start, &starts) {
            Command command = COMMAND__INIT;
            command.what_case = COMMAND__WHAT_START;
            command.start = *start;
            bool good = sim_cluster_apply(cluster, &command, &err) == 0;
            cluster->starts += good;
            cluster->refused += !good;
        }
        if (!starts.len && !more)
            break;
        idle = starts.len ? 0 : idle + 1;
    }
    vec_done(&starts);
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
    PUT(&finish, job_id, job_id);
    PUT(&finish, attempt, job->attempt);
    PUT(&finish, exit_status, 0);
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
