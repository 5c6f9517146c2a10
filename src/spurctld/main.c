/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - spurctld: reads its options, makes the one loop, serves until told to stop
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"
#include "client/conf_file.h"
#include "spurctld/serve.h"
#include "sys/daemon.h"
#include "sys/files.h"
#include "sys/heap.h"
#include "sys/log.h"
#include "sys/signals.h"
#include "sys/slurm_daemon.h"

int server_run(const struct server_options *options, struct err *err);

static const char help[] =
    "Usage: spurctld [OPTIONS]\n"
    "The controller of a Spur cluster.\n\n"
    "  -D                   stay in the foreground, log to standard error\n"
    "  -f, --conf FILE      configuration: spur.conf or slurm.conf (default $SPUR_CONF or\n"
    "                       /etc/spur/spur.conf)\n"
    "      --name NAME      name of this controller (default: this host's name)\n"
    "      --listen ADDR    address to serve, such as [::]:6817; may be given several times\n"
    "      --state-dir DIR  where the cluster's state is kept (default /var/lib/spur)\n"
    "      --socket PATH    unix socket for commands on this host\n"
    "      --advertise ADDR where others send callers when this one leads\n"
    "      --accounting ADDR\n"
    "                       where spurdbd is, instead of what the configuration says\n"
    "      --join FILE      enter a cluster with the invitation of spur controller add\n"
    "      --log-file FILE  log to this file too\n"
    "      --accept-loss N  start although entries from N on are damaged or missing\n"
    "      --chdir-log      work in the directory of the log file\n"
    "  -v, --verbose        more detail; may be repeated\n"
    "  -V, --version        print the version\n"
    "  -h, --help           print this\n"
    "\nCalled slurmctld, it takes Slurm's options: slurmctld --help.\n";

enum {
    OPT_NAME = 256,
    OPT_LISTEN,
    OPT_STATE,
    OPT_SOCKET,
    OPT_LOG,
    OPT_LOSS,
    OPT_ADVERTISE,
    OPT_ACCOUNTING,
    OPT_JOIN,
    OPT_CHDIR
};

static const struct option longs[] = {
    { "conf", required_argument, NULL, 'f' },
    { "name", required_argument, NULL, OPT_NAME },
    { "listen", required_argument, NULL, OPT_LISTEN },
    { "state-dir", required_argument, NULL, OPT_STATE },
    { "socket", required_argument, NULL, OPT_SOCKET },
    { "advertise", required_argument, NULL, OPT_ADVERTISE },
    { "accounting", required_argument, NULL, OPT_ACCOUNTING },
    { "join", required_argument, NULL, OPT_JOIN },
    { "log-file", required_argument, NULL, OPT_LOG },
    { "accept-loss", required_argument, NULL, OPT_LOSS },
    { "chdir-log", no_argument, NULL, OPT_CHDIR },
    { "verbose", no_argument, NULL, 'v' },
    { "version", no_argument, NULL, 'V' },
    { "help", no_argument, NULL, 'h' },
    { 0 },
};

struct arguments {
    struct server_options server;
    VEC(const char *) listen;
    const char *log_file;
    bool foreground, chdir_log;
    unsigned verbose;
};

/* Returns -1 to go on, else the exit code. */
static int read_arguments(int argc, char **argv, struct arguments *a)
{
    int key;

    while ((key = getopt_long(argc, argv, "Df:vVh", longs, NULL)) != -1) {
        switch (key) {
        case 'D':
            a->foreground = true;
            break;
        case 'f':
            a->server.conf_path = optarg;
            break;
        case OPT_NAME:
            a->server.name = optarg;
            break;
        case OPT_LISTEN:
            vec_push(&a->listen, optarg);
            break;
        case OPT_STATE:
            a->server.state_dir = optarg;
            break;
        case OPT_SOCKET:
            a->server.socket = optarg;
            break;
        case OPT_ADVERTISE:
            a->server.advertise = optarg;
            break;
        case OPT_ACCOUNTING:
            a->server.accounting = optarg;
            break;
        case OPT_JOIN:
            a->server.join = optarg;
            break;
        case OPT_LOG:
            a->log_file = optarg;
            break;
        case OPT_LOSS:
            if (!str_to_u64(optarg, UINT64_MAX, &a->server.accept_loss)) {
                fprintf(stderr, "spurctld: error: --accept-loss '%s' is no entry number\n", optarg);
                return 2;
            }
            break;
        case OPT_CHDIR:
            a->chdir_log = true;
            break;
        case 'v':
            a->verbose++;
            break;
        case 'V':
            printf("spurctld %s\n", SPUR_VERSION);
            return 0;
        case 'h':
            fputs(help, stdout);
            return 0;
        default:
            fputs("Try \"spurctld --help\" for more information\n", stderr);
            return 2;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "spurctld: error: unexpected argument '%s'\n", argv[optind]);
        return 2;
    }
    return -1;
}

static int work_beside(const char *file, struct err *err)
{
    const char *slash = file ? strrchr(file, '/') : NULL;
    CLEANUP(freep) char *dir = slash ? mem_strndup(file, MAX(slash - file, 1)) : NULL;

    if (!dir)
        return err_set(err, ERR_INVALID, "--chdir-log: no log file is named");
    return chdir(dir) < 0 ? err_errno(err, errno, "'%s'", dir) : 0;
}

/* As the command line says it, else the file. */
static int set_up_log(const struct arguments *a, const ConfLocal *local, struct err *err)
{
    enum log_level level = LOG_LEVEL_INFO;
    const char *file = a->log_file ? a->log_file : local ? local->log_file : NULL;

    if (local && local->log_level)
        log_level_parse(local->log_level, &level);
    level = MIN(level + a->verbose, LOG_LEVEL_DEBUG5);
    struct log_outputs config = {
        .name = "spurctld",
        .file = file,
        .to_stderr = true,
        .to_journald = !a->foreground && !file,
        .stderr_level = a->foreground ? level : LOG_LEVEL_ERROR,
        .file_level = level,
        .journald_level = level,
    };

    int code = log_setup(&config, err);
    return code == 0 && a->chdir_log ? work_beside(file, err) : code;
}

static int write_pid(const char *path, struct err *err)
{
    CLEANUP(freep) char *text = mem_printf("%d\n", (int)getpid());

    return str_is_empty(path) ? 0 : file_write_quick(path, text, strlen(text), 0644, err);
}

/* In the process that serves. One that joins gets its configuration by that. */
static int serve(const struct arguments *a, struct err *err)
{
    struct err unread = { 0 };
    CLEANUP(conf_freep) struct conf *conf = conf_file_load(a->server.conf_path, &unread);
    const ConfLocal *local = conf ? conf_local(conf) : NULL;
    const char *pid_file = local ? local->pid_file : NULL;

    if (!conf && !a->server.join) {
        *err = unread;
        return -(int)err->code;
    }
    int code = set_up_log(a, local, err);
    if (code == 0)
        code = write_pid(pid_file, err);
    if (code == 0) {
        code = server_run(&a->server, err);
        if (!str_is_empty(pid_file))
            unlink(pid_file);
    }
    return code;
}

/* Before the first of them is needed. */
static void set_workers(void)
{
    char count[16];

    snprintf(count, sizeof(count), "%d", SERVER_WORKERS);
    setenv("UV_THREADPOOL_SIZE", count, 0);
}

int main(int argc, char **argv)
{
    struct arguments a = { 0 };
    struct err err = { 0 };

    mem_steady();
    heap_begin();
    files_hold_standard();
    int code = slurm_daemon_is(argv[0]) ? slurm_daemon_arguments(&argc, &argv) : -1;

    if (code >= 0)
        return code;
    code = read_arguments(argc, argv, &a);

    if (code < 0) {
        vec_push(&a.listen, NULL);
        a.server.listen = a.listen.len > 1 ? a.listen.items : NULL;
        a.server.verbose = a.verbose;
        signals_ignore_pipe();
        set_workers();
        if ((!a.foreground && daemon_detach(&err) < 0) || (code = serve(&a, &err)) < 0) {
            log_fatal("ctl.stopped", "text=%s", err.text);
            code = 1;
        }
        log_shutdown();
    }
    vec_done(&a.listen);
    return code;
}
