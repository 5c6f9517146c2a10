/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proposals.h - commands into the log, and out of it into the state
 *
 * ctl_propose.c stamps a command and gives it to the log; ctl_apply.c applies what comes back and answers whoever
 * proposed it; ctl_level.c keeps from the log what other controllers could not read.
 */
#ifndef SPURCTLD_CTL_PROPOSALS_H
#define SPURCTLD_CTL_PROPOSALS_H

#include "base/vec.h"
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

/* What was proposed. */
struct ctl_proposals {
    VEC(struct proposal) queue; /* what the log has taken and not answered, oldest at `taken` */
    size_t taken;
    bool unflushed, refused;
    int64_t last_stamp_us;
    int64_t clock_wall_us, clock_mono_us; /* when the clock was last looked at */
    int64_t skipped_us; /* by which it was set forward, until a command that says so is applied */
    struct str packed;
};

/* What is applied. */
struct ctl_applying {
    struct log_walk walk; /* how far the present batch is applied */
    struct opened {
        uint64_t index;
        size_t len;
        Command *command; /* of the arena; NULL: there is none */
        bool fresh;       /* it was read in this turn; ctl_apply.c (5) */
        bool applied;     /* and `events` have what happened, which is not handled yet; (5) */
        bool own;         /* somebody here proposed it */
    } opened;             /* the next one */
    struct events events;
    struct arena arena;
};

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

#define CTL_COMMAND(member, message)                                                        \
    {                                                                                       \
        PROTOBUF_C_MESSAGE_INIT(&command__descriptor), .what_case = COMMAND__WHAT_##member, \
                                                       message                              \
    }

#endif
