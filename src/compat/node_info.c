// SPDX-License-Identifier: Apache-2.0
/*
 * node_info.c - nodes as node_info_t; loading, freeing, updating them; where a name stands in the list
 *
 * Index lists of jobs and partitions count in the order of slurm_load_node(). Who is where is remembered for some
 * seconds by all threads, so that loading one job does not ask for all nodes.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/vec.h"
#include "compat/compat.h"
#include "schema/node_view.h"
#include "sys/clock.h"

enum { REMEMBER_US = 5 * 1000000 };

/* ---- where names stand ---- */

static pthread_mutex_t nodes_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    char **names;
    size_t count;
    struct map places; /* name → place + 1 */
    int64_t until_us;  /* boot time */
} remembered;

static void forget_names(void)
{
    for (size_t i = 0; i < remembered.count; i++)
        free(remembered.names[i]);
    free(remembered.names);
    if (remembered.names)
        map_done(&remembered.places);
    remembered.names = NULL;
    remembered.count = 0;
    remembered.until_us = 0;
}

__attribute__((destructor)) static void forget_at_end(void)
{
    forget_names();
}

static void remember(const ListNodesReply *reply)
{
    char **names = calloc(reply->n_nodes ? reply->n_nodes : 1, sizeof(char *));

    if (!names)
        return;
    for (size_t i = 0; i < reply->n_nodes; i++)
        names[i] = strdup(node_spec(reply->nodes[i])->name ? node_spec(reply->nodes[i])->name : "");
    pthread_mutex_lock(&nodes_lock);
    forget_names();
    remembered.names = names;
    remembered.count = reply->n_nodes;
    map_init(&remembered.places);
    for (size_t i = 0; i < remembered.count; i++) {
        if (names[i])
            map_put(&remembered.places, names[i], (void *)(uintptr_t)(i + 1));
    }
    remembered.until_us = clock_boot_us() + REMEMBER_US;
    pthread_mutex_unlock(&nodes_lock);
}

static int ask_nodes(struct session *session, char *name, ListNodesReply **reply, struct err *err)
{
    ListNodesRequest request = LIST_NODES_REQUEST__INIT;

    request.names = &name;
    request.n_names = name ? 1 : 0;
    return compat_call(session, "ListNodes", &request.base, &list_nodes_reply__descriptor,
                       (ProtobufCMessage **)reply, err);
}

int compat_list_nodes(struct session *session, ListNodesReply **reply, struct err *err)
{
    if (ask_nodes(session, NULL, reply, err) < 0)
        return -1;
    remember(*reply);
    return 0;
}

int compat_know_nodes(struct session *session, struct err *err)
{
    ListNodesReply *reply;

    pthread_mutex_lock(&nodes_lock);
    bool fresh = remembered.until_us > clock_boot_us();
    pthread_mutex_unlock(&nodes_lock);
    if (fresh)
        return 0;
    return compat_list_nodes(session, &reply, err);
}

static int by_number(const void *a, const void *b)
{
    return *(const int32_t *)a < *(const int32_t *)b ? -1
                                                     : *(const int32_t *)a > *(const int32_t *)b;
}

/* Pairs of first and last of sorted places. */
static int32_t *pairs_of(const int32_t *places, size_t count)
{
    int32_t *out = compat_alloc((2 * count + 1) * sizeof(*out));
    size_t used = 0;

    for (size_t i = 0; i < count; i++) {
        if (used && out[used - 1] + 1 >= places[i]) {
            out[used - 1] = places[i];
            continue;
        }
        out[used++] = places[i];
        out[used++] = places[i];
    }
    out[used] = -1;
    return out;
}

int32_t *compat_index(const char *hosts)
{
    CLEANUP(hostlist_done) struct hostlist list = { 0 };
    VEC(int32_t) places = { 0 };

    if (str_is_empty(hosts) || hostlist_parse(&list, hosts, NULL) < 0 ||
        hostlist_count(&list) > LIMIT_HOSTLIST_HOSTS)
        return compat_no_index();
    pthread_mutex_lock(&nodes_lock);
    hostlist_each (host, &list) {
        uintptr_t place =
            (uintptr_t)(remembered.names ? map_get(&remembered.places, host.name) : NULL);
        if (place)
            vec_push(&places, (int32_t)(place - 1));
    }
    pthread_mutex_unlock(&nodes_lock);
    if (places.len)
        qsort(places.items, places.len, sizeof(places.items[0]), by_number);
    int32_t *out = pairs_of(places.items, places.len);
    vec_done(&places);
    return out;
}

/* ---- records ---- */

typedef void node_writer(struct str *out, const Node *node);

static char *text_of(const Node *node, node_writer *write)
{
    struct str out = { 0 };

    write(&out, node);
    return compat_take(&out);
}

#if HAS_dynamic_plugin_data_t
/* What slurm_get_select_nodeinfo() is asked for. */
struct select_info {
    uint16_t cpus;
    uint64_t memory;
    char *tres;
};

void compat_free_plugin_data(dynamic_plugin_data_t **data)
{
    if (*data && (*data)->data) {
        struct select_info *info = (*data)->data;
        slurm_xfree((void **)&info->tres);
        slurm_xfree(&(*data)->data);
    }
    slurm_xfree((void **)data);
}
#endif

KEEP(
    HAS_node_info_t_select_nodeinfo, static dynamic_plugin_data_t *select_info(const Node *node) {
        const NodeStatus *status = node_status(node);
        dynamic_plugin_data_t *data = compat_alloc(sizeof(*data));
        struct select_info *info = compat_alloc(sizeof(*info));

        info->cpus = (uint16_t)status->alloc_cpus;
        info->memory = status->alloc_mem_mb;
        info->tres = text_of(node, node_add_tres_used);
        data->data = info;
        return data;
    })

#if EXPORTS_slurm_get_select_nodeinfo
int slurm_get_select_nodeinfo(dynamic_plugin_data_t *nodeinfo, enum select_nodedata_type data_type,
                              enum node_states state, void *data)
{
    GUARD(SLURM_ERROR);
    const struct select_info *info = nodeinfo ? nodeinfo->data : NULL;

    if (!info || !data) {
        errno = EINVAL;
        return SLURM_ERROR;
    }
    switch (data_type) {
    case SELECT_NODEDATA_SUBCNT:
        *(uint16_t *)data = state == NODE_STATE_ALLOCATED ? info->cpus : 0;
        return SLURM_SUCCESS;
    case SELECT_NODEDATA_MEM_ALLOC:
        *(uint64_t *)data = info->memory;
        return SLURM_SUCCESS;
    case SELECT_NODEDATA_TRES_ALLOC_FMT_STR:
        *(char **)data = compat_text(info->tres);
        return SLURM_SUCCESS;
    case SELECT_NODEDATA_TRES_ALLOC_WEIGHTED:
        *(double *)data = info->cpus;
        return SLURM_SUCCESS;
    default:
        return compat_not_supported();
    }
}
#endif

static void fill(node_info_t *out, const Node *node, uint16_t show_flags)
{
    const NodeSpec *spec = node_spec(node);
    const NodeStatus *status = node_status(node);
    const NodeInventory *found = node_found(node);

#define FILL(member, ...) \
    IF_MEMBER(node_info_t_##member, out->member = (__typeof__(out->member))(__VA_ARGS__);)
#define SKIP(member, why)
#include "compat/node_info_rows.h"
#undef FILL
#undef SKIP
}

struct load {
    node_info_msg_t **out;
    char *name;
    uint16_t show_flags;
};

static int load(struct session *session, void *args, struct err *err)
{
    struct load *asked = args;
    ListNodesReply *reply;

    if (ask_nodes(session, asked->name, &reply, err) < 0)
        return -1;
    if (!asked->name)
        remember(reply);
    node_info_msg_t *msg = compat_alloc(sizeof(*msg));
    msg->last_update = compat_seconds(reply->now_us ? reply->now_us : clock_wall_us());
    msg->record_count = (uint32_t)reply->n_nodes;
    msg->node_array = reply->n_nodes ? compat_alloc(reply->n_nodes * sizeof(node_info_t)) : NULL;
    for (size_t i = 0; i < reply->n_nodes; i++)
        fill(&msg->node_array[i], reply->nodes[i], asked->show_flags);
    *asked->out = msg;
    return 0;
}

int slurm_load_node(time_t update_time, node_info_msg_t **resp, uint16_t show_flags)
{
    NEED(resp, SLURM_ERROR);
    struct load asked = { .out = resp, .show_flags = show_flags };

    return compat_run(load, &asked);
}

int slurm_load_node2(time_t update_time, node_info_msg_t **resp, uint16_t show_flags,
                     slurmdb_cluster_rec_t *cluster)
{
    return slurm_load_node(update_time, resp, show_flags);
}

int slurm_load_node_single(node_info_msg_t **resp, char *node_name, uint16_t show_flags)
{
    NEED(resp && node_name, SLURM_ERROR);
    struct load asked = { .out = resp, .name = node_name, .show_flags = show_flags };

    return compat_run(load, &asked);
}

int slurm_load_node_single2(node_info_msg_t **resp, char *node_name, uint16_t show_flags,
                            slurmdb_cluster_rec_t *cluster)
{
    return slurm_load_node_single(resp, node_name, show_flags);
}

void slurm_free_node_info_msg(node_info_msg_t *node_buffer_ptr)
{
    if (!node_buffer_ptr)
        return;
    compat_free_node_info_msg_t(node_buffer_ptr);
    slurm_xfree((void **)&node_buffer_ptr);
}

void slurm_free_node_info_members(node_info_t *node)
{
    if (node)
        compat_free_node_info_t(node);
}

/* Fills node_info_t.partitions from the partitions' lists of nodes. */
void slurm_populate_node_partitions(node_info_msg_t *node_buffer_ptr,
                                    partition_info_msg_t *part_buffer_ptr)
{
    GUARD();

    for (uint32_t n = 0; node_buffer_ptr && n < node_buffer_ptr->record_count; n++) {
        struct str names = { 0 };
        for (uint32_t p = 0; part_buffer_ptr && p < part_buffer_ptr->record_count; p++) {
            const partition_info_t *part = &part_buffer_ptr->partition_array[p];
            for (size_t i = 0; part->node_inx && part->node_inx[i] >= 0; i += 2) {
                if ((uint32_t)part->node_inx[i] <= n && n <= (uint32_t)part->node_inx[i + 1]) {
                    str_addf(&names, "%s%s", names.len ? "," : "", part->name);
                    break;
                }
            }
        }
        slurm_xfree((void **)&node_buffer_ptr->node_array[n].partitions);
        node_buffer_ptr->node_array[n].partitions = compat_take(&names);
    }
}

/* ---- changes ---- */

void slurm_init_update_node_msg(update_node_msg_t *update_node_msg)
{
    if (!update_node_msg)
        return;
    memset(update_node_msg, 0, sizeof(*update_node_msg));
    update_node_msg->node_state = NO_VAL;
    update_node_msg->weight = NO_VAL;
    IF_MEMBER(update_node_msg_t_reason_uid, update_node_msg->reason_uid = NO_VAL;)
    IF_MEMBER(update_node_msg_t_resume_after, update_node_msg->resume_after = NO_VAL;)
}

void slurm_free_update_node_msg(update_node_msg_t *msg)
{
    if (!msg)
        return;
    compat_free_update_node_msg_t(msg);
    slurm_xfree((void **)&msg);
}

/* Words of UpdateNode for the states a client asks for; the more special first. */
static const struct {
    uint32_t state;
    const char *word;
} state_words[] = {
    { NODE_STATE_DRAIN, "DRAIN" },
    { NODE_STATE_UNDRAIN, "UNDRAIN" },
    { NODE_STATE_FAIL, "FAIL" },
    { NODE_STATE_NO_RESPOND, "NoResp" },
    { NODE_STATE_POWER_DOWN, "POWER_DOWN" },
    { NODE_STATE_POWER_UP, "POWER_UP" },
    { NODE_STATE_REBOOT_CANCEL, "CANCEL_REBOOT" },
    { NODE_RESUME, "RESUME" },
};

static char *state_word(uint32_t state)
{
    for (size_t i = 0; i < ARRAY_LEN(state_words); i++) {
        if (state & state_words[i].state)
            return (char *)state_words[i].word;
    }
    switch (state & NODE_STATE_BASE) {
    case NODE_STATE_DOWN:
        return (char *)"DOWN";
    case NODE_STATE_IDLE:
        return (char *)"IDLE";
    case NODE_STATE_FUTURE:
        return (char *)"FUTURE";
    default:
        return NULL;
    }
}

static void set_words(struct session *session, const char *text, NodeSpec *spec)
{
    const char *cursor = text;
    struct span word;

    spec->features = ARENA_ARRAY(&session->arena, char *, strlen(text) + 1);
    while (str_next(&cursor, ",", &word))
        spec->features[spec->n_features++] = arena_strndup(&session->arena, word.ptr, word.len);
}

static int update(struct session *session, void *args, struct err *err)
{
    const update_node_msg_t *asked = args;
    UpdateNodeRequest request = UPDATE_NODE_REQUEST__INIT;
    NodeSpec spec = NODE_SPEC__INIT;
    DoneReply *reply;

    if (str_is_empty(asked->node_names))
        return err_code(err, ERR_INVALID_NODE_NAME);
    if (asked->gres || asked->node_addr || asked->node_hostname)
        return err_set(err, ERR_UNSUPPORTED, "resources and addresses of nodes are configured");
    request.names = asked->node_names;
    if (asked->node_state != NO_VAL) {
        request.state = state_word(asked->node_state);
        if (!request.state)
            return err_code(err, ERR_NODE_STATE);
    }
    request.reason = asked->reason;
    request.change = &spec;
    spec.comment = asked->comment;
    spec.extra = asked->extra;
    if (asked->weight != NO_VAL) {
        spec.has_weight = true;
        spec.weight = asked->weight;
    }
    const char *features = asked->features ? asked->features : asked->features_act;
    if (features) {
        request.has_clear_features = request.clear_features = !*features;
        set_words(session, features, &spec);
    }
    IF_MEMBER(
        update_node_msg_t_resume_after, if (asked->resume_after != NO_VAL) {
            request.has_resume_after_s = true;
            request.resume_after_s = asked->resume_after == INFINITE ? 0 : asked->resume_after;
        })
    return compat_call(session, "UpdateNode", &request.base, &done_reply__descriptor,
                       (ProtobufCMessage **)&reply, err);
}

int slurm_update_node(update_node_msg_t *node_msg)
{
    NEED(node_msg, SLURM_ERROR);
    return compat_run(update, node_msg);
}

/* Nodes join with a token and leave by the configuration. */
int slurm_create_node(update_node_msg_t *node_msg)
{
    return compat_not_supported();
}

int slurm_delete_node(update_node_msg_t *node_msg)
{
    return compat_not_supported();
}
