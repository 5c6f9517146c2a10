/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.h - everything a run consists of
 *
 *   host.c    the machines of controllers: process, disk and clock; cluster.c: three of them
 *   suspects.c  controllers that depose a dead leader
 *   wire.c    connections between agents and the controller
 *   machine.c machines with agents, by the agent's rules; steps.c: the scripts on them
 *   people.c  who submits, cancels, drains, …, and asks again; ask.c: one request at the controller
 *   faults.c  what goes wrong, and when
 *   truth.c   what really ran; check.c, check_quiet.c: compare it with what the controller says
 *   world.c   the phases of a run
 *
 * (1) Everything happens in world_run(), one happening after the other. Nothing here has a clock,
 *     a thread or a random number but world->rand.
 * (2) Happenings name what they are about by numbers, so that it may be gone when they come.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "log/memory.h"
#include "sim/queue.h"
#include "sim/rand.h"
#include "sim/sim.h"
#include "spurctld/ctl/ctl.h"
#include "spurctld/ctl/suspect.h"

enum { AGENT_TIMEOUT_S = 300, NODE_TIMEOUT_S = 10, KILL_WAIT_S = 30, RUN_WORK_S = 1200 };
#define MS  INT64_C(1000)
#define SEC INT64_C(1000000)

/* ---- truth.c: what really ran ---- */

/* One attempt's script. */
struct run {
    uint32_t job_id, attempt, request;
    unsigned machine;
    unsigned starts; /* must not pass 1 */
    bool alive, frozen, excused;
    bool finished; /* came to its own end: nobody ended it */
    bool reported; /* the controller has acknowledged its end */
    uint32_t exit_status;
    int64_t started_us;
    int64_t ran_us;     /* without the time it was frozen, up to resumed_us */
    int64_t resumed_us; /* when it last went on */
    int64_t work_us;    /* what the script wants to do */
};

/* What is known of each job id ever seen in the state. */
struct known_job {
    uint64_t troubles; /* of controllers, when the attempt started */
    uint32_t id, request;
    uint32_t attempt;
    bool active; /* its current attempt has started and has not ended */
    bool ended, counted;
    int64_t limit_s;    /* the smallest it ever had */
    int64_t started_us; /* when its last start was agreed on */
};

struct truth {
    struct map runs;  /* (job << 32 | attempt) → struct run */
    struct map alive; /* the same key: those that run now */
    struct map jobs;  /* id → struct known_job */
    struct map
        effects; /* of request ids: hash → struct world, when a command of it did something */
    uint32_t highest_id;
};

struct run *truth_run(struct world *world, uint32_t job_id, uint32_t attempt);
int64_t run_elapsed_us(const struct world *world, const struct run *run);
void truth_started(struct world *world, struct run *run);
void truth_stopped(struct world *world, struct run *run, uint32_t exit_status);
void truth_done(struct truth *truth);

/* ---- host.c ---- */

enum { HOSTS = 3 };

struct host {
    struct world *world;
    unsigned number;
    char name[8];
    struct ctl *ctl;  /* NULL while it is down */
    uint64_t life;    /* counts starts */
    bool dying;       /* nothing gets out any more */
    bool broken;      /* the log gave up: stop at the end of this call */
    bool led;         /* when last looked at */
    bool touched;     /* something came out of it */
    int outputs_left; /* dies before the next output when 0; -1: not armed */
    struct memory_disk *disk;
    bool disk_full, poll_due, settle_due, flush_due, snapshot_due;
    int64_t disk_slow_us;     /* added to each write */
    int64_t skew_us;          /* wall clock less true time */
    int64_t most_skew_us;     /* so far */
    int64_t stopped_until_us; /* SIGSTOP */
    int64_t outdated_us;      /* since when another leads while it thinks it does */
    int64_t cut_until_us;     /* from etcd */
    uint64_t timer_turn[CTL_TIMERS];
    uint64_t seen_index; /* when last looked at */
    int64_t busy_us;     /* when it was last called, and how often in that moment */
    unsigned busy;
    struct map asks; /* open ones, by number */
    VEC(struct ask *) answered;
    uint64_t next_ask;
    struct etcd_client *etcd; /* of this life, when there are several controllers */
    struct suspect suspect;   /* what it thinks of the others */
    int64_t flipped_us;       /* since when its memory is wrong; 0: it is not */
    const char *flipped_what;
    uint64_t reloaded;      /* see ctl_options */
    int64_t deaf_us[HOSTS]; /* does not hear that one until then */
};

void host_init(struct world *world, struct host *host, unsigned number);
void host_done(struct host *host);
void host_start(struct host *host);
void host_crash(struct host *host, const char *why);
/* Every call into the controller is between these two. */
bool host_enter(struct host *host);
void host_leave(struct host *host);
/* Something leaves the process: false when it does not get out. */
bool host_output(struct host *host);
int64_t host_wall(const struct host *host);
bool host_leads(const struct host *host);
bool host_is_stopped(const struct host *host);
Config *host_config(struct world *world);

/* ---- cluster.c: several controllers ---- */

struct held_back;
struct etcd_model;
struct etcd_client;
struct log *cluster_open_log(struct host *host, const struct log_config *config, struct err *err);
void cluster_host_dies(struct host *host);
void cluster_links(struct world *world); /* as faults say */
int64_t cluster_next_us(const struct world *world);
void cluster_move_clock(struct world *world);
void cluster_done(struct world *world);

/* ---- suspects.c: controllers that hear each other ---- */

void suspects_started(struct host *host);
void suspects_begin(struct world *world);
bool suspects_reach(const struct world *world, const struct host *from, const struct host *to);
/* What all whom it reaches say of their states. */
void suspects_compare(struct world *world, struct host *host);
bool world_is_flipped(const struct world *world); /* some controller's memory is wrong */

/* ---- ask.c ---- */

struct ask {
    struct ctl_ask ask; /* first */
    struct ctl_who who;
    struct world *world;
    struct host *host;
    struct arena arena;
    uint64_t number;
    uint32_t request;
    uint8_t id[16];
    bool answered, stream;
    uint32_t must_see, seen; /* highest job ids: acknowledged before a list, and listed */
};
void ask_free(struct ask *ask);
/* The request arrives at a controller; false when it cannot be taken there. */
bool ask_arrive(struct host *host, uint32_t request);

/* ---- wire.c ---- */

struct session {
    uint64_t id;
    unsigned machine, host;
    bool node_open, ctl_open;
    int64_t last_to_ctl, last_to_node;
};

void wire_connect(struct world *world, unsigned machine);
void wire_to_ctl(struct world *world, uint64_t session, const NodeMessage *message);
void wire_to_node(struct world *world, uint64_t session, const CtlMessage *message);
void wire_hang_up(struct world *world, uint64_t session); /* by the controller */
void wire_close(struct world *world, uint64_t session);   /* by the agent or its kernel */
void wire_break(struct world *world, uint64_t session);   /* reset: what is under way is lost */
void wire_silence(struct world *world, uint64_t session); /* power cut: nobody says anything */
void wire_host_died(struct host *host);
void wire_heal(struct world *world); /* what is blocked no more */
void wire_done(struct world *world);

/* ---- machine.c ---- */

struct grant {
    uint32_t job_id, attempt, request;
    uint32_t cpus;
    struct bitset cpu_ids;
    bool ready, has_launch, launched, ending, alone, manager, frozen;
    bool payload_good;
    int64_t limit_s; /* -1: none */
    uint64_t turn;   /* of its pending happening */
};

struct report {
    uint32_t job_id, attempt, exit_status;
    bool has_state, released, launch_failed, sent;
    JobState state;
    int64_t sent_us;
};

struct machine {
    unsigned number;
    char name[16];
    uint32_t cpus;
    uint64_t mem_mb;
    unsigned boot;
    bool powered, agent_up, welcomed;
    uint64_t session;    /* 0: none */
    uint64_t agent_turn; /* counts agents: an old one's timers mean nothing */
    uint64_t connect_turn;
    unsigned controller;   /* which one it tries */
    uint64_t epoch;        /* highest seen; on disk */
    int64_t heard_us;      /* when who leads last got a message from it */
    int64_t back_us;       /* when that ended a silence of agent_timeout */
    int64_t off_us, on_us; /* when it last lost power and got it back */
    uint64_t met_boot;     /* hash of the boot id that the state has */
    int64_t met_us;        /* since when */
    int64_t blocked_us[2]; /* packets are swallowed until then: to the controller, to the node */
    VEC(struct grant *) grants;
    VEC(struct report) reports;
    VEC(uint64_t) tombstones; /* job << 32 | attempt */
};
enum { TO_CTL, TO_NODE };

void machine_init(struct world *world, struct machine *machine, unsigned number);
void machine_done(struct machine *machine);
void machine_power_on(struct world *world, struct machine *machine);
void machine_power_off(struct world *world, struct machine *machine);
void machine_agent_start(struct world *world, struct machine *machine);
void machine_agent_kill(struct world *world, struct machine *machine);
void machine_connected(struct world *world, struct machine *machine, uint64_t session);
void machine_refused(struct world *world, struct machine *machine);
void machine_closed(struct world *world, struct machine *machine, uint64_t session);
void machine_receive(struct world *world, struct machine *machine, const CtlMessage *message);

/* ---- steps.c ---- */

struct grant *machine_grant(const struct machine *machine, uint32_t job_id, uint32_t attempt);
/* Another attempt of the job that is still here. */
struct grant *machine_other(const struct machine *machine, uint32_t job_id, uint32_t attempt);
struct run *grant_run(struct world *world, const struct machine *machine,
                      const struct grant *grant);
struct report *machine_report(struct machine *machine, uint32_t job_id, uint32_t attempt);
bool machine_has_tombstone(const struct machine *machine, uint32_t job_id, uint32_t attempt);
void machine_tombstone(struct world *world, struct machine *machine, uint32_t job_id,
                       uint32_t attempt);
void machine_forget_grant(struct machine *machine, struct grant *grant);
void machine_send_report(struct world *world, struct machine *machine, struct report *report);
void machine_send_released(struct world *world, struct machine *machine, uint32_t job_id,
                           uint32_t attempt);
void step_prepare(struct world *world, struct machine *machine, struct grant *grant);
void step_launch(struct world *world, struct machine *machine, struct grant *grant);
void step_freeze(struct world *world, struct machine *machine, struct grant *grant, bool thaw);
void step_arm(struct world *world, struct machine *machine, struct grant *grant);
void step_revoke(struct world *world, struct machine *machine, struct grant *grant);

/* ---- people.c ---- */

enum request_kind {
    ASK_SUBMIT,
    ASK_CANCEL,
    ASK_CANCEL_MINE, /* whatever the asker has */
    ASK_HOLD,
    ASK_RELEASE,
    ASK_REQUEUE,
    ASK_SUSPEND,
    ASK_RESUME,
    ASK_LIMIT,
    ASK_LIST,
    ASK_WATCH,
    ASK_EXPLAIN,
    ASK_NODE,
    ASK_PARTITION,
    ASK_RECONFIGURE,
    ASK_KINDS
};

struct request {
    uint32_t number;
    enum request_kind kind;
    uint32_t uid;
    uint8_t id[16];
    unsigned tries;
    unsigned open; /* asks of it at the controller */
    bool done, gave_up;
    int64_t first_us;
    enum err_code code;
    /* a submission */
    JobSpec *spec;
    struct str payload;
    int64_t work_us;
    unsigned exit_code;
    bool stubborn; /* does not end on TERM */
    uint32_t tasks;
    uint32_t job_id;  /* acknowledged */
    uint32_t root_id; /* found in the state */
    bool cancel_asked, suspend_asked;
    unsigned requeues_asked;
    /* about a job, a node or a partition */
    char target[64];
    char word[16];
    bool by_name;   /* target is the job's name */
    uint32_t about; /* number of the submission it names; 0: none */
    int64_t value;
};

void people_done(struct world *world);
void people_begin(struct world *world);
struct request *people_request(struct world *world, uint32_t number); /* NULL when out of range */
struct request *people_ask(struct world *world, enum request_kind kind);
void people_answered(struct world *world, uint32_t request, enum err_code code, uint32_t job_id);
bool people_waiting(const struct world *world);
/* Everything that people keep from ending is let go: holds, drains, suspensions. */
void people_let_go(struct world *world);

/* ---- faults.c ---- */

void faults_choose(struct world *world);
void faults_begin(struct world *world);
void faults_heal(struct world *world);
static inline bool fault_on(const struct world *world, unsigned fault);

/* ---- check.c ---- */

void check_written(struct world *world, const struct log_batch *batch);
void check_step(struct host *host);       /* after each call into the controller */
bool check_is_flipped(struct host *host); /* its memory is wrong */
void check_recovered(struct host *host);  /* after a start */
/* core_check() holds; asked now and then, with UINT64_MAX in any case. */
void check_whole(struct world *world, const struct state *state, uint64_t index);
uint32_t check_request_of(const struct job *job); /* the request that made it; 0: none of ours */
void check_trace_command(struct world *world, struct span bytes);
/* check_quiet.c */
bool check_quiet(struct world *world, bool complain); /* everything has ended and is free */

/* ---- world.c ---- */

struct world {
    struct sim_options options;
    struct sim_result *result;
    struct rand rand, suspect_rand;
    struct queue queue;
    int64_t now_us, begin_us, work_until_us;
    bool violated, healed;
    bool has_prolog;
    unsigned faults;
    struct host hosts[HOSTS];
    unsigned host_count;
    unsigned config_version;
    struct etcd_model *etcd; /* NULL: one controller on the memory engine */
    VEC(struct held_back *) held_back;
    struct state *follower; /* of one controller: another replica, which gets each batch written */
    VEC(uint64_t) digests;  /* by index: what the first replica had; 0 where none stood */
    uint64_t durable_index; /* what some process has seen committed */
    uint64_t checked_index, scanned_index;
    struct machine *machines;
    unsigned machine_count;
    struct map sessions;
    uint64_t next_session;
    uint64_t turn; /* of grants: each change of what a grant waits for has a number of its own */
    VEC(struct request *) requests;
    struct truth truth;
    bool recovering; /* a controller has read its log and done nothing yet */
};

static inline bool fault_on(const struct world *world, unsigned fault)
{
    return !world->healed && (world->faults & fault) != 0;
}

struct host *world_leader(struct world *world); /* NULL: nobody leads */
void world_later(struct world *world, int64_t delay_us, happen_fn *fn, uint64_t a, uint64_t b,
                 uint64_t c);
void world_later_bytes(struct world *world, int64_t at_us, happen_fn *fn, uint64_t a, uint64_t b,
                       uint8_t *bytes, size_t len);
void world_count(struct world *world, enum sim_count count);
void world_violation(struct world *world, const char *fmt, ...) PRINTF(2, 3);
void world_trace(struct world *world, const char *fmt, ...) PRINTF(2, 3);
#define TRACE(world, ...)                      \
    do {                                       \
        if ((world)->options.trace)            \
            world_trace((world), __VA_ARGS__); \
    } while (0)

#endif
