/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - spurd: the agent on each node
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <uv.h>

#include "client/conf_file.h"
#include "rpc/address.h"
#include "spurd/agent.h"
#include "spurd/join_token.h"
#include "spurd/node/inventory.h"
#include "sys/clock.h"
#include "sys/daemon.h"
#include "sys/files.h"
#include "sys/host.h"
#include "sys/log.h"
#include "sys/slurm_daemon.h"

enum { PORT_NODE = 6818, PORT_CONTROLLER = 6817 };

/* Everything the command line can say. */
struct options {
    bool foreground, print_config, print_gres, plaintext, login, slurm, lock_memory, chdir_log;
    int verbose;
    const char *name, *controllers, *port, *listen, *addr, *spool_dir, *run_dir, *conf, *log_file,
        *pid_file, *token_file, *sysroot, *cgroup_root, *stepd, *tls_ca, *tls_cert, *tls_key,
        *socket;
};

enum { TEXT, FLAG, COUNT };

/* One row per option: parser and help read it. */
static const struct row {
    const char *name;
    char key;
    const char *arg; /* NULL: none */
    int kind;
    size_t at;
    const char *help;
} rows[] = {
#define AT(field) offsetof(struct options, field)
    { "controller", 'c', "URL[,URL]", TEXT, AT(controllers),
      "controllers, tried in turn (SPUR_CONTROLLER_ADDR, or the configuration's)" },
    { "node", 'N', "NAME", TEXT, AT(name), "name of this node (the host's)" },
    { "foreground", 'D', NULL, FLAG, AT(foreground), "stay in the foreground, log to stderr" },
    { "conf", 'f', "FILE", TEXT, AT(conf), "configuration file (SPUR_CONF); a node needs none" },
    { "port", 0, "PORT", TEXT, AT(port), "port to listen on (6818); 0 for any free one" },
    { "listen", 0, "ADDR", TEXT, AT(listen), "address and port to listen on; none: do not" },
    { "addr", 0, "HOST", TEXT, AT(addr), "where others reach this node (the host's name)" },
    { "spool-dir", 0, "DIR", TEXT, AT(spool_dir), "what must survive (/var/spool/spurd)" },
    { "run-dir", 0, "DIR", TEXT, AT(run_dir),
      "what a reboot may take (chosen in memory: /run, /dev/shm)" },
    { "login", 0, NULL, FLAG, AT(login),
      "no node: vouch for the users of this login host (access.login_nodes)" },
    { "socket", 0, "FILE", TEXT, AT(socket),
      "where commands of this host find us (/run/spur/spurd.sock; with --spool-dir: nowhere)" },
    { "token-file", 0, "FILE", TEXT, AT(token_file), "join token (/etc/spur/join.token)" },
    { "tls-ca", 0, "FILE", TEXT, AT(tls_ca), "whom to trust, instead of what joining gave" },
    { "tls-cert", 0, "FILE", TEXT, AT(tls_cert), "certificate of this node" },
    { "tls-key", 0, "FILE", TEXT, AT(tls_key), "its key" },
    { "allow-plaintext", 0, NULL, FLAG, AT(plaintext), "do without TLS outside this host too" },
    { "cgroup-root", 0, "DIR", TEXT, AT(cgroup_root),
      "where cgroup v2 is mounted; none: do without" },
    { "sysroot", 0, "DIR", TEXT, AT(sysroot),
      "look for hardware below DIR (SPUR_SYSROOT): a recorded machine" },
    { "stepd", 0, "FILE", TEXT, AT(stepd), "the supervisor program (spurstepd beside spurd)" },
    { "log-file", 'L', "FILE", TEXT, AT(log_file), "log there too" },
    { "pid-file", 0, "FILE", TEXT, AT(pid_file), "write the process id there" },
    { "verbose", 'v', NULL, COUNT, AT(verbose), "more detail; may be repeated" },
    { "print-config", 'C', NULL, FLAG, AT(print_config),
      "print this machine as a line of slurm.conf, and exit" },
    { "print-gres", 0, NULL, FLAG, AT(print_gres), "print the devices found, and exit" },
    { "lock-memory", 0, NULL, FLAG, AT(lock_memory), "keep this process in memory" },
    { "chdir-log", 0, NULL, FLAG, AT(chdir_log), "work in the directory of the log file" },
    { "slurm", 0, NULL, FLAG, AT(slurm),
      "as slurmd: serve at once, get a join token from a controller of this host" },
#undef AT
};

static void print_help(void)
{
    puts("usage: spurd [OPTIONS]\n"
         "The agent of a node: runs what the controller grants to it.\n");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char left[64];
        snprintf(left, sizeof(left), "%c%c%s --%s%s%s", rows[i].key ? '-' : ' ',
                 rows[i].key ? rows[i].key : ' ', rows[i].key ? "," : " ", rows[i].name,
                 rows[i].arg ? "=" : "", rows[i].arg ? rows[i].arg : "");
        printf("  %-30s %s\n", left, rows[i].help);
    }
    puts("  -V, --version\n  -h, --help\n\n"
         "Called slurmd or sackd, it takes Slurm's options: slurmd --help.");
}

static bool take(struct options *options, const struct row *row, const char *value)
{
    void *field = (char *)options + row->at;

    if (row->kind == TEXT)
        *(const char **)field = value;
    else if (row->kind == FLAG)
        *(bool *)field = true;
    else
        (*(int *)field)++;
    return true;
}

/* -1: go on; otherwise the exit status. */
static int parse(int argc, char **argv, struct options *options)
{
    struct option longs[ARRAY_LEN(rows) + 3] = { 0 };
    char shorts[2 * ARRAY_LEN(rows) + 4] = "Vh";
    int key;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        longs[i] = (struct option){ .name = rows[i].name,
                                    .has_arg = rows[i].arg ? required_argument : no_argument,
                                    .val = 256 + (int)i };
        if (rows[i].key)
            sprintf(shorts + strlen(shorts), "%c%s", rows[i].key, rows[i].arg ? ":" : "");
    }
    longs[ARRAY_LEN(rows)] = (struct option){ .name = "version", .val = 'V' };
    longs[ARRAY_LEN(rows) + 1] = (struct option){ .name = "help", .val = 'h' };
    while ((key = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        if (key == 'V')
            return printf("spur %s\n", SPUR_VERSION) < 0;
        if (key == 'h') {
            print_help();
            return 0;
        }
        size_t at = ARRAY_LEN(rows);
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
            if (key == 256 + (int)i || (rows[i].key && key == rows[i].key))
                at = i;
        }
        if (at == ARRAY_LEN(rows)) {
            fputs("Try 'spurd --help'.\n", stderr);
            return 2;
        }
        take(options, &rows[at], optarg);
    }
    if (options->socket && options->socket[0] != '/') {
        fprintf(stderr, "spurd: --socket '%s' is not an absolute path\n", options->socket);
        return 2;
    }
    if (optind < argc) {
        fprintf(stderr, "spurd: unexpected argument '%s'\n", argv[optind]);
        return 2;
    }
    return -1;
}

/* ---- what the command line does not say ---- */

/* Where spurstepd is when it is not said: beside us, or in the build tree. */
static char *find_stepd(void)
{
    static const char *const places[] = { "%s/spurstepd", "%s/../spurstepd/spurstepd",
                                          "%s/../sbin/spurstepd" };
    char self[4096];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

    self[len > 0 ? len : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        struct str path = { 0 };
        const char *rest = places[i] + 2;
        str_addf(&path, "%s%s", self, rest);
        if (access(str_text(&path), X_OK) == 0)
            return str_take(&path);
        str_done(&path);
    }
    return mem_strdup("/usr/sbin/spurstepd");
}

/* %n and %h in a path of the configuration. */
static char *expand_path(const char *path, const char *node, const char *host)
{
    struct str out = { 0 };

    for (; path && *path; path++) {
        if (path[0] == '%' && (path[1] == 'n' || path[1] == 'h'))
            str_add(&out, *++path == 'n' ? node : host);
        else
            str_add_char(&out, *path);
    }
    return str_take(&out);
}

/* "c1" or "c1(10.0.0.1)" of the configuration, with the port that controllers listen on. */
static char *conf_controllers(const ConfLocal *local)
{
    struct str out = { 0 };
    unsigned port = PORT_CONTROLLER;
    const char *colon = local->n_listen_addr ? strrchr(local->listen_addr[0], ':') : NULL;
    int64_t number;

    if (colon && str_to_i64(colon + 1, 1, 65535, &number))
        port = (unsigned)number;
    for (size_t i = 0; i < local->n_hosts; i++) {
        const char *host = local->hosts[i], *open = strchr(host, '(');
        size_t len = strlen(host);
        if (open) {
            host = open + 1;
            len = strcspn(host, ")");
        }
        str_addf(&out, "%s%.*s:%u", i ? "," : "", (int)len, host, port);
    }
    return str_take(&out);
}

struct settings {
    struct conf *conf;
    char host[HOST_NAME_BYTES], short_host[HOST_NAME_BYTES];
    char *controllers, *listen, *spool_dir, *log_file, *pid_file, *stepd;
    char *name, *addr, *own_token;
    unsigned port; /* 0: the configuration has none for this node */
    const char *token_file, *sysroot;
};

/* ---- the node's own line of the configuration ---- */

struct own_line {
    struct settings *settings;
    const char *name; /* NULL: by NodeHostname */
    bool found;
};

static int take_line(void *ctx, const NodeSpec *node)
{
    struct own_line *own = ctx;
    struct settings *settings = own->settings;

    if (own->name ? !str_eq(node->name, own->name)
                  : !str_eq(node->hostname, settings->short_host) &&
                        !str_eq(node->hostname, settings->host))
        return 0;
    own->found = true;
    free(settings->name);
    settings->name = mem_strdup(node->name);
    if (!str_is_empty(node->addr) && !str_eq(node->addr, node->name))
        settings->addr = mem_strdup(node->addr);
    settings->port = node->has_port ? node->port : 0;
    return 1;
}

/* A node that is not named is the one of this host's name, or of this NodeHostname. */
static void settle_node(struct settings *settings, const struct options *options)
{
    struct own_line own = { .settings = settings, .name = settings->name };
    struct err ignored = { 0 };

    if (!settings->conf || options->login)
        return;
    conf_each_node(conf_config(settings->conf), take_line, &own, &ignored);
    if (own.found || options->name)
        return;
    own.name = NULL;
    conf_each_node(conf_config(settings->conf), take_line, &own, &ignored);
}

static int settle_conf(struct settings *settings, const struct options *options, struct err *err)
{
    const char *path = conf_file_path(options->conf);

    if (options->conf || getenv("SPUR_CONF") || access(path, R_OK) == 0) {
        settings->conf = conf_file_load(options->conf, err);
        if (!settings->conf)
            return -(int)err->code;
    }
    return 0;
}

static int settle(struct settings *settings, const struct options *options, struct err *err)
{
    const char *env = getenv("SPUR_CONTROLLER_ADDR");
    const Config *config;
    unsigned port = PORT_NODE;
    int64_t number;

    host_name(settings->host);
    host_short(settings->short_host);
    settings->name = mem_strdup(options->name ? options->name : settings->short_host);
    settings->sysroot = options->sysroot ? options->sysroot : getenv("SPUR_SYSROOT");
    if (settle_conf(settings, options, err) < 0)
        return -(int)err->code;
    config = settings->conf ? conf_config(settings->conf) : NULL;
    settle_node(settings, options);
    if (options->controllers || !str_is_empty(env))
        settings->controllers = mem_strdup(options->controllers ? options->controllers : env);
    else if (settings->conf && conf_local(settings->conf)->n_hosts)
        settings->controllers = conf_controllers(conf_local(settings->conf));
    else
        settings->controllers = mem_strdup("http://localhost:6817");
    if (settings->port)
        port = settings->port;
    else if (config && config->has_node_port)
        port = config->node_port;
    if (options->port) {
        if (!str_to_i64(options->port, 0, 65535, &number))
            return err_set(err, ERR_INVALID, "'%s' is not a port", options->port);
        port = (unsigned)number;
    }
    if (!str_eq(options->listen, "none"))
        settings->listen =
            options->listen ? mem_strdup(options->listen) : mem_printf("[::]:%u", port);
    const char *spool = options->spool_dir                 ? options->spool_dir
                        : config && config->node_spool_dir ? config->node_spool_dir
                                                           : "/var/spool/spurd";
    settings->spool_dir = expand_path(spool, settings->name, settings->host);
    const char *log = options->log_file ? options->log_file : config ? config->node_log_file : NULL;
    if (!str_is_empty(log))
        settings->log_file = expand_path(log, settings->name, settings->host);
    const char *pid = options->pid_file ? options->pid_file : config ? config->node_pid_file : NULL;
    if (!str_is_empty(pid))
        settings->pid_file = expand_path(pid, settings->name, settings->host);
    settings->token_file = options->token_file;
    if (!settings->token_file && access("/etc/spur/join.token", R_OK) == 0)
        settings->token_file = "/etc/spur/join.token";
    if (!settings->token_file && options->slurm) {
        settings->own_token = mem_printf("%s/join.token", settings->spool_dir);
        settings->token_file = settings->own_token;
    }
    settings->stepd = options->stepd ? mem_strdup(options->stepd) : find_stepd();
    return 0;
}

static void settings_done(struct settings *settings)
{
    conf_free(settings->conf);
    free(settings->controllers);
    free(settings->listen);
    free(settings->spool_dir);
    free(settings->log_file);
    free(settings->pid_file);
    free(settings->stepd);
    free(settings->name);
    free(settings->addr);
    free(settings->own_token);
}

static void print_gres(const NodeInventory *node)
{
    for (size_t i = 0; i < node->n_gres; i++) {
        const GresInventory *gres = node->gres[i];
        printf("Gres Name=%s Type=%s Count=%llu", gres->name, gres->type ? gres->type : "(null)",
               (unsigned long long)gres->count);
        for (size_t k = 0; k < gres->n_files; k++)
            printf("%s%s", k ? "," : " File=", gres->files[k]);
        putchar('\n');
    }
}

/* -C and -G */
static int print_found(const struct settings *settings, bool devices, struct err *err)
{
    struct inventory inventory;
    const struct inventory_options options = { .root = settings->sysroot };
    CLEANUP(str_done) struct str text = { 0 };

    int ret = inventory_find(&inventory, &options, err);
    if (ret == 0 && devices) {
        print_gres(&inventory.node);
    } else if (ret == 0) {
        inventory_print(&inventory.node, settings->name, clock_boot_us() / 1000000, &text);
        fputs(str_text(&text), stdout);
    }
    inventory_done(&inventory);
    return ret;
}

/* ---- running ---- */

struct run {
    struct agent *agent;
    uv_signal_t term, intr, quit, hup, child;
};

static void on_end(uv_signal_t *handle, int signum)
{
    struct run *run = handle->data;

    log_info("agent.stopping", "signal=%d", signum);
    daemon_notify("STOPPING=1");
    if (signum == SIGQUIT)
        agent_end_all(run->agent); /* `spur down`: nothing is left behind */
    else
        agent_stop(run->agent);
    uv_close((uv_handle_t *)&run->term, NULL);
    uv_close((uv_handle_t *)&run->intr, NULL);
    uv_close((uv_handle_t *)&run->quit, NULL);
    uv_close((uv_handle_t *)&run->hup, NULL);
    uv_close((uv_handle_t *)&run->child, NULL);
}

static void on_hup(uv_signal_t *handle, int signum)
{
    (void)handle, (void)signum;
    log_reopen(NULL);
}

static void on_child(uv_signal_t *handle, int signum)
{
    struct run *run = handle->data;

    (void)signum;
    agent_child_ended(run->agent);
}

static void watch(uv_loop_t *uv, struct run *run)
{
    const struct {
        uv_signal_t *handle;
        uv_signal_cb act;
        int number;
    } list[] = {
        { &run->term, on_end, SIGTERM },    { &run->intr, on_end, SIGINT },
        { &run->quit, on_end, SIGQUIT },    { &run->hup, on_hup, SIGHUP },
        { &run->child, on_child, SIGCHLD },
    };

    for (size_t i = 0; i < ARRAY_LEN(list); i++) {
        uv_signal_init(uv, list[i].handle);
        list[i].handle->data = run;
        uv_signal_start(list[i].handle, list[i].act, list[i].number);
    }
}

static int write_pid(const struct settings *settings, struct err *err)
{
    CLEANUP(freep) char *text = mem_printf("%d\n", (int)getpid());

    return settings->pid_file ? file_write_quick(settings->pid_file, text, strlen(text), 0644, err)
                              : 0;
}

/*
 * slurmd has no join token to begin with. Root on a controller's host gets one there by asking, as often as it
 * takes: slurmd may be started first, and is in the background by then.
 */
static int join_before(const struct settings *settings, struct err *err)
{
    enum { AGAIN_S = 1 };
    CLEANUP(freep) char *joined = mem_printf("%s/node.token", settings->spool_dir);
    bool told = false;

    if (!settings->own_token || access(joined, F_OK) == 0)
        return 0;
    if (file_make_dirs(settings->spool_dir, 0755, err) < 0)
        return -(int)err->code;
    daemon_ready();
    while (join_ask_token(settings->controllers, settings->name, settings->own_token, err) < 0) {
        if (!told)
            log_warn("join.waits",
                     "node=%s no controller gives a join token yet: %s. On another host put what "
                     "'spur token --join' prints into /etc/spur/join.token (mode 0600)",
                     settings->name, err->text);
        told = true;
        sleep(AGAIN_S);
    }
    return 0;
}

static int serve(const struct options *options, const struct settings *settings, struct err *err)
{
    uv_loop_t uv;
    struct run run = { 0 };
    /* With a spool of its own it is one of several here, or not for this host's users. */
    const char *socket = options->socket                         ? options->socket
                         : options->slurm && options->name       ? NULL
                         : options->login || !options->spool_dir ? ADDRESS_AGENT_SOCKET
                                                                 : NULL;
    const struct agent_options agent_options = {
        .name = settings->name,
        .controllers = settings->controllers,
        .listen = settings->listen,
        .addr = options->addr ? options->addr : settings->addr,
        .spool_dir = settings->spool_dir,
        .run_dir = options->run_dir,
        .program = settings->stepd,
        .conf = conf_file_path(options->conf),
        .plugstack = settings->conf ? conf_local(settings->conf)->plugstack : NULL,
        .plugin_dir = settings->conf ? conf_local(settings->conf)->plugin_dir : NULL,
        .sysroot = settings->sysroot,
        .cgroup_root = options->cgroup_root,
        .token_file = settings->token_file,
        .tls_ca = options->tls_ca,
        .tls_cert = options->tls_cert,
        .tls_key = options->tls_key,
        .allow_plaintext = options->plaintext,
        .login_socket = options->login ? socket : NULL,
        .verbose = (unsigned)options->verbose,
        .host_socket = options->login ? NULL : socket,
    };

    if (write_pid(settings, err) < 0 || (options->slurm && join_before(settings, err) < 0))
        return -(int)err->code;
    uv_loop_init(&uv);
    run.agent = agent_new(&uv, &agent_options, err);
    if (!run.agent) {
        uv_loop_close(&uv);
        return -(int)err->code;
    }
    watch(&uv, &run);
    daemon_ready();
    uv_run(&uv, UV_RUN_DEFAULT);
    agent_free(run.agent);
    uv_loop_close(&uv);
    if (settings->pid_file)
        unlink(settings->pid_file);
    return 0;
}

static int start_log(const struct options *options, const struct settings *settings,
                     struct err *err)
{
    const Config *config = settings->conf ? conf_config(settings->conf) : NULL;
    enum log_level level = LOG_LEVEL_INFO;

    if (config && config->node_log_level)
        log_level_parse(config->node_log_level, &level);
    level = MIN(level + (unsigned)options->verbose, LOG_LEVEL_COUNT - 1);
    const struct log_outputs log = {
        .name = "spurd",
        .file = settings->log_file,
        .to_stderr = options->foreground || !settings->log_file,
        .to_journald = getenv("JOURNAL_STREAM") != NULL,
        .stderr_level = level,
        .file_level = level,
        .journald_level = level,
    };
    return log_setup(&log, err);
}

/* What must hold in the process that serves. */
static int settle_process(const struct options *options, const struct settings *settings,
                          struct err *err)
{
    const char *slash = settings->log_file ? strrchr(settings->log_file, '/') : NULL;

    if (options->lock_memory && mlockall(MCL_CURRENT | MCL_FUTURE) < 0)
        return err_errno(err, errno, "--lock-memory");
    if (!options->chdir_log)
        return 0;
    if (!slash)
        return err_set(err, ERR_INVALID, "--chdir-log: no log file is named");
    CLEANUP(freep)
    char *dir = mem_strndup(settings->log_file, (size_t)MAX(slash - settings->log_file, 1));
    return chdir(dir) < 0 ? err_errno(err, errno, "'%s'", dir) : 0;
}

int main(int argc, char **argv)
{
    struct options options = { 0 };
    struct settings settings = { 0 };
    struct err err = { 0 };

    files_hold_standard();
    int status = slurm_daemon_is(argv[0]) ? slurm_daemon_arguments(&argc, &argv) : -1;

    if (status < 0)
        status = parse(argc, argv, &options);
    if (status >= 0)
        return status;
    if (settle(&settings, &options, &err) == 0) {
        if (options.print_config || options.print_gres) {
            status = print_found(&settings, options.print_gres, &err);
        } else {
            status = start_log(&options, &settings, &err);
            if (status == 0 && !options.foreground)
                status = daemon_detach(&err);
            if (status == 0)
                status = settle_process(&options, &settings, &err);
            if (status == 0)
                status = serve(&options, &settings, &err);
        }
    } else {
        status = 1;
    }
    if (status != 0)
        fprintf(stderr, "spurd: %s\n", err.text);
    settings_done(&settings);
    log_shutdown();
    return status != 0;
}
