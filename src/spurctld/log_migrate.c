/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_migrate.c - the log moves: from SQLite to etcd when a second controller comes, and back after the last
 *
 * The process does what it does when it is stopped and started, without ending: it takes no more calls,
 * waits until everything proposed is durable, writes a snapshot of the very end, lets log/convert.h
 * carry the payloads over, and starts anew on the other engine. Commands repeat meanwhile what they
 * asked, with the same request id, and find either the answer or the effect in the state.
 *
 * (1) The order on disk is: snapshot, STATE_DIR/controllers, conversion. A crash before the second leaves
 *     things as they were; after it, the next start completes the move (membership_settle()).
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log/convert.h"
#include "log/snapshot.h"
#include "spurctld/serve.h"
#include "sys/clock.h"
#include "sys/files.h"
#include "sys/log.h"

enum { GRACE_MS = 150, LOOK_MS = 5, MOST_MS = 10000 };

/* ---- letting everything end ---- */

static void on_look(uv_timer_t *timer)
{
    struct server *server = timer->data;

    if (server->handover_left > 0 && !ctl_is_idle(server->ctl))
        server->handover_left--;
    else
        uv_stop(server->uv);
}

static void on_quiet(void *ctx)
{
    struct server *server = ctx;

    uv_timer_start(&server->handover, on_look, 0, LOOK_MS);
}

void server_move(struct server *server, enum server_move to)
{
    if (server->stopping)
        return;
    log_info("ctl.move", "to=%s", to == MOVE_TO_ETCD ? "etcd" : "sqlite");
    server->move = to;
    server->moved_us = clock_mono_us();
    server->stopping = true;
    server->handover_left = MOST_MS / LOOK_MS;
    for (int i = 0; i < CTL_TIMERS; i++)
        uv_timer_stop(&server->timers[i]);
    rpc_server_stop(server->rpc, GRACE_MS, on_quiet, server);
}

/* ---- moving ---- */

static int write_piece(void *to, const void *bytes, size_t len)
{
    return snapshot_write(to, bytes, len, NULL);
}

static int write_end(struct server *server, struct log_point point, struct err *err)
{
    struct snapshot_writer *writer = NULL;
    int code = snapshot_create(server->state_dir, point, &writer, err);

    if (code < 0)
        return code;
    code = core_snapshot_write(ctl_state(server->ctl), write_piece, writer);
    if (code < 0) {
        snapshot_abandon(writer);
        return err_set(err, ERR_IO, "the snapshot of the end cannot be written");
    }
    return snapshot_finish(writer, err);
}

static bool is_live(void *ctx, const uint8_t *digest)
{
    return state_has_payload(ctx, digest);
}

static int move_files(struct server *server, struct log_point point, struct err *err)
{
    const struct state *state = ctl_state(server->ctl);
    struct membership *to = &server->moved_membership;

    to->etcd = to->bootstrap = server->move == MOVE_TO_ETCD;
    if (membership_save(to, server->state_dir, err) < 0) /* (1) */
        return -(int)err->code;
    int code =
        to->etcd
            ? convert_to_etcd(server->state_dir, point, is_live, (void *)(uintptr_t)state, err)
            : convert_to_sqlite(server->state_dir, point, is_live, (void *)(uintptr_t)state, err);
    if (code < 0) { /* as it was: the next start finds the old engine and its log whole */
        struct err ignored;
        server->membership.bootstrap = false;
        membership_save(&server->membership, server->state_dir, &ignored);
    }
    return code;
}

static void put_etcd_aside(struct server *server)
{
    CLEANUP(freep) char *dir = mem_printf("%s/etcd", server->state_dir);
    CLEANUP(freep) char *before = mem_printf("%s/etcd.before", server->state_dir);
    struct err err = { 0 };

    if (access(dir, F_OK) < 0)
        return;
    file_remove_tree(before, &err);
    if (file_rename(dir, before, &err) < 0)
        log_warn("ctl.move", "text=%s", err.text);
}

/* Called when the loop has ended, in place of freeing the log. */
void server_log_migrate(struct server *server)
{
    struct log *log = ctl_log(server->ctl);
    struct err err = { 0 };
    int code = 0;

    server_snapshot_abandon(server);
    if (!ctl_is_idle(server->ctl)) {
        log_error("ctl.move", "given up: the log did not come to rest");
        return;
    }
    struct log_point point = log_point(log);
    log_stop(log);
    code = write_end(server, point, &err);
    ctl_close_log(server->ctl);
    if (code == 0)
        code = move_files(server, point, &err);
    if (code == 0 && server->move == MOVE_TO_SQLITE) {
        server_ha_end_member(server);
        put_etcd_aside(server);
    }
    if (code < 0)
        log_error("ctl.move", "given up: %s", err.text);
    else
        log_info("ctl.moved", "to=%s index=%llu took_us=%lld",
                 server->move == MOVE_TO_ETCD ? "etcd" : "sqlite", (unsigned long long)point.index,
                 (long long)(clock_mono_us() - server->moved_us));
}

/* ---- removed from the list ---- */

static const char *const ours[] = { "payload.db", "payload.db-wal", "payload.db-shm", "log.db",
                                    "log.db-wal", "log.db-shm",     "watermark",      "etcd",
                                    "keys",       "lock",           "journal" };

/* What this controller had is kept beside; a start says that it was removed. */
void server_put_aside(struct server *server)
{
    CLEANUP(freep)
    char *aside = mem_printf("%s/removed-%lld", server->state_dir, (long long)clock_wall_s());
    uint64_t indexes[SNAPSHOT_MOST];
    struct membership gone = { .removed = true };
    struct err err = { 0 };
    size_t count = 0;

    server_ha_end_member(server);
    if (file_make_dirs(aside, 0700, &err) < 0 ||
        membership_save(&gone, server->state_dir, &err) < 0)
        log_error("ctl.removed", "text=%s", err.text);
    for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
        CLEANUP(freep) char *from = mem_printf("%s/%s", server->state_dir, ours[i]);
        CLEANUP(freep) char *to = mem_printf("%s/%s", aside, ours[i]);
        if (access(from, F_OK) == 0)
            file_rename(from, to, &err);
    }
    if (snapshot_list(server->state_dir, indexes, SNAPSHOT_MOST, &count, &err) == 0) {
        for (size_t i = 0; i < count; i++) {
            CLEANUP(freep) char *from = snapshot_path(server->state_dir, indexes[i]);
            CLEANUP(freep) char *to = snapshot_path(aside, indexes[i]);
            file_rename(from, to, &err);
        }
    }
    log_info("ctl.removed", "name=%s kept=%s", server->options->name, aside);
}
