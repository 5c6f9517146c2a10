// SPDX-License-Identifier: Apache-2.0
/*
 * manual.c - man pages and shell completion, written from the option tables
 *
 * The build runs `spur man NAME` and `spur completion bash` and installs what they print.
 */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/controller.h"
#include "cli/sim.h"
#include "schema/request.h"

static const struct option_set *const sets[] = {
    &sbatch_options, &srun_options,     &salloc_options,  &squeue_options,  &scancel_options,
    &sinfo_options,  &scontrol_options, &sattach_options, &sbcast_options,  &sgather_options,
    &sstat_options,  &exec_options,     &sprio_options,   &journal_options, &explain_options,
};

/* Those of our own are called by their second word: `spur man sim` is the page spur-sim(1). */
static bool is_called(const struct option_set *set, const char *name)
{
    return strcmp(set->command, name) == 0 ||
           (str_starts(set->command, "spur ") && strcmp(set->command + 5, name) == 0);
}

int man_main(int argc, char **argv)
{
    struct str out = { 0 };

    for (size_t i = 0; argc == 2 && i < ARRAY_LEN(sets); i++) {
        if (is_called(sets[i], argv[1]))
            option_add_man(sets[i], &out);
    }
    if (argc == 2 && is_called(&sim_options, argv[1]))
        option_add_man(&sim_options, &out);
    if (argc == 2 && is_called(&controller_options, argv[1]))
        option_add_man(&controller_options, &out);
    if (!out.len) {
        fputs(
            "Usage: spur man sbatch|srun|salloc|squeue|scancel|sinfo|scontrol|sprio|sattach|sbcast|sgather|sstat|exec|explain|sim|"
            "controller\n",
            stderr);
        return 1;
    }
    cli_flush(&out);
    str_done(&out);
    return 0;
}

int completion_main(int argc, char **argv)
{
    bool bash = argc == 2 && strcmp(argv[1], "bash") == 0;
    bool zsh = argc == 3 && strcmp(argv[1], "zsh") == 0;
    struct str out = { 0 };

    for (size_t i = 0; (bash || zsh) && i < ARRAY_LEN(sets); i++) {
        if (bash)
            option_add_bash(sets[i], &out);
        else if (strcmp(sets[i]->command, argv[2]) == 0)
            option_add_zsh(sets[i], &out);
    }
    if (!out.len) {
        fputs("Usage: spur completion bash\n"
              "       spur completion zsh sbatch|srun|salloc|squeue|scancel|sinfo|scontrol\n",
              stderr);
        return 1;
    }
    cli_flush(&out);
    str_done(&out);
    return 0;
}
