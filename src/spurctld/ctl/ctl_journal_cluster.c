/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_journal_cluster.c - what the journal says of nodes, of all that they have, and of reservations
 *
 * (1) A node is written as it is after the entry; whoever reads compares it with what it knew.
 * (2) When a leader begins, the level rises or the configuration gives other nodes, everything is written that is
 *     out of use or reserved, so that a reader who missed something is right from there on.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "core/level.h"
#include "core/msg.h"
#include "core/node.h"
#include "core/state.h"
#include "spurctld/ctl/ctl_priv.h"

/* ---- amounts ---- */

struct amount {
    const char *name, *type;
    uint64_t count;
};

struct amounts {
    uint64_t cpus, mem_mb, nodes;
    VEC(struct amount) gres;
};

static void add_gres(struct amounts *out, const char *name, const char *type, uint64_t count)
{
    vec_each (struct amount, at, &out->gres) {
        if (str_eq(at->name, name) && str_eq(at->type, type)) {
            at->count += count;
            return;
        }
    }
    vec_push(&out->gres, (struct amount){ name, type, count });
}

static void add_node(struct amounts *out, const struct node *node)
{
    out->cpus += node->cpus;
    out->mem_mb += node->mem_mb;
    out->nodes++;
    for (size_t i = 0; i < node->gres_count; i++) {
        add_gres(out, node->gres[i].name, "", node->gres[i].total);
        if (!str_is_empty(node->gres[i].type))
            add_gres(out, node->gres[i].name, node->gres[i].type, node->gres[i].total);
    }
}

static void add_text(const struct amounts *amounts, struct str *out)
{
    str_addf(out, "cpu=%llu,mem=%lluM,node=%llu,billing=%llu", (unsigned long long)amounts->cpus,
             (unsigned long long)amounts->mem_mb, (unsigned long long)amounts->nodes,
             (unsigned long long)amounts->cpus);
    vec_each (const struct amount, gres, &amounts->gres)
        str_addf(out, ",gres/%s%s%s=%llu", gres->name, *gres->type ? ":" : "", gres->type,
                 (unsigned long long)gres->count);
}

/* ---- records ---- */

static void write_node(struct ctl *ctl, const struct node *node)
{
    JournalRecord record = JOURNAL_RECORD__INIT;
    JournalNode msg = JOURNAL_NODE__INIT;
    CLEANUP(str_done) struct str tres = { 0 };
    struct amounts amounts = { 0 };

    add_node(&amounts, node);
    add_text(&amounts, &tres);
    vec_done(&amounts.gres);
    msg.name = node->spec->name;
    msg.has_state = msg.has_flags = true;
    msg.state = node->removed ? NODE_FUTURE : node->state;
    msg.flags = node->flags;
    msg.reason = node->reason;
    msg.has_reason_uid = node->reason != NULL;
    msg.reason_uid = node->reason_uid;
    msg.reason_user = node->reason ? node->reason_user : NULL;
    msg.tres = (char *)(uintptr_t)str_text(&tres);
    record.has_kind = true;
    record.kind = JOURNAL_NODE;
    record.node = &msg;
    ctl_journal_record(ctl, &record);
}

static void write_reservation(struct ctl *ctl, const struct reservation *resv)
{
    JournalRecord record = JOURNAL_RECORD__INIT;
    JournalReservation msg = JOURNAL_RESERVATION__INIT;
    Reservation shown;
    struct arena arena;

    arena_init(&arena);
    reservation_msg(ctl->state, resv, &arena, &shown);
    msg.spec = resv->spec;
    msg.tres = shown.tres;
    msg.has_node_count = true;
    msg.node_count = shown.node_count;
    record.has_kind = true;
    record.kind = JOURNAL_RESERVATION;
    record.reservation = &msg;
    ctl_journal_record(ctl, &record);
    arena_done(&arena);
}

static bool counts(const struct node *node)
{
    return !node->removed && node->state != NODE_FUTURE;
}

static void write_capacity(struct ctl *ctl, bool whole)
{
    JournalRecord record = JOURNAL_RECORD__INIT;
    JournalCapacity msg = JOURNAL_CAPACITY__INIT;
    CLEANUP(hostlist_done) struct hostlist hosts = { 0 };
    CLEANUP(str_done) struct str tres = { 0 }, names = { 0 };
    struct amounts amounts = { 0 };

    for (size_t i = 0; i < state_node_count(ctl->state); i++) {
        const struct node *node = state_node_at(ctl->state, i);
        if (!counts(node))
            continue;
        add_node(&amounts, node);
        hostlist_push(&hosts, node->spec->name, NULL);
    }
    add_text(&amounts, &tres);
    hostlist_format(&hosts, &names);
    msg.nodes = (char *)(uintptr_t)str_text(&names);
    msg.has_node_count = msg.has_whole = true;
    msg.node_count = (uint32_t)amounts.nodes;
    msg.tres = (char *)(uintptr_t)str_text(&tres);
    msg.whole = whole;
    record.has_kind = true;
    record.kind = JOURNAL_CAPACITY;
    record.capacity = &msg;
    ctl_journal_record(ctl, &record);
    vec_done(&amounts.gres);
}

/* (2) */
static void write_whole(struct ctl *ctl)
{
    write_capacity(ctl, true);
    for (size_t i = 0; i < state_node_count(ctl->state); i++) {
        const struct node *node = state_node_at(ctl->state, i);
        if (counts(node) && !node_is_usable(node))
            write_node(ctl, node);
    }
    for (size_t i = 0; i < state_reservation_count(ctl->state); i++)
        write_reservation(ctl, state_reservation_at(ctl->state, i));
}

static bool write_named(struct ctl *ctl, const struct event *event)
{
    JournalRecord record = JOURNAL_RECORD__INIT;
    const struct reservation *resv = state_reservation(ctl->state, event->text);

    if (event->kind == EVENT_RESV_CHANGED && resv) {
        write_reservation(ctl, resv);
        return true;
    }
    if (resv) /* it came back within the same command */
        return false;
    record.has_kind = true;
    record.kind = JOURNAL_RESERVATION_ENDED;
    record.text = (char *)(uintptr_t)event->text;
    ctl_journal_record(ctl, &record);
    return true;
}

bool ctl_journal_cluster(struct ctl *ctl, const Command *command)
{
    const unsigned other_nodes = CHANGED_NODES | CHANGED_NUMBERS | CHANGED_ALL;
    bool whole = command->what_case == COMMAND__WHAT_LEVEL, meant = false, amounts = false;

    if (state_level(ctl->state) < LEVEL_JOURNAL)
        return false;
    events_each(event, &ctl->applying.events)
    {
        whole = whole || event->kind == EVENT_LEADER ||
                (event->kind == EVENT_CONFIG && event->changed & other_nodes);
    }
    if (whole) {
        write_whole(ctl);
        return true;
    }
    events_each(event, &ctl->applying.events)
    {
        bool node = event->kind == EVENT_NODE_UP || event->kind == EVENT_NODE_DOWN ||
                    event->kind == EVENT_NODE_CHANGED;
        bool resv = event->kind == EVENT_RESV_CHANGED || event->kind == EVENT_RESV_GONE;
        if (node && event->node) { /* (1) */
            write_node(ctl, event->node);
            amounts = amounts || event->changed & CHANGED_NODES;
            meant = true;
        } else if (resv) {
            meant = write_named(ctl, event) || meant;
        }
    }
    if (amounts)
        write_capacity(ctl, false);
    return meant;
}
