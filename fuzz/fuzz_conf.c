/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_conf.c - any text is a configuration or has mistakes; a good one, written, reads the same
 */
#include "schema/conf.h"

#include "fuzz/fuzz.h"

static int ignore_node(void *ctx, const NodeSpec *node)
{
    CHECK(node->name && *node->name);
    return ++*(unsigned *)ctx > 10000;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct conf *conf = conf_read("f", (const char *)data, size, NULL);
    struct str out = { 0 };
    unsigned count = 0;

    for (size_t i = 0; conf_note(conf, i); i++)
        CHECK(conf_note(conf, i)->at.line >= 1 && *conf_note(conf, i)->text);
    if (conf_verdict(conf, NULL) == 0) {
        conf_each_node(conf_config(conf), ignore_node, &count, NULL);
        conf_write_toml(conf, &out);
        struct conf *again = conf_read("g", str_text(&out), out.len, NULL);
        CHECK(conf_verdict(again, NULL) == 0);
        CHECK(str_eq(conf_config(conf)->hash, conf_config(again)->hash));
        conf_free(again);
        str_done(&out);
    }
    conf_free(conf);
    return 0;
}
