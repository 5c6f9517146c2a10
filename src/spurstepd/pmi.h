/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pmi.h - srun --mpi=pmi2: tasks find each other by PMI-1 or PMI-2
 *
 * Every task has a socket, PMI_FD. What tasks put is kept here and goes to the other nodes when all tasks
 * of this one are in a fence; a fence is over when every node has said so (relay.h). Which of the two
 * dialects a task speaks, its first line says.
 */
#ifndef SPURSTEPD_PMI_H
#define SPURSTEPD_PMI_H

#include "base/map.h"
#include "base/str.h"
#include "spurstepd/pmi_wire.h"
#include "spurstepd/step_plugins.h"

/* Rows of step_plugins.c. */
bool pmi_wanted(const StepTask *task);
int pmi_begin(struct tasks *tasks, struct err *err);
int pmi_task(struct tasks *tasks, struct step_plugin_task *one, struct arena *arena,
             struct err *err);
void pmi_relay(struct tasks *tasks, uint32_t from, const uint8_t *bytes, size_t len);
void pmi_exited(struct tasks *tasks, size_t index);
void pmi_end(struct tasks *tasks);

/* ---- inside: pmi.c, pmi_1.c, pmi_2.c ---- */

/* A task as seen on its socket. */
struct pmi_peer {
    uint32_t number;
    int fd; /* -1: closed */
    bool second, in_fence, finalized;
    bool in_spawn; /* the lines of a request to start more, which is refused at its end */
    struct str in;
    char *wants; /* PMI-2: an attribute of the node that nobody has put yet */
    char *thread;
};

struct pmi {
    struct tasks *tasks;
    struct pmi_peer *peers;
    size_t count;
    char *name; /* of the key space */
    struct map values, attributes, services;
    size_t kept_bytes;
    struct str puts;  /* since the last fence, for the other nodes */
    uint32_t fences;  /* that this node has said */
    uint32_t *theirs; /* by node: the same */
    uint64_t *left;   /* by node: a task, plus one, that ended without a word; 0: none */
    bool waiting;     /* for other nodes */
    struct str mapping;
};

void pmi_reply(struct pmi_peer *peer, const struct str *text);
/* False: too much, or not fit for the wire. */
bool pmi_put(struct pmi *pmi, const char *key, const char *value);
void pmi_publish(struct pmi *pmi, const char *service, const char *port); /* NULL: no more */
void pmi_fence(struct pmi *pmi, struct pmi_peer *peer);
void pmi_abort(struct pmi *pmi, const struct pmi_peer *peer, const char *code, const char *text);

/* pmi_1.c, pmi_2.c: one message of a task, and the end of a fence. False: it makes no sense. */
bool pmi_1_take(struct pmi *pmi, struct pmi_peer *peer, char *line);
void pmi_1_fenced(struct pmi_peer *peer);
bool pmi_2_take(struct pmi *pmi, struct pmi_peer *peer, char *packet);
void pmi_2_fenced(struct pmi_peer *peer);

#endif
