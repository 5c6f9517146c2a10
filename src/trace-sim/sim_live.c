/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_live.c - `spur sim --what-if`: the present queue under another configuration
 *
 * The queue is asked for once, then replayed into two simulated clusters: one with the controller's
 * configuration, one with the changed one. Jobs are submitted and started when they were; from now
 * on the planner decides. Jobs run until their time limit: nobody knows better.
 *
 * Jobs that are about to end are left out and counted. Who depends on others waits for them here too
 * (sim_deps.c); components of a heterogeneous job are submitted and started together.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/timefmt.h"
#include "cli/cli.h"
#include "client/client.h"
#include "client/conf_file.h"
#include "proto/controller.pb-c.h"
#include "sched/sched.h"
#include "schema/job_view.h"
#include "schema/jsonw.h"
#include "trace-sim/sim.h"
#include "wire/set.h"

#define US_PER_S   INT64_C(1000000)
#define FOR_EVER_S (INT64_C(365) * 86400)
enum { STEPS_MOST = 1000000, WORLDS = 2 };

struct live_job {
    const Job *job;
    bool pending, refused[WORLDS];
    int64_t start_us[WORLDS]; /* 0: not seen to start */
};

struct live {
    struct cli *cli;
    VEC(struct live_job) jobs; /* by id */
    const Config *config;
    ListNodesReply *nodes;
    int64_t now_us;
    size_t left_out;
    struct err why[WORLDS]; /* the first refusal of a submission */
};

/* ---- asking ---- */

static bool can_replay(const Job *job)
{
    const JobStatus *status = job_status(job);

    return job->spec && job->owner && !(status->flags & (JOB_FLAG_COMPLETING | JOB_FLAG_REQUEUE)) &&
           (status->state == JOB_PENDING || status->state == JOB_RUNNING ||
            status->state == JOB_SUSPENDED);
}

/* So many jobs from there on are components of one, the first of them among them; 1: it is alone. */
static size_t het_count(const struct live *live, size_t index)
{
    const JobStatus *status = job_status(live->jobs.items[index].job);
    size_t count = 1;

    while (status->het_job_id && index + count < live->jobs.len) {
        const JobStatus *next = job_status(live->jobs.items[index + count].job);
        if (next->het_job_id != status->het_job_id || next->het_offset != count)
            break;
        count++;
    }
    return count;
}

/* Of a heterogeneous job the first component must be there, and all before it. */
static void drop_torn(struct live *live)
{
    size_t kept = 0;

    for (size_t i = 0; i < live->jobs.len; i++) {
        const JobStatus *status = job_status(live->jobs.items[i].job);
        const JobStatus *last = kept ? job_status(live->jobs.items[kept - 1].job) : NULL;
        if (status->het_job_id && status->het_offset &&
            (!last || last->het_job_id != status->het_job_id ||
             last->het_offset + 1 != status->het_offset))
            live->left_out++;
        else
            live->jobs.items[kept++] = live->jobs.items[i];
    }
    live->jobs.len = kept;
}

static int ask_jobs(struct live *live, struct err *err)
{
    ListJobsRequest request = LIST_JOBS_REQUEST__INIT;
    ProtobufCMessage *message;
    int next;

    SET(&request, with_spec, true);
    SET(&request, hidden_too, true);
    struct client_stream *stream = client_stream_open(
        live->cli->client,
        &(struct client_stream_options){ .path = "/spur.Controller/ListJobs",
                                         .message = &request.base,
                                         .reply_type = &list_jobs_reply__descriptor },
        err);
    if (!stream)
        return -1;
    while ((next = client_stream_next(stream, &live->cli->arena, &message, err)) ==
           CLIENT_MESSAGE) {
        const ListJobsReply *reply = (const ListJobsReply *)message;
        live->now_us = reply->has_now_us ? reply->now_us : live->now_us;
        for (size_t i = 0; i < reply->n_jobs; i++) {
            bool pending = job_status(reply->jobs[i])->state == JOB_PENDING;
            if (can_replay(reply->jobs[i]))
                vec_push(&live->jobs,
                         (struct live_job){ .job = reply->jobs[i], .pending = pending });
            else
                live->left_out++;
        }
    }
    client_stream_free(stream);
    drop_torn(live);
    return next == CLIENT_ENDED ? 0 : -1;
}

static int ask_all(struct live *live, struct err *err)
{
    GetConfigRequest config = GET_CONFIG_REQUEST__INIT;
    ListNodesRequest nodes = LIST_NODES_REQUEST__INIT;
    GetConfigReply *reply;

    if (cli_connect(live->cli, err) < 0 ||
        cli_call(live->cli, "GetConfig", &config.base, &get_config_reply__descriptor,
                 (ProtobufCMessage **)&reply, err) < 0 ||
        cli_call(live->cli, "ListNodes", &nodes.base, &list_nodes_reply__descriptor,
                 (ProtobufCMessage **)&live->nodes, err) < 0 ||
        ask_jobs(live, err) < 0)
        return -1;
    if (!reply->config)
        return err_set(err, ERR_CONFIG, "the controller gave no configuration");
    live->config = reply->config;
    return 0;
}

/* ---- replaying ---- */

struct moment {
    int64_t us;
    uint32_t index;
    bool start;
};

struct ending {
    int64_t us;
    uint32_t id, attempt;
};

struct world {
    struct live *live;
    struct sim_cluster cluster;
    unsigned number;
    uint32_t *ids;              /* of the live jobs, here */
    struct map index;           /* id here → index + 1 */
    VEC(struct ending) endings; /* in no order */
    size_t waiting;
};

static int by_moment(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;

    if (x->us != y->us)
        return x->us < y->us ? -1 : 1;
    if (x->start != y->start)
        return x->start ? 1 : -1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* When it ends if it is not suspended again. */
static void will_end(struct world *world, const struct job *job)
{
    int64_t limit = job->time_limit_s > 0 ? job->time_limit_s : FOR_EVER_S;
    int64_t us = job->run->start_us + job->run->suspended_total_us + limit * US_PER_S;

    vec_push(&world->endings, (struct ending){ us, job->id, job->attempt });
}

static void on_event(void *ctx, const struct event *event)
{
    struct world *world = ctx;
    const struct job *job = event->job;

    if (event->kind == EVENT_JOB_RESUMED)
        will_end(world, job);
    if (event->kind != EVENT_JOB_STARTED)
        return;
    uint32_t id = job->array ? job->array->id : job->id;
    uintptr_t at = (uintptr_t)map_get_num(&world->index, id);
    will_end(world, job);
    if (!at)
        return;
    struct live_job *live = &world->live->jobs.items[at - 1];
    if (live->pending && !live->start_us[world->number]) {
        live->start_us[world->number] = job->run->start_us;
        world->waiting--;
    }
}

/* The nodes that nobody can use now. */
static void nodes_as_they_are(struct world *world)
{
    const ListNodesReply *nodes = world->live->nodes;

    for (size_t i = 0; i < nodes->n_nodes; i++) {
        const Node *node = nodes->nodes[i];
        if (!node->spec || !node->status || !state_node(world->cluster.state, node->spec->name))
            continue;
        bool down = node->status->state == NODE_DOWN || node->status->state == NODE_UNKNOWN;
        bool drained = node->status->flags & (NODE_FLAG_DRAIN | NODE_FLAG_FAIL);
        if (!down && !drained)
            continue;
        CmdUpdateNode update = CMD_UPDATE_NODE__INIT;
        Command command = COMMAND__INIT;
        struct err err = { 0 };
        char *names[1] = { node->spec->name };
        update.n_nodes = 1;
        update.nodes = names;
        update.state = (char *)(down ? "DOWN" : "DRAIN");
        update.reason = (char *)"as it is";
        command.what_case = COMMAND__WHAT_UPDATE_NODE;
        command.update_node = &update;
        sim_cluster_apply(&world->cluster, &command, &err);
    }
}

/* Jobs of the controller, as the simulated cluster knows them: sim_deps.c. */
static size_t find_here(void *ctx, uint32_t live_id, uint32_t *ids)
{
    const struct world *world = ctx;
    size_t count = 0;

    for (size_t i = 0; i < world->live->jobs.len && count < SIM_DEPS_MOST; i++) {
        const Job *job = world->live->jobs.items[i].job;
        if (world->ids[i] && (job->id == live_id || job_status(job)->array_job_id == live_id))
            ids[count++] = world->ids[i];
    }
    return count;
}

static JobSpec spec_of(struct world *world, uint32_t index)
{
    const struct live_job *live = &world->live->jobs.items[index];
    const JobStatus *status = job_status(live->job);
    JobSpec spec = *live->job->spec;

    spec.array =
        status->array_tasks; /* those that are left; NULL for one that has its own record */
    spec.dependency = sim_deps(status->dependency, find_here, world);
    SET(&spec, priority, status->priority ? status->priority : 1);
    SET(&spec, hold, status->hold != 0);
    if (status->has_time_limit_s)
        SET(&spec, time_limit_s, status->time_limit_s);
    return spec;
}

/* A job, or all components of one. */
static void submit(struct world *world, uint32_t index)
{
    struct live_job *live = &world->live->jobs.items[index];
    size_t count = het_count(world->live, index);
    struct err err = { 0 };

    if (job_status(live->job)->het_offset)
        return; /* the first one came with it */
    JobSpec *specs = NEW_ARRAY(JobSpec, count);
    for (size_t i = 0; i < count; i++)
        specs[i] = spec_of(world, index + (uint32_t)i);
    uint32_t id = sim_cluster_submit_all(&world->cluster, live->job->owner, specs, count, &err);
    for (size_t i = 0; i < count; i++) {
        world->ids[index + i] = id ? id + (uint32_t)i : 0;
        live[i].refused[world->number] = !id;
        free(specs[i].dependency);
        if (!id)
            continue;
        map_put_num(&world->index, id + i, (void *)(uintptr_t)(index + i + 1));
        world->waiting += live[i].pending && !job_status(live[i].job)->hold;
    }
    free(specs);
    if (!id && world->live->why[world->number].code == ERR_OK)
        world->live->why[world->number] = err;
}

static void start(struct world *world, uint32_t index)
{
    struct live_job *live = &world->live->jobs.items[index];
    size_t count = het_count(world->live, index);
    CmdStart start = CMD_START__INIT;
    Command command = COMMAND__INIT;
    struct err err = { 0 };

    if (!world->ids[index] || job_status(live->job)->het_offset)
        return;
    JobStart *list = NEW_ARRAY(JobStart, count);
    start.starts = NEW_ARRAY(JobStart *, count);
    for (size_t i = 0; i < count; i++) {
        job_start__init(&list[i]);
        SET(&list[i], job_id, world->ids[index + i]);
        SET(&list[i], attempt, 1);
        list[i].allocation = job_status(live[i].job)->allocation;
        start.starts[start.n_starts++] = &list[i];
    }
    command.what_case = COMMAND__WHAT_START;
    command.start = &start;
    bool good = sim_cluster_apply(&world->cluster, &command, &err) >= 0;
    for (size_t i = 0; i < count && !good; i++)
        live[i].refused[world->number] = true;
    free(start.starts);
    free(list);
}

static void replay(struct world *world)
{
    VEC(struct moment) moments = { 0 };

    for (uint32_t i = 0; i < world->live->jobs.len; i++) {
        const JobStatus *status = job_status(world->live->jobs.items[i].job);
        vec_push(&moments, (struct moment){ status->submit_us, i, false });
        if (status->state != JOB_PENDING && status->allocation)
            vec_push(&moments,
                     (struct moment){ MAX(status->start_us, status->submit_us), i, true });
    }
    if (moments.len)
        qsort(moments.items, moments.len, sizeof(struct moment), by_moment);
    vec_each (struct moment, moment, &moments) {
        world->cluster.now_us = MAX(world->cluster.now_us, moment->us);
        (moment->start ? start : submit)(world, moment->index);
    }
    vec_done(&moments);
}

static void end_due(struct world *world)
{
    for (size_t i = world->endings.len; i-- > 0;) {
        if (world->endings.items[i].us <= world->cluster.now_us) {
            struct ending ending = world->endings.items[i];
            const struct job *job = state_job(world->cluster.state, ending.id);
            world->endings.items[i] = world->endings.items[--world->endings.len];
            /* One that is suspended, or was requeued, has another end. */
            if (job && job->attempt == ending.attempt && job_phase(job) == PHASE_RUNNING)
                sim_cluster_end(&world->cluster, ending.id);
        }
    }
}

static void go_on(struct world *world)
{
    world->cluster.now_us = MAX(world->cluster.now_us, world->live->now_us);
    nodes_as_they_are(world);
    for (unsigned step = 0; step < STEPS_MOST && !sim_interrupted(); step++) {
        end_due(world);
        sim_cluster_wait(&world->cluster, world->cluster.now_us);
        sim_cluster_plan(&world->cluster);
        int64_t next = MIN(core_next_due(world->cluster.state), world->cluster.wake_us);
        for (size_t i = 0; i < world->endings.len; i++)
            next = MIN(next, world->endings.items[i].us);
        if (!world->waiting || next == INT64_MAX)
            break;
        world->cluster.now_us = MAX(next, world->cluster.now_us + 1);
    }
}

static int simulate(struct live *live, const Config *config, unsigned number, struct err *err)
{
    struct world world = { .live = live, .number = number };
    Config copy = *config;
    int64_t begin = live->now_us;

    vec_each (struct live_job, job, &live->jobs)
        begin = MIN(begin, job_status(job->job)->submit_us);
    copy.has_max_job_count = copy.has_config_overrides = true;
    copy.max_job_count = MAX(copy.max_job_count, 2000000);
    copy.config_overrides = true;
    world.ids = NEW_ARRAY(uint32_t, live->jobs.len + 1);
    map_init(&world.index);
    int code = sim_cluster_new(&world.cluster, &copy, begin - US_PER_S, err);
    if (code >= 0) {
        world.cluster.on_event = on_event;
        world.cluster.ctx = &world;
        replay(&world);
        go_on(&world);
    }
    sim_cluster_done(&world.cluster);
    vec_done(&world.endings);
    map_done(&world.index);
    free(world.ids);
    return code;
}

/* ---- telling ---- */

static void add_start(struct str *out, const struct live *live, const struct live_job *job,
                      unsigned world)
{
    struct str text = { 0 };
    int64_t start = job->start_us[world];

    if (job->refused[world])
        str_add(&text, "refused");
    else if (job_status(job->job)->hold)
        str_add(&text, "held");
    else if (!start)
        str_add(&text, "not foreseen");
    else if (start <= live->now_us + US_PER_S)
        str_add(&text, "now");
    else
        timefmt_write_duration(&text, (start - live->now_us) / US_PER_S, TIMEFMT_SHORT);
    str_addf(out, " %14s", str_text(&text));
    str_done(&text);
}

static void add_change(struct str *out, const struct live_job *job)
{
    int64_t before = job->start_us[0] / US_PER_S, after = job->start_us[1] / US_PER_S;
    struct str text = { 0 };

    if (before && after && before != after) {
        str_add_char(&text, after < before ? '-' : '+');
        timefmt_write_duration(&text, after < before ? before - after : after - before,
                               TIMEFMT_SHORT);
    } else if (before && after) {
        str_add_char(&text, '=');
    }
    str_addf(out, " %14s\n", str_text(&text));
    str_done(&text);
}

static void tell(const struct live *live, struct str *out)
{
    size_t earlier = 0, later = 0, pending = 0;

    str_addf(out, "%-12s %-12s %-16s %14s %14s %14s\n", "JOBID", "USER", "NAME", "STARTS IN",
             "WITH CHANGE", "DIFFERENCE");
    vec_each (struct live_job, job, &live->jobs) {
        if (!job->pending)
            continue;
        struct str id = { 0 }, name = { 0 };
        job_add_id(&id, job->job);
        const char *given = job->job->spec->name ? job->job->spec->name : "";
        str_add_visible(&name, given, strlen(given));
        str_addf(out, "%-12s %-12s %-16.16s", str_text(&id),
                 job->job->owner->user ? job->job->owner->user : "", str_text(&name));
        add_start(out, live, job, 0);
        add_start(out, live, job, 1);
        add_change(out, job);
        str_done(&id);
        str_done(&name);
        pending++;
        int64_t before = job->start_us[0] / US_PER_S, after = job->start_us[1] / US_PER_S;
        earlier += after && (!before || after < before);
        later += before && (!after || after > before);
    }
    str_addf(out, "%zu of %zu waiting jobs would start earlier, %zu later; %zu jobs left out\n",
             earlier, pending, later, live->left_out);
    for (unsigned i = 0; i < WORLDS; i++) {
        if (live->why[i].code != ERR_OK)
            str_addf(out, "refused %s, the first one: %s\n", i ? "with the change" : "as it is",
                     live->why[i].text);
    }
}

static void json_start(struct jsonw *json, const char *key, const struct live_job *job,
                       unsigned world)
{
    jsonw_object(json, key);
    jsonw_bool(json, "refused", job->refused[world]);
    jsonw_number(json, "start_time", job->start_us[world] / US_PER_S);
    jsonw_object_end(json);
}

static void tell_json(const struct live *live, struct str *out)
{
    struct jsonw json;

    jsonw_init(&json, out);
    jsonw_object(&json, NULL);
    jsonw_number(&json, "now", live->now_us / US_PER_S);
    jsonw_number(&json, "left_out", (int64_t)live->left_out);
    jsonw_text(&json, "first_refusal", live->why[1].text);
    jsonw_list(&json, "jobs");
    vec_each (struct live_job, job, &live->jobs) {
        if (!job->pending)
            continue;
        struct str id = { 0 };
        job_add_id(&id, job->job);
        jsonw_object(&json, NULL);
        jsonw_text(&json, "job_id", str_text(&id));
        jsonw_text(&json, "user", job->job->owner->user);
        jsonw_text(&json, "name", job->job->spec->name);
        json_start(&json, "present", job, 0);
        json_start(&json, "changed", job, 1);
        jsonw_object_end(&json);
        str_done(&id);
    }
    jsonw_list_end(&json);
    jsonw_object_end(&json);
    str_add_char(out, '\n');
}

static int compare(struct live *live, const struct sim_args *args, struct err *err)
{
    struct conf *conf = args->config ? conf_file_load(args->config, err) : NULL;
    int code = args->config && !conf ? -1 : 0;

    if (code >= 0)
        code = ask_all(live, err);
    if (code >= 0) {
        Config changed = conf ? *conf_config(conf) : *live->config;
        if (args->policy)
            code = sim_conf_policy(&changed, args->policy, err);
        if (code >= 0)
            code = simulate(live, live->config, 0, err);
        if (code >= 0 && simulate(live, &changed, 1, err) < 0)
            code = err_wrap(err, "with the change");
    }
    conf_free(conf);
    return code;
}

int sim_what_if(struct cli *cli, const struct sim_args *args)
{
    struct live live = { .cli = cli };
    struct str out = { 0 };
    struct err err = { 0 };
    int code = compare(&live, args, &err);

    if (code < 0) {
        cli_error(cli, "%s", err.text);
    } else {
        (args->json ? tell_json : tell)(&live, &out);
        if (sim_interrupted())
            str_add(&out, args->json ? "" : "interrupted: later starts are not known\n");
        cli_flush(&out);
    }
    vec_done(&live.jobs);
    str_done(&out);
    return code < 0 ? 1 : sim_interrupted() ? 130 : 0;
}
