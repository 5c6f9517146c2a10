/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits_admit.c - which account and QOS a job is of, and whether these let it into the queue
 */
#include <string.h>

#include "core/command/command.h"

static bool is_configured(const struct state *state)
{
    const Config *config = state->config;

    return config->n_accounts || config->n_users || config->n_qos || state->accounts->enforce;
}

static bool may_use(const struct assoc *assoc, const struct qos *qos)
{
    if (!assoc || !assoc->qos)
        return true;
    return qos->index / 64 < assoc->qos_words && assoc->qos[qos->index / 64] >> qos->index % 64 & 1;
}

/* The first of the job's partitions; NULL when it names none. */
static const char *first_partition(const JobSpec *spec, char *buffer, size_t size)
{
    size_t len = spec->partition ? strcspn(spec->partition, ",") : 0;

    if (!len || len >= size)
        return NULL;
    memcpy(buffer, spec->partition, len);
    buffer[len] = '\0';
    return buffer;
}

static int admit_qos(const struct state *state, const struct assoc *assoc, JobSpec *spec,
                     struct err *err)
{
    unsigned enforce = state->accounts->enforce;

    if (str_is_empty(spec->qos)) {
        const struct qos *by_default = assoc ? assoc->default_qos : NULL;
        if (!by_default && is_configured(state))
            by_default = state_qos(state, "normal");
        spec->qos = by_default ? (char *)(uintptr_t)by_default->name : NULL;
        return 0;
    }
    const struct qos *qos = state_qos(state, spec->qos);
    if (!is_configured(state))
        return 0;
    if (!qos || (enforce & ENFORCE_QOS && !may_use(assoc, qos)) ||
        (qos->flags & QOS_REQUIRES_RESV && str_is_empty(spec->reservation)))
        return err_code(err, ERR_QOS);
    return 0;
}

int admit_account(const struct state *state, const JobOwner *owner, JobSpec *spec, struct err *err)
{
    const char *user = owner && owner->user ? owner->user : "";
    char partition[LIMIT_NAME_BYTES + 1];

    if (str_is_empty(spec->account)) {
        const struct assoc *home = map_get(&state->accounts->defaults, user);
        /* The account root is for who is configured to be there. */
        if (home && (is_configured(state) || !str_eq(home->account, "root")))
            spec->account = (char *)(uintptr_t)home->account;
    }
    const struct assoc *assoc =
        spec->account ? state_assoc(state, spec->account, user,
                                    first_partition(spec, partition, sizeof(partition)))
                      : NULL;
    if (!assoc && state->accounts->enforce & ENFORCE_ASSOCS)
        return err_code(err, ERR_ACCOUNT);
    return admit_qos(state, assoc, spec, err);
}

/* The longest time that its QOS or association gives a job; NO_LIMIT when none does. */
static uint64_t most_wall(const struct state *state, const struct job *job,
                          const struct partition *partition)
{
    const struct qos *part = partition_qos(state, partition);
    const struct tres_limits *in_order[3] = {
        part ? &part->tres_limits : NULL,
        job_qos(job) ? &job_qos(job)->tres_limits : NULL,
        job_assoc(job) ? &job_assoc(job)->tres_limits : NULL,
    };

    if (job_qos(job) && job_qos(job)->flags & QOS_OVER_PART) {
        in_order[0] = &job_qos(job)->tres_limits;
        in_order[1] = part ? &part->tres_limits : NULL;
    }
    for (size_t i = 0; i < ARRAY_LEN(in_order); i++) {
        if (in_order[i] && in_order[i]->count[MAX_WALL] != NO_LIMIT)
            return in_order[i]->count[MAX_WALL];
    }
    return NO_LIMIT;
}

static int refuse(const struct limit_hit *hit, struct err *err)
{
    CLEANUP(str_done) struct str text = { 0 };

    limit_hit_text(hit, &text);
    return err_set(err, ERR_ACCOUNTING_POLICY, "%s: %s", reason_word(hit->reason), str_text(&text));
}

int admit_limits(const struct state *state, const JobOwner *owner, const JobSpec *spec,
                 struct shape *shape, int64_t *time_limit_s, uint64_t count, const struct job *self,
                 struct err *err)
{
    const struct partition *partition = partition_at(state, shape->partitions[0]);
    const struct owner who = { .uid = owner ? owner->uid : 0, .user = "", .group = "" };
    struct billing_group group = { .qos = state_qos(state, spec->qos) };
    struct job job = { .owner = &who,
                       .shape = shape,
                       .account = spec->account,
                       .qos = spec->qos,
                       .billing_group = &group };
    struct limit_hit hit = { 0 };

    if (!(state->accounts->enforce & ENFORCE_LIMITS))
        return 0;
    if (owner && owner->user && spec->account)
        group.assoc = state_assoc(state, spec->account, owner->user, shape->partitions[0]);
    uint64_t wall = most_wall(state, &job, partition);
    if (!spec->has_time_limit_s && wall != NO_LIMIT &&
        (*time_limit_s < 0 || (uint64_t)*time_limit_s > wall))
        *time_limit_s = (int64_t)wall;
    job.time_limit_s = *time_limit_s;
    if ((self || limits_submit(state, &job, partition, count, &hit)) &&
        limits_ever(state, &job, partition, &hit))
        return 0;
    return refuse(&hit, err);
}
