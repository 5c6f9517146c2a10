// SPDX-License-Identifier: Apache-2.0
/*
 * job_desc.c - job_desc_msg_t as a JobSpec: submitting, allocating, asking when, changing
 *
 * A member that is NULL or NO_VAL says nothing. In a change an empty text takes the value back.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "client/client.h"
#include "compat/compat.h"
#include "schema/job_view.h"
#include "schema/request.h"
#include "sys/clock.h"
#include "sys/host.h"

extern char **environ;

void slurm_init_job_desc_msg(job_desc_msg_t *job_desc_msg)
{
    job_desc_msg_t *desc = job_desc_msg;

    if (!desc)
        return;
    memset(desc, 0, sizeof(*desc));
    desc->alloc_sid = desc->cpu_freq_gov = desc->cpu_freq_max = desc->cpu_freq_min = NO_VAL;
    desc->delay_boot = desc->group_id = desc->het_job_offset = desc->max_cpus = NO_VAL;
    desc->max_nodes = desc->min_cpus = desc->min_nodes = desc->nice = desc->num_tasks = NO_VAL;
    desc->pn_min_tmp_disk = desc->priority = desc->req_switch = desc->site_factor = NO_VAL;
    desc->time_limit = desc->time_min = desc->user_id = desc->wait4switch = NO_VAL;
    desc->profile = 0;
    desc->task_dist = SLURM_DIST_UNKNOWN;
    desc->pn_min_memory = NO_VAL64;
    desc->contiguous = desc->core_spec = desc->cores_per_socket = desc->cpus_per_task = NO_VAL16;
    desc->kill_on_node_fail = desc->ntasks_per_board = desc->ntasks_per_core = NO_VAL16;
    desc->ntasks_per_node = desc->ntasks_per_socket = desc->ntasks_per_tres = NO_VAL16;
    desc->plane_size = desc->pn_min_cpus = desc->reboot = desc->requeue = desc->shared = NO_VAL16;
    desc->sockets_per_board = desc->sockets_per_node = desc->threads_per_core = NO_VAL16;
    desc->boards_per_node = desc->wait_all_nodes = desc->restart_cnt = NO_VAL16;
    desc->immediate = 0;
    desc->overcommit = NO_VAL8;
    IF_MEMBER(job_desc_msg_t_job_id, desc->job_id = NO_VAL;)
    IF_MEMBER(job_desc_msg_t_step_id,
              desc->step_id.job_id = desc->step_id.step_id = desc->step_id.step_het_comp = NO_VAL;)
    IF_MEMBER(job_desc_msg_t_resv_port_cnt, desc->resv_port_cnt = NO_VAL16;)
    IF_MEMBER(job_desc_msg_t_oom_kill_step, desc->oom_kill_step = NO_VAL16;)
    IF_MEMBER(job_desc_msg_t_segment_size, desc->segment_size = NO_VAL16;)
}

void slurm_free_job_desc_msg(job_desc_msg_t *msg)
{
    if (!msg)
        return;
    compat_free_job_desc_msg_t(msg);
    slurm_xfree((void **)&msg);
}

/* ---- members into fields ---- */

struct fill {
    struct session *session;
    const job_desc_msg_t *desc;
    JobSpec *spec;
    struct compat_clear *clear;
};

static void text(struct fill *fill, char **at, const char *value, const char *field)
{
    if (!value)
        return;
    if (*value) {
        *at = arena_strdup(&fill->session->arena, value);
    } else if (fill->clear && fill->clear->count < ARRAY_LEN(fill->clear->names)) {
        fill->clear->names[fill->clear->count++] = field;
    }
}

#define TEXT(field, member) text(fill, &spec->field, desc->member, #field)
#define NUMBER(field, member, none)     \
    do {                                \
        if (desc->member != (none)) {   \
            spec->has_##field = true;   \
            spec->field = desc->member; \
        }                               \
    } while (0)

static int64_t limit_s(uint32_t minutes)
{
    return minutes == INFINITE ? -1 : (int64_t)minutes * 60;
}

static void fill_texts(struct fill *fill)
{
    const job_desc_msg_t *desc = fill->desc;
    JobSpec *spec = fill->spec;

    TEXT(account, account);
    TEXT(acctg_freq, acctg_freq);
    TEXT(alloc_node, alloc_node);
    TEXT(array, array_inx);
    TEXT(batch_features, batch_features);
    TEXT(burst_buffer, burst_buffer);
    TEXT(clusters, clusters);
    TEXT(comment, comment);
    TEXT(container, container);
    TEXT(cpu_bind, cpu_bind);
    TEXT(dependency, dependency);
    TEXT(extra, extra);
    TEXT(exclude, exc_nodes);
    TEXT(features, features);
    TEXT(licenses, licenses);
    TEXT(mail_user, mail_user);
    TEXT(mcs_label, mcs_label);
    TEXT(mem_bind, mem_bind);
    TEXT(name, name);
    TEXT(network, network);
    TEXT(partition, partition);
    TEXT(prefer, prefer);
    TEXT(qos, qos);
    TEXT(nodelist, req_nodes);
    TEXT(reservation, reservation);
    TEXT(submit_line, submit_line);
    TEXT(tres_bind, tres_bind);
    TEXT(gpu_freq, tres_freq);
    TEXT(work_dir, work_dir);
    TEXT(std_err, std_err);
    TEXT(std_in, std_in);
    TEXT(std_out, std_out);
    TEXT(wckey, wckey);
    IF_MEMBER(job_desc_msg_t_job_size_str, TEXT(node_sizes, job_size_str);)
}

static void fill_sizes(struct fill *fill)
{
    const job_desc_msg_t *desc = fill->desc;
    JobSpec *spec = fill->spec;

    NUMBER(min_nodes, min_nodes, NO_VAL);
    NUMBER(max_nodes, max_nodes, NO_VAL);
    if (spec->has_max_nodes && !spec->max_nodes)
        spec->has_max_nodes = false;
    NUMBER(ntasks, num_tasks, NO_VAL);
    NUMBER(cpus_per_task, cpus_per_task, NO_VAL16);
    NUMBER(ntasks_per_node, ntasks_per_node, NO_VAL16);
    NUMBER(ntasks_per_socket, ntasks_per_socket, NO_VAL16);
    NUMBER(ntasks_per_core, ntasks_per_core, NO_VAL16);
    NUMBER(ntasks_per_gpu, ntasks_per_tres, NO_VAL16);
    NUMBER(min_cpus_per_node, pn_min_cpus, NO_VAL16);
    NUMBER(sockets_per_node, sockets_per_node, NO_VAL16);
    NUMBER(cores_per_socket, cores_per_socket, NO_VAL16);
    NUMBER(threads_per_core, threads_per_core, NO_VAL16);
    NUMBER(tmp_disk_mb, pn_min_tmp_disk, NO_VAL);
    if (desc->pn_min_memory != NO_VAL64) {
        bool per_cpu = (desc->pn_min_memory & MEM_PER_CPU) != 0;
        *(per_cpu ? &spec->has_mem_per_cpu_mb : &spec->has_mem_per_node_mb) = true;
        *(per_cpu ? &spec->mem_per_cpu_mb : &spec->mem_per_node_mb) =
            desc->pn_min_memory & ~MEM_PER_CPU;
    }
    if (desc->min_cpus != NO_VAL && !spec->has_ntasks && !spec->has_min_cpus_per_node) {
        /* so many CPUs in all: as many tasks as that makes */
        spec->has_ntasks = true;
        spec->ntasks = desc->min_cpus / MAX(spec->cpus_per_task, 1);
    }
    if (desc->core_spec != NO_VAL16 && (desc->core_spec & CORE_SPEC_THREAD)) {
        spec->has_thread_spec = true;
        spec->thread_spec = desc->core_spec & (uint32_t)~CORE_SPEC_THREAD;
    } else {
        NUMBER(core_spec, core_spec, NO_VAL16);
    }
    IF_MEMBER(job_desc_msg_t_segment_size, NUMBER(segment, segment_size, NO_VAL16);)
}

static void fill_times(struct fill *fill)
{
    const job_desc_msg_t *desc = fill->desc;
    JobSpec *spec = fill->spec;

    if (desc->time_limit != NO_VAL) {
        spec->has_time_limit_s = true;
        spec->time_limit_s = limit_s(desc->time_limit);
    }
    if (desc->time_min != NO_VAL) {
        spec->has_time_min_s = true;
        spec->time_min_s = limit_s(desc->time_min);
    }
    if (desc->begin_time) {
        spec->has_begin_us = true;
        spec->begin_us = (int64_t)desc->begin_time * 1000000;
    }
    if (desc->deadline) {
        spec->has_deadline_us = true;
        spec->deadline_us = (int64_t)desc->deadline * 1000000;
    }
    NUMBER(delay_boot_s, delay_boot, NO_VAL);
    NUMBER(switches, req_switch, NO_VAL);
    NUMBER(switches_wait_s, wait4switch, NO_VAL);
    if (desc->nice != NO_VAL) {
        spec->has_nice = true;
        spec->nice = (int32_t)(desc->nice - NICE_OFFSET);
    }
}

static void flag(protobuf_c_boolean *has, protobuf_c_boolean *at, bool said, bool value)
{
    if (said) {
        *has = true;
        *at = value;
    }
}
#define FLAG(field, said, value) flag(&spec->has_##field, &spec->field, said, value)

static void fill_ways(struct fill *fill)
{
    const job_desc_msg_t *desc = fill->desc;
    JobSpec *spec = fill->spec;

    FLAG(contiguous, desc->contiguous != NO_VAL16, desc->contiguous);
    FLAG(requeue, desc->requeue != NO_VAL16, desc->requeue);
    FLAG(reboot, desc->reboot != NO_VAL16, desc->reboot);
    FLAG(no_kill, desc->kill_on_node_fail != NO_VAL16, !desc->kill_on_node_fail);
    FLAG(overcommit, desc->overcommit != NO_VAL8, desc->overcommit);
    FLAG(immediate, desc->immediate, true);
    FLAG(open_append, desc->open_mode == OPEN_MODE_APPEND || desc->open_mode == OPEN_MODE_TRUNCATE,
         desc->open_mode == OPEN_MODE_APPEND);
    FLAG(kill_on_invalid_dep, desc->bitflags & (KILL_INV_DEP | NO_KILL_INV_DEP),
         desc->bitflags & KILL_INV_DEP);
    FLAG(spread_job, desc->bitflags & SPREAD_JOB, true);
    FLAG(use_min_nodes, desc->bitflags & USE_MIN_NODES, true);
    FLAG(enforce_binding, desc->bitflags & GRES_ENFORCE_BIND, true);
    NUMBER(wait_all_nodes, wait_all_nodes, NO_VAL16);
    NUMBER(mail_type, mail_type, 0);
    IF_MEMBER(job_desc_msg_t_oom_kill_step,
              FLAG(oom_kill_step, desc->oom_kill_step != NO_VAL16, desc->oom_kill_step);)
    if (desc->warn_signal) {
        spec->has_signal = spec->has_signal_before_s = true;
        spec->signal = desc->warn_signal;
        spec->signal_before_s = desc->warn_time;
        FLAG(signal_batch_only, desc->warn_flags & KILL_JOB_BATCH, true);
        FLAG(signal_at_reservation, desc->warn_flags & KILL_JOB_RESV, true);
    }
    if (desc->shared != NO_VAL16) {
        spec->has_exclusive = spec->has_oversubscribe = true;
        spec->oversubscribe = desc->shared == 1;
        spec->exclusive = desc->shared == 0   ? EXCLUSIVE_NODE
                          : desc->shared == 2 ? EXCLUSIVE_USER
                          : desc->shared == 3 ? EXCLUSIVE_MCS
                          : desc->shared == 4 ? EXCLUSIVE_TOPO
                                              : EXCLUSIVE_NO;
    }
    if (desc->task_dist != SLURM_DIST_UNKNOWN && desc->task_dist != NO_VAL) {
        unsigned node = desc->task_dist & 0xf;
        if (node == SLURM_DIST_PLANE)
            spec->distribution =
                arena_printf(&fill->session->arena, "plane=%u", (unsigned)desc->plane_size);
        else if (node)
            spec->distribution =
                arena_strdup(&fill->session->arena, node == SLURM_DIST_CYCLIC  ? "cyclic"
                                                    : node == SLURM_DIST_BLOCK ? "block"
                                                                               : "arbitrary");
    }
}

/* "gres:gpu:2" and "gres/gpu:2", several apart by commas. */
static int fill_gres(struct fill *fill, const char *given, GresScope scope, struct err *err)
{
    struct str plain = { 0 };
    const char *cursor = given;
    struct span word;

    if (!given)
        return 0;
    while (str_next(&cursor, ",", &word)) {
        bool prefixed = word.len > 5 && strncmp(word.ptr, "gres", 4) == 0 &&
                        (word.ptr[4] == ':' || word.ptr[4] == '/');
        size_t skip = prefixed ? 5 : 0;
        str_addf(&plain, "%s%.*s", plain.len ? "," : "", (int)(word.len - skip), word.ptr + skip);
    }
    int rc = plain.len ? job_request_add_gres(fill->spec, str_text(&plain), scope, false, err) : 0;
    str_done(&plain);
    return rc;
}

/* "gres:gpu:4": the number at its end. */
static bool last_number(const char *given, uint64_t *out)
{
    const char *colon = given ? strrchr(given, ':') : NULL;

    return colon && str_to_u64(colon + 1, UINT32_MAX, out);
}

int compat_spec(struct session *session, const job_desc_msg_t *desc, JobSpec *spec,
                struct compat_clear *clear, struct err *err)
{
    struct fill fill = { .session = session, .desc = desc, .spec = spec, .clear = clear };
    uint64_t number;

    if (desc->cpu_freq_max != NO_VAL || desc->cpu_freq_min != NO_VAL)
        return err_set(err, ERR_UNSUPPORTED, "CPU frequencies are asked for with srun --cpu-freq");
    fill_texts(&fill);
    fill_sizes(&fill);
    fill_times(&fill);
    fill_ways(&fill);
    if (fill_gres(&fill, desc->tres_per_job, GRES_PER_JOB, err) < 0 ||
        fill_gres(&fill, desc->tres_per_node, GRES_PER_NODE, err) < 0 ||
        fill_gres(&fill, desc->tres_per_socket, GRES_PER_SOCKET, err) < 0 ||
        fill_gres(&fill, desc->tres_per_task, GRES_PER_TASK, err) < 0)
        return -1;
    if (last_number(desc->cpus_per_tres, &number)) {
        spec->has_cpus_per_gpu = true;
        spec->cpus_per_gpu = (uint32_t)number;
    }
    if (last_number(desc->mem_per_tres, &number)) {
        spec->has_mem_per_gpu_mb = true;
        spec->mem_per_gpu_mb = number;
    }
    return 0;
}

/* ---- submitting ---- */

static void fill_payload(struct session *session, const job_desc_msg_t *desc, JobPayload *payload)
{
    char **env = desc->environment ? desc->environment : environ;
    size_t count = 0;

    if (desc->script) {
        payload->has_script = true;
        payload->script.data = (uint8_t *)desc->script;
        payload->script.len = strlen(desc->script);
    }
    if (desc->argc > 1 && desc->argv) { /* the first is the script */
        payload->args = desc->argv + 1;
        payload->n_args = desc->argc - 1;
    }
    while (desc->environment && desc->env_size ? count < desc->env_size : env[count] != NULL)
        count++;
    payload->env = ARENA_ARRAY(&session->arena, ProtobufCBinaryData, count + 1);
    for (size_t i = 0; i < count; i++) {
        if (!env[i])
            continue;
        payload->env[payload->n_env].data = (uint8_t *)env[i];
        payload->env[payload->n_env++].len = strlen(env[i]);
    }
}

/* umask(2) cannot be read without a change that other threads of the client would see. */
static bool own_umask(uint32_t *mask)
{
    FILE *file = fopen("/proc/self/status", "re");
    char line[128];
    bool found = false;

    while (file && !found && fgets(line, sizeof(line), file))
        found = sscanf(line, "Umask: %o", mask) == 1;
    if (file)
        fclose(file);
    return found;
}

static void fill_origin(struct session *session, const job_desc_msg_t *desc, JobSpec *spec,
                        bool batch)
{
    char host[HOST_NAME_BYTES], cwd[LIMIT_PATH_BYTES];
    pid_t sid = getsid(0);

    host_short(host);
    if (!spec->name)
        spec->name = arena_strdup(&session->arena, batch ? "sbatch" : "allocation");
    if (!spec->work_dir)
        spec->work_dir = arena_strdup(&session->arena, getcwd(cwd, sizeof(cwd)) ? cwd : "/");
    if (!spec->alloc_node)
        spec->alloc_node = arena_strdup(&session->arena, host);
    spec->has_alloc_sid = sid > 0;
    spec->alloc_sid = desc->alloc_sid != NO_VAL ? desc->alloc_sid : (uint32_t)MAX(sid, 0);
    spec->has_umask = own_umask(&spec->umask);
    spec->has_batch = true;
    spec->batch = batch;
    if (desc->priority == 0) {
        spec->has_hold = true;
        spec->hold = true;
    } else if (desc->priority != NO_VAL) {
        spec->has_priority = true;
        spec->priority = desc->priority;
    }
}

/* What job_request_add_gres() took is not of the arena. */
static void free_gres(SubmitJobRequest *request)
{
    for (size_t i = 0; i < request->n_components; i++)
        job_request_clear_gres(request->components[i]->spec);
}

int compat_submit(struct session *session, job_desc_msg_t *const *descs, size_t count, bool batch,
                  bool test_only, SubmitJobReply **reply, struct err *err)
{
    SubmitJobRequest request = SUBMIT_JOB_REQUEST__INIT;
    int rc = 0;

    if (!count || count > LIMIT_HET_COMPONENTS)
        return err_set(err, ERR_INVALID, "a job has 1 to %d components", LIMIT_HET_COMPONENTS);
    request.components = ARENA_ARRAY(&session->arena, JobComponent *, count);
    request.has_test_only = request.test_only = test_only;
    for (size_t i = 0; i < count && rc >= 0; i++) {
        JobComponent *component = ARENA_NEW(&session->arena, JobComponent);
        job_component__init(component);
        component->spec = ARENA_NEW(&session->arena, JobSpec);
        job_spec__init(component->spec);
        request.components[request.n_components++] = component;
        rc = compat_spec(session, descs[i], component->spec, NULL, err);
        fill_origin(session, descs[i], component->spec, batch && i == 0);
        if (i == 0 && batch) {
            component->payload = ARENA_NEW(&session->arena, JobPayload);
            job_payload__init(component->payload);
            fill_payload(session, descs[i], component->payload);
        }
    }
    if (rc >= 0 && batch && str_is_empty(descs[0]->script))
        rc = err_code(err, ERR_NO_SCRIPT);
    if (rc >= 0)
        rc = compat_call(session, "SubmitJob", &request.base, &submit_job_reply__descriptor,
                         (ProtobufCMessage **)reply, err);
    free_gres(&request);
    return rc;
}

struct submit {
    job_desc_msg_t **descs;
    size_t count;
    submit_response_msg_t **out;
    uint32_t *job_id;
};

static int submit(struct session *session, void *args, struct err *err)
{
    struct submit *asked = args;
    SubmitJobReply *reply;

    if (compat_submit(session, asked->descs, asked->count, true, false, &reply, err) < 0)
        return -1;
    if (asked->job_id)
        *asked->job_id = reply->job_id;
    if (!asked->out)
        return 0;
    submit_response_msg_t *msg = compat_alloc(sizeof(*msg));
    ANSWER_ID(msg) = reply->job_id;
    msg->job_submit_user_msg = compat_text(reply->message);
#if COMPAT_API < 45
    msg->step_id = SLURM_BATCH_SCRIPT;
#else
    msg->step_id.step_id = SLURM_BATCH_SCRIPT;
    msg->step_id.step_het_comp = NO_VAL;
#endif
    *asked->out = msg;
    return 0;
}

int slurm_submit_batch_job(job_desc_msg_t *job_desc_msg, submit_response_msg_t **slurm_alloc_msg)
{
    NEED(job_desc_msg && slurm_alloc_msg, SLURM_ERROR);
    struct submit asked = { .descs = &job_desc_msg, .count = 1, .out = slurm_alloc_msg };

    return compat_run(submit, &asked);
}

int spur_submit_batch_job_id(job_desc_msg_t *job_desc_msg, uint32_t *job_id)
{
    NEED(job_desc_msg && job_id, SLURM_ERROR);
    struct submit asked = { .descs = &job_desc_msg, .count = 1, .job_id = job_id };

    return compat_run(submit, &asked);
}

/* The records of a list as an array; the caller frees it. */
static job_desc_msg_t **array_of(compat_list list, size_t *count)
{
    compat_iterator at = slurm_list_iterator_create(list);
    job_desc_msg_t **out = calloc((size_t)slurm_list_count(list) + 1, sizeof(*out));

    *count = 0;
    while (at && out && *count < (size_t)slurm_list_count(list) &&
           (out[*count] = slurm_list_next(at)))
        (*count)++;
    slurm_list_iterator_destroy(at);
    return out;
}

int slurm_submit_batch_het_job(compat_list job_req_list, submit_response_msg_t **slurm_alloc_msg)
{
    NEED(job_req_list && slurm_alloc_msg, SLURM_ERROR);
    struct submit asked = { .out = slurm_alloc_msg };

    asked.descs = array_of(job_req_list, &asked.count);
    int rc = compat_run(submit, &asked);
    free(asked.descs);
    return rc;
}

void slurm_free_submit_response_response_msg(submit_response_msg_t *msg)
{
    if (!msg)
        return;
    compat_free_submit_response_msg_t(msg);
    slurm_xfree((void **)&msg);
}

/* ---- when it would run ---- */

struct will_run {
    job_desc_msg_t **descs;
    size_t count;
    will_run_response_msg_t **out;
    char text[512];
};

static int will_run(struct session *session, void *args, struct err *err)
{
    struct will_run *asked = args;
    bool batch = asked->count && asked->descs[0]->script;
    SubmitJobReply *reply;
    char when[32];

    if (compat_submit(session, asked->descs, asked->count, batch, true, &reply, err) < 0)
        return -1;
    time_t start = compat_seconds(reply->planned_start_us);
    slurm_make_time_str(&start, when, sizeof(when));
    snprintf(asked->text, sizeof(asked->text),
             "Job %u to start at %s a using %u processors on nodes %s in partition %s",
             reply->job_id, when, reply->planned_cpus,
             reply->planned_nodes ? reply->planned_nodes : "",
             reply->partition ? reply->partition : "");
    if (!asked->out)
        return 0;
    will_run_response_msg_t *msg = compat_alloc(sizeof(*msg));
    ANSWER_ID(msg) = reply->job_id;
    msg->job_submit_user_msg = compat_text(reply->message);
    msg->node_list = compat_text(reply->planned_nodes);
    msg->part_name = compat_text(reply->partition);
    msg->proc_cnt = reply->planned_cpus;
    msg->start_time = start;
    *asked->out = msg;
    return 0;
}

int slurm_job_will_run2(job_desc_msg_t *req, will_run_response_msg_t **will_run_resp)
{
    NEED(req && will_run_resp, SLURM_ERROR);
    struct will_run asked = { .descs = &req, .count = 1, .out = will_run_resp };

    return compat_run(will_run, &asked);
}

/* Says it on standard error, as Slurm's function does. */
int slurm_job_will_run(job_desc_msg_t *job_desc_msg)
{
    NEED(job_desc_msg, SLURM_ERROR);
    struct will_run asked = { .descs = &job_desc_msg, .count = 1 };
    int rc = compat_run(will_run, &asked);

    if (rc == SLURM_SUCCESS)
        slurm_info("%s", asked.text);
    return rc;
}

int slurm_het_job_will_run(compat_list job_req_list)
{
    NEED(job_req_list, SLURM_ERROR);
    struct will_run asked = { .out = NULL };

    asked.descs = array_of(job_req_list, &asked.count);
    int rc = compat_run(will_run, &asked);
    free(asked.descs);
    if (rc == SLURM_SUCCESS)
        slurm_info("%s", asked.text);
    return rc;
}

/* ---- allocating ---- */

static uint32_t groups_of(const Allocation *given, uint16_t *cpus, uint32_t *repeats)
{
    uint32_t groups = 0;

    for (size_t i = 0; given && i < given->n_nodes; i++) {
        if (groups && cpus[groups - 1] == given->nodes[i]->cpus) {
            repeats[groups - 1]++;
            continue;
        }
        cpus[groups] = (uint16_t)given->nodes[i]->cpus;
        repeats[groups++] = 1;
    }
    return groups;
}

static resource_allocation_response_msg_t *allocation_of(const Job *job)
{
    const JobStatus *status = job_status(job);
    const JobSpec *spec = job_spec(job);
    const Allocation *given = status->allocation;
    size_t nodes = given ? given->n_nodes : 0;
    resource_allocation_response_msg_t *msg = compat_alloc(sizeof(*msg));
    struct str names = { 0 };

    ANSWER_ID(msg) = job->id;
    IF_MEMBER(resource_allocation_response_msg_t_step_id,
              msg->step_id.step_id = msg->step_id.step_het_comp = NO_VAL;)
    msg->account = compat_text(status->account ? status->account : spec->account);
    msg->batch_host = nodes ? compat_text(given->nodes[0]->node) : NULL;
    msg->cpu_freq_min = msg->cpu_freq_max = msg->cpu_freq_gov = NO_VAL;
    msg->cpus_per_node = compat_alloc((nodes + 1) * sizeof(uint16_t));
    msg->cpu_count_reps = compat_alloc((nodes + 1) * sizeof(uint32_t));
    msg->num_cpu_groups = groups_of(given, msg->cpus_per_node, msg->cpu_count_reps);
    msg->node_cnt = (uint32_t)nodes;
    job_add_nodes(&names, job);
    msg->node_list = compat_take(&names);
    msg->ntasks_per_board = msg->ntasks_per_core = NO_VAL16;
    msg->ntasks_per_socket = msg->ntasks_per_tres = NO_VAL16;
    msg->partition = compat_text(status->partition ? status->partition : spec->partition);
    msg->qos = compat_text(status->qos);
    msg->resv_name = compat_text(spec->reservation);
    msg->pn_min_memory =
        spec->has_mem_per_cpu_mb ? spec->mem_per_cpu_mb | MEM_PER_CPU : spec->mem_per_node_mb;
    IF_MEMBER(resource_allocation_response_msg_t_uid, msg->uid = job_owner(job)->uid;)
    IF_MEMBER(resource_allocation_response_msg_t_gid, msg->gid = job_owner(job)->gid;)
    IF_MEMBER(resource_allocation_response_msg_t_user_name,
              msg->user_name = compat_text(job_owner(job)->user);)
    IF_MEMBER(resource_allocation_response_msg_t_group_name,
              msg->group_name = compat_text(job_owner(job)->group);)
    return msg;
}

void slurm_free_resource_allocation_response_msg(resource_allocation_response_msg_t *msg)
{
    if (!msg)
        return;
    compat_free_resource_allocation_response_msg_t(msg);
    slurm_xfree((void **)&msg);
}

struct allocate {
    job_desc_msg_t **descs;
    size_t count;
    time_t timeout;
    bool wait;
    void (*pending)(uint32_t job_id);
    resource_allocation_response_msg_t **out; /* `count` of them */
};

static bool is_ready(const Job *job)
{
    const JobStatus *status = job_status(job);

    return status->state == JOB_RUNNING && !(status->flags & JOB_FLAG_CONFIGURING);
}

static void cancel(struct session *session, uint32_t job_id)
{
    CancelJobsRequest request = CANCEL_JOBS_REQUEST__INIT;
    char *id = arena_printf(&session->arena, "%u", job_id);
    ProtobufCMessage *reply;

    request.ids = &id;
    request.n_ids = 1;
    compat_call(session, "CancelJobs", &request.base, &jobs_reply__descriptor, &reply, NULL);
}

/* Follows one component until its nodes are ready, it ended, or the time is over. */
static int wait_ready(struct session *session, uint32_t job_id, int64_t until_us, Job **out,
                      struct err *err)
{
    WatchJobRequest request = WATCH_JOB_REQUEST__INIT;
    ProtobufCMessage *message;
    int next = 0;

    request.id = arena_printf(&session->arena, "%u", job_id);
    int64_t left_us = until_us ? until_us - clock_boot_us() : 0;
    struct client_stream *stream =
        client_stream_open(session->client,
                           &(struct client_stream_options){
                               .path = "/spur.Controller/WatchJob",
                               .message = &request.base,
                               .reply_type = &job__descriptor,
                               .timeout_ms = until_us ? (unsigned)(MAX(left_us, 1000) / 1000) : 0 },
                           err);
    if (!stream)
        return -1;
    *out = NULL;
    while (!*out &&
           (next = client_stream_next(stream, &session->arena, &message, err)) == CLIENT_MESSAGE) {
        if (is_ready((Job *)message))
            *out = (Job *)message;
    }
    client_stream_free(stream);
    if (*out)
        return 0;
    return next == CLIENT_ENDED ? err_code(err, ERR_ALREADY_DONE) : -1;
}

static int allocate(struct session *session, void *args, struct err *err)
{
    struct allocate *asked = args;
    int64_t until_us = asked->timeout > 0 ? clock_boot_us() + (int64_t)asked->timeout * 1000000 : 0;
    SubmitJobReply *reply;
    bool said = false;

    if (compat_submit(session, asked->descs, asked->count, false, false, &reply, err) < 0)
        return -1;
    for (size_t i = 0; i < asked->count; i++) {
        uint32_t id = reply->job_id + (uint32_t)i;
        GetJobReply *now;
        Job *job = NULL;
        if (compat_get_job(session, id, &now, err) < 0)
            return -1;
        job = now->n_jobs ? now->jobs[0] : NULL;
        if (job && !is_ready(job) && asked->pending && !said) {
            asked->pending(reply->job_id);
            said = true;
        }
        if (asked->wait && (!job || !is_ready(job)) &&
            wait_ready(session, id, until_us, &job, err) < 0) {
            cancel(session, reply->job_id);
            return -1;
        }
        asked->out[i] = allocation_of(job);
    }
    return 0;
}

/* At once when it can start; else the number of a job that waits, without nodes. */
int slurm_allocate_resources(job_desc_msg_t *job_desc_msg,
                             resource_allocation_response_msg_t **job_alloc_resp_msg)
{
    NEED(job_desc_msg && job_alloc_resp_msg, SLURM_ERROR);
    struct allocate asked = { .descs = &job_desc_msg, .count = 1, .out = job_alloc_resp_msg };

    return compat_run(allocate, &asked);
}

static compat_list allocate_list(compat_list requests, time_t timeout, void (*pending)(uint32_t))
{
    NEED(requests, NULL);
    struct allocate asked = { .timeout = timeout, .wait = true, .pending = pending };
    compat_list out = NULL;

    asked.descs = array_of(requests, &asked.count);
    asked.out = calloc(asked.count + 1, sizeof(*asked.out));
    int rc = asked.descs && asked.out ? compat_run(allocate, &asked) : SLURM_ERROR;
    if (rc == SLURM_SUCCESS)
        out = slurm_list_create((ListDelF)slurm_free_resource_allocation_response_msg);
    for (size_t i = 0; i < asked.count && asked.out; i++) {
        if (out)
            slurm_list_append(out, asked.out[i]);
        else
            slurm_free_resource_allocation_response_msg(asked.out[i]);
    }
    free(asked.out);
    free(asked.descs);
    return out;
}

#if COMPAT_API < 45
resource_allocation_response_msg_t *slurm_allocate_resources_blocking(
    const job_desc_msg_t *user_req, time_t timeout, void (*pending_callback)(uint32_t))
{
    NEED(user_req, NULL);
    job_desc_msg_t *desc = (job_desc_msg_t *)user_req;
    resource_allocation_response_msg_t *out = NULL;
    struct allocate asked = { .descs = &desc,
                              .count = 1,
                              .timeout = timeout,
                              .wait = true,
                              .pending = pending_callback,
                              .out = &out };

    return compat_run(allocate, &asked) == SLURM_SUCCESS ? out : NULL;
}

compat_list slurm_allocate_het_job_blocking(compat_list job_req_list, time_t timeout,
                                            void (*pending_callback)(uint32_t))
{
    return allocate_list(job_req_list, timeout, pending_callback);
}
#else
static _Thread_local void (*pending_of)(slurm_step_id_t *);

static void tell_pending(uint32_t job_id)
{
    slurm_step_id_t step = { .job_id = job_id, .step_id = NO_VAL, .step_het_comp = NO_VAL };

    if (pending_of)
        pending_of(&step);
}

resource_allocation_response_msg_t *slurm_allocate_resources_blocking(
    const job_desc_msg_t *user_req, time_t timeout, void (*pending_callback)(slurm_step_id_t *),
    int interrupt_fd)
{
    NEED(user_req, NULL);
    job_desc_msg_t *desc = (job_desc_msg_t *)user_req;
    resource_allocation_response_msg_t *out = NULL;
    struct allocate asked = { .descs = &desc,
                              .count = 1,
                              .timeout = timeout,
                              .wait = true,
                              .pending = tell_pending,
                              .out = &out };

    pending_of = pending_callback;
    return compat_run(allocate, &asked) == SLURM_SUCCESS ? out : NULL;
}

compat_list slurm_allocate_het_job_blocking(compat_list job_req_list, time_t timeout,
                                            void (*pending_callback)(slurm_step_id_t *),
                                            int interrupt_fd)
{
    pending_of = pending_callback;
    return allocate_list(job_req_list, timeout, tell_pending);
}
#endif

struct lookup {
    uint32_t job_id;
    resource_allocation_response_msg_t **out;
    compat_list *list;
};

static int lookup(struct session *session, void *args, struct err *err)
{
    struct lookup *asked = args;
    GetJobReply *reply;

    if (compat_get_job(session, asked->job_id, &reply, err) < 0)
        return -1;
    if (!reply->n_jobs)
        return err_code(err, ERR_INVALID_JOB_ID);
    if (job_status(reply->jobs[0])->state == JOB_PENDING)
        return err_code(err, ERR_JOB_PENDING);
    if (asked->out) {
        *asked->out = allocation_of(reply->jobs[0]);
        return 0;
    }
    *asked->list = slurm_list_create((ListDelF)slurm_free_resource_allocation_response_msg);
    for (size_t i = 0; *asked->list && i < reply->n_jobs; i++)
        slurm_list_append(*asked->list, allocation_of(reply->jobs[i]));
    return 0;
}

int slurm_allocation_lookup(JOB_PARAM, resource_allocation_response_msg_t **resp)
{
    NEED(resp, SLURM_ERROR);
    return compat_run(lookup, &(struct lookup){ .job_id = JOB_ID, .out = resp });
}

int slurm_het_job_lookup(JOB_PARAM, compat_list *resp)
{
    NEED(resp, SLURM_ERROR);
    return compat_run(lookup, &(struct lookup){ .job_id = JOB_ID, .list = resp });
}

/* ---- changing ---- */

struct change {
    const job_desc_msg_t *desc;
    job_array_resp_msg_t **out;
};

static char *id_of(struct session *session, const job_desc_msg_t *desc)
{
    uint32_t number;

#if COMPAT_API < 45
    number = desc->job_id;
#else
    number = desc->step_id.job_id;
#endif
    if (!str_is_empty(desc->job_id_str))
        return desc->job_id_str;
    return number == NO_VAL || !number ? NULL : arena_printf(&session->arena, "%u", number);
}

job_array_resp_msg_t *compat_results(const JobsReply *reply)
{
    job_array_resp_msg_t *msg = compat_alloc(sizeof(*msg));

    msg->job_array_count = (uint32_t)reply->n_results;
    msg->job_array_id = compat_alloc((reply->n_results + 1) * sizeof(char *));
    msg->error_code = compat_alloc((reply->n_results + 1) * sizeof(uint32_t));
    IF_MEMBER(job_array_resp_msg_t_err_msg,
              msg->err_msg = compat_alloc((reply->n_results + 1) * sizeof(char *));)
    for (size_t i = 0; i < reply->n_results; i++) {
        msg->job_array_id[i] = compat_text(reply->results[i]->id);
        msg->error_code[i] = reply->results[i]->slurm;
        IF_MEMBER(job_array_resp_msg_t_err_msg,
                  msg->err_msg[i] = compat_text(reply->results[i]->text);)
    }
    return msg;
}

void slurm_free_job_array_resp(job_array_resp_msg_t *resp)
{
    if (!resp)
        return;
    compat_free_job_array_resp_msg_t(resp);
    slurm_xfree((void **)&resp);
}

/* The first that failed is the call's error. */
int compat_first_error(const JobsReply *reply, struct err *err)
{
    for (size_t i = 0; i < reply->n_results; i++) {
        if (reply->results[i]->code)
            return err_set(err, (enum err_code)reply->results[i]->code, "%s",
                           reply->results[i]->text ? reply->results[i]->text : "");
    }
    return 0;
}

static int change(struct session *session, void *args, struct err *err)
{
    const struct change *asked = args;
    UpdateJobRequest request = UPDATE_JOB_REQUEST__INIT;
    JobSpec spec = JOB_SPEC__INIT;
    struct compat_clear clear = { .count = 0 };
    JobsReply *reply = NULL;

    request.id = id_of(session, asked->desc);
    if (!request.id)
        return err_code(err, ERR_INVALID_JOB_ID);
    int rc = compat_spec(session, asked->desc, &spec, &clear, err);
    if (asked->desc->priority == 0) { /* how qhold holds a job */
        request.has_hold = true;
        request.hold = asked->desc->alloc_sid == ALLOC_SID_USER_HOLD || geteuid() != 0 ? 1 : 2;
    } else if (asked->desc->priority == INFINITE) {
        request.has_hold = true;
        request.hold = 0;
    } else if (asked->desc->priority != NO_VAL) {
        spec.has_priority = true;
        spec.priority = asked->desc->priority;
    }
    if (asked->desc->end_time) {
        request.has_end_us = true;
        request.end_us = (int64_t)asked->desc->end_time * 1000000;
    }
    request.admin_comment = asked->desc->admin_comment;
    request.change = &spec;
    request.clear = (char **)clear.names;
    request.n_clear = clear.count;
    if (rc >= 0)
        rc = compat_call(session, "UpdateJob", &request.base, &jobs_reply__descriptor,
                         (ProtobufCMessage **)&reply, err);
    job_request_clear_gres(&spec);
    if (rc < 0)
        return rc;
    if (asked->out) {
        *asked->out = compat_results(reply);
        return 0;
    }
    return compat_first_error(reply, err);
}

int slurm_update_job(job_desc_msg_t *job_msg)
{
    NEED(job_msg, SLURM_ERROR);
    return compat_run(change, &(struct change){ .desc = job_msg });
}

int slurm_update_job2(job_desc_msg_t *job_msg, job_array_resp_msg_t **resp)
{
    NEED(job_msg && resp, SLURM_ERROR);
    return compat_run(change, &(struct change){ .desc = job_msg, .out = resp });
}
