/* SPDX-License-Identifier: Apache-2.0 */
/*
 * srun.h - the parts of srun
 *
 * srun.c       options, allocation, exit code
 * srun_het.c   the components of a heterogeneous job: one step in each, one front
 * srun_prog.c  which program each task runs (pure but for reading files)
 * srun_step.c  asks the managing node for a step and launches it on every node
 * srun_ports.c  --resv-ports: the nodes hold the step's ports before it starts
 * srun_share.c  which part of the allocation the step asks for, how its tasks are bound
 * srun_loop.c  until all tasks have ended: one poll(), timers
 * srun_node.c  what nodes say; connections that break and are made again
 * srun_bcast.c  the program goes to the nodes before it runs there
 * srun_hook.c  programs that run here before and after the step
 * srun_in.c    standard input, kept until every node has it
 * srun_signal.c  signals: what they do to us and to the tasks
 * srun_out.c   what tasks write: labels, lines, files
 * srun_relay.c what nodes say to each other for MPI
 * srun_x11.c   --x11: which nodes forward
 */
#ifndef CLI_SRUN_H
#define CLI_SRUN_H

#include "base/vec.h"
#include "cli/alloc.h"
#include "proto/agent.pb-c.h"
#include "proto/run.pb-c.h"

enum {
    SRUN_CREDIT = 64 * 1024,
    SRUN_INPUT_BYTES = 16 * 1024,
    SRUN_PARTIAL_BYTES = 4096,
    SRUN_ACK_BYTES = 96 * 1024, /* of output between two acknowledgements */
    SRUN_SIGNALS = 8,
    SRUN_STEP_INTERACTIVE = 0xfffffffa,
    SRUN_SECOND_US = 1000000,
    SRUN_KILL_WAIT_S = 30,
    SRUN_FORCE_WAIT_S = 5,
    SRUN_PORTS_BUSY = 1000, /* no exit code */
    SRUN_GIVE_UP_S = 10,    /* after the time that the node has to end the tasks */
};

struct srun_node {
    struct srun *of; /* the component it is of; ourselves when there is one */
    struct client *client;
    struct client_stream *stream;
    const StepNode *node; /* NULL: the manager, which has no tasks */
    const char *address;  /* where it is; NULL: of the node */
    const char *token;
    size_t credit;
    bool manager, launched, running, over;

    uint64_t seen;  /* number of the last frame taken */
    uint64_t acked; /* and of the last that we said so of */
    size_t unacked_bytes;
    uint64_t input_sent; /* offset in our standard input */
    bool eof_sent;
    int64_t away_us;  /* since when there is no connection; 0: there is */
    int64_t retry_us; /* when the next try is due */
    unsigned tries;
    bool said_away, attached;
    uint32_t signals[SRUN_SIGNALS]; /* that wait for the connection */
    size_t signal_count;

    VEC(struct srun_relay *) relays; /* of other nodes, which it has not taken */
    size_t relays_sent;              /* how many of these are on their way */
    size_t relay_bytes;              /* and their size */
    uint64_t relays_taken;           /* number of the last one that it took */

    VEC(uint32_t) exits; /* tasks that ended the same way and were not spoken of yet */
    int exits_status;
    int64_t exits_us; /* since when */
};

struct srun_task {
    uint32_t node; /* index */
    bool started, exited;
    int status;
    struct str partial[2]; /* of standard output and error: the beginning of a line */
    int files[2];          /* of its own; -1: none */
};

/* Where one of the two streams goes. */
struct srun_sink {
    int fd;              /* one for all tasks; -1: none */
    const char *pattern; /* one file for each task; NULL: not */
    bool none;
    bool has_only;
    uint32_t only; /* this task's alone */
};

struct srun {
    struct cli cli;
    struct job_request request;
    struct alloc alloc;
    bool waited; /* for other steps */
    bool own;    /* the allocation is ours and ends with us */
    char **argv;
    int argc;
    uint32_t job_id;
    char **hosts; /* of each task (srun_read_hosts) */
    size_t host_count;
    JobPayload env; /* environment and limits of the tasks */
    char *name;
    char host[256];   /* ours, short */
    char address[64]; /* and where it is */

    /* srun_het.c: every component is a struct of its own; the first is the front, which has the rest. */
    struct srun **parts;
    size_t part_count;
    uint32_t group;      /* of the heterogeneous job */
    bool beside;         /* the components are steps of one ordinary job */
    uint32_t first_task; /* its number in all components */
    uint32_t step_from;  /* the step's number is this at least */
    size_t first_node;   /* in the front's nodes */
    struct srun_node manager;
    ProtobufCBinaryData whole; /* all layouts as one; empty: there is one component */

    StepCreated *created;
    StepLayout *layout;      /* of this component */
    struct srun_node *nodes; /* of all; managers without tasks last */
    size_t node_count;
    size_t task_nodes; /* of these have tasks */
    uint32_t ntasks;   /* of all */
    struct srun_task *tasks;
    StepProgram **programs;
    size_t program_count;

    char *bcast;     /* where the program was copied to; %N is the node. NULL: it was not */
    bool bcast_libs; /* and what it needs, beside it */
    struct srun_sink sinks[2];
    struct user *user; /* whose name is in names of files */
    int label_width;
    const char *input_pattern; /* each task reads a file of its own; NULL: they do not */
    int input_fd;              /* -1: no more */
    bool has_input_task;
    uint32_t input_task;
    uint8_t *input;       /* what some node may have to be sent again */
    size_t input_len;     /* bytes of it */
    uint64_t input_first; /* offset of the first */
    bool input_eof;

    uint32_t exited;
    bool launch_failed; /* on a node: tasks that ran there already were killed */
    int highest, highest_status;
    int said_status; /* of the tasks that were last said to have ended */
    bool killing, aborted, killed_by_9, failed;
    bool output_lost; /* said once */
    JobState kill_why;
    unsigned kill_wait_s;
    unsigned site_kill_wait_s; /* between SIGTERM and SIGKILL, as the site has it */
    bool mpi_aborted;          /* by a task */
    uint32_t mpi_code;         /* then: our exit code */
    size_t relay_kept;         /* bytes of all nodes' relays */
    struct srun_x11 *x11;      /* --x11; NULL: not */
    const char *avoid_ports;   /* that a node said are taken */
    const char *mpi;           /* none, pmi2 or pmix; NULL: as the site says */
    int64_t asked_us;          /* when the controller was last asked whether the job lives */
    int64_t last_interrupt_us, last_sent_us, first_exit_us, give_up_us;
};

/* srun_prog.c */
char *srun_find_program(const char *name, const char *work_dir, struct arena *arena);
/* The programs of `ntasks` tasks from a --multi-prog file. */
int srun_read_programs(const char *path, const char *work_dir, uint32_t ntasks, char **args,
                       size_t arg_count, struct arena *arena, StepProgram ***out, size_t *count,
                       struct err *err);

/* srun_het.c */
/* Reads the command line; part_count is then set. 0, or the exit code after a complaint. */
int srun_read_parts(struct srun *srun, int argc, char **argv);
int srun_find_jobs(struct srun *srun);    /* which job each component is, inside an allocation */
int srun_create_all(struct srun *srun);   /* all of them or none; 0, or the exit code */
void srun_share_parts(struct srun *srun); /* what only the front has is told to the others */
void srun_free_parts(struct srun *srun);

/* srun_step.c */
/* 0, or the exit code after a complaint; SRUN_PORTS_BUSY: without one. */
int srun_create_once(struct srun *srun);
void srun_set_nodes(struct srun *srun); /* after all were created */
int srun_launch(struct srun *srun);
void srun_close(struct srun *srun);
struct client *srun_connect(struct srun *srun, const struct srun_node *node, struct err *err);
struct client_stream *srun_open_stream(struct client *client, RunStepIn *first, struct err *err);
/* Where the job's manager is now; false: nobody says. */
bool srun_find_manager(struct srun *srun, struct srun_node *node, struct err *err);

/* srun_ports.c */
int srun_create(struct srun *srun); /* 0, or the exit code after a complaint */

/* srun_bcast.c */
int srun_bcast(struct srun *srun); /* 0, or the exit code after a complaint */
/* The program and the environment for this node. */
void srun_bcast_use(struct srun *srun, const char *node);

/* srun_hook.c: 0, or the exit code after a complaint; the command's own, or the site's */
int srun_hook(struct srun *srun, bool epilog);

/* srun_share.c */
void srun_fill_share(struct srun *srun, StepRequest *request);
void srun_fill_bind(struct srun *srun, StepLaunch *launch);
/*
 * --distribution=arbitrary, or SLURM_HOSTFILE alone: the node of each task is read, and what a job of our
 * own asks for follows from it. 0, or the exit code after a complaint.
 */
int srun_read_hosts(struct srun *srun);
void srun_fill_hosts(struct srun *srun, StepRequest *request);

/* srun_loop.c */
int srun_loop(struct srun *srun);   /* the exit code of the step */
void srun_leave(struct srun *srun); /* the share of the allocation is given back */
/* srun_verbose.c: what -v tells; options that make no sense here (1: it was said). */
void srun_verbose_allocation(struct srun *srun);
void srun_verbose_launch(struct srun *srun, const struct srun_node *node);
int srun_check_options(struct srun *srun);
/* Of the numbers of nodes that a step asks for, the one it takes of this allocation. */
uint32_t srun_size(const struct srun *srun);

const char *srun_step_name(const struct srun *srun);
void srun_add_ranges(struct str *out, const uint32_t *tasks, size_t count);

/* srun_node.c */
void srun_serve_node(struct srun *srun, struct srun_node *node);
/* Says which tasks have ended; all of them, or those whose time has come. When the next is due, or 0. */
int64_t srun_say_exits(struct srun *srun, bool all);
/* What to do with what a node says. */
struct srun_listener {
    void (*message)(struct srun *srun, struct srun_node *node, const RunStepOut *out, void *data);
    void (*lost)(struct srun *srun, struct srun_node *node, const struct err *err); /* frees it */
    void *data;
};
/* Takes all that has come. False: nothing; try again after true, for what followed from it. */
bool srun_take(struct srun *srun, struct srun_node *node, const struct srun_listener *listener,
               struct arena *arena);
/* Connects again where that is due; returns when the next try is, 0: none. */
int64_t srun_reconnect(struct srun *srun);
/* May the stream go on when it is made again? */
bool srun_may_return(enum err_code code);

/* srun_in.c */
size_t srun_input_room(const struct srun *srun);
void srun_read_input(struct srun *srun);
/* Sends a node what it may have and has not. */
void srun_send_input(struct srun *srun, struct srun_node *node);

/* srun_relay.c */
int srun_set_mpi(struct srun *srun); /* 0, or the exit code after a complaint */
void srun_list_mpi(void);
/* What waits for a node, as far as it may be sent. */
void srun_send_relays(struct srun_node *node);
void srun_on_relay(struct srun *srun, struct srun_node *node, const StepRelay *relay);
/* It has taken those up to `number`; `again`: what was on its way is lost. */
void srun_on_relayed(struct srun *srun, struct srun_node *node, uint64_t number, bool again);
void srun_on_abort(struct srun *srun, struct srun_node *node, const StepAbort *words);
void srun_drop_relays(struct srun *srun, struct srun_node *node);

/* srun_x11.c */
int srun_x11_ask(struct srun *srun);   /* before anything: 0, or the exit code after a complaint */
int srun_x11_start(struct srun *srun); /* when the step's nodes are known; the same */
/* What the tasks of a node find: DISPLAY and XAUTHORITY. */
void srun_x11_use(struct srun *srun, size_t node, StepLaunch *launch);
void srun_x11_stop(struct srun *srun);

/* srun_signal.c */
extern volatile int srun_interrupted; /* while waiting for an allocation or a step */
extern int srun_signal_pipe[2];
int srun_catch_signals(struct srun *srun); /* 0, or the exit code after a complaint */
void srun_serve_signals(struct srun *srun);
void srun_send_all(struct srun *srun, RunStepIn *in);
void srun_send_signal(struct srun *srun, int sig, JobState why, unsigned wait_s);
void srun_end_step(struct srun *srun, JobState why, unsigned wait_s);
void srun_show_tasks(struct srun *srun);

/* srun_out.c */
/* The name of a file for a task: %t, %A_%a, %x. */
int srun_expand(struct srun *srun, const char *pattern, uint32_t task, struct str *out,
                struct err *err);
bool srun_differs(const char *name);    /* between tasks: it has %t, %n or %N */
int srun_open_sinks(struct srun *srun); /* 0, or the exit code after a complaint */
void srun_output(struct srun *srun, const StepData *data);
void srun_flush_task(struct srun *srun, uint32_t task);
void srun_close_sinks(struct srun *srun);

#endif
