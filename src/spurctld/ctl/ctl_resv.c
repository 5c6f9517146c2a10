/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_resv.c - programs of the site for reservations that begin and end: ResvProlog, ResvEpilog
 *
 * The leader remembers which hold and looks again when one changed. One that held before it led is not new.
 * The program is called with the reservation's name; its failure is logged.
 */
#include <stdlib.h>
#include <string.h>

#include "core/resv.h"
#include "spurctld/ctl/ctl_priv.h"

static void run(struct ctl *ctl, const char *what, char *path, const char *name)
{
    const Config *config = state_config(ctl->state);
    struct arena arena;

    if (str_is_empty(path))
        return;
    arena_init(&arena);
    char *argv[] = { path, arena_strdup(&arena, name), NULL };
    char *env[] = { arena_strdup(&arena, "PATH=/usr/sbin:/usr/bin:/sbin:/bin"),
                    arena_printf(&arena, "SLURM_CLUSTER_NAME=%s", config->cluster_name),
                    arena_printf(&arena, "SLURM_RESV_NAME=%s", name), NULL };
    struct ctl_hook hook = { .what = what,
                             .argv = argv,
                             .env = env,
                             .timeout_s = config->prolog_epilog_timeout_s
                                              ? config->prolog_epilog_timeout_s
                                              : CTL_HOOK_NO_LIMIT_S,
                             .must_run = true };
    ctl->io.hook(ctl->io.ctx, &hook);
    arena_done(&arena);
}

static struct resv_seen *seen(struct ctl *ctl, const char *name)
{
    vec_each (struct resv_seen, one, &ctl->site.reservations) {
        if (strcmp(one->name, name) == 0)
            return one;
    }
    return NULL;
}

static void ended(struct ctl *ctl, size_t at, bool quiet)
{
    if (!quiet)
        run(ctl, "resv_epilog", state_config(ctl->state)->resv_epilog,
            ctl->site.reservations.items[at].name);
    free(ctl->site.reservations.items[at].name);
    vec_remove(&ctl->site.reservations, at);
}

static void look(struct ctl *ctl, bool quiet)
{
    vec_each (struct resv_seen, one, &ctl->site.reservations)
        one->here = false;
    for (size_t i = 0; i < state_reservation_count(ctl->state); i++) {
        const struct reservation *resv = state_reservation_at(ctl->state, i);
        struct resv_seen *one = seen(ctl, resv->spec->name);
        if (one && resv->active && !resv->over && one->start_us == resv->spec->start_us)
            one->here = true;
    }
    for (size_t i = ctl->site.reservations.len; i-- > 0;) {
        if (!ctl->site.reservations.items[i].here)
            ended(ctl, i, quiet);
    }
    for (size_t i = 0; i < state_reservation_count(ctl->state); i++) {
        const struct reservation *resv = state_reservation_at(ctl->state, i);
        if (!resv->active || resv->over || seen(ctl, resv->spec->name))
            continue;
        vec_push(&ctl->site.reservations, (struct resv_seen){ .name = mem_strdup(resv->spec->name),
                                                              .start_us = resv->spec->start_us });
        if (!quiet)
            run(ctl, "resv_prolog", state_config(ctl->state)->resv_prolog, resv->spec->name);
    }
}

void ctl_resv_changed(struct ctl *ctl)
{
    look(ctl, false);
}

void ctl_resv_leading(struct ctl *ctl)
{
    look(ctl, true);
}

void ctl_resv_done(struct ctl *ctl)
{
    while (ctl->site.reservations.len)
        ended(ctl, ctl->site.reservations.len - 1, true);
    vec_done(&ctl->site.reservations);
}
