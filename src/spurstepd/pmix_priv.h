/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pmix_priv.h - what pmix.c and pmix_start.c share
 */
#ifndef SPURSTEPD_PMIX_PRIV_H
#define SPURSTEPD_PMIX_PRIV_H

#include "base/str.h"
#include "proto/pmix.pb-c.h"
#include "spurstepd/pmix.h"
#include "spurstepd/tasks_priv.h"

struct pmix {
    struct tasks *tasks;
    int fd, err_fd; /* the program's socket, and its standard error */
    struct str in, out, words;
    unsigned said;
    char *failed;
    PmixOut *ready; /* until the tasks have started */
    bool began;
    bool *here; /* by task: PMIx knows it */
    char *dir;
};

/* pmix.c: to the program; and what it said, on its socket and on its standard error. */
void pmix_tell(struct pmix *pmix, const PmixIn *in);
void pmix_on_program(struct tasks *tasks, void *data, short events);
void pmix_on_words(struct tasks *tasks, void *data, short events);

#endif
