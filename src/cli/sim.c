/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim.c - `spur sim` becomes the program spur-sim, which has the planner in it
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/commands.h"

/* Beside this program, or where an installation has it. */
int sim_main(int argc, char **argv)
{
    static const char *const places[] = { "spur-sim", "../libexec/spur/spur-sim" };
    char self[4096];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    struct cli cli = { .name = cli_name(argv) };

    (void)argc;
    if (len > 0) {
        self[len] = '\0';
        *strrchr(self, '/') = '\0';
        for (size_t i = 0; i < ARRAY_LEN(places); i++) {
            CLEANUP(freep) char *path = mem_printf("%s/%s", self, places[i]);
            execv(path, argv);
        }
    }
    cli_error(&cli, "cannot run spur-sim, which belongs to this program: %s", strerror(errno));
    return 1;
}
