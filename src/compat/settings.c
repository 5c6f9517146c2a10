// SPDX-License-Identifier: Apache-2.0
/*
 * settings.c - the configuration under Slurm's keys, and slurm_conf_t filled from them
 *
 * The rows of schema/conf_keys.h say what Slurm calls each setting. A member of slurm_conf_t is found by its key: the
 * same letters without underscores ("max_job_cnt" has an alias). Members without a key stay 0.
 */
#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/vec.h"
#include "compat/compat.h"
#include "schema/conf_keys.h"
#include "sys/clock.h"
#include "sys/host.h"
#include "wire/message.h"

/* ---- keys ---- */

typedef VEC(struct compat_setting) setting_list;

static void add_value(struct str *out, const void *message, const ProtobufCFieldDescriptor *field,
                      const struct conf_key *key)
{
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        size_t count = *(const size_t *)((const char *)message + field->quantifier_offset);
        char *const *items = *(char *const *const *)((const char *)message + field->offset);

        for (size_t i = 0; field->type == PROTOBUF_C_TYPE_STRING && i < count; i++)
            str_addf(out, "%s%s", i ? "," : "", items[i]);
    } else if (!msg_has(message, field)) {
        str_add(out, key->def ? key->def : "");
    } else if (field->type == PROTOBUF_C_TYPE_STRING) {
        str_add(out, key->flags & CONF_SECRET ? "(hidden)" : msg_text(message, field));
    } else if ((key->flags & CONF_UNLIMITED) && msg_number(message, field) < 0) {
        str_add(out, "UNLIMITED");
    } else {
        str_add_i64(out, msg_number(message, field));
    }
}

static void push(struct session *session, setting_list *list, const char *key, size_t len,
                 const char *value)
{
    vec_push(list, (struct compat_setting){ .key = arena_strndup(&session->arena, key, len),
                                            .value = arena_strdup(&session->arena, value) });
}

static void push_section(struct session *session, setting_list *list,
                         const struct conf_section *section, const GetConfigReply *reply)
{
    for (const struct conf_key *key = section->keys; key->name; key++) {
        const void *message =
            key->flags & CONF_LOCAL ? (const void *)reply->local : (const void *)reply->config;
        struct str value = { 0 };

        if (!key->slurm || !message)
            continue;
        add_value(&value, message, conf_key_field(section, key), key);
        push(session, list, key->slurm, strcspn(key->slurm, ","), str_text(&value));
        str_done(&value);
    }
}

static int by_key(const void *a, const void *b)
{
    return strcasecmp(((const struct compat_setting *)a)->key,
                      ((const struct compat_setting *)b)->key);
}

int compat_settings(struct session *session, struct compat_setting **out, size_t *count,
                    GetConfigReply **reply, struct err *err)
{
    GetConfigRequest request = GET_CONFIG_REQUEST__INIT;
    setting_list list = { 0 };

    if (compat_call(session, "GetConfig", &request.base, &get_config_reply__descriptor,
                    (ProtobufCMessage **)reply, err) < 0)
        return -1;
    for (size_t i = 0; i < conf_section_count; i++) {
        if (!conf_sections[i].list)
            push_section(session, &list, &conf_sections[i], *reply);
    }
    for (size_t i = 0; (*reply)->config && i < (*reply)->config->n_kept; i++) {
        const ConfKept *kept = (*reply)->config->kept[i];
        if (kept->key)
            push(session, &list, kept->key, strlen(kept->key), kept->value ? kept->value : "");
    }
    if (list.len)
        qsort(list.items, list.len, sizeof(list.items[0]), by_key);
    *out = arena_copy(&session->arena, list.items, list.len * sizeof(list.items[0]));
    *count = list.len;
    vec_done(&list);
    return 0;
}

/* ---- slurm_conf_t ---- */

enum member_kind { MEMBER_TEXT, MEMBER_U16, MEMBER_U32, MEMBER_U64, MEMBER_TIME };

/* Every member of slurm_conf_t that is a text or a number, from the table of structs. */
static const struct {
    const char *name;
    size_t offset;
    enum member_kind kind;
} members[] = {
#define CONF_MEMBER(name, kind) { #name, offsetof(slurm_conf_t, name), kind },
#include "conf_members.h"
#undef CONF_MEMBER
};

/* Members whose key has other letters. */
static const struct {
    const char *member, *key;
} aliases[] = {
    { "max_job_cnt", "MaxJobCount" },
    { "authtype", "AuthType" },
    { "comm_params", "CommunicationParameters" },
    { "group_force", "GroupUpdateForce" },
    { "group_time", "GroupUpdateTime" },
    { "job_acct_gather_freq", "JobAcctGatherFrequency" },
    { "job_comp_loc", "JobCompLoc" },
    { "launch_params", "LaunchParameters" },
    { "max_array_sz", "MaxArraySize" },
    { "max_node_cnt", "MaxNodeCount" },
    { "max_step_cnt", "MaxStepCount" },
    { "msg_timeout", "MessageTimeout" },
    { "plugindir", "PluginDir" },
    { "plugstack", "PlugStackConfig" },
    { "priority_calc_period", "PriorityCalcPeriod" },
    { "priority_decay_hl", "PriorityDecayHalfLife" },
    { "priority_params", "PriorityParameters" },
    { "priority_weight_fs", "PriorityWeightFairShare" },
    { "priority_weight_js", "PriorityWeightJobSize" },
    { "priority_weight_part", "PriorityWeightPartition" },
    { "ret2service", "ReturnToService" },
    { "sched_params", "SchedulerParameters" },
    { "sched_time_slice", "SchedulerTimeSlice" },
    { "schedtype", "SchedulerType" },
    { "slurm_user_name", "SlurmUser" },
    { "slurmctld_logfile", "SlurmctldLogFile" },
    { "slurmctld_params", "SlurmctldParameters" },
    { "slurmd_params", "SlurmdParameters" },
    { "tree_width", "TreeWidth" },
};

static bool same_letters(const char *member, const char *key)
{
    for (; *member || *key; member++, key++) {
        while (*member == '_')
            member++;
        if (tolower((unsigned char)*member) != tolower((unsigned char)*key))
            return false;
        if (!*member)
            return true;
    }
    return true;
}

static const char *value_of(const char *member, const struct compat_setting *settings, size_t count)
{
    for (size_t i = 0; i < ARRAY_LEN(aliases); i++) {
        if (strcmp(aliases[i].member, member) == 0)
            member = aliases[i].key;
    }
    for (size_t i = 0; i < count; i++) {
        if (same_letters(member, settings[i].key))
            return settings[i].value;
    }
    return NULL;
}

static void set_member(slurm_conf_t *conf, size_t at, const char *value)
{
    char *where = (char *)conf + members[at].offset;
    bool unlimited = str_ieq(value, "UNLIMITED") || str_ieq(value, "INFINITE");
    uint64_t number = strtoull(value, NULL, 10);

    if (str_ieq(value, "true") || str_ieq(value, "yes"))
        number = 1;
    switch (members[at].kind) {
    case MEMBER_TEXT:
        *(char **)where = compat_text(value);
        break;
    case MEMBER_U16:
        *(uint16_t *)where = unlimited ? INFINITE16 : (uint16_t)MIN(number, UINT16_MAX);
        break;
    case MEMBER_U32:
        *(uint32_t *)where = unlimited ? INFINITE : (uint32_t)MIN(number, UINT32_MAX);
        break;
    case MEMBER_U64:
        *(uint64_t *)where = unlimited ? INFINITE64 : number;
        break;
    case MEMBER_TIME:
        break;
    }
}

/* What is not a setting of ours, but known. */
static void set_known(slurm_conf_t *conf, const GetConfigReply *reply)
{
    size_t hosts = reply->local ? reply->local->n_hosts : 0;

    conf->last_update = compat_seconds(clock_wall_us());
    conf->boot_time = compat_seconds(reply->boot_us);
    conf->next_job_id = reply->next_job_id;
    slurm_xfree((void **)&conf->version);
    conf->version = compat_text(reply->version);
    conf->control_machine = compat_alloc((hosts + 2) * sizeof(char *));
    conf->control_addr = compat_alloc((hosts + 2) * sizeof(char *));
    conf->control_cnt = (uint32_t)MAX(hosts, 1);
    for (size_t i = 0; i < hosts; i++) {
        conf->control_machine[i] = compat_text_kept(reply->local->hosts[i]);
        conf->control_addr[i] = compat_text_kept(reply->local->hosts[i]);
    }
    if (!hosts) {
        conf->control_machine[0] = compat_text_kept("localhost");
        conf->control_addr[0] = compat_text_kept("localhost");
    }
}

static int fill_conf(struct session *session, slurm_conf_t *conf, struct err *err)
{
    struct compat_setting *settings;
    GetConfigReply *reply;
    size_t count;

    if (compat_settings(session, &settings, &count, &reply, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        const char *value = value_of(members[i].name, settings, count);
        if (!str_is_empty(value) && strcmp(value, "(null)") != 0)
            set_member(conf, i, value);
    }
    set_known(conf, reply);
    return 0;
}

/* control_machine and control_addr are counted, not ended. */
static void free_conf(slurm_conf_t *conf)
{
    compat_free_strings(&conf->control_machine, conf->control_cnt);
    compat_free_strings(&conf->control_addr, conf->control_cnt);
    compat_free_slurm_conf_t(conf);
}

static int load(struct session *session, void *args, struct err *err)
{
    slurm_conf_t *conf = compat_alloc(sizeof(*conf));

    if (fill_conf(session, conf, err) < 0) {
        slurm_xfree((void **)&conf);
        return -1;
    }
    *(slurm_conf_t **)args = conf;
    return 0;
}

int slurm_load_ctl_conf(time_t update_time, slurm_conf_t **slurm_ctl_conf_ptr)
{
    NEED(slurm_ctl_conf_ptr, SLURM_ERROR);
    return compat_run(load, slurm_ctl_conf_ptr);
}

static void free_loaded(slurm_conf_t *conf)
{
    if (!conf)
        return;
    free_conf(conf);
    slurm_xfree((void **)&conf);
}

#if EXPORTS_slurm_free_ctl_conf
void slurm_free_ctl_conf(slurm_conf_t *slurm_ctl_conf_ptr)
{
    free_loaded(slurm_ctl_conf_ptr);
}
#endif
#if EXPORTS_slurm_free_conf
void slurm_free_conf(slurm_conf_t *slurm_conf_ptr)
{
    free_loaded(slurm_conf_ptr);
}
#endif

/* ---- the process's own copy, which some clients read directly ---- */

extern slurm_conf_t slurm_conf;
slurm_conf_t slurm_conf;
extern char slurm_cgroup_conf[];
char slurm_cgroup_conf[1024]; /* of private type: nothing of it is known, and it is all 0 */
static pthread_mutex_t conf_lock = PTHREAD_MUTEX_INITIALIZER;
static bool conf_known;

static int init(struct session *session, void *args, struct err *err)
{
    compat_brief(session);
    return fill_conf(session, &slurm_conf, err);
}

int slurm_conf_init(const char *file_name)
{
    int rc = SLURM_SUCCESS;

    pthread_mutex_lock(&conf_lock);
    if (!conf_known)
        rc = compat_run(init, NULL);
    conf_known |= rc == SLURM_SUCCESS;
    pthread_mutex_unlock(&conf_lock);
    return rc;
}

int slurm_conf_destroy(void)
{
    pthread_mutex_lock(&conf_lock);
    free_conf(&slurm_conf);
    memset(&slurm_conf, 0, sizeof(slurm_conf));
    conf_known = false;
    pthread_mutex_unlock(&conf_lock);
    return SLURM_SUCCESS;
}

slurm_conf_t *slurm_conf_lock(void)
{
    slurm_conf_init(NULL);
    pthread_mutex_lock(&conf_lock);
    return &slurm_conf;
}

void slurm_conf_unlock(void)
{
    pthread_mutex_unlock(&conf_lock);
}

/*
 * Where the controller is follows from $SPUR_CONTROLLER_ADDR; a file name is not needed. A controller that is not
 * there is no error yet: clients that need none (hostlists) call this too.
 */
void slurm_init(const char *conf)
{
    int saved = errno;

    slurm_conf_init(conf);
    errno = saved;
}

void slurm_fini(void)
{
    slurm_conf_destroy();
    compat_forget_session();
}

__attribute__((destructor)) static void unload(void)
{
    slurm_conf_destroy();
}

int slurm_cgroup_conf_init(void)
{
    return SLURM_SUCCESS;
}

void slurm_cgroup_conf_destroy(void)
{
}

char *slurm_autodetect_cgroup_version(void)
{
    GUARD(NULL);

    return compat_text(access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0 ? "cgroup/v2"
                                                                              : "cgroup/v1");
}

/* ---- names of nodes ---- */

struct node_name {
    const char *host;
    char *name;
};

static int find_name(struct session *session, void *args, struct err *err)
{
    struct node_name *asked = args;
    ListNodesRequest request = LIST_NODES_REQUEST__INIT;
    size_t len = strcspn(asked->host, ".");
    ListNodesReply *reply;

    if (compat_call(session, "ListNodes", &request.base, &list_nodes_reply__descriptor,
                    (ProtobufCMessage **)&reply, err) < 0)
        return -1;
    for (size_t i = 0; i < reply->n_nodes && !asked->name; i++) {
        const NodeSpec *spec = reply->nodes[i]->spec;
        const char *host = spec && spec->hostname ? spec->hostname : spec ? spec->name : NULL;
        if (host && strlen(host) == len && strncmp(host, asked->host, len) == 0)
            asked->name = compat_text(spec->name);
    }
    return 0;
}

char *slurm_conf_get_nodename(const char *node_hostname)
{
    struct node_name asked = { .host = node_hostname };

    if (str_is_empty(node_hostname) || compat_run(find_name, &asked) != SLURM_SUCCESS)
        return NULL;
    return asked.name;
}

char *slurm_conf_get_aliased_nodename(void)
{
    char host[HOST_NAME_BYTES];

    host_short(host);
    return slurm_conf_get_nodename(host);
}

/* ---- pairs of key and value ---- */

/* As clients read them: two texts. */
struct key_pair {
    char *name, *value;
};

static void free_pair(void *object)
{
    struct key_pair *pair = object;

    slurm_xfree((void **)&pair->name);
    slurm_xfree((void **)&pair->value);
    slurm_xfree((void **)&pair);
}

static void add_member(struct str *out, const slurm_conf_t *conf, size_t at)
{
    const char *where = (const char *)conf + members[at].offset;

    switch (members[at].kind) {
    case MEMBER_TEXT:
        str_add(out, *(char *const *)where ? *(char *const *)where : "(null)");
        break;
    case MEMBER_U16:
        str_add_u64(out, *(const uint16_t *)where);
        break;
    case MEMBER_U32:
        str_add_u64(out, *(const uint32_t *)where);
        break;
    case MEMBER_U64:
        str_add_u64(out, *(const uint64_t *)where);
        break;
    case MEMBER_TIME:
        str_add_i64(out, *(const time_t *)where);
        break;
    }
}

/* "max_job_cnt" as "MaxJobCnt". */
static void add_key(struct str *out, const char *member)
{
    bool capital = true;

    for (; *member; member++) {
        if (*member == '_') {
            capital = true;
            continue;
        }
        str_add_char(out, capital ? (char)toupper((unsigned char)*member) : *member);
        capital = false;
    }
}

void *slurm_ctl_conf_2_key_pairs(slurm_conf_t *slurm_ctl_conf_ptr)
{
    GUARD(NULL);
    compat_list list = slurm_ctl_conf_ptr ? slurm_list_create(free_pair) : NULL;

    for (size_t i = 0; list && i < ARRAY_LEN(members); i++) {
        struct key_pair *pair = compat_alloc(sizeof(*pair));
        struct str key = { 0 }, value = { 0 };

        add_key(&key, members[i].name);
        add_member(&value, slurm_ctl_conf_ptr, i);
        pair->name = compat_take(&key);
        pair->value = compat_take(&value);
        slurm_list_append(list, pair);
    }
    return list;
}

void slurm_print_key_pairs(FILE *out, void *key_pairs, char *title)
{
    NEED(out);
    compat_iterator at = key_pairs ? slurm_list_iterator_create(key_pairs) : NULL;
    struct key_pair *pair;

    if (title)
        fprintf(out, "%s", title);
    while (at && (pair = slurm_list_next(at)))
        fprintf(out, "%-23s = %s\n", pair->name, pair->value ? pair->value : "");
    if (at)
        slurm_list_iterator_destroy(at);
}

void slurm_print_ctl_conf(FILE *out, slurm_conf_t *slurm_ctl_conf_ptr)
{
    NEED(out && slurm_ctl_conf_ptr);
    void *pairs = slurm_ctl_conf_2_key_pairs(slurm_ctl_conf_ptr);
    char when[64];

    if (!pairs)
        return;
    slurm_make_time_str(&slurm_ctl_conf_ptr->last_update, when, sizeof(when));
    fprintf(out, "Configuration data as of %s\n", when);
    slurm_print_key_pairs(out, pairs, NULL);
    slurm_list_destroy(pairs);
}
