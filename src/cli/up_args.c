/* SPDX-License-Identifier: Apache-2.0 */
/*
 * up_args.c - what `spur up` is told
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/size.h"
#include "cli/up.h"

enum { MOST_CONTROLLERS = 7 };

static const char up_help[] =
    "Usage: spur up --dir DIR [OPTIONS]\n"
    "Starts a private cluster on this machine and waits until its nodes are idle. On a directory\n"
    "that holds one already, starts what does not run of it.\n\n"
    "  --dir DIR          where everything of the cluster is kept (default ./spur-cluster)\n"
    "  --nodes N          agents to start (default 1)\n"
    "  --cpus C           CPUs each node has (default: those of this machine)\n"
    "  --mem M            memory each node has, such as 8G (default: that of this machine)\n"
    "  --gpus TYPE:N      GPUs each node has, such as mi300x:8 (they are only counted)\n"
    "  --controllers K    controllers (default 1); on a cluster that is there: adds or removes some\n"
    "  --base-port P      first port (default: a free range is looked for)\n"
    "  --rest-port P      port of spurrestd (default: 6820 when it is free)\n"
    "  --no-rest          without spurrestd\n"
    "  --conf FILE        configuration to start from: spur.conf or slurm.conf\n"
    "  --wait S           seconds the nodes may take to be idle (default 30)\n"
    "  -q, --quiet        print nothing but errors\n\n"
    "Then: . DIR/env; sinfo; sbatch --wrap hostname; squeue.  End it with: spur down --dir DIR\n";

static bool number(const char *text, const char *option, unsigned most, unsigned *out)
{
    uint64_t value;

    if (!str_to_u64(text, most, &value) || value == 0) {
        fprintf(stderr, "spur up: error: Invalid numeric value \"%s\" for --%s (1 to %u).\n", text,
                option, most);
        return false;
    }
    *out = (unsigned)value;
    return true;
}

static bool memory(const char *text, uint64_t *out)
{
    struct err err;
    uint64_t bytes = 0;

    if (size_read_memory(text, SIZE_M, &bytes, &err) == 0 && bytes >= 1024 * 1024) {
        *out = bytes / (1024 * 1024);
        return true;
    }
    fprintf(stderr, "spur up: error: Invalid --mem specification '%s'\n", text);
    return false;
}

/* TYPE:N or N, with nothing that would end the quotes in the configuration. */
static bool gpus(const char *text)
{
    const char *count = strrchr(text, ':');
    uint64_t n;

    count = count ? count + 1 : text;
    if (strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:") ==
            strlen(text) &&
        str_to_u64(count, LIMIT_GRES_PER_NODE, &n) && n > 0)
        return true;
    fprintf(stderr, "spur up: error: --gpus '%s' is not TYPE:COUNT, such as mi300x:8\n", text);
    return false;
}

int up_read_options(int argc, char **argv, struct up_options *o)
{
    static const struct option longs[] = {
        { "dir", required_argument, NULL, 'd' },
        { "nodes", required_argument, NULL, 'n' },
        { "cpus", required_argument, NULL, 'c' },
        { "mem", required_argument, NULL, 'm' },
        { "gpus", required_argument, NULL, 'g' },
        { "controllers", required_argument, NULL, 'k' },
        { "base-port", required_argument, NULL, 'p' },
        { "rest-port", required_argument, NULL, 'r' },
        { "no-rest", no_argument, NULL, 'R' },
        { "conf", required_argument, NULL, 'f' },
        { "wait", required_argument, NULL, 'w' },
        { "quiet", no_argument, NULL, 'q' },
        { "help", no_argument, NULL, 'h' },
        { 0 },
    };
    bool good = true;
    int key;

    optind = 1;
    while (good && (key = getopt_long(argc, argv, "qh", longs, NULL)) != -1) {
        o->sized = o->sized || strchr("ncmgpf", key);
        switch (key) {
        case 'd':
            o->dir = optarg;
            break;
        case 'n':
            good = number(optarg, "nodes", UP_MOST_NODES, &o->nodes);
            break;
        case 'c':
            good = number(optarg, "cpus", LIMIT_CPUS_PER_NODE, &o->cpus);
            break;
        case 'm':
            good = memory(optarg, &o->memory_mb);
            break;
        case 'g':
            o->gpus = optarg;
            good = gpus(optarg);
            break;
        case 'k':
            good = number(optarg, "controllers", MOST_CONTROLLERS, &o->controllers);
            break;
        case 'p':
            good = number(optarg, "base-port", 65535 - UP_PORT_SPAN, &o->base_port);
            break;
        case 'r':
            good = number(optarg, "rest-port", 65535, &o->rest_port);
            break;
        case 'R':
            o->no_rest = true;
            break;
        case 'f':
            o->conf = optarg;
            break;
        case 'w':
            good = number(optarg, "wait", 3600, &o->wait_s);
            break;
        case 'q':
            o->quiet = true;
            break;
        case 'h':
            fputs(up_help, stdout);
            return 0;
        default:
            good = false;
        }
    }
    if (good && optind < argc) {
        fprintf(stderr, "spur up: error: unexpected argument '%s'\n", argv[optind]);
        good = false;
    }
    if (!good)
        fputs("Try \"spur up --help\" for more information\n", stderr);
    return good ? -1 : 1;
}
