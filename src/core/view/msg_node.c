/* SPDX-License-Identifier: Apache-2.0 */
/*
 * msg_node.c - nodes, partitions and reservations as messages
 */
#include <string.h>

#include "base/hostlist.h"
#include "core/resv.h"
#include "core/view/msg_fields.h"
#include "core/view/view.h"

static void gres_msg(const struct node *node, struct arena *arena, NodeStatus *out)
{
    out->alloc_gres = ARENA_ARRAY(arena, GresAlloc *, node->gres_count);
    for (size_t i = 0; i < node->gres_count; i++) {
        const struct node_gres *gres = &node->gres[i];
        GresAlloc *msg = ARENA_NEW(arena, GresAlloc);
        struct str text = { 0 };
        gres_alloc__init(msg);
        msg->name = (char *)(uintptr_t)gres->name;
        msg->type = (char *)(uintptr_t)gres->type;
        msg->has_count = true;
        msg->count = gres->used;
        if (gres->index.words) {
            bitset_format(&gres->index, &text);
            msg->index = arena_strdup(arena, str_text(&text));
        }
        str_done(&text);
        out->alloc_gres[out->n_alloc_gres++] = msg;
    }
}

void node_fact_msg(const struct node *node, NodeStatus *out)
{
    node_status__init(out);
    SET(state, node->state);
    SET(flags, node->flags);
    out->reason = node->reason;
    out->reason_user = node->reason_user;
    if (node->reason) {
        SET(reason_uid, node->reason_uid);
        SET(reason_us, node->reason_us);
    }
    if (node->last_busy_us)
        SET(last_busy_us, node->last_busy_us);
    if (node->reboot.next)
        SET(next_state, node->reboot.next);
    if (node->resume_us)
        SET(resume_after_us, node->resume_us);
    if (node->reboot.drained)
        SET(reboot_drained, true);
    if (node->reboot.issued_us)
        SET(reboot_issued_us, node->reboot.issued_us);
    out->found = node->found;
}

void node_msg(const struct state *state, const struct node *node, struct arena *arena,
              Node *node_out)
{
    NodeStatus *out = ARENA_NEW(arena, NodeStatus);
    uint32_t flags;

    node__init(node_out);
    node_out->spec = node->spec;
    node_out->status = out;
    node_fact_msg(node, out);
    SET(state, node_shown_state(node, &flags));
    SET(flags, flags | resv_node_flags(state, node));
    out->reservation = (char *)(uintptr_t)resv_node_name(state, node);
    if (node->found) {
        SET(boot_us, node->found->boot_us);
        SET(started_us, node->found->started_us);
        out->boot_id = node->found->boot_id;
    }
    SET(alloc_cpus, node->cpus_used);
    SET(alloc_mem_mb, node->mem_used_mb);
    out->jobs = ARENA_ARRAY(arena, uint32_t, node->jobs.len);
    vec_each (struct job *, job, &node->jobs)
        out->jobs[out->n_jobs++] = (*job)->id;
    gres_msg(node, arena, out);
    out->partitions = ARENA_ARRAY(arena, char *, state->partitions.len);
    vec_each (struct partition *, at, &state->partitions) {
        if (bitset_has(&(*at)->nodes, node->number))
            out->partitions[out->n_partitions++] = (*at)->spec->name;
    }
}

void partition_msg(const struct state *state, const struct partition *partition,
                   struct arena *arena, Partition *out)
{
    partition__init(out);
    out->spec = partition->spec;
    SET(total_nodes, partition->total_nodes);
    SET(total_cpus, partition->total_cpus);
    SET(billing, partition_billing(state, partition));
    out->node_names = ARENA_ARRAY(arena, char *, partition->total_nodes);
    bitset_each (number, &partition->nodes)
        out->node_names[out->n_node_names++] = state->nodes.items[number]->spec->name;
}

/* cpu=8,gres/gpu=2,license/a=1 */
static const char *reservation_tres(const struct reservation *reservation, uint32_t cpus,
                                    struct arena *arena)
{
    const ReservationSpec *spec = reservation->spec;
    const char *text = cpus ? arena_printf(arena, "cpu=%u", cpus) : "";

    ReservationGres sums[RESV_GRES];
    size_t kinds = 0;
    for (size_t i = 0; i < spec->n_parts; i++) {
        for (size_t k = 0; k < spec->parts[i]->n_gres; k++) {
            const ReservationGres *gres = spec->parts[i]->gres[k];
            size_t at = 0;
            while (at < kinds &&
                   !(str_eq(sums[at].name, gres->name) && str_eq(sums[at].type, gres->type)))
                at++;
            if (at == kinds && kinds < RESV_GRES)
                sums[kinds++] = *gres;
            else if (at < kinds)
                sums[at].count += gres->count;
        }
    }
    for (size_t i = 0; i < kinds; i++)
        text = arena_printf(arena, "%s%sgres/%s%s%s=%llu", text, *text ? "," : "", sums[i].name,
                            sums[i].type ? ":" : "", sums[i].type ? sums[i].type : "",
                            (unsigned long long)sums[i].count);
    for (size_t i = 0; i < reservation->licences.len; i++)
        text =
            arena_printf(arena, "%s%slicense/%s=%u", text, *text ? "," : "",
                         reservation->licences.items[i].name, reservation->licences.items[i].count);
    return *text ? text : NULL;
}

void reservation_msg(const struct state *state, const struct reservation *reservation,
                     struct arena *arena, Reservation *out)
{
    uint32_t cpus = 0, cores = 0;

    reservation__init(out);
    out->spec = reservation->spec;
    out->state = arena_strdup(arena, reservation->active ? "ACTIVE" : "INACTIVE");
    out->node_names = reservation->spec->nodes;
    SET(node_count, (uint32_t)bitset_count(&reservation->nodes));
    bitset_each (number, &reservation->nodes) {
        const struct node *node = state->nodes.items[number];
        const struct resv_part *part = resv_part_of(reservation, (uint32_t)number);
        cpus += part ? part->cpus : node->cpus;
        cores += (part ? part->cpus : node->cpus) / node->threads;
    }
    SET(core_count, cores);
    out->tres = (char *)reservation_tres(reservation, cpus, arena);
}
