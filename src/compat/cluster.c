// SPDX-License-Identifier: Apache-2.0
/*
 * cluster.c - licences, topology, statistics, tokens, and what administrators ask of the controller
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hostlist.h"
#include "compat/compat.h"
#include "schema/node_view.h"
#include "sys/clock.h"
#include "sys/host.h"

slurmdb_cluster_rec_t *working_cluster_rec = NULL;

long slurm_api_version(void)
{
    return SLURM_VERSION_NUMBER;
}

/* ---- licences ---- */

static int load_licenses(struct session *session, void *args, struct err *err)
{
    ListLicensesRequest request = LIST_LICENSES_REQUEST__INIT;
    ListLicensesReply *reply;

    if (compat_call(session, "ListLicenses", &request.base, &list_licenses_reply__descriptor,
                    (ProtobufCMessage **)&reply, err) < 0)
        return -1;
    license_info_msg_t *msg = compat_alloc(sizeof(*msg));
    msg->last_update = compat_seconds(clock_wall_us());
    msg->num_lic = (uint32_t)reply->n_licenses;
    msg->lic_array =
        reply->n_licenses ? compat_alloc(reply->n_licenses * sizeof(slurm_license_info_t)) : NULL;
    for (size_t i = 0; i < reply->n_licenses; i++) {
        const License *one = reply->licenses[i];
        slurm_license_info_t *out = &msg->lic_array[i];
        out->name = compat_text(one->name);
        out->total = one->total;
        out->in_use = one->used;
        out->available = one->total - MIN(one->used, one->total);
        out->reserved = one->reserved;
    }
    *(license_info_msg_t **)args = msg;
    return 0;
}

int slurm_load_licenses(time_t arg0, license_info_msg_t **arg1, uint16_t arg2)
{
    NEED(arg1, SLURM_ERROR);
    return compat_run(load_licenses, arg1);
}

void slurm_free_license_info_msg(license_info_msg_t *arg0)
{
    if (!arg0)
        return;
    compat_free_license_info_msg_t(arg0);
    slurm_xfree((void **)&arg0);
}

/* ---- topology ---- */

void slurm_free_topo_info_msg(topo_info_response_msg_t *msg)
{
    if (!msg)
        return;
    compat_free_topo_info_response_msg_t(msg);
    slurm_xfree((void **)&msg);
}

#if COMPAT_API == 38
enum { TOPOLOGY_DEPTH = 16 };

static const ConfSwitch *find_switch(const Config *config, const char *name)
{
    for (size_t i = 0; i < config->n_switches; i++) {
        if (str_eq(config->switches[i]->name, name))
            return config->switches[i];
    }
    return NULL;
}

/* Adds the nodes below a switch; its level, 0 for a leaf. */
static uint16_t descend(const Config *config, const ConfSwitch *at, unsigned depth,
                        struct hostlist *nodes)
{
    CLEANUP(hostlist_done) struct hostlist below = { 0 };
    uint16_t level = 0;

    if (!str_is_empty(at->nodes))
        hostlist_parse(nodes, at->nodes, NULL);
    if (str_is_empty(at->switches) || depth > TOPOLOGY_DEPTH ||
        hostlist_parse(&below, at->switches, NULL) < 0)
        return 0;
    hostlist_each (name, &below) {
        const ConfSwitch *child = find_switch(config, name.name);
        uint16_t under = child ? descend(config, child, depth + 1, nodes) : 0;
        level = MAX(level, (uint16_t)(under + 1));
    }
    return level;
}

static void fill_switch(topo_info_t *out, const Config *config, const ConfSwitch *one)
{
    CLEANUP(hostlist_done) struct hostlist nodes = { 0 };
    struct str text = { 0 };

    out->level = descend(config, one, 0, &nodes);
    hostlist_format(&nodes, &text);
    out->link_speed = 1;
    out->name = compat_text(one->name);
    out->nodes = compat_take(&text);
    out->switches = compat_text(one->switches);
}

static int load_topo(struct session *session, void *args, struct err *err)
{
    GetConfigRequest request = GET_CONFIG_REQUEST__INIT;
    GetConfigReply *reply;

    if (compat_call(session, "GetConfig", &request.base, &get_config_reply__descriptor,
                    (ProtobufCMessage **)&reply, err) < 0)
        return -1;
    const Config *config = reply->config;
    size_t count = config && str_eq(config->topology_plugin, "tree") ? config->n_switches : 0;
    topo_info_response_msg_t *msg = compat_alloc(sizeof(*msg));
    msg->record_count = (uint32_t)count;
    msg->topo_array = count ? compat_alloc(count * sizeof(topo_info_t)) : NULL;
    for (size_t i = 0; i < count; i++)
        fill_switch(&msg->topo_array[i], config, config->switches[i]);
    *(topo_info_response_msg_t **)args = msg;
    return 0;
}

int slurm_load_topo(topo_info_response_msg_t **topo_info_msg_pptr)
{
    NEED(topo_info_msg_pptr, SLURM_ERROR);
    return compat_run(load_topo, topo_info_msg_pptr);
}

void slurm_print_topo_record(FILE *out, topo_info_t *topo_ptr, int one_liner)
{
    NEED(out && topo_ptr);
    fprintf(out, "SwitchName=%s Level=%u LinkSpeed=%u", topo_ptr->name, topo_ptr->level,
            topo_ptr->link_speed);
    if (topo_ptr->nodes)
        fprintf(out, "%sNodes=%s", one_liner ? " " : "\n   ", topo_ptr->nodes);
    if (topo_ptr->switches)
        fprintf(out, "%sSwitches=%s", one_liner ? " " : "\n   ", topo_ptr->switches);
    fprintf(out, "\n");
}

void slurm_print_topo_info_msg(FILE *out, topo_info_response_msg_t *topo_info_msg_ptr,
                               int one_liner)
{
    NEED(out);
    if (!topo_info_msg_ptr || !topo_info_msg_ptr->record_count) {
        fprintf(out, "No topology information available\n");
        return;
    }
    for (uint32_t i = 0; i < topo_info_msg_ptr->record_count; i++)
        slurm_print_topo_record(out, &topo_info_msg_ptr->topo_array[i], one_liner);
}
#else
/* The message of these numbers is a plugin's own, whose layout is not public. */
#if COMPAT_API == 42
int slurm_load_topo(topo_info_response_msg_t **topo_info_msg_pptr)
{
    return compat_not_supported();
}

void slurm_print_topo_info_msg(FILE *out, topo_info_response_msg_t *topo_info_msg_ptr,
                               char *node_list, int one_liner)
#else
int slurm_load_topo(topo_info_response_msg_t **topo_info_msg_pptr, char *name)
{
    return compat_not_supported();
}

void slurm_print_topo_info_msg(FILE *out, topo_info_response_msg_t *topo_info_msg_ptr,
                               char *node_list, char *unit, int one_liner)
#endif
{
    NEED(out);
    fprintf(out, "No topology information available\n");
}
#endif

/* ---- statistics ---- */

struct statistics {
    stats_info_response_msg_t **out;
    bool reset;
};

static int statistics(struct session *session, void *args, struct err *err)
{
    const struct statistics *asked = args;
    DiagRequest request = DIAG_REQUEST__INIT;
    DiagReply *reply;

    request.has_reset = request.reset = asked->reset;
    if (compat_call(session, "Diag", &request.base, &diag_reply__descriptor,
                    (ProtobufCMessage **)&reply, err) < 0)
        return -1;
    if (!asked->out)
        return 0;
    stats_info_response_msg_t *msg = compat_alloc(sizeof(*msg));
    IF_MEMBER(stats_info_response_msg_t_parts_packed, msg->parts_packed = 1;)
    msg->req_time = compat_seconds(reply->now_us);
    msg->req_time_start = compat_seconds(reply->start_us);
    msg->server_thread_count = 1;
    msg->schedule_cycle_max = (uint32_t)reply->plan_us_max;
    msg->schedule_cycle_last = (uint32_t)reply->plan_us_last;
    msg->schedule_cycle_sum = (__typeof__(msg->schedule_cycle_sum))reply->plan_us_total;
    msg->schedule_cycle_counter = (uint32_t)reply->plans;
    msg->schedule_queue_len = (uint32_t)reply->jobs_pending;
    msg->jobs_submitted = (uint32_t)reply->jobs_submitted;
    msg->jobs_started = (uint32_t)reply->jobs_started;
    msg->jobs_completed = (uint32_t)reply->jobs_completed;
    msg->jobs_canceled = (uint32_t)reply->jobs_cancelled;
    msg->jobs_failed = (uint32_t)reply->jobs_failed;
    msg->jobs_pending = (uint32_t)reply->jobs_pending;
    msg->jobs_running = (uint32_t)reply->jobs_running;
    msg->job_states_ts = msg->req_time;
    *asked->out = msg;
    return 0;
}

int slurm_get_statistics(stats_info_response_msg_t **buf, stats_info_request_msg_t *req)
{
    NEED(buf, SLURM_ERROR);
    return compat_run(statistics, &(struct statistics){ .out = buf });
}

int slurm_reset_statistics(stats_info_request_msg_t *req)
{
    return compat_run(statistics, &(struct statistics){ .reset = true });
}

void slurm_free_stats_response_msg(stats_info_response_msg_t *msg)
{
    if (!msg)
        return;
    compat_free_stats_info_response_msg_t(msg);
    slurm_xfree((void **)&msg);
}

/* ---- the controller ---- */

static int ping(struct session *session, void *args, struct err *err)
{
    Empty request = EMPTY__INIT;
    ProtobufCMessage *reply;

    return compat_call(session, "Ping", &request.base, &ping_reply__descriptor, &reply, err);
}

/* 0 is the first controller; others are asked through whoever leads. */
int slurm_ping(int dest)
{
    if (dest < 0) {
        errno = EINVAL;
        return SLURM_ERROR;
    }
    return compat_run(ping, NULL);
}

static int reconfigure(struct session *session, void *args, struct err *err)
{
    Empty request = EMPTY__INIT;
    ProtobufCMessage *reply;

    return compat_call(session, "Reconfigure", &request.base, &done_reply__descriptor, &reply, err);
}

int slurm_reconfigure(void)
{
    return compat_run(reconfigure, NULL);
}

static int stop(struct session *session, void *args, struct err *err)
{
    ShutdownRequest request = SHUTDOWN_REQUEST__INIT;
    ProtobufCMessage *reply;

    request.has_nodes_too = true;
    request.nodes_too = *(uint16_t *)args == 0;
    return compat_call(session, "Shutdown", &request.base, &done_reply__descriptor, &reply, err);
}

int slurm_shutdown(uint16_t options)
{
    return compat_run(stop, &options);
}

static int takeover(struct session *session, void *args, struct err *err)
{
    int index = *(int *)args;
    ChangeControllerRequest request = CHANGE_CONTROLLER_REQUEST__INIT;
    Empty empty = EMPTY__INIT;
    PingReply *known;
    ProtobufCMessage *reply;

    if (compat_call(session, "Ping", &empty.base, &ping_reply__descriptor,
                    (ProtobufCMessage **)&known, err) < 0)
        return -1;
    if (index < 0 || (size_t)index >= known->n_controllers)
        return err_set(err, ERR_UNSUPPORTED, "there is no controller with this number");
    request.name = known->controllers[index]->name;
    return compat_call(session, "TransferLeader", &request.base,
                       &change_controller_reply__descriptor, &reply, err);
}

int slurm_takeover(int backup_inx)
{
    return compat_run(takeover, &backup_inx);
}

/* Levels and flags of logs are settings of the configuration. */
int slurm_set_debug_level(uint32_t debug_level)
{
    return compat_not_supported();
}

int slurm_set_schedlog_level(uint32_t schedlog_level)
{
    return compat_not_supported();
}

int slurm_set_debugflags(uint64_t debug_flags_plus, uint64_t debug_flags_minus)
{
    return compat_not_supported();
}

int slurm_set_fs_dampeningfactor(uint16_t factor)
{
    return compat_not_supported();
}

/* ---- tokens ---- */

struct token {
    char *user, *text;
    int lifespan;
};

static int token(struct session *session, void *args, struct err *err)
{
    struct token *asked = args;
    TokenRequest request = TOKEN_REQUEST__INIT;
    TokenReply *reply;

    request.user = asked->user;
    request.has_lifespan_s = asked->lifespan > 0;
    request.lifespan_s = (uint32_t)MAX(asked->lifespan, 0);
    if (compat_call(session, "Token", &request.base, &token_reply__descriptor,
                    (ProtobufCMessage **)&reply, err) < 0)
        return -1;
    asked->text = compat_text(reply->token);
    return 0;
}

char *slurm_fetch_token(char *username, int lifespan)
{
    struct token asked = { .user = username, .lifespan = lifespan };

    return compat_run(token, &asked) == SLURM_SUCCESS ? asked.text : NULL;
}

/* ---- the agent of this host ---- */

static int node_status_work(struct session *session, void *args, struct err *err)
{
    ListNodesRequest request = LIST_NODES_REQUEST__INIT;
    char host[HOST_NAME_BYTES], *name;
    ListNodesReply *reply;

    host_short(host);
    name = getenv("SLURMD_NODENAME") ? getenv("SLURMD_NODENAME") : host;
    request.names = &name;
    request.n_names = 1;
    if (compat_call(session, "ListNodes", &request.base, &list_nodes_reply__descriptor,
                    (ProtobufCMessage **)&reply, err) < 0)
        return -1;
    if (!reply->n_nodes)
        return err_code(err, ERR_INVALID_NODE_NAME);
    const Node *node = reply->nodes[0];
    slurmd_status_t *msg = compat_alloc(sizeof(*msg));
    msg->booted = compat_seconds(node_status(node)->started_us);
    msg->last_slurmctld_msg = compat_seconds(node_status(node)->last_seen_us);
    msg->actual_cpus = (uint16_t)node_cpus(node);
    msg->actual_boards = 1;
    msg->actual_sockets = (uint16_t)node_sockets(node);
    msg->actual_cores = (uint16_t)node_cores(node);
    msg->actual_threads = (uint16_t)node_threads(node);
    msg->actual_real_mem = node_memory_mb(node);
    msg->actual_tmp_disk = (uint32_t)node_tmp_mb(node);
    msg->hostname = compat_text(node_hostname(node));
    msg->version = compat_text(node_version(node));
    *(slurmd_status_t **)args = msg;
    return 0;
}

int slurm_load_slurmd_status(slurmd_status_t **slurmd_status_ptr)
{
    NEED(slurmd_status_ptr, SLURM_ERROR);
    return compat_run(node_status_work, slurmd_status_ptr);
}

void slurm_free_slurmd_status(slurmd_status_t *slurmd_status_ptr)
{
    if (!slurmd_status_ptr)
        return;
    compat_free_slurmd_status_t(slurmd_status_ptr);
    slurm_xfree((void **)&slurmd_status_ptr);
}

void slurm_print_slurmd_status(FILE *out, slurmd_status_t *slurmd_status_ptr)
{
    NEED(out);
    const slurmd_status_t *s = slurmd_status_ptr;
    char when[64], last[64];

    if (!s)
        return;
    slurm_make_time_str((time_t *)&s->booted, when, sizeof(when));
    slurm_make_time_str((time_t *)&s->last_slurmctld_msg, last, sizeof(last));
    fprintf(out,
            "Active Steps             = %s\nActual CPUs              = %u\n"
            "Actual Boards            = %u\nActual sockets           = %u\n"
            "Actual cores             = %u\nActual threads per core  = %u\n"
            "Actual real memory       = %llu MB\nActual temp disk space   = %u MB\n"
            "Boot time                = %s\nHostname                 = %s\n"
            "Last slurmctld msg time  = %s\nVersion                  = %s\n",
            s->step_list ? s->step_list : "NONE", s->actual_cpus, s->actual_boards,
            s->actual_sockets, s->actual_cores, s->actual_threads,
            (unsigned long long)s->actual_real_mem, s->actual_tmp_disk, when,
            s->hostname ? s->hostname : "", last, s->version ? s->version : "");
}

/* ---- triggers: there are none, and a program cannot be added ---- */

void slurm_init_trigger_msg(trigger_info_t *trigger_info_msg)
{
    if (trigger_info_msg)
        memset(trigger_info_msg, 0, sizeof(*trigger_info_msg));
}

int slurm_get_triggers(trigger_info_msg_t **trigger_get)
{
    trigger_info_msg_t *msg =
        slurm_xcalloc(1, sizeof(trigger_info_msg_t), true, true, __FILE__, __LINE__, __func__);

    if (!msg || !trigger_get) {
        slurm_xfree((void **)&msg);
        errno = trigger_get ? ENOMEM : EINVAL;
        return SLURM_ERROR;
    }
    *trigger_get = msg;
    return SLURM_SUCCESS;
}

void slurm_free_trigger_msg(trigger_info_msg_t *trigger_free)
{
    if (!trigger_free)
        return;
    compat_free_trigger_info_msg_t(trigger_free);
    slurm_xfree((void **)&trigger_free);
}

int slurm_set_trigger(trigger_info_t *trigger_set)
{
    return compat_not_supported();
}

int slurm_clear_trigger(trigger_info_t *trigger_clear)
{
    return compat_not_supported();
}

int slurm_pull_trigger(trigger_info_t *trigger_pull)
{
    return compat_not_supported();
}

/* ---- front ends: there are none ---- */

#if EXPORTS_slurm_load_front_end
int slurm_load_front_end(time_t update_time, front_end_info_msg_t **resp)
{
    front_end_info_msg_t *msg =
        slurm_xcalloc(1, sizeof(front_end_info_msg_t), true, true, __FILE__, __LINE__, __func__);

    if (!msg || !resp) {
        slurm_xfree((void **)&msg);
        errno = resp ? ENOMEM : EINVAL;
        return SLURM_ERROR;
    }
    msg->last_update = compat_seconds(clock_wall_us());
    *resp = msg;
    return SLURM_SUCCESS;
}

void slurm_free_front_end_info_msg(front_end_info_msg_t *front_end_buffer_ptr)
{
    if (!front_end_buffer_ptr)
        return;
    compat_free_front_end_info_msg_t(front_end_buffer_ptr);
    slurm_xfree((void **)&front_end_buffer_ptr);
}
#endif

/* ---- messages of an allocation to its client ---- */

/*
 * Slurm's thread listens on a port for the controller. Here nothing is sent to clients, so the thread is a mark only:
 * the port is 0, and the callbacks are not called.
 */
struct allocation_msg_thread {
    slurm_allocation_callbacks_t callbacks;
};

allocation_msg_thread_t *slurm_allocation_msg_thr_create(
    uint16_t *port, const slurm_allocation_callbacks_t *callbacks)
{
    allocation_msg_thread_t *thread =
        slurm_xcalloc(1, sizeof(allocation_msg_thread_t), true, true, __FILE__, __LINE__, __func__);

    if (thread && callbacks)
        thread->callbacks = *callbacks;
    if (thread && port)
        *port = 0;
    return thread;
}

void slurm_allocation_msg_thr_destroy(allocation_msg_thread_t *msg_thr)
{
    slurm_xfree((void **)&msg_thr);
}

void slurm_free_sbcast_cred_msg(job_sbcast_cred_msg_t *msg)
{
    if (!msg)
        return;
    slurm_xfree((void **)&msg->node_list);
    slurm_xfree((void **)&msg);
}
