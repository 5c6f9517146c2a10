/* SPDX-License-Identifier: Apache-2.0 */
/*
 * up.c - `spur up` and `spur down`: a private cluster on this machine
 *
 * Used by tests, benches, demos and newcomers. Nothing outside --dir is touched, ports are on
 * loopback, and `spur down` ends every process that was started.
 */
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/size.h"
#include "cli/commands.h"
#include "cli/up.h"
#include "client/client.h"
#include "proto/controller.pb-c.h"
#include "sys/clock.h"
#include "sys/files.h"
#include "sys/rng.h"

static const char down_help[] = "Usage: spur down --dir DIR [--remove]\n"
                                "Ends the private cluster that `spur up --dir DIR` started, with "
                                "its jobs.\n\n  --remove           delete DIR too\n";

static int fail(const char *command, const struct err *err)
{
    fprintf(stderr, "spur %s: error: %s\n", command, err->text);
    return 1;
}

/* ---- waiting ---- */

static void pause_ms(long ms)
{
    struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

    nanosleep(&t, NULL);
}

/* The end of a log says best why a daemon is gone. */
static int say_gone(const char *dir, const char *name, struct err *err)
{
    CLEANUP(freep) char *path = mem_printf("%s/log/%s.log", dir, name);
    struct str text = { 0 };
    struct err ignored;
    const char *tail = "";

    if (file_read(path, 1 << 20, &text, &ignored) == 0 && text.len > 1) {
        text.data[text.len - 1] = '\0';
        tail = strrchr(text.data, '\n');
        tail = tail ? tail + 1 : text.data;
    }
    int code = err_set(err, ERR_INTERNAL, "%s ended; %s says: %s", name, path, tail);
    str_done(&text);
    return code;
}

static int wait_file(const struct up_options *o, const char *path, struct err *err)
{
    for (unsigned ms = 0; access(path, F_OK) != 0; ms += 5) {
        if (!up_alive(o->dir, "ctl1", NULL))
            return say_gone(o->dir, "ctl1", err);
        if (ms > o->wait_s * 1000)
            return err_set(err, ERR_DEADLINE,
                           "the controller did not start within %u s; see %s/log", o->wait_s,
                           o->dir);
        pause_ms(5);
    }
    return 0;
}

/* ---- daemons ---- */

int up_start_controller(const struct up_options *o, const char *conf, unsigned i,
                        const char *invitation, struct err *err)
{
    CLEANUP(freep) char *name = mem_printf("ctl%u", i + 1);
    CLEANUP(freep) char *listen = mem_printf("127.0.0.1:%u", up_port(o, i));
    CLEANUP(freep) char *state = mem_printf("%s/state/%s", o->dir, name);
    CLEANUP(freep) char *sock = mem_printf("%s/run/%s.sock", o->dir, name);
    CLEANUP(freep) char *advertise = mem_printf("unix:%s", sock);
    CLEANUP(freep) char *accounting = mem_printf("unix:%s/run/" UP_DBD ".sock", o->dir);
    const char *argv[] = { "spurctld",
                           "-D",
                           "-f",
                           conf,
                           "--name",
                           name,
                           "--listen",
                           listen,
                           "--state-dir",
                           state,
                           "--socket",
                           sock,
                           "--advertise",
                           advertise,
                           "--accounting",
                           accounting,
                           invitation ? "--join" : NULL,
                           invitation,
                           NULL };

    if (up_alive(o->dir, name, NULL))
        return 0;
    return up_start(o->dir, name, "spurctld", (char *const *)argv, err);
}

/* A controller that finds it at once does not try again a second later. */
static void wait_socket(const struct up_options *o, const char *name, const char *path)
{
    for (int i = 0; i < 500 && access(path, F_OK) != 0 && up_alive(o->dir, name, NULL); i++)
        pause_ms(10);
}

/* The accounting daemon, unless the configuration switches it off. */
static int start_accounting(const struct up_options *o, const char *conf, struct err *err)
{
    CLEANUP(freep) char *listen = mem_printf("127.0.0.1:%u", o->base_port + UP_DBD_PORT);
    CLEANUP(freep) char *state = mem_printf("%s/state/" UP_DBD, o->dir);
    CLEANUP(freep) char *sock = mem_printf("%s/run/" UP_DBD ".sock", o->dir);
    const char *argv[] = { "spurdbd",     "-D",  "-f",        conf,       "--listen", listen,
                           "--state-dir", state, "--migrate", "--socket", sock,       NULL };

    if (!up_conf_accounts(conf) || up_alive(o->dir, UP_DBD, NULL))
        return 0;
    unlink(sock); /* of one that was killed */
    if (up_start(o->dir, UP_DBD, "spurdbd", (char *const *)argv, err) < 0)
        return -(int)err->code;
    wait_socket(o, UP_DBD, sock);
    return 0;
}

/* By `spur controller remove`. */
bool up_is_removed(const struct up_options *o, unsigned i)
{
    CLEANUP(freep) char *path = mem_printf("%s/state/ctl%u/controllers", o->dir, i + 1);
    CLEANUP(str_done) struct str text = { 0 };
    struct err ignored;

    return file_read(path, 65536, &text, &ignored) == 0 && strstr(str_text(&text), "\nremoved yes");
}

/* All controllers of a cluster have the same secrets; the first one made them. */
static int copy_secrets(const struct up_options *o, unsigned i, struct err *err)
{
    static const char *const files[] = { "cluster.key", "cluster.id", "ca.key", "ca.crt",
                                         "join.token" };
    CLEANUP(freep) char *dir = mem_printf("%s/state/ctl%u/keys", o->dir, i + 1);
    CLEANUP(freep) char *state = mem_printf("%s/state/ctl%u", o->dir, i + 1);

    if (file_make_dirs(state, 0700, err) < 0 || file_make_dirs(dir, 0700, err) < 0)
        return -(int)err->code;
    for (size_t f = 0; f < ARRAY_LEN(files); f++) {
        CLEANUP(freep) char *from = mem_printf("%s/state/ctl1/keys/%s", o->dir, files[f]);
        CLEANUP(freep) char *to = mem_printf("%s/%s", dir, files[f]);
        struct str bytes = { 0 };
        int code = access(to, F_OK) == 0 ? 0 : file_read(from, 65536, &bytes, err);
        if (code == 0 && bytes.len)
            code = file_write(to, bytes.data, bytes.len, 0600, err);
        str_done(&bytes);
        if (code < 0)
            return code;
    }
    return 0;
}

static int start_controllers(const struct up_options *o, const char *conf, struct err *err)
{
    CLEANUP(freep) char *token = mem_printf("%s/state/ctl1/keys/join.token", o->dir);

    if (up_start_controller(o, conf, 0, NULL, err) < 0 || wait_file(o, token, err) < 0)
        return -(int)err->code;
    for (unsigned i = 1; i < o->controllers; i++) {
        if (up_is_removed(o, i))
            continue;
        if (copy_secrets(o, i, err) < 0 || up_start_controller(o, conf, i, NULL, err) < 0)
            return -(int)err->code;
    }
    return 0;
}

static char *controller_list(const struct up_options *o)
{
    struct str list = { 0 };

    for (unsigned i = 0; i < o->controllers; i++) {
        if (!up_is_removed(o, i))
            str_addf(&list, "%shttp://127.0.0.1:%u", list.len ? "," : "", up_port(o, i));
    }
    return str_take(&list);
}

/* Commands on this machine: the kernel says who they are. */
char *up_socket_list(const struct up_options *o)
{
    struct str list = { 0 };

    for (unsigned i = 0; i < o->controllers; i++) {
        if (!up_is_removed(o, i))
            str_addf(&list, "%sunix:%s/run/ctl%u.sock", list.len ? "," : "", o->dir, i + 1);
    }
    return str_take(&list);
}

static int start_agents(const struct up_options *o, const up_names *nodes, struct err *err)
{
    CLEANUP(freep) char *controllers = controller_list(o);
    CLEANUP(freep) char *token = mem_printf("%s/state/ctl1/keys/join.token", o->dir);

    for (size_t i = 0; i < nodes->len; i++) {
        if (up_alive(o->dir, nodes->items[i], NULL))
            continue;
        CLEANUP(freep)
        char *listen = mem_printf("127.0.0.1:%zu", o->base_port + UP_NODE_PORTS + i);
        CLEANUP(freep) char *spool = mem_printf("%s/spool/%s", o->dir, nodes->items[i]);
        const char *argv[] = { "spurd",        "-D",        "-N",          nodes->items[i],
                               "--controller", controllers, "--listen",    listen,
                               "--addr",       "127.0.0.1", "--spool-dir", spool,
                               "--token-file", token,       NULL };
        if (up_start(o->dir, nodes->items[i], "spurd", (char *const *)argv, err) < 0)
            return -(int)err->code;
    }
    return 0;
}

/* Registered and answering: idle in a new cluster, or busy in one that was started again. */
static bool is_ready(const NodeStatus *status)
{
    bool usable = status && (status->state == NODE_IDLE || status->state == NODE_ALLOCATED ||
                             status->state == NODE_MIXED);

    return usable && !(status->flags & NODE_FLAG_NO_RESPOND);
}

static int count_idle(struct client *client, size_t *idle, struct err *err)
{
    ListNodesRequest request = LIST_NODES_REQUEST__INIT;
    ProtobufCMessage *answer = NULL;
    struct arena arena;

    arena_init(&arena);
    int code = client_call(client, "/spur.Controller/ListNodes", &request.base,
                           &list_nodes_reply__descriptor, &arena, &answer, err);
    const ListNodesReply *reply = (const void *)answer;
    *idle = 0;
    for (size_t i = 0; code == 0 && i < reply->n_nodes; i++)
        *idle += is_ready(reply->nodes[i]->status);
    arena_done(&arena);
    return code;
}

static int wait_idle(const struct up_options *o, const up_names *nodes, struct err *err)
{
    CLEANUP(freep) char *list = up_socket_list(o);
    struct client_options options = { .addresses = list, .timeout_ms = 5000, .retry_ms = 100 };
    struct client *client = client_new(&options, err);
    size_t idle = 0;
    int code = client ? 0 : -(int)err->code;

    int64_t until_us = clock_mono_us() + (int64_t)o->wait_s * 1000000;
    while (code == 0) {
        code = count_idle(client, &idle, err);
        if (code == -(int)ERR_UNREACHABLE || code == -(int)ERR_NOT_LEADER)
            code = 0; /* not yet */
        if (code < 0 || idle >= nodes->len)
            break;
        for (unsigned i = 0; i < o->controllers && code == 0; i++) {
            CLEANUP(freep) char *name = mem_printf("ctl%u", i + 1);
            if (!up_is_removed(o, i) && !up_alive(o->dir, name, NULL))
                code = say_gone(o->dir, name, err);
        }
        for (size_t i = 0; i < nodes->len && code == 0; i++) {
            if (!up_alive(o->dir, nodes->items[i], NULL))
                code = say_gone(o->dir, nodes->items[i], err);
        }
        if (code == 0 && clock_mono_us() > until_us)
            code =
                err_set(err, ERR_DEADLINE, "only %zu of %zu nodes are idle after %u s; see %s/log",
                        idle, nodes->len, o->wait_s, o->dir);
        pause_ms(20);
    }
    client_free(client);
    return code;
}

/* ---- the file a shell sources ---- */

static void add_quoted(struct str *out, const char *text)
{
    str_add_char(out, '\'');
    for (; *text; text++) {
        if (*text == '\'')
            str_add(out, "'\\''");
        else
            str_add_char(out, *text);
    }
    str_add_char(out, '\'');
}

static int write_env(const struct up_options *o, const char *conf, struct err *err)
{
    CLEANUP(freep) char *path = mem_printf("%s/env", o->dir);
    struct str text = { 0 };
    char self[4096];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

    self[len > 0 ? len : 0] = '\0';
    if (len > 0)
        *strrchr(self, '/') = '\0';
    /* In a build tree Slurm's names are links in build/bin; installed, they are beside spur. */
    CLEANUP(freep) char *links = mem_printf("%s/../../bin/sbatch", self);
    CLEANUP(freep)
    char *bin = access(links, X_OK) == 0 ? mem_printf("%s/../../bin", self) : mem_strdup(self);
    CLEANUP(freep) char *real = realpath(bin, NULL);
    str_add(&text, "# Source this to use the cluster:  . ");
    str_addf(&text, "%s\nexport PATH=", path);
    add_quoted(&text, real ? real : bin);
    str_add(&text, ":\"$PATH\"\nexport SPUR_CONF=");
    add_quoted(&text, conf);
    str_add(&text, "\nexport SPUR_DIR=");
    add_quoted(&text, o->dir);
    CLEANUP(freep) char *addrs = up_socket_list(o);
    str_add(&text, "\nunset SPUR_JWT SLURM_JWT\nexport SPUR_CONTROLLER_ADDR=");
    add_quoted(&text, addrs);
    if (o->rest_port && !o->no_rest)
        str_addf(&text, "\nexport SPUR_REST_ADDR=http://localhost:%u", o->rest_port);
    CLEANUP(freep) char *accounting = mem_printf("unix:%s/run/" UP_DBD ".sock", o->dir);
    str_add(&text, "\nunset SPUR_ACCOUNTING_ADDR\n");
    if (up_conf_accounts(conf)) {
        str_add(&text, "export SPUR_ACCOUNTING_ADDR=");
        add_quoted(&text, accounting);
        str_add_char(&text, '\n');
    }
    int code = file_write_quick(path, str_text(&text), text.len, 0644, err);
    str_done(&text);
    return code;
}

/* ---- the two commands ---- */

static int make_dirs(const char *dir, struct err *err)
{
    static const char *const below[] = { "run", "log", "state", "spool" };

    for (size_t i = 0; i < ARRAY_LEN(below); i++) {
        CLEANUP(freep) char *path = mem_printf("%s/%s", dir, below[i]);
        if (file_make_dirs(path, 0755, err) < 0)
            return -(int)err->code;
    }
    return 0;
}

static int prepare(struct up_options *o, up_names *nodes, char **conf, struct err *err)
{
    *conf = up_conf_found(o->dir);
    if (*conf && o->sized)
        return err_set(
            err, ERR_EXISTS,
            "'%s' holds a cluster already; start it with: spur up --dir %s, or remove it "
            "with: spur down --dir %s --remove",
            o->dir, o->dir, o->dir);
    if (*conf)
        return up_read_ports(o, err) < 0 ? -(int)err->code : up_conf_nodes(*conf, nodes, err);
    o->controllers = MAX(o->controllers, 1u);
    if (make_dirs(o->dir, err) < 0 || up_conf_write(o, conf, nodes, err) < 0 ||
        up_choose_ports(o, nodes->len, err) < 0 ||
        (o->controllers > 1 && up_conf_add_hosts(*conf, o, err) < 0))
        return -(int)err->code;
    return up_write_ports(o, err);
}

/* Those that do not run. */
static int start_daemons(const struct up_options *o, const up_names *nodes, const char *conf,
                         struct err *err)
{
    if (start_accounting(o, conf, err) < 0 || start_controllers(o, conf, err) < 0 ||
        start_agents(o, nodes, err) < 0 || wait_idle(o, nodes, err) < 0)
        return -(int)err->code;
    return 0;
}

static int bring_up(struct up_options *o, up_names *nodes, char **conf, struct err *err)
{
    if (prepare(o, nodes, conf, err) < 0)
        return -(int)err->code;
    if (nodes->len > UP_MOST_NODES)
        return err_set(err, ERR_TOO_MANY,
                       "the configuration has %zu nodes; here at most %d agents run", nodes->len,
                       (int)UP_MOST_NODES);
    int code = start_daemons(o, nodes, *conf, err);
    /* One that was on its way out when we looked, after kill -9 say, is started the second time. */
    return code == -(int)ERR_INTERNAL ? start_daemons(o, nodes, *conf, err) : code;
}

int up_main(int argc, char **argv)
{
    struct up_options o = { .dir = "spur-cluster", .nodes = 1, .wait_s = 30 };
    CLEANUP(freep) char *conf = NULL;
    up_names nodes = { 0 };
    struct err err = { 0 };
    unsigned count;
    int code = up_read_options(argc, argv, &o);

    if (code >= 0)
        return code;
    unsetenv("SPUR_JWT"); /* of another cluster */
    unsetenv("SLURM_JWT");
    CLEANUP(freep) char *dir = NULL;
    if (file_make_dirs(o.dir, 0755, &err) == 0)
        dir = realpath(o.dir, NULL);
    if (!dir)
        return fail("up", &err);
    o.dir = dir;
    unsigned wanted = o.controllers;
    bool was_up = up_alive(dir, "ctl1", NULL);
    code = bring_up(&o, &nodes, &conf, &err);
    if (code == 0 && wanted)
        code = up_change(&o, conf, wanted, &err);
    if (code == 0 && !o.no_rest && up_start_rest(&o, &err) < 0) {
        fprintf(stderr, "spur up: warning: there is no REST API: %s\n", err.text);
        err_clear(&err);
        o.rest_port = 0;
    }
    if (code == 0)
        code = up_write_ports(&o, &err);
    if (code == 0)
        code = write_env(&o, conf, &err);
    if (code < 0) {
        struct err ignored;
        if (!was_up)
            up_stop_all(dir, &count, &ignored);
        code = fail("up", &err);
    } else if (!o.quiet) {
        printf("Cluster is up: %u controller%s, %zu node%s, in %s\nUse it:  . %s/env\n"
               "End it:  spur down --dir %s\n",
               o.controllers, o.controllers == 1 ? "" : "s", nodes.len, nodes.len == 1 ? "" : "s",
               dir, dir, dir);
        if (o.rest_port)
            printf("Page:    http://localhost:%u/    (REST: /api/v1/ping)\n", o.rest_port);
    }
    vec_each (char *, name, &nodes)
        free(*name);
    vec_done(&nodes);
    return code;
}

int down_main(int argc, char **argv)
{
    static const struct option longs[] = {
        { "dir", required_argument, NULL, 'd' },
        { "remove", no_argument, NULL, 'r' },
        { "help", no_argument, NULL, 'h' },
        { 0 },
    };
    const char *dir = "spur-cluster";
    bool remove_dir = false;
    struct err err = { 0 };
    unsigned count = 0;
    int key;

    optind = 1;
    while ((key = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
        if (key == 'd')
            dir = optarg;
        else if (key == 'r')
            remove_dir = true;
        else
            return fputs(down_help, key == 'h' ? stdout : stderr), key != 'h';
    }
    CLEANUP(freep) char *run = mem_printf("%s/run", dir);
    if (access(run, F_OK) != 0) {
        fprintf(stderr, "spur down: error: '%s' holds no cluster\n", dir);
        return 1;
    }
    if (up_stop_all(dir, &count, &err) < 0)
        return fail("down", &err);
    if (remove_dir && file_remove_tree(dir, &err) < 0)
        return fail("down", &err);
    printf("Ended %u process%s of the cluster in %s\n", count, count == 1 ? "" : "es", dir);
    return 0;
}
