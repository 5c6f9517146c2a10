/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_ask.c - srun asks for a step: its number, its share of the allocation, and who waits for one
 *
 * (1) A number is reserved on disk before anybody hears of it, sixteen at a time: whatever dies, none
 *     is used twice.
 * (2) Who waits is served in order of arrival; one that does not fit does not hold up a smaller one.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spurd/step/step_book.h"
#include "spurd/step/step_layout.h"
#include "spurd/task/task.h"
#include "sys/files.h"
#include "sys/log.h"

enum { RESERVE = 16 };
enum { NUMBER_MAX = 0x7fffffff }; /* that srun may ask for */

/* (1) */
static int next_number(struct agent *agent, struct book *book, uint32_t from, uint32_t *out,
                       struct err *err)
{
    const Config *config = agent_common(agent);

    if (config && config->has_max_step_count && MAX(book->next, from) >= config->max_step_count)
        return err_code(err, ERR_STEP_LIMIT);
    if (from > NUMBER_MAX)
        return err_set(err, ERR_RANGE, "%u is no number of a step", from);
    book->next = MAX(book->next, from);
    if (book->next >= book->reserved) {
        CLEANUP(freep) char *path = step_counter_path(agent, book->job, book->attempt);
        char text[32];
        int len = snprintf(text, sizeof(text), "%u", book->next + RESERVE);
        CLEANUP(file_close) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0 || file_write_all(fd, text, (size_t)len, err) < 0)
            return err_set(err, ERR_DISK_FULL, "the number of the step cannot be written");
        book->reserved = book->next + RESERVE;
    }
    *out = book->next++;
    return 0;
}

static void send_created(struct step_run *run, const Grant *grant)
{
    const Config *config = agent_common(run->agent);
    RunStepOut out = RUN_STEP_OUT__INIT;
    StepCreated created = STEP_CREATED__INIT;
    struct arena arena;

    arena_init(&arena);
    created.has_layout = true;
    created.layout = run->share->packed;
    if (config) {
        created.srun_prolog = config->srun_prolog;
        created.srun_epilog = config->srun_epilog;
        created.has_kill_on_bad_exit = config->has_kill_on_bad_exit;
        created.kill_on_bad_exit = config->kill_on_bad_exit;
        created.has_wait_s = config->has_wait_time_s;
        created.wait_s = config->wait_time_s;
        created.has_kill_wait_s = config->has_kill_wait_s;
        created.kill_wait_s = config->kill_wait_s;
    }
    created.proofs = step_share_prove(run->share, grant, &arena, &created.n_proofs);
    out.what_case = RUN_STEP_OUT__WHAT_CREATED;
    out.created = &created;
    step_run_send(run, &out);
    arena_done(&arena);
}

static int layout_interactive(const struct book *book, const Grant *grant,
                              const StepRequest *request, struct arena *arena, StepLayout *out,
                              uint32_t *picked, struct err *err)
{
    StepRequest own = *request;
    const Allocation *allocation = grant->allocation;

    if (step_share_find(book, STEP_INTERACTIVE))
        return err_set(err, ERR_INVALID, "job %u has an interactive step already", book->job);
    own.has_overlap = own.overlap = true;
    own.exact = false;
    own.has_ntasks = own.has_min_nodes = own.has_max_nodes = true;
    own.ntasks = own.min_nodes = own.max_nodes = 1;
    own.cpus_per_task = 0;
    own.n_gres = own.n_hosts = 0;
    own.ntasks_per_node = 0;
    char *const *addresses = grant->n_addresses == allocation->n_nodes ? grant->addresses : NULL;
    return step_layout(allocation, addresses, book->used, &own, arena, out, picked, err);
}

static int make_layout(struct step_run *run, struct book *book, const struct attempt *held,
                       const StepRequest *request, struct arena *arena, StepLayout *out,
                       struct err *err)
{
    const Grant *grant = held->grant;
    const Allocation *allocation = grant->allocation;
    CLEANUP(freep) uint32_t *picked = NEW_ARRAY(uint32_t, allocation->n_nodes + 1);
    char *const *addresses = grant->n_addresses == allocation->n_nodes ? grant->addresses : NULL;

    if (request->interactive) {
        run->step = STEP_INTERACTIVE;
        return layout_interactive(book, grant, request, arena, out, picked, err);
    }
    int ret = step_layout(allocation, addresses, book->used, request, arena, out, picked, err);
    return ret < 0 ? ret : next_number(run->agent, book, request->step_from, &run->step, err);
}

static int choose_ports(struct step_run *run, const struct book *book, const StepRequest *request,
                        struct arena *arena, StepLayout *layout, struct err *err)
{
    StepLayout **others = ARENA_ARRAY(arena, StepLayout *, book->shares.len);

    for (size_t i = 0; i < book->shares.len; i++)
        others[i] = book->shares.items[i]->layout;
    return step_ports(run->agent, request, layout, others, book->shares.len, run->step, arena,
                      &layout->resv_ports, err);
}

/* 0: it has its share. */
static int try_grant(struct step_run *run, struct book *book, const struct attempt *held,
                     const StepRequest *request, struct err *err)
{
    StepLayout layout = STEP_LAYOUT__INIT;
    StepId id = STEP_ID__INIT;
    struct arena arena;

    arena_init(&arena);
    int ret = make_layout(run, book, held, request, &arena, &layout, err);
    if (ret == 0)
        ret = step_mpi(run->agent, request, (const char **)&layout.mpi, err);
    if (ret == 0)
        ret = step_freq_check(run->agent, request, err);
    if (ret == 0)
        ret = choose_ports(run, book, request, &arena, &layout, err);
    if (ret < 0) {
        arena_done(&arena);
        return ret;
    }
    id.has_job_id = id.has_attempt = id.has_step = true;
    id.job_id = held->job;
    id.attempt = held->attempt;
    id.step = run->step;
    layout.id = &id;
    layout.name = request->name;
    layout.manager = run->agent->name;
    layout.has_overlap = true;
    layout.overlap = request->overlap || request->interactive;
    layout.has_time_limit_s = request->has_time_limit_s;
    layout.time_limit_s = request->time_limit_s;
    layout.host = request->host;
    layout.cpu_freq = request->cpu_freq;
    layout.has_pid = request->has_pid;
    layout.pid = request->pid;
    layout.submit_line = request->submit_line;
    layout.distribution = (char *)step_layout_word(request, &layout);
    ProtobufCBinaryData packed = { step_layout__get_packed_size(&layout), NULL };
    packed.data = mem_new(packed.len + 1);
    step_layout__pack(&layout, packed.data);
    arena_done(&arena);
    run->share = step_share_new(run->agent, book, held, packed);
    run->share->run = run;
    step_share_write(run->share);
    log_verbose("step.created", "job=%u attempt=%u step=%u nodes=%zu tasks=%u", held->job,
                held->attempt, run->step, run->share->layout->n_nodes, run->share->layout->ntasks);
    send_created(run, held->grant);
    return 0;
}

static void wait_for_room(struct step_run *run, struct book *book, const StepRequest *request,
                          const struct err *why)
{
    RunStepOut out = RUN_STEP_OUT__INIT;
    size_t len = step_request__get_packed_size(request);
    CLEANUP(freep) uint8_t *bytes = mem_new(len + 1);

    step_request__pack(request, bytes);
    run->waiting = step_request__unpack(NULL, len, bytes);
    vec_push(&book->waiting, run);
    out.what_case = RUN_STEP_OUT__WHAT_WAITING;
    out.waiting = (char *)why->text;
    step_run_send(run, &out);
}

void step_ask(struct step_run *run, const StepRequest *request)
{
    struct attempt *held = attempt_find(&run->agent->table, run->job, run->attempt);
    struct err err = { 0 };

    struct book *book = step_book_of(run->agent, held);
    if (try_grant(run, book, held, request, &err) == 0)
        return;
    if (err.code == ERR_NODES_BUSY && !request->immediate)
        wait_for_room(run, book, request, &err);
    else
        step_run_fail(run, &err);
}

void step_ask_attach(struct step_run *run, const StepAttach *attach)
{
    struct attempt *held = attempt_find(&run->agent->table, run->job, run->attempt);

    if (!held || !held->grant || !held->grant->allocation ||
        !str_eq(held->grant->manager, run->agent->name))
        return;
    struct book *book = step_book_of(run->agent, held);
    struct share *share = step_share_find(book, run->step);
    if (!share) { /* given by a node that does not manage the job any more */
        ProtobufCBinaryData packed = { attach->layout.len, mem_new(attach->layout.len + 1) };
        memcpy(packed.data, attach->layout.data, attach->layout.len);
        share = step_share_new(run->agent, book, held, packed);
        if (!share)
            return;
        step_share_write(share);
        if (share->step != STEP_INTERACTIVE && share->step >= book->next)
            book->next = book->reserved = share->step + 1;
    }
    if (share->run)
        share->run->share = NULL;
    share->run = run;
    run->share = share;
    if (share->timer)
        uv_timer_stop(share->timer);
}

/* (2) */
void step_ask_waiting(struct agent *agent, struct book *book)
{
    struct attempt *held = attempt_find(&agent->table, book->job, book->attempt);

    for (size_t i = 0; held && held->grant && !held->revoked && i < book->waiting.len;) {
        struct step_run *run = book->waiting.items[i];
        struct err err = { 0 };
        int ret = try_grant(run, book, held, run->waiting, &err);
        if (ret < 0 && err.code == ERR_NODES_BUSY) {
            i++;
            continue;
        }
        vec_remove(&book->waiting, i);
        step_request__free_unpacked(TAKE(run->waiting), NULL);
        if (ret < 0)
            step_run_fail(run, &err);
    }
}

void step_ask_leave(struct step_run *run, bool for_good)
{
    struct agent *agent = run->agent;
    struct book *book = step_book_find(agent, run->job, run->attempt);

    if (run->waiting && book) {
        for (size_t i = book->waiting.len; i-- > 0;) {
            if (book->waiting.items[i] == run)
                vec_remove(&book->waiting, i);
        }
    }
    if (run->waiting)
        step_request__free_unpacked(TAKE(run->waiting), NULL);
    struct share *share = TAKE(run->share);
    if (!share)
        return;
    share->run = NULL;
    if (agent->stopping)
        return; /* its file says it to the next */
    if (!for_good) {
        step_share_away(share, STEP_AWAY_MS);
        return;
    }
    step_share_free(share, true);
    step_ask_waiting(agent, book);
    if (!attempt_find(&agent->table, run->job, run->attempt))
        step_book_forget(agent, run->job, run->attempt, true);
}
