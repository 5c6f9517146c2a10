/* SPDX-License-Identifier: Apache-2.0 */
/*
 * become.c - commands that become a program of their own, which has what others need not load
 *
 * `spur sim` is spur-sim (the planner), `spur image` is spur-container (jansson, zlib).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/commands.h"

/* Beside this program, in the build tree, or where an installation has it. */
static int become(const char *program, const char *folder, char **argv)
{
    char self[4096];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    struct cli cli = { .name = cli_name(argv) };

    if (len > 0) {
        self[len] = '\0';
        *strrchr(self, '/') = '\0';
        CLEANUP(freep) char *beside = mem_printf("%s/%s", self, program);
        CLEANUP(freep) char *built = mem_printf("%s/../%s/%s", self, folder, program);
        CLEANUP(freep) char *installed = mem_printf("%s/../libexec/spur/%s", self, program);
        execv(beside, argv);
        execv(built, argv);
        execv(installed, argv);
    }
    cli_error(&cli, "cannot run %s, which belongs to this program: %s", program, strerror(errno));
    return 1;
}

int sim_main(int argc, char **argv)
{
    (void)argc;
    return become("spur-sim", "trace-sim", argv);
}

int image_main(int argc, char **argv)
{
    CLEANUP(freep) char **words = NEW_ARRAY(char *, argc + 2);

    words[0] = argv[0];
    words[1] = (char *)"image";
    for (int i = 1; i < argc; i++)
        words[i + 1] = argv[i];
    return become("spur-container", "container", words);
}
