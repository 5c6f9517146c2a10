/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server.h - spurstepd-pmix: libpmix on one side, the step's supervisor on the other
 *
 * libpmix calls us in threads of its own. Such a call becomes a `struct call`, whose address goes through a
 * pipe to the main thread; everything else happens there, one thing at a time, without locks.
 */
#ifndef PMIX_SERVER_H
#define PMIX_SERVER_H

#include <pmix.h>
#include <pmix_server.h>

#include "base/bitset.h"
#include "base/err.h"
#include "base/framed.h"
#include "pmix/coll.h"
#include "pmix/names.h"
#include "proto/pmix.pb-c.h"
#include "proto/run.pb-c.h"

struct server {
    int fd; /* the supervisor */
    struct str in;
    PmixSetup *setup;
    StepLayout *layout;
    uint32_t here;
    pmix_nspace_t nspace;
    uint32_t *node_of; /* by rank */
    struct colls colls;
    struct names names;
    struct map asked; /* by number: the calls that wait for another node's answer */
    uint64_t last_ask;
    int pipe[2]; /* addresses of calls */
};

/* Something libpmix asked for, which is answered by one of the functions below. */
struct call {
    void (*run)(struct server *server, struct call *call);
    uint32_t rank; /* of the task that asked, or that is asked about */
    int status;
    char *text;
    struct str data;
    char **keys;
    PmixNamesAsk *ask;
    struct bitset ranks; /* who does it together; empty: nobody */
    char kind;
    bool wants_number;
    int range;
    uint32_t from; /* the node that asked, or that is asked */
    uint32_t count;
    uint64_t id;
    pmix_op_cbfunc_t op;
    pmix_modex_cbfunc_t modex;
    pmix_lookup_cbfunc_t lookup;
    pmix_info_cbfunc_t infos;
    pmix_spawn_cbfunc_t spawn;
    void *cbdata;
};

/* ---- main.c: to the supervisor, and to other nodes by way of it ---- */

void server_say(struct server *server, PmixOut *out);
/* To one node; when that is ours, it is taken at once. */
void server_talk(struct server *server, uint32_t to, PmixTalk *talk);
void server_talk_all(struct server *server, PmixTalk *talk);

/* ---- calls.c: what libpmix asks for ---- */

extern pmix_server_module_t calls_module;
/* Before libpmix is begun. */
void calls_use(struct server *server);
/* What libpmix has of a task of ours, for another node: `call` is passed on. */
void calls_on_modex_here(pmix_status_t status, char *data, size_t len, void *call);
void call_free(struct call *call);

/* ---- acts.c: what is done about it, on the main thread ---- */

void act_connected(struct server *server, struct call *call);
void act_finalized(struct server *server, struct call *call);
void act_abort(struct server *server, struct call *call);
void act_complain(struct server *server, struct call *call);
void act_together(struct server *server, struct call *call);
void act_modex(struct server *server, struct call *call);
void act_modex_here(struct server *server, struct call *call);
void act_names(struct server *server, struct call *call);
void act_event(struct server *server, struct call *call);
void act_begin(struct server *server); /* sets the callbacks of colls and names */
/* A message of another node, or of ours. */
void act_talk(struct server *server, uint32_t from, PmixTalk *talk);

/* ---- nspace.c: what libpmix is told of the step ---- */

int nspace_begin(struct server *server, struct err *err);
int nspace_env(struct server *server, uint32_t rank, char ***env, struct err *err);

#endif
