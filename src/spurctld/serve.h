/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.h - the controller as a process: a loop, sockets, files around struct ctl
 */
#ifndef SPURCTLD_SERVE_H
#define SPURCTLD_SERVE_H

#include <uv.h>

#include "base/map.h"
#include "log/etcd_io.h"
#include "rpc/rpc.h"
#include "rpc/wake.h"
#include "schema/conf.h"
#include "spurctld/call_stats.h"
#include "spurctld/ctl/ctl.h"
#include "spurctld/ha/membership.h"
#include "spurctld/keys/secrets.h"
#include "spurctld/payload_seen.h"

#define SERVER_STATE_DIR "/var/lib/spur" /* as the unit's StateDirectory=spur */

struct server_options {
    unsigned verbose; /* how much more detail than the configuration says */
    const char *conf_path;
    const char *name;
    const char *state_dir;     /* NULL: from the configuration */
    const char *socket;        /* NULL: from the configuration */
    const char *const *listen; /* NULL-terminated; NULL: from the configuration */
    const char *advertise;     /* where callers are sent when this one leads; NULL: listen[0] */
    uint64_t accept_loss;
    const char *accounting; /* where spurdbd is; NULL: from the configuration */
    const char *join;       /* file with an invitation: this is a new controller; NULL: it is not */
};

enum server_move { MOVE_NOT, MOVE_TO_ETCD, MOVE_TO_SQLITE };

/* Programs of the site that run, and those that wait for a worker: hooks.c. */
struct hook_run;
struct feed;
enum { SERVER_WORKERS = 16 }; /* main.c says it to libuv */
struct server_hooks {
    struct hook_run *first, *last;
    unsigned running, waiting;
    struct hook_run *active; /* those that run, in no order */
};

struct server {
    uv_loop_t *uv;
    struct server_hooks hooks[2]; /* that may be left out, and that must run */
    int hooks_stop;               /* can be read once those that must run are to end */
    struct rpc_loop *rpc_loop;
    struct rpc_server *rpc;
    struct rpc_method *methods;
    struct call_stats calls; /* by row of methods.c */
    struct ctl *ctl;
    struct secrets secrets;
    struct payload_seen recall;
    struct conf *conf;
    struct reload *reload;               /* the file is read again; NULL: it is not */
    VEC(struct rpc_call *) reload_calls; /* who asked for it since that began */
    const struct server_options *options;
    char *state_dir, *socket, *address;

    struct wake wake;
    uv_timer_t timers[CTL_TIMERS];
    uv_idle_t soon;    /* those that are due at once */
    unsigned due_soon; /* a bit for each */
    unsigned soon_at;  /* which of them is first */
    uv_prepare_t prepare;
    uint64_t turn_cpu_ns; /* at the end of the last turn of the loop; 0: there was none */
    uint64_t turn_faults;
    uv_signal_t signals[4];

    struct map sessions; /* id → struct rpc_call */
    uint64_t next_session;
    struct map users;  /* uid → struct known_user */
    uv_timer_t revoke; /* then the connections of revoked tokens end */

    struct membership membership;
    struct ha *ha; /* NULL: one controller */
    struct links *links;
    uv_timer_t handover; /* while we stop and still lead */
    unsigned handover_left;
    struct peers *peers;
    bool changing; /* controllers.c is at a step */
    bool list_changed, list_proposed, was_several, removed;
    enum server_move move;              /* where the log goes when the loop has ended */
    struct membership moved_membership; /* what holds then */
    struct proof *proof;                /* ha.c: whether etcd works here */
    int64_t moved_us;                   /* when that began; 0: not, or we lead again */
    unsigned pause_ms;                  /* how long it took last */
    struct journal *journal;
    VEC(struct journal_reader *) journal_readers;
    uint64_t journal_acked;  /* when it was last trimmed */
    int64_t journal_trim_us; /* when it is trimmed at the latest; monotonic */
    struct feed *feed;       /* to spurdbd; NULL: we do not lead, or accounting is off */
    char *accounting;        /* its address, once it was asked for */
    bool accounting_broken;
    struct snapshot_child *snapshot;
    uint64_t snapshot_index; /* the last one that a child wrote */
    int64_t snapshot_after_us;
    unsigned heap_jobs; /* workers at it */
    int64_t fork_asked_us;
    bool heap_mending, heap_yield, heap_stop;
    struct {
        VEC(struct ctl_forked *) waiting;
        VEC(struct forked_child *) children;
        VEC(pid_t) ended; /* that said all and are not reaped yet */
        int64_t mended_us, told_us;
    } asides;
    bool reload_state;      /* it was wrong: this life ends, and the next one reads it again */
    uint64_t reload_agreed; /* snapshots after this index go before that */
    uint64_t reloaded;      /* this life does; see ctl_options */
    unsigned reloads;
    bool stop_asked; /* by a signal: there is no next life */
    int64_t start_us;
    bool stopping;
    int exit_code;
};

/* serve_conf.c */
int server_load_conf(struct server *server, struct err *err);
void server_log_level(const struct server *server); /* reads the file */
/* Proposes what was read, with one NodeSpec per node and plain host lists, unless the cluster has it. */
int server_propose_conf(struct server *server, struct err *err);
void server_on_reconfigure(struct rpc_call *call, const ProtobufCMessage *request);
void server_conf_end(struct server *server); /* after the loop */
void server_stop(struct server *server, const char *why);

/* loop.c: turns of the loop */
void server_loop_init(struct server *server);
void server_loop_start(struct server *server);
int64_t server_busy_us(void *ctx);
void server_timer(void *ctx, enum ctl_timer which, int64_t at_us);

/* methods.c */
int server_methods(struct server *server, struct err *err);

/* identity.c: identities to people */
/* RPC_USER and what else this person is; `name` NULL: no account. */
unsigned server_person_roles(struct server *server, uint32_t uid, const char *name);
void server_revoked(void *ctx, int64_t issued_s); /* see struct ctl_io */
unsigned server_roles(void *ctx, const struct rpc_identity *identity, struct rpc_auth *auth);
/* NULL when the identity is no person that was looked up. From the arena. */
/* ctl_io.diag: calls by method and user. */
void server_diag(void *ctx, DiagReply *reply, bool reset, struct arena *arena);
/* The name of a user that called before; NULL: not known. */
const char *server_user_name(const struct server *server, uint32_t uid);
struct ctl_who *server_identity(struct server *server, struct rpc_call *call);
void server_users_free(struct server *server);

/* agents.c: the streams of nodes */
void server_on_join(struct rpc_call *call, const ProtobufCMessage *request);
void server_on_session(struct rpc_call *call, const ProtobufCMessage *request);
void server_session_send(void *ctx, uint64_t session, const CtlMessage *message);
void server_session_hang_up(void *ctx, uint64_t session);

/* tokens.c */
void server_on_token(struct rpc_call *call, const ProtobufCMessage *request);
void server_on_join_token(struct rpc_call *call, const ProtobufCMessage *request);
void server_on_job_access(struct rpc_call *call, const ProtobufCMessage *request);
/* vouch.c */
void server_on_vouch(struct rpc_call *call, const ProtobufCMessage *request);
void server_on_vouch_here(struct rpc_call *call, const ProtobufCMessage *request);
void server_on_rest_token(struct rpc_call *call, const ProtobufCMessage *request);
bool server_is_login(const struct server *server, const char *node);
/* Does the node that calls have the key that it joined with? ERR_UNAUTHENTICATED; agents.c (3). */
int server_check_node(struct server *server, struct rpc_call *call, struct err *err);

/* snapshots.c: a forked child writes the state while we go on */
void server_snapshot_maybe(struct server *server);
void server_snapshot_child(struct server *server);
void server_snapshot_abandon(struct server *server); /* ends the child */
void server_snapshot_end(struct server *server);     /* a last one, when the loop has ended */
void server_reload_snapshots(struct server *server); /* removes those that may be wrong */

/* forked_queries.c: forked children that answer what takes long */
void server_forked_query(void *ctx, struct ctl_forked *aside);
void server_forked_queries_turn(struct server *server);  /* in every turn of the loop */
void server_forked_queries_ended(struct server *server); /* a child may have ended */
void server_forked_queries_end(struct server *server);

/* huge_pages.c: huge pages for the heap */
void server_huge_pages_grown(void *ctx);             /* while nobody is served yet */
void server_huge_pages_ready(struct server *server); /* at the end of that */
void server_huge_pages_turn(struct server *server);  /* in every turn of the loop */
void server_huge_pages_mend(struct server *server);  /* after a forked child */
/* At the end of a turn of the loop. Asks the workers to leave the heap; true when none is at it, so
   that a fork need not wait for them, and when the turn was short; or after a second. */
bool server_may_fork(struct server *server);
void server_huge_pages_end(struct server *server);

/* journals.c: what accounting will read */
int server_journal_open(struct server *server, struct err *err);
int server_journal_settle(struct server *server, struct err *err); /* after the log is open */
bool server_journal_mark(struct server *server);                   /* before a snapshot */
void server_journal_turn(struct server *server);                   /* in every turn of the loop */
void server_journal_end(struct server *server);
void server_journal(void *ctx, uint64_t index, int64_t time_us, struct span bytes);
void server_journal_restored(void *ctx, uint64_t index);
ctl_handler server_read_journal, server_ack_journal;
void server_on_peer_journal(struct rpc_call *call, const ProtobufCMessage *request);

/* ha.c: several controllers */
bool server_is_several(const struct server *server);
struct log *server_open_etcd(struct server *server, const struct log_config *config,
                             struct err *err);
int server_start_links(struct server *server, struct err *err); /* after the log is open */
void server_ha_done(struct server *server);
void server_ha_call(struct server *server, enum etcd_method method, const ProtobufCMessage *request,
                    unsigned timeout_ms, etcd_done_fn done, void *arg);
void server_ha_follow(struct server *server);
/* The cluster has this feature level. */
void server_ha_level(struct server *server, unsigned level);
void server_ha_end_member(struct server *server);

/* links.c: controllers hear each other */
void server_on_peer_ping(struct rpc_call *call, const ProtobufCMessage *request);
/* peers.c: what other controllers ask for */
void server_on_peer_snapshot(struct rpc_call *call, const ProtobufCMessage *request);
void server_on_peer_payloads(struct rpc_call *call, const ProtobufCMessage *request);
void server_on_peer_hold(struct rpc_call *call, const ProtobufCMessage *request);

/* log_migrate.c: the log goes from one engine to the other */
void server_move(struct server *server, enum server_move to);
void server_log_migrate(struct server *server);
void server_put_aside(struct server *server);

/* Whether etcd works here as the only member of `to`; `done` comes once, within ten seconds. */
void server_ha_prove(struct server *server, const struct membership *to,
                     void (*done)(struct server *server, void *arg, const struct err *err),
                     void *arg);
void server_ha_prove_no_more(struct server *server);
void server_ha_last_line(const struct server *server, struct str *out);

/* audit.c: who changed what. The second is told when a call that the first noted is answered. */
void server_audit(struct server *server, struct rpc_call *call, const ProtobufCMessage *request,
                  bool about_jobs);
void server_audit_answered(void *ctx, struct rpc_call *call, const struct err *err);

/* controllers.c: who the controllers are */
void server_on_add_controller(struct rpc_call *call, const ProtobufCMessage *request);
void server_on_remove_controller(struct rpc_call *call, const ProtobufCMessage *request);
void server_on_transfer_leader(struct rpc_call *call, const ProtobufCMessage *request);
void server_on_trust_controller(struct rpc_call *call, const ProtobufCMessage *request);
void server_controllers_turn(struct server *server); /* in every turn of the loop */

/* controller_join.c */
void server_on_controller_join(struct rpc_call *call, const ProtobufCMessage *request);

/* hooks.c */
int server_hooks_open(struct server *server, struct err *err);
void server_hooks_end(struct server *server); /* before the loop runs out */
void server_hook(void *ctx, const struct ctl_hook *hook);

#endif
