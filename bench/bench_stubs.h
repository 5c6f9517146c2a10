/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_stubs.h - what the parts of bench-stubs share
 *
 *   bench_stubs.c        the order of things, and the figures while jobs start
 *   bench_stub_nodes.c   nodes that are played here
 *   bench_stub_jobs.c    jobs that are submitted
 *   bench_stub_events.c  what happens rarely and touches much, and the table of it
 *   bench_stub_turns.c   how long the turns of the controller's loop were
 */
#ifndef BENCH_BENCH_STUBS_H
#define BENCH_BENCH_STUBS_H

#include <uv.h>

#include "base/str.h"
#include "base/vec.h"
#include "proto/agent.pb-c.h"
#include "proto/controller.pb-c.h"
#include "rpc/rpc.h"
#include "wire/set.h"

enum { STUB_SHAPES = 24, STUB_STUCK_MS = 30000, STUB_OTHER_UID = 65534 };
#define STUB_OTHER "nobody" /* has jobs too */
struct held {
    uint32_t job_id, attempt;
    bool script; /* it runs here; on the first node of a job */
};

struct stub {
    struct bench *bench;
    struct rpc_client *client;
    struct rpc_request *stream;
    char name[16];
    char *token; /* of the node, once it has joined */
    uint64_t epoch, beats;
    unsigned boots;
    bool joining, welcomed;
    VEC(struct held) held;
};

struct running { /* in order of their end: all take the same time */
    int64_t end_ms;
    struct stub *stub;
    struct held job;
};

struct bench {
    uv_loop_t uv;
    struct rpc_loop *rpc;
    uv_timer_t beat, clock, probe, pause;
    const char *dir, *build; /* of the controller: its socket, log, pid and how to start it */
    const char *address;     /* where its nodes connect */
    char *socket;
    char *join_token;
    struct stub *stubs;
    uint32_t nodes, welcomed, next_beat;
    bool silent;  /* nodes say nothing */
    bool holding; /* jobs do not end */
    bool draining;
    VEC(struct running) running;
    size_t first_running;
    unsigned run_ms;
    long jobs, many; /* in the queue; of those that are changed together */
    long submitted, answered, wanted, started, ended;
    int64_t last_start_us, last_news_us;
    struct rpc_client *admin, *other;
    char *other_token;
    VEC(int64_t) probes; /* latencies, µs */
    DiagReply diag;
    bool failed;   /* the last question */
    unsigned over; /* phases and events with a turn over 5 ms */
};

__attribute__((noreturn)) void stub_die(const char *what, const struct err *err);
/* Runs the loop until somebody stops it, or so long. */
void stub_wait(struct bench *bench, unsigned ms);

/* ---- nodes ---- */

/* All connect, join and say hello; the loop is stopped when the last is welcomed. */
void stub_nodes_connect(struct bench *bench);
/* All lose their connections and come back; as machines that were started anew, if so. */
void stub_nodes_again(struct bench *bench, bool rebooted);
/* Ends all that runs, and says how many those were. */
long stub_nodes_end(struct bench *bench);
/* From now on jobs end, after run_ms. */
void stub_nodes_release(struct bench *bench);

/* ---- jobs ---- */

struct stub_load {
    const char *name;
    bool other;             /* of the other user */
    const char *dependency; /* or NULL */
};
/* Queues so many jobs, and returns when all are acknowledged. */
void stub_jobs_queue(struct bench *bench, const struct stub_load *load, long count);
/* A job every PROBE_MS, until told to stop. */
void stub_jobs_probe(struct bench *bench, bool on);

/* ---- asking ---- */

void stub_ask(struct bench *bench, const char *path, const ProtobufCMessage *message,
              const ProtobufCMessageDescriptor *reply);
/* What the controller counted; with `reset` it begins anew. */
void stub_ask_diag(struct bench *bench, bool reset);
int stub_controller_pid(const struct bench *bench);

/* ---- turns ---- */

struct stub_turns {
    unsigned over;      /* 5 ms */
    int64_t longest_us; /* of CPU */
    int64_t stopped_us; /* the machine stood still, in all */
};
void stub_watch_start(void);
/* Between these; the first ones begin with the controller. Not running: there is nobody to ask. */
void stub_turns_begin(struct bench *bench, bool running);
struct stub_turns stub_turns_end(struct bench *bench, bool running);

/* ---- events ---- */

/* Returns when nothing is written and planned any more. */
void stub_wait_quiet(struct bench *bench);

/* Those whose name contains one of `names` (none: all), and the table; how many were over 5 ms. */
unsigned stub_events(struct bench *bench, char **names, size_t count);

#endif
