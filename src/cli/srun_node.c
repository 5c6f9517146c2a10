// SPDX-License-Identifier: Apache-2.0
/*
 * srun_node.c - what nodes say, and connections that break and are made again
 *
 * (1) Frames have numbers. Only the one after the last is taken; every so often we say which that is, and
 *     after a broken connection the node goes on from there: nothing is lost, nothing comes twice.
 * (2) A node is given up when it says that the step is not there, or the controller says that the job has
 *     ended or has lost the node. Until then it may be away: its spurd is being restarted.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "cli/srun.h"
#include "client/client.h"
#include "schema/job_view.h"
#include "sys/clock.h"

enum {
    FIRST_RETRY_US = 50000,
    LAST_RETRY_US = 1000000,
    SAY_AWAY_US = 5 * SRUN_SECOND_US,
    SAY_EXITS_US = 50000,
    ASK_US = 5 * SRUN_SECOND_US,
};

/* ---- exits ---- */

static void say_exit(struct srun *srun, const struct srun_node *node, const uint32_t *tasks,
                     size_t count, int status)
{
    CLEANUP(str_done) struct str which = { 0 };

    if (status == 0 && srun->request.verbose == 0)
        return;
    srun_add_ranges(&which, tasks, count);
    const char *word = count > 1 ? "tasks" : "task";
    if (status == 0)
        cli_say(&srun->cli, "%s: %s %s: Completed", node->node->name, word, str_text(&which));
    else if (WIFSIGNALED(status))
        cli_error(&srun->cli, "%s: %s %s: %s%s", node->node->name, word, str_text(&which),
                  strsignal(WTERMSIG(status)), WCOREDUMP(status) ? " (core dumped)" : "");
    else
        cli_error(&srun->cli, "%s: %s %s: Exited with exit code %d", node->node->name, word,
                  str_text(&which), WEXITSTATUS(status));
}

static void note_status(struct srun *srun, int status)
{
    int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);

    if (code > srun->highest) {
        srun->highest = code;
        srun->highest_status = status;
    }
    srun->killed_by_9 |= WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* SLURM_SRUN_REDUCE_TASK_EXIT_MSG: the same exit one after the other is said once. */
static bool is_said_already(struct srun *srun, int status)
{
    bool same = srun->said_status == status && status != 0;

    srun->said_status = status;
    return same && getenv("SLURM_SRUN_REDUCE_TASK_EXIT_MSG");
}

static void flush_exits(struct srun *srun, struct srun_node *node)
{
    if (node->exits.len == 0)
        return;
    qsort(node->exits.items, node->exits.len, sizeof(uint32_t), by_number);
    if (srun->request.verbose)
        cli_say(&srun->cli, "Received task exit notification for %zu task%s of %s (status=0x%04x).",
                node->exits.len, node->exits.len == 1 ? "" : "s", srun_step_name(srun),
                (unsigned)node->exits_status);
    if (!is_said_already(srun, node->exits_status))
        say_exit(srun, node, node->exits.items, node->exits.len, node->exits_status);
    vec_clear(&node->exits);
    if (node->exits_status != 0 && srun->request.kill_on_bad_exit && !srun->killing) {
        cli_say(&srun->cli, "Terminating %s", srun_step_name(srun));
        srun->aborted = true;
        srun_end_step(srun, JOB_FAILED, srun->site_kill_wait_s);
    }
}

/*
 * Tasks of a node that end the same way and soon after each other are said together. Nothing waits
 * for it: when it was the last task, or the end of one ends the others, it is said at once.
 */
int64_t srun_say_exits(struct srun *srun, bool all)
{
    int64_t now = clock_boot_us(), next = 0;

    all |= srun->exited >= srun->ntasks || srun->request.kill_on_bad_exit;
    for (size_t i = 0; i < srun->node_count; i++) {
        struct srun_node *node = &srun->nodes[i];
        int64_t at = node->exits_us + SAY_EXITS_US;
        if (node->exits.len == 0)
            continue;
        if (all || node->over || now >= at)
            flush_exits(srun, node);
        else
            next = next ? MIN(next, at) : at;
    }
    return next;
}

static void on_exit_of(struct srun *srun, struct srun_node *node, const StepExit *over)
{
    for (size_t i = 0; i < over->n_tasks; i++) {
        uint32_t number = over->tasks[i];
        if (number >= srun->ntasks || srun->tasks[number].exited)
            continue;
        srun_flush_task(srun, number);
        srun->tasks[number].exited = true;
        srun->tasks[number].status = (int)over->status;
        srun->exited++;
        note_status(srun, (int)over->status);
        if (!srun->first_exit_us)
            srun->first_exit_us = clock_boot_us();
        if (node->exits_status != (int)over->status)
            flush_exits(srun, node);
        if (node->exits.len == 0)
            node->exits_us = clock_boot_us();
        node->exits_status = (int)over->status;
        vec_push(&node->exits, number);
    }
}

/* SLURM_STEP_KILLED_MSG_NODE_ID: of one node only. */
static bool may_say(const struct srun *srun, const struct srun_node *node)
{
    const char *text = getenv("SLURM_STEP_KILLED_MSG_NODE_ID");
    uint64_t index;

    return !text || !str_to_u64(text, UINT32_MAX, &index) ||
           index == (uint64_t)(node - srun->nodes);
}

static void on_say(struct srun *srun, const struct srun_node *node, const char *text)
{
    if (may_say(srun, node))
        fprintf(stderr, "%s\n", text);
    if (srun->killing || srun->aborted)
        return;
    srun->aborted = true;
    cli_say(&srun->cli, "Job step aborted: Waiting up to %u seconds for job step to finish.",
            srun->site_kill_wait_s + 2);
}

/* ---- frames ---- */

static void on_over(struct srun *srun, struct srun_node *node, const StepOver *over)
{
    node->over = true;
    srun_drop_relays(srun, node);
    if (over->launch_failed) {
        cli_error(&srun->cli, "Task launch for %s failed on node %s: %s", srun_step_name(srun),
                  node->node->name, over->text ? over->text : "not said why");
        srun->failed = srun->launch_failed = true;
    } else if (over->has_state && over->state == JOB_OUT_OF_MEMORY) {
        fprintf(stderr,
                "slurmstepd: error: Detected oom_kill event in %s. Some of the step tasks "
                "have been OOM Killed.\n",
                srun_step_name(srun));
    }
    if (over->end_step && srun->node_count > 1 && !srun->killing)
        srun_end_step(srun, JOB_OUT_OF_MEMORY, SRUN_FORCE_WAIT_S);
    /* One component was ended from outside: the others are of no use. */
    if (over->has_state && srun->part_count > 1 && !srun->killing)
        srun_end_step(srun, over->state, SRUN_FORCE_WAIT_S);
}

static void send_ack(struct srun_node *node)
{
    RunStepIn in = RUN_STEP_IN__INIT;

    if (node->seen == node->acked || !node->stream)
        return;
    in.what_case = RUN_STEP_IN__WHAT_ACK;
    in.ack = node->acked = node->seen;
    node->unacked_bytes = 0;
    client_stream_send(node->stream, &in.base);
}

static void on_running(struct srun *srun, struct srun_node *node)
{
    node->running = node->attached = true;
    for (size_t i = 0; node->node && i < node->node->n_tasks; i++)
        srun->tasks[node->node->tasks[i]].started = true;
    if (srun->request.verbose)
        cli_say(&srun->cli, "Node %s, %zu tasks started", node->node->name, node->node->n_tasks);
    srun_send_input(srun, node);
    srun_send_relays(node);
}

/* The supervisor says how far our input came; the rest is sent again, and what waited. */
static void on_attached(struct srun *srun, struct srun_node *node, const StepAttached *attached)
{
    if (attached->input >= srun->input_first && attached->input <= node->input_sent) {
        node->credit += (size_t)(node->input_sent - attached->input);
        node->input_sent = attached->input;
        node->eof_sent = false;
    }
    node->attached = true;
    srun_send_input(srun, node);
    if (attached->has_relayed)
        srun_on_relayed(srun, node, attached->relayed, true);
    if (srun->killing)
        srun_send_signal(srun, SIGKILL, srun->kill_why, srun->kill_wait_s);
    for (size_t i = 0; i < node->signal_count; i++) {
        RunStepIn in = RUN_STEP_IN__INIT;
        StepTaskSignal words = STEP_TASK_SIGNAL__INIT;
        words.has_signal = true;
        words.signal = node->signals[i];
        in.what_case = RUN_STEP_IN__WHAT_SIGNAL;
        in.signal = &words;
        client_stream_send(node->stream, &in.base);
    }
    node->signal_count = 0;
}

static void on_message(struct srun *srun, struct srun_node *node, const RunStepOut *out, void *data)
{
    if (out->has_seq) { /* (1) */
        if (out->seq != node->seen + 1)
            return;
        node->seen = out->seq;
    }
    switch (out->what_case) {
    case RUN_STEP_OUT__WHAT_RUNNING:
        on_running(srun, node);
        break;
    case RUN_STEP_OUT__WHAT_ATTACHED:
        on_attached(srun, node, out->attached);
        break;
    case RUN_STEP_OUT__WHAT_DATA:
        srun_output(srun, out->data);
        node->unacked_bytes += out->data->data.len;
        break;
    case RUN_STEP_OUT__WHAT_EXIT:
        on_exit_of(srun, node, out->exit);
        break;
    case RUN_STEP_OUT__WHAT_CREDIT:
        node->credit += (size_t)out->credit;
        srun_send_input(srun, node);
        break;
    case RUN_STEP_OUT__WHAT_SAY:
        on_say(srun, node, out->say);
        break;
    case RUN_STEP_OUT__WHAT_NOTE:
        fprintf(stderr, "%s\n", out->note);
        break;
    case RUN_STEP_OUT__WHAT_OVER:
        on_over(srun, node, out->over);
        break;
    case RUN_STEP_OUT__WHAT_RELAY:
        srun_on_relay(srun, node, out->relay);
        node->unacked_bytes += out->relay->data.len;
        break;
    case RUN_STEP_OUT__WHAT_RELAYED:
        srun_on_relayed(srun, node, out->relayed, false);
        break;
    case RUN_STEP_OUT__WHAT_ABORT:
        srun_on_abort(srun, node, out->abort);
        break;
    default:
        break;
    }
    node->unacked_bytes += 128;
    if (node->unacked_bytes >= SRUN_ACK_BYTES || node->over)
        send_ack(node);
}

/* ---- connections ---- */

bool srun_may_return(enum err_code code)
{
    return code == ERR_OK || code == ERR_CONNECTION_LOST || code == ERR_UNREACHABLE ||
           code == ERR_SHUTTING_DOWN || code == ERR_DEADLINE || code == ERR_CANCELLED;
}

static void give_up(struct srun *srun, struct srun_node *node, const char *why)
{
    node->over = true;
    node->away_us = 0;
    srun_drop_relays(srun, node);
    srun->failed = true;
    cli_error(&srun->cli, "Node failure on %s: %s", node->node->name, why);
    for (size_t i = 0; i < node->node->n_tasks; i++) {
        struct srun_task *task = &srun->tasks[node->node->tasks[i]];
        srun->exited += !task->exited;
        task->exited = true;
    }
    if (!srun->killing && !srun->request.spec->no_kill)
        srun_end_step(srun, JOB_NODE_FAIL, SRUN_FORCE_WAIT_S);
}

/* The stream ended before the node said that all is over. */
static void on_lost(struct srun *srun, struct srun_node *node, const struct err *err)
{
    client_stream_free(TAKE(node->stream));
    node->attached = false;
    if (node->over)
        return;
    if (node->launched && !srun_may_return(err->code)) {
        give_up(srun, node, err->text[0] ? err->text : "the connection ended");
        return;
    }
    client_free(TAKE(node->client));
    node->away_us = node->retry_us = clock_boot_us();
    node->retry_us += FIRST_RETRY_US;
    node->tries = 0;
}

bool srun_take(struct srun *srun, struct srun_node *node, const struct srun_listener *listener,
               struct arena *arena)
{
    struct err err = { 0 };
    bool any = false;

    client_pump(node->client, &err);
    while (node->stream) {
        ProtobufCMessage *message;
        arena_reset(arena);
        err_clear(&err);
        int next = client_stream_try(node->stream, arena, &message, &err);
        if (next == CLIENT_AGAIN)
            break;
        any = true;
        if (next == CLIENT_MESSAGE)
            listener->message(srun, node, (const RunStepOut *)message, listener->data);
        else
            listener->lost(srun, node, &err);
    }
    return any;
}

void srun_serve_node(struct srun *srun, struct srun_node *node)
{
    static const struct srun_listener listener = { .message = on_message, .lost = on_lost };
    struct arena arena;

    arena_init(&arena);
    while (node->stream && srun_take(srun, node, &listener, &arena))
        ;
    arena_done(&arena);
}

/* ---- again ---- */

static bool has_node(const Job *job, const char *name)
{
    const Allocation *allocation = job->status ? job->status->allocation : NULL;

    for (size_t i = 0; allocation && i < allocation->n_nodes; i++) {
        if (str_eq(allocation->nodes[i]->node, name))
            return true;
    }
    return false;
}

/* (2) */
static bool job_lives(struct srun *srun, const struct srun_node *node)
{
    GetJobRequest request = GET_JOB_REQUEST__INIT;
    const struct srun *of = node->of;
    GetJobReply *reply;
    struct err err = { 0 };

    srun->asked_us = clock_boot_us();
    request.id = arena_printf(&srun->cli.arena, "%u", of->job_id);
    if (cli_call(&srun->cli, "GetJob", &request.base, &get_job_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) < 0)
        return err.code != ERR_INVALID_JOB_ID;
    for (size_t i = 0; i < reply->n_jobs; i++) {
        const JobStatus *status = job_status(reply->jobs[i]);
        if (reply->jobs[i]->id == of->job_id)
            return (status->state == JOB_RUNNING || status->state == JOB_SUSPENDED) &&
                   has_node(reply->jobs[i], node->node ? node->node->name : of->layout->manager);
    }
    return false;
}

static void fill_attach(const struct srun *srun, const struct srun_node *node, StepAttach *attach)
{
    const struct srun *of = node->of;
    size_t index = node->node ? (size_t)(node - srun->nodes) - of->first_node : of->layout->n_nodes;

    attach->has_layout = attach->has_proof = true;
    attach->layout = of->created->layout;
    if (index < of->created->n_proofs)
        attach->proof = of->created->proofs[index];
    attach->has_seen = attach->has_manages = true;
    attach->seen = node->seen;
    attach->manages = node->manager;
}

static void try_again(struct srun *srun, struct srun_node *node, int64_t now)
{
    RunStepIn in = RUN_STEP_IN__INIT;
    StepAttach attach = STEP_ATTACH__INIT;
    struct err err = { 0 };

    node->tries++;
    node->retry_us = now + MIN((int64_t)FIRST_RETRY_US << MIN(node->tries, 5U), LAST_RETRY_US);
    node->client = srun_connect(srun, node, &err);
    fill_attach(srun, node, &attach);
    in.what_case = RUN_STEP_IN__WHAT_ATTACH;
    in.attach = &attach;
    if (node->client)
        node->stream = srun_open_stream(node->client, &in, &err);
    if (!node->stream) {
        client_free(TAKE(node->client));
        return;
    }
    node->acked = node->seen;
    node->unacked_bytes = 0;
}

int64_t srun_reconnect(struct srun *srun)
{
    int64_t now = clock_boot_us(), next = 0;

    for (size_t i = 0; i < srun->node_count; i++) {
        struct srun_node *node = &srun->nodes[i];
        if (!node->away_us || node->over)
            continue;
        if (node->stream && (node->attached || !node->launched)) { /* it is back */
            node->away_us = 0;
            continue;
        }
        if (!node->stream && now >= node->retry_us)
            try_again(srun, node, now);
        if (!node->said_away && now - node->away_us > SAY_AWAY_US && node->node) {
            node->said_away = true;
            cli_error(&srun->cli, "%s: connection lost, trying to go on with %s", node->node->name,
                      srun_step_name(srun));
        }
        if (node->launched && now - node->away_us > ASK_US && now - srun->asked_us > ASK_US &&
            !job_lives(srun, node)) {
            client_stream_free(TAKE(node->stream));
            give_up(srun, node, "the job has ended or lost the node");
            continue;
        }
        if (!next || node->retry_us < next)
            next = MAX(node->retry_us, now + FIRST_RETRY_US);
    }
    return next;
}
