/* SPDX-License-Identifier: Apache-2.0 */
/*
 * membership.c - who the controllers are, and where this one's log is
 */
#include "spurctld/ha/membership.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "log/convert.h"
#include "log/snapshot.h"
#include "sys/files.h"
#include "sys/log.h"

enum { FILE_BYTES = 64 * 1024 };

/* ---- one controller ---- */

int controller_parse_address(const char *text, char **host, unsigned *port, struct err *err)
{
    const char *colon = strrchr(text, ':');
    bool bracket = text[0] == '[';
    uint64_t number = CONTROLLER_PORT;

    if (!bracket && colon && strchr(text, ':') != colon)
        return err_set(err, ERR_INVALID, "'%s': write an IPv6 address as [ADDRESS]:PORT", text);
    if (bracket && colon && colon[-1] != ']')
        colon = NULL; /* an IPv6 address without a port */
    if (colon && (!str_to_u64(colon + 1, 65535 - ETCD_PEER_OFFSET, &number) || number == 0))
        return err_set(err, ERR_INVALID, "'%s' has no port from 1 to %d", text,
                       65535 - ETCD_PEER_OFFSET);
    size_t len = colon ? (size_t)(colon - text) : strlen(text);
    if (len == 0 || len > LIMIT_HOST_NAME || strcspn(text, " \t\r\n,/()=") < len)
        return err_set(err, ERR_INVALID, "'%s' is no address", text);
    *host = mem_strndup(text, len);
    *port = (unsigned)number;
    return 0;
}

int controller_parse(const char *text, struct controller *out, struct err *err)
{
    const char *open = strchr(text, '(');
    size_t len = strlen(text);

    *out = (struct controller){ 0 };
    if (len == 0 || (open && text[len - 1] != ')'))
        return err_set(err, ERR_CONFIG, "controller.hosts: '%s' is not name(address)", text);
    CLEANUP(freep) char *name = open ? mem_strndup(text, (size_t)(open - text)) : mem_strdup(text);
    CLEANUP(freep)
    char *address =
        open ? mem_strndup(open + 1, len - (size_t)(open - text) - 2) : mem_strdup(text);
    if (controller_parse_address(address, &out->host, &out->port, err) < 0)
        return err_wrap(err, "controller.hosts");
    out->name = TAKE(name);
    return 0;
}

char *controller_url(const struct controller *controller, unsigned offset)
{
    return mem_printf("https://%s:%u", controller->host, controller->port + offset);
}

/* ---- the list ---- */

void membership_add(struct membership *membership, const char *name, const char *host,
                    unsigned port)
{
    struct controller controller = { mem_strdup(name), mem_strdup(host), port };

    vec_push(&membership->list, controller);
}

static void clear(struct membership *membership)
{
    vec_each (struct controller, controller, &membership->list) {
        free(controller->name);
        free(controller->host);
    }
    vec_clear(&membership->list);
}

void membership_done(struct membership *membership)
{
    clear(membership);
    vec_done(&membership->list);
    free(membership->token);
    *membership = (struct membership){ 0 };
}

const struct controller *membership_find(const struct membership *membership, const char *name)
{
    vec_each (struct controller, controller, &membership->list) {
        if (str_eq(controller->name, name))
            return controller;
    }
    return NULL;
}

bool membership_drop(struct membership *membership, const char *name)
{
    for (size_t i = 0; i < membership->list.len; i++) {
        struct controller *controller = &membership->list.items[i];
        if (!str_eq(controller->name, name))
            continue;
        free(controller->name);
        free(controller->host);
        vec_remove(&membership->list, i);
        return true;
    }
    return false;
}

int membership_from(struct membership *membership, const CmdControllers *list, struct err *err)
{
    struct membership fresh = { .etcd = membership->etcd };
    int code = 0;

    for (size_t i = 0; code == 0 && list && i < list->n_controllers; i++) {
        const ControllerSpec *spec = list->controllers[i];
        char *host = NULL;
        unsigned port = 0;
        code = controller_parse_address(spec->address ? spec->address : "", &host, &port, err);
        if (code == 0)
            membership_add(&fresh, spec->name, host, port);
        free(host);
    }
    if (code < 0) {
        membership_done(&fresh);
        return code;
    }
    fresh.token = mem_strdup(list && list->token ? list->token : membership->token);
    fresh.from_file = membership->from_file;
    membership_done(membership);
    *membership = fresh;
    return 0;
}

CmdControllers *membership_command(const struct membership *membership, struct arena *arena)
{
    CmdControllers *out = ARENA_NEW(arena, CmdControllers);

    cmd_controllers__init(out);
    out->token = membership->token;
    out->n_controllers = membership->list.len;
    out->controllers = ARENA_ARRAY(arena, ControllerSpec *, membership->list.len + 1);
    for (size_t i = 0; i < membership->list.len; i++) {
        const struct controller *controller = &membership->list.items[i];
        ControllerSpec *spec = ARENA_NEW(arena, ControllerSpec);
        controller_spec__init(spec);
        spec->name = controller->name;
        spec->address = arena_printf(arena, "%s:%u", controller->host, controller->port);
        out->controllers[i] = spec;
    }
    return out;
}

/* ---- the file ---- */

static char *file_of(const char *state_dir)
{
    return mem_printf("%s/controllers", state_dir);
}

int membership_save(const struct membership *membership, const char *state_dir, struct err *err)
{
    CLEANUP(freep) char *path = file_of(state_dir);
    CLEANUP(str_done) struct str text = { 0 };

    str_addf(&text, "# Kept by spurctld; `spur controller` changes it.\nengine %s\n",
             membership->etcd ? "etcd" : "sqlite");
    if (membership->token)
        str_addf(&text, "token %s\n", membership->token);
    if (membership->bootstrap)
        str_add(&text, "bootstrap yes\n");
    if (membership->entering)
        str_add(&text, "entering yes\n");
    if (membership->removed)
        str_add(&text, "removed yes\n");
    vec_each (struct controller, controller, &membership->list)
        str_addf(&text, "controller %s %s:%u\n", controller->name, controller->host,
                 controller->port);
    return file_write(path, text.data, text.len, 0600, err);
}

static int read_line(struct membership *membership, char *line, struct err *err)
{
    char *save = NULL, *key = strtok_r(line, " \t", &save);
    char *first = strtok_r(NULL, " \t", &save), *second = strtok_r(NULL, " \t", &save);
    char *host = NULL;
    unsigned port = 0;

    if (!key || key[0] == '#')
        return 0;
    if (first && strcmp(key, "engine") == 0) {
        membership->etcd = strcmp(first, "etcd") == 0;
    } else if (first && strcmp(key, "token") == 0) {
        free(membership->token);
        membership->token = mem_strdup(first);
    } else if (strcmp(key, "bootstrap") == 0) {
        membership->bootstrap = true;
    } else if (strcmp(key, "entering") == 0) {
        membership->entering = true;
    } else if (strcmp(key, "removed") == 0) {
        membership->removed = true;
    } else if (second && strcmp(key, "controller") == 0) {
        int code = controller_parse_address(second, &host, &port, err);
        if (code < 0)
            return code;
        membership_add(membership, first, host, port);
        free(host);
    } else {
        return err_set(err, ERR_CORRUPT, "line '%s …' is not known", key);
    }
    return 0;
}

static int load_file(struct membership *membership, const char *path, struct err *err)
{
    CLEANUP(str_done) struct str text = { 0 };
    int code = file_read(path, FILE_BYTES, &text, err);
    char *save = NULL;

    str_add_char(&text, '\n');
    for (char *line = strtok_r(text.data, "\n", &save); code == 0 && line;
         line = strtok_r(NULL, "\n", &save))
        code = read_line(membership, line, err);
    membership->from_file = true;
    return code < 0 ? err_wrap(err, "%s", path) : 0;
}

static int load_conf(struct membership *membership, const struct conf *conf, struct err *err)
{
    const ConfLocal *local = conf_local(conf);
    const char *cluster = conf_config(conf)->cluster_name;

    for (size_t i = 0; i < local->n_hosts; i++) {
        struct controller controller;
        if (controller_parse(local->hosts[i], &controller, err) < 0)
            return -(int)err->code;
        vec_push(&membership->list, controller);
    }
    membership->etcd = local->n_hosts > 1 && local->n_etcd == 0;
    membership->token = mem_strdup(cluster ? cluster : "spur");
    return 0;
}

int membership_load(struct membership *membership, const char *state_dir, const struct conf *conf,
                    struct err *err)
{
    CLEANUP(freep) char *path = file_of(state_dir);

    *membership = (struct membership){ 0 };
    return !conf || access(path, F_OK) == 0 ? load_file(membership, path, err)
                                            : load_conf(membership, conf, err);
}

/* ---- what the directory holds ---- */

static bool exists(const char *dir, const char *name)
{
    CLEANUP(freep) char *path = mem_printf("%s/%s", dir, name);

    return access(path, F_OK) == 0;
}

/* After a crash nobody knows what is referred to: all stays, and goes when the log next looks. */
static bool keep_all(void *ctx, const uint8_t *digest)
{
    (void)ctx, (void)digest;
    return true;
}

static int newest_point(const char *dir, struct log_point *point, struct err *err)
{
    uint64_t indexes[SNAPSHOT_MOST];
    struct snapshot_reader *reader = NULL;
    size_t count = 0;
    int code = snapshot_list(dir, indexes, SNAPSHOT_MOST, &count, err);

    if (code == 0 && count == 0)
        code = err_set(err, ERR_CORRUPT, "'%s' has no snapshot to go on from", dir);
    if (code == 0)
        code = snapshot_open(dir, indexes[0], &reader, err);
    if (code == 0)
        *point = snapshot_point(reader);
    snapshot_close(reader);
    return code;
}

int membership_settle(const struct membership *membership, const char *state_dir, struct err *err)
{
    bool sqlite = exists(state_dir, "log.db"), etcd = exists(state_dir, "payload.db");
    struct log_point point;

    if (membership->removed)
        return err_set(
            err, ERR_CONFIG,
            "this controller was removed from the cluster; `spur controller add` gives an "
            "invitation to start it with (--join)");
    if (membership->etcd ? !sqlite : !etcd)
        return 0;
    if (!membership->from_file)
        return err_set(
            err, ERR_CONFIG,
            "'%s' holds the log of %s; let the configuration say so again, start it, and "
            "use `spur controller add` and `remove`",
            state_dir, sqlite ? "one controller alone" : "several controllers");
    log_info("ctl.convert", "to=%s again", membership->etcd ? "etcd" : "sqlite");
    if (newest_point(state_dir, &point, err) < 0)
        return -(int)err->code;
    return membership->etcd ? convert_to_etcd(state_dir, point, keep_all, NULL, err)
                            : convert_to_sqlite(state_dir, point, keep_all, NULL, err);
}
