/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl.h - the controller's logic, without a loop, a socket or a file
 *
 * Whoever runs it gives it a `struct ctl_io` and tells it what happened: somebody asks, a batch is
 * committed, a node spoke, a timer fired. main.c and serve.c bind it to libuv, sim/ to simulated
 * time. Nothing here blocks and nothing here polls.
 *
 *   ctl.c          its life, its timers, and the way in
 *   ctl_propose.c  commands into the log; ctl_apply.c  committed ones into the state, and answers
 *   ctl_effects.c  what the leader does because of what the cluster decided
 *   ctl_nodes.c    agents and their silence; ctl_hello.c, ctl_reports.c, ctl_grants.c  what they say
 *   ctl_plan.c     feeds the planner and proposes what it decides
 *   ctl_alloc.c    allocations without a script
 *   ctl_submit.c ctl_jobs.c ctl_bulk.c ctl_query.c ctl_inventory.c ctl_admin.c   what people ask
 *   ctl_read.c     who may answer them
 *   ctl_forked.c    those that take long, by a copy of the process
 *   ctl_mail.c ctl_hooks.c ctl_fence.c ctl_resv.c   programs of the site; ctl_env.c  what those are told of a job
 *   ctl_triggers.c strigger; ctl_cron.c  scrontab
 *   ctl_level.c    the feature level, and what may be proposed below it
 *   ctl_marks.c    whether other controllers have the same state (agree.h), and records that were damaged
 *   ctl_steps.c    steps, as nodes report them; ctl_journal.c  what accounting will read
 */
#ifndef SPURCTLD_CTL_H
#define SPURCTLD_CTL_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "core/core.h"
#include "log/log.h"
#include "proto/agent.pb-c.h"
#include "proto/command.pb-c.h"
#include "proto/controller.pb-c.h"

struct ctl;

enum ctl_timer {
    CTL_TIMER_DUE,    /* core_next_due(): begin times, deadlines, forgetting */
    CTL_TIMER_PLAN,   /* the planner has more to look at, or wants to look again */
    CTL_TIMER_NODES,  /* the next node that may have been silent for too long */
    CTL_TIMER_RETRY,  /* the disk refused a batch: see whether it takes one now */
    CTL_TIMER_HOLD,   /* an allocation whose client is gone */
    CTL_TIMER_AWAKE,  /* shows that this process runs: see ctl_paused.c */
    CTL_TIMER_LISTS,  /* lists that are not finished, and jobs that a filter has yet to find */
    CTL_TIMER_TELL,   /* agents that have yet to hear what all are told */
    CTL_TIMER_STEPS,  /* steps that began, for the journal */
    CTL_TIMER_REHASH, /* some records are compared with their hashes */
    CTL_TIMER_WIDE,   /* nodes of wide jobs that have yet to hear what is due */
    CTL_TIMERS
};

enum { CTL_HOOK_NO_LIMIT_S = 65534 }; /* Slurm's number for that */
/* A program that runs beside the loop: mail, PrologSlurmctld, EpilogSlurmctld, fencing. */
struct ctl_hook_user {
    uint32_t uid, gid;
    const uint32_t *gids;
    size_t gid_count;
};
struct ctl_hook {
    const char *what; /* "mail": for the log and ctl_hook_done() */
    char *const *argv;
    char *const *env;
    const char *input;
    unsigned timeout_s;
    bool must_run; /* something waits for it; others may be left out when there are too many */
    uint32_t job_id, attempt;
    const struct ctl_hook_user *user; /* whose program it is; NULL: the controller's own */
    uint32_t series; /* programs of one series run one after another, in order; 0: of none */
};

struct ctl_forked;

struct ctl_io {
    void *ctx;
    int64_t (*now_us)(void *ctx);  /* wall time: for stamps; it may jump */
    int64_t (*mono_us)(void *ctx); /* monotonic: for how long something takes or is silent */
    /* What this turn of the loop has taken until now. NULL: it does not matter. */
    int64_t (*busy_us)(void *ctx);
    /* ctl_timer() is to be called at that time; each call replaces the one before; 0: never. */
    void (*timer)(void *ctx, enum ctl_timer timer, int64_t at_us);
    /* To the agent on that session; what cannot be sent is dropped, the session then ends. */
    void (*send)(void *ctx, uint64_t session, const CtlMessage *message);
    void (*hang_up)(void *ctx, uint64_t session);
    void (*digest)(void *ctx, const void *bytes, size_t len, uint8_t out[32]); /* SHA-256 */
    /* Runs it; ctl_hook_done() says how it ended. */
    void (*hook)(void *ctx, const struct ctl_hook *hook);
    /* Adds to `reply` what the process counted, in `arena`; `reset` forgets it. NULL: nothing is. */
    void (*diag)(void *ctx, DiagReply *reply, bool reset, struct arena *arena);
    /*
     * Forks a child that calls ctl_forked_work() and hands what it gets to the parent, which calls
     * ctl_forked_done() with that, or with nothing when the child failed. NULL: there are none.
     */
    void (*aside)(void *ctx, struct ctl_forked *aside);
    /* From any thread: ctl_poll() is to be called soon. */
    void (*wake)(void *ctx);
    /* This replica differs from the others, or the log is gone: the process must stop at once. */
    void (*fence)(void *ctx, const char *why);
    /* Several controllers: see log.h. NULL: there are none. */
    void (*need_snapshot)(void *ctx, uint64_t index);
    /*
     * The newest feature level that every other controller has said it knows; UINT32_MAX: there is no other;
     * 0: there may be others whom we cannot ask. NULL: they all know what we know.
     */
    unsigned (*peers_level)(void *ctx);
    /*
     * Asks every other controller that is heard for its marks: ctl_marks_heard() for each that answers, then
     * ctl_marks_asked(), within a second. NULL: there are no others.
     */
    void (*ask_marks)(void *ctx);
    /*
     * Our state is wrong: it is to be read again from the log and a snapshot of at most `agreed`; those after
     * it are to go. ctl_new() is then told where we stood. NULL: it cannot be.
     */
    void (*reload)(void *ctx, uint64_t agreed, const char *why);
    /* The feature level in force. NULL: nobody cares. */
    void (*level)(void *ctx, unsigned level);
    /* Tokens of a user that were issued up to this time are refused from now on. NULL: nobody cares. */
    void (*revoked)(void *ctx, int64_t issued_s);
    /* The list of controllers may have changed. NULL: nobody cares. */
    void (*controllers)(void *ctx);
    /*
     * What the entry meant for the journal, a packed JournalEntry; no bytes: nothing. Also while
     * recovering. NULL: there is no journal.
     */
    void (*journal)(void *ctx, uint64_t index, int64_t time_us, struct span bytes);
    /* The state is now that of a snapshot of this index. NULL: nobody cares. */
    void (*restored)(void *ctx, uint64_t index);
    /* While a state is read, every now and then: it has grown. NULL: nobody cares. */
    void (*grown)(void *ctx);
};

struct ctl_options {
    const char *name;           /* of this controller */
    const char *address;        /* where others reach it */
    const uint8_t *cluster_id;  /* 16 bytes for a new cluster */
    const uint8_t *verify_key;  /* 32 bytes: public key of the cluster's tokens, or NULL */
    const uint8_t *step_secret; /* 32 bytes that only controllers know, or NULL */
    bool several;               /* there are other controllers: nodes have leases */
    unsigned ids_per_command;   /* of a request about many jobs; 0: as many as is good */
    unsigned wide_from; /* jobs of more nodes tell them one by one; 0: as is good (ctl_fanout.c) */
    uint32_t uid;       /* that the process runs as */
    unsigned controllers; /* how many there are; 0: this one alone */
    /* The state is read again because it was wrong at this index; 0: it is not. */
    uint64_t reloaded;
    unsigned reloads;   /* how often in a row, without a quarter of an hour between two */
    uint64_t journaled; /* up to here the journal has what entries meant */
};

/*
 * Makes the log with `open`, which gets the owner's callbacks, and recovers the state from it.
 * Leads when the log says so. On failure nothing is left.
 */
typedef struct log *ctl_open_log(void *arg, const struct log_owner *owner, void *owner_ctx,
                                 struct err *err);
struct ctl *ctl_new(const struct ctl_io *io, const struct ctl_options *options, ctl_open_log *open,
                    void *open_arg, struct err *err);
void ctl_free(struct ctl *ctl);
const struct state *ctl_state(const struct ctl *ctl);
struct log *ctl_log(struct ctl *ctl);
/* Nothing that was proposed still waits. */
bool ctl_is_idle(const struct ctl *ctl);
/* Lets go of the log and keeps the state; only ctl_state() and ctl_free() may follow. */
void ctl_close_log(struct ctl *ctl);
bool ctl_is_leading(const struct ctl *ctl);

/* What was proposed is agreed and applied (err is NULL), or why not. May be NULL. */
typedef void ctl_agreed_fn(void *arg, const struct err *err);

/* The configuration of this process; proposed when the cluster has another and this one leads. */
void ctl_set_config(struct ctl *ctl, const Config *config, bool reconfigure, ctl_agreed_fn *done,
                    void *arg);
/*
 * The same of what was worked out before (core/config_change.h). `done` hears of the first command that
 * was refused: ERR_TRANSITION when the cluster has another configuration by now. Not when we end.
 */
enum { CTL_CONFIG_SECTIONS = 200 }; /* that a command changes at most: a millisecond or two */
struct config_changes;
void ctl_change_config(struct ctl *ctl, const struct config_changes *changes, ctl_agreed_fn *done,
                       void *arg);
/* Proposes a new list of controllers. */
void ctl_propose_controllers(struct ctl *ctl, CmdControllers *list, ctl_agreed_fn *done, void *arg);

/* The node has this public key from now on. */
void ctl_propose_node_key(struct ctl *ctl, const char *node, const uint8_t key[32],
                          ctl_agreed_fn *done, void *arg);
/* What peers_level() says may be another: the level may rise. */
void ctl_look_at_level(struct ctl *ctl);

/*
 * The one gate: whoever has something to ask or to tell begins with this. Afterwards what the last command
 * means is known to all, and a stop of this process has been noticed. Timers, sessions, programs of the site
 * and the log's callbacks do it themselves; handlers are called by who did it.
 */
void ctl_enter(struct ctl *ctl);

/* ---- ctl_marks.c: do the others have the same state? ---- */
struct agree_said;
/* There are so many controllers, with this one. What others said is forgotten. */
void ctl_set_controllers(struct ctl *ctl, size_t count);
void ctl_marks_say(const struct ctl *ctl, struct agree_said *out);
void ctl_marks_heard(struct ctl *ctl, const char *peer, const struct agree_said *said);
void ctl_marks_asked(struct ctl *ctl);
/* A majority had this state at the index. */
bool ctl_is_confirmed(const struct ctl *ctl, uint64_t index);
/* Others differ from us, and we are not known to be right. */
bool ctl_is_in_doubt(const struct ctl *ctl);
/* A record is not what it was when it was changed: the state is read again. */
void ctl_is_damaged(struct ctl *ctl, const struct err *what);
/* An administrator says that this controller's state is the right one. */
void ctl_trust(struct ctl *ctl);

void ctl_poll(struct ctl *ctl);  /* the log has something to say */
void ctl_flush(struct ctl *ctl); /* at the end of a turn of the loop: what was proposed may go */
void ctl_timer(struct ctl *ctl, enum ctl_timer timer);
void ctl_hook_done(struct ctl *ctl, const char *what, uint32_t job_id, uint32_t attempt,
                   int exit_status);

/* ---- agents ---- */

/* Agents end, their jobs go on: what scontrol shutdown asks for. Only the leader has agents. */
void ctl_stop_agents(struct ctl *ctl, const char *reason);

/* A stream that an agent opened; `node` is who it proved to be. */
void ctl_session_open(struct ctl *ctl, uint64_t session, const char *node);
void ctl_session_message(struct ctl *ctl, uint64_t session, const NodeMessage *message);
/* `host_answers`: the other side closed it, so its kernel lives. */
void ctl_session_closed(struct ctl *ctl, uint64_t session, bool host_answers);

/* Which part of a running job manages its steps: the first node that it has (left). */
size_t ctl_manager(const struct job *job);

/* ---- people ---- */

/* Who asks, as rpc verified it and a look-up completed it. */
struct ctl_who {
    uint32_t uid, gid;
    const char *user, *group; /* names, or the numbers as text */
    const uint32_t *gids;
    size_t gid_count;
    bool is_admin, is_operator;
    const char *node;          /* not NULL: no person, but this node */
    const uint8_t *request_id; /* 16 bytes, or NULL */
};

/*
 * One request under way. It is answered exactly once: ops->reply or ops->fail; a stream by any
 * number of ops->send and then ops->end or ops->fail. Everything it points to is in its arena and
 * goes with the answer.
 */
struct ctl_ask {
    const struct ctl_who *who;
    struct arena *arena;
    const struct ctl_ask_ops *ops;
    void *ctx;  /* of the ops */
    void *data; /* of the handler */
};
struct ctl_ask_ops {
    void (*reply)(struct ctl_ask *ask, const ProtobufCMessage *reply);
    void (*reply_packed)(struct ctl_ask *ask, struct str *packed); /* takes the bytes */
    void (*fail)(struct ctl_ask *ask, const struct err *err);
    bool (*send)(struct ctl_ask *ask, struct str *packed); /* takes the bytes; false: gone */
    bool (*writable)(struct ctl_ask *ask);
    void (*end)(struct ctl_ask *ask);
};

typedef void ctl_handler(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *request);

ctl_handler ctl_submit, ctl_cancel, ctl_update_job, ctl_requeue, ctl_suspend;
ctl_handler ctl_list_shares;
ctl_handler ctl_list_jobs, ctl_get_job, ctl_watch_job, ctl_explain, ctl_job_access;
ctl_handler ctl_list_nodes, ctl_list_partitions, ctl_list_reservations, ctl_list_licenses;
ctl_handler ctl_list_steps, ctl_signal_step;
ctl_handler ctl_get_crontab, ctl_set_crontab;
ctl_handler ctl_set_trigger, ctl_clear_triggers, ctl_list_triggers;
ctl_handler ctl_update_node, ctl_update_partition, ctl_update_reservation;
ctl_handler ctl_who_am_i, ctl_watch_changes, ctl_ping, ctl_diag, ctl_finish_job, ctl_ack_journal,
    ctl_set_level, ctl_forget_node, ctl_revoke_tokens;

/*
 * Runs the handler once what it will say cannot be stale, or fails with ERR_NOT_LEADER. The request
 * lives as long as the ask. `stale`: at once, on any controller.
 */
void ctl_read(struct ctl *ctl, struct ctl_ask *ask, ctl_handler *handler,
              const ProtobufCMessage *request, bool stale);

/* What the state does not show has happened: enum trigger_type. */
void ctl_happened(struct ctl *ctl, unsigned types);

/* Accounting has everything up to `index`: it need not be kept for it. */
void ctl_journal_stored(struct ctl *ctl, uint64_t index);

/* ctl_accounts.c: accounts that spurdbd owns */
bool config_has_accounts(const Config *config);
bool ctl_file_owns_accounts(const struct ctl *ctl);
/* QOS, accounts and users of the state, to be freed with config__free_unpacked(). */
Config *ctl_accounts_copy(const struct ctl *ctl);
Config *ctl_accounts_kept(const struct ctl *ctl); /* NULL: the file has them */
/* `config` with the QOS, accounts and users of `accounts` instead of its own; to be freed. */
Config *config_with_accounts(const Config *config, const Config *accounts);
/* We lead, and all controllers know what a change of accounts is. */
bool ctl_can_take_accounts(const struct ctl *ctl);
/* Proposes that accounts are these, as of spurdbd's change of that number. */
void ctl_take_accounts(struct ctl *ctl, uint64_t number, const Config *accounts,
                       ctl_agreed_fn *done, void *arg);
/* Steps that run, of these jobs or (none named) of all; the caller frees the list, not what is in it. */
size_t ctl_running_steps(const struct ctl *ctl, const uint32_t *job_ids, size_t count,
                         StepInfo ***out);

/* A stream can take more, or its asker went away (then it is answered by ops->end). */
void ctl_ask_writable(struct ctl *ctl, struct ctl_ask *ask);
void ctl_ask_gone(struct ctl *ctl, struct ctl_ask *ask);

/* For io.aside. */
void ctl_forked_work(struct ctl_forked *aside, struct str *out);
void ctl_forked_done(struct ctl_forked *aside, struct span said);
bool ctl_forked_is_wanted(const struct ctl_forked *aside); /* somebody still waits for it */
void ctl_forked_drop(struct ctl_forked *aside);

/* The loop went round once: how long it was busy, its thread's share of that, and page faults. */
void ctl_count_turn(struct ctl *ctl, uint64_t us, uint64_t cpu_us, uint64_t faults);

#endif
