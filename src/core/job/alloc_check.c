/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_check.c - whether a start finds what it was planned with
 *
 * Everything is looked at before alloc_take() changes anything. It never lets a node hold more than it has.
 * What a start names is looked up once: alloc_read() gives a row of parts, each with its node, that lasts as
 * long as the command.
 */
#include <string.h>

#include "base/limits.h"
#include "core/job/alloc.h"
#include "core/resv.h"

static int no_room(struct err *err, const char *node, const char *what)
{
    return err_set(err, ERR_NODES_BUSY, "node %s: %s", node, what);
}

const struct need *alloc_need(const struct state *state, const struct job *job,
                              const char *partition)
{
    const struct need *needs = shape_needs(state, job->shape);

    for (size_t i = 0; i < job->shape->partition_count; i++) {
        if (str_eq(job->shape->partitions[i], partition))
            return &needs[i];
    }
    return NULL;
}

static unsigned shares_of(const struct node *node, size_t cpu)
{
    return node->cpu_shares ? node->cpu_shares[cpu] : 0;
}

bool alloc_cpu_is_free(const struct node *node, size_t cpu, unsigned share)
{
    if (!bitset_has(&node->cpu_ids, cpu))
        return true;
    return share > 1 && shares_of(node, cpu) > 0 && shares_of(node, cpu) < share;
}

void choice_done(struct choice *choice)
{
    bitset_done(&choice->cpus.set);
    bitset_done(&choice->devices.set);
}

/* Without a text: none of them. */
static void read_named(struct named *named, size_t bits, const char *text)
{
    bool fits = named->set.bits == bits && named->set.words;

    text = str_is_empty(text) ? NULL : text;
    if (fits && named->text && text && strcmp(named->text, text) == 0)
        return;
    if (fits) {
        bitset_clear(&named->set);
    } else {
        bitset_done(&named->set);
        bitset_init(&named->set, bits);
    }
    named->text = text;
    named->good = text && bitset_parse(&named->set, text);
}

bool alloc_choose_cpus(const struct node *node, const NodeAlloc *alloc, unsigned share,
                       struct choice *out)
{
    struct named *cpus = &out->cpus;
    size_t found = 0;

    read_named(cpus, node->cpu_span, alloc->cpu_ids);
    if (cpus->text) {
        if (!cpus->good)
            return false;
        if (share <= 1)
            return !(node_has_cpu_ids(node) && bitset_meets(&cpus->set, &node->cpu_ids)) &&
                   bitset_count(&cpus->set) == alloc->cpus;
        bitset_each (cpu, &cpus->set) {
            if (!alloc_cpu_is_free(node, cpu, share))
                return false;
            found++;
        }
        return found == alloc->cpus;
    }
    for (size_t cpu = 0; cpu < node->cpu_span && found < alloc->cpus; cpu++) {
        if (alloc_cpu_is_free(node, cpu, share)) {
            bitset_add(&cpus->set, cpu);
            found++;
        }
    }
    return found == alloc->cpus;
}

/*
 * All shares of a job on a node are of one device, which nobody has for itself; or as many of each
 * of several.
 */
static bool choose_share(const struct node_gres *gres, const struct node_gres *base,
                         const GresAlloc *alloc, struct named *out)
{
    read_named(out, base->index.bits, alloc->index);
    if (out->text) {
        size_t devices = out->good ? bitset_count(&out->set) : 0;
        if (!devices || alloc->count % devices)
            return false;
        bitset_each (device, &out->set) {
            if (bitset_has(&base->index, device) ||
                gres->shares[device] + alloc->count / devices > gres->per)
                return false;
        }
        return true;
    }
    for (size_t device = 0; device < base->index.bits; device++) {
        if (!bitset_has(&base->index, device) && gres->shares[device] + alloc->count <= gres->per) {
            bitset_add(&out->set, device);
            return true;
        }
    }
    return false;
}

bool alloc_choose_devices(const struct node *node, const struct node_gres *gres,
                          const GresAlloc *alloc, struct choice *choice, const struct bitset **out)
{
    const struct node_gres *base = gres_base(node, gres);
    struct named *devices = &choice->devices;
    size_t found = 0;

    *out = base || gres->index.words ? &devices->set : NULL;
    if (alloc->count > gres->total - MIN(gres->used, gres->total))
        return false;
    if (base)
        return choose_share(gres, base, alloc, devices);
    if (!gres->index.words)
        return true;
    read_named(devices, gres->index.bits, alloc->index);
    if (devices->text) {
        return devices->good && bitset_count(&devices->set) == alloc->count &&
               !(gres->used && bitset_meets(&devices->set, &gres->index)) &&
               !(gres->lent.words && bitset_meets(&devices->set, &gres->lent));
    }
    for (size_t i = 0; i < gres->index.bits && found < alloc->count; i++) {
        if (!bitset_has(&gres->index, i) && !(gres->lent.words && bitset_has(&gres->lent, i))) {
            bitset_add(&devices->set, i);
            found++;
        }
    }
    return found == alloc->count;
}

static int check_gres(const struct node *node, const NodeAlloc *alloc, struct choice *choice,
                      struct err *err)
{
    for (size_t i = 0; i < alloc->n_gres; i++) {
        const GresAlloc *want = alloc->gres[i];
        const struct node_gres *gres = node_gres_at(node, want->name, want->type);
        const struct bitset *devices;
        if (!gres)
            return no_room(err, node->spec->name, "it has no such generic resource");
        for (size_t k = 0; k < i; k++) {
            if (node_gres_at(node, alloc->gres[k]->name, alloc->gres[k]->type) == gres)
                return no_room(err, node->spec->name, "a generic resource is named twice");
        }
        if (!alloc_choose_devices(node, gres, want, choice, &devices))
            return no_room(err, node->spec->name, "the generic resources are in use");
    }
    return 0;
}

/* Of those that run there nobody minds the job, and it minds none of them. */
int alloc_check_others(const struct job *job, const struct partition *partition,
                       const struct node *node, struct err *err)
{
    bool by_user = job->shape->exclusive_user || (partition && partition->spec->exclusive_user);

    vec_each (struct job *, at, &node->jobs) {
        const struct job *other = *at;
        if (other->run->lent || other == job)
            continue;
        if ((by_user || other->shape->exclusive_user) && other->owner->uid != job->owner->uid)
            return no_room(err, node->spec->name, "it belongs to another user");
        if ((job->shape->exclusive_mcs || other->shape->exclusive_mcs) &&
            !str_eq(job->shape->mcs_label, other->shape->mcs_label))
            return no_room(err, node->spec->name, "jobs there have another MCS label");
    }
    return 0;
}

static int check_company(const struct job *job, const struct need *need, const struct node *node,
                         struct err *err)
{
    if (need->whole_nodes && node->jobs_active)
        return no_room(err, node->spec->name, "it is not empty");
    if (node->jobs_whole)
        return no_room(err, node->spec->name, "another job has it for itself");
    return alloc_check_others(job, need->partition, node, err);
}

/* MaxCPUsPerNode: what jobs of the partition have there already counts too. */
static bool within_partition(const struct need *need, const struct node *node, uint32_t cpus)
{
    uint64_t used = 0;

    if (!need->max_cpus_per_node && !need->max_cpus_per_socket)
        return true;
    vec_each (struct job *, at, &node->jobs) {
        const struct job_run *run = (*at)->run;
        for (unsigned i = 0; str_eq(run->partition, need->partition->spec->name) && i < run->count;
             i++)
            used += run->parts[i].node == node ? run->parts[i].cpus : 0;
    }
    return used + cpus <= need_cpus(need, node);
}

static int check_part(const struct job *job, const struct need *need, const struct node *node,
                      const NodeAlloc *alloc, struct choice *choice, struct err *err)
{
    if (!node)
        return err_code(err, ERR_INVALID_NODE_NAME);
    if (!node_is_usable(node))
        return err_set(err, ERR_NODE_NOT_AVAIL, "node %s is not available", node->spec->name);
    if (!bitset_has(&need->partition->nodes, node->number))
        return err_code(err, ERR_NODES_NOT_IN_PARTITION);
    if (check_company(job, need, node, err) < 0)
        return -(int)ERR_NODES_BUSY;
    if (alloc->cpus == 0 || !alloc_choose_cpus(node, alloc, need->share, choice))
        return no_room(err, node->spec->name, "the CPUs are in use");
    if (!within_partition(need, node, alloc->cpus))
        return no_room(err, node->spec->name,
                       "jobs of the partition have as many CPUs as they may");
    if (alloc->mem_mb > node->mem_mb - MIN(node->mem_used_mb, node->mem_mb))
        return no_room(err, node->spec->name, "not enough memory is free");
    return check_gres(node, alloc, choice, err);
}

static int check_parts(const struct state *state, const struct job *job, const struct need *need,
                       const struct alloc_parts *parts, struct err *err)
{
    struct choice choice = { 0 };
    struct bitset seen;
    int code = 0;

    bitset_init(&seen, state->nodes.len);
    for (size_t i = 0; i < parts->count && code == 0; i++) {
        const struct node *node = parts->of[i].node;
        code = check_part(job, need, node, parts->of[i].alloc, &choice, err);
        if (code == 0 && bitset_has(&seen, node->number))
            code = no_room(err, node->spec->name, "it is named twice");
        if (code == 0)
            bitset_add(&seen, node->number);
    }
    bitset_done(&seen);
    choice_done(&choice);
    return code;
}

/* ---- what a start names ---- */

/* At most. */
static size_t count_names(const NodeAlloc *alloc)
{
    size_t count = 1 + !str_is_empty(alloc->also);

    for (const char *at = alloc->also; at && (at = strchr(at, ',')); at++)
        count++;
    return count;
}

/* One node, and those after it that have just the same. */
static void read_names(const struct state *state, const NodeAlloc *alloc, struct alloc_parts *out)
{
    struct node *node = node_at(state, alloc->node);

    out->of[out->count++] = (struct alloc_part){ alloc, node };
    for (const char *at = alloc->also; !str_is_empty(at);) {
        size_t len = (size_t)(strchrnul(at, ',') - at);
        node = map_get_len(&state->node_names, at, len);
        out->of[out->count++] = (struct alloc_part){ alloc, node };
        at += len + (at[len] == ',');
    }
}

static void alloc_read(struct state *state, const Allocation *allocation, struct alloc_parts *out)
{
    size_t count = 0;

    for (size_t i = 0; i < allocation->n_nodes; i++)
        count += count_names(allocation->nodes[i]);
    *out = (struct alloc_parts){ ARENA_ARRAY(&state->scratch, struct alloc_part, count + 1), 0 };
    for (size_t i = 0; i < allocation->n_nodes; i++)
        read_names(state, allocation->nodes[i], out);
}

int alloc_check(struct state *state, const struct job *job, const JobStart *start,
                struct alloc_parts *parts, struct err *err)
{
    const Allocation *allocation = start->allocation;

    *parts = (struct alloc_parts){ 0 };
    if (allocation)
        alloc_read(state, allocation, parts);
    if (parts->count == 0 || parts->count > LIMIT_NODES ||
        !shape_takes_nodes(job->shape, parts->count))
        return err_code(err, ERR_NODE_COUNT);
    const struct need *need = alloc_need(state, job, allocation->partition);
    if (!need || !need->partition)
        return err_code(err, ERR_INVALID_PARTITION);
    if (partition_state(need->partition) != PARTITION_UP &&
        partition_state(need->partition) != PARTITION_DRAIN)
        return err_code(err, ERR_PARTITION_NOT_AVAIL);
    if (resv_check_start(state, job, allocation, parts, err) < 0)
        return -(int)err->code;
    uint32_t choice;
    if (!licences_choose(state, job->shape, allocation, &choice))
        return err_code(err, ERR_LICENSES_UNAVAILABLE);
    return check_parts(state, job, need, parts, err);
}
