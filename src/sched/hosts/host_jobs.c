/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_jobs.c - jobs that run on a host, and what is kept free there for others
 */
#include "base/must.h"
#include "sched/hosts/hosts.h"

/* ---- running jobs ---- */

int64_t job_runs_until(const struct job *job)
{
    int64_t start = job->run->start_us + job->run->suspended_total_us;
    int64_t end = job_end_by(job, start);

    if (job_has_ended(job) || job->flags & JOB_FLAG_COMPLETING)
        return job->end_us ? job->end_us : start;
    if (job->more && job->more->preempt_end_us)
        return MIN(end, job->more->preempt_end_us);
    return end == INT64_MAX ? start + UNLIMITED_US : end;
}

static void run_insert(struct host *host, struct host_job run)
{
    size_t at = host->running.len;

    vec_push(&host->running, run);
    for (; at > 0 && host->running.items[at - 1].end_us > run.end_us; at--)
        host->running.items[at] = host->running.items[at - 1];
    host->running.items[at] = run;
}

static size_t run_find(const struct host *host, uint32_t job_id)
{
    size_t at = 0;

    while (at < host->running.len && host->running.items[at].job_id != job_id)
        at++;
    return at;
}

static void part_take(const struct job_part *part, struct take *out)
{
    const struct node *node = part->node;

    *out = (struct take){ .cpus = part->cpus, .mem_mb = part->mem_mb };
    for (size_t i = 0; i < part->gres_count; i++) {
        const struct node_gres *gres = node_gres_at(node, part->gres[i].name, part->gres[i].type);
        if (gres)
            out->gres[gres - node->gres] += part->gres[i].count;
    }
}

static void part_add(struct sched *sched, const struct job *job, const struct job_part *part,
                     int64_t end_us)
{
    struct take take;

    part_take(part, &take);
    if (job->run->lent)
        take.cpus = 0;
    struct amount *amount = amount_take(sched, &take, job->run->whole_nodes && !job->run->lent);
    run_insert(&sched->hosts->list.items[part->node->number],
               (struct host_job){ .end_us = end_us,
                                  .job_id = job->id,
                                  .lent_cpus = job->run->lent ? (uint16_t)part->cpus : 0,
                                  .amount = amount,
                                  .resv = resv_hash(job->run->reservation) });
}

void host_job_add(struct sched *sched, const struct job *job)
{
    int64_t end = job_runs_until(job);

    for (unsigned i = 0; i < job->run->count; i++) {
        const struct job_part *part = &job->run->parts[i];
        if (!part->node)
            continue;
        part_add(sched, job, part, end);
        host_refresh(sched, part->node->number);
    }
}

/* What is of the job, not of the host: once for each. */
static void read_job(struct sched *sched, const struct job *job)
{
    sched->hosts->topo_exclusive = sched->hosts->topo_exclusive || job->shape->exclusive_topo;
    sched->hosts->exclusive =
        sched->hosts->exclusive || job->shape->exclusive_user || job->shape->exclusive_mcs;
    sched->hooks->job_read(sched, job);
}

void host_read_jobs(struct sched *sched, uint32_t number)
{
    struct host *host = &sched->hosts->list.items[number];

    for (size_t i = 0; i < host->running.len; i++)
        amount_drop(sched, host->running.items[i].amount);
    vec_clear(&host->running);
    for (size_t k = 0; k < host->node->jobs.len; k++) {
        const struct job *job = host->node->jobs.items[k];
        bool first = true;
        for (unsigned i = 0; i < job->run->count; i++) {
            const struct job_part *part = &job->run->parts[i];
            if (part->node == host->node) {
                part_add(sched, job, part, job_runs_until(job));
                if (first)
                    read_job(sched, job);
                break;
            }
            first = first && !part->node;
        }
    }
}

/* What it holds is something else now. */
void host_job_again(struct sched *sched, const struct job *job)
{
    for (unsigned i = 0; job->run && i < job->run->count; i++) {
        if (job->run->parts[i].node)
            host_job_del(sched, job->id, job->run->parts[i].node->number);
    }
    if (job->run)
        host_job_add(sched, job);
}

void host_job_end(struct sched *sched, const struct job *job)
{
    int64_t end = job->run ? job_runs_until(job) : 0;

    for (unsigned i = 0; job->run && i < job->run->count; i++) {
        const struct job_part *part = &job->run->parts[i];
        if (!part->node)
            continue;
        struct host *host = &sched->hosts->list.items[part->node->number];
        size_t at = run_find(host, job->id);
        if (at == host->running.len || host->running.items[at].end_us == end)
            continue;
        struct host_job run = host->running.items[at];
        vec_remove(&host->running, at);
        run.end_us = end;
        run_insert(host, run);
        host_summarise(sched, part->node->number);
        if (host->bound)
            host_refresh(sched, part->node->number);
    }
}

void host_job_del(struct sched *sched, uint32_t job_id, uint32_t number)
{
    struct host *host = &sched->hosts->list.items[number];
    size_t at = run_find(host, job_id);

    if (at < host->running.len) {
        amount_drop(sched, host->running.items[at].amount);
        vec_remove(&host->running, at);
    }
    host_refresh(sched, number);
}

/* ---- blocks ---- */

void host_block_put(struct sched *sched, uint32_t number, struct block block)
{
    struct host *host = &sched->hosts->list.items[number];
    size_t at = host->blocks.len;

    MUST(number < sched->hosts->list.len);
    vec_push(&host->blocks, block);
    for (; at > 0 && host->blocks.items[at - 1].start_us > block.start_us; at--)
        host->blocks.items[at] = host->blocks.items[at - 1];
    host->blocks.items[at] = block;
}

void host_block_add(struct sched *sched, uint32_t number, struct block block)
{
    host_block_put(sched, number, block);
    host_blocked(sched, number);
}

size_t host_block_take(struct sched *sched, uint32_t number, uint32_t job_id)
{
    struct host *host = &sched->hosts->list.items[number];
    size_t count = 0;

    for (size_t i = host->blocks.len; i-- > 0;) {
        if (host->blocks.items[i].job_id == job_id) {
            amount_drop(sched, host->blocks.items[i].amount);
            vec_remove(&host->blocks, i);
            count++;
        }
    }
    return count;
}

void host_block_del(struct sched *sched, uint32_t number, uint32_t job_id)
{
    host_block_take(sched, number, job_id);
    host_unblocked(sched, number);
}
