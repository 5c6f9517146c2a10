/* SPDX-License-Identifier: Apache-2.0 */
/* test_toml.c - TOML is read as its authors' suite says, errors say where, bounds hold */
#include "base/limits.h"
#include "base/str.h"
#include "base/test/toml_suite.h"
#include "base/toml.h"
#include "test/unit.h"

static void conformance_suite_passes(void **state)
{
    struct toml_suite_counts counts = toml_suite_run(TOML_CASES);

    printf("TOML 1.0 suite: %u valid cases, %u wrong; %u invalid cases, %u wrong\n", counts.valid,
           counts.valid_wrong, counts.invalid, counts.invalid_wrong);
    assert_int_equal(counts.valid, 205);
    assert_int_equal(counts.invalid, 474);
    assert_int_equal(counts.valid_wrong + counts.invalid_wrong, 0);
}

static void errors_name_line_and_column(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "a = 1\nb 2\n", "f:2:3: expected '=' after the key 'b', found '2'" },
        { "a = 1\na = 2\n", "f:2:1: the key 'a' was given already at line 1" },
        { "[x]\n\n[x]\n", "f:3:2: the key 'x' was given already at line 1" },
        { "a = \"b\nc = 1", "f:1:5: this string has no closing \" on its line" },
        { "a = [1, 2\n\n", "f:1:5: this array has no closing ]" },
        { "\xc3\xa4 = 1", "f:1:1: expected a key, found '\xc3\xa4'" },
        { "a = \"\xc3\xa4\" x", "f:1:9: expected the end of the line, found 'x'" },
        { "a = 01", "f:1:5: '01': a number cannot begin with 0 (hexadecimal is 0x, octal 0o, "
                    "binary 0b)" },
        { "a = yes", "f:1:5: 'yes': expected true, false, a number or text in quotes" },
        { "a = 2026-02-30", "f:1:5: '2026-02-30': that month has no such day" },
        { "a =", "f:1:4: expected true, false, a number or text in quotes, found the end of "
                 "the file" },
        { "a = 9223372036854775808",
          "f:1:5: '9223372036854775808': the number does not fit in 64 bits" },
        { "a\x01", "f:1:2: control character 0x01 is not allowed here" },
        { "a = 1\r\nb = \"\xff\"", "f:2:6: byte 0xff is not UTF-8" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct toml *doc = NULL;
        struct err err = { 0 };

        assert_int_equal(toml_parse("f", cases[i].text, strlen(cases[i].text), &doc, &err),
                         -ERR_SYNTAX);
        assert_string_equal(err.text, cases[i].says);
        assert_null(doc);
    }
}

static void positions_and_order_are_kept(void **state)
{
    static const char text[] = "z = 1\na.b = 'x'\n[[n]]\n  k = {q = 1}\n[[n]]\n";
    struct toml *doc = NULL;
    const struct toml_value *root, *n;

    assert_int_equal(toml_parse("f", text, sizeof(text) - 1, &doc, NULL), 0);
    root = toml_root(doc);
    assert_int_equal(root->table.len, 3);
    assert_string_equal(root->table.entries[0].key, "z");
    assert_string_equal(root->table.entries[1].key, "a");
    assert_int_equal(root->table.entries[1].pos.line, 2);
    assert_string_equal(toml_get(toml_get(root, "a"), "b")->string.text, "x");
    n = toml_get(root, "n");
    assert_int_equal(n->array.len, 2);
    assert_int_equal(n->array.items[1]->pos.line, 5);
    assert_int_equal(n->array.items[0]->table.entries[0].pos.line, 4);
    assert_int_equal(n->array.items[0]->table.entries[0].pos.column, 3);
    assert_int_equal(n->array.items[0]->table.entries[0].value->pos.column, 7);
    assert_null(toml_get(root, "absent"));
    assert_null(toml_get(toml_get(root, "z"), "not a table"));
    toml_free(doc);
}

static enum err_code code_of(const struct str *text)
{
    struct toml *doc = NULL;
    struct err err = { 0 };

    toml_parse("f", str_text(text), text->len, &doc, &err);
    toml_free(doc);
    return err.code;
}

/* `depth` times `unit` after `begin`; closed where the unit opens something. */
static enum err_code code_nested(const char *begin, const char *unit, const char *end, int depth)
{
    struct str text = { 0 };
    enum err_code code;

    str_add(&text, begin);
    for (int i = 0; i < depth; i++)
        str_add(&text, unit);
    str_add(&text, end);
    code = code_of(&text);
    str_done(&text);
    return code;
}

/* [[a]], [[a.a]], [[a.a.a]]: two levels each. */
static enum err_code code_of_elements(unsigned count)
{
    struct str text = { 0 };
    enum err_code code;

    for (unsigned i = 1; i <= count; i++) {
        str_add(&text, "[[a");
        for (unsigned k = 1; k < i; k++)
            str_add(&text, ".a");
        str_add(&text, "]]\n");
    }
    code = code_of(&text);
    str_done(&text);
    return code;
}

static void depth_is_bounded(void **state)
{
    assert_int_equal(code_of_elements(LIMIT_TOML_DEPTH / 2), ERR_OK);
    assert_int_equal(code_of_elements(LIMIT_TOML_DEPTH / 2 + 2), ERR_TOO_LARGE);
    assert_int_equal(code_nested("a=", "[", "", 1000000), ERR_TOO_LARGE);
    assert_int_equal(code_nested("a=", "{a=", "", 1000000), ERR_TOO_LARGE);
    assert_int_equal(code_nested("", "a.", "b=1", LIMIT_TOML_DEPTH), ERR_TOO_LARGE);
    assert_int_equal(code_nested("[", "a.", "b]", LIMIT_TOML_DEPTH), ERR_TOO_LARGE);
    assert_int_equal(code_nested("[", "a.", "b]\nc.d=1", LIMIT_TOML_DEPTH - 1), ERR_TOO_LARGE);
    assert_int_equal(code_nested("", "a.", "b=1", LIMIT_TOML_DEPTH - 2), ERR_OK);
}

static void size_is_bounded(void **state)
{
    struct str text = { 0 };

    str_add(&text, "a=1#");
    str_add_fill(&text, 'x', LIMIT_CONFIG_BYTES);
    assert_int_equal(code_of(&text), ERR_TOO_LARGE);
    str_done(&text);
    assert_int_equal(code_nested("a=[", "1,", "]", LIMIT_TOML_VALUES), ERR_TOO_LARGE);
}

/* Quadratic look-up would take minutes here. */
static void many_keys_take_linear_time(void **state)
{
    struct str text = { 0 };

    for (int i = 0; i < 200000; i++)
        str_addf(&text, "k%d=%d\n", i, i);
    assert_int_equal(code_of(&text), ERR_OK);
    str_add(&text, "k777=0");
    assert_int_equal(code_of(&text), ERR_SYNTAX);
    str_done(&text);
}

UNIT_MAIN(UNIT(conformance_suite_passes), UNIT(errors_name_line_and_column),
          UNIT(positions_and_order_are_kept), UNIT(depth_is_bounded), UNIT(size_is_bounded),
          UNIT(many_keys_take_linear_time))
