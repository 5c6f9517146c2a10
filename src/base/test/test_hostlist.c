/* SPDX-License-Identifier: Apache-2.0 */
/* Host lists read, write and sort as Slurm's do; as sets they agree with their names. */
#include "test/unit.h"

#include "base/hostlist.h"

#define LIST CLEANUP(hostlist_done) struct hostlist
#define TEXT CLEANUP(str_done) struct str

static const struct vector {
    const char *text, *list, *sorted, *names;
} slurm[] = {
#define VECTOR(...) { __VA_ARGS__ },
#include "base/test/data/hostlist.inc"
};

static void must_parse(struct hostlist *list, const char *text)
{
    struct err err = { 0 };

    if (hostlist_parse(list, text, &err) < 0)
        fail_msg("'%s': %s", text, err.text);
}

static void must_read(const struct hostlist *list, const char *expected)
{
    TEXT out = { 0 };

    hostlist_format(list, &out);
    assert_string_equal(str_text(&out), expected);
}

static void names_of(const struct hostlist *list, struct str *out)
{
    hostlist_each (host, list)
        str_addf(out, "%s%s", out->len ? " " : "", host.name);
}

static void agrees_with_slurm(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(slurm); i++) {
        const struct vector *row = &slurm[i];
        LIST list = { 0 };
        TEXT names = { 0 };
        uint64_t count;

        must_parse(&list, row->text);
        must_read(&list, row->list);
        names_of(&list, &names);
        assert_string_equal(str_text(&names), row->names);
        assert_int_equal(hostlist_count_text(row->text, &count, NULL), 0);
        assert_true(count == hostlist_count(&list));
        assert_int_equal(hostlist_sort(&list, NULL), 0);
        must_read(&list, row->sorted);
        assert_true(count == hostlist_count(&list));
    }
}

static void compresses_names_as_slurm(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(slurm); i++) {
        const char *cursor = slurm[i].names;
        struct span word;
        LIST pushed = { 0 }, parsed = { 0 };
        TEXT once = { 0 }, names = { 0 };

        while (str_next(&cursor, " ", &word)) {
            CLEANUP(freep) char *name = mem_strndup(word.ptr, word.len);
            assert_int_equal(hostlist_push(&pushed, name, NULL), 0);
        }
        hostlist_format(&pushed, &once);
        must_parse(&parsed, str_text(&once));
        must_read(&parsed, str_text(&once));
        names_of(&parsed, &names);
        assert_string_equal(str_text(&names), slurm[i].names);
    }
}

static void suffixes_are_ours(void **state)
{
    (void)state;
    static const struct {
        const char *text, *plain, *compact;
    } rows[] = {
        { "n[1-3]-ib", "n1-ib,n2-ib,n3-ib", "n[1-3]-ib" },
        { "n[08-10,12].example", "n08.example,n09.example,n10.example,n12.example",
          "n[08-10,12].example" },
        { "a[1-2]b[1-2]c", "a1b1c,a1b2c,a2b1c,a2b2c", "a1b[1-2]c,a2b[1-2]c" },
        { "m,n[1-2]x,n[1-2],k", "m,n1x,n2x,n[1-2],k", "m,n[1-2]x,n[1-2],k" },
        { "n1x,n2x,n3y,n4y,n5", "n1x,n2x,n3y,n4y,n5", "n[1-2]x,n[3-4]y,n5" },
        { "a[1-2]3", "a[13,23]", "a[13,23]" },
        { "login", "login", "login" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        LIST list = { 0 }, again = { 0 };
        TEXT out = { 0 };

        must_parse(&list, rows[i].text);
        must_read(&list, rows[i].plain);
        hostlist_format_suffixes(&list, &out);
        assert_string_equal(str_text(&out), rows[i].compact);
        must_parse(&again, str_text(&out));
        must_read(&again, rows[i].plain);
    }
}

static void errors_say_where(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum err_code code;
        const char *says;
    } rows[] = {
        { "n[3-1]", ERR_RANGE, "hostlist 'n[3-1]': range runs backwards, at character 3" },
        { "n[1-3", ERR_SYNTAX, "'[' is never closed, at character 2" },
        { "n[", ERR_SYNTAX, "'[' is never closed, at character 2" },
        { "n[1,", ERR_SYNTAX, "'[' is never closed, at character 2" },
        { "a,n1-3]", ERR_SYNTAX, "']' without '[', at character 7" },
        { "n[1-2]]", ERR_SYNTAX, "']' without '[', at character 7" },
        { "n[[1-3]]", ERR_SYNTAX, "brackets inside brackets, at character 3" },
        { "n[1[2]]", ERR_SYNTAX, "brackets inside brackets, at character 4" },
        { "n[]", ERR_SYNTAX, "brackets are empty, at character 2" },
        { "n[,1]", ERR_SYNTAX, "a number is expected in brackets, at character 3" },
        { "n[1,,2]", ERR_SYNTAX, "a number is expected in brackets, at character 5" },
        { "n[1,]", ERR_SYNTAX, "a number is expected in brackets, at character 5" },
        { "n[-3]", ERR_SYNTAX, "a number is expected in brackets, at character 3" },
        { "n[1-]", ERR_SYNTAX, "a number is expected in brackets, at character 5" },
        { "n[a-c]", ERR_SYNTAX, "a number is expected in brackets, at character 3" },
        { "n[1-2-3]", ERR_SYNTAX, "only digits, '-' and ',' go in brackets, at character 6" },
        { "n[1, 2]", ERR_SYNTAX, "a number is expected in brackets, at character 5" },
        { "n[1 2]", ERR_SYNTAX, "only digits, '-' and ',' go in brackets, at character 4" },
        { "n[1-9:2]", ERR_SYNTAX, "only digits, '-' and ',' go in brackets, at character 6" },
        { "n[1234567890123456789]", ERR_RANGE, "number of more than 18 digits, at character 3" },
        { "n\x1b[2J", ERR_SYNTAX, "'n\\x1b[2J': control character in a name, at character 2" },
        { "n[1][2][3][4][5][6][7][8][9]", ERR_TOO_MANY, "more than 8 brackets" },
        { "a[1-999999]b[1-9]", ERR_TOO_MANY, "more ranges than are allowed, at character 1" },
        { "n[1-999999999]b", ERR_TOO_MANY, "more ranges than are allowed, at character 1" },
        { "a[1-99999]b[1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,33,35,37]c[1-9999]", ERR_TOO_MANY,
          "more ranges than are allowed" },
        { "n[0-999999999999999999,0-999999999999999999,0-999999999999999999,0-999999999999999999,"
          "0-999999999999999999,0-999999999999999999,0-999999999999999999,0-999999999999999999,"
          "0-999999999999999999,0-999999999999999999]",
          ERR_TOO_MANY, "more than 2^63 hosts" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        LIST list = { 0 };
        struct err err = { 0 };

        must_parse(&list, "x[1-2]");
        assert_int_equal(hostlist_parse(&list, rows[i].text, &err), -(int)rows[i].code);
        if (!strstr(err.text, rows[i].says))
            fail_msg("'%s' says \"%s\", not \"%s\"", rows[i].text, err.text, rows[i].says);
        must_read(&list, "x[1-2]");
        assert_int_equal(hostlist_count(&list), 2);
        assert_int_equal(hostlist_parse(&list, rows[i].text, NULL), -(int)rows[i].code);
    }
    static const char *const bad_names[] = { "", "a b", "a,b", "n[1]", "n]", "a\n", "\x7f" };
    for (size_t i = 0; i < ARRAY_LEN(bad_names); i++) {
        LIST list = { 0 };
        assert_int_equal(hostlist_push(&list, bad_names[i], NULL), -ERR_SYNTAX);
    }
}

static void a_failed_parse_undoes_a_join(void **state)
{
    (void)state;
    LIST list = { 0 };

    must_parse(&list, "n[1-3]");
    assert_true(hostlist_parse(&list, "n4,n[", NULL) < 0);
    must_read(&list, "n[1-3]");
    assert_int_equal(hostlist_count(&list), 3);
}

static void counts_what_it_will_not_expand(void **state)
{
    (void)state;
    LIST list = { 0 };
    struct arena arena = { 0 };
    struct err err = { 0 };
    char **names;
    size_t len;
    uint64_t count;
    TEXT name = { 0 };

    must_parse(&list, "m,n[1-999999999]");
    assert_int_equal(hostlist_count(&list), 1000000000);
    assert_int_equal(hostlist_expand(&list, &arena, &names, &len, &err), -ERR_TOO_MANY);
    assert_string_equal(err.text, "host list names 1000000000 hosts; at most 1048576 are expanded");
    assert_true(hostlist_nth(&list, 999999999, &name));
    assert_string_equal(name.data, "n999999999");
    assert_false(hostlist_nth(&list, 1000000000, &name));
    assert_int_equal(hostlist_find(&list, "n123456789"), 123456789);
    assert_int_equal(hostlist_count_text("a[1-99999]b[1-99999],c", &count, NULL), 0);
    assert_true(count == UINT64_C(99999) * 99999 + 1);
    assert_int_equal(
        hostlist_count_text("a[1-999999999]b[1-999999999]c[1-999999999]d[1-99]", &count, NULL),
        -ERR_TOO_MANY);
    assert_int_equal(hostlist_parse(&list, "n[1-999999999]", NULL), 0);
    assert_int_equal(hostlist_sort(&list, NULL), -ERR_TOO_MANY);
    assert_int_equal(hostlist_uniq(&list, NULL), 0);
    must_read(&list, "m,n[1-999999999]");
    arena_done(&arena);
}

static void texts_and_names_have_bounds(void **state)
{
    (void)state;
    LIST list = { 0 };
    CLEANUP(freep) char *big = mem_new(LIMIT_HOSTLIST_TEXT + 2);
    struct err err = { 0 };

    memset(big, 'a', LIMIT_HOSTLIST_TEXT + 1);
    assert_int_equal(hostlist_parse(&list, big, &err), -ERR_TOO_LARGE);
    big[LIMIT_HOST_NAME + 1] = '\0';
    assert_int_equal(hostlist_parse(&list, big, &err), -ERR_TOO_LARGE);
    assert_int_equal(hostlist_push(&list, big, &err), -ERR_TOO_LARGE);
    big[LIMIT_HOST_NAME] = '\0';
    assert_int_equal(hostlist_push(&list, big, &err), 0);
    assert_int_equal(hostlist_find(&list, big), 0);
    strcpy(big + LIMIT_HOST_NAME - 4, "[999-1000]");
    assert_int_equal(hostlist_parse(&list, big, &err), 0);
    strcpy(big + LIMIT_HOST_NAME - 4, "a[999-1000]");
    assert_int_equal(hostlist_parse(&list, big, &err), -ERR_TOO_LARGE);

    /* Few enough names, too many bytes of them. */
    struct arena arena = { 0 };
    char **names;
    size_t count;
    hostlist_clear(&list);
    strcpy(big + 200, "[1-300000]");
    assert_int_equal(hostlist_parse(&list, big, &err), 0);
    assert_int_equal(hostlist_expand(&list, &arena, &names, &count, &err), -ERR_TOO_LARGE);
    assert_int_equal(hostlist_uniq(&list, &err), 0);
    arena_done(&arena);

    /* As many ranges as are allowed, then one more; each with a name of its own. */
    hostlist_clear(&list);
    must_parse(&list, "a[1-262144]b");
    assert_int_equal(hostlist_parse(&list, "c", &err), -ERR_TOO_MANY);
    hostlist_clear(&list);
    memset(big, 'a', 200);
    strcpy(big + 200, "[1-262144]b");
    assert_int_equal(hostlist_parse(&list, big, &err), -ERR_TOO_LARGE);
    assert_int_equal(hostlist_count(&list), 0);
}

static void a_set_that_does_not_fit_changes_nothing(void **state)
{
    (void)state;
    LIST list = { 0 }, every_second = { 0 };

    must_parse(&list, "k,n[1-600000],x");
    for (unsigned i = 2; i <= 2 * LIMIT_HOSTLIST_RANGES; i += 2) {
        char name[16];
        snprintf(name, sizeof(name), "n%u", i);
        assert_int_equal(hostlist_push(&every_second, name, NULL), 0);
    }
    assert_int_equal(hostlist_push(&every_second, "m", NULL), -ERR_TOO_MANY);
    assert_int_equal(hostlist_minus(&list, &every_second, NULL), -ERR_TOO_MANY);
    assert_int_equal(hostlist_union(&every_second, &list, NULL), -ERR_TOO_MANY);
    assert_int_equal(hostlist_count(&every_second), LIMIT_HOSTLIST_RANGES);
    must_read(&list, "k,n[1-600000],x");
    assert_int_equal(hostlist_intersect(&every_second, &list, NULL), 0);
    assert_int_equal(hostlist_count(&every_second), LIMIT_HOSTLIST_RANGES);
}

static void long_numbers_stay_whole(void **state)
{
    (void)state;
    LIST list = { 0 };

    must_parse(&list, "n12345678901234567890123,n999999999999999999,n1000000000000000000");
    must_read(&list, "n12345678901234567890123,n999999999999999999,n1000000000000000000");
    must_parse(&list, "n12345678901234567890124");
    assert_int_equal(hostlist_find(&list, "n12345678901234567890124"), 3);
    assert_int_equal(hostlist_find(&list, "n1000000000000000000"), 2);
}

static void finds_by_text(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int index;
    } rows[] = {
        { "n1", 0 },    { "n3", 2 },   { "n4", -1 },
        { "n01", -1 },  { "n08", 3 },  { "n10", 5 },
        { "n010", -1 }, { "m", 6 },    { "n", -1 },
        { "", -1 },     { "x12", 7 },  { "x13", 8 },
        { "x110", -1 }, { "n1x", -1 }, { "99999999999999999999999", -1 },
    };
    LIST list = { 0 };

    must_parse(&list, "n[1-3,08-10],m,x1[2-3]");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(hostlist_find(&list, rows[i].name), rows[i].index);
}

static void sets_by_example(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b, *both, *minus, *intersect;
    } rows[] = {
        { "n[1-5]", "n[3-7]", "n[1-7]", "n[1-2]", "n[3-5]" },
        { "n[5,1-3],m", "n2,m", "n[5,1-3],m", "n[5,1,3]", "n2,m" },
        { "n[8-11]", "n[09-10]", "n[8-11,09]", "n[8-9,11]", "n10" },
        { "n1[2-3]", "n13", "n1[2-3]", "n12", "n13" },
        { "n[12-13]", "n1[3-10]", "n[12-19,110]", "n12", "n13" },
        { "", "n1", "n1", "", "" },
        { "n1", "", "n1", "n1", "" },
        { "a,b,a", "b,c", "a,b,a,c", "a,a", "b" },
        { "n[1-999999999]", "n[500-600]", "n[1-999999999]", "n[1-499,601-999999999]",
          "n[500-600]" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        LIST b = { 0 }, both = { 0 }, minus = { 0 }, common = { 0 };

        must_parse(&b, rows[i].b);
        must_parse(&both, rows[i].a);
        must_parse(&minus, rows[i].a);
        must_parse(&common, rows[i].a);
        assert_int_equal(hostlist_union(&both, &b, NULL), 0);
        must_read(&both, rows[i].both);
        assert_int_equal(hostlist_minus(&minus, &b, NULL), 0);
        must_read(&minus, rows[i].minus);
        assert_int_equal(hostlist_intersect(&common, &b, NULL), 0);
        must_read(&common, rows[i].intersect);
    }
}

/* Every row with the row after it, against the plain lists of names. */
static bool has_word(const char *words, const char *name)
{
    struct span word;

    while (str_next(&words, " ", &word)) {
        if (span_eq(word, name))
            return true;
    }
    return false;
}

static void sets_agree_with_names(void **state)
{
    (void)state;
    for (size_t i = 0; i + 1 < ARRAY_LEN(slurm); i++) {
        const struct vector *row = &slurm[i], *next = &slurm[i + 1];
        LIST a = { 0 }, b = { 0 }, both = { 0 }, minus = { 0 }, common = { 0 }, unique = { 0 };
        TEXT minus_names = { 0 }, common_names = { 0 };
        uint64_t in_both = 0, in_a = 0;

        must_parse(&a, row->text);
        must_parse(&both, row->text);
        must_parse(&minus, row->text);
        must_parse(&common, row->text);
        must_parse(&unique, row->text);
        must_parse(&b, next->text);
        assert_int_equal(hostlist_union(&both, &b, NULL), 0);
        assert_int_equal(hostlist_minus(&minus, &b, NULL), 0);
        assert_int_equal(hostlist_intersect(&common, &b, NULL), 0);
        assert_int_equal(hostlist_uniq(&unique, NULL), 0);
        names_of(&minus, &minus_names);
        names_of(&common, &common_names);
        TEXT expect_minus = { 0 }, expect_common = { 0 };
        hostlist_each (host, &a) {
            bool shared = has_word(next->names, host.name);
            struct str *to = shared ? &expect_common : &expect_minus;
            str_addf(to, "%s%s", to->len ? " " : "", host.name);
            in_both += shared;
            in_a++;
            assert_int_equal(hostlist_find(&b, host.name) >= 0, shared);
            assert_true(hostlist_find(&both, host.name) >= 0);
            assert_true(hostlist_find(&unique, host.name) >= 0);
        }
        hostlist_each (host, &b)
            assert_true(hostlist_find(&both, host.name) >= 0);
        assert_string_equal(str_text(&minus_names), str_text(&expect_minus));
        assert_string_equal(str_text(&common_names), str_text(&expect_common));
        assert_true(hostlist_within(&common, &b) && hostlist_within(&common, &a));
        assert_true(hostlist_within(&a, &both) && hostlist_within(&b, &both));
        assert_int_equal(hostlist_within(&a, &b), in_both == in_a);
        assert_true(hostlist_within(&unique, &a) && hostlist_within(&a, &unique));
        LIST left = { 0 };
        hostlist_each (host, &unique) {
            assert_int_equal(hostlist_find(&left, host.name), -1);
            assert_int_equal(hostlist_push(&left, host.name, NULL), 0);
        }
    }
}

static void expands_into_an_arena(void **state)
{
    (void)state;
    LIST list = { 0 };
    struct arena arena = { 0 };
    char **names;
    size_t count;

    must_parse(&list, "n[8-11],m,k[098-101]");
    assert_int_equal(hostlist_expand(&list, &arena, &names, &count, NULL), 0);
    assert_int_equal(count, 9);
    static const char *const expected[] = { "n8",   "n9",   "n10",  "n11", "m",
                                            "k098", "k099", "k100", "k101" };
    for (size_t i = 0; i < count; i++) {
        TEXT name = { 0 };
        assert_string_equal(names[i], expected[i]);
        assert_true(hostlist_nth(&list, i, &name));
        assert_string_equal(name.data, expected[i]);
        assert_int_equal(hostlist_find(&list, expected[i]), i);
    }
    assert_null(names[count]);
    arena_done(&arena);
}

UNIT_MAIN(UNIT(agrees_with_slurm), UNIT(compresses_names_as_slurm), UNIT(suffixes_are_ours),
          UNIT(errors_say_where), UNIT(a_failed_parse_undoes_a_join),
          UNIT(counts_what_it_will_not_expand), UNIT(texts_and_names_have_bounds),
          UNIT(a_set_that_does_not_fit_changes_nothing), UNIT(long_numbers_stay_whole),
          UNIT(finds_by_text), UNIT(sets_by_example), UNIT(sets_agree_with_names),
          UNIT(expands_into_an_arena))
