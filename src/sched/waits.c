/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waits.c - jobs that a limit keeps from starting, in lines by owner
 *
 * A job that may not start is taken out of its class and put into the line of its owner. All jobs
 * of a line have the same association, QOS, user and partitions: the same holders count them.
 *
 * (1) All jobs of a line have the same fair share, so they are in order without it and no turn of
 *     the priorities moves them.
 * (2) Jobs of a line that have the same shape are in one bin: mostly the first of it answers for
 *     all of them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "sched/gates.h"

/* ---- lines ---- */

static uint32_t partition_of(const struct sched *sched, const struct job *job, size_t i)
{
    const struct need *needs = shape_needs(sched->state, job->shape);

    return needs[i].partition ? needs[i].partition->number : UINT32_MAX;
}

static uint64_t key_of(const struct sched *sched, const struct job *job)
{
    uint64_t key = hash_mix(job->owner->uid);

    key = hash_mix(key ^ (job_assoc(job) ? job_assoc(job)->holder.number : UINT32_MAX));
    key = hash_mix(key ^ (job_qos(job) ? job_qos(job)->index : UINT32_MAX));
    if (job->account)
        key = hash_bytes(job->account, strlen(job->account), key);
    for (size_t i = 0; i < job->shape->partition_count; i++)
        key = hash_mix(key ^ partition_of(sched, job, i));
    return key;
}

static bool is_of(const struct sched *sched, const struct waiting *line, const struct job *job)
{
    bool same = line->uid == job->owner->uid && line->assoc == job_assoc(job) &&
                line->qos == job_qos(job) && str_eq(line->account, job->account) &&
                line->partition_count == job->shape->partition_count;

    for (size_t i = 0; same && i < line->partition_count; i++)
        same = line->partitions[i] == partition_of(sched, job, i);
    return same;
}

static struct waiting *line_new(struct sched *sched, const struct job *job, uint64_t key)
{
    struct waiting *line = NEW(struct waiting);

    *line = (struct waiting){ .key = key,
                              .assoc = job_assoc(job),
                              .qos = job_qos(job),
                              .uid = job->owner->uid,
                              .rules = sched->rules,
                              .account = mem_strdup(job->account),
                              .partition_count = job->shape->partition_count };
    line->partitions = NEW_ARRAY(uint32_t, line->partition_count);
    for (size_t i = 0; i < line->partition_count; i++)
        line->partitions[i] = partition_of(sched, job, i);
    if (sched->free_lines.len) {
        line->number = sched->free_lines.items[--sched->free_lines.len];
        sched->waits.items[line->number] = line;
    } else {
        line->number = (uint32_t)sched->waits.len;
        vec_push(&sched->waits, line);
    }
    line->same = map_put_num(&sched->wait_keys, key, line);
    return line;
}

uint32_t waits_line(struct sched *sched, const struct job *job)
{
    uint64_t key = key_of(sched, job);
    struct waiting *line = map_get_num(&sched->wait_keys, key);

    while (line && !is_of(sched, line, job))
        line = line->same;
    return (line ? line : line_new(sched, job, key))->number + 1;
}

bool waits_is_of(const struct sched *sched, uint32_t line, const struct job *job)
{
    return is_of(sched, sched->waits.items[line - 1], job);
}

bool bin_open(const struct sched *sched, struct bin *bin)
{
    struct family *family = bin->family;
    uint32_t head = line_head(&bin->jobs).id;

    if (bin->open_at && bin->keyed == head && bin->keyed_turn == sched->turn)
        return false;
    bin->keyed = head;
    bin->keyed_turn = sched->turn;
    if (!bin->open_at)
        bin->side = family->open_side;
    heap_set(&family->opens[bin->side], &bin->open_at, family,
             class_order(sched, state_job(sched->state, head)));
    return true;
}

void bin_shut(struct bin *bin)
{
    heap_del(&bin->family->opens[bin->side], &bin->open_at);
}

static void bin_free(struct bin *bin)
{
    bin_shut(bin);
    line_done(&bin->jobs);
    free(bin);
}

static void line_free(struct waiting *line)
{
    hangs_free(line);
    vec_each (struct bin_at, at, &line->bins)
        bin_free(at->bin);
    vec_done(&line->bins);
    vec_done(&line->families);
    vec_done(&line->heads);
    free(line->account);
    free(line->partitions);
    free(line);
}

void line_tidy(struct sched *sched, struct waiting *line)
{
    struct waiting *chain = map_get_num(&sched->wait_keys, line->key);

    if (line->bins.len || line->outs || line->review)
        return;
    line_renew(sched, line);
    if (chain == line && line->same) {
        map_put_num(&sched->wait_keys, line->key, line->same);
    } else if (chain == line) {
        map_del_num(&sched->wait_keys, line->key);
    } else {
        while (chain->same != line)
            chain = chain->same;
        chain->same = line->same;
    }
    sched->waits.items[line->number] = NULL;
    vec_push(&sched->free_lines, line->number);
    line_free(line);
}

static size_t bin_index(const struct waiting *line, const struct family *family)
{
    size_t at = 0;

    while (at < line->families.len && line->families.items[at] != family)
        at++;
    return at;
}

/* All jobs of a family ask for the same. */
void family_charge(const struct sched *sched, struct family *family, const struct job *job)
{
    struct charge charge;

    if (family->charge && family->charge_rules == sched->rules)
        return;
    charge_asked(sched->state, job, 0, &charge);
    family->charge_rules = sched->rules;
    if (!family->charge)
        family->charge = NEW_ARRAY(uint64_t, TRES_MOST);
    memcpy(family->charge, charge.tres, sizeof(charge.tres));
}

static struct bin *bin_new(struct waiting *line, struct family *family)
{
    struct bin *bin = NEW(struct bin);

    bin->family = family;
    bin->line = line;
    bin->shortest_us = INT64_MAX;
    return bin;
}

void waits_put(struct sched *sched, uint32_t number, const struct class *class, struct order order)
{
    struct waiting *line = number ? sched->waits.items[number - 1] : NULL;

    if (!line)
        return;
    size_t at = bin_index(line, class->family);
    if (at == line->bins.len) {
        struct bin *made = bin_new(line, class->family);
        family_charge(sched, class->family, state_job(sched->state, order.id));
        vec_push(&line->bins,
                 (struct bin_at){ .family = class->family, .bin = made, .shut = true });
        vec_push(&line->families, class->family);
        vec_push(&line->heads, ORDER_LAST);
    }
    struct bin *bin = line->bins.items[at].bin;
    line_put(&bin->jobs, order);
    line->heads.items[at] = line_head(&bin->jobs);
    bin->shortest_us = MIN(bin->shortest_us, class->limit_us);
    line->bins.items[at].shortest_us = bin->shortest_us;
    if (bin->open_at)
        bin_open(sched, bin);
    if (order_before(order, line->head) || (line->bins.len == 1 && line->head.id != order.id)) {
        line->head = line->bins.len == 1 ? line->heads.items[0] : order;
        line->first = (struct order){ 0, 0 };
    }
}

void waits_del(struct sched *sched, uint32_t number, const struct class *class, struct order order)
{
    struct waiting *line = number ? sched->waits.items[number - 1] : NULL;
    size_t at = line ? bin_index(line, class->family) : 0;

    if (!line || at == line->bins.len)
        return;
    struct bin_at *place = &line->bins.items[at];
    line_del(&place->bin->jobs, order);
    line->heads.items[at] = line_head(&place->bin->jobs);
    if (!place->bin->jobs.count) {
        bin_free(place->bin);
        *place = line->bins.items[--line->bins.len];
        line->families.items[at] = line->families.items[--line->families.len];
        line->heads.items[at] = line->heads.items[--line->heads.len];
    } else if (place->bin->open_at) {
        bin_open(sched, place->bin);
    }
    if (!line->bins.len)
        gate_unhang(line, 0, FOR_OVER);
    if (line->head.id == order.id) {
        line->head = ORDER_LAST;
        line->first = (struct order){ 0, 0 };
        vec_each (struct order, other, &line->heads)
            line->head = order_before(*other, line->head) ? *other : line->head;
    }
    line_tidy(sched, line);
}

struct order line_first(const struct sched *sched, struct waiting *line)
{
    if (!line->bins.len)
        return ORDER_LAST;
    if (!line->first.id || line->first_turn != sched->turn) {
        line->first = class_order(sched, state_job(sched->state, line->head.id));
        line->first_turn = sched->turn;
    }
    return line->first;
}

void line_hang(struct sched *sched, struct waiting *line, const struct family *family,
               const struct limit_hit *hit)
{
    size_t count;
    int64_t most = (int64_t)MIN(hit->most, (uint64_t)INT64_MAX / 2);

    if (line->partition_count > 1 || hit->is == LIMIT_OTHER) {
        gate_hang(sched, line, hit->holder, FOR_ANY, 0);
    } else if (hit->is == LIMIT_JOBS) {
        gate_hang(sched, line, hit->holder, FOR_JOBS, 1 - most);
    } else {
        size_t tres = (size_t)(hit->tres - state_tres(sched->state, &count));
        gate_hang(sched, line, hit->holder, (unsigned)tres, (int64_t)family->charge[tres] - most);
    }
}

void waits_hit(struct sched *sched, uint32_t number, const struct class *class,
               const struct limit_hit *hit, bool over)
{
    struct waiting *line = sched->waits.items[number - 1];

    line_renew(sched, line);
    if (over) {
        line->over_at = sched->falls;
        gate_hang(sched, line, hit->holder, FOR_OVER, 0);
    } else if (!line->outs) { /* else it is looked at soon */
        line_hang(sched, line, class->family, hit);
    }
}

bool waits_done_some(struct sched *sched, unsigned *budget)
{
    while (sched->waits.len && *budget) {
        struct waiting *line = sched->waits.items[--sched->waits.len];
        budget_take(budget, 1 + (line ? line->bins.len : 0));
        if (line)
            line_free(line);
    }
    return !sched->waits.len;
}

void waits_done(struct sched *sched)
{
    vec_each (struct waiting *, line, &sched->waits) {
        if (*line)
            line_free(*line);
    }
    vec_done(&sched->waits);
    vec_done(&sched->free_lines);
    vec_done(&sched->line_reviews);
    vec_done(&sched->woken);
    map_done(&sched->wait_keys);
    gates_done(sched);
}
