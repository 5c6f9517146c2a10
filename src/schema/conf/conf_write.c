/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_write.c - the configuration as TOML
 */
#include <inttypes.h>
#include <string.h>

#include "base/timefmt.h"
#include "schema/conf/conf_priv.h"

static void format_time(struct str *out, int64_t seconds)
{
    str_add_char(out, '"');
    timefmt_write_duration(out, seconds, TIMEFMT_LONG);
    str_add_char(out, '"');
}

static void format_gres(struct str *out, const GresInventory *gres)
{
    struct str text = { 0 };

    str_add(&text, gres->name);
    if (gres->type)
        str_addf(&text, ":%s", gres->type);
    str_addf(&text, ":%" PRIu64, gres->count);
    conf_quote(out, str_text(&text));
    str_done(&text);
}

/* A field that keeps several words as one text, with commas. */
static void format_joined(struct str *out, const char *text)
{
    const char *cursor = text;
    struct span word;

    str_add_char(out, '[');
    for (size_t i = 0; str_next(&cursor, ",", &word); i++) {
        char *copy = mem_strndup(word.ptr, word.len);

        str_add(out, i ? ", " : "");
        conf_quote(out, copy);
        freep(&copy);
    }
    str_add_char(out, ']');
}

static void format_one(struct str *out, const struct conf_key *key, const ProtobufCMessage *message,
                       const ProtobufCFieldDescriptor *field, size_t index)
{
    int64_t num = conf_field_num(message, field, index);

    switch (key->type) {
    case CONF_BOOL:
        str_add(out, num ? "true" : "false");
        break;
    case CONF_TIME:
        format_time(out, num);
        break;
    case CONF_DAYS:
        if (num % 86400)
            format_time(out, num);
        else
            str_add_i64(out, num / 86400);
        break;
    case CONF_COUNT:
    case CONF_COUNTS:
    case CONF_SECONDS:
    case CONF_MINUTES:
    case CONF_MB:
        if (key->flags & CONF_UNLIMITED && (num < 0 || num == UINT32_MAX))
            str_add(out, "\"UNLIMITED\"");
        else
            str_add_i64(out, num);
        break;
    case CONF_GRES:
        format_gres(out, (const GresInventory *)conf_field_message(message, field, index));
        break;
    default:
        conf_quote(out, conf_field_text(message, field, index));
    }
}

bool conf_value_format(const struct conf *conf, const struct conf_item *item,
                       const struct conf_key *key, struct str *out)
{
    const ProtobufCMessage *message = conf_item_message(conf, item, key);
    const ProtobufCFieldDescriptor *field = conf_key_field(item->section, key);
    size_t count = conf_field_count(message, field);

    if (!count)
        return false;
    if (!conf_type_is_list(key->type)) {
        format_one(out, key, message, field, 0);
        return true;
    }
    if (field->label != PROTOBUF_C_LABEL_REPEATED) {
        format_joined(out, conf_field_text(message, field, 0));
        return true;
    }
    str_add_char(out, '[');
    for (size_t i = 0; i < count; i++) {
        str_add(out, i ? ", " : "");
        format_one(out, key, message, field, i);
    }
    str_add_char(out, ']');
    return true;
}

static bool write_item(const struct conf *conf, const struct conf_item *item, struct str *out)
{
    bool any = false;

    for (const struct conf_key *key = item->section->keys; key->name; key++) {
        struct str value = { 0 };

        if (conf_key_origin(item, key)->line && conf_value_format(conf, item, key, &value)) {
            if (!any && *item->section->name)
                str_addf(out, item->message ? "\n[[%s]]\n" : "\n[%s]\n", item->section->name);
            any = true;
            str_addf(out, "%s = %s\n", key->name, str_text(&value));
        }
        str_done(&value);
    }
    return any;
}

static void write_kept(const Config *config, struct str *out)
{
    if (config->n_kept)
        str_add(out, "\n# Keys of slurm.conf that change nothing here; scontrol show config prints "
                     "them.\n[slurm]\n");
    for (size_t i = 0; i < config->n_kept; i++) {
        str_addf(out, "%s = ", config->kept[i]->key);
        conf_quote(out, config->kept[i]->value);
        str_add_char(out, '\n');
    }
}

void conf_write_toml(const struct conf *conf, struct str *out)
{
    size_t i = 0;

    for (; i < conf->items.len && !conf->items.items[i].message; i++)
        write_item(conf, &conf->items.items[i], out);
    write_kept(&conf->config, out);
    /* Lists in the order of the table, elements of each in the order they came. */
    for (size_t s = 0; s < conf_section_count; s++) {
        for (size_t k = i; k < conf->items.len; k++) {
            if (conf->items.items[k].section == &conf_sections[s])
                write_item(conf, &conf->items.items[k], out);
        }
    }
}
