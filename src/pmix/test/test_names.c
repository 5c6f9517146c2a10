/* SPDX-License-Identifier: Apache-2.0 */
/* What is published is found, once each, by those who waited too; what is not there is said. */
#include "test/unit.h"

#include "base/str.h"
#include "pmix/names.h"

enum { SECOND_US = 1000000 };

static struct str said; /* "node id status key=value@rank;" */

static void on_answer(void *ctx, uint32_t node, PmixNamesAnswer *answer)
{
    str_addf(&said, "%u %u %d", node, (unsigned)answer->id, (int)answer->status);
    for (size_t i = 0; i < answer->n_names; i++)
        str_addf(&said, " %s=%.*s@%u", answer->names[i]->key, (int)answer->names[i]->value.len,
                 (const char *)answer->names[i]->value.data, answer->names[i]->rank);
    str_add_char(&said, ';');
}

static void heard(const char *text)
{
    assert_string_equal(str_text(&said), text);
    str_clear(&said);
}

static PmixNamesAsk *ask_new(uint32_t rank, uint64_t id)
{
    PmixNamesAsk *ask = NEW(PmixNamesAsk);

    pmix_names_ask__init(ask);
    ask->rank = rank;
    ask->id = id;
    return ask;
}

static void publish(struct names *names, uint32_t rank, const char *key, const char *value,
                    bool once)
{
    PmixNamesAsk *ask = ask_new(rank, 1);
    PmixName *name = NEW(PmixName);

    pmix_name__init(name);
    name->key = mem_strdup(key);
    name->once = once;
    name->has_value = true;
    name->value.data = (uint8_t *)mem_strdup(value);
    name->value.len = strlen(value);
    ask->publish = NEW_ARRAY(PmixName *, 1);
    ask->publish[ask->n_publish++] = name;
    names_ask(names, 0, ask, 0);
}

/* wait < 0: not at all */
static void lookup(struct names *names, uint32_t node, const char *a, const char *b, int wait,
                   uint32_t timeout_s)
{
    PmixNamesAsk *ask = ask_new(9, 2);

    ask->lookup = NEW_ARRAY(char *, 2);
    ask->lookup[ask->n_lookup++] = mem_strdup(a);
    if (b)
        ask->lookup[ask->n_lookup++] = mem_strdup(b);
    ask->has_wait = wait >= 0;
    ask->wait = wait > 0 ? (uint32_t)wait : 0;
    ask->timeout_s = timeout_s;
    names_ask(names, node, ask, 0);
}

static void unpublish(struct names *names, uint32_t rank, const char *key)
{
    PmixNamesAsk *ask = ask_new(rank, 3);

    ask->unpublish = NEW_ARRAY(char *, 1);
    ask->unpublish[ask->n_unpublish++] = mem_strdup(key);
    names_ask(names, 0, ask, 0);
}

static void test_names(void **state)
{
    struct names names;

    names_init(&names);
    names.answer = on_answer;
    lookup(&names, 0, "a", NULL, -1, 0);
    heard("0 2 2;");
    publish(&names, 4, "a", "x", false);
    publish(&names, 5, "a", "y", false);
    heard("0 1 0;0 1 3;");
    lookup(&names, 1, "a", NULL, -1, 0);
    lookup(&names, 1, "a", "b", -1, 0);
    heard("1 2 0 a=x@4;1 2 1 a=x@4;");
    unpublish(&names, 5, "a"); /* another's */
    lookup(&names, 1, "a", NULL, -1, 0);
    heard("0 3 0;1 2 0 a=x@4;");
    unpublish(&names, 4, "a");
    lookup(&names, 1, "a", NULL, -1, 0);
    heard("0 3 0;1 2 2;");
    publish(&names, 4, "once", "z", true);
    lookup(&names, 1, "once", NULL, -1, 0);
    lookup(&names, 1, "once", NULL, -1, 0);
    heard("0 1 0;1 2 0 once=z@4;1 2 2;");
    assert_int_equal(names.kept_bytes, 0);
    names_done(&names);
    str_done(&said);
}

static void test_waiting(void **state)
{
    struct names names;

    names_init(&names);
    names.answer = on_answer;
    assert_int_equal(names_next_us(&names), -1);
    lookup(&names, 1, "a", "b", 0, 0);
    lookup(&names, 2, "a", "b", 1, 5);
    lookup(&names, 3, "b", NULL, 0, 7);
    assert_int_equal(names_next_us(&names), 5 * SECOND_US);
    publish(&names, 4, "a", "x", false);
    heard("0 1 0;2 2 1 a=x@4;");
    assert_int_equal(names_next_us(&names), 7 * SECOND_US);
    names_due(&names, 7 * SECOND_US - 1);
    heard("");
    names_due(&names, 7 * SECOND_US);
    heard("3 2 4;");
    publish(&names, 4, "b", "y", false);
    heard("0 1 0;1 2 0 a=x@4 b=y@4;");
    lookup(&names, 1, "never", NULL, 0, 0);
    names_done(&names);
    str_done(&said);
}

UNIT_MAIN(UNIT(test_names), UNIT(test_waiting))
