/* SPDX-License-Identifier: Apache-2.0 */
/*
 * controller_join.c - a new controller gets what it needs to be one
 *
 * An invitation is one line: "NAME HOST:PORT EXPIRES SIGNATURE sha256:HASH ADDRESSES". It is signed with
 * the cluster's key, so any controller can check it; the hash names the cluster's authority, by which
 * the newcomer knows the right cluster before it shows anything; the addresses are whom to ask.
 *
 * The newcomer gets the cluster's secrets (a controller can do everything that any other can), the
 * list, and the configuration when its host has none.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "client/conf_file.h"
#include "proto/peer.pb-c.h"
#include "rpc/tls.h"
#include "spurctld/ha/controller_join.h"
#include "sys/clock.h"
#include "sys/files.h"
#include "sys/log.h"

enum { ENTER_MS = 20000, LINE_BYTES = 8192, WORDS = 6 };

static const struct secret_row {
    const char *name;
    bool optional;
} secret_files[] = {
    { "cluster.key", false }, { "cluster.id", false }, { "ca.key", false },
    { "ca.crt", false },      { "join.token", false }, { "etcd.own", true }, /* ha.c */
};

/* ---- the controller that is asked ---- */

static int read_secrets(struct server *server, EnterReply *reply, struct arena *arena,
                        struct err *err)
{
    reply->files = ARENA_ARRAY(arena, SecretFile *, ARRAY_LEN(secret_files));
    for (size_t i = 0; i < ARRAY_LEN(secret_files); i++) {
        CLEANUP(freep)
        char *path = mem_printf("%s/keys/%s", server->state_dir, secret_files[i].name);
        CLEANUP(str_done) struct str bytes = { 0 };
        SecretFile *file = ARENA_NEW(arena, SecretFile);
        if (secret_files[i].optional && access(path, F_OK) != 0)
            continue;
        if (file_read(path, KEY_FILE_MAX, &bytes, err) < 0)
            return -(int)err->code;
        secret_file__init(file);
        file->name = (char *)(uintptr_t)secret_files[i].name;
        file->has_data = true;
        file->data =
            (ProtobufCBinaryData){ bytes.len, arena_copy(arena, str_text(&bytes), bytes.len) };
        reply->files[reply->n_files++] = file;
    }
    return 0;
}

/* The list with the newcomer in it. */
static CmdControllers *list_with(const struct server *server, const struct invitation *invitation,
                                 struct arena *arena)
{
    CmdControllers *list = membership_command(&server->membership, arena);

    if (membership_find(&server->membership, invitation->name))
        return list;
    ControllerSpec **all = ARENA_ARRAY(arena, ControllerSpec *, list->n_controllers + 1);
    ControllerSpec *spec = ARENA_NEW(arena, ControllerSpec);
    controller_spec__init(spec);
    spec->name = arena_strdup(arena, invitation->name);
    spec->address = arena_strdup(arena, invitation->address);
    memcpy(all, list->controllers, list->n_controllers * sizeof(*all));
    all[list->n_controllers++] = spec;
    list->controllers = all;
    return list;
}

void server_on_controller_join(struct rpc_call *call, const ProtobufCMessage *message)
{
    const EnterRequest *request = (const void *)message;
    struct server *server = rpc_call_ctx(call);
    struct arena *arena = rpc_call_arena(call);
    EnterReply reply = ENTER_REPLY__INIT;
    struct invitation invitation = { 0 };
    struct err err = { 0 };
    CLEANUP(str_done) struct str conf = { 0 };

    if (!server->membership.etcd)
        err_set(&err, ERR_INVALID, "this controller is alone; begin with spur controller add");
    else if (secrets_invited(&server->secrets, request->invitation, &invitation, &err) == 0 &&
             !str_eq(invitation.name, request->name))
        err_set(&err, ERR_UNAUTHENTICATED, "the invitation is for controller '%s'",
                invitation.name);
    if (!err.code)
        read_secrets(server, &reply, arena, &err);
    const char *path = conf_file_path(server->options->conf_path);
    if (!err.code)
        file_read(path, LIMIT_CONFIG_BYTES / 2, &conf, &err);
    if (err.code) {
        log_warn("ctl.enter", "name=%s refused text=%s", request->name ? request->name : "",
                 err.text);
        rpc_fail(call, &err);
        return;
    }
    log_info("ctl.enter", "name=%s address=%s", invitation.name, invitation.address);
    reply.controllers = list_with(server, &invitation, arena);
    reply.has_config = true;
    reply.config = (ProtobufCBinaryData){ conf.len, (uint8_t *)(uintptr_t)str_text(&conf) };
    rpc_reply(call, &reply.base);
}

/* ---- the newcomer ---- */

struct entering {
    const struct server_options *options;
    const char *state_dir;
    struct err err;
    bool done;
};

static int keep_secrets(const struct entering *entering, const EnterReply *reply, struct err *err)
{
    CLEANUP(freep) char *dir = mem_printf("%s/keys", entering->state_dir);

    if (file_make_dirs(entering->state_dir, 0700, err) < 0 || file_make_dirs(dir, 0700, err) < 0)
        return -(int)err->code;
    for (size_t i = 0; i < ARRAY_LEN(secret_files); i++) {
        const SecretFile *found = NULL;
        for (size_t k = 0; k < reply->n_files; k++) {
            if (str_eq(reply->files[k]->name, secret_files[i].name))
                found = reply->files[k];
        }
        if (!found && secret_files[i].optional)
            continue;
        if (!found || found->data.len == 0 || found->data.len > KEY_FILE_MAX)
            return err_set(err, ERR_BAD_MESSAGE, "the controller gave no '%s'",
                           secret_files[i].name);
        CLEANUP(freep) char *path = mem_printf("%s/%s", dir, secret_files[i].name);
        if (file_write(path, found->data.data, found->data.len, 0600, err) < 0)
            return -(int)err->code;
    }
    return 0;
}

static int keep_config(const struct entering *entering, const EnterReply *reply, struct err *err)
{
    const char *path = conf_file_path(entering->options->conf_path);

    if (access(path, F_OK) == 0)
        return 0;
    return file_write(path, reply->config.data, reply->config.len, 0644, err);
}

/* The list is written last: it says that the rest is there. */
static int keep_all(const struct entering *entering, const EnterReply *reply, struct err *err)
{
    struct membership membership = { .etcd = true, .entering = true };

    if (!reply->controllers)
        return err_set(err, ERR_BAD_MESSAGE, "the controller gave no list");
    if (keep_secrets(entering, reply, err) < 0 || keep_config(entering, reply, err) < 0)
        return -(int)err->code;
    int code = membership_from(&membership, reply->controllers, err);
    membership.etcd = membership.entering = true;
    if (code == 0)
        code = membership_save(&membership, entering->state_dir, err);
    membership_done(&membership);
    return code;
}

static void on_entered(struct rpc_request *request, const ProtobufCMessage *reply,
                       const struct err *err)
{
    struct entering *entering = rpc_request_data(request);

    if (err)
        entering->err = *err;
    else
        keep_all(entering, (const EnterReply *)reply, &entering->err);
    entering->done = true;
}

static int refuse_old(const char *state_dir, struct err *err)
{
    static const char *const names[] = { "log.db", "payload.db", "etcd", "keys" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        CLEANUP(freep) char *path = mem_printf("%s/%s", state_dir, names[i]);
        if (access(path, F_OK) == 0)
            return err_set(err, ERR_EXISTS,
                           "'%s' is there: the state of a new controller must be empty", path);
    }
    return 0;
}

static int ask(struct entering *entering, struct rpc_client *client, uv_loop_t *loop,
               const char *line)
{
    EnterRequest message = ENTER_REQUEST__INIT;

    message.name = (char *)(uintptr_t)entering->options->name;
    message.invitation = (char *)(uintptr_t)line;
    rpc_request_start(client, &(struct rpc_request_options){
                                  .path = "/spur.Peers/Enter",
                                  .message = &message.base,
                                  .reply = &enter_reply__descriptor,
                                  .wait_ready = true,
                                  .timeout_ms = ENTER_MS,
                                  .data = entering,
                                  .on_done = on_entered,
                              });
    while (!entering->done && uv_run(loop, UV_RUN_ONCE))
        ;
    return entering->err.code ? -(int)entering->err.code : 0;
}

static int call_out(struct entering *entering, const char *line, const char *addresses,
                    const char *hash, struct err *err)
{
    struct tls_options tls_options = { .ca_hash = hash };
    struct tls_ctx *tls = tls_ctx_new(&tls_options, err);
    struct rpc_client_options options = { .addresses = addresses, .tls = tls };
    uv_loop_t loop;
    int code;

    if (!tls)
        return -(int)err->code;
    uv_loop_init(&loop);
    struct rpc_loop *rpc = rpc_loop_new(&loop);
    struct rpc_client *client = rpc_client_new(rpc, &options, err);
    code = client ? ask(entering, client, &loop, line) : -(int)err->code;
    if (client && code < 0)
        *err = entering->err;
    if (client)
        rpc_client_free(client);
    rpc_loop_free(rpc);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    tls_ctx_free(tls);
    return code;
}

int server_controller_join(const struct server_options *options, const char *state_dir,
                           struct err *err)
{
    CLEANUP(freep) char *list = mem_printf("%s/controllers", state_dir);
    CLEANUP(str_done) struct str line = { 0 };
    CLEANUP(str_done) struct str urls = { 0 };
    struct entering entering = { .options = options, .state_dir = state_dir };
    struct membership known = { 0 };
    struct span word, words[WORDS];
    size_t count = 0;

    /* Entered before: this is a start like any other. */
    if (access(list, F_OK) == 0) {
        int code = membership_load(&known, state_dir, NULL, err);
        bool removed = known.removed;
        membership_done(&known);
        if (code < 0 || !removed)
            return code;
    }
    if (file_read_secret(options->join, LINE_BYTES, &line, err) < 0 ||
        refuse_old(state_dir, err) < 0)
        return -(int)err->code;
    for (const char *cursor = str_text(&line);
         count < WORDS && str_next(&cursor, " \t\r\n", &word);)
        words[count++] = word;
    if (count < WORDS)
        return err_set(err, ERR_INVALID, "'%s' is no invitation", options->join);
    CLEANUP(freep) char *hash = mem_strndup(words[4].ptr, words[4].len);
    CLEANUP(freep) char *addresses = mem_strndup(words[5].ptr, words[5].len);
    for (const char *cursor = addresses; str_next(&cursor, ",", &word);)
        str_addf(&urls, "%shttps://%.*s", urls.len ? "," : "", (int)word.len, word.ptr);
    int code = call_out(&entering, str_text(&line), str_text(&urls), hash, err);
    return code < 0 ? err_wrap(err, "entering the cluster") : 0;
}
