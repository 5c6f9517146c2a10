/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_ports.c - --resv-ports: ports of jobs.mpi_ports that a step has for itself on each of its nodes
 *
 * The managing node chooses: not what the other steps of its job have, nor what anybody has on the node
 * itself. It does not know what steps of other jobs have elsewhere; so srun has each node hold the ports
 * before any task starts, and asks for others where a node says that some are taken.
 *
 * (1) A port is taken while a supervisor of its step is here, or while it is held: for HOLD_US at most, in
 *     which srun launches the step.
 * (2) All nodes of a step have the same ports; the search begins elsewhere for each step, so that a port is
 *     not used again at once.
 */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "spurd/access/access.h"
#include "spurd/step/step.h"
#include "sys/clock.h"

enum { PORTS = 65536, HOLD_US = 20 * 1000000, MOST_WORK = 16 * PORTS };

struct port_hold {
    uint32_t job, attempt, step;
    char *ports;
    int64_t until_us;
};

struct ports {
    uint8_t taken[PORTS];
    size_t count;
};

/* "12000-12999,13500"; false: it is no such list. */
static bool read_ports(const char *text, struct ports *out)
{
    struct span word;
    uint64_t work = 0;

    while (text && str_next(&text, ",", &word)) {
        CLEANUP(freep) char *first = mem_strndup(word.ptr, word.len);
        char *dash = strchr(first, '-');
        uint64_t from, to;
        if (dash)
            *dash = '\0';
        if (!str_to_u64(first, PORTS - 1, &from) || from == 0)
            return false;
        to = from;
        if (dash && (!str_to_u64(dash + 1, PORTS - 1, &to) || to < from))
            return false;
        work += to - from + 1;
        if (work > MOST_WORK)
            return false;
        for (uint64_t i = from; i <= to; i++) {
            out->count += !out->taken[i];
            out->taken[i] = 1;
        }
    }
    return true;
}

static void add_ports(struct str *out, const struct ports *ports)
{
    for (unsigned i = 0; i < PORTS;) {
        unsigned run = 0;
        while (i + run < PORTS && ports->taken[i + run])
            run++;
        if (run)
            str_addf(out, "%s%u", out->len ? "," : "", i);
        if (run > 1)
            str_addf(out, "-%u", i + run - 1);
        i += MAX(run, 1U);
    }
}

/* ---- what is taken on this node ---- */

static void drop_hold(struct steps *steps, size_t index)
{
    free(steps->holds.items[index]->ports);
    free(steps->holds.items[index]);
    vec_remove(&steps->holds, index);
}

static bool is_of(uint32_t job, uint32_t attempt, uint32_t step, const StepId *id)
{
    return job == id->job_id && attempt == id->attempt && step == id->step;
}

void step_ports_release(struct agent *agent, uint32_t job, uint32_t attempt, uint32_t step)
{
    for (size_t i = agent->steps->holds.len; i-- > 0;) {
        const struct port_hold *hold = agent->steps->holds.items[i];
        if (hold->job == job && hold->attempt == attempt && hold->step == step)
            drop_hold(agent->steps, i);
    }
}

void step_ports_close(struct agent *agent)
{
    while (agent->steps->holds.len)
        drop_hold(agent->steps, 0);
    vec_done(&agent->steps->holds);
}

/* (1) `but`: not what this step has itself; NULL: everything. */
static void add_taken(struct agent *agent, const StepId *but, struct ports *out)
{
    struct steps *steps = agent->steps;
    int64_t now = clock_boot_us();

    for (size_t i = steps->holds.len; i-- > 0;) {
        const struct port_hold *hold = steps->holds.items[i];
        if (hold->until_us < now)
            drop_hold(steps, i);
        else if (!but || !is_of(hold->job, hold->attempt, hold->step, but))
            read_ports(hold->ports, out);
    }
    for (size_t i = 0; i < steps->procs.len; i++) {
        const struct step_proc *proc = steps->procs.items[i];
        if (proc->layout && !proc->ended &&
            !(but && is_of(proc->job, proc->attempt, proc->step, but)))
            read_ports(proc->layout->resv_ports, out);
    }
}

/* ---- the manager's choice ---- */

/* As many as tasks on any node and one, when no number was given. */
static uint64_t wanted(const StepRequest *request, const StepLayout *layout)
{
    uint64_t most = 0;

    for (size_t i = 0; i < layout->n_nodes; i++)
        most = MAX(most, layout->nodes[i]->n_tasks);
    return request->resv_ports ? request->resv_ports : most + 1;
}

int step_ports(struct agent *agent, const StepRequest *request, const StepLayout *layout,
               StepLayout *const *others, size_t count, uint32_t step, struct arena *arena,
               char **out, struct err *err)
{
    const Config *config = agent_common(agent);
    CLEANUP(freep) struct ports *range = NEW(struct ports);
    CLEANUP(freep) struct ports *taken = NEW(struct ports);
    CLEANUP(freep) struct ports *chosen = NEW(struct ports);
    CLEANUP(str_done) struct str text = { 0 };
    uint64_t need = wanted(request, layout);

    if (!request->has_resv_ports)
        return 0;
    if (!config || !read_ports(config->tcp_ports, range) || need > range->count)
        return err_code(err, ERR_PORTS_INVALID);
    add_taken(agent, NULL, taken);
    if (!read_ports(request->avoid_ports, taken))
        return err_code(err, ERR_BAD_MESSAGE);
    for (size_t i = 0; i < count; i++)
        read_ports(others[i]->resv_ports, taken);
    unsigned begin = (unsigned)((request->job_id * 7919ULL + step * 101ULL) % PORTS); /* (2) */
    for (unsigned i = 0; i < PORTS && chosen->count < need; i++) {
        unsigned port = (begin + i) % PORTS;
        if (!range->taken[port] || taken->taken[port])
            continue;
        chosen->taken[port] = 1;
        chosen->count++;
    }
    if (chosen->count < need)
        return err_code(err, ERR_PORTS_BUSY);
    add_ports(&text, chosen);
    *out = arena_strdup(arena, str_text(&text));
    return 0;
}

/* ---- holding them on each node ---- */

static void hold(struct agent *agent, const StepLayout *layout)
{
    struct port_hold *new = NEW(struct port_hold);

    *new = (struct port_hold){ .job = layout->id->job_id,
                               .attempt = layout->id->attempt,
                               .step = layout->id->step,
                               .ports = mem_strdup(layout->resv_ports),
                               .until_us = clock_boot_us() + HOLD_US };
    step_ports_release(agent, new->job, new->attempt, new->step);
    vec_push(&agent->steps->holds, new);
}

/* Says what is taken here when something of what the step wants is. */
static void try_hold(struct agent *agent, const StepLayout *layout, struct str *busy)
{
    CLEANUP(freep) struct ports *taken = NEW(struct ports);
    CLEANUP(freep) struct ports *want = NEW(struct ports);
    bool clash = false;

    add_taken(agent, layout->id, taken);
    read_ports(layout->resv_ports, want);
    for (unsigned i = 0; i < PORTS && !clash; i++)
        clash = want->taken[i] && taken->taken[i];
    if (clash)
        add_ports(busy, taken);
    else
        hold(agent, layout);
}

void step_on_hold_ports(struct rpc_call *call, const ProtobufCMessage *message)
{
    const HoldPortsRequest *request = (const void *)message;
    struct agent *agent = rpc_call_ctx(call);
    StepLayout *layout = step_layout__unpack(NULL, request->layout.len, request->layout.data);
    const StepId *id = layout ? layout->id : NULL;
    struct attempt *held = id ? attempt_find(&agent->table, id->job_id, id->attempt) : NULL;
    HoldPortsReply reply = HOLD_PORTS_REPLY__INIT;
    CLEANUP(str_done) struct str busy = { 0 };
    struct err err = { 0 };

    if (!held || !held->grant || held->revoked || !agent->steps)
        err_code(&err, ERR_CREDENTIAL_REVOKED);
    else if (!step_is_proved(held->grant, &request->layout, &request->proof))
        err_code(&err, ERR_CREDENTIAL);
    if (err.code) {
        step_refused(call, "ports", id ? id->job_id : 0, &err);
        rpc_fail(call, &err);
    } else {
        if (request->release)
            step_ports_release(agent, id->job_id, id->attempt, id->step);
        else
            try_hold(agent, layout, &busy);
        reply.busy = busy.len ? busy.data : NULL;
        rpc_reply(call, &reply.base);
    }
    if (layout)
        step_layout__free_unpacked(layout, NULL);
}
