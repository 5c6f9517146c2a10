/* SPDX-License-Identifier: Apache-2.0 */
/*
 * controllers.c - `spur controller add|remove|transfer`, and what follows when the list changes
 *
 * A change is asked for again until it is done; each call takes the next step from what etcd and the
 * state say, so it may be repeated, by anybody and at any leader.
 *
 *     add      one alone: its log moves to etcd ──> etcd member as a learner ──> invitation ──>
 *              the newcomer starts and catches up ──> promoted ──> in the list
 *     remove   the leader: hands over first ──> out of etcd ──> out of the list ──>
 *              one is left: its log moves back
 *
 * (1) One step at a time: two that read the same list would lose one change.
 * (2) Out of etcd before out of the list: who reads that it is gone ends its member, and etcd must
 *     not have counted on it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "log/etcd.h"
#include "spurctld/ha/links.h"
#include "spurctld/ha/peers.h"
#include "spurctld/serve.h"
#include "sys/clock.h"
#include "sys/host.h"
#include "sys/log.h"
#include "sys/rng.h"

enum { CALL_MS = 5000, HOLD_MS = 2000, GO_BACK_US = 8000000 };

struct change {
    struct server *server;
    struct rpc_call *call; /* to be answered */
    char *name, *host;
    unsigned port;
    bool add;
};

/* ---- answers ---- */

static void change_end(struct change *change)
{
    change->server->changing = false; /* (1) */
    free(change->name);
    free(change->host);
    free(change);
}

static void answer(struct server *server, struct rpc_call *call, bool done, const char *phase,
                   const char *invitation)
{
    ChangeControllerReply reply = CHANGE_CONTROLLER_REPLY__INIT;

    reply.has_done = true;
    reply.done = done;
    reply.phase = (char *)(uintptr_t)phase;
    reply.invitation = (char *)(uintptr_t)invitation;
    reply.has_pause_ms = server->pause_ms > 0;
    reply.pause_ms = server->pause_ms;
    rpc_reply(call, &reply.base);
}

static void finish(struct change *change, bool done, const char *phase)
{
    answer(change->server, change->call, done, phase, NULL);
    change_end(change);
}

static void fail(struct change *change, const struct err *err)
{
    rpc_fail(change->call, err);
    change_end(change);
}

static void refuse(struct rpc_call *call, enum err_code code, const char *text)
{
    struct err err = { 0 };

    err_set(&err, code, "%s", text);
    rpc_fail(call, &err);
}

/* ---- the list ---- */

static void list_done(void *arg, const struct err *err)
{
    struct change *change = arg;

    if (err) {
        fail(change, err);
        return;
    }
    struct server *server = change->server;
    bool alone = !change->add && server->membership.list.len == 2;
    if (!change->add)
        log_etcd_forget_controller(ctl_log(server->ctl), change->name);
    finish(change, !alone, alone ? "the log moves back to one controller" : "done");
}

/* Proposes the list with the change in it. */
static void propose(struct change *change)
{
    struct server *server = change->server;
    struct membership next = { 0 };
    struct arena arena;

    arena_init(&arena);
    next.token = mem_strdup(server->membership.token);
    vec_each (struct controller, at, &server->membership.list) {
        if (change->add || !str_eq(at->name, change->name))
            membership_add(&next, at->name, at->host, at->port);
    }
    if (change->add)
        membership_add(&next, change->name, change->host, change->port);
    ctl_propose_controllers(server->ctl, membership_command(&next, &arena), list_done, change);
    membership_done(&next);
    arena_done(&arena);
}

/* ---- etcd ---- */

static void on_promoted(void *arg, const ProtobufCMessage *reply, const struct err *err)
{
    struct change *change = arg;

    (void)reply;
    if (err)
        finish(change, false, "waits until the new controller has caught up");
    else
        propose(change);
}

static void on_removed(void *arg, const ProtobufCMessage *reply, const struct err *err)
{
    struct change *change = arg;

    (void)reply;
    if (err)
        fail(change, err);
    else
        propose(change); /* (2) */
}

static void invite(struct change *change)
{
    struct server *server = change->server;
    CLEANUP(str_done) struct str line = { 0 };
    struct err err = { 0 };

    if (secrets_invitation(&server->secrets, change->name, change->host, change->port, &line,
                           &err) < 0) {
        fail(change, &err);
        return;
    }
    str_add_char(&line, ' ');
    for (size_t i = 0; i < server->membership.list.len; i++)
        str_addf(&line, "%s%s:%u", i ? "," : "", server->membership.list.items[i].host,
                 server->membership.list.items[i].port);
    answer(server, change->call, false, "waits until the new controller is started",
           str_text(&line));
    change_end(change);
}

/* etcd refuses when a member is not well, or joined a moment ago: asked again, it will not. */
static void on_added(void *arg, const ProtobufCMessage *reply, const struct err *err)
{
    struct change *change = arg;

    (void)reply;
    if (!err) {
        invite(change);
        return;
    }
    log_info("ctl.add", "name=%s etcd says: %s", change->name, err->text);
    finish(change, false, "waits until all members of etcd are well");
}

static const EtcdMember *find_member(const EtcdMemberListResponse *list,
                                     const struct change *change)
{
    struct controller at = { change->name, change->host, change->port };
    CLEANUP(freep) char *url = change->host ? controller_url(&at, ETCD_PEER_OFFSET) : NULL;

    for (size_t i = 0; i < list->n_members; i++) {
        const EtcdMember *member = list->members[i];
        if (str_eq(member->name, change->name) ||
            (url && member->n_peer_urls && str_eq(member->peer_urls[0], url)))
            return member;
    }
    return NULL;
}

static void add_step(struct change *change, const EtcdMember *member)
{
    struct controller at = { change->name, change->host, change->port };
    CLEANUP(freep) char *url = controller_url(&at, ETCD_PEER_OFFSET);
    EtcdMemberAddRequest add = ETCD_MEMBER_ADD_REQUEST__INIT;
    EtcdMemberPromoteRequest promote = ETCD_MEMBER_PROMOTE_REQUEST__INIT;

    if (!member) {
        add.n_peer_urls = 1;
        add.peer_urls = &url;
        add.has_is_learner = add.is_learner = true;
        server_ha_call(change->server, ETCD_CALL_MEMBER_ADD, &add.base, CALL_MS, on_added, change);
    } else if (str_is_empty(member->name)) {
        invite(change); /* not started yet */
    } else if (member->is_learner) {
        promote.has_id = true;
        promote.id = member->id;
        server_ha_call(change->server, ETCD_CALL_MEMBER_PROMOTE, &promote.base, CALL_MS,
                       on_promoted, change);
    } else {
        propose(change);
    }
}

static void on_members(void *arg, const ProtobufCMessage *reply, const struct err *err)
{
    struct change *change = arg;
    EtcdMemberRemoveRequest request = ETCD_MEMBER_REMOVE_REQUEST__INIT;

    if (err) {
        fail(change, err);
        return;
    }
    const EtcdMember *member = find_member((const EtcdMemberListResponse *)reply, change);
    if (change->add) {
        add_step(change, member);
    } else if (member) {
        request.has_id = true;
        request.id = member->id;
        server_ha_call(change->server, ETCD_CALL_MEMBER_REMOVE, &request.base, CALL_MS, on_removed,
                       change);
    } else if (membership_find(&change->server->membership, change->name)) {
        propose(change);
    } else {
        finish(change, true, "done");
    }
}

static void begin(struct server *server, struct rpc_call *call, bool add, const char *name,
                  const char *host, unsigned port)
{
    EtcdMemberListRequest request = ETCD_MEMBER_LIST_REQUEST__INIT;
    struct change *change = NEW(struct change);

    *change = (struct change){ server, call, mem_strdup(name), mem_strdup(host), port, add };
    server->changing = true;
    server_ha_call(server, ETCD_CALL_MEMBER_LIST, &request.base, CALL_MS, on_members, change);
}

/* ---- one alone becomes the first of several ---- */

/* Where others will reach us: as configured, or as we listen, or our name. */
static int own_address(struct server *server, char **host, unsigned *port, struct err *err)
{
    const ConfLocal *local = conf_local(server->conf);
    const struct controller *self = membership_find(&server->membership, server->options->name);
    const char *listen = server->options->listen ? server->options->listen[0]
                         : local->n_listen_addr  ? local->listen_addr[0]
                                                 : "";
    char name[HOST_NAME_BYTES];

    if (self) {
        *host = mem_strdup(self->host);
        *port = self->port;
        return 0;
    }
    if (!str_starts(listen, "unix:") && !str_is_empty(listen) &&
        controller_parse_address(listen, host, port, err) == 0) {
        if (strcmp(*host, "[::]") != 0 && strcmp(*host, "0.0.0.0") != 0 && strcmp(*host, "*") != 0)
            return 0;
        free(TAKE(*host));
    } else {
        *port = CONTROLLER_PORT;
    }
    host_name(name);
    *host = mem_strdup(name);
    return 0;
}

static void on_etcd_proved(struct server *server, void *arg, const struct err *err)
{
    struct rpc_call *call = arg;

    server->changing = false;
    if (err) {
        rpc_fail(call, err);
        return;
    }
    answer(server, call, false, "the log moves to etcd", NULL);
    server_move(server, MOVE_TO_ETCD);
}

/* etcd works on this machine before anything is left behind: ha.c. */
static void begin_move(struct server *server, struct rpc_call *call)
{
    struct membership *to = &server->moved_membership;
    struct err err = { 0 };
    char *host = NULL;
    unsigned port = 0;

    if (own_address(server, &host, &port, &err) < 0) {
        rpc_fail(call, &err);
        return;
    }
    membership_done(to);
    membership_add(to, server->options->name, host, port);
    to->token =
        mem_printf("%s-%08llx", server->secrets.cluster, (unsigned long long)rng_below(UINT32_MAX));
    free(host);
    to->etcd = to->bootstrap = true;
    server->changing = true;
    server_ha_prove(server, to, on_etcd_proved, call);
}

static void begin_move_back(struct server *server)
{
    const struct controller *self = membership_find(&server->membership, server->options->name);

    membership_done(&server->moved_membership);
    if (self)
        membership_add(&server->moved_membership, self->name, self->host, self->port);
    server_move(server, MOVE_TO_SQLITE);
}

/* ---- the methods ---- */

static bool may_change(struct server *server, struct rpc_call *call,
                       const ChangeControllerRequest *request)
{
    if (conf_local(server->conf)->n_etcd)
        refuse(call, ERR_UNSUPPORTED,
               "controllers on an etcd of the site come and go by themselves: start or stop one");
    else if (str_is_empty(request->name) || strlen(request->name) > LIMIT_HOST_NAME ||
             strcspn(request->name, " \t\r\n,/()=:") < strlen(request->name))
        refuse(call, ERR_INVALID, "that is no name of a controller");
    else if (server->changing || server->stopping)
        answer(server, call, false, "waits for another change", NULL);
    else
        return true;
    return false;
}

void server_on_add_controller(struct rpc_call *call, const ProtobufCMessage *message)
{
    const ChangeControllerRequest *request = (const void *)message;
    struct server *server = rpc_call_ctx(call);
    const struct controller *known;
    struct err err = { 0 };
    char *host = NULL;
    unsigned port = 0;

    if (!may_change(server, call, request))
        return;
    const char *address = str_is_empty(request->address) ? request->name : request->address;
    if (controller_parse_address(address, &host, &port, &err) < 0) {
        rpc_fail(call, &err);
        return;
    }
    known = membership_find(&server->membership, request->name);
    if (known && (!str_eq(known->host, host) || known->port != port) && server->membership.etcd)
        refuse(call, ERR_EXISTS, "a controller of that name is there, at another address");
    else if (known && server->membership.etcd)
        answer(server, call, true, "done", NULL);
    else if (str_eq(request->name, server->options->name))
        refuse(call, ERR_EXISTS, "that is the controller you are asking");
    else if (server->membership.list.len >= LIMIT_CONTROLLERS)
        refuse(call, ERR_TOO_MANY, "there are as many controllers as there can be");
    else if (!server->membership.etcd)
        begin_move(server, call);
    else
        begin(server, call, true, request->name, host, port);
    free(host);
}

void server_on_remove_controller(struct rpc_call *call, const ProtobufCMessage *message)
{
    const ChangeControllerRequest *request = (const void *)message;
    struct server *server = rpc_call_ctx(call);

    if (!may_change(server, call, request))
        return;
    if (!server->membership.etcd && str_eq(request->name, server->options->name)) {
        refuse(call, ERR_INVALID, "that is the only controller");
    } else if (!server->membership.etcd) {
        answer(server, call, true, "done", NULL);
    } else if (str_eq(request->name, server->options->name)) {
        if (server->membership.list.len < 2) {
            refuse(call, ERR_INVALID, "that is the only controller");
            return;
        }
        answer(server, call, false, "another controller takes over", NULL);
        log_resign(ctl_log(server->ctl));
    } else if (server->membership.list.len < 2) {
        begin_move_back(server);
        answer(server, call, false, "the log moves back to one controller", NULL);
    } else {
        begin(server, call, false, request->name, NULL, 0);
    }
}

struct handover {
    struct server *server;
    struct rpc_call *call;
};

static void on_all_hold(void *arg)
{
    struct handover *handover = arg;

    answer(handover->server, handover->call, false, "hands over", NULL);
    if (!handover->server->stopping)
        log_resign(ctl_log(handover->server->ctl));
    handover->server->changing = false;
    free(handover);
}

void server_on_transfer_leader(struct rpc_call *call, const ProtobufCMessage *message)
{
    const ChangeControllerRequest *request = (const void *)message;
    struct server *server = rpc_call_ctx(call);

    if (!may_change(server, call, request))
        return;
    if (str_eq(request->name, server->options->name)) {
        answer(server, call, true, "done", NULL);
    } else if (!membership_find(&server->membership, request->name) || !server->peers) {
        refuse(call, ERR_NOT_FOUND, "there is no controller of that name");
    } else {
        struct handover *handover = NEW(struct handover);
        *handover = (struct handover){ server, call };
        server->changing = true;
        peers_hold_back(server->peers, request->name, HOLD_MS, on_all_hold, handover);
    }
}

/* Of one that differs from others where no majority can tell who is right: asked of that one itself. */
void server_on_trust_controller(struct rpc_call *call, const ProtobufCMessage *message)
{
    const ChangeControllerRequest *request = (const void *)message;
    struct server *server = rpc_call_ctx(call);
    DoneReply reply = DONE_REPLY__INIT;

    if (!str_eq(request->name, server->options->name)) {
        refuse(call, ERR_INVALID, "another controller was named: ask that one");
        return;
    }
    ctl_trust(server->ctl);
    rpc_reply(call, &reply.base);
}

/* ---- when the list is new ---- */

static void follow(struct server *server, const CmdControllers *list)
{
    struct err err = { 0 };

    if (membership_from(&server->membership, list, &err) < 0 ||
        membership_save(&server->membership, server->state_dir, &err) < 0) {
        log_error("ctl.controllers", "text=%s", err.text);
        return;
    }
    log_info("ctl.controllers", "count=%zu", server->membership.list.len);
    server_ha_follow(server);
    links_free(TAKE(server->links));
    if (server_start_links(server, &err) < 0)
        log_error("ctl.links", "text=%s", err.text);
}

/* The state says who is a controller; somebody has to tell it first. */
static void say_list(struct server *server, const CmdControllers *list)
{
    struct arena arena;

    if (!ctl_is_leading(server->ctl) || server->list_proposed)
        return;
    bool several = server->membership.etcd;
    if (several ? list != NULL || !server->membership.list.len : list == NULL)
        return;
    struct membership none = { 0 };
    arena_init(&arena);
    ctl_propose_controllers(
        server->ctl, membership_command(several ? &server->membership : &none, &arena), NULL, NULL);
    arena_done(&arena);
    server->list_proposed = true;
}

static bool is_in(const CmdControllers *list, const char *name)
{
    for (size_t i = 0; i < list->n_controllers; i++) {
        if (str_eq(list->controllers[i]->name, name))
            return true;
    }
    return false;
}

/*
 * The log has moved, and etcd, which was proved before, does not let us lead: nothing was written to
 * it, so the log goes back to where it was.
 */
static bool goes_back(struct server *server)
{
    CLEANUP(str_done) struct str last = { 0 };

    if (!server->membership.bootstrap || ctl_is_leading(server->ctl) ||
        clock_wall_us() - server->start_us < GO_BACK_US)
        return false;
    server_ha_last_line(server, &last);
    log_error("ctl.move",
              "etcd does not let us lead, so the log goes back to SQLite; etcd says: %s",
              str_text(&last));
    begin_move_back(server);
    return true;
}

void server_controllers_turn(struct server *server)
{
    const CmdControllers *list = state_controllers(ctl_state(server->ctl));

    if (server->stopping || conf_local(server->conf)->n_etcd || goes_back(server))
        return;
    if (server->moved_us && ctl_is_leading(server->ctl)) {
        server->pause_ms = (unsigned)((clock_mono_us() - server->moved_us) / 1000);
        server->moved_us = 0;
        log_info("ctl.moved", "pause_ms=%u", server->pause_ms);
    }
    say_list(server, list);
    if (!server->list_changed)
        return;
    /* Lists of the past may come by while we catch up; the one at the end counts. */
    if (server->membership.etcd && log_leader(ctl_log(server->ctl)).term == 0)
        return;
    server->list_changed = false;
    if (!list || !server->membership.etcd)
        return;
    if (is_in(list, server->options->name)) {
        follow(server, list);
        if (list->n_controllers == 1 && ctl_is_leading(server->ctl) && server->was_several) {
            begin_move_back(server);
        }
        server->was_several = list->n_controllers > 1;
    } else if (!server->membership.entering) {
        server->removed = true;
        log_hold_back(ctl_log(server->ctl), true);
        server_stop(server, "removed from the list of controllers");
    }
}
