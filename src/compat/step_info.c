// SPDX-License-Identifier: Apache-2.0
/*
 * step_info.c - steps as job_step_info_t, their processes, where their tasks are
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/hostlist.h"
#include "base/map.h"
#include "client/client.h"
#include "compat/compat.h"
#include "proto/run.pb-c.h"
#include "schema/job_view.h"
#include "sys/clock.h"

static uint32_t distribution_of(const StepInfo *step)
{
    static const struct {
        const char *word;
        uint32_t value;
    } words[] = { { "Block", SLURM_DIST_BLOCK },
                  { "Cyclic", SLURM_DIST_CYCLIC },
                  { "Plane", SLURM_DIST_PLANE },
                  { "Arbitrary", SLURM_DIST_ARBITRARY } };

    for (size_t i = 0; step->distribution && i < ARRAY_LEN(words); i++) {
        if (strncasecmp(step->distribution, words[i].word, strlen(words[i].word)) == 0)
            return words[i].value;
    }
    return SLURM_DIST_UNKNOWN;
}

static void fill(job_step_info_t *out, const StepInfo *step, const Job *job, int64_t now_us)
{
#define FILL(member, ...) \
    IF_MEMBER(job_step_info_t_##member, out->member = (__typeof__(out->member))(__VA_ARGS__);)
#define SKIP(member, why)
#define FILL_ID(member)                                                          \
    out->member.job_id = step->id->job_id, out->member.step_id = step->id->step, \
    out->member.step_het_comp = NO_VAL;
#include "compat/step_info_rows.h"
#undef FILL
#undef SKIP
#undef FILL_ID
}

struct load {
    uint32_t job_id, step_id;
    job_step_info_response_msg_t **out;
};

static const Job *job_of_step(struct session *session, uint32_t id, const Job **last)
{
    GetJobReply *reply;

    if (*last && (*last)->id == id)
        return *last;
    if (compat_get_job(session, id, &reply, NULL) < 0 || !reply->n_jobs)
        return NULL;
    *last = reply->jobs[0];
    return *last;
}

static int load(struct session *session, void *args, struct err *err)
{
    const struct load *asked = args;
    ListStepsRequest request = LIST_STEPS_REQUEST__INIT;
    uint32_t job_id = asked->job_id;
    const Job *last = NULL;
    ListStepsReply *reply;

    if (job_id != NO_VAL && job_id) {
        request.job_ids = &job_id;
        request.n_job_ids = 1;
    }
    if (compat_call(session, "ListSteps", &request.base, &list_steps_reply__descriptor,
                    (ProtobufCMessage **)&reply, err) < 0 ||
        compat_know_nodes(session, err) < 0)
        return -1;
    job_step_info_response_msg_t *msg = compat_alloc(sizeof(*msg));
    msg->last_update = compat_seconds(clock_wall_us());
    msg->job_steps = reply->n_steps ? compat_alloc(reply->n_steps * sizeof(job_step_info_t)) : NULL;
    for (size_t i = 0; i < reply->n_steps; i++) {
        const StepInfo *step = reply->steps[i];
        if (!step->id || (asked->step_id != NO_VAL && step->id->step != asked->step_id))
            continue;
        fill(&msg->job_steps[msg->job_step_count++], step,
             job_of_step(session, step->id->job_id, &last),
             reply->now_us ? reply->now_us : clock_wall_us());
    }
    *asked->out = msg;
    return 0;
}

#if COMPAT_API < 45
int slurm_get_job_steps(time_t update_time, uint32_t job_id, uint32_t step_id,
                        job_step_info_response_msg_t **step_response_pptr, uint16_t show_flags)
{
    NEED(step_response_pptr, SLURM_ERROR);
    return compat_run(load, &(struct load){ job_id, step_id, step_response_pptr });
}
#else
int slurm_get_job_steps(slurm_step_id_t *step_id, job_step_info_response_msg_t **resp,
                        uint16_t show_flags)
{
    NEED(resp, SLURM_ERROR);
    return compat_run(load, &(struct load){ step_id ? step_id->job_id : NO_VAL,
                                            step_id ? step_id->step_id : NO_VAL, resp });
}
#endif

void slurm_free_job_step_info_response_msg(job_step_info_response_msg_t *msg)
{
    if (!msg)
        return;
    compat_free_job_step_info_response_msg_t(msg);
    slurm_xfree((void **)&msg);
}

void slurm_free_job_step_info_members(job_step_info_t *msg)
{
    if (msg)
        compat_free_job_step_info_t(msg);
}

/* ---- layouts ---- */

static int find_step(struct session *session, const slurm_step_id_t *id, const StepInfo **out,
                     struct err *err)
{
    ListStepsRequest request = LIST_STEPS_REQUEST__INIT;
    uint32_t job_id = id->job_id;
    ListStepsReply *reply;

    request.job_ids = &job_id;
    request.n_job_ids = 1;
    if (compat_call(session, "ListSteps", &request.base, &list_steps_reply__descriptor,
                    (ProtobufCMessage **)&reply, err) < 0)
        return -1;
    for (size_t i = 0; i < reply->n_steps; i++) {
        if (reply->steps[i]->id && reply->steps[i]->id->step == id->step_id) {
            *out = reply->steps[i];
            return 0;
        }
    }
    return err_code(err, ERR_INVALID_JOB_ID);
}

struct layout {
    const slurm_step_id_t *id;
    slurm_step_layout_t *out;
};

/* Tasks are dealt out evenly, as Slurm's block distribution: the first nodes get one more. */
static int layout(struct session *session, void *args, struct err *err)
{
    struct layout *asked = args;
    const StepInfo *step = NULL;
    uint32_t next = 0;

    if (find_step(session, asked->id, &step, err) < 0)
        return -1;
    slurm_step_layout_t *out = compat_alloc(sizeof(*out));
    out->node_cnt = MAX(step->node_count, 1);
    out->node_list = compat_text(step->nodes);
    out->task_cnt = step->ntasks;
    out->task_dist = distribution_of(step);
    out->tasks = compat_alloc(out->node_cnt * sizeof(uint16_t));
    out->tids = compat_alloc(out->node_cnt * sizeof(uint32_t *));
    for (uint32_t i = 0; i < out->node_cnt; i++) {
        out->tasks[i] =
            (uint16_t)(out->task_cnt / out->node_cnt + (i < out->task_cnt % out->node_cnt));
        out->tids[i] = compat_alloc((out->tasks[i] + 1u) * sizeof(uint32_t));
        bool cyclic = out->task_dist == SLURM_DIST_CYCLIC;
        for (uint16_t k = 0; k < out->tasks[i]; k++)
            out->tids[i][k] = cyclic ? i + k * out->node_cnt : next++;
    }
    asked->out = out;
    return 0;
}

slurm_step_layout_t *slurm_job_step_layout_get(slurm_step_id_t *step_id)
{
    struct layout asked = { .id = step_id };

    if (!step_id) {
        errno = EINVAL;
        return NULL;
    }
    return compat_run(layout, &asked) == SLURM_SUCCESS ? asked.out : NULL;
}

void slurm_job_step_layout_free(slurm_step_layout_t *layout_)
{
    if (!layout_)
        return;
    compat_free_slurm_step_layout_t(layout_);
    slurm_xfree((void **)&layout_);
}

/* ---- processes ---- */

/* What the node that manages the job knows of its steps. */
static int ask_manager(struct session *session, const slurm_step_id_t *id, JobAccessReply **access,
                       JobStepsReply **out, struct err *err)
{
    JobAccessRequest where = JOB_ACCESS_REQUEST__INIT;
    JobStepsRequest request = JOB_STEPS_REQUEST__INIT;

    where.id = arena_printf(&session->arena, "%u", id->job_id);
    if (compat_call(session, "JobAccess", &where.base, &job_access_reply__descriptor,
                    (ProtobufCMessage **)access, err) < 0)
        return -1;
    if (str_is_empty((*access)->address))
        return err_code(err, ERR_ALREADY_DONE);
    request.has_job_id = request.has_usage = request.usage = true;
    request.job_id = id->job_id;
    request.has_step = id->step_id != NO_VAL;
    request.step = id->step_id;
    struct client *node = client_new(&(struct client_options){ .addresses = (*access)->address,
                                                               .token = (*access)->token,
                                                               .default_port = 6818 },
                                     err);
    if (!node)
        return -1;
    int rc =
        client_call(node, "/spur.NodeAccess/JobSteps", &request.base, &job_steps_reply__descriptor,
                    &session->arena, (ProtobufCMessage **)out, err);
    client_free(node);
    return rc;
}

void slurm_job_step_pids_free(job_step_pids_t *object)
{
    if (!object)
        return;
    compat_free_job_step_pids_t(object);
    slurm_xfree((void **)&object);
}

void slurm_job_step_pids_response_msg_free(void *object)
{
    job_step_pids_response_msg_t *msg = object;

    if (!msg)
        return;
    compat_free_job_step_pids_response_msg_t(msg);
    slurm_xfree((void **)&msg);
}

void slurm_job_step_stat_free(job_step_stat_t *object)
{
    if (!object)
        return;
    compat_free_job_step_stat_t(object);
    slurm_xfree((void **)&object);
}

void slurm_job_step_stat_response_msg_free(void *object)
{
    job_step_stat_response_msg_t *msg = object;

    if (!msg)
        return;
    compat_free_job_step_stat_response_msg_t(msg);
    slurm_xfree((void **)&msg);
}

static void delete_pids(void *object)
{
    slurm_job_step_pids_free(object);
}

static void delete_stat(void *object)
{
    slurm_job_step_stat_free(object);
}

struct processes {
    const slurm_step_id_t *id;
    job_step_pids_response_msg_t **pids;
    job_step_stat_response_msg_t **stats;
};

static job_step_pids_t *pids_of(const char *node, const StepHere *step)
{
    job_step_pids_t *out = compat_alloc(sizeof(*out));

    out->node_name = compat_text(node);
    size_t count = 0;
    for (size_t i = 0; i < step->n_tasks; i++)
        count += step->tasks[i]->n_pids;
    out->pid = compat_alloc((count + 1) * sizeof(uint32_t));
    for (size_t i = 0; i < step->n_tasks; i++) {
        for (size_t k = 0; k < step->tasks[i]->n_pids; k++)
            out->pid[out->pid_cnt++] = step->tasks[i]->pids[k];
    }
    return out;
}

static int processes(struct session *session, void *args, struct err *err)
{
    const struct processes *asked = args;
    JobAccessReply *access;
    JobStepsReply *reply;
    compat_list list;

    if (ask_manager(session, asked->id, &access, &reply, err) < 0)
        return -1;
    list = slurm_list_create(asked->pids ? delete_pids : delete_stat);
    if (!list)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < reply->n_steps; i++) {
        job_step_pids_t *pids = pids_of(access->node, reply->steps[i]);
        if (asked->pids) {
            slurm_list_append(list, pids);
            continue;
        }
        job_step_stat_t *stat = compat_alloc(sizeof(*stat));
        stat->step_pids = pids;
        stat->num_tasks = (uint32_t)reply->steps[i]->n_tasks;
        slurm_list_append(list, stat);
    }
    if (asked->pids) {
        *asked->pids = compat_alloc(sizeof(**asked->pids));
        (*asked->pids)->pid_list = list;
        (*asked->pids)->step_id = *asked->id;
    } else {
        *asked->stats = compat_alloc(sizeof(**asked->stats));
        (*asked->stats)->stats_list = list;
        (*asked->stats)->step_id = *asked->id;
    }
    return 0;
}

int slurm_job_step_get_pids(slurm_step_id_t *step_id, char *node_list,
                            job_step_pids_response_msg_t **resp)
{
    NEED(step_id && resp, SLURM_ERROR);
    return compat_run(processes, &(struct processes){ .id = step_id, .pids = resp });
}

int slurm_job_step_stat(slurm_step_id_t *step_id, char *node_list, uint16_t use_protocol_ver,
                        job_step_stat_response_msg_t **resp)
{
    NEED(step_id && resp, SLURM_ERROR);
    return compat_run(processes, &(struct processes){ .id = step_id, .stats = resp });
}

/* ---- changes ---- */

void slurm_init_update_step_msg(step_update_request_msg_t *step_msg)
{
    if (!step_msg)
        return;
    memset(step_msg, 0, sizeof(*step_msg));
    step_msg->time_limit = NO_VAL;
#if COMPAT_API < 45
    step_msg->job_id = step_msg->step_id = NO_VAL;
#else
    step_msg->step_id.job_id = step_msg->step_id.step_id = step_msg->step_id.step_het_comp = NO_VAL;
#endif
}

void slurm_free_update_step_msg(step_update_request_msg_t *msg)
{
    slurm_xfree((void **)&msg);
}

/* Steps cannot be changed, by scontrol neither. */
int slurm_update_step(step_update_request_msg_t *step_msg)
{
    return compat_not_supported();
}

#if EXPORTS_slurm_expand_step_stdio_fields
static void expand_step_field(struct str *out, char what, const job_step_info_t *step)
{
    if (what == 'j' || what == 'A')
        str_add_u64(out, step->step_id.job_id);
    else if (what == 's')
        str_add_u64(out, step->step_id.step_id);
    else if (what == 'J')
        str_addf(out, "%u.%u", step->step_id.job_id, step->step_id.step_id);
    else if (what == 'x')
        str_add(out, step->name ? step->name : "");
    else
        str_addf(out, "%%%c", what);
}

char *slurm_expand_step_stdio_fields(char *path, job_step_info_t *step)
{
    GUARD(NULL);
    struct str out = { 0 };

    for (const char *at = path; at && *at; at++) {
        if (*at == '%' && at[1] && step)
            expand_step_field(&out, *++at, step);
        else
            str_add_char(&out, *at);
    }
    return compat_take(&out);
}
#endif
