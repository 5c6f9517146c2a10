/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resv_flags.c - words of reservations, and who may use one
 */
#include "core/resv.h"

#include <stdlib.h>
#include <string.h>

#include "core/state_priv.h"

enum { DEFAULT_PURGE_S = 300 };

/* In the order in which Slurm shows them. */
static const struct {
    const char *word;
    unsigned flag;
} words[] = {
    { "MAINT", RESV_MAINT },
    { "FLEX", RESV_FLEX },
    { "OVERLAP", RESV_OVERLAP },
    { "IGNORE_JOBS", RESV_IGNORE_JOBS },
    { "HOURLY", RESV_HOURLY },
    { "DAILY", RESV_DAILY },
    { "WEEKDAY", RESV_WEEKDAY },
    { "WEEKEND", RESV_WEEKEND },
    { "WEEKLY", RESV_WEEKLY },
    { "SPEC_NODES", RESV_SPEC_NODES },
    { "ANY_NODES", RESV_ANY_NODES },
    { "PART_NODES", RESV_PART_NODES },
    { "STATIC", RESV_STATIC },
    { "STATIC_ALLOC", RESV_STATIC },
    { "TIME_FLOAT", RESV_TIME_FLOAT },
    { "REPLACE", RESV_REPLACE },
    { "REPLACE_DOWN", RESV_REPLACE_DOWN },
    { "PURGE_COMP", RESV_PURGE_COMP },
    { "NO_HOLD_JOBS_AFTER_END", RESV_NO_HOLD },
    { "NO_HOLD_JOBS_AFTER", RESV_NO_HOLD },
    { "NO_HOLD_JOBS", RESV_NO_HOLD },
    { "MAGNETIC", RESV_MAGNETIC },
    { "IGNORE_RUNNING_JOBS", RESV_IGNORE_JOBS },
};

static unsigned flag_of(const char *word)
{
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_ieq(word, words[i].word))
            return words[i].flag;
    }
    return 0;
}

static int check_together(const ReservationSpec *spec, unsigned flags, struct err *err)
{
    unsigned repeats = flags & RESV_REPEATS;

    if (repeats & (repeats - 1))
        return err_set(err, ERR_INVALID, "a reservation repeats in one way only");
    if (flags & RESV_TIME_FLOAT && repeats)
        return err_set(err, ERR_INVALID, "a reservation that floats does not repeat");
    if (flags & RESV_PART_NODES && str_is_empty(spec->partition))
        return err_set(err, ERR_INVALID, "PART_NODES needs PartitionName and Nodes=ALL");
    if (flags & (RESV_REPLACE | RESV_REPLACE_DOWN) && flags & (RESV_STATIC | RESV_SPEC_NODES))
        return err_set(err, ERR_INVALID,
                       "nodes are replaced only where they were given by number (NodeCnt)");
    return 0;
}

int resv_flags_read(const ReservationSpec *spec, unsigned *out, struct err *err)
{
    unsigned flags = 0;

    for (size_t i = 0; i < spec->n_flags; i++) {
        unsigned flag = flag_of(spec->flags[i]);
        if (!flag)
            return err_set(err, ERR_UNSUPPORTED, "the flag %.40s of reservations is not supported",
                           spec->flags[i]);
        flags |= flag;
    }
    *out = flags;
    return check_together(spec, flags, err);
}

void resv_flags_write(ReservationSpec *spec, unsigned flags)
{
    for (size_t i = 0; i < spec->n_flags; i++)
        free(spec->flags[i]);
    free(spec->flags);
    spec->n_flags = 0;
    spec->flags = NEW_ARRAY(char *, ARRAY_LEN(words));
    for (size_t i = 0; i < ARRAY_LEN(words) && flags; i++) {
        if (!(flags & words[i].flag))
            continue;
        spec->flags[spec->n_flags++] = mem_strdup(words[i].word);
        flags &= ~words[i].flag;
    }
    if (flags & RESV_PURGE_COMP && !spec->has_purge_comp_s) {
        spec->has_purge_comp_s = true;
        spec->purge_comp_s = DEFAULT_PURGE_S;
    }
    if (!spec->n_flags) {
        free(spec->flags);
        spec->flags = NULL;
    }
}

/* ---- who ---- */

/* 1 named, -1 shut out by "-name", 0 neither. *only_out: the list has nobody but those. */
static int listed(char *const *list, size_t count, const char *name, bool *only_out)
{
    int found = 0;

    *only_out = count > 0;
    for (size_t i = 0; i < count; i++) {
        bool out = list[i][0] == '-';
        *only_out = *only_out && out;
        if (name && strcmp(list[i] + out, name) == 0)
            found = out ? -1 : 1;
    }
    return found;
}

bool resv_admits(const struct reservation *resv, uint32_t uid, const char *user, const char *group,
                 const char *account)
{
    const ReservationSpec *spec = resv->spec;
    bool user_out, group_out, account_out;
    int by_user = listed(spec->users, spec->n_users, user, &user_out);
    int by_group = listed(spec->groups, spec->n_groups, group, &group_out);
    int by_account = listed(spec->accounts, spec->n_accounts, account, &account_out);

    if (uid == 0)
        return true;
    if (by_user < 0 || by_group < 0 || by_account < 0)
        return false;
    if (by_user > 0 || by_group > 0 || by_account > 0)
        return true;
    /* Lists that only shut out let everybody else in. */
    return (!spec->n_users || user_out) && (!spec->n_groups || group_out) &&
           (!spec->n_accounts || account_out);
}

bool resv_admits_job(const struct reservation *resv, const struct job *job)
{
    return resv_admits(resv, job->owner->uid, job->owner->user, job->owner->group, job->account);
}

const struct reservation *resv_next_for(const struct state *state, const struct job *job,
                                        size_t *at)
{
    const char *list = job->shape->reservation;

    if (!list) {
        while (*at < state->reservations.len) {
            const struct reservation *resv = state->reservations.items[(*at)++];
            if (resv->flags & RESV_MAGNETIC && resv_admits_job(resv, job))
                return resv;
        }
        return NULL;
    }
    while (list[*at]) {
        size_t len = strcspn(list + *at, ",");
        const char *name = list + *at;
        *at += len + (name[len] == ',');
        vec_each (struct reservation *, one, &state->reservations) {
            if (strlen((*one)->spec->name) == len && strncmp((*one)->spec->name, name, len) == 0)
                return *one;
        }
    }
    return NULL;
}

/* ---- what holds now ---- */

static int refuse(struct err *err, const char *node, const struct reservation *resv)
{
    return err_set(err, ERR_NODES_BUSY, "node %s belongs to reservation %s", node,
                   resv->spec->name);
}

int resv_check_start(const struct state *state, const struct job *job, const Allocation *allocation,
                     struct err *err)
{
    const struct reservation *own = NULL;

    if (!str_is_empty(allocation->reservation)) {
        own = reservation_at(state, allocation->reservation);
        if (!own || own->over || (!own->active && !(own->flags & RESV_FLEX)))
            return err_code(err, ERR_RESERVATION_NOT_USABLE);
        if (!resv_admits_job(own, job))
            return err_code(err, ERR_RESERVATION_ACCESS);
    } else if (job->shape->reservation) {
        return err_code(err, ERR_RESERVATION_INVALID);
    }
    for (size_t i = 0; i < allocation->n_nodes && state->reservations.len; i++) {
        const struct node *node = node_at(state, allocation->nodes[i]->node);
        if (!node)
            continue; /* said elsewhere */
        if (own && !(own->flags & RESV_FLEX) && !bitset_has(&own->nodes, node->number))
            return refuse(err, node->spec->name, own);
        vec_each (struct reservation *, at, &state->reservations) {
            if (*at != own && (*at)->active && !(*at)->over &&
                (*at)->spec->end_us > state->time_us && bitset_has(&(*at)->nodes, node->number))
                return refuse(err, node->spec->name, *at);
        }
    }
    return 0;
}

uint32_t resv_node_flags(const struct state *state, const struct node *node)
{
    uint32_t flags = 0;

    vec_each (struct reservation *, at, &state->reservations) {
        if (!(*at)->active || (*at)->over || !bitset_has(&(*at)->nodes, node->number))
            continue;
        flags |= (*at)->flags & RESV_MAINT ? NODE_FLAG_MAINT : NODE_FLAG_RESERVED;
    }
    return flags & NODE_FLAG_MAINT ? NODE_FLAG_MAINT : flags;
}
