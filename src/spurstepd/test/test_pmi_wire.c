/* SPDX-License-Identifier: Apache-2.0 */
/* What tasks say on PMI_FD is cut into words, whatever it is; where ranks are is written as MPI reads it. */
#include "test/unit.h"

#include "spurstepd/pmi_wire.h"

static void a_line_is_cut_at_blanks(void **state)
{
    (void)state;
    char text[] = "cmd=put kvsname=1.0 key=a value=b=c\n";
    struct pmi_words words;

    assert_true(pmi_read_line(text, &words));
    assert_string_equal(pmi_word(&words, "cmd"), "put");
    assert_string_equal(pmi_word(&words, "value"), "b=c");
    assert_null(pmi_word(&words, "rank"));
}

static void a_packet_is_cut_at_semicolons(void **state)
{
    (void)state;
    char text[] = "cmd=kvs-put;key=a b;value=1;;2;;;empty=;";
    struct pmi_words words;

    assert_true(pmi_read_packet(text, &words));
    assert_string_equal(pmi_word(&words, "key"), "a b");
    assert_string_equal(pmi_word(&words, "value"), "1;2;");
    assert_string_equal(pmi_word(&words, "empty"), "");
}

static void what_was_written_can_be_read(void **state)
{
    (void)state;
    CLEANUP(str_done) struct str text = { 0 };
    struct pmi_words words;

    pmi_add(&text, "a", ";;x;=");
    pmi_add_num(&text, "n", -3);
    assert_true(pmi_read_packet(text.data, &words));
    assert_string_equal(pmi_word(&words, "a"), ";;x;=");
    assert_string_equal(pmi_word(&words, "n"), "-3");
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    char empty[] = " \n", no_value[] = "cmd", many[4096] = "";
    struct pmi_words words;

    assert_false(pmi_read_line(empty, &words));
    assert_false(pmi_read_packet(no_value, &words));
    for (int i = 0; i <= PMI_WORDS_MAX; i++)
        strcat(many, "a=b ");
    assert_false(pmi_read_line(many, &words));
}

static void lengths_are_bounded(void **state)
{
    (void)state;
    static char long_line[PMI_MESSAGE_BYTES + 2];

    memset(long_line, 'x', sizeof(long_line));
    assert_int_equal(pmi_line_len("ab\ncd", 5), 3);
    assert_int_equal(pmi_line_len("ab", 2), 0);
    assert_int_equal(pmi_line_len(long_line, sizeof(long_line)), -1);
    assert_int_equal(pmi_packet_len("     3abc", 9), 9);
    assert_int_equal(pmi_packet_len("     3ab", 8), 0);
    assert_int_equal(pmi_packet_len("    ", 4), 0);
    assert_int_equal(pmi_packet_len("     0", 6), -1);
    assert_int_equal(pmi_packet_len("999999", 6), -1);
    assert_int_equal(pmi_packet_len("abcdef", 6), -1);
}

static void ranks_are_mapped(void **state)
{
    static const struct {
        uint32_t node_of[8];
        size_t ranks;
        const char *text;
    } cases[] = {
        { { 0 }, 1, "(vector,(0,1,1))" },
        { { 0, 0, 1, 1, 2, 2 }, 6, "(vector,(0,3,2))" },
        { { 0, 1, 2, 0, 1, 2 }, 6, "(vector,(0,3,1),(0,3,1))" },
        { { 0, 0, 1, 2, 2 }, 5, "(vector,(0,1,2),(1,1,1),(2,1,2))" },
        { { 0, 0, 0, 1, 1 }, 5, "(vector,(0,1,3),(1,1,2))" },
        { { 2, 1, 0 }, 3, "(vector,(2,1,1),(1,1,1),(0,1,1))" },
        { { 0, 1, 1, 1 }, 4, "(vector,(0,1,1),(1,1,3))" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(str_done) struct str text = { 0 };
        pmi_mapping(cases[i].node_of, cases[i].ranks, &text);
        assert_string_equal(str_text(&text), cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_cut_at_blanks),
        cmocka_unit_test(a_packet_is_cut_at_semicolons),
        cmocka_unit_test(what_was_written_can_be_read),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(lengths_are_bounded),
        cmocka_unit_test(ranks_are_mapped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
