/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - spurdbd: reads its options, makes the one loop, serves until told to stop
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "spurdbd/serve.h"
#include "sys/daemon.h"
#include "sys/files.h"
#include "sys/log.h"
#include "sys/signals.h"

static const char help[] =
    "Usage: spurdbd [OPTIONS]\n"
    "The accounting daemon of Spur clusters: keeps the history of jobs in a database.\n\n"
    "  -D                   stay in the foreground, log to standard error\n"
    "  -f, --conf FILE      configuration (default $SPUR_CONF or /etc/spur/spur.conf)\n"
    "      --database-url URL\n"
    "                       default $SPUR_DATABASE_URL, then accounting.database_url:\n"
    "                       sqlite:PATH (default: spur.db in the state directory)\n"
    "                       or postgresql://USER:PASSWORD@HOST/DATABASE\n"
    "      --migrate        bring the tables of an older version up to date, then serve\n"
    "      --listen ADDR    address to serve (default [::]:6819); may be given several times\n"
    "      --socket PATH    unix socket for commands and controllers on this host\n"
    "      --state-dir DIR  where the database and keys are kept (default /var/lib/spurdb)\n"
    "      --log-file FILE  log to this file too\n"
    "  -v, --verbose        more detail; may be repeated\n"
    "  -V, --version        print the version\n"
    "  -h, --help           print this\n";

enum { OPT_URL = 256, OPT_MIGRATE, OPT_LISTEN, OPT_SOCKET, OPT_STATE, OPT_LOG };

static const struct option longs[] = {
    { "conf", required_argument, NULL, 'f' },
    { "database-url", required_argument, NULL, OPT_URL },
    { "migrate", no_argument, NULL, OPT_MIGRATE },
    { "listen", required_argument, NULL, OPT_LISTEN },
    { "socket", required_argument, NULL, OPT_SOCKET },
    { "state-dir", required_argument, NULL, OPT_STATE },
    { "log-file", required_argument, NULL, OPT_LOG },
    { "verbose", no_argument, NULL, 'v' },
    { "version", no_argument, NULL, 'V' },
    { "help", no_argument, NULL, 'h' },
    { 0 },
};

struct arguments {
    struct dbd_options dbd;
    VEC(const char *) listen;
    const char *log_file;
    char *url;
    bool foreground;
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
            a->dbd.conf_path = optarg;
            break;
        case OPT_URL:
            free(a->url);
            a->dbd.url = a->url = mem_strdup(optarg);
            store_hide_password(optarg); /* ps shows what argv has */
            break;
        case OPT_MIGRATE:
            a->dbd.migrate = true;
            break;
        case OPT_LISTEN:
            vec_push(&a->listen, optarg);
            break;
        case OPT_SOCKET:
            a->dbd.socket = optarg;
            break;
        case OPT_STATE:
            a->dbd.state_dir = optarg;
            break;
        case OPT_LOG:
            a->log_file = optarg;
            break;
        case 'v':
            a->verbose++;
            break;
        case 'V':
            printf("spurdbd %s\n", SPUR_VERSION);
            return 0;
        case 'h':
            fputs(help, stdout);
            return 0;
        default:
            fputs("Try \"spurdbd --help\" for more information\n", stderr);
            return 2;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "spurdbd: error: unexpected argument '%s'\n", argv[optind]);
        return 2;
    }
    return -1;
}

static int set_up_log(const struct arguments *a, struct err *err)
{
    enum log_level level = MIN(LOG_LEVEL_INFO + a->verbose, LOG_LEVEL_DEBUG3);
    struct log_outputs config = {
        .name = "spurdbd",
        .file = a->log_file,
        .to_stderr = true,
        .to_journald = !a->foreground && !a->log_file,
        .stderr_level = a->foreground ? level : LOG_LEVEL_ERROR,
        .file_level = level,
        .journald_level = level,
    };

    return log_setup(&config, err);
}

/*
 * The controller often shares this host, and no job waits for the database. Linux weighs sessions against each
 * other before it looks at nice values (autogroup), so a daemon that leads its session lowers the session too.
 */
static void yield_to_controller(void)
{
    setpriority(PRIO_PROCESS, 0, 19);
    int fd = getsid(0) == getpid() ? open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        if (write(fd, "19", 2) < 0)
            log_debug("dbd.autogroup", "errno=%d", errno);
        close(fd);
    }
}

/* Serves until told to stop. Returns the exit code, or -1 with err set. */
static int serve(struct arguments *a, struct err *err)
{
    if (!a->foreground && daemon_detach(err) < 0)
        return -1;
    if (set_up_log(a, err) < 0)
        return -1;
    yield_to_controller();
    return dbd_run(&a->dbd, err);
}

int main(int argc, char **argv)
{
    struct arguments a = { 0 };
    struct err err = { 0 };

    files_hold_standard();
    int code = read_arguments(argc, argv, &a);
    if (code < 0) {
        vec_push(&a.listen, NULL);
        a.dbd.listen = a.listen.len > 1 ? a.listen.items : NULL;
        signals_ignore_pipe();
        code = serve(&a, &err);
        if (code < 0) {
            log_fatal("dbd.stopped", "text=%s", err.text);
            code = 1;
        }
        log_shutdown();
    }
    vec_done(&a.listen);
    free(a.url);
    return code;
}
