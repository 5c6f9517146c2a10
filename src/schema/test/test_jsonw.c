/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_jsonw.c - the same calls as JSON and as YAML
 */
#include "schema/jsonw.h"
#include "test/unit.h"

static void fill(struct jsonw *json)
{
    jsonw_object(json, NULL);
    jsonw_list(json, "jobs");
    jsonw_object(json, NULL);
    jsonw_number(json, "id", -1);
    jsonw_text(json, "no", "yes");
    jsonw_object(json, "none");
    jsonw_object_end(json);
    jsonw_object_end(json);
    jsonw_object(json, NULL);
    jsonw_object_end(json);
    jsonw_text(json, NULL, "a/\"b\"\n\xc2\x85\xc3\xa9\xff");
    jsonw_list(json, NULL);
    jsonw_decimal(json, NULL, 1234, 2);
    jsonw_bool(json, NULL, true);
    jsonw_list_end(json);
    jsonw_list_end(json);
    jsonw_list(json, "empty");
    jsonw_list_end(json);
    jsonw_set(json, "12 x", true, false, 3);
    jsonw_object_end(json);
}

static void yaml(void **state)
{
    CLEANUP(str_done) struct str out = { 0 };
    struct jsonw json;

    (void)state;
    jsonw_init_yaml(&json, &out);
    fill(&json);
    assert_string_equal(str_text(&out), "---\n"
                                        "jobs:\n"
                                        "- id: -1\n"
                                        "  \"no\": \"yes\"\n"
                                        "  none: {}\n"
                                        "- {}\n"
                                        "- \"a/\\\"b\\\"\\n\\u0085\xc3\xa9\xef\xbf\xbd\"\n"
                                        "- - 12.34\n"
                                        "  - true\n"
                                        "empty: []\n"
                                        "\"12 x\":\n"
                                        "  set: true\n"
                                        "  infinite: false\n"
                                        "  number: 3");
}

static void json(void **state)
{
    CLEANUP(str_done) struct str out = { 0 };
    struct jsonw writer;

    (void)state;
    jsonw_init(&writer, &out);
    fill(&writer);
    assert_non_null(strstr(str_text(&out), "\"a\\/\\\"b\\\"\\n\xc2\x85\xc3\xa9\xef\xbf\xbd\",\n"));
    assert_non_null(strstr(str_text(&out), "\"empty\": [\n  ],\n  \"12 x\": {\n"));
}

UNIT_MAIN(UNIT(yaml), UNIT(json))
