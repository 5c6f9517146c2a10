/* SPDX-License-Identifier: Apache-2.0 */
/*
 * priority.c - the order of waiting jobs: the sum of factors, each times its weight
 *
 * (1) Numbers are as of the last turn (PriorityCalcPeriod), so that all who ask see the same sum.
 * (2) All jobs age alike, so what they are sorted by is the priority they would have had at a fixed
 *     moment: it does not change while they wait. See job_order_key().
 */
#include <stdlib.h>
#include <string.h>

#include "core/policy/policy.h"

/* Ages count from here (2020) in keys; keys are in eighths of a priority. */
#define KEY_BEGIN_S INT64_C(1577836800)
enum { KEY_SCALE = 8, KEY_BITS = 48 };

bool priority_is_basic(const struct state *state)
{
    return state->accounts->basic;
}

uint64_t state_priority_turn(const struct state *state)
{
    return state->priority_turn;
}

/* ---- what partitions have ---- */

static void add_node(struct accounts *accounts, struct part_totals *totals, const struct node *node)
{
    totals->tres[TRES_CPU] += node->cpus;
    totals->tres[TRES_MEM] += node->mem_mb;
    totals->tres[TRES_NODE]++;
    for (size_t k = TRES_FIXED; k < accounts->tres_count; k++) {
        const struct tres *tres = &accounts->tres[k];
        for (size_t g = 0; g < node->gres_count && tres->kind == TRES_IS_GRES; g++) {
            if (str_eq(tres->what, node->gres[g].name) &&
                (!tres->type || str_eq(tres->type, node->gres[g].type)))
                totals->tres[k] += node->gres[g].total;
        }
    }
}

static uint64_t bill(const struct accounts *accounts, const struct part_totals *totals,
                     const uint64_t *tres)
{
    uint64_t sum = 0, most = 0;

    for (size_t k = 0; k < accounts->tres_count; k++) {
        enum tres_kind kind = accounts->tres[k].kind;
        uint64_t unit = kind == TRES_IS_MEM ? UINT64_C(1024) * 1000 : 1000;
        uint64_t one = (uint64_t)((unsigned __int128)tres[k] * totals->weights[k] * 1000 / unit);
        bool on_node = kind == TRES_IS_CPU || kind == TRES_IS_MEM || kind == TRES_IS_GRES;
        if (accounts->flags & PRIO_MAX_TRES_GRES)
            on_node = kind == TRES_IS_CPU || kind == TRES_IS_MEM;
        if (accounts->flags & (PRIO_MAX_TRES | PRIO_MAX_TRES_GRES) && on_node)
            most = MAX(most, one);
        else
            sum += one;
    }
    return (sum + most) / 1000;
}

static const struct part_totals *totals_of(const struct state *state,
                                           const struct partition *partition)
{
    struct accounts *accounts = state->accounts;

    if (accounts->totals_generation == state->generation &&
        partition->number < accounts->totals.len)
        return &accounts->totals.items[partition->number];
    vec_clear(&accounts->totals);
    accounts->top_part = 0;
    accounts->cluster_cpus = accounts->cluster_nodes = 0;
    accounts->whole = (struct part_totals){ 0 };
    vec_each (struct node *, at, &state->nodes) {
        accounts->cluster_cpus += (*at)->cpus;
        accounts->cluster_nodes++;
        add_node(accounts, &accounts->whole, *at);
    }
    vec_each (struct partition *, at, &state->partitions) {
        struct part_totals totals = { 0 };
        bitset_each (number, &(*at)->nodes)
            add_node(accounts, &totals, state->nodes.items[number]);
        tres_weights(accounts, (*at)->spec->tres_billing_weights, totals.weights,
                     &totals.has_weights);
        if (totals.has_weights)
            totals.tres[TRES_BILLING] = bill(accounts, &totals, totals.tres);
        else
            totals.tres[TRES_BILLING] = totals.tres[TRES_CPU];
        accounts->top_part = MAX(accounts->top_part, (*at)->spec->priority_job_factor);
        vec_push(&accounts->totals, totals);
    }
    accounts->totals_generation = state->generation;
    return &accounts->totals.items[partition->number];
}

uint64_t total_of(const struct state *state, const struct partition *partition, size_t tres)
{
    const struct tres *what = &state->accounts->tres[tres];

    if (what->kind == TRES_IS_LICENSE) {
        const struct licence *licence = state_licence(state, what->what);
        return licence ? licence->total : 0;
    }
    if (!state->partitions.len)
        return 0;
    const struct part_totals *totals =
        totals_of(state, partition ? partition : state->partitions.items[0]);
    if (!partition)
        totals = &state->accounts->whole;
    return tres == TRES_BILLING && !partition ? totals->tres[TRES_CPU] : totals->tres[tres];
}

uint64_t billing_of(const struct state *state, const struct partition *partition,
                    const uint64_t *tres)
{
    const struct part_totals *totals = partition ? totals_of(state, partition) : NULL;

    return totals && totals->has_weights ? bill(state->accounts, totals, tres) : tres[TRES_CPU];
}

bool partition_has_weights(const struct state *state, const struct partition *partition)
{
    return partition && totals_of(state, partition)->has_weights;
}

uint64_t partition_billing(const struct state *state, const struct partition *partition)
{
    return totals_of(state, partition)->tres[TRES_BILLING];
}

/* ---- factors ---- */

static uint64_t fraction(uint64_t part, uint64_t of)
{
    return of ? (uint64_t)(((unsigned __int128)MIN(part, of) << 32) / of) : 0;
}

/* Rounded to the nearest. */
static int64_t part_of(uint32_t weight, uint64_t factor)
{
    return (int64_t)((weight * factor + FRACTION / 2) >> 32);
}

static int64_t max_age_s(const struct state *state)
{
    return state->config->priority_max_age_s > 0 ? state->config->priority_max_age_s
                                                 : INT64_C(7) * 86400;
}

int64_t job_accrues_us(const struct state *state, const struct job *job)
{
    return state->accounts->flags & PRIO_ACCRUE_ALWAYS ? job->submit_us : job->accrue_us;
}

static uint64_t age_factor(const struct state *state, const struct job *job)
{
    int64_t since = job_accrues_us(state, job);
    int64_t age_s = since ? (state->priority_us - since) / US_PER_S : 0;

    return age_s > 0 ? fraction((uint64_t)age_s, (uint64_t)max_age_s(state)) : 0;
}

static uint64_t size_factor(const struct state *state, const struct job *job)
{
    const struct accounts *accounts = state->accounts;
    const struct shape *shape = job->shape;
    uint64_t cpus = shape_cpus(shape), nodes = MAX(shape->min_nodes, 1);
    bool small = state->config->priority_favor_small;
    uint64_t factor;

    if (accounts->flags & PRIO_SIZE_BY_TIME) {
        int64_t limit_s = job->time_limit_s < 0 ? INT64_C(365) * 86400 : job->time_limit_s;
        uint64_t minutes = (uint64_t)MAX(limit_s / 60, 1);
        factor = fraction(cpus, accounts->cluster_cpus * minutes);
    } else {
        factor =
            (fraction(nodes, accounts->cluster_nodes) + fraction(cpus, accounts->cluster_cpus)) / 2;
    }
    return small ? FRACTION - factor : factor;
}

/* With NO_NORMAL_* the value itself times the weight; else of the highest. */
static int64_t weighted(uint64_t value, uint64_t highest, bool raw, uint32_t weight,
                        uint64_t *factor)
{
    *factor = raw ? value << 32 : fraction(value, highest);
    return raw ? (int64_t)(value * weight) : part_of(weight, *factor);
}

static void tres_parts(const struct state *state, const struct job *job,
                       const struct part_totals *totals, struct priority *out)
{
    const struct accounts *accounts = state->accounts;
    struct charge asked;

    if (!accounts->has_weight_tres)
        return;
    charge_asked(state, job, 0, &asked);
    for (size_t k = 0; k < accounts->tres_count; k++) {
        uint64_t weight = accounts->weight_tres[k] / 1000;
        if (accounts->tres[k].kind == TRES_IS_MEM)
            weight /= 1024;
        bool raw = accounts->flags & PRIO_RAW_TRES;
        out->tres_part[k] = weighted(asked.tres[k], totals ? totals->tres[k] : 0, raw,
                                     (uint32_t)MIN(weight, UINT32_MAX), &out->tres_factor[k]);
        out->tres_total += out->tres_part[k];
    }
}

/* The partition that is best for it. */
static const struct partition *best_partition(const struct state *state, const struct job *job)
{
    const struct partition *best = NULL;

    for (size_t i = 0; i < job->shape->partition_count; i++) {
        const struct partition *at = partition_at(state, job->shape->partitions[i]);
        if (at && (!best || at->spec->priority_job_factor > best->spec->priority_job_factor))
            best = at;
    }
    return best;
}

static int64_t sum_of(const struct priority *priority)
{
    int64_t sum = priority->tres_total - priority->nice;

    for (size_t i = 0; i < PRIO_FACTORS; i++)
        sum += priority->part[i];
    return sum;
}

void job_priority_of(const struct state *state, const struct job *job, struct priority *out)
{
    job_priority_in(state, job, best_partition(state, job), out);
}

void job_priority_in(const struct state *state, const struct job *job,
                     const struct partition *partition, struct priority *out)
{
    struct accounts *accounts = state->accounts;
    const Config *config = state->config;
    const struct part_totals *totals = partition ? totals_of(state, partition) : NULL;

    memset(out, 0, sizeof(*out));
    bool stays = job->run && (job_has_ended(job) || !(accounts->flags & PRIO_RUNNING));
    if (accounts->basic || job->direct_priority || stays) {
        out->direct = true;
        out->total = job->priority;
        return;
    }
    out->factor[PRIO_AGE] = age_factor(state, job);
    out->part[PRIO_AGE] = part_of(config->weight_age, out->factor[PRIO_AGE]);
    out->factor[PRIO_FAIRSHARE] = job_assoc(job) ? job_assoc(job)->factor : 0;
    out->part[PRIO_FAIRSHARE] = part_of(config->weight_fairshare, out->factor[PRIO_FAIRSHARE]);
    out->factor[PRIO_JOB_SIZE] = totals ? size_factor(state, job) : 0;
    out->part[PRIO_JOB_SIZE] = part_of(config->weight_job_size, out->factor[PRIO_JOB_SIZE]);
    out->part[PRIO_ASSOC] =
        weighted(job_assoc(job) ? job_assoc(job)->priority : 0, accounts->top_assoc,
                 accounts->flags & PRIO_RAW_ASSOC, config->weight_assoc, &out->factor[PRIO_ASSOC]);
    out->part[PRIO_QOS] =
        weighted(job_qos(job) ? job_qos(job)->priority : 0, accounts->top_qos,
                 accounts->flags & PRIO_RAW_QOS, config->weight_qos, &out->factor[PRIO_QOS]);
    out->part[PRIO_PARTITION] = weighted(partition ? partition->spec->priority_job_factor : 0,
                                         accounts->top_part, accounts->flags & PRIO_RAW_PART,
                                         config->weight_partition, &out->factor[PRIO_PARTITION]);
    out->part[PRIO_SITE] = job->more ? job->more->site_factor : 0;
    tres_parts(state, job, totals, out);
    out->nice = job->nice;
    out->total = (uint32_t)MIN(MAX(sum_of(out), 1), INT64_C(4294901760));
}

uint32_t job_priority(const struct state *state, const struct job *job)
{
    struct priority priority;

    job_priority_of(state, job, &priority);
    return priority.total;
}

/* ---- the order ---- */

/* What the age of a job that began to wait then is worth less, in keys. */
static int64_t age_key(const struct state *state, int64_t since_us)
{
    __int128 since_s = since_us / US_PER_S - KEY_BEGIN_S;

    return (int64_t)(since_s * state->config->weight_age * KEY_SCALE / max_age_s(state));
}

/* Too steep for keys that stay the same: then they are the priority, and all change each turn. */
static bool is_steep(const struct state *state)
{
    return (__int128)state->config->weight_age * KEY_SCALE * (INT64_C(1) << 33) /
               max_age_s(state) >=
           INT64_C(1) << (KEY_BITS - 2);
}

static uint64_t order_key(const struct state *state, const struct job *job,
                          const struct partition *partition, bool own)
{
    struct priority priority;
    const int64_t middle = INT64_C(1) << (KEY_BITS - 1);
    int64_t key;

    job_priority_in(state, job, partition ? partition : best_partition(state, job), &priority);
    if (state->accounts->basic)
        return priority.total;
    if (own && !priority.direct) {
        priority.total -= (uint32_t)MIN(priority.part[PRIO_FAIRSHARE], priority.total);
        priority.part[PRIO_FAIRSHARE] = 0;
    }
    if (is_steep(state))
        return (uint64_t)priority.total;
    int64_t since = job_accrues_us(state, job);
    if (priority.direct)
        key = (int64_t)priority.total * KEY_SCALE - age_key(state, state->priority_us);
    else if (priority.factor[PRIO_AGE] >= FRACTION || !since)
        key = sum_of(&priority) * KEY_SCALE - age_key(state, state->priority_us);
    else
        key = (sum_of(&priority) - priority.part[PRIO_AGE]) * KEY_SCALE - age_key(state, since);
    return (uint64_t)MIN(MAX(key + middle, 0), (INT64_C(1) << KEY_BITS) - 1);
}

uint64_t job_order_key(const struct state *state, const struct job *job)
{
    return order_key(state, job, NULL, false);
}

uint64_t job_order_key_in(const struct state *state, const struct job *job,
                          const struct partition *partition, bool own)
{
    return order_key(state, job, partition, own);
}
