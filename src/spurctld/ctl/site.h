/* SPDX-License-Identifier: Apache-2.0 */
/*
 * site.h - programs of the site: mail, PrologSlurmctld and EpilogSlurmctld, reservations that begin and end, triggers
 */
#ifndef SPURCTLD_CTL_SITE_H
#define SPURCTLD_CTL_SITE_H

#include "base/map.h"
#include "base/vec.h"
#include "spurctld/ctl/ctl.h"

/* A reservation that holds, as the leader saw it last. */
struct resv_seen {
    char *name;
    int64_t start_us;
    bool here; /* while we look: it still holds */
};

/* What programs of the site run, and what they were last told. */
struct ctl_site {
    VEC(struct resv_seen) reservations; /* that hold; ctl_resv.c */
    uint32_t uid;                       /* that this process runs as */
    struct map triggers; /* id → struct trigger_run: its program is about to run; ctl_triggers.c */
    struct map running;  /* job id → attempt: a program of the site runs for it; ctl_hooks.c */
    struct {
        uint32_t array;
        int64_t at_us;
    } requeue_mailed; /* the last one: ctl_mail.c */
};

/* ---- ctl_env.c ---- */
enum ctl_env_where { CTL_ENV_PROLOG = 1, CTL_ENV_EPILOG = 2, CTL_ENV_MAIL = 4 };
enum { CTL_ENV_MORE = 4 }; /* that may be added */
/* Ends with NULL; of the arena. */
char **ctl_job_env(const struct ctl *ctl, const struct job *job, enum ctl_env_where where,
                   struct arena *arena);
void ctl_env_add(char **env, struct arena *arena, const char *name, const char *value);

/* ---- ctl_mail.c ---- */
void ctl_mail(struct ctl *ctl, const struct event *event);

/* ---- ctl_resv.c ---- */
void ctl_resv_changed(struct ctl *ctl);
void ctl_resv_leading(struct ctl *ctl);
void ctl_resv_done(struct ctl *ctl);

/* ---- ctl_cron.c ---- */
void ctl_cron_ended(struct ctl *ctl, const struct job *job); /* perhaps one of a crontab */
void ctl_cron_leading(struct ctl *ctl);

/* ---- ctl_triggers.c ---- */
void ctl_triggers_look(struct ctl *ctl); /* runs what is due */

/* ---- ctl_hooks.c ---- */
void ctl_site_done(struct ctl *ctl, const char *what, uint32_t job_id, uint32_t attempt,
                   int exit_status);
void ctl_site(struct ctl *ctl, const struct event *event);
void ctl_site_leading(struct ctl *ctl); /* what another leader may have left undone */
void ctl_site_again(struct ctl *ctl);   /* what we could not say */

#endif
