/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etcd_near.c - etcd's own leader beside ours
 *
 * (1) Moving costs etcd a moment in which it refuses writes (they are sent again), so a leader must have
 *     led for a while, and after a move we wait longer.
 * (2) Status, list and move go to the same member: whoever answers the first is asked on. Should the
 *     connection have changed in between, etcd refuses a move that is not its leader's.
 */
#include "log/etcd_near.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "sys/log.h"

enum { LOOK_MS = 3000, MOVED_MS = 15000, CALL_MS = 2000, NAME_BYTES = 256 };

struct etcd_near {
    const struct etcd_io *io;
    void *io_ctx;
    struct log *log;
    void *timer, *call;
    int64_t term;          /* of the leader at the last look */
    char name[NAME_BYTES]; /* whom etcd's leadership is for */
    uint64_t leads_etcd;   /* the member that we speak to */
};

static void on_timer(void *arg);

static void look_again(struct etcd_near *near, unsigned ms)
{
    near->timer = near->io->timer(near->io_ctx, ms, on_timer, near);
}

static void ask(struct etcd_near *near, enum etcd_method method, const ProtobufCMessage *request,
                etcd_done_fn done)
{
    near->call = near->io->call(near->io_ctx, method, request, CALL_MS, done, near);
}

static void on_moved(void *arg, const ProtobufCMessage *reply, const struct err *err)
{
    struct etcd_near *near = arg;

    (void)reply;
    near->call = NULL;
    log_info("etcd.near", "leader=%s %s%s", near->name, err ? "refused: " : "moved",
             err ? err->text : "");
    look_again(near, MOVED_MS);
}

static void on_list(void *arg, const ProtobufCMessage *message, const struct err *err)
{
    struct etcd_near *near = arg;
    const EtcdMemberListResponse *reply = (const void *)message;
    EtcdMoveLeaderRequest request = ETCD_MOVE_LEADER_REQUEST__INIT;

    near->call = NULL;
    for (size_t i = 0; !err && i < reply->n_members; i++) {
        const EtcdMember *member = reply->members[i];
        if (member->name && strcmp(member->name, near->name) == 0 && !member->is_learner)
            request.target_id = member->id;
    }
    if (request.target_id == 0 || request.target_id == near->leads_etcd) {
        look_again(near, LOOK_MS);
        return;
    }
    request.has_target_id = true;
    ask(near, ETCD_CALL_MOVE_LEADER, &request.base, on_moved);
}

static void on_status(void *arg, const ProtobufCMessage *message, const struct err *err)
{
    struct etcd_near *near = arg;
    const EtcdStatusResponse *reply = (const void *)message;
    EtcdMemberListRequest request = ETCD_MEMBER_LIST_REQUEST__INIT;

    near->call = NULL;
    if (err || !reply->header || !reply->leader || reply->header->member_id != reply->leader) {
        look_again(near, LOOK_MS);
        return;
    }
    near->leads_etcd = reply->leader;
    ask(near, ETCD_CALL_MEMBER_LIST, &request.base, on_list);
}

static void on_timer(void *arg)
{
    struct etcd_near *near = arg;
    struct log_leader leader = log_leader(near->log);
    bool stays = leader.term && leader.term == near->term; /* (1) */
    EtcdStatusRequest request = ETCD_STATUS_REQUEST__INIT;

    near->timer = NULL;
    near->term = leader.term;
    if (!stays || leader.self || strlen(leader.name) >= NAME_BYTES) {
        look_again(near, LOOK_MS);
        return;
    }
    memcpy(near->name, leader.name, strlen(leader.name) + 1);
    ask(near, ETCD_CALL_STATUS, &request.base, on_status);
}

struct etcd_near *etcd_near_new(const struct etcd_io *io, void *io_ctx, struct log *log)
{
    struct etcd_near *near = NEW(struct etcd_near);

    *near = (struct etcd_near){ .io = io, .io_ctx = io_ctx, .log = log };
    look_again(near, LOOK_MS);
    return near;
}

void etcd_near_free(struct etcd_near *near)
{
    if (!near)
        return;
    if (near->timer)
        near->io->untimer(near->io_ctx, near->timer);
    if (near->call)
        near->io->cancel(near->io_ctx, near->call);
    free(near);
}
