/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits_why.c - what a limit is called, and the reason of a job that waits for it
 */
#include "policy/limits_why.h"

#include "schema/reasons.h"

static const struct {
    const char *of_assoc, *of_qos;
    unsigned assoc, qos;
} tres_limits[BOUNDS] = {
    [GRP_JOBS] = { "GrpJobs", "GrpJobs", REASON_ASSOC_GRP_JOB, REASON_QOS_GRP_JOB },
    [GRP_SUBMIT] = { "GrpSubmitJobs", "GrpSubmitJobs", REASON_ASSOC_GRP_SUB_JOB,
                     REASON_QOS_GRP_SUB_JOB },
    [GRP_ACCRUE] = { "GrpJobsAccrue", "GrpJobsAccrue", 0, 0 },
    [MAX_ACCRUE] = { "MaxJobsAccrue", "MaxJobsAccruePerUser", 0, 0 },
    [MAX_ACCRUE_ACCT] = { "MaxJobsAccrue", "MaxJobsAccruePerAccount", 0, 0 },
    [GRP_WALL] = { "GrpWall", "GrpWall", REASON_ASSOC_GRP_WALL, REASON_QOS_GRP_WALL },
    [MAX_JOBS] = { "MaxJobs", "MaxJobsPerUser", REASON_ASSOC_MAX_JOBS,
                   REASON_QOS_MAX_JOB_PER_USER },
    [MAX_SUBMIT] = { "MaxSubmitJobs", "MaxSubmitJobsPerUser", REASON_ASSOC_MAX_SUB_JOB,
                     REASON_QOS_MAX_SUB_JOB },
    [MAX_JOBS_ACCT] = { "MaxJobs", "MaxJobsPerAccount", REASON_ASSOC_MAX_JOBS,
                        REASON_QOS_MAX_JOB_PER_ACCT },
    [MAX_SUBMIT_ACCT] = { "MaxSubmitJobs", "MaxSubmitJobsPerAccount", REASON_ASSOC_MAX_SUB_JOB,
                          REASON_QOS_MAX_SUB_JOB_PER_ACCT },
    [MAX_WALL] = { "MaxWall", "MaxWall", REASON_ASSOC_MAX_WALL_PER_JOB,
                   REASON_QOS_MAX_WALL_PER_JOB },
};

/* clang-format off */
#define ASSOC_ROW(X)                                                                          \
    { [GRP_TRES] = REASON_ASSOC_GRP_##X, [GRP_TRES_MINS] = REASON_ASSOC_GRP_##X##_MIN,        \
      [GRP_TRES_RUN_MINS] = REASON_ASSOC_GRP_##X##_RUN_MIN,                                   \
      [MAX_TRES_JOB] = REASON_ASSOC_MAX_##X##_PER_JOB,                                        \
      [MAX_TRES_MINS_JOB] = REASON_ASSOC_MAX_##X##_MINS_PER_JOB,                              \
      [MAX_TRES_NODE] = REASON_ASSOC_MAX_##X##_PER_NODE }
#define REASON_ASSOC_MAX_NODE_PER_NODE REASON_ASSOC_MAX_UNK_PER_NODE
#define REASON_ASSOC_MAX_LIC_PER_NODE  REASON_ASSOC_MAX_UNK_PER_NODE
#define QOS_ROW(X)                                                                            \
    { [GRP_TRES] = REASON_QOS_GRP_##X, [GRP_TRES_MINS] = REASON_QOS_GRP_##X##_MIN,            \
      [GRP_TRES_RUN_MINS] = REASON_QOS_GRP_##X##_RUN_MIN,                                     \
      [MAX_TRES_JOB] = REASON_QOS_MAX_##X##_PER_JOB,                                          \
      [MAX_TRES_MINS_JOB] = REASON_QOS_MAX_##X##_MINS_PER_JOB,                                \
      [MAX_TRES_NODE] = REASON_QOS_MAX_##X##_PER_NODE,                                        \
      [MAX_TRES_USER] = REASON_QOS_MAX_##X##_PER_USER,                                        \
      [MAX_TRES_ACCT] = REASON_QOS_MAX_##X##_PER_ACCT,                                        \
      [MAX_TRES_RUN_MINS_USER] = REASON_QOS_MAX_##X##_RUN_MINS_PER_USER,                      \
      [MAX_TRES_RUN_MINS_ACCT] = REASON_QOS_MAX_##X##_RUN_MINS_PER_ACCT,                      \
      [MIN_TRES_JOB] = REASON_QOS_MIN_##X }
#define REASON_QOS_MAX_NODE_PER_NODE REASON_QOS_MAX_UNK_PER_NODE
#define REASON_QOS_MAX_LIC_PER_NODE  REASON_QOS_MAX_UNK_PER_NODE
/* clang-format on */

static const unsigned assoc_reasons[TRES_KINDS][TRES_BOUNDS] = {
    [TRES_IS_CPU] = ASSOC_ROW(CPU),   [TRES_IS_MEM] = ASSOC_ROW(MEM),
    [TRES_IS_NODE] = ASSOC_ROW(NODE), [TRES_IS_ENERGY] = ASSOC_ROW(ENERGY),
    [TRES_IS_GRES] = ASSOC_ROW(GRES), [TRES_IS_LICENSE] = ASSOC_ROW(LIC),
    [TRES_IS_BB] = ASSOC_ROW(BB),     [TRES_IS_BILLING] = ASSOC_ROW(BILLING),
    [TRES_IS_OTHER] = ASSOC_ROW(UNK),
};

static const unsigned qos_reasons[TRES_KINDS][TRES_BOUNDS] = {
    [TRES_IS_CPU] = QOS_ROW(CPU),   [TRES_IS_MEM] = QOS_ROW(MEM),
    [TRES_IS_NODE] = QOS_ROW(NODE), [TRES_IS_ENERGY] = QOS_ROW(ENERGY),
    [TRES_IS_GRES] = QOS_ROW(GRES), [TRES_IS_LICENSE] = QOS_ROW(LIC),
    [TRES_IS_BB] = QOS_ROW(BB),     [TRES_IS_BILLING] = QOS_ROW(BILLING),
    [TRES_IS_OTHER] = QOS_ROW(UNK),
};

static const char *const tres_names[TRES_BOUNDS] = {
    [GRP_TRES] = "GrpTRES",
    [GRP_TRES_MINS] = "GrpTRESMins",
    [GRP_TRES_RUN_MINS] = "GrpTRESRunMins",
    [MAX_TRES_JOB] = "MaxTRESPerJob",
    [MAX_TRES_NODE] = "MaxTRESPerNode",
    [MAX_TRES_MINS_JOB] = "MaxTRESMinsPerJob",
    [MAX_TRES_USER] = "MaxTRESPerUser",
    [MAX_TRES_ACCT] = "MaxTRESPerAccount",
    [MAX_TRES_RUN_MINS_USER] = "MaxTRESRunMinsPerUser",
    [MAX_TRES_RUN_MINS_ACCT] = "MaxTRESRunMinsPerAccount",
    [MIN_TRES_JOB] = "MinTRESPerJob",
};

unsigned why_bound(const struct qos *qos, enum bound bound)
{
    return qos ? tres_limits[bound].qos : tres_limits[bound].assoc;
}

unsigned why_tres(const struct qos *qos, enum tres_limit bound, enum tres_kind kind)
{
    return qos ? qos_reasons[kind][bound] : assoc_reasons[kind][bound];
}

const char *why_bound_name(const struct qos *qos, enum bound bound)
{
    return qos ? tres_limits[bound].of_qos : tres_limits[bound].of_assoc;
}

const char *why_tres_name(enum tres_limit bound)
{
    return tres_names[bound];
}

static void add_whose(const struct limit_hit *hit, struct str *out)
{
    if (hit->qos)
        str_addf(out, " of QOS %s", hit->qos->name);
    else if (hit->assoc && hit->assoc->user)
        str_addf(out, " of user %s in account %s", hit->assoc->user, hit->assoc->account);
    else if (hit->assoc)
        str_addf(out, " of account %s", hit->assoc->account);
}

void limit_hit_text(const struct limit_hit *hit, struct str *out)
{
    const char *unit = hit->limit && str_starts(hit->limit + 3, "Wall") ? " s" : "";

    if (!hit->limit) {
        str_add(out, hit->reason == REASON_FAIL_QOS ? "its QOS is not there any more"
                                                    : "its association is not there any more");
        return;
    }
    str_add(out, hit->limit);
    add_whose(hit, out);
    if (hit->reason == REASON_QOS_THRES) { /* in hundredths */
        str_addf(out, " is %llu.%02llu; the fair share of its association is %llu.%02llu",
                 (unsigned long long)hit->most / 100, (unsigned long long)hit->most % 100,
                 (unsigned long long)hit->used / 100, (unsigned long long)hit->used % 100);
        return;
    }
    str_addf(out, " is %s%s%llu%s", hit->tres ? hit->tres->name : "", hit->tres ? "=" : "",
             (unsigned long long)hit->most, unit);
    if (hit->holder || hit->used)
        str_addf(out, "; %llu%s in use%s", (unsigned long long)hit->used, unit,
                 hit->part[0] == 'u'   ? " by the user"
                 : hit->part[0] == 'a' ? " by the account"
                                       : "");
    str_addf(out, ", the job asks for %llu%s", (unsigned long long)hit->asks, unit);
    if (!hit->holder)
        str_add(out, ": it can never start like this");
}
