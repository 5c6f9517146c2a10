/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_book.c - the managing node's book: step numbers, shares of the allocation, who waits
 *
 * (1) A number is reserved on disk before anybody hears of it, sixteen at a time: whatever dies, none
 *     is used twice.
 * (2) A share belongs to a stream of srun and ends with it. Nothing else is remembered, so nothing can
 *     be left over.
 * (3) Who waits is served in order of arrival; one that does not fit does not hold up a smaller one.
 */
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

enum { RESERVE = 16 };

/* The steps of one attempt that this node manages. */
struct book {
    uint32_t job, attempt;
    uint32_t next, reserved; /* numbers */
    struct step_used *used;  /* by node of the allocation */
    VEC(struct step_run *) waiting;
};

static char *counter_path(const struct agent *agent, uint32_t job, uint32_t attempt)
{
    return mem_printf("%s/steps/%u.%u", agent->spool_dir, job, attempt);
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
    book->used = NEW_ARRAY(struct step_used, held->grant->allocation->n_nodes + 1);
    if (file_read(path, 64, &text, NULL) == 0 && str_to_u64(str_text(&text), UINT32_MAX, &next))
        book->next = book->reserved = (uint32_t)next;
    map_put_num(books, key, book);
    return book;
}

static struct book *find_book(const struct agent *agent, uint32_t job, uint32_t attempt)
{
    return map_get_num(&agent->steps->books, held_key(job, attempt));
}

void step_book_forget(struct agent *agent, uint32_t job, uint32_t attempt, bool for_good)
{
    struct book *book = find_book(agent, job, attempt);

    if (!book || book->waiting.len)
        return;
    CLEANUP(freep) char *path = counter_path(agent, job, attempt);
    if (for_good)
        unlink(path);
    map_del_num(&agent->steps->books, held_key(job, attempt));
    vec_done(&book->waiting);
    free(book->used);
    free(book);
}

/* (1) */
static int next_number(struct agent *agent, struct book *book, uint32_t *out, struct err *err)
{
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
void step_prove(const Grant *grant, const void *bytes, size_t len, uint8_t out[STEP_PROOF_BYTES])
{
    uint8_t inner[DIGEST_BYTES];
    struct digest *digest = digest_begin();

    digest_add(digest, grant->step_key.data, grant->step_key.len);
    digest_add(digest, bytes, len);
    digest_end(digest, inner);
    digest = digest_begin();
    digest_add(digest, grant->step_key.data, grant->step_key.len);
    digest_add(digest, inner, sizeof(inner));
    digest_end(digest, out);
}

static void take_share(struct book *book, const struct step_run *run, bool give)
{
    for (size_t i = 0; i < run->layout->n_nodes && !run->overlap; i++) {
        struct step_used *used = &book->used[run->nodes[i]];
        const StepNode *node = run->layout->nodes[i];
        used->cpus = give ? used->cpus + node->cpus : used->cpus - MIN(used->cpus, node->cpus);
        used->mem_mb =
            give ? used->mem_mb + node->mem_mb : used->mem_mb - MIN(used->mem_mb, node->mem_mb);
    }
}

static void send_created(struct step_run *run, const Grant *grant)
{
    RunStepOut out = RUN_STEP_OUT__INIT;
    StepCreated created = STEP_CREATED__INIT;
    uint8_t proof[STEP_PROOF_BYTES];
    size_t len = step_layout__get_packed_size(run->layout);
    CLEANUP(freep) uint8_t *bytes = mem_new(len + 1);

    step_layout__pack(run->layout, bytes);
    step_prove(grant, bytes, len, proof);
    created.has_layout = created.has_proof = true;
    created.layout = (ProtobufCBinaryData){ len, bytes };
    created.proof = (ProtobufCBinaryData){ sizeof(proof), proof };
    out.what_case = RUN_STEP_OUT__WHAT_CREATED;
    out.created = &created;
    step_run_send(run, &out);
}

/* True: it has its share. */
static int try_grant(struct step_run *run, struct book *book, const struct held *held,
                     const StepRequest *request, struct err *err)
{
    const Grant *grant = held->grant;
    const Allocation *allocation = grant->allocation;
    StepLayout layout = STEP_LAYOUT__INIT;
    StepId id = STEP_ID__INIT;
    struct arena arena;

    arena_init(&arena);
    uint32_t *picked = NEW_ARRAY(uint32_t, allocation->n_nodes + 1);
    char *const *addresses = grant->n_addresses == allocation->n_nodes ? grant->addresses : NULL;
    int ret = step_layout(allocation, addresses, book->used, request, &arena, &layout, picked, err);
    if (ret == 0)
        ret = next_number(run->agent, book, &run->step, err);
    if (ret < 0) {
        free(picked);
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
    size_t len = step_layout__get_packed_size(&layout);
    CLEANUP(freep) uint8_t *bytes = mem_new(len + 1);
    step_layout__pack(&layout, bytes);
    run->layout = step_layout__unpack(NULL, len, bytes);
    arena_done(&arena);
    run->nodes = picked;
    run->overlap = request->overlap;
    run->manages = true;
    take_share(book, run, true);
    log_info("step.created", "job=%u attempt=%u step=%u nodes=%zu tasks=%u", held->job,
             held->attempt, run->step, run->layout->n_nodes, run->layout->ntasks);
    send_created(run, grant);
    return 0;
}

static void wait_for_room(struct step_run *run, struct book *book, const StepRequest *request)
{
    RunStepOut out = RUN_STEP_OUT__INIT;
    char words[] = "Requested nodes are busy";
    size_t len = step_request__get_packed_size(request);
    CLEANUP(freep) uint8_t *bytes = mem_new(len + 1);

    step_request__pack(request, bytes);
    run->waiting = step_request__unpack(NULL, len, bytes);
    vec_push(&book->waiting, run);
    out.what_case = RUN_STEP_OUT__WHAT_WAITING;
    out.waiting = words;
    step_run_send(run, &out);
}

void step_book_ask(struct step_run *run, const StepRequest *request)
{
    struct held *held = held_find(&run->agent->table, run->job, run->attempt);
    struct err err = { 0 };

    if (!held || !held->grant || held->revoked) {
        err_code(&err, ERR_INVALID_JOB_ID);
        step_run_fail(run, &err);
        return;
    }
    struct book *book = book_of(run->agent, held);
    if (try_grant(run, book, held, request, &err) == 0)
        return;
    if (err.code == ERR_NODES_BUSY && !request->immediate)
        wait_for_room(run, book, request);
    else
        step_run_fail(run, &err);
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

void step_book_leave(struct step_run *run)
{
    struct book *book = find_book(run->agent, run->job, run->attempt);

    if (run->waiting && book) {
        for (size_t i = book->waiting.len; i-- > 0;) {
            if (book->waiting.items[i] == run)
                vec_remove(&book->waiting, i);
        }
    }
    if (run->waiting)
        step_request__free_unpacked(TAKE(run->waiting), NULL);
    if (!run->manages)
        return;
    run->manages = false;
    if (book) {
        take_share(book, run, false);
        serve_waiting(run->agent, book);
        if (!held_find(&run->agent->table, run->job, run->attempt))
            step_book_forget(run->agent, run->job, run->attempt, true);
    }
}
