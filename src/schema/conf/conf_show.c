/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_show.c - a configuration with the origin of every value
 *
 * A key that was not given is a comment, so that the text form is itself a configuration:
 *
 *     kill_wait = 10                      # /etc/spur/spur.conf:12
 *     # min_job_age = 300                 # default
 */
#include <string.h>

#include "schema/conf/conf_priv.h"
#include "schema/conf_doc.h"

/* postgresql://user:password@host/name: the password is nobody's business. */
static void hide_password(struct str *value)
{
    char *scheme = strstr(value->data, "://"), *at, *colon;

    if (!scheme || !(at = strchr(scheme + 3, '@')))
        return;
    colon = memchr(scheme + 3, ':', (size_t)(at - scheme - 3));
    for (char *p = colon ? colon + 1 : at; p < at; p++)
        *p = '*';
}

static bool value_of(const struct conf *conf, const struct conf_item *item,
                     const struct conf_key *key, struct str *value)
{
    str_clear(value);
    if (!conf_value_format(conf, item, key, value))
        return false;
    if (key->flags & CONF_SECRET)
        hide_password(value);
    return true;
}

static void show_key(const struct conf *conf, const struct conf_item *item,
                     const struct conf_key *key, struct str *value, struct str *out)
{
    enum { COMMENT_COLUMN = 48 };
    const struct conf_origin *at = conf_key_origin(item, key);
    bool has_value = value_of(conf, item, key, value);
    size_t start = out->len;

    if (at->line && has_value)
        str_addf(out, "%s = %s", key->name, str_text(value));
    else
        str_addf(out, "# %s = %s", key->name, has_value ? str_text(value) : "(unset)");
    if (out->len - start < COMMENT_COLUMN)
        str_add_fill(out, ' ', COMMENT_COLUMN - (out->len - start));
    if (!at->line) {
        str_add(out, has_value && !key->def ? " # follows from other keys\n" : " # default\n");
        return;
    }
    str_addf(out, " # %s:%u", at->file, at->line);
    if (key->def)
        str_addf(out, ", default %s", key->def);
    str_add_char(out, '\n');
}

void conf_show_text(const struct conf *conf, struct str *out)
{
    struct str value = { 0 };

    for (size_t i = 0; i < conf->items.len; i++) {
        const struct conf_item *item = &conf->items.items[i];

        if (*item->section->name)
            str_addf(out, item->message ? "\n[[%s]]\n" : "\n[%s]\n", item->section->name);
        for (const struct conf_key *key = item->section->keys; key->name; key++) {
            /* In a list, what is unset says nothing and would be said a thousand times. */
            if (!item->message || conf_key_origin(item, key)->line ||
                value_of(conf, item, key, &value))
                show_key(conf, item, key, &value, out);
        }
    }
    if (conf->config.n_kept)
        str_add(out, "\n[slurm]\n");
    for (size_t i = 0; i < conf->config.n_kept; i++) {
        str_addf(out, "%s = ", conf->config.kept[i]->key);
        conf_quote(out, conf->config.kept[i]->value);
        str_add_char(out, '\n');
    }
    str_done(&value);
}

static void json_key(const struct conf *conf, const struct conf_item *item,
                     const struct conf_key *key, struct str *value, struct str *out)
{
    const struct conf_origin *at = conf_key_origin(item, key);

    str_addf(out, "      { \"key\": \"%s\", \"value\": ", key->name);
    str_add(out, value_of(conf, item, key, value) ? str_text(value) : "null");
    str_add(out, ", \"default\": ");
    if (key->def)
        conf_quote(out, key->def);
    else
        str_add(out, "null");
    if (at->line) {
        str_add(out, ", \"file\": ");
        conf_quote(out, at->file);
        str_addf(out, ", \"line\": %u", at->line);
    }
    str_add(out, " }");
}

void conf_show_json(const struct conf *conf, struct str *out)
{
    struct str value = { 0 };

    str_add(out, "{\n  \"hash\": ");
    conf_quote(out, conf->config.hash);
    str_add(out, ",\n  \"sections\": [\n");
    for (size_t i = 0; i < conf->items.len; i++) {
        const struct conf_item *item = &conf->items.items[i];

        str_addf(out, "%s    { \"section\": \"%s\", \"keys\": [\n", i ? ",\n" : "",
                 item->section->name);
        for (const struct conf_key *key = item->section->keys; key->name; key++) {
            str_add(out, key == item->section->keys ? "" : ",\n");
            json_key(conf, item, key, &value, out);
        }
        str_add(out, "\n    ] }");
    }
    str_add(out, "\n  ],\n  \"slurm\": {");
    for (size_t i = 0; i < conf->config.n_kept; i++) {
        str_add(out, i ? ", " : " ");
        conf_quote(out, conf->config.kept[i]->key);
        str_add(out, ": ");
        conf_quote(out, conf->config.kept[i]->value);
    }
    str_add(out, conf->config.n_kept ? " }\n}\n" : "}\n}\n");
    str_done(&value);
}
