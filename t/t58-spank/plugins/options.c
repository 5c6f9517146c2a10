/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c - registers options at run time, some of them by its arguments, and has a table of others
 *
 * count=N makes options --made-0 ... --made-N-1. What it hears goes to the record; what it was given it passes on to the
 * job-control environment and to prolog and epilog. With `misuse` it also registers what and where it may not.
 */
#include "record.h"

SPANK_PLUGIN(options, 1)

static int misuse;

static int hear(int val, const char *arg, int remote)
{
    note("option", "%d %s %s", val, arg ? arg : "-", remote ? "remote" : "local");
    return arg && strcmp(arg, "bad") == 0 ? -1 : 0;
}

struct spank_option spank_options[] = {
    { "in-table", "WORD", "Stands in a table.", 1, 100, hear },
    SPANK_OPTIONS_TABLE_END,
};

static struct spank_option fixed[] = {
    { "with-arg", "WORD", "Takes a word.", 1, 1, hear },
    { "maybe-arg", "WORD", "May take a word.", 2, 2, hear },
    { "no-arg", NULL, "Takes nothing.", 0, 3, hear },
    { "odd.name", "[0-19]", "Its name has a dot.", 1, 4, hear },
};

int slurm_spank_init(spank_t spank, int ac, char *av[])
{
    char name[32], *arg = NULL;
    int count = 0;

    begin(spank, "init", ac, av);
    for (int i = 0; i < ac; i++) {
        if (strncmp(av[i], "count=", 6) == 0)
            count = atoi(av[i] + 6);
        misuse = misuse || strcmp(av[i], "misuse") == 0;
    }
    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
        note("init", "register %d", (int)spank_option_register(spank, &fixed[i]));
    for (int i = 0; i < count; i++) {
        struct spank_option made = { name, NULL, "Made at run time.", 0, 50 + i, hear };
        snprintf(name, sizeof(name), "made-%d", i);
        note("init", "register %d", (int)spank_option_register(spank, &made));
    }
    struct spank_option taken = { "nodes", NULL, "Is sbatch's own.", 0, 9, hear };
    if (misuse && spank_context() == S_CTX_ALLOCATOR)
        note("init", "taken %d", (int)spank_option_register(spank, &taken));
    note("init", "getopt %d", (int)spank_option_getopt(spank, &fixed[0], &arg));
    return 0;
}

static void look(spank_t spank, const char *callback)
{
    char *arg = NULL;

    int code = (int)spank_option_getopt(spank, &fixed[0], &arg);
    note(callback, "getopt %d %s", code, arg ? arg : "-");
    code = (int)spank_option_getopt(spank, &fixed[2], &arg);
    note(callback, "getopt-flag %d", code);
}

int slurm_spank_init_post_opt(spank_t spank, int ac, char *av[])
{
    char text[64];
    int first, second;

    (void)ac, (void)av;
    look(spank, "init_post_opt");
    if (misuse)
        note("init_post_opt", "register %d", (int)spank_option_register(spank, &fixed[0]));
    first = (int)spank_job_control_setenv(spank, "COLOUR", "blue", 1);
    second = (int)spank_job_control_setenv(spank, "COLOUR", "red", 0);
    note("init_post_opt", "control %d %d", first, second);
    if (spank_job_control_getenv(spank, "COLOUR", text, sizeof(text)) == 0)
        note("init_post_opt", "colour %s", text);
    spank_job_control_setenv(spank, "GONE", "1", 1);
    spank_job_control_unsetenv(spank, "GONE");
    return 0;
}

int slurm_spank_user_init(spank_t spank, int ac, char *av[])
{
    (void)ac, (void)av;
    look(spank, "user_init");
    return 0;
}

int slurm_spank_job_prolog(spank_t spank, int ac, char *av[])
{
    const char *colour = getenv("SPANK_COLOUR");

    begin(spank, "job_prolog", ac, av);
    look(spank, "job_prolog");
    note("job_prolog", "colour %s", colour ? colour : "-");
    return 0;
}
