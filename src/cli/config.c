/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.c - `spur config`: check, show, import, keys
 *
 * Results go to standard output, complaints to standard error. Exit codes: 0 good, 1 the
 * configuration has mistakes, 2 the command line has.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/commands.h"
#include "client/conf_file.h"
#include "schema/conf_doc.h"
#include "sys/files.h"

enum { EXIT_GOOD = 0, EXIT_MISTAKES = 1, EXIT_USAGE = 2 };

struct options {
    const char *file, *out, *sacctmgr;
    struct conf_file_options beside;
    bool json, quiet;
};

static const char usage[] =
    "usage: spur config check [FILE]         say what is wrong with it, or that nothing is\n"
    "       spur config show [--json] [FILE] every setting: value, default, and where it was set\n"
    "       spur config import SLURM.CONF [--gres FILE] [--topology FILE] [--cgroup FILE]\n"
    "                          [--sacctmgr FILE] [-o OUT]\n"
    "                                        write it as spur.conf; with the accounts of a file\n"
    "                                        of 'sacctmgr dump', also without a slurm.conf\n"
    "       spur config keys                 every setting there is, as a document\n"
    "\n"
    "FILE is $SPUR_CONF or /etc/spur/spur.conf when not given; a slurm.conf works too.\n"
    "  -q, --quiet   say nothing about keys of slurm.conf that change nothing here\n";

static int read_options(int argc, char **argv, struct options *options)
{
    static const struct option longs[] = {
        { "json", no_argument, NULL, 'j' },
        { "quiet", no_argument, NULL, 'q' },
        { "gres", required_argument, NULL, 'g' },
        { "topology", required_argument, NULL, 't' },
        { "cgroup", required_argument, NULL, 'c' },
        { "output", required_argument, NULL, 'o' },
        { "help", no_argument, NULL, 'h' },
        { "sacctmgr", required_argument, NULL, 's' },
        { 0 },
    };
    int c;

    optind = 0; /* argv may have been read before */
    while ((c = getopt_long(argc, argv, "qo:h", longs, NULL)) != -1) {
        switch (c) {
        case 'j':
            options->json = true;
            break;
        case 'q':
            options->quiet = true;
            break;
        case 'g':
            options->beside.gres = optarg;
            break;
        case 't':
            options->beside.topology = optarg;
            break;
        case 'c':
            options->beside.cgroup = optarg;
            break;
        case 'o':
            options->out = optarg;
            break;
        case 's':
            options->sacctmgr = optarg;
            break;
        case 'h':
            fputs(usage, stdout);
            return 1;
        default:
            return -1;
        }
    }
    options->file = optind < argc ? argv[optind++] : NULL;
    if (optind < argc) {
        fprintf(stderr, "spur config: '%s' is one argument too many\n", argv[optind]);
        return -1;
    }
    return 0;
}

static void print_notes(const struct conf *conf, const struct options *options)
{
    static const char *const kinds[] = {
        [CONF_NOTE_ERROR] = "error", [CONF_NOTE_WARNING] = "warning", [CONF_NOTE_KEPT] = "note"
    };

    for (size_t i = 0; conf_note(conf, i); i++) {
        const struct conf_note *note = conf_note(conf, i);

        if (options->quiet && note->kind == CONF_NOTE_KEPT)
            continue;
        fprintf(stderr, "%s:%u: %s: %s\n", note->at.file, note->at.line, kinds[note->kind],
                note->text);
    }
}

static struct conf *load(const struct options *options)
{
    struct err err = { 0 };
    struct conf *conf = conf_file_read(options->file, &options->beside, &err);

    if (!conf) {
        fprintf(stderr, "spur config: %s\n", err.text);
        return NULL;
    }
    print_notes(conf, options);
    return conf;
}

static int count_node(void *ctx, const NodeSpec *node)
{
    (*(unsigned *)ctx)++;
    return 0;
}

static int check(const struct options *options)
{
    CLEANUP(conf_freep) struct conf *conf = load(options);
    size_t errors, warnings;
    unsigned nodes = 0;

    if (!conf)
        return EXIT_MISTAKES;
    errors = conf_note_count(conf, CONF_NOTE_ERROR);
    warnings = conf_note_count(conf, CONF_NOTE_WARNING);
    if (errors) {
        printf("%s: %zu %s, %zu %s\n", conf_file_path(options->file), errors,
               errors == 1 ? "error" : "errors", warnings, warnings == 1 ? "warning" : "warnings");
        return EXIT_MISTAKES;
    }
    conf_each_node(conf_config(conf), count_node, &nodes, NULL);
    printf("%s: ok: cluster %s, %u node%s, %zu partition%s", conf_file_path(options->file),
           conf_config(conf)->cluster_name, nodes, nodes == 1 ? "" : "s",
           conf_config(conf)->n_partitions, conf_config(conf)->n_partitions == 1 ? "" : "s");
    if (conf_is_slurm(conf))
        printf(", %zu keys of slurm.conf not used", conf_note_count(conf, CONF_NOTE_KEPT));
    if (warnings)
        printf(", %zu %s", warnings, warnings == 1 ? "warning" : "warnings");
    putchar('\n');
    return EXIT_GOOD;
}

static int show(const struct options *options)
{
    CLEANUP(conf_freep) struct conf *conf = load(options);
    struct str out = { 0 };

    if (!conf)
        return EXIT_MISTAKES;
    if (conf_note_count(conf, CONF_NOTE_ERROR))
        return EXIT_MISTAKES;
    if (options->json)
        conf_show_json(conf, &out);
    else
        conf_show_text(conf, &out);
    fwrite(str_text(&out), 1, out.len, stdout);
    str_done(&out);
    return EXIT_GOOD;
}

/* Through a file that is renamed, so that half a configuration is never seen. */
static int write_out(const struct options *options, const struct str *text)
{
    struct err err = { 0 };

    if (!options->out || strcmp(options->out, "-") == 0) {
        fwrite(str_text(text), 1, text->len, stdout);
        return EXIT_GOOD;
    }
    if (file_write(options->out, str_text(text), text->len, 0644, &err) < 0) {
        fprintf(stderr, "spur config: %s\n", err.text);
        return EXIT_MISTAKES;
    }
    return EXIT_GOOD;
}

/* Behind what there is, or alone. */
static int import_accounts(const struct options *options, struct str *text)
{
    struct str alone = { 0 };
    struct str *out = text ? text : &alone;
    int code = EXIT_MISTAKES;

    str_addf(out, "\n# Accounts of %s.\n", options->sacctmgr);
    if (sacctmgr_sections(options->sacctmgr, out))
        code = write_out(options, out);
    str_done(&alone);
    return code;
}

static int import(const struct options *options)
{
    CLEANUP(conf_freep) struct conf *conf = NULL;
    struct str text = { 0 };
    int code;

    if (options->sacctmgr && !options->file)
        return import_accounts(options, NULL);
    if (!options->file) {
        fputs("spur config: import needs the path of a slurm.conf\n", stderr);
        return EXIT_USAGE;
    }
    if (!(conf = load(options)))
        return EXIT_MISTAKES;
    if (!conf_is_slurm(conf)) {
        fprintf(stderr, "spur config: %s is not a slurm.conf\n", options->file);
        return EXIT_MISTAKES;
    }
    if (conf_note_count(conf, CONF_NOTE_ERROR))
        return EXIT_MISTAKES;
    str_addf(&text, "# Imported from %s by spur config import.\n", options->file);
    conf_write_toml(conf, &text);
    code = options->sacctmgr ? import_accounts(options, &text) : write_out(options, &text);
    str_done(&text);
    return code;
}

static int keys(const struct options *options)
{
    struct str out = { 0 };

    conf_document(&out);
    fwrite(str_text(&out), 1, out.len, stdout);
    str_done(&out);
    return EXIT_GOOD;
}

static const struct verb {
    const char *name;
    int (*run)(const struct options *options);
} verbs[] = {
    { "check", check },
    { "show", show },
    { "import", import },
    { "keys", keys },
};

int config_main(int argc, char **argv)
{
    struct options options = { 0 };

    for (size_t i = 0; argc > 1 && i < ARRAY_LEN(verbs); i++) {
        int result;

        if (strcmp(argv[1], verbs[i].name) != 0)
            continue;
        result = read_options(argc - 1, argv + 1, &options);
        if (result > 0)
            return EXIT_GOOD;
        if (result < 0) {
            fputs(usage, stderr);
            return EXIT_USAGE;
        }
        return verbs[i].run(&options);
    }
    if (argc > 1 && (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0)) {
        fputs(usage, stdout);
        return EXIT_GOOD;
    }
    fputs(usage, stderr);
    return EXIT_USAGE;
}
