// SPDX-License-Identifier: Apache-2.0
/*
 * slurmdb.c - the accounting functions: connection, conditions, what needs no database
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "compat/compat.h"

/* A connection is a mark: each call finds the daemon by itself. */
struct db_conn {
    uint32_t mark;
};
enum { DB_MARK = 0x53706442 };

void *slurmdb_connection_get(uint16_t *persist_conn_flags)
{
    struct db_conn *conn =
        slurm_xcalloc(1, sizeof(struct db_conn), true, true, __FILE__, __LINE__, __func__);

    if (conn)
        conn->mark = DB_MARK;
    if (persist_conn_flags)
        *persist_conn_flags = 0;
    return conn;
}

int slurmdb_connection_close(void **db_conn)
{
    slurm_xfree(db_conn);
    return SLURM_SUCCESS;
}

int slurmdb_connection_commit(void *db_conn, bool commit)
{
    return SLURM_SUCCESS; /* each change is committed by itself */
}

/* ---- conditions and records as new ---- */

#define INIT(name, type)                    \
    void name(type *record, bool free_it)   \
    {                                       \
        if (!record)                        \
            return;                         \
        if (free_it)                        \
            compat_free_##type(record);     \
        memset(record, 0, sizeof(*record)); \
        set_##type(record);                 \
    }

static void set_slurmdb_cluster_cond_t(slurmdb_cluster_cond_t *record)
{
    record->flags = NO_VAL;
}

static void set_slurmdb_tres_cond_t(slurmdb_tres_cond_t *record)
{
    record->count = NO_VAL;
}

static void set_slurmdb_assoc_rec_t(slurmdb_assoc_rec_t *record)
{
    record->def_qos_id = NO_VAL;
    record->is_def = NO_VAL16;
    IF_MEMBER(slurmdb_assoc_rec_t_grp_jobs, record->grp_jobs = NO_VAL;)
    IF_MEMBER(slurmdb_assoc_rec_t_grp_jobs_accrue, record->grp_jobs_accrue = NO_VAL;)
    IF_MEMBER(slurmdb_assoc_rec_t_grp_submit_jobs, record->grp_submit_jobs = NO_VAL;)
    IF_MEMBER(slurmdb_assoc_rec_t_grp_wall, record->grp_wall = NO_VAL;)
    IF_MEMBER(slurmdb_assoc_rec_t_max_jobs, record->max_jobs = NO_VAL;)
    IF_MEMBER(slurmdb_assoc_rec_t_max_jobs_accrue, record->max_jobs_accrue = NO_VAL;)
    IF_MEMBER(slurmdb_assoc_rec_t_min_prio_thresh, record->min_prio_thresh = NO_VAL;)
    IF_MEMBER(slurmdb_assoc_rec_t_max_submit_jobs, record->max_submit_jobs = NO_VAL;)
    IF_MEMBER(slurmdb_assoc_rec_t_max_wall_pj, record->max_wall_pj = NO_VAL;)
    IF_MEMBER(slurmdb_assoc_rec_t_priority, record->priority = NO_VAL;)
    record->shares_raw = NO_VAL;
}

INIT(slurmdb_init_cluster_cond, slurmdb_cluster_cond_t)
INIT(slurmdb_init_tres_cond, slurmdb_tres_cond_t)
INIT(slurmdb_init_assoc_rec, slurmdb_assoc_rec_t)

slurmdb_job_rec_t *slurmdb_create_job_rec(void)
{
    slurmdb_job_rec_t *job =
        slurm_xcalloc(1, sizeof(slurmdb_job_rec_t), true, true, __FILE__, __LINE__, __func__);

    if (!job)
        return NULL;
    job->array_task_id = job->state = job->uid = job->gid = NO_VAL;
    job->requid = -1;
    job->steps = slurm_list_create(slurmdb_destroy_step_rec);
    return job;
}

/* ---- times of conditions ---- */

/* Without a beginning: today's midnight. Without an end: now. */
void slurmdb_job_cond_def_start_end(slurmdb_job_cond_t *job_cond)
{
    time_t now = time(NULL);
    struct tm day;

    if (!job_cond)
        return;
    if (!job_cond->usage_start && localtime_r(&now, &day)) {
        day.tm_sec = day.tm_min = day.tm_hour = 0;
        day.tm_isdst = -1;
        job_cond->usage_start = mktime(&day);
    }
    if (!job_cond->usage_end)
        job_cond->usage_end = now;
}

/* Reports are of whole hours; yesterday when nothing is said. */
int slurmdb_report_set_start_end_time(time_t *start, time_t *end)
{
    time_t now = time(NULL);
    struct tm day;

    if (!start || !end || !localtime_r(&now, &day)) {
        errno = EINVAL;
        return SLURM_ERROR;
    }
    day.tm_sec = day.tm_min = day.tm_hour = 0;
    day.tm_isdst = -1;
    if (!*end)
        *end = mktime(&day);
    if (!*start) {
        day.tm_mday--;
        day.tm_isdst = -1;
        *start = mktime(&day);
    }
    *start -= *start % 3600;
    *end -= *end % 3600;
    if (*end <= *start)
        *end = *start + 3600;
    return SLURM_SUCCESS;
}

/* ---- TRES strings: "1=4,2=1000" ---- */

uint64_t slurmdb_find_tres_count_in_string(char *tres_str_in, int id)
{
    const char *at = tres_str_in;

    while (at && *at) {
        char *end;
        long number = strtol(at, &end, 10);
        if (*end != '=')
            break;
        if (number == id)
            return strtoull(end + 1, NULL, 10);
        at = strchr(end, ',');
        at = at ? at + 1 : NULL;
    }
    return INFINITE64;
}

char *slurmdb_ave_tres_usage(char *tres_string, int tasks)
{
    GUARD(NULL);
    struct str out = { 0 };
    const char *at = tres_string;

    while (at && *at && tasks > 0) {
        char *end;
        long number = strtol(at, &end, 10);
        if (*end != '=')
            break;
        uint64_t count = strtoull(end + 1, &end, 10);
        str_addf(&out, "%s%ld=%llu", out.len ? "," : "", number,
                 (unsigned long long)(count / (unsigned)tasks));
        at = *end == ',' ? end + 1 : NULL;
    }
    return compat_take(&out);
}

#if EXPORTS_slurmdb_expand_job_stdio_fields
char *slurmdb_expand_job_stdio_fields(char *path, slurmdb_job_rec_t *job)
{
    GUARD(NULL);
    struct str out = { 0 };

    for (const char *at = path; at && *at; at++) {
        if (*at != '%' || !at[1] || !job) {
            str_add_char(&out, *at);
        } else if (*++at == 'j' || *at == 'A') {
            str_add_u64(&out, job->jobid);
        } else if (*at == 'u') {
            str_add(&out, job->user ? job->user : "");
        } else if (*at == 'x') {
            str_add(&out, job->jobname ? job->jobname : "");
        } else {
            str_addf(&out, "%%%c", *at);
        }
    }
    return compat_take(&out);
}

char *slurmdb_expand_step_stdio_fields(char *path, slurmdb_step_rec_t *step)
{
    job_step_info_t info = { .name = step ? step->stepname : NULL };

    if (step)
        info.step_id = step->step_id;
    return slurm_expand_step_stdio_fields(path, &info);
}
#endif

/* One cluster: the one that calls go to. */
int slurmdb_get_first_avail_cluster(job_desc_msg_t *req, char *cluster_names,
                                    slurmdb_cluster_rec_t **cluster_rec)
{
    return compat_not_supported();
}
