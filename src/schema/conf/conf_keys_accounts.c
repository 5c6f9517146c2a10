/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_keys_accounts.c - settings of accounts, users and QOS
 *
 * They stand in the configuration as long as no accounting daemon keeps them.
 */
#include "base/limits.h"
#include "schema/conf_keys.h"

enum { COUNT_MAX = 0x7fffffff };

/* What an account and a user in it have alike. */
#define ASSOC_KEYS                                                                              \
    { .name = "fairshare",                                                                      \
      .field = "fairshare",                                                                     \
      .type = CONF_COUNT,                                                                       \
      .flags = CONF_PARENT,                                                                     \
      .min = 0,                                                                                 \
      .max = COUNT_MAX,                                                                         \
      .def = "1",                                                                               \
      .help = "Share of the machine, against the others below the same parent; \"parent\": "    \
              "the share of the account above, used together." },                               \
        { .name = "priority",                                                                   \
          .field = "assoc_priority",                                                            \
          .type = CONF_COUNT,                                                                   \
          .min = 0,                                                                             \
          .max = COUNT_MAX,                                                                     \
          .help = "For priority.weight_assoc; unset is the parent's." },                        \
        { .name = "qos",                                                                        \
          .field = "qos_list",                                                                  \
          .type = CONF_LIST,                                                                    \
          .help = "QOS that may be used; unset is the parent's, for root all." },               \
        { .name = "default_qos",                                                                \
          .field = "default_qos",                                                               \
          .type = CONF_NAME,                                                                    \
          .help = "QOS of jobs that name none; unset is the parent's, for root normal." },      \
        { .name = "grp_jobs",                                                                   \
          .field = "grp_jobs",                                                                  \
          .type = CONF_COUNT,                                                                   \
          .min = 0,                                                                             \
          .max = COUNT_MAX,                                                                     \
          .help = "GrpJobs: jobs that run at once, of all together." },                         \
        { .name = "grp_submit_jobs",                                                            \
          .field = "grp_submit",                                                                \
          .type = CONF_COUNT,                                                                   \
          .min = 0,                                                                             \
          .max = COUNT_MAX,                                                                     \
          .help = "GrpSubmitJobs: jobs that run or wait, of all together." },                   \
        { .name = "grp_jobs_accrue",                                                            \
          .field = "grp_jobs_accrue",                                                           \
          .type = CONF_COUNT,                                                                   \
          .min = 0,                                                                             \
          .max = COUNT_MAX,                                                                     \
          .help = "GrpJobsAccrue: waiting jobs whose age counts, of all." },                    \
        { .name = "grp_wall",                                                                   \
          .field = "grp_wall_s",                                                                \
          .type = CONF_TIME,                                                                    \
          .help = "GrpWall: time that jobs may have run, of all together; it decays." },        \
        { .name = "grp_tres",                                                                   \
          .field = "grp_tres",                                                                  \
          .type = CONF_TRES,                                                                    \
          .help = "GrpTRES: resources in use at once, of all together." },                      \
        { .name = "grp_tres_mins",                                                              \
          .field = "grp_tres_mins",                                                             \
          .type = CONF_TRES,                                                                    \
          .help = "GrpTRESMins: resources times minutes, past and present; they decay." },      \
        { .name = "grp_tres_run_mins",                                                          \
          .field = "grp_tres_run_mins",                                                         \
          .type = CONF_TRES,                                                                    \
          .help = "GrpTRESRunMins: resources times the minutes that running jobs have left." }, \
        { .name = "max_jobs",                                                                   \
          .field = "max_jobs",                                                                  \
          .type = CONF_COUNT,                                                                   \
          .min = 0,                                                                             \
          .max = COUNT_MAX,                                                                     \
          .help = "MaxJobs: jobs that run at once, of each user." },                            \
        { .name = "max_submit_jobs",                                                            \
          .field = "max_submit",                                                                \
          .type = CONF_COUNT,                                                                   \
          .min = 0,                                                                             \
          .max = COUNT_MAX,                                                                     \
          .help = "MaxSubmitJobs: jobs that run or wait, of each user." },                      \
        { .name = "max_jobs_accrue",                                                            \
          .field = "max_jobs_accrue",                                                           \
          .type = CONF_COUNT,                                                                   \
          .min = 0,                                                                             \
          .max = COUNT_MAX,                                                                     \
          .help = "MaxJobsAccrue: waiting jobs whose age counts, of each user." },              \
        { .name = "max_wall",                                                                   \
          .field = "max_wall_s",                                                                \
          .type = CONF_TIME,                                                                    \
          .help = "MaxWall: longest time limit of a job." },                                    \
        { .name = "max_tres_per_job",                                                           \
          .field = "max_tres_per_job",                                                          \
          .type = CONF_TRES,                                                                    \
          .help = "MaxTRESPerJob: most resources of a job." },                                  \
        { .name = "max_tres_per_node",                                                          \
          .field = "max_tres_per_node",                                                         \
          .type = CONF_TRES,                                                                    \
          .help = "MaxTRESPerNode: most resources of a job on each node." },                    \
    {                                                                                           \
        .name = "max_tres_mins_per_job", .field = "max_tres_mins_per_job", .type = CONF_TRES,   \
        .help = "MaxTRESMinsPerJob: most resources times minutes of the limit of a job."        \
    }

const struct conf_key conf_keys_accounts[] = {
    { .name = "name",
      .field = "name",
      .type = CONF_NAME,
      .flags = CONF_REQUIRED,
      .help = "Name of the account." },
    { .name = "parent",
      .field = "parent",
      .type = CONF_NAME,
      .def = "root",
      .help = "Account that it belongs to; it stands before this one." },
    { .name = "description", .field = "description", .type = CONF_TEXT, .help = "For people." },
    { .name = "organization", .field = "organization", .type = CONF_TEXT, .help = "For people." },
    ASSOC_KEYS,
    { 0 },
};

const struct conf_key conf_keys_users[] = {
    { .name = "name",
      .field = "name",
      .type = CONF_NAME,
      .flags = CONF_REQUIRED,
      .help = "Name of the user. Several sections of one user put him in several accounts." },
    { .name = "account",
      .field = "account",
      .type = CONF_NAME,
      .flags = CONF_REQUIRED,
      .help = "Account that the user belongs to." },
    { .name = "partition",
      .field = "partition",
      .type = CONF_NAME,
      .help = "This section is only about jobs in this partition." },
    { .name = "default",
      .field = "is_default",
      .type = CONF_BOOL,
      .def = "false",
      .help = "Jobs that name no account are of this one; else it is the user's first." },
    ASSOC_KEYS,
    { 0 },
};

const struct conf_key conf_keys_qos[] = {
    { .name = "name",
      .field = "name",
      .type = CONF_NAME,
      .flags = CONF_REQUIRED,
      .help = "Name of the QOS. One named normal is always there." },
    { .name = "description", .field = "description", .type = CONF_TEXT, .help = "For people." },
    { .name = "priority",
      .field = "qos_priority",
      .type = CONF_COUNT,
      .min = 0,
      .max = COUNT_MAX,
      .def = "0",
      .help = "For priority.weight_qos." },
    { .name = "flags",
      .field = "qos_flags",
      .type = CONF_WORDS,
      .words = (const char *const[]){ "DenyOnLimit", "EnforceUsageThreshold", "NoDecay",
                                      "NoReserve", "OverPartQOS", "PartitionMaxNodes",
                                      "PartitionMinNodes", "PartitionTimeLimit", "Relative",
                                      "RequiresReservation", "UsageFactorSafe", NULL },
      .help = "Variations, in Slurm's words." },
    { .name = "usage_factor",
      .field = "usage_factor",
      .type = CONF_TEXT,
      .help = "What a second counts, \"0.5\" is half; unset is 1." },
    { .name = "limit_factor",
      .field = "limit_factor",
      .type = CONF_TEXT,
      .help = "TRES limits of associations are that many times as large." },
    { .name = "usage_threshold",
      .field = "usage_threshold",
      .type = CONF_TEXT,
      .help = "With EnforceUsageThreshold: fair share that a job must have to start." },
    { .name = "min_prio_threshold",
      .field = "min_prio_threshold",
      .type = CONF_COUNT,
      .min = 0,
      .max = COUNT_MAX,
      .help = "MinPrioThreshold: priority that a job needs to have resources kept for it." },
    { .name = "preempt",
      .field = "qos_preempt",
      .type = CONF_LIST,
      .help = "QOS whose jobs may be preempted." },
    { .name = "preempt_mode",
      .field = "qos_preempt_mode",
      .type = CONF_WORD,
      .words = (const char *const[]){ "CLUSTER", "CANCEL", "REQUEUE", "SUSPEND", "OFF", NULL },
      .help = "What happens to a preempted job of it; unset is preemption.mode." },
    { .name = "preempt_exempt_time",
      .field = "qos_preempt_exempt_s",
      .type = CONF_TIME,
      .help = "Its jobs are not preempted before they have run so long." },
    { .name = "grace_time",
      .field = "qos_grace_time_s",
      .type = CONF_TIME,
      .help = "Time that a preempted job of it has left." },
    { .name = "grp_jobs",
      .field = "grp_jobs",
      .type = CONF_COUNT,
      .min = 0,
      .max = COUNT_MAX,
      .help = "GrpJobs: jobs that run at once, of all together." },
    { .name = "grp_submit_jobs",
      .field = "grp_submit",
      .type = CONF_COUNT,
      .min = 0,
      .max = COUNT_MAX,
      .help = "GrpSubmitJobs: jobs that run or wait, of all together." },
    { .name = "grp_jobs_accrue",
      .field = "grp_jobs_accrue",
      .type = CONF_COUNT,
      .min = 0,
      .max = COUNT_MAX,
      .help = "GrpJobsAccrue: waiting jobs whose age counts, of all." },
    { .name = "grp_wall",
      .field = "grp_wall_s",
      .type = CONF_TIME,
      .help = "GrpWall: time that jobs may have run, of all together; it decays." },
    { .name = "grp_tres",
      .field = "grp_tres",
      .type = CONF_TRES,
      .help = "GrpTRES: resources in use at once, of all together." },
    { .name = "grp_tres_mins",
      .field = "grp_tres_mins",
      .type = CONF_TRES,
      .help = "GrpTRESMins: resources times minutes, past and present; they decay." },
    { .name = "grp_tres_run_mins",
      .field = "grp_tres_run_mins",
      .type = CONF_TRES,
      .help = "GrpTRESRunMins: resources times the minutes that running jobs have left." },
    { .name = "max_jobs_per_user",
      .field = "max_jobs",
      .type = CONF_COUNT,
      .min = 0,
      .max = COUNT_MAX,
      .help = "MaxJobsPerUser: jobs of each user that run at once." },
    { .name = "max_submit_jobs_per_user",
      .field = "max_submit",
      .type = CONF_COUNT,
      .min = 0,
      .max = COUNT_MAX,
      .help = "MaxSubmitJobsPerUser: jobs of each user that run or wait." },
    { .name = "max_jobs_accrue_per_user",
      .field = "max_jobs_accrue",
      .type = CONF_COUNT,
      .min = 0,
      .max = COUNT_MAX,
      .help = "MaxJobsAccruePerUser: waiting jobs of each user whose age counts." },
    { .name = "max_jobs_accrue_per_account",
      .field = "max_jobs_accrue_per_account",
      .type = CONF_COUNT,
      .min = 0,
      .max = COUNT_MAX,
      .help = "MaxJobsAccruePerAccount: waiting jobs of each account whose age counts." },
    { .name = "max_wall",
      .field = "max_wall_s",
      .type = CONF_TIME,
      .help = "MaxWall: longest time limit of a job." },
    { .name = "max_tres_per_job",
      .field = "max_tres_per_job",
      .type = CONF_TRES,
      .help = "MaxTRESPerJob: most resources of a job." },
    { .name = "max_tres_per_node",
      .field = "max_tres_per_node",
      .type = CONF_TRES,
      .help = "MaxTRESPerNode: most resources of a job on each node." },
    { .name = "max_tres_mins_per_job",
      .field = "max_tres_mins_per_job",
      .type = CONF_TRES,
      .help = "MaxTRESMinsPerJob: most resources times minutes of the limit of a job." },
    { .name = "max_jobs_per_account",
      .field = "max_jobs_per_account",
      .type = CONF_COUNT,
      .min = 0,
      .max = COUNT_MAX,
      .help = "MaxJobsPerAccount: jobs of each account that run at once." },
    { .name = "max_submit_jobs_per_account",
      .field = "max_submit_per_account",
      .type = CONF_COUNT,
      .min = 0,
      .max = COUNT_MAX,
      .help = "MaxSubmitJobsPerAccount: jobs of each account that run or wait." },
    { .name = "max_tres_per_user",
      .field = "max_tres_per_user",
      .type = CONF_TRES,
      .help = "MaxTRESPerUser: resources in use at once by each user." },
    { .name = "max_tres_per_account",
      .field = "max_tres_per_account",
      .type = CONF_TRES,
      .help = "MaxTRESPerAccount: resources in use at once by each account." },
    { .name = "max_tres_run_mins_per_user",
      .field = "max_tres_run_mins_per_user",
      .type = CONF_TRES,
      .help = "MaxTRESRunMinsPerUser: resources times minutes left, of each user." },
    { .name = "max_tres_run_mins_per_account",
      .field = "max_tres_run_mins_per_account",
      .type = CONF_TRES,
      .help = "MaxTRESRunMinsPerAccount: resources times minutes left, of each account." },
    { .name = "min_tres_per_job",
      .field = "min_tres_per_job",
      .type = CONF_TRES,
      .help = "MinTRESPerJob: least resources of a job." },
    { 0 },
};
