/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_priv.h - what the ctl_*.c files share
 */
#ifndef SPURCTLD_CTL_PRIV_H
#define SPURCTLD_CTL_PRIV_H

#include "base/bitset.h"
#include "base/map.h"
#include "core/config_change.h"
#include "core/msg.h"
#include "core/query.h"
#include "proto/journal.pb-c.h"
#include "sched/sched.h"
#include "spurctld/ctl/ctl.h"

/*
 * Called when the command was applied (err NULL, with its events) or could not be made durable.
 * The events are valid during the call.
 */
typedef void ctl_done_fn(struct ctl *ctl, void *arg, const struct events *events,
                         const struct err *err);

struct proposal {
    ctl_done_fn *done; /* may be NULL */
    void *arg;
    bool own; /* nobody outside waits for it */
};

enum { TELL_CONTROLLERS = 1, TELL_CONFIG = 2 };

/* What the leader knows of an agent beyond the state; lost and learnt again with leadership. */
struct agent {
    char *name;
    uint64_t session;  /* 0: not connected */
    bool welcomed;     /* hello was committed and answered */
    int64_t seen_us;   /* last message; monotonic, as the next */
    int64_t lost_us;   /* when the connection ended, 0 while there is one */
    int64_t heard_us;  /* since when it could say everything: welcomed, and we listened */
    bool host_answers; /* the connection was closed, not silent */
    bool down_proposed, loss_proposed, lease_proposed;
    uint32_t fence;    /* that runs or ran for this silence; 0: none; ctl_fence.c */
    uint32_t lease_ms; /* as the welcome said */
    unsigned level;    /* feature level that its build knows; 0: it has not said hello */
    unsigned tell;     /* TELL_*: news that it has yet to hear */
    uint32_t load_centi;
    uint64_t free_mem_mb;
    NodeHello *hello; /* waits for its CmdNodeUp to be applied */
};

/* ctl_fence.c: a program makes sure that a silent node runs nothing; how it ended, by its number */
#define CTL_FENCE "fence_program"
void ctl_fence_start(struct ctl *ctl, struct agent *agent);
void ctl_fence_done(struct ctl *ctl, uint32_t fence, int exit_status);

/* Grants of one job that have not all been acknowledged. */
struct granting {
    uint32_t job_id, attempt;
    struct bitset acked; /* by part */
    size_t acks;         /* how many of them */
    bool ready_proposed;
    bool own;          /* made at the start, not by a leader that came later */
    bool unsure;       /* the clock was set or the process stood still: times cannot be compared */
    int64_t sent_us[]; /* by part: when the grant was first sent, monotonic; 0: not yet */
};

/* What all nodes of a job are to hear; ctl_fanout.c. */
enum fanout_what {
    WIDE_GRANT,
    WIDE_REVOKE,
    WIDE_SMALLER, /* it has fewer nodes: those that it gave up end, the others hear which are left */
    WIDE_MESSAGE,
};
struct ctl_fanout {
    uint32_t job_id, attempt;
    enum fanout_what what;
    size_t next;       /* the part that hears it next */
    struct str common; /* of all grants, packed; empty: not yet */
    uint32_t version;  /* of the grants that it was packed for */
    CtlMessage message;
    union {
        SignalJob signal;
        FreezeJob freeze;
        UpdateLimit limit;
    } about;
    size_t answered, lost; /* grants that were; of those, that are not waited for */
    int64_t moved_us;      /* when that was another */
};

struct ctl_counts {
    uint64_t submitted, started, completed, cancelled, failed;
    uint64_t batches, commands, plans, plan_us_total, plan_us_max, plan_us_last;
    uint64_t turns, turn_us_max, turn_cpu_us_max, turns_long; /* of the loop */
    uint64_t turn_commands, turn_plan_us;                     /* before the present one */
    uint64_t plan_starts, plan_backfilled, plan_queue_sum;
    int64_t start_us, since_us, plan_last_us;
};

struct watcher {
    uint32_t job_id;
    struct ctl_ask *ask;
    bool hold; /* by the client of an allocation; see ctl_alloc.c */
    bool ends; /* wants to know of ends alone */
};

/* Who reads all changes; ctl_changes.c. */
struct change_reader {
    struct ctl_ask *ask;
    bool behind, gone;
};

/* An allocation whose client has gone. */
struct orphan {
    uint32_t job_id;
    int64_t at_us; /* when it is cancelled; monotonic */
};

enum { CTL_STEP_KEY_BYTES = 32 };

/* A reservation that holds, as the leader saw it last. */
struct resv_seen {
    char *name;
    int64_t start_us;
    bool here; /* while we look: it still holds */
};

struct node_listing;
struct listing; /* a ListJobs stream that waits for its reader */
struct reading; /* a read that waits for the log's word */

struct ctl {
    struct ctl_io io;
    void (*settle)(struct ctl *ctl); /* ctl_settle(), for what is below it */
    char *name, *address;
    uint8_t cluster_id[16];
    uint8_t verify_key[32];
    bool has_verify_key;
    uint8_t step_secret[CTL_STEP_KEY_BYTES];
    unsigned ids_per_command, wide_from;
    uint64_t journaled;
    struct str journal;                     /* of the entry that is applied */
    struct str journal_record, journal_job; /* while it is written */
    struct state *state;
    struct sched *sched; /* NULL while recovering */
    struct log *log;
    bool leading, must_lead, lead_proposed;
    bool several;
    int64_t leading_us; /* since when; monotonic */
    Config *config;     /* of this process's file, until proposed; may be NULL */
    bool config_reconfigure;
    unsigned level_rising; /* the feature level that was proposed; 0: none */

    /* ctl_propose.c, ctl_apply.c */
    VEC(struct proposal) queue; /* what the log has taken and not answered, oldest at queue_at */
    size_t queue_at;
    bool unflushed, refused;
    int64_t last_stamp_us;
    int64_t clock_wall_us, clock_mono_us; /* when the clock was last looked at */
    int64_t skipped_us; /* by which it was set forward, until a command that says so is applied */
    struct log_walk applying; /* how far the present batch is applied */
    struct opened {
        uint64_t index;
        size_t len;
        Command *command; /* of apply_arena; NULL: there is none */
        bool fresh;       /* it was read in this turn; ctl_apply.c (5) */
        bool applied;     /* and ctl->events have what happened, which is not handled yet; (5) */
        bool own;         /* somebody here proposed it */
    } opened;             /* the next one */
    struct events events;
    struct arena apply_arena;
    struct str packed;
    struct {
        uint8_t digest[LOG_DIGEST_BYTES];
        struct str bytes;
        bool is_whole;
    } launched; /* the payload that was sent last */

    /* ctl_plan.c */
    bool plan_wanted, plan_more;
    unsigned starts_in_flight;
    unsigned due_in_flight; /* CmdTime because something is due */
    unsigned plan_budget;   /* of the next slice; see ctl_plan.c */
    unsigned plan_put_off;  /* so often in a row */
    size_t idle_slices;     /* that wanted to go on and started nothing */

    /* ctl_nodes.c */
    struct map agents;             /* by node name */
    struct map sessions;           /* session id → agent */
    VEC(struct agent *) telling;   /* those with news, ctl_hello.c */
    struct map granting;           /* job id → struct granting */
    VEC(struct ctl_fanout *) wide; /* what nodes of wide jobs have yet to hear; ctl_fanout.c */
    struct {
        uint32_t job_id;
        size_t part;
    } last_part;           /* that was looked for: the next one is often behind it */
    int64_t awake_us;      /* when anything was last heard or done */
    int64_t late_until_us; /* what is asked until then may have waited here for long */
    int64_t nodes_due_us;  /* when CTL_TIMER_NODES is due, monotonic; 0: never */

    uint32_t fences;                    /* that were begun */
    VEC(struct resv_seen) reservations; /* that hold; ctl_resv.c */
    struct map site; /* job id → attempt: a program of the site runs for it; ctl_hooks.c */

    struct {
        uint32_t array;
        int64_t at_us;
    } requeue_mailed; /* the last one: ctl_mail.c */

    struct map steps; /* job id → struct job_steps: what runs, as nodes say */

    VEC(struct watcher) watchers;
    VEC(struct change_reader) change_readers;
    VEC(struct orphan) orphans;
    VEC(struct listing *) listings;
    VEC(struct node_listing *) node_listings; /* ctl_inventory.c */
    uint64_t configs;               /* that the cluster has had; nodes may have other numbers */
    VEC(struct ctl_bulk *) finders; /* ctl_bulk.c */
    VEC(struct reading *) readings;
    VEC(struct ctl_forked *) asides;
    bool is_aside; /* this is a copy of the process, or what is asked is not handed to one */
    struct ctl_counts counts;
};

static inline int64_t ctl_now(const struct ctl *ctl)
{
    return ctl->io.now_us(ctl->io.ctx);
}

static inline int64_t ctl_mono(const struct ctl *ctl)
{
    return ctl->io.mono_us(ctl->io.ctx);
}

/* Slices of different kinds come together in one turn of the loop: the later ones look at this. */
static inline int64_t ctl_busy_us(const struct ctl *ctl)
{
    return ctl->io.busy_us ? ctl->io.busy_us(ctl->io.ctx) : 0;
}

/* ---- ctl_propose.c ---- */

/* Gives the command to the log; `done` comes after it is applied. Stamps time_us. */
void ctl_propose(struct ctl *ctl, Command *command, ctl_done_fn *done, void *arg);
/* The same, when arg is memory that done frees: it is called at the end of ctl too if it was not until then. */
void ctl_propose_own(struct ctl *ctl, Command *command, ctl_done_fn *done, void *arg);
void ctl_proposals_gone(struct ctl *ctl);
void ctl_propose_payloads(struct ctl *ctl, Command *command, const struct log_payload *payloads,
                          uint32_t count, ctl_done_fn *done, void *arg);
/* As ctl_propose, for those outside of ctl. */
void ctl_propose_agreed(struct ctl *ctl, Command *command, ctl_agreed_fn *done, void *arg);
/* The command with its request id and uid from the asker. */
void ctl_propose_ask(struct ctl *ctl, struct ctl_ask *ask, Command *command, ctl_done_fn *done,
                     void *arg);
void ctl_stamp_ask(const struct ctl_ask *ask, Command *command);
/* Was this request done before? Then what was answered. */
bool ctl_seen(const struct ctl *ctl, const struct ctl_ask *ask, struct request_seen *out);
/* The EVENT_ANSWER of a command. */
const struct event *ctl_answer(const struct events *events);
/* Answers an ask with a DoneReply, or with the error; arg is the ask. */
void ctl_done_reply(struct ctl *ctl, void *arg, const struct events *events, const struct err *err);
/* Notices that the wall clock was set; called before anything is done by the time. */
void ctl_look_at_clock(struct ctl *ctl);
void ctl_arm_due(struct ctl *ctl);
void ctl_propose_lead(struct ctl *ctl);

/* ---- ctl_apply.c ---- */
extern const struct log_owner ctl_log_owner;

/* ---- ctl_apply.c ---- */
/* What follows from the command that was applied last, unless that is done; see ctl_enter(). */
void ctl_settle(struct ctl *ctl);

/* ---- ctl_level.c ---- */
/* The feature level of a command that is proposed now. */
unsigned ctl_level(const struct ctl *ctl);
/* It was applied, or a state was restored: what follows from the level. */
void ctl_level_changed(struct ctl *ctl);
/* *fitted: what is to be proposed instead, to be freed; NULL: the command itself. */
int ctl_fit_level(struct ctl *ctl, const Command *command, Command **fitted, struct err *err);
void ctl_fit_config(struct ctl *ctl, Config *config);

/* ---- ctl_effects.c ---- */
void ctl_effect(struct ctl *ctl, const struct event *event);
/* What all grants of the job have in common is packed into `common` when that is empty; NULL: for this one alone. */
void ctl_send_grant(struct ctl *ctl, const struct job *job, size_t part, struct str *common);
/* If the job has the node of that part and the node is connected. */
void ctl_send_part(struct ctl *ctl, const struct job *job, size_t part, CtlMessage *message);
void ctl_send_launch(struct ctl *ctl, const struct job *job);
void ctl_send_reboot(struct ctl *ctl, const struct node *node); /* if it is to be */
void ctl_send_condition(struct ctl *ctl, const struct job *job, size_t part);
bool ctl_launches_with_grant(const struct job *job);
/* Are the nodes of all components of a heterogeneous job ready? Of others: yes. */
bool ctl_may_launch(const struct ctl *ctl, const struct job *job);
uint32_t ctl_grant_version(const struct job *job);
void ctl_send_revoke(struct ctl *ctl, const struct job *job, size_t part);
void ctl_finish_lost(struct ctl *ctl, const struct job *job, const char *node, const char *why,
                     bool requeue, bool hold);
void ctl_watchers_notify(struct ctl *ctl, const struct job *job);
/* ctl_changes.c: tells readers what the last command changed; a reader has gone. */
void ctl_changes_notify(struct ctl *ctl);
void ctl_changes_gone(struct ctl *ctl, const struct ctl_ask *ask);

/* ---- ctl_alloc.c ---- */
void ctl_step_key(const struct ctl *ctl, const struct job *job, const char *node,
                  uint8_t out[CTL_STEP_KEY_BYTES]);
void ctl_hold_lost(struct ctl *ctl, uint32_t job_id);
void ctl_hold_timer(struct ctl *ctl);
void ctl_hold_stalled(struct ctl *ctl, int64_t us);

/* ---- ctl_steps.c ---- */
void ctl_steps_report(struct ctl *ctl, struct agent *agent, const StepsReport *report);
void ctl_steps_gone(struct ctl *ctl, uint32_t job_id); /* the job has ended, or begins anew */
void ctl_steps_done(struct ctl *ctl);

/* ---- ctl_journal.c ---- */
void ctl_journal(struct ctl *ctl, uint64_t index, const Command *command);
/* Adds a record to the entry that is being put together. */
void ctl_journal_record(struct ctl *ctl, const JournalRecord *record);

/* ---- ctl_journal_cluster.c ---- */
/* Adds what the command meant for nodes, capacity and reservations; false: nothing. */
bool ctl_journal_cluster(struct ctl *ctl, const Command *command);

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

/* ---- ctl_hooks.c ---- */
void ctl_site_done(struct ctl *ctl, const char *what, uint32_t job_id, uint32_t attempt,
                   int exit_status);
void ctl_site(struct ctl *ctl, const struct event *event);
void ctl_site_leading(struct ctl *ctl); /* what another leader may have left undone */
void ctl_site_again(struct ctl *ctl);   /* what we could not say */

/* ---- ctl_nodes.c ---- */
struct agent *ctl_agent(struct ctl *ctl, const char *node); /* NULL when never seen */
void ctl_send(struct ctl *ctl, struct agent *agent, CtlMessage *message);
/*
 * At the beginning of whatever may act by the time: notices that this process did not run for a
 * while. That time did not pass: nobody was silent, and no limit ran.
 */
void ctl_paused(struct ctl *ctl);
void ctl_arm_paused(struct ctl *ctl);
/* Time passed elsewhere that did not pass here. */
void ctl_stopped_for(struct ctl *ctl, int64_t us);
/* ERR_NOT_LEADER when the command is of somebody who may have asked long ago. */
int ctl_check_late(const struct ctl *ctl, const Command *command, struct err *err);
/* ctl_nodes.c: what the stop means for agents that were not heard meanwhile. */
void ctl_nodes_stalled(struct ctl *ctl, int64_t now, int64_t before);
/* Proposes a CmdTime, which leaves out limits of jobs whose nodes may have more to say; with the id of a
   request (or NULL) that has nothing else to say. */
void ctl_propose_time(struct ctl *ctl, const struct ctl_ask *ask, ctl_done_fn *done, void *arg);
void ctl_nodes_open(struct ctl *ctl, uint64_t session, const char *node);
void ctl_nodes_closed(struct ctl *ctl, uint64_t session, bool host_answers);
void ctl_nodes_leading(struct ctl *ctl);
void ctl_nodes_following(struct ctl *ctl);
void ctl_reconcile(struct ctl *ctl); /* asks every agent to say hello again */
void ctl_nodes_timer(struct ctl *ctl);
uint32_t ctl_lease_ms(const struct ctl *ctl); /* 0: nodes have none */

/* ---- ctl_hello.c ---- */
void ctl_on_found(struct ctl *ctl, struct agent *agent, const NodeInventory *found);
void ctl_on_hello(struct ctl *ctl, struct agent *agent, const NodeHello *hello);
/* ctl_config.c */
void ctl_config_leading(struct ctl *ctl);            /* proposes what was read before */
void ctl_forget_config(struct ctl *ctl);             /* unless it is no longer what counts */
void ctl_nodes_controllers(struct ctl *ctl);         /* tells every agent where they are */
void ctl_nodes_config(struct ctl *ctl);              /* tells every agent */
void ctl_tell(struct ctl *ctl, struct agent *agent); /* what it has yet to hear, now */
void ctl_tell_timer(struct ctl *ctl);

/* ---- ctl_reports.c ---- */
void ctl_on_message(struct ctl *ctl, uint64_t session, const NodeMessage *message);
size_t ctl_part_of(struct ctl *ctl, const struct job *job,
                   const char *node); /* its count when it has none there */
void ctl_propose_release(struct ctl *ctl, uint32_t job_id, uint32_t attempt, const char *node);

/* ---- ctl_grants.c ---- */
struct granting *ctl_granting_start(struct ctl *ctl, const struct job *job);
void ctl_granting_end(struct ctl *ctl, uint32_t job_id);
void ctl_granting_sent(struct ctl *ctl, const struct job *job, size_t part);
void ctl_granting_unsure(struct ctl *ctl);
/*
 * The node's jobs of which nothing can have come to it: their grants were not sent, or sent after it
 * was started at `boot_us` (monotonic, INT64_MIN: it was not) and cannot have reached what ran
 * before. To be freed.
 */
uint32_t *ctl_unstarted(struct ctl *ctl, const struct node *node, int64_t boot_us, size_t *count);
void ctl_granting_ack(struct ctl *ctl, const struct job *job, const char *node);
size_t ctl_granting_acked(struct ctl *ctl, uint32_t job_id); /* how many nodes */

/* ---- ctl_fanout.c ---- */

void ctl_fanout_tell(struct ctl *ctl, const struct job *job, enum fanout_what what,
                     const CtlMessage *message);
void ctl_fanout_forget(struct ctl *ctl, uint32_t job_id);
void ctl_fanout_timer(struct ctl *ctl);
void ctl_fanout_done(struct ctl *ctl);

/* ---- ctl_plan.c ---- */
void ctl_plan_kick(struct ctl *ctl);
void ctl_plan_timer(struct ctl *ctl);

/* ---- ctl_forked.c ---- */
/* True: it was handed over, or refused; `handler` is called again where it may take long. */
bool ctl_forked(struct ctl *ctl, struct ctl_ask *ask, ctl_handler *handler,
                const ProtobufCMessage *request, size_t components);
void ctl_forked_gone(struct ctl *ctl, const struct ctl_ask *ask);

/* ---- ctl_read.c ---- */
void ctl_read_gone(struct ctl *ctl, const struct ctl_ask *ask);

/* ---- ctl_query.c ---- */
void ctl_query_gone(struct ctl *ctl, const struct ctl_ask *ask);
void ctl_listings_gone(struct ctl *ctl);
void ctl_lists_timer(struct ctl *ctl);
void ctl_bulk_timer(struct ctl *ctl);
void ctl_bulk_gone(struct ctl *ctl);
/* The request id of the n-th command of a request: 0 is its own. */
void ctl_place_id(const uint8_t id[16], size_t place, uint8_t out[16]);

/* ---- ctl_inventory.c ---- */
void ctl_inventory_timer(struct ctl *ctl);
void ctl_inventory_gone(struct ctl *ctl);

/* ---- objects ---- */
/* May the asker change this job? */
bool ctl_may_change(const struct ctl_ask *ask, const struct job *job);
bool ctl_may_see_payload(const struct ctl_ask *ask, const struct job *job);
void ctl_fail(struct ctl_ask *ask, enum err_code code);

/* ---- ctl_private.c ---- */
/* Does the configuration hide `what` ("jobs", "nodes", …) of others from the asker? */
bool ctl_hides(const struct ctl *ctl, const struct ctl_ask *ask, const char *what);
bool ctl_may_see_job(const struct ctl *ctl, const struct ctl_ask *ask, const struct job *job);
bool ctl_may_see_reservation(const struct ctl *ctl, const struct ctl_ask *ask,
                             const struct reservation *resv);

/* ---- ctl_check.c ---- */
/* May this person ask for it at submission: its priority and nice value. */
int ctl_check_asked(const struct ctl_who *who, const JobSpec *spec, struct err *err);
/* Refuses control characters in names and comments, and addresses that could be options of the mail program. */
int ctl_check_texts(const JobSpec *spec, struct err *err);
int ctl_check_text(const char *name, const char *text, struct err *err); /* NULL is nothing */

#define CTL_COMMAND(member, message)                                                        \
    {                                                                                       \
        PROTOBUF_C_MESSAGE_INIT(&command__descriptor), .what_case = COMMAND__WHAT_##member, \
                                                       message                              \
    }

#endif
