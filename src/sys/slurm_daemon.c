/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slurm_daemon.c - Slurm's options of daemons, one row each, and what they become
 */
#include "sys/slurm_daemon.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/release.h"
#include "base/str.h"
#include "base/util.h"
#include "base/vec.h"

#define SLURM_CONF_DEFAULT "/etc/slurm/slurm.conf"
#define OUR_CONF_DEFAULT   "/etc/spur/spur.conf"

enum act {
    BECOMES, /* our option `ours` */
    ALREADY, /* `text` says why nothing is to be done */
    REFUSED, /* `text` says why */
    NICE,
    PRINTS_VERSION,
    PRINTS_HELP,
};

struct row {
    char key;
    const char *name; /* NULL: it has a letter only */
    const char *arg;  /* NULL: none; "[X]": optional */
    enum act act;
    const char *ours;
    const char *text;
};

#define COMMON_ROWS                                                                     \
    { 'h', "help", NULL, PRINTS_HELP, NULL, "print this" },                             \
        { 'v', "verbose", NULL, BECOMES, "--verbose", "more detail; may be repeated" }, \
    {                                                                                   \
        'V', "version", NULL, PRINTS_VERSION, NULL, "print the version"                 \
    }
#define NICE_ROW                                                              \
    {                                                                         \
        'n', NULL, "VALUE", NICE, NULL, "run with this nice value, -20 to 19" \
    }
#define FOREGROUND_ROWS                                                                   \
    { 'D', NULL, NULL, BECOMES, "-D", "stay in the foreground, log to standard error" },  \
    {                                                                                     \
        0, "systemd", NULL, BECOMES, "-D", "for a unit of Type=notify: in the foreground" \
    }

static const struct row slurmctld_rows[] = {
    { 'c', NULL, NULL, REFUSED, NULL,
      "nodes do not follow a controller that forgot what it granted; end jobs with scancel, or stop "
      "every slurmd and remove StateSaveLocation and SlurmdSpoolDir" },
    FOREGROUND_ROWS,
    { 'f', NULL, "FILE", BECOMES, "--conf", "configuration (SLURM_CONF, " SLURM_CONF_DEFAULT ")" },
    { 'i', NULL, NULL, BECOMES, "--accept-loss=1", "start although some of the state is damaged" },
    { 'L', NULL, "FILE", BECOMES, "--log-file", "log to this file too" },
    NICE_ROW,
    { 'r', NULL, NULL, ALREADY, NULL, "recover jobs and nodes, which is always done" },
    { 'R', NULL, NULL, ALREADY, NULL, "recover jobs and nodes, which is always done" },
    { 's', NULL, NULL, BECOMES, "--chdir-log", "work in the directory of the log file" },
    COMMON_ROWS,
};

static const struct row slurmd_rows[] = {
    { 'b', NULL, NULL, REFUSED, NULL,
      "a reboot is known by the boot id of the kernel and cannot be claimed" },
    { 'c', NULL, NULL, ALREADY, NULL, "clear old locks; here locks end with their process" },
    { 'C', NULL, NULL, BECOMES, "--print-config", "print this machine as a line of slurm.conf" },
    { 0, "conf", "TEXT", REFUSED, NULL,
      "it describes a dynamic node, and a node must be named in the configuration" },
    { 0, "conf-server", "HOST[:PORT]", BECOMES, "--controller",
      "take the configuration from this controller" },
    { 'd', NULL, "FILE", BECOMES, "--stepd", "the supervisor program" },
    FOREGROUND_ROWS,
    { 'f', NULL, "FILE", BECOMES, "--conf", "configuration (SLURM_CONF, " SLURM_CONF_DEFAULT ")" },
    { 'F', NULL, "[FEATURE]", REFUSED, NULL,
      "a node of State=FUTURE cannot be claimed by a feature; say which node it is with -N" },
    { 'G', NULL, NULL, BECOMES, "--print-gres", "print the devices found, and exit" },
    { 'L', NULL, "FILE", BECOMES, "--log-file", "log to this file too" },
    { 'M', NULL, NULL, BECOMES, "--lock-memory", "keep the daemon in memory" },
    NICE_ROW,
    { 'N', NULL, "NAME", BECOMES, "--node", "be this node; for several on one host" },
    { 's', NULL, NULL, BECOMES, "--chdir-log", "work in the directory of the log file" },
    { 'Z', NULL, NULL, REFUSED, NULL,
      "there are no dynamic nodes; name the node in the configuration" },
    { 0, "extra", "TEXT", REFUSED, NULL, "set it with scontrol update NodeName=... Extra=..." },
    { 0, "instance-id", "TEXT", REFUSED, NULL, "nodes have no instance id here" },
    { 0, "instance-type", "TEXT", REFUSED, NULL, "nodes have no instance type here" },
    COMMON_ROWS,
};

static const struct row sackd_rows[] = {
    { 0, "conf-server", "HOST[:PORT]", BECOMES, "--controller", "the controller to ask" },
    FOREGROUND_ROWS,
    { 'f', NULL, "FILE", BECOMES, "--conf", "configuration (SLURM_CONF, " SLURM_CONF_DEFAULT ")" },
    { 0, "disable-reconfig", NULL, ALREADY, NULL,
      "keep no copy of the configuration up to date; none is kept" },
    COMMON_ROWS,
};

static const struct row slurmrestd_rows[] = {
    { 'a', NULL, "PLUGIN", REFUSED, NULL,
      "callers are known by token or by the socket, always by what they show" },
    { 'd', NULL, "PLUGIN", REFUSED, NULL, "every version of the API is served" },
    { 's', NULL, "PLUGIN", REFUSED, NULL, "every version of the API is served" },
    { 'f', NULL, "FILE", BECOMES, "--slurm-conf",
      "configuration (SLURM_CONF, " SLURM_CONF_DEFAULT ")" },
    { 'g', NULL, "GROUP", REFUSED, NULL, "start it as the user and group it is to have" },
    { 'u', NULL, "USER", REFUSED, NULL, "start it as the user and group it is to have" },
    { 't', NULL, "COUNT", REFUSED, NULL, "one thread serves every caller" },
    { 0, "max-connections", "COUNT", REFUSED, NULL,
      "as many callers as there are descriptors are served" },
    { 0, "systemd", NULL, ALREADY, NULL, "for a unit of Type=notify, which it always tells" },
    COMMON_ROWS,
};

static const struct daemon {
    const char *name, *program;
    const struct row *rows;
    size_t count;
    const char *conf;    /* our option for the configuration */
    bool conf_needed;    /* a node can do without */
    const char *always;  /* NULL: nothing */
    const char *operand; /* what an argument without '-' becomes; NULL: refused */
} daemons[] = {
    { "slurmctld", "spurctld", slurmctld_rows, ARRAY_LEN(slurmctld_rows), "--conf", true, NULL,
      NULL },
    { "slurmd", "spurd", slurmd_rows, ARRAY_LEN(slurmd_rows), "--conf", false, "--slurm", NULL },
    { "sackd", "spurd", sackd_rows, ARRAY_LEN(sackd_rows), "--conf", false, "--login", NULL },
    { "slurmrestd", "spurrestd", slurmrestd_rows, ARRAY_LEN(slurmrestd_rows), "--slurm-conf", false,
      "-D", "--listen" },
};

static const struct daemon *find(const char *program)
{
    const char *slash = strrchr(program, '/');

    for (size_t i = 0; i < ARRAY_LEN(daemons); i++) {
        if (str_eq(slash ? slash + 1 : program, daemons[i].name))
            return &daemons[i];
    }
    return NULL;
}

bool slurm_daemon_is(const char *program)
{
    return program && find(program);
}

const char *slurm_conf_path(void)
{
    const char *env = getenv("SLURM_CONF");

    return str_is_empty(env) ? SLURM_CONF_DEFAULT : env;
}

/* ---- reading ---- */

static void print_help(const struct daemon *daemon)
{
    printf("Usage: %s [OPTIONS]\n"
           "%s with Slurm's options. %s --help shows its own.\n\n",
           daemon->name, daemon->program, daemon->program);
    for (size_t i = 0; i < daemon->count; i++) {
        const struct row *row = &daemon->rows[i];
        char left[64];
        snprintf(left, sizeof(left), "%c%c%s%s%s%s%s", row->key ? '-' : ' ',
                 row->key ? row->key : ' ', row->key && row->name ? ", " : "",
                 row->name ? "--" : "", row->name ? row->name : "", row->arg ? " " : "",
                 row->arg ? row->arg : "");
        printf("  %-26s %s%s\n", left, row->act == REFUSED ? "refused: " : "", row->text);
    }
}

static VEC(char *) made; /* the arguments, in the end the process's own */

static int set_nice(const struct daemon *daemon, const char *text)
{
    int64_t value;

    if (!str_to_i64(text, -20, 19, &value)) {
        fprintf(stderr, "%s: error: -n '%s' is not a nice value from -20 to 19\n", daemon->name,
                text);
        return 1;
    }
    if (setpriority(PRIO_PROCESS, 0, (int)value) < 0) {
        fprintf(stderr, "%s: error: -n %s: %s\n", daemon->name, text, strerror(errno));
        return 1;
    }
    return -1;
}

static int take(const struct daemon *daemon, const struct row *row, char *value)
{
    switch (row->act) {
    case BECOMES:
        vec_push(&made, (char *)row->ours);
        if (row->arg)
            vec_push(&made, value);
        break;
    case ALREADY:
        break;
    case REFUSED:
        fprintf(stderr, "%s: error: %s%.*s%s is refused: %s\n", daemon->name, row->key ? "-" : "--",
                row->key ? 1 : 0, &row->key, row->key ? "" : row->name, row->text);
        return 1;
    case NICE:
        return set_nice(daemon, value);
    case PRINTS_VERSION:
        puts("slurm " SLURM_RELEASE);
        return 0;
    case PRINTS_HELP:
        print_help(daemon);
        return 0;
    }
    return -1;
}

enum { ROWS_MOST = 32, LONG_FIRST = 256 };

static void make_getopt(const struct daemon *daemon, struct option longs[ROWS_MOST],
                        char shorts[3 * ROWS_MOST])
{
    size_t count = 0;

    shorts[0] = '\0';
    for (size_t i = 0; i < daemon->count; i++) {
        const struct row *row = &daemon->rows[i];
        bool optional = row->arg && row->arg[0] == '[';
        if (row->name)
            longs[count++] = (struct option){ .name = row->name,
                                              .has_arg = row->arg ? required_argument : no_argument,
                                              .val = LONG_FIRST + (int)i };
        if (row->key)
            sprintf(shorts + strlen(shorts), "%c%s", row->key,
                    optional   ? "::"
                    : row->arg ? ":"
                               : "");
    }
}

static const struct row *row_of(const struct daemon *daemon, int key)
{
    for (size_t i = 0; i < daemon->count; i++) {
        if (key == LONG_FIRST + (int)i || (daemon->rows[i].key && key == daemon->rows[i].key))
            return &daemon->rows[i];
    }
    return NULL;
}

static bool was_made(const char *option)
{
    for (size_t i = 0; i < made.len; i++) {
        if (str_eq(made.items[i], option))
            return true;
    }
    return false;
}

/* Nobody said which: Slurm's file, unless there is only ours, or a node gets it from a controller. */
static void add_conf(const struct daemon *daemon)
{
    const char *path = slurm_conf_path();
    bool named = !str_is_empty(getenv("SLURM_CONF"));
    bool there = access(path, F_OK) == 0;

    if (was_made(daemon->conf) || was_made("--controller"))
        return;
    if (named || there || (daemon->conf_needed && access(OUR_CONF_DEFAULT, F_OK) < 0)) {
        vec_push(&made, (char *)daemon->conf);
        vec_push(&made, (char *)path);
    }
}

static int add_operands(const struct daemon *daemon, int argc, char **argv)
{
    for (int i = optind; i < argc; i++) {
        if (!daemon->operand) {
            fprintf(stderr, "%s: error: unexpected argument '%s'\n", daemon->name, argv[i]);
            return 1;
        }
        vec_push(&made, (char *)daemon->operand);
        vec_push(&made, argv[i]);
    }
    return -1;
}

int slurm_daemon_arguments(int *argc, char ***argv)
{
    const struct daemon *daemon = find((*argv)[0]);
    struct option longs[ROWS_MOST] = { 0 };
    char shorts[3 * ROWS_MOST];
    int key, code = -1;

    make_getopt(daemon, longs, shorts);
    vec_push(&made, (char *)daemon->program);
    if (daemon->always)
        vec_push(&made, (char *)daemon->always);
    while (code < 0 && (key = getopt_long(*argc, *argv, shorts, longs, NULL)) != -1) {
        const struct row *row = row_of(daemon, key);
        if (!row) {
            fprintf(stderr, "Try \"%s --help\" for more information\n", daemon->name);
            return 1;
        }
        code = take(daemon, row, optarg);
    }
    if (code < 0)
        code = add_operands(daemon, *argc, *argv);
    if (code >= 0)
        return code;
    add_conf(daemon);
    *argc = (int)made.len;
    vec_push(&made, NULL);
    *argv = made.items;
    optind = 0; /* ours are read from the beginning */
    return -1;
}
