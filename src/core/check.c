/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - does every invariant hold?
 *
 * Everything that follows from the records is worked out again and compared.
 */
#include "core/apply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong(struct err *err, const char *fmt, const char *name, uint64_t number)
{
    char text[200];

    snprintf(text, sizeof(text), fmt, name, (unsigned long long)number);
    return err_set(err, ERR_INTERNAL, "core: %s", text);
}

/* What jobs hold on a node, added up. */
struct use {
    struct bitset cpus;
    unsigned *shares;
    uint64_t mem, gres[TAKE_GRES];
    uint32_t active;
};

static int add_part(const struct node *node, const struct job *job, const struct job_part *part,
                    struct use *use, struct err *err)
{
    use->mem += part->mem_mb;
    use->active += !job->run->lent;
    bitset_each (cpu, &part->cpu_ids) {
        if (cpu >= node->cpu_span || job->run->lent)
            break;
        if (bitset_has(&use->cpus, cpu) && !(job->run->shared && use->shares[cpu]))
            return wrong(err, "node %s: CPU given twice, job %llu", node->spec->name, job->id);
        bitset_add(&use->cpus, cpu);
        use->shares[cpu] += job->run->shared;
    }
    for (size_t g = 0; g < part->gres_count; g++) {
        for (size_t k = 0; k < node->gres_count; k++) {
            if (str_eq(part->gres[g].name, node->gres[k].name) &&
                str_eq(part->gres[g].type, node->gres[k].type))
                use->gres[k] += part->gres[g].count;
        }
    }
    return 0;
}

static int add_job(const struct state *state, const struct node *node, const struct job *job,
                   struct use *use, struct err *err)
{
    const char *name = node->spec->name;
    unsigned parts = 0;

    if (job_at(state, job->id) != job || !job->run)
        return wrong(err, "node %s lists job %llu that is not there", name, job->id);
    for (unsigned i = 0; i < job->run->count; i++) {
        if (job->run->parts[i].node != node)
            continue;
        parts++;
        int code = add_part(node, job, &job->run->parts[i], use, err);
        if (code < 0)
            return code;
    }
    if (parts != 1)
        return wrong(err, "node %s: job %llu holds not one part", name, job->id);
    if (job->run->whole_nodes && !job->run->lent && node->jobs_active > 1)
        return wrong(err, "node %s is not job %llu's alone", name, job->id);
    return 0;
}

/* Besides those that the system has. */
static bool same_cpus(const struct node *node, const struct bitset *held)
{
    struct bitset cpus;

    bitset_init_copy(&cpus, held);
    if (node->kept.words)
        bitset_minus(&cpus, &node->kept);
    bool same = bitset_count(&cpus) == node->cpus_used;
    if (node->kept.words)
        bitset_or(&cpus, &node->kept);
    same = same && bitset_eq(&cpus, &node->cpu_ids);
    bitset_done(&cpus);
    return same;
}

static int compare_use(const struct node *node, const struct use *use, struct err *err)
{
    const char *name = node->spec->name;

    if (!same_cpus(node, &use->cpus))
        return wrong(err, "node %s: CPUs in use are not what jobs hold (%llu)", name,
                     node->cpus_used);
    if (use->active != node->jobs_active)
        return wrong(err, "node %s: %llu jobs are counted as active", name, node->jobs_active);
    if (use->mem != node->mem_used_mb)
        return wrong(err, "node %s: memory in use is %llu MB", name, node->mem_used_mb);
    for (size_t k = 0; k < node->gres_count; k++) {
        if (use->gres[k] != node->gres[k].used ||
            (node->gres[k].index.words && bitset_count(&node->gres[k].index) != use->gres[k]))
            return wrong(err, "node %s: generic resources in use are %llu", name, use->gres[k]);
        if (!node->shrunk && node->gres[k].lent.words &&
            bitset_meets(&node->gres[k].index, &node->gres[k].lent))
            return wrong(err, "node %s: a device is both given and shared (%llu)", name, k);
    }
    return 0;
}

static int check_node(const struct state *state, const struct node *node, struct err *err)
{
    struct use use = { .shares = NEW_ARRAY(unsigned, node->cpu_span + 1) };
    int code = 0;

    bitset_init(&use.cpus, node->cpu_span);
    for (size_t i = 0; i < node->jobs.len && code == 0; i++) {
        const struct job *job = node->jobs.items[i];
        if (i > 0 && node->jobs.items[i - 1]->id >= job->id)
            code = wrong(err, "node %s: jobs out of order at %llu", node->spec->name, job->id);
        if (code == 0)
            code = add_job(state, node, job, &use, err);
    }
    if (code == 0)
        code = compare_use(node, &use, err);
    bitset_done(&use.cpus);
    free(use.shares);
    return code;
}

/* Never more than there is, unless the configuration took it away. */
static int check_capacity(const struct node *node, struct err *err)
{
    if (node->shrunk)
        return 0;
    if (node->mem_used_mb > node->mem_mb)
        return wrong(err, "node %s: more memory in use than it has (%llu)", node->spec->name,
                     node->mem_used_mb);
    for (size_t k = 0; k < node->gres_count; k++) {
        if (node->gres[k].used > node->gres[k].total)
            return wrong(err, "node %s: more devices in use than it has (%llu)", node->spec->name,
                         node->gres[k].used);
    }
    return 0;
}

static int check_array(const struct state *state, const struct job *first, struct err *err)
{
    const struct array *array = first->array;
    uint32_t bits[4] = { 0 };
    uint32_t running = 0, unstarted = 0, records = 0;

    for (uint32_t n = 0; n < array->count; n++)
        bits[array_task(array, n)]++;
    if (bits[TASK_WAITING] != array->waiting || bits[TASK_ACTIVE] != array->active ||
        bits[TASK_OK] != array->ok || bits[TASK_FAILED] != array->failed)
        return wrong(err, "array%s %llu: its counts are wrong", "", array->id);
    if ((array_next_waiting(array, 0) < array->count) != (array->waiting > 0))
        return wrong(err, "array%s %llu: its first waiting task is wrong", "", array->id);
    for (const struct job *job = first; job; job = state_job_from(state, (uint64_t)job->id + 1)) {
        if (job->array != array)
            continue;
        enum job_phase phase = job_phase(job);
        records += job != first;
        if (!job->is_task)
            continue;
        running += phase == PHASE_CONFIGURING || phase == PHASE_RUNNING || phase == PHASE_SUSPENDED;
        unstarted += phase == PHASE_PENDING || phase == PHASE_REQUEUING;
        if (job != first && array_record(state, array, job->array_task_id) != job)
            return wrong(err, "array%s: task record %llu is not found", "", job->id);
    }
    if (running != array->running || unstarted != array->unstarted || records != array->records)
        return wrong(err, "array%s %llu: its records are not counted right", "", array->id);
    return 0;
}

static int check_job(const struct state *state, const struct job *job, struct err *err)
{
    enum job_phase phase = job_phase(job);
    unsigned held = 0;

    for (unsigned i = 0; job->run && i < job->run->count; i++)
        held += job->run->parts[i].node != NULL;
    if (job->run && held != job->run->held)
        return wrong(err, "job%s %llu: it does not hold what it counts", "", job->id);
    if (held && (phase == PHASE_PENDING || phase == PHASE_ENDED))
        return wrong(err, "job%s %llu holds nodes in a phase that has none", "", job->id);
    bool cleans = job->run && job->run->epilog == SITE_DUE;
    if (cleans && phase != PHASE_COMPLETING && phase != PHASE_REQUEUING)
        return wrong(err, "job%s %llu waits for an epilog and has not ended", "", job->id);
    if (job->run && job->run->prolog == SITE_DUE && phase != PHASE_CONFIGURING)
        return wrong(err, "job%s %llu waits for a prolog and does not begin", "", job->id);
    if (job->run && job->run->boot == SITE_DUE && phase != PHASE_CONFIGURING)
        return wrong(err, "job%s %llu waits for a reboot and does not begin", "", job->id);
    if (!held && !cleans && (phase == PHASE_COMPLETING || phase == PHASE_REQUEUING))
        return wrong(err, "job%s %llu waits for nodes it does not hold", "", job->id);
    if (phase == PHASE_PENDING && job->run)
        return wrong(err, "job%s %llu is pending with an allocation", "", job->id);
    if (job_is_eligible(job) && (job->hold || job->deps))
        return wrong(err, "job%s %llu is eligible and may not start", "", job->id);
    if (job_has_ended(job) && (!job->end_us || job->deps))
        return wrong(err, "job%s %llu has ended and waits", "", job->id);
    if (job->touched)
        return wrong(err, "job%s %llu: a change was not settled", "", job->id);
    if (job->run && job->run->parts_hash != run_hash_parts(job->run))
        return wrong(err, "job%s %llu: a change of a part was not noted", "", job->id);
    if (job->hash != job_hash(job))
        return wrong(err, "job%s %llu: a change was not touched", "", job->id);
    return job->array && job->array->id == job->id ? check_array(state, job, err) : 0;
}

static int check_jobs(const struct state *state, uint64_t *digest, struct err *err)
{
    size_t phases[PHASE_ENDED + 1] = { 0 }, records = 0, named = 0, due = 0;
    bool small = state->records < 3000; /* chains are walked for each job */
    uint32_t last = 0;

    for (const struct job *job = state_job_from(state, 0); job;
         job = state_job_from(state, (uint64_t)job->id + 1)) {
        int code = check_job(state, job, err);
        if (code < 0)
            return code;
        if (job->id <= last || job->id >= state->next_job_id)
            return wrong(err, "job%s %llu: its id is out of order", "", job->id);
        last = job->id;
        records++;
        due += job->due_at > 0;
        phases[job_phase(job)] += job_is_meta(job) ? job->array->waiting : 1;
        named += !job_has_ended(job);
        if (small && (job_has_ended(job) ? job->name_prev > 0 : !job_name_check(state, job)))
            return wrong(err, "job%s %llu: its name chain is wrong", "", job->id);
        *digest += job->hash;
    }
    if (records != state->records || named != state->name_count || due != timers_count(state))
        return wrong(err, "%s: %llu records are not counted right", "jobs", records);
    if (memcmp(phases, state->by_phase, sizeof(phases)) != 0)
        return wrong(err, "%s are not counted right by phase (%llu)", "jobs", records);
    return 0;
}

int core_check(const struct state *state, struct err *err)
{
    uint64_t digest = 0;
    int code = check_jobs(state, &digest, err);

    vec_each (struct node *, at, &state->nodes) {
        if (code == 0)
            code = check_node(state, *at, err);
        if (code == 0)
            code = check_capacity(*at, err);
        if (code == 0 && (*at)->hash != node_hash(*at))
            code = wrong(err, "node %s: a change was not touched (%llu)", (*at)->spec->name, 0);
        digest += (*at)->hash;
    }
    vec_each (struct partition *, at, &state->partitions)
        digest += partition_hash(*at);
    vec_each (struct reservation *, at, &state->reservations)
        digest += reservation_hash(*at);
    vec_each (struct crontab *, at, &state->crontabs)
        digest += crontab_hash(*at);
    vec_each (struct trigger *, at, &state->triggers)
        digest += trigger_hash(*at);
    map_each (entry, &state->keys)
        digest += key_hash(entry->key, entry->value);
    map_each (entry, &state->revoked)
        digest += revoked_hash(entry->value);
    for (size_t i = 0; i < state->requests.count; i++)
        digest += request_hash(request_at(&state->requests, i));
    vec_each (struct job *, at, &state->suspended_for) {
        if (code == 0 && !suspended_for_is_right(state, *at))
            code = wrong(err, "%s that is suspended could run (%llu)", "a job", (*at)->id);
    }
    if (code == 0)
        code = timers_check(state, err);
    if (code == 0)
        code = deps_check(state, &digest, err);
    if (code == 0)
        code = accounts_check(state, &digest, err);
    if (code == 0 && digest != state->digest)
        code = wrong(err, "%s differs from the records' (%llu)", "digest", state->digest);
    return code < 0 ? code
                    : core_verify(state, err); /* which every kind of record has to be known to */
}
