/* SPDX-License-Identifier: Apache-2.0 */
/*
 * routes.h - what is served: one row per method and path
 *
 * Read by the dispatcher, by the OpenAPI writer and by the test that walks routes and identities.
 */
#ifndef SPURRESTD_ROUTES_H
#define SPURRESTD_ROUTES_H

#include "spurrestd/exchange.h"

enum route_who {
    WHO_ANYBODY, /* no identity is needed */
    WHO_USER,    /* somebody; what the object allows, the controller says */
    WHO_STAFF,   /* the controller gives it to operators or administrators only */
};

typedef void route_handler(struct exchange *x);

struct route {
    enum http_method method;
    const char *path;      /* "/slurm/{v}/job/{job_id}"; {v} is v0.0.42 and the like */
    unsigned since, until; /* versions of Slurm's API that have it; 0: always */
    enum route_who who;
    route_handler *handle;
    const char *help; /* one sentence, for OpenAPI and docs */
};

extern const struct route routes[];
extern const size_t route_count;

enum { SLURM_VERSION_FIRST = 42, SLURM_VERSION_LAST = 45 };

/* lists.c */
route_handler list_jobs, get_job, list_nodes, get_node, list_partitions, get_partition;
/* acts.c */
route_handler delete_job, delete_jobs, post_job, post_hold, post_release, post_suspend, post_resume,
    post_requeue, post_jobs_requeue;
/* more.c */
route_handler not_possible, delete_partition, get_whoami, get_explain, get_steps, get_jobs_state,
    list_licenses, list_reservations, delete_reservation, post_reservation, post_node,
    get_reconfigure, get_diag, post_hostnames, post_hostlist;
/* facts.c */
route_handler get_shares, get_resources, get_conf;
/* logs.c, events.c, metrics.c, openapi.c */
route_handler get_logs, get_events, get_metrics, get_openapi;
/* ping.c */
route_handler get_ping;
/* db_lists.c, db_history.c, db_changes.c */
route_handler db_get_accounts, db_get_users, db_get_assocs, db_get_assoc, db_get_qos,
    db_get_clusters, db_get_tres, db_get_wckeys, db_get_instances, db_get_config, db_get_conf,
    db_get_ping, db_get_diag, db_get_jobs, db_get_job;
route_handler db_post_accounts, db_post_users, db_post_assocs, db_post_accounts_assoc,
    db_post_users_assoc, db_post_qos, db_post_clusters, db_post_wckeys, db_post_config,
    db_post_tres, db_delete_account, db_delete_user, db_delete_qos, db_delete_cluster,
    db_delete_wckey, db_delete_assocs;
/* submit.c */
route_handler post_submit, post_allocate;

#endif
