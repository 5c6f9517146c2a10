/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.h - files to and from the nodes of a job: what sbcast, sgather and srun --bcast share
 *
 * copy.c       asks the managing node for a plan; sends a file
 * copy_libs.c  which shared objects a program needs
 */
#ifndef CLI_COPY_H
#define CLI_COPY_H

#include "cli/cli.h"
#include "proto/copy.pb-c.h"

enum {
    COPY_BLOCK = 512 * 1024,
    COPY_FANOUT_MOST = 64,
    COPY_LIBS_MOST = 1024,
};

struct copy_job {
    struct cli *cli;
    uint32_t job;
    const char *nodes;           /* hostlist; NULL: all of the job */
    const char *address, *token; /* of the managing node */

    /* as asked for */
    size_t block;
    bool compress;
    uint32_t timeout_s, fanout; /* 0: as usual */
    const volatile int *stop;   /* not 0 any more: give up; may be NULL */
};

/* Values of --compress and --send-libs; NULL: not given, "": given without one. */
int copy_read_compress(const char *text, bool *out, struct err *err);
int copy_read_yes(const char *text, bool *out, struct err *err);

/* Finds the managing node. */
int copy_find(struct copy_job *copy, struct err *err);
/* The packed order and the proofs for it, in the arena of the command. */
int copy_plan(struct copy_job *copy, const CopyOrder *order, CopyPlanReply **plan, struct err *err);

struct copy_send {
    const char *from, *to; /* `to` is absolute */
    bool force, preserve, make_dir;
};
/* Sends a file to every node; the text names the node that failed. */
int copy_send(struct copy_job *copy, const struct copy_send *what, struct err *err);

/*
 * Sends the shared objects that `program` needs into the directory `dir`, but for those below a
 * directory of `exclude` (comma list; "NONE"; NULL: the system's). Not a dynamic program: none.
 */
int copy_send_libs(struct copy_job *copy, const char *program, const char *dir, const char *exclude,
                   bool force, bool preserve, struct err *err);

#endif
