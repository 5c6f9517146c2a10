// SPDX-License-Identifier: Apache-2.0
/*
 * control_config.c - scontrol show config: every key of Slurm with the value in force
 *
 * The rows are Slurm's keys in Slurm's order. A value comes from our setting of that name
 * (schema/conf_keys.h), else from a key of slurm.conf that was kept as it was, else from the row.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/release.h"
#include "base/timefmt.h"
#include "cli/control.h"
#include "cli/ping.h"
#include "schema/conf_keys.h"
#include "sys/users.h"
#include "wire/message.h"

struct shown {
    struct control *control;
    const GetConfigReply *reply;
    struct field_ctx ctx;
};

enum form {
    TEXT,
    SECONDS,
    MINUTES,
    USECONDS,
    RATE,
    PERCENT,
    PART, /* 100.0% */
    MEGABYTES,
    DURATION,
    YES_NO,
    ZERO_ONE,
    PLUGIN, /* "none" is none */
    CAPITALS,
    MANY,            /* NAME[0], NAME[1]; not shown when unset */
    HOSTS,           /* the same of the controllers */
    PER_CPU_OR_NODE, /* NAMECPU when that is set, else NAMENode */
};

struct config_row {
    const char *name;
    enum form form;
    void (*from)(const struct shown *shown, struct str *out);
    const char *def; /* when nothing else says; NULL is (null) */
};

/* ---- values ---- */

static const char *kept_value(const struct shown *shown, const char *name)
{
    const Config *config = shown->reply->config;

    for (size_t i = 0; config && i < config->n_kept; i++) {
        if (config->kept[i]->key && str_ieq(config->kept[i]->key, name))
            return config->kept[i]->value;
    }
    return NULL;
}

static bool has_name(const struct conf_key *key, const char *name)
{
    const char *cursor = key->slurm ? key->slurm : "";
    struct span word;

    while (str_next(&cursor, ",", &word)) {
        if (span_ieq(word, name))
            return true;
    }
    return false;
}

/* A setting of ours: its row, its field, and the message that has it. */
struct setting {
    const struct conf_key *key;
    const ProtobufCFieldDescriptor *field;
    const void *message;
};

static bool find_setting(const struct shown *shown, const char *name, struct setting *out)
{
    for (size_t i = 0; i < conf_section_count; i++) {
        const struct conf_section *section = &conf_sections[i];

        if (section->list)
            continue;
        for (const struct conf_key *key = section->keys; key->name; key++) {
            if (!has_name(key, name))
                continue;
            out->key = key;
            out->field = conf_key_field(section, key);
            out->message = key->flags & CONF_LOCAL ? (const void *)shown->reply->local
                                                   : (const void *)shown->reply->config;
            return out->message != NULL;
        }
    }
    return false;
}

static size_t list_of(const struct setting *setting, char *const **items)
{
    if (setting->field->label != PROTOBUF_C_LABEL_REPEATED ||
        setting->field->type != PROTOBUF_C_TYPE_STRING)
        return 0;
    *items = *(char *const *const *)((const char *)setting->message + setting->field->offset);
    return *(const size_t *)((const char *)setting->message + setting->field->quantifier_offset);
}

/* "affinity,cgroup" of the kind "task" as "task/affinity,task/cgroup". */
static void add_words(struct str *out, const char *kind, const char *words)
{
    const char *cursor = words;
    struct span word;

    while (str_next(&cursor, ",", &word))
        str_addf(out, "%s%s%s%.*s", out->len ? "," : "", kind ? kind : "", kind ? "/" : "",
                 (int)word.len, word.ptr);
}

static void add_number(struct str *out, enum form form, int64_t number, bool unlimited)
{
    static const char *const units[] = {
        [SECONDS] = " sec",    [MINUTES] = " min", [USECONDS] = " usec", [PERCENT] = " percent",
        [RATE] = " nodes/min", [PART] = ".0%",     [MEGABYTES] = "MB",
    };

    if (form == YES_NO)
        str_add(out, number ? "yes" : "no");
    else if (form == ZERO_ONE)
        str_add(out, number ? "1" : "0");
    else if (unlimited && number < 0)
        str_add(out, "UNLIMITED");
    else if (form == DURATION)
        timefmt_write_duration(out, number, TIMEFMT_LONG);
    else
        str_addf(out, "%lld%s", (long long)number,
                 form < ARRAY_LEN(units) && units[form] ? units[form] : "");
}

/* A value as a file has it, in the form that Slurm shows. */
static void add_text(struct str *out, enum form form, const char *text)
{
    const char *slash = strrchr(text, '/');
    int64_t number;

    if (form == PLUGIN && str_ieq(slash ? slash + 1 : text, "none")) {
        str_add(out, "(null)");
    } else if (form == CAPITALS) {
        for (const char *p = text; *p; p++)
            str_add_char(out, (char)toupper((unsigned char)*p));
    } else if (form == YES_NO || form == ZERO_ONE) {
        add_number(out, form,
                   str_ieq(text, "yes") || str_ieq(text, "true") || strcmp(text, "1") == 0, false);
    } else if (form == DURATION && timefmt_read_duration(text, &number, NULL) == 0) {
        add_number(out, form, number, true);
    } else if (form != TEXT && str_to_i64(text, -1, INT64_MAX, &number)) {
        if (number < 0)
            str_add(out, "INFINITE");
        else
            add_number(out, form, number, false);
    } else {
        str_add_visible(out, text, strlen(text));
    }
}

static bool add_setting(const struct setting *setting, enum form form, struct str *out)
{
    const struct conf_key *key = setting->key;
    CLEANUP(str_done) struct str words = { 0 };
    char *const *items = NULL;
    size_t count = list_of(setting, &items);

    for (size_t i = 0; i < count; i++)
        add_words(&words, key->kind, items[i]);
    if (setting->field->label != PROTOBUF_C_LABEL_REPEATED &&
        msg_has(setting->message, setting->field)) {
        if (setting->field->type != PROTOBUF_C_TYPE_STRING) {
            add_number(out, form, msg_number(setting->message, setting->field),
                       key->flags & CONF_UNLIMITED);
            return true;
        }
        if (key->kind)
            add_words(&words, key->kind, msg_text(setting->message, setting->field));
        else
            str_add(&words, key->flags & CONF_SECRET ? "(hidden)"
                                                     : msg_text(setting->message, setting->field));
    }
    if (!words.len && !key->def)
        return false;
    if (!words.len)
        add_words(&words, key->kind, key->def);
    add_text(out, form, str_text(&words));
    return true;
}

static void add_value(const struct shown *shown, const struct config_row *row, struct str *out)
{
    const char *kept = kept_value(shown, row->name);
    struct setting setting;

    if (row->from)
        row->from(shown, out);
    else if (find_setting(shown, row->name, &setting) && add_setting(&setting, row->form, out))
        return;
    else if (!str_is_empty(kept))
        add_text(out, row->form, kept);
    else if (row->def)
        add_text(out, row->form, row->def);
    else
        str_add(out, "(null)");
}

/* ---- values that several settings make, or the controller alone knows ---- */

/* Of the accounting daemon, as a file gives it; "" when there is none. */
static const char *dbd_address(const struct shown *shown)
{
    const struct conf_section *section = conf_section_find("accounting");
    const ProtobufCFieldDescriptor *field = conf_key_field(section, conf_key_find(section, "addr"));
    const ConfLocal *local = shown->reply->local;

    return local && msg_has(local, field) ? msg_text(local, field) : "";
}

/* "http://host:6819": the host, or the port. */
static void add_dbd(const struct shown *shown, bool port, struct str *out)
{
    const char *address = dbd_address(shown);
    const char *host = strstr(address, "://");
    const char *colon;

    host = host ? host + 3 : address;
    colon = strrchr(host, ':');
    if (!*host)
        str_add(out, port ? "0" : "localhost");
    else if (port)
        str_add(out, colon ? colon + 1 : "6819");
    else
        str_add_visible(out, host, colon ? (size_t)(colon - host) : strlen(host));
}

static void from_dbd_host(const struct shown *shown, struct str *out)
{
    add_dbd(shown, false, out);
}

static void from_dbd_port(const struct shown *shown, struct str *out)
{
    add_dbd(shown, true, out);
}

static void from_dbd_type(const struct shown *shown, struct str *out)
{
    str_add(out, *dbd_address(shown) ? "accounting_storage/slurmdbd" : "(null)");
}

static void from_tres(const struct shown *shown, struct str *out)
{
    static const char usual[] = "cpu,mem,energy,node,billing,fs/disk,vmem,pages";
    const Config *config = shown->reply->config;
    bool gpu = false;

    str_add(out, usual);
    for (size_t i = 0; config && i < config->n_accounting_tres; i++) {
        gpu = gpu || str_ieq(config->accounting_tres[i], "gres/gpu");
        str_addf(out, ",%s", config->accounting_tres[i]);
    }
    if (gpu)
        str_add(out, ",gres/gpumem,gres/gpuutil");
}

static void from_boot_time(const struct shown *shown, struct str *out)
{
    field_add_moment(out, &shown->ctx, shown->reply->boot_us);
}

static void from_node_count(const struct shown *shown, struct str *out)
{
    const char *kept = kept_value(shown, "MaxNodeCount");

    if (!str_is_empty(kept))
        str_add(out, kept);
    else
        str_add_u64(out, shown->reply->config ? shown->reply->config->n_nodes : 0);
}

static void from_next_job_id(const struct shown *shown, struct str *out)
{
    str_add_u64(out, shown->reply->next_job_id);
}

static void from_half_life(const struct shown *shown, struct str *out)
{
    const Config *config = shown->reply->config;

    timefmt_write_duration(out,
                           config && config->has_priority_decay_half_life_s
                               ? config->priority_decay_half_life_s
                               : 7 * 86400,
                           TIMEFMT_LONG);
}

static void from_job_defaults(const struct shown *shown, struct str *out)
{
    const Config *config = shown->reply->config;

    if (config && config->has_def_cpu_per_gpu)
        str_addf(out, "DefCpuPerGPU=%u", config->def_cpu_per_gpu);
    if (config && config->has_def_mem_per_gpu_mb)
        str_addf(out, "%sDefMemPerGPU=%llu", out->len ? "," : "",
                 (unsigned long long)config->def_mem_per_gpu_mb);
    if (!out->len)
        str_add(out, "(null)");
}

/* "slurm(64030)". */
static void add_user(struct str *out, const char *name, bool has_uid, uint32_t uid)
{
    struct user *user = NULL;

    if (!str_is_empty(name) ? users_by_name(name, &user, NULL) == 0
                            : has_uid && users_by_uid(uid, &user, NULL) == 0)
        str_addf(out, "%s(%u)", user->name, (unsigned)user->uid);
    else if (has_uid)
        str_addf(out, "%s(%u)", str_is_empty(name) ? "nobody" : name, uid);
    else
        str_add(out, str_is_empty(name) ? "root(0)" : name);
    user_free(user);
}

static void from_slurm_user(const struct shown *shown, struct str *out)
{
    const ConfLocal *local = shown->reply->local;

    add_user(out, local ? local->user : NULL, shown->reply->has_uid, shown->reply->uid);
}

static void from_slurmd_user(const struct shown *shown, struct str *out)
{
    add_user(out, kept_value(shown, "SlurmdUser"), true, 0);
}

static void from_ctld_port(const struct shown *shown, struct str *out)
{
    const ConfLocal *local = shown->reply->local;
    const char *colon = local && local->n_listen_addr ? strrchr(local->listen_addr[0], ':') : NULL;

    str_add(out, colon ? colon + 1 : "6817");
}

static void from_conf_path(const struct shown *shown, struct str *out)
{
    const char *path = shown->reply->conf_path;

    str_add_visible(out, path ? path : "(null)", strlen(path ? path : "(null)"));
}

static void from_version(const struct shown *shown, struct str *out)
{
    str_add(out, SLURM_RELEASE);
}

static void from_namespace_type(const struct shown *shown, struct str *out)
{
    const Config *config = shown->reply->config;

    str_add(out, config && !str_is_empty(config->private_base_path) ? "namespace/tmpfs" : "(null)");
}

static void from_tls_type(const struct shown *shown, struct str *out)
{
    const char *kept = kept_value(shown, "TLSType");
    const ConfLocal *local = shown->reply->local;

    if (!str_is_empty(kept))
        str_add(out, kept);
    else
        str_add(out, local && !str_is_empty(local->tls_cert) ? "tls/openssl" : "tls/none");
}

/* ---- rows ---- */

/* clang-format off */
static const struct config_row config_rows[] = {
    { "AccountingStorageBackupHost", TEXT },
    { "AccountingStorageEnforce", TEXT, .def = "none" },
    { "AccountingStorageHost", TEXT, .from = from_dbd_host },
    { "AccountingStorageExternalHost", TEXT },
    { "AccountingStorageParameters", TEXT },
    { "AccountingStoragePort", TEXT, .from = from_dbd_port },
    { "AccountingStorageTRES", TEXT, .from = from_tres },
    { "AccountingStorageType", PLUGIN, .from = from_dbd_type },
    { "AccountingStoreFlags", TEXT },
    { "AcctGatherEnergyType", PLUGIN },
    { "AcctGatherFilesystemType", PLUGIN },
    { "AcctGatherInterconnectType", PLUGIN },
    { "AcctGatherNodeFreq", SECONDS, .def = "0" },
    { "AcctGatherProfileType", PLUGIN },
    { "AllowSpecResourcesUsage", YES_NO, .def = "no" },
    { "AuthAltTypes", TEXT },
    { "AuthAltParameters", TEXT },
    { "AuthInfo", TEXT },
    { "AuthType", TEXT, .def = "auth/slurm" },
    { "BatchStartTimeout", SECONDS },
    { "BcastExclude", TEXT, .def = "/lib,/usr/lib,/lib64,/usr/lib64" },
    { "BcastParameters", TEXT },
    { "BOOT_TIME", TEXT, .from = from_boot_time },
    { "BurstBufferType", PLUGIN },
    { "CertgenParameters", TEXT },
    { "CertgenType", PLUGIN },
    { "CertmgrParameters", TEXT },
    { "CertmgrType", PLUGIN },
    { "CliFilterParameters", TEXT },
    { "CliFilterPlugins", PLUGIN },
    { "ClusterName", TEXT },
    { "CommunicationParameters", TEXT },
    { "CompleteWait", SECONDS },
    { "CpuFreqDef", TEXT, .def = "Unknown" },
    { "CpuFreqGovernors", TEXT },
    { "CredType", TEXT, .def = "cred/slurm" },
    { "DataParserParameters", TEXT },
    { "DebugFlags", TEXT },
    { "DefMemPer", PER_CPU_OR_NODE },
    { "DefRuntimePlugin", TEXT, .def = "runtime/oci" },
    { "DependencyParameters", TEXT },
    { "DisableRootJobs", YES_NO },
    { "EioTimeout", TEXT, .def = "60" },
    { "EnforcePartLimits", TEXT },
    { "Epilog", MANY },
    { "EpilogMsgTime", USECONDS, .def = "2000" },
    { "EpilogSlurmctld", MANY },
    { "FairShareDampeningFactor", TEXT },
    { "FederationParameters", TEXT },
    { "FirstJobId", TEXT },
    { "GresTypes", TEXT },
    { "GpuFreqDef", TEXT },
    { "GroupUpdateForce", ZERO_ONE, .def = "1" },
    { "GroupUpdateTime", SECONDS, .def = "600" },
    { "HASH_VAL", TEXT, .def = "Match" },
    { "HashPlugin", TEXT, .def = "hash/k12" },
    { "HealthCheckInterval", SECONDS },
    { "HealthCheckNodeState", TEXT },
    { "HealthCheckProgram", TEXT },
    { "HealthCheckTimeout", SECONDS },
    { "HttpParserType", PLUGIN },
    { "InactiveLimit", SECONDS },
    { "InteractiveStepOptions", TEXT },
    { "JobAcctGatherFrequency", TEXT },
    { "JobAcctGatherType", PLUGIN, .def = "jobacct_gather/linux" },
    { "JobAcctGatherParams", TEXT },
    { "JobCompHost", TEXT, .def = "localhost" },
    { "JobCompLoc", TEXT },
    { "JobCompParams", TEXT },
    { "JobCompPass", TEXT },
    { "JobCompPort", TEXT, .def = "0" },
    { "JobCompType", PLUGIN },
    { "JobCompUser", TEXT, .def = "root" },
    { "JobDefaults", TEXT, .from = from_job_defaults },
    { "JobFileAppend", ZERO_ONE },
    { "JobRequeue", ZERO_ONE },
    { "JobSubmitPlugins", PLUGIN },
    { "KillOnBadExit", ZERO_ONE },
    { "KillWait", SECONDS },
    { "LaunchParameters", TEXT },
    { "LicenseParameters", TEXT },
    { "Licenses", TEXT },
    { "LogTimeFormat", TEXT, .def = "iso8601_ms" },
    { "MailDomain", TEXT },
    { "MailProg", TEXT },
    { "MaxArraySize", TEXT },
    { "MaxBatchRequeue", TEXT },
    { "MaxDBDMsgs", TEXT, .def = "0" },
    { "MaxJobCount", TEXT },
    { "MaxJobId", TEXT, .def = "4294967280" },
    { "MaxMemPer", PER_CPU_OR_NODE },
    { "MaxNodeCount", TEXT, .from = from_node_count },
    { "MaxStepCount", TEXT },
    { "MaxTasksPerNode", TEXT },
    { "MCSPlugin", PLUGIN },
    { "MCSParameters", TEXT },
    { "MessageTimeout", SECONDS, .def = "10" },
    { "MetricsAuthUsers", TEXT },
    { "MetricsParameters", TEXT },
    { "MetricsType", PLUGIN },
    { "MinJobAge", SECONDS },
    { "MpiDefault", PLUGIN },
    { "MpiParams", TEXT },
    { "MULTIPLE_SLURMD", YES_NO, .def = "yes" },
    { "NamespaceType", TEXT, .from = from_namespace_type },
    { "NEXT_JOB_ID", TEXT, .from = from_next_job_id },
    { "NodeFeaturesPlugins", PLUGIN },
    { "OverTimeLimit", MINUTES },
    { "PluginDir", TEXT },
    { "PlugStackConfig", TEXT },
    { "PreemptMode", TEXT },
    { "PreemptParameters", TEXT },
    { "PreemptType", PLUGIN },
    { "PreemptExemptTime", DURATION },
    { "PrEpParameters", TEXT },
    { "PrEpPlugins", TEXT, .def = "prep/script" },
    { "PriorityParameters", TEXT },
    { "PrioritySiteFactorParameters", TEXT },
    { "PrioritySiteFactorPlugin", PLUGIN },
    { "PriorityDecayHalfLife", DURATION, .from = from_half_life },
    { "PriorityCalcPeriod", DURATION },
    { "PriorityFavorSmall", YES_NO },
    { "PriorityFlags", TEXT, .def = "" },
    { "PriorityMaxAge", DURATION },
    { "PriorityType", TEXT },
    { "PriorityUsageResetPeriod", TEXT },
    { "PriorityWeightAge", TEXT },
    { "PriorityWeightAssoc", TEXT },
    { "PriorityWeightFairShare", TEXT },
    { "PriorityWeightJobSize", TEXT },
    { "PriorityWeightPartition", TEXT },
    { "PriorityWeightQOS", TEXT },
    { "PriorityWeightTRES", TEXT },
    { "PrivateData", TEXT, .def = "none" },
    { "ProctrackType", TEXT, .def = "proctrack/cgroup" },
    { "Prolog", MANY },
    { "PrologEpilogTimeout", TEXT },
    { "PrologSlurmctld", MANY },
    { "PrologFlags", TEXT },
    { "PropagatePrioProcess", TEXT },
    { "PropagateResourceLimits", TEXT },
    { "PropagateResourceLimitsExcept", TEXT },
    { "RebootProgram", TEXT },
    { "ReconfigFlags", TEXT },
    { "RequeueExit", TEXT },
    { "RequeueExitHold", TEXT },
    { "ResumeFailProgram", TEXT },
    { "ResumeProgram", TEXT },
    { "ResumeRate", RATE, .def = "300" },
    { "ResumeTimeout", SECONDS },
    { "ResvEpilog", TEXT },
    { "ResvOverRun", MINUTES },
    { "ResvProlog", TEXT },
    { "ReturnToService", TEXT },
    { "SchedulerParameters", TEXT },
    { "SchedulerTimeSlice", SECONDS },
    { "SchedulerType", TEXT },
    { "ScronParameters", TEXT },
    { "SelectType", TEXT, .def = "select/cons_tres" },
    { "SelectTypeParameters", CAPITALS },
    { "SerializerParameters", TEXT },
    { "SerializerPlugins", TEXT },
    { "SlurmUser", TEXT, .from = from_slurm_user },
    { "SlurmctldAddr", TEXT },
    { "SlurmctldDebug", TEXT },
    { "SlurmctldHost", HOSTS },
    { "SlurmctldHttpAuthParameters", TEXT },
    { "SlurmctldLogFile", TEXT },
    { "SlurmctldPort", TEXT, .from = from_ctld_port },
    { "SlurmctldSyslogDebug", TEXT },
    { "SlurmctldPrimaryOffProg", TEXT },
    { "SlurmctldPrimaryOnProg", TEXT },
    { "SlurmctldTimeout", SECONDS, .def = "120" },
    { "SlurmctldParameters", TEXT },
    { "SlurmdDebug", TEXT },
    { "SlurmdHttpAuthParameters", TEXT },
    { "SlurmdLogFile", TEXT },
    { "SlurmdParameters", TEXT },
    { "SlurmdPidFile", TEXT },
    { "SlurmdPort", TEXT },
    { "SlurmdSpoolDir", TEXT },
    { "SlurmdSyslogDebug", TEXT },
    { "SlurmdTimeout", SECONDS },
    { "SlurmdUser", TEXT, .from = from_slurmd_user },
    { "SlurmrestdHttpAuthParameters", TEXT },
    { "SlurmrestdParameters", TEXT },
    { "SlurmSchedLogFile", TEXT },
    { "SlurmSchedLogLevel", TEXT, .def = "0" },
    { "SlurmstepdParameters", TEXT },
    { "SlurmctldPidFile", TEXT },
    { "SLURM_CONF", TEXT, .from = from_conf_path },
    { "SLURM_VERSION", TEXT, .from = from_version },
    { "SrunEpilog", TEXT },
    { "SrunPortRange", TEXT, .def = "0-0" },
    { "SrunProlog", TEXT },
    { "StateSaveLocation", TEXT },
    { "SuspendExcNodes", TEXT },
    { "SuspendExcParts", TEXT },
    { "SuspendExcStates", TEXT },
    { "SuspendProgram", TEXT },
    { "SuspendRate", RATE, .def = "60" },
    { "SuspendTime", SECONDS, .def = "INFINITE" },
    { "SuspendTimeout", SECONDS, .def = "30" },
    { "SwitchParameters", TEXT },
    { "SwitchType", PLUGIN },
    { "TaskEpilog", TEXT },
    { "TaskPlugin", PLUGIN },
    { "TaskPluginParam", TEXT, .def = "(null type)" },
    { "TaskProlog", TEXT },
    { "TCPTimeout", SECONDS, .def = "2" },
    { "TLSParameters", TEXT },
    { "TLSType", TEXT, .from = from_tls_type },
    { "TmpFS", TEXT },
    { "TopologyParam", TEXT },
    { "TopologyPlugin", TEXT },
    { "TrackWCKey", YES_NO },
    { "TreeWidth", TEXT },
    { "UsePam", YES_NO, .def = "no" },
    { "UnkillableStepProgram", TEXT },
    { "UnkillableStepTimeout", SECONDS },
    { "UrlParserType", PLUGIN },
    { "VSizeFactor", PERCENT },
    { "WaitTime", SECONDS },
    { "X11Parameters", TEXT },
};

static const struct config_row cgroup_rows[] = {
    { "AllowedRAMSpace", PART },
    { "AllowedSwapSpace", PART },
    { "CgroupMountpoint", TEXT, .def = "/sys/fs/cgroup" },
    { "CgroupPlugin", TEXT, .def = "cgroup/v2" },
    { "ConstrainCores", YES_NO },
    { "ConstrainDevices", YES_NO },
    { "ConstrainRAMSpace", YES_NO },
    { "ConstrainSwapSpace", YES_NO },
    { "MaxRAMPercent", PART },
    { "MaxSwapPercent", PART },
    { "MinRAMSpace", MEGABYTES },
};

/* Without mpi.conf; nothing changes them here. */
static const struct config_row mpi_rows[] = {
    { "PMIxCliTmpDirBase", TEXT },
    { "PMIxCollFence", TEXT },
    { "PMIxDebug", TEXT, .def = "0" },
    { "PMIxDirectConn", YES_NO, .def = "yes" },
    { "PMIxDirectConnEarly", YES_NO, .def = "no" },
    { "PMIxDirectConnUCX", YES_NO, .def = "no" },
    { "PMIxDirectSameArch", YES_NO, .def = "no" },
    { "PMIxEnv", TEXT },
    { "PMIxFenceBarrier", YES_NO, .def = "no" },
    { "PMIxNetDevicesUCX", TEXT },
    { "PMIxShareServerTopology", YES_NO, .def = "no" },
    { "PMIxTimeout", TEXT, .def = "300" },
    { "PMIxTlsUCX", TEXT },
};
/* clang-format on */

static void add_line(struct str *out, const char *name, const char *value)
{
    str_addf(out, "%-23s = %s\n", name, value);
}

static void add_many(const struct shown *shown, const struct config_row *row, struct str *out)
{
    const ConfLocal *local = shown->reply->local;
    struct setting setting;
    char *const *items = NULL;
    size_t count = 0;
    char name[64];

    if (row->form == HOSTS && local) {
        items = local->hosts;
        count = local->n_hosts;
    } else if (row->form == MANY && find_setting(shown, row->name, &setting)) {
        count = list_of(&setting, &items);
        if (!count && setting.field->label != PROTOBUF_C_LABEL_REPEATED &&
            msg_has(setting.message, setting.field)) {
            snprintf(name, sizeof(name), "%s[0]", row->name);
            add_line(out, name, msg_text(setting.message, setting.field));
        }
    }
    for (size_t i = 0; i < count; i++) {
        struct str value = { 0 };
        size_t port = row->form == HOSTS ? strcspn(items[i], "(") : 0;

        /* A controller's port is a line of its own: name(address:port) is name(address). */
        const char *colon = port ? strrchr(items[i] + port, ':') : NULL;
        if (colon && strchr(colon, ']') == NULL)
            str_addf(&value, "%.*s)", (int)(colon - items[i]), items[i]);
        else
            str_add_visible(&value, items[i], strlen(items[i]));
        snprintf(name, sizeof(name), "%s[%zu]", row->name, i);
        add_line(out, name, str_text(&value));
        str_done(&value);
    }
}

/* The first of the two that is set, else NAMENode = UNLIMITED. */
static void add_per(const struct shown *shown, const char *name, struct str *out)
{
    static const char *const of[] = { "CPU", "Node" };
    struct setting setting;
    char whole[64];

    for (size_t i = 0; i < ARRAY_LEN(of); i++) {
        snprintf(whole, sizeof(whole), "%s%s", name, of[i]);
        if (find_setting(shown, whole, &setting) && msg_has(setting.message, setting.field) &&
            msg_number(setting.message, setting.field) > 0) {
            struct str value = { 0 };

            str_add_i64(&value, msg_number(setting.message, setting.field));
            add_line(out, whole, str_text(&value));
            str_done(&value);
            return;
        }
    }
    add_line(out, whole, "UNLIMITED");
}

static void add_rows(const struct shown *shown, const struct config_row *rows, size_t count,
                     struct str *out)
{
    for (size_t i = 0; i < count; i++) {
        struct str value = { 0 };

        if (rows[i].form == MANY || rows[i].form == HOSTS) {
            add_many(shown, &rows[i], out);
        } else if (rows[i].form == PER_CPU_OR_NODE) {
            add_per(shown, rows[i].name, out);
        } else {
            add_value(shown, &rows[i], &value);
            add_line(out, rows[i].name, str_text(&value));
        }
        str_done(&value);
    }
}

static bool is_constrained(const Config *config)
{
    return config && (config->constrain_cores || config->constrain_devices ||
                      config->constrain_ram || config->constrain_swap);
}

int control_show_config(struct control *control)
{
    GetConfigRequest request = GET_CONFIG_REQUEST__INIT;
    GetConfigReply *reply;
    struct shown shown = { .control = control, .ctx = cli_field_ctx(0) };
    struct err err = { 0 };
    struct str out = { 0 };

    if (cli_call(&control->cli, "GetConfig", &request.base, &get_config_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) < 0)
        return cli_load_error(&control->cli, "slurm_load_ctl_conf error:", &err);
    shown.reply = reply;
    str_add(&out, "Configuration data as of ");
    field_add_moment(&out, &shown.ctx, shown.ctx.now_us);
    str_add_char(&out, '\n');
    add_rows(&shown, config_rows, ARRAY_LEN(config_rows), &out);
    if (is_constrained(reply->config)) {
        str_add(&out, "\nCgroup Support Configuration:\n");
        add_rows(&shown, cgroup_rows, ARRAY_LEN(cgroup_rows), &out);
    }
    str_add(&out, "\nMPI Plugins Configuration:\n");
    add_rows(&shown, mpi_rows, ARRAY_LEN(mpi_rows), &out);
    str_add_char(&out, '\n');
    cli_flush(&out);
    str_done(&out);
    return ping_print(&control->cli, false, false, 0, NULL);
}
