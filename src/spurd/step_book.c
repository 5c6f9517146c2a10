/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_book.c - the managing node's book: step numbers, shares of the allocation, who waits
 *
 * (1) A number is reserved on disk before anybody hears of it, sixteen at a time: whatever dies, none
 *     is used twice.
 * (2) A share belongs to a stream of srun and ends with it; srun may be away for a while. Its layout is in
 *     a file, so that the next spurd knows of it.
 * (3) Who waits is served in order of arrival; one that does not fit does not hold up a smaller one.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "spurd/step.h"
#include "spurd/step_layout.h"
#include "sys/digest.h"
#include "sys/files.h"
#include "sys/log.h"

enum { RESERVE = 16, SHARE_BYTES = 16 * 1024 * 1024, MANAGER_JUMP = 10000 };
enum { NUMBER_MAX = 0x7fffffff }; /* that srun may ask for */

/* What a step has of the allocation. */
struct share {
    struct agent *agent;
    struct book *book;
    uint32_t step;
    StepLayout *layout;
    ProtobufCBinaryData packed;
    uint32_t *nodes;      /* indexes into the allocation; UINT32_MAX: not of it any more */
    struct step_run *run; /* NULL: srun is away */
    uv_timer_t *timer;
};

/* The steps of one attempt that this node manages. */
struct book {
    uint32_t job, attempt;
    uint32_t next, reserved; /* numbers */
    struct step_used *used;  /* by node of the allocation */
    size_t count;            /* of them */
    VEC(struct share *) shares;
    VEC(struct step_run *) waiting;
};

static char *counter_path(const struct agent *agent, uint32_t job, uint32_t attempt)
{
    return mem_printf("%s/steps/%u.%u", agent->spool_dir, job, attempt);
}

static char *share_path(const struct share *share)
{
    return mem_printf("%s/book/%u.%u.%u", share->agent->run_dir, share->book->job,
                      share->book->attempt, share->step);
}

static struct book *book_of(struct agent *agent, const struct held *held)
{
    uint64_t key = held_key(held->job, held->attempt);
    CLEANUP(freep) char *path = counter_path(agent, held->job, held->attempt);
    CLEANUP(str_done) struct str text = { 0 };
    uint64_t next;

    struct map *books = &agent->steps->books;
    struct book *book = map_get_num(books, key);
    if (book)
        return book;
    book = NEW(struct book);
    book->job = held->job;
    book->attempt = held->attempt;
    book->count = held->grant->allocation->n_nodes;
    book->used = NEW_ARRAY(struct step_used, book->count + 1);
    /* The nodes of a job are taken to be built alike. */
    const NodeSpec *spec = agent->config ? agent->config->spec : NULL;
    for (size_t i = 0; spec && i < book->count; i++) {
        book->used[i].sockets = spec->sockets;
        book->used[i].threads = spec->threads_per_core;
        book->used[i].per_socket = spec->cpus / MAX(spec->sockets, 1);
    }
    if (file_read(path, 64, &text, NULL) == 0 && str_to_u64(str_text(&text), UINT32_MAX, &next))
        book->next = book->reserved = (uint32_t)next;
    else if (held->grant->version > 1 &&
             !str_eq(held->grant->manager, held->grant->allocation->nodes[0]->node))
        /* another node managed it: far above what it may have used */
        book->next = book->reserved = (held->grant->version - 1) * MANAGER_JUMP;
    map_put_num(books, key, book);
    return book;
}

static struct book *find_book(const struct agent *agent, uint32_t job, uint32_t attempt)
{
    return map_get_num(&agent->steps->books, held_key(job, attempt));
}

static void serve_waiting(struct agent *agent, struct book *book);

/* ---- shares ---- */

static void take_share(struct share *share, bool give)
{
    for (size_t i = 0; i < share->layout->n_nodes && !share->layout->overlap; i++) {
        const StepNode *node = share->layout->nodes[i];
        if (share->nodes[i] == UINT32_MAX)
            continue;
        struct step_used *used = &share->book->used[share->nodes[i]];
        used->cpus = give ? used->cpus + node->cpus : used->cpus - MIN(used->cpus, node->cpus);
        used->mem_mb =
            give ? used->mem_mb + node->mem_mb : used->mem_mb - MIN(used->mem_mb, node->mem_mb);
        if (give)
            vec_push(&used->steps, node);
        for (size_t k = give ? 0 : used->steps.len; k-- > 0;) {
            if (used->steps.items[k] == node)
                vec_remove(&used->steps, k);
        }
    }
}

static void free_handle(uv_handle_t *handle)
{
    free(handle);
}

static void share_free(struct share *share, bool for_good)
{
    CLEANUP(freep) char *path = share_path(share);

    for (size_t i = share->book->shares.len; i-- > 0;) {
        if (share->book->shares.items[i] == share)
            vec_remove(&share->book->shares, i);
    }
    if (for_good)
        unlink(path);
    take_share(share, false);
    if (share->run)
        share->run->share = NULL;
    if (share->timer)
        uv_close((uv_handle_t *)share->timer, free_handle);
    step_layout__free_unpacked(share->layout, NULL);
    free(share->packed.data);
    free(share->nodes);
    free(share);
}

/* Takes the bytes, which are a layout's. */
static struct share *share_new(struct agent *agent, struct book *book, const struct held *held,
                               ProtobufCBinaryData packed)
{
    StepLayout *layout = step_layout__unpack(NULL, packed.len, packed.data);
    const Allocation *allocation = held->grant->allocation;

    if (!layout || !layout->id) {
        free(packed.data);
        if (layout)
            step_layout__free_unpacked(layout, NULL);
        return NULL;
    }
    struct share *share = NEW(struct share);
    *share = (struct share){ .agent = agent,
                             .book = book,
                             .step = layout->id->step,
                             .layout = layout,
                             .packed = packed,
                             .nodes = NEW_ARRAY(uint32_t, layout->n_nodes + 1) };
    size_t at = 0;
    for (size_t i = 0; i < layout->n_nodes; i++) {
        share->nodes[i] = UINT32_MAX;
        for (size_t k = 0; k < allocation->n_nodes && share->nodes[i] == UINT32_MAX; k++) {
            size_t index = (at + k) % allocation->n_nodes; /* both are in the same order */
            if (str_eq(allocation->nodes[index]->node, layout->nodes[i]->name)) {
                share->nodes[i] = (uint32_t)index;
                at = index + 1;
            }
        }
    }
    vec_push(&book->shares, share);
    take_share(share, true);
    return share;
}

/* srun did not come back. The share stays while tasks of the step are alive here. */
static void on_away(uv_timer_t *timer)
{
    struct share *share = timer->data;
    struct agent *agent = share->agent;
    struct book *book = share->book;
    struct step_proc *proc = step_proc_find(agent, book->job, book->attempt, share->step);

    if (agent->stopping || share->run)
        return;
    if (proc && !proc->ended) {
        uv_timer_start(timer, on_away, 1000, 0);
        return;
    }
    share_free(share, true);
    serve_waiting(agent, book);
}

static void wait_for_srun(struct share *share, unsigned ms)
{
    if (!share->timer) {
        share->timer = NEW(uv_timer_t);
        uv_timer_init(share->agent->uv, share->timer);
        share->timer->data = share;
    }
    uv_timer_start(share->timer, on_away, ms, 0);
}

static struct share *find_share(const struct book *book, uint32_t step)
{
    for (size_t i = 0; i < book->shares.len; i++) {
        if (book->shares.items[i]->step == step)
            return book->shares.items[i];
    }
    return NULL;
}

void step_book_forget(struct agent *agent, uint32_t job, uint32_t attempt, bool for_good)
{
    struct book *book = find_book(agent, job, attempt);

    if (!book || (book->waiting.len && for_good))
        return;
    CLEANUP(freep) char *path = counter_path(agent, job, attempt);
    while (book->shares.len)
        share_free(book->shares.items[book->shares.len - 1], for_good);
    if (for_good)
        unlink(path);
    map_del_num(&agent->steps->books, held_key(job, attempt));
    vec_done(&book->waiting);
    vec_done(&book->shares);
    for (size_t i = 0; i < book->count; i++)
        vec_done(&book->used[i].steps);
    free(book->used);
    free(book);
}

static void recover_one(struct agent *agent, const char *dir, const char *name)
{
    CLEANUP(freep) char *path = mem_printf("%s/%s", dir, name);
    CLEANUP(str_done) struct str text = { 0 };
    unsigned job, attempt, step;

    if (sscanf(name, "%u.%u.%u", &job, &attempt, &step) != 3)
        return;
    struct held *held = held_find(&agent->table, job, attempt);
    if (!held || !held->grant || !held->grant->allocation ||
        file_read(path, SHARE_BYTES, &text, NULL) < 0) {
        unlink(path);
        return;
    }
    struct book *book = book_of(agent, held);
    ProtobufCBinaryData packed = { text.len, mem_new(text.len + 1) };
    memcpy(packed.data, str_text(&text), text.len);
    struct share *share = share_new(agent, book, held, packed);
    if (share)
        wait_for_srun(share, STEP_FOUND_AWAY_MS);
    else
        unlink(path);
}

void step_book_recover(struct agent *agent)
{
    CLEANUP(freep) char *path = mem_printf("%s/book", agent->run_dir);
    DIR *dir = opendir(path);
    struct dirent *item;

    while (dir && (item = readdir(dir))) {
        if (item->d_name[0] >= '1' && item->d_name[0] <= '9')
            recover_one(agent, path, item->d_name);
    }
    if (dir)
        closedir(dir);
}

/* ---- numbers and proofs ---- */

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
        CLEANUP(freep) char *path = counter_path(agent, book->job, book->attempt);
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

/* Nested, so that nobody can append to what was proved. */
void step_prove(const ProtobufCBinaryData *key, const void *bytes, size_t len,
                uint8_t out[STEP_PROOF_BYTES])
{
    uint8_t inner[DIGEST_BYTES];
    struct digest *digest = digest_begin();

    digest_add(digest, key->data, key->len);
    digest_add(digest, bytes, len);
    digest_end(digest, inner);
    digest = digest_begin();
    digest_add(digest, key->data, key->len);
    digest_add(digest, inner, sizeof(inner));
    digest_end(digest, out);
}

/*
 * One for each node of the layout and one for ourselves, in the arena; empty for a node whose key we do
 * not have.
 */
static ProtobufCBinaryData *prove_all(const struct share *share, const Grant *grant,
                                      struct arena *arena, size_t *count)
{
    size_t n = share->layout->n_nodes;
    ProtobufCBinaryData *out = ARENA_ARRAY(arena, ProtobufCBinaryData, n + 1);

    for (size_t i = 0; i <= n; i++) {
        bool known = i == n || share->nodes[i] < grant->n_step_keys;
        if (!known)
            continue;
        out[i].len = STEP_PROOF_BYTES;
        out[i].data = ARENA_ARRAY(arena, uint8_t, STEP_PROOF_BYTES);
        step_prove(i == n ? &grant->step_key : &grant->step_keys[share->nodes[i]],
                   share->packed.data, share->packed.len, out[i].data);
    }
    *count = n + 1;
    return out;
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
    created.proofs = prove_all(run->share, grant, &arena, &created.n_proofs);
    out.what_case = RUN_STEP_OUT__WHAT_CREATED;
    out.created = &created;
    step_run_send(run, &out);
    arena_done(&arena);
}

static char *step_name_of(uint32_t step, struct arena *arena)
{
    return step == STEP_INTERACTIVE ? arena_strdup(arena, "interactive")
                                    : arena_printf(arena, "%u", step);
}

void step_book_list(struct agent *agent, const struct held *held, bool one, uint32_t step,
                    struct arena *arena, JobStepsReply *out)
{
    struct book *book = find_book(agent, held->job, held->attempt);

    for (size_t i = 0; book && i < book->shares.len; i++) {
        struct share *share = book->shares.items[i];
        if (one && share->step != step)
            continue;
        StepHere *here = ARENA_NEW(arena, StepHere);
        step_here__init(here);
        here->id = ARENA_NEW(arena, StepId);
        step_id__init(here->id);
        here->id->has_job_id = here->id->has_attempt = here->id->has_step = true;
        here->id->job_id = held->job;
        here->id->attempt = held->attempt;
        here->id->step = share->step;
        here->name = step_name_of(share->step, arena);
        here->has_layout = true;
        here->layout.len = share->packed.len;
        here->layout.data = arena_copy(arena, share->packed.data, share->packed.len);
        here->proofs = prove_all(share, held->grant, arena, &here->n_proofs);
        out->steps[out->n_steps++] = here;
    }
}

/* ---- asking ---- */

static void write_share(const struct share *share) /* (2) */
{
    CLEANUP(freep) char *path = share_path(share);
    struct err err = { 0 };

    if (file_write_quick(path, share->packed.data, share->packed.len, 0600, &err) < 0)
        log_warn("step.book", "job=%u step=%u error=%s", share->book->job, share->step, err.text);
}

/* salloc's shell: beside everything, once, with a number that is no step's. */
static int layout_interactive(const struct book *book, const Grant *grant,
                              const StepRequest *request, struct arena *arena, StepLayout *out,
                              uint32_t *picked, struct err *err)
{
    StepRequest own = *request;
    const Allocation *allocation = grant->allocation;

    if (find_share(book, STEP_INTERACTIVE))
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

static int make_layout(struct step_run *run, struct book *book, const struct held *held,
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
static int try_grant(struct step_run *run, struct book *book, const struct held *held,
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
    run->share = share_new(run->agent, book, held, packed);
    run->share->run = run;
    write_share(run->share);
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

void step_book_ask(struct step_run *run, const StepRequest *request)
{
    struct held *held = held_find(&run->agent->table, run->job, run->attempt);
    struct err err = { 0 };

    struct book *book = book_of(run->agent, held);
    if (try_grant(run, book, held, request, &err) == 0)
        return;
    if (err.code == ERR_NODES_BUSY && !request->immediate)
        wait_for_room(run, book, request, &err);
    else
        step_run_fail(run, &err);
}

void step_book_attach(struct step_run *run, const StepAttach *attach)
{
    struct held *held = held_find(&run->agent->table, run->job, run->attempt);

    if (!held || !held->grant || !held->grant->allocation ||
        !str_eq(held->grant->manager, run->agent->name))
        return;
    struct book *book = book_of(run->agent, held);
    struct share *share = find_share(book, run->step);
    if (!share) { /* given by a node that does not manage the job any more */
        ProtobufCBinaryData packed = { attach->layout.len, mem_new(attach->layout.len + 1) };
        memcpy(packed.data, attach->layout.data, attach->layout.len);
        share = share_new(run->agent, book, held, packed);
        if (!share)
            return;
        write_share(share);
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

/* (3) */
static void serve_waiting(struct agent *agent, struct book *book)
{
    struct held *held = held_find(&agent->table, book->job, book->attempt);

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

void step_book_leave(struct step_run *run, bool for_good)
{
    struct agent *agent = run->agent;
    struct book *book = find_book(agent, run->job, run->attempt);

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
        wait_for_srun(share, STEP_AWAY_MS);
        return;
    }
    share_free(share, true);
    serve_waiting(agent, book);
    if (!held_find(&agent->table, run->job, run->attempt))
        step_book_forget(agent, run->job, run->attempt, true);
}
