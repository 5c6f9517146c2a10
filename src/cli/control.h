/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control.h - the parts of scontrol
 */
#ifndef CLI_CONTROL_H
#define CLI_CONTROL_H

#include "cli/cli.h"
#include "proto/controller.pb-c.h"

struct control {
    struct cli cli;
    bool all, detail, future, one_line, quiet, json, yaml, interactive, leave;
    uint32_t verbose;
    int argc; /* of the whole command, for JSON */
    char **argv;
};

/*
 * A verb or an entity of show. argc and argv are what follows it. The result is an exit code.
 * `least` letters are enough to name it. `later` says why it does nothing yet.
 */
struct control_row {
    const char *name;
    unsigned least;
    int min, max; /* number of words that follow */
    int (*run)(struct control *control, int argc, char **argv);
    int number; /* for functions that serve several rows */
    const char *args, *help, *later;
};
const struct control_row *control_find(const struct control_row *rows, size_t count,
                                       const char *word, size_t len);

int control_show(struct control *control, int argc, char **argv); /* control_show.c */
void control_add_entities(struct str *out);                       /* "config, daemons, ..." */
/* The names of a list that show was given, and whether an object is one of them; none: all are. */
char **control_names(struct control *control, int argc, char **argv, size_t *count);
bool control_is_named(const char *name, char *const *names, size_t count);
int control_show_config(struct control *control);                          /* control_config.c */
int control_show_topology(struct control *control, int argc, char **argv); /* control_topology.c */
int control_update(struct control *control, int argc, char **argv);        /* control_update.c */
int control_create(struct control *control, int argc, char **argv);
int control_delete(struct control *control, int argc, char **argv);

/* The text of an error; who may not administrate is told as Slurm tells it. */
const char *control_words(const struct err *err);
int control_aborted(const struct err *err); /* says what was wrong with a word; the exit code */

/* control_resv.c */
int control_show_reservation(struct control *control, int argc, char **argv);
int control_send_reservation(struct control *control, int argc, char **argv, bool create);
int control_delete_reservation(struct control *control, const char *word, const char *name);

/* control_resize.c: what a shell inside the job needs after its nodes changed */
int control_write_resize(struct control *control, const char *id);

/* control_steps.c */
int control_show_steps(struct control *control, int argc, char **argv);
int control_listpids(struct control *control, int argc, char **argv);
int control_liststeps(struct control *control, int argc, char **argv);
int control_listjobs(struct control *control, int argc, char **argv);
int control_pidinfo(struct control *control, int argc, char **argv);
int control_notify(struct control *control, int argc, char **argv);
int control_show_slurmd(struct control *control, int argc, char **argv);

/* control_daemons.c */
int control_getaddrs(struct control *control, int argc, char **argv);
int control_show_daemons(struct control *control, int argc, char **argv);

/* control_lists.c: Nodes+=n4 becomes Nodes= with all that the partition then has */
int control_whole_list(struct control *control, int argc, char **argv, char **word,
                       struct err *err);

/* control_reboot.c */
int control_reboot(struct control *control, int argc, char **argv);
int control_cancel_reboot(struct control *control, int argc, char **argv);

/* control_jobs.c */
int control_hold(struct control *control, int argc, char **argv);
int control_uhold(struct control *control, int argc, char **argv);
int control_release(struct control *control, int argc, char **argv);
int control_top(struct control *control, int argc, char **argv);
int control_requeue(struct control *control, int argc, char **argv);
int control_requeuehold(struct control *control, int argc, char **argv);
int control_suspend(struct control *control, int argc, char **argv);
int control_resume(struct control *control, int argc, char **argv);
int control_wait_job(struct control *control, int argc, char **argv);
int control_write(struct control *control, int argc, char **argv);
int control_completing(struct control *control, int argc, char **argv);

/* "TEXT for job ID" for each result that failed; the exit code. `after` may name a second line. */
int control_results(const JobsReply *reply, const char *after);

#endif
