/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nodes.h - what the leader knows of agents beyond the state, and what it tells them
 *
 * ctl_nodes.c has sessions and silence, ctl_hello.c and ctl_reports.c what agents say, ctl_effects.c what they are told
 * because of what the cluster decided, ctl_grants.c who has heard it, ctl_fanout.c how all nodes of a wide job hear it,
 * ctl_steps.c which steps run, ctl_fence.c the program that ends a silent node, ctl_paused.c whether we were stopped.
 */
#ifndef SPURCTLD_CTL_NODES_H
#define SPURCTLD_CTL_NODES_H

#include "base/bitset.h"
#include "base/map.h"
#include "base/vec.h"
#include "core/query.h"
#include "spurctld/ctl/proposals.h"

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

/* Agents, and what they have yet to hear. */
struct ctl_nodes {
    struct map agents;             /* by node name */
    struct map sessions;           /* session id → agent */
    VEC(struct agent *) telling;   /* those with news, ctl_hello.c */
    struct map granting;           /* job id → struct granting */
    VEC(struct ctl_fanout *) wide; /* what nodes of wide jobs have yet to hear; ctl_fanout.c */
    struct {
        uint32_t job_id;
        size_t part;
    } last_part; /* that was looked for: the next one is often behind it */
    struct {
        uint8_t digest[LOG_DIGEST_BYTES];
        struct str bytes;
        bool is_whole;
    } launched;            /* the payload that was sent last */
    uint32_t fences;       /* that were begun */
    int64_t awake_us;      /* when anything was last heard or done */
    int64_t late_until_us; /* what is asked until then may have waited here for long */
    int64_t due_us;        /* when CTL_TIMER_NODES is due, monotonic; 0: never */
};

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

/* ---- ctl_steps.c ---- */
void ctl_steps_report(struct ctl *ctl, struct agent *agent, const StepsReport *report);
void ctl_steps_timer(struct ctl *ctl);
void ctl_steps_gone(struct ctl *ctl, uint32_t job_id); /* the job has ended, or begins anew */
void ctl_steps_done(struct ctl *ctl);

/* ctl_fence.c: a program makes sure that a silent node runs nothing; how it ended, by its number */
#define CTL_FENCE "fence_program"
void ctl_fence_start(struct ctl *ctl, struct agent *agent);
void ctl_fence_done(struct ctl *ctl, uint32_t fence, int exit_status);

#endif
