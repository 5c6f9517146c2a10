/* SPDX-License-Identifier: Apache-2.0 */
/* What a task prolog's lines do. */
#include "test/unit.h"

#include "spurstepd/prolog.h"

static void lines(void **state)
{
    (void)state;
    static const struct {
        const char *line, *env, *print; /* env: after it, from "A=1 B=2" */
    } rows[] = {
        { "export C=3", "A=1 B=2 C=3", NULL },
        { "export A=x y ", "A=x y B=2", NULL },
        { "  export B=", "A=1 B=", NULL },
        { "export C", "A=1 B=2", NULL },
        { "export =3", "A=1 B=2", NULL },
        { "unset A", "B=2", NULL },
        { "unset B", "A=1", NULL },
        { "unset C", "A=1 B=2", NULL },
        { "unset ", "A=1 B=2", NULL },
        { "print  hello", "A=1 B=2", " hello" },
        { "print", "A=1 B=2", NULL },
        { "exporting C=3", "A=1 B=2", NULL },
        { "", "A=1 B=2", NULL },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char **env = NEW_ARRAY(char *, 3), *line = mem_strdup(rows[i].line);
        struct str all = { 0 };
        env[0] = mem_strdup("A=1");
        env[1] = mem_strdup("B=2");
        const char *print = prolog_line(line, &env);
        for (size_t k = 0; env[k]; k++) {
            str_addf(&all, "%s%s", k ? " " : "", env[k]);
            free(env[k]);
        }
        assert_string_equal(str_text(&all), rows[i].env);
        assert_string_equal(print ? print : "-", rows[i].print ? rows[i].print : "-");
        str_done(&all);
        free(line);
        free(env);
    }
}

UNIT_MAIN(UNIT(lines))
