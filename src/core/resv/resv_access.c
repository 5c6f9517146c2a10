/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resv_access.c - who may use a reservation
 *
 * Users and groups name people: one of both lists is enough. Accounts, QOS and partitions are each a
 * condition of its own. A list of nobody but "-name" lets in all others.
 */
#include <stdio.h>
#include <string.h>

#include "core/accounts.h"
#include "core/resv.h"
#include "core/resv/resvs.h"

enum verdict { SHUT_OUT = -1, NOT_NAMED, NAMED };

static bool only_shuts_out(char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i][0] != '-')
            return false;
    }
    return count > 0;
}

static enum verdict listed(char *const *list, size_t count, const char *name)
{
    enum verdict found = NOT_NAMED;

    for (size_t i = 0; i < count; i++) {
        bool out = list[i][0] == '-';
        if (name && strcmp(list[i] + out, name) == 0)
            found = out ? SHUT_OUT : NAMED;
    }
    return found;
}

static bool condition(char *const *list, size_t count, const char *name)
{
    enum verdict found = listed(list, count, name);

    return found == NAMED || (found == NOT_NAMED && (count == 0 || only_shuts_out(list, count)));
}

/* ---- people ---- */

static bool has_gid(const struct resv_access *who, uint64_t gid)
{
    for (size_t i = 0; i < who->gid_count; i++) {
        if (who->gids[i] == gid)
            return true;
    }
    return false;
}

/* A group by the name of the first one, by its number, or by the number it had when it was named. */
static bool in_group(const ReservationSpec *spec, const struct resv_access *who, const char *name)
{
    size_t len = strlen(name);
    uint64_t gid;

    if (str_eq(name, who->group) || (str_to_u64(name, UINT32_MAX, &gid) && has_gid(who, gid)))
        return true;
    for (size_t i = 0; i < spec->n_group_ids; i++) {
        const char *pair = spec->group_ids[i];
        if (strncmp(pair, name, len) == 0 && pair[len] == '=' &&
            str_to_u64(pair + len + 1, UINT32_MAX, &gid) && has_gid(who, gid))
            return true;
    }
    return false;
}

static enum verdict by_group(const ReservationSpec *spec, const struct resv_access *who)
{
    enum verdict found = NOT_NAMED;

    for (size_t i = 0; i < spec->n_groups; i++) {
        bool out = spec->groups[i][0] == '-';
        if (in_group(spec, who, spec->groups[i] + out))
            found = out ? SHUT_OUT : NAMED;
    }
    return found;
}

static bool admits_person(const ReservationSpec *spec, const struct resv_access *who)
{
    char number[16];

    snprintf(number, sizeof(number), "%u", who->uid);
    enum verdict user = listed(spec->users, spec->n_users, who->user);
    if (user == NOT_NAMED)
        user = listed(spec->users, spec->n_users, number);
    enum verdict group = by_group(spec, who);
    if (user == SHUT_OUT || group == SHUT_OUT)
        return false;
    if (user == NAMED || group == NAMED)
        return true;
    return (!spec->n_users || only_shuts_out(spec->users, spec->n_users)) &&
           (!spec->n_groups || only_shuts_out(spec->groups, spec->n_groups));
}

bool resv_admits_person(const struct reservation *resv, const struct resv_access *who)
{
    return who->uid == 0 || admits_person(resv->spec, who);
}

/* ---- accounts ---- */

/* Who may use an account may use it with those below it. */
static bool admits_account(const ReservationSpec *spec, const struct resv_access *who)
{
    enum verdict found = listed(spec->accounts, spec->n_accounts, who->account);

    for (const struct assoc *at = who->assoc; at && found == NOT_NAMED; at = at->parent)
        found = listed(spec->accounts, spec->n_accounts, at->account);
    return found == NAMED ||
           (found == NOT_NAMED &&
            (!spec->n_accounts || only_shuts_out(spec->accounts, spec->n_accounts)));
}

bool resv_admits_partition(const struct reservation *resv, const char *partition)
{
    return condition(resv->spec->allowed_partitions, resv->spec->n_allowed_partitions, partition);
}

static bool admits_partitions(const struct reservation *resv, const char *partitions)
{
    char name[LIMIT_NAME_BYTES + 1];
    const char *cursor = partitions;
    struct span word;

    if (!partitions || !resv->spec->n_allowed_partitions)
        return true;
    while (str_next(&cursor, ",", &word)) {
        snprintf(name, sizeof(name), "%.*s", (int)MIN(word.len, sizeof(name) - 1), word.ptr);
        if (resv_admits_partition(resv, name))
            return true;
    }
    return false;
}

bool resv_admits(const struct reservation *resv, const struct resv_access *who)
{
    const ReservationSpec *spec = resv->spec;

    if (who->uid == 0)
        return true;
    return admits_person(spec, who) && admits_account(spec, who) &&
           condition(spec->qos, spec->n_qos, who->qos) && admits_partitions(resv, who->partitions);
}

bool resv_admits_job(const struct reservation *resv, const struct job *job)
{
    struct resv_access who = { .uid = job->owner->uid,
                               .user = job->owner->user,
                               .group = job->owner->group,
                               .gids = job->owner->gids,
                               .gid_count = job->owner->gid_count,
                               .account = job->account,
                               .assoc = job_assoc(job),
                               .qos = job->qos };

    if (!resv_admits(resv, &who))
        return false;
    for (size_t i = 0; job->owner->uid && i < job->shape->partition_count; i++) {
        if (resv_admits_partition(resv, job->shape->partitions[i]))
            return true;
    }
    return job->owner->uid == 0;
}
