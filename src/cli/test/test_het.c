// SPDX-License-Identifier: Apache-2.0
/* ":" on command lines, and the environment as one component has it. */
#include "test/unit.h"

#include "base/limits.h"
#include "cli/het.h"
#include "cli/steps.h"
#include "schema/request.h"

/* Words separated by one blank, as the components they make: "options/operands|…". */
static void describe(const char *line, struct str *out)
{
    struct option_ctx ctx = { .env = (char *const[]){ NULL } };
    char *words[LIMIT_HET_COMPONENTS * 2 + 8], *text = mem_strdup(line);
    struct het_words *list;
    struct err err = { 0 };
    struct arena arena;
    size_t count;
    int argc = 0;

    arena_init(&arena);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        words[argc++] = word;
    words[argc] = NULL;
    if (het_split(&srun_options, &ctx, &arena, argc, words, &list, &count, &err) < 0)
        str_add(out, "error");
    for (size_t i = 0; !err.code && i < count; i++) {
        str_add(out, i ? "|" : "");
        for (int k = 0; k < list[i].count; k++)
            str_addf(out, "%s%s", k ? " " : "", list[i].words[k]);
        str_add_char(out, '/');
        for (int k = 0; k < list[i].operand_count; k++)
            str_addf(out, "%s%s", k ? " " : "", list[i].operands[k]);
        assert_null(list[i].operands[list[i].operand_count]);
    }
    arena_done(&arena);
    free(text);
}

static void command_lines(void **state)
{
    (void)state;
    static const struct {
        const char *line, *parts;
    } cases[] = {
        { "", "/" },
        { "-n 2 a b", "-n 2/a b" },
        { "-n1 a : -n2 b c", "-n1/a|-n2/b c" },
        { "-n1 : -n2 b", "-n1/|-n2/b" },
        { ": -n2 b", "/|-n2/b" },
        { "a : b : c", "/a|/b|/c" },
        { "-J : x", "-J :/x" }, /* a value, not the end of a component */
        { "-n1 a ::", "-n1/a ::" },
        { "a :", "/a|/" },
        { "-n1 -- a : -n2 b", "-n1 --/a|-n2/b" },
        { "--no-such-option a", "error" },
        { "a : --no-such-option b", "error" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(str_done) struct str got = { 0 };
        describe(cases[i].line, &got);
        assert_string_equal(str_text(&got), cases[i].parts);
    }
}

static void components_are_bounded(void **state)
{
    (void)state;
    struct str line = { 0 }, got = { 0 };

    for (int i = 1; i < LIMIT_HET_COMPONENTS; i++)
        str_add(&line, "a : ");
    describe(str_text(&line), &got);
    assert_string_not_equal(str_text(&got), "error");
    str_add(&line, "a : ");
    str_clear(&got);
    describe(str_text(&line), &got);
    assert_string_equal(str_text(&got), "error");
    str_done(&line);
    str_done(&got);
}

static void the_environment_of_one(void **state)
{
    (void)state;
    static char *const env[] = {
        (char *)"HOME=/h",
        (char *)"SLURM_NTASKS=1",
        (char *)"SLURM_CPUS_PER_TASK=4",
        (char *)"SLURM_HET_SIZE=12",
        (char *)"SLURM_NTASKS_HET_GROUP_0=1",
        (char *)"SLURM_NTASKS_HET_GROUP_1=2",
        (char *)"SLURM_NTASKS_HET_GROUP_11=3",
        (char *)"SLURM_JOB_ID_HET_GROUP_1=8",
        (char *)"OTHER_HET_GROUP_1=x",
        NULL,
    };
    struct arena arena;

    arena_init(&arena);
    struct option_ctx one = { .env = het_env(env, 1, &arena) };
    struct option_ctx last = { .env = het_env(env, 11, &arena) };
    assert_string_equal(option_getenv(&one, "SLURM_NTASKS"), "2");
    assert_string_equal(option_getenv(&one, "SLURM_JOB_ID"), "8");
    assert_null(option_getenv(&one, "SLURM_CPUS_PER_TASK")); /* the first's */
    assert_string_equal(option_getenv(&one, "HOME"), "/h");
    assert_string_equal(option_getenv(&one, "SLURM_HET_SIZE"), "12");
    assert_string_equal(option_getenv(&one, "OTHER_HET_GROUP_1"), "x");
    assert_string_equal(option_getenv(&last, "SLURM_NTASKS"), "3");
    assert_null(option_getenv(&last, "SLURM_JOB_ID"));
    arena_done(&arena);
}

static void ids_of_steps(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool good, has_step;
        uint32_t job, step;
    } cases[] = {
        { "7", true, false, 7, 0 },    { "7.3", true, true, 7, 3 },
        { "7+1", true, false, 8, 0 },  { "7+1.3", true, true, 8, 3 },
        { "7+0.0", true, true, 7, 0 }, { "7+", false, false, 0, 0 },
        { "+1", false, false, 0, 0 },  { "7+128", false, false, 0, 0 },
        { "0+1", false, false, 0, 0 },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint32_t job = 0, step = 0;
        bool has_step = false;
        assert_int_equal(steps_read_id(cases[i].text, &job, &has_step, &step), cases[i].good);
        if (!cases[i].good)
            continue;
        assert_int_equal(job, cases[i].job);
        assert_int_equal(has_step, cases[i].has_step);
        if (has_step)
            assert_int_equal(step, cases[i].step);
    }
}

UNIT_MAIN(UNIT(command_lines), UNIT(components_are_bounded), UNIT(the_environment_of_one),
          UNIT(ids_of_steps))
