// SPDX-License-Identifier: Apache-2.0
/*
 * srun_het.c - srun over the components of a heterogeneous job
 *
 * (1) Every component is a struct srun of its own, with its options, its program and its step; the first is
 *     also the front, whose loop has the nodes of all.
 * (2) Steps are asked for in the order of the components: two sruns never wait for each other. All are there
 *     before anything is launched, or none.
 * (3) Tasks are counted through the components. The steps have one number, the first that is free in all.
 * (4) A command line with several components inside of an ordinary job is as many steps of that job, each with
 *     no more than its tasks need.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bitset.h"
#include "base/limits.h"
#include "cli/het.h"
#include "cli/plugins.h"
#include "cli/srun.h"
#include "client/client.h"
#include "schema/het.h"

enum { NUMBER_TRIES = 16, PART_WAIT_MS = 50, PART_WAITS = 40 };

/* ---- the command line ---- */

/* -N3 --gpus-per-task=1: one task on each node, when nothing else says how many. */
static void settle_gpu_tasks(JobSpec *spec)
{
    bool per_task = false, of_job = false;

    for (size_t i = 0; i < spec->n_gres; i++) {
        per_task = per_task || spec->gres[i]->scope == GRES_PER_TASK;
        of_job = of_job || spec->gres[i]->scope == GRES_PER_JOB;
    }
    if (!per_task || of_job || spec->has_ntasks || spec->has_ntasks_per_node)
        return;
    spec->has_ntasks = true;
    spec->ntasks = MAX(spec->min_nodes, 1);
}

static int read_part(struct srun *part, char *const *env, const struct het_words *words)
{
    struct option_ctx ctx = cli_option_ctx();
    struct job_request *request = &part->request;
    char **none = ARENA_ARRAY(&part->cli.arena, char *, words->count + 1);
    struct err err = { 0 };
    int left;

    if (env)
        ctx.env = env;
    if (option_read_env(plugins_set(&srun_options), &ctx, request, &err) < 0 ||
        option_read_words(plugins_set(&srun_options), &ctx, request, LEVEL_ARGV, words->count,
                          words->words, OPTION_STOP, none, &left, &err) < 0 ||
        job_request_finish(request, &err) < 0)
        return cli_option_error(&srun_options, &err);
    part->cli.quiet = request->quiet;
    if (srun_read_hosts(part))
        return 1;
    if (!request->jobid) { /* it makes a job of its own */
        settle_gpu_tasks(request->spec);
        cli_settle_counts(&part->cli, request);
    }
    part->argc = words->operand_count;
    part->argv = ARENA_ARRAY(&part->cli.arena, char *, part->argc + 1);
    memcpy(part->argv, words->operands, (size_t)part->argc * sizeof(char *));
    return 0;
}

/* A component without a program has that of the next. */
static void share_programs(struct het_words *list, size_t count)
{
    for (size_t i = count - 1; i-- > 0;) {
        if (list[i].operand_count)
            continue;
        list[i].operands = list[i + 1].operands;
        list[i].operand_count = list[i + 1].operand_count;
    }
}

/* The text of its --het-group; NULL: none. */
static const char *groups_of(const struct het_words *words, struct arena *arena)
{
    struct option_ctx ctx = cli_option_ctx();
    char **none = ARENA_ARRAY(arena, char *, words->count + 1);
    struct job_request scratch;
    int left;

    job_request_init(&scratch);
    option_read_words(plugins_set(&srun_options), &ctx, &scratch, LEVEL_ARGV, words->count,
                      words->words, OPTION_STOP, none, &left, NULL);
    const char *text = scratch.het_group;
    job_request_done(&scratch);
    return text;
}

/* The place of each group among the words; -1: not in this step. */
static int sort_groups(struct srun *srun, const struct het_words *list, size_t count,
                       int places[LIMIT_HET_COMPONENTS])
{
    for (size_t i = 0; i < LIMIT_HET_COMPONENTS; i++)
        places[i] = -1;
    for (size_t i = 0; i < count; i++) {
        const char *text = groups_of(&list[i], &srun->cli.arena);
        struct err err = { 0 };
        struct bitset set;
        char number[24];
        snprintf(number, sizeof(number), "%zu", i);
        int ret = het_read_list(text ? text : number, &set, &err);
        bitset_each (group, &set) {
            if (places[group] >= 0 && ret == 0)
                ret =
                    err_set(&err, ERR_INVALID, "Duplicate het groups in single srun not supported");
            places[group] = (int)i;
        }
        bitset_done(&set);
        if (ret < 0) {
            cli_error(&srun->cli, "%s", err.text);
            return 1;
        }
    }
    return 0;
}

static struct srun *new_part(struct srun *srun)
{
    struct srun *part = NEW(struct srun);

    part->input_fd = -1;
    part->site_kill_wait_s = SRUN_KILL_WAIT_S;
    cli_init(&part->cli, srun->cli.name);
    job_payload__init(&part->env);
    job_request_init(&part->request);
    return part;
}

/* What is not said for a component is as for the first, where it must be the same. */
static int settle_mpi(struct srun *srun, struct srun *part)
{
    if (!part->request.mpi)
        part->request.mpi = srun->request.mpi;
    if (!srun->request.mpi && part->request.mpi)
        srun->request.mpi = part->request.mpi;
    if (!part->request.mpi || str_ieq(part->request.mpi, srun->request.mpi))
        return 0;
    cli_error(&srun->cli, "--mpi is the same for all components of a step: %s or %s",
              srun->request.mpi, part->request.mpi);
    return 1;
}

/* One of them asks for it: all are of one world (--ml-env). */
static void settle_ml(struct srun *srun)
{
    bool any = false;

    for (size_t i = 0; i < srun->part_count; i++)
        any = any || srun->parts[i]->request.spec->ml_env;
    for (size_t i = 0; i < srun->part_count && any; i++)
        srun->parts[i]->request.spec->has_ml_env = srun->parts[i]->request.spec->ml_env = true;
}

/*
 * How many components the job has whose environment this is; 0: it is an ordinary one. Variables of another job
 * that this one was submitted in count for nothing.
 */
static uint32_t components_here(uint32_t job)
{
    const char *size = getenv("SLURM_HET_SIZE"), *id = getenv("SLURM_JOB_ID_HET_GROUP_0");
    uint64_t count, first;

    return job && size && id && str_to_u64(size, LIMIT_HET_COMPONENTS, &count) &&
                   str_to_u64(id, UINT32_MAX, &first) && first == job
               ? (uint32_t)count
               : 0;
}

int srun_read_parts(struct srun *srun, int argc, char **argv)
{
    struct option_ctx ctx = cli_option_ctx();
    struct arena *arena = &srun->cli.arena;
    int places[LIMIT_HET_COMPONENTS], code;
    struct het_words *list;
    struct err err = { 0 };
    size_t count;

    srun->parts = ARENA_ARRAY(arena, struct srun *, LIMIT_HET_COMPONENTS);
    if (het_split(plugins_set(&srun_options), &ctx, arena, MAX(argc - 1, 0), argv + 1, &list,
                  &count, &err) < 0)
        return cli_option_error(&srun_options, &err);
    share_programs(list, count);
    srun->parts[srun->part_count++] = srun;
    code = read_part(srun, NULL, &list[0]);
    if (code || (count == 1 && !srun->request.het_group))
        return code;
    if (sort_groups(srun, list, count, places))
        return 1;
    uint32_t job = srun->request.jobid; /* as a component's environment has it, it is another */
    bool het = components_here(job) > 0;
    job_request_done(&srun->request);
    job_request_init(&srun->request);
    srun->part_count = 0;
    for (unsigned group = 0; group < LIMIT_HET_COMPONENTS && code == 0; group++) { /* (2) */
        if (places[group] < 0)
            continue;
        struct srun *part = srun->part_count ? new_part(srun) : srun;
        srun->parts[srun->part_count++] = part;
        part->group = group;
        code = read_part(part, het ? het_env(ctx.env, group, arena) : NULL, &list[places[group]]);
        part->request.jobid = job;
        if (part != srun)
            job_request_inherit(&part->request, &srun->request);
        if (code == 0)
            code = settle_mpi(srun, part);
    }
    settle_ml(srun);
    return code;
}

void srun_free_parts(struct srun *srun)
{
    for (size_t i = 1; i < srun->part_count; i++) {
        struct srun *part = srun->parts[i];
        srun_close(part);
        job_request_done(&part->request);
        cli_done(&part->cli);
        free(part);
    }
    srun->part_count = 0;
}

/* ---- which jobs ---- */

static int no_such_group(struct srun *srun, unsigned group, unsigned most)
{
    cli_error(&srun->cli,
              "Attempt to run a job step with het group value of %u, but the job allocation has "
              "maximum value of %u",
              group, most);
    return 1;
}

/* The components of a job that --jobid names; they have the numbers after the first. */
static int ask_components(struct srun *srun, uint32_t *count)
{
    GetJobRequest request = GET_JOB_REQUEST__INIT;
    GetJobReply *reply;
    struct err err = { 0 };

    request.id = arena_printf(&srun->cli.arena, "%u", srun->request.jobid);
    if (cli_call(&srun->cli, "GetJob", &request.base, &get_job_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) < 0) {
        cli_error(&srun->cli, "Unable to create step for job %u: %s", srun->request.jobid,
                  err.text);
        return 1;
    }
    *count = 0;
    for (size_t i = 0; i < reply->n_jobs; i++) {
        const JobStatus *status = reply->jobs[i]->status;
        if (status && status->het_job_id)
            *count = MAX(*count, status->het_offset + 1);
    }
    return 0;
}

int srun_find_jobs(struct srun *srun)
{
    uint32_t first = srun->request.jobid, count = 0;

    srun->job_id = first;
    if (srun->part_count == 1 && !srun->request.het_group)
        return 0;
    if (alloc_given(&srun->request, "jobid", NULL)) {
        if (ask_components(srun, &count))
            return 1;
    } else {
        count = components_here(first);
    }
    for (size_t i = 0; i < srun->part_count; i++) {
        struct srun *part = srun->parts[i];
        if (count ? part->group >= count : part->group > 0 && part->request.het_group != NULL)
            return no_such_group(srun, part->group, count ? count - 1 : 0);
        part->job_id = count ? first + part->group : first;
        part->beside = count == 0 && srun->part_count > 1; /* (4) */
    }
    return 0;
}

/* ---- steps ---- */

/* The share of a step that will not be launched is given back. */
static void give_back(struct srun *part)
{
    struct srun_node *manager = &part->manager;
    struct err err = { 0 };

    if (manager->stream) {
        client_stream_finish(manager->stream);
        for (int i = 0; i < PART_WAITS; i++) {
            ProtobufCMessage *message;
            client_pump(manager->client, &err);
            if (client_stream_try(manager->stream, &part->cli.arena, &message, &err) !=
                CLIENT_AGAIN)
                break;
            struct pollfd fd = { .fd = client_fd(manager->client),
                                 .events = client_events(manager->client) };
            poll(&fd, 1, PART_WAIT_MS);
        }
    }
    client_stream_free(TAKE(manager->stream));
    client_free(TAKE(manager->client));
    if (part->layout)
        step_layout__free_unpacked(TAKE(part->layout), NULL);
}

/*
 * One after the other (2). 0, or the exit code; -1: a number was not free in all of them, from *from on
 * there may be one.
 */
static int create_in_turn(struct srun *srun, uint32_t *from)
{
    uint32_t next = 0, number = 0;

    for (size_t i = 0; i < srun->part_count; i++) {
        struct srun *part = srun->parts[i];
        part->first_task = next;
        part->step_from = i && !part->beside ? number : *from;
        int code = srun_create(part);
        if (code)
            return code;
        if (i && !part->beside && part->layout->id->step != number) { /* (3) */
            *from = part->layout->id->step + 1;
            return -1;
        }
        number = part->layout->id->step;
        next += part->layout->ntasks;
    }
    return 0;
}

/* What the tasks see: nodes and tasks of all components. */
static void set_whole(struct srun *srun)
{
    StepLayout whole = STEP_LAYOUT__INIT;
    struct arena *arena = &srun->cli.arena;

    if (srun->part_count < 2)
        return;
    whole.id = srun->layout->id;
    whole.name = srun->layout->name;
    whole.has_ntasks = true;
    whole.ntasks = srun->ntasks;
    whole.nodes = ARENA_ARRAY(arena, StepNode *, srun->task_nodes);
    for (size_t i = 0; i < srun->task_nodes; i++)
        whole.nodes[whole.n_nodes++] = (StepNode *)srun->nodes[i].node;
    srun->whole.len = step_layout__get_packed_size(&whole);
    srun->whole.data = ARENA_ARRAY(arena, uint8_t, srun->whole.len);
    step_layout__pack(&whole, srun->whole.data);
}

int srun_create_all(struct srun *srun)
{
    uint32_t from = 0;
    int code = -1;

    for (int tries = 0; code < 0 && tries < NUMBER_TRIES; tries++) {
        code = create_in_turn(srun, &from);
        for (size_t i = srun->part_count; code && i-- > 0;)
            give_back(srun->parts[i]);
    }
    if (code < 0)
        cli_error(&srun->cli, "Unable to create step for job %u: other steps take the numbers",
                  srun->job_id);
    if (code)
        return code < 0 ? 1 : code;
    srun_set_nodes(srun);
    set_whole(srun);
    return 0;
}

void srun_share_parts(struct srun *srun)
{
    for (size_t i = 1; i < srun->part_count; i++) {
        struct srun *part = srun->parts[i];
        part->input_fd = srun->input_fd;
        part->has_input_task = srun->has_input_task;
        part->input_task = srun->input_task;
        part->input_pattern = srun->input_pattern;
        part->request.pty = srun->request.pty;
    }
}
