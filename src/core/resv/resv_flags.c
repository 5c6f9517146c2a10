/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resv_flags.c - words of reservations, and which of them a job may run in
 */
#include "core/resv.h"

#include <stdlib.h>
#include <string.h>

#include "core/resv/resvs.h"

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
    { "USER_DELETE", RESV_USER_DELETE },
    { "FORCE_START", RESV_FORCE_START },
    { "LICENSE_ONLY", RESV_ANY_NODES },
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

uint32_t resv_node_flags(const struct state *state, const struct node *node)
{
    uint32_t flags = 0;

    vec_each (struct reservation *, at, &state->reservations) {
        if (!(*at)->active || (*at)->over || (*at)->parts.len ||
            !bitset_has(&(*at)->nodes, node->number))
            continue;
        flags |= (*at)->flags & RESV_MAINT ? NODE_FLAG_MAINT : NODE_FLAG_RESERVED;
    }
    return flags & NODE_FLAG_MAINT ? NODE_FLAG_MAINT : flags;
}

const char *resv_node_name(const struct state *state, const struct node *node)
{
    vec_each (struct reservation *, at, &state->reservations) {
        if ((*at)->active && !(*at)->over && bitset_has(&(*at)->nodes, node->number))
            return (*at)->spec->name;
    }
    return NULL;
}
