/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_inventory.c - what people ask about nodes: lists of them and changes
 *
 * (1) A list is made NODES_PER_PIECE nodes in a turn of the loop, and answered whole. When the
 *     configuration changes meanwhile, nodes may have other numbers: it is begun again.
 * (2) A change of many nodes is checked for all of them, and then made in commands of NODES_PER_COMMAND.
 *     Each has a request id of its own, made from the request's and its place: asked again, each is
 *     answered as the first time.
 *
 * Who may change them is in the table of methods: these need a role, so there is nothing to check here.
 */
#include <stdlib.h>
#include <string.h>

#include "spurctld/ctl/ctl_priv.h"
#include "wire/pb.h"
#include "wire/pb_add.h"

enum { NODES_PER_PIECE = 100, NODES_PER_COMMAND = 50 };

/* ---- lists ---- */

struct node_listing {
    struct ctl_ask *ask;
    const ListNodesRequest *request;
    struct bitset wanted;
    size_t at;
    uint64_t configs; /* that there were when it began */
    struct str packed;
};

static void add_soft(struct ctl *ctl, const struct node *node, Node *out)
{
    const struct agent *agent = ctl_agent(ctl, node->spec->name);

    if (sched_is_planned(ctl->sched, node))
        out->status->flags |= NODE_FLAG_PLANNED;
    if (!agent)
        return;
    out->status->has_load_centi = out->status->has_free_mem_mb = agent->welcomed;
    out->status->load_centi = agent->load_centi;
    out->status->free_mem_mb = agent->free_mem_mb;
    out->status->has_last_seen_us = agent->seen_us != 0;
    out->status->last_seen_us = ctl_now(ctl) - (ctl_mono(ctl) - agent->seen_us);
    if (!agent->session && node->state == NODE_IDLE)
        out->status->flags |= NODE_FLAG_NO_RESPOND;
}

static bool in_partitions(struct ctl *ctl, const struct node *node, char **names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct partition *partition = state_partition(ctl->state, names[i]);
        if (partition && bitset_has(&partition->nodes, node->number))
            return true;
    }
    return count == 0;
}

static int begin(struct ctl *ctl, struct node_listing *listing, struct err *err)
{
    const ListNodesRequest *request = listing->request;

    bitset_done(&listing->wanted);
    bitset_init(&listing->wanted, state_node_count(ctl->state));
    listing->at = 0;
    listing->configs = ctl->configs;
    str_clear(&listing->packed);
    if (!request->n_names)
        bitset_fill(&listing->wanted);
    for (size_t i = 0; i < request->n_names; i++) {
        struct bitset set = { 0 };
        if (state_node_set(ctl->state, request->names[i], &set, err) < 0)
            return -(int)err->code;
        bitset_or(&listing->wanted, &set);
        bitset_done(&set);
    }
    return 0;
}

/* ListNodesReply.nodes (field 1). */
static void add_node(struct ctl *ctl, struct node_listing *listing, const struct node *node,
                     struct arena *arena, struct str *one)
{
    Node out = NODE__INIT;

    node_msg(ctl->state, node, arena, &out);
    add_soft(ctl, node, &out);
    str_clear(one);
    str_reserve(one, node__get_packed_size(&out));
    size_t len = node__pack(&out, (uint8_t *)one->data);
    pb_add_bytes(&listing->packed, 1, one->data, len);
}

/* (1); true at the end. */
static bool next_piece(struct ctl *ctl, struct node_listing *listing)
{
    const ListNodesRequest *request = listing->request;
    struct arena arena;
    struct str one = { 0 };
    unsigned looked = 0;

    arena_init(&arena);
    for (listing->at = bitset_next(&listing->wanted, listing->at);
         listing->at < listing->wanted.bits && looked++ < NODES_PER_PIECE;
         listing->at = bitset_next(&listing->wanted, listing->at + 1)) {
        const struct node *node = state_node_at(ctl->state, listing->at);
        if (node && in_partitions(ctl, node, request->partitions, request->n_partitions))
            add_node(ctl, listing, node, &arena, &one);
    }
    str_done(&one);
    arena_done(&arena);
    return listing->at >= listing->wanted.bits;
}

static void add_tail(struct ctl *ctl, struct node_listing *listing)
{
    ListNodesReply tail = LIST_NODES_REPLY__INIT;

    tail.has_now_us = true;
    tail.now_us = ctl_now(ctl);
    tail.has_stale = tail.stale = listing->request->stale;
    size_t len = list_nodes_reply__get_packed_size(&tail);
    str_reserve(&listing->packed, len);
    list_nodes_reply__pack(&tail, (uint8_t *)listing->packed.data + listing->packed.len);
    listing->packed.len += len;
}

static void listing_free(struct node_listing *listing)
{
    bitset_done(&listing->wanted);
    str_done(&listing->packed);
    free(listing);
}

/* True when it is answered. */
static bool go_on(struct ctl *ctl, struct node_listing *listing)
{
    struct ctl_ask *ask = listing->ask;
    struct err err = { 0 };

    if (listing->configs != ctl->configs && begin(ctl, listing, &err) < 0) {
        listing_free(listing);
        ask->ops->fail(ask, &err);
        return true;
    }
    if (!next_piece(ctl, listing))
        return false;
    add_tail(ctl, listing);
    struct str packed = listing->packed;
    listing->packed = (struct str){ 0 };
    listing_free(listing); /* its request goes with the answer */
    ask->ops->reply_packed(ask, &packed);
    str_done(&packed);
    return true;
}

void ctl_list_nodes(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    if (ctl_hides(ctl, ask, "nodes")) {
        ctl_fail(ask, ERR_PERMISSION);
        return;
    }
    struct node_listing *listing = NEW(struct node_listing);

    listing->ask = ask;
    listing->request = (const void *)message;
    listing->configs = ctl->configs + 1; /* not begun */
    if (go_on(ctl, listing))
        return;
    vec_push(&ctl->asks.node_listings, listing);
    ctl->io.timer(ctl->io.ctx, CTL_TIMER_LISTS, ctl_now(ctl));
}

/* One piece of one of them in a turn. */
void ctl_inventory_timer(struct ctl *ctl)
{
    if (!ctl->asks.node_listings.len)
        return;
    struct node_listing *listing = ctl->asks.node_listings.items[0];
    vec_remove(&ctl->asks.node_listings, 0);
    if (!go_on(ctl, listing))
        vec_push(&ctl->asks.node_listings, listing);
    if (ctl->asks.node_listings.len)
        ctl->io.timer(ctl->io.ctx, CTL_TIMER_LISTS, ctl_now(ctl));
}

void ctl_inventory_gone(struct ctl *ctl)
{
    vec_each (struct node_listing *, listing, &ctl->asks.node_listings)
        listing_free(*listing);
    vec_done(&ctl->asks.node_listings);
}

/* ---- changes ---- */

struct node_change {
    struct ctl_ask *ask;
    unsigned waiting; /* commands that are not applied */
    struct err err;   /* the first that went wrong */
};

static void change_step(struct node_change *change)
{
    struct ctl_ask *ask = change->ask;
    DoneReply reply = DONE_REPLY__INIT;

    if (--change->waiting)
        return;
    if (change->err.code)
        ask->ops->fail(ask, &change->err);
    else
        ask->ops->reply(ask, &reply.base);
}

static void change_done(struct ctl *ctl, void *arg, const struct events *events,
                        const struct err *err)
{
    struct node_change *change = arg;
    const struct event *answer = err ? NULL : ctl_answer(events);

    (void)ctl;
    if (err && !change->err.code)
        change->err = *err;
    else if (answer && answer->code && !change->err.code)
        err_set(&change->err, answer->code, "%s",
                answer->text ? answer->text : err_text(answer->code));
    change_step(change);
}

/* (2) */
static void propose_changes(struct ctl *ctl, struct ctl_ask *ask, CmdUpdateNode *update)
{
    struct node_change *change = ARENA_NEW(ask->arena, struct node_change);
    Command command = CTL_COMMAND(UPDATE_NODE, .update_node = update);
    char **all = update->nodes;
    size_t count = update->n_nodes;
    uint8_t request_id[16];

    change->ask = ask;
    change->waiting = 1;
    for (size_t at = 0; at < count; at += NODES_PER_COMMAND) {
        update->nodes = all + at;
        update->n_nodes = MIN(count - at, (size_t)NODES_PER_COMMAND);
        ctl_stamp_ask(ask, &command);
        if (ask->who->request_id) {
            ctl_place_id(ask->who->request_id, at / NODES_PER_COMMAND, request_id);
            command.request_id.data = request_id;
        }
        change->waiting++;
        ctl_propose(ctl, &command, change_done, change);
    }
    change_step(change);
}

static int wanted_nodes(struct ctl *ctl, struct ctl_ask *ask, const char *names,
                        CmdUpdateNode *update)
{
    struct bitset set = { 0 };
    struct err ignored = { 0 };

    if (!names)
        return -ERR_INVALID_NODE_NAME;
    if (str_ieq(names, "ALL")) {
        bitset_init(&set, state_node_count(ctl->state));
        bitset_fill(&set);
    } else if (state_node_set(ctl->state, names, &set, &ignored) < 0) {
        return -ERR_INVALID_NODE_NAME;
    }
    update->nodes = ARENA_ARRAY(ask->arena, char *, bitset_count(&set) + 1);
    bitset_each (i, &set)
        update->nodes[update->n_nodes++] = state_node_at(ctl->state, i)->spec->name;
    bitset_done(&set);
    return 0;
}

/* Root of a node is not an administrator: it takes its own node out of use, and no more. */
static int check_own(const struct ctl_who *who, const UpdateNodeRequest *request, struct err *err)
{
    static const char *const states[] = { "DRAIN", "DOWN", "FAIL" };
    bool changes = request->change && node_spec__get_packed_size(request->change) > 0;
    bool known = false;

    for (size_t i = 0; i < ARRAY_LEN(states); i++)
        known = known || str_ieq(request->state ? request->state : "", states[i]);
    if (str_eq(request->names, who->node) && known && !changes && !request->clear_features &&
        !request->has_next_state && !request->has_resume_after_s)
        return 0;
    return err_set(
        err, ERR_PERMISSION,
        "root of node '%s' may set that node alone to DRAIN, DOWN or FAIL with a reason; "
        "for anything else use a controller's host",
        who->node);
}

static uint64_t gres_of(const NodeSpec *spec, const char *name)
{
    uint64_t count = 0;

    for (size_t i = 0; i < spec->n_gres; i++)
        count += str_ieq(spec->gres[i]->name, name) ? spec->gres[i]->count : 0;
    return count;
}

/* Devices are where they are: Gres= may say how they are called, not that there are more or fewer. */
static bool gres_stay(const struct ctl *ctl, const CmdUpdateNode *update)
{
    for (size_t n = 0; update->change && n < update->n_nodes; n++) {
        const struct node *node = state_node(ctl->state, update->nodes[n]);
        for (size_t i = 0; node && i < update->change->n_gres; i++) {
            const char *name = update->change->gres[i]->name;
            uint64_t has = gres_of(node->spec, name);
            if (has && has != gres_of(update->change, name))
                return false;
        }
    }
    return true;
}

void ctl_update_node(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    const UpdateNodeRequest *request = (const void *)message;
    CmdUpdateNode update = CMD_UPDATE_NODE__INIT;
    Command command = CTL_COMMAND(UPDATE_NODE, .update_node = &update);
    struct request_seen seen;
    struct err err = { 0 };

    if (ask->who->node && check_own(ask->who, request, &err) < 0) {
        ask->ops->fail(ask, &err);
        return;
    }
    if (wanted_nodes(ctl, ask, request->names, &update) < 0) {
        ctl_fail(ask, ERR_INVALID_NODE_NAME);
        return;
    }
    update.state = request->state;
    update.reason = request->reason;
    update.has_by_uid = true;
    update.by_uid = ask->who->uid;
    update.by_user = (char *)ask->who->user;
    update.change = request->change;
    if (!gres_stay(ctl, &update)) {
        ctl_fail(ask, ERR_GRES);
        return;
    }
    update.has_clear_features = request->has_clear_features;
    update.clear_features = request->clear_features;
    update.has_next_state = request->has_next_state;
    update.next_state = request->next_state;
    update.has_resume_after_s = request->has_resume_after_s;
    update.resume_after_s = request->resume_after_s;
    if (update.n_nodes <= NODES_PER_COMMAND)
        ctl_propose_ask(ctl, ask, &command, ctl_done_reply, ask);
    else if (!ctl_seen(ctl, ask, &seen) && core_check_node_update(ctl->state, &update, &err) < 0)
        ask->ops->fail(ask, &err);
    else
        propose_changes(ctl, ask, &update);
}
