/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trigger.c - what strigger can wait for
 */
#include "schema/trigger.h"

#include "base/util.h"

/* clang-format off */
static const struct name_row rows[] = {
    { "up", NULL, TRIGGER_UP, NULL },
    { "down", NULL, TRIGGER_DOWN, NULL },
    { "fail", NULL, TRIGGER_FAIL, NULL },
    { "time", NULL, TRIGGER_TIME, NULL },
    { "fini", NULL, TRIGGER_FINI, NULL },
    { "reconfig", NULL, TRIGGER_RECONFIG, NULL },
    { "idle", NULL, TRIGGER_IDLE, NULL },
    { "drained", NULL, TRIGGER_DRAINED, NULL },
    { "primary_slurmctld_failure", NULL, TRIGGER_PRIMARY_FAIL, NULL },
    { "primary_slurmctld_resumed_operation", NULL, TRIGGER_PRIMARY_OPERATES, NULL },
    { "primary_slurmctld_resumed_control", NULL, TRIGGER_PRIMARY_CONTROLS, NULL },
    { "primary_slurmctld_acct_buffer_full", NULL, TRIGGER_JOURNAL_FULL, NULL },
    { "backup_slurmctld_failure", NULL, TRIGGER_BACKUP_FAIL, NULL },
    { "backup_slurmctld_resumed_operation", NULL, TRIGGER_BACKUP_OPERATES, NULL },
    { "backup_slurmctld_assumed_control", NULL, TRIGGER_BACKUP_CONTROLS, NULL },
    { "primary_slurmdbd_failure", NULL, TRIGGER_DBD_FAIL, NULL },
    { "primary_slurmdbd_resumed_operation", NULL, TRIGGER_DBD_OPERATES, NULL },
    { "primary_database_failure", NULL, TRIGGER_DATABASE_FAIL, NULL },
    { "primary_database_resumed_operation", NULL, TRIGGER_DATABASE_OPERATES, NULL },
    { "draining", NULL, TRIGGER_DRAINING, NULL },
    { "resume", NULL, TRIGGER_RESUME, NULL },
};
/* clang-format on */

const struct name_table trigger_names = { "event", rows, ARRAY_LEN(rows) };
