/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - spur-container: a command inside an image, and the images of a user
 *
 * spurd puts `spur-container run OPTIONS --` before a step's own command; `spur image` becomes
 * `spur-container image`. A program of its own, so that commands and supervisors need neither
 * jansson nor zlib.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "container/image.h"
#include "container/run.h"

enum { EXIT_USAGE = 2, EXIT_SETUP = 125, EXIT_CANNOT = 126, EXIT_ABSENT = 127 };

static int complain(const char *who, const struct err *err)
{
    fprintf(stderr, "%s: error: %s\n", who, err->text);
    return 1;
}

static int run_main(int argc, char **argv)
{
    static const struct option options[] = {
        { "image", 1, NULL, 'i' },      { "bundle", 1, NULL, 'b' },
        { "mounts", 1, NULL, 'm' },     { "visible", 1, NULL, 'v' },
        { "workdir", 1, NULL, 'w' },    { "env", 1, NULL, 'e' },
        { "name", 1, NULL, 'n' },       { "mount-home", 0, NULL, 'H' },
        { "entrypoint", 0, NULL, 'E' }, { "readonly", 0, NULL, 'R' },
        { "remap-root", 0, NULL, '0' }, { 0 },
    };
    struct run run = { 0 };
    struct err err = { 0 };
    int c;

    while ((c = getopt_long(argc, argv, "+", options, NULL)) >= 0) {
        switch (c) {
        case 'i':
            run.image = optarg;
            break;
        case 'b':
            run.bundle = optarg;
            break;
        case 'm':
            run.mounts = optarg;
            break;
        case 'v':
            run.visible = optarg;
            break;
        case 'w':
            run.workdir = optarg;
            break;
        case 'e':
            run.keep_env = optarg;
            break;
        case 'n':
            run.name = optarg;
            break;
        case 'H':
            run.mount_home = true;
            break;
        case 'E':
            run.entrypoint = true;
            break;
        case 'R':
            run.readonly = true;
            break;
        case '0':
            run.remap_root = true;
            break;
        default:
            return EXIT_USAGE;
        }
    }
    if (!run.image == !run.bundle) {
        fputs(
            "usage: spur-container run --image IMAGE|--bundle DIR [OPTION...] [--] [COMMAND...]\n",
            stderr);
        return EXIT_USAGE;
    }
    run_inside(&run, argv + optind, &err);
    int saved = errno;
    complain("spur-container", &err);
    return err.code == ERR_NOT_FOUND && saved == ENOENT ? EXIT_ABSENT
           : saved == EACCES                            ? EXIT_CANNOT
                                                        : EXIT_SETUP;
}

static int image_usage(FILE *to)
{
    fputs("usage: spur image import SOURCE [--name NAME]\n"
          "       spur image list\n"
          "       spur image remove NAME...\n"
          "SOURCE is a file of docker save, oci:DIR[:TAG] or http://HOST[:PORT]/NAME[:TAG].\n"
          "Images are kept in $SPUR_IMAGE_DIR or ~/.local/share/spur/images.\n",
          to);
    return to == stderr ? EXIT_USAGE : 0;
}

/* "/a/b/tool.tar" is named "tool" when no name is given. */
static char *name_for(const char *source)
{
    const char *base = strrchr(source, '/');
    char *name = mem_strdup(base ? base + 1 : source);
    char *end = strstr(name, ".tar");

    if (end)
        *end = '\0';
    return name;
}

static int import_main(int argc, char **argv)
{
    static const struct option options[] = { { "name", 1, NULL, 'n' }, { 0 } };
    struct err err = { 0 };
    struct image image = { 0 };
    const char *given = NULL;
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        if (c != 'n')
            return EXIT_USAGE;
        given = optarg;
    }
    if (optind + 1 != argc)
        return image_usage(stderr);
    CLEANUP(freep) char *name = given ? mem_strdup(given) : name_for(argv[optind]);
    if (image_get(argv[optind], name, &image, &err) < 0)
        return complain("spur image", &err);
    printf("%s %s\n", name, strrchr(image.dir, '/') + 1);
    image_done(&image);
    return 0;
}

static int image_main(int argc, char **argv)
{
    struct err err = { 0 };
    const char *what = argc > 1 ? argv[1] : "";
    int code = 0;

    if (str_eq(what, "import"))
        return import_main(argc - 1, argv + 1);
    if (str_eq(what, "list") && argc == 2) {
        CLEANUP(str_done) struct str text = { 0 };
        if (image_list(&text, &err) < 0)
            return complain("spur image", &err);
        fputs(str_text(&text), stdout);
        return 0;
    }
    if (str_eq(what, "remove") && argc > 2) {
        for (int i = 2; i < argc; i++) {
            if (image_remove(argv[i], &err) < 0)
                code = complain("spur image", &err);
        }
        return code;
    }
    return image_usage(str_eq(what, "--help") || str_eq(what, "-h") ? stdout : stderr);
}

int main(int argc, char **argv)
{
    if (argc > 1 && str_eq(argv[1], "run"))
        return run_main(argc - 1, argv + 1);
    if (argc > 1 && str_eq(argv[1], "image"))
        return image_main(argc - 1, argv + 1);
    if (argc > 1 && str_eq(argv[1], "--version")) {
        printf("spur %s\n", SPUR_VERSION);
        return 0;
    }
    fputs("usage: spur-container run|image ...\n", stderr);
    return EXIT_USAGE;
}
