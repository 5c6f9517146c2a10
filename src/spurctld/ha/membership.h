/* SPDX-License-Identifier: Apache-2.0 */
/*
 * membership.h - who the controllers are, and where this one's log is
 *
 * The list is part of the cluster's state (CmdControllers), so it changes by agreement and follows
 * every snapshot. A controller needs it before it has the state: STATE_DIR/controllers holds what it
 * knew last. Without that file controller.hosts of the configuration says who begins; from then on
 * `spur controller` changes the list, and the file counts.
 *
 *     engine etcd
 *     token spur-6f1c…           of the etcd that the controllers run
 *     controller c1 10.0.0.1:6817
 *     bootstrap yes              the log has just moved here and etcd is still empty
 */
#ifndef SPURCTLD_MEMBERSHIP_H
#define SPURCTLD_MEMBERSHIP_H

#include "base/vec.h"
#include "log/log.h"
#include "proto/command.pb-c.h"
#include "schema/conf.h"

enum { CONTROLLER_PORT = 6817, ETCD_CLIENT_OFFSET = 4, ETCD_PEER_OFFSET = 5 };

struct controller {
    char *name, *host;
    unsigned port; /* its etcd member has ETCD_CLIENT_OFFSET and ETCD_PEER_OFFSET above */
};

struct membership {
    VEC(struct controller) list; /* empty: one alone that never had others */
    char *token;
    bool etcd;      /* our log is in an etcd that controllers run */
    bool bootstrap; /* the next start puts our snapshot into an empty etcd */
    bool from_file; /* not from the configuration */
    bool entering;  /* invited, and not in the list yet */
    bool removed;   /* we were in it once */
};

/* "c1", "c1(10.0.0.1)", "c1(10.0.0.1:7000)"; the caller frees name and host. */
int controller_parse(const char *text, struct controller *out, struct err *err);
/* "10.0.0.1:7000", "c1", "[::1]:7000" */
int controller_parse_address(const char *text, char **host, unsigned *port, struct err *err);
char *controller_url(const struct controller *controller, unsigned offset); /* "https://…" */

/* From the file, or from the configuration. */
int membership_load(struct membership *membership, const char *state_dir, const struct conf *conf,
                    struct err *err);
int membership_save(const struct membership *membership, const char *state_dir, struct err *err);
void membership_done(struct membership *membership);
const struct controller *membership_find(const struct membership *membership, const char *name);
void membership_add(struct membership *membership, const char *name, const char *host,
                    unsigned port);
bool membership_drop(struct membership *membership, const char *name);

/* From and to the command; the copy is in the arena and borrows. */
int membership_from(struct membership *membership, const CmdControllers *list, struct err *err);
CmdControllers *membership_command(const struct membership *membership, struct arena *arena);

/*
 * The engine that the directory holds must be the one the list says; a conversion that a crash cut
 * short is completed here. Refuses a directory that was moved under another configuration.
 */
int membership_settle(const struct membership *membership, const char *state_dir, struct err *err);

#endif
