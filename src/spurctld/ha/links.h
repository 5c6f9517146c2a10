/* SPDX-License-Identifier: Apache-2.0 */
/*
 * links.h - connections between controllers: who is heard, and deposing a leader that is not
 *
 * Everybody who does not lead pings everybody else; suspect.h decides. Made when there are several
 * controllers, made anew when their list changes.
 */
#ifndef SPURCTLD_LINKS_H
#define SPURCTLD_LINKS_H

#include "spurctld/serve.h"

struct links_host {
    const char *name, *address; /* "https://host:port" */
};

/* The hosts are all controllers, ourselves among them, at most SUSPECT_PEERS; they are copied. */
struct links *links_new(struct server *server, struct tls_ctx *tls, const struct links_host *hosts,
                        size_t count, struct err *err);
/* The newest feature level that all others have said they know, within the last seconds. */
unsigned links_level(const struct links *links);
/* For ctl_io.ask_marks. */
void links_ask_marks(struct links *links);
void links_free(struct links *links);

#endif
