/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_book.c - the managing node's book: shares of the allocation, kept over a restart, and proofs
 *
 * A share belongs to a stream of srun and ends with it; srun may be away for a while. Its layout is in
 * a file, so that the next spurd knows of it. Who gets one is decided in step_ask.c.
 */
#include "spurd/step/step_book.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "spurd/access/access.h"
#include "sys/files.h"
#include "sys/log.h"

enum { SHARE_BYTES = 16 * 1024 * 1024, MANAGER_JUMP = 10000 };

char *step_counter_path(const struct agent *agent, uint32_t job, uint32_t attempt)
{
    return mem_printf("%s/steps/%u.%u", agent->spool_dir, job, attempt);
}

static char *share_path(const struct share *share)
{
    return mem_printf("%s/book/%u.%u.%u", share->agent->run_dir, share->book->job,
                      share->book->attempt, share->step);
}

struct book *step_book_of(struct agent *agent, const struct attempt *held)
{
    uint64_t key = attempt_key(held->job, held->attempt);
    CLEANUP(freep) char *path = step_counter_path(agent, held->job, held->attempt);
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

struct book *step_book_find(const struct agent *agent, uint32_t job, uint32_t attempt)
{
    return map_get_num(&agent->steps->books, attempt_key(job, attempt));
}

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

void step_share_free(struct share *share, bool for_good)
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
struct share *step_share_new(struct agent *agent, struct book *book, const struct attempt *held,
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

void step_share_write(const struct share *share)
{
    CLEANUP(freep) char *path = share_path(share);
    struct err err = { 0 };

    if (file_write_quick(path, share->packed.data, share->packed.len, 0600, &err) < 0)
        log_warn("step.book", "job=%u step=%u error=%s", share->book->job, share->step, err.text);
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
    step_share_free(share, true);
    step_ask_waiting(agent, book);
}

void step_share_away(struct share *share, unsigned ms)
{
    if (!share->timer) {
        share->timer = NEW(uv_timer_t);
        uv_timer_init(share->agent->uv, share->timer);
        share->timer->data = share;
    }
    uv_timer_start(share->timer, on_away, ms, 0);
}

struct share *step_share_find(const struct book *book, uint32_t step)
{
    for (size_t i = 0; i < book->shares.len; i++) {
        if (book->shares.items[i]->step == step)
            return book->shares.items[i];
    }
    return NULL;
}

void step_book_forget(struct agent *agent, uint32_t job, uint32_t attempt, bool for_good)
{
    struct book *book = step_book_find(agent, job, attempt);

    if (!book || (book->waiting.len && for_good))
        return;
    CLEANUP(freep) char *path = step_counter_path(agent, job, attempt);
    while (book->shares.len)
        step_share_free(book->shares.items[book->shares.len - 1], for_good);
    if (for_good)
        unlink(path);
    map_del_num(&agent->steps->books, attempt_key(job, attempt));
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
    struct attempt *held = attempt_find(&agent->table, job, attempt);
    if (!held || !held->grant || !held->grant->allocation ||
        file_read(path, SHARE_BYTES, &text, NULL) < 0) {
        unlink(path);
        return;
    }
    struct book *book = step_book_of(agent, held);
    ProtobufCBinaryData packed = { text.len, mem_new(text.len + 1) };
    memcpy(packed.data, str_text(&text), text.len);
    struct share *share = step_share_new(agent, book, held, packed);
    if (share)
        step_share_away(share, STEP_FOUND_AWAY_MS);
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
/* ---- proofs and listing ---- */

/*
 * One for each node of the layout and one for ourselves, in the arena; empty for a node whose key we do
 * not have.
 */
ProtobufCBinaryData *step_share_prove(const struct share *share, const Grant *grant,
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

static char *step_name_of(uint32_t step, struct arena *arena)
{
    return step == STEP_INTERACTIVE ? arena_strdup(arena, "interactive")
                                    : arena_printf(arena, "%u", step);
}

void step_book_list(struct agent *agent, const struct attempt *held, bool one, uint32_t step,
                    struct arena *arena, JobStepsReply *out)
{
    struct book *book = step_book_find(agent, held->job, held->attempt);

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
        here->proofs = step_share_prove(share, held->grant, arena, &here->n_proofs);
        out->steps[out->n_steps++] = here;
    }
}
