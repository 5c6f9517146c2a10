/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_stub_events.c - what happens rarely and touches much, and how long it holds up the loop
 *
 * One row for each thing: the real command as a process, or something that this process does. The
 * controller counts the turns of its loop until it is quiet again after it (bench_stub_turns.c). None is left out: not that in which it becomes the leader, nor those in which a
 * snapshot is forked or shares our pages.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench_stubs.h"
#include "sys/clock.h"

enum {
    QUIET_LOOK_MS = 100,
    QUIET_LOOKS = 2,
    QUIET_MOST_MS = 30000,
    SLOW_EVERY = 8, /* messages that a slow reader takes before it rests */
    SLOW_MS = 2,
};

/* ---- what this process does ---- */

static void wait_welcomed(struct bench *bench)
{
    int64_t until = clock_mono_us() + STUB_STUCK_MS * INT64_C(1000);

    while (bench->welcomed < bench->nodes && clock_mono_us() < until)
        stub_wait(bench, QUIET_LOOK_MS);
    if (bench->welcomed < bench->nodes) {
        fprintf(stderr, "bench-stubs: only %u nodes came back\n", bench->welcomed);
        bench->failed = true;
    }
}

static void act_reconnect(struct bench *bench)
{
    stub_nodes_again(bench, false);
    wait_welcomed(bench);
}

static void act_reboot(struct bench *bench)
{
    stub_nodes_again(bench, true);
    wait_welcomed(bench);
}

/* Others start in the place of all that run. */
static void act_turnover(struct bench *bench)
{
    long want = bench->started + stub_nodes_end(bench);
    int64_t until = clock_mono_us() + STUB_STUCK_MS * INT64_C(1000);

    while (bench->started < want && clock_mono_us() < until)
        stub_wait(bench, QUIET_LOOK_MS);
}

static void act_end_all(struct bench *bench)
{
    stub_nodes_end(bench);
}

/* It ends, and others start in its place. */
static void act_after_widest(struct bench *bench)
{
    long want = bench->started + bench->nodes;
    int64_t until = clock_mono_us() + STUB_STUCK_MS * INT64_C(1000);

    stub_nodes_end(bench);
    while (bench->started < want && clock_mono_us() < until)
        stub_wait(bench, 10);
    bench->failed = bench->started < want;
}

static void act_silence(struct bench *bench)
{
    bench->silent = true;
    while (bench->welcomed) /* the controller hangs up on each */
        stub_wait(bench, QUIET_LOOK_MS);
}

static void act_back(struct bench *bench)
{
    bench->silent = false;
    act_reconnect(bench);
}

static void act_diag(struct bench *bench)
{
    stub_ask_diag(bench, false);
}

struct slow {
    uv_timer_t timer;
    struct bench *bench;
    struct rpc_request *request;
    unsigned messages;
    bool rests, done;
};

static void on_rested(uv_timer_t *timer)
{
    struct slow *slow = timer->data;

    if (slow->request)
        rpc_request_resume(slow->request);
}

static void on_piece(struct rpc_request *request, const ProtobufCMessage *message)
{
    struct slow *slow = rpc_request_data(request);

    (void)message;
    if (!slow->rests || ++slow->messages % SLOW_EVERY)
        return;
    rpc_request_pause(request);
    uv_timer_start(&slow->timer, on_rested, SLOW_MS, 0);
}

static void on_list_end(struct rpc_request *request, const ProtobufCMessage *reply,
                        const struct err *err)
{
    struct slow *slow = rpc_request_data(request);

    (void)reply;
    slow->bench->failed = err != NULL;
    slow->request = NULL;
    slow->done = true;
    uv_stop(&slow->bench->uv);
}

/* Someone who reads all of all jobs, as squeue --json, and may rest all the time. */
static void list_all(struct bench *bench, bool rests)
{
    ListJobsRequest list = LIST_JOBS_REQUEST__INIT;
    struct slow slow = { .bench = bench, .rests = rests };

    SET(&list, with_spec, true);
    uv_timer_init(&bench->uv, &slow.timer);
    slow.timer.data = &slow;
    slow.request = rpc_request_start(
        bench->admin, &(struct rpc_request_options){ .path = "/spur.Controller/ListJobs",
                                                     .message = &list.base,
                                                     .reply = &list_jobs_reply__descriptor,
                                                     .wait_ready = true,
                                                     .data = &slow,
                                                     .on_message = on_piece,
                                                     .on_done = on_list_end });
    while (!slow.done)
        uv_run(&bench->uv, UV_RUN_DEFAULT);
    uv_timer_stop(&slow.timer);
    uv_close((uv_handle_t *)&slow.timer, NULL);
    stub_wait(bench, 1); /* it is on our stack */
}

static void act_list_fast(struct bench *bench)
{
    list_all(bench, false);
}

static void act_list_slowly(struct bench *bench)
{
    list_all(bench, true);
}

/* ---- the events, in this order ---- */

#define OTHER "setpriv --reuid 65534 --regid 65534 --clear-groups "

static const struct event {
    const char *name;
    const char *shell; /* DIR, JOBS, MANY and NODES are set, and PATH */
    void (*act)(struct bench *bench);
    bool stopped; /* nobody can be asked after it */
} events[] = {
    { "partition up, all nodes fill",
      "sed -i s/DOWN/UP/ $DIR/spur.conf; scontrol update PartitionName=all State=UP" },
    { "partition update (limit)", "scontrol update PartitionName=all MaxTime=5-0" },
    { "partition update (priority)", "scontrol update PartitionName=all PriorityJobFactor=3" },
    { "partition down", "scontrol update PartitionName=all State=DOWN" },
    { "partition up again", "scontrol update PartitionName=all State=UP" },
    { "all jobs end, others start", NULL, act_turnover },
    { "job of all nodes waits",
      "echo '#!/bin/sh' >$DIR/job; sbatch --parsable -N $NODES --exclusive -t 60 "
      "--priority=4294967000 -D /tmp $DIR/job >$DIR/widest; "
      "scontrol update PartitionName=all State=DOWN" },
    { "job of all nodes: others end", NULL, act_end_all },
    { "job of all nodes starts",
      "scontrol update PartitionName=all State=UP; "
      "for i in $(seq 200); do "
      "[ \"$(squeue -h -o %t -j $(cat $DIR/widest))\" = R ] && exit; sleep 0.05; done; exit 1" },
    { "job of all nodes is signalled", "scancel -s USR1 $(cat $DIR/widest)" },
    { "job of all nodes ends", NULL, act_after_widest },
    { "reservation create", "scontrol create ReservationName=r1 StartTime=now+1days Duration=60 "
                            "Nodes=n[1-10] Users=root" },
    { "reservation update", "scontrol update ReservationName=r1 Nodes=n[1-20] Duration=120" },
    { "reservation delete", "scontrol delete ReservationName=r1" },
    { "node drain", "scontrol update NodeName=n[1-$((NODES / 2))] State=DRAIN Reason=bench" },
    { "node resume", "scontrol update NodeName=n[1-$((NODES / 2))] State=RESUME" },
    { "reconfigure, no change", "scontrol reconfigure" },
    { "reconfigure, one more node and QOS",
      "sed -i \"s/n\\[1-$NODES\\]/n[1-$((NODES + 1))]/\" $DIR/spur.conf; "
      "printf '[[qos]]\\nname = \"more\"\\npriority = 10\\n' >>$DIR/spur.conf; "
      "scontrol reconfigure" },
    { "squeue", "squeue -h" },
    { "squeue --json", "squeue --json -u nobody" },
    { "list of all, whole, read fast", NULL, act_list_fast },
    { "list of all, whole, read slowly", NULL, act_list_slowly },
    { "squeue --me", OTHER "squeue -h --me" },
    { "squeue -u", "squeue -h -u "
                   "nobody" },
    { "squeue -j", "squeue -h -j $JOBS" },
    { "squeue --start", "squeue -h --start" },
    { "squeue, four at once", "for i in 1 2 3 4; do squeue -h -u nobody & done; wait" },
    { "sinfo", "sinfo; sinfo -N" },
    { "scontrol show job", "scontrol -o show job" },
    { "scontrol show node", "scontrol show node" },
    { "sprio", "sprio -h" },
    { "spur explain", "spur explain $JOBS" },
    { "diag", NULL, act_diag },
    { "array submit", "echo '#!/bin/sh' >$DIR/job; "
                      "sbatch --parsable --array=0-$((MANY - 1)) -D /tmp $DIR/job >$DIR/array" },
    { "array: half of its tasks held", "scontrol hold $(cat $DIR/array)_[0-$((MANY / 2 - 1))]" },
    { "squeue -r of the array", "squeue -h -r -j $(cat $DIR/array)" },
    { "array update", "scontrol update JobId=$(cat $DIR/array) Nice=10" },
    { "array cancel", "scancel $(cat $DIR/array)" },
    { "hold by name", "scontrol hold jobname=many" },
    { "release by name", "scontrol release jobname=many" },
    { "update by name", "scontrol update JobName=many Nice=7" },
    { "update by id", "seq $((JOBS - MANY / 10 + 1)) $JOBS | xargs -n 4000 scontrol hold; "
                      "seq $((JOBS - MANY / 10 + 1)) $JOBS | xargs -n 4000 scontrol release" },
    { "dependents released", "scancel $((JOBS - MANY))" },
    { "scancel -u", "scancel -u nobody" },
    { "scancel of ids", "seq $((JOBS - MANY / 2 + 1)) $JOBS | xargs -n 4000 scancel" },
    { "journal", "spur journal --json | head -n $MANY" },
    { "agents reconnect", NULL, act_reconnect },
    { "agents silent, all nodes down", NULL, act_silence },
    { "agents back, all nodes up", NULL, act_back },
    { "power failure, jobs requeued", NULL, act_reboot },
    { "power failure over, nodes resumed", "scontrol update NodeName=n[1-$NODES] State=RESUME" },
    { "clean stop",
      "p=$(cat $DIR/pid); kill -TERM $p; "
      "while [ -d /proc/$p ] && ! grep -q ') Z' /proc/$p/stat; do sleep 0.02; done",
      .stopped = true },
    { "start again", "setsid $DIR/start & echo $! >$DIR/pid; "
                     "until squeue -h -j $JOBS >/dev/null 2>&1; do sleep 0.02; done" },
};

/* ---- one event ---- */

static void on_exit_of(uv_process_t *process, int64_t status, int signal)
{
    struct bench *bench = process->data;

    bench->failed = status != 0 || signal != 0;
    uv_close((uv_handle_t *)process, NULL);
    uv_stop(&bench->uv);
}

static void run_shell(struct bench *bench, const char *shell)
{
    static uv_process_t process;
    char *text = mem_printf("export PATH=%s/bin:$PATH SPUR_CONTROLLER_ADDR=%s; unset SPUR_CONF\n"
                            "DIR=%s JOBS=%ld MANY=%ld NODES=%u\n"
                            "exec >/dev/null 2>>$DIR/said\n%s\n",
                            bench->build, bench->socket, bench->dir, bench->jobs, bench->many,
                            bench->nodes, shell);
    char *argv[] = { (char *)"/bin/bash", (char *)"-c", text, NULL };
    uv_process_options_t options = { .file = argv[0], .args = argv, .exit_cb = on_exit_of };

    process.data = bench;
    if (uv_spawn(&bench->uv, &process, &options) < 0)
        stub_die("a shell", NULL);
    while (uv_is_active((uv_handle_t *)&process))
        uv_run(&bench->uv, UV_RUN_DEFAULT);
    free(text);
}

void stub_wait_quiet(struct bench *bench)
{
    int64_t until = clock_mono_us() + QUIET_MOST_MS * INT64_C(1000);
    unsigned quiet = 0;

    stub_ask_diag(bench, false);
    while (quiet < QUIET_LOOKS && clock_mono_us() < until) {
        uint64_t commands = bench->diag.log_commands, plans = bench->diag.plans;
        stub_wait(bench, QUIET_LOOK_MS);
        stub_ask_diag(bench, false);
        bool same = commands == bench->diag.log_commands && plans == bench->diag.plans;
        quiet = same ? quiet + 1 : 0;
    }
}

static bool run_event(struct bench *bench, const struct event *event, bool stopped)
{
    stub_turns_begin(bench, !stopped);
    int64_t began = clock_mono_us();
    bench->failed = false;
    if (event->act)
        event->act(bench);
    else
        run_shell(bench, event->shell);
    bool failed = bench->failed;
    double took = (double)(clock_mono_us() - began) / 1e6;
    if (!event->stopped)
        stub_wait_quiet(bench);
    double quiet = (double)(clock_mono_us() - began) / 1e6;
    struct stub_turns turns = stub_turns_end(bench, !event->stopped);
    bool over = turns.over > 0;
    printf("%-36s %9.1f %9.2f %9.2f %7u %9.1f %s%s\n", event->name, (double)turns.longest_us / 1e3,
           took, quiet, turns.over, (double)turns.stopped_us / 1e3, over ? "OVER 5 ms" : "",
           failed ? " FAILED" : "");
    fflush(stdout);
    return over;
}

static bool is_chosen(const char *name, char **names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strstr(name, names[i]))
            return true;
    }
    return count == 0;
}

unsigned stub_events(struct bench *bench, char **names, size_t count)
{
    unsigned over = 0;
    bool stopped = false;

    printf("%-36s %9s %9s %9s %7s %9s\n", "event", "turn ms", "took s", "quiet s", "over",
           "still ms");
    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        bool chosen = i == 0 || (is_chosen(events[i].name, names, count) && !events[i - 1].stopped);
        if (!chosen && !stopped) /* what starts it again goes with what stops it */
            continue;
        over += run_event(bench, &events[i], stopped);
        stopped = events[i].stopped;
    }
    return over;
}
