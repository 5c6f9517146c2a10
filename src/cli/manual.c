// SPDX-License-Identifier: Apache-2.0
/*
 * manual.c - man pages, written from the option tables
 *
 * The build runs `spur man NAME` and installs what it prints.
 */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/controller.h"
#include "cli/sim_args.h"
#include "schema/request.h"

static const struct option_set *const sets[] = {
    &sbatch_options,   &srun_options,     &salloc_options,  &squeue_options,  &scancel_options,
    &sinfo_options,    &scontrol_options, &sattach_options, &sacct_options,   &sacctmgr_options,
    &sreport_options,  &sshare_options,   &seff_options,    &history_options, &sbcast_options,
    &sgather_options,  &sstat_options,    &exec_options,    &sprio_options,   &sdiag_options,
    &strigger_options, &scrontab_options, &journal_options, &explain_options, &wait_options,
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
    static const struct option_set *const of_use[] = { &usage_options, &report_options };
    for (size_t i = 0; argc == 2 && i < ARRAY_LEN(of_use); i++) {
        if (is_called(of_use[i], argv[1]))
            option_add_man(of_use[i], &out);
    }
    if (argc == 2 && is_called(&sim_options, argv[1]))
        option_add_man(&sim_options, &out);
    if (argc == 2 && is_called(&controller_options, argv[1]))
        option_add_man(&controller_options, &out);
    if (!out.len) {
        bool help = argc == 2 && strcmp(argv[1], "--help") == 0;

        fputs(
            "Usage: spur man sbatch|srun|salloc|squeue|scancel|sinfo|scontrol|sdiag|strigger|scrontab|sprio|sattach|sbcast|sgather|sstat|exec|explain|sim|"
            "controller\n",
            help ? stdout : stderr);
        return help ? 0 : 1;
    }
    cli_flush(&out);
    str_done(&out);
    return 0;
}
